/* An engine is a function of values: memory that something writes.
 *
 * An engine is replaced by a built copy, which sees copies of its inputs and gives out new tensors.
 * So for each class of values that may share memory and of which a node writes one:
 *   inside   all that make, view or write it run on one accelerator and none of it comes from outside:
 *            they are tied, one engine holds the whole life of that memory;
 *   outside  else: writers run on the host. A view (a value made from another of the class, not by
 *            writing) neither leaves nor enters an engine: it is tied to its readers, or goes to the
 *            host where one of them runs elsewhere, and then its readers do too. What makes the
 *            memory, and who reads the memory itself, run anywhere: order edges do the rest.
 * A class whose ties would close a cycle through another target turns from inside to outside.
 *
 * Pinned nodes stay. Cost: linear for graphs without writes; else linear in the nodes
 * that touch such memory, for each round that sends one of them to the host.
 */
#include <string.h>

#include "plan/work.h"

struct cs_shared {
    uint32_t *root; /* by value */
    bool *written;  /* by root */
    bool *outside;  /* by root: see above; never turns back */
    bool *view;     /* by value: made from other memory of its written class, not by writing */
    bool *apart;    /* by value: a view that cannot share an engine with its readers */
    cs_ids makers;  /* nodes that make or write such memory, ascending */
};

/* ---- what is written ---- */

static bool mark_written(void *payload, uint32_t value)
{
    struct cs_shared *s = payload;
    s->written[s->root[value]] = true;
    return true;
}

static bool stop(void *payload, uint32_t value)
{
    (void)payload, (void)value;
    return false;
}

static bool is_writer(const cs_graph *g, uint32_t node)
{
    return !cs_node_writes(g, &g->nodes.at[node], stop, NULL);
}

static bool touches(const cs_work *w, uint32_t node)
{
    const struct cs_shared *s = w->shared;
    const cs_node *n = &w->g->nodes.at[node];
    for (uint32_t i = 0; i < n->n_out; i++) {
        const uint32_t v = cs_outs(w->g, n)[i];
        if (v != CS_NONE && s->written[s->root[v]]) return true;
    }
    return is_writer(w->g, node);
}

cutset_status cs_values_init(cs_work *w, cutset_error *err)
{
    const cs_graph *g = w->g;
    bool some = g->writes.len > 0 || g->exposed.len > 0;
    for (size_t b = 0; b < g->bodies.len; b++)
        some |= g->bodies.at[b].graph->mutates.len > 0;
    if (!some || !g->imperative) return CUTSET_OK;
    const size_t n = g->values.len;
    struct cs_shared *s = w->shared = cs_arena_zalloc(&w->arena, 1, sizeof *s);
    if (!s) return cs_fail_memory(err);
    s->view = cs_arena_zalloc(&w->arena, n, sizeof *s->view);
    s->apart = cs_arena_zalloc(&w->arena, n, sizeof *s->apart);
    s->root = cs_arena_alloc(&w->arena, n, sizeof *s->root);
    s->written = cs_arena_zalloc(&w->arena, n, sizeof *s->written);
    s->outside = cs_arena_zalloc(&w->arena, n, sizeof *s->outside);
    if (!s->view || !s->apart || !s->root || !s->written || !s->outside) return cs_fail_memory(err);
    cs_graph_classes(g, s->root);
    for (uint32_t v = 0; v < w->n_nodes; v++)
        cs_node_writes(g, &g->nodes.at[v], mark_written, s);
    for (size_t i = 0; i < g->exposed.len; i++)
        s->written[s->root[g->exposed.at[i]]] = s->outside[s->root[g->exposed.at[i]]] = true;
    for (size_t i = 0; i < g->aliases.len; i++) {
        const uint32_t v = g->aliases.at[i].value;
        if (g->values.at[v].origin == CS_ORIGIN_NODE && s->written[s->root[v]])
            s->view[v] = !is_writer(g, g->values.at[v].from);
    }
    for (uint32_t v = 0; v < n; v++)
        if (g->values.at[v].origin != CS_ORIGIN_NODE) s->outside[s->root[v]] = true;
    for (uint32_t v = 0; v < w->n_nodes; v++)
        if (touches(w, v) && !cs_vec_push(&s->makers, v)) return cs_fail_memory(err);
    return CUTSET_OK;
}

