/* Available memory, in made-up trees of /proc and cgroups. */
#include "failing_alloc.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/avail.h"
#include "base/file.h"

enum { MIB = 1 << 20 };
static char root[] = "/tmp/cutset-avail-XXXXXX";

/* Writes root/`name`, with the folders above it. */
static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A machine of 1000 MiB without limits. */
static void new_machine(void)
{
    char path[PATH_MAX];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", root, i ? "cg" : "proc");
        cs_dir_remove_tree(path, NULL);
    }
    put("proc/meminfo", "MemTotal:  9 kB\nMemAvailable:   1024000 kB\nSwapFree: 1 kB\n");
    put("proc/self/status",
        "Name:\tx\nVmPeak:\t 9 kB\nVmSize:\t  102400 kB\nVmData:\t   51200 kB\n");
    put("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             unlimited            unlimited            bytes     \n"
        "Max address space         unlimited            unlimited            bytes     \n");
}

static cutset_status ask(int64_t *out, cutset_error *err)
{
    char proc[PATH_MAX], cgroups[PATH_MAX];
    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(cgroups, sizeof cgroups, "%s/cg", root);
    return cutset_available_memory(out, proc, cgroups, err);
}

static int64_t available(void)
{
    int64_t bytes = -77;
    cutset_error err;
    assert_int_equal(ask(&bytes, &err), CUTSET_OK);
    assert_true(bytes >= 0);
    return bytes;
}

#define IS(mib) assert_int_equal(available(), (int64_t)(mib)*MIB)

/* A cgroup of v2: sizes in MiB, below 0: "max", or no such file. */
static void v2(const char *dir, int max, int current, int inactive)
{
    char name[PATH_MAX], text[100];
    snprintf(name, sizeof name, "%s/memory.max", dir);
    snprintf(text, sizeof text, max < 0 ? "max\n" : "%lld\n", (long long)max * MIB);
    put(name, text);
    if (current >= 0) {
        snprintf(name, sizeof name, "%s/memory.current", dir);
        snprintf(text, sizeof text, "%lld\n", (long long)current * MIB);
        put(name, text);
    }
    if (inactive >= 0) {
        snprintf(name, sizeof name, "%s/memory.stat", dir);
        snprintf(text, sizeof text, "anon 5\nfile 7\ninactive_file %lld\nactive_file 9\n",
                 (long long)inactive * MIB);
        put(name, text);
    }
}

static void v1(const char *dir, int limit, int usage, int inactive)
{
    char name[PATH_MAX], text[200];
    snprintf(name, sizeof name, "%s/memory.limit_in_bytes", dir);
    snprintf(text, sizeof text, "%lld\n",
             limit < 0 ? 9223372036854771712LL : (long long)limit * MIB);
    put(name, text);
    snprintf(name, sizeof name, "%s/memory.usage_in_bytes", dir);
    snprintf(text, sizeof text, "%lld\n", (long long)usage * MIB);
    put(name, text);
    snprintf(name, sizeof name, "%s/memory.stat", dir);
    snprintf(text, sizeof text,
             "inactive_file 1\nhierarchical_memory_limit 9223372036854771712\n"
             "total_cache 5\ntotal_inactive_file %lld\n",
             (long long)inactive * MIB);
    put(name, text);
}

#define MOUNT_V1                                                                                   \
    "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"                          \
    "31 25 0:27 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
#define MOUNT_V2 "32 25 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_UNIFIED "33 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

/* ---- the machine itself ---- */

static void the_machine_alone(void **state)
{
    (void)state;
    new_machine();
    IS(1000);
}

static void resource_limits(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/limits", "Max data size             524288000            unlimited   bytes\n"
                            "Max address space         unlimited            unlimited   bytes\n");
    IS(500 - 50);
    put("proc/self/limits", "Max data size             524288000            unlimited   bytes\n"
                            "Max address space         314572800            unlimited   bytes\n");
    IS(300 - 100);
    put("proc/self/limits", "Max address space         1048576              unlimited   bytes\n");
    IS(0);
    put("proc/self/status", "Name: x\n"); /* use not known */
    IS(1);
}

/* Without the file: what the kernel says of this process. */
static void resource_limits_from_the_kernel(void **state)
{
    (void)state;
    new_machine();
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/limits", root);
    unlink(path);
    IS(1000);
    struct rlimit old, now;
    assert_int_equal(getrlimit(RLIMIT_DATA, &old), 0);
    now = old;
    now.rlim_cur = (rlim_t)1 << 55; /* sanitizers map terabytes */
    assert_int_equal(setrlimit(RLIMIT_DATA, &now), 0);
    put("proc/meminfo", "MemAvailable: 70368744177664 kB\n");
    IS((INT64_C(1) << 35) - 50);
    assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
}

