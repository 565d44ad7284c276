/* The text form: every element of the grammar, every message, captures, ties, both ways. */
#include "failing_alloc.h"

#include "graph/graph.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static cutset_error err;

/* ---- reading and writing ---- */

static cs_graph *read_text(const char *text)
{
    cs_graph *g;
    if (cs_text_read(&g, cs_span_of(text), NULL, &err)) fail_msg("%s\nof\n%s", err.message, text);
    if (cs_graph_verify(g, &err)) fail_msg("%s\nof\n%s", err.message, text);
    return g;
}

struct string {
    char *at;
    size_t len, cap;
};

static int append(void *payload, const void *bytes, size_t len)
{
    struct string *s = payload;
    if (s->len + len + 1 > s->cap) {
        s->cap = (s->len + len + 1) * 2;
        s->at = realloc(s->at, s->cap);
    }
    memcpy(s->at + s->len, bytes, len);
    s->len += len;
    s->at[s->len] = 0;
    return 0;
}

static void put(struct string *s, const char *format, ...)
{
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    append(s, text, strlen(text));
}

/* On the heap. */
static char *write_text(const cs_graph *g)
{
    struct string s = {0};
    append(&s, "", 0);
    cs_out out;
    assert_int_equal(cs_out_call(&out, append, &s, &err), 0);
    cs_text_write(g, &out);
    assert_int_equal(cs_out_done(&out, "text", &err), 0);
    return s.at;
}

static void becomes(const char *text, const char *expected)
{
    cs_graph *g = read_text(text);
    char *out = write_text(g);
    assert_string_equal(out, expected);
    cs_graph_free(g);
    free(out);
}

/* What is canonical comes back byte for byte. */
static void same(const char *text) { becomes(text, text); }

static void refused(const char *text, const char *message)
{
    cs_graph *g = (void *)1;
    err.message[0] = 0;
    assert_int_equal(cs_text_read(&g, cs_span_of(text), NULL, &err), CUTSET_BAD);
    assert_string_equal(err.message, message);
    assert_null(g);
    int line, column;
    if (sscanf(err.message, "line %d, column %d:", &line, &column) == 2) {
        const char *at = text;
        while (--line > 0)
            at = strchr(at, '\n') + 1;
        assert_int_equal(err.offset, at - text + column - 1);
    }
}

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
    same("%y = Op() {\"a b\"=1, tensor=2, type=\"x\", 7=8}\n");
    becomes("%y = Op() {}\n", "%y = Op()\n");

    cs_graph *g = read_text("%y = Op() {i=7, f=2.5, s=\"a\\x00b\", is=[1,2,3], fs=[1.5,nan], "
                            "ss=[\"a\",\"\\x62\"], t=tensor(f32[3]), ty=type(f32)}\n");
    const cs_node *n = &g->nodes.at[0];
    assert_int_equal(n->n_attr, 8);
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
    cs_graph_free(g);
}

