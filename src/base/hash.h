/* A hash map from 64-bit keys to 32-bit values, and hashing of bytes (xxh3).
 * Iteration order is never used for results, so none is offered. */
#ifndef CS_BASE_HASH_H
#define CS_BASE_HASH_H

#include "base/text.h"

typedef struct cs_map {
    uint64_t *key;
    uint32_t *value; /* CS_NONE = free slot, so CS_NONE cannot be stored */
    size_t slots, len;
} cs_map;

void cs_map_fini(cs_map *map); /* a zeroed map is empty, valid */
bool cs_map_room(cs_map *map, size_t more);
bool cs_map_put(cs_map *map, uint64_t key, uint32_t value);  /* replaces; false: no memory */
uint32_t cs_map_get(const cs_map *map, uint64_t key);        /* CS_NONE: not there */

uint64_t cs_hash(const void *bytes, size_t len);
/* Streaming; cs_hasher_new: NULL = no memory. */
typedef struct cs_hasher cs_hasher;
cs_hasher *cs_hasher_new(void);
void cs_hasher_add(cs_hasher *h, const void *bytes, size_t len);
void cs_hasher_add_u64(cs_hasher *h, uint64_t x); /* as 8 little-endian bytes */
void cs_hasher_add_span(cs_hasher *h, cs_span s); /* length first, so that no two lists collide */
uint64_t cs_hasher_done(cs_hasher *h);            /* frees it */

#endif
