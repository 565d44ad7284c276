/* cs_emit_merge: the parts of a split become one model again.
 *
 *   1. open the parts; node k of a part must be the plan's node k of it
 *   2. for each node, weight, value info and function of the source, find the bytes a part has
 *   3. list them in the order of the source; what no part has and nothing needs is dropped and told
 *   4. write: with all data inside where that is below 2 GiB, else with PATH.data beside
 *
 * Values that pass from an input or a weight to an output are in no part: the source gives them.
 * Cost: linear in the bytes of all nodes; weights are not read.
 */
#include "emit/merge.h"
#include "emit/carrier.h"
#include "emit/emit.h"
#include "emit/folder.h"
#include "emit/weights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEEP_OPEN = 200 }; /* parts with more than so many are written from their maps */

typedef struct merge {
    const cs_onnx *source;
    const cs_graph *graph;
    const cutset_plan *plan;
    const char *dir, *path;
    char *folder; /* of the merged model */
    const cutset_progress *progress;
    cs_gather gather;
    cs_carriers carriers; /* of the source */
    cs_map value_of;      /* interned name in the source -> value id */
    cs_piece *node;       /* by node id */
    cs_piece *weight;     /* by value id */
    cs_piece *info;       /* by value id */
    cs_piece *function;   /* by index into source->functions */
    cs_reach reach;
    cs_recipe recipe;
    cs_rope rope;
    cs_rewriter rewriter;
} merge;

static bool is_there(const cs_piece *p) { return p->from != NULL; }

static uint32_t value_named(const merge *m, cs_span name)
{
    const cs_str s = cs_strtab_find(&m->source->pool->names, name);
    return s == CS_NONE ? CS_NONE : cs_map_get(&m->value_of, s);
}

/* ---- 1. parts ---- */

static cutset_status foreign(const merge *m, uint32_t part, cutset_error *err)
{
    const cs_span file = cs_strtab_get(&m->plan->names, m->plan->parts.at[part].file);
    return cs_fail(err, CUTSET_BAD,
                   "%s/%.*s does not hold the nodes that plan.json lists: split again", m->dir,
                   CS_FMT(file));
}

/* Same operator, same first output, at the same place. */
static bool same_node(const merge *m, const cs_graph *part, uint32_t k, uint32_t node)
{
    const cs_graph *g = m->graph;
    const cs_node *a = &part->nodes.at[k], *b = &g->nodes.at[node];
    if (a->n_out != b->n_out || !cs_span_eq(cs_name(part->pool, a->op), cs_name(g->pool, b->op)) ||
        !cs_span_eq(cs_name(part->pool, a->domain), cs_name(g->pool, b->domain)))
        return false;
    for (uint32_t i = 0; i < a->n_out; i++) {
        const uint32_t x = cs_outs(part, a)[i], y = cs_outs(g, b)[i];
        if ((x == CS_NONE) != (y == CS_NONE)) return false;
        if (x != CS_NONE && !cs_span_eq(cs_name(part->pool, part->values.at[x].name),
                                        cs_name(g->pool, g->values.at[y].name)))
            return false;
    }
    return true;
}

static cutset_status take_nodes(merge *m, uint32_t part, const cs_onnx *onnx, const cs_graph *graph,
                                cutset_error *err)
{
    const cs_part *p = &m->plan->parts.at[part];
    if (graph->nodes.len != p->n_node) return foreign(m, part, err);
    for (uint32_t k = 0; k < p->n_node; k++) {
        const uint32_t node = m->plan->nodes.at[p->node + k];
        if (!same_node(m, graph, k, node)) return foreign(m, part, err);
        m->node[node] = (cs_piece){onnx, onnx->nodes.at[k]};
    }
    return CUTSET_OK;
}

/* ---- 2. what parts have ---- */

static cutset_status take_values(merge *m, uint32_t part, const cs_onnx *onnx,
                                 const cs_graph *graph, cutset_error *err)
{
    cs_carriers carriers;
    cutset_status status = cs_carriers_init(&carriers, onnx, graph, err);
    if (status != CUTSET_OK) return status;
    for (uint32_t v = 0; v < graph->values.len && status == CUTSET_OK; v++) {
        const uint32_t to = value_named(m, cs_name(graph->pool, graph->values.at[v].name));
        if (to == CS_NONE ||
            (carriers.kind[v] != CS_CARRIER_NONE && carriers.kind[v] != m->carriers.kind[to])) {
            status = foreign(m, part, err);
            continue;
        }
        if (carriers.kind[v] != CS_CARRIER_NONE && !is_there(&m->weight[to]))
            m->weight[to] = (cs_piece){onnx, onnx->initializer.at[v]};
        if (onnx->value_infos.at[v].at != NULL && !is_there(&m->info[to]))
            m->info[to] = (cs_piece){onnx, onnx->value_infos.at[v]};
    }
    cs_carriers_fini(&carriers);
    return status;
}

