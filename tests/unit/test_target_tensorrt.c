/* The shipped TensorRT targets against a compact list of what their tables must say: every operator
 * with every element type, and every restriction, once taken and once refused.
 */
#include "target_fixture.h"

/* ---- the shipped tables: operators whose rows have types only ---- */

#define FLOATS " f32 f16 bf16 "
#define NUMBERS FLOATS "i32 i64 "
#define ANYTHING NUMBERS "bool "

typedef struct cs_plain {
    const char *ops;
    const char *types; /* of the first input */
    const char *out;   /* of the output; NULL: as the input */
    const char *more;  /* further inputs, from names declared in plain_graph */
} cs_plain;

static const cs_plain plain[] = {
    {"Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Clip Conv "
     "ConvTranspose Cos Cosh Einsum Elu Erf Exp Floor Gemm GlobalAveragePool GlobalLpPool "
     "GlobalMaxPool GRU GroupNormalization HardSigmoid HardSwish Hardmax ImageScaler "
     "InstanceNormalization LayerNormalization LeakyRelu Log LogSoftmax LpNormalization LpPool LRN "
     "LSTM MatMul MaxPool MeanVarianceNormalization ParametricSoftplus PRelu RandomNormal "
     "RandomNormalLike RandomUniform RandomUniformLike Reciprocal RMSNormalization RNN "
     "RotaryEmbedding Round ScaledTanh Scan Selu Sigmoid Sin Sinh Softmax Softplus Softsign Sqrt "
     "Tan Tanh ThresholdedRelu Upsample Resize Dropout",
     FLOATS, NULL, ""},
    {"Abs Add DepthToSpace Div Max Min Mod Mul Neg Pad Pow Range ReduceL1 ReduceL2 ReduceLogSum "
     "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu "
     "Scatter ScatterElements ScatterND Shrink Sign SpaceToDepth Sub Sum",
     NUMBERS, NULL, ""},
    {"Concat EyeLike Expand Flatten Gather GatherElements GatherND Identity Reshape "
     "ReverseSequence Slice Split Tile Transpose Trilu Unsqueeze",
     ANYTHING, NULL, ""},
    {"Shape Size", ANYTHING, "i64", ""},
    {"And Not Or Xor", " bool ", NULL, ""},
    {"Cast CastLike", ANYTHING "u8 ", NULL, ""},
    {"Equal Greater GreaterOrEqual Less LessOrEqual IsNaN", NUMBERS, "bool", ""},
    {"IsInf", FLOATS, "bool", ""},
    {"ArgMax ArgMin", NUMBERS, "i64", ""},
    {"Constant", ANYTHING "f8e4m3fn f4e2m1 i4 ", NULL, NULL},
    {"ConstantOfShape", ANYTHING "f8e4m3fn f4e2m1 i4 ", NULL, "shape"},
    {"BlackmanWindow HammingWindow HannWindow", " f32 f16 ", NULL, "scalar"},
    {"Mish DeformConv", " f32 f16 ", NULL, ""},
    {"Gelu", NUMBERS "i8 ", NULL, ""},
    {"Mean", NUMBERS "f8e4m3fn ", NULL, ""},
    {"DequantizeLinear", " i8 f8e4m3fn f4e2m1 i4 ", "f32", "%f"},
    {"CumSum", FLOATS, NULL, "%k"},
    {"OneHot", ANYTHING, NULL, "%k"},
    {"TopK", NUMBERS, NULL, "%v7"},
    {"Where", " bool ", "f32", "%f, %f"},
};

static const char unsupported[] =
    "AffineGrid Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CenterCropPad Col2Im "
    "Compress ConcatFromSequence ConvInteger Det DynamicQuantizeLinear ImageDecoder MatMulInteger "
    "MaxRoiPool MaxUnpool MelWeightMatrix Multinomial NegativeLogLikelihoodLoss Optional "
    "OptionalGetElement OptionalHasElement QLinearConv QLinearMatMul RegexFullMatch SequenceAt "
    "SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
    "SoftmaxCrossEntropyLoss SplitToSequence StringConcat StringNormalizer StringSplit "
    "TfIdfVectorizer Unique BitCast SwiGLU com.microsoft:Gelu Foo";

static bool is_word(const char *list, const char *word)
{
    char spaced[80];
    snprintf(spaced, sizeof spaced, " %s ", word);
    return strstr(list, spaced) != NULL;
}

static void plain_graph(char *text, size_t size, const cs_plain *p, const char *op,
                        const char *elem)
{
    int len = snprintf(text, size,
                       "opset 17\ninput %%x : %s[2,3,8,8]\ninput %%f : f32[2,3,8,8]\n"
                       "weight %%k : i64[]\nweight %%v7 : i64[1]\ninput %%shape : i64[4]\n"
                       "input %%scalar : i64[]\n",
                       elem);
    const char *in = p->more == NULL                                                   ? ""
                     : strcmp(p->more, "shape") == 0 || strcmp(p->more, "scalar") == 0 ? NULL
                                                                                       : "%x";
    snprintf(text + len, size - (size_t)len, "%%y : %s[2,3,8,8] = %s(%s%s%s%s)\noutput %%y\n",
             p->out != NULL ? p->out : elem, op, in != NULL ? in : "%", in == NULL ? p->more : "",
             in != NULL && in[0] && p->more[0] ? ", " : "", in != NULL && in[0] ? p->more : "");
}

