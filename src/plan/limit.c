/* --max-engines M: which engine atoms go to the host so that M engines are enough, at the least
 * loss.
 *
 * Without a budget and for one accelerator this is a minimum cut (theory: 5.1): a plan is a
 * monotone label for each atom, 0 .. 2M, odd in engines; the vertex (v, k) stands for "the label
 * of v is at least k"; an edge u -> v of the graph lets (u, k) imply (v, k); staying on the host
 * costs an atom what it is worth. Only what lies on a path from source to sink matters, and that
 * is a window of k for each atom, from the levels: (v, 2j) is reached by j stretches and hosts
 * before v, and reaches the sink by M + 1 - j stretches from v on. Atoms on no path of M + 1
 * stretches have none. The two vertices of a host atom that imply each other are one.
 *
 * An atom is worth its counted nodes, then its nodes; a pinned one may not go. The cut is exact up
 * to VERTICES, ARCS and STEPS; beyond, the best M of the early, late or fewest-part engines stay,
 * and what fits into them (promote.c).
 */
#include <stdio.h>
#include <string.h>

#include "plan/work.h"

#define VERTICES (1u << 22)
#define ARCS (1u << 22)
#define STEPS (UINT64_C(1) << 26)
#define NODES (1u << 30) /* more could overflow a sum of worths */
#define NAMED 6          /* pinned nodes that a message lists */

/* Kept counted nodes first, then nodes. */
static int64_t worth(const cs_work *w, const cs_atoms *a, uint32_t v)
{
    return (int64_t)a->counted[v] * ((int64_t)w->n_nodes + 1) + cs_atom_size(a, v);
}

/* ---- what pinned atoms need by themselves ---- */

/* Most engines that pinned atoms need on one path, other engine atoms taken to run where they do
 * not matter. State 2v: the last stretch is closed by a host atom; 2v + 1: it is open, and holds a
 * pinned atom. count[state]: closed stretches. */
typedef struct chain {
    uint32_t *count, *back; /* by state; count CS_NONE: not reached, back CS_NONE: begins here */
    uint32_t engines, end;
} chain;

static void reach(chain *c, uint32_t state, uint32_t count, uint32_t back)
{
    if (c->count[state] != CS_NONE && c->count[state] >= count) return;
    c->count[state] = count;
    c->back[state] = back;
}

static bool pinned_chain(const cs_atoms *a, cs_arena *arena, chain *c)
{
    *c = (chain){.count = cs_arena_alloc(arena, (size_t)a->n * 2, sizeof *c->count),
                 .back = cs_arena_alloc(arena, (size_t)a->n * 2, sizeof *c->back)};
    if (!c->count || !c->back) return false;
    for (uint32_t v = 0; v < a->n; v++) {
        const bool host = a->target[v] == CS_HOST;
        c->count[2 * v] = 0, c->back[2 * v] = CS_NONE;
        c->count[2 * v + 1] = CS_NONE;
        for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++) {
            const uint32_t closed = 2 * a->pred_of[i], open = closed + 1;
            reach(c, 2 * v, c->count[closed], closed);
            if (c->count[open] != CS_NONE)
                reach(c, host ? 2 * v : 2 * v + 1, c->count[open] + host, open);
        }
        if (a->pinned[v]) reach(c, 2 * v + 1, c->count[2 * v], 2 * v);
        const uint32_t open = c->count[2 * v + 1];
        if (open != CS_NONE && open + 1 > c->engines) c->engines = open + 1, c->end = 2 * v + 1;
    }
    return true;
}

static cutset_status refuse(const cs_work *w, const cs_atoms *a, const chain *c, cutset_error *err)
{
    char names[600] = "";
    uint32_t shown = 0;
    for (uint32_t state = c->end; state != CS_NONE && shown < NAMED; state = c->back[state]) {
        const uint32_t v = state / 2;
        if (!(state & 1) || c->back[state] != 2 * v) continue; /* no stretch begins here */
        uint32_t i = a->first[v];
        while (!w->pinned[a->node[i]])
            i++;
        char buffer[16], before[sizeof names];
        const cs_span label = cs_node_label(w->g, a->node[i], buffer);
        memcpy(before, names, sizeof names);
        snprintf(names, sizeof names, "%%%.*s%s%.500s", (int)(label.len < 80 ? label.len : 80),
                 label.at, shown ? ", " : "", before);
        shown++;
    }
    return cs_fail(err, CUTSET_NO,
                   "--max-engines %lld: pinned nodes on one path with host nodes between need %u "
                   "engines (%s%s): raise it to %u, or pin fewer",
                   (long long)w->opts->max_engines, c->engines, c->engines > shown ? "..., " : "",
                   names, c->engines);
}

