/* GraphProto -> values, declared types, nodes and outputs of a graph or a body.
 *
 * In this order: the fields are gathered; every value is defined (initializers, inputs, then what
 * nodes make, Constants turned into weights on the way); value_info and outputs give types; only
 * then are nodes added, so that a node may stand before what it reads, and a body before the outer
 * value it captures. Every NodeProto is walked twice, everything else once.
 *
 * Recursion is over bodies only, which CS_WIRE_DEPTH bounds.
 */
#include "onnx/read.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- gathering ---- */

void cs_source_free(cs_source *src)
{
    cs_vec_fini(&src->nodes);
    cs_vec_fini(&src->positions);
    cs_vec_fini(&src->inputs);
    cs_vec_fini(&src->outputs);
    cs_vec_fini(&src->initializers);
    cs_vec_fini(&src->sparse);
    cs_vec_fini(&src->infos);
    cs_vec_fini(&src->imports);
    cs_vec_fini(&src->defaults);
}

static cs_spans *list_of(cs_source *src, uint32_t field)
{
    if (src->function) switch (field) {
        case 4:
            return &src->inputs;
        case 5:
            return &src->outputs;
        case 7:
            return &src->nodes;
        case 9:
            return &src->imports;
        case 11:
            return &src->defaults;
        case 12:
            return &src->infos;
        default:
            return NULL;
        }
    switch (field) {
    case 1:
        return &src->nodes;
    case 5:
        return &src->initializers;
    case 11:
        return &src->inputs;
    case 12:
        return &src->outputs;
    case 13:
        return &src->infos;
    case 15:
        return &src->sparse;
    default:
        return NULL;
    }
}

/* Room for all nodes and weights, exactly: there may be millions. */
static cutset_status reserve(cs_reader *r, cs_span proto, cs_source *src)
{
    size_t count[32] = {0};
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w))
        if (w.field < 32) count[w.field]++;
    for (uint32_t field = 1; field < 32; field++) {
        cs_spans *list = list_of(src, field);
        if (list == NULL || count[field] == 0) continue;
        if (count[field] > INT32_MAX)
            return cs_onnx_bad_at(r, proto, "over 2^31 fields of one kind: give fewer");
        if (!cs_vec_room(list, count[field])) return cs_fail_memory(r->err);
    }
    return CUTSET_OK;
}

static cutset_status read_annotation(cs_reader *r, cs_span proto)
{
    cs_span name = {"", 0};
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w))
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_BYTES)) name = w.bytes;
    if (w.bad) return cs_wire_error(&w, "TensorAnnotation", r->err);
    const cs_str id = cs_onnx_intern(r, name);
    if (id == CS_NONE || !cs_vec_push(&r->onnx->annotations, proto) ||
        !cs_vec_push(&r->onnx->annotated, id))
        return cs_fail_memory(r->err);
    return CUTSET_OK;
}

/* What the main graph has beside values and nodes. */
static cutset_status keep_field(cs_reader *r, cs_wire *w)
{
    if (w->field == 14) {
        if (cs_wire_expect(w, CS_WIRE_BYTES)) return read_annotation(r, w->bytes);
        return CUTSET_OK;
    }
    return cs_vec_push(&r->onnx->graph_fields, w->raw) ? CUTSET_OK : cs_fail_memory(r->err);
}

static cutset_status gather(cs_reader *r, cs_span proto, bool main, cs_source *src)
{
    CS_TRY(reserve(r, proto, src));
    src->name = (cs_span){"", 0};
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        cs_spans *list = list_of(src, w.field);
        if (list != NULL) {
            if (cs_wire_expect(&w, CS_WIRE_BYTES) && !cs_vec_push(list, w.bytes))
                return cs_fail_memory(r->err);
            continue;
        }
        if (!src->function && w.field == 2 && cs_wire_expect(&w, CS_WIRE_BYTES))
            src->name = w.bytes;
        if (main) CS_TRY(keep_field(r, &w));
    }
    if (w.bad) return cs_wire_error(&w, src->function ? "FunctionProto" : "GraphProto", r->err);
    return CUTSET_OK;
}

cutset_status cs_onnx_gather(cs_reader *r, cs_span proto, bool function, cs_source *src)
{
    *src = (cs_source){.function = function};
    return gather(r, proto, false, src);
}

/* ---- values ---- */

/* The first node that has this output, for a message. */
static cs_span find_maker(cs_reader *r, const cs_source *src, cs_span name)
{
    for (size_t i = 0; src != NULL && i < src->nodes.len; i++) {
        cs_wire w = cs_onnx_wire(r, src->nodes.at[i]);
        while (cs_wire_next(&w))
            if (w.field == 2 && w.type == CS_WIRE_BYTES && cs_span_eq(w.bytes, name))
                return src->nodes.at[i];
    }
    return (cs_span){"", 0};
}

