/* The public calls on plans, from a model in memory to a file and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cutset.h"

static const char MODEL[] =
    "input %x : f32[1000]\nweight %w : f32[100]\n"
    "%a : f32[1000] = Foo(%x, %w) @acc\n%b : f32[1000] = Foo(%a) @acc,host\n"
    "%c : f32[1000] = Bar(%b)\n%d : f32[1000] = Foo(%c) @acc\noutput %d\n";

typedef struct sheet {
    char at[1 << 16];
    size_t len;
} sheet;

static int gather(void *payload, const void *bytes, size_t len)
{
    sheet *s = payload;
    if (s->len + len >= sizeof s->at) return 1;
    memcpy(s->at + s->len, bytes, len);
    s->len += len;
    s->at[s->len] = '\0';
    return 0;
}

static int refuse(void *payload, const void *bytes, size_t len)
{
    (void)payload;
    (void)bytes;
    (void)len;
    return 1;
}

static cutset_model *model;
static cutset_target *acc;

static int open_all(void **state)
{
    (void)state;
    cutset_error err = {0};
    cutset_model_open_memory(&model, MODEL, sizeof MODEL - 1, NULL, NULL, &err);
    cutset_target_open(&acc, "acc", &err);
    return model == NULL || acc == NULL;
}

static int close_all(void **state)
{
    (void)state;
    cutset_model_free(model);
    cutset_target_free(acc);
    return 0;
}

static cutset_status make(cutset_plan **plan, const cutset_plan_opts *opts, cutset_error *err)
{
    const cutset_target *targets[] = {acc};
    return cutset_plan_make(plan, model, targets, 1, opts, err);
}

static void there_and_back(void **state)
{
    (void)state;
    static sheet one, two;
    cutset_error err;
    cutset_plan *plan = NULL, *read = NULL;
    assert_int_equal(make(&plan, NULL, &err), CUTSET_OK);
    cutset_plan_info info;
    cutset_plan_describe(plan, &info);
    assert_int_equal(info.engines, 2);
    assert_int_equal(info.engines_bound, 2);
    assert_true(info.proved);
    assert_int_equal(info.parts, 3);
    assert_int_equal(info.boundaries, 2);
    assert_int_equal(info.boundary_bytes, 8000);
    assert_int_equal(info.fallback, 1);

    char path[] = "/tmp/cutset-api-XXXXXX";
    close(mkstemp(path));
    assert_int_equal(cutset_plan_save(plan, path, &err), CUTSET_OK);
    assert_int_equal(cutset_plan_read(&read, path, &err), CUTSET_OK);
    one.len = two.len = 0;
    assert_int_equal(cutset_plan_write(plan, path, gather, &one, &err), CUTSET_OK);
    assert_int_equal(cutset_plan_write(read, path, gather, &two, &err), CUTSET_OK);
    assert_string_equal(one.at, two.at);
    assert_non_null(strstr(one.at, "\"path\": null")); /* the model came from memory */
    cutset_plan_free(read);
    assert_int_equal(cutset_plan_read_memory(&read, one.at, one.len, &err), CUTSET_OK);
    two.len = 0;
    assert_int_equal(cutset_plan_write(read, NULL, gather, &two, &err), CUTSET_OK);
    assert_string_equal(one.at, two.at);
    one.len = two.len = 0;
    assert_int_equal(cutset_plan_summary(plan, gather, &one, &err), CUTSET_OK);
    assert_int_equal(cutset_plan_summary(read, gather, &two, &err), CUTSET_OK);
    assert_string_equal(one.at, two.at);
    unlink(path);
    cutset_plan_free(plan);
    cutset_plan_free(read);
    cutset_plan_free(NULL);
}

