/* --min-nodes and --max-engines against brute force on small random graphs, with groups, nodes
 * that do not count, exempt and pinned nodes, budgets, several accelerators, connected engines.
 *
 * The oracle fills, for every set of nodes that is done and every number of engines, the most that
 * can have been kept; parts are any sets that may come next. It knows nothing of atoms, levels,
 * cuts or packing. Larger graphs: what comes out is a plan under all options. Everything is
 * seeded; CUTSET_LONG=1 looks at ten times as many graphs.
 */
#include "graph_build.h"
#include "plan/work.h"

#define MOST 9  /* nodes that brute force looks at */
#define ROOM 30 /* nodes of a sample */
#define WEIGHTS 5

/* ---- a random case ---- */

typedef struct sample {
    uint32_t n, n_targets;
    int target[ROOM]; /* -1 host */
    uint32_t pred[ROOM], class[ROOM], weights[ROOM];
    uint32_t free, exempt, pinned; /* sets of nodes */
    int64_t size[WEIGHTS], budget, min_nodes, max_engines;
    bool connected;
    int group[ROOM]; /* 0: none */
} sample;

static void draw_flags(sample *s)
{
    for (uint32_t v = 0; v < s->n; v++) {
        if (s->target[v] >= 0 && below(9) == 0) s->pinned |= 1u << v;
        if (below(4) == 0) s->free |= 1u << v;
        if (below(12) == 0) s->exempt |= 1u << v;
    }
}

static sample draw_of(uint64_t from, uint32_t most, uint32_t n_targets, bool groups, bool weights)
{
    seed = from * 0x9e3779b97f4a7c15u;
    below(2);
    sample s = {.n = 1 + below(most), .n_targets = n_targets};
    const uint32_t density = 1 + below(4);
    for (uint32_t v = 0; v < s.n; v++) {
        s.target[v] = (int)below(n_targets + 1) - 1;
        if (below(3) == 0) s.target[v] = 0;
        for (uint32_t u = 0; u < v; u++)
            if (below(most > MOST ? most : 6) < density) s.pred[v] |= 1u << u;
        if (groups && below(3) == 0) s.group[v] = 1 + (int)below(2);
        s.weights[v] = weights ? below(1 << WEIGHTS) & below(1 << WEIGHTS) : 0;
    }
    for (uint32_t i = 0; i < WEIGHTS; i++)
        s.size[i] = 1 + (int64_t)below(10);
    if (weights) s.budget = 5 + (int64_t)below(20);
    if (below(3)) draw_flags(&s);
    return s;
}

static sample draw(uint64_t from, uint32_t n_targets, bool groups, bool weights)
{
    return draw_of(from, MOST, n_targets, groups, weights);
}

/* Nodes that reach each other, by edges or within a group. */
static void make_classes(sample *s)
{
    bool reach[ROOM][ROOM] = {{false}};
    for (uint32_t v = 0; v < s->n; v++)
        for (uint32_t u = 0; u < s->n; u++)
            reach[u][v] =
                u == v || s->pred[v] >> u & 1 || (s->group[u] && s->group[u] == s->group[v]);
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t u = 0; u < s->n; u++)
            for (uint32_t v = 0; v < s->n; v++)
                reach[u][v] |= reach[u][k] && reach[k][v];
    for (uint32_t v = 0; v < s->n; v++)
        for (uint32_t u = 0; u < s->n; u++)
            if (reach[u][v] && reach[v][u]) s->class[v] |= 1u << u;
}

/* A class without a common target is the host's; false: and holds a pinned node, or mixes
 * targets. */
static bool settle_classes(sample *s)
{
    make_classes(s);
    int target[ROOM];
    for (uint32_t v = 0; v < s->n; v++) {
        target[v] = s->target[v];
        for (uint32_t u = 0; u < s->n; u++) {
            if (!(s->class[v] >> u & 1) || s->target[u] == s->target[v]) continue;
            if (s->pinned & s->class[v]) return false;
            target[v] = -1;
        }
    }
    memcpy(s->target, target, sizeof target);
    return true;
}

/* ---- the plan ---- */

static cutset_target *targets[2];

static int make_targets(void **state)
{
    (void)state;
    if (cutset_target_marked(&targets[0], "t0", 1, 0, 0, NULL)) return -1;
    return cutset_target_marked(&targets[1], "t1", 1, 0, 0, NULL) ? -1 : 0;
}

static int free_targets(void **state)
{
    (void)state;
    cutset_target_free(targets[0]);
    cutset_target_free(targets[1]);
    return 0;
}