/* ---- cgroups ---- */

static void version_two(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/self/mountinfo", "1 2 3:4 / / rw - ext4 /dev/x rw\n" MOUNT_V2);
    v2("cg/a/b", 400, 100, 30);
    IS(400 - 70);
    v2("cg/a", 200, 150, 20); /* the parent leaves less */
    IS(200 - 130);
    v2("cg/a", -1, 150, 20);
    IS(400 - 70);
    v2("cg/a/b", -1, 100, 30);
    IS(1000);
    v2("cg/a/b", 50, 100, 0); /* over its limit already */
    IS(0);
    v2("cg/a/b", 400, 100, 300); /* more inactive than used */
    IS(400);
    put("cg/a/b/memory.high", "104857600\n");
    v2("cg/a/b", 400, 40, 0);
    IS(100 - 40);
}

static void version_one(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/cgroup", "4:cpu,cpuacct:/elsewhere\n3:memory:/a/b\n1:name=systemd:/a\n");
    put("proc/self/mountinfo", MOUNT_V1);
    v1("cg/memory/a/b", 400, 100, 30);
    IS(400 - 70);
    v1("cg/memory/a", 200, 150, 20);
    IS(200 - 130);
    v1("cg/memory/a", -1, 150, 20);
    v1("cg/memory", -1, 900, 0);
    IS(400 - 70);
    v1("cg/memory/elsewhere", 1, 0, 0); /* not ours */
    IS(400 - 70);
    /* a limit above what can be seen */
    put("cg/memory/a/b/memory.stat", "hierarchical_memory_limit 157286400\ninactive_file 0\n");
    IS(150 - 100);
}

static void both_versions(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/cgroup", "3:memory:/one\n0::/two\n");
    put("proc/self/mountinfo", MOUNT_V1 MOUNT_UNIFIED);
    v1("cg/memory/one", 400, 100, 0);
    v2("cg/unified/two", 350, 100, 0);
    IS(250);
    v1("cg/memory/one", 300, 100, 0);
    IS(200);
}

/* What a container sees: its own cgroup is the root of the mount. */
static void mounted_below_the_root(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/cgroup", "3:memory:/docker/abc/inner\n");
    put("proc/self/mountinfo",
        "31 25 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    v1("cg/memory", 400, 100, 0);
    v1("cg/memory/inner", 350, 100, 0);
    IS(250);
    put("proc/self/cgroup", "3:memory:/docker/abc\n");
    IS(300);
    put("proc/self/cgroup", "3:memory:/docker/abcdef\n"); /* outside: the mount itself counts */
    v1("cg/memory/def", 10, 0, 0);
    IS(300);
}

static void namespaces(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/mountinfo", MOUNT_V2);
    v2("cg", 400, 100, 0);
    v2("cg/x", 10, 1, 0);
    static const char *const paths[] = {"0::/\n", "0::/..\n", "0::/../..\n", "0::/../x\n"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        put("proc/self/cgroup", paths[i]);
        IS(300);
    }
    put("proc/self/cgroup", "0::/x\n");
    IS(9);
}

/* The usual places, where mountinfo is not there, or names none. */
static void without_mountinfo(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/cgroup", "0::/a\n");
    v2("cg/a", 400, 100, 0);
    IS(300);
    new_machine();
    put("proc/self/cgroup", "3:memory:/a\n0::/\n");
    put("proc/self/mountinfo", "1 2 3:4 / / rw - ext4 /dev/x rw\n");
    v1("cg/memory/a", 400, 150, 0);
    v2("cg/unified", 900, 20, 0);
    IS(250);
    new_machine(); /* nor any list of cgroups */
    v2("cg", 300, 100, 0);
    IS(200);
}

static void mounted_elsewhere(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/cgroup", "0::/a\n");
    char text[PATH_MAX];
    snprintf(text, sizeof text, "9 8 0:7 / %s/cg/my\\040mount rw - cgroup2 none rw\n", root);
    put("proc/self/mountinfo", text);
    v2("cg/my mount/a", 400, 100, 0);
    IS(300);
    put("proc/self/mountinfo", "9 8 0:7 / /somewhere/else rw - cgroup2 none rw\n");
    IS(1000);
}

/* ---- odd files ---- */

static void nothing_tells(void **state)
{
    (void)state;
    new_machine();
    put("proc/meminfo", "MemTotal: 5 kB\n");
    int64_t bytes = 7;
    cutset_error err;
    assert_int_equal(ask(&bytes, &err), CUTSET_SYSTEM);
    assert_int_equal(bytes, 7);
    assert_non_null(strstr(err.message, "give a size"));
    put("proc/self/cgroup", "0::/a\n"); /* a limit is enough */
    v2("cg/a", 400, 100, 0);
    IS(300);
}

static void odd_files(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "\n",
                                        "max",
                                        "-5\n",
                                        "x",
                                        "0x10\n",
                                        "99999999999999999999999999\n",
                                        "18446744073709551615\n",
                                        "1152921504606846976\n",
                                        " \n 5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        new_machine();
        put("proc/self/cgroup", "0::/a\n");
        v2("cg/a", 400, 100, 0);
        put("cg/a/memory.max", texts[i]);
        IS(1000);
        v2("cg/a", 400, 100, 0);
        put("cg/a/memory.current", texts[i]);
        const bool huge = texts[i][0] == '9' || texts[i][0] == '1';
        IS(huge ? 0 : 400);
        put("proc/self/cgroup", texts[i]);
        put("proc/self/mountinfo", texts[i]);
        put("proc/self/status", texts[i]);
        put("proc/self/limits", texts[i]);
        IS(1000);
    }
    new_machine();
    put("cg/a/memory.max/file", ""); /* a folder */
    put("proc/self/cgroup", "0::/a\n");
    IS(1000);
}

