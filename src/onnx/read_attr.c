/* AttributeProto -> cs_attr.
 *
 * `type` decides what an attribute is; writers of proto3 leave out fields that are zero or empty,
 * so what it names need not be there. Where `type` itself is absent (IR 1), what is there decides.
 * Lists are counted in one walk and filled in a second. Strings point into the file.
 *
 * Inside a function an attribute may stand for one of the call (ref_attr_name). It is decoded
 * once, with the call, however often the body names it.
 */
#include "onnx/read.h"

#include <string.h>

/* ---- the first walk ---- */

static cutset_status count_items(cs_reader *r, cs_wire *w, int type, size_t *count)
{
    cs_wire items;
    uint64_t x;
    if (!cs_wire_each(w, &items, type)) return CUTSET_OK; /* w is bad, told by the caller */
    while (cs_wire_item(&items, &x))
        ++*count;
    return items.bad ? cs_wire_error(&items, "AttributeProto", r->err) : CUTSET_OK;
}

static float float_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}

/* A message field; a second one would have to be merged with it, which no writer wants. */
static cutset_status once(cs_reader *r, const cs_attr_proto *a, cs_wire *w, cs_span *to)
{
    if (!cs_wire_expect(w, CS_WIRE_BYTES)) return CUTSET_OK;
    if ((a->seen & 1u << w->field) != 0)
        return cs_onnx_bad(r, w->raw, "attribute '%.*s' has two values: keep one", CS_FMT(a->name));
    *to = w->bytes;
    return CUTSET_OK;
}

static cutset_status read_field(cs_reader *r, cs_attr_proto *a, cs_wire *w)
{
    switch (w->field) {
    case 1:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) a->name = w->bytes;
        break;
    case 2:
        if (cs_wire_expect(w, CS_WIRE_F32)) a->f = float_of(w->number);
        break;
    case 3:
        if (cs_wire_expect(w, CS_WIRE_VARINT)) a->i = (int64_t)w->number;
        break;
    case 4:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) a->s = w->bytes;
        break;
    case 5:
        CS_TRY(once(r, a, w, &a->tensor));
        break;
    case 6:
        CS_TRY(once(r, a, w, &a->graph));
        break;
    case 7:
        CS_TRY(count_items(r, w, CS_WIRE_F32, &a->n_floats));
        break;
    case 8:
        CS_TRY(count_items(r, w, CS_WIRE_VARINT, &a->n_ints));
        break;
    case 9:
        a->n_strings += cs_wire_expect(w, CS_WIRE_BYTES);
        break;
    case 10:
        a->n_tensors += cs_wire_expect(w, CS_WIRE_BYTES);
        break;
    case 11:
        a->n_graphs += cs_wire_expect(w, CS_WIRE_BYTES);
        break;
    case 14:
        CS_TRY(once(r, a, w, &a->tp));
        break;
    case 15:
        a->n_types += cs_wire_expect(w, CS_WIRE_BYTES);
        break;
    case 20:
        if (cs_wire_expect(w, CS_WIRE_VARINT)) a->type = (uint32_t)w->number;
        break;
    case 21:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) a->ref = w->bytes;
        break;
    case 22:
        CS_TRY(once(r, a, w, &a->sparse));
        break;
    default:
        break;
    }
    if (w->field < 32) a->seen |= 1u << w->field;
    return CUTSET_OK;
}

static uint32_t derive_type(uint32_t seen)
{
    static const struct {
        uint8_t field, type;
    } by_field[] = {{2, CS_ONNX_FLOAT},   {3, CS_ONNX_INT},     {4, CS_ONNX_STRING},
                    {5, CS_ONNX_TENSOR},  {6, CS_ONNX_GRAPH},   {7, CS_ONNX_FLOATS},
                    {8, CS_ONNX_INTS},    {9, CS_ONNX_STRINGS}, {10, CS_ONNX_TENSORS},
                    {11, CS_ONNX_GRAPHS}, {14, CS_ONNX_TYPE},   {15, CS_ONNX_TYPES},
                    {22, CS_ONNX_SPARSE}, {23, CS_ONNX_SPARSES}};
    for (size_t i = 0; i < sizeof by_field / sizeof *by_field; i++)
        if ((seen & 1u << by_field[i].field) != 0) return by_field[i].type;
    return 0;
}

