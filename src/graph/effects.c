/* Effects and writes become order edges.
 *
 * Program order is node order. Nodes with an effect form a chain, random ones another where the
 * graph says so. For writes, values that may share memory (classes.c) are one class; over the nodes
 * that read or write a written class, in node order, the classic dependences are: last write -> each reader and writer up to the next
 * write, and each reader since the last write -> the next write. The maker of a written value comes
 * before its writer even if the writer does not read it. A node whose body has an effect, or writes
 * a captured value, does so itself.
 *
 * Cost: linear in args and writes (union-find with path halving), plus a hash lookup an edge.
 */
#include "graph/seal.h"

#include "base/hash.h"

struct reader {
    uint32_t node, next;
};

struct class
{
    uint32_t last_write;      /* node, or CS_NONE */
    uint32_t readers, newest; /* since then: first and last of a list in work.readers */
    uint32_t wrote, read;     /* the last node that did, so that each counts once */
};

struct work {
    cs_graph *g;
    uint32_t *class_of; /* by value; first the root, then class index or CS_NONE */
    uint32_t *read_by;  /* by value: the last writing node that also reads it */
    CS_VEC(struct class) classes;
    CS_VEC(struct reader) readers;
    cs_map edges;  /* all order edges, to keep them distinct */
    uint32_t node; /* whose writes are being added */
};

static bool put_edge(struct work *w, uint32_t from, uint32_t to)
{
    uint64_t key = (uint64_t)from << 32 | to;
    if (from == to || cs_map_get(&w->edges, key) != CS_NONE) return true;
    cs_edge edge = {from, to};
    return cs_map_put(&w->edges, key, 0) && cs_vec_push(&w->g->order, edge);
}

static bool has_effect(const cs_graph *g, const cs_node *n)
{
    bool effect = n->flags & CS_NODE_EFFECT;
    for (uint32_t i = 0; i < n->n_body && !effect; i++)
        effect = g->bodies.at[n->body + i].graph->effect;
    return effect;
}

/* Where random draws keep their order: the generator is a state that they share. */
static bool draws(const cs_graph *g, const cs_node *n)
{
    return g->imperative && n->flags & CS_NODE_RANDOM;
}

/* ---- classes of values that may share memory ---- */

/* Notes the class of a written value; its root stands in `read` until classes have numbers. */
static bool mark_written(void *payload, uint32_t value)
{
    struct work *w = payload;
    struct class c = {.read = w->class_of[value]};
    if (w->classes.len && w->classes.at[w->classes.len - 1].read == c.read)
        return true; /* spares most repeats; number_classes drops the others */
    return cs_vec_push(&w->classes, c);
}

/* Turns roots into dense class numbers, unwritten classes into CS_NONE. */
static bool number_classes(struct work *w)
{
    size_t n = w->g->values.len;
    uint32_t *number = cs_alloc(n, sizeof *number);
    if (!number) return false;
    for (size_t v = 0; v < n; v++)
        number[v] = CS_NONE;
    size_t len = 0;
    for (size_t i = 0; i < w->classes.len; i++) {
        uint32_t root = w->classes.at[i].read;
        if (number[root] != CS_NONE) continue;
        number[root] = (uint32_t)len;
        w->classes.at[len++] = (struct class){CS_NONE, CS_NONE, CS_NONE, CS_NONE, CS_NONE};
    }
    w->classes.len = len;
    for (size_t v = 0; v < n; v++)
        w->class_of[v] = number[w->class_of[v]];
    cs_free(number);
    return true;
}

static bool make_classes(struct work *w)
{
    cs_graph *g = w->g;
    w->class_of = cs_alloc(g->values.len, sizeof *w->class_of);
    w->read_by = cs_alloc(g->values.len, sizeof *w->read_by);
    if (!w->class_of || !w->read_by) return false;
    for (size_t v = 0; v < g->values.len; v++)
        w->read_by[v] = CS_NONE;
    cs_graph_classes(g, w->class_of);
    for (size_t i = 0; i < g->nodes.len; i++)
        if (!cs_node_writes(g, &g->nodes.at[i], mark_written, w)) return false;
    if (!number_classes(w)) return false;
    for (size_t v = 0; v < g->values.len; v++)
        if (g->values.at[v].origin == CS_ORIGIN_CAPTURE && w->class_of[v] != CS_NONE &&
            !cs_vec_push(&g->mutates, (uint32_t)v))
            return false;
    return true;
}