/* ---- the network ---- */

typedef struct window {
    uint32_t vertex; /* of entry `low` */
    uint32_t low, n;
} window;

typedef struct network {
    const cs_work *w;
    const cs_atoms *a;
    const cs_levels *l;
    uint32_t m;        /* engines allowed */
    uint32_t *closed;  /* by engine atom: most stretches before it that a host atom ends */
    window *even;      /* by atom: (v, 2j); of a host atom also (v, 2j - 1) */
    window *odd;       /* by engine atom: (v, 2j + 1) */
    uint64_t vertices; /* 0 the source, 1 the sink */
    cs_flow *flow;     /* NULL: arcs are only counted */
    uint64_t arcs;
} network;

static window open_window(network *net, int64_t low, int64_t high)
{
    const window win = {(uint32_t)net->vertices, (uint32_t)low,
                        high < low ? 0 : (uint32_t)(high - low + 1)};
    net->vertices += win.n;
    return net->vertices > VERTICES ? (window){0} : win;
}

static bool set_windows(network *net, cs_arena *arena)
{
    const cs_atoms *a = net->a;
    const int64_t m = net->m;
    net->closed = cs_arena_zalloc(arena, a->n, sizeof *net->closed);
    net->even = cs_arena_zalloc(arena, a->n, sizeof *net->even);
    net->odd = cs_arena_zalloc(arena, a->n, sizeof *net->odd);
    if (!net->closed || !net->even || !net->odd) return false;
    net->vertices = 2;
    for (uint32_t v = 0; v < a->n; v++) {
        const int64_t low = m + 1 - (int64_t)net->l->mu[v], lam = net->l->lam[v];
        const int64_t least = low > 1 ? low : 1;
        if (a->target[v] == CS_HOST) {
            net->even[v] = open_window(net, least, lam < m ? lam : m);
            continue;
        }
        for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++) {
            const uint32_t u = a->pred_of[i];
            const uint32_t here = a->target[u] == CS_HOST ? net->l->lam[u] : net->closed[u];
            if (here > net->closed[v]) net->closed[v] = here;
        }
        net->even[v] = open_window(net, least, net->closed[v] < m ? net->closed[v] : m);
        net->odd[v] = open_window(net, low > 0 ? low : 0, lam < m ? lam - 1 : m - 1);
    }
    return true;
}

static void arc(network *net, uint32_t from, uint32_t to, int64_t capacity)
{
    net->arcs++;
    if (net->flow) cs_flow_arc(net->flow, from, to, capacity);
}

/* Entry j of `from` implies entry j + shift of `to`, where both are there. */
static void imply(network *net, const window *from, const window *to, uint32_t shift)
{
    const uint64_t low = (uint64_t)from->low + shift, high = low + from->n;
    const uint64_t first = low > to->low ? low : to->low;
    const uint64_t end = (uint64_t)to->low + to->n < high ? (uint64_t)to->low + to->n : high;
    if (!net->flow) net->arcs += end > first ? end - first : 0;
    for (uint64_t j = first; net->flow && j < end; j++)
        arc(net, from->vertex + (uint32_t)(j - low), to->vertex + (uint32_t)(j - to->low),
            CS_FLOW_INF);
}

/* Staying on the host at position 2j costs the atom: an arc from (v, 2j) to (v, 2j + 1). `take`
 * gets every such arc in order. */
typedef void (*cost_fn)(network *net, void *payload, uint32_t atom, uint32_t from, uint32_t to);

static void each_cost(network *net, cost_fn take, void *payload)
{
    for (uint32_t v = 0; v < net->a->n; v++) {
        const int64_t low = (int64_t)net->m + 1 - (int64_t)net->l->mu[v];
        if (net->a->target[v] == CS_HOST) continue;
        for (uint64_t j = low > 0 ? (uint64_t)low : 0; j <= net->m && j <= net->closed[v]; j++) {
            const window *e = &net->even[v], *o = &net->odd[v];
            take(net, payload, v, j ? e->vertex + (uint32_t)(j - e->low) : 0,
                 j < net->m ? o->vertex + (uint32_t)(j - o->low) : 1);
        }
    }
}

static void add_cost(network *net, void *payload, uint32_t atom, uint32_t from, uint32_t to)
{
    (void)payload;
    arc(net, from, to, net->a->pinned[atom] ? CS_FLOW_INF : worth(net->w, net->a, atom));
}

