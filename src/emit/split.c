/* cs_emit_split: a plan and its source become a split directory.
 *
 *   1. names of part files, types of what crosses: everything that can be wrong with the plan
 *   2. the folder: may it be taken?
 *   3. survey: every part as a rope with all weights inside, for its size and the data it uses
 *   4. settle where weights go
 *   5. write parts, weight files, plan.json; put the folder in place
 *
 * Nothing is written before step 5. Cost: linear in the bytes of nodes; weights are not read.
 */
#include "emit/emit.h"
#include "emit/folder.h"
#include "emit/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct split {
    const cutset_plan *plan;
    const cutset_progress *progress;
    cs_parter parter;
    cs_weights weights;
    cs_folder folder;
    cs_rope rope;
    cs_rewriter survey, rewriter;
} split;

static cutset_status check_files(const cutset_plan *plan, cutset_error *err)
{
    cs_map names = {0};
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; i < plan->parts.len && status == CUTSET_OK; i++) {
        const cs_str file = plan->parts.at[i].file;
        const cs_span name = cs_strtab_get(&plan->names, file);
        if (!cs_folder_may_be_part(name) || cs_map_get(&names, file) != CS_NONE)
            status =
                cs_fail(err, CUTSET_BAD,
                        "the plan names the file of part %zu '%.*s', which cannot be: make the "
                        "plan again",
                        i, CS_FMT(name));
        else if (!cs_map_put(&names, file, (uint32_t)i))
            status = cs_fail_memory(err);
    }
    cs_map_fini(&names);
    return status;
}

/* Makes the rope of a part. */
static cutset_status make_part(split *s, uint32_t part, cs_rewriter *rw, cutset_error *err)
{
    s->weights.part = part;
    const cutset_status status = cs_part_collect(&s->parter, part, err);
    return status == CUTSET_OK ? cs_recipe_write(&s->parter.recipe, &s->parter.reach, rw, err)
                               : status;
}

static cutset_status survey(split *s, cutset_error *err)
{
    const uint32_t n = (uint32_t)s->plan->parts.len;
    cutset_status status = CUTSET_OK;
    for (uint32_t i = 0; i < n && status == CUTSET_OK; i++) {
        status = cs_progress(s->progress, "looking at weights", i, n, err);
        if (status == CUTSET_OK) status = make_part(s, i, &s->survey, err);
        s->weights.inline_size[i] = s->rope.len;
    }
    return status;
}

/* A folder with other things in it is taken when parts refer to data there; also, where the weights
 * are so small that nothing is referred to, when the model lies there itself. */
static bool needs_folder(const split *s)
{
    if (s->weights.wanted == CUTSET_WEIGHTS_COPY || s->weights.wanted == CUTSET_WEIGHTS_INLINE)
        return false;
    if (s->plan->parts.len > 0 && s->weights.mode[0] != CUTSET_WEIGHTS_REFER) return false;
    if (cs_weights_refers(&s->weights)) return true;
    const char *path = s->parter.onnx->path;
    char *relative = NULL;
    if (path == NULL || cs_path_relative(&relative, s->folder.dir, path, NULL) != CUTSET_OK)
        return false;
    const bool there = strchr(relative, '/') == NULL && strcmp(relative, "..") != 0;
    cs_free(relative);
    return there;
}

static cutset_status write_rope(split *s, cs_span name, uint32_t part, cutset_error *err)
{
    if (s->rope.len >= CS_PROTO_MAX)
        return cs_fail(err, CUTSET_NO,
                       "part %" PRIu32 " has %" PRIu64 " bytes, a model file must be smaller than "
                       "%" PRIu64 ": use --weights=copy",
                       part, s->rope.len, CS_PROTO_MAX);
    char file[256];
    snprintf(file, sizeof file, "%.*s", (int)name.len, name.at);
    int fd;
    cutset_status status = cs_folder_create(&s->folder, file, &fd, err);
    if (status != CUTSET_OK) return status;
    status = cs_rope_write(&s->rope, fd, file, s->progress, err);
    return cs_folder_close(&s->folder, file, fd, status, err);
}

/* weights/part-NNN.bin; CS_NONE: weights/shared.bin. */
static cutset_status write_weights(split *s, uint32_t part, cutset_error *err)
{
    char file[32] = "weights/shared.bin";
    if (part != CS_NONE) snprintf(file, sizeof file, "weights/part-%03" PRIu32 ".bin", part);
    int fd;
    cutset_status status = cs_folder_create(&s->folder, file, &fd, err);
    if (status != CUTSET_OK) return status;
    status = cs_weights_write(&s->weights, part, fd, s->progress, err);
    return cs_folder_close(&s->folder, file, fd, status, err);
}

