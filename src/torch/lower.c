/* The blocks that are planned, each as a flat graph: the graph itself and the branches of every
 * prim::If outside loops.
 *
 * Nodes are the lines of the block, prim::Constant and attributes of the module left out: these are
 * weights (no args at all where they are no tensors), or inputs where something writes them. Values
 * of enclosing blocks are inputs. A line with blocks reads what the lines inside take from outside.
 *
 * A node is repeated (CS_NODE_REPEAT) if any engine that needs its result could compute it: it is a
 * construct, or makes no tensor and every target takes it; it is pure, touches no memory that
 * something writes, computes no tensors under contexts that change, and what it takes is tensors,
 * constants or results of such nodes. A branch that needs such a result of an enclosing block gets
 * the node, and what it takes, as its own (imported). Where a block gives back what such a node
 * makes, and lines read it too, the node is there twice: as it is, for the block's result, and
 * behind it, imported, for those that read it.
 *
 * Cost: linear in the text times the depth of blocks.
 */
#include "torch/lower.h"

#include <stdlib.h>
#include <string.h>

typedef struct lowering {
    cs_torch *out;
    const cs_script *s;
    cs_memory *m;
    const cs_permission *p;
    const cutset_torchscript *in;
    cs_sharing share;
    uint32_t needed; /* bits of targets that some line may run on */
    bool *repeat;    /* by line */
    bool *read;      /* by value of the script: a line, or a block inside its own, reads it */
    uint32_t *given; /* by value of the script: what its block gives back, if it is there twice */
    /* of the block at hand */
    uint32_t block;  /* in out->blocks */
    uint32_t source; /* in s->blocks */
    cs_graph *g;
    uint32_t *id, *made; /* by value of the script: value of g, and the block + 1 that it is of */
    uint32_t *used;      /* by value of the script: the line + 1 that read it last */
    uint32_t *wanted;    /* by line: the block + 1 that imports it */
    cs_map storages;     /* block << 32 | storage of the script -> storage of g */
    cs_map types;        /* block << 32 | type of the script -> type of g */
    CS_VEC(uint32_t) reads; /* values of the script that the line at hand reads */
    CS_VEC(uint32_t) imports, todo, cells;
    CS_VEC(uint32_t) sources; /* by planned block: in s->blocks */
} lowering;

static cs_torch_block *here(lowering *w) { return &w->out->blocks.at[w->block]; }

static bool is_control(const cs_ts_line *l) { return l->kind == CS_TS_IF || l->kind == CS_TS_LOOP; }

static bool is_tensor(const cs_script *s, uint32_t v)
{
    return s->values.at[v].type.base == CS_TS_TENSOR && !s->values.at[v].type.optional;
}

/* A constant, or an attribute of the module that no SetAttr sets: known before run time. */
static bool is_known(const lowering *w, uint32_t v)
{
    const uint32_t line = w->s->values.at[v].line;
    if (line == CS_NONE) return w->s->has_self && v == w->s->blocks.at[0].in;
    return !w->m->acts[line].node;
}

/* Does a part carry it without a word: a number, an object, the module itself? */
static bool is_mute(const lowering *w, uint32_t v)
{
    if (!is_known(w, v)) return false;
    const cs_ts_type *t = &w->s->values.at[v].type;
    return !cs_ts_has_memory(t) || t->base == CS_TS_OBJECT || w->s->values.at[v].path == 0;
}

/* ---- values ---- */

static bool copy_type(lowering *w, cs_type from, cs_type *to)
{
    *to = 0;
    if (from == 0) return true;
    const uint64_t key = (uint64_t)w->block << 32 | from;
    const uint32_t found = cs_map_get(&w->types, key);
    if (found != CS_NONE) {
        *to = found;
        return true;
    }
    const cs_type_info *info = cs_type_get(w->s->pool, from);
    const bool ranked = info->rank > 0;
    *to = cs_type_tensor(w->g->pool, info->elem, info->rank,
                         ranked ? cs_type_dims(w->s->pool, from) : NULL);
    return *to != CS_NONE && cs_map_put(&w->types, key, *to);
}

