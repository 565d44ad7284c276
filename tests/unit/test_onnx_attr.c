/* Reading ONNX models: attributes of every kind, and Constant nodes of every form. */
#include "onnx_bytes.h"

/* ---- attributes ---- */

static const cs_attr *attr(const loaded *l, const char *name)
{
    return cs_node_attr(l->graph, &l->graph->nodes.at[0], name);
}

static pb one_node(pb n)
{
    pb g = graph_xy();
    pb_msg(&g, 1, n);
    return model(g);
}

static void test_attrs(void **state)
{
    (void)state;
    pb n = with_attr(node("Foo", "x", "y"), attr_int("i", -5)), a = {0};
    pb_str(&a, 1, "f");
    pb_f32(&a, 2, 0.5f);
    pb_int(&a, 20, 1);
    n = with_attr(n, a), a = (pb){0};
    pb_str(&a, 1, "s");
    pb_str(&a, 4, "text");
    pb_int(&a, 20, 3);
    n = with_attr(n, a), a = (pb){0};
    pb_str(&a, 1, "ints"); /* unpacked, packed and unpacked in one field */
    pb_int(&a, 8, 1);
    pb_bytes(&a, 8, "\2\x80\1", 3);
    pb_int(&a, 8, -1);
    pb_int(&a, 20, 7);
    n = with_attr(n, a), a = (pb){0};
    const float three[] = {1, 2, 3};
    pb_str(&a, 1, "floats");
    pb_bytes(&a, 7, three, 8);
    pb_f32(&a, 7, 3);
    pb_int(&a, 20, 6);
    n = with_attr(n, a), a = (pb){0};
    pb_str(&a, 1, "strings");
    pb_str(&a, 9, "p");
    pb_str(&a, 9, "");
    pb_int(&a, 20, 8);
    n = with_attr(n, a), a = (pb){0};
    n = with_attr(n, attr_tensor("t", tensor("", 6, "2", "\1\0\0\0\2\0\0\0", 8)));
    n = with_attr(n, attr_msg("tp", 14, 13, type_of(1, "N")));
    pb_str(&a, 1, "zero"); /* proto3 leaves out i = 0 */
    pb_int(&a, 20, 2);
    n = with_attr(n, a), a = (pb){0};
    pb_str(&a, 1, "none"); /* an empty list */
    pb_int(&a, 20, 7);
    n = with_attr(n, a), a = (pb){0};
    pb_str(&a, 1, "untyped");
    pb_int(&a, 3, 9);
    n = with_attr(n, a);
    a = (pb){0};
    pb_str(&a, 1, "tensors");
    pb_msg(&a, 10, tensor("", 1, "0", NULL, 0));
    pb_msg(&a, 10, tensor("", 6, "1,1", "1234", 4));
    pb_int(&a, 20, 9);
    n = with_attr(n, a), a = (pb){0};
    pb_str(&a, 1, "types"); /* without its type: it follows */
    pb_msg(&a, 15, type_of(1, "N"));
    n = with_attr(n, a), a = (pb){0};
    pb_str(&a, 1, "no tensors");
    pb_int(&a, 20, 9);
    n = with_attr(n, a);
    n = with_attr(n, attr_msg("sparse", 22, 11, (pb){0}));
    loaded l = load(one_node(n));
    assert_int_equal(l.graph->nodes.at[0].n_attr, 15);
    assert_int_equal(attr(&l, "i")->i, -5);
    assert_true(attr(&l, "f")->kind == CS_ATTR_FLOAT && attr(&l, "f")->f == 0.5f);
    assert_true(attr(&l, "s")->len == 4 && memcmp(attr(&l, "s")->s, "text", 4) == 0);
    const cs_attr *p = attr(&l, "ints");
    assert_true(p->kind == CS_ATTR_INTS && p->len == 4);
    assert_true(p->ints[0] == 1 && p->ints[1] == 2 && p->ints[2] == 128 && p->ints[3] == -1);
    p = attr(&l, "floats");
    assert_true(p->len == 3 && p->floats[0] == 1 && p->floats[1] == 2 && p->floats[2] == 3);
    p = attr(&l, "strings");
    assert_true(p->len == 2 && cs_span_is(p->strings[0], "p") && p->strings[1].len == 0);
    p = attr(&l, "t");
    assert_true(p->kind == CS_ATTR_TENSOR && p->len == 8 && ((const char *)p->data)[4] == 2);
    assert_int_equal(attr(&l, "tp")->kind, CS_ATTR_TYPE);
    assert_true(attr(&l, "zero")->kind == CS_ATTR_INT && attr(&l, "zero")->i == 0);
    assert_true(attr(&l, "none")->kind == CS_ATTR_INTS && attr(&l, "none")->len == 0);
    assert_int_equal(attr(&l, "untyped")->i, 9);
    p = attr(&l, "tensors");
    assert_true(p->kind == CS_ATTR_TENSORS && p->len == 2 && p->types[0] != p->types[1]);
    assert_int_equal(cs_type_get(l.graph->pool, p->types[1])->rank, 2);
    p = attr(&l, "types");
    assert_true(p->kind == CS_ATTR_TYPES && p->len == 1 && p->types[0] == attr(&l, "tp")->type);
    assert_int_equal(attr(&l, "no tensors")->kind, CS_ATTR_OTHER);
    assert_int_equal(attr(&l, "sparse")->kind, CS_ATTR_OTHER);
    unload(&l);
}

