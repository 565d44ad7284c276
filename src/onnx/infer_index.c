/* Operators that pick, scatter, sort and reduce. */
#include "onnx/infer_ops.h"

/* ---- gather ---- */

/* param: the input whose element type the output has. */
static void infer_gather(cs_op *op)
{
    int64_t axis;
    bool packed = op->entry->param != 0; /* GatherBlockQuantized: the last dim may be packed */
    cs_shape data, at, out;
    cs_op_shape(op, 0, &data);
    cs_op_shape(op, 1, &at);
    bool told = cs_op_int(op, packed ? "gather_axis" : "axis", 0, &axis);
    int k = told ? cs_axis(axis, data.rank) : -1;
    cs_shape_rank(&out, data.rank < 1 || at.rank < 0 ? -1 : (int64_t)data.rank + at.rank - 1);
    if (packed && data.rank > 0) data.dim[data.rank - 1] = CS_DIM_UNKNOWN;
    if (out.rank >= 0 && k >= 0) {
        out.rank = 0;
        for (int i = 0; i < k; i++)
            cs_shape_push(&out, data.dim[i]);
        for (int i = 0; i < at.rank; i++)
            cs_shape_push(&out, at.dim[i]);
        for (int i = k + 1; i < data.rank; i++)
            cs_shape_push(&out, data.dim[i]);
    }
    cs_op_put(op, 0, cs_op_elem(op, (uint32_t)op->entry->param), &out);
}

