/* Forecasts of each part: weights, memory while it is built and runs, the peak of its activations.
 *
 * Weights: the storages behind the values that the part's nodes and copies read, and all storages
 * inside their bodies (a body is carried whole), each counted once. What a body captures stands
 * among the reads of the node that owns it, so a captured weight is seen there.
 *
 * Activation peak, over nodes and copies in execution order: all inputs and outputs of the part,
 * which stay throughout, and the inner values, each from the node that makes it to its last reader;
 * a node's inputs and outputs live together. No operator works in place or gives a view; what is no
 * tensor takes nothing. Sums are of 128 bits, because a single value may already have INT64_MAX
 * bytes (that or more).
 *
 * Cost: O(n + m + copies). Memory: 8 bytes a value, 4 bytes a storage.
 */
#include "plan/assemble.h"

#include <string.h>

typedef unsigned __int128 wide;

typedef struct forecast {
    cutset_plan *plan;
    const cs_layout *l;
    const cs_graph *g;
    uint32_t *storage;     /* stamps, by storage */
    uint32_t *made;        /* stamps, by value: made in the part, and not handed on by it */
    uint32_t *last;        /* by value: its last reader's place in l->run + 1; 0 = none, or freed */
    CS_VEC(uint32_t) need; /* stamps, by string of the plan */
} forecast;

/* ---- weights ---- */

typedef struct taker {
    forecast *f;
    cs_part *part;
    const cs_memory_model *memory; /* NULL: the host */
} taker;

static bool take_storage(void *payload, uint32_t storage)
{
    const taker *t = payload;
    cs_part *part = t->part;
    if (t->f->storage[storage] == part->id + 1) return true;
    t->f->storage[storage] = part->id + 1;
    const cs_storage *s = &t->f->g->storages.at[storage];
    part->weights++;
    part->weight_bytes = cs_sat_add(part->weight_bytes, s->bytes);
    if (t->memory == NULL) return true;
    part->host_build_bytes = cs_sat_add(part->host_build_bytes, cs_memory_host(t->memory, s));
    part->device_bytes = cs_sat_add(part->device_bytes, cs_memory_device(t->memory, s));
    return true;
}

static void forecast_weights(forecast *f, cs_part *part, const cs_memory_model *memory)
{
    taker t = {f, part, memory};
    if (memory != NULL) {
        part->host_build_bytes = memory->host_base;
        part->device_bytes = memory->device_base;
    }
    for (uint32_t i = f->l->run_start[part->id]; i < f->l->run_start[part->id + 1]; i++)
        cs_node_storages(f->g, &f->g->nodes.at[f->l->run[i]], take_storage, &t);
}

/* ---- what a forecast lacks ---- */

