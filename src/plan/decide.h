/* The decision: which target and which part each node goes to, with reasons and bounds.
 *
 * decide.c says in which phases. The rest of plan/ turns a decision into parts and plan.json.
 */
#ifndef CS_PLAN_DECIDE_H
#define CS_PLAN_DECIDE_H

#include "plan/plan.h"

typedef struct cs_reason { /* why a node is on the host; rule NONE: it is not, or needs no reason */
    cs_rule rule;
    int32_t target; /* the target that refused */
    cs_str why;     /* in plan->names */
    int32_t saved;  /* engines saved if it were supported, or -1 */
} cs_reason;

typedef struct cs_copy { /* `node`, whose own part is another, is repeated in `part` */
    uint32_t part, node;
} cs_copy;

typedef struct cs_decision {
    uint32_t n_nodes, n_parts;
    uint32_t *part;       /* by node: part id; ids are an order of the quotient graph */
    int32_t *part_target; /* by part: index into the targets, -1 = host */
    bool *part_oversized; /* by part */
    cs_reason *reasons;   /* by node */
    uint32_t engines, engines_bound;
    cs_bound_kind bound_kind;
    uint32_t *certificate; /* node ids */
    uint32_t n_certificate;
    cs_copy *copies; /* by part, then topological order (repeat.c) */
    uint32_t n_copies;
} cs_decision;

/* Notes and sentences are interned in plan->names, notes also listed in plan->notes.
 * CUTSET_NO: infeasible (the message holds the cycle or the atom), CUTSET_USAGE: a --pin, --exclude
 * or --group that names nothing. */
cutset_status cs_decide(cs_decision *out, cutset_plan *plan, const cs_plan_source *source,
                        const cutset_target *const *targets, size_t n_targets,
                        const cutset_plan_opts *opts, cutset_error *err);
void cs_decision_fini(cs_decision *decision);

#endif
