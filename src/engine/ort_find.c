/* Finding and loading ONNX Runtime's library.
 *
 * A library that the user named is loaded or refused; nothing else is tried then. Otherwise the
 * places are tried in the order that ort.h gives, and the first that loads is taken. Python's
 * wheels keep it as ENV/lib/python3.X/site-packages/onnxruntime/capi/libonnxruntime.so.VERSION.
 *
 * python3 is asked where its package lies, as a child process without a shell; nothing is imported
 * and nothing is fetched. The library is never unloaded: it registers destructors for threads, and
 * code that goes away under them crashes. Loading it twice costs nothing.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/ort_api.h"

extern char **environ;

typedef struct finder {
    const OrtApiBase *base;
    char *found;   /* heap */
    char why[400]; /* the loader's words about the last library that was there but did not load */
    bool no_memory;
} finder;

/* ---- one candidate ---- */

static bool try_load(finder *f, const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        const char *words = dlerror();
        snprintf(f->why, sizeof f->why, "%s", words != NULL ? words : path);
        return false;
    }
    const OrtApiBase *(*get)(void);
    *(void **)&get = dlsym(handle, "OrtGetApiBase");
    f->base = get != NULL ? get() : NULL;
    if (f->base == NULL) {
        snprintf(f->why, sizeof f->why, "%s: it has no OrtGetApiBase", path);
        dlclose(handle);
        return false;
    }
    f->found = cs_path_join("", path);
    f->no_memory = f->found == NULL;
    return true;
}

/* The entry of `dir` that begins with `prefix` and comes last in version order; heap, or NULL. */
static char *newest_entry(finder *f, const char *dir, const char *prefix)
{
    DIR *d = opendir(dir);
    if (d == NULL) return NULL;
    char *best = NULL;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0) continue;
        if (best != NULL && strverscmp(e->d_name, best) <= 0) continue;
        char *name = cs_path_join("", e->d_name);
        f->no_memory = f->no_memory || name == NULL;
        if (name == NULL) break;
        cs_free(best);
        best = name;
    }
    closedir(d);
    return best;
}

/* The library in the folder of the Python package. */
static bool try_package(finder *f, const char *package)
{
    char *dir = cs_path_join(package, "capi");
    char *name = dir != NULL ? newest_entry(f, dir, "libonnxruntime.so") : NULL;
    char *path = name != NULL ? cs_path_join(dir, name) : NULL;
    const bool loaded = path != NULL && try_load(f, path);
    cs_free(dir);
    cs_free(name);
    cs_free(path);
    return loaded;
}

/* ---- places ---- */

/* ENV/lib/python3.X/site-packages/onnxruntime */
static bool try_environment(finder *f, const char *env)
{
    char lib[PATH_MAX], package[PATH_MAX];
    if (snprintf(lib, sizeof lib, "%s/lib", env) >= (int)sizeof lib) return false;
    char *python = newest_entry(f, lib, "python3");
    if (python == NULL) return false;
    const int n = snprintf(package, sizeof package, "%s/%s/site-packages/onnxruntime", lib, python);
    cs_free(python);
    return n < (int)sizeof package && try_package(f, package);
}

/* .venv in `dir` and in every folder above it; `dir` is absolute and is cut on the way. */
static bool try_upwards(finder *f, char *dir)
{
    for (;;) {
        char env[PATH_MAX];
        if (snprintf(env, sizeof env, "%s/.venv", dir) < (int)sizeof env && try_environment(f, env))
            return true;
        char *slash = strrchr(dir, '/');
        if (slash == NULL) return false;
        *slash = '\0';
    }
}

/* ENV/bin, where a wheel puts the command. */
static bool try_own_environment(finder *f, const char *dir)
{
    char env[PATH_MAX];
    const size_t len = strlen(dir);
    if (len < 5 || strcmp(dir + len - 4, "/bin") != 0 || len >= sizeof env) return false;
    memcpy(env, dir, len - 4);
    env[len - 4] = '\0';
    return try_environment(f, env);
}

