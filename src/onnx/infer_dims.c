/* Sizes of dims and shapes: arithmetic, broadcasting, joining, and what a declared type adds.
 *
 * The only place where inference computes with dims. An expression (a symbol and more) passes
 * through where it stays what it is; everything else that is not a number is unknown. Products and
 * sums are checked: what overflows is unknown.
 */
#include "onnx/infer_ops.h"

/* ---- dims ---- */

cs_dim cs_dim_number(int64_t x) { return x >= 0 ? x : CS_DIM_UNKNOWN; }

cs_dim cs_dim_add(cs_dim a, cs_dim b)
{
    if (a == 0 || b == 0) return a == 0 ? b : a;
    if (a < 0 || b < 0 || a > INT64_MAX - b) return CS_DIM_UNKNOWN;
    return a + b;
}

cs_dim cs_dim_sub(cs_dim a, cs_dim b)
{
    if (b == 0) return a;
    if (a < 0 || b < 0) return CS_DIM_UNKNOWN;
    return cs_dim_number(a - b);
}

cs_dim cs_dim_mul(cs_dim a, cs_dim b)
{
    if (a == 0 || b == 0) return 0;
    if (a == 1 || b == 1) return a == 1 ? b : a;
    if (a < 0 || b < 0 || a > INT64_MAX / b) return CS_DIM_UNKNOWN;
    return a * b;
}

cs_dim cs_dim_div(cs_dim a, cs_dim b)
{
    if (b == 1) return a;
    if (a < 0 || b <= 0 || a % b != 0) return CS_DIM_UNKNOWN;
    return a / b;
}

cs_dim cs_dim_div_floor(cs_dim a, int64_t b)
{
    if (b == 1) return a;
    return a < 0 || b <= 0 ? CS_DIM_UNKNOWN : a / b;
}

cs_dim cs_dim_div_ceil(cs_dim a, int64_t b)
{
    if (b == 1) return a;
    return a < 0 || b <= 0 ? CS_DIM_UNKNOWN : a / b + (a % b != 0);
}

cs_dim cs_dim_product(const cs_dim *d, int n)
{
    cs_dim p = 1;
    for (int i = 0; i < n; i++)
        if (d[i] == 0) return 0;
    for (int i = 0; i < n && p != CS_DIM_UNKNOWN; i++)
        p = cs_dim_mul(p, d[i]);
    return p;
}

cs_dim cs_dim_same(cs_dim a, cs_dim b)
{
    if (a == b || b == CS_DIM_UNKNOWN) return a;
    if (a == CS_DIM_UNKNOWN) return b;
    if (a >= 0 && b >= 0) return CS_DIM_UNKNOWN;
    return b >= 0 ? b : a; /* of two symbols the first */
}

cs_dim cs_dim_broadcast(cs_dim a, cs_dim b)
{
    if (a == b || b == 1) return a;
    if (a == 1) return b;
    if (a >= 0 && b >= 0) return CS_DIM_UNKNOWN; /* no such broadcast */
    /* A number other than 1 decides: the other dim is that number or 1. */
    if (a >= 0 || b >= 0) return a >= 0 ? a : b;
    return CS_DIM_UNKNOWN;
}

