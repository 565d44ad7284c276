/* Targets made for marked nodes: names, memory, hashes, and the patterns of core ATen. */
#include "failing_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "target/target.h"

#define MUL "torch.ops.aten.mul.Tensor"
#define ADD "torch.ops.aten.add.Tensor"
#define CONV "torch.ops.aten.convolution.default"
#define NORM "torch.ops.aten._native_batch_norm_legit_no_training.default"
#define RELU "torch.ops.aten.relu.default"
#define GET "_operator.getitem"
#define WEIGHTS                                                                                    \
    "weight %w1 : f32[25]\nweight %w2 : f32[25]\nweight %w3 : f32[25]\nweight %w4 : f32[25]\n"     \
    "input %x : f32[4]\ninput %y : f32[4]\ninput %z : f32[4]\n"

static void names(void **state)
{
    (void)state;
    static const char *const good[] = {"acc",      "trt",     "My GPU #1",  "TensorRT:0",
                                       "\xc3\xa9", "a.b_c-d", "tensorrt-11"};
    char longest[102];
    memset(longest, 'n', sizeof longest);
    longest[101] = '\0';
    static const char *const bad[] = {"", "host", "a=b", "a/b", "a\nb", "\x7f", "\xff", NULL};
    cutset_target *t = NULL;
    cutset_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(cutset_target_marked(&t, good[i], 1, 0, 1, &err), CUTSET_OK);
        assert_string_equal(cutset_target_name(t), good[i]);
        cutset_target_free(t);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        t = (cutset_target *)&err;
        assert_int_equal(cutset_target_marked(&t, bad[i], 1, 0, 0, &err), CUTSET_USAGE);
        assert_null(t);
        assert_null(strchr(err.message, '\n'));
    }
    assert_int_equal(cutset_target_marked(&t, longest, 1, 0, 0, &err), CUTSET_USAGE);
    longest[100] = '\0';
    assert_int_equal(cutset_target_marked(&t, longest, 1, 0, 0, &err), CUTSET_OK);
    cutset_target_free(t);
    assert_int_equal(cutset_target_marked(&t, "acc", -0.5, 0, 0, &err), CUTSET_USAGE);
    assert_int_equal(cutset_target_marked(&t, "acc", 0.0 / 0.0, 0, 0, &err), CUTSET_USAGE);
    assert_int_equal(cutset_target_marked(&t, "acc", 1e7, 0, 0, &err), CUTSET_USAGE);
    assert_int_equal(cutset_target_marked(&t, "acc", 1, -1, 0, &err), CUTSET_USAGE);
}