static void test_bad_attrs(void **state)
{
    (void)state;
    pb a = {0};
    pb_str(&a, 1, "t");
    pb_int(&a, 20, 4);
    refuse(one_node(with_attr(node("Foo", "x", "y"), a)),
           "'t' lacks the value that its type names: give it one");
    a = (pb){0};
    pb_int(&a, 3, 4);
    refuse(one_node(with_attr(node("Foo", "x", "y"), a)), "an attribute without a name: name it");
    a = attr_ref("alpha", "beta", 1);
    refuse(one_node(with_attr(node("Foo", "x", "y"), a)),
           "'alpha' refers to 'beta' of a function, but stands in none: give it a value");
    a = attr_graph("g", (pb){0});
    pb_msg(&a, 6, (pb){0});
    refuse(one_node(with_attr(node("Foo", "x", "y"), a)), "attribute 'g' has two values: keep one");
    a = (pb){0};
    pb_str(&a, 1, "v");
    pb_str(&a, 3, "text");
    refuse(one_node(with_attr(node("Foo", "x", "y"), a)), "AttributeProto.i: wire type 2 where 0");
    a = attr_msg("ts", 10, 9, tensor("", 1, "2", "1234", 4));
    refuse(one_node(with_attr(node("Foo", "x", "y"), a)),
           "tensor 'ts': raw_data holds 4 bytes, its dims and type need 8: correct the dims, or "
           "save its data again");
}

/* ---- Constants ---- */

static void add_constant(pb *g, const char *name, pb attribute)
{
    pb_msg(g, 1, with_attr(node("Constant", NULL, name), attribute));
}

