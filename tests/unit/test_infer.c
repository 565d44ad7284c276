/* Type inference: what each family of operators makes of ranks, sizes, constants and versions, that
 * nonsense in attributes stays harmless, and that every entry of the table can be asked. */
#include "infer_check.h"
#include "onnx/infer_ops.h"

/* ---- elementwise ---- */

static void test_broadcast(void **state)
{
    (void)state;
    check("input %a : f32[2,1,N]\ninput %b : f32[3,1]\ninput %c : f32[N]\ninput %u : f32\n"
          "input %m : f32[M]\ninput %one : f32[?]\ninput %i : i32[2]\n"
          "%x = Add(%a, %b)\n%y = Mul(%a, %c)\n%z = Sub(%a, %u)\n%v = Add(%c, %m)\n"
          "%w = Div(%one, %b)\n%p = Pow(%a, %i)\n%l = Less(%a, %b)\n%s = Sum(%a, %b, %c)\n"
          "%r = PRelu(%a, %c)\n%bad = Add(%i, %b)\noutput %x\n",
          "",
          "x f32[2,3,N]\ny f32[2,1,N]\nz f32\nv f32[?]\nw f32[3,?]\np f32[2,1,2]\nl bool[2,3,N]\n"
          "s f32[2,3,N]\nr f32[2,1,N]");
}

static void test_old_broadcast(void **state)
{
    (void)state;
    check("opset 6\ninput %a : f32[2,3,4]\ninput %b : f32[3]\n"
          "%x = Add(%a, %b) {broadcast=1, axis=1}\n%e = Equal(%a, %b) {broadcast=1, axis=1}\n"
          "output %x\n",
          "", "x f32[2,3,4]\ne bool[2,3,4]");
    check("opset 7\ninput %a : f32[2,3,4]\ninput %b : f32[3]\n%x = Add(%a, %b)\noutput %x\n", "",
          "x f32[2,3,?]");
}

static void test_casts(void **state)
{
    (void)state;
    check("opset 5\ninput %a : f32[N]\n%x = Cast(%a) {to=\"INT64\"}\noutput %x\n", "", "x i64[N]");
    check(
        "input %a : f32[N]\ninput %b : u8\n%x = Cast(%a) {to=10}\n%y = CastLike(%a, %b)\n"
        "%n = Cast(%a) {to=999}\n%m = Cast(%a) {to=-9223372036854775808}\n%k = BitCast(%a) {to=6}\n"
        "%e = EyeLike(%a) {dtype=11}\n%r = RandomNormalLike(%a)\n%q = IsNaN(%a)\noutput %x\n",
        "", "x f16[N]\ny u8[N]\nn ?\nm ?\nk i32[N]\ne f64[N]\nr f32[N]\nq bool[N]");
}

static void test_dropout_versions(void **state)
{
    (void)state;
    check("opset 7\ninput %a : f16[N,2]\n%x, %m = Dropout(%a)\noutput %x\n", "",
          "x f16[N,2]\nm f16[N,2]");
    check("opset 12\ninput %a : f16[N,2]\n%x, %m = Dropout(%a)\noutput %x\n", "",
          "x f16[N,2]\nm bool[N,2]");
}

/* ---- shapes ---- */

static void test_reshape(void **state)
{
    (void)state;
    check("input %a : f32[N,6,4]\nweight %s : i64[3]\nweight %t : i64[2]\ninput %d : i64[5]\n"
          "input %e : i64[?]\n%x = Reshape(%a, %s)\n%y = Reshape(%a, %t)\n%z = Reshape(%a, %d)\n"
          "%u = Reshape(%a, %e)\noutput %x\n",
          "s=0,-1,8;t=-1,24", "x f32[N,3,8]\ny f32[N,24]\nz f32[?,?,?,?,?]\nu f32");
    check("input %a : f32[2,3]\nweight %s : i64[3]\n%x = Reshape(%a, %s)\n"
          "%y = Reshape(%a, %s) {allowzero=1}\noutput %x\n",
          "s=0,4,5", "x f32[2,4,5]\ny f32[0,4,5]");
    check("opset 4\ninput %a : f32[2,3]\n%x = Reshape(%a) {shape=[-1]}\noutput %x\n", "",
          "x f32[6]");
    /* nonsense: two holes, no divisor, negative, overflow */
    check("input %a : f32[2,3]\nweight %s : i64[2]\nweight %t : i64[2]\nweight %u : i64[2]\n"
          "%x = Reshape(%a, %s)\n%y = Reshape(%a, %t)\n%z = Reshape(%a, %u)\noutput %x\n",
          "s=-1,-1;t=-1,4;u=-7,9223372036854775807",
          "x f32[?,?]\ny f32[?,4]\nz f32[?,9223372036854775807]");
}

