/* Building a graph, and asking it.
 *
 * Every add appends to flat arrays; ranges of a node (args, outs, attrs, ...) stay contiguous
 * because only the last node grows. A full array (2^32 - 1 elements) is refused like a full memory.
 * Cost: constant, amortised, unless said otherwise.
 */
#include "graph/graph.h"

#include <assert.h>
#include <stdio.h>

/* ---- life ---- */

cs_graph *cs_graph_new(cs_pool *pool, cs_graph *outer)
{
    cs_graph *g = cs_zalloc(1, sizeof *g);
    if (!g) return NULL;
    g->pool = pool;
    g->outer = outer;
    return g;
}

void cs_graph_free(cs_graph *g)
{
    if (!g) return;
    for (size_t i = 0; i < g->bodies.len; i++)
        cs_graph_free(g->bodies.at[i].graph); /* as deep as bodies nest, which readers bound */
    cs_vec_fini(&g->opsets);
    cs_vec_fini(&g->nodes);
    cs_vec_fini(&g->values);
    cs_vec_fini(&g->storages);
    cs_vec_fini(&g->args);
    cs_vec_fini(&g->outs);
    cs_vec_fini(&g->aliases);
    cs_vec_fini(&g->attrs);
    cs_vec_fini(&g->bodies);
    cs_vec_fini(&g->allow);
    cs_vec_fini(&g->writes);
    cs_vec_fini(&g->exposed);
    cs_vec_fini(&g->groups);
    cs_vec_fini(&g->members);
    cs_vec_fini(&g->inputs);
    cs_vec_fini(&g->outputs);
    cs_vec_fini(&g->order);
    cs_vec_fini(&g->mutates);
    cs_free(g->use);
    cs_free(g->user);
    cs_free(g->topo);
    if (!g->outer) cs_pool_free(g->pool);
    cs_free(g);
}

/* ---- building ---- */

/* Appends x; false without memory or ids. */
#define PUSH(v, x) ((v)->len < CS_NONE - 1 && cs_vec_push((v), (x)))

static cs_node *last_node(cs_graph *g)
{
    assert(g->nodes.len > 0 && !g->sealed);
    return &g->nodes.at[g->nodes.len - 1];
}

uint32_t cs_graph_add_value(cs_graph *g, cs_str name, cs_type type, cs_origin origin)
{
    cs_value v = {
        .name = name, .type = type, .from = CS_NONE, .storage = CS_NONE, .origin = (uint8_t)origin};
    return PUSH(&g->values, v) ? (uint32_t)g->values.len - 1 : CS_NONE;
}

uint32_t cs_graph_add_storage(cs_graph *top, int64_t bytes, cs_elem elem, const void *data)
{
    cs_storage s = {.bytes = bytes, .elem = elem, .data = data};
    return PUSH(&top->storages, s) ? (uint32_t)top->storages.len - 1 : CS_NONE;
}

uint32_t cs_graph_add_node(cs_graph *g, cs_str op, cs_str domain, cs_str name)
{
    cs_node n = {.op = op,
                 .domain = domain,
                 .name = name,
                 .arg = (uint32_t)g->args.len,
                 .out = (uint32_t)g->outs.len,
                 .attr = (uint32_t)g->attrs.len,
                 .body = (uint32_t)g->bodies.len,
                 .allow = (uint32_t)g->allow.len,
                 .write = (uint32_t)g->writes.len};
    return PUSH(&g->nodes, n) ? (uint32_t)g->nodes.len - 1 : CS_NONE;
}

bool cs_graph_add_arg(cs_graph *g, uint32_t value_or_none)
{
    cs_node *n = last_node(g);
    assert(n->n_capture == 0);
    if (!PUSH(&g->args, value_or_none)) return false;
    n->n_arg++;
    return true;
}

bool cs_graph_add_capture(cs_graph *g, uint32_t value)
{
    if (!PUSH(&g->args, value)) return false;
    last_node(g)->n_capture++;
    return true;
}

