/* Memory: what each atom costs on its target, and atoms that no engine can hold.
 *
 * The cost of a set of nodes is the sum over its distinct storages: monotone, and at most the sum of
 * its parts. An atom over the budget alone has its patterns broken where its pieces then fit;
 * otherwise --oversize decides. Cost: linear in reads and storages.
 */
#include <stdio.h>
#include <string.h>

#include "plan/work.h"

typedef struct collector {
    cs_ids *out;
    uint32_t *seen; /* by storage: atom + 1 that listed it last */
    uint32_t atom;
} collector;

static bool add_storage(void *payload, uint32_t storage)
{
    collector *c = payload;
    if (c->seen[storage] == c->atom + 1) return true;
    c->seen[storage] = c->atom + 1;
    return cs_vec_push(c->out, storage);
}

static bool add_node(collector *c, const cs_graph *g, uint32_t node)
{
    return cs_node_storages(g, &g->nodes.at[node], add_storage, c);
}

static bool list_storages(cs_work *w, const cs_atoms *a, cs_arena *arena, cs_costs *c)
{
    cs_ids all = {0};
    collector col = {&all, cs_arena_zalloc(arena, c->n_storages, sizeof *col.seen), 0};
    c->row = cs_arena_alloc(arena, (size_t)a->n + 1, sizeof *c->row);
    bool ok = col.seen && c->row;
    for (uint32_t i = 0; ok && i < a->n; i++) {
        c->row[i] = (uint32_t)all.len;
        col.atom = i;
        if (a->target[i] == CS_HOST) continue;
        for (uint32_t k = a->first[i]; ok && k < a->first[i + 1]; k++)
            ok = add_node(&col, w->g, a->node[k]);
    }
    if (ok) {
        c->row[a->n] = (uint32_t)all.len;
        c->storage = cs_arena_dup(arena, all.at, all.len * sizeof *all.at);
        ok = c->storage != NULL;
    }
    cs_vec_fini(&all);
    return ok;
}

static bool list_users(const cs_atoms *a, cs_arena *arena, cs_costs *c)
{
    uint32_t n = c->n_storages;
    c->user_row = cs_arena_zalloc(arena, (size_t)n + 2, sizeof *c->user_row);
    c->user = cs_arena_alloc(arena, c->row[a->n], sizeof *c->user);
    if (!c->user_row || !c->user) return false;
    for (uint32_t i = 0; i < c->row[a->n]; i++)
        c->user_row[c->storage[i] + 2]++;
    for (uint32_t s = 2; s < n + 2; s++)
        c->user_row[s] += c->user_row[s - 1];
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = c->row[i]; k < c->row[i + 1]; k++)
            c->user[c->user_row[c->storage[k] + 1]++] = i;
    return true;
}

cutset_status cs_costs_build(cs_work *w, const cs_atoms *atoms, cs_arena *arena, cs_costs *out,
                             cutset_error *err)
{
    const cs_storage *storages = w->g->storages.at;
    uint32_t n = (uint32_t)w->g->storages.len;
    *out = (cs_costs){.n_storages = n};
    out->host = cs_arena_alloc(arena, (size_t)n * w->n_targets, sizeof *out->host);
    out->device = cs_arena_alloc(arena, (size_t)n * w->n_targets, sizeof *out->device);
    out->host_cap = cs_arena_alloc(arena, w->n_targets, sizeof *out->host_cap);
    out->device_cap = cs_arena_alloc(arena, w->n_targets, sizeof *out->device_cap);
    if (!out->host || !out->device || !out->host_cap || !out->device_cap ||
        !list_storages(w, atoms, arena, out) || !list_users(atoms, arena, out))
        return cs_fail_memory(err);
    for (uint32_t t = 0; t < w->n_targets; t++) {
        const cs_memory_model *m = &w->targets[t]->memory;
        out->host_cap[t] = w->opts->host_memory ? w->opts->host_memory - m->host_base : INT64_MAX;
        out->device_cap[t] =
            w->opts->device_memory ? w->opts->device_memory - m->device_base : INT64_MAX;
        for (uint32_t s = 0; s < n; s++) {
            out->host[(size_t)t * n + s] = cs_memory_host(m, &storages[s]);
            out->device[(size_t)t * n + s] = cs_memory_device(m, &storages[s]);
        }
    }
    return CUTSET_OK;
}

