/* Numbers and sizes in text, both ways.
 *
 * A host program may have called setlocale, so neither the decimal point that printf writes nor the
 * one that strtod wants can be trusted. Both are avoided: a float is taken apart into decimal
 * digits and an exponent, and strtod only ever sees "DIGITSeEXPONENT", which reads the same in
 * every locale.
 *
 * Shortest output: 15 digits of a double (6 of a float) survive decimal -> binary -> decimal, so if
 * any text of at most that many digits reads back, it is printf's 15 (6) digits without trailing
 * zeros. Else one digit more at a time. Subnormal numbers have less precision: they start at one
 * digit. The layout is Python's: plain from 1e-04 to 1e+16, else with an exponent.
 */
#include "base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* ---- integers ---- */

bool cs_parse_i64(cs_span text, int64_t *out)
{
    size_t i = 0;
    const bool negative = text.len > 0 && text.at[0] == '-';
    if (text.len > 0 && (text.at[0] == '-' || text.at[0] == '+')) i++;
    if (i == text.len) return false;
    int64_t x = 0; /* built downwards: INT64_MIN has no positive twin */
    for (; i < text.len; i++) {
        if (!is_digit(text.at[i])) return false;
        if (__builtin_mul_overflow(x, 10, &x)) return false;
        if (__builtin_sub_overflow(x, text.at[i] - '0', &x)) return false;
    }
    if (!negative && x == INT64_MIN) return false;
    *out = negative ? x : -x;
    return true;
}

int64_t cs_sat_mul(int64_t a, int64_t b)
{
    int64_t x;
    return __builtin_mul_overflow(a, b, &x) ? INT64_MAX : x;
}

/* ---- reading floats ---- */

/* Digits beyond these cannot change the nearest double, except through being there at all: then a
 * final 1 stands for them. (The longest exact midpoint of two doubles has 768 digits.) */
enum { DIGITS = 800 };

typedef struct decimal {
    char text[DIGITS + 32]; /* the digits, then room for the exponent */
    size_t len;
    int64_t exponent; /* the value is the digits x 10^exponent */
    bool sticky;
} decimal;

static void take_digit(decimal *d, char c, bool fraction)
{
    if (d->len == 0 && c == '0') { /* leading zeros carry nothing */
        if (fraction) d->exponent--;
        return;
    }
    if (d->len < DIGITS) {
        d->text[d->len++] = c;
        if (fraction) d->exponent--;
        return;
    }
    if (c != '0') d->sticky = true;
    if (!fraction) d->exponent++;
}

/* [digits][.digits], at least one digit */
static bool take_mantissa(decimal *d, cs_span text, size_t *i)
{
    bool some = false, fraction = false;
    for (; *i < text.len; ++*i) {
        const char c = text.at[*i];
        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!is_digit(c)) break;
        take_digit(d, c, fraction);
        some = true;
    }
    return some;
}

/* [e[+-]digits]; what is beyond any double is clamped */
static bool take_exponent(decimal *d, cs_span text, size_t *i)
{
    if (*i == text.len || (text.at[*i] != 'e' && text.at[*i] != 'E')) return true;
    ++*i;
    const bool negative = *i < text.len && text.at[*i] == '-';
    if (*i < text.len && (text.at[*i] == '-' || text.at[*i] == '+')) ++*i;
    const size_t start = *i;
    int64_t e = 0;
    for (; *i < text.len && is_digit(text.at[*i]); ++*i)
        if (e < INT64_C(1) << 50) e = e * 10 + (text.at[*i] - '0');
    d->exponent += negative ? -e : e;
    return *i > start;
}

/* The nearest double. Leaves the digits as they were. */
static double decimal_value(decimal *d)
{
    if (d->len == 0) return 0;
    size_t len = d->len;
    int64_t e = d->exponent;
    if (d->sticky) {
        d->text[len++] = '1';
        e--;
    }
    if (e > 10000) e = 10000;
    if (e < -10000) e = -10000;
    snprintf(d->text + len, sizeof d->text - len, "e%d", (int)e);
    return strtod(d->text, NULL);
}

bool cs_parse_f64(cs_span text, double *out)
{
    size_t i = 0;
    const bool negative = text.len > 0 && text.at[0] == '-';
    if (text.len > 0 && (text.at[0] == '-' || text.at[0] == '+')) i++;
    const cs_span rest = {text.at + i, text.len - i};
    double x;
    if (cs_span_is(rest, "nan")) {
        x = (double)NAN;
    } else if (cs_span_is(rest, "inf")) {
        x = (double)INFINITY;
    } else {
        decimal d;
        d.len = 0;
        d.exponent = 0;
        d.sticky = false;
        if (!take_mantissa(&d, text, &i) || !take_exponent(&d, text, &i) || i != text.len)
            return false;
        x = decimal_value(&d);
        if (isinf(x)) return false; /* out of range is not the same as inf */
    }
    *out = negative ? -x : x;
    return true;
}

/* ---- writing floats ---- */

/* `digits` significant digits of a finite x > 0, trailing zeros removed. */
static void take_apart(decimal *d, double x, int digits)
{
    char raw[64];
    snprintf(raw, sizeof raw, "%.*e", digits - 1, x);
    const char *c = raw;
    d->len = 0;
    d->sticky = false;
    for (; *c != 'e'; c++) /* the decimal point of the locale may be several bytes */
        if (is_digit(*c)) d->text[d->len++] = *c;
    d->exponent = strtol(c + 1, NULL, 10) - (int64_t)d->len + 1;
    while (d->len > 1 && d->text[d->len - 1] == '0') {
        d->len--;
        d->exponent++;
    }
}

