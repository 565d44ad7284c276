/* One plan of the plans of a graph and its branches.
 *
 * Numbering is depth first: a part, then, where it is a node with branches of its own, the parts of
 * the first branch, then of the second. Engines, bounds and bytes are sums; the certificate and the
 * kind of the bound are those of the graph itself. What a branch repeats of an enclosing block is a
 * copy there, wherever it stood in the branch's own plan; so is a second node of one line
 * (torch.h), which stands behind the first, and no copy is needed where that is. Cost: linear, plus
 * the sorting of operators.
 */
#include <stdio.h>
#include <string.h>

#include "plan/assemble.h"
#include "plan/nest.h"

typedef struct merger {
    cutset_plan *to;
    const cs_plan_block *blocks;
    size_t n;
    cutset_plan *const *plans;
    const uint32_t *home;
    uint32_t **ids;         /* by block, by part: the part's new id */
    size_t *boundary;       /* by block: boundaries taken so far */
    uint32_t *values;       /* by block: where its values begin in `to` */
    uint32_t *seen;         /* by node of the block at hand: the part that has it, + 1 */
    CS_VEC(uint64_t) order; /* block << 32 | part */
} merger;

static bool put_str(merger *w, const cutset_plan *from, cs_str s, cs_str *out)
{
    *out = cs_plan_str(w->to, cs_strtab_get(&from->names, s));
    return *out != CS_NONE;
}

