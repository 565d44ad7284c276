/* TensorProto and SparseTensorProto: type, size, and where the data is.
 *
 * One walk over the tags tells how much data each field holds; the data itself is looked at only
 * where it is at most CS_CONST_MAX bytes. So a packed field of varints (int32_data and its like) of
 * a large tensor is checked by its length alone: a number takes one to ten bytes.
 *
 * The data must be exactly what dims and element type need (packing: onnx.proto, TensorProto): it is
 * what parts are written from, and a short one would be read past its end by somebody else.
 */
#include "onnx/read.h"

#include <inttypes.h>
#include <string.h>

/* The typed fields; string_data counts apart. */
enum { F32_DATA, I32_DATA, I64_DATA, F64_DATA, U64_DATA, N_DATA };
static const struct {
    const char *name;
    uint32_t field;
    int item; /* wire type of a number */
} fields[N_DATA] = {{"float_data", 4, CS_WIRE_F32},
                    {"int32_data", 5, CS_WIRE_VARINT},
                    {"int64_data", 7, CS_WIRE_VARINT},
                    {"double_data", 10, CS_WIRE_F64},
                    {"uint64_data", 11, CS_WIRE_VARINT}};

typedef struct numbers {
    uint64_t packed;  /* bytes in packed occurrences */
    uint64_t singles; /* unpacked numbers */
    uint32_t chunks;  /* packed occurrences */
    cs_span chunk;    /* the last of them */
} numbers;

typedef struct walked {
    cs_span proto, label;
    uint64_t elem, location;
    int rank;
    bool segment, has_raw;
    cs_span name, raw;
    numbers data[N_DATA];
    uint64_t strings, string_bytes;
} walked;

static int data_index(uint32_t field)
{
    for (int i = 0; i < N_DATA; i++)
        if (fields[i].field == field) return i;
    return -1;
}

static cs_span label_of(const walked *t) { return t->label.len > 0 ? t->label : t->name; }

static cutset_status read_dims(cs_reader *r, cs_wire *w, int *rank)
{
    cs_wire items;
    uint64_t x;
    if (!cs_wire_each(w, &items, CS_WIRE_VARINT))
        return CUTSET_OK; /* w is bad, told by the caller */
    while (cs_wire_item(&items, &x)) {
        if (*rank == CS_RANK_MAX)
            return cs_onnx_bad_at(r, w->raw, "a tensor of more than %d dims: give it fewer",
                                  CS_RANK_MAX);
        r->dims[(*rank)++] = (int64_t)x;
    }
    return items.bad ? cs_wire_error(&items, "TensorProto", r->err) : CUTSET_OK;
}

static void count_numbers(cs_wire *w, int index, numbers *n)
{
    if (w->type == CS_WIRE_BYTES) {
        n->packed += w->bytes.len;
        n->chunks++;
        n->chunk = w->bytes;
    } else if (cs_wire_expect(w, fields[index].item)) {
        n->singles++;
    }
}

static cutset_status walk(cs_reader *r, walked *t)
{
    cs_wire w = cs_onnx_wire(r, t->proto);
    while (cs_wire_next(&w)) {
        const int index = data_index(w.field);
        if (index >= 0) {
            count_numbers(&w, index, &t->data[index]);
        } else if (w.field == 1) {
            CS_TRY(read_dims(r, &w, &t->rank));
        } else if (w.field == 2 && cs_wire_expect(&w, CS_WIRE_VARINT)) {
            t->elem = w.number;
        } else if (w.field == 3) {
            t->segment = true;
        } else if (w.field == 6 && cs_wire_expect(&w, CS_WIRE_BYTES)) {
            t->strings++;
            t->string_bytes += w.bytes.len;
        } else if (w.field == 8 && cs_wire_expect(&w, CS_WIRE_BYTES)) {
            t->name = w.bytes;
        } else if (w.field == 9 && cs_wire_expect(&w, CS_WIRE_BYTES)) {
            t->has_raw = true;
            t->raw = w.bytes;
        } else if (w.field == 14 && cs_wire_expect(&w, CS_WIRE_VARINT)) {
            t->location = w.number;
        }
    }
    return w.bad ? cs_wire_error(&w, "TensorProto", r->err) : CUTSET_OK;
}

