/* plan.json, streamed: keys and their order are those of doc/FORMAT.md, numbers are exact integers.
 *
 * Nothing is built in memory; a part of a million nodes is written name by name. Everything comes
 * from the plan alone, so a plan that was read writes the same bytes again (given the same `at`).
 */
#include "plan/assemble.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

typedef struct writer {
    cs_json j;
    const cutset_plan *plan;
} writer;

static void put_str(writer *w, const char *key, cs_str s)
{
    cs_json_put_string(&w->j, key, cs_strtab_get(&w->plan->names, s));
}

static void put_hash(writer *w, const char *key, uint64_t hash)
{
    char text[32];
    snprintf(text, sizeof text, "xxh3:%016" PRIx64, hash);
    cs_json_put_text(&w->j, key, text);
}

/* null where there is none */
static void put_int_or_null(writer *w, const char *key, int64_t x, bool some)
{
    if (some)
        cs_json_put_int(&w->j, key, x);
    else
        cs_json_put_null(&w->j, key);
}

static void put_strings(writer *w, const char *key, const cs_strs *list, size_t first, size_t n)
{
    cs_json_key(&w->j, key);
    cs_json_array_line(&w->j);
    for (size_t i = 0; i < n; i++)
        cs_json_string(&w->j, cs_strtab_get(&w->plan->names, list->at[first + i]));
    cs_json_end(&w->j);
}

/* ---- head ---- */

static void put_version(writer *w)
{
    cs_json_key(&w->j, "cutset");
    cs_json_object_line(&w->j);
    cs_json_put_text(&w->j, "version", CUTSET_VERSION);
    cs_json_put_int(&w->j, "plan", 1);
    cs_json_end(&w->j);
}

static void put_from(writer *w, int32_t from)
{
    if (from >= 0)
        cs_json_put_int(&w->j, "from", from);
    else
        cs_json_put_text(&w->j, "from", from == CS_FROM_WEIGHT ? "weight" : "input");
}

static void put_model_values(writer *w, const char *key, const cs_plan_value *at, size_t n,
                             bool outputs)
{
    cs_json_key(&w->j, key);
    cs_json_array(&w->j);
    for (size_t i = 0; i < n; i++) {
        cs_json_object_line(&w->j);
        put_str(w, "name", at[i].name);
        put_str(w, "type", at[i].type);
        if (outputs) put_from(w, at[i].from);
        cs_json_end(&w->j);
    }
    cs_json_end(&w->j);
}

static void put_model(writer *w, const char *path)
{
    const cutset_plan *plan = w->plan;
    cs_json_key(&w->j, "model");
    cs_json_object(&w->j);
    if (path != NULL)
        cs_json_put_text(&w->j, "path", path);
    else
        cs_json_put_null(&w->j, "path");
    put_hash(w, "hash", plan->model_hash);
    cs_json_put_int(&w->j, "nodes", (int64_t)plan->model_nodes);
    cs_json_put_int(&w->j, "weight_bytes", plan->model_weight_bytes);
    put_model_values(w, "inputs", plan->inputs.at, plan->inputs.len, false);
    put_model_values(w, "outputs", plan->outputs.at, plan->outputs.len, true);
    cs_json_end(&w->j);
}

static void put_targets(writer *w)
{
    cs_json_key(&w->j, "targets");
    cs_json_array(&w->j);
    for (size_t t = 0; t < w->plan->targets.len; t++) {
        cs_json_object_line(&w->j);
        put_str(w, "name", w->plan->targets.at[t].name);
        put_hash(w, "hash", w->plan->targets.at[t].hash);
        cs_json_end(&w->j);
    }
    cs_json_end(&w->j);
}

static void put_target_names(writer *w)
{
    cs_json_key(&w->j, "target");
    cs_json_array_line(&w->j);
    for (size_t t = 0; t < w->plan->targets.len; t++)
        cs_json_string(&w->j, cs_plan_target_name(w->plan, (int32_t)t));
    cs_json_end(&w->j);
}