void cs_values_fini(cs_work *w)
{
    if (w->shared) cs_vec_fini(&w->shared->makers);
}

/* ---- inside or outside ---- */

/* A walk over the values that a node makes or writes; the first member of what visitors get. */
typedef struct class_visit {
    cs_work *w;
    uint32_t node;
    int32_t *home; /* by root: the accelerator of all so far; -1: none yet */
} class_visit;

static bool meet_home(void *payload, uint32_t value)
{
    class_visit *c = payload;
    struct cs_shared *s = c->w->shared;
    const uint32_t root = s->root[value];
    const int32_t t = c->w->target[c->node];
    if (!s->written[root]) return true;
    if (t == CS_HOST || (c->home[root] >= 0 && c->home[root] != t)) s->outside[root] = true;
    c->home[root] = t;
    return true;
}

static void each_class(class_visit *c, bool (*visit)(void *payload, uint32_t value))
{
    const cs_node *n = &c->w->g->nodes.at[c->node];
    cs_node_writes(c->w->g, n, visit, c);
    for (uint32_t i = 0; i < n->n_out; i++)
        if (cs_outs(c->w->g, n)[i] != CS_NONE) visit(c, cs_outs(c->w->g, n)[i]);
}

static bool find_outside(cs_work *w)
{
    struct cs_shared *s = w->shared;
    int32_t *home = cs_arena_alloc(&w->arena, w->g->values.len, sizeof *home);
    if (!home) return false;
    memset(home, 0xff, w->g->values.len * sizeof *home); /* -1: none yet */
    for (size_t i = 0; i < s->makers.len; i++) {
        class_visit c = {w, s->makers.at[i], home};
        each_class(&c, meet_home);
    }
    return true;
}

/* ---- who goes to the host ---- */

static cutset_status send(cs_work *w, uint32_t node, const char *why, bool *changed,
                          cutset_error *err)
{
    if (w->target[node] == CS_HOST || w->pinned[node]) return CUTSET_OK;
    cs_str words;
    const cutset_status s = cs_words(w, &words, err, "%s", why);
    if (!s) cs_to_host(w, node, CS_RULE_BOUNDARY, words);
    *changed = true;
    return s;
}

static bool is_outside(void *payload, uint32_t value)
{
    const cs_work *w = payload;
    return !w->shared->outside[w->shared->root[value]];
}

/* One view: with all its readers in one engine, or on the host, and its readers with it. */
static cutset_status settle_view(cs_work *w, uint32_t value, bool *changed, cutset_error *err)
{
    const cs_graph *g = w->g;
    const uint32_t maker = g->values.at[value].from;
    const int32_t t = w->target[maker];
    bool leaves = w->is_output[value] || w->shared->apart[value];
    for (uint32_t u = g->use[value]; u < g->use[value + 1]; u++)
        leaves |= w->target[g->user[u]] != t;
    cutset_status s = CUTSET_OK;
    if (t != CS_HOST && leaves)
        s = send(w, maker, "its result is a view of memory that is written elsewhere", changed,
                 err);
    if (w->target[maker] != CS_HOST) return s;
    for (uint32_t u = g->use[value]; !s && u < g->use[value + 1]; u++)
        s = send(w, g->user[u], "it reads a view of memory that is written elsewhere", changed,
                 err);
    return s;
}

static cutset_status settle_node(cs_work *w, uint32_t node, bool *changed, cutset_error *err)
{
    const struct cs_shared *sh = w->shared;
    const cs_node *n = &w->g->nodes.at[node];
    cutset_status s = CUTSET_OK;
    if (!cs_node_writes(w->g, n, is_outside, w))
        s = send(w, node, "it writes memory that others outside its engine see", changed, err);
    for (uint32_t i = 0; !s && i < n->n_out; i++) {
        const uint32_t v = cs_outs(w->g, n)[i];
        if (v != CS_NONE && w->shared->view[v] && sh->outside[sh->root[v]])
            s = settle_view(w, v, changed, err);
    }
    return s;
}

