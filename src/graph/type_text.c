/* Types in the text form: f32[1,N,2*N+1], seq(f32), map(i64,f32[?]), ?.
 *
 * Scanning and printing keep containers on a stack of fixed depth or a counter: no recursion.
 * Also here: the character classes, quoted strings and faults that all scanners share.
 * Cost: linear in the text.
 */
#include "graph/text.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- characters and faults ---- */

#define B CS_CHAR_BARE
#define S (CS_CHAR_BARE | CS_CHAR_SYMBOL)
#define D (CS_CHAR_BARE | CS_CHAR_SYMBOL | CS_CHAR_DIGIT)
#define W CS_CHAR_BLANK
const unsigned char cs_char_class[256] = {
    [' '] = W, ['\t'] = W, ['\r'] = W, ['.'] = B, ['/'] = B, ['-'] = B, ['_'] = S, ['0'] = D,
    ['1'] = D, ['2'] = D,  ['3'] = D,  ['4'] = D, ['5'] = D, ['6'] = D, ['7'] = D, ['8'] = D,
    ['9'] = D, ['a'] = S,  ['b'] = S,  ['c'] = S, ['d'] = S, ['e'] = S, ['f'] = S, ['g'] = S,
    ['h'] = S, ['i'] = S,  ['j'] = S,  ['k'] = S, ['l'] = S, ['m'] = S, ['n'] = S, ['o'] = S,
    ['p'] = S, ['q'] = S,  ['r'] = S,  ['s'] = S, ['t'] = S, ['u'] = S, ['v'] = S, ['w'] = S,
    ['x'] = S, ['y'] = S,  ['z'] = S,  ['A'] = S, ['B'] = S, ['C'] = S, ['D'] = S, ['E'] = S,
    ['F'] = S, ['G'] = S,  ['H'] = S,  ['I'] = S, ['J'] = S, ['K'] = S, ['L'] = S, ['M'] = S,
    ['N'] = S, ['O'] = S,  ['P'] = S,  ['Q'] = S, ['R'] = S, ['S'] = S, ['T'] = S, ['U'] = S,
    ['V'] = S, ['W'] = S,  ['X'] = S,  ['Y'] = S, ['Z'] = S,
};
#undef B
#undef S
#undef D
#undef W

cutset_status cs_fault_at(cs_fault *f, const char *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->why, sizeof f->why, format, args);
    va_end(args);
    f->at = at;
    return CUTSET_BAD;
}

cutset_status cs_fault_found(cs_fault *f, const cs_cursor *c, const char *wanted)
{
    if (c->at == c->end || *c->at == '\n')
        return cs_fault_at(f, c->at, "the line ends too early: write %s", wanted);
    /* A word is quoted whole, anything else as one byte. */
    cs_cursor look = *c;
    cs_span found = cs_take_run(&look, CS_CHAR_BARE);
    if (found.len == 0) found.len = 1;
    return cs_fault_at(f, c->at, "'%.*s' is not expected here: write %s",
                       (int)(found.len > 60 ? 60 : found.len), found.at, wanted);
}

/* ---- strings ---- */

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The byte of the escape at c (on its backslash); moves c past it. */
static cutset_status scan_escape(cs_cursor *c, char *out, cs_fault *f)
{
    size_t left = (size_t)(c->end - c->at);
    if (left >= 2 && (c->at[1] == '"' || c->at[1] == '\\')) {
        *out = c->at[1];
        c->at += 2;
        return CUTSET_OK;
    }
    if (left >= 4 && c->at[1] == 'x' && hex(c->at[2]) >= 0 && hex(c->at[3]) >= 0) {
        *out = (char)(hex(c->at[2]) << 4 | hex(c->at[3]));
        c->at += 4;
        return CUTSET_OK;
    }
    return cs_fault_at(f, c->at, "unknown escape in a string: write \\\\, \\\" or \\xNN");
}

cutset_status cs_scan_string(cs_cursor *c, cs_chars *scratch, cs_span *out, bool *raw, cs_fault *f)
{
    const char *quote = c->at++, *from = c->at;
    *raw = true;
    scratch->len = 0;
    while (c->at < c->end && *c->at != '\n') {
        if (*c->at == '"') {
            *out = *raw ? (cs_span){from, (size_t)(c->at - from)}
                        : (cs_span){scratch->at, scratch->len};
            c->at++;
            return CUTSET_OK;
        }
        if (*c->at != '\\' && *raw) {
            c->at++;
            continue;
        }
        if (*raw && !cs_chars_put(scratch, (cs_span){from, (size_t)(c->at - from)}))
            return CUTSET_SYSTEM;
        *raw = false;
        char byte = *c->at;
        if (byte != '\\')
            c->at++;
        else if (scan_escape(c, &byte, f))
            return CUTSET_BAD;
        if (!cs_vec_push(scratch, byte)) return CUTSET_SYSTEM;
    }
    return cs_fault_at(f, quote, "a string without its end: write '\"' on the same line");
}

bool cs_chars_put(cs_chars *out, cs_span text)
{
    if (text.len == 0) return true;
    if (!cs_vec_room(out, text.len)) return false;
    memcpy(out->at + out->len, text.at, text.len);
    out->len += text.len;
    return true;
}

