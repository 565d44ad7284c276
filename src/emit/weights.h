/* Where the parts' weights go: refer, copy, inline, auto.
 *
 * Life: init; survey every part once (its size with all weights inside, and what data it uses);
 * settle (which mode, which file and offset each piece of data has); then write every part, and the
 * weight files. Data is told apart by (file, offset, length), so tied weights are one.
 */
#ifndef CS_EMIT_WEIGHTS_H
#define CS_EMIT_WEIGHTS_H

#include "emit/part.h"

#define CS_PROTO_MAX ((uint64_t)INT32_MAX) /* of a protobuf message */

typedef struct cs_data { /* bytes that copied parts hold in weights/ */
    uint64_t offset, length;
    uint64_t at;   /* offset in the weight file */
    uint32_t file; /* CS_ONNX_INLINE, or index into onnx->files */
    uint32_t part; /* the first that uses it; CS_NONE: no copied part yet */
    bool shared;   /* more than one does: weights/shared.bin */
} cs_data;

typedef struct cs_use { /* a part uses data */
    uint32_t part, data;
} cs_use;

typedef struct cs_weights {
    const cs_onnx *onnx;
    cutset_weights wanted;
    uint32_t n_parts, part; /* part: the one at hand */
    CS_VEC(cs_data) data;
    cs_map data_of;        /* hash of (file, offset, length) -> data, open addressing by +1 */
    CS_VEC(cs_use) uses;   /* ascending by part */
    size_t *first_use;     /* by part, n_parts + 1: index into uses; once laid out */
    bool *file_used;       /* by data file */
    bool model_used;       /* inline data over CS_CONST_MAX */
    uint64_t *inline_size; /* by part: bytes with all weights inside */
    cutset_weights *mode;  /* by part, once settled: REFER, COPY or INLINE */
    char **location;       /* by data file: as seen from the folder; NULL: not there */
    char *model_location;
    char own_file[32]; /* weights/part-NNN.bin of the part at hand */
} cs_weights;

cutset_status cs_weights_init(cs_weights *w, const cs_onnx *onnx, cutset_weights wanted,
                              uint32_t n_parts, cutset_error *err);
void cs_weights_fini(cs_weights *w); /* zeroed: nothing to do */
/* The place functions of a rewriter; w->part says for which part. */
cutset_status cs_weights_survey(void *weights, const cs_blob *blob, cs_place *place,
                                cutset_error *err);
cutset_status cs_weights_place(void *weights, const cs_blob *blob, cs_place *place,
                               cutset_error *err);
/* Chooses the modes; `dir` is the final folder (it need not exist). CUTSET_USAGE: `refer` cannot
 * be; CUTSET_NO: an inline part of 2 GiB or more. */
cutset_status cs_weights_settle(cs_weights *w, const char *dir, cutset_error *err);
/* Does any part name the source's data in place? Only after settling. */
bool cs_weights_refers(const cs_weights *w);
static inline bool cs_weights_copies(const cs_weights *w, uint32_t part)
{
    return w->mode[part] == CUTSET_WEIGHTS_COPY;
}
/* Writes weights/part-NNN.bin (`part`), or weights/shared.bin (CS_NONE), to `fd`. */
cutset_status cs_weights_write(const cs_weights *w, uint32_t part, int fd,
                               const cutset_progress *progress, cutset_error *err);
/* Would that file hold anything? */
bool cs_weights_has_file(const cs_weights *w, uint32_t part);

#endif
