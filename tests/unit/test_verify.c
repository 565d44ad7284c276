/* What verify rests on: comparing values, and making inputs by seed. Needs ONNX Runtime for the
 * values; skipped where there is none. */
#include "onnx_bytes.h"

#include <math.h>
#include <stdio.h>

#include "api/verify.h"
#include "engine/elem.h"

static cs_ort *ort;

static void ok(cutset_status status, const cutset_error *err)
{
    if (status) fail_msg("%s", err->message);
}

/* ---- comparing ---- */

static OrtValue *vec(cs_elem e, size_t n, const void *bytes)
{
    OrtValue *v = NULL;
    void *data;
    size_t len;
    cutset_error err = {0};
    ok(cs_ort_tensor_new(&v, &data, &len, ort, e, 1, (const int64_t[]){(int64_t)n}, &err), &err);
    if (len > 0) memcpy(data, bytes, len);
    return v;
}

static OrtValue *words(const char *a, const char *b)
{
    OrtValue *v = NULL;
    cutset_error err = {0};
    ok(cs_ort_strings_new(&v, ort, 1, (const int64_t[]){2}, (const char *const[]){a, b}, 2, &err),
       &err);
    return v;
}

/* Both values are freed. */
static cs_difference compare(OrtValue *a, OrtValue *b, unsigned marks, const cs_dim *dims)
{
    cs_difference d;
    cutset_error err = {0};
    ok(cs_verify_compare(ort, a, b, marks, dims, dims != NULL ? 1 : 0, &d, &err), &err);
    cs_ort_value_free(ort, a);
    cs_ort_value_free(ort, b);
    return d;
}

static cs_difference floats(const float *a, const float *b, size_t n, unsigned marks)
{
    return compare(vec(CS_F32, n, a), vec(CS_F32, n, b), marks, NULL);
}

static float nan_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void bit_for_bit(void **state)
{
    (void)state;
    const float a[4] = {1, -0.0f, nan_of(0x7fc00001), INFINITY};
    float b[4];
    char text[300];
    memcpy(b, a, sizeof a);
    assert_int_equal(floats(a, b, 4, 0).verdict, CS_EQUAL);
    b[1] = 0; /* 0.0 is not -0.0 */
    cs_difference d = floats(a, b, 4, 0);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    assert_int_equal(d.index, 1);
    assert_int_equal(d.count, 1);
    assert_true(d.max_abs == 0);
    cs_verify_tell(&d, text, sizeof text);
    assert_string_equal(text, "element 1 is -0.0 in the whole model and 0.0 in the parts");
    memcpy(b, a, sizeof a);
    b[2] = nan_of(0x7fc00002); /* nor one NaN the other */
    b[3] = nan_of(0x7fc00001);
    d = floats(a, b, 4, 0);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    assert_int_equal(d.index, 2);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.nan_whole, 1);
    assert_int_equal(d.nan_parts, 2);
    memcpy(b, a, sizeof a);
    b[0] = nextafterf(1, 2);
    d = floats(a, b, 4, 0);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    assert_true(d.max_abs > 0 && d.max_abs < 1e-6);
}

static void within_tolerance(void **state)
{
    (void)state;
    const float a[4] = {1, 100, 1e-3f, NAN};
    const float near[4] = {1.005f, 100.5f, 1e-3f + 0.3f, nan_of(0x7fc00077)};
    const float far[4] = {1.005f, 105, 1e-3f, NAN};
    cs_difference d = floats(a, near, 4, CS_MARK_F16);
    assert_int_equal(d.verdict, CS_CLOSE); /* 0.3 is little beside 100 */
    assert_int_equal(d.index, 0);
    assert_int_equal(d.count, 4);
    d = floats(a, far, 4, CS_MARK_F16);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    assert_int_equal(d.index, 1); /* the first out of tolerance */
    assert_int_equal(floats(a, far, 4, CS_MARK_BF16).verdict, CS_DIFFERENT);
    assert_int_equal(floats(a, (const float[]){1, 103, 1e-3f, NAN}, 4, CS_MARK_BF16).verdict,
                     CS_CLOSE);
    assert_int_equal(floats(a, (const float[]){1, 100, 1e-3f, 0}, 4, CS_MARK_F16).verdict,
                     CS_DIFFERENT);
    const float inf[2] = {INFINITY, 1}, big[2] = {3e38f, 1};
    assert_int_equal(floats(inf, big, 2, CS_MARK_F16).verdict, CS_DIFFERENT);
    assert_int_equal(floats(inf, inf, 2, CS_MARK_F16).verdict, CS_EQUAL);
}

