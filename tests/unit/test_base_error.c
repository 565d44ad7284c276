/* Errors: one line, cut where it must be, with the cause kept. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/text.h"

static cutset_error poisoned(void)
{
    cutset_error err;
    memset(&err, 0x55, sizeof err);
    return err;
}

static void fields_are_set(void **state)
{
    (void)state;
    cutset_error err = poisoned();
    assert_int_equal(cs_fail(&err, CUTSET_BAD, "part %d: %s", 7, "no"), CUTSET_BAD);
    assert_int_equal(err.status, CUTSET_BAD);
    assert_int_equal(err.system, 0);
    assert_int_equal(err.offset, -1);
    assert_string_equal(err.message, "part 7: no");

    err = poisoned();
    assert_int_equal(cs_fail_at(&err, CUTSET_USAGE, 123, "here"), CUTSET_USAGE);
    assert_int_equal(err.status, CUTSET_USAGE);
    assert_int_equal(err.offset, 123);
    assert_int_equal(err.system, 0);

    err = poisoned();
    assert_int_equal(cs_fail_memory(&err), CUTSET_SYSTEM);
    assert_int_equal(err.status, CUTSET_SYSTEM);
    assert_int_equal(err.offset, -1);
    assert_string_equal(err.message, "out of memory");
}

static void errno_is_told(void **state)
{
    (void)state;
    cutset_error err = poisoned();
    errno = ENOENT;
    assert_int_equal(cs_fail_errno(&err, "cannot open %s", "x.onnx"), CUTSET_SYSTEM);
    assert_int_equal(err.system, ENOENT);
    assert_int_equal(err.offset, -1);
    assert_string_equal(err.message, "cannot open x.onnx: No such file or directory");
    errno = 54321;
    cs_fail_errno(&err, "odd");
    assert_string_equal(err.message, "odd: error 54321");
}

static void no_error_wanted(void **state)
{
    (void)state;
    assert_int_equal(cs_fail(NULL, CUTSET_NO, "x"), CUTSET_NO);
    assert_int_equal(cs_fail_at(NULL, CUTSET_BAD, 1, "x"), CUTSET_BAD);
    assert_int_equal(cs_fail_errno(NULL, "x"), CUTSET_SYSTEM);
    assert_int_equal(cs_fail_memory(NULL), CUTSET_SYSTEM);
}

static void control_bytes_are_escaped(void **state)
{
    (void)state;
    cutset_error err;
    cs_fail(&err, CUTSET_BAD,
            "a\nb\rc\td\x7f"
            "e\x1b[0m \xc3\xa9 \xff");
    assert_string_equal(err.message, "a\\x0ab\\x0dc\\x09d\\x7fe\\x1b[0m \xc3\xa9 \xff");
}

/* An argument may be the message that is being replaced. */
static void old_message_may_be_quoted(void **state)
{
    (void)state;
    cutset_error err;
    cs_fail(&err, CUTSET_BAD, "inner");
    cs_fail(&err, CUTSET_BAD, "outer (%s)", err.message);
    assert_string_equal(err.message, "outer (inner)");
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    cutset_error err;
    char text[3000];
    for (size_t len = 980; len < 1020; len++) {
        memset(text, 'x', len);
        text[len] = '\0';
        err = poisoned();
        cs_fail(&err, CUTSET_BAD, "%s", text);
        const size_t room = sizeof err.message - 1;
        assert_int_equal(strlen(err.message), len <= room ? len : room);
        if (len <= room)
            assert_string_equal(err.message, text);
        else
            assert_string_equal(err.message + room - 4, "x...");
    }
}

