/* A split directory appears whole or not at all.
 *
 *     NEW             written beside it as DIR.cutset-PID-N.tmp, renamed
 *     EMPTY, SPLIT    the same, and exchanged with what is there, which is then removed
 *     in place        written into DIR/.cutset-PID-N.tmp; then plan.json is removed, files are
 *                     renamed into DIR, stale ones that the earlier plan lists are deleted, and
 *                     plan.json is moved last: it is what makes a split complete
 *
 * In place is for parts that refer to data in the folder (OTHER), and for folders that cannot be
 * exchanged: the current folder (the user's shell stands in it), a mount point, a parent that may
 * not be written. Files that no earlier plan lists are never touched, nor is the source model.
 * Names in an earlier plan.json are not trusted: only plain names count.
 */
#include "emit/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAN "plan.json"

/* ---- names and paths ---- */

static char *heap_text(const char *text, size_t len)
{
    char *copy = cs_alloc(len + 1, 1);
    if (copy == NULL) return NULL;
    if (len > 0) memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

bool cs_folder_may_be_part(cs_span name)
{
    if (name.len == 0 || name.len > 200 || name.at[0] == '.') return false;
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] == '/' || name.at[i] == '\0') return false;
    return !cs_span_is(name, PLAN) && !cs_span_is(name, "weights") && !cs_span_is(name, "build");
}