bool cs_graph_add_out(cs_graph *g, uint32_t value_or_none)
{
    cs_node *n = last_node(g);
    if (!PUSH(&g->outs, value_or_none)) return false;
    n->n_out++;
    if (value_or_none != CS_NONE) {
        cs_value *v = &g->values.at[value_or_none];
        assert(v->origin == CS_ORIGIN_NODE && v->from == CS_NONE);
        v->from = (uint32_t)g->nodes.len - 1;
    }
    return true;
}

bool cs_graph_add_attr(cs_graph *g, cs_attr attr)
{
    if (!PUSH(&g->attrs, attr)) return false;
    last_node(g)->n_attr++;
    return true;
}

bool cs_graph_add_body(cs_graph *g, cs_str attr, cs_graph *body)
{
    cs_body b = {.attr = attr, .graph = body};
    if (!PUSH(&g->bodies, b)) return false;
    last_node(g)->n_body++;
    return true;
}

bool cs_graph_add_allow(cs_graph *g, cs_str target)
{
    if (!PUSH(&g->allow, target)) return false;
    last_node(g)->n_allow++;
    return true;
}

bool cs_graph_add_write(cs_graph *g, uint32_t value)
{
    if (!PUSH(&g->writes, value)) return false;
    last_node(g)->n_write++;
    return true;
}

bool cs_graph_add_alias(cs_graph *g, uint32_t value, uint32_t of)
{
    cs_alias alias = {value, of};
    return PUSH(&g->aliases, alias);
}

/* ---- reading ---- */

int64_t cs_graph_opset(const cs_graph *g, cs_str domain)
{
    /* Bodies use the imports of the model; the body of a function has its own. */
    while (g->opsets.len == 0 && g->outer)
        g = g->outer;
    for (size_t i = 0; i < g->opsets.len; i++)
        if (g->opsets.at[i].domain == domain) return g->opsets.at[i].version;
    return 0;
}

const cs_attr *cs_node_attr(const cs_graph *g, const cs_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_attr; i++) {
        const cs_attr *a = &g->attrs.at[n->attr + i];
        if (cs_span_is(cs_name(g->pool, a->name), name)) return a;
    }
    return NULL;
}

int64_t cs_node_int(const cs_graph *g, const cs_node *n, const char *name, int64_t otherwise)
{
    const cs_attr *a = cs_node_attr(g, n, name);
    return a && a->kind == CS_ATTR_INT ? a->i : otherwise;
}

uint32_t cs_node_arg(const cs_graph *g, const cs_node *n, uint32_t pos)
{
    return pos < n->n_arg ? g->args.at[n->arg + pos] : CS_NONE;
}

/* The storage of the weight that `value` is or captures, else CS_NONE; *g becomes the outermost
 * graph. */
static uint32_t weight_storage(const cs_graph **g, uint32_t value)
{
    while (value != CS_NONE && (*g)->values.at[value].origin == CS_ORIGIN_CAPTURE) {
        value = (*g)->values.at[value].from;
        *g = (*g)->outer;
    }
    bool weight = value != CS_NONE && (*g)->values.at[value].origin == CS_ORIGIN_WEIGHT;
    uint32_t storage = weight ? (*g)->values.at[value].storage : CS_NONE;
    while ((*g)->outer)
        *g = (*g)->outer;
    return storage;
}

const cs_storage *cs_value_const(const cs_graph *g, uint32_t value)
{
    uint32_t s = weight_storage(&g, value);
    return s != CS_NONE && g->storages.at[s].data ? &g->storages.at[s] : NULL;
}

bool cs_value_is_const(const cs_graph *g, uint32_t value)
{
    return weight_storage(&g, value) != CS_NONE;
}

