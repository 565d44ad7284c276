/* NodeProto -> a node with its arguments, outputs, attributes, bodies and captures.
 *
 * The fields may come in any order, so they are first gathered on the reader's stacks: names of
 * inputs and outputs, decoded attributes. What was pushed is popped before returning; bodies are
 * read in between and push on top.
 *
 * Its outputs were defined as values before any node was added (read_graph.c) in the same order, so
 * no name is looked up a second time.
 */
#include "onnx/read.h"

#include <stdio.h>
#include <string.h>

typedef struct fields {
    cs_span proto, name, op, domain, overload;
    size_t in, out, item; /* where its part of the stacks begins */
    size_t n_in, n_out, n_items;
} fields;

/* ---- the head, for the first pass ---- */

cutset_status cs_onnx_node_head(cs_reader *r, cs_span proto, cs_node_head *head)
{
    const cs_span none = {"", 0};
    *head = (cs_node_head){none, none, 0};
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        if (w.field == 1) {
            head->n_args++;
        } else if (w.field == 2 && cs_wire_expect(&w, CS_WIRE_BYTES)) {
            if (!cs_vec_push(&r->outs, w.bytes)) return cs_fail_memory(r->err);
        } else if (w.field == 4 && cs_wire_expect(&w, CS_WIRE_BYTES)) {
            head->op = w.bytes;
        } else if (w.field == 7 && cs_wire_expect(&w, CS_WIRE_BYTES)) {
            head->domain = w.bytes;
        }
    }
    return w.bad ? cs_wire_error(&w, "NodeProto", r->err) : CUTSET_OK;
}

cutset_status cs_onnx_blame(const cs_reader *r, cs_span proto)
{
    cs_span name = {"", 0}, out = name;
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        if (w.type != CS_WIRE_BYTES) continue;
        if (w.field == 3) name = w.bytes;
        if (w.field == 2 && out.len == 0) out = w.bytes;
    }
    if (out.len == 0) out = name;
    if (out.len > 0) cs_error_name(r->err, out.at, out.len);
    return CUTSET_BAD;
}

const char *cs_onnx_node_label(const cs_reader *r, cs_span proto, char buffer[512])
{
    cs_span name = {"", 0}, op = name, out = name;
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        if (w.type != CS_WIRE_BYTES) continue;
        if (w.field == 3) name = w.bytes;
        if (w.field == 4) op = w.bytes;
        if (w.field == 2 && out.len == 0) out = w.bytes;
    }
    if (op.len == 0) op = CS_SPAN("node");
    if (name.len > 0)
        snprintf(buffer, 512, "node '%.*s' (%.*s)", CS_FMT(name), CS_FMT(op));
    else if (out.len > 0)
        snprintf(buffer, 512, "the %.*s that makes '%.*s'", CS_FMT(op), CS_FMT(out));
    else
        snprintf(buffer, 512, "a nameless %.*s", CS_FMT(op));
    return buffer;
}

/* ---- gathering ---- */

static cutset_status read_field(cs_reader *r, const cs_scope *s, fields *f, cs_wire *w)
{
    switch (w->field) {
    case 1:
        if (cs_wire_expect(w, CS_WIRE_BYTES) && !cs_vec_push(&r->ins, w->bytes))
            return cs_fail_memory(r->err);
        break;
    case 2:
        if (cs_wire_expect(w, CS_WIRE_BYTES) && !cs_vec_push(&r->outs, w->bytes))
            return cs_fail_memory(r->err);
        break;
    case 3:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) f->name = w->bytes;
        break;
    case 4:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) f->op = w->bytes;
        break;
    case 5:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) return cs_onnx_push_attr(r, s, w->bytes);
        break;
    case 7:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) f->domain = w->bytes;
        break;
    case 8:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) f->overload = w->bytes;
        break;
    default:
        break;
    }
    return CUTSET_OK;
}

static cutset_status gather(cs_reader *r, const cs_scope *s, cs_span proto, fields *f)
{
    const cs_span none = {"", 0};
    *f = (fields){.proto = proto, .name = none, .op = none, .domain = none, .overload = none};
    f->in = r->ins.len;
    f->out = r->outs.len;
    f->item = r->items.len;
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w))
        CS_TRY(read_field(r, s, f, &w));
    if (w.bad) return cs_wire_error(&w, "NodeProto", r->err);
    f->n_in = r->ins.len - f->in;
    f->n_out = r->outs.len - f->out;
    f->n_items = r->items.len - f->item;
    return CUTSET_OK;
}

static void drop(cs_reader *r, const fields *f)
{
    r->ins.len = f->in;
    r->outs.len = f->out;
    r->items.len = f->item;
}

