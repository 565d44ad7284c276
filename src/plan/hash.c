/* The hash of a part: over its structure, never over names of values or nodes.
 *
 * Values are numbered within the part as they are met, a node's reads before what it makes, nodes
 * in execution order; so two parts with the same operators wired the same way have the same hash
 * wherever they stand in the model. What comes from outside is described when it is met first: an
 * input by its type, a weight by its type, its storage (numbered the same way: tied weights stay
 * tied), its size and, where it is small, its bytes. Bodies are hashed with their own value ids,
 * which are positions, not names.
 *
 * Copies count like the part's own nodes. Attributes that are not decoded count by name only.
 * Cost: O(n + m).
 */
#include "plan/assemble.h"

#include <string.h>

/* ---- pieces, shared with the hash of a model ---- */

bool cs_hash_type(cs_hasher *h, cs_type_hashes *known, const cs_pool *pool, cs_type type)
{
    if (type >= known->len) {
        const size_t more = pool->types.len - known->len;
        if (!cs_vec_room(known, more)) return false;
        memset(known->at + known->len, 0, more * sizeof *known->at);
        known->len += more;
    }
    if (known->at[type] == 0) {
        cs_chars text = {0};
        const bool ok = cs_type_print(pool, type, &text);
        known->at[type] = cs_hash(text.at, text.len) | 1; /* never 0 */
        cs_vec_fini(&text);
        if (!ok) {
            known->at[type] = 0;
            return false;
        }
    }
    cs_hasher_add_u64(h, known->at[type]);
    return true;
}

void cs_hash_storage(cs_hasher *h, const cs_storage *s)
{
    cs_hasher_add_u64(h, (uint64_t)s->bytes);
    cs_hasher_add_u64(h, (uint64_t)s->elem);
    const bool small = s->data != NULL && s->bytes >= 0 && s->bytes <= CS_CONST_MAX;
    cs_hasher_add_u64(h, small);
    if (small) cs_hasher_add(h, s->data, (size_t)s->bytes);
}

static void add_f32(cs_hasher *h, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    cs_hasher_add_u64(h, bits);
}

static void add_tensor(cs_hasher *h, const cs_attr *attr)
{
    cs_hasher_add_u64(h, attr->data != NULL);
    if (attr->data != NULL) cs_hasher_add(h, attr->data, attr->len);
}

bool cs_hash_attr(cs_hasher *h, cs_type_hashes *known, const cs_pool *pool, const cs_attr *attr)
{
    cs_hasher_add_span(h, cs_name(pool, attr->name));
    cs_hasher_add_u64(h, attr->kind);
    if (attr->kind != CS_ATTR_INT && attr->kind != CS_ATTR_FLOAT) cs_hasher_add_u64(h, attr->len);
    switch (attr->kind) {
    case CS_ATTR_INT:
        cs_hasher_add_u64(h, (uint64_t)attr->i);
        return true;
    case CS_ATTR_FLOAT:
        add_f32(h, attr->f);
        return true;
    case CS_ATTR_STRING:
        cs_hasher_add(h, attr->s, attr->len);
        return true;
    case CS_ATTR_INTS:
        for (size_t i = 0; i < attr->len; i++)
            cs_hasher_add_u64(h, (uint64_t)attr->ints[i]);
        return true;
    case CS_ATTR_FLOATS:
        for (size_t i = 0; i < attr->len; i++)
            add_f32(h, attr->floats[i]);
        return true;
    case CS_ATTR_STRINGS:
        for (size_t i = 0; i < attr->len; i++)
            cs_hasher_add_span(h, attr->strings[i]);
        return true;
    case CS_ATTR_TENSOR:
        add_tensor(h, attr);
        return cs_hash_type(h, known, pool, attr->type);
    case CS_ATTR_TYPE:
        return cs_hash_type(h, known, pool, attr->type);
    case CS_ATTR_TENSORS:
    case CS_ATTR_TYPES:
        for (size_t i = 0; i < attr->len; i++)
            if (!cs_hash_type(h, known, pool, attr->types[i])) return false;
        return true;
    case CS_ATTR_OTHER:
        return true;
    }
    return true;
}

/* ---- parts ---- */

typedef struct numbering {
    uint32_t *stamp, *id;
    uint32_t next;
} numbering;

typedef struct part_hasher {
    const cs_graph *g; /* the outermost */
    cs_hasher *h;
    uint32_t part;
    numbering values, storages;
    cs_type_hashes types;
} part_hasher;

/* Numbers `x` when it is new: true. */
static bool meet(numbering *n, uint32_t x, uint32_t part)
{
    if (n->stamp[x] == part + 1) return false;
    n->stamp[x] = part + 1;
    n->id[x] = n->next++;
    return true;
}

static void add_storage(part_hasher *p, uint32_t storage)
{
    const bool new = storage != CS_NONE &&meet(&p->storages, storage, p->part);
    cs_hasher_add_u64(p->h, storage == CS_NONE ? UINT64_MAX : p->storages.id[storage]);
    if (new) cs_hash_storage(p->h, &p->g->storages.at[storage]);
}

/* A value of the outermost graph, described when met first, unless the part makes it. */
static bool add_value(part_hasher *p, uint32_t v, bool made_here)
{
    if (v == CS_NONE) {
        cs_hasher_add_u64(p->h, UINT64_MAX);
        return true;
    }
    const bool new = meet(&p->values, v, p->part);
    cs_hasher_add_u64(p->h, p->values.id[v]);
    if (!new || made_here) return true;
    const cs_value *value = &p->g->values.at[v];
    cs_hasher_add_u64(p->h, value->origin == CS_ORIGIN_WEIGHT ? 2 : 1);
    add_storage(p, value->storage);
    return cs_hash_type(p->h, &p->types, p->g->pool, value->type);
}

