/* Lower bounds on the number of engines under a budget (theory: 3.2).
 *
 * Atoms with lam >= i and mu >= j live in engines i .. M-j+1, so
 *     M >= (i-1) + (j-1) + ceil(bytes(S_ij) / budget),
 * where bytes counts each storage once, and each atom kept although over the budget is one engine
 * whose storages are left out. i = j = 1 is the volume bound; no bytes at all gives the path bound.
 * Where the order forbids what the sum allows, a chain of milestones may give more (chain.c).
 * Two families (i = 1 or j = 1) are exact, with a storage counted if any user is in S_ij; the
 * two-dimensional one takes one user a storage (still valid) and is skipped above GRID levels.
 * With several accelerators each has its own levels (everything else separates), and the bounds add
 * up; the path bound over all of them is taken if it is larger. Cost: O(n + storages + r^2).
 */
#include <string.h>

#include "plan/work.h"

#define GRID 1000

typedef struct family { /* of one accelerator */
    const cs_atoms *a;
    const cs_costs *c;
    const cs_levels *l;
    int32_t target;
    bool *left_out; /* by storage: in an atom over the budget */
} family;

static bool counts(const family *f, uint32_t atom) { return f->a->target[atom] == f->target; }

static int64_t cost(const family *f, int d, uint32_t storage)
{
    size_t at = (size_t)f->target * f->c->n_storages + storage;
    return d ? f->c->device[at] : f->c->host[at];
}

/* The user of a storage on this accelerator that reaches furthest by `by_lam`, `by_mu` or both. */
static uint32_t user_of(const family *f, uint32_t s, bool by_lam, bool by_mu)
{
    uint32_t best = CS_NONE, most = 0;
    for (uint32_t k = f->c->user_row[s]; k < f->c->user_row[s + 1]; k++) {
        uint32_t v = f->c->user[k];
        if (!counts(f, v)) continue;
        uint32_t far = (by_lam ? f->l->lam[v] : 0) + (by_mu ? f->l->mu[v] : 0);
        if (best == CS_NONE || far > most) best = v, most = far;
    }
    return best;
}

static void raise_bound(cs_bound *b, uint32_t i, uint32_t j, int d, uint32_t over, int64_t bytes,
                        int64_t cap)
{
    uint64_t engines = over;
    if (bytes > 0 && cap > 0) engines += ((uint64_t)bytes - 1) / (uint64_t)cap + 1;
    uint64_t value = (uint64_t)(i - 1) + (j - 1) + engines;
    if (!engines || value <= b->value || value > UINT32_MAX) return;
    b->value = (uint32_t)value;
    b->kind = i == 1 && j == 1 ? CS_BOUND_VOLUME : CS_BOUND_WINDOW;
    b->i = i, b->j = j, b->dimension = d;
}

/* One family: levels along lam (or mu), the other index is 1. */
static bool one_sided(const family *f, bool along_mu, int d, int64_t cap, cs_arena *arena,
                      cs_bound *b)
{
    cs_arena_mark mark = cs_arena_note(arena);
    const uint32_t *level = along_mu ? f->l->mu : f->l->lam;
    uint32_t r = f->l->r;
    int64_t *bytes = cs_arena_zalloc(arena, (size_t)r + 2, sizeof *bytes);
    uint32_t *over = cs_arena_zalloc(arena, (size_t)r + 2, sizeof *over);
    if (!bytes || !over) return false;
    for (uint32_t s = 0; s < f->c->n_storages; s++) {
        uint32_t v = f->left_out[s] ? CS_NONE : user_of(f, s, !along_mu, along_mu);
        if (v != CS_NONE) bytes[level[v]] = cs_sat_add(bytes[level[v]], cost(f, d, s));
    }
    for (uint32_t v = 0; v < f->a->n; v++)
        over[level[v]] += counts(f, v) && f->a->oversized[v];
    for (uint32_t k = r; k >= 1; k--) {
        bytes[k] = cs_sat_add(bytes[k], bytes[k + 1]);
        over[k] += over[k + 1];
        raise_bound(b, along_mu ? 1 : k, along_mu ? k : 1, d, over[k], bytes[k], cap);
    }
    cs_arena_release(arena, mark);
    return true;
}

