/* Sealing: uses, order, cycles, effects. Slow oracles recompute order and effects on seeded random
 * graphs. */
#include "graph_build.h"

/* ---- uses and order ---- */

static void uses(void **state)
{
    (void)state;
    cs_graph *g = new_graph();
    int x = (int)add_input(g, "x");
    int a = (int)add_node(g, "a", x, x, -1);
    add_node(g, "b", a, x, a, -1);
    cs_graph_add_node(g, str(g, "Sink"), 0, 0);
    cs_graph_add_arg(g, CS_NONE);
    cs_graph_add_arg(g, (uint32_t)x);
    cs_graph_add_out(g, CS_NONE);
    seal(g);
    assert_int_equal(g->use[x + 1] - g->use[x], 3); /* each node once */
    assert_int_equal(g->use[a + 1] - g->use[a], 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(g->user[g->use[x] + i], i);
        assert_int_equal(g->topo[i], i);
    }
    cs_graph_free(g);
    g = new_graph(); /* nothing at all */
    seal(g);
    cs_graph_free(g);
}

/* Repeatedly the smallest node whose predecessors are all done. False: a cycle. */
static bool naive_order(const cs_graph *g, uint32_t *topo)
{
    size_t n = g->nodes.len;
    bool done[64] = {false};
    for (size_t k = 0; k < n; k++) {
        uint32_t pick = CS_NONE;
        for (uint32_t i = 0; i < n && pick == CS_NONE; i++) {
            bool ready = !done[i];
            const cs_node *node = &g->nodes.at[i];
            for (uint32_t a = 0; a < cs_n_reads(node); a++) {
                uint32_t v = cs_args(g, node)[a];
                if (v != CS_NONE && g->values.at[v].origin == CS_ORIGIN_NODE)
                    ready = ready && done[g->values.at[v].from];
            }
            for (size_t e = 0; e < g->order.len; e++)
                if (g->order.at[e].to == i) ready = ready && done[g->order.at[e].from];
            if (ready) pick = i;
        }
        if (pick == CS_NONE) return false;
        done[pick] = true;
        topo[k] = pick;
    }
    return true;
}

static void order_against_oracle(void **state)
{
    (void)state;
    int cycles = 0, disordered = 0;
    for (seed = 0; seed < 4000000; seed += 1000) {
        uint64_t start = seed;
        cs_graph *g = new_graph();
        uint32_t n = 1 + below(12), made[12], rank[12];
        add_input(g, "x");
        for (uint32_t i = 0; i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "v%u", i);
            made[i] = add_made(g, name);
            rank[i] = below(100);
        }
        bool any = below(4) == 0; /* else edges follow `rank`: no cycle */
        for (uint32_t i = 0; i < n; i++) {
            cs_graph_add_node(g, str(g, "Op"), 0, 0);
            for (uint32_t k = below(3); k-- > 0;) {
                uint32_t j = below(n);
                bool forward = rank[j] < rank[i] || (rank[j] == rank[i] && j < i);
                cs_graph_add_arg(g, any || forward ? made[j] : below(2) ? 0 : CS_NONE);
            }
            cs_graph_add_out(g, made[i]);
        }
        for (uint32_t k = below(4); k-- > 0;) {
            uint32_t i = below(n), j = below(n);
            if (any || rank[i] < rank[j]) add_order(g, i, j);
        }
        uint32_t topo[12];
        bool acyclic = naive_order(g, topo);
        cutset_status status = cs_graph_seal(g, &err);
        assert_int_equal(status, acyclic ? CUTSET_OK : CUTSET_BAD);
        if (acyclic) {
            assert_memory_equal(topo, g->topo, n * sizeof *topo);
            if (cs_graph_verify(g, &err))
                fail_msg("seed %lu: %s", (unsigned long)start, err.message);
            for (uint32_t i = 0; i < n; i++)
                if (topo[i] != i) {
                    disordered++;
                    break;
                }
        } else {
            assert_memory_equal(err.message, "cycle: ", 7);
            cycles++;
        }
        cs_graph_free(g);
        seed = start;
    }
    assert_true(cycles > 300 && disordered > 1000);
}