static void memory(void **state)
{
    (void)state;
    static const struct {
        double factor;
        int64_t bytes, need;
    } rows[] = {
        {4, 100, 400},
        {0, 100, 0},
        {1.5, 3, 5},
        {0.1, 10, 1},
        {0.1, 11, 2},
        {1e-6, 1, 1},
        {1e-7, 10000, 1},
        {4, INT64_MAX / 2, INT64_MAX},
        {1e6, 1000000, 1000000000000},
        {1, INT64_MAX, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cutset_target *t = NULL;
        const cs_storage s = {.bytes = rows[i].bytes, .elem = CS_F16};
        assert_int_equal(cutset_target_marked(&t, "acc", rows[i].factor, 7, 0, NULL), CUTSET_OK);
        assert_int_equal(cs_memory_host(&t->memory, &s), rows[i].need);
        assert_int_equal(cs_memory_device(&t->memory, &s), rows[i].bytes);
        assert_int_equal(t->memory.host_base, 7);
        assert_int_equal(t->memory.device_base, 0);
        cutset_target_free(t);
    }
}

static void hashes(void **state)
{
    (void)state;
    uint64_t seen[6];
    cutset_target *t[6] = {0};
    cutset_target_open(&t[0], "acc", NULL);
    cutset_target_marked(&t[1], "acc", 4, 0, 0, NULL);
    cutset_target_marked(&t[2], "acc", 4, 0, 1, NULL);
    cutset_target_marked(&t[3], "acc", 4, 1, 1, NULL);
    cutset_target_marked(&t[4], "acc", 4.5, 1, 1, NULL);
    cutset_target_marked(&t[5], "bcc", 4, 1, 1, NULL);
    for (size_t i = 0; i < 6; i++) {
        seen[i] = t[i]->hash;
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(seen[i], seen[k]);
        cutset_target_free(t[i]);
    }
}

/* Engines under `budget`, one of the widths of 100 bytes, every node having one weight. */
static uint32_t engines(const char *text, int64_t budget, int patterns)
{
    cutset_error err = {0};
    cutset_model *model = NULL;
    cutset_target *t = NULL;
    cutset_plan *plan = NULL;
    cutset_plan_opts opts;
    cutset_plan_info info;
    cutset_plan_opts_init(&opts);
    opts.host_memory = budget;
    opts.oversize = CUTSET_OVERSIZE_KEEP;
    assert_int_equal(cutset_model_open_memory(&model, text, strlen(text), NULL, NULL, &err),
                     CUTSET_OK);
    assert_int_equal(cutset_target_marked(&t, "acc", 1, 0, patterns, &err), CUTSET_OK);
    const cutset_target *targets[] = {t};
    if (cutset_plan_make(&plan, model, targets, 1, &opts, &err) != CUTSET_OK)
        fail_msg("%s", err.message);
    cutset_plan_describe(plan, &info);
    cutset_plan_free(plan);
    cutset_target_free(t);
    cutset_model_free(model);
    return (uint32_t)info.engines;
}

/* A chain a, b, c of 100 bytes each and a budget of 200: {a, b} {c} without patterns, {a} {b, c}
 * with one over b and c; both have two engines. A fourth that wants c with it makes the difference:
 * {a} {b, c} {d} against {a, b} {c, d}. */
static void patterns(void **state)
{
    (void)state;
    static const char *const joined[] = {
        WEIGHTS "%a = Foo(%x, %w1) @acc\n%b = " MUL "(%a, %w2) @acc\n%c = " ADD
                "(%b, %w3) @acc\n%d = Foo(%c, %w4) @acc\noutput %d\n",
        WEIGHTS "%a = Foo(%x, %w1) @acc\n%b = " MUL "(%a, %w2) @acc\n%c = " MUL
                "(%b, %w3) @acc\n%d = Foo(%c, %w4) @acc\noutput %d\n",
        WEIGHTS "%a = Foo(%x, %w1) @acc\n%b = " CONV "(%a, %w2) @acc\n%c = " RELU
                "(%b) @acc\n%d = Foo(%c, %w4) @acc\noutput %d\n",
        WEIGHTS "%a = Foo(%x, %w1) @acc\n%b = " CONV "(%a, %w2) @acc\n%c = " NORM
                "(%b, %w3, %y, %z) @acc\n%g = " GET "(%c) @acc\n%r = " RELU
                "(%g) @acc\n%d = Foo(%r, %w4) @acc\noutput %d\n",
    };
    static const uint32_t with[] = {3, 3, 2, 3}, without[] = {2, 2, 2, 2};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(engines(joined[i], 200, 1), with[i]);
        assert_int_equal(engines(joined[i], 200, 0), without[i]);
    }
}

/* Not as torch's matcher has it: no pattern. */
static void no_pattern(void **state)
{
    (void)state;
    static const char *const apart[] = {
        /* the product is the second argument */
        WEIGHTS "%a = Foo(%x, %w1) @acc\n%b = " MUL "(%a, %w2) @acc\n%c = " ADD
                "(%w3, %b) @acc\n%d = Foo(%c, %w4) @acc\noutput %d\n",
        /* ... is read elsewhere too */
        WEIGHTS "%a = Foo(%x, %w1) @acc\n%b = " MUL "(%a, %w2) @acc\n%c = " ADD
                "(%b, %w3) @acc\n%d = Foo(%c, %w4) @acc\noutput %d\noutput %b\n",
        /* one value for two inputs */
        WEIGHTS "%a = Foo(%x, %w1) @acc\n%b = " MUL "(%a, %w2) @acc\n%c = " ADD
                "(%b, %a) @acc\n%e = Foo(%c, %w3) @acc\n%d = Foo(%e, %w4) @acc\noutput %d\n",
        /* add, mul is none */
        WEIGHTS "%a = Foo(%x, %w1) @acc\n%b = " ADD "(%a, %w2) @acc\n%c = " MUL
                "(%b, %w3) @acc\n%d = Foo(%c, %w4) @acc\noutput %d\n",
    };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(engines(apart[i], 200, 1), 2);
}

