/* Levels: how many separate engine stretches a path needs, before and after each atom.
 *
 * lam(v) = most stretches on a path that ends at v, mu(v) = most on a path that starts at v; their
 * maximum r is the fewest engines any plan has (two engine atoms with a host atom between them on a
 * path cannot share an engine), and with one accelerator it is reached (Theorem 2). Theorem 3 gives
 * slots that have the fewest engines and the fewest parts at once. A stretch ends where the path
 * leaves its accelerator. Cost: linear; atoms are numbered in topological order.
 */
#include "plan/work.h"

/* Does going from u to v begin a new stretch at v? */
static bool begins(const int32_t *target, uint32_t u, uint32_t v)
{
    return target[v] != CS_HOST && target[u] != target[v];
}

uint32_t cs_levels_path_bound(const cs_atoms *a, const int32_t *target, uint32_t *lam)
{
    uint32_t r = 0;
    for (uint32_t v = 0; v < a->n; v++) {
        lam[v] = target[v] != CS_HOST;
        for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++) {
            uint32_t u = a->pred_of[i];
            uint32_t here = lam[u] + begins(target, u, v);
            if (here > lam[v]) lam[v] = here;
        }
        if (lam[v] > r) r = lam[v];
    }
    return r;
}

bool cs_levels_of(const cs_atoms *a, const int32_t *target, cs_arena *arena, cs_levels *out)
{
    out->lam = cs_arena_alloc(arena, a->n, sizeof *out->lam);
    out->mu = cs_arena_alloc(arena, a->n, sizeof *out->mu);
    if (!out->lam || !out->mu) return false;
    out->target = target;
    out->r = cs_levels_path_bound(a, target, out->lam);
    for (uint32_t v = a->n; v-- > 0;) {
        out->mu[v] = target[v] != CS_HOST;
        for (uint32_t i = a->succ[v]; i < a->succ[v + 1]; i++) {
            uint32_t s = a->succ_of[i];
            uint32_t here = out->mu[s] + begins(target, s, v);
            if (here > out->mu[v]) out->mu[v] = here;
        }
    }
    return true;
}

/* Most runs (of either kind) on a path that starts with an engine atom, and with a host atom. */
static void longest_runs(const cs_atoms *a, uint32_t *run, uint32_t *engine, uint32_t *host)
{
    *engine = *host = 0;
    for (uint32_t v = a->n; v-- > 0;) {
        run[v] = 1;
        for (uint32_t i = a->succ[v]; i < a->succ[v + 1]; i++) {
            uint32_t s = a->succ_of[i];
            uint32_t here = run[s] + ((a->target[s] == CS_HOST) != (a->target[v] == CS_HOST));
            if (here > run[v]) run[v] = here;
        }
        uint32_t *most = a->target[v] == CS_HOST ? host : engine;
        if (run[v] > *most) *most = run[v];
    }
}

bool cs_levels_slots(const cs_atoms *a, cs_arena *arena, uint32_t *slot)
{
    cs_arena_mark mark = cs_arena_note(arena);
    uint32_t *label = cs_arena_alloc(arena, a->n, sizeof *label);
    if (!label) return false;
    uint32_t engine, host;
    longest_runs(a, label, &engine, &host);
    bool engine_first = engine == host + 1;
    for (uint32_t v = 0; v < a->n; v++) {
        bool on_engine = a->target[v] != CS_HOST;
        label[v] = on_engine == engine_first ? 1 : 2;
        for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++) {
            uint32_t u = a->pred_of[i];
            uint32_t here = label[u] + ((a->target[u] != CS_HOST) != on_engine);
            if (here > label[v]) label[v] = here;
        }
        slot[v] = !on_engine ? 0 : engine_first ? (label[v] + 1) / 2 : label[v] / 2;
    }
    cs_arena_release(arena, mark);
    return true;
}

/* ---- the path, node by node ---- */

/* Order edges by the atom they go to: edge[row[v] .. row[v + 1]), as they stand in the graph. */
typedef struct order_rows {
    uint32_t *row, *edge; /* NULL: there are none */
} order_rows;

static bool sort_order(const cs_graph *g, const cs_atoms *a, order_rows *o)
{
    *o = (order_rows){0};
    if (g->order.len == 0) return true;
    o->row = cs_zalloc((size_t)a->n + 2, sizeof *o->row);
    o->edge = cs_alloc(g->order.len, sizeof *o->edge);
    if (!o->row || !o->edge) return false;
    for (size_t i = 0; i < g->order.len; i++)
        o->row[a->of[g->order.at[i].to] + 2]++;
    for (uint32_t v = 0; v < a->n; v++)
        o->row[v + 2] += o->row[v + 1];
    for (size_t i = 0; i < g->order.len; i++)
        o->edge[o->row[a->of[g->order.at[i].to] + 1]++] = (uint32_t)i;
    return true;
}

/* An edge between nodes that realises the edge from atom u to atom v. */
static void real_edge(const cs_work *w, const cs_atoms *a, const order_rows *o, uint32_t u,
                      uint32_t v, uint32_t *from, uint32_t *to)
{
    const cs_graph *g = w->g;
    for (uint32_t i = a->first[v]; i < a->first[v + 1]; i++) {
        const cs_node *n = &g->nodes.at[a->node[i]];
        for (uint32_t k = 0; k < cs_n_reads(n); k++) {
            uint32_t value = cs_args(g, n)[k];
            if (value == CS_NONE || g->values.at[value].origin != CS_ORIGIN_NODE ||
                a->of[g->values.at[value].from] != u)
                continue;
            *from = g->values.at[value].from, *to = a->node[i];
            return;
        }
    }
    for (uint32_t i = o->row ? o->row[v] : 0; o->row && i < o->row[v + 1]; i++) {
        const cs_edge edge = g->order.at[o->edge[i]];
        if (a->of[edge.from] == u) *from = edge.from, *to = edge.to;
    }
}

static uint32_t step_back(const cs_atoms *a, const cs_levels *l, uint32_t v)
{
    for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++) {
        uint32_t u = a->pred_of[i];
        if (l->lam[u] + begins(l->target, u, v) == l->lam[v]) return u;
    }
    return CS_NONE;
}

bool cs_levels_path(const cs_work *w, const cs_atoms *a, const cs_levels *l, cs_ids *out)
{
    uint32_t v = 0;
    while (v < a->n && (l->lam[v] != l->r || l->target[v] == CS_HOST))
        v++;
    if (v == a->n || !l->r) return true;
    cs_ids back = {0}; /* node ids, last first */
    order_rows order;
    bool ok = sort_order(w->g, a, &order);
    uint32_t entry = CS_NONE; /* the node of v by which the path goes on */
    while (ok) {
        uint32_t u = l->lam[v] > 1 || l->target[v] == CS_HOST ? step_back(a, l, v) : CS_NONE;
        if (u == CS_NONE) break;
        uint32_t from = CS_NONE, to = CS_NONE;
        real_edge(w, a, &order, u, v, &from, &to);
        if (entry != CS_NONE && entry != to) ok &= cs_vec_push(&back, entry);
        ok &= cs_vec_push(&back, to);
        entry = from;
        v = u;
    }
    ok &= cs_vec_push(&back, entry != CS_NONE ? entry : a->node[a->first[v]]);
    for (size_t i = back.len; ok && i-- > 0;)
        ok = cs_vec_push(out, back.at[i]);
    cs_vec_fini(&back);
    cs_free(order.row);
    cs_free(order.edge);
    return ok;
}