/* The storage of a known tensor: the caller's, or one of its own by attribute path or line. */
static bool give_storage(lowering *w, uint32_t v, uint32_t id)
{
    const uint32_t line = w->s->values.at[v].line, path = w->s->values.at[v].path;
    const bool given = w->in->n_lines && w->in->storages && line != CS_NONE &&
                       w->in->storages[line] < w->in->n_storages;
    /* numbers of three kinds, apart from each other */
    const uint64_t what = given ? (uint64_t)w->in->storages[line]
                                : (path != CS_NONE ? path | 1ull << 32 : v | 1ull << 33);
    const uint64_t key = what << 24 | w->block % (1u << 24);
    uint32_t storage = cs_map_get(&w->storages, key);
    if (storage == CS_NONE) {
        const cs_type_info *t = cs_type_get(w->g->pool, w->g->values.at[id].type);
        const int64_t bytes = given ? w->in->storage_bytes[w->in->storages[line]] : 0;
        storage = cs_graph_add_storage(w->g, bytes, t->elem, NULL);
        if (storage == CS_NONE || !cs_map_put(&w->storages, key, storage)) return false;
    }
    w->g->values.at[id].storage = storage;
    return true;
}

static bool copy_name(lowering *w, cs_str from, cs_str *to)
{
    *to = cs_strtab_add(&w->g->pool->names, cs_name(w->s->pool, from), false);
    return *to != CS_NONE;
}

static bool add_value(lowering *w, uint32_t v, cs_origin origin)
{
    const cs_ts_value *from = &w->s->values.at[v];
    cs_str name;
    cs_type type;
    if (!copy_name(w, from->name, &name) || !copy_type(w, from->type.type, &type)) return false;
    const uint32_t id = cs_graph_add_value(w->g, name, type, origin);
    if (id == CS_NONE) return false;
    w->g->values.at[id].kind = is_tensor(w->s, v) ? CS_VALUE_TENSOR : CS_VALUE_SCALAR;
    w->id[v] = id;
    w->made[v] = w->block + 1;
    if (origin == CS_ORIGIN_WEIGHT) return give_storage(w, v, id);
    if (origin == CS_ORIGIN_NODE) return true;
    return cs_vec_push(&w->g->inputs, id) && cs_share_fresh(&w->share, id, cs_cell_of(w->m, v));
}

/* The id of `v` in g, made here if it comes from outside. CS_NONE with *ok: no arg at all. */
static uint32_t value_of(lowering *w, uint32_t v, bool *ok)
{
    if (w->made[v] == w->block + 1) return w->id[v];
    if (is_mute(w, v)) return CS_NONE;
    const bool known = is_known(w, v) && !cs_memory_is_written(w->m, v);
    *ok = add_value(w, v, known ? CS_ORIGIN_WEIGHT : CS_ORIGIN_INPUT);
    return *ok ? w->id[v] : CS_NONE;
}

/* ---- what a line reads ---- */

static bool read_value(lowering *w, uint32_t v, uint32_t line)
{
    if (w->used[v] == line + 1) return true;
    w->used[v] = line + 1;
    return cs_vec_push(&w->reads, v);
}

static bool is_inside(const lowering *w, const cs_ts_line *l, uint32_t v)
{
    const uint32_t block = w->s->values.at[v].block;
    return block >= w->s->inner.at[l->inner] && block < l->blocks_end;
}

/* Args of the line; then, of a line with blocks, what the lines inside take from outside. */
static bool find_reads(lowering *w, uint32_t line)
{
    const cs_script *s = w->s;
    const cs_ts_line *l = &s->lines.at[line];
    w->reads.len = 0;
    for (uint32_t i = 0; i < l->n_arg; i++) {
        w->used[cs_ts_arg(s, l, i)] = line + 1;
        if (!cs_vec_push(&w->reads, cs_ts_arg(s, l, i))) return false;
    }
    if (!is_control(l)) return true;
    for (uint32_t i = line + 1; i < l->end; i++)
        for (uint32_t k = 0; k < s->lines.at[i].n_arg; k++) {
            const uint32_t v = cs_ts_arg(s, &s->lines.at[i], k);
            if (!is_inside(w, l, v) && !read_value(w, v, line)) return false;
        }
    for (uint32_t b = s->inner.at[l->inner]; b < l->blocks_end; b++)
        for (uint32_t k = 0; k < s->blocks.at[b].n_ret; k++) {
            const uint32_t v = s->refs.at[s->blocks.at[b].ret + k];
            if (!is_inside(w, l, v) && !read_value(w, v, line)) return false;
        }
    return true;
}

/* ---- repeated nodes ---- */

