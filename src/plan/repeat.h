/* Repeated nodes: what is planned is the graph without them (repeat.c). */
#ifndef CS_PLAN_REPEAT_H
#define CS_PLAN_REPEAT_H

#include "plan/decide.h"

typedef struct cs_reduction {
    cs_plan_source
        source;         /* what to decide on: of `graph`, or the given one where nothing repeats */
    cs_graph *graph;    /* NULL: nothing repeats */
    uint32_t *node;     /* by node of `graph`: its id in the whole graph */
    uint32_t *kept;     /* by node of the whole graph: its id in `graph`; CS_NONE: repeated */
    cs_permit *permits; /* by node of `graph`, or NULL */
    uint32_t *number;   /* likewise: what "$" names it by where the whole graph has numbers of its own */
} cs_reduction;

/* Borrows from source->graph, which must stay as it is. Free with cs_reduction_fini, also after a
 * failure. */
cutset_status cs_reduce(cs_reduction *out, const cs_plan_source *source, cutset_error *err);
/* Turns a decision on r->source into one on the whole graph: ids, homes and copies of what is
 * repeated. */
cutset_status cs_reduction_restore(const cs_reduction *r, cs_decision *d, cutset_error *err);
void cs_reduction_fini(cs_reduction *r);

#endif
