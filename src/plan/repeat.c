/* Repeated nodes: pure and cheap nodes that every part which reads them computes for itself.
 *
 * What is planned is the graph without them. A node that reads a repeated value reads, in its place,
 * the leaves of its cone: the values that are not made by repeated nodes and that it is made from.
 * So a part has all it needs to compute its copies, and weights behind them count in it. Value ids
 * stay, nodes are numbered anew. The decision is then mapped back: the home of a repeated node is
 * the first part that needs it, each other part that needs it holds a copy.
 *
 * Planned like any other, in spite of its flag, is a node that no node reads (a graph output alone,
 * or nothing); one that writes, draws, has an effect or an order edge, or whose result is written.
 *
 * Cost: linear in nodes, reads and cones; cones are walked once for each reader. Long chains with
 * many readers would make that quadratic: when all walks together look at more than STEPS values
 * for each read, chains are planned at every CHAIN nodes or so, and cones are bounded.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/repeat.h"

enum {
    STEPS = 32,
    SMALL = 1 << 16, /* steps that are always granted */
    CHAIN = 64       /* largest cone, counted as a tree, where steps ran out */
};

typedef struct reducer {
    const cs_graph *g; /* the whole */
    cs_graph *to;
    uint32_t *kept;  /* by node */
    uint32_t *seen;  /* by node: whose cone it was met in, + 1 */
    uint32_t *stamp; /* by value: who reads it already, + 1 */
    CS_VEC(uint32_t) stack;
    uint64_t steps;
} reducer;

/* The repeated node that makes `v`, or CS_NONE. */
static uint32_t repeated_maker(const cs_graph *g, const uint32_t *kept, uint32_t v)
{
    if (v == CS_NONE || g->values.at[v].origin != CS_ORIGIN_NODE) return CS_NONE;
    const uint32_t from = g->values.at[v].from;
    return kept[from] == CS_NONE ? from : CS_NONE;
}

/* ---- which nodes are repeated ---- */

static bool is_pure(const cs_graph *g, const cs_node *n)
{
    if (n->flags & (CS_NODE_EFFECT | CS_NODE_RANDOM) || n->n_write > 0) return false;
    for (uint32_t b = 0; b < n->n_body; b++) {
        const cs_graph *body = g->bodies.at[n->body + b].graph;
        if (body->effect || body->mutates.len > 0) return false;
    }
    return true;
}

static bool is_read(const cs_graph *g, const cs_node *n)
{
    const uint32_t *outs = cs_outs(g, n);
    for (uint32_t o = 0; o < n->n_out; o++)
        if (outs[o] != CS_NONE && g->use[outs[o]] != g->use[outs[o] + 1]) return true;
    return false;
}

/* kept[n] becomes CS_NONE for repeated nodes, else 0. False: there is none. */
static bool find_repeated(const cs_plan_source *source, uint32_t *kept)
{
    const cs_graph *g = source->graph;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        const bool repeat = n->flags & CS_NODE_REPEAT && is_pure(g, n) && is_read(g, n) &&
                            !(source->permits && source->permits[i].planned);
        kept[i] = repeat ? CS_NONE : 0;
    }
    for (size_t e = 0; e < g->order.len; e++)
        kept[g->order.at[e].from] = kept[g->order.at[e].to] = 0;
    for (size_t i = 0; i < g->writes.len; i++) {
        const cs_value *v = &g->values.at[g->writes.at[i]];
        if (v->origin == CS_ORIGIN_NODE) kept[v->from] = 0;
    }
    for (uint32_t i = 0; i < g->nodes.len; i++)
        if (kept[i] == CS_NONE) return true;
    return false;
}

/* Plans a node wherever the cone of repeated nodes above it, as a tree, is larger than CHAIN. */
static void bound_cones(const cs_graph *g, uint32_t *kept, uint32_t *size)
{
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const uint32_t node = g->topo[i];
        const cs_node *n = &g->nodes.at[node];
        const uint32_t *args = cs_args(g, n);
        size[node] = 0;
        if (kept[node] != CS_NONE) continue;
        size[node] = 1 + cs_n_reads(n);
        for (uint32_t a = 0; a < cs_n_reads(n) && size[node] <= CHAIN; a++) {
            const uint32_t maker = repeated_maker(g, kept, args[a]);
            if (maker != CS_NONE) size[node] += size[maker];
        }
        if (size[node] > CHAIN) kept[node] = size[node] = 0;
    }
}

