/* The public calls on plans: checks and defaults here, the work in plan/ and report/. */
#include <inttypes.h>

#include "api/model.h"
#include "plan/assemble.h"
#include "report/report.h"

void cutset_plan_opts_init(cutset_plan_opts *opts) { *opts = (cutset_plan_opts){.effort = 1}; }

/* ---- making ---- */

static cutset_status check_opts(const cutset_plan_opts *o, cutset_error *err)
{
    static const char *const names[] = {"host memory", "device memory", "min nodes", "max engines"};
    const int64_t sizes[] = {o->host_memory, o->device_memory, o->min_nodes, o->max_engines};
    for (int i = 0; i < 4; i++)
        if (sizes[i] < 0)
            return cs_fail(err, CUTSET_USAGE,
                           "%s is %" PRId64 ": give a positive number, or 0 for none", names[i],
                           sizes[i]);
    if (o->effort < 0 || o->effort > 3)
        return cs_fail(err, CUTSET_USAGE, "effort %d: give 0, 1, 2 or 3", o->effort);
    if ((unsigned)o->oversize > CUTSET_OVERSIZE_KEEP)
        return cs_fail(err, CUTSET_USAGE, "oversize %d: give error, host or keep",
                       (int)o->oversize);
    return CUTSET_OK;
}

static cutset_status check_targets(const cutset_target *const *targets, size_t n, cutset_error *err)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (cs_span_is(cs_span_of(targets[i]->name), targets[k]->name))
                return cs_fail(err, CUTSET_USAGE, "target %s is named twice: name it once",
                               targets[i]->name);
    return CUTSET_OK;
}

cutset_status cutset_plan_make(cutset_plan **out, const cutset_model *model,
                               const cutset_target *const *targets, size_t n_targets,
                               const cutset_plan_opts *opts, cutset_error *err)
{
    cutset_plan_opts otherwise;
    cutset_plan_opts_init(&otherwise);
    if (opts == NULL) opts = &otherwise;
    *out = NULL;
    cutset_status status = check_opts(opts, err);
    if (status == CUTSET_OK) status = check_targets(targets, n_targets, err);
    if (status != CUTSET_OK) return status;
    if (model->scripted) return cs_scripted_plan(out, model, targets, n_targets, opts, err);
    const cs_plan_source source = {.graph = model->graph,
                                   .path = model->path,
                                   .hash = model->hash,
                                   .open = &model->opts,
                                   .permits = model->permits,
                                   .onnx = model->onnx != NULL};
    return cs_plan_make(out, &source, targets, n_targets, opts, err);
}

cutset_status cutset_plan_read(cutset_plan **out, const char *path, cutset_error *err)
{
    *out = NULL;
    return cs_plan_read_json(out, path, err);
}

cutset_status cutset_plan_read_memory(cutset_plan **out, const void *bytes, size_t len,
                                      cutset_error *err)
{
    *out = NULL;
    return cs_plan_parse_json(out, (cs_span){bytes, len}, "the plan", NULL, err);
}

void cutset_plan_free(cutset_plan *plan) { cs_plan_free(plan); }

/* ---- telling ---- */

void cutset_plan_describe(const cutset_plan *plan, cutset_plan_info *info)
{
    *info = (cutset_plan_info){.engines = plan->engines,
                               .engines_bound = plan->engines_bound,
                               .parts = plan->parts.len,
                               .proved = plan->engines == plan->engines_bound,
                               .boundary_bytes = plan->boundary_bytes,
                               .boundaries = plan->boundaries.len,
                               .boundaries_unknown = plan->boundaries_unknown,
                               .fallback = plan->fallback.len};
}

/* Ends `out` after a step with `status`: the first failure is the one told. */
static cutset_status finish(cs_out *out, cutset_status status, const char *what, cutset_error *err)
{
    const cutset_status done = cs_out_done(out, what, status == CUTSET_OK ? err : NULL);
    return status == CUTSET_OK ? done : status;
}

cutset_status cutset_plan_write(const cutset_plan *plan, const char *at, cutset_write_fn write,
                                void *payload, cutset_error *err)
{
    cs_out out;
    cutset_status status = cs_out_call(&out, write, payload, err);
    if (status == CUTSET_OK)
        status = finish(&out, cs_plan_write_json(plan, at, &out, err), at, err);
    return status;
}

cutset_status cutset_plan_save(const cutset_plan *plan, const char *path, cutset_error *err)
{
    cs_whole whole;
    cutset_status status = cs_whole_open(&whole, path, err);
    if (status != CUTSET_OK) return status;
    cs_out out;
    status = cs_out_fd(&out, whole.fd, err);
    if (status == CUTSET_OK)
        status = finish(&out, cs_plan_write_json(plan, path, &out, err), path, err);
    if (status == CUTSET_OK) return cs_whole_keep(&whole, err);
    cs_whole_drop(&whole);
    return status;
}

cutset_status cutset_plan_summary(const cutset_plan *plan, cutset_write_fn write, void *payload,
                                  cutset_error *err)
{
    cs_out out;
    cutset_status status = cs_out_call(&out, write, payload, err);
    if (status == CUTSET_OK) status = finish(&out, cs_report_summary(plan, &out, err), NULL, err);
    return status;
}
