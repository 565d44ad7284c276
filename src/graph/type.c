/* The pool, and types in it.
 *
 * Types are hash-consed: the map goes from a hash of (kind, element, rank, inner, dims) to an id; on
 * a collision the hash is stepped until the type or a free key is found. Equal types therefore have
 * equal ids and comparing types is comparing integers. Dims of all types lie in one array.
 *
 * Containers (seq, opt, map) nest as deep as the readers let them, about a hundred levels; only
 * cs_type_meet recurses over that depth. Cost: linear in the rank.
 */
#include "graph/type.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- elements ---- */

const char *cs_elem_name(cs_elem e)
{
    switch (e) {
#define NAME(name, code, text, bits)                                                               \
    case CS_##name:                                                                                \
        return #text;
        CS_ELEMS(NAME)
#undef NAME
    default:
        return "?";
    }
}

cs_elem cs_elem_parse(cs_span text)
{
#define MATCH(name, code, spelling, bits)                                                          \
    if (text.len == sizeof #spelling - 1 && memcmp(text.at, #spelling, sizeof #spelling - 1) == 0) \
        return CS_##name;
    CS_ELEMS(MATCH)
#undef MATCH
    return CS_ELEM_NONE;
}

unsigned cs_elem_bits(cs_elem e)
{
    switch (e) {
#define BITS(name, code, text, bits)                                                               \
    case CS_##name:                                                                                \
        return bits;
        CS_ELEMS(BITS)
#undef BITS
    default:
        return 0;
    }
}

/* ---- the pool ---- */

cs_pool *cs_pool_new(void)
{
    cs_pool *pool = cs_zalloc(1, sizeof *pool);
    if (!pool) return NULL;
    if (!cs_strtab_init(&pool->names)) {
        cs_free(pool);
        return NULL;
    }
    /* The dims have an address from the start, so that a rank of 0 can point to them. */
    if (!cs_vec_push(&pool->types, (cs_type_info){.rank = CS_RANK_UNKNOWN}) ||
        !cs_vec_room(&pool->dims, 16)) {
        cs_pool_free(pool);
        return NULL;
    }
    return pool;
}

void cs_pool_free(cs_pool *pool)
{
    if (!pool) return;
    cs_strtab_fini(&pool->names);
    cs_arena_fini(&pool->arena);
    cs_vec_fini(&pool->types);
    cs_vec_fini(&pool->dims);
    cs_map_fini(&pool->type_ids);
    cs_vec_fini(&pool->notes);
    cs_free(pool);
}

bool cs_note(cs_pool *pool, const char *format, ...)
{
    char raw[1000], line[4 * sizeof raw];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    if (n < 0) return true; /* only an impossible format gets here */
    size_t len = 0;
    for (const char *s = raw; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c == 0x7f)
            len += (size_t)snprintf(line + len, 5, "\\x%02x", c);
        else
            line[len++] = *s;
    }
    const char *text = cs_arena_dup(&pool->arena, line, len);
    return text && cs_vec_push(&pool->notes, text);
}

/* ---- making types ---- */

static bool type_equal(const cs_pool *pool, const cs_type_info *a, const cs_type_info *b,
                       const cs_dim *b_dims)
{
    if (a->kind != b->kind || a->elem != b->elem || a->rank != b->rank || a->inner != b->inner)
        return false;
    const cs_dim *a_dims = pool->dims.at + a->dims;
    for (int i = 0; i < a->rank; i++)
        if (a_dims[i] != b_dims[i]) return false;
    return true;
}

/* The id of this type, made if need be. `dims` may lie in the pool's own array. */
static cs_type intern(cs_pool *pool, cs_type_info info, const cs_dim *dims)
{
    size_t rank = info.rank > 0 ? (size_t)info.rank : 0;
    uint64_t key[3] = {(uint64_t)info.kind << 32 | (uint32_t)info.elem,
                       (uint64_t)(uint32_t)info.rank << 32 | info.inner,
                       rank ? cs_hash(dims, rank * sizeof *dims) : 0};
    uint64_t hash = cs_hash(key, sizeof key);
    for (uint32_t id; (id = cs_map_get(&pool->type_ids, hash)) != CS_NONE;) {
        if (type_equal(pool, &pool->types.at[id], &info, dims)) return id;
        hash = hash * 0x9e3779b97f4a7c15u + 1;
    }
    if (pool->types.len >= CS_NONE - 1 || pool->dims.len + rank >= CS_NONE) return CS_NONE;
    /* Growing the array moves it, and `dims` with it. */
    bool own = rank && (uintptr_t)dims >= (uintptr_t)pool->dims.at &&
               (uintptr_t)dims < (uintptr_t)(pool->dims.at + pool->dims.len);
    size_t own_at = own ? (size_t)(dims - pool->dims.at) : 0;
    if (!cs_vec_room(&pool->types, 1) || !cs_vec_room(&pool->dims, rank)) return CS_NONE;
    if (own) dims = pool->dims.at + own_at;
    cs_type id = (cs_type)pool->types.len;
    if (!cs_map_put(&pool->type_ids, hash, id)) return CS_NONE;
    info.dims = (uint32_t)pool->dims.len;
    for (size_t i = 0; i < rank; i++)
        pool->dims.at[pool->dims.len++] = dims[i];
    pool->types.at[pool->types.len++] = info;
    return id;
}

