/* Element types, dims and value types; the pool that holds names and types of a model.
 *
 * A type is a 32-bit id into the pool: equal types have equal ids (hash-consed), so a million values
 * of one type cost four bytes each. Type 0 is "unknown".
 */
#ifndef CS_GRAPH_TYPE_H
#define CS_GRAPH_TYPE_H

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

/* The numbers are ONNX's TensorProto.DataType. */
/* clang-format off */
#define CS_ELEMS(X) \
    X(F32, 1, f32, 32) X(U8, 2, u8, 8) X(I8, 3, i8, 8) \
    X(U16, 4, u16, 16) X(I16, 5, i16, 16) X(I32, 6, i32, 32) \
    X(I64, 7, i64, 64) X(STR, 8, str, 0) X(BOOL, 9, bool, 8) \
    X(F16, 10, f16, 16) X(F64, 11, f64, 64) X(U32, 12, u32, 32) \
    X(U64, 13, u64, 64) X(C64, 14, c64, 64) X(C128, 15, c128, 128) \
    X(BF16, 16, bf16, 16) X(F8E4M3FN, 17, f8e4m3fn, 8) X(F8E4M3FNUZ, 18, f8e4m3fnuz, 8) \
    X(F8E5M2, 19, f8e5m2, 8) X(F8E5M2FNUZ, 20, f8e5m2fnuz, 8) X(U4, 21, u4, 4) \
    X(I4, 22, i4, 4) X(F4E2M1, 23, f4e2m1, 4) X(F8E8M0, 24, f8e8m0, 8) \
    X(U2, 25, u2, 2) X(I2, 26, i2, 2) X(F6E2M3, 27, f6e2m3, 6) \
    X(F6E3M2, 28, f6e3m2, 6)
/* clang-format on */
typedef enum cs_elem {
    CS_ELEM_NONE = 0,
#define CS_ELEM_ENUM(name, code, text, bits) CS_##name = code,
    CS_ELEMS(CS_ELEM_ENUM)
#undef CS_ELEM_ENUM
    CS_ELEM_COUNT
} cs_elem;

const char *cs_elem_name(cs_elem e); /* "f32"; "?" for none */
cs_elem cs_elem_parse(cs_span text); /* CS_ELEM_NONE: no such type */
unsigned cs_elem_bits(cs_elem e);    /* 0: no static size (str, none) */

/* A dim: >= 0 a size; CS_DIM_UNKNOWN; else an expression over symbols (N, 2*N+1, "odd name"). */
typedef int64_t cs_dim;
#define CS_DIM_UNKNOWN ((cs_dim)-1)
static inline bool cs_dim_is_expr(cs_dim d) { return d <= -2; }
/* An expression is the interned text of its canonical spelling in the text form, without blanks:
 * the symbol of dim_param "N" is N, that of "my dim" is "my dim" with the quotes. */
static inline cs_dim cs_dim_expr(cs_str text) { return -2 - (cs_dim)text; }
static inline cs_str cs_dim_text(cs_dim d) { return (cs_str)(-2 - d); }

typedef enum cs_kind {
    CS_UNKNOWN = 0,
    CS_TENSOR,
    CS_SPARSE, /* sparse tensor */
    CS_SEQ,
    CS_OPT,
    CS_MAP,
    CS_OPAQUE
} cs_kind;

#define CS_RANK_UNKNOWN (-1)
#define CS_RANK_MAX 1024
typedef uint32_t cs_type; /* 0 = unknown; CS_NONE = no memory */
typedef struct cs_type_info {
    cs_kind kind;
    cs_elem elem;  /* tensor, sparse: may be NONE; map: the key */
    int rank;      /* tensor, sparse: CS_RANK_UNKNOWN or 0.. */
    uint32_t dims; /* first of `rank` dims in pool->dims */
    cs_type inner; /* seq, opt, map value */
} cs_type_info;

typedef struct cs_pool {
    cs_strtab names;
    cs_arena arena; /* lives as long as the model: attributes, small constants */
    CS_VEC(cs_type_info) types;
    CS_VEC(cs_dim) dims;
    cs_map type_ids;     /* hash -> type id, chained by rehash on collision */
    const cs_file *file; /* that names point into; NULL: none */
    CS_VEC(const char *)
    notes; /* what reading changed, dropped or doubted, for the user; in arena */
} cs_pool;

cs_pool *cs_pool_new(void); /* NULL: no memory */
void cs_pool_free(cs_pool *pool);
static inline cs_span cs_name(const cs_pool *pool, cs_str s)
{
    return cs_strtab_get(&pool->names, s);
}

/* Lets go of the pages of the file: who walks over all names calls it now and then, so that memory
 * does not grow with the file. */
static inline void cs_pool_rest(const cs_pool *pool)
{
    if (pool->file != NULL) cs_file_rest(pool->file);
}

/* Adds a one-line note for the user. False: no memory. */
bool cs_note(cs_pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* dims NULL with rank >= 0: all unknown. */
cs_type cs_type_tensor(cs_pool *pool, cs_elem elem, int rank, const cs_dim *dims);
cs_type cs_type_sparse(cs_pool *pool, cs_elem elem, int rank, const cs_dim *dims);
cs_type cs_type_seq(cs_pool *pool, cs_type inner);
cs_type cs_type_opt(cs_pool *pool, cs_type inner);
cs_type cs_type_map(cs_pool *pool, cs_elem key, cs_type value);
cs_type cs_type_opaque(cs_pool *pool);

static inline const cs_type_info *cs_type_get(const cs_pool *pool, cs_type t)
{
    return &pool->types.at[t];
}
static inline const cs_dim *cs_type_dims(const cs_pool *pool, cs_type t)
{
    return pool->dims.at + pool->types.at[t].dims;
}
/* Element type and rank are known (for seq, opt, map: of what is inside). */
bool cs_type_is_ranked(const cs_pool *pool, cs_type t);
/* Bytes of a tensor: ceil(elements x bits / 8); -1: a dim, the rank or the size is not known. A
 * product over INT64_MAX: INT64_MAX. */
int64_t cs_type_bytes(const cs_pool *pool, cs_type t);
/* What both tell: keeps the more precise of each part. *out is CS_NONE without memory. False where
 * they contradict (element type, rank, a size): *out is then `a`. A symbol yields to a number; of
 * two symbols `a`'s stays. */
bool cs_type_meet(cs_pool *pool, cs_type a, cs_type b, cs_type *out);

/* The text form of types, "f32[1,N,2*N+1]", "seq(f32)", "?". Parses all of `text`; on failure
 * CUTSET_BAD with a message that quotes the text (offset = position within `text`). */
cutset_status cs_type_parse(cs_pool *pool, cs_span text, cs_type *out, cutset_error *err);
/* Appends to `out` (a growing buffer of chars, not terminated). Sparse and opaque print as "?". */
typedef CS_VEC(char) cs_chars;
bool cs_type_print(const cs_pool *pool, cs_type t, cs_chars *out);
/* Canonical dim from its spelling ("N", "2*N + 1", "?", "7"); or from an ONNX dim_param. */
cutset_status cs_dim_parse(cs_pool *pool, cs_span text, cs_dim *out, cutset_error *err);
bool cs_dim_of_param(cs_pool *pool, cs_span param, cs_dim *out); /* false: no memory */
/* `dim` with `symbol` (as in dim_param, without quotes) read as `value`, folded. CUTSET_BAD: what
 * comes out is no size (negative, no whole number, over 64 bits). */
cutset_status cs_dim_bind(cs_pool *pool, cs_dim dim, cs_span symbol, int64_t value, cs_dim *out,
                          cutset_error *err);

#endif
