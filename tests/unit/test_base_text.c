/* Text: spans, globs against a recursive oracle, UTF-8 against a decoder, numbers both ways. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

#define SPLITMIX
#include "random.h"

/* ---- spans ---- */

static void spans(void **state)
{
    (void)state;
    assert_int_equal(cs_span_of(NULL).len, 0);
    assert_non_null(cs_span_of(NULL).at);
    assert_true(cs_span_eq((cs_span){NULL, 0}, CS_SPAN("")));
    assert_true(cs_span_eq(CS_SPAN("a\0b"), CS_SPAN("a\0b")));
    assert_false(cs_span_eq(CS_SPAN("a\0b"), CS_SPAN("a\0c")));
    assert_false(cs_span_eq(CS_SPAN("ab"), CS_SPAN("abc")));
    assert_true(cs_span_is(CS_SPAN("ab"), "ab"));
    assert_false(cs_span_is(CS_SPAN("ab"), "a"));
    assert_int_equal(cs_span_cmp(CS_SPAN("a"), CS_SPAN("a")), 0);
    assert_int_equal(cs_span_cmp(CS_SPAN("a"), CS_SPAN("ab")), -1);
    assert_int_equal(cs_span_cmp(CS_SPAN("b"), CS_SPAN("ab")), 1);
    assert_int_equal(cs_span_cmp(CS_SPAN("\xff"), CS_SPAN("a")), 1);
    assert_int_equal(cs_span_cmp((cs_span){NULL, 0}, CS_SPAN("")), 0);
    char out[8];
    snprintf(out, sizeof out, "%.*s", CS_FMT(CS_SPAN("abc")));
    assert_string_equal(out, "abc");
}

/* ---- globs ---- */

static bool glob(const char *pattern, const char *text)
{
    return cs_glob(cs_span_of(pattern), cs_span_of(text));
}

static void globs(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool match;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "a/b.c", true},
        {"**", "x", true},
        {"?", "", false},
        {"a*b*c", "axxbxxbxc", true},
        {"a*b*c", "axxbxxbx", false},
        {"/layers.*/attn/*", "/layers.7/attn/MatMul", true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "ax", false},
        {"[]]", "]", true},
        {"[!]]", "]", false},
        {"[!]]", "a", true},
        {"[a-]", "-", true},
        {"[-a]", "-", true},
        {"[\\]]", "]", true},
        {"[a\\-c]", "b", false},
        {"[a\\-c]", "-", true},
        {"[abc", "[abc", true}, /* never closed: itself */
        {"[abc", "a", false},
        {"[", "[", true},
        {"[!", "[!", true},
        {"[\xf0-\xff]", "\xf8", true}, /* bytes are unsigned */
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"\\[a]", "[a]", true},
        {"a\\", "a\\", true}, /* nothing to quote: itself */
        {"*[0-9]", "abc7", true},
        {"*[0-9]", "abc7x", false},
        {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaa", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (glob(cases[i].pattern, cases[i].text) != cases[i].match)
            fail_msg("\"%s\" on \"%s\"", cases[i].pattern, cases[i].text);
}

/* The definition, exponential: for * ? and bytes. */
static bool slow_glob(const char *p, const char *t)
{
    if (*p == '\0') return *t == '\0';
    if (*p == '*') return slow_glob(p + 1, t) || (*t != '\0' && slow_glob(p, t + 1));
    return *t != '\0' && (*p == '?' || *p == *t) && slow_glob(p + 1, t + 1);
}

static void globs_against_oracle(void **state)
{
    (void)state;
    seed = 7;
    size_t hits = 0;
    for (int i = 0; i < 200000; i++) {
        char p[9] = "", t[11] = "";
        const size_t pn = random_bits() % 8, tn = random_bits() % 10;
        for (size_t k = 0; k < pn; k++)
            p[k] = "ab*?*"[random_bits() % 5];
        for (size_t k = 0; k < tn; k++)
            t[k] = "ab"[random_bits() % 2];
        const bool want = slow_glob(p, t);
        hits += want;
        if (glob(p, t) != want) fail_msg("\"%s\" on \"%s\"", p, t);
    }
    assert_true(hits > 10000);
}

