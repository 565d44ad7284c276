/* List packing: engines filled one after the other, as stations of an assembly line (theory: 3.3).
 *
 * Before an engine opens every ready host atom runs, for free. The open engine takes ready atoms by
 * priority while they fit; what they release may follow at once. Several priorities (one follows
 * branches to their end before it begins the next: blocks of a branch share weights), forwards and
 * on the reversed graph, and with several accelerators several orders of them; the best is kept
 * (fewest engines, then fewest parts). The cost of an engine is that of its distinct storages.
 * An atom kept although it is over the budget gets an engine without other weights.
 *
 * Never over a budget. Cost: O((n + m) log n) a packing: looks at atoms that do not fit are bounded
 * by LOOKS in all (then only a few an engine), packings by PACK_WORK atoms (counts, not clocks).
 */
#include <string.h>

#include "plan/work.h"

#define MISFITS 4096     /* atoms that did not fit, looked at in one engine */
#define MISFITS_LATER 16 /* ... once the looks are used up */
#define LOOKS(n) (16 * (uint64_t)(n) + (1u << 20))
#define PACK_WORK (1u << 22)
#define ORDERS_MAX 24

typedef struct packer {
    const cs_atoms *a;
    const cs_costs *c; /* NULL: no budget */
    uint32_t n_targets;
    bool reverse;
    const int32_t *cycle; /* order of the accelerators; NULL: the one with most ready atoms */
    uint32_t n_cycle, at_cycle;
    /* state */
    uint32_t *waits;          /* by atom */
    cs_heap *ready;           /* by target */
    uint32_t *host, n_host;   /* ready host atoms */
    uint32_t *stash, n_stash; /* misfits of the open engine */
    bool *stashed;            /* by atom */
    uint32_t *stamp;          /* by storage: the engine that has it */
    uint32_t *slot;
    uint32_t engine;
    cs_need held;   /* by the open engine */
    uint64_t looks; /* at atoms that did not fit, in this packing */
    bool full;      /* holds an oversized atom: takes nothing that costs */
} packer;

static void enqueue(packer *p, uint32_t atom)
{
    if (p->a->target[atom] == CS_HOST)
        p->host[p->n_host++] = atom;
    else
        cs_heap_push(&p->ready[p->a->target[atom]], atom);
}

static void release_next(packer *p, uint32_t atom)
{
    const uint32_t *row = p->reverse ? p->a->pred : p->a->succ;
    const uint32_t *of = p->reverse ? p->a->pred_of : p->a->succ_of;
    for (uint32_t i = row[atom]; i < row[atom + 1]; i++)
        if (!--p->waits[of[i]]) enqueue(p, of[i]);
}

static void run_hosts(packer *p)
{
    while (p->n_host)
        release_next(p, p->host[--p->n_host]);
}

/* What the atom would add to the open engine. */
static cs_need added(const packer *p, uint32_t atom)
{
    const cs_costs *c = p->c;
    cs_need n = {0, 0};
    for (uint32_t i = c->row[atom]; i < c->row[atom + 1]; i++)
        if (p->stamp[c->storage[i]] != p->engine)
            n = cs_need_add(c, p->a->target[atom], n, c->storage[i]);
    return n;
}

/* An atom over the budget joins an engine only if it holds all that the engine does. */
static bool fits(const packer *p, uint32_t atom, cs_need more)
{
    const cs_need all = cs_need_sum(p->held, more);
    if (p->a->oversized[atom]) {
        const cs_need own = cs_need_of(p->c, p->a, atom);
        return !p->full && all.host == own.host && all.device == own.device;
    }
    if (p->full) return !more.host && !more.device;
    return cs_need_fits(p->c, p->a->target[atom], all);
}

/* Another chance for the misfits that use a storage the open engine has just got. */
static void reconsider(packer *p, uint32_t storage)
{
    const cs_costs *c = p->c;
    const uint32_t first = c->user_row[storage], last = c->user_row[storage + 1];
    if (!p->n_stash || p->looks + (last - first) > LOOKS(p->a->n)) return;
    p->looks += last - first;
    for (uint32_t k = first; k < last; k++) {
        if (!p->stashed[c->user[k]]) continue;
        p->stashed[c->user[k]] = false;
        enqueue(p, c->user[k]);
    }
}

/* Marks the storages as held by the open engine. */
static void hold(packer *p, uint32_t atom)
{
    const cs_costs *c = p->c;
    for (uint32_t i = c->row[atom]; i < c->row[atom + 1]; i++) {
        if (p->stamp[c->storage[i]] == p->engine) continue;
        p->stamp[c->storage[i]] = p->engine;
        reconsider(p, c->storage[i]);
    }
}

static bool place(packer *p, uint32_t atom)
{
    if (p->c) {
        const cs_need more = added(p, atom);
        if (!fits(p, atom, more)) return false;
        p->held = cs_need_sum(p->held, more);
        p->full |= p->a->oversized[atom];
        hold(p, atom);
    }
    p->slot[atom] = p->engine;
    release_next(p, atom);
    return true;
}

