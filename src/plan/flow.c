/* Maximum flow: Dinic's algorithm (Dinitz 1970) with 64-bit capacities, without recursion.
 *
 * Phases: distances to the sink by breadth first, then paths along them until none is left, each
 * vertex going on from the arc it stopped at. In the end the vertices with a distance are the
 * sink's side of a minimum cut, the one nearest to it. Cost: O(n^2 m), in layered networks of
 * small capacities far less; the caller bounds the arcs looked at.
 */
#include <string.h>

#include "plan/work.h"

#define SOURCE 0
#define SINK 1

bool cs_flow_init(cs_flow *f, uint32_t n, uint32_t arcs, cs_arena *arena)
{
    *f = (cs_flow){.n = n, .max_arcs = arcs};
    f->first = cs_arena_alloc(arena, n, sizeof *f->first);
    f->level = cs_arena_alloc(arena, n, sizeof *f->level);
    f->next = cs_arena_alloc(arena, (size_t)arcs * 2, sizeof *f->next);
    f->to = cs_arena_alloc(arena, (size_t)arcs * 2, sizeof *f->to);
    f->left = cs_arena_alloc(arena, (size_t)arcs * 2, sizeof *f->left);
    if (!f->first || !f->level || !f->next || !f->to || !f->left) return false;
    memset(f->first, 0xff, n * sizeof *f->first);
    return true;
}

static void half(cs_flow *f, uint32_t arc, uint32_t from, uint32_t to, int64_t capacity)
{
    f->to[arc] = to;
    f->left[arc] = capacity;
    f->next[arc] = f->first[from];
    f->first[from] = arc;
}

void cs_flow_arc(cs_flow *f, uint32_t from, uint32_t to, int64_t capacity)
{
    half(f, 2 * f->n_arcs, from, to, capacity);
    half(f, 2 * f->n_arcs + 1, to, from, 0);
    f->n_arcs++;
}

/* Distances to the sink; does the source reach it? */
static bool measure(cs_flow *f, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    memset(f->level, 0xff, f->n * sizeof *f->level);
    f->level[SINK] = 0;
    queue[tail++] = SINK;
    while (head < tail) {
        const uint32_t v = queue[head++];
        for (uint32_t arc = f->first[v]; arc != CS_NONE; arc = f->next[arc], f->steps++) {
            if (!f->left[arc ^ 1] || f->level[f->to[arc]] != CS_NONE) continue;
            f->level[f->to[arc]] = f->level[v] + 1;
            queue[tail++] = f->to[arc];
        }
    }
    return f->level[SOURCE] != CS_NONE;
}

/* Sends along the path of `len` arcs what its narrowest takes, and tells how far the path is still
 * open: the number of arcs before the first that is full. */
static uint32_t send(cs_flow *f, const uint32_t *path, uint32_t len, int64_t *flow)
{
    int64_t least = INT64_MAX;
    uint32_t open = 0;
    for (uint32_t i = 0; i < len; i++)
        if (f->left[path[i]] < least) least = f->left[path[i]];
    for (uint32_t i = len; i-- > 0;) {
        f->left[path[i]] -= least;
        f->left[path[i] ^ 1] += least;
        if (!f->left[path[i]]) open = i;
    }
    f->steps += len;
    *flow += least;
    return open;
}

/* All paths of this phase. `at`: by vertex, the arc to look at next. False: too many steps. */
static bool send_all(cs_flow *f, uint32_t *at, uint32_t *path, uint64_t steps, int64_t *flow)
{
    memcpy(at, f->first, f->n * sizeof *at);
    uint32_t len = 0, v = SOURCE;
    for (;;) {
        if (f->steps > steps) return false;
        if (v == SINK) {
            len = send(f, path, len, flow);
            v = f->to[path[len] ^ 1];
        }
        const uint32_t arc = at[v];
        if (arc == CS_NONE) { /* a dead end: never again in this phase */
            if (!len) return true;
            f->level[v] = CS_NONE;
            v = f->to[path[--len] ^ 1];
            continue;
        }
        const uint32_t to = f->to[arc];
        f->steps++;
        if (f->left[arc] && f->level[to] != CS_NONE && f->level[to] + 1 == f->level[v]) {
            path[len++] = arc;
            v = to;
        } else {
            at[v] = f->next[arc];
        }
    }
}

int64_t cs_flow_run(cs_flow *f, uint64_t steps, cs_arena *arena)
{
    const cs_arena_mark mark = cs_arena_note(arena);
    uint32_t *at = cs_arena_alloc(arena, f->n, sizeof *at);
    uint32_t *room = cs_arena_alloc(arena, f->n, sizeof *room); /* a queue, then a path */
    if (!at || !room) return -2;
    int64_t flow = 0;
    bool ok = true;
    while (ok && measure(f, room))
        ok = send_all(f, at, room, steps, &flow);
    cs_arena_release(arena, mark);
    return ok ? flow : -1;
}
