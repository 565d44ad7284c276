/* Model-local functions: the list, and what a call of one is when it is written out.
 *
 * A call becomes a node with the function's body as its body: an instance with the call's
 * attributes put in the place of ref_attr_name. Inference, target rules and random draws then need
 * to know nothing about functions. Instances are for looking at; parts hold the call and the
 * function as they stand in the file.
 *
 * Functions can grow exponentially (each calls the next one twice). So what all instances hold
 * together is bounded, in nodes and in bytes read; calls beyond that stay closed, with a note.
 * Recursion is refused, so no instance is deeper than there are functions.
 */
#include "onnx/read.h"

#define NODES_MAX 200000
#define BYTES_MAX (UINT64_C(256) << 20)
#define LEVELS_MAX 120

static uint64_t key_of(cs_str domain, cs_str name, cs_str overload)
{
    const uint32_t key[3] = {domain, name, overload};
    return cs_hash(key, sizeof key);
}

static bool is_function(const cs_function *f, cs_str domain, cs_str name, cs_str overload)
{
    return f->domain == domain && f->name == name && f->overload == overload;
}

uint32_t cs_onnx_find_function(const cs_reader *r, cs_str domain, cs_str name, cs_str overload)
{
    if (r->function_ids.len == 0) return CS_NONE;
    if (r->onnx->ir_version < 10) overload = 0;
    uint64_t key = key_of(domain, name, overload);
    uint32_t id;
    while ((id = cs_map_get(&r->function_ids, key)) != CS_NONE &&
           !is_function(&r->onnx->functions.at[id], domain, name, overload))
        key++; /* two functions with one hash */
    return id;
}

static cutset_status add_to_list(cs_reader *r, cs_span proto, cs_str domain, cs_str name,
                                 cs_str overload)
{
    const cs_function f = {.domain = domain, .name = name, .overload = overload, .proto = proto};
    if (cs_onnx_find_function(r, domain, name, overload) != CS_NONE)
        return cs_onnx_bad(r, proto, "function '%.*s:%.*s' is there twice: remove one",
                           CS_FMT(cs_name(r->pool, domain)), CS_FMT(cs_name(r->pool, name)));
    const uint32_t id = (uint32_t)r->onnx->functions.len;
    if (!cs_vec_push(&r->onnx->functions, f) || !cs_vec_push(&r->open, false))
        return cs_fail_memory(r->err);
    if (domain == 0) {
        const bool noted = cs_note(r->pool,
                                   "function '%.*s' is in the domain of the standard: its "
                                   "calls count as the standard's operator",
                                   CS_FMT(cs_name(r->pool, name)));
        return noted ? CUTSET_OK : cs_fail_memory(r->err);
    }
    uint64_t key = key_of(domain, name, overload);
    while (cs_map_get(&r->function_ids, key) != CS_NONE)
        key++;
    return cs_map_put(&r->function_ids, key, id) ? CUTSET_OK : cs_fail_memory(r->err);
}

cutset_status cs_onnx_add_function(cs_reader *r, cs_span proto)
{
    cs_span name = {"", 0}, domain = name, overload = name;
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_BYTES))
            name = w.bytes;
        else if (w.field == 10 && cs_wire_expect(&w, CS_WIRE_BYTES))
            domain = w.bytes;
        else if (w.field == 13 && r->onnx->ir_version >= 10 && cs_wire_expect(&w, CS_WIRE_BYTES))
            overload = w.bytes;
    }
    if (w.bad) return cs_wire_error(&w, "FunctionProto", r->err);
    if (name.len == 0) return cs_onnx_bad_at(r, proto, "a function without a name: name it");
    const cs_str d = cs_onnx_domain(r, domain), n = cs_onnx_intern(r, name);
    const cs_str o = cs_onnx_intern(r, overload);
    if (d == CS_NONE || n == CS_NONE || o == CS_NONE) return cs_fail_memory(r->err);
    return add_to_list(r, proto, d, n, o);
}

/* ---- one instance ---- */

/* Makes many attributes quick to find; backwards, so that of two with one name the first stays. */
static bool index_items(const cs_reader *r, cs_call *call)
{
    for (size_t i = call->n_items; i-- > 0;)
        if (!cs_map_put(&call->by_name, r->items.at[call->item + i].name,
                        (uint32_t)(call->item + i)))
            return false;
    return true;
}

/* The function's own values for attributes that the call does not give. */
static cutset_status push_defaults(cs_reader *r, cs_scope *s, const cs_source *src, cs_call *call)
{
    if (call->n_items > 16 && !index_items(r, call)) return cs_fail_memory(r->err);
    const cs_call given = *call; /* with its index as it is now */
    for (size_t i = 0; i < src->defaults.len; i++) {
        const size_t at = r->items.len;
        CS_TRY(cs_onnx_push_attr(r, s, src->defaults.at[i]));
        if (cs_call_attr(r, &given, r->items.at[at].name) != NULL)
            r->items.len = at;
        else
            call->n_items++;
    }
    if (call->n_items > 16 && !index_items(r, call)) return cs_fail_memory(r->err);
    return CUTSET_OK;
}

