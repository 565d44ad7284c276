/* The best plan of a small graph, by dynamic programming over the sets of atoms that are done.
 *
 * A plan is a sequence of parts, each closed under "what it needs is done": an engine of one
 * target that is large enough, fits the budget and, if asked, is connected; or a host part, of
 * host atoms and of those that leave their accelerator; an exempt atom leaves it only for the
 * limit. Best: most counted nodes kept, then fewest engines (the other way round for all nodes
 * when only their number is limited), then fewest parts. Exact for every option at once, where the
 * rest of plan/ has heuristics (theory: 5.2, 3.1).
 *
 * Cost: 3^n steps for n atoms, times the limit on engines; up to ATOMS atoms.
 */
#include "plan/work.h"

#define ATOMS 12
#define STORAGES 4096 /* in the atoms together */

typedef struct value {
    int64_t counted, nodes; /* kept on accelerators */
    uint32_t engines, parts;
    uint32_t first; /* kept atoms as bits, the first highest: ties go by node order */
    uint32_t last;  /* the part that was added last; 0: not reached */
    bool engine;    /* it is one */
} value;

typedef struct table {
    const cs_work *w;
    const cs_atoms *a;
    const cs_costs *c; /* NULL: no budget */
    uint32_t all;
    uint32_t limit;      /* on engines; 0: none, and one column */
    uint32_t *needs;     /* by set: what must be done before */
    uint32_t *near;      /* by atom: neighbours */
    bool *engine, *host; /* by set: can it be such a part? */
    int64_t *counted, *nodes;
    uint32_t *stamp; /* by storage: the set that has it */
    value *best;     /* by set and engines */
} table;

static bool is_connected(const table *t, uint32_t set)
{
    uint32_t reached = set & (0 - set), before = 0;
    while (reached != before) {
        before = reached;
        for (uint32_t v = 0; v < t->a->n; v++)
            if (reached >> v & 1) reached |= t->near[v] & set;
    }
    return reached == set;
}

/* As packing has it: within the budget, or one atom over it and nothing that adds to it. */
static bool fits(const table *t, uint32_t set, int32_t target)
{
    const cs_costs *c = t->c;
    cs_need all = {0, 0};
    uint32_t over = 0, large = 0;
    for (uint32_t v = 0; v < t->a->n; v++) {
        if (!(set >> v & 1)) continue;
        if (t->a->oversized[v]) over++, large = v;
        for (uint32_t i = c->row[v]; i < c->row[v + 1]; i++) {
            if (t->stamp[c->storage[i]] == set) continue;
            t->stamp[c->storage[i]] = set;
            all = cs_need_add(c, target, all, c->storage[i]);
        }
    }
    if (!over) return cs_need_fits(c, target, all);
    const cs_need own = cs_need_of(c, t->a, large);
    return over == 1 && all.host == own.host && all.device == own.device;
}

static void describe(table *t, uint32_t set)
{
    const cs_atoms *a = t->a;
    const int32_t target = a->target[__builtin_ctz(set)];
    bool exempt = false, alike = true;
    t->host[set] = true;
    for (uint32_t v = 0; v < a->n; v++) {
        if (!(set >> v & 1)) continue;
        alike &= a->target[v] == target;
        exempt |= a->exempt[v];
        t->host[set] &= !a->pinned[v] && (t->limit || !a->exempt[v]);
        t->counted[set] += a->counted[v];
        t->nodes[set] += cs_atom_size(a, v);
        for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++)
            t->needs[set] |= (1u << a->pred_of[i]) & ~set;
    }
    t->engine[set] =
        alike && target != CS_HOST && (exempt || t->counted[set] >= t->w->opts->min_nodes) &&
        (!t->c || fits(t, set, target)) && (!t->w->opts->connected || is_connected(t, set));
}

static bool better(const table *t, const value *x, const value *y)
{
    if (!y->last) return true;
    if (x->counted != y->counted) return x->counted > y->counted;
    const bool engines_first = t->w->opts->min_nodes > 0;
    if (engines_first && x->engines != y->engines) return x->engines < y->engines;
    if (x->nodes != y->nodes) return x->nodes > y->nodes;
    if (x->engines != y->engines) return x->engines < y->engines;
    return x->parts != y->parts ? x->parts < y->parts : x->first > y->first;
}

