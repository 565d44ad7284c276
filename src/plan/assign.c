/* Where each node may run, where it runs, and why it does not run on an accelerator.
 *
 * Marks of the text form decide over capability; --pin and --exclude decide over both. A node goes
 * to the first target, in the caller's order, that takes it. Cost: one capability check a node and
 * target (only the first target that takes a node is asked for, unless groups need all of them).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/work.h"

static cutset_status intern(cs_work *w, cs_str *out, cutset_error *err, const char *format,
                            va_list args)
{
    char line[600];
    int n = vsnprintf(line, sizeof line, format, args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    *out = cs_strtab_add(&w->plan->names, (cs_span){line, len}, false);
    return *out == CS_NONE ? cs_fail_memory(err) : CUTSET_OK;
}

cutset_status cs_words(cs_work *w, cs_str *out, cutset_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cutset_status s = intern(w, out, err, format, args);
    va_end(args);
    return s;
}

cutset_status cs_plan_note(cs_work *w, cutset_error *err, const char *format, ...)
{
    cs_str note;
    va_list args;
    va_start(args, format);
    cutset_status s = intern(w, &note, err, format, args);
    va_end(args);
    if (s) return s;
    return cs_vec_push(&w->plan->notes, note) ? CUTSET_OK : cs_fail_memory(err);
}

void cs_to_host(cs_work *w, uint32_t node, cs_rule rule, cs_str why)
{
    int32_t refused = w->target[node] == CS_HOST ? 0 : w->target[node];
    w->target[node] = CS_HOST;
    w->mask[node] = CS_MASK_HOST;
    if (w->reason[node].rule == CS_RULE_NONE) w->reason[node] = (cs_reason){rule, refused, why, -1};
}

uint32_t cs_leader(const cs_graph *g, uint32_t node)
{
    const cs_node *n = &g->nodes.at[node];
    const uint32_t v = n->flags & CS_NODE_FOLLOW ? cs_node_arg(g, n, 0) : CS_NONE;
    return v != CS_NONE && g->values.at[v].origin == CS_ORIGIN_NODE ? g->values.at[v].from : CS_NONE;
}

void cs_atom_to_host(cs_work *w, const cs_atoms *a, uint32_t atom, cs_rule rule, cs_str why)
{
    for (uint32_t i = a->first[atom]; i < a->first[atom + 1]; i++)
        cs_to_host(w, a->node[i], rule, why);
}

/* The target of that name: its index, CS_HOST, or -2 when the caller did not name it. "tensorrt" is
 * tensorrt-11 here as it is for --target: a name without the version. */
static int32_t target_index(const cs_work *w, cs_span name)
{
    for (uint32_t t = 0; t < w->n_targets; t++)
        if (cs_span_is(name, w->targets[t]->name)) return (int32_t)t;
    for (uint32_t t = 0; t < w->n_targets; t++) {
        const cs_span full = cs_span_of(w->targets[t]->name);
        if (name.len && full.len > name.len && full.at[name.len] == '-' &&
            cs_span_eq(name, (cs_span){full.at, name.len}))
            return (int32_t)t;
    }
    return cs_span_is(name, "host") ? CS_HOST : -2;
}

static void settle(cs_work *w, uint32_t node)
{
    uint32_t mask = w->mask[node] & ~CS_MASK_HOST;
    w->target[node] = mask ? __builtin_ctz(mask) : CS_HOST;
    w->pinned[node] = !(w->mask[node] & CS_MASK_HOST);
}

static cutset_status assign_marked(cs_work *w, uint32_t node, cutset_error *err)
{
    const cs_node *n = &w->g->nodes.at[node];
    for (uint32_t i = 0; i < n->n_allow; i++) {
        cs_span name = cs_name(w->g->pool, w->g->allow.at[n->allow + i]);
        int32_t t = target_index(w, name);
        if (t == -2) {
            char buffer[16];
            cs_span label = cs_node_label(w->g, node, buffer);
            return cs_fail(
                err, CUTSET_USAGE,
                "node %%%.*s is marked @%.*s, a target that is not named: add --target %.*s",
                CS_FMT(label), CS_FMT(name), CS_FMT(name));
        }
        w->mask[node] |= t == CS_HOST ? CS_MASK_HOST : 1u << t;
    }
    settle(w, node);
    if (w->target[node] != CS_HOST) return CUTSET_OK;
    w->reason[node] = (cs_reason){CS_RULE_USER, 0, 0, -1};
    return cs_words(w, &w->reason[node].why, err, "marked @host");
}

