/* Comparing two values of ONNX Runtime: bit for bit, or within the tolerance of f16 and bf16.
 *
 * Equal is: the same element type, the same shape, the same bits; so -0.0 is not 0.0, and NaNs are
 * equal when their bits are. Within tolerance t is |a - b| <= t * max(|a|, |b|, r), where r is the
 * root mean square of the whole model's tensor: rounding of a half float is relative to the numbers
 * that were added up, so an element that came out near zero is judged by its neighbours. A NaN is
 * within tolerance of any NaN, an infinity of itself.
 *
 * Sequences and maps are compared item by item; the worst item is the one told.
 * Cost: one memcmp where all is equal.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/verify.h"
#include "engine/elem.h"

double cs_verify_tolerance(unsigned marks)
{
    return marks & CS_MARK_BF16 ? 4e-2 : marks & CS_MARK_F16 ? 1e-2 : 0;
}

typedef struct compare {
    const cs_ort *ort;
    unsigned marks;
    const cs_dim *dims;
    size_t rank;
    cutset_error *err;
} compare;

/* ---- spelling ---- */

static void spell_tensor(const cs_ort_tensor *t, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "%s[", cs_elem_name(t->elem));
    for (size_t i = 0; i < t->rank && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%" PRId64, i > 0 ? "," : "", t->dims[i]);
    if (n < room) snprintf(out + n, room - n, "]");
}

cutset_status cs_verify_spell(const cs_ort *ort, const OrtValue *value, char *out, size_t room,
                              cutset_error *err)
{
    cs_ort_kind kind;
    size_t n = 0;
    cutset_status status = cs_ort_value_kind(ort, value, &kind, err);
    if (status) return status;
    snprintf(out, room, "%s", cs_ort_kind_name(kind));
    if (kind == CS_ORT_TENSOR) {
        cs_ort_tensor t;
        status = cs_ort_tensor_read(ort, value, &t, err);
        if (status) return status;
        spell_tensor(&t, out, room);
        cs_ort_tensor_fini(&t);
    } else if (kind == CS_ORT_SEQUENCE || kind == CS_ORT_MAP) {
        status = cs_ort_value_count(ort, value, &n, err);
        if (!status) snprintf(out, room, kind == CS_ORT_MAP ? "map" : "sequence of %zu", n);
    }
    return status;
}

void cs_verify_tell(const cs_difference *d, char *out, size_t room)
{
    if (d->numbers)
        snprintf(out, room, "%selement %" PRIu64 " is %s in the whole model and %s in the parts",
                 d->place, d->index, d->whole, d->parts);
    else
        snprintf(out, room, "%s%s", d->place, d->why);
}

/* ---- tensors ---- */

static void differ_in_words(cs_difference *d, const char *what, const char *whole,
                            const char *parts)
{
    d->verdict = CS_DIFFERENT;
    snprintf(d->why, sizeof d->why, "%s %.80s in the whole model and %.80s in the parts", what,
             whole, parts);
}

static bool same_type(const compare *c, const cs_ort_tensor *a, const cs_ort_tensor *b)
{
    if (a->elem != b->elem || a->rank != b->rank) return false;
    for (size_t i = 0; i < a->rank; i++) {
        const bool loose =
            (c->marks & CS_MARK_RANDOM) && c->dims != NULL && c->rank == a->rank && c->dims[i] < 0;
        if (a->dims[i] != b->dims[i] && !loose) return false;
    }
    return true;
}

static void quote(cs_span text, char *out, size_t room)
{
    snprintf(out, room, "\"%.*s\"%s", (int)(text.len > 60 ? 60 : text.len), text.at,
             text.len > 60 ? "..." : "");
}

static void compare_strings(const cs_ort_tensor *a, const cs_ort_tensor *b, cs_difference *d)
{
    d->of = a->count;
    for (size_t i = 0; i < a->count; i++) {
        if (cs_span_eq(a->strings[i], b->strings[i])) continue;
        if (d->count++ > 0) continue;
        d->index = i;
        quote(a->strings[i], d->whole, sizeof d->whole);
        quote(b->strings[i], d->parts, sizeof d->parts);
    }
    d->numbers = d->count > 0;
    if (d->numbers) d->verdict = CS_DIFFERENT;
}

