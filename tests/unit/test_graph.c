/* Graphs built by hand: questions, allocation failures, and that the verifier sees damage. */
#include "failing_alloc.h"

#include "graph_build.h"

/* ---- questions ---- */

static void questions(void **state)
{
    (void)state;
    cs_graph *g = new_graph();
    int64_t dims64[2] = {3, -1};
    int32_t dims32[3] = {1, -2, INT32_MAX};
    uint32_t s64 = cs_graph_add_storage(g, 16, CS_I64, cs_arena_dup(&g->pool->arena, dims64, 16));
    uint32_t s32 = cs_graph_add_storage(g, 12, CS_I32, cs_arena_dup(&g->pool->arena, dims32, 12));
    uint32_t big = cs_graph_add_storage(g, 4096, CS_F32, NULL);
    uint32_t w64 = cs_graph_add_value(g, str(g, "w64"), 0, CS_ORIGIN_WEIGHT);
    uint32_t w32 = cs_graph_add_value(g, str(g, "w32"), 0, CS_ORIGIN_WEIGHT);
    uint32_t wf = cs_graph_add_value(g, str(g, "wf"), 0, CS_ORIGIN_WEIGHT);
    g->values.at[w64].storage = s64;
    g->values.at[w32].storage = s32;
    g->values.at[wf].storage = big;
    uint32_t x = add_input(g, "x");
    g->values.at[x].storage = s64; /* a default, which a caller may override */
    cs_vec_push(&g->opsets, ((cs_opset){0, 17}));
    cs_vec_push(&g->opsets, ((cs_opset){str(g, "com.microsoft"), 1}));

    cs_graph_add_node(g, str(g, "Op"), 0, 0);
    cs_graph_add_arg(g, x);
    cs_graph_add_arg(g, CS_NONE);
    cs_graph_add_attr(g, (cs_attr){.name = str(g, "axis"), .kind = CS_ATTR_INT, .i = -1});
    cs_graph_add_attr(g, (cs_attr){.name = str(g, "alpha"), .kind = CS_ATTR_FLOAT, .f = 2});
    cs_graph_add_out(g, CS_NONE);
    cs_graph_add_out(g, add_made(g, "y"));
    cs_graph_add_out(g, add_made(g, "z"));
    cs_graph_add_node(g, str(g, "Sink"), 0, 0);
    cs_graph *body = cs_graph_new(g->pool, g);
    cs_graph_add_body(g, str(g, "body"), body);
    uint32_t c = cs_graph_add_value(body, str(g, "w64"), 0, CS_ORIGIN_CAPTURE);
    body->values.at[c].from = w64;
    uint32_t d = cs_graph_add_value(body, str(g, "x"), 0, CS_ORIGIN_CAPTURE);
    body->values.at[d].from = x;
    cs_graph_add_capture(g, w64);
    cs_graph_add_capture(g, x);
    seal(g);

    const cs_node *n = &g->nodes.at[0];
    assert_int_equal(cs_node_int(g, n, "axis", 7), -1);
    assert_int_equal(cs_node_int(g, n, "alpha", 7), 7);
    assert_int_equal(cs_node_int(g, n, "none", 7), 7);
    assert_null(cs_node_attr(g, n, "axi"));
    assert_true(cs_node_attr(g, n, "alpha")->f == 2);
    assert_int_equal(cs_node_arg(g, n, 0), x);
    assert_int_equal(cs_node_arg(g, n, 1), CS_NONE);
    assert_int_equal(cs_node_arg(g, n, 2), CS_NONE);
    assert_int_equal(cs_graph_opset(g, 0), 17);
    assert_int_equal(cs_graph_opset(body, str(g, "com.microsoft")), 1);
    assert_int_equal(cs_graph_opset(g, str(g, "other")), 0);

    assert_ptr_equal(cs_value_const(g, w64), &g->storages.at[s64]);
    assert_ptr_equal(cs_value_const(body, c), &g->storages.at[s64]);
    assert_null(cs_value_const(g, wf));
    assert_true(cs_value_is_const(g, wf));
    assert_true(cs_value_is_const(body, c));
    assert_false(cs_value_is_const(g, x));
    assert_false(cs_value_is_const(body, d));
    assert_false(cs_value_is_const(g, CS_NONE));
    assert_null(cs_value_const(g, CS_NONE));
    int64_t ints[4] = {0};
    assert_int_equal(cs_value_ints(body, c, ints, 4), 2);
    assert_true(ints[0] == 3 && ints[1] == -1);
    assert_int_equal(cs_value_ints(g, w32, ints, 4), 3);
    assert_true(ints[0] == 1 && ints[1] == -2 && ints[2] == INT32_MAX);
    assert_int_equal(cs_value_ints(g, w32, ints, 2), -1);
    assert_int_equal(cs_value_ints(g, wf, ints, 4), -1);
    assert_int_equal(cs_value_ints(g, x, ints, 4), -1);

    char buffer[16];
    assert_true(cs_span_is(cs_node_label(g, 0, buffer), "y"));
    assert_true(cs_span_is(cs_node_label(g, 1, buffer), "$1"));
    assert_int_equal(cs_graph_find_node(g, CS_SPAN("z")), 0);
    assert_int_equal(cs_graph_find_node(g, CS_SPAN("$1")), 1);
    assert_int_equal(cs_graph_find_node(g, CS_SPAN("$2")), CS_NONE);
    assert_int_equal(cs_graph_find_node(g, CS_SPAN("$-1")), CS_NONE);
    assert_int_equal(cs_graph_find_node(g, CS_SPAN("$")), CS_NONE);
    assert_int_equal(cs_graph_find_node(g, CS_SPAN("")), CS_NONE);
    assert_int_equal(cs_graph_find_node(g, CS_SPAN("x")), CS_NONE);
    assert_int_equal(cs_graph_find_node(g, CS_SPAN("nothing")), CS_NONE);
    assert_ptr_equal(cs_graph_top(body), g);
    assert_true(cs_op_is_random(g->pool, 0, str(g, "RandomNormal")));
    assert_false(cs_op_is_random(g->pool, 0, str(g, "Relu")));
    assert_false(cs_op_is_random(g->pool, str(g, "mine"), str(g, "RandomNormal")));
    cs_graph_free(g);
    cs_graph_free(NULL);
}