static cs_type tensor(cs_pool *pool, cs_kind kind, cs_elem elem, int rank, const cs_dim *dims)
{
    cs_dim unknown[CS_RANK_MAX];
    if (rank < 0 || rank > CS_RANK_MAX) rank = CS_RANK_UNKNOWN;
    if (!dims && rank > 0) {
        for (int i = 0; i < rank; i++)
            unknown[i] = CS_DIM_UNKNOWN;
        dims = unknown;
    }
    return intern(pool, (cs_type_info){.kind = kind, .elem = elem, .rank = rank}, dims);
}

cs_type cs_type_tensor(cs_pool *pool, cs_elem elem, int rank, const cs_dim *dims)
{
    return tensor(pool, CS_TENSOR, elem, rank, dims);
}

cs_type cs_type_sparse(cs_pool *pool, cs_elem elem, int rank, const cs_dim *dims)
{
    return tensor(pool, CS_SPARSE, elem, rank, dims);
}

static cs_type container(cs_pool *pool, cs_kind kind, cs_elem key, cs_type inner)
{
    if (inner == CS_NONE) return CS_NONE;
    return intern(
        pool, (cs_type_info){.kind = kind, .elem = key, .rank = CS_RANK_UNKNOWN, .inner = inner},
        NULL);
}

cs_type cs_type_seq(cs_pool *pool, cs_type inner)
{
    return container(pool, CS_SEQ, CS_ELEM_NONE, inner);
}

cs_type cs_type_opt(cs_pool *pool, cs_type inner)
{
    return container(pool, CS_OPT, CS_ELEM_NONE, inner);
}

cs_type cs_type_map(cs_pool *pool, cs_elem key, cs_type value)
{
    return container(pool, CS_MAP, key, value);
}

cs_type cs_type_opaque(cs_pool *pool) { return container(pool, CS_OPAQUE, CS_ELEM_NONE, 0); }

/* ---- asking ---- */

bool cs_type_is_ranked(const cs_pool *pool, cs_type t)
{
    for (;;) {
        const cs_type_info *info = cs_type_get(pool, t);
        switch (info->kind) {
        case CS_TENSOR:
        case CS_SPARSE:
            return info->elem != CS_ELEM_NONE && info->rank >= 0;
        case CS_SEQ:
        case CS_OPT:
        case CS_MAP:
            t = info->inner;
            break;
        default:
            return false;
        }
    }
}

int64_t cs_type_bytes(const cs_pool *pool, cs_type t)
{
    const cs_type_info *info = cs_type_get(pool, t);
    if ((info->kind != CS_TENSOR && info->kind != CS_SPARSE) || info->rank < 0) return -1;
    unsigned bits = cs_elem_bits(info->elem);
    if (bits == 0) return -1;
    int64_t count = 1;
    const cs_dim *dims = cs_type_dims(pool, t);
    for (int i = 0; i < info->rank; i++) {
        if (dims[i] < 0) return -1;
        count = cs_sat_mul(count, dims[i]);
    }
    if (bits % 8 == 0) return cs_sat_mul(count, bits / 8);
    /* Fewer than 8 bits: the product in bits may overflow where the bytes do not. */
    int64_t whole = count / 8, rest = count % 8;
    return cs_sat_add(cs_sat_mul(whole, bits), (rest * bits + 7) / 8);
}

/* ---- meet ---- */

/* False where the two dims are different sizes. */
static bool meet_dim(cs_dim a, cs_dim b, cs_dim *out)
{
    if (a >= 0 && b >= 0 && a != b) return false;
    if (a >= 0 || b == CS_DIM_UNKNOWN)
        *out = a;
    else if (b >= 0 || a == CS_DIM_UNKNOWN)
        *out = b;
    else
        *out = a;
    return true;
}

static bool meet_tensor(cs_pool *pool, cs_type a, cs_type b, cs_type *out)
{
    cs_type_info x = *cs_type_get(pool, a), y = *cs_type_get(pool, b);
    if (x.elem && y.elem && x.elem != y.elem) return false;
    if (x.rank >= 0 && y.rank >= 0 && x.rank != y.rank) return false;
    cs_dim dims[CS_RANK_MAX];
    int rank = x.rank >= 0 ? x.rank : y.rank;
    for (int i = 0; i < rank; i++) {
        cs_dim of_a = x.rank >= 0 ? pool->dims.at[x.dims + (uint32_t)i] : CS_DIM_UNKNOWN;
        cs_dim of_b = y.rank >= 0 ? pool->dims.at[y.dims + (uint32_t)i] : CS_DIM_UNKNOWN;
        if (!meet_dim(of_a, of_b, &dims[i])) return false;
    }
    *out = tensor(pool, x.kind, x.elem ? x.elem : y.elem, rank, dims);
    return true;
}

bool cs_type_meet(cs_pool *pool, cs_type a, cs_type b, cs_type *out)
{
    *out = a;
    if (a == b || b == 0) return true;
    if (a == 0) {
        *out = b;
        return true;
    }
    cs_type_info x = *cs_type_get(pool, a), y = *cs_type_get(pool, b);
    if (x.kind != y.kind) return false;
    if (x.kind == CS_TENSOR || x.kind == CS_SPARSE) return meet_tensor(pool, a, b, out);
    if (x.elem && y.elem && x.elem != y.elem) return false;
    cs_type inner;
    if (!cs_type_meet(pool, x.inner, y.inner, &inner)) return false;
    *out = container(pool, x.kind, x.elem ? x.elem : y.elem, inner);
    return true;
}
