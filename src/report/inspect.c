/* What is in a model, for people (80 columns) and for programs.
 *
 * Facts are gathered once over the graph and its bodies (an explicit walk, bodies are few and their
 * depth is bounded), then printed in one of two forms. Cost: linear, and sorting the operators.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/line.h"
#include "report/report.h"

typedef struct op_row {
    cs_str domain, op;
    uint32_t count;
} op_row;

typedef struct facts {
    const cs_graph *graph;
    CS_VEC(op_row) ops;
    cs_map index; /* (domain, op) -> row */
    uint64_t body_nodes, bodies, calls, effects, random;
    uint64_t values, untyped; /* made by nodes of the main graph; without element type or rank */
    cs_str example;           /* the first untyped one */
    int64_t bytes[CS_ELEM_COUNT], total;
    uint32_t storages[CS_ELEM_COUNT];
} facts;

static bool count_op(facts *f, const cs_node *n)
{
    uint64_t key = (uint64_t)n->domain << 32 | n->op;
    uint32_t row = cs_map_get(&f->index, key);
    if (row == CS_NONE) {
        row = (uint32_t)f->ops.len;
        if (!cs_vec_push(&f->ops, ((op_row){n->domain, n->op, 0})) ||
            !cs_map_put(&f->index, key, row))
            return false;
    }
    f->ops.at[row].count++;
    return true;
}

static bool count_nodes(facts *f, const cs_graph *g, bool body)
{
    for (size_t i = 0; i < g->nodes.len; i++) {
        const cs_node *n = &g->nodes.at[i];
        bool call = n->flags & CS_NODE_FUNCTION;
        f->body_nodes += body;
        f->calls += call;
        f->effects += (n->flags & CS_NODE_EFFECT) || n->n_write;
        f->random += !body && n->flags & CS_NODE_RANDOM;
        if (!body && !count_op(f, n)) return false;
        for (uint32_t b = 0; b < n->n_body; b++) {
            f->bodies += !call;
            if (!call && !count_nodes(f, g->bodies.at[n->body + b].graph, true)) return false;
        }
    }
    return true;
}

static void count_values(facts *f)
{
    const cs_graph *g = f->graph;
    for (size_t v = 0; v < g->values.len; v++) {
        if (g->values.at[v].origin != CS_ORIGIN_NODE) continue;
        f->values++;
        if (cs_type_is_ranked(g->pool, g->values.at[v].type)) continue;
        if (!f->untyped++) f->example = g->values.at[v].name;
    }
    for (size_t s = 0; s < g->storages.len; s++) {
        const cs_storage *st = &g->storages.at[s];
        f->bytes[st->elem] = cs_sat_add(f->bytes[st->elem], st->bytes);
        f->total = cs_sat_add(f->total, st->bytes);
        f->storages[st->elem]++;
    }
}

static int by_count(const void *x, const void *y, void *pool)
{
    const op_row *a = x, *b = y;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    int c = cs_span_cmp(cs_name(pool, a->op), cs_name(pool, b->op));
    return c ? c : cs_span_cmp(cs_name(pool, a->domain), cs_name(pool, b->domain));
}

static bool gather(facts *f, const cs_graph *g)
{
    *f = (facts){.graph = g};
    if (!count_nodes(f, g, false)) return false;
    count_values(f);
    if (f->ops.len > 1)
        qsort_r(f->ops.at, f->ops.len, sizeof *f->ops.at, by_count, (void *)g->pool);
    return true;
}

/* ---- JSON ---- */

static cutset_status put_type(cs_json *j, const cs_pool *pool, cs_type type, cutset_error *err)
{
    cs_chars text = {0};
    if (!cs_type_print(pool, type, &text)) return cs_vec_fini(&text), cs_fail_memory(err);
    cs_json_put_string(j, "type", (cs_span){text.at, text.len});
    cs_vec_fini(&text);
    return CUTSET_OK;
}

static cutset_status put_values(cs_json *j, const char *key, const cs_graph *g, const uint32_t *at,
                                size_t n, cutset_error *err)
{
    cutset_status s = CUTSET_OK;
    cs_json_key(j, key);
    cs_json_array(j);
    for (size_t i = 0; !s && i < n; i++) {
        cs_json_object_line(j);
        cs_json_put_string(j, "name", cs_name(g->pool, g->values.at[at[i]].name));
        s = put_type(j, g->pool, g->values.at[at[i]].type, err);
        cs_json_end(j);
    }
    cs_json_end(j);
    return s;
}

