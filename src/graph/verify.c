/* The verifier: every invariant of graph.h, computed again from the arrays alone.
 *
 * Each check names the node (or value) and what was expected. Rows of uses are checked by counting
 * and membership; the order by positions: every edge goes forward, and of the nodes that came
 * between a node's last predecessor and itself none has a larger id, else it should have come
 * first (a stack of falling maxima answers that). Effects and writes must have their order edges.
 * Cost: O((n + m) log n).
 */
#include "graph/graph.h"

#include <stdlib.h>

#define WRITES 1000

struct check {
    const cs_graph *g, *top;
    cutset_error *err;
    uint32_t *position; /* of each node in topo */
    uint32_t *count;    /* scratch, by value */
    cs_map edges;       /* order edges */
};

#define FAIL(c, ...) cs_fail((c)->err, CUTSET_BAD, "graph verifier: " __VA_ARGS__)

static cutset_status fail_node(const struct check *c, uint32_t node, const char *expected,
                               uint32_t id)
{
    char buffer[16];
    cs_span label = cs_node_label(c->g, node, buffer);
    return FAIL(c, "node $%u (%.*s): expected %s (%u)", node, CS_FMT(label), expected, id);
}

static cutset_status fail_value(const struct check *c, uint32_t v, const char *expected)
{
    cs_str name = c->g->values.at[v].name;
    cs_span text = name < c->g->pool->names.text.len ? cs_name(c->g->pool, name) : CS_SPAN("?");
    return FAIL(c, "value %u (%.*s): expected %s", v, CS_FMT(text), expected);
}

/* ---- ranges ---- */

static bool within(uint32_t from, uint64_t len, size_t all) { return from + len <= all; }

static cutset_status check_ranges(const struct check *c)
{
    const cs_graph *g = c->g;
    uint64_t arg = 0, out = 0, attr = 0, body = 0;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        if (!within(n->arg, (uint64_t)n->n_arg + n->n_capture, g->args.len) || n->arg < arg)
            return fail_node(c, i, "its args in the array, after those of earlier nodes", n->arg);
        if (!within(n->out, n->n_out, g->outs.len) || n->out < out)
            return fail_node(c, i, "its outs in the array, after those of earlier nodes", n->out);
        if (!within(n->attr, n->n_attr, g->attrs.len) || n->attr < attr)
            return fail_node(c, i, "its attrs in the array, after those of earlier nodes", n->attr);
        if (!within(n->body, n->n_body, g->bodies.len) || n->body < body)
            return fail_node(c, i, "its bodies in the array, after those of earlier nodes",
                             n->body);
        if (!within(n->allow, n->n_allow, g->allow.len))
            return fail_node(c, i, "its targets in the array", n->allow);
        if (!within(n->write, n->n_write, g->writes.len))
            return fail_node(c, i, "its writes in the array", n->write);
        arg = (uint64_t)n->arg + n->n_arg + n->n_capture;
        out = (uint64_t)n->out + n->n_out;
        attr = (uint64_t)n->attr + n->n_attr;
        body = (uint64_t)n->body + n->n_body;
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            uint32_t v = g->args.at[n->arg + a];
            if (v >= g->values.len && (v != CS_NONE || a >= n->n_arg))
                return fail_node(c, i, "each arg to be a value or absent", v);
        }
        for (uint32_t w = 0; w < n->n_write; w++)
            if (g->writes.at[n->write + w] >= g->values.len)
                return fail_node(c, i, "each write to name a value", g->writes.at[n->write + w]);
    }
    for (size_t i = 0; i < g->aliases.len; i++)
        if (g->aliases.at[i].value >= g->values.len || g->aliases.at[i].of >= g->values.len)
            return FAIL(c, "expected alias %zu to join two values", i);
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.at[i] >= g->nodes.len)
            return FAIL(c, "group member %zu: expected a node, not %u", i, g->members.at[i]);
    for (size_t i = 0; i < g->groups.len; i++)
        if (!within(g->groups.at[i].member, g->groups.at[i].n_member, g->members.len))
            return FAIL(c, "group %zu: expected its members in the array", i);
    return CUTSET_OK;
}

