/* Fusion groups by pattern: which nodes an engine builder fuses and so should stay together.
 *
 * The patterns are those of the target a node was given to. A chain matches from its first step;
 * each step's output is read by the next one only, so that contracting it can close no cycle. A
 * quantised unit is an operator with the DequantizeLinear nodes that only it reads and the
 * QuantizeLinear nodes that alone read it. In node order, patterns in file order; a node is in one
 * match at most. Cost: linear in the nodes times the steps.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/work.h"

typedef struct matcher {
    cs_work *w;
    bool *taken;                 /* by node */
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

static bool add_match(matcher *m, const char *name, const uint32_t *nodes, uint32_t n)
{
    cs_work *w = m->w;
    cs_match match = {name, (uint32_t)w->match_nodes.len, n, false};
    if (!cs_vec_room(&w->match_nodes, n) || !cs_vec_push(&w->matches, match)) return false;
    for (uint32_t i = 0; i < n; i++) {
        m->taken[nodes[i]] = true;
        (void)cs_vec_push(&w->match_nodes, nodes[i]);
    }
    return true;
}

static bool free_on(const matcher *m, uint32_t node, int32_t target)
{
    return !m->taken[node] && m->w->target[node] == target;
}

#define MAX_CHAIN 16

/* 1 matched, 0 not, -1 no memory. */
static int match_chain(matcher *m, const cs_pattern *p, uint32_t start)
{
    uint32_t nodes[MAX_CHAIN];
    int32_t target = m->w->target[start];
    uint32_t node = start;
    if (p->n_steps > MAX_CHAIN) return 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        if (i > 0) node = sole_reader(m->w, node);
        if (node == CS_NONE || !free_on(m, node, target) ||
            !op_in_step(m->w->g, &m->w->g->nodes.at[node], &p->steps[i]))
            return 0;
        nodes[i] = node;
    }
    return add_match(m, p->name, nodes, (uint32_t)p->n_steps) ? 1 : -1;
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
        if (!is_op(m, g->user[u], m->quantize) || !free_on(m, g->user[u], m->w->target[node]) ||
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
        !free_on(m, node, m->w->target[node]))
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
            free_on(m, from, m->w->target[node]))
            ok = cs_vec_push(&unit, from);
    }
    bool fed = unit.len > 1;
    if (ok && fed)
        ok = add_quantizers(m, node, &unit) && add_match(m, p->name, unit.at, (uint32_t)unit.len);
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
    if (target == CS_HOST || m->taken[node] || !m->w->targets[target]->n_patterns) return 0;
    int some = may_start(m, node);
    const cutset_target *t = m->w->targets[target];
    for (size_t i = 0; some == 1 && i < t->n_patterns; i++) {
        const cs_pattern *p = &t->patterns[i];
        int found = p->qdq ? match_qdq(m, p, node) : match_chain(m, p, node);
        if (found) return found;
    }
    return some < 0 ? -1 : 0;
}

cutset_status cs_patterns(cs_work *w, cutset_error *err)
{
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
