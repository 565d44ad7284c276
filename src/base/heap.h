/* A binary heap of ids: the smallest key comes out first, equal keys by id. The order is total, so
 * what comes out never depends on what went in when. The caller provides the room. */
#ifndef CS_BASE_HEAP_H
#define CS_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cs_heap {
    uint32_t *at; /* room for as many ids as are in it at once */
    size_t len;
    const uint64_t *key; /* by id; NULL: the id is the key */
    bool largest_id;     /* of equal keys the largest id comes first */
} cs_heap;

void cs_heap_push(cs_heap *h, uint32_t id); /* O(log n) */
uint32_t cs_heap_pop(cs_heap *h);           /* not empty */

#endif
