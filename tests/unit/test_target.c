/* Targets: every kind of condition taken and refused, functions, acc, boundaries, memory, names, what
 * malformed files are told, descriptions, failing allocations.
 */
#include "failing_alloc.h"

#include "target/embedded.h"
#include "target/schema.h"

#include "target_fixture.h"

static cutset_target *load(const char *yaml)
{
    cutset_target *t = NULL;
    cutset_error err = {0};
    CHECK(cs_target_load(&t, "t.yaml", cs_span_of(yaml), &err) == CUTSET_OK, "%s", err.message);
    return t;
}

/* ---- every kind of condition, on a small target ---- */

#define HEAD "name: t\nnodes:\n  rules:\n    - ops: [Op]\n"

static void judge_condition(const char *condition, const cs_row *rows, size_t n)
{
    char yaml[800];
    snprintf(yaml, sizeof yaml, HEAD "%s", condition);
    cutset_target *t = load(yaml);
    judge_rows(t, rows, n);
    cutset_target_free(t);
}
#define CONDITION(yaml, ...)                                                                       \
    judge_condition(yaml, (const cs_row[]){__VA_ARGS__},                                           \
                    sizeof((const cs_row[]){__VA_ARGS__}) / sizeof(cs_row))
#define OP(attrs) "opset 17\ninput %x : f32[2,N]\n%y : f32[2] = Op(%x)" attrs "\n"

static void test_attribute_conditions(void **state)
{
    (void)state;
    CONDITION("      attrs: [{name: a, is: [1, 2.5, x]}]", {OP("{a=1}"), ""}, {OP("{a=2.5}"), ""},
              {OP("{a=\"x\"}"), ""}, {OP(""), ""},
              {OP("{a=3}"), "attr: Op with a = 3 is not supported; it must be 1, 2.5 or x"},
              {OP("{a=0.5}"), "attr: Op with a = 0.5 is"},
              {OP("{a=\"y\"}"), "attr: Op with a = \"y\""}, {OP("{a=[1]}"), ""},
              {OP("{a=[1,1]}"), "attr: Op with a = [1, 1] is"},
              {OP("{a=tensor(f32[2])}"), "attr: Op whose attribute a is not known"});
    CONDITION("      attrs: [{name: a, is: [0], default: 1}]", {OP("{a=0}"), ""},
              {OP(""), "attr: Op with a = 1, the default, is not supported; it must be 0"});
    CONDITION("      attrs: [{name: a, each: [1, 2]}]", {OP("{a=[1,2,1]}"), ""}, {OP("{a=[]}"), ""},
              {OP("{a=2}"), ""}, {OP("{a=[1.0]}"), ""},
              {OP("{a=[1,3]}"), "attr: Op with a = [1, 3] is not supported; every element"});
    CONDITION("      attrs: [{name: a, min: -1, max: 4}]", {OP("{a=-1}"), ""},
              {OP("{a=[0,4]}"), ""},
              {OP("{a=4.5}"), "attr: Op with a = 4.5 is not supported; it must be from -1 to 4"},
              {OP("{a=\"x\"}"), "attr: Op with a = \"x\""});
    CONDITION("      attrs: [{name: a, absent: true}, {name: b, given: true}]", {OP("{b=1}"), ""},
              {OP("{a=1, b=1}"), "attr: Op with attribute a is not supported"},
              {OP(""), "attr: Op without attribute b is not supported"});
    CONDITION("      attrs: [{name: a, halves: true}]", {OP("{a=[1,2,1,2]}"), ""},
              {OP("{a=[1.5,1.5]}"), ""}, {OP("{a=[]}"), ""}, {OP("{a=[1,2,1]}"), "attr: "},
              {OP("{a=[\"p\",\"q\"]}"), "attr: "}, {OP("{a=7}"), "attr: "});
    CONDITION("      attrs: [{name: a, iota: true}]", {OP("{a=[0,1]}"), ""},
              {OP("{a=[1,0]}"), "attr: "}, {OP("{a=[0]}"), "attr: "},
              {OP("{a=[0,1,2]}"), "attr: "});
    CONDITION("      attrs: [{name: a, is: [1], when: {attr: b, is: [on], default: on}}]",
              {OP("{a=2, b=\"off\"}"), ""}, {OP("{a=2, b=\"on\"}"), "attr: "},
              {OP("{a=2}"), "attr: "}, {OP("{a=1}"), ""});
    CONDITION("      attrs: [{name: a, is: [1], when: {input: 1}}]", {OP("{a=2}"), ""},
              {"input %x : f32[2]\n%y = Op(%x, %x) {a=2}\n", "attr: "});
    CONDITION("      attrs: [{name: a, is: [1], since: 18}, {name: b, is: [1], until: 16}]",
              {OP("{a=2, b=2}"), ""}, {"opset 18\n%y = Op() {a=2}\n", "attr: Op with a = 2"},
              {"opset 16\n%y = Op() {b=2}\n", "attr: Op with b = 2"},
              {"%y = Op() {a=2}\n", "attr: "}, {"%y = Op() {b=2}\n", ""});
}

