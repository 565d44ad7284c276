/* --min-nodes: which engine atoms go to the host so that every engine is large enough.
 *
 * Keeping the most nodes that count is NP-hard (theory: 5.2). First a rule that is always right:
 * an atom is demoted in every solution if it and all that could share an engine with it (not
 * separated by a host atom) have fewer than s such nodes. Then heuristics, the best of which is
 * kept (most counted nodes, then fewest engines, then most nodes): demote the smallest short
 * engine of the ASAP levels, or of the ALAP levels, and level again; or fill engines in order,
 * from the front or from the back, atoms that must go first (earliest deadline), up to s nodes,
 * and demote only what is critical where one stays short; each with ties to the first and to the
 * last, with and without that rule (what it demotes changes the levels). Then demoted atoms go
 * back into engines that can take them (promote.c), and connected groups of the others are put
 * back one by one and sifted again, as long as that gains. An engine with an exempt atom is never
 * short. Small graphs do not come here: small.c is exact.
 *
 * Each round demotes something, so they end. Cost: O(rounds (n + m) log n). Above KERNEL atoms a
 * round by levels takes all engines of the least size that do not stand in a row, so rounds do not
 * grow with the graph; filling does not, it would keep a tenth fewer nodes. Above WORK atoms in
 * all, a round demotes every short engine at once. The exact rule looks at up to KERNEL atoms.
 */
#include <string.h>

#include "plan/work.h"

#define KERNEL 2048
#define WORK (1u << 26)
#define PUT_BACK (1u << 24) /* atoms looked at to put groups back */

typedef enum way { ASAP, ALAP, FILL, FILL_BACK, WAYS } way;

typedef struct sieve {
    const cs_atoms *a;
    uint32_t least; /* nodes an engine must have */
    cs_arena *arena;
    int32_t *target; /* by atom, as demoted so far */
    uint32_t *slot;  /* by atom: engine, 0 = host */
    uint32_t engines;
    uint64_t *size; /* by engine */
    bool *exempt;   /* by engine: holds an exempt atom */
    cs_levels l;
    bool last; /* of equals the last is taken, not the first */
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

/* Nodes that atom `v` brings to an engine; one that is exempt makes any engine large enough. */
static uint64_t worth(const sieve *s, uint32_t v)
{
    return s->a->exempt[v] ? s->least : s->a->counted[v];
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
        if (s->target[v] != CS_HOST && !a->exempt[v] && room[v] < s->least) {
            s->target[v] = CS_HOST;
            *some = true;
        }
    cs_arena_release(s->arena, mark);
    return true;
}

/* ---- filling engines in order ---- */

typedef struct filler {
    sieve *s;
    bool back; /* from the last engine to the first */
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
    const uint32_t *row = f->back ? a->pred : a->succ, *of = f->back ? a->pred_of : a->succ_of;
    for (uint32_t i = row[atom]; i < row[atom + 1]; i++)
        if (!--f->waits[of[i]]) fill_push(f, of[i]);
}

static void fill_slots(filler *f)
{
    sieve *s = f->s;
    for (uint32_t k = 0; k <= s->l.r; k++) {
        uint64_t size = 0;
        while (k && f->ready.len && (f->deadline[f->ready.at[0]] <= k || size < s->least)) {
            uint32_t v = cs_heap_pop(&f->ready);
            s->slot[v] = f->back ? s->l.r + 1 - k : k;
            size += worth(s, v);
            fill_release(f, v);
        }
        while (f->n_host)
            fill_release(f, f->host[--f->n_host]);
    }
    s->engines = s->l.r;
}

static bool fill(sieve *s, bool back)
{
    const cs_atoms *a = s->a;
    const uint32_t *row = back ? a->succ : a->pred;
    cs_arena_mark mark = cs_arena_note(s->arena);
    filler f = {.s = s, .back = back};
    f.waits = cs_arena_alloc(s->arena, a->n, sizeof *f.waits);
    f.host = cs_arena_alloc(s->arena, a->n, sizeof *f.host);
    f.deadline = cs_arena_alloc(s->arena, a->n, sizeof *f.deadline);
    f.ready.at = cs_arena_alloc(s->arena, a->n, sizeof *f.ready.at);
    if (!f.waits || !f.host || !f.deadline || !f.ready.at) return false;
    f.ready.key = f.deadline;
    f.ready.largest_id = back != s->last;
    for (uint32_t i = 0; i < a->n; i++) {
        const uint32_t v = back ? a->n - 1 - i : i;
        f.deadline[v] = s->l.r + 1 - (back ? s->l.lam[v] : s->l.mu[v]);
        if (!(f.waits[v] = row[v + 1] - row[v])) fill_push(&f, v);
    }
    fill_slots(&f);
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
    if (how >= FILL) return fill(s, how == FILL_BACK);
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
        s->size[s->slot[v]] += s->a->counted[v];
        s->exempt[s->slot[v]] |= s->a->exempt[v];
    }
}

