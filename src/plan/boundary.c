/* Values that may not cross an engine's boundary.
 *
 * A target says which types its engines take in and give out; a value of another type must stay
 * inside one engine. Where its producer and all its readers run on one accelerator they are tied
 * (one atom); else the accelerated end goes to the host, which may put further values on a
 * boundary: a worklist runs until nothing changes. A pinned node stays, with a note. `no_cross`
 * marks values that may not cross at all, because nobody knows their rank. A list crosses nothing,
 * not even from host part to host part; with tensors_only no other scalar passes in or out of an
 * engine either. Cost: linear, each node is demoted at most once.
 */
#include "plan/work.h"

typedef struct queue {
    CS_VEC(uint32_t) todo;
    bool *queued; /* by value */
} queue;

static bool queue_value(queue *q, uint32_t value)
{
    if (q->queued[value]) return true;
    q->queued[value] = true;
    return cs_vec_push(&q->todo, value);
}

static bool queue_around(cs_work *w, queue *q, uint32_t node)
{
    const cs_node *n = &w->g->nodes.at[node];
    for (uint32_t i = 0; i < cs_n_reads(n); i++)
        if (cs_args(w->g, n)[i] != CS_NONE && !queue_value(q, cs_args(w->g, n)[i])) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (cs_outs(w->g, n)[i] != CS_NONE && !queue_value(q, cs_outs(w->g, n)[i])) return false;
    return true;
}

/* Why `value` may not pass in to (or out of) an engine of target t, or NULL. */
static const char *forbidden(const cs_work *w, uint32_t value, int32_t t, bool input)
{
    if (w->no_cross[value]) return "its rank is unknown";
    const uint8_t kind = w->g->values.at[value].kind;
    const char *why = NULL;
    if (kind == CS_VALUE_LIST) return "a list may not cross a border";
    if (t == CS_HOST) return NULL;
    if (kind != CS_VALUE_TENSOR && w->opts->tensors_only)
        return "only tensors pass in and out of engines";
    if (cs_target_may_cross(w->targets[t], w->g->pool, w->g->values.at[value].type, input, &why))
        return NULL;
    return why ? why : "its type cannot cross an engine's boundary";
}

static cutset_status demote(cs_work *w, queue *q, uint32_t node, uint32_t value, bool input,
                            const char *why, cutset_error *err)
{
    cs_span name = cs_name(w->g->pool, w->g->values.at[value].name);
    if (w->pinned[node]) {
        char buffer[16];
        cs_span label = cs_node_label(w->g, node, buffer);
        return cs_plan_note(w, err, "%.*s is pinned, yet its %s %.*s may not cross: %s",
                            CS_FMT(label), input ? "input" : "output", CS_FMT(name), why);
    }
    cs_str words;
    cutset_status s = cs_words(w, &words, err, "its %s %.*s would cross the boundary: %s",
                               input ? "input" : "output", CS_FMT(name), why);
    if (s) return s;
    cs_to_host(w, node, CS_RULE_BOUNDARY, words);
    return queue_around(w, q, node) ? CUTSET_OK : cs_fail_memory(err);
}

/* Looks at one value: demotes ends that it may not cross at. */
static cutset_status settle_value(cs_work *w, queue *q, uint32_t value, cutset_error *err)
{
    const cs_value *v = &w->g->values.at[value];
    if (v->origin == CS_ORIGIN_WEIGHT || v->origin == CS_ORIGIN_CAPTURE) return CUTSET_OK;
    bool made = v->origin == CS_ORIGIN_NODE;
    int32_t from = made ? w->target[v->from] : CS_HOST;
    bool crosses = made ? w->is_output[value] : true;
    for (uint32_t u = w->g->use[value]; u < w->g->use[value + 1]; u++) {
        uint32_t reader = w->g->user[u];
        int32_t to = w->target[reader];
        if (made && to == from) continue;
        crosses = true;
        const char *why = forbidden(w, value, to, true);
        if (!why || to == CS_HOST || (w->no_cross[value] && !made)) continue;
        cutset_status s = demote(w, q, reader, value, true, why, err);
        if (s) return s;
    }
    if (from == CS_HOST || !crosses || (w->no_cross[value] && w->is_output[value]))
        return CUTSET_OK;
    const char *why = forbidden(w, value, from, false);
    return why ? demote(w, q, v->from, value, false, why, err) : CUTSET_OK;
}

static cutset_status tie(cs_work *w, cutset_error *err)
{
    w->ties.len = 0;
    for (uint32_t value = 0; value < w->g->values.len; value++) {
        const cs_value *v = &w->g->values.at[value];
        if (v->origin != CS_ORIGIN_NODE || w->g->use[value] == w->g->use[value + 1]) continue;
        int32_t from = w->target[v->from];
        if (from == CS_HOST && !w->no_cross[value] && v->kind != CS_VALUE_LIST) continue;
        if (!forbidden(w, value, from, false) && !forbidden(w, value, from, true)) continue;
        for (uint32_t u = w->g->use[value]; u < w->g->use[value + 1]; u++)
            if (w->target[w->g->user[u]] == from &&
                !cs_vec_push(&w->ties, ((cs_edge){v->from, w->g->user[u]})))
                return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

/* One pass over all values, and what it sets off. */
static cutset_status settle_all(cs_work *w, cutset_error *err)
{
    cs_arena_mark mark = cs_arena_note(&w->arena);
    queue q = {0};
    q.queued = cs_arena_zalloc(&w->arena, w->g->values.len, sizeof *q.queued);
    cutset_status s = q.queued ? CUTSET_OK : cs_fail_memory(err);
    for (uint32_t value = 0; !s && value < w->g->values.len; value++) {
        s = settle_value(w, &q, value, err);
        while (!s && q.todo.len) {
            uint32_t next = q.todo.at[--q.todo.len];
            q.queued[next] = false;
            s = settle_value(w, &q, next, err);
        }
    }
    cs_vec_fini(&q.todo);
    cs_arena_release(&w->arena, mark);
    return s;
}

cutset_status cs_boundary_settle(cs_work *w, cutset_error *err)
{
    cutset_status s = CUTSET_OK;
    for (bool again = true; !s && again;) { /* each rule may set off the other */
        again = false;
        s = settle_all(w, err);
        if (!s) s = cs_values_settle(w, &again, err);
    }
    if (!s) s = tie(w, err);
    return s ? s : cs_values_tie(w, err);
}