/* Length of the UTF-8 sequence at `s`, or 0 where there is none. */
static size_t utf8_len(cs_span s)
{
    unsigned char c = (unsigned char)s.at[0];
    size_t len = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
    return len && len <= s.len && cs_utf8_valid((cs_span){s.at, len}) ? len : 0;
}

bool cs_chars_quote(cs_chars *out, cs_span text)
{
    if (!cs_vec_push(out, '"')) return false;
    for (size_t i = 0; i < text.len;) {
        unsigned char c = (unsigned char)text.at[i];
        size_t len = utf8_len((cs_span){text.at + i, text.len - i});
        char escape[8];
        cs_span piece = {text.at + i, len};
        if (c == '"' || c == '\\')
            piece = (cs_span){escape, (size_t)snprintf(escape, sizeof escape, "\\%c", c)};
        else if (c < 0x20 || c == 0x7f || len == 0)
            piece = (cs_span){escape, (size_t)snprintf(escape, sizeof escape, "\\x%02x", c)};
        if (!cs_chars_put(out, piece)) return false;
        i += len ? len : 1;
    }
    return cs_vec_push(out, '"');
}

bool cs_chars_name(cs_chars *out, cs_span name)
{
    cs_cursor c = cs_cursor_of(name);
    if (name.len && cs_take_run(&c, CS_CHAR_BARE).len == name.len) return cs_chars_put(out, name);
    return cs_chars_quote(out, name);
}

/* ---- types ---- */

/* "[" [dim {"," dim}] "]", the cursor after the bracket. */
static cutset_status scan_dims(cs_pool *pool, cs_cursor *c, cs_dim *dims, int *rank, cs_fault *f)
{
    *rank = 0;
    if (cs_take(c, ']')) return CUTSET_OK;
    for (;;) {
        if (*rank == CS_RANK_MAX)
            return cs_fault_at(f, c->at, "a shape of more than %d dims: give fewer", CS_RANK_MAX);
        cutset_status status = cs_scan_dim(pool, c, &dims[*rank], f);
        if (status) return status;
        ++*rank;
        if (cs_take(c, ']')) return CUTSET_OK;
        if (!cs_take(c, ',')) return cs_fault_found(f, c, "',' and a dim, or ']'");
    }
}

static cutset_status scan_elem(cs_cursor *c, cs_span *word, cs_elem *out, cs_fault *f)
{
    cs_skip_blanks(c);
    const char *at = c->at;
    *word = cs_take_run(c, CS_CHAR_SYMBOL);
    *out = cs_elem_parse(*word);
    if (word->len == 0) return cs_fault_found(f, c, "a type such as f32[1,3], seq(f32) or ?");
    if (*out == CS_ELEM_NONE && !cs_span_is(*word, "seq") && !cs_span_is(*word, "opt") &&
        !cs_span_is(*word, "map"))
        return cs_fault_at(f, at, "'%.*s' is no element type: write f32, f16, i64, bool, ...",
                           (int)(word->len > 60 ? 60 : word->len), word->at);
    return CUTSET_OK;
}

/* The containers around a type, outermost first. */
struct wraps {
    cs_kind kind[CS_TEXT_DEPTH];
    cs_elem key[CS_TEXT_DEPTH];
    int len;
};

/* "(" of a container and, of a map, its key; the cursor after the word. */
static cutset_status scan_wrap(cs_cursor *c, cs_span word, struct wraps *w, cs_fault *f)
{
    if (!cs_take(c, '(')) return cs_fault_found(f, c, "'(' and a type");
    if (w->len == CS_TEXT_DEPTH)
        return cs_fault_at(f, c->at, "a type nested more than %d deep: nest less", CS_TEXT_DEPTH);
    w->kind[w->len] = word.at[0] == 's' ? CS_SEQ : word.at[0] == 'o' ? CS_OPT : CS_MAP;
    w->key[w->len] = CS_ELEM_NONE;
    if (w->kind[w->len] == CS_MAP) {
        cs_skip_blanks(c);
        cs_cursor before = *c;
        w->key[w->len] = cs_elem_parse(cs_take_run(c, CS_CHAR_SYMBOL));
        if (w->key[w->len] == CS_ELEM_NONE)
            return cs_fault_found(f, &before, "the element type of the keys, such as i64 or str");
        if (!cs_take(c, ',')) return cs_fault_found(f, c, "',' and the type of the values");
    }
    w->len++;
    return CUTSET_OK;
}

static cs_type wrap(cs_pool *pool, cs_kind kind, cs_elem key, cs_type inner)
{
    return kind == CS_SEQ   ? cs_type_seq(pool, inner)
           : kind == CS_OPT ? cs_type_opt(pool, inner)
                            : cs_type_map(pool, key, inner);
}