/* Every f32 that is written reads back: random bit patterns, and neighbours of powers of two. */
static void floats_read_back(void **state)
{
    (void)state;
    uint64_t seed = 1;
    struct string s = {0};
    enum { N = 20000 };
    static uint32_t bits[N];
    put(&s, "%%y = Op() {a=[");
    for (int i = 0; i < N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bits[i] = (uint32_t)(seed >> 32);
        if (i % 4 == 0) bits[i] = (bits[i] & 0xff800000u) + (uint32_t)(i / 4 % 3) - 1;
        float f;
        memcpy(&f, &bits[i], 4);
        char text[32];
        cs_format_f32(f, text);
        put(&s, "%s%s", i ? "," : "", text);
    }
    put(&s, "]}\n");
    cs_graph *g = read_text(s.at);
    const cs_attr *a = &g->attrs.at[0];
    assert_int_equal(a->len, N);
    for (int i = 0; i < N; i++) {
        float f;
        memcpy(&f, &bits[i], 4);
        assert_true(isnan(f) ? isnan(a->floats[i]) : memcmp(&f, &a->floats[i], 4) == 0);
    }
    cs_graph_free(g);
    free(s.at);
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
    same("%y = If() {\n  body a\n    graph inside\n    opset 3\n    output %z\n  end\n}\n%z = Op()\n");
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

/* ---- faults ---- */

static void faults(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"foo", "line 1, column 1: 'foo' is not expected here: write a node such as %y = Op(%x), "
                "or graph, opset, input, weight, order, group or output"},
        {"\n  end\n", "line 2, column 3: 'end' is not expected here: write a node such as %y = "
                      "Op(%x), or graph, opset, input, weight, order, group or output"},
        {"}", "line 1, column 1: '}' is not expected here: write a node such as %y = Op(%x), or "
              "graph, opset, input, weight, order, group or output"},
        {"graph", "line 1, column 6: the line ends too early: write the name of the graph"},
        {"graph a\ngraph b", "line 2, column 6: a second graph line: remove one"},
        {"graph a b", "line 1, column 9: 'b' is not expected here: write the end of the line"},
        {"graph a#b", "line 1, column 8: '#' is not expected here: write the end of the line"},
        {"graph \"a", "line 1, column 7: a string without its end: write '\"' on the same line"},
        {"graph \"a\n\"",
         "line 1, column 7: a string without its end: write '\"' on the same line"},
        {"graph \"\\x1\"", "line 1, column 8: unknown escape in a string: write \\\\, \\\" or "
                           "\\xNN"},
        {"opset", "line 1, column 6: the line ends too early: write the version of the operators, "
                  "such as 17"},
        {"opset 1x", "line 1, column 7: '1x' is not expected here: write the version of the "
                     "operators, such as 17"},
        {"opset 9223372036854775808", "line 1, column 7: a number over 9223372036854775807: write "
                                      "the version of the operators, such as 17"},
        {"opset 1\nopset 2", "line 2, column 6: a second opset line: remove one"},
        {"opset 1 a", "line 1, column 10: the line ends too early: write ':' and the version of "
                      "this domain"},
        {"opset 1 a:b", "line 1, column 11: 'b' is not expected here: write the version of this "
                        "domain, such as 1"},
        {"opset 1 a:1 a:2",
         "line 1, column 13: this domain has a version already: remove one"},
        {"opset 1 ai.onnx:2",
         "line 1, column 9: this domain has a version already: remove one"},
        {"opset 1 %", "line 1, column 9: '%' is not expected here: write a domain and its version, "
                      "such as com.microsoft:1"},
        {"input x : f32", "line 1, column 7: 'x' is not expected here: write a value such as %x"},
        {"input % : f32",
         "line 1, column 8: ' ' is not expected here: write the name of a value after '%'"},
        {"input %x", "line 1, column 9: the line ends too early: write ':' and a type such as "
                     "f32[1,3] or ?"},
        {"input %x : f31[]", "line 1, column 12: 'f31' is no element type: write f32, f16, i64, "
                             "bool, ..."},
        {"input %x : f32[2,\n", "line 1, column 18: the line ends too early: write a dim: a "
                                "number, a symbol, an expression or ?"},
        {"input %x : f32[9223372036854775808]",
         "line 1, column 16: a number over 64 bits in a dim: use smaller numbers"},
        {"input %\"\" : f32", "line 1, column 7: an empty name: give the value a name"},
        {"weight %w : f32[N]", "line 1, column 8: a weight of unknown size: give the element type "
                               "and every dim as a number"},
        {"weight %w : f32", "line 1, column 8: a weight of unknown size: give the element type "
                            "and every dim as a number"},
        {"weight %w : ?", "line 1, column 8: a weight of unknown size: give the element type and "
                          "every dim as a number"},
        {"weight %w : seq(f32[1])", "line 1, column 8: a weight of unknown size: give the element "
                                    "type and every dim as a number"},
        {"weight %w : str[?]", "line 1, column 8: a weight of unknown size: give the element type "
                               "and every dim as a number"},
        {"weight %w : f32[9223372036854775807]",
         "line 1, column 8: a weight over 2^63 bytes: give smaller dims"},
        {"weight %w : f32[1] = 7",
         "line 1, column 22: '7' is not expected here: write a value such as %x"},
        {"weight %w : f32[1] = %v",
         "line 1, column 22: there is no weight %v: name one, or remove '= %v'"},
        {"input %v : f32[1]\nweight %w : f32[1] = %v",
         "line 2, column 22: %v is no weight: only weights share their bytes"},
        {"weight %w : f32[1] = %w", "line 1, column 22: the weight %w shares its own bytes: let "
                                    "one weight of the loop stand alone"},
        {"weight %a : f32[1] = %b\nweight %b : f32[1] = %a\nweight %c : f32[1] = %a",
         "line 1, column 22: the weight %b shares its own bytes: let one weight of the loop stand "
         "alone"},
        {"weight %a : f32[1]\nweight %b : f32[2] = %a",
         "line 2, column 22: %a has another size than the weight that shares its bytes: give both "
         "the same number of bytes"},
        {"%y", "line 1, column 3: the line ends too early: write '=' and an operator"},
        {"%y = ", "line 1, column 6: the line ends too early: write an operator"},
        {"%y = Op", "line 1, column 8: the line ends too early: write '(' and the inputs of the "
                    "operator"},
        {"%y = a:", "line 1, column 8: the line ends too early: write an operator after its "
                    "domain"},
        {"%y = Op(", "line 1, column 9: the line ends too early: write a value such as %x"},
        {"%y = Op(%x", "line 1, column 11: the line ends too early: write ',' or ')'"},
        {"%y = Op(x)", "line 1, column 9: 'x' is not expected here: write a value such as %x"},
        {"%y, = Op()", "line 1, column 5: '=' is not expected here: write a value such as %x"},
        {"( = Op()", "line 1, column 3: '=' is not expected here: write ')': () stands for no "
                     "outputs"},
        {"%y = Op() @", "line 1, column 12: the line ends too early: write the name of a target"},
        {"%y = Op() @a,", "line 1, column 14: the line ends too early: write the name of a "
                          "target"},
        {"%y = Op() !foo",
         "line 1, column 12: 'foo' is not expected here: write !effect or !writes(%x)"},
        {"%y = Op() !writes", "line 1, column 18: the line ends too early: write '(' and the "
                              "values written"},
        {"%y = Op() !writes()",
         "line 1, column 19: ')' is not expected here: write a value such as %x"},
        {"%y = Op() !writes(%y", "line 1, column 21: the line ends too early: write ',' or ')'"},
        {"%y = Op() !effect @acc",
         "line 1, column 19: '@' is not expected here: write the end of the line"},
        {"%y = Op() {a}", "line 1, column 13: '}' is not expected here: write '=' and the "
                          "attribute's value"},
        {"%y = Op() {=1}", "line 1, column 12: '=' is not expected here: write the name of an "
                           "attribute"},
        {"%y = Op() {a=1, a=2}", "line 1, column 17: attribute 'a' is given twice: remove one"},
        {"%y = Op() {\"\"=1}", "line 1, column 12: an empty name: give the attribute a name"},
        {"%y = Op() {a=}", "line 1, column 14: '}' is not expected here: write a number, a "
                           "string, a list, tensor(TYPE) or type(TYPE)"},
        {"%y = Op() {a=foo}", "line 1, column 14: 'foo' is no attribute value: write a number, a "
                              "string, a list, tensor(TYPE) or type(TYPE)"},
        {"%y = Op() {a=1 b=2}", "line 1, column 16: 'b' is not expected here: write ',' or '}'"},
        {"%y = Op() {a=1", "line 1, column 15: the line ends too early: write ',' or '}'"},
        {"%y = Op() {a=1.5.2}",
         "line 1, column 14: malformed number: write it like 1.5 or 1e-05"},
        {"%y = Op() {a=1.5f}",
         "line 1, column 14: malformed number: write it like 1.5 or 1e-05"},
        {"%y = Op() {a=0x10}",
         "line 1, column 14: malformed or over 64 bits: write an integer of 64 bits"},
        {"%y = Op() {a=9223372036854775808}",
         "line 1, column 14: malformed or over 64 bits: write an integer of 64 bits"},
        {"%y = Op() {a=1e39}", "line 1, column 14: a number beyond f32: write inf or -inf"},
        {"%y = Op() {a=-3.4028236e+38}",
         "line 1, column 14: a number beyond f32: write inf or -inf"},
        {"%y = Op() {a=[1,2.0]}", "line 1, column 17: a list of more than one kind: write only "
                                  "integers, only numbers with '.' or 'e', or only strings"},
        {"%y = Op() {a=[\"b\",2]}", "line 1, column 19: a list of more than one kind: write only "
                                    "integers, only numbers with '.' or 'e', or only strings"},
        {"%y = Op() {a=[1,]}",
         "line 1, column 17: ']' is not expected here: write a number, a string or ']'"},
        {"%y = Op() {a=[1", "line 1, column 16: the line ends too early: write ',' or ']'"},
        {"%y = Op() {a=[f:1.0]}", "line 1, column 17: '1.0' is not expected here: write ']': [f:] "
                                  "and [s:] are empty lists"},
        {"%y = Op() {a=tensor}", "line 1, column 20: '}' is not expected here: write '(' and a "
                                 "type"},
        {"%y = Op() {a=type(f32}", "line 1, column 22: '}' is not expected here: write ')'"},
        {"order", "line 1, column 6: the line ends too early: write a node: one of its outputs, "
                  "or $ and its index"},
        {"order %a", "line 1, column 9: the line ends too early: write '->', with a blank before "
                     "it"},
        {"order %a->%b", "line 1, column 10: '>' is not expected here: write '->', with a blank "
                         "before it"},
        {"order $x -> $1", "line 1, column 8: 'x' is not expected here: write the index of a node "
                           "after '$'"},
        {"order $ 1 -> $1", "line 1, column 8: ' ' is not expected here: write the index of a "
                            "node after '$'"},
        {"order $4294967295 -> $1", "line 1, column 8: a number over 4294967294: write the index "
                                    "of a node after '$'"},
        {"%a = Op()\norder $0 -> $1", "line 2, column 13: there is no node $1 among 1: nodes "
                                      "count from $0 in the order of their lines"},
        {"%a = Op()\norder %a -> %b", "line 2, column 13: no node of this graph makes %b: name a "
                                      "node by one of its outputs, or by $ and its index"},
        {"input %b : f32\n%a = Op()\norder %a -> %b",
         "line 3, column 13: %b is an input and not made by a node: name a node by one of its "
         "outputs, or by $ and its index"},
        {"weight %b : f32[]\n%a = Op()\ngroup g { %a %b }",
         "line 3, column 14: %b is a weight and not made by a node: name a node by one of its "
         "outputs, or by $ and its index"},
        {"%a = Op()\n%b = If() {\nbody x\n%c = Op(%a)\norder %a -> %c\nend\n}",
         "line 5, column 7: no node of this graph makes %a: name a node by one of its outputs, or "
         "by $ and its index"},
        {"group", "line 1, column 6: the line ends too early: write the name of the group"},
        {"group g", "line 1, column 8: the line ends too early: write '{' and the nodes of the "
                    "group"},
        {"group g { }", "line 1, column 11: '}' is not expected here: write a node: one of its "
                        "outputs, or $ and its index"},
        {"group g { %a", "line 1, column 13: the line ends too early: write a node: one of its "
                         "outputs, or $ and its index"},
        {"output", "line 1, column 7: the line ends too early: write a value such as %x"},
        {"output %x %y", "line 1, column 11: '%' is not expected here: write the end of the line"},
        {"output %x", "line 1, column 8: nothing makes %x: add the node that makes it, or make it "
                      "an input or a weight"},
        {"%y = Op(%x)\n%z = Op(%w)", "line 1, column 9: nothing makes %x: add the node that makes "
                                     "it, or make it an input or a weight"},
        {"%y = Op() !writes(%x)", "line 1, column 19: nothing makes %x: add the node that makes "
                                  "it, or make it an input or a weight"},
        {"%z = If() {\nbody a\n%z = If() {\nbody b\n%y = Op(%x)\nend\n}\n%u = Op(%x)\nend\n}",
         "line 5, column 9: nothing makes %x: add the node that makes it, or make it an input or "
         "a weight"},
        {"%y = Op()\n\n%x, %y = Op()", "line 3, column 5: %y is made twice (first on line 1): "
                                       "give each value one origin"},
        {"input %y : f32\nweight %y : f32[]\n", "line 2, column 8: %y is made twice (first on "
                                                "line 1): give each value one origin"},
        {"%y, %y = Op()", "line 1, column 5: %y is made twice (first on line 1): give each value "
                          "one origin"},
        {"%y = If() {\nbody a %i : f32 %i : f32\nend\n}",
         "line 2, column 17: %i is made twice (first on line 2): give each value one origin"},
        {"%y = If() {", "line 1, column 12: a node without its '}': write it after the 'end' of "
                        "the last body"},
        {"%y = If() {\nfoo", "line 2, column 1: 'foo' is not expected here: write 'body' and its "
                             "name, or '}'"},
        {"%y = If() {\nbody", "line 2, column 5: the line ends too early: write the name of the "
                              "body"},
        {"%y = If() {\nbody a", "line 2, column 7: a body without its end: write a line 'end'"},
        {"%y = If() {\nbody a x", "line 2, column 8: 'x' is not expected here: write a value such "
                                  "as %x"},
        {"%y = If() {\nbody a\n}\n}", "line 3, column 1: '}' is not expected here: write a node "
                                      "such as %y = Op(%x), input, weight, order, group, output "
                                      "or end"},
        {"%y = If() {\nbody a\nend x\n}",
         "line 3, column 5: 'x' is not expected here: write the end of the line"},
        {"%y = If() {\nbody \"\"\nend\n}",
         "line 2, column 6: an empty name: give the body a name"},
        {"%y = If() {\n} x", "line 2, column 3: 'x' is not expected here: write the end of the "
                             "line"},
        {"%a = Op(%b)\n%b = Op(%a)", "cycle: %a -> %b -> %a: remove one of these edges"},
        {"%a = Op()\n%b = Op(%a)\norder %b -> %a",
         "cycle: %a -> %b -> %a (by order edge): remove one of these edges"},
        {"%a, %b = Op()\norder %b -> %a",
         "cycle: %a -> %a (by order edge): remove one of these edges"},
        {"%a = If() {\nbody b\noutput %a\nend\n}",
         "cycle: %a -> %a: remove one of these edges"},
        {"%c = If() {\nbody b\n%a = Op(%b)\n%b = Op(%a)\nend\n}",
         "cycle: %a -> %b -> %a: remove one of these edges"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i][0], cases[i][1]);
}

