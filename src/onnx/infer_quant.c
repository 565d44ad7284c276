/* Quantisation: the element type comes from a zero point, an attribute, or is u8. */
#include "onnx/infer_ops.h"

/* QuantizeLinear: x, scale, zero point. */
static void infer_quantize(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    int64_t told;
    cs_elem e = CS_U8;
    if (cs_op_has(op, 2))
        e = cs_op_elem(op, 2);
    else if (!cs_op_int(op, "output_dtype", 0, &told) || told != 0)
        e = cs_op_dtype(op, "output_dtype", CS_ELEM_NONE);
    cs_op_put(op, 0, e, &s);
}

/* DequantizeLinear: x, scale, zero point. The scale has the type of the result. */
static void infer_dequantize(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    int64_t told;
    cs_elem e = cs_op_elem(op, 1);
    if (!cs_op_int(op, "output_dtype", 0, &told) || told != 0)
        e = cs_op_dtype(op, "output_dtype", CS_ELEM_NONE);
    cs_op_put(op, 0, e, &s);
}

static void infer_dequantize_bfp(cs_op *op)
{
    cs_op_put_rank(op, 0, cs_op_dtype(op, "dtype", CS_F32), -1);
}

/* DequantizeWithOrder. */
static void infer_dequantize_order(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_put(op, 0, cs_op_dtype(op, "to", CS_F32), &s);
}

/* clang-format off */
#define MS_RULE(name, rule) {CS_DOMAIN_MS, name, cs_infer_rule, 0, rule, NULL}
static const cs_entry table[] = {
    {CS_DOMAIN_ONNX, "QuantizeLinear", infer_quantize, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "DequantizeLinear", infer_dequantize, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "DynamicQuantizeLinear", cs_infer_rule, 0, "u8=0 f32[] u8[]", NULL},

    {CS_DOMAIN_MS, "QuantizeLinear", infer_quantize, 0, NULL, NULL},
    {CS_DOMAIN_MS, "DequantizeLinear", infer_dequantize, 0, NULL, NULL},
    {CS_DOMAIN_MS, "DequantizeBFP", infer_dequantize_bfp, 0, NULL, NULL},
    {CS_DOMAIN_MS, "DequantizeWithOrder", infer_dequantize_order, 0, NULL, NULL},
    {CS_DOMAIN_MS, "QLinearConcat", cs_infer_concat, 2 | CS_TRIPLES, NULL, NULL},
    MS_RULE("QuantizeBFP", "u8 i64[?] i64[?]"),
    MS_RULE("QuantizeWithOrder", "i8=0"),
    MS_RULE("MulInteger", "i32=0*2"),
    MS_RULE("QLinearAdd", "0=0*3"),
    MS_RULE("QLinearMul", "0=0*3"),
    MS_RULE("QLinearWhere", "1=0*1*4"),
    MS_RULE("QLinearLeakyRelu", "0=0"),
    MS_RULE("QLinearSigmoid", "0=0"),
    MS_RULE("QLinearSoftmax", "0=0"),
    MS_RULE("QOrderedGelu", "i8=0"),
    MS_RULE("QOrderedLayerNormalization", "i8=0"),
    MS_RULE("QEmbedLayerNormalization", "13[@0.0,@0.1,@2.1] i32[@0.0]"),
    MS_RULE("QMoE", "0=0"),
};
/* clang-format on */
const cs_family cs_infer_quant = CS_FAMILY(table);