static void check_plain(const cutset_target *t, const cs_plain *p, const char *op)
{
#define ELEM_NAME(name, code, text, bits) #text,
    static const char *const elems[] = {CS_ELEMS(ELEM_NAME)};
    for (size_t e = 0; e < sizeof elems / sizeof *elems; e++) {
        char text[600];
        plain_graph(text, sizeof text, p, op, elems[e]);
        const char *got = judge_text(t, text);
        bool want = is_word(p->types, elems[e]);
        CHECK(want ? got[0] == 0 : strncmp(got, "type: ", 6) == 0, "%s: %s of %s: \"%s\"\n%s",
              t->name, op, elems[e], got, text);
        if (strcmp(elems[e], "f64") == 0)
            CHECK(strstr(got, "would be narrowed") != NULL, "%s: \"%s\"", op, got);
    }
}

/* Calls check for each word of a list. */
static size_t each_word(const char *list, const cutset_target *t, const cs_plain *p,
                        void (*check)(const cutset_target *, const cs_plain *, const char *))
{
    size_t words = 0;
    while (*list != 0) {
        char word[80];
        size_t len = strcspn(list, " ");
        snprintf(word, sizeof word, "%.*s", (int)len, list);
        if (len > 0) check(t, p, word);
        words += len > 0;
        list += len + strspn(list + len, " ");
    }
    return words;
}

static void check_unsupported(const cutset_target *t, const cs_plain *p, const char *op)
{
    char text[200], want[120];
    (void)p;
    snprintf(text, sizeof text,
             "opset 17\ninput %%x : f32[2]\n%%y : f32[2] = %s(%%x)\noutput %%y\n", op);
    snprintf(want, sizeof want, "op: %s is not supported", op);
    const char *got = judge_text(t, text);
    CHECK(strcmp(got, want) == 0, "%s: \"%s\"", op, got);
}

static void test_tensorrt_tables(void **state)
{
    (void)state;
    const char *const names[] = {"tensorrt-10.15", "tensorrt-11"};
    for (size_t i = 0; i < 2; i++) {
        cutset_target *t = open_target(names[i]);
        size_t words = 0;
        for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
            words += each_word(plain[k].ops, t, &plain[k], check_plain);
        /* with rows of their own below: Attention GridSample If Loop NonMaxSuppression
         * NonZero QuantizeLinear RoiAlign STFT Squeeze TensorScatter; 11: DFT Swish and 5 more */
        size_t rules = 0, own = i == 0 ? 11 : 18;
        for (size_t r = 0; r < t->rules->n_rules; r++)
            rules += t->rules->rules[r].n_ops;
        assert_int_equal(words + own, rules);
        each_word(unsupported, t, NULL, check_unsupported);
        cutset_target_free(t);
    }
}

/* ---- the shipped tables: every restriction, taken and refused ---- */

#define X4 "opset 17\ninput %x : f32[1,3,8,8]\ninput %i : i64[1]\nweight %w : i64[1]\n"
#define X4_AT(version) "opset " #version "\ninput %x : f32[1,3,8,8]\nweight %w : i64[1]\n"