int cs_value_ints(const cs_graph *g, uint32_t value, int64_t *out, int max)
{
    const cs_storage *s = cs_value_const(g, value);
    if (!s || (s->elem != CS_I64 && s->elem != CS_I32)) return -1;
    int64_t size = s->elem == CS_I64 ? 8 : 4, count = s->bytes / size;
    if (count > max) return -1;
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *p = (const unsigned char *)s->data + i * size;
        uint64_t bits = 0;
        for (int64_t b = 0; b < size; b++)
            bits |= (uint64_t)p[b] << (8 * b);
        out[i] = size == 8 ? (int64_t)bits : (int64_t)(int32_t)(uint32_t)bits;
    }
    return (int)count;
}

cs_span cs_node_label(const cs_graph *g, uint32_t node, char *buffer)
{
    const cs_node *n = &g->nodes.at[node];
    for (uint32_t i = 0; i < n->n_out; i++) {
        uint32_t v = g->outs.at[n->out + i];
        if (v != CS_NONE && g->values.at[v].name != 0)
            return cs_name(g->pool, g->values.at[v].name);
    }
    const uint32_t number = g->number ? g->number[node] : node;
    return (cs_span){buffer, (size_t)snprintf(buffer, 16, "$%u", number)};
}

void cs_error_node(cutset_error *err, const cs_graph *g, uint32_t node)
{
    char buffer[16];
    const cs_span label = cs_node_label(g, node, buffer);
    cs_error_name(err, label.at, label.len);
}

uint32_t cs_graph_find_node(const cs_graph *g, cs_span name)
{
    cs_str id = cs_strtab_find(&g->pool->names, name);
    for (size_t v = 0; id != CS_NONE && v < g->values.len; v++)
        if (g->values.at[v].name == id && g->values.at[v].origin == CS_ORIGIN_NODE)
            return g->values.at[v].from;
    int64_t index;
    bool digits = name.len > 1 && name.at[0] == '$' && name.at[1] >= '0' && name.at[1] <= '9';
    if (digits && cs_parse_i64((cs_span){name.at + 1, name.len - 1}, &index) &&
        index < (int64_t)g->nodes.len)
        return (uint32_t)index;
    return CS_NONE;
}

/* The operators of ONNX that draw random numbers in every version and mode. */
bool cs_op_is_random(const cs_pool *pool, cs_str domain, cs_str op)
{
    static const char *const names[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                        "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
    if (domain != 0) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cs_span_is(cs_name(pool, op), names[i])) return true;
    return false;
}

/* ---- storages ---- */

/* Nesting of bodies is bounded by the readers, so this may recurse. */
static bool body_storages(const cs_graph *body, bool (*take)(void *payload, uint32_t storage),
                          void *payload)
{
    for (size_t v = 0; v < body->values.len; v++)
        if (body->values.at[v].storage != CS_NONE && !take(payload, body->values.at[v].storage))
            return false;
    for (size_t b = 0; b < body->bodies.len; b++)
        if (!body_storages(body->bodies.at[b].graph, take, payload)) return false;
    return true;
}

bool cs_node_storages(const cs_graph *g, const cs_node *n,
                      bool (*take)(void *payload, uint32_t storage), void *payload)
{
    for (uint32_t i = 0; i < cs_n_reads(n); i++) {
        const uint32_t v = cs_args(g, n)[i];
        if (v != CS_NONE && g->values.at[v].storage != CS_NONE &&
            !take(payload, g->values.at[v].storage))
            return false;
    }
    for (uint32_t b = 0; b < n->n_body; b++)
        if (!body_storages(g->bodies.at[n->body + b].graph, take, payload)) return false;
    return true;
}

bool cs_node_writes(const cs_graph *g, const cs_node *n,
                    bool (*take)(void *payload, uint32_t value), void *payload)
{
    for (uint32_t i = 0; i < n->n_write; i++)
        if (!take(payload, g->writes.at[n->write + i])) return false;
    for (uint32_t b = 0; b < n->n_body; b++) {
        const cs_graph *body = g->bodies.at[n->body + b].graph;
        for (size_t m = 0; m < body->mutates.len; m++)
            if (!take(payload, body->values.at[body->mutates.at[m]].from)) return false;
    }
    return true;
}
