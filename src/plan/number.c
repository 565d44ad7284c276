/* Numbers the parts: host part, engine, host part, engine ... along the labelling; empty ones are
 * none. A CS_NODE_ALONE node on the host (a branch whose blocks are planned by themselves) is a part
 * of its own: the host nodes between two engines fall into stages, plain ones and the lone nodes in
 * turn, each plain node in the first stage after the lone nodes that it follows. Cost: linear.
 */
#include "plan/work.h"

typedef struct places {
    const cs_work *w;
    const cs_atoms *a;
    const cs_labels *l;
    uint32_t *stage; /* by node: even plain, odd alone; 0 in engines */
    uint32_t *lone;  /* by place: lone nodes so far; in the end all */
} places;

static void follow(places *p, uint32_t from, uint32_t to)
{
    const uint32_t after = (p->stage[from] + 1) & ~1u;
    if (cs_labels_place(p->l, p->a, from) == cs_labels_place(p->l, p->a, to) &&
        p->stage[to] < after)
        p->stage[to] = after;
}

/* Nodes in topological order: when a node's turn comes, all before it have their stage. */
static void set_stages(places *p, const uint32_t *row, const uint32_t *to)
{
    const cs_graph *g = p->w->g;
    for (uint32_t i = 0; i < p->w->n_nodes; i++) {
        const uint32_t node = g->topo[i];
        const cs_node *n = &g->nodes.at[node];
        if (p->w->target[node] == CS_HOST && n->flags & CS_NODE_ALONE)
            p->stage[node] = 2 * p->lone[cs_labels_place(p->l, p->a, node)]++ + 1;
        for (uint32_t k = 0; k < n->n_out; k++) {
            const uint32_t v = cs_outs(g, n)[k];
            for (uint32_t u = v == CS_NONE ? 0 : g->use[v]; v != CS_NONE && u < g->use[v + 1]; u++)
                follow(p, node, g->user[u]);
        }
        for (uint32_t e = row[node]; e < row[node + 1]; e++)
            follow(p, node, to[e]);
    }
}

/* Order edges by the node they begin at; then the stages. */
static bool find_stages(places *p)
{
    const cs_graph *g = p->w->g;
    uint32_t *rows = cs_zalloc((size_t)p->w->n_nodes + 2, sizeof *rows);
    uint32_t *to = cs_alloc(g->order.len, sizeof *to);
    const bool ok = rows && to;
    for (size_t i = 0; ok && i < g->order.len; i++)
        rows[g->order.at[i].from + 2]++;
    for (uint32_t v = 0; ok && v < p->w->n_nodes; v++)
        rows[v + 2] += rows[v + 1];
    for (size_t i = 0; ok && i < g->order.len; i++)
        to[rows[g->order.at[i].from + 1]++] = g->order.at[i].to;
    if (ok) set_stages(p, rows, to);
    cs_free(rows);
    cs_free(to);
    return ok;
}

/* Without a lone node all stages are 0. */
static bool has_lone(const cs_work *w)
{
    for (uint32_t v = 0; v < w->n_nodes; v++)
        if (w->target[v] == CS_HOST && w->g->nodes.at[v].flags & CS_NODE_ALONE) return true;
    return false;
}

cutset_status cs_number_parts(cs_work *w, const cs_atoms *a, const cs_labels *l, cs_decision *out,
                              cutset_error *err)
{
    const size_t n_places = (size_t)l->engines * 2 + 1;
    places p = {.w = w, .a = a, .l = l};
    p.stage = cs_arena_zalloc(&w->arena, w->n_nodes, sizeof *p.stage);
    p.lone = cs_arena_zalloc(&w->arena, n_places, sizeof *p.lone);
    size_t *first = cs_arena_alloc(&w->arena, n_places, sizeof *first);
    if (!p.stage || !p.lone || !first || (has_lone(w) && !find_stages(&p)))
        return cs_fail_memory(err);
    size_t n = 0;
    for (size_t k = 0; k < n_places; k++) {
        first[k] = n;
        n += 2 * (size_t)p.lone[k] + 1;
    }
    uint32_t *id = cs_arena_zalloc(&w->arena, n, sizeof *id);
    out->n_nodes = w->n_nodes;
    out->part = cs_alloc(w->n_nodes, sizeof *out->part);
    if (!id || !out->part) return cs_fail_memory(err);
    for (uint32_t v = 0; v < w->n_nodes; v++)
        id[first[cs_labels_place(l, a, v)] + p.stage[v]] = 1;
    for (size_t k = 0; k < n; k++)
        id[k] = id[k] ? out->n_parts++ : CS_NONE;
    out->part_target = cs_alloc(out->n_parts, sizeof *out->part_target);
    out->part_oversized = cs_zalloc(out->n_parts, sizeof *out->part_oversized);
    if (!out->part_target || !out->part_oversized) return cs_fail_memory(err);
    for (uint32_t v = 0; v < w->n_nodes; v++) {
        out->part[v] = id[first[cs_labels_place(l, a, v)] + p.stage[v]];
        out->part_target[out->part[v]] = w->target[v];
        out->part_oversized[out->part[v]] |= a->oversized[a->of[v]];
    }
    return CUTSET_OK;
}
