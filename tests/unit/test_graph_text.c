/* The text form: every element of the grammar, captures, ties, both ways; size and memory. */
#include "failing_alloc.h"

#include "graph_text.h"

#include <math.h>

/* ---- elements ---- */

static const char example[] =
    "graph NAME\n"
    "input  %x : f32[1,3,224,224]\n"
    "weight %w : f32[64,3,7,7]                     # bytes from dims and element size\n"
    "weight %w2 : f32[64,3,7,7] = %w               # same storage as %w (tied)\n"
    "weight %max : f32[]\n"
    "%y : f32[1,64,112,112] = Conv(%x, %w) {strides=[2,2], auto_pad=\"VALID\"}\n"
    "%a : f32[4], %b : f32[4] = Split(%y)          # several outputs\n"
    "%z = Relu(%y) @host                           # type unknown; allowed targets\n"
    "%c = Clip(%z, , %max)                         # an absent input\n"
    "%q : f32[8] = com.microsoft:Gelu(%z) @acc,host\n"
    "%r : f32[8] = Add(%q, %q) !writes(%q)         # effect: mutates what %q names\n"
    "() = Print(%r) !effect                        # no outputs, side effect\n"
    "order %y -> $6                                # order edge: node of %y before node 6\n"
    "group fused1 { %y %z }                        # atom\n"
    "output %r\n";

static void the_example(void **state)
{
    (void)state;
    cs_graph *g = read_text(example);
    cs_pool *p = g->pool;
    assert_true(cs_span_is(cs_name(p, g->name), "NAME"));
    assert_int_equal(g->opsets.len, 0);
    assert_int_equal(g->nodes.len, 7);
    assert_int_equal(g->storages.len, 2);
    assert_int_equal(g->storages.at[0].bytes, 37632);
    assert_int_equal(g->storages.at[1].bytes, 4);
    assert_int_equal(g->storages.at[0].elem, CS_F32);
    assert_int_equal(g->values.at[1].storage, g->values.at[2].storage);
    const cs_node *conv = &g->nodes.at[0];
    assert_true(cs_span_is(cs_name(p, conv->op), "Conv"));
    assert_int_equal(conv->domain, 0);
    assert_int_equal(conv->offset, strstr(example, "%y : f32") - example);
    const cs_attr *strides = cs_node_attr(g, conv, "strides");
    assert_int_equal(strides->kind, CS_ATTR_INTS);
    assert_true(strides->len == 2 && strides->ints[0] == 2 && strides->ints[1] == 2);
    const cs_attr *pad = cs_node_attr(g, conv, "auto_pad");
    assert_int_equal(pad->kind, CS_ATTR_STRING);
    assert_true(cs_span_is((cs_span){pad->s, pad->len}, "VALID"));
    assert_int_equal(g->nodes.at[1].n_out, 2);
    assert_int_equal(g->nodes.at[2].n_allow, 1);
    assert_int_equal(cs_node_arg(g, &g->nodes.at[3], 1), CS_NONE);
    assert_int_equal(g->nodes.at[3].n_arg, 3);
    assert_true(cs_span_is(cs_name(p, g->nodes.at[4].domain), "com.microsoft"));
    assert_int_equal(g->nodes.at[4].n_allow, 2);
    assert_int_equal(g->nodes.at[5].n_write, 1);
    assert_int_equal(g->nodes.at[6].flags, CS_NODE_EFFECT);
    assert_int_equal(g->nodes.at[6].n_out, 0);
    assert_int_equal(g->n_given, 1);
    assert_true(g->order.at[0].from == 0 && g->order.at[0].to == 6);
    assert_int_equal(g->groups.len, 1);
    assert_true(g->members.at[0] == 0 && g->members.at[1] == 2);
    assert_int_equal(g->outputs.len, 1);
    cs_graph_free(g);
}

