/* May a node run on a target? The order of judgement: mark (acc) or operator, data-dependent shape,
 * opset, element types, ranks, attributes, inputs and outputs, bodies. The first refusal stands.
 *
 * Called for every node of a graph: an accepted node costs a hash lookup and a look at each of its
 * tensors, no allocation. Targets are never written to here, so threads may share them.
 */
#include "target/rules.h"

#include <string.h>

#define DEPTH_MAX 200 /* bodies within bodies; readers stop earlier */

static void begin(cs_reason *r, const cs_graph *g, const cs_node *n, cs_rule rule)
{
    cs_span op = cs_name(g->pool, n->op), domain = cs_name(g->pool, n->domain);
    r->rule = rule;
    if (domain.len > 0) cs_reason_add(r, "%.*s:", CS_FMT(domain));
    cs_reason_add(r, "%.*s", CS_FMT(op));
}

/* acc takes what the text form marks with it. Bodies go along with their node. */
static bool mark_refuses(const char *name, const cs_graph *g, const cs_node *n, cs_reason *r)
{
    for (uint32_t i = 0; i < n->n_allow; i++)
        if (cs_span_is(cs_name(g->pool, g->allow.at[n->allow + i]), name)) return false;
    begin(r, g, n, n->n_allow > 0 ? CS_RULE_USER : CS_RULE_OP);
    if (n->n_allow > 0)
        cs_reason_add(r, " is marked for other targets");
    else
        cs_reason_add(r, " is not marked @%s", name);
    return true;
}

static bool opset_refuses(const cs_target_rules *t, const cs_op_rule *rule, const cs_graph *g,
                          const cs_node *n, cs_reason *r)
{
    if (n->opset == 0) return false;
    bool onnx = n->domain == 0 || cs_span_is(cs_name(g->pool, n->domain), "ai.onnx");
    int32_t min = onnx ? t->opset_min : 0, max = onnx ? t->opset_max : INT32_MAX;
    if (rule != NULL && rule->versions.since > min) min = rule->versions.since;
    if (rule != NULL && rule->versions.until < max) max = rule->versions.until;
    if (n->opset >= min && n->opset <= max) return false;
    begin(r, g, n, CS_RULE_OPSET);
    cs_reason_add(r, " of opset %d is not supported; opset ", n->opset);
    if (max == INT32_MAX)
        cs_reason_add(r, "%d and later are", min);
    else
        cs_reason_add(r, "%d to %d are", min, max);
    return true;
}

/* ---- tensors ---- */

typedef struct cs_place {
    const char *side; /* "input" or "output" */
    uint32_t position;
} cs_place;

static bool elem_refuses(const cs_target_rules *t, uint32_t types, const cs_type_info *type,
                         const cs_graph *g, const cs_node *n, cs_place at, cs_reason *r)
{
    static const char *const kinds[] = {"a value of unknown type",
                                        "a tensor",
                                        "a sparse tensor",
                                        "a sequence",
                                        "an optional",
                                        "a map",
                                        "an opaque value"};
    bool tensor = type->kind == CS_TENSOR && type->elem != CS_ELEM_NONE;
    uint32_t bit = UINT32_C(1) << type->elem;
    if (tensor ? !(bit & t->never_types) && (types == 0 || (bit & types)) : types == 0)
        return false;
    begin(r, g, n, CS_RULE_TYPE);
    if (!tensor) {
        cs_reason_add(r, " does not take %s (%s %u); it takes tensors of ",
                      kinds[type->kind == CS_TENSOR ? CS_UNKNOWN : type->kind], at.side,
                      at.position);
        cs_reason_types(r, types);
        return true;
    }
    cs_reason_add(r, " does not take %s (%s %u)", cs_elem_name(type->elem), at.side, at.position);
    for (size_t i = 0; i < t->n_never; i++)
        if (t->never[i].types & bit) {
            cs_reason_add(r, ": %s", t->never[i].why);
            return true;
        }
    cs_reason_add(r, "; it takes ");
    cs_reason_types(r, types);
    return true;
}

static bool rank_refuses(const cs_target_rules *t, const cs_type_info *type, const cs_graph *g,
                         const cs_node *n, cs_place at, cs_reason *r)
{
    bool tensor = type->kind == CS_TENSOR || type->kind == CS_UNKNOWN;
    if (!tensor) return false; /* types have the word */
    int rank = type->kind == CS_TENSOR ? type->rank : CS_RANK_UNKNOWN;
    if (rank < 0 ? !t->ranked : rank <= t->max_rank) return false;
    begin(r, g, n, CS_RULE_RANK);
    if (rank < 0)
        cs_reason_add(r, ": the rank of %s %u is not known", at.side, at.position);
    else
        cs_reason_add(r, ": %s %u has rank %d; at most %d is supported", at.side, at.position, rank,
                      t->max_rank);
    return true;
}

static bool tensors_refuse(const cs_target_rules *t, const uint32_t *types, const cs_graph *g,
                           const cs_node *n, const uint32_t *values, uint32_t count,
                           const char *side, cs_reason *r)
{
    for (uint32_t p = 0; p < count; p++) {
        if (values[p] == CS_NONE) continue;
        const cs_type_info *type = cs_type_get(g->pool, g->values.at[values[p]].type);
        uint32_t allowed = types != NULL ? types[p < CS_POS_REST ? p : CS_POS_REST] : 0;
        cs_place at = {side, p};
        if (elem_refuses(t, allowed, type, g, n, at, r) || rank_refuses(t, type, g, n, at, r))
            return true;
    }
    return false;
}

/* ---- nodes and bodies ---- */

static bool node_refused(const cs_target_rules *t, const cs_graph *g, uint32_t node, int depth,
                         cs_reason *r);

