/* Types and dims: identity, meet, bytes, and their text form both ways. */
#include "failing_alloc.h"

#include "graph/type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static cs_pool *pool;
static cutset_error err;

static int make_pool(void **state)
{
    (void)state;
    pool = cs_pool_new();
    return pool == NULL;
}

static int free_pool(void **state)
{
    (void)state;
    cs_pool_free(pool);
    return 0;
}

static cs_type type_of(const char *text)
{
    cs_type t = CS_NONE;
    if (cs_type_parse(pool, cs_span_of(text), &t, &err)) fail_msg("%s: %s", text, err.message);
    return t;
}

/* The text form of a type; good until the next call. */
static const char *text_of(cs_type t)
{
    static char text[4096];
    cs_chars chars = {0};
    assert_true(cs_type_print(pool, t, &chars));
    assert_true(chars.len < sizeof text);
    memcpy(text, chars.at, chars.len);
    text[chars.len] = 0;
    cs_vec_fini(&chars);
    return text;
}

static void elements(void **state)
{
    (void)state;
    int count = 0;
#define CHECK(name, code, text, bits)                                                              \
    assert_int_equal(CS_##name, code);                                                             \
    assert_string_equal(cs_elem_name(CS_##name), #text);                                           \
    assert_int_equal(cs_elem_parse(CS_SPAN(#text)), code);                                         \
    assert_int_equal(cs_elem_bits(CS_##name), bits);                                               \
    count++;
    CS_ELEMS(CHECK)
    assert_int_equal(count, CS_ELEM_COUNT - 1);
    assert_string_equal(cs_elem_name(CS_ELEM_NONE), "?");
    assert_string_equal(cs_elem_name((cs_elem)99), "?");
    assert_int_equal(cs_elem_bits((cs_elem)99), 0);
    assert_int_equal(cs_elem_parse(CS_SPAN("f33")), CS_ELEM_NONE);
    assert_int_equal(cs_elem_parse(CS_SPAN("f3")), CS_ELEM_NONE);
    assert_int_equal(cs_elem_parse(CS_SPAN("")), CS_ELEM_NONE);
}

static void equal_types_have_equal_ids(void **state)
{
    (void)state;
    const cs_dim dims[3] = {1, CS_DIM_UNKNOWN, 3};
    const cs_dim unknown[3] = {CS_DIM_UNKNOWN, CS_DIM_UNKNOWN, CS_DIM_UNKNOWN};
    cs_type a = cs_type_tensor(pool, CS_F32, 3, dims);
    assert_int_equal(a, cs_type_tensor(pool, CS_F32, 3, dims));
    assert_int_equal(a, type_of("f32[1,?,3]"));
    assert_int_not_equal(a, cs_type_tensor(pool, CS_F16, 3, dims));
    assert_int_not_equal(a, cs_type_sparse(pool, CS_F32, 3, dims));
    assert_int_not_equal(a, cs_type_tensor(pool, CS_F32, 2, dims));
    assert_int_equal(cs_type_tensor(pool, CS_F32, 3, NULL),
                     cs_type_tensor(pool, CS_F32, 3, unknown));
    assert_int_not_equal(type_of("f32"), type_of("f32[]"));
    assert_int_not_equal(type_of("seq(f32)"), type_of("opt(f32)"));
    assert_int_equal(type_of("?"), 0);
    assert_int_equal(cs_type_get(pool, 0)->kind, CS_UNKNOWN);
    /* A rank that cannot be is an unknown one. */
    assert_int_equal(cs_type_tensor(pool, CS_F32, CS_RANK_MAX + 1, NULL), type_of("f32"));
    assert_int_equal(cs_type_tensor(pool, CS_F32, -7, NULL), type_of("f32"));
}

/* Dims given as a pointer into the pool survive that its array moves. */
static void dims_inside_the_pool(void **state)
{
    (void)state;
    cs_dim dims[64];
    for (int i = 0; i < 64; i++)
        dims[i] = 1000 + i;
    cs_type a = cs_type_tensor(pool, CS_F32, 64, dims);
    for (int rank = 63; rank > 0; rank--) {
        cs_type b = cs_type_tensor(pool, CS_I8, rank, cs_type_dims(pool, a) + 64 - rank);
        for (int i = 0; i < rank; i++)
            assert_int_equal(cs_type_dims(pool, b)[i], 1000 + 64 - rank + i);
    }
}

static void many_types(void **state)
{
    (void)state;
    cs_type ids[20000];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 20000; i++) {
            cs_dim dims[2] = {i, i / 7};
            cs_type t = cs_type_tensor(pool, CS_F32, 2, dims);
            if (round == 0)
                ids[i] = t;
            else
                assert_int_equal(t, ids[i]);
        }
    assert_int_equal(pool->types.len, 20001);
}

static void text_both_ways(void **state)
{
    (void)state;
    static const char *const same[] = {
        "?",
        "f32",
        "f32[]",
        "bool[?]",
        "i64[0]",
        "f8e4m3fnuz[1,2,3]",
        "str[9223372036854775807]",
        "f32[N]",
        "f32[\"my dim\",\"\\\"\\\\\\x0a\",_x]",
        "f32[\"\"]",
        "f32[2*N+1,N-1,N/2,N*2/3]",
        "f32[floor(N/2),ceil((N+1)/2),min(N,M,3),max(N,1)]",
        "f32[(N+1)*2,N-(M-1),N/(2*M),2*(N*3),N+(M+1)]",
        "f32[N+5/2,5/2*N,N*(5/2)]",
        "f32[min,floor*2,max/ceil]",
        "seq(f32[1])",
        "opt(seq(map(str,f32[N])))",
        "map(i64,?)",
        "seq(?)",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_string_equal(text_of(type_of(same[i])), same[i]);
    static const char *const other[][2] = {
        {"  f32 [ 1 , N , ? ] ", "f32[1,N,?]"},
        {"opt ( seq( f16 ) )", "opt(seq(f16))"},
        {"map( str , i64[ ] )", "map(str,i64[])"},
        {"f32[2 * N + 1]", "f32[2*N+1]"},
        {"f32[1+2*3]", "f32[7]"},
        {"f32[(1+2)*3]", "f32[9]"},
        {"f32[10-2-3]", "f32[5]"},
        {"f32[12/2/3]", "f32[2]"},
        {"f32[N+1+2]", "f32[N+1+2]"},
        {"f32[1+2+N]", "f32[3+N]"},
        {"f32[N+(1+2)]", "f32[N+3]"},
        {"f32[N*(1-2)]", "f32[N*(-1)]"},
        {"f32[(1-2)*N]", "f32[-1*N]"},
        {"f32[N--1]", "f32[N-(-1)]"},
        {"f32[((N))]", "f32[N]"},
        {"f32[(N*2)+1]", "f32[N*2+1]"},
        {"f32[(N+M)+1]", "f32[N+M+1]"},
        {"f32[\"N\"]", "f32[N]"},
        {"f32[\"\\x4e\"]", "f32[N]"},
        {"f32[\"N M\"*2]", "f32[\"N M\"*2]"},
        {"f32[\"2*N\"]", "f32[\"2*N\"]"},
        {"f32[\"7\"]", "f32[\"7\"]"},
        {"f32[floor(7/2),ceil(7/2),floor(0-7/2)+9,ceil(-7/2)+9]", "f32[3,4,5,6]"},
        {"f32[min(3,1,2),max(3,1,2),min(1/2,1/3)*6,max(-1,0)]", "f32[1,3,2,0]"},
        {"f32[floor(5/2*2),floor(3)]", "f32[5,3]"},
        {"f32[min(N)]", "f32[min(N)]"},
        {"f32[min(1,2,N)]", "f32[min(1,2,N)]"},
        {"f32[007]", "f32[7]"},
        {"f32[9223372036854775806+1]", "f32[9223372036854775807]"},
        {"f32[\"\xc3\xa9\xff\"]", "f32[\"\xc3\xa9\\xff\"]"},
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        assert_string_equal(text_of(type_of(other[i][0])), other[i][1]);
        assert_int_equal(type_of(other[i][0]), type_of(other[i][1])); /* canonical is a fixpoint */
    }
}

static void text_faults(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int offset;
    } bad[] = {
        {"", "type '': the line ends too early: write a type such as f32[1,3], seq(f32) or ?", 0},
        {"f33", "type 'f33': 'f33' is no element type: write f32, f16, i64, bool, ...", 0},
        {"f32[",
         "type 'f32[': the line ends too early: write a dim: a number, a symbol, an "
         "expression or ?",
         4},
        {"f32[1", "type 'f32[1': the line ends too early: write ',' and a dim, or ']'", 5},
        {"f32[1;2]", "type 'f32[1;2]': ';' is not expected here: write ',' and a dim, or ']'", 5},
        {"f32[1] x", "type 'f32[1] x': 'x' is not expected here: write nothing more", 7},
        {"f32[-1]", "type 'f32[-1]': the dim -1 is negative: write 0 or more, or ?", 4},
        {"f32[5/2]", "type 'f32[5/2]': the dim 5/2 is no whole number: round it with floor()", 4},
        {"f32[N/0]", "type 'f32[N/0]': a division by zero in a dim: divide by another number", 5},
        {"f32[1/0]", "type 'f32[1/0]': a division by zero in a dim: divide by another number", 5},
        {"f32[9223372036854775808]",
         "type 'f32[9223372036854775808]': a number over 64 bits in a "
         "dim: use smaller numbers",
         4},
        {"f32[4611686018427387904*2]",
         "type 'f32[4611686018427387904*2]': a number over 64 bits "
         "in a dim: use smaller numbers",
         23},
        {"f32[3N]",
         "type 'f32[3N]': '3N' is neither a number nor a symbol: write digits, or "
         "start with a letter",
         4},
        {"f32[\"a]", "type 'f32[\"a]': a string without its end: write '\"' on the same line", 4},
        {"f32[\"\\q\"]",
         "type 'f32[\"\\q\"]': unknown escape in a string: write \\\\, \\\" or \\xNN", 5},
        {"f32[(N]", "type 'f32[(N]': ']' is not expected here: write ')'", 6},
        {"f32[floor(N,2)]", "type 'f32[floor(N,2)]': ',' is not expected here: write ')'", 11},
        {"f32[max(N;2)]", "type 'f32[max(N;2)]': ';' is not expected here: write ',' or ')'", 9},
        {"seq f32", "type 'seq f32': 'f32' is not expected here: write '(' and a type", 4},
        {"seq(f32", "type 'seq(f32': the line ends too early: write ')'", 7},
        {"map(f32)",
         "type 'map(f32)': ')' is not expected here: write ',' and the type of the "
         "values",
         7},
        {"map(seq,f32)",
         "type 'map(seq,f32)': 'seq' is not expected here: write the element type "
         "of the keys, such as i64 or str",
         4},
        {"?[1]", "type '?[1]': '[' is not expected here: write nothing more", 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cs_type t = 77;
        err.message[0] = 0;
        assert_int_equal(cs_type_parse(pool, cs_span_of(bad[i].text), &t, &err), CUTSET_BAD);
        assert_string_equal(err.message, bad[i].message);
        assert_int_equal(err.offset, bad[i].offset);
        assert_int_equal(t, 77);
    }
}

/* `n` times `open`, `inside`, `n` times `close`. */
static cs_span nested(char *buffer, int n, const char *open, const char *inside, const char *close)
{
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += (size_t)sprintf(buffer + len, "%s", open);
    len += (size_t)sprintf(buffer + len, "%s", inside);
    for (int i = 0; i < n; i++)
        len += (size_t)sprintf(buffer + len, "%s", close);
    return (cs_span){buffer, len};
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    static char buffer[3000000];
    cs_type t;
    cs_dim d;
    assert_int_equal(cs_type_parse(pool, nested(buffer, 100, "seq(", "f32", ")"), &t, &err), 0);
    assert_false(cs_type_is_ranked(pool, t));
    assert_int_equal(cs_type_parse(pool, nested(buffer, 101, "seq(", "f32", ")"), &t, &err),
                     CUTSET_BAD);
    assert_non_null(strstr(err.message, "a type nested more than 100 deep: nest less"));
    assert_int_equal(cs_type_parse(pool, nested(buffer, 500000, "seq(", "f32", ")"), &t, &err),
                     CUTSET_BAD);
    assert_int_equal(cs_dim_parse(pool, nested(buffer, 99, "(", "N", ")"), &d, &err), 0);
    assert_int_equal(cs_dim_parse(pool, nested(buffer, 100, "(", "N", ")"), &d, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "a dim nested more than 100 deep: nest less"));
    assert_int_equal(cs_dim_parse(pool, nested(buffer, 500000, "min(", "N", ")"), &d, &err),
                     CUTSET_BAD);
    /* Length is not depth. */
    assert_int_equal(cs_dim_parse(pool, nested(buffer, 500000, "N+", "N", ""), &d, &err), 0);
    assert_int_equal(cs_name(pool, cs_dim_text(d)).len, 1000001);
    assert_int_equal(cs_type_parse(pool, nested(buffer, 1023, "1,", "1", ""), &t, &err),
                     CUTSET_BAD);
    buffer[0] = 0;
    strcat(buffer, "i8[");
    cs_span wide = nested(buffer + 3, 1023, "1,", "1]", "");
    wide = (cs_span){buffer, wide.len + 3};
    assert_int_equal(cs_type_parse(pool, wide, &t, &err), 0);
    assert_int_equal(cs_type_get(pool, t)->rank, 1024);
    wide = nested(buffer + 3, 1024, "1,", "1]", "");
    wide = (cs_span){buffer, wide.len + 3};
    assert_int_equal(cs_type_parse(pool, wide, &t, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "a shape of more than 1024 dims: give fewer"));
}

static void dims(void **state)
{
    (void)state;
    cs_dim d;
    assert_int_equal(cs_dim_parse(pool, CS_SPAN("?"), &d, &err), 0);
    assert_int_equal(d, CS_DIM_UNKNOWN);
    assert_false(cs_dim_is_expr(d));
    assert_int_equal(cs_dim_parse(pool, CS_SPAN(" 12 "), &d, &err), 0);
    assert_int_equal(d, 12);
    assert_int_equal(cs_dim_parse(pool, CS_SPAN("2*N + 1"), &d, &err), 0);
    assert_true(cs_dim_is_expr(d));
    assert_true(cs_span_is(cs_name(pool, cs_dim_text(d)), "2*N+1"));
    assert_int_equal(cs_dim_parse(pool, CS_SPAN("2*N,"), &d, &err), CUTSET_BAD);
    assert_string_equal(err.message, "dim '2*N,': ',' is not expected here: write nothing more");
    assert_int_equal(err.offset, 3);

    static const char *const params[][2] = {
        {"N", "N"},
        {"batch_size", "batch_size"},
        {"my dim", "\"my dim\""},
        {"2*N", "\"2*N\""},
        {"?", "\"?\""},
        {"7", "\"7\""},
        {"7a", "\"7a\""},
        {"\xff\n", "\"\\xff\\x0a\""},
        {"a.b", "\"a.b\""},
    };
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        assert_true(cs_dim_of_param(pool, cs_span_of(params[i][0]), &d));
        cs_span text = cs_name(pool, cs_dim_text(d));
        assert_true(cs_span_is(text, params[i][1]));
        cs_dim again;
        assert_int_equal(cs_dim_parse(pool, text, &again, &err), 0);
        assert_int_equal(again, d);
    }
    assert_true(cs_dim_of_param(pool, CS_SPAN(""), &d));
    assert_int_equal(d, CS_DIM_UNKNOWN);
}

static void symbols_become_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *dim, *symbol;
        int64_t value;
        const char *result;
    } good[] = {
        {"N", "N", 8, "8"},
        {"2*N+1", "N", 8, "17"},
        {"M", "N", 8, "M"},
        {"N+M", "N", 8, "8+M"},
        {"M*N-2", "N", 8, "M*8-2"},
        {"\"a b\"*2", "a b", 3, "6"},
        {"floor(N/2)", "N", 7, "3"},
        {"7", "N", 8, "7"},
        {"max(N,M)", "M", 4, "max(N,4)"},
        {"(N+M)*2", "N", 8, "(8+M)*2"},
        {"N/M", "M", 2, "N/2"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cs_dim d, result, expected;
        assert_int_equal(cs_dim_parse(pool, cs_span_of(good[i].dim), &d, &err), 0);
        assert_int_equal(cs_dim_parse(pool, cs_span_of(good[i].result), &expected, &err), 0);
        assert_int_equal(
            cs_dim_bind(pool, d, cs_span_of(good[i].symbol), good[i].value, &result, &err), 0);
        assert_int_equal(result, expected);
    }
    cs_dim d, result = 5;
    assert_int_equal(cs_dim_bind(pool, CS_DIM_UNKNOWN, CS_SPAN("N"), 1, &result, &err), 0);
    assert_int_equal(result, CS_DIM_UNKNOWN);
    cs_dim_parse(pool, CS_SPAN("N/2"), &d, &err);
    assert_int_equal(cs_dim_bind(pool, d, CS_SPAN("N"), 7, &result, &err), CUTSET_BAD);
    assert_string_equal(err.message, "dim 'N/2' with N = 7: the dim 7/2 is no whole number: round "
                                     "it with floor()");
    cs_dim_parse(pool, CS_SPAN("3/N"), &d, &err);
    assert_int_equal(cs_dim_bind(pool, d, CS_SPAN("N"), 0, &result, &err), CUTSET_BAD);
}

static void bytes(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int64_t bytes;
    } cases[] = {
        {"f32[]", 4},
        {"f32[64,3,7,7]", 37632},
        {"f32[0]", 0},
        {"i4[3]", 2},
        {"u2[5]", 2},
        {"f6e2m3[4]", 3},
        {"f6e2m3[5]", 4},
        {"i4[0]", 0},
        {"c128[2]", 32},
        {"f32", -1},
        {"f32[N]", -1},
        {"f32[?]", -1},
        {"f32[0,?]", -1},
        {"str[3]", -1},
        {"?", -1},
        {"seq(f32[1])", -1},
        {"i8[9223372036854775807]", INT64_MAX},
        {"f32[9223372036854775807]", INT64_MAX},
        {"i8[4294967296,4294967296,0]", 0},
        {"i4[9223372036854775807]", 4611686018427387904},
        {"f6e2m3[9223372036854775807]", 6917529027641081856},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(cs_type_bytes(pool, type_of(cases[i].type)), cases[i].bytes);
    cs_dim d[1] = {3};
    assert_int_equal(cs_type_bytes(pool, cs_type_sparse(pool, CS_F32, 1, d)), 12);
    assert_int_equal(cs_type_bytes(pool, cs_type_tensor(pool, CS_ELEM_NONE, 1, d)), -1);
}

static void ranked(void **state)
{
    (void)state;
    static const char *const yes[] = {"f32[]", "f32[?,N]", "seq(f32[1])", "opt(map(i64,f32[?]))"};
    static const char *const no[] = {"f32", "?", "seq(f32)", "map(i64,?)", "opt(?)"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(cs_type_is_ranked(pool, type_of(yes[i])));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(cs_type_is_ranked(pool, type_of(no[i])));
    assert_false(cs_type_is_ranked(pool, cs_type_opaque(pool)));
    assert_false(cs_type_is_ranked(pool, cs_type_tensor(pool, CS_ELEM_NONE, 2, NULL)));
}

static void meet(void **state)
{
    (void)state;
    static const char *const good[][3] = {
        {"?", "f32[1]", "f32[1]"},          {"f32[1]", "?", "f32[1]"},
        {"f32", "f32[1,N]", "f32[1,N]"},    {"f32[?,2]", "f32[1,?]", "f32[1,2]"},
        {"f32[N]", "f32[3]", "f32[3]"},     {"f32[3]", "f32[N]", "f32[3]"},
        {"f32[N]", "f32[M]", "f32[N]"},     {"f32[?]", "f32[M]", "f32[M]"},
        {"f32[N]", "f32[?]", "f32[N]"},     {"seq(f32[?])", "seq(f32[2])", "seq(f32[2])"},
        {"opt(?)", "opt(f32)", "opt(f32)"}, {"map(i64,?)", "map(i64,f32)", "map(i64,f32)"},
        {"f32[]", "f32[]", "f32[]"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cs_type t;
        assert_true(cs_type_meet(pool, type_of(good[i][0]), type_of(good[i][1]), &t));
        assert_string_equal(text_of(t), good[i][2]);
    }
    static const char *const bad[][2] = {
        {"f32[1]", "f16[1]"},         {"f32[1]", "f32[1,1]"},
        {"f32[1]", "f32[2]"},         {"f32[]", "seq(f32[])"},
        {"seq(f32)", "opt(f32)"},     {"seq(f32)", "seq(f16)"},
        {"map(i64,?)", "map(str,?)"}, {"opt(f32[1,?])", "opt(f32[2,?])"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cs_type a = type_of(bad[i][0]), t;
        assert_false(cs_type_meet(pool, a, type_of(bad[i][1]), &t));
        assert_int_equal(t, a);
    }
    cs_type t, none = cs_type_tensor(pool, CS_ELEM_NONE, 2, NULL);
    assert_true(cs_type_meet(pool, none, type_of("f32"), &t));
    assert_int_equal(t, type_of("f32[?,?]"));
    assert_true(cs_type_meet(pool, type_of("f32[3,?]"), none, &t));
    assert_int_equal(t, type_of("f32[3,?]"));
    cs_type sparse = cs_type_sparse(pool, CS_F32, 1, NULL);
    assert_false(cs_type_meet(pool, sparse, type_of("f32[1]"), &t));
    assert_string_equal(text_of(sparse), "?");
    assert_string_equal(text_of(none), "?");
    assert_string_equal(text_of(cs_type_opaque(pool)), "?");
    assert_string_equal(text_of(cs_type_seq(pool, cs_type_opaque(pool))), "seq(?)");
}

static void notes(void **state)
{
    (void)state;
    assert_true(cs_note(pool, "dropped %d of %s", 3, "a\nb"));
    assert_int_equal(pool->notes.len, 1);
    assert_string_equal(pool->notes.at[0], "dropped 3 of a\\x0ab");
}

/* Every call either does its work or says that memory is out, whichever allocation fails. */
static void without_memory(void **state)
{
    (void)state;
    static const char *const texts[] = {"f32[1,N,2*N+1,\"a b\",floor(N/2),(N+1)*2]",
                                        "seq(opt(map(str,f32[\"\\x41 \",?])))"};
    for (size_t i = 0; i < 2; i++) {
        for (long n = 0;; n++) {
            long live = alloc_live();
            alloc_fail_at(n);
            cs_pool *p = cs_pool_new();
            cutset_status status = CUTSET_SYSTEM;
            cs_type t = 0, u = 0;
            cs_chars chars = {0};
            if (p) {
                status = cs_type_parse(p, cs_span_of(texts[i]), &t, &err);
                if (status)
                    assert_string_equal(err.message, "out of memory");
                else if (!cs_type_print(p, t, &chars) || !cs_note(p, "x") ||
                         (cs_type_meet(p, t, cs_type_opt(p, t), &u) && u == CS_NONE))
                    status = CUTSET_SYSTEM;
            }
            bool failed = alloc_failed();
            alloc_fail_at(-1);
            if (!failed) assert_int_equal(status, CUTSET_OK);
            cs_vec_fini(&chars);
            cs_pool_free(p);
            assert_int_equal(alloc_live(), live);
            if (!failed) break;
        }
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_pool, free_pool)
    const struct CMUnitTest tests[] = {
        TEST(elements),
        TEST(equal_types_have_equal_ids),
        TEST(dims_inside_the_pool),
        TEST(many_types),
        TEST(text_both_ways),
        TEST(text_faults),
        TEST(nesting_is_bounded),
        TEST(dims),
        TEST(symbols_become_numbers),
        TEST(bytes),
        TEST(ranked),
        TEST(meet),
        TEST(notes),
        TEST(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
