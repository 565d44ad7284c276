/* Bodies and model-local functions: captures at every depth, shadowing, instances, limits. */
#include "onnx_bytes.h"

#include <stdio.h>

/* A graph with nodes and no inputs, for branches; y is its output. */
static pb branch(pb n, const char *out)
{
    pb g = {0};
    pb_str(&g, 2, "b");
    pb_msg(&g, 1, n);
    pb_msg(&g, 12, info(out, 0, NULL));
    return g;
}

static pb if_node(const char *cond, pb then_branch, pb else_branch, const char *out)
{
    pb n = with_attr(node("If", cond, out), attr_graph("then_branch", then_branch));
    return with_attr(n, attr_graph("else_branch", else_branch));
}

static const cs_graph *body(const cs_graph *g, uint32_t n, uint32_t i)
{
    assert_true(i < g->nodes.at[n].n_body);
    return g->bodies.at[g->nodes.at[n].body + i].graph;
}

static uint32_t captured(const cs_graph *g, uint32_t n, uint32_t i)
{
    assert_true(i < g->nodes.at[n].n_capture);
    return cs_args(g, &g->nodes.at[n])[g->nodes.at[n].n_arg + i];
}

static void test_if(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 11, info("c", 9, ""));
    pb_msg(&g, 5, tensor("w", 1, "", "\0\0\x80\x3f", 4));
    pb_msg(&g, 1,
           if_node("c", branch(node("Add", "x,w", "t"), "t"),
                   branch(node("Mul", "w,late", "e"), "e"), "y"));
    pb_msg(&g, 1, node("Relu", "x", "late")); /* below the body that captures it */
    loaded l = load(model(g));
    const cs_graph *k = l.graph, *a = body(k, 0, 0), *b = body(k, 0, 1);
    assert_int_equal(k->nodes.at[0].n_arg, 1);
    assert_int_equal(k->nodes.at[0].n_capture, 3); /* each once, in the order of first use */
    assert_int_equal(captured(k, 0, 0), value(k, "x"));
    assert_int_equal(captured(k, 0, 1), value(k, "w"));
    assert_int_equal(captured(k, 0, 2), value(k, "late"));
    assert_int_equal(k->nodes.at[0].n_attr, 0);
    assert_true(cs_span_is(cs_name(k->pool, k->bodies.at[0].attr), "then_branch"));
    assert_int_equal(a->values.at[value(a, "x")].origin, CS_ORIGIN_CAPTURE);
    assert_int_equal(a->values.at[value(a, "x")].from, value(k, "x"));
    assert_type(a, "x", "f32[4]");
    assert_non_null(cs_value_const(b, value(b, "w")));
    assert_int_equal(k->topo[0], 1);
    assert_int_equal(a->nodes.at[0].opset, 17);
    unload(&l);
}

/* Three levels; the middle one only hands through. Both inner branches use one capture. */
static void test_deep(void **state)
{
    (void)state;
    pb inner =
        if_node("c", branch(node("Relu", "x", "t"), "t"), branch(node("Abs", "x", "t"), "t"), "m");
    pb g = graph_xy();
    pb_msg(&g, 11, info("c", 9, ""));
    pb_msg(&g, 1, if_node("c", branch(inner, "m"), branch(node("Neg", "x", "n"), "n"), "y"));
    loaded l = load(model(g));
    const cs_graph *k = l.graph, *middle = body(k, 0, 0), *deep = body(middle, 0, 0);
    assert_int_equal(k->nodes.at[0].n_capture, 2); /* c, x */
    assert_int_equal(middle->nodes.at[0].n_capture, 1);
    assert_int_equal(middle->values.at[value(middle, "x")].origin, CS_ORIGIN_CAPTURE);
    assert_int_equal(deep->values.at[value(deep, "x")].from, value(middle, "x"));
    unload(&l);
}

