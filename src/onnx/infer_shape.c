/* Operators that rearrange: reshape, squeeze, transpose, expand, tile, pad, slice, split, concat.
 *
 * Ranks follow from the length of a shape, axes or repeats input even where its elements are not
 * known. Sizes follow where the elements are.
 */
#include <string.h>

#include "onnx/infer_ops.h"

/* ---- Reshape, Flatten ---- */

/* The size at `hole`, from the number of elements: what is left of the input's dims when those of
 * the output are divided out. `copied[i]`: out dim i is input dim i, whatever it is. */
static cs_dim fill_hole(cs_shape *in, const cs_shape *out, const bool *copied, int hole)
{
    cs_dim wanted = 1;
    if (in->rank < 0) return CS_DIM_UNKNOWN;
    for (int i = 0; i < out->rank && i < in->rank; i++)
        if (copied[i]) in->dim[i] = 1;
    for (int i = 0; i < out->rank; i++) {
        if (i == hole || (copied[i] && i < in->rank)) continue;
        if (cs_dim_is_expr(out->dim[i])) {
            int k = 0;
            while (k < in->rank && in->dim[k] != out->dim[i])
                k++;
            if (k == in->rank) return CS_DIM_UNKNOWN;
            in->dim[k] = 1;
        } else {
            wanted = cs_dim_mul(wanted, out->dim[i]);
        }
    }
    cs_dim have = 1, symbol = 1;
    for (int i = 0; i < in->rank; i++) {
        if (in->dim[i] >= 0)
            have = cs_dim_mul(have, in->dim[i]);
        else
            symbol = cs_dim_mul(symbol, in->dim[i]);
    }
    if (wanted == CS_DIM_UNKNOWN || have == CS_DIM_UNKNOWN || wanted == 0) return CS_DIM_UNKNOWN;
    return cs_dim_mul(cs_dim_div(have, wanted), symbol);
}

static void reshape_known(const cs_list *list, bool allow_zero, cs_shape *in, cs_shape *out)
{
    bool copied[CS_LIST_MAX] = {false};
    int hole = -1, holes = 0;
    out->rank = 0;
    for (int i = 0; i < list->len; i++) {
        cs_item item = list->at[i];
        cs_dim d = cs_item_dim(item);
        bool zero = item.kind == CS_ITEM_NUMBER && item.x == 0;
        if (zero && !allow_zero) {
            copied[i] = true;
            d = i < in->rank ? in->dim[i] : CS_DIM_UNKNOWN;
        } else if (d == CS_DIM_UNKNOWN) {
            hole = i;
            holes++;
        }
        cs_shape_push(out, d);
    }
    /* One unknown element, be it -1 or any size, follows from the others. */
    if (holes == 1) out->dim[hole] = fill_hole(in, out, copied, hole);
}

