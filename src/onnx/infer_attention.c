/* Attention, rotary embeddings and the state-space operators, of the standard and of ONNX Runtime.
 *
 * B batch, H heads, S length of the queries, L of the keys, D size of a head. Packed tensors are
 * [B, S, H x D]; with rank 4 [B, H, S, D].
 */
#include "onnx/infer_ops.h"

static cs_dim heads(const cs_op *op, const char *name)
{
    int64_t n;
    return cs_op_any(op, name) && cs_op_int(op, name, -1, &n) && n > 0 ? n : CS_DIM_UNKNOWN;
}

/* ---- Attention of the standard ---- */

typedef struct layout {
    cs_dim batch, heads, length, size;
} layout;

static layout layout_of(const cs_op *op, uint32_t arg, const char *heads_attr)
{
    cs_shape s;
    layout l = {CS_DIM_UNKNOWN, CS_DIM_UNKNOWN, CS_DIM_UNKNOWN, CS_DIM_UNKNOWN};
    int rank = cs_op_shape(op, arg, &s);
    if (rank == 4) return (layout){s.dim[0], s.dim[1], s.dim[2], s.dim[3]};
    if (rank != 3) return l;
    l = (layout){s.dim[0], heads(op, heads_attr), s.dim[1], CS_DIM_UNKNOWN};
    if (l.heads > 0) l.size = cs_dim_div(s.dim[2], l.heads);
    return l;
}

/* Y, present_key, present_value, the product of queries and keys. */
static void infer_attention(cs_op *op)
{
    cs_elem e = cs_op_elem(op, 0), ev = cs_op_elem(op, 2);
    int rank = cs_op_rank(op, 0);
    layout q = layout_of(op, 0, "q_num_heads"), k = layout_of(op, 1, "kv_num_heads"),
           v = layout_of(op, 2, "kv_num_heads");
    cs_dim total = k.length;
    if (cs_op_has(op, 4)) total = cs_dim_add(total, cs_op_dim(op, 4, 2));
    cs_shape y = {.rank = 3, .dim = {q.batch, q.length, cs_dim_mul(q.heads, v.size)}};
    if (rank == 4)
        y = (cs_shape){.rank = 4, .dim = {q.batch, q.heads, q.length, v.size}};
    else if (rank != 3)
        cs_shape_unknown(&y);
    cs_op_put(op, 0, e, &y);
    cs_shape keys = {.rank = 4, .dim = {k.batch, k.heads, total, k.size}};
    cs_shape values = {.rank = 4, .dim = {v.batch, v.heads, total, v.size}};
    cs_shape product = {.rank = 4, .dim = {q.batch, q.heads, q.length, total}};
    cs_op_put(op, 1, e, &keys);
    cs_op_put(op, 2, ev, &values);
    cs_op_put(op, 3, e, &product);
}

static void infer_flex_attention(cs_op *op)
{
    cs_elem e = cs_op_elem(op, 0);
    layout q = layout_of(op, 0, ""), k = layout_of(op, 1, ""), v = layout_of(op, 2, "");
    cs_shape y = {.rank = 4, .dim = {q.batch, q.heads, q.length, v.size}};
    cs_op_put(op, 0, e, &y);
    /* The modifiers see the scores, in the precision of the softmax. */
    cs_elem precision = cs_op_dtype(op, "softmax_precision",
                                    e == CS_F64 ? CS_F64
                                    : e         ? CS_F32
                                                : CS_ELEM_NONE);
    cs_shape s = {.rank = 4, .dim = {q.batch, q.heads, q.length, k.length}};
    cs_type scores = cs_type_tensor(op->pool, precision, s.rank, s.dim);
    if (scores == CS_NONE) {
        cs_op_no_memory(op);
        return;
    }
    for (uint32_t i = 0; i < op->node->n_body; i++)
        cs_op_body(op, i, &scores, 1, false);
}

