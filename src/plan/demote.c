/* --min-nodes: which engine atoms go to the host so that every engine is large enough.
 *
 * Keeping the most nodes is NP-hard (theory: 5.2). First a rule that is always right: an atom with
 * fewer than s nodes that could share an engine with it (not separated by a host atom) is demoted in
 * every solution. Then three heuristics, the best of which is kept (most nodes, then fewest
 * engines): demote the smallest short engine of the ASAP levels, or of the ALAP levels, and level
 * again; or fill engines in order, atoms that must go first (earliest deadline), up to s nodes, and
 * demote only what is critical where one stays short. An engine with a pinned atom is exempt.
 *
 * Each round demotes something, so they end. Cost: O(rounds (n + m) log n); above WORK atoms in all,
 * a round demotes every short engine at once. The exact rule looks at up to KERNEL atoms.
 */
#include <string.h>

#include "plan/work.h"

#define KERNEL 2048
#define WORK (1u << 27)

typedef enum way { ASAP, ALAP, FILL, WAYS } way;

typedef struct sieve {
    const cs_atoms *a;
    uint32_t least; /* nodes an engine must have */
    cs_arena *arena;
    int32_t *target; /* by atom, as demoted so far */
    uint32_t *slot;  /* by atom: engine, 0 = host */
    uint32_t engines;
    uint64_t *size; /* by engine */
    bool *exempt;   /* by engine: holds a pinned atom */
    cs_levels l;
    uint64_t work;
} sieve;

/* ---- the rule that is always right ---- */

/* apart: bit u of row v = engine atom u lies behind v with a host atom between. */
static void separations(const sieve *s, uint32_t words, uint64_t *apart, uint64_t *below)
{
    const cs_atoms *a = s->a;
    for (uint32_t v = a->n; v-- > 0;) {
        uint64_t *own_apart = apart + (size_t)v * words, *own_below = below + (size_t)v * words;
        for (uint32_t i = a->succ[v]; i < a->succ[v + 1]; i++) {
            uint32_t u = a->succ_of[i];
            cs_bits_join(own_below, below + (size_t)u * words, words);
            cs_bits_join(own_apart, (s->target[u] == CS_HOST ? below : apart) + (size_t)u * words,
                         words);
        }
        if (s->target[v] != CS_HOST) cs_bits_set(own_below, v);
    }
}

/* Nodes that atom `v` brings to an engine; one that is pinned makes any engine large enough. */
static uint64_t worth(const sieve *s, uint32_t v)
{
    return s->a->pinned[v] ? s->least : cs_atom_size(s->a, v);
}

static bool kernel_round(sieve *s, bool *some)
{
    const cs_atoms *a = s->a;
    uint32_t words = cs_bits_words(a->n);
    cs_arena_mark mark = cs_arena_note(s->arena);
    uint64_t *apart = cs_arena_zalloc(s->arena, (size_t)a->n * words, sizeof *apart);
    uint64_t *below = cs_arena_zalloc(s->arena, (size_t)a->n * words, sizeof *below);
    uint64_t *room = cs_arena_zalloc(s->arena, a->n, sizeof *room);
    if (!apart || !below || !room) return false;
    separations(s, words, apart, below);
    for (uint32_t v = 0; v < a->n; v++)
        for (uint32_t u = v; s->target[v] != CS_HOST && u < a->n; u++) {
            if (s->target[u] != s->target[v] || cs_bits_has(apart + (size_t)v * words, u)) continue;
            room[v] += worth(s, u);
            if (u != v) room[u] += worth(s, v);
        }
    *some = false;
    for (uint32_t v = 0; v < a->n; v++)
        if (s->target[v] != CS_HOST && !a->pinned[v] && room[v] < s->least) {
            s->target[v] = CS_HOST;
            *some = true;
        }
    cs_arena_release(s->arena, mark);
    return true;
}

/* ---- filling engines in order ---- */

