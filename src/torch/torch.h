/* TorchScript: the text that str(torch._C.Graph) prints, as graphs that can be planned.
 *
 * The text is read whole (script.h), its memory and effects are analysed over all blocks at once,
 * then each block that may be planned by itself, the graph and the branches of every prim::If that
 * is not inside a prim::Loop, becomes a flat graph of its own: no bodies, what it takes from outside
 * are inputs or weights. A prim::If is a node of the graph around it.
 */
#ifndef CS_TORCH_TORCH_H
#define CS_TORCH_TORCH_H

#include "graph/graph.h"

typedef enum cs_torch_refusal { /* why a node must stay on the host whatever the caller says */
                                CS_TORCH_NONE,
                                CS_TORCH_CONTAINER, /* changes a list, a dict or an object */
                                CS_TORCH_EFFECT,    /* a side effect */
                                CS_TORCH_UNKNOWN,   /* nothing is known of the operator */
                                CS_TORCH_INSIDE,    /* something in its blocks may not */
                                CS_TORCH_ATTRIBUTE, /* an attribute of the module that something sets */
                                CS_TORCH_DEFAULT /* without a caller's word: no aten:: operator, or one that writes or draws */
} cs_torch_refusal;

typedef struct cs_torch_node { /* beside each node of a block's graph */
    uint32_t line;
    uint32_t mask;   /* who may run it: bits of targets, CUTSET_ALLOW_HOST */
    uint8_t refusal; /* cs_torch_refusal, of a node for the host alone; NONE: the caller's word */
    bool imported;   /* here to be repeated: of an enclosing block, or the node before it again */
} cs_torch_node;

typedef struct cs_torch_block {
    cs_graph *graph; /* sealed */
    uint32_t owner;  /* block, or CS_NONE */
    uint32_t owner_node;
    uint32_t branch; /* 0, 1 */
    CS_VEC(cs_torch_node) nodes;
    CS_VEC(uint32_t) numbers; /* graph->number */
} cs_torch_block;

typedef struct cs_torch {
    CS_VEC(cs_torch_block) blocks; /* 0: the graph; an owner before its branches */
    uint64_t hash;
    size_t n_nodes; /* of the plan, all blocks, lines inside whole nodes not counted */
} cs_torch;

/* `in` as in cutset.h. *out is NULL on failure. */
cutset_status cs_torch_read(cs_torch **out, const cutset_torchscript *in, cutset_error *err);
void cs_torch_free(cs_torch *t);
/* Does this look like the text of a graph? */
bool cs_torch_probe(cs_span text);

#endif