#define IN(type) "opset 17\ninput %x : " type "\n%y = Op(%x)\n"

static void test_argument_conditions(void **state)
{
    (void)state;
    CONDITION("      inputs: [{at: [1], name: p, given: true}]",
              {"%y = Op(%x, %x)\ninput %x : f32[]", ""},
              {IN("f32[]"), "attr: Op: input 1 (p) must be given"},
              {"input %x : f32[]\n%y = Op(%x, , %x)", "attr: Op: input 1 (p) must be given"});
    CONDITION(
        "      inputs: [{from: 1, absent: true}]", {IN("f32[]"), ""},
        {"input %x : f32[]\n%y = Op(%x, , %x)", "attr: Op: input 2 is not supported"},
        {"input %x : f32[]\n%y = Op(,,,,,,,,,,,,,,%x)", "attr: Op: input 14 is not supported"});
    CONDITION("      inputs: [{at: [0], rank: [0, 3]}]", {IN("f32[]"), ""}, {IN("f32[1,2,3]"), ""},
              {IN("f32[1]"), "rank: Op: input 0 has rank 1; it must be 0 or 3"},
              {IN("f32"), "rank: Op: input 0 has a rank that is not known; it must be 0 or 3"});
    CONDITION("      inputs: [{at: [0], min_rank: 1, max_rank: 2}]", {IN("f32[1]"), ""},
              {IN("f32[1,2]"), ""},
              {IN("f32[]"), "rank: Op: input 0 has rank 0; it must be from 1 to 2"},
              {IN("f32[1,2,3]"), "rank: "});
    CONDITION("      inputs: [{at: [0], static: true}]", {IN("f32[1,2]"), ""},
              {IN("f32[1,N]"), "shape: "}, {IN("f32[1,?]"), "shape: "}, {IN("f32"), "shape: "});
    CONDITION("      inputs: [{at: [0], dims: [{at: -1, min: 2, max: 4}, {at: 0, is: [1]}]}]",
              {IN("f32[1,4]"), ""},
              {IN("f32[1,5]"), "shape: Op: input 0 has dim -1 = 5; it must be from 2 to 4"},
              {IN("f32[2,4]"), "shape: Op: input 0 has dim 0 = 2; it must be 1"},
              {IN("f32[1,N]"), "shape: Op: input 0 has a dim -1 that is not a number"},
              {IN("f32[]"), "shape: Op: input 0 has no dim -1"},
              {IN("f32"), "shape: Op: input 0 has a shape that is not known; dim -1 matters"});
    CONDITION("      inputs: [{at: [0], dims: [{at: axis, default: 1, static: true}]}]",
              {IN("f32[N,4]"), ""}, {IN("f32[4,N]"), "shape: "},
              {"input %x : f32[4,N]\n%y = Op(%x) {axis=-2}", ""},
              {"input %x : f32[4,4]\n%y = Op(%x) {axis=7}", "shape: Op: input 0 has no dim 7"});
    CONDITION("      inputs: [{at: [0], const: true}]", {"weight %x : f32[2]\n%y = Op(%x)", ""},
              {IN("f32[2]"), "const: Op: input 0 must be a constant"});
    CONDITION("      inputs: [{at: [0], is: [3], max: 9}]",
              {"weight %v3 : i32[2]\n%y = Op(%v3)", ""}, {"weight %v3 : f32[2]\n%y = Op(%v3)", ""},
              {"weight %v3 : u8[2]\n%y = Op(%v3)", ""},
              {"weight %v4 : i16[2]\n%y = Op(%v4)",
               "attr: Op: input 0 = 4 is not supported; it must be 3"},
              {"weight %v-3 : i8[2]\n%y = Op(%v-3)", "attr: Op: input 0 = -3 is not"},
              {"weight %w : i8[2]\n%y = Op(%w)", "const: Op: input 0 is a constant whose value"},
              {"weight %s : str[2]\n%y = Op(%s)", "const: "}, {IN("i8[2]"), "const: "});
    CONDITION("      inputs: [{at: [0], is: [3], unseen: take}]",
              {"weight %w : i8[2]\n%y = Op(%w)", ""}, {IN("i8[2]"), "const: "},
              {"weight %v4 : i8[1]\n%y = Op(%v4)", "attr: "});
    CONDITION(
        "      types: [f32]\n      inputs: [{at: [1], types: [i64]}, {from: 2, types: [i8]}]",
        {"input %x : f32[]\ninput %i : i64[]\ninput %b : i8[]\n%y : f32[] = Op(%x, %i, %b, %b)",
         ""},
        {"input %x : f32[]\n%y : f32[] = Op(%x, %x)",
         "type: Op does not take f32 (input 1); it takes i64"},
        {"input %x : f32[]\n%y : f32[] = Op(%x, , , %x)",
         "type: Op does not take f32 (input 3); it takes i8"});
    CONDITION(
        "      outputs: [{at: [1], absent: true}, {at: [2], unused: true}, {at: [0], rank: [1]}]",
        {"%y : f32[2], _, %u = Op()", ""},
        {"%y : f32[2], %u = Op()", "attr: Op: output 1 is not supported"},
        {"%y : f32[2], _, %u = Op()\noutput %u",
         "attr: Op: output 2 is not supported where it is read"},
        {"%y : f32[] = Op()", "rank: Op: output 0 has rank 0; it must be 1"});
    CONDITION("      since: 13\n      until: 17", {"opset 13\n%y = Op()", ""},
              {"opset 17\n%y = Op()", ""},
              {"opset 12\n%y = Op()", "opset: Op of opset 12 is not supported; opset 13 to 17 are"},
              {"opset 18\n%y = Op()", "opset: "}, {"%y = Op()", ""});
    /* an output read by another node is used */
    cutset_target *t = load(HEAD "      outputs: [{at: [0], unused: true}]");
    cs_graph *g = read_graph("%y = Op()\n%z = Other(%y)\n%q = Op()");
    assert_string_equal(judge(t, g, 0), "attr: Op: output 0 is not supported where it is read");
    assert_string_equal(judge(t, g, 2), "");
    cs_graph_free(g);
    cutset_target_free(t);
}