static void fill_engine(packer *p, int32_t target)
{
    cs_heap *h = &p->ready[target];
    p->engine++;
    p->held = (cs_need){0, 0};
    p->full = false;
    p->n_stash = 0;
    while (h->len && p->n_stash < (p->looks < LOOKS(p->a->n) ? MISFITS : MISFITS_LATER)) {
        uint32_t atom = cs_heap_pop(h);
        if (!place(p, atom)) {
            p->looks++;
            p->stash[p->n_stash++] = atom;
            p->stashed[atom] = true;
        }
    }
    for (uint32_t i = 0; i < p->n_stash; i++) {
        if (!p->stashed[p->stash[i]]) continue; /* had its second chance */
        p->stashed[p->stash[i]] = false;
        enqueue(p, p->stash[i]);
    }
}

static int32_t next_target(packer *p)
{
    if (!p->cycle) {
        int32_t best = CS_HOST;
        for (uint32_t t = 0; t < p->n_targets; t++)
            if (p->ready[t].len && (best == CS_HOST || p->ready[t].len > p->ready[best].len))
                best = (int32_t)t;
        return best;
    }
    for (uint32_t i = 0; i < p->n_cycle; i++) {
        int32_t t = p->cycle[p->at_cycle++ % p->n_cycle];
        if (p->ready[t].len) return t;
    }
    return CS_HOST;
}

/* One packing; slots are numbered in the direction of the packing, then turned around. */
static void pack_once(packer *p, cs_labels *out)
{
    const cs_atoms *a = p->a;
    const uint32_t *row = p->reverse ? a->succ : a->pred;
    p->slot = out->slot;
    for (uint32_t t = 0; t < p->n_targets; t++)
        p->ready[t].largest_id = p->reverse;
    p->engine = p->n_host = p->n_stash = p->at_cycle = 0;
    p->looks = 0;
    if (p->c) memset(p->stamp, 0, p->c->n_storages * sizeof *p->stamp);
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t v = p->reverse ? a->n - 1 - i : i;
        out->slot[v] = 0;
        p->waits[v] = row[v + 1] - row[v];
        if (!p->waits[v]) enqueue(p, v);
    }
    run_hosts(p);
    for (int32_t t; (t = next_target(p)) != CS_HOST; run_hosts(p))
        fill_engine(p, t);
    out->engines = p->engine;
    for (uint32_t v = 0; p->reverse && v < a->n; v++)
        if (out->slot[v]) out->slot[v] = p->engine + 1 - out->slot[v];
}

/* ---- priorities ---- */

/* An atom's own cost as a share of its budget, 0..2^31. */
static uint32_t share(const cs_costs *c, const cs_atoms *a, uint32_t atom)
{
    int32_t t = a->target[atom];
    if (!c || t == CS_HOST) return 0;
    const cs_need own = cs_need_of(c, a, atom);
    const int64_t cost[2] = {own.host, own.device}, cap[2] = {c->host_cap[t], c->device_cap[t]};
    uint32_t most = 0;
    for (int d = 0; d < 2; d++) {
        uint32_t s = cost[d] >= cap[d]
                         ? 1u << 31
                         : (uint32_t)(((unsigned __int128)cost[d] << 31) / (uint64_t)cap[d]);
        if (cost[d] && s > most) most = s;
    }
    return most;
}

enum { DEEP_BIG, DEEP_BRANCH, DEEP_SMALL, BIG_DEEP, DEEP_ONLY, PRIORITIES };

/* rank[v] = place of v in a depth-first topological order: after an atom comes what only it held
 * up. `waits` and `stack` are scratch. */
static void rank_branches(const cs_atoms *a, bool reverse, uint32_t *waits, uint32_t *stack,
                          uint32_t *rank)
{
    const uint32_t *before = reverse ? a->succ : a->pred, *row = reverse ? a->pred : a->succ;
    const uint32_t *of = reverse ? a->pred_of : a->succ_of;
    uint32_t n = 0, next = 0;
    for (uint32_t i = 0; i < a->n; i++) { /* the first to come ends on top */
        const uint32_t v = reverse ? i : a->n - 1 - i;
        if (!(waits[v] = before[v + 1] - before[v])) stack[n++] = v;
    }
    while (n) {
        const uint32_t v = stack[--n];
        rank[v] = next++;
        for (uint32_t i = row[v + 1]; i-- > row[v];)
            if (!--waits[of[i]]) stack[n++] = of[i];
    }
}

static void make_keys(int priority, const cs_atoms *a, const uint32_t *depth,
                      const uint32_t *shares, const uint32_t *rank, uint64_t *key)
{
    for (uint32_t v = 0; v < a->n; v++) {
        uint64_t deep = UINT32_MAX - depth[v], big = UINT32_MAX - shares[v];
        key[v] = priority == DEEP_BIG      ? deep << 32 | big
                 : priority == DEEP_BRANCH ? deep << 32 | rank[v]
                 : priority == DEEP_SMALL  ? deep << 32 | shares[v]
                 : priority == BIG_DEEP    ? big << 32 | deep
                                           : deep << 32;
    }
}

