/* Tensors: every element type in every field, sizes against data, sparse tensors, external data and
 * each of its refusals. */
#include "onnx_bytes.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a folder with data files ---- */

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_onnx_data.XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    return cs_dir_remove_tree(folder, NULL);
}

static char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t len)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

/* ---- models of one weight ---- */

static pb model_with(pb t)
{
    pb g = graph_xy();
    pb_msg(&g, 5, t);
    pb_msg(&g, 1, node("Foo", "x,w", "y"));
    return model_of(g, 14, 28);
}

static loaded load_tensor(pb t) { return load(model_with(t)); }
static void refuse_tensor(pb t, const char *words) { refuse(model_with(t), words); }

/* ---- data in the file ---- */

static void check_raw(int elem, const char *dims, const char *type, size_t bytes)
{
    char data[64] = "0123456789abcdef0123456789abcdef";
    loaded l = load_tensor(tensor("w", elem, dims, data, bytes));
    assert_type(l.graph, "w", type);
    assert_int_equal(storage(l.graph, "w")->bytes, bytes);
    assert_int_equal(storage(l.graph, "w")->elem, elem);
    assert_memory_equal(storage(l.graph, "w")->data, data, bytes);
    const cs_weight *w = &l.onnx->weights.at[0];
    assert_true(w->raw && !w->constant && !w->sparse && w->file == CS_ONNX_INLINE);
    assert_int_equal(w->length, bytes);
    assert_memory_equal(l.bytes.at + w->offset, data, bytes);
    unload(&l);
    refuse_tensor(tensor("w", elem, dims, data, bytes + 1), "tensor 'w': raw_data holds");
    if (bytes > 1)
        refuse_tensor(tensor("w", elem, dims, data, bytes - 1), "tensor 'w': raw_data holds");
}

static void test_raw(void **state)
{
    (void)state;
    check_raw(1, "3", "f32[3]", 12);
    check_raw(2, "3", "u8[3]", 3);
    check_raw(9, "", "bool[]", 1);
    check_raw(7, "2,1", "i64[2,1]", 16);
    check_raw(15, "1", "c128[1]", 16);
    check_raw(16, "3", "bf16[3]", 6);
    check_raw(19, "3", "f8e5m2[3]", 3);
    check_raw(22, "3", "i4[3]", 2);
    check_raw(22, "4", "i4[4]", 2);
    check_raw(26, "5", "i2[5]", 2);
    check_raw(27, "3", "f6e2m3[3]", 3);
    check_raw(28, "4", "f6e3m2[4]", 3);
    refuse_tensor(tensor("w", 1, "3", "0123456789", 10),
                  "tensor 'w': raw_data holds 10 bytes, its dims and type need 12");
}

/* A tensor with numbers in a typed field, packed and unpacked; `expect` is what raw_data has. */
static void check_typed(int elem, const char *dims, uint32_t field, const int64_t *numbers,
                        size_t n, const char *expect, size_t bytes)
{
    for (int packed = 0; packed < 2; packed++) {
        pb t = tensor("w", elem, dims, NULL, 0), p = {0};
        for (size_t i = 0; i < n; i++) {
            if (packed)
                pb_number(&p, (uint64_t)numbers[i]);
            else
                pb_int(&t, field, numbers[i]);
        }
        if (packed) pb_msg(&t, field, p);
        loaded l = load_tensor(t);
        assert_int_equal(storage(l.graph, "w")->bytes, bytes);
        assert_memory_equal(storage(l.graph, "w")->data, expect, bytes);
        assert_false(l.onnx->weights.at[0].raw);
        unload(&l);
    }
}
#define TYPED(elem, dims, field, expect, ...)                                                      \
    do {                                                                                           \
        const int64_t numbers_[] = {__VA_ARGS__};                                                  \
        check_typed((elem), (dims), (field), numbers_, sizeof numbers_ / sizeof *numbers_,         \
                    (expect), sizeof(expect) - 1);                                                 \
    } while (0)

