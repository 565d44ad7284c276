/* Fusion groups by pattern: which nodes an engine builder fuses and so should stay together.
 *
 * The patterns are those of the target a node was given to. A chain matches from its first step;
 * each step's output is read by the next one only, so that contracting it can close no cycle. A
 * quantised unit is an operator with the DequantizeLinear nodes that only it reads and the
 * QuantizeLinear nodes that alone read it. In node order, patterns in file order; a node is in one
 * match at most. Cost: linear in the nodes times the steps.
 *
 * Strict chains give the matches of torch.fx SubgraphMatcher with its default settings (checked
 * against it by tests/test_torch_patterns.py): a pattern's own matches do not overlap, the first in
 * node order stands; those of different patterns may, and are one atom then. Any value may stand
 * where the pattern has an input of its own, but never one value for two inputs.
 *
 * Groups marked soft are matches that the caller found. They become groups, so that a budget does
 * not break them, unless that would put a node that runs elsewhere into their atom.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/work.h"

typedef struct matcher {
    cs_work *w;
    uint32_t *taken;             /* by node: bit i, by strict pattern i; all bits: by another */
    cs_map starts;               /* (target, domain, op) -> may a pattern start here: 0 or 1 */
    cs_str quantize, dequantize; /* CS_NONE: not in this model */
} matcher;

static bool op_in_step(const cs_graph *g, const cs_node *n, const struct cs_step *step)
{
    cs_span op = cs_name(g->pool, n->op), domain = cs_name(g->pool, n->domain);
    for (size_t i = 0; i < step->n_ops; i++) {
        const char *name = step->ops[i];
        const char *colon = strchr(name, ':');
        cs_span want_domain = {name, colon ? (size_t)(colon - name) : 0};
        if (cs_span_is(op, colon ? colon + 1 : name) && cs_span_eq(domain, want_domain))
            return true;
    }
    return false;
}

/* The only reader of what `node` gives, if there is exactly one and nothing leaves the graph. */
static uint32_t sole_reader(const cs_work *w, uint32_t node)
{
    const cs_graph *g = w->g;
    const cs_node *n = &g->nodes.at[node];
    uint32_t reader = CS_NONE;
    for (uint32_t i = 0; i < n->n_out; i++) {
        uint32_t v = cs_outs(g, n)[i];
        if (v == CS_NONE) continue;
        uint32_t uses = g->use[v + 1] - g->use[v];
        if (w->is_output[v] || uses > 1 || (uses && i > 0)) return CS_NONE;
        if (uses) reader = g->user[g->use[v]];
    }
    return reader;
}

static bool add_match(matcher *m, const char *name, const uint32_t *nodes, uint32_t n,
                      uint32_t bits)
{
    cs_work *w = m->w;
    cs_match match = {name, (uint32_t)w->match_nodes.len, n, false};
    if (!cs_vec_room(&w->match_nodes, n) || !cs_vec_push(&w->matches, match)) return false;
    for (uint32_t i = 0; i < n; i++) {
        m->taken[nodes[i]] |= bits;
        (void)cs_vec_push(&w->match_nodes, nodes[i]);
    }
    return true;
}

#define ALL_BITS UINT32_MAX

static bool free_on(const matcher *m, uint32_t node, int32_t target, uint32_t bits)
{
    return !(m->taken[node] & bits) && m->w->target[node] == target &&
           !(m->w->g->nodes.at[node].flags & CS_NODE_NO_PATTERN);
}

#define MAX_CHAIN 16
#define MAX_INPUTS 64 /* of a strict match; one with more is none */

/* Each node reads the one before as its first argument, and no value is read twice. */
static bool reads_distinct(const cs_graph *g, const uint32_t *nodes, size_t n)
{
    uint32_t seen[MAX_INPUTS];
    size_t n_seen = 0;
    for (size_t i = 0; i < n; i++) {
        const cs_node *node = &g->nodes.at[nodes[i]];
        if (i > 0 && cs_node_arg(g, node, 0) != cs_outs(g, &g->nodes.at[nodes[i - 1]])[0])
            return false;
        for (uint32_t k = 0; k < node->n_arg; k++) {
            const uint32_t v = cs_args(g, node)[k];
            if (v == CS_NONE) continue;
            for (size_t s = 0; s < n_seen; s++)
                if (seen[s] == v) return false;
            if (n_seen == MAX_INPUTS) return false;
            seen[n_seen++] = v;
        }
    }
    return true;
}