static cs_graph *build(const sample *s)
{
    cs_graph *g = new_graph();
    char name[20];
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        snprintf(name, sizeof name, "w%u", i);
        const uint32_t v = cs_graph_add_value(g, str(g, name), 0, CS_ORIGIN_WEIGHT);
        g->values.at[v].storage = cs_graph_add_storage(g, s->size[i], CS_U8, NULL);
    }
    for (uint32_t v = 0; v < s->n; v++) {
        const uint32_t node = cs_graph_add_node(g, str(g, "Op"), 0, 0);
        for (uint32_t i = 0; i < WEIGHTS; i++)
            if (s->weights[v] >> i & 1) assert_true(cs_graph_add_arg(g, i));
        for (uint32_t u = 0; u < v; u++)
            if (s->pred[v] >> u & 1) assert_true(cs_graph_add_arg(g, WEIGHTS + u));
        snprintf(name, sizeof name, "n%u", v);
        assert_true(cs_graph_add_out(g, add_made(g, name)));
        snprintf(name, sizeof name, "t%d", s->target[v]);
        if (s->target[v] >= 0) assert_true(cs_graph_add_allow(g, str(g, name)));
        if (!(s->pinned >> v & 1)) assert_true(cs_graph_add_allow(g, str(g, "host")));
        g->nodes.at[node].flags |=
            (s->free >> v & 1 ? CS_NODE_FREE : 0) | (s->exempt >> v & 1 ? CS_NODE_EXEMPT : 0);
    }
    for (int k = 1; k <= 2; k++) {
        cs_group group = {.name = str(g, "group"), .member = (uint32_t)g->members.len};
        for (uint32_t v = 0; v < s->n; v++)
            if (s->group[v] == k) assert_true(cs_vec_push(&g->members, v));
        group.n_member = (uint32_t)g->members.len - group.member;
        assert_true(cs_vec_push(&g->groups, group));
    }
    seal(g);
    return g;
}

static cutset_status plan_graph(const cs_graph *g, uint32_t n_targets, const cutset_plan_opts *o,
                                cutset_plan **plan)
{
    const cs_plan_source source = {.graph = g, .hash = 1};
    return cs_plan_make(plan, &source, (const cutset_target *const *)targets, n_targets, o, &err);
}

static cutset_plan_opts options(const sample *s)
{
    cutset_plan_opts o;
    cutset_plan_opts_init(&o);
    o.host_memory = s->budget, o.oversize = CUTSET_OVERSIZE_KEEP;
    o.min_nodes = s->min_nodes, o.max_engines = s->max_engines, o.connected = s->connected;
    return o;
}

/* ---- the oracle ---- */

typedef struct kept {
    int counted, nodes, engines;
} kept;

static int64_t bytes_of(const sample *s, uint32_t set)
{
    uint32_t weights = 0;
    int64_t sum = 0;
    for (uint32_t v = 0; v < s->n; v++)
        if (set >> v & 1) weights |= s->weights[v];
    for (uint32_t i = 0; i < WEIGHTS; i++)
        if (weights >> i & 1) sum += s->size[i];
    return sum;
}

static bool touches(const sample *s, uint32_t x, uint32_t y)
{
    for (uint32_t v = 0; v < s->n; v++)
        for (uint32_t u = 0; u < s->n; u++)
            if (x >> u & 1 && y >> v & 1 &&
                (s->pred[v] >> u & 1 || s->pred[u] >> v & 1 || s->class[v] >> u & 1))
                return true;
    return false;
}

static bool one_piece(const sample *s, uint32_t set)
{
    uint32_t piece = set & (0 - set);
    for (uint32_t v = 0; v < s->n; v++)
        for (uint32_t k = 0; k < s->n; k++)
            if (set >> k & 1 && touches(s, piece, 1u << k)) piece |= 1u << k;
    return piece == set;
}

static bool within_budget(const sample *s, uint32_t set)
{
    uint32_t over = 0;
    for (uint32_t v = 0; v < s->n; v++)
        if (set >> v & 1 && bytes_of(s, s->class[v]) > s->budget) over |= s->class[v];
    if (!s->budget || (!over && bytes_of(s, set) <= s->budget)) return true;
    const uint32_t first = s->class[over ? __builtin_ctz(over) : 0];
    return over && over == first && bytes_of(s, set) == bytes_of(s, over);
}

static bool whole(const sample *s, uint32_t set)
{
    for (uint32_t v = 0; v < s->n; v++)
        if (set >> v & 1 && s->class[v] & ~set) return false;
    return true;
}