/* Orders of the accelerators in use, `count` rows of `n`: all permutations for up to four. */
static uint32_t make_orders(const cs_atoms *a, uint32_t n_targets, int32_t orders[ORDERS_MAX][4],
                            uint32_t *n)
{
    int32_t used[CS_MAX_TARGETS];
    uint32_t seen = 0;
    *n = 0;
    for (uint32_t v = 0; v < a->n; v++)
        if (a->target[v] != CS_HOST) seen |= 1u << a->target[v];
    for (uint32_t t = 0; t < n_targets; t++)
        if (seen >> t & 1) used[(*n)++] = (int32_t)t;
    if (*n < 2 || *n > 4) return 0;
    uint32_t count = 0, total = 1;
    for (uint32_t i = 2; i <= *n; i++)
        total *= i;
    for (uint32_t code = 0; code < total; code++, count++) {
        int32_t left[4];
        memcpy(left, used, *n * sizeof *left);
        for (uint32_t i = 0, rest = code; i < *n; i++) {
            uint32_t pick = rest % (*n - i);
            rest /= *n - i;
            orders[count][i] = left[pick];
            memmove(left + pick, left + pick + 1, (*n - i - pick - 1) * sizeof *left);
        }
    }
    return count;
}

static bool packer_init(packer *p, const cs_work *w, const cs_atoms *a, const cs_costs *c,
                        cs_arena *arena)
{
    *p = (packer){.a = a, .c = c, .n_targets = w->n_targets};
    uint32_t *count = cs_arena_zalloc(arena, w->n_targets, sizeof *count);
    p->waits = cs_arena_alloc(arena, a->n, sizeof *p->waits);
    p->ready = cs_arena_zalloc(arena, w->n_targets, sizeof *p->ready);
    p->host = cs_arena_alloc(arena, a->n, sizeof *p->host);
    p->stash = cs_arena_alloc(arena, MISFITS, sizeof *p->stash);
    p->stashed = cs_arena_zalloc(arena, a->n, sizeof *p->stashed);
    p->stamp = c ? cs_arena_zalloc(arena, c->n_storages, sizeof *p->stamp) : NULL;
    if (!count || !p->waits || !p->ready || !p->host || !p->stash || !p->stashed ||
        (c && !p->stamp))
        return false;
    for (uint32_t v = 0; v < a->n; v++)
        if (a->target[v] != CS_HOST) count[a->target[v]]++;
    for (uint32_t t = 0; t < w->n_targets; t++)
        if (!(p->ready[t].at = cs_arena_alloc(arena, count[t], sizeof(uint32_t)))) return false;
    return true;
}

/* Packs once, and keeps the result if it is better. */
static bool attempt(packer *p, cs_labels *now, cs_labels *best, cs_arena *arena)
{
    pack_once(p, now);
    if (best->engines && now->engines > best->engines) return true;
    if (!cs_labels_stab(now, p->a, arena)) return false;
    if (!best->engines || now->engines < best->engines || now->parts < best->parts)
        cs_labels_copy(best, now, p->a->n);
    return true;
}

cutset_status cs_pack(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                      uint32_t lower, cs_arena *arena, cs_labels *best, cutset_error *err)
{
    cs_arena_mark mark = cs_arena_note(arena);
    packer p;
    cs_labels now;
    uint64_t *key = cs_arena_alloc(arena, a->n, sizeof *key);
    uint32_t *shares = cs_arena_alloc(arena, a->n, sizeof *shares);
    uint32_t *rank = cs_arena_alloc(arena, a->n, sizeof *rank);
    bool ok =
        key && shares && rank && cs_labels_init(&now, a, arena) && packer_init(&p, w, a, c, arena);
    if (!ok) return cs_fail_memory(err);
    for (uint32_t v = 0; v < a->n; v++)
        shares[v] = share(c, a, v);
    int32_t orders[ORDERS_MAX][4];
    uint32_t n_orders = make_orders(a, w->n_targets, orders, &p.n_cycle);
    int priorities = c ? PRIORITIES : 1;
    uint64_t work = 0;
    for (uint32_t t = 0; t < w->n_targets; t++)
        p.ready[t].key = key;
    best->engines = 0;
    for (int priority = 0; ok && priority < priorities; priority++) {
        for (int reverse = 0; ok && reverse < 2; reverse++) {
            p.reverse = reverse;
            if (priority == DEEP_BRANCH) rank_branches(a, reverse, p.waits, p.host, rank);
            make_keys(priority, a, reverse ? l->lam : l->mu, shares, rank, key);
            for (uint32_t order = 0; ok && order <= n_orders; order++) {
                if (best->engines && (work += a->n) > PACK_WORK) goto done;
                p.cycle = order < n_orders ? orders[order] : NULL;
                ok = attempt(&p, &now, best, arena);
                cutset_status s = cs_progress(&w->opts->progress, "packing", work, PACK_WORK, err);
                if (s) return s;
            }
        }
        if (best->engines == lower && priority)
            break; /* proved; a second priority may still have saved a part */
    }
done:
    cs_arena_release(arena, mark);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}