/* 1 matched, 0 not, -1 no memory. */
static int match_chain(matcher *m, const cs_pattern *p, uint32_t start, uint32_t bits)
{
    uint32_t nodes[MAX_CHAIN];
    int32_t target = m->w->target[start];
    uint32_t node = start;
    if (p->n_steps > MAX_CHAIN) return 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        if (i > 0) node = sole_reader(m->w, node);
        if (node == CS_NONE || !free_on(m, node, target, bits) ||
            !op_in_step(m->w->g, &m->w->g->nodes.at[node], &p->steps[i]))
            return 0;
        nodes[i] = node;
    }
    if (p->strict && !reads_distinct(m->w->g, nodes, p->n_steps)) return 0;
    return add_match(m, p->name, nodes, (uint32_t)p->n_steps, bits) ? 1 : -1;
}

static bool is_op(const matcher *m, uint32_t node, cs_str op)
{
    const cs_node *n = &m->w->g->nodes.at[node];
    return op != CS_NONE && n->op == op && n->domain == 0;
}

/* Adds the readers of `node` that quantise its output, if nothing else reads it. */
static bool add_quantizers(matcher *m, uint32_t node, cs_ids *unit)
{
    const cs_graph *g = m->w->g;
    const cs_node *n = &g->nodes.at[node];
    uint32_t v = n->n_out ? cs_outs(g, n)[0] : CS_NONE;
    for (uint32_t i = 1; i < n->n_out; i++) {
        uint32_t other = cs_outs(g, n)[i];
        if (other != CS_NONE && (m->w->is_output[other] || g->use[other] != g->use[other + 1]))
            return true;
    }
    if (v == CS_NONE || m->w->is_output[v]) return true;
    for (uint32_t u = g->use[v]; u < g->use[v + 1]; u++)
        if (!is_op(m, g->user[u], m->quantize) ||
            !free_on(m, g->user[u], m->w->target[node], ALL_BITS) ||
            cs_node_arg(g, &g->nodes.at[g->user[u]], 0) != v)
            return true;
    for (uint32_t u = g->use[v]; u < g->use[v + 1]; u++)
        if (!cs_vec_push(unit, g->user[u])) return false;
    return true;
}

static int match_qdq(matcher *m, const cs_pattern *p, uint32_t node)
{
    const cs_graph *g = m->w->g;
    const cs_node *n = &g->nodes.at[node];
    if (m->dequantize == CS_NONE || is_op(m, node, m->dequantize) || is_op(m, node, m->quantize) ||
        !free_on(m, node, m->w->target[node], ALL_BITS))
        return 0;
    cs_ids unit = {0};
    bool ok = cs_vec_push(&unit, node);
    for (uint32_t i = 0; ok && i < n->n_arg; i++) {
        uint32_t v = cs_args(g, n)[i];
        if (v == CS_NONE || g->values.at[v].origin != CS_ORIGIN_NODE) continue;
        uint32_t from = g->values.at[v].from;
        bool twice = false;
        for (size_t k = 0; k < unit.len; k++)
            twice |= unit.at[k] == from;
        if (!twice && is_op(m, from, m->dequantize) && sole_reader(m->w, from) == node &&
            free_on(m, from, m->w->target[node], ALL_BITS))
            ok = cs_vec_push(&unit, from);
    }
    bool fed = unit.len > 1;
    if (ok && fed)
        ok = add_quantizers(m, node, &unit) &&
             add_match(m, p->name, unit.at, (uint32_t)unit.len, ALL_BITS);
    cs_vec_fini(&unit);
    return !ok ? -1 : fed;
}

/* Does some pattern of the target start with this operator? Remembered per operator. */
static int may_start(matcher *m, uint32_t node)
{
    const cs_node *n = &m->w->g->nodes.at[node];
    const cutset_target *t = m->w->targets[m->w->target[node]];
    uint64_t key = ((uint64_t)n->op << 32 | n->domain) ^ (uint64_t)m->w->target[node] << 58;
    uint32_t known = cs_map_get(&m->starts, key);
    if (known != CS_NONE) return (int)known;
    uint32_t yes = 0;
    for (size_t i = 0; i < t->n_patterns; i++)
        yes |= t->patterns[i].qdq ? m->dequantize != CS_NONE
                                  : op_in_step(m->w->g, n, &t->patterns[i].steps[0]);
    return cs_map_put(&m->starts, key, yes) ? (int)yes : -1;
}