static cutset_status read_imports(cs_reader *r, cs_scope *s, const cs_source *src)
{
    for (size_t i = 0; i < src->imports.len; i++)
        CS_TRY(cs_onnx_read_opset(r, src->imports.at[i], s->graph));
    if (s->graph->opsets.len == 0) s->imports = s->outer->imports;
    return CUTSET_OK;
}

/* One input a formal, in order. One that the call leaves out stands for nothing in the body. */
static cutset_status define_formals(cs_reader *r, cs_scope *s, const cs_source *src, cs_span node)
{
    const cs_graph *outer = s->outer->graph;
    const uint32_t id = (uint32_t)outer->nodes.len - 1;
    char label[512];
    if (outer->nodes.at[id].n_arg > src->inputs.len ||
        outer->nodes.at[id].n_out > src->outputs.len) {
        cs_onnx_bad(r, node,
                    "%s has more inputs or outputs than the function that it calls: "
                    "remove those, or add them to the function",
                    cs_onnx_node_label(r, node, label));
        return cs_onnx_blame(r, node);
    }
    for (uint32_t i = 0; i < src->inputs.len; i++) {
        const cs_str name = cs_onnx_intern(r, src->inputs.at[i]);
        const uint32_t arg = cs_node_arg(outer, &outer->nodes.at[id], i);
        const cs_type type = arg == CS_NONE ? 0 : outer->values.at[arg].type;
        uint32_t v;
        if (name == CS_NONE) return cs_fail_memory(r->err);
        if (cs_scope_here(r, s, name, &v))
            return cs_onnx_bad(r, src->inputs.at[i],
                               "a function with two inputs '%.*s': rename one",
                               CS_FMT(src->inputs.at[i]));
        v = cs_graph_add_value(s->graph, name, type, CS_ORIGIN_INPUT);
        if (v == CS_NONE || !cs_vec_push(&s->graph->inputs, v) ||
            !cs_scope_bind(r, s, name, arg == CS_NONE ? CS_NONE : v))
            return cs_fail_memory(r->err);
    }
    return CUTSET_OK;
}

static cutset_status fill_instance(cs_reader *r, cs_scope *s, cs_source *src, cs_call *call,
                                   cs_span node)
{
    CS_TRY(read_imports(r, s, src));
    CS_TRY(push_defaults(r, s, src, call));
    s->call = call;
    CS_TRY(define_formals(r, s, src, node));
    CS_TRY(cs_onnx_fill(r, s, src));
    return cs_graph_seal(s->graph, r->err);
}

static cutset_status instantiate(cs_reader *r, cs_scope *s, uint32_t id, cs_call *call,
                                 cs_span node, bool *random)
{
    const cs_span proto = r->onnx->functions.at[id].proto;
    const uint32_t depth = r->depth;
    cs_source src;
    cs_scope inner;
    cs_graph *body = cs_graph_new(r->pool, s->graph);
    if (body == NULL) return cs_fail_memory(r->err);
    cs_scope_open(&inner, s, body, true);
    r->depth = 2; /* of the FunctionProto in its file */
    r->levels++;
    r->open.at[id] = true;
    cutset_status status = cs_onnx_gather(r, proto, true, &src);
    if (status == CUTSET_OK) status = fill_instance(r, &inner, &src, call, node);
    *random = inner.random;
    cs_source_free(&src);
    cs_scope_close(r, &inner);
    r->open.at[id] = false;
    r->levels--;
    r->depth = depth;
    if (status == CUTSET_OK && !cs_graph_add_body(s->graph, 0, body))
        status = cs_fail_memory(r->err);
    if (status != CUTSET_OK) cs_graph_free(body);
    return status;
}

static cutset_status note_limit(cs_reader *r)
{
    if (r->limit_noted) return CUTSET_OK;
    r->limit_noted = true;
    const bool noted = cs_note(r->pool,
                               "calls of local functions are nested too deep or too large "
                               "to look into all of them (over %d nodes)",
                               NODES_MAX);
    return noted ? CUTSET_OK : cs_fail_memory(r->err);
}

cutset_status cs_onnx_call(cs_reader *r, cs_scope *s, uint32_t id, size_t item, size_t n_items,
                           cs_span node, bool *random)
{
    const cs_function *f = &r->onnx->functions.at[id];
    if (r->open.at[id])
        return cs_onnx_bad(r, node, "function '%.*s:%.*s' calls itself: remove that call",
                           CS_FMT(cs_name(r->pool, f->domain)), CS_FMT(cs_name(r->pool, f->name)));
    if (r->instance_nodes >= NODES_MAX || r->instance_bytes >= BYTES_MAX || r->levels >= LEVELS_MAX)
        return note_limit(r);
    r->instance_nodes++; /* one without nodes costs too */
    r->instance_bytes += f->proto.len;
    cs_call call = {.item = item, .n_items = n_items};
    const cutset_status status = instantiate(r, s, id, &call, node, random);
    cs_map_fini(&call.by_name);
    r->items.len = item + n_items;
    return status;
}
