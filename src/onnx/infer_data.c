/* Elements of small integer tensors: what makes Shape -> Gather -> Concat -> Reshape tell a shape.
 *
 * An element is a number, a dim of the model (an expression) or unknown. Only scalars and vectors
 * of up to CS_LIST_MAX elements of i64, i32 and bool are kept. Runs after the operator's types are
 * known; the length must fit them. An element that a computation does not give exactly is unknown.
 */
#include <string.h>

#include "onnx/infer_ops.h"

static const cs_item unknown = {CS_ITEM_UNKNOWN, 0};
static cs_item number(int64_t x) { return (cs_item){CS_ITEM_NUMBER, x}; }

static cs_item fit(cs_item item, cs_elem elem)
{
    if (item.kind == CS_ITEM_NUMBER && elem == CS_I32 && (item.x > INT32_MAX || item.x < INT32_MIN))
        return unknown;
    if (item.kind == CS_ITEM_NUMBER && elem == CS_BOOL) return number(item.x != 0);
    return elem == CS_BOOL && item.kind == CS_ITEM_DIM ? unknown : item;
}

/* Gives output `out` these elements if its type has room for exactly them. */
static void put(cs_op *op, uint32_t out, cs_list *list)
{
    if (!cs_op_wants(op, out) || list->len > CS_LIST_MAX) return;
    cs_type type = op->g->values.at[cs_outs(op->g, op->node)[out]].type;
    cs_type_info t = *cs_type_get(op->pool, type);
    bool integer = t.elem == CS_I64 || t.elem == CS_I32 || t.elem == CS_BOOL;
    if (t.kind != CS_TENSOR || !integer || t.rank < 0 || t.rank > 1) return;
    if (t.rank == 0
            ? list->len != 1
            : *cs_type_dims(op->pool, type) >= 0 && *cs_type_dims(op->pool, type) != list->len)
        return;
    list->state = CS_LIST_KNOWN;
    list->scalar = t.rank == 0;
    bool some = list->len == 0;
    for (int i = 0; i < list->len; i++) {
        list->at[i] = fit(list->at[i], t.elem);
        some = some || list->at[i].kind != CS_ITEM_UNKNOWN;
    }
    if (some) cs_op_put_list(op, out, list);
}

/* Elements of an input; where only their number is known, that many unknown ones. */
static bool take(const cs_op *op, uint32_t arg, cs_list *list)
{
    cs_op_list(op, arg, list);
    if (list->state == CS_LIST_LENGTH && list->len <= CS_LIST_MAX) {
        for (int i = 0; i < list->len; i++)
            list->at[i] = unknown;
        list->state = CS_LIST_KNOWN;
    }
    return list->state == CS_LIST_KNOWN;
}

static cs_dim out_length(const cs_op *op, uint32_t out)
{
    if (!cs_op_wants(op, out)) return CS_DIM_UNKNOWN;
    cs_type t = op->g->values.at[cs_outs(op->g, op->node)[out]].type;
    const cs_type_info *info = cs_type_get(op->pool, t);
    if (info->kind != CS_TENSOR || info->rank > 1) return CS_DIM_UNKNOWN;
    return info->rank == 0 ? 1 : info->rank == 1 ? *cs_type_dims(op->pool, t) : CS_DIM_UNKNOWN;
}

/* ---- passing on, picking, joining ---- */

void cs_data_same(cs_op *op)
{
    cs_list list;
    cs_op_list(op, 0, &list);
    if (list.state != CS_LIST_KNOWN) return;
    cs_dim n = out_length(op, 0);
    if (list.len == 1 && n > 1 && n <= CS_LIST_MAX) { /* Expand */
        for (int i = 1; i < n; i++)
            list.at[i] = list.at[0];
        list.len = (int)n;
    }
    put(op, 0, &list);
}

