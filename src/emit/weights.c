/* The places of weights: see weights.h.
 *
 * ONNX lets external data lie only in or below the folder of the file that names it, and refuses
 * links. So data can be referred to from DIR only if its path from there goes down, and it is no
 * link. Tensors of at most CS_CONST_MAX bytes that are inline stay inline (shape inference of other
 * tools cannot read external bytes).
 *
 * Bytes keep their place within a page of 4096: what the source has aligned stays so, holes are
 * carried over exactly, and the kernel copies page for page (moved within their pages, 1.5 times as
 * slow as cp). Cost: linear in the number of tensors; no weight byte is read.
 */
#include "emit/weights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };
#define AUTO_INLINE_MAX ((uint64_t)1 << 30)

cutset_status cs_weights_init(cs_weights *w, const cs_onnx *onnx, cutset_weights wanted,
                              uint32_t n_parts, cutset_error *err)
{
    *w = (cs_weights){.onnx = onnx, .wanted = wanted, .n_parts = n_parts};
    w->file_used = cs_zalloc(onnx->files.len + 1, sizeof *w->file_used);
    w->inline_size = cs_zalloc((size_t)n_parts + 1, sizeof *w->inline_size);
    w->mode = cs_zalloc((size_t)n_parts + 1, sizeof *w->mode);
    w->first_use = cs_zalloc((size_t)n_parts + 1, sizeof *w->first_use);
    w->location = cs_zalloc(onnx->files.len + 1, sizeof *w->location);
    if (w->file_used && w->inline_size && w->mode && w->first_use && w->location) return CUTSET_OK;
    cs_weights_fini(w);
    return cs_fail_memory(err);
}

void cs_weights_fini(cs_weights *w)
{
    if (w->onnx == NULL) return;
    for (size_t i = 0; w->location != NULL && i < w->onnx->files.len; i++)
        cs_free(w->location[i]);
    cs_free(w->location);
    cs_free(w->model_location);
    cs_free(w->file_used);
    cs_free(w->inline_size);
    cs_free(w->mode);
    cs_free(w->first_use);
    cs_vec_fini(&w->data);
    cs_vec_fini(&w->uses);
    cs_map_fini(&w->data_of);
    *w = (cs_weights){0};
}

/* ---- survey ---- */

static bool same_data(const cs_data *d, const cs_blob *b)
{
    return d->file == b->file && d->offset == b->offset && d->length == b->length;
}

/* Index of the data, or CS_NONE; *key is where it stands, or would. */
static uint32_t find_data(const cs_weights *w, const cs_blob *b, uint64_t *key)
{
    const uint64_t fields[] = {b->file, b->offset, b->length};
    for (*key = cs_hash(fields, sizeof fields);; ++*key) {
        const uint32_t i = cs_map_get(&w->data_of, *key);
        if (i == CS_NONE || same_data(&w->data.at[i], b)) return i;
    }
}

static bool is_small(const cs_blob *b)
{
    return b->file == CS_ONNX_INLINE && (b->sparse || b->length <= CS_CONST_MAX);
}

cutset_status cs_weights_survey(void *weights, const cs_blob *blob, cs_place *place,
                                cutset_error *err)
{
    cs_weights *w = weights;
    if (is_small(blob)) return CUTSET_OK;
    if (blob->file == CS_ONNX_INLINE) {
        w->model_used = true;
    } else {
        w->file_used[blob->file] = true;
        place->kind = CS_PLACE_INLINE;
    }
    uint64_t key;
    uint32_t i = find_data(w, blob, &key);
    if (i == CS_NONE) {
        i = (uint32_t)w->data.len;
        const cs_data data = {
            .offset = blob->offset, .length = blob->length, .file = blob->file, .part = CS_NONE};
        if (!cs_vec_push(&w->data, data) || !cs_map_put(&w->data_of, key, i))
            return cs_fail_memory(err);
    }
    return cs_vec_push(&w->uses, ((cs_use){w->part, i})) ? CUTSET_OK : cs_fail_memory(err);
}

/* ---- settling ---- */

static bool goes_up(const char *path)
{
    return path[0] == '/' ||
           (path[0] == '.' && path[1] == '.' && (path[2] == '/' || path[2] == '\0'));
}

/* One file that parts would name. *why: NULL, or what forbids it. */
static cutset_status look_at(const char *dir, const char *path, bool link, char **location,
                             const char **why, cutset_error *err)
{
    *why = NULL;
    struct stat st;
    if (link || (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))) {
        *why = "is a symbolic link";
        return CUTSET_OK;
    }
    const cutset_status status = cs_path_relative(location, dir, path, err);
    if (status != CUTSET_OK) return status;
    if (goes_up(*location))
        *why = "does not lie in it or below it";
    else if (!cs_utf8_valid(cs_span_of(*location)))
        *why = "has a name that is not UTF-8";
    return CUTSET_OK;
}

