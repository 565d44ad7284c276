/* How a model carries each weight of its main graph: initializer, sparse initializer, Constant. */
#ifndef CS_EMIT_CARRIER_H
#define CS_EMIT_CARRIER_H

#include "onnx/onnx.h"

typedef enum cs_carrier {
    CS_CARRIER_NONE,
    CS_CARRIER_DENSE,
    CS_CARRIER_SPARSE,
    CS_CARRIER_NODE
} cs_carrier;

typedef struct cs_carriers {
    uint8_t *kind;     /* by value id: cs_carrier */
    int32_t *position; /* by value id: of a Constant, among all NodeProtos of the graph */
    uint32_t *order;   /* value ids that have a carrier, in the order of the file */
    uint32_t n;
} cs_carriers;

cutset_status cs_carriers_init(cs_carriers *c, const cs_onnx *onnx, const cs_graph *graph,
                               cutset_error *err);
void cs_carriers_fini(cs_carriers *c); /* zeroed: nothing to do */

#endif