/* ---- the verifier ---- */

static cs_graph *sample(cs_graph **body)
{
    cs_graph *g = new_graph();
    add_input(g, "x"); /* 0 */
    cs_graph_add_storage(g, 4, CS_F32, NULL);
    uint32_t w = cs_graph_add_value(g, str(g, "w"), 0, CS_ORIGIN_WEIGHT); /* 1 */
    g->values.at[w].storage = 0;
    add_node(g, "a", 0, 1, -1); /* 2 */
    add_node(g, "b", 2, -1);    /* 3 */
    cs_graph_add_node(g, str(g, "If"), 0, 0);
    cs_graph_add_arg(g, 3);
    *body = cs_graph_new(g->pool, g);
    cs_graph_add_body(g, str(g, "then_branch"), *body);
    uint32_t c = cs_graph_add_value(*body, str(g, "a"), 0, CS_ORIGIN_CAPTURE);
    (*body)->values.at[c].from = 2;
    add_node(*body, "n", 0, -1);
    cs_vec_push(&(*body)->outputs, 1);
    cs_graph_add_capture(g, 2);
    cs_graph_add_out(g, add_made(g, "c")); /* 4 */
    add_node(g, "d", 0, -1);               /* 5 */
    cs_graph_add_write(g, 0);
    g->nodes.at[1].flags |= CS_NODE_EFFECT;
    g->nodes.at[3].flags |= CS_NODE_EFFECT;
    cs_vec_push(&g->members, 1);
    cs_vec_push(&g->groups, ((cs_group){.name = str(g, "group"), .n_member = 1}));
    cs_vec_push(&g->outputs, 4);
    seal(g);
    return g;
}

