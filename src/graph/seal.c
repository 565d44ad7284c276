/* Sealing: effects become order edges, rows of uses are filled, nodes are ordered.
 *
 * Rows: count, prefix sums, fill; a stamp per value keeps each reader once. Nodes ascend, so do the
 * rows. Order: Kahn's algorithm with a binary heap of ready nodes, smallest id first, which gives
 * the lexicographically smallest topological order; where no edge goes to a lower id that is the
 * identity, found without the heap.
 *
 * Cost: O(n + m), plus O(n log n) for the heap. No recursion but over nested bodies.
 */
#include "graph/seal.h"
#include "base/heap.h"

#include <string.h>

/* ---- rows of uses ---- */

/* One pass over all reads, each value once a node. Without `user`, counts into use[value + 1]; with
 * it, fills the rows, use[value] being the next free place. */
static void sweep_uses(const cs_graph *g, uint32_t *use, uint32_t *user, uint32_t *stamp)
{
    for (size_t v = 0; v < g->values.len; v++)
        stamp[v] = CS_NONE;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            uint32_t v = g->args.at[n->arg + a];
            if (v == CS_NONE || stamp[v] == i) continue;
            stamp[v] = i;
            if (user)
                user[use[v]++] = i;
            else
                use[v + 1]++;
        }
    }
}

static bool fill_uses(cs_graph *g)
{
    size_t n = g->values.len;
    uint32_t *stamp = cs_alloc(n + 1, sizeof *stamp);
    g->use = cs_zalloc(n + 1, sizeof *g->use);
    if (stamp && g->use) {
        sweep_uses(g, g->use, NULL, stamp);
        for (size_t v = 0; v < n; v++)
            g->use[v + 1] += g->use[v];
        g->user = cs_alloc((size_t)g->use[n] + 1, sizeof *g->user);
    }
    if (g->user) {
        sweep_uses(g, g->use, g->user, stamp);
        /* Each use[v] now is the end of row v: move them one up. */
        memmove(g->use + 1, g->use, n * sizeof *g->use);
        g->use[0] = 0;
    }
    cs_free(stamp);
    return g->user != NULL;
}

/* ---- topological order ---- */

struct kahn {
    uint32_t *left;                /* by node: predecessors not yet ordered, with multiplicity */
    uint32_t *order_at, *order_to; /* order edges in rows by `from` */
    cs_heap ready;
};

static bool is_ordered(const cs_graph *g)
{
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            uint32_t v = g->args.at[n->arg + a];
            if (v != CS_NONE && g->values.at[v].origin == CS_ORIGIN_NODE &&
                g->values.at[v].from >= i)
                return false;
        }
    }
    for (size_t e = 0; e < g->order.len; e++)
        if (g->order.at[e].from >= g->order.at[e].to) return false;
    return true;
}

static void count_predecessors(const cs_graph *g, struct kahn *k)
{
    for (size_t v = 0; v < g->values.len; v++)
        for (uint32_t u = g->use[v]; u < g->use[v + 1] && g->values.at[v].origin == CS_ORIGIN_NODE;
             u++)
            k->left[g->user[u]]++;
    for (size_t e = 0; e < g->order.len; e++) {
        k->left[g->order.at[e].to]++;
        k->order_at[g->order.at[e].from + 1]++;
    }
    for (size_t i = 0; i < g->nodes.len; i++)
        k->order_at[i + 1] += k->order_at[i];
    for (size_t e = 0; e < g->order.len; e++)
        k->order_to[k->order_at[g->order.at[e].from]++] = g->order.at[e].to;
    memmove(k->order_at + 1, k->order_at, g->nodes.len * sizeof *k->order_at);
    k->order_at[0] = 0;
}

/* One predecessor of `node` has been ordered. */
static void release(struct kahn *k, uint32_t node)
{
    if (--k->left[node] == 0) cs_heap_push(&k->ready, node);
}

