/* What operator functions ask of their node: types of inputs, attributes, small lists of integers.
 *
 * Everything here is total: absent inputs, attributes of another kind, constants of another size
 * give "unknown". A list is known wholly, in part, by its length alone, or not at all; that is what
 * decides ranks, since a shape's length is another value's rank.
 */
#include <math.h>
#include <string.h>

#include "onnx/infer_ops.h"

/* ---- inputs ---- */

bool cs_op_has(const cs_op *op, uint32_t arg)
{
    return cs_node_arg(op->g, op->node, arg) != CS_NONE;
}

cs_type cs_op_type(const cs_op *op, uint32_t arg)
{
    uint32_t value = cs_node_arg(op->g, op->node, arg);
    return value == CS_NONE ? 0 : op->g->values.at[value].type;
}

/* NULL: not a tensor. */
static const cs_type_info *tensor(const cs_op *op, uint32_t arg)
{
    const cs_type_info *info = cs_type_get(op->pool, cs_op_type(op, arg));
    return info->kind == CS_TENSOR || info->kind == CS_SPARSE ? info : NULL;
}

cs_elem cs_op_elem(const cs_op *op, uint32_t arg)
{
    const cs_type_info *info = tensor(op, arg);
    return info ? info->elem : CS_ELEM_NONE;
}

int cs_op_rank(const cs_op *op, uint32_t arg)
{
    const cs_type_info *info = tensor(op, arg);
    return info && info->rank <= CS_SHAPE_MAX ? info->rank : CS_RANK_UNKNOWN;
}

int cs_op_shape(const cs_op *op, uint32_t arg, cs_shape *s)
{
    s->rank = cs_op_rank(op, arg);
    const cs_dim *dims = cs_type_dims(op->pool, cs_op_type(op, arg));
    for (int i = 0; i < s->rank; i++)
        s->dim[i] = dims[i];
    return s->rank;
}

cs_dim cs_op_dim(const cs_op *op, uint32_t arg, int axis)
{
    if (axis < 0 || axis >= cs_op_rank(op, arg)) return CS_DIM_UNKNOWN;
    return cs_type_dims(op->pool, cs_op_type(op, arg))[axis];
}

const cs_storage *cs_op_const(const cs_op *op, uint32_t arg, cs_elem elem)
{
    uint32_t value = cs_node_arg(op->g, op->node, arg);
    const cs_storage *s = value == CS_NONE ? NULL : cs_value_const(op->g, value);
    return s && s->data && s->elem == elem ? s : NULL;
}

bool cs_op_scalar(const cs_op *op, uint32_t arg, double *out)
{
    cs_list list;
    int64_t x;
    const cs_storage *s = cs_op_const(op, arg, CS_F32);
    if (s && s->bytes == 4) {
        float f;
        memcpy(&f, s->data, sizeof f);
        *out = f;
        return isfinite(f);
    }
    s = cs_op_const(op, arg, CS_F64);
    if (s && s->bytes == 8) {
        memcpy(out, s->data, sizeof *out);
        return isfinite(*out);
    }
    cs_op_list(op, arg, &list);
    if (!cs_list_number(&list, &x) || x > INT64_C(1) << 53 || x < -(INT64_C(1) << 53)) return false;
    *out = (double)x;
    return true;
}

/* ---- attributes ---- */

bool cs_op_any(const cs_op *op, const char *name)
{
    return op->node->n_attr && cs_node_attr(op->g, op->node, name);
}

bool cs_op_int(const cs_op *op, const char *name, int64_t otherwise, int64_t *out)
{
    const cs_attr *a = op->node->n_attr ? cs_node_attr(op->g, op->node, name) : NULL;
    *out = a && a->kind == CS_ATTR_INT ? a->i : otherwise;
    return !a || a->kind == CS_ATTR_INT;
}

bool cs_op_flag(const cs_op *op, const char *name, bool otherwise, bool *out)
{
    int64_t x;
    bool told = cs_op_int(op, name, otherwise, &x);
    *out = x != 0;
    return told;
}

int cs_op_ints(const cs_op *op, const char *name, const int64_t **out)
{
    const cs_attr *a = op->node->n_attr ? cs_node_attr(op->g, op->node, name) : NULL;
    if (!a) return CS_ABSENT;
    if (a->kind != CS_ATTR_INTS || a->len > INT32_MAX) return CS_ODD;
    *out = a->ints;
    return (int)a->len;
}

int cs_op_floats(const cs_op *op, const char *name, const float **out)
{
    const cs_attr *a = op->node->n_attr ? cs_node_attr(op->g, op->node, name) : NULL;
    if (!a) return CS_ABSENT;
    if (a->kind != CS_ATTR_FLOATS || a->len > INT32_MAX) return CS_ODD;
    *out = a->floats;
    return (int)a->len;
}

cs_span cs_op_text(const cs_op *op, const char *name, const char *otherwise)
{
    const cs_attr *a = op->node->n_attr ? cs_node_attr(op->g, op->node, name) : NULL;
    if (!a) return cs_span_of(otherwise);
    return a->kind == CS_ATTR_STRING ? (cs_span){a->s, a->len} : (cs_span){"", 0};
}

cs_elem cs_op_dtype(const cs_op *op, const char *name, cs_elem otherwise)
{
    int64_t x;
    if (!cs_op_int(op, name, otherwise, &x)) return CS_ELEM_NONE;
    return x > 0 && x < CS_ELEM_COUNT ? (cs_elem)x : CS_ELEM_NONE;
}

