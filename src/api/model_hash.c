/* The hash of a model: what a plan depends on, so that a plan of another model is refused.
 *
 * Covers the structure (nodes with operator, domain, opset, name, attributes, wiring, marks,
 * effects, bodies; values with name, declared type and origin; inputs, outputs, order edges,
 * groups, opsets), the size of every storage and the bytes of the small ones, and name and size of
 * the weight files. Not the bytes of large weights: hashing must not read them. Attributes that are
 * not decoded count by name.
 *
 * Values are told by their ids, which follow from the file. Lists are hashed with their length
 * first, so no two models share a stream. Cost: O(n + m); bodies are nested in a bounded depth.
 */
#include "api/model.h"
#include "plan/assemble.h"

typedef struct model_hasher {
    cs_hasher *h;
    cs_type_hashes types;
} model_hasher;

/* ids[first], ...: with n 0, `ids` may be NULL */
static void add_ids(cs_hasher *h, const uint32_t *ids, size_t first, size_t n)
{
    cs_hasher_add_u64(h, n);
    for (size_t i = 0; i < n; i++)
        cs_hasher_add_u64(h, ids[first + i]);
}

static void add_name(cs_hasher *h, const cs_graph *g, cs_str name)
{
    cs_hasher_add_span(h, cs_name(g->pool, name));
}

static bool add_values(model_hasher *m, const cs_graph *g)
{
    cs_hasher_add_u64(m->h, g->values.len);
    for (size_t i = 0; i < g->values.len; i++) {
        const cs_value *v = &g->values.at[i];
        add_name(m->h, g, v->name);
        cs_hasher_add_u64(m->h, v->origin | (uint64_t)v->kind << 8);
        cs_hasher_add_u64(m->h, (uint64_t)v->from << 32 | v->storage);
        if (!cs_hash_type(m->h, &m->types, g->pool, v->type)) return false;
    }
    return true;
}

static bool add_node(model_hasher *m, const cs_graph *g, const cs_node *n)
{
    add_name(m->h, g, n->domain);
    add_name(m->h, g, n->op);
    add_name(m->h, g, n->name);
    cs_hasher_add_u64(m->h, (uint64_t)(uint32_t)n->opset << 32 | n->flags);
    add_ids(m->h, g->args.at, n->arg, n->n_arg);
    add_ids(m->h, g->args.at, (size_t)n->arg + n->n_arg, n->n_capture);
    add_ids(m->h, g->outs.at, n->out, n->n_out);
    add_ids(m->h, g->writes.at, n->write, n->n_write);
    cs_hasher_add_u64(m->h, n->n_allow);
    for (uint32_t i = 0; i < n->n_allow; i++)
        add_name(m->h, g, g->allow.at[n->allow + i]);
    cs_hasher_add_u64(m->h, n->n_attr);
    for (uint32_t i = 0; i < n->n_attr; i++)
        if (!cs_hash_attr(m->h, &m->types, g->pool, &g->attrs.at[n->attr + i])) return false;
    return true;
}

/* Order edges as given: those that sealing adds follow from the nodes. */
static void add_order(cs_hasher *h, const cs_graph *g)
{
    cs_hasher_add_u64(h, g->n_given);
    for (size_t i = 0; i < g->n_given; i++)
        cs_hasher_add_u64(h, (uint64_t)g->order.at[i].from << 32 | g->order.at[i].to);
    for (size_t i = 0; i < g->aliases.len; i++)
        cs_hasher_add_u64(h, (uint64_t)g->aliases.at[i].value << 32 | g->aliases.at[i].of);
    cs_hasher_add_u64(h, g->groups.len);
    for (size_t i = 0; i < g->groups.len; i++) {
        const cs_group *group = &g->groups.at[i];
        add_name(h, g, group->name);
        add_ids(h, g->members.at, group->member, group->n_member);
        if (group->soft) cs_hasher_add_u64(h, 1);
    }
}

static bool add_graph(model_hasher *m, const cs_graph *g)
{
    cs_hasher_add_u64(m->h, g->opsets.len);
    for (size_t i = 0; i < g->opsets.len; i++) {
        add_name(m->h, g, g->opsets.at[i].domain);
        cs_hasher_add_u64(m->h, (uint64_t)g->opsets.at[i].version);
    }
    if (!add_values(m, g)) return false;
    add_ids(m->h, g->inputs.at, 0, g->inputs.len);
    add_ids(m->h, g->outputs.at, 0, g->outputs.len);
    cs_hasher_add_u64(m->h, g->nodes.len);
    for (size_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        if (!add_node(m, g, n)) return false;
        cs_hasher_add_u64(m->h, n->n_body);
        for (uint32_t b = 0; b < n->n_body; b++) {
            add_name(m->h, g, g->bodies.at[n->body + b].attr);
            if (!add_graph(m, g->bodies.at[n->body + b].graph)) return false;
        }
    }
    add_order(m->h, g);
    return true;
}

static void add_storages(cs_hasher *h, const cs_graph *g)
{
    cs_hasher_add_u64(h, g->storages.len);
    for (size_t i = 0; i < g->storages.len; i++)
        cs_hash_storage(h, &g->storages.at[i]);
}

static void add_files(cs_hasher *h, const cs_onnx *onnx)
{
    cs_hasher_add_u64(h, onnx->files.len);
    for (size_t i = 0; i < onnx->files.len; i++) {
        cs_hasher_add_span(h, cs_name(onnx->pool, onnx->files.at[i].location));
        cs_hasher_add_u64(h, onnx->files.at[i].size);
    }
}

uint64_t cs_model_hash(const cs_graph *graph, const cs_onnx *onnx_or_null, cutset_status *status)
{
    model_hasher m = {.h = cs_hasher_new()};
    *status = CUTSET_SYSTEM;
    if (m.h == NULL) return 0;
    const bool ok = add_graph(&m, graph);
    add_storages(m.h, graph);
    if (onnx_or_null != NULL) add_files(m.h, onnx_or_null);
    cs_vec_fini(&m.types);
    const uint64_t hash = cs_hasher_done(m.h);
    if (ok) *status = CUTSET_OK;
    return hash;
}