/* ---- values ---- */

/* Counts how often each value stands in `list` into c->count. */
static cutset_status count_in(const struct check *c, const uint32_t *list, size_t len,
                              const char *what)
{
    for (size_t v = 0; v < c->g->values.len; v++)
        c->count[v] = 0;
    for (size_t i = 0; i < len; i++) {
        if (list[i] == CS_NONE) continue;
        if (list[i] >= c->g->values.len)
            return FAIL(c, "%s %zu: expected a value, not %u", what, i, list[i]);
        c->count[list[i]]++;
    }
    return CUTSET_OK;
}

static cutset_status check_value(const struct check *c, uint32_t v)
{
    const cs_graph *g = c->g;
    const cs_value *value = &g->values.at[v];
    if (value->name >= g->pool->names.text.len) return fail_value(c, v, "a name in the pool");
    if (value->type >= g->pool->types.len) return fail_value(c, v, "a type in the pool");
    if (value->storage != CS_NONE && value->storage >= c->top->storages.len)
        return fail_value(c, v, "a storage of the outermost graph");
    switch (value->origin) {
    case CS_ORIGIN_INPUT:
        return value->from == CS_NONE ? CUTSET_OK : fail_value(c, v, "no source for an input");
    case CS_ORIGIN_WEIGHT:
        if (value->storage == CS_NONE || value->from != CS_NONE)
            return fail_value(c, v, "a storage and no source for a weight");
        return CUTSET_OK;
    case CS_ORIGIN_NODE:
        if (value->storage != CS_NONE || value->from >= g->nodes.len)
            return fail_value(c, v, "a node that makes it, and no storage");
        return CUTSET_OK;
    case CS_ORIGIN_CAPTURE:
        if (!g->outer || value->storage != CS_NONE || value->from >= g->outer->values.len)
            return fail_value(c, v, "a value of the enclosing graph behind a capture");
        return CUTSET_OK;
    default:
        return fail_value(c, v, "an origin");
    }
}

/* Inputs are listed once, made values stand once among the outs of their node. */
static cutset_status check_values(const struct check *c)
{
    const cs_graph *g = c->g;
    cutset_status status = CUTSET_OK;
    for (uint32_t v = 0; v < g->values.len && !status; v++)
        status = check_value(c, v);
    if (!status) status = count_in(c, g->outputs.at, g->outputs.len, "output");
    if (!status) status = count_in(c, g->inputs.at, g->inputs.len, "input");
    for (uint32_t v = 0; v < g->values.len && !status; v++)
        if (c->count[v] != (g->values.at[v].origin == CS_ORIGIN_INPUT))
            status = fail_value(c, v, "every input, and nothing else, to be listed once");
    if (!status) status = count_in(c, g->outs.at, g->outs.len, "out");
    for (uint32_t v = 0; v < g->values.len && !status; v++)
        if (c->count[v] != (g->values.at[v].origin == CS_ORIGIN_NODE))
            status = fail_value(c, v, "one node output a value, and none for other values");
    for (uint32_t i = 0; i < g->nodes.len && !status; i++) {
        const cs_node *n = &g->nodes.at[i];
        for (uint32_t o = 0; o < n->n_out && !status; o++) {
            uint32_t v = cs_outs(g, n)[o];
            if (v != CS_NONE && g->values.at[v].from != i)
                status = fail_node(c, i, "its outs to come from it", v);
        }
    }
    return status;
}

/* ---- captures ---- */

