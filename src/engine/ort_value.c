/* ONNX Runtime's values: making them from our bytes, reading what they hold.
 *
 * Tensors are made in the runtime's own memory, so that a value that a session passes through stays
 * valid whoever frees what first. The runtime numbers element types as ONNX does up to f4e2m1; the
 * next three stand in another order, and f6 types it does not have.
 */
#include <string.h>

#include "engine/ort_api.h"

const char *cs_ort_kind_name(cs_ort_kind kind)
{
    static const char *const names[] = {"absent", "tensor", "sequence", "map",
                                        "value of another kind"};
    return names[kind];
}

/* ---- element types ---- */

enum { ORT_UINT2 = 24, ORT_INT2 = 25, ORT_FLOAT8E8M0 = 26 };

static cs_elem elem_of(int type)
{
    switch (type) {
    case ORT_UINT2:
        return CS_U2;
    case ORT_INT2:
        return CS_I2;
    case ORT_FLOAT8E8M0:
        return CS_F8E8M0;
    default:
        return type > 0 && type <= CS_F4E2M1 ? (cs_elem)type : CS_ELEM_NONE;
    }
}

/* 0, which the runtime refuses: it has no such type. */
static int type_of(cs_elem elem)
{
    switch (elem) {
    case CS_U2:
        return ORT_UINT2;
    case CS_I2:
        return ORT_INT2;
    case CS_F8E8M0:
        return ORT_FLOAT8E8M0;
    default:
        return elem <= CS_F4E2M1 ? (int)elem : 0;
    }
}

/* ---- reading ---- */

cutset_status cs_ort_value_kind(const cs_ort *ort, const OrtValue *value, cs_ort_kind *out,
                                cutset_error *err)
{
    int has = 0, tensor = 0, type = 0;
    cutset_status status = cs_ort_check(ort, ort->api.HasValue(value, &has), err);
    if (status) return status;
    *out = CS_ORT_ABSENT;
    if (!has) return CUTSET_OK; /* asking for the type of nothing is an error */
    status = cs_ort_check(ort, ort->api.IsTensor(value, &tensor), err);
    if (!status && !tensor) status = cs_ort_check(ort, ort->api.GetValueType(value, &type), err);
    *out = tensor                       ? CS_ORT_TENSOR
           : type == ONNX_TYPE_SEQUENCE ? CS_ORT_SEQUENCE
           : type == ONNX_TYPE_MAP      ? CS_ORT_MAP
                                        : CS_ORT_OTHER;
    return status;
}

static cutset_status read_shape(const cs_ort *ort, const OrtTensorTypeAndShapeInfo *info,
                                cs_ort_tensor *t, cutset_error *err)
{
    const cs_ort_api *api = &ort->api;
    int type = 0;
    cutset_status status = cs_ort_check(ort, api->GetTensorElementType(info, &type), err);
    t->elem = elem_of(type);
    if (!status && t->elem == CS_ELEM_NONE)
        return cs_fail(err, CUTSET_BAD, "a tensor of element type %d, which cutset does not know",
                       type);
    if (!status) status = cs_ort_check(ort, api->GetDimensionsCount(info, &t->rank), err);
    if (status) return status;
    t->dims = cs_zalloc(t->rank + 1, sizeof *t->dims);
    if (t->dims == NULL) return cs_fail_memory(err);
    status = cs_ort_check(ort, api->GetDimensions(info, t->dims, t->rank), err);
    t->count = 1;
    for (size_t i = 0; !status && i < t->rank; i++)
        if (t->dims[i] < 0 || __builtin_mul_overflow(t->count, (size_t)t->dims[i], &t->count))
            return cs_fail(err, CUTSET_BAD, "a tensor with the dim %lld", (long long)t->dims[i]);
    return status;
}

static cutset_status read_strings(const cs_ort *ort, const OrtValue *value, cs_ort_tensor *t,
                                  cutset_error *err)
{
    const cs_ort_api *api = &ort->api;
    size_t bytes = 0;
    cutset_status status = cs_ort_check(ort, api->GetStringTensorDataLength(value, &bytes), err);
    if (status) return status;
    size_t *start = cs_alloc(t->count + 1, sizeof *start);
    t->text = cs_alloc(bytes + 1, 1);
    t->strings = cs_alloc(t->count + 1, sizeof *t->strings);
    if (start == NULL || t->text == NULL || t->strings == NULL) {
        cs_free(start);
        return cs_fail_memory(err);
    }
    status =
        cs_ort_check(ort, api->GetStringTensorContent(value, t->text, bytes, start, t->count), err);
    start[t->count] = bytes;
    for (size_t i = 0; !status && i < t->count; i++)
        t->strings[i] = (cs_span){t->text + start[i], start[i + 1] - start[i]};
    cs_free(start);
    return status;
}

