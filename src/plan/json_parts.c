/* plan.json back into a plan: its parts and boundaries.
 *
 * A value is known by its name. Its type stands with its boundary, or, for what does not cross,
 * with the inputs and outputs of the model.
 */
#include <string.h>

#include "plan/json_read.h"

/* ---- parts ---- */

static cutset_status read_ops(cs_reader *r, const cs_cursor *part, cs_part *out)
{
    cutset_plan *plan = r->plan;
    cs_cursor c;
    uint64_t total = 0;
    PASS(cs_json_enter(part, "ops", NULL, &c));
    out->op = (uint32_t)plan->ops.len;
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)c.object, key, value)
    {
        const int64_t count = json_is_integer(value) ? json_integer_value(value) : 0;
        if (count < 1 || count > out->n_node)
            return cs_json_wrong(part, "ops", "has a count that is not from 1 to the part's nodes");
        const cs_op_count op = {cs_plan_str(plan, cs_span_of(key)), (uint32_t)count};
        if (op.op == CS_NONE || !cs_vec_push(&plan->ops, op)) return cs_fail_memory(c.err);
        total += (uint64_t)count;
    }
    out->n_op = (uint32_t)(plan->ops.len - out->op);
    if (total != out->n_node)
        return cs_json_wrong(part, "ops", "does not add up to the part's nodes");
    cs_ops_sort(plan, out);
    return CUTSET_OK;
}

/* The number of the value `name`, new or known; CS_NONE: no memory. */
static uint32_t value_number(cs_reader *r, cs_str name)
{
    const uint32_t known = cs_map_get(&r->value_of, name);
    if (known != CS_NONE) return known;
    const uint32_t index = (uint32_t)r->plan->values.len;
    if (!cs_vec_push(&r->plan->values, name) || !cs_map_put(&r->value_of, name, index))
        return CS_NONE;
    return index;
}

static cutset_status read_refs(cs_reader *r, const cs_cursor *c, const char *key, uint32_t *first,
                               uint32_t *count)
{
    const json_t *array;
    size_t n;
    PASS(cs_json_get_array(c, key, &array, &n));
    *first = (uint32_t)r->plan->refs.len;
    *count = (uint32_t)n;
    if (!cs_vec_room(&r->plan->refs, n)) return cs_fail_memory(c->err);
    for (size_t i = 0; i < n; i++) {
        cs_str name;
        PASS(cs_json_str_at(c, key, array, i, &name));
        const uint32_t value = value_number(r, name);
        if (value == CS_NONE) return cs_fail_memory(c->err);
        r->plan->refs.at[r->plan->refs.len++] = value;
    }
    return CUTSET_OK;
}

static cutset_status read_part_memory(const cs_cursor *c, cs_part *part)
{
    int64_t weights, same;
    PASS(cs_json_get_int(c, "weights", 0, UINT32_MAX - 1, &weights));
    part->weights = (uint32_t)weights;
    PASS(cs_json_get_int(c, "weight_bytes", 0, INT64_MAX, &part->weight_bytes));
    PASS(cs_json_get_int_or_null(c, "activation_peak_bytes", 0, INT64_MAX, -1,
                                 &part->activation_peak));
    PASS(cs_json_get_int(c, "host_build_bytes", 0, INT64_MAX, &part->host_build_bytes));
    PASS(cs_json_get_int(c, "device_bytes", 0, INT64_MAX, &part->device_bytes));
    PASS(cs_json_get_bool(c, "oversized", &part->oversized));
    PASS(cs_json_get_hash(c, "hash", &part->hash));
    PASS(cs_json_get_int_or_null(c, "same_as", 0, (int64_t)part->id - 1, -1, &same));
    part->same_as = (int32_t)same;
    PASS(cs_json_get_int_or_null(c, "same_structure", 0, (int64_t)part->id - 1, -1, &same));
    part->same_structure = (int32_t)same;
    return CUTSET_OK;
}

static cutset_status read_copies(cs_reader *r, const cs_cursor *c, cs_part *part)
{
    cutset_plan *plan = r->plan;
    const size_t first = plan->copy_label.len;
    PASS(cs_json_get_strs(c, "copies", &plan->copy_label));
    if (plan->copy_label.len > UINT32_MAX) return cs_json_wrong(c, "copies", "is too long");
    part->copy = (uint32_t)first;
    part->n_copy = (uint32_t)(plan->copy_label.len - first);
    return CUTSET_OK;
}

/* A part must have the name that cutset gives it. */
static cutset_status check_file(cs_reader *r, const cs_cursor *c, const cs_part *part)
{
    const cs_str file = cs_part_file(r->plan, part->id, cs_plan_target_name(r->plan, part->target));
    if (file == CS_NONE) return cs_fail_memory(c->err);
    if (file != part->file)
        return cs_json_wrong(c, "file", "is not %.*s", CS_FMT(cs_strtab_get(c->names, file)));
    return CUTSET_OK;
}