static const cs_row restrictions[] = {
    /* Attention */
    {"opset 23\ninput %q : f32[1,2,4,8]\ninput %m : bool[1,1,4,4]\n"
     "%y : f32[1,2,4,8] = Attention(%q, %q, %q, %m) {is_causal=1}\n",
     ""},
    {"opset 23\ninput %q : f32[1,4,16]\n%y : f32[1,4,16] = Attention(%q, %q, %q)\n",
     "rank: Attention: input 0 (Q) has rank 3; it must be 4"},
    {"opset 23\ninput %q : f32[1,2,4,8]\ninput %m : f32[4,4]\n"
     "%y : f32[1,2,4,8] = Attention(%q, %q, %q, %m)\n",
     "rank: Attention: input 3 (attn_mask) has rank 2"},
    {"opset 23\ninput %q : f32[1,2,4,8]\n%y : f32[1,2,4,8] = Attention(%q, %q, %q, , %q)\n",
     "attr: Attention: input 4 (past_key) is not supported"},
    {"opset 23\ninput %q : f32[1,2,4,8]\n%y : f32[1,2,4,8] = Attention(%q, %q, %q, , , %q)\n",
     "attr: Attention: input 5 (past_value) is not supported"},
    {"opset 24\ninput %q : f32[1,2,4,8]\ninput %n : i64[1]\n"
     "%y : f32[1,2,4,8] = Attention(%q, %q, %q, , , , %n)\n",
     "attr: Attention: input 6 (nonpad_kv_seqlen) is not supported"},
    {"opset 23\ninput %q : f32[1,2,4,8]\n"
     "%y : f32[1,2,4,8], %k : f32[1,2,4,8] = Attention(%q, %q, %q)\n",
     "attr: Attention: output 1 (present_key) is not supported"},
    {"opset 23\ninput %q : f32[1,2,4,8]\n%y : f32[1,2,4,8] = Attention(%q, %q, %q) {softcap=5.0}\n",
     "attr: Attention with attribute softcap is not supported"},
    {"opset 23\ninput %q : f32[1,2,4,8]\n"
     "%y : f32[1,2,4,8] = Attention(%q, %q, %q) {qk_matmul_output_mode=1}\n",
     "attr: Attention with attribute qk_matmul_output_mode"},
    /* pooling */
    {X4 "%y : f32[1,3,4,4] = AveragePool(%x) {dilations=[1,1]}\n", ""},
    {X4 "%y : f32[1,3,4,4] = AveragePool(%x) {dilations=[2,1]}\n",
     "attr: AveragePool with dilations = [2, 1] is not supported; every element must be 1"},
    {"opset 17\ninput %x : f32[1,3,8]\n%y : f32[1,3,4] = AveragePool(%x)\n",
     "rank: AveragePool: input 0 (X) has rank 3; it must be 4 or 5"},
    {"opset 17\ninput %x : f32[1,3,8,8,8]\n%y : f32[1,3,4,4,4] = MaxPool(%x)\n", ""},
    {"opset 17\ninput %x : f32[1,3,8]\n%y : f32[1,3,4] = MaxPool(%x)\n", "rank: MaxPool"},
    {X4 "%y : f32[1,3,4,4], %k : i64[1,3,4,4] = MaxPool(%x)\n",
     "attr: MaxPool: output 1 (Indices) is not supported"},
    {X4 "%y : f32[1,3,4,4] = MaxPool(%x) {dilations=[2,2]}\n", "attr: MaxPool with dilations"},
    {"opset 22\ninput %x : f32[1,3,8]\n%y : f32[1,3,4] = LpPool(%x) {dilations=[1]}\n", ""},
    {X4_AT(22) "%y : f32[1,3,4,4] = LpPool(%x) {dilations=[1,2]}\n", "attr: LpPool with dilations"},
    /* constants known before run time */
    {X4 "%y : f32[1,3,8,8] = CumSum(%x, %i)\n", "const: CumSum: input 1 (axis) must be a constant"},
    {X4 "%y : f32[1,3,8,8,2] = OneHot(%x, %i, %x)\n", "const: OneHot: input 1 (depth)"},
    {X4_AT(18) "%y : f32[1,3] = ReduceMean(%x, %w)\n", ""},
    {X4 "%y : f32[1,3] = ReduceSum(%x, %i)\n",
     "const: ReduceSum: input 1 (axes) must be a constant"},
    {X4 "%y : f32[1,3] = ReduceMean(%x) {axes=[2,3]}\n", ""},
    {X4 "%y : f32[1,3,8,8,1] = Unsqueeze(%x, %w)\n", ""},
    {X4 "%y : f32[1,3,8,8,1] = Unsqueeze(%x, %i)\n", "const: Unsqueeze: input 1 (axes)"},
    {X4 "%y : f32[3,8,8] = Squeeze(%x, %w)\n", ""},
    {X4 "%y : f32[3,8,8] = Squeeze(%x, %i)\n", "const: Squeeze: input 1 (axes)"},
    {X4_AT(12) "%y : f32[3,8,8] = Squeeze(%x) {axes=[0]}\n", ""},
    {"opset 17\ninput %x : f32[N,3]\n%y : f32[N,3] = EyeLike(%x)\n",
     "shape: EyeLike: input 0 (input) must have a shape that is all numbers before run time"},
    {"opset 17\ninput %x : f32[8,N]\n%y : f32[8,N] = Hardmax(%x)\n",
     "shape: Hardmax: input 0 (input) has a dim -1 that is not a number before run time"},
    {"opset 17\ninput %x : f32[8,N]\n%y : f32[8,N] = Hardmax(%x) {axis=0}\n", ""},
    {"opset 11\ninput %x : f32[8,N,4]\n%y : f32[8,N,4] = Hardmax(%x)\n",
     "shape: Hardmax: input 0 (input) has a dim 1"},
    {"opset 11\ninput %x : f32[N,4,N]\n%y : f32[N,4,N] = Hardmax(%x)\n", ""},
    /* TopK */
    {X4 "weight %v3839 : i64[1]\n%y : f32[1,3,8,8], %k : i64[1,3,8,8] = TopK(%x, %v3839)\n", ""},
    {X4 "weight %v3840 : i64[1]\n%y : f32[1,3,8,8], %k : i64[1,3,8,8] = TopK(%x, %v3840)\n",
     "attr: TopK: input 1 (K) = 3840 is not supported; it must be at most 3839"},
    {X4 "%y : f32[1,3,8,8], %k : i64[1,3,8,8] = TopK(%x, %i)\n",
     "const: TopK: input 1 (K) must be a constant"},
    {X4 "%y : f32[1,3,8,8], %k : i64[1,3,8,8] = TopK(%x, %w)\n",
     "const: TopK: input 1 (K) is a constant whose value is not at hand"},
    {X4 "weight %v3 : i64[1]\n%y : f32[1], %k : i64[1] = TopK(%x, %v3) {sorted=0}\n",
     "attr: TopK with sorted = 0 is not supported; it must be 1"},
    {X4_AT(9) "%y : f32[1], %k : i64[1] = TopK(%x) {k=4000}\n",
     "attr: TopK with k = 4000 is not supported; it must be at most 3839"},
    {X4_AT(9) "%y : f32[1], %k : i64[1] = TopK(%x) {k=5}\n", ""},
    /* quantisation */
    {X4 "weight %s : f32[]\nweight %v0 : i8[]\n%y : i8[1,3,8,8] = QuantizeLinear(%x, %s, %v0)\n",
     ""},
    {X4 "weight %s : f32[]\nweight %v3 : i8[]\n%y : i8[1,3,8,8] = QuantizeLinear(%x, %s, %v3)\n",
     "attr: QuantizeLinear: input 2 (y_zero_point) = 3 is not supported; it must be 0"},
    {X4 "weight %s : f32[]\n%y : u8[1,3,8,8] = QuantizeLinear(%x, %s)\n",
     "type: QuantizeLinear does not take u8 (output 0); it takes i8, f8e4m3fn, i4, f4e2m1"},
    {X4 "weight %s : f32[2000]\nweight %z : i8[2000]\n"
        "%y : i8[1,3,8,8] = QuantizeLinear(%x, %s, %z)\n",
     ""}, /* too large to be at hand */
    {X4 "weight %s : f32[]\ninput %z : i8[]\n%y : i8[1,3,8,8] = QuantizeLinear(%x, %s, %z)\n",
     "const: QuantizeLinear: input 2 (y_zero_point) must be a constant"},
    {"opset 21\nweight %v0 : i4[8]\nweight %q : i4[8]\nweight %s : f32[8]\n"
     "%y : f32[8] = DequantizeLinear(%q, %s, %v0)\n",
     ""},
    {"opset 21\nweight %v1 : i4[8]\nweight %q : i4[8]\nweight %s : f32[8]\n"
     "%y : f32[8] = DequantizeLinear(%q, %s, %v1)\n",
     "attr: DequantizeLinear: input 2"},
    {"opset 17\nweight %q : i32[8]\nweight %s : f32[8]\n%y : f32[8] = DequantizeLinear(%q, %s)\n",
     "type: DequantizeLinear does not take i32 (input 0)"},
    /* others */
    {X4 "weight %v0 : bool[]\nweight %r : f32[]\n%y : f32[1,3,8,8] = Dropout(%x, %r, %v0)\n", ""},
    {X4 "weight %v1 : bool[]\nweight %r : f32[]\n%y : f32[1,3,8,8] = Dropout(%x, %r, %v1)\n",
     "attr: Dropout: input 2 (training_mode) = 1 is not supported; it must be false"},
    {X4 "input %t : bool[]\nweight %r : f32[]\n%y : f32[1,3,8,8] = Dropout(%x, %r, %t)\n",
     "const: Dropout: input 2 (training_mode) must be a constant"},
    {X4_AT(19) "%y : f32[1,3,8,8] = DeformConv(%x, %x, %x) {pads=[1,2,1,2]}\n", ""},
    {X4_AT(19) "%y : f32[1,3,8,8] = DeformConv(%x, %x, %x) {pads=[1,2,1,3]}\n",
     "attr: DeformConv with pads = [1, 2, 1, 3] is not supported; its second half must repeat"},
    {"opset 19\ninput %x : f32[1,3,8,8,8]\n%y : f32[1,3,8,8,8] = DeformConv(%x, %x, %x)\n",
     "rank: DeformConv: input 0 (X) has rank 5; it must be 3 or 4"},
    {X4 "%y : f32[1,3,8,8], %m : f32[1] = LayerNormalization(%x, %x)\n",
     "attr: LayerNormalization: output 1 (Mean) is not supported"},
    {X4 "%y : f32[1,3,8,8], _, %m : f32[1] = LayerNormalization(%x, %x)\n",
     "attr: LayerNormalization: output 2 (InvStdDev)"},
    {X4 "%y : f32[1,3,8,8] = LSTM(%x) {direction=\"bidirectional\", "
        "activations=[\"Sigmoid\",\"Tanh\",\"Tanh\",\"Sigmoid\",\"Tanh\",\"Tanh\"]}\n",
     ""},
    {X4 "%y : f32[1,3,8,8] = LSTM(%x) {direction=\"bidirectional\", "
        "activations=[\"Sigmoid\",\"Tanh\",\"Tanh\",\"Relu\",\"Tanh\",\"Tanh\"]}\n",
     "attr: LSTM with activations = [\"Sigmoid\""},
    {X4 "%y : f32[1,3,8,8] = LSTM(%x) {input_forget=1}\n", "attr: LSTM with input_forget = 1"},
    {X4 "%y : f32[1,3,8,8] = LSTM(%x) {layout=1}\n", "attr: LSTM with layout = 1"},
    {X4 "%y : f32[1,3,8,8] = GRU(%x) {activations=[\"Sigmoid\",\"Tanh\"]}\n", ""},
    {X4 "%y : f32[1,3,8,8] = GRU(%x) {direction=\"bidirectional\", "
        "activations=[\"Sigmoid\",\"Tanh\",\"Sigmoid\",\"Relu\"]}\n",
     "attr: GRU with activations"},
    {X4
     "%y : f32[1,3,8,8] = RNN(%x) {direction=\"bidirectional\", activations=[\"Tanh\",\"Relu\"]}\n",
     "attr: RNN with activations"},
    {X4 "input %l : i64[1]\n%y : f32[1,3,8,8] = RNN(%x, %x, %x, , %l)\n",
     "type: RNN does not take i64 (input 4); it takes i32"},
    {X4_AT(18) "%y : f32[1,3,8,8] = Resize(%x, , %x) {axes=[0,1,2,3], mode=\"linear\"}\n", ""},
    {X4_AT(18) "%y : f32[1,3,8,8] = Resize(%x, , %x) {axes=[2,3]}\n",
     "attr: Resize with axes = [2, 3] is not supported; it must be 0, 1, ... rank - 1"},
    {X4_AT(18) "%y : f32[1,3,8,8] = Resize(%x, , , %w) {axes=[2,3]}\n", ""},
    {X4 "%y : f32[1,3,8,8] = Resize(%x) {mode=\"cubic\"}\n",
     "attr: Resize with mode = \"cubic\" is not supported; it must be nearest or linear"},
    {X4 "%y : f32[1,3,8,8] = Resize(%x) {coordinate_transformation_mode=\"tf_crop_and_resize\"}\n",
     "attr: Resize with coordinate_transformation_mode = \"tf_crop_and_resize\""},
    {X4 "%y : f32[1,3,8,8] = Resize(%x) {coordinate_transformation_mode=\"align_corners\"}\n", ""},
    {X4 "%y : f32[1,3,8,8] = Resize(%x) {nearest_mode=\"simple\"}\n",
     "attr: Resize with nearest_mode"},
    {X4_AT(18) "%y : f32[1,3,8,8] = Resize(%x) {keep_aspect_ratio_policy=\"not_larger\"}\n",
     "attr: Resize with keep_aspect_ratio_policy"},
    {X4_AT(18) "%y : f32[1,3,8,8] = Resize(%x) {antialias=1}\n", "attr: Resize with antialias = 1"},
    {X4_AT(23) "input %p : i32[1,8]\n%y : f32[1,3,8,8] = RotaryEmbedding(%x, %x, %x, %p)\n",
     "type: RotaryEmbedding does not take i32 (input 3); it takes i64"},
    {X4 "%y : f32[1,3,8,8] = ScatterND(%x, %i, %x) {reduction=\"none\"}\n", ""},
    {X4 "%y : f32[1,3,8,8] = ScatterND(%x, %i, %x) {reduction=\"add\"}\n",
     "attr: ScatterND with reduction = \"add\" is not supported; it must be none"},
    {X4_AT(24) "%y : f32[1,3,8,8] = TensorScatter(%x, %x, %w)\n", ""},
    {X4_AT(24) "%y : f32[1,3,8,8] = TensorScatter(%x, %x, %w) {axis=1}\n",
     "attr: TensorScatter with axis = 1 is not supported; it must be -2"},
    {"opset 24\ninput %x : f32[1,3,8]\n%y : f32[1,3,8] = TensorScatter(%x, %x)\n",
     "rank: TensorScatter: input 0 (past_cache) has rank 3"},
    {"opset 17\ninput %x : f32[1,100,1]\nweight %w : i64[]\nweight %h : f32[16]\n"
     "%y : f32[1,5,9,2] = STFT(%x, %w, %h)\n",
     ""},
    {"opset 17\ninput %x : f32[1,100,2]\nweight %w : i64[]\nweight %h : f32[16]\n"
     "%y : f32[1,5,9,2] = STFT(%x, %w, %h)\n",
     "shape: STFT: input 0 (signal) has dim -1 = 2; it must be 1"},
    {"opset 17\ninput %x : f32[1,100,1]\nweight %w : i64[]\ninput %h : f32[16]\n"
     "%y : f32[1,5,9,2] = STFT(%x, %w, %h)\n",
     "const: STFT: input 2 (window) must be a constant"},
    {"opset 17\ninput %x : f32[1,100,1]\ninput %w : i64[]\nweight %h : f32[16]\n"
     "%y : f32[1,5,9,2] = STFT(%x, %w, %h)\n",
     "const: STFT: input 1 (frame_step)"},
    {"opset 17\ninput %x : f32[1,100,1]\nweight %w : i64[]\n%y : f32[1,5,9,2] = STFT(%x, %w)\n",
     "attr: STFT: input 2 (window) must be given"},
    {"opset 17\n%y : f32[2] = Constant() {sparse_value=1}\n",
     "attr: Constant with attribute sparse_value"},
    {"opset 17\n%y : f32[2] = Constant() {value_string=\"a\"}\n",
     "attr: Constant with attribute value_string"},
    {"opset 17\n%y : f32[2] = Constant() {value_strings=[\"a\"]}\n",
     "attr: Constant with attribute value_strings"},
    {X4 "%y : i64[1] = Where(%x, %i, %i)\n",
     "type: Where does not take f32 (input 0); it takes bool"},
    /* whatever the operator */
    {"opset 8\ninput %x : f32[2]\n%y : f32[2] = Relu(%x)\n",
     "opset: Relu of opset 8 is not supported"},
    {"opset 26\ninput %x : f32[2]\n%y : f32[2] = Relu(%x)\n", "opset: Relu of opset 26"},
    {"opset 9\ninput %x : f32[2]\n%y : f32[2] = Relu(%x)\n", ""},
    {"input %x : f32[2]\n%y : f32[2] = Relu(%x)\n", ""},
    {X4 "%y = Relu(%x)\n",
     "type: Relu does not take a value of unknown type (output 0); it takes tensors of f32, f16"},
    {X4 "%y : seq(f32) = Relu(%x)\n", "type: Relu does not take a sequence (output 0)"},
    {X4 "%y : opt(f32) = Relu(%x)\n", "type: Relu does not take an optional (output 0)"},
    {X4 "%y : c64[2] = Relu(%x)\n", "type: Relu does not take c64 (output 0)"},
    {X4 "%y : str[2] = Identity(%x)\n", "type: Identity does not take str (output 0)"},
    {X4 "%y : f64[2] = Relu(%x)\n",
     "type: Relu does not take f64 (output 0): it would be narrowed to f32"},
    {X4 "%y : f32 = Relu(%x)\n", "rank: Relu: the rank of output 0 is not known"},
    {X4 "%y : f32[1,2,1,1,1,1,1,1,4,8] = Reshape(%x, %i)\n",
     "rank: Reshape: output 0 has rank 10; at most 8 is supported"},
    {X4 "%y : f32[1,2,1,1,1,1,4,8] = Reshape(%x, %i)\n", ""},
    /* data-dependent shapes */
    {X4 "%y : i64[4,?] = NonZero(%x)\n",
     "dds: NonZero has an output whose shape depends on the data"},
    {X4 "%y : i64[?,3] = NonMaxSuppression(%x, %x)\n", "dds: NonMaxSuppression"},
    {X4 "%y : f32[?,3,1,1] = RoiAlign(%x, %x, %i)\n", "dds: RoiAlign"},
    /* If, Loop, Scan */
    {X4 "input %c : bool[]\n%y : f32[1,3,8,8] = If(%c) {\n"
        "body then_branch\n%a : f32[1,3,8,8] = Relu(%x)\noutput %a\nend\n"
        "body else_branch\n%b : f32[1,3,8,8] = Tanh(%x)\noutput %b\nend\n}\n",
     ""},
    {X4 "input %c : bool[]\n%y : f32[1,3,8,8] = If(%c) {\n"
        "body then_branch\n%a : f32[1,3,8,8] = Relu(%x)\noutput %a\nend\n"
        "body else_branch\n%b : f32[3,8,8] = Squeeze(%x, %w)\noutput %b\nend\n}\n",
     "rank: If: output 0 has rank 4 in one branch and 3 in the other"},
    {X4 "input %c : bool[]\n%y : f32[1,3,8,8] = If(%c) {\n"
        "body then_branch\n%a : f32[1,3,8,8] = Relu(%x)\noutput %a\nend\n"
        "body else_branch\n%a : f32[1,3,8,8] = Tanh(%x)\noutput %a\nend\n}\n",
     "attr: If: both branches have an output named a; the names must differ"},
    {X4 "input %c : bool[]\n%y : f32[1,3,8,8] = If(%c) {\n"
        "body then_branch\n%a : f32[1,3,8,8] = Relu(%x)\noutput %a\nend\n"
        "body else_branch\n%d : f32[1,3,8,8] = Det(%x)\n%b : f32[1,3,8,8] = Tanh(%d)\noutput "
        "%b\nend\n}\n",
     "op: If holds d in its else_branch: Det is not supported"},
    {X4
     "input %c : bool[]\n%y : f32[1,3,8,8] = If(%c) {\n"
     "body then_branch\n%a : f32[1,3,8,8] = If(%c) {\n"
     "body then_branch\n%e : i64[4,?] = NonZero(%x)\n%f : f32[1,3,8,8] = Relu(%x)\noutput %f\nend\n"
     "body else_branch\n%g : f32[1,3,8,8] = Relu(%x)\noutput %g\nend\n}\noutput %a\nend\n"
     "body else_branch\n%b : f32[1,3,8,8] = Tanh(%x)\noutput %b\nend\n}\n",
     "dds: If holds a in its then_branch: If holds e in its then_branch: NonZero has an output"},
    {X4 "%y : f32[1,3,8,8] = If(%i) {\n"
        "body then_branch\n%a : f32[1,3,8,8] = Relu(%x)\noutput %a\nend\n"
        "body else_branch\n%b : f32[1,3,8,8] = Tanh(%x)\noutput %b\nend\n}\n",
     "type: If does not take i64 (input 0); it takes bool"},
#define LOOP(trips, scans, body)                                                                   \
    X4 "weight %t : i64[]\ninput %n : i64[]\n%y : f32[1,3,8,8]" scans " = Loop(" trips             \
       ", , %x) {\n"                                                                               \
       "body body %k : i64[] %c : bool[] %a : f32[1,3,8,8]\n" body "end\n}\n"
    {LOOP("%n", "",
          "%d : bool[] = Identity(%c)\n%b : f32[1,3,8,8] = Relu(%a)\noutput %d\noutput %b\n"),
     ""},
    {LOOP("%n", "",
          "%d : bool[] = Identity(%c)\n%b : f32[2,3,8,8] = Concat(%a, %a)\noutput %d\n"
          "output %b\n"),
     "shape: Loop: carried value 0 changes its shape from one iteration to the next"},
    {LOOP("%n", ", %s : f32[?,1,3,8,8]",
          "%d : bool[] = Identity(%c)\n%b : f32[1,3,8,8] = Relu(%a)\noutput %d\noutput %b\noutput "
          "%b\n"),
     "shape: Loop: scan output 1 has a length that is not known before run time"},
    {LOOP("%t", ", %s : f32[?,1,3,8,8]",
          "%d : bool[] = Identity(%c)\n%b : f32[1,3,8,8] = Relu(%a)\noutput %d\noutput %b\noutput "
          "%b\n"),
     ""},
    {LOOP("%t", ", %s : f32[?,1,3,8,8]",
          "%d : bool[] = Not(%c)\n%b : f32[1,3,8,8] = Relu(%a)\noutput %d\noutput %b\noutput %b\n"),
     "shape: Loop: scan output 1"}, /* may stop early */
    {LOOP("%n", ", %s : f32[5,1,3,8,8]",
          "%d : bool[] = Identity(%c)\n%b : f32[1,3,8,8] = Relu(%a)\noutput %d\noutput %b\noutput "
          "%b\n"),
     ""},
    {LOOP("%n", "",
          "%d : bool[] = Identity(%c)\n%b : f32[1,3,8,8] = Det(%a)\noutput %d\noutput %b\n"),
     "op: Loop holds b in its body: Det is not supported"},
};