typedef struct filler {
    sieve *s;
    uint32_t *waits, *host, n_host;
    cs_heap ready;      /* engine atoms, the earliest deadline first */
    uint64_t *deadline; /* by atom: the last engine it may be in */
} filler;

static void fill_push(filler *f, uint32_t atom)
{
    if (f->s->target[atom] == CS_HOST) {
        f->host[f->n_host++] = atom;
        return;
    }
    cs_heap_push(&f->ready, atom);
}

static void fill_release(filler *f, uint32_t atom)
{
    const cs_atoms *a = f->s->a;
    for (uint32_t i = a->succ[atom]; i < a->succ[atom + 1]; i++)
        if (!--f->waits[a->succ_of[i]]) fill_push(f, a->succ_of[i]);
}

static bool fill(sieve *s)
{
    const cs_atoms *a = s->a;
    cs_arena_mark mark = cs_arena_note(s->arena);
    filler f = {.s = s};
    f.waits = cs_arena_alloc(s->arena, a->n, sizeof *f.waits);
    f.host = cs_arena_alloc(s->arena, a->n, sizeof *f.host);
    f.deadline = cs_arena_alloc(s->arena, a->n, sizeof *f.deadline);
    f.ready.at = cs_arena_alloc(s->arena, a->n, sizeof *f.ready.at);
    if (!f.waits || !f.host || !f.deadline || !f.ready.at) return false;
    f.ready.key = f.deadline;
    for (uint32_t v = 0; v < a->n; v++) {
        f.deadline[v] = s->l.r + 1 - s->l.mu[v];
        if (!(f.waits[v] = a->pred[v + 1] - a->pred[v])) fill_push(&f, v);
    }
    for (uint32_t slot = 0; slot <= s->l.r; slot++) {
        uint64_t size = 0;
        while (slot && f.ready.len && (f.deadline[f.ready.at[0]] <= slot || size < s->least)) {
            uint32_t v = cs_heap_pop(&f.ready);
            s->slot[v] = slot;
            size += cs_atom_size(a, v);
            fill_release(&f, v);
        }
        while (f.n_host)
            fill_release(&f, f.host[--f.n_host]);
    }
    s->engines = s->l.r;
    cs_arena_release(s->arena, mark);
    return true;
}

/* ---- rounds ---- */

static bool label(sieve *s, way how)
{
    const cs_atoms *a = s->a;
    s->work += a->n;
    if (!cs_levels_of(a, s->target, s->arena, &s->l)) return false;
    memset(s->slot, 0, a->n * sizeof *s->slot);
    if (how == FILL) return fill(s);
    s->engines = s->l.r;
    for (uint32_t v = 0; v < a->n; v++)
        if (s->target[v] != CS_HOST)
            s->slot[v] = how == ASAP ? s->l.lam[v] : s->l.r + 1 - s->l.mu[v];
    return true;
}

static void measure(sieve *s)
{
    memset(s->size, 0, ((size_t)s->engines + 1) * sizeof *s->size);
    memset(s->exempt, 0, ((size_t)s->engines + 1) * sizeof *s->exempt);
    for (uint32_t v = 0; v < s->a->n; v++) {
        s->size[s->slot[v]] += cs_atom_size(s->a, v);
        s->exempt[s->slot[v]] |= s->a->pinned[v];
    }
}

static bool is_short(const sieve *s, uint32_t slot)
{
    return slot && s->size[slot] < s->least && !s->exempt[slot];
}

/* The short engine to go: the smallest; when filling, the first. 0: none is short. */
static uint32_t choose(const sieve *s, way how)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k <= s->engines; k++)
        if (is_short(s, k) && (!best || s->size[k] < s->size[best])) {
            best = k;
            if (how == FILL) break;
        }
    return best;
}