/* A control byte or a very long name in the text leaves the message one line. */
static void hostile_faults(void **state)
{
    (void)state;
    refused("%y \x01", "line 1, column 4: '\\x01' is not expected here: write '=' and an operator");
    struct string s = {0};
    put(&s, "output %%\"\\x0a");
    for (int i = 0; i < 5000; i++)
        put(&s, "x");
    put(&s, "\"\n");
    cs_graph *g;
    assert_int_equal(cs_text_read(&g, cs_span_of(s.at), NULL, &err), CUTSET_BAD);
    assert_null(strchr(err.message, '\n'));
    assert_non_null(strstr(err.message, "\\x0ax"));
    free(s.at);
    assert_int_equal(cs_text_read(&g, (cs_span){"graph a\0b", 9}, NULL, &err), CUTSET_BAD);
    assert_int_equal(err.offset, 7);
    assert_int_equal(cs_text_read(&g, (cs_span){NULL, 0}, NULL, &err), CUTSET_OK);
    cs_graph_free(g);
    assert_int_equal(cs_text_read(&g, CS_SPAN("foo"), NULL, NULL), CUTSET_BAD);
}

static void many_opsets(void **state)
{
    (void)state;
    struct string s = {0};
    put(&s, "opset 17");
    for (int i = 0; i < 1000; i++)
        put(&s, " d%d:1", i);
    cs_graph *g;
    assert_int_equal(cs_text_read(&g, cs_span_of(s.at), NULL, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "more than 1000 domains: give fewer"));
    free(s.at);
}

