/* Plans against brute force on small random graphs.
 *
 * The oracle is a dynamic program over the sets of nodes that are done: a part is any set of
 * remaining nodes of one target whose predecessors are done or in it, that keeps groups whole and
 * fits the budget. It knows nothing of levels, packing or bounds. Sizes: up to 9 nodes, 3^9 steps.
 * Everything is seeded; CUTSET_LONG=1 looks at ten times as many graphs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "graph/graph.h"
#include "plan/plan.h"

#define SPLITMIX
#include "random.h"

#define MAX_NODES 9
#define MAX_WEIGHTS 6

/* ---- a random case ---- */

typedef struct sample {
    int n, n_weights, n_targets;
    int target[MAX_NODES];               /* -1 host */
    uint32_t pred[MAX_NODES];            /* bit sets */
    bool by_order[MAX_NODES][MAX_NODES]; /* the edge is an order edge */
    uint32_t weights[MAX_NODES];
    int64_t size[MAX_WEIGHTS];
    int group[MAX_NODES]; /* 0 none */
    int64_t budget, min_nodes;
    bool keep_oversized;
    int line[MAX_NODES]; /* node ids by position in the file */
} sample;

static sample random_sample(bool weights, bool groups, int n_targets)
{
    sample s = {.n = 1 + (int)below(MAX_NODES), .n_targets = n_targets};
    uint32_t density = 1 + below(4);
    for (int v = 0; v < s.n; v++) {
        s.target[v] = (int)below((uint32_t)n_targets + 1) - 1;
        if (below(3) == 0) s.target[v] = 0;
        for (int u = 0; u < v; u++)
            if (below(6) < density) {
                s.pred[v] |= 1u << u;
                s.by_order[u][v] = below(8) == 0;
            }
        s.line[v] = v;
    }
    if (weights) {
        s.n_weights = 1 + (int)below(MAX_WEIGHTS);
        for (int i = 0; i < s.n_weights; i++)
            s.size[i] = 4 * (1 + (int64_t)below(10));
        for (int v = 0; v < s.n; v++)
            for (int i = 0; i < s.n_weights; i++)
                if (below(3) == 0) s.weights[v] |= 1u << i;
    }
    for (int v = 0; groups && v < s.n; v++)
        s.group[v] = below(3) == 0 ? 1 + (int)below(2) : 0;
    return s;
}

static void shuffle_lines(sample *s)
{
    for (int i = s->n - 1; i > 0; i--) {
        int k = (int)below((uint32_t)i + 1), x = s->line[i];
        s->line[i] = s->line[k], s->line[k] = x;
    }
}

static size_t add(char *text, size_t len, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text + len, size - len, format, args);
    va_end(args);
    assert_true(n >= 0 && len + (size_t)n < size);
    return len + (size_t)n;
}

static void write_text(const sample *s, char *text, size_t size)
{
    size_t len = add(text, 0, size, "input %%in : f32[1]\n");
    for (int i = 0; i < s->n_weights; i++)
        len = add(text, len, size, "weight %%w%d : f32[%d]\n", i, (int)(s->size[i] / 4));
    for (int k = 0; k < s->n; k++) {
        int v = s->line[k];
        len = add(text, len, size, "%%n%d : f32[1] = Op(%%in", v);
        for (int u = 0; u < v; u++)
            if (s->pred[v] >> u & 1 && !s->by_order[u][v]) len = add(text, len, size, ", %%n%d", u);
        for (int i = 0; i < s->n_weights; i++)
            if (s->weights[v] >> i & 1) len = add(text, len, size, ", %%w%d", i);
        len = add(text, len, size, ")");
        if (s->target[v] < 0)
            len = add(text, len, size, " @host\n");
        else
            len = add(text, len, size, " @t%d,host\n", s->target[v]);
    }
    for (int v = 0; v < s->n; v++)
        for (int u = 0; u < v; u++)
            if (s->pred[v] >> u & 1 && s->by_order[u][v])
                len = add(text, len, size, "order %%n%d -> %%n%d\n", u, v);
    for (int g = 1; g <= 2; g++) {
        int count = 0;
        for (int v = 0; v < s->n; v++)
            count += s->group[v] == g;
        if (!count) continue;
        len = add(text, len, size, "group g%d {", g);
        for (int v = 0; v < s->n; v++)
            if (s->group[v] == g) len = add(text, len, size, " %%n%d", v);
        len = add(text, len, size, " }\n");
    }
    for (int v = 0; v < s->n; v++)
        len = add(text, len, size, "output %%n%d\n", v);
}

/* ---- the plan ---- */

static const cutset_target *targets[3];

static int make_targets(void **state)
{
    (void)state;
    for (int t = 0; t < 3; t++) { /* `acc` under three names */
        cutset_target *made;
        if (cutset_target_open(&made, "acc", NULL)) return -1;
        made->name[0] = 't', made->name[1] = (char)('0' + t), made->name[2] = 0;
        targets[t] = made;
    }
    return 0;
}

