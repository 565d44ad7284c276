/* ValueInfoProtos: does one tell enough, and writing one from an inferred type.
 *
 * What inference knows as the symbol N is dim_param "N"; an expression is dim_param with its text,
 * so that equal sizes have equal names across parts; an unknown size is an empty Dimension.
 */
#include "emit/model.h"

#include <string.h>

enum { TENSOR = 1, SEQUENCE = 4, MAP = 5, OPAQUE = 7, SPARSE = 8, OPTIONAL = 9 }; /* TypeProto */

/* ---- reading ---- */

/* The checker wants the rank of tensors; not of those inside sequences, which may differ. */
static bool tensor_is_ranked(cs_span bytes, bool inside)
{
    bool shape = false;
    uint64_t elem = 0;
    cs_wire w = cs_wire_of(bytes, 0);
    while (cs_wire_next(&w)) {
        if (w.field == 1 && w.type == CS_WIRE_VARINT) elem = w.number;
        if (w.field == 2 && w.type == CS_WIRE_BYTES) shape = true;
    }
    return w.bad == NULL && (shape || inside) && elem != 0;
}

/* Goes inwards through sequences, options and maps, without recursion. */
static bool type_is_ranked(cs_span type)
{
    for (int depth = 0; depth < CS_WIRE_DEPTH; depth++) {
        uint32_t kind = 0;
        cs_span inner = {0};
        cs_wire w = cs_wire_of(type, 0);
        while (cs_wire_next(&w))
            if (w.type == CS_WIRE_BYTES && w.field != 6) { /* 6: denotation */
                kind = w.field;
                inner = w.bytes;
            }
        if (w.bad != NULL) return false;
        if (kind == TENSOR || kind == SPARSE) return tensor_is_ranked(inner, depth > 0);
        if (kind == OPAQUE) return true;
        if (kind != SEQUENCE && kind != OPTIONAL && kind != MAP) return false;
        const uint32_t field = kind == MAP ? 2 : 1;
        type = (cs_span){0};
        w = cs_wire_of(inner, 0);
        while (cs_wire_next(&w))
            if (w.field == field && w.type == CS_WIRE_BYTES) type = w.bytes;
        if (w.bad != NULL) return false;
    }
    return false;
}

bool cs_info_is_ranked(cs_span value_info)
{
    bool ranked = false;
    cs_wire w = cs_wire_of(value_info, 0);
    while (cs_wire_next(&w))
        if (w.field == 2 && w.type == CS_WIRE_BYTES) ranked = type_is_ranked(w.bytes);
    return w.bad == NULL && ranked;
}

bool cs_info_can_be_written(const cs_pool *pool, cs_type type)
{
    bool inside = false;
    for (int depth = 0; depth < CS_WIRE_DEPTH; depth++, inside = true) {
        const cs_type_info *info = cs_type_get(pool, type);
        if (info->kind == CS_TENSOR || info->kind == CS_SPARSE)
            return info->elem != CS_ELEM_NONE && (inside || info->rank >= 0);
        if (info->kind != CS_SEQ && info->kind != CS_OPT && info->kind != CS_MAP) return false;
        type = info->inner;
    }
    return false;
}

/* ---- writing ---- */

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Is the whole text one quoted symbol? */
static bool is_quoted(cs_span text)
{
    if (text.len < 2 || text.at[0] != '"' || text.at[text.len - 1] != '"') return false;
    for (size_t i = 1; i + 1 < text.len; i++) {
        if (text.at[i] == '"') return false;
        if (text.at[i] == '\\') i++;
    }
    return true;
}

static void write_param(cs_rope *rope, cs_span text)
{
    if (!is_quoted(text)) {
        cs_rope_string(rope, 2, text);
        return;
    }
    const cs_rope_mark param = cs_rope_open(rope, 2);
    for (size_t i = 1; i + 1 < text.len; i++) {
        char c = text.at[i];
        if (c == '\\') {
            const char *at = text.at + i + 1; /* the closing quote stands behind, at the least */
            if (at[0] == 'x' && i + 4 < text.len && hex(at[1]) >= 0 && hex(at[2]) >= 0) {
                c = (char)(hex(at[1]) * 16 + hex(at[2]));
                i += 3;
            } else {
                c = at[0];
                i++;
            }
        }
        cs_rope_bytes(rope, &c, 1);
    }
    cs_rope_close(rope, param);
}

static void write_tensor(cs_rope *rope, const cs_pool *pool, cs_type type)
{
    const cs_type_info *info = cs_type_get(pool, type);
    const cs_rope_mark tensor = cs_rope_open(rope, info->kind == CS_SPARSE ? SPARSE : TENSOR);
    cs_rope_number(rope, 1, info->elem);
    if (info->rank >= 0) {
        const cs_dim *dims = cs_type_dims(pool, type);
        const cs_rope_mark shape = cs_rope_open(rope, 2);
        for (int i = 0; i < info->rank; i++) {
            const cs_rope_mark dim = cs_rope_open(rope, 1);
            if (dims[i] >= 0)
                cs_rope_number(rope, 1, (uint64_t)dims[i]);
            else if (cs_dim_is_expr(dims[i]))
                write_param(rope, cs_name(pool, cs_dim_text(dims[i])));
            cs_rope_close(rope, dim);
        }
        cs_rope_close(rope, shape);
    }
    cs_rope_close(rope, tensor);
}

/* Types nest a few deep; the bound only guards against our own mistakes. */
static void write_type(cs_rope *rope, uint32_t field, const cs_pool *pool, cs_type type, int depth)
{
    const cs_type_info *info = cs_type_get(pool, type);
    const cs_rope_mark mark = cs_rope_open(rope, field);
    if (info->kind == CS_TENSOR || info->kind == CS_SPARSE) {
        write_tensor(rope, pool, type);
    } else if (info->kind != CS_UNKNOWN && info->kind != CS_OPAQUE && depth < CS_WIRE_DEPTH) {
        const uint32_t kind = info->kind == CS_SEQ   ? SEQUENCE
                              : info->kind == CS_OPT ? OPTIONAL
                                                     : MAP;
        const cs_rope_mark inner = cs_rope_open(rope, kind);
        if (kind == MAP) cs_rope_number(rope, 1, info->elem);
        write_type(rope, kind == MAP ? 2 : 1, pool, info->inner, depth + 1);
        cs_rope_close(rope, inner);
    }
    cs_rope_close(rope, mark);
}

void cs_info_write(cs_rope *rope, uint32_t field, const cs_pool *pool, const cs_info *info)
{
    if (info->type == 0) {
        cs_rope_field(rope, field, &info->declared.from->file, info->declared.bytes);
        return;
    }
    const cs_rope_mark mark = cs_rope_open(rope, field);
    cs_rope_string(rope, 1, info->name);
    write_type(rope, 2, pool, info->type, 0);
    cs_wire w = cs_wire_of(info->declared.bytes, 0);
    while (cs_wire_next(&w))
        if (w.field > 2) cs_rope_slice(rope, &info->declared.from->file, w.raw);
    cs_rope_close(rope, mark);
}