static void infer_reshape(cs_op *op)
{
    cs_list list;
    cs_shape in, out;
    bool allow_zero;
    bool told = cs_op_flag(op, "allowzero", false, &allow_zero);
    if (op->opset < 5)
        cs_op_list_attr(op, "shape", &list);
    else
        cs_op_list(op, 1, &list);
    cs_op_shape(op, 0, &in);
    cs_shape_rank(&out, list.state >= CS_LIST_LENGTH ? list.len : -1);
    if (list.state == CS_LIST_KNOWN && told) reshape_known(&list, allow_zero, &in, &out);
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

static void infer_flatten(cs_op *op)
{
    int64_t axis;
    cs_shape in, out = {.rank = 0};
    cs_op_shape(op, 0, &in);
    bool told = cs_op_int(op, "axis", 1, &axis);
    if (axis < 0 && in.rank >= 0) axis += in.rank;
    told = told && axis >= 0 && axis <= in.rank;
    cs_shape_push(&out, told ? cs_dim_product(in.dim, (int)axis) : CS_DIM_UNKNOWN);
    cs_shape_push(&out, told ? cs_dim_product(in.dim + axis, in.rank - (int)axis) : CS_DIM_UNKNOWN);
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

/* ---- Squeeze, Unsqueeze, Transpose ---- */

static void axes_of(const cs_op *op, int input_since, cs_list *list)
{
    if (op->opset < input_since && op->entry->domain == CS_DOMAIN_ONNX)
        cs_op_list_attr(op, "axes", list);
    else
        cs_op_list(op, 1, list);
}

/* No axes: all dims of size 1 go; which they are is known when no dim is unknown. */
static void squeeze_ones(cs_shape *in, cs_shape *out)
{
    cs_shape_rank(out, in->rank < 0 ? -1 : 0);
    for (int i = 0; i < in->rank; i++) {
        if (in->dim[i] < 0) {
            out->rank = CS_RANK_UNKNOWN;
            return;
        }
        if (in->dim[i] != 1) cs_shape_push(out, in->dim[i]);
    }
}

static void infer_squeeze(cs_op *op)
{
    bool gone[CS_SHAPE_MAX];
    cs_list axes;
    cs_shape in, out;
    cs_op_shape(op, 0, &in);
    cs_shape_unknown(&out);
    axes_of(op, 13, &axes);
    if (axes.state == CS_LIST_ABSENT) {
        squeeze_ones(&in, &out);
    } else if (cs_list_axes(&axes, in.rank, gone)) {
        out.rank = 0;
        for (int i = 0; i < in.rank; i++)
            if (!gone[i]) cs_shape_push(&out, in.dim[i]);
    } else if (axes.state >= CS_LIST_LENGTH && in.rank >= 0 && !cs_list_numbers(&axes)) {
        cs_shape_rank(&out, (int64_t)in.rank - axes.len);
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

static void infer_unsqueeze(cs_op *op)
{
    bool made[CS_SHAPE_MAX];
    cs_list axes;
    cs_shape in, out;
    cs_op_shape(op, 0, &in);
    axes_of(op, 13, &axes);
    bool known = in.rank >= 0 && axes.state >= CS_LIST_LENGTH;
    cs_shape_rank(&out, known ? (int64_t)in.rank + axes.len : -1);
    if (cs_list_axes(&axes, out.rank, made)) {
        for (int i = 0, k = 0; i < out.rank; i++)
            out.dim[i] = made[i] ? 1 : in.dim[k++];
    } else if (cs_list_numbers(&axes)) {
        cs_shape_unknown(&out); /* no such axes */
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

static void infer_transpose(cs_op *op)
{
    bool seen[CS_SHAPE_MAX];
    cs_list perm;
    cs_shape in, out;
    int rank = cs_op_shape(op, 0, &in);
    cs_op_list_attr(op, "perm", &perm);
    if (rank < 0 && perm.state >= CS_LIST_LENGTH) rank = perm.len;
    cs_shape_rank(&out, rank);
    if (in.rank >= 0 && perm.state == CS_LIST_ABSENT) {
        for (int i = 0; i < rank; i++)
            out.dim[i] = in.dim[rank - 1 - i];
    } else if (perm.state == CS_LIST_KNOWN && perm.len == in.rank &&
               cs_list_axes(&perm, rank, seen)) {
        for (int i = 0; i < rank; i++)
            out.dim[i] = in.dim[cs_axis(perm.at[i].x, rank)];
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

/* ---- Expand, Tile, Pad ---- */

static void list_to_shape(const cs_list *list, cs_shape *s)
{
    cs_shape_rank(s, list->state >= CS_LIST_LENGTH ? list->len : -1);
    for (int i = 0; i < s->rank && list->state == CS_LIST_KNOWN; i++)
        s->dim[i] = cs_item_dim(list->at[i]);
}

static void infer_expand(cs_op *op)
{
    cs_list list;
    cs_shape s, to;
    cs_op_shape(op, 0, &s);
    cs_op_list(op, 1, &list);
    list_to_shape(&list, &to);
    cs_shape_broadcast(&s, &to);
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

static void infer_tile(cs_op *op)
{
    cs_list list;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_list(op, 1, &list);
    if (s.rank < 0 && op->opset >= 6 && list.state >= CS_LIST_LENGTH) cs_shape_rank(&s, list.len);
    bool known = op->opset >= 6 && list.state == CS_LIST_KNOWN && list.len == s.rank;
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = known ? cs_dim_mul(s.dim[i], cs_item_dim(list.at[i])) : CS_DIM_UNKNOWN;
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

static void pad_dims(cs_shape *s, const cs_list *pads, const cs_list *axes)
{
    int n = axes->state == CS_LIST_ABSENT ? s->rank : axes->len;
    bool flags[CS_SHAPE_MAX];
    bool usable = pads->state == CS_LIST_KNOWN && pads->len == 2 * n &&
                  (axes->state == CS_LIST_ABSENT || cs_list_axes(axes, s->rank, flags));
    for (int i = 0; i < s->rank && !usable; i++)
        s->dim[i] = CS_DIM_UNKNOWN;
    for (int i = 0; i < n && usable; i++) {
        cs_dim *d = &s->dim[axes->state == CS_LIST_ABSENT ? i : cs_axis(axes->at[i].x, s->rank)];
        for (int side = 0; side < 2; side++) {
            cs_item by = pads->at[side * n + i];
            if (by.kind != CS_ITEM_NUMBER || by.x == INT64_MIN)
                *d = CS_DIM_UNKNOWN;
            else
                *d = by.x >= 0 ? cs_dim_add(*d, by.x) : cs_dim_sub(*d, -by.x);
        }
    }
}

static void infer_pad(cs_op *op)
{
    cs_list pads, axes = {.state = CS_LIST_ABSENT};
    cs_shape s;
    cs_op_shape(op, 0, &s);
    if (op->entry->domain == CS_DOMAIN_ONNX && op->opset < 11) {
        cs_op_list_attr(op, op->opset < 2 ? "paddings" : "pads", &pads);
    } else {
        cs_op_list(op, 1, &pads);
        cs_op_list(op, 3, &axes);
    }
    if (s.rank < 0 && axes.state == CS_LIST_ABSENT && pads.state >= CS_LIST_LENGTH)
        cs_shape_rank(&s, pads.len / 2);
    pad_dims(&s, &pads, &axes);
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* ---- Slice ---- */

bool cs_slice_range(cs_dim d, cs_item from, cs_item to, cs_item by, cs_slice *out)
{
    if (d < 0 || from.kind != CS_ITEM_NUMBER || to.kind != CS_ITEM_NUMBER ||
        by.kind != CS_ITEM_NUMBER || by.x == 0)
        return false;
    int64_t a = from.x, b = to.x, step = by.x == INT64_MIN ? -INT64_MAX : by.x;
    /* Backward, the end may be -1: past the first. */
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? d : d - 1;
    a = a < 0 ? a + d : a;
    b = b < 0 ? b + d : b;
    a = a < 0 ? 0 : a > high ? high : a;
    b = b < low ? low : b > high ? high : b;
    int64_t way = step > 0 ? b - a : a - b;
    *out = (cs_slice){a, step, way > 0 && d > 0 ? (way - 1) / (step > 0 ? step : -step) + 1 : 0};
    return true;
}

static cs_dim slice_dim(cs_dim d, cs_item from, cs_item to, cs_item by)
{
    cs_slice s;
    if (cs_slice_range(d, from, to, by, &s)) return s.len;
    if (from.kind != CS_ITEM_NUMBER || to.kind != CS_ITEM_NUMBER || by.kind != CS_ITEM_NUMBER)
        return CS_DIM_UNKNOWN;
    /* All of it, forward or backward; exporters write INT32_MAX for "to the end". */
    bool all = by.x == 1 && from.x == 0 && to.x >= INT32_MAX;
    bool all_back = by.x == -1 && (from.x == -1 || from.x >= INT32_MAX) && to.x <= INT32_MIN;
    return d < 0 && (all || all_back) ? d : CS_DIM_UNKNOWN;
}

static cs_item item_or(const cs_list *list, int i, int64_t otherwise)
{
    if (list->state == CS_LIST_ABSENT) return (cs_item){CS_ITEM_NUMBER, otherwise};
    if (list->state == CS_LIST_KNOWN && i < list->len) return list->at[i];
    return (cs_item){CS_ITEM_UNKNOWN, 0};
}

void cs_slice_lists(const cs_op *op, cs_list *starts, cs_list *ends, cs_list *axes, cs_list *steps)
{
    if (op->opset < 10) {
        cs_op_list_attr(op, "starts", starts);
        cs_op_list_attr(op, "ends", ends);
        cs_op_list_attr(op, "axes", axes);
        steps->state = CS_LIST_ABSENT;
    } else {
        cs_op_list(op, 1, starts);
        cs_op_list(op, 2, ends);
        cs_op_list(op, 3, axes);
        cs_op_list(op, 4, steps);
    }
}

static void infer_slice(cs_op *op)
{
    bool flags[CS_SHAPE_MAX];
    cs_list starts, ends, axes, steps;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_slice_lists(op, &starts, &ends, &axes, &steps);
    bool every = axes.state == CS_LIST_ABSENT;
    int n = !every ? axes.len : starts.state >= CS_LIST_LENGTH ? starts.len : ends.len;
    bool usable = every ? n <= s.rank && (n > 0 || starts.state == CS_LIST_KNOWN)
                        : cs_list_axes(&axes, s.rank, flags);
    for (int i = 0; i < s.rank && !usable; i++)
        s.dim[i] = CS_DIM_UNKNOWN;
    for (int i = 0; i < n && usable; i++) {
        cs_dim *d = &s.dim[every ? i : cs_axis(axes.at[i].x, s.rank)];
        *d = slice_dim(*d, item_or(&starts, i, 0), item_or(&ends, i, INT64_MAX),
                       item_or(&steps, i, 1));
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* Long gone: starts, ends and axes as inputs 1 to 3, before Slice-10. */
static void infer_dynamic_slice(cs_op *op)
{
    cs_op_put_rank(op, 0, cs_op_elem(op, 0), cs_op_rank(op, 0));
}

/* ---- Split, Concat ---- */

static cs_dim even_part(cs_dim d, int64_t parts, int64_t i)
{
    cs_dim chunk = cs_dim_div_ceil(d, parts);
    if (d < 0 || chunk < 0) return parts == 1 ? d : CS_DIM_UNKNOWN;
    cs_dim before = cs_dim_mul(chunk, i);
    if (before < 0 || before >= d) return d == 0 ? 0 : CS_DIM_UNKNOWN;
    return d - before < chunk ? d - before : chunk;
}

static void infer_split(cs_op *op)
{
    int64_t axis, parts;
    cs_list sizes;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    bool told = cs_op_int(op, "axis", 0, &axis);
    int at = told ? cs_axis(axis, s.rank) : -1;
    cs_op_list_attr(op, "split", &sizes);
    if (sizes.state == CS_LIST_ABSENT) cs_op_list(op, 1, &sizes);
    told = cs_op_int(op, "num_outputs", op->node->n_out, &parts);
    cs_dim whole = at >= 0 ? s.dim[at] : CS_DIM_UNKNOWN;
    for (int i = 0; at < 0 && i < s.rank; i++)
        s.dim[i] = CS_DIM_UNKNOWN;
    for (uint32_t i = 0; i < op->node->n_out; i++) {
        cs_dim d = CS_DIM_UNKNOWN;
        if (sizes.state == CS_LIST_KNOWN && i < (uint32_t)sizes.len)
            d = cs_item_dim(sizes.at[i]);
        else if (sizes.state == CS_LIST_ABSENT && told && parts > 0)
            d = even_part(whole, parts, i);
        if (at >= 0) s.dim[at] = d;
        cs_op_put(op, i, cs_op_elem(op, 0), &s);
    }
}

/* param: the first of the inputs; with CS_TRIPLES they come three by three (value, scale, zero). */
void cs_infer_concat(cs_op *op)
{
    uint32_t first = (uint32_t)op->entry->param & 0xff;
    uint32_t step = op->entry->param & CS_TRIPLES ? 3 : 1;
    int64_t axis;
    bool told = cs_op_int(op, "axis", 1, &axis); /* 1: the default of Concat-1 */
    cs_elem e = step == 3 ? cs_op_elem(op, 1) : CS_ELEM_NONE;
    cs_shape s, other;
    cs_shape_unknown(&s);
    cs_dim sum = 0;
    for (uint32_t i = first; i < op->node->n_arg; i += step) {
        if (e == CS_ELEM_NONE) e = cs_op_elem(op, i);
        int rank = cs_op_shape(op, i, &other);
        int at = told ? cs_axis(axis, rank) : -1;
        sum = at < 0 ? CS_DIM_UNKNOWN : cs_dim_add(sum, other.dim[at]);
        if (at >= 0)
            other.dim[at] = CS_DIM_UNKNOWN;
        else
            cs_shape_rank(&other, rank);
        cs_shape_same(&s, &other);
    }
    int at = told ? cs_axis(axis, s.rank) : -1;
    if (at >= 0) s.dim[at] = sum;
    cs_op_put(op, 0, e, &s);
}

/* ---- Shape, Size ---- */

static void infer_shape_of(cs_op *op)
{
    int64_t start, end;
    int rank = cs_op_rank(op, 0);
    bool told = cs_op_int(op, "start", 0, &start);
    told = cs_op_int(op, "end", INT64_MAX, &end) && told && rank >= 0;
    cs_item from = {CS_ITEM_NUMBER, start}, to = {CS_ITEM_NUMBER, end}, one = {CS_ITEM_NUMBER, 1};
    cs_shape s = {.rank = 0};
    cs_shape_push(&s, told ? slice_dim(rank, from, to, one) : CS_DIM_UNKNOWN);
    cs_op_put(op, 0, CS_I64, &s);
}

/* ---- blocks, crops ---- */

/* param: 0 DepthToSpace, 1 SpaceToDepth; CS_CHANNELS_LAST. */
static void infer_depth_space(cs_op *op)
{
    int64_t b;
    cs_shape s, t;
    cs_op_shape(op, 0, &s);
    bool told = cs_op_int(op, "blocksize", 0, &b) && b > 0 && b <= INT32_MAX && s.rank == 4;
    bool last = op->entry->param & CS_CHANNELS_LAST;
    cs_shape_rank(&t, 4);
    if (told) {
        int c = last ? 3 : 1, h = last ? 1 : 2;
        bool gather = op->entry->param & 1;
        t.dim[0] = s.dim[0];
        t.dim[c] = gather ? cs_dim_mul(s.dim[c], b * b) : cs_dim_div(s.dim[c], b * b);
        for (int i = h; i < h + 2; i++)
            t.dim[i] = gather ? cs_dim_div_floor(s.dim[i], b) : cs_dim_mul(s.dim[i], b);
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &t);
}

static void infer_center_crop_pad(cs_op *op)
{
    bool flags[CS_SHAPE_MAX];
    cs_list to, axes;
    cs_shape s;
    int rank = cs_op_shape(op, 0, &s);
    cs_op_list(op, 1, &to);
    cs_op_list_attr(op, "axes", &axes);
    bool every = axes.state == CS_LIST_ABSENT;
    bool usable =
        every ? to.state == CS_LIST_KNOWN && to.len == rank : cs_list_axes(&axes, rank, flags);
    for (int i = 0; i < rank && !usable; i++)
        s.dim[i] = CS_DIM_UNKNOWN;
    for (int i = 0; i < (every ? rank : axes.len) && usable; i++) {
        bool known = to.state == CS_LIST_KNOWN && i < to.len;
        s.dim[every ? i : cs_axis(axes.at[i].x, rank)] =
            known ? cs_item_dim(to.at[i]) : CS_DIM_UNKNOWN;
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* ---- the table ---- */

/* clang-format off */
#define ENTRY(name, f, param, data) {CS_DOMAIN_ONNX, name, f, param, NULL, data}
static const cs_entry table[] = {
    ENTRY("Reshape", infer_reshape, 0, cs_data_same),
    ENTRY("Flatten", infer_flatten, 0, NULL),
    ENTRY("Squeeze", infer_squeeze, 0, cs_data_same),
    ENTRY("Unsqueeze", infer_unsqueeze, 0, cs_data_same),
    ENTRY("Transpose", infer_transpose, 0, NULL),
    ENTRY("Expand", infer_expand, 0, cs_data_same),
    ENTRY("Tile", infer_tile, 0, NULL),
    ENTRY("Pad", infer_pad, 0, NULL),
    ENTRY("Slice", infer_slice, 0, cs_data_slice),
    ENTRY("DynamicSlice", infer_dynamic_slice, 0, NULL),
    ENTRY("Split", infer_split, 0, cs_data_split),
    ENTRY("Concat", cs_infer_concat, 0, cs_data_concat),
    ENTRY("Shape", infer_shape_of, 0, cs_data_shape),
    {CS_DOMAIN_ONNX, "Size", cs_infer_rule, 0, "i64[]", cs_data_size},
    ENTRY("DepthToSpace", infer_depth_space, 0, NULL),
    ENTRY("SpaceToDepth", infer_depth_space, 1, NULL),
    ENTRY("CenterCropPad", infer_center_crop_pad, 0, NULL),
    {CS_DOMAIN_NHWC, "DepthToSpace", infer_depth_space, CS_CHANNELS_LAST, NULL, NULL},
    {CS_DOMAIN_NHWC, "SpaceToDepth", infer_depth_space, 1 | CS_CHANNELS_LAST, NULL, NULL},
    {CS_DOMAIN_MS, "Pad", infer_pad, 0, NULL, NULL},
};
/* clang-format on */
const cs_family cs_infer_shape = CS_FAMILY(table);
