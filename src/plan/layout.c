/* The layout: the nodes of each part in execution order, what it reads and what it hands on.
 *
 * Inputs stand in order of first use, outputs in order of production. An input is a graph input or
 * a value made in another part; weights are none. An output is a graph output or a value that
 * another part reads. What a body captures counts as read by the node that owns it.
 *
 * A part runs its own nodes and its copies in the topological order of the graph. What it copies it
 * does not take in, and hands on only where it is the node's home.
 *
 * Cost: O(n + m + copies), times a logarithm for values that are copied. Memory: 8 bytes a node, 5
 * bytes a value (4 of them only while it runs), and 16 bytes a node and copy where there are any.
 */
#include "plan/assemble.h"

#include <string.h>

void cs_layout_fini(cs_layout *l)
{
    if (l->run != l->order) cs_free(l->run);
    if (l->run_start != l->start) cs_free(l->run_start);
    cs_free(l->part);
    cs_free(l->order);
    cs_free(l->start);
    cs_free(l->copy_row);
    cs_free(l->copy_part);
    cs_free(l->io_start);
    cs_free(l->leaves);
    cs_vec_fini(&l->io);
    *l = (cs_layout){0};
}

/* ---- copies ---- */

bool cs_layout_copies(const cs_layout *l, uint32_t node, uint32_t p)
{
    if (l->copy_row == NULL) return false;
    uint32_t low = l->copy_row[node], high = l->copy_row[node + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (l->copy_part[middle] < p)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->copy_row[node + 1] && l->copy_part[low] == p;
}

/* The parts that run a reader of `v`: its home, then those that repeat it; CS_NONE: no more. */
static uint32_t next_run(cs_takers *t)
{
    const cs_layout *l = t->l;
    const cs_graph *g = l->graph;
    for (; t->use < g->use[t->value + 1] - g->use[t->value]; t->use++, t->copy = 0) {
        const uint32_t reader = g->user[g->use[t->value] + t->use];
        const uint32_t k = t->copy++;
        if (k == 0) return l->part[reader];
        if (l->copy_row != NULL && k <= l->copy_row[reader + 1] - l->copy_row[reader])
            return l->copy_part[l->copy_row[reader] + k - 1];
    }
    return CS_NONE;
}

uint32_t cs_layout_taker(cs_takers *t)
{
    const uint32_t maker = t->l->graph->values.at[t->value].from;
    uint32_t p;
    do
        p = next_run(t);
    while (p != CS_NONE && (p == t->l->part[maker] || cs_layout_copies(t->l, maker, p)));
    return p;
}

static bool has_copies(cs_layout *l, const cs_copy *copies, uint32_t n)
{
    const size_t nodes = l->graph->nodes.len;
    l->copy_row = cs_zalloc(nodes + 1, sizeof *l->copy_row);
    l->copy_part = cs_alloc(n, sizeof *l->copy_part);
    if (l->copy_row == NULL || l->copy_part == NULL) return false;
    for (uint32_t i = 0; i < n; i++)
        l->copy_row[copies[i].node]++;
    uint32_t total = 0;
    for (size_t i = 0; i <= nodes; i++) {
        const uint32_t count = l->copy_row[i];
        l->copy_row[i] = total;
        total += count;
    }
    for (uint32_t i = 0; i < n; i++)
        l->copy_part[l->copy_row[copies[i].node]++] = copies[i].part;
    memmove(l->copy_row + 1, l->copy_row, nodes * sizeof *l->copy_row);
    l->copy_row[0] = 0;
    return true;
}

/* Puts each copy before the first node of its part that comes later in graph->topo. `position` is
 * by node, in graph->topo. */
static void merge(cs_layout *l, const cs_copy *copies, uint32_t n, const uint32_t *position)
{
    uint32_t at = 0, copy = 0;
    for (uint32_t p = 0; p < l->n_parts; p++) {
        l->run_start[p] = at;
        for (uint32_t i = l->start[p]; i < l->start[p + 1]; i++) {
            const uint32_t here = position[l->order[i]];
            for (; copy < n && copies[copy].part == p && position[copies[copy].node] < here; copy++)
                l->run[at++] = copies[copy].node;
            l->run[at++] = l->order[i];
        }
        for (; copy < n && copies[copy].part == p; copy++)
            l->run[at++] = copies[copy].node;
    }
    l->run_start[l->n_parts] = at;
}

/* Requires part, order and start. */
static bool find_runs(cs_layout *l, const cs_copy *copies, uint32_t n)
{
    l->run = l->order;
    l->run_start = l->start;
    if (n == 0) return true;
    const cs_graph *g = l->graph;
    l->run = cs_alloc(g->nodes.len + n, sizeof *l->run);
    l->run_start = cs_alloc((size_t)l->n_parts + 1, sizeof *l->run_start);
    uint32_t *position = cs_alloc(g->nodes.len, sizeof *position);
    const bool ok = l->run != NULL && l->run_start != NULL && position != NULL;
    for (uint32_t i = 0; ok && i < g->nodes.len; i++)
        position[g->topo[i]] = i;
    if (ok) merge(l, copies, n, position);
    cs_free(position);
    return ok && has_copies(l, copies, n);
}

/* ---- inputs and outputs ---- */

/* Is `v` read in a part that does not make it? */
static bool read_elsewhere(const cs_layout *l, uint32_t v)
{
    cs_takers t = {.l = l, .value = v};
    return cs_layout_taker(&t) != CS_NONE;
}

/* What part `p` makes or has taken in already is stamped. */
static bool add_inputs(cs_layout *l, uint32_t p, uint32_t *stamp)
{
    const cs_graph *g = l->graph;
    for (uint32_t i = l->run_start[p]; i < l->run_start[p + 1]; i++) {
        const cs_node *n = &g->nodes.at[l->run[i]];
        const uint32_t *args = cs_args(g, n), *outs = cs_outs(g, n);
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            const uint32_t v = args[a];
            if (v == CS_NONE || stamp[v] == p + 1) continue;
            if (g->values.at[v].origin == CS_ORIGIN_WEIGHT) continue;
            stamp[v] = p + 1;
            if (!cs_vec_push(&l->io, v)) return false;
        }
        for (uint32_t o = 0; o < n->n_out; o++)
            if (outs[o] != CS_NONE) stamp[outs[o]] = p + 1;
    }
    return true;
}

