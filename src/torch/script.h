/* TorchScript text as it stands: lines, blocks, values, attributes. Private to torch/.
 *
 *     parse.c, type.c   text -> cs_script
 *     schema.c          what operators write, share, draw and cause
 *     memory.c          which values may share memory (cells), over all blocks at once
 *     effect.c          what each line reads and writes of it
 *     lower.c           one flat cs_graph a block that is planned by itself
 *
 * A line is a printed node. Lines are numbered as printed: a line comes before what is in its
 * blocks, so the lines of a block are walked by `line = lines[line].end`.
 */
#ifndef CS_TORCH_SCRIPT_H
#define CS_TORCH_SCRIPT_H

#include "graph/graph.h"
#include "torch/torch.h"

#define CS_SCRIPT_DEPTH 100 /* nested blocks, types, brackets */

/* ---- types ---- */

typedef enum cs_ts_base {
    CS_TS_OTHER, /* Any, objects, type variables, unions: may hold anything */
    CS_TS_TENSOR,
    CS_TS_INT,
    CS_TS_FLOAT,
    CS_TS_BOOL,
    CS_TS_STR,
    CS_TS_COMPLEX,
    CS_TS_NUMBER,
    CS_TS_NONE,
    CS_TS_DEVICE,
    CS_TS_PLAIN,  /* other immutable things: Generator, Stream, Storage, Function ... */
    CS_TS_OBJECT, /* __torch__... */
    CS_TS_LIST,
    CS_TS_DICT,
    CS_TS_TUPLE
} cs_ts_base;

typedef struct cs_ts_type {
    uint8_t base;
    bool optional;
    cs_type type; /* of a tensor: what is known of it */
    cs_str text;  /* of an object: its spelling */
} cs_ts_type;

/* Does a value of this type have memory of its own that something could write? */
static inline bool cs_ts_has_memory(const cs_ts_type *t)
{
    return t->base == CS_TS_OTHER || t->base == CS_TS_TENSOR || t->base >= CS_TS_OBJECT;
}

/* ---- the text ---- */

typedef enum cs_ts_kind { /* kinds of line that the analysis knows by name */
                          CS_TS_OPERATOR,
                          CS_TS_CONSTANT,
                          CS_TS_GETATTR,
                          CS_TS_SETATTR,
                          CS_TS_IF,
                          CS_TS_LOOP,
                          CS_TS_PACK,   /* ListConstruct, TupleConstruct, DictConstruct */
                          CS_TS_UNPACK, /* ListUnpack, TupleUnpack, TupleIndex */
                          CS_TS_SLICE,  /* TupleSlice: another container of the same elements */
                          CS_TS_CAST, /* unchecked_cast, unchecked_unwrap_optional: the same thing under another type */
                          CS_TS_FRESH /* NumToTensor, Uninitialized ...: pure, new */
} cs_ts_kind;

typedef struct cs_ts_value {
    cs_str name;
    cs_ts_type type;
    uint32_t line; /* that makes it; CS_NONE: an argument of its block */
    uint32_t block;
    uint32_t path; /* of an object reached from the module: its attribute path; else CS_NONE */
} cs_ts_value;

typedef struct cs_ts_line {
    uint8_t kind;
    cs_str op;               /* "aten::relu" */
    uint32_t block;          /* that it stands in */
    uint32_t end;            /* the first line after it and its blocks */
    uint32_t number;         /* among the lines that are nodes */
    uint32_t arg, n_arg;     /* script->refs */
    uint32_t out, n_out;     /* values out .. out + n_out */
    uint32_t inner, n_inner; /* blocks: script->inner[inner ..] */
    uint32_t blocks_end;     /* blocks from the first of these up to here are inside */
    cs_str attr;             /* GetAttr, SetAttr: the name */
    int8_t truth;            /* of a constant or attribute: 0 false or zero, 1 other, -1 unknown */
    size_t at;               /* offset in the text */
} cs_ts_line;

typedef struct cs_ts_block {
    uint32_t owner;      /* line, or CS_NONE: the graph */
    uint32_t first, end; /* lines, those of inner blocks included */
    uint32_t in, n_in;   /* values in .. in + n_in */
    uint32_t ret, n_ret; /* script->refs: what it gives back */
} cs_ts_block;

typedef struct cs_script {
    cs_pool *pool; /* names and tensor types while it lives */
    CS_VEC(cs_ts_value) values;
    CS_VEC(cs_ts_line) lines;
    CS_VEC(cs_ts_block) blocks; /* 0: the graph; an owner's block before those inside it */
    CS_VEC(uint32_t) refs, inner;
    uint32_t n_numbers;
    cs_map paths;     /* (parent << 32 | name) -> path */
    uint32_t n_paths; /* path 0 is the module itself, if has_self */
    bool has_self;    /* the first argument is the module */
    uint64_t hash;    /* of the text without comments */
} cs_script;

static inline uint32_t cs_ts_arg(const cs_script *s, const cs_ts_line *l, uint32_t i)
{
    return i < l->n_arg ? s->refs.at[l->arg + i] : CS_NONE;
}
/* Packs, opens or renames values, or makes a new one, purely: any target may run it. */
static inline bool cs_ts_is_construct(const cs_ts_line *l)
{
    return l->kind >= CS_TS_PACK && l->kind <= CS_TS_FRESH;
}
/* Is `inner` the block `outer` or inside it? Cost: the depth. */
bool cs_ts_within(const cs_script *s, uint32_t inner, uint32_t outer);

/* CUTSET_BAD: offset, line, column and cure. Free with cs_script_fini, also after a failure. */
cutset_status cs_script_parse(cs_script *out, cs_span text, cutset_error *err);
void cs_script_fini(cs_script *s);

/* ---- scanning, shared by parse.c, type.c and schema.c ---- */

typedef struct cs_scan {
    const char *at, *end, *start;
    const char *fault; /* where, once a call has failed with CUTSET_BAD */
    char why[400];     /* what is wrong there, and the cure */
} cs_scan;

cutset_status cs_scan_fault(cs_scan *c, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "X is not expected here: write WANTED", or that the text ends. */
cutset_status cs_scan_found(cs_scan *c, const char *wanted);
void cs_scan_space(cs_scan *c);                  /* blanks and line breaks */
bool cs_scan_take(cs_scan *c, const char *word); /* after blanks; all of it or nothing */
bool cs_scan_peek(cs_scan *c, char ch);          /* after blanks */
/* Letters, digits and . _ : -- may be empty. */
cs_span cs_scan_word(cs_scan *c);
/* Moves over text with balanced ( [ { and strings up to one of `stops`, not taken. */
cutset_status cs_scan_over(cs_scan *c, const char *stops);
cutset_status cs_ts_scan_type(cs_scan *c, cs_pool *pool, cs_ts_type *out);

#endif