/* Operator and attributes: what a node is, without its wiring. */
static bool add_operator(part_hasher *p, const cs_graph *g, const cs_node *n)
{
    cs_hasher_add_span(p->h, cs_name(g->pool, n->domain));
    cs_hasher_add_span(p->h, cs_name(g->pool, n->op));
    const uint64_t facts[] = {(uint64_t)n->opset, n->flags,  n->n_arg,  n->n_capture,
                              n->n_out,           n->n_attr, n->n_body, n->n_write};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        cs_hasher_add_u64(p->h, facts[i]);
    for (uint32_t a = 0; a < n->n_attr; a++)
        if (!cs_hash_attr(p->h, &p->types, g->pool, &g->attrs.at[n->attr + a])) return false;
    return true;
}

static void add_ids(part_hasher *p, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cs_hasher_add_u64(p->h, ids[i]);
}

static bool add_body_values(part_hasher *p, const cs_graph *body, bool outermost)
{
    for (uint32_t v = 0; v < body->values.len; v++) {
        const cs_value *value = &body->values.at[v];
        cs_hasher_add_u64(p->h, value->origin);
        if (value->origin == CS_ORIGIN_NODE) continue;
        if (value->origin == CS_ORIGIN_CAPTURE) {
            if (!outermost)
                cs_hasher_add_u64(p->h, value->from);
            else if (!add_value(p, value->from, false))
                return false;
            continue;
        }
        add_storage(p, value->storage);
        if (!cs_hash_type(p->h, &p->types, body->pool, value->type)) return false;
    }
    return true;
}

/* Recursive, as bodies are nested in a bounded depth; `outermost`: its captures are values of the
 * outermost graph. */
static bool add_body(part_hasher *p, const cs_graph *body, cs_str attr, bool outermost)
{
    cs_hasher_add_span(p->h, cs_name(body->pool, attr));
    cs_hasher_add_u64(p->h, body->values.len);
    cs_hasher_add_u64(p->h, body->nodes.len);
    cs_hasher_add_u64(p->h, body->inputs.len);
    cs_hasher_add_u64(p->h, body->outputs.len);
    add_ids(p, body->inputs.at, body->inputs.len);
    if (!add_body_values(p, body, outermost)) return false;
    for (size_t i = 0; i < body->nodes.len; i++) {
        const cs_node *n = &body->nodes.at[i];
        if (!add_operator(p, body, n)) return false;
        add_ids(p, cs_args(body, n), cs_n_reads(n));
        add_ids(p, cs_outs(body, n), n->n_out);
        for (uint32_t b = 0; b < n->n_body; b++) {
            const cs_body *inner = &body->bodies.at[n->body + b];
            if (!add_body(p, inner->graph, inner->attr, false)) return false;
        }
    }
    add_ids(p, body->outputs.at, body->outputs.len);
    return true;
}

static bool add_node(part_hasher *p, uint32_t node)
{
    const cs_graph *g = p->g;
    const cs_node *n = &g->nodes.at[node];
    bool ok = add_operator(p, g, n);
    for (uint32_t a = 0; ok && a < cs_n_reads(n); a++)
        ok = add_value(p, cs_args(g, n)[a], false);
    for (uint32_t o = 0; ok && o < n->n_out; o++)
        ok = add_value(p, cs_outs(g, n)[o], true);
    for (uint32_t w = 0; ok && w < n->n_write; w++)
        ok = add_value(p, g->writes.at[n->write + w], false);
    for (uint32_t b = 0; ok && b < n->n_body; b++) {
        const cs_body *body = &g->bodies.at[n->body + b];
        ok = add_body(p, body->graph, body->attr, true);
    }
    return ok;
}

static bool hash_part(part_hasher *p, cs_part *part, const cs_layout *l, uint64_t target)
{
    p->h = cs_hasher_new();
    if (p->h == NULL) return false;
    p->part = part->id;
    p->values.next = p->storages.next = 0;
    cs_hasher_add_u64(p->h, target);
    const uint32_t first = l->run_start[part->id], end = l->run_start[part->id + 1];
    cs_hasher_add_u64(p->h, end - first);
    bool ok = true;
    for (uint32_t i = first; ok && i < end; i++)
        ok = add_node(p, l->run[i]);
    const uint32_t *at = l->io_start + 2 * (size_t)part->id;
    cs_hasher_add_u64(p->h, at[2] - at[1]);
    for (uint32_t i = at[1]; ok && i < at[2]; i++)
        ok = add_value(p, l->io.at[i], true);
    part->hash = cs_hasher_done(p->h);
    return ok;
}

cutset_status cs_parts_hash(cutset_plan *plan, const cs_layout *l,
                            const cutset_target *const *targets, cutset_error *err)
{
    const cs_graph *g = l->graph;
    part_hasher p = {.g = g};
    p.values = (numbering){.stamp = cs_zalloc(g->values.len, sizeof(uint32_t)),
                           .id = cs_alloc(g->values.len, sizeof(uint32_t))};
    p.storages = (numbering){.stamp = cs_zalloc(g->storages.len, sizeof(uint32_t)),
                             .id = cs_alloc(g->storages.len, sizeof(uint32_t))};
    bool ok = p.values.stamp != NULL && p.values.id != NULL && p.storages.stamp != NULL &&
              p.storages.id != NULL;
    for (size_t i = 0; ok && i < plan->parts.len; i++) {
        cs_part *part = &plan->parts.at[i];
        ok = hash_part(&p, part, l, part->target < 0 ? 0 : targets[part->target]->hash);
    }
    cs_free(p.values.stamp);
    cs_free(p.values.id);
    cs_free(p.storages.stamp);
    cs_free(p.storages.id);
    cs_vec_fini(&p.types);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}
