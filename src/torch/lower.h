/* From script and memory to flat graphs. Private to torch/.
 *
 *     permit.c  who may run each line
 *     lower.c   the blocks that are planned, their nodes and values
 *     share.c   aliases, writes and order edges of one block
 */
#ifndef CS_TORCH_LOWER_H
#define CS_TORCH_LOWER_H

#include "torch/memory.h"

/* The bits of a mask that name targets. */
#define CS_TORCH_TARGETS (~(CUTSET_ALLOW_HOST | CUTSET_ALLOW_DEFAULT))

typedef struct cs_permission { /* by line */
    uint32_t mask;
    uint8_t refusal; /* cs_torch_refusal */
} cs_permission;

/* permit.c; cs_free the result; NULL: no memory. */
cs_permission *cs_permit_lines(cs_memory *m, const cutset_torchscript *in);

/* The values of a block's graph by what they may share. */
typedef struct cs_sharing {
    cs_memory *m;
    cs_graph *g;
    uint32_t block;           /* + 1: the stamp */
    uint32_t source;          /* the block of the script */
    uint32_t *stamp;          /* by cell: the block that its state is of */
    uint32_t *first;          /* by cell: the first value of it here */
    uint32_t *hub;            /* by cell: a value made from all of it so far, or CS_NONE */
    uint32_t *open;           /* by cell: head of a list of values that nothing joins yet */
    uint32_t *write;          /* by cell: the last node that wrote it, or CS_NONE */
    uint32_t *read;           /* by cell: head of a list of nodes that read it since */
    CS_VEC(uint32_t) links;   /* lists: (what, next) */
    CS_VEC(uint32_t) touched; /* cells of this block */
} cs_sharing;

bool cs_sharing_init(cs_sharing *h, cs_memory *m);
void cs_sharing_fini(cs_sharing *h);
void cs_sharing_begin(cs_sharing *h, cs_graph *g, uint32_t block, uint32_t source);
/* A value that comes into the block, or is new. */
bool cs_share_fresh(cs_sharing *h, uint32_t value, uint32_t cell);
/* Output `value` of the last node, whose args are added. */
bool cs_share_output(cs_sharing *h, uint32_t value, uint32_t cell, const uint32_t *arg_cells,
                     bool derives);
/* Writes and order edges of the last node. */
bool cs_share_act(cs_sharing *h, const cs_act *act, const uint32_t *arg_cells);
/* Joins what the block has left open. */
bool cs_sharing_end(cs_sharing *h);

/* lower.c: fills out->blocks. */
cutset_status cs_lower(cs_torch *out, const cs_script *s, cs_memory *m,
                       const cs_permission *permissions, const cutset_torchscript *in,
                       cutset_error *err);

#endif