static cutset_status read_part(cs_reader *r, const cs_cursor *top, size_t i, cs_part *part)
{
    static const char *const keys[] = {"id",
                                       "target",
                                       "block",
                                       "file",
                                       "nodes",
                                       "ops",
                                       "inputs",
                                       "outputs",
                                       "weights",
                                       "weight_bytes",
                                       "oversized",
                                       "hash",
                                       "device_bytes",
                                       "activation_peak_bytes",
                                       "host_build_bytes",
                                       "same_as",
                                       "copies",
                                       "needs",
                                       "same_structure",
                                       NULL};
    cutset_plan *plan = r->plan;
    cs_cursor c;
    int64_t id;
    PASS(cs_json_enter_at(top, "parts", i, keys, &c));
    PASS(cs_json_get_int(&c, "id", (int64_t)i, (int64_t)i, &id));
    part->id = (uint32_t)id;
    PASS(cs_read_target(r, &c, &part->target));
    PASS(cs_json_get_str(&c, "file", &part->file));
    PASS(check_file(r, &c, part));
    PASS(cs_json_get_str(&c, "block", &part->block));
    const size_t node = plan->node_label.len;
    PASS(cs_json_get_strs(&c, "nodes", &plan->node_label));
    if (plan->node_label.len > plan->model_nodes)
        return cs_json_wrong(&c, "nodes", "has more nodes than the model has left");
    part->node = (uint32_t)node;
    part->n_node = (uint32_t)(plan->node_label.len - node);
    PASS(read_ops(r, &c, part));
    PASS(read_refs(r, &c, "inputs", &part->input, &part->n_input));
    PASS(read_refs(r, &c, "outputs", &part->output, &part->n_output));
    PASS(read_part_memory(&c, part));
    PASS(read_copies(r, &c, part));
    const size_t need = plan->needs.len;
    PASS(cs_json_get_strs(&c, "needs", &plan->needs));
    part->need = (uint32_t)need;
    part->n_need = (uint32_t)(plan->needs.len - need);
    if ((part->n_need > 0) != (part->activation_peak < 0))
        return cs_json_wrong(&c, "needs", "does not go with activation_peak_bytes");
    return CUTSET_OK;
}

/* A copy is a node of another part, and stands in a part once. */
static cutset_status check_copies(const cs_reader *r, const cs_cursor *top, cs_map *where)
{
    const cutset_plan *plan = r->plan;
    for (size_t p = 0; p < plan->parts.len; p++)
        for (uint32_t i = 0; i < plan->parts.at[p].n_node; i++)
            if (!cs_map_put(where, plan->node_label.at[plan->parts.at[p].node + i], (uint32_t)p))
                return cs_fail_memory(top->err);
    for (size_t p = 0; p < plan->parts.len; p++)
        for (uint32_t i = 0; i < plan->parts.at[p].n_copy; i++) {
            const cs_str label = plan->copy_label.at[plan->parts.at[p].copy + i];
            const uint64_t key = (uint64_t)(p + 1) << 32 | label;
            const uint32_t home = cs_map_get(where, label);
            if (home == CS_NONE || home == p || cs_map_get(where, key) != CS_NONE)
                return cs_json_wrong_at(top, "parts", p,
                                        "repeats \"%.*s\", which is no node of another part, or "
                                        "stands there twice",
                                        CS_FMT(cs_strtab_get(&plan->names, label)));
            if (!cs_map_put(where, key, 0)) return cs_fail_memory(top->err);
        }
    return CUTSET_OK;
}

cutset_status cs_read_parts(cs_reader *r, const cs_cursor *top)
{
    cutset_plan *plan = r->plan;
    const json_t *array;
    size_t n;
    PASS(cs_json_get_array(top, "parts", &array, &n));
    if (n > INT32_MAX) return cs_json_wrong(top, "parts", "is too long");
    if (!cs_vec_room(&plan->parts, n)) return cs_fail_memory(top->err);
    for (size_t i = 0; i < n; i++) {
        cs_part part = {0};
        PASS(read_part(r, top, i, &part));
        plan->parts.at[plan->parts.len++] = part;
    }
    if (plan->node_label.len != plan->model_nodes)
        return cs_json_wrong(top, "parts", "do not add up to the model's nodes");
    for (size_t i = 0; i < plan->outputs.len; i++)
        if (plan->outputs.at[i].from >= (int64_t)n)
            return cs_json_wrong_at(top, "model.outputs", i, "comes from no part");
    if (plan->copy_label.len == 0) return CUTSET_OK;
    cs_map where = {0};
    const cutset_status status = check_copies(r, top, &where);
    cs_map_fini(&where);
    return status;
}