/* Every node of every body must be taken; the reason names the first that is not. Recursion is as
 * deep as bodies are nested. */
static bool bodies_refused(const cs_target_rules *t, const cs_graph *g, const cs_node *n, int depth,
                           cs_reason *r)
{
    if (n->n_body > 0 && depth >= DEPTH_MAX) {
        begin(r, g, n, CS_RULE_OP);
        cs_reason_add(r, " is nested more than %d bodies deep", DEPTH_MAX);
        return true;
    }
    for (uint32_t b = 0; b < n->n_body; b++) {
        const cs_body *body = &g->bodies.at[n->body + b];
        for (uint32_t i = 0; i < body->graph->nodes.len; i++) {
            cs_reason inner;
            inner.len = 0;
            if (!node_refused(t, body->graph, i, depth + 1, &inner)) continue;
            char buffer[16];
            cs_span label = cs_node_label(body->graph, i, buffer);
            cs_span attr = body->attr != 0 ? cs_name(g->pool, body->attr) : CS_SPAN("function");
            begin(r, g, n, inner.rule);
            cs_reason_add(r, " holds %.*s in its %.*s: %s", CS_FMT(label), CS_FMT(attr),
                          inner.text);
            return true;
        }
    }
    return false;
}

/* A call of a model-local function needs no rule of its own: its body speaks for it. */
static bool op_refuses(const cs_target_rules *t, const cs_op_entry *e, const cs_graph *g,
                       const cs_node *n, cs_reason *r)
{
    bool call = (n->flags & CS_NODE_FUNCTION) != 0;
    bool judged = !t->all || t->n_except > 0 || t->n_dds > 0 || t->n_rules > 0;
    if (e != NULL && e->except) {
        begin(r, g, n, CS_RULE_OP);
        cs_reason_add(r, " is not supported");
    } else if (call && n->n_body == 0 && judged) {
        begin(r, g, n, CS_RULE_OP);
        cs_reason_add(r, " is a function whose body is too large to be looked at");
    } else if (!call && !t->all && (e == NULL || e->rule == CS_NONE)) {
        begin(r, g, n, CS_RULE_OP);
        cs_reason_add(r, " is not supported");
    } else {
        return false;
    }
    return true;
}

static bool node_refused(const cs_target_rules *t, const cs_graph *g, uint32_t node, int depth,
                         cs_reason *r)
{
    const cs_node *n = &g->nodes.at[node];
    const cs_op_entry *e = cs_rules_find(t, cs_name(g->pool, n->domain), cs_name(g->pool, n->op));
    if (op_refuses(t, e, g, n, r)) return true;
    if (e != NULL && e->dds) {
        begin(r, g, n, CS_RULE_DDS);
        cs_reason_add(r, " has an output whose shape depends on the data");
        return true;
    }
    const cs_op_rule *rule = e != NULL && e->rule != CS_NONE ? &t->rules[e->rule] : NULL;
    if (opset_refuses(t, rule, g, n, r)) return true;
    if (tensors_refuse(t, rule != NULL ? rule->in_types : NULL, g, n, cs_args(g, n), n->n_arg,
                       "input", r) ||
        tensors_refuse(t, rule != NULL ? rule->out_types : NULL, g, n, cs_outs(g, n), n->n_out,
                       "output", r))
        return true;
    if (rule != NULL && (cs_attrs_refuse(rule, g, n, r) || cs_args_refuse(rule, g, n, r) ||
                         cs_bodies_refuse(rule, g, n, r)))
        return true;
    return bodies_refused(t, g, n, depth, r);
}

cutset_status cs_target_check(const cutset_target *target, const cs_graph *g, uint32_t node,
                              cs_strtab *words, cs_rule *rule, cs_str *why, cutset_error *err)
{
    cs_reason r;
    r.len = 0;
    bool refused = target->marked_only ? mark_refuses(target->name, g, &g->nodes.at[node], &r)
                                       : node_refused(target->rules, g, node, 0, &r);
    *rule = CS_RULE_NONE;
    *why = 0;
    if (!refused) return CUTSET_OK;
    cs_str sentence = cs_strtab_add(words, (cs_span){r.text, r.len}, false);
    if (sentence == CS_NONE) return cs_fail_memory(err);
    *rule = r.rule;
    *why = sentence;
    return CUTSET_OK;
}

bool cs_target_may_cross(const cutset_target *target, const cs_pool *pool, cs_type type, bool input,
                         const char **why)
{
    static const char *const refused[CS_ELEM_COUNT] = {
        [CS_ELEM_NONE] = "a value of unknown type cannot cross an engine's boundary",
#define CROSS_TEXT(name, code, text, bits) [code] = #text " cannot cross an engine's boundary",
        CS_ELEMS(CROSS_TEXT)
#undef CROSS_TEXT
    };
    const cs_target_rules *t = target->rules;
    const cs_type_info *i = cs_type_get(pool, type);
    if (!t->boundary_any) {
        uint32_t types = input ? t->boundary_in : t->boundary_out;
        cs_elem e = i->kind == CS_TENSOR ? i->elem : CS_ELEM_NONE;
        *why = i->kind == CS_TENSOR || i->kind == CS_UNKNOWN
                   ? refused[e]
                   : "only tensors can cross an engine's boundary";
        if (!(types >> e & 1)) return false;
    }
    int rank = i->kind == CS_TENSOR ? i->rank : i->kind == CS_UNKNOWN ? CS_RANK_UNKNOWN : 0;
    *why = rank < 0 ? "a value of unknown rank cannot cross an engine's boundary"
                    : "its rank is too high to cross an engine's boundary";
    if (rank < 0 ? t->boundary_ranked : rank > t->boundary_max_rank) return false;
    *why = NULL;
    return true;
}
