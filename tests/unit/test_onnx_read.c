/* Reading ONNX models: values, nodes, types, versions, other formats, and every refusal that
 * concerns a graph. Attributes and Constants: test_onnx_attr.c. Tensors: test_onnx_data.c. Bodies
 * and functions: test_onnx_body.c. */
#include "onnx_bytes.h"

static pb relu_model(void)
{
    pb g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    return model(g);
}

/* ---- graphs ---- */

static void test_smallest(void **state)
{
    (void)state;
    loaded l = load(relu_model());
    const cs_graph *g = l.graph;
    assert_int_equal(g->nodes.len, 1);
    assert_true(cs_span_is(cs_name(g->pool, g->nodes.at[0].op), "Relu"));
    assert_true(cs_span_is(cs_name(g->pool, g->name), "g"));
    assert_int_equal(g->nodes.at[0].domain, 0);
    assert_int_equal(g->nodes.at[0].opset, 17);
    assert_true(g->inputs.len == 1 && g->outputs.len == 1);
    assert_type(g, "x", "f32[4]");
    assert_type(g, "y", "f32[4]");
    assert_int_equal(l.onnx->nodes.len, 1);
    assert_int_equal(l.onnx->positions.at[0], 0);
    assert_int_equal(l.onnx->value_infos.len, g->values.len);
    assert_true(l.onnx->initializer.len <= g->values.len);
    assert_int_equal(g->pool->notes.len, 0);
    unload(&l);
}

/* Strings, an empty optional input, and an output that is not computed. */
static void test_absent_names(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("LSTM", "x,,x", ",y,"));
    loaded l = load(model(g));
    const cs_node *n = &l.graph->nodes.at[0];
    assert_int_equal(n->n_arg, 3);
    assert_int_equal(cs_args(l.graph, n)[1], CS_NONE);
    assert_int_equal(n->n_out, 3);
    assert_int_equal(cs_outs(l.graph, n)[0], CS_NONE);
    assert_int_equal(cs_outs(l.graph, n)[1], value(l.graph, "y"));
    assert_int_equal(cs_outs(l.graph, n)[2], CS_NONE);
    unload(&l);
}

static void test_unsorted(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("Relu", "b", "y"));
    pb_msg(&g, 1, node("Abs", "a", "b"));
    pb_msg(&g, 1, node("Neg", "x", "a"));
    loaded l = load(model(g));
    assert_int_equal(l.graph->topo[0], 2);
    assert_int_equal(l.graph->topo[2], 0);
    unload(&l);
}

static void test_cycle(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("Add", "x,b", "y"));
    pb_msg(&g, 1, node("Neg", "y", "b"));
    loaded l = load_from(model(g), NULL, false);
    assert_int_equal(l.status, CUTSET_BAD);
    assert_non_null(strstr(l.err.message, "cycle"));
    unload(&l);
}

/* The fields of a message in the order in which nobody writes them. */
static void test_any_order(void **state)
{
    (void)state;
    pb g = {0}, n = {0}, m = {0}, o = {0};
    pb_msg(&g, 12, info("y", 1, "4"));
    pb_str(&n, 7, "ai.onnx");
    pb_str(&n, 4, "Sub");
    pb_msg(&n, 5, attr_int("axis", 1));
    pb_str(&n, 2, "y");
    pb_str(&n, 3, "sub");
    pb_str(&n, 1, "x");
    pb_str(&n, 1, "w");
    pb_msg(&g, 5, tensor("w", 1, "", "\0\0\x80\x3f", 4));
    pb_msg(&g, 11, info("x", 1, "4"));
    pb_msg(&g, 1, n);
    pb_msg(&m, 7, g);
    pb_int(&o, 2, 13);
    pb_str(&o, 1, "ai.onnx");
    pb_msg(&m, 8, o);
    pb_int(&m, 1, 9);
    pb_int(&m, 1, 7); /* a scalar twice: the last wins */
    loaded l = load(m);
    const cs_node *k = &l.graph->nodes.at[0];
    assert_int_equal(l.onnx->ir_version, 7);
    assert_int_equal(k->domain, 0);
    assert_int_equal(k->opset, 13);
    assert_int_equal(k->n_arg, 2);
    assert_int_equal(cs_node_int(l.graph, k, "axis", 0), 1);
    assert_true(cs_span_is(cs_name(l.graph->pool, k->name), "sub"));
    unload(&l);
}

