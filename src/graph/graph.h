/* The graph: nodes, values, weights, order edges, effects, groups, nested bodies.
 *
 * 32-bit ids; nodes are numbered as in the file, Constant nodes left out (a Constant is a weight).
 * Topology is in flat arrays: args and outs by node, uses by value (compressed rows, both ways).
 * Build with cs_graph_add_*, then cs_graph_seal once; afterwards only types change.
 *
 * Invariants after sealing: every value has one origin; every arg is a value of this graph or
 * CS_NONE; bodies see outer values only through CAPTURE values, and what a body captures stands
 * among the args of the node that owns it, after its own; the graph with its order edges has no
 * cycle and `topo` is its topological order in which ties go by node id.
 */
#ifndef CS_GRAPH_GRAPH_H
#define CS_GRAPH_GRAPH_H

#include "base/file.h"
#include "graph/type.h"

#define CS_CONST_MAX 1024 /* constants up to this many bytes are kept in memory */

typedef enum cs_origin {
    CS_ORIGIN_INPUT,  /* may have a storage: a default that callers may override */
    CS_ORIGIN_WEIGHT, /* known before run time: initializer or Constant node */
    CS_ORIGIN_NODE,
    CS_ORIGIN_CAPTURE /* in a body: a value of the enclosing graph */
} cs_origin;

typedef enum cs_value_kind {
    CS_VALUE_TENSOR = CUTSET_TENSOR,
    CS_VALUE_SCALAR = CUTSET_SCALAR, /* no tensor; passes from part to part as it is */
    CS_VALUE_LIST = CUTSET_LIST      /* passes from no part to another */
} cs_value_kind;

typedef struct cs_value {
    cs_str name;
    cs_type type;
    uint32_t from;    /* NODE: the node; CAPTURE: the value in the enclosing graph; else CS_NONE */
    uint32_t storage; /* WEIGHT, INPUT with a default: index into storages; else CS_NONE */
    uint8_t origin;   /* cs_origin */
    uint8_t kind;     /* cs_value_kind */
} cs_value;

/* The bytes behind one or more weights (tied weights share one). */
typedef struct cs_storage {
    int64_t bytes; /* size in the runtime's memory: dims x element size (sparse: as dense) */
    cs_elem elem;
    const void *data; /* little-endian, packed as raw_data, when bytes <= CS_CONST_MAX and known */
} cs_storage;

typedef enum cs_attr_kind {
    CS_ATTR_INT = 1,
    CS_ATTR_FLOAT,
    CS_ATTR_STRING,
    CS_ATTR_INTS,
    CS_ATTR_FLOATS,
    CS_ATTR_STRINGS,
    CS_ATTR_TENSOR, /* type, and data when small */
    CS_ATTR_TYPE,
    CS_ATTR_OTHER,   /* sparse tensors, a reference inside a function: kept, not decoded */
    CS_ATTR_TENSORS, /* their types alone */
    CS_ATTR_TYPES
} cs_attr_kind; /* graphs are bodies, not attrs */

typedef struct cs_attr {
    cs_str name;
    cs_attr_kind kind;
    size_t len; /* elements of a list, bytes of a string or of tensor data */
    union {
        int64_t i;
        float f;
        const char *s;
        const int64_t *ints;
        const float *floats;
        const cs_span *strings;
        const cs_type *types; /* of a list of tensors or types; never empty */
        const void *data;     /* tensor: NULL when larger than CS_CONST_MAX or not at hand */
    };
    cs_type type; /* tensor, type */
} cs_attr;

typedef struct cs_body {
    cs_str attr; /* attribute name, e.g. then_branch; 0 for the body of a model-local function */
    struct cs_graph *graph;
} cs_body;

enum { /* those that cutset.h explains have its numbers */
    CS_NODE_EFFECT = CUTSET_NODE_EFFECT, /* !effect */
    CS_NODE_FUNCTION = 2,                /* a call of a model-local function */
    CS_NODE_RANDOM = CUTSET_NODE_RANDOM, /* set by the reader */
    CS_NODE_REPEAT = CUTSET_NODE_REPEAT,
    CS_NODE_FOLLOW = CUTSET_NODE_FOLLOW,
    CS_NODE_FREE = CUTSET_NODE_FREE,
    CS_NODE_EXEMPT = CUTSET_NODE_EXEMPT,
    CS_NODE_BOOKEND = CUTSET_NODE_BOOKEND,
    CS_NODE_ALONE = CUTSET_NODE_ALONE,
    CS_NODE_NO_PATTERN = CUTSET_NODE_NO_PATTERN
};