static void offer(table *t, uint32_t done, uint32_t set, const value *from, bool engine)
{
    value v = *from;
    v.last = set, v.engine = engine, v.parts++;
    if (engine) {
        v.engines++;
        v.counted += t->counted[set], v.nodes += t->nodes[set];
        for (uint32_t i = 0; i < t->a->n; i++)
            v.first |= (set >> i & 1) << (t->a->n - 1 - i);
    }
    if (t->limit && v.engines > t->limit) return;
    value *to = &t->best[(size_t)(done | set) * (t->limit + 1) + (t->limit ? v.engines : 0)];
    if (better(t, &v, to)) *to = v;
}

static void search(table *t)
{
    for (uint32_t done = 0; done < t->all; done++)
        for (uint32_t k = 0; k <= t->limit; k++) {
            const value *from = &t->best[(size_t)done * (t->limit + 1) + k];
            if (done ? !from->last : k > 0) continue;
            const uint32_t rest = t->all & ~done;
            for (uint32_t set = rest; set; set = (set - 1) & rest) {
                if (t->needs[set] & ~done) continue;
                if (t->engine[set]) offer(t, done, set, from, true);
                if (t->host[set]) offer(t, done, set, from, false);
            }
        }
}

static bool table_init(table *t, cs_arena *arena)
{
    const uint32_t n = t->a->n;
    const size_t sets = (size_t)t->all + 1;
    t->needs = cs_arena_zalloc(arena, sets, sizeof *t->needs);
    t->near = cs_arena_zalloc(arena, n, sizeof *t->near);
    t->engine = cs_arena_zalloc(arena, sets, sizeof *t->engine);
    t->host = cs_arena_zalloc(arena, sets, sizeof *t->host);
    t->counted = cs_arena_zalloc(arena, sets, sizeof *t->counted);
    t->nodes = cs_arena_zalloc(arena, sets, sizeof *t->nodes);
    t->stamp = t->c ? cs_arena_zalloc(arena, t->c->n_storages, sizeof *t->stamp) : NULL;
    t->best = cs_arena_zalloc(arena, sets * (t->limit + 1), sizeof *t->best);
    if (!t->needs || !t->near || !t->engine || !t->host || !t->counted || !t->nodes ||
        (t->c && !t->stamp) || !t->best)
        return false;
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t i = t->a->pred[v]; i < t->a->pred[v + 1]; i++) {
            t->near[v] |= 1u << t->a->pred_of[i];
            t->near[t->a->pred_of[i]] |= 1u << v;
        }
    for (uint32_t set = 1; set <= t->all; set++)
        describe(t, set);
    return true;
}

/* Follows the best value back and numbers the engines. */
static bool read_back(const table *t, bool *demote, cs_labels *labels)
{
    const value *end = NULL;
    for (uint32_t k = 0; k <= t->limit; k++) {
        const value *v = &t->best[(size_t)t->all * (t->limit + 1) + k];
        if (v->last && (!end || better(t, v, end))) end = v;
    }
    if (!end) return false;
    uint32_t done = t->all, engine = end->engines;
    labels->engines = engine;
    for (const value *v = end; done;) {
        for (uint32_t i = 0; i < t->a->n; i++) {
            if (!(v->last >> i & 1)) continue;
            labels->slot[i] = v->engine ? engine : 0;
            demote[i] = !v->engine && t->a->target[i] != CS_HOST;
        }
        engine -= v->engine;
        done &= ~v->last;
        v = &t->best[(size_t)done * (t->limit + 1) + (t->limit ? engine : 0)];
    }
    return true;
}

bool cs_small_is(const cs_atoms *a, const cs_costs *c)
{
    return a->n && a->n <= ATOMS && (!c || c->row[a->n] <= STORAGES);
}

cutset_status cs_small_plan(const cs_work *w, const cs_atoms *a, const cs_costs *c,
                            uint32_t max_engines, cs_arena *arena, bool *demote, cs_labels *labels,
                            bool *found, cutset_error *err)
{
    const cs_arena_mark mark = cs_arena_note(arena);
    table t = {.w = w, .a = a, .c = c, .all = (1u << a->n) - 1};
    t.limit = max_engines < a->n ? max_engines : 0;
    if (!table_init(&t, arena)) return cs_fail_memory(err);
    search(&t);
    *found = read_back(&t, demote, labels);
    cs_arena_release(arena, mark);
    return CUTSET_OK;
}