static void test_names_and_all(void **state)
{
    (void)state;
    cutset_target *t =
        load("name: t\nopset: {min: 9, max: 20}\ndds: [D, \"x:D\"]\nnodes:\n  all: true\n"
             "  except: [No, \"x:No\", \"gone:*\", \"*:Never\", \"aten::add\"]\n"
             "  rules: [{ops: [\"ai.onnx:Op\"], types: [f32]}]\n");
    const cs_row rows[] = {
        {"%y = Yes()", ""},
        {"%y = No()", "op: No is not supported"},
        {"%y = z:No()", ""},
        {"%y = x:No()", "op: x:No is not supported"},
        {"%y = gone:Yes()", "op: gone:Yes is not"},
        {"%y = any:Never()", "op: any:Never"},
        {"%y = Never()", "op: Never"},
        {"%y = aten:add()", "op: aten:add"},
        {"%y = D()", "dds: D has"},
        {"%y = x:D()", "dds: x:D has"},
        {"%y = z:D()", ""},
        {"%y : i64[] = Op()", "type: Op"},
        {"%y : i64[] = x:Op()", ""},
        {"%y = Op()", "type: Op does not take a value of unknown type"},
        {"%y : seq(f32) = Yes()", ""},
        {"opset 21\n%y = Yes()", "opset: Yes of opset 21"},
        {"opset 9 x:30\n%y = x:Yes()", ""},
        {"%y = Yes() {\nbody b\n%z = No()\noutput %z\nend\n}",
         "op: Yes holds z in its b: No is not"},
        {"%y = Yes() {\nbody b\n%z = Sure()\noutput %z\nend\n}", ""},
    };
    ROWS(t, rows);
    cutset_target_free(t);
}

