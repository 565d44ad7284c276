/* The decision, phase by phase.
 *
 *     assign -> groups -> boundary rules -> patterns
 *     then until nothing more goes to the host or breaks:
 *         contract -> costs -> atoms over the budget -> slots or packing, --min-nodes,
 *         --max-engines -> bookends
 *     then host parts, bounds, certificate, what each refusal costs
 *
 * The loop ends because a round that repeats has moved a node to the host or broken a pattern.
 * Without a budget and with one accelerator the engines are exactly minimal, and so are the parts.
 */
#include <string.h>

#include "plan/work.h"

#define RANK_ROUNDS 8             /* attempts to move cuts away from values of unknown rank */
#define CONNECTED_WORK (1u << 26) /* atoms looked at for the bound of connected engines */

typedef struct outcome {
    cs_atoms atoms;
    cs_costs costs;
    cs_levels levels;
    cs_labels labels;
    cs_bound bound;
    bool searched; /* labels.engines is the fewest, by search */
} outcome;

static bool several_targets(const cs_work *w, const cs_atoms *a)
{
    int32_t first = CS_HOST;
    if (w->n_targets < 2) return false;
    for (uint32_t v = 0; v < a->n; v++) {
        if (a->target[v] == CS_HOST || a->target[v] == first) continue;
        if (first != CS_HOST) return true;
        first = a->target[v];
    }
    return false;
}

/* Engines of one connected piece each: the better of early and late levels, without a budget. */
static cutset_status connected_slots(cs_work *w, outcome *o, bool packed, cutset_error *err)
{
    const cs_atoms *a = &o->atoms;
    if (packed) {
        const bool ok = cs_labels_connect(&o->labels, a, &w->arena) &&
                        (!w->budget || cs_sizes_fit(a, &o->costs, &w->arena, &o->labels));
        return ok ? CUTSET_OK : cs_fail_memory(err);
    }
    cs_labels late;
    if (!cs_labels_init(&late, a, &w->arena)) return cs_fail_memory(err);
    o->labels.engines = late.engines = o->levels.r;
    for (uint32_t v = 0; v < a->n; v++) {
        bool engine = a->target[v] != CS_HOST;
        o->labels.slot[v] = engine ? o->levels.lam[v] : 0;
        late.slot[v] = engine ? o->levels.r + 1 - o->levels.mu[v] : 0;
    }
    if (!cs_labels_connect(&o->labels, a, &w->arena) || !cs_labels_connect(&late, a, &w->arena))
        return cs_fail_memory(err);
    if (late.engines < o->labels.engines) cs_labels_copy(&o->labels, &late, a->n);
    return CUTSET_OK;
}

/* Engines for every atom, or *changed when something went to the host instead. */
static cutset_status place(cs_work *w, outcome *o, uint32_t round, bool *changed, cutset_error *err)
{
    const cs_atoms *a = &o->atoms;
    if (!cs_levels_of(a, a->target, &w->arena, &o->levels) ||
        !cs_labels_init(&o->labels, a, &w->arena))
        return cs_fail_memory(err);
    const cs_costs *costs = w->budget ? &o->costs : NULL;
    cutset_status s = cs_bounds(w, a, costs, &o->levels, &w->arena, &o->bound, err);
    if (s) return s;
    bool packed = w->budget || several_targets(w, a), placed;
    o->searched = false;
    s = cs_sizes_place(w, a, costs, &o->levels, packed, &o->labels, &placed, &o->searched, changed,
                       err);
    if (s || placed) return s;
    if (packed) s = cs_pack(w, a, costs, &o->levels, o->bound.value, &w->arena, &o->labels, err);
    if (!s && w->opts->connected) s = connected_slots(w, o, packed, err);
    if (!s && o->labels.engines > o->bound.value)
        s = cs_sizes_search(w, a, costs, &o->labels, &o->searched, err);
    return s ? s : cs_sizes_trim(w, a, &o->labels, round, changed, err);
}