/* ---- boundaries and types of values ---- */

static cutset_status read_readers(cs_reader *r, const cs_cursor *c, cs_boundary *b)
{
    cutset_plan *plan = r->plan;
    const json_t *array;
    size_t n;
    PASS(cs_json_get_array(c, "to", &array, &n));
    if (n == 0) return cs_json_wrong(c, "to", "is empty");
    b->to = (uint32_t)plan->readers.len;
    b->n_to = (uint32_t)n;
    if (!cs_vec_room(&plan->readers, n)) return cs_fail_memory(c->err);
    int64_t last = b->from;
    for (size_t i = 0; i < n; i++) {
        int64_t to;
        PASS(cs_json_int_at(c, "to", array, i, (int64_t)plan->parts.len - 1, &to));
        if (to <= last) return cs_json_wrong_at(c, "to", i, "is no later part than the one before");
        plan->readers.at[plan->readers.len++] = (uint32_t)to;
        last = to;
    }
    return CUTSET_OK;
}

static cutset_status read_boundary(cs_reader *r, const cs_cursor *top, size_t i)
{
    static const char *const keys[] = {"value", "type", "bytes", "from", "to", NULL};
    cutset_plan *plan = r->plan;
    cs_cursor c;
    cs_str name, type;
    int64_t from;
    cs_boundary b;
    PASS(cs_json_enter_at(top, "boundaries", i, keys, &c));
    PASS(cs_json_get_str(&c, "value", &name));
    PASS(cs_json_get_str(&c, "type", &type));
    PASS(cs_json_get_int_or_null(&c, "bytes", 0, INT64_MAX, -1, &b.bytes));
    PASS(cs_json_get_int(&c, "from", 0, (int64_t)plan->parts.len - 1, &from));
    b.from = (uint32_t)from;
    PASS(read_readers(r, &c, &b));
    b.value = cs_map_get(&r->value_of, name);
    if (b.value == CS_NONE) return cs_json_wrong(&c, "value", "is no output of a part");
    if (plan->value_types.at[b.value] != CS_NONE) return cs_json_wrong(&c, "value", "stands twice");
    plan->value_types.at[b.value] = type;
    return cs_vec_push(&plan->boundaries, b) ? CUTSET_OK : cs_fail_memory(c.err);
}

/* The types of values that the model names, where boundaries have not told them. */
static cutset_status model_types(cs_reader *r, const cs_cursor *top, const cs_plan_value *at,
                                 size_t n, const char *key)
{
    cs_strs *types = &r->plan->value_types;
    for (size_t i = 0; i < n; i++) {
        const uint32_t value = cs_map_get(&r->value_of, at[i].name);
        if (value == CS_NONE) continue;
        if (types->at[value] == CS_NONE) types->at[value] = at[i].type;
        if (types->at[value] != at[i].type)
            return cs_json_wrong_at(top, key, i, "has another type elsewhere");
    }
    return CUTSET_OK;
}

cutset_status cs_read_boundaries(cs_reader *r, const cs_cursor *top)
{
    cutset_plan *plan = r->plan;
    const json_t *array;
    size_t n;
    PASS(cs_json_get_array(top, "boundaries", &array, &n));
    if (!cs_vec_room(&plan->value_types, plan->values.len)) return cs_fail_memory(top->err);
    plan->value_types.len = plan->values.len;
    for (size_t v = 0; v < plan->values.len; v++)
        plan->value_types.at[v] = CS_NONE;
    for (size_t i = 0; i < n; i++)
        PASS(read_boundary(r, top, i));
    PASS(model_types(r, top, plan->inputs.at, plan->inputs.len, "model.inputs"));
    PASS(model_types(r, top, plan->outputs.at, plan->outputs.len, "model.outputs"));
    bool nested = false; /* then values pass between a block and the one around it without a boundary */
    for (size_t p = 0; p < plan->parts.len; p++)
        nested |= plan->parts.at[p].block != 0;
    const cs_str unknown = cs_plan_str(plan, CS_SPAN("?"));
    if (unknown == CS_NONE) return cs_fail_memory(top->err);
    for (size_t v = 0; v < plan->values.len; v++)
        if (plan->value_types.at[v] == CS_NONE && nested)
            plan->value_types.at[v] = unknown;
        else if (plan->value_types.at[v] == CS_NONE)
            return cs_json_wrong(top, "boundaries", "lacks \"%.*s\", which parts name",
                                 CS_FMT(cs_strtab_get(&plan->names, plan->values.at[v])));
    return CUTSET_OK;
}