int cs_axis(int64_t axis, int rank)
{
    if (rank < 0 || axis < -(int64_t)rank || axis >= rank) return -1;
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- shapes ---- */

void cs_shape_unknown(cs_shape *s) { s->rank = CS_RANK_UNKNOWN; }

void cs_shape_rank(cs_shape *s, int64_t rank)
{
    s->rank = rank < 0 || rank > CS_SHAPE_MAX ? CS_RANK_UNKNOWN : (int)rank;
    for (int i = 0; i < s->rank; i++)
        s->dim[i] = CS_DIM_UNKNOWN;
}

void cs_shape_push(cs_shape *s, cs_dim d)
{
    if (s->rank < 0) return;
    if (s->rank == CS_SHAPE_MAX)
        s->rank = CS_RANK_UNKNOWN;
    else
        s->dim[s->rank++] = d;
}

void cs_shape_broadcast(cs_shape *into, const cs_shape *s)
{
    if (into->rank < 0 || s->rank < 0) {
        into->rank = CS_RANK_UNKNOWN;
        return;
    }
    int grow = s->rank - into->rank;
    if (grow > 0) {
        for (int i = into->rank - 1; i >= 0; i--)
            into->dim[i + grow] = into->dim[i];
        for (int i = 0; i < grow; i++)
            into->dim[i] = 1;
        into->rank = s->rank;
    }
    int lead = into->rank - s->rank;
    for (int i = 0; i < s->rank; i++)
        into->dim[lead + i] = cs_dim_broadcast(into->dim[lead + i], s->dim[i]);
}

void cs_shape_same(cs_shape *into, const cs_shape *s)
{
    if (s->rank < 0) return;
    if (into->rank < 0) {
        into->rank = s->rank;
        for (int i = 0; i < s->rank; i++)
            into->dim[i] = s->dim[i];
        return;
    }
    if (into->rank != s->rank) {
        into->rank = CS_RANK_UNKNOWN;
        return;
    }
    for (int i = 0; i < s->rank; i++)
        into->dim[i] = cs_dim_same(into->dim[i], s->dim[i]);
}

/* ---- types ---- */

static void copy_dims(const cs_pool *pool, cs_type t, cs_shape *s)
{
    const cs_type_info *info = cs_type_get(pool, t);
    s->rank = info->rank <= CS_SHAPE_MAX ? info->rank : CS_RANK_UNKNOWN;
    const cs_dim *dims = cs_type_dims(pool, t);
    for (int i = 0; i < s->rank; i++)
        s->dim[i] = dims[i];
}

static cs_type join_tensors(cs_pool *pool, cs_type a, cs_type b)
{
    cs_elem ea = cs_type_get(pool, a)->elem, eb = cs_type_get(pool, b)->elem;
    cs_shape sa, sb;
    copy_dims(pool, a, &sa);
    copy_dims(pool, b, &sb);
    if (sa.rank != sb.rank) sa.rank = CS_RANK_UNKNOWN;
    for (int i = 0; i < sa.rank; i++)
        if (sa.dim[i] != sb.dim[i]) sa.dim[i] = CS_DIM_UNKNOWN;
    if (ea == CS_ELEM_NONE || eb == CS_ELEM_NONE)
        ea = ea ? ea : eb;
    else if (ea != eb)
        ea = CS_ELEM_NONE;
    if (ea == CS_ELEM_NONE && sa.rank < 0) return 0;
    return cs_type_tensor(pool, ea, sa.rank, sa.dim);
}

cs_type cs_type_join(cs_pool *pool, cs_type a, cs_type b)
{
    if (a == b) return a;
    cs_type_info x = *cs_type_get(pool, a), y = *cs_type_get(pool, b);
    if (!a || !b) {
        if (y.kind == CS_TENSOR) x = y;
        return x.kind == CS_TENSOR && x.elem ? cs_type_tensor(pool, x.elem, CS_RANK_UNKNOWN, NULL)
                                             : 0;
    }
    if (x.kind != y.kind) return 0;
    if (x.kind == CS_TENSOR) return join_tensors(pool, a, b);
    if (x.kind != CS_SEQ && x.kind != CS_OPT && x.kind != CS_MAP) return 0;
    cs_type inner = cs_type_join(pool, x.inner, y.inner);
    if (inner == CS_NONE) return CS_NONE;
    if (x.kind == CS_MAP) return x.elem == y.elem ? cs_type_map(pool, x.elem, inner) : 0;
    return x.kind == CS_SEQ ? cs_type_seq(pool, inner) : cs_type_opt(pool, inner);
}

static cs_fit combine_tensors(cs_pool *pool, cs_type inferred, cs_type declared, cs_type *out)
{
    cs_elem e = cs_type_get(pool, inferred)->elem, d = cs_type_get(pool, declared)->elem;
    if (e && d && e != d) return CS_FIT_ELEM;
    if (cs_type_get(pool, inferred)->rank > CS_SHAPE_MAX && e) return CS_FIT;
    if (cs_type_get(pool, inferred)->rank < 0 && d) {
        *out = declared;
        return CS_FIT;
    }
    cs_shape s, t;
    copy_dims(pool, inferred, &s);
    copy_dims(pool, declared, &t);
    cs_fit fit = s.rank >= 0 && t.rank >= 0 && s.rank != t.rank ? CS_FIT_SHAPE : CS_FIT;
    if (fit == CS_FIT) {
        for (int i = 0; s.rank >= 0 && i < t.rank; i++)
            if (s.dim[i] >= 0 && t.dim[i] >= 0 && s.dim[i] != t.dim[i]) fit = CS_FIT_SHAPE;
        cs_shape_same(&s, &t);
    }
    *out = cs_type_tensor(pool, e ? e : d, s.rank, s.dim);
    return fit;
}

cs_fit cs_type_combine(cs_pool *pool, cs_type inferred, cs_type declared, cs_type *out)
{
    *out = inferred;
    if (!declared || inferred == declared) return CS_FIT;
    cs_type_info x = *cs_type_get(pool, inferred), y = *cs_type_get(pool, declared);
    if (x.kind == CS_UNKNOWN || x.kind == CS_OPAQUE) {
        *out = declared;
        return CS_FIT;
    }
    if (y.kind == CS_OPAQUE || (y.kind == CS_SPARSE && x.kind == CS_TENSOR)) return CS_FIT;
    if (x.kind == CS_SPARSE && y.kind == CS_TENSOR) {
        *out = declared;
        return CS_FIT;
    }
    if (x.kind != y.kind) return CS_FIT_ELEM;
    if (x.kind == CS_SPARSE) return CS_FIT;
    if (x.kind == CS_TENSOR) return combine_tensors(pool, inferred, declared, out);
    if (x.kind == CS_MAP && x.elem && y.elem && x.elem != y.elem) return CS_FIT_ELEM;
    cs_type inner;
    cs_fit fit = cs_type_combine(pool, x.inner, y.inner, &inner);
    if (fit == CS_FIT_ELEM) return fit;
    if (inner == CS_NONE)
        *out = CS_NONE;
    else if (x.kind == CS_MAP)
        *out = cs_type_map(pool, x.elem ? x.elem : y.elem, inner);
    else
        *out = x.kind == CS_SEQ ? cs_type_seq(pool, inner) : cs_type_opt(pool, inner);
    return fit;
}
