/* Making a plan: record the options, decide (on the graph without repeated nodes), assemble.
 *
 * The decision may write notes and sentences into the plan before anything else is in it.
 */
#include "plan/assemble.h"
#include "plan/repeat.h"

static cutset_status decide(cs_decision *d, cutset_plan *plan, const cs_plan_source *source,
                            const cutset_target *const *targets, size_t n_targets,
                            const cutset_plan_opts *opts, cutset_error *err)
{
    cs_reduction r;
    cutset_status status = cs_reduce(&r, source, err);
    if (status == CUTSET_OK)
        status = cs_decide(d, plan, &r.source, targets, n_targets, opts, err);
    if (status == CUTSET_OK) status = cs_reduction_restore(&r, d, err);
    cs_reduction_fini(&r);
    return status;
}

static cutset_status fill(cutset_plan *plan, const cs_plan_source *source,
                          const cutset_target *const *targets, size_t n_targets,
                          const cutset_plan_opts *opts, cutset_error *err)
{
    cutset_status status = cs_plan_record(plan, opts, source->open, err);
    if (status != CUTSET_OK) return status;
    cs_decision decision = {0};
    status = decide(&decision, plan, source, targets, n_targets, opts, err);
    if (status == CUTSET_OK)
        status = cs_progress(&opts->progress, "parts", 0, source->graph->nodes.len, err);
    if (status == CUTSET_OK)
        status = cs_plan_assemble(plan, source, targets, n_targets, &decision, err);
    cs_decision_fini(&decision);
    return status;
}

cutset_status cs_plan_make(cutset_plan **out, const cs_plan_source *source,
                           const cutset_target *const *targets, size_t n_targets,
                           const cutset_plan_opts *opts, cutset_error *err)
{
    static const cutset_plan_opts otherwise = {.effort = 1};
    cutset_plan *plan = cs_plan_new();
    if (plan == NULL) return cs_fail_memory(err);
    const cutset_status status =
        fill(plan, source, targets, n_targets, opts != NULL ? opts : &otherwise, err);
    if (status == CUTSET_OK)
        *out = plan;
    else
        cs_plan_free(plan);
    return status;
}
