/* --type, --shape and --dim on a model: what they change, everywhere, and what they refuse. */
#include "onnx_bytes.h"

/* x: f32[N,3,?], t: i64[N,S], z: ?  ->  a, y; a body captures x and has f32[N] of its own. */
static loaded sample(void)
{
    pb b = {0};
    pb_msg(&b, 1, node("Relu", "x", "t1"));
    pb_msg(&b, 1, node("Relu", "t1", "t2"));
    pb_msg(&b, 13, info("t1", 1, "N"));
    pb_msg(&b, 12, info("t2", 0, NULL));
    pb g = {0};
    pb_msg(&g, 11, info("x", 1, "N,3,?"));
    pb_msg(&g, 11, info("t", 7, "N,S"));
    pb_msg(&g, 11, info("z", 0, NULL));
    pb_msg(&g, 11, info("in:0", 1, ""));
    pb_msg(&g, 1, with_attr(node("Foo", "x,t,z", "a"), attr_graph("b", b)));
    pb_msg(&g, 1, node("Relu", "a", "y"));
    pb_msg(&g, 13, info("a", 1, "N,odd name"));
    pb_msg(&g, 12, info("y", 0, NULL));
    return load(model(g));
}

static cutset_status declare(loaded *l, const char *types, const char *shapes, const char *shapes2,
                             const char *dims, const char *dims2)
{
    const char *const t[] = {types}, *const s[] = {shapes, shapes2}, *const d[] = {dims, dims2};
    const cutset_open_opts opts = {.types = t,
                                   .n_types = types != NULL,
                                   .shapes = s,
                                   .n_shapes = (size_t)((shapes != NULL) + (shapes2 != NULL)),
                                   .dims = d,
                                   .n_dims = (size_t)((dims != NULL) + (dims2 != NULL))};
    const cutset_status status = cs_declare(l->graph, &opts, &l->err);
    if (status == CUTSET_OK) assert_int_equal(cs_graph_verify(l->graph, NULL), CUTSET_OK);
    return status;
}
#define TYPE(l, t) declare((l), (t), NULL, NULL, NULL, NULL)
#define SHAPE(l, s) declare((l), NULL, (s), NULL, NULL, NULL)
#define DIM(l, d) declare((l), NULL, NULL, NULL, (d), NULL)

static const cs_graph *inner(const loaded *l) { return l->graph->bodies.at[0].graph; }

static void test_dim(void **state)
{
    (void)state;
    loaded l = sample();
    assert_int_equal(declare(&l, NULL, NULL, NULL, "N=8", "odd name=0"), CUTSET_OK);
    assert_type(l.graph, "x", "f32[8,3,?]");
    assert_type(l.graph, "t", "i64[8,S]");
    assert_type(l.graph, "a", "f32[8,0]");
    assert_type(inner(&l), "x", "f32[8,3,?]");
    assert_type(inner(&l), "t1", "f32[8]");
    unload(&l);
}

static void test_shape(void **state)
{
    (void)state;
    loaded l = sample();
    assert_int_equal(SHAPE(&l, "x:2x3x224"), CUTSET_OK);
    assert_type(l.graph, "x", "f32[2,3,224]");
    assert_type(l.graph, "t", "i64[2,S]"); /* N is 2 everywhere */
    assert_type(inner(&l), "x", "f32[2,3,224]");
    assert_type(inner(&l), "t1", "f32[2]");
    unload(&l);
    l = sample();
    assert_int_equal(SHAPE(&l, "x:[?, 3, T]"), CUTSET_OK);
    assert_type(l.graph, "x", "f32[N,3,T]");
    unload(&l);
    l = sample();
    assert_int_equal(SHAPE(&l, "x:[B,3,2*B]"), CUTSET_OK); /* another name for N */
    assert_type(l.graph, "x", "f32[B,3,2*B]");
    assert_type(l.graph, "t", "i64[B,S]");
    unload(&l);
    l = sample();
    assert_int_equal(declare(&l, NULL, "x:[B,3,5]", NULL, "B=4", NULL), CUTSET_OK);
    assert_type(l.graph, "x", "f32[4,3,5]");
    assert_type(inner(&l), "t1", "f32[4]");
    unload(&l);
    l = sample();
    assert_int_equal(SHAPE(&l, "z:1x2"), CUTSET_OK); /* nothing was known of it */
    const cs_type_info *info =
        cs_type_get(l.graph->pool, l.graph->values.at[value(l.graph, "z")].type);
    assert_true(info->kind == CS_TENSOR && info->rank == 2);
    unload(&l);
    l = sample();
    assert_int_equal(SHAPE(&l, "in:0:[]"), CUTSET_OK);
    assert_type(l.graph, "in:0", "f32[]");
    unload(&l);
}

static void test_type(void **state)
{
    (void)state;
    loaded l = sample();
    assert_int_equal(TYPE(&l, "z=f16[?,N]"), CUTSET_OK);
    assert_type(l.graph, "z", "f16[?,N]");
    unload(&l);
    l = sample();
    assert_int_equal(declare(&l, "a=f32[?,7]", NULL, NULL, "N=3", NULL), CUTSET_OK);
    assert_type(l.graph, "a", "f32[3,7]");
    unload(&l);
    l = sample();
    assert_int_equal(TYPE(&l, "t2=f32[1]"), CUTSET_OK); /* in a body */
    assert_type(inner(&l), "t2", "f32[1]");
    unload(&l);
}

