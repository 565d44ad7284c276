/* Nested planning: each block by the same options, then one plan.
 *
 *     the graph -> its lone host nodes' branches -> theirs ...          one cs_plan_make a block
 *     merge: a part, then the parts of the branches in it, depth first  (nest_merge.c)
 *
 * Options that name nodes go to the blocks that hold them. A name that is excluded inside a branch
 * also keeps what is around it from running whole on an accelerator. A group lies in one block.
 * --max-engines bounds the sum: what a block has used is taken off for those after it.
 *
 * Cost: that of the plans, and one pass over all names for each option.
 */
#include "plan/nest.h"

#include <string.h>

#include "plan/assemble.h"
#include "plan/work.h"

typedef CS_VEC(const char *) names;

typedef struct nester {
    const cs_plan_block *blocks;
    size_t n;
    const cutset_target *const *targets;
    size_t n_targets;
    const cutset_plan_opts *opts;
    cutset_plan **plans;             /* by block; NULL: not planned */
    uint32_t *home;                  /* by block: the part around it */
    uint32_t **part;                 /* by block, by node: its part */
    int64_t engines;                 /* so far */
    names *excludes, *pins, *groups; /* by block */
    cs_arena arena;
} nester;

/* ---- which options go where ---- */

/* Nodes of the block that are its own and match. False: no memory. */
static bool matches(const nester *w, size_t b, cs_span name, bool ops, size_t *n)
{
    cs_ids ids = {0};
    bool some;
    const bool ok = cs_match_nodes(&w->blocks[b].source, name, ops, &ids, &some);
    const bool *imported = w->blocks[b].imported;
    *n = 0;
    for (size_t i = 0; ok && i < ids.len; i++)
        *n += !imported || !imported[ids.at[i]];
    cs_vec_fini(&ids);
    return ok;
}

/* The label of a block's owner, as a string of w->arena. */
static const char *owner_label(nester *w, size_t b)
{
    char buffer[16];
    const cs_plan_block *block = &w->blocks[b];
    const cs_span label =
        cs_node_label(w->blocks[block->owner].source.graph, block->owner_node, buffer);
    return cs_arena_dup(&w->arena, label.at, label.len);
}

static bool exclude_around(nester *w, size_t b)
{
    for (; w->blocks[b].owner != CS_NONE; b = w->blocks[b].owner) {
        const cs_plan_block *around = &w->blocks[w->blocks[b].owner];
        const cs_permit *permit = &around->source.permits[w->blocks[b].owner_node];
        if (!(permit->mask & ~CS_MASK_HOST)) continue; /* on the host anyway */
        const char *label = owner_label(w, b);
        if (!label || !cs_vec_push(&w->excludes[w->blocks[b].owner], label)) return false;
    }
    return true;
}

/* To every block that it matches in; to the graph itself where it matches nowhere: that tells. */
static bool send(nester *w, names *lists, const char *text, cs_span name, bool ops, bool around)
{
    bool some = false;
    for (size_t b = 0; b < w->n; b++) {
        size_t n;
        if (!matches(w, b, name, ops, &n)) return false;
        if (n == 0) continue;
        some = true;
        if (!cs_vec_push(&lists[b], text) || (around && !exclude_around(w, b))) return false;
    }
    return some || cs_vec_push(&lists[0], text);
}

/* The block where all names of a group match; CS_NONE: no two agree. *some: a name matched. */
static cutset_status group_block(nester *w, const char *text, uint32_t *out, cutset_error *err)
{
    *out = CS_NONE;
    for (const char *at = text; *at;) {
        const size_t len = strcspn(at, ",");
        for (size_t b = 0; b < w->n && len > 0; b++) {
            size_t n;
            if (!matches(w, b, (cs_span){at, len}, false, &n)) return cs_fail_memory(err);
            if (n > 0 && *out != CS_NONE && *out != b)
                return cs_fail(err, CUTSET_USAGE,
                               "--group %s: its nodes are in different blocks: name nodes of one "
                               "block",
                               text);
            if (n > 0) *out = (uint32_t)b;
        }
        at += len + (at[len] == ',');
    }
    return CUTSET_OK;
}