static void glob_is_not_exponential(void **state)
{
    (void)state;
    enum { N = 20000 };
    static char text[N];
    memset(text, 'a', N);
    assert_false(cs_glob(CS_SPAN("*a*a*a*a*a*a*a*a*a*a*a*a*b"), (cs_span){text, N}));
}

/* ---- UTF-8 ---- */

/* Straight from the definition: decode, then ask what was decoded. */
static bool slow_utf8(const unsigned char *s, size_t len)
{
    while (len > 0) {
        const size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : 4;
        if (n == 4 && s[0] >> 3 != 30) return false;
        if (n > len) return false;
        uint32_t x = n == 1 ? s[0] : s[0] & (0x7fU >> n);
        for (size_t i = 1; i < n; i++) {
            if (s[i] >> 6 != 2) return false;
            x = x << 6 | (s[i] & 0x3fU);
        }
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (x < least[n] || x > 0x10ffff || (x >= 0xd800 && x <= 0xdfff)) return false;
        s += n;
        len -= n;
    }
    return true;
}

static void utf8_against_decoder(void **state)
{
    (void)state;
    static const unsigned char edge[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                         0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                         0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff};
    enum { E = sizeof edge };
    size_t valid = 0;
    for (size_t i = 0; i < (size_t)E * E * E * E; i++) {
        const unsigned char s[4] = {edge[i % E], edge[i / E % E], edge[i / E / E % E],
                                    edge[i / E / E / E]};
        for (size_t len = 0; len <= 4; len++) {
            const bool want = slow_utf8(s, len);
            valid += want;
            if (cs_utf8_valid((cs_span){(const char *)s, len}) != want)
                fail_msg("%02x %02x %02x %02x, %zu", s[0], s[1], s[2], s[3], len);
        }
    }
    assert_true(valid > 1000);
    assert_int_equal(cs_utf8_step("", 0), 0);
    assert_int_equal(cs_utf8_step("\xe2\x82\xac", 3), 3);
    assert_int_equal(cs_utf8_step("\xe2\x82\xac", 2), 0);
}

/* ---- interned strings ---- */

static void strtab(void **state)
{
    (void)state;
    cs_strtab tab;
    assert_true(cs_strtab_init(&tab));
    assert_int_equal(cs_strtab_add(&tab, CS_SPAN(""), false), 0);
    assert_int_equal(cs_strtab_find(&tab, (cs_span){NULL, 0}), 0);
    static const char kept[] = "kept";
    char lost[] = "lost";
    assert_int_equal(cs_strtab_add(&tab, CS_SPAN(kept), true), 1);
    assert_int_equal(cs_strtab_add(&tab, (cs_span){lost, 4}, false), 2);
    assert_ptr_equal(cs_strtab_get(&tab, 1).at, kept);
    lost[0] = 'm';
    assert_true(cs_span_is(cs_strtab_get(&tab, 2), "lost"));
    assert_int_equal(cs_strtab_add(&tab, CS_SPAN("lost"), true), 2);
    assert_int_equal(cs_strtab_find(&tab, CS_SPAN("most")), CS_NONE);
    assert_int_equal(cs_strtab_add(&tab, CS_SPAN("a\0b"), false), 3);
    assert_int_equal(cs_strtab_add(&tab, CS_SPAN("a\0c"), false), 4);
    assert_int_equal(cs_strtab_add(&tab, CS_SPAN("a"), false), 5);
    cs_strtab_fini(&tab);
    assert_int_equal(cs_strtab_find(&tab, CS_SPAN("a")), CS_NONE);
}

static void strtab_many(void **state)
{
    (void)state;
    enum { N = 200000 };
    cs_strtab tab;
    assert_true(cs_strtab_init(&tab));
    char name[64];
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 1; i < N; i++) {
            const int len = snprintf(name, sizeof name, "/model/layers.%u/out", i);
            assert_int_equal(cs_strtab_add(&tab, (cs_span){name, (size_t)len}, false), i);
        }
    }
    assert_int_equal(tab.text.len, N);
    assert_true(tab.text.len * 8 <= tab.slots * 5);
    for (uint32_t i = 1; i < N; i += 997) {
        const int len = snprintf(name, sizeof name, "/model/layers.%u/out", i);
        assert_int_equal(cs_strtab_find(&tab, (cs_span){name, (size_t)len}), i);
        assert_true(cs_span_is(cs_strtab_get(&tab, i), name));
    }
    cs_strtab_fini(&tab);
}