static void put_options(writer *w)
{
    const cs_plan_options *o = &w->plan->options;
    cs_json_key(&w->j, "options");
    cs_json_object(&w->j);
    put_target_names(w);
    put_int_or_null(w, "host-memory", o->host_memory, o->host_memory > 0);
    put_int_or_null(w, "device-memory", o->device_memory, o->device_memory > 0);
    cs_json_put_int(&w->j, "min-nodes", o->min_nodes);
    cs_json_put_null(&w->j, "min-benefit"); /* not in this version */
    put_int_or_null(w, "max-engines", o->max_engines, o->max_engines > 0);
    cs_json_put_text(&w->j, "oversize", cs_oversize_name(o->oversize));
    cs_json_put_text(&w->j, "objective", "engines");
    cs_json_put_int(&w->j, "effort", o->effort);
    put_strings(w, "pin", &o->pins, 0, o->pins.len);
    put_strings(w, "exclude", &o->excludes, 0, o->excludes.len);
    put_strings(w, "group", &o->groups, 0, o->groups.len);
    cs_json_put_bool(&w->j, "connected", o->connected);
    if (o->tensors_only) cs_json_put_bool(&w->j, "tensors-only", true);
    if (o->bookends) cs_json_put_bool(&w->j, "bookends", true);
    put_strings(w, "shape", &o->shapes, 0, o->shapes.len);
    put_strings(w, "dim", &o->dims, 0, o->dims.len);
    put_strings(w, "type", &o->types, 0, o->types.len);
    cs_json_end(&w->j);
}

static void put_objective(writer *w)
{
    const cutset_plan *plan = w->plan;
    cs_json_key(&w->j, "objective");
    cs_json_object(&w->j);
    cs_json_put_int(&w->j, "engines", plan->engines);
    cs_json_put_int(&w->j, "engines_bound", plan->engines_bound);
    cs_json_put_bool(&w->j, "engines_proved", plan->engines == plan->engines_bound);
    cs_json_put_text(&w->j, "bound_kind", cs_bound_kind_name(plan->bound_kind));
    cs_json_put_int(&w->j, "parts", (int64_t)plan->parts.len);
    cs_json_put_int(&w->j, "boundary_bytes", plan->boundary_bytes);
    cs_json_put_int(&w->j, "boundary_bytes_bound", plan->boundary_bytes_bound);
    cs_json_put_int(&w->j, "boundaries_unknown", plan->boundaries_unknown);
    cs_json_end(&w->j);
}

/* ---- parts, boundaries, fallback ---- */

static void put_ops(writer *w, const cs_part *part)
{
    cs_json_key(&w->j, "ops");
    cs_json_object_line(&w->j);
    for (uint32_t i = 0; i < part->n_op; i++) {
        const cs_op_count *op = &w->plan->ops.at[part->op + i];
        cs_json_key_span(&w->j, cs_strtab_get(&w->plan->names, op->op));
        cs_json_int(&w->j, op->count);
    }
    cs_json_end(&w->j);
}

static void put_refs(writer *w, const char *key, uint32_t first, uint32_t n)
{
    cs_json_key(&w->j, key);
    cs_json_array_line(&w->j);
    for (uint32_t i = 0; i < n; i++) {
        const cs_str name = w->plan->values.at[w->plan->refs.at[first + i]];
        cs_json_string(&w->j, cs_strtab_get(&w->plan->names, name));
    }
    cs_json_end(&w->j);
}

static void put_part(writer *w, const cs_part *part)
{
    const cutset_plan *plan = w->plan;
    cs_json_object(&w->j);
    cs_json_put_int(&w->j, "id", part->id);
    cs_json_put_string(&w->j, "target", cs_plan_target_name(plan, part->target));
    put_str(w, "block", part->block);
    put_str(w, "file", part->file);
    put_strings(w, "nodes", &plan->node_label, part->node, part->n_node);
    put_ops(w, part);
    put_refs(w, "inputs", part->input, part->n_input);
    put_refs(w, "outputs", part->output, part->n_output);
    cs_json_put_int(&w->j, "weights", part->weights);
    cs_json_put_int(&w->j, "weight_bytes", part->weight_bytes);
    put_int_or_null(w, "activation_peak_bytes", part->activation_peak, part->activation_peak >= 0);
    cs_json_put_int(&w->j, "host_build_bytes", part->host_build_bytes);
    cs_json_put_int(&w->j, "device_bytes", part->device_bytes);
    cs_json_put_bool(&w->j, "oversized", part->oversized);
    put_hash(w, "hash", part->hash);
    put_int_or_null(w, "same_as", part->same_as, part->same_as >= 0);
    put_int_or_null(w, "same_structure", part->same_structure, part->same_structure >= 0);
    put_strings(w, "copies", &plan->copy_label, part->copy, part->n_copy);
    put_strings(w, "needs", &plan->needs, part->need, part->n_need);
    cs_json_end(&w->j);
}

