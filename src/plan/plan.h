/* The plan: parts, boundaries, forecasts, reasons, bounds; made from a graph or read from plan.json.
 *
 * A plan owns all its strings. Node and value ids are those of the graph it was made from; a plan
 * read from a file has none until cs_plan_bind looks its names up in a graph of the same hash.
 */
#ifndef CS_PLAN_PLAN_H
#define CS_PLAN_PLAN_H

#include "target/target.h"

typedef CS_VEC(cs_str) cs_strs;

#define CS_FROM_INPUT (-1)  /* cs_plan_output.from: passed through from a graph input */
#define CS_FROM_WEIGHT (-2) /* ... or a weight */

typedef struct cs_plan_value { /* a model input or output */
    cs_str name, type;         /* type: its spelling */
    int32_t from;              /* outputs: part id, CS_FROM_INPUT, CS_FROM_WEIGHT */
} cs_plan_value;

typedef struct cs_plan_target {
    cs_str name;
    uint64_t hash;
} cs_plan_target;

typedef struct cs_op_count {
    cs_str op; /* "Conv", "com.microsoft:Gelu" */
    uint32_t count;
} cs_op_count;

typedef struct cs_part {
    uint32_t id;
    int32_t target; /* index into targets; -1 = host */
    cs_str block;   /* of a nested block: which; 0: of the graph itself */
    cs_str file;
    uint32_t node, n_node;     /* plan->nodes: execution order */
    uint32_t copy, n_copy;     /* plan->copies: likewise */
    uint32_t op, n_op;         /* plan->ops: sorted by count, then name */
    uint32_t input, n_input;   /* plan->refs: order of first use */
    uint32_t output, n_output; /* plan->refs: order of production */
    uint32_t weights;          /* distinct storages */
    int64_t weight_bytes;
    int64_t activation_peak; /* -1: unknown, see needs */
    int64_t host_build_bytes, device_bytes;
    bool oversized;
    uint64_t hash;
    int32_t same_as, same_structure; /* part id or -1 */
    uint32_t need, n_need;           /* plan->needs: what the forecast lacks */
} cs_part;

typedef struct cs_boundary {
    uint32_t value;    /* index into plan->values */
    int64_t bytes;     /* -1 unknown */
    uint32_t from;     /* part id */
    uint32_t to, n_to; /* plan->readers: part ids, ascending */
} cs_boundary;

typedef struct cs_fallback {
    cs_str label, name, op; /* as plans spell the node; ONNX node name; operator */
    int32_t target;         /* the target that refused (the first named) */
    cs_rule rule;
    cs_str why;
    int64_t saved; /* engines saved if supported; -1: not computed */
} cs_fallback;

typedef enum cs_bound_kind {
    CS_BOUND_PATH,
    CS_BOUND_VOLUME,
    CS_BOUND_WINDOW,
    CS_BOUND_SEARCH
} cs_bound_kind;

typedef struct cs_plan_options {                   /* every effective option, as recorded */
    int64_t host_memory, device_memory, min_nodes; /* 0 = none */
    int64_t max_engines;                           /* 0 = no limit */
    cutset_oversize oversize;
    bool connected, tensors_only, bookends;
    int effort;
    cs_strs pins, excludes, groups, shapes, dims, types;
} cs_plan_options;

struct cutset_plan {
    cs_strtab names;
    bool bound; /* ids are valid for a graph of hash `model_hash` */

    char *
        model_path; /* as given by the caller, or absolute after reading a plan.json; NULL = memory, "-" = stdin */
    uint64_t model_hash;
    uint64_t model_nodes;
    int64_t model_weight_bytes;
    CS_VEC(cs_plan_value) inputs, outputs;
    CS_VEC(cs_plan_target) targets;
    cs_plan_options options;

    uint32_t engines, engines_bound;
    cs_bound_kind bound_kind;
    int64_t boundary_bytes, boundary_bytes_bound;
    uint32_t boundaries_unknown;
    cs_strs certificate;

    CS_VEC(cs_part) parts;
    cs_strs node_label;     /* by position in `nodes` */
    CS_VEC(uint32_t) nodes; /* graph node ids, parts one after the other (when bound) */
    cs_strs copy_label;     /* by position in `copies` */
    CS_VEC(uint32_t) copies; /* nodes of other parts that a part repeats (when bound) */
    CS_VEC(cs_op_count) ops;
    CS_VEC(uint32_t) refs;      /* indexes into `values` */
    cs_strs values;             /* names of the values that parts pass on or take in */
    cs_strs value_types;        /* their types' spelling */
    CS_VEC(uint32_t) value_ids; /* graph value ids (when bound) */
    CS_VEC(cs_boundary) boundaries;
    CS_VEC(uint32_t) readers;
    CS_VEC(cs_fallback) fallback;
    cs_strs needs;
    cs_strs notes; /* for the user: broken patterns and such; not in plan.json */
};

cutset_plan *cs_plan_new(void); /* empty; NULL: no memory */
void cs_plan_free(cutset_plan *plan);

/* Where a node may run, decided by the caller instead of the targets' rules. */
typedef struct cs_permit {
    uint32_t mask; /* bit t: on targets[t]; bit 31: on the host */
    cs_rule rule;  /* why on the host only; NONE: no reason was given */
    cs_str why;    /* in the graph's pool */
    bool planned;  /* never repeated, whatever its flag says */
} cs_permit;

/* What a plan is made from. */
typedef struct cs_plan_source {
    const cs_graph *graph;        /* sealed, inferred */
    const char *path;             /* or NULL */
    uint64_t hash;                /* cs_model_hash */
    const cutset_open_opts *open; /* --shape, --dim, --type as given; may be NULL */
    const cs_permit *permits; /* by node, or NULL: the targets are asked */
    /* Set by repeat.c, where `graph` is `whole` without the nodes that are repeated. */
    const cs_graph *whole; /* or NULL */
    const uint32_t *kept;  /* by node of `whole`: its id in `graph`, or CS_NONE */
    bool onnx; /* parts can be written: every boundary value needs an element type and a rank */
} cs_plan_source;

/* As cutset_plan_make. */
cutset_status cs_plan_make(cutset_plan **out, const cs_plan_source *source,
                           const cutset_target *const *targets, size_t n_targets,
                           const cutset_plan_opts *opts, cutset_error *err);

/* Looks up every node and value of the plan in `graph`. CUTSET_BAD: the hashes differ (both are
 * named), or a name is missing. */
cutset_status cs_plan_bind(cutset_plan *plan, const cs_graph *graph, uint64_t hash,
                           cutset_error *err);

/* Where the model is from now on (NULL: in memory). */
cutset_status cs_plan_set_path(cutset_plan *plan, const char *path, cutset_error *err);

/* plan.json, streamed. `at`: the path it will have (model.path is relative to its folder); NULL or
 * "-": model.path is relative to the current folder. Tell failures of `out` with cs_out_done. */
cutset_status cs_plan_write_json(const cutset_plan *plan, const char *at, cs_out *out,
                                 cutset_error *err);
/* `path` may be the folder that holds plan.json, or "-". CUTSET_BAD: it is no plan of this schema. */
cutset_status cs_plan_read_json(cutset_plan **out, const char *path, cutset_error *err);

static inline bool cs_part_is_engine(const cs_part *p) { return p->target >= 0; }
const char *cs_bound_kind_name(cs_bound_kind kind);
const char *cs_oversize_name(cutset_oversize o);

#endif
