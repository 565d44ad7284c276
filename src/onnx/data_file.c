/* External data: where a tensor's bytes are in which file beside the model.
 *
 * ONNX confines data files to the model's folder. So a location must be relative and stay inside
 * when its "." and ".." are worked out; and every component below the folder is looked at before it
 * is entered: one that is a symbolic link may lead anywhere, and is refused unless the caller
 * follows links. What is opened must be a regular file. Hard links cannot lead out of sight of
 * their owner and are taken.
 *
 * Each file is opened and measured once; one descriptor is kept, because small tensors usually
 * come from the same file in a row. A model may name thousands of files.
 */
#include "onnx/read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct entries {
    cs_span location, offset, length;
} entries;

/* Says once a key that the standard does not know. */
static cutset_status note_key(cs_reader *r, cs_span key)
{
    const bool known = cs_span_is(key, "checksum") || cs_span_is(key, "basepath") ||
                       (key.len >= 9 && memcmp(key.at, "prepacked", 9) == 0);
    if (known || r->odd_keys.len == 16) return CUTSET_OK;
    const cs_str id = cs_onnx_intern(r, key);
    if (id == CS_NONE) return cs_fail_memory(r->err);
    for (size_t i = 0; i < r->odd_keys.len; i++)
        if (r->odd_keys.at[i] == id) return CUTSET_OK;
    if (!cs_vec_push(&r->odd_keys, id) ||
        !cs_note(r->pool, "external data: unknown key '%.*s' ignored", CS_FMT(key)))
        return cs_fail_memory(r->err);
    return CUTSET_OK;
}

static cutset_status read_entry(cs_reader *r, cs_span proto, entries *e)
{
    cs_span key = {"", 0}, value = {"", 0};
    cs_wire w = cs_onnx_wire(r, proto);
    while (cs_wire_next(&w)) {
        if (w.field == 1 && cs_wire_expect(&w, CS_WIRE_BYTES))
            key = w.bytes;
        else if (w.field == 2 && cs_wire_expect(&w, CS_WIRE_BYTES))
            value = w.bytes;
    }
    if (w.bad) return cs_wire_error(&w, "StringStringEntryProto", r->err);
    if (cs_span_is(key, "location"))
        e->location = value;
    else if (cs_span_is(key, "offset"))
        e->offset = value;
    else if (cs_span_is(key, "length"))
        e->length = value;
    else
        return note_key(r, key);
    return CUTSET_OK;
}

static cutset_status read_entries(cs_reader *r, cs_span proto, entries *e)
{
    cs_wire w = cs_onnx_wire(r, proto); /* sound: it was walked before */
    while (cs_wire_next(&w))
        if (w.field == 13 && cs_wire_expect(&w, CS_WIRE_BYTES)) CS_TRY(read_entry(r, w.bytes, e));
    return w.bad ? cs_wire_error(&w, "TensorProto", r->err) : CUTSET_OK;
}

/* ---- the location, as text ---- */

const char *cs_onnx_normalise(cs_span location, char out[CS_ONNX_PATH])
{
    size_t used = 0, i = 0;
    if (location.len == 0) return "it names no location: name the file";
    if (location.at[0] == '/') return "the path is absolute: name it from the model's folder";
    if (memchr(location.at, '\0', location.len) != NULL)
        return "the path holds a zero byte: rename the file";
    if (location.len >= CS_ONNX_PATH) return "the path is too long: give the file a shorter one";
    while (i < location.len) {
        size_t end = i;
        while (end < location.len && location.at[end] != '/')
            end++;
        const cs_span part = {location.at + i, end - i};
        i = end + 1;
        if (part.len == 0 || cs_span_is(part, ".")) continue;
        if (cs_span_is(part, "..")) {
            if (used == 0) return "the path leaves the model's folder: move the file below it";
            while (used > 0 && out[used - 1] != '/')
                used--;
            if (used > 0) used--;
            continue;
        }
        if (used > 0) out[used++] = '/';
        memcpy(out + used, part.at, part.len);
        used += part.len;
    }
    out[used] = '\0';
    return used == 0 ? "the path is a folder: name the file in it" : NULL;
}

/* ---- opening ---- */

/* What every message about a data file begins with. */
typedef struct wanted {
    cs_span proto, label;
    const char *path; /* normalised */
} wanted;

static cutset_status fail_file(const cs_reader *r, const wanted *f, const char *why)
{
    return cs_onnx_bad(r, f->proto, "tensor '%.*s': data file '%s': %s", CS_FMT(f->label), f->path,
                       why);
}