static void test_shape_chain(void **state)
{
    (void)state;
    check("input %a : f32[N,3,H,W]\nweight %zero : i64[]\nweight %last : i64[]\nweight %axes : "
          "i64[1]\n"
          "weight %minus : i64[1]\n"
          "%s = Shape(%a)\n%n = Gather(%s, %zero)\n%w = Gather(%s, %last)\n"
          "%n1 = Unsqueeze(%n, %axes)\n%w1 = Unsqueeze(%w, %axes)\n%to = Concat(%n1, %minus, %w1) "
          "{axis=0}\n"
          "%x = Reshape(%a, %to)\n%c = ConstantOfShape(%to)\n%t = Cast(%to) {to=6}\n"
          "%u = Slice(%s, %axes, %axes2)\nweight %axes2 : i64[1]\n%y = Expand(%a2, %u)\n"
          "input %a2 : f32[1,1]\noutput %x\n",
          "zero=0;last=-1;axes=0;minus=-1;axes2=2",
          "x f32[N,?,W]\nc f32[N,?,W]\ny f32[N,3]\nt i32[3]");
    /* what exporters make of expand(-1, ...) */
    check("input %a : f32[N,1]\ninput %b : f32[N,5]\nweight %one : i64[2]\nweight %minus : i64[]\n"
          "%s = Shape(%b)\n%m = Mul(%one, %minus)\n%e = Equal(%s, %m)\n%w = Where(%e, %one, %s)\n"
          "%x = Expand(%a, %w)\noutput %x\n",
          "one=1,1;minus=-1", "x f32[N,5]");
    check("input %a : f32[2,3,N]\n%s = Shape(%a) {start=-2, end=9}\n%z = Size(%a)\n"
          "%x = ConstantOfShape(%s)\n%p, %q = Split(%s)\n%y = ConstantOfShape(%q)\noutput %x\n",
          "", "s i64[2]\nz i64[]\nx f32[3,N]\ny f32[N]");
}

static void test_squeeze(void **state)
{
    (void)state;
    check("opset 11\ninput %a : f32[1,N,1]\n%x = Squeeze(%a) {axes=[0]}\n%y = Unsqueeze(%a) "
          "{axes=[0,-1]}\n"
          "%z = Squeeze(%a)\n%bad = Squeeze(%a) {axes=[7]}\noutput %x\n",
          "", "x f32[N,1]\ny f32[1,1,N,1,1]\nz f32\nbad f32");
    check("input %a : f32[1,N,1]\ninput %k : i64[2]\nweight %w : i64[2]\ninput %u : f32\n"
          "%x = Squeeze(%a, %k)\n%y = Unsqueeze(%a, %k)\n%z = Squeeze(%a, %w)\n%v = Unsqueeze(%u, "
          "%w)\n"
          "%d = Unsqueeze(%a, %w2)\nweight %w2 : i64[2]\noutput %x\n",
          "w=0,-1;w2=1,1", "x f32[?]\ny f32[?,?,?,?,?]\nz f32[N]\nv f32\nd f32");
    check("input %a : f32[1,2,1,3]\n%x = Squeeze(%a)\noutput %x\n", "", "x f32[2,3]");
}

