/* The protobuf cursor: every wire type, packed and unpacked numbers, and everything broken. */
#include "onnx_bytes.h"

#include "onnx/wire.h"

static cs_wire wire(pb b, uint64_t base)
{
    return cs_wire_of((cs_span){(const char *)b.at, b.len}, base);
}

static void test_all_types(void **state)
{
    (void)state;
    pb b = {0};
    pb_int(&b, 1, 300);
    pb_number(&b, 2 << 3 | 1);
    pb_raw(&b, "\1\2\3\4\5\6\7\x88", 8);
    pb_str(&b, 3, "abc");
    pb_f32(&b, 16, 1.0f);
    pb_int(&b, 5, -1);
    cs_wire w = wire(b, 100);
    assert_true(cs_wire_next(&w));
    assert_int_equal(w.field, 1);
    assert_true(cs_wire_expect(&w, CS_WIRE_VARINT) && w.number == 300);
    assert_int_equal(w.raw.len, 3);
    assert_true(cs_wire_next(&w));
    assert_true(w.field == 2 && w.type == CS_WIRE_F64 && w.number == UINT64_C(0x8807060504030201));
    assert_true(cs_wire_next(&w));
    assert_true(w.field == 3 && w.type == CS_WIRE_BYTES && cs_span_is(w.bytes, "abc"));
    assert_int_equal(cs_wire_payload(&w), 100 + 3 + 9 + 2);
    assert_true(cs_wire_next(&w));
    assert_true(w.field == 16 && w.type == CS_WIRE_F32 && w.number == 0x3f800000);
    assert_true(cs_wire_next(&w));
    assert_true(w.number == UINT64_MAX);
    assert_int_equal(w.raw.len, 11);
    assert_false(cs_wire_next(&w));
    assert_null(w.bad);
    free(b.at);
}

static void test_empty(void **state)
{
    (void)state;
    cs_wire w = cs_wire_of((cs_span){NULL, 0}, 0);
    assert_false(cs_wire_next(&w));
    assert_null(w.bad);
}

static void test_numbers_packed_and_not(void **state)
{
    (void)state;
    pb b = {0};
    pb_int(&b, 8, 1);
    pb_bytes(&b, 8, "\2\x80\1\3", 4);
    pb_bytes(&b, 8, "", 0);
    pb_int(&b, 8, 4);
    static const uint64_t expected[] = {1, 2, 128, 3, 4};
    size_t n = 0;
    uint64_t x;
    cs_wire w = wire(b, 0), items;
    while (cs_wire_next(&w)) {
        assert_true(cs_wire_each(&w, &items, CS_WIRE_VARINT));
        while (cs_wire_item(&items, &x))
            assert_true(n < 5 && x == expected[n++]);
        assert_null(items.bad);
    }
    assert_int_equal(n, 5);
    free(b.at);
}

#define CURE ": copy or export the file again"

static void expect_bad(const char *bytes, size_t len, const char *message)
{
    cutset_error err = {0};
    cs_wire w = cs_wire_of((cs_span){bytes, len}, 1000);
    while (cs_wire_next(&w)) {
    }
    assert_non_null(w.bad);
    assert_false(cs_wire_next(&w));
    assert_int_equal(cs_wire_error(&w, "NodeProto", &err), CUTSET_BAD);
    assert_string_equal(err.message, message);
    assert_true(err.offset >= 1000 && err.offset < 1000 + (int64_t)len);
    assert_int_equal(cs_wire_error(&w, "NodeProto", NULL), CUTSET_BAD);
}
#define BAD(bytes, message) expect_bad((bytes), sizeof(bytes) - 1, message CURE)

static void test_broken(void **state)
{
    (void)state;
    BAD("\x2a\x63xyz",
        "offset 1000: NodeProto.attribute: length 99 runs past the end (file truncated?)");
    BAD("\x0a\1x\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",
        "offset 1003: NodeProto.attribute: length 18446744073709551615 runs past the end (file "
        "truncated?)");
    BAD("\x80", "offset 1000: NodeProto: the bytes end inside it (file truncated?)");
    BAD("\x08\xff", "offset 1000: NodeProto.input: the bytes end inside it (file truncated?)");
    BAD("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",
        "offset 1000: NodeProto.input: a varint of more than 64 bits");
    BAD("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\2",
        "offset 1000: NodeProto.input: a varint of more than 64 bits");
    BAD("\x99\1\1\2\3",
        "offset 1000: NodeProto.field 19: the bytes end inside it (file truncated?)");
    BAD("\x9d\1\1\2\3",
        "offset 1000: NodeProto.field 19: the bytes end inside it (file truncated?)");
    BAD("\0\1", "offset 1000: NodeProto: no such field number: 0");
    BAD("\x80\x80\x80\x80\x20\1",
        "offset 1000: NodeProto.field 1073741824: no such field number: 1073741824");
    BAD("\x0e", "offset 1000: NodeProto.input: no such wire type: 6");
    BAD("\x0f", "offset 1000: NodeProto.input: no such wire type: 7");
    BAD("\x0c", "offset 1000: NodeProto.input: no such wire type: 4");
}

