/* TorchScript: reading and its faults, schemas, memory, what callers say, plans read back, and every
 * call without memory.
 */
#include "failing_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "torch/lower.h"

/* ---- the text ---- */

#define HEAD                                                                                       \
    "graph(%self : __torch__.M, %x : Tensor, %l : Tensor[], %n : int, %c : bool):\n"               \
    "  %one : int = prim::Constant[value=1]()\n  %no : bool = prim::Constant[value=0]()\n"         \
    "  %none : NoneType = prim::Constant()\n"

static const char everything[] = /* a value, a list, an attribute, blocks, a loop */
    HEAD "  %w : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
         "  %s : int = aten::size(%x, %one)\n"
         "  %k : int[] = prim::ListConstruct(%s, %one), scope: __module.a/b # m.py:1:1\n"
         "  %y : Tensor = aten::mul(%x, %w) # m.py:2:1\n"
         "  %z : Tensor = prim::If(%c) # m.py:3:1\n"
         "    block0():\n"
         "      %a : Tensor = aten::view(%y, %k)\n"
         "      %b : Tensor = aten::log_sigmoid(%a)\n"
         "       = prim::Print(%b)\n"
         "      -> (%b)\n"
         "    block1():\n"
         "      %d : Tensor[] = aten::append(%l, %y)\n"
         "      -> (%y)\n"
         "  %i : Tensor = prim::Loop(%n, %c, %z)\n"
         "    block0(%j : int, %u : Tensor):\n"
         "      %v : Tensor = aten::add(%u, %u, %j)\n"
         "      -> (%c, %v)\n"
         "  %r : Tensor = aten::relu(%i)\n"
         "  return (%r, %l)\n";

static cutset_status open_text(cutset_model **m, const char *text, cutset_error *err)
{
    const cutset_torchscript in = {.text = text, .len = strlen(text)};
    return cutset_model_open_torchscript(m, &in, err);
}

static void test_script(void **state)
{
    (void)state;
    cs_script s;
    cutset_error err = {0};
    assert_int_equal(cs_script_parse(&s, cs_span_of(everything), &err), CUTSET_OK);
    assert_int_equal(s.lines.len, 15);
    assert_int_equal(s.blocks.len, 4);
    assert_int_equal(s.n_numbers, 11);
    assert_true(s.has_self);
    const cs_ts_line *branch = &s.lines.at[7];
    assert_int_equal(branch->kind, CS_TS_IF);
    assert_int_equal(branch->end, 12);
    assert_int_equal(branch->n_inner, 2);
    assert_int_equal(s.lines.at[10].number, 6); /* size, list, mul, If, view, log_sigmoid, Print */
    cs_script_fini(&s);
}

/* Comments and line breaks do not change what a text is. */
static void test_hash(void **state)
{
    (void)state;
    static const char one[] = HEAD "  %y : Tensor = aten::relu(%x) # a.py:1:2\n  return (%y)\n";
    static const char two[] = HEAD "%y : Tensor = aten::relu(%x)\nreturn (%y)";
    static const char three[] = HEAD "  %y : Tensor = aten::tanh(%x)\n  return (%y)\n";
    cs_script a, b, c;
    assert_int_equal(cs_script_parse(&a, cs_span_of(one), NULL), CUTSET_OK);
    assert_int_equal(cs_script_parse(&b, cs_span_of(two), NULL), CUTSET_OK);
    assert_int_equal(cs_script_parse(&c, cs_span_of(three), NULL), CUTSET_OK);
    assert_true(a.hash == b.hash && a.hash != c.hash);
    cs_script_fini(&a);
    cs_script_fini(&b);
    cs_script_fini(&c);
}