static void add_arcs(network *net)
{
    const cs_atoms *a = net->a;
    net->arcs = 0;
    each_cost(net, add_cost, NULL);
    for (uint32_t u = 0; u < a->n && net->arcs <= ARCS; u++)
        for (uint32_t i = a->succ[u]; i < a->succ[u + 1]; i++) {
            const uint32_t v = a->succ_of[i];
            imply(net, &net->even[u], &net->even[v], 0);
            if (a->target[u] == CS_HOST) continue;
            if (a->target[v] == CS_HOST)
                imply(net, &net->odd[u], &net->even[v], 1);
            else
                imply(net, &net->odd[u], &net->odd[v], 0);
        }
}

static void take_cut(network *net, void *payload, uint32_t atom, uint32_t from, uint32_t to)
{
    bool *demote = payload;
    demote[atom] |= net->flow->level[from] == CS_NONE && net->flow->level[to] != CS_NONE;
}

/* *exact false: too large. */
static cutset_status cut(const cs_work *w, const cs_atoms *a, const cs_levels *l, cs_arena *arena,
                         bool *demote, bool *exact, cutset_error *err)
{
    network net = {.w = w, .a = a, .l = l, .m = (uint32_t)w->opts->max_engines};
    cs_flow flow;
    *exact = false;
    if (!set_windows(&net, arena)) return cs_fail_memory(err);
    if (net.vertices > VERTICES || w->n_nodes > NODES) return CUTSET_OK;
    add_arcs(&net);
    if (net.arcs > ARCS) return CUTSET_OK;
    if (!cs_flow_init(&flow, (uint32_t)net.vertices, (uint32_t)net.arcs, arena))
        return cs_fail_memory(err);
    net.flow = &flow;
    add_arcs(&net);
    const int64_t value = cs_flow_run(&flow, STEPS, arena);
    if (value == -2) return cs_fail_memory(err);
    if (value < 0) return CUTSET_OK;
    each_cost(&net, take_cut, demote);
    *exact = true;
    return CUTSET_OK;
}

/* ---- large graphs: the best engines of a labelling ---- */

typedef struct choice {
    const cs_work *w;
    const cs_atoms *a;
    cs_arena *arena;
    uint32_t m;
    int32_t *target;
    uint32_t *slot;
    uint64_t *key; /* these three by engine */
    uint32_t *fresh, *heap;
    int64_t most; /* kept by the best so far; -1: none */
} choice;

/* Keeps the `m` engines that are worth most, those with pinned atoms first. False: more are
 * pinned. */
static bool keep_best(choice *c, uint32_t engines)
{
    const cs_atoms *a = c->a;
    uint64_t *key = c->key; /* UINT64_MAX - worth; pinned: 0 */
    uint32_t *fresh = c->fresh, next = 0;
    cs_heap heap = {.at = c->heap, .key = key};
    for (uint32_t k = 0; k <= engines; k++)
        key[k] = UINT64_MAX, fresh[k] = 0;
    for (uint32_t v = 0; v < a->n; v++) {
        uint64_t *of = &key[c->slot[v]];
        *of = a->pinned[v] || !*of ? 0 : *of - (uint64_t)worth(c->w, a, v);
    }
    for (uint32_t k = 1; k <= engines; k++)
        cs_heap_push(&heap, k);
    for (uint32_t n = 0; n < c->m && heap.len; n++)
        fresh[cs_heap_pop(&heap)] = 1;
    if (heap.len && key[heap.at[0]] == 0) return false;
    for (uint32_t k = 1; k <= engines; k++)
        fresh[k] = fresh[k] ? ++next : 0;
    for (uint32_t v = 0; v < a->n; v++) {
        c->slot[v] = fresh[c->slot[v]];
        c->target[v] = c->slot[v] ? a->target[v] : CS_HOST;
    }
    return true;
}

/* Fills up the engines that stay, and keeps the result if it is the best. */
static bool judge(choice *c, bool *demote)
{
    const cs_atoms *a = c->a;
    if (!cs_promote(a, c->m, c->arena, c->target, c->slot)) return false;
    int64_t kept = 0;
    for (uint32_t v = 0; v < a->n; v++)
        if (c->target[v] != CS_HOST) kept += worth(c->w, a, v);
    if (kept <= c->most) return true;
    c->most = kept;
    for (uint32_t v = 0; v < a->n; v++)
        demote[v] = a->target[v] != CS_HOST && c->target[v] == CS_HOST;
    return true;
}

/* Pinned atoms where their chain puts them, all else as early as they allow. */
static void keep_pinned(choice *c, const chain *pinned)
{
    for (uint32_t v = 0; v < c->a->n; v++) {
        const bool stays = c->a->pinned[v];
        c->slot[v] = stays ? pinned->count[2 * v + 1] + 1 : 0;
        c->target[v] = stays ? c->a->target[v] : CS_HOST;
    }
}