static void put_ops(cs_json *j, const facts *f)
{
    cs_json_key(j, "ops");
    cs_json_array(j);
    for (size_t i = 0; i < f->ops.len; i++) {
        cs_json_object_line(j);
        cs_json_put_string(j, "op", cs_name(f->graph->pool, f->ops.at[i].op));
        cs_json_put_string(j, "domain", cs_name(f->graph->pool, f->ops.at[i].domain));
        cs_json_put_int(j, "count", f->ops.at[i].count);
        cs_json_end(j);
    }
    cs_json_end(j);
}

static cutset_status as_json(const facts *f, const cs_onnx *onnx, cs_out *out, cutset_error *err)
{
    const cs_graph *g = f->graph;
    cs_json json, *j = &json;
    cs_json_init(j, out);
    cs_json_object(j);
    cs_json_put_text(j, "format", onnx ? "onnx" : "text");
    cs_json_put_string(j, "name", cs_name(g->pool, g->name));
    if (onnx) cs_json_put_int(j, "ir_version", onnx->ir_version);
    cs_json_key(j, "opsets");
    cs_json_object_line(j);
    for (size_t i = 0; i < g->opsets.len; i++) {
        cs_json_key_span(j, cs_name(g->pool, g->opsets.at[i].domain));
        cs_json_int(j, g->opsets.at[i].version);
    }
    cs_json_end(j);
    cs_json_put_int(j, "nodes", (int64_t)g->nodes.len);
    cs_json_put_int(j, "bodies", (int64_t)f->bodies);
    cs_json_put_int(j, "body_nodes", (int64_t)f->body_nodes);
    cs_json_put_int(j, "function_calls", (int64_t)f->calls);
    cs_json_put_int(j, "nodes_with_effects", (int64_t)f->effects);
    cs_json_put_int(j, "random_nodes", (int64_t)f->random);
    cs_json_put_int(j, "weights", (int64_t)g->storages.len);
    cs_json_put_int(j, "weight_bytes", f->total);
    cs_json_key(j, "weight_bytes_by_type");
    cs_json_object_line(j);
    for (int e = 0; e < CS_ELEM_COUNT; e++)
        if (f->storages[e]) cs_json_put_int(j, cs_elem_name((cs_elem)e), f->bytes[e]);
    cs_json_end(j);
    cs_json_put_int(j, "values", (int64_t)f->values);
    cs_json_put_int(j, "values_without_type", (int64_t)f->untyped);
    cutset_status s = put_values(j, "inputs", g, g->inputs.at, g->inputs.len, err);
    if (!s) s = put_values(j, "outputs", g, g->outputs.at, g->outputs.len, err);
    put_ops(j, f);
    cs_json_key(j, "notes");
    cs_json_array(j);
    for (size_t i = 0; i < g->pool->notes.len; i++)
        cs_json_text(j, g->pool->notes.at[i]);
    cs_json_end(j);
    cs_json_end(j);
    return s;
}

/* ---- table ---- */

#define ROWS_OPS 20
#define ROWS_VALUES 10

static cutset_status list_values(const char *what, const cs_graph *g, const uint32_t *at, size_t n,
                                 cs_out *out, cutset_error *err)
{
    cs_line line = {0};
    for (size_t i = 0; i < n && i < ROWS_VALUES; i++) {
        const cs_value *v = &g->values.at[at[i]];
        cs_chars type = {0};
        if (!cs_type_print(g->pool, v->type, &type)) return cs_vec_fini(&type), cs_fail_memory(err);
        cs_line_printf(&line, "%-8s ", i ? "" : what);
        cs_line_span(&line, cs_name(g->pool, v->name));
        cs_line_printf(&line, " : ");
        cs_line_span(&line, (cs_span){type.at, type.len});
        cs_line_put(&line, out);
        cs_vec_fini(&type);
    }
    if (n > ROWS_VALUES) cs_out_printf(out, "         ... and %zu more\n", n - ROWS_VALUES);
    return CUTSET_OK;
}