/* ---- sizes ---- */

static cutset_status fail_tensor(const cs_reader *r, const walked *t, const char *why)
{
    return cs_onnx_bad(r, t->proto, "tensor '%.*s': %s", CS_FMT(label_of(t)), why);
}

/* Product of the dims in r->dims. */
static cutset_status count_elements(const cs_reader *r, const walked *t, int64_t *count)
{
    bool empty = false, over = false;
    *count = 1;
    for (int i = 0; i < t->rank; i++) {
        if (r->dims[i] < 0)
            return cs_onnx_bad(r, t->proto,
                               "tensor '%.*s': dim %d is %" PRId64 ": weights need every dim",
                               CS_FMT(label_of(t)), i, r->dims[i]);
        empty = empty || r->dims[i] == 0;
        over = over || __builtin_mul_overflow(*count, r->dims[i], count);
    }
    if (empty)
        *count = 0;
    else if (over)
        return fail_tensor(r, t, "the product of its dims is over 2^63: give smaller dims");
    return CUTSET_OK;
}

/* ceil(count * bits / 8); false: over INT64_MAX */
static bool byte_size(int64_t count, unsigned bits, int64_t *bytes)
{
    const int64_t rest = (count % 8 * (int64_t)bits + 7) / 8;
    return !__builtin_mul_overflow(count / 8, (int64_t)bits, bytes) &&
           !__builtin_add_overflow(*bytes, rest, bytes);
}

static cutset_status size_of(const cs_reader *r, const walked *t, cs_elem elem, int64_t *count,
                             int64_t *bytes)
{
    CS_TRY(count_elements(r, t, count));
    if (!byte_size(*count, cs_elem_bits(elem), bytes))
        return fail_tensor(r, t, "its size in bytes is over 2^63: give smaller dims");
    return CUTSET_OK;
}

static cutset_status mismatch(const cs_reader *r, const walked *t, const char *field,
                              uint64_t there, const char *unit, uint64_t need)
{
    return cs_onnx_bad(r, t->proto,
                       "tensor '%.*s': %s holds %" PRIu64 " %s, its dims and type need %" PRIu64
                       ": correct the dims, or save its data again",
                       CS_FMT(label_of(t)), field, there, unit, need);
}

/* ---- typed fields ---- */

static int field_of(cs_elem elem)
{
    switch (elem) {
    case CS_F32:
    case CS_C64:
        return F32_DATA;
    case CS_F64:
    case CS_C128:
        return F64_DATA;
    case CS_I64:
        return I64_DATA;
    case CS_U32:
    case CS_U64:
        return U64_DATA;
    default:
        return I32_DATA;
    }
}

/* How many numbers the typed field needs. */
static uint64_t numbers_needed(cs_elem elem, int64_t count, int64_t bytes)
{
    if (elem == CS_C64 || elem == CS_C128) return (uint64_t)count * 2; /* count x 8 fits */
    const unsigned bits = cs_elem_bits(elem);
    return bits == 4 || bits == 2 ? (uint64_t)bytes : (uint64_t)count; /* a packed byte a number */
}

static void put_le(unsigned char *to, uint64_t x, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)(x >> (8 * i));
}

/* Six bits at 6 * i, first element in the low bits. */
static void put_6(unsigned char *to, uint64_t i, uint64_t x)
{
    const uint64_t bit = 6 * i;
    const unsigned shifted = (unsigned)(x & 63) << (bit % 8);
    to[bit / 8] |= (unsigned char)shifted;
    if (shifted > 255) to[bit / 8 + 1] |= (unsigned char)(shifted >> 8);
}

/* Counts the numbers of a small typed field, and writes them where `to` is given: `step` bytes
 * each, 0 for six bits. */