/* Rounds until nothing changes. */
static cutset_status settle(cs_work *w, outcome *o, cutset_error *err)
{
    for (uint32_t round = 0;; round++) {
        cs_arena_mark mark = cs_arena_note(&w->arena);
        bool changed = false;
        cutset_status s = cs_contract(w, &w->arena, &o->atoms, err);
        if (!s && w->budget) s = cs_costs_build(w, &o->atoms, &w->arena, &o->costs, err);
        if (!s && w->budget) s = cs_oversize(w, &o->atoms, &o->costs, &changed, err);
        if (!s && !changed) s = place(w, o, round, &changed, err);
        if (!s && !changed && w->opts->bookends)
            s = cs_bookends(w, &o->atoms, &o->labels, &changed, err);
        if (!s && !changed)
            s = cs_labels_stab(&o->labels, &o->atoms, &w->arena) ? CUTSET_OK : cs_fail_memory(err);
        if (s || !changed) return s;
        cs_arena_release(&w->arena, mark);
        s = cs_boundary_settle(w, err);
        if (!s) s = cs_progress(&w->opts->progress, "planning", round, 0, err);
        if (s) return s;
    }
}

/* ---- values of unknown rank on a boundary ---- */

/* Marks values that cross a boundary although nobody knows their rank; how many are new. */
static uint32_t mark_unranked(cs_work *w, const outcome *o)
{
    const cs_graph *g = w->g;
    uint32_t n = 0;
    for (uint32_t v = 0; v < g->values.len; v++) {
        if (g->values.at[v].origin != CS_ORIGIN_NODE || w->no_cross[v] ||
            cs_type_is_ranked(g->pool, g->values.at[v].type))
            continue;
        bool crosses = false;
        for (uint32_t u = g->use[v]; u < g->use[v + 1]; u++)
            crosses |= cs_labels_place(&o->labels, &o->atoms, g->user[u]) !=
                       cs_labels_place(&o->labels, &o->atoms, g->values.at[v].from);
        w->no_cross[v] = crosses;
        n += crosses;
    }
    return n;
}

typedef struct state {
    uint32_t *mask;
    int32_t *target;
    cs_reason *reason;
    bool *broken;
} state;

static bool save(cs_work *w, state *s)
{
    size_t n = w->n_nodes;
    s->mask = cs_arena_dup(&w->arena, w->mask, n * sizeof *w->mask);
    s->target = cs_arena_dup(&w->arena, w->target, n * sizeof *w->target);
    s->reason = cs_arena_dup(&w->arena, w->reason, n * sizeof *w->reason);
    s->broken = cs_arena_zalloc(&w->arena, w->matches.len, sizeof *s->broken);
    for (size_t i = 0; s->broken && i < w->matches.len; i++)
        s->broken[i] = w->matches.at[i].broken;
    return s->mask && s->target && s->reason && s->broken;
}

static void restore(cs_work *w, const state *s)
{
    size_t n = w->n_nodes;
    memcpy(w->mask, s->mask, n * sizeof *w->mask);
    memcpy(w->target, s->target, n * sizeof *w->target);
    memcpy(w->reason, s->reason, n * sizeof *w->reason);
    for (size_t i = 0; i < w->matches.len; i++)
        w->matches.at[i].broken = s->broken[i];
    memset(w->no_cross, 0, w->g->values.len * sizeof *w->no_cross);
}

/* What could not be moved: split will refuse it, so the plan says so. */
static cutset_status note_unranked(cs_work *w, const outcome *o, cutset_error *err)
{
    uint32_t n = mark_unranked(w, o), v = 0;
    if (!n) return CUTSET_OK;
    while (!w->no_cross[v])
        v++;
    cs_span name = cs_name(w->g->pool, w->g->values.at[v].name);
    memset(w->no_cross, 0, w->g->values.len * sizeof *w->no_cross);
    return cs_plan_note(
        w, err,
        "%u values of unknown rank cross a boundary, the first is %%%.*s: parts cannot be "
        "written without --type '%.*s=f32[?,?]'",
        n, CS_FMT(name), CS_FMT(name));
}

