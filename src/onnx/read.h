/* Private to the ONNX reader: what its files share while one model is read.
 *
 *     read.c         the model: opening, opsets         read_probe.c   what is not ONNX
 *     read_graph.c   values, types, outputs, bodies     read_node.c    nodes, random draws
 *     read_scope.c   what a name means, captures        functions.c    calls of local functions
 *     read_type.c    types                              read_attr.c    attributes
 *     read_tensor.c  tensors                            read_weight.c  initializers, Constants
 *     data_file.c    external data
 *
 * All spans point into the mapped file, so an offset in the file is a difference of pointers.
 */
#ifndef CS_ONNX_READ_H
#define CS_ONNX_READ_H

#include "onnx/onnx.h"
#include "onnx/wire.h"

#define CS_ONNX_IR_MAX 14
#define CS_ONNX_OPSET_MAX 28

#define CS_TRY(call)                                                                               \
    do {                                                                                           \
        const cutset_status status_ = (call);                                                      \
        if (status_ != CUTSET_OK) return status_;                                                  \
    } while (0)

/* AttributeProto.AttributeType */
enum {
    CS_ONNX_FLOAT = 1,
    CS_ONNX_INT,
    CS_ONNX_STRING,
    CS_ONNX_TENSOR,
    CS_ONNX_GRAPH,
    CS_ONNX_FLOATS,
    CS_ONNX_INTS,
    CS_ONNX_STRINGS,
    CS_ONNX_TENSORS,
    CS_ONNX_GRAPHS,
    CS_ONNX_SPARSE,
    CS_ONNX_SPARSES,
    CS_ONNX_TYPE,
    CS_ONNX_TYPES
};

/* What a name means at the moment, in the innermost graph that knows it. */
typedef struct cs_binding {
    uint32_t value; /* in the graph at `depth`; CS_NONE: an absent argument of a function */
    uint32_t depth; /* of the scope, from 1; 0 = means nothing */
    uint32_t below; /* what it means outside that graph: index into cs_reader.below, or CS_NONE */
} cs_binding;

/* An attribute of a node that is being read. */
typedef struct cs_item {
    cs_str name;
    uint32_t type; /* AttributeType */
    bool foreign;  /* through ref_attr_name: stands elsewhere in the file */
    cs_span proto; /* AttributeProto */
    cs_attr attr;
} cs_item;

/* A weight inside a function, which is read once a call. */
typedef struct cs_known_weight {
    uint32_t storage;
    cs_type type;
    cs_span name;
} cs_known_weight;

/* The call that a function body is an instance of: its attributes are cs_reader.items
 * [item .. item + n_items), the function's defaults included. */
typedef struct cs_call {
    size_t item, n_items;
    cs_map by_name; /* item by attribute name; filled when there are many */
} cs_call;

/* A graph that is being read. */
typedef struct cs_scope {
    struct cs_scope *outer;
    cs_graph *graph;
    uint32_t depth;      /* 1 = the main graph */
    uint32_t floor;      /* names of scopes below this depth are not seen (function bodies) */
    const cs_call *call; /* inside a function, else NULL */
    const struct cs_source *source; /* what is read into it, for messages */
    const cs_graph *imports;        /* whose opsets count here */
    CS_VEC(cs_str) bound;           /* names bound here, to be undone (not in the main graph) */
    CS_VEC(uint32_t) captured;      /* by value id: 1 + the last node whose bodies captured it */
    uint32_t next_out;              /* next value made by a node that has not been added yet */
    bool random;                    /* some node here draws random numbers */
} cs_scope;

typedef struct cs_reader {
    cs_onnx *onnx;
    cs_pool *pool;
    cs_graph *top;
    const cs_onnx_opts *opts;
    cutset_error *err;
    uint32_t depth;  /* messages around the one being read */
    uint32_t levels; /* graphs around the one being read, instances of functions included */

    /* read_scope.c */
    CS_VEC(cs_binding) names; /* by cs_str */
    CS_VEC(cs_binding) below;
    cs_str next_name; /* read_graph.c: a guess at what is declared next */

    /* stacks: who pushes pops */
    CS_VEC(cs_span) ins, outs;
    CS_VEC(cs_item) items;

    cs_dim dims[CS_RANK_MAX]; /* of the tensor or type read last */

    /* read_weight.c */
    cs_map ties;    /* hash of (file, offset, length, type) -> storage */
    cs_map weights; /* inside functions: offset of a proto -> index into known_weights */
    CS_VEC(cs_known_weight) known_weights;
    cs_map attrs; /* the same of attributes */
    CS_VEC(cs_item) known_attrs;
    size_t inputs_dropped; /* below IR 4: initializers that are inputs too */

    /* data_file.c */
    int folder_fd; /* -1: not opened yet */
    int data_fd;   /* of data_file, or -1 */
    uint32_t data_file;
    cs_map file_ids;         /* name id of the normalised location -> index into onnx->files */
    CS_VEC(cs_str) odd_keys; /* unknown keys that were noted */
    bool links_noted;

    /* functions.c */
    cs_map function_ids;
    CS_VEC(bool) open; /* by function: an instance is being read */
    uint64_t instance_nodes, instance_bytes;
    bool limit_noted;

    CS_VEC(cs_str) odd_domains; /* not imported, noted */
    uint64_t steps;             /* nodes read, for progress */
} cs_reader;

