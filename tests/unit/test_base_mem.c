/* Memory: overflow, zero sizes, vectors and arenas, each with every allocation failing in turn. */
#include "failing_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/text.h"

static void zero_and_huge_sizes(void **state)
{
    (void)state;
    void *p = cs_alloc(0, 8), *q = cs_zalloc(8, 0), *r = cs_realloc(NULL, 0, 0);
    assert_non_null(p);
    assert_non_null(q);
    assert_non_null(r);
    r = cs_realloc(r, 0, 4);
    assert_non_null(r);
    cs_free(p);
    cs_free(q);
    cs_free(r);
    cs_free(NULL);
    assert_null(cs_alloc(SIZE_MAX, 2));
    assert_null(cs_alloc(SIZE_MAX / 2 + 1, 1));
    assert_null(cs_zalloc((size_t)1 << 32, (size_t)1 << 32));
    assert_null(cs_realloc(NULL, SIZE_MAX / 8 + 2, 8));
    cs_arena arena = {0};
    assert_null(cs_arena_alloc(&arena, SIZE_MAX / 2, 3));
    assert_null(cs_arena_alloc(&arena, PTRDIFF_MAX, 1));
    assert_null(cs_arena_dup(&arena, "x", PTRDIFF_MAX));
    assert_null(arena.block);
    assert_int_equal(alloc_live(), 0);
}

static void zalloc_is_zero(void **state)
{
    (void)state;
    unsigned char *p = cs_zalloc(1000, 3);
    for (size_t i = 0; i < 3000; i++)
        assert_int_equal(p[i], 0);
    cs_free(p);
}

static void vector_grows(void **state)
{
    (void)state;
    CS_VEC(uint64_t) v = {0};
    size_t grows = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        const size_t cap = v.cap;
        assert_true(cs_vec_push(&v, i * 3));
        if (v.cap == cap) continue;
        grows++;
        assert_true(v.cap >= 8);
        assert_true(cap == 0 || (2 * v.cap >= 3 * cap - 1 && v.cap <= 2 * cap));
    }
    assert_true(grows < 30);
    for (uint64_t i = 0; i < v.len; i++)
        assert_int_equal(v.at[i], i * 3);
    assert_int_equal(v.len, 100000);
    cs_vec_fini(&v);
    assert_null(v.at);
    assert_int_equal(v.len + v.cap, 0);
    assert_int_equal(alloc_live(), 0);
}

static void vector_fails_unchanged(void **state)
{
    (void)state;
    CS_VEC(uint32_t) v = {0};
    assert_false(cs_vec_room(&v, SIZE_MAX));
    assert_false(cs_vec_room(&v, SIZE_MAX / 4));
    assert_null(v.at);
    assert_int_equal(v.cap, 0);
    assert_true(cs_vec_push(&v, 9));
    assert_false(cs_vec_room(&v, SIZE_MAX));
    alloc_fail_at(0);
    while (v.len < v.cap)
        assert_true(cs_vec_push(&v, 1)); /* reserved: cannot fail */
    const size_t cap = v.cap;
    uint32_t *at = v.at;
    assert_false(cs_vec_push(&v, 2));
    assert_true(alloc_failed());
    alloc_fail_at(-1);
    assert_ptr_equal(v.at, at);
    assert_int_equal(v.len, cap);
    assert_int_equal(v.cap, cap);
    assert_int_equal(v.at[0], 9);
    cs_vec_fini(&v);
}

static void arena_pieces(void **state)
{
    (void)state;
    cs_arena arena = {0};
    CS_VEC(unsigned char *) pieces = {0};
    size_t sizes[600];
    for (size_t i = 0; i < 600; i++) {
        sizes[i] = i % 97 == 96 ? 100000 : i;
        unsigned char *p = cs_arena_alloc(&arena, sizes[i], 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, (int)(i & 255), sizes[i]);
        assert_true(cs_vec_push(&pieces, p));
    }
    for (size_t i = 0; i < 600; i++) /* none was overwritten by a later one */
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces.at[i][k], i & 255);
    unsigned char *zero = cs_arena_zalloc(&arena, 50000, 2);
    for (size_t k = 0; k < 100000; k++)
        assert_int_equal(zero[k], 0);
    cs_vec_fini(&pieces);
    cs_arena_fini(&arena);
    assert_null(arena.block);
    assert_int_equal(alloc_live(), 0);
}