static cutset_status take_functions(merge *m, const cs_onnx *onnx, cutset_error *err)
{
    for (size_t i = 0; i < onnx->functions.len; i++) {
        const cs_function *f = &onnx->functions.at[i];
        uint32_t to;
        if (!cs_reach_function(&m->reach, cs_name(onnx->pool, f->domain),
                               cs_name(onnx->pool, f->name), cs_name(onnx->pool, f->overload), &to))
            return cs_fail_memory(err);
        if (to != CS_NONE && !is_there(&m->function[to]))
            m->function[to] = (cs_piece){onnx, f->proto};
    }
    return CUTSET_OK;
}

static cutset_status open_part(merge *m, uint32_t part, cs_onnx **onnx, cs_graph **graph,
                               cutset_error *err)
{
    const cs_span file = cs_strtab_get(&m->plan->names, m->plan->parts.at[part].file);
    if (!cs_folder_may_be_part(file))
        return cs_fail(err, CUTSET_BAD, "%s/plan.json names a part '%.*s', which cannot be", m->dir,
                       CS_FMT(file));
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)file.len, file.at);
    char *path = cs_path_join(m->dir, name);
    if (path == NULL) return cs_fail_memory(err);
    cs_file map;
    cutset_status status = cs_file_open(&map, path, err);
    if (status == CUTSET_OK) {
        const cs_onnx_opts opts = {0};
        status = cs_onnx_open(onnx, graph, &map, path, m->dir, &opts, err);
        if (status == CUTSET_BAD) cs_fail_in(err, path);
    }
    cs_free(path);
    return status;
}

static cutset_status take_part(merge *m, uint32_t part, cutset_error *err)
{
    cs_onnx *onnx = NULL;
    cs_graph *graph = NULL;
    cutset_status status = open_part(m, part, &onnx, &graph, err);
    if (status != CUTSET_OK) return status;
    if (m->plan->parts.len > KEEP_OPEN && onnx->file.fd >= 0) { /* descriptors are few */
        close(onnx->file.fd);
        onnx->file.fd = -1;
    }
    status = cs_gather_add(&m->gather, onnx, graph, m->folder, err);
    if (status == CUTSET_OK) status = take_nodes(m, part, onnx, graph, err);
    if (status == CUTSET_OK) status = take_values(m, part, onnx, graph, err);
    return status == CUTSET_OK ? take_functions(m, onnx, err) : status;
}

/* ---- 3. the list ---- */

static cutset_status add_node(merge *m, const cs_piece *p, cutset_error *err)
{
    return cs_vec_push(&m->recipe.nodes, *p) ? cs_reach_node(&m->reach, p->bytes, err)
                                             : cs_fail_memory(err);
}

/* Nodes and live Constants by their position in the source. */
static cutset_status list_nodes(merge *m, cutset_error *err)
{
    const cs_graph *g = m->graph;
    cutset_status status = CUTSET_OK;
    uint32_t c = 0;
    for (uint32_t n = 0; n <= g->nodes.len && status == CUTSET_OK; n++) {
        const int32_t here = n < g->nodes.len ? m->source->positions.at[n] : INT32_MAX;
        for (; c < m->carriers.n && status == CUTSET_OK; c++) {
            const uint32_t v = m->carriers.order[c];
            if (m->carriers.kind[v] != CS_CARRIER_NODE || !is_there(&m->weight[v])) continue;
            if (m->carriers.position[v] > here) break;
            status = add_node(m, &m->weight[v], err);
        }
        if (n == g->nodes.len || status != CUTSET_OK) continue;
        if (is_there(&m->node[n])) {
            status = add_node(m, &m->node[n], err);
        } else {
            char label[16];
            const cs_span name = cs_node_label(g, n, label);
            status = cs_fail(err, CUTSET_BAD, "node %.*s is in no part: split again", CS_FMT(name));
        }
    }
    return status;
}

