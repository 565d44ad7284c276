/* What a target file says, compiled: the private half of struct cutset_target.
 *
 * All of it lies in one arena and never changes after loading, so any number of threads may read a
 * target at once. Texts are terminated. "Position" is the place of an input or output in a node;
 * position CS_POS_REST stands for itself and everything after it.
 */
#ifndef CS_TARGET_RULES_H
#define CS_TARGET_RULES_H

#include "target/target.h"

#define CS_POS_REST 11
#define CS_POS_COUNT 12
#define CS_RANK_ANY INT32_MAX

/* A value in a condition. Numbers compare as numbers, everything else as bytes. */
typedef struct cs_literal {
    const char *text;
    size_t len;
    bool is_number;
    double number;
} cs_literal;

typedef struct cs_literals {
    const cs_literal *at;
    size_t n; /* 0: no such condition */
} cs_literals;

/* A condition applies only where this holds. */
typedef struct cs_when {
    const char *attr; /* the attribute is one of `is`; NULL: not looked at */
    cs_literals is;
    cs_literals otherwise; /* what an absent attribute means: 0 or 1 literals */
    int32_t input;         /* this input is given; -1: not looked at */
} cs_when;

typedef struct cs_versions {
    int32_t since, until; /* of the operator's domain, both included */
} cs_versions;

typedef struct cs_attr_rule {
    const char *name;
    cs_versions versions;
    const cs_when *when; /* NULL: always */
    cs_literals is;      /* the value is one of these */
    cs_literals each;    /* every element of the list is one of these */
    cs_literals
        otherwise;   /* the default, 0 or 1 literals; without it an absent attribute is fine */
    double min, max; /* of the value, or of every element; -inf, inf: none */
    bool absent, given;
    bool halves; /* the second half of the list repeats the first */
    bool iota;   /* the list is 0, 1, ... rank of input 0 - 1 */
} cs_attr_rule;

typedef struct cs_dim_rule {
    int32_t at;       /* dim index; negative from the end; also the default of `attr` */
    const char *attr; /* the attribute that holds the index, or NULL */
    bool fixed;       /* a number, not a symbol */
    int64_t min, max; /* a number within; 0, INT64_MAX: none */
    cs_literals is;
} cs_dim_rule;

typedef struct cs_arg_rule {
    uint32_t positions; /* bits 0 .. CS_POS_REST */
    const char *name;   /* the formal name, for sentences; may be NULL */
    cs_versions versions;
    const cs_when *when;
    bool constant, absent, given;
    bool unused; /* outputs: nobody reads it */
    bool fixed;  /* every dim is a number */
    bool unseen; /* a constant too large to be at hand counts as fine */
    bool valued; /* is, min or max is there */
    int32_t min_rank, max_rank;
    uint32_t ranks; /* bit r: rank r is fine; 0: no such condition */
    uint32_t types; /* bit e: element type e is fine, instead of the operator's own; 0: none */
    const cs_dim_rule *dims;
    size_t n_dims;
    cs_literals is; /* every element of the constant is one of these */
    double min, max;
} cs_arg_rule;

typedef struct cs_op_rule {
    const char *const *ops; /* as in the file */
    size_t n_ops;
    cs_versions versions;
    uint32_t types; /* 0: any value at all */
    uint32_t in_types[CS_POS_COUNT], out_types[CS_POS_COUNT];
    const cs_attr_rule *attrs;
    size_t n_attrs;
    const cs_arg_rule *inputs, *outputs;
    size_t n_inputs, n_outputs;
    bool same_rank, distinct_outputs, same_carried, fixed_scans; /* of bodies */
} cs_op_rule;

/* One operator name. Looked up as domain:op, then *:op, then domain:*. */
typedef struct cs_op_entry {
    cs_span domain, op;
    uint32_t rule; /* index into rules, or CS_NONE */
    bool except, dds;
} cs_op_entry;

typedef struct cs_never {
    uint32_t types;
    const char *why; /* tail of a sentence */
} cs_never;

/* Read and kept for a later version; nothing here runs a builder. */
typedef struct cs_build {
    const char *const *argv, *const *shapes, *const *version, *const *check;
    size_t n_argv, n_shapes, n_version, n_check;
    const char *artefact;
    int64_t deadline, log_limit; /* seconds, bytes; 0: not given */
} cs_build;

typedef struct cs_target_rules {
    cs_arena arena;
    const char *summary;
    bool all; /* operators without a rule are taken */
    int32_t opset_min, opset_max;
    int32_t max_rank; /* of every tensor of a node */
    bool ranked;      /* its rank must be known */
    const cs_never *never;
    size_t n_never;
    uint32_t never_types; /* all of them */
    bool boundary_any;    /* no `types` given: every type crosses */
    uint32_t boundary_in, boundary_out;
    int32_t boundary_max_rank;
    bool boundary_ranked;
    const cs_op_rule *rules;
    size_t n_rules;
    const cs_op_entry *entries; /* in order of the file */
    size_t n_entries;
    const uint32_t *slots; /* hash table over entries, power of two, CS_NONE = free */
    size_t n_slots;
    const char *const *dds;
    size_t n_dds;
    const char *const *except;
    size_t n_except;
    const cs_build *build; /* NULL: none */
} cs_target_rules;

/* A refusal under construction. */
typedef struct cs_reason {
    cs_rule rule;
    size_t len;
    char text[900];
} cs_reason;
/* Appends; control characters are written as \xNN, what does not fit is cut. */
void cs_reason_add(cs_reason *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cs_reason_literals(cs_reason *r, cs_literals list);    /* "a, b or c" */
void cs_reason_types(cs_reason *r, uint32_t types);         /* "f32, f16" */
void cs_reason_range(cs_reason *r, double min, double max); /* "at most 3839", "from 1 to 2" */

/* The entry of an operator, or NULL. Slot of a name: cs_op_hash & (n_slots - 1), then upwards. */
const cs_op_entry *cs_rules_find(const cs_target_rules *rules, cs_span domain, cs_span op);
uint64_t cs_op_hash(cs_span domain, cs_span op);

bool cs_versions_hold(cs_versions v, const cs_node *n);
bool cs_when_holds(const cs_when *when, const cs_graph *g, const cs_node *n);
/* cond_attr.c, cond_arg.c, cond_body.c: the first condition on attributes, inputs and outputs, or
 * bodies that fails. True: one does, and `r` says which. */
bool cs_attrs_refuse(const cs_op_rule *rule, const cs_graph *g, const cs_node *n, cs_reason *r);
bool cs_args_refuse(const cs_op_rule *rule, const cs_graph *g, const cs_node *n, cs_reason *r);
bool cs_bodies_refuse(const cs_op_rule *rule, const cs_graph *g, const cs_node *n, cs_reason *r);

/* load.c: a target from the bytes of its file. `path` names it in messages. */
cutset_status cs_target_load(cutset_target **out, const char *path, cs_span text,
                             cutset_error *err);

/* marked.c: a target that takes the nodes marked with its name; weight bytes alone are its memory.
 * `summary` is a literal. */
cutset_status cs_target_new_marked(cutset_target **out, const char *name, const char *summary,
                                   cutset_error *err);

#endif