static void infer_gather_nd(cs_op *op)
{
    int64_t batch;
    cs_shape data, at, out;
    cs_op_shape(op, 0, &data);
    cs_op_shape(op, 1, &at);
    bool told = cs_op_int(op, "batch_dims", 0, &batch) && data.rank >= 0 && at.rank >= 1;
    cs_dim depth = told ? at.dim[at.rank - 1] : CS_DIM_UNKNOWN;
    cs_shape_unknown(&out);
    if (told && depth >= 0 && batch >= 0 && batch <= data.rank && depth <= data.rank - batch) {
        out.rank = 0;
        for (int i = 0; i < at.rank - 1; i++)
            cs_shape_push(&out, at.dim[i]);
        for (int64_t i = batch + depth; i < data.rank; i++)
            cs_shape_push(&out, data.dim[i]);
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

/* ---- what depends on the data ---- */

static void infer_nonzero(cs_op *op)
{
    int rank = cs_op_rank(op, 0);
    cs_shape s = {.rank = 0};
    /* Of a scalar: the text and the runtimes differ, 0 or 1 rows. */
    cs_shape_push(&s, rank > 0 ? rank : CS_DIM_UNKNOWN);
    cs_shape_push(&s, CS_DIM_UNKNOWN);
    cs_op_put(op, 0, CS_I64, &s);
}

static void infer_compress(cs_op *op)
{
    int64_t axis;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    if (!cs_op_any(op, "axis"))
        cs_shape_rank(&s, 1);
    else if (cs_op_int(op, "axis", 0, &axis) && cs_axis(axis, s.rank) >= 0)
        s.dim[cs_axis(axis, s.rank)] = CS_DIM_UNKNOWN;
    else
        cs_shape_rank(&s, s.rank);
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

static void infer_unique(cs_op *op)
{
    infer_compress(op); /* the same rule for what is kept */
    for (uint32_t i = 1; i < 4; i++)
        cs_op_put_rank(op, i, CS_I64, 1);
}

/* ---- one-hot, top-k, arg-max ---- */

static void infer_one_hot(cs_op *op)
{
    int64_t axis;
    double number;
    cs_list depth;
    cs_shape at, out;
    cs_op_shape(op, 0, &at);
    cs_op_list(op, 1, &depth);
    cs_dim d = CS_DIM_UNKNOWN;
    if (depth.state == CS_LIST_KNOWN && depth.len == 1)
        d = cs_item_dim(depth.at[0]);
    else if (cs_op_scalar(op, 1, &number) && number >= 0 && number <= 0x1p53)
        d = (cs_dim)number;
    bool told = cs_op_int(op, "axis", -1, &axis);
    cs_shape_rank(&out, at.rank < 0 ? -1 : (int64_t)at.rank + 1);
    int k = told ? cs_axis(axis, out.rank) : -1;
    for (int i = 0, from = 0; k >= 0 && i < out.rank; i++)
        out.dim[i] = i == k ? d : at.dim[from++];
    cs_op_put(op, 0, cs_op_elem(op, 2), &out);
}

static void infer_top_k(cs_op *op)
{
    int64_t axis, k;
    cs_list list;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    bool told = cs_op_int(op, "axis", -1, &axis);
    int at = told ? cs_axis(axis, s.rank) : -1;
    cs_op_list(op, 1, &list);
    cs_dim d = CS_DIM_UNKNOWN;
    if (op->opset < 10)
        d = cs_op_int(op, "k", -1, &k) ? cs_dim_number(k) : CS_DIM_UNKNOWN;
    else if (list.state == CS_LIST_KNOWN && list.len == 1)
        d = cs_item_dim(list.at[0]);
    if (at >= 0)
        s.dim[at] = d;
    else
        cs_shape_rank(&s, s.rank);
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
    cs_op_put(op, 1, CS_I64, &s);
}

/* Drops the flagged dims, or makes them 1. */
static void reduce_dims(cs_shape *s, const bool *flags, bool keep)
{
    int n = 0;
    for (int i = 0; i < s->rank; i++) {
        if (!flags[i])
            s->dim[n++] = s->dim[i];
        else if (keep)
            s->dim[n++] = 1;
    }
    s->rank = n;
}

static void infer_arg(cs_op *op)
{
    int64_t axis;
    bool keep, flags[CS_SHAPE_MAX] = {false};
    cs_shape s;
    cs_op_shape(op, 0, &s);
    bool told = cs_op_int(op, "axis", 0, &axis);
    bool told_keep = cs_op_flag(op, "keepdims", true, &keep);
    int at = told ? cs_axis(axis, s.rank) : -1;
    if (at >= 0 && told_keep) {
        flags[at] = true;
        reduce_dims(&s, flags, keep);
    } else {
        cs_shape_rank(&s, !told && told_keep && s.rank > 0 ? s.rank - !keep : -1);
    }
    cs_op_put(op, 0, CS_I64, &s);
}

/* ---- reductions ---- */

/* The axes to reduce are not all known. */
static void reduce_blindly(cs_shape *s, const cs_list *axes, bool keep)
{
    if (cs_list_numbers(axes))
        cs_shape_unknown(s); /* no such axes */
    else if (keep)
        cs_shape_rank(s, s->rank);
    else if (axes->state >= CS_LIST_LENGTH)
        cs_shape_rank(s, s->rank < 0 ? -1 : (int64_t)s->rank - axes->len);
    else
        cs_shape_unknown(s);
}

/* param: the version from which axes are an input; or CS_AXES_ATTR: always an attribute. An element
 * type that is not the input's is above CS_ELEM_SHIFT. */
static void infer_reduce(cs_op *op)
{
    bool keep, noop, flags[CS_SHAPE_MAX];
    cs_list axes;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    int since = op->entry->param & 0xff;
    if ((op->entry->param & CS_AXES_ATTR) || op->opset < since)
        cs_op_list_attr(op, "axes", &axes);
    else
        cs_op_list(op, 1, &axes);
    bool told = cs_op_flag(op, "keepdims", true, &keep);
    told = cs_op_flag(op, "noop_with_empty_axes", false, &noop) && told;
    bool none = axes.state == CS_LIST_ABSENT || (axes.state == CS_LIST_KNOWN && axes.len == 0);
    if (!told) {
        cs_shape_unknown(&s);
    } else if (none && !noop) {
        if (!keep) s.rank = 0; /* whatever the input's rank */
        for (int i = 0; i < s.rank; i++)
            s.dim[i] = 1;
    } else if (!none) {
        if (cs_list_axes(&axes, s.rank, flags))
            reduce_dims(&s, flags, keep);
        else
            reduce_blindly(&s, &axes, keep);
    }
    cs_elem e = (cs_elem)(op->entry->param >> CS_ELEM_SHIFT);
    cs_op_put(op, 0, e ? e : cs_op_elem(op, 0), &s);
}

/* ---- the table ---- */

/* clang-format off */
#define SAME(name) {CS_DOMAIN_ONNX, name, cs_infer_same, 0, NULL, NULL}
#define RULE(name, rule) {CS_DOMAIN_ONNX, name, cs_infer_rule, 0, rule, NULL}
#define ENTRY(name, f, param, data) {CS_DOMAIN_ONNX, name, f, param, NULL, data}
#define REDUCE(name, since, how, data) {CS_DOMAIN_ONNX, name, infer_reduce, since, how, data}
static const cs_entry table[] = {
    ENTRY("Gather", infer_gather, 0, cs_data_gather),
    RULE("GatherElements", "0=1"),
    ENTRY("GatherND", infer_gather_nd, 0, NULL),
    SAME("Scatter"), SAME("ScatterElements"), SAME("ScatterND"), SAME("TensorScatter"),
    ENTRY("NonZero", infer_nonzero, 0, NULL),
    ENTRY("Compress", infer_compress, 0, NULL),
    ENTRY("Unique", infer_unique, 0, NULL),
    ENTRY("OneHot", infer_one_hot, 0, NULL),
    ENTRY("TopK", infer_top_k, 0, NULL),
    ENTRY("ArgMax", infer_arg, 0, NULL),
    ENTRY("ArgMin", infer_arg, 0, NULL),
    RULE("NonMaxSuppression", "i64[?,3]"),

    REDUCE("ReduceL1", 18, NULL, NULL), REDUCE("ReduceL2", 18, NULL, NULL),
    REDUCE("ReduceLogSum", 18, NULL, NULL), REDUCE("ReduceLogSumExp", 18, NULL, NULL),
    REDUCE("ReduceMean", 18, NULL, NULL), REDUCE("ReduceSumSquare", 18, NULL, NULL),
    REDUCE("ReduceMax", 18, "M", cs_data_reduce), REDUCE("ReduceMin", 18, "m", cs_data_reduce),
    REDUCE("ReduceProd", 18, "*", cs_data_reduce), REDUCE("ReduceSum", 13, "+", cs_data_reduce),

    {CS_DOMAIN_MS, "GatherND", infer_gather_nd, 0, NULL, NULL},
    {CS_DOMAIN_MS, "GatherBlockQuantized", infer_gather, 2, NULL, NULL},
    {CS_DOMAIN_MS, "QLinearReduceMean", infer_reduce, CS_AXES_ATTR, NULL, NULL},
    {CS_DOMAIN_MS, "ReduceSumInteger", infer_reduce, CS_AXES_ATTR | CS_I32 << CS_ELEM_SHIFT,
     NULL, NULL},
};
/* clang-format on */
const cs_family cs_infer_index = CS_FAMILY(table);