static void expect_usage(const char *types, const char *shapes, const char *shapes2,
                         const char *dims, const char *dims2, const char *words)
{
    loaded l = sample();
    const cutset_status status = declare(&l, types, shapes, shapes2, dims, dims2);
    if (status != CUTSET_USAGE || strstr(l.err.message, words) == NULL)
        print_error("expected '%s', got %d: %s\n", words, status, l.err.message);
    assert_int_equal(status, CUTSET_USAGE);
    assert_int_equal(l.err.status, CUTSET_USAGE);
    assert_non_null(strstr(l.err.message, words));
    unload(&l);
    l = sample(); /* the same without a place for the message */
    const cutset_open_opts none = {0};
    assert_int_equal(cs_declare(l.graph, &none, NULL), CUTSET_OK);
    unload(&l);
}

static void test_refused(void **state)
{
    (void)state;
    expect_usage("q=f32", NULL, NULL, NULL, NULL, "no value is called 'q'");
    expect_usage("in=f32", NULL, NULL, NULL, NULL, "did you mean 'in:0'?");
    expect_usage("x", NULL, NULL, NULL, NULL, "expected NAME=TYPE");
    expect_usage("x=f33[", NULL, NULL, NULL, NULL, "--type x=f33[: ");
    expect_usage("x=f16[?,3,?]", NULL, NULL, NULL, NULL, "the model says f32[N,3,?]");
    expect_usage("x=f32[1]", NULL, NULL, NULL, NULL, "the model says f32[N,3,?]");
    expect_usage(NULL, "q:1", NULL, NULL, NULL,
                 "no graph input is called 'q'; inputs are 'x', 't'");
    expect_usage(NULL, "a:1x2", NULL, NULL, NULL, "no graph input is called 'a'");
    expect_usage(NULL, "x", NULL, NULL, NULL, "expected NAME:1x3x224x224");
    expect_usage(NULL, "x:", NULL, NULL, NULL, "a dim is missing");
    expect_usage(NULL, "x:1x", NULL, NULL, NULL, "a dim is missing");
    expect_usage(NULL, "x:1x-3x4", NULL, NULL, NULL, "--shape x:1x-3x4: ");
    expect_usage(NULL, "x:1x3", NULL, NULL, NULL, "'x' has 3 dims, not 2");
    expect_usage(NULL, "x:1x4x5", NULL, NULL, NULL, "would be both 3 and 4");
    expect_usage(NULL, "x:1x3x5", "t:2x2", NULL, NULL, "N would be both 1 and 2");
    expect_usage(NULL, "x:1x3x5", NULL, "N=2", NULL, "--dim N=2: N would be both 1 and 2");
    expect_usage(NULL, NULL, NULL, "N=2", "N=3", "N would be both 2 and 3");
    expect_usage(NULL, NULL, NULL, "M=2", NULL, "the model has no dim M; its inputs have 'N', 'S'");
    expect_usage(NULL, NULL, NULL, "N=-1", NULL, "expected SYMBOL=SIZE");
    expect_usage(NULL, NULL, NULL, "N=x", NULL, "expected SYMBOL=SIZE");
    expect_usage(NULL, NULL, NULL, "=1", NULL, "expected SYMBOL=SIZE");
}

/* Symbols inside expressions, as the text form has them. */
static void test_expressions(void **state)
{
    (void)state;
    loaded l = sample();
    cs_type type;
    cs_pool *pool = l.graph->pool;
    assert_int_equal(
        cs_type_parse(pool, CS_SPAN("seq(f32[2*N+1,floor(\"odd name\"/2),N])"), &type, NULL), 0);
    l.graph->values.at[value(l.graph, "y")].type = type;
    assert_int_equal(declare(&l, NULL, NULL, NULL, "N=3", "odd name=5"), CUTSET_OK);
    assert_type(l.graph, "y", "seq(f32[7,2,3])");
    unload(&l);
    l = sample();
    pool = l.graph->pool;
    assert_int_equal(cs_type_parse(pool, CS_SPAN("f32[N-4]"), &type, NULL), 0);
    l.graph->values.at[value(l.graph, "y")].type = type;
    assert_int_equal(DIM(&l, "N=3"), CUTSET_USAGE);
    assert_non_null(strstr(l.err.message, "no size"));
    unload(&l);
}

/* Two names for one symbol, in both directions: no endless walk. */
static void test_renaming_twice(void **state)
{
    (void)state;
    loaded l = sample();
    assert_int_equal(declare(&l, NULL, "x:[S,3,1]", "t:[N,N]", NULL, NULL), CUTSET_OK);
    assert_type(l.graph, "t", "i64[S,S]");
    unload(&l);
    l = sample();
    assert_int_equal(declare(&l, NULL, "x:[S,3,1]", "t:[6,?]", "S=6", NULL), CUTSET_OK);
    assert_type(l.graph, "t", "i64[6,6]");
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dim),         cmocka_unit_test(test_shape),
        cmocka_unit_test(test_type),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_expressions), cmocka_unit_test(test_renaming_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
