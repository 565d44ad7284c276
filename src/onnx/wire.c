/* The protobuf wire cursor: tags, varints, fixed numbers, lengths, groups.
 *
 * A cursor that met something it cannot read is bad for good: it stands still, and only
 * cs_wire_error still looks at it. A varint has at most 10 bytes and 64 bits; a field number is 1
 * to 2^29 - 1. Groups (long dead, but legal in unknown fields) are skipped without recursion.
 *
 * The names of the fields stand here for messages only; readers work with numbers.
 */
#include "onnx/wire.h"
#include "onnx/onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { GROUP_START = 3, GROUP_END = 4, FIELD_MAX = (1 << 29) - 1 };

/* Compared by address in cs_wire_error, which adds the number to some. */
static const char bad_end[] = "the bytes end inside it (file truncated?)";
static const char bad_length[] = "runs past the end (file truncated?)";
static const char bad_varint[] = "a varint of more than 64 bits";
static const char bad_field[] = "no such field number";
static const char bad_type[] = "no such wire type";
static const char bad_expect[] = "is expected";
static const char bad_group[] = "a group that is not closed, or nested too deep";
static const char bad_packed[] = "packed numbers that do not fill their length";

cs_wire cs_wire_of(cs_span bytes, uint64_t base)
{
    const unsigned char *at = (const unsigned char *)(bytes.at == NULL ? "" : bytes.at);
    return (cs_wire){.start = at, .at = at, .end = at + bytes.len, .base = base};
}

static bool mark(cs_wire *w, const char *bad)
{
    w->bad = bad;
    return false;
}

/* Reads at w->at; moves on only when whole. */
static bool read_varint(cs_wire *w, uint64_t *out)
{
    const unsigned char *at = w->at;
    if (at < w->end && *at < 0x80) { /* by far the most common */
        *out = *at;
        w->at = at + 1;
        return true;
    }
    uint64_t x = 0;
    for (unsigned shift = 0; at < w->end; shift += 7) {
        const unsigned char byte = *at++;
        if (shift == 63 && byte > 1) return mark(w, bad_varint);
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = x;
            w->at = at;
            return true;
        }
    }
    return mark(w, bad_end);
}

static bool read_fixed(cs_wire *w, size_t size, uint64_t *out)
{
    if ((size_t)(w->end - w->at) < size) return mark(w, bad_end);
    uint64_t x = 0;
    for (size_t i = 0; i < size; i++)
        x |= (uint64_t)w->at[i] << (8 * i);
    *out = x;
    w->at += size;
    return true;
}

static bool read_bytes(cs_wire *w, cs_span *out)
{
    uint64_t len;
    if (!read_varint(w, &len)) return false;
    if (len > (uint64_t)(w->end - w->at)) {
        w->number = len;
        return mark(w, bad_length);
    }
    *out = (cs_span){(const char *)w->at, (size_t)len};
    w->at += len;
    return true;
}

static bool read_tag(cs_wire *w, uint32_t *field, int *type)
{
    uint64_t key;
    *field = 0; /* a failure before the number is known is the message's */
    if (!read_varint(w, &key)) return false;
    *type = (int)(key & 7);
    *field = (uint32_t)(key >> 3);
    if (key >> 3 == 0 || key >> 3 > FIELD_MAX) {
        w->number = key >> 3;
        return mark(w, bad_field);
    }
    return true;
}

static bool read_payload(cs_wire *w, int type, uint64_t *number, cs_span *bytes)
{
    switch (type) {
    case CS_WIRE_VARINT:
        return read_varint(w, number);
    case CS_WIRE_F64:
        return read_fixed(w, 8, number);
    case CS_WIRE_BYTES:
        return read_bytes(w, bytes);
    case CS_WIRE_F32:
        return read_fixed(w, 4, number);
    default:
        return mark(w, bad_type);
    }
}

