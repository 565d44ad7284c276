/* May-alias classes over all blocks at once: unification of cells (Steensgaard, POPL 1996).
 *
 * Each value of a type that has memory has a cell; a container's cell has another for what it holds.
 * A line joins the cells of what may be the same memory, whatever the order of lines: so the result
 * holds for every execution, also of loops. What comes from outside:
 *   - a tensor argument is memory of its own, unless the caller says that two may share theirs;
 *   - an attribute is, by its path, and by its storage where the caller tells those;
 *   - what containers and objects from outside hold is one cell, `wild`, which holds itself;
 *   - an operator that nothing is known of makes all it takes and gives `wild`.
 * An attribute that a SetAttr sets is a slot, by the type of its object and its name, that holds the
 * value; reading it is an act of its own then.
 *
 * Cost: nearly linear in the text (union-find with path halving).
 */
#include "torch/memory.h"

#include <string.h>

uint32_t cs_cell_root(cs_memory *m, uint32_t c)
{
    cs_cell *at = m->cells.at;
    while (at[c].parent != c) {
        at[c].parent = at[at[c].parent].parent;
        c = at[c].parent;
    }
    return c;
}

static uint32_t new_cell(cs_memory *m, bool outside)
{
    const uint32_t c = (uint32_t)m->cells.len;
    const cs_cell cell = {
        .parent = c, .content = CS_NONE, .outside = outside, .block = outside ? 0 : CS_NONE};
    return m->cells.len < CS_NONE - 1 && cs_vec_push(&m->cells, cell) ? c : CS_NONE;
}

static bool ask(cs_memory *m, uint32_t a, uint32_t b)
{
    if (a == CS_NONE || b == CS_NONE) return true;
    return cs_vec_push(&m->pending, a) && cs_vec_push(&m->pending, b);
}

/* Joins two cells and all that follows from it. CS_NONE joins nothing. */
static bool join(cs_memory *m, uint32_t a, uint32_t b)
{
    if (!ask(m, a, b)) return false;
    while (m->pending.len > 0) {
        m->pending.len -= 2;
        uint32_t x = cs_cell_root(m, m->pending.at[m->pending.len]);
        uint32_t y = cs_cell_root(m, m->pending.at[m->pending.len + 1]);
        if (x == y) continue;
        if (x > y) {
            const uint32_t t = x;
            x = y, y = t; /* the root is the older cell */
        }
        cs_cell *to = &m->cells.at[x], *from = &m->cells.at[y];
        const bool widened = to->outside != from->outside;
        const uint32_t mine = to->content, theirs = from->content;
        from->parent = x;
        to->outside |= from->outside;
        to->written |= from->written;
        if (mine == CS_NONE) to->content = theirs;
        if (mine != CS_NONE && theirs != CS_NONE && !ask(m, mine, theirs)) return false;
        if (widened && to->content != CS_NONE && !ask(m, to->content, m->wild)) return false;
    }
    return true;
}

/* The cell of what `c` holds; CS_NONE: no memory. */
static uint32_t content_of(cs_memory *m, uint32_t c)
{
    c = cs_cell_root(m, c);
    if (m->cells.at[c].content == CS_NONE) {
        const uint32_t inner = m->cells.at[c].outside ? m->wild : new_cell(m, false);
        m->cells.at[c].content = inner;
    }
    return m->cells.at[c].content;
}

static bool hold(cs_memory *m, uint32_t container, uint32_t what)
{
    if (container == CS_NONE || what == CS_NONE) return true;
    const uint32_t inner = content_of(m, container);
    return inner != CS_NONE && join(m, inner, what);
}

/* ---- attributes ---- */

static uint64_t slot_key(const cs_script *s, const cs_ts_line *l)
{
    return (uint64_t)s->values.at[cs_ts_arg(s, l, 0)].type.text << 32 | l->attr;
}

uint32_t cs_memory_slot(const cs_memory *m, const cs_ts_line *l)
{
    return cs_map_get(&m->slots, slot_key(m->s, l));
}

bool cs_memory_is_set(const cs_memory *m, const cs_ts_line *l)
{
    return l->kind == CS_TS_GETATTR && cs_memory_slot(m, l) != CS_NONE;
}