/* ---- numbers ---- */

static void integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t x;
    } good[] = {
        {"0", 0},
        {"-0", 0},
        {"+7", 7},
        {"007", 7},
        {"-12", -12},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t x = 99;
        assert_true(cs_parse_i64(cs_span_of(good[i].text), &x));
        assert_true(x == good[i].x);
    }
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x10",
                                      "--1",
                                      "1e3",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999",
                                      "1_0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t x = 99;
        if (cs_parse_i64(cs_span_of(bad[i]), &x) || x != 99) fail_msg("\"%s\"", bad[i]);
    }
    int64_t x;
    assert_true(cs_parse_i64((cs_span){"123456", 3}, &x)); /* not past its end */
    assert_int_equal(x, 123);
    assert_int_equal(cs_sat_mul(3, 4), 12);
    assert_true(cs_sat_mul(INT64_MAX / 2, 3) == INT64_MAX);
    assert_int_equal(cs_sat_mul(0, INT64_MAX), 0);
    assert_true(cs_sat_add(INT64_MAX - 1, 2) == INT64_MAX);
    assert_true(cs_sat_add(INT64_MAX - 2, 2) == INT64_MAX);
    assert_int_equal(cs_sat_add(2, 3), 5);
}

static void floats_read(void **state)
{
    (void)state;
    /* strtod in the C locale is the oracle: the text has a point, we read it without one */
    static const char *const good[] = {
        "0",
        "-0",
        "1",
        "+1",
        "1.",
        ".5",
        "1.5",
        "-1.5e3",
        "1E+3",
        "1e-3",
        "0.1",
        "00.10",
        "0e999999999999999999999",
        "1e-999999999999999999999",
        "4.9e-324",
        "2.5e-324",
        "2.4e-324",
        "1.7976931348623157e308",
        "0.00000000000000000000000000000000000000000000000000001e60",
        "179769313486231570000000000000000000000000000000000000000e250",
        "9007199254740993",
        "9007199254740993.00000000000000000000000000000000000000000000000000000000000000000001",
        "2.2250738585072011e-308",
        "123456789012345678901234567890"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double x = 99;
        if (!cs_parse_f64(cs_span_of(good[i]), &x)) fail_msg("\"%s\"", good[i]);
        const double want = strtod(good[i], NULL);
        if (memcmp(&x, &want, sizeof x) != 0) fail_msg("\"%s\": %.17g", good[i], x);
    }
    static const char *const bad[] = {"",      ".",     "-",      "e5", "1e",    "1e+",
                                      "1.2.3", "1,5",   " 1",     "1 ", "0x1p3", "infinity",
                                      "NaN",   "1e400", "-1e400", "1f", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double x = 99;
        if (cs_parse_f64(cs_span_of(bad[i]), &x) || x != 99) fail_msg("\"%s\"", bad[i]);
    }
    double x;
    assert_true(cs_parse_f64(CS_SPAN("nan"), &x) && isnan(x));
    assert_true(cs_parse_f64(CS_SPAN("-inf"), &x) && isinf(x) && x < 0);
    assert_true(cs_parse_f64(CS_SPAN("-0.0"), &x) && x == 0 && signbit(x));
}

/* Thousands of digits: the far end still decides between two neighbours. */
static void floats_read_long(void **state)
{
    (void)state;
    static char text[6000];
    strcpy(text, "9007199254740993."); /* midway between two doubles: to the even one, below */
    const size_t dot = strlen(text);
    memset(text + dot, '0', 5000);
    double x;
    assert_true(cs_parse_f64((cs_span){text, dot + 5000}, &x));
    assert_true(x == 9007199254740992.0);
    text[dot + 4999] = '1'; /* a little above it */
    assert_true(cs_parse_f64((cs_span){text, dot + 5000}, &x));
    assert_true(x == 9007199254740994.0);
    memset(text, '0', 5000);
    memcpy(text + 4999, "7e-2", 5);
    assert_true(cs_parse_f64(cs_span_of(text), &x));
    assert_true(x == 0.07);
    memset(text, '9', 1000);
    strcpy(text + 1000, "e-999");
    assert_true(cs_parse_f64(cs_span_of(text), &x));
    assert_true(x == 10.0);
}