static const cs_row only_10[] = {
    {X4_AT(16) "%y : f32[1,3,8,8] = GridSample(%x, %x)\n", ""},
    {"opset 20\ninput %x : f32[1,3,8,8,8]\n%y : f32[1,3,8,8,8] = GridSample(%x, %x)\n",
     "rank: GridSample: input 0 (X) has rank 5; it must be 4"},
    {"opset 16\ninput %x : bf16[1,3,8,8]\n%y : bf16[1,3,8,8] = GridSample(%x, %x)\n",
     "type: GridSample does not take bf16"},
    {X4 "%y : f32[3,8,8] = Squeeze(%x)\n", "attr: Squeeze: input 1 (axes) must be given"},
    {X4_AT(11) "%y : f32[3,8,8] = Squeeze(%x)\n", "attr: Squeeze without attribute axes"},
    {"opset 17\ninput %x : bf16[1,100,1]\nweight %w : i64[]\nweight %h : bf16[16]\n"
     "%y : bf16[1,5,9,2] = STFT(%x, %w, %h)\n",
     "type: STFT does not take bf16 (input 0); it takes f32"},
    {"opset 24\ninput %x : f32[2]\n%y : f32[2] = Relu(%x)\n", ""},
    {"opset 25\ninput %x : f32[2]\n%y : f32[2] = Relu(%x)\n",
     "opset: Relu of opset 25 is not supported; opset 9 to 24 are"},
    {"opset 24\ninput %x : f32[2]\n%y : f32[2] = Swish(%x)\n", "op: Swish is not supported"},
    {"opset 17\ninput %x : f32[1,8,2]\n%y : f32[1,8,2] = DFT(%x) {axis=-2}\n", "op: DFT"},
    {"opset 24\nweight %q : f4e2m1[8]\nweight %s : f8e8m0[8]\n%y : f32[8] = DequantizeLinear(%q, "
     "%s)\n",
     "type: DequantizeLinear does not take f8e8m0 (input 1)"},
    {"opset 17\ninput %x : f32[1,2,4,8]\n%y : f32[1,2,4,8] = TRT_Attention(%x, %x, %x)\n",
     "op: TRT_Attention is not supported"},
};