/* ---- edges ---- */

static bool add_write(void *payload, uint32_t value)
{
    struct work *w = payload;
    const uint32_t n = w->node;
    const cs_graph *g = w->g;
    const cs_value *v = &g->values.at[value];
    if (v->origin == CS_ORIGIN_NODE && w->read_by[value] != n && !put_edge(w, v->from, n))
        return false;
    struct class *c = &w->classes.at[w->class_of[value]];
    if (c->wrote == n) return true;
    if (c->last_write != CS_NONE && !put_edge(w, c->last_write, n)) return false;
    for (uint32_t r = c->readers; r != CS_NONE; r = w->readers.at[r].next)
        if (!put_edge(w, w->readers.at[r].node, n)) return false;
    c->readers = CS_NONE;
    c->last_write = c->wrote = n;
    return true;
}

static bool add_read(struct work *w, uint32_t n, uint32_t value)
{
    if (value == CS_NONE || w->class_of[value] == CS_NONE) return true;
    struct class *c = &w->classes.at[w->class_of[value]];
    if (c->wrote == n || c->read == n) return true;
    c->read = n;
    if (c->last_write != CS_NONE && !put_edge(w, c->last_write, n)) return false;
    uint32_t id = (uint32_t)w->readers.len;
    if (w->readers.len >= CS_NONE - 1 || !cs_vec_push(&w->readers, ((struct reader){n, CS_NONE})))
        return false;
    if (c->readers == CS_NONE)
        c->readers = id;
    else
        w->readers.at[c->newest].next = id;
    c->newest = id;
    return true;
}

static bool add_edges(struct work *w, bool writes)
{
    cs_graph *g = w->g;
    uint32_t last_effect = CS_NONE, last_draw = CS_NONE;
    for (size_t i = 0; i < g->order.len; i++)
        if (!cs_map_put(&w->edges, (uint64_t)g->order.at[i].from << 32 | g->order.at[i].to, 0))
            return false;
    for (uint32_t n = 0; n < g->nodes.len; n++) {
        const cs_node *node = &g->nodes.at[n];
        if (has_effect(g, node)) {
            if (last_effect != CS_NONE && !put_edge(w, last_effect, n)) return false;
            last_effect = n;
        }
        if (draws(g, node)) {
            if (last_draw != CS_NONE && !put_edge(w, last_draw, n)) return false;
            last_draw = n;
        }
        if (!writes) continue;
        for (uint32_t i = 0; i < cs_n_reads(node) && (node->n_write || node->n_body); i++)
            if (g->args.at[node->arg + i] != CS_NONE) w->read_by[g->args.at[node->arg + i]] = n;
        w->node = n;
        if (!cs_node_writes(g, node, add_write, w)) return false;
        for (uint32_t i = 0; i < cs_n_reads(node); i++)
            if (!add_read(w, n, g->args.at[node->arg + i])) return false;
    }
    return true;
}

bool cs_seal_effects(cs_graph *g)
{
    bool writes = g->writes.len > 0;
    g->n_given = g->order.len;
    for (size_t i = 0; i < g->nodes.len && !g->effect; i++)
        g->effect = has_effect(g, &g->nodes.at[i]);
    for (size_t i = 0; i < g->bodies.len && !writes; i++)
        writes = g->bodies.at[i].graph->mutates.len > 0;
    if (!g->effect && !writes && !g->imperative) return true;
    struct work w = {.g = g};
    bool ok = (!writes || make_classes(&w)) && add_edges(&w, writes);
    cs_free(w.class_of);
    cs_free(w.read_by);
    cs_vec_fini(&w.classes);
    cs_vec_fini(&w.readers);
    cs_map_fini(&w.edges);
    return ok;
}