static void test_outputs_passed_through(void **state)
{
    (void)state;
    pb g = {0};
    pb_msg(&g, 5, tensor("w", 1, "", "\0\0\0\0", 4));
    pb_msg(&g, 11, info("x", 1, "4"));
    pb_msg(&g, 12, info("x", 1, "4"));
    pb_msg(&g, 12, info("w", 1, ""));
    pb_msg(&g, 12, info("x", 1, "4"));
    loaded l = load(model(g));
    assert_int_equal(l.graph->nodes.len, 0);
    assert_int_equal(l.graph->outputs.len, 3);
    assert_int_equal(l.graph->outputs.at[0], l.graph->outputs.at[2]);
    assert_int_equal(l.graph->outputs.at[1], value(l.graph, "w"));
    unload(&l);
}

static void test_bad_graphs(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    pb_msg(&g, 1, node("Neg", "x", "y"));
    refuse(model(g), "value 'y' is made twice: by the Relu that makes 'y', and by the Neg "
                     "that makes 'y': give each value one origin");
    g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    pb_msg(&g, 5, tensor("y", 1, "", "\0\0\0\0", 4));
    refuse(model(g), "value 'y' is made twice: by an initializer or a Constant, and by the Relu");
    g = graph_xy();
    pb_msg(&g, 11, info("x", 1, "4"));
    refuse(model(g), "value 'x' is made twice: by a graph input, and by a graph input");
    g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "x"));
    refuse(model(g), "value 'x' is made twice: by a graph input, and by the Relu");
    g = graph_xy();
    pb_msg(&g, 1, node("Relu", "z", "y"));
    refuse(model(g), "the Relu that makes 'y' reads 'z', which nothing makes: add the producer or "
                     "fix the name (file cut off?)");
    g = graph_xy();
    pb n = node("Relu", "z", "y");
    pb_str(&n, 3, "act");
    pb_msg(&g, 1, n);
    refuse(model(g), "node 'act' (Relu) reads 'z'");
    refuse(model(graph_xy()),
           "output 'y' of the graph is made by nothing: add what makes it, or fix the name");
    g = graph_xy();
    n = (pb){0};
    pb_str(&n, 2, "y");
    pb_msg(&g, 1, n);
    refuse(model(g), "has no op_type: name its operator");
    g = graph_xy();
    pb_msg(&g, 11, info("", 1, "4"));
    refuse(model(g), "a graph input without a name: name it");
    g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    pb_msg(&g, 12, info("", 1, "4"));
    refuse(model(g), "a graph output without a name: name it");
    g = graph_xy();
    n = with_attr(node("Relu", "x", "y"), attr_int("a", 1));
    pb_msg(&g, 1, with_attr(n, attr_int("a", 1)));
    refuse(model(g), "the Relu that makes 'y' has two attributes 'a': remove one");
}

/* ---- types ---- */

static void test_types(void **state)
{
    (void)state;
    pb g = {0};
    pb_msg(&g, 11, info("a", 1, "N,3,?,-1,0"));
    pb_msg(&g, 11, info("b", 7, ""));
    pb_msg(&g, 11, info("c", 10, NULL));
    pb_msg(&g, 11, info("d", 0, NULL));
    pb seq = {0}, type = {0}, v = {0};
    pb_msg(&seq, 1, type_of(1, "my dim"));
    pb_msg(&type, 4, seq);
    pb_str(&v, 1, "e");
    pb_msg(&v, 2, type);
    pb_msg(&g, 11, v);
    pb map = {0};
    type = v = (pb){0};
    pb_int(&map, 1, 8);
    pb_msg(&map, 2, type_of(1, ""));
    pb_msg(&type, 5, map);
    pb_str(&v, 1, "f");
    pb_msg(&v, 2, type);
    pb_msg(&g, 11, v);
    pb opt = {0};
    type = v = (pb){0};
    pb_msg(&opt, 1, type_of(9, "2"));
    pb_msg(&type, 9, opt);
    pb_str(&v, 1, "h");
    pb_msg(&v, 2, type);
    pb_msg(&g, 11, v);
    loaded l = load(model(g));
    assert_type(l.graph, "a", "f32[N,3,?,?,0]");
    assert_type(l.graph, "b", "i64[]");
    assert_type(l.graph, "c", "f16");
    assert_type(l.graph, "d", "?");
    assert_type(l.graph, "e", "seq(f32[\"my dim\"])");
    assert_type(l.graph, "f", "map(str,f32[])");
    assert_type(l.graph, "h", "opt(bool[2])");
    unload(&l);
}