static cutset_status each_number(const cs_reader *r, const walked *t, int index, uint64_t *count,
                                 unsigned char *to, size_t room, size_t step)
{
    cs_wire w = cs_onnx_wire(r, t->proto), items;
    *count = 0;
    while (cs_wire_next(&w)) {
        uint64_t x;
        if (w.field != fields[index].field || !cs_wire_each(&w, &items, fields[index].item))
            continue;
        for (; cs_wire_item(&items, &x); ++*count) {
            if (to == NULL) continue;
            if (step == 0)
                put_6(to, *count, x);
            else if (*count * step < room)
                put_le(to + *count * step, x,
                       room - *count * step < step ? room - *count * step : step);
        }
        if (items.bad) return cs_wire_error(&items, "TensorProto", r->err);
    }
    return CUTSET_OK;
}

/* A large field of varints: is the length possible at all? Its numbers are not looked at. */
static cutset_status check_large(const cs_reader *r, const walked *t, int index, uint64_t need)
{
    const numbers *n = &t->data[index];
    const uint64_t width = fields[index].item == CS_WIRE_F32 ? 4 : 8;
    uint64_t least, most;
    if (fields[index].item == CS_WIRE_VARINT) {
        least = n->singles + (n->packed + 9) / 10;
        most = n->singles + n->packed;
    } else {
        least = most = n->singles + n->packed / width;
        if (n->packed % width != 0)
            return mismatch(r, t, fields[index].name, n->packed, "bytes", need * width);
    }
    if (least <= need && need <= most) return CUTSET_OK;
    return mismatch(r, t, fields[index].name, need < least ? least : most, "numbers", need);
}

/* Decodes at most CS_CONST_MAX bytes into the pool. */
static cutset_status decode_small(cs_reader *r, const walked *t, int index, uint64_t need,
                                  cs_tensor *out)
{
    const unsigned bits = cs_elem_bits(out->elem);
    const size_t room = (size_t)out->bytes;
    size_t step = need == 0 ? 1 : room / (size_t)need;
    uint64_t there;
    CS_TRY(each_number(r, t, index, &there, NULL, 0, 0));
    /* The checker lets numbers of four packed bytes pass. */
    if (there != need && (bits == 4 || bits == 2) && there == (need + 3) / 4)
        step = 4;
    else if (there != need)
        return mismatch(r, t, fields[index].name, there, "numbers", need);
    unsigned char *to = cs_arena_zalloc(&r->pool->arena, room + 1, 1);
    if (to == NULL) return cs_fail_memory(r->err);
    CS_TRY(each_number(r, t, index, &there, to, room, bits == 6 ? 0 : step));
    out->data = to;
    return CUTSET_OK;
}

static cutset_status read_typed(cs_reader *r, const walked *t, int64_t count, cs_tensor *out)
{
    const int index = field_of(out->elem);
    const uint64_t need = numbers_needed(out->elem, count, out->bytes);
    const numbers *n = &t->data[index];
    if (n->chunks == 0 && n->singles == 0 && need > 0)
        return cs_onnx_bad(r, t->proto,
                           "tensor '%.*s' has no data (raw_data or %s, %" PRId64
                           " bytes); a model without its weights cannot be cut: export "
                           "it with them",
                           CS_FMT(label_of(t)), fields[index].name, out->bytes);
    if (out->bytes <= CS_CONST_MAX)
        CS_TRY(decode_small(r, t, index, need, out));
    else
        CS_TRY(check_large(r, t, index, need));
    /* One packed field of floats has the very bytes that raw_data would have. */
    if (fields[index].item != CS_WIRE_VARINT && n->chunks == 1 && n->singles == 0) {
        out->raw = true;
        out->offset = cs_onnx_offset(r, n->chunk);
        out->length = n->chunk.len;
    }
    return CUTSET_OK;
}

/* ---- the three forms ---- */

static cutset_status read_strings(cs_reader *r, const walked *t, cs_tensor *out)
{
    int64_t count;
    if (t->location == 1 || (t->has_raw && t->raw.len > 0))
        return fail_tensor(r, t, "strings outside of string_data: save them there");
    CS_TRY(count_elements(r, t, &count));
    if (t->strings != (uint64_t)count)
        return mismatch(r, t, "string_data", t->strings, "strings", (uint64_t)count);
    out->bytes = (int64_t)t->string_bytes;
    return CUTSET_OK;
}

