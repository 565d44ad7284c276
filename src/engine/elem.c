/* Elements of tensors as numbers.
 *
 * The small float types differ only in the widths of exponent and mantissa, the bias, and which
 * codes are infinities and NaNs: one decoder and one encoder serve them all. Encoding scales by
 * powers of two, which is exact, and rounds once.
 */
#include "engine/elem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum small_kind {
    IEEE,     /* the highest exponent holds infinities and NaNs */
    FN,       /* no infinities; all ones is NaN */
    FNUZ,     /* no infinities, no -0, whose code is NaN */
    FINITE,   /* neither */
    EXPONENT, /* no sign, no mantissa, no zero; all ones is NaN */
} small_kind;

typedef struct small_float {
    small_kind kind;
    int exponent, mantissa, bias;
} small_float;

static const small_float *small_of(cs_elem e)
{
    static const small_float f16 = {IEEE, 5, 10, 15}, bf16 = {IEEE, 8, 7, 127},
                             e4m3fn = {FN, 4, 3, 7}, e4m3fnuz = {FNUZ, 4, 3, 8},
                             e5m2 = {IEEE, 5, 2, 15}, e5m2fnuz = {FNUZ, 5, 2, 16},
                             e2m1 = {FINITE, 2, 1, 1}, e8m0 = {EXPONENT, 8, 0, 127};
    switch (e) {
    case CS_F16:
        return &f16;
    case CS_BF16:
        return &bf16;
    case CS_F8E4M3FN:
        return &e4m3fn;
    case CS_F8E4M3FNUZ:
        return &e4m3fnuz;
    case CS_F8E5M2:
        return &e5m2;
    case CS_F8E5M2FNUZ:
        return &e5m2fnuz;
    case CS_F4E2M1:
        return &e2m1;
    case CS_F8E8M0:
        return &e8m0;
    default:
        return NULL;
    }
}

/* ---- small floats ---- */

static uint32_t highest_finite(const small_float *s)
{
    const uint32_t all = (UINT32_C(1) << (s->exponent + s->mantissa)) - 1;
    if (s->kind == IEEE) return all - (UINT32_C(1) << s->mantissa);
    return s->kind == FN || s->kind == EXPONENT ? all - 1 : all;
}

static double small_get(const small_float *s, uint32_t code)
{
    const int width = s->exponent + s->mantissa;
    const uint32_t sign = s->kind == EXPONENT ? 0 : code >> width & 1;
    const uint32_t rest = code & ((UINT32_C(1) << width) - 1);
    if (s->kind == FNUZ && sign && rest == 0) return (double)NAN;
    if (rest > highest_finite(s))
        return s->kind == IEEE && (rest & ((UINT32_C(1) << s->mantissa) - 1)) == 0
                   ? (sign ? -(double)INFINITY : (double)INFINITY)
                   : (double)NAN;
    const int e = (int)(rest >> s->mantissa);
    const double m = rest & ((UINT32_C(1) << s->mantissa) - 1), one = UINT32_C(1) << s->mantissa;
    double x;
    if (s->kind == EXPONENT)
        x = ldexp(1, e - s->bias);
    else if (e == 0)
        x = ldexp(m, 1 - s->bias - s->mantissa);
    else
        x = ldexp(m + one, e - s->bias - s->mantissa);
    return sign ? -x : x;
}

static uint32_t small_put(const small_float *s, double x)
{
    const uint32_t sign =
        signbit(x) && s->kind != EXPONENT ? UINT32_C(1) << (s->exponent + s->mantissa) : 0;
    const uint32_t most = highest_finite(s);
    const double size = fabs(x);
    if (!(size > 0)) return s->kind == FNUZ ? 0 : sign;
    if (s->kind == EXPONENT) {
        const double e = rint(log2(size)) + s->bias;
        return e <= 0 ? 0 : e >= most ? most : (uint32_t)e;
    }
    int e;
    frexp(size, &e); /* size = f * 2^e, f in [0.5, 1) */
    e--;
    const int least = 1 - s->bias;
    if (e < least) e = least;
    if (e > s->bias + 1) return sign | most;
    const double steps = rint(ldexp(size, s->mantissa - e)); /* of the last place */
    /* A normal number has 2^mantissa steps or more; a carry into the exponent comes out right. */
    const int64_t code = (int64_t)steps + (((int64_t)e - least) << s->mantissa);
    if (code == 0) return s->kind == FNUZ ? 0 : sign;
    return sign | (code > most ? most : (uint32_t)code);
}

/* ---- types ---- */

cs_elem_class cs_elem_classify(cs_elem e)
{
    switch (e) {
    case CS_F32:
    case CS_F64:
        return CS_ELEM_FLOAT;
    case CS_C64:
    case CS_C128:
        return CS_ELEM_COMPLEX;
    case CS_BOOL:
        return CS_ELEM_BOOL;
    case CS_U8:
    case CS_I8:
    case CS_U16:
    case CS_I16:
    case CS_I32:
    case CS_I64:
    case CS_U32:
    case CS_U64:
    case CS_U4:
    case CS_I4:
    case CS_U2:
    case CS_I2:
        return CS_ELEM_INT;
    default:
        return small_of(e) != NULL ? CS_ELEM_FLOAT : CS_ELEM_OTHER;
    }
}

