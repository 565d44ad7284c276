/* The parts of a plan and the values that cross between them, from a layout.
 *
 * A value crosses when it is made in one part and read in another, which does not make it itself
 * as well: what is repeated stays inside. It counts into boundary_bytes
 * once, however many parts read it, where at least one of the parts is an engine. It must cross in
 * every plan with the same targets when a node on another target reads it: that sum is a bound.
 *
 * Values are numbered as parts first name them, inputs before outputs, parts in order: reading
 * plan.json gives the same numbers.
 */
#include "plan/assemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- strings ---- */

cs_str cs_plan_str(cutset_plan *plan, cs_span text)
{
    return cs_strtab_add(&plan->names, text, false);
}

uint32_t cs_op_index(cs_op_names *names, cutset_plan *plan, const cs_pool *pool,
                     const cs_node *node)
{
    const uint64_t key = (uint64_t)node->domain << 32 | node->op;
    const uint32_t known = cs_map_get(&names->ids, key);
    if (known != CS_NONE) return known;
    const cs_span op = cs_name(pool, node->op), domain = cs_name(pool, node->domain);
    cs_chars text = {0};
    cs_str str = CS_NONE;
    if (domain.len == 0) {
        str = cs_plan_str(plan, op);
    } else if (cs_vec_room(&text, domain.len + 1 + op.len)) {
        memcpy(text.at, domain.at, domain.len);
        text.at[domain.len] = ':';
        if (op.len > 0) memcpy(text.at + domain.len + 1, op.at, op.len);
        str = cs_plan_str(plan, (cs_span){text.at, domain.len + 1 + op.len});
    }
    cs_vec_fini(&text);
    const uint32_t index = (uint32_t)names->text.len;
    if (str == CS_NONE || !cs_vec_push(&names->text, str)) return CS_NONE;
    return cs_map_put(&names->ids, key, index) ? index : CS_NONE;
}

void cs_op_names_fini(cs_op_names *names)
{
    cs_map_fini(&names->ids);
    cs_vec_fini(&names->text);
}

cs_str cs_type_text(cs_type_names *known, cutset_plan *plan, const cs_pool *pool, cs_type type)
{
    if (type >= known->len) {
        const size_t more = pool->types.len - known->len;
        if (!cs_vec_room(known, more)) return CS_NONE;
        memset(known->at + known->len, 0xff, more * sizeof *known->at); /* CS_NONE */
        known->len += more;
    }
    if (known->at[type] != CS_NONE) return known->at[type];
    cs_chars text = {0};
    if (cs_type_print(pool, type, &text))
        known->at[type] = cs_plan_str(plan, (cs_span){text.at, text.len});
    cs_vec_fini(&text);
    return known->at[type];
}

cs_span cs_plan_target_name(const cutset_plan *plan, int32_t target)
{
    return target < 0 ? CS_SPAN("host")
                      : cs_strtab_get(&plan->names, plan->targets.at[target].name);
}

cs_str cs_part_file(cutset_plan *plan, uint32_t id, cs_span target)
{
    cs_chars text = {0};
    char head[32];
    const size_t len = (size_t)snprintf(head, sizeof head, "part-%03u-", id);
    cs_str file = CS_NONE;
    if (cs_vec_room(&text, len + target.len + 5)) {
        memcpy(text.at, head, len);
        if (target.len > 0) memcpy(text.at + len, target.at, target.len);
        memcpy(text.at + len + target.len, ".onnx", 5);
        file = cs_plan_str(plan, (cs_span){text.at, len + target.len + 5});
    }
    cs_vec_fini(&text);
    return file;
}

/* ---- operators ---- */

typedef struct op_counter {
    cs_op_names *names;
    CS_VEC(uint32_t) count;   /* by operator index, all zero between parts */
    CS_VEC(uint32_t) touched; /* operator indexes in this part */
} op_counter;

static bool count_op(op_counter *c, uint32_t op)
{
    if (op >= c->count.len) {
        if (!cs_vec_room(&c->count, op + 1 - c->count.len)) return false;
        memset(c->count.at + c->count.len, 0, (op + 1 - c->count.len) * sizeof *c->count.at);
        c->count.len = op + 1;
    }
    return c->count.at[op]++ > 0 || cs_vec_push(&c->touched, op);
}

static int by_count(const void *a, const void *b, void *names)
{
    const cs_op_count *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return cs_span_cmp(cs_strtab_get(names, x->op), cs_strtab_get(names, y->op));
}

