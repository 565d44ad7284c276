/* The text form: every message, with its place; and what is taken for text. */
#include "graph_text.h"

static const char example[] = "\n# a graph\n  input %x : f32[1]\n";

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
        {"opset 1 a:1 a:2", "line 1, column 13: this domain has a version already: remove one"},
        {"opset 1 ai.onnx:2", "line 1, column 9: this domain has a version already: remove one"},
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
        {"%y = Op() {a=1.5.2}", "line 1, column 14: malformed number: write it like 1.5 or 1e-05"},
        {"%y = Op() {a=1.5f}", "line 1, column 14: malformed number: write it like 1.5 or 1e-05"},
        {"%y = Op() {a=0x10}",
         "line 1, column 14: malformed or over 64 bits: write an integer of 64 bits"},
        {"%y = Op() {a=9223372036854775808}",
         "line 1, column 14: malformed or over 64 bits: write an integer of 64 bits"},
        {"%y = Op() {a=1e39}", "line 1, column 14: a number beyond f32: write inf or -inf"},
        {"%y = Op() {a=-3.4028236e+38}",
         "line 1, column 14: a number beyond f32: write inf or -inf"},
        {"%y = Op() {a=[1,2.0]}",
         "line 1, column 17: a list of more than one kind: write only "
         "integers, only numbers with '.' or 'e', only strings, only tensors or only types"},
        {"%y = Op() {a=[\"b\",2]}",
         "line 1, column 19: a list of more than one kind: write only "
         "integers, only numbers with '.' or 'e', only strings, only tensors or only types"},
        {"%y = Op() {a=[1,]}", "line 1, column 17: ']' is not expected here: write a number, a "
                               "string, tensor(TYPE), type(TYPE) or ']'"},
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
        {"%y = If() {b=1} {\nbody a\nend\nbody b\n%z = Op() {c=2, d=1}\nend\n}",
         "line 4, column 6: attribute 'b' is given twice: remove one"},
        {"%y = If() {\"b\"=1} {\nbody c\n%z = Op() {b=2} {\nbody b\nend\n}\nend\n}",
         "line 4, column 6: attribute 'b' is given twice: remove one"},
        {"%y = If() {\nbody \"\"\nend\n}", "line 2, column 6: an empty name: give the body a name"},
        {"%y = If() {\n} x", "line 2, column 3: 'x' is not expected here: write the end of the "
                             "line"},
        {"%a = Op(%b)\n%b = Op(%a)", "cycle: %a -> %b -> %a: remove one of these edges"},
        {"%a = Op()\n%b = Op(%a)\norder %b -> %a",
         "cycle: %a -> %b -> %a (by order edge): remove one of these edges"},
        {"%a, %b = Op()\norder %b -> %a",
         "cycle: %a -> %a (by order edge): remove one of these edges"},
        {"%a = If() {\nbody b\noutput %a\nend\n}", "cycle: %a -> %a: remove one of these edges"},
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
        "",
        "\n\n",
        "# comment",
        "  \t# c\n\n%y = Op()",
        "%y",
        "() = Op()",
        "_ = Op()",
        "graph x",
        "opset 17",
        "input %x : f32",
        "weight %w : f32[1]",
        "order %a -> %b",
        "group g { %a }",
        "output %y",
        "\xef\xbb\xbfgraph x",
        "input\tx",
        "\r\ninput %x : f32",
        "# caf\xc3\xa9\ngraph x",
    };
    static const char *const no[] = {
        "graph {\n  node {",
        "graph: 1",
        "ir_version: 8",
        "{\"ir\": 1}",
        "<ir_version: 8>",
        "\x08\x08\x12\x00",
        "end",
        "graphx y",
        "input {",
        "PK\x03\x04",
        "graph",
        "_x = Op()",
        "graph x\x01",
        "\x7f"
        "ELF",
        "output",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults),
        cmocka_unit_test(hostile_faults),
        cmocka_unit_test(many_opsets),
        cmocka_unit_test(probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
