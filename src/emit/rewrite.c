/* Re-encoding of messages whose tensors move; see rewrite.h.
 *
 * One walk: a message is opened on the rope, its fields are added, and where none changed the rope
 * is cut back and the message's own bytes are taken instead. Recursion is bounded by
 * CS_WIRE_DEPTH, which the reader enforces too.
 */
#include "emit/rewrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { /* field numbers, onnx.proto */
       TENSOR_DIMS = 1,
       TENSOR_TYPE = 2,
       TENSOR_NAME = 8,
       TENSOR_RAW = 9,
       TENSOR_EXTERNAL = 13,
       TENSOR_LOCATION = 14
};

typedef struct found { /* a TensorProto, as far as its data goes */
    cs_blob tensor;
    cs_span length, checksum;
    uint64_t elements;
    uint64_t type;
    bool external, raw, overflow;
} found;

void cs_rewriter_init(cs_rewriter *rw, cs_rope *rope, cs_place_fn place, void *payload)
{
    *rw = (cs_rewriter){.place = place, .payload = payload, .rope = rope};
}

static void forget_locations(cs_rewriter *rw)
{
    if (rw->located != NULL) cs_strtab_fini(&rw->paths);
    cs_map_fini(&rw->locations);
    rw->located = NULL;
}

void cs_rewriter_fini(cs_rewriter *rw) { forget_locations(rw); }

/* ---- tensors ---- */

static bool learn_locations(cs_rewriter *rw)
{
    char path[CS_ONNX_PATH];
    const cs_onnx *from = rw->from;
    forget_locations(rw);
    if (!cs_strtab_init(&rw->paths)) return false;
    rw->located = from;
    for (uint32_t i = 0; i < from->files.len; i++) {
        const cs_span location = cs_name(from->pool, from->files.at[i].location);
        if (cs_onnx_normalise(location, path) != NULL) continue; /* the reader has refused these */
        const cs_str id = cs_strtab_add(&rw->paths, cs_span_of(path), false);
        if (id == CS_NONE || !cs_map_put(&rw->locations, id, i)) return false;
    }
    return true;
}

/* Which data file `location` names; the table is made anew for each model. */
static cutset_status find_file(cs_rewriter *rw, cs_blob *b)
{
    char path[CS_ONNX_PATH];
    if (rw->located != rw->from && !learn_locations(rw)) {
        forget_locations(rw);
        return cs_fail_memory(rw->err);
    }
    const cs_str id = cs_onnx_normalise(b->location, path) != NULL
                          ? CS_NONE
                          : cs_strtab_find(&rw->paths, cs_span_of(path));
    b->file = id == CS_NONE ? CS_NONE : cs_map_get(&rw->locations, id);
    if (b->file != CS_NONE) return CUTSET_OK;
    return cs_fail(rw->err, CUTSET_BAD, "tensor %.*s: its data file %.*s was not found",
                   CS_FMT(b->name), CS_FMT(b->location));
}

static void read_dims(cs_wire *w, found *f)
{
    cs_wire items;
    uint64_t dim;
    if (!cs_wire_each(w, &items, CS_WIRE_VARINT)) return;
    while (cs_wire_item(&items, &dim))
        if (__builtin_mul_overflow(f->elements, dim, &f->elements)) f->overflow = true;
}

static bool read_entry(cs_span bytes, found *f, cs_span *offset)
{
    cs_span key = {0}, value = {0};
    cs_wire w = cs_wire_of(bytes, 0);
    while (cs_wire_next(&w)) {
        if (w.field == 1) key = w.bytes;
        if (w.field == 2) value = w.bytes;
    }
    if (cs_span_is(key, "location")) f->tensor.location = value;
    if (cs_span_is(key, "offset")) *offset = value;
    if (cs_span_is(key, "length")) f->length = value;
    if (cs_span_is(key, "checksum")) f->checksum = value;
    return w.bad == NULL;
}

static cutset_status fail_tensor(const found *f, const char *why, cutset_error *err)
{
    return cs_fail(err, CUTSET_BAD, "tensor %.*s: %s: export the model again",
                   CS_FMT(f->tensor.name), why);
}

