/* Type inference: element type, rank and, where it follows easily, the shape of every value.
 *
 * One table entry an operator: {domain, name, function}. An operator without an entry, or whose
 * inputs tell too little, leaves its outputs unknown: never an error. What the model declares
 * (types already set on values) is used and checked: a declared element type that contradicts the
 * inferred one is CUTSET_BAD with the node's name; a rank or size that does so is a note, the
 * inferred type is kept and contradicting dims become unknown.
 *
 * Bodies are inferred with the node that owns them: If joins its branches, Loop and Scan iterate
 * until carried types are stable, the body of a function call takes the types of the call's args.
 */
#ifndef CS_ONNX_INFER_H
#define CS_ONNX_INFER_H

#include "graph/graph.h"

/* Fills the types of all values of the sealed graph `g` and of its bodies. Cost: linear in nodes,
 * times the passes over bodies of loops. */
cutset_status cs_infer(cs_graph *g, const cutset_progress *progress, cutset_error *err);

#endif