/* ---- atoms over the budget ---- */

bool cs_need_fits(const cs_costs *c, int32_t t, cs_need n)
{
    return n.host <= c->host_cap[t] && n.device <= c->device_cap[t];
}

cs_need cs_need_add(const cs_costs *c, int32_t t, cs_need n, uint32_t storage)
{
    size_t at = (size_t)t * c->n_storages + storage;
    return cs_need_sum(n, (cs_need){c->host[at], c->device[at]});
}

cs_need cs_need_of(const cs_costs *c, const cs_atoms *a, uint32_t atom)
{
    cs_need n = {0, 0};
    for (uint32_t k = c->row[atom]; k < c->row[atom + 1]; k++)
        n = cs_need_add(c, a->target[atom], n, c->storage[k]);
    return n;
}

/* Would every piece of the atom fit if its patterns were broken? Pieces are the user's groups. */
static int pieces_fit(cs_work *w, const cs_atoms *a, const cs_costs *c, uint32_t atom)
{
    cs_ids list = {0};
    cs_arena_mark mark = cs_arena_note(&w->arena);
    collector col = {&list, cs_arena_zalloc(&w->arena, c->n_storages, sizeof *col.seen), 0};
    int answer = col.seen ? 1 : -1;
    for (uint32_t i = a->first[atom]; answer == 1 && i < a->first[atom + 1]; i++) {
        uint32_t class = cs_union_find(w->group, a->node[i]);
        cs_need n = {0, 0};
        list.len = 0;
        col.atom = i;
        for (uint32_t k = a->first[atom]; answer == 1 && k < a->first[atom + 1]; k++)
            if (cs_union_find(w->group, a->node[k]) == class && !add_node(&col, w->g, a->node[k]))
                answer = -1;
        for (size_t k = 0; k < list.len; k++)
            n = cs_need_add(c, a->target[atom], n, list.at[k]);
        if (answer == 1 && !cs_need_fits(c, a->target[atom], n)) answer = 0;
    }
    cs_vec_fini(&list);
    cs_arena_release(&w->arena, mark);
    return answer;
}

/* "%a takes 604 bytes", or "%a and 3 more that must stay together take ...". */
static void spell_need(const cs_work *w, const cs_atoms *a, uint32_t atom, int64_t bytes,
                       char *text, size_t size)
{
    char buffer[16], human[16];
    cs_span label = cs_node_label(w->g, a->node[a->first[atom]], buffer);
    uint32_t more = cs_atom_size(a, atom) - 1;
    cs_format_size(bytes, human);
    if (more)
        snprintf(text, size, "%%%.*s and %u more that must stay together take %lld bytes (%s)",
                 CS_FMT(label), more, (long long)bytes, human);
    else
        snprintf(text, size, "%%%.*s takes %lld bytes (%s)", CS_FMT(label), (long long)bytes,
                 human);
}

/* What an atom takes where it is over, and the budget it is over. */
typedef struct excess {
    int64_t bytes, budget;
    const char *memory, *option; /* what it is of, and what sets it */
} excess;

static excess excess_of(const cs_work *w, const cs_atoms *a, const cs_costs *c, uint32_t atom)
{
    int32_t t = a->target[atom];
    const cs_memory_model *m = &w->targets[t]->memory;
    cs_need n = cs_need_of(c, a, atom);
    if (n.host > c->host_cap[t])
        return (excess){cs_sat_add(n.host, m->host_base), w->opts->host_memory, "host memory",
                        "--host-memory"};
    return (excess){cs_sat_add(n.device, m->device_base), w->opts->device_memory, "device memory",
                    "--device-memory"};
}

