/* The message about a cycle.
 *
 * Every node that could not be ordered has a predecessor that could not either: walking back from
 * the first one must meet a node again, which then lies on a cycle. A breadth-first search from
 * there gives the shortest cycle through that node, which is printed from its smallest id on.
 * Cost: linear; only for a graph that is refused.
 */
#include "graph/seal.h"

#include <stdio.h>

#define SHOWN 8 /* nodes printed */

struct search {
    const cs_graph *g;
    const uint32_t *left;
    uint32_t *row, *edge; /* order edges in rows by `to`: indices into g->order */
    uint32_t *next;       /* by node: its successor on the way to `root`; CS_NONE: not visited */
    uint32_t *queue;
    size_t tail;
    uint32_t root;
};

static void make_rows(struct search *s)
{
    const cs_graph *g = s->g;
    size_t n = g->nodes.len;
    for (size_t e = 0; e < g->order.len; e++)
        s->row[g->order.at[e].to + 1]++;
    for (size_t i = 0; i < n; i++)
        s->row[i + 1] += s->row[i];
    for (size_t e = 0; e < g->order.len; e++)
        s->edge[s->row[g->order.at[e].to]++] = (uint32_t)e;
    for (size_t i = n; i > 0; i--)
        s->row[i] = s->row[i - 1];
    s->row[0] = 0;
}

/* The k-th predecessor of `node` (args, then order edges), CS_NONE past the last; one that was
 * ordered, or no node at all, is given as `node` where `skip` tells so. */
static uint32_t predecessor(const struct search *s, uint32_t node, uint32_t k, bool *skip)
{
    const cs_graph *g = s->g;
    const cs_node *n = &g->nodes.at[node];
    uint32_t from;
    *skip = false;
    if (k < cs_n_reads(n)) {
        uint32_t v = g->args.at[n->arg + k];
        *skip = v == CS_NONE || g->values.at[v].origin != CS_ORIGIN_NODE;
        from = *skip ? node : g->values.at[v].from;
    } else {
        uint32_t e = s->row[node] + (k - cs_n_reads(n));
        if (e >= s->row[node + 1]) return CS_NONE;
        from = g->order.at[s->edge[e]].from;
    }
    *skip = *skip || s->left[from] == 0;
    return from;
}

static uint32_t any_predecessor(const struct search *s, uint32_t node)
{
    uint32_t from = node;
    bool skip = true;
    for (uint32_t k = 0; skip && from != CS_NONE; k++)
        from = predecessor(s, node, k, &skip);
    return from;
}

/* Breadth first, backwards from root, until root is met again. */
static uint32_t search_back(struct search *s)
{
    s->queue[s->tail++] = s->root;
    for (size_t head = 0; head < s->tail; head++) {
        uint32_t node = s->queue[head];
        bool skip;
        uint32_t from;
        for (uint32_t k = 0; (from = predecessor(s, node, k, &skip)) != CS_NONE; k++) {
            if (skip || (from != s->root && s->next[from] != CS_NONE)) continue;
            s->next[from] = node;
            if (from == s->root) return node; /* root -> node -> ... -> root */
            s->queue[s->tail++] = from;
        }
    }
    return CS_NONE;
}

static bool is_data_edge(const cs_graph *g, uint32_t from, uint32_t to)
{
    const cs_node *n = &g->nodes.at[to];
    for (uint32_t a = 0; a < cs_n_reads(n); a++) {
        uint32_t v = g->args.at[n->arg + a];
        if (v != CS_NONE && g->values.at[v].origin == CS_ORIGIN_NODE &&
            g->values.at[v].from == from)
            return true;
    }
    return false;
}

/* How `from` comes before `to`, where not by a value. */
static const char *edge_kind(const struct search *s, uint32_t from, uint32_t to)
{
    if (is_data_edge(s->g, from, to)) return "";
    for (uint32_t e = s->row[to]; e < s->row[to + 1]; e++)
        if (s->g->order.at[s->edge[e]].from == from && s->edge[e] < s->g->n_given)
            return " (by order edge)";
    return " (by effect)";
}

static cutset_status report(const struct search *s, cutset_error *err)
{
    const cs_graph *g = s->g;
    uint32_t first = s->root;
    size_t len = 1;
    for (uint32_t i = s->next[s->root]; i != s->root; i = s->next[i], len++)
        first = i < first ? i : first;
    char text[900]; /* enough for SHOWN + 1 labels of 60 bytes */
    size_t used = 0;
    for (uint32_t i = 0, node = first, last = first; i <= len; i++) {
        if (i == SHOWN && i < len) {
            snprintf(text + used, sizeof text - used, " -> ... (%zu nodes)", len);
            break;
        }
        char buffer[16];
        cs_span label = cs_node_label(g, node, buffer);
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s%.*s%s", i ? " -> " : "",
                             label.at == buffer ? "" : "%", (int)(label.len > 60 ? 60 : label.len),
                             label.at, i ? edge_kind(s, last, node) : "");
        last = node;
        node = s->next[node];
    }
    cs_fail_at(err, CUTSET_BAD, g->nodes.at[first].offset, "cycle: %s: remove one of these edges",
               text);
    for (uint32_t i = 0, node = first; i < len; i++, node = s->next[node])
        cs_error_node(err, g, node);
    return CUTSET_BAD;
}

cutset_status cs_seal_cycle(const cs_graph *g, const uint32_t *left, cutset_error *err)
{
    size_t n = g->nodes.len;
    struct search s = {.g = g,
                       .left = left,
                       .row = cs_zalloc(n + 1, sizeof *s.row),
                       .edge = cs_alloc(g->order.len + 1, sizeof *s.edge),
                       .next = cs_alloc(n + 1, sizeof *s.next),
                       .queue = cs_alloc(n + 1, sizeof *s.queue)};
    cutset_status status;
    if (!s.row || !s.edge || !s.next || !s.queue) {
        status = cs_fail_memory(err);
    } else {
        make_rows(&s);
        for (size_t i = 0; i < n; i++)
            s.next[i] = CS_NONE;
        uint32_t node = 0;
        while (left[node] == 0)
            node++;
        for (; s.next[node] == CS_NONE; node = any_predecessor(&s, node))
            s.next[node] = 0; /* a mark */
        s.root = node;
        for (size_t i = 0; i < n; i++)
            s.next[i] = CS_NONE;
        search_back(&s);
        status = report(&s, err);
    }
    cs_free(s.row);
    cs_free(s.edge);
    cs_free(s.next);
    cs_free(s.queue);
    return status;
}