typedef struct cs_node {
    cs_str op, domain; /* domain "" is ai.onnx */
    cs_str name;       /* the ONNX node name; often "" */
    int32_t opset;     /* version of the domain it is used at; 0 unknown */
    uint32_t flags;
    uint32_t arg, n_arg; /* own args, positions kept: graph->args[arg .. arg + n_arg) */
    uint32_t n_capture;  /* captured values follow them, each once */
    uint32_t out, n_out; /* graph->outs[...], CS_NONE = absent */
    uint32_t attr, n_attr;
    uint32_t body, n_body;
    uint32_t allow, n_allow; /* names of the targets it may run on (text form `@`), graph->allow */
    uint32_t write, n_write; /* values it mutates, graph->writes */
    uint64_t offset;         /* in the file, for messages */
} cs_node;

typedef struct cs_opset {
    cs_str domain;
    int64_t version;
} cs_opset;

typedef struct cs_group {
    cs_str name;
    uint32_t member, n_member; /* graph->members: node ids */
    bool soft;                 /* a pattern: not formed where a node must stay on the host */
} cs_group;

typedef struct cs_edge {
    uint32_t from, to;
} cs_edge;

/* `value` is made from the memory of `of`, or may be: a view, an element of a list, the result of a
 * node that changed `of` in place. */
typedef struct cs_alias {
    uint32_t value, of;
} cs_alias;

typedef struct cs_graph {
    cs_pool *pool;          /* shared with bodies; the outermost graph owns it */
    struct cs_graph *outer; /* enclosing graph, or NULL */
    cs_str name;
    bool sealed;

    CS_VEC(cs_opset) opsets;
    CS_VEC(cs_node) nodes;
    CS_VEC(cs_value) values;
    CS_VEC(cs_storage) storages; /* bodies add to the outermost graph's */
    CS_VEC(uint32_t) args, outs;
    CS_VEC(cs_alias) aliases; /* in any order; may repeat */
    CS_VEC(cs_attr) attrs;
    CS_VEC(cs_body) bodies;
    CS_VEC(cs_str) allow;
    CS_VEC(uint32_t) writes;
    CS_VEC(uint32_t) exposed; /* values whose memory something outside this graph writes, not while it
                               * runs */
    CS_VEC(cs_group) groups;
    CS_VEC(uint32_t) members;
    CS_VEC(uint32_t) inputs; /* value ids, in order */
    CS_VEC(uint32_t)
    outputs;               /* value ids, in order; one may stand twice, or be an input or weight */
    CS_VEC(cs_edge) order; /* order edges; sealing adds those that effects and writes imply */
    bool imperative;       /* from a program: random draws keep their order, and what engines take and
                            * give are copies; set before sealing */
    const uint32_t *number; /* by node: what "$" names it by; NULL: its id. Not owned */

    /* made by sealing */
    size_t n_given;           /* order edges that were given; the others are implied */
    bool effect;              /* holds a node with an effect, bodies included */
    CS_VEC(uint32_t) mutates; /* CAPTURE values that are written in this body or further in */
    uint32_t *use;            /* by value id, n_values + 1: first of its readers in `user` */
    uint32_t *user;           /* node ids, ascending, each once per value (captures included) */
    uint32_t *topo;           /* node ids in topological order */
} cs_graph;

/* NULL: no memory, and then the pool is still the caller's. */
cs_graph *cs_graph_new(cs_pool *pool, cs_graph *outer);
void cs_graph_free(cs_graph *g); /* bodies too; the outermost frees the pool */
static inline cs_graph *cs_graph_top(cs_graph *g)
{
    while (g->outer)
        g = g->outer;
    return g;
}

/* ---- building; each returns the new id, or CS_NONE without memory ----
 * Args, outs, attrs, bodies, allow and writes go to the node added last in that graph. */
uint32_t cs_graph_add_value(cs_graph *g, cs_str name, cs_type type, cs_origin origin);
uint32_t cs_graph_add_storage(cs_graph *top, int64_t bytes, cs_elem elem, const void *data);
uint32_t cs_graph_add_node(cs_graph *g, cs_str op, cs_str domain, cs_str name);
bool cs_graph_add_arg(cs_graph *g, uint32_t value_or_none);
bool cs_graph_add_capture(cs_graph *g, uint32_t value); /* once per value; after all args */
/* Also sets the value's `from`. A value that has a producer already is the caller's error. */
bool cs_graph_add_out(cs_graph *g, uint32_t value_or_none);
bool cs_graph_add_attr(cs_graph *g, cs_attr attr);
bool cs_graph_add_body(cs_graph *g, cs_str attr, cs_graph *body); /* owns it, unless false */
bool cs_graph_add_allow(cs_graph *g, cs_str target);
bool cs_graph_add_write(cs_graph *g, uint32_t value);
/* `value` may share memory with `of`, from which it is made. */
bool cs_graph_add_alias(cs_graph *g, uint32_t value, uint32_t of);