static void test_constants(void **state)
{
    (void)state;
    pb g = graph_xy(), a = {0}, s = {0};
    add_constant(&g, "t", attr_tensor("value", tensor("ignored", 6, "1", "\7\0\0\0", 4)));
    pb_msg(&g, 1, node("Relu", "x", "r"));
    add_constant(&g, "i", attr_int("value_int", -2));
    pb_str(&a, 1, "value_ints");
    pb_int(&a, 8, 3);
    pb_int(&a, 8, 4);
    pb_int(&a, 20, 7);
    add_constant(&g, "is", a), a = (pb){0};
    pb_str(&a, 1, "value_float");
    pb_f32(&a, 2, 1.0f);
    pb_int(&a, 20, 1);
    add_constant(&g, "f", a), a = (pb){0};
    pb_str(&a, 1, "value_floats");
    pb_f32(&a, 7, 1.0f);
    pb_int(&a, 20, 6);
    add_constant(&g, "fs", a), a = (pb){0};
    pb_str(&a, 1, "value_string");
    pb_str(&a, 4, "abc");
    pb_int(&a, 20, 3);
    add_constant(&g, "s", a), a = (pb){0};
    pb_str(&a, 1, "value_strings");
    pb_str(&a, 9, "ab");
    pb_str(&a, 9, "c");
    pb_int(&a, 20, 8);
    add_constant(&g, "ss", a);
    pb_msg(&s, 1, tensor("", 1, "1", "\0\0\0\0", 4));
    pb_msg(&s, 2, tensor("", 7, "1", "\0\0\0\0\0\0\0\0", 8));
    pb_int(&s, 3, 10);
    pb_int(&s, 3, 5);
    add_constant(&g, "sparse", attr_msg("sparse_value", 22, 11, s));
    pb_msg(&g, 1, node("Foo", "r,t,i,is,f,fs,s,ss,sparse", "y"));
    loaded l = load(model(g));
    const cs_graph *k = l.graph;
    assert_int_equal(k->nodes.len, 2);
    assert_int_equal(l.onnx->nodes.len, 2);
    assert_int_equal(l.onnx->positions.at[0], 1);
    assert_int_equal(l.onnx->positions.at[1], 9);
    assert_type(k, "t", "i32[1]");
    assert_type(k, "i", "i64[]");
    assert_type(k, "is", "i64[2]");
    assert_type(k, "f", "f32[]");
    assert_type(k, "fs", "f32[1]");
    assert_type(k, "s", "str[]");
    assert_type(k, "ss", "str[2]");
    assert_type(k, "sparse", "f32[10,5]");
    int64_t ints[2];
    assert_int_equal(cs_value_ints(k, value(k, "t"), ints, 2), 1);
    assert_int_equal(ints[0], 7);
    assert_int_equal(cs_value_ints(k, value(k, "i"), ints, 2), 1);
    assert_int_equal(ints[0], -2);
    assert_int_equal(cs_value_ints(k, value(k, "is"), ints, 2), 2);
    assert_int_equal(ints[1], 4);
    assert_memory_equal(storage(k, "f")->data, "\0\0\x80\x3f", 4);
    assert_int_equal(storage(k, "s")->bytes, 3);
    assert_int_equal(storage(k, "ss")->bytes, 3);
    assert_int_equal(storage(k, "sparse")->bytes, 200);
    const uint32_t t = k->values.at[value(k, "t")].storage;
    const cs_weight *w = &l.onnx->weights.at[t];
    assert_true(w->constant && w->raw && w->length == 4 && w->file == CS_ONNX_INLINE);
    assert_memory_equal(l.bytes.at + w->offset, "\7\0\0\0", 4);
    assert_int_equal(w->position, 0);
    assert_true(l.onnx->weights.at[k->values.at[value(k, "sparse")].storage].sparse);
    assert_int_equal(k->values.at[value(k, "t")].origin, CS_ORIGIN_WEIGHT);
    assert_ptr_equal(l.onnx->initializer.at[value(k, "t")].at, w->proto.at);
    unload(&l);
}

static void test_bad_constants(void **state)
{
    (void)state;
    pb g = graph_xy();
    pb_msg(&g, 1, node("Constant", NULL, "y"));
    refuse(model(g), "Constant 'y' has no value: give it one");
    g = graph_xy();
    pb n = with_attr(node("Constant", NULL, "y"), attr_int("value_int", 1));
    pb_msg(&g, 1, with_attr(n, attr_int("value_int", 1)));
    refuse(model(g), "Constant 'y' has two values: keep one");
    g = graph_xy();
    pb_msg(&g, 1, with_attr(node("Constant", NULL, "y,z"), attr_int("value_int", 1)));
    refuse(model(g), "a Constant node without its one output: name it");
    g = graph_xy();
    add_constant(&g, "y", attr_msg("value", 14, 13, type_of(1, "2")));
    refuse(model(g), "Constant 'y': its value is of a type that no value has: give it a tensor");
    /* In another domain it is an operator like any other. */
    g = graph_xy();
    pb_msg(&g, 1, with_domain(node("Constant", NULL, "y"), "my"));
    loaded l = load(model(g));
    assert_int_equal(l.graph->nodes.len, 1);
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attrs),
        cmocka_unit_test(test_bad_attrs),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_bad_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