/* Where the data lies in its file: the length may be left out, then the dims tell it. */
static cutset_status locate(cs_rewriter *rw, found *f, cs_span offset)
{
    cs_blob *t = &f->tensor;
    const cutset_status status = find_file(rw, t);
    if (status != CUTSET_OK) return status;
    int64_t x = 0;
    if (offset.len > 0 && (!cs_parse_i64(offset, &x) || x < 0))
        return fail_tensor(f, "the offset of its data is no number", rw->err);
    t->offset = (uint64_t)x;
    if (f->length.len > 0) {
        if (!cs_parse_i64(f->length, &x) || x < 0)
            return fail_tensor(f, "the length of its data is no number", rw->err);
        t->length = (uint64_t)x;
    } else {
        const unsigned bits = f->type < CS_ELEM_COUNT ? cs_elem_bits((cs_elem)f->type) : 0;
        uint64_t total;
        if (f->overflow || bits == 0 || __builtin_mul_overflow(f->elements, bits, &total))
            return fail_tensor(f, "its data has no length", rw->err);
        t->length = total / 8 + (total % 8 != 0);
    }
    const cs_data_file *file = &rw->from->files.at[t->file];
    if (t->offset > file->size || t->length > file->size - t->offset)
        return cs_fail(rw->err, CUTSET_BAD,
                       "tensor %.*s: %s has %" PRIu64 " bytes, %" PRIu64 " at offset %" PRIu64
                       " are wanted: it was cut or changed",
                       CS_FMT(t->name), file->path, file->size, t->length, t->offset);
    return CUTSET_OK;
}

static cutset_status read_tensor(cs_rewriter *rw, cs_span bytes, found *f)
{
    cs_span offset = {0};
    const uint64_t base = (uint64_t)((const unsigned char *)bytes.at - rw->from->file.at);
    cs_wire w = cs_wire_of(bytes, base);
    bool whole = true;
    while (cs_wire_next(&w)) {
        switch (w.field) {
        case TENSOR_DIMS:
            read_dims(&w, f);
            break;
        case TENSOR_TYPE:
            f->type = w.number;
            break;
        case TENSOR_NAME:
            f->tensor.name = w.bytes;
            break;
        case TENSOR_RAW:
            f->raw = true;
            f->tensor.offset = cs_wire_payload(&w);
            f->tensor.length = w.bytes.len;
            break;
        case TENSOR_EXTERNAL:
            whole = whole && read_entry(w.bytes, f, &offset);
            break;
        case TENSOR_LOCATION:
            f->external = w.number == 1;
            break;
        default:
            break;
        }
    }
    if (w.bad != NULL || !whole) return cs_wire_error(&w, "TensorProto", rw->err);
    f->tensor.from = rw->from;
    if (f->external) return locate(rw, f, offset);
    f->tensor.file = CS_ONNX_INLINE;
    return CUTSET_OK;
}

static void put_entry(cs_rope *rope, const char *key, cs_span value)
{
    const cs_rope_mark entry = cs_rope_open(rope, TENSOR_EXTERNAL);
    cs_rope_string(rope, 1, cs_span_of(key));
    cs_rope_string(rope, 2, value);
    cs_rope_close(rope, entry);
}

static void put_number_entry(cs_rope *rope, const char *key, uint64_t x)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, x);
    put_entry(rope, key, cs_span_of(text));
}

static void put_data(cs_rewriter *rw, const found *f, const cs_place *place)
{
    cs_rope *rope = rw->rope;
    const cs_blob *t = &f->tensor;
    if (place->kind == CS_PLACE_EXTERNAL) {
        put_entry(rope, "location", place->location);
        put_number_entry(rope, "offset", place->offset);
        put_number_entry(rope, "length", t->length);
        if (place->same_file && f->checksum.len > 0) put_entry(rope, "checksum", f->checksum);
        cs_rope_number(rope, TENSOR_LOCATION, 1);
    } else if (t->length > 0) { /* a tensor without elements has no data field */
        cs_rope_head(rope, TENSOR_RAW, t->length);
        cs_rope_range(rope, rw->from->files.at[t->file].path, t->offset, t->length);
    }
}

/* The other fields with numbers from `from` to below `to`. Where the source stands in the order of
 * field numbers, as protobuf writes, so does ours: data that comes back gives the same bytes. */
static void put_fields(cs_rewriter *rw, cs_span bytes, uint32_t from, uint32_t to)
{
    cs_wire w = cs_wire_of(bytes, 0);
    while (cs_wire_next(&w))
        if (w.field >= from && w.field < to && w.field != TENSOR_RAW &&
            w.field != TENSOR_EXTERNAL && w.field != TENSOR_LOCATION)
            cs_rope_slice(rw->rope, &rw->from->file, w.raw);
}

