/* Normalisations, losses, recurrent layers, optimisers. */
#include "onnx/infer_ops.h"

/* ---- normalisations ---- */

/* Y like X; then rank-1 statistics of one element a channel, as the version has them. */
static void infer_batch_norm(cs_op *op)
{
    cs_shape x, c = {.rank = 0};
    cs_op_shape(op, 0, &x);
    cs_op_put(op, 0, cs_op_elem(op, 0), &x);
    cs_shape_push(&c, x.rank > 1 ? x.dim[1] : CS_DIM_UNKNOWN);
    if (c.dim[0] == CS_DIM_UNKNOWN) c.dim[0] = cs_op_dim(op, 1, 0);
    cs_elem e = op->opset >= 14 ? cs_op_elem(op, 3) : cs_op_elem(op, 0);
    for (uint32_t i = 1; i < op->node->n_out; i++)
        cs_op_put(op, i, e, &c);
}

/* Y like X, with the element type of input `param`; the statistics have size 1 from `axis` on and
 * the element type `stash_type`. Without Mean (RMS forms) output 1 is the only statistic. */
static void infer_layer_norm(cs_op *op)
{
    int64_t axis;
    cs_shape x;
    int rank = cs_op_shape(op, 0, &x);
    cs_op_put(op, 0, cs_op_elem(op, (uint32_t)op->entry->param), &x);
    int at = cs_op_int(op, "axis", -1, &axis) ? cs_axis(axis, rank) : -1;
    if (at < 0) cs_shape_rank(&x, rank);
    for (int i = at; i >= 0 && i < rank; i++)
        x.dim[i] = 1;
    cs_elem e = cs_op_dtype(op, "stash_type", CS_F32);
    cs_op_put(op, 1, e, &x);
    cs_op_put(op, 2, e, &x);
}

/* ---- losses ---- */

/* param: 0 NegativeLogLikelihoodLoss, 1 SoftmaxCrossEntropyLoss. */
static void infer_loss(cs_op *op)
{
    cs_shape s;
    cs_elem e = cs_op_elem(op, 0);
    cs_span how = cs_op_text(op, "reduction", "mean");
    if (cs_span_is(how, "none"))
        cs_op_shape(op, 1, &s);
    else
        cs_shape_rank(&s, how.len ? 0 : -1);
    cs_op_put(op, 0, e, &s);
    cs_op_shape(op, 0, &s);
    if (op->entry->param) cs_op_put(op, 1, e, &s);
}

/* ---- recurrent layers ---- */

static cs_dim hidden_size(const cs_op *op)
{
    int64_t n;
    if (cs_op_any(op, "hidden_size"))
        return cs_op_int(op, "hidden_size", -1, &n) ? cs_dim_number(n) : CS_DIM_UNKNOWN;
    return op->entry->param ? CS_DIM_UNKNOWN : cs_op_dim(op, 2, 2); /* R: dirs, gates x h, h */
}

static cs_dim directions(const cs_op *op)
{
    cs_span d = cs_op_text(op, "direction", "forward");
    if (cs_span_is(d, "bidirectional")) return 2;
    return d.len ? 1 : CS_DIM_UNKNOWN;
}

/* RNN, GRU, LSTM: Y [seq, dirs, batch, hidden], Y_h (and Y_c) [dirs, batch, hidden]; layout 1 has
 * the batch first. param: R is not laid out as the standard says. */
