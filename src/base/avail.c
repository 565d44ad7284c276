/* How much memory this process may still take: the least of what the system says.
 *
 *   MemAvailable of /proc/meminfo
 *   limit - (use - inactive file pages) of each cgroup from the process's own up to the root of
 *     what is mounted, in v2 and in v1
 *   RLIMIT_AS - VmSize, RLIMIT_DATA - VmData
 *
 * A process is in one cgroup of v2 and one of each v1 hierarchy; hosts mount both, side by side.
 * /proc/self/cgroup has the path of each, /proc/self/mountinfo where its hierarchy is mounted and
 * which cgroup is the root of the mount (in a container often the process's own). A path that leads
 * out of the mount (a namespace shows "/../x") is taken for its root. The usual places are looked at
 * as well: mountinfo may be missing, and what is not there does not count.
 *
 * Everything read is text that may be cut off or odd: what is no number is no limit, and no figure
 * goes below 0. A v1 limit that cannot be seen from a container (its pod's) still stands in
 * memory.stat as hierarchical_memory_limit. memory.high counts as a limit: above it the kernel
 * throttles. A few dozen small files are read.
 */
#include "base/avail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define UNLIMITED (INT64_C(1) << 60) /* and above: v1 writes 2^63 less a page */
enum { TEXT_MOST = 1 << 24 };

typedef struct probe {
    const char *proc, *cgroups;
    int64_t least; /* UNLIMITED: nothing told yet */
    bool told, no_memory;
} probe;

/* ---- small files ---- */

/* The whole text, ended by a zero byte; heap. NULL: not there, no regular file, or no memory. */
static char *read_text(probe *p, const char *path)
{
    CS_VEC(char) text = {0};
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return NULL;
    bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    while (ok) {
        if (!cs_vec_room(&text, 4096)) {
            p->no_memory = true;
            ok = false;
            break;
        }
        const ssize_t n = read(fd, text.at + text.len, text.cap - text.len - 1);
        if (n < 0 && errno == EINTR) continue;
        ok = n >= 0;
        if (n > 0) text.len += (size_t)n;
        if (n <= 0 || text.len >= TEXT_MOST) break;
    }
    close(fd);
    if (!ok) {
        cs_vec_fini(&text);
        return NULL;
    }
    text.at[text.len] = '\0';
    return text.at;
}

static char *read_in(probe *p, const char *dir, const char *name)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && n < (int)sizeof path ? read_text(p, path) : NULL;
}

/* The decimal number at `at`, after blanks; UNLIMITED for more. -1: none there. */
static int64_t number_at(const char *at)
{
    int64_t x = 0;
    at += strspn(at, " \t");
    if (*at < '0' || *at > '9') return -1;
    for (; *at >= '0' && *at <= '9'; at++)
        x = x >= UNLIMITED / 10 ? UNLIMITED : 10 * x + (*at - '0');
    if (*at != '\0' && strchr(" \t\n", *at) == NULL) return -1;
    return x < UNLIMITED ? x : UNLIMITED;
}

/* The number in a line that begins with `key`; -1: none. */
static int64_t number_of(const char *text, const char *key)
{
    const size_t len = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, len) == 0) return number_at(line + len);
        line = strchr(line, '\n');
        if (line != NULL) line++;
    }
    return -1;
}

static int64_t number_in(probe *p, const char *dir, const char *name)
{
    char *text = read_in(p, dir, name);
    const int64_t x = text != NULL ? number_at(text) : -1; /* "max" is none */
    cs_free(text);
    return x;
}

/* ---- figures ---- */

static void allow(probe *p, int64_t bytes)
{
    if (bytes < 0) bytes = 0;
    if (bytes < p->least) p->least = bytes;
    p->told = true;
}

/* limit < 0 or UNLIMITED: none. use < 0: not known. */
static void allow_under(probe *p, int64_t limit, int64_t use)
{
    if (limit >= 0 && limit < UNLIMITED) allow(p, limit - (use > 0 ? use : 0));
}