static cutset_status rewrite_tensor(cs_rewriter *rw, cs_span bytes, bool sparse, bool *changed)
{
    found f = {.elements = 1, .tensor.sparse = sparse};
    cutset_status status = read_tensor(rw, bytes, &f);
    if (status != CUTSET_OK || (!f.external && !f.raw)) return status;
    cs_place place = {CS_PLACE_KEEP};
    status = rw->place(rw->payload, &f.tensor, &place, rw->err);
    if (status != CUTSET_OK || place.kind == CS_PLACE_KEEP) return status;
    if (place.kind == CS_PLACE_INLINE && !f.external) return CUTSET_OK;
    *changed = true;
    const uint32_t at = place.kind == CS_PLACE_EXTERNAL ? TENSOR_EXTERNAL : TENSOR_RAW;
    put_fields(rw, bytes, 0, at);
    put_data(rw, &f, &place);
    put_fields(rw, bytes, at, UINT32_MAX);
    return CUTSET_OK;
}

/* ---- messages ---- */

/* Which fields of a message lead to tensors: -1 none, else the kind of message. */
static int inside(cs_message kind, uint32_t field)
{
    switch (kind) {
    case CS_MESSAGE_NODE:
        return field == 5 ? CS_MESSAGE_ATTRIBUTE : -1;
    case CS_MESSAGE_FUNCTION:
        return field == 7 ? CS_MESSAGE_NODE : -1;
    case CS_MESSAGE_SPARSE:
        return field == 1 || field == 2 ? CS_MESSAGE_TENSOR : -1;
    case CS_MESSAGE_ATTRIBUTE:
        return field == 5 || field == 10    ? CS_MESSAGE_TENSOR
               : field == 6 || field == 11  ? CS_MESSAGE_GRAPH
               : field == 22 || field == 23 ? CS_MESSAGE_SPARSE
                                            : -1;
    case CS_MESSAGE_GRAPH:
        return field == 1    ? CS_MESSAGE_NODE
               : field == 5  ? CS_MESSAGE_TENSOR
               : field == 15 ? CS_MESSAGE_SPARSE
                             : -1;
    case CS_MESSAGE_TENSOR:
        break;
    }
    return -1;
}

static cutset_status rewrite(cs_rewriter *rw, cs_message kind, cs_span bytes, bool sparse,
                             unsigned depth, bool *changed)
{
    if (kind == CS_MESSAGE_TENSOR) return rewrite_tensor(rw, bytes, sparse, changed);
    if (depth > CS_WIRE_DEPTH)
        return cs_fail(rw->err, CUTSET_BAD, "messages are nested more than %d deep", CS_WIRE_DEPTH);
    cs_wire w = cs_wire_of(bytes, 0);
    while (cs_wire_next(&w)) {
        const int child = w.type == CS_WIRE_BYTES ? inside(kind, w.field) : -1;
        bool moved = false;
        if (child >= 0) {
            const cs_rope_mark mark = cs_rope_open(rw->rope, w.field);
            const cutset_status status = rewrite(rw, (cs_message)child, w.bytes,
                                                 kind == CS_MESSAGE_SPARSE, depth + 1, &moved);
            if (status != CUTSET_OK) return status;
            if (moved)
                cs_rope_close(rw->rope, mark);
            else
                cs_rope_cut(rw->rope, mark);
        }
        if (!moved) cs_rope_slice(rw->rope, &rw->from->file, w.raw);
        *changed = *changed || moved;
    }
    return w.bad != NULL ? cs_wire_error(&w, "a message", rw->err) : CUTSET_OK;
}

cutset_status cs_rewrite(cs_rewriter *rw, uint32_t field, cs_message kind, cs_piece piece,
                         cutset_error *err)
{
    rw->from = piece.from;
    rw->err = err;
    bool changed = false;
    const cs_rope_mark mark = cs_rope_open(rw->rope, field);
    const cutset_status status = rewrite(rw, kind, piece.bytes, false, 0, &changed);
    if (status != CUTSET_OK) return status;
    if (changed) {
        cs_rope_close(rw->rope, mark);
    } else {
        cs_rope_cut(rw->rope, mark);
        cs_rope_field(rw->rope, field, &piece.from->file, piece.bytes);
    }
    return CUTSET_OK;
}
