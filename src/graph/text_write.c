/* The text form, written: graph, opset, inputs, weights, nodes, order edges, groups, outputs.
 *
 * Reading it back gives the same graph, but for what the text has no words for: ONNX node names,
 * attributes that are kept undecoded, tensor data, bodies of model-local functions, aliases. A tied
 * weight is written as such where the weight it shares with can be named from its place. Order edges
 * that effects imply are left out, as reading implies them again, unless aliases had a part in them.
 * Names are bare where possible. Cost: linear; recursion only over nested bodies.
 */
#include "graph/text.h"

#include "graph/graph.h"

#include <errno.h>

/* The weight that stands for a storage at the moment: in the graph at hand or one around it. */
struct owner {
    const cs_graph *g; /* NULL: none */
    uint32_t value;
    int depth; /* of that graph */
};

struct writer {
    cs_out *out;
    const cs_graph *g; /* the graph at hand */
    int depth, indent;
    cs_chars chars;      /* a piece of a line, used again and again */
    struct owner *owner; /* by storage */
    int *defined;        /* by name: depth of the innermost definition in sight; NULL: no bodies */
    CS_VEC(int) hidden;  /* what entering bodies replaced in `defined` */
};

static void write_statements(struct writer *w);

/* ---- pieces ---- */

static void no_memory(struct writer *w)
{
    if (!w->out->failed) {
        w->out->failed = CUTSET_SYSTEM;
        w->out->saved_errno = ENOMEM;
    }
}

static void put(struct writer *w, const char *text) { cs_out_puts(w->out, text); }

/* Sends what a printing call appended to `chars`. */
static void flush(struct writer *w, bool ok)
{
    if (ok)
        cs_out_put(w->out, w->chars.at, w->chars.len);
    else
        no_memory(w);
    w->chars.len = 0;
}

static void put_name(struct writer *w, cs_str name)
{
    flush(w, cs_chars_name(&w->chars, cs_name(w->g->pool, name)));
}

static void put_string(struct writer *w, cs_span text)
{
    flush(w, cs_chars_quote(&w->chars, text));
}

static void put_type(struct writer *w, cs_type type, bool dense)
{
    flush(w, cs_chars_type(w->g->pool, type, dense, &w->chars));
}

static void put_int(struct writer *w, int64_t x) { cs_out_printf(w->out, "%lld", (long long)x); }

static void put_float(struct writer *w, float x)
{
    char text[32];
    cs_format_f32(x, text);
    put(w, text);
}

/* A value without a name gets one of ours, by its id and the depth of the graph that makes it. */
static void put_unnamed(struct writer *w, uint32_t v)
{
    const cs_graph *g = w->g;
    for (; g->values.at[v].origin == CS_ORIGIN_CAPTURE; g = g->outer)
        v = g->values.at[v].from;
    unsigned depth = 0;
    for (g = g->outer; g; g = g->outer)
        depth++;
    if (depth == 0)
        cs_out_printf(w->out, "\"#%u\"", v);
    else
        cs_out_printf(w->out, "\"#%u.%u\"", v, depth);
}

static void put_value(struct writer *w, uint32_t v)
{
    cs_str name = w->g->values.at[v].name;
    put(w, "%");
    if (name)
        put_name(w, name);
    else
        put_unnamed(w, v);
}

/* The node by its first present output, or by its index. */
static void put_node(struct writer *w, uint32_t node)
{
    const cs_node *n = &w->g->nodes.at[node];
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (cs_outs(w->g, n)[i] != CS_NONE) {
            put_value(w, cs_outs(w->g, n)[i]);
            return;
        }
    }
    cs_out_printf(w->out, "$%u", node);
}

static void begin_line(struct writer *w, const char *word)
{
    for (int i = 0; i < w->indent; i++)
        put(w, "  ");
    put(w, word);
}

/* ---- heads ---- */

static void write_opsets(struct writer *w)
{
    const cs_graph *g = w->g;
    int64_t version = 0; /* 0: ai.onnx is not used */
    for (size_t i = 0; i < g->opsets.len; i++)
        if (g->opsets.at[i].domain == 0) version = g->opsets.at[i].version;
    begin_line(w, "opset ");
    put_int(w, version);
    for (size_t i = 0; i < g->opsets.len; i++) {
        if (g->opsets.at[i].domain == 0) continue;
        put(w, " ");
        put_name(w, g->opsets.at[i].domain);
        put(w, ":");
        put_int(w, g->opsets.at[i].version);
    }
    put(w, "\n");
}

/* graph and opset lines. */
static void write_heads(struct writer *w)
{
    const cs_graph *g = w->g;
    if (g->name != 0) {
        begin_line(w, "graph ");
        put_name(w, g->name);
        put(w, "\n");
    }
    if (g->opsets.len > 0) write_opsets(w);
}

static void put_input(struct writer *w, uint32_t v)
{
    put(w, " ");
    put_value(w, v);
    put(w, " : ");
    put_type(w, w->g->values.at[v].type, false);
}