static char *put(char *out, const char *bytes, size_t len)
{
    memcpy(out, bytes, len);
    return out + len;
}

/* Python's layout of the digits. */
static void lay_out(const decimal *d, char *out)
{
    static const char zeros[] = "0000000000000000";
    const int point = (int)d->len + (int)d->exponent; /* digits before the point */
    if (point <= -4 || point > 16) {
        out = put(out, d->text, 1);
        if (d->len > 1) {
            out = put(out, ".", 1);
            out = put(out, d->text + 1, d->len - 1);
        }
        snprintf(out, 8, "e%c%02d", point - 1 < 0 ? '-' : '+', abs(point - 1) % 1000);
        return;
    }
    if (point <= 0) {
        out = put(out, "0.", 2);
        out = put(out, zeros, (size_t)-point);
        out = put(out, d->text, d->len);
    } else if ((size_t)point >= d->len) {
        out = put(out, d->text, d->len);
        out = put(out, zeros, (size_t)point - d->len);
        out = put(out, ".0", 2);
    } else {
        out = put(out, d->text, (size_t)point);
        out = put(out, ".", 1);
        out = put(out, d->text + point, d->len - (size_t)point);
    }
    *out = '\0';
}

/* What has no digits; *x becomes positive and *out moves past the sign. True: done. */
static bool put_special(double *x, char **out)
{
    if (isnan(*x)) {
        strcpy(*out, "nan");
        return true;
    }
    if (signbit(*x)) {
        *(*out)++ = '-';
        *x = -*x;
    }
    if (isinf(*x))
        strcpy(*out, "inf");
    else if (*x == 0)
        strcpy(*out, "0.0");
    else
        return false;
    return true;
}

void cs_format_f64(double x, char *out)
{
    if (put_special(&x, &out)) return;
    decimal d;
    int digits = x < DBL_MIN ? 1 : DBL_DIG;
    for (;; digits++) {
        take_apart(&d, x, digits);
        if (digits >= DBL_DECIMAL_DIG || decimal_value(&d) == x) break;
    }
    lay_out(&d, out);
}

void cs_format_f32(float x, char *out)
{
    double wide = (double)x;
    if (put_special(&wide, &out)) return;
    decimal d;
    int digits = wide < (double)FLT_MIN ? 1 : FLT_DIG;
    for (;; digits++) {
        take_apart(&d, wide, digits);
        /* Readers go through a double: it is the double, rounded, that must give x again. The
         * direct reading agrees, unless the text is within 2^-53 of a midpoint; ask for both. */
        if (digits >= FLT_DECIMAL_DIG) break;
        if ((double)(float)decimal_value(&d) == wide && (double)strtof(d.text, NULL) == wide) break;
    }
    lay_out(&d, out);
}

/* ---- sizes ---- */

static const struct unit {
    const char *name;
    int64_t bytes;
} units[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
};

static int64_t unit_bytes(cs_span name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (cs_span_is(name, units[i].name)) return units[i].bytes;
    return 0;
}

bool cs_parse_size(cs_span text, int64_t *out)
{
    size_t whole = 0;
    while (whole < text.len && is_digit(text.at[whole]))
        whole++;
    size_t end = whole;
    if (end < text.len && text.at[end] == '.') {
        end++;
        while (end < text.len && is_digit(text.at[end]))
            end++;
        if (end == whole + 1) return false; /* "1.GiB" */
    }
    const int64_t unit = unit_bytes((cs_span){text.at + end, text.len - end});
    int64_t x;
    if (unit == 0 || !cs_parse_i64((cs_span){text.at, whole}, &x)) return false;
    if (end > whole && unit == 1) return false; /* half a byte */
    if (__builtin_mul_overflow(x, unit, &x)) return false;
    int64_t part = 0; /* unit x fraction, last digit first: rounding down at each loses nothing */
    for (size_t i = end; i > whole + 1; i--)
        part = (part + (text.at[i - 1] - '0') * unit) / 10;
    if (__builtin_add_overflow(x, part, &x) || x == 0) return false;
    *out = x;
    return true;
}

void cs_format_size(int64_t bytes, char *out)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const char *sign = bytes < 0 ? "-" : "";
    const uint64_t x = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    unsigned u = 0;
    while (u < 6 && x >> (10 * (u + 1)) != 0)
        u++;
    const uint64_t unit = UINT64_C(1) << (10 * u);
    unsigned whole = (unsigned)(x / unit) % 1024;
    const uint64_t rest = x % unit;
    if (rest == 0) { /* exact: no decimal */
        snprintf(out, 16, "%s%u %s", sign, whole, names[u]);
        return;
    }
    unsigned tenths = (unsigned)((rest * 10 + unit / 2) / unit) % 16; /* rest < 2^60: no wrap */
    if (tenths == 10) {
        tenths = 0;
        whole++;
    }
    if (whole == 1024) { /* 1023.97 KiB is 1.0 MiB; at EiB x is below 8 of them */
        whole = 1;
        u++;
    }
    snprintf(out, 16, "%s%u.%u %s", sign, whole % 1024, tenths % 10, names[u]);
}
