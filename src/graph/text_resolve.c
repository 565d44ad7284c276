/* The second half of reading text: names become ids, once every definition is known.
 *
 * Graphs are taken innermost first. For each, one array from names to its values is filled, used and
 * emptied again. What a body does not define becomes a CAPTURE value there, whose source is looked
 * up when the enclosing graph is taken, and appended to the args of the node that owns the body; so
 * a name is handed outwards level by level, and the inner definition wins. Types of captures are
 * then copied from the outside in. Faults are gathered and the first in the text is told.
 *
 * Cost: linear in the graph and the number of names.
 */
#include "graph/text_reader.h"

enum fault_kind {
    NO_FAULT,
    TWICE,
    UNDEFINED,
    NO_NODE_HERE,
    INPUT_NODE,
    WEIGHT_NODE,
    NO_INDEX,
    TIE_UNKNOWN,
    TIE_OTHER,
    TIE_LOOP,
    TIE_BYTES
};

struct resolver {
    cs_text_reader *r;
    cs_text_scope *s; /* the graph at hand */
    bool top;
    uint32_t *slot; /* by name: its value in the graph at hand, or CS_NONE */
    CS_VEC(uint32_t) args, stamp;
    /* the first fault */
    enum fault_kind kind;
    size_t at, other; /* other: offset of the first definition; number of nodes; bytes */
    uint32_t name;    /* or index of a node */
};

static void note_fault(struct resolver *x, enum fault_kind kind, size_t at, uint32_t name,
                       size_t other)
{
    if (x->kind != NO_FAULT && at >= x->at) return;
    x->kind = kind;
    x->at = at;
    x->name = name;
    x->other = other;
}

static size_t line_of(const cs_text_reader *r, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset; i++)
        line += r->text[i] == '\n';
    return line;
}

static cutset_status tell_fault(struct resolver *x)
{
    cs_text_reader *r = x->r;
    cs_fault *f = &r->fault;
    const char *at = r->text + x->at;
    cs_span full = x->kind == NO_INDEX ? (cs_span){"", 0} : cs_name(r->pool, x->name);
    int len = (int)(full.len > 200 ? 200 : full.len);
    const char *name = full.at;
    switch (x->kind) {
    case TWICE:
        return cs_fault_at(f, at,
                           "%%%.*s is made twice (first on line %zu): give each value one "
                           "origin",
                           len, name, line_of(r, x->other));
    case UNDEFINED:
        return cs_fault_at(f, at,
                           "nothing makes %%%.*s: add the node that makes it, or make it an "
                           "input or a weight",
                           len, name);
    case NO_NODE_HERE:
        return cs_fault_at(f, at,
                           "no node of this graph makes %%%.*s: name a node by one of its "
                           "outputs, or by $ and its index",
                           len, name);
    case INPUT_NODE:
    case WEIGHT_NODE:
        return cs_fault_at(f, at,
                           "%%%.*s is %s and not made by a node: name a node by one of its "
                           "outputs, or by $ and its index",
                           len, name, x->kind == INPUT_NODE ? "an input" : "a weight");
    case NO_INDEX:
        return cs_fault_at(f, at,
                           "there is no node $%u among %zu: nodes count from $0 in the "
                           "order of their lines",
                           x->name, x->other);
    case TIE_UNKNOWN:
        return cs_fault_at(f, at, "there is no weight %%%.*s: name one, or remove '= %%%.*s'", len,
                           name, len, name);
    case TIE_OTHER:
        return cs_fault_at(f, at, "%%%.*s is no weight: only weights share their bytes", len, name);
    case TIE_LOOP:
        return cs_fault_at(f, at,
                           "the weight %%%.*s shares its own bytes: let one weight of the "
                           "loop stand alone",
                           len, name);
    case TIE_BYTES:
        return cs_fault_at(f, at,
                           "%%%.*s has another size than the weight that shares its bytes: "
                           "give both the same number of bytes",
                           len, name);
    default:
        return CUTSET_OK;
    }
}

/* ---- one graph ---- */

static void fill_slots(struct resolver *x)
{
    const cs_graph *g = x->s->g;
    for (uint32_t v = 0; v < g->values.len; v++) {
        cs_str name = g->values.at[v].name;
        if (x->slot[name] == CS_NONE)
            x->slot[name] = v;
        else
            note_fault(x, TWICE, x->s->value_at.at[v], name, x->s->value_at.at[x->slot[name]]);
    }
}

static void empty_slots(struct resolver *x)
{
    const cs_graph *g = x->s->g;
    for (size_t v = 0; v < g->values.len; v++)
        x->slot[g->values.at[v].name] = CS_NONE;
}

/* The value of that name, a new capture where this body does not define it. */
static bool resolve(struct resolver *x, cs_str name, size_t at, uint32_t *out)
{
    *out = x->slot[name];
    if (*out != CS_NONE) return true;
    if (x->top) {
        note_fault(x, UNDEFINED, at, name, 0);
        return true;
    }
    *out = cs_graph_add_value(x->s->g, name, 0, CS_ORIGIN_CAPTURE);
    if (*out == CS_NONE || !cs_vec_push(&x->s->value_at, at)) return false;
    x->slot[name] = *out;
    return true;
}