/* ---- weights ---- */

/* Notes the definitions of a graph that is entered. */
static bool enter(struct writer *w)
{
    const cs_graph *g = w->g;
    if (w->defined && !cs_vec_room(&w->hidden, g->values.len)) return false;
    for (uint32_t v = 0; v < g->values.len; v++) {
        const cs_value *value = &g->values.at[v];
        if (w->defined && value->origin != CS_ORIGIN_CAPTURE) {
            w->hidden.at[w->hidden.len++] = w->defined[value->name];
            w->defined[value->name] = w->depth;
        }
        if (value->origin == CS_ORIGIN_WEIGHT && value->storage != CS_NONE &&
            !w->owner[value->storage].g)
            w->owner[value->storage] = (struct owner){g, v, w->depth};
    }
    return true;
}

/* Takes back what entering it noted, in reverse. */
static void leave(struct writer *w)
{
    const cs_graph *g = w->g;
    for (size_t v = g->values.len; v-- > 0;) {
        const cs_value *value = &g->values.at[v];
        if (w->defined && value->origin != CS_ORIGIN_CAPTURE)
            w->defined[value->name] = w->hidden.at[--w->hidden.len];
        if (value->origin == CS_ORIGIN_WEIGHT && value->storage != CS_NONE &&
            w->owner[value->storage].g == g)
            w->owner[value->storage].g = NULL;
    }
}

static void write_weight(struct writer *w, uint32_t v)
{
    const cs_graph *g = w->g;
    const cs_value *value = &g->values.at[v];
    begin_line(w, "weight ");
    put_value(w, v);
    put(w, " : ");
    put_type(w, value->type, true);
    const struct owner *o = value->storage == CS_NONE ? NULL : &w->owner[value->storage];
    if (o && (o->g != g || o->value != v)) {
        const cs_value *other = &o->g->values.at[o->value];
        bool visible = o->g == g || !w->defined || w->defined[other->name] == o->depth;
        if (visible && cs_text_weight_bytes(g->pool, other->type) ==
                           cs_text_weight_bytes(g->pool, value->type)) {
            put(w, " = ");
            w->g = o->g;
            put_value(w, o->value);
            w->g = g;
        }
    }
    put(w, "\n");
}

/* ---- nodes ---- */

/* A type that the text has no more to tell of than "?" is left out. */
static void put_out_type(struct writer *w, cs_type type)
{
    bool ok = cs_chars_put(&w->chars, CS_SPAN(" : ")) &&
              cs_chars_type(w->g->pool, type, false, &w->chars);
    if (ok && cs_span_is((cs_span){w->chars.at, w->chars.len}, " : ?")) w->chars.len = 0;
    flush(w, ok);
}

static void put_outs(struct writer *w, const cs_node *n)
{
    if (n->n_out == 0) put(w, "()");
    for (uint32_t i = 0; i < n->n_out; i++) {
        uint32_t v = cs_outs(w->g, n)[i];
        if (i > 0) put(w, ", ");
        if (v == CS_NONE) {
            put(w, "_");
            continue;
        }
        put_value(w, v);
        put_out_type(w, w->g->values.at[v].type);
    }
}

static void put_values(struct writer *w, const uint32_t *values, uint32_t len)
{
    put(w, "(");
    for (uint32_t i = 0; i < len; i++) {
        if (i > 0) put(w, ", ");
        if (values[i] != CS_NONE) put_value(w, values[i]);
    }
    put(w, ")");
}

static void put_typed(struct writer *w, cs_type type, bool tensor)
{
    put(w, tensor ? "tensor(" : "type(");
    put_type(w, type, tensor);
    put(w, ")");
}

static void put_list(struct writer *w, const cs_attr *a)
{
    put(w, "[");
    if (a->len == 0)
        put(w, a->kind == CS_ATTR_FLOATS ? "f:" : a->kind == CS_ATTR_STRINGS ? "s:" : "");
    for (size_t i = 0; i < a->len; i++) {
        if (i > 0) put(w, ",");
        if (a->kind == CS_ATTR_INTS)
            put_int(w, a->ints[i]);
        else if (a->kind == CS_ATTR_FLOATS)
            put_float(w, a->floats[i]);
        else if (a->kind == CS_ATTR_STRINGS)
            put_string(w, a->strings[i]);
        else
            put_typed(w, a->types[i], a->kind == CS_ATTR_TENSORS);
    }
    put(w, "]");
}

static void put_attr(struct writer *w, const cs_attr *a)
{
    put_name(w, a->name);
    put(w, "=");
    switch (a->kind) {
    case CS_ATTR_INT:
        put_int(w, a->i);
        break;
    case CS_ATTR_FLOAT:
        put_float(w, a->f);
        break;
    case CS_ATTR_STRING:
        put_string(w, (cs_span){a->s, a->len});
        break;
    case CS_ATTR_TENSOR:
    case CS_ATTR_TYPE:
        put_typed(w, a->type, a->kind == CS_ATTR_TENSOR);
        break;
    default:
        put_list(w, a);
    }
}