static double root_mean_square(cs_elem e, const cs_ort_tensor *t, int n_parts)
{
    double sum = 0;
    uint64_t n = 0;
    for (size_t i = 0; i < t->count; i++)
        for (int p = 0; p < n_parts; p++) {
            const double x = cs_elem_get(e, t->data, i, p);
            if (!isfinite(x)) continue;
            sum += x * x;
            n++;
        }
    return n > 0 ? sqrt(sum / (double)n) : 0;
}

/* Notes how far two numbers are apart; are they within `tolerance`? */
static bool measure(cs_difference *d, double a, double b, double tolerance, double scale)
{
    if (isnan(a) || isnan(b)) return tolerance > 0 && isnan(a) && isnan(b);
    if (!isfinite(a) || !isfinite(b)) return a == b;
    const double apart = fabs(a - b), size = fmax(fmax(fabs(a), fabs(b)), scale);
    if (apart > d->max_abs) d->max_abs = apart;
    if (size > 0 && apart / size > d->max_rel) d->max_rel = apart / size;
    return tolerance > 0 && apart <= tolerance * size;
}

static void compare_numbers(const compare *c, const cs_ort_tensor *a, const cs_ort_tensor *b,
                            cs_difference *d)
{
    const cs_elem e = a->elem;
    const cs_elem_class class = cs_elem_classify(e);
    const int n_parts = class == CS_ELEM_COMPLEX ? 2 : 1;
    /* No number, no tolerance. */
    const double tolerance = class == CS_ELEM_OTHER ? 0 : cs_verify_tolerance(c->marks);
    const double scale = tolerance > 0 ? root_mean_square(e, a, n_parts) : 0;
    bool told = false;
    d->of = a->count;
    for (size_t i = 0; i < a->count; i++) {
        bool same = true, close = true;
        for (int p = 0; p < n_parts; p++) {
            const double x = cs_elem_get(e, a->data, i, p), y = cs_elem_get(e, b->data, i, p);
            d->nan_whole += isnan(x) != 0;
            d->nan_parts += isnan(y) != 0;
            if (cs_elem_bits_at(e, a->data, i, p) == cs_elem_bits_at(e, b->data, i, p)) continue;
            same = false;
            close = measure(d, x, y, tolerance, scale) && close;
        }
        d->count += !same;
        if (same || (told && (close || d->verdict == CS_DIFFERENT))) continue;
        /* The first that differs; once one is out of tolerance, the first of those. */
        told = true;
        d->verdict = close ? CS_CLOSE : CS_DIFFERENT;
        d->index = i;
        cs_elem_print(e, a->data, i, d->whole);
        cs_elem_print(e, b->data, i, d->parts);
    }
    d->numbers = told;
}

static void compare_tensors(const compare *c, const cs_ort_tensor *a, const cs_ort_tensor *b,
                            cs_difference *d)
{
    if (!same_type(c, a, b)) {
        char whole[100], parts[100];
        spell_tensor(a, whole, sizeof whole);
        spell_tensor(b, parts, sizeof parts);
        differ_in_words(d, "it is", whole, parts);
    } else if (c->marks & CS_MARK_RANDOM) {
        d->verdict = CS_RANDOM;
    } else if (a->elem == CS_STR) {
        compare_strings(a, b, d);
    } else if (a->bytes > 0 &&
               (cs_elem_bits(a->elem) < 8 || memcmp(a->data, b->data, a->bytes) != 0)) {
        compare_numbers(c, a, b, d);
    }
}

/* ---- values ---- */

static cutset_status compare_values(const compare *c, const OrtValue *a, const OrtValue *b,
                                    cs_difference *d);

static cutset_status compare_tensor_values(const compare *c, const OrtValue *a, const OrtValue *b,
                                           cs_difference *d)
{
    cs_ort_tensor x = {0}, y = {0};
    cutset_status status = cs_ort_tensor_read(c->ort, a, &x, c->err);
    if (!status) status = cs_ort_tensor_read(c->ort, b, &y, c->err);
    if (!status) compare_tensors(c, &x, &y, d);
    cs_ort_tensor_fini(&x);
    cs_ort_tensor_fini(&y);
    return status;
}

