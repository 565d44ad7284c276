/* The public call cutset_verify on a split made here: without memory at every allocation in turn,
 * stopped by its progress function, with a report that cannot be written. Skipped without ONNX
 * Runtime. */
#include "failing_alloc.h" /* before cmocka.h, which has a test_malloc of its own */

#include "onnx_bytes.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/ort.h"

static char folder[] = "/tmp/cutset-verify-XXXXXX";
static char parts[sizeof folder + 8];

static void ok(cutset_status status, const cutset_error *err)
{
    if (status) fail_msg("%s", err->message);
}

/* Exp on the host, Neg on acc, Cast on the host, Cast on acc: four parts, the last of them reads
 * f16. */
static void make_split(void)
{
    char path[sizeof folder + 16];
    cutset_error err = {0};
    cutset_model *m = NULL;
    cutset_target *t = NULL;
    cutset_plan *p = NULL;
    pb g = graph_xy(), bytes;
    pb_msg(&g, 1, node("Exp", "x", "a"));
    pb_msg(&g, 1, node("Neg", "a", "b"));
    pb_msg(&g, 1, with_attr(node("Cast", "b", "c"), attr_int("to", CS_F16)));
    pb_msg(&g, 1, with_attr(node("Cast", "c", "y"), attr_int("to", CS_F32)));
    bytes = model(g);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    snprintf(parts, sizeof parts, "%s/parts", folder);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes.at, 1, bytes.len, f), bytes.len);
    fclose(f);
    free(bytes.at);
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    opts.pins = (const char *const[]){"b=acc", "y=acc"};
    opts.n_pins = 2;
    ok(cutset_model_open(&m, path, NULL, &err), &err);
    ok(cutset_target_open(&t, "acc", &err), &err);
    ok(cutset_plan_make(&p, m, (const cutset_target *const[]){t}, 1, &opts, &err), &err);
    ok(cutset_split_write(m, p, parts, NULL, &err), &err);
    cutset_plan_free(p);
    cutset_target_free(t);
    cutset_model_free(m);
}

static int count_bytes(void *payload, const void *bytes, size_t len)
{
    (void)bytes;
    *(size_t *)payload += len;
    return 0;
}

static void without_memory(void **state)
{
    (void)state;
    const long before = alloc_live();
    size_t got = 0;
    long n = 0;
    for (;; n++) {
        cutset_error err = {0};
        got = 0;
        alloc_fail_at(n);
        const cutset_status status = cutset_verify(parts, NULL, count_bytes, &got, &err);
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(alloc_live(), before);
        if (!failed) {
            ok(status, &err);
            break;
        }
        if (status != CUTSET_SYSTEM) fail_msg("call %ld: %d %s", n, status, err.message);
        assert_int_equal(got, 0);
    }
    assert_true(n > 100 && got > 100);
}

typedef struct steps {
    int until, seen;
} steps;

static int stop_after(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    steps *s = payload;
    assert_non_null(phase);
    assert_true(total == 0 || done <= total);
    return s->seen++ == s->until;
}

static void stopped(void **state)
{
    (void)state;
    for (int until = 0;; until++) {
        steps s = {until, 0};
        cutset_verify_opts opts;
        cutset_error err = {0};
        cutset_verify_opts_init(&opts);
        opts.progress = (cutset_progress){stop_after, &s};
        const cutset_status status = cutset_verify(parts, &opts, NULL, NULL, &err);
        if (s.seen <= until) { /* it was never asked to stop */
            ok(status, &err);
            assert_true(until > 5);
            break;
        }
        assert_int_equal(status, CUTSET_INTERRUPTED);
    }
}

static int refuse_bytes(void *payload, const void *bytes, size_t len)
{
    (void)payload;
    (void)bytes;
    (void)len;
    return 1;
}

static void report_that_cannot_be_written(void **state)
{
    (void)state;
    assert_int_equal(cutset_verify(parts, NULL, refuse_bytes, NULL, NULL), CUTSET_SYSTEM);
    assert_int_equal(cutset_verify(parts, NULL, NULL, NULL, NULL), CUTSET_OK);
}

int main(void)
{
    cutset_error err = {0};
    cs_ort *ort;
    if (cs_ort_open(&ort, NULL, &err)) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    setenv("CUTSET_ONNXRUNTIME", cs_ort_path(ort), 1); /* found once, not for every call */
    cs_ort_close(ort);
    if (mkdtemp(folder) == NULL) return 1;
    make_split();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory),
        cmocka_unit_test(stopped),
        cmocka_unit_test(report_that_cannot_be_written),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cs_dir_remove_tree(folder, NULL);
    return failed;
}