/* ---- probing ---- */

static void probe(void **state)
{
    (void)state;
    static const char *const yes[] = {
        "", "\n\n", "# comment", "  \t# c\n\n%y = Op()", "%y", "() = Op()", "_ = Op()",
        "graph x", "opset 17", "input %x : f32", "weight %w : f32[1]", "order %a -> %b",
        "group g { %a }", "output %y", "\xef\xbb\xbfgraph x", "input\tx", "\r\ninput %x : f32",
        "# caf\xc3\xa9\ngraph x",
    };
    static const char *const no[] = {
        "graph {\n  node {", "graph: 1", "ir_version: 8", "{\"ir\": 1}", "<ir_version: 8>",
        "\x08\x08\x12\x00", "end", "graphx y", "input {", "PK\x03\x04", "graph", "_x = Op()",
        "graph x\x01", "\x7f" "ELF", "output",
    };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!cs_text_probe(cs_span_of(yes[i]))) fail_msg("'%s' is text", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (cs_text_probe(cs_span_of(no[i]))) fail_msg("'%s' is no text", no[i]);
    assert_false(cs_text_probe((cs_span){"graph x\0", 8}));
    assert_true(cs_text_probe((cs_span){NULL, 0}));
    assert_true(cs_text_probe(cs_span_of(example)));
    char far[6000]; /* a control byte past the first 4 KiB does not count */
    memset(far, '#', sizeof far);
    far[4096] = 1;
    assert_true(cs_text_probe((cs_span){far, sizeof far}));
    far[4095] = 1;
    assert_false(cs_text_probe((cs_span){far, sizeof far}));
}

