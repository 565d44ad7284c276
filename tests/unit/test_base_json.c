/* JSON: the layout byte for byte, and strings of any bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "random.h"

typedef struct sheet {
    char at[1 << 16];
    size_t len;
} sheet;

static int gather(void *payload, const void *bytes, size_t len)
{
    sheet *t = payload;
    if (t->len + len >= sizeof t->at) return 1;
    memcpy(t->at + t->len, bytes, len);
    t->len += len;
    t->at[t->len] = '\0';
    return 0;
}

static sheet got;

static void start(cs_json *j, cs_out *out)
{
    got.len = 0;
    got.at[0] = '\0';
    assert_int_equal(cs_out_call(out, gather, &got, NULL), CUTSET_OK);
    cs_json_init(j, out);
}

static void finish(cs_out *out, const char *want)
{
    assert_int_equal(cs_out_done(out, NULL, NULL), CUTSET_OK);
    assert_string_equal(got.at, want);
    assert_int_equal(got.len, out->total);
}

static void layout(void **state)
{
    (void)state;
    cs_out out;
    cs_json j;
    start(&j, &out);
    cs_json_object(&j);
    cs_json_key(&j, "cutset");
    cs_json_object_line(&j);
    cs_json_put_text(&j, "version", "0.1.0");
    cs_json_put_int(&j, "plan", 1);
    cs_json_end(&j);
    cs_json_key(&j, "empty");
    cs_json_array(&j);
    cs_json_end(&j);
    cs_json_key(&j, "none");
    cs_json_object(&j);
    cs_json_end(&j);
    cs_json_key(&j, "parts");
    cs_json_array(&j);
    cs_json_object_line(&j);
    cs_json_key(&j, "to");
    cs_json_array(&j); /* inside a line everything is on it */
    cs_json_int(&j, 1);
    cs_json_int(&j, -3);
    cs_json_end(&j);
    cs_json_put_bool(&j, "done", true);
    cs_json_put_null(&j, "bytes");
    cs_json_end(&j);
    cs_json_object(&j);
    cs_json_key(&j, "x");
    cs_json_array(&j);
    cs_json_text(&j, "a");
    cs_json_bool(&j, false);
    cs_json_end(&j);
    cs_json_put_string(&j, "y", CS_SPAN("b"));
    cs_json_end(&j);
    cs_json_array_line(&j);
    cs_json_null(&j);
    cs_json_f64(&j, 0.5);
    cs_json_f64(&j, 3);
    cs_json_f64(&j, 1e300);
    cs_json_end(&j);
    cs_json_end(&j);
    cs_json_end(&j);
    finish(&out, "{\n"
                 "  \"cutset\": {\"version\": \"0.1.0\", \"plan\": 1},\n"
                 "  \"empty\": [],\n"
                 "  \"none\": {},\n"
                 "  \"parts\": [\n"
                 "    {\"to\": [1, -3], \"done\": true, \"bytes\": null},\n"
                 "    {\n"
                 "      \"x\": [\n"
                 "        \"a\",\n"
                 "        false\n"
                 "      ],\n"
                 "      \"y\": \"b\"\n"
                 "    },\n"
                 "    [null, 0.5, 3.0, 1e+300]\n"
                 "  ]\n"
                 "}\n");
}

static void one_a_line(void **state)
{
    (void)state;
    cs_out out;
    cs_json j;
    start(&j, &out);
    for (int i = 0; i < 3; i++) {
        cs_json_object_line(&j);
        cs_json_put_int(&j, "part", i);
        cs_json_end(&j);
    }
    finish(&out, "{\"part\": 0}\n{\"part\": 1}\n{\"part\": 2}\n");
}

static void check_string(cs_span text, const char *want)
{
    cs_out out;
    cs_json j;
    start(&j, &out);
    cs_json_string(&j, text);
    finish(&out, want);
}

