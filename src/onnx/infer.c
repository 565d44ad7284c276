/* Type inference: walks each graph in topological order and asks the operator's table entry.
 *
 * A value's type before its node is reached is what the model declares; cs_op_put_type combines
 * both. Bodies are scopes: a scope remembers what its graph declared, so that a body can be
 * inferred again with other inputs (Loop and Scan do so until carried types are stable). The passes
 * over a body are bounded (infer_flow.c), so nested loops stay linear in depth, not exponential.
 *
 * Elements of small integer tensors (shapes on their way to a Reshape) are kept beside the values
 * while inference runs: cs_op_put_list, cs_op_found.
 *
 * Cost: one table lookup by string id a node; memory: 4 bytes a name, 8 bytes a value of graphs
 * that compute shapes, 4 bytes a value of bodies.
 */
#include "onnx/infer.h"

#include <string.h>

#include "onnx/infer_ops.h"

#define PROGRESS_STEP 65536
#define NOTES_MAX 20 /* notes about shapes that the model declares otherwise */

typedef struct found { /* elements of a small integer tensor */
    int len;
    bool scalar;
    cs_item at[];
} found;

struct cs_scope {
    cs_graph *g;
    cs_scope *outer;
    cs_type *declared; /* by value; NULL in the outermost graph, which is inferred once */
    found **elements;  /* by value; NULL: none yet */
    uint32_t passes;
};

typedef struct link { /* entries of one operator name, over all domains */
    const cs_entry *entry;
    uint32_t next;
} link;

struct cs_run {
    cs_pool *pool;
    const cutset_progress *progress;
    cutset_error *err;
    cutset_status status; /* sticky */
    cs_arena arena;
    uint32_t *by_op; /* by string id: first of its links, or CS_NONE */
    size_t n_by_op;
    CS_VEC(link) links;
    cs_str domain[CS_DOMAIN_COUNT][2]; /* string ids; CS_NONE: not in this model */
    cs_map scope_of;                   /* address of a body's graph -> index into scopes */
    CS_VEC(cs_scope *) scopes;
    uint64_t done, total;
    uint64_t notes;
};

static cutset_status infer_graph(cs_run *run, cs_scope *scope);

/* ---- the table ---- */

static const cs_family *const families[] = {
    &cs_infer_math, &cs_infer_shape,     &cs_infer_index, &cs_infer_nn,    &cs_infer_matrix,
    &cs_infer_norm, &cs_infer_attention, &cs_infer_quant, &cs_infer_image, &cs_infer_text,
    &cs_infer_seq,  &cs_infer_flow,      &cs_infer_ml,    &cs_infer_ms,
};

static const struct {
    const char *name;
    cs_domain domain;
    int spelling;
} domains[] = {
    {"", CS_DOMAIN_ONNX, 0},
    {"ai.onnx", CS_DOMAIN_ONNX, 1},
    {"ai.onnx.ml", CS_DOMAIN_ML, 0},
    {"ai.onnx.preview", CS_DOMAIN_PREVIEW, 0},
    {"ai.onnx.preview.training", CS_DOMAIN_TRAINING, 0},
    {"ai.onnx.training", CS_DOMAIN_TRAINING, 1},
    {"com.microsoft", CS_DOMAIN_MS, 0},
    {"com.ms.internal.nhwc", CS_DOMAIN_NHWC, 0},
    {"com.microsoft.nchwc", CS_DOMAIN_NCHWC, 0},
};

/* Strings are interned, so only operators that the model uses are in by_op. */
static bool open_table(cs_run *run)
{
    const cs_strtab *names = &run->pool->names;
    for (size_t i = 0; i < CS_DOMAIN_COUNT; i++)
        run->domain[i][0] = run->domain[i][1] = CS_NONE;
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        run->domain[domains[i].domain][domains[i].spelling] =
            cs_strtab_find(names, cs_span_of(domains[i].name));
    run->n_by_op = names->text.len;
    run->by_op = cs_alloc(run->n_by_op, sizeof *run->by_op);
    if (!run->by_op) return false;
    memset(run->by_op, 0xff, run->n_by_op * sizeof *run->by_op);
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        for (size_t i = 0; i < families[f]->len; i++) {
            const cs_entry *e = &families[f]->at[i];
            cs_str id = cs_strtab_find(names, cs_span_of(e->name));
            if (id == CS_NONE) continue;
            link l = {e, run->by_op[id]};
            run->by_op[id] = (uint32_t)run->links.len;
            if (!cs_vec_push(&run->links, l)) return false;
        }
    }
    return true;
}