/* Neither an escape nor a character of several bytes is cut in its middle. */
static void cuts_between_characters(void **state)
{
    (void)state;
    static const char *const pieces[] = {"\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t p = 0; p < 4; p++) {
        for (size_t shift = 0; shift < 5; shift++) {
            char text[4000] = "";
            for (size_t i = 0; i < shift; i++)
                strcat(text, "x");
            for (size_t i = 0; i < 900; i++)
                strcat(text, pieces[p]);
            cutset_error err;
            cs_fail(&err, CUTSET_BAD, "%s", text);
            const size_t len = strlen(err.message);
            assert_true(len >= sizeof err.message - 8 && len < sizeof err.message);
            assert_string_equal(err.message + len - 3, "...");
            assert_true(cs_utf8_valid(cs_span_of(err.message)));
            const size_t unit = p == 0 ? 4 : strlen(pieces[p]);
            assert_int_equal((len - 3 - shift) % unit, 0);
        }
    }
}

static void errno_survives_a_cut(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cutset_error err;
    errno = ENOSPC;
    cs_fail_errno(&err, "cannot write %s", text);
    const char *tail = "y...: No space left on device";
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + strlen(err.message) - strlen(tail), tail);
}

typedef struct seen {
    uint64_t done, total;
    const char *phase;
    int answer;
} seen;

static int on_progress(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    seen *s = payload;
    s->done = done;
    s->total = total;
    s->phase = phase;
    return s->answer;
}

static void file_is_named_once(void **state)
{
    (void)state;
    cutset_error err;
    cs_fail_in(NULL, "m.cut");
    cs_fail_at(&err, CUTSET_BAD, 17, "line 3: no such value");
    cs_fail_in(&err, "m.cut");
    assert_string_equal(err.message, "m.cut: line 3: no such value");
    assert_int_equal(err.offset, 17);
    assert_int_equal(err.status, CUTSET_BAD);
    const char *const told[] = {"m.cut", "m.cut is empty", "m.cut: line 1",
                                "tensor w: see 'm.cut'"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        cs_fail(&err, CUTSET_BAD, "%s", told[i]);
        cs_fail_in(&err, "m.cut");
        assert_string_equal(err.message, told[i]);
    }
    cs_fail(&err, CUTSET_BAD, "am.cutter"); /* not that file */
    cs_fail_in(&err, "m.cut");
    assert_string_equal(err.message, "m.cut: am.cutter");
    cs_fail(&err, CUTSET_BAD, "a line");
    cs_fail_in(&err, "a\nb");
    assert_string_equal(err.message, "a\\x0ab: a line");
}

static void progress_may_stop(void **state)
{
    (void)state;
    cutset_error err = poisoned();
    seen s = {0};
    const cutset_progress none = {0}, some = {on_progress, &s};
    assert_int_equal(cs_progress(NULL, "read", 1, 2, &err), CUTSET_OK);
    assert_int_equal(cs_progress(&none, "read", 1, 2, &err), CUTSET_OK);
    assert_int_equal(cs_progress(&some, "read", 1, 2, &err), CUTSET_OK);
    assert_int_equal(s.done, 1);
    assert_int_equal(s.total, 2);
    assert_string_equal(s.phase, "read");
    s.answer = 5;
    assert_int_equal(cs_progress(&some, "read", 1, 2, &err), CUTSET_INTERRUPTED);
    assert_int_equal(err.status, CUTSET_INTERRUPTED);
    assert_string_equal(err.message, "interrupted during read");
    assert_string_equal(cutset_version_string(), CUTSET_VERSION);
}

/* The i-th name, or NULL. */
static const char *name_at(const cutset_error *err, uint32_t i)
{
    const char *at = err->names;
    while (i-- > 0 && *at != '\0')
        at += strlen(at) + 1;
    return *at != '\0' ? at : NULL;
}