static cutset_status fail_open(const cs_reader *r, const wanted *f)
{
    if (errno == ENOENT || errno == ENOTDIR)
        return fail_file(r, f, "it is not there: put it beside the model");
    return cs_fail_errno(r->err, "tensor '%.*s': cannot open data file '%s'", CS_FMT(f->label),
                         f->path);
}

/* Looks at one component, and enters or opens it. *fd is replaced. */
static cutset_status step_into(const cs_reader *r, const wanted *f, const char *part, bool last,
                               int *fd, bool *link)
{
    struct stat st;
    if (fstatat(*fd, part, &st, AT_SYMLINK_NOFOLLOW) != 0) return fail_open(r, f);
    const bool follow = r->opts != NULL && r->opts->follow_links;
    if (S_ISLNK(st.st_mode)) {
        *link = true;
        if (!follow)
            return fail_file(r, f, "a symbolic link on its path: give --follow-links to take it");
        if (fstatat(*fd, part, &st, 0) != 0) return fail_open(r, f);
    }
    if (last && !S_ISREG(st.st_mode))
        return fail_file(r, f, "it is not a regular file: put the data itself there");
    const int flags = (last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY) | O_CLOEXEC |
                      (follow ? 0 : O_NOFOLLOW);
    const int next = openat(*fd, part, flags);
    if (next < 0) return fail_open(r, f);
    close(*fd);
    *fd = next;
    return CUTSET_OK;
}

static cutset_status walk_path(const cs_reader *r, const wanted *f, int *fd, bool *link)
{
    char parts[CS_ONNX_PATH];
    memcpy(parts, f->path, strlen(f->path) + 1);
    for (char *part = parts; part != NULL;) {
        char *slash = strchr(part, '/');
        if (slash != NULL) *slash = '\0';
        CS_TRY(step_into(r, f, part, slash == NULL, fd, link));
        part = slash == NULL ? NULL : slash + 1;
    }
    return CUTSET_OK;
}