static void put_boundary(writer *w, const cs_boundary *b)
{
    const cutset_plan *plan = w->plan;
    cs_json_object_line(&w->j);
    put_str(w, "value", plan->values.at[b->value]);
    put_str(w, "type", plan->value_types.at[b->value]);
    put_int_or_null(w, "bytes", b->bytes, b->bytes >= 0);
    cs_json_put_int(&w->j, "from", b->from);
    cs_json_key(&w->j, "to");
    cs_json_array_line(&w->j);
    for (uint32_t i = 0; i < b->n_to; i++)
        cs_json_int(&w->j, plan->readers.at[b->to + i]);
    cs_json_end(&w->j);
    cs_json_end(&w->j);
}

static void put_fallback(writer *w, const cs_fallback *f)
{
    cs_json_object_line(&w->j);
    put_str(w, "node", f->label);
    put_str(w, "name", f->name);
    put_str(w, "op", f->op);
    cs_json_put_string(&w->j, "target", cs_plan_target_name(w->plan, f->target));
    cs_json_put_text(&w->j, "rule", cs_rule_name(f->rule));
    put_str(w, "why", f->why);
    put_int_or_null(w, "engines_saved_if_supported", f->saved, f->saved >= 0);
    cs_json_end(&w->j);
}

static void put_plan(writer *w, const char *path)
{
    const cutset_plan *plan = w->plan;
    cs_json_object(&w->j);
    put_version(w);
    put_model(w, path);
    put_targets(w);
    put_options(w);
    put_objective(w);
    put_strings(w, "certificate", &plan->certificate, 0, plan->certificate.len);
    cs_json_key(&w->j, "parts");
    cs_json_array(&w->j);
    for (size_t i = 0; i < plan->parts.len; i++)
        put_part(w, &plan->parts.at[i]);
    cs_json_end(&w->j);
    cs_json_key(&w->j, "boundaries");
    cs_json_array(&w->j);
    for (size_t i = 0; i < plan->boundaries.len; i++)
        put_boundary(w, &plan->boundaries.at[i]);
    cs_json_end(&w->j);
    cs_json_key(&w->j, "fallback");
    cs_json_array(&w->j);
    for (size_t i = 0; i < plan->fallback.len; i++)
        put_fallback(w, &plan->fallback.at[i]);
    cs_json_end(&w->j);
    cs_json_end(&w->j);
}

/* ---- the path of the model ---- */

/* As plan.json tells it: NULL (no file) and "-" as they are; else relative to the folder of `at`,
 * or, without one, to the current folder. *out is the caller's to free. */
static cutset_status told_path(const cutset_plan *plan, const char *at, char **out,
                               cutset_error *err)
{
    const char *path = plan->model_path;
    *out = NULL;
    if (path == NULL) return CUTSET_OK;
    const bool nowhere = at == NULL || strcmp(at, "-") == 0;
    if (strcmp(path, "-") == 0 || (nowhere && path[0] != '/')) {
        *out = cs_path_join("", path);
        return *out != NULL ? CUTSET_OK : cs_fail_memory(err);
    }
    char *dir = cs_path_dir(nowhere ? "plan.json" : at);
    if (dir == NULL) return cs_fail_memory(err);
    const cutset_status status = cs_path_relative(out, dir, path, err);
    cs_free(dir);
    return status;
}

cutset_status cs_plan_write_json(const cutset_plan *plan, const char *at, cs_out *out,
                                 cutset_error *err)
{
    char *path;
    const cutset_status status = told_path(plan, at, &path, err);
    if (status != CUTSET_OK) return status;
    writer w = {.plan = plan};
    cs_json_init(&w.j, out);
    put_plan(&w, path);
    cs_free(path);
    return CUTSET_OK;
}