static void elements(void **state)
{
    (void)state;
    becomes("", "");
    becomes("# nothing\n\n   \t# but comments\n", "");
    becomes("\xef\xbb\xbf# a mark\ngraph g", "graph g\n");
    becomes("graph g\r\ninput %x : f32\r\n\r\noutput %x\r\n",
            "graph g\ninput %x : f32\noutput %x\n");
    same("graph \"a name\"\n");
    same("opset 17\n");
    same("opset 17 com.microsoft:1 ai.onnx.ml:3\n");
    same("opset 0 com.microsoft:1\n");
    same("opset 9223372036854775807\n%y = Op()\n");
    becomes("opset 0 ai.onnx:12 \"x y\":2", "opset 12 \"x y\":2\n");
    same("input %x : ?\ninput %y : seq(f32[N])\noutput %x\noutput %x\n");
    same("weight %w : i4[3]\nweight %s : str[2]\nweight %0 : f32[0]\noutput %w\n");
    same("%y = Op()\n");
    same("%y = Op(, )\n");
    becomes("%y=Op( , , )", "%y = Op(, , )\n");
    becomes("input %x:f32\n%y=Op(%x,)", "input %x : f32\n%y = Op(%x, )\n");
    same("_ = Op()\n");
    same("%a : f32[1], _, %b, _ = Op()\n");
    becomes("_:f32[1] , %b : opt(?)=Op()", "_, %b : opt(?) = Op()\n"); /* the type goes */
    same("() = Op()\n");
    becomes("( ) = Op()\n", "() = Op()\n");
    same("%y = a.b/c-d_e:\"my op\"()\n");
    becomes("%y = ai.onnx : Relu()\n%z = \"\":Op()\n", "%y = Relu()\n%z = Op()\n");
    same("%y = Op() @host\n");
    same("%y = Op() @acc,host,\"a target\"\n");
    becomes("%y = Op()@acc , host\n", "%y = Op() @acc,host\n");
    same("%y = Op() !effect\n");
    same("input %x : ?\n%y = Op() {a=1} @acc !effect !writes(%x, %y)\n");
    becomes("input %x : ?\n%y = Op() ! writes ( %x ) !effect !writes(%y) !effect\n",
            "input %x : ?\n%y = Op() !effect !writes(%x, %y)\n");
    same("%a = Op()\n() = Op()\n%b = Op()\norder %a -> $1\norder $1 -> %b\n");
    same("%a, %b = Op()\n%c = Op()\n_ = Op()\ngroup g { %a %c $2 }\ngroup g { %a }\n");
    becomes("%a, %b = Op()\n%c = Op()\ngroup \"a b\"{%b $0 %c}\norder %b ->%c\n",
            "%a, %b = Op()\n%c = Op()\norder %a -> %c\ngroup \"a b\" { %a %a %c }\n");
    becomes("output %y  # last comes first\norder %y -> %z\n%y = Op(%z2)\n%z = Op()\n"
            "input %z2 : f32\nopset 3\ngraph g\n",
            "graph g\nopset 3\ninput %z2 : f32\n%y = Op(%z2)\n%z = Op()\norder %y -> %z\n"
            "output %y\n");
}

static void names(void **state)
{
    (void)state;
    same("%A-z.0/_ = Op()\noutput %A-z.0/_\n");
    same("%\"a b\" = Op()\noutput %\"a b\"\n");
    same("%\"\\\"\\\\\\x00\\x1f\\x7f\\xff#\" = Op()\n");
    same("%\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\" = Op()\n"); /* UTF-8 stays as it is */
    becomes("%\"plain\" = \"Op\"() @\"host\"\noutput %plain\n",
            "%plain = Op() @host\noutput %plain\n");
    becomes("%\"\\x41\" = Op()\noutput %A\n", "%A = Op()\noutput %A\n");
    becomes("%\"a\tb\" = Op()\n", "%\"a\\x09b\" = Op()\n");
    becomes("%\"\xff\xc3\" = Op()\n", "%\"\\xff\\xc3\" = Op()\n");
    same("%graph = Op()\n%end = body()\n%_ = order()\n");
}

