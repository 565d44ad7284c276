/* Union-find over ids: `parent` holds one entry an id, its own id at first. The root of a class is its
 * smallest id. Cost: near constant, with path halving. */
#ifndef CS_BASE_UNION_H
#define CS_BASE_UNION_H

#include <stdint.h>

static inline uint32_t cs_union_find(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x) {
        parent[x] = parent[parent[x]];
        x = parent[x];
    }
    return x;
}

static inline void cs_union(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = cs_union_find(parent, a);
    b = cs_union_find(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

#endif
