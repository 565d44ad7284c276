/* Types as TorchScript prints them: "Tensor", "Float(2, 3, strides=[3, 1], device=cpu)", "int[]",
 * "Tensor?", "(Tensor, int)", "Dict(str, Tensor)", "__torch__.Foo".
 *
 * What decides is what a value of the type may hold; the rest of a spelling is passed over. Recurses
 * into brackets, to a bounded depth.
 */
#include <string.h>

#include "torch/script.h"

static const struct {
    const char *name;
    uint8_t base, elem; /* elem: of a tensor */
} names[] = {
    {"Tensor", CS_TS_TENSOR, CS_ELEM_NONE},
    {"Float", CS_TS_TENSOR, CS_F32},
    {"Double", CS_TS_TENSOR, CS_F64},
    {"Half", CS_TS_TENSOR, CS_F16},
    {"BFloat16", CS_TS_TENSOR, CS_BF16},
    {"Int", CS_TS_TENSOR, CS_I32},
    {"Long", CS_TS_TENSOR, CS_I64},
    {"Short", CS_TS_TENSOR, CS_I16},
    {"Char", CS_TS_TENSOR, CS_I8},
    {"Byte", CS_TS_TENSOR, CS_U8},
    {"UInt16", CS_TS_TENSOR, CS_U16},
    {"UInt32", CS_TS_TENSOR, CS_U32},
    {"UInt64", CS_TS_TENSOR, CS_U64},
    {"Bool", CS_TS_TENSOR, CS_BOOL},
    {"ComplexFloat", CS_TS_TENSOR, CS_C64},
    {"ComplexDouble", CS_TS_TENSOR, CS_C128},
    {"ComplexHalf", CS_TS_TENSOR, CS_ELEM_NONE},
    {"Float8_e5m2", CS_TS_TENSOR, CS_F8E5M2},
    {"Float8_e4m3fn", CS_TS_TENSOR, CS_F8E4M3FN},
    {"Float8_e5m2fnuz", CS_TS_TENSOR, CS_F8E5M2FNUZ},
    {"Float8_e4m3fnuz", CS_TS_TENSOR, CS_F8E4M3FNUZ},
    {"QInt8", CS_TS_TENSOR, CS_I8},
    {"QUInt8", CS_TS_TENSOR, CS_U8},
    {"QInt32", CS_TS_TENSOR, CS_I32},
    {"int", CS_TS_INT, 0},
    {"SymInt", CS_TS_INT, 0},
    {"float", CS_TS_FLOAT, 0},
    {"bool", CS_TS_BOOL, 0},
    {"str", CS_TS_STR, 0},
    {"complex", CS_TS_COMPLEX, 0},
    {"Scalar", CS_TS_NUMBER, 0},
    {"number", CS_TS_NUMBER, 0},
    {"NoneType", CS_TS_NONE, 0},
    {"Device", CS_TS_DEVICE, 0},
    {"ScalarType", CS_TS_INT, 0},
    {"Layout", CS_TS_INT, 0},
    {"MemoryFormat", CS_TS_INT, 0},
    {"Generator", CS_TS_PLAIN, 0},
    {"Stream", CS_TS_PLAIN, 0},
    {"Storage", CS_TS_OTHER, 0},
    {"Function", CS_TS_PLAIN, 0},
    {"QScheme", CS_TS_PLAIN, 0},
};

