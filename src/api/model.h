/* The opaque cutset_model: a graph, and the ONNX record behind it unless it came as text. */
#ifndef CS_API_MODEL_H
#define CS_API_MODEL_H

#include "onnx/onnx.h"
#include "plan/plan.h"

struct cutset_model {
    cs_graph *graph;
    cs_onnx *onnx; /* NULL: the text form */
    cs_file text;  /* of the text form */
    char *path;    /* heap; NULL from memory */
    uint64_t hash;
    /* --type, --shape, --dim as given, owned; a plan records them */
    cutset_open_opts opts;
    CS_VEC(char *) strings;
};

/* Of a model as read (before --type, --shape, --dim): covers structure, declared types, constants up to CS_CONST_MAX, and name and size of weight
 * files; not weight bytes. */
uint64_t cs_model_hash(const cs_graph *graph, const cs_onnx *onnx_or_null, cutset_status *status);

#endif
