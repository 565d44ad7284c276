/* Which values of a script may share memory, and what each line does to it. Private to torch/. */
#ifndef CS_TORCH_MEMORY_H
#define CS_TORCH_MEMORY_H

#include "torch/schema.h"

/* A piece of memory, or several that may be one. Cells are joined, never parted. */
typedef struct cs_cell {
    uint32_t parent;  /* union-find; itself at the root */
    uint32_t content; /* what it holds, if it is a container; CS_NONE: nothing asked yet */
    bool outside;     /* comes from outside the graph */
    bool written;
    uint32_t block; /* the innermost block that all its values and writers are in */
} cs_cell;

/* What a line does; of one with blocks: what the lines inside do, taken together. */
typedef struct cs_act {
    bool effect, random;
    bool unknown;            /* nothing is known of the operator */
    bool container;          /* it changes a list, a dict or an object */
    bool derives;            /* its results may be elements of what it takes */
    bool node;               /* a node of a plan (if in a block that is planned) */
    uint32_t write, n_write; /* memory->refs: cells, roots */
    uint32_t read, n_read;   /* ... that are written somewhere */
} cs_act;

typedef struct cs_memory {
    const cs_script *s;
    CS_VEC(cs_cell) cells;
    uint32_t *of;  /* by value: its cell, or CS_NONE */
    uint32_t wild; /* what may be anything: unknown operators, elements of what comes in */
    uint32_t mode; /* what contexts change (prim::Enter, prim::Exit): no_grad and its like */
    cs_act *acts;  /* by line */
    CS_VEC(uint32_t) refs;
    cs_map slots;      /* (type, name) of attributes that are set -> cell that holds the value */
    cs_map attributes; /* path -> cell */
    CS_VEC(uint32_t) pending; /* pairs of cells to join */
} cs_memory;

cutset_status cs_memory_init(cs_memory *m, const cs_script *s, cs_schemas *schemas,
                             const cutset_torchscript *in, cutset_error *err);
void cs_memory_fini(cs_memory *m);
uint32_t cs_cell_root(cs_memory *m, uint32_t cell);
/* The root of a value's cell, or CS_NONE. */
static inline uint32_t cs_cell_of(cs_memory *m, uint32_t value)
{
    return m->of[value] == CS_NONE ? CS_NONE : cs_cell_root(m, m->of[value]);
}
/* Does something write this value's memory, or what it holds, however deep? */
bool cs_memory_is_written(cs_memory *m, uint32_t value);
/* Of a GetAttr or SetAttr: the cell of its attribute, if a SetAttr sets that; else CS_NONE. */
uint32_t cs_memory_slot(const cs_memory *m, const cs_ts_line *line);
/* A GetAttr whose attribute a SetAttr sets. */
bool cs_memory_is_set(const cs_memory *m, const cs_ts_line *line);

/* effect.c: fills m->acts. False: no memory. */
bool cs_acts_find(cs_memory *m, cs_schemas *schemas, const cutset_torchscript *in);

#endif
