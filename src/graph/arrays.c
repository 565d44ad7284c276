/* A graph from the flat arrays of cutset_model_build.
 *
 * Every index is checked before it is used; then values, nodes, writes, aliases, order edges and
 * groups are added in one pass each. Two things are found before sealing: weights that something
 * writes become inputs (they have no fixed bytes), and pure nodes made of other weights alone become
 * CS_NODE_REPEAT: constant expressions. Cost: linear.
 */
#include <stdio.h>

#include "graph/graph.h"

typedef struct reader {
    const cutset_graph *in;
    cs_graph *g;
    cutset_error *err;
    cs_type *types; /* by index into in->types */
    cs_str *ops;    /* by index into in->ops */
} reader;

#define BAD(r, ...) cs_fail((r)->err, CUTSET_BAD, "graph arrays: " __VA_ARGS__)

/* ---- checks ---- */

static cutset_status check_ids(const reader *r, const char *what, const uint32_t *ids, size_t n,
                               size_t limit)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= limit)
            return BAD(r, "%s[%zu] is %u: give an index below %zu", what, i, ids[i], limit);
    return CUTSET_OK;
}

/* The same, where CUTSET_NONE may stand. */
static cutset_status check_optional(const reader *r, const char *what, const uint32_t *ids,
                                    size_t n, size_t limit)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= limit && ids[i] != CUTSET_NONE)
            return BAD(r, "%s[%zu] is %u: give an index below %zu, or CUTSET_NONE", what, i, ids[i],
                       limit);
    return CUTSET_OK;
}

static cutset_status check_rows(const reader *r, const char *what, const uint32_t *rows, size_t n)
{
    if (n == 0) return CUTSET_OK;
    if (rows[0] != 0) return BAD(r, "%s[0] is %u: rows begin at 0", what, rows[0]);
    for (size_t i = 0; i < n; i++)
        if (rows[i + 1] < rows[i])
            return BAD(r, "%s[%zu] is %u, less than the row before: give ascending rows", what,
                       i + 1, rows[i + 1]);
    return CUTSET_OK;
}

/* Pairs (a, b) with a below `a_limit`. */
static cutset_status check_pairs(const reader *r, const char *what, const uint32_t *pairs, size_t n,
                                 size_t a_limit, size_t b_limit)
{
    for (size_t i = 0; i < n; i++)
        if (pairs[2 * i] >= a_limit || pairs[2 * i + 1] >= b_limit)
            return BAD(r, "pair %zu of %s is (%u, %u): give indices below %zu and %zu", i, what,
                       pairs[2 * i], pairs[2 * i + 1], a_limit, b_limit);
    return CUTSET_OK;
}

static cutset_status check_sizes(const reader *r)
{
    const cutset_graph *in = r->in;
    const size_t most = CS_NONE - 1;
    if (in->n_values > most || in->n_nodes > most || in->n_storages > most || in->n_ops > most ||
        in->n_types > most || in->n_order > most || in->n_groups > most)
        return BAD(r, "more than %zu entries: 32 bits number them", most);
    for (size_t i = 0; i < in->n_storages; i++)
        if (in->storage_bytes[i] < 0)
            return BAD(r, "storage_bytes[%zu] is negative: give its size", i);
    for (size_t i = 0; i < in->n_values; i++)
        if (in->value_kinds[i] > CUTSET_LIST)
            return BAD(r, "value_kinds[%zu] is %u: give a tensor, a scalar or a list", i,
                       in->value_kinds[i]);
    return CUTSET_OK;
}

static cutset_status check(const reader *r)
{
    const cutset_graph *in = r->in;
    const size_t n = in->n_nodes, v = in->n_values;
    cutset_status s = check_sizes(r);
    if (!s) s = check_optional(r, "value_types", in->value_types, v, in->n_types);
    if (!s) s = check_optional(r, "value_storages", in->value_storages, v, in->n_storages);
    if (!s) s = check_ids(r, "inputs", in->inputs, in->n_inputs, v);
    if (!s) s = check_ids(r, "outputs", in->outputs, in->n_outputs, v);
    if (!s) s = check_ids(r, "node_ops", in->node_ops, n, in->n_ops);
    if (!s) s = check_rows(r, "arg_rows", in->arg_rows, n);
    if (!s) s = check_rows(r, "out_rows", in->out_rows, n);
    if (!s && n) s = check_ids(r, "args", in->args, in->arg_rows[n], v);
    if (!s && n) s = check_ids(r, "outs", in->outs, in->out_rows[n], v);
    if (!s) s = check_pairs(r, "writes", in->writes, in->n_writes, n, v);
    if (!s) s = check_pairs(r, "aliases", in->aliases, in->n_aliases, v, v);
    if (!s) s = check_pairs(r, "order", in->order, in->n_order, n, n);
    if (!s) s = check_rows(r, "group_rows", in->group_rows, in->n_groups);
    if (!s && in->n_groups)
        s = check_ids(r, "group_nodes", in->group_nodes, in->group_rows[in->n_groups], n);
    for (size_t i = 1; !s && i < in->n_writes; i++)
        if (in->writes[2 * i] < in->writes[2 * i - 2])
            s = BAD(r, "writes are not in the order of their nodes at pair %zu: sort them", i);
    return s;
}

