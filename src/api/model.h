/* The opaque cutset_model: a graph, and what is behind it: ONNX, TorchScript, or nothing (text form,
 * arrays). */
#ifndef CS_API_MODEL_H
#define CS_API_MODEL_H

#include "onnx/onnx.h"
#include "plan/plan.h"
#include "torch/torch.h"

struct cutset_model {
    cs_graph *graph;
    cs_onnx *onnx;     /* or NULL */
    struct cs_scripted *scripted; /* TorchScript: owns `graph` (torchscript.c); or NULL */
    cs_file text;  /* of the text form */
    char *path;    /* heap; NULL from memory */
    uint64_t hash;
    cs_permit *permits; /* by node; NULL unless it was built from arrays that say who runs where */
    /* --type, --shape, --dim as given, owned; a plan records them */
    cutset_open_opts opts;
    CS_VEC(char *) strings;
};

/* Of a model as read (before --type, --shape, --dim): covers structure, declared types, constants up to CS_CONST_MAX, and name and size of weight
 * files; not weight bytes. */
uint64_t cs_model_hash(const cs_graph *graph, const cs_onnx *onnx_or_null, cutset_status *status);

/* ---- torchscript.c ---- */
/* Fills a new model; `in` as in cutset.h. */
cutset_status cs_scripted_open(cutset_model *m, const cutset_torchscript *in, cutset_error *err);
void cs_scripted_free(struct cs_scripted *scripted);
cutset_status cs_scripted_plan(cutset_plan **out, const cutset_model *m,
                               const cutset_target *const *targets, size_t n_targets,
                               const cutset_plan_opts *opts, cutset_error *err);

/* "RULE: sentence", RULE as in plan.json, as the rule and the sentence, which points into `text`. False:
 * it begins with no rule. */
bool cs_parse_reason(cs_span text, cs_rule *rule, cs_span *why);

#endif