cutset_status cs_onnx_open_attr(cs_reader *r, cs_span proto, cs_attr_proto *a)
{
    const cs_span none = {"", 0};
    *a = (cs_attr_proto){.proto = proto, .name = none, .ref = none, .s = none};
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w))
        CS_TRY(read_field(r, a, &w));
    if (w.bad) return cs_wire_error(&w, "AttributeProto", r->err);
    if (a->name.len == 0) return cs_onnx_bad_at(r, proto, "an attribute without a name: name it");
    if (a->type == 0) a->type = derive_type(a->seen);
    const bool lacks = (a->type == CS_ONNX_TENSOR && a->tensor.at == NULL) ||
                       (a->type == CS_ONNX_GRAPH && a->graph.at == NULL) ||
                       (a->type == CS_ONNX_SPARSE && a->sparse.at == NULL) ||
                       (a->type == CS_ONNX_TYPE && a->tp.at == NULL);
    if (lacks && a->ref.len == 0)
        return cs_onnx_bad(r, proto,
                           "attribute '%.*s' lacks the value that its type names: give it one",
                           CS_FMT(a->name));
    return CUTSET_OK;
}

/* ---- decoding ---- */

static cutset_status decode_ints(cs_reader *r, const cs_attr_proto *a, cs_attr *out)
{
    int64_t *to = cs_arena_alloc(&r->pool->arena, a->n_ints, sizeof *to);
    if (to == NULL) return cs_fail_memory(r->err);
    cs_wire w = cs_onnx_wire(r, a->proto), items;
    uint64_t x;
    size_t n = 0;
    while (cs_wire_next(&w)) {
        if (w.field != 8 || !cs_wire_each(&w, &items, CS_WIRE_VARINT)) continue;
        while (n < a->n_ints && cs_wire_item(&items, &x))
            to[n++] = (int64_t)x;
    }
    out->kind = CS_ATTR_INTS;
    out->len = n;
    out->ints = to;
    return CUTSET_OK;
}

static cutset_status decode_floats(cs_reader *r, const cs_attr_proto *a, cs_attr *out)
{
    float *to = cs_arena_alloc(&r->pool->arena, a->n_floats, sizeof *to);
    if (to == NULL) return cs_fail_memory(r->err);
    cs_wire w = cs_onnx_wire(r, a->proto), items;
    uint64_t x;
    size_t n = 0;
    while (cs_wire_next(&w)) {
        if (w.field != 7 || !cs_wire_each(&w, &items, CS_WIRE_F32)) continue;
        while (n < a->n_floats && cs_wire_item(&items, &x))
            to[n++] = float_of(x);
    }
    out->kind = CS_ATTR_FLOATS;
    out->len = n;
    out->floats = to;
    return CUTSET_OK;
}

static cutset_status decode_strings(cs_reader *r, const cs_attr_proto *a, cs_attr *out)
{
    cs_span *to = cs_arena_alloc(&r->pool->arena, a->n_strings, sizeof *to);
    if (to == NULL) return cs_fail_memory(r->err);
    cs_wire w = cs_onnx_wire(r, a->proto);
    size_t n = 0;
    while (cs_wire_next(&w))
        if (w.field == 9 && n < a->n_strings) to[n++] = w.bytes;
    out->kind = CS_ATTR_STRINGS;
    out->len = n;
    out->strings = to;
    return CUTSET_OK;
}

static cutset_status decode_tensor(cs_reader *r, const cs_attr_proto *a, cs_attr *out)
{
    cs_tensor t;
    CS_TRY(cs_onnx_read_tensor(r, a->tensor, a->name, &t));
    if (t.file != CS_ONNX_INLINE) r->onnx->has_external_attrs = true;
    out->kind = CS_ATTR_TENSOR;
    out->len = (size_t)t.bytes;
    out->data = t.data;
    out->type = t.type;
    return CUTSET_OK;
}

/* Tensors or types. An empty list stays undecoded: the text form has no words for it. */
static cutset_status decode_types(cs_reader *r, const cs_attr_proto *a, cs_attr *out)
{
    const bool tensors = a->type == CS_ONNX_TENSORS;
    const size_t count = tensors ? a->n_tensors : a->n_types;
    if (count == 0) return CUTSET_OK;
    cs_type *to = cs_arena_alloc(&r->pool->arena, count, sizeof *to);
    if (to == NULL) return cs_fail_memory(r->err);
    cs_wire w = cs_onnx_wire(r, a->proto);
    size_t n = 0;
    while (cs_wire_next(&w)) {
        cs_tensor t;
        if (w.field != (tensors ? 10 : 15)) continue;
        if (tensors) {
            CS_TRY(cs_onnx_read_tensor(r, w.bytes, a->name, &t));
            if (t.file != CS_ONNX_INLINE) r->onnx->has_external_attrs = true;
            to[n++] = t.type;
        } else {
            CS_TRY(cs_onnx_read_type(r, w.bytes, &to[n++]));
        }
    }
    out->kind = tensors ? CS_ATTR_TENSORS : CS_ATTR_TYPES;
    out->len = n;
    out->types = to;
    return CUTSET_OK;
}