static void test_transpose(void **state)
{
    (void)state;
    check("input %a : f32[A,B,C]\ninput %u : f32\n%x = Transpose(%a)\n%y = Transpose(%a) "
          "{perm=[1,2,0]}\n"
          "%z = Transpose(%a) {perm=[0,0,1]}\n%v = Transpose(%u) {perm=[1,0]}\n"
          "%w = Transpose(%a) {perm=[0,1]}\noutput %x\n",
          "", "x f32[C,B,A]\ny f32[B,C,A]\nz f32[?,?,?]\nv f32[?,?]\nw f32[?,?,?]");
}

static void test_slice(void **state)
{
    (void)state;
    check("opset 9\ninput %a : f32[10,N]\n%x = Slice(%a) {starts=[1], ends=[-1]}\n"
          "%y = Slice(%a) {starts=[0], ends=[2147483647], axes=[1]}\noutput %x\n",
          "", "x f32[8,N]\ny f32[10,N]");
    check("input %a : f32[10,N]\nweight %s : i64[2]\nweight %e : i64[2]\nweight %k : i64[2]\n"
          "weight %p : i64[2]\ninput %d : i64[1]\n%x = Slice(%a, %s, %e, %k, %p)\n"
          "%y = Slice(%a, %d, %d)\n%z = Slice(%a, %d, %d, %f)\nweight %f : i64[1]\noutput %x\n",
          "s=-1,0;e=-9223372036854775808,5;k=0,1;p=-3,1;f=1",
          "x f32[4,?]\ny f32[?,N]\nz f32[10,?]");
    check("input %a : f32[10,4]\nweight %s : i64[1]\nweight %e : i64[1]\nweight %k : i64[1]\n"
          "weight %p : i64[1]\nweight %q : i64[1]\n%x = Slice(%a, %s, %e, %k, %p)\n"
          "%y = Slice(%a, %s, %e, %k, %q)\noutput %x\n",
          "s=99;e=-99;k=0;p=-9223372036854775808;q=0", "x f32[1,4]\ny f32[?,4]");
}

static void test_split_concat(void **state)
{
    (void)state;
    check("opset 18\ninput %a : f32[7,N]\nweight %s : i64[3]\n%x, %y, %z = Split(%a) "
          "{num_outputs=3}\n"
          "%p, _, %q = Split(%a, %s)\n%u, %v = Split(%a) {axis=1}\n%c = Concat(%p, %q) {axis=0}\n"
          "%d = Concat(%a, %a) {axis=-1}\n%e = Concat(%a, %a) {axis=5}\noutput %x\n",
          "s=1,2,4",
          "x f32[3,N]\ny f32[3,N]\nz f32[1,N]\np f32[1,N]\nq f32[4,N]\nu f32[7,?]\nc f32[5,N]\n"
          "d f32[7,?]\ne f32[?,?]");
    check("opset 11\ninput %a : f32[7,2]\n%x, %y = Split(%a) {split=[3,4], axis=0}\n"
          "%z = Concat(%a, %b) {axis=0}\ninput %b : f32[?,?]\noutput %x\n",
          "", "x f32[3,2]\ny f32[4,2]\nz f32[?,2]");
}

static void test_tile_pad_expand(void **state)
{
    (void)state;
    check("input %a : f32[2,N]\nweight %r : i64[2]\nweight %p : i64[4]\ninput %d : i64[4]\n"
          "weight %pa : i64[2]\nweight %ax : i64[1]\ninput %u : f32\n"
          "%x = Tile(%a, %r)\n%y = Pad(%a, %p)\n%z = Pad(%a, %d)\n%w = Pad(%a, %pa, , %ax)\n"
          "%v = Pad(%u, %d)\n%e = Expand(%a, %d)\noutput %x\n",
          "r=3,1;p=1,0,-2,0;pa=1,1;ax=-2",
          "x f32[6,N]\ny f32[1,N]\nz f32[?,?]\nw f32[4,N]\nv f32[?,?]\ne f32[?,?,2,?]");
    check("opset 10\ninput %a : f32[2,3]\n%x = Pad(%a) {pads=[0,1,0,1]}\n%y = Pad(%a) {pads=[1]}\n"
          "output %x\n",
          "", "x f32[2,5]\ny f32[?,?]");
}