static const struct {
    const char *type;
    cs_ts_base base;
    const char *tensor; /* its spelling in the text form */
} types[] = {
    {"Tensor", CS_TS_TENSOR, "?"},
    {"Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", CS_TS_TENSOR, "f32[2,3]"},
    {"Long(*, 3)", CS_TS_TENSOR, "i64[?,3]"},
    {"Half(SS(-2), 3)", CS_TS_TENSOR, "f16[?,3]"},
    {"Double(strides=[], requires_grad=0, device=cpu)", CS_TS_TENSOR, "f64[]"},
    {"Float(requires_grad=0, device=cuda:0)", CS_TS_TENSOR, "f32"},
    {"Bool()", CS_TS_TENSOR, "bool[]"},
    {"int", CS_TS_INT, NULL},
    {"int[]", CS_TS_LIST, NULL},
    {"Tensor?[]", CS_TS_LIST, NULL},
    {"float[2]?", CS_TS_LIST, NULL},
    {"(Tensor, (int, str)[])", CS_TS_TUPLE, NULL},
    {"()", CS_TS_TUPLE, NULL},
    {"Dict(str, Dict(int, Tensor))", CS_TS_DICT, NULL},
    {"Union(float, int)", CS_TS_NUMBER, NULL},
    {"Union(Tensor, int)", CS_TS_OTHER, NULL},
    {"NamedTuple(a : Tensor, b : int)", CS_TS_OTHER, NULL},
    {"__torch__.a.B", CS_TS_OBJECT, NULL},
    {"Enum<__torch__.Color>", CS_TS_PLAIN, NULL},
    {"Future(Tensor)", CS_TS_OTHER, NULL},
    {"Device", CS_TS_DEVICE, NULL},
};

static void test_types(void **state)
{
    (void)state;
    cs_pool *pool = cs_pool_new();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const cs_span text = cs_span_of(types[i].type);
        cs_scan c = {text.at, text.at + text.len, text.at, NULL, ""};
        cs_ts_type t;
        cs_chars spelled = {0};
        if (cs_ts_scan_type(&c, pool, &t)) fail_msg("%s: %s", types[i].type, c.why);
        assert_true(c.at == c.end);
        assert_int_equal(t.base, types[i].base);
        if (!types[i].tensor) continue;
        assert_true(cs_type_print(pool, t.type, &spelled));
        assert_true(cs_span_is((cs_span){spelled.at, spelled.len}, types[i].tensor));
        cs_vec_fini(&spelled);
    }
    cs_pool_free(pool);
}

