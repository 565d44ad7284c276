/* --min-nodes and --max-engines against brute force on small random graphs, with groups, nodes that
 * do not count, exempt and pinned nodes, budgets, several accelerators, connected engines.
 *
 * The oracle fills, for every set of nodes that is done and every number of engines, the most that
 * can have been kept; parts are any sets that may come next. It knows nothing of atoms, levels, cuts
 * or packing. Larger graphs: against the plain heuristics of theory 5.2 and 5.1, written anew here.
 * Everything is seeded; CUTSET_LONG=1 looks at ten times as many graphs.
 */
#include <stdlib.h>

#include "graph_build.h"
#include "plan/work.h"

#define MOST 9
#define WEIGHTS 5

static int repeats(int n) { return getenv("CUTSET_LONG") ? n * 10 : n; }

/* ---- a random case ---- */

typedef struct sample {
    uint32_t n, n_targets;
    int target[MOST]; /* -1 host */
    uint32_t pred[MOST], class[MOST], weights[MOST];
    uint32_t free, exempt, pinned; /* sets of nodes */
    int64_t size[WEIGHTS], budget, min_nodes, max_engines;
    bool connected;
    int group[MOST]; /* 0: none */
} sample;

static void draw_flags(sample *s)
{
    for (uint32_t v = 0; v < s->n; v++) {
        if (s->target[v] >= 0 && below(9) == 0) s->pinned |= 1u << v;
        if (below(4) == 0) s->free |= 1u << v;
        if (below(12) == 0) s->exempt |= 1u << v;
    }
}

static sample draw(uint64_t from, uint32_t n_targets, bool groups, bool weights)
{
    seed = from * 0x9e3779b97f4a7c15u;
    below(2);
    sample s = {.n = 1 + below(MOST), .n_targets = n_targets};
    const uint32_t density = 1 + below(4);
    for (uint32_t v = 0; v < s.n; v++) {
        s.target[v] = (int)below(n_targets + 1) - 1;
        if (below(3) == 0) s.target[v] = 0;
        for (uint32_t u = 0; u < v; u++)
            if (below(6) < density) s.pred[v] |= 1u << u;
        if (groups && below(3) == 0) s.group[v] = 1 + (int)below(2);
        s.weights[v] = weights ? below(1 << WEIGHTS) & below(1 << WEIGHTS) : 0;
    }
    for (uint32_t i = 0; i < WEIGHTS; i++)
        s.size[i] = 1 + (int64_t)below(10);
    if (weights) s.budget = 5 + (int64_t)below(20);
    if (below(3)) draw_flags(&s);
    return s;
}

/* Nodes that reach each other, by edges or within a group. */
static void make_classes(sample *s)
{
    bool reach[MOST][MOST] = {{false}};
    for (uint32_t v = 0; v < s->n; v++)
        for (uint32_t u = 0; u < s->n; u++)
            reach[u][v] = u == v || s->pred[v] >> u & 1 || (s->group[u] && s->group[u] == s->group[v]);
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t u = 0; u < s->n; u++)
            for (uint32_t v = 0; v < s->n; v++)
                reach[u][v] |= reach[u][k] && reach[k][v];
    for (uint32_t v = 0; v < s->n; v++)
        for (uint32_t u = 0; u < s->n; u++)
            if (reach[u][v] && reach[v][u]) s->class[v] |= 1u << u;
}