static void nodes_are_named(void **state)
{
    (void)state;
    cutset_error err = poisoned();
    cs_fail(&err, CUTSET_NO, "over");
    assert_int_equal(err.about, CUTSET_ABOUT_OTHER);
    assert_int_equal(err.needed, 0);
    assert_int_equal(err.budget, 0);
    assert_int_equal(err.n_names, 0);
    assert_null(name_at(&err, 0));
    cs_error_about(&err, CUTSET_ABOUT_BUDGET, 604, 100);
    cs_error_name(&err, "conv1", 5);
    cs_error_name(&err, "conv2xxx", 5);
    assert_int_equal(err.n_names, 2);
    assert_string_equal(name_at(&err, 0), "conv1");
    assert_string_equal(name_at(&err, 1), "conv2");
    assert_null(name_at(&err, 2));

    cs_fail_in(&err, "m.cut"); /* keeps all but the message */
    assert_string_equal(err.message, "m.cut: over");
    assert_int_equal(err.about, CUTSET_ABOUT_BUDGET);
    assert_int_equal(err.needed, 604);
    assert_int_equal(err.budget, 100);
    assert_string_equal(name_at(&err, 1), "conv2");

    cs_fail(&err, CUTSET_BAD, "another");
    assert_int_equal(err.n_names, 0);
    assert_null(name_at(&err, 0));

    cs_error_about(NULL, CUTSET_ABOUT_GROUP, 0, 0);
    cs_error_name(NULL, "x", 1);
}

/* As many as fit, whole; one that is left out ends the list. */
static void names_that_do_not_fit_are_counted(void **state)
{
    (void)state;
    char name[1500];
    memset(name, 'n', sizeof name);
    cutset_error err = poisoned();
    cs_fail(&err, CUTSET_NO, "x");
    cs_error_name(&err, name, sizeof name);
    cs_error_name(&err, name, 498); /* one byte more than there is room for */
    cs_error_name(&err, "z", 1);
    assert_int_equal(err.n_names, 3);
    assert_int_equal(strlen(name_at(&err, 0)), sizeof name);
    assert_null(name_at(&err, 1));

    cs_fail(&err, CUTSET_NO, "x");
    cs_error_name(&err, name, sizeof name);
    cs_error_name(&err, name, 497);
    assert_int_equal(strlen(name_at(&err, 1)), 497);

    cs_fail(&err, CUTSET_NO, "x");
    cs_error_name(&err, "a\0b", 3); /* cannot be told */
    cs_error_name(&err, "c", 1);
    assert_int_equal(err.n_names, 2);
    assert_null(name_at(&err, 0));

    cs_fail(&err, CUTSET_NO, "x");
    for (int i = 0; i < 100000; i++)
        cs_error_name(&err, "a", 1);
    assert_int_equal(err.n_names, 100000);
    uint32_t kept = 0;
    while (name_at(&err, kept) != NULL)
        kept++;
    assert_int_equal(kept, sizeof err.names / 2 - 1); /* the list's own end takes one */
}

static void seldom_asks_seldom(void **state)
{
    (void)state;
    seen s = {.answer = 3};
    cutset_seldom often = {.inner = {on_progress, &s}, .interval_ns = 0};
    assert_int_equal(cutset_progress_seldom(&often, "pack", 5, 9), 3);
    assert_int_equal(s.done, 5);
    assert_int_equal(s.total, 9);
    assert_string_equal(s.phase, "pack");
    seen never = {.answer = 3};
    cutset_seldom rare = {.inner = {on_progress, &never}, .interval_ns = INT64_MAX};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(cutset_progress_seldom(&rare, "pack", 5, 9), 0);
    assert_null(never.phase);
    cutset_seldom none = {.interval_ns = 0};
    assert_int_equal(cutset_progress_seldom(&none, "pack", 5, 9), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_set),
        cmocka_unit_test(errno_is_told),
        cmocka_unit_test(no_error_wanted),
        cmocka_unit_test(control_bytes_are_escaped),
        cmocka_unit_test(old_message_may_be_quoted),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(errno_survives_a_cut),
        cmocka_unit_test(file_is_named_once),
        cmocka_unit_test(progress_may_stop),
        cmocka_unit_test(nodes_are_named),
        cmocka_unit_test(names_that_do_not_fit_are_counted),
        cmocka_unit_test(seldom_asks_seldom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