static void infer_linear_attention(cs_op *op)
{
    cs_dim hq = heads(op, "q_num_heads"), hk = heads(op, "kv_num_heads");
    cs_dim dk = hk > 0 ? cs_dim_div(cs_op_dim(op, 1, 2), hk) : CS_DIM_UNKNOWN;
    cs_dim dv = hk > 0 ? cs_dim_div(cs_op_dim(op, 2, 2), hk) : CS_DIM_UNKNOWN;
    cs_shape y = {.rank = 3};
    y.dim[0] = cs_op_dim(op, 0, 0);
    y.dim[1] = cs_op_dim(op, 0, 1);
    y.dim[2] = cs_dim_mul(hq, dv);
    cs_shape state = {.rank = 4, .dim = {y.dim[0], hk, dk, dv}};
    cs_op_put(op, 0, cs_op_elem(op, 0), &y);
    if (cs_op_has(op, 3))
        cs_op_put_type(op, 1, cs_op_type(op, 3));
    else
        cs_op_put(op, 1, cs_op_elem(op, 0), &state);
}

static void infer_causal_conv(cs_op *op)
{
    cs_shape x;
    cs_op_shape(op, 0, &x);
    cs_op_put(op, 0, cs_op_elem(op, 0), &x);
    cs_shape state = {.rank = 3};
    state.dim[0] = cs_op_dim(op, 0, 0);
    state.dim[1] = cs_op_dim(op, 0, 1);
    state.dim[2] = cs_dim_sub(cs_op_dim(op, 1, 2), 1);
    cs_op_put(op, 1, cs_op_elem(op, 0), &state);
}

/* ---- ONNX Runtime ---- */

/* Attention, QAttention (param: the weights' argument, which is 1): hidden sizes of Q, K and V
 * stand side by side in the weights, or in qkv_hidden_sizes. */
static void infer_ms_attention(cs_op *op)
{
    const int64_t *sizes;
    bool quantised = op->entry->param == 1;
    cs_elem e = cs_op_elem(op, quantised ? 3 : 0);
    cs_shape y = {.rank = 3}, present;
    y.dim[0] = cs_op_dim(op, 0, 0);
    y.dim[1] = cs_op_dim(op, 0, 1);
    int n = cs_op_ints(op, "qkv_hidden_sizes", &sizes);
    if (n == CS_ABSENT)
        y.dim[2] = cs_dim_div(cs_op_dim(op, 1, 1), 3);
    else
        y.dim[2] = n == 3 ? cs_dim_number(sizes[2]) : CS_DIM_UNKNOWN;
    cs_op_put(op, 0, e, &y);
    cs_shape_rank(&present, 5);
    present.dim[0] = 2;
    present.dim[1] = y.dim[0];
    present.dim[2] = heads(op, "num_heads");
    if (n == CS_ABSENT) present.dim[4] = cs_dim_div(y.dim[2], present.dim[2]);
    cs_op_put(op, 1, e, &present);
}

/* MultiHeadAttention: the query is [B, S, H x D], or packed [B, S, H, 3, D]; the value is
 * [B, L, H x Dv], or [B, H, L, Dv]. */
static void infer_multi_head(cs_op *op)
{
    cs_elem e = cs_op_elem(op, 0);
    cs_shape q, v, y = {.rank = 3}, present;
    int rank = cs_op_shape(op, 0, &q);
    cs_op_shape(op, 2, &v);
    cs_dim h = heads(op, "num_heads");
    y.dim[0] = cs_op_dim(op, 0, 0);
    y.dim[1] = cs_op_dim(op, 0, 1);
    y.dim[2] = CS_DIM_UNKNOWN;
    if (rank == 5)
        y.dim[2] = cs_dim_mul(q.dim[2], q.dim[4]);
    else if (v.rank == 3)
        y.dim[2] = v.dim[2];
    else if (v.rank == 4)
        y.dim[2] = cs_dim_mul(v.dim[1], v.dim[3]);
    cs_op_put(op, 0, e, &y);
    cs_shape_rank(&present, 4);
    present.dim[0] = y.dim[0];
    present.dim[1] = h;
    cs_op_put(op, 1, e, &present);
    cs_op_put(op, 2, e, &present);
    cs_op_put(op, 3, CS_ELEM_NONE, &present); /* may have another precision */
}

