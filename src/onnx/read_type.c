/* TypeProto and ValueInfoProto -> cs_type.
 *
 * A repeated message field merges, and in a oneof the last wins: so the state is carried over the
 * occurrences, starts anew when the kind changes, and becomes a type at the end.
 */
#include "onnx/read.h"

#include <inttypes.h>

typedef struct state {
    cs_kind kind;
    uint64_t elem;
    int rank; /* dims are in r->dims; only the innermost type of a nest has any */
    cs_type inner;
} state;

static void restart(state *st, cs_kind kind)
{
    if (st->kind != kind) *st = (state){.kind = kind, .rank = CS_RANK_UNKNOWN};
}

/* Dimension: dim_value or dim_param, the last that is there. */
static cutset_status read_dim(cs_reader *r, cs_span proto, cs_dim *out)
{
    cs_wire w = cs_onnx_wire(r, proto);
    *out = CS_DIM_UNKNOWN;
    while (cs_wire_next(&w)) {
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_VARINT)) {
            *out = (int64_t)w.number < 0 ? CS_DIM_UNKNOWN : (cs_dim)w.number;
        } else if (w.field == 2 && cs_wire_expect(&w, CS_WIRE_BYTES)) {
            *out = CS_DIM_UNKNOWN;
            if (w.bytes.len > 0 && !cs_dim_of_param(r->pool, w.bytes, out))
                return cs_fail_memory(r->err);
        }
    }
    return w.bad ? cs_wire_error(&w, "Dimension", r->err) : CUTSET_OK;
}

static cutset_status read_shape(cs_reader *r, cs_span proto, state *st)
{
    cs_wire w = cs_onnx_wire(r, proto);
    if (st->rank == CS_RANK_UNKNOWN) st->rank = 0;
    while (cs_wire_next(&w)) {
        if (w.field != 1 || !cs_wire_expect(&w, CS_WIRE_BYTES)) continue;
        if (st->rank == CS_RANK_MAX)
            return cs_onnx_bad_at(r, proto, "a shape of more than %d dims: give it fewer",
                                  CS_RANK_MAX);
        CS_TRY(read_dim(r, w.bytes, &r->dims[st->rank]));
        st->rank++;
    }
    return w.bad ? cs_wire_error(&w, "TensorShapeProto", r->err) : CUTSET_OK;
}

static cutset_status read_tensor(cs_reader *r, cs_span proto, state *st)
{
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_VARINT))
            st->elem = w.number;
        else if (w.field == 2 && cs_wire_expect(&w, CS_WIRE_BYTES))
            CS_TRY(read_shape(r, w.bytes, st));
    }
    return w.bad ? cs_wire_error(&w, "TypeProto.Tensor", r->err) : CUTSET_OK;
}

static cutset_status read_nested(cs_reader *r, cs_span proto, cs_type *out)
{
    CS_TRY(cs_onnx_enter(r, proto, 2));
    CS_TRY(cs_onnx_read_type(r, proto, out));
    cs_onnx_leave(r, 2);
    return CUTSET_OK;
}

/* Sequence and Optional: one TypeProto. */
static cutset_status read_wrapper(cs_reader *r, cs_span proto, state *st)
{
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w))
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_BYTES))
            CS_TRY(read_nested(r, w.bytes, &st->inner));
    return w.bad ? cs_wire_error(&w, "TypeProto.Sequence", r->err) : CUTSET_OK;
}

static cutset_status read_map(cs_reader *r, cs_span proto, state *st)
{
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_VARINT))
            st->elem = w.number;
        else if (w.field == 2 && cs_wire_expect(&w, CS_WIRE_BYTES))
            CS_TRY(read_nested(r, w.bytes, &st->inner));
    }
    return w.bad ? cs_wire_error(&w, "TypeProto.Map", r->err) : CUTSET_OK;
}

static cutset_status read_fields(cs_reader *r, cs_span proto, state *st)
{
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        static const uint8_t kinds[] = {[1] = CS_TENSOR, [4] = CS_SEQ,    [5] = CS_MAP,
                                        [7] = CS_OPAQUE, [8] = CS_SPARSE, [9] = CS_OPT};
        const cs_kind kind = w.field < sizeof kinds ? (cs_kind)kinds[w.field] : CS_UNKNOWN;
        if (kind == CS_UNKNOWN || !cs_wire_expect(&w, CS_WIRE_BYTES)) continue;
        restart(st, kind);
        if (kind == CS_TENSOR || kind == CS_SPARSE)
            CS_TRY(read_tensor(r, w.bytes, st));
        else if (kind == CS_SEQ || kind == CS_OPT)
            CS_TRY(read_wrapper(r, w.bytes, st));
        else if (kind == CS_MAP)
            CS_TRY(read_map(r, w.bytes, st));
    }
    return w.bad ? cs_wire_error(&w, "TypeProto", r->err) : CUTSET_OK;
}

static cutset_status finish(cs_reader *r, const state *st, cs_span at, cs_type *out)
{
    if (st->elem >= CS_ELEM_COUNT)
        return cs_onnx_bad_at(r, at,
                              "a type with element type %" PRId64 ", which is not known here: give "
                              "one of ONNX",
                              (int64_t)st->elem);
    const cs_elem elem = (cs_elem)st->elem;
    switch (st->kind) {
    case CS_TENSOR:
        *out = cs_type_tensor(r->pool, elem, st->rank, r->dims);
        break;
    case CS_SPARSE:
        *out = cs_type_sparse(r->pool, elem, st->rank, r->dims);
        break;
    case CS_SEQ:
        *out = cs_type_seq(r->pool, st->inner);
        break;
    case CS_OPT:
        *out = cs_type_opt(r->pool, st->inner);
        break;
    case CS_MAP:
        *out = cs_type_map(r->pool, elem, st->inner);
        break;
    case CS_OPAQUE:
        *out = cs_type_opaque(r->pool);
        break;
    default:
        *out = 0;
        break;
    }
    return *out == CS_NONE ? cs_fail_memory(r->err) : CUTSET_OK;
}

cutset_status cs_onnx_read_type(cs_reader *r, cs_span proto, cs_type *out)
{
    state st = {.rank = CS_RANK_UNKNOWN};
    CS_TRY(read_fields(r, proto, &st));
    return finish(r, &st, proto, out);
}

cutset_status cs_onnx_read_info(cs_reader *r, cs_span proto, cs_span *name, cs_type *type)
{
    state st = {.rank = CS_RANK_UNKNOWN};
    cs_wire w = cs_onnx_wire(r, proto);
    *name = (cs_span){"", 0};
    while (cs_wire_next(&w)) {
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_BYTES))
            *name = w.bytes;
        else if (w.field == 2 && cs_wire_expect(&w, CS_WIRE_BYTES))
            CS_TRY(read_fields(r, w.bytes, &st));
    }
    if (w.bad) return cs_wire_error(&w, "ValueInfoProto", r->err);
    return finish(r, &st, proto, type);
}
