/* The layout: the nodes of each part in execution order, what it reads and what it hands on.
 *
 * Inputs stand in order of first use, outputs in order of production. An input is a graph input or
 * a value made in another part; weights are none. An output is a graph output or a value that
 * another part reads. What a body captures counts as read by the node that owns it.
 *
 * Cost: O(n + m). Memory: 8 bytes a node, 5 bytes a value (4 of them only while it runs).
 */
#include "plan/assemble.h"

#include <string.h>

void cs_layout_fini(cs_layout *l)
{
    cs_free(l->part);
    cs_free(l->order);
    cs_free(l->start);
    cs_free(l->io_start);
    cs_free(l->leaves);
    cs_vec_fini(&l->io);
    *l = (cs_layout){0};
}

/* Is `v`, made in part `p`, a graph output or read elsewhere? */
static bool read_elsewhere(const cs_layout *l, uint32_t v, uint32_t p)
{
    const cs_graph *g = l->graph;
    for (uint32_t i = g->use[v]; i < g->use[v + 1]; i++)
        if (l->part[g->user[i]] != p) return true;
    return false;
}

/* From outside part `p`, and not a weight? */
static bool comes_in(const cs_layout *l, uint32_t v, uint32_t p)
{
    const cs_value *value = &l->graph->values.at[v];
    if (value->origin == CS_ORIGIN_NODE) return l->part[value->from] != p;
    return value->origin != CS_ORIGIN_WEIGHT;
}

static bool add_inputs(cs_layout *l, uint32_t p, uint32_t *stamp)
{
    const cs_graph *g = l->graph;
    for (uint32_t i = l->start[p]; i < l->start[p + 1]; i++) {
        const cs_node *n = &g->nodes.at[l->order[i]];
        const uint32_t *args = cs_args(g, n);
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            const uint32_t v = args[a];
            if (v == CS_NONE || stamp[v] == p + 1 || !comes_in(l, v, p)) continue;
            stamp[v] = p + 1;
            if (!cs_vec_push(&l->io, v)) return false;
        }
    }
    return true;
}

/* `leaves` holds the graph outputs already. */
static bool add_outputs(cs_layout *l, uint32_t p)
{
    const cs_graph *g = l->graph;
    for (uint32_t i = l->start[p]; i < l->start[p + 1]; i++) {
        const cs_node *n = &g->nodes.at[l->order[i]];
        const uint32_t *outs = cs_outs(g, n);
        for (uint32_t o = 0; o < n->n_out; o++) {
            const uint32_t v = outs[o];
            if (v == CS_NONE) continue;
            if (!l->leaves[v]) l->leaves[v] = read_elsewhere(l, v, p);
            if (l->leaves[v] && !cs_vec_push(&l->io, v)) return false;
        }
    }
    return true;
}

static cutset_status find_io(cs_layout *l, cutset_error *err)
{
    const cs_graph *g = l->graph;
    uint32_t *stamp = cs_zalloc(g->values.len, sizeof *stamp);
    l->io_start = cs_alloc(2 * (size_t)l->n_parts + 1, sizeof *l->io_start);
    l->leaves = cs_zalloc(g->values.len, 1);
    bool ok = stamp != NULL && l->io_start != NULL && l->leaves != NULL;
    for (size_t i = 0; ok && i < g->outputs.len; i++)
        l->leaves[g->outputs.at[i]] = 1;
    for (uint32_t p = 0; ok && p < l->n_parts; p++) {
        l->io_start[2 * (size_t)p] = (uint32_t)l->io.len;
        ok = add_inputs(l, p, stamp);
        l->io_start[2 * (size_t)p + 1] = (uint32_t)l->io.len;
        ok = ok && add_outputs(l, p);
    }
    if (ok) l->io_start[2 * (size_t)l->n_parts] = (uint32_t)l->io.len;
    cs_free(stamp);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

static cutset_status reserve(cs_layout *l, const cs_graph *graph, uint32_t n_parts,
                             cutset_error *err)
{
    *l = (cs_layout){.graph = graph, .n_parts = n_parts};
    l->part = cs_alloc(graph->nodes.len, sizeof *l->part);
    l->order = cs_alloc(graph->nodes.len, sizeof *l->order);
    l->start = cs_zalloc((size_t)n_parts + 1, sizeof *l->start);
    if (l->part == NULL || l->order == NULL || l->start == NULL) return cs_fail_memory(err);
    return CUTSET_OK;
}

cutset_status cs_layout_init(cs_layout *l, const cs_graph *graph, const uint32_t *part,
                             uint32_t n_parts, cutset_error *err)
{
    const cutset_status status = reserve(l, graph, n_parts, err);
    if (status != CUTSET_OK) return status;
    const size_t n = graph->nodes.len;
    if (n > 0) memcpy(l->part, part, n * sizeof *part);
    /* A counting sort of graph->topo: start[p] is first where part p begins, then moves along. */
    for (size_t i = 0; i < n; i++)
        l->start[part[i]]++;
    uint32_t total = 0;
    for (uint32_t p = 0; p < n_parts; p++) {
        const uint32_t count = l->start[p];
        l->start[p] = total;
        total += count;
    }
    for (size_t i = 0; i < n; i++)
        l->order[l->start[part[graph->topo[i]]]++] = graph->topo[i];
    for (uint32_t p = n_parts; p > 0; p--)
        l->start[p] = l->start[p - 1];
    l->start[0] = 0;
    return find_io(l, err);
}

cutset_status cs_layout_take(cs_layout *l, const cs_graph *graph, const uint32_t *order,
                             const uint32_t *start, uint32_t n_parts, cutset_error *err)
{
    const cutset_status status = reserve(l, graph, n_parts, err);
    if (status != CUTSET_OK) return status;
    memcpy(l->start, start, ((size_t)n_parts + 1) * sizeof *start);
    if (start[n_parts] > 0) memcpy(l->order, order, start[n_parts] * sizeof *order);
    for (uint32_t p = 0; p < n_parts; p++)
        for (uint32_t i = start[p]; i < start[p + 1]; i++)
            l->part[order[i]] = p;
    return find_io(l, err);
}