/* Each value that a body captures stands among the captures of the node, once. */
static cutset_status check_captures(const struct check *c, uint32_t i)
{
    const cs_graph *g = c->g;
    const cs_node *n = &g->nodes.at[i];
    const uint32_t *captures = n->n_capture ? &g->args.at[n->arg + n->n_arg] : NULL;
    if (n->n_capture > 0 && n->n_body == 0)
        return fail_node(c, i, "no captures without a body", n->n_capture);
    for (uint32_t a = 0; a < n->n_capture; a++)
        if (c->count[captures[a]]++)
            return fail_node(c, i, "each captured value once", captures[a]);
    cutset_status status = CUTSET_OK;
    for (uint32_t b = 0; b < n->n_body && !status; b++) {
        const cs_graph *body = g->bodies.at[n->body + b].graph;
        if (body->outer != g || body->pool != g->pool || !body->sealed)
            return fail_node(c, i, "a sealed body in this graph, of the same pool", b);
        for (uint32_t v = 0; v < body->values.len && !status; v++) {
            const cs_value *value = &body->values.at[v];
            if (value->origin == CS_ORIGIN_CAPTURE &&
                (value->from >= g->values.len || c->count[value->from] == 0))
                status = fail_node(c, i, "what its body captures among its captures", value->from);
        }
    }
    for (uint32_t a = 0; a < n->n_capture; a++)
        c->count[captures[a]] = 0;
    return status;
}

/* ---- uses ---- */

static bool in_row(const cs_graph *g, uint32_t value, uint32_t node)
{
    uint32_t low = g->use[value], high = g->use[value + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->user[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->use[value + 1] && g->user[low] == node;
}

/* Reads, each value once a node. */
static uint64_t count_reads(const struct check *c)
{
    const cs_graph *g = c->g;
    uint64_t reads = 0;
    for (uint32_t v = 0; v < g->values.len; v++)
        c->count[v] = CS_NONE;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            uint32_t v = g->args.at[n->arg + a];
            if (v == CS_NONE) continue;
            reads += c->count[v] != i;
            c->count[v] = i;
        }
    }
    return reads;
}

static cutset_status check_uses(const struct check *c)
{
    const cs_graph *g = c->g;
    uint64_t reads = count_reads(c);
    if (g->use[0] != 0 || g->use[g->values.len] != reads)
        return FAIL(c, "expected %llu uses from 0 on, not from %u to %u", (unsigned long long)reads,
                    g->use[0], g->use[g->values.len]);
    for (uint32_t v = 0; v < g->values.len; v++)
        if (g->use[v] > g->use[v + 1] || g->use[v + 1] > reads)
            return fail_value(c, v, "a row of uses that ends after it starts");
    for (uint32_t v = 0; v < g->values.len; v++)
        for (uint32_t u = g->use[v]; u < g->use[v + 1]; u++)
            if (g->user[u] >= g->nodes.len || (u > g->use[v] && g->user[u] <= g->user[u - 1]))
                return fail_value(c, v, "its readers to be nodes, ascending, each once");
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            uint32_t v = g->args.at[n->arg + a];
            if (v != CS_NONE && !in_row(g, v, i))
                return fail_node(c, i, "to stand among the readers of its arg", v);
        }
    }
    return CUTSET_OK;
}

/* ---- order ---- */

static cutset_status check_edge(const struct check *c, uint32_t from, uint32_t to)
{
    if (from >= c->g->nodes.len || to >= c->g->nodes.len)
        return FAIL(c, "expected an order edge between nodes, not %u -> %u", from, to);
    if (c->position[from] >= c->position[to])
        return fail_node(c, to, "to come after a node that it depends on", from);
    return CUTSET_OK;
}

/* After the last predecessor of a node, only smaller ids may come before it. `last` holds, by node,
 * the position after that of its last predecessor. */
static cutset_status check_ties(const struct check *c, const uint32_t *last)
{
    const cs_graph *g = c->g;
    size_t n = g->nodes.len, len = 0;
    uint32_t *stack = cs_alloc(n + 1, sizeof *stack); /* positions; ids fall from bottom to top */
    cutset_status status = stack ? CUTSET_OK : cs_fail_memory(c->err);
    for (uint32_t p = 0; p < n && !status; p++) {
        uint32_t node = g->topo[p];
        size_t low = 0, high = len; /* first entry at or after last[node]: the maximum from there */
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (stack[middle] < last[node])
                low = middle + 1;
            else
                high = middle;
        }
        if (low < len && g->topo[stack[low]] > node)
            status = fail_node(c, node, "to come before a node of larger id", g->topo[stack[low]]);
        while (len > 0 && g->topo[stack[len - 1]] < node)
            len--;
        if (stack) stack[len++] = p;
    }
    cs_free(stack);
    return status;
}