static void test_resize(void **state)
{
    (void)state;
    check("input %a : f32[1,3,5,W]\nweight %s : f32[4]\nweight %z : i64[4]\ninput %d : i64[4]\n"
          "%x = Resize(%a, , %s)\n%y = Resize(%a, , , %z)\n%u = Resize(%a, , , %d)\n"
          "weight %s2 : f32[2]\n%v = Resize(%a, , %s2) {axes=[2,3]}\noutput %x\n",
          "s=1,1,2.5,2;z=1,3,7,9;s2=2,1",
          "x f32[1,3,12,?]\ny f32[1,3,7,9]\nu f32[?,?,?,?]\nv f32[1,3,10,W]");
    check("opset 7\ninput %a : f32[1,3,5,4]\n%x = Upsample(%a) {scales=[1.0,1.0,2.0,2.0]}\noutput "
          "%x\n",
          "", "x f32[1,3,10,8]");
    check(
        "opset 9\ninput %a : f32[1,3,5,4]\nweight %s : f32[4]\n%x = Upsample(%a, %s)\noutput %x\n",
        "s=1,1,3,nan", "x f32[1,3,15,?]");
}

/* ---- reductions, picking ---- */

static void test_reduce(void **state)
{
    (void)state;
    check("opset 12\ninput %a : f32[2,N,4]\n%x = ReduceSum(%a) {axes=[-1]}\n%y = ReduceSum(%a) "
          "{keepdims=0}\n"
          "%z = ReduceMean(%a) {axes=[0,2], keepdims=0}\n%w = ReduceMax(%a)\noutput %x\n",
          "", "x f32[2,N,1]\ny f32[]\nz f32[N]\nw f32[1,1,1]");
    check(
        "input %a : f32[2,N,4]\nweight %k : i64[1]\nweight %none : i64[0]\ninput %d : i64[2]\n"
        "input %e : i64[?]\ninput %u : f32\n%x = ReduceSum(%a, %k) {keepdims=0}\n"
        "%y = ReduceSum(%a, %d) {keepdims=0}\n%z = ReduceSum(%a, %d)\n%v = ReduceSum(%a, %e) "
        "{keepdims=0}\n"
        "%w = ReduceSum(%a, %none)\n%n = ReduceSum(%a, %none) {noop_with_empty_axes=1}\n"
        "%m = ReduceSum(%a) {noop_with_empty_axes=1, keepdims=0}\n%s = ReduceSum(%u) {keepdims=0}\n"
        "%bad = ReduceSum(%a, %b)\nweight %b : i64[1]\noutput %x\n",
        "k=1;b=9",
        "x f32[2,4]\ny f32[?]\nz f32[?,?,?]\nv f32\nw f32[1,1,1]\nn f32[2,N,4]\nm f32[2,N,4]\n"
        "s f32[]\nbad f32");
    check("input %a : f32[2,N,4]\n%x = ArgMax(%a) {axis=1}\n%y = ArgMin(%a) {axis=-1, keepdims=0}\n"
          "%z = ArgMax(%a) {axis=3}\noutput %x\n",
          "", "x i64[2,1,4]\ny i64[2,N]\nz i64");
}

