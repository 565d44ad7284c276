/* Initializers and Constant nodes -> WEIGHT values, storages, and the record of where bytes are.
 *
 * Storages are those of the outermost graph, wherever the weight stands; onnx->weights runs beside
 * them. Initializers that name the very same bytes of a data file share one storage. Inside a
 * function, which is read once a call, a proto that was met before has its storage already.
 */
#include "onnx/read.h"

#include <string.h>

/* ---- storages ---- */

static cutset_status add_storage(cs_reader *r, const cs_tensor *t, cs_weight w, uint32_t *storage)
{
    w.file = t->file;
    w.offset = t->offset;
    w.length = t->length;
    w.raw = t->raw;
    if (!cs_vec_room(&r->onnx->weights, 1)) return cs_fail_memory(r->err);
    *storage = cs_graph_add_storage(r->top, t->bytes, t->elem, t->data);
    if (*storage == CS_NONE) return cs_fail_memory(r->err);
    r->onnx->weights.at[r->onnx->weights.len++] = w;
    return CUTSET_OK;
}

static bool same_bytes(const cs_reader *r, uint32_t storage, const cs_tensor *t)
{
    const cs_weight *w = &r->onnx->weights.at[storage];
    return w->file == t->file && w->offset == t->offset && w->length == t->length &&
           r->top->storages.at[storage].elem == t->elem;
}

/* The storage of a tensor in a data file: one that has the same bytes, or a new one. */
static cutset_status tie_storage(cs_reader *r, const cs_tensor *t, cs_weight w, uint32_t *storage)
{
    const uint64_t place[4] = {t->file, t->offset, t->length, (uint64_t)t->elem};
    uint64_t key = cs_hash(place, sizeof place);
    while ((*storage = cs_map_get(&r->ties, key)) != CS_NONE) {
        if (same_bytes(r, *storage, t)) return CUTSET_OK;
        key++; /* two places with one hash */
    }
    CS_TRY(add_storage(r, t, w, storage));
    return cs_map_put(&r->ties, key, *storage) ? CUTSET_OK : cs_fail_memory(r->err);
}

/* Was this proto read in an earlier instance of its function? */
static bool recall(const cs_reader *r, const cs_scope *s, cs_span proto, cs_known_weight *known)
{
    if (!cs_in_function(s)) return false;
    const uint32_t i = cs_map_get(&r->weights, cs_onnx_offset(r, proto));
    if (i == CS_NONE) return false;
    *known = r->known_weights.at[i];
    return true;
}

static cutset_status remember(cs_reader *r, const cs_scope *s, cs_span proto, cs_known_weight known)
{
    if (!cs_in_function(s)) return CUTSET_OK;
    const uint32_t i = (uint32_t)r->known_weights.len;
    if (!cs_vec_push(&r->known_weights, known) ||
        !cs_map_put(&r->weights, cs_onnx_offset(r, proto), i))
        return cs_fail_memory(r->err);
    return CUTSET_OK;
}

/* Values that nodes make come after initializers and may be millions: no entry for those behind. */
static bool keep_proto(cs_onnx *onnx, uint32_t value, cs_span proto)
{
    const cs_span none = {NULL, 0};
    while (onnx->initializer.len < value)
        if (!cs_vec_push(&onnx->initializer, none)) return false;
    return cs_vec_push(&onnx->initializer, proto);
}

static cutset_status define_weight(cs_reader *r, cs_scope *s, cs_span name, cs_known_weight known,
                                   cs_span proto)
{
    uint32_t v;
    const cs_str id = cs_onnx_intern(r, name);
    if (id == CS_NONE) return cs_fail_memory(r->err);
    CS_TRY(cs_onnx_define(r, s, id, known.type, CS_ORIGIN_WEIGHT, proto, &v));
    s->graph->values.at[v].storage = known.storage;
    if (s->depth == 1 && !keep_proto(r->onnx, v, proto)) return cs_fail_memory(r->err);
    return CUTSET_OK;
}

