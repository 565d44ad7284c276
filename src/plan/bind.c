/* Binding a plan that was read to a graph: names become ids, and the plan must fit the graph.
 *
 * Hashes first. Then every node of the graph must stand in exactly one part, every edge must go
 * from a part to itself or a later one with nodes in execution order, and the inputs and outputs of
 * each part must be those that follow from its nodes. Copies must be of nodes that may be repeated,
 * in topological order. So whoever uses a bound plan may trust it, even one that was written by
 * hand. A plan of nested blocks has nodes of several graphs and cannot be bound.
 *
 * plan.json writes bytes that are not UTF-8 as \xNN: such a name of the graph is looked up under
 * that spelling, and the plan then takes the graph's own bytes. Cost: O(n + m) expected.
 */
#include "plan/assemble.h"

#include <inttypes.h>
#include <string.h>

#define ANEW "make the plan anew with cutset plan"

typedef struct binder {
    cutset_plan *plan;
    const cs_graph *g;
    uint32_t *id_of; /* by string of the plan: node or value of that name; CS_NONE */
    size_t n_strings;
    uint32_t *start; /* n_parts + 1 */
    CS_VEC(cs_copy) copies;
    cs_chars text;   /* scratch */
    cutset_error *err;
} binder;

/* `name` as plan.json spells it; lives until the next call. False: no memory. */
static bool spell(binder *b, cs_span *name)
{
    static const char hex[] = "0123456789abcdef";
    if (cs_utf8_valid(*name)) return true;
    b->text.len = 0;
    for (size_t i = 0; i < name->len;) {
        const size_t step = cs_utf8_step(name->at + i, name->len - i);
        if (!cs_vec_room(&b->text, 4)) return false;
        char *to = b->text.at + b->text.len;
        if (step > 0) {
            memcpy(to, name->at + i, step);
        } else {
            const unsigned char c = (unsigned char)name->at[i];
            memcpy(to, (const char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
        }
        b->text.len += step > 0 ? step : 4;
        i += step > 0 ? step : 1;
    }
    *name = (cs_span){b->text.at, b->text.len};
    return true;
}

/* Notes that `str` means `id`, where it is a string that the plan had from the start. */
static void note(binder *b, cs_str str, uint32_t id, bool *twice)
{
    if (str == CS_NONE || str >= b->n_strings) return;
    *twice = *twice || (b->id_of[str] != CS_NONE && b->id_of[str] != id);
    b->id_of[str] = id;
}

/* Notes that `name`, as it is and as plan.json spells it, means `id`. *twice: it means something
 * else already. False: no memory. */
static bool mean(binder *b, cs_span name, uint32_t id, bool *twice)
{
    note(b, cs_strtab_find(&b->plan->names, name), id, twice);
    if (!spell(b, &name)) return false;
    note(b, cs_strtab_find(&b->plan->names, name), id, twice);
    return true;
}

/* Takes the graph's own bytes for a name that is not UTF-8. */
static bool take_name(binder *b, cs_span name, cs_str *str)
{
    if (cs_utf8_valid(name)) return true;
    *str = cs_plan_str(b->plan, name);
    return *str != CS_NONE;
}

static void forget(binder *b) { memset(b->id_of, 0xff, b->n_strings * sizeof *b->id_of); }

/* ---- nodes ---- */

/* Names still mean nodes. */
static cutset_status bind_copies(binder *b)
{
    cutset_plan *plan = b->plan;
    char buffer[16];
    plan->copies.len = b->copies.len = 0;
    if (!cs_vec_room(&plan->copies, plan->copy_label.len) ||
        !cs_vec_room(&b->copies, plan->copy_label.len))
        return cs_fail_memory(b->err);
    for (uint32_t p = 0; p < plan->parts.len; p++)
        for (uint32_t i = 0; i < plan->parts.at[p].n_copy; i++) {
            cs_str *label = &plan->copy_label.at[plan->parts.at[p].copy + i];
            const uint32_t node = *label < b->n_strings ? b->id_of[*label] : CS_NONE;
            if (node == CS_NONE || !(b->g->nodes.at[node].flags & CS_NODE_REPEAT))
                return cs_fail(b->err, CUTSET_BAD,
                               "the plan's parts[%u].copies has %.*s, which is no node of the model "
                               "that may be repeated: " ANEW,
                               p, CS_FMT(cs_strtab_get(&plan->names, *label)));
            b->copies.at[b->copies.len++] = (cs_copy){p, node};
            plan->copies.at[plan->copies.len++] = node;
            if (!take_name(b, cs_node_label(b->g, node, buffer), label))
                return cs_fail_memory(b->err);
        }
    return CUTSET_OK;
}

static cutset_status bind_nodes(binder *b)
{
    cutset_plan *plan = b->plan;
    const size_t n = b->g->nodes.len;
    char buffer[16];
    forget(b);
    for (uint32_t i = 0; i < n; i++) {
        bool twice = false;
        const cs_span label = cs_node_label(b->g, i, buffer);
        if (!mean(b, label, i, &twice)) return cs_fail_memory(b->err);
        if (twice)
            return cs_fail(b->err, CUTSET_BAD, "two nodes of the model are called %.*s: rename one",
                           CS_FMT(label));
    }
    if (plan->node_label.len != n)
        return cs_fail(b->err, CUTSET_BAD, "the plan has %zu nodes, the model has %zu: " ANEW,
                       plan->node_label.len, n);
    const cutset_status status = bind_copies(b);
    if (status != CUTSET_OK) return status;
    plan->nodes.len = 0;
    if (!cs_vec_room(&plan->nodes, n)) return cs_fail_memory(b->err);
    for (size_t i = 0; i < n; i++) {
        cs_str *label = &plan->node_label.at[i];
        const uint32_t node = *label < b->n_strings ? b->id_of[*label] : CS_NONE;
        if (node == CS_NONE)
            return cs_fail(b->err, CUTSET_BAD,
                           "the plan's node %.*s is not in the model, or in two parts: " ANEW,
                           CS_FMT(cs_strtab_get(&plan->names, *label)));
        b->id_of[*label] = CS_NONE; /* once only */
        plan->nodes.at[plan->nodes.len++] = node;
        if (!take_name(b, cs_node_label(b->g, node, buffer), label)) return cs_fail_memory(b->err);
    }
    return CUTSET_OK;
}

static cutset_status check_edge(const binder *b, const uint32_t *position, uint32_t from,
                                uint32_t to)
{
    if (position[from] < position[to]) return CUTSET_OK;
    char one[16], two[16];
    return cs_fail(b->err, CUTSET_BAD,
                   "the plan runs node %.*s before node %.*s, which it needs: " ANEW,
                   CS_FMT(cs_node_label(b->g, to, one)), CS_FMT(cs_node_label(b->g, from, two)));
}

/* `position` by node, in plan->nodes. */
static cutset_status check_order(const binder *b, const uint32_t *position)
{
    const cs_graph *g = b->g;
    cutset_status status = CUTSET_OK;
    for (uint32_t v = 0; status == CUTSET_OK && v < g->values.len; v++) {
        if (g->values.at[v].origin != CS_ORIGIN_NODE) continue;
        for (uint32_t i = g->use[v]; status == CUTSET_OK && i < g->use[v + 1]; i++)
            status = check_edge(b, position, g->values.at[v].from, g->user[i]);
    }
    for (size_t i = 0; status == CUTSET_OK && i < g->order.len; i++)
        status = check_edge(b, position, g->order.at[i].from, g->order.at[i].to);
    return status;
}

/* Copies of a part in topological order, none of its own nodes. `rank` is by node. */
static cutset_status check_copies(const binder *b, const cs_layout *l, const uint32_t *rank)
{
    const cs_copy *copies = b->copies.at;
    for (size_t i = 0; i < b->copies.len; i++) {
        const cs_copy c = copies[i];
        const bool sorted =
            i == 0 || copies[i - 1].part != c.part || rank[copies[i - 1].node] < rank[c.node];
        if (sorted && l->part[c.node] != c.part) continue;
        char buffer[16];
        return cs_fail(b->err, CUTSET_BAD,
                       "the plan's parts[%u].copies has %.*s out of order, or twice in the part: " ANEW,
                       c.part, CS_FMT(cs_node_label(b->g, c.node, buffer)));
    }
    return CUTSET_OK;
}

/* Does each part, copies included, run makers before readers, and take values from earlier parts
 * only? `made` is by value, zero. */
static cutset_status check_runs(const binder *b, const cs_layout *l, uint32_t *made)
{
    const cs_graph *g = b->g;
    for (uint32_t p = 0; p < l->n_parts; p++)
        for (uint32_t i = l->run_start[p]; i < l->run_start[p + 1]; i++) {
            const cs_node *n = &g->nodes.at[l->run[i]];
            const uint32_t *args = cs_args(g, n), *outs = cs_outs(g, n);
            for (uint32_t a = 0; a < cs_n_reads(n); a++) {
                const uint32_t v = args[a];
                if (v == CS_NONE || g->values.at[v].origin != CS_ORIGIN_NODE) continue;
                if (made[v] == p + 1 || l->part[g->values.at[v].from] < p) continue;
                char buffer[16];
                return cs_fail(b->err, CUTSET_BAD,
                               "the plan's parts[%u] runs %.*s before what it needs: " ANEW, p,
                               CS_FMT(cs_node_label(g, l->run[i], buffer)));
            }
            for (uint32_t o = 0; o < n->n_out; o++)
                if (outs[o] != CS_NONE) made[outs[o]] = p + 1;
        }
    return CUTSET_OK;
}

static cutset_status check_copied(const binder *b, const cs_layout *l)
{
    if (b->copies.len == 0) return CUTSET_OK;
    uint32_t *rank = cs_alloc(b->g->nodes.len, sizeof *rank);
    uint32_t *made = cs_zalloc(b->g->values.len, sizeof *made);
    cutset_status status = rank && made ? CUTSET_OK : cs_fail_memory(b->err);
    for (uint32_t i = 0; status == CUTSET_OK && i < b->g->nodes.len; i++)
        rank[b->g->topo[i]] = i;
    if (status == CUTSET_OK) status = check_copies(b, l, rank);
    if (status == CUTSET_OK) status = check_runs(b, l, made);
    cs_free(rank);
    cs_free(made);
    return status;
}

/* ---- values ---- */

static cutset_status bind_values(binder *b)
{
    cutset_plan *plan = b->plan;
    forget(b);
    for (uint32_t v = 0; v < b->g->values.len; v++) {
        bool twice = false;
        if (!mean(b, cs_name(b->g->pool, b->g->values.at[v].name), v, &twice))
            return cs_fail_memory(b->err);
    }
    plan->value_ids.len = 0;
    if (!cs_vec_room(&plan->value_ids, plan->values.len)) return cs_fail_memory(b->err);
    for (size_t i = 0; i < plan->values.len; i++) {
        cs_str *name = &plan->values.at[i];
        const uint32_t value = *name < b->n_strings ? b->id_of[*name] : CS_NONE;
        if (value == CS_NONE)
            return cs_fail(b->err, CUTSET_BAD, "the plan's value %.*s is not in the model: " ANEW,
                           CS_FMT(cs_strtab_get(&plan->names, *name)));
        plan->value_ids.at[plan->value_ids.len++] = value;
        if (!take_name(b, cs_name(b->g->pool, b->g->values.at[value].name), name))
            return cs_fail_memory(b->err);
    }
    return CUTSET_OK;
}

static cutset_status check_refs(const binder *b, const cs_layout *l, const cs_part *part,
                                const char *key, uint32_t first, uint32_t n, uint32_t begin,
                                uint32_t end)
{
    const cutset_plan *plan = b->plan;
    bool same = n == end - begin;
    for (uint32_t i = 0; same && i < n; i++)
        same = plan->value_ids.at[plan->refs.at[first + i]] == l->io.at[begin + i];
    if (same) return CUTSET_OK;
    return cs_fail(b->err, CUTSET_BAD,
                   "the plan's parts[%u].%s are not those that its nodes have in the model: " ANEW,
                   part->id, key);
}

/* ---- boundaries and outputs ---- */

static bool ascending(const uint32_t *x, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (x[i - 1] >= x[i]) return false;
    return true;
}

/* Do exactly the parts in b->to read it? `stamp` is by part, its marks so far are below `mark`. */
static bool readers_fit(const binder *b, const cs_layout *l, const cs_boundary *boundary,
                        uint32_t *stamp, uint32_t mark)
{
    const cs_graph *g = b->g;
    const uint32_t v = b->plan->value_ids.at[boundary->value];
    const cs_value *value = &g->values.at[v];
    if (value->origin != CS_ORIGIN_NODE || l->part[value->from] != boundary->from) return false;
    const uint32_t *to = b->plan->readers.at + boundary->to;
    if (!ascending(to, boundary->n_to)) return false;
    uint32_t found = 0;
    cs_takers t = {.l = l, .value = v};
    for (uint32_t p; (p = cs_layout_taker(&t)) != CS_NONE;) {
        if (stamp[p] == mark) continue;
        stamp[p] = mark;
        found++;
    }
    for (uint32_t i = 0; i < boundary->n_to; i++)
        if (stamp[to[i]] != mark) return false;
    return found == boundary->n_to;
}

/* The number of values that cross parts. */
static size_t crossing(const binder *b, const cs_layout *l)
{
    const cs_graph *g = b->g;
    size_t count = 0;
    for (uint32_t v = 0; v < g->values.len; v++) {
        cs_takers t = {.l = l, .value = v};
        count += g->values.at[v].origin == CS_ORIGIN_NODE && cs_layout_taker(&t) != CS_NONE;
    }
    return count;
}

static cutset_status check_boundaries(const binder *b, const cs_layout *l)
{
    const cutset_plan *plan = b->plan;
    if (plan->boundaries.len != crossing(b, l))
        return cs_fail(b->err, CUTSET_BAD,
                       "the plan's boundaries are not all values that cross: " ANEW);
    uint32_t *stamp = cs_zalloc(l->n_parts, sizeof *stamp);
    if (stamp == NULL) return cs_fail_memory(b->err);
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; status == CUTSET_OK && i < plan->boundaries.len; i++)
        if (!readers_fit(b, l, &plan->boundaries.at[i], stamp, (uint32_t)i + 1))
            status =
                cs_fail(b->err, CUTSET_BAD,
                        "the plan's boundaries[%zu] is not what the model has there: " ANEW, i);
    cs_free(stamp);
    return status;
}

static bool same_name(binder *b, uint32_t v, cs_str name)
{
    cs_span is = cs_name(b->g->pool, b->g->values.at[v].name);
    const cs_span told = cs_strtab_get(&b->plan->names, name);
    return cs_span_eq(is, told) || (spell(b, &is) && cs_span_eq(is, told));
}

static bool same_output(binder *b, const cs_layout *l, uint32_t v, const cs_plan_value *told)
{
    const cs_value *value = &b->g->values.at[v];
    int32_t from = CS_FROM_INPUT;
    if (value->origin == CS_ORIGIN_NODE) from = (int32_t)l->part[value->from];
    if (value->origin == CS_ORIGIN_WEIGHT) from = CS_FROM_WEIGHT;
    return told->from == from && same_name(b, v, told->name);
}

static cutset_status check_model(binder *b, const cs_layout *l)
{
    const cs_graph *g = b->g;
    const cutset_plan *plan = b->plan;
    bool same = plan->inputs.len == g->inputs.len && plan->outputs.len == g->outputs.len;
    for (size_t i = 0; same && i < g->inputs.len; i++)
        same = same_name(b, g->inputs.at[i], plan->inputs.at[i].name);
    for (size_t i = 0; same && i < g->outputs.len; i++)
        same = same_output(b, l, g->outputs.at[i], &plan->outputs.at[i]);
    if (same) return CUTSET_OK;
    return cs_fail(b->err, CUTSET_BAD,
                   "the plan's model.inputs or model.outputs are not those of the model: " ANEW);
}

/* ---- all of it ---- */

static cutset_status check_layout(binder *b)
{
    const cutset_plan *plan = b->plan;
    const uint32_t n_parts = (uint32_t)plan->parts.len;
    cs_layout l = {0};
    cutset_status status = cs_layout_take(&l, b->g, plan->nodes.at, b->start, n_parts, b->copies.at,
                                          (uint32_t)b->copies.len, b->err);
    if (status == CUTSET_OK) status = check_copied(b, &l);
    for (uint32_t p = 0; status == CUTSET_OK && p < n_parts; p++) {
        const cs_part *part = &plan->parts.at[p];
        const uint32_t *at = l.io_start + 2 * (size_t)p;
        status = check_refs(b, &l, part, "inputs", part->input, part->n_input, at[0], at[1]);
        if (status == CUTSET_OK)
            status = check_refs(b, &l, part, "outputs", part->output, part->n_output, at[1], at[2]);
    }
    if (status == CUTSET_OK) status = check_boundaries(b, &l);
    if (status == CUTSET_OK) status = check_model(b, &l);
    cs_layout_fini(&l);
    return status;
}

static cutset_status bind(binder *b, uint32_t *position)
{
    cutset_status status = bind_nodes(b);
    if (status != CUTSET_OK) return status;
    for (uint32_t i = 0; i < b->plan->nodes.len; i++)
        position[b->plan->nodes.at[i]] = i;
    for (size_t p = 0; p < b->plan->parts.len; p++)
        b->start[p + 1] = b->plan->parts.at[p].node + b->plan->parts.at[p].n_node;
    status = check_order(b, position);
    if (status == CUTSET_OK) status = bind_values(b);
    return status == CUTSET_OK ? check_layout(b) : status;
}

cutset_status cs_plan_bind(cutset_plan *plan, const cs_graph *graph, uint64_t hash,
                           cutset_error *err)
{
    if (plan->model_hash != hash)
        return cs_fail(err, CUTSET_BAD,
                       "the model has changed since the plan was made: plan has xxh3:%016" PRIx64
                       ", model has xxh3:%016" PRIx64 ": plan it again",
                       plan->model_hash, hash);
    for (size_t p = 0; p < plan->parts.len; p++)
        if (plan->parts.at[p].block != 0)
            return cs_fail(err, CUTSET_BAD,
                           "the plan's parts[%zu] is of the nested block %.*s: plans with such parts "
                           "are read by cutset.torchscript only",
                           p, CS_FMT(cs_strtab_get(&plan->names, plan->parts.at[p].block)));
    plan->bound = false;
    binder b = {.plan = plan, .g = graph, .n_strings = plan->names.text.len, .err = err};
    b.id_of = cs_alloc(b.n_strings, sizeof *b.id_of);
    b.start = cs_zalloc(plan->parts.len + 1, sizeof *b.start);
    uint32_t *position = cs_alloc(graph->nodes.len, sizeof *position);
    const bool ok = b.id_of != NULL && b.start != NULL && position != NULL;
    const cutset_status status = ok ? bind(&b, position) : cs_fail_memory(err);
    plan->bound = status == CUTSET_OK;
    cs_free(b.id_of);
    cs_free(b.start);
    cs_free(position);
    cs_vec_fini(&b.text);
    cs_vec_fini(&b.copies);
    return status;
}
