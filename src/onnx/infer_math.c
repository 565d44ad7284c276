/* Elementwise operators, casts, random numbers, generators of constants and ranges.
 *
 * Most have one of three forms: the type of an input, a broadcast of all inputs, or that with
 * another element type. Before opset 7 binary operators broadcast the second input to the first.
 */
#include <math.h>

#include "onnx/infer_ops.h"

void cs_infer_same(cs_op *op)
{
    cs_type t = cs_op_type(op, (uint32_t)op->entry->param);
    cs_kind kind = cs_type_get(op->pool, t)->kind;
    if (kind == CS_SPARSE) {
        cs_shape s;
        cs_op_shape(op, (uint32_t)op->entry->param, &s);
        cs_op_put(op, 0, cs_op_elem(op, (uint32_t)op->entry->param), &s);
    } else if (kind != CS_UNKNOWN) {
        cs_op_put_type(op, 0, t);
    }
}

/* ---- broadcasts ---- */

static bool all_equal(const cs_op *op)
{
    cs_type t = cs_op_type(op, 0);
    for (uint32_t i = 1; i < op->node->n_arg; i++)
        if (cs_op_type(op, i) != t) return false;
    return cs_type_get(op->pool, t)->kind == CS_TENSOR;
}

/* Equal shapes, or the second broadcast to the first (attribute `broadcast`). */
static bool old_broadcast(const cs_op *op, cs_shape *s)
{
    cs_shape b;
    if (op->opset >= 7 || op->entry->domain != CS_DOMAIN_ONNX || op->node->n_arg != 2) return false;
    cs_op_shape(op, 1, &b);
    int64_t broadcast;
    if (cs_op_int(op, "broadcast", 0, &broadcast) && broadcast == 0 && b.rank == s->rank)
        cs_shape_broadcast(s, &b);
    return s->rank >= b.rank;
}

void cs_infer_broadcast(cs_op *op)
{
    cs_elem e = (cs_elem)op->entry->param;
    if (e == CS_ELEM_NONE && all_equal(op)) {
        cs_op_put_type(op, 0, cs_op_type(op, 0));
        return;
    }
    for (uint32_t i = 0; i < op->node->n_arg && e == CS_ELEM_NONE; i++)
        e = cs_op_elem(op, i);
    cs_shape s, other;
    cs_op_shape(op, 0, &s);
    if (!old_broadcast(op, &s)) {
        for (uint32_t i = 1; i < op->node->n_arg; i++) {
            cs_op_shape(op, i, &other);
            cs_shape_broadcast(&s, &other);
        }
    }
    cs_op_put(op, 0, e, &s);
}