static cutset_status fail_twice(cs_reader *r, const cs_scope *s, cs_str name, uint32_t first,
                                cs_origin origin, cs_span at)
{
    static const char *const makers[] = {
        [CS_ORIGIN_INPUT] = "a graph input", [CS_ORIGIN_WEIGHT] = "an initializer or a Constant"};
    const cs_span text = cs_name(r->pool, name);
    char one[512], two[512];
    const cs_origin was = first == CS_NONE /* an input that this call of a function leaves out */
                              ? CS_ORIGIN_INPUT
                              : (cs_origin)s->graph->values.at[first].origin;
    const char *a = was == CS_ORIGIN_NODE
                        ? cs_onnx_node_label(r, find_maker(r, s->source, text), one)
                        : makers[was];
    const char *b = origin == CS_ORIGIN_NODE ? cs_onnx_node_label(r, at, two) : makers[origin];
    cs_onnx_bad(r, at, "value '%.*s' is made twice: by %s, and by %s: give each value one origin",
                CS_FMT(text), a, b);
    return origin == CS_ORIGIN_NODE ? cs_onnx_blame(r, at) : CUTSET_BAD;
}

cutset_status cs_onnx_define(cs_reader *r, cs_scope *s, cs_str name, cs_type type, cs_origin origin,
                             cs_span at, uint32_t *value)
{
    if (cs_scope_here(r, s, name, value)) return fail_twice(r, s, name, *value, origin, at);
    *value = cs_graph_add_value(s->graph, name, type, origin);
    if (*value == CS_NONE || !cs_scope_bind(r, s, name, *value)) return cs_fail_memory(r->err);
    const cs_span none = {NULL, 0};
    if (s->depth == 1 && !cs_vec_push(&r->onnx->value_infos, none)) return cs_fail_memory(r->err);
    return CUTSET_OK;
}

/* An initializer that is listed as an input: below IR 4 a constant, else a default. */
static cutset_status default_input(cs_reader *r, cs_scope *s, uint32_t value, cs_type type,
                                   cs_span proto)
{
    cs_value *v = &s->graph->values.at[value];
    if (s->depth == 1) r->onnx->value_infos.at[value] = proto;
    if (r->onnx->ir_version < 4) {
        r->inputs_dropped++;
        return CUTSET_OK;
    }
    v->origin = CS_ORIGIN_INPUT;
    const cs_type_info *info = cs_type_get(r->pool, type);
    if (info->kind == CS_TENSOR && info->elem != CS_ELEM_NONE) v->type = type;
    return cs_vec_push(&s->graph->inputs, value) ? CUTSET_OK : cs_fail_memory(r->err);
}

static cutset_status define_input(cs_reader *r, cs_scope *s, cs_span proto)
{
    cs_span text;
    cs_type type;
    uint32_t v;
    CS_TRY(cs_onnx_read_info(r, proto, &text, &type));
    if (text.len == 0) return cs_onnx_bad_at(r, proto, "a graph input without a name: name it");
    const cs_str name = cs_onnx_intern(r, text);
    if (name == CS_NONE) return cs_fail_memory(r->err);
    if (cs_scope_here(r, s, name, &v) && s->graph->values.at[v].origin == CS_ORIGIN_WEIGHT)
        return default_input(r, s, v, type, proto);
    CS_TRY(cs_onnx_define(r, s, name, type, CS_ORIGIN_INPUT, proto, &v));
    if (s->depth == 1) r->onnx->value_infos.at[v] = proto;
    return cs_vec_push(&s->graph->inputs, v) ? CUTSET_OK : cs_fail_memory(r->err);
}

/* The outputs of one node; sums up what adding all nodes will need. */
static cutset_status define_outs(cs_reader *r, cs_scope *s, cs_span proto, size_t base)
{
    for (size_t i = base; i < r->outs.len; i++) {
        uint32_t v;
        if (r->outs.at[i].len == 0) continue;
        const cs_str name = cs_onnx_intern(r, r->outs.at[i]);
        if (name == CS_NONE) return cs_fail_memory(r->err);
        CS_TRY(cs_onnx_define(r, s, name, 0, CS_ORIGIN_NODE, proto, &v));
    }
    return CUTSET_OK;
}

/* Now and then: tells the caller, and lets go of what was read. */
static cutset_status progress(cs_reader *r, cs_span at)
{
    if ((++r->steps & 0xffff) != 0) return CUTSET_OK;
    cs_pool_rest(r->pool);
    if (r->opts == NULL) return CUTSET_OK;
    return cs_progress(r->opts->progress, "reading", cs_onnx_offset(r, at), r->onnx->file.len,
                       r->err);
}

