/* Parallel branches under a budget of one branch: as many engines as branches, each exactly full,
 * proved, in whatever order the branches stand in the file, weights tied within a branch or not.
 */
#include <stdlib.h>

#include "graph_build.h"
#include "plan/work.h"

#define BLOCKS 4
#define OPS 3 /* of a block, each with a weight of its own size */
#define BRANCH (BLOCKS * OPS)
#define MOST 16

typedef enum order { BY_BRANCH, BY_BLOCK, BY_OP, SHUFFLED, ORDERS } order;

/* Every op of every branch in program order: branch * BRANCH + position in it. */
static void arrange(order how, uint32_t branches, uint32_t *list)
{
    const uint32_t n = branches * BRANCH, run = how == BY_BRANCH  ? BRANCH
                                                : how == BY_BLOCK ? OPS
                                                                  : 1;
    uint32_t next[MOST] = {0}, len = 0;
    for (uint32_t at = 0; len < n; at++) {
        const uint32_t b = how == SHUFFLED ? below(branches) : at % branches;
        for (uint32_t k = 0; k < run && next[b] < BRANCH; k++)
            list[len++] = b * BRANCH + next[b]++;
    }
}

/* Storages of a branch; tied: the blocks of one branch share theirs two by two. */
static uint32_t storage_of(cs_graph *g, uint32_t *storages, uint32_t op, bool tied)
{
    static const int64_t size[OPS] = {1000, 10, 35};
    const uint32_t at = op % BRANCH, block = at / OPS;
    const uint32_t own = op - at + (tied ? block % 2 : block) * OPS + at % OPS;
    if (storages[own] == CS_NONE)
        storages[own] = cs_graph_add_storage(g, size[at % OPS], CS_U8, NULL);
    return storages[own];
}

/* A stem without weights, the branches, and a node that joins them. */
static cs_graph *build(order how, uint32_t branches, bool tied)
{
    uint32_t list[MOST * BRANCH], storages[MOST * BRANCH], last[MOST];
    cs_graph *g = new_graph();
    char name[20];
    arrange(how, branches, list);
    memset(storages, 0xff, sizeof storages);
    const uint32_t x = add_input(g, "x"), stem = add_node(g, "stem", (int)x, -1);
    for (uint32_t b = 0; b < branches; b++)
        last[b] = stem;
    for (uint32_t i = 0; i < branches * BRANCH; i++) {
        const uint32_t b = list[i] / BRANCH;
        snprintf(name, sizeof name, "w%u", list[i]);
        const uint32_t w = cs_graph_add_value(g, str(g, name), 0, CS_ORIGIN_WEIGHT);
        const uint32_t storage = storage_of(g, storages, list[i], tied);
        g->values.at[w].storage = storage;
        snprintf(name, sizeof name, "n%u", list[i]);
        last[b] = add_node(g, name, (int)last[b], (int)w, -1);
    }
    cs_graph_add_node(g, str(g, "Join"), 0, 0);
    for (uint32_t b = 0; b < branches; b++)
        assert_true(cs_graph_add_arg(g, last[b]));
    assert_true(cs_graph_add_out(g, add_made(g, "join")));
    for (uint32_t v = 0; v < g->nodes.len; v++)
        g->nodes.at[v].allow = 0, g->nodes.at[v].n_allow = 1;
    assert_true(cs_vec_push(&g->allow, str(g, "t")));
    seal(g);
    return g;
}

static void engines_are_full(order how, uint32_t branches, bool tied)
{
    cutset_target *target;
    cutset_plan *plan;
    cutset_plan_opts o;
    cs_graph *g = build(how, branches, tied);
    cutset_plan_opts_init(&o);
    o.host_memory = 1045 * (tied ? BLOCKS / 2 : BLOCKS);
    assert_int_equal(cutset_target_marked(&target, "t", 1, 0, 0, &err), CUTSET_OK);
    const cutset_target *const targets[] = {target};
    const cs_plan_source source = {.graph = g, .hash = 1};
    if (cs_plan_make(&plan, &source, targets, 1, &o, &err)) fail_msg("%s", err.message);
    if (plan->engines != branches)
        fail_msg("order %d, %u branches, tied %d: %u engines", how, branches, tied, plan->engines);
    assert_int_equal(plan->engines_bound, branches);
    for (size_t p = 0; p < plan->parts.len; p++)
        assert_int_equal(plan->parts.at[p].host_build_bytes, o.host_memory);
    cutset_plan_free(plan);
    cutset_target_free(target);
    cs_graph_free(g);
}

static void one_engine_a_branch(void **state)
{
    (void)state;
    seed = 7;
    for (uint32_t branches = 2; branches <= MOST; branches *= 2)
        for (order how = 0; how < ORDERS; how++)
            for (int tied = 0; tied < 2; tied++)
                engines_are_full(how, branches, tied);
}

static void in_any_order(void **state)
{
    (void)state;
    const uint64_t graphs = getenv("CUTSET_LONG") ? 2000 : 100;
    for (seed = 100; seed < 100 + graphs; seed++) {
        const uint64_t from = seed;
        engines_are_full(SHUFFLED, 2 + below(MOST - 1), from % 2);
        seed = from;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_engine_a_branch),
        cmocka_unit_test(in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