static cutset_status read_data(const cs_ort *ort, const OrtValue *value, cs_ort_tensor *t,
                               cutset_error *err)
{
    size_t all;
    if (__builtin_mul_overflow(t->count, (size_t)cs_elem_bits(t->elem), &all))
        return cs_fail_memory(err);
    t->bytes = all / 8 + (all % 8 != 0);
    void *data = NULL;
    /* The call wants a value it may change; it is only read. */
    const cutset_status status =
        cs_ort_check(ort, ort->api.GetTensorMutableData((OrtValue *)value, &data), err);
    t->data = data;
    return status;
}

cutset_status cs_ort_tensor_read(const cs_ort *ort, const OrtValue *value, cs_ort_tensor *out,
                                 cutset_error *err)
{
    cs_ort_tensor t = {0};
    OrtTensorTypeAndShapeInfo *info = NULL;
    cutset_status status = cs_ort_check(ort, ort->api.GetTensorTypeAndShape(value, &info), err);
    if (!status) status = read_shape(ort, info, &t, err);
    if (info != NULL) ort->api.ReleaseTensorTypeAndShapeInfo(info);
    if (!status)
        status =
            t.elem == CS_STR ? read_strings(ort, value, &t, err) : read_data(ort, value, &t, err);
    if (status)
        cs_ort_tensor_fini(&t);
    else
        *out = t;
    return status;
}

void cs_ort_tensor_fini(cs_ort_tensor *t)
{
    cs_free(t->dims);
    cs_free(t->strings);
    cs_free(t->text);
    *t = (cs_ort_tensor){0};
}

cutset_status cs_ort_value_count(const cs_ort *ort, const OrtValue *value, size_t *out,
                                 cutset_error *err)
{
    return cs_ort_check(ort, ort->api.GetValueCount(value, out), err);
}

cutset_status cs_ort_value_child(const cs_ort *ort, const OrtValue *value, size_t i, OrtValue **out,
                                 cutset_error *err)
{
    return cs_ort_check(ort, ort->api.GetValue(value, (int)i, ort->allocator, out), err);
}

/* ---- making ---- */

cutset_status cs_ort_tensor_new(OrtValue **out, void **data, size_t *bytes, const cs_ort *ort,
                                cs_elem elem, size_t rank, const int64_t *dims, cutset_error *err)
{
    size_t all = cs_elem_bits(elem);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(all, (size_t)dims[i], &all))
            return cs_fail(err, CUTSET_BAD, "a tensor too large for this machine's memory");
    OrtValue *value = NULL;
    cutset_status status = cs_ort_check(
        ort, ort->api.CreateTensorAsOrtValue(ort->allocator, dims, rank, type_of(elem), &value),
        err);
    if (!status) status = cs_ort_check(ort, ort->api.GetTensorMutableData(value, data), err);
    if (status) {
        cs_ort_value_free(ort, value);
        return status;
    }
    *bytes = all / 8 + (all % 8 != 0);
    *out = value;
    return CUTSET_OK;
}

cutset_status cs_ort_strings_new(OrtValue **out, const cs_ort *ort, size_t rank,
                                 const int64_t *dims, const char *const *strings, size_t count,
                                 cutset_error *err)
{
    OrtValue *value = NULL;
    cutset_status status = cs_ort_check(
        ort, ort->api.CreateTensorAsOrtValue(ort->allocator, dims, rank, CS_STR, &value), err);
    if (!status) status = cs_ort_check(ort, ort->api.FillStringTensor(value, strings, count), err);
    if (status) {
        cs_ort_value_free(ort, value);
        return status;
    }
    *out = value;
    return CUTSET_OK;
}

cutset_status cs_ort_list_new(OrtValue **out, const cs_ort *ort, cs_ort_kind kind,
                              OrtValue *const *children, size_t n, cutset_error *err)
{
    const int type = kind == CS_ORT_MAP ? ONNX_TYPE_MAP : ONNX_TYPE_SEQUENCE;
    return cs_ort_check(ort, ort->api.CreateValue((const OrtValue *const *)children, n, type, out),
                        err);
}

void cs_ort_value_free(const cs_ort *ort, OrtValue *value)
{
    if (value != NULL) ort->api.ReleaseValue(value);
}