static void after(const struct check *c, uint32_t *last, uint32_t from, uint32_t to)
{
    if (last[to] < c->position[from] + 1) last[to] = c->position[from] + 1;
}

static cutset_status check_order(const struct check *c)
{
    const cs_graph *g = c->g;
    for (uint32_t i = 0; i < g->nodes.len; i++)
        c->position[i] = CS_NONE;
    for (uint32_t p = 0; p < g->nodes.len; p++) {
        uint32_t i = g->topo[p];
        if (i >= g->nodes.len || c->position[i] != CS_NONE)
            return FAIL(c, "position %u of the order: expected a node not seen before, not %u", p,
                        i);
        c->position[i] = p;
    }
    uint32_t *last = cs_zalloc(g->nodes.len + 1, sizeof *last);
    cutset_status status = last ? CUTSET_OK : cs_fail_memory(c->err);
    for (uint32_t i = 0; i < g->nodes.len && !status; i++) {
        const cs_node *n = &g->nodes.at[i];
        for (uint32_t a = 0; a < cs_n_reads(n) && !status; a++) {
            uint32_t v = g->args.at[n->arg + a];
            if (v == CS_NONE || g->values.at[v].origin != CS_ORIGIN_NODE) continue;
            status = check_edge(c, g->values.at[v].from, i);
            if (!status) after(c, last, g->values.at[v].from, i);
        }
    }
    for (size_t e = 0; e < g->order.len && !status; e++) {
        status = check_edge(c, g->order.at[e].from, g->order.at[e].to);
        if (!status) after(c, last, g->order.at[e].from, g->order.at[e].to);
    }
    if (!status) status = check_ties(c, last);
    cs_free(last);
    return status;
}

/* ---- effects and writes ---- */

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool writes_value(const cs_graph *g, const cs_node *n, uint32_t value)
{
    for (uint32_t w = 0; w < n->n_write; w++)
        if (g->writes.at[n->write + w] == value) return true;
    for (uint32_t b = 0; b < n->n_body; b++) {
        const cs_graph *body = g->bodies.at[n->body + b].graph;
        for (size_t m = 0; m < body->mutates.len; m++)
            if (body->values.at[body->mutates.at[m]].from == value) return true;
    }
    return false;
}

/* Is there an order edge? Aliases give others than those that the value alone would; with them, only
 * the order itself is looked at. */
static bool is_ordered(const struct check *c, uint32_t from, uint32_t to)
{
    if (from == to) return true;
    if (c->g->aliases.len > 0) return c->position[from] < c->position[to];
    return cs_map_get(&c->edges, (uint64_t)from << 32 | to) != CS_NONE;
}

/* All nodes that touch a value in node order, as 2 x node, + 1 for a read. */
typedef CS_VEC(uint32_t) touches;

static bool gather_touches(const cs_graph *g, uint32_t value, touches *out)
{
    for (uint32_t i = 0; i < g->nodes.len; i++)
        if (writes_value(g, &g->nodes.at[i], value) && !cs_vec_push(out, 2 * i)) return false;
    for (uint32_t u = g->use[value]; u < g->use[value + 1]; u++)
        if (!cs_vec_push(out, 2 * g->user[u] + 1)) return false;
    if (out->len > 0) qsort(out->at, out->len, sizeof *out->at, compare_ids);
    return true;
}