static void list_ops(const facts *f, cs_out *out)
{
    const cs_pool *pool = f->graph->pool;
    cs_line line = {0};
    for (size_t i = 0; i < f->ops.len && i < ROWS_OPS; i++) {
        const op_row *op = &f->ops.at[i];
        cs_line_printf(&line, "%-8s %7u  ", i ? "" : "ops", op->count);
        if (op->domain) {
            cs_line_span(&line, cs_name(pool, op->domain));
            cs_line_printf(&line, ":");
        }
        cs_line_span(&line, cs_name(pool, op->op));
        cs_line_put(&line, out);
    }
    if (f->ops.len > ROWS_OPS)
        cs_out_printf(out, "         ... and %zu more operators (--json lists all)\n",
                      f->ops.len - ROWS_OPS);
}

static void list_weights(const facts *f, cs_out *out)
{
    cs_line line = {0};
    cs_line_printf(&line, "%-8s ", "weights");
    cs_line_size(&line, f->total);
    cs_line_printf(&line, " in ");
    cs_line_count(&line, f->graph->storages.len, "tensor", "tensors");
    for (int e = 0; e < CS_ELEM_COUNT; e++) {
        if (!f->bytes[e]) continue;
        cs_line_printf(&line, ", %s ", cs_elem_name((cs_elem)e));
        cs_line_size(&line, f->bytes[e]);
    }
    cs_line_put(&line, out);
}

static void list_model(const facts *f, const cs_onnx *onnx, cs_out *out)
{
    const cs_graph *g = f->graph;
    cs_line line = {0};
    cs_line_printf(&line, "%-8s ", "model");
    cs_line_span(&line, cs_name(g->pool, g->name));
    cs_line_printf(&line, g->name ? ", " : "");
    if (onnx)
        cs_line_printf(&line, "ONNX IR %" PRId64, onnx->ir_version);
    else
        cs_line_printf(&line, "text form");
    for (size_t i = 0; i < g->opsets.len; i++) {
        cs_line_printf(&line, ", ");
        cs_line_span(&line, g->opsets.at[i].domain ? cs_name(g->pool, g->opsets.at[i].domain)
                                                   : CS_SPAN("opset"));
        cs_line_printf(&line, " %" PRId64, g->opsets.at[i].version);
    }
    cs_line_put(&line, out);
}

static void list_nodes(const facts *f, cs_out *out)
{
    cs_line line = {0};
    cs_line_printf(&line, "%-8s ", "nodes");
    cs_line_printf(&line, "%zu", f->graph->nodes.len);
    if (f->bodies) {
        cs_line_printf(&line, ", %" PRIu64 " more in ", f->body_nodes);
        cs_line_count(&line, f->bodies, "control-flow body", "control-flow bodies");
    }
    if (f->calls) {
        cs_line_printf(&line, ", ");
        cs_line_count(&line, f->calls, "function call", "function calls");
    }
    if (f->effects) cs_line_printf(&line, ", %" PRIu64 " with effects", f->effects);
    if (f->random) cs_line_printf(&line, ", %" PRIu64 " random", f->random);
    cs_line_put(&line, out);
}

static void list_unknown(const facts *f, cs_out *out)
{
    cs_line line = {0};
    cs_line_printf(&line, "%-8s ", "types");
    if (!f->untyped) {
        cs_line_printf(&line, "element type and rank of every value are known");
    } else {
        cs_line_printf(&line, "%" PRIu64 " of %" PRIu64 " values unknown, the first is ",
                       f->untyped, f->values);
        cs_line_span(&line, cs_name(f->graph->pool, f->example));
    }
    cs_line_put(&line, out);
}

cutset_status cs_report_model(const cs_graph *graph, const cs_onnx *onnx, bool json, cs_out *out,
                              cutset_error *err)
{
    facts f;
    cutset_status s = gather(&f, graph) ? CUTSET_OK : cs_fail_memory(err);
    if (!s && json) {
        s = as_json(&f, onnx, out, err);
    } else if (!s) {
        list_model(&f, onnx, out);
        list_nodes(&f, out);
        list_weights(&f, out);
        list_unknown(&f, out);
        s = list_values("inputs", graph, graph->inputs.at, graph->inputs.len, out, err);
        if (!s) s = list_values("outputs", graph, graph->outputs.at, graph->outputs.len, out, err);
        list_ops(&f, out);
    }
    cs_vec_fini(&f.ops);
    cs_map_fini(&f.index);
    return s;
}