static void refused(void **state)
{
    (void)state;
    cutset_error err;
    cutset_plan *plan = (cutset_plan *)&err;
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    opts.effort = 4;
    assert_int_equal(make(&plan, &opts, &err), CUTSET_USAGE);
    assert_null(plan);
    assert_string_equal(err.message, "effort 4: give 0, 1, 2 or 3");
    cutset_plan_opts_init(&opts);
    opts.host_memory = -1;
    assert_int_equal(make(&plan, &opts, NULL), CUTSET_USAGE);
    cutset_plan_opts_init(&opts);
    opts.device_memory = 399; /* the weight of %a has 400 bytes */
    assert_int_equal(make(&plan, &opts, &err), CUTSET_NO);
    const cutset_target *twice[] = {acc, acc};
    assert_int_equal(cutset_plan_make(&plan, model, twice, 2, NULL, &err), CUTSET_USAGE);
    assert_string_equal(err.message, "target acc is named twice: name it once");
    assert_int_equal(cutset_plan_read(&plan, "/nowhere/plan.json", &err), CUTSET_SYSTEM);
    assert_null(plan);

    assert_int_equal(make(&plan, NULL, &err), CUTSET_OK);
    assert_int_equal(cutset_plan_write(plan, NULL, refuse, NULL, &err), CUTSET_SYSTEM);
    assert_int_equal(cutset_plan_summary(plan, refuse, NULL, &err), CUTSET_SYSTEM);
    assert_int_equal(cutset_plan_save(plan, "/nowhere/plan.json", &err), CUTSET_SYSTEM);
    cutset_plan_free(plan);
}

/* A plan from memory: cut off anywhere, it is none; nothing is read past its end. */
static void cut_off(void **state)
{
    (void)state;
    static sheet text;
    cutset_plan *plan = NULL;
    assert_int_equal(make(&plan, NULL, NULL), CUTSET_OK);
    text.len = 0;
    assert_int_equal(cutset_plan_write(plan, NULL, gather, &text, NULL), CUTSET_OK);
    cutset_plan_free(plan);
    for (size_t len = 0; len + 1 < text.len; len += 1 + len / 50) {
        char *copy = malloc(len + 1);
        memcpy(copy, text.at, len);
        char *fit = realloc(copy, len ? len : 1); /* a sanitizer sees a read past it */
        cutset_error err;
        plan = (cutset_plan *)&err;
        assert_int_equal(cutset_plan_read_memory(&plan, fit, len, &err), CUTSET_BAD);
        assert_null(plan);
        assert_true(strncmp(err.message, "the plan: ", 10) == 0);
        free(fit);
    }
}

/* What programs are told beside the message. */
static void answers_name_nodes(void **state)
{
    (void)state;
    cutset_error err;
    cutset_plan *plan = NULL;
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    opts.host_memory = 399;
    assert_int_equal(make(&plan, &opts, &err), CUTSET_NO);
    assert_int_equal(err.about, CUTSET_ABOUT_BUDGET);
    assert_int_equal(err.needed, 400);
    assert_int_equal(err.budget, 399);
    assert_int_equal(err.n_names, 1);
    assert_string_equal(err.names, "a");

    const char *const pair[] = {"b,d"}; /* %c lies between them and is host */
    const char *const pins[] = {"b=acc"};
    cutset_plan_opts_init(&opts);
    opts.groups = pair, opts.n_groups = 1;
    opts.pins = pins, opts.n_pins = 1;
    assert_int_equal(make(&plan, &opts, &err), CUTSET_NO);
    assert_int_equal(err.about, CUTSET_ABOUT_GROUP);
    assert_int_equal(err.n_names, 3);
    assert_memory_equal(err.names, "c\0d\0b\0", 7);
    assert_non_null(strstr(err.message, "%c -> %d ~ %b -> %c"));
}

static int stop(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    (void)phase;
    (void)done;
    (void)total;
    return --*(int *)payload < 0;
}

/* Stopping at the first, the second, ... call of the progress function, until there is none. */
static void interrupted(void **state)
{
    (void)state;
    cutset_plan *plan = NULL;
    int stops = 0;
    for (;; stops++) {
        int left = stops;
        cutset_error err;
        cutset_plan_opts opts;
        cutset_plan_opts_init(&opts);
        opts.progress = (cutset_progress){stop, &left};
        const cutset_status status = make(&plan, &opts, &err);
        if (status == CUTSET_OK) break;
        assert_int_equal(status, CUTSET_INTERRUPTED);
        assert_null(plan);
    }
    assert_true(stops > 0);
    cutset_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(refused), cmocka_unit_test(cut_off),
        cmocka_unit_test(answers_name_nodes), cmocka_unit_test(interrupted)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