/* Demotes the engine: all of it, or when filling what cannot run in another. */
static void demote_engine(sieve *s, uint32_t slot, way how)
{
    bool some = false;
    for (int all = how != FILL; all < 2 && !some; all++)
        for (uint32_t v = 0; v < s->a->n; v++)
            if (s->slot[v] == slot && (all || s->l.lam[v] + s->l.mu[v] == s->l.r + 1)) {
                s->target[v] = CS_HOST;
                some = true;
            }
}

static void demote_all_short(sieve *s)
{
    for (uint32_t v = 0; v < s->a->n; v++)
        if (is_short(s, s->slot[v])) s->target[v] = CS_HOST;
}

static bool sift(sieve *s, way how)
{
    for (;;) {
        cs_arena_mark mark = cs_arena_note(s->arena);
        if (!label(s, how)) return false;
        measure(s);
        uint32_t slot = choose(s, how);
        if (slot && s->work < WORK)
            demote_engine(s, slot, how);
        else if (slot)
            demote_all_short(s);
        cs_arena_release(s->arena, mark);
        if (!slot) return true;
    }
}

static uint64_t kept(const sieve *s)
{
    uint64_t n = 0;
    for (uint32_t v = 0; v < s->a->n; v++)
        if (s->target[v] != CS_HOST) n += cs_atom_size(s->a, v);
    return n;
}

/* Numbers the engines that are left without gaps. */
static uint32_t close_gaps(sieve *s)
{
    uint32_t n = 0;
    uint32_t *fresh = cs_arena_alloc(s->arena, (size_t)s->engines + 1, sizeof *fresh);
    if (!fresh) return CS_NONE;
    for (uint32_t k = 0; k <= s->engines; k++)
        fresh[k] = k && s->size[k] ? ++n : 0;
    for (uint32_t v = 0; v < s->a->n; v++)
        s->slot[v] = fresh[s->slot[v]];
    return n;
}

cutset_status cs_demote(cs_work *w, const cs_atoms *a, cs_arena *arena, bool *demote,
                        cs_labels *labels, cutset_error *err)
{
    cs_arena_mark mark = cs_arena_note(arena);
    sieve s = {.a = a, .arena = arena};
    s.least = w->opts->min_nodes > UINT32_MAX ? UINT32_MAX : (uint32_t)w->opts->min_nodes;
    s.target = cs_arena_alloc(arena, a->n, sizeof *s.target);
    s.slot = cs_arena_alloc(arena, a->n, sizeof *s.slot);
    s.size = cs_arena_alloc(arena, (size_t)a->n + 1, sizeof *s.size);
    s.exempt = cs_arena_alloc(arena, (size_t)a->n + 1, sizeof *s.exempt);
    int32_t *kernel = cs_arena_dup(arena, a->target, a->n * sizeof *kernel);
    if (!s.target || !s.slot || !s.size || !s.exempt || !kernel) return cs_fail_memory(err);
    memcpy(s.target, kernel, a->n * sizeof *kernel);
    for (bool some = a->n <= KERNEL; some;)
        if (!kernel_round(&s, &some)) return cs_fail_memory(err);
    memcpy(kernel, s.target, a->n * sizeof *kernel);
    uint64_t most = 0;
    bool have = false;
    for (way how = ASAP; how < WAYS; how++) {
        memcpy(s.target, kernel, a->n * sizeof *kernel);
        s.work = 0;
        if (!sift(&s, how)) return cs_fail_memory(err);
        uint32_t engines = close_gaps(&s);
        if (engines == CS_NONE) return cs_fail_memory(err);
        uint64_t n = kept(&s);
        if (have && (n < most || (n == most && engines >= labels->engines))) continue;
        have = true, most = n;
        labels->engines = engines;
        memcpy(labels->slot, s.slot, a->n * sizeof *s.slot);
        for (uint32_t v = 0; v < a->n; v++)
            demote[v] = a->target[v] != CS_HOST && s.target[v] == CS_HOST;
    }
    cs_arena_release(arena, mark);
    return CUTSET_OK;
}
