/* A lower bound from chains of milestones, for graphs in which the order forbids what the sum of the
 * weights would allow.
 *
 * Whatever lies between atoms u and v (both included) is in the engines from u's to v's. So
 *     level(v) >= level(u) + need(u, v) - 1,
 * where need is the engines that this set takes by itself: its bytes over the budget, rounded up,
 * and one for each atom kept over the budget; at least two if a host atom lies between. The largest
 * level is a bound, and the milestones on the way to it are the certificate. Exact for a chain
 * without shared weights: what next-fit fills cannot be filled with less.
 *
 * Up to EXACT atoms the whole set between is weighed: O(n^3 / 64) and a look at each member. Above,
 * only its heaviest path, of weights that no other atom reads, in O(n m) up to PATH_WORK; beyond
 * that there is no such bound.
 */
#include <string.h>

#include "plan/work.h"

#define EXACT 400
#define PATH_WORK (1u << 24)

typedef struct milestones {
    const cs_atoms *a;
    const cs_costs *c;
    int32_t target;
    const bool *left_out; /* by storage */
    uint32_t *stamp;      /* by storage: the last set that counted it */
    uint32_t sets;
    cs_chain *out;
} milestones;

static bool counts(const milestones *m, uint32_t atom) { return m->a->target[atom] == m->target; }

static uint32_t engines_for(int64_t bytes, int64_t cap)
{
    if (bytes <= 0 || cap <= 0 || cap == INT64_MAX) return 0;
    const uint64_t n = ((uint64_t)bytes - 1) / (uint64_t)cap + 1;
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* Engines for weights that cost this much. */
static uint32_t engines_for_need(const milestones *m, cs_need n)
{
    const uint32_t h = engines_for(n.host, m->c->host_cap[m->target]);
    const uint32_t d = engines_for(n.device, m->c->device_cap[m->target]);
    return h > d ? h : d;
}

static void raise_level(milestones *m, uint32_t u, uint32_t v, uint32_t need)
{
    if (need < 1) need = 1;
    const uint64_t level = (uint64_t)m->out->level[u] + need - 1;
    if (level <= m->out->level[v] || level > UINT32_MAX) return;
    m->out->level[v] = (uint32_t)level;
    m->out->from[v] = u;
}

/* ---- the whole set between ---- */

/* Adds the storages of `atom` that this set has not counted yet. */
static void weigh_atom(milestones *m, uint32_t atom, cs_need *sum)
{
    const cs_costs *c = m->c;
    for (uint32_t k = c->row[atom]; k < c->row[atom + 1]; k++) {
        const uint32_t s = c->storage[k];
        if (m->left_out[s] || m->stamp[s] == m->sets) continue;
        m->stamp[s] = m->sets;
        *sum = cs_need_add(c, m->target, *sum, s);
    }
}

/* Engines that the atoms in both sets of bits take. */
static uint32_t need_between(milestones *m, const uint64_t *below, const uint64_t *above,
                             uint32_t words)
{
    cs_need sum = {0, 0};
    uint32_t over = 0;
    bool apart = false;
    m->sets++;
    for (uint32_t i = 0; i < words; i++) {
        for (uint64_t bits = below[i] & above[i]; bits; bits &= bits - 1) {
            const uint32_t w = i * 64 + (uint32_t)__builtin_ctzll(bits);
            if (!counts(m, w)) {
                apart = true;
                continue;
            }
            over += m->a->oversized[w];
            weigh_atom(m, w, &sum);
        }
    }
    const uint32_t need = over + engines_for_need(m, sum);
    return apart && need < 2 ? 2 : need;
}

static bool weigh_sets(milestones *m, cs_arena *arena)
{
    const cs_atoms *a = m->a;
    const uint32_t words = cs_bits_words(a->n);
    uint64_t *above = cs_arena_zalloc(arena, (size_t)a->n * words, sizeof *above);
    uint64_t *below = cs_arena_zalloc(arena, (size_t)a->n * words, sizeof *below);
    if (!above || !below) return false;
    for (uint32_t v = a->n; v-- > 0;) { /* what v leads to, and v */
        cs_bits_set(below + (size_t)v * words, v);
        for (uint32_t i = a->succ[v]; i < a->succ[v + 1]; i++)
            cs_bits_join(below + (size_t)v * words, below + (size_t)a->succ_of[i] * words, words);
    }
    for (uint32_t v = 0; v < a->n; v++) {
        uint64_t *row = above + (size_t)v * words; /* what leads to v, and v */
        cs_bits_set(row, v);
        for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++)
            cs_bits_join(row, above + (size_t)a->pred_of[i] * words, words);
        for (uint32_t u = 0; counts(m, v) && u < v; u++)
            if (counts(m, u) && cs_bits_has(row, u))
                raise_level(m, u, v, need_between(m, below + (size_t)u * words, row, words));
    }
    return true;
}

