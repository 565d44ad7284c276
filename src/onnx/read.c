/* ModelProto -> graph and record: opening, opsets, functions, the rest of the model's fields.
 *
 * The fields of the model may come in any order, and what the graph means depends on ir_version and
 * opset_import: so the model's fields are gathered first, then functions are listed, then the graph
 * is read (read_graph.c) and sealed. Cost: linear in the file without its weights.
 */
#include "onnx/read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { IMPORTS_MAX = 1000 }; /* looked through for every node */

static cutset_status bad(const cs_reader *r, uint64_t offset, bool tell, const char *format,
                         va_list args)
{
    char text[1000];
    int used = 0;
    if (tell) used = snprintf(text, sizeof text, "offset %" PRIu64 ": ", offset);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    return cs_fail_at(r->err, CUTSET_BAD, offset, "%s", text);
}

cutset_status cs_onnx_bad(const cs_reader *r, cs_span at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const cutset_status status = bad(r, cs_onnx_offset(r, at), false, format, args);
    va_end(args);
    return status;
}

cutset_status cs_onnx_bad_at(const cs_reader *r, cs_span at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const cutset_status status = bad(r, cs_onnx_offset(r, at), true, format, args);
    va_end(args);
    return status;
}

cutset_status cs_onnx_enter(cs_reader *r, cs_span at, uint32_t messages)
{
    if (r->depth + messages > CS_WIRE_DEPTH)
        return cs_onnx_bad_at(r, at, "more than %d messages inside each other: nest less",
                              CS_WIRE_DEPTH);
    r->depth += messages;
    return CUTSET_OK;
}

cs_str cs_onnx_domain(cs_reader *r, cs_span s)
{
    return cs_span_is(s, "ai.onnx") ? 0 : cs_onnx_intern(r, s);
}

/* ---- opsets ---- */

cutset_status cs_onnx_read_opset(cs_reader *r, cs_span proto, cs_graph *g)
{
    cs_span domain = {"", 0};
    int64_t version = 0;
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_BYTES))
            domain = w.bytes;
        else if (w.field == 2 && cs_wire_expect(&w, CS_WIRE_VARINT))
            version = (int64_t)w.number;
    }
    if (w.bad) return cs_wire_error(&w, "OperatorSetIdProto", r->err);
    const cs_opset opset = {cs_onnx_domain(r, domain), version};
    if (opset.domain == CS_NONE) return cs_fail_memory(r->err);
    if (version < 0)
        return cs_onnx_bad(r, proto,
                           "opset_import: version %" PRId64 " of domain '%.*s': give one from 1",
                           version, CS_FMT(domain));
    if (opset.domain == 0 && version > CS_ONNX_OPSET_MAX)
        return cs_onnx_bad(r, proto,
                           "opset %" PRId64
                           " of ai.onnx is newer than this build knows (%d); export "
                           "the model with an older opset",
                           version, CS_ONNX_OPSET_MAX);
    for (size_t i = 0; i < g->opsets.len; i++) {
        if (g->opsets.at[i].domain != opset.domain) continue;
        if (g->opsets.at[i].version < version) g->opsets.at[i].version = version;
        return CUTSET_OK;
    }
    if (g->opsets.len == IMPORTS_MAX)
        return cs_onnx_bad(r, proto, "more than %d domains are imported: import fewer",
                           IMPORTS_MAX);
    return cs_vec_push(&g->opsets, opset) ? CUTSET_OK : cs_fail_memory(r->err);
}

/* No opset_import at all (IR 1 and 2, and careless writers): version 1, as ONNX Runtime has it. */
static cutset_status check_opsets(cs_reader *r)
{
    cs_graph *g = r->top;
    const cs_opset first = {0, 1};
    if (g->opsets.len == 0) {
        if (!cs_vec_push(&g->opsets, first) ||
            !cs_note(r->pool, "no opset_import: version 1 of ai.onnx is assumed"))
            return cs_fail_memory(r->err);
        return CUTSET_OK;
    }
    for (size_t i = 0; i < g->opsets.len; i++) {
        if (g->opsets.at[i].domain != 0 || g->opsets.at[i].version != 0) continue;
        g->opsets.at[i].version = 1;
        if (!cs_note(r->pool, "opset_import of ai.onnx without a version: 1 is assumed"))
            return cs_fail_memory(r->err);
    }
    return CUTSET_OK;
}