static bool make_slots(cs_memory *m)
{
    const cs_script *s = m->s;
    for (size_t i = 0; i < s->lines.len; i++) {
        const cs_ts_line *l = &s->lines.at[i];
        if (l->kind != CS_TS_SETATTR) continue;
        if (cs_memory_slot(m, l) != CS_NONE) continue;
        const uint32_t slot = new_cell(m, true);
        if (slot == CS_NONE || !cs_map_put(&m->slots, slot_key(s, l), slot)) return false;
    }
    return true;
}

/* `by` -> cell, made when it is first asked for */
static uint32_t cell_by(cs_memory *m, cs_map *map, uint64_t key)
{
    uint32_t c = cs_map_get(map, key);
    if (c != CS_NONE) return c;
    c = new_cell(m, true);
    return c != CS_NONE && cs_map_put(map, key, c) ? c : CS_NONE;
}

static bool get_attribute(cs_memory *m, const cs_ts_line *l, uint32_t line,
                          const cutset_torchscript *in)
{
    const cs_script *s = m->s;
    const uint32_t object = s->refs.at[l->arg], path = s->values.at[l->out].path;
    const uint32_t out = m->of[l->out];
    const uint32_t slot = cs_memory_slot(m, l);
    if (out == CS_NONE) return true;
    if (slot != CS_NONE) return hold(m, slot, out);
    if (path == CS_NONE) return hold(m, m->of[object], out); /* of an object that a line made */
    const uint32_t cell = cell_by(m, &m->attributes, path);
    if (cell == CS_NONE || !join(m, cell, out)) return false;
    if (!in->storages || in->storages[line] >= in->n_storages) return true;
    /* storages are keyed behind the paths */
    const uint32_t storage = cell_by(m, &m->attributes, (uint64_t)1 << 32 | in->storages[line]);
    return storage != CS_NONE && join(m, storage, out);
}

static bool set_attribute(cs_memory *m, const cs_ts_line *l)
{
    const uint32_t object = cs_ts_arg(m->s, l, 0), value = m->of[cs_ts_arg(m->s, l, 1)];
    return hold(m, cs_memory_slot(m, l), value) &&
           (m->s->values.at[object].path != CS_NONE || hold(m, m->of[object], value));
}

/* ---- operators, by their schemas ---- */

typedef struct matcher {
    cs_memory *m;
    const cs_schemas *t;
    const cs_ts_line *l;
} matcher;

/* The cell that stands `depth` containers inside value's. */
static uint32_t inside(cs_memory *m, uint32_t value, unsigned depth)
{
    uint32_t c = m->of[value];
    while (depth-- > 0 && c != CS_NONE)
        c = content_of(m, c);
    return c;
}

/* Calls `f` with each type of the schema and the value it stands for. */
static bool each_type(const matcher *k, const cs_sig *sig,
                      bool (*f)(const matcher *k, const cs_sig_type *type, uint32_t value,
                                uint32_t with, uint32_t set),
                      uint32_t with, uint32_t set)
{
    for (uint32_t i = 0; i < k->l->n_arg && i < sig->n_arg; i++)
        if (!f(k, cs_sig_arg(k->t, sig, i), cs_ts_arg(k->m->s, k->l, i), with, set)) return false;
    for (uint32_t i = 0; i < k->l->n_out && i < sig->n_ret; i++)
        if (!f(k, cs_sig_ret(k->t, sig, i), k->l->out + i, with, set)) return false;
    return true;
}

static bool join_set(const matcher *k, const cs_sig_type *type, uint32_t value, uint32_t with,
                     uint32_t set)
{
    if (type->sets & set && !join(k->m, inside(k->m, value, 0), with)) return false;
    return !(type->elements & set) || join(k->m, inside(k->m, value, 1), with);
}

static bool join_generic(const matcher *k, const cs_sig_type *type, uint32_t value, uint32_t with,
                         uint32_t set)
{
    (void)set;
    return type->generic == 0 || join(k->m, inside(k->m, value, type->generic - 1u), with);
}

static bool put_into_written(const matcher *k, const cs_sig_type *type, uint32_t value,
                             uint32_t with, uint32_t set)
{
    (void)set;
    const cs_ts_base base = (cs_ts_base)k->m->s->values.at[value].type.base;
    const bool container = type->write && base != CS_TS_TENSOR;
    return !container || hold(k->m, k->m->of[value], with);
}

