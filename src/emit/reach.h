/* What nodes need beside their values: opset imports and model-local functions, the functions'
 * own needs included. */
#ifndef CS_EMIT_REACH_H
#define CS_EMIT_REACH_H

#include "onnx/onnx.h"
#include "onnx/wire.h"

typedef struct cs_reach {
    const cs_onnx *onnx;
    cs_strtab keys;          /* domains; function keys */
    CS_VEC(cs_span) imports; /* OperatorSetIdProto, one a domain: the highest version */
    CS_VEC(cs_span) domains; /* of `imports`, as written */
    CS_VEC(int64_t) versions;
    cs_map import_of, function_of; /* key -> index */
    bool *import_used, *function_used;
    CS_VEC(uint32_t) todo; /* functions found, bodies not walked yet */
    CS_VEC(char) key;      /* scratch */
} cs_reach;

cutset_status cs_reach_init(cs_reach *reach, const cs_onnx *onnx, cutset_error *err);
void cs_reach_fini(cs_reach *reach);  /* zeroed: nothing to do */
void cs_reach_clear(cs_reach *reach); /* nothing is used */
/* Marks what a NodeProto uses, bodies included. */
cutset_status cs_reach_node(cs_reach *reach, cs_span node, cutset_error *err);
/* After the last node: marks what the functions in use need. Where no node needs an import, all
 * count as used: a model without any is refused by the checker. */
cutset_status cs_reach_finish(cs_reach *reach, cutset_error *err);
/* Index into onnx->functions, or CS_NONE. False: no memory. */
bool cs_reach_function(cs_reach *reach, cs_span domain, cs_span name, cs_span overload,
                       uint32_t *index);

#endif