static void attributes(void **state)
{
    (void)state;
    same("%y = Op() {a=1, b=-1, c=9223372036854775807, d=-9223372036854775808}\n");
    same("%y = Op() {a=1.0, b=-0.5, c=1e-45, d=3.4028235e+38, e=nan, f=inf, g=-inf, h=-0.0}\n");
    becomes("%y = Op() {a=1e0, b=1E2, c=+.5, d=0.1000000000000000000001, e=+3}\n",
            "%y = Op() {a=1.0, b=100.0, c=0.5, d=0.1, e=3}\n");
    same("%y = Op() {a=\"\", b=\"x\\\"\\\\\\x00\", c=\"\xc3\xa9\"}\n");
    same("%y = Op() {a=[], b=[f:], c=[s:], d=[1,-2], e=[1.0,nan], f=[\"a\",\"\\x01\"]}\n");
    becomes("%y = Op() { a = [ 1 , 2 ] , b = [ f: ] }\n", "%y = Op() {a=[1,2], b=[f:]}\n");
    same("%y = Op() {a=tensor(f32[3]), b=type(seq(f32[N])), c=tensor(?), d=tensor(i64)}\n");
    same("%y = Op() {a=[tensor(f32[2])], b=[type(?)], c=[type(seq(f32)),type(i64[])]}\n");
    becomes("%y = Op() {a=[ tensor( f32[2] ) , tensor(?)]}\n",
            "%y = Op() {a=[tensor(f32[2]),tensor(?)]}\n");
    same("%y = Op() {\"a b\"=1, tensor=2, type=\"x\", 7=8}\n");
    becomes("%y = Op() {}\n", "%y = Op()\n");

    cs_graph *g = read_text("%y = Op() {i=7, f=2.5, s=\"a\\x00b\", is=[1,2,3], fs=[1.5,nan], "
                            "ss=[\"a\",\"\\x62\"], t=tensor(f32[3]), ty=type(f32), "
                            "ts=[tensor(i8[2]),tensor(f32[5])], tys=[type(f32)]}\n");
    const cs_node *n = &g->nodes.at[0];
    assert_int_equal(n->n_attr, 10);
    assert_int_equal(cs_node_int(g, n, "i", 0), 7);
    assert_true(cs_node_attr(g, n, "f")->f == 2.5f);
    const cs_attr *a = cs_node_attr(g, n, "s");
    assert_int_equal(a->len, 3);
    assert_memory_equal(a->s, "a\0b", 3);
    a = cs_node_attr(g, n, "is");
    assert_true(a->kind == CS_ATTR_INTS && a->len == 3 && a->ints[2] == 3);
    a = cs_node_attr(g, n, "fs");
    assert_true(a->kind == CS_ATTR_FLOATS && a->len == 2 && a->floats[0] == 1.5f &&
                isnan(a->floats[1]));
    a = cs_node_attr(g, n, "ss");
    assert_true(a->kind == CS_ATTR_STRINGS && a->len == 2 && cs_span_is(a->strings[1], "b"));
    a = cs_node_attr(g, n, "t");
    assert_true(a->kind == CS_ATTR_TENSOR && a->data == NULL && a->len == 0);
    assert_int_equal(cs_type_bytes(g->pool, a->type), 12);
    a = cs_node_attr(g, n, "ty");
    assert_true(a->kind == CS_ATTR_TYPE && a->type != 0);
    a = cs_node_attr(g, n, "ts");
    assert_true(a->kind == CS_ATTR_TENSORS && a->len == 2);
    assert_int_equal(cs_type_bytes(g->pool, a->types[1]), 20);
    a = cs_node_attr(g, n, "tys");
    assert_true(a->kind == CS_ATTR_TYPES && a->len == 1 &&
                a->types[0] == cs_node_attr(g, n, "ty")->type);
    cs_graph_free(g);
}

static void opsets(void **state)
{
    (void)state;
    cs_graph *g = read_text("%a = Relu()\n%b = m:Op()\n%c = other:Op()\nopset 17 m:2\n"
                            "%d = If() {\nbody b\n%e = Relu()\n%f = RandomNormal()\nend\n}\n");
    assert_int_equal(g->nodes.at[0].opset, 17);
    assert_int_equal(g->nodes.at[1].opset, 2);
    assert_int_equal(g->nodes.at[2].opset, 0);
    assert_int_equal(g->bodies.at[0].graph->nodes.at[0].opset, 17);
    assert_int_equal(g->bodies.at[0].graph->nodes.at[0].flags, 0);
    assert_int_equal(g->bodies.at[0].graph->nodes.at[1].flags, CS_NODE_RANDOM);
    assert_int_equal(g->nodes.at[3].flags, CS_NODE_RANDOM);
    cs_graph_free(g);
}