static void test_typed(void **state)
{
    (void)state;
    TYPED(6, "2", 5, "\1\0\0\0\xff\xff\xff\xff", 1, -1);
    TYPED(3, "3", 5, "\1\xff\x80", 1, -1, -128);
    TYPED(2, "2", 5, "\1\xff", 1, 255);
    TYPED(9, "2", 5, "\1\0", 1, 0);
    TYPED(4, "2", 5, "\1\0\xff\xff", 1, 65535);
    TYPED(10, "2", 5, "\0\x3c\0\xbc", 0x3c00, 0xbc00);
    TYPED(17, "2", 5, "\x38\x7f", 0x38, 0x7f);
    TYPED(7, "2", 7, "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 1, -1);
    TYPED(12, "2", 11, "\1\0\0\0\xff\xff\xff\xff", 1, 4294967295);
    TYPED(13, "1", 11, "\xff\xff\xff\xff\xff\xff\xff\xff", -1);
    TYPED(22, "3", 5, "\x21\x03", 0x21, 0x03); /* one packed byte a number */
    TYPED(22, "16", 5, "\1\2\3\4\5\6\7\x08", 0x04030201,
          0x08070605); /* four, as checker.cc has it */
    TYPED(26, "5", 5, "\xe4\x01", 0xe4, 0x01);
    TYPED(27, "5", 5, "\x81\x40\x0c\x3f", 1, 2, 4, 3, 63); /* one number an element, then packed */
}

static void test_float_data(void **state)
{
    (void)state;
    const float f[] = {1, 2, 3, 4};
    const double d[] = {1, 2};
    pb t = tensor("w", 1, "4", NULL, 0);
    pb_bytes(&t, 4, f, 16);
    loaded l = load_tensor(t);
    assert_memory_equal(storage(l.graph, "w")->data, f, 16);
    assert_true(l.onnx->weights.at[0].raw); /* one packed field is what raw_data would be */
    assert_memory_equal(l.bytes.at + l.onnx->weights.at[0].offset, f, 16);
    unload(&l);
    t = tensor("w", 1, "4", NULL, 0);
    pb_f32(&t, 4, 1);
    pb_bytes(&t, 4, f + 1, 8);
    pb_f32(&t, 4, 4);
    l = load_tensor(t);
    assert_memory_equal(storage(l.graph, "w")->data, f, 16);
    assert_false(l.onnx->weights.at[0].raw);
    unload(&l);
    t = tensor("w", 14, "2", NULL, 0); /* complex: two numbers an element */
    pb_bytes(&t, 4, f, 16);
    l = load_tensor(t);
    assert_int_equal(storage(l.graph, "w")->bytes, 16);
    unload(&l);
    t = tensor("w", 15, "1", NULL, 0);
    pb_bytes(&t, 10, d, 16);
    l = load_tensor(t);
    assert_memory_equal(storage(l.graph, "w")->data, d, 16);
    unload(&l);
    t = tensor("w", 1, "3", NULL, 0);
    pb_bytes(&t, 4, f, 16);
    refuse_tensor(t, "tensor 'w': float_data holds 4 numbers, its dims and type need 3");
    t = tensor("w", 1, "3", NULL, 0);
    pb_bytes(&t, 4, f, 11);
    refuse_tensor(t, "TensorProto.float_data: packed numbers that do not fill their length");
}

/* Over CS_CONST_MAX: checked by length, and nothing is kept in memory. */
static void test_large(void **state)
{
    (void)state;
    char *zeros = calloc(1, 40000);
    assert_non_null(zeros);
    pb t = tensor("w", 1, "1000", zeros, 4000);
    loaded l = load_tensor(t);
    assert_null(storage(l.graph, "w")->data);
    assert_int_equal(storage(l.graph, "w")->bytes, 4000);
    unload(&l);
    t = tensor("w", 7, "1000", NULL, 0);
    pb_bytes(&t, 7, zeros, 1000);
    l = load_tensor(t);
    assert_false(l.onnx->weights.at[0].raw);
    assert_int_equal(l.onnx->weights.at[0].length, 0);
    unload(&l);
    t = tensor("w", 7, "1000", NULL, 0);
    pb_bytes(&t, 7, zeros, 999);
    refuse_tensor(t, "tensor 'w': int64_data holds 999 numbers, its dims and type need 1000");
    t = tensor("w", 7, "1000", NULL, 0);
    pb_bytes(&t, 7, zeros, 10001);
    refuse_tensor(t, "tensor 'w': int64_data holds 1001 numbers, its dims and type need 1000");
    t = tensor("w", 1, "1000", NULL, 0);
    pb_bytes(&t, 4, zeros, 4001);
    refuse_tensor(t, "tensor 'w': float_data holds 4001 bytes, its dims and type need 4000");
    t = tensor("w", 1, "1000", NULL, 0);
    pb_bytes(&t, 4, zeros, 4004);
    refuse_tensor(t, "tensor 'w': float_data holds 1001 numbers, its dims and type need 1000");
    free(zeros);
}

static void test_empty_tensors(void **state)
{
    (void)state;
    loaded l = load_tensor(tensor("w", 7, "0", NULL, 0));
    assert_int_equal(storage(l.graph, "w")->bytes, 0);
    assert_non_null(storage(l.graph, "w")->data); /* known: it has no elements */
    unload(&l);
    l = load_tensor(tensor("w", 7, "4,0,4611686018427387904,4", "", 0));
    assert_int_equal(storage(l.graph, "w")->bytes, 0);
    unload(&l);
    refuse_tensor(tensor("w", 7, "0", "12345678", 8), "raw_data holds 8 bytes");
}

static void test_strings(void **state)
{
    (void)state;
    pb t = tensor("w", 8, "2", NULL, 0);
    pb_str(&t, 6, "abc");
    pb_str(&t, 6, "de");
    loaded l = load_tensor(t);
    assert_int_equal(storage(l.graph, "w")->bytes, 5);
    assert_null(storage(l.graph, "w")->data);
    unload(&l);
    refuse_tensor(tensor("w", 8, "2", NULL, 0), "string_data holds 0 strings");
    refuse_tensor(tensor("w", 8, "1", "a", 1), "tensor 'w': strings outside of string_data: save");
}

static void test_bad_tensors(void **state)
{
    (void)state;
    refuse_tensor(tensor("w", 1, "3", NULL, 0),
                  "a model without its weights cannot be cut: export it with them");
    refuse_tensor(tensor("w", 1, "-1", "0123", 4),
                  "tensor 'w': dim 0 is -1: weights need every dim");
    refuse_tensor(tensor("w", 1, "4294967296,4294967296", "0123", 4),
                  "tensor 'w': the product of its dims is over 2^63");
    refuse_tensor(tensor("w", 1, "2305843009213693952", "0123", 4),
                  "tensor 'w': its size in bytes is over 2^63");
    refuse_tensor(tensor("w", 0, "1", "0123", 4), "tensor 'w': data type 0 is not known here");
    refuse_tensor(tensor("w", 29, "1", "0123", 4),
                  "tensor 'w': data type 29 is not known here: convert it to one of ONNX");
    refuse_tensor(tensor("", 1, "1", "0123", 4), "an initializer without a name: name it");
    pb t = tensor("w", 1, "1", "0123", 4), segment = {0};
    pb_int(&segment, 2, 1);
    pb_msg(&t, 3, segment);
    refuse_tensor(t, "tensor 'w': segments are not supported: save it as one tensor");
    t = tensor("w", 1, "1", "0123", 4);
    pb_f32(&t, 4, 1);
    refuse_tensor(
        t,
        "tensor 'w': data in a field that is not for it, or in two fields: save it again in one");
    t = tensor("w", 1, "1", NULL, 0);
    pb_int(&t, 5, 1);
    refuse_tensor(t, "tensor 'w': data in a field that is not for it");
    t = (pb){0};
    for (int i = 0; i < 1025; i++)
        pb_int(&t, 1, 1);
    refuse_tensor(t, "a tensor of more than 1024 dims: give it fewer");
    pb g = graph_xy();
    pb_msg(&g, 5, tensor("y", 1, "1", "0123", 4));
    pb_msg(&g, 5, tensor("y", 1, "1", "0123", 4));
    refuse(model(g), "value 'y' is made twice");
}

static void test_sparse(void **state)
{
    (void)state;
    pb g = graph_xy(), s = {0};
    pb_int(&s, 3, 100);
    pb_msg(&s, 1, tensor("w", 1, "2", "01234567", 8));
    pb_msg(&s, 2, tensor("", 7, "2", "\0\0\0\0\0\0\0\0\xe7\3\0\0\0\0\0", 16));
    pb_int(&s, 3, 10);
    pb_msg(&g, 15, s);
    pb_msg(&g, 1, node("Foo", "x,w", "y"));
    loaded l = load(model(g));
    assert_type(l.graph, "w", "f32[100,10]");
    assert_int_equal(storage(l.graph, "w")->bytes, 4000);
    assert_null(storage(l.graph, "w")->data);
    assert_true(l.onnx->weights.at[0].sparse && !l.onnx->weights.at[0].raw);
    unload(&l);
    g = graph_xy(), s = (pb){0};
    pb_int(&s, 3, 100);
    pb_msg(&g, 15, s);
    refuse(model(g), "a sparse tensor without values: add them");
}

/* w: 3 x 4 with values of these dims, and indices; NULL: none */
static pb sparse_model(const char *values, int elem, const char *indices, const char *raw)
{
    pb g = graph_xy(), s = {0};
    pb_msg(&s, 1, tensor("w", 2, values, "12", 2));
    if (indices != NULL) pb_msg(&s, 2, tensor("", elem, indices, raw, strlen(raw) - 1));
    pb_int(&s, 3, 3);
    pb_int(&s, 3, 4);
    pb_msg(&g, 15, s);
    pb_msg(&g, 1, node("Foo", "x,w", "y"));
    return model(g);
}

/* Indices are bytes here, written as digits; the last character of a row is left out. */
static void test_sparse_indices(void **state)
{
    (void)state;
    static const struct {
        const char *values;
        int elem;
        const char *indices, *raw, *why; /* NULL: read */
    } rows[] = {
        {"2", CS_I8, "2", "\4\13.", NULL},
        {"2", CS_I8, "2,2", "\1\3\2\1.", NULL},
        {"2", CS_I8, "2,2", "\1\2\1\3.", NULL},
        {"2", CS_I64, NULL, NULL, "without indices"},
        {"2", CS_U8, "2", "\1\2.", "no integers"},
        {"2", CS_I8, "1", "\1.", "do not fit its 2 values: give them the shape [2] or [2,2]"},
        {"2", CS_I8, "3", "\1\2\3.", "do not fit its 2 values"},
        {"2", CS_I8, "2,1", "\1\2.", "do not fit its 2 values"},
        {"2", CS_I8, "2,1,1", "\1\2.", "do not fit its 2 values"},
        {"1,2", CS_I8, "2", "\1\2.", "more or less than one dim"},
        {"2", CS_I8, "2", "\1\14.", "sparse index 12 is outside of [0,12)"},
        {"2", CS_I8, "2", "\xff\1.", "sparse index -1 is outside"},
        {"2", CS_I8, "2,2", "\1\4\2\1.", "sparse index 4 is outside of [0,4)"},
        {"2", CS_I8, "2,2", "\1\2\3\1.", "sparse index 3 is outside of [0,3)"},
        {"2", CS_I8, "2", "\2\1.", "do not ascend"},
        {"2", CS_I8, "2", "\2\2.", "do not ascend"},
        {"2", CS_I8, "2,2", "\1\3\1\2.", "do not ascend"},
        {"2", CS_I8, "2,2", "\2\1\1\3.", "do not ascend"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        loaded l = load_from(
            sparse_model(rows[i].values, rows[i].elem, rows[i].indices, rows[i].raw), NULL, false);
        const char *why = rows[i].why;
        if (why == NULL ? l.status != CUTSET_OK
                        : l.status != CUTSET_BAD || strstr(l.err.message, why) == NULL ||
                              strstr(l.err.message, "tensor 'w': ") == NULL)
            fail_msg("row %zu: expected '%s', got '%s'", i, why ? why : "", l.err.message);
        unload(&l);
    }
}

/* ---- external data ---- */

static void entry(pb *t, const char *key, const char *text)
{
    pb e = {0};
    pb_str(&e, 1, key);
    pb_str(&e, 2, text);
    pb_msg(t, 13, e);
}

/* NULL: without that key */
static pb external(const char *name, const char *dims, const char *location, const char *offset,
                   const char *length)
{
    pb t = tensor(name, 1, dims, NULL, 0);
    if (location != NULL) entry(&t, "location", location);
    if (offset != NULL) entry(&t, "offset", offset);
    if (length != NULL) entry(&t, "length", length);
    pb_int(&t, 14, 1);
    return t;
}

static void refuse_external(pb t, cutset_status status, const char *words)
{
    loaded l = load_from(model_with(t), folder, false);
    if (l.status != status || strstr(l.err.message, words) == NULL)
        print_error("expected '%s', got %d: %s\n", words, l.status, l.err.message);
    assert_int_equal(l.status, status);
    assert_non_null(strstr(l.err.message, words));
    unload(&l);
}

static void test_external(void **state)
{
    (void)state;
    char data[8000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)i;
    write_file("w.bin", data, sizeof data);
    pb t = external("w", "4", "./w.bin", "4", "16");
    entry(&t, "checksum", "00");
    entry(&t, "odd", "1");
    loaded l = load_from(model_with(t), folder, false);
    assert_int_equal(l.status, CUTSET_OK);
    const cs_weight *w = &l.onnx->weights.at[0];
    assert_int_equal(l.onnx->files.len, 1);
    assert_int_equal(l.onnx->files.at[0].size, sizeof data);
    assert_false(l.onnx->files.at[0].link);
    assert_string_equal(l.onnx->files.at[0].path, in_folder("w.bin"));
    assert_true(cs_span_is(cs_name(l.graph->pool, l.onnx->files.at[0].location), "./w.bin"));
    assert_true(w->raw && w->file == 0 && w->offset == 4 && w->length == 16);
    assert_memory_equal(storage(l.graph, "w")->data, data + 4, 16);
    assert_true(has_note(l.graph, "unknown key 'odd'"));
    unload(&l);
    /* Offset and length may be absent; what is large stays where it is. */
    l = load_from(model_with(external("w", "1999", "w.bin", NULL, NULL)), folder, false);
    assert_int_equal(l.status, CUTSET_OK);
    assert_null(storage(l.graph, "w")->data);
    assert_int_equal(l.onnx->weights.at[0].length, 7996);
    unload(&l);
}

static void test_external_ties(void **state)
{
    (void)state;
    char data[64] = {0};
    write_file("t.bin", data, sizeof data);
    pb g = graph_xy();
    pb_msg(&g, 5, external("a", "4", "t.bin", "0", "16"));
    pb_msg(&g, 5, external("b", "2,2", "./t.bin", NULL, NULL));
    pb_msg(&g, 5, external("c", "4", "t.bin", "16", "16"));
    pb_msg(&g, 5, external("d", "0", "t.bin", "0", NULL));
    pb_msg(&g, 5, external("e", "0", "t.bin", "0", NULL));
    pb_msg(&g, 1, node("Foo", "x,a,b,c,d,e", "y"));
    loaded l = load_from(model(g), folder, false);
    assert_int_equal(l.status, CUTSET_OK);
    assert_ptr_equal(storage(l.graph, "a"), storage(l.graph, "b"));
    assert_ptr_not_equal(storage(l.graph, "a"), storage(l.graph, "c"));
    assert_ptr_not_equal(storage(l.graph, "d"), storage(l.graph, "e"));
    assert_int_equal(l.onnx->files.len, 1);
    assert_int_equal(l.onnx->weights.len, l.graph->storages.len);
    assert_type(l.graph, "b", "f32[2,2]");
    unload(&l);
}

static void test_external_refused(void **state)
{
    (void)state;
    char data[16] = {0};
    write_file("s.bin", data, sizeof data);
    refuse_external(external("w", "4", "/etc/passwd", NULL, NULL), CUTSET_BAD,
                    "tensor 'w': data file '/etc/passwd': the path is absolute: name it from the "
                    "model's folder");
    refuse_external(external("w", "4", "../s.bin", NULL, NULL), CUTSET_BAD,
                    "the path leaves the model's folder: move the file below it");
    refuse_external(external("w", "4", "a/../../s.bin", NULL, NULL), CUTSET_BAD,
                    "the path leaves the model's folder: move the file below it");
    refuse_external(external("w", "4", "none.bin", NULL, NULL), CUTSET_BAD,
                    "it is not there: put it beside the model");
    refuse_external(external("w", "4", "s.bin/x", NULL, NULL), CUTSET_BAD,
                    "it is not there: put it beside the model");
    refuse_external(external("w", "4", ".", NULL, NULL), CUTSET_BAD,
                    "the path is a folder: name the file in it");
    refuse_external(external("w", "4", NULL, NULL, NULL), CUTSET_BAD,
                    "it names no location: name the file");
    refuse_external(external("w", "4", "*/_ORT_MEM_ADDR_/*", "1", "16"), CUTSET_BAD,
                    "a memory address was saved instead of data");
    refuse_external(external("w", "4", "s.bin", "1", NULL), CUTSET_BAD,
                    "data file 's.bin': offset 1 and length 16 run past its end at 16 (download "
                    "incomplete?): get it again");
    refuse_external(external("w", "4", "s.bin", "9223372036854775807", NULL), CUTSET_BAD,
                    "run past its end");
    refuse_external(external("w", "4", "s.bin", "-1", NULL), CUTSET_BAD,
                    "offset '-1' is not a size");
    refuse_external(external("w", "4", "s.bin", "1x", NULL), CUTSET_BAD,
                    "offset '1x' is not a size: give a whole number of bytes");
    refuse_external(external("w", "4", "s.bin", "99999999999999999999", NULL), CUTSET_BAD,
                    "is not a size");
    refuse_external(external("w", "4", "s.bin", NULL, "12"), CUTSET_BAD,
                    "length 12, but its dims and type need 16 bytes: correct one of them");
    assert_int_equal(mkdir(in_folder("sub"), 0777), 0);
    refuse_external(external("w", "4", "sub", NULL, NULL), CUTSET_BAD,
                    "it is not a regular file: put the data itself there");
    assert_int_equal(mkfifo(in_folder("fifo"), 0666), 0);
    refuse_external(external("w", "4", "fifo", NULL, NULL), CUTSET_BAD,
                    "it is not a regular file: put the data itself there");
    refuse(model_with(external("w", "4", "s.bin", NULL, NULL)),
           "a model in memory does not say where they are: open the model by its path");
    pb t = external("w", "4", "s.bin", NULL, NULL);
    pb_bytes(&t, 9, data, 16);
    refuse_external(t, CUTSET_BAD, "in two fields");
    t = tensor("w", 8, "1", NULL, 0);
    pb_int(&t, 14, 1);
    refuse_external(t, CUTSET_BAD, "strings outside of string_data");
}

static void follow(const char *location, bool follow_links, bool ok)
{
    loaded l =
        load_from(model_with(external("w", "4", location, NULL, NULL)), folder, follow_links);
    assert_int_equal(l.status, ok ? CUTSET_OK : CUTSET_BAD);
    if (ok)
        assert_true(l.onnx->files.at[0].link);
    else
        assert_non_null(strstr(l.err.message, "--follow-links"));
    unload(&l);
}

static void test_external_links(void **state)
{
    (void)state;
    char data[16] = {0};
    assert_int_equal(mkdir(in_folder("real"), 0777), 0);
    write_file("real/w.bin", data, sizeof data);
    assert_int_equal(symlink("real/w.bin", in_folder("link.bin")), 0);
    assert_int_equal(symlink("real", in_folder("linked")), 0);
    follow("link.bin", false, false);
    follow("linked/w.bin", false, false);
    follow("link.bin", true, true);
    follow("linked/w.bin", true, true);
    assert_int_equal(symlink("nowhere", in_folder("broken.bin")), 0);
    loaded l = load_from(model_with(external("w", "4", "broken.bin", NULL, NULL)), folder, true);
    assert_int_equal(l.status, CUTSET_BAD);
    unload(&l);
    /* A hard link is taken, with a note. */
    char other[256];
    snprintf(other, sizeof other, "%s/hard.bin", folder);
    assert_int_equal(link(in_folder("real/w.bin"), other), 0);
    l = load_from(model_with(external("w", "4", "hard.bin", NULL, NULL)), folder, false);
    assert_int_equal(l.status, CUTSET_OK);
    assert_true(has_note(l.graph, "hard links"));
    unload(&l);
}

/* Tensors in attributes may be external too: of a Constant, and of any other node. */
static void test_external_attributes(void **state)
{
    (void)state;
    char data[16] = "0123456789abcdef";
    write_file("a.bin", data, sizeof data);
    pb g = graph_xy();
    pb_msg(&g, 1,
           with_attr(node("Constant", NULL, "c"),
                     attr_tensor("value", external("", "2", "a.bin", "8", NULL))));
    pb_msg(&g, 1, node("Foo", "x,c", "y"));
    loaded l = load_from(model(g), folder, false);
    assert_int_equal(l.status, CUTSET_OK);
    const cs_weight *w = &l.onnx->weights.at[0];
    assert_true(w->constant && w->raw && w->file == 0 && w->offset == 8 && w->length == 8);
    assert_memory_equal(storage(l.graph, "c")->data, data + 8, 8);
    assert_false(l.onnx->has_external_attrs);
    unload(&l);
    g = graph_xy();
    pb_msg(
        &g, 1,
        with_attr(node("Foo", "x", "y"), attr_tensor("t", external("", "2", "a.bin", "8", NULL))));
    l = load_from(model(g), folder, false);
    assert_int_equal(l.status, CUTSET_OK);
    assert_true(l.onnx->has_external_attrs);
    unload(&l);
}

/* Two thousand files must not need two thousand descriptors. */
static void test_many_files(void **state)
{
    (void)state;
    char data[16] = {0}, name[32], names[40000] = "x";
    pb g = graph_xy();
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "many%d.bin", i);
        write_file(name, data, sizeof data);
        pb_msg(&g, 5, external(name, "4", name, NULL, NULL));
        strcat(strcat(names, ","), name);
    }
    pb_msg(&g, 1, node("Foo", names, "y"));
    loaded l = load_from(model(g), folder, false);
    assert_int_equal(l.status, CUTSET_OK);
    assert_int_equal(l.onnx->files.len, 2000);
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_typed),
        cmocka_unit_test(test_float_data),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_empty_tensors),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_sparse_indices),
        cmocka_unit_test(test_external),
        cmocka_unit_test(test_external_ties),
        cmocka_unit_test(test_external_refused),
        cmocka_unit_test(test_external_links),
        cmocka_unit_test(test_external_attributes),
        cmocka_unit_test(test_many_files),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