/* Last write -> each later reader and writer; each reader since -> the next write; maker -> write. */
static cutset_status check_touches(const struct check *c, uint32_t value, const touches *touch)
{
    static const char expected[] =
        "an order edge to it from earlier nodes that touch a written value";
    const cs_graph *g = c->g;
    uint32_t last = CS_NONE;
    size_t since = 0;
    for (size_t t = 0; t < touch->len; t++) {
        uint32_t node = touch->at[t] / 2;
        if (last != CS_NONE && !is_ordered(c, last, node))
            return fail_node(c, node, expected, value);
        if (touch->at[t] & 1) continue;
        for (size_t r = since; r < t; r++) /* the last writer may read as well */
            if (touch->at[r] / 2 != last && !is_ordered(c, touch->at[r] / 2, node))
                return fail_node(c, node, expected, value);
        if (g->values.at[value].origin == CS_ORIGIN_NODE && !in_row(g, value, node) &&
            !is_ordered(c, g->values.at[value].from, node))
            return fail_node(c, node, expected, value);
        last = node;
        since = t + 1;
    }
    return CUTSET_OK;
}

static cutset_status check_write(const struct check *c, uint32_t value)
{
    touches touch = {0};
    cutset_status status = gather_touches(c->g, value, &touch) ? CUTSET_OK : cs_fail_memory(c->err);
    if (!status) status = check_touches(c, value, &touch);
    cs_vec_fini(&touch);
    return status;
}

static cutset_status check_effects(const struct check *c)
{
    const cs_graph *g = c->g;
    uint32_t last = CS_NONE;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        bool has = n->flags & CS_NODE_EFFECT;
        for (uint32_t b = 0; b < n->n_body; b++)
            has = has || g->bodies.at[n->body + b].graph->effect;
        if (!has) continue;
        if (last != CS_NONE && cs_map_get(&c->edges, (uint64_t)last << 32 | i) == CS_NONE)
            return fail_node(c, i, "an order edge to it from the last node with an effect", last);
        last = i;
    }
    if ((last != CS_NONE) != g->effect)
        return FAIL(c, "expected the graph to know whether it holds an effect, not %d", g->effect);
    return CUTSET_OK;
}

/* Naive, the whole graph a written value, so only the first WRITES of them. */
static cutset_status check_writes(const struct check *c)
{
    const cs_graph *g = c->g;
    cutset_status status = CUTSET_OK;
    for (size_t w = 0; w < g->writes.len && w < WRITES && !status; w++)
        status = check_write(c, g->writes.at[w]);
    for (size_t b = 0; b < g->bodies.len && b < WRITES && !status; b++) {
        const cs_graph *body = g->bodies.at[b].graph;
        for (size_t m = 0; m < body->mutates.len && m < WRITES && !status; m++)
            status = check_write(c, body->values.at[body->mutates.at[m]].from);
    }
    return status;
}

static cutset_status check_implied(struct check *c)
{
    bool ok = true;
    for (size_t e = 0; e < c->g->order.len && ok; e++) {
        cs_edge edge = c->g->order.at[e];
        ok = cs_map_put(&c->edges, (uint64_t)edge.from << 32 | edge.to, 0);
    }
    cutset_status status = ok ? check_effects(c) : cs_fail_memory(c->err);
    if (!status) status = check_writes(c);
    cs_map_fini(&c->edges);
    return status;
}

/* ---- all ---- */

cutset_status cs_graph_verify(const cs_graph *g, cutset_error *err)
{
    struct check c = {.g = g, .top = g, .err = err};
    while (c.top->outer)
        c.top = c.top->outer;
    if (!g->sealed || !g->use || !g->user || !g->topo) return FAIL(&c, "expected a sealed graph");
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; i < g->bodies.len && !status; i++)
        status = cs_graph_verify(g->bodies.at[i].graph, err);
    if (status) return status;
    c.position = cs_alloc(g->nodes.len + 1, sizeof *c.position);
    c.count = cs_zalloc(g->values.len + 1, sizeof *c.count);
    status = c.position && c.count ? check_ranges(&c) : cs_fail_memory(err);
    if (!status) status = check_values(&c);
    for (size_t v = 0; v < g->values.len && !status; v++)
        c.count[v] = 0;
    for (uint32_t i = 0; i < g->nodes.len && !status; i++)
        status = check_captures(&c, i);
    if (!status) status = check_uses(&c);
    if (!status) status = check_order(&c);
    if (!status) status = check_implied(&c);
    cs_free(c.position);
    cs_free(c.count);
    return status;
}
