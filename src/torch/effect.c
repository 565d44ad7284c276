/* What each line reads and writes, draws and causes.
 *
 * Writes first: they say which cells matter. A line reads the cells of its arguments and, unless it
 * only hands elements on (it makes, opens or indexes a container), what these hold, however deep. A
 * branch whose condition is known to say no does nothing. A line with blocks does what the lines
 * inside do; lines are taken last to first, so that these are known. Cost: linear in the text times
 * the depth of blocks.
 */
#include <string.h>

#include "torch/memory.h"

typedef struct finder {
    cs_memory *m;
    cs_schemas *t;
    const cutset_torchscript *in;
    const cs_ts_line *l;
    cs_act *act;
    uint32_t *stamp; /* by cell: 2 x line + 1 or 2, the last list it was put in */
    bool deep;       /* it looks into what its arguments hold */
    bool *dead;      /* by line: never run */
} finder;

/* Of a value that is false or zero as far as the text and the caller tell; -1: not known. */
static int truth_of(const cs_memory *m, const cutset_torchscript *in, uint32_t value)
{
    const uint32_t line = m->s->values.at[value].line;
    if (line == CS_NONE) return -1;
    const cs_ts_line *l = &m->s->lines.at[line];
    if (l->kind == CS_TS_CONSTANT) return l->truth;
    if (l->kind != CS_TS_GETATTR || !in->truth || cs_memory_is_set(m, l)) return -1;
    return in->truth[line] == 0 || in->truth[line] == 1 ? in->truth[line] : -1;
}

/* ---- branches that are never taken ---- */

/* Marks the lines of branches whose condition is known, and says no. */
static void find_dead(const cs_memory *m, const cutset_torchscript *in, bool *dead)
{
    const cs_script *s = m->s;
    for (uint32_t i = 0; i < s->lines.len; i++) {
        const cs_ts_line *l = &s->lines.at[i];
        if (l->kind != CS_TS_IF) continue;
        const int truth = truth_of(m, in, cs_ts_arg(s, l, 0));
        if (truth < 0) continue;
        const cs_ts_block *b = &s->blocks.at[s->inner.at[l->inner + (truth ? 1 : 0)]];
        for (uint32_t k = b->first; k < b->end && !dead[k]; k++) /* nested ones are marked once */
            dead[k] = true;
    }
}

/* ---- writes ---- */

static bool put(finder *f, uint32_t cell, uint32_t stamp, uint32_t *n)
{
    if (cell == CS_NONE) return true;
    cell = cs_cell_root(f->m, cell);
    if (f->stamp[cell] == stamp) return true;
    f->stamp[cell] = stamp;
    ++*n;
    return f->m->refs.len < CS_NONE - 1 && cs_vec_push(&f->m->refs, cell);
}

static uint32_t write_stamp(const finder *f)
{
    return 2 * (uint32_t)(f->l - f->m->s->lines.at) + 1;
}

static bool put_write(finder *f, uint32_t cell)
{
    if (cell == CS_NONE || f->dead[f->l - f->m->s->lines.at]) return true;
    f->m->cells.at[cs_cell_root(f->m, cell)].written = true;
    return put(f, cell, write_stamp(f), &f->act->n_write);
}

static bool argument_is(const finder *f, int16_t which, int truth)
{
    if (which < 0 || which >= (int)f->l->n_arg) return false;
    return truth_of(f->m, f->in, cs_ts_arg(f->m->s, f->l, (uint32_t)which)) == truth;
}

static bool take_sig(void *payload, const cs_sig *sig)
{
    finder *f = payload;
    const cs_script *s = f->m->s;
    const bool off = argument_is(f, sig->unless_false, 0) || argument_is(f, sig->unless_zero, 0);
    const bool idle = off && (!sig->random || sig->identity); /* then it does not write either */
    f->act->effect |= sig->effect;
    f->act->random |= sig->random && !off;
    f->act->derives |= sig->generic;
    f->deep |= !sig->generic;
    for (uint32_t i = 0; i < sig->n_ret; i++)
        f->act->derives |=
            cs_sig_ret(f->t, sig, i)->wild || cs_sig_ret(f->t, sig, i)->elements != 0;
    for (uint32_t i = 0; i < f->l->n_arg && i < sig->n_arg && !idle; i++) {
        const cs_sig_type *type = cs_sig_arg(f->t, sig, i);
        const uint32_t v = cs_ts_arg(s, f->l, i);
        const uint8_t base = s->values.at[v].type.base;
        f->act->derives |= type->elements != 0;
        if (type->write && base != CS_TS_NONE) {
            f->act->container |= base != CS_TS_TENSOR;
            if (!put_write(f, f->m->of[v])) return false;
        }
        if (type->write_elements && f->m->of[v] != CS_NONE &&
            !put_write(f, f->m->cells.at[cs_cell_of(f->m, v)].content))
            return false;
    }
    return true;
}

static bool operator_writes(finder *f)
{
    const cs_op *op = cs_schemas_find(f->t, f->m->s, f->l->op);
    if (!op) return false;
    f->deep = !op->known || op->n_sig == 0;
    if (op->known) return cs_schemas_fit(f->t, f->m->s, op, f->l, take_sig, f);
    f->act->unknown = f->act->effect = f->act->derives = true;
    const cs_span name = cs_name(f->m->s->pool, f->l->op);
    if ((cs_span_is(name, "prim::Enter") || cs_span_is(name, "prim::Exit")) &&
        !put_write(f, f->m->mode))
        return false;
    return put_write(f, f->m->wild);
}