static bool touches_written(lowering *w, const cs_ts_line *l)
{
    for (uint32_t i = 0; i < l->n_arg; i++)
        if (cs_memory_is_written(w->m, cs_ts_arg(w->s, l, i))) return true;
    for (uint32_t i = 0; i < l->n_out; i++)
        if (cs_memory_is_written(w->m, l->out + i)) return true;
    return false;
}

/* A value that any engine has or can compute. */
static bool is_everywhere(const lowering *w, uint32_t v)
{
    const uint32_t line = w->s->values.at[v].line;
    return is_tensor(w->s, v) || is_known(w, v) || (line != CS_NONE && w->repeat[line]);
}

static bool can_repeat(lowering *w, uint32_t line)
{
    const cs_script *s = w->s;
    const cs_ts_line *l = &s->lines.at[line];
    const cs_act *act = &w->m->acts[line];
    if (is_control(l) || act->effect || act->random || act->unknown || act->n_write ||
        act->n_read || !l->n_out || !act->node || l->kind == CS_TS_GETATTR)
        return false;
    if (!(w->p[line].mask & CS_TORCH_TARGETS) || (w->needed & ~w->p[line].mask)) return false;
    for (uint32_t i = 0; i < l->n_out; i++)
        if (is_tensor(s, l->out + i) && !cs_ts_is_construct(l)) return false;
    for (uint32_t i = 0; i < l->n_arg; i++)
        if (!is_everywhere(w, cs_ts_arg(s, l, i))) return false;
    return !touches_written(w, l);
}

/* ---- nodes ---- */

static uint32_t flags_of(const lowering *w, uint32_t line, bool repeat)
{
    const cs_ts_line *l = &w->s->lines.at[line];
    const cs_act *act = &w->m->acts[line];
    bool counts = false;
    for (uint32_t i = 0; i < l->n_out; i++)
        counts |= is_tensor(w->s, l->out + i);
    return (act->effect ? CS_NODE_EFFECT : 0) | (act->random ? CS_NODE_RANDOM : 0) |
           (repeat ? CS_NODE_REPEAT : 0) | (counts ? 0 : CS_NODE_FREE) |
           (l->kind == CS_TS_IF ? CS_NODE_ALONE : 0) | CS_NODE_NO_PATTERN;
}

static bool add_args(lowering *w)
{
    w->cells.len = 0;
    for (size_t i = 0; i < w->reads.len; i++) {
        bool ok = true;
        const uint32_t v = w->reads.at[i], id = value_of(w, v, &ok);
        if (!ok || !cs_graph_add_arg(w->g, id) || !cs_vec_push(&w->cells, cs_cell_of(w->m, v)))
            return false;
    }
    return true;
}

/* The values that `w->reads` needs are made before the node. */
static bool add_node(lowering *w, uint32_t line, bool repeat, bool imported)
{
    const cs_ts_line *l = &w->s->lines.at[line];
    cs_str op;
    for (size_t i = 0; i < w->reads.len; i++) {
        bool ok = true;
        value_of(w, w->reads.at[i], &ok);
        if (!ok) return false;
    }
    if (!copy_name(w, l->op, &op) || cs_graph_add_node(w->g, op, 0, 0) == CS_NONE) return false;
    w->g->nodes.at[w->g->nodes.len - 1].flags = flags_of(w, line, repeat);
    w->g->nodes.at[w->g->nodes.len - 1].offset = l->at;
    const cs_torch_node beside = {
        .line = line, .mask = w->p[line].mask, .refusal = w->p[line].refusal, .imported = imported};
    if (!cs_vec_push(&here(w)->nodes, beside) || !cs_vec_push(&here(w)->numbers, l->number) ||
        !add_args(w) || !cs_share_act(&w->share, &w->m->acts[line], w->cells.at))
        return false;
    for (uint32_t i = 0; i < l->n_out; i++) {
        const uint32_t v = l->out + i;
        if (!add_value(w, v, CS_ORIGIN_NODE) || !cs_graph_add_out(w->g, w->id[v]) ||
            !cs_share_output(&w->share, w->id[v], cs_cell_of(w->m, v), w->cells.at,
                             w->m->acts[line].derives))
            return false;
    }
    return true;
}

/* ---- imports ---- */

/* The repeated node of an enclosing block that makes `v`, if v is no tensor; else CS_NONE. */
static uint32_t importable(const lowering *w, uint32_t v)
{
    const uint32_t line = w->s->values.at[v].line;
    const bool outside =
        line != CS_NONE && !cs_ts_within(w->s, w->s->lines.at[line].block, w->source);
    return outside && !is_tensor(w->s, v) && w->repeat[line] ? line : CS_NONE;
}