static void look_at_system(probe *p)
{
    char *text = read_in(p, p->proc, "meminfo");
    const int64_t kib = text != NULL ? number_of(text, "MemAvailable:") : -1;
    if (kib >= 0 && kib < UNLIMITED / 1024) allow(p, 1024 * kib);
    cs_free(text);
}

/* ---- rlimits ---- */

/* The soft limit of a line of /proc/self/limits, "Max data size  SOFT  HARD  bytes"; -1: unlimited,
 * or not there. */
static int64_t soft_limit(const char *limits, const char *name, int resource)
{
    struct rlimit r;
    if (limits != NULL) return number_of(limits, name);
    if (getrlimit((__rlimit_resource_t)resource, &r) != 0 || r.rlim_cur >= (rlim_t)UNLIMITED)
        return -1;
    return (int64_t)r.rlim_cur;
}

static void look_at_limits(probe *p)
{
    static const struct {
        const char *name, *use;
        int resource;
    } kinds[] = {{"Max address space", "VmSize:", RLIMIT_AS},
                 {"Max data size", "VmData:", RLIMIT_DATA}};
    char *limits = read_in(p, p->proc, "self/limits");
    char *status = read_in(p, p->proc, "self/status");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const int64_t kib = status != NULL ? number_of(status, kinds[i].use) : -1;
        const int64_t use = kib >= UNLIMITED / 1024 ? UNLIMITED : 1024 * kib;
        allow_under(p, soft_limit(limits, kinds[i].name, kinds[i].resource), use);
    }
    cs_free(limits);
    cs_free(status);
}

/* ---- cgroups ---- */

static int64_t busy(int64_t use, int64_t inactive)
{
    if (use < 0 || inactive < 0) return use;
    return use > inactive ? use - inactive : 0;
}

static void look_at_v2(probe *p, const char *dir)
{
    char *stat = read_in(p, dir, "memory.stat");
    const int64_t inactive = stat != NULL ? number_of(stat, "inactive_file ") : -1;
    const int64_t use = busy(number_in(p, dir, "memory.current"), inactive);
    allow_under(p, number_in(p, dir, "memory.max"), use);
    allow_under(p, number_in(p, dir, "memory.high"), use);
    cs_free(stat);
}

static void look_at_v1(probe *p, const char *dir)
{
    char *stat = read_in(p, dir, "memory.stat");
    int64_t inactive = stat != NULL ? number_of(stat, "total_inactive_file ") : -1;
    if (inactive < 0 && stat != NULL) inactive = number_of(stat, "inactive_file ");
    const int64_t use = busy(number_in(p, dir, "memory.usage_in_bytes"), inactive);
    allow_under(p, number_in(p, dir, "memory.limit_in_bytes"), use);
    if (stat != NULL) allow_under(p, number_of(stat, "hierarchical_memory_limit "), use);
    cs_free(stat);
}

/* Every cgroup from `mount` + `path` up to the mount itself. */
static void climb(probe *p, bool v2, const char *mount, const char *path)
{
    char dir[PATH_MAX];
    const size_t top = strlen(mount);
    const bool leaves = strstr(path, "/..") != NULL;
    if (top == 0 || snprintf(dir, sizeof dir, "%s%s", mount, leaves ? "" : path) >= (int)sizeof dir)
        return;
    for (;;) {
        (v2 ? look_at_v2 : look_at_v1)(p, dir);
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < top) return;
        *slash = '\0';
    }
}

/* The process's cgroup below the root of the mount. */
static const char *below(const char *root, const char *path)
{
    const size_t len = strlen(root);
    if (strcmp(root, "/") == 0) return path;
    const bool inside = strncmp(path, root, len) == 0 && (path[len] == '/' || path[len] == '\0');
    return inside ? path + len : "";
}

static bool has_word(const char *list, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0')) return true;
    }
    return false;
}