static inline bool cs_in_function(const cs_scope *s) { return s->floor > 1; }
static inline uint64_t cs_onnx_offset(const cs_reader *r, cs_span s)
{
    const uintptr_t at = (uintptr_t)s.at, start = (uintptr_t)r->onnx->file.at;
    return at < start || at > start + r->onnx->file.len ? 0 : at - start;
}
static inline cs_wire cs_onnx_wire(const cs_reader *r, cs_span s)
{
    return cs_wire_of(s, cs_onnx_offset(r, s));
}
/* CUTSET_BAD at the place where `at` stands in the file. */
cutset_status cs_onnx_bad(const cs_reader *r, cs_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for what has no name: the message begins with the offset. */
cutset_status cs_onnx_bad_at(const cs_reader *r, cs_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Goes one message deeper, or says that it is too deep. */
cutset_status cs_onnx_enter(cs_reader *r, cs_span at, uint32_t messages);
static inline void cs_onnx_leave(cs_reader *r, uint32_t messages) { r->depth -= messages; }

/* The spans of the file outlive every name, so nothing is copied. CS_NONE: no memory. */
static inline cs_str cs_onnx_intern(cs_reader *r, cs_span s)
{
    return s.len == 0 ? 0 : cs_strtab_add(&r->pool->names, s, true);
}
/* The same for a domain: "ai.onnx" is "". */
cs_str cs_onnx_domain(cs_reader *r, cs_span s);
/* OperatorSetIdProto into g->opsets; of two versions the higher stays. */
cutset_status cs_onnx_read_opset(cs_reader *r, cs_span proto, cs_graph *g);

/* ---- read_probe.c ---- */
/* CUTSET_BAD with a name and a cure for what is certainly not an ONNX protobuf. */
cutset_status cs_onnx_probe(const cs_file *file, cutset_error *err);

/* ---- read_scope.c ---- */
void cs_scope_open(cs_scope *s, cs_scope *outer, cs_graph *graph, bool function);
void cs_scope_close(cs_reader *r, cs_scope *s);
/* The value (or CS_NONE, for an absent argument of a function) that `name` means in exactly this
 * graph. False: nothing. */
bool cs_scope_here(const cs_reader *r, const cs_scope *s, cs_str name, uint32_t *value);
/* False: no memory. A name that is bound here already is the caller's error. */
bool cs_scope_bind(cs_reader *r, cs_scope *s, cs_str name, uint32_t value);
/* The value that `name` means here, captured from an outer graph where needed. *found false:
 * nothing has that name. */
cutset_status cs_scope_resolve(cs_reader *r, cs_scope *s, cs_str name, uint32_t *value,
                               bool *found);

/* ---- read_type.c ---- */
cutset_status cs_onnx_read_type(cs_reader *r, cs_span proto, cs_type *out);
/* ValueInfoProto; no type at all: 0. */
cutset_status cs_onnx_read_info(cs_reader *r, cs_span proto, cs_span *name, cs_type *type);

/* ---- read_tensor.c ---- */
typedef struct cs_tensor {
    cs_span name;
    cs_elem elem;
    cs_type type;
    int64_t bytes; /* dims x element size; strings: the sum of their lengths */
    uint32_t file; /* these four as in cs_weight */
    uint64_t offset, length;
    bool raw;
    const void *data; /* at most CS_CONST_MAX numeric bytes; else NULL */
} cs_tensor;
/* `label` names the tensor in messages; empty: its own name does. */
cutset_status cs_onnx_read_tensor(cs_reader *r, cs_span proto, cs_span label, cs_tensor *out);
/* SparseTensorProto, as the dense tensor that it stands for; without data. */
cutset_status cs_onnx_read_sparse(cs_reader *r, cs_span proto, cs_span label, cs_tensor *out);

/* ---- data_file.c ---- */
/* Finds the external data of a tensor of t->bytes bytes: sets file, offset, length, raw, data. */
cutset_status cs_onnx_read_external(cs_reader *r, cs_span proto, cs_span label, cs_tensor *t);

/* ---- read_attr.c ---- */
typedef struct cs_attr_proto {
    cs_span proto, name, ref;
    uint32_t type; /* derived from what is there when the field is absent; 0: nothing is */
    uint32_t seen; /* a bit a field number */
    int64_t i;
    float f;
    cs_span s, tensor, graph, sparse, tp;
    size_t n_ints, n_floats, n_strings, n_graphs, n_tensors, n_types;
} cs_attr_proto;
cutset_status cs_onnx_open_attr(cs_reader *r, cs_span proto, cs_attr_proto *a);
/* Everything but graphs. `label` names the node in messages. */
cutset_status cs_onnx_decode_attr(cs_reader *r, const cs_attr_proto *a, cs_attr *out);
/* Pushes the attribute on r->items, ref_attr_name replaced by what the call gives (nothing is
 * pushed where it gives none). */
cutset_status cs_onnx_push_attr(cs_reader *r, const cs_scope *s, cs_span proto);
/* The attribute of the call, or NULL. */
const cs_item *cs_call_attr(const cs_reader *r, const cs_call *call, cs_str name);

/* ---- read_weight.c ---- */
/* A value of this graph, and its storage: tied, or new. */
cutset_status cs_onnx_add_initializer(cs_reader *r, cs_scope *s, cs_span proto, bool sparse);
bool cs_onnx_is_constant(cs_span op, cs_span domain);
cutset_status cs_onnx_add_constant(cs_reader *r, cs_scope *s, cs_span node, int32_t position);

/* ---- read_graph.c ---- */
/* The fields of a GraphProto or FunctionProto, in the order of the file. */
typedef CS_VEC(cs_span) cs_spans;
typedef struct cs_source {
    bool function;
    cs_span name;
    cs_spans nodes;            /* Constants are taken out on the way */
    CS_VEC(int32_t) positions; /* of `nodes` among all NodeProtos; main graph only */
    cs_spans inputs, outputs;  /* ValueInfoProtos; of a function: names */
    cs_spans initializers, sparse, infos;
    cs_spans imports, defaults; /* of a function */
} cs_source;
void cs_source_free(cs_source *src);
cutset_status cs_onnx_gather(cs_reader *r, cs_span proto, bool function, cs_source *src);
cutset_status cs_onnx_read_main(cs_reader *r, cs_span proto);
/* A body of the node added last in s->graph; *random: it draws random numbers. */
cutset_status cs_onnx_read_body(cs_reader *r, cs_scope *s, cs_str attr, cs_span proto,
                                bool *random);
/* Everything of a source into an open scope: values, nodes, outputs. */
cutset_status cs_onnx_fill(cs_reader *r, cs_scope *s, cs_source *src);
/* A value with its name bound; the record of the main graph grows with it. CUTSET_BAD: the name is
 * taken. `at` is what makes it: a NodeProto, a TensorProto, a ValueInfoProto. */
cutset_status cs_onnx_define(cs_reader *r, cs_scope *s, cs_str name, cs_type type, cs_origin origin,
                             cs_span at, uint32_t *value);

/* ---- read_node.c ---- */
cutset_status cs_onnx_add_node(cs_reader *r, cs_scope *s, cs_span proto);
/* Op, domain and present outputs of a NodeProto (outputs pushed on r->outs), number of inputs. */
typedef struct cs_node_head {
    cs_span op, domain;
    size_t n_args;
} cs_node_head;
cutset_status cs_onnx_node_head(cs_reader *r, cs_span proto, cs_node_head *head);
/* "node 'conv1' (Conv)", "the Conv that makes 'y'"; for messages. */
const char *cs_onnx_node_label(const cs_reader *r, cs_span proto, char buffer[512]);
/* After cs_onnx_bad: gives the error the node's name, as plans spell it. CUTSET_BAD. */
cutset_status cs_onnx_blame(const cs_reader *r, cs_span proto);

/* ---- functions.c ---- */
cutset_status cs_onnx_add_function(cs_reader *r, cs_span proto);
/* CS_NONE: none. */
uint32_t cs_onnx_find_function(const cs_reader *r, cs_str domain, cs_str name, cs_str overload);
/* Makes the body of the node added last, a call of function `id` with the attributes r->items
 * [item .. item + n_items). *random: it draws random numbers. */
cutset_status cs_onnx_call(cs_reader *r, cs_scope *s, uint32_t id, size_t item, size_t n_items,
                           cs_span node, bool *random);

#endif