static bool is_signed(cs_elem e)
{
    return e == CS_I8 || e == CS_I16 || e == CS_I32 || e == CS_I64 || e == CS_I4 || e == CS_I2;
}

int64_t cs_elem_least(cs_elem e)
{
    return is_signed(e) ? -INT64_C(1) - (INT64_MAX >> (64 - cs_elem_bits(e))) : 0;
}

int64_t cs_elem_most(cs_elem e)
{
    if (e == CS_BOOL) return 1;
    const unsigned bits = cs_elem_bits(e) - is_signed(e);
    return bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
}

/* ---- elements ---- */

uint64_t cs_elem_bits_at(cs_elem e, const void *data, size_t i, int part)
{
    const unsigned char *at = data;
    const unsigned bits = cs_elem_bits(e);
    if (bits < 8) {
        const size_t first = i * bits;
        const unsigned shift = (unsigned)(first % 8);
        uint64_t x = (uint64_t)at[first / 8] >> shift;
        if (shift + bits > 8) x |= (uint64_t)at[first / 8 + 1] << (8 - shift);
        return x & ((UINT64_C(1) << bits) - 1);
    }
    const bool complex = e == CS_C64 || e == CS_C128;
    const size_t bytes = bits / 8 / (complex ? 2 : 1);
    const size_t place = complex ? 2 * i + (size_t)part : i;
    uint64_t x = 0;
    memcpy(&x, at + place * bytes, bytes); /* little-endian machines only, like all of cutset */
    return x;
}

static void put_bits(cs_elem e, void *data, size_t i, uint64_t x, int part)
{
    unsigned char *at = data;
    const unsigned bits = cs_elem_bits(e);
    if (bits < 8) {
        const unsigned shift = (unsigned)(i * bits % 8);
        const unsigned mask = ((1u << bits) - 1) << shift;
        unsigned char *byte = &at[i * bits / 8]; /* types of 2 and 4 bits do not straddle */
        *byte = (unsigned char)((*byte & ~mask) | ((unsigned)(x << shift) & mask));
        return;
    }
    const bool complex = e == CS_C64 || e == CS_C128;
    const size_t bytes = bits / 8 / (complex ? 2 : 1);
    memcpy(at + (complex ? 2 * i + (size_t)part : i) * bytes, &x, bytes);
}

static int64_t extend(cs_elem e, uint64_t x)
{
    const unsigned spare = 64 - cs_elem_bits(e);
    return is_signed(e) ? (int64_t)(x << spare) >> spare : (int64_t)x;
}

double cs_elem_get(cs_elem e, const void *data, size_t i, int part)
{
    const uint64_t x = cs_elem_bits_at(e, data, i, part);
    const small_float *s = small_of(e);
    float f;
    double d;
    if (s != NULL) return small_get(s, (uint32_t)x);
    switch (e) {
    case CS_F32:
    case CS_C64:
        memcpy(&f, &x, sizeof f);
        return f;
    case CS_F64:
    case CS_C128:
        memcpy(&d, &x, sizeof d);
        return d;
    case CS_U64:
        return (double)x;
    default:
        return (double)extend(e, x);
    }
}

void cs_elem_put(cs_elem e, void *data, size_t i, double x, int part)
{
    const small_float *s = small_of(e);
    const float f = (float)x;
    uint64_t bits = 0;
    if (s != NULL)
        bits = small_put(s, x);
    else if (e == CS_F32 || e == CS_C64)
        memcpy(&bits, &f, sizeof f);
    else
        memcpy(&bits, &x, sizeof x);
    put_bits(e, data, i, bits, part);
}

void cs_elem_put_int(cs_elem e, void *data, size_t i, int64_t x)
{
    put_bits(e, data, i, (uint64_t)x, 0);
}

static void print_float(cs_elem e, const void *data, size_t i, int part, char *out)
{
    const double x = cs_elem_get(e, data, i, part);
    if (isnan(x)) /* which one matters here: NaNs are compared by their bits */
        snprintf(out, 32, "nan:0x%" PRIx64, cs_elem_bits_at(e, data, i, part));
    else if (e == CS_F64 || e == CS_C128)
        cs_format_f64(x, out);
    else
        cs_format_f32((float)x, out);
}

void cs_elem_print(cs_elem e, const void *data, size_t i, char *out)
{
    char real[32], imaginary[32];
    switch (cs_elem_classify(e)) {
    case CS_ELEM_FLOAT:
        print_float(e, data, i, 0, out);
        break;
    case CS_ELEM_COMPLEX:
        print_float(e, data, i, 0, real);
        print_float(e, data, i, 1, imaginary);
        snprintf(out, 72, "(%s, %s)", real, imaginary);
        break;
    case CS_ELEM_BOOL:
    case CS_ELEM_INT:
        if (e == CS_U64)
            snprintf(out, 72, "%" PRIu64, cs_elem_bits_at(e, data, i, 0));
        else
            snprintf(out, 72, "%" PRId64, extend(e, cs_elem_bits_at(e, data, i, 0)));
        break;
    default:
        snprintf(out, 72, "0x%" PRIx64, cs_elem_bits_at(e, data, i, 0));
    }
}