static const struct {
    const char *text, *says;
} faults[] = {
    {"", "line 1, column 1: the text ends in the middle"},
    {"graph(", "line 1, column 7: the text ends"},
    {"digraph", "'digraph' is not expected here: write graph(...)"},
    {"graph(%x : Tensor):\n  return (%y)\n", "line 2, column 11: %y is not defined here"},
    {"graph(%x : Tensor, %x : Tensor):\n  return (%x)\n", "line 1, column 20: %x is defined twice"},
    {HEAD "  %y : Tensor = aten::relu(%x)\n", "line 6, column 1: the text ends"},
    {HEAD "  %y : Tensor = aten::relu(%x\n  return (%y)",
     "line 6, column 3: 'return' is not expected"},
    {HEAD "  %y : Tensor = relu(%x)\n  return (%y)", "column 17: 'relu' is no operator"},
    {HEAD "  %y : Tensor = ^Fn(1)(%x)\n  return (%y)", "'^' is not expected here"},
    {HEAD "  %y : Tensor = prim::CallMethod[name=\"forward\"](%self, %x)\n  return (%y)",
     "is a call that is not inlined"},
    {HEAD "  %y : Tensor = prim::CallFunction(%x, %x)\n  return (%y)",
     "is a call that is not inlined"},
    {HEAD
     "  %y : Tensor = prim::FusionGroup_0(%x)\n  return (%y)\nwith prim::FusionGroup_0 = graph(",
     "line 5, column 17: prim::FusionGroup_0 is no known construct"},
    {HEAD "  %y : Tensor = prim::Frob(%x)\n  return (%y)", "prim::Frob is no known construct"},
    {HEAD "  %y : Tensor = aten::relu(%x)\n  return (%y)\nwith prim::FusionGroup_0 = graph(",
     "line 7, column 1: text behind the graph"},
    {HEAD "  %y : Tensor = my::g[Subgraph=<Graph>](%x)\n  return (%y)", "a graph inside a node"},
    {HEAD "  %y : Tensor = aten::f(%x)\n    block0():\n      -> (%x)\n  return (%y)",
     "aten::f has a block, which only prim::If and prim::Loop may"},
    {HEAD "  %y : Tensor = prim::If(%c)\n  return (%y)", "prim::If has 0 blocks, not 2"},
    {HEAD "  %y : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n  return (%y)",
     "prim::If has 1 blocks, not 2"},
    {HEAD "  %y : Tensor = prim::If(%c)\n    block1():\n      -> (%x)\n  return (%y)",
     "'block1' is not expected here"},
    {HEAD "  %y : Tensor = prim::If(%c)\n    block0():\n      -> ()\n  return (%y)",
     "a block of prim::If with 0 arguments that gives 0 values"},
    {HEAD "  %y : Tensor = prim::If(%c)\n    block0():\n      %i : Tensor = aten::relu(%x)\n"
          "      -> (%i)\n    block1():\n      -> (%i)\n  return (%y)",
     "%i is not defined here"},
    {HEAD "  -> (%x)\n  return (%x)", "a node or 'return (...)'"},
    {HEAD "   = prim::If(%c)\n    block0():\n      return (%x)\n", "'return' inside a block"},
    {HEAD "  %y : Tensor = aten::relu[value=\"no end](%x)\n  return (%y)", "a string without end"},
    {HEAD "  %y : Tensor = aten::relu[value=(]](%x)\n  return (%y)", "']' closes nothing"},
    {HEAD "  %y : Tensor = prim::GetAttr(%self)\n  return (%y)",
     "without the name of an attribute"},
    {HEAD "  %y : Tensor = prim::Loop(%n)\n  return (%y)", "with 1 arguments and 1 results"},
    {HEAD "  %y : Tensor[ = aten::relu(%x)\n  return (%y)", "write ']'"},
    {HEAD "  %y = aten::relu(%x)\n  return (%y)", "write ':' and a type"},
    {HEAD "  %y : Tensor = \xff::relu(%x)\n  return (%y)", "byte 0xff is not expected here"},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        cutset_error err = {0};
        cutset_model *m;
        assert_int_equal(open_text(&m, faults[i].text, &err), CUTSET_BAD);
        assert_null(m);
        if (!strstr(err.message, faults[i].says))
            fail_msg("%zu says '%s', not '%s'", i, err.message, faults[i].says);
        assert_non_null(strstr(err.message, "line "));
        assert_true(err.offset >= 0 && err.offset <= (int64_t)strlen(faults[i].text));
        assert_null(strchr(err.message, '\n'));
    }
}

/* Nesting is bounded, not the stack. */
static void test_depth(void **state)
{
    (void)state;
    static char text[400000];
    cutset_error err = {0};
    cutset_model *m;
    for (int n = 100; n <= 101; n++) {
        size_t len = (size_t)sprintf(text, "%s", HEAD);
        for (int i = 0; i < n; i++)
            len += (size_t)sprintf(text + len, " = prim::If(%%c)\nblock0():\n");
        for (int i = 0; i < n; i++)
            len += (size_t)sprintf(text + len, "-> ()\nblock1():\n-> ()\n");
        sprintf(text + len, "return ()\n");
        assert_int_equal(open_text(&m, text, &err), n == 100 ? CUTSET_OK : CUTSET_BAD);
        cutset_model_free(m);
    }
    assert_non_null(strstr(err.message, "blocks nested more than 100 deep"));
    size_t len = (size_t)sprintf(text, "graph(%%x : ");
    memset(text + len, '(', 100000);
    text[len + 100000] = 0;
    assert_int_equal(open_text(&m, text, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "nested more than 100 deep"));
    len = (size_t)sprintf(text, "%s%%y : Tensor = aten::f[v=", HEAD);
    memset(text + len, '[', 100000);
    text[len + 100000] = 0;
    assert_int_equal(open_text(&m, text, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "brackets nested more than 100 deep"));
}