/* mountinfo writes blanks and backslashes as \ooo. In place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; to++) {
        const bool octal = at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' &&
                           at[2] <= '7' && at[3] >= '0' && at[3] <= '7';
        *to = octal ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0')) : *at;
        at += octal ? 4 : 1;
    }
    *to = '\0';
}

/* Where the mount is, seen through p->cgroups; false: not below it. */
static bool locate(const probe *p, const char *mount, char *out, size_t room)
{
    static const char usual[] = "/sys/fs/cgroup";
    const size_t n = strlen(usual);
    const bool there = strncmp(mount, usual, n) == 0 && (mount[n] == '/' || mount[n] == '\0');
    if (there) return snprintf(out, room, "%s%s", p->cgroups, mount + n) < (int)room;
    const size_t len = strlen(p->cgroups);
    const bool own = strcmp(p->cgroups, usual) == 0 || strncmp(mount, p->cgroups, len) == 0;
    return own && snprintf(out, room, "%s", mount) < (int)room;
}

/* "ID PARENT DEV ROOT MOUNT OPTIONS ... - TYPE SOURCE SUPER": climbs where it is a memory hierarchy. */
static void look_at_mount(probe *p, char *line, const char *v1, const char *v2)
{
    char *field[5], *rest = line, dir[PATH_MAX];
    for (int i = 0; i < 5; i++)
        if ((field[i] = strsep(&rest, " ")) == NULL) return;
    char *type = rest != NULL ? strstr(rest, " - ") : NULL;
    if (type == NULL) return;
    type += 3;
    const char *kind = strsep(&type, " ");
    strsep(&type, " "); /* the source */
    const bool is_v2 = strcmp(kind, "cgroup2") == 0;
    if (!is_v2 && (strcmp(kind, "cgroup") != 0 || type == NULL || !has_word(type, "memory")))
        return;
    const char *path = is_v2 ? v2 : v1;
    unescape(field[3]);
    unescape(field[4]);
    if (path != NULL && locate(p, field[4], dir, sizeof dir))
        climb(p, is_v2, dir, below(field[3], path));
}

/* "0::PATH" and "N:...,memory,...:PATH"; the paths stay in `text`. */
static void find_paths(char *text, const char **v1, const char **v2)
{
    while (text != NULL) {
        char *rest = strsep(&text, "\n");
        const char *number = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
        if (controllers == NULL || rest == NULL || rest[0] != '/') continue;
        if (strcmp(number, "0") == 0 && controllers[0] == '\0')
            *v2 = rest;
        else if (has_word(controllers, "memory"))
            *v1 = rest;
    }
}

static void look_at_cgroups(probe *p)
{
    const char *v1 = NULL, *v2 = NULL;
    char *groups = read_in(p, p->proc, "self/cgroup");
    char *mounts = read_in(p, p->proc, "self/mountinfo");
    char dir[PATH_MAX];
    find_paths(groups, &v1, &v2);
    if (groups == NULL) v1 = v2 = "/";
    for (char *rest = mounts; rest != NULL;)
        look_at_mount(p, strsep(&rest, "\n"), v1, v2);
    if (v2 != NULL) climb(p, true, p->cgroups, v2);
    if (v2 != NULL && snprintf(dir, sizeof dir, "%s/unified", p->cgroups) < (int)sizeof dir)
        climb(p, true, dir, v2);
    if (v1 != NULL && snprintf(dir, sizeof dir, "%s/memory", p->cgroups) < (int)sizeof dir)
        climb(p, false, dir, v1);
    cs_free(groups);
    cs_free(mounts);
}

cutset_status cs_available(int64_t *out, const char *proc, const char *cgroups, cutset_error *err)
{
    probe p = {.proc = proc, .cgroups = cgroups, .least = UNLIMITED};
    look_at_system(&p);
    look_at_limits(&p);
    look_at_cgroups(&p);
    if (p.no_memory) return cs_fail_memory(err);
    if (!p.told)
        return cs_fail(err, CUTSET_SYSTEM,
                       "neither %.200s/meminfo nor a limit tells how much memory there is: give a "
                       "size",
                       proc);
    *out = p.least;
    return CUTSET_OK;
}