/* ---- small lists of integers ---- */

cs_item cs_dim_item(cs_dim d)
{
    if (d >= 0) return (cs_item){CS_ITEM_NUMBER, d};
    return d == CS_DIM_UNKNOWN ? (cs_item){CS_ITEM_UNKNOWN, 0} : (cs_item){CS_ITEM_DIM, d};
}

cs_dim cs_item_dim(cs_item item)
{
    if (item.kind == CS_ITEM_NUMBER) return cs_dim_number(item.x);
    return item.kind == CS_ITEM_DIM ? item.x : CS_DIM_UNKNOWN;
}

static void numbers(cs_list *out, const int64_t *x, int n)
{
    out->state = n <= CS_LIST_MAX ? CS_LIST_KNOWN : CS_LIST_LENGTH;
    out->len = n;
    out->scalar = false;
    for (int i = 0; i < n && n <= CS_LIST_MAX; i++)
        out->at[i] = (cs_item){CS_ITEM_NUMBER, x[i]};
}

void cs_op_list_attr(const cs_op *op, const char *name, cs_list *out)
{
    const int64_t *x;
    int n = cs_op_ints(op, name, &x);
    out->state = n == CS_ABSENT ? CS_LIST_ABSENT : CS_LIST_UNKNOWN;
    out->len = 0;
    if (n >= 0) numbers(out, x, n);
}

static bool bools(const cs_op *op, uint32_t value, cs_list *out)
{
    const cs_storage *s = cs_value_const(op->g, value);
    if (!s || !s->data || s->elem != CS_BOOL || s->bytes > CS_LIST_MAX) return false;
    out->state = CS_LIST_KNOWN;
    out->len = (int)s->bytes;
    for (int i = 0; i < out->len; i++)
        out->at[i] = (cs_item){CS_ITEM_NUMBER, ((const unsigned char *)s->data)[i] != 0};
    return true;
}

bool cs_op_value_list(const cs_op *op, uint32_t value, cs_list *out)
{
    int64_t x[CS_LIST_MAX];
    const cs_value *v = &op->g->values.at[value];
    const cs_type_info *info = cs_type_get(op->pool, v->type);
    out->state = CS_LIST_UNKNOWN;
    out->len = 0;
    if ((info->kind != CS_TENSOR && info->kind != CS_SPARSE) || info->rank > 1) return false;
    int n = cs_value_ints(op->g, value, x, CS_LIST_MAX);
    if (n >= 0 && n <= CS_LIST_MAX) {
        numbers(out, x, n);
        out->scalar = info->rank == 0;
        return true;
    }
    out->scalar = info->rank == 0;
    if (cs_op_found(op, value, out) || bools(op, value, out)) return true;
    cs_dim len = out->scalar       ? 1
                 : info->rank == 1 ? *cs_type_dims(op->pool, v->type)
                                   : CS_DIM_UNKNOWN;
    if (len < 0 || len > INT32_MAX) return false;
    out->state = len ? CS_LIST_LENGTH : CS_LIST_KNOWN;
    out->len = (int)len;
    return len == 0;
}

void cs_op_list(const cs_op *op, uint32_t arg, cs_list *out)
{
    uint32_t value = cs_node_arg(op->g, op->node, arg);
    out->state = CS_LIST_ABSENT;
    out->len = 0;
    if (value != CS_NONE) cs_op_value_list(op, value, out);
}

bool cs_list_numbers(const cs_list *list)
{
    if (list->state != CS_LIST_KNOWN) return false;
    for (int i = 0; i < list->len; i++)
        if (list->at[i].kind != CS_ITEM_NUMBER) return false;
    return true;
}

bool cs_list_number(const cs_list *list, int64_t *out)
{
    if (list->state != CS_LIST_KNOWN || list->len != 1 || list->at[0].kind != CS_ITEM_NUMBER)
        return false;
    *out = list->at[0].x;
    return true;
}

bool cs_list_axes(const cs_list *list, int rank, bool *flags)
{
    if (rank < 0 || !cs_list_numbers(list)) return false;
    memset(flags, 0, (size_t)rank * sizeof *flags);
    for (int i = 0; i < list->len; i++) {
        int axis = cs_axis(list->at[i].x, rank);
        if (axis < 0 || flags[axis]) return false;
        flags[axis] = true;
    }
    return true;
}

/* ---- answering ---- */

bool cs_op_wants(const cs_op *op, uint32_t out)
{
    return out < op->node->n_out && cs_outs(op->g, op->node)[out] != CS_NONE;
}

void cs_op_put(cs_op *op, uint32_t out, cs_elem elem, const cs_shape *shape)
{
    if (!cs_op_wants(op, out) || (elem == CS_ELEM_NONE && shape->rank < 0)) return;
    cs_type t = cs_type_tensor(op->pool, elem, shape->rank, shape->dim);
    if (t == CS_NONE)
        cs_op_no_memory(op);
    else
        cs_op_put_type(op, out, t);
}

void cs_op_put_rank(cs_op *op, uint32_t out, cs_elem elem, int64_t rank)
{
    cs_shape s;
    cs_shape_rank(&s, rank);
    cs_op_put(op, out, elem, &s);
}