void cs_ops_sort(cutset_plan *plan, const cs_part *part)
{
    if (part->n_op > 1)
        qsort_r(plan->ops.at + part->op, part->n_op, sizeof *plan->ops.at, by_count, &plan->names);
}

static bool count_ops(cutset_plan *plan, const cs_layout *l, cs_part *part, op_counter *c)
{
    const cs_graph *g = l->graph;
    for (uint32_t i = 0; i < part->n_node; i++) {
        const cs_node *n = &g->nodes.at[l->order[part->node + i]];
        const uint32_t op = cs_op_index(c->names, plan, g->pool, n);
        if (op == CS_NONE || !count_op(c, op)) return false;
    }
    part->op = (uint32_t)plan->ops.len;
    part->n_op = (uint32_t)c->touched.len;
    if (!cs_vec_room(&plan->ops, c->touched.len)) return false;
    for (size_t i = 0; i < c->touched.len; i++) {
        const uint32_t op = c->touched.at[i];
        plan->ops.at[plan->ops.len++] = (cs_op_count){c->names->text.at[op], c->count.at[op]};
        c->count.at[op] = 0;
    }
    c->touched.len = 0;
    cs_ops_sort(plan, part);
    return true;
}

/* ---- values ---- */

/* The number of graph value `v` in the plan; new ones are named and typed. CS_NONE: no memory. */
static uint32_t plan_value(cutset_plan *plan, const cs_graph *g, uint32_t *number, uint32_t v,
                           cs_type_names *types)
{
    if (number[v] != CS_NONE) return number[v];
    const cs_str name = cs_plan_str(plan, cs_name(g->pool, g->values.at[v].name));
    const cs_str type = cs_type_text(types, plan, g->pool, g->values.at[v].type);
    const uint32_t index = (uint32_t)plan->values.len;
    if (name == CS_NONE || type == CS_NONE || !cs_vec_push(&plan->values, name)) return CS_NONE;
    if (!cs_vec_push(&plan->value_types, type) || !cs_vec_push(&plan->value_ids, v)) return CS_NONE;
    return number[v] = index;
}

static bool add_refs(cutset_plan *plan, const cs_layout *l, cs_part *part, uint32_t *number,
                     cs_type_names *types)
{
    const uint32_t *at = l->io_start + 2 * (size_t)part->id;
    part->input = at[0];
    part->n_input = at[1] - at[0];
    part->output = at[1];
    part->n_output = at[2] - at[1];
    for (uint32_t i = at[0]; i < at[2]; i++) {
        const uint32_t value = plan_value(plan, l->graph, number, l->io.at[i], types);
        if (value == CS_NONE) return false;
        plan->refs.at[plan->refs.len++] = value;
    }
    return true;
}

/* ---- boundaries ---- */

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The parts other than its own that take `v` in, ascending, each once, appended to plan->readers. */
static bool add_readers(cutset_plan *plan, const cs_layout *l, uint32_t v, uint32_t *stamp)
{
    const size_t first = plan->readers.len;
    bool sorted = true;
    cs_takers t = {.l = l, .value = v};
    for (uint32_t p; (p = cs_layout_taker(&t)) != CS_NONE;) {
        if (stamp[p] == v + 1) continue;
        stamp[p] = v + 1;
        if (plan->readers.len > first && plan->readers.at[plan->readers.len - 1] > p)
            sorted = false;
        if (!cs_vec_push(&plan->readers, p)) return false;
    }
    if (!sorted)
        qsort(plan->readers.at + first, plan->readers.len - first, sizeof *plan->readers.at,
              ascending);
    return true;
}

static void count_bytes(cutset_plan *plan, const cs_boundary *b)
{
    if (b->bytes < 0) {
        plan->boundaries_unknown++;
        return;
    }
    const int32_t made_on = plan->parts.at[b->from].target;
    bool engine = made_on >= 0, must = false;
    for (uint32_t i = 0; i < b->n_to; i++) {
        const int32_t read_on = plan->parts.at[plan->readers.at[b->to + i]].target;
        engine = engine || read_on >= 0;
        must = must || read_on != made_on;
    }
    if (engine) plan->boundary_bytes = cs_sat_add(plan->boundary_bytes, b->bytes);
    if (must) plan->boundary_bytes_bound = cs_sat_add(plan->boundary_bytes_bound, b->bytes);
}