void cs_data_shape(cs_op *op)
{
    int64_t start, end;
    cs_shape s;
    cs_list list = {.len = 0};
    cs_slice range;
    int rank = cs_op_shape(op, 0, &s);
    if (!cs_op_int(op, "start", 0, &start) || !cs_op_int(op, "end", INT64_MAX, &end) ||
        !cs_slice_range(rank, number(start), number(end), number(1), &range) ||
        range.len > CS_LIST_MAX)
        return;
    for (int64_t i = 0; i < range.len; i++)
        list.at[list.len++] = cs_dim_item(s.dim[range.start + i]);
    put(op, 0, &list);
}

void cs_data_size(cs_op *op)
{
    cs_shape s;
    cs_list list = {.len = 1};
    cs_op_shape(op, 0, &s);
    list.at[0] = s.rank < 0 ? unknown : cs_dim_item(cs_dim_product(s.dim, s.rank));
    put(op, 0, &list);
}

void cs_data_gather(cs_op *op)
{
    int64_t axis;
    cs_list data, at;
    if (!cs_op_int(op, "axis", 0, &axis) || (axis != 0 && axis != -1) || !take(op, 0, &data) ||
        data.scalar || !take(op, 1, &at))
        return;
    for (int i = 0; i < at.len; i++) {
        cs_item k = at.at[i];
        int from = k.kind == CS_ITEM_NUMBER ? cs_axis(k.x, data.len) : -1;
        at.at[i] = from < 0 ? unknown : data.at[from];
    }
    put(op, 0, &at);
}

void cs_data_concat(cs_op *op)
{
    cs_list all = {.len = 0}, part;
    for (uint32_t i = 0; i < op->node->n_arg; i++) {
        if (!take(op, i, &part) || part.scalar || all.len + part.len > CS_LIST_MAX) return;
        memcpy(all.at + all.len, part.at, (size_t)part.len * sizeof *part.at);
        all.len += part.len;
    }
    put(op, 0, &all);
}

void cs_data_slice(cs_op *op)
{
    cs_list data, starts, ends, axes, steps, out = {.len = 0};
    cs_slice range;
    if (!take(op, 0, &data) || data.scalar) return;
    cs_slice_lists(op, &starts, &ends, &axes, &steps);
    if (starts.state != CS_LIST_KNOWN || starts.len != 1 || ends.state != CS_LIST_KNOWN ||
        ends.len != 1 ||
        (steps.state != CS_LIST_ABSENT && (steps.state != CS_LIST_KNOWN || steps.len != 1)))
        return;
    cs_item by = steps.state == CS_LIST_ABSENT ? number(1) : steps.at[0];
    if (!cs_slice_range(data.len, starts.at[0], ends.at[0], by, &range)) return;
    for (int64_t i = 0, k = range.start; i < range.len; i++, k += range.step)
        out.at[out.len++] = data.at[k];
    put(op, 0, &out);
}

void cs_data_split(cs_op *op)
{
    cs_list data, part;
    if (!take(op, 0, &data) || data.scalar) return;
    int from = 0;
    for (uint32_t i = 0; i < op->node->n_out; i++) {
        cs_dim n = out_length(op, i);
        if (n < 0 || n > data.len - from) return;
        part.len = (int)n;
        memcpy(part.at, data.at + from, (size_t)n * sizeof *part.at);
        put(op, i, &part);
        from += part.len;
    }
}

/* ---- arithmetic ---- */

static cs_item add(cs_item a, cs_item b, bool minus)
{
    int64_t x;
    if (a.kind == CS_ITEM_NUMBER && b.kind == CS_ITEM_NUMBER)
        return (minus ? __builtin_sub_overflow(a.x, b.x, &x) : __builtin_add_overflow(a.x, b.x, &x))
                   ? unknown
                   : number(x);
    if (b.kind == CS_ITEM_NUMBER && b.x == 0) return a;
    return !minus && a.kind == CS_ITEM_NUMBER && a.x == 0 ? b : unknown;
}