/* GroupQueryAttention, SparseAttention: without key and value, these are packed into the query. */
static void infer_group_query(cs_op *op)
{
    cs_dim h = heads(op, "num_heads"), kv = heads(op, "kv_num_heads");
    cs_shape y = {.rank = 3}, present;
    y.dim[0] = cs_op_dim(op, 0, 0);
    y.dim[1] = cs_op_dim(op, 0, 1);
    y.dim[2] = cs_op_dim(op, 0, 2);
    cs_dim size = CS_DIM_UNKNOWN;
    if (h > 0 && kv > 0)
        size = cs_dim_div(y.dim[2], cs_op_has(op, 1) ? h : cs_dim_add(h, cs_dim_mul(kv, 2)));
    if (!cs_op_has(op, 1)) y.dim[2] = cs_dim_mul(h, size);
    cs_op_put(op, 0, cs_op_elem(op, 0), &y);
    cs_shape_rank(&present, 4);
    present.dim[0] = y.dim[0];
    present.dim[1] = kv;
    present.dim[3] = cs_op_has(op, 3) ? cs_op_dim(op, 3, 3) : size;
    for (uint32_t i = 1; i < 3; i++) {
        cs_elem past = cs_op_has(op, 2 + i) ? cs_op_elem(op, 2 + i) : cs_op_elem(op, 0);
        cs_op_put(op, i, past, &present);
    }
    cs_op_put_rank(op, 3, cs_op_elem(op, 0), 4);
}

/* ---- the table ---- */

/* clang-format off */
#define ONNX(name, f) {CS_DOMAIN_ONNX, name, f, 0, NULL, NULL}
#define MS(name, f, param) {CS_DOMAIN_MS, name, f, param, NULL, NULL}
#define RULE(name, rule) {CS_DOMAIN_MS, name, cs_infer_rule, 0, rule, NULL}
static const cs_entry table[] = {
    ONNX("Attention", infer_attention),
    ONNX("RotaryEmbedding", cs_infer_same),
    ONNX("LinearAttention", infer_linear_attention),
    ONNX("CausalConvWithState", infer_causal_conv),
    {CS_DOMAIN_PREVIEW, "FlexAttention", infer_flex_attention, 0, NULL, NULL},

    MS("Attention", infer_ms_attention, 0),
    MS("QAttention", infer_ms_attention, 1),
    MS("MultiHeadAttention", infer_multi_head, 0),
    MS("GroupQueryAttention", infer_group_query, 0),
    MS("SparseAttention", infer_group_query, 0),
    MS("RotaryEmbedding", cs_infer_same, 0),
    RULE("MRotaryEmbedding", "0=0"),
    RULE("GemmaRotaryEmbedding", "1=1 1=3"),
    RULE("DecoderMaskedMultiHeadAttention", "0[@0.0,@0.1,?] 0[?,?,?,?] 0[?,?,?,?] -"),
    RULE("DecoderMaskedSelfAttention", "0[@0.0,@0.1,?] 4=4"),
    RULE("DecoderAttention", "0=0 0[?,?,?,?] 0[?,?,?,?]"),
    RULE("LongformerAttention", "0=0"),
    RULE("QOrderedLongformerAttention", "i8=0"),
    RULE("QOrderedAttention", "i8[@0.0,@0.1,?]"),
    RULE("PackedAttention", "0[@0.0,?]"),
    RULE("PackedMultiHeadAttention", "0[@0.0,?]"),
    RULE("PagedAttention", "0[@0.0,?] 3=3 4=4"),
    RULE("SparsePagedAttention", "0[@0.0,?] 3=3 4=4"),
    RULE("RelativePositionBias", "0[1,@0.1,?,?]"),
    RULE("GatedRelativePositionBias", "0[?,?,?,?]"),
    RULE("RemovePadding", "0[?,@0.2] i32[@0.0,@0.1] i32[?] i32[1]"),
    RULE("RestorePadding", "0[@1.0,@1.1,@0.1]"),
    {CS_DOMAIN_MS, "LinearAttention", infer_linear_attention, 0, NULL, NULL},
    RULE("CausalConvWithState", "0=0 0~0 0"),
};
/* clang-format on */
const cs_family cs_infer_attention = CS_FAMILY(table);
