/* From a decision to a plan: model facts, parts, boundaries, forecasts, hashes, reasons.
 *
 * Requires: a sealed graph with types; part ids that are an order of the quotient graph.
 * Cost: O(n + m), except sorting the operators of each part by count.
 */
#include "plan/assemble.h"

#include <string.h>

/* ---- model and targets ---- */

static bool record_targets(cutset_plan *plan, const cutset_target *const *targets, size_t n)
{
    for (size_t t = 0; t < n; t++) {
        const cs_str name = cs_plan_str(plan, cs_span_of(targets[t]->name));
        const cs_plan_target target = {name, targets[t]->hash};
        if (name == CS_NONE || !cs_vec_push(&plan->targets, target)) return false;
    }
    return true;
}

static int32_t made_by(const cs_graph *g, uint32_t v, const uint32_t *part)
{
    const cs_value *value = &g->values.at[v];
    if (value->origin == CS_ORIGIN_NODE) return (int32_t)part[value->from];
    return value->origin == CS_ORIGIN_WEIGHT ? CS_FROM_WEIGHT : CS_FROM_INPUT;
}

static bool model_value(cutset_plan *plan, const cs_graph *g, uint32_t v, cs_type_names *types,
                        cs_plan_value *out)
{
    out->name = cs_plan_str(plan, cs_name(g->pool, g->values.at[v].name));
    out->type = cs_type_text(types, plan, g->pool, g->values.at[v].type);
    return out->name != CS_NONE && out->type != CS_NONE;
}

static bool record_model(cutset_plan *plan, const cs_plan_source *source, const uint32_t *part,
                         cs_type_names *types)
{
    const cs_graph *g = source->graph;
    plan->bound = true;
    plan->model_hash = source->hash;
    plan->model_nodes = g->nodes.len;
    for (size_t s = 0; s < g->storages.len; s++)
        plan->model_weight_bytes = cs_sat_add(plan->model_weight_bytes, g->storages.at[s].bytes);
    for (size_t i = 0; i < g->inputs.len; i++) {
        cs_plan_value value = {.from = CS_FROM_INPUT};
        if (!model_value(plan, g, g->inputs.at[i], types, &value) ||
            !cs_vec_push(&plan->inputs, value))
            return false;
    }
    for (size_t i = 0; i < g->outputs.len; i++) {
        cs_plan_value value = {.from = made_by(g, g->outputs.at[i], part)};
        if (!model_value(plan, g, g->outputs.at[i], types, &value) ||
            !cs_vec_push(&plan->outputs, value))
            return false;
    }
    return true;
}

/* ---- reasons and bounds ---- */

static bool record_fallback(cutset_plan *plan, const cs_graph *g, const cs_decision *d,
                            cs_op_names *ops)
{
    size_t count = 0;
    for (uint32_t n = 0; n < d->n_nodes; n++)
        count += d->reasons[n].rule != CS_RULE_NONE;
    if (!cs_vec_room(&plan->fallback, count)) return false;
    for (uint32_t n = 0; n < d->n_nodes; n++) {
        if (n % 65536 == 65535) cs_pool_rest(g->pool);
        const cs_reason *reason = &d->reasons[n];
        if (reason->rule == CS_RULE_NONE) continue;
        char buffer[16];
        const uint32_t op = cs_op_index(ops, plan, g->pool, &g->nodes.at[n]);
        cs_fallback f = {.label = cs_plan_str(plan, cs_node_label(g, n, buffer)),
                         .name = cs_plan_str(plan, cs_name(g->pool, g->nodes.at[n].name)),
                         .target = reason->target,
                         .rule = reason->rule,
                         .why = reason->why,
                         .saved = reason->saved};
        if (op == CS_NONE || f.label == CS_NONE || f.name == CS_NONE) return false;
        f.op = ops->text.at[op];
        plan->fallback.at[plan->fallback.len++] = f;
    }
    return true;
}

