/* Convolutions and pools.
 *
 * param of an entry: the argument that holds the weights, CS_ELEM_ARG(the argument that gives the
 * element type) or an element type above CS_ELEM_SHIFT, CS_CHANNELS_LAST.
 */
#include "onnx/infer_ops.h"

#define SPATIAL_MAX 8
#define SMALL INT64_C(0x7fffffff) /* attributes beyond this make no sense, and would overflow */

typedef struct window {
    int n; /* spatial dims */
    int64_t kernel[SPATIAL_MAX], stride[SPATIAL_MAX], dilation[SPATIAL_MAX];
    int64_t pad[SPATIAL_MAX], head[SPATIAL_MAX]; /* both sides together; the first alone */
    enum { EXPLICIT, SAME, VALID } mode;
    bool ceil;
} window;

/* n values of at least `least`, from an attribute or a default. */
static bool ints(const cs_op *op, const char *name, int n, int64_t least, int64_t otherwise,
                 int64_t *out)
{
    const int64_t *x;
    int len = cs_op_ints(op, name, &x);
    if (len == CS_ABSENT && otherwise >= least) {
        for (int i = 0; i < n; i++)
            out[i] = otherwise;
        return true;
    }
    if (len != n) return false;
    for (int i = 0; i < n; i++) {
        if (x[i] < least || x[i] > SMALL) return false;
        out[i] = x[i];
    }
    return true;
}

/* The kernel from the attribute, else from the weights' dims after the first two. */
static bool kernel(const cs_op *op, int weights, window *w)
{
    cs_shape s;
    if (ints(op, "kernel_shape", w->n, 1, 0, w->kernel)) return true;
    if (weights < 0 || cs_op_any(op, "kernel_shape")) return false;
    cs_op_shape(op, (uint32_t)weights, &s);
    if (s.rank != w->n + 2) return false;
    for (int i = 0; i < w->n; i++) {
        w->kernel[i] = s.dim[i + 2];
        if (s.dim[i + 2] < 1 || s.dim[i + 2] > SMALL) return false;
    }
    return true;
}

/* Reads the attributes that convolutions and pools share. False: something is not known. */
static bool read_window(const cs_op *op, int n, int weights, window *w)
{
    int64_t pads[2 * SPATIAL_MAX];
    w->n = n;
    if (n < 0 || n > SPATIAL_MAX || !kernel(op, weights, w) ||
        !ints(op, "strides", n, 1, 1, w->stride) || !ints(op, "dilations", n, 1, 1, w->dilation) ||
        !cs_op_flag(op, "ceil_mode", false, &w->ceil))
        return false;
    cs_span pad = cs_op_text(op, "auto_pad", "NOTSET");
    w->mode = EXPLICIT;
    if (cs_span_is(pad, "SAME_UPPER") || cs_span_is(pad, "SAME_LOWER"))
        w->mode = SAME;
    else if (cs_span_is(pad, "VALID"))
        w->mode = VALID;
    else if (pad.len && !cs_span_is(pad, "NOTSET"))
        return false;
    if (w->mode != EXPLICIT) {
        for (int i = 0; i < n; i++)
            w->pad[i] = w->head[i] = 0;
        return true;
    }
    if (!ints(op, "pads", 2 * n, -SMALL, 0, pads)) return false;
    for (int i = 0; i < n; i++) {
        w->head[i] = pads[i];
        w->pad[i] = pads[i] + pads[n + i];
    }
    return true;
}

/* Size after the window has slid over a dim of size `d`. */
static cs_dim slid(const window *w, int i, cs_dim d)
{
    int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1, stride = w->stride[i];
    if (w->mode == SAME) return cs_dim_div_ceil(d, stride);
    int64_t by = w->pad[i] - reach;
    if (by == -1 && stride == 1) return d; /* whatever it is */
    if (d < 0 || d > INT64_MAX / 4 || by > INT64_MAX / 4 || by < -INT64_MAX / 4 || d + by < 0)
        return CS_DIM_UNKNOWN;
    int64_t way = d + by;
    int64_t n = way / stride + 1 + (w->ceil && way % stride != 0);
    /* A window that would start in the padding at the end is left out. */
    if (w->ceil && n > 1 && (n - 1) > (d + w->head[i] - 1) / stride) n--;
    return n;
}

