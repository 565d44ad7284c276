/* Type inference: sequences, bodies of If, Loop, Scan and functions, declared types that fit or
 * contradict, and memory that runs out. */
#include "failing_alloc.h"
#include "infer_check.h"

/* ---- sequences ---- */

static void test_sequences(void **state)
{
    (void)state;
    check(
        "input %a : f32[2,N]\ninput %b : f32[3,N]\ninput %i : i64[]\ninput %o : opt(f32[4])\n"
        "%s = SequenceConstruct(%a, %b)\n%e = SequenceEmpty()\n%t = SequenceInsert(%e, %a)\n"
        "%u = SequenceInsert(%t, %b)\n%x = SequenceAt(%u, %i)\n%l = SequenceLength(%u)\n"
        "%c = ConcatFromSequence(%u) {axis=0}\n%n = ConcatFromSequence(%u) {axis=-1, new_axis=1}\n"
        "%p = SplitToSequence(%a) {axis=1}\n%q = SplitToSequence(%a) {axis=1, keepdims=0}\n"
        "%op = Optional(%a)\n%g = OptionalGetElement(%o)\n%h = OptionalHasElement(%o)\n"
        "%oo = Optional(%op)\n%m = SequenceMap(%u) {\nbody body %y : ?\n%z = Transpose(%y)\noutput "
        "%z\nend\n}\n"
        "output %s\n",
        "",
        "s seq(f32[?,N])\ne seq(f32)\nt seq(f32[2,N])\nu seq(f32[?,N])\nx f32[?,N]\nl i64[]\n"
        "c f32[?,N]\nn f32[?,N,?]\np seq(f32[2,1])\nq seq(f32[2])\nop opt(f32[2,N])\ng f32[4]\n"
        "h bool[]\noo ?\nm seq(f32[N,?])");
}

/* ---- bodies ---- */

static void test_if(void **state)
{
    (void)state;
    static const char text[] =
        "input %c : bool[]\nweight %k : bool[]\ninput %a : f32[2,N]\n"
        "%x, %y, %z = If(%c) {\nbody then_branch\n%t1 = Relu(%a)\n%t2 = Shape(%a)\n%t3 = "
        "ReduceSum(%a) {keepdims=0}\n"
        "output %t1\noutput %t2\noutput %t3\nend\nbody else_branch\n%e1 = Concat(%a, %a) {axis=0}\n"
        "%e2 = Shape(%a)\n%e3 = Relu(%a)\noutput %e1\noutput %e2\noutput %e3\nend\n}\n"
        "%w = If(%k) {\nbody then_branch\n%u1 = Relu(%a)\noutput %u1\nend\nbody else_branch\n"
        "%v1 = Flatten(%a)\noutput %v1\nend\n}\noutput %x\n";
    check(text, "", "t1 f32[2,N]\ne1 f32[4,N]\nx f32[?,N]\ny i64[2]\nz f32\nw f32[2,N]");
    check(text, "k=1", "w f32[2,N]");
}

static void test_loop(void **state)
{
    (void)state;
    /* a grows, b keeps its shape, s is stacked */
    check("input %n : i64[]\ninput %c : bool[]\ninput %a : f32[1,N]\ninput %b : f32[3]\n"
          "%x, %y, %s = Loop(%n, %c, %a, %b) {\nbody body %i : ? %ci : ? %ai : ? %bi : ?\n%co = "
          "Identity(%ci)\n"
          "%ao = Concat(%ai, %a) {axis=0}\n%bo = Add(%bi, %bi)\n%so = ReduceSum(%bi) {keepdims=0}\n"
          "output %co\noutput %ao\noutput %bo\noutput %so\nend\n}\noutput %x\n",
          "", "i i64[]\nci bool[]\nai f32[?,N]\nbi f32[3]\nx f32[?,N]\ny f32[3]\ns f32[?]");
    /* the rank changes every time */
    check("input %n : i64[]\ninput %c : bool[]\ninput %a : f32[2]\nweight %ax : i64[1]\n"
          "%x = Loop(%n, %c, %a) {\nbody body %i : ? %ci : ? %ai : ?\n%co = Identity(%ci)\n%ao = "
          "Unsqueeze(%ai, %ax)\n"
          "output %co\noutput %ao\nend\n}\noutput %x\n",
          "ax=0", "x f32\nao f32");
    /* declared vectors of one for the iteration and the condition */
    check("input %n : i64[]\ninput %c : bool[1]\n%s = Loop(%n, %c) {\nbody body %i : i64[1] %ci : "
          "bool[1]\n"
          "%co = Identity(%ci)\n%so = Identity(%i)\noutput %co\noutput %so\nend\n}\noutput %s\n",
          "", "i i64[1]\nco bool[1]\ns i64[?,1]");
    /* fewer body inputs and outputs than promised, and none at all */
    check("input %n : i64[]\ninput %a : f32[2]\n%x, %y = Loop(%n, , %a, %a) {\nbody body %i : ?\n"
          "%z = Relu(%a)\noutput %z\nend\n}\n%w = Loop(%n) {\nbody body\nend\n}\noutput %x\n",
          "", "z f32[2]\nx ?\ny ?\nw ?");
}