static cutset_status choose(const cs_work *w, const cs_atoms *a, const cs_levels *l,
                            const chain *pinned, cs_arena *arena, bool *demote, cutset_error *err)
{
    choice c = {.w = w, .a = a, .arena = arena, .m = (uint32_t)w->opts->max_engines, .most = -1};
    c.target = cs_arena_alloc(arena, a->n, sizeof *c.target);
    c.slot = cs_arena_alloc(arena, a->n, sizeof *c.slot);
    c.key = cs_arena_alloc(arena, (size_t)l->r + 1, sizeof *c.key);
    c.fresh = cs_arena_alloc(arena, (size_t)l->r + 1, sizeof *c.fresh);
    c.heap = cs_arena_alloc(arena, l->r, sizeof *c.heap);
    if (!c.target || !c.slot || !c.key || !c.fresh || !c.heap) return cs_fail_memory(err);
    keep_pinned(&c, pinned);
    if (!judge(&c, demote)) return cs_fail_memory(err);
    for (int way = 0; way < 3; way++) {
        for (uint32_t v = 0; way < 2 && v < a->n; v++)
            c.slot[v] = a->target[v] == CS_HOST ? 0 : way ? l->r + 1 - l->mu[v] : l->lam[v];
        if (way == 2 && !cs_levels_slots(a, arena, c.slot)) return cs_fail_memory(err);
        if (keep_best(&c, l->r) && !judge(&c, demote)) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

cutset_status cs_limit(cs_work *w, const cs_atoms *a, const cs_levels *l, cs_arena *arena,
                       bool *demote, cutset_error *err)
{
    const cs_arena_mark mark = cs_arena_note(arena);
    chain pinned;
    if (!pinned_chain(a, arena, &pinned)) return cs_fail_memory(err);
    if (pinned.engines > w->opts->max_engines) return refuse(w, a, &pinned, err);
    bool exact;
    cutset_status s = cut(w, a, l, arena, demote, &exact, err);
    if (!s && !exact) s = choose(w, a, l, &pinned, arena, demote, err);
    cs_arena_release(arena, mark);
    return s;
}

/* ---- engines that are there already ---- */

cutset_status cs_limit_refuse(const cs_work *w, const cs_atoms *a, cutset_error *err)
{
    char buffer[16];
    uint32_t v = 0, i = 0;
    while (!a->pinned[v])
        v++;
    for (i = a->first[v]; !w->pinned[a->node[i]];)
        i++;
    const cs_span label = cs_node_label(w->g, a->node[i], buffer);
    return cs_fail(err, CUTSET_NO,
                   "--max-engines %lld: the nodes that are pinned need more engines, the first of "
                   "them is %%%.*s: raise it, or pin fewer",
                   (long long)w->opts->max_engines, CS_FMT(label));
}

cutset_status cs_limit_engines(cs_work *w, const cs_atoms *a, const cs_labels *labels, bool all,
                               cs_arena *arena, bool *demote, cutset_error *err)
{
    const cs_arena_mark mark = cs_arena_note(arena);
    const uint32_t n = labels->engines;
    cs_heap heap = {.at = cs_arena_alloc(arena, n, sizeof *heap.at)};
    uint64_t *value = cs_arena_zalloc(arena, (size_t)n + 1, sizeof *value);
    bool *goes = cs_arena_zalloc(arena, (size_t)n + 1, sizeof *goes);
    bool *pinned = cs_arena_zalloc(arena, (size_t)n + 1, sizeof *pinned);
    if (!heap.at || !value || !goes || !pinned) return cs_fail_memory(err);
    heap.key = value;
    for (uint32_t v = 0; v < a->n; v++) {
        value[labels->slot[v]] += (uint64_t)worth(w, a, v);
        pinned[labels->slot[v]] |= a->pinned[v];
    }
    for (uint32_t k = 1; k <= n; k++)
        if (!pinned[k]) cs_heap_push(&heap, k);
    const bool none = !heap.len; /* then what is not pinned goes, and the pinned are tried alone */
    uint64_t excess = all ? n - (uint64_t)w->opts->max_engines : 1;
    for (; excess && heap.len; excess--)
        goes[cs_heap_pop(&heap)] = true;
    bool some = false;
    for (uint32_t v = 0; v < a->n; v++) {
        demote[v] = labels->slot[v] && !a->pinned[v] && (none || goes[labels->slot[v]]);
        some |= demote[v];
    }
    cs_arena_release(arena, mark);
    return some ? CUTSET_OK : cs_limit_refuse(w, a, err);
}