static cutset_status define_node_values(cs_reader *r, cs_scope *s, cs_source *src)
{
    size_t kept = 0, n_args = 0, n_outs = 0;
    cs_graph *g = s->graph;
    s->next_out = (uint32_t)g->values.len;
    for (size_t i = 0; i < src->nodes.len; i++) {
        const cs_span node = src->nodes.at[i];
        const size_t base = r->outs.len;
        cs_node_head head;
        CS_TRY(progress(r, node));
        CS_TRY(cs_onnx_node_head(r, node, &head));
        if (cs_onnx_is_constant(head.op, head.domain)) {
            r->outs.len = base;
            CS_TRY(cs_onnx_add_constant(r, s, node, (int32_t)i));
            continue;
        }
        n_args += head.n_args;
        n_outs += r->outs.len - base;
        CS_TRY(define_outs(r, s, node, base));
        r->outs.len = base;
        if (s->depth == 1 && !cs_vec_push(&src->positions, (int32_t)i))
            return cs_fail_memory(r->err);
        src->nodes.at[kept++] = node;
    }
    src->nodes.len = kept;
    if (!cs_vec_room(&g->nodes, kept) || !cs_vec_room(&g->args, n_args) ||
        !cs_vec_room(&g->outs, n_outs))
        return cs_fail_memory(r->err);
    return CUTSET_OK;
}

/* ---- declared types ---- */

/* The value of this graph that a ValueInfoProto speaks of; false: none here. Most files declare
 * types in the order of nodes, so the name after the last one is tried first. */
static bool find_value(cs_reader *r, const cs_scope *s, cs_span text, uint32_t *value)
{
    cs_str name = r->next_name;
    if (name >= r->pool->names.text.len || !cs_span_eq(cs_name(r->pool, name), text))
        name = cs_strtab_find(&r->pool->names, text);
    if (name != CS_NONE) r->next_name = name + 1;
    return name != CS_NONE && cs_scope_here(r, s, name, value) && *value != CS_NONE;
}

static cutset_status set_type(cs_reader *r, cs_value *v, cs_type type)
{
    cs_type both;
    if (v->origin != CS_ORIGIN_NODE && v->origin != CS_ORIGIN_INPUT) return CUTSET_OK;
    const bool agree = cs_type_meet(r->pool, type, v->type, &both);
    if (both == CS_NONE) return cs_fail_memory(r->err);
    if (!agree && !cs_note(r->pool,
                           "value '%.*s': its type as graph output differs from the one "
                           "declared for it elsewhere",
                           CS_FMT(cs_name(r->pool, v->name))))
        return cs_fail_memory(r->err);
    if (agree || v->origin == CS_ORIGIN_NODE) v->type = both;
    return CUTSET_OK;
}

static cutset_status read_info(cs_reader *r, cs_scope *s, cs_span proto, bool output)
{
    cs_span text;
    cs_type type;
    uint32_t value;
    CS_TRY(cs_onnx_read_info(r, proto, &text, &type));
    if (!find_value(r, s, text, &value)) return CUTSET_OK;
    cs_value *v = &s->graph->values.at[value];
    if (output)
        CS_TRY(set_type(r, v, type));
    else if (v->origin == CS_ORIGIN_NODE)
        v->type = type; /* a second value_info of one value: the last counts */
    if (s->depth > 1) return CUTSET_OK;
    cs_span *kept = &r->onnx->value_infos.at[value];
    if (v->origin == CS_ORIGIN_NODE || kept->at == NULL) *kept = proto;
    return CUTSET_OK;
}

static cutset_status declare_types(cs_reader *r, cs_scope *s, const cs_source *src)
{
    for (size_t i = 0; i < src->infos.len; i++) {
        CS_TRY(progress(r, src->infos.at[i]));
        CS_TRY(read_info(r, s, src->infos.at[i], false));
    }
    for (size_t i = 0; !src->function && i < src->outputs.len; i++)
        CS_TRY(read_info(r, s, src->outputs.at[i], true));
    return CUTSET_OK;
}

/* ---- outputs ---- */

/* An output of a function that is an input which this call leaves out. */
static uint32_t absent_input(const cs_scope *s, const cs_source *src, cs_span text)
{
    for (size_t i = 0; i < src->inputs.len; i++)
        if (cs_span_eq(src->inputs.at[i], text)) return s->graph->inputs.at[i];
    return CS_NONE;
}

