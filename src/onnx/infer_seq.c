/* Sequences and optional values.
 *
 * Sequences hold tensors (maps only where ZipMap makes them); a sequence of anything else is left
 * unknown, so that types do not nest deeper than the model's own.
 */
#include "onnx/infer_ops.h"

static bool is_tensor(const cs_op *op, cs_type t)
{
    return t != CS_NONE && cs_type_get(op->pool, t)->kind == CS_TENSOR;
}

static void put_sequence(cs_op *op, uint32_t out, cs_type inner)
{
    if (inner == CS_NONE)
        cs_op_no_memory(op);
    else if (is_tensor(op, inner))
        cs_op_put_type(op, out, cs_type_seq(op->pool, inner));
}

/* What a sequence holds; 0: not a sequence. */
static cs_type element(const cs_op *op, uint32_t arg)
{
    const cs_type_info *info = cs_type_get(op->pool, cs_op_type(op, arg));
    return info->kind == CS_SEQ ? info->inner : 0;
}

static void infer_construct(cs_op *op)
{
    cs_type all = cs_op_type(op, 0);
    for (uint32_t i = 1; i < op->node->n_arg && all != CS_NONE; i++)
        all = cs_type_join(op->pool, all, cs_op_type(op, i));
    put_sequence(op, 0, all);
}

static void infer_empty(cs_op *op)
{
    cs_elem e = cs_op_dtype(op, "dtype", CS_F32);
    if (e != CS_ELEM_NONE) put_sequence(op, 0, cs_type_tensor(op->pool, e, CS_RANK_UNKNOWN, NULL));
}

/* An empty sequence, made here: what is put in is all there is. */
static bool is_empty(const cs_op *op, uint32_t arg)
{
    uint32_t value = cs_node_arg(op->g, op->node, arg);
    const cs_value *v = value == CS_NONE ? NULL : &op->g->values.at[value];
    return v && v->origin == CS_ORIGIN_NODE &&
           cs_span_is(cs_name(op->pool, op->g->nodes.at[v->from].op), "SequenceEmpty");
}

static void infer_insert(cs_op *op)
{
    cs_type old = element(op, 0), new = cs_op_type(op, 1);
    if (new &&is_empty(op, 0))
        put_sequence(op, 0, new);
    else if (old && new)
        put_sequence(op, 0, cs_type_join(op->pool, old, new));
    else if (old) /* the elements have one element type */
        put_sequence(
            op, 0,
            cs_type_tensor(op->pool, cs_type_get(op->pool, old)->elem, CS_RANK_UNKNOWN, NULL));
}

static void infer_at(cs_op *op) { cs_op_put_type(op, 0, element(op, 0)); }

/* With a vector the parts have its sizes, with a scalar that size (the last maybe less), without
 * size 1, or no such dim. */
static void infer_split_to(cs_op *op)
{
    int64_t axis;
    bool keep;
    cs_list split;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_list(op, 1, &split);
    bool told = cs_op_int(op, "axis", 0, &axis);
    int at = told ? cs_axis(axis, s.rank) : -1;
    bool told_keep = cs_op_flag(op, "keepdims", true, &keep) || split.state != CS_LIST_ABSENT;
    if (!told_keep || (at < 0 && s.rank == 0)) {
        cs_shape_unknown(&s);
    } else if (split.state == CS_LIST_ABSENT) {
        int n = 0;
        for (int i = 0; i < s.rank; i++) {
            if (i != at || keep) s.dim[n++] = at < 0 ? CS_DIM_UNKNOWN : i == at ? 1 : s.dim[i];
        }
        s.rank = s.rank < 0 ? s.rank : at < 0 && !keep ? s.rank - 1 : n;
    } else if (at >= 0) {
        int64_t size;
        bool even = cs_list_number(&split, &size) && split.scalar && s.dim[at] >= 0 && size > 0 &&
                    s.dim[at] % size == 0;
        s.dim[at] = even ? size : CS_DIM_UNKNOWN;
    } else {
        cs_shape_rank(&s, s.rank);
    }
    cs_elem e = cs_op_elem(op, 0);
    if (e != CS_ELEM_NONE) put_sequence(op, 0, cs_type_tensor(op->pool, e, s.rank, s.dim));
}

static void infer_concat_from(cs_op *op)
{
    int64_t axis;
    bool fresh;
    cs_type t = element(op, 0);
    const cs_type_info *info = cs_type_get(op->pool, t);
    if (info->kind != CS_TENSOR) return;
    cs_elem e = info->elem;
    cs_shape s;
    cs_shape_rank(&s, info->rank);
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = cs_type_dims(op->pool, t)[i];
    bool told = cs_op_int(op, "axis", 0, &axis);
    if (!cs_op_flag(op, "new_axis", false, &fresh)) {
        cs_shape_unknown(&s);
    } else {
        int rank = s.rank < 0 ? -1 : s.rank + fresh;
        int at = told ? cs_axis(axis, rank) : -1;
        if (at < 0) {
            cs_shape_rank(&s, rank);
        } else {
            if (fresh) {
                cs_shape_push(&s, CS_DIM_UNKNOWN);
                for (int i = s.rank - 1; i > at; i--)
                    s.dim[i] = s.dim[i - 1];
            }
            if (s.rank >= 0) s.dim[at] = CS_DIM_UNKNOWN;
        }
    }
    cs_op_put(op, 0, e, &s);
}

/* ---- optional ---- */

static void infer_optional(cs_op *op)
{
    cs_type inner = cs_op_type(op, 0);
    if (!cs_op_has(op, 0)) {
        const cs_attr *a = cs_node_attr(op->g, op->node, "type");
        inner = a && a->kind == CS_ATTR_TYPE ? a->type : 0;
    }
    cs_kind kind = cs_type_get(op->pool, inner)->kind;
    if (kind == CS_TENSOR || kind == CS_SEQ) cs_op_put_type(op, 0, cs_type_opt(op->pool, inner));
}

/* From version 18 on the input may be no optional at all: then it is passed through. */
static void infer_get_element(cs_op *op)
{
    cs_type t = cs_op_type(op, 0);
    const cs_type_info *info = cs_type_get(op->pool, t);
    cs_op_put_type(op, 0, info->kind == CS_OPT ? info->inner : t);
}

/* clang-format off */
#define ONNX(name, f) {CS_DOMAIN_ONNX, name, f, 0, NULL, NULL}
#define RULE(name, rule) {CS_DOMAIN_ONNX, name, cs_infer_rule, 0, rule, NULL}
static const cs_entry table[] = {
    ONNX("SequenceConstruct", infer_construct),
    ONNX("SequenceEmpty", infer_empty),
    ONNX("SequenceInsert", infer_insert),
    ONNX("SequenceErase", cs_infer_same),
    ONNX("SequenceAt", infer_at),
    RULE("SequenceLength", "i64[]"),
    ONNX("SplitToSequence", infer_split_to),
    ONNX("ConcatFromSequence", infer_concat_from),
    ONNX("Optional", infer_optional),
    ONNX("OptionalGetElement", infer_get_element),
    RULE("OptionalHasElement", "bool[]"),
};
/* clang-format on */
const cs_family cs_infer_seq = CS_FAMILY(table);