/* ---- schemas ---- */

static const char *const rows[][2] = {
#include "torch/schemas.inc"
};

static void test_table(void **state)
{
    (void)state;
    cs_script s = {.pool = cs_pool_new()};
    cs_schemas t = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (i > 0 && strcmp(rows[i - 1][0], rows[i][0]) >= 0)
            fail_msg("%s is not in order", rows[i][0]);
        const cs_op *op =
            cs_schemas_find(&t, &s, cs_strtab_add(&s.pool->names, cs_span_of(rows[i][0]), 0));
        if (!op || !op->known) fail_msg("%s: %s", rows[i][0], rows[i][1]);
        uint32_t n = rows[i][1][0] != 0;
        for (const char *c = rows[i][1]; *c; c++)
            n += *c == ';';
        assert_int_equal(op->n_sig, n);
    }
    assert_false(
        cs_schemas_find(&t, &s, cs_strtab_add(&s.pool->names, CS_SPAN("my::op"), 0))->known);
    cs_schemas_fini(&t);
    cs_pool_free(s.pool);
}

/* What one operator on %x, %l and constants does. */
static const struct {
    const char *line, *schemas;
    const char *says; /* of writes (l: container), effect, random, unknown: letters w l e r u */
} acts[] = {
    {"%y : Tensor = aten::relu(%x)", "", ""},
    {"%y : Tensor = aten::relu_(%x)", "", "w"},
    {"%y : Tensor = aten::add(%x, %x, %one)", "", ""},
    {"%y : Tensor = aten::add(%x, %x, %one, %x)", "", "w"}, /* out= */
    {"%y : Tensor = aten::copy_(%x, %x, %no)", "", "w"},
    {"%y : Tensor[] = aten::append(%l, %x)", "", "wl"},
    {" = aten::Delete(%l, %one)", "", "wl"},
    {" = aten::clear(%l)", "", "wl"},
    {"%y : Tensor = aten::pop(%l, %one)", "", "wl"},
    {" = aten::extend(%l, %l)", "", "wl"},
    {"%y : Tensor = aten::cat(%l, %one)", "", ""},
    {"%y : Tensor = aten::rand_like(%x, %none, %none, %none, %none, %none)", "", "r"},
    {"%y : Tensor = aten::dropout(%x, %p, %c)", "", "r"},
    {"%y : Tensor = aten::dropout(%x, %p, %no)", "", ""},
    {"%y : Tensor = aten::dropout_(%x, %p, %no)", "", ""},
    {"%y : Tensor = aten::dropout_(%x, %p, %c)", "", "wr"},
    {"%y : Tensor = aten::batch_norm(%x, %x, %x, %x, %x, %c, %p, %p, %c)", "", "w"},
    {"%y : Tensor = aten::batch_norm(%x, %x, %x, %x, %x, %no, %p, %p, %c)", "", ""},
    {"%y : Tensor = aten::batch_norm(%x, %x, %x, %none, %none, %c, %p, %p, %c)", "", ""},
    {" = prim::Print(%x)", "", "e"},
    {" = prim::RaiseException(%none, %none)", "", "e"},
    {" = aten::warn(%none, %one)", "", "e"},
    {" = prim::SetAttr[name=\"a\"](%self, %x)", "", "wl"},
    {"%y : Tensor = my::op(%x)", "", "weu"},
    {"%y : Tensor = my::op(%x)", "my::op(Tensor x) -> Tensor", ""},
    {"%y : Tensor = my::op(%x)", "my::op.a(Tensor(a!) self) -> Tensor(a!)", "w"},
    {"%y : Tensor = my::op(%x, %one, %none)",
     "my::op(Tensor(a!) x) -> Tensor(a!)|my::op.s(Tensor x, int n=1, *, "
     "str? s=\",)\") -> (Tensor y)",
     ""},
    {"%y : Tensor = my::op(%x)", "my::op(Tensor X) -> Tensor Y", ""},
    {"%y : Tensor = my::op(%x)", "my::op(Tensor(a!) X) -> Tensor(a!) Y", "w"},
    {"%y : Tensor[] = my::op(%x)", "my::op(Tensor X) -> Tensor[] Y", ""},
    {" = my::op(%x)", "my::op(Tensor x) -> ()", "e"},
};

