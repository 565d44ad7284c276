/* Makes the library's allocations fail on demand. Include it in one test file: it holds mem.c with
 * malloc renamed, and because it defines all of mem.c's functions the linker takes these and never
 * the library's. No linker flags, and sanitizers keep working.
 *
 *     for (long n = 0;; n++) {
 *         alloc_fail_at(n);                 // call n fails, and every one after it
 *         status = cutset_...(&out, ..., &err);
 *         if (!alloc_failed()) break;       // n was never reached: it ran with all its memory
 *         ...status is CUTSET_SYSTEM, nothing leaked, `out` untouched...
 *     }
 *     alloc_fail_at(-1);                    // off again
 *
 * alloc_live() counts the pieces that are not freed yet: the same before and after, or it leaks.
 */
#ifndef CS_TESTS_FAILING_ALLOC_H
#define CS_TESTS_FAILING_ALLOC_H

#include <stdbool.h>
#include <stdlib.h>

static long alloc_left = -1; /* calls until the first that fails; below 0: none fails */
static bool alloc_did_fail;
static long alloc_pieces;

static inline void alloc_fail_at(long n)
{
    alloc_left = n;
    alloc_did_fail = false;
}

static inline bool alloc_failed(void) { return alloc_did_fail; }

static inline long alloc_live(void) { return alloc_pieces; }

static bool alloc_refuses(void)
{
    if (alloc_left < 0) return false;
    if (alloc_left > 0) {
        alloc_left--;
        return false;
    }
    return alloc_did_fail = true;
}

static void *test_malloc(size_t size)
{
    void *p = alloc_refuses() ? NULL : malloc(size);
    alloc_pieces += p != NULL;
    return p;
}

static void *test_calloc(size_t count, size_t size)
{
    void *p = alloc_refuses() ? NULL : calloc(count, size);
    alloc_pieces += p != NULL;
    return p;
}

static void *test_realloc(void *old, size_t size)
{
    void *p = alloc_refuses() ? NULL : realloc(old, size);
    alloc_pieces += p != NULL && old == NULL;
    return p;
}

static void test_free(void *p)
{
    alloc_pieces -= p != NULL;
    free(p);
}

#define malloc test_malloc
#define calloc test_calloc
#define realloc test_realloc
#define free test_free
#include "base/mem.c"
#undef malloc
#undef calloc
#undef realloc
#undef free

#endif