/* As the permits say. */
static cutset_status assign_permit(cs_work *w, uint32_t node, const cs_permit *v,
                                    cutset_error *err)
{
    const uint32_t known = CS_MASK_HOST | (uint32_t)((1ull << w->n_targets) - 1);
    w->mask[node] = v->mask & known;
    if (!w->mask[node]) w->mask[node] = CS_MASK_HOST;
    settle(w, node);
    if (w->target[node] != CS_HOST) return CUTSET_OK;
    w->reason[node] = (cs_reason){v->rule == CS_RULE_NONE ? CS_RULE_OP : v->rule, 0, 0, -1};
    const cs_span why = v->rule == CS_RULE_NONE ? CS_SPAN("no target takes it")
                                                : cs_name(w->g->pool, v->why);
    w->reason[node].why = cs_strtab_add(&w->plan->names, why, false);
    return w->reason[node].why == CS_NONE ? cs_fail_memory(err) : CUTSET_OK;
}

static cutset_status assign_checked(cs_work *w, uint32_t node, bool all, cutset_error *err)
{
    w->mask[node] = CS_MASK_HOST;
    for (uint32_t t = 0; t < w->n_targets; t++) {
        cs_rule rule;
        cs_str why = 0;
        cutset_status s =
            cs_target_check(w->targets[t], w->g, node, &w->plan->names, &rule, &why, err);
        if (s) return s;
        if (rule == CS_RULE_NONE) {
            w->mask[node] |= 1u << t;
            if (!all) break;
        } else if (t == 0) {
            w->reason[node] = (cs_reason){rule, 0, why, -1};
        }
    }
    settle(w, node);
    if (w->target[node] != CS_HOST) w->reason[node] = (cs_reason){CS_RULE_NONE, 0, 0, -1};
    return CUTSET_OK;
}

bool cs_split_pin(const char *text, cs_span *name, cs_span *target)
{
    const char *eq = strrchr(text, '=');
    if (!eq || eq == text || !eq[1]) return false;
    *name = (cs_span){text, (size_t)(eq - text)};
    *target = cs_span_of(eq + 1);
    return true;
}

/* `by_pin`: by node, which --pin was there before, counted from 1. */
static cutset_status pin(cs_work *w, size_t which, uint32_t *by_pin, cutset_error *err)
{
    const char *text = w->opts->pins[which];
    cs_span name, target;
    if (!cs_split_pin(text, &name, &target))
        return cs_fail(err, CUTSET_USAGE, "--pin %s: write NAME=TARGET", text);
    int32_t t = target_index(w, target);
    if (t == -2)
        return cs_fail(err, CUTSET_USAGE, "--pin %s: no target %.*s here: name it with --target",
                       text, CS_FMT(target));
    cs_ids ids = {0};
    bool some;
    cutset_status s = CUTSET_OK;
    if (!cs_match_nodes(w->source, name, false, &ids, &some))
        s = cs_fail_memory(err);
    else if (!some)
        s = cs_fail(err, CUTSET_USAGE,
                    "--pin %s matches no node: inspect --text lists what nodes make", text);
    for (size_t i = 0; !s && i < ids.len; i++) {
        uint32_t node = ids.at[i];
        uint32_t mask = t == CS_HOST ? CS_MASK_HOST : 1u << t;
        if (by_pin[node] && w->mask[node] != mask) {
            char buffer[16];
            cs_span label = cs_node_label(w->g, node, buffer);
            s = cs_fail(err, CUTSET_USAGE,
                        "--pin %s and --pin %s are both about node %%%.*s: drop one",
                        w->opts->pins[by_pin[node] - 1], text, CS_FMT(label));
            break;
        }
        by_pin[node] = (uint32_t)which + 1;
        w->mask[node] = mask;
        settle(w, node);
        w->reason[node] = (cs_reason){CS_RULE_NONE, 0, 0, -1};
        if (t == CS_HOST) {
            w->reason[node].rule = CS_RULE_USER;
            s = cs_words(w, &w->reason[node].why, err, "pinned to the host by --pin %s", text);
        }
    }
    cs_vec_fini(&ids);
    return s;
}