static const struct {
    double x;
    const char *text;
} layouts[] = {
    {0, "0.0"},
    {-0.0, "-0.0"},
    {1, "1.0"},
    {-224, "-224.0"},
    {0.1, "0.1"},
    {0.0001, "0.0001"},
    {0.00001, "1e-05"},
    {0.00012345, "0.00012345"},
    {1e15, "1000000000000000.0"},
    {1e16, "1e+16"},
    {123456.75, "123456.75"},
    {1.5e300, "1.5e+300"},
    {5e-324, "5e-324"},
    {1.7976931348623157e308, "1.7976931348623157e+308"},
    {2.2250738585072014e-308, "2.2250738585072014e-308"},
    {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
    {5e-318, "5e-318"},
    {9007199254740992, "9007199254740992.0"},
    {0.30000000000000004, "0.30000000000000004"},
    {(double)INFINITY, "inf"},
    {-(double)INFINITY, "-inf"},
};

static void floats_have_layout(void **state)
{
    (void)state;
    char out[32];
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        cs_format_f64(layouts[i].x, out);
        assert_string_equal(out, layouts[i].text);
    }
    cs_format_f64((double)NAN, out);
    assert_string_equal(out, "nan");
    cs_format_f64(-(double)NAN, out);
    assert_string_equal(out, "nan");
    cs_format_f32(0.1f, out);
    assert_string_equal(out, "0.1");
    cs_format_f32(16777216.0f, out);
    assert_string_equal(out, "16777216.0");
    cs_format_f32(1e-45f, out);
    assert_string_equal(out, "1e-45");
    cs_format_f32(3.4028235e38f, out);
    assert_string_equal(out, "3.4028235e+38");
    cs_format_f32(-INFINITY, out);
    assert_string_equal(out, "-inf");
}

static size_t digits_of(const char *text)
{
    size_t digits = 0, zeros = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (digits == 0 && *text == '0')) continue;
        digits++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return digits - zeros;
}

static void check_f64(double x)
{
    char out[32], slow[40];
    memset(out, 'x', sizeof out);
    cs_format_f64(x, out);
    assert_non_null(memchr(out, 0, sizeof out));
    assert_true(strchr(out, '.') != NULL || strchr(out, 'e') != NULL);
    double back;
    assert_true(cs_parse_f64(cs_span_of(out), &back));
    const double again = strtod(out, NULL);
    if (memcmp(&back, &x, sizeof x) != 0 || memcmp(&again, &x, sizeof x) != 0)
        fail_msg("%a gave %s", x, out);
    int least = 1;
    for (;; least++) {
        snprintf(slow, sizeof slow, "%.*e", least - 1, x);
        if (strtod(slow, NULL) == x) break;
    }
    if (x != 0 && digits_of(out) > (size_t)least) fail_msg("%s has more digits than %s", out, slow);
}

static void check_f32(float x)
{
    char out[32], slow[40];
    memset(out, 'x', sizeof out);
    cs_format_f32(x, out);
    assert_non_null(memchr(out, 0, sizeof out));
    assert_true(strchr(out, '.') != NULL || strchr(out, 'e') != NULL);
    double wide;
    assert_true(cs_parse_f64(cs_span_of(out), &wide));
    const float back = (float)wide, again = strtof(out, NULL);
    if (memcmp(&back, &x, sizeof x) != 0 || memcmp(&again, &x, sizeof x) != 0)
        fail_msg("%a gave %s", (double)x, out);
    int least = 1;
    for (;; least++) {
        snprintf(slow, sizeof slow, "%.*e", least - 1, (double)x);
        if (strtof(slow, NULL) == x) break;
    }
    if (x != 0 && digits_of(out) > (size_t)least) fail_msg("%s has more digits than %s", out, slow);
}

static void floats_round_trip(void **state)
{
    (void)state;
    seed = 3;
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = random_bits();
        double x;
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x)) check_f64(x);
        const uint64_t sub = bits & UINT64_C(0x800fffffffffffff);
        memcpy(&x, &sub, sizeof x);
        check_f64(x);
        check_f64((double)(int64_t)(bits >> (bits % 64)) / 1000);
        const uint32_t half = (uint32_t)bits;
        float y;
        memcpy(&y, &half, sizeof y);
        if (isfinite(y)) check_f32(y);
        const uint32_t small = half & 0x807fffff;
        memcpy(&y, &small, sizeof y);
        check_f32(y);
        check_f32((float)(half % 100000) / 1000);
    }
}