/* The command's own folder before the current one, which others may write to. */
static bool try_around(finder *f)
{
    char dir[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    if (n > 0) {
        dir[n] = '\0';
        char *slash = strrchr(dir, '/');
        if (slash != NULL) *slash = '\0';
        if (slash != NULL && try_own_environment(f, dir)) return true;
        if (slash != NULL && try_upwards(f, dir)) return true;
    }
    return getcwd(dir, sizeof dir) != NULL && try_upwards(f, dir);
}

/* Reads what the child writes, up to `room` bytes, and waits for its end. */
static size_t gather(pid_t child, int fd, char *out, size_t room)
{
    size_t len = 0;
    for (;;) {
        const ssize_t n = read(fd, out + len, room - len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        len += (size_t)n;
        if (len == room) break;
    }
    close(fd);
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return len; /* ECHILD: the caller ignores SIGCHLD; judge the output */
    return status == 0 ? len : 0;
}

/* Asks python3 for the folder of its package onnxruntime. */
static bool try_python(finder *f)
{
    static const char program[] =
        "import importlib.util as u, os\n"
        "s = u.find_spec('onnxruntime')\n"
        "print(os.path.dirname(s.origin) if s and s.origin else '', end='')\n";
    char *const argv[] = {"python3", "-c", (char *)program, NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t child;
    const int failed = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed != 0) {
        close(ends[0]);
        return false;
    }
    char package[PATH_MAX];
    const size_t len = gather(child, ends[0], package, sizeof package - 1);
    package[len] = '\0';
    return len > 0 && package[0] == '/' && try_package(f, package);
}

static bool try_system(finder *f)
{
    /* That these are not there is no news: keep what an earlier place said. */
    char why[sizeof f->why];
    memcpy(why, f->why, sizeof why);
    if (try_load(f, "libonnxruntime.so") || try_load(f, "libonnxruntime.so.1")) return true;
    memcpy(f->why, why, sizeof why);
    return false;
}

static bool try_places(finder *f)
{
    if (try_around(f)) return true;
    const char *env = getenv("VIRTUAL_ENV");
    if (env != NULL && env[0] == '/' && try_environment(f, env)) return true;
    return try_python(f) || try_system(f);
}

/* ---- all ---- */

/* A library the user named: a file, or a name for the loader to look up. */
static cutset_status load_named(finder *f, const char *path, cutset_error *err)
{
    char here[PATH_MAX];
    struct stat st;
    if (strchr(path, '/') == NULL && stat(path, &st) == 0 &&
        snprintf(here, sizeof here, "./%s", path) < (int)sizeof here)
        path = here;
    if (try_load(f, path)) return CUTSET_OK;
    return cs_fail(err, CUTSET_SYSTEM,
                   "ONNX Runtime cannot be loaded: %s: name a libonnxruntime.so for this machine",
                   f->why);
}

cutset_status cs_ort_load(const OrtApiBase **base, char **found, const char *path,
                          cutset_error *err)
{
    finder f = {0};
    if (path == NULL || path[0] == '\0') path = getenv("CUTSET_ONNXRUNTIME");
    if (path != NULL && path[0] != '\0') {
        const cutset_status status = load_named(&f, path, err);
        if (status) return status;
    } else if (!try_places(&f) && !f.no_memory) {
        return cs_fail(err, CUTSET_SYSTEM,
                       "ONNX Runtime was not found%s%s: install it (pip install onnxruntime), or "
                       "name its library with --onnxruntime or in CUTSET_ONNXRUNTIME",
                       f.why[0] != '\0' ? "; what was found does not load: " : "", f.why);
    }
    if (f.no_memory) {
        cs_free(f.found);
        return cs_fail_memory(err);
    }
    *base = f.base;
    *found = f.found;
    return CUTSET_OK;
}
