/* A ModelProto as a rope, from the lists of a recipe; see model.h.
 *
 * ir_version, the source's other fields, opset imports in use, graph, functions. Protobuf gives the
 * order of fields no meaning, so raw fields are copied in a block.
 */
#include "emit/model.h"

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

/* The source's name, doc, metadata and unknown fields; a name where there is none (the checker
 * wants one). */
static void copy_graph_fields(const cs_recipe *r, cs_rope *rope)
{
    bool named = false;
    for (size_t i = 0; i < r->source->graph_fields.len; i++) {
        const cs_span raw = r->source->graph_fields.at[i];
        cs_wire w = cs_wire_of(raw, 0);
        if (cs_wire_next(&w) && w.field == 2) {
            if (w.type != CS_WIRE_BYTES || w.bytes.len == 0) continue;
            named = true;
        }
        cs_rope_slice(rope, &r->source->file, raw);
    }
    if (!named) cs_rope_string(rope, 2, cs_span_of(r->name));
}

static cutset_status write_graph(const cs_recipe *r, cs_rewriter *rw, cutset_error *err)
{
    cs_rope *rope = rw->rope;
    const cs_rope_mark graph = cs_rope_open(rope, 7);
    cutset_status status = rewrite_all(&r->nodes, 1, CS_MESSAGE_NODE, rw, err);
    if (status != CUTSET_OK) return status;
    copy_graph_fields(r, rope);
    status = rewrite_all(&r->initializers, 5, CS_MESSAGE_TENSOR, rw, err);
    if (status == CUTSET_OK) status = rewrite_all(&r->sparse, 15, CS_MESSAGE_SPARSE, rw, err);
    if (status != CUTSET_OK) return status;
    for (size_t i = 0; i < r->inputs.len; i++)
        cs_info_write(rope, 11, r->source->pool, &r->inputs.at[i]);
    for (size_t i = 0; i < r->outputs.len; i++)
        cs_info_write(rope, 12, r->source->pool, &r->outputs.at[i]);
    copy_all(&r->infos, 13, rope);
    copy_all(&r->annotations, 14, rope);
    cs_rope_close(rope, graph);
    return CUTSET_OK;
}

cutset_status cs_recipe_write(const cs_recipe *r, const cs_reach *reach, cs_rewriter *rw,
                              cutset_error *err)
{
    const cs_onnx *source = r->source;
    cs_rope *rope = rw->rope;
    cs_rope_clear(rope);
    if (source->ir_version != 0) cs_rope_number(rope, 1, (uint64_t)source->ir_version);
    for (size_t i = 0; i < source->model_fields.len; i++)
        cs_rope_slice(rope, &source->file, source->model_fields.at[i]);
    for (size_t i = 0; i < reach->imports.len; i++)
        if (reach->import_used[i]) cs_rope_field(rope, 8, &source->file, reach->imports.at[i]);
    cutset_status status = write_graph(r, rw, err);
    if (status == CUTSET_OK)
        status = rewrite_all(&r->functions, 25, CS_MESSAGE_FUNCTION, rw, err);
    return status != CUTSET_OK ? status : cs_rope_check(rope, err);
}