static void test_pick(void **state)
{
    (void)state;
    check(
        "input %a : f32[5,N,4]\ninput %i : i64[2,3]\ninput %u : i64\nweight %k : i64[1]\ninput %d "
        ": i64[1]\n"
        "input %v : f16[2]\n%g = Gather(%a, %i) {axis=1}\n%ge = GatherElements(%a, %i)\n"
        "%gn = GatherND(%a, %i2)\ninput %i2 : i64[7,2]\n%gu = Gather(%a, %u)\n%s = ScatterND(%a, "
        "%i, %a)\n"
        "%t, %ti = TopK(%a, %k)\n%td, _ = TopK(%a, %d)\n%o = OneHot(%i, %k, %v)\n%n = NonZero(%a)\n"
        "%c = Compress(%a, %b)\n%ca = Compress(%a, %b) {axis=0}\ninput %b : bool[5]\n"
        "%q, %qi, _, %qc = Unique(%a)\n%nms = NonMaxSuppression(%a, %a)\noutput %g\n",
        "k=3",
        "g f32[5,2,3,4]\nge f32[2,3]\ngn f32[7,4]\ngu f32\ns f32[5,N,4]\nt f32[5,N,3]\nti "
        "i64[5,N,3]\n"
        "td f32[5,N,?]\no f16[2,3,3]\nn i64[3,?]\nc f32[?]\nca f32[?,N,4]\nq f32[?]\nqi i64[?]\n"
        "qc i64[?]\nnms i64[?,3]");
}

static void test_einsum(void **state)
{
    (void)state;
    check(
        "input %a : f32[B,2,3]\ninput %b : f32[B,3,4]\ninput %u : f32\n"
        "%x = Einsum(%a, %b) {equation=\"bij, bjk -> bik\"}\n%y = Einsum(%a, %b) "
        "{equation=\"bij,bjk\"}\n"
        "%z = Einsum(%a) {equation=\"...i->...\"}\n%w = Einsum(%u, %b) {equation=\"ij,bjk->ki\"}\n"
        "%bad = Einsum(%a) {equation=\"ij,jk->ik\"}\n%odd = Einsum(%a) {equation=\"i$j\"}\noutput "
        "%x\n",
        "", "x f32[B,2,4]\ny f32[2,4]\nz f32[B,2]\nw f32[4,?]\nbad f32\nodd f32");
}

/* ---- layers ---- */

static void test_conv(void **state)
{
    (void)state;
    check("input %a : f32[N,3,224,W]\nweight %w : f32[64,3,7,7]\n"
          "%x = Conv(%a, %w) {strides=[2,2], pads=[3,3,3,3]}\n%y = Conv(%a, %w) {pads=[3,3,3,3]}\n"
          "%z = Conv(%a, %w) {auto_pad=\"SAME_UPPER\", strides=[2,1]}\n"
          "%m, %i = MaxPool(%x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\n"
          "%g = GlobalAveragePool(%x)\n%t = ConvTranspose(%x, %w2) {strides=[2,2], group=2}\n"
          "weight %w2 : f32[64,5,2,2]\noutput %x\n",
          "",
          "x f32[N,64,112,?]\ny f32[N,64,224,W]\nz f32[N,64,112,W]\nm f32[N,64,56,?]\ni "
          "i64[N,64,56,?]\n"
          "g f32[N,64,1,1]\nt f32[N,10,224,?]");
    /* nonsense */
    check("input %a : f32[1,3,8,8]\nweight %w : f32[4,3,3,3]\ninput %u : f32\n"
          "%z = Conv(%a, %w) {strides=[0,1]}\n%l = Conv(%a, %w) {strides=[1]}\n"
          "%o = Conv(%a, %w) {pads=[0,9223372036854775807,0,1]}\n%s = Conv(%a, %w) "
          "{dilations=[9,9]}\n"
          "%k = MaxPool(%a) {kernel_shape=[-1,2]}\n%n = MaxPool(%a)\n%v = Conv(%u, %w)\n"
          "%q = AveragePool(%a) {kernel_shape=[2,2], auto_pad=\"WHAT\"}\noutput %z\n",
          "",
          "z f32[1,4,?,?]\nl f32[1,4,?,?]\no f32[1,4,?,?]\ns f32[1,4,?,?]\nk f32[1,3,?,?]\nn "
          "f32[1,3,?,?]\n"
          "v f32[?,?,?,?]\nq f32[1,3,?,?]");
}