/* From behind the start tag of a group to behind its end tag. */
static bool skip_group(cs_wire *w)
{
    for (int open = 1; open > 0;) {
        uint32_t field;
        int type;
        uint64_t number;
        cs_span bytes;
        if (w->at == w->end) return mark(w, bad_group);
        if (!read_tag(w, &field, &type)) return false;
        if (type == GROUP_START) {
            if (++open > CS_WIRE_DEPTH) return mark(w, bad_group);
        } else if (type == GROUP_END) {
            open--;
        } else if (!read_payload(w, type, &number, &bytes)) {
            return false;
        }
    }
    return true;
}

bool cs_wire_next(cs_wire *w)
{
    if (w->bad != NULL || w->at == w->end) return false;
    w->raw = (cs_span){(const char *)w->at, 0};
    if (!read_tag(w, &w->field, &w->type)) return false;
    const bool whole =
        w->type == GROUP_START ? skip_group(w) : read_payload(w, w->type, &w->number, &w->bytes);
    if (!whole) return false;
    w->raw.len = (size_t)((const char *)w->at - w->raw.at);
    return true;
}

uint64_t cs_wire_payload(const cs_wire *w)
{
    return w->base + (uint64_t)((const unsigned char *)w->bytes.at - w->start);
}

bool cs_wire_expect(cs_wire *w, int type)
{
    if (w->type == type) return true;
    if (w->bad != NULL) return false;
    w->number = (uint64_t)type;
    return mark(w, bad_expect);
}

/* A single number is an items cursor without bytes whose `raw` is set until it was taken. */
bool cs_wire_each(cs_wire *w, cs_wire *items, int item_type)
{
    if (w->type == CS_WIRE_BYTES) {
        *items = cs_wire_of(w->bytes, cs_wire_payload(w));
    } else if (cs_wire_expect(w, item_type)) {
        *items = (cs_wire){.start = w->at, .at = w->at, .end = w->at, .base = w->base};
        items->base += (uint64_t)(w->at - w->start);
        items->number = w->number;
        items->raw = w->raw;
    } else {
        return false;
    }
    items->field = w->field;
    items->type = item_type;
    return true;
}

bool cs_wire_item(cs_wire *items, uint64_t *x)
{
    if (items->raw.at != NULL) {
        *x = items->number;
        items->raw.at = NULL;
        return true;
    }
    if (items->bad != NULL || items->at == items->end) return false;
    if (items->type == CS_WIRE_VARINT) return read_varint(items, x);
    if (read_fixed(items, items->type == CS_WIRE_F32 ? 4 : 8, x)) return true;
    return mark(items, bad_packed);
}

/* ---- messages ---- */

