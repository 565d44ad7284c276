/* Ropes byte by byte; a split and a merge that are stopped, that run out of disk, and whose
 * allocations fail one after the other: nothing is left behind, nothing leaks. What parts hold is
 * tested in test_emit.py. Everything happens in a new folder, removed at the end. */
#include "failing_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "emit/folder.h"
#include "emit/rope.h"

static cutset_error err;
static char root[] = "test-emit-XXXXXX";

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* Writes the rope to a file and compares. */
static void assert_rope(const cs_rope *rope, const void *bytes, size_t len)
{
    char *got = malloc(len + 1);
    const int fd = open("rope", O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(cs_rope_write(rope, fd, "rope", NULL, &err), CUTSET_OK);
    assert_int_equal(rope->len, len);
    assert_int_equal(lseek(fd, 0, SEEK_END), len);
    assert_int_equal(pread(fd, got, len, 0), len);
    assert_memory_equal(got, bytes, len);
    close(fd);
    free(got);
}

/* ---- ropes ---- */

static void test_fields(void **state)
{
    (void)state;
    cs_rope rope = {0};
    cs_rope_number(&rope, 1, 300);
    cs_rope_string(&rope, 2, CS_SPAN("ab"));
    const cs_rope_mark outer = cs_rope_open(&rope, 7);
    const cs_rope_mark inner = cs_rope_open(&rope, 16);
    cs_rope_close(&rope, inner);
    cs_rope_number(&rope, 1, UINT64_MAX);
    cs_rope_close(&rope, outer);
    cs_rope_number(&rope, 3, 1);
    static const unsigned char want[] = {0x08, 0xac, 0x02, 0x12, 2,    'a',  'b',  0x3a, 14,
                                         0x82, 0x01, 0,    0x08, 0xff, 0xff, 0xff, 0xff, 0xff,
                                         0xff, 0xff, 0xff, 0xff, 0x01, 0x18, 1};
    assert_rope(&rope, want, sizeof want);
    cs_rope_clear(&rope);
    assert_rope(&rope, "", 0);
    cs_rope_fini(&rope);
}

static void test_cut(void **state)
{
    (void)state;
    cs_rope rope = {0};
    cs_file map;
    cs_file_borrow(&map, "0123456789", 10);
    cs_rope_bytes(&rope, "a", 1);
    cs_rope_slice(&rope, &map, (cs_span){(const char *)map.at, 3});
    const cs_rope_mark mark = cs_rope_note(&rope);
    cs_rope_slice(&rope, &map, (cs_span){(const char *)map.at + 3, 4}); /* joins the last */
    assert_int_equal(rope.chunks.len, 2);
    cs_rope_bytes(&rope, "bc", 2);
    cs_rope_open(&rope, 1);
    cs_rope_bytes(&rope, "d", 1);
    cs_rope_cut(&rope, mark);
    cs_rope_bytes(&rope, "z", 1);
    assert_rope(&rope, "a012z", 5);
    cs_rope_fini(&rope);
}

/* Fields that stand one after the other in the source become one chunk, heads included. */
static void test_neighbours_join(void **state)
{
    (void)state;
    static const char bytes[] = "\x0a\x02xy\x0a\x01z\x12\x00\x8a\x00\x01w";
    cs_file map;
    cs_file_borrow(&map, bytes, sizeof bytes - 1);
    cs_rope rope = {0};
    cs_rope_field(&rope, 1, &map, (cs_span){bytes + 2, 2});
    cs_rope_field(&rope, 1, &map, (cs_span){bytes + 6, 1});
    cs_rope_field(&rope, 2, &map, (cs_span){bytes + 9, 0});
    assert_int_equal(rope.chunks.len, 1);
    cs_rope_field(&rope, 1, &map, (cs_span){bytes + 12, 1}); /* its head is not as we write it */
    cs_rope_field(&rope, 1, &map, (cs_span){NULL, 0});
    assert_rope(&rope, "\x0a\x02xy\x0a\x01z\x12\x00\x0a\x01w\x0a\x00", 14);
    cs_rope_fini(&rope);
}

static void test_large_slices_and_ranges(void **state)
{
    (void)state;
    const size_t size = 3 << 20;
    unsigned char *bytes = malloc(2 * size + 3);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    write_file("data", bytes, size);
    cs_file map;
    assert_int_equal(cs_file_open(&map, "data", &err), CUTSET_OK);
    cs_rope rope = {0};
    cs_rope_slice(&rope, &map, (cs_span){(const char *)map.at + 5, size - 5});
    cs_rope_bytes(&rope, "---", 3);
    cs_rope_range(&rope, "data", 0, size);
    memcpy(bytes, map.at + 5, size - 5);
    memcpy(bytes + size - 5, "---", 3);
    memcpy(bytes + size - 2, map.at, size);
    assert_rope(&rope, bytes, 2 * size - 2);
    cs_rope_clear(&rope);
    cs_rope_range(&rope, "data", 10, size); /* past the end */
    const int fd = open("rope", O_RDWR | O_TRUNC);
    assert_int_equal(cs_rope_write(&rope, fd, "rope", NULL, &err), CUTSET_BAD);
    cs_rope_clear(&rope);
    cs_rope_range(&rope, "no such", 0, 1);
    assert_int_equal(cs_rope_write(&rope, fd, "rope", NULL, &err), CUTSET_SYSTEM);
    assert_non_null(strstr(err.message, "no such"));
    close(fd);
    cs_rope_fini(&rope);
    cs_file_close(&map);
    free(bytes);
}

typedef struct asked {
    uint64_t last, most; /* bytes done, and the largest step between two questions */
    unsigned times;
} asked;

static int ask(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    (void)phase;
    (void)total;
    asked *a = payload;
    if (done - a->last > a->most) a->most = done - a->last;
    a->last = done;
    return ++a->times == 4; /* stop there */
}

/* Whoever wants to stop is asked every 64 MiB: of a file that is copied by the kernel, of one range
 * of it, and of memory. */
static void test_long_writes_can_be_stopped(void **state)
{
    (void)state;
    const size_t size = (size_t)400 << 20, step = (size_t)64 << 20;
    write_file("holes", "", 0);
    assert_int_equal(truncate("holes", (off_t)size), 0);
    cs_file map;
    assert_int_equal(cs_file_open(&map, "holes", &err), CUTSET_OK);
    cs_file memory = map;
    memory.fd = -1;
    for (int way = 0; way < 3; way++) {
        cs_rope rope = {0};
        const cs_file *from = way == 0 ? &map : &memory;
        if (way < 2)
            cs_rope_slice(&rope, from, (cs_span){(const char *)map.at, size});
        else
            cs_rope_range(&rope, "holes", 0, size);
        asked a = {0};
        const cutset_progress progress = {ask, &a};
        const char *to = way == 1 ? "/dev/null" : "rope"; /* a rope in memory knows no holes */
        const int fd = open(to, O_RDWR | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(cs_rope_write(&rope, fd, "rope", &progress, &err), CUTSET_INTERRUPTED);
        assert_true(a.most <= step && a.times == 4);
        close(fd);
        cs_rope_fini(&rope);
    }
    cs_file_close(&map);
}

static void test_part_names(void **state)
{
    (void)state;
    assert_true(cs_folder_may_be_part(CS_SPAN("part-000-host.onnx")));
    const char *const bad[] = {"",        ".",         "..",      "../x", "a/b",
                               ".hidden", "plan.json", "weights", "build"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(cs_folder_may_be_part(cs_span_of(bad[i])));
    assert_false(cs_folder_may_be_part((cs_span){"a\0b", 3}));
}

/* ---- a model, made by hand ---- */

enum { N = 32 };

static void put_info(cs_rope *r, uint32_t field, const char *name)
{
    const cs_rope_mark info = cs_rope_open(r, field);
    cs_rope_string(r, 1, cs_span_of(name));
    const cs_rope_mark type = cs_rope_open(r, 2), tensor = cs_rope_open(r, 1);
    cs_rope_number(r, 1, 1);
    const cs_rope_mark shape = cs_rope_open(r, 2);
    for (int i = 0; i < 2; i++) {
        const cs_rope_mark dim = cs_rope_open(r, 1);
        cs_rope_number(r, 1, N);
        cs_rope_close(r, dim);
    }
    cs_rope_close(r, shape);
    cs_rope_close(r, tensor);
    cs_rope_close(r, type);
    cs_rope_close(r, info);
}

static void put_node(cs_rope *r, const char *op, const char *a, const char *b, const char *out)
{
    const cs_rope_mark node = cs_rope_open(r, 1);
    cs_rope_string(r, 1, cs_span_of(a));
    if (b != NULL) cs_rope_string(r, 1, cs_span_of(b));
    cs_rope_string(r, 2, cs_span_of(out));
    cs_rope_string(r, 4, cs_span_of(op));
    cs_rope_close(r, node);
}

static void put_weight(cs_rope *r, const char *name, float x)
{
    static float data[N * N];
    for (int i = 0; i < N * N; i++)
        data[i] = x + (float)i;
    const cs_rope_mark tensor = cs_rope_open(r, 5);
    cs_rope_number(r, 1, N);
    cs_rope_number(r, 1, N);
    cs_rope_number(r, 2, 1);
    cs_rope_string(r, 8, cs_span_of(name));
    cs_rope_string(r, 9, (cs_span){(const char *)data, sizeof data});
    cs_rope_close(r, tensor);
}

static void make_model(const char *path)
{
    cs_rope r = {0};
    cs_rope_number(&r, 1, 8);
    const cs_rope_mark graph = cs_rope_open(&r, 7);
    put_node(&r, "MatMul", "x", "w0", "a");
    put_node(&r, "Sigmoid", "a", NULL, "b");
    put_node(&r, "MatMul", "b", "w1", "c");
    put_node(&r, "MatMul", "c", "w0", "y");
    put_weight(&r, "w0", 0.5f);
    put_weight(&r, "w1", 7.0f);
    put_info(&r, 11, "x");
    put_info(&r, 12, "y");
    cs_rope_close(&r, graph);
    const cs_rope_mark import = cs_rope_open(&r, 8);
    cs_rope_number(&r, 2, 17);
    cs_rope_close(&r, import);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(cs_rope_write(&r, fd, path, NULL, &err), CUTSET_OK);
    close(fd);
    cs_rope_fini(&r);
}

typedef struct made {
    cutset_model *model;
    cutset_target *target;
    cutset_plan *plan;
} made;

static made prepare(void)
{
    static const char yaml[] = "name: mine\nsummary: all but Sigmoid\nweights: baked\n"
                               "memory: {host_base: 0, host_per_weight_byte: 1.0, device_base: 0, "
                               "device_per_weight_byte: 1.0}\n"
                               "nodes: {all: true, except: [Sigmoid]}\n";
    made m;
    cutset_open_opts open;
    cutset_plan_opts opts;
    make_model("m.onnx");
    write_file("mine.yaml", yaml, sizeof yaml - 1);
    cutset_open_opts_init(&open);
    cutset_plan_opts_init(&opts);
    assert_int_equal(cutset_model_open(&m.model, "m.onnx", &open, &err), CUTSET_OK);
    assert_int_equal(cutset_target_open(&m.target, "./mine.yaml", &err), CUTSET_OK);
    const cutset_target *const targets[] = {m.target};
    assert_int_equal(cutset_plan_make(&m.plan, m.model, targets, 1, &opts, &err), CUTSET_OK);
    return m;
}

static void drop(made *m)
{
    cutset_plan_free(m->plan);
    cutset_target_free(m->target);
    cutset_model_free(m->model);
}

/* Entries of a folder; -1: no such folder. */
static int entries(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL) return -1;
    int n = 0;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2;
}

static const char *const mode_names[] = {"auto", "refer", "copy", "inline"};

/* Where each mode is tried: refer needs the model's folder. */
static const char *place(int mode) { return mode == CUTSET_WEIGHTS_REFER ? "." : "out"; }

static void clear(void)
{
    cs_dir_remove_tree("out", NULL);
    unlink("plan.json");
    unlink("part-000-mine.onnx");
    unlink("part-001-host.onnx");
    unlink("part-002-mine.onnx");
}

/* ---- stopping ---- */

static int stop_at;

static int count_down(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    (void)payload;
    (void)phase;
    assert_true(total == 0 || done <= total);
    return stop_at-- == 0;
}

static void test_stopped(void **state)
{
    (void)state;
    made m = prepare();
    for (int mode = 0; mode < 4; mode++) {
        clear();
        const int before = entries(".");
        cutset_split_opts opts;
        cutset_split_opts_init(&opts);
        opts.weights = (cutset_weights)mode;
        opts.progress.call = count_down;
        int n = 0;
        for (;; n++) {
            stop_at = n;
            const cutset_status s = cutset_split_write(m.model, m.plan, place(mode), &opts, &err);
            if (s == CUTSET_OK) break;
            assert_int_equal(s, CUTSET_INTERRUPTED);
            if (entries(".") != before) fail_msg("%s, call %d", mode_names[mode], n);
        }
        assert_true(n > 3);
        assert_true(access(mode == CUTSET_WEIGHTS_REFER ? "plan.json" : "out/plan.json", F_OK) ==
                    0);
    }
    clear();
    drop(&m);
}

static void test_disk_full(void **state)
{
    (void)state;
    made m = prepare();
    clear();
    const int before = entries(".");
    struct rlimit old, small = {.rlim_cur = 2000};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int mode = 2; mode < 4; mode++) {
        cutset_split_opts opts;
        cutset_split_opts_init(&opts);
        opts.weights = (cutset_weights)mode;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const cutset_status s = cutset_split_write(m.model, m.plan, "out", &opts, &err);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_int_equal(s, CUTSET_SYSTEM);
        assert_int_equal(entries("."), before);
    }
    signal(SIGXFSZ, handler);
    drop(&m);
}

/* ---- brutal ---- */

/* Splits over nothing, and over an earlier split (which must survive a failure whole). */
static void test_split_without_memory(void **state)
{
    (void)state;
    made m = prepare();
    cutset_split_opts opts;
    cutset_split_opts_init(&opts);
    for (int mode = 0; mode < 8; mode++) {
        opts.weights = (cutset_weights)(mode % 4);
        if (mode < 5) clear();
        if (mode == 4)
            assert_int_equal(cutset_split_write(m.model, m.plan, "out", &opts, &err), CUTSET_OK);
        const int before = entries("."), inside = entries("out");
        for (long n = 0;; n++) {
            const long live = alloc_live();
            alloc_fail_at(n);
            const cutset_status s =
                cutset_split_write(m.model, m.plan, place(mode % 4), &opts, &err);
            alloc_fail_at(-1);
            if (s == CUTSET_OK) break;
            if (s != CUTSET_SYSTEM || live != alloc_live() || entries(".") != before ||
                entries("out") != inside)
                fail_msg("%s %d, allocation %ld: %d %s, %ld pieces", mode_names[mode % 4], mode, n,
                         s, err.message, alloc_live() - live);
        }
    }
    clear();
    drop(&m);
}

static int forget(void *payload, const void *bytes, size_t len)
{
    (void)payload;
    (void)bytes;
    (void)len;
    return 0;
}

static void test_merge_without_memory(void **state)
{
    (void)state;
    made m = prepare();
    clear();
    for (int mode = 0; mode < 4; mode++) {
        cutset_split_opts opts;
        cutset_split_opts_init(&opts);
        opts.weights = (cutset_weights)mode;
        assert_int_equal(cutset_split_write(m.model, m.plan, place(mode), &opts, &err), CUTSET_OK);
        for (long n = 0;; n++) {
            const long live = alloc_live();
            alloc_fail_at(n);
            const cutset_status s =
                cutset_merge(place(mode), "merged.onnx", NULL, forget, NULL, &err);
            alloc_fail_at(-1);
            if (live != alloc_live()) fail_msg("%s, allocation %ld leaks", mode_names[mode], n);
            if (s == CUTSET_OK) break;
            if (s != CUTSET_SYSTEM || access("merged.onnx", F_OK) == 0)
                fail_msg("%s, allocation %ld: %d %s", mode_names[mode], n, s, err.message);
        }
        cs_file a, b;
        assert_int_equal(cs_file_open(&a, "m.onnx", &err), CUTSET_OK);
        assert_int_equal(cs_file_open(&b, "merged.onnx", &err), CUTSET_OK);
        assert_int_equal(a.len + 8, b.len); /* the graph has got a name */
        cs_file_close(&a);
        cs_file_close(&b);
        unlink("merged.onnx");
    }
    clear();
    drop(&m);
}

static int enter(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL || chdir(root) != 0;
}

static int leave(void **state)
{
    (void)state;
    return chdir("..") != 0 || cs_dir_remove_tree(root, NULL) != CUTSET_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_neighbours_join),
        cmocka_unit_test(test_large_slices_and_ranges),
        cmocka_unit_test(test_long_writes_can_be_stopped),
        cmocka_unit_test(test_part_names),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_split_without_memory),
        cmocka_unit_test(test_merge_without_memory),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
