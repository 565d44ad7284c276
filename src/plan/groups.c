/* Atoms: groups the user named, patterns of target files, ties of boundary rules.
 *
 * A group gets the first target that all its nodes can run on, with everything its cycles pull in;
 * without one it goes to the host whole, and when a pinned node forbids that there is no plan: the
 * cycle is the certificate. A pattern that would mix targets is not formed; a tie that would is
 * given up and its nodes go to the host. Cost: one contraction, and one more for each round in which
 * something had to give way.
 */
#include <stdio.h>
#include <string.h>

#include "plan/work.h"

static uint32_t *new_classes(cs_arena *arena, uint32_t n)
{
    uint32_t *parent = cs_arena_alloc(arena, n, sizeof *parent);
    for (uint32_t v = 0; parent && v < n; v++)
        parent[v] = v;
    return parent;
}

static bool name_group(cs_work *w, cs_span name, uint32_t node)
{
    cs_str s = cs_strtab_add(&w->plan->names, name, false);
    return s != CS_NONE && cs_vec_push(&w->group_names, s) && cs_vec_push(&w->group_heads, node);
}

static cutset_status add_text_groups(cs_work *w, cutset_error *err)
{
    for (size_t i = 0; i < w->g->groups.len; i++) {
        const cs_group *group = &w->g->groups.at[i];
        const uint32_t *member = w->g->members.at + group->member;
        if (!group->n_member || group->soft) continue;
        for (uint32_t k = 1; k < group->n_member; k++)
            cs_union(w->group, member[0], member[k]);
        w->grouped |= group->n_member > 1;
        if (!name_group(w, cs_name(w->g->pool, group->name), member[0])) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

size_t cs_group_name(const char *at)
{
    size_t len = 0;
    while (at[len] && at[len] != ',')
        len += at[len] == '\\' && at[len + 1] ? 2 : 1;
    return len;
}

static cutset_status add_named_group(cs_work *w, const char *text, cutset_error *err)
{
    cs_ids ids = {0};
    cutset_status s = CUTSET_OK;
    for (const char *at = text; !s && at;) {
        size_t len = cs_group_name(at);
        bool some;
        if (!len)
            s = cs_fail(err, CUTSET_USAGE,
                        "--group '%s' has an empty name: write --group NAME,NAME", text);
        else if (!cs_match_nodes(w->source, (cs_span){at, len}, false, &ids, &some))
            s = cs_fail_memory(err);
        else if (!some)
            s = cs_fail(err, CUTSET_USAGE,
                        "--group %s: %.*s matches no node: inspect --text lists what nodes make",
                        text, (int)(len > 200 ? 200 : len), at);
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    for (size_t i = 1; !s && i < ids.len; i++)
        cs_union(w->group, ids.at[0], ids.at[i]);
    w->grouped |= ids.len > 1;
    if (!s && ids.len && !name_group(w, cs_span_of(text), ids.at[0])) s = cs_fail_memory(err);
    cs_vec_fini(&ids);
    return s;
}

/* The name of a group that has a node in the atom. */
static cs_span group_name(cs_work *w, const cs_atoms *a, uint32_t atom)
{
    for (size_t i = 0; i < w->group_heads.len; i++)
        if (a->of[w->group_heads.at[i]] == atom)
            return cs_strtab_get(&w->plan->names, w->group_names.at[i]);
    return CS_SPAN("");
}

/* ---- the cycle that pulls a node into an atom, for the message ---- */

typedef struct cycle_search {
    const cs_work *w;
    const cs_atoms *a;
    uint32_t atom, goal;
    uint32_t *from; /* by node: where the search came from; CS_NONE = not seen */
    bool *jump;     /* by node: reached within its group, not by an edge */
    cs_ids queue;
    bool closed, ok;
} cycle_search;

static void reach(cycle_search *c, uint32_t from, uint32_t to, bool jump)
{
    if (c->closed || c->a->of[to] != c->atom) return;
    if (to == c->goal && !jump) {
        c->from[to] = from;
        c->closed = true;
    } else if (c->from[to] == CS_NONE && to != c->goal) {
        c->from[to] = from;
        c->jump[to] = jump;
        c->ok &= cs_vec_push(&c->queue, to);
    }
}

static void reach_all(cycle_search *c, uint32_t node)
{
    const cs_graph *g = c->w->g;
    const cs_node *n = &g->nodes.at[node];
    for (uint32_t i = 0; i < n->n_out; i++) {
        uint32_t v = cs_outs(g, n)[i];
        for (uint32_t u = v == CS_NONE ? 0 : g->use[v]; v != CS_NONE && u < g->use[v + 1]; u++)
            reach(c, node, g->user[u], false);
    }
    for (size_t i = 0; i < g->order.len; i++)
        if (g->order.at[i].from == node) reach(c, node, g->order.at[i].to, false);
    uint32_t class = cs_union_find(c->w->group, node);
    for (uint32_t i = c->a->first[c->atom]; i < c->a->first[c->atom + 1]; i++)
        if (cs_union_find(c->w->group, c->a->node[i]) == class) reach(c, node, c->a->node[i], true);
}

static size_t spell(const cs_work *w, const char *before, uint32_t node, char *text, size_t size)
{
    char buffer[16];
    cs_span label = cs_node_label(w->g, node, buffer);
    int n = snprintf(text, size, "%s%%%.*s", before, CS_FMT(label));
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

/* The way back from the goal, spelt forwards; a long one has its start left out. */
static void spell_cycle(const cycle_search *c, char *text, size_t size)
{
    uint32_t path[8], n = 0, node = c->from[c->goal];
    for (; node != c->goal && n < 8; node = c->from[node])
        path[n++] = node;
    size_t len = spell(c->w, "", c->goal, text, size);
    if (node != c->goal)
        len += (size_t)snprintf(text + len, size - len, " -> ...") < size - len ? 7 : 0;
    while (n-- > 0)
        len += spell(c->w, c->jump[path[n]] ? " ~ " : " -> ", path[n], text + len, size - len);
    spell(c->w, " -> ", c->goal, text + len, size - len);
}

/* Its nodes, last first. */
static bool name_cycle(const cycle_search *c, cs_ids *out)
{
    bool ok = true;
    for (uint32_t node = c->from[c->goal]; ok && node != c->goal; node = c->from[node])
        ok = cs_vec_push(out, node);
    return ok && cs_vec_push(out, c->goal);
}

/* Writes "%n -> %b ~ %a -> %n" to `text`; "~" joins nodes of one group. `nodes`: the same, last
 * first. */
static bool print_cycle(cs_work *w, const cs_atoms *a, uint32_t goal, char *text, size_t size,
                        cs_ids *nodes)
{
    cs_arena_mark mark = cs_arena_note(&w->arena);
    cycle_search c = {.w = w, .a = a, .atom = a->of[goal], .goal = goal, .ok = true};
    c.from = cs_arena_alloc(&w->arena, w->n_nodes, sizeof *c.from);
    c.jump = cs_arena_zalloc(&w->arena, w->n_nodes, sizeof *c.jump);
    text[0] = 0;
    if (!c.from || !c.jump) return false;
    memset(c.from, 0xff, w->n_nodes * sizeof *c.from);
    reach_all(&c, goal);
    for (size_t i = 0; i < c.queue.len && !c.closed && c.ok; i++)
        reach_all(&c, c.queue.at[i]);
    cs_vec_fini(&c.queue);
    if (c.closed) spell_cycle(&c, text, size);
    if (c.closed) c.ok = name_cycle(&c, nodes) && c.ok;
    cs_arena_release(&w->arena, mark);
    return c.ok;
}

/* ---- a common target for each group ---- */

/* The nodes at fault, last first, go into `err`. */
static void name_nodes(const cs_work *w, const uint32_t *node, size_t n, cutset_error *err)
{
    cs_error_about(err, CUTSET_ABOUT_GROUP, 0, 0);
    while (n-- > 0)
        cs_error_node(err, w->g, node[n]);
}

static cutset_status infeasible(cs_work *w, const cs_atoms *a, uint32_t atom, uint32_t pinned,
                                uint32_t other, cutset_error *err)
{
    char p[16], o[16], cycle[600];
    cs_span pl = cs_node_label(w->g, pinned, p);
    cs_span name = group_name(w, a, atom);
    const char *target = w->targets[w->target[pinned]]->name;
    const uint32_t both[2] = {other, pinned};
    if (other == CS_NONE) {
        cs_fail(err, CUTSET_NO,
                "group %.*s is infeasible: %%%.*s is pinned to an accelerator, and no "
                "accelerator takes all nodes of the group: split the group",
                CS_FMT(name), CS_FMT(pl));
        name_nodes(w, &pinned, 1, err);
        return CUTSET_NO;
    }
    cs_span ol = cs_node_label(w->g, other, o);
    cs_ids nodes = {0};
    if (!print_cycle(w, a, other, cycle, sizeof cycle, &nodes)) {
        cs_vec_fini(&nodes);
        return cs_fail_memory(err);
    }
    if (cs_union_find(w->group, pinned) == cs_union_find(w->group, other) || !cycle[0]) {
        cs_fail(err, CUTSET_NO,
                "group %.*s is infeasible: %%%.*s is pinned to %s and %%%.*s cannot run there: "
                "take one of them out",
                CS_FMT(name), CS_FMT(pl), target, CS_FMT(ol));
        name_nodes(w, both, 2, err);
    } else {
        cs_fail(err, CUTSET_NO,
                "group %.*s is infeasible: %%%.*s is pinned to %s and %%%.*s, which cannot run "
                "there, lies on the cycle %s (~ joins nodes of one group): split the group",
                CS_FMT(name), CS_FMT(pl), target, CS_FMT(ol), cycle);
        name_nodes(w, nodes.at, nodes.len, err);
    }
    cs_vec_fini(&nodes);
    return CUTSET_NO;
}

static cutset_status resolve_atom(cs_work *w, const cs_atoms *a, uint32_t atom, cutset_error *err)
{
    uint32_t common = UINT32_MAX, pinned = CS_NONE, host_only = CS_NONE, misfit = CS_NONE;
    for (uint32_t i = a->first[atom]; i < a->first[atom + 1]; i++) {
        uint32_t node = a->node[i];
        common &= w->mask[node];
        if (pinned == CS_NONE && !(w->mask[node] & CS_MASK_HOST)) pinned = node;
        if (host_only == CS_NONE && w->mask[node] == CS_MASK_HOST) host_only = node;
    }
    for (uint32_t i = a->first[atom]; pinned != CS_NONE && i < a->first[atom + 1]; i++)
        if (misfit == CS_NONE && !(w->mask[a->node[i]] & w->mask[pinned])) misfit = a->node[i];
    if (common & ~CS_MASK_HOST) {
        for (uint32_t i = a->first[atom]; i < a->first[atom + 1]; i++) {
            uint32_t node = a->node[i];
            w->mask[node] = common;
            w->target[node] = __builtin_ctz(common);
            w->reason[node] = (cs_reason){CS_RULE_NONE, 0, 0, -1};
        }
        return CUTSET_OK;
    }
    if (!common) return infeasible(w, a, atom, pinned, misfit == CS_NONE ? host_only : misfit, err);
    char buffer[16];
    cs_span name = group_name(w, a, atom);
    cs_span label = host_only == CS_NONE ? CS_SPAN("") : cs_node_label(w->g, host_only, buffer);
    cs_str why;
    cutset_status s =
        label.len ? cs_words(w, &why, err,
                             "its group %.*s has no common target: %%%.*s runs only on the host",
                             CS_FMT(name), CS_FMT(label))
                  : cs_words(w, &why, err, "its group %.*s has no common target", CS_FMT(name));
    for (uint32_t i = a->first[atom]; !s && i < a->first[atom + 1]; i++)
        if (w->target[a->node[i]] != CS_HOST) cs_to_host(w, a->node[i], CS_RULE_GROUP, why);
    return s;
}

cutset_status cs_groups(cs_work *w, cutset_error *err)
{
    w->group = new_classes(&w->arena, w->n_nodes);
    if (!w->group) return cs_fail_memory(err);
    cutset_status s = add_text_groups(w, err);
    for (uint32_t v = 0; v < w->n_nodes; v++)
        if (cs_leader(w->g, v) != CS_NONE) cs_union(w->group, v, cs_leader(w->g, v));
    for (size_t i = 0; !s && i < w->opts->n_groups; i++)
        s = add_named_group(w, w->opts->groups[i], err);
    if (s || !w->grouped) return s;
    cs_arena_mark mark = cs_arena_note(&w->arena);
    cs_atoms atoms;
    s = cs_atoms_build(w, w->group, &w->arena, &atoms, err);
    for (uint32_t a = 0; !s && a < atoms.n; a++)
        if (cs_atom_size(&atoms, a) > 1) s = resolve_atom(w, &atoms, a, err);
    cs_arena_release(&w->arena, mark);
    return s;
}

/* ---- everything together ---- */

static void unite(cs_work *w, uint32_t *parent)
{
    for (size_t i = 0; i < w->matches.len; i++) {
        const cs_match *m = &w->matches.at[i];
        const uint32_t *node = w->match_nodes.at + m->first;
        if (m->broken || w->target[node[0]] == CS_HOST) continue;
        for (uint32_t k = 1; k < m->n; k++)
            cs_union(parent, node[0], node[k]);
    }
    for (size_t i = 0; i < w->ties.len; i++)
        cs_union(parent, w->ties.at[i].from, w->ties.at[i].to);
}

/* Patterns whose own nodes no longer share a target are not formed. */
static void drop_split_patterns(cs_work *w)
{
    for (size_t i = 0; i < w->matches.len; i++) {
        cs_match *m = &w->matches.at[i];
        const uint32_t *node = w->match_nodes.at + m->first;
        for (uint32_t k = 1; k < m->n; k++)
            m->broken |= w->target[node[k]] != w->target[node[0]];
    }
}

static bool is_mixed(const cs_work *w, const cs_atoms *a, uint32_t atom)
{
    for (uint32_t i = a->first[atom] + 1; i < a->first[atom + 1]; i++)
        if (w->target[a->node[i]] != a->target[atom]) return true;
    return false;
}

static cutset_status give_up_atom(cs_work *w, const cs_atoms *a, uint32_t atom, cutset_error *err)
{
    cs_str why;
    cutset_status s = cs_words(w, &why, err,
                               "a value it shares may not cross a boundary, and keeping it inside "
                               "would close a cycle");
    for (uint32_t i = a->first[atom]; !s && i < a->first[atom + 1]; i++) {
        uint32_t node = a->node[i];
        char buffer[16];
        cs_span label = cs_node_label(w->g, node, buffer);
        if (w->target[node] == CS_HOST) continue;
        if (w->pinned[node]) {
            cs_fail(err, CUTSET_NO,
                    "%%%.*s is pinned, but %s: drop the pin or give the value a type",
                    CS_FMT(label), "a value it shares may not cross a boundary");
            name_nodes(w, &node, 1, err);
            return CUTSET_NO;
        }
        cs_to_host(w, node, CS_RULE_BOUNDARY, why);
    }
    return s;
}

/* One contraction of what must be together now. */
static cutset_status contract_once(cs_work *w, cs_arena *arena, cs_atoms *out, cutset_error *err)
{
    drop_split_patterns(w);
    uint32_t *parent = cs_alloc(w->n_nodes, sizeof *parent);
    if (!parent) return cs_fail_memory(err);
    memcpy(parent, w->group, w->n_nodes * sizeof *parent);
    unite(w, parent);
    cutset_status s = cs_atoms_build(w, parent, arena, out, err);
    cs_free(parent);
    return s;
}

cutset_status cs_contract(cs_work *w, cs_arena *arena, cs_atoms *out, cutset_error *err)
{
    for (;;) {
        cs_arena_mark mark = cs_arena_note(arena);
        cutset_status s = contract_once(w, arena, out, err);
        if (s) return s;
        bool *mixed = cs_arena_zalloc(arena, out->n, sizeof *mixed);
        if (!mixed) return cs_fail_memory(err);
        bool some = false;
        for (uint32_t a = 0; a < out->n; a++)
            some |= mixed[a] = is_mixed(w, out, a);
        if (!some) return CUTSET_OK;
        if (cs_patterns_break(w, out, mixed)) {
            /* without these patterns it may be right */
        } else if (cs_values_break(w, out, mixed)) {
            s = cs_boundary_settle(w, err);
            if (s) return s;
        } else {
            for (uint32_t a = 0; !s && a < out->n; a++)
                if (mixed[a]) s = give_up_atom(w, out, a, err);
            if (!s) s = cs_boundary_settle(w, err);
            if (s) return s;
        }
        cs_arena_release(arena, mark);
    }
}
