/* The reader of the text form: its state, and what its files call of each other. Private to graph/.
 *
 * Reading is one pass over the text (text_read.c, text_attr.c), then one over the graph
 * (text_resolve.c). A name may stand before what it names, in this graph or in an enclosing one, so
 * the first pass stores interned names where ids belong (args, writes, outputs, order, members);
 * the second one puts the ids, once all definitions are known.
 */
#ifndef CS_GRAPH_TEXT_READER_H
#define CS_GRAPH_TEXT_READER_H

#include "graph/graph.h"
#include "graph/text.h"

/* A node in an order edge or a group. */
typedef struct cs_text_node {
    size_t at;
    bool indexed; /* "$7" */
    uint32_t id;  /* the index, or the name of an output */
} cs_text_node;

/* One graph: the model's (index 0) or a body's. */
typedef struct cs_text_scope {
    cs_graph *g;
    uint32_t outer;         /* scope, or CS_NONE */
    size_t at;              /* of a body: its name in the text */
    bool random;            /* holds a node that draws random numbers, bodies included */
    bool named, versioned;  /* has had its `graph`, its `opset` line */
    size_t n_made;          /* values; captures follow */
    CS_VEC(uint32_t) child; /* scope of each of g->bodies */
    /* Where in the text, for messages: by position in g->args, values, writes, outputs. */
    CS_VEC(size_t) arg_at, value_at, write_at, output_at;
    CS_VEC(cs_text_node) order;   /* two for each of g->order */
    CS_VEC(cs_text_node) members; /* as g->members */
} cs_text_scope;

/* "weight %value ... = %name" */
typedef struct cs_text_tie {
    size_t at;
    uint32_t scope, value;
    cs_str name;
} cs_text_tie;

typedef struct cs_text_reader {
    cs_cursor c;
    const char *text;
    size_t len;
    cs_pool *pool;
    cs_fault fault;
    const cutset_progress *progress;
    cutset_error *err;
    size_t next_report;           /* offset at which to report progress again */
    CS_VEC(cs_text_scope) scopes; /* an enclosing graph before its bodies */
    CS_VEC(cs_text_tie) ties;
    /* attributes */
    cs_chars scratch;
    CS_VEC(int64_t) ints;
    CS_VEC(float) floats;
    CS_VEC(cs_span) strings;
    CS_VEC(cs_type) types;
    CS_VEC(uint32_t) attr_seen; /* by name: the last node that has an attribute of this name */
    uint32_t attr_stamp;        /* of the node whose attributes are read */
    int depth;                  /* of bodies */
} cs_text_reader;

static inline cs_text_scope *cs_text_at(cs_text_reader *r, uint32_t scope)
{
    return &r->scopes.at[scope];
}

static inline size_t cs_text_here(const cs_text_reader *r) { return (size_t)(r->c.at - r->text); }

/* What reads returns CUTSET_OK; CUTSET_BAD with the fault set; CUTSET_SYSTEM: no memory; or
 * CUTSET_INTERRUPTED. `wanted` completes the message "... is not expected here: write ...". */

/* ---- text_read.c ---- */
/* Is the rest of the line empty, or a comment after a blank? Moves over blanks. Not for the start of
 * a line. */
bool cs_text_at_line_end(cs_cursor *c);
/* From the start or the end of a line to the next statement; false: the text ends. */
bool cs_text_next(cs_cursor *c);
cutset_status cs_text_expect(cs_text_reader *r, char ch, const char *wanted);
cutset_status cs_text_bare_or_string(cs_text_reader *r, const char *wanted, cs_str *out);
cutset_status cs_text_name(cs_text_reader *r, const char *wanted, cs_str *out); /* after blanks */
cutset_status cs_text_val(cs_text_reader *r, cs_str *out, size_t *at); /* "%" name; its place */
cutset_status cs_text_define(cs_text_reader *r, uint32_t scope, cs_str name, size_t at,
                             cs_type type, cs_origin origin, uint32_t *out);
cutset_status cs_text_input(cs_text_reader *r, uint32_t scope); /* val ":" type */
bool cs_text_is_onnx(const cs_text_reader *r, cs_str domain);   /* "" or "ai.onnx" */
/* The statements of one graph, for a body up to its "end". */
cutset_status cs_text_statements(cs_text_reader *r, uint32_t scope);

/* ---- text_node.c ---- */
cutset_status cs_text_node_line(cs_text_reader *r, uint32_t scope);
/* A new graph inside the last node of `outer` (CS_NONE: the model's); *out is its scope. */
cutset_status cs_text_open(cs_text_reader *r, uint32_t outer, cs_str attr, uint32_t *out);

/* ---- text_attr.c, text_resolve.c ---- */
/* "{" [attribute {"," attribute}] "}", the cursor after the brace; appends to the last node of g. */
cutset_status cs_text_attrs(cs_text_reader *r, cs_graph *g);
/* Is a body of the last node of `scope` named as one of its attributes? A fault at the body. */
cutset_status cs_text_check_bodies(cs_text_reader *r, uint32_t scope);
/* Names become ids; bodies get their captures, ties their storage. */
cutset_status cs_text_resolve(cs_text_reader *r);

#endif