static cutset_status add_output(cs_reader *r, cs_scope *s, const cs_source *src, cs_span proto)
{
    cs_span text = proto;
    cs_type type;
    uint32_t value;
    bool found;
    if (!src->function) CS_TRY(cs_onnx_read_info(r, proto, &text, &type));
    if (text.len == 0) return cs_onnx_bad_at(r, proto, "a graph output without a name: name it");
    const cs_str name = cs_onnx_intern(r, text);
    if (name == CS_NONE) return cs_fail_memory(r->err);
    CS_TRY(cs_scope_resolve(r, s, name, &value, &found));
    if (!found)
        return cs_onnx_bad(
            r, proto, "output '%.*s' of %s is made by nothing: add what makes it, or fix the name",
            CS_FMT(text),
            src->function   ? "a function"
            : s->depth == 1 ? "the graph"
                            : "a body");
    if (value == CS_NONE) value = absent_input(s, src, text);
    return cs_vec_push(&s->graph->outputs, value) ? CUTSET_OK : cs_fail_memory(r->err);
}

/* ---- all of it ---- */

cutset_status cs_onnx_fill(cs_reader *r, cs_scope *s, cs_source *src)
{
    s->source = src;
    s->graph->name = cs_onnx_intern(r, src->name);
    if (s->graph->name == CS_NONE) return cs_fail_memory(r->err);
    for (size_t i = 0; i < src->initializers.len; i++) {
        CS_TRY(progress(r, src->initializers.at[i]));
        CS_TRY(cs_onnx_add_initializer(r, s, src->initializers.at[i], false));
    }
    for (size_t i = 0; i < src->sparse.len; i++)
        CS_TRY(cs_onnx_add_initializer(r, s, src->sparse.at[i], true));
    for (size_t i = 0; !src->function && i < src->inputs.len; i++)
        CS_TRY(define_input(r, s, src->inputs.at[i]));
    CS_TRY(define_node_values(r, s, src));
    if (cs_in_function(s)) r->instance_nodes += src->nodes.len;
    CS_TRY(declare_types(r, s, src));
    for (size_t i = 0; i < src->nodes.len; i++) {
        CS_TRY(progress(r, src->nodes.at[i]));
        CS_TRY(cs_onnx_add_node(r, s, src->nodes.at[i]));
    }
    for (size_t i = 0; i < src->outputs.len; i++)
        CS_TRY(add_output(r, s, src, src->outputs.at[i]));
    s->source = NULL;
    return CUTSET_OK;
}

static cutset_status fill_body(cs_reader *r, cs_scope *s, cs_span proto)
{
    cs_source src = {0};
    cutset_status status = gather(r, proto, false, &src);
    if (status == CUTSET_OK) status = cs_onnx_fill(r, s, &src);
    cs_source_free(&src);
    return status == CUTSET_OK ? cs_graph_seal(s->graph, r->err) : status;
}

cutset_status cs_onnx_read_body(cs_reader *r, cs_scope *s, cs_str attr, cs_span proto, bool *random)
{
    cs_scope inner;
    CS_TRY(cs_onnx_enter(r, proto, 3)); /* node, attribute, graph */
    cs_graph *body = cs_graph_new(r->pool, s->graph);
    if (body == NULL) return cs_fail_memory(r->err);
    r->levels++;
    cs_scope_open(&inner, s, body, false);
    cutset_status status = fill_body(r, &inner, proto);
    *random = inner.random;
    cs_scope_close(r, &inner);
    if (status == CUTSET_OK && !cs_graph_add_body(s->graph, attr, body))
        status = cs_fail_memory(r->err);
    if (status != CUTSET_OK) cs_graph_free(body);
    r->levels--;
    cs_onnx_leave(r, 3);
    return status;
}

static cutset_status note_dropped(cs_reader *r)
{
    if (r->inputs_dropped == 0) return CUTSET_OK;
    const bool noted = cs_note(r->pool,
                               "IR version %" PRId64 ": %zu initializers that are listed as graph "
                               "inputs too count as constants",
                               r->onnx->ir_version, r->inputs_dropped);
    return noted ? CUTSET_OK : cs_fail_memory(r->err);
}

cutset_status cs_onnx_read_main(cs_reader *r, cs_span proto)
{
    cs_scope s;
    cs_source src = {0};
    cs_scope_open(&s, NULL, r->top, false);
    r->levels = 1;
    cutset_status status = gather(r, proto, true, &src);
    if (status == CUTSET_OK) status = cs_onnx_fill(r, &s, &src);
    if (status == CUTSET_OK) {
        cs_onnx *o = r->onnx; /* takes over what is a record already */
        o->nodes.at = src.nodes.at, o->nodes.len = src.nodes.len, o->nodes.cap = src.nodes.cap;
        o->positions.at = src.positions.at, o->positions.len = src.positions.len;
        o->positions.cap = src.positions.cap;
        src.nodes = (cs_spans){0};
        src.positions.at = NULL;
        status = note_dropped(r);
    }
    cs_source_free(&src);
    cs_scope_close(r, &s);
    return status;
}
