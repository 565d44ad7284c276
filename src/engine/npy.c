/* NumPy's .npy files.
 *
 * "\x93NUMPY", major and minor version, the header's length (2 bytes, from version 2 on 4), then
 * the header: a Python dict as text with the keys descr, fortran_order and shape, in any order,
 * followed by the data. NEP 1 (numpy.org/neps/nep-0001-npy-format.html). The parser takes what
 * NumPy writes and nothing more of Python.
 */
#include "engine/npy.h"

#include <string.h>

enum { RANK_MAX = 64 }; /* NumPy's own limit */

typedef struct scan {
    const char *at, *end;
    const char *what;
    cutset_error *err;
    bool has_descr, has_order, has_shape;
} scan;

static cutset_status malformed(const scan *s, const char *why)
{
    return cs_fail(s->err, CUTSET_BAD, "%s: not a .npy file: %s: write it with numpy.save", s->what,
                   why);
}

/* ---- the header's Python ---- */

static void skip_blanks(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n'))
        s->at++;
}

static bool take(scan *s, char c)
{
    skip_blanks(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static bool take_word(scan *s, const char *word)
{
    const size_t n = strlen(word);
    skip_blanks(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

/* 'text' without escapes */
static bool take_string(scan *s, cs_span *out)
{
    char quote = '\'';
    if (!take(s, '\'')) {
        quote = '"';
        if (!take(s, '"')) return false;
    }
    const char *from = s->at;
    while (s->at < s->end && *s->at != quote && *s->at != '\\')
        s->at++;
    if (s->at == s->end || *s->at != quote) return false;
    *out = (cs_span){from, (size_t)(s->at - from)};
    s->at++;
    return true;
}

/* "<f4", "|b1", "<U12" */
static cutset_status read_descr(scan *s, cs_npy *npy)
{
    cs_span text;
    int64_t item;
    if (take(s, '['))
        return cs_fail(s->err, CUTSET_BAD,
                       "%s: an array of records: save one field, numpy.save(path, x['field'])",
                       s->what);
    if (!take_string(s, &text)) return malformed(s, "its header has no descr");
    if (text.len > 0 && text.at[0] == '>')
        return cs_fail(s->err, CUTSET_BAD,
                       "%s: big-endian data (%.*s): save x.astype(x.dtype.newbyteorder('<'))",
                       s->what, CS_FMT(text));
    const bool order = text.len > 0 && strchr("<|=", text.at[0]) != NULL;
    const cs_span rest = {text.at + order, text.len - order};
    if (rest.len > 0 && rest.at[0] == 'O')
        return cs_fail(s->err, CUTSET_BAD,
                       "%s: an array of Python objects: save x.astype(str), or a number type",
                       s->what);
    if (rest.len < 2 || strchr("biufcUSV", rest.at[0]) == NULL ||
        !cs_parse_i64((cs_span){rest.at + 1, rest.len - 1}, &item) || item < 0 || item > INT32_MAX)
        return cs_fail(s->err, CUTSET_BAD, "%s: elements of type '%.*s': save x.astype('<f4'), say",
                       s->what, CS_FMT(text));
    npy->kind = rest.at[0];
    npy->item = (size_t)item * (npy->kind == 'U' ? 4 : 1);
    s->has_descr = true;
    return CUTSET_OK;
}

static cutset_status read_order(scan *s, bool *fortran)
{
    *fortran = take_word(s, "True");
    if (!*fortran && !take_word(s, "False"))
        return malformed(s, "fortran_order is neither True nor False");
    s->has_order = true;
    return CUTSET_OK;
}

/* (), (3,), (3, 4) */
static cutset_status read_shape(scan *s, cs_npy *npy)
{
    if (!take(s, '(')) return malformed(s, "its shape is no tuple");
    while (!take(s, ')')) {
        skip_blanks(s);
        const char *from = s->at;
        while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
            s->at++;
        int64_t dim;
        if (!cs_parse_i64((cs_span){from, (size_t)(s->at - from)}, &dim))
            return malformed(s, "its shape holds what is no number");
        if (npy->rank == RANK_MAX) return malformed(s, "its rank is over 64");
        npy->dims[npy->rank++] = dim;
        if (take(s, ',')) continue;
        if (!take(s, ')')) return malformed(s, "its shape does not end");
        break;
    }
    s->has_shape = true;
    return CUTSET_OK;
}

static cutset_status read_dict(scan *s, cs_npy *npy, bool *fortran)
{
    if (!take(s, '{')) return malformed(s, "its header is no dict");
    while (!take(s, '}')) {
        cs_span key;
        if (!take_string(s, &key) || !take(s, ':')) return malformed(s, "its header is cut");
        cutset_status status;
        if (cs_span_is(key, "descr"))
            status = read_descr(s, npy);
        else if (cs_span_is(key, "fortran_order"))
            status = read_order(s, fortran);
        else if (cs_span_is(key, "shape") && !s->has_shape)
            status = read_shape(s, npy);
        else
            status = malformed(s, "its header has a key of its own");
        if (status) return status;
        take(s, ',');
    }
    return s->has_descr && s->has_order && s->has_shape
               ? CUTSET_OK
               : malformed(s, "its header lacks descr, fortran_order or shape");
}

/* ---- the file ---- */

static cutset_status check_size(const scan *s, cs_npy *npy, size_t have)
{
    size_t bytes = npy->item;
    npy->count = 1;
    for (size_t i = 0; i < npy->rank; i++)
        if (__builtin_mul_overflow(npy->count, (size_t)npy->dims[i], &npy->count))
            return malformed(s, "its shape is over 64 bits");
    if (__builtin_mul_overflow(bytes, npy->count, &bytes) || bytes > have)
        return cs_fail(s->err, CUTSET_BAD,
                       "%s: cut off: it holds %zu bytes of data and its shape needs %s%zu: write "
                       "it again",
                       s->what, have, bytes > have ? "" : "more than ", bytes);
    if (bytes < have)
        return cs_fail(s->err, CUTSET_BAD,
                       "%s: %zu bytes follow the array: a .npy file holds one array (.npz is not "
                       "read)",
                       s->what, have - bytes);
    return CUTSET_OK;
}

/* Finds header and data. */
static cutset_status read_frame(scan *s, const unsigned char *bytes, size_t len, size_t *data)
{
    if (len >= 4 && memcmp(bytes, "PK\3\4", 4) == 0)
        return cs_fail(s->err, CUTSET_BAD,
                       "%s: a zip archive (.npz): save one array a file with numpy.save", s->what);
    if (len < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return malformed(s, "it does not begin with \\x93NUMPY");
    const unsigned version = bytes[6];
    if (version < 1 || version > 3) return malformed(s, "its version is not 1, 2 or 3");
    const size_t from = version == 1 ? 10 : 12;
    if (len < from) return malformed(s, "its header is cut");
    size_t header = bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) header |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (header > len - from) return malformed(s, "its header is cut");
    s->at = (const char *)bytes + from;
    s->end = s->at + header;
    *data = from + header;
    return CUTSET_OK;
}

cutset_status cs_npy_parse(cs_npy *out, const void *bytes, size_t len, const char *what,
                           cutset_error *err)
{
    cs_npy npy = {0};
    scan s = {.what = what, .err = err};
    size_t data = 0;
    bool fortran = false;
    npy.dims = cs_alloc(RANK_MAX, sizeof *npy.dims);
    if (npy.dims == NULL) return cs_fail_memory(err);
    cutset_status status = read_frame(&s, bytes, len, &data);
    if (!status) status = read_dict(&s, &npy, &fortran);
    if (!status && fortran && npy.rank > 1)
        status =
            cs_fail(err, CUTSET_BAD, "%s: in Fortran order: save numpy.ascontiguousarray(x)", what);
    if (!status) status = check_size(&s, &npy, len - data);
    if (!status && npy.kind != 'U' && npy.kind != 'S' && npy.kind != 'V' &&
        cs_npy_elem(&npy) == CS_ELEM_NONE)
        status = cs_fail(err, CUTSET_BAD,
                         "%s: elements of type '%c%zu', which ONNX has not: save x.astype('<f4'), "
                         "say",
                         what, npy.kind, npy.item);
    if (status) {
        cs_free(npy.dims);
        return status;
    }
    npy.data = (const unsigned char *)bytes + data;
    *out = npy;
    return CUTSET_OK;
}

cutset_status cs_npy_open(cs_npy *out, const char *path, cutset_error *err)
{
    cs_file file;
    cutset_status status = cs_file_open(&file, path, err);
    if (status) return status;
    cs_npy npy;
    status = cs_npy_parse(&npy, file.at, file.len, path, err);
    if (status) {
        cs_file_close(&file);
        return status;
    }
    npy.file = file;
    *out = npy;
    return CUTSET_OK;
}

void cs_npy_close(cs_npy *npy)
{
    cs_free(npy->dims);
    cs_file_close(&npy->file);
    *npy = (cs_npy){0};
}

cs_elem cs_npy_elem(const cs_npy *npy)
{
    static const struct {
        char kind;
        unsigned char item, elem;
    } table[] = {{'b', 1, CS_BOOL}, {'i', 1, CS_I8},   {'i', 2, CS_I16}, {'i', 4, CS_I32},
                 {'i', 8, CS_I64},  {'u', 1, CS_U8},   {'u', 2, CS_U16}, {'u', 4, CS_U32},
                 {'u', 8, CS_U64},  {'f', 2, CS_F16},  {'f', 4, CS_F32}, {'f', 8, CS_F64},
                 {'c', 8, CS_C64},  {'c', 16, CS_C128}};
    if (npy->kind == 'U' || npy->kind == 'S') return CS_STR;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == npy->kind && table[i].item == npy->item) return table[i].elem;
    return CS_ELEM_NONE;
}

/* ---- text ---- */

static size_t put_utf8(uint32_t c, char *out)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | c >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
    return more + 1;
}

char *cs_npy_text(const cs_npy *npy, size_t i)
{
    const unsigned char *at = npy->data + i * npy->item;
    char *text = cs_alloc(npy->item + 1, 1); /* UTF-8 is never longer than UCS-4 */
    if (text == NULL) return NULL;
    size_t n = 0;
    if (npy->kind == 'S') {
        memcpy(text, at, npy->item);
        n = npy->item;
    }
    for (size_t k = 0; npy->kind == 'U' && k < npy->item; k += 4) {
        uint32_t c;
        memcpy(&c, at + k, sizeof c);
        n += put_utf8(c, text + n);
    }
    while (n > 0 && text[n - 1] == '\0')
        n--;
    text[n] = '\0';
    return text;
}