static bool two_sided(const family *f, int d, int64_t cap, cs_arena *arena, cs_bound *b)
{
    uint32_t r = f->l->r;
    if (r > GRID || r < 2) return true;
    cs_arena_mark mark = cs_arena_note(arena);
    size_t side = (size_t)r + 2;
    int64_t *bytes = cs_arena_zalloc(arena, side * side, sizeof *bytes);
    uint32_t *over = cs_arena_zalloc(arena, side * side, sizeof *over);
    if (!bytes || !over) return false;
    for (uint32_t s = 0; s < f->c->n_storages; s++) {
        uint32_t v = f->left_out[s] ? CS_NONE : user_of(f, s, true, true);
        if (v == CS_NONE) continue;
        size_t at = f->l->lam[v] * side + f->l->mu[v];
        bytes[at] = cs_sat_add(bytes[at], cost(f, d, s));
    }
    for (uint32_t v = 0; v < f->a->n; v++)
        if (counts(f, v) && f->a->oversized[v]) over[f->l->lam[v] * side + f->l->mu[v]]++;
    for (uint32_t i = r; i >= 1; i--) {
        int64_t row_bytes = 0; /* of row i from mu = r down to j */
        uint32_t row_over = 0;
        for (uint32_t j = r; j >= 1; j--) {
            size_t at = i * side + j;
            row_bytes = cs_sat_add(row_bytes, bytes[at]);
            row_over += over[at];
            bytes[at] = cs_sat_add(row_bytes, bytes[at + side]);
            over[at] = row_over + over[at + side];
            raise_bound(b, i, j, d, over[at], bytes[at], cap);
        }
    }
    cs_arena_release(arena, mark);
    return true;
}

static bool weigh(const family *f, cs_arena *arena, cs_bound *b)
{
    const int64_t cap[2] = {f->c->host_cap[f->target], f->c->device_cap[f->target]};
    for (int d = 0; d < 2; d++)
        if (cap[d] != INT64_MAX &&
            (!one_sided(f, false, d, cap[d], arena, b) ||
             !one_sided(f, true, d, cap[d], arena, b) || !two_sided(f, d, cap[d], arena, b)))
            return false;
    return true;
}

static void mark_left_out(const family *f)
{
    for (uint32_t v = 0; v < f->a->n; v++)
        for (uint32_t k = f->c->row[v]; counts(f, v) && f->a->oversized[v] && k < f->c->row[v + 1];
             k++)
            f->left_out[f->c->storage[k]] = true;
}

/* Levels of one accelerator alone: all others separate as host atoms do. */
static bool levels_alone(const cs_atoms *a, int32_t t, cs_arena *arena, cs_levels *out)
{
    int32_t *only = cs_arena_alloc(arena, a->n, sizeof *only);
    for (uint32_t v = 0; only && v < a->n; v++)
        only[v] = a->target[v] == t ? t : CS_HOST;
    return only && cs_levels_of(a, only, arena, out);
}

static cutset_status bound_of_target(cs_work *w, const cs_atoms *a, const cs_costs *c,
                                     const cs_levels *l, int32_t t, cs_arena *arena, cs_bound *out,
                                     cutset_error *err)
{
    *out = (cs_bound){l->r, CS_BOUND_PATH, 1, 1, t, 0};
    if (!c || !w->budget) return CUTSET_OK;
    family f = {a, c, l, t, cs_arena_zalloc(arena, c->n_storages, sizeof *f.left_out)};
    if (!f.left_out) return cs_fail_memory(err);
    mark_left_out(&f);
    cs_arena_mark mark = cs_arena_note(arena);
    cs_chain chain;
    if (!weigh(&f, arena, out) || !cs_chain_bound(a, c, t, f.left_out, arena, &chain))
        return cs_fail_memory(err);
    if (chain.value > out->value) *out = (cs_bound){chain.value, CS_BOUND_WINDOW, 0, 0, t, 0};
    cs_arena_release(arena, mark);
    return CUTSET_OK;
}

static uint32_t targets_in_use(const cs_atoms *a)
{
    uint32_t seen = 0;
    for (uint32_t v = 0; v < a->n; v++)
        if (a->target[v] != CS_HOST) seen |= 1u << a->target[v];
    return seen;
}