static bool add_need(forecast *f, const cs_part *part, cs_span text)
{
    cutset_plan *plan = f->plan;
    const cs_str str = cs_plan_str(plan, text);
    if (str == CS_NONE) return false;
    if (str >= f->need.len) {
        const size_t more = plan->names.text.len - f->need.len;
        if (!cs_vec_room(&f->need, more)) return false;
        memset(f->need.at + f->need.len, 0, more * sizeof *f->need.at);
        f->need.len += more;
    }
    if (f->need.at[str] == part->id + 1) return true;
    f->need.at[str] = part->id + 1;
    return cs_vec_push(&plan->needs, str);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The end of the quoted symbol that begins at text.at[i]. */
static size_t quoted_end(cs_span text, size_t i)
{
    for (i++; i < text.len && text.at[i] != '"'; i++)
        if (text.at[i] == '\\') i++;
    return i < text.len ? i + 1 : text.len;
}

/* The symbols in the spelling of a dim: words that are no numbers and no functions. One that needs
 * quotes keeps them. */
static bool need_symbols(forecast *f, const cs_part *part, cs_span text)
{
    for (size_t i = 0; i < text.len;) {
        const size_t from = i;
        if (text.at[i] == '"') {
            i = quoted_end(text, i);
        } else if (is_word(text.at[i])) {
            while (i < text.len && is_word(text.at[i]))
                i++;
            const bool number = text.at[from] >= '0' && text.at[from] <= '9';
            if (number || (i < text.len && text.at[i] == '(')) continue;
        } else {
            i++;
            continue;
        }
        if (!add_need(f, part, (cs_span){text.at + from, i - from})) return false;
    }
    return true;
}

/* Value `v` has no known size: is it for want of symbols, or is nothing known? */
static bool need_value(forecast *f, const cs_part *part, uint32_t v)
{
    const cs_value *value = &f->g->values.at[v];
    const cs_type_info *type = cs_type_get(f->g->pool, value->type);
    const cs_dim *dims = cs_type_dims(f->g->pool, value->type);
    bool nothing = (type->kind != CS_TENSOR && type->kind != CS_SPARSE) ||
                   cs_elem_bits(type->elem) == 0 || type->rank < 0;
    bool symbols = false;
    for (int d = 0; !nothing && d < type->rank; d++) {
        nothing = dims[d] == CS_DIM_UNKNOWN;
        symbols = symbols || cs_dim_is_expr(dims[d]);
    }
    if (nothing || !symbols) return add_need(f, part, cs_name(f->g->pool, value->name));
    for (int d = 0; d < type->rank; d++)
        if (cs_dim_is_expr(dims[d]) &&
            !need_symbols(f, part, cs_name(f->g->pool, cs_dim_text(dims[d]))))
            return false;
    return true;
}

/* ---- activations ---- */

static int64_t value_bytes(const forecast *f, uint32_t v) { return cs_value_bytes(f->g, v); }

/* Adds the needs of every value of unknown size in the part. */
static bool find_needs(forecast *f, const cs_part *part)
{
    const uint32_t *at = f->l->io_start + 2 * (size_t)part->id;
    for (uint32_t i = at[0]; i < at[1]; i++)
        if (value_bytes(f, f->l->io.at[i]) < 0 && !need_value(f, part, f->l->io.at[i]))
            return false;
    for (uint32_t i = f->l->run_start[part->id]; i < f->l->run_start[part->id + 1]; i++) {
        const cs_node *n = &f->g->nodes.at[f->l->run[i]];
        const uint32_t *outs = cs_outs(f->g, n);
        for (uint32_t o = 0; o < n->n_out; o++)
            if (outs[o] != CS_NONE && value_bytes(f, outs[o]) < 0 && !need_value(f, part, outs[o]))
                return false;
    }
    return true;
}

/* Does the part hand on `v`, which its node `node` makes? A copy's values stay inside. */
static bool leaves(const forecast *f, const cs_part *part, uint32_t node, uint32_t v)
{
    return f->l->leaves[v] && f->l->part[node] == part->id;
}

/* Notes where each inner value is read last. */
static void find_last(forecast *f, const cs_part *part)
{
    for (uint32_t i = f->l->run_start[part->id]; i < f->l->run_start[part->id + 1]; i++) {
        const uint32_t node = f->l->run[i];
        const cs_node *n = &f->g->nodes.at[node];
        const uint32_t *args = cs_args(f->g, n), *outs = cs_outs(f->g, n);
        for (uint32_t a = 0; a < cs_n_reads(n); a++)
            if (args[a] != CS_NONE && f->made[args[a]] == part->id + 1) f->last[args[a]] = i + 1;
        for (uint32_t o = 0; o < n->n_out; o++)
            if (outs[o] != CS_NONE && !leaves(f, part, node, outs[o]))
                f->made[outs[o]] = part->id + 1;
    }
}

/* The inner values that the node makes; with `unread`, only those that the part does not read. */
static wide inner_made(const forecast *f, const cs_part *part, uint32_t node, bool unread)
{
    const cs_node *n = &f->g->nodes.at[node];
    const uint32_t *outs = cs_outs(f->g, n);
    wide sum = 0;
    for (uint32_t o = 0; o < n->n_out; o++) {
        const uint32_t v = outs[o];
        if (v == CS_NONE || leaves(f, part, node, v)) continue;
        if (unread && f->last[v] != 0) continue;
        sum += (uint64_t)value_bytes(f, v);
    }
    return sum;
}

/* The inner values whose last reader is the node at place `i`, each once: marks them freed. */
static wide inner_freed(forecast *f, const cs_node *node, uint32_t i)
{
    const uint32_t *args = cs_args(f->g, node);
    wide sum = 0;
    for (uint32_t a = 0; a < cs_n_reads(node); a++) {
        if (args[a] == CS_NONE || f->last[args[a]] != i + 1) continue;
        f->last[args[a]] = 0;
        sum += (uint64_t)value_bytes(f, args[a]);
    }
    return sum;
}

static int64_t activation_peak(forecast *f, const cs_part *part)
{
    const uint32_t *at = f->l->io_start + 2 * (size_t)part->id;
    wide resident = 0, inner = 0, peak = 0;
    for (uint32_t i = at[0]; i < at[2]; i++)
        resident += (uint64_t)value_bytes(f, f->l->io.at[i]);
    find_last(f, part);
    for (uint32_t i = f->l->run_start[part->id]; i < f->l->run_start[part->id + 1]; i++) {
        const uint32_t node = f->l->run[i];
        inner += inner_made(f, part, node, false);
        if (inner > peak) peak = inner;
        inner -= inner_made(f, part, node, true);
        inner -= inner_freed(f, &f->g->nodes.at[node], i);
    }
    resident += peak;
    return resident > INT64_MAX ? INT64_MAX : (int64_t)resident;
}

static bool forecast_part(forecast *f, cs_part *part, const cutset_target *const *targets)
{
    forecast_weights(f, part, part->target < 0 ? NULL : &targets[part->target]->memory);
    part->need = (uint32_t)f->plan->needs.len;
    if (!find_needs(f, part)) return false;
    part->n_need = (uint32_t)(f->plan->needs.len - part->need);
    part->activation_peak = part->n_need > 0 ? -1 : activation_peak(f, part);
    return true;
}

cutset_status cs_parts_forecast(cutset_plan *plan, const cs_layout *l,
                                const cutset_target *const *targets, cutset_error *err)
{
    const cs_graph *g = l->graph;
    forecast f = {.plan = plan, .l = l, .g = g};
    f.storage = cs_zalloc(g->storages.len, sizeof *f.storage);
    f.made = cs_zalloc(g->values.len, sizeof *f.made);
    f.last = cs_zalloc(g->values.len, sizeof *f.last);
    bool ok = f.storage != NULL && f.made != NULL && f.last != NULL;
    for (size_t p = 0; ok && p < plan->parts.len; p++)
        ok = forecast_part(&f, &plan->parts.at[p], targets);
    cs_free(f.storage);
    cs_free(f.made);
    cs_free(f.last);
    cs_vec_fini(&f.need);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}