/* ---- graphs that no text made ---- */

static void graphs_from_elsewhere(void **state)
{
    (void)state;
    cs_graph *g = cs_graph_new(cs_pool_new(), NULL);
    cs_strtab *names = &g->pool->names;
    cs_dim dims[2] = {4, 5};
    cs_type sparse = cs_type_sparse(g->pool, CS_F32, 2, dims);
    uint32_t x = cs_graph_add_value(g, cs_strtab_add(names, CS_SPAN("x"), true), sparse,
                                    CS_ORIGIN_INPUT);
    cs_vec_push(&g->inputs, x);
    uint32_t w = cs_graph_add_value(g, cs_strtab_add(names, CS_SPAN("w"), true), sparse,
                                    CS_ORIGIN_WEIGHT);
    g->values.at[w].storage = cs_graph_add_storage(g, 80, CS_F32, NULL);
    cs_graph_add_node(g, cs_strtab_add(names, CS_SPAN("Call"), true),
                      cs_strtab_add(names, CS_SPAN("local"), true),
                      cs_strtab_add(names, CS_SPAN("its name"), true));
    g->nodes.at[0].flags = CS_NODE_FUNCTION;
    cs_graph_add_arg(g, x);
    cs_attr attr = {.name = cs_strtab_add(names, CS_SPAN("other"), true), .kind = CS_ATTR_OTHER};
    cs_graph_add_attr(g, attr);
    cs_graph *body = cs_graph_new(g->pool, g);
    cs_graph_add_body(g, 0, body); /* the body of the function */
    uint32_t y = cs_graph_add_value(g, 0, sparse, CS_ORIGIN_NODE); /* without a name */
    cs_graph_add_out(g, y);
    cs_graph_add_alias(g, 0, 0);
    cs_graph_add_node(g, cs_strtab_add(names, CS_SPAN("Op"), true), 0, 0);
    cs_graph_add_attr(g, attr);
    cs_graph_add_attr(g, (cs_attr){.name = attr.name, .kind = CS_ATTR_TENSOR, .type = sparse});
    cs_graph_add_attr(g, attr);
    cs_graph_add_write(g, y);
    cs_vec_push(&g->groups, ((cs_group){0, 0, 0}));
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

/* ---- random graphs, both ways ---- */

static uint64_t seed;

static uint32_t below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % n);
}