static bool is_engine(const sample *s, uint32_t set)
{
    const int t = s->target[__builtin_ctz(set)];
    for (uint32_t v = 0; v < s->n; v++)
        if (set >> v & 1 && (s->target[v] != t || t < 0)) return false;
    if (!(set & (s->exempt | s->pinned)) && __builtin_popcount(set & ~s->free) < s->min_nodes)
        return false;
    return within_budget(s, set) && (!s->connected || one_piece(s, set));
}

static bool more(const sample *s, kept x, kept y)
{
    if (x.counted != y.counted) return x.counted > y.counted;
    if (s->min_nodes && x.engines != y.engines) return x.engines < y.engines;
    if (x.nodes != y.nodes) return x.nodes > y.nodes;
    return x.engines < y.engines;
}

static uint32_t accelerated(const sample *s)
{
    uint32_t set = 0;
    for (uint32_t v = 0; v < s->n; v++)
        if (s->target[v] >= 0) set |= 1u << v;
    return set;
}

/* `limit` 0: none; then exempt nodes stay where they are. counted -1: no plan. */
static kept best_plan(const sample *s, uint32_t limit)
{
    static kept best[1 << MOST][MOST + 1];
    static bool engine[1 << MOST], part[1 << MOST];
    static uint32_t needs[1 << MOST];
    const uint32_t all = (1u << s->n) - 1,
                   stay = s->pinned | (limit ? 0 : s->exempt & accelerated(s));
    for (uint32_t set = 0; set <= all; set++) {
        needs[set] = 0;
        for (uint32_t v = 0; v < s->n; v++)
            if (set >> v & 1) needs[set] |= s->pred[v] & ~set;
        part[set] = set && whole(s, set);
        engine[set] = part[set] && is_engine(s, set);
        for (uint32_t k = 0; k <= s->n; k++)
            best[set][k] = (kept){-1, 0, (int)k};
    }
    best[0][0].counted = 0;
    for (uint32_t done = 0; done < all; done++)
        for (uint32_t k = 0; k <= s->n; k++) {
            const kept from = best[done][k];
            const uint32_t rest = all & ~done;
            for (uint32_t set = rest; from.counted >= 0 && set; set = (set - 1) & rest) {
                if (!part[set] || needs[set] & ~done) continue;
                if (!(set & stay) && more(s, from, best[done | set][k])) {
                    best[done | set][k].counted = from.counted;
                    best[done | set][k].nodes = from.nodes;
                }
                if (!engine[set]) continue;
                const kept to = {from.counted + __builtin_popcount(set & ~s->free),
                                 from.nodes + __builtin_popcount(set), (int)k + 1};
                if (more(s, to, best[done | set][k + 1])) best[done | set][k + 1] = to;
            }
        }
    kept most = {-1, 0, 0};
    for (uint32_t k = 0; k <= s->n && (!limit || k <= limit); k++)
        if (best[all][k].counted >= 0 && (most.counted < 0 || more(s, best[all][k], most)))
            most = best[all][k];
    return most;
}

static kept brute_force(const sample *s)
{
    const kept k = best_plan(s, 0);
    return s->max_engines && k.engines > s->max_engines ? best_plan(s, (uint32_t)s->max_engines)
                                                        : k;
}

/* ---- checks ---- */

/* The parts are a plan of the sample; what it keeps. */
static kept check(const sample *s, const cutset_plan *plan)
{
    kept k = {0, 0, 0};
    uint32_t done = 0;
    for (size_t p = 0; p < plan->parts.len; p++) {
        const cs_part *part = &plan->parts.at[p];
        uint32_t set = 0;
        for (uint32_t i = 0; i < part->n_node; i++)
            set |= 1u << plan->nodes.at[part->node + i];
        for (uint32_t v = 0; v < s->n; v++)
            if (set >> v & 1) assert_int_equal(s->pred[v] & ~(done | set), 0);
        assert_true(set && whole(s, set));
        done |= set;
        if (part->target < 0) {
            assert_int_equal(set & s->pinned, 0);
            continue;
        }
        assert_true(is_engine(s, set));
        k.counted += __builtin_popcount(set & ~s->free);
        k.nodes += __builtin_popcount(set);
        k.engines++;
    }
    assert_int_equal(done, (1u << s->n) - 1);
    assert_int_equal(plan->engines, k.engines);
    assert_true(plan->engines_bound <= plan->engines);
    return k;
}

static void rules_are(const cutset_plan *plan, const sample *s)
{
    for (size_t i = 0; i < plan->fallback.len; i++) {
        const cs_rule rule = plan->fallback.at[i].rule;
        assert_true(rule != CS_RULE_LIMIT || s->max_engines);
        assert_true(rule != CS_RULE_SIZE || s->min_nodes);
    }
}