static void infer_pow(cs_op *op) /* the exponent may be of another type */
{
    cs_shape s, other;
    cs_op_shape(op, 0, &s);
    if (!old_broadcast(op, &s)) {
        cs_op_shape(op, 1, &other);
        cs_shape_broadcast(&s, &other);
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

static void infer_dropout(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
    cs_op_put(op, 1, op->opset >= 10 ? CS_BOOL : cs_op_elem(op, 0), &s);
}

static void infer_det(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    s.rank = s.rank >= 2 ? s.rank - 2 : CS_RANK_UNKNOWN;
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* ---- casts ---- */

/* Cast-1 names the type as TensorProto spells it. */
static cs_elem elem_by_onnx_name(cs_span name)
{
    static const struct {
        const char *name;
        cs_elem elem;
    } names[] = {
        {"FLOAT", CS_F32},  {"UINT8", CS_U8},      {"INT8", CS_I8},         {"UINT16", CS_U16},
        {"INT16", CS_I16},  {"INT32", CS_I32},     {"INT64", CS_I64},       {"STRING", CS_STR},
        {"BOOL", CS_BOOL},  {"FLOAT16", CS_F16},   {"DOUBLE", CS_F64},      {"UINT32", CS_U32},
        {"UINT64", CS_U64}, {"COMPLEX64", CS_C64}, {"COMPLEX128", CS_C128},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cs_span_is(name, names[i].name)) return names[i].elem;
    return CS_ELEM_NONE;
}

static void infer_cast(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_span name = cs_op_text(op, "to", "");
    cs_elem e = name.len ? elem_by_onnx_name(name) : cs_op_dtype(op, "to", CS_ELEM_NONE);
    cs_op_put(op, 0, e, &s);
}

/* ---- random numbers ---- */

/* The shape of the input, and its element type where `dtype` names no other. */
static void infer_like(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_put(op, 0, cs_op_dtype(op, "dtype", cs_op_elem(op, 0)), &s);
}

static void infer_random(cs_op *op)
{
    cs_list list;
    cs_shape s;
    cs_op_list_attr(op, "shape", &list);
    cs_shape_rank(&s, list.state == CS_LIST_KNOWN || list.state == CS_LIST_LENGTH ? list.len : -1);
    for (int i = 0; i < s.rank && list.state == CS_LIST_KNOWN; i++)
        s.dim[i] = cs_item_dim(list.at[i]);
    cs_op_put(op, 0, cs_op_dtype(op, "dtype", CS_F32), &s);
}

static void infer_multinomial(cs_op *op)
{
    int64_t n;
    cs_shape s = {.rank = 0};
    cs_shape_push(&s, cs_op_dim(op, 0, 0));
    cs_shape_push(&s, cs_op_int(op, "sample_size", 1, &n) ? cs_dim_number(n) : CS_DIM_UNKNOWN);
    cs_op_put(op, 0, cs_op_dtype(op, "dtype", CS_I32), &s);
}

/* ---- constants and ranges ---- */

/* A Constant that is a node: in functions and the text form. */
static void infer_constant(cs_op *op)
{
    static const struct {
        const char *attr;
        cs_elem elem;
        bool list;
    } forms[] = {
        {"value_int", CS_I64, false},    {"value_ints", CS_I64, true},
        {"value_float", CS_F32, false},  {"value_floats", CS_F32, true},
        {"value_string", CS_STR, false}, {"value_strings", CS_STR, true},
    };
    const cs_attr *a = cs_node_attr(op->g, op->node, "value");
    if (a && a->kind == CS_ATTR_TENSOR) cs_op_put_type(op, 0, a->type);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        a = cs_node_attr(op->g, op->node, forms[i].attr);
        if (!a) continue;
        cs_shape s = {.rank = 0};
        bool known = a->kind >= CS_ATTR_INTS && a->kind <= CS_ATTR_STRINGS;
        if (forms[i].list)
            cs_shape_push(&s, known ? cs_dim_number((int64_t)a->len) : CS_DIM_UNKNOWN);
        cs_op_put(op, 0, forms[i].elem, &s);
    }
}

static void infer_constant_of_shape(cs_op *op)
{
    cs_elem e = CS_F32;
    if (cs_op_any(op, "value")) {
        const cs_attr *a = cs_node_attr(op->g, op->node, "value");
        e = a->kind == CS_ATTR_TENSOR ? cs_type_get(op->pool, a->type)->elem : CS_ELEM_NONE;
    }
    cs_list list;
    cs_shape s;
    cs_op_list(op, 0, &list);
    cs_shape_rank(&s, list.state >= CS_LIST_LENGTH ? list.len : -1);
    for (int i = 0; i < s.rank && list.state == CS_LIST_KNOWN; i++)
        s.dim[i] = cs_item_dim(list.at[i]);
    cs_op_put(op, 0, e, &s);
}

static cs_dim range_length(const cs_op *op)
{
    double start, limit, delta = 1;
    if (!cs_op_scalar(op, 0, &start) || !cs_op_scalar(op, 1, &limit)) return CS_DIM_UNKNOWN;
    if (cs_op_has(op, 2) && !cs_op_scalar(op, 2, &delta)) return CS_DIM_UNKNOWN;
    double n = ceil((limit - start) / delta);
    if (delta == 0 || !(n <= 0x1p53)) return CS_DIM_UNKNOWN;
    return n > 0 ? (cs_dim)n : 0;
}

static void infer_range(cs_op *op)
{
    cs_elem e = CS_ELEM_NONE;
    for (uint32_t i = 0; i < 3 && !e; i++)
        e = cs_op_elem(op, i);
    cs_shape s = {.rank = 0};
    cs_shape_push(&s, range_length(op));
    cs_op_put(op, 0, e, &s);
}

/* ---- the table ---- */

/* clang-format off */
#define SAME(name) {CS_DOMAIN_ONNX, name, cs_infer_same, 0, NULL, NULL}
#define WIDE(name, elem) {CS_DOMAIN_ONNX, name, cs_infer_broadcast, elem, NULL, NULL}
#define RULE(name, rule) {CS_DOMAIN_ONNX, name, cs_infer_rule, 0, rule, NULL}
static const cs_entry table[] = {
    SAME("Acos"), SAME("Acosh"), SAME("Asin"), SAME("Asinh"), SAME("Atan"),
    SAME("Atanh"), SAME("BitwiseNot"), SAME("Ceil"), SAME("Celu"), SAME("Clip"), SAME("Cos"),
    SAME("Cosh"), SAME("CumProd"), SAME("CumSum"), SAME("Elu"), SAME("Erf"), SAME("Exp"),
    SAME("Floor"), SAME("Gelu"), SAME("HardSigmoid"), SAME("HardSwish"), SAME("Hardmax"),
    SAME("LeakyRelu"), SAME("Log"), SAME("LogSoftmax"), SAME("Mish"), 
    SAME("PRelu"), SAME("Reciprocal"), SAME("Relu"), SAME("Round"), SAME("Selu"), SAME("Shrink"),
    SAME("Sigmoid"), SAME("Sign"), SAME("Sin"), SAME("Sinh"), SAME("Softmax"), SAME("Softplus"),
    SAME("Softsign"), SAME("Sqrt"), SAME("SwiGLU"), SAME("Swish"), SAME("Tan"), SAME("Tanh"),
    SAME("ThresholdedRelu"), SAME("Trilu"), SAME("ReverseSequence"),
    {CS_DOMAIN_ONNX, "Abs", cs_infer_same, 0, "a", cs_data_unary},
    {CS_DOMAIN_ONNX, "Neg", cs_infer_same, 0, "n", cs_data_unary},
    {CS_DOMAIN_ONNX, "Not", cs_infer_same, 0, "!", cs_data_unary},
    {CS_DOMAIN_ONNX, "Identity", cs_infer_same, 0, NULL, cs_data_same},
    /* gone from the standard, still in old files */
    SAME("Affine"), SAME("ImageScaler"), SAME("ParametricSoftplus"), SAME("Scale"),
    SAME("ScaledTanh"), SAME("MemcpyFromHost"), SAME("MemcpyToHost"),

    {CS_DOMAIN_ONNX, "Add", cs_infer_broadcast, 0, "+", cs_data_arith},
    {CS_DOMAIN_ONNX, "Sub", cs_infer_broadcast, 0, "-", cs_data_arith},
    {CS_DOMAIN_ONNX, "Mul", cs_infer_broadcast, 0, "*", cs_data_arith},
    {CS_DOMAIN_ONNX, "Div", cs_infer_broadcast, 0, "/", cs_data_arith},
    {CS_DOMAIN_ONNX, "Mod", cs_infer_broadcast, 0, "%", cs_data_arith},
    {CS_DOMAIN_ONNX, "Min", cs_infer_broadcast, 0, "m", cs_data_arith},
    {CS_DOMAIN_ONNX, "Max", cs_infer_broadcast, 0, "M", cs_data_arith},
    {CS_DOMAIN_ONNX, "Equal", cs_infer_broadcast, CS_BOOL, "=", cs_data_arith},
    WIDE("Mean", 0), WIDE("Sum", 0), WIDE("BitShift", 0), WIDE("BitwiseAnd", 0),
    WIDE("BitwiseOr", 0), WIDE("BitwiseXor", 0), WIDE("Xor", CS_BOOL),
    {CS_DOMAIN_ONNX, "And", cs_infer_broadcast, CS_BOOL, "&", cs_data_arith},
    {CS_DOMAIN_ONNX, "Or", cs_infer_broadcast, CS_BOOL, "|", cs_data_arith},
    {CS_DOMAIN_ONNX, "Less", cs_infer_broadcast, CS_BOOL, "<", cs_data_arith},
    {CS_DOMAIN_ONNX, "LessOrEqual", cs_infer_broadcast, CS_BOOL, "L", cs_data_arith},
    {CS_DOMAIN_ONNX, "Greater", cs_infer_broadcast, CS_BOOL, ">", cs_data_arith},
    {CS_DOMAIN_ONNX, "GreaterOrEqual", cs_infer_broadcast, CS_BOOL, "G", cs_data_arith},
    {CS_DOMAIN_ONNX, "Pow", infer_pow, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "Where", cs_infer_rule, 0, "1|2=0*1*2", cs_data_where},
    RULE("IsInf", "bool=0"), RULE("IsNaN", "bool=0"), RULE("CastLike", "1=0"),
    {CS_DOMAIN_ONNX, "Dropout", infer_dropout, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "Det", infer_det, 0, NULL, NULL},

    {CS_DOMAIN_ONNX, "Cast", infer_cast, 0, NULL, cs_data_same},
    {CS_DOMAIN_ONNX, "BitCast", infer_cast, 0, NULL, NULL},

    {CS_DOMAIN_ONNX, "Bernoulli", infer_like, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "EyeLike", infer_like, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "RandomNormalLike", infer_like, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "RandomUniformLike", infer_like, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "RandomNormal", infer_random, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "RandomUniform", infer_random, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "Multinomial", infer_multinomial, 0, NULL, NULL},

    {CS_DOMAIN_ONNX, "Constant", infer_constant, 0, NULL, NULL},
    {CS_DOMAIN_ONNX, "ConstantOfShape", infer_constant_of_shape, 0, NULL, cs_data_fill},
    {CS_DOMAIN_ONNX, "Range", infer_range, 0, NULL, cs_data_range},
    {CS_DOMAIN_MS, "Range", infer_range, 0, NULL, cs_data_range},
};
/* clang-format on */
const cs_family cs_infer_math = CS_FAMILY(table);