static int free_targets(void **state)
{
    (void)state;
    for (int t = 0; t < 3; t++)
        cutset_target_free((cutset_target *)targets[t]);
    return 0;
}

static cutset_status plan_sample(const sample *s, cutset_plan **plan, cs_graph **graph,
                                 cutset_error *err)
{
    static char text[20000];
    write_text(s, text, sizeof text);
    *plan = NULL;
    assert_int_equal(cs_text_read(graph, cs_span_of(text), NULL, err), CUTSET_OK);
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    opts.host_memory = s->budget;
    opts.min_nodes = s->min_nodes;
    if (s->keep_oversized) opts.oversize = CUTSET_OVERSIZE_KEEP;
    cs_plan_source source = {.graph = *graph, .hash = 1};
    return cs_plan_make(plan, &source, targets, (size_t)s->n_targets, &opts, err);
}

static int number_of(const cutset_plan *plan, cs_str label)
{
    cs_span name = cs_strtab_get(&plan->names, label);
    return atoi(name.at + 1);
}

static int64_t bytes_of(const sample *s, uint32_t nodes)
{
    uint32_t weights = 0;
    int64_t sum = 0;
    for (int v = 0; v < s->n; v++)
        if (nodes >> v & 1) weights |= s->weights[v];
    for (int i = 0; i < s->n_weights; i++)
        if (weights >> i & 1) sum += s->size[i];
    return sum;
}

/* Checks that the parts are a valid plan of the sample with targets `target`; fills these in. */
static void check_parts(const sample *s, const cutset_plan *plan, int *target)
{
    uint32_t done = 0;
    uint32_t engines = 0;
    int last = -2;
    for (size_t p = 0; p < plan->parts.len; p++) {
        const cs_part *part = &plan->parts.at[p];
        uint32_t nodes = 0;
        for (uint32_t i = 0; i < part->n_node; i++) {
            int v = number_of(plan, plan->node_label.at[part->node + i]);
            assert_false(done >> v & 1);
            assert_int_equal(s->pred[v] & ~done, 0); /* in execution order, parts in order */
            done |= 1u << v;
            nodes |= 1u << v;
            target[v] = part->target;
        }
        assert_true(nodes != 0);
        assert_false(part->target == -1 && last == -1); /* no two host parts in a row */
        last = part->target;
        for (int v = 0; v < s->n; v++) /* groups whole */
            for (int u = 0; u < s->n; u++)
                if (s->group[u] && s->group[u] == s->group[v])
                    assert_int_equal(nodes >> u & 1, nodes >> v & 1);
        if (part->target < 0) continue;
        engines++;
        assert_int_equal(part->weight_bytes, bytes_of(s, nodes));
        if (s->budget && !part->oversized) assert_true(bytes_of(s, nodes) <= s->budget);
    }
    assert_int_equal(done, (1u << s->n) - 1);
    assert_int_equal(engines, plan->engines);
    assert_true(plan->engines_bound <= plan->engines);
}

/* ---- the oracle ---- */

typedef struct cost {
    uint32_t engines, parts;
} cost;

static bool better(cost a, cost b)
{
    return a.engines != b.engines ? a.engines < b.engines : a.parts < b.parts;
}

/* May `set` be a part after `done`? Atoms: nodes of one class stay together. */
static bool is_part(const sample *s, const int *target, const uint32_t *class, uint32_t done,
                    uint32_t set)
{
    int t = -2;
    uint32_t over = 0;
    for (int v = 0; v < s->n; v++) {
        if (!(set >> v & 1)) continue;
        if ((t != -2 && target[v] != t) || (s->pred[v] & ~(done | set)) || (class[v] & ~set))
            return false;
        t = target[v];
        if (t >= 0 && s->budget && bytes_of(s, class[v]) > s->budget) over |= class[v];
    }
    if (t < 0 || !s->budget || bytes_of(s, set) <= s->budget) return true;
    /* one atom over the budget, and nothing that adds to it */
    for (int v = 0; v < s->n; v++)
        if (over >> v & 1) return over == class[v] && bytes_of(s, set) == bytes_of(s, class[v]);
    return false;
}

static cost brute_force(const sample *s, const int *target, const uint32_t *class)
{
    static cost best[1 << MAX_NODES];
    uint32_t all = (1u << s->n) - 1;
    for (uint32_t d = 1; d <= all; d++)
        best[d] = (cost){1000, 1000};
    best[0] = (cost){0, 0};
    for (uint32_t d = 0; d < all; d++) {
        if (best[d].engines == 1000) continue;
        uint32_t rest = all & ~d;
        for (uint32_t set = rest; set; set = (set - 1) & rest) {
            cost c = best[d];
            if (!is_part(s, target, class, d, set)) continue;
            bool engine = target[__builtin_ctz(set)] >= 0;
            c.engines += engine;
            c.parts++;
            if (better(c, best[d | set])) best[d | set] = c;
        }
    }
    return best[all];
}

