/* The hash map, and hashing of bytes with XXH3 (64 bits). The only file that sees xxhash.h.
 *
 * The map is open addressing with linear probing over a power of two of slots, at most 5/8 full. A
 * key is mixed before it picks its slot, because keys are often pairs of small ids. Nothing is ever
 * removed. Cost: O(1) expected.
 *
 * XXH3 gives the same value on every machine, with and without vector instructions, so its values
 * may be stored in files. It has no secret: a caller that hashes hostile bytes must bear collisions
 * (they cost time, never correctness).
 */
#include "base/hash.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- the map ---- */

/* The finaliser of MurmurHash3: every bit of the key reaches every bit of the result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* The slot that holds `key`, or the free one where it belongs. There always is a free slot. */
static size_t probe(const uint64_t *keys, const uint32_t *values, size_t slots, uint64_t key)
{
    size_t i = (size_t)mix(key) & (slots - 1);
    while (values[i] != CS_NONE && keys[i] != key)
        i = (i + 1) & (slots - 1);
    return i;
}

static size_t capacity(size_t slots) { return slots / 8 * 5; }

void cs_map_fini(cs_map *map)
{
    cs_free(map->key);
    cs_free(map->value);
    *map = (cs_map){0};
}

static bool resize(cs_map *map, size_t slots)
{
    uint64_t *keys = cs_alloc(slots, sizeof *keys);
    uint32_t *values = cs_alloc(slots, sizeof *values);
    if (keys == NULL || values == NULL) {
        cs_free(keys);
        cs_free(values);
        return false;
    }
    memset(values, 0xff, slots * sizeof *values); /* CS_NONE */
    for (size_t i = 0; i < map->slots; i++) {
        if (map->value[i] == CS_NONE) continue;
        const size_t to = probe(keys, values, slots, map->key[i]);
        keys[to] = map->key[i];
        values[to] = map->value[i];
    }
    const size_t len = map->len;
    cs_map_fini(map);
    *map = (cs_map){.key = keys, .value = values, .slots = slots, .len = len};
    return true;
}

bool cs_map_room(cs_map *map, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(map->len, more, &need)) return false;
    size_t slots = map->slots == 0 ? 16 : map->slots;
    while (capacity(slots) < need) {
        if (slots > SIZE_MAX / 2) return false;
        slots *= 2;
    }
    return slots == map->slots || resize(map, slots);
}

bool cs_map_put(cs_map *map, uint64_t key, uint32_t value)
{
    assert(value != CS_NONE);
    if (map->slots > 0) {
        const size_t i = probe(map->key, map->value, map->slots, key);
        if (map->value[i] != CS_NONE) {
            map->value[i] = value;
            return true;
        }
    }
    if (!cs_map_room(map, 1)) return false;
    const size_t i = probe(map->key, map->value, map->slots, key);
    map->key[i] = key;
    map->value[i] = value;
    map->len++;
    return true;
}

uint32_t cs_map_get(const cs_map *map, uint64_t key)
{
    if (map->slots == 0) return CS_NONE;
    return map->value[probe(map->key, map->value, map->slots, key)];
}

/* ---- hashing ---- */

uint64_t cs_hash(const void *bytes, size_t len) { return XXH3_64bits(len == 0 ? "" : bytes, len); }

struct cs_hasher {
    XXH3_state_t state; /* wants 64-byte alignment, more than the heap gives */
    void *raw;          /* what was allocated */
    size_t used; /* of pending: most pieces are numbers, too small to be handed on one by one */
    unsigned char pending[1024];
};

cs_hasher *cs_hasher_new(void)
{
    const size_t align = _Alignof(cs_hasher);
    unsigned char *raw = cs_alloc(1, sizeof(cs_hasher) + align - 1);
    if (raw == NULL) return NULL;
    const size_t past = (size_t)((uintptr_t)raw % align);
    cs_hasher *h = (cs_hasher *)(void *)(raw + (past == 0 ? 0 : align - past));
    h->raw = raw;
    h->used = 0;
    XXH3_64bits_reset(&h->state);
    return h;
}

static void hand_on(cs_hasher *h)
{
    XXH3_64bits_update(&h->state, h->pending, h->used);
    h->used = 0;
}

void cs_hasher_add(cs_hasher *h, const void *bytes, size_t len)
{
    if (len == 0) return;
    if (len > sizeof h->pending - h->used) hand_on(h);
    if (len > sizeof h->pending) {
        XXH3_64bits_update(&h->state, bytes, len);
        return;
    }
    memcpy(h->pending + h->used, bytes, len);
    h->used += len;
}

void cs_hasher_add_u64(cs_hasher *h, uint64_t x)
{
    if (sizeof h->pending - h->used < 8) hand_on(h);
    for (unsigned i = 0; i < 8; i++)
        h->pending[h->used + i] = (unsigned char)(x >> (8 * i));
    h->used += 8;
}

void cs_hasher_add_span(cs_hasher *h, cs_span s)
{
    cs_hasher_add_u64(h, s.len);
    cs_hasher_add(h, s.at, s.len);
}

uint64_t cs_hasher_done(cs_hasher *h)
{
    hand_on(h);
    const uint64_t hash = XXH3_64bits_digest(&h->state);
    cs_free(h->raw);
    return hash;
}