static void test_functions(void **state)
{
    (void)state;
    cutset_target *t = open_target("tensorrt-11"), *all = open_target("onnxruntime");
    const struct {
        const char *graph, *want;
    } rows[] = {
        {"input %x : f32[2]\n%y : f32[2] = my:F(%x) {\nbody body\n%a : f32[2] = Relu(%x)\noutput "
         "%a\nend\n}",
         ""},
        {"input %x : f32[2]\n%y : f32[2] = my:F(%x) {\nbody body\n%a : f32[2] = Det(%x)\noutput "
         "%a\nend\n}",
         "op: my:F holds a in its body: Det is not supported"},
        {"input %x : f32[2]\n%y : f32[2] = my:F(%x)",
         "op: my:F is a function whose body is too large to be looked at"},
    };
    for (size_t i = 0; i < 3; i++) {
        cs_graph *g = read_graph(rows[i].graph);
        g->nodes.at[0].flags |= CS_NODE_FUNCTION;
        assert_string_equal(judge(t, g, 0), rows[i].want);
        assert_string_equal(judge(all, g, 0), "");
        cs_graph_free(g);
    }
    cutset_target_free(t);
    cutset_target_free(all);
}

/* ---- acc, boundaries, memory, names ---- */

static void test_acc(void **state)
{
    (void)state;
    cutset_target *t = open_target("acc");
    const cs_row rows[] = {
        {"%y = Foo() @acc", ""},
        {"%y = Foo() @host,acc", ""},
        {"%y = Foo() @host", "user: Foo is marked for other targets"},
        {"%y = Foo()", "op: Foo is not marked @acc"},
        {"%y = If() @acc {\nbody b\n%z = Foo()\noutput %z\nend\n}", ""},
    };
    ROWS(t, rows);
    assert_true(t->marked_only);
    assert_string_equal(cutset_target_name(t), "acc");
    assert_int_equal(t->n_patterns, 0);
    cs_storage s = {.bytes = 100, .elem = CS_F32};
    assert_int_equal(cs_memory_host(&t->memory, &s) + t->memory.host_base, 100);
    assert_int_equal(cs_memory_device(&t->memory, &s) + t->memory.device_base, 100);
    const char *why;
    cs_pool *pool = cs_pool_new();
    assert_true(cs_target_may_cross(t, pool, 0, true, &why));
    cs_pool_free(pool);
    cutset_target_free(t);
}

static bool crosses(const cutset_target *t, const char *type, bool input, const char *want)
{
    cs_pool *pool = cs_pool_new();
    cs_type id;
    const char *why = "";
    assert_int_equal(cs_type_parse(pool, cs_span_of(type), &id, NULL), CUTSET_OK);
    bool may = cs_target_may_cross(t, pool, id, input, &why);
    assert_int_equal(may, why == NULL);
    if (!may) assert_string_equal(why, want);
    cs_pool_free(pool);
    return may;
}

static void test_boundary(void **state)
{
    (void)state;
    cutset_target *t = open_target("tensorrt");
    assert_string_equal(cutset_target_name(t), "tensorrt-11");
    assert_true(crosses(t, "f32[1,N,?]", true, NULL));
    assert_true(crosses(t, "u8[2]", false, NULL));
    assert_true(crosses(t, "i64[]", true, NULL));
    assert_true(crosses(t, "bf16[1,1,1,1,1,1,1,1]", true, NULL));
    assert_false(crosses(t, "u4[2]", true, "u4 cannot cross an engine's boundary"));
    assert_false(crosses(t, "f64[2]", true, "f64 cannot cross an engine's boundary"));
    assert_false(
        crosses(t, "f32", true, "a value of unknown rank cannot cross an engine's boundary"));
    assert_false(
        crosses(t, "?", true, "a value of unknown type cannot cross an engine's boundary"));
    assert_false(crosses(t, "seq(f32)", true, "only tensors can cross an engine's boundary"));
    assert_false(crosses(t, "f32[1,1,1,1,1,1,1,1,1]", true,
                         "its rank is too high to cross an engine's boundary"));
    cutset_target_free(t);
    t = load(
        "name: t\nboundary: {types: [f32], inputs: [bool], outputs: [i64]}\nnodes: {all: true}\n");
    assert_true(crosses(t, "bool[2]", true, NULL));
    assert_false(crosses(t, "bool[2]", false, "bool cannot cross an engine's boundary"));
    assert_true(crosses(t, "i64", false, NULL));
    assert_false(crosses(t, "i64", true, "i64 cannot cross an engine's boundary"));
    cutset_target_free(t);
    t = open_target("onnxruntime");
    assert_true(crosses(t, "seq(f32)", true, NULL));
    assert_true(crosses(t, "?", false, NULL));
    cutset_target_free(t);
}