/* ---- initializers ---- */

cutset_status cs_onnx_add_initializer(cs_reader *r, cs_scope *s, cs_span proto, bool sparse)
{
    cs_tensor t;
    cs_known_weight known;
    const cs_span none = {"", 0};
    if (recall(r, s, proto, &known)) return define_weight(r, s, known.name, known, proto);
    CS_TRY(sparse ? cs_onnx_read_sparse(r, proto, none, &t)
                  : cs_onnx_read_tensor(r, proto, none, &t));
    if (t.name.len == 0) return cs_onnx_bad_at(r, proto, "an initializer without a name: name it");
    const cs_weight w = {.proto = proto, .sparse = sparse, .position = -1};
    known = (cs_known_weight){.type = t.type, .name = t.name};
    CS_TRY(t.file != CS_ONNX_INLINE && t.length > 0 ? tie_storage(r, &t, w, &known.storage)
                                                    : add_storage(r, &t, w, &known.storage));
    CS_TRY(remember(r, s, proto, known));
    return define_weight(r, s, t.name, known, proto);
}

/* ---- Constant ---- */

bool cs_onnx_is_constant(cs_span op, cs_span domain)
{
    return op.len == 8 && memcmp(op.at, "Constant", 8) == 0 &&
           (domain.len == 0 || cs_span_is(domain, "ai.onnx"));
}

static void put_le(unsigned char *to, uint64_t x, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)(x >> (8 * i));
}

/* The numbers of value_int, value_ints, value_float, value_floats. */
static cutset_status numbers(cs_reader *r, const cs_attr *a, cs_tensor *t)
{
    const bool single = a->kind == CS_ATTR_INT || a->kind == CS_ATTR_FLOAT;
    const bool ints = a->kind == CS_ATTR_INT || a->kind == CS_ATTR_INTS;
    const size_t n = single ? 1 : a->len, size = ints ? 8 : 4;
    const cs_dim dims[1] = {(cs_dim)n};
    t->elem = ints ? CS_I64 : CS_F32;
    t->bytes = (int64_t)(n * size);
    t->type = cs_type_tensor(r->pool, t->elem, single ? 0 : 1, dims);
    if (t->type == CS_NONE) return cs_fail_memory(r->err);
    if (t->bytes > CS_CONST_MAX) return CUTSET_OK;
    unsigned char *to = cs_arena_alloc(&r->pool->arena, n * size + 1, 1);
    if (to == NULL) return cs_fail_memory(r->err);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        const float *f = single ? &a->f : a->floats;
        if (!ints) memcpy(&bits, &f[i], sizeof bits);
        put_le(to + i * size, !ints ? bits : (uint64_t)(single ? a->i : a->ints[i]), size);
    }
    t->data = to;
    return CUTSET_OK;
}

static cutset_status strings(cs_reader *r, const cs_attr *a, cs_tensor *t)
{
    const bool single = a->kind == CS_ATTR_STRING;
    const cs_dim dims[1] = {(cs_dim)a->len};
    t->elem = CS_STR;
    t->bytes = single ? (int64_t)a->len : 0;
    for (size_t i = 0; !single && i < a->len; i++)
        t->bytes += (int64_t)a->strings[i].len;
    t->type = cs_type_tensor(r->pool, CS_STR, single ? 0 : 1, dims);
    return t->type == CS_NONE ? cs_fail_memory(r->err) : CUTSET_OK;
}