static void test_acts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        char text[1000], says[10] = "";
        snprintf(text, sizeof text, "%s%%p : float = prim::Constant[value=0.5]()\n%s\nreturn ()\n",
                 HEAD, acts[i].line);
        size_t n = 0; /* separated by '|', for them to fit in one string */
        char schemas[400];
        snprintf(schemas, sizeof schemas, "%s", acts[i].schemas);
        for (char *c = schemas; *c; c++) {
            n += c == schemas || c[-1] == 0;
            if (*c == '|') *c = 0;
        }
        const cutset_torchscript in = {.n_schemas = n, .schemas = schemas};
        cs_script s;
        cs_schemas t;
        cs_memory m;
        cutset_error err = {0};
        if (cs_script_parse(&s, cs_span_of(text), &err)) fail_msg("%s", err.message);
        if (cs_schemas_init(&t, &s, in.n_schemas, in.schemas, &err)) fail_msg("%s", err.message);
        assert_int_equal(cs_memory_init(&m, &s, &t, &in, &err), CUTSET_OK);
        const cs_act *a = &m.acts[s.lines.len - 1];
        snprintf(says, sizeof says, "%s%s%s%s%s", a->n_write ? "w" : "", a->container ? "l" : "",
                 a->effect ? "e" : "", a->random ? "r" : "", a->unknown ? "u" : "");
        if (strcmp(says, acts[i].says))
            fail_msg("%s: '%s', not '%s'", acts[i].line, says, acts[i].says);
        cs_memory_fini(&m);
        cs_schemas_fini(&t);
        cs_script_fini(&s);
    }
}

/* Does %y, or %z, share memory with %x? */
static const struct {
    const char *lines;
    bool y, z;
} shares[] = {
    {"%y : Tensor = aten::view(%x, %k)\n%z : Tensor = aten::relu(%x)", true, false},
    {"%y : Tensor = aten::contiguous(%x, %one)\n%z : Tensor = aten::clone(%x, %none)", true, false},
    {"%y : Tensor = aten::dropout(%x, %p, %no)\n%z : Tensor = aten::add(%x, %x, %one)", true,
     false},
    {"%a : Tensor[] = aten::chunk(%x, %one, %one)\n%y : Tensor, %z : Tensor = prim::ListUnpack(%a)",
     true, true},
    {"%a : (Tensor, int) = prim::TupleConstruct(%x, %one)\n"
     "%y : Tensor, %b : int = prim::TupleUnpack(%a)\n%z : Tensor = aten::tanh(%y)",
     true, false},
    {"%a : Tensor[] = aten::append(%l, %x)\n%y : Tensor = aten::__getitem__(%l, %one)\n"
     "%z : Tensor = aten::cat(%l, %one)",
     true, false},
    {"%d : Dict(str, Tensor) = prim::DictConstruct()\n = aten::_set_item(%d, %str, %x)\n"
     "%v : Tensor[] = aten::values(%d)\n%y : Tensor = aten::__getitem__(%v, %one)\n"
     "%z : Tensor = aten::__getitem__(%l, %one)",
     true, false},
    {"%e : Tensor[] = aten::list(%l)\n%a : Tensor[] = aten::append(%e, %x)\n"
     "%y : Tensor = aten::pop(%l, %one)\n%z : Tensor = aten::stack(%e, %one)",
     true, false},
    {"%y : Tensor = prim::If(%c)\nblock0():\n-> (%x)\nblock1():\n%q : Tensor = aten::relu(%x)\n-> "
     "(%q)\n"
     "%z : Tensor = aten::relu(%y)",
     true, false},
    {"%y : Tensor = prim::Loop(%one, %c, %x)\nblock0(%i : int, %u : Tensor):\n-> (%c, %u)\n"
     "%z : Tensor = prim::Loop(%one, %c, %k2)\nblock0(%i2 : int, %u2 : Tensor):\n"
     "%u3 : Tensor = aten::relu(%u2)\n-> (%c, %u3)",
     true, false},
    {"%y : Tensor = my::op(%x)\n%z : Tensor = prim::GetAttr[name=\"w\"](%self)", true, false},
    {" = prim::SetAttr[name=\"s\"](%self, %x)\n%y : Tensor = prim::GetAttr[name=\"s\"](%self)\n"
     "%z : Tensor = prim::GetAttr[name=\"t\"](%self)",
     true, false},
};

