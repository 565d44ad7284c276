/* ONNX Runtime through its table of functions: sessions, runs, values of every kind, its words.
 * Skipped where there is no library. */
#include "onnx_bytes.h"

#include <stdio.h>

#include "base/mem.h"
#include "engine/elem.h"
#include "engine/ort.h"

static cs_ort *ort;

/* ---- helpers ---- */

static void ok(cutset_status status, const cutset_error *err)
{
    if (status) fail_msg("%s", err->message);
}

static cs_session *open_model(pb m)
{
    cs_session *s = NULL;
    cutset_error err = {0};
    ok(cs_session_open_memory(&s, ort, m.at, m.len, NULL, &err), &err);
    free(m.at);
    return s;
}

static OrtValue *floats(size_t n, const float *x)
{
    OrtValue *v = NULL;
    void *data;
    size_t bytes;
    cutset_error err = {0};
    ok(cs_ort_tensor_new(&v, &data, &bytes, ort, CS_F32, 1, (const int64_t[]){(int64_t)n}, &err),
       &err);
    assert_int_equal(bytes, n * sizeof *x);
    memcpy(data, x, bytes);
    return v;
}

static OrtValue *run_one(cs_session *s, const OrtValue *in)
{
    OrtValue *out = NULL;
    cutset_error err = {0};
    assert_int_equal(s->n_inputs, 1);
    assert_int_equal(s->n_outputs, 1);
    ok(cs_session_run(s, &in, &out, &err), &err);
    return out;
}

static void check_floats(const OrtValue *v, size_t n, const float *want)
{
    cs_ort_tensor t;
    cutset_error err = {0};
    ok(cs_ort_tensor_read(ort, v, &t, &err), &err);
    assert_int_equal(t.elem, CS_F32);
    assert_int_equal(t.count, n);
    assert_memory_equal(t.data, want, n * sizeof *want);
    cs_ort_tensor_fini(&t);
}

static cs_ort_kind kind_of(const OrtValue *v)
{
    cs_ort_kind kind = CS_ORT_OTHER;
    cutset_error err = {0};
    ok(cs_ort_value_kind(ort, v, &kind, &err), &err);
    return kind;
}

/* ---- tests ---- */

static void runs(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    cs_session *s = open_model(model(g));
    assert_string_equal(s->inputs[0], "x");
    assert_string_equal(s->outputs[0], "y");
    OrtValue *in = floats(4, (const float[]){-1, 2, -3, 4});
    OrtValue *out = run_one(s, in);
    cs_ort_value_free(ort, in);
    cs_session_close(s); /* the value lives on */
    check_floats(out, 4, (const float[]){0, 2, 0, 4});
    cs_ort_value_free(ort, out);
}

static void passes_an_input_through(void **state)
{
    (void)state;
    pb g = {0};
    pb_str(&g, 2, "g");
    pb_msg(&g, 11, info("x", CS_F32, "2"));
    pb_msg(&g, 12, info("x", CS_F32, "2"));
    cs_session *s = open_model(model(g));
    OrtValue *in = floats(2, (const float[]){1, 2});
    OrtValue *out = run_one(s, in);
    cs_ort_value_free(ort, in);
    cs_session_close(s);
    check_floats(out, 2, (const float[]){1, 2});
    cs_ort_value_free(ort, out);
}

/* Protobuf merges a second graph field into the first: how verify looks at inner values. */
static void outputs_can_be_added(void **state)
{
    (void)state;
    pb g = graph_xy(), more = {0}, m;
    pb_msg(&g, 1, node("Neg", "x", "h"));
    pb_msg(&g, 1, node("Relu", "h", "y"));
    m = model(g);
    pb_msg(&more, 12, info("h", 0, NULL));
    pb_msg(&m, 7, more);
    cs_session *s = open_model(m);
    assert_int_equal(s->n_outputs, 2);
    assert_string_equal(s->outputs[1], "h");
    OrtValue *in = floats(4, (const float[]){-1, 2, -3, 4}), *out[2];
    const OrtValue *ins[1] = {in};
    cutset_error err = {0};
    ok(cs_session_run(s, ins, out, &err), &err);
    check_floats(out[0], 4, (const float[]){1, 0, 3, 0});
    check_floats(out[1], 4, (const float[]){1, -2, 3, -4});
    cs_ort_value_free(ort, in);
    cs_ort_value_free(ort, out[0]);
    cs_ort_value_free(ort, out[1]);
    cs_session_close(s);
}