static void test_memory(void **state)
{
    (void)state;
    cutset_target *t = load(
        "name: t\nweights: refit\nmemory: {host_base: 1KiB, host_per_weight_byte: {default: 4.0, "
        "i8: 18.0}, device_base: 7, device_per_weight_byte: 1.2}\nnodes: {all: true}\n");
    cs_storage f = {.bytes = 3, .elem = CS_F32}, i = {.bytes = 3, .elem = CS_I8};
    cs_storage huge = {.bytes = INT64_MAX / 2, .elem = CS_I8},
               unknown = {.bytes = -1, .elem = CS_F32};
    assert_int_equal(t->memory.host_base, 1024);
    assert_int_equal(t->memory.device_base, 7);
    assert_int_equal(cs_memory_host(&t->memory, &f), 12);
    assert_int_equal(cs_memory_host(&t->memory, &i), 54);
    assert_int_equal(cs_memory_device(&t->memory, &f), 4); /* 3.6 rounded up */
    assert_true(cs_memory_host(&t->memory, &huge) == INT64_MAX);
    assert_int_equal(cs_memory_host(&t->memory, &unknown), 0);
    assert_true(t->refit);
    cutset_target_free(t);
    t = load(
        "name: t\nmemory: {host_per_weight_byte: 2, device_per_weight_byte: {default: 1, f16: 0}}\n"
        "nodes: {all: true}\n");
    assert_int_equal(cs_memory_host(&t->memory, &i), 6);
    assert_int_equal(t->memory.device_factor[CS_F16], 0);
    assert_int_equal(t->memory.device_factor[CS_F32], 1000000);
    cutset_target_free(t);
}

static void test_shipped(void **state)
{
    (void)state;
    const char *last = "";
    size_t n = 0;
    for (const char *name; (name = cutset_target_shipped(n)) != NULL; n++) {
        assert_true(strcmp(last, name) < 0);
        cutset_target *t = open_target(name);
        assert_string_equal(cutset_target_name(t), name);
        cutset_target_free(t);
        last = name;
    }
    assert_int_equal(n, cs_embedded_count + 1);
    assert_null(cutset_target_shipped(n + 5));
    cutset_target *a = open_target("tensorrt"), *b = open_target("tensorrt-10.15");
    assert_true(a->hash != b->hash);
    assert_int_equal(a->n_patterns, 5);
    assert_true(a->patterns[4].qdq);
    assert_string_equal(a->patterns[0].steps[1].ops[0], "BatchNormalization");
    cutset_target_free(a);
    cutset_target_free(b);
}

/* The target files that tests use load by path, from any folder. */
static void test_files(void **state)
{
    (void)state;
    const char *const files[] = {"mock-a",  "mock-b",          "unit-memory",
                                 "factors", "narrow-boundary", "builder"};
    const char *source = getenv("CUTSET_SOURCE");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[1000];
        snprintf(path, sizeof path, "%s/tests/targets/%s.yaml", source ? source : ".", files[i]);
        cutset_target *t = open_target(path);
        assert_string_equal(cutset_target_name(t), files[i]);
        const cs_build *build = t->rules->build;
        assert_int_equal(build != NULL, i == 5);
        if (build != NULL) {
            assert_int_equal(build->n_argv, 4);
            assert_string_equal(build->argv[3], "{shapes}");
            assert_string_equal(build->artefact, ".engine");
            assert_int_equal(build->deadline, 1800);
            assert_int_equal(build->log_limit, 16 << 20);
        }
        cutset_target_free(t);
    }
}