cutset_status cs_values_settle(cs_work *w, bool *changed, cutset_error *err)
{
    if (!w->shared) return CUTSET_OK;
    const cs_arena_mark mark = cs_arena_note(&w->arena);
    cutset_status s = CUTSET_OK;
    for (bool again = true; !s && again;) {
        again = false;
        if (!find_outside(w)) return cs_fail_memory(err);
        for (size_t i = 0; !s && i < w->shared->makers.len; i++)
            s = settle_node(w, w->shared->makers.at[i], &again, err);
        *changed |= again;
    }
    cs_arena_release(&w->arena, mark);
    return s;
}

/* ---- ties ---- */

typedef struct tie_visit {
    class_visit c;
    uint32_t *first; /* by root: a node of the class */
    bool ok;
} tie_visit;

static bool tie_class(void *payload, uint32_t value)
{
    tie_visit *t = payload;
    cs_work *w = t->c.w;
    const uint32_t root = w->shared->root[value];
    if (!w->shared->written[root] || w->shared->outside[root]) return true;
    if (t->first[root] == CS_NONE)
        t->first[root] = t->c.node;
    else
        t->ok &= cs_vec_push(&w->ties, ((cs_edge){t->first[root], t->c.node}));
    return true;
}

/* Views that stay on an accelerator stay with their readers. */
static bool tie_views(cs_work *w, uint32_t node)
{
    const cs_graph *g = w->g;
    const cs_node *n = &g->nodes.at[node];
    for (uint32_t i = 0; i < n->n_out && w->target[node] != CS_HOST; i++) {
        const uint32_t v = cs_outs(g, n)[i];
        if (v == CS_NONE || !w->shared->view[v] || !w->shared->outside[w->shared->root[v]])
            continue;
        for (uint32_t u = g->use[v]; u < g->use[v + 1]; u++)
            if (w->target[g->user[u]] == w->target[node] &&
                !cs_vec_push(&w->ties, ((cs_edge){node, g->user[u]})))
                return false;
    }
    return true;
}

cutset_status cs_values_tie(cs_work *w, cutset_error *err)
{
    if (!w->shared) return CUTSET_OK;
    const cs_arena_mark mark = cs_arena_note(&w->arena);
    tie_visit t = {.first = cs_arena_alloc(&w->arena, w->g->values.len, sizeof *t.first),
                   .ok = true};
    if (!t.first) return cs_fail_memory(err);
    memset(t.first, 0xff, w->g->values.len * sizeof *t.first);
    for (size_t i = 0; i < w->shared->makers.len && t.ok; i++) {
        t.c = (class_visit){w, w->shared->makers.at[i], NULL};
        each_class(&t.c, tie_class);
        t.ok = t.ok && tie_views(w, w->shared->makers.at[i]);
    }
    cs_arena_release(&w->arena, mark);
    return t.ok ? CUTSET_OK : cs_fail_memory(err);
}

typedef struct break_visit {
    class_visit c;
    bool some;
} break_visit;

static bool break_class(void *payload, uint32_t value)
{
    break_visit *b = payload;
    struct cs_shared *s = b->c.w->shared;
    const uint32_t root = s->root[value];
    if (!s->written[root] || s->outside[root]) return true;
    s->outside[root] = b->some = true;
    return true;
}

/* Views in the marked atoms whose memory is written outside. */
static bool break_views(cs_work *w, const cs_atoms *a, const bool *which)
{
    const cs_graph *g = w->g;
    struct cs_shared *s = w->shared;
    bool some = false;
    for (size_t i = 0; i < s->makers.len; i++) {
        const uint32_t node = s->makers.at[i];
        const cs_node *n = &g->nodes.at[node];
        for (uint32_t k = 0; which[a->of[node]] && k < n->n_out; k++) {
            const uint32_t v = cs_outs(g, n)[k];
            if (v == CS_NONE || !s->view[v] || s->apart[v] || w->target[node] == CS_HOST) continue;
            s->apart[v] = some = true;
        }
    }
    return some;
}

bool cs_values_break(cs_work *w, const cs_atoms *a, const bool *which)
{
    break_visit b = {.some = false};
    if (!w->shared) return false;
    for (size_t i = 0; i < w->shared->makers.len; i++) {
        if (!which[a->of[w->shared->makers.at[i]]]) continue;
        b.c = (class_visit){w, w->shared->makers.at[i], NULL};
        each_class(&b.c, break_class);
    }
    return b.some || break_views(w, a, which);
}