static bool slot_writes(finder *f)
{
    const uint32_t object = cs_ts_arg(f->m->s, f->l, 0);
    f->act->container = true;
    return put_write(f, cs_memory_slot(f->m, f->l)) &&
           (f->m->s->values.at[object].path != CS_NONE || put_write(f, f->m->of[object]));
}

/* Of a line with blocks: what the lines inside write; they come later and are done. */
static bool inner_writes(finder *f, uint32_t line)
{
    const cs_script *s = f->m->s;
    f->act->derives = true;
    for (uint32_t i = line + 1; i < f->l->end; i = s->lines.at[i].end) {
        const cs_act inner = f->m->acts[i];
        if (f->dead[i]) continue;
        f->act->effect |= inner.effect;
        f->act->random |= inner.random;
        f->act->unknown |= inner.unknown;
        f->act->container |= inner.container;
        for (uint32_t k = 0; k < inner.n_write; k++)
            if (!put_write(f, f->m->refs.at[inner.write + k])) return false;
    }
    return true;
}

static bool find_writes(finder *f, uint32_t line)
{
    const cs_ts_line *l = f->l;
    f->act->write = (uint32_t)f->m->refs.len;
    f->act->node = l->kind != CS_TS_CONSTANT;
    switch ((cs_ts_kind)l->kind) {
    case CS_TS_GETATTR:
        /* of the module: no node, unless something sets it */
        f->act->node = cs_memory_is_set(f->m, l) || f->m->s->values.at[l->out].path == CS_NONE;
        f->act->derives = true;
        return true;
    case CS_TS_SETATTR:
        return slot_writes(f);
    case CS_TS_IF:
    case CS_TS_LOOP:
        return inner_writes(f, line);
    case CS_TS_UNPACK:
        f->act->derives = true;
        return true;
    case CS_TS_OPERATOR:
        return operator_writes(f);
    default:
        return true;
    }
}

/* ---- reads ---- */

static bool put_read(finder *f, uint32_t cell, uint32_t stamp)
{
    if (cell == CS_NONE || !f->m->cells.at[cs_cell_root(f->m, cell)].written) return true;
    return put(f, cell, stamp, &f->act->n_read);
}

static bool read_value(finder *f, uint32_t value, uint32_t stamp, bool deep)
{
    uint32_t c = cs_cell_of(f->m, value);
    for (unsigned depth = 0; c != CS_NONE; depth++) {
        if (!put_read(f, c, stamp)) return false;
        const uint32_t inner = deep ? f->m->cells.at[c].content : CS_NONE;
        if (inner == CS_NONE || cs_cell_root(f->m, inner) == c) return true;
        c = cs_cell_root(f->m, inner);
        if (depth > CS_SCRIPT_DEPTH) return put_read(f, f->m->wild, stamp);
    }
    return true;
}

static bool find_reads(finder *f, uint32_t line)
{
    const cs_script *s = f->m->s;
    const uint32_t stamp = 2 * line + 2;
    f->act->read = (uint32_t)f->m->refs.len;
    for (uint32_t i = 0; i < f->l->n_arg; i++)
        if (!read_value(f, cs_ts_arg(s, f->l, i), stamp, f->deep)) return false;
    if (f->act->unknown && !put_read(f, f->m->wild, stamp)) return false;
    /* an operator computes under the contexts that are entered; constructs do not care */
    const bool computes = f->l->kind == CS_TS_OPERATOR || f->l->kind == CS_TS_LOOP;
    for (uint32_t i = 0; i < f->l->n_out && computes; i++)
        if (cs_ts_has_memory(&s->values.at[f->l->out + i].type) && !put_read(f, f->m->mode, stamp))
            return false;
    if (f->l->kind == CS_TS_GETATTR && !put_read(f, cs_memory_slot(f->m, f->l), stamp))
        return false;
    for (uint32_t i = line + 1; i < f->l->end; i = s->lines.at[i].end) {
        const cs_act inner = f->m->acts[i];
        for (uint32_t k = 0; k < inner.n_read && !f->dead[i]; k++)
            if (!put_read(f, f->m->refs.at[inner.read + k], stamp)) return false;
    }
    return true;
}

bool cs_acts_find(cs_memory *m, cs_schemas *schemas, const cutset_torchscript *in)
{
    const size_t n = m->s->lines.len;
    m->acts = cs_zalloc(n, sizeof *m->acts);
    finder f = {.m = m, .t = schemas, .in = in};
    bool *deep = cs_zalloc(n, sizeof *deep);
    f.stamp = cs_zalloc(m->cells.len, sizeof *f.stamp);
    f.dead = cs_zalloc(n, sizeof *f.dead);
    bool ok = m->acts && f.stamp && deep && f.dead;
    if (ok) find_dead(m, in, f.dead);
    for (size_t i = n; ok && i-- > 0;) {
        f.l = &m->s->lines.at[i], f.act = &m->acts[i], f.deep = false;
        ok = find_writes(&f, (uint32_t)i);
        deep[i] = f.deep;
    }
    for (size_t i = n; ok && i-- > 0;) {
        f.l = &m->s->lines.at[i], f.act = &m->acts[i], f.deep = deep[i];
        ok = find_reads(&f, (uint32_t)i);
    }
    cs_free(f.stamp);
    cs_free(f.dead);
    cs_free(deep);
    return ok;
}