/* ---- the heaviest path between ---- */

typedef struct load { /* of the heaviest path so far; the maxima may be of different paths */
    cs_need bytes;
    uint32_t over;
    bool reached, apart;
} load;

static void heavier(load *to, const load *from)
{
    if (!from->reached) return;
    if (from->bytes.host > to->bytes.host) to->bytes.host = from->bytes.host;
    if (from->bytes.device > to->bytes.device) to->bytes.device = from->bytes.device;
    if (from->over > to->over) to->over = from->over;
    to->apart |= from->apart;
    to->reached = true;
}

/* What an atom brings that no other atom reads. */
static load own_load(const milestones *m, uint32_t v)
{
    const cs_costs *c = m->c;
    load l = {.reached = true, .apart = !counts(m, v)};
    if (l.apart) return l;
    l.over = m->a->oversized[v];
    for (uint32_t k = c->row[v]; k < c->row[v + 1]; k++) {
        const uint32_t s = c->storage[k];
        if (m->left_out[s] || c->user_row[s + 1] - c->user_row[s] > 1) continue;
        l.bytes = cs_need_add(c, m->target, l.bytes, s);
    }
    return l;
}

static void follow_paths(milestones *m, uint32_t u, const load *own, load *at)
{
    const cs_atoms *a = m->a;
    at[u] = own[u];
    for (uint32_t v = u + 1; v < a->n; v++) {
        at[v] = (load){0};
        for (uint32_t i = a->pred[v]; i < a->pred[v + 1]; i++)
            if (a->pred_of[i] >= u) heavier(&at[v], &at[a->pred_of[i]]);
        if (!at[v].reached) continue;
        at[v].bytes = cs_need_sum(at[v].bytes, own[v].bytes);
        at[v].over += own[v].over;
        at[v].apart |= own[v].apart;
        if (!counts(m, v)) continue;
        uint32_t need = engines_for_need(m, at[v].bytes);
        if (at[v].over > need) need = at[v].over;
        raise_level(m, u, v, at[v].apart && need < 2 ? 2 : need);
    }
}

static bool weigh_paths(milestones *m, cs_arena *arena)
{
    const cs_atoms *a = m->a;
    load *own = cs_arena_alloc(arena, a->n, sizeof *own);
    load *at = cs_arena_alloc(arena, a->n, sizeof *at);
    if (!own || !at) return false;
    for (uint32_t v = 0; v < a->n; v++)
        own[v] = own_load(m, v);
    for (uint32_t u = 0; u < a->n; u++)
        if (counts(m, u)) follow_paths(m, u, own, at);
    return true;
}

bool cs_chain_bound(const cs_atoms *a, const cs_costs *c, int32_t target, const bool *left_out,
                    cs_arena *arena, cs_chain *out)
{
    *out = (cs_chain){.last = CS_NONE};
    const uint64_t work = (uint64_t)a->n * ((uint64_t)a->n + a->pred[a->n]);
    if (a->n > EXACT && work > PATH_WORK) return true;
    out->level = cs_arena_alloc(arena, a->n, sizeof *out->level);
    out->from = cs_arena_alloc(arena, a->n, sizeof *out->from);
    if (!out->level || !out->from) return false;
    cs_arena_mark mark = cs_arena_note(arena);
    milestones m = {a, c, target, left_out, NULL, 0, out};
    m.stamp = cs_arena_zalloc(arena, c->n_storages, sizeof *m.stamp);
    if (!m.stamp) return false;
    for (uint32_t v = 0; v < a->n; v++) {
        out->level[v] = counts(&m, v);
        out->from[v] = CS_NONE;
    }
    const bool ok = a->n <= EXACT ? weigh_sets(&m, arena) : weigh_paths(&m, arena);
    for (uint32_t v = 0; ok && v < a->n; v++)
        if (counts(&m, v) && out->level[v] > out->value) out->value = out->level[v], out->last = v;
    cs_arena_release(arena, mark);
    return ok;
}