static cutset_status read_raw(cs_reader *r, const walked *t, cs_tensor *out)
{
    if (t->raw.len != (uint64_t)out->bytes)
        return mismatch(r, t, "raw_data", t->raw.len, "bytes", (uint64_t)out->bytes);
    out->raw = true;
    out->offset = cs_onnx_offset(r, t->raw);
    out->length = t->raw.len;
    if (out->bytes <= CS_CONST_MAX) out->data = t->raw.at;
    return CUTSET_OK;
}

/* Is there data in a field where this type has none? */
static bool misplaced(const walked *t, int allowed)
{
    bool other = t->strings > 0;
    for (int i = 0; i < N_DATA; i++)
        other = other || (i != allowed && (t->data[i].packed > 0 || t->data[i].singles > 0));
    return other;
}

static cutset_status read_data(cs_reader *r, const walked *t, cs_tensor *out)
{
    int64_t count;
    CS_TRY(size_of(r, t, out->elem, &count, &out->bytes));
    const int index = field_of(out->elem);
    const bool external = t->location == 1;
    const bool raw = t->raw.len > 0 || (t->has_raw && out->bytes == 0);
    if (misplaced(t, external || raw ? -1 : index) || (external && t->raw.len > 0))
        return fail_tensor(
            r, t, "data in a field that is not for it, or in two fields: save it again in one");
    if (external) return cs_onnx_read_external(r, t->proto, label_of(t), out);
    if (raw) return read_raw(r, t, out);
    return read_typed(r, t, count, out);
}

cutset_status cs_onnx_read_tensor(cs_reader *r, cs_span proto, cs_span label, cs_tensor *out)
{
    walked t = {.proto = proto, .label = label, .name = {"", 0}};
    *out = (cs_tensor){.file = CS_ONNX_INLINE};
    CS_TRY(walk(r, &t));
    out->name = t.name;
    if (t.segment) return fail_tensor(r, &t, "segments are not supported: save it as one tensor");
    if (t.elem == CS_ELEM_NONE || t.elem >= CS_ELEM_COUNT)
        return cs_onnx_bad(r, proto,
                           "tensor '%.*s': data type %" PRId64
                           " is not known here: convert it to one of ONNX",
                           CS_FMT(label_of(&t)), (int64_t)t.elem);
    out->elem = (cs_elem)t.elem;
    out->type = cs_type_tensor(r->pool, out->elem, t.rank, r->dims);
    if (out->type == CS_NONE) return cs_fail_memory(r->err);
    if (out->elem == CS_STR) return read_strings(r, &t, out);
    return read_data(r, &t, out);
}

/* ---- sparse ---- */

/* The parts of a sparse tensor; `rank` and r->dims below are its own. */
typedef struct parts {
    cs_tensor values, indices;
    bool has_values, has_indices;
} parts;

static cutset_status read_parts(cs_reader *r, cs_wire *w, cs_span label, parts *p)
{
    if (w->field == 1 && cs_wire_expect(w, CS_WIRE_BYTES)) {
        CS_TRY(cs_onnx_read_tensor(r, w->bytes, label, &p->values));
        p->has_values = true;
    } else if (w->field == 2 && cs_wire_expect(w, CS_WIRE_BYTES)) {
        CS_TRY(cs_onnx_read_tensor(r, w->bytes, label, &p->indices));
        p->has_indices = true;
    }
    return CUTSET_OK;
}

/* An element of a signed integer tensor whose data is at hand. */
static int64_t integer_at(const cs_tensor *t, size_t i)
{
    const unsigned size = cs_elem_bits(t->elem) / 8;
    const unsigned char *at = (const unsigned char *)t->data + i * size;
    uint64_t x = at[size - 1] >= 128 ? UINT64_MAX : 0;
    for (unsigned k = size; k-- > 0;)
        x = x << 8 | at[k];
    return (int64_t)x;
}

/* Each index lies within the dims and after the one before it. `columns` numbers an index: one for
 * each dim, or one into the flat tensor of `count` elements. */