static void test_scan(void **state)
{
    (void)state;
    check(
        "opset 9\ninput %s : f32[4]\ninput %a : f32[T,4]\ninput %b : f32[5,T]\n"
        "%x, %y, %z = Scan(%s, %a, %b) {num_scan_inputs=2, scan_input_axes=[0,1], "
        "scan_output_axes=[0,-1]} {\n"
        "body body %si : ? %ai : ? %bi : ?\n%so = Add(%si, %ai)\n%o1 = Relu(%ai)\n%o2 = Relu(%bi)\n"
        "output %so\noutput %o1\noutput %o2\nend\n}\noutput %x\n",
        "", "si f32[4]\nai f32[4]\nbi f32[5]\nx f32[4]\ny f32[T,4]\nz f32[5,T]");
    check("opset 8\ninput %s : f32[B,4]\ninput %a : f32[B,T,4]\n"
          "%x, %y = Scan(, %s, %a) {num_scan_inputs=1} {\nbody body %si : ? %ai : ?\n%so = "
          "Add(%si, %ai)\n"
          "%o1 = ReduceSum(%ai) {keepdims=0}\noutput %so\noutput %o1\nend\n}\noutput %x\n",
          "", "si f32[4]\nai f32[4]\nx f32[B,4]\ny f32[B,T]");
    check("input %a : f32[2]\n%x = Scan(%a) {num_scan_inputs=9223372036854775807} {\nbody body %i "
          ": ?\n"
          "%z = Relu(%a)\noutput %z\nend\n}\noutput %x\n",
          "", "z f32[2]\nx ?");
}

/* Every loop starts with one element again and grows: each entry into a level needs more than one
 * pass, two to the power of the depth in all if passes were not bounded. */
static void test_nested_loops(void **state)
{
    (void)state;
    enum { DEPTH = 60 };
    static char text[DEPTH * 400];
    size_t n =
        (size_t)sprintf(text, "input %%n : i64[]\ninput %%c : bool[]\ninput %%a0 : f32[1]\n");
    for (int i = 0; i < DEPTH; i++)
        n += (size_t)sprintf(
            text + n,
            "%%x%d = Loop(%%n, %%c, %%a0) {\nbody body %%i%d : ? %%c%d : ? %%a%d : ?\n"
            "%%co%d = Identity(%%c%d)\n",
            i, i + 1, i + 1, i + 1, i, i + 1);
    n += (size_t)sprintf(text + n, "%%x%d = Relu(%%a%d)\n", DEPTH, DEPTH);
    for (int i = DEPTH - 1; i >= 0; i--)
        n += (size_t)sprintf(
            text + n,
            "%%y%d = Concat(%%x%d, %%a%d) {axis=0}\noutput %%co%d\noutput %%y%d\nend\n}\n", i,
            i + 1, i + 1, i, i);
    sprintf(text + n, "output %%x0\n");
    check(text, "", "x0 f32[?]");
}

static void test_function_call(void **state)
{
    (void)state;
    cs_graph *g = read_text(
        "input %a : f32[2,N]\nweight %s : i64[2]\n%x, %y = local:F(%a, , %s) {\nbody f %p : ? %q : "
        "? %r : ?\n"
        "%u = Reshape(%p, %r)\n%v = Relu(%q)\n%w = Shape(%p)\noutput %u\noutput %w\nend\n}\n"
        "%z = ConstantOfShape(%y)\noutput %x\n");
    set_constants(g, "s=-1,2");
    for (size_t i = 0; i < g->nodes.len; i++) {
        cs_node *n = &g->nodes.at[i];
        if (n->n_body == 0) continue;
        n->flags |= CS_NODE_FUNCTION;
        g->bodies.at[n->body].attr = 0;
    }
    assert_int_equal(cs_infer(g, NULL, &err), CUTSET_OK);
    expect_types(g, "x f32[N,2]\nv ?\ny i64[2]\nz f32[2,N]");
    cs_graph_free(g);
}

