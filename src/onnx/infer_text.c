/* Strings and signals. */
#include "onnx/infer_ops.h"

/* ---- strings ---- */

/* [C] or [1, C]; what is left of C is known when it runs. */
static void infer_string_normalizer(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    if (s.rank > 0 && cs_op_any(op, "stopwords")) s.dim[s.rank - 1] = CS_DIM_UNKNOWN;
    cs_op_put(op, 0, CS_STR, &s);
}

static void infer_string_split(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_put(op, 1, CS_I64, &s);
    cs_shape_push(&s, CS_DIM_UNKNOWN);
    cs_op_put(op, 0, CS_STR, &s);
}

static void infer_tf_idf(cs_op *op)
{
    const int64_t *index;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    int n = cs_op_ints(op, "ngram_indexes", &index);
    cs_dim most = -1;
    for (int i = 0; i < n; i++)
        most = index[i] > most ? index[i] : most;
    if (s.rank > 0) s.dim[s.rank - 1] = most >= 0 && most < INT64_MAX ? most + 1 : CS_DIM_UNKNOWN;
    cs_op_put(op, 0, CS_F32, &s);
}

/* ---- signals ---- */

static cs_dim scalar_dim(const cs_op *op, uint32_t arg)
{
    cs_list list;
    cs_op_list(op, arg, &list);
    return list.state == CS_LIST_KNOWN && list.len == 1 ? cs_item_dim(list.at[0]) : CS_DIM_UNKNOWN;
}

static void infer_window(cs_op *op)
{
    cs_shape s = {.rank = 0};
    cs_shape_push(&s, scalar_dim(op, 0));
    cs_op_put(op, 0, cs_op_dtype(op, "output_datatype", CS_F32), &s);
}

static cs_dim half_and_one(cs_dim d)
{
    return d >= 0 ? cs_dim_add(cs_dim_div_floor(d, 2), 1) : CS_DIM_UNKNOWN;
}

static void infer_mel(cs_op *op)
{
    cs_shape s = {.rank = 0};
    cs_shape_push(&s, half_and_one(scalar_dim(op, 1)));
    cs_shape_push(&s, scalar_dim(op, 0));
    cs_op_put(op, 0, cs_op_dtype(op, "output_datatype", CS_F32), &s);
}

/* The axis of a DFT: an attribute in 17, an input from 20 on. */
static int dft_axis(const cs_op *op, int rank)
{
    int64_t axis = -2;
    if (op->opset < 20) return cs_op_int(op, "axis", 1, &axis) ? cs_axis(axis, rank) : -1;
    cs_list list;
    cs_op_list(op, 2, &list);
    if (list.state != CS_LIST_ABSENT && !cs_list_number(&list, &axis)) return -1;
    return cs_axis(axis, rank);
}

static void infer_dft(cs_op *op)
{
    bool inverse, onesided;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    bool told = cs_op_flag(op, "inverse", false, &inverse);
    told = cs_op_flag(op, "onesided", false, &onesided) && told;
    int at = dft_axis(op, s.rank);
    if (s.rank < 2 || at < 0 || at == s.rank - 1 || !told) {
        cs_shape_rank(&s, s.rank);
    } else {
        cs_dim n = cs_op_has(op, 1) ? scalar_dim(op, 1) : s.dim[at];
        /* One-sided and back: the spectrum holds n / 2 + 1 values, the signal is real. */
        if (inverse && onesided && !cs_op_has(op, 1)) n = cs_dim_mul(cs_dim_sub(n, 1), 2);
        s.dim[at] = onesided && !inverse ? half_and_one(n) : n;
        s.dim[s.rank - 1] = onesided && inverse ? 1 : 2;
        if (onesided && inverse && op->opset < 20)
            cs_shape_rank(&s, s.rank); /* not defined there */
    }
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* [batch, frames, bins, 2] */
static void infer_stft(cs_op *op)
{
    bool onesided;
    cs_dim signal = cs_op_dim(op, 0, 1), step = scalar_dim(op, 1);
    cs_dim length = cs_op_has(op, 3)   ? scalar_dim(op, 3)
                    : cs_op_has(op, 2) ? cs_op_dim(op, 2, 0)
                                       : signal;
    bool told = cs_op_flag(op, "onesided", true, &onesided);
    cs_shape s = {.rank = 4};
    s.dim[0] = cs_op_dim(op, 0, 0);
    cs_dim way = signal >= 0 && length >= 0 ? cs_dim_sub(signal, length) : CS_DIM_UNKNOWN;
    s.dim[1] = way >= 0 && step > 0 ? cs_dim_add(way / step, 1) : CS_DIM_UNKNOWN;
    s.dim[2] = !told ? CS_DIM_UNKNOWN : onesided ? half_and_one(length) : length;
    s.dim[3] = 2;
    cs_op_put(op, 0, cs_op_elem(op, 0), &s);
}

/* clang-format off */
#define ONNX(name, f) {CS_DOMAIN_ONNX, name, f, 0, NULL, NULL}
#define RULE(name, rule) {CS_DOMAIN_ONNX, name, cs_infer_rule, 0, rule, NULL}
static const cs_entry table[] = {
    ONNX("StringNormalizer", infer_string_normalizer),
    ONNX("StringSplit", infer_string_split),
    RULE("StringConcat", "str=0*1"),
    RULE("RegexFullMatch", "bool=0"),
    ONNX("TfIdfVectorizer", infer_tf_idf),
    ONNX("BlackmanWindow", infer_window),
    ONNX("HammingWindow", infer_window),
    ONNX("HannWindow", infer_window),
    ONNX("MelWeightMatrix", infer_mel),
    ONNX("DFT", infer_dft),
    ONNX("STFT", infer_stft),
    {CS_DOMAIN_MS, "Tokenizer", cs_infer_rule, 0, "str~0+1", NULL},
};
/* clang-format on */
const cs_family cs_infer_text = CS_FAMILY(table);