static bool is_short(const sieve *s, uint32_t slot)
{
    return slot && s->size[slot] < s->least && !s->exempt[slot];
}

/* The short engine to go: the smallest; when filling, the first that was filled. 0: none is
 * short. */
static uint32_t choose(const sieve *s, way how)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k <= s->engines; k++)
        if (is_short(s, k) && (!best || how == FILL_BACK || s->size[k] < s->size[best] + s->last)) {
            best = k;
            if (how == FILL) break;
        }
    return best;
}

/* Demotes the engine: all of it, or when filling what cannot run in another. */
static void demote_engine(sieve *s, uint32_t slot, way how)
{
    bool some = false;
    for (int all = how < FILL; all < 2 && !some; all++)
        for (uint32_t v = 0; v < s->a->n; v++)
            if (s->slot[v] == slot && (all || s->l.lam[v] + s->l.mu[v] == s->l.r + 1)) {
                s->target[v] = CS_HOST;
                some = true;
            }
}

/* Every short engine as small as `slot`, but no two in a row, since what one leaves behind may make
 * the next large enough. */
static void demote_like(sieve *s, uint32_t slot)
{
    const uint64_t least = s->size[slot];
    const uint64_t goes = UINT64_MAX; /* in place of the size */
    for (uint32_t k = 1; k <= s->engines; k++)
        if (s->size[k] == least && s->size[k - 1] != goes && is_short(s, k)) s->size[k] = goes;
    for (uint32_t v = 0; v < s->a->n; v++)
        if (s->slot[v] && s->size[s->slot[v]] == goes) s->target[v] = CS_HOST;
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
        if (slot && how < FILL && s->a->n > KERNEL)
            demote_like(s, slot);
        else if (slot && s->work < WORK)
            demote_engine(s, slot, how);
        else if (slot)
            demote_all_short(s);
        cs_arena_release(s->arena, mark);
        if (!slot) return true;
    }
}

/* Nodes kept: those that count, and all. */
typedef struct keep {
    uint64_t counted, nodes;
} keep;

static keep kept(const sieve *s)
{
    keep k = {0, 0};
    for (uint32_t v = 0; v < s->a->n; v++)
        if (s->target[v] != CS_HOST) {
            k.counted += s->a->counted[v];
            k.nodes += cs_atom_size(s->a, v);
        }
    return k;
}

static bool better(keep x, uint32_t x_engines, keep y, uint32_t y_engines)
{
    if (x.counted != y.counted) return x.counted > y.counted;
    return x_engines != y_engines ? x_engines < y_engines : x.nodes > y.nodes;
}

/* Numbers the engines that are left without gaps. */
static uint32_t close_gaps(sieve *s)
{
    uint32_t n = 0;
    uint32_t *fresh = cs_arena_zalloc(s->arena, (size_t)s->engines + 1, sizeof *fresh);
    if (!fresh) return CS_NONE;
    for (uint32_t v = 0; v < s->a->n; v++)
        fresh[s->slot[v]] = 1;
    for (uint32_t k = 0; k <= s->engines; k++)
        fresh[k] = k && fresh[k] ? ++n : 0;
    for (uint32_t v = 0; v < s->a->n; v++)
        s->slot[v] = fresh[s->slot[v]];
    return n;
}

/* The best so far. */
typedef struct best {
    int32_t *target;
    uint32_t *slot, engines;
    keep kept;
    bool some;
} best;

/* One heuristic from `s->target` on, kept where it is the best: what it ends with is what it would
 * begin with, so planning anew finds the same. False: no memory. */
static bool attempt(sieve *s, way how, best *b, bool *gain)
{
    const cs_arena_mark mark = cs_arena_note(s->arena);
    if (!sift(s, how)) return false;
    const uint32_t engines = close_gaps(s);
    if (engines == CS_NONE) return false;
    cs_arena_release(s->arena, mark);
    s->engines = engines;
    const keep now = kept(s);
    if (b->some && !better(now, engines, b->kept, b->engines)) return true;
    *b = (best){b->target, b->slot, engines, now, true};
    memcpy(b->target, s->target, s->a->n * sizeof *b->target);
    memcpy(b->slot, s->slot, s->a->n * sizeof *b->slot);
    *gain = true;
    return true;
}