/* Repeated messages merge: dims add up, of a oneof the last kind wins. */
static void test_types_merge(void **state)
{
    (void)state;
    pb g = {0}, v = {0};
    pb_str(&v, 1, "a");
    pb_msg(&v, 2, type_of(1, "2"));
    pb_msg(&v, 2, type_of(6, "3"));
    pb_msg(&g, 11, v);
    v = (pb){0};
    pb seq = {0}, type = {0};
    pb_msg(&seq, 1, type_of(1, "2"));
    pb_msg(&type, 4, seq);
    pb_str(&v, 1, "b");
    pb_msg(&v, 2, type);
    pb_msg(&v, 2, type_of(1, "5"));
    pb_msg(&g, 11, v);
    loaded l = load(model(g));
    assert_type(l.graph, "a", "i32[2,3]");
    assert_type(l.graph, "b", "f32[5]");
    unload(&l);
}

static void test_value_info(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "a"));
    pb_msg(&g, 1, node("Relu", "a", "y"));
    pb_msg(&g, 13, info("a", 1, "3"));
    pb_msg(&g, 13, info("a", 1, "4"));
    pb_msg(&g, 13, info("nobody", 1, "4"));
    pb_msg(&g, 13, info("y", 1, "5"));
    loaded l = load(model(g));
    assert_type(l.graph, "a", "f32[4]");
    assert_type(l.graph, "y", "f32[4]");
    assert_true(has_note(l.graph, "value 'y'"));
    assert_true(l.onnx->value_infos.at[value(l.graph, "a")].len > 0);
    unload(&l);
}

static void test_bad_types(void **state)
{
    (void)state;
    pb g = {0}, shape = {0}, t = {0}, type = {0}, v = {0};
    for (int i = 0; i < 1025; i++)
        pb_str(&shape, 1, "");
    pb_msg(&t, 2, shape);
    pb_msg(&type, 1, t);
    pb_str(&v, 1, "x");
    pb_msg(&v, 2, type);
    pb_msg(&g, 11, v);
    refuse(model(g), "a shape of more than 1024 dims: give it fewer");
    g = (pb){0};
    pb_msg(&g, 11, info("x", 99, "2"));
    refuse(model(g), "element type 99, which is not known here: give one of ONNX");
    g = type = v = t = (pb){0};
    pb_int(&t, 2, 1); /* a number where a TensorShapeProto must be */
    pb_msg(&type, 1, t);
    pb_msg(&v, 2, type);
    pb_msg(&g, 11, v);
    refuse(model(g), "TypeProto.Tensor.shape: wire type 0 where 2 is expected");
    type = type_of(1, "2");
    for (int i = 0; i < 150; i++) {
        pb seq = {0}, outer = {0};
        pb_msg(&seq, 1, type);
        pb_msg(&outer, 4, seq);
        type = outer;
    }
    g = v = (pb){0};
    pb_str(&v, 1, "x");
    pb_msg(&v, 2, type);
    pb_msg(&g, 11, v);
    refuse(model(g), "more than 200 messages inside each other: nest less");
}

/* ---- versions and domains ---- */

static void test_versions(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    refuse(model_of(g, 15, 17), "IR version 15 is newer than this build knows (14)");
    g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    refuse(model_of(g, 14, 29), "opset 29 of ai.onnx is newer than this build knows (28)");
    refuse((pb){0}, "the file is empty: export or copy the model again");
    pb m = {0};
    pb_int(&m, 1, 8);
    refuse(m, "or only the head of one: give the whole file");
    m = (pb){0};
    pb_msg(&m, 7, graph_xy());
    refuse(m, "or a damaged one: export or copy it again");
    m = model(graph_xy());
    pb_int(&m, 1, 0);
    refuse(m, "or a damaged one: export or copy it again");
    m = model(graph_xy());
    pb_msg(&m, 7, graph_xy());
    refuse(m, "the model has two graphs: keep one");

    g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    loaded l = load(model_of(g, 14, 28));
    unload(&l);
    g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    l = load(model_of(g, 3, 0)); /* no opset_import */
    assert_int_equal(l.graph->nodes.at[0].opset, 1);
    assert_true(has_note(l.graph, "version 1 of ai.onnx is assumed"));
    unload(&l);
    m = (pb){0}; /* opset_import, but no ir_version */
    g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "y"));
    pb_msg(&m, 7, g);
    pb_msg(&m, 8, opset("", 7));
    l = load(m);
    assert_int_equal(l.onnx->ir_version, 3);
    assert_true(has_note(l.graph, "no ir_version"));
    unload(&l);
}

