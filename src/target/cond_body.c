/* Conditions of an operator's rule on its bodies, for If (two branches) and Loop (one body whose
 * inputs are iteration, condition, carried values and whose outputs are condition, carried values,
 * scans). Whether the nodes inside are taken is check.c's business.
 */
#include "target/rules.h"

static const cs_type_info *type_of(const cs_graph *g, uint32_t value)
{
    return cs_type_get(g->pool, g->values.at[value].type);
}

static void begin(cs_reason *r, const cs_graph *g, const cs_node *n, cs_rule rule)
{
    cs_span op = cs_name(g->pool, n->op);
    r->rule = rule;
    cs_reason_add(r, "%.*s: ", CS_FMT(op));
}

/* ---- If ---- */

static bool ranks_differ(const cs_graph *g, const cs_node *n, const cs_body *b, cs_reason *r)
{
    const cs_graph *x = b[0].graph, *y = b[1].graph;
    for (size_t i = 0; i < x->outputs.len && i < y->outputs.len; i++) {
        int p = type_of(x, x->outputs.at[i])->rank, q = type_of(y, y->outputs.at[i])->rank;
        if (p == q && p >= 0) continue;
        begin(r, g, n, CS_RULE_RANK);
        if (p < 0 || q < 0)
            cs_reason_add(r, "the rank of output %zu is not known in both branches", i);
        else
            cs_reason_add(r, "output %zu has rank %d in one branch and %d in the other", i, p, q);
        return true;
    }
    return false;
}

/* A name in both branches. All pairs, up to a count that no exporter reaches; then by position. */
static bool names_meet(const cs_graph *g, const cs_node *n, const cs_body *b, cs_reason *r)
{
    const cs_graph *x = b[0].graph, *y = b[1].graph;
    bool all = x->outputs.len <= 256 && y->outputs.len <= 256;
    for (size_t i = 0; i < x->outputs.len; i++) {
        size_t from = all ? 0 : i, to = all ? y->outputs.len : i + 1;
        for (size_t k = from; k < to && k < y->outputs.len; k++) {
            cs_str name = x->values.at[x->outputs.at[i]].name;
            if (name != y->values.at[y->outputs.at[k]].name) continue;
            cs_span text = cs_name(g->pool, name);
            begin(r, g, n, CS_RULE_ATTR);
            cs_reason_add(r, "both branches have an output named %.*s; the names must differ",
                          CS_FMT(text));
            return true;
        }
    }
    return false;
}

/* ---- Loop ---- */

/* Two shapes that cannot be the same: other ranks, other numbers, other expressions. */
static bool shapes_differ(const cs_pool *pool, const cs_type_info *a, const cs_type_info *b)
{
    if (a->rank < 0 || b->rank < 0) return false;
    if (a->rank != b->rank) return true;
    for (int i = 0; i < a->rank; i++) {
        cs_dim x = pool->dims.at[a->dims + (uint32_t)i], y = pool->dims.at[b->dims + (uint32_t)i];
        if (x != y && x != CS_DIM_UNKNOWN && y != CS_DIM_UNKNOWN) return true;
    }
    return false;
}

static bool carried_changes(const cs_graph *g, const cs_node *n, const cs_body *b, cs_reason *r)
{
    const cs_graph *body = b->graph;
    for (uint32_t k = 2; k < n->n_arg; k++) {
        if (k >= body->inputs.len || k - 1 >= body->outputs.len) return false;
        const cs_type_info *in = type_of(body, body->inputs.at[k]);
        const cs_type_info *out = type_of(body, body->outputs.at[k - 1]);
        uint32_t first = cs_node_arg(g, n, k);
        bool changes = shapes_differ(g->pool, in, out) ||
                       (first != CS_NONE && shapes_differ(g->pool, type_of(g, first), out));
        if (!changes) continue;
        begin(r, g, n, CS_RULE_SHAPE);
        cs_reason_add(r, "carried value %u changes its shape from one iteration to the next",
                      k - 2);
        return true;
    }
    return false;
}

/* Does the body always go on: is its condition the one it was given, or a constant? */
static bool goes_on(const cs_graph *body)
{
    if (body->outputs.len == 0 || body->inputs.len < 2) return false;
    uint32_t cond = body->outputs.at[0];
    for (int hops = 0; hops < 8; hops++) {
        if (cond == body->inputs.at[1] || cs_value_is_const(body, cond)) return true;
        const cs_value *v = &body->values.at[cond];
        if (v->origin != CS_ORIGIN_NODE) return false;
        const cs_node *n = &body->nodes.at[v->from];
        if (!cs_span_is(cs_name(body->pool, n->op), "Identity")) return false;
        cond = cs_node_arg(body, n, 0);
        if (cond == CS_NONE) return false;
    }
    return false;
}

static bool known_or_absent(const cs_graph *g, const cs_node *n, uint32_t position, bool absent)
{
    uint32_t value = cs_node_arg(g, n, position);
    return value == CS_NONE ? absent : cs_value_is_const(g, value);
}

/* A scan output whose length depends on the run. */
static bool scan_varies(const cs_graph *g, const cs_node *n, const cs_body *b, cs_reason *r)
{
    uint32_t carried = n->n_arg > 2 ? n->n_arg - 2 : 0;
    bool trips =
        known_or_absent(g, n, 0, false) && known_or_absent(g, n, 1, true) && goes_on(b->graph);
    for (uint32_t k = carried; k < n->n_out && !trips; k++) {
        uint32_t value = cs_outs(g, n)[k];
        if (value == CS_NONE) continue;
        const cs_type_info *t = type_of(g, value);
        if (t->rank > 0 && g->pool->dims.at[t->dims] >= 0) continue;
        begin(r, g, n, CS_RULE_SHAPE);
        cs_reason_add(r, "scan output %u has a length that is not known before run time", k);
        return true;
    }
    return false;
}

bool cs_bodies_refuse(const cs_op_rule *rule, const cs_graph *g, const cs_node *n, cs_reason *r)
{
    const cs_body *b = g->bodies.at + n->body;
    if (n->n_body >= 2 && rule->same_rank && ranks_differ(g, n, b, r)) return true;
    if (n->n_body >= 2 && rule->distinct_outputs && names_meet(g, n, b, r)) return true;
    if (n->n_body >= 1 && rule->same_carried && carried_changes(g, n, b, r)) return true;
    return n->n_body >= 1 && rule->fixed_scans && scan_varies(g, n, b, r);
}
