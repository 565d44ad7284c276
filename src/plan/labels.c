/* Labels: which engine each atom is in, and between which engines each host atom runs.
 *
 * With the engines fixed, a host atom may run in any gap from the last engine that feeds it to the
 * first that it feeds. The fewest host parts are the fewest points that stab all these intervals,
 * and the earliest point of each keeps the order. Cost: linear.
 */
#include <string.h>

#include "plan/work.h"

bool cs_labels_init(cs_labels *l, const cs_atoms *a, cs_arena *arena)
{
    *l = (cs_labels){0};
    l->slot = cs_arena_zalloc(arena, a->n, sizeof *l->slot);
    l->gap = cs_arena_zalloc(arena, a->n, sizeof *l->gap);
    return l->slot && l->gap;
}

void cs_labels_copy(cs_labels *to, const cs_labels *from, uint32_t n)
{
    memcpy(to->slot, from->slot, n * sizeof *to->slot);
    memcpy(to->gap, from->gap, n * sizeof *to->gap);
    to->engines = from->engines;
    to->parts = from->parts;
}

/* First and last gap of each host atom. */
static void gaps(const cs_labels *l, const cs_atoms *a, uint32_t *lo, uint32_t *hi)
{
    for (uint32_t v = 0; v < a->n; v++) {
        lo[v] = l->slot[v];
        for (uint32_t i = a->pred[v]; !l->slot[v] && i < a->pred[v + 1]; i++)
            if (lo[a->pred_of[i]] > lo[v]) lo[v] = lo[a->pred_of[i]];
    }
    for (uint32_t v = a->n; v-- > 0;) {
        hi[v] = l->slot[v] ? l->slot[v] - 1 : l->engines;
        for (uint32_t i = a->succ[v]; !l->slot[v] && i < a->succ[v + 1]; i++)
            if (hi[a->succ_of[i]] < hi[v]) hi[v] = hi[a->succ_of[i]];
    }
}

bool cs_labels_stab(cs_labels *l, const cs_atoms *a, cs_arena *arena)
{
    cs_arena_mark mark = cs_arena_note(arena);
    uint32_t n_gaps = l->engines + 1;
    uint32_t *lo = cs_arena_alloc(arena, a->n, sizeof *lo);
    uint32_t *hi = cs_arena_alloc(arena, a->n, sizeof *hi);
    uint32_t *latest = cs_arena_zalloc(arena, n_gaps, sizeof *latest); /* by hi: largest lo + 1 */
    uint32_t *point = cs_arena_alloc(arena, n_gaps, sizeof *point);    /* by gap: next chosen one */
    if (!lo || !hi || !latest || !point) return false;
    gaps(l, a, lo, hi);
    for (uint32_t v = 0; v < a->n; v++)
        if (!l->slot[v] && lo[v] + 1 > latest[hi[v]]) latest[hi[v]] = lo[v] + 1;
    uint32_t chosen = 0, last = 0; /* last: the latest point + 1 */
    for (uint32_t k = 0; k < n_gaps; k++) {
        point[k] = CS_NONE;
        if (latest[k] > last) point[k] = k, last = k + 1, chosen++;
    }
    for (uint32_t k = n_gaps - 1; k-- > 0;)
        if (point[k] == CS_NONE) point[k] = point[k + 1];
    for (uint32_t v = 0; v < a->n; v++)
        l->gap[v] = l->slot[v] ? 0 : point[lo[v]];
    l->parts = l->engines + chosen;
    cs_arena_release(arena, mark);
    return true;
}

bool cs_labels_connect(cs_labels *l, const cs_atoms *a, cs_arena *arena)
{
    cs_arena_mark mark = cs_arena_note(arena);
    uint32_t *parent = cs_arena_alloc(arena, a->n, sizeof *parent);
    uint32_t *row = cs_arena_zalloc(arena, (size_t)l->engines + 2, sizeof *row);
    uint32_t *member = cs_arena_alloc(arena, a->n, sizeof *member);
    uint32_t *fresh = cs_arena_zalloc(arena, a->n, sizeof *fresh); /* by root: new slot */
    if (!parent || !row || !member || !fresh) return false;
    for (uint32_t v = 0; v < a->n; v++)
        parent[v] = v;
    for (uint32_t v = 0; v < a->n; v++)
        for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++)
            if (l->slot[v] && l->slot[a->pred_of[i]] == l->slot[v])
                cs_union(parent, v, a->pred_of[i]);
    for (uint32_t v = 0; v < a->n; v++) /* slot 0 sorts first and is passed over */
        row[l->slot[v] + 1]++;
    for (uint32_t k = 1; k <= l->engines + 1; k++)
        row[k] += row[k - 1];
    uint32_t first = row[1];
    for (uint32_t v = 0; v < a->n; v++)
        member[row[l->slot[v]]++] = v;
    uint32_t engines = 0;
    for (uint32_t i = first; i < a->n; i++) {
        uint32_t root = cs_union_find(parent, member[i]);
        if (!fresh[root]) fresh[root] = ++engines;
        l->slot[member[i]] = fresh[root];
    }
    l->engines = engines;
    cs_arena_release(arena, mark);
    return true;
}

/* A path leaves an engine and comes back exactly if contracting all engines pulls more into its
 * atom: what lies between closes a cycle. */
bool cs_labels_reentered(cs_work *w, const cs_labels *l, const cs_atoms *a, uint32_t *first,
                         bool *again)
{
    const cs_arena_mark mark = cs_arena_note(&w->arena);
    uint32_t *size = cs_arena_zalloc(&w->arena, (size_t)l->engines + 1, sizeof *size);
    uint32_t *parent = cs_arena_alloc(&w->arena, w->n_nodes, sizeof *parent);
    if (!size || !parent) return false;
    for (uint32_t i = 0; i < w->n_nodes; i++)
        parent[i] = i;
    for (uint32_t v = a->n; v-- > 0;)
        first[l->slot[v]] = v;
    for (uint32_t v = 0; v < a->n; v++) {
        const uint32_t head = l->slot[v] ? first[l->slot[v]] : v;
        size[l->slot[v]] += cs_atom_size(a, v);
        for (uint32_t i = a->first[v]; i < a->first[v + 1]; i++)
            cs_union(parent, a->node[a->first[head]], a->node[i]);
    }
    cs_atoms whole;
    if (cs_atoms_build(w, parent, &w->arena, &whole, NULL)) return false;
    for (uint32_t k = 1; k <= l->engines; k++)
        again[k] = cs_atom_size(&whole, whole.of[a->node[a->first[first[k]]]]) > size[k];
    cs_arena_release(&w->arena, mark);
    return true;
}
