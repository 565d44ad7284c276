/* Nodes at the ends of an engine that compute nothing (CS_NODE_BOOKEND: views, permutes) go to the
 * host: what all of an atom's inputs come from outside its engine, or from such atoms, or all it
 * gives is read outside or by such atoms. An atom goes as a whole, with what follows it (getitem);
 * one with a node that computes, or that is pinned, stays. The plan is then made anew, until no
 * engine has such ends (the model is remove_bookend_non_compute_ops of torch.fx). Cost: linear.
 */
#include "plan/work.h"

static bool is_bookend(const cs_work *w, const cs_atoms *a, uint32_t atom)
{
    bool all = a->target[atom] != CS_HOST && !a->pinned[atom], some = false;
    for (uint32_t i = a->first[atom]; all && i < a->first[atom + 1]; i++) {
        const uint32_t flags = w->g->nodes.at[a->node[i]].flags;
        some |= (flags & CS_NODE_BOOKEND) != 0;
        all &= (flags & (CS_NODE_BOOKEND | CS_NODE_FOLLOW)) != 0;
    }
    return all && some;
}

/* Is everything in `row` of the atom outside its engine, or goes too? */
static bool is_end(const cs_labels *l, uint32_t atom, const uint32_t *row, const uint32_t *of,
                   const bool *goes)
{
    bool end = true;
    for (uint32_t i = row[atom]; i < row[atom + 1]; i++)
        end &= l->slot[of[i]] != l->slot[atom] || goes[of[i]];
    return end;
}

cutset_status cs_bookends(cs_work *w, const cs_atoms *a, const cs_labels *labels, bool *changed,
                          cutset_error *err)
{
    const cs_arena_mark mark = cs_arena_note(&w->arena);
    bool *front = cs_arena_zalloc(&w->arena, a->n, sizeof *front);
    bool *back = cs_arena_zalloc(&w->arena, a->n, sizeof *back);
    cs_str why = CS_NONE;
    cutset_status s = front && back ? CUTSET_OK : cs_fail_memory(err);
    for (uint32_t v = 0; !s && v < a->n; v++)
        front[v] = is_bookend(w, a, v) && is_end(labels, v, a->pred, a->pred_of, front);
    for (uint32_t v = a->n; !s && v-- > 0;) {
        back[v] = is_bookend(w, a, v) && is_end(labels, v, a->succ, a->succ_of, back);
        if (!front[v] && !back[v]) continue;
        if (why == CS_NONE)
            s = cs_words(w, &why, err, "it computes nothing at the end of an engine");
        if (!s) cs_atom_to_host(w, a, v, CS_RULE_BOUNDARY, why);
        *changed = true;
    }
    cs_arena_release(&w->arena, mark);
    return s;
}