/* Has node `n` captured this value already? If not, it has now. */
static bool captured(struct resolver *x, uint32_t value, uint32_t n, bool *no_memory)
{
    if (value == CS_NONE) return true;
    while (x->stamp.len <= value)
        if (!cs_vec_push(&x->stamp, CS_NONE)) {
            *no_memory = true;
            return true;
        }
    if (x->stamp.at[value] == n) return true;
    x->stamp.at[value] = n;
    return false;
}

/* The captures of one body of node `n`: their sources, and the node's own captures. */
static bool take_captures(struct resolver *x, uint32_t n, const cs_text_scope *body)
{
    for (size_t v = body->n_made; v < body->g->values.len; v++) {
        uint32_t source;
        bool no_memory = false;
        if (!resolve(x, body->g->values.at[v].name, body->value_at.at[v], &source)) return false;
        body->g->values.at[v].from = source;
        if (captured(x, source, n, &no_memory)) {
            if (no_memory) return false;
            continue;
        }
        if (x->args.len >= CS_NONE - 1 || !cs_vec_push(&x->args, source)) return false;
        x->s->g->nodes.at[n].n_capture++;
    }
    return true;
}

/* With bodies, the args are laid out anew, captures among them. */
static bool resolve_nodes(struct resolver *x)
{
    cs_graph *g = x->s->g;
    x->args.len = x->stamp.len = 0;
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        uint32_t from = g->nodes.at[i].arg, start = (uint32_t)x->args.len;
        for (uint32_t a = from; a < from + g->nodes.at[i].n_arg; a++) {
            uint32_t value = CS_NONE;
            if (g->args.at[a] != CS_NONE && !resolve(x, g->args.at[a], x->s->arg_at.at[a], &value))
                return false;
            if (x->args.len >= CS_NONE - 1 || !cs_vec_push(&x->args, value)) return false;
        }
        for (uint32_t b = 0; b < g->nodes.at[i].n_body; b++) {
            uint32_t child = x->s->child.at[g->nodes.at[i].body + b];
            if (!take_captures(x, i, cs_text_at(x->r, child))) return false;
        }
        g->nodes.at[i].arg = start;
    }
    g->args.len = 0;
    if (!cs_vec_room(&g->args, x->args.len)) return false;
    for (size_t a = 0; a < x->args.len; a++)
        g->args.at[a] = x->args.at[a];
    g->args.len = x->args.len;
    return true;
}

/* Names in a flat array become values, in place. */
static bool resolve_all(struct resolver *x, uint32_t *names, size_t len, const size_t *at)
{
    for (size_t i = 0; i < len; i++)
        if (names[i] != CS_NONE && !resolve(x, names[i], at[i], &names[i])) return false;
    return true;
}

static uint32_t resolve_node(struct resolver *x, const cs_text_node *node)
{
    const cs_graph *g = x->s->g;
    if (node->indexed) {
        if (node->id >= g->nodes.len) note_fault(x, NO_INDEX, node->at, node->id, g->nodes.len);
        return node->id;
    }
    uint32_t v = x->slot[node->id];
    cs_origin origin = v == CS_NONE ? CS_ORIGIN_CAPTURE : (cs_origin)g->values.at[v].origin;
    if (origin == CS_ORIGIN_NODE) return g->values.at[v].from;
    note_fault(x,
               origin == CS_ORIGIN_INPUT    ? INPUT_NODE
               : origin == CS_ORIGIN_WEIGHT ? WEIGHT_NODE
                                            : NO_NODE_HERE,
               node->at, node->id, 0);
    return CS_NONE;
}

/* The opset of each node, and whether it draws random numbers in a body. */
static void finish_nodes(struct resolver *x)
{
    cs_graph *g = x->s->g;
    for (size_t i = 0; i < g->nodes.len; i++) {
        cs_node *n = &g->nodes.at[i];
        int64_t version = cs_graph_opset(g, n->domain);
        n->opset = version > INT32_MAX ? INT32_MAX : (int32_t)version;
        for (uint32_t b = 0; b < n->n_body; b++)
            if (cs_text_at(x->r, x->s->child.at[n->body + b])->random) n->flags |= CS_NODE_RANDOM;
        if (n->flags & CS_NODE_RANDOM) x->s->random = true;
    }
}

static bool resolve_graph(struct resolver *x)
{
    cs_graph *g = x->s->g;
    fill_slots(x);
    bool ok =
        g->bodies.len ? resolve_nodes(x) : resolve_all(x, g->args.at, g->args.len, x->s->arg_at.at);
    ok = ok && resolve_all(x, g->writes.at, g->writes.len, x->s->write_at.at) &&
         resolve_all(x, g->outputs.at, g->outputs.len, x->s->output_at.at);
    for (size_t e = 0; e < g->order.len; e++) {
        g->order.at[e].from = resolve_node(x, &x->s->order.at[2 * e]);
        g->order.at[e].to = resolve_node(x, &x->s->order.at[2 * e + 1]);
    }
    for (size_t m = 0; m < g->members.len; m++)
        g->members.at[m] = resolve_node(x, &x->s->members.at[m]);
    finish_nodes(x);
    empty_slots(x);
    return ok;
}