static void expect_damage(cs_graph *g, const char *message)
{
    assert_int_equal(cs_graph_verify(g, &err), CUTSET_BAD);
    if (!strstr(err.message, message)) fail_msg("'%s' is not in '%s'", message, err.message);
    assert_memory_equal(err.message, "graph verifier: ", 16);
}

/* Damages one thing, expects the message, repairs it. */
#define DAMAGE(lvalue, wrong, message)                                                             \
    do {                                                                                           \
        __typeof__(lvalue) saved = (lvalue);                                                       \
        (lvalue) = (wrong);                                                                        \
        expect_damage(g, message);                                                                 \
        (lvalue) = saved;                                                                          \
    } while (0)

static void the_verifier_sees(void **state)
{
    (void)state;
    cs_graph *body, *g = sample(&body);
    DAMAGE(g->sealed, false, "expected a sealed graph");
    DAMAGE(body->sealed, false, "expected a sealed graph");
    DAMAGE(g->nodes.at[0].arg, 90, "node $0 (a): expected its args in the array");
    DAMAGE(g->nodes.at[1].arg, 0, "node $1 (b): expected its args in the array, after");
    DAMAGE(g->nodes.at[1].n_arg, UINT32_MAX, "node $1 (b): expected its args");
    DAMAGE(g->nodes.at[1].attr, 9, "node $1 (b): expected its attrs");
    DAMAGE(g->nodes.at[2].body, 9, "node $2 (c): expected its bodies");
    DAMAGE(g->nodes.at[2].allow, 9, "node $2 (c): expected its targets");
    DAMAGE(g->nodes.at[3].n_write, 9, "node $3 (d): expected its writes");
    DAMAGE(g->args.at[0], 77, "node $0 (a): expected each arg to be a value or absent (77)");
    DAMAGE(g->args.at[0], 1, "expected");
    DAMAGE(g->writes.at[0], 77, "node $3 (d): expected each write to name a value");
    DAMAGE(g->members.at[0], 77, "group member 0: expected a node, not 77");
    DAMAGE(g->groups.at[0].n_member, 7, "group 0: expected its members");
    DAMAGE(g->values.at[0].name, 9999, "value 0 (?): expected a name in the pool");
    DAMAGE(g->values.at[0].type, 9999, "value 0 (x): expected a type in the pool");
    DAMAGE(g->values.at[0].storage, 9, "value 0 (x): expected a storage");
    DAMAGE(g->values.at[0].from, 1, "value 0 (x): expected no source");
    DAMAGE(g->values.at[0].origin, 9, "value 0 (x): expected an origin");
    DAMAGE(g->values.at[0].origin, CS_ORIGIN_CAPTURE, "value 0 (x): expected a value of the encl");
    DAMAGE(g->values.at[1].storage, CS_NONE, "value 1 (w): expected a storage and no source");
    DAMAGE(g->values.at[2].from, 1, "node $0 (a): expected its outs to come from it");
    DAMAGE(g->values.at[2].from, CS_NONE, "value 2 (a): expected a node that makes it");
    DAMAGE(g->inputs.at[0], 1, "expected every input, and nothing else, to be listed once");
    DAMAGE(g->inputs.at[0], 99, "input 0: expected a value, not 99");
    DAMAGE(g->inputs.len, 0, "value 0 (x): expected every input");
    DAMAGE(g->outputs.at[0], 99, "output 0: expected a value, not 99");
    DAMAGE(g->outs.at[0], 3, "expected one node output a value");
    DAMAGE(g->outs.at[0], CS_NONE, "value 2 (a): expected one node output a value");
    DAMAGE(body->values.at[0].from, 3, "node $2 (c): expected what its body captures among");
    DAMAGE(g->nodes.at[2].n_capture, 0, "node $2 (c): expected what its body captures");
    DAMAGE(body->outer, NULL, "value 0 (a): expected a value of the enclosing graph");
    cs_pool copy = *g->pool;
    DAMAGE(body->pool, &copy, "node $2 (c): expected a sealed body in this graph, of the same");
    DAMAGE(g->use[0], 1, "uses from 0 on, not from 1");
    DAMAGE(g->use[1], 9, "expected a row of uses");
    DAMAGE(g->user[0], 99, "value 0 (x): expected its readers to be nodes");
    DAMAGE(g->user[0], 1, "node $0 (a): expected to stand among the readers of its arg (0)");
    DAMAGE(g->topo[0], 99, "position 0 of the order: expected a node");
    DAMAGE(g->topo[0], 1, "position 1 of the order: expected a node not seen before, not 1");
    uint32_t wrong[4] = {1, 0, 2, 3};
    DAMAGE(g->topo, wrong, "node $1 (b): expected to come after a node that it depends on (0)");
    DAMAGE(g->order.len, 0, "node $3 (d): expected an order edge to it from the last node with");
    DAMAGE(g->order.len, 1, "node $3 (d): expected an order edge to it from earlier nodes that");
    uint32_t late[4] = {0, 3, 1, 2};
    DAMAGE(g->topo, late, "node $3 (d): expected to come after");
    size_t len = g->order.len;
    g->order.len = 0;
    DAMAGE(g->topo, late, "node $1 (b): expected to come before a node of larger id (3)");
    g->order.len = len;
    DAMAGE(g->order.at[0].to, 99, "expected an order edge between nodes");
    DAMAGE(g->effect, false, "expected the graph to know");
    DAMAGE(g->nodes.at[0].flags, CS_NODE_EFFECT, "node $1 (b): expected an order edge to it");
    DAMAGE(g->writes.at[0], 2, "node $3 (d): expected an order edge to it from earlier nodes that");
    assert_int_equal(cs_graph_verify(g, &err), 0);
    cs_graph_free(g);
}