/* Numbers what is not repeated: how many. */
static uint32_t number_nodes(const cs_graph *g, uint32_t *kept, uint32_t *node)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        if (kept[i] == CS_NONE) continue;
        node[n] = i;
        kept[i] = n++;
    }
    return n;
}

/* ---- args ---- */

static bool push_arg(cs_graph *to, uint32_t v)
{
    return to->args.len < CS_NONE - 1 && cs_vec_push(&to->args, v);
}

static bool meet(reducer *r, uint32_t maker, uint32_t mark)
{
    if (r->seen[maker] == mark) return true;
    r->seen[maker] = mark;
    return cs_vec_push(&r->stack, maker);
}

/* Adds, behind the args of `n`, the leaves of the cones on the stack that it does not read yet. */
static bool add_leaves(reducer *r, cs_node *n, uint32_t mark)
{
    const cs_graph *g = r->g;
    while (r->stack.len > 0) {
        const cs_node *inner = &g->nodes.at[r->stack.at[--r->stack.len]];
        const uint32_t *args = cs_args(g, inner);
        r->steps += 1 + cs_n_reads(inner);
        for (uint32_t a = 0; a < cs_n_reads(inner); a++) {
            const uint32_t v = args[a], maker = repeated_maker(g, r->kept, v);
            if (maker != CS_NONE) {
                if (!meet(r, maker, mark)) return false;
            } else if (v != CS_NONE && r->stamp[v] != mark) {
                r->stamp[v] = mark;
                if (!push_arg(r->to, v)) return false;
                n->n_capture++;
            }
        }
    }
    return true;
}

/* The reads of `node`, which is number `id` now. An arg that is repeated is absent, so that the
 * others keep their places; the leaves stand where captures do. */
static bool add_reads(reducer *r, uint32_t node, uint32_t id)
{
    const cs_node *old = &r->g->nodes.at[node];
    const uint32_t *args = cs_args(r->g, old);
    cs_node *n = &r->to->nodes.at[id];
    n->arg = (uint32_t)r->to->args.len;
    n->n_capture = 0;
    for (uint32_t a = 0; a < cs_n_reads(old); a++) {
        const uint32_t v = args[a], maker = repeated_maker(r->g, r->kept, v);
        if (maker != CS_NONE && !meet(r, maker, id + 1)) return false;
        if (v != CS_NONE && maker == CS_NONE) r->stamp[v] = id + 1;
        if (a >= old->n_arg && maker != CS_NONE) continue;
        if (!push_arg(r->to, maker == CS_NONE ? v : CS_NONE)) return false;
        n->n_capture += a >= old->n_arg;
    }
    /* What follows a repeated node goes where it is read itself. */
    if (old->n_arg > 0 && repeated_maker(r->g, r->kept, args[0]) != CS_NONE)
        n->flags &= ~(uint32_t)CS_NODE_FOLLOW;
    return add_leaves(r, n, id + 1);
}

/* All of them; *within: cones were not walked for too many steps. */
static bool add_nodes(reducer *r, const cs_reduction *out, uint32_t n, uint64_t most, bool *within)
{
    r->to->nodes.len = r->to->args.len = 0;
    r->steps = 0;
    *within = true;
    memset(r->seen, 0, r->g->nodes.len * sizeof *r->seen);
    memset(r->stamp, 0, r->g->values.len * sizeof *r->stamp);
    if (!cs_vec_room(&r->to->nodes, n) || !cs_vec_room(&r->to->args, r->g->args.len)) return false;
    for (uint32_t i = 0; i < n; i++) {
        r->to->nodes.at[r->to->nodes.len++] = r->g->nodes.at[out->node[i]];
        if (!add_reads(r, out->node[i], i)) return false;
        if (r->steps > most) return *within = false, true;
    }
    return true;
}