/* ---- ties ---- */

/* The value of that name, seen from `scope`: the innermost definition. */
static cs_value *find_value(struct resolver *x, const cs_map *values, uint32_t scope, cs_str name)
{
    for (; scope != CS_NONE; scope = cs_text_at(x->r, scope)->outer) {
        uint32_t v = cs_map_get(values, (uint64_t)scope << 32 | name);
        if (v != CS_NONE) return &cs_text_at(x->r, scope)->g->values.at[v];
    }
    return NULL;
}

static bool map_values(struct resolver *x, cs_map *values)
{
    for (uint32_t k = 0; k < x->r->scopes.len; k++) {
        const cs_text_scope *s = cs_text_at(x->r, k);
        for (uint32_t v = 0; v < s->n_made; v++)
            if (!cs_map_put(values, (uint64_t)k << 32 | s->g->values.at[v].name, v)) return false;
    }
    return true;
}

static cs_value *tied_value(struct resolver *x, size_t tie)
{
    const cs_text_tie *t = &x->r->ties.at[tie];
    return &cs_text_at(x->r, t->scope)->g->values.at[t->value];
}

/* Finds what each tie names. Until its storage is known, a tied weight has base + the index of its
 * tie in its place. False: a fault was noted. */
static bool find_targets(struct resolver *x, const cs_map *values, uint32_t base, cs_value **target)
{
    for (size_t i = 0; i < x->r->ties.len; i++) {
        const cs_text_tie *t = &x->r->ties.at[i];
        tied_value(x, i)->storage = base + (uint32_t)i;
        target[i] = find_value(x, values, t->scope, t->name);
        bool weight = target[i] && target[i]->origin == CS_ORIGIN_WEIGHT;
        if (!weight) {
            note_fault(x, target[i] ? TIE_OTHER : TIE_UNKNOWN, t->at, t->name, 0);
            return false;
        }
    }
    return true;
}

/* Follows each chain of ties to its storage and gives that to all of the chain, so that every tie
 * is walked twice at most. */
static void follow_ties(struct resolver *x, uint32_t base, cs_value **target)
{
    const cs_storage *storages = x->r->scopes.at[0].g->storages.at;
    for (size_t i = 0; i < x->r->ties.len; i++) {
        const cs_text_tie *t = &x->r->ties.at[i];
        uint32_t s = tied_value(x, i)->storage;
        for (size_t steps = 0; s >= base; steps++) {
            if (steps > x->r->ties.len) {
                note_fault(x, TIE_LOOP, t->at, t->name, 0);
                return;
            }
            s = target[s - base]->storage;
        }
        for (cs_value *v = tied_value(x, i); v->storage >= base;) {
            cs_value *next = target[v->storage - base];
            v->storage = s;
            v = next;
        }
        if (storages[s].bytes != cs_text_weight_bytes(x->r->pool, tied_value(x, i)->type))
            note_fault(x, TIE_BYTES, t->at, t->name, 0);
    }
}

static bool resolve_ties(struct resolver *x)
{
    size_t n = x->r->ties.len, base = x->r->scopes.at[0].g->storages.len;
    if (n == 0) return true;
    if (base + n >= CS_NONE) return false;
    cs_map values = {0};
    cs_value **target = cs_alloc(n, sizeof *target);
    bool ok = target && map_values(x, &values);
    if (ok && find_targets(x, &values, (uint32_t)base, target))
        follow_ties(x, (uint32_t)base, target);
    cs_map_fini(&values);
    cs_free(target);
    return ok;
}

/* ---- all graphs ---- */

static void copy_capture_types(cs_text_reader *r)
{
    for (size_t k = 1; k < r->scopes.len; k++) {
        const cs_text_scope *s = &r->scopes.at[k];
        for (size_t v = s->n_made; v < s->g->values.len; v++)
            s->g->values.at[v].type = s->g->outer->values.at[s->g->values.at[v].from].type;
    }
}

cutset_status cs_text_resolve(cs_text_reader *r)
{
    size_t names = r->pool->names.text.len;
    struct resolver x = {.r = r, .slot = cs_alloc(names, sizeof *x.slot)};
    bool ok = x.slot != NULL;
    for (size_t i = 0; ok && i < names; i++)
        x.slot[i] = CS_NONE;
    for (size_t k = r->scopes.len; ok && k-- > 0;) {
        x.s = &r->scopes.at[k];
        x.top = k == 0;
        ok = resolve_graph(&x);
    }
    ok = ok && resolve_ties(&x);
    cs_free(x.slot);
    cs_vec_fini(&x.args);
    cs_vec_fini(&x.stamp);
    if (!ok) return CUTSET_SYSTEM;
    if (x.kind != NO_FAULT) return tell_fault(&x);
    copy_capture_types(r);
    return CUTSET_OK;
}