static void test_matrix(void **state)
{
    (void)state;
    check("input %a : f32[B,2,3]\ninput %b : f32[3,4]\ninput %v : f32[3]\ninput %u : f32\n"
          "%x = MatMul(%a, %b)\n%y = MatMul(%a, %v)\n%z = MatMul(%v, %v)\n%w = MatMul(%a, %u)\n"
          "%g = Gemm(%b, %c) {transA=1, transB=1}\ninput %c : f32[5,3]\n"
          "%i = MatMulInteger(%q, %q)\ninput %q : u8[4,4]\n%f = Flatten(%a) {axis=2}\noutput %x\n",
          "", "x f32[B,2,4]\ny f32[B,2]\nz f32[]\nw f32\ng f32[4,5]\ni i32[4,4]\nf f32[?,3]");
}

static void test_norm_rnn(void **state)
{
    (void)state;
    check("opset 14\ninput %a : f16[N,C,4]\ninput %s : f16[C]\ninput %m : f32[C]\ninput %x : "
          "f32[T,B,8]\n"
          "weight %w : f32[2,64,8]\nweight %r : f32[2,64,16]\n"
          "%y, %rm, %rv = BatchNormalization(%a, %s, %s, %m, %m) {training_mode=1}\n"
          "%l, %mean, %inv = LayerNormalization(%a, %s) {axis=1}\n"
          "%o, %h, %c = LSTM(%x, %w, %r) {direction=\"bidirectional\", hidden_size=16}\n"
          "_, %h2 = GRU(%x, %w, %r) {layout=1}\noutput %y\n",
          "",
          "y f16[N,C,4]\nrm f32[C]\nrv f32[C]\nl f16[N,C,4]\nmean f32[N,1,1]\ninv f32[N,1,1]\n"
          "o f32[T,2,B,16]\nh f32[2,B,16]\nc f32[2,B,16]\nh2 f32[T,1,16]");
}

static void test_attention(void **state)
{
    (void)state;
    check("input %q : f16[B,4,S,8]\ninput %k : f16[B,2,L,8]\ninput %v : f32[B,2,L,6]\ninput %p : "
          "f16[B,2,P,8]\n"
          "input %q3 : f16[B,S,32]\n%y, %pk, %pv, %qk = Attention(%q, %k, %v)\n"
          "%z = Attention(%q3, %k, %v) {q_num_heads=4, kv_num_heads=2}\n"
          "_, %ck = Attention(%q, %k, %v, , %p, %p)\n%u, _ = Attention(%w, %k, %v)\ninput %w : "
          "f16\noutput %y\n",
          "",
          "y f16[B,4,S,6]\npk f16[B,2,L,8]\npv f32[B,2,L,6]\nqk f16[B,4,S,L]\nz f16[B,S,24]\n"
          "ck f16[B,2,?,8]\nu f16");
    check("input %q : f32[2,4,3,8]\n%y = ai.onnx.preview:FlexAttention(%q, %q, %q) {\n"
          "body score_mod %s : ?\n%t = Relu(%s)\noutput %t\nend\n}\noutput %y\n",
          "", "y f32[2,4,3,8]\nt f32[2,4,3,3]");
}

static void test_quantised(void **state)
{
    (void)state;
    check("input %a : f32[N,4]\ninput %s : f16\ninput %z : i8\ninput %q : i8[N,4]\n"
          "%x = QuantizeLinear(%a, %s)\n%y = QuantizeLinear(%a, %s, %z)\n"
          "%w = QuantizeLinear(%a, %s) {output_dtype=22}\n%d = DequantizeLinear(%q, %s)\n"
          "%e = DequantizeLinear(%q, %s) {output_dtype=1}\n%f, %fs, %fz = "
          "DynamicQuantizeLinear(%a)\noutput %x\n",
          "",
          "x u8[N,4]\ny i8[N,4]\nw i4[N,4]\nd f16[N,4]\ne f32[N,4]\nf u8[N,4]\nfs f32[]\nfz u8[]");
    check("input %a : u8[2,3]\ninput %s : f32\ninput %z : u8\n"
          "%x = com.microsoft:QLinearAdd(%a, %s, %z, %b, %s, %z, %s, %z)\ninput %b : u8[5,1,3]\n"
          "%g = com.microsoft:QGemm(%a, %s, %z, %c, %s, %z)\ninput %c : u8[3,7]\n"
          "%c2 = com.microsoft:QLinearConcat(%s, %z, %a, %s, %z, %a, %s, %z) {axis=0}\n"
          "%n = com.microsoft:MatMulNBits(%f, %c, %c) {K=3, N=9}\ninput %f : f16[4,3]\noutput %x\n",
          "", "x u8[5,2,3]\ng f32[2,7]\nc2 u8[4,3]\nn f16[4,9]");
}

