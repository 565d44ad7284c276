/* Private to type inference: the node at hand, how operator functions read it and answer.
 *
 * A family file (infer_<family>.c) holds functions `void f(cs_op *op)` and one table of entries. A
 * function looks at the types and small constants of its node's inputs and puts the types of the
 * outputs; what it does not put stays as declared. It never fails: attributes and constants that
 * make no sense, ranks that do not fit and overflow all end in "unknown". Lack of memory sticks to
 * the run.
 *
 * Sizes of dims are only computed by cs_dim_* below, so that symbolic arithmetic has one place.
 */
#ifndef CS_ONNX_INFER_OPS_H
#define CS_ONNX_INFER_OPS_H

#include "graph/graph.h"

typedef struct cs_run cs_run;     /* one call of cs_infer; infer.c */
typedef struct cs_scope cs_scope; /* one graph of it; infer.c */

/* ---- the table ---- */
typedef enum cs_domain {
    CS_DOMAIN_NONE, /* a domain no entry is in */
    CS_DOMAIN_ONNX,
    CS_DOMAIN_ML,
    CS_DOMAIN_PREVIEW,  /* ai.onnx.preview */
    CS_DOMAIN_TRAINING, /* ai.onnx.preview.training, ai.onnx.training */
    CS_DOMAIN_MS,       /* com.microsoft */
    CS_DOMAIN_NHWC,     /* com.ms.internal.nhwc: ai.onnx operators with channels last */
    CS_DOMAIN_NCHWC,    /* com.microsoft.nchwc: blocked channels */
    CS_DOMAIN_COUNT
} cs_domain;

/* The node at hand. */
typedef struct cs_op {
    cs_run *run;
    cs_scope *scope;
    cs_pool *pool;
    cs_graph *g;
    const cs_node *node;
    uint32_t id;
    int opset; /* version of its domain; INT32_MAX when unknown: the newest rules */
    const struct cs_entry *entry;
    bool bodies_done; /* cs_op_body was called */
} cs_op;
typedef void (*cs_op_fn)(cs_op *op);

typedef struct cs_entry {
    cs_domain domain;
    const char *name;
    cs_op_fn types;
    int param;        /* meaning is the function's own */
    const char *rule; /* cs_infer_rule, cs_data_arith: see there; else unused */
    cs_op_fn data;    /* tells the elements of small integer outputs (infer_data.c) */
} cs_entry;

typedef struct cs_family {
    const cs_entry *at;
    size_t len;
} cs_family;
extern const cs_family cs_infer_math, cs_infer_shape, cs_infer_index, cs_infer_nn, cs_infer_matrix,
    cs_infer_norm, cs_infer_attention, cs_infer_quant, cs_infer_image, cs_infer_text, cs_infer_seq,
    cs_infer_flow, cs_infer_ml, cs_infer_ms;
#define CS_FAMILY(table)                                                                           \
    {                                                                                              \
        (table), sizeof(table) / sizeof *(table)                                                   \
    }

/* ---- shapes and dims ---- */
/* Beyond this rank (no operator comes near it) a shape counts as unknown; types pass unharmed. */
#define CS_SHAPE_MAX 64
typedef struct cs_shape {
    int rank; /* CS_RANK_UNKNOWN: dim[] says nothing */
    cs_dim dim[CS_SHAPE_MAX];
} cs_shape;

/* rank unknown; or known with all dims unknown (a rank out of range: unknown). */
void cs_shape_unknown(cs_shape *s);
void cs_shape_rank(cs_shape *s, int64_t rank);
/* Appends a dim; past CS_SHAPE_MAX the shape becomes unknown. */
void cs_shape_push(cs_shape *s, cs_dim d);
/* -rank <= axis < rank -> 0..rank-1; else -1. */
int cs_axis(int64_t axis, int rank);

/* An unknown operand gives unknown, except where the other alone decides (0 x d, d + 0, d x 1);
 * so do overflow and results below zero. Expressions are passed on where they come out unchanged;
 * otherwise unknown. */