/* "(*)" where no type variable says what: anything. */
static bool join_wild(const matcher *k, const cs_sig *sig)
{
    for (uint32_t i = 0; i < k->l->n_out && i < sig->n_ret; i++) {
        const cs_sig_type *type = cs_sig_ret(k->t, sig, i);
        if (!type->wild || (type->generic && sig->generic)) continue;
        const uint32_t depth = type->base == CS_TS_LIST;
        if (!join(k->m, inside(k->m, k->l->out + i, depth), k->m->wild)) return false;
    }
    return true;
}

static bool apply_schema(void *payload, const cs_sig *sig)
{
    const matcher *k = payload;
    cs_memory *m = k->m;
    uint32_t sets = 0;
    for (uint32_t i = 0; i < sig->n_arg + sig->n_ret; i++)
        sets |= k->t->types.at[sig->type + i].sets | k->t->types.at[sig->type + i].elements;
    for (uint32_t set = 1; sets; set <<= 1) {
        if (!(sets & set)) continue;
        sets &= ~set;
        const uint32_t hub = new_cell(m, false);
        if (hub == CS_NONE || !each_type(k, sig, join_set, hub, set)) return false;
    }
    if (sig->generic) {
        const uint32_t hub = new_cell(m, false);
        if (hub == CS_NONE || !each_type(k, sig, join_generic, hub, 0)) return false;
    }
    for (uint32_t i = 0; i < k->l->n_arg && i < sig->n_arg; i++)
        if (cs_sig_arg(k->t, sig, i)->into &&
            !each_type(k, sig, put_into_written, m->of[cs_ts_arg(m->s, k->l, i)], 0))
            return false;
    return join_wild(k, sig);
}

static bool call_operator(cs_memory *m, cs_schemas *schemas, const cs_ts_line *l)
{
    const cs_op *op = cs_schemas_find(schemas, m->s, l->op);
    if (!op) return false;
    if (op->known) {
        matcher k = {m, schemas, l};
        return cs_schemas_fit(schemas, m->s, op, l, apply_schema, &k);
    }
    for (uint32_t i = 0; i < l->n_arg; i++)
        if (!join(m, m->of[cs_ts_arg(m->s, l, i)], m->wild)) return false;
    for (uint32_t i = 0; i < l->n_out; i++)
        if (!join(m, m->of[l->out + i], m->wild)) return false;
    return true;
}

/* ---- lines ---- */

static bool branch(cs_memory *m, const cs_ts_line *l)
{
    const cs_script *s = m->s;
    const bool loop = l->kind == CS_TS_LOOP;
    for (uint32_t b = 0; b < l->n_inner; b++) {
        const cs_ts_block *block = &s->blocks.at[s->inner.at[l->inner + b]];
        for (uint32_t i = 0; i < l->n_out; i++) {
            const uint32_t out = m->of[l->out + i];
            if (!join(m, out, m->of[s->refs.at[block->ret + i + loop]])) return false;
            if (!loop) continue;
            if (!join(m, out, m->of[block->in + 1 + i]) ||
                !join(m, out, m->of[cs_ts_arg(s, l, i + 2)]))
                return false;
        }
    }
    return true;
}

static bool visit(cs_memory *m, cs_schemas *schemas, uint32_t line, const cutset_torchscript *in)
{
    const cs_ts_line *l = &m->s->lines.at[line];
    const uint32_t first = l->n_arg ? m->of[cs_ts_arg(m->s, l, 0)] : CS_NONE;
    bool ok = true;
    switch ((cs_ts_kind)l->kind) {
    case CS_TS_CONSTANT:
        if (m->of[l->out] != CS_NONE) m->cells.at[cs_cell_root(m, m->of[l->out])].outside = true;
        break;
    case CS_TS_GETATTR:
        return get_attribute(m, l, line, in);
    case CS_TS_SETATTR:
        return set_attribute(m, l);
    case CS_TS_IF:
    case CS_TS_LOOP:
        return branch(m, l);
    case CS_TS_PACK:
        for (uint32_t i = 0; ok && i < l->n_arg; i++)
            ok = hold(m, m->of[l->out], m->of[cs_ts_arg(m->s, l, i)]);
        break;
    case CS_TS_UNPACK:
        for (uint32_t i = 0; ok && i < l->n_out; i++)
            ok = hold(m, first, m->of[l->out + i]);
        break;
    case CS_TS_SLICE:
        for (uint32_t i = 0; ok && i < l->n_out && first != CS_NONE; i++) {
            const uint32_t inner = content_of(m, first);
            ok = inner != CS_NONE && hold(m, m->of[l->out + i], inner);
        }
        break;
    case CS_TS_CAST:
        return join(m, first, m->of[l->out]);
    case CS_TS_FRESH:
        break;
    case CS_TS_OPERATOR:
        return call_operator(m, schemas, l);
    }
    return ok;
}