/* ---- the rest of the graph ---- */

/* What is repeated makes nothing here: its values are weights that nothing reads. */
static bool add_values(const cs_graph *g, const uint32_t *kept, cs_graph *to)
{
    if (!cs_vec_room(&to->values, g->values.len)) return false;
    if (g->values.len > 0)
        memcpy(to->values.at, g->values.at, g->values.len * sizeof *g->values.at);
    to->values.len = g->values.len;
    for (size_t v = 0; v < to->values.len; v++) {
        cs_value *value = &to->values.at[v];
        if (value->origin != CS_ORIGIN_NODE) continue;
        value->from = kept[value->from];
        if (value->from == CS_NONE) value->origin = CS_ORIGIN_WEIGHT;
    }
    return true;
}

static bool add_groups(const cs_graph *g, const uint32_t *kept, cs_graph *to)
{
    if (!cs_vec_room(&to->groups, g->groups.len) || !cs_vec_room(&to->members, g->members.len))
        return false;
    for (size_t i = 0; i < g->groups.len; i++) {
        cs_group group = g->groups.at[i];
        const uint32_t *member = g->members.at + group.member;
        const uint32_t n = group.n_member;
        group.member = (uint32_t)to->members.len;
        for (uint32_t k = 0; k < n; k++)
            if (kept[member[k]] != CS_NONE) to->members.at[to->members.len++] = kept[member[k]];
        group.n_member = (uint32_t)to->members.len - group.member;
        to->groups.at[to->groups.len++] = group;
    }
    return true;
}

/* What has an order edge is not repeated. */
static bool add_order(const cs_graph *g, const uint32_t *kept, cs_graph *to)
{
    if (!cs_vec_room(&to->order, g->order.len)) return false;
    for (size_t e = 0; e < g->order.len; e++)
        to->order.at[to->order.len++] =
            (cs_edge){kept[g->order.at[e].from], kept[g->order.at[e].to]};
    return true;
}

#define LEND(to, from, field)                                                                      \
    ((to)->field.at = (from)->field.at, (to)->field.len = (to)->field.cap = (from)->field.len)
#define GIVE_BACK(to, field) ((to)->field.at = NULL, (to)->field.len = (to)->field.cap = 0)

/* Nodes keep their places in these arrays. */
static void borrow(cs_graph *to, const cs_graph *g)
{
    to->name = g->name;
    to->imperative = g->imperative;
    LEND(to, g, opsets);
    LEND(to, g, storages);
    LEND(to, g, outs);
    LEND(to, g, aliases);
    LEND(to, g, attrs);
    LEND(to, g, bodies);
    LEND(to, g, allow);
    LEND(to, g, writes);
    LEND(to, g, inputs);
    LEND(to, g, exposed);
    LEND(to, g, outputs);
}

static void free_reduced(cs_graph *to)
{
    if (to == NULL) return;
    GIVE_BACK(to, opsets);
    GIVE_BACK(to, storages);
    GIVE_BACK(to, outs);
    GIVE_BACK(to, aliases);
    GIVE_BACK(to, attrs);
    GIVE_BACK(to, bodies);
    GIVE_BACK(to, allow);
    GIVE_BACK(to, writes);
    GIVE_BACK(to, inputs);
    GIVE_BACK(to, exposed);
    GIVE_BACK(to, outputs);
    to->pool = NULL;
    cs_graph_free(to);
}

static bool add_permits(cs_reduction *out, const cs_permit *permits)
{
    if (permits == NULL) return true;
    const size_t n = out->graph->nodes.len;
    out->permits = cs_alloc(n, sizeof *out->permits);
    if (out->permits == NULL) return false;
    for (size_t i = 0; i < n; i++)
        out->permits[i] = permits[out->node[i]];
    return true;
}

/* ---- reducing ---- */

