/* Private to merge: where the data of the merged model goes. */
#ifndef CS_EMIT_MERGE_H
#define CS_EMIT_MERGE_H

#include "emit/model.h"

/* A model that pieces come from: the source first, then the parts. */
typedef struct cs_origin_model {
    cs_onnx *onnx;
    cs_graph *graph; /* of a part, owned; NULL for the source */
    char **location; /* by data file: as seen from the merged model's folder where it is one of the
                         source's data files and lies in or below that folder; else NULL */
} cs_origin_model;

typedef struct cs_moved { /* bytes in PATH.data */
    const cs_onnx *from;
    uint32_t file; /* CS_ONNX_INLINE, or index into from->files */
    uint64_t offset, length, at;
} cs_moved;

typedef struct cs_gather {
    const cs_onnx *source;
    CS_VEC(cs_origin_model) models;
    cs_map model_of;    /* address of a cs_onnx -> index into models */
    cs_map source_file; /* hash of (dev, ino) of the source's data files -> index */
    bool spill;         /* too large: what cannot be referred to goes to PATH.data */
    char *data_name;    /* PATH.data, last component */
    CS_VEC(cs_moved) moved;
    cs_map moved_at; /* hash of (file identity, offset, length) -> index into moved */
    uint64_t end;    /* of PATH.data */
} cs_gather;

void cs_gather_fini(cs_gather *g); /* frees the parts, not the source */
/* Takes `onnx` and `graph` over, also on failure; `graph` NULL: the source, which stays the
 * caller's. `folder` is that of the merged model. */
cutset_status cs_gather_add(cs_gather *g, cs_onnx *onnx, cs_graph *graph, const char *folder,
                            cutset_error *err);
/* Place function of the rewriter. */
cutset_status cs_gather_place(void *gather, const cs_blob *blob, cs_place *place,
                              cutset_error *err);
/* Writes the moved bytes to `fd`. */
cutset_status cs_gather_write(const cs_gather *g, int fd, const cutset_progress *progress,
                              cutset_error *err);

#endif