/* Inner names win over outer ones, also where the inner value stands below its use. */
static void test_shadowing(void **state)
{
    (void)state;
    pb b = {0};
    pb_msg(&b, 1, node("Relu", "x", "z"));
    pb_msg(&b, 1, node("Neg", "a", "x"));
    pb_msg(&b, 12, info("z", 0, NULL));
    pb g = graph_xy();
    pb_msg(&g, 11, info("c", 9, ""));
    pb_msg(&g, 11, info("a", 1, "4"));
    pb_msg(&g, 1, if_node("c", b, branch(node("Abs", "x", "z"), "z"), "y"));
    pb_msg(&g, 1, node("Relu", "x", "after")); /* x is the outer one again */
    loaded l = load(model(g));
    const cs_graph *k = l.graph, *t = body(k, 0, 0), *e = body(k, 0, 1);
    assert_int_equal(t->values.at[value(t, "x")].origin, CS_ORIGIN_NODE);
    assert_int_equal(t->values.at[value(t, "a")].origin, CS_ORIGIN_CAPTURE);
    assert_int_equal(e->values.at[value(e, "x")].origin, CS_ORIGIN_CAPTURE);
    assert_int_equal(cs_args(k, &k->nodes.at[1])[0], value(k, "x"));
    unload(&l);
}

/* Weights of bodies are storages of the outermost graph; names may repeat in siblings. */
static void test_weights_in_bodies(void **state)
{
    (void)state;
    pb a = branch(node("Add", "x,w", "t"), "t"), b = branch(node("Add", "x,w", "t"), "t");
    pb_msg(&a, 5, tensor("w", 1, "", "\0\0\0\0", 4));
    pb_msg(&b, 1, with_attr(node("Constant", NULL, "w"), attr_int("value_int", 3)));
    pb g = graph_xy();
    pb_msg(&g, 11, info("c", 9, ""));
    pb_msg(&g, 1, if_node("c", a, b, "y"));
    loaded l = load(model(g));
    assert_int_equal(l.graph->storages.len, 2);
    assert_int_equal(l.onnx->weights.len, 2);
    assert_int_equal(storage(body(l.graph, 0, 0), "w")->elem, CS_F32);
    assert_int_equal(storage(body(l.graph, 0, 1), "w")->elem, CS_I64);
    assert_true(l.onnx->weights.at[1].constant);
    assert_int_equal(l.onnx->weights.at[1].position, 1);
    assert_true(l.onnx->initializer.len <= l.graph->values.len);
    unload(&l);
}

static void test_outer_value_as_output(void **state)
{
    (void)state;
    pb a = {0};
    pb_msg(&a, 12, info("x", 0, NULL));
    pb g = graph_xy();
    pb_msg(&g, 11, info("c", 9, ""));
    pb_msg(&g, 1, if_node("c", a, branch(node("Abs", "x", "t"), "t"), "y"));
    loaded l = load(model(g));
    const cs_graph *t = body(l.graph, 0, 0);
    assert_int_equal(t->nodes.len, 0);
    assert_int_equal(t->values.at[t->outputs.at[0]].origin, CS_ORIGIN_CAPTURE);
    assert_int_equal(captured(l.graph, 0, 0), value(l.graph, "x"));
    unload(&l);
}

/* GRAPHS, and a graph on any operator. */
static void test_many_graphs(void **state)
{
    (void)state;
    pb a = attr_msg("bodies", 11, 10, branch(node("Abs", "x", "t"), "t"));
    pb_msg(&a, 11, branch(node("Neg", "x", "t"), "t"));
    pb g = graph_xy();
    pb_msg(&g, 1, with_attr(with_domain(node("Custom", "x", "y"), "my"), a));
    loaded l = load(model(g));
    assert_int_equal(l.graph->nodes.at[0].n_body, 2);
    assert_int_equal(l.graph->nodes.at[0].n_capture, 1);
    assert_int_equal(l.graph->bodies.at[0].attr, l.graph->bodies.at[1].attr);
    unload(&l);
}

