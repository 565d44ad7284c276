/* Internal to plan/: what json_read.c and json_parts.c share. */
#ifndef CS_PLAN_JSON_READ_H
#define CS_PLAN_JSON_READ_H

#include "plan/assemble.h"
#include "plan/json_get.h"

#define PASS(call)                                                                                 \
    do {                                                                                           \
        const cutset_status passed = (call);                                                       \
        if (passed != CUTSET_OK) return passed;                                                    \
    } while (0)

typedef struct cs_reader {
    cutset_plan *plan;
    const char *folder; /* of the file, or NULL */
    cs_map value_of;    /* name -> index into plan->values */
} cs_reader;

/* The key "target": "host" is -1. Targets must have been read. */
cutset_status cs_read_target(const cs_reader *r, const cs_cursor *c, int32_t *out);
/* The keys "parts" and "boundaries" of the whole; model and targets must have been read. */
cutset_status cs_read_parts(cs_reader *r, const cs_cursor *top);
cutset_status cs_read_boundaries(cs_reader *r, const cs_cursor *top);

#endif
