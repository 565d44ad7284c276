/* What one part holds: its nodes, weights, inputs, outputs and the rest, as a recipe. */
#ifndef CS_EMIT_PART_H
#define CS_EMIT_PART_H

#include "emit/carrier.h"
#include "emit/model.h"
#include "plan/plan.h"

/* The source and tables over it, made once for all parts. */
typedef struct cs_parter {
    const cs_onnx *onnx;
    const cs_graph *graph;
    const cutset_plan *plan;
    cs_carriers carriers;
    uint32_t round;   /* collections so far; a part may be collected more than once */
    uint32_t *seen;   /* by value id: the last round in which it was in the part */
    uint32_t *output; /* by value id: the last round in which it was an output */
    cs_map by_name;   /* name -> value id; only where there are annotations */
    cs_reach reach;
    cs_recipe recipe; /* of the part collected last */
    char name[32];
} cs_parter;

cutset_status cs_parter_init(cs_parter *pt, const cs_onnx *onnx, const cs_graph *graph,
                             const cutset_plan *plan, cutset_error *err);
void cs_parter_fini(cs_parter *pt); /* zeroed: nothing to do */

/* CUTSET_BAD: a value that crosses has no element type or no rank; the message holds the cure. */
cutset_status cs_part_check(const cs_parter *pt, uint32_t part, cutset_error *err);
/* Fills pt->recipe and pt->reach with the part. */
cutset_status cs_part_collect(cs_parter *pt, uint32_t part, cutset_error *err);
/* The info of a value of the main graph: its declaration where that tells enough, else its type. */
cs_info cs_part_info(const cs_parter *pt, uint32_t value);

#endif