static void strings(void **state)
{
    (void)state;
    pb g = {0};
    pb_str(&g, 2, "g");
    pb_msg(&g, 11, info("x", CS_STR, "N"));
    pb_msg(&g, 12, info("y", CS_STR, "N"));
    pb_msg(&g, 1, node("Identity", "x", "y"));
    cs_session *s = open_model(model(g));
    OrtValue *in = NULL;
    cs_ort_tensor t;
    cutset_error err = {0};
    static const char *const text[] = {"", "one", "h\xc3\xa4"};
    ok(cs_ort_strings_new(&in, ort, 1, (const int64_t[]){3}, text, 3, &err), &err);
    OrtValue *out = run_one(s, in);
    ok(cs_ort_tensor_read(ort, out, &t, &err), &err);
    assert_int_equal(t.elem, CS_STR);
    assert_int_equal(t.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(cs_span_is(t.strings[i], text[i]));
    cs_ort_tensor_fini(&t);
    cs_ort_value_free(ort, in);
    cs_ort_value_free(ort, out);
    cs_session_close(s);
}

static void sequences_and_maps(void **state)
{
    (void)state;
    cutset_error err = {0};
    OrtValue *items[2] = {floats(2, (const float[]){1, 2}), floats(1, (const float[]){3})};
    OrtValue *seq = NULL, *map = NULL, *child = NULL;
    size_t n = 0;
    ok(cs_ort_list_new(&seq, ort, CS_ORT_SEQUENCE, items, 2, &err), &err);
    assert_int_equal(kind_of(seq), CS_ORT_SEQUENCE);
    ok(cs_ort_value_count(ort, seq, &n, &err), &err);
    assert_int_equal(n, 2);
    ok(cs_ort_value_child(ort, seq, 1, &child, &err), &err);
    assert_int_equal(kind_of(child), CS_ORT_TENSOR);
    check_floats(child, 1, (const float[]){3});
    cs_ort_value_free(ort, child);
    OrtValue *halves[2] = {NULL, items[0]};
    static const char *const keys[] = {"a", "b"};
    ok(cs_ort_strings_new(&halves[0], ort, 1, (const int64_t[]){2}, keys, 2, &err), &err);
    ok(cs_ort_list_new(&map, ort, CS_ORT_MAP, halves, 2, &err), &err);
    assert_int_equal(kind_of(map), CS_ORT_MAP);
    ok(cs_ort_value_child(ort, map, 1, &child, &err), &err);
    check_floats(child, 2, (const float[]){1, 2});
    cs_ort_value_free(ort, child);
    cs_ort_value_free(ort, map);
    cs_ort_value_free(ort, halves[0]);
    cs_ort_value_free(ort, seq);
    cs_ort_value_free(ort, items[0]);
    cs_ort_value_free(ort, items[1]);
}

static void absent_optional(void **state)
{
    (void)state;
    pb g = {0}, out = {0}, opt = {0}, type = {0}, a = {0}, n = node("Optional", NULL, "o");
    pb_str(&a, 1, "type");
    pb_msg(&a, 14, type_of(CS_F32, "2"));
    pb_int(&a, 20, 13);
    pb_msg(&n, 5, a);
    pb_msg(&opt, 1, type_of(CS_F32, "2"));
    pb_msg(&type, 9, opt);
    pb_str(&out, 1, "o");
    pb_msg(&out, 2, type);
    pb_str(&g, 2, "g");
    pb_msg(&g, 1, n);
    pb_msg(&g, 12, out);
    cs_session *s = open_model(model_of(g, 8, 15));
    OrtValue *value = NULL;
    cutset_error err = {0};
    ok(cs_session_run(s, NULL, &value, &err), &err);
    assert_int_equal(kind_of(value), CS_ORT_ABSENT);
    cs_ort_value_free(ort, value);
    cs_session_close(s);
}

/* Tensors of every type that the runtime knows are as large as we think, and keep their bytes. */
static void element_types(void **state)
{
    (void)state;
    size_t made = 0;
    for (int e = 1; e < CS_ELEM_COUNT; e++) {
        OrtValue *v = NULL;
        void *data;
        size_t bytes;
        cs_ort_tensor t;
        cutset_error err = {0};
        const int64_t dims[2] = {3, 5};
        if (e == CS_STR) continue;
        if (cs_ort_tensor_new(&v, &data, &bytes, ort, (cs_elem)e, 2, dims, &err)) {
            assert_true(e == CS_C64 || e == CS_C128 || e >= CS_F8E4M3FN);
            continue;
        }
        assert_int_equal(bytes, (15 * cs_elem_bits((cs_elem)e) + 7) / 8);
        memset(data, 0x2a, bytes);
        ok(cs_ort_tensor_read(ort, v, &t, &err), &err);
        assert_int_equal(t.elem, e);
        assert_int_equal(t.rank, 2);
        assert_int_equal(t.dims[0], 3);
        assert_int_equal(t.bytes, bytes);
        assert_ptr_equal(t.data, data);
        cs_ort_tensor_fini(&t);
        cs_ort_value_free(ort, v);
        made++;
    }
    assert_true(made >= 14);
}

static void words_of_the_runtime(void **state)
{
    (void)state;
    cs_session *s = NULL;
    cutset_error err = {0};
    assert_int_equal(cs_session_open(&s, ort, "/nonexistent/m.onnx", &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "m.onnx"));
    assert_int_equal(cs_session_open_memory(&s, ort, "no model", 8, NULL, &err), CUTSET_BAD);
    assert_null(s);
    pb g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    s = open_model(model(g));
    OrtValue *in = floats(3, (const float[]){1, 2, 3}), *out = in;
    const OrtValue *ins[1] = {in};
    assert_int_equal(cs_session_run(s, ins, &out, &err), CUTSET_BAD);
    assert_null(out);
    assert_non_null(strstr(err.message, "x"));
    assert_null(strchr(err.message, '\n'));
    assert_null(strstr(err.message, "\\x0a")); /* a line break became a blank */
    cs_ort_value_free(ort, in);
    cs_session_close(s);
    OrtValue *v = NULL;
    void *data;
    size_t bytes;
    const int64_t huge[2] = {INT64_MAX, 2};
    assert_int_equal(cs_ort_tensor_new(&v, &data, &bytes, ort, CS_F32, 2, huge, &err), CUTSET_BAD);
}

static void no_library(void **state)
{
    (void)state;
    cs_ort *none = NULL;
    cutset_error err = {0};
    assert_int_equal(cs_ort_open(&none, "/nonexistent/libonnxruntime.so", &err), CUTSET_SYSTEM);
    assert_non_null(strstr(err.message, "/nonexistent/libonnxruntime.so"));
    assert_int_equal(cs_ort_open(&none, "/proc/self/exe", &err), CUTSET_SYSTEM);
    assert_int_equal(cs_ort_open(&none, "libm.so.6", &err), CUTSET_SYSTEM); /* loads, is another */
    assert_non_null(strstr(err.message, "OrtGetApiBase"));
    assert_null(none);
}

int main(void)
{
    cutset_error err = {0};
    if (cs_ort_open(&ort, NULL, &err)) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    printf("ONNX Runtime %s, %s\n", cs_ort_version(ort), cs_ort_path(ort));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
        cmocka_unit_test(passes_an_input_through),
        cmocka_unit_test(outputs_can_be_added),
        cmocka_unit_test(strings),
        cmocka_unit_test(sequences_and_maps),
        cmocka_unit_test(absent_optional),
        cmocka_unit_test(element_types),
        cmocka_unit_test(words_of_the_runtime),
        cmocka_unit_test(no_library),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cs_ort_close(ort);
    return failed;
}
