/* NumPy files: every version and type that is read, every kind that is refused, every cut. */
#include "failing_alloc.h" /* before cmocka.h, which has a test_malloc of its own */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/npy.h"

typedef struct bytes {
    unsigned char at[512];
    size_t len;
} bytes;

/* A file of this version with this header and `n` bytes of data. */
static bytes file(unsigned version, const char *header, const void *data, size_t n)
{
    bytes b = {.len = 6};
    memcpy(b.at, "\x93NUMPY", 6);
    b.at[b.len++] = (unsigned char)version;
    b.at[b.len++] = 0;
    const size_t len = strlen(header);
    b.at[b.len++] = (unsigned char)len;
    b.at[b.len++] = (unsigned char)(len >> 8);
    if (version > 1) {
        b.at[b.len++] = 0;
        b.at[b.len++] = 0;
    }
    memcpy(b.at + b.len, header, len);
    b.len += len;
    if (n > 0) memcpy(b.at + b.len, data, n);
    b.len += n;
    return b;
}

static bytes array(const char *descr, const char *shape, const void *data, size_t n)
{
    char header[200];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }   \n",
             descr, shape);
    return file(1, header, data, n);
}

static cs_npy good(const bytes *b)
{
    cs_npy npy = {0};
    cutset_error err = {0};
    if (cs_npy_parse(&npy, b->at, b->len, "x.npy", &err)) fail_msg("%s", err.message);
    return npy;
}

/* The message must hold `part`. */
static void bad(const bytes *b, const char *part)
{
    cs_npy npy = {0};
    cutset_error err = {0};
    assert_int_equal(cs_npy_parse(&npy, b->at, b->len, "x.npy", &err), CUTSET_BAD);
    assert_null(npy.dims);
    if (strstr(err.message, part) == NULL) fail_msg("'%s' has no '%s'", err.message, part);
    assert_non_null(strstr(err.message, "x.npy: "));
}

static void versions(void **state)
{
    (void)state;
    const float data[6] = {0, 1, 2, 3, 4, 5};
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    for (unsigned version = 1; version <= 3; version++) {
        const bytes b = file(version, header, data, sizeof data);
        cs_npy npy = good(&b);
        assert_int_equal(cs_npy_elem(&npy), CS_F32);
        assert_int_equal(npy.rank, 2);
        assert_int_equal(npy.dims[0], 2);
        assert_int_equal(npy.dims[1], 3);
        assert_int_equal(npy.count, 6);
        assert_memory_equal(npy.data, data, sizeof data);
        cs_npy_close(&npy);
    }
    const bytes b = file(4, header, data, sizeof data);
    bad(&b, "version");
}

static void keys_in_any_order(void **state)
{
    (void)state;
    const bytes b =
        file(1, "{\"shape\": (3,),\n \"fortran_order\": True, \"descr\": \"|u1\"}", "abc", 3);
    cs_npy npy = good(&b); /* of rank 1, Fortran order is C order */
    assert_int_equal(cs_npy_elem(&npy), CS_U8);
    assert_int_equal(npy.dims[0], 3);
    cs_npy_close(&npy);
}

static void types(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        cs_elem elem;
        size_t bytes;
    } all[] = {
        {"|b1", CS_BOOL, 1},      {"|i1", CS_I8, 1},     {"<i2", CS_I16, 2}, {"<i4", CS_I32, 4},
        {"<i8", CS_I64, 8},       {"|u1", CS_U8, 1},     {"<u2", CS_U16, 2}, {"<u4", CS_U32, 4},
        {"<u8", CS_U64, 8},       {"<f2", CS_F16, 2},    {"<f4", CS_F32, 4}, {"<f8", CS_F64, 8},
        {"<c8", CS_C64, 8},       {"<c16", CS_C128, 16}, {"=f4", CS_F32, 4}, {"f8", CS_F64, 8},
        {"|V2", CS_ELEM_NONE, 2}, {"<U2", CS_STR, 8},    {"|S3", CS_STR, 3}};
    const unsigned char zeros[16] = {0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const bytes b = array(all[i].descr, "()", zeros, all[i].bytes);
        cs_npy npy = good(&b);
        assert_int_equal(cs_npy_elem(&npy), all[i].elem);
        assert_int_equal(npy.rank, 0);
        assert_int_equal(npy.count, 1);
        cs_npy_close(&npy);
    }
}

static void empty(void **state)
{
    (void)state;
    const bytes b = array("<f4", "(0, 7)", NULL, 0);
    cs_npy npy = good(&b);
    assert_int_equal(npy.count, 0);
    assert_int_equal(npy.dims[1], 7);
    cs_npy_close(&npy);
}