static const char *pick(const char *const *from, uint32_t n) { return from[below(n)]; }

static void some_attrs(struct string *s)
{
    static const char *const values[] = {"1",   "-7",     "0.5",        "\"a\\x00\"",     "[]",
                                         "[f:]", "[s:]",  "[1,2]",      "[0.1,inf]",      "nan",
                                         "[\"\"]", "\"\"", "type(f32)", "tensor(i4[3])", "1e30"};
    static const char *const keys[] = {"a", "b.c", "\"d e\"", "f"};
    put(s, " {");
    for (uint32_t k = 0, n = below(4); k < n; k++)
        put(s, "%s%s=%s", k ? ", " : "", keys[k], pick(values, 15));
    put(s, "}");
}

struct lines {
    struct string at[200];
    int kind[200]; /* lines of one kind keep their order */
    int n;
};

static struct string *new_line(struct lines *l, int kind)
{
    l->kind[l->n] = kind;
    struct string *s = &l->at[l->n++];
    append(s, "", 0);
    return s;
}

static const char *const types[] = {"f32[1,N]", "?",      "i64[]",          "seq(opt(str))",
                                    "u4[3]",    "f16[?]", "map(i64,f32[2])"};

/* Nodes and their order, groups, outputs; values are named prefix + number. */
static void random_nodes(struct lines *l, const char *prefix, uint32_t known, int level)
{
    uint32_t n = below(level ? 4 : 9), made = known, nodes = 0;
    uint32_t first[16], node_at[16];
    for (uint32_t i = 0; i < n; i++) {
        struct string *s = new_line(l, 0);
        uint32_t outs = below(3), start = made;
        first[nodes] = CS_NONE;
        node_at[nodes] = i;
        if (outs == 0) put(s, "()");
        for (uint32_t o = 0; o < outs; o++) {
            if (o) put(s, ", ");
            if (below(6) == 0) {
                put(s, "_");
                continue;
            }
            if (first[nodes] == CS_NONE) first[nodes] = made;
            put(s, "%%%s%u", prefix, made++);
            if (below(2)) put(s, " : %s", pick(types, 7));
        }
        put(s, " = %sOp%u(", below(4) ? "" : "dom:", below(3));
        for (uint32_t a = 0, m = below(4); a < m; a++) {
            if (a) put(s, ", ");
            if (below(8) == 0) continue;
            if (level && below(3) == 0)
                put(s, "%%v0"); /* from outside */
            else if (start > 0)
                put(s, "%%%s%u", prefix, below(start));
        }
        put(s, ")");
        if (below(3) == 0) some_attrs(s);
        if (below(4) == 0) put(s, " @acc,host");
        if (below(8) == 0) put(s, " !effect");
        if (below(8) == 0 && start > 0) put(s, " !writes(%%%s%u)", prefix, below(start));
        if (below(level < 3 ? 4 : 100) == 0) {
            put(s, " {\n");
            for (uint32_t b = 0, m = 1 + below(2); b < m; b++) {
                struct lines inner = {0};
                char inside[16];
                snprintf(inside, sizeof inside, "%s%c", prefix, 'a' + (int)b);
                uint32_t inputs = below(3);
                put(s, "body b%u", b);
                for (uint32_t k = 0; k < inputs; k++)
                    put(s, " %%%s%u : %s", inside, k, pick(types, 7));
                put(s, "\n");
                random_nodes(&inner, inside, inputs, level + 1);
                for (int k = 0; k < inner.n; k++) {
                    append(s, inner.at[k].at, inner.at[k].len);
                    put(s, "\n");
                    free(inner.at[k].at);
                }
                put(s, "end\n");
            }
            put(s, "}");
        }
        nodes++;
    }
    for (uint32_t k = below(3); k-- > 0 && nodes > 1;) {
        uint32_t i = below(nodes - 1), j = i + 1 + below(nodes - 1 - i);
        struct string *s = new_line(l, 1);
        if (first[i] == CS_NONE || below(2))
            put(s, "order $%u -> ", node_at[i]);
        else
            put(s, "order %%%s%u -> ", prefix, first[i]);
        put(s, "$%u", node_at[j]);
    }
    for (uint32_t k = below(3); k-- > 0 && nodes > 0;) {
        struct string *s = new_line(l, 2);
        put(s, "group g%u {", below(3));
        for (uint32_t m = 1 + below(3); m-- > 0;)
            put(s, " $%u", below(nodes));
        put(s, " }");
    }
    for (uint32_t k = below(4); k-- > 0 && made > 0;)
        put(new_line(l, 3), "output %%%s%u", prefix, below(made));
}

