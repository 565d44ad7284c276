/* Plans of graphs whose branches are planned by themselves (TorchScript). */
#ifndef CS_PLAN_NEST_H
#define CS_PLAN_NEST_H

#include "plan/plan.h"

/* One block. Its graph is flat and its permits are given; what it takes from outside are inputs. */
typedef struct cs_plan_block {
    cs_plan_source source;
    uint32_t owner; /* the block around it, which stands before it; CS_NONE: the graph itself */
    uint32_t owner_node;  /* the CS_NODE_ALONE node there whose branch it is */
    uint32_t branch;      /* 0, 1 */
    const bool *imported; /* by node: repeated here, of an enclosing block or of the node before
                             it; or NULL */
    cs_str spent;         /* in the graph's pool: why nothing is left of --max-engines */
} cs_plan_block;

typedef struct cs_plan_whole { /* what the blocks together are */
    size_t nodes;
    int64_t weight_bytes;
} cs_plan_whole;

/* As cs_plan_make. A block is planned if its owner is and the owner's node runs on the host. Ids of
 * nodes and values are not kept: such a plan is not bound. */
cutset_status cs_plan_make_nested(cutset_plan **out, const cs_plan_block *blocks, size_t n_blocks,
                                  const cs_plan_whole *whole, const cutset_target *const *targets,
                                  size_t n_targets, const cutset_plan_opts *opts,
                                  cutset_error *err);

/* nest_merge.c: one plan of the plans of all blocks; plans[b] is NULL where a block has none.
 * `home`: by block, the part of its owner that holds the owner's node. */
cutset_status cs_plan_merge(cutset_plan *into, const cs_plan_block *blocks, size_t n_blocks,
                            cutset_plan *const *plans, const uint32_t *home,
                            const cs_plan_whole *whole, cutset_error *err);

#endif