/* ---- values ---- */

static cs_str add_name(const reader *r, const char **at)
{
    const cs_span text = cs_span_of(*at);
    *at += text.len + 1;
    return cs_strtab_add(&r->g->pool->names, text, false);
}

static cutset_status read_types(reader *r)
{
    const char *at = r->in->types;
    r->types = cs_alloc(r->in->n_types, sizeof *r->types);
    if (!r->types) return cs_fail_memory(r->err);
    for (size_t i = 0; i < r->in->n_types; i++) {
        const cs_span text = cs_span_of(at);
        const cutset_status s = cs_type_parse(r->g->pool, text, &r->types[i], r->err);
        if (s == CUTSET_BAD) cs_fail_in(r->err, "graph arrays: types");
        if (s) return s;
        at += text.len + 1;
    }
    return CUTSET_OK;
}

static cutset_status add_value(reader *r, size_t i, const char **name)
{
    const uint32_t storage = r->in->value_storages[i];
    const size_t before = r->g->pool->names.text.len;
    const cs_str s = add_name(r, name);
    if (s == CS_NONE) return cs_fail_memory(r->err);
    if (s < before)
        return BAD(r,
                   "value_names[%zu] is '%.*s', which is empty or named before: give each value "
                   "a name of its own",
                   i, CS_FMT(cs_name(r->g->pool, s)));
    const cs_origin origin = storage == CUTSET_NONE ? CS_ORIGIN_NODE : CS_ORIGIN_WEIGHT;
    const uint32_t v = cs_graph_add_value(r->g, s, 0, origin);
    if (v == CS_NONE) return cs_fail_memory(r->err);
    r->g->values.at[v].kind = r->in->value_kinds[i];
    r->g->values.at[v].storage = storage;
    return CUTSET_OK;
}

/* The element type of a storage is that of the first weight that has it. */
static void type_storages(cs_graph *g)
{
    for (size_t v = g->values.len; v-- > 0;) {
        const cs_value *value = &g->values.at[v];
        const cs_type_info *type = cs_type_get(g->pool, value->type);
        if (value->storage != CS_NONE) g->storages.at[value->storage].elem = type->elem;
    }
}

static cutset_status add_values(reader *r)
{
    const cutset_graph *in = r->in;
    for (size_t i = 0; i < in->n_storages; i++)
        if (cs_graph_add_storage(r->g, in->storage_bytes[i], CS_ELEM_NONE, NULL) == CS_NONE)
            return cs_fail_memory(r->err);
    if (!cs_strtab_room(&r->g->pool->names, in->n_values)) return cs_fail_memory(r->err);
    cutset_status s = CUTSET_OK;
    const char *name = in->value_names;
    for (size_t i = 0; !s && i < in->n_values; i++)
        s = add_value(r, i, &name);
    if (!s) s = read_types(r); /* after the names: symbols are interned with them */
    for (size_t i = 0; !s && i < in->n_values; i++)
        if (in->value_types[i] != CUTSET_NONE)
            r->g->values.at[i].type = r->types[in->value_types[i]];
    for (size_t i = 0; !s && i < in->n_inputs; i++) {
        cs_value *v = &r->g->values.at[in->inputs[i]];
        if (v->origin != CS_ORIGIN_NODE)
            return BAD(r, "inputs[%zu] is a weight, or an input already: name each input once", i);
        v->origin = CS_ORIGIN_INPUT;
        if (!cs_vec_push(&r->g->inputs, in->inputs[i])) return cs_fail_memory(r->err);
    }
    for (size_t i = 0; !s && i < in->n_outputs; i++)
        if (!cs_vec_push(&r->g->outputs, in->outputs[i])) return cs_fail_memory(r->err);
    if (!s) type_storages(r->g);
    return s;
}

/* ---- nodes ---- */

static cutset_status add_arg(reader *r, size_t node, uint32_t value)
{
    const cs_value *v = &r->g->values.at[value];
    if (v->origin == CS_ORIGIN_NODE && v->from == CS_NONE)
        return BAD(r, "node %zu reads '%.*s' before it is made: give nodes in program order", node,
                   CS_FMT(cs_name(r->g->pool, v->name)));
    return cs_graph_add_arg(r->g, value) ? CUTSET_OK : cs_fail_memory(r->err);
}