static void long_chain(void **state)
{
    (void)state;
    enum { N = 1000000 };
    for (int reversed = 0; reversed < 2; reversed++) {
        cs_graph *g = new_graph();
        uint32_t x = add_input(g, "x");
        for (uint32_t i = 0; i < N; i++)
            cs_graph_add_value(g, 0, 0, CS_ORIGIN_NODE); /* value i + 1 */
        cs_str op = str(g, "Relu");
        for (uint32_t i = 0; i < N; i++) {
            uint32_t at = reversed ? N - 1 - i : i; /* this node makes value at + 1 */
            cs_graph_add_node(g, op, 0, 0);
            cs_graph_add_arg(g, at == 0 ? x : at);
            cs_graph_add_out(g, at + 1);
        }
        seal(g);
        for (uint32_t i = 0; i < N; i++)
            assert_int_equal(g->topo[i], reversed ? N - 1 - i : i);
        cs_graph_free(g);
    }
}

static void hub(void **state)
{
    (void)state;
    enum { N = 100000 };
    cs_graph *g = new_graph();
    int x = (int)add_input(g, "x");
    int h = (int)add_made(g, "hub");
    cs_str op = str(g, "Op");
    for (uint32_t i = 0; i < N; i++) { /* readers before and after the maker, all of them write */
        cs_graph_add_node(g, op, 0, 0);
        cs_graph_add_arg(g, (uint32_t)h);
        if (i == N / 2) {
            cs_graph_add_node(g, op, 0, 0);
            cs_graph_add_arg(g, (uint32_t)x);
            cs_graph_add_out(g, (uint32_t)h);
        }
    }
    cs_graph_add_node(g, op, 0, 0); /* one reader of everything, many times */
    for (uint32_t i = 0; i < N; i++)
        cs_graph_add_arg(g, (uint32_t)h);
    cs_graph_add_write(g, (uint32_t)h);
    seal(g);
    assert_int_equal(g->use[h + 1] - g->use[h], N + 1);
    assert_int_equal(g->order.len, N);
    assert_int_equal(g->topo[0], N / 2 + 1);
    assert_int_equal(g->topo[1], 0);
    cs_graph_free(g);
}

/* ---- cycles ---- */

static void cycles(void **state)
{
    (void)state;
    cs_graph *g = new_graph();
    add_made(g, "a");
    add_node(g, "b", 0, -1);
    cs_graph_add_node(g, str(g, "Op"), 0, 0);
    cs_graph_add_arg(g, 1);
    cs_graph_add_out(g, 0);
    refused(g, "cycle: %b -> %a -> %b: remove one of these edges");

    g = new_graph();
    int x = (int)add_input(g, "x");
    int a = (int)add_node(g, "a", x, -1);
    add_node(g, "b", a, -1);
    g->nodes.at[0].offset = 7;
    add_order(g, 1, 0);
    refused(g, "cycle: %a -> %b -> %a (by order edge): remove one of these edges");
    assert_int_equal(err.offset, 7);

    g = new_graph(); /* a node before itself, without outputs */
    cs_graph_add_node(g, str(g, "Op"), 0, 0);
    add_order(g, 0, 0);
    refused(g, "cycle: $0 -> $0 (by order edge): remove one of these edges");

    g = new_graph(); /* the write comes first in the file, what it must follow reads its result */
    x = (int)add_input(g, "x");
    int c = (int)add_made(g, "c");
    add_node(g, "b", x, c, -1);
    cs_graph_add_node(g, str(g, "Op"), 0, 0);
    cs_graph_add_arg(g, (uint32_t)x);
    cs_graph_add_out(g, (uint32_t)c);
    cs_graph_add_write(g, (uint32_t)x);
    refused(g, "cycle: %b -> %c (by effect) -> %b: remove one of these edges");

    /* A long one, behind nodes that can be ordered, before some that cannot. */
    for (int n = 8; n <= 9; n++) {
        g = new_graph();
        x = (int)add_input(g, "x");
        add_node(g, "first", x, -1);
        add_made(g, "n0");
        int last = 2, loop = 2;
        for (int i = 1; i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%d", i);
            last = (int)add_node(g, name, last, -1);
        }
        cs_graph_add_node(g, str(g, "Op"), 0, 0);
        cs_graph_add_arg(g, (uint32_t)last);
        cs_graph_add_out(g, (uint32_t)loop);
        add_node(g, "after", loop, -1);
        if (n == 8)
            refused(g, "cycle: %n1 -> %n2 -> %n3 -> %n4 -> %n5 -> %n6 -> %n7 -> %n0 -> %n1: "
                       "remove one of these edges");
        else
            refused(g, "cycle: %n1 -> %n2 -> %n3 -> %n4 -> %n5 -> %n6 -> %n7 -> %n8 -> ... "
                       "(9 nodes): remove one of these edges");
    }

    /* The shortest cycle through a node is shown: a -> b -> a, not a -> c -> d -> b -> a. */
    g = new_graph();
    a = (int)add_made(g, "a");
    c = (int)add_made(g, "c");
    int d = (int)add_made(g, "d"), b = (int)add_made(g, "b");
    int made[4] = {a, b, c, d}, args[4][3] = {{b, -1, -1}, {d, a, -1}, {a, -1, -1}, {c, -1, -1}};
    for (int i = 0; i < 4; i++) {
        cs_graph_add_node(g, str(g, "Op"), 0, 0);
        for (int k = 0; args[i][k] >= 0; k++)
            cs_graph_add_arg(g, (uint32_t)args[i][k]);
        cs_graph_add_out(g, (uint32_t)made[i]);
    }
    refused(g, "cycle: %a -> %b -> %a: remove one of these edges");
}