static void types_and_shapes(void **state)
{
    (void)state;
    const float a[4] = {0};
    const int32_t i[4] = {0};
    char text[300];
    cs_difference d = compare(vec(CS_F32, 4, a), vec(CS_I32, 4, i), CS_MARK_F16, NULL);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    cs_verify_tell(&d, text, sizeof text);
    assert_string_equal(text, "it is f32[4] in the whole model and i32[4] in the parts");
    assert_int_equal(compare(vec(CS_F32, 4, a), vec(CS_F32, 3, a), 0, NULL).verdict, CS_DIFFERENT);
    assert_int_equal(compare(vec(CS_F32, 0, a), vec(CS_F32, 0, a), 0, NULL).verdict, CS_EQUAL);
}

static void random_values(void **state)
{
    (void)state;
    const float a[4] = {0}, b[4] = {1, 2, 3, 4};
    const cs_dim open[1] = {CS_DIM_UNKNOWN}, fixed[1] = {4};
    assert_int_equal(floats(a, b, 4, CS_MARK_RANDOM).verdict, CS_RANDOM);
    const cs_difference d = compare(vec(CS_F32, 4, a), vec(CS_F32, 3, b), CS_MARK_RANDOM, open);
    assert_int_equal(d.verdict, CS_RANDOM);
    assert_int_equal(compare(vec(CS_F32, 4, a), vec(CS_F32, 3, b), CS_MARK_RANDOM, fixed).verdict,
                     CS_DIFFERENT);
}

static void small_integers(void **state)
{
    (void)state;
    unsigned char a[2] = {0x21, 0x03}, b[2] = {0x21, 0xf3}; /* three elements; a spare half byte */
    assert_int_equal(compare(vec(CS_I4, 3, a), vec(CS_I4, 3, b), 0, NULL).verdict, CS_EQUAL);
    b[1] = 0x04;
    const cs_difference d = compare(vec(CS_I4, 3, a), vec(CS_I4, 3, b), 0, NULL);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    assert_int_equal(d.index, 2);
    assert_string_equal(d.whole, "3");
    assert_string_equal(d.parts, "4");
}

static void text_and_lists(void **state)
{
    (void)state;
    assert_int_equal(compare(words("a", "b"), words("a", "b"), 0, NULL).verdict, CS_EQUAL);
    cs_difference d = compare(words("a", "b"), words("a", "bb"), 0, NULL);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    assert_int_equal(d.index, 1);
    assert_string_equal(d.parts, "\"bb\"");
    OrtValue *lists[2] = {NULL, NULL};
    const float x[2] = {1, 2}, y[2] = {1, 3};
    for (int k = 0; k < 2; k++) {
        OrtValue *items[2] = {vec(CS_F32, 2, x), vec(CS_F32, 2, k == 0 ? x : y)};
        cutset_error err = {0};
        ok(cs_ort_list_new(&lists[k], ort, CS_ORT_SEQUENCE, items, 2, &err), &err);
        cs_ort_value_free(ort, items[0]);
        cs_ort_value_free(ort, items[1]);
    }
    char text[300];
    d = compare(lists[0], lists[1], 0, NULL);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    cs_verify_tell(&d, text, sizeof text);
    assert_string_equal(text, "item 1: element 1 is 2.0 in the whole model and 3.0 in the parts");
    d = compare(vec(CS_F32, 2, x), words("a", "b"), 0, NULL);
    assert_int_equal(d.verdict, CS_DIFFERENT);
}

/* ---- inputs ---- */

static loaded inputs_model(void)
{
    pb g = {0};
    pb_str(&g, 2, "g");
    pb_msg(&g, 11, info("x", CS_F32, "N,3"));
    pb_msg(&g, 11, info("i", CS_I64, "M,N*2+1"));
    pb_msg(&g, 11, info("a=b", CS_BOOL, "N"));
    pb_msg(&g, 11, info("s", CS_STR, "2"));
    pb_msg(&g, 11, info("u", CS_U2, "9"));
    pb_msg(&g, 1, node("Identity", "x", "y"));
    pb_msg(&g, 12, info("y", CS_F32, "N,3"));
    return load(model_of(g, 12, 23));
}

