/* Images: resizing, sampling, regions of interest, columns to images. */
#include <math.h>
#include <string.h>

#include "onnx/infer_ops.h"

/* ---- Resize, Upsample ---- */

#define SCALES_MAX 16

/* Floats of an input (a constant) or an attribute; the count, or -1. */
static int scales_of_input(const cs_op *op, uint32_t arg, float *out)
{
    const cs_storage *s = cs_op_const(op, arg, CS_F32);
    if (!s || !s->data || s->bytes % 4 != 0 || s->bytes > SCALES_MAX * 4) return -1;
    memcpy(out, s->data, (size_t)s->bytes);
    return (int)(s->bytes / 4);
}

static int scales_of_attr(const cs_op *op, float *out)
{
    const float *x;
    int n = cs_op_floats(op, "scales", &x);
    if (n < 0 || n > SCALES_MAX) return -1;
    memcpy(out, x, (size_t)n * sizeof *x);
    return n;
}

static cs_dim scaled(cs_dim d, float by)
{
    if (by == 1) return d;
    /* The runtimes compute in f32, so do we; a size it cannot hold is not worth guessing. */
    float x = floorf((float)d * by);
    return d < 0 || !(x >= 0 && x <= 0x1p30f) ? CS_DIM_UNKNOWN : (cs_dim)x;
}