static cutset_status add_out(reader *r, size_t node, uint32_t value)
{
    const cs_value *v = &r->g->values.at[value];
    if (v->origin != CS_ORIGIN_NODE || v->from != CS_NONE)
        return BAD(r, "node %zu makes '%.*s', which is an input, a weight or made already", node,
                   CS_FMT(cs_name(r->g->pool, v->name)));
    return cs_graph_add_out(r->g, value) ? CUTSET_OK : cs_fail_memory(r->err);
}

static cutset_status add_node(reader *r, size_t i, size_t *write)
{
    static const uint32_t known = CUTSET_NODE_EFFECT | CUTSET_NODE_RANDOM | CUTSET_NODE_REPEAT |
                                  CUTSET_NODE_FOLLOW | CUTSET_NODE_FREE | CUTSET_NODE_EXEMPT |
                                  CUTSET_NODE_BOOKEND | CUTSET_NODE_ALONE | CUTSET_NODE_NO_PATTERN;
    const cutset_graph *in = r->in;
    const uint32_t flags = in->node_flags[i];
    if (flags & ~known) return BAD(r, "node_flags[%zu] has unknown bits: %#x", i, flags & ~known);
    if (in->out_rows[i] == in->out_rows[i + 1])
        return BAD(r, "node %zu makes no value: give it one, which also names it", i);
    if (cs_graph_add_node(r->g, r->ops[in->node_ops[i]], 0, 0) == CS_NONE)
        return cs_fail_memory(r->err);
    r->g->nodes.at[i].flags = flags;
    cutset_status s = CUTSET_OK;
    for (uint32_t k = in->arg_rows[i]; !s && k < in->arg_rows[i + 1]; k++)
        s = add_arg(r, i, in->args[k]);
    for (uint32_t k = in->out_rows[i]; !s && k < in->out_rows[i + 1]; k++)
        s = add_out(r, i, in->outs[k]);
    for (; !s && *write < in->n_writes && in->writes[2 * *write] == i; ++*write)
        if (!cs_graph_add_write(r->g, in->writes[2 * *write + 1])) s = cs_fail_memory(r->err);
    return s;
}

static cutset_status add_nodes(reader *r)
{
    const char *at = r->in->ops;
    r->ops = cs_alloc(r->in->n_ops, sizeof *r->ops);
    if (!r->ops) return cs_fail_memory(r->err);
    for (size_t i = 0; i < r->in->n_ops; i++)
        if ((r->ops[i] = add_name(r, &at)) == CS_NONE) return cs_fail_memory(r->err);
    cutset_status s = CUTSET_OK;
    size_t write = 0;
    for (size_t i = 0; !s && i < r->in->n_nodes; i++)
        s = add_node(r, i, &write);
    return s;
}

/* ---- what joins values and nodes ---- */

static cutset_status add_groups(reader *r)
{
    const cutset_graph *in = r->in;
    for (size_t i = 0; i < in->n_groups; i++) {
        char name[24];
        snprintf(name, sizeof name, "#%zu", i);
        const cs_group group = {.name = cs_strtab_add(&r->g->pool->names, cs_span_of(name), false),
                                .member = (uint32_t)r->g->members.len,
                                .n_member = in->group_rows[i + 1] - in->group_rows[i],
                                .soft = in->n_groups - i <= in->n_soft_groups};
        if (group.name == CS_NONE || !cs_vec_push(&r->g->groups, group))
            return cs_fail_memory(r->err);
        for (uint32_t k = in->group_rows[i]; k < in->group_rows[i + 1]; k++)
            if (!cs_vec_push(&r->g->members, in->group_nodes[k])) return cs_fail_memory(r->err);
    }
    return CUTSET_OK;
}

static cutset_status add_relations(reader *r)
{
    const cutset_graph *in = r->in;
    for (size_t i = 0; i < in->n_aliases; i++)
        if (!cs_graph_add_alias(r->g, in->aliases[2 * i], in->aliases[2 * i + 1]))
            return cs_fail_memory(r->err);
    for (size_t i = 0; i < in->n_order; i++) {
        const cs_edge edge = {in->order[2 * i], in->order[2 * i + 1]};
        if (!cs_vec_push(&r->g->order, edge)) return cs_fail_memory(r->err);
    }
    return add_groups(r);
}

/* ---- constant expressions ---- */