/* The same attribute twice would mean two things to two readers. */
static cutset_status check_attrs(cs_reader *r, const fields *f)
{
    const cs_item *at = r->items.at + f->item;
    const size_t n = f->n_items;
    cs_map seen = {0};
    bool room = true, twice = false;
    size_t i = 0;
    for (; i < n && room && !twice; i++) {
        if (n <= 16) {
            for (size_t j = 0; j < i; j++)
                twice = twice || at[j].name == at[i].name;
        } else {
            twice = cs_map_get(&seen, at[i].name) != CS_NONE;
            room = cs_map_put(&seen, at[i].name, 0);
        }
    }
    cs_map_fini(&seen);
    if (!room) return cs_fail_memory(r->err);
    if (!twice) return CUTSET_OK;
    char label[512];
    cs_onnx_bad(r, at[i - 1].proto, "%s has two attributes '%.*s': remove one",
                cs_onnx_node_label(r, f->proto, label), CS_FMT(cs_name(r->pool, at[i - 1].name)));
    return cs_onnx_blame(r, f->proto);
}

/* ---- the version of its domain ---- */

static cutset_status note_domain(cs_reader *r, cs_str domain)
{
    for (size_t i = 0; i < r->odd_domains.len; i++)
        if (r->odd_domains.at[i] == domain) return CUTSET_OK;
    if (r->odd_domains.len == 16) return CUTSET_OK;
    const cs_span name = domain == 0 ? CS_SPAN("ai.onnx") : cs_name(r->pool, domain);
    if (!cs_vec_push(&r->odd_domains, domain) ||
        !cs_note(r->pool, "domain '%.*s' is used but not imported: its version is not known",
                 CS_FMT(name)))
        return cs_fail_memory(r->err);
    return CUTSET_OK;
}

static cutset_status set_opset(cs_reader *r, const cs_scope *s, cs_node *n, bool function)
{
    const cs_graph *imports = s->imports;
    for (size_t i = 0; i < imports->opsets.len; i++) {
        if (imports->opsets.at[i].domain != n->domain) continue;
        const int64_t version = imports->opsets.at[i].version;
        n->opset = version > INT32_MAX ? INT32_MAX : (int32_t)version;
        return CUTSET_OK;
    }
    return function ? CUTSET_OK : note_domain(r, n->domain);
}

/* ---- arguments and outputs ---- */

static cutset_status add_args(cs_reader *r, cs_scope *s, const fields *f)
{
    for (size_t i = 0; i < f->n_in; i++) {
        const cs_span text = r->ins.at[f->in + i];
        uint32_t value = CS_NONE;
        bool found = true;
        if (text.len > 0) {
            const cs_str name = cs_strtab_find(&r->pool->names, text);
            found = name != CS_NONE;
            if (found) CS_TRY(cs_scope_resolve(r, s, name, &value, &found));
        }
        char label[512];
        if (!found) {
            cs_onnx_bad(r, text,
                        "%s reads '%.*s', which nothing makes: add the producer or fix the name "
                        "(file cut off?)",
                        cs_onnx_node_label(r, f->proto, label), CS_FMT(text));
            return cs_onnx_blame(r, f->proto);
        }
        if (!cs_graph_add_arg(s->graph, value)) return cs_fail_memory(r->err);
    }
    return CUTSET_OK;
}

static cutset_status add_outs(cs_reader *r, cs_scope *s, const fields *f)
{
    cs_graph *g = s->graph;
    for (size_t i = 0; i < f->n_out; i++) {
        uint32_t value = CS_NONE;
        if (r->outs.at[f->out + i].len > 0) {
            while (g->values.at[s->next_out].origin != CS_ORIGIN_NODE)
                s->next_out++; /* Constants lie in between */
            value = s->next_out++;
        }
        if (!cs_graph_add_out(g, value)) return cs_fail_memory(r->err);
    }
    return CUTSET_OK;
}

/* ---- random numbers ---- */

/* Dropout: in training mode, or where it may be; before opset 7 is_test says so, 7 to 11 never. */
static bool dropout_draws(const cs_graph *g, const cs_node *n)
{
    if (n->opset < 7) return n->opset > 0 && cs_node_int(g, n, "is_test", 0) == 0;
    const uint32_t training = n->opset < 12 ? CS_NONE : cs_node_arg(g, n, 2);
    if (training == CS_NONE) return false;
    const cs_storage *c = cs_value_const(g, training);
    return c == NULL || c->bytes < 1 || *(const unsigned char *)c->data != 0;
}

