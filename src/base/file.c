/* Files in as read-only maps; a file out that appears whole or not at all.
 *
 * Only regular files are mapped: a pipe or a device named by a hostile model must neither block the
 * process nor fill its memory, so they are opened without waiting and refused.
 *
 * A whole file is written under another name in the same folder (rename works only within a file
 * system) and renamed at the end. A kill leaves at most a file named .cutset-PID-N.tmp. Where the
 * path is a symbolic link, the file it points to is replaced, not the link; where it is a device or
 * a pipe (/dev/stdout, /dev/null), there is nothing to replace and the bytes go straight there.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in ---- */

cutset_status cs_file_stdin(cs_file *out, const cutset_progress *progress, cutset_error *err)
{
    CS_VEC(unsigned char) bytes = {0};
    *out = (cs_file){.fd = -1};
    for (;;) {
        const cutset_status asked =
            cs_progress(progress, "reading standard input", bytes.len, 0, err);
        if (asked != CUTSET_OK) {
            cs_vec_fini(&bytes);
            return asked;
        }
        if (!cs_vec_room(&bytes, 1 << 16)) {
            cs_vec_fini(&bytes);
            return cs_fail_memory(err);
        }
        const ssize_t n = read(STDIN_FILENO, bytes.at + bytes.len, bytes.cap - bytes.len);
        if (n == 0) break;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            const cutset_status status = cs_fail_errno(err, "cannot read standard input");
            cs_vec_fini(&bytes);
            return status;
        }
        bytes.len += (size_t)n;
    }
    unsigned char *fit = cs_realloc(bytes.at, bytes.len, 1);
    *out = (cs_file){.at = fit != NULL ? fit : bytes.at, .len = bytes.len, .fd = -1, .owned = true};
    return CUTSET_OK;
}

static cutset_status map_regular(cs_file *out, int fd, const char *path, cutset_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return cs_fail_errno(err, "cannot read %s", path);
    if (S_ISDIR(st.st_mode))
        return cs_fail(err, CUTSET_SYSTEM, "%s is a folder: name a file", path);
    if (!S_ISREG(st.st_mode))
        return cs_fail(err, CUTSET_SYSTEM,
                       "%s is no regular file: name one, or - for standard input", path);
    cs_file file = {.at = (const unsigned char *)"",
                    .len = (size_t)st.st_size,
                    .fd = fd,
                    .owned = true,
                    .dev = (uint64_t)st.st_dev,
                    .ino = (uint64_t)st.st_ino};
    if (file.len > 0) {
        void *at = mmap(NULL, file.len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED) return cs_fail_errno(err, "cannot map %s", path);
        file.at = at;
        file.mapped = true;
    }
    *out = file;
    return CUTSET_OK;
}

cutset_status cs_file_open(cs_file *out, const char *path, cutset_error *err)
{
    *out = (cs_file){.fd = -1};
    if (strcmp(path, "-") == 0) return cs_file_stdin(out, NULL, err);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return cs_fail_errno(err, "cannot open %s", path);
    const cutset_status status = map_regular(out, fd, path, err);
    if (status != CUTSET_OK) close(fd);
    return status;
}

void cs_file_borrow(cs_file *out, const void *bytes, size_t len)
{
    *out = (cs_file){.at = bytes, .len = len, .fd = -1};
}

void cs_file_rest(const cs_file *file)
{
    /* Only advice, and only for a map: other memory would come back as zeros. */
    if (file->mapped) madvise((void *)(uintptr_t)file->at, file->len, MADV_DONTNEED);
}

void cs_file_close(cs_file *file)
{
    if (file->owned) {
        if (file->mapped)
            munmap((void *)(uintptr_t)file->at, file->len);
        else if (file->fd < 0)
            cs_free((void *)(uintptr_t)file->at); /* standard input */
        if (file->fd >= 0) close(file->fd);
    }
    *file = (cs_file){.fd = -1};
}

/* ---- out ---- */

static char *copy_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = cs_alloc(size, 1);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

/* Frees what a whole file holds; the file aside goes too unless it was renamed. */
static void discard(cs_whole *w, bool renamed)
{
    if (w->fd >= 0) close(w->fd);
    if (w->aside != NULL && !renamed) unlink(w->aside);
    cs_free(w->aside);
    cs_free(w->path);
    *w = (cs_whole){.fd = -1};
}

static cutset_status cannot_write(const char *path, cutset_error *err)
{
    if (errno != ENOENT) return cs_fail_errno(err, "cannot write %s", path);
    cs_fail(err, CUTSET_SYSTEM, "cannot write %s: its folder does not exist, make it first", path);
    if (err != NULL) err->system = ENOENT;
    return CUTSET_SYSTEM;
}

/* A new file next to w->path. O_EXCL makes the name ours; a name that is taken belongs to another
 * thread, or was left by a process that was killed. */
static cutset_status open_aside(cs_whole *w, cutset_error *err)
{
    const char *slash = strrchr(w->path, '/');
    const int dir = slash == NULL ? 0 : (int)(slash - w->path) + 1;
    const size_t room = (size_t)dir + 64;
    char *aside = cs_alloc(room, 1);
    if (aside == NULL) return cs_fail_memory(err);
    for (unsigned n = 0; w->fd < 0; n++) {
        snprintf(aside, room, "%.*s.cutset-%ld-%u.tmp", dir, w->path, (long)getpid(), n);
        w->fd = open(aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd < 0 && errno != EINTR && (errno != EEXIST || n >= 100000)) {
            cs_free(aside);
            return cannot_write(w->path, err);
        }
    }
    w->aside = aside;
    return CUTSET_OK;
}

/* Decides between aside and straight; w->path is set, and replaced where it is a link. */
static cutset_status open_path(cs_whole *w, cutset_error *err)
{
    struct stat st;
    if (stat(w->path, &st) != 0) return open_aside(w, err); /* new, or a link to nowhere */
    if (S_ISDIR(st.st_mode))
        return cs_fail(err, CUTSET_SYSTEM, "%s is a folder: name a file", w->path);
    if (!S_ISREG(st.st_mode)) {
        w->fd = open(w->path, O_WRONLY | O_CLOEXEC);
        return w->fd < 0 ? cs_fail_errno(err, "cannot write %s", w->path) : CUTSET_OK;
    }
    char real[PATH_MAX]; /* given a buffer, realpath does not allocate */
    if (lstat(w->path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(w->path, real) != NULL) {
        char *path = copy_text(real);
        if (path == NULL) return cs_fail_memory(err);
        cs_free(w->path);
        w->path = path;
    }
    return open_aside(w, err);
}

cutset_status cs_whole_open(cs_whole *w, const char *path, cutset_error *err)
{
    *w = (cs_whole){.fd = -1};
    w->path = copy_text(path);
    if (w->path == NULL) return cs_fail_memory(err);
    const cutset_status status = open_path(w, err);
    if (status != CUTSET_OK) discard(w, false);
    return status;
}

cutset_status cs_whole_keep(cs_whole *w, cutset_error *err)
{
    const int closed = close(w->fd); /* a network file system tells a full disk only here */
    w->fd = -1;
    bool ok = closed == 0 || errno == EINTR; /* after EINTR the descriptor is closed all the same */
    if (ok && w->aside != NULL) ok = rename(w->aside, w->path) == 0;
    const cutset_status status = ok ? CUTSET_OK : cs_fail_errno(err, "cannot write %s", w->path);
    discard(w, ok);
    return status;
}

void cs_whole_drop(cs_whole *w)
{
    if (w->path != NULL) discard(w, false); /* NULL: zeroed, or kept already */
}