/* Turns effects and writes into order edges (program order = node order), fills the rows of uses,
 * orders the nodes. CUTSET_BAD: a cycle, printed node by node; a value without origin. Bodies are
 * sealed before the graph that owns them. Cost O((n + m) log n), linear if already in order. */
cutset_status cs_graph_seal(cs_graph *g, cutset_error *err);
/* Recomputes every invariant naively; names the node and what was expected. For tests and fuzzing,
 * and after sealing input from outside. */
cutset_status cs_graph_verify(const cs_graph *g, cutset_error *err);

/* ---- reading ---- */
static inline const uint32_t *cs_args(const cs_graph *g, const cs_node *n)
{
    return g->args.at ? g->args.at + n->arg : NULL; /* NULL + 0 is undefined */
}
static inline const uint32_t *cs_outs(const cs_graph *g, const cs_node *n)
{
    return g->outs.at ? g->outs.at + n->out : NULL;
}
static inline uint32_t cs_n_reads(const cs_node *n) { return n->n_arg + n->n_capture; }
int64_t cs_graph_opset(const cs_graph *g, cs_str domain); /* 0: not imported */
const cs_attr *cs_node_attr(const cs_graph *g, const cs_node *n, const char *name); /* NULL: none */
int64_t cs_node_int(const cs_graph *g, const cs_node *n, const char *name, int64_t otherwise);
/* Arg at `pos`, or CS_NONE (absent or past the end). */
uint32_t cs_node_arg(const cs_graph *g, const cs_node *n, uint32_t pos);
/* The small constant behind a value (through captures), or NULL; its bytes are storage->bytes. */
const cs_storage *cs_value_const(const cs_graph *g, uint32_t value);
/* Is it known before run time, whatever its size (through captures)? */
bool cs_value_is_const(const cs_graph *g, uint32_t value);
/* Calls `take` for every storage that node `n` brings along: behind what it reads, and inside its
 * bodies; one may come several times. False as soon as `take` says so. */
bool cs_node_storages(const cs_graph *g, const cs_node *n,
                      bool (*take)(void *payload, uint32_t storage), void *payload);
/* Which values may share memory: root[v] is the smallest value of v's class. `root` holds n_values
 * entries. Before or after sealing. Cost: linear. */
void cs_graph_classes(const cs_graph *g, uint32_t *root);
/* Calls `take` for every value that node `n` writes, itself or in its bodies, which are sealed; one may
 * come several times. False as soon as `take` says so. */
bool cs_node_writes(const cs_graph *g, const cs_node *n, bool (*take)(void *payload, uint32_t value),
                    void *payload);
/* Integers of a small i64 or i32 constant, copied to out[0..max): the count, or -1. */
int cs_value_ints(const cs_graph *g, uint32_t value, int64_t *out, int max);
/* The name of a node as plans spell it: its first present output, or "$<index>". The span lives as
 * long as the graph, or in `buffer` (16 bytes). */
cs_span cs_node_label(const cs_graph *g, uint32_t node, char *buffer);
/* Puts that name among the names of `err`. */
void cs_error_node(cutset_error *err, const cs_graph *g, uint32_t node);
/* The node of that name (any output, or "$7"), or CS_NONE. Linear. */
uint32_t cs_graph_find_node(const cs_graph *g, cs_span name);
/* Does this operator of ONNX draw random numbers in every version and mode? (Readers set
 * CS_NODE_RANDOM.) */
bool cs_op_is_random(const cs_pool *pool, cs_str domain, cs_str op);

/* ---- from arrays (graph/arrays.c) ---- */
/* The graph of cutset_model_build, sealed: its constant expressions are CS_NODE_REPEAT, weights that
 * something writes are inputs. `allow` and reasons are not looked at. */
cutset_status cs_graph_from_arrays(cs_graph **out, const cutset_graph *in, cutset_error *err);

/* ---- the text form (graph/text_*.c); grammar in doc/FORMAT.md ---- */
/* Does this look like the text form (as against protobuf and others)? */
bool cs_text_probe(cs_span text);
/* `text` must outlive the graph. The result is sealed. CUTSET_BAD with the offset, the line and the
 * column in the message. Body nesting is bounded at 100. */
cutset_status cs_text_read(cs_graph **out, cs_span text, const cutset_progress *progress,
                           cutset_error *err);
/* Writes g with bodies and types; failures stick to `out`. */
void cs_text_write(const cs_graph *g, cs_out *out);

#endif