static cutset_status exclude(cs_work *w, const char *text, cutset_error *err)
{
    cs_ids ids = {0};
    cs_str why = 0;
    cutset_status s = cs_words(w, &why, err, "excluded by --exclude %s", text);
    bool some = false;
    if (!s && !cs_match_nodes(w->source, cs_span_of(text), true, &ids, &some))
        s = cs_fail_memory(err);
    if (!s && !some)
        s = cs_fail(err, CUTSET_USAGE,
                    "--exclude %s matches no operator and no node: inspect lists the operators, "
                    "inspect --text what nodes make",
                    text);
    for (size_t i = 0; !s && i < ids.len; i++) {
        uint32_t node = ids.at[i];
        if (w->pinned[node]) {
            char buffer[16];
            cs_span label = cs_node_label(w->g, node, buffer);
            s = cs_fail(err, CUTSET_USAGE,
                        "--exclude %s: node %%%.*s is pinned to %s: drop one of the two", text,
                        CS_FMT(label), w->targets[w->target[node]]->name);
            break;
        }
        w->reason[node].rule = CS_RULE_NONE;
        cs_to_host(w, node, CS_RULE_USER, why);
    }
    cs_vec_fini(&ids);
    return s;
}

static cutset_status allocate(cs_work *w, cutset_error *err)
{
    uint32_t n = w->n_nodes;
    w->mask = cs_arena_zalloc(&w->arena, n, sizeof *w->mask);
    w->target = cs_arena_zalloc(&w->arena, n, sizeof *w->target);
    w->pinned = cs_arena_zalloc(&w->arena, n, sizeof *w->pinned);
    w->is_output = cs_arena_zalloc(&w->arena, w->g->values.len, sizeof *w->is_output);
    w->no_cross = cs_arena_zalloc(&w->arena, w->g->values.len, sizeof *w->no_cross);
    if (!w->mask || !w->target || !w->pinned || !w->is_output || !w->no_cross)
        return cs_fail_memory(err);
    for (size_t i = 0; i < w->g->outputs.len; i++)
        w->is_output[w->g->outputs.at[i]] = true;
    return CUTSET_OK;
}

/* Nodes that follow the maker of their first arg go where it goes, for the same reason. Makers come
 * first in topological order. */
static void follow(cs_work *w)
{
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        const uint32_t node = w->g->topo[i], maker = cs_leader(w->g, node);
        if (maker == CS_NONE) continue;
        w->mask[node] = w->mask[maker];
        w->target[node] = w->target[maker];
        w->pinned[node] = w->pinned[maker];
        w->reason[node] = w->reason[maker];
    }
}

cutset_status cs_assign(cs_work *w, cutset_error *err)
{
    cutset_status s = allocate(w, err);
    bool all = w->n_targets > 1 && (w->opts->n_groups || w->g->groups.len);
    for (uint32_t node = 0; !s && node < w->n_nodes; node++) {
        s = w->source->permits ? assign_permit(w, node, &w->source->permits[node], err)
            : w->g->nodes.at[node].n_allow ? assign_marked(w, node, err)
                                           : assign_checked(w, node, all, err);
        if (!s && node % 65536 == 65535)
            s = cs_progress(&w->opts->progress, "capability", node, w->n_nodes, err);
    }
    cs_arena_mark mark = cs_arena_note(&w->arena);
    uint32_t *by_pin = cs_arena_zalloc(&w->arena, w->n_nodes, sizeof *by_pin);
    if (!s && !by_pin) s = cs_fail_memory(err);
    for (size_t i = 0; !s && i < w->opts->n_pins; i++)
        s = pin(w, i, by_pin, err);
    cs_arena_release(&w->arena, mark);
    for (size_t i = 0; !s && i < w->opts->n_excludes; i++)
        s = exclude(w, w->opts->excludes[i], err);
    if (!s) follow(w);
    return s;
}