static void test_wrong_type(void **state)
{
    (void)state;
    cutset_error err = {0};
    cs_wire w = cs_wire_of(CS_SPAN("\x08\1\x10\1"), 0), items;
    assert_true(cs_wire_next(&w));
    assert_false(cs_wire_expect(&w, CS_WIRE_BYTES));
    assert_false(cs_wire_next(&w));
    cs_wire_error(&w, "GraphProto", &err);
    assert_string_equal(err.message,
                        "offset 0: GraphProto.node: wire type 0 where 2 is expected" CURE);
    w = cs_wire_of(CS_SPAN("\x3d\1\2\3\4"), 0);
    assert_true(cs_wire_next(&w));
    assert_false(cs_wire_each(&w, &items, CS_WIRE_VARINT));
    assert_non_null(w.bad);
}

static void test_broken_packed(void **state)
{
    (void)state;
    cutset_error err = {0};
    uint64_t x;
    cs_wire w = cs_wire_of(CS_SPAN("\x3a\5\0\0\0\0\0"), 50), items;
    assert_true(cs_wire_next(&w) && cs_wire_each(&w, &items, CS_WIRE_F32));
    assert_true(cs_wire_item(&items, &x));
    assert_false(cs_wire_item(&items, &x));
    cs_wire_error(&items, "AttributeProto", &err);
    assert_string_equal(err.message, "offset 56: AttributeProto.floats: packed numbers that do not "
                                     "fill their length" CURE);
    w = cs_wire_of(CS_SPAN("\x42\1\x80"), 0);
    assert_true(cs_wire_next(&w) && cs_wire_each(&w, &items, CS_WIRE_VARINT));
    assert_false(cs_wire_item(&items, &x));
    assert_non_null(items.bad);
}

static void test_groups(void **state)
{
    (void)state;
    cs_wire w = cs_wire_of(CS_SPAN("\x0b\x10\1\x1b\x1c\x0c\x10\7"), 0);
    assert_true(cs_wire_next(&w));
    assert_true(w.field == 1 && w.raw.len == 6);
    assert_false(w.type == CS_WIRE_BYTES);
    assert_true(cs_wire_next(&w));
    assert_true(w.field == 2 && w.number == 7);
    assert_false(cs_wire_next(&w));
    assert_null(w.bad);
    BAD("\x0b\x10\1",
        "offset 1000: NodeProto.input: a group that is not closed, or nested too deep");
    char deep[1000];
    memset(deep, 0x0b, sizeof deep);
    w = cs_wire_of((cs_span){deep, sizeof deep}, 0);
    assert_false(cs_wire_next(&w));
    assert_non_null(w.bad);
}

/* Every prefix and every changed byte of a small message ends, without reading past the end. */
static void test_damage(void **state)
{
    (void)state;
    pb n = with_attr(node("Conv", "x,w", "y"), attr_int("group", -3));
    for (size_t len = 0; len <= n.len; len++) {
        char *copy = malloc(len + 1); /* len + 1: never of size 0 */
        assert_non_null(copy);
        memcpy(copy, n.at, len);
        for (size_t i = 0; i < len; i++) {
            for (int bit = 0; bit < 8; bit++) {
                copy[i] = (char)(copy[i] ^ 1 << bit);
                cs_wire w = cs_wire_of((cs_span){copy, len}, 0);
                size_t steps = 0;
                while (cs_wire_next(&w))
                    assert_true(++steps <= len);
                copy[i] = (char)(copy[i] ^ 1 << bit);
            }
        }
        free(copy);
    }
    free(n.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_numbers_packed_and_not),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_wrong_type),
        cmocka_unit_test(test_broken_packed),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