static cs_elem elem_of(const cs_op *op)
{
    int param = op->entry->param;
    cs_elem e = (cs_elem)(param >> CS_ELEM_SHIFT);
    if (e == CS_ELEM_NONE) e = cs_op_elem(op, (uint32_t)(param >> 4) & 0xf);
    /* The standard's operators have one type for both operands. */
    bool both = op->entry->domain != CS_DOMAIN_MS && ((param >> 4) & 0xf) == 0;
    return e == CS_ELEM_NONE && both ? cs_op_elem(op, (uint32_t)param & 0xf) : e;
}

static bool channels_last(const cs_op *op)
{
    bool last;
    return (op->entry->param & CS_CHANNELS_LAST) ||
           (cs_op_flag(op, "channels_last", false, &last) && last);
}

/* ---- convolutions ---- */

static void infer_conv(cs_op *op)
{
    window w;
    cs_shape x, weights, out;
    int arg = op->entry->param & 0xf;
    bool last = channels_last(op);
    cs_op_shape(op, 0, &x);
    cs_op_shape(op, (uint32_t)arg, &weights);
    cs_shape_rank(&out, x.rank >= 0 ? x.rank : weights.rank);
    if (out.rank >= 3 && x.rank == out.rank) {
        int n = out.rank - 2, first = last ? 1 : 2;
        out.dim[0] = x.dim[0];
        out.dim[last ? out.rank - 1 : 1] = weights.rank > 0 ? weights.dim[0] : CS_DIM_UNKNOWN;
        /* With channels last the layout of the weights differs between operators. */
        if (read_window(op, n, last ? -1 : arg, &w))
            for (int i = 0; i < n; i++)
                out.dim[first + i] = slid(&w, i, x.dim[first + i]);
    }
    cs_op_put(op, 0, elem_of(op), &out);
}

static cs_dim unslid(const window *w, int i, cs_dim d, int64_t extra)
{
    int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
    if (w->mode == SAME) return cs_dim_mul(d, w->stride[i]);
    int64_t add = reach + extra - w->pad[i] - w->stride[i];
    cs_dim wide = cs_dim_mul(d, w->stride[i]);
    return add >= 0 ? cs_dim_add(wide, add) : cs_dim_sub(wide, -add);
}

static void transposed_spatial(const cs_op *op, int arg, const cs_shape *x, int first,
                               cs_shape *out)
{
    window w;
    int64_t extra[SPATIAL_MAX];
    const int64_t *given;
    int n = out->rank - 2;
    int len = cs_op_ints(op, "output_shape", &given);
    if (len == n || len == n + 2) {
        for (int i = 0; i < n; i++)
            out->dim[first + i] = cs_dim_number(given[len - n + i]);
        return;
    }
    if (len == CS_ABSENT && read_window(op, n, arg, &w) &&
        ints(op, "output_padding", n, 0, 0, extra))
        for (int i = 0; i < n; i++)
            out->dim[first + i] = unslid(&w, i, x->dim[first + i], extra[i]);
}

static void infer_conv_transpose(cs_op *op)
{
    int64_t group;
    cs_shape x, weights, out;
    int arg = op->entry->param & 0xf;
    bool last = channels_last(op);
    cs_op_shape(op, 0, &x);
    cs_op_shape(op, (uint32_t)arg, &weights);
    cs_shape_rank(&out, x.rank >= 0 ? x.rank : weights.rank);
    bool told = cs_op_int(op, "group", 1, &group) && group > 0;
    if (out.rank >= 3 && x.rank == out.rank) {
        out.dim[0] = x.dim[0];
        if (told && weights.rank > 1)
            out.dim[last ? out.rank - 1 : 1] = cs_dim_mul(weights.dim[1], group);
        /* ConvTransposeWithDynamicPads has the pads as an input. */
        if (op->entry->domain != CS_DOMAIN_MS || !cs_op_has(op, 2))
            transposed_spatial(op, last ? -1 : arg, &x, last ? 1 : 2, &out);
    }
    cs_op_put(op, 0, elem_of(op), &out);
}

/* ---- pools ---- */

static void infer_pool(cs_op *op)
{
    window w;
    cs_shape x;
    bool last = channels_last(op);
    cs_op_shape(op, 0, &x);
    int n = x.rank - 2, first = last ? 1 : 2;
    bool known = n >= 1 && read_window(op, n, -1, &w);
    for (int i = 0; i < n; i++)
        x.dim[first + i] = known ? slid(&w, i, x.dim[first + i]) : CS_DIM_UNKNOWN;
    cs_op_put(op, 0, cs_op_elem(op, 0), &x);
    cs_op_put(op, 1, CS_I64, &x); /* MaxPool: indices */
}