static const struct {
    const char *message;
    uint32_t field;
    const char *name;
} names[] = {
    {"ModelProto", 1, "ir_version"},
    {"ModelProto", 7, "graph"},
    {"ModelProto", 8, "opset_import"},
    {"ModelProto", 20, "training_info"},
    {"ModelProto", 25, "functions"},
    {"OperatorSetIdProto", 1, "domain"},
    {"OperatorSetIdProto", 2, "version"},
    {"GraphProto", 1, "node"},
    {"GraphProto", 2, "name"},
    {"GraphProto", 5, "initializer"},
    {"GraphProto", 11, "input"},
    {"GraphProto", 12, "output"},
    {"GraphProto", 13, "value_info"},
    {"GraphProto", 14, "quantization_annotation"},
    {"GraphProto", 15, "sparse_initializer"},
    {"NodeProto", 1, "input"},
    {"NodeProto", 2, "output"},
    {"NodeProto", 3, "name"},
    {"NodeProto", 4, "op_type"},
    {"NodeProto", 5, "attribute"},
    {"NodeProto", 7, "domain"},
    {"NodeProto", 8, "overload"},
    {"AttributeProto", 1, "name"},
    {"AttributeProto", 2, "f"},
    {"AttributeProto", 3, "i"},
    {"AttributeProto", 4, "s"},
    {"AttributeProto", 5, "t"},
    {"AttributeProto", 6, "g"},
    {"AttributeProto", 7, "floats"},
    {"AttributeProto", 8, "ints"},
    {"AttributeProto", 9, "strings"},
    {"AttributeProto", 10, "tensors"},
    {"AttributeProto", 11, "graphs"},
    {"AttributeProto", 14, "tp"},
    {"AttributeProto", 20, "type"},
    {"AttributeProto", 21, "ref_attr_name"},
    {"AttributeProto", 22, "sparse_tensor"},
    {"ValueInfoProto", 1, "name"},
    {"ValueInfoProto", 2, "type"},
    {"TensorProto", 1, "dims"},
    {"TensorProto", 2, "data_type"},
    {"TensorProto", 3, "segment"},
    {"TensorProto", 4, "float_data"},
    {"TensorProto", 5, "int32_data"},
    {"TensorProto", 6, "string_data"},
    {"TensorProto", 7, "int64_data"},
    {"TensorProto", 8, "name"},
    {"TensorProto", 9, "raw_data"},
    {"TensorProto", 10, "double_data"},
    {"TensorProto", 11, "uint64_data"},
    {"TensorProto", 13, "external_data"},
    {"TensorProto", 14, "data_location"},
    {"SparseTensorProto", 1, "values"},
    {"SparseTensorProto", 2, "indices"},
    {"SparseTensorProto", 3, "dims"},
    {"StringStringEntryProto", 1, "key"},
    {"StringStringEntryProto", 2, "value"},
    {"TensorAnnotation", 1, "tensor_name"},
    {"TypeProto", 1, "tensor_type"},
    {"TypeProto", 4, "sequence_type"},
    {"TypeProto", 5, "map_type"},
    {"TypeProto", 7, "opaque_type"},
    {"TypeProto", 8, "sparse_tensor_type"},
    {"TypeProto", 9, "optional_type"},
    {"TypeProto.Tensor", 1, "elem_type"},
    {"TypeProto.Tensor", 2, "shape"},
    {"TypeProto.Sequence", 1, "elem_type"},
    {"TypeProto.Map", 1, "key_type"},
    {"TypeProto.Map", 2, "value_type"},
    {"TensorShapeProto", 1, "dim"},
    {"Dimension", 1, "dim_value"},
    {"Dimension", 2, "dim_param"},
    {"FunctionProto", 1, "name"},
    {"FunctionProto", 4, "input"},
    {"FunctionProto", 5, "output"},
    {"FunctionProto", 6, "attribute"},
    {"FunctionProto", 7, "node"},
    {"FunctionProto", 9, "opset_import"},
    {"FunctionProto", 10, "domain"},
    {"FunctionProto", 11, "attribute_proto"},
    {"FunctionProto", 12, "value_info"},
    {"FunctionProto", 13, "overload"},
};

/* "NodeProto.attribute", "NodeProto.field 77", or "NodeProto" where the tag itself is bad. */
static const char *place(const char *message, uint32_t field, char buffer[64])
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].field != field || strcmp(names[i].message, message) != 0) continue;
        snprintf(buffer, 64, "%s.%s", message, names[i].name);
        return buffer;
    }
    if (field == 0) return message;
    snprintf(buffer, 64, "%s.field %" PRIu32, message, field);
    return buffer;
}

cutset_status cs_wire_error(const cs_wire *w, const char *message, cutset_error *err)
{
    char buffer[64], why[64];
    const unsigned char *at =
        w->raw.at == NULL ? w->at : (const unsigned char *)w->raw.at; /* packed items have no tag */
    const uint64_t offset = w->base + (uint64_t)(at - w->start);
    if (w->bad == bad_length)
        snprintf(why, sizeof why, "length %" PRIu64 " %s", w->number, w->bad);
    else if (w->bad == bad_expect)
        snprintf(why, sizeof why, "wire type %d where %d %s", w->type, (int)w->number, w->bad);
    else if (w->bad == bad_type)
        snprintf(why, sizeof why, "%s: %d", w->bad, w->type);
    else if (w->bad == bad_field)
        snprintf(why, sizeof why, "%s: %" PRIu64, w->bad, w->number);
    else
        snprintf(why, sizeof why, "%s", w->bad);
    return cs_fail_at(err, CUTSET_BAD, offset,
                      "offset %" PRIu64 ": %s: %s: copy or export the file again", offset,
                      place(message, w->field, buffer), why);
}