/* `stamp` is by part, zero. */
static bool add_boundaries(cutset_plan *plan, const cs_layout *l, const uint32_t *number,
                           uint32_t *stamp)
{
    const cs_graph *g = l->graph;
    for (uint32_t p = 0; p < l->n_parts; p++) {
        const uint32_t *at = l->io_start + 2 * (size_t)p;
        for (uint32_t i = at[1]; i < at[2]; i++) {
            const uint32_t v = l->io.at[i];
            const uint32_t first = (uint32_t)plan->readers.len;
            if (!add_readers(plan, l, v, stamp)) return false;
            if (plan->readers.len == first) continue; /* only a graph output */
            const cs_boundary b = {.value = number[v],
                                   .bytes = cs_value_bytes(g, v),
                                   .from = p,
                                   .to = first,
                                   .n_to = (uint32_t)plan->readers.len - first};
            if (!cs_vec_push(&plan->boundaries, b)) return false;
            count_bytes(plan, &b);
        }
    }
    return true;
}

/* ---- all parts ---- */

enum { AHEAD = 8 }; /* labels whose places are fetched before they are needed */

static bool add_labels(cutset_plan *plan, const cs_layout *l)
{
    const size_t n = l->graph->nodes.len;
    if (!cs_vec_room(&plan->nodes, n) || !cs_vec_room(&plan->node_label, n) ||
        !cs_strtab_room(&plan->names, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        char buffer[16];
        if (i + AHEAD < n)
            cs_strtab_expect(&plan->names, cs_node_label(l->graph, l->order[i + AHEAD], buffer));
        const cs_str label = cs_plan_str(plan, cs_node_label(l->graph, l->order[i], buffer));
        if (label == CS_NONE) return false;
        plan->nodes.at[plan->nodes.len++] = l->order[i];
        plan->node_label.at[plan->node_label.len++] = label;
        if (i % 65536 == 65535) cs_pool_rest(l->graph->pool);
    }
    return true;
}

/* Copies stand in the decision part by part. */
static bool add_copies(cutset_plan *plan, const cs_graph *g, const cs_decision *d)
{
    if (!cs_vec_room(&plan->copies, d->n_copies) || !cs_vec_room(&plan->copy_label, d->n_copies))
        return false;
    for (uint32_t i = 0; i < d->n_copies; i++) {
        char buffer[16];
        const cs_str label = cs_plan_str(plan, cs_node_label(g, d->copies[i].node, buffer));
        if (label == CS_NONE) return false;
        plan->copies.at[plan->copies.len++] = d->copies[i].node;
        plan->copy_label.at[plan->copy_label.len++] = label;
        plan->parts.at[d->copies[i].part].n_copy++;
    }
    uint32_t first = 0;
    for (size_t p = 0; p < plan->parts.len; first += plan->parts.at[p++].n_copy)
        plan->parts.at[p].copy = first;
    return true;
}

static bool add_part(cutset_plan *plan, const cs_layout *l, const cs_decision *d, uint32_t id)
{
    const int32_t target = d->part_target[id];
    cs_part part = {.id = id,
                    .target = target,
                    .file = cs_part_file(plan, id, cs_plan_target_name(plan, target)),
                    .node = l->start[id],
                    .n_node = l->start[id + 1] - l->start[id],
                    .oversized = d->part_oversized != NULL && d->part_oversized[id],
                    .same_as = -1,
                    .same_structure = -1};
    if (part.file == CS_NONE) return false;
    plan->parts.at[plan->parts.len++] = part;
    return true;
}

cutset_status cs_parts_build(cutset_plan *plan, const cs_layout *l, const cs_decision *d,
                             cs_op_names *ops, cs_type_names *types, cutset_error *err)
{
    op_counter counter = {.names = ops};
    uint32_t *number = cs_alloc(l->graph->values.len, sizeof *number);
    uint32_t *stamp = cs_zalloc(l->n_parts, sizeof *stamp);
    bool ok = number != NULL && stamp != NULL && add_labels(plan, l) &&
              cs_vec_room(&plan->parts, l->n_parts) && cs_vec_room(&plan->refs, l->io.len);
    if (ok) memset(number, 0xff, l->graph->values.len * sizeof *number); /* CS_NONE */
    for (uint32_t p = 0; ok && p < l->n_parts; p++) {
        ok = add_part(plan, l, d, p) && count_ops(plan, l, &plan->parts.at[p], &counter) &&
             add_refs(plan, l, &plan->parts.at[p], number, types);
        if (p % 4096 == 4095) cs_pool_rest(l->graph->pool);
    }
    ok = ok && add_copies(plan, l->graph, d) && add_boundaries(plan, l, number, stamp);
    cs_vec_fini(&counter.count);
    cs_vec_fini(&counter.touched);
    cs_free(number);
    cs_free(stamp);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}