/* ---- the model ---- */

typedef struct fields {
    cs_span graph;
    cs_spans functions;
    bool has_graph, has_ir;
} fields;

static cutset_status read_field(cs_reader *r, fields *f, cs_wire *w)
{
    cs_onnx *o = r->onnx;
    switch (w->field) {
    case 1:
        if (cs_wire_expect(w, CS_WIRE_VARINT)) {
            o->ir_version = (int64_t)w->number;
            f->has_ir = true;
        }
        return CUTSET_OK;
    case 7:
        if (!cs_wire_expect(w, CS_WIRE_BYTES)) return CUTSET_OK;
        if (f->has_graph) return cs_onnx_bad(r, w->raw, "the model has two graphs: keep one");
        f->graph = w->bytes;
        f->has_graph = true;
        return CUTSET_OK;
    case 8:
        if (cs_wire_expect(w, CS_WIRE_BYTES)) return cs_onnx_read_opset(r, w->bytes, r->top);
        return CUTSET_OK;
    case 20:
        o->has_training = true;
        return CUTSET_OK;
    case 25:
        if (cs_wire_expect(w, CS_WIRE_BYTES) && !cs_vec_push(&f->functions, w->bytes))
            return cs_fail_memory(r->err);
        return CUTSET_OK;
    default:
        return cs_vec_push(&o->model_fields, w->raw) ? CUTSET_OK : cs_fail_memory(r->err);
    }
}

static cutset_status check_versions(cs_reader *r, const fields *f)
{
    const int64_t ir = r->onnx->ir_version;
    if (!f->has_graph)
        return cs_fail_at(
            r->err, CUTSET_BAD, 0,
            "no graph in it: this is not an ONNX model, or only the head of one: give the "
            "whole file");
    if (!f->has_ir && r->top->opsets.len > 0) { /* early writers of proto3 */
        r->onnx->ir_version = 3;
        if (!cs_note(r->pool, "no ir_version: 3 is assumed")) return cs_fail_memory(r->err);
    } else if (!f->has_ir || ir < 1)
        return cs_fail_at(
            r->err, CUTSET_BAD, 0,
            "no IR version in it: this is not an ONNX model, or a damaged one: export "
            "or copy it again");
    if (ir > CS_ONNX_IR_MAX)
        return cs_fail_at(r->err, CUTSET_BAD, 0,
                          "IR version %" PRId64
                          " is newer than this build knows (%d); save the model "
                          "with an older one",
                          ir, CS_ONNX_IR_MAX);
    return check_opsets(r);
}

static cutset_status read_model(cs_reader *r, fields *f)
{
    const cs_file *file = &r->onnx->file;
    cs_wire w = cs_onnx_wire(r, (cs_span){(const char *)file->at, file->len});
    while (cs_wire_next(&w))
        CS_TRY(read_field(r, f, &w));
    if (w.bad && !f->has_graph && !f->has_ir)
        return cs_fail_at(
            r->err, CUTSET_BAD, 0,
            "this is neither an ONNX model nor a text graph; a text graph begins with "
            "a line such as 'graph NAME' or 'input %%x : f32[4]'");
    if (w.bad) return cs_wire_error(&w, "ModelProto", r->err);
    CS_TRY(check_versions(r, f));
    if (r->onnx->has_training &&
        !cs_note(r->pool, "training_info is ignored, and no part will have it"))
        return cs_fail_memory(r->err);
    for (size_t i = 0; i < f->functions.len; i++)
        CS_TRY(cs_onnx_add_function(r, f->functions.at[i]));
    r->onnx->graph = f->graph;
    r->depth = 2;
    CS_TRY(cs_onnx_read_main(r, f->graph));
    return cs_graph_seal(r->top, r->err);
}

/* ---- opening and closing ---- */