static const cs_row only_11[] = {
    {X4_AT(16) "%y : f32[1,3,8,8] = GridSample(%x, %x) {mode=\"bilinear\"}\n", ""},
    {"opset 20\ninput %x : bf16[1,3,8,8,8]\n%y : bf16[1,3,8,8,8] = GridSample(%x, %x)\n", ""},
    {"opset 20\ninput %x : f32[1,3,8]\n%y : f32[1,3,8] = GridSample(%x, %x)\n", "rank: GridSample"},
    {"opset 20\ninput %x : f32[1,3,8,8]\n%y : f32[1,3,8,8] = GridSample(%x, %x) "
     "{mode=\"lanczos\"}\n",
     "attr: GridSample with mode = \"lanczos\""},
    {X4 "%y : f32[3,8,8] = Squeeze(%x)\n", ""},
    {"opset 17\ninput %x : bf16[1,100,1]\nweight %w : i64[]\nweight %h : bf16[16]\n"
     "%y : bf16[1,5,9,2] = STFT(%x, %w, %h)\n",
     ""},
    {"opset 25\ninput %x : f32[2]\n%y : f32[2] = Swish(%x)\n", ""},
    {"opset 26\ninput %x : f32[2]\n%y : f32[2] = Swish(%x)\n", "opset: Swish of opset 26"},
    {"opset 25\ninput %q : f32[1,2,4,8]\n"
     "%y : f32[1,2,4,8] = Attention(%q, %q, %q) {left_window_size=4}\n",
     "attr: Attention with attribute left_window_size"},
    {"opset 25\ninput %q : f32[1,2,4,8]\n"
     "%y : f32[1,2,4,8] = Attention(%q, %q, %q) {right_window_size=4}\n",
     "attr: Attention with attribute right_window_size"},
    {"opset 17\ninput %x : f32[1,8,2]\n%y : f32[1,8,2] = DFT(%x) {axis=-2}\n", ""},
    {"opset 17\ninput %x : f32[1,8,2]\n%y : f32[1,8,2] = DFT(%x)\n",
     "attr: DFT with axis = 1, the default, is not supported; it must be -2"},
    {"opset 20\ninput %x : f32[1,8,2]\n%y : f32[1,8,2] = DFT(%x)\n", ""},
    {"opset 20\ninput %x : f32[1,8,2]\nweight %v-2 : i64[]\n%y : f32[1,8,2] = DFT(%x, , %v-2)\n",
     ""},
    {"opset 20\ninput %x : f32[1,8,2]\nweight %v1 : i64[]\n%y : f32[1,8,2] = DFT(%x, , %v1)\n",
     "attr: DFT: input 2 (axis) = 1 is not supported; it must be -2"},
    {"opset 20\ninput %x : f32[1,8,1]\n%y : f32[1,8,2] = DFT(%x)\n", "shape: DFT: input 0 (input)"},
    {"opset 20\ninput %x : f32[1,8,2]\n%y : f32[1,8,2] = DFT(%x) {onesided=1}\n", "attr: DFT"},
    {"opset 20\ninput %x : f32[1,8,2]\ninput %n : i64[]\n%y : f32[1,8,2] = DFT(%x, %n)\n",
     "const: DFT"},
    {"opset 24\nweight %q : f4e2m1[8]\nweight %s : f8e8m0[8]\n%y : f32[8] = DequantizeLinear(%q, "
     "%s)\n",
     ""},
    {"input %x : f32[1,2,4,8]\n%y : f32[1,2,4,8] = trt:TRT_Attention(%x, %x, %x)\n", ""},
    {"input %x : f32[4,8]\n%y : f32[4,8] = TRT_Attention(%x, %x, %x)\n",
     "rank: TRT_Attention: input 0 has rank 2; it must be 3 or 4"},
    {"input %x : f16[1,2,4,8]\n%y : f16[1,2,4,8] = TRT_QuantizedAttention(%x, %x, %x)\n", ""},
    {"input %x : f16[1,2,4,8]\ninput %i : i32[1]\n"
     "%y : f16[1,2,4,8] = TRT_KVCacheUpdate(%x, %x, %i) {axis=-2, mode=\"linear\"}\n",
     ""},
    {"input %x : f16[1,2,4,8]\ninput %i : i32[1]\n"
     "%y : f16[1,2,4,8] = TRT_KVCacheUpdate(%x, %x, %i) {mode=\"circular\"}\n",
     "attr: TRT_KVCacheUpdate with mode"},
    {"input %x : f16[1,2,4]\ninput %i : i32[1,2,4]\n%y : f16[1,2,4] = TRT_MoE(%x, %i)\n", ""},
    {"input %x : f16[2,4]\n%y : f16[2,4] = TRT_MoE(%x)\n", "rank: TRT_MoE"},
    {"input %x : f16[2,4]\n%y : f16[2,4] = DistCollective(%x)\n", ""},
};

static void test_tensorrt_restrictions(void **state)
{
    (void)state;
    cutset_target *ten = open_target("tensorrt-10.15"), *eleven = open_target("tensorrt-11");
    ROWS(ten, restrictions);
    ROWS(eleven, restrictions);
    ROWS(ten, only_10);
    ROWS(eleven, only_11);
    cutset_target_free(ten);
    cutset_target_free(eleven);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensorrt_tables),
        cmocka_unit_test(test_tensorrt_restrictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
