/* How small engines may be (--min-nodes) and how many there may be (--max-engines).
 *
 * Small graphs: the best plan under all options at once (small.c). One accelerator without
 * budgets: heuristics that are close to the best for the least size (demote.c), the exact minimum
 * cut for the number (limit.c). After packing: the smallest engine that is too small goes, then
 * the engine that is worth least, one a round and after SINGLE_STEPS rounds all at once; then all
 * is planned anew. What goes to the host has its rule and sentence; the rounds end since each
 * sends something.
 */
#include "plan/work.h"

#define SINGLE_STEPS 64

static bool has_limit(const cs_work *w, const cs_labels *l)
{
    return w->opts->max_engines && l->engines > w->opts->max_engines;
}

/* Could an engine be too small? */
static bool is_sized(const cs_work *w, const cs_atoms *a)
{
    bool some = false;
    for (uint32_t v = 0; w->opts->min_nodes > 0 && v < a->n; v++)
        some |= a->target[v] != CS_HOST && !a->exempt[v] && a->counted[v] < w->opts->min_nodes;
    return some;
}

/* Everything marked, for one reason. */
static cutset_status send_marked(cs_work *w, const cs_atoms *a, const bool *demote, cs_rule rule,
                                 bool *changed, cutset_error *err)
{
    cs_str why = CS_NONE;
    cutset_status s = CUTSET_OK;
    for (uint32_t v = 0; !s && v < a->n; v++) {
        if (!demote[v]) continue;
        if (why == CS_NONE)
            s = rule == CS_RULE_SIZE
                    ? cs_words(w, &why, err, "no engine of %lld nodes or more can hold it",
                               (long long)w->opts->min_nodes)
                    : cs_words(w, &why, err, "with it there would be more than %lld engine%s",
                               (long long)w->opts->max_engines,
                               w->opts->max_engines == 1 ? "" : "s");
        if (!s) cs_atom_to_host(w, a, v, rule, why);
        *changed = true;
    }
    return s;
}

static cutset_status small(cs_work *w, const cs_atoms *a, const cs_costs *c, cs_labels *labels,
                           bool *changed, cutset_error *err)
{
    bool found;
    bool *size = cs_arena_zalloc(&w->arena, a->n, sizeof *size);
    bool *limit = cs_arena_zalloc(&w->arena, a->n, sizeof *limit);
    if (!size || !limit) return cs_fail_memory(err);
    cutset_status s = cs_small_plan(w, a, c, 0, &w->arena, size, labels, &found, err);
    if (!s && found && has_limit(w, labels)) {
        s = cs_small_plan(w, a, c, (uint32_t)w->opts->max_engines, &w->arena, limit, labels, &found,
                          err);
        for (uint32_t v = 0; v < a->n; v++) { /* what would go anyway, goes for its size */
            size[v] &= limit[v];
            limit[v] &= !size[v];
        }
        if (!s && !found) s = cs_limit_refuse(w, a, err);
    }
    if (!s) s = send_marked(w, a, size, CS_RULE_SIZE, changed, err);
    return s ? s : send_marked(w, a, limit, CS_RULE_LIMIT, changed, err);
}

static cutset_status levelled(cs_work *w, const cs_atoms *a, const cs_levels *l, bool sized,
                              cs_labels *labels, bool *changed, cutset_error *err)
{
    cutset_status s = CUTSET_OK;
    labels->engines = l->r;
    bool *demote = cs_arena_zalloc(&w->arena, a->n, sizeof *demote);
    if (!demote || (!sized && !cs_levels_slots(a, &w->arena, labels->slot)))
        return cs_fail_memory(err);
    if (sized) s = cs_demote(w, a, &w->arena, demote, labels, err);
    if (!s && sized) s = send_marked(w, a, demote, CS_RULE_SIZE, changed, err);
    if (s || *changed || !has_limit(w, labels)) return s;
    s = cs_limit(w, a, l, &w->arena, demote, err);
    return s ? s : send_marked(w, a, demote, CS_RULE_LIMIT, changed, err);
}

cutset_status cs_sizes_place(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                             bool packed, cs_labels *labels, bool *placed, bool *searched,
                             bool *changed, cutset_error *err)
{
    const bool sized = is_sized(w, a), heuristic = packed || w->opts->connected;
    *placed = true;
    if ((sized || (heuristic && w->opts->max_engines)) && cs_small_is(a, c)) {
        *searched = !sized;
        return small(w, a, c, labels, changed, err);
    }
    if (!heuristic) return levelled(w, a, l, sized, labels, changed, err);
    *placed = false;
    return CUTSET_OK;
}

