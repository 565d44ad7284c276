/* Paths as text, relative paths through what the file system says, and removing our own folders.
 *
 * "../" goes up from where a folder really is, not from where its name says, so a relative path is
 * computed between real paths. The last component of the target stays as it was named: a model that
 * is a symbolic link into a cache is still found by its link.
 */
#include "base/file.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *heap_text(const char *text, size_t len)
{
    char *copy = cs_alloc(len + 1, 1);
    if (copy == NULL) return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *cs_path_join(const char *dir, const char *name)
{
    const size_t d = strlen(dir), n = strlen(name);
    if (d == 0 || strcmp(dir, ".") == 0 || name[0] == '/') return heap_text(name, n);
    const bool slash = dir[d - 1] != '/';
    char *path = cs_alloc(d + slash + n + 1, 1);
    if (path == NULL) return NULL;
    memcpy(path, dir, d);
    if (slash) path[d] = '/';
    memcpy(path + d + slash, name, n + 1);
    return path;
}

/* Splits like dirname and basename: *dir bytes of folder (0 = none), and the last component. */
static cs_span split(const char *path, size_t *dir)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    *dir = start;
    while (*dir > 1 && path[*dir - 1] == '/')
        --*dir;
    return (cs_span){path + start, end - start};
}

char *cs_path_dir(const char *path)
{
    size_t dir;
    split(path, &dir);
    return dir == 0 ? heap_text(".", 1) : heap_text(path, dir);
}

/* The real path of the folder of `path`, with the last component as it is named. */
static bool real_parent(const char *path, char real[PATH_MAX])
{
    size_t dir;
    const cs_span name = split(path, &dir);
    if (name.len == 0 || cs_span_is(name, ".") || cs_span_is(name, ".."))
        return realpath(path, real) != NULL;
    char parent[PATH_MAX];
    if (dir >= sizeof parent) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(parent, path, dir);
    parent[dir] = '\0';
    if (realpath(dir == 0 ? "." : parent, real) == NULL) return false;
    size_t len = strlen(real);
    if (len + 1 + name.len >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (len > 1) real[len++] = '/';
    memcpy(real + len, name.at, name.len);
    real[len + name.len] = '\0';
    return true;
}

/* The length of the whole components that two absolute paths share: "/" counts, so at least 1. */
static size_t shared(const char *a, const char *b)
{
    size_t last = 1, i = 0;
    for (; a[i] != '\0' && a[i] == b[i]; i++)
        if (a[i] == '/') last = i + 1;
    const bool a_ends = a[i] == '\0' || a[i] == '/', b_ends = b[i] == '\0' || b[i] == '/';
    return a_ends && b_ends ? i : last;
}

/* `to` as seen from `from`, both real. NULL: no memory. */
static char *relative(const char *from, const char *to)
{
    const size_t same = shared(from, to);
    const char *down = to + same;
    while (*down == '/')
        down++;
    const char *rest = from + same;
    while (*rest == '/')
        rest++;
    size_t up = *rest == '\0' ? 0 : 1;
    for (; *rest != '\0'; rest++)
        up += *rest == '/';

    const size_t len = strlen(down);
    char *out = cs_alloc(3 * up + len + 2, 1);
    if (out == NULL) return NULL;
    size_t used = 0;
    for (; up > 0; up--, used += 3)
        memcpy(out + used, "../", 3);
    memcpy(out + used, down, len + 1);
    used += len;
    if (len == 0 && used > 0) out[used - 1] = '\0'; /* "../" is ".." */
    if (used == 0) memcpy(out, ".", 2);
    return out;
}

cutset_status cs_path_relative(char **out, const char *dir, const char *path, cutset_error *err)
{
    char from[PATH_MAX], to[PATH_MAX];
    if (realpath(dir, from) == NULL && (errno != ENOENT || !real_parent(dir, from)))
        return cs_fail_errno(err, "cannot find %s", dir);
    if (!real_parent(path, to)) return cs_fail_errno(err, "cannot find %s", path);
    char *text = relative(from, to);
    if (text == NULL) return cs_fail_memory(err);
    *out = text;
    return CUTSET_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)where;
    const bool folder = kind == FTW_DP || kind == FTW_D || kind == FTW_DNR;
    if ((folder ? rmdir(path) : unlink(path)) == 0 || errno == ENOENT) return 0;
    return errno;
}

cutset_status cs_dir_remove_tree(const char *path, cutset_error *err)
{
    const int flags = FTW_DEPTH | FTW_PHYS | FTW_MOUNT; /* never through a link or a mount */
    const int failed = nftw(path, remove_one, 16, flags);
    if (failed == 0 || (failed < 0 && errno == ENOENT)) return CUTSET_OK;
    if (failed > 0) errno = failed;
    return cs_fail_errno(err, "cannot remove %s", path);
}
