/* Opset imports and functions in use; see reach.h.
 *
 * "" and "ai.onnx" are one domain. A domain imported twice counts with its highest version, in the
 * spelling of that entry (the runtime's rule). Cost: linear in the bytes of the nodes shown.
 */
#include "emit/reach.h"

#include <string.h>

static cs_span plain_domain(cs_span domain)
{
    return cs_span_is(domain, "ai.onnx") ? (cs_span){"", 0} : domain;
}

static cutset_status add_import(cs_reach *reach, cs_span bytes, cutset_error *err)
{
    cs_span domain = {"", 0};
    int64_t version = 0;
    cs_wire w = cs_wire_of(bytes, 0);
    while (cs_wire_next(&w)) {
        if (w.field == 1) domain = w.bytes;
        if (w.field == 2) version = (int64_t)w.number;
    }
    if (w.bad != NULL) return cs_wire_error(&w, "OperatorSetIdProto", err);
    const cs_str key = cs_strtab_add(&reach->keys, plain_domain(domain), true);
    if (key == CS_NONE) return cs_fail_memory(err);
    const uint32_t old = cs_map_get(&reach->import_of, key);
    if (old != CS_NONE) {
        if (version <= reach->versions.at[old]) return CUTSET_OK;
        reach->versions.at[old] = version;
        reach->imports.at[old] = bytes;
        reach->domains.at[old] = domain;
        return CUTSET_OK;
    }
    const bool ok = cs_map_put(&reach->import_of, key, (uint32_t)reach->imports.len) &&
                    cs_vec_push(&reach->imports, bytes) && cs_vec_push(&reach->domains, domain) &&
                    cs_vec_push(&reach->versions, version);
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

/* Domain, name and overload in one string: each with its length, so that no two keys collide. */
static bool make_key(cs_reach *reach, cs_span domain, cs_span name, cs_span overload)
{
    const cs_span parts[] = {plain_domain(domain), name, overload};
    reach->key.len = 0;
    if (!cs_vec_push(&reach->key, 'f')) return false;
    for (size_t i = 0; i < 3; i++) {
        const size_t len = parts[i].len;
        if (!cs_vec_room(&reach->key, sizeof len + len)) return false;
        memcpy(reach->key.at + reach->key.len, &len, sizeof len);
        if (len > 0) memcpy(reach->key.at + reach->key.len + sizeof len, parts[i].at, len);
        reach->key.len += sizeof len + len;
    }
    return true;
}

static cutset_status add_function(cs_reach *reach, uint32_t index, cutset_error *err)
{
    const cs_pool *pool = reach->onnx->pool;
    const cs_function *f = &reach->onnx->functions.at[index];
    if (!make_key(reach, cs_name(pool, f->domain), cs_name(pool, f->name),
                  cs_name(pool, f->overload)))
        return cs_fail_memory(err);
    const cs_span text = {reach->key.at, reach->key.len};
    const cs_str key = cs_strtab_add(&reach->keys, text, false);
    if (key == CS_NONE || !cs_map_put(&reach->function_of, key, index)) return cs_fail_memory(err);
    return CUTSET_OK;
}

static cutset_status fill(cs_reach *reach, cutset_error *err)
{
    if (!cs_strtab_init(&reach->keys)) return cs_fail_memory(err);
    const cs_onnx *onnx = reach->onnx;
    cs_wire w = cs_wire_of((cs_span){(const char *)onnx->file.at, onnx->file.len}, 0);
    cutset_status status = CUTSET_OK;
    while (status == CUTSET_OK && cs_wire_next(&w))
        if (w.field == 8 && w.type == CS_WIRE_BYTES) status = add_import(reach, w.bytes, err);
    if (status == CUTSET_OK && w.bad != NULL) status = cs_wire_error(&w, "ModelProto", err);
    for (uint32_t i = 0; status == CUTSET_OK && i < onnx->functions.len; i++)
        status = add_function(reach, i, err);
    if (status != CUTSET_OK) return status;
    reach->import_used = cs_zalloc(reach->imports.len + 1, sizeof(bool));
    reach->function_used = cs_zalloc(onnx->functions.len + 1, sizeof(bool));
    if (reach->import_used == NULL || reach->function_used == NULL) return cs_fail_memory(err);
    return CUTSET_OK;
}

cutset_status cs_reach_init(cs_reach *reach, const cs_onnx *onnx, cutset_error *err)
{
    *reach = (cs_reach){.onnx = onnx};
    const cutset_status status = fill(reach, err);
    if (status != CUTSET_OK) cs_reach_fini(reach);
    return status;
}

void cs_reach_fini(cs_reach *reach)
{
    if (reach->onnx == NULL) return;
    cs_strtab_fini(&reach->keys);
    cs_vec_fini(&reach->imports);
    cs_vec_fini(&reach->domains);
    cs_vec_fini(&reach->versions);
    cs_map_fini(&reach->import_of);
    cs_map_fini(&reach->function_of);
    cs_free(reach->import_used);
    cs_free(reach->function_used);
    cs_vec_fini(&reach->todo);
    cs_vec_fini(&reach->key);
    *reach = (cs_reach){0};
}

void cs_reach_clear(cs_reach *reach)
{
    memset(reach->import_used, 0, reach->imports.len * sizeof(bool));
    memset(reach->function_used, 0, reach->onnx->functions.len * sizeof(bool));
    reach->todo.len = 0;
}

bool cs_reach_function(cs_reach *reach, cs_span domain, cs_span name, cs_span overload,
                       uint32_t *index)
{
    *index = CS_NONE;
    if (reach->onnx->functions.len == 0) return true;
    if (!make_key(reach, domain, name, overload)) return false;
    const cs_str key = cs_strtab_find(&reach->keys, (cs_span){reach->key.at, reach->key.len});
    if (key != CS_NONE) *index = cs_map_get(&reach->function_of, key);
    return true;
}

static bool use(cs_reach *reach, cs_span domain, cs_span op, cs_span overload)
{
    const cs_str key = cs_strtab_find(&reach->keys, plain_domain(domain));
    const uint32_t import = key == CS_NONE ? CS_NONE : cs_map_get(&reach->import_of, key);
    if (import != CS_NONE) reach->import_used[import] = true;
    uint32_t f;
    if (!cs_reach_function(reach, domain, op, overload, &f)) return false;
    if (f == CS_NONE || reach->function_used[f]) return true;
    reach->function_used[f] = true;
    return cs_vec_push(&reach->todo, f);
}

static cutset_status walk_node(cs_reach *reach, cs_span node, unsigned depth, cutset_error *err);

/* Nodes stand in field `field` of a graph (1) or a function (7). */
static cutset_status walk_nodes(cs_reach *reach, cs_span graph, uint32_t field, unsigned depth,
                                cutset_error *err)
{
    cs_wire w = cs_wire_of(graph, 0);
    cutset_status status = CUTSET_OK;
    while (status == CUTSET_OK && cs_wire_next(&w))
        if (w.field == field && w.type == CS_WIRE_BYTES)
            status = walk_node(reach, w.bytes, depth + 1, err);
    if (status == CUTSET_OK && w.bad != NULL) status = cs_wire_error(&w, "GraphProto", err);
    return status;
}

static cutset_status walk_attribute(cs_reach *reach, cs_span attribute, unsigned depth,
                                    cutset_error *err)
{
    cs_wire w = cs_wire_of(attribute, 0);
    cutset_status status = CUTSET_OK;
    while (status == CUTSET_OK && cs_wire_next(&w))
        if ((w.field == 6 || w.field == 11) && w.type == CS_WIRE_BYTES)
            status = walk_nodes(reach, w.bytes, 1, depth + 1, err);
    if (status == CUTSET_OK && w.bad != NULL) status = cs_wire_error(&w, "AttributeProto", err);
    return status;
}

static cutset_status walk_node(cs_reach *reach, cs_span node, unsigned depth, cutset_error *err)
{
    if (depth > CS_WIRE_DEPTH)
        return cs_fail(err, CUTSET_BAD, "messages are nested more than %d deep", CS_WIRE_DEPTH);
    cs_span op = {"", 0}, domain = {"", 0}, overload = {"", 0};
    cs_wire w = cs_wire_of(node, 0);
    cutset_status status = CUTSET_OK;
    while (status == CUTSET_OK && cs_wire_next(&w)) {
        if (w.type != CS_WIRE_BYTES) continue;
        if (w.field == 4) op = w.bytes;
        if (w.field == 7) domain = w.bytes;
        if (w.field == 8) overload = w.bytes;
        if (w.field == 5) status = walk_attribute(reach, w.bytes, depth + 1, err);
    }
    if (status != CUTSET_OK) return status;
    if (w.bad != NULL) return cs_wire_error(&w, "NodeProto", err);
    return use(reach, domain, op, overload) ? CUTSET_OK : cs_fail_memory(err);
}

cutset_status cs_reach_node(cs_reach *reach, cs_span node, cutset_error *err)
{
    return walk_node(reach, node, 0, err);
}

cutset_status cs_reach_finish(cs_reach *reach, cutset_error *err)
{
    for (size_t i = 0; i < reach->todo.len; i++) { /* grows while walked */
        const cs_span f = reach->onnx->functions.at[reach->todo.at[i]].proto;
        const cutset_status status = walk_nodes(reach, f, 7, 0, err);
        if (status != CUTSET_OK) return status;
    }
    bool any = false;
    for (size_t i = 0; i < reach->imports.len; i++)
        any = any || reach->import_used[i];
    for (size_t i = 0; i < reach->imports.len && !any; i++)
        reach->import_used[i] = true;
    return CUTSET_OK;
}