static uint32_t cell_named(cs_memory *m, const cs_script *s, const char *name)
{
    for (uint32_t v = 0; v < s->values.len; v++)
        if (cs_span_is(cs_name(s->pool, s->values.at[v].name), name)) return cs_cell_of(m, v);
    return CS_NONE;
}

static void test_shares(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        char text[2000];
        snprintf(text, sizeof text,
                 "%s%%p : float = prim::Constant[value=0.5]()\n%%str : str = "
                 "prim::Constant[value=\"s\"]()\n"
                 "%%k : int[] = prim::ListConstruct(%%one)\n%%k2 : Tensor = aten::relu(%%x)\n"
                 "%s\nreturn ()\n",
                 HEAD, shares[i].lines);
        const cutset_torchscript in = {0};
        cs_script s;
        cs_schemas t = {0};
        cs_memory m;
        cutset_error err = {0};
        if (cs_script_parse(&s, cs_span_of(text), &err)) fail_msg("%zu: %s", i, err.message);
        assert_int_equal(cs_memory_init(&m, &s, &t, &in, &err), CUTSET_OK);
        const uint32_t x = cell_named(&m, &s, "x");
        if ((cell_named(&m, &s, "y") == x) != shares[i].y ||
            (cell_named(&m, &s, "z") == x) != shares[i].z)
            fail_msg("%s", shares[i].lines);
        cs_memory_fini(&m);
        cs_schemas_fini(&t);
        cs_script_fini(&s);
    }
}

/* ---- what callers say ---- */

enum { LINES = 15 };

static cutset_torchscript given(uint32_t *allow, uint32_t *storages)
{
    static const int64_t bytes[] = {1000};
    for (int i = 0; i < LINES; i++) {
        allow[i] = CUTSET_ALLOW_HOST | CUTSET_ALLOW_DEFAULT;
        storages[i] = CUTSET_NONE;
    }
    storages[3] = 0; /* %w */
    return (cutset_torchscript){.text = everything,
                                .len = sizeof everything - 1,
                                .n_lines = LINES,
                                .allow = allow,
                                .n_storages = 1,
                                .storage_bytes = bytes,
                                .storages = storages};
}

static cutset_plan *plan_of(const cutset_torchscript *in, int64_t budget, cutset_status wanted,
                            cutset_error *err)
{
    cutset_model *m;
    cutset_target *acc;
    cutset_plan *plan = NULL;
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    opts.host_memory = budget;
    if (cutset_model_open_torchscript(&m, in, err)) fail_msg("%s", err->message);
    assert_int_equal(cutset_target_marked(&acc, "acc", 4, 0, 0, err), CUTSET_OK);
    const cutset_status s =
        cutset_plan_make(&plan, m, (const cutset_target *const *)&acc, 1, &opts, err);
    if (s != wanted) fail_msg("%d: %s", s, err->message);
    cutset_target_free(acc);
    cutset_model_free(m);
    return plan;
}

