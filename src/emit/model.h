/* A model to be written: lists of pieces of models that are there, and its making as a rope. */
#ifndef CS_EMIT_MODEL_H
#define CS_EMIT_MODEL_H

#include "emit/reach.h"
#include "emit/rewrite.h"

/* A graph input or output. */
typedef struct cs_info {
    cs_piece declared; /* its ValueInfoProto, or empty */
    cs_span name;
    cs_type type; /* 0: the declared bytes as they are; else a type is generated from this, and
                          of the declaration all but its type is kept */
} cs_info;

typedef CS_VEC(cs_piece) cs_pieces;
typedef struct cs_recipe {
    const cs_onnx *source; /* ir_version, model and graph fields, opset imports, types */
    const char *name;      /* of the graph, where the source has none */
    cs_pieces nodes, initializers, sparse, infos, annotations, functions;
    CS_VEC(cs_info) inputs, outputs;
} cs_recipe;

void cs_recipe_fini(cs_recipe *recipe);
void cs_recipe_clear(cs_recipe *recipe); /* empties the lists */
/* Fills rw->rope (cleared first) with the ModelProto; imports are those `reach` has marked. */
cutset_status cs_recipe_write(const cs_recipe *recipe, const cs_reach *reach, cs_rewriter *rw,
                              cutset_error *err);

/* ---- info.c ---- */
/* Does a ValueInfoProto tell element type and rank (for sequences and such: what the checker wants
 * of them)? */
bool cs_info_is_ranked(cs_span value_info);
/* The same of a type that would be generated. */
bool cs_info_can_be_written(const cs_pool *pool, cs_type type);
void cs_info_write(cs_rope *rope, uint32_t field, const cs_pool *pool, const cs_info *info);

#endif