static void by_seed(void **state)
{
    (void)state;
    loaded l = inputs_model();
    cs_inputs in = {0};
    cutset_verify_opts opts;
    cutset_error err = {0};
    OrtValue *first[5], *again[5];
    cutset_verify_opts_init(&opts);
    ok(cs_inputs_init(&in, l.graph, &opts, &err), &err);
    assert_int_equal(in.feeds.len, 5);
    ok(cs_inputs_make(&in, ort, 7, 0, first, &err), &err);
    ok(cs_inputs_make(&in, ort, 7, 0, again, &err), &err);
    for (size_t i = 0; i < 5; i++) {
        cs_difference d;
        ok(cs_verify_compare(ort, first[i], again[i], 0, NULL, 0, &d, &err), &err);
        assert_int_equal(d.verdict, CS_EQUAL);
    }
    assert_string_equal(in.feeds.at[0].shape, "f32[2,3]");
    assert_string_equal(in.feeds.at[1].shape, "i64[3,5]");
    assert_string_equal(in.feeds.at[2].shape, "bool[2]");
    assert_string_equal(in.feeds.at[1].source, "1..9");
    assert_string_equal(in.feeds.at[4].source, "1..3"); /* as far as the type goes */
    /* the same on every machine: these very bits */
    cs_ort_tensor t;
    ok(cs_ort_tensor_read(ort, first[0], &t, &err), &err);
    char text[80];
    cs_elem_print(CS_F32, t.data, 0, text);
    assert_string_equal(text, "-0.87436134");
    cs_ort_tensor_fini(&t);
    for (size_t i = 0; i < 5; i++)
        cs_ort_value_free(ort, first[i]);
    ok(cs_inputs_make(&in, ort, 8, 0, first, &err), &err);
    cs_difference d;
    ok(cs_verify_compare(ort, first[0], again[0], 0, NULL, 0, &d, &err), &err);
    assert_int_equal(d.verdict, CS_DIFFERENT);
    for (size_t i = 0; i < 5; i++) {
        cs_ort_value_free(ort, first[i]);
        cs_ort_value_free(ort, again[i]);
    }
    cs_inputs_fini(&in);
    unload(&l);
}

static void ranges(void **state)
{
    (void)state;
    loaded l = inputs_model();
    static const char *const good[] = {"x=-0.5..0.25", "i=-3..3", "a=b=1", "u=0..2"};
    cs_inputs in = {0};
    cutset_verify_opts opts;
    cutset_error err = {0};
    OrtValue *values[5];
    cs_ort_tensor t;
    cutset_verify_opts_init(&opts);
    opts.ranges = good;
    opts.n_ranges = 4;
    ok(cs_inputs_init(&in, l.graph, &opts, &err), &err);
    ok(cs_inputs_make(&in, ort, 1, 0, values, &err), &err);
    for (size_t i = 0; i < 5; i++) {
        static const double low[] = {-0.5, -3, 1, 0, 0}, high[] = {0.25, 3, 1, 0, 2};
        ok(cs_ort_tensor_read(ort, values[i], &t, &err), &err);
        for (size_t k = 0; t.elem != CS_STR && k < t.count; k++) {
            const double x = cs_elem_get(t.elem, t.data, k, 0);
            assert_true(x >= low[i] && x <= high[i]);
        }
        cs_ort_tensor_fini(&t);
        cs_ort_value_free(ort, values[i]);
    }
    cs_inputs_fini(&in);
    static const struct {
        const char *option, *words;
    } bad[] = {{"z=0..1", "no input"},   {"x=1..0", "no range"},   {"x=a..b", "no range"},
               {"x", "no input"},        {"i=0..1.5", "whole"},    {"u=0..4", "from 0 to 3"},
               {"s=0..1", "no numbers"}, {"x=nan..1", "no range"}, {"a=b=0..2", "from 0 to 1"},
               {"x=0..inf", "no range"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cs_inputs none = {0};
        opts.ranges = &bad[i].option;
        opts.n_ranges = 1;
        assert_int_equal(cs_inputs_init(&none, l.graph, &opts, &err), CUTSET_USAGE);
        if (strstr(err.message, bad[i].words) == NULL) fail_msg("%s", err.message);
        cs_inputs_fini(&none);
    }
    unload(&l);
}

static void attempts(void **state)
{
    (void)state;
    loaded l = inputs_model();
    cs_inputs in = {0};
    cutset_verify_opts opts;
    cutset_error err = {0};
    cutset_verify_opts_init(&opts);
    ok(cs_inputs_init(&in, l.graph, &opts, &err), &err);
    for (size_t k = 0; k < cs_n_attempts; k++)
        assert_true(cs_inputs_differ(&in, k));
    in.any_dim = false;
    assert_true(cs_inputs_differ(&in, 1));
    assert_false(cs_inputs_differ(&in, 2)); /* the same integers as before */
    in.any_int = false;
    for (size_t k = 1; k < cs_n_attempts; k++)
        assert_false(cs_inputs_differ(&in, k));
    cs_inputs_fini(&in);
    unload(&l);
}

int main(void)
{
    cutset_error err = {0};
    if (cs_ort_open(&ort, NULL, &err)) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bit_for_bit),      cmocka_unit_test(within_tolerance),
        cmocka_unit_test(types_and_shapes), cmocka_unit_test(random_values),
        cmocka_unit_test(small_integers),   cmocka_unit_test(text_and_lists),
        cmocka_unit_test(by_seed),          cmocka_unit_test(ranges),
        cmocka_unit_test(attempts),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cs_ort_close(ort);
    return failed;
}
