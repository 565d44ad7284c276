/* Parts as ONNX models, and back into one.
 *
 * Everything a part holds is copied as bytes from the source (nodes, tensors, value infos,
 * functions, metadata; unknown fields survive); only what must change is written anew: graph inputs
 * and outputs, opset imports in use, locations of external data.
 * A folder appears whole or not at all (doc/FORMAT.md).
 */
#ifndef CS_EMIT_EMIT_H
#define CS_EMIT_EMIT_H

#include "onnx/onnx.h"
#include "plan/plan.h"

/* Writes the split directory of a bound plan. CUTSET_USAGE: the folder may not be taken, `refer`
 * cannot be; CUTSET_BAD: a boundary value without type or rank; CUTSET_NO: an inline part of 2 GiB
 * or more. Weights are copied file to file. Memory: the protos of one part at a time. */
cutset_status cs_emit_split(const cs_onnx *onnx, const cs_graph *graph, const cutset_plan *plan,
                            const char *dir, const cutset_split_opts *opts, cutset_error *err);

/* Joins the parts in `dir` (listed by its plan.json, already read and bound to the source) into one
 * model at `path`: nodes in source order, the parts' own bytes. What is dropped is told by `write`
 * (may be NULL), a line each. */
cutset_status cs_emit_merge(const cs_onnx *source, const cs_graph *graph, const cutset_plan *plan,
                            const char *dir, const char *path, const cutset_progress *progress,
                            cutset_write_fn write, void *payload, cutset_error *err);

#endif