static void a_value_without_origin(void **state)
{
    (void)state;
    cs_graph *g = new_graph();
    int v = (int)add_made(g, "lost");
    add_node(g, "y", v, -1);
    refused(g, "%y reads %lost, which nothing makes: add the node that makes it, or make it an "
               "input or a weight");
    g = new_graph();
    add_made(g, "lost");
    refused(g, "nothing makes %lost: add the node that makes it, or make it an input or a weight");
}

/* ---- effects ---- */

/* A node that reads `args` and writes `writes`, each a string of value digits. */
static void touch(cs_graph *g, const char *args, const char *writes, bool effect)
{
    uint32_t n = cs_graph_add_node(g, str(g, "Op"), 0, 0);
    for (; *args; args++)
        cs_graph_add_arg(g, (uint32_t)(*args - '0'));
    for (; *writes; writes++)
        cs_graph_add_write(g, (uint32_t)(*writes - '0'));
    if (effect) g->nodes.at[n].flags |= CS_NODE_EFFECT;
}

static void effects(void **state)
{
    (void)state;
    cs_graph *g = new_graph(); /* a chain; others are free */
    add_input(g, "x");
    touch(g, "", "", true);
    touch(g, "0", "", false);
    touch(g, "", "", true);
    touch(g, "", "", true);
    seal(g);
    assert_string_equal(edges(g), "0>2 2>3");
    assert_int_equal(g->n_given, 0);
    assert_true(g->effect);
    cs_graph_free(g);

    g = new_graph(); /* readers, write, readers, write; value 1 is never written */
    add_input(g, "x");
    add_input(g, "y");
    touch(g, "0", "", false);
    touch(g, "00", "", false);
    touch(g, "0", "0", false);
    touch(g, "1", "", false);
    touch(g, "0", "", false);
    touch(g, "1", "00", false);
    touch(g, "", "0", false);
    seal(g);
    assert_string_equal(edges(g), "0>2 1>2 2>4 2>5 4>5 5>6");
    assert_false(g->effect);
    cs_graph_free(g);

    g = new_graph(); /* what was given stays first and is not repeated */
    add_input(g, "x");
    touch(g, "0", "", true);
    touch(g, "0", "0", true);
    touch(g, "0", "", false);
    add_order(g, 1, 2);
    add_order(g, 1, 2);
    seal(g);
    assert_string_equal(edges(g), "1>2 1>2 0>1");
    assert_int_equal(g->n_given, 2);
    cs_graph_free(g);

    g = new_graph(); /* the maker comes before a writer that does not read */
    add_input(g, "x");
    add_node(g, "v", 0, -1); /* value 1 */
    touch(g, "", "1", false);
    touch(g, "1", "1", false);
    seal(g);
    assert_string_equal(edges(g), "0>1 1>2");
    cs_graph_free(g);

    g = new_graph(); /* ... also when its line comes later */
    add_input(g, "x");
    add_made(g, "v"); /* value 1 */
    touch(g, "", "1", false);
    cs_graph_add_node(g, str(g, "Op"), 0, 0);
    cs_graph_add_out(g, 1);
    seal(g);
    assert_string_equal(edges(g), "1>0");
    assert_int_equal(g->topo[0], 1);
    cs_graph_free(g);

    g = new_graph(); /* a node that writes what it makes */
    add_input(g, "x");
    add_node(g, "v", 0, -1);
    cs_graph_add_write(g, 1);
    seal(g);
    assert_string_equal(edges(g), "");
    cs_graph_free(g);

    g = new_graph(); /* two written values in one node: one edge */
    add_input(g, "x");
    add_input(g, "y");
    touch(g, "01", "", false);
    touch(g, "", "01", false);
    seal(g);
    assert_string_equal(edges(g), "0>1");
    cs_graph_free(g);
}