/* ---- weights ---- */

static void ties(void **state)
{
    (void)state;
    same("weight %a : f32[2]\nweight %b : f32[2] = %a\nweight %c : f32[2] = %a\n");
    becomes("weight %c : f32[2] = %b\nweight %b : f32[1,2] = %a\nweight %a : f32[2]\n",
            "weight %c : f32[2]\nweight %b : f32[1,2] = %c\nweight %a : f32[2] = %c\n");
    same("weight %s : str[2]\nweight %t : str[1] = %s\n");
    cs_graph *g = read_text("weight %z : f32[3]\nweight %c : f32[2] = %b\n"
                            "weight %b : f32[2] = %a\nweight %a : f32[2]\n"
                            "%y = If() {\n body t\n weight %w : f32[2] = %c\n"
                            " weight %z : f32[2] = %a\n weight %v : f32[2] = %z\n end\n}\n");
    assert_int_equal(g->storages.len, 2);
    assert_int_equal(g->values.at[1].storage, 1);
    assert_int_equal(g->values.at[2].storage, 1);
    const cs_graph *body = g->bodies.at[0].graph;
    for (int i = 0; i < 3; i++)
        assert_int_equal(body->values.at[i].storage, 1);
    cs_graph_free(g);
    /* In a body: the outer weight is named; a sibling's cannot be, nor one that is hidden. */
    same("weight %w : f32[2]\n%y = If() {\n  body t\n    weight %v : f32[2] = %w\n  end\n}\n");
    g = read_text("weight %w : f32[2]\n%y = If() {\nbody t\nweight %v : f32[2] = %w\nend\n"
                  "body e\nweight %w : f32[2]\nend\n}\n");
    g->bodies.at[1].graph->values.at[0].storage = 0;
    char *text = write_text(g);
    assert_string_equal(text, "weight %w : f32[2]\n%y = If() {\n  body t\n    weight %v : f32[2] "
                              "= %w\n  end\n  body e\n    weight %w : f32[2]\n  end\n}\n");
    free(text);
    g->values.at[0].storage = 1; /* the bodies share what the outer graph does not have */
    text = write_text(g);
    assert_string_equal(text, "weight %w : f32[2]\n%y = If() {\n  body t\n    weight %v : f32[2]\n"
                              "  end\n  body e\n    weight %w : f32[2]\n  end\n}\n");
    free(text);
    cs_graph_free(g);
    /* A long chain of ties, each to the next line. */
    struct string s = {0};
    enum { N = 50000 };
    for (int i = 0; i < N; i++)
        put(&s, "weight %%w%d : i8[3] = %%w%d\n", i, i + 1);
    put(&s, "weight %%w%d : i8[3]\n", N);
    g = read_text(s.at);
    assert_int_equal(g->storages.len, 1);
    cs_graph_free(g);
    free(s.at);
}

/* ---- bodies ---- */

static const char bodies[] = "input %x : f32[2]\n"
                             "input %n : i64[]\n"
                             "input %c : bool[]\n"
                             "%s : f32[2] = Loop(%n, %c, %x) {a=1} @acc !effect {\n"
                             "  body body %i : i64[] %cond : bool[] %v : f32[2]\n"
                             "    weight %k : f32[2]\n"
                             "    %t : f32[2] = Add(%v, %later)\n"
                             "    %u = If(%cond) {\n"
                             "      body then_branch\n"
                             "        %d = Mul(%t, %x) @acc\n"
                             "        %e = Op(%d, %k) {\n"
                             "          body deep\n"
                             "            %f = Op(%x, %i, %later, %d, %x)\n"
                             "            output %f\n"
                             "            output %later\n"
                             "          end\n"
                             "        }\n"
                             "        output %d\n"
                             "      end\n"
                             "      body else_branch\n"
                             "        output %v\n"
                             "      end\n"
                             "    }\n"
                             "    order %t -> %u\n"
                             "    group g { %t %u }\n"
                             "    output %cond\n"
                             "    output %u\n"
                             "  end\n"
                             "}\n"
                             "%later : f32[1] = Neg(%x)\n"
                             "output %s\n";