static cutset_status write_plan(split *s, cutset_error *err)
{
    char *at = cs_path_join(s->folder.dir, "plan.json");
    if (at == NULL) return cs_fail_memory(err);
    int fd;
    cutset_status status = cs_folder_create(&s->folder, "plan.json", &fd, err);
    if (status == CUTSET_OK) {
        cs_out out;
        status = cs_out_fd(&out, fd, err);
        if (status == CUTSET_OK) {
            status = cs_plan_write_json(s->plan, at, &out, err);
            const cutset_status done = cs_out_done(&out, at, status == CUTSET_OK ? err : NULL);
            if (status == CUTSET_OK) status = done;
        }
        status = cs_folder_close(&s->folder, "plan.json", fd, status, err);
    }
    cs_free(at);
    return status;
}

static cutset_status write_all(split *s, cutset_error *err)
{
    const cutset_plan *plan = s->plan;
    const uint32_t n = (uint32_t)plan->parts.len;
    bool copies = false;
    for (uint32_t i = 0; i < n; i++) {
        cutset_status status = cs_progress(s->progress, "writing parts", i, n, err);
        if (status == CUTSET_OK) status = make_part(s, i, &s->rewriter, err);
        if (status == CUTSET_OK)
            status = write_rope(s, cs_strtab_get(&plan->names, plan->parts.at[i].file), i, err);
        if (status == CUTSET_OK && cs_weights_copies(&s->weights, i)) {
            copies = true;
            if (cs_weights_has_file(&s->weights, i)) status = write_weights(s, i, err);
        }
        if (status != CUTSET_OK) return status;
    }
    cutset_status status = CUTSET_OK;
    if (copies && cs_weights_has_file(&s->weights, CS_NONE))
        status = write_weights(s, CS_NONE, err);
    if (status == CUTSET_OK) status = write_plan(s, err);
    return status == CUTSET_OK ? cs_progress(s->progress, "writing parts", n, n, err) : status;
}

static cutset_status run(split *s, const cs_onnx *onnx, const cs_graph *graph, const char *dir,
                         cutset_weights wanted, cutset_error *err)
{
    const cutset_plan *plan = s->plan;
    cutset_status status = check_files(plan, err);
    if (status == CUTSET_OK) status = cs_parter_init(&s->parter, onnx, graph, plan, err);
    for (uint32_t i = 0; i < plan->parts.len && status == CUTSET_OK; i++)
        status = cs_part_check(&s->parter, i, err);
    if (status == CUTSET_OK) status = cs_folder_look(&s->folder, dir, onnx, err);
    if (status == CUTSET_OK)
        status = cs_weights_init(&s->weights, onnx, wanted, (uint32_t)plan->parts.len, err);
    if (status != CUTSET_OK) return status;
    cs_rewriter_init(&s->survey, &s->rope, cs_weights_survey, &s->weights);
    cs_rewriter_init(&s->rewriter, &s->rope, cs_weights_place, &s->weights);
    status = survey(s, err);
    if (status == CUTSET_OK) status = cs_weights_settle(&s->weights, s->folder.dir, err);
    if (status == CUTSET_OK) status = cs_folder_begin(&s->folder, plan, needs_folder(s), err);
    if (status == CUTSET_OK) status = write_all(s, err);
    return status == CUTSET_OK ? cs_folder_keep(&s->folder, plan, err) : status;
}

cutset_status cs_emit_split(const cs_onnx *onnx, const cs_graph *graph, const cutset_plan *plan,
                            const char *dir, const cutset_split_opts *opts, cutset_error *err)
{
    if (!plan->bound)
        return cs_fail(err, CUTSET_BAD, "the plan is not bound to this model: make it again");
    if (plan->copies.len > 0)
        return cs_fail(err, CUTSET_BAD,
                       "the plan repeats nodes in several parts, which ONNX parts cannot: plan the "
                       "model without repeated nodes");
    split s = {.plan = plan, .progress = opts != NULL ? &opts->progress : NULL};
    const cutset_weights wanted = opts != NULL ? opts->weights : CUTSET_WEIGHTS_AUTO;
    const cutset_status status = run(&s, onnx, graph, dir, wanted, err);
    cs_folder_fini(&s.folder);
    cs_rewriter_fini(&s.survey);
    cs_rewriter_fini(&s.rewriter);
    cs_rope_fini(&s.rope);
    cs_weights_fini(&s.weights);
    cs_parter_fini(&s.parter);
    return status;
}