static bool fill(reducer *r, cs_reduction *out)
{
    const cs_graph *g = r->g;
    const uint64_t most = (uint64_t)STEPS * (g->nodes.len + g->args.len) + SMALL;
    bool within;
    uint32_t n = number_nodes(g, out->kept, out->node);
    if (!add_nodes(r, out, n, most, &within)) return false;
    if (!within) {
        bound_cones(g, out->kept, r->seen);
        n = number_nodes(g, out->kept, out->node);
        r->stack.len = 0;
        if (!add_nodes(r, out, n, UINT64_MAX, &within)) return false;
    }
    return add_values(g, out->kept, r->to) && add_groups(g, out->kept, r->to) &&
           add_order(g, out->kept, r->to);
}

static cutset_status reduce(cs_reduction *out, const cs_plan_source *source, cutset_error *err)
{
    const cs_graph *g = source->graph;
    out->node = cs_alloc(g->nodes.len, sizeof *out->node);
    out->graph = cs_graph_new(g->pool, g->outer);
    reducer r = {.g = g, .to = out->graph, .kept = out->kept};
    r.seen = cs_alloc(g->nodes.len, sizeof *r.seen);
    r.stamp = cs_alloc(g->values.len, sizeof *r.stamp);
    bool ok = out->node && out->graph && r.seen && r.stamp;
    if (ok) borrow(out->graph, g);
    ok = ok && fill(&r, out) && add_permits(out, source->permits);
    cs_free(r.seen);
    cs_free(r.stamp);
    cs_vec_fini(&r.stack);
    if (!ok) return cs_fail_memory(err);
    out->graph->number = out->node;
    if (g->number) {
        const size_t n = out->graph->nodes.len;
        out->number = cs_alloc(n, sizeof *out->number);
        if (!out->number) return cs_fail_memory(err);
        for (size_t i = 0; i < n; i++)
            out->number[i] = g->number[out->node[i]];
        out->graph->number = out->number;
    }
    const cutset_status s = cs_graph_seal(out->graph, err);
    out->graph->n_given = g->n_given; /* all order edges were given here; these are the caller's */
    out->source.graph = out->graph;
    out->source.permits = out->permits;
    out->source.whole = g;
    out->source.kept = out->kept;
    return s;
}

static bool has_flag(const cs_graph *g)
{
    for (size_t i = 0; i < g->nodes.len; i++)
        if (g->nodes.at[i].flags & CS_NODE_REPEAT) return true;
    return false;
}

cutset_status cs_reduce(cs_reduction *out, const cs_plan_source *source, cutset_error *err)
{
    *out = (cs_reduction){.source = *source};
    if (!has_flag(source->graph)) return CUTSET_OK;
    out->kept = cs_alloc(source->graph->nodes.len, sizeof *out->kept);
    if (out->kept == NULL) return cs_fail_memory(err);
    return find_repeated(source, out->kept) ? reduce(out, source, err) : CUTSET_OK;
}

void cs_reduction_fini(cs_reduction *r)
{
    free_reduced(r->graph);
    cs_free(r->node);
    cs_free(r->kept);
    cs_free(r->permits);
    cs_free(r->number);
    *r = (cs_reduction){0};
}

/* ---- back to the whole graph ---- */

typedef struct restorer {
    const cs_graph *g;
    const uint32_t *kept;
    uint32_t *part;     /* by node; CS_NONE: its home is not known yet */
    uint32_t *seen;     /* by node: the last part that needed it, + 1 */
    uint32_t *position; /* by node, in g->topo */
    CS_VEC(uint32_t) stack;
    CS_VEC(cs_copy) copies;
} restorer;

/* The repeated nodes that `node` reads are needed in `part`. */
static bool need_makers(restorer *r, uint32_t node, uint32_t part)
{
    const cs_node *n = &r->g->nodes.at[node];
    const uint32_t *args = cs_args(r->g, n);
    for (uint32_t a = 0; a < cs_n_reads(n); a++) {
        const uint32_t maker = repeated_maker(r->g, r->kept, args[a]);
        if (maker == CS_NONE || r->seen[maker] == part + 1) continue;
        r->seen[maker] = part + 1;
        if (!cs_vec_push(&r->stack, maker)) return false;
        if (r->part[maker] == CS_NONE)
            r->part[maker] = part;
        else if (r->copies.len >= CS_NONE || !cs_vec_push(&r->copies, ((cs_copy){part, maker})))
            return false;
    }
    return true;
}

