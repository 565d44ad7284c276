/* What an operator of TorchScript writes, shares, draws and causes, by its schemas. Private to torch/.
 *
 * The table (schemas.inc, made by tools/torch_schemas.py from torch's own registry) covers aten and
 * prim; a caller may add the schemas of other operators as torch prints them. Text does not name
 * overloads: those that fit the number and types of a line's arguments count, all of them.
 */
#ifndef CS_TORCH_SCHEMA_H
#define CS_TORCH_SCHEMA_H

#include "torch/script.h"

typedef struct cs_sig_type {
    uint8_t base; /* cs_ts_base; LIST where it is one */
    bool optional;
    bool rest;       /* "...": any arguments from here on */
    bool any;        /* matches every type */
    uint8_t generic; /* 0: none; 1 + how deep in containers its type variable stands */
    bool wild;       /* (*): may be anything that anyone holds */
    bool into;       /* (a -> *): is put into what is written */
    bool write, write_elements;
    uint32_t sets, elements; /* letters of its alias sets, and of its elements' */
} cs_sig_type;

typedef struct cs_sig {
    bool effect, random;
    bool identity;                     /* where it does not draw, it does nothing */
    int16_t unless_false, unless_zero; /* arguments that decide over random and writes; -1: none */
    uint32_t type, n_arg, n_ret;       /* schemas->types[type ..]: arguments, then results */
    bool generic;                      /* type variables carry elements over */
} cs_sig;

typedef struct cs_op {
    bool known;          /* else nothing is said about it */
    uint32_t sig, n_sig; /* none: pure, its results are new */
} cs_op;

typedef struct cs_schemas {
    cs_map by_name; /* cs_str of the script's pool -> ops */
    CS_VEC(cs_op) ops;
    CS_VEC(cs_sig) sigs;
    CS_VEC(cs_sig_type) types;
} cs_schemas;

/* Takes the caller's schemas: n strings, each ended by a NUL. */
cutset_status cs_schemas_init(cs_schemas *t, cs_script *s, size_t n, const char *texts,
                              cutset_error *err);
void cs_schemas_fini(cs_schemas *t);
/* Is it in the table, or a construct of plain graphs of which no schema tells anything? */
bool cs_schemas_has(cs_span op);
/* The operator of that name; NULL: no memory. It lasts until the next call. */
const cs_op *cs_schemas_find(cs_schemas *t, const cs_script *s, cs_str op);
/* Calls `visit` with each overload of `op` that fits the line (all of those with its number of
 * arguments where none fits, all where none has it); false stops and is returned. */
bool cs_schemas_fit(const cs_schemas *t, const cs_script *s, const cs_op *op,
                    const cs_ts_line *line, bool (*visit)(void *payload, const cs_sig *sig),
                    void *payload);
static inline const cs_sig_type *cs_sig_arg(const cs_schemas *t, const cs_sig *sig, uint32_t i)
{
    return i < sig->n_arg ? &t->types.at[sig->type + i] : NULL;
}
static inline const cs_sig_type *cs_sig_ret(const cs_schemas *t, const cs_sig *sig, uint32_t i)
{
    return i < sig->n_ret ? &t->types.at[sig->type + sig->n_arg + i] : NULL;
}

#endif
