/* Memory: the only callers of malloc, calloc, realloc and free in the library.
 *
 * A request for zero bytes is served as one for a single byte, so that NULL always means "no
 * memory". Requests over PTRDIFF_MAX fail without asking.
 *
 * The arena is a chain of blocks, newest first, each twice as large as the one before it up to
 * 1 MiB. A piece that does not fit opens a new block (as large as the piece, if that is more); the
 * rest of the old block is left. Pieces are handed out in stack order, which is what makes a mark
 * just a block and a fill level. Cost: O(1) a piece, O(blocks freed) a release.
 */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* count * size, at least 1; false: more than any object can hold */
static bool product(size_t count, size_t size, size_t *out)
{
    if (__builtin_mul_overflow(count, size, out) || *out > PTRDIFF_MAX) return false;
    if (*out == 0) *out = 1;
    return true;
}

void *cs_alloc(size_t count, size_t size)
{
    size_t bytes;
    return product(count, size, &bytes) ? malloc(bytes) : NULL;
}

void *cs_zalloc(size_t count, size_t size)
{
    size_t bytes;
    return product(count, size, &bytes) ? calloc(1, bytes) : NULL;
}

void *cs_realloc(void *p, size_t count, size_t size)
{
    size_t bytes;
    return product(count, size, &bytes) ? realloc(p, bytes) : NULL;
}

void cs_free(void *p) { free(p); }

/* ---- vectors ---- */

bool cs_vec_grow(void *vec, size_t more, size_t elem_size)
{
    /* Every CS_VEC has this layout, but is a type of its own: only memcpy may look at it. */
    struct {
        void *at;
        size_t len, cap;
    } head;
    memcpy(&head, vec, sizeof head);
    size_t need;
    if (__builtin_add_overflow(head.len, more, &need)) return false;
    if (need <= head.cap) return true;
    size_t cap = head.cap + head.cap / 2; /* cannot wrap: cap elements are in memory */
    if (cap < 8) cap = 8;
    if (cap < need) cap = need;
    void *at = cs_realloc(head.at, cap, elem_size);
    if (at == NULL) return false;
    head.at = at;
    head.cap = cap;
    memcpy(vec, &head, sizeof head);
    return true;
}

/* ---- arena ---- */

enum { ALIGN = 16, BLOCK_MIN = 4096, BLOCK_MAX = 1 << 20 };

struct cs_arena_block {
    struct cs_arena_block *older;
    size_t size, used; /* of `bytes` */
    _Alignas(ALIGN) unsigned char bytes[];
};

/* `used` rounded up to `align`, a power of two; a block is far from SIZE_MAX, so no wrap */
static size_t align_up(size_t used, size_t align) { return (used + align - 1) & ~(align - 1); }

static struct cs_arena_block *open_block(cs_arena *arena, size_t need)
{
    const size_t head = sizeof(struct cs_arena_block);
    size_t total = arena->block == NULL ? BLOCK_MIN : 2 * (arena->block->size + head);
    if (total > BLOCK_MAX) total = BLOCK_MAX;
    if (need > PTRDIFF_MAX - head) return NULL;
    if (total < need + head) total = need + head;
    struct cs_arena_block *block = cs_alloc(total, 1);
    if (block == NULL) return NULL;
    block->older = arena->block;
    block->size = total - head;
    block->used = 0;
    arena->block = block;
    return block;
}

static void *carve(cs_arena *arena, size_t bytes, size_t align)
{
    struct cs_arena_block *block = arena->block;
    size_t start = block == NULL ? 0 : align_up(block->used, align);
    if (block == NULL || start > block->size || bytes > block->size - start) {
        block = open_block(arena, bytes);
        if (block == NULL) return NULL;
        start = 0;
    }
    block->used = start + bytes;
    return block->bytes + start;
}

void *cs_arena_alloc(cs_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    return product(count, size, &bytes) ? carve(arena, bytes, ALIGN) : NULL;
}

void *cs_arena_zalloc(cs_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (!product(count, size, &bytes)) return NULL;
    void *piece = carve(arena, bytes, ALIGN);
    return piece == NULL ? NULL : memset(piece, 0, bytes);
}

void *cs_arena_dup(cs_arena *arena, const void *bytes, size_t len)
{
    /* The size of an object is a multiple of its alignment, so the largest power of two in `len`
     * suits whatever the bytes are, and names are packed tightly. */
    size_t align = len & (~len + 1);
    if (align == 0) align = 1;
    if (align > ALIGN) align = ALIGN;
    if (len >= PTRDIFF_MAX) return NULL;
    unsigned char *piece = carve(arena, len + 1, align);
    if (piece == NULL) return NULL;
    if (len > 0) memcpy(piece, bytes, len);
    piece[len] = 0;
    return piece;
}

cs_arena_mark cs_arena_note(const cs_arena *arena)
{
    return (cs_arena_mark){arena->block, arena->block == NULL ? 0 : arena->block->used};
}

void cs_arena_release(cs_arena *arena, cs_arena_mark mark)
{
    while (arena->block != mark.block) {
        struct cs_arena_block *older = arena->block->older;
        cs_free(arena->block);
        arena->block = older;
    }
    if (mark.block != NULL) mark.block->used = mark.used;
}

void cs_arena_fini(cs_arena *arena) { cs_arena_release(arena, (cs_arena_mark){NULL, 0}); }