/* Does the part that holds the node run on acc? */
static bool is_on_acc(const cutset_plan *plan, const char *node)
{
    for (size_t p = 0; p < plan->parts.len; p++)
        for (uint32_t i = 0; i < plan->parts.at[p].n_node; i++) {
            const cs_str label = plan->node_label.at[plan->parts.at[p].node + i];
            if (cs_span_is(cs_strtab_get(&plan->names, label), node))
                return plan->parts.at[p].target == 0;
        }
    fail_msg("%s is in no part", node);
    return false;
}

static const char loop[] = /* with a count and a condition that any engine has */
    HEAD "  %yes : bool = prim::Constant[value=1]()\n"
         "  %i : Tensor = prim::Loop(%one, %yes, %x)\n"
         "    block0(%j : int, %u : Tensor):\n"
         "      %v : Tensor = aten::add(%u, %u, %j)\n"
         "      -> (%yes, %v)\n"
         "  return (%i)\n";

static void test_given(void **state)
{
    (void)state;
    uint32_t allow[LINES], storages[LINES];
    cutset_error err = {0};
    cutset_torchscript in = given(allow, storages);
    cutset_plan *plan = plan_of(&in, 4000, CUTSET_OK, &err);
    assert_int_equal(plan->model_weight_bytes, 1000);
    assert_int_equal(plan->parts.at[0].host_build_bytes, 4000);
    cutset_plan_free(plan);
    plan_of(&in, 3999, CUTSET_NO, &err); /* an atom over the budget */
    assert_int_equal(err.about, CUTSET_ABOUT_BUDGET);
    /* a loop and all inside it allowed: it runs there whole; then without what is inside */
    for (int inside = 1; inside >= 0; inside--) {
        in = given(allow, storages);
        in.text = loop, in.len = sizeof loop - 1, in.n_lines = 6;
        storages[3] = CUTSET_NONE;
        allow[4] = CUTSET_ALLOW_HOST | 1; /* Loop */
        allow[5] = CUTSET_ALLOW_HOST | (uint32_t)inside;
        plan = plan_of(&in, 0, CUTSET_OK, &err);
        assert_int_equal(is_on_acc(plan, "i"), inside);
        cutset_plan_free(plan);
        /* never where its count and its condition, no tensors, come from outside */
        in = given(allow, storages);
        allow[12] = CUTSET_ALLOW_HOST | 1; /* Loop */
        allow[13] = CUTSET_ALLOW_HOST | (uint32_t)inside;
        plan = plan_of(&in, 0, CUTSET_OK, &err);
        assert_false(is_on_acc(plan, "i"));
        cutset_plan_free(plan);
    }
}

static void test_given_wrong(void **state)
{
    (void)state;
    uint32_t allow[LINES], storages[LINES], reasons[LINES] = {0};
    const uint32_t pair[] = {0, 5};
    cutset_error err = {0};
    cutset_model *m;
    cutset_torchscript in = given(allow, storages);
    in.n_lines = LINES - 1;
    assert_int_equal(cutset_model_open_torchscript(&m, &in, &err), CUTSET_USAGE);
    assert_non_null(strstr(err.message, "15 nodes"));
    in = given(allow, storages);
    storages[0] = 1;
    assert_int_equal(cutset_model_open_torchscript(&m, &in, &err), CUTSET_USAGE);
    in = given(allow, storages);
    in.line_reasons = reasons;
    assert_int_equal(cutset_model_open_torchscript(&m, &in, &err), CUTSET_USAGE);
    in.n_reasons = 1;
    in.reasons = "because";
    assert_int_equal(cutset_model_open_torchscript(&m, &in, &err), CUTSET_USAGE);
    in = given(allow, storages);
    in.n_input_aliases = 1, in.input_aliases = pair;
    assert_int_equal(cutset_model_open_torchscript(&m, &in, &err), CUTSET_USAGE);
    in = given(allow, storages);
    in.n_schemas = 1, in.schemas = "my::op(Tensor";
    assert_int_equal(cutset_model_open_torchscript(&m, &in, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "schema 0"));
}