/* ---- without memory ---- */

static void without_memory(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        long live = alloc_live();
        alloc_fail_at(n);
        bool ok = true;
        cs_pool *pool = cs_pool_new();
        cs_graph *g = pool ? cs_graph_new(pool, NULL) : NULL;
        ok = g != NULL;
        for (uint32_t i = 0; i < 20 && ok; i++) { /* from last to first, so that the heap is used */
            ok = cs_graph_add_value(g, 0, 0, i == 0 ? CS_ORIGIN_INPUT : CS_ORIGIN_NODE) != CS_NONE;
            if (ok && i == 0) ok = cs_vec_push(&g->inputs, 0);
        }
        for (uint32_t i = 19; i > 0 && ok; i--)
            ok = cs_graph_add_node(g, 0, 0, 0) != CS_NONE && cs_graph_add_arg(g, i - 1) &&
                 cs_graph_add_write(g, 0) && cs_graph_add_out(g, i) && cs_graph_add_alias(g, i, i - 1);
        /* The chain of writes runs against the chain of values: a cycle, to be found and told. */
        if (ok) {
            cutset_status status = cs_graph_seal(g, &err);
            assert_true(status == CUTSET_BAD || (status == CUTSET_SYSTEM && alloc_failed()));
            g->writes.len = g->order.len = g->aliases.len = 0;
            for (uint32_t i = 0; i < 19; i++)
                g->nodes.at[i].n_write = g->nodes.at[i].write = 0;
            cs_free(g->use);
            cs_free(g->user);
            cs_free(g->topo);
            g->use = g->user = g->topo = NULL;
            status = cs_graph_seal(g, &err);
            if (!status) status = cs_graph_verify(g, &err);
            ok = status == CUTSET_OK;
            if (!ok) {
                assert_int_equal(status, CUTSET_SYSTEM);
                assert_string_equal(err.message, "out of memory");
            }
        }
        bool failed = alloc_failed();
        alloc_fail_at(-1);
        if (!failed) assert_true(ok);
        if (g)
            cs_graph_free(g);
        else
            cs_pool_free(pool);
        assert_int_equal(alloc_live(), live);
        if (!failed) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions),
        cmocka_unit_test(the_verifier_sees),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
