/* com.microsoft: what ONNX Runtime's optimisers and the exporters to it put into models, where no
 * other family has it. Signatures as registered in ONNX Runtime 1.32. */
#include "onnx/infer_ops.h"

/* murmur hash: attribute `positive` chooses the sign. */
static void infer_hash(cs_op *op)
{
    bool positive;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_elem e = !cs_op_flag(op, "positive", true, &positive) ? CS_ELEM_NONE
                : positive                                   ? CS_U32
                                                             : CS_I32;
    cs_op_put(op, 0, e, &s);
}

/* UnfoldTensor: the windows along `dim` become one more dim, of `size`, at the end. */
static void infer_unfold(cs_op *op)
{
    int64_t dim, size, step;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    bool told = cs_op_int(op, "dim", -1, &dim);
    told = cs_op_int(op, "size", -1, &size) && told;
    told = cs_op_int(op, "step", 1, &step) && told && size > 0 && step > 0;
    int at = told ? cs_axis(dim, s.rank) : -1;
    if (at < 0)
        cs_shape_rank(&s, s.rank);
    else if (s.dim[at] >= size)
        s.dim[at] = (s.dim[at] - size) / step + 1;
    else
        s.dim[at] = CS_DIM_UNKNOWN;
    cs_shape_push(&s, told ? size : CS_DIM_UNKNOWN);
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* BiasSplitGelu, SwiGLU with one input: half of the last dim. */
static void infer_half(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    if (s.rank > 0 && !(op->entry->param && cs_op_has(op, 1)))
        s.dim[s.rank - 1] = cs_dim_div(s.dim[s.rank - 1], 2);
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* Indices, then the dims of the table but the first. */
static void infer_embedding(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 1, &s);
    cs_shape_push(&s, cs_op_dim(op, 0, 1));
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* clang-format off */
#define SAME(name) {CS_DOMAIN_MS, name, cs_infer_same, 0, NULL, NULL}
#define RULE(name, rule) {CS_DOMAIN_MS, name, cs_infer_rule, 0, rule, NULL}
#define MS(name, f, param) {CS_DOMAIN_MS, name, f, param, NULL, NULL}
static const cs_entry table[] = {
    SAME("Gelu"), SAME("FastGelu"), SAME("QuickGelu"), SAME("BiasAdd"), SAME("BiasSoftmax"),
    SAME("GroupNorm"), SAME("Inverse"), SAME("Trilu"), SAME("SampleOp"), SAME("MoE"),
    SAME("GatedRMSNorm"), SAME("ScaledSiLU"), SAME("GatedAdd"),
    MS("BiasSplitGelu", infer_half, 0),
    MS("SwiGLU", infer_half, 1),
    MS("MurmurHash3", infer_hash, 0),
    MS("UnfoldTensor", infer_unfold, 0),
    MS("TorchEmbedding", infer_embedding, 0),
    RULE("BiasGelu", "0=0*1"),
    RULE("BiasDropout", "0=0 bool=0"),
    RULE("BitmaskDropout", "0=0 u32[?]"),
    RULE("BitmaskBiasDropout", "0=0 u32[?]"),
    RULE("ComplexMul", "0=0*1"),
    RULE("ComplexMulConj", "0=0*1"),
    RULE("CDist", "0[@0.0,@1.0]"),
    RULE("ExpandDims", "0~0+1"),
    RULE("Unique", "0[?] i64[?] i64[?]"),
    RULE("Rfft", "0~0+1"),
    RULE("Irfft", "0~0-1"),
    RULE("IsAllFinite", "bool[]"),
    RULE("NGramRepeatBlock", "1=1"),
    RULE("DynamicTimeWarping", "i32[2,?]"),
    RULE("SkipLayerNormalization", "0=0 f32~0 f32~0 0=0"),
    RULE("SkipSimplifiedLayerNormalization", "0=0 f32~0 f32~0 0=0"),
    RULE("SkipGroupNorm", "0=0 0=0"),
    RULE("EmbedLayerNormalization", "2[@0.0,@0.1,@2.1] i32[@0.0] 2[@0.0,@0.1,@2.1]"),
    RULE("WordConvEmbedding", "1"),
    RULE("BeamSearch", "i32[?,?,?] 5[?,?] 5"),
    RULE("WhisperBeamSearch", "i32[?,?,?] 5[?,?] 5 f32 f32"),
    RULE("GreedySearch", "i32[?,?]"),
    RULE("Sampling", "i32[?,?] f32[?,?]"),
    RULE("BifurcationDetector", "i64[?] i64[]"),
};
/* clang-format on */
const cs_family cs_infer_ms = CS_FAMILY(table);