/* The captures of a node, by name. */
static void captures_are(const cs_graph *g, uint32_t node, const char *expected)
{
    const cs_node *n = &g->nodes.at[node];
    struct string s = {0};
    append(&s, "", 0);
    for (uint32_t i = 0; i < n->n_capture; i++) {
        uint32_t v = cs_args(g, n)[n->n_arg + i];
        cs_span name = cs_name(g->pool, g->values.at[v].name);
        put(&s, "%s%.*s", i ? " " : "", CS_FMT(name));
    }
    assert_string_equal(s.at, expected);
    free(s.at);
}

static void captures(void **state)
{
    (void)state;
    same(bodies);
    cs_graph *g = read_text(bodies);
    assert_int_equal(g->nodes.len, 2);
    assert_int_equal(g->topo[0], 1); /* Neg comes before the Loop that captures it */
    captures_are(g, 0, "later x");
    const cs_graph *loop = g->bodies.at[0].graph;
    assert_int_equal(loop->inputs.len, 3);
    captures_are(loop, 1, "t x k i later v");
    const cs_graph *then = loop->bodies.at[0].graph;
    captures_are(then, 1, "x i later d");
    const cs_graph *deep = then->bodies.at[0].graph;
    assert_int_equal(deep->outputs.len, 2);
    assert_int_equal(deep->values.at[deep->outputs.at[1]].origin, CS_ORIGIN_CAPTURE);
    for (size_t v = 0; v < deep->values.len; v++) { /* types come from where the value is made */
        cs_span name = cs_name(g->pool, deep->values.at[v].name);
        if (cs_span_is(name, "later"))
            assert_int_equal(deep->values.at[v].type, g->values.at[4].type);
        if (cs_span_is(name, "i"))
            assert_int_equal(deep->values.at[v].type, loop->values.at[0].type);
    }
    assert_int_equal(g->storages.len, 1);
    assert_ptr_equal(loop->outer, g);
    assert_ptr_equal(deep->pool, g->pool);
    cs_graph_free(g);
}

static void the_inner_name_wins(void **state)
{
    (void)state;
    cs_graph *g = read_text("input %x : f32[1]\n"
                            "%y = If(%x) {\n"
                            "  body a\n"
                            "    %z = Op(%x)\n" /* the body's %x, made below */
                            "    %x = Op()\n"
                            "    %w = If() {\n"
                            "      body b\n"
                            "        output %x\n"
                            "      end\n"
                            "    }\n"
                            "    output %y2\n"
                            "    %y2 = Op()\n"
                            "  end\n"
                            "  body c %x : f32[2]\n"
                            "    output %x\n"
                            "  end\n"
                            "}\n"
                            "%y2 = Op(%y)\n");
    assert_int_equal(g->nodes.at[0].n_capture, 0);
    const cs_graph *a = g->bodies.at[0].graph;
    captures_are(a, 2, "x");
    assert_int_equal(a->topo[0], 1);
    cs_graph_free(g);
    same("%y = If() {\n  body a\n    graph inside\n    opset 3\n    output %z\n  end\n}\n%z = "
         "Op()\n");
    same("%y = If()\n");
    same("%y = If() {\n  body a\n  end\n  body a\n  end\n}\n"); /* a list of graphs */
    becomes("%y = If() {\n}\n", "%y = If()\n");
    becomes("%y=If(){ # opens\n body a # here\n end # there\n } # closes\n",
            "%y = If() {\n  body a\n  end\n}\n");
    becomes("%y = If() {\n body a\n input %i : f32\n end\n}\n",
            "%y = If() {\n  body a %i : f32\n  end\n}\n");
}

