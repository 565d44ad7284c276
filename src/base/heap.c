/* The binary heap: children of i are 2i + 1 and 2i + 2; a hole is moved, not pairs swapped. */
#include "base/heap.h"

static bool before(const cs_heap *h, uint32_t a, uint32_t b)
{
    if (h->key != NULL && h->key[a] != h->key[b]) return h->key[a] < h->key[b];
    return h->largest_id ? a > b : a < b;
}

void cs_heap_push(cs_heap *h, uint32_t id)
{
    size_t i = h->len++;
    for (; i > 0 && before(h, id, h->at[(i - 1) / 2]); i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = id;
}

uint32_t cs_heap_pop(cs_heap *h)
{
    const uint32_t top = h->at[0], last = h->at[--h->len];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->len; i = child) {
        if (child + 1 < h->len && before(h, h->at[child + 1], h->at[child])) child++;
        if (!before(h, h->at[child], last)) break;
        h->at[i] = h->at[child];
    }
    h->at[i] = last;
    return top;
}
