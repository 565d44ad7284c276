/* What refusals cost: the engines that one host atom would save if it ran on the accelerator.
 *
 * Let r be the most engine stretches on a path. Moving a host atom v to the accelerator can join two
 * stretches on each path through v, and changes no other path. So it saves one engine, never more,
 * exactly if every path with r stretches goes through v, and no path through v has r stretches any
 * more. The second follows from the levels of v's neighbours. For the first, atoms are numbered in
 * topological order: a path that avoids v ends before v, starts after v, or has an edge that passes
 * over v; and each edge tells by the levels of its ends whether a path with r stretches has it.
 *
 * Requires: one accelerator. Cost: linear for all atoms together.
 */
#include "plan/work.h"

static bool runs(const cs_levels *l, uint32_t v) { return l->target[v] != CS_HOST; }

/* Most stretches on a path that has the edge u -> v. */
static uint32_t along(const cs_levels *l, uint32_t u, uint32_t v)
{
    return l->lam[u] + l->mu[v] - (runs(l, u) && runs(l, v));
}

/* Most stretches on a path through host atom v, if v were accelerated. */
static uint32_t through(const cs_atoms *a, const cs_levels *l, uint32_t v)
{
    uint32_t before = 1, after = 1;
    for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++) {
        const uint32_t u = a->pred_of[i], here = l->lam[u] + !runs(l, u);
        if (here > before) before = here;
    }
    for (uint32_t i = a->succ[v]; i < a->succ[v + 1]; i++) {
        const uint32_t s = a->succ_of[i], here = l->mu[s] + !runs(l, s);
        if (here > after) after = here;
    }
    return before + after - 1;
}

bool cs_levels_saved(const cs_atoms *a, const cs_levels *l, cs_arena *arena, bool *saved)
{
    const cs_arena_mark mark = cs_arena_note(arena);
    uint32_t ends = a->n,
             starts = 0; /* the first atom that ends such a path, the last that starts one */
    uint32_t *from =
        cs_arena_zalloc(arena, (size_t)a->n + 1, sizeof *from); /* edges that begin to, */
    uint32_t *to =
        cs_arena_zalloc(arena, (size_t)a->n + 1, sizeof *to); /* end to pass over an atom */
    if (!from || !to) return false;
    for (uint32_t v = 0; v < a->n; v++) {
        if (runs(l, v) && l->lam[v] == l->r && ends == a->n) ends = v;
        if (runs(l, v) && l->mu[v] == l->r) starts = v;
        for (uint32_t i = a->succ[v]; i < a->succ[v + 1]; i++)
            if (along(l, v, a->succ_of[i]) == l->r) {
                from[v + 1]++;
                to[a->succ_of[i]]++;
            }
    }
    uint64_t over = 0;
    for (uint32_t v = 0; v < a->n; v++) {
        over = over + from[v] - to[v];
        saved[v] = l->r > 0 && !runs(l, v) && over == 0 && starts < v && v < ends &&
                   through(a, l, v) < l->r;
    }
    cs_arena_release(arena, mark);
    return true;
}
