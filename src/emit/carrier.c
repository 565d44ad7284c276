/* How weights are carried; see carrier.h.
 *
 * The record has the bytes of each weight but not the field they stand in: sorted by place, they
 * are walked beside the fields of the graph. Cost: O(w log w) for w weights, plus the fields.
 */
#include "emit/carrier.h"

#include "onnx/wire.h"

#include <stdlib.h>

typedef struct place_in_file { /* of a weight's own bytes */
    const char *at;
    uint32_t value;
} place_in_file;

static int by_place(const void *a, const void *b)
{
    const place_in_file *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Walks the fields of the main graph beside the sorted places: which field holds each. */
static cutset_status find_carriers(cs_carriers *c, const cs_onnx *onnx, const place_in_file *places,
                                   size_t n, cutset_error *err)
{
    size_t next = 0;
    int32_t position = 0;
    cs_wire w = cs_wire_of(onnx->graph, 0);
    while (cs_wire_next(&w)) {
        const cs_carrier kind = w.field == 1    ? CS_CARRIER_NODE
                                : w.field == 5  ? CS_CARRIER_DENSE
                                : w.field == 15 ? CS_CARRIER_SPARSE
                                                : CS_CARRIER_NONE;
        if (kind == CS_CARRIER_NONE || w.type != CS_WIRE_BYTES) continue;
        for (; next < n && places[next].at <= w.bytes.at; next++) {
            if (places[next].at != w.bytes.at) continue;
            c->kind[places[next].value] = (uint8_t)kind;
            c->position[places[next].value] = kind == CS_CARRIER_NODE ? position : -1;
            c->order[c->n++] = places[next].value;
        }
        position += kind == CS_CARRIER_NODE;
    }
    return w.bad != NULL ? cs_wire_error(&w, "GraphProto", err) : CUTSET_OK;
}

static cutset_status fill(cs_carriers *c, const cs_onnx *onnx, const cs_graph *graph,
                          cutset_error *err)
{
    const size_t n_values = graph->values.len;
    CS_VEC(place_in_file) places = {0};
    for (uint32_t v = 0; v < n_values && v < onnx->initializer.len; v++) {
        const char *at = onnx->initializer.at[v].at;
        if (at == NULL) continue;
        if (!cs_vec_push(&places, ((place_in_file){at, v}))) {
            cs_vec_fini(&places);
            return cs_fail_memory(err);
        }
    }
    if (places.len > 0) qsort(places.at, places.len, sizeof *places.at, by_place);
    const cutset_status status = find_carriers(c, onnx, places.at, places.len, err);
    cs_vec_fini(&places);
    return status;
}

cutset_status cs_carriers_init(cs_carriers *c, const cs_onnx *onnx, const cs_graph *graph,
                               cutset_error *err)
{
    const size_t n = graph->values.len + 1;
    *c = (cs_carriers){.kind = cs_zalloc(n, sizeof *c->kind),
                       .position = cs_zalloc(n, sizeof *c->position),
                       .order = cs_alloc(n, sizeof *c->order)};
    const cutset_status status = c->kind == NULL || c->position == NULL || c->order == NULL
                                     ? cs_fail_memory(err)
                                     : fill(c, onnx, graph, err);
    if (status != CUTSET_OK) cs_carriers_fini(c);
    return status;
}

void cs_carriers_fini(cs_carriers *c)
{
    cs_free(c->kind);
    cs_free(c->position);
    cs_free(c->order);
    *c = (cs_carriers){0};
}
