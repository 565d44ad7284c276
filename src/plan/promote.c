/* Back from the host: demoted atoms that fit into the engines as these are.
 *
 * Positions 0 .. 2E along the plan: engine k stands at 2k - 1, host atoms at even ones. With
 * engines fixed, each atom has a last position that what follows allows, and, in topological
 * order, a first one that what precedes demands. A demoted atom with an engine between the two
 * goes there. What it then demands is within what follows allows, so the plan stays in order;
 * engines only grow. Cost: linear.
 */
#include "plan/work.h"

static uint32_t latest(const cs_atoms *a, uint32_t v, const uint32_t *last, uint32_t end)
{
    uint32_t at = end;
    for (uint32_t i = a->succ[v]; i < a->succ[v + 1]; i++)
        if (last[a->succ_of[i]] < at) at = last[a->succ_of[i]];
    return at;
}

static uint32_t earliest(const cs_atoms *a, uint32_t v, const uint32_t *at)
{
    uint32_t first = 0;
    for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++)
        if (at[a->pred_of[i]] > first) first = at[a->pred_of[i]];
    return first;
}

bool cs_promote(const cs_atoms *a, uint32_t engines, cs_arena *arena, int32_t *target,
                uint32_t *slot)
{
    const cs_arena_mark mark = cs_arena_note(arena);
    uint32_t *last = cs_arena_alloc(arena, a->n, sizeof *last);
    uint32_t *at = cs_arena_alloc(arena, a->n, sizeof *at);
    if (!last || !at) return false;
    for (uint32_t v = a->n; v-- > 0;) {
        if (slot[v])
            last[v] = 2 * slot[v] - 1;
        else /* a demoted atom may yet stand at an odd position */
            last[v] = latest(a, v, last, 2 * engines) & (a->target[v] == CS_HOST ? ~1u : ~0u);
    }
    for (uint32_t v = 0; v < a->n; v++) {
        if (slot[v]) {
            at[v] = 2 * slot[v] - 1;
            continue;
        }
        const uint32_t first = earliest(a, v, at), odd = first | 1;
        if (a->target[v] != CS_HOST && odd <= last[v]) {
            at[v] = odd;
            slot[v] = (odd + 1) / 2;
            target[v] = a->target[v];
        } else {
            at[v] = (first + 1) & ~1u;
        }
    }
    cs_arena_release(arena, mark);
    return true;
}