static void reader_free(cs_reader *r)
{
    cs_vec_fini(&r->names);
    cs_vec_fini(&r->below);
    cs_vec_fini(&r->ins);
    cs_vec_fini(&r->outs);
    cs_vec_fini(&r->items);
    cs_map_fini(&r->ties);
    cs_map_fini(&r->weights);
    cs_vec_fini(&r->known_weights);
    cs_map_fini(&r->attrs);
    cs_vec_fini(&r->known_attrs);
    cs_map_fini(&r->file_ids);
    cs_vec_fini(&r->odd_keys);
    cs_map_fini(&r->function_ids);
    cs_vec_fini(&r->open);
    cs_vec_fini(&r->odd_domains);
    if (r->folder_fd >= 0) close(r->folder_fd);
    if (r->data_fd >= 0) close(r->data_fd);
    cs_free(r);
}

static char *copy_text(const char *text)
{
    const size_t len = strlen(text) + 1;
    char *copy = cs_alloc(len, 1);
    return copy == NULL ? NULL : memcpy(copy, text, len);
}

/* Paths of the record. A model that was read from a file has its folder, unless told otherwise. */
static bool set_paths(cs_onnx *o, const char *path, const char *folder)
{
    const bool derive = folder == NULL && path != NULL && strcmp(path, "-") != 0;
    if (path != NULL && (o->path = copy_text(path)) == NULL) return false;
    if (folder != NULL && (o->folder = copy_text(folder)) == NULL) return false;
    return !derive || (o->folder = cs_path_dir(path)) != NULL;
}

static cutset_status open_all(cs_onnx *o, cs_graph *g, const cs_onnx_opts *opts, cutset_error *err)
{
    fields f = {0};
    CS_TRY(cs_onnx_probe(&o->file, err));
    cs_reader *r = cs_zalloc(1, sizeof *r);
    if (r == NULL) return cs_fail_memory(err);
    r->onnx = o;
    r->pool = o->pool;
    r->top = g;
    r->opts = opts;
    r->err = err;
    r->folder_fd = r->data_fd = -1;
    const cutset_status status = read_model(r, &f);
    cs_vec_fini(&f.functions);
    reader_free(r);
    return status;
}

/* The pool belongs to the graph from the moment there is one. */
static cs_graph *new_graph(void)
{
    cs_pool *pool = cs_pool_new();
    cs_graph *g = pool == NULL ? NULL : cs_graph_new(pool, NULL);
    if (g == NULL) cs_pool_free(pool);
    return g;
}

cutset_status cs_onnx_open(cs_onnx **out, cs_graph **graph, cs_file *file, const char *path,
                           const char *folder, const cs_onnx_opts *opts, cutset_error *err)
{
    *out = NULL;
    *graph = NULL;
    cs_onnx *o = cs_zalloc(1, sizeof *o);
    if (o == NULL) {
        cs_file_close(file);
        *file = (cs_file){.fd = -1};
        return cs_fail_memory(err);
    }
    o->file = *file;
    *file = (cs_file){.fd = -1};
    cs_graph *g = new_graph();
    cutset_status status = CUTSET_OK;
    if (g == NULL || !set_paths(o, path, folder)) status = cs_fail_memory(err);
    if (status == CUTSET_OK) {
        o->pool = g->pool;
        o->pool->file = &o->file;
        status = open_all(o, g, opts, err);
    }
    if (status != CUTSET_OK) {
        cs_onnx_free(o);
        cs_graph_free(g);
        return status;
    }
    *out = o;
    *graph = g;
    return CUTSET_OK;
}

void cs_onnx_free(cs_onnx *o)
{
    if (o == NULL) return;
    for (size_t i = 0; i < o->files.len; i++)
        cs_free(o->files.at[i].path);
    cs_vec_fini(&o->model_fields);
    cs_vec_fini(&o->graph_fields);
    cs_vec_fini(&o->nodes);
    cs_vec_fini(&o->positions);
    cs_vec_fini(&o->weights);
    cs_vec_fini(&o->value_infos);
    cs_vec_fini(&o->annotations);
    cs_vec_fini(&o->annotated);
    cs_vec_fini(&o->initializer);
    cs_vec_fini(&o->files);
    cs_vec_fini(&o->functions);
    cs_free((char *)o->path);
    cs_free((char *)o->folder);
    cs_file_close(&o->file);
    cs_free(o);
}