/* Copies are packed, and yet aligned for whatever they hold. */
static void arena_dup(void **state)
{
    (void)state;
    cs_arena arena = {0};
    for (size_t len = 0; len < 300; len++) {
        char bytes[300];
        memset(bytes, (int)len, sizeof bytes);
        const char *p = cs_arena_dup(&arena, bytes, len);
        assert_memory_equal(p, bytes, len);
        assert_int_equal(p[len], 0);
        for (size_t align = 1; align <= 16; align *= 2)
            if (len > 0 && len % align == 0) assert_int_equal((uintptr_t)p % align, 0);
    }
    assert_non_null(cs_arena_dup(&arena, NULL, 0));
    cs_arena_fini(&arena);
    char *first = cs_arena_dup(&arena, "abc", 3), *second = cs_arena_dup(&arena, "defgh", 5);
    assert_int_equal(second - first, 4);
    cs_arena_fini(&arena);
}

static void arena_marks(void **state)
{
    (void)state;
    cs_arena arena = {0};
    const cs_arena_mark empty = cs_arena_note(&arena);
    char *kept = cs_arena_dup(&arena, "kept", 4);
    const long before = alloc_live();
    const cs_arena_mark mark = cs_arena_note(&arena);
    char *first = cs_arena_alloc(&arena, 10, 1);
    for (int i = 0; i < 100; i++)
        assert_non_null(cs_arena_alloc(&arena, 1000, 100));
    assert_true(alloc_live() > before);
    cs_arena_release(&arena, mark);
    assert_int_equal(alloc_live(), before);
    assert_ptr_equal(cs_arena_alloc(&arena, 10, 1), first); /* the room is used again */
    assert_string_equal(kept, "kept");
    cs_arena_release(&arena, empty);
    assert_null(arena.block);
    assert_int_equal(alloc_live(), 0);
}

static void arena_fails_unchanged(void **state)
{
    (void)state;
    cs_arena arena = {0};
    alloc_fail_at(0);
    assert_null(cs_arena_alloc(&arena, 1, 1));
    assert_null(arena.block);
    alloc_fail_at(-1);
    char *p = cs_arena_dup(&arena, "x", 1);
    struct cs_arena_block *block = arena.block;
    alloc_fail_at(0);
    assert_null(cs_arena_alloc(&arena, 100000, 1));
    assert_ptr_equal(arena.block, block);
    assert_non_null(cs_arena_alloc(&arena, 16, 1)); /* what is left still serves */
    alloc_fail_at(-1);
    assert_string_equal(p, "x");
    cs_arena_fini(&arena);
    assert_int_equal(alloc_live(), 0);
}

/* ---- what is built on it, with call n failing for every n ---- */

static bool fill_names(cs_strtab *tab)
{
    for (uint32_t i = 0; i < 500; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "name-%u", i);
        if (cs_strtab_add(tab, (cs_span){name, (size_t)len}, false) == CS_NONE) return false;
    }
    return true;
}

/* After a failure the table still holds exactly what was added, and can go on. */
static void strtab_survives(void **state)
{
    (void)state;
    long failures = 0;
    for (long n = 0;; n++) {
        cs_strtab tab;
        alloc_fail_at(n);
        const bool ok = cs_strtab_init(&tab);
        const bool full = ok && fill_names(&tab);
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(failed, !full);
        failures += failed;
        if (ok) {
            for (uint32_t id = 0; id < tab.text.len; id++)
                assert_int_equal(cs_strtab_find(&tab, cs_strtab_get(&tab, id)), id);
            assert_true(fill_names(&tab));
            assert_int_equal(tab.text.len, 501);
        }
        cs_strtab_fini(&tab);
        assert_int_equal(alloc_live(), 0);
        if (!failed) break;
    }
    assert_true(failures > 8);
}

static void map_survives(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        cs_map map = {0};
        alloc_fail_at(n);
        uint32_t i = 0;
        while (i < 3000 && cs_map_put(&map, i * UINT64_C(0x100000001), i))
            i++;
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(failed, i < 3000);
        assert_int_equal(map.len, i);
        for (uint32_t k = 0; k < 3000; k++)
            assert_int_equal(cs_map_get(&map, k * UINT64_C(0x100000001)), k < i ? k : CS_NONE);
        cs_map_fini(&map);
        assert_int_equal(alloc_live(), 0);
        if (!failed) break;
    }
    alloc_fail_at(0);
    assert_null(cs_hasher_new());
    alloc_fail_at(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_and_huge_sizes), cmocka_unit_test(zalloc_is_zero),
        cmocka_unit_test(vector_grows),        cmocka_unit_test(vector_fails_unchanged),
        cmocka_unit_test(arena_pieces),        cmocka_unit_test(arena_dup),
        cmocka_unit_test(arena_marks),         cmocka_unit_test(arena_fails_unchanged),
        cmocka_unit_test(strtab_survives),     cmocka_unit_test(map_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