static cs_item multiply(cs_item a, cs_item b)
{
    int64_t x;
    if (a.kind == CS_ITEM_NUMBER && b.kind == CS_ITEM_NUMBER)
        return __builtin_mul_overflow(a.x, b.x, &x) ? unknown : number(x);
    cs_item n = a.kind == CS_ITEM_NUMBER ? a : b, other = a.kind == CS_ITEM_NUMBER ? b : a;
    if (n.kind != CS_ITEM_NUMBER || (n.x != 0 && n.x != 1)) return unknown;
    return n.x ? other : n;
}

static cs_item divide(cs_item a, cs_item b, bool remainder)
{
    if (b.kind != CS_ITEM_NUMBER || b.x == 0 || b.x == -1) return unknown;
    if (a.kind == CS_ITEM_NUMBER) {
        if (remainder) /* the sign differs between integer and fmod */
            return a.x < 0 || b.x < 0 ? unknown : number(a.x % b.x);
        return number(a.x / b.x);
    }
    return b.x == 1 && !remainder ? a : unknown;
}

/* a < b, or a <= b; a dim is never negative. */
static cs_item less(cs_item a, cs_item b, bool or_equal)
{
    if (a.kind == CS_ITEM_NUMBER && b.kind == CS_ITEM_NUMBER)
        return number(or_equal ? a.x <= b.x : a.x < b.x);
    if (a.kind == CS_ITEM_DIM && b.kind == CS_ITEM_NUMBER && (or_equal ? b.x < 0 : b.x <= 0))
        return number(0);
    if (a.kind == CS_ITEM_NUMBER && b.kind == CS_ITEM_DIM && (or_equal ? a.x <= 0 : a.x < 0))
        return number(1);
    return unknown;
}

static cs_item equal(cs_item a, cs_item b)
{
    if (a.kind == CS_ITEM_UNKNOWN || b.kind == CS_ITEM_UNKNOWN) return unknown;
    if (a.kind == b.kind && (a.kind == CS_ITEM_NUMBER || a.x == b.x)) return number(a.x == b.x);
    cs_item n = a.kind == CS_ITEM_NUMBER ? a : b;
    return n.kind == CS_ITEM_NUMBER && n.x < 0 ? number(0) : unknown;
}

static cs_item extreme(cs_item a, cs_item b, bool greatest)
{
    if (a.kind == CS_ITEM_NUMBER && b.kind == CS_ITEM_NUMBER)
        return number((a.x > b.x) == greatest ? a.x : b.x);
    cs_item n = a.kind == CS_ITEM_NUMBER ? a : b, other = a.kind == CS_ITEM_NUMBER ? b : a;
    if (n.kind == CS_ITEM_NUMBER && other.kind == CS_ITEM_DIM && n.x <= 0)
        return greatest ? other : n;
    return a.kind == CS_ITEM_DIM && b.kind == CS_ITEM_DIM && a.x == b.x ? a : unknown;
}

static cs_item logic(cs_item a, cs_item b, bool both)
{
    bool known_a = a.kind == CS_ITEM_NUMBER, known_b = b.kind == CS_ITEM_NUMBER;
    if (known_a && known_b) return number(both ? a.x && b.x : a.x || b.x);
    if ((known_a && !a.x == both) || (known_b && !b.x == both)) /* one decides */
        return number(!both);
    return unknown;
}

static cs_item arith(char what, cs_item a, cs_item b)
{
    switch (what) {
    case '+':
    case '-':
        return add(a, b, what == '-');
    case '*':
        return multiply(a, b);
    case '/':
    case '%':
        return divide(a, b, what == '%');
    case 'm':
    case 'M':
        return extreme(a, b, what == 'M');
    case '=':
        return equal(a, b);
    case '<':
    case 'L':
        return less(a, b, what == 'L');
    case '>':
    case 'G':
        return less(b, a, what == 'G');
    case '&':
    case '|':
        return logic(a, b, what == '&');
    }
    return unknown;
}