/* ---- the table ---- */

static const cs_family *const families[] = {
    &cs_infer_math, &cs_infer_shape,     &cs_infer_index, &cs_infer_nn,    &cs_infer_matrix,
    &cs_infer_norm, &cs_infer_attention, &cs_infer_quant, &cs_infer_image, &cs_infer_text,
    &cs_infer_seq,  &cs_infer_flow,      &cs_infer_ml,    &cs_infer_ms};

static void test_every_entry(void **state)
{
    (void)state;
    static const char *const domains[] = {"",
                                          "",
                                          "ai.onnx.ml:",
                                          "ai.onnx.preview:",
                                          "ai.onnx.training:",
                                          "com.microsoft:",
                                          "com.ms.internal.nhwc:",
                                          "com.microsoft.nchwc:"};
    static const char *const types[] = {"?", "f32", "f32[2,N,?,4]", "f32[]", "i64[3]"};
    size_t n_entries = 0;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        for (size_t e = 0; e < families[f]->len; e++, n_entries++) {
            const cs_entry *entry = &families[f]->at[e];
            for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
                char text[400];
                snprintf(text, sizeof text,
                         "input %%a : %s\n%%x = %s%s()\n%%y, %%z = %s%s(%%a)\n"
                         "%%p, %%q, %%r, %%s = %s%s(%%a, %%a, %%a, %%a, %%a)\noutput %%x\n",
                         types[k], domains[entry->domain], entry->name, domains[entry->domain],
                         entry->name, domains[entry->domain], entry->name);
                check(text, "", "");
            }
            for (size_t h = 0; h <= f; h++)
                for (size_t o = 0; o < (h == f ? e : families[h]->len); o++)
                    if (families[h]->at[o].domain == entry->domain &&
                        strcmp(families[h]->at[o].name, entry->name) == 0)
                        fail_msg("%s stands twice", entry->name);
        }
    }
    assert_true(n_entries > 350);
}

static void test_long_chain(void **state)
{
    (void)state;
    enum { N = 300000 };
    char *text = malloc((size_t)N * 40 + 100);
    size_t n = (size_t)sprintf(text, "input %%x0 : f32[2,N]\n");
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(text + n, "%%x%d = %s(%%x%d)\n", i + 1, i % 3 ? "Relu" : "Transpose",
                             i);
    sprintf(text + n, "output %%x%d\n", N);
    check(text, "", "x300000 f32[2,N]\nx299998 f32[2,N]\nx1 f32[N,2]");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast),       cmocka_unit_test(test_old_broadcast),
        cmocka_unit_test(test_casts),           cmocka_unit_test(test_dropout_versions),
        cmocka_unit_test(test_reshape),         cmocka_unit_test(test_shape_chain),
        cmocka_unit_test(test_squeeze),         cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_slice),           cmocka_unit_test(test_split_concat),
        cmocka_unit_test(test_tile_pad_expand), cmocka_unit_test(test_resize),
        cmocka_unit_test(test_reduce),          cmocka_unit_test(test_pick),
        cmocka_unit_test(test_einsum),          cmocka_unit_test(test_conv),
        cmocka_unit_test(test_matrix),          cmocka_unit_test(test_norm_rnn),
        cmocka_unit_test(test_attention),       cmocka_unit_test(test_quantised),
        cmocka_unit_test(test_every_entry),     cmocka_unit_test(test_long_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
