/* Elements as numbers: the small floats against what their definitions say, packing, printing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/elem.h"

static double of_code(cs_elem e, uint32_t code) { return cs_elem_get(e, &code, 0, 0); }

static uint32_t to_code(cs_elem e, double x)
{
    uint32_t code = 0;
    cs_elem_put(e, &code, 0, x, 0);
    return code;
}

static void known_codes(void **state)
{
    (void)state;
    static const struct {
        cs_elem elem;
        uint32_t code;
        double x;
    } all[] = {
        {CS_F16, 0x3c00, 1},           {CS_F16, 0xc000, -2},         {CS_F16, 0x7bff, 65504},
        {CS_F16, 1, 0x1p-24},          {CS_F16, 0x3555, 0x1.554p-2}, {CS_BF16, 0x3f80, 1},
        {CS_BF16, 0x7f7f, 0x1.fep127}, {CS_BF16, 1, 0x1p-133},       {CS_F8E4M3FN, 0x7e, 448},
        {CS_F8E4M3FN, 1, 0x1p-9},      {CS_F8E4M3FN, 0x38, 1},       {CS_F8E4M3FNUZ, 0x7f, 240},
        {CS_F8E4M3FNUZ, 0x40, 1},      {CS_F8E5M2, 0x7b, 57344},     {CS_F8E5M2, 0x3c, 1},
        {CS_F8E5M2FNUZ, 0x7f, 57344},  {CS_F8E5M2FNUZ, 0x40, 1},     {CS_F4E2M1, 7, 6},
        {CS_F4E2M1, 1, 0.5},           {CS_F4E2M1, 0xf, -6},         {CS_F8E8M0, 127, 1},
        {CS_F8E8M0, 0, 0x1p-127},      {CS_F8E8M0, 254, 0x1p127},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(of_code(all[i].elem, all[i].code) == all[i].x);
        assert_int_equal(to_code(all[i].elem, all[i].x), all[i].code);
    }
    assert_true(isnan(of_code(CS_F16, 0x7c01)) && isnan(of_code(CS_BF16, 0x7fc0)));
    assert_true(isnan(of_code(CS_F8E4M3FN, 0x7f)) && isnan(of_code(CS_F8E4M3FNUZ, 0x80)));
    assert_true(isnan(of_code(CS_F8E5M2FNUZ, 0x80)) && isnan(of_code(CS_F8E8M0, 0xff)));
    assert_true(of_code(CS_F16, 0x7c00) == (double)INFINITY);
    assert_true(of_code(CS_F8E5M2, 0xfc) == -(double)INFINITY);
}

/* Every code that is a number reads back; between two neighbours, the nearer one is taken, and of
 * two equally near ones the even one. */
static void round_trips(void **state)
{
    (void)state;
    static const cs_elem types[] = {CS_F16,        CS_BF16,   CS_F8E4M3FN,
                                    CS_F8E4M3FNUZ, CS_F8E5M2, CS_F8E5M2FNUZ};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const cs_elem e = types[t];
        const uint32_t half = UINT32_C(1) << (cs_elem_bits(e) - 1);
        for (uint32_t code = 0; code + 1 < half; code++) {
            const double x = of_code(e, code), y = of_code(e, code + 1);
            if (!isfinite(x)) continue;
            assert_int_equal(to_code(e, x), code);
            if (code > 0) assert_int_equal(to_code(e, -x), code | half);
            if (!isfinite(y)) continue;
            assert_int_equal(to_code(e, (x + y) / 2), code + (code & 1));
            assert_int_equal(to_code(e, x + (y - x) * 0.49), code);
            assert_int_equal(to_code(e, x + (y - x) * 0.51), code + 1);
        }
    }
    assert_int_equal(to_code(CS_F16, 1e9), 0x7bff); /* kept finite */
    assert_int_equal(to_code(CS_F8E4M3FN, -1e9), 0xfe);
}

static void packing(void **state)
{
    (void)state;
    unsigned char at[3] = {0};
    for (size_t i = 0; i < 5; i++)
        cs_elem_put_int(CS_I4, at, i, (int64_t)i - 2);
    assert_int_equal(at[0], 0xfe);
    assert_int_equal(at[1], 0x10);
    for (size_t i = 0; i < 5; i++)
        assert_true(cs_elem_get(CS_I4, at, i, 0) == (double)i - 2);
    assert_true(cs_elem_get(CS_U4, at, 0, 0) == 14);
    memset(at, 0, sizeof at);
    for (size_t i = 0; i < 8; i++)
        cs_elem_put_int(CS_U2, at, i, (int64_t)(i & 3));
    assert_int_equal(at[0], 0xe4);
    assert_int_equal(at[1], 0xe4);
    assert_true(cs_elem_get(CS_I2, at, 3, 0) == -1);
    /* six bits straddle bytes: only ever read */
    const unsigned char six[3] = {0x41, 0x20, 0x0c};
    assert_int_equal(cs_elem_bits_at(CS_F6E2M3, six, 0, 0), 1);
    assert_int_equal(cs_elem_bits_at(CS_F6E2M3, six, 1, 0), 1);
    assert_int_equal(cs_elem_bits_at(CS_F6E2M3, six, 2, 0), 2);
    assert_int_equal(cs_elem_bits_at(CS_F6E2M3, six, 3, 0), 3);
}

static void ranges(void **state)
{
    (void)state;
    assert_int_equal(cs_elem_least(CS_I8), -128);
    assert_int_equal(cs_elem_most(CS_I8), 127);
    assert_int_equal(cs_elem_least(CS_U8), 0);
    assert_int_equal(cs_elem_most(CS_U8), 255);
    assert_int_equal(cs_elem_least(CS_I64), INT64_MIN);
    assert_int_equal(cs_elem_most(CS_I64), INT64_MAX);
    assert_int_equal(cs_elem_most(CS_U64), INT64_MAX);
    assert_int_equal(cs_elem_least(CS_I4), -8);
    assert_int_equal(cs_elem_most(CS_U2), 3);
    assert_int_equal(cs_elem_most(CS_BOOL), 1);
}

static void check_print(cs_elem e, const void *data, const char *want)
{
    char out[80];
    cs_elem_print(e, data, 0, out);
    assert_string_equal(out, want);
}

static void printing(void **state)
{
    (void)state;
    check_print(CS_F32, &(float){0.1f}, "0.1");
    check_print(CS_F32, &(float){-0.0f}, "-0.0");
    check_print(CS_F64, &(double){0.1}, "0.1");
    check_print(CS_I8, &(int8_t){-3}, "-3");
    check_print(CS_U64, &(uint64_t){UINT64_MAX}, "18446744073709551615");
    check_print(CS_I64, &(int64_t){INT64_MIN}, "-9223372036854775808");
    check_print(CS_BOOL, &(uint8_t){1}, "1");
    check_print(CS_F16, &(uint16_t){0x7e01}, "nan:0x7e01");
    check_print(CS_F32, &(float){INFINITY}, "inf");
    check_print(CS_C64, &(float[2]){1, -2}, "(1.0, -2.0)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_codes), cmocka_unit_test(round_trips), cmocka_unit_test(packing),
        cmocka_unit_test(ranges),      cmocka_unit_test(printing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