/* `leaves` holds the graph outputs already. Copies make no outputs. */
static bool add_outputs(cs_layout *l, uint32_t p)
{
    const cs_graph *g = l->graph;
    for (uint32_t i = l->start[p]; i < l->start[p + 1]; i++) {
        const cs_node *n = &g->nodes.at[l->order[i]];
        const uint32_t *outs = cs_outs(g, n);
        for (uint32_t o = 0; o < n->n_out; o++) {
            const uint32_t v = outs[o];
            if (v == CS_NONE) continue;
            if (!l->leaves[v]) l->leaves[v] = read_elsewhere(l, v);
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

cutset_status cs_layout_init(cs_layout *l, const cs_graph *graph, const cs_decision *decision,
                             cutset_error *err)
{
    const uint32_t *part = decision->part;
    const uint32_t n_parts = decision->n_parts;
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
    if (!find_runs(l, decision->copies, decision->n_copies)) return cs_fail_memory(err);
    return find_io(l, err);
}

cutset_status cs_layout_take(cs_layout *l, const cs_graph *graph, const uint32_t *order,
                             const uint32_t *start, uint32_t n_parts, const cs_copy *copies,
                             uint32_t n_copies, cutset_error *err)
{
    const cutset_status status = reserve(l, graph, n_parts, err);
    if (status != CUTSET_OK) return status;
    memcpy(l->start, start, ((size_t)n_parts + 1) * sizeof *start);
    if (start[n_parts] > 0) memcpy(l->order, order, start[n_parts] * sizeof *order);
    for (uint32_t p = 0; p < n_parts; p++)
        for (uint32_t i = start[p]; i < start[p + 1]; i++)
            l->part[order[i]] = p;
    if (!find_runs(l, copies, n_copies)) return cs_fail_memory(err);
    return find_io(l, err);
}
