/* Internal to plan/: from a decision to the parts of a plan.
 *
 *     layout.c    which nodes, inputs and outputs each part has
 *     parts.c     the layout as parts of the plan, with operators and boundaries
 *     forecast.c  weights, memory while building and running, the peak of activations
 *     hash.c      one hash a part, over its structure
 *     assemble.c  all of these in a row
 *
 * Everything is linear in the graph and uses flat arrays by node, value, storage or part. A set
 * that is emptied for every part is an array of stamps: x is in the set of part p when
 * stamp[x] == p + 1.
 */
#ifndef CS_PLAN_ASSEMBLE_H
#define CS_PLAN_ASSEMBLE_H

#include "plan/decide.h"

/* ---- layout ---- */
typedef struct cs_layout {
    const cs_graph *graph;
    uint32_t n_parts;
    uint32_t *part;        /* by node */
    uint32_t *order;       /* node ids, part after part, each in execution order */
    uint32_t *start;       /* n_parts + 1: where each part begins in `order` */
    uint32_t *run;         /* the same with the copies of each part: `order` where there are none */
    uint32_t *run_start;   /* n_parts + 1 */
    uint32_t *copy_row;    /* by node: the other parts that repeat it, ascending, are */
    uint32_t *copy_part;   /* copy_part[copy_row[n] .. copy_row[n + 1]); NULL: no copies */
    CS_VEC(uint32_t) io;   /* value ids: inputs of part 0, its outputs, inputs of part 1, ... */
    uint32_t *io_start;    /* 2 * n_parts + 1: inputs of p from [2p], outputs from [2p + 1] */
    unsigned char *leaves; /* by value: an output of the part that makes it */
} cs_layout;

/* From the part of each node: `order` follows graph->topo. Copies by part, then in the order of
 * graph->topo. Free with cs_layout_fini, also after a failure. */
cutset_status cs_layout_init(cs_layout *l, const cs_graph *graph, const cs_decision *decision,
                             cutset_error *err);
/* From the nodes themselves, part after part; `order` and `start` are copied. */
cutset_status cs_layout_take(cs_layout *l, const cs_graph *graph, const uint32_t *order,
                             const uint32_t *start, uint32_t n_parts, const cs_copy *copies,
                             uint32_t n_copies, cutset_error *err);
void cs_layout_fini(cs_layout *l);
/* Does part `p` hold a copy of `node`? O(log) of its copies. */
bool cs_layout_copies(const cs_layout *l, uint32_t node, uint32_t p);

/* The parts that take value `v`, made by a node, from the part that makes it:
 *     cs_takers t = {.l = l, .value = v};
 *     for (uint32_t p; (p = cs_layout_taker(&t)) != CS_NONE;)
 * One may come several times. */
typedef struct cs_takers {
    const cs_layout *l;
    uint32_t value;
    uint32_t use, copy; /* how far it is */
} cs_takers;
uint32_t cs_layout_taker(cs_takers *t);

/* ---- the plan's own strings ---- */
cs_str cs_plan_str(cutset_plan *plan, cs_span text); /* a copy; CS_NONE: no memory */
/* Operators as plans spell them, "com.microsoft:Gelu"; each spelled once. */
typedef struct cs_op_names {
    cs_map ids; /* (domain, op) of the pool -> index into text */
    CS_VEC(cs_str) text;
} cs_op_names;
uint32_t cs_op_index(cs_op_names *names, cutset_plan *plan, const cs_pool *pool,
                     const cs_node *node);
void cs_op_names_fini(cs_op_names *names);
/* Spellings of types; CS_NONE: no memory. `known` is by type id, grown as needed. */
typedef CS_VEC(cs_str) cs_type_names;
cs_str cs_type_text(cs_type_names *known, cutset_plan *plan, const cs_pool *pool, cs_type type);

/* Bytes of a value, -1: unknown. What is no tensor counts none. */
static inline int64_t cs_value_bytes(const cs_graph *g, uint32_t v)
{
    const cs_value *value = &g->values.at[v];
    return value->kind == CS_VALUE_TENSOR ? cs_type_bytes(g->pool, value->type) : 0;
}

/* ---- the steps; each fills what its file is for ---- */
cutset_status cs_parts_build(cutset_plan *plan, const cs_layout *l, const cs_decision *d,
                             cs_op_names *ops, cs_type_names *types, cutset_error *err);
cutset_status cs_parts_forecast(cutset_plan *plan, const cs_layout *l,
                                const cutset_target *const *targets, cutset_error *err);
cutset_status cs_parts_hash(cutset_plan *plan, const cs_layout *l,
                            const cutset_target *const *targets, cutset_error *err);

/* All steps: fills model facts, targets, parts, boundaries, bounds and fallback from a decision on
 * source->graph. The plan is new but may hold notes and sentences; options are left alone. */
cutset_status cs_plan_assemble(cutset_plan *plan, const cs_plan_source *source,
                               const cutset_target *const *targets, size_t n_targets,
                               const cs_decision *decision, cutset_error *err);
/* Records the effective options. */
cutset_status cs_plan_record(cutset_plan *plan, const cutset_plan_opts *opts,
                             const cutset_open_opts *open, cutset_error *err);

/* The part's operators by count, then name. */
void cs_ops_sort(cutset_plan *plan, const cs_part *part);
/* "part-003-host.onnx" */
cs_str cs_part_file(cutset_plan *plan, uint32_t id, cs_span target);
/* The target's name, or "host". */
cs_span cs_plan_target_name(const cutset_plan *plan, int32_t target);

/* ---- hashing, shared with the hash of a model ---- */
typedef CS_VEC(uint64_t) cs_type_hashes; /* by type id, 0 = not yet computed; grown as needed */
bool cs_hash_type(cs_hasher *h, cs_type_hashes *known, const cs_pool *pool, cs_type type);
bool cs_hash_attr(cs_hasher *h, cs_type_hashes *known, const cs_pool *pool, const cs_attr *attr);
void cs_hash_storage(cs_hasher *h, const cs_storage *s);

/* ---- plan.json from memory ---- */
/* `what` names the text in messages; `folder` is what model.path is relative to, NULL: the path
 * stays as it is written. */
cutset_status cs_plan_parse_json(cutset_plan **out, cs_span text, const char *what,
                                 const char *folder, cutset_error *err);

#endif