/* Is the plan what brute force finds? True as well where there is none. */
static bool is_best(const sample *s)
{
    cutset_plan *plan = NULL;
    cs_graph *g = build(s);
    const cutset_plan_opts o = options(s);
    const kept want = brute_force(s);
    const cutset_status status = plan_graph(g, s->n_targets, &o, &plan);
    bool best;
    if (status) {
        assert_int_equal(status, CUTSET_NO);
        assert_non_null(strstr(err.message, "--max-engines"));
        best = want.counted < 0;
    } else {
        const kept have = check(s, plan);
        rules_are(plan, s);
        best = have.counted == want.counted && have.nodes == want.nodes &&
               have.engines == want.engines;
        if (!best)
            print_message("counted %d, nodes %d, engines %d; best %d, %d, %d\n", have.counted,
                          have.nodes, have.engines, want.counted, want.nodes, want.engines);
    }
    cutset_plan_free(plan);
    cs_graph_free(g);
    return best;
}

static void engines_are_large_enough_and_keep_the_most(void **state)
{
    (void)state;
    for (int i = 0; i < repeats(2500); i++) {
        sample s = draw((uint64_t)i, 1, i % 3 == 0, false);
        s.min_nodes = 1 + (int64_t)below(4);
        if (settle_classes(&s) && !is_best(&s)) fail_msg("sample %d", i);
    }
}

static void few_engines_keep_the_most(void **state)
{
    (void)state;
    int cut = 0;
    for (int i = 0; i < repeats(4000); i++) {
        sample s = draw(1000000 + (uint64_t)i, 1, i % 3 == 0, false);
        s.max_engines = 1 + (int64_t)below(3);
        if (!settle_classes(&s)) continue;
        const kept most = brute_force(&s);
        s.max_engines += MOST;
        cut += brute_force(&s).engines > most.engines;
        s.max_engines -= MOST;
        if (!is_best(&s)) fail_msg("sample %d", i);
    }
    assert_true(cut > repeats(4000) / 20); /* the limit was felt */
}

static void both_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < repeats(2000); i++) {
        sample s = draw(2000000 + (uint64_t)i, 1, i % 3 == 0, false);
        s.min_nodes = 2 + (int64_t)below(2);
        s.max_engines = 1 + (int64_t)below(2);
        if (settle_classes(&s) && !is_best(&s)) fail_msg("sample %d", i);
    }
}

static void with_budgets_targets_and_connected(void **state)
{
    (void)state;
    for (int i = 0; i < repeats(2500); i++) {
        const uint32_t n_targets = 1 + (uint32_t)i % 2;
        sample s = draw(3000000 + (uint64_t)i, n_targets, i % 5 == 0, i % 3 != 0);
        s.connected = below(3) == 0;
        if (below(3)) s.min_nodes = 1 + (int64_t)below(3);
        if (!s.min_nodes || below(2)) s.max_engines = 1 + (int64_t)below(3);
        if (settle_classes(&s) && !is_best(&s)) fail_msg("sample %d", i);
    }
}

/* Larger graphs with everything at once: the plan is one, or pinned nodes forbid it. */
static void large_plans_hold(void **state)
{
    (void)state;
    for (int i = 0; i < repeats(1500); i++) {
        sample s =
            draw_of(4000000 + (uint64_t)i, ROOM, 1 + (uint32_t)i % 2, i % 5 == 0, i % 3 == 0);
        s.connected = below(4) == 0;
        if (below(3)) s.min_nodes = 1 + (int64_t)below(5);
        if (below(3)) s.max_engines = 1 + (int64_t)below(4);
        if (!settle_classes(&s)) continue;
        cutset_plan *plan = NULL;
        cs_graph *g = build(&s);
        const cutset_plan_opts o = options(&s);
        const cutset_status status = plan_graph(g, s.n_targets, &o, &plan);
        if (status) {
            assert_true(status == CUTSET_NO && s.pinned && s.max_engines);
            assert_non_null(strstr(err.message, "--max-engines"));
        } else {
            const kept have = check(&s, plan);
            assert_true(!s.max_engines || have.engines <= s.max_engines);
            rules_are(plan, &s);
        }
        cutset_plan_free(plan);
        cs_graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_are_large_enough_and_keep_the_most),
        cmocka_unit_test(few_engines_keep_the_most),
        cmocka_unit_test(both_at_once),
        cmocka_unit_test(with_budgets_targets_and_connected),
        cmocka_unit_test(large_plans_hold),
    };
    return cmocka_run_group_tests(tests, make_targets, free_targets);
}