/* Moves cuts away from values of unknown rank, if the number of engines stays the same. */
static cutset_status avoid_unranked(cs_work *w, outcome *o, cutset_error *err)
{
    state before;
    uint32_t engines = o->labels.engines;
    size_t notes = w->plan->notes.len;
    if (!mark_unranked(w, o)) return CUTSET_OK;
    if (!save(w, &before)) return cs_fail_memory(err);
    cutset_status s = CUTSET_OK;
    for (uint32_t round = 0; round < RANK_ROUNDS; round++) {
        s = cs_boundary_settle(w, err);
        if (!s) s = settle(w, o, err);
        if (s == CUTSET_NO || (!s && o->labels.engines != engines)) break;
        if (s || !mark_unranked(w, o)) return s;
    }
    restore(w, &before);
    w->plan->notes.len = notes;
    s = cs_boundary_settle(w, err);
    if (!s) s = settle(w, o, err);
    return s ? s : note_unranked(w, o, err);
}

/* ---- the result ---- */

/* Engines that would be saved if one refused node ran on the accelerator: by the path bound. */
static cutset_status price_refusals(cs_work *w, const outcome *o, cutset_error *err)
{
    const cs_atoms *a = &o->atoms;
    if (w->budget || w->n_targets != 1 || w->opts->connected || w->opts->min_nodes > 1 ||
        w->opts->max_engines)
        return CUTSET_OK;
    bool *saved = cs_arena_alloc(&w->arena, a->n, sizeof *saved);
    if (!saved || !cs_levels_saved(a, &o->levels, &w->arena, saved)) return cs_fail_memory(err);
    for (uint32_t v = 0; v < a->n; v++)
        if (a->target[v] == CS_HOST && cs_atom_size(a, v) == 1)
            w->reason[a->node[a->first[v]]].saved = saved[v];
    return CUTSET_OK;
}

/* The pieces that accelerated atoms fall into, as engines 1.. of `pieces`. */
static bool connected_pieces(cs_work *w, const cs_atoms *a, cs_labels *pieces)
{
    if (!cs_labels_init(pieces, a, &w->arena)) return false;
    pieces->engines = w->n_targets;
    for (uint32_t v = 0; v < a->n; v++)
        pieces->slot[v] = (uint32_t)(a->target[v] + 1);
    return cs_labels_connect(pieces, a, &w->arena);
}

/* Connected engines: each piece needs as many as a path has stretches of it, as if all else were
 * host (theory: section 4): one, unless a path leaves and enters it again. Of these, pieces beyond
 * CONNECTED_WORK atoms in all count one each too. The certificate holds the paths one after the
 * other. */
static cutset_status raise_connected_bound(cs_work *w, outcome *o, cs_ids *certificate,
                                           cutset_error *err)
{
    const cs_atoms *a = &o->atoms;
    cs_labels pieces;
    int32_t *only = cs_arena_alloc(&w->arena, a->n, sizeof *only);
    if (!only || !connected_pieces(w, a, &pieces)) return cs_fail_memory(err);
    uint32_t *first = cs_arena_alloc(&w->arena, (size_t)pieces.engines + 1, sizeof *first);
    bool *again = cs_arena_alloc(&w->arena, (size_t)pieces.engines + 1, sizeof *again);
    if (!first || !again || !cs_labels_reentered(w, &pieces, a, first, again))
        return cs_fail_memory(err);
    uint64_t work = 0, sum = 0;
    for (uint32_t k = 1; k <= pieces.engines; k++) {
        if (!again[k]) {
            sum++;
            if (!cs_vec_push(certificate, a->node[a->first[first[k]]])) return cs_fail_memory(err);
            continue;
        }
        cs_arena_mark mark = cs_arena_note(&w->arena);
        cs_levels l;
        if ((work += a->n) > CONNECTED_WORK) {
            sum += pieces.engines - k + 1;
            certificate->len = 0; /* the rest has no path to show */
            break;
        }
        for (uint32_t v = 0; v < a->n; v++)
            only[v] = pieces.slot[v] == k ? a->target[v] : CS_HOST;
        if (!cs_levels_of(a, only, &w->arena, &l) || !cs_levels_path(w, a, &l, certificate))
            return cs_fail_memory(err);
        sum += l.r;
        cs_arena_release(&w->arena, mark);
    }
    if (sum <= o->bound.value || sum > UINT32_MAX) {
        certificate->len = 0;
        return CUTSET_OK;
    }
    o->bound.value = (uint32_t)sum;
    o->bound.kind = CS_BOUND_WINDOW;
    return CUTSET_OK;
}