static void infer_rnn(cs_op *op)
{
    int64_t layout;
    bool told = cs_op_int(op, "layout", 0, &layout);
    bool batch_first = layout != 0;
    cs_dim dirs = directions(op), hidden = hidden_size(op);
    cs_dim seq = told ? cs_op_dim(op, 0, batch_first ? 1 : 0) : CS_DIM_UNKNOWN;
    cs_dim batch = told ? cs_op_dim(op, 0, batch_first ? 0 : 1) : CS_DIM_UNKNOWN;
    if (!told) dirs = CS_DIM_UNKNOWN;
    cs_shape y = {.rank = 4}, last = {.rank = 3};
    y.dim[0] = batch_first ? batch : seq;
    y.dim[1] = batch_first ? seq : dirs;
    y.dim[2] = batch_first ? dirs : batch;
    y.dim[3] = last.dim[2] = hidden;
    last.dim[0] = batch_first ? batch : dirs;
    last.dim[1] = batch_first ? dirs : batch;
    cs_op_put(op, 0, cs_op_elem(op, 0), &y);
    cs_op_put(op, 1, cs_op_elem(op, 0), &last);
    cs_op_put(op, 2, cs_op_elem(op, 0), &last);
}

/* ---- training ---- */

/* Inputs R, T, then `param` blocks of n tensors: X, G and states. Outputs: X and the states, of
 * which all but the gradients G are new. */
static void infer_optimiser(cs_op *op)
{
    uint32_t blocks = (uint32_t)op->entry->param;
    if (op->node->n_arg < 2) return;
    uint32_t n = (op->node->n_arg - 2) / blocks;
    for (uint32_t i = 0; n && i < op->node->n_out; i++) {
        uint32_t block = i / n == 0 ? 0 : i / n + 1; /* skip G */
        cs_op_put_type(op, i, cs_op_type(op, 2 + block * n + i % n));
    }
}

/* dY/dX_i has the type of X_i; the inputs are the X, then others. */
static void infer_gradient(cs_op *op)
{
    for (uint32_t i = 0; i < op->node->n_out; i++)
        cs_op_put_type(op, i, cs_op_type(op, i));
}

/* ---- the table ---- */

/* clang-format off */
#define SAME(name) {CS_DOMAIN_ONNX, name, cs_infer_same, 0, NULL, NULL}
#define ONNX(name, f, param) {CS_DOMAIN_ONNX, name, f, param, NULL, NULL}
#define MS(name, f, param) {CS_DOMAIN_MS, name, f, param, NULL, NULL}
#define SIMILAR(name) {CS_DOMAIN_NHWC, name, cs_infer_same, 0, NULL, NULL}
static const cs_entry table[] = {
    ONNX("BatchNormalization", infer_batch_norm, 0),
    ONNX("LayerNormalization", infer_layer_norm, 0),
    ONNX("RMSNormalization", infer_layer_norm, 1),
    ONNX("SimplifiedLayerNormalization", infer_layer_norm, 1),
    SAME("GroupNormalization"), SAME("InstanceNormalization"), SAME("LpNormalization"),
    SAME("LRN"), SAME("MeanVarianceNormalization"),
    ONNX("NegativeLogLikelihoodLoss", infer_loss, 0),
    ONNX("SoftmaxCrossEntropyLoss", infer_loss, 1),
    ONNX("RNN", infer_rnn, 0), ONNX("GRU", infer_rnn, 0), ONNX("LSTM", infer_rnn, 0),

    {CS_DOMAIN_NHWC, "BatchNormalization", cs_infer_rule, 0, "0=0", NULL},
    SIMILAR("InstanceNormalization"), SIMILAR("LRN"),

    MS("LayerNormalization", infer_layer_norm, 0),
    MS("RMSNormalization", infer_layer_norm, 1),
    MS("SimplifiedLayerNormalization", infer_layer_norm, 1),
    MS("AttnLSTM", infer_rnn, 1),
    MS("DynamicQuantizeLSTM", infer_rnn, 1),

    {CS_DOMAIN_TRAINING, "Adagrad", infer_optimiser, 3, NULL, NULL},
    {CS_DOMAIN_TRAINING, "Momentum", infer_optimiser, 3, NULL, NULL},
    {CS_DOMAIN_TRAINING, "Adam", infer_optimiser, 4, NULL, NULL},
    {CS_DOMAIN_TRAINING, "Gradient", infer_gradient, 0, NULL, NULL},
};
/* clang-format on */
const cs_family cs_infer_norm = CS_FAMILY(table);