static void test_unknown_operator(void **state)
{
    (void)state;
    check("input %a : f32[2]\n%x = some.domain:Relu(%a)\n%y = NoSuchOperator(%a) {\nbody b %i : ?\n"
          "%z = Relu(%a)\noutput %z\nend\n}\noutput %x\n",
          "", "x ?\ny ?\nz f32[2]");
}

/* ---- declared types ---- */

static void test_declared(void **state)
{
    (void)state;
    check("input %a : f32[2,N]\n%x : f32[2,8] = Relu(%a)\n%y : f32[?,?] = Relu(%a)\n%u : f32[3,M] "
          "= Foo(%a)\n"
          "%z = Relu(%u)\n%w : f32[2,M] = Relu(%a)\noutput %x\n",
          "", "x f32[2,8]\ny f32[2,N]\nu f32[3,M]\nz f32[3,M]\nw f32[2,N]");
}

static void test_declared_elem_contradicts(void **state)
{
    (void)state;
    cs_graph *g = read_text("input %a : f32[2,N]\n%y : i64[2,N] = Relu(%a)\noutput %y\n");
    assert_int_equal(cs_infer(g, NULL, &err), CUTSET_BAD);
    assert_string_equal(err.message,
                        "node y (Relu): y is declared i64[2,N] but the operator makes it "
                        "f32[2,N]; correct the declared type, or leave it out");
    cs_graph_free(g);
}

static void test_declared_shape_contradicts(void **state)
{
    (void)state;
    cs_graph *g =
        read_text("input %a : f32[2,3]\n%x : f32[2,4] = Relu(%a)\n%y : f32[6] = Relu(%a)\n"
                  "output %x\noutput %y\n");
    assert_int_equal(cs_infer(g, NULL, &err), CUTSET_OK);
    expect_types(g, "x f32[2,?]\ny f32[2,3]");
    assert_int_equal(g->pool->notes.len, 2);
    assert_string_equal(g->pool->notes.at[1],
                        "y is declared f32[6], inferred f32[2,3]: the inferred rank "
                        "is taken, sizes that differ are unknown");
    cs_graph_free(g);
}

/* ---- memory ---- */

static void test_failing_memory(void **state)
{
    (void)state;
    static const char text[] =
        "input %n : i64[]\ninput %c : bool[]\ninput %a : f32[1,N]\nweight %k : i64[2]\n"
        "%s = Shape(%a)\n%r = Reshape(%a, %s)\n%q = SequenceConstruct(%a)\n%y : f32[7] = Relu(%a)\n"
        "%x, %t = Loop(%n, %c, %a) {\nbody body %i : ? %ci : ? %ai : ?\n%co = Identity(%ci)\n"
        "%ao = Concat(%ai, %a) {axis=0}\n%so = Scan(%ai) {num_scan_inputs=1} {\nbody body %e : ?\n"
        "%f = Relu(%e)\noutput %f\nend\n}\noutput %co\noutput %ao\noutput %so\nend\n}\noutput %x\n";
    for (long n = 0;; n++) {
        cs_graph *g = read_text(text);
        alloc_fail_at(n);
        cutset_status status = cs_infer(g, NULL, &err);
        bool failed = alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(status, failed ? CUTSET_SYSTEM : CUTSET_OK);
        if (!failed) expect_types(g, "x f32[?,N]\nt f32[?,?,N]\nr f32[1,N]\ny f32[1,N]");
        cs_graph_free(g);
        if (!failed) break;
    }
    assert_int_equal(alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_nested_loops),
        cmocka_unit_test(test_function_call),
        cmocka_unit_test(test_unknown_operator),
        cmocka_unit_test(test_declared),
        cmocka_unit_test(test_declared_elem_contradicts),
        cmocka_unit_test(test_declared_shape_contradicts),
        cmocka_unit_test(test_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