/* Opens the file, below the model's folder and nowhere else. */
static cutset_status open_data(cs_reader *r, const wanted *f, int *out, bool *link)
{
    const char *folder = r->onnx->folder;
    if (r->folder_fd < 0) {
        r->folder_fd = open(folder[0] == '\0' ? "." : folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (r->folder_fd < 0) return cs_fail_errno(r->err, "cannot open folder '%s'", folder);
    }
    int fd = fcntl(r->folder_fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return cs_fail_errno(r->err, "cannot open folder '%s'", folder);
    const cutset_status status = walk_path(r, f, &fd, link);
    if (status != CUTSET_OK) {
        close(fd);
        return status;
    }
    *out = fd;
    return CUTSET_OK;
}

static void hold(cs_reader *r, int fd, uint32_t file)
{
    if (r->data_fd >= 0) close(r->data_fd);
    r->data_fd = fd;
    r->data_file = file;
}

static cutset_status add_file(cs_reader *r, const wanted *f, cs_span location, cs_str path,
                              uint32_t *file)
{
    bool link = false;
    int fd;
    struct stat st;
    CS_TRY(open_data(r, f, &fd, &link));
    hold(r, fd, (uint32_t)r->onnx->files.len);
    if (fstat(fd, &st) != 0) return cs_fail_errno(r->err, "cannot look at '%s'", f->path);
    if (!S_ISREG(st.st_mode))
        return fail_file(r, f, "it is not a regular file: put the data itself there");
    const cs_data_file entry = {.location = cs_onnx_intern(r, location),
                                .path = cs_path_join(r->onnx->folder, f->path),
                                .size = (uint64_t)st.st_size,
                                .link = link};
    if (entry.path == NULL || entry.location == CS_NONE || !cs_vec_push(&r->onnx->files, entry)) {
        cs_free(entry.path);
        return cs_fail_memory(r->err);
    }
    *file = (uint32_t)r->onnx->files.len - 1;
    if (!cs_map_put(&r->file_ids, path, *file)) return cs_fail_memory(r->err);
    if (st.st_nlink > 1 && !r->links_noted) {
        r->links_noted = true;
        if (!cs_note(r->pool, "data file '%s' has several hard links; onnx.checker refuses that",
                     f->path))
            return cs_fail_memory(r->err);
    }
    return CUTSET_OK;
}

static cutset_status find_file(cs_reader *r, const wanted *f, cs_span location, uint32_t *file)
{
    const cs_str path = cs_strtab_add(&r->pool->names, cs_span_of(f->path), false);
    if (path == CS_NONE) return cs_fail_memory(r->err);
    *file = cs_map_get(&r->file_ids, path);
    if (*file != CS_NONE) return CUTSET_OK;
    return add_file(r, f, location, path, file);
}

/* ---- the bytes ---- */

/* Reads a small tensor into the pool. */
static cutset_status read_small(cs_reader *r, const wanted *f, cs_tensor *t)
{
    unsigned char *to = cs_arena_alloc(&r->pool->arena, (size_t)t->bytes + 1, 1);
    if (to == NULL) return cs_fail_memory(r->err);
    if (r->data_fd < 0 || r->data_file != t->file) {
        bool link = false;
        int fd;
        CS_TRY(open_data(r, f, &fd, &link));
        hold(r, fd, t->file);
    }
    for (size_t done = 0; done < (size_t)t->bytes;) {
        const ssize_t n =
            pread(r->data_fd, to + done, (size_t)t->bytes - done, (off_t)(t->offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cs_fail_errno(r->err, "cannot read data file '%s'", f->path);
        if (n == 0)
            return fail_file(r, f,
                             "it became shorter while it was read: try again when it is whole");
        done += (size_t)n;
    }
    t->data = to;
    return CUTSET_OK;
}

static cutset_status number(const cs_reader *r, const wanted *f, const char *key, cs_span text,
                            int64_t *out)
{
    if (cs_parse_i64(text, out) && *out >= 0) return CUTSET_OK;
    return cs_onnx_bad(
        r, f->proto,
        "tensor '%.*s': data file '%s': %s '%.*s' is not a size: give a whole number "
        "of bytes",
        CS_FMT(f->label), f->path, key, CS_FMT(text));
}

/* Offset and length against the tensor and the file. */
static cutset_status place(cs_reader *r, const wanted *f, const entries *e, cs_tensor *t)
{
    int64_t offset = 0, length = t->bytes, end;
    if (e->offset.len > 0) CS_TRY(number(r, f, "offset", e->offset, &offset));
    if (e->length.len > 0) CS_TRY(number(r, f, "length", e->length, &length));
    if (length != t->bytes)
        return cs_onnx_bad(r, f->proto,
                           "tensor '%.*s': data file '%s': length %" PRId64
                           ", but its dims and type need %" PRId64 " bytes: correct one of them",
                           CS_FMT(f->label), f->path, length, t->bytes);
    const uint64_t size = r->onnx->files.at[t->file].size;
    if (__builtin_add_overflow(offset, length, &end) || (uint64_t)end > size)
        return cs_onnx_bad(r, f->proto,
                           "tensor '%.*s': data file '%s': offset %" PRId64 " and length %" PRId64
                           " run past its end at %" PRIu64 " (download incomplete?): get it again",
                           CS_FMT(f->label), f->path, offset, length, size);
    t->offset = (uint64_t)offset;
    t->length = (uint64_t)length;
    t->raw = true;
    return CUTSET_OK;
}

/* A location with this mark is a pointer of the process that wrote the file. */
static bool is_address(cs_span location)
{
    return memmem(location.at, location.len, "_ORT_MEM_ADDR_", 14) != NULL;
}

cutset_status cs_onnx_read_external(cs_reader *r, cs_span proto, cs_span label, cs_tensor *t)
{
    entries e = {.location = {"", 0}};
    char path[CS_ONNX_PATH];
    CS_TRY(read_entries(r, proto, &e));
    const char *wrong = is_address(e.location)
                            ? "a memory address was saved instead of data: export the model again"
                            : cs_onnx_normalise(e.location, path);
    if (wrong == NULL && r->onnx->folder == NULL)
        wrong = "a model in memory does not say where they are: open the model by its path";
    if (wrong != NULL)
        return cs_onnx_bad(r, proto, "tensor '%.*s': data file '%.*s': %s", CS_FMT(label),
                           CS_FMT(e.location), wrong);
    const wanted f = {proto, label, path};
    CS_TRY(find_file(r, &f, e.location, &t->file));
    CS_TRY(place(r, &f, &e, t));
    return t->bytes <= CS_CONST_MAX ? read_small(r, &f, t) : CUTSET_OK;
}

bool cs_onnx_reads(const cs_onnx *onnx, uint64_t dev, uint64_t ino)
{
    if (onnx->file.dev == dev && onnx->file.ino == ino) return true;
    for (size_t i = 0; i < onnx->files.len; i++) {
        struct stat st;
        if (stat(onnx->files.at[i].path, &st) == 0 && (uint64_t)st.st_dev == dev &&
            (uint64_t)st.st_ino == ino)
            return true;
    }
    return false;
}
