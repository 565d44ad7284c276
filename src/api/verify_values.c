/* Making one input value: random numbers by seed, or the contents of a .npy file.
 *
 * splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): a
 * few lines, no state to speak of, the same numbers on every machine. Floats are uniform in
 * [low, high) with the 53 bits of a double and then rounded once to their type.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/verify.h"
#include "engine/elem.h"

enum { ITEMS = 2 };                  /* of a sequence, entries of a map */
#define TOO_LARGE ((int64_t)1 << 28) /* bytes of an input of a later attempt */

static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double next_float(uint64_t *state, const cs_feed *f)
{
    const double u = (double)(next(state) >> 11) * 0x1p-53;
    const double low = f->ranged ? f->low : -1, high = f->ranged ? f->high : 1;
    /* Without high - low, which may overflow. */
    return low * (1 - u) + high * u;
}

void cs_values_range(const cs_feed *f, cs_elem elem, const cs_attempt *attempt, int64_t *low,
                     int64_t *high)
{
    const int64_t most = cs_elem_most(elem);
    *low = f->ranged ? f->low_int : elem == CS_BOOL ? 0 : attempt->low;
    *high = f->ranged ? f->high_int : elem == CS_BOOL ? 1 : attempt->high;
    if (*high > most) *high = most;
    if (*low > *high) *low = *high;
}

static int64_t next_int(uint64_t *state, int64_t low, int64_t high)
{
    const uint64_t span = (uint64_t)high - (uint64_t)low + 1; /* 0: all 2^64 */
    const uint64_t x = next(state);
    return (int64_t)((uint64_t)low + (span != 0 ? x % span : x));
}

/* ---- tensors ---- */

static void fill(cs_elem e, void *data, size_t count, const cs_feed *f, const cs_attempt *attempt,
                 uint64_t *state)
{
    const cs_elem_class class = cs_elem_classify(e);
    int64_t low, high;
    cs_values_range(f, e, attempt, &low, &high);
    for (size_t i = 0; i < count; i++) {
        if (class == CS_ELEM_INT || class == CS_ELEM_BOOL) {
            cs_elem_put_int(e, data, i, next_int(state, low, high));
            continue;
        }
        cs_elem_put(e, data, i, next_float(state, f), 0);
        if (class == CS_ELEM_COMPLEX) cs_elem_put(e, data, i, next_float(state, f), 1);
    }
}

static cutset_status make_strings(const cs_ort *ort, size_t rank, const int64_t *dims, size_t count,
                                  uint64_t *state, OrtValue **out, cutset_error *err)
{
    const char **strings = cs_alloc(count + 1, sizeof *strings);
    if (strings == NULL) return cs_fail_memory(err);
    for (size_t i = 0; i < count; i++)
        strings[i] = next(state) >> 63 ? "b" : "a";
    const cutset_status status = cs_ort_strings_new(out, ort, rank, dims, strings, count, err);
    cs_free(strings);
    return status;
}

/* Elements of a shape, or an error when an input of a later attempt would be huge. */
static cutset_status count_elements(const cs_feed *f, cs_elem e, size_t rank, const int64_t *dims,
                                    const cs_attempt *attempt, size_t *count, cutset_error *err)
{
    int64_t n = 1;
    for (size_t i = 0; i < rank; i++)
        n = cs_sat_mul(n, dims[i]);
    const bool later = attempt != cs_attempts;
    if (n > INT64_MAX / 16 || (later && cs_sat_mul(n, cs_elem_bits(e) / 8) > TOO_LARGE))
        return cs_fail(err, CUTSET_BAD,
                       "input %s would be too large: give its shape with --shape %s:...", f->name,
                       f->name);
    *count = (size_t)n;
    return CUTSET_OK;
}

static cutset_status make_elements(const cs_ort *ort, const cs_feed *f, cs_elem e, size_t rank,
                                   const int64_t *dims, const cs_attempt *attempt, uint64_t *state,
                                   OrtValue **out, cutset_error *err)
{
    size_t count = 0, bytes = 0;
    void *data = NULL;
    cutset_status status = count_elements(f, e, rank, dims, attempt, &count, err);
    if (status) return status;
    if (e == CS_STR) return make_strings(ort, rank, dims, count, state, out, err);
    if (cs_elem_classify(e) == CS_ELEM_OTHER)
        return cs_fail(err, CUTSET_BAD, "input %s: values of type %s cannot be made", f->name,
                       cs_elem_name(e));
    status = cs_ort_tensor_new(out, &data, &bytes, ort, e, rank, dims, err);
    if (status) return status;
    if (bytes > 0) memset(data, 0, bytes); /* the spare bits of a last byte too */
    fill(e, data, count, f, attempt, state);
    return CUTSET_OK;
}