cs_dim cs_dim_add(cs_dim a, cs_dim b);
cs_dim cs_dim_sub(cs_dim a, cs_dim b);
cs_dim cs_dim_mul(cs_dim a, cs_dim b);
cs_dim cs_dim_div(cs_dim a, cs_dim b); /* exact: a remainder or b = 0 gives unknown */
cs_dim cs_dim_div_floor(cs_dim a, int64_t b);
cs_dim cs_dim_div_ceil(cs_dim a, int64_t b);
cs_dim cs_dim_number(int64_t x); /* negative: unknown */
cs_dim cs_dim_product(const cs_dim *d, int n);
/* Two dims that must be equal: the more telling of both; two different numbers: unknown. */
cs_dim cs_dim_same(cs_dim a, cs_dim b);
/* Multidirectional (numpy) broadcast of two dims; of `s` into `into`, which may gain rank. */
cs_dim cs_dim_broadcast(cs_dim a, cs_dim b);
void cs_shape_broadcast(cs_shape *into, const cs_shape *s);
/* Dim by dim cs_dim_same; an unknown rank yields; different ranks leave `into` unknown. */
void cs_shape_same(cs_shape *into, const cs_shape *s);

/* ---- types ---- */
/* What holds for both of two values that have the same element type (branches, iterations): parts
 * that differ become unknown; the element type is known if one knows it. CS_NONE: no memory. */
cs_type cs_type_join(cs_pool *pool, cs_type a, cs_type b);
/* Inferred and declared together. Fit: CS_FIT. A rank or a size that differs: CS_FIT_SHAPE, *out
 * has the inferred rank and unknown dims. Element types or kinds differ: CS_FIT_ELEM. */
typedef enum cs_fit { CS_FIT, CS_FIT_SHAPE, CS_FIT_ELEM } cs_fit;
cs_fit cs_type_combine(cs_pool *pool, cs_type inferred, cs_type declared, cs_type *out);

/* ---- reading the node: inputs ---- */
bool cs_op_has(const cs_op *op, uint32_t arg);     /* present */
cs_type cs_op_type(const cs_op *op, uint32_t arg); /* 0: absent or unknown */
cs_elem cs_op_elem(const cs_op *op, uint32_t arg); /* of a tensor, else NONE */
int cs_op_rank(const cs_op *op, uint32_t arg);
int cs_op_shape(const cs_op *op, uint32_t arg, cs_shape *s); /* returns the rank too */
cs_dim cs_op_dim(const cs_op *op, uint32_t arg, int axis);   /* unknown where there is none */
const cs_storage *cs_op_const(const cs_op *op, uint32_t arg, cs_elem elem); /* NULL: none */
bool cs_op_scalar(const cs_op *op, uint32_t arg, double *out); /* f32, f64 or integer; finite */

/* ---- reading the node: attributes ---- */
/* An attribute that is there but not of the kind asked for (a reference inside a function): false;
 * the caller then knows nothing of it, and must not take the default. */
bool cs_op_int(const cs_op *op, const char *name, int64_t otherwise, int64_t *out);
bool cs_op_flag(const cs_op *op, const char *name, bool otherwise, bool *out);
/* The number of ints, or: */
enum { CS_ABSENT = -1, CS_ODD = -2 };
int cs_op_ints(const cs_op *op, const char *name, const int64_t **out);
int cs_op_floats(const cs_op *op, const char *name, const float **out);
cs_span cs_op_text(const cs_op *op, const char *name, const char *otherwise);
bool cs_op_any(const cs_op *op, const char *name); /* present at all */
/* An element type by its number in an int attribute; absent: `otherwise`; not a type: NONE. */
cs_elem cs_op_dtype(const cs_op *op, const char *name, cs_elem otherwise);

/* ---- reading the node: small lists of integers ---- */
typedef enum cs_item_kind { CS_ITEM_UNKNOWN, CS_ITEM_NUMBER, CS_ITEM_DIM } cs_item_kind;
typedef struct cs_item {
    cs_item_kind kind;
    int64_t x; /* the number; or the cs_dim, an expression */
} cs_item;
#define CS_LIST_MAX 128
typedef struct cs_list {
    enum { CS_LIST_ABSENT, CS_LIST_UNKNOWN, CS_LIST_LENGTH, CS_LIST_KNOWN } state;
    int len;     /* LENGTH: may be any size; KNOWN: at most CS_LIST_MAX; else 0 */
    bool scalar; /* KNOWN: from a rank 0 tensor, len is 1 */
    cs_item at[CS_LIST_MAX];
} cs_list;
/* From an input: a constant, elements found by infer_data.c, or the length alone. */
void cs_op_list(const cs_op *op, uint32_t arg, cs_list *out);
bool cs_op_value_list(const cs_op *op, uint32_t value, cs_list *out); /* true: KNOWN */
bool cs_op_found(const cs_op *op, uint32_t value, cs_list *out);      /* only what was put */
/* From an attribute. */
void cs_op_list_attr(const cs_op *op, const char *name, cs_list *out);
cs_dim cs_item_dim(cs_item item);
cs_item cs_dim_item(cs_dim d);
bool cs_list_numbers(const cs_list *list); /* KNOWN, and every item a number */
/* The single number of a list or scalar, else false. */
bool cs_list_number(const cs_list *list, int64_t *out);
/* Axes, each once, as flags over 0..rank-1. False: not all known, out of range or repeated. */
bool cs_list_axes(const cs_list *list, int rank, bool *flags);