/* Into `out` (PATH_MAX): dir/name. */
static bool join(char *out, const char *dir, cs_span name)
{
    const int n = snprintf(out, PATH_MAX, "%s/%.*s", dir, (int)name.len, name.at);
    if (n < PATH_MAX) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* part-000.bin, shared.bin: what copied weights are called. */
static bool is_weight_file(const char *name)
{
    if (strcmp(name, "shared.bin") == 0) return true;
    const size_t digits = strlen(name) > 9 ? strspn(name + 5, "0123456789") : 0;
    return strncmp(name, "part-", 5) == 0 && digits >= 3 && strcmp(name + 5 + digits, ".bin") == 0;
}

/* ---- looking ---- */

/* Is the file at `path` (links resolved) in or below the folder `real`? */
static bool lies_below(const char *real, const char *path)
{
    char file[PATH_MAX];
    if (path == NULL || realpath(path, file) == NULL) return false;
    const size_t len = strlen(real);
    return strncmp(file, real, len) == 0 && (file[len] == '/' || (len == 1 && file[0] == '/'));
}

static bool holds_source(const cs_folder *f, const cs_onnx *source)
{
    if (source == NULL) return false;
    if (lies_below(f->dir, source->path)) return true;
    for (size_t i = 0; i < source->files.len; i++)
        if (lies_below(f->dir, source->files.at[i].path)) return true;
    return false;
}

static cutset_status read_earlier(cs_folder *f, cutset_error *err)
{
    char path[PATH_MAX];
    struct stat st;
    if (!join(path, f->dir, CS_SPAN(PLAN)) || lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return CUTSET_OK;
    cutset_plan *plan = NULL;
    const cutset_status status = cs_plan_read_json(&plan, path, err);
    if (status == CUTSET_BAD) return CUTSET_OK; /* some other plan.json */
    if (status != CUTSET_OK) return status;
    f->earlier = plan;
    for (size_t i = 0; i < plan->parts.len; i++) {
        const cs_str name = plan->parts.at[i].file;
        if (cs_folder_may_be_part(cs_strtab_get(&plan->names, name)) &&
            !cs_map_put(&f->listed, name, 1))
            return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

static bool is_listed(const cs_folder *f, cs_span name)
{
    if (f->earlier == NULL) return false;
    const cs_str s = cs_strtab_find(&f->earlier->names, name);
    return s != CS_NONE && cs_map_get(&f->listed, s) != CS_NONE;
}

static bool holds_only_weights(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL) return false;
    bool only = true;
    for (const struct dirent *e; only && (e = readdir(dir)) != NULL;)
        only = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
               is_weight_file(e->d_name);
    closedir(dir);
    return only;
}

/* Is the entry one of the earlier split's? */
static bool is_ours(const cs_folder *f, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    if (f->earlier == NULL || !join(path, f->dir, cs_span_of(name)) || lstat(path, &st) != 0)
        return false;
    if (strcmp(name, "build") == 0) return S_ISDIR(st.st_mode);
    if (strcmp(name, "weights") == 0) return S_ISDIR(st.st_mode) && holds_only_weights(path);
    return S_ISREG(st.st_mode) && (strcmp(name, PLAN) == 0 || is_listed(f, cs_span_of(name)));
}

/* Walks the entries; of those in the way the first by name is kept, for the message. */
static cutset_status walk_entries(cs_folder *f, DIR *dir, cutset_error *err)
{
    f->state = CS_FOLDER_EMPTY;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        const char *name = e->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        if (f->state == CS_FOLDER_EMPTY) f->state = CS_FOLDER_SPLIT;
        if (is_ours(f, name)) continue;
        f->state = CS_FOLDER_OTHER;
        if (f->in_the_way != NULL && strcmp(f->in_the_way, name) < 0) continue;
        cs_free(f->in_the_way);
        f->in_the_way = heap_text(name, strlen(name));
        if (f->in_the_way == NULL) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

static cutset_status look_inside(cs_folder *f, const cs_onnx *source, cutset_error *err)
{
    char real[PATH_MAX];
    if (realpath(f->asked, real) == NULL) return cs_fail_errno(err, "cannot read %s", f->asked);
    cs_free(f->dir);
    f->dir = heap_text(real, strlen(real));
    if (f->dir == NULL) return cs_fail_memory(err);
    cutset_status status = read_earlier(f, err);
    if (status != CUTSET_OK) return status;
    DIR *dir = opendir(f->dir);
    if (dir == NULL) return cs_fail_errno(err, "cannot read %s", f->asked);
    status = walk_entries(f, dir, err);
    closedir(dir);
    if (status != CUTSET_OK || f->state != CS_FOLDER_SPLIT || !holds_source(f, source))
        return status;
    f->state = CS_FOLDER_OTHER; /* the source is a part of the earlier split */
    f->in_the_way = heap_text("the model", 9);
    return f->in_the_way == NULL ? cs_fail_memory(err) : CUTSET_OK;
}

static cutset_status check_parent(const cs_folder *f, cutset_error *err)
{
    char *parent = cs_path_dir(f->dir);
    if (parent == NULL) return cs_fail_memory(err);
    struct stat st;
    cutset_status status = CUTSET_OK;
    if (stat(parent, &st) != 0)
        status = cs_fail_errno(err, "cannot make %s: its parent folder %s", f->asked, parent);
    else if (!S_ISDIR(st.st_mode))
        status =
            cs_fail(err, CUTSET_SYSTEM, "cannot make %s: %s is not a folder", f->asked, parent);
    cs_free(parent);
    return status;
}

static cutset_status look(cs_folder *f, const cs_onnx *source, cutset_error *err)
{
    struct stat st;
    if (f->asked[0] == '\0') return cs_fail(err, CUTSET_USAGE, "-o names no folder");
    if (stat(f->asked, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            return cs_fail(err, CUTSET_USAGE, "%s is a file: name a folder", f->asked);
        f->mode = st.st_mode & 07777;
        return look_inside(f, source, err);
    }
    if (lstat(f->asked, &st) == 0)
        return cs_fail(err, CUTSET_USAGE, "%s is a link to nowhere: remove it, or name another",
                       f->asked);
    if (errno != ENOENT && errno != ENOTDIR) return cs_fail_errno(err, "cannot make %s", f->asked);
    f->state = CS_FOLDER_NEW;
    return check_parent(f, err);
}

cutset_status cs_folder_look(cs_folder *f, const char *dir, const cs_onnx *source,
                             cutset_error *err)
{
    *f = (cs_folder){0};
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/')
        len--;
    f->asked = heap_text(dir, len);
    f->dir = heap_text(dir, len);
    if (source != NULL) {
        f->guard_dev = source->file.dev;
        f->guard_ino = source->file.ino;
    }
    const cutset_status status =
        f->asked == NULL || f->dir == NULL ? cs_fail_memory(err) : look(f, source, err);
    if (status != CUTSET_OK) cs_folder_fini(f);
    return status;
}

/* ---- beginning ---- */

/* Can an existing folder not be exchanged as a whole? */
static bool is_fixed(const cs_folder *f)
{
    char parent[PATH_MAX];
    struct stat here, there, up;
    if (stat(f->dir, &there) != 0 || !join(parent, f->dir, CS_SPAN("..")) || stat(parent, &up) != 0)
        return true;
    if (stat(".", &here) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino)
        return true;
    return up.st_dev != there.st_dev || up.st_ino == there.st_ino || access(parent, W_OK) != 0;
}

/* In place, `name` must be free, or a file that the earlier plan lists. */
static cutset_status check_name(const cs_folder *f, cs_span name, bool known, cutset_error *err)
{
    char path[PATH_MAX];
    struct stat st;
    if (!join(path, f->dir, name))
        return cs_fail_errno(err, "cannot write %s/%.*s", f->asked, CS_FMT(name));
    if (lstat(path, &st) != 0) return CUTSET_OK;
    const bool source = f->guard_ino != 0 && (uint64_t)st.st_ino == f->guard_ino &&
                        (uint64_t)st.st_dev == f->guard_dev;
    if (known && S_ISREG(st.st_mode) && !source) return CUTSET_OK;
    return cs_fail(err, CUTSET_USAGE,
                   "%s/%.*s is in the way and not of an earlier split: move it, or name another "
                   "folder",
                   f->asked, CS_FMT(name));
}

static cutset_status check_names(const cs_folder *f, const cutset_plan *plan, cutset_error *err)
{
    cutset_status status = check_name(f, CS_SPAN(PLAN), f->earlier != NULL, err);
    for (size_t i = 0; i < plan->parts.len && status == CUTSET_OK; i++) {
        const cs_span name = cs_strtab_get(&plan->names, plan->parts.at[i].file);
        status = check_name(f, name, is_listed(f, name), err);
    }
    return status;
}

/* A fresh folder beside `dir`, or in it. */
static cutset_status make_work(cs_folder *f, cutset_error *err)
{
    const size_t room = strlen(f->dir) + 64;
    char *work = cs_alloc(room, 1);
    if (work == NULL) return cs_fail_memory(err);
    for (unsigned n = 0;; n++) {
        snprintf(work, room, f->in_place ? "%s/.cutset-%ld-%u.tmp" : "%s.cutset-%ld-%u.tmp", f->dir,
                 (long)getpid(), n);
        if (mkdir(work, 0777) == 0) break;
        if (errno == EEXIST && n < 100000) continue;
        cs_free(work);
        return cs_fail_errno(err, "cannot write %s", f->asked);
    }
    if (!f->in_place && f->mode != 0) chmod(work, (mode_t)f->mode); /* those of the old folder */
    f->work = work;
    return CUTSET_OK;
}

cutset_status cs_folder_begin(cs_folder *f, const cutset_plan *plan, bool refer, cutset_error *err)
{
    if (f->state == CS_FOLDER_OTHER && !refer)
        return cs_fail(
            err, CUTSET_USAGE,
            "%s holds %s, which is not of an earlier split: name a new or an empty folder",
            f->asked, f->in_the_way);
    f->in_place = f->state == CS_FOLDER_OTHER || (f->state != CS_FOLDER_NEW && is_fixed(f));
    cutset_status status = CUTSET_OK;
    if (f->state == CS_FOLDER_OTHER) status = check_names(f, plan, err);
    return status == CUTSET_OK ? make_work(f, err) : status;
}

/* ---- files ---- */

cutset_status cs_folder_create(cs_folder *f, const char *name, int *fd, cutset_error *err)
{
    char path[PATH_MAX];
    bool ok = true;
    if (strncmp(name, "weights/", 8) == 0)
        ok = join(path, f->work, CS_SPAN("weights")) && (mkdir(path, 0777) == 0 || errno == EEXIST);
    ok = ok && join(path, f->work, cs_span_of(name));
    *fd = ok ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    return *fd < 0 ? cs_fail_errno(err, "cannot write %s/%s", f->asked, name) : CUTSET_OK;
}

cutset_status cs_folder_close(cs_folder *f, const char *name, int fd, cutset_status status,
                              cutset_error *err)
{
    if (close(fd) == 0 || errno == EINTR || status != CUTSET_OK) return status;
    return cs_fail_errno(err, "cannot write %s/%s", f->asked, name);
}

/* ---- keeping ---- */

static cutset_status fail_place(const cs_folder *f, cutset_error *err)
{
    return cs_fail_errno(err, "cannot put %s in place", f->asked);
}

/* What was written goes in, what was there goes away, in one step where the kernel can. */
static cutset_status exchange(cs_folder *f, cutset_error *err)
{
    if (renameat2(AT_FDCWD, f->work, AT_FDCWD, f->dir, RENAME_EXCHANGE) == 0) return CUTSET_OK;
    char old[PATH_MAX];
    if (snprintf(old, sizeof old, "%s.old", f->work) >= (int)sizeof old) {
        errno = ENAMETOOLONG;
        return fail_place(f, err);
    }
    if (rename(f->dir, old) != 0) return fail_place(f, err);
    if (rename(f->work, f->dir) != 0) {
        const cutset_status status = fail_place(f, err);
        rename(old, f->dir);
        return status;
    }
    return rename(old, f->work) == 0 ? CUTSET_OK : fail_place(f, err);
}

static bool move_in(const cs_folder *f, cs_span name)
{
    char from[PATH_MAX], to[PATH_MAX];
    return join(from, f->work, name) && join(to, f->dir, name) && rename(from, to) == 0;
}

static bool unlink_in(const cs_folder *f, cs_span name)
{
    char path[PATH_MAX];
    return join(path, f->dir, name) && (unlink(path) == 0 || errno == ENOENT);
}

/* The earlier split's files that the new plan does not have. */
static bool remove_stale(const cs_folder *f, const cutset_plan *plan)
{
    if (f->earlier == NULL) return true;
    cs_map now = {0};
    bool ok = cs_map_room(&now, plan->parts.len);
    for (size_t i = 0; ok && i < plan->parts.len; i++) {
        const cs_span name = cs_strtab_get(&plan->names, plan->parts.at[i].file);
        const cs_str s = cs_strtab_find(&f->earlier->names, name);
        if (s != CS_NONE) ok = cs_map_put(&now, s, 1);
    }
    if (!ok) errno = ENOMEM;
    for (size_t i = 0; ok && i < f->earlier->parts.len; i++) {
        const cs_str s = f->earlier->parts.at[i].file;
        if (cs_map_get(&f->listed, s) == CS_NONE || cs_map_get(&now, s) != CS_NONE) continue;
        struct stat st;
        char path[PATH_MAX];
        ok = join(path, f->dir, cs_strtab_get(&f->earlier->names, s));
        if (!ok || lstat(path, &st) != 0 || !S_ISREG(st.st_mode)) continue;
        if (f->guard_ino == (uint64_t)st.st_ino && f->guard_dev == (uint64_t)st.st_dev) continue;
        ok = unlink(path) == 0 || errno == ENOENT;
    }
    cs_map_fini(&now);
    return ok;
}

static cutset_status move_all(cs_folder *f, const cutset_plan *plan, cutset_error *err)
{
    char path[PATH_MAX];
    cutset_status status = CUTSET_OK;
    const char *const trees[] = {"weights", "build"}; /* ours, where nothing else is there */
    for (int i = 0; i < 2 && f->state == CS_FOLDER_SPLIT && status == CUTSET_OK; i++)
        if (join(path, f->dir, cs_span_of(trees[i]))) status = cs_dir_remove_tree(path, err);
    if (status != CUTSET_OK) return status;
    for (size_t i = 0; i < plan->parts.len; i++)
        if (!move_in(f, cs_strtab_get(&plan->names, plan->parts.at[i].file)))
            return fail_place(f, err);
    if (join(path, f->work, CS_SPAN("weights")) && access(path, F_OK) == 0 &&
        !move_in(f, CS_SPAN("weights")))
        return fail_place(f, err);
    if (!remove_stale(f, plan) || !move_in(f, CS_SPAN(PLAN))) return fail_place(f, err);
    return CUTSET_OK;
}

/* Nothing was there, so nothing is left. */
static void empty_again(const cs_folder *f, const cutset_plan *plan)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < plan->parts.len; i++)
        unlink_in(f, cs_strtab_get(&plan->names, plan->parts.at[i].file));
    if (join(path, f->dir, CS_SPAN("weights"))) cs_dir_remove_tree(path, NULL);
}

cutset_status cs_folder_keep(cs_folder *f, const cutset_plan *plan, cutset_error *err)
{
    if (f->in_place) {
        if (!unlink_in(f, CS_SPAN(PLAN))) return fail_place(f, err);
        const cutset_status status = move_all(f, plan, err);
        if (status != CUTSET_OK && f->state == CS_FOLDER_EMPTY) empty_again(f, plan);
        return status; /* the work folder, empty by now, goes with fini */
    }
    if (f->state == CS_FOLDER_SPLIT) return exchange(f, err); /* work is the old folder now */
    if (rename(f->work, f->dir) != 0) return fail_place(f, err);
    cs_free(f->work);
    f->work = NULL;
    return CUTSET_OK;
}

void cs_folder_fini(cs_folder *f)
{
    if (f->work != NULL) cs_dir_remove_tree(f->work, NULL);
    cs_free(f->work);
    cs_free(f->asked);
    cs_free(f->dir);
    cs_free(f->in_the_way);
    cs_map_fini(&f->listed);
    cs_plan_free(f->earlier);
    *f = (cs_folder){0};
}