cutset_status cs_scan_type(cs_pool *pool, cs_cursor *c, cs_type *out, cs_fault *f)
{
    struct wraps w;
    w.len = 0;
    cs_type type = 0;
    while (!cs_take(c, '?')) {
        cs_span word;
        cs_elem elem;
        cutset_status status = scan_elem(c, &word, &elem, f);
        if (!status && elem == CS_ELEM_NONE) status = scan_wrap(c, word, &w, f);
        if (status) return status;
        if (elem == CS_ELEM_NONE) continue;
        cs_dim dims[CS_RANK_MAX];
        int rank = CS_RANK_UNKNOWN;
        if (cs_take(c, '[') && (status = scan_dims(pool, c, dims, &rank, f))) return status;
        type = cs_type_tensor(pool, elem, rank, dims);
        break;
    }
    while (w.len > 0) {
        if (!cs_take(c, ')')) return cs_fault_found(f, c, "')'");
        w.len--;
        type = wrap(pool, w.kind[w.len], w.key[w.len], type);
    }
    if (type == CS_NONE) return CUTSET_SYSTEM;
    *out = type;
    return CUTSET_OK;
}

static cutset_status scan_failed(cutset_status status, const char *what, const char *start,
                                 cs_span text, const cs_fault *f, cutset_error *err)
{
    if (status == CUTSET_SYSTEM) return cs_fail_memory(err);
    return cs_fail_at(err, status, (uint64_t)(f->at - start), "%s '%.*s': %s", what, CS_FMT(text),
                      f->why);
}

cutset_status cs_type_parse(cs_pool *pool, cs_span text, cs_type *out, cutset_error *err)
{
    cs_cursor c = cs_cursor_of(text);
    const char *const start = c.at;
    cs_fault f = {.at = start};
    cs_type type = 0;
    cutset_status status = cs_scan_type(pool, &c, &type, &f);
    cs_skip_blanks(&c);
    if (!status && c.at != c.end) status = cs_fault_found(&f, &c, "nothing more");
    if (status) return scan_failed(status, "type", start, text, &f, err);
    *out = type;
    return CUTSET_OK;
}

cutset_status cs_dim_parse(cs_pool *pool, cs_span text, cs_dim *out, cutset_error *err)
{
    cs_cursor c = cs_cursor_of(text);
    const char *const start = c.at;
    cs_fault f = {.at = start};
    cs_dim dim = 0;
    cutset_status status = cs_scan_dim(pool, &c, &dim, &f);
    cs_skip_blanks(&c);
    if (!status && c.at != c.end) status = cs_fault_found(&f, &c, "nothing more");
    if (status) return scan_failed(status, "dim", start, text, &f, err);
    *out = dim;
    return CUTSET_OK;
}

int64_t cs_text_weight_bytes(const cs_pool *pool, cs_type type)
{
    const cs_type_info *info = cs_type_get(pool, type);
    if ((info->kind != CS_TENSOR && info->kind != CS_SPARSE) || info->elem != CS_STR)
        return cs_type_bytes(pool, type);
    for (int i = 0; i < info->rank; i++)
        if (cs_type_dims(pool, type)[i] < 0) return -1;
    return info->rank < 0 ? -1 : 0;
}

static bool print_dims(const cs_pool *pool, const cs_type_info *t, cs_chars *out)
{
    bool ok = cs_chars_put(out, CS_SPAN("["));
    for (int i = 0; ok && i < t->rank; i++) {
        cs_dim d = pool->dims.at[t->dims + (uint32_t)i];
        char number[24];
        cs_span text = CS_SPAN("?");
        if (d >= 0)
            text = (cs_span){number, (size_t)snprintf(number, sizeof number, "%lld", (long long)d)};
        else if (cs_dim_is_expr(d))
            text = cs_name(pool, cs_dim_text(d));
        ok = (i == 0 || cs_chars_put(out, CS_SPAN(","))) && cs_chars_put(out, text);
    }
    return ok && cs_chars_put(out, CS_SPAN("]"));
}

bool cs_chars_type(const cs_pool *pool, cs_type t, bool dense, cs_chars *out)
{
    size_t open = 0;
    bool ok = true;
    const cs_type_info *info = cs_type_get(pool, t);
    for (; ok; info = cs_type_get(pool, info->inner), open++) {
        if (info->kind == CS_SEQ)
            ok = cs_chars_put(out, CS_SPAN("seq("));
        else if (info->kind == CS_OPT)
            ok = cs_chars_put(out, CS_SPAN("opt("));
        else if (info->kind == CS_MAP && info->elem != CS_ELEM_NONE)
            ok = cs_chars_put(out, CS_SPAN("map(")) &&
                 cs_chars_put(out, cs_span_of(cs_elem_name(info->elem))) &&
                 cs_chars_put(out, CS_SPAN(","));
        else
            break;
    }
    bool tensor = (info->kind == CS_TENSOR || (dense && info->kind == CS_SPARSE)) &&
                  info->elem != CS_ELEM_NONE;
    ok = ok && cs_chars_put(out, cs_span_of(tensor ? cs_elem_name(info->elem) : "?"));
    if (ok && tensor && info->rank >= 0) ok = print_dims(pool, info, out);
    while (ok && open-- > 0)
        ok = cs_vec_push(out, ')');
    return ok;
}

bool cs_type_print(const cs_pool *pool, cs_type t, cs_chars *out)
{
    return cs_chars_type(pool, t, false, out);
}