static bool record_bounds(cutset_plan *plan, const cs_graph *g, const cs_decision *d)
{
    plan->engines = d->engines;
    plan->engines_bound = d->engines_bound;
    plan->bound_kind = d->bound_kind;
    if (!cs_vec_room(&plan->certificate, d->n_certificate)) return false;
    for (uint32_t i = 0; i < d->n_certificate; i++) {
        char buffer[16];
        if (i % 8192 == 8191) cs_pool_rest(g->pool);
        const cs_str label = cs_plan_str(plan, cs_node_label(g, d->certificate[i], buffer));
        if (label == CS_NONE) return false;
        plan->certificate.at[plan->certificate.len++] = label;
    }
    return true;
}

/* ---- options ---- */

static bool record_strings(cutset_plan *plan, cs_strs *out, const char *const *from, size_t n)
{
    if (!cs_vec_room(out, n)) return false;
    for (size_t i = 0; i < n; i++) {
        const cs_str text = cs_plan_str(plan, cs_span_of(from[i]));
        if (text == CS_NONE) return false;
        out->at[out->len++] = text;
    }
    return true;
}

cutset_status cs_plan_record(cutset_plan *plan, const cutset_plan_opts *opts,
                             const cutset_open_opts *open, cutset_error *err)
{
    cs_plan_options *o = &plan->options;
    o->host_memory = opts->host_memory;
    o->device_memory = opts->device_memory;
    o->min_nodes = opts->min_nodes;
    o->max_engines = opts->max_engines;
    o->oversize = opts->oversize;
    o->connected = opts->connected != 0;
    o->tensors_only = opts->tensors_only != 0;
    o->bookends = opts->bookends != 0;
    o->effort = opts->effort;
    bool ok = record_strings(plan, &o->pins, opts->pins, opts->n_pins) &&
              record_strings(plan, &o->excludes, opts->excludes, opts->n_excludes) &&
              record_strings(plan, &o->groups, opts->groups, opts->n_groups);
    if (ok && open != NULL)
        ok = record_strings(plan, &o->shapes, open->shapes, open->n_shapes) &&
             record_strings(plan, &o->dims, open->dims, open->n_dims) &&
             record_strings(plan, &o->types, open->types, open->n_types);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

/* ---- all of it ---- */

static cutset_status run(cutset_plan *plan, const cs_plan_source *source,
                         const cutset_target *const *targets, size_t n_targets,
                         const cs_decision *d, cs_layout *l, cs_op_names *ops, cs_type_names *types,
                         cutset_error *err)
{
    cutset_status status = cs_plan_set_path(plan, source->path, err);
    if (status != CUTSET_OK) return status;
    if (!record_targets(plan, targets, n_targets) || !record_model(plan, source, d->part, types))
        return cs_fail_memory(err);
    status = cs_layout_init(l, source->graph, d, err);
    if (status == CUTSET_OK) status = cs_parts_build(plan, l, d, ops, types, err);
    if (status == CUTSET_OK) status = cs_parts_forecast(plan, l, targets, err);
    if (status == CUTSET_OK) status = cs_parts_hash(plan, l, targets, err);
    if (status != CUTSET_OK) return status;
    if (!record_bounds(plan, source->graph, d) || !record_fallback(plan, source->graph, d, ops))
        return cs_fail_memory(err);
    return CUTSET_OK;
}

cutset_status cs_plan_assemble(cutset_plan *plan, const cs_plan_source *source,
                               const cutset_target *const *targets, size_t n_targets,
                               const cs_decision *decision, cutset_error *err)
{
    cs_layout layout = {0};
    cs_op_names ops = {0};
    cs_type_names types = {0};
    const cutset_status status =
        run(plan, source, targets, n_targets, decision, &layout, &ops, &types, err);
    cs_layout_fini(&layout);
    cs_op_names_fini(&ops);
    cs_vec_fini(&types);
    return status;
}
