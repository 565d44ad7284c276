/* The map against a plain array, and hashes against known values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

#define SPLITMIX
#include "random.h"

static void map_empty(void **state)
{
    (void)state;
    cs_map map = {0};
    assert_int_equal(cs_map_get(&map, 0), CS_NONE);
    cs_map_fini(&map);
    assert_true(cs_map_put(&map, 0, 0));
    assert_true(cs_map_put(&map, UINT64_MAX, UINT32_MAX - 1));
    assert_int_equal(cs_map_get(&map, 0), 0);
    assert_int_equal(cs_map_get(&map, UINT64_MAX), UINT32_MAX - 1);
    assert_int_equal(cs_map_get(&map, 1), CS_NONE);
    assert_int_equal(map.len, 2);
    cs_map_fini(&map);
    assert_int_equal(cs_map_get(&map, 0), CS_NONE);
}

/* Random puts over few keys of awkward shapes, checked against an array. */
static void map_against_array(void **state)
{
    (void)state;
    enum { KEYS = 5000 };
    for (unsigned shape = 0; shape < 4; shape++) {
        const unsigned shift[] = {0, 20, 32, 51};
        cs_map map = {0};
        static uint32_t want[KEYS];
        memset(want, 0xff, sizeof want);
        seed = shape;
        size_t len = 0;
        for (int i = 0; i < 20000; i++) {
            const uint64_t k = random_bits() % KEYS;
            const uint32_t value = (uint32_t)(random_bits() % 1000);
            len += want[k] == CS_NONE;
            want[k] = value;
            assert_true(cs_map_put(&map, k << shift[shape], value));
            assert_int_equal(map.len, len);
        }
        for (uint64_t k = 0; k < KEYS; k++)
            assert_int_equal(cs_map_get(&map, k << shift[shape]), want[k]);
        assert_true(map.len * 8 <= map.slots * 5);
        cs_map_fini(&map);
    }
}

static void map_reserves(void **state)
{
    (void)state;
    cs_map map = {0};
    assert_true(cs_map_room(&map, 1000));
    const uint64_t *keys = map.key;
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(cs_map_put(&map, i, i));
    assert_ptr_equal(map.key, keys);
    assert_false(cs_map_room(&map, SIZE_MAX));
    assert_false(cs_map_room(&map, SIZE_MAX / 2));
    assert_int_equal(cs_map_get(&map, 999), 999);
    cs_map_fini(&map);
}

/* Values from the reference implementation's documentation and tools: they stand in files, so they
 * must never change. */
static void hash_is_xxh3(void **state)
{
    (void)state;
    assert_true(cs_hash(NULL, 0) == UINT64_C(0x2d06800538d394c2));
    assert_true(cs_hash("", 0) == UINT64_C(0x2d06800538d394c2));
    assert_true(cs_hash("abc", 3) == UINT64_C(0x78af5f94892f3950));
    assert_true(cs_hash("abc", 3) != cs_hash("abd", 3));
}

static void streaming_is_the_same(void **state)
{
    (void)state;
    static unsigned char bytes[3000];
    seed = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)random_bits();
    for (size_t len = 0; len <= sizeof bytes; len += 1 + len / 7) {
        cs_hasher *h = cs_hasher_new();
        assert_non_null(h);
        assert_int_equal((uintptr_t)h % 64, 0);
        for (size_t at = 0; at < len;) {
            size_t n = random_bits() % 300;
            if (n > len - at) n = len - at;
            cs_hasher_add(h, bytes + at, n);
            at += n;
        }
        cs_hasher_add(h, NULL, 0);
        assert_true(cs_hasher_done(h) == cs_hash(bytes, len));
    }
}

static uint64_t hash_list(cs_span a, cs_span b)
{
    cs_hasher *h = cs_hasher_new();
    cs_hasher_add_span(h, a);
    cs_hasher_add_span(h, b);
    return cs_hasher_done(h);
}

static void lists_do_not_collide(void **state)
{
    (void)state;
    assert_true(hash_list(CS_SPAN("ab"), CS_SPAN("c")) != hash_list(CS_SPAN("a"), CS_SPAN("bc")));
    assert_true(hash_list(CS_SPAN(""), CS_SPAN("x")) != hash_list(CS_SPAN("x"), CS_SPAN("")));
    cs_hasher *h = cs_hasher_new();
    cs_hasher_add_u64(h, UINT64_C(0x0807060504030201));
    assert_true(cs_hasher_done(h) == cs_hash("\1\2\3\4\5\6\7\10", 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_empty),
        cmocka_unit_test(map_against_array),
        cmocka_unit_test(map_reserves),
        cmocka_unit_test(hash_is_xxh3),
        cmocka_unit_test(streaming_is_the_same),
        cmocka_unit_test(lists_do_not_collide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