static cutset_status constant_value(cs_reader *r, const cs_attr_proto *a, cs_span label,
                                    cs_tensor *t, bool *sparse)
{
    cs_attr decoded;
    *sparse = a->type == CS_ONNX_SPARSE;
    if (a->type == CS_ONNX_TENSOR) return cs_onnx_read_tensor(r, a->tensor, label, t);
    if (*sparse) return cs_onnx_read_sparse(r, a->sparse, label, t);
    *t = (cs_tensor){.file = CS_ONNX_INLINE};
    CS_TRY(cs_onnx_decode_attr(r, a, &decoded));
    switch (decoded.kind) {
    case CS_ATTR_INT:
    case CS_ATTR_INTS:
    case CS_ATTR_FLOAT:
    case CS_ATTR_FLOATS:
        return numbers(r, &decoded, t);
    case CS_ATTR_STRING:
    case CS_ATTR_STRINGS:
        return strings(r, &decoded, t);
    default:
        return cs_onnx_bad(r, a->proto,
                           "Constant '%.*s': its %.*s is of a type that no value has: give "
                           "it a tensor, numbers or strings",
                           CS_FMT(label), CS_FMT(a->name));
    }
}

static bool is_value(cs_span name)
{
    static const char *const names[] = {"value",        "sparse_value", "value_int",
                                        "value_ints",   "value_float",  "value_floats",
                                        "value_string", "value_strings"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cs_span_is(name, names[i])) return true;
    return false;
}

/* The one attribute that is the value; *found false: none, or one that the call does not give. */
static cutset_status find_value(cs_reader *r, const cs_scope *s, cs_span node, cs_span label,
                                cs_attr_proto *value, bool *found)
{
    cs_wire w = cs_onnx_wire(r, node);
    bool any = false;
    *found = false;
    while (cs_wire_next(&w)) {
        cs_attr_proto a;
        if (w.field != 5 || !cs_wire_expect(&w, CS_WIRE_BYTES)) continue;
        CS_TRY(cs_onnx_open_attr(r, w.bytes, &a));
        if (!is_value(a.name)) continue;
        if (any)
            return cs_onnx_bad(r, node, "Constant '%.*s' has two values: keep one", CS_FMT(label));
        any = true;
        if (a.ref.len > 0 && s->call != NULL) {
            const cs_str ref = cs_onnx_intern(r, a.ref);
            if (ref == CS_NONE) return cs_fail_memory(r->err);
            const cs_item *given = cs_call_attr(r, s->call, ref);
            if (given == NULL) continue;
            CS_TRY(cs_onnx_open_attr(r, given->proto, &a));
        }
        *value = a;
        *found = true;
    }
    if (w.bad) return cs_wire_error(&w, "NodeProto", r->err);
    if (!any)
        return cs_onnx_bad(r, node, "Constant '%.*s' has no value: give it one", CS_FMT(label));
    return CUTSET_OK;
}

/* Its output; the outputs were pushed on r->outs by the caller, from `base`. */
static cutset_status constant_name(cs_reader *r, cs_span node, cs_span *name)
{
    cs_node_head head;
    const size_t base = r->outs.len;
    CS_TRY(cs_onnx_node_head(r, node, &head));
    const bool one = r->outs.len == base + 1 && r->outs.at[base].len > 0;
    if (one) *name = r->outs.at[base];
    r->outs.len = base;
    return one ? CUTSET_OK
               : cs_onnx_bad_at(r, node, "a Constant node without its one output: name it");
}

cutset_status cs_onnx_add_constant(cs_reader *r, cs_scope *s, cs_span node, int32_t position)
{
    cs_attr_proto value;
    cs_span name;
    cs_tensor t = {.file = CS_ONNX_INLINE};
    cs_known_weight known;
    bool found, sparse = false;
    CS_TRY(constant_name(r, node, &name));
    CS_TRY(find_value(r, s, node, name, &value, &found));
    if (found && recall(r, s, value.proto, &known)) return define_weight(r, s, name, known, node);
    if (found) CS_TRY(constant_value(r, &value, name, &t, &sparse));
    const cs_weight w = {.proto = node, .constant = true, .sparse = sparse, .position = position};
    known = (cs_known_weight){.type = t.type}; /* 0: the call of a function gives no value */
    CS_TRY(add_storage(r, &t, w, &known.storage));
    if (found) CS_TRY(remember(r, s, value.proto, known));
    return define_weight(r, s, name, known, node);
}