/* A class without a common target is the host's; false: and holds a pinned node, or mixes targets. */
static bool settle_classes(sample *s)
{
    make_classes(s);
    int target[MOST];
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
        g->nodes.at[node].flags |= (s->free >> v & 1 ? CS_NODE_FREE : 0) |
                                   (s->exempt >> v & 1 ? CS_NODE_EXEMPT : 0);
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
    const uint32_t all = (1u << s->n) - 1, stay = s->pinned | (limit ? 0 : s->exempt & accelerated(s));
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
    return s->max_engines && k.engines > s->max_engines ? best_plan(s, (uint32_t)s->max_engines) : k;
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

/* ---- larger graphs: the heuristics themselves ---- */

#define LARGE 60

typedef struct large {
    cs_arena arena;
    cs_atoms a;
    cs_work w;
    cutset_plan_opts opts;
    bool demote[LARGE];
    cs_labels labels;
} large;

static uint32_t *room(large *g, uint32_t n)
{
    uint32_t *at = cs_arena_zalloc(&g->arena, n, sizeof *at);
    assert_non_null(at);
    return at;
}

/* Atoms of one node each, or of a few; edges go forward. */
static void draw_large(large *g, uint64_t from, uint32_t n, bool sizes)
{
    static bool edge[LARGE][LARGE];
    seed = from * 0x9e3779b97f4a7c15u;
    below(2);
    *g = (large){.a.n = n};
    cs_atoms *a = &g->a;
    const uint32_t density = 1 + below(6), hosts = 2 + below(4);
    uint32_t m = 0;
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t u = 0; u < v; u++)
            m += edge[u][v] = below(n) < density;
    a->first = room(g, n + 1), a->counted = room(g, n);
    a->pred = room(g, n + 1), a->succ = room(g, n + 1);
    a->pred_of = room(g, m + 1), a->succ_of = room(g, m + 1);
    a->target = (int32_t *)room(g, n);
    a->pinned = (bool *)room(g, n), a->exempt = (bool *)room(g, n);
    a->oversized = (bool *)room(g, n);
    uint32_t in = 0, out = 0;
    for (uint32_t v = 0; v < n; v++) {
        const uint32_t size = sizes ? 1 + below(3) : 1;
        a->target[v] = below(hosts) ? 0 : CS_HOST;
        a->counted[v] = sizes && below(4) == 0 ? 0 : size;
        a->exempt[v] = sizes && a->target[v] == 0 && below(20) == 0;
        a->first[v + 1] = a->first[v] + size;
        for (uint32_t u = 0; u < n; u++) {
            if (edge[u][v]) a->pred_of[in++] = u;
            if (edge[v][u]) a->succ_of[out++] = u;
        }
        a->pred[v + 1] = in, a->succ[v + 1] = out;
    }
    memset(edge, 0, sizeof edge);
    g->w = (cs_work){.opts = &g->opts, .n_nodes = a->first[n]};
    assert_true(cs_labels_init(&g->labels, a, &g->arena));
}

/* Nodes that count, where `target` has them on the accelerator. */
static uint64_t counted(const large *g, const int32_t *target)
{
    uint64_t sum = 0;
    for (uint32_t v = 0; v < g->a.n; v++)
        sum += target[v] != CS_HOST ? g->a.counted[v] : 0;
    return sum;
}

static uint64_t counted_after(const large *g)
{
    int32_t target[LARGE];
    for (uint32_t v = 0; v < g->a.n; v++)
        target[v] = g->demote[v] ? CS_HOST : g->a.target[v];
    return counted(g, target);
}

/* Monotone labels, and engines that are large enough. */
static void check_large(large *g)
{
    cs_atoms a = g->a;
    uint64_t size[LARGE + 1] = {0};
    a.target = cs_arena_dup(&g->arena, g->a.target, a.n * sizeof *a.target);
    for (uint32_t v = 0; v < a.n; v++) {
        if (g->demote[v]) a.target[v] = CS_HOST;
        assert_int_equal(g->labels.slot[v] != 0, a.target[v] != CS_HOST);
        assert_true(g->labels.slot[v] <= g->labels.engines);
        size[g->labels.slot[v]] += g->a.exempt[v] ? LARGE : g->a.counted[v];
    }
    for (uint32_t k = 1; k <= g->labels.engines; k++)
        assert_true(size[k] >= (uint64_t)g->opts.min_nodes);
    assert_true(cs_labels_stab(&g->labels, &a, &g->arena));
    for (uint32_t v = 0; v < a.n; v++)
        for (uint32_t i = a.pred[v]; i < a.pred[v + 1]; i++) {
            const uint32_t u = a.pred_of[i];
            const uint32_t from = a.target[u] ? 2 * g->labels.gap[u] : 2 * g->labels.slot[u] - 1;
            const uint32_t to = a.target[v] ? 2 * g->labels.gap[v] : 2 * g->labels.slot[v] - 1;
            assert_true(from <= to);
        }
}

/* Theory 5.2, H1: early (or late) levels, the last of the smallest short slots goes, again. */
static uint64_t by_levels(large *g, bool late)
{
    int32_t target[LARGE];
    memcpy(target, g->a.target, g->a.n * sizeof *target);
    for (;;) {
        cs_levels l;
        uint64_t size[LARGE + 2] = {0};
        uint32_t slot[LARGE], smallest = 0;
        assert_true(cs_levels_of(&g->a, target, &g->arena, &l));
        for (uint32_t v = 0; v < g->a.n; v++) {
            slot[v] = target[v] == CS_HOST ? 0 : late ? l.r + 1 - l.mu[v] : l.lam[v];
            size[slot[v]] += g->a.exempt[v] ? LARGE : g->a.counted[v];
        }
        for (uint32_t k = 1; k <= l.r; k++)
            if (size[k] < (uint64_t)g->opts.min_nodes && (!smallest || size[k] <= size[smallest]))
                smallest = k;
        if (!smallest) return counted(g, target);
        for (uint32_t v = 0; v < g->a.n; v++)
            if (slot[v] == smallest) target[v] = CS_HOST;
    }
}

/* Theory 5.2, H2: slots in order, what must go first, then the earliest deadline up to the least size;
 * of the first slot that stays short what is critical goes. */