static bool put_strs(merger *w, const cutset_plan *from, const cs_strs *list, size_t first,
                     size_t n, cs_strs *out)
{
    if (!cs_vec_room(out, n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (!put_str(w, from, list->at[first + i], &out->at[out->len])) return false;
        out->len++;
    }
    return true;
}

/* ---- numbering ---- */

/* Branches by the part that they are in: rows over (block, part), in the order of blocks. */
static bool number_parts(merger *w)
{
    typedef struct place {
        uint32_t block, part;
    } place;
    CS_VEC(place) stack = {0};
    uint32_t *next = cs_alloc(w->n, sizeof *next);   /* the next branch in the same part */
    uint32_t **head = cs_zalloc(w->n, sizeof *head); /* by block, by part: the first */
    bool ok = next && head;
    for (size_t b = 0; ok && b < w->n; b++) {
        if (!w->plans[b]) continue;
        const size_t n = w->plans[b]->parts.len;
        w->ids[b] = cs_alloc(n, sizeof **w->ids);
        head[b] = cs_alloc(n, sizeof **head);
        ok = w->ids[b] && head[b];
        if (ok && n > 0) memset(head[b], 0xff, n * sizeof **head);
    }
    for (size_t b = w->n; ok && b-- > 1;) {
        if (!w->plans[b]) continue;
        uint32_t *at = &head[w->blocks[b].owner][w->home[b]];
        next[b] = *at;
        *at = (uint32_t)b;
    }
    ok = ok && cs_vec_push(&stack, ((place){0, 0}));
    while (ok && stack.len > 0) {
        place *top = &stack.at[stack.len - 1];
        if (top->part == w->plans[top->block]->parts.len) {
            stack.len--;
            continue;
        }
        const place p = *top;
        top->part++;
        w->ids[p.block][p.part] = (uint32_t)w->order.len;
        ok = cs_vec_push(&w->order, (uint64_t)p.block << 32 | p.part);
        const size_t first = stack.len;
        for (uint32_t b = head[p.block][p.part]; ok && b != CS_NONE; b = next[b])
            ok = cs_vec_push(&stack, ((place){b, 0}));
        for (size_t i = first, j = stack.len; i + 1 < j--; i++) { /* the first on top */
            const place swap = stack.at[i];
            stack.at[i] = stack.at[j];
            stack.at[j] = swap;
        }
    }
    for (size_t b = 0; head && b < w->n; b++)
        cs_free(head[b]);
    cs_free(head);
    cs_free(next);
    cs_vec_fini(&stack);
    return ok;
}

/* ---- parts ---- */

/* A node of an enclosing block leaves the operators of the part. */
static void uncount(merger *w, cs_part *to, cs_str op)
{
    for (uint32_t i = to->op; i < to->op + to->n_op; i++) {
        if (w->to->ops.at[i].op != op || --w->to->ops.at[i].count > 0) continue;
        to->n_op--;
        memmove(w->to->ops.at + i, w->to->ops.at + i + 1,
                (w->to->ops.len - i - 1) * sizeof *w->to->ops.at);
        w->to->ops.len--;
        return;
    }
}

static bool put_ops(merger *w, const cutset_plan *from, const cs_part *part, cs_part *to)
{
    to->op = (uint32_t)w->to->ops.len;
    for (uint32_t i = 0; i < part->n_op; i++) {
        cs_op_count op = from->ops.at[part->op + i];
        if (!put_str(w, from, op.op, &op.op) || !cs_vec_push(&w->to->ops, op)) return false;
    }
    return true;
}

/* Is the node the second of one line, and the first in the part too? */
static bool is_there(const merger *w, size_t b, uint32_t node, const cs_part *to)
{
    const cs_plan_block *block = &w->blocks[b];
    const uint32_t *number = block->source.graph->number;
    return block->imported && block->imported[node] && node > 0 && !block->imported[node - 1] &&
           w->seen[node - 1] == to->id + 1 && number[node - 1] == number[node];
}

static bool put_copies(merger *w, size_t b, const cs_part *part, cs_part *to)
{
    const cutset_plan *from = w->plans[b];
    for (uint32_t i = part->copy; i < part->copy + part->n_copy; i++) {
        if (is_there(w, b, from->copies.at[i], to))
            to->n_copy--;
        else if (!put_strs(w, from, &from->copy_label, i, 1, &w->to->copy_label))
            return false;
    }
    return true;
}

/* Its nodes, but for those of enclosing blocks: these are copies. */
static bool put_nodes(merger *w, size_t b, const cs_part *part, cs_part *to)
{
    const cutset_plan *from = w->plans[b];
    const bool *imported = w->blocks[b].imported;
    to->node = (uint32_t)w->to->node_label.len;
    to->copy = (uint32_t)w->to->copy_label.len;
    for (uint32_t i = part->node; i < part->node + part->n_node; i++)
        w->seen[from->nodes.at[i]] = to->id + 1;
    for (uint32_t i = part->node; i < part->node + part->n_node; i++) {
        const uint32_t node = from->nodes.at[i];
        const bool copy = imported && imported[node], there = is_there(w, b, node, to);
        cs_strs *labels = copy ? &w->to->copy_label : &w->to->node_label;
        if (!there && !put_strs(w, from, &from->node_label, i, 1, labels)) return false;
        if (!copy) continue;
        const cs_graph *g = w->blocks[b].source.graph;
        const cs_str op = cs_plan_str(w->to, cs_name(g->pool, g->nodes.at[node].op));
        if (op == CS_NONE) return false;
        uncount(w, to, op);
        to->n_node--;
        to->n_copy += !there;
    }
    cs_ops_sort(w->to, to);
    return put_copies(w, b, part, to);
}

static bool put_refs(merger *w, size_t b, const cs_part *part, cs_part *to)
{
    const cutset_plan *from = w->plans[b];
    to->input = (uint32_t)w->to->refs.len;
    to->output = to->input + part->n_input;
    for (uint32_t i = 0; i < part->n_input; i++)
        if (!cs_vec_push(&w->to->refs, from->refs.at[part->input + i] + w->values[b])) return false;
    for (uint32_t i = 0; i < part->n_output; i++)
        if (!cs_vec_push(&w->to->refs, from->refs.at[part->output + i] + w->values[b]))
            return false;
    return true;
}

/* "<id of the part around it>.<branch>" */
static bool put_block(merger *w, size_t b, cs_part *to)
{
    char text[32] = "";
    const cs_plan_block *block = &w->blocks[b];
    if (b > 0)
        snprintf(text, sizeof text, "%u.%u", w->ids[block->owner][w->home[b]], block->branch);
    to->block = cs_plan_str(w->to, cs_span_of(text));
    return to->block != CS_NONE;
}

static bool put_part(merger *w, size_t b, uint32_t p)
{
    const cutset_plan *from = w->plans[b];
    const cs_part *part = &from->parts.at[p];
    cs_part to = *part;
    to.id = w->ids[b][p];
    if (part->same_as >= 0) to.same_as = (int32_t)w->ids[b][part->same_as];
    if (part->same_structure >= 0) to.same_structure = (int32_t)w->ids[b][part->same_structure];
    to.file = cs_part_file(w->to, to.id, cs_plan_target_name(w->to, part->target));
    to.need = (uint32_t)w->to->needs.len;
    return to.file != CS_NONE && put_block(w, b, &to) && put_ops(w, from, part, &to) &&
           put_nodes(w, b, part, &to) && put_refs(w, b, part, &to) &&
           put_strs(w, from, &from->needs, part->need, part->n_need, &w->to->needs) &&
           cs_vec_push(&w->to->parts, to);
}

/* What the part gives out; a plan lists boundaries by the part that makes them. */
static bool put_boundaries(merger *w, size_t b, uint32_t p)
{
    const cutset_plan *from = w->plans[b];
    for (; w->boundary[b] < from->boundaries.len; w->boundary[b]++) {
        cs_boundary x = from->boundaries.at[w->boundary[b]];
        if (x.from != p) break;
        const uint32_t first = x.to;
        x.value += w->values[b];
        x.from = w->ids[b][p];
        x.to = (uint32_t)w->to->readers.len;
        for (uint32_t i = 0; i < x.n_to; i++)
            if (!cs_vec_push(&w->to->readers, w->ids[b][from->readers.at[first + i]])) return false;
        if (!cs_vec_push(&w->to->boundaries, x)) return false;
    }
    return true;
}

/* ---- the rest ---- */

static bool put_values(merger *w, size_t b)
{
    const cutset_plan *from = w->plans[b];
    w->values[b] = (uint32_t)w->to->values.len;
    return put_strs(w, from, &from->values, 0, from->values.len, &w->to->values) &&
           put_strs(w, from, &from->value_types, 0, from->value_types.len, &w->to->value_types);
}

static bool put_fallback(merger *w, size_t b)
{
    const cutset_plan *from = w->plans[b];
    for (size_t i = 0; i < from->fallback.len; i++) {
        cs_fallback f = from->fallback.at[i];
        if (!put_str(w, from, f.label, &f.label) || !put_str(w, from, f.name, &f.name) ||
            !put_str(w, from, f.op, &f.op) || !put_str(w, from, f.why, &f.why) ||
            !cs_vec_push(&w->to->fallback, f))
            return false;
    }
    return put_strs(w, from, &from->notes, 0, from->notes.len, &w->to->notes);
}

static void add_figures(cutset_plan *to, const cutset_plan *from)
{
    to->engines += from->engines;
    to->engines_bound += from->engines_bound;
    to->boundary_bytes = cs_sat_add(to->boundary_bytes, from->boundary_bytes);
    to->boundary_bytes_bound = cs_sat_add(to->boundary_bytes_bound, from->boundary_bytes_bound);
    to->boundaries_unknown += from->boundaries_unknown;
}

static bool put_model(merger *w, const cs_plan_whole *whole)
{
    const cutset_plan *top = w->plans[0];
    w->to->model_hash = top->model_hash;
    w->to->model_nodes = whole->nodes;
    w->to->model_weight_bytes = whole->weight_bytes;
    w->to->bound_kind = top->bound_kind;
    for (size_t t = 0; t < top->targets.len; t++) {
        cs_plan_target target = top->targets.at[t];
        if (!put_str(w, top, target.name, &target.name) || !cs_vec_push(&w->to->targets, target))
            return false;
    }
    for (size_t i = 0; i < top->inputs.len + top->outputs.len; i++) {
        const bool input = i < top->inputs.len;
        cs_plan_value v = input ? top->inputs.at[i] : top->outputs.at[i - top->inputs.len];
        if (!put_str(w, top, v.name, &v.name) || !put_str(w, top, v.type, &v.type)) return false;
        if (!input && v.from >= 0) v.from = (int32_t)w->ids[0][v.from];
        if (!(input ? cs_vec_push(&w->to->inputs, v) : cs_vec_push(&w->to->outputs, v)))
            return false;
    }
    return put_strs(w, top, &top->certificate, 0, top->certificate.len, &w->to->certificate);
}

static bool merge(merger *w, const cs_plan_whole *whole)
{
    bool ok = number_parts(w) && put_model(w, whole);
    for (size_t b = 0; ok && b < w->n; b++) {
        if (!w->plans[b]) continue;
        add_figures(w->to, w->plans[b]);
        ok = put_values(w, b) && put_fallback(w, b);
    }
    for (size_t i = 0; ok && i < w->order.len; i++) {
        const uint32_t b = (uint32_t)(w->order.at[i] >> 32), p = (uint32_t)w->order.at[i];
        ok = put_part(w, b, p) && put_boundaries(w, b, p);
    }
    return ok;
}

cutset_status cs_plan_merge(cutset_plan *into, const cs_plan_block *blocks, size_t n_blocks,
                            cutset_plan *const *plans, const uint32_t *home,
                            const cs_plan_whole *whole, cutset_error *err)
{
    merger w = {.to = into, .blocks = blocks, .n = n_blocks, .plans = plans, .home = home};
    w.ids = cs_zalloc(n_blocks, sizeof *w.ids);
    w.boundary = cs_zalloc(n_blocks, sizeof *w.boundary);
    w.values = cs_zalloc(n_blocks, sizeof *w.values);
    size_t most = 0;
    for (size_t b = 0; b < n_blocks; b++)
        if (blocks[b].source.graph->nodes.len > most) most = blocks[b].source.graph->nodes.len;
    w.seen = cs_zalloc(most, sizeof *w.seen);
    bool ok = w.ids && w.boundary && w.values && w.seen && merge(&w, whole);
    if (ok) ok = cs_plan_set_path(into, blocks[0].source.path, NULL) == CUTSET_OK;
    for (size_t b = 0; w.ids && b < n_blocks; b++)
        cs_free(w.ids[b]);
    cs_free(w.ids);
    cs_free(w.boundary);
    cs_free(w.values);
    cs_free(w.seen);
    cs_vec_fini(&w.order);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}