static cutset_status prove(cs_work *w, outcome *o, cs_decision *out, cutset_error *err)
{
    cs_ids certificate = {0};
    const cs_costs *costs = w->budget ? &o->costs : NULL;
    const uint32_t before = o->bound.value;
    cutset_status s =
        w->opts->connected ? raise_connected_bound(w, o, &certificate, err) : CUTSET_OK;
    const bool raised = o->bound.value > before; /* then it has brought its own certificate */
    if (!s && o->searched && o->labels.engines > o->bound.value) {
        o->bound.value = o->labels.engines;
        o->bound.kind = CS_BOUND_SEARCH;
        certificate.len = 0;
    } else if (!s && !certificate.len && !raised &&
               !cs_bounds_certificate(w, &o->atoms, costs, &o->levels, &o->bound, &w->arena,
                                      &certificate))
        s = cs_fail_memory(err);
    out->engines = o->labels.engines;
    out->engines_bound = o->bound.value;
    out->bound_kind = o->bound.kind;
    out->certificate = certificate.at; /* may be NULL when empty */
    out->n_certificate = (uint32_t)certificate.len;
    return s;
}

static cutset_status decide(cs_work *w, cs_decision *out, cutset_error *err)
{
    outcome o = {0};
    cutset_status s = cs_assign(w, err);
    if (!s) s = cs_groups(w, err);
    if (!s) s = cs_values_init(w, err);
    if (!s) s = cs_boundary_settle(w, err);
    if (!s) s = cs_patterns(w, err);
    if (!s) s = settle(w, &o, err);
    if (!s && w->source->onnx) s = avoid_unranked(w, &o, err);
    if (!s) s = price_refusals(w, &o, err);
    if (!s) s = prove(w, &o, out, err);
    return s ? s : cs_number_parts(w, &o.atoms, &o.labels, out, err);
}

cutset_status cs_decide(cs_decision *out, cutset_plan *plan, const cs_plan_source *source,
                        const cutset_target *const *targets, size_t n_targets,
                        const cutset_plan_opts *opts, cutset_error *err)
{
    *out = (cs_decision){0};
    if (n_targets > CS_MAX_TARGETS)
        return cs_fail(err, CUTSET_USAGE, "%zu targets named: at most %d", n_targets,
                       CS_MAX_TARGETS);
    cs_work w = {.plan = plan,
                 .source = source,
                 .g = source->graph,
                 .targets = targets,
                 .n_targets = (uint32_t)n_targets,
                 .opts = opts,
                 .n_nodes = (uint32_t)source->graph->nodes.len,
                 .budget = opts->host_memory || opts->device_memory};
    w.reason = out->reasons = cs_zalloc(w.n_nodes, sizeof *out->reasons);
    cutset_status s = w.reason ? decide(&w, out, err) : cs_fail_memory(err);
    cs_vec_fini(&w.matches);
    cs_vec_fini(&w.match_nodes);
    cs_vec_fini(&w.ties);
    cs_values_fini(&w);
    cs_vec_fini(&w.group_names);
    cs_vec_fini(&w.group_heads);
    cs_arena_fini(&w.arena);
    if (s) cs_decision_fini(out);
    return s;
}

void cs_decision_fini(cs_decision *d)
{
    cs_free(d->part);
    cs_free(d->part_target);
    cs_free(d->part_oversized);
    cs_free(d->reasons);
    cs_free(d->certificate);
    cs_free(d->copies);
    *d = (cs_decision){0};
}