/* Finds the locations of all data in use. *bad: a file that cannot be referred to, and *why. */
static cutset_status find_locations(cs_weights *w, const char *dir, const char **bad,
                                    const char **why, cutset_error *err)
{
    const cs_onnx *onnx = w->onnx;
    cutset_status status = CUTSET_OK;
    *why = NULL;
    if (w->model_used) {
        *bad = onnx->path;
        if (onnx->path == NULL || onnx->file.fd < 0) {
            *bad = "the model";
            *why = "is not a file";
            return CUTSET_OK;
        }
        status = look_at(dir, onnx->path, false, &w->model_location, why, err);
        struct stat st;
        if (status == CUTSET_OK && *why == NULL && fstat(onnx->file.fd, &st) == 0 &&
            st.st_nlink > 1)
            *why = "has more than one hard link, which onnx.checker refuses";
    }
    for (size_t i = 0; i < onnx->files.len && status == CUTSET_OK && *why == NULL; i++) {
        if (!w->file_used[i]) continue;
        const cs_data_file *f = &onnx->files.at[i];
        *bad = f->path;
        status = look_at(dir, f->path, f->link, &w->location[i], why, err);
    }
    return status;
}

/* Gives each piece of data that copied parts use its file and offset, in the order of first use. */
static cutset_status lay_out(cs_weights *w, cutset_error *err)
{
    uint64_t *end = cs_zalloc((size_t)w->n_parts + 1, sizeof *end); /* the last: shared.bin */
    if (end == NULL) return cs_fail_memory(err);
    for (size_t i = 0, part = 0; part <= w->n_parts; part++) {
        while (i < w->uses.len && w->uses.at[i].part < part)
            i++;
        w->first_use[part] = i;
    }
    for (size_t i = 0; i < w->uses.len; i++) {
        const cs_use *u = &w->uses.at[i];
        cs_data *d = &w->data.at[u->data];
        if (!cs_weights_copies(w, u->part)) continue;
        if (d->part == CS_NONE) d->part = u->part;
        d->shared = d->shared || d->part != u->part;
    }
    bool ok = true;
    for (size_t i = 0; i < w->data.len && ok; i++) {
        cs_data *d = &w->data.at[i];
        if (d->part == CS_NONE) continue;
        uint64_t *e = &end[d->shared ? w->n_parts : d->part];
        d->at = *e + (d->offset - *e) % PAGE;
        ok = d->at <= INT64_MAX - PAGE && d->length <= INT64_MAX - PAGE - d->at;
        *e = d->at + d->length;
    }
    cs_free(end);
    return ok ? CUTSET_OK : cs_fail(err, CUTSET_BAD, "weights are larger than any file");
}

static cutset_status settle_inline(cs_weights *w, cutset_error *err)
{
    for (uint32_t i = 0; i < w->n_parts; i++) {
        w->mode[i] = CUTSET_WEIGHTS_INLINE;
        if (w->inline_size[i] >= CS_PROTO_MAX)
            return cs_fail(err, CUTSET_NO,
                           "part %u has %" PRIu64 " bytes with its weights inside, a model file "
                           "must be smaller than %" PRIu64 ": use --weights=copy",
                           i, w->inline_size[i], CS_PROTO_MAX);
    }
    return CUTSET_OK;
}

static void settle_all(cs_weights *w, cutset_weights mode)
{
    for (uint32_t i = 0; i < w->n_parts; i++)
        w->mode[i] = mode;
}

cutset_status cs_weights_settle(cs_weights *w, const char *dir, cutset_error *err)
{
    const char *bad = NULL, *why = NULL;
    if (w->wanted == CUTSET_WEIGHTS_INLINE) return settle_inline(w, err);
    if (w->wanted != CUTSET_WEIGHTS_COPY) {
        const cutset_status status = find_locations(w, dir, &bad, &why, err);
        if (status != CUTSET_OK) return status;
    }
    if (w->wanted == CUTSET_WEIGHTS_REFER && why != NULL)
        return cs_fail(err, CUTSET_USAGE,
                       "--weights=refer cannot be with -o %s: %s %s; use --weights=copy, or -o a "
                       "folder that holds the data",
                       dir, bad, why);
    if (w->wanted != CUTSET_WEIGHTS_COPY && why == NULL) {
        settle_all(w, CUTSET_WEIGHTS_REFER);
        return CUTSET_OK;
    }
    settle_all(w, CUTSET_WEIGHTS_COPY);
    for (uint32_t i = 0; w->wanted == CUTSET_WEIGHTS_AUTO && i < w->n_parts; i++)
        if (w->inline_size[i] <= AUTO_INLINE_MAX) w->mode[i] = CUTSET_WEIGHTS_INLINE;
    return lay_out(w, err);
}