static void test_imports(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("Relu", "x", "a"));
    pb_msg(&g, 1, with_domain(node("Gelu", "a", "b"), "com.microsoft"));
    pb_msg(&g, 1, with_domain(node("Foo", "b", "y"), "unknown"));
    pb m = model_of(g, 8, 1);
    pb_msg(&m, 8, opset("ai.onnx", 21));
    pb_msg(&m, 8, opset("com.microsoft", 1));
    pb_msg(&m, 8, opset("", 11));
    loaded l = load(m);
    assert_int_equal(l.graph->nodes.at[0].opset, 21);
    assert_int_equal(l.graph->nodes.at[1].opset, 1);
    assert_int_equal(l.graph->nodes.at[2].opset, 0);
    assert_int_equal(l.graph->opsets.len, 2);
    assert_true(has_note(l.graph, "domain 'unknown'"));
    unload(&l);
}

static pb overridable(int64_t ir)
{
    pb g = graph_xy();
    pb_msg(&g, 1, node("Add", "x,w", "y"));
    pb_msg(&g, 11, info("w", 1, "N"));
    pb_msg(&g, 5, tensor("w", 1, "4", "0123456789abcdef", 16));
    return model_of(g, ir, 9);
}

static void test_initializer_that_is_an_input(void **state)
{
    (void)state;
    loaded l = load(overridable(4));
    assert_int_equal(l.graph->inputs.len, 2);
    assert_int_equal(l.graph->values.at[value(l.graph, "w")].origin, CS_ORIGIN_INPUT);
    assert_int_equal(storage(l.graph, "w")->bytes, 16);
    assert_false(cs_value_is_const(l.graph, value(l.graph, "w")));
    assert_type(l.graph, "w", "f32[N]");
    assert_int_equal(l.graph->pool->notes.len, 0);
    unload(&l);
    l = load(overridable(3));
    assert_int_equal(l.graph->inputs.len, 1);
    assert_true(cs_value_is_const(l.graph, value(l.graph, "w")));
    assert_type(l.graph, "w", "f32[4]");
    assert_int_equal(l.graph->pool->notes.len, 1);
    assert_true(has_note(l.graph, "IR version 3: 1 initializers"));
    unload(&l);
}

/* ---- what is kept ---- */

static void test_record(void **state)
{
    (void)state;
    pb g = graph_xy(), q = {0};
    pb_msg(&g, 1, node("Relu", "x", "y"));
    pb_str(&q, 1, "y");
    pb_msg(&g, 14, q);
    pb_str(&g, 10, "doc");
    pb_str(&g, 99, "unknown");
    pb m = model(g);
    pb_str(&m, 2, "producer");
    pb_int(&m, 98, 7);
    pb_msg(&m, 20, (pb){0});
    loaded l = load(m);
    assert_true(l.onnx->has_training && has_note(l.graph, "training_info"));
    assert_int_equal(l.onnx->model_fields.len, 2);
    assert_int_equal(l.onnx->graph_fields.len, 3); /* name, doc_string, 99 */
    assert_int_equal(l.onnx->graph_fields.at[2].len, 2 + 1 + 7);
    assert_int_equal(l.onnx->annotations.len, 1);
    assert_true(cs_span_is(cs_name(l.graph->pool, l.onnx->annotated.at[0]), "y"));
    unload(&l);
}

/* ---- random numbers ---- */

static bool draws(pb n, int64_t version, bool training)
{
    pb g = graph_xy();
    pb_msg(&g, 5, tensor("ratio", 1, "", "\0\0\0\x3f", 4));
    pb_msg(&g, 5, tensor("mode", 9, "", training ? "\1" : "\0", 1));
    pb_msg(&g, 1, n);
    loaded l = load(model_of(g, 8, version));
    const bool random = (l.graph->nodes.at[0].flags & CS_NODE_RANDOM) != 0;
    unload(&l);
    return random;
}

