/* The plan as an object: an empty one, freeing one, the names of its enums. */
#include "plan/plan.h"

#include <string.h>

cutset_plan *cs_plan_new(void)
{
    cutset_plan *plan = cs_zalloc(1, sizeof *plan);
    if (plan == NULL) return NULL;
    if (cs_strtab_init(&plan->names)) return plan;
    cs_free(plan);
    return NULL;
}

static void fini_options(cs_plan_options *o)
{
    cs_vec_fini(&o->pins);
    cs_vec_fini(&o->excludes);
    cs_vec_fini(&o->groups);
    cs_vec_fini(&o->shapes);
    cs_vec_fini(&o->dims);
    cs_vec_fini(&o->types);
}

void cs_plan_free(cutset_plan *plan)
{
    if (plan == NULL) return;
    cs_strtab_fini(&plan->names);
    cs_free(plan->model_path);
    cs_vec_fini(&plan->inputs);
    cs_vec_fini(&plan->outputs);
    cs_vec_fini(&plan->targets);
    fini_options(&plan->options);
    cs_vec_fini(&plan->certificate);
    cs_vec_fini(&plan->parts);
    cs_vec_fini(&plan->node_label);
    cs_vec_fini(&plan->nodes);
    cs_vec_fini(&plan->copy_label);
    cs_vec_fini(&plan->copies);
    cs_vec_fini(&plan->ops);
    cs_vec_fini(&plan->refs);
    cs_vec_fini(&plan->values);
    cs_vec_fini(&plan->value_types);
    cs_vec_fini(&plan->value_ids);
    cs_vec_fini(&plan->boundaries);
    cs_vec_fini(&plan->readers);
    cs_vec_fini(&plan->fallback);
    cs_vec_fini(&plan->needs);
    cs_vec_fini(&plan->notes);
    cs_free(plan);
}

const char *cs_bound_kind_name(cs_bound_kind kind)
{
    static const char *const names[] = {"path", "volume", "window", "search"};
    return names[kind];
}

const char *cs_oversize_name(cutset_oversize o)
{
    static const char *const names[] = {"error", "host", "keep"};
    return names[o];
}

cutset_status cs_plan_set_path(cutset_plan *plan, const char *path, cutset_error *err)
{
    char *copy = NULL;
    if (path != NULL) {
        const size_t size = strlen(path) + 1;
        copy = cs_alloc(size, 1);
        if (copy == NULL) return cs_fail_memory(err);
        memcpy(copy, path, size);
    }
    cs_free(plan->model_path);
    plan->model_path = copy;
    return CUTSET_OK;
}
