/* Interned strings: equal bytes get equal ids, ids are dense in order of first appearance.
 *
 * Open addressing with linear probing, at most 5/8 full. A slot holds id + 1 in the bits that the
 * size of the table needs, and above them those bits of the hash that do not choose the slot: most
 * slots that a probe passes are told apart without a look elsewhere, which in a large table is a
 * cache miss each. The 32-bit hash of every string is kept beside it, so that a lookup compares
 * bytes only when 32 bits agree and growing never reads the strings again. Memory for n names: 22 n
 * to 29 n bytes, and the copies, packed.
 */
#include "base/hash.h"
#include "base/text.h"

#include <string.h>

enum { SLOTS_MIN = 64 };

static size_t capacity(size_t slots) { return slots / 8 * 5; }

/* The bits of a hash that choose a slot, and those of a slot that hold id + 1. */
static uint32_t low_bits(size_t slots) { return (uint32_t)(slots - 1); }

static uint32_t id_at(const cs_strtab *tab, size_t i) /* CS_NONE: the slot is free */
{
    return (tab->slot[i] & low_bits(tab->slots)) - 1;
}

static uint32_t entry(size_t slots, uint32_t hash, size_t id)
{
    return (hash & ~low_bits(slots)) | ((uint32_t)id + 1);
}

/* The slot that holds `text`, or the free one where it belongs. */
static size_t probe(const cs_strtab *tab, cs_span text, uint32_t hash)
{
    const size_t mask = tab->slots - 1;
    const uint32_t high = ~low_bits(tab->slots);
    size_t i = hash & mask;
    for (; tab->slot[i] != 0; i = (i + 1) & mask) {
        if (((tab->slot[i] ^ hash) & high) != 0) continue;
        const uint32_t id = id_at(tab, i);
        if (tab->text.at[id].hash == hash && cs_span_eq(cs_strtab_get(tab, id), text)) break;
    }
    return i;
}

static bool resize(cs_strtab *tab, size_t slots)
{
    uint32_t *slot = cs_zalloc(slots, sizeof *slot);
    if (slot == NULL) return false;
    for (size_t id = 0; id < tab->text.len; id++) {
        size_t i = tab->text.at[id].hash & (slots - 1);
        while (slot[i] != 0)
            i = (i + 1) & (slots - 1);
        slot[i] = entry(slots, tab->text.at[id].hash, id);
    }
    cs_free(tab->slot);
    tab->slot = slot;
    tab->slots = slots;
    return true;
}

bool cs_strtab_room(cs_strtab *tab, size_t more)
{
    if (more >= CS_NONE || !cs_vec_room(&tab->text, more)) return false;
    size_t slots = tab->slots;
    while (capacity(slots) < tab->text.len + more)
        slots *= 2;
    return slots == tab->slots || resize(tab, slots);
}

bool cs_strtab_init(cs_strtab *tab)
{
    *tab = (cs_strtab){0};
    if (resize(tab, SLOTS_MIN) && cs_strtab_add(tab, CS_SPAN(""), true) == 0) return true;
    cs_strtab_fini(tab);
    return false;
}

void cs_strtab_fini(cs_strtab *tab)
{
    cs_vec_fini(&tab->text);
    cs_free(tab->slot);
    cs_arena_fini(&tab->copies);
    *tab = (cs_strtab){0};
}

void cs_strtab_expect(const cs_strtab *tab, cs_span text)
{
    const uint32_t hash = (uint32_t)cs_hash(text.at, text.len);
    if (tab->slots > 0) __builtin_prefetch(&tab->slot[hash & (tab->slots - 1)]);
}

cs_str cs_strtab_find(const cs_strtab *tab, cs_span text)
{
    if (tab->slots == 0) return CS_NONE;
    return id_at(tab, probe(tab, text, (uint32_t)cs_hash(text.at, text.len)));
}

cs_str cs_strtab_add(cs_strtab *tab, cs_span text, bool keep)
{
    const uint32_t hash = (uint32_t)cs_hash(text.at, text.len);
    size_t i = probe(tab, text, hash);
    if (tab->slot[i] != 0) return id_at(tab, i);

    const size_t id = tab->text.len;
    if (id >= CS_NONE - 1 || text.len > UINT32_MAX) return CS_NONE;
    if (id >= capacity(tab->slots)) {
        if (!resize(tab, tab->slots * 2)) return CS_NONE;
        i = probe(tab, text, hash);
    }
    if (!cs_vec_room(&tab->text, 1)) return CS_NONE;
    if (!keep) {
        text.at = cs_arena_dup(&tab->copies, text.at, text.len);
        if (text.at == NULL) return CS_NONE;
    }
    tab->text.at[tab->text.len++] = (cs_interned){text.at, (uint32_t)text.len, hash};
    tab->slot[i] = entry(tab->slots, hash, id);
    return (cs_str)id;
}