cutset_status cs_bounds(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                        cs_arena *arena, cs_bound *out, cutset_error *err)
{
    uint32_t seen = targets_in_use(a);
    *out = (cs_bound){l->r, CS_BOUND_PATH, 1, 1, CS_HOST, 0};
    if (!(seen & (seen - 1)))
        return seen ? bound_of_target(w, a, c, l, __builtin_ctz(seen), arena, out, err) : CUTSET_OK;
    cs_bound sum = {0, CS_BOUND_VOLUME, 1, 1, CS_HOST, 0};
    for (uint32_t left = seen; left; left &= left - 1) {
        cs_arena_mark mark = cs_arena_note(arena);
        cs_levels alone;
        cs_bound b;
        if (!levels_alone(a, __builtin_ctz(left), arena, &alone)) return cs_fail_memory(err);
        cutset_status s = bound_of_target(w, a, c, &alone, __builtin_ctz(left), arena, &b, err);
        if (s) return s;
        sum.value += b.value;
        if (b.kind != CS_BOUND_VOLUME && b.value > 1) sum.kind = CS_BOUND_WINDOW;
        cs_arena_release(arena, mark);
    }
    if (sum.value > out->value) *out = sum;
    return CUTSET_OK;
}

/* ---- certificates ---- */

/* The nodes whose weights make the sum of a volume or window bound. */
static bool list_weighed(const family *f, const cs_bound *b, bool *listed, cs_ids *out)
{
    bool by_lam = b->i > 1, by_mu = b->j > 1;
    for (uint32_t s = 0; s < f->c->n_storages; s++) {
        uint32_t v = f->left_out[s] ? CS_NONE : user_of(f, s, by_lam, by_mu);
        if (v != CS_NONE && f->l->lam[v] >= b->i && f->l->mu[v] >= b->j && cost(f, b->dimension, s))
            listed[v] = true;
    }
    bool ok = true;
    for (uint32_t v = 0; ok && v < f->a->n; v++) {
        bool over =
            counts(f, v) && f->a->oversized[v] && f->l->lam[v] >= b->i && f->l->mu[v] >= b->j;
        for (uint32_t k = f->a->first[v]; ok && (listed[v] || over) && k < f->a->first[v + 1]; k++)
            ok = cs_vec_push(out, f->a->node[k]);
    }
    return ok;
}

/* The milestones of a chain, in order: the first node of each atom. */
static bool list_milestones(const family *f, cs_arena *arena, cs_ids *out)
{
    cs_chain chain;
    cs_ids back = {0};
    bool ok = cs_chain_bound(f->a, f->c, f->target, f->left_out, arena, &chain);
    for (uint32_t v = ok ? chain.last : CS_NONE; ok && v != CS_NONE; v = chain.from[v])
        ok = cs_vec_push(&back, f->a->node[f->a->first[v]]);
    for (size_t i = back.len; ok && i-- > 0;)
        ok = cs_vec_push(out, back.at[i]);
    cs_vec_fini(&back);
    return ok;
}

/* What proves `b`, the bound of one accelerator. */
static bool certify_target(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                           const cs_bound *b, cs_arena *arena, cs_ids *out)
{
    family f = {a, c, l, b->target, NULL};
    if (b->kind == CS_BOUND_PATH) return cs_levels_path(w, a, l, out);
    f.left_out = cs_arena_zalloc(arena, c->n_storages, sizeof *f.left_out);
    bool *listed = cs_arena_zalloc(arena, a->n, sizeof *listed);
    if (!f.left_out || !listed) return false;
    mark_left_out(&f);
    return b->i ? list_weighed(&f, b, listed, out) : list_milestones(&f, arena, out);
}

bool cs_bounds_certificate(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                           const cs_bound *b, cs_arena *arena, cs_ids *out)
{
    if (b->kind == CS_BOUND_PATH) return cs_levels_path(w, a, l, out);
    uint32_t seen = targets_in_use(a);
    if (!(seen & (seen - 1))) return certify_target(w, a, c, l, b, arena, out);
    for (uint32_t left = seen; left; left &= left - 1) {
        cs_levels alone;
        cs_bound own;
        if (!levels_alone(a, __builtin_ctz(left), arena, &alone) ||
            bound_of_target(w, a, c, &alone, __builtin_ctz(left), arena, &own, NULL) ||
            !certify_target(w, a, c, &alone, &own, arena, out))
            return false;
    }
    return true;
}