bool cs_weights_refers(const cs_weights *w)
{
    const bool refer = w->n_parts > 0 && w->mode[0] == CUTSET_WEIGHTS_REFER;
    return refer && w->uses.len > 0;
}

/* ---- places ---- */

static cs_place refer_to(const cs_weights *w, const cs_blob *b)
{
    const bool in_model = b->file == CS_ONNX_INLINE;
    const cs_span location = cs_span_of(in_model ? w->model_location : w->location[b->file]);
    if (!in_model && cs_span_eq(location, b->location)) return (cs_place){CS_PLACE_KEEP};
    return (cs_place){CS_PLACE_EXTERNAL, location, b->offset, !in_model};
}

cutset_status cs_weights_place(void *weights, const cs_blob *blob, cs_place *place,
                               cutset_error *err)
{
    cs_weights *w = weights;
    if (is_small(blob)) return CUTSET_OK;
    if (w->mode[w->part] == CUTSET_WEIGHTS_INLINE) {
        if (blob->file != CS_ONNX_INLINE) place->kind = CS_PLACE_INLINE;
        return CUTSET_OK;
    }
    if (w->mode[w->part] == CUTSET_WEIGHTS_REFER) {
        *place = refer_to(w, blob);
        return CUTSET_OK;
    }
    uint64_t key;
    const uint32_t i = find_data(w, blob, &key);
    if (i == CS_NONE)
        return cs_fail(err, CUTSET_BAD, "tensor %.*s changed while it was read",
                       CS_FMT(blob->name));
    const cs_data *d = &w->data.at[i];
    snprintf(w->own_file, sizeof w->own_file, "weights/part-%03u.bin", w->part);
    *place = (cs_place){CS_PLACE_EXTERNAL,
                        cs_span_of(d->shared ? "weights/shared.bin" : w->own_file), d->at, false};
    return CUTSET_OK;
}

/* ---- weight files ---- */

typedef struct cs_range {
    size_t from, to;
} cs_range;

/* From the map where the model has no descriptor (memory, standard input). */
static cutset_status write_data(const cs_weights *w, const cs_data *d, int fd,
                                const cutset_progress *progress, cutset_error *err)
{
    if (lseek(fd, (off_t)d->at, SEEK_SET) < 0)
        return cs_fail_errno(err, "cannot write a weight file");
    if (d->file != CS_ONNX_INLINE)
        return cs_copy_path(fd, w->onnx->files.at[d->file].path, d->offset, d->length, progress,
                            err);
    cs_rope rope = {0};
    cs_rope_slice(&rope, &w->onnx->file,
                  (cs_span){(const char *)w->onnx->file.at + d->offset, (size_t)d->length});
    const cutset_status status = cs_rope_write(&rope, fd, "weights", progress, err);
    cs_rope_fini(&rope);
    return status;
}

/* The uses of a part, or (CS_NONE) of all. */
static cs_range uses_of(const cs_weights *w, uint32_t part)
{
    if (part == CS_NONE) return (cs_range){0, w->uses.len};
    return (cs_range){w->first_use[part], w->first_use[part + 1]};
}

static bool belongs(const cs_data *d, uint32_t part)
{
    return part == CS_NONE ? d->shared : !d->shared && d->part == part;
}

bool cs_weights_has_file(const cs_weights *w, uint32_t part)
{
    const cs_range r = uses_of(w, part);
    for (size_t i = r.from; i < r.to; i++)
        if (belongs(&w->data.at[w->uses.at[i].data], part)) return true;
    return false;
}

cutset_status cs_weights_write(const cs_weights *w, uint32_t part, int fd,
                               const cutset_progress *progress, cutset_error *err)
{
    const cs_range r = uses_of(w, part);
    cutset_status status = CUTSET_OK;
    uint64_t next = 0; /* data is laid out in the order of first use: what is before was written */
    for (size_t i = r.from; i < r.to && status == CUTSET_OK; i++) {
        const cs_data *d = &w->data.at[w->uses.at[i].data];
        if (!belongs(d, part) || d->at < next) continue;
        status = write_data(w, d, fd, progress, err);
        next = d->at + d->length;
    }
    return status;
}
