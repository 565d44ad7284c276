/* Opening, planning, summing up and inspecting with memory that runs out at call 0, 1, 2 ...: each
 * says so, leaks nothing and leaves its result alone. */
#include "failing_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cutset.h"

static const char text[] = "graph brutal\n"
                           "opset 17\n"
                           "input %x : f32[1,4,8,8]\n"
                           "weight %w : f32[4,4,3,3]\n"
                           "weight %v : f32[4,4,3,3]\n"
                           "%c1 : f32[1,4,6,6] = Conv(%x, %w)\n"
                           "%r1 : f32[1,4,6,6] = Relu(%c1)\n"
                           "%n : i64[4,?] = NonZero(%r1)\n"
                           "%c2 : f32[1,4,4,4] = Conv(%r1, %v)\n"
                           "%m : f32[1,4,4,4] = Mul(%c2, %c2)\n"
                           "%a : f32[1,4,4,4] = Add(%m, %c2)\n"
                           "%s : i64[2] = Shape(%n)\n"
                           "%p = Odd(%a, %s)\n"
                           "%z = Relu(%p)\n"
                           "order %n -> %a\n"
                           "group g { %m %c2 }\n"
                           "output %z\n"
                           "output %a\n";

static int drop(void *payload, const void *bytes, size_t len)
{
    (void)payload;
    (void)bytes;
    (void)len;
    return 0;
}

static cutset_target *tensorrt, *onnxruntime; /* opened once: test_target.c starves that */

typedef struct call {
    size_t n_targets;
    cutset_plan_opts opts;
    cutset_status want; /* with all its memory */
} call;

/* Everything a user does between a file and a summary. */
static cutset_status run(const call *c, cutset_error *err)
{
    const cutset_target *const targets[] = {tensorrt, onnxruntime};
    cutset_model *model = NULL;
    cutset_plan *plan = NULL;
    cutset_status s = cutset_model_open_memory(&model, text, sizeof text - 1, NULL, NULL, err);
    if (!s) s = cutset_plan_make(&plan, model, targets, c->n_targets, &c->opts, err);
    if (s) assert_null(plan);
    if (!s) s = cutset_plan_summary(plan, drop, NULL, err);
    if (!s) s = cutset_plan_write(plan, NULL, drop, NULL, err);
    for (int form = 0; !s && form < 3; form++)
        s = cutset_model_inspect(model, (cutset_inspect_form)form, drop, NULL, err);
    cutset_plan_free(plan);
    cutset_model_free(model);
    return s;
}

static void survives(const call *c)
{
    const long before = alloc_live();
    for (long n = 0;; n++) {
        cutset_error err = {0};
        alloc_fail_at(n);
        const cutset_status s = run(c, &err);
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(alloc_live(), before);
        if (!failed) {
            assert_int_equal(s, c->want);
            assert_true(n > 50);
            break;
        }
        assert_int_equal(s, CUTSET_SYSTEM);
        assert_string_equal(err.message, "out of memory");
    }
}

static call of(size_t n_targets)
{
    call c = {.n_targets = n_targets};
    cutset_plan_opts_init(&c.opts);
    return c;
}

static void without_budget(void **state)
{
    (void)state;
    call c = of(1);
    survives(&c);
    c.opts.min_nodes = 3;
    survives(&c);
    c.opts.connected = 1;
    survives(&c);
}

static void with_few_engines(void **state)
{
    (void)state;
    call c = of(1);
    c.opts.max_engines = 1;
    c.opts.bookends = c.opts.tensors_only = 1;
    survives(&c);
    c.opts.connected = 1;
    c.opts.host_memory = 2500;
    survives(&c);
    c.opts.min_nodes = 2;
    survives(&c);
}

static void with_budgets(void **state)
{
    (void)state;
    call c = of(1);
    c.opts.host_memory = 2500; /* a weight has 576 bytes, and factor 4 */
    survives(&c);
    c.opts.device_memory = 100;
    c.opts.oversize = CUTSET_OVERSIZE_KEEP;
    survives(&c);
    c.opts.oversize = CUTSET_OVERSIZE_HOST;
    survives(&c);
    c.opts.oversize = CUTSET_OVERSIZE_ERROR;
    c.want = CUTSET_NO;
    survives(&c);
}

static void with_names(void **state)
{
    static const char *const pins[] = {"c1=host", "a=tensorrt-11"};
    static const char *const excludes[] = {"Mul", "r*"};
    static const char *const groups[] = {"c1,r1"};
    (void)state;
    call c = of(1);
    c.opts.pins = pins, c.opts.n_pins = 2;
    c.opts.excludes = excludes, c.opts.n_excludes = 2;
    c.opts.groups = groups, c.opts.n_groups = 1;
    survives(&c);
}

static void without_a_plan(void **state)
{
    static const char *const pins[] = {"r1=tensorrt-11"};
    static const char *const groups[] = {"r1,n"};
    (void)state;
    call c = of(1);
    c.opts.pins = pins, c.opts.n_pins = 1;
    c.opts.groups = groups, c.opts.n_groups = 1;
    c.want = CUTSET_NO; /* NonZero cannot run where its group is pinned */
    survives(&c);
}

static void with_two_targets(void **state)
{
    (void)state;
    call c = of(2);
    survives(&c);
    c.opts.host_memory = 4000;
    survives(&c);
}

static int open_targets(void **state)
{
    (void)state;
    return cutset_target_open(&tensorrt, "tensorrt", NULL) ||
           cutset_target_open(&onnxruntime, "onnxruntime", NULL);
}

static int close_targets(void **state)
{
    (void)state;
    cutset_target_free(tensorrt);
    cutset_target_free(onnxruntime);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_budget),   cmocka_unit_test(with_few_engines), cmocka_unit_test(with_budgets),
        cmocka_unit_test(with_names),       cmocka_unit_test(without_a_plan),
        cmocka_unit_test(with_two_targets),
    };
    return cmocka_run_group_tests(tests, open_targets, close_targets);
}