static void effects_and_bodies(void **state)
{
    (void)state;
    cs_graph *g = read_text("input %x : f32[1]\n"
                            "() = Op(%x)\n"
                            "() = If() {\n"
                            "  body a\n"
                            "    () = If() {\n"
                            "      body b\n"
                            "        () = Op() !writes(%x)\n"
                            "      end\n"
                            "    }\n"
                            "    () = Op(%x)\n"
                            "  end\n"
                            "}\n"
                            "() = Op(%x)\n");
    captures_are(g, 1, "x");
    assert_int_equal(g->order.len, 2);
    assert_true(g->order.at[0].from == 0 && g->order.at[0].to == 1);
    assert_true(g->order.at[1].from == 1 && g->order.at[1].to == 2);
    assert_int_equal(g->bodies.at[0].graph->order.len, 1);
    char *text = write_text(g); /* implied edges are not written */
    assert_null(strstr(text, "order"));
    cs_graph_free(g);
    free(text);
    /* Line order is program order, whatever is read first. */
    g = read_text("%c = Add_(%a) !writes(%a)\n%b = Op(%a)\n%a = Op()\n");
    assert_true(g->topo[0] == 2 && g->topo[1] == 0 && g->topo[2] == 1);
    cs_graph_free(g);
}

static void depth(void **state)
{
    (void)state;
    for (int n = 100; n <= 101; n++) {
        struct string s = {0};
        for (int i = 0; i < n; i++)
            put(&s, "%%y%d = If() {\nbody b\n", i);
        put(&s, "output %%x\n");
        for (int i = 0; i < n; i++)
            put(&s, "end\n}\n");
        put(&s, "input %%x : f32\n");
        if (n == 100) {
            cs_graph *g = read_text(s.at);
            char *text = write_text(g);
            becomes(text, text);
            free(text);
            cs_graph_free(g);
        } else {
            refused(s.at, "line 201, column 15: bodies nested more than 100 deep: nest less");
        }
        free(s.at);
    }
}

/* ---- graphs that no text made ---- */

static void graphs_from_elsewhere(void **state)
{
    (void)state;
    cs_graph *g = cs_graph_new(cs_pool_new(), NULL);
    cs_strtab *names = &g->pool->names;
    cs_dim dims[2] = {4, 5};
    cs_type sparse = cs_type_sparse(g->pool, CS_F32, 2, dims);
    uint32_t x =
        cs_graph_add_value(g, cs_strtab_add(names, CS_SPAN("x"), true), sparse, CS_ORIGIN_INPUT);
    cs_vec_push(&g->inputs, x);
    uint32_t w =
        cs_graph_add_value(g, cs_strtab_add(names, CS_SPAN("w"), true), sparse, CS_ORIGIN_WEIGHT);
    g->values.at[w].storage = cs_graph_add_storage(g, 80, CS_F32, NULL);
    cs_graph_add_node(g, cs_strtab_add(names, CS_SPAN("Call"), true),
                      cs_strtab_add(names, CS_SPAN("local"), true),
                      cs_strtab_add(names, CS_SPAN("its name"), true));
    g->nodes.at[0].flags = CS_NODE_FUNCTION;
    cs_graph_add_arg(g, x);
    cs_attr attr = {.name = cs_strtab_add(names, CS_SPAN("other"), true), .kind = CS_ATTR_OTHER};
    cs_graph_add_attr(g, attr);
    cs_graph *body = cs_graph_new(g->pool, g);
    cs_graph_add_body(g, 0, body);                                 /* the body of the function */
    uint32_t y = cs_graph_add_value(g, 0, sparse, CS_ORIGIN_NODE); /* without a name */
    cs_graph_add_out(g, y);
    cs_graph_add_alias(g, y, x);
    cs_graph_add_node(g, cs_strtab_add(names, CS_SPAN("Op"), true), 0, 0);
    cs_graph_add_attr(g, attr);
    cs_graph_add_attr(g, (cs_attr){.name = attr.name, .kind = CS_ATTR_TENSOR, .type = sparse});
    cs_graph_add_attr(g, attr);
    cs_graph_add_write(g, y);
    cs_vec_push(&g->groups, ((cs_group){0}));
    cs_vec_push(&g->outputs, y);
    assert_int_equal(cs_graph_seal(g, &err), 0);
    assert_int_equal(cs_graph_verify(g, &err), 0);
    char *text = write_text(g);
    assert_string_equal(text, "input %x : ?\n"
                              "weight %w : f32[4,5]\n"
                              "%\"#2\" = local:Call(%x)\n"
                              "() = Op() {other=tensor(f32[4,5])} !writes(%\"#2\")\n"
                              "order %\"#2\" -> $1\n" /* implied, but aliases had a part in it */
                              "output %\"#2\"\n");
    cs_graph *back = read_text(text);
    assert_int_equal(back->order.len, 1);
    cs_graph_free(back);
    free(text);
    cs_graph_free(g);
}