static void test_random(void **state)
{
    (void)state;
    assert_true(draws(node("RandomNormal", NULL, "y"), 17, false));
    assert_true(draws(node("Bernoulli", "x", "y"), 17, false));
    assert_false(draws(with_domain(node("Bernoulli", "x", "y"), "my"), 17, false));
    assert_false(draws(node("Relu", "x", "y"), 17, false));
    assert_false(draws(node("Dropout", "x", "y"), 17, false));
    assert_false(draws(node("Dropout", "x,ratio,mode", "y"), 17, false));
    assert_true(draws(node("Dropout", "x,ratio,mode", "y"), 17, true));
    assert_true(draws(node("Dropout", "x,ratio,x", "y"), 17, true));
    assert_false(draws(node("Dropout", "x", "y"), 9, false));
    assert_true(draws(node("Dropout", "x", "y"), 6, false));
    assert_false(draws(with_attr(node("Dropout", "x", "y"), attr_int("is_test", 1)), 6, false));
}

/* ---- other formats ---- */

static void refuse_bytes(const char *bytes, size_t len, const char *words)
{
    pb m = {0};
    pb_raw(&m, bytes, len);
    refuse(m, words);
}
#define REFUSE(bytes, words) refuse_bytes((bytes), sizeof(bytes) - 1, (words))

static void test_other_formats(void **state)
{
    (void)state;
    REFUSE("\x20\0\0\0ORTM....", "ONNX Runtime flatbuffer");
    REFUSE("\x1f\x8b\x08\0", "gzip");
    REFUSE("PK\x03\x04....", "zip archive");
    REFUSE("\x80\2\x8a\n", "pickle");
    REFUSE("\x02\0\0\0\0\0\0\0{}data", "safetensors");
    REFUSE("  {\"irVersion\": 8}", "JSON");
    REFUSE("<ir_version: 8>", "onnxtxt");
    REFUSE("# a comment\nir_version: 8\ngraph {\n", "protobuf text");
    REFUSE("graph {", "protobuf text");
    REFUSE("\x08\x08\x3a\x7f", "ModelProto.graph: length 127 runs past the end (file truncated?)");
    REFUSE("hello, world", "neither an ONNX model");
}

/* Every prefix of a model is refused or read, never more. */
static void test_truncated(void **state)
{
    (void)state;
    pb m = overridable(8);
    size_t ok = 0;
    for (size_t len = 0; len < m.len; len++) {
        pb part = {0};
        pb_raw(&part, m.at, len);
        loaded l = load_from(part, NULL, false);
        assert_true(l.status == CUTSET_BAD || l.status == CUTSET_OK);
        ok += l.status == CUTSET_OK;
        unload(&l);
    }
    assert_int_equal(ok, 0);
    free(m.at);
}

static int stop(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    (void)phase;
    assert_true(done <= total);
    return ++*(int *)payload == 2;
}

static void test_progress(void **state)
{
    (void)state;
    pb g = {0};
    for (int i = 0; i < 200000; i++)
        pb_raw(&g,
               "\x0a\x05\x22\x03"
               "Foo",
               7);
    pb m = model(g);
    int calls = 0;
    const cutset_progress progress = {stop, &calls};
    const cs_onnx_opts opts = {.progress = &progress};
    cs_file file;
    cs_onnx *onnx;
    cs_graph *graph;
    cutset_error err;
    cs_file_borrow(&file, m.at, m.len);
    assert_int_equal(cs_onnx_open(&onnx, &graph, &file, NULL, NULL, &opts, &err),
                     CUTSET_INTERRUPTED);
    assert_int_equal(calls, 2);
    free(m.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest),      cmocka_unit_test(test_absent_names),
        cmocka_unit_test(test_unsorted),      cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_any_order),     cmocka_unit_test(test_outputs_passed_through),
        cmocka_unit_test(test_bad_graphs),    cmocka_unit_test(test_types),
        cmocka_unit_test(test_types_merge),   cmocka_unit_test(test_value_info),
        cmocka_unit_test(test_bad_types),     cmocka_unit_test(test_versions),
        cmocka_unit_test(test_imports),       cmocka_unit_test(test_initializer_that_is_an_input),
        cmocka_unit_test(test_record),        cmocka_unit_test(test_random),
        cmocka_unit_test(test_other_formats), cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