/* One entry between the brackets of a tensor: a number, "*", a symbol, or "strides=..." and such. */
static cutset_status scan_dim(cs_scan *c, cs_dim *dims, int *rank)
{
    cs_scan_space(c);
    const char *from = c->at;
    const cutset_status s = cs_scan_over(c, ",)");
    if (s) return s;
    cs_span text = {from, (size_t)(c->at - from)};
    while (text.len && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\n'))
        text.len--;
    if (text.len == 0 || memchr(text.at, '=', text.len)) return CUTSET_OK;
    if (*rank == CS_RANK_MAX)
        return cs_scan_fault(c, from, "a tensor of more than %d dims: give fewer", CS_RANK_MAX);
    int64_t n;
    dims[(*rank)++] = cs_parse_i64(text, &n) && n >= 0 ? n : CS_DIM_UNKNOWN;
    return CUTSET_OK;
}

/* Behind the name of a tensor: its dims, if they stand there. */
static cutset_status scan_dims(cs_scan *c, cs_pool *pool, cs_elem elem, cs_ts_type *out)
{
    int rank = 0;
    bool known = false;
    cs_dim *dims = NULL;
    cutset_status s = CUTSET_OK;
    if (c->at < c->end && *c->at == '(') { /* without a blank */
        c->at++;
        dims = cs_alloc(CS_RANK_MAX, sizeof *dims);
        if (!dims) return CUTSET_SYSTEM;
        known = true;
        const char *first = c->at;
        while (!s) {
            s = scan_dim(c, dims, &rank);
            if (s || !cs_scan_take(c, ",")) break;
        }
        if (!s && !cs_scan_take(c, ")")) s = cs_scan_found(c, "',' or ')'");
        /* Float(requires_grad=0, device=cpu) tells no rank; Float() and Float(strides=[]...) do */
        const bool empty =
            !s && (*first == ')' || (c->at - first > 10 && memcmp(first, "strides=[]", 10) == 0));
        if (rank == 0 && !empty) known = false;
    }
    if (!s) {
        out->type = elem == CS_ELEM_NONE && !known
                        ? 0
                        : cs_type_tensor(pool, elem, known ? rank : CS_RANK_UNKNOWN, dims);
        if (out->type == CS_NONE) s = CUTSET_SYSTEM;
    }
    cs_free(dims);
    return s;
}

static cutset_status scan(cs_scan *c, cs_pool *pool, cs_ts_type *out, int depth);

/* "(" type {"," type} ")", also "name : type" (named tuples). *holds: one of them has memory. */
static cutset_status scan_list(cs_scan *c, cs_pool *pool, bool *holds, int depth)
{
    cutset_status s = CUTSET_OK;
    if (!cs_scan_take(c, "(")) return cs_scan_found(c, "'('");
    if (cs_scan_take(c, ")")) return CUTSET_OK;
    do {
        cs_ts_type inner;
        s = scan(c, pool, &inner, depth + 1);
        if (!s && cs_scan_take(c, ":")) s = scan(c, pool, &inner, depth + 1);
        if (!s) *holds |= cs_ts_has_memory(&inner);
    } while (!s && cs_scan_take(c, ","));
    if (!s && !cs_scan_take(c, ")")) s = cs_scan_found(c, "',' or ')'");
    return s;
}

static cutset_status scan_named(cs_scan *c, cs_pool *pool, cs_ts_type *out, int depth)
{
    const char *from = c->at;
    cs_span word = cs_scan_word(c);
    /* "x : T" in a named tuple has a blank before the colon; "x:" would be the graph's own */
    while (word.len && word.at[word.len - 1] == ':')
        word.len--, c->at--;
    if (word.len == 0) return cs_scan_found(c, "a type such as Tensor or int[]");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!cs_span_is(word, names[i].name)) continue;
        out->base = names[i].base;
        return out->base == CS_TS_TENSOR ? scan_dims(c, pool, names[i].elem, out) : CUTSET_OK;
    }
    out->base = CS_TS_OTHER;
    bool holds = false;
    if (cs_span_is(word, "Dict")) {
        out->base = CS_TS_DICT;
        return scan_list(c, pool, &holds, depth);
    }
    if (word.len > 9 && memcmp(word.at, "__torch__", 9) == 0) out->base = CS_TS_OBJECT;
    if (c->at < c->end && *c->at == '<') { /* Enum<__torch__.Color> */
        while (c->at < c->end && *c->at != '>' && *c->at != '\n')
            c->at++;
        if (!cs_scan_take(c, ">")) return cs_scan_found(c, "'>'");
        out->base = CS_TS_PLAIN;
    } else if (c->at < c->end && *c->at == '(') { /* Future(T), Union(A, B), NamedTuple(a : T) */
        const cutset_status s = scan_list(c, pool, &holds, depth);
        if (s) return s;
        if (cs_span_is(word, "Union") && !holds) out->base = CS_TS_NUMBER;
    }
    out->text = cs_strtab_add(&pool->names, (cs_span){from, (size_t)(c->at - from)}, false);
    return out->text == CS_NONE ? CUTSET_SYSTEM : CUTSET_OK;
}

static cutset_status scan(cs_scan *c, cs_pool *pool, cs_ts_type *out, int depth)
{
    *out = (cs_ts_type){0};
    cutset_status s;
    bool holds = false; /* matters for a Union alone */
    if (depth > CS_SCRIPT_DEPTH)
        return cs_scan_fault(c, c->at, "a type nested more than %d deep: nest less",
                             CS_SCRIPT_DEPTH);
    if (cs_scan_peek(c, '(')) {
        out->base = CS_TS_TUPLE;
        s = scan_list(c, pool, &holds, depth);
    } else {
        s = scan_named(c, pool, out, depth);
    }
    while (!s && c->at < c->end) {
        if (*c->at == '[') {
            while (c->at < c->end && *c->at != ']' && *c->at != '\n')
                c->at++;
            if (!cs_scan_take(c, "]")) return cs_scan_found(c, "']'");
            *out = (cs_ts_type){.base = CS_TS_LIST};
        } else if (*c->at == '?') {
            c->at++;
            out->optional = true;
        } else {
            break;
        }
    }
    return s;
}

cutset_status cs_ts_scan_type(cs_scan *c, cs_pool *pool, cs_ts_type *out)
{
    cs_scan_space(c);
    return scan(c, pool, out, 0);
}