/* Matches of different patterns overlap: conv-free chain mul, mul, add is one atom of three. Of one
 * pattern they do not: four products are two pairs. */
static void overlaps(void **state)
{
    (void)state;
    assert_int_equal(engines(WEIGHTS "%a = " MUL "(%x, %w1) @acc\n%b = " MUL
                                     "(%a, %w2) @acc\n%c = " ADD "(%b, %w3) @acc\noutput %c\n",
                             300, 1),
                     1);
    assert_int_equal(engines(WEIGHTS "%a = " MUL "(%x, %w1) @acc\n%b = " MUL
                                     "(%a, %w2) @acc\n%c = " MUL "(%b, %w3) @acc\n%d = " MUL
                                     "(%c, %w4) @acc\noutput %d\n",
                             200, 1),
                     2);
    /* over the budget, the atom of three breaks: 2 engines; were it kept it would be one */
    assert_int_equal(engines(WEIGHTS "%a = " MUL "(%x, %w1) @acc\n%b = " MUL
                                     "(%a, %w2) @acc\n%c = " ADD "(%b, %w3) @acc\noutput %c\n",
                             200, 1),
                     2);
}

/* Three nodes in a row, in overlapping soft groups; `host`: the last must stay there. */
static cutset_status plan_row(bool host, cutset_plan_info *info, cutset_error *err)
{
    static const uint32_t tensors[] = {0, 0, 0, 0},
                          none[] = {CUTSET_NONE, CUTSET_NONE, CUTSET_NONE, CUTSET_NONE};
    static const uint8_t kinds[4] = {CUTSET_TENSOR};
    static const uint32_t zero[3] = {0}, rows[] = {0, 1, 2, 3}, args[] = {0, 1, 2},
                          outs[] = {1, 2, 3};
    static const uint32_t last[] = {3}, group_rows[] = {0, 2, 4}, members[] = {0, 1, 1, 2};
    const uint32_t both = 1 | CUTSET_ALLOW_HOST;
    const uint32_t allow[] = {both, both, host ? CUTSET_ALLOW_HOST : both};
    const cutset_graph graph = {.n_values = 4,
                                .value_names = "x\0a\0b\0c",
                                .value_kinds = kinds,
                                .value_types = tensors,
                                .value_storages = none,
                                .n_types = 1,
                                .types = "f32[4]",
                                .n_inputs = 1,
                                .n_outputs = 1,
                                .inputs = zero,
                                .outputs = last,
                                .n_nodes = 3,
                                .n_ops = 1,
                                .ops = "Foo",
                                .node_ops = zero,
                                .node_flags = zero,
                                .arg_rows = rows,
                                .args = args,
                                .out_rows = rows,
                                .outs = outs,
                                .n_groups = 2,
                                .n_soft_groups = 2,
                                .group_rows = group_rows,
                                .group_nodes = members,
                                .allow = allow};
    cutset_model *model = NULL;
    cutset_target *t = NULL;
    cutset_plan *plan = NULL;
    cutset_status s = cutset_model_build(&model, &graph, err);
    if (!s) s = cutset_target_marked(&t, "acc", 4, 0, 1, err);
    const cutset_target *targets[] = {t};
    if (!s) s = cutset_plan_make(&plan, model, targets, 1, NULL, err);
    if (!s) cutset_plan_describe(plan, info);
    cutset_plan_free(plan);
    cutset_target_free(t);
    cutset_model_free(model);
    return s;
}

static void no_memory(void **state)
{
    (void)state;
    const long live = alloc_live();
    for (int host = 0; host < 2; host++)
        for (long n = 0;; n++) {
            cutset_error err = {0};
            cutset_plan_info info = {0};
            alloc_fail_at(n);
            const cutset_status s = plan_row(host, &info, &err);
            const bool failed = alloc_failed();
            alloc_fail_at(-1);
            assert_int_equal(alloc_live(), live);
            assert_int_equal(s, failed ? CUTSET_SYSTEM : CUTSET_OK);
            if (failed) continue;
            assert_int_equal(info.engines, 1);
            assert_int_equal(info.parts, host ? 2 : 1);
            break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),     cmocka_unit_test(memory),     cmocka_unit_test(hashes),
        cmocka_unit_test(patterns),  cmocka_unit_test(no_pattern), cmocka_unit_test(overlaps),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
