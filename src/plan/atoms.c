/* Contraction: the graph with everything that must share a part merged into atoms.
 *
 * Classes of a union-find over nodes become supernodes; a part label is constant on every directed
 * cycle, so strongly connected components of the contracted graph are merged too (theory: fusion
 * groups). The result is a DAG; atoms are numbered in topological order, ties by first node.
 * Tarjan's algorithm, without recursion. Cost: O(n + m), O(n log n) to order when there are cycles
 * or classes, linear when every node is its own atom.
 */
#include <string.h>

#include "plan/work.h"

typedef struct rows {
    uint32_t *row, *to;
} rows;

/* Calls for each edge between different classes; `pass` 0 counts into row[from + 1], 1 fills. */
static void each_edge(const cs_graph *g, const uint32_t *of, rows *r, uint32_t *fill)
{
    for (uint32_t v = 0; v < g->nodes.len; v++) {
        const cs_node *n = &g->nodes.at[v];
        for (uint32_t i = 0; i < cs_n_reads(n); i++) {
            uint32_t value = cs_args(g, n)[i];
            if (value == CS_NONE || g->values.at[value].origin != CS_ORIGIN_NODE) continue;
            uint32_t from = of[g->values.at[value].from];
            if (from == of[v]) continue;
            if (fill)
                r->to[fill[from]++] = of[v];
            else
                r->row[from + 1]++;
        }
    }
    for (size_t i = 0; i < g->order.len; i++) {
        uint32_t from = of[g->order.at[i].from], to = of[g->order.at[i].to];
        if (from == to) continue;
        if (fill)
            r->to[fill[from]++] = to;
        else
            r->row[from + 1]++;
    }
}

/* Removes repeated entries of each row, in place. */
static void thin_rows(rows *r, uint32_t n, uint32_t *seen)
{
    memset(seen, 0xff, n * sizeof *seen);
    uint32_t out = 0;
    for (uint32_t a = 0, next = r->row[0]; a < n; a++) {
        uint32_t begin = next;
        next = r->row[a + 1];
        r->row[a] = out;
        for (uint32_t i = begin; i < next; i++) {
            if (seen[r->to[i]] == a) continue;
            seen[r->to[i]] = a;
            r->to[out++] = r->to[i];
        }
    }
    r->row[n] = out;
}

/* Rows of successors between classes; uses `scratch` of n entries. */
static bool build_rows(const cs_graph *g, const uint32_t *of, uint32_t n, cs_arena *arena, rows *r,
                       uint32_t *scratch)
{
    r->row = cs_arena_zalloc(arena, (size_t)n + 1, sizeof *r->row);
    if (!r->row) return false;
    each_edge(g, of, r, NULL);
    for (uint32_t a = 0; a < n; a++)
        r->row[a + 1] += r->row[a];
    r->to = cs_arena_alloc(arena, r->row[n], sizeof *r->to);
    if (!r->to) return false;
    memcpy(scratch, r->row, n * sizeof *scratch);
    each_edge(g, of, r, scratch);
    thin_rows(r, n, scratch);
    return true;
}

static bool transpose(const rows *in, uint32_t n, cs_arena *arena, rows *out, uint32_t *scratch)
{
    out->row = cs_arena_zalloc(arena, (size_t)n + 1, sizeof *out->row);
    out->to = cs_arena_alloc(arena, in->row[n], sizeof *out->to);
    if (!out->row || !out->to) return false;
    for (uint32_t i = 0; i < in->row[n]; i++)
        out->row[in->to[i] + 1]++;
    for (uint32_t a = 0; a < n; a++)
        out->row[a + 1] += out->row[a];
    memcpy(scratch, out->row, n * sizeof *scratch);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t i = in->row[a]; i < in->row[a + 1]; i++)
            out->to[scratch[in->to[i]]++] = a;
    return true;
}

/* Tarjan: comp[a] = number of a's component, in reverse topological order. Returns the count, or
 * CS_NONE without memory. */
