/* Collecting one part; see part.h.
 *
 * Nodes stand in the plan's execution order; a Constant node stands right before its first reader
 * in the part (a reader may be a body that captures it). Initializers, sparse ones and value infos
 * stand in the order they are first met. Quantization annotations of values in the part bring the
 * initializers they name.
 *
 * Requires: a sealed, inferred graph and a bound plan. Cost: linear in the part, plus the bytes of
 * its nodes and functions.
 */
#include "emit/part.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- tables ---- */

static cutset_status make_annotations(cs_parter *pt, cutset_error *err)
{
    const cs_onnx *onnx = pt->onnx;
    if (onnx->annotations.len == 0) return CUTSET_OK;
    bool ok = cs_map_room(&pt->by_name, pt->graph->values.len);
    for (uint32_t v = 0; ok && v < pt->graph->values.len; v++)
        ok = cs_map_put(&pt->by_name, pt->graph->values.at[v].name, v);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

static cutset_status fill(cs_parter *pt, cutset_error *err)
{
    const size_t n = pt->graph->values.len + 1;
    pt->seen = cs_zalloc(n, sizeof *pt->seen);
    pt->output = cs_zalloc(n, sizeof *pt->output);
    if (pt->seen == NULL || pt->output == NULL) return cs_fail_memory(err);
    cutset_status status = cs_carriers_init(&pt->carriers, pt->onnx, pt->graph, err);
    if (status == CUTSET_OK) status = make_annotations(pt, err);
    if (status == CUTSET_OK) status = cs_reach_init(&pt->reach, pt->onnx, err);
    return status;
}

cutset_status cs_parter_init(cs_parter *pt, const cs_onnx *onnx, const cs_graph *graph,
                             const cutset_plan *plan, cutset_error *err)
{
    *pt = (cs_parter){.onnx = onnx, .graph = graph, .plan = plan};
    pt->recipe.source = onnx;
    pt->recipe.name = pt->name;
    const cutset_status status = fill(pt, err);
    if (status != CUTSET_OK) cs_parter_fini(pt);
    return status;
}

void cs_parter_fini(cs_parter *pt)
{
    cs_carriers_fini(&pt->carriers);
    cs_free(pt->seen);
    cs_free(pt->output);
    cs_map_fini(&pt->by_name);
    cs_reach_fini(&pt->reach);
    cs_recipe_fini(&pt->recipe);
    *pt = (cs_parter){0};
}

/* ---- boundary types ---- */

static cs_span declared(const cs_parter *pt, uint32_t value)
{
    return value < pt->onnx->value_infos.len ? pt->onnx->value_infos.at[value] : (cs_span){0};
}

cs_info cs_part_info(const cs_parter *pt, uint32_t value)
{
    const cs_value *v = &pt->graph->values.at[value];
    const cs_span bytes = declared(pt, value);
    const bool enough = bytes.at != NULL && cs_info_is_ranked(bytes);
    return (cs_info){.declared = {pt->onnx, bytes},
                     .name = cs_name(pt->graph->pool, v->name),
                     .type = enough ? 0 : v->type};
}

static cutset_status check_value(const cs_parter *pt, uint32_t part, uint32_t value,
                                 cutset_error *err)
{
    const cs_pool *pool = pt->graph->pool;
    const cs_value *v = &pt->graph->values.at[value];
    if (cs_info_can_be_written(pool, v->type) || cs_info_is_ranked(declared(pt, value)))
        return CUTSET_OK;
    const cs_type_info *type = cs_type_get(pool, v->type);
    const bool has_elem = type->kind == CS_TENSOR && type->elem != CS_ELEM_NONE;
    const bool tensor = type->kind == CS_TENSOR || type->kind == CS_UNKNOWN;
    const char *what = has_elem || !tensor ? "rank" : "type";
    const cs_span name = cs_name(pool, v->name);
    const cs_span op = v->origin == CS_ORIGIN_NODE ? cs_name(pool, pt->graph->nodes.at[v->from].op)
                                                   : CS_SPAN("graph input");
    cs_fail(err, CUTSET_BAD,
            "the %s of %.*s (%.*s), which crosses part %u, is not known: add --type "
            "'%.*s=%s%s[?,?]%s'",
            what, CS_FMT(name), CS_FMT(op), part, CS_FMT(name), tensor ? "" : "seq(",
            has_elem ? cs_elem_name(type->elem) : "f32", tensor ? "" : ")");
    if (v->origin == CS_ORIGIN_NODE) {
        char buffer[16];
        const cs_span label = cs_node_label(pt->graph, v->from, buffer);
        cs_error_name(err, label.at, label.len);
    }
    return CUTSET_BAD;
}

cutset_status cs_part_check(const cs_parter *pt, uint32_t part, cutset_error *err)
{
    const cutset_plan *plan = pt->plan;
    const cs_part *p = &plan->parts.at[part];
    cutset_status status = CUTSET_OK;
    for (uint32_t i = 0; i < p->n_input && status == CUTSET_OK; i++)
        status = check_value(pt, part, plan->value_ids.at[plan->refs.at[p->input + i]], err);
    for (uint32_t i = 0; i < p->n_output && status == CUTSET_OK; i++)
        status = check_value(pt, part, plan->value_ids.at[plan->refs.at[p->output + i]], err);
    return status;
}

/* ---- collecting ---- */

static cs_piece piece(const cs_parter *pt, cs_span bytes) { return (cs_piece){pt->onnx, bytes}; }

/* A declaration of an inner value, as it is. */
static bool add_declared(cs_parter *pt, uint32_t value)
{
    const cs_span bytes = declared(pt, value);
    return bytes.at == NULL || cs_vec_push(&pt->recipe.infos, piece(pt, bytes));
}

/* The initializer or Constant behind `value`, and what IR < 4 wants beside it. */
static cutset_status add_weight(cs_parter *pt, uint32_t value, cutset_error *err)
{
    cs_recipe *r = &pt->recipe;
    const cs_span bytes = pt->onnx->initializer.at[value];
    const bool is_input = pt->graph->values.at[value].origin == CS_ORIGIN_INPUT;
    bool ok = true;
    switch ((cs_carrier)pt->carriers.kind[value]) {
    case CS_CARRIER_NODE:
        ok = cs_vec_push(&r->nodes, piece(pt, bytes)) && add_declared(pt, value);
        if (!ok) break;
        return cs_reach_node(&pt->reach, bytes, err);
    case CS_CARRIER_DENSE:
        ok = cs_vec_push(&r->initializers, piece(pt, bytes));
        if (is_input || !ok) break; /* stands among the inputs already */
        ok = pt->onnx->ir_version < 4 ? cs_vec_push(&r->inputs, cs_part_info(pt, value))
                                      : add_declared(pt, value);
        break;
    case CS_CARRIER_SPARSE:
        ok = cs_vec_push(&r->sparse, piece(pt, bytes)) && (is_input || add_declared(pt, value));
        break;
    case CS_CARRIER_NONE: {
        const cs_span name = cs_name(pt->graph->pool, pt->graph->values.at[value].name);
        return cs_fail(err, CUTSET_BAD, "weight %.*s has no bytes in the model", CS_FMT(name));
    }
    }
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

static cutset_status add_input(cs_parter *pt, uint32_t value, cutset_error *err)
{
    if (!cs_vec_push(&pt->recipe.inputs, cs_part_info(pt, value))) return cs_fail_memory(err);
    /* A default that callers may override. */
    return pt->graph->values.at[value].storage == CS_NONE ? CUTSET_OK : add_weight(pt, value, err);
}

static cutset_status add_read(cs_parter *pt, uint32_t part, uint32_t value, cutset_error *err)
{
    if (value == CS_NONE || pt->seen[value] == pt->round) return CUTSET_OK;
    pt->seen[value] = pt->round;
    const cs_value *v = &pt->graph->values.at[value];
    if (v->origin == CS_ORIGIN_WEIGHT) return add_weight(pt, value, err);
    if (v->origin == CS_ORIGIN_INPUT) return add_input(pt, value, err);
    const cs_span name = cs_name(pt->graph->pool, v->name);
    return cs_fail(err, CUTSET_BAD,
                   "part %u reads %.*s, which is not among its inputs: make the plan again", part,
                   CS_FMT(name));
}

static cutset_status add_node(cs_parter *pt, uint32_t part, uint32_t node, cutset_error *err)
{
    const cs_graph *g = pt->graph;
    const cs_node *n = &g->nodes.at[node];
    cutset_status status = CUTSET_OK;
    for (uint32_t i = 0; i < cs_n_reads(n) && status == CUTSET_OK; i++)
        status = add_read(pt, part, cs_args(g, n)[i], err);
    if (status != CUTSET_OK) return status;
    const cs_span bytes = pt->onnx->nodes.at[node];
    bool ok = cs_vec_push(&pt->recipe.nodes, piece(pt, bytes));
    for (uint32_t i = 0; i < n->n_out && ok; i++) {
        const uint32_t value = cs_outs(g, n)[i];
        if (value == CS_NONE) continue;
        pt->seen[value] = pt->round;
        if (pt->output[value] != pt->round) ok = add_declared(pt, value);
    }
    return ok ? cs_reach_node(&pt->reach, bytes, err) : cs_fail_memory(err);
}

static cutset_status add_functions(cs_parter *pt, cutset_error *err)
{
    const cutset_status status = cs_reach_finish(&pt->reach, err);
    if (status != CUTSET_OK) return status;
    for (size_t i = 0; i < pt->onnx->functions.len; i++)
        if (pt->reach.function_used[i] &&
            !cs_vec_push(&pt->recipe.functions, piece(pt, pt->onnx->functions.at[i].proto)))
            return cs_fail_memory(err);
    return CUTSET_OK;
}

/* ---- annotations ---- */

/* The scale and zero point that a TensorAnnotation names, where they are weights. */
static cutset_status add_annotated_weights(cs_parter *pt, uint32_t part, cs_span bytes,
                                           cutset_error *err)
{
    cs_wire w = cs_wire_of(bytes, 0);
    cutset_status status = CUTSET_OK;
    while (status == CUTSET_OK && cs_wire_next(&w)) {
        if (w.field != 2 || w.type != CS_WIRE_BYTES) continue;
        cs_wire entry = cs_wire_of(w.bytes, 0);
        while (status == CUTSET_OK && cs_wire_next(&entry)) {
            if (entry.field != 2 || entry.type != CS_WIRE_BYTES) continue;
            const cs_str name = cs_strtab_find(&pt->graph->pool->names, entry.bytes);
            const uint32_t value = name == CS_NONE ? CS_NONE : cs_map_get(&pt->by_name, name);
            if (value != CS_NONE && pt->graph->values.at[value].origin == CS_ORIGIN_WEIGHT)
                status = add_read(pt, part, value, err);
        }
    }
    return status;
}

/* Those of the values in the part, in the order of the source. */
static cutset_status add_annotations(cs_parter *pt, uint32_t part, cutset_error *err)
{
    const cs_onnx *onnx = pt->onnx;
    if (onnx->annotations.len == 0) return CUTSET_OK;
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; i < onnx->annotated.len && status == CUTSET_OK; i++) {
        const uint32_t value = cs_map_get(&pt->by_name, onnx->annotated.at[i]);
        if (value == CS_NONE || pt->seen[value] != pt->round) continue;
        const cs_span bytes = onnx->annotations.at[i];
        if (!cs_vec_push(&pt->recipe.annotations, piece(pt, bytes))) return cs_fail_memory(err);
        status = add_annotated_weights(pt, part, bytes, err);
    }
    return status;
}

cutset_status cs_part_collect(cs_parter *pt, uint32_t part, cutset_error *err)
{
    const cutset_plan *plan = pt->plan;
    const cs_part *p = &plan->parts.at[part];
    pt->round++;
    cs_recipe_clear(&pt->recipe);
    cs_reach_clear(&pt->reach);
    snprintf(pt->name, sizeof pt->name, "part-%03" PRIu32, part);
    cutset_status status = CUTSET_OK;
    for (uint32_t i = 0; i < p->n_input && status == CUTSET_OK; i++) {
        const uint32_t value = plan->value_ids.at[plan->refs.at[p->input + i]];
        if (pt->seen[value] == pt->round) continue;
        pt->seen[value] = pt->round;
        status = add_input(pt, value, err);
    }
    for (uint32_t i = 0; i < p->n_output && status == CUTSET_OK; i++) {
        const uint32_t value = plan->value_ids.at[plan->refs.at[p->output + i]];
        pt->output[value] = pt->round;
        if (!cs_vec_push(&pt->recipe.outputs, cs_part_info(pt, value))) return cs_fail_memory(err);
    }
    for (uint32_t i = 0; i < p->n_node && status == CUTSET_OK; i++)
        status = add_node(pt, part, plan->nodes.at[p->node + i], err);
    if (status == CUTSET_OK) status = add_annotations(pt, part, err);
    return status == CUTSET_OK ? add_functions(pt, err) : status;
}