static void text(void **state)
{
    (void)state;
    const uint32_t wide[6] = {'h', 0xe4, 0x1f600, 0xd800, 'x', 0}; /* "hä😀", a lone surrogate, x */
    bytes b = array("<U3", "(2,)", wide, sizeof wide);
    cs_npy npy = good(&b);
    char *t = cs_npy_text(&npy, 0);
    assert_string_equal(t, "h\xc3\xa4\xf0\x9f\x98\x80");
    cs_free(t);
    t = cs_npy_text(&npy, 1);
    assert_string_equal(t, "\xef\xbf\xbdx");
    cs_free(t);
    cs_npy_close(&npy);
    b = array("|S3", "(2,)", "ab\0cde", 6);
    npy = good(&b);
    t = cs_npy_text(&npy, 0);
    assert_string_equal(t, "ab");
    cs_free(t);
    t = cs_npy_text(&npy, 1);
    assert_string_equal(t, "cde");
    cs_free(t);
    cs_npy_close(&npy);
}

static void refused(void **state)
{
    (void)state;
    const float data[4] = {0};
    bytes b = array(">f4", "(4,)", data, 16);
    bad(&b, "big-endian");
    b = array("|O", "(4,)", data, 16);
    bad(&b, "astype(str)");
    b = array("<f16", "(1,)", data, 16);
    bad(&b, "f16");
    b = array("<M8[ns]", "(1,)", data, 8);
    bad(&b, "M8[ns]");
    b = array("<f4", "(5,)", data, 16);
    bad(&b, "cut off");
    b = array("<f4", "(3,)", data, 16);
    bad(&b, "follow the array");
    b = array("<f4", "(4294967296, 4294967296)", data, 16);
    bad(&b, "64 bits");
    b = array("<f4", "(-1,)", data, 16);
    bad(&b, "shape");
    b = array("<f4", "(99999999999999999999,)", data, 16);
    bad(&b, "shape");
    b = array("<f4", "[4]", data, 16);
    bad(&b, "tuple");
    b = file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", data, 16);
    bad(&b, "ascontiguousarray");
    b = file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", data, 16);
    bad(&b, "records");
    b = file(1, "{'descr': '<f4', 'shape': (4,), }", data, 16);
    bad(&b, "lacks");
    b = file(1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4,), }", data, 16);
    bad(&b, "fortran_order");
    b = file(1, "{'descr': '<f4', 'colour': 1}", data, 16);
    bad(&b, "key");
    b = (bytes){.at = "PK\3\4 and more, an archive", .len = 20};
    bad(&b, ".npz");
    b = (bytes){.at = "hello, this is no array", .len = 20};
    bad(&b, "NUMPY");
}

/* Every prefix of a good file is refused, and reads nothing past its end (sanitizers watch). */
static void every_cut(void **state)
{
    (void)state;
    const int64_t data[2] = {1, 2};
    const bytes b = array("<i8", "(2,)", data, sizeof data);
    for (size_t n = 0; n < b.len; n++) {
        unsigned char *copy = cs_alloc(n + 1, 1);
        memcpy(copy, b.at, n);
        cs_npy npy = {0};
        assert_int_equal(cs_npy_parse(&npy, copy, n, "x.npy", NULL), CUTSET_BAD);
        cs_free(copy);
    }
}

static void from_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/cutset-npy-XXXXXX";
    const int fd = mkstemp(path);
    const int64_t data[2] = {1, -2};
    const bytes b = array("<i8", "(2,)", data, sizeof data);
    assert_int_equal(write(fd, b.at, b.len), b.len);
    close(fd);
    cs_npy npy;
    const long before = alloc_live();
    for (long n = 0;; n++) { /* without memory at every call */
        alloc_fail_at(n);
        const cutset_status status = cs_npy_open(&npy, path, NULL);
        if (!alloc_failed()) break;
        assert_int_equal(status, CUTSET_SYSTEM);
        assert_int_equal(alloc_live(), before);
    }
    alloc_fail_at(-1);
    assert_memory_equal(npy.data, data, sizeof data);
    cs_npy_close(&npy);
    assert_int_equal(alloc_live(), before);
    unlink(path);
    assert_int_equal(cs_npy_open(&npy, path, NULL), CUTSET_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions),  cmocka_unit_test(keys_in_any_order),
        cmocka_unit_test(types),     cmocka_unit_test(empty),
        cmocka_unit_test(text),      cmocka_unit_test(refused),
        cmocka_unit_test(every_cut), cmocka_unit_test(from_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