static uint64_t by_filling(large *g)
{
    const cs_atoms *a = &g->a;
    int32_t target[LARGE];
    memcpy(target, a->target, a->n * sizeof *target);
    for (;;) {
        cs_levels l;
        uint32_t slot[LARGE] = {0}, bad = 0;
        bool done[LARGE] = {false};
        assert_true(cs_levels_of(a, target, &g->arena, &l));
        for (uint32_t k = 0; k <= l.r && !bad; k++) {
            uint64_t size = 0;
            for (bool again = true; again;) {
                uint32_t best = CS_NONE;
                again = false;
                for (uint32_t v = 0; k && v < a->n; v++) {
                    bool ready = !done[v] && target[v] != CS_HOST;
                    for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++)
                        ready &= done[a->pred_of[i]];
                    if (ready && (best == CS_NONE || l.mu[v] >= l.mu[best])) best = v;
                }
                if (best != CS_NONE &&
                    (l.r + 1 - l.mu[best] <= k || size < (uint64_t)g->opts.min_nodes)) {
                    done[best] = again = true;
                    slot[best] = k;
                    size += a->exempt[best] ? LARGE : a->counted[best];
                }
            }
            for (uint32_t v = 0; v < a->n; v++) { /* then the hosts that are ready */
                bool ready = !done[v] && target[v] == CS_HOST;
                for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++)
                    ready &= done[a->pred_of[i]];
                if (ready) done[v] = true;
            }
            if (k && size < (uint64_t)g->opts.min_nodes) bad = k;
        }
        if (!bad) return counted(g, target);
        bool some = false;
        for (int all = 0; all < 2 && !some; all++)
            for (uint32_t v = 0; v < a->n; v++)
                if (target[v] != CS_HOST && slot[v] == bad && (all || l.lam[v] + l.mu[v] == l.r + 1)) {
                    target[v] = CS_HOST;
                    some = true;
                }
        if (!some) return 0; /* an empty slot: the rule says nothing */
    }
}

static void heuristics_are_no_worse_than_the_plain_ones(void **state)
{
    (void)state;
    int better = 0;
    const int total = repeats(2000);
    for (int i = 0; i < total; i++) {
        large g;
        draw_large(&g, 5000000 + (uint64_t)i, 13 + (uint32_t)i % (LARGE - 12), i % 3 == 0);
        g.opts.min_nodes = 2 + (int64_t)below(6);
        assert_int_equal(cs_demote(&g.w, &g.a, &g.arena, g.demote, &g.labels, &err), CUTSET_OK);
        const uint64_t kept_now = counted_after(&g);
        const uint64_t plain[3] = {by_levels(&g, false), by_levels(&g, true), by_filling(&g)};
        check_large(&g);
        for (int k = 0; k < 3; k++)
            if (kept_now < plain[k])
                fail_msg("sample %d: %d nodes kept, plain heuristic %d keeps %d", i, (int)kept_now, k,
                         (int)plain[k]);
        better += kept_now > plain[0] && kept_now > plain[1] && kept_now > plain[2];
        cs_arena_fini(&g.arena);
    }
    print_message("min-nodes: better than all plain heuristics in %d of %d\n", better, total);
}

static void heuristics_are_close_to_the_best(void **state)
{
    (void)state;
    int reached = 0;
    const int total = repeats(1000);
    for (int i = 0; i < total; i++) {
        large g;
        bool found, best[LARGE] = {false};
        cs_labels labels;
        draw_large(&g, 6000000 + (uint64_t)i, 5 + (uint32_t)i % 7, i % 3 == 0);
        g.opts.min_nodes = 2 + (int64_t)below(3);
        assert_int_equal(cs_demote(&g.w, &g.a, &g.arena, g.demote, &g.labels, &err), CUTSET_OK);
        check_large(&g);
        const uint64_t kept_now = counted_after(&g);
        assert_true(cs_labels_init(&labels, &g.a, &g.arena));
        assert_int_equal(
            cs_small_plan(&g.w, &g.a, NULL, 0, &g.arena, best, &labels, &found, &err), CUTSET_OK);
        memcpy(g.demote, best, sizeof best);
        assert_true(found && kept_now <= counted_after(&g));
        reached += kept_now == counted_after(&g);
        cs_arena_fini(&g.arena);
    }
    print_message("min-nodes: the heuristics alone keep the most in %d of %d\n", reached, total);
    assert_true(reached * 1000 >= total * 995);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_are_large_enough_and_keep_the_most),
        cmocka_unit_test(few_engines_keep_the_most),
        cmocka_unit_test(both_at_once),
        cmocka_unit_test(with_budgets_targets_and_connected),
        cmocka_unit_test(heuristics_are_no_worse_than_the_plain_ones),
        cmocka_unit_test(heuristics_are_close_to_the_best),
    };
    return cmocka_run_group_tests(tests, make_targets, free_targets);
}
