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
    cs_permit **permits;             /* by block: its own, if an option changes them; or NULL */
    cs_ids ids;                      /* what `matches` found last */
    names *excludes, *pins, *groups; /* by block */
    cs_arena arena;
} nester;

/* ---- which options go where ---- */

/* w->ids: nodes of the block that match; *n: how many are its own. False: no memory. */
static bool matches(nester *w, size_t b, cs_span name, bool ops, size_t *n)
{
    const bool *imported = w->blocks[b].imported;
    bool some;
    w->ids.len = *n = 0;
    if (!cs_match_nodes(&w->blocks[b].source, name, ops, &w->ids, &some)) return false;
    for (size_t i = 0; i < w->ids.len; i++)
        *n += !imported || !imported[w->ids.at[i]];
    return true;
}

/* The permits of a block, to be changed; NULL: no memory. */
static cs_permit *own_permits(nester *w, size_t b)
{
    const cs_plan_source *source = &w->blocks[b].source;
    if (!w->permits[b])
        w->permits[b] = cs_arena_dup(&w->arena, source->permits,
                                     source->graph->nodes.len * sizeof *source->permits);
    return w->permits[b];
}

/* What is excluded (w->ids) is repeated nowhere. */
static bool keep_excluded(nester *w, size_t b)
{
    for (size_t i = 0; i < w->ids.len; i++) {
        const uint32_t node = w->ids.at[i];
        if (!(w->blocks[b].source.graph->nodes.at[node].flags & CS_NODE_REPEAT)) continue;
        if (!own_permits(w, b)) return false;
        w->permits[b][node].planned = true;
    }
    return true;
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
static bool send(nester *w, names *lists, const char *text, cs_span name, bool exclude)
{
    bool some = false;
    for (size_t b = 0; b < w->n; b++) {
        size_t n;
        if (!matches(w, b, name, exclude, &n) || (exclude && !keep_excluded(w, b))) return false;
        if (n == 0) continue;
        some = true;
        if (!cs_vec_push(&lists[b], text) || (exclude && !exclude_around(w, b))) return false;
    }
    return some || cs_vec_push(&lists[0], text);
}

/* The block where all names of a group match; CS_NONE: none does. */
static cutset_status group_block(nester *w, const char *text, uint32_t *out, cutset_error *err)
{
    *out = CS_NONE;
    for (const char *at = text; *at;) {
        const size_t len = cs_group_name(at);
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
        if (!send(w, w->excludes, o->excludes[i], cs_span_of(o->excludes[i]), true))
            return cs_fail_memory(err);
    for (size_t i = 0; i < o->n_pins; i++) {
        cs_span name, target;
        if (!cs_split_pin(o->pins[i], &name, &target)) name = CS_SPAN(""); /* the graph tells */
        if (!send(w, w->pins, o->pins[i], name, false)) return cs_fail_memory(err);
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

/* Everything to the host: the engines that --max-engines allows are used up. */
static bool spend(nester *w, size_t b)
{
    const cs_permit all = {.mask = CS_MASK_HOST, .rule = CS_RULE_LIMIT, .why = w->blocks[b].spent};
    cs_permit *permits = own_permits(w, b);
    for (size_t i = 0; permits && i < w->blocks[b].source.graph->nodes.len; i++)
        if (permits[i].mask & ~CS_MASK_HOST) permits[i] = all;
    return permits != NULL;
}

static cutset_status plan_block(nester *w, size_t b, cutset_error *err)
{
    cutset_plan_opts opts = *w->opts;
    cs_plan_source source = w->blocks[b].source;
    opts.excludes = w->excludes[b].at, opts.n_excludes = w->excludes[b].len;
    opts.pins = w->pins[b].at, opts.n_pins = w->pins[b].len;
    opts.groups = w->groups[b].at, opts.n_groups = w->groups[b].len;
    if (opts.max_engines > 0 && b > 0) {
        opts.max_engines = w->engines < opts.max_engines ? opts.max_engines - w->engines : 0;
        if (opts.max_engines == 0 && !spend(w, b)) return cs_fail_memory(err);
    }
    if (w->permits[b]) source.permits = w->permits[b];
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
    w->permits = cs_zalloc(w->n, sizeof *w->permits);
    w->excludes = cs_zalloc(w->n, sizeof *w->excludes);
    w->pins = cs_zalloc(w->n, sizeof *w->pins);
    w->groups = cs_zalloc(w->n, sizeof *w->groups);
    return w->plans && w->home && w->part && w->permits && w->excludes && w->pins && w->groups;
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
    cs_free(w->permits);
    cs_free(w->excludes);
    cs_free(w->pins);
    cs_free(w->groups);
    cs_vec_fini(&w->ids);
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