static int by_position(const void *a, const void *b, void *position)
{
    const uint32_t x = ((const uint32_t *)position)[((const cs_copy *)a)->node];
    const uint32_t y = ((const uint32_t *)position)[((const cs_copy *)b)->node];
    return (x > y) - (x < y);
}

/* Everything that part `p`, which holds node[0 .. n), needs. */
static bool fill_part(restorer *r, uint32_t p, const uint32_t *node, uint32_t n)
{
    const size_t first = r->copies.len;
    for (uint32_t i = 0; i < n; i++) {
        if (!need_makers(r, node[i], p)) return false;
        while (r->stack.len > 0)
            if (!need_makers(r, r->stack.at[--r->stack.len], p)) return false;
    }
    if (r->copies.len > first + 1)
        qsort_r(r->copies.at + first, r->copies.len - first, sizeof *r->copies.at, by_position,
                r->position);
    return true;
}

/* Parts in order, so that the first that needs a node is its home. `row`: n_parts + 1, zero;
 * `member`: by node of the reduced graph. */
static bool fill_parts(restorer *r, const cs_reduction *from, const cs_decision *d, uint32_t *row,
                       uint32_t *member)
{
    for (uint32_t i = 0; i < d->n_nodes; i++)
        row[d->part[i] + 1]++;
    for (uint32_t p = 0; p < d->n_parts; p++)
        row[p + 1] += row[p];
    for (uint32_t i = 0; i < d->n_nodes; i++)
        member[row[d->part[i]]++] = from->node[i];
    for (uint32_t p = 0, first = 0; p < d->n_parts; first = row[p++]) /* row[p] is p's end now */
        if (!fill_part(r, p, member + first, row[p] - first)) return false;
    return true;
}

static void map_back(const cs_reduction *from, cs_decision *d, uint32_t *part, cs_reason *reasons)
{
    for (uint32_t i = 0; i < d->n_nodes; i++)
        reasons[from->node[i]] = d->reasons[i];
    for (uint32_t i = 0; i < d->n_certificate; i++)
        d->certificate[i] = from->node[d->certificate[i]];
    cs_free(d->part);
    cs_free(d->reasons);
    d->part = part;
    d->reasons = reasons;
    d->n_nodes = (uint32_t)from->source.whole->nodes.len;
}

cutset_status cs_reduction_restore(const cs_reduction *from, cs_decision *d, cutset_error *err)
{
    if (from->graph == NULL) return CUTSET_OK;
    const cs_graph *g = from->source.whole;
    const size_t n = g->nodes.len;
    restorer r = {.g = g, .kept = from->kept};
    r.part = cs_alloc(n, sizeof *r.part);
    r.seen = cs_zalloc(n, sizeof *r.seen);
    r.position = cs_alloc(n, sizeof *r.position);
    cs_reason *reasons = cs_zalloc(n, sizeof *reasons);
    uint32_t *row = cs_zalloc((size_t)d->n_parts + 1, sizeof *row);
    uint32_t *member = cs_alloc(d->n_nodes, sizeof *member);
    bool ok = r.part && r.seen && r.position && reasons && row && member;
    for (uint32_t i = 0; ok && i < n; i++) {
        r.position[g->topo[i]] = i;
        r.part[i] = from->kept[i] == CS_NONE ? CS_NONE : d->part[from->kept[i]];
    }
    ok = ok && fill_parts(&r, from, d, row, member);
    cs_free(r.seen);
    cs_free(r.position);
    cs_free(row);
    cs_free(member);
    cs_vec_fini(&r.stack);
    if (!ok) {
        cs_free(r.part);
        cs_free(reasons);
        cs_vec_fini(&r.copies);
        return cs_fail_memory(err);
    }
    map_back(from, d, r.part, reasons);
    d->copies = r.copies.at;
    d->n_copies = (uint32_t)r.copies.len;
    return CUTSET_OK;
}
