/* A cursor over protobuf wire format: no copies, no allocation, every length checked.
 *
 *     cs_wire w = cs_wire_of(bytes, base_offset);
 *     while (cs_wire_next(&w)) switch (w.field) { case 3: name = w.bytes; ... }
 *     if (w.bad) return cs_wire_error(&w, "NodeProto", err);
 */
#ifndef CS_ONNX_WIRE_H
#define CS_ONNX_WIRE_H

#include "base/error.h"
#include "base/text.h"

enum { CS_WIRE_VARINT = 0, CS_WIRE_F64 = 1, CS_WIRE_BYTES = 2, CS_WIRE_F32 = 5 };

typedef struct cs_wire {
    const unsigned char *start, *at, *end;
    uint64_t base;   /* offset of `start` in the file */
    uint32_t field;  /* of the current field */
    int type;        /* its wire type */
    uint64_t number; /* VARINT, F64, F32: the bits */
    cs_span bytes;   /* BYTES: the payload */
    cs_span raw;     /* the whole field, tag included */
    const char *bad; /* what is wrong, or NULL; sticky */
} cs_wire;

cs_wire cs_wire_of(cs_span bytes, uint64_t base);
/* False at the end or when bad. Groups (wire types 3 and 4) are skipped whole, bounded. */
bool cs_wire_next(cs_wire *w);
/* Payload offset in the file of the current BYTES field. */
uint64_t cs_wire_payload(const cs_wire *w);
/* Did the current field have this wire type? Else marks the cursor bad. */
bool cs_wire_expect(cs_wire *w, int type);
/* Walks a repeated integer field, packed or not: returns the next number of the current field.
 *     cs_wire p; if (cs_wire_each(w, &p, CS_WIRE_VARINT)) while (cs_wire_item(&p, &x)) ... */
bool cs_wire_each(cs_wire *w, cs_wire *items, int item_type);
bool cs_wire_item(cs_wire *items, uint64_t *x);
cutset_status cs_wire_error(const cs_wire *w, const char *message, cutset_error *err);

#endif