/* ---- size, memory, stopping ---- */

static void a_long_file(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct string s = {0};
    for (int i = N - 1; i >= 0; i--) /* every value is used before its line */
        put(&s, "%%n%d : f32[1,64] = Relu(%%n%d)\n", i + 1, i);
    put(&s, "input %%n0 : f32[1,64]\noutput %%n%d\n", N);
    cs_graph *g = read_text(s.at);
    assert_int_equal(g->nodes.len, N);
    assert_int_equal(g->topo[0], N - 1);
    cs_graph_free(g);
    free(s.at);
}

static int stop(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    assert_string_equal(phase, "read");
    assert_true(done <= total);
    return ++*(int *)payload == 2;
}

static void stopping(void **state)
{
    (void)state;
    struct string s = {0};
    put(&s, "input %%x : f32\n");
    while (s.len < 9000000)
        put(&s, "output %%x  # ...........................................................\n");
    int calls = 0;
    const cutset_progress progress = {stop, &calls};
    cs_graph *g;
    assert_int_equal(cs_text_read(&g, cs_span_of(s.at), &progress, &err), CUTSET_INTERRUPTED);
    assert_int_equal(calls, 2);
    assert_null(g);
    free(s.at);
}

/* Everything in one text, with each allocation failing once. */
static void without_memory(void **state)
{
    (void)state;
    struct string s = {0};
    put(&s, "%s%s",
        "opset 17 \"a b\":1\nweight %k1 : f32[2]\nweight %k2 : f32[2] = %k1\n"
        "%A = Op(%k2) {s=\"\\x41\", f=[1.5], i=[1], t=[\"\\x42\"]} !writes(%x)\n"
        "%B = Op(%x) !effect\n",
        bodies);
    for (int i = 0; i < 300; i++)
        put(&s, "%%n%d : f32[%d,\"N %d\"] = Op%d()\n", i, i, i, i);
    for (long n = 0;; n++) {
        long live = alloc_live();
        cs_graph *g = (void *)1;
        alloc_fail_at(n);
        cutset_status status = cs_text_read(&g, cs_span_of(s.at), NULL, &err);
        if (status) {
            assert_int_equal(status, CUTSET_SYSTEM);
            assert_string_equal(err.message, "out of memory");
            assert_null(g);
        } else {
            cs_out out;
            struct string back = {0};
            status = cs_out_call(&out, append, &back, &err);
            if (!status) {
                cs_text_write(g, &out);
                status = cs_out_done(&out, "text", &err);
            }
            free(back.at);
            if (status) assert_int_equal(status, CUTSET_SYSTEM);
        }
        bool failed = alloc_failed();
        alloc_fail_at(-1);
        cs_graph_free(g);
        assert_int_equal(alloc_live(), live);
        if (!failed) {
            assert_int_equal(status, CUTSET_OK);
            break;
        }
        assert_int_equal(status, CUTSET_SYSTEM);
    }
    free(s.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example),
        cmocka_unit_test(elements),
        cmocka_unit_test(names),
        cmocka_unit_test(attributes),
        cmocka_unit_test(opsets),
        cmocka_unit_test(ties),
        cmocka_unit_test(captures),
        cmocka_unit_test(the_inner_name_wins),
        cmocka_unit_test(effects_and_bodies),
        cmocka_unit_test(depth),
        cmocka_unit_test(graphs_from_elsewhere),
        cmocka_unit_test(a_long_file),
        cmocka_unit_test(stopping),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