static void infer_global_pool(cs_op *op)
{
    cs_shape x;
    bool last = channels_last(op);
    cs_op_shape(op, 0, &x);
    for (int i = 0; i < x.rank - 2; i++)
        x.dim[(last ? 1 : 2) + i] = 1;
    cs_op_put(op, 0, cs_op_elem(op, 0), &x);
}

static void infer_max_unpool(cs_op *op)
{
    window w;
    cs_list list;
    cs_shape x, out;
    cs_op_shape(op, 0, &x);
    cs_op_list(op, 2, &list);
    cs_shape_rank(&out, x.rank >= 0 ? x.rank : list.state >= CS_LIST_LENGTH ? list.len : -1);
    if (list.state == CS_LIST_KNOWN && list.len == out.rank) {
        for (int i = 0; i < out.rank; i++)
            out.dim[i] = cs_item_dim(list.at[i]);
    } else if (list.state == CS_LIST_ABSENT && x.rank >= 3 && read_window(op, x.rank - 2, -1, &w)) {
        out.dim[0] = x.dim[0];
        out.dim[1] = x.dim[1];
        for (int i = 0; i < w.n; i++)
            out.dim[2 + i] = unslid(&w, i, x.dim[2 + i], 0);
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

/* ---- the table ---- */

/* clang-format off */
#define ONNX(name, f, param) {CS_DOMAIN_ONNX, name, f, param, NULL, NULL}
#define NHWC(name, f, param) {CS_DOMAIN_NHWC, name, f, (param) | CS_CHANNELS_LAST, NULL, NULL}
#define MS(name, f, param) {CS_DOMAIN_MS, name, f, param, NULL, NULL}
#define BLOCKED(name) {CS_DOMAIN_NCHWC, name, cs_infer_rule, 0, "0~0", NULL}
static const cs_entry table[] = {
    ONNX("Conv", infer_conv, 1),
    ONNX("DeformConv", infer_conv, 1),
    ONNX("ConvInteger", infer_conv, 1 | CS_I32 << CS_ELEM_SHIFT),
    ONNX("QLinearConv", infer_conv, 3 | CS_ELEM_ARG(7)),
    ONNX("ConvTranspose", infer_conv_transpose, 1),
    ONNX("AveragePool", infer_pool, 0),
    ONNX("MaxPool", infer_pool, 0),
    ONNX("LpPool", infer_pool, 0),
    ONNX("GlobalAveragePool", infer_global_pool, 0),
    ONNX("GlobalMaxPool", infer_global_pool, 0),
    ONNX("GlobalLpPool", infer_global_pool, 0),
    ONNX("MaxUnpool", infer_max_unpool, 0),

    NHWC("Conv", infer_conv, 1),
    NHWC("QLinearConv", infer_conv, 3 | CS_ELEM_ARG(7)),
    NHWC("ConvTranspose", infer_conv_transpose, 1),
    NHWC("QLinearConvTranspose", infer_conv_transpose, 3 | CS_ELEM_ARG(7)),
    NHWC("AveragePool", infer_pool, 0),
    NHWC("QLinearAveragePool", infer_pool, 0),
    NHWC("MaxPool", infer_pool, 0),
    NHWC("LpPool", infer_pool, 0),
    NHWC("GlobalAveragePool", infer_global_pool, 0),
    NHWC("GlobalMaxPool", infer_global_pool, 0),
    NHWC("GlobalLpPool", infer_global_pool, 0),
    {CS_DOMAIN_NHWC, "MaxUnpool", cs_infer_rule, 0, "0~0", NULL},

    MS("FusedConv", infer_conv, 1),
    MS("NhwcConv", infer_conv, 1 | CS_CHANNELS_LAST),
    MS("NhwcFusedConv", infer_conv, 1 | CS_CHANNELS_LAST),
    MS("QLinearConv", infer_conv, 3 | CS_ELEM_ARG(7)),
    MS("ConvTransposeWithDynamicPads", infer_conv_transpose, 1),
    MS("MaxpoolWithMask", infer_pool, 0),
    MS("NhwcMaxPool", infer_pool, CS_CHANNELS_LAST),
    MS("QLinearAveragePool", infer_pool, 0),
    MS("QLinearGlobalAveragePool", infer_global_pool, 0),

    BLOCKED("Conv"), BLOCKED("AveragePool"), BLOCKED("MaxPool"), BLOCKED("GlobalAveragePool"),
    BLOCKED("GlobalMaxPool"), BLOCKED("ReorderInput"), BLOCKED("ReorderOutput"),
    BLOCKED("Upsample"),
};
/* clang-format on */
const cs_family cs_infer_nn = CS_FAMILY(table);