static cs_domain domain_of(const cs_run *run, cs_str s)
{
    for (int i = CS_DOMAIN_NONE + 1; i < CS_DOMAIN_COUNT; i++)
        if (run->domain[i][0] == s || run->domain[i][1] == s) return (cs_domain)i;
    return CS_DOMAIN_NONE;
}

static const cs_entry *find_entry(const cs_run *run, const cs_node *n)
{
    uint32_t i = n->op < run->n_by_op ? run->by_op[n->op] : CS_NONE;
    if (i == CS_NONE) return NULL;
    cs_domain domain = domain_of(run, n->domain);
    for (; i != CS_NONE; i = run->links.at[i].next)
        if (run->links.at[i].entry->domain == domain) return run->links.at[i].entry;
    return NULL;
}

/* ---- what a value gets ---- */

void cs_op_no_memory(cs_op *op)
{
    if (op->run->status == CUTSET_OK) op->run->status = cs_fail_memory(op->run->err);
}

bool cs_op_failed(const cs_op *op) { return op->run->status != CUTSET_OK; }

static void note_shape(cs_op *op, const cs_scope *scope, uint32_t value, const char *was,
                       const char *is)
{
    if (scope->passes > 1 || ++op->run->notes > NOTES_MAX) return;
    cs_span name = cs_name(op->pool, scope->g->values.at[value].name);
    if (!cs_note(op->pool,
                 "%.*s is declared %s, inferred %s: the inferred rank is taken, sizes "
                 "that differ are unknown",
                 CS_FMT(name), was, is))
        cs_op_no_memory(op);
}

static void fail_elem(cs_op *op, const cs_scope *scope, uint32_t value, const char *was,
                      const char *is)
{
    char buffer[16];
    cs_span label = cs_node_label(op->g, op->id, buffer);
    cs_span kind = cs_name(op->pool, op->node->op);
    cs_span name = cs_name(op->pool, scope->g->values.at[value].name);
    op->run->status = cs_fail_at(
        op->run->err, CUTSET_BAD, op->node->offset,
        "node %.*s (%.*s): %.*s is declared %s but the operator makes it %s; correct the declared "
        "type, or leave it out",
        CS_FMT(label), CS_FMT(kind), CS_FMT(name), was, is);
    cs_error_name(op->run->err, label.at, label.len);
}

/* The declared and the inferred type differ: a note, or the end. */
static void complain(cs_op *op, const cs_scope *scope, uint32_t value, cs_type inferred, cs_fit fit)
{
    cs_chars was = {0}, is = {0};
    cs_type declared = scope->g->values.at[value].type;
    if (!cs_type_print(op->pool, declared, &was) || !cs_vec_push(&was, '\0') ||
        !cs_type_print(op->pool, inferred, &is) || !cs_vec_push(&is, '\0'))
        cs_op_no_memory(op);
    else if (fit == CS_FIT_SHAPE)
        note_shape(op, scope, value, was.at, is.at);
    else
        fail_elem(op, scope, value, was.at, is.at);
    cs_vec_fini(&was);
    cs_vec_fini(&is);
}

static void settle(cs_op *op, cs_scope *scope, uint32_t value, cs_type inferred)
{
    cs_value *v = &scope->g->values.at[value];
    if (inferred == 0 || inferred == v->type || op->run->status != CUTSET_OK) return;
    cs_type both;
    cs_fit fit = cs_type_combine(op->pool, inferred, v->type, &both);
    if (both == CS_NONE)
        cs_op_no_memory(op);
    else if (fit != CS_FIT)
        complain(op, scope, value, inferred, fit);
    if (op->run->status == CUTSET_OK) v->type = both;
}

void cs_op_put_type(cs_op *op, uint32_t out, cs_type type)
{
    if (type == CS_NONE)
        cs_op_no_memory(op);
    else if (cs_op_wants(op, out))
        settle(op, op->scope, cs_outs(op->g, op->node)[out], type);
}

/* ---- elements of small integer tensors ---- */