static void infer_upsample(cs_op *op)
{
    float scale[SCALES_MAX];
    cs_shape s;
    cs_op_shape(op, 0, &s);
    int n = op->opset < 9 ? scales_of_attr(op, scale) : scales_of_input(op, 1, scale);
    if (op->opset < 7 && s.rank == 4) {
        const cs_attr *h = cs_node_attr(op->g, op->node, "height_scale");
        const cs_attr *w = cs_node_attr(op->g, op->node, "width_scale");
        if (h && w && h->kind == CS_ATTR_FLOAT && w->kind == CS_ATTR_FLOAT) {
            n = 4;
            scale[0] = scale[1] = 1;
            scale[2] = h->f;
            scale[3] = w->f;
        }
    }
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = n == s.rank ? scaled(s.dim[i], scale[i]) : CS_DIM_UNKNOWN;
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* Of the axes that `axes` flags, the k-th: `list` names them in its own order. */
static int resized_axis(const cs_list *axes, int k, int rank)
{
    return axes->state == CS_LIST_ABSENT ? k : cs_axis(axes->at[k].x, rank);
}

static void resize_by_sizes(const cs_op *op, cs_shape *s, const cs_list *sizes, const cs_list *axes)
{
    bool stretch = cs_span_is(cs_op_text(op, "keep_aspect_ratio_policy", "stretch"), "stretch");
    for (int k = 0; k < sizes->len; k++) {
        cs_dim *d = &s->dim[resized_axis(axes, k, s->rank)];
        *d = stretch ? cs_item_dim(sizes->at[k]) : CS_DIM_UNKNOWN;
    }
}

static void infer_resize(cs_op *op)
{
    bool flags[CS_SHAPE_MAX];
    float scale[SCALES_MAX];
    cs_list axes, sizes = {.state = CS_LIST_ABSENT};
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_list_attr(op, "axes", &axes);
    int n = scales_of_input(op, op->opset < 11 ? 1 : 2, scale);
    if (op->opset >= 11) cs_op_list(op, 3, &sizes);
    if (s.rank < 0 && axes.state == CS_LIST_ABSENT)
        cs_shape_rank(&s, sizes.state >= CS_LIST_LENGTH && sizes.len ? sizes.len : n > 0 ? n : -1);
    bool usable = axes.state == CS_LIST_ABSENT || cs_list_axes(&axes, s.rank, flags);
    int expect = axes.state == CS_LIST_ABSENT ? s.rank : axes.len;
    /* With a region of interest the scales apply to that. */
    bool crop = cs_span_is(cs_op_text(op, "coordinate_transformation_mode", "half_pixel"),
                           "tf_crop_and_resize");
    if (usable && sizes.state == CS_LIST_KNOWN && sizes.len == expect && expect > 0) {
        resize_by_sizes(op, &s, &sizes, &axes);
    } else if (usable && n == expect && n > 0 && !crop) {
        for (int k = 0; k < n; k++) {
            cs_dim *d = &s.dim[resized_axis(&axes, k, s.rank)];
            *d = scaled(*d, scale[k]);
        }
    } else {
        for (int i = 0; i < s.rank; i++)
            if (axes.state == CS_LIST_ABSENT || !usable || flags[i]) s.dim[i] = CS_DIM_UNKNOWN;
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* ---- sampling ---- */

static void infer_grid_sample(cs_op *op)
{
    cs_shape x, grid, out;
    bool last = op->entry->param & CS_CHANNELS_LAST;
    cs_op_shape(op, 0, &x);
    cs_op_shape(op, 1, &grid);
    cs_shape_rank(&out, x.rank >= 0 ? x.rank : grid.rank);
    if (out.rank >= 3) {
        out.dim[0] = x.rank >= 0 ? x.dim[0] : CS_DIM_UNKNOWN;
        out.dim[last ? out.rank - 1 : 1] =
            x.rank >= 0 ? x.dim[last ? out.rank - 1 : 1] : CS_DIM_UNKNOWN;
        for (int i = 0; i < out.rank - 2 && grid.rank == out.rank; i++)
            out.dim[(last ? 1 : 2) + i] = grid.dim[1 + i];
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

/* size is [N, C, (D,) H, W]; theta [N, 2, 3] or [N, 3, 4]; the grid [N, (D,) H, W, 2 or 3]. */
static void infer_affine_grid(cs_op *op)
{
    cs_list size;
    cs_shape out;
    cs_op_list(op, 1, &size);
    int rank = size.state >= CS_LIST_LENGTH ? size.len : -1;
    cs_dim rows = cs_op_dim(op, 0, 1);
    if (rank < 0 && (rows == 2 || rows == 3)) rank = (int)rows + 2;
    cs_shape_rank(&out, rank);
    if (rank == 4 || rank == 5) {
        for (int i = 1; i < rank - 1 && size.state == CS_LIST_KNOWN; i++)
            out.dim[i] = cs_item_dim(size.at[i + 1]);
        out.dim[0] = size.state == CS_LIST_KNOWN ? cs_item_dim(size.at[0]) : cs_op_dim(op, 0, 0);
        out.dim[rank - 1] = rank - 2;
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

/* [N, C x block, L] -> [N, C, image...] */
static void infer_col2im(cs_op *op)
{
    cs_list image, block;
    cs_shape out;
    cs_op_list(op, 1, &image);
    cs_op_list(op, 2, &block);
    int n = image.state >= CS_LIST_LENGTH   ? image.len
            : block.state >= CS_LIST_LENGTH ? block.len
                                            : -1;
    cs_shape_rank(&out, n < 0 ? -1 : (int64_t)n + 2);
    if (out.rank < 0) {
        cs_op_put(op, 0, cs_op_elem(op, 0), &out);
        return;
    }
    out.dim[0] = cs_op_dim(op, 0, 0);
    cs_dim cells = block.state == CS_LIST_KNOWN ? 1 : CS_DIM_UNKNOWN;
    for (int i = 0; i < block.len && cells > 0 && block.state == CS_LIST_KNOWN; i++)
        cells = cs_dim_mul(cells, cs_item_dim(block.at[i]));
    out.dim[1] = cs_dim_div(cs_op_dim(op, 0, 1), cells);
    for (int i = 0; i < n && image.state == CS_LIST_KNOWN; i++)
        out.dim[2 + i] = cs_item_dim(image.at[i]);
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

/* ---- regions ---- */

static void put_regions(cs_op *op, cs_dim height, cs_dim width)
{
    cs_shape out = {.rank = 4};
    out.dim[0] = cs_op_dim(op, 1, 0);
    out.dim[1] = cs_op_dim(op, 0, 1);
    out.dim[2] = height;
    out.dim[3] = width;
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

static void infer_roi_align(cs_op *op)
{
    int64_t h, w;
    bool told_h = cs_op_int(op, "output_height", 1, &h),
         told_w = cs_op_int(op, "output_width", 1, &w);
    put_regions(op, told_h ? cs_dim_number(h) : CS_DIM_UNKNOWN,
                told_w ? cs_dim_number(w) : CS_DIM_UNKNOWN);
}

static void infer_max_roi_pool(cs_op *op)
{
    const int64_t *x;
    bool told = cs_op_ints(op, "pooled_shape", &x) == 2;
    put_regions(op, told ? cs_dim_number(x[0]) : CS_DIM_UNKNOWN,
                told ? cs_dim_number(x[1]) : CS_DIM_UNKNOWN);
}

static void infer_crop_and_resize(cs_op *op)
{
    cs_list size;
    cs_op_list(op, 3, &size);
    bool told = size.state == CS_LIST_KNOWN && size.len == 2;
    put_regions(op, told ? cs_item_dim(size.at[0]) : CS_DIM_UNKNOWN,
                told ? cs_item_dim(size.at[1]) : CS_DIM_UNKNOWN);
}

static void infer_image_decoder(cs_op *op)
{
    cs_span format = cs_op_text(op, "pixel_format", "RGB");
    cs_shape s;
    cs_shape_rank(&s, 3);
    if (format.len) s.dim[2] = cs_span_is(format, "Grayscale") ? 1 : 3;
    cs_op_put(op, 0, CS_U8, &s);
}

/* clang-format off */
#define ONNX(name, f) {CS_DOMAIN_ONNX, name, f, 0, NULL, NULL}
static const cs_entry table[] = {
    ONNX("Resize", infer_resize),
    ONNX("Upsample", infer_upsample),
    ONNX("GridSample", infer_grid_sample),
    ONNX("AffineGrid", infer_affine_grid),
    ONNX("Col2Im", infer_col2im),
    ONNX("RoiAlign", infer_roi_align),
    ONNX("MaxRoiPool", infer_max_roi_pool),
    ONNX("ImageDecoder", infer_image_decoder),
    {CS_DOMAIN_ONNX, "Crop", cs_infer_rule, 0, "0~0", NULL},
    {CS_DOMAIN_NHWC, "Resize", infer_resize, 0, NULL, NULL},
    {CS_DOMAIN_NHWC, "GridSample", infer_grid_sample, CS_CHANNELS_LAST, NULL, NULL},
    {CS_DOMAIN_MS, "GridSample", infer_grid_sample, 0, NULL, NULL},
    {CS_DOMAIN_MS, "CropAndResize", infer_crop_and_resize, 0, NULL, NULL},
};
/* clang-format on */
const cs_family cs_infer_image = CS_FAMILY(table);