static void effects_through_aliases(void **state)
{
    (void)state;
    cs_graph *g = new_graph();
    add_input(g, "x"); /* value 0 */
    add_node(g, "view", 0, -1);
    cs_graph_add_alias(g, 1, 0);
    add_node(g, "view2", 1, -1);
    cs_graph_add_alias(g, 2, 1);
    touch(g, "0", "", false);
    touch(g, "", "2", false); /* writes view2, thus x */
    touch(g, "0", "", false);
    touch(g, "1", "", false);
    seal(g);
    assert_string_equal(edges(g), "1>3 0>3 2>3 3>4 3>5");
    cs_graph_free(g);

    g = new_graph(); /* aliases that nothing writes imply nothing */
    add_input(g, "x");
    add_node(g, "view", 0, -1);
    cs_graph_add_alias(g, 1, 0);
    add_node(g, "other", 0, -1);
    touch(g, "", "2", false);
    seal(g);
    assert_string_equal(edges(g), "1>2");
    cs_graph_free(g);
}

/* If x: a body that writes what it captures two levels down, and has an effect. */
static void effects_in_bodies(void **state)
{
    (void)state;
    cs_graph *g = new_graph();
    add_input(g, "x");
    touch(g, "0", "", true);
    cs_graph *body = cs_graph_new(g->pool, g), *inner = cs_graph_new(g->pool, body);
    uint32_t c = cs_graph_add_value(body, str(g, "x"), 0, CS_ORIGIN_CAPTURE);
    body->values.at[c].from = 0;
    uint32_t d = cs_graph_add_value(inner, str(g, "x"), 0, CS_ORIGIN_CAPTURE);
    inner->values.at[d].from = c;
    touch(inner, "", "0", true);
    touch(body, "0", "", false);
    cs_graph_add_node(body, str(g, "If"), 0, 0);
    cs_graph_add_body(body, str(g, "then_branch"), inner);
    cs_graph_add_capture(body, c);
    touch(body, "0", "", false);
    cs_graph_add_node(g, str(g, "If"), 0, 0);
    cs_graph_add_body(g, str(g, "then_branch"), body);
    cs_graph_add_capture(g, 0);
    touch(g, "0", "", false);
    touch(g, "", "", true);
    seal(g);
    assert_true(g->effect && body->effect && inner->effect);
    assert_string_equal(edges(body), "0>1 1>2");
    assert_string_equal(edges(g), "0>1 1>2 1>3");
    assert_int_equal(body->mutates.len, 1);
    assert_int_equal(g->mutates.len, 0);
    cs_graph_free(g);
}