static const struct {
    const char *name;
    cutset_status status;
    const char *message;
} names[] = {
    {"host", CUTSET_USAGE, "host is always there"},
    {"tensor", CUTSET_USAGE,
     "unknown target \"tensor\"; shipped are acc, onnxruntime, tensorrt-10.15, "},
    {"", CUTSET_USAGE, "unknown target"},
    {"tensorrt-", CUTSET_USAGE, "unknown target"},
    {"./nothing.yaml", CUTSET_SYSTEM, "./nothing.yaml"},
    {"nothing.yaml", CUTSET_SYSTEM, "nothing.yaml"},
    {"/", CUTSET_SYSTEM, "/"},
};

static void test_open_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cutset_target *t = NULL;
        cutset_error err = {0};
        assert_int_equal(cutset_target_open(&t, names[i].name, &err), names[i].status);
        assert_null(t);
        CHECK(strstr(err.message, names[i].message) != NULL, "%s: %s", names[i].name, err.message);
        assert_int_equal(cutset_target_open(&t, names[i].name, NULL), names[i].status);
    }
    cutset_target_free(NULL);
}

/* ---- malformed files ---- */

#define OK_NODES "nodes: {all: true}\n"
#define BAD_RULE(rule) "name: t\nnodes: {rules: [{ops: [A], " rule "}]}\n"
static const struct {
    const char *yaml, *message; /* after "t.yaml: " */
} bad_files[] = {
    {"", "empty"},
    {"# nothing\n", "empty"},
    {OK_NODES, "Missing required mapping field: name"},
    {"name: t\n", "Missing required mapping field: nodes"},
    {"name: t\n" OK_NODES "colour: red\n", "near line 2: Unexpected key: colour"},
    {"name: t\nname: u\n" OK_NODES, "near line 1, key \"name\": Mapping field already seen"},
    {"name: [t]\n" OK_NODES, "line 1, key \"name\": Expecting STRING"},
    {"- t\n", "Expecting MAPPING"},
    {"name: t\n" OK_NODES "---\nname: u\n", "more than one YAML document"},
    {"name: &n t\n" OK_NODES "summary: *n\n", "line 3, key \"summary\": YAML alias unsupported"},
    {"name: t\nnodes: {all: true\n", "libyaml"},
    {"name: t\nnodes: {all: true}\x01\n", "libyaml: control characters"},
    {"name: T\n" OK_NODES, "name: \"T\" is not a target's name; at most 100 of a-z 0-9 . _ -"},
    {"name: acc\n" OK_NODES, "name: \"acc\" is built in"},
    {"name: host\n" OK_NODES, "name: \"host\" is built in"},
    {"name: t\nnodes: {all: yes}\n", "nodes.all: \"yes\" is neither true nor false"},
    {"name: t\nnodes: {all: false}\n", "nodes: takes no operator"},
    {"name: t\nnodes: {}\n", "nodes: takes no operator"},
    {"name: t\nweights: fluid\n" OK_NODES, "weights: \"fluid\" is neither baked nor refit"},
    {"name: t\nopset: {min: 9.5}\n" OK_NODES, "opset.min: \"9.5\" is not a whole number from 1"},
    {"name: t\nopset: {min: 9, max: 8}\n" OK_NODES, "opset: min is over max"},
    {"name: t\nmemory: {host_base: -1}\n" OK_NODES, "memory.host_base: \"-1\" is not a size"},
    {"name: t\nmemory: {host_base: 1parsec}\n" OK_NODES,
     "memory.host_base: \"1parsec\" is not a size"},
    {"name: t\nmemory: {host_per_weight_byte: four}\n" OK_NODES,
     "memory.host_per_weight_byte: \"four\" is not a number"},
    {"name: t\nmemory: {host_per_weight_byte: -1}\n" OK_NODES,
     "memory.host_per_weight_byte: \"-1\" is not a factor"},
    {"name: t\nmemory: {host_per_weight_byte: nan}\n" OK_NODES, "memory.host_per_weight_byte: "},
    {"name: t\nmemory: {host_per_weight_byte: {f32: 2}}\n" OK_NODES,
     "line 2, key \"f32\": Missing required mapping field: default"},
    {"name: t\nmemory: {device_per_weight_byte: {default: 1, f99: 2}}\n" OK_NODES,
     "Unexpected key: f99"},
    {"name: t\nmemory: {device_per_weight_byte: [1]}\n" OK_NODES,
     "line 2, key \"device_per_weight_byte\": Expecting STRING"},
    {"name: t\nboundary: {types: [float]}\n" OK_NODES,
     "boundary.types: \"float\" is not an element type"},
    {"name: t\ntensors: {max_rank: 2000}\n" OK_NODES,
     "tensors.max_rank: \"2000\" is not a whole number"},
    {"name: t\npatterns: [{name: p, steps: [{ops: [A]}]}]\n" OK_NODES,
     "pattern \"p\": steps: a pattern has at least two"},
    {"name: t\npatterns: [{name: p, qdq: true, steps: [{ops: [A]}]}]\n" OK_NODES,
     "pattern \"p\": steps: a qdq pattern has none"},
    {"name: t\npatterns: [{name: p, steps: [{ops: []}, {ops: [A]}]}]\n" OK_NODES,
     "line 2, key \"ops\""},
    {"name: t\nbuild: {argv: []}\n" OK_NODES, "line 2, key \"argv\""},
    {"name: t\nbuild: {argv: [a], deadline: 0}\n" OK_NODES,
     "build.deadline: \"0\" is not a whole number"},
    {"name: t\nnodes: {rules: [{ops: [A]}, {ops: [B, A]}]}\n",
     "nodes.rules: A stands in two rules"},
    {"name: t\nnodes: {all: true, except: [A], rules: [{ops: [A]}]}\n",
     "nodes.except: A has a rule too"},
    {"name: t\nnodes: {rules: [{types: [f32]}]}\n", "Missing required mapping field: ops"},
    {BAD_RULE("types: [f32, f33]"), "nodes.rules[0] (A): types: \"f33\" is not an element type"},
    {BAD_RULE("since: 9, until: 8"), "nodes.rules[0] (A): since: comes after until"},
    {BAD_RULE("attrs: [{name: x}]"), "nodes.rules[0] (A): x: no condition"},
    {BAD_RULE("attrs: [{is: [1]}]"), "line 2"},
    {BAD_RULE("attrs: [{name: x, is: []}]"), "line 2, key \"is\""},
    {BAD_RULE("attrs: [{name: x, min: low}]"), "nodes.rules[0] (A): min: \"low\" is not a number"},
    {BAD_RULE("attrs: [{name: x, is: [1], when: {attr: y}}]"),
     "nodes.rules[0] (A): when: give attr and is"},
    {BAD_RULE("attrs: [{name: x, is: [1], when: {input: 40}}]"),
     "nodes.rules[0] (A): when.input: \"40\""},
    {BAD_RULE("inputs: [{const: true}]"), "nodes.rules[0] (A): at: give the positions"},
    {BAD_RULE("inputs: [{at: [0], from: 1, const: true}]"),
     "nodes.rules[0] (A): at: give the positions"},
    {BAD_RULE("inputs: [{at: [11], const: true}]"),
     "nodes.rules[0] (A): at: \"11\" is not a whole number"},
    {BAD_RULE("inputs: [{at: [0], rank: [32]}]"), "nodes.rules[0] (A): rank: \"32\""},
    {BAD_RULE("inputs: [{at: [0], unused: true}]"),
     "nodes.rules[0] (A): inputs: unused goes with outputs"},
    {BAD_RULE("outputs: [{at: [0], const: true}]"),
     "nodes.rules[0] (A): outputs: an output has no value"},
    {BAD_RULE("inputs: [{at: [0], unseen: maybe}]"),
     "nodes.rules[0] (A): unseen: \"maybe\" is neither"},
    {BAD_RULE("inputs: [{at: [0], dims: [{at: 1}]}]"), "nodes.rules[0] (A): dims: no condition"},
    {BAD_RULE("inputs: [{at: [0], dims: [{at: axis, static: true}]}]"),
     "nodes.rules[0] (A): dims.at: \"axis\" is an attribute; give its default too"},
    {BAD_RULE("inputs: [{at: [0], dims: [{at: 1, default: 1, static: true}]}]"),
     "nodes.rules[0] (A): dims.default"},
};