static void put_attrs(struct writer *w, const cs_node *n)
{
    const char *before = " {";
    for (uint32_t i = 0; i < n->n_attr; i++) {
        const cs_attr *a = &w->g->attrs.at[n->attr + i];
        if (a->kind == CS_ATTR_OTHER) continue;
        put(w, before);
        put_attr(w, a);
        before = ", ";
    }
    if (before[0] == ',') put(w, "}");
}

static void write_body(struct writer *w, const cs_body *body)
{
    const cs_graph *outer = w->g;
    w->indent++;
    begin_line(w, "body ");
    put_name(w, body->attr);
    w->g = body->graph;
    for (size_t i = 0; i < w->g->inputs.len; i++)
        put_input(w, w->g->inputs.at[i]);
    put(w, "\n");
    w->depth++;
    w->indent++;
    write_heads(w);
    write_statements(w);
    w->depth--;
    w->indent--;
    begin_line(w, "end\n");
    w->indent--;
    w->g = outer;
}

static void write_node(struct writer *w, const cs_node *n)
{
    const cs_graph *g = w->g;
    begin_line(w, "");
    put_outs(w, n);
    put(w, " = ");
    if (n->domain != 0) {
        put_name(w, n->domain);
        put(w, ":");
    }
    put_name(w, n->op);
    put_values(w, cs_args(g, n), n->n_arg);
    put_attrs(w, n);
    for (uint32_t i = 0; i < n->n_allow; i++) {
        put(w, i == 0 ? " @" : ",");
        put_name(w, g->allow.at[n->allow + i]);
    }
    if (n->flags & CS_NODE_EFFECT) put(w, " !effect");
    if (n->n_write > 0) {
        put(w, " !writes");
        put_values(w, &g->writes.at[n->write], n->n_write);
    }
    bool bodies = false;
    for (uint32_t i = 0; i < n->n_body; i++) {
        const cs_body *body = &g->bodies.at[n->body + i];
        if (body->attr == 0) /* the body of a model-local function */
            continue;
        put(w, bodies ? "" : " {\n");
        bodies = true;
        write_body(w, body);
    }
    if (bodies) begin_line(w, "}");
    put(w, "\n");
}

/* ---- graphs ---- */

static void write_order(struct writer *w)
{
    const cs_graph *g = w->g;
    size_t len = g->sealed && g->aliases.len == 0 ? g->n_given : g->order.len;
    for (size_t i = 0; i < len; i++) {
        begin_line(w, "order ");
        put_node(w, g->order.at[i].from);
        put(w, " -> ");
        put_node(w, g->order.at[i].to);
        put(w, "\n");
    }
}

static void write_groups(struct writer *w)
{
    const cs_graph *g = w->g;
    for (size_t i = 0; i < g->groups.len; i++) {
        const cs_group *group = &g->groups.at[i];
        if (group->n_member == 0) continue;
        begin_line(w, "group ");
        put_name(w, group->name);
        put(w, " {");
        for (uint32_t m = 0; m < group->n_member; m++) {
            put(w, " ");
            put_node(w, g->members.at[group->member + m]);
        }
        put(w, " }\n");
    }
}

/* All of a graph but its heads and inputs. */
static void write_statements(struct writer *w)
{
    const cs_graph *g = w->g;
    if (!enter(w)) {
        no_memory(w);
        return;
    }
    for (uint32_t v = 0; v < g->values.len; v++)
        if (g->values.at[v].origin == CS_ORIGIN_WEIGHT) write_weight(w, v);
    for (size_t i = 0; i < g->nodes.len && !w->out->failed; i++)
        write_node(w, &g->nodes.at[i]);
    write_order(w);
    write_groups(w);
    for (size_t i = 0; i < g->outputs.len; i++) {
        begin_line(w, "output ");
        put_value(w, g->outputs.at[i]);
        put(w, "\n");
    }
    leave(w);
}

void cs_text_write(const cs_graph *g, cs_out *out)
{
    struct writer w = {.out = out, .g = g};
    const cs_graph *top = g;
    while (top->outer)
        top = top->outer;
    size_t names = g->pool->names.text.len;
    w.owner = cs_zalloc(top->storages.len + 1, sizeof *w.owner);
    if (g->bodies.len > 0) w.defined = cs_zalloc(names, sizeof *w.defined);
    if (!w.owner || (g->bodies.len > 0 && !w.defined)) {
        no_memory(&w);
    } else {
        for (size_t i = 0; i < names && w.defined; i++)
            w.defined[i] = -1;
        write_heads(&w);
        for (size_t i = 0; i < g->inputs.len; i++) {
            begin_line(&w, "input");
            put_input(&w, g->inputs.at[i]);
            put(&w, "\n");
        }
        write_statements(&w);
    }
    cs_free(w.owner);
    cs_free(w.defined);
    cs_vec_fini(&w.hidden);
    cs_vec_fini(&w.chars);
}
