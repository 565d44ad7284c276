/* Re-encoding of nodes, tensors and functions, only where the place of tensor data changes.
 *
 * Every TensorProto, however deep in attributes and bodies, is shown to a `place` function, which
 * says where its data shall be. A message in which nothing changes is copied as the bytes it is;
 * in one that changes, every other field is copied as it is, unknown ones included.
 */
#ifndef CS_EMIT_REWRITE_H
#define CS_EMIT_REWRITE_H

#include "emit/rope.h"
#include "onnx/onnx.h"
#include "onnx/wire.h"

/* Bytes of a message, and the model they stand in. */
typedef struct cs_piece {
    const cs_onnx *from;
    cs_span bytes;
} cs_piece;

/* A TensorProto that has its data in an external file, or inline as raw_data. */
typedef struct cs_blob {
    const cs_onnx *from;
    cs_span name, location; /* location: as written, external only */
    uint32_t file;          /* CS_ONNX_INLINE, or index into from->files */
    uint64_t offset, length;
    bool sparse; /* values or indices of a sparse tensor */
} cs_blob;

typedef enum cs_place_kind { CS_PLACE_KEEP, CS_PLACE_EXTERNAL, CS_PLACE_INLINE } cs_place_kind;
typedef struct cs_place { /* where the data shall be */
    cs_place_kind kind;
    cs_span location; /* EXTERNAL; lives until the rope is written */
    uint64_t offset;
    bool same_file; /* EXTERNAL: the same file as before, so a checksum of it stays right */
} cs_place;

typedef cutset_status (*cs_place_fn)(void *payload, const cs_blob *tensor, cs_place *place,
                                     cutset_error *err);

typedef struct cs_rewriter {
    cs_place_fn place;
    void *payload;
    cs_rope *rope;
    const cs_onnx *from;    /* of the piece at hand */
    const cs_onnx *located; /* whose files `locations` has */
    cs_strtab paths;        /* locations, normalised */
    cs_map locations;       /* path -> index into files */
    cutset_error *err;
} cs_rewriter;

typedef enum cs_message {
    CS_MESSAGE_NODE,
    CS_MESSAGE_TENSOR,
    CS_MESSAGE_SPARSE,
    CS_MESSAGE_FUNCTION,
    CS_MESSAGE_ATTRIBUTE,
    CS_MESSAGE_GRAPH
} cs_message;

void cs_rewriter_init(cs_rewriter *rw, cs_rope *rope, cs_place_fn place, void *payload);
void cs_rewriter_fini(cs_rewriter *rw);
/* Adds field `field` with the message to the rope. CUTSET_BAD: malformed. */
cutset_status cs_rewrite(cs_rewriter *rw, uint32_t field, cs_message kind, cs_piece piece,
                         cutset_error *err);

#endif