static void test_bad_bodies(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 11, info("c", 9, ""));
    pb_msg(&g, 1,
           if_node("c", branch(node("Abs", "t2", "t"), "t"), branch(node("Neg", "x", "t2"), "t2"),
                   "y"));
    refuse(model(g), "reads 't2', which nothing makes"); /* of the sibling */
    g = graph_xy();
    pb_msg(&g, 1,
           with_attr(node("Foo", "x", "y"), attr_graph("b", branch(node("Abs", "y", "t"), "t"))));
    loaded l = load_from(model(g), NULL, false); /* a node that captures what it makes */
    assert_int_equal(l.status, CUTSET_BAD);
    assert_non_null(strstr(l.err.message, "cycle"));
    unload(&l);
    g = graph_xy();
    pb_msg(&g, 11, info("c", 9, ""));
    pb a = {0};
    pb_msg(&a, 12, info("nothing", 0, NULL));
    pb_msg(&g, 1, if_node("c", a, branch(node("Neg", "x", "t2"), "t2"), "y"));
    refuse(model(g), "output 'nothing' of a body is made by nothing");
    pb n = node("Abs", "x", "t");
    for (int i = 0; i < 70; i++)
        n = with_attr(node("Foo", "x", "t"), attr_graph("b", branch(n, "t")));
    g = graph_xy();
    pb_msg(&g, 1, n);
    refuse(model(g), "more than 200 messages inside each other");
}

static void test_random_in_body(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 11, info("c", 9, ""));
    pb inner = with_attr(node("Foo", "x", "m"),
                         attr_graph("b", branch(node("RandomNormalLike", "x", "t"), "t")));
    pb_msg(&g, 1, if_node("c", branch(inner, "m"), branch(node("Neg", "x", "t"), "t"), "y"));
    pb_msg(&g, 1, node("Relu", "x", "z"));
    loaded l = load(model(g));
    assert_true(l.graph->nodes.at[0].flags & CS_NODE_RANDOM);
    assert_false(l.graph->nodes.at[1].flags & CS_NODE_RANDOM);
    unload(&l);
}

/* ---- functions ---- */

static pb function(const char *name, const char *ins, const char *outs, pb first)
{
    pb f = {0};
    pb_str(&f, 1, name);
    pb_list(&f, 4, ins);
    pb_list(&f, 5, outs);
    pb_msg(&f, 7, first);
    pb_msg(&f, 9, opset("", 18));
    pb_msg(&f, 9, opset("my", 1));
    pb_str(&f, 10, "my");
    return f;
}

static pb call(const char *op, const char *ins, const char *outs)
{
    return with_domain(node(op, ins, outs), "my");
}

/* One call of a function that reads x and makes y. */
static pb calling(pb n, pb f, int64_t ir)
{
    pb g = graph_xy();
    pb_msg(&g, 1, n);
    pb m = model_of(g, ir, 17);
    pb_msg(&m, 25, f);
    return m;
}

static void test_call(void **state)
{
    (void)state;
    pb f = function("f", "a,b", "r", node("Add", "a,b", "s"));
    pb_msg(&f, 7, with_attr(node("LeakyRelu", "s", "r"), attr_ref("alpha", "slope", 1)));
    pb a = {0};
    pb_str(&a, 1, "slope");
    pb_f32(&a, 2, 0.25f);
    pb_int(&a, 20, 1);
    loaded l = load(calling(with_attr(call("f", "x,x", "y"), a), f, 8));
    const cs_graph *k = l.graph;
    assert_int_equal(k->nodes.at[0].flags, CS_NODE_FUNCTION);
    assert_int_equal(k->nodes.at[0].n_capture, 0);
    assert_int_equal(k->nodes.at[0].n_attr, 1);
    const cs_graph *b = body(k, 0, 0);
    assert_int_equal(k->bodies.at[0].attr, 0);
    assert_int_equal(b->inputs.len, 2);
    assert_int_equal(b->inputs.at[0], value(b, "a"));
    assert_int_equal(b->outputs.at[0], value(b, "r"));
    assert_int_equal(b->nodes.at[0].opset, 18);
    assert_type(b, "a", "f32[4]");
    const cs_attr *alpha = cs_node_attr(b, &b->nodes.at[1], "alpha");
    assert_true(alpha->kind == CS_ATTR_FLOAT && alpha->f == 0.25f);
    assert_int_equal(l.onnx->functions.len, 1);
    assert_int_equal(k->pool->notes.len, 0);
    unload(&l);
}