static cutset_status make_tensor(cs_inputs *in, const cs_ort *ort, const cs_feed *f, cs_type type,
                                 const cs_attempt *attempt, uint64_t *state, OrtValue **out,
                                 cutset_error *err)
{
    const cs_type_info info = *cs_type_get(in->graph->pool, type);
    /* Of unknown rank: one dim, which at least broadcasts. */
    const size_t rank = info.rank == CS_RANK_UNKNOWN ? 1 : (size_t)info.rank;
    int64_t *dims = cs_alloc(rank + 1, sizeof *dims);
    if (dims == NULL) return cs_fail_memory(err);
    for (size_t i = 0; i < rank; i++) {
        const cs_dim dim = info.rank == CS_RANK_UNKNOWN
                               ? CS_DIM_UNKNOWN
                               : in->graph->pool->dims.at[info.dims + (uint32_t)i];
        dims[i] = cs_inputs_dim(in, dim, attempt);
    }
    const cutset_status status =
        make_elements(ort, f, info.elem, rank, dims, attempt, state, out, err);
    cs_free(dims);
    return status;
}

/* ---- sequences, maps ---- */

static cutset_status make_sequence(cs_inputs *in, const cs_ort *ort, cs_feed *f, cs_type inner,
                                   const cs_attempt *attempt, uint64_t *state, OrtValue **out,
                                   cutset_error *err)
{
    OrtValue *items[ITEMS] = {0};
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; !status && i < ITEMS; i++)
        status = cs_values_make(in, ort, f, inner, attempt, state, &items[i], err);
    if (!status) status = cs_ort_list_new(out, ort, CS_ORT_SEQUENCE, items, ITEMS, err);
    for (size_t i = 0; i < ITEMS; i++)
        cs_ort_value_free(ort, items[i]);
    return status;
}

/* Keys 0, 1 or "a", "b"; values are single elements. */
static cutset_status make_map(cs_inputs *in, const cs_ort *ort, const cs_feed *f, cs_elem key,
                              cs_type inner, const cs_attempt *attempt, uint64_t *state,
                              OrtValue **out, cutset_error *err)
{
    static const char *const names[ITEMS] = {"a", "b"};
    const int64_t dims[1] = {ITEMS};
    OrtValue *halves[2] = {0};
    void *data = NULL;
    size_t bytes = 0;
    cutset_status status =
        key == CS_STR ? cs_ort_strings_new(&halves[0], ort, 1, dims, names, ITEMS, err)
                      : cs_ort_tensor_new(&halves[0], &data, &bytes, ort, key, 1, dims, err);
    for (size_t i = 0; !status && key != CS_STR && i < ITEMS; i++)
        cs_elem_put_int(key, data, i, (int64_t)i);
    const cs_elem elem = cs_type_get(in->graph->pool, inner)->elem;
    if (!status) status = make_elements(ort, f, elem, 1, dims, attempt, state, &halves[1], err);
    if (!status) status = cs_ort_list_new(out, ort, CS_ORT_MAP, halves, 2, err);
    cs_ort_value_free(ort, halves[0]);
    cs_ort_value_free(ort, halves[1]);
    return status;
}

cutset_status cs_values_make(cs_inputs *in, const cs_ort *ort, cs_feed *f, cs_type type,
                             const cs_attempt *attempt, uint64_t *state, OrtValue **out,
                             cutset_error *err)
{
    const cs_type_info info = *cs_type_get(in->graph->pool, type);
    switch (info.kind) {
    case CS_TENSOR:
        return make_tensor(in, ort, f, type, attempt, state, out, err);
    case CS_OPT:
        return cs_values_make(in, ort, f, info.inner, attempt, state, out, err);
    case CS_SEQ:
        return make_sequence(in, ort, f, info.inner, attempt, state, out, err);
    case CS_MAP:
        return make_map(in, ort, f, info.elem, info.inner, attempt, state, out, err);
    default:
        break;
    }
    return cs_fail(err, CUTSET_BAD, "input %s is %s, which verify cannot make", f->name,
                   info.kind == CS_SPARSE ? "a sparse tensor" : "of a type that is not known");
}

/* ---- files ---- */

static cutset_status load_strings(const cs_ort *ort, const cs_npy *npy, OrtValue **out,
                                  cutset_error *err)
{
    char **strings = cs_zalloc(npy->count + 1, sizeof *strings);
    if (strings == NULL) return cs_fail_memory(err);
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; !status && i < npy->count; i++) {
        strings[i] = cs_npy_text(npy, i);
        if (strings[i] == NULL) status = cs_fail_memory(err);
    }
    if (!status)
        status = cs_ort_strings_new(out, ort, npy->rank, npy->dims, (const char *const *)strings,
                                    npy->count, err);
    for (size_t i = 0; i < npy->count; i++)
        cs_free(strings[i]);
    cs_free(strings);
    return status;
}

cutset_status cs_values_load(const cs_ort *ort, const cs_feed *f, cs_elem elem, OrtValue **out,
                             cutset_error *err)
{
    const cs_npy *npy = &f->npy;
    if (elem == CS_STR) return load_strings(ort, npy, out, err);
    void *data = NULL;
    size_t bytes = 0;
    const cutset_status status =
        cs_ort_tensor_new(out, &data, &bytes, ort, elem, npy->rank, npy->dims, err);
    if (status || bytes == 0) return status;
    if (cs_elem_bits(elem) >= 8) {
        memcpy(data, npy->data, bytes);
        return CUTSET_OK;
    }
    memset(data, 0, bytes);
    for (size_t i = 0; i < npy->count; i++)
        cs_elem_put_int(elem, data, i, npy->data[i]);
    return CUTSET_OK;
}
