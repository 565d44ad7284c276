/* The public calls on parts: the model behind a plan, split, merge. */
#include <inttypes.h>
#include <string.h>

#include "api/model.h"
#include "emit/emit.h"

void cutset_split_opts_init(cutset_split_opts *opts) { *opts = (cutset_split_opts){0}; }

/* The strings of a recorded option; the array is the caller's to free. */
static bool option_list(const cutset_plan *plan, const cs_str *at, size_t len,
                        const char *const **out, size_t *n)
{
    const char **list = cs_alloc(len, sizeof *list);
    for (size_t i = 0; list && i < len; i++)
        list[i] = cs_strtab_get(&plan->names, at[i]).at;
    *out = list;
    *n = len;
    return list != NULL;
}

cutset_status cutset_plan_open_model(cutset_model **out, const cutset_plan *plan, const char *path,
                                     int follow_links, const cutset_progress *progress,
                                     cutset_error *err)
{
    const cs_plan_options *o = &plan->options;
    cutset_open_opts opts;
    *out = NULL;
    cutset_open_opts_init(&opts);
    opts.follow_links = follow_links;
    if (progress) opts.progress = *progress;
    if (!path) path = plan->model_path;
    if (!path || strcmp(path, "-") == 0)
        return cs_fail(err, CUTSET_USAGE,
                       "the model came from standard input or memory and is gone: plan and split it "
                       "from a file");
    cutset_status s = CUTSET_OK;
    if (!option_list(plan, o->types.at, o->types.len, &opts.types, &opts.n_types) ||
        !option_list(plan, o->shapes.at, o->shapes.len, &opts.shapes, &opts.n_shapes) ||
        !option_list(plan, o->dims.at, o->dims.len, &opts.dims, &opts.n_dims))
        s = cs_fail_memory(err);
    cutset_model *m = NULL;
    if (!s) s = cutset_model_open(&m, path, &opts, err);
    if (!s && m->hash != plan->model_hash)
        s = cs_fail(err, CUTSET_BAD,
                    "%s has changed since the plan was made: plan has xxh3:%016" PRIx64
                    ", model has xxh3:%016" PRIx64 ": plan it again",
                    path, plan->model_hash, m->hash);
    cs_free((void *)opts.types);
    cs_free((void *)opts.shapes);
    cs_free((void *)opts.dims);
    if (s)
        cutset_model_free(m);
    else
        *out = m;
    return s;
}

/* Target files may have changed too; shipped targets are those of this build. */
static cutset_status check_targets(const cutset_plan *plan, cutset_error *err)
{
    for (size_t i = 0; i < plan->targets.len; i++) {
        const cs_plan_target *t = &plan->targets.at[i];
        cs_span name = cs_strtab_get(&plan->names, t->name);
        cutset_target *now;
        if (cutset_target_open(&now, name.at, NULL))
            continue; /* a target file: the plan does not say where it is */
        uint64_t hash = now->hash;
        cutset_target_free(now);
        if (hash != t->hash)
            return cs_fail(
                err, CUTSET_BAD,
                "target %.*s has changed since the plan was made: plan has xxh3:%016" PRIx64
                ", target has xxh3:%016" PRIx64 ": plan it again",
                CS_FMT(name), t->hash, hash);
    }
    return CUTSET_OK;
}

cutset_status cutset_split_write(const cutset_model *model, cutset_plan *plan, const char *dir,
                                 const cutset_split_opts *opts, cutset_error *err)
{
    cutset_split_opts otherwise;
    cutset_split_opts_init(&otherwise);
    if (model->scripted)
        return cs_fail(err, CUTSET_BAD, "%s is TorchScript: cutset.torchscript makes modules of its "
                                        "parts; split takes ONNX models",
                       model->path ? model->path : "the model");
    if (!model->onnx)
        return cs_fail(
            err, CUTSET_BAD,
            "%s is in the text form, which has no weights to write: split the ONNX model",
            model->path ? model->path : "the model");
    cutset_status s = check_targets(plan, err);
    if (!s) s = cs_plan_bind(plan, model->graph, model->hash, err);
    if (!s) s = cs_plan_set_path(plan, model->path, err);
    return s ? s
             : cs_emit_split(model->onnx, model->graph, plan, dir, opts ? opts : &otherwise, err);
}

cutset_status cutset_merge(const char *dir, const char *path, const cutset_progress *progress,
                           cutset_write_fn write, void *payload, cutset_error *err)
{
    cutset_plan *plan = NULL;
    cutset_model *model = NULL;
    char *at = cs_path_join(dir, "plan.json");
    cutset_status s = at ? cs_plan_read_json(&plan, at, err) : cs_fail_memory(err);
    if (!s) s = cutset_plan_open_model(&model, plan, NULL, 1, progress, err);
    if (!s && !model->onnx)
        s = cs_fail(err, CUTSET_BAD, "%s was planned from the text form: there is nothing to merge",
                    dir);
    if (!s) s = cs_plan_bind(plan, model->graph, model->hash, err);
    if (!s)
        s = cs_emit_merge(model->onnx, model->graph, plan, dir, path, progress, write, payload,
                          err);
    cutset_model_free(model);
    cutset_plan_free(plan);
    cs_free(at);
    return s;
}