static void keep_list(cs_op *op, cs_scope *scope, uint32_t value, const cs_list *list)
{
    size_t n_values = scope->g->values.len;
    if (!scope->elements)
        scope->elements = cs_arena_zalloc(&op->run->arena, n_values, sizeof *scope->elements);
    size_t items = (size_t)list->len * sizeof(cs_item);
    found *f = scope->elements ? cs_arena_alloc(&op->run->arena, 1, sizeof *f + items) : NULL;
    if (!f) {
        cs_op_no_memory(op);
        return;
    }
    f->len = list->len;
    f->scalar = list->scalar;
    memcpy(f->at, list->at, items);
    scope->elements[value] = f;
}

void cs_op_put_list(cs_op *op, uint32_t out, const cs_list *list)
{
    if (list->state == CS_LIST_KNOWN && list->len <= CS_LIST_MAX && cs_op_wants(op, out))
        keep_list(op, op->scope, cs_outs(op->g, op->node)[out], list);
}

bool cs_op_found(const cs_op *op, uint32_t value, cs_list *out)
{
    const cs_scope *s = op->scope;
    while (s->g->values.at[value].origin == CS_ORIGIN_CAPTURE && s->outer) {
        value = s->g->values.at[value].from;
        s = s->outer;
    }
    const found *f = s->elements ? s->elements[value] : NULL;
    if (!f) return false;
    out->state = CS_LIST_KNOWN;
    out->len = f->len;
    out->scalar = f->scalar;
    memcpy(out->at, f->at, (size_t)f->len * sizeof *f->at);
    return true;
}

/* ---- bodies ---- */

cs_type *cs_op_room(cs_op *op, size_t n)
{
    cs_type *room = cs_arena_zalloc(&op->run->arena, n ? n : 1, sizeof *room);
    if (!room) cs_op_no_memory(op);
    return room;
}

static cs_graph *body_graph(const cs_op *op, uint32_t index)
{
    return op->g->bodies.at[op->node->body + index].graph;
}

static cs_scope *find_scope(const cs_run *run, const cs_graph *g)
{
    uint32_t i = cs_map_get(&run->scope_of, (uint64_t)(uintptr_t)g);
    return i == CS_NONE ? NULL : run->scopes.at[i];
}

static cs_scope *new_scope(cs_run *run, cs_graph *g, cs_scope *outer)
{
    cs_scope *s = cs_arena_zalloc(&run->arena, 1, sizeof *s);
    if (!s || !cs_vec_push(&run->scopes, s)) return NULL;
    s->g = g;
    s->outer = outer;
    if (!outer) return s;
    size_t n = g->values.len;
    s->declared = cs_arena_alloc(&run->arena, n ? n : 1, sizeof *s->declared);
    if (!s->declared ||
        !cs_map_put(&run->scope_of, (uint64_t)(uintptr_t)g, (uint32_t)run->scopes.len - 1))
        return NULL;
    for (size_t i = 0; i < n; i++)
        s->declared[i] = g->values.at[i].type;
    return s;
}

/* Types as declared, captures as the enclosing graph has them. */
static void reset_scope(cs_scope *s)
{
    size_t n = s->g->values.len;
    for (size_t i = 0; i < n; i++) {
        cs_value *v = &s->g->values.at[i];
        v->type = s->declared[i];
        if (v->origin == CS_ORIGIN_CAPTURE && s->outer->g->values.at[v->from].type)
            v->type = s->outer->g->values.at[v->from].type;
    }
    if (s->elements) memset(s->elements, 0, n * sizeof *s->elements);
}

static void pass_lists(cs_op *op, cs_scope *scope)
{
    const cs_graph *g = scope->g;
    cs_list list;
    for (uint32_t i = 0; i < g->inputs.len && i < op->node->n_arg; i++) {
        cs_op_list(op, i, &list);
        if (list.state == CS_LIST_KNOWN) keep_list(op, scope, g->inputs.at[i], &list);
    }
}

void cs_op_body(cs_op *op, uint32_t index, const cs_type *in, uint32_t n, bool elements)
{
    cs_run *run = op->run;
    cs_graph *g = body_graph(op, index);
    op->bodies_done = true;
    cs_scope *scope = find_scope(run, g);
    if (!scope) scope = new_scope(run, g, op->scope);
    if (!scope) {
        cs_op_no_memory(op);
        return;
    }
    reset_scope(scope);
    scope->passes++;
    for (uint32_t i = 0; i < n && i < g->inputs.len; i++)
        settle(op, scope, g->inputs.at[i], in[i]);
    if (elements) pass_lists(op, scope);
    if (run->status == CUTSET_OK) run->status = infer_graph(run, scope);
}

