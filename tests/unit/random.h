/* Seeded random numbers for tests, alike on every machine.
 *
 * Knuth's generator of MMIX, whose high bits are the good ones (TAOCP 2, 3.3.4); where SPLITMIX is
 * defined before, splitmix64 (Steele, Lea, Flood 2014). Each file keeps the one it began with:
 * what its counts say holds for those numbers.
 */
#ifndef CS_TESTS_RANDOM_H
#define CS_TESTS_RANDOM_H

#include <stdint.h>
#include <stdlib.h>

static uint64_t seed; /* of all that follows: set it, it moves on with each number */

#ifdef SPLITMIX

static inline uint64_t random_bits(void)
{
    uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint32_t below(uint32_t n) { return (uint32_t)(random_bits() % n); }

#else

static inline uint64_t random_bits(void)
{
    return seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

static inline uint32_t below(uint32_t n) { return (uint32_t)((random_bits() >> 33) % n); }

#endif

/* How often to try: ten times n where CUTSET_LONG is set. */
static inline int repeats(int n) { return getenv("CUTSET_LONG") ? n * 10 : n; }

#endif