static uint32_t components(const rows *r, uint32_t n, cs_arena *arena, uint32_t *comp)
{
    cs_arena_mark mark = cs_arena_note(arena);
    uint32_t *index = cs_arena_zalloc(arena, n, sizeof *index); /* 0 = not seen */
    uint32_t *low = cs_arena_alloc(arena, n, sizeof *low);
    uint32_t *at = cs_arena_alloc(arena, n, sizeof *at);     /* next edge to look at */
    uint32_t *path = cs_arena_alloc(arena, n, sizeof *path); /* depth-first stack */
    uint32_t *open = cs_arena_alloc(arena, n, sizeof *open); /* nodes without a component yet */
    if (!index || !low || !at || !path || !open) return CS_NONE;
    memset(comp, 0xff, n * sizeof *comp);
    uint32_t count = 0, clock = 0, n_open = 0;
    for (uint32_t root = 0; root < n; root++) {
        if (index[root]) continue;
        uint32_t depth = 0;
        path[depth++] = root;
        index[root] = low[root] = ++clock;
        at[root] = r->row[root];
        open[n_open++] = root;
        while (depth) {
            uint32_t a = path[depth - 1];
            if (at[a] < r->row[a + 1]) {
                uint32_t b = r->to[at[a]++];
                if (!index[b]) {
                    index[b] = low[b] = ++clock;
                    at[b] = r->row[b];
                    open[n_open++] = b;
                    path[depth++] = b;
                } else if (comp[b] == CS_NONE && index[b] < low[a]) {
                    low[a] = index[b];
                }
                continue;
            }
            depth--;
            if (depth && low[a] < low[path[depth - 1]]) low[path[depth - 1]] = low[a];
            if (low[a] == index[a]) {
                uint32_t b;
                do
                    comp[b = open[--n_open]] = count;
                while (b != a);
                count++;
            }
        }
    }
    cs_arena_release(arena, mark);
    return count;
}

/* Renumbers acyclic classes topologically, smallest first: of[] is rewritten. */
static bool order_classes(const cs_graph *g, uint32_t *of, uint32_t n, cs_arena *arena)
{
    cs_arena_mark mark = cs_arena_note(arena);
    rows r;
    uint32_t *scratch = cs_arena_alloc(arena, n, sizeof *scratch);
    uint32_t *waits = cs_arena_zalloc(arena, n, sizeof *waits);
    cs_heap ready = {.at = cs_arena_alloc(arena, n, sizeof *ready.at)};
    uint32_t *rank = cs_arena_alloc(arena, n, sizeof *rank);
    if (!scratch || !waits || !ready.at || !rank || !build_rows(g, of, n, arena, &r, scratch))
        return false;
    for (uint32_t i = 0; i < r.row[n]; i++)
        waits[r.to[i]]++;
    uint32_t next = 0;
    for (uint32_t a = 0; a < n; a++)
        if (!waits[a]) cs_heap_push(&ready, a);
    while (ready.len) {
        uint32_t a = cs_heap_pop(&ready);
        rank[a] = next++;
        for (uint32_t i = r.row[a]; i < r.row[a + 1]; i++)
            if (!--waits[r.to[i]]) cs_heap_push(&ready, r.to[i]);
    }
    for (size_t v = 0; v < g->nodes.len; v++)
        of[v] = rank[of[v]];
    cs_arena_release(arena, mark);
    return true;
}

/* Numbers classes by their first node (in node order); returns how many. */
static uint32_t number_classes(const uint32_t *key, uint32_t n_nodes, uint32_t *id, uint32_t *of)
{
    uint32_t n = 0;
    memset(id, 0xff, n_nodes * sizeof *id);
    for (uint32_t v = 0; v < n_nodes; v++) {
        if (id[key[v]] == CS_NONE) id[key[v]] = n++;
        of[v] = id[key[v]];
    }
    return n;
}

/* of[] for the general case: classes, components, topological numbers. CS_NONE: no memory. */
static uint32_t contract(const cs_graph *g, uint32_t *parent, cs_arena *arena, uint32_t *of)
{
    uint32_t n_nodes = (uint32_t)g->nodes.len;
    cs_arena_mark mark = cs_arena_note(arena);
    uint32_t *key = cs_arena_alloc(arena, n_nodes, sizeof *key);
    uint32_t *id = cs_arena_alloc(arena, n_nodes, sizeof *id);
    uint32_t *comp = cs_arena_alloc(arena, n_nodes, sizeof *comp);
    rows r;
    if (!key || !id || !comp) return CS_NONE;
    for (uint32_t v = 0; v < n_nodes; v++)
        key[v] = cs_union_find(parent, v);
    uint32_t n = number_classes(key, n_nodes, id, of);
    if (!build_rows(g, of, n, arena, &r, id)) return CS_NONE;
    uint32_t count = components(&r, n, arena, comp);
    if (count == CS_NONE) return CS_NONE;
    for (uint32_t v = 0; v < n_nodes; v++)
        key[v] = comp[of[v]];
    n = number_classes(key, n_nodes, id, of);
    cs_arena_release(arena, mark);
    return order_classes(g, of, n, arena) ? n : CS_NONE;
}