cutset_status cs_sizes_search(cs_work *w, const cs_atoms *a, const cs_costs *c, cs_labels *labels,
                              bool *searched, cutset_error *err)
{
    if (!cs_small_is(a, c) || is_sized(w, a)) return CUTSET_OK;
    bool *none = cs_arena_zalloc(&w->arena, a->n, sizeof *none); /* nothing has to go */
    if (!none) return cs_fail_memory(err);
    return cs_small_plan(w, a, c, 0, &w->arena, none, labels, searched, err);
}

/* An atom kept over the budget lets others in that add nothing to it. Where the engine is then
 * split into connected pieces, one without that atom may be over the budget. */
bool cs_sizes_fit(const cs_atoms *a, const cs_costs *c, cs_arena *arena, cs_labels *labels)
{
    const cs_arena_mark mark = cs_arena_note(arena);
    const uint32_t n = labels->engines;
    cs_need *need = cs_arena_zalloc(arena, (size_t)n + 1, sizeof *need);
    uint32_t *stamp = cs_arena_zalloc(arena, c->n_storages, sizeof *stamp);
    uint32_t *row = cs_arena_zalloc(arena, (size_t)n + 2, sizeof *row);
    uint32_t *member = cs_arena_alloc(arena, a->n, sizeof *member);
    if (!need || !stamp || !row || !member) return false;
    for (uint32_t v = 0; v < a->n; v++)
        row[labels->slot[v] + 1]++;
    for (uint32_t k = 0; k <= n; k++)
        row[k + 1] += row[k];
    const uint32_t first = row[1];
    for (uint32_t v = 0; v < a->n; v++)
        member[row[labels->slot[v]]++] = v; /* row[k] is now the end of engine k */
    labels->engines = 0;
    for (uint32_t i = first, k = 1; k <= n; k++) {
        bool over = false, large = false;
        for (uint32_t j = i; j < row[k]; j++) {
            const uint32_t v = member[j];
            large |= a->oversized[v];
            for (uint32_t s = c->row[v]; s < c->row[v + 1]; s++) {
                if (stamp[c->storage[s]] == k) continue;
                stamp[c->storage[s]] = k;
                need[k] = cs_need_add(c, a->target[v], need[k], c->storage[s]);
            }
            over = !cs_need_fits(c, a->target[v], need[k]);
        }
        for (uint32_t begin = i; i < row[k]; i++) {
            labels->engines += i == begin || (over && !large);
            labels->slot[member[i]] = labels->engines;
        }
    }
    cs_arena_release(arena, mark);
    return true;
}

/* The smallest engine that is too small goes to the host; `all`: all of them. */
static cutset_status drop_short(cs_work *w, const cs_atoms *a, const cs_labels *labels, bool all,
                                bool *changed, cutset_error *err)
{
    const uint64_t least = (uint64_t)w->opts->min_nodes;
    uint64_t *size = cs_arena_zalloc(&w->arena, (size_t)labels->engines + 1, sizeof *size);
    bool *exempt = cs_arena_zalloc(&w->arena, (size_t)labels->engines + 1, sizeof *exempt);
    if (!size || !exempt) return cs_fail_memory(err);
    for (uint32_t v = 0; v < a->n; v++) {
        size[labels->slot[v]] += a->counted[v];
        exempt[labels->slot[v]] |= a->exempt[v];
    }
    uint32_t smallest = 0;
    for (uint32_t k = 1; k <= labels->engines; k++)
        if (size[k] < least && !exempt[k] && (!smallest || size[k] < size[smallest])) smallest = k;
    cutset_status s = CUTSET_OK;
    for (uint32_t v = 0; smallest && !s && v < a->n; v++) {
        const uint32_t k = labels->slot[v];
        if (!k || (all ? size[k] >= least || exempt[k] : k != smallest)) continue;
        cs_str why;
        s = cs_words(w, &why, err, "its engine would have %llu nodes, fewer than %lld",
                     (unsigned long long)size[k], (long long)least);
        if (!s) cs_atom_to_host(w, a, v, CS_RULE_SIZE, why);
        *changed = true;
    }
    return s;
}

cutset_status cs_sizes_trim(cs_work *w, const cs_atoms *a, const cs_labels *labels, uint32_t round,
                            bool *changed, cutset_error *err)
{
    const bool all = round >= SINGLE_STEPS;
    cutset_status s = CUTSET_OK;
    if (is_sized(w, a)) s = drop_short(w, a, labels, all, changed, err);
    if (s || *changed || !has_limit(w, labels)) return s;
    bool *demote = cs_arena_zalloc(&w->arena, a->n, sizeof *demote);
    if (!demote) return cs_fail_memory(err);
    s = cs_limit_engines(w, a, labels, all, &w->arena, demote, err);
    return s ? s : send_marked(w, a, demote, CS_RULE_LIMIT, changed, err);
}