static size_t run_kahn(const cs_graph *g, struct kahn *k, uint32_t *topo)
{
    size_t len = 0;
    for (uint32_t i = 0; i < g->nodes.len; i++)
        if (k->left[i] == 0) cs_heap_push(&k->ready, i);
    while (k->ready.len > 0) {
        uint32_t i = cs_heap_pop(&k->ready);
        const cs_node *n = &g->nodes.at[i];
        topo[len++] = i;
        for (uint32_t o = 0; o < n->n_out; o++) {
            uint32_t v = g->outs.at[n->out + o];
            for (uint32_t u = v == CS_NONE ? 0 : g->use[v]; v != CS_NONE && u < g->use[v + 1]; u++)
                release(k, g->user[u]);
        }
        for (uint32_t e = k->order_at[i]; e < k->order_at[i + 1]; e++)
            release(k, k->order_to[e]);
    }
    return len;
}

static cutset_status sort_nodes(cs_graph *g, cutset_error *err)
{
    size_t n = g->nodes.len;
    g->topo = cs_alloc(n + 1, sizeof *g->topo);
    if (!g->topo) return cs_fail_memory(err);
    if (is_ordered(g)) {
        for (uint32_t i = 0; i < n; i++)
            g->topo[i] = i;
        return CUTSET_OK;
    }
    struct kahn k = {.left = cs_zalloc(n + 1, sizeof *k.left),
                     .order_at = cs_zalloc(n + 1, sizeof *k.order_at),
                     .order_to = cs_alloc(g->order.len + 1, sizeof *k.order_to),
                     .ready.at = cs_alloc(n + 1, sizeof *k.ready.at)};
    cutset_status status = CUTSET_OK;
    if (!k.left || !k.order_at || !k.order_to || !k.ready.at) {
        status = cs_fail_memory(err);
    } else {
        count_predecessors(g, &k);
        if (run_kahn(g, &k, g->topo) < n) status = cs_seal_cycle(g, k.left, err);
    }
    cs_free(k.left);
    cs_free(k.order_at);
    cs_free(k.order_to);
    cs_free(k.ready.at);
    return status;
}

/* ---- sealing ---- */

/* A value that no node makes: name it, and a node that reads it where there is one. */
static cutset_status fail_unmade(const cs_graph *g, uint32_t value, cutset_error *err)
{
    cs_span name = cs_name(g->pool, g->values.at[value].name);
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            if (g->args.at[n->arg + a] != value) continue;
            char buffer[16];
            cs_span label = cs_node_label(g, i, buffer);
            cs_fail_at(err, CUTSET_BAD, n->offset,
                       "%s%.*s reads %%%.*s, which nothing makes: add the node that makes "
                       "it, or make it an input or a weight",
                       label.at == buffer ? "" : "%", CS_FMT(label), CS_FMT(name));
            cs_error_name(err, label.at, label.len);
            return CUTSET_BAD;
        }
    }
    return cs_fail(err, CUTSET_BAD,
                   "nothing makes %%%.*s: add the node that makes it, or make it an input or a "
                   "weight",
                   CS_FMT(name));
}

cutset_status cs_graph_seal(cs_graph *g, cutset_error *err)
{
    for (size_t i = 0; i < g->bodies.len; i++) {
        cs_graph *body = g->bodies.at[i].graph;
        cutset_status status = body->sealed ? CUTSET_OK : cs_graph_seal(body, err);
        if (status) return status;
    }
    for (size_t v = 0; v < g->values.len; v++)
        if (g->values.at[v].origin == CS_ORIGIN_NODE && g->values.at[v].from == CS_NONE)
            return fail_unmade(g, (uint32_t)v, err);
    if (!cs_seal_effects(g) || !fill_uses(g)) return cs_fail_memory(err);
    cutset_status status = sort_nodes(g, err);
    g->sealed = status == CUTSET_OK;
    return status;
}