uint32_t cs_op_find_body(const cs_op *op, const char *attr)
{
    for (uint32_t i = 0; i < op->node->n_body; i++) {
        cs_str name = op->g->bodies.at[op->node->body + i].attr;
        if (attr ? cs_span_is(cs_name(op->pool, name), attr) : name == 0) return i;
    }
    return CS_NONE;
}

uint32_t cs_op_body_inputs(const cs_op *op, uint32_t index)
{
    return (uint32_t)body_graph(op, index)->inputs.len;
}

uint32_t cs_op_body_outputs(const cs_op *op, uint32_t index)
{
    return (uint32_t)body_graph(op, index)->outputs.len;
}

cs_type cs_op_body_out(const cs_op *op, uint32_t index, uint32_t out)
{
    const cs_graph *g = body_graph(op, index);
    return out < g->outputs.len ? g->values.at[g->outputs.at[out]].type : 0;
}

cs_type cs_op_body_declared(const cs_op *op, uint32_t index, uint32_t in)
{
    const cs_graph *g = body_graph(op, index);
    const cs_scope *scope = find_scope(op->run, g);
    if (in >= g->inputs.len) return 0;
    uint32_t value = g->inputs.at[in];
    return scope ? scope->declared[value] : g->values.at[value].type;
}

uint32_t cs_op_body_passes(const cs_op *op, uint32_t index)
{
    const cs_scope *scope = find_scope(op->run, body_graph(op, index));
    return scope ? scope->passes : 0;
}

void cs_op_body_list(const cs_op *op, uint32_t index, uint32_t out, cs_list *list)
{
    cs_graph *g = body_graph(op, index);
    cs_op in = *op;
    in.g = g;
    in.scope = find_scope(op->run, g);
    list->state = CS_LIST_UNKNOWN;
    if (in.scope && out < g->outputs.len) cs_op_value_list(&in, g->outputs.at[out], list);
}

/* ---- the walk ---- */

/* Bodies that the operator's function left alone: types of captures, and what follows from them. */
static void infer_other_bodies(cs_op *op)
{
    for (uint32_t i = 0; i < op->node->n_body && op->run->status == CUTSET_OK; i++)
        cs_op_body(op, i, NULL, 0, false);
}

static void infer_node(cs_run *run, cs_scope *scope, uint32_t id)
{
    const cs_node *n = &scope->g->nodes.at[id];
    cs_op op = {.run = run, .scope = scope, .pool = run->pool, .g = scope->g, .node = n, .id = id};
    op.opset = n->opset > 0 ? n->opset : INT32_MAX;
    op.entry = find_entry(run, n);
    run->done++;
    if (n->flags & CS_NODE_FUNCTION)
        cs_infer_call(&op);
    else if (op.entry)
        op.entry->types(&op);
    if (n->n_body && !op.bodies_done) infer_other_bodies(&op);
    if (op.entry && op.entry->data && run->status == CUTSET_OK && !(n->flags & CS_NODE_FUNCTION))
        op.entry->data(&op);
}

static cutset_status infer_graph(cs_run *run, cs_scope *scope)
{
    const cs_graph *g = scope->g;
    for (size_t i = 0; i < g->nodes.len; i++) {
        infer_node(run, scope, g->topo[i]);
        if (run->status != CUTSET_OK) return run->status;
        if (run->done % PROGRESS_STEP == 0) {
            cutset_status s = cs_progress(run->progress, "inferring types", run->done, 0, run->err);
            if (s != CUTSET_OK) return s;
        }
    }
    return CUTSET_OK;
}

static void close_run(cs_run *run)
{
    cs_free(run->by_op);
    cs_vec_fini(&run->links);
    cs_vec_fini(&run->scopes);
    cs_map_fini(&run->scope_of);
    cs_arena_fini(&run->arena);
}

cutset_status cs_infer(cs_graph *g, const cutset_progress *progress, cutset_error *err)
{
    cs_run run = {.pool = g->pool, .progress = progress, .err = err};
    cs_scope *top = open_table(&run) ? new_scope(&run, g, NULL) : NULL;
    cutset_status status = top ? infer_graph(&run, top) : cs_fail_memory(err);
    if (status == CUTSET_OK && run.notes > NOTES_MAX &&
        !cs_note(g->pool, "%llu more values are declared with another shape than inferred",
                 (unsigned long long)(run.notes - NOTES_MAX)))
        status = cs_fail_memory(err);
    close_run(&run);
    return status;
}