static cutset_status list_weights(merge *m, cutset_error *err)
{
    for (uint32_t c = 0; c < m->carriers.n; c++) {
        const uint32_t v = m->carriers.order[c];
        const int kind = m->carriers.kind[v];
        if (kind == CS_CARRIER_NODE || !is_there(&m->weight[v])) continue;
        if (!cs_vec_push(kind == CS_CARRIER_SPARSE ? &m->recipe.sparse : &m->recipe.initializers,
                         m->weight[v]))
            return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

static cs_span info_name(cs_span info)
{
    cs_span name = {"", 0};
    cs_wire w = cs_wire_of(info, 0);
    while (cs_wire_next(&w))
        if (w.field == 1 && w.type == CS_WIRE_BYTES) name = w.bytes;
    return name;
}

/* The part's bytes; where no part has any, or the value passes through, the source's. */
static cs_piece info_piece(const merge *m, uint32_t v, cs_span own)
{
    return is_there(&m->info[v]) ? m->info[v] : (cs_piece){m->source, own};
}

static bool is_inner(const merge *m, uint32_t v)
{
    const uint8_t origin = m->graph->values.at[v].origin;
    return origin == CS_ORIGIN_NODE || (origin == CS_ORIGIN_WEIGHT && is_there(&m->weight[v]));
}

/* Inputs, outputs and value infos in the order of the source's GraphProto. */
static cutset_status list_infos(merge *m, cutset_error *err)
{
    cs_recipe *r = &m->recipe;
    bool ok = true;
    cs_wire w = cs_wire_of(m->source->graph, 0);
    while (ok && cs_wire_next(&w)) {
        if ((w.field != 11 && w.field != 12 && w.field != 13) || w.type != CS_WIRE_BYTES) continue;
        const uint32_t v = value_named(m, info_name(w.bytes));
        if (v == CS_NONE) continue;
        const uint8_t origin = m->graph->values.at[v].origin;
        cs_info info = {.declared = info_piece(m, v, w.bytes)};
        if (w.field == 11 && (origin == CS_ORIGIN_INPUT || is_inner(m, v))) {
            ok = cs_vec_push(&r->inputs, info);
        } else if (w.field == 12) {
            if (origin != CS_ORIGIN_NODE) info.declared = (cs_piece){m->source, w.bytes};
            ok = cs_vec_push(&r->outputs, info);
        } else if (w.field == 13 && is_inner(m, v)) {
            ok = cs_vec_push(&r->infos, info.declared);
        }
    }
    return ok ? CUTSET_OK : cs_fail_memory(err);
}

static cutset_status list_rest(merge *m, cutset_error *err)
{
    const cs_onnx *source = m->source;
    for (size_t i = 0; i < source->annotations.len; i++) {
        const uint32_t v = cs_map_get(&m->value_of, source->annotated.at[i]);
        const bool kept =
            v != CS_NONE && (is_inner(m, v) || m->graph->values.at[v].origin == CS_ORIGIN_INPUT);
        if (kept &&
            !cs_vec_push(&m->recipe.annotations, ((cs_piece){source, source->annotations.at[i]})))
            return cs_fail_memory(err);
    }
    const cutset_status status = cs_reach_finish(&m->reach, err);
    if (status != CUTSET_OK) return status;
    for (size_t i = 0; i < source->functions.len; i++) {
        if (!m->reach.function_used[i]) continue;
        const cs_function *f = &source->functions.at[i];
        if (!is_there(&m->function[i]))
            return cs_fail(err, CUTSET_BAD, "function %.*s is in no part: split again",
                           CS_FMT(cs_name(source->pool, f->name)));
        if (!cs_vec_push(&m->recipe.functions, m->function[i])) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

/* Weights that are outputs, and defaults of inputs that no part reads. */
static void take_from_source(merge *m)
{
    const cs_graph *g = m->graph;
    for (size_t i = 0; i < g->outputs.len + g->inputs.len; i++) {
        const uint32_t v = i < g->outputs.len ? g->outputs.at[i] : g->inputs.at[i - g->outputs.len];
        if (m->carriers.kind[v] != CS_CARRIER_NONE && !is_there(&m->weight[v]))
            m->weight[v] = (cs_piece){m->source, m->source->initializer.at[v]};
    }
}

static cutset_status list_all(merge *m, cutset_error *err)
{
    take_from_source(m);
    cutset_status status = list_nodes(m, err);
    if (status == CUTSET_OK) status = list_weights(m, err);
    if (status == CUTSET_OK) status = list_infos(m, err);
    return status == CUTSET_OK ? list_rest(m, err) : status;
}

static void tell_dropped(const merge *m, cs_out *out)
{
    const cs_onnx *source = m->source;
    for (uint32_t c = 0; c < m->carriers.n; c++) {
        const uint32_t v = m->carriers.order[c];
        if (is_there(&m->weight[v])) continue;
        cs_out_puts(out, m->carriers.kind[v] == CS_CARRIER_NODE ? "dropped, not used: constant "
                                                                : "dropped, not used: weight ");
        cs_out_span(out, cs_name(source->pool, m->graph->values.at[v].name));
        cs_out_puts(out, "\n");
    }
    for (size_t i = 0; i < source->functions.len; i++) {
        if (m->reach.function_used[i]) continue;
        const cs_function *f = &source->functions.at[i];
        cs_out_puts(out, "dropped, not used: function ");
        cs_out_span(out, cs_name(source->pool, f->domain));
        cs_out_puts(out, ":");
        cs_out_span(out, cs_name(source->pool, f->name));
        cs_out_puts(out, "\n");
    }
    for (size_t i = 0; i < m->reach.imports.len; i++) {
        if (m->reach.import_used[i]) continue;
        const cs_span domain = m->reach.domains.at[i];
        cs_out_puts(out, "dropped, not used: opset import ");
        cs_out_span(out, domain.len == 0 ? CS_SPAN("ai.onnx") : domain);
        cs_out_puts(out, "\n");
    }
    if (source->has_training) cs_out_puts(out, "dropped: training_info\n");
}

/* ---- 4. writing ---- */

/* What is merged must not be written over, by whatever name or link `path` reaches it. */
static cutset_status check_path(const merge *m, const char *path, cutset_error *err)
{
    struct stat st, plan;
    const char *of = NULL;
    if (stat(path, &st) != 0) return CUTSET_OK;
    for (size_t i = 0; i < m->gather.models.len && of == NULL; i++)
        if (cs_onnx_reads(m->gather.models.at[i].onnx, (uint64_t)st.st_dev, (uint64_t)st.st_ino))
            of = i == 0 ? "the source model" : "this split";
    char *name = cs_path_join(m->dir, "plan.json");
    if (name == NULL) return cs_fail_memory(err);
    if (of == NULL && stat(name, &plan) == 0 && plan.st_dev == st.st_dev &&
        plan.st_ino == st.st_ino)
        of = "this split";
    cs_free(name);
    return of == NULL
               ? CUTSET_OK
               : cs_fail(err, CUTSET_USAGE,
                         "%s is a file of %s: name another file for the merged model", path, of);
}

static cutset_status make_rope(merge *m, cutset_error *err)
{
    const cutset_status status = cs_recipe_write(&m->recipe, &m->reach, &m->rewriter, err);
    if (status != CUTSET_OK || m->rope.len < CS_PROTO_MAX) return status;
    if (m->gather.spill)
        return cs_fail(err, CUTSET_NO, "the merged model has %" PRIu64 " bytes beside its weights",
                       m->rope.len);
    m->gather.spill = true;
    return make_rope(m, err);
}

/* PATH.data must be free, or that of an earlier merge to the same place. */
static cutset_status check_data(const merge *m, const char *data, cutset_error *err)
{
    struct stat st, model;
    if (lstat(data, &st) != 0) return CUTSET_OK;
    if (stat(m->path, &model) == 0 && S_ISREG(st.st_mode)) return check_path(m, data, err);
    return cs_fail(err, CUTSET_USAGE,
                   "%s is in the way: the merged model needs it for its weights; name "
                   "another file",
                   data);
}

static cutset_status write_model(merge *m, cutset_error *err)
{
    cs_whole model;
    cutset_status status = cs_whole_open(&model, m->path, err);
    if (status != CUTSET_OK) return status;
    status = cs_rope_write(&m->rope, model.fd, m->path, m->progress, err);
    if (status == CUTSET_OK) status = cs_progress(m->progress, "writing the model", 1, 1, err);
    if (status == CUTSET_OK) return cs_whole_keep(&model, err);
    cs_whole_drop(&model);
    return status;
}

static cutset_status write_with_data(merge *m, cutset_error *err)
{
    char *data = cs_path_join(m->folder, m->gather.data_name);
    if (data == NULL) return cs_fail_memory(err);
    cs_whole file;
    cutset_status status = check_data(m, data, err);
    if (status == CUTSET_OK) status = cs_whole_open(&file, data, err);
    if (status == CUTSET_OK) {
        status = cs_gather_write(&m->gather, file.fd, m->progress, err);
        if (status == CUTSET_OK)
            status = cs_whole_keep(&file, err);
        else
            cs_whole_drop(&file);
        if (status == CUTSET_OK) {
            status = write_model(m, err);
            if (status != CUTSET_OK) unlink(data);
        }
    }
    cs_free(data);
    return status;
}

static cutset_status init(merge *m, cutset_error *err)
{
    const size_t values = m->graph->values.len;
    m->folder = cs_path_dir(m->path);
    m->node = cs_zalloc(m->graph->nodes.len + 1, sizeof *m->node);
    m->weight = cs_zalloc(values + 1, sizeof *m->weight);
    m->info = cs_zalloc(values + 1, sizeof *m->info);
    m->function = cs_zalloc(m->source->functions.len + 1, sizeof *m->function);
    const char *slash = strrchr(m->path, '/');
    const char *base = slash != NULL ? slash + 1 : m->path;
    m->gather.data_name = cs_alloc(strlen(base) + 6, 1);
    bool ok = m->folder && m->node && m->weight && m->info && m->function && m->gather.data_name &&
              cs_map_room(&m->value_of, values);
    if (ok) snprintf(m->gather.data_name, strlen(base) + 6, "%s.data", base);
    for (uint32_t v = 0; ok && v < values; v++)
        ok = cs_map_put(&m->value_of, m->graph->values.at[v].name, v);
    if (!ok) return cs_fail_memory(err);
    m->recipe.source = m->source;
    m->recipe.name = "merged";
    cutset_status status = cs_carriers_init(&m->carriers, m->source, m->graph, err);
    return status == CUTSET_OK ? cs_reach_init(&m->reach, m->source, err) : status;
}

static cutset_status run(merge *m, cs_out *out, cutset_error *err)
{
    const uint32_t n = (uint32_t)m->plan->parts.len;
    cutset_status status = init(m, err);
    if (status == CUTSET_OK) /* the source stays the caller's: no graph, so it is not freed */
        status = cs_gather_add(&m->gather, (cs_onnx *)(uintptr_t)m->source, NULL, m->folder, err);
    for (uint32_t i = 0; i < n && status == CUTSET_OK; i++) {
        status = cs_progress(m->progress, "reading parts", i, n, err);
        if (status == CUTSET_OK) status = take_part(m, i, err);
    }
    if (status == CUTSET_OK) status = check_path(m, m->path, err);
    if (status == CUTSET_OK) status = list_all(m, err);
    if (status != CUTSET_OK) return status;
    cs_rewriter_init(&m->rewriter, &m->rope, cs_gather_place, &m->gather);
    status = make_rope(m, err);
    if (status == CUTSET_OK)
        status = m->gather.moved.len > 0 ? write_with_data(m, err) : write_model(m, err);
    if (status == CUTSET_OK && out != NULL) tell_dropped(m, out);
    return status;
}

cutset_status cs_emit_merge(const cs_onnx *source, const cs_graph *graph, const cutset_plan *plan,
                            const char *dir, const char *path, const cutset_progress *progress,
                            cutset_write_fn write, void *payload, cutset_error *err)
{
    if (!plan->bound)
        return cs_fail(err, CUTSET_BAD, "the plan is not bound to this model: make it again");
    if (plan->copies.len > 0)
        return cs_fail(err, CUTSET_BAD,
                       "the plan repeats nodes in several parts, which ONNX parts cannot: plan the "
                       "model without repeated nodes");
    merge m = {.source = source,
               .graph = graph,
               .plan = plan,
               .dir = dir,
               .path = path,
               .progress = progress,
               .gather.source = source};
    cs_out out;
    cutset_status status = CUTSET_OK;
    if (write != NULL) status = cs_out_call(&out, write, payload, err);
    if (status == CUTSET_OK) {
        status = run(&m, write != NULL ? &out : NULL, err);
        if (write != NULL) {
            const cutset_status told =
                cs_out_done(&out, "what was dropped", status == CUTSET_OK ? err : NULL);
            if (status == CUTSET_OK) status = told;
        }
    }
    cs_rewriter_fini(&m.rewriter);
    cs_rope_fini(&m.rope);
    cs_recipe_fini(&m.recipe);
    cs_reach_fini(&m.reach);
    cs_carriers_fini(&m.carriers);
    cs_map_fini(&m.value_of);
    cs_free(m.node);
    cs_free(m.weight);
    cs_free(m.info);
    cs_free(m.function);
    cs_free(m.folder);
    cs_gather_fini(&m.gather);
    return status;
}