static cutset_status check_order(const cs_reader *r, const walked *t, const cs_tensor *indices,
                                 int64_t nnz, int columns, bool flat, int64_t count)
{
    for (int64_t i = 0; i < nnz; i++) {
        bool after = i == 0;
        for (int k = 0; k < columns; k++) {
            const size_t at = (size_t)i * (size_t)columns + (size_t)k;
            const int64_t x = integer_at(indices, at), end = flat ? count : r->dims[k];
            if (x < 0 || x >= end)
                return cs_onnx_bad(r, t->proto,
                                   "tensor '%.*s': sparse index %" PRId64
                                   " is outside of [0,%" PRId64 "): save the model again",
                                   CS_FMT(label_of(t)), x, end);
            if (after) continue;
            const int64_t last = integer_at(indices, at - (size_t)columns);
            if (x < last) break;
            after = x > last;
        }
        if (!after)
            return fail_tensor(r, t, "its sparse indices do not ascend: sort them, each once");
    }
    return CUTSET_OK;
}

/* [NNZ] indices into the flat tensor, or [NNZ, rank]; `count`: elements of the dense tensor. */
static cutset_status check_indices(const cs_reader *r, const walked *t, const parts *p,
                                   int64_t count)
{
    const cs_type_info *values = cs_type_get(r->pool, p->values.type);
    if (values->rank != 1)
        return fail_tensor(r, t, "sparse values of more or less than one dim: save them as a list");
    const int64_t nnz = cs_type_dims(r->pool, p->values.type)[0];
    if (!p->has_indices) {
        if (nnz == 0) return CUTSET_OK;
        return fail_tensor(r, t, "sparse values without indices: add an index for each value");
    }
    const cs_elem elem = p->indices.elem;
    if (elem != CS_I64 && elem != CS_I32 && elem != CS_I16 && elem != CS_I8)
        return fail_tensor(r, t, "sparse indices that are no integers: save them as int64");
    const int rank = cs_type_get(r->pool, p->indices.type)->rank;
    const cs_dim *dims = cs_type_dims(r->pool, p->indices.type);
    if ((rank != 1 && rank != 2) || dims[0] != nnz || (rank == 2 && dims[1] != t->rank))
        return cs_onnx_bad(r, t->proto,
                           "tensor '%.*s': its sparse indices do not fit its %" PRId64
                           " values: give them the shape [%" PRId64 "] or [%" PRId64 ",%d]",
                           CS_FMT(label_of(t)), nnz, nnz, nnz, t->rank);
    if (p->indices.data == NULL || p->indices.bytes == 0) return CUTSET_OK;
    return check_order(r, t, &p->indices, nnz, rank == 1 ? 1 : t->rank, rank == 1, count);
}

cutset_status cs_onnx_read_sparse(cs_reader *r, cs_span proto, cs_span label, cs_tensor *out)
{
    walked t = {.proto = proto, .label = label, .name = {"", 0}};
    parts p = {.has_values = false};
    int64_t count;
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w))
        CS_TRY(read_parts(r, &w, label, &p));
    if (w.bad) return cs_wire_error(&w, "SparseTensorProto", r->err);
    if (!p.has_values) return cs_onnx_bad_at(r, proto, "a sparse tensor without values: add them");
    t.name = p.values.name;
    if (p.values.file != CS_ONNX_INLINE || (p.has_indices && p.indices.file != CS_ONNX_INLINE))
        return fail_tensor(r, &t,
                           "a sparse tensor with external data is not read: save it in the model");
    /* r->dims was used for the parts: only now come its own. */
    w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w))
        if (w.field == 3) CS_TRY(read_dims(r, &w, &t.rank));
    if (w.bad) return cs_wire_error(&w, "SparseTensorProto", r->err);
    *out = (cs_tensor){.file = CS_ONNX_INLINE, .name = t.name, .elem = p.values.elem};
    if (out->elem == CS_STR)
        return fail_tensor(r, &t, "sparse strings are not read: save them as a dense tensor");
    CS_TRY(size_of(r, &t, out->elem, &count, &out->bytes));
    CS_TRY(check_indices(r, &t, &p, count));
    out->type = cs_type_tensor(r->pool, out->elem, t.rank, r->dims);
    return out->type == CS_NONE ? cs_fail_memory(r->err) : CUTSET_OK;
}
