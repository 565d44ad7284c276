/* The heuristics of --min-nodes (demote.c), which larger graphs get: never worse than the plain
 * ones of theory 5.2, written anew here with ties the other way, and as good as the best plan on
 * small graphs. Everything is seeded; CUTSET_LONG=1 looks at ten times as many graphs.
 */
#include "graph_build.h"
#include "plan/work.h"

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

/* With what was demoted on the host nothing more is, unless it does not count and saves an
 * engine. */
static void is_settled(large *g)
{
    bool more[LARGE] = {false};
    const uint32_t engines = g->labels.engines;
    int32_t *before = g->a.target, target[LARGE];
    for (uint32_t v = 0; v < g->a.n; v++)
        target[v] = g->demote[v] ? CS_HOST : before[v];
    g->a.target = target;
    assert_int_equal(cs_demote(&g->w, &g->a, &g->arena, more, &g->labels, &err), CUTSET_OK);
    bool some = false;
    for (uint32_t v = 0; v < g->a.n; v++) {
        assert_false(more[v] && g->a.counted[v]);
        some |= more[v];
    }
    assert_true(some ? g->labels.engines < engines : g->labels.engines == engines);
    g->a.target = before;
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

/* Theory 5.2, H2: slots in order, what must go first, then the earliest deadline up to the least
 * size; of the first slot that stays short what is critical goes. */
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
                if (target[v] != CS_HOST && slot[v] == bad &&
                    (all || l.lam[v] + l.mu[v] == l.r + 1)) {
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
        check_large(&g);
        is_settled(&g);
        const uint64_t plain[3] = {by_levels(&g, false), by_levels(&g, true), by_filling(&g)};
        for (int k = 0; k < 3; k++)
            if (kept_now < plain[k])
                fail_msg("sample %d: %d nodes kept, plain heuristic %d keeps %d", i, (int)kept_now,
                         k, (int)plain[k]);
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
        assert_int_equal(cs_small_plan(&g.w, &g.a, NULL, 0, &g.arena, best, &labels, &found, &err),
                         CUTSET_OK);
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
        cmocka_unit_test(heuristics_are_no_worse_than_the_plain_ones),
        cmocka_unit_test(heuristics_are_close_to_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
