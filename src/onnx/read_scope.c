/* Which value a name means: one table for all graphs that are open, and captures.
 *
 * The table maps a name to its innermost meaning; what it hides is kept below it and comes back
 * when the inner graph is closed. The main graph, where nearly all names are, hides nothing and
 * costs 12 bytes a name.
 *
 * A graph is looked at only after all its values are defined, so unsorted and shadowing files
 * need no care: inner meanings win, whatever the order of the nodes. A name found in an outer graph
 * is captured by every graph in between: one CAPTURE value each, bound there like any other value,
 * and one captured argument at each node that owns such a body. Cost: O(1) a name, plus what is
 * made.
 */
#include "onnx/read.h"

#include <string.h>

void cs_scope_open(cs_scope *s, cs_scope *outer, cs_graph *graph, bool function)
{
    *s = (cs_scope){.outer = outer, .graph = graph, .depth = 1, .floor = 1, .imports = graph};
    if (outer == NULL) return;
    s->depth = outer->depth + 1;
    s->floor = function ? s->depth : outer->floor;
    s->call = function ? NULL : outer->call;
    s->imports = function ? graph : outer->imports;
}

void cs_scope_close(cs_reader *r, cs_scope *s)
{
    for (size_t i = 0; i < s->bound.len; i++) {
        cs_binding *b = &r->names.at[s->bound.at[i]];
        *b = b->below == CS_NONE ? (cs_binding){CS_NONE, 0, CS_NONE} : r->below.at[b->below];
    }
    if (s->depth <= 2) r->below.len = 0; /* only the main graph is left, it hides nothing */
    cs_vec_fini(&s->bound);
    cs_vec_fini(&s->captured);
}

bool cs_scope_here(const cs_reader *r, const cs_scope *s, cs_str name, uint32_t *value)
{
    if (name >= r->names.len || r->names.at[name].depth != s->depth) return false;
    *value = r->names.at[name].value;
    return true;
}

/* Room in the table for every name there is. */
static bool grow(cs_reader *r, cs_str name)
{
    if (name < r->names.len) return true;
    const size_t len = r->pool->names.text.len;
    if (!cs_vec_room(&r->names, len - r->names.len)) return false;
    for (size_t i = r->names.len; i < len; i++)
        r->names.at[i] = (cs_binding){CS_NONE, 0, CS_NONE};
    r->names.len = len;
    return true;
}

bool cs_scope_bind(cs_reader *r, cs_scope *s, cs_str name, uint32_t value)
{
    if (!grow(r, name)) return false;
    cs_binding *b = &r->names.at[name];
    uint32_t below = CS_NONE;
    if (s->depth > 1) {
        if (!cs_vec_room(&s->bound, 1) || !cs_vec_room(&r->below, 1)) return false;
        if (b->depth != 0) {
            below = (uint32_t)r->below.len;
            r->below.at[r->below.len++] = *b;
        }
        s->bound.at[s->bound.len++] = name;
    }
    *b = (cs_binding){value, s->depth, below};
    return true;
}

/* Lists `value` of the graph around `s` among what its owner captures, once. */
static bool note_capture(cs_scope *s, uint32_t value)
{
    cs_graph *g = s->graph;
    const uint32_t owner = (uint32_t)g->nodes.len; /* 1 + the id of the node added last */
    if (value >= s->captured.len) {
        const size_t more = (size_t)value + 1 - s->captured.len;
        if (!cs_vec_room(&s->captured, more)) return false;
        memset(s->captured.at + s->captured.len, 0, more * sizeof *s->captured.at);
        s->captured.len += more;
    }
    if (s->captured.at[value] == owner) return true;
    s->captured.at[value] = owner;
    return cs_graph_add_capture(g, value);
}

/* Makes the value `from` of s->outer known in `s`. */
static uint32_t capture_one(cs_reader *r, cs_scope *s, cs_str name, uint32_t from)
{
    if (!note_capture(s->outer, from)) return CS_NONE;
    const cs_type type = s->outer->graph->values.at[from].type;
    const uint32_t v = cs_graph_add_value(s->graph, name, type, CS_ORIGIN_CAPTURE);
    if (v == CS_NONE) return CS_NONE;
    s->graph->values.at[v].from = from;
    return cs_scope_bind(r, s, name, v) ? v : CS_NONE;
}

/* From the scope at `depth` inwards to `s`. Recursion is over open graphs, which are bounded. */
static uint32_t capture(cs_reader *r, cs_scope *s, cs_str name, uint32_t depth, uint32_t value)
{
    if (s->depth == depth) return value;
    const uint32_t from = capture(r, s->outer, name, depth, value);
    return from == CS_NONE ? CS_NONE : capture_one(r, s, name, from);
}

cutset_status cs_scope_resolve(cs_reader *r, cs_scope *s, cs_str name, uint32_t *value, bool *found)
{
    *value = CS_NONE;
    *found = false;
    if (name >= r->names.len) return CUTSET_OK;
    const cs_binding b = r->names.at[name];
    if (b.depth < s->floor) return CUTSET_OK; /* 0: nothing; else: outside of the function */
    *found = true;
    if (b.value == CS_NONE) return CUTSET_OK;
    *value = capture(r, s, name, b.depth, b.value);
    return *value == CS_NONE ? cs_fail_memory(r->err) : CUTSET_OK;
}