static bool want(lowering *w, uint32_t v)
{
    const uint32_t line = importable(w, v);
    if (line == CS_NONE || w->wanted[line] == w->block + 1) return true;
    w->wanted[line] = w->block + 1;
    return cs_vec_push(&w->imports, line) && cs_vec_push(&w->todo, line);
}

static int by_id(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool add_imports(lowering *w, const cs_ts_block *b)
{
    const cs_script *s = w->s;
    w->imports.len = w->todo.len = 0;
    if (w->block == 0) return true;
    for (uint32_t i = b->first; i < b->end; i++)
        for (uint32_t k = 0; k < s->lines.at[i].n_arg; k++)
            if (!want(w, cs_ts_arg(s, &s->lines.at[i], k))) return false;
    while (w->todo.len) {
        const cs_ts_line *l = &s->lines.at[w->todo.at[--w->todo.len]];
        for (uint32_t k = 0; k < l->n_arg; k++)
            if (!want(w, cs_ts_arg(s, l, k))) return false;
    }
    if (w->imports.len > 1) qsort(w->imports.at, w->imports.len, sizeof *w->imports.at, by_id);
    for (size_t i = 0; i < w->imports.len; i++)
        if (!find_reads(w, w->imports.at[i]) || !add_node(w, w->imports.at[i], true, true))
            return false;
    return true;
}

/* ---- blocks ---- */

static bool open_block(lowering *w, uint32_t owner, uint32_t owner_node, uint32_t branch,
                       uint32_t source)
{
    cs_torch_block b = {.owner = owner, .owner_node = owner_node, .branch = branch};
    cs_pool *pool = cs_pool_new();
    b.graph = pool ? cs_graph_new(pool, NULL) : NULL;
    if (!b.graph) return cs_pool_free(pool), false;
    b.graph->imperative = true;
    if (cs_vec_push(&w->out->blocks, b) && cs_vec_push(&w->sources, source)) return true;
    if (w->out->blocks.len == 0 || w->out->blocks.at[w->out->blocks.len - 1].graph != b.graph)
        cs_graph_free(b.graph);
    return false;
}

/* Arguments of the graph, the module left out, whether they are used or not. */
static bool add_arguments(lowering *w, const cs_ts_block *b)
{
    for (uint32_t i = 0; i < b->n_in; i++)
        if (!(w->s->has_self && b->in + i == w->s->blocks.at[0].in) &&
            !add_value(w, b->in + i, CS_ORIGIN_INPUT))
            return false;
    return true;
}

static bool add_results(lowering *w, const cs_ts_block *b)
{
    for (uint32_t i = 0; i < b->n_ret; i++) {
        const uint32_t v = w->s->refs.at[b->ret + i];
        bool ok = true;
        const bool twice = w->given[v] != CS_NONE && w->s->values.at[v].block == w->source;
        uint32_t id = twice ? w->given[v] : value_of(w, v, &ok);
        if (ok && id == CS_NONE) { /* a constant that is given back */
            ok = add_value(w, v, CS_ORIGIN_WEIGHT);
            id = w->id[v];
        }
        if (!ok || !cs_vec_push(&w->g->outputs, id)) return false;
    }
    return true;
}

/* A node that may be repeated. An engine cannot give back what is no tensor: then the node itself
 * goes to the host, and those that read it get another. */
static bool add_repeated(lowering *w, uint32_t line, const bool *is_result)
{
    const cs_ts_line *l = &w->s->lines.at[line];
    bool given = false, read = false;
    for (uint32_t i = 0; i < l->n_out; i++) {
        given |= is_result[l->out + i] && !is_tensor(w->s, l->out + i);
        read |= w->read[l->out + i];
    }
    if (!add_node(w, line, !given, false)) return false;
    if (!given || !read) return true;
    for (uint32_t i = 0; i < l->n_out; i++)
        w->given[l->out + i] = w->id[l->out + i];
    return add_node(w, line, true, true);
}

/* The nodes of the block, and a block for each branch that is planned. */
static bool add_lines(lowering *w, const cs_ts_block *b, const bool *is_result)
{
    const cs_script *s = w->s;
    for (uint32_t i = b->first; i < b->end; i = s->lines.at[i].end) {
        if (!w->m->acts[i].node) continue;
        w->repeat[i] = can_repeat(w, i);
        if (!find_reads(w, i)) return false;
        if (!(w->repeat[i] ? add_repeated(w, i, is_result) : add_node(w, i, false, false)))
            return false;
        w->out->n_nodes++;
    }
    for (uint32_t n = 0; n < here(w)->nodes.len; n++) {
        const cs_ts_line *l = &s->lines.at[here(w)->nodes.at[n].line];
        if (l->kind != CS_TS_IF || here(w)->nodes.at[n].imported) continue;
        for (uint32_t k = 0; k < 2; k++)
            if (!open_block(w, w->block, n, k, s->inner.at[l->inner + k])) return false;
    }
    return true;
}

static cutset_status lower_block(lowering *w, bool *is_result, cutset_error *err)
{
    const cs_ts_block *b = &w->s->blocks.at[w->source];
    for (uint32_t i = 0; i < b->n_ret; i++)
        is_result[w->s->refs.at[b->ret + i]] = true;
    cs_sharing_begin(&w->share, w->g, w->block, w->source);
    const bool ok = (w->block > 0 || add_arguments(w, b)) && add_imports(w, b) &&
                    add_lines(w, b, is_result) && cs_sharing_end(&w->share) && add_results(w, b);
    if (!ok) return cs_fail_memory(err);
    for (uint32_t i = 0; i < b->n_ret; i++)
        is_result[w->s->refs.at[b->ret + i]] = false;
    here(w)->graph->number = here(w)->numbers.at;
    return cs_graph_seal(w->g, err);
}

static void find_read(lowering *w)
{
    const cs_script *s = w->s;
    for (size_t i = 0; i < s->lines.len; i++)
        for (uint32_t k = 0; k < s->lines.at[i].n_arg; k++)
            w->read[cs_ts_arg(s, &s->lines.at[i], k)] = true;
    for (uint32_t b = 0; b < s->blocks.len; b++)
        for (uint32_t k = 0; k < s->blocks.at[b].n_ret; k++) {
            const uint32_t v = s->refs.at[s->blocks.at[b].ret + k];
            w->read[v] |= s->values.at[v].block != b;
        }
}

static bool start(lowering *w)
{
    const size_t values = w->s->values.len, lines = w->s->lines.len;
    w->repeat = cs_zalloc(lines, sizeof *w->repeat);
    w->read = cs_zalloc(values, sizeof *w->read);
    w->given = cs_alloc(values, sizeof *w->given);
    if (w->given) memset(w->given, 0xff, values * sizeof *w->given);
    if (w->read) find_read(w);
    w->wanted = cs_zalloc(lines, sizeof *w->wanted);
    w->id = cs_alloc(values, sizeof *w->id);
    w->made = cs_zalloc(values, sizeof *w->made);
    w->used = cs_zalloc(values, sizeof *w->used);
    for (size_t i = 0; i < lines; i++)
        if (w->s->lines.at[i].kind == CS_TS_OPERATOR || is_control(&w->s->lines.at[i]))
            w->needed |= w->p[i].mask & CS_TORCH_TARGETS;
    return w->repeat && w->read && w->given && w->wanted && w->id && w->made && w->used &&
           cs_sharing_init(&w->share, w->m) && open_block(w, CS_NONE, CS_NONE, 0, 0);
}

cutset_status cs_lower(cs_torch *out, const cs_script *s, cs_memory *m,
                       const cs_permission *permissions, const cutset_torchscript *in,
                       cutset_error *err)
{
    lowering w = {.out = out, .s = s, .m = m, .p = permissions, .in = in};
    bool *is_result = cs_zalloc(s->values.len, sizeof *is_result);
    cutset_status status = is_result && start(&w) ? CUTSET_OK : cs_fail_memory(err);
    for (w.block = 0; !status && w.block < out->blocks.len; w.block++) {
        w.source = w.sources.at[w.block];
        w.g = here(&w)->graph;
        status = lower_block(&w, is_result, err);
    }
    cs_free(is_result);
    cs_sharing_fini(&w.share);
    cs_free(w.repeat);
    cs_free(w.read);
    cs_free(w.given);
    cs_free(w.wanted);
    cs_free(w.id);
    cs_free(w.made);
    cs_free(w.used);
    cs_map_fini(&w.storages);
    cs_map_fini(&w.types);
    cs_vec_fini(&w.reads);
    cs_vec_fini(&w.imports);
    cs_vec_fini(&w.todo);
    cs_vec_fini(&w.cells);
    cs_vec_fini(&w.sources);
    return status;
}