/* Bytes at random, and lines cut off anywhere: never below 0, never a crash. */
static void hostile_files(void **state)
{
    (void)state;
    static const char *const names[] = {
        "proc/self/cgroup", "proc/self/mountinfo", "proc/self/status",     "proc/self/limits",
        "proc/meminfo",     "cg/memory.max",       "cg/memory/memory.stat"};
    static const char *const pieces[] = {
        "0::/",
        "3:memory:/a",
        ":",
        "::",
        "/..",
        "\n",
        " ",
        " - ",
        "cgroup",
        "cgroup2",
        "rw,memory",
        "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
        "\\040",
        "\\9",
        "\\",
        "VmSize:",
        "VmData:",
        "MemAvailable:",
        " 123 kB",
        "Max data size",
        "Max address space",
        "9223372036854775807",
        "18446744073709551616",
        "-1",
        "max",
        "inactive_file ",
        "\x01\xff",
        "total_inactive_file 1152921504606846975",
        "hierarchical_memory_limit ",
        "//",
        "a/b"};
    uint32_t seed = 7;
    for (int round = 0; round < 300; round++) {
        new_machine();
        put("proc/meminfo", "MemAvailable: 1024000 kB\n");
        for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
            char text[2000] = "";
            for (int k = 0; k < 12; k++) {
                seed = seed * 1664525 + 1013904223;
                strcat(text, pieces[(seed >> 16) % (sizeof pieces / sizeof *pieces)]);
            }
            put(names[f], text);
        }
        int64_t bytes = -1;
        cutset_error err;
        if (ask(&bytes, &err) == CUTSET_OK) assert_true(bytes >= 0 && bytes < INT64_C(1) << 60);
    }
    new_machine();
    char *path = malloc(100000);
    memset(path, 'p', 99999);
    memcpy(path, "0::/", 4);
    path[99999] = '\0';
    put("proc/self/cgroup", path);
    put("proc/self/mountinfo", MOUNT_V2);
    IS(1000);
    free(path);
}

static void memory_runs_out(void **state)
{
    (void)state;
    new_machine();
    put("proc/self/cgroup", "3:memory:/one\n0::/two\n");
    put("proc/self/mountinfo", MOUNT_V1 MOUNT_UNIFIED);
    v1("cg/memory/one", 400, 100, 0);
    for (long n = 0;; n++) {
        int64_t bytes = 7;
        cutset_error err;
        const long live = alloc_live();
        alloc_fail_at(n);
        const cutset_status status = ask(&bytes, &err);
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(alloc_live(), live);
        assert_int_equal(status, failed ? CUTSET_SYSTEM : CUTSET_OK);
        assert_int_equal(bytes, failed ? 7 : 300 * (int64_t)MIB);
        if (!failed) break;
        assert_true(n < 1000);
    }
}

static void this_machine(void **state)
{
    (void)state;
    int64_t bytes = -1;
    assert_int_equal(cutset_available_memory(&bytes, NULL, NULL, NULL), CUTSET_OK);
    assert_true(bytes > 0);
}

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    (void)state;
    return cs_dir_remove_tree(root, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_alone),
        cmocka_unit_test(resource_limits),
        cmocka_unit_test(resource_limits_from_the_kernel),
        cmocka_unit_test(version_two),
        cmocka_unit_test(version_one),
        cmocka_unit_test(both_versions),
        cmocka_unit_test(mounted_below_the_root),
        cmocka_unit_test(namespaces),
        cmocka_unit_test(without_mountinfo),
        cmocka_unit_test(mounted_elsewhere),
        cmocka_unit_test(nothing_tells),
        cmocka_unit_test(odd_files),
        cmocka_unit_test(hostile_files),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