static cutset_status compare_item(const compare *c, const OrtValue *a, const OrtValue *b, size_t i,
                                  cs_difference *d)
{
    OrtValue *x = NULL, *y = NULL;
    cutset_status status = cs_ort_value_child(c->ort, a, i, &x, c->err);
    if (!status) status = cs_ort_value_child(c->ort, b, i, &y, c->err);
    if (!status) status = compare_values(c, x, y, d);
    cs_ort_value_free(c->ort, x);
    cs_ort_value_free(c->ort, y);
    return status;
}

static cutset_status compare_lists(const compare *c, const OrtValue *a, const OrtValue *b,
                                   cs_ort_kind kind, cs_difference *d)
{
    size_t n = 2, m = 2; /* of a map: keys, values */
    cutset_status status = CUTSET_OK;
    if (kind == CS_ORT_SEQUENCE) {
        status = cs_ort_value_count(c->ort, a, &n, c->err);
        if (!status) status = cs_ort_value_count(c->ort, b, &m, c->err);
    }
    if (!status && n != m && (c->marks & CS_MARK_RANDOM)) {
        d->verdict = CS_RANDOM;
        return CUTSET_OK;
    }
    if (!status && n != m) {
        char whole[32], parts[32];
        snprintf(whole, sizeof whole, "%zu items", n);
        snprintf(parts, sizeof parts, "%zu", m);
        differ_in_words(d, "it has", whole, parts);
        return CUTSET_OK;
    }
    for (size_t i = 0; !status && i < n; i++) {
        cs_difference item = {0};
        status = compare_item(c, a, b, i, &item);
        if (item.verdict <= d->verdict) continue;
        char place[sizeof item.place];
        if (kind == CS_ORT_MAP)
            snprintf(place, sizeof place, "%s: %.40s", i == 0 ? "keys" : "values", item.place);
        else
            snprintf(place, sizeof place, "item %zu: %.30s", i, item.place);
        *d = item;
        memcpy(d->place, place, sizeof place);
    }
    return status;
}

static cutset_status compare_values(const compare *c, const OrtValue *a, const OrtValue *b,
                                    cs_difference *d)
{
    cs_ort_kind x, y;
    cutset_status status = cs_ort_value_kind(c->ort, a, &x, c->err);
    if (!status) status = cs_ort_value_kind(c->ort, b, &y, c->err);
    if (status) return status;
    if (x != y) {
        differ_in_words(d, "it is", cs_ort_kind_name(x), cs_ort_kind_name(y));
        return CUTSET_OK;
    }
    switch (x) {
    case CS_ORT_ABSENT:
        return CUTSET_OK;
    case CS_ORT_TENSOR:
        return compare_tensor_values(c, a, b, d);
    case CS_ORT_SEQUENCE:
    case CS_ORT_MAP:
        return compare_lists(c, a, b, x, d);
    case CS_ORT_OTHER:
        break;
    }
    d->verdict = CS_UNCOMPARED;
    snprintf(d->why, sizeof d->why, "a sparse tensor or an opaque value");
    return CUTSET_OK;
}

cutset_status cs_verify_compare(const cs_ort *ort, const OrtValue *whole, const OrtValue *parts,
                                unsigned marks, const cs_dim *dims, size_t rank, cs_difference *out,
                                cutset_error *err)
{
    cutset_error words = {0};
    const compare c = {ort, marks, dims, rank, &words};
    *out = (cs_difference){0};
    const cutset_status status = compare_values(&c, whole, parts, out);
    if (status == CUTSET_BAD) { /* the runtime has it and cannot show it */
        *out = (cs_difference){.verdict = CS_UNCOMPARED};
        snprintf(out->why, sizeof out->why, "%.190s", words.message);
        return CUTSET_OK;
    }
    out->marks = marks;
    return status ? cs_fail(err, status, "%s", words.message) : CUTSET_OK;
}
