#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/heap.h"
#include "random.h"

enum { N = 200 };

/* What must come out next of the ids that are in, by looking at all of them. */
static uint32_t first_of(const cs_heap *h, const uint64_t *in)
{
    uint32_t best = N;
    for (uint32_t id = 0; id < N; id++) {
        if (!cs_bits_has(in, id)) continue;
        const uint64_t key = h->key ? h->key[id] : 0, least = best < N && h->key ? h->key[best] : 0;
        if (best == N || key < least || (key == least && h->largest_id)) best = id;
    }
    return best;
}

/* Pushes and pops at random, with few different keys, against the naive choice. */
static void test_order(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t key[N], in[4] = {0};
        seed = round;
        uint32_t room[N];
        for (uint32_t id = 0; id < N; id++)
            key[id] = below(10);
        cs_heap h = {.at = room, .key = round % 4 < 2 ? key : NULL, .largest_id = round % 2};
        for (int step = 0; step < 600; step++) {
            const uint32_t id = below(N);
            if (h.len == 0 || (below(2) && !cs_bits_has(in, id))) {
                if (cs_bits_has(in, id)) continue;
                cs_bits_set(in, id);
                cs_heap_push(&h, id);
            } else {
                const uint32_t want = first_of(&h, in);
                assert_int_equal(cs_heap_pop(&h), want);
                in[want / 64] &= ~((uint64_t)1 << want % 64);
            }
        }
    }
}

static void test_bits(void **state)
{
    (void)state;
    uint64_t a[2] = {0}, b[2] = {0};
    cs_bits_set(a, 0), cs_bits_set(a, 63), cs_bits_set(b, 64), cs_bits_set(b, 127);
    cs_bits_join(a, b, cs_bits_words(128));
    for (uint32_t i = 0; i < 128; i++)
        assert_int_equal(cs_bits_has(a, i), i == 0 || i == 63 || i == 64 || i == 127);
    assert_int_equal(cs_bits_words(0), 0);
    assert_int_equal(cs_bits_words(65), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
