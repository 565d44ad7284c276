/* What each value of the model depends on: random numbers, f16 and bf16 boundaries.
 *
 * One pass in topological order: a value has the marks of all that its node reads (captures
 * included), and its own. A node is random when it or any node of its bodies is. A boundary of a
 * half float marks itself and what comes after it: ONNX Runtime has few kernels for these types on
 * a CPU and puts casts around the others; within one session it keeps f32 between two such nodes,
 * and a boundary makes it round. Cost: linear.
 */
#include <string.h>

#include "api/verify.h"

/* Is any node of the bodies below `node` random? A stack, since bodies nest as deep as a file
 * says. */
static cutset_status is_random(const cs_graph *g, const cs_node *node, bool *out, cutset_error *err)
{
    CS_VEC(const cs_graph *) todo = {0};
    bool random = node->flags & CS_NODE_RANDOM, full = false;
    for (uint32_t i = 0; i < node->n_body; i++)
        full = full || !cs_vec_push(&todo, g->bodies.at[node->body + i].graph);
    while (!random && !full && todo.len > 0) {
        const cs_graph *body = todo.at[--todo.len];
        for (size_t i = 0; !random && i < body->nodes.len; i++)
            random = body->nodes.at[i].flags & CS_NODE_RANDOM;
        for (size_t i = 0; !random && !full && i < body->bodies.len; i++)
            full = !cs_vec_push(&todo, body->bodies.at[i].graph);
    }
    cs_vec_fini(&todo);
    *out = random;
    return full ? cs_fail_memory(err) : CUTSET_OK;
}

static cs_elem inner_elem(const cs_graph *g, cs_type type)
{
    const cs_type_info *info = cs_type_get(g->pool, type);
    while (info->kind == CS_SEQ || info->kind == CS_OPT || info->kind == CS_MAP)
        info = cs_type_get(g->pool, info->inner);
    return info->elem;
}

static void mark_boundaries(cs_verify *v)
{
    const cs_graph *g = v->model->graph;
    for (size_t i = 0; i < v->plan->boundaries.len; i++) {
        const uint32_t id = v->plan->value_ids.at[v->plan->boundaries.at[i].value];
        const cs_elem e = inner_elem(g, g->values.at[id].type);
        v->marks[id] |= e == CS_F16 ? CS_MARK_F16 : e == CS_BF16 ? CS_MARK_BF16 : 0;
    }
}

cutset_status cs_verify_mark(cs_verify *v, cutset_error *err)
{
    const cs_graph *g = v->model->graph;
    v->marks = cs_zalloc(g->values.len + 1, 1);
    if (v->marks == NULL) return cs_fail_memory(err);
    mark_boundaries(v);
    for (size_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[g->topo[i]];
        bool random;
        const cutset_status status = is_random(g, n, &random, err);
        if (status) return status;
        unsigned marks = random ? CS_MARK_RANDOM : 0;
        for (uint32_t k = 0; k < cs_n_reads(n); k++)
            if (cs_args(g, n)[k] != CS_NONE) marks |= v->marks[cs_args(g, n)[k]];
        for (uint32_t k = 0; k < n->n_out; k++)
            if (cs_outs(g, n)[k] != CS_NONE) v->marks[cs_outs(g, n)[k]] |= (uint8_t)marks;
    }
    return CUTSET_OK;
}

uint32_t cs_verify_value(const cs_verify *v, cs_span name)
{
    const cs_graph *g = v->model->graph;
    for (size_t i = 0; i < v->plan->values.len; i++)
        if (cs_span_eq(cs_strtab_get(&v->plan->names, v->plan->values.at[i]), name))
            return v->plan->value_ids.at[i];
    for (size_t i = 0; i < g->outputs.len; i++)
        if (cs_span_eq(cs_name(g->pool, g->values.at[g->outputs.at[i]].name), name))
            return g->outputs.at[i];
    return CS_NONE;
}

cutset_status cs_verify_compare_named(const cs_verify *v, cs_span name, const OrtValue *whole,
                                      const OrtValue *parts, cs_difference *out, cutset_error *err)
{
    const cs_graph *g = v->model->graph;
    const uint32_t id = cs_verify_value(v, name);
    const cs_type type = id != CS_NONE ? g->values.at[id].type : 0;
    const cs_type_info *info = cs_type_get(g->pool, type);
    const bool ranked = info->kind == CS_TENSOR && info->rank >= 0;
    return cs_verify_compare(v->ort, whole, parts, id != CS_NONE ? v->marks[id] : 0,
                             ranked ? cs_type_dims(g->pool, type) : NULL,
                             ranked ? (size_t)info->rank : 0, out, err);
}