/* All lines, those of different kinds mixed when `mixed`. */
static char *join(struct lines *l, bool mixed)
{
    struct string s = {0};
    bool done[200] = {false};
    append(&s, "", 0);
    for (int k = 0; k < l->n; k++) {
        int take = k;
        if (mixed) { /* a random line; then the first of its kind that is left */
            do
                take = (int)below((uint32_t)l->n);
            while (done[take]);
            for (int i = 0; i < take; i++)
                if (!done[i] && l->kind[i] == l->kind[take]) take = i;
        }
        done[take] = true;
        append(&s, l->at[take].at, l->at[take].len);
        put(&s, mixed && below(3) == 0 ? "  # note\r\n\n" : "\n");
    }
    return s.at;
}

static void equal_str(const cs_graph *a, cs_str x, const cs_graph *b, cs_str y)
{
    assert_true(cs_span_eq(cs_name(a->pool, x), cs_name(b->pool, y)));
}

static void equal_type(const cs_graph *a, cs_type x, const cs_graph *b, cs_type y)
{
    cs_chars s = {0}, t = {0};
    assert_true(cs_type_print(a->pool, x, &s) && cs_type_print(b->pool, y, &t));
    assert_true(cs_span_eq((cs_span){s.at, s.len}, (cs_span){t.at, t.len}));
    cs_vec_fini(&s);
    cs_vec_fini(&t);
}

/* The same value, by name, origin and type; storages correspond one to one. */
static void equal_value(const cs_graph *a, uint32_t x, const cs_graph *b, uint32_t y)
{
    assert_int_equal(x == CS_NONE, y == CS_NONE);
    if (x == CS_NONE) return;
    const cs_value *u = &a->values.at[x], *v = &b->values.at[y];
    equal_str(a, u->name, b, v->name);
    equal_type(a, u->type, b, v->type);
    assert_int_equal(u->origin, v->origin);
    assert_int_equal(u->storage == CS_NONE, v->storage == CS_NONE);
    if (u->origin == CS_ORIGIN_NODE) assert_int_equal(u->from, v->from);
    if (u->origin == CS_ORIGIN_CAPTURE) equal_value(a->outer, u->from, b->outer, v->from);
}

static void equal_attr(const cs_graph *a, const cs_attr *x, const cs_graph *b, const cs_attr *y)
{
    equal_str(a, x->name, b, y->name);
    assert_int_equal(x->kind, y->kind);
    assert_int_equal(x->len, y->len);
    equal_type(a, x->type, b, y->type);
    for (size_t i = 0; i < x->len; i++) {
        if (x->kind == CS_ATTR_INTS) assert_true(x->ints[i] == y->ints[i]);
        if (x->kind == CS_ATTR_FLOATS) assert_memory_equal(&x->floats[i], &y->floats[i], 4);
        if (x->kind == CS_ATTR_STRINGS) assert_true(cs_span_eq(x->strings[i], y->strings[i]));
        if (x->kind == CS_ATTR_STRING) assert_int_equal(x->s[i], y->s[i]);
    }
    if (x->kind == CS_ATTR_INT) assert_true(x->i == y->i);
    if (x->kind == CS_ATTR_FLOAT) assert_memory_equal(&x->f, &y->f, 4);
}