/* A host program may have chosen a decimal comma. Skipped where no such locale is installed. */
static void floats_ignore_the_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    const char *got = NULL;
    for (size_t i = 0; i < 4 && got == NULL; i++)
        got = setlocale(LC_NUMERIC, names[i]);
    if (got == NULL) skip();
    char out[32], comma[8];
    snprintf(comma, sizeof comma, "%.1f", 1.5);
    cs_format_f64(1234.5, out);
    double x = 0;
    const bool ok = cs_parse_f64(CS_SPAN("1234.5"), &x), wrong = cs_parse_f64(CS_SPAN("1,5"), &x);
    char narrow[32];
    cs_format_f32(0.1f, narrow);
    setlocale(LC_NUMERIC, "C");
    assert_string_not_equal(comma, "1.5");
    assert_string_equal(out, "1234.5");
    assert_string_equal(narrow, "0.1");
    assert_true(ok && x == 1234.5 && !wrong);
}

/* ---- sizes ---- */

static void sizes_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"1", 1},
        {"123", 123},
        {"123B", 123},
        {"1KB", 1000},
        {"1MB", 1000000},
        {"8GB", INT64_C(8000000000)},
        {"2TB", INT64_C(2000000000000)},
        {"1KiB", 1024},
        {"512MiB", 512 << 20},
        {"8GiB", INT64_C(8) << 30},
        {"1TiB", INT64_C(1) << 40},
        {"1.5GiB", INT64_C(3) << 29},
        {"0.5KiB", 512},
        {"0.001KB", 1},
        {"0.0019KB", 1},
        {"0.1KiB", 102},
        {"1.999999999999999999999999999999999999999999999999999KB", 1999},
        {"0.3TiB", INT64_C(329853488332)},
        {"8388607TiB", INT64_C(8388607) << 40},
        {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t x = -9;
        if (!cs_parse_size(cs_span_of(good[i].text), &x) || x != good[i].bytes)
            fail_msg("\"%s\": %lld", good[i].text, (long long)x);
    }
    static const char *const bad[] = {"",
                                      "0",
                                      "0GiB",
                                      "0.0001KB",
                                      "-1",
                                      "+1",
                                      "-1GiB",
                                      "1.5",
                                      "1.5B",
                                      "GiB",
                                      ".5GiB",
                                      "1.GiB",
                                      "1..5MB",
                                      "1 GiB",
                                      "1GiBs",
                                      "1gib",
                                      "1G",
                                      "1k",
                                      "1e3",
                                      "0x10",
                                      "1,5GiB",
                                      "8388608TiB",
                                      "9223372036854775808",
                                      "9223372036854775807KB",
                                      "99999999999999999999GiB",
                                      "1.5.5GiB",
                                      " 1",
                                      "auto"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t x = -9;
        if (cs_parse_size(cs_span_of(bad[i]), &x) || x != -9) fail_msg("\"%s\"", bad[i]);
    }
}

static void sizes_written(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1025, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {1048575, "1.0 MiB"},
        {INT64_C(3) << 29, "1.5 GiB"},
        {INT64_C(16) << 30, "16 GiB"},
        {INT64_C(1023) << 30, "1023 GiB"},
        {(INT64_C(1) << 40) - 1, "1.0 TiB"},
        {INT64_MAX, "8.0 EiB"},
        {-1536, "-1.5 KiB"},
        {INT64_MIN, "-8 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[16];
        memset(out, 'x', sizeof out);
        cs_format_size(cases[i].bytes, out);
        assert_string_equal(out, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans),
        cmocka_unit_test(globs),
        cmocka_unit_test(globs_against_oracle),
        cmocka_unit_test(glob_is_not_exponential),
        cmocka_unit_test(utf8_against_decoder),
        cmocka_unit_test(strtab),
        cmocka_unit_test(strtab_many),
        cmocka_unit_test(integers),
        cmocka_unit_test(floats_read),
        cmocka_unit_test(floats_read_long),
        cmocka_unit_test(floats_have_layout),
        cmocka_unit_test(floats_round_trip),
        cmocka_unit_test(floats_ignore_the_locale),
        cmocka_unit_test(sizes_read),
        cmocka_unit_test(sizes_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