/* Where something is written, weights of one storage are aliases. */
static bool join_tied(cs_graph *g)
{
    uint32_t *first = cs_alloc(g->storages.len, sizeof *first);
    bool ok = first != NULL;
    for (size_t i = 0; ok && i < g->storages.len; i++)
        first[i] = CS_NONE;
    for (uint32_t v = 0; ok && v < g->values.len; v++) {
        const uint32_t storage = g->values.at[v].storage;
        if (storage == CS_NONE) continue;
        if (first[storage] == CS_NONE)
            first[storage] = v;
        else
            ok = cs_graph_add_alias(g, v, first[storage]);
    }
    cs_free(first);
    return ok;
}

/* Weights in a written class become inputs, after those that were given. */
static bool free_written(cs_graph *g, const uint32_t *root, const bool *written)
{
    for (uint32_t v = 0; v < g->values.len; v++) {
        cs_value *value = &g->values.at[v];
        if (value->origin != CS_ORIGIN_WEIGHT || !written[root[v]]) continue;
        value->origin = CS_ORIGIN_INPUT;
        value->storage = CS_NONE;
        if (!cs_vec_push(&g->inputs, v)) return false;
    }
    return true;
}

/* Is every value it reads a weight or made by a constant expression, and nothing it makes written? */
static bool is_constant(const cs_graph *g, const cs_node *n, const uint32_t *root,
                        const bool *written, const bool *constant)
{
    const uint32_t busy = CS_NODE_EFFECT | CS_NODE_RANDOM | CS_NODE_ALONE;
    if (n->flags & busy || n->n_write || !n->n_arg) return false;
    for (uint32_t i = 0; i < n->n_arg; i++)
        if (!constant[cs_args(g, n)[i]]) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (written[root[cs_outs(g, n)[i]]]) return false;
    return true;
}

static void mark_constants(cs_graph *g, const uint32_t *root, const bool *written, bool *constant)
{
    for (uint32_t v = 0; v < g->values.len; v++)
        constant[v] = g->values.at[v].origin == CS_ORIGIN_WEIGHT;
    for (size_t i = 0; i < g->nodes.len; i++) {
        cs_node *n = &g->nodes.at[i];
        if (!is_constant(g, n, root, written, constant)) continue;
        n->flags = (n->flags & ~(uint32_t)CS_NODE_FOLLOW) | CS_NODE_REPEAT;
        for (uint32_t k = 0; k < n->n_out; k++)
            constant[cs_outs(g, n)[k]] = true;
    }
}

/* A node that reads or makes memory that something writes is planned at its place. */
static void keep_in_place(cs_graph *g, const uint32_t *root, const bool *written)
{
    for (size_t i = 0; i < g->nodes.len; i++) {
        cs_node *n = &g->nodes.at[i];
        bool touches = n->n_write > 0 || n->flags & (CS_NODE_EFFECT | CS_NODE_RANDOM);
        for (uint32_t k = 0; k < n->n_arg; k++)
            touches |= written[root[cs_args(g, n)[k]]];
        for (uint32_t k = 0; k < n->n_out; k++)
            touches |= written[root[cs_outs(g, n)[k]]];
        if (touches) n->flags &= ~(uint32_t)CS_NODE_REPEAT;
    }
}

static cutset_status find_constants(reader *r)
{
    cs_graph *g = r->g;
    uint32_t *root = cs_alloc(g->values.len, sizeof *root);
    bool *written = cs_zalloc(g->values.len, sizeof *written);
    bool *constant = cs_alloc(g->values.len, sizeof *constant);
    bool ok = root && written && constant && (g->writes.len == 0 || join_tied(g));
    if (ok) cs_graph_classes(g, root);
    for (size_t i = 0; ok && i < g->writes.len; i++)
        written[root[g->writes.at[i]]] = true;
    ok = ok && free_written(g, root, written);
    if (ok) {
        keep_in_place(g, root, written);
        mark_constants(g, root, written, constant);
    }
    cs_free(root);
    cs_free(written);
    cs_free(constant);
    return ok ? CUTSET_OK : cs_fail_memory(r->err);
}

/* ---- all of it ---- */

static cutset_status fill(reader *r)
{
    cutset_status s = check(r);
    if (!s) s = add_values(r);
    if (!s) s = add_nodes(r);
    if (!s) s = add_relations(r);
    if (!s) s = find_constants(r);
    r->g->imperative = true;
    return s ? s : cs_graph_seal(r->g, r->err);
}

cutset_status cs_graph_from_arrays(cs_graph **out, const cutset_graph *in, cutset_error *err)
{
    cs_pool *pool = cs_pool_new();
    if (!pool) return cs_fail_memory(err);
    reader r = {.in = in, .g = cs_graph_new(pool, NULL), .err = err};
    if (!r.g) {
        cs_pool_free(pool);
        return cs_fail_memory(err);
    }
    const cutset_status s = fill(&r);
    cs_free(r.types);
    cs_free(r.ops);
    if (s)
        cs_graph_free(r.g);
    else
        *out = r.g;
    return s;
}