static void test_malformed_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        cutset_target *t = NULL;
        cutset_error err = {0};
        char want[200];
        snprintf(want, sizeof want, "t.yaml: %s", bad_files[i].message);
        assert_int_equal(cs_target_load(&t, "t.yaml", cs_span_of(bad_files[i].yaml), &err),
                         CUTSET_BAD);
        assert_null(t);
        bool told = strncmp(err.message, want, strlen(want)) == 0 ||
                    (strncmp(err.message, "t.yaml: ", 8) == 0 &&
                     strstr(err.message, bad_files[i].message) != NULL);
        CHECK(told, "%s\n  wanted \"%s\"\n  got    \"%s\"", bad_files[i].yaml, want, err.message);
        assert_null(strchr(err.message, '\n'));
    }
    static char large[CS_YAML_MAX + 1];
    memset(large, '#', sizeof large);
    cutset_target *t = NULL;
    cutset_error err = {0};
    assert_int_equal(cs_target_load(&t, "t.yaml", (cs_span){large, sizeof large}, &err),
                     CUTSET_BAD);
    assert_non_null(strstr(err.message, "at most 1 MiB"));
}

/* ---- description and memory failures ---- */

static int collect(void *payload, const void *bytes, size_t len)
{
    char *text = payload;
    size_t used = strlen(text);
    if (used + len < 200000) {
        memcpy(text + used, bytes, len);
        text[used + len] = 0;
    }
    return 0;
}