/* Effects on random graphs: every conflicting pair is ordered, every edge has a reason. */
static void effects_against_oracle(void **state)
{
    (void)state;
    enum { N = 10, V = 4 };
    for (seed = 0; seed < 3000000; seed += 1000) {
        uint64_t start = seed;
        cs_graph *g = new_graph();
        bool reads[N][V] = {{false}}, writes[N][V] = {{false}}, effect[N] = {false};
        uint32_t maker[V], class[V];
        for (uint32_t v = 0; v < V; v++) {
            maker[v] = CS_NONE;
            class[v] = v;
        }
        add_input(g, "x");
        for (uint32_t i = 0; i < N; i++) {
            uint32_t known = (uint32_t)g->values.len;
            uint32_t id = cs_graph_add_node(g, str(g, "Op"), 0, 0);
            for (uint32_t k = below(3); k-- > 0;) {
                uint32_t v = below(known);
                cs_graph_add_arg(g, v);
                reads[i][v] = true;
            }
            if (known < V && below(2)) {
                cs_graph_add_out(g, cs_graph_add_value(g, str(g, "v"), 0, CS_ORIGIN_NODE));
                maker[known] = i;
                const cs_node *n = &g->nodes.at[id];
                if (n->n_arg > 0 && below(2)) {
                    uint32_t of = class[cs_args(g, n)[0]];
                    cs_graph_add_alias(g, known, cs_args(g, n)[0]);
                    for (uint32_t v = 0; v < V; v++)
                        if (class[v] == known) class[v] = of;
                }
            }
            for (uint32_t k = below(8) == 0 ? 2 : below(5) == 0; k-- > 0;) {
                uint32_t v = below(known);
                cs_graph_add_write(g, v);
                writes[i][v] = true;
            }
            if (below(5) == 0) {
                effect[i] = true;
                g->nodes.at[id].flags |= CS_NODE_EFFECT;
            }
        }
        seal(g);
        bool conflict[N][N] = {{false}}, path[N][N] = {{false}};
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t j = i + 1; j < N; j++) {
                conflict[i][j] = effect[i] && effect[j];
                for (uint32_t u = 0; u < V; u++)
                    for (uint32_t v = 0; v < V; v++)
                        if (class[u] == class[v] &&
                            ((writes[i][u] && (reads[j][v] || writes[j][v])) ||
                             (reads[i][u] && writes[j][v])))
                            conflict[i][j] = true;
                for (uint32_t v = 0; v < V; v++)
                    if (maker[v] == i && writes[j][v]) conflict[i][j] = true;
            }
        for (size_t e = 0; e < g->order.len; e++) {
            cs_edge edge = g->order.at[e];
            assert_true(edge.from < edge.to && conflict[edge.from][edge.to]);
            assert_false(path[edge.from][edge.to]); /* distinct */
            path[edge.from][edge.to] = true;
        }
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t v = 0; v < V; v++)
                if (maker[v] != CS_NONE && reads[i][v]) path[maker[v]][i] = true;
        for (uint32_t k = 0; k < N; k++)
            for (uint32_t i = 0; i < N; i++)
                for (uint32_t j = 0; j < N; j++)
                    path[i][j] = path[i][j] || (path[i][k] && path[k][j]);
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t j = 0; j < N; j++)
                if (conflict[i][j] && !path[i][j])
                    fail_msg("seed %lu: $%u before $%u", (unsigned long)start, i, j);
        cs_graph_free(g);
        seed = start;
    }
}

/* A node with as many args as writes stays linear. */
static void wide_writes(void **state)
{
    (void)state;
    enum { N = 200000 };
    cs_graph *g = new_graph();
    cs_str op = str(g, "Op");
    cs_graph_add_node(g, op, 0, 0);
    for (uint32_t i = 0; i < N; i++)
        cs_graph_add_out(g, cs_graph_add_value(g, 0, 0, CS_ORIGIN_NODE));
    for (int k = 0; k < 2; k++) {
        cs_graph_add_node(g, op, 0, 0);
        for (uint32_t i = 0; i < N; i++)
            cs_graph_add_arg(g, i);
        for (uint32_t i = 0; i < N; i++)
            cs_graph_add_write(g, i);
    }
    assert_int_equal(cs_graph_seal(g, &err), 0); /* not verified: that is naive */
    assert_string_equal(edges(g), "1>2");
    cs_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uses),
        cmocka_unit_test(order_against_oracle),
        cmocka_unit_test(long_chain),
        cmocka_unit_test(hub),
        cmocka_unit_test(cycles),
        cmocka_unit_test(a_value_without_origin),
        cmocka_unit_test(effects),
        cmocka_unit_test(effects_through_aliases),
        cmocka_unit_test(effects_in_bodies),
        cmocka_unit_test(effects_against_oracle),
        cmocka_unit_test(wide_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
