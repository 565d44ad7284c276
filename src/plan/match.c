/* Names in options: an ONNX node name, a value name, an operator, or a glob over names.
 *
 * An operator also stands for what holds it in a body: a builder that must not see it would.
 * An exact match wins over a glob. A node is named by its ONNX name, by any output, and as the text
 * form spells it ("$7"). What is repeated counts as a match, but is not in the graph that is planned.
 * Cost: one pass over the nodes, two where nothing matches exactly.
 */
#include <stdio.h>

#include "plan/work.h"

typedef bool (*same_fn)(cs_span pattern, cs_span text);

static bool exact(cs_span pattern, cs_span text) { return cs_span_eq(pattern, text); }

static bool op_is(const cs_graph *g, const cs_node *n, cs_span name)
{
    cs_span op = cs_name(g->pool, n->op), domain = cs_name(g->pool, n->domain);
    if (cs_span_eq(op, name)) return true;
    return domain.len && name.len == domain.len + 1 + op.len && name.at[domain.len] == ':' &&
           cs_span_eq((cs_span){name.at, domain.len}, domain) &&
           cs_span_eq((cs_span){name.at + domain.len + 1, op.len}, op);
}

/* Is it the operator, or does it hold one in a body? Nesting is bounded by the readers. */
static bool holds_op(const cs_graph *g, const cs_node *n, cs_span name)
{
    if (op_is(g, n, name)) return true;
    for (uint32_t b = 0; b < n->n_body; b++) {
        const cs_graph *body = g->bodies.at[n->body + b].graph;
        for (size_t i = 0; i < body->nodes.len; i++)
            if (holds_op(body, &body->nodes.at[i], name)) return true;
    }
    return false;
}

static bool node_is(const cs_graph *g, uint32_t id, cs_span name, same_fn same)
{
    const cs_node *n = &g->nodes.at[id];
    cs_span own = cs_name(g->pool, n->name);
    if (own.len && same(name, own)) return true;
    for (uint32_t i = 0; i < n->n_out; i++) {
        uint32_t v = cs_outs(g, n)[i];
        if (v != CS_NONE && same(name, cs_name(g->pool, g->values.at[v].name))) return true;
    }
    char buffer[16];
    return same == exact && name.len && name.at[0] == '$' &&
           cs_span_eq(name, cs_node_label(g, id, buffer));
}

static bool collect(const cs_graph *g, cs_span name, bool ops, same_fn same, cs_ids *out)
{
    for (uint32_t id = 0; id < g->nodes.len; id++) {
        if (node_is(g, id, name, same) || (ops && holds_op(g, &g->nodes.at[id], name)))
            if (!cs_vec_push(out, id)) return false;
    }
    return true;
}

bool cs_match_nodes(const cs_plan_source *source, cs_span name, bool ops, cs_ids *out, bool *some)
{
    const cs_graph *g = source->whole ? source->whole : source->graph;
    const size_t before = out->len;
    bool ok = collect(g, name, ops, exact, out);
    if (ok && out->len == before) ok = collect(g, name, false, cs_glob, out);
    *some = out->len > before;
    if (!source->whole) return ok;
    size_t len = before;
    for (size_t i = before; i < out->len; i++)
        if (source->kept[out->at[i]] != CS_NONE) out->at[len++] = source->kept[out->at[i]];
    out->len = len;
    return ok;
}
