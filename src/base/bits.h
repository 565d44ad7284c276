/* Sets of small numbers as rows of 64-bit words; the caller provides the room, zeroed. */
#ifndef CS_BASE_BITS_H
#define CS_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t cs_bits_words(uint32_t n) { return n / 64 + (n % 64 != 0); }
static inline void cs_bits_set(uint64_t *row, uint32_t i) { row[i / 64] |= (uint64_t)1 << i % 64; }
static inline bool cs_bits_has(const uint64_t *row, uint32_t i)
{
    return row[i / 64] >> i % 64 & 1;
}
static inline void cs_bits_join(uint64_t *to, const uint64_t *from, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        to[i] |= from[i];
}

#endif