static bool draws(const cs_reader *r, const cs_graph *g, const cs_node *n)
{
    if (n->domain != 0) return false;
    const cs_span op = cs_name(r->pool, n->op);
    const char first = op.len == 0 ? '\0' : op.at[0];
    if (first == 'D') return cs_span_is(op, "Dropout") && dropout_draws(g, n);
    return (first == 'R' || first == 'B' || first == 'M') &&
           cs_op_is_random(r->pool, n->domain, n->op);
}

/* ---- bodies ---- */

static cutset_status add_bodies_of(cs_reader *r, cs_scope *s, const cs_item *item, bool *random)
{
    const uint32_t field = item->type == CS_ONNX_GRAPH ? 6 : 11;
    cs_wire w = cs_onnx_wire(r, item->proto); /* sound: it was walked before */
    while (cs_wire_next(&w)) {
        bool draw = false;
        if (w.field != field) continue;
        CS_TRY(cs_onnx_read_body(r, s, item->name, w.bytes, &draw));
        *random = *random || draw;
    }
    return CUTSET_OK;
}

/* Attributes but graphs, then graphs as bodies. A graph that comes through a function's call is no
 * body here: it was read, in its own place, as one of the call. */
static cutset_status add_attrs(cs_reader *r, cs_scope *s, const fields *f, bool *random)
{
    for (size_t i = 0; i < f->n_items; i++) {
        const cs_item *item = &r->items.at[f->item + i];
        const bool graph = item->type == CS_ONNX_GRAPH || item->type == CS_ONNX_GRAPHS;
        if (graph && !item->foreign) continue;
        if (!cs_graph_add_attr(s->graph, item->attr)) return cs_fail_memory(r->err);
    }
    for (size_t i = 0; i < f->n_items; i++) {
        const cs_item item = r->items.at[f->item + i]; /* the stack may move */
        const bool graph = item.type == CS_ONNX_GRAPH || item.type == CS_ONNX_GRAPHS;
        if (graph && !item.foreign) CS_TRY(add_bodies_of(r, s, &item, random));
    }
    return CUTSET_OK;
}

static cutset_status add_call(cs_reader *r, cs_scope *s, const fields *f, uint32_t id, bool *random)
{
    bool draw = false;
    CS_TRY(cs_onnx_call(r, s, id, f->item, f->n_items, f->proto, &draw));
    *random = *random || draw;
    return CUTSET_OK;
}

/* ---- all of it ---- */

static cutset_status build(cs_reader *r, cs_scope *s, const fields *f)
{
    cs_strtab_expect(&r->pool->names, f->name);
    for (size_t i = 0; i < f->n_in; i++)
        cs_strtab_expect(&r->pool->names, r->ins.at[f->in + i]);
    const cs_str op = cs_onnx_intern(r, f->op), domain = cs_onnx_domain(r, f->domain);
    const cs_str name = cs_onnx_intern(r, f->name), overload = cs_onnx_intern(r, f->overload);
    if (op == CS_NONE || domain == CS_NONE || name == CS_NONE || overload == CS_NONE)
        return cs_fail_memory(r->err);
    cs_graph *g = s->graph;
    const uint32_t id = cs_graph_add_node(g, op, domain, name);
    if (id == CS_NONE) return cs_fail_memory(r->err);
    const uint32_t function = cs_onnx_find_function(r, domain, op, overload);
    bool random = false;
    g->nodes.at[id].offset = cs_onnx_offset(r, f->proto);
    CS_TRY(set_opset(r, s, &g->nodes.at[id], function != CS_NONE));
    CS_TRY(add_args(r, s, f));
    CS_TRY(add_outs(r, s, f));
    CS_TRY(add_attrs(r, s, f, &random));
    if (function != CS_NONE) {
        g->nodes.at[id].flags |= CS_NODE_FUNCTION;
        CS_TRY(add_call(r, s, f, function, &random));
    }
    if (random || draws(r, g, &g->nodes.at[id])) {
        g->nodes.at[id].flags |= CS_NODE_RANDOM;
        s->random = true;
    }
    return CUTSET_OK;
}

cutset_status cs_onnx_add_node(cs_reader *r, cs_scope *s, cs_span proto)
{
    fields f;
    CS_TRY(gather(r, s, proto, &f));
    char label[512];
    if (f.op.len == 0) {
        cs_onnx_bad(r, proto, "%s has no op_type: name its operator",
                    cs_onnx_node_label(r, proto, label));
        return cs_onnx_blame(r, proto);
    }
    if (f.n_items > 1) CS_TRY(check_attrs(r, &f));
    CS_TRY(build(r, s, &f));
    drop(r, &f);
    return CUTSET_OK;
}