/* Classes: groups, then whatever lies on a cycle through a class (by reachability, repeated). */
static void make_classes(const sample *s, uint32_t *class)
{
    for (int v = 0; v < s->n; v++) {
        class[v] = 1u << v;
        for (int u = 0; u < s->n; u++)
            if (s->group[v] && s->group[u] == s->group[v]) class[v] |= 1u << u;
    }
    for (bool changed = true; changed;) {
        uint32_t reach[MAX_NODES];
        changed = false;
        for (int v = 0; v < s->n; v++) {
            reach[v] = 0;
            for (int u = 0; u < s->n; u++)
                for (int k = 0; k < s->n; k++)
                    if (class[v] >> k & 1 && s->pred[u] >> k & 1 && !(class[v] >> u & 1))
                        reach[v] |= class[u];
        }
        for (int round = 0; round < s->n; round++)
            for (int v = 0; v < s->n; v++)
                for (int u = 0; u < s->n; u++)
                    if (reach[v] >> u & 1) reach[v] |= reach[u];
        for (int v = 0; v < s->n; v++)
            for (int u = 0; u < s->n; u++)
                if (reach[v] >> u & 1 && reach[u] & class[v] && (class[u] & ~class[v])) {
                    uint32_t both = class[u] | class[v];
                    for (int k = 0; k < s->n; k++)
                        if (both >> k & 1) class[k] = both;
                    changed = true;
                }
    }
}

/* ---- the tests ---- */

static void engines_and_parts_are_minimal(void **state)
{
    (void)state;
    for (int i = 0; i < repeats(5000); i++) {
        seed = (uint64_t)i;
        sample s = random_sample(below(2), false, 1);
        uint32_t class[MAX_NODES];
        cutset_plan *plan;
        cs_graph *graph;
        cutset_error err;
        assert_int_equal(plan_sample(&s, &plan, &graph, &err), CUTSET_OK);
        int target[MAX_NODES];
        check_parts(&s, plan, target);
        assert_memory_equal(target, s.target, (size_t)s.n * sizeof *target);
        make_classes(&s, class);
        cost best = brute_force(&s, target, class);
        assert_int_equal(plan->engines, best.engines);
        assert_int_equal(plan->parts.len, best.parts);
        assert_int_equal(plan->engines_bound, best.engines);
        cutset_plan_free(plan);
        cs_graph_free(graph);

        shuffle_lines(&s); /* the same counts whatever the order of the file */
        assert_int_equal(plan_sample(&s, &plan, &graph, &err), CUTSET_OK);
        assert_int_equal(plan->engines, best.engines);
        assert_int_equal(plan->parts.len, best.parts);
        cutset_plan_free(plan);
        cs_graph_free(graph);
    }
}

static void groups_are_optimal(void **state)
{
    (void)state;
    for (int i = 0; i < repeats(3000); i++) {
        seed = 1000000 + (uint64_t)i;
        sample s = random_sample(false, true, 1);
        uint32_t class[MAX_NODES];
        make_classes(&s, class);
        cutset_plan *plan;
        cs_graph *graph;
        cutset_error err;
        assert_int_equal(plan_sample(&s, &plan, &graph, &err), CUTSET_OK);
        int target[MAX_NODES];
        check_parts(&s, plan, target);
        for (int v = 0; v < s.n; v++) {
            int want = s.target[v]; /* a class with a host node goes to the host whole */
            for (int u = 0; u < s.n; u++)
                if (class[v] >> u & 1 && s.target[u] < 0) want = -1;
            assert_int_equal(target[v], want);
        }
        cost best = brute_force(&s, target, class);
        assert_int_equal(plan->engines, best.engines);
        assert_int_equal(plan->parts.len, best.parts);
        assert_int_equal(plan->engines_bound, best.engines);
        cutset_plan_free(plan);
        cs_graph_free(graph);
    }
}

static void budgets_hold_and_bounds_are_valid(void **state)
{
    int reached = 0, proved = 0, total = repeats(3000);
    (void)state;
    for (int i = 0; i < total; i++) {
        seed = 2000000 + (uint64_t)i;
        sample s = random_sample(true, below(4) == 0, 1);
        s.budget = 4 * (4 + (int64_t)below(30));
        s.keep_oversized = true;
        uint32_t class[MAX_NODES];
        make_classes(&s, class);
        cutset_plan *plan;
        cs_graph *graph;
        cutset_error err;
        assert_int_equal(plan_sample(&s, &plan, &graph, &err), CUTSET_OK);
        int target[MAX_NODES];
        check_parts(&s, plan, target);
        cost best = brute_force(&s, target, class);
        assert_true(plan->engines >= best.engines);
        assert_true(plan->engines_bound <= best.engines);
        reached += plan->engines == best.engines;
        proved += plan->engines == plan->engines_bound;
        cutset_plan_free(plan);
        cs_graph_free(graph);
    }
    print_message("packing: %d of %d optimal, %d proved\n", reached, total, proved);
    assert_true(reached * 100 >= total * 98);
}