static bool any_union(const uint32_t *parent, uint32_t n)
{
    for (uint32_t v = 0; v < n; v++)
        if (parent[v] != v) return true;
    return false;
}

/* Lists the nodes of each atom in topological order. */
static bool list_nodes(const cs_graph *g, cs_arena *arena, cs_atoms *a)
{
    uint32_t n_nodes = (uint32_t)g->nodes.len;
    a->first = cs_arena_zalloc(arena, (size_t)a->n + 2, sizeof *a->first);
    a->node = cs_arena_alloc(arena, n_nodes, sizeof *a->node);
    if (!a->first || !a->node) return false;
    for (uint32_t v = 0; v < n_nodes; v++)
        a->first[a->of[v] + 2]++;
    for (uint32_t i = 2; i < a->n + 2; i++)
        a->first[i] += a->first[i - 1];
    for (uint32_t i = 0; i < n_nodes; i++) {
        uint32_t v = g->topo[i];
        a->node[a->first[a->of[v] + 1]++] = v;
    }
    return true; /* first[] has shifted into place */
}

/* What a node means to the least size of engines. */
static void weigh(const cs_work *w, cs_atoms *a, uint32_t atom, uint32_t node)
{
    const uint32_t flags = w->g->nodes.at[node].flags;
    const bool engine = w->target[node] != CS_HOST;
    a->counted[atom] += !(flags & CS_NODE_FREE);
    a->pinned[atom] |= engine && w->pinned[node];
    a->exempt[atom] |= engine && (w->pinned[node] || flags & CS_NODE_EXEMPT);
}

cutset_status cs_atoms_build(cs_work *w, uint32_t *parent, cs_arena *arena, cs_atoms *out,
                             cutset_error *err)
{
    const cs_graph *g = w->g;
    uint32_t n_nodes = w->n_nodes;
    *out = (cs_atoms){.of = cs_arena_alloc(arena, n_nodes, sizeof *out->of)};
    if (!out->of) return cs_fail_memory(err);
    if (any_union(parent, n_nodes)) {
        out->n = contract(g, parent, arena, out->of);
        if (out->n == CS_NONE) return cs_fail_memory(err);
    } else {
        out->n = n_nodes;
        for (uint32_t i = 0; i < n_nodes; i++)
            out->of[g->topo[i]] = i;
    }
    uint32_t n = out->n;
    rows succ, pred;
    out->target = cs_arena_alloc(arena, n, sizeof *out->target);
    out->counted = cs_arena_zalloc(arena, n, sizeof *out->counted);
    out->pinned = cs_arena_zalloc(arena, n, sizeof *out->pinned);
    out->exempt = cs_arena_zalloc(arena, n, sizeof *out->exempt);
    out->oversized = cs_arena_zalloc(arena, n, sizeof *out->oversized);
    uint32_t *scratch = cs_alloc(n, sizeof *scratch); /* not of the arena, where it would stay */
    bool ok = scratch && out->target && out->counted && out->pinned && out->exempt &&
              out->oversized && list_nodes(g, arena, out) &&
              build_rows(g, out->of, n, arena, &succ, scratch) &&
              transpose(&succ, n, arena, &pred, scratch);
    cs_free(scratch);
    if (!ok) return cs_fail_memory(err);
    out->succ = succ.row, out->succ_of = succ.to;
    out->pred = pred.row, out->pred_of = pred.to;
    for (uint32_t a = 0; a < n; a++) {
        out->target[a] = w->target[out->node[out->first[a]]];
        for (uint32_t i = out->first[a]; i < out->first[a + 1]; i++)
            weigh(w, out, a, out->node[i]);
    }
    return CUTSET_OK;
}