/* The same from `from` on, and again with the atoms that its engines can take back. */
static bool run(sieve *s, const int32_t *from, way how, best *b, bool *gain)
{
    const uint32_t n = s->a->n;
    const cs_arena_mark mark = cs_arena_note(s->arena);
    memcpy(s->target, from, n * sizeof *from);
    if (!attempt(s, how, b, gain)) return false;
    const uint64_t before = kept(s).nodes;
    if (!cs_promote(s->a, s->engines, s->arena, s->target, s->slot)) return false;
    if (kept(s).nodes == before) return true;
    const int32_t *more = cs_arena_dup(s->arena, s->target, n * sizeof *more);
    if (!more) return false;
    for (way again = ASAP; again < WAYS; again++) {
        memcpy(s->target, more, n * sizeof *more);
        if (!attempt(s, again, b, gain)) return false;
    }
    cs_arena_release(s->arena, mark);
    return true;
}

/* Groups of demoted atoms that the kernel does not rule out, joined by edges; group[v]: a
 * member. */
static void join_demoted(const sieve *s, const int32_t *kernel, const best *b, uint32_t *group)
{
    const cs_atoms *a = s->a;
    for (uint32_t v = 0; v < a->n; v++)
        group[v] = kernel[v] != CS_HOST && b->target[v] == CS_HOST ? v : CS_NONE;
    for (uint32_t v = 0; v < a->n; v++)
        for (uint32_t i = a->pred[v]; group[v] != CS_NONE && i < a->pred[v + 1]; i++)
            if (group[a->pred_of[i]] != CS_NONE) cs_union(group, v, a->pred_of[i]);
}

/* Puts groups back, one at a time, until none gains anything or the work is used up. */
static bool put_back(sieve *s, const int32_t *kernel, best *b)
{
    const uint32_t n = s->a->n;
    uint32_t *group = cs_arena_alloc(s->arena, n, sizeof *group);
    int32_t *from = cs_arena_alloc(s->arena, n, sizeof *from);
    if (!group || !from) return false;
    for (bool gain = true; gain && s->work < PUT_BACK;) {
        gain = false;
        join_demoted(s, kernel, b, group);
        for (uint32_t root = 0; !gain && root < n && s->work < PUT_BACK; root++) {
            if (group[root] != root) continue;
            s->work += n;
            for (uint32_t v = 0; v < n; v++)
                from[v] = group[v] != CS_NONE && cs_union_find(group, v) == root ? kernel[v]
                                                                                 : b->target[v];
            for (way how = ASAP; !gain && how < WAYS; how++)
                if (!run(s, from, how, b, &gain)) return false;
        }
    }
    return true;
}

static bool find_best(sieve *s, int32_t *kernel, best *b)
{
    const uint32_t n = s->a->n;
    bool gain;
    b->target = cs_arena_alloc(s->arena, n, sizeof *b->target);
    b->slot = cs_arena_alloc(s->arena, n, sizeof *b->slot);
    if (!b->target || !b->slot) return false;
    for (bool some = n <= KERNEL; some;)
        if (!kernel_round(s, &some)) return false;
    memcpy(kernel, s->target, n * sizeof *kernel);
    const bool some = memcmp(kernel, s->a->target, n * sizeof *kernel) != 0;
    const int starts = n > KERNEL ? 1 : 2 + 2 * some; /* large graphs: ties to the first alone */
    for (int start = 0; start < starts; start++)
        for (way how = ASAP; how < WAYS; how++) {
            s->last = start % 2, s->work = 0;
            if (!run(s, start < 2 ? kernel : s->a->target, how, b, &gain)) return false;
        }
    s->last = false, s->work = 0;
    return put_back(s, kernel, b);
}

cutset_status cs_demote(cs_work *w, const cs_atoms *a, cs_arena *arena, bool *demote,
                        cs_labels *labels, cutset_error *err)
{
    cs_arena_mark mark = cs_arena_note(arena);
    sieve s = {.a = a, .arena = arena};
    best b = {.some = false};
    s.least = w->opts->min_nodes > UINT32_MAX ? UINT32_MAX : (uint32_t)w->opts->min_nodes;
    s.target = cs_arena_dup(arena, a->target, a->n * sizeof *s.target);
    s.slot = cs_arena_alloc(arena, a->n, sizeof *s.slot);
    s.size = cs_arena_alloc(arena, (size_t)a->n + 1, sizeof *s.size);
    s.exempt = cs_arena_alloc(arena, (size_t)a->n + 1, sizeof *s.exempt);
    int32_t *kernel = cs_arena_alloc(arena, a->n, sizeof *kernel);
    if (!s.target || !s.slot || !s.size || !s.exempt || !kernel || !find_best(&s, kernel, &b))
        return cs_fail_memory(err);
    labels->engines = b.engines;
    memcpy(labels->slot, b.slot, a->n * sizeof *b.slot);
    for (uint32_t v = 0; v < a->n; v++)
        demote[v] = a->target[v] != CS_HOST && b.target[v] == CS_HOST;
    cs_arena_release(arena, mark);
    return CUTSET_OK;
}