/* Two inputs that may share memory: what reads one after a write to the other comes later. */
static void test_input_aliases(void **state)
{
    (void)state;
    static const char text[] =
        "graph(%x : Tensor, %y : Tensor, %one : int):\n"
        "%w : Tensor = aten::relu_(%x)\n%z : Tensor = aten::add(%y, %y, %one)\n"
        "return (%z)\n";
    const uint32_t allow[] = {CUTSET_ALLOW_HOST, CUTSET_ALLOW_HOST}, pair[] = {0, 1};
    for (size_t n = 0; n < 2; n++) {
        const cutset_torchscript in = {.text = text,
                                       .len = sizeof text - 1,
                                       .n_lines = 2,
                                       .allow = allow,
                                       .n_input_aliases = n,
                                       .input_aliases = pair};
        cs_torch *t;
        assert_int_equal(cs_torch_read(&t, &in, NULL), CUTSET_OK);
        assert_int_equal(t->blocks.at[0].graph->order.len, n);
        cs_torch_free(t);
    }
}

/* ---- plans ---- */

typedef struct bytes {
    char at[40000];
    size_t len;
} bytes;

static int take(void *payload, const void *at, size_t len)
{
    bytes *b = payload;
    if (b->len + len > sizeof b->at) return 1;
    memcpy(b->at + b->len, at, len);
    b->len += len;
    return 0;
}

static void test_plan_reads_back(void **state)
{
    (void)state;
    static bytes one, two;
    uint32_t allow[LINES], storages[LINES];
    cutset_error err = {0};
    const cutset_torchscript in = given(allow, storages);
    cutset_plan *plan = plan_of(&in, 0, CUTSET_OK, &err), *back;
    one.len = two.len = 0;
    assert_int_equal(cutset_plan_write(plan, NULL, take, &one, &err), CUTSET_OK);
    if (cutset_plan_read_memory(&back, one.at, one.len, &err)) fail_msg("%s", err.message);
    assert_int_equal(cutset_plan_write(back, NULL, take, &two, &err), CUTSET_OK);
    assert_true(one.len == two.len && !memcmp(one.at, two.at, one.len));
    cutset_plan_free(plan);
    cutset_plan_free(back);
}

static cutset_status open_and_plan(cutset_error *err)
{
    uint32_t allow[LINES], storages[LINES];
    cutset_torchscript in = given(allow, storages);
    in.n_schemas = 1, in.schemas = "my::op(Tensor x) -> Tensor";
    static const char *const excludes[] = {"aten::size"};
    cutset_model *m = NULL;
    cutset_target *acc = NULL;
    cutset_plan *plan = NULL;
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    opts.excludes = excludes, opts.n_excludes = 1;
    opts.max_engines = 1;
    cutset_status s = cutset_model_open_torchscript(&m, &in, err);
    if (!s) s = cutset_target_marked(&acc, "acc", 4, 0, 0, err);
    if (!s) s = cutset_plan_make(&plan, m, (const cutset_target *const *)&acc, 1, &opts, err);
    assert_true(s == CUTSET_OK || (m == NULL) || plan == NULL);
    cutset_plan_free(plan);
    cutset_target_free(acc);
    cutset_model_free(m);
    return s;
}

static void test_without_memory(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        cutset_error err = {0};
        const long before = alloc_live();
        alloc_fail_at(n);
        const cutset_status s = open_and_plan(&err);
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(alloc_live(), before);
        if (!failed) {
            if (s) fail_msg("%s", err.message);
            assert_true(n > 200);
            return;
        }
        if (s != CUTSET_SYSTEM || strcmp(err.message, "out of memory"))
            fail_msg("call %ld: %d, %s", n, s, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script),         cmocka_unit_test(test_hash),
        cmocka_unit_test(test_types),          cmocka_unit_test(test_faults),
        cmocka_unit_test(test_depth),          cmocka_unit_test(test_table),
        cmocka_unit_test(test_acts),           cmocka_unit_test(test_shares),
        cmocka_unit_test(test_given),          cmocka_unit_test(test_given_wrong),
        cmocka_unit_test(test_input_aliases),  cmocka_unit_test(test_plan_reads_back),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
