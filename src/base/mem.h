/* The only place that calls malloc: heap calls, vectors, an arena.
 *
 * Sizes are checked for overflow; on failure each returns NULL or false and changes nothing, and the
 * caller returns cs_fail_memory(err). Memory is not zeroed unless the name says so.
 */
#ifndef CS_BASE_MEM_H
#define CS_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *cs_alloc(size_t count, size_t size);
void *cs_zalloc(size_t count, size_t size);
void *cs_realloc(void *p, size_t count, size_t size);
void cs_free(void *p);

/* ---- vectors ----
 * CS_VEC(uint32_t) v = {0};  if (!cs_vec_push(&v, 7)) return cs_fail_memory(err);
 * cs_vec_fini(&v);
 * Zero is an empty vector. A vector that was reserved with cs_vec_room cannot fail on push. */
#define CS_VEC(T)                                                                                  \
    struct {                                                                                       \
        T *at;                                                                                     \
        size_t len, cap;                                                                           \
    }
bool cs_vec_grow(void *vec, size_t more, size_t elem_size); /* used by the macros */
#define cs_vec_room(v, more)                                                                       \
    ((v)->cap - (v)->len >= (size_t)(more) || cs_vec_grow((v), (more), sizeof *(v)->at))
#define cs_vec_push(v, x) (cs_vec_room((v), 1) && ((v)->at[(v)->len++] = (x), true))
#define cs_vec_fini(v) (cs_free((v)->at), (v)->at = NULL, (v)->len = (v)->cap = 0)

/* ---- arena: many small pieces freed together ---- */
typedef struct cs_arena {
    struct cs_arena_block *block; /* newest first */
} cs_arena;
typedef struct cs_arena_mark {
    struct cs_arena_block *block;
    size_t used;
} cs_arena_mark;

void *cs_arena_alloc(cs_arena *arena, size_t count, size_t size); /* aligned to 16 bytes */
void *cs_arena_zalloc(cs_arena *arena, size_t count, size_t size);
void *cs_arena_dup(cs_arena *arena, const void *bytes, size_t len); /* a zero byte follows */
cs_arena_mark cs_arena_note(const cs_arena *arena);
void cs_arena_release(cs_arena *arena, cs_arena_mark mark); /* frees what came after the mark */
void cs_arena_fini(cs_arena *arena);                        /* a zeroed arena is empty, valid */

#endif