/* ---- answering ---- */
bool cs_op_wants(const cs_op *op, uint32_t out); /* the output is there */
void cs_op_put_type(cs_op *op, uint32_t out, cs_type type);
void cs_op_put(cs_op *op, uint32_t out, cs_elem elem, const cs_shape *shape);
void cs_op_put_rank(cs_op *op, uint32_t out, cs_elem elem, int64_t rank); /* dims unknown */
void cs_op_put_list(cs_op *op, uint32_t out, const cs_list *list);        /* its elements */
void cs_op_no_memory(cs_op *op);
bool cs_op_failed(const cs_op *op); /* the run ends: no memory, or a body's types contradict */

/* ---- bodies (infer.c) ---- */
/* Infers body `index` of the node with these types of its inputs (n may be less than it has; 0 =
 * leave as declared), starting from what the model declares. With `elements` its inputs are the
 * args of the node, elements of small integer tensors included. */
void cs_op_body(cs_op *op, uint32_t index, const cs_type *in, uint32_t n, bool elements);
/* The body for an attribute name (NULL: a function's), or CS_NONE. */
uint32_t cs_op_find_body(const cs_op *op, const char *attr);
uint32_t cs_op_body_inputs(const cs_op *op, uint32_t index);
uint32_t cs_op_body_outputs(const cs_op *op, uint32_t index);
cs_type cs_op_body_out(const cs_op *op, uint32_t index, uint32_t out);
cs_type cs_op_body_declared(const cs_op *op, uint32_t index, uint32_t in);
/* How often the body was inferred in this run. */
uint32_t cs_op_body_passes(const cs_op *op, uint32_t index);
/* Elements of a body's output. */
void cs_op_body_list(const cs_op *op, uint32_t index, uint32_t out, cs_list *list);
/* Zeroed room for n types; NULL: no memory (sticks to the run). */
cs_type *cs_op_room(cs_op *op, size_t n);

/* ---- functions that several families use ---- */
void cs_infer_same(cs_op *op);      /* output 0 has the type of input `param` */
void cs_infer_call(cs_op *op);      /* a model-local function; infer_flow.c */
void cs_infer_rule(cs_op *op);      /* infer_rule.c */
void cs_infer_broadcast(cs_op *op); /* all inputs; `param`: the element type, 0 = theirs */
void cs_infer_concat(cs_op *op);
/* bits of `param` that several functions read */
enum {
    CS_CHANNELS_LAST = 1 << 8,
    CS_TRIPLES = 1 << 9,
    CS_AXES_ATTR = 1 << 10,
    CS_ELEM_SHIFT = 16 /* shift: an element type */
};
#define CS_ELEM_ARG(arg) ((arg) << 4)

/* ---- Slice ---- */
typedef struct cs_slice {
    int64_t start, step, len;
} cs_slice;
/* Of a dim of size d; false: something is not known, or a step of 0. */
bool cs_slice_range(cs_dim d, cs_item from, cs_item to, cs_item by, cs_slice *out);
void cs_slice_lists(const cs_op *op, cs_list *starts, cs_list *ends, cs_list *axes, cs_list *steps);

/* ---- elements of small integer outputs (infer_data.c) ---- */
void cs_data_same(cs_op *op);
void cs_data_shape(cs_op *op);
void cs_data_size(cs_op *op);
void cs_data_gather(cs_op *op);
void cs_data_concat(cs_op *op);
void cs_data_slice(cs_op *op);
void cs_data_split(cs_op *op);
void cs_data_arith(cs_op *op); /* the entry's rule: + - * / % = < > & |, m Min, M Max, L <=, G >= */
void cs_data_unary(cs_op *op); /* the entry's rule: ! not, n Neg, a Abs */
void cs_data_where(cs_op *op);
void cs_data_fill(cs_op *op); /* ConstantOfShape */
void cs_data_range(cs_op *op);
void cs_data_reduce(cs_op *op);

#endif