/* An absent argument is nothing in the body; a default stands in for an absent attribute. */
static void test_absent_arguments(void **state)
{
    (void)state;
    pb f = function("f", "a,b,c", "r", node("Clip", "a,b,c", "s"));
    pb n = with_attr(node("Foo", "s", "r"), attr_ref("with", "with_default", 2));
    pb_msg(&f, 7, with_attr(n, attr_ref("without", "without_default", 2)));
    pb_msg(&f, 11, attr_int("with_default", 5));
    loaded l = load(calling(call("f", "x,,x", "y"), f, 9));
    const cs_graph *b = body(l.graph, 0, 0);
    assert_int_equal(b->inputs.len, 3);
    const uint32_t *args = cs_args(b, &b->nodes.at[0]);
    assert_int_equal(args[0], value(b, "a"));
    assert_int_equal(args[1], CS_NONE);
    assert_int_equal(args[2], value(b, "c"));
    assert_int_equal(cs_node_int(b, &b->nodes.at[1], "with", 0), 5);
    assert_null(cs_node_attr(b, &b->nodes.at[1], "without"));
    unload(&l);
}

/* Constants of a function have one storage, however many calls; what a call gives has its own. */
static void test_constants_in_functions(void **state)
{
    (void)state;
    pb f =
        function("f", "a", "r", with_attr(node("Constant", NULL, "k"), attr_int("value_int", 7)));
    pb_msg(&f, 7, with_attr(node("Constant", NULL, "given"), attr_ref("value_int", "n", 2)));
    pb_msg(&f, 7, node("Foo", "a,k,given", "r"));
    pb g = graph_xy();
    pb_msg(&g, 1, with_attr(call("f", "x", "m"), attr_int("n", 1)));
    pb_msg(&g, 1, with_attr(call("f", "m", "n"), attr_int("n", 2)));
    pb_msg(&g, 1, call("f", "n", "y"));
    pb m = model(g);
    pb_msg(&m, 25, f);
    loaded l = load(m);
    const cs_graph *one = body(l.graph, 0, 0), *two = body(l.graph, 1, 0),
                   *three = body(l.graph, 2, 0);
    int64_t n;
    assert_ptr_equal(storage(one, "k"), storage(two, "k"));
    assert_int_equal(cs_value_ints(one, value(one, "given"), &n, 1), 1);
    assert_int_equal(n, 1);
    assert_int_equal(cs_value_ints(two, value(two, "given"), &n, 1), 1);
    assert_int_equal(n, 2);
    assert_int_equal(storage(three, "given")->bytes, 0);
    assert_int_equal(one->nodes.len, 1);
    unload(&l);
}

/* A function sees nothing of its caller, but its own bodies see it. */
static void test_function_scope(void **state)
{
    (void)state;
    refuse(calling(call("f", "x", "y"), function("f", "a", "r", node("Add", "a,x", "r")), 8),
           "reads 'x', which nothing makes");
    pb n = with_attr(node("Foo", "a", "r"), attr_graph("b", branch(node("Neg", "a", "t"), "t")));
    loaded l = load(calling(call("f", "x", "y"), function("f", "a", "r", n), 8));
    const cs_graph *f = body(l.graph, 0, 0);
    assert_int_equal(f->nodes.at[0].n_capture, 1);
    assert_int_equal(body(f, 0, 0)->nodes.at[0].opset, 18);
    unload(&l);
}

static void test_nested_calls(void **state)
{
    (void)state;
    pb m = calling(call("f", "x", "y"), function("f", "a", "r", call("g", "a", "r")), 8);
    pb_msg(&m, 25, function("g", "a", "r", node("RandomUniformLike", "a", "r")));
    loaded l = load(m);
    assert_true(l.graph->nodes.at[0].flags & CS_NODE_RANDOM);
    assert_int_equal(body(body(l.graph, 0, 0), 0, 0)->nodes.len, 1);
    unload(&l);
}