static bool make_cells(cs_memory *m, const cutset_torchscript *in)
{
    const cs_script *s = m->s;
    m->of = cs_alloc(s->values.len, sizeof *m->of);
    m->wild = new_cell(m, true);
    m->mode = new_cell(m, true);
    if (!m->of || m->wild == CS_NONE || m->mode == CS_NONE) return false;
    m->cells.at[m->wild].content = m->wild;
    const cs_ts_block *top = &s->blocks.at[0];
    for (uint32_t v = 0; v < s->values.len; v++) {
        const bool has = cs_ts_has_memory(&s->values.at[v].type);
        const bool outside = v >= top->in && v < top->in + top->n_in;
        m->of[v] = has ? new_cell(m, outside) : CS_NONE;
        if (has && m->of[v] == CS_NONE) return false;
    }
    for (size_t i = 0; i < in->n_input_aliases; i++) {
        const uint32_t *pair = in->input_aliases + 2 * i;
        if (!join(m, m->of[top->in + pair[0]], m->of[top->in + pair[1]])) return false;
    }
    return true;
}

bool cs_memory_is_written(cs_memory *m, uint32_t value)
{
    uint32_t c = cs_cell_of(m, value);
    for (unsigned depth = 0; c != CS_NONE; depth++) {
        if (m->cells.at[c].written || depth > CS_SCRIPT_DEPTH)
            return true; /* deep, or round: careful */
        const uint32_t inner = m->cells.at[c].content;
        if (inner == CS_NONE || cs_cell_root(m, inner) == c) return false;
        c = cs_cell_root(m, inner);
    }
    return false;
}

/* The innermost block around both; CS_NONE is inside all. Cost: the depth. */
static uint32_t around(const cs_script *s, uint32_t a, uint32_t b)
{
    if (a == CS_NONE || b == CS_NONE) return a == CS_NONE ? b : a;
    while (a != b) { /* a block stands behind the one around it */
        uint32_t *later = a > b ? &a : &b;
        *later = s->lines.at[s->blocks.at[*later].owner].block;
    }
    return a;
}

static void meet_block(cs_memory *m, uint32_t cell, uint32_t block)
{
    if (cell == CS_NONE) return;
    cs_cell *c = &m->cells.at[cs_cell_root(m, cell)];
    c->block = c->outside ? 0 : around(m->s, c->block, block);
}

static void find_blocks(cs_memory *m)
{
    for (uint32_t v = 0; v < m->s->values.len; v++)
        meet_block(m, m->of[v], m->s->values.at[v].block);
    for (size_t i = 0; i < m->s->lines.len; i++)
        for (uint32_t k = 0; k < m->acts[i].n_write; k++)
            meet_block(m, m->refs.at[m->acts[i].write + k], m->s->lines.at[i].block);
}

cutset_status cs_memory_init(cs_memory *m, const cs_script *s, cs_schemas *schemas,
                             const cutset_torchscript *in, cutset_error *err)
{
    *m = (cs_memory){.s = s};
    bool ok = make_cells(m, in) && make_slots(m);
    for (uint32_t i = 0; ok && i < s->lines.len; i++)
        ok = visit(m, schemas, i, in);
    ok = ok && cs_acts_find(m, schemas, in);
    if (ok) find_blocks(m);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

void cs_memory_fini(cs_memory *m)
{
    cs_vec_fini(&m->cells);
    cs_free(m->of);
    cs_free(m->acts);
    cs_vec_fini(&m->refs);
    cs_map_fini(&m->slots);
    cs_map_fini(&m->attributes);
    cs_vec_fini(&m->pending);
}