static cutset_status refuse(const cs_work *w, const cs_atoms *a, const cs_costs *c, uint32_t atom,
                            uint32_t n_over, cutset_error *err)
{
    char what[400], human[16], others[60] = "";
    excess e = excess_of(w, a, c, atom);
    spell_need(w, a, atom, e.bytes, what, sizeof what);
    cs_format_size(e.budget, human);
    if (n_over > 1) snprintf(others, sizeof others, ", the largest of %u that are", n_over);
    cs_fail(err, CUTSET_NO,
            "%s alone on %s, over %s %lld (%s)%s%s: raise the budget, or use --oversize=%s", what,
            w->targets[a->target[atom]]->name, e.option, (long long)e.budget, human, others,
            a->pinned[atom] ? "; it is pinned" : "", a->pinned[atom] ? "keep" : "host or keep");
    cs_error_about(err, CUTSET_ABOUT_BUDGET, e.bytes, e.budget);
    for (uint32_t i = a->first[atom]; i < a->first[atom + 1]; i++)
        cs_error_node(err, w->g, a->node[i]);
    return CUTSET_NO;
}

static cutset_status move_to_host(cs_work *w, const cs_atoms *a, const cs_costs *c, uint32_t atom,
                                  cutset_error *err)
{
    char what[400];
    excess e = excess_of(w, a, c, atom);
    cs_str why;
    spell_need(w, a, atom, e.bytes, what, sizeof what);
    cutset_status s = cs_words(w, &why, err, "%s alone, over the %s budget of %lld", what, e.memory,
                               (long long)e.budget);
    if (!s) cs_atom_to_host(w, a, atom, CS_RULE_BUDGET, why);
    return s;
}

/* Atoms that hold a pattern; the answer is in the work arena. */
static bool *atoms_with_patterns(cs_work *w, const cs_atoms *a)
{
    bool *has = cs_arena_zalloc(&w->arena, a->n, sizeof *has);
    for (size_t i = 0; has && i < w->matches.len; i++)
        if (!w->matches.at[i].broken) has[a->of[w->match_nodes.at[w->matches.at[i].first]]] = true;
    return has;
}

typedef struct overs {
    uint32_t n, worst; /* atoms that --oversize refuses, and the one that takes most */
    int64_t most;
    bool *breaks; /* by atom: its patterns go */
    bool changed;
} overs;

/* One atom over the budget, as --oversize says. */
static cutset_status oversized(cs_work *w, cs_atoms *a, const cs_costs *c, uint32_t atom,
                               bool has_pattern, overs *o, cutset_error *err)
{
    int pieces = has_pattern ? pieces_fit(w, a, c, atom) : 0;
    if (pieces < 0) return cs_fail_memory(err);
    if (pieces) {
        char buffer[16];
        cs_span label = cs_node_label(w->g, a->node[a->first[atom]], buffer);
        o->breaks[atom] = o->changed = true;
        return cs_plan_note(w, err,
                            "the pattern at %%%.*s fits the budget only when broken: broken",
                            CS_FMT(label));
    }
    if (w->opts->oversize == CUTSET_OVERSIZE_KEEP) {
        a->oversized[atom] = true;
        return CUTSET_OK;
    }
    if (w->opts->oversize == CUTSET_OVERSIZE_HOST && !a->pinned[atom]) {
        o->changed = true;
        return move_to_host(w, a, c, atom, err);
    }
    int64_t bytes = excess_of(w, a, c, atom).bytes;
    if (!o->n++ || bytes > o->most) o->worst = atom, o->most = bytes;
    return CUTSET_OK;
}

cutset_status cs_oversize(cs_work *w, cs_atoms *atoms, const cs_costs *costs, bool *changed,
                          cutset_error *err)
{
    cs_arena_mark mark = cs_arena_note(&w->arena);
    bool *has = atoms_with_patterns(w, atoms);
    overs o = {.breaks = cs_arena_zalloc(&w->arena, atoms->n, sizeof *o.breaks)};
    cutset_status s = has && o.breaks ? CUTSET_OK : cs_fail_memory(err);
    for (uint32_t a = 0; !s && a < atoms->n; a++) {
        int32_t t = atoms->target[a];
        if (t != CS_HOST && !cs_need_fits(costs, t, cs_need_of(costs, atoms, a)))
            s = oversized(w, atoms, costs, a, has[a], &o, err);
    }
    if (!s && o.n) s = refuse(w, atoms, costs, o.worst, o.n, err);
    if (!s && o.changed) cs_patterns_break(w, atoms, o.breaks);
    *changed = o.changed;
    cs_arena_release(&w->arena, mark);
    return s;
}