static void equal_graph(const cs_graph *a, const cs_graph *b)
{
    assert_int_equal(a->nodes.len, b->nodes.len);
    assert_int_equal(a->values.len, b->values.len);
    assert_int_equal(a->storages.len, b->storages.len);
    assert_int_equal(a->effect, b->effect);
    for (uint32_t i = 0; i < a->nodes.len; i++) {
        const cs_node *m = &a->nodes.at[i], *n = &b->nodes.at[i];
        equal_str(a, m->op, b, n->op);
        equal_str(a, m->domain, b, n->domain);
        assert_int_equal(m->flags, n->flags);
        assert_int_equal(m->n_arg, n->n_arg);
        assert_int_equal(m->n_capture, n->n_capture);
        for (uint32_t k = 0; k < cs_n_reads(m); k++)
            equal_value(a, cs_args(a, m)[k], b, cs_args(b, n)[k]);
        assert_int_equal(m->n_out, n->n_out);
        for (uint32_t k = 0; k < m->n_out; k++)
            equal_value(a, cs_outs(a, m)[k], b, cs_outs(b, n)[k]);
        assert_int_equal(m->n_write, n->n_write);
        for (uint32_t k = 0; k < m->n_write; k++)
            equal_value(a, a->writes.at[m->write + k], b, b->writes.at[n->write + k]);
        assert_int_equal(m->n_allow, n->n_allow);
        for (uint32_t k = 0; k < m->n_allow; k++)
            equal_str(a, a->allow.at[m->allow + k], b, b->allow.at[n->allow + k]);
        assert_int_equal(m->n_attr, n->n_attr);
        for (uint32_t k = 0; k < m->n_attr; k++)
            equal_attr(a, &a->attrs.at[m->attr + k], b, &b->attrs.at[n->attr + k]);
        assert_int_equal(m->n_body, n->n_body);
        for (uint32_t k = 0; k < m->n_body; k++) {
            equal_str(a, a->bodies.at[m->body + k].attr, b, b->bodies.at[n->body + k].attr);
            equal_graph(a->bodies.at[m->body + k].graph, b->bodies.at[n->body + k].graph);
        }
        assert_int_equal(a->topo[i], b->topo[i]);
    }
    assert_int_equal(a->order.len, b->order.len);
    assert_int_equal(a->n_given, b->n_given);
    for (size_t i = 0; i < a->order.len; i++)
        assert_memory_equal(&a->order.at[i], &b->order.at[i], sizeof(cs_edge));
    assert_int_equal(a->groups.len, b->groups.len);
    for (size_t i = 0; i < a->groups.len; i++) {
        equal_str(a, a->groups.at[i].name, b, b->groups.at[i].name);
        assert_int_equal(a->groups.at[i].n_member, b->groups.at[i].n_member);
    }
    assert_int_equal(a->members.len, b->members.len);
    for (size_t i = 0; i < a->members.len; i++)
        assert_int_equal(a->members.at[i], b->members.at[i]);
    assert_int_equal(a->inputs.len, b->inputs.len);
    for (size_t i = 0; i < a->inputs.len; i++)
        equal_value(a, a->inputs.at[i], b, b->inputs.at[i]);
    assert_int_equal(a->outputs.len, b->outputs.len);
    for (size_t i = 0; i < a->outputs.len; i++)
        equal_value(a, a->outputs.at[i], b, b->outputs.at[i]);
}

static void random_round_trips(void **state)
{
    (void)state;
    size_t nodes = 0, nested = 0;
    for (uint64_t k = 0; k < 3000; k++) {
        seed = k * 7919;
        struct lines l = {0};
        uint32_t known = 0;
        if (below(2)) put(new_line(&l, 4), "opset 17 dom:3");
        put(new_line(&l, 5), "input %%v%u : %s", known, pick(types, 7));
        known++;
        for (uint32_t w = below(4); w-- > 0; known++) {
            struct string *s = new_line(&l, 5);
            put(s, "weight %%v%u : f32[4]", known);
            if (known > 1 && below(3) == 0) put(s, " = %%v%u", 1 + below(known - 1));
        }
        random_nodes(&l, "v", known, 0);
        char *plain = join(&l, false), *mixed = join(&l, true);
        cs_graph *a = read_text(plain), *b = read_text(mixed);
        char *out = write_text(a);
        cs_graph *c = read_text(out);
        char *again = write_text(c);
        equal_graph(a, b);
        equal_graph(a, c);
        assert_string_equal(out, again);
        nodes += a->nodes.len;
        for (size_t i = 0; i < a->bodies.len; i++)
            nested += a->bodies.at[i].graph->bodies.len;
        cs_graph_free(a);
        cs_graph_free(b);
        cs_graph_free(c);
        free(plain);
        free(mixed);
        free(out);
        free(again);
        for (int i = 0; i < l.n; i++)
            free(l.at[i].at);
    }
    assert_true(nodes > 5000 && nested > 500);
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
    put(&s, "%s%s", "opset 17 \"a b\":1\nweight %k1 : f32[2]\nweight %k2 : f32[2] = %k1\n"
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
        cmocka_unit_test(floats_read_back),
        cmocka_unit_test(opsets),
        cmocka_unit_test(ties),
        cmocka_unit_test(captures),
        cmocka_unit_test(the_inner_name_wins),
        cmocka_unit_test(effects_and_bodies),
        cmocka_unit_test(depth),
        cmocka_unit_test(faults),
        cmocka_unit_test(hostile_faults),
        cmocka_unit_test(many_opsets),
        cmocka_unit_test(probe),
        cmocka_unit_test(graphs_from_elsewhere),
        cmocka_unit_test(random_round_trips),
        cmocka_unit_test(a_long_file),
        cmocka_unit_test(stopping),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