static cutset_status sort_options(nester *w, cutset_error *err)
{
    const cutset_plan_opts *o = w->opts;
    for (size_t i = 0; i < o->n_excludes; i++)
        if (!send(w, w->excludes, o->excludes[i], cs_span_of(o->excludes[i]), true, true))
            return cs_fail_memory(err);
    for (size_t i = 0; i < o->n_pins; i++) {
        const char *eq = strrchr(o->pins[i], '=');
        const cs_span name = {o->pins[i], eq ? (size_t)(eq - o->pins[i]) : strlen(o->pins[i])};
        if (!send(w, w->pins, o->pins[i], name, false, false)) return cs_fail_memory(err);
    }
    for (size_t i = 0; i < o->n_groups; i++) {
        uint32_t b;
        const cutset_status s = group_block(w, o->groups[i], &b, err);
        if (s) return s;
        if (!cs_vec_push(&w->groups[b == CS_NONE ? 0 : b], o->groups[i]))
            return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

/* ---- planning ---- */

/* What is excluded is repeated nowhere. */
static cutset_status keep_excluded(nester *w, size_t b, cs_plan_source *source, cutset_error *err)
{
    const cs_graph *g = source->graph;
    cs_permit *permits = NULL;
    cs_ids ids = {0};
    bool ok = true, some;
    for (size_t i = 0; ok && i < w->opts->n_excludes; i++)
        ok = cs_match_nodes(&w->blocks[b].source, cs_span_of(w->opts->excludes[i]), true, &ids,
                            &some);
    for (size_t i = 0; ok && i < ids.len; i++) {
        if (!(g->nodes.at[ids.at[i]].flags & CS_NODE_REPEAT)) continue;
        if (!permits) {
            permits = cs_arena_dup(&w->arena, source->permits, g->nodes.len * sizeof *permits);
            ok = permits != NULL;
            if (ok) source->permits = permits;
        }
        if (ok) permits[ids.at[i]].planned = true;
    }
    cs_vec_fini(&ids);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

/* Everything to the host: the engines that --max-engines allows are used up. */
static cutset_status spend(nester *w, size_t b, cs_plan_source *source, cutset_error *err)
{
    const size_t n = source->graph->nodes.len;
    const cs_permit all = {.mask = CS_MASK_HOST, .rule = CS_RULE_LIMIT, .why = w->blocks[b].spent};
    cs_permit *permits = cs_arena_dup(&w->arena, source->permits, n * sizeof *permits);
    if (!permits) return cs_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (permits[i].mask & ~CS_MASK_HOST) permits[i] = all;
    source->permits = permits;
    return CUTSET_OK;
}

static cutset_status plan_block(nester *w, size_t b, cutset_error *err)
{
    cutset_plan_opts opts = *w->opts;
    cs_plan_source source = w->blocks[b].source;
    opts.excludes = w->excludes[b].at, opts.n_excludes = w->excludes[b].len;
    opts.pins = w->pins[b].at, opts.n_pins = w->pins[b].len;
    opts.groups = w->groups[b].at, opts.n_groups = w->groups[b].len;
    const cutset_status kept = keep_excluded(w, b, &source, err);
    if (kept) return kept;
    if (opts.max_engines > 0 && b > 0) {
        opts.max_engines = w->engines < opts.max_engines ? opts.max_engines - w->engines : 0;
        const cutset_status spent = opts.max_engines ? CUTSET_OK : spend(w, b, &source, err);
        if (spent) return spent;
    }
    return cs_plan_make(&w->plans[b], &source, w->targets, w->n_targets, &opts, err);
}

/* By node of block b: its part. */
static bool find_parts(nester *w, size_t b)
{
    const cutset_plan *plan = w->plans[b];
    w->part[b] = cs_arena_alloc(&w->arena, w->blocks[b].source.graph->nodes.len, sizeof **w->part);
    for (uint32_t p = 0; w->part[b] && p < plan->parts.len; p++)
        for (uint32_t i = 0; i < plan->parts.at[p].n_node; i++)
            w->part[b][plan->nodes.at[plan->parts.at[p].node + i]] = p;
    return w->part[b] != NULL;
}

/* Does the owner run on the host? Then its part is told. */
static bool is_open(nester *w, size_t b)
{
    const cs_plan_block *block = &w->blocks[b];
    if (block->owner == CS_NONE) return true;
    if (!w->plans[block->owner]) return false;
    w->home[b] = w->part[block->owner][block->owner_node];
    return w->plans[block->owner]->parts.at[w->home[b]].target < 0;
}

static cutset_status run(nester *w, cutset_error *err)
{
    cutset_status s = sort_options(w, err);
    for (size_t b = 0; !s && b < w->n; b++) {
        if (!is_open(w, b)) continue;
        s = plan_block(w, b, err);
        if (s) break;
        w->engines += w->plans[b]->engines;
        if (!find_parts(w, b)) s = cs_fail_memory(err);
    }
    return s;
}

static bool allocate(nester *w)
{
    w->plans = cs_zalloc(w->n, sizeof *w->plans);
    w->home = cs_alloc(w->n, sizeof *w->home);
    w->part = cs_zalloc(w->n, sizeof *w->part);
    w->excludes = cs_zalloc(w->n, sizeof *w->excludes);
    w->pins = cs_zalloc(w->n, sizeof *w->pins);
    w->groups = cs_zalloc(w->n, sizeof *w->groups);
    return w->plans && w->home && w->part && w->excludes && w->pins && w->groups;
}

static void finish(nester *w)
{
    for (size_t b = 0; b < w->n; b++) {
        if (w->plans) cs_plan_free(w->plans[b]);
        if (w->excludes) cs_vec_fini(&w->excludes[b]);
        if (w->pins) cs_vec_fini(&w->pins[b]);
        if (w->groups) cs_vec_fini(&w->groups[b]);
    }
    cs_free(w->plans);
    cs_free(w->home);
    cs_free(w->part);
    cs_free(w->excludes);
    cs_free(w->pins);
    cs_free(w->groups);
    cs_arena_fini(&w->arena);
}

cutset_status cs_plan_make_nested(cutset_plan **out, const cs_plan_block *blocks, size_t n_blocks,
                                  const cs_plan_whole *whole, const cutset_target *const *targets,
                                  size_t n_targets, const cutset_plan_opts *opts, cutset_error *err)
{
    nester w = {
        .blocks = blocks, .n = n_blocks, .targets = targets, .n_targets = n_targets, .opts = opts};
    cutset_plan *plan = cs_plan_new();
    cutset_status s = plan && allocate(&w) ? run(&w, err) : cs_fail_memory(err);
    if (!s) s = cs_plan_record(plan, opts, blocks[0].source.open, err);
    if (!s) s = cs_plan_merge(plan, blocks, n_blocks, w.plans, w.home, whole, err);
    finish(&w);
    if (s)
        cs_plan_free(plan);
    else
        *out = plan;
    return s;
}