static void test_bad_functions(void **state)
{
    (void)state;
    refuse(calling(call("f", "x", "y"), function("f", "a", "r", call("f", "a", "r")), 8),
           "function 'my:f' calls itself: remove that call");
    pb m = calling(call("f", "x", "y"), function("f", "a", "r", call("g", "a", "r")), 8);
    pb_msg(&m, 25, function("g", "a", "r", call("f", "a", "r")));
    refuse(m, "function 'my:f' calls itself: remove that call");
    m = calling(call("f", "x", "y"), function("f", "a", "r", node("Abs", "a", "r")), 8);
    pb_msg(&m, 25, function("f", "a", "r", node("Abs", "a", "r")));
    refuse(m, "function 'my:f' is there twice: remove one");
    refuse(calling(call("f", "x,x", "y"), function("f", "a", "r", node("Abs", "a", "r")), 8),
           "than the function that it calls: remove those, or add them to the function");
    refuse(calling(call("f", "x", "y"), function("f", "a", "r", node("Abs", "a", "q")), 8),
           "output 'r' of a function is made by nothing");
    refuse(calling(call("f", "x", "y"), function("f", "a,a", "r", node("Abs", "a", "r")), 8),
           "a function with two inputs 'a': rename one");
    refuse(calling(call("f", "x", "y"), function("", "a", "r", node("Abs", "a", "r")), 8),
           "a function without a name: name it");
    /* also where the call leaves the input out, and it has no value */
    refuse(calling(call("f", "x", "y"), function("f", "a,b", "r", node("Abs", "a", "b")), 8),
           "value 'b' is made twice: by a graph input, and by the Abs that makes 'b'");
}

static void test_overloads(void **state)
{
    (void)state;
    for (int64_t ir = 9; ir <= 10; ir++) {
        pb f = function("f", "a", "r", node("Abs", "a", "r"));
        pb_str(&f, 13, "two");
        pb n = call("f", "x", "y");
        pb_str(&n, 8, "two");
        loaded l = load(calling(n, f, ir));
        assert_int_equal(l.graph->nodes.at[0].flags, CS_NODE_FUNCTION);
        unload(&l);
        f = function("f", "a", "r", node("Abs", "a", "r"));
        n = call("f", "x", "y");
        pb_str(&n, 8, "two"); /* below IR 10 there are no overloads */
        l = load(calling(n, f, ir));
        assert_int_equal(l.graph->nodes.at[0].flags, ir < 10 ? CS_NODE_FUNCTION : 0);
        unload(&l);
    }
}

/* A function of the standard's domain does not take the standard's place. */
static void test_function_in_the_standard(void **state)
{
    (void)state;
    pb f = {0};
    pb_str(&f, 1, "Relu");
    pb_str(&f, 4, "a");
    pb_str(&f, 5, "r");
    pb_msg(&f, 7, node("Abs", "a", "r"));
    loaded l = load(calling(node("Relu", "x", "y"), f, 8));
    assert_int_equal(l.graph->nodes.at[0].flags, 0);
    assert_true(has_note(l.graph, "function 'Relu'"));
    unload(&l);
}

/* Each function calls the next twice: 2^40 nodes are not written out. */
static void test_explosion(void **state)
{
    (void)state;
    pb m = calling(call("f0", "x", "y"), function("f40", "a", "r", node("Abs", "a", "r")), 8);
    for (int i = 0; i < 40; i++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        pb f = function(name, "a", "r", call(next, "a", "s"));
        pb_msg(&f, 7, call(next, "s", "r"));
        pb_msg(&m, 25, f);
    }
    loaded l = load(m);
    assert_true(has_note(l.graph, "too large to look into all of them"));
    unload(&l);
}

/* A chain of calls deeper than the reader looks. */
static void test_long_chain(void **state)
{
    (void)state;
    pb m = calling(call("f0", "x", "y"), function("f500", "a", "r", node("Abs", "a", "r")), 8);
    for (int i = 0; i < 500; i++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        pb_msg(&m, 25, function(name, "a", "r", call(next, "a", "r")));
    }
    loaded l = load(m);
    assert_true(has_note(l.graph, "nested too deep"));
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_shadowing),
        cmocka_unit_test(test_weights_in_bodies),
        cmocka_unit_test(test_outer_value_as_output),
        cmocka_unit_test(test_many_graphs),
        cmocka_unit_test(test_bad_bodies),
        cmocka_unit_test(test_random_in_body),
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_absent_arguments),
        cmocka_unit_test(test_constants_in_functions),
        cmocka_unit_test(test_function_scope),
        cmocka_unit_test(test_nested_calls),
        cmocka_unit_test(test_bad_functions),
        cmocka_unit_test(test_overloads),
        cmocka_unit_test(test_function_in_the_standard),
        cmocka_unit_test(test_explosion),
        cmocka_unit_test(test_long_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
