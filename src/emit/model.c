/* A ModelProto as a rope, from the lists of a recipe; see model.h.
 *
 * Fields stand in the order of their numbers, as protobuf writes them: merging a split of a model
 * in which nothing is unused gives the very bytes of the source.
 */
#include "emit/model.h"

enum { /* field numbers, onnx.proto */
       MODEL_GRAPH = 7,
       MODEL_IMPORT = 8,
       MODEL_FUNCTION = 25,
       GRAPH_NAME = 2,
       GRAPH_INITIALIZER = 5,
       GRAPH_INPUT = 11,
       GRAPH_OUTPUT = 12,
       GRAPH_INFO = 13,
       GRAPH_ANNOTATION = 14,
       GRAPH_SPARSE = 15
};

void cs_recipe_clear(cs_recipe *r)
{
    r->nodes.len = r->initializers.len = r->sparse.len = r->infos.len = r->annotations.len = 0;
    r->functions.len = r->inputs.len = r->outputs.len = 0;
}

void cs_recipe_fini(cs_recipe *r)
{
    cs_vec_fini(&r->nodes);
    cs_vec_fini(&r->initializers);
    cs_vec_fini(&r->sparse);
    cs_vec_fini(&r->infos);
    cs_vec_fini(&r->annotations);
    cs_vec_fini(&r->functions);
    cs_vec_fini(&r->inputs);
    cs_vec_fini(&r->outputs);
}

static cutset_status rewrite_all(const cs_pieces *pieces, uint32_t field, cs_message kind,
                                 cs_rewriter *rw, cutset_error *err)
{
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; i < pieces->len && status == CUTSET_OK; i++)
        status = cs_rewrite(rw, field, kind, pieces->at[i], err);
    return status;
}

static void copy_all(const cs_pieces *pieces, uint32_t field, cs_rope *rope)
{
    for (size_t i = 0; i < pieces->len; i++)
        cs_rope_field(rope, field, &pieces->at[i].from->file, pieces->at[i].bytes);
}

/* Raw fields with numbers from `from` to below `to`. */
static void copy_fields(const cs_recipe *r, const cs_span *fields, size_t n, uint32_t from,
                        uint32_t to, cs_rope *rope)
{
    for (size_t i = 0; i < n; i++) {
        cs_wire w = cs_wire_of(fields[i], 0);
        if (cs_wire_next(&w) && w.field >= from && w.field < to)
            cs_rope_slice(rope, &r->source->file, fields[i]);
    }
}

static void copy_graph_fields(const cs_recipe *r, uint32_t from, uint32_t to, cs_rope *rope)
{
    copy_fields(r, r->source->graph_fields.at, r->source->graph_fields.len, from, to, rope);
}

/* The checker wants a name. */
static void write_name(const cs_recipe *r, cs_rope *rope)
{
    cs_span name = {0};
    for (size_t i = 0; i < r->source->graph_fields.len; i++) {
        cs_wire w = cs_wire_of(r->source->graph_fields.at[i], 0);
        if (cs_wire_next(&w) && w.field == GRAPH_NAME && w.type == CS_WIRE_BYTES) name = w.bytes;
    }
    cs_rope_string(rope, GRAPH_NAME, name.len > 0 ? name : cs_span_of(r->name));
}

static cutset_status write_graph(const cs_recipe *r, cs_rewriter *rw, cutset_error *err)
{
    cs_rope *rope = rw->rope;
    const cs_rope_mark graph = cs_rope_open(rope, MODEL_GRAPH);
    cutset_status status = rewrite_all(&r->nodes, 1, CS_MESSAGE_NODE, rw, err);
    if (status != CUTSET_OK) return status;
    write_name(r, rope);
    copy_graph_fields(r, GRAPH_NAME + 1, GRAPH_INITIALIZER, rope);
    status = rewrite_all(&r->initializers, GRAPH_INITIALIZER, CS_MESSAGE_TENSOR, rw, err);
    if (status != CUTSET_OK) return status;
    copy_graph_fields(r, GRAPH_INITIALIZER, GRAPH_INPUT, rope);
    for (size_t i = 0; i < r->inputs.len; i++)
        cs_info_write(rope, GRAPH_INPUT, r->source->pool, &r->inputs.at[i]);
    for (size_t i = 0; i < r->outputs.len; i++)
        cs_info_write(rope, GRAPH_OUTPUT, r->source->pool, &r->outputs.at[i]);
    copy_all(&r->infos, GRAPH_INFO, rope);
    copy_all(&r->annotations, GRAPH_ANNOTATION, rope);
    status = rewrite_all(&r->sparse, GRAPH_SPARSE, CS_MESSAGE_SPARSE, rw, err);
    copy_graph_fields(r, GRAPH_INPUT, UINT32_MAX, rope);
    cs_rope_close(rope, graph);
    return status;
}

cutset_status cs_recipe_write(const cs_recipe *r, const cs_reach *reach, cs_rewriter *rw,
                              cutset_error *err)
{
    const cs_onnx *source = r->source;
    const cs_span *fields = source->model_fields.at;
    const size_t n = source->model_fields.len;
    cs_rope *rope = rw->rope;
    cs_rope_clear(rope);
    if (source->ir_version != 0) cs_rope_number(rope, 1, (uint64_t)source->ir_version);
    copy_fields(r, fields, n, 0, MODEL_GRAPH, rope);
    cutset_status status = write_graph(r, rw, err);
    if (status != CUTSET_OK) return status;
    for (size_t i = 0; i < reach->imports.len; i++)
        if (reach->import_used[i])
            cs_rope_field(rope, MODEL_IMPORT, &source->file, reach->imports.at[i]);
    copy_fields(r, fields, n, MODEL_GRAPH, MODEL_FUNCTION, rope);
    status = rewrite_all(&r->functions, MODEL_FUNCTION, CS_MESSAGE_FUNCTION, rw, err);
    copy_fields(r, fields, n, MODEL_FUNCTION, UINT32_MAX, rope);
    return status != CUTSET_OK ? status : cs_rope_check(rope, err);
}