cutset_status cs_onnx_decode_attr(cs_reader *r, const cs_attr_proto *a, cs_attr *out)
{
    *out = (cs_attr){.kind = CS_ATTR_OTHER};
    out->name = cs_onnx_intern(r, a->name);
    if (out->name == CS_NONE) return cs_fail_memory(r->err);
    if (a->ref.len > 0) return CUTSET_OK;
    switch (a->type) {
    case CS_ONNX_INT:
        out->kind = CS_ATTR_INT;
        out->i = a->i;
        return CUTSET_OK;
    case CS_ONNX_FLOAT:
        out->kind = CS_ATTR_FLOAT;
        out->f = a->f;
        return CUTSET_OK;
    case CS_ONNX_STRING:
        out->kind = CS_ATTR_STRING;
        out->len = a->s.len;
        out->s = a->s.at;
        return CUTSET_OK;
    case CS_ONNX_TENSOR:
        return decode_tensor(r, a, out);
    case CS_ONNX_INTS:
        return decode_ints(r, a, out);
    case CS_ONNX_FLOATS:
        return decode_floats(r, a, out);
    case CS_ONNX_STRINGS:
        return decode_strings(r, a, out);
    case CS_ONNX_TYPE:
        out->kind = CS_ATTR_TYPE;
        return cs_onnx_read_type(r, a->tp, &out->type);
    case CS_ONNX_TENSORS:
    case CS_ONNX_TYPES:
        return decode_types(r, a, out);
    default:
        return CUTSET_OK;
    }
}

/* ---- attributes of a node ---- */

const cs_item *cs_call_attr(const cs_reader *r, const cs_call *call, cs_str name)
{
    if (call->by_name.len > 0) {
        const uint32_t i = cs_map_get(&call->by_name, name);
        return i == CS_NONE ? NULL : &r->items.at[i];
    }
    for (size_t i = 0; i < call->n_items; i++)
        if (r->items.at[call->item + i].name == name) return &r->items.at[call->item + i];
    return NULL;
}

/* ref_attr_name: what the call gives under that name takes its place; nothing: left out. */
static cutset_status push_reference(cs_reader *r, const cs_scope *s, const cs_attr_proto *a)
{
    if (s->call == NULL)
        return cs_onnx_bad(r, a->proto,
                           "attribute '%.*s' refers to '%.*s' of a function, but stands in none: "
                           "give it a value",
                           CS_FMT(a->name), CS_FMT(a->ref));
    const cs_str name = cs_onnx_intern(r, a->name), ref = cs_onnx_intern(r, a->ref);
    if (name == CS_NONE || ref == CS_NONE) return cs_fail_memory(r->err);
    const cs_item *given = cs_call_attr(r, s->call, ref);
    if (given == NULL) return CUTSET_OK;
    cs_item item = *given;
    item.name = item.attr.name = name;
    item.foreign = true;
    return cs_vec_push(&r->items, item) ? CUTSET_OK : cs_fail_memory(r->err);
}

static cutset_status decode_item(cs_reader *r, const cs_attr_proto *a, cs_item *item)
{
    *item = (cs_item){.proto = a->proto, .type = a->type};
    CS_TRY(cs_onnx_decode_attr(r, a, &item->attr));
    item->name = item->attr.name;
    return CUTSET_OK;
}

/* Inside a function: decoded once, however many calls there are. */
static cutset_status push_known(cs_reader *r, const cs_attr_proto *a)
{
    const uint64_t key = cs_onnx_offset(r, a->proto);
    uint32_t i = cs_map_get(&r->attrs, key);
    if (i == CS_NONE) {
        cs_item item;
        CS_TRY(decode_item(r, a, &item));
        i = (uint32_t)r->known_attrs.len;
        if (!cs_vec_push(&r->known_attrs, item) || !cs_map_put(&r->attrs, key, i))
            return cs_fail_memory(r->err);
    }
    return cs_vec_push(&r->items, r->known_attrs.at[i]) ? CUTSET_OK : cs_fail_memory(r->err);
}

cutset_status cs_onnx_push_attr(cs_reader *r, const cs_scope *s, cs_span proto)
{
    cs_attr_proto a;
    cs_item item;
    CS_TRY(cs_onnx_open_attr(r, proto, &a));
    if (a.ref.len > 0) return push_reference(r, s, &a);
    if (cs_in_function(s)) return push_known(r, &a);
    CS_TRY(decode_item(r, &a, &item));
    return cs_vec_push(&r->items, item) ? CUTSET_OK : cs_fail_memory(r->err);
}
