/* Where the data of a merged model goes.
 *
 * Data in a data file of the source is referred to where that file lies in or below the merged
 * model's folder. All else (what a split made external, data files elsewhere) is put inside; if the
 * model would then be 2 GiB or more, tensors over CS_CONST_MAX go to PATH.data beside it.
 * No weight byte passes through memory.
 */
#include "emit/merge.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void free_model(cs_origin_model *m)
{
    const size_t n = m->location != NULL ? m->onnx->files.len : 0;
    for (size_t i = 0; i < n; i++)
        cs_free(m->location[i]);
    cs_free(m->location);
    if (m->graph == NULL) return;
    cs_onnx_free(m->onnx);
    cs_graph_free(m->graph);
}

void cs_gather_fini(cs_gather *g)
{
    for (size_t i = 0; i < g->models.len; i++)
        free_model(&g->models.at[i]);
    cs_vec_fini(&g->models);
    cs_map_fini(&g->model_of);
    cs_map_fini(&g->source_file);
    cs_free(g->data_name);
    cs_vec_fini(&g->moved);
    cs_map_fini(&g->moved_at);
    *g = (cs_gather){0};
}

/* Identity of a file; two of 2^64 are taken for one at worst among the user's own files. */
static uint64_t identity(const struct stat *st)
{
    const uint64_t fields[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    return cs_hash(fields, sizeof fields);
}

static cutset_status learn_source(cs_gather *g, cutset_error *err)
{
    for (uint32_t i = 0; i < g->source->files.len; i++) {
        struct stat st;
        if (stat(g->source->files.at[i].path, &st) != 0)
            return cs_fail_errno(err, "cannot open %s", g->source->files.at[i].path);
        if (!cs_map_put(&g->source_file, identity(&st), i)) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

static bool goes_up(const char *path)
{
    return path[0] == '/' ||
           (path[0] == '.' && path[1] == '.' && (path[2] == '/' || path[2] == '\0'));
}

static cutset_status find_location(const cs_gather *g, const cs_data_file *file, const char *folder,
                                   char **location, cutset_error *err)
{
    struct stat st;
    if (stat(file->path, &st) != 0) return cs_fail_errno(err, "cannot open %s", file->path);
    const uint32_t known = cs_map_get(&g->source_file, identity(&st));
    if (known == CS_NONE || g->source->files.at[known].link) return CUTSET_OK;
    const char *path = g->source->files.at[known].path;
    const cutset_status status = cs_path_relative(location, folder, path, err);
    if (status != CUTSET_OK) return status;
    if (goes_up(*location) || !cs_utf8_valid(cs_span_of(*location))) {
        cs_free(*location);
        *location = NULL;
    }
    return CUTSET_OK;
}

cutset_status cs_gather_add(cs_gather *g, cs_onnx *onnx, cs_graph *graph, const char *folder,
                            cutset_error *err)
{
    cs_origin_model m = {.onnx = onnx, .graph = graph};
    m.location = cs_zalloc(onnx->files.len + 1, sizeof *m.location);
    const uint32_t index = (uint32_t)g->models.len;
    if (m.location == NULL || !cs_vec_push(&g->models, m)) {
        free_model(&m);
        return cs_fail_memory(err);
    }
    if (!cs_map_put(&g->model_of, (uintptr_t)onnx, index)) return cs_fail_memory(err);
    cutset_status status = graph == NULL ? learn_source(g, err) : CUTSET_OK;
    for (size_t i = 0; i < onnx->files.len && status == CUTSET_OK; i++)
        status = find_location(g, &onnx->files.at[i], folder, &m.location[i], err);
    return status;
}

/* ---- places ---- */

static bool same_moved(const cs_moved *m, const cs_blob *b)
{
    return m->from == b->from && m->file == b->file && m->offset == b->offset &&
           m->length == b->length;
}

/* Offset in PATH.data, the same for the same bytes of one model. */
static cutset_status move(cs_gather *g, const cs_blob *b, uint64_t *at, cutset_error *err)
{
    const uint64_t fields[] = {cs_map_get(&g->model_of, (uintptr_t)b->from), b->file, b->offset,
                               b->length};
    uint64_t key = cs_hash(fields, sizeof fields);
    for (uint32_t i; (i = cs_map_get(&g->moved_at, key)) != CS_NONE; key++) {
        if (!same_moved(&g->moved.at[i], b)) continue;
        *at = g->moved.at[i].at;
        return CUTSET_OK;
    }
    *at = g->end + (b->offset - g->end) % PAGE; /* where it was in its page, as in weights.c */
    g->end = *at + b->length;
    const cs_moved m = {b->from, b->file, b->offset, b->length, *at};
    if (!cs_map_put(&g->moved_at, key, (uint32_t)g->moved.len) || !cs_vec_push(&g->moved, m))
        return cs_fail_memory(err);
    return CUTSET_OK;
}

cutset_status cs_gather_place(void *gather, const cs_blob *blob, cs_place *place, cutset_error *err)
{
    cs_gather *g = gather;
    const bool external = blob->file != CS_ONNX_INLINE;
    const cs_origin_model *m = &g->models.at[cs_map_get(&g->model_of, (uintptr_t)blob->from)];
    if (external && m->location[blob->file] != NULL) {
        const cs_span location = cs_span_of(m->location[blob->file]);
        if (!cs_span_eq(location, blob->location))
            *place = (cs_place){CS_PLACE_EXTERNAL, location, blob->offset, true};
    } else if (g->spill && !blob->sparse && blob->length > CS_CONST_MAX) {
        uint64_t at = 0;
        const cutset_status status = move(g, blob, &at, err);
        if (status != CUTSET_OK) return status;
        *place = (cs_place){CS_PLACE_EXTERNAL, cs_span_of(g->data_name), at, false};
    } else if (external) {
        place->kind = CS_PLACE_INLINE;
    }
    return CUTSET_OK;
}

static cutset_status write_moved(const cs_moved *m, int fd, const cutset_progress *progress,
                                 cutset_error *err)
{
    if (lseek(fd, (off_t)m->at, SEEK_SET) < 0) return cs_fail_errno(err, "cannot write weights");
    cs_rope rope = {0};
    if (m->file == CS_ONNX_INLINE)
        cs_rope_slice(&rope, &m->from->file,
                      (cs_span){(const char *)m->from->file.at + m->offset, (size_t)m->length});
    else
        cs_rope_range(&rope, m->from->files.at[m->file].path, m->offset, m->length);
    const cutset_status status = cs_rope_write(&rope, fd, "weights", progress, err);
    cs_rope_fini(&rope);
    return status;
}

cutset_status cs_gather_write(const cs_gather *g, int fd, const cutset_progress *progress,
                              cutset_error *err)
{
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; i < g->moved.len && status == CUTSET_OK; i++)
        status = write_moved(&g->moved.at[i], fd, progress, err);
    return status;
}