static int match_at(matcher *m, uint32_t node)
{
    int32_t target = m->w->target[node];
    if (target == CS_HOST || m->taken[node] == ALL_BITS || !m->w->targets[target]->n_patterns)
        return 0;
    int some = may_start(m, node);
    const cutset_target *t = m->w->targets[target];
    for (size_t i = 0; some == 1 && i < t->n_patterns; i++) {
        const cs_pattern *p = &t->patterns[i];
        uint32_t bits = p->strict ? 1u << i % 32 : ALL_BITS;
        int found = p->qdq ? match_qdq(m, p, node) : match_chain(m, p, node, bits);
        if (found < 0 || (found && !p->strict)) return found;
    }
    return some < 0 ? -1 : 0;
}

/* ---- groups marked soft ---- */

static bool on_one_accelerator(const cs_work *w, const cs_group *group)
{
    const uint32_t *member = w->g->members.at + group->member;
    for (uint32_t k = 0; k < group->n_member; k++)
        if (w->target[member[k]] == CS_HOST || w->target[member[k]] != w->target[member[0]])
            return false;
    return group->n_member > 0;
}

static void unite_wanted(const cs_work *w, const bool *wanted, uint32_t *parent)
{
    for (size_t i = 0; i < w->g->groups.len; i++) {
        const cs_group *group = &w->g->groups.at[i];
        const uint32_t *member = w->g->members.at + group->member;
        for (uint32_t k = 1; wanted[i] && k < group->n_member; k++)
            cs_union(parent, member[0], member[k]);
    }
}

/* Groups whose atom would hold nodes of several targets are wanted no longer. */
static cutset_status drop_mixed(cs_work *w, bool *wanted, bool *dropped, cutset_error *err)
{
    cs_atoms atoms;
    uint32_t *parent = cs_arena_dup(&w->arena, w->group, w->n_nodes * sizeof *parent);
    if (!parent) return cs_fail_memory(err);
    unite_wanted(w, wanted, parent);
    cutset_status s = cs_atoms_build(w, parent, &w->arena, &atoms, err);
    if (s) return s;
    bool *mixed = cs_arena_zalloc(&w->arena, atoms.n, sizeof *mixed);
    if (!mixed) return cs_fail_memory(err);
    for (uint32_t v = 0; v < w->n_nodes; v++)
        mixed[atoms.of[v]] |= w->target[v] != atoms.target[atoms.of[v]];
    *dropped = false;
    for (size_t i = 0; i < w->g->groups.len; i++) {
        if (!wanted[i] || !mixed[atoms.of[w->g->members.at[w->g->groups.at[i].member]]]) continue;
        wanted[i] = false;
        *dropped = true;
    }
    return CUTSET_OK;
}

/* Cost: a contraction, and one more for each round in which a group was dropped. */
static cutset_status add_soft_groups(cs_work *w, cutset_error *err)
{
    bool some = false;
    cs_arena_mark mark = cs_arena_note(&w->arena);
    bool *wanted = cs_arena_zalloc(&w->arena, w->g->groups.len, sizeof *wanted);
    if (!wanted) return cs_fail_memory(err);
    for (size_t i = 0; i < w->g->groups.len; i++) {
        const cs_group *group = &w->g->groups.at[i];
        some |= wanted[i] = group->soft && on_one_accelerator(w, group);
    }
    cutset_status s = CUTSET_OK;
    for (bool again = some; !s && again;) {
        cs_arena_mark round = cs_arena_note(&w->arena);
        s = drop_mixed(w, wanted, &again, err);
        cs_arena_release(&w->arena, round);
    }
    if (!s) unite_wanted(w, wanted, w->group);
    cs_arena_release(&w->arena, mark);
    return s;
}

cutset_status cs_patterns(cs_work *w, cutset_error *err)
{
    cutset_status s = add_soft_groups(w, err);
    if (s) return s;
    matcher m = {.w = w};
    const cs_strtab *names = &w->g->pool->names;
    m.quantize = cs_strtab_find(names, CS_SPAN("QuantizeLinear"));
    m.dequantize = cs_strtab_find(names, CS_SPAN("DequantizeLinear"));
    cs_arena_mark mark = cs_arena_note(&w->arena);
    m.taken = cs_arena_zalloc(&w->arena, w->n_nodes, sizeof *m.taken);
    bool ok = m.taken != NULL;
    for (uint32_t node = 0; ok && node < w->n_nodes; node++)
        ok = match_at(&m, node) >= 0;
    cs_map_fini(&m.starts);
    cs_arena_release(&w->arena, mark);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

bool cs_patterns_break(cs_work *w, const cs_atoms *a, const bool *which)
{
    bool some = false;
    for (size_t i = 0; i < w->matches.len; i++) {
        cs_match *m = &w->matches.at[i];
        if (!m->broken && which[a->of[w->match_nodes.at[m->first]]]) m->broken = some = true;
    }
    return some;
}