static void several_targets_are_valid(void **state)
{
    int reached = 0, total = repeats(1500);
    (void)state;
    for (int i = 0; i < total; i++) {
        seed = 3000000 + (uint64_t)i;
        sample s = random_sample(below(2), false, 2 + (int)below(2));
        if (s.n_weights && below(2)) {
            s.budget = 4 * (10 + (int64_t)below(30));
            s.keep_oversized = true;
        }
        uint32_t class[MAX_NODES];
        make_classes(&s, class);
        cutset_plan *plan;
        cs_graph *graph;
        cutset_error err;
        assert_int_equal(plan_sample(&s, &plan, &graph, &err), CUTSET_OK);
        int target[MAX_NODES];
        check_parts(&s, plan, target);
        assert_memory_equal(target, s.target, (size_t)s.n * sizeof *target);
        cost best = brute_force(&s, target, class);
        assert_true(plan->engines >= best.engines);
        assert_true(plan->engines_bound <= best.engines);
        reached += plan->engines == best.engines;
        cutset_plan_free(plan);
        cs_graph_free(graph);
    }
    print_message("several targets: %d of %d optimal\n", reached, total);
    assert_true(reached * 100 >= total * 95);
}

static int kept_nodes(const sample *s, const int *target)
{
    int n = 0;
    for (int v = 0; v < s->n; v++)
        n += target[v] >= 0;
    return n;
}

static uint32_t smallest_engine(const cutset_plan *plan)
{
    uint32_t least = UINT32_MAX;
    for (size_t p = 0; p < plan->parts.len; p++)
        if (plan->parts.at[p].target >= 0 && plan->parts.at[p].n_node < least)
            least = plan->parts.at[p].n_node;
    return least;
}

/* Can these targets be met with engines of at least min_nodes each? */
static bool large_enough(const sample *s, const int *target)
{
    static bool ok[1 << MAX_NODES];
    uint32_t all = (1u << s->n) - 1, class[MAX_NODES];
    for (int v = 0; v < s->n; v++)
        class[v] = 1u << v;
    memset(ok, 0, sizeof ok);
    ok[0] = true;
    for (uint32_t d = 0; d < all; d++) {
        uint32_t rest = all & ~d;
        for (uint32_t set = rest; ok[d] && set; set = (set - 1) & rest) {
            if (!is_part(s, target, class, d, set)) continue;
            if (target[__builtin_ctz(set)] < 0 || __builtin_popcount(set) >= s->min_nodes)
                ok[d | set] = true;
        }
    }
    return ok[all];
}

static void min_nodes_keeps_the_most(void **state)
{
    int reached = 0, total = repeats(300);
    (void)state;
    for (int i = 0; i < total; i++) {
        seed = 4000000 + (uint64_t)i;
        sample s = random_sample(false, false, 1);
        s.min_nodes = 2 + (int64_t)below(3);
        cutset_plan *plan;
        cs_graph *graph;
        cutset_error err;
        assert_int_equal(plan_sample(&s, &plan, &graph, &err), CUTSET_OK);
        int target[MAX_NODES], most = 0;
        check_parts(&s, plan, target);
        assert_true(smallest_engine(plan) >= s.min_nodes);
        for (int v = 0; v < s.n; v++)
            assert_true(target[v] < 0 || s.target[v] >= 0);
        for (uint32_t keep = 0; keep < 1u << s.n; keep++) {
            int chosen[MAX_NODES];
            for (int v = 0; v < s.n; v++)
                chosen[v] = keep >> v & 1 ? s.target[v] : -1;
            if (kept_nodes(&s, chosen) > most && large_enough(&s, chosen))
                most = kept_nodes(&s, chosen);
        }
        assert_true(kept_nodes(&s, target) <= most);
        reached += kept_nodes(&s, target) == most;
        cutset_plan_free(plan);
        cs_graph_free(graph);
    }
    print_message("min-nodes: %d of %d keep the most nodes\n", reached, total);
    assert_true(reached * 100 >= total * 98);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_and_parts_are_minimal),
        cmocka_unit_test(groups_are_optimal),
        cmocka_unit_test(budgets_hold_and_bounds_are_valid),
        cmocka_unit_test(several_targets_are_valid),
        cmocka_unit_test(min_nodes_keeps_the_most),
    };
    return cmocka_run_group_tests(tests, make_targets, free_targets);
}