static void test_describe(void **state)
{
    (void)state;
    static char text[200000];
    for (size_t i = 0; cutset_target_shipped(i) != NULL; i++) {
        cutset_target *t = open_target(cutset_target_shipped(i));
        text[0] = 0;
        assert_int_equal(cutset_target_describe(t, 0, collect, text, NULL), CUTSET_OK);
        assert_non_null(strstr(text, t->name));
        for (const char *line = text; *line != 0; line += strcspn(line, "\n") + 1)
            CHECK(strcspn(line, "\n") <= 80, "longer than 80 columns: %.90s", line);
        text[0] = 0;
        assert_int_equal(cutset_target_describe(t, 1, collect, text, NULL), CUTSET_OK);
        assert_int_equal(text[0], '{');
        cutset_target_free(t);
    }
}

/* Every allocation fails once: an error, nothing leaked; and the sentence of a refusal too. */
static void test_allocation_failures(void **state)
{
    (void)state;
    const char *yaml = "name: t\nmemory: {host_per_weight_byte: {default: 4}}\n"
                       "patterns: [{name: p, steps: [{ops: [A]}, {ops: [B]}]}]\n"
                       "nodes: {rules: [{ops: [A], types: [f32], attrs: [{name: x, is: [1]}]}]}\n"
                       "build: {argv: [a]}\n";
    long live = alloc_live();
    for (long n = 0;; n++) {
        cutset_target *t = NULL;
        cutset_error err = {0};
        alloc_fail_at(n);
        cutset_status status = cs_target_load(&t, "t.yaml", cs_span_of(yaml), &err);
        if (!alloc_failed()) {
            alloc_fail_at(-1);
            assert_int_equal(status, CUTSET_OK);
            cutset_target_free(t);
            assert_int_equal(alloc_live(), live);
            assert_true(n > 20);
            break;
        }
        assert_int_equal(status, CUTSET_SYSTEM);
        assert_null(t);
        assert_int_equal(alloc_live(), live);
    }
    alloc_fail_at(0);
    cutset_target *acc = NULL;
    assert_int_equal(cutset_target_open(&acc, "acc", NULL), CUTSET_SYSTEM);
    alloc_fail_at(-1);
    assert_int_equal(alloc_live(), live);
}

static void test_rule_names(void **state)
{
    (void)state;
    assert_string_equal(cs_rule_name(CS_RULE_OP), "op");
    assert_string_equal(cs_rule_name(CS_RULE_BUDGET), "budget");
    assert_string_equal(cs_rule_name((cs_rule)999), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attribute_conditions),
        cmocka_unit_test(test_argument_conditions),
        cmocka_unit_test(test_names_and_all),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_acc),
        cmocka_unit_test(test_boundary),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_shipped),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_open_failures),
        cmocka_unit_test(test_malformed_files),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_rule_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