void cs_data_unary(cs_op *op)
{
    cs_list list;
    char what = *op->entry->rule;
    if (!take(op, 0, &list)) return;
    for (int i = 0; i < list.len; i++) {
        cs_item *x = &list.at[i];
        if (x->kind != CS_ITEM_NUMBER || x->x == INT64_MIN)
            *x = unknown;
        else if (what == '!')
            x->x = !x->x;
        else if (what == 'n' || x->x < 0) /* Neg, Abs */
            x->x = -x->x;
    }
    put(op, 0, &list);
}

/* The item at i of a list that is broadcast. */
static cs_item wide(const cs_list *list, int i) { return list->at[list->len == 1 ? 0 : i]; }

static int wide_length(int a, int b) { return a == b || b == 1 ? a : a == 1 ? b : -1; }

void cs_data_arith(cs_op *op)
{
    cs_list a, b;
    if (!take(op, 0, &a)) return;
    for (uint32_t k = 1; k < op->node->n_arg; k++) {
        int n = take(op, k, &b) ? wide_length(a.len, b.len) : -1;
        if (n < 0) return;
        for (int i = n - 1; i >= 0; i--)
            a.at[i] = arith(*op->entry->rule, wide(&a, i), wide(&b, i));
        a.len = n;
    }
    put(op, 0, &a);
}

void cs_data_where(cs_op *op)
{
    cs_list c, x, y, out;
    if (!take(op, 0, &c) || !take(op, 1, &x) || !take(op, 2, &y)) return;
    int n = wide_length(x.len, y.len);
    n = n < 0 ? -1 : wide_length(c.len, n);
    for (int i = 0; i < n; i++) {
        cs_item if_so = wide(&x, i), else_so = wide(&y, i), which = wide(&c, i);
        if (which.kind == CS_ITEM_NUMBER)
            out.at[i] = which.x ? if_so : else_so;
        else
            out.at[i] = if_so.kind == else_so.kind && if_so.x == else_so.x ? if_so : unknown;
    }
    out.len = n;
    if (n >= 0) put(op, 0, &out);
}

/* ---- making ---- */

void cs_data_fill(cs_op *op)
{
    cs_list out;
    cs_dim n = out_length(op, 0);
    const cs_attr *a = cs_node_attr(op->g, op->node, "value");
    if (n < 0 || n > CS_LIST_MAX || !a || a->kind != CS_ATTR_TENSOR || !a->data) return;
    cs_elem elem = cs_type_get(op->pool, a->type)->elem;
    int64_t x = 0;
    if (elem == CS_I64 && a->len == 8) {
        memcpy(&x, a->data, 8);
    } else if (elem == CS_I32 && a->len == 4) {
        int32_t small;
        memcpy(&small, a->data, 4);
        x = small;
    } else if (elem == CS_BOOL && a->len == 1) {
        x = *(const unsigned char *)a->data != 0;
    } else {
        return;
    }
    out.len = (int)n;
    for (int i = 0; i < out.len; i++)
        out.at[i] = number(x);
    put(op, 0, &out);
}

void cs_data_range(cs_op *op)
{
    int64_t x, by = 1;
    cs_list start, delta, out = {.len = 0};
    cs_dim n = out_length(op, 0);
    cs_op_list(op, 0, &start);
    cs_op_list(op, 2, &delta);
    if (n < 0 || n > CS_LIST_MAX || !cs_list_number(&start, &x) ||
        (delta.state != CS_LIST_ABSENT && !cs_list_number(&delta, &by)))
        return;
    for (cs_item item = number(x); out.len < n; item = add(item, number(by), false))
        out.at[out.len++] = item;
    put(op, 0, &out);
}

/* Of a vector to one element; the entry's rule says how. */
void cs_data_reduce(cs_op *op)
{
    cs_list in, out = {.len = 1};
    if (!take(op, 0, &in) || in.len == 0 || out_length(op, 0) != 1) return;
    out.at[0] = in.at[0];
    for (int i = 1; i < in.len; i++)
        out.at[0] = arith(*op->entry->rule, out.at[0], in.at[i]);
    put(op, 0, &out);
}