static void strings(void **state)
{
    (void)state;
    check_string(CS_SPAN(""), "\"\"");
    check_string((cs_span){NULL, 0}, "\"\"");
    check_string(CS_SPAN("plain /layer.0/x"), "\"plain /layer.0/x\"");
    check_string(CS_SPAN("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
    check_string(CS_SPAN("a\0b\x01\x1f\x7f"), "\"a\\u0000b\\u0001\\u001f\x7f\"");
    check_string(CS_SPAN("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
                 "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_string(CS_SPAN("x\xffy"), "\"x\\\\xffy\"");
    check_string(CS_SPAN("\xe2\x82"), "\"\\\\xe2\\\\x82\"");            /* torn */
    check_string(CS_SPAN("\xed\xa0\x80"), "\"\\\\xed\\\\xa0\\\\x80\""); /* a surrogate */
    check_string(CS_SPAN("\xc0\xaf"), "\"\\\\xc0\\\\xaf\"");            /* overlong */
}

static void keys_are_strings(void **state)
{
    (void)state;
    cs_out out;
    cs_json j;
    start(&j, &out);
    cs_json_object_line(&j);
    cs_json_key_span(&j, CS_SPAN("a\"\xff"));
    cs_json_int(&j, INT64_MIN);
    cs_json_put_int(&j, "b", INT64_MAX);
    cs_json_end(&j);
    finish(&out, "{\"a\\\"\\\\xff\": -9223372036854775808, \"b\": 9223372036854775807}\n");
}

/* Whatever the bytes are, what is written is UTF-8, one line, and its quotes are escaped. */
static void any_bytes(void **state)
{
    (void)state;
    seed = 1;
    for (int i = 0; i < 20000; i++) {
        char bytes[12];
        const size_t len = i % 13 == 12 ? 12 : (size_t)(i % 13);
        for (size_t k = 0; k < len; k++) {
            const uint64_t x = random_bits();
            bytes[k] = (char)("\"\\\n\x80\xbf\xc3\xe2\xed\xf0\xf4\xff\x01"[(x >> 40) % 12]);
            if (x >> 63) bytes[k] = (char)(x >> 50);
        }
        cs_out out;
        cs_json j;
        start(&j, &out);
        cs_json_string(&j, (cs_span){bytes, len});
        assert_int_equal(cs_out_done(&out, NULL, NULL), CUTSET_OK);
        assert_true(cs_utf8_valid((cs_span){got.at, got.len}));
        assert_true(got.len >= 2 && got.at[0] == '"' && got.at[got.len - 1] == '"');
        for (size_t k = 1; k + 1 < got.len; k++) {
            assert_true((unsigned char)got.at[k] >= 0x20);
            assert_int_not_equal(got.at[k], '"');
            if (got.at[k] != '\\') continue;
            k++;
            assert_true(k + 1 < got.len && strchr("\"\\bfnrtu", got.at[k]) != NULL);
        }
    }
}

static void deep(void **state)
{
    (void)state;
    cs_out out;
    cs_json j;
    start(&j, &out);
    for (int i = 0; i < 32; i++)
        i % 2 == 0 ? cs_json_array_line(&j) : cs_json_array(&j);
    for (int i = 0; i < 32; i++)
        cs_json_end(&j);
    char want[66];
    memset(want, '[', 32);
    memset(want + 32, ']', 32);
    strcpy(want + 64, "\n");
    finish(&out, want);
    start(&j, &out); /* the deepest indent */
    for (int i = 0; i < 32; i++)
        cs_json_array(&j);
    cs_json_int(&j, 1);
    for (int i = 0; i < 32; i++)
        cs_json_end(&j);
    assert_int_equal(cs_out_done(&out, NULL, NULL), CUTSET_OK);
    assert_non_null(strstr(got.at, "\n                                                          "
                                   "      1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),           cmocka_unit_test(one_a_line), cmocka_unit_test(strings),
        cmocka_unit_test(keys_are_strings), cmocka_unit_test(any_bytes),  cmocka_unit_test(deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
