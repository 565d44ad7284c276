/* Files: maps, sinks that fail, files that appear whole, sparse copies, relative paths. Everything
 * happens in a new folder under the current one, which is removed at the end. */
#include "failing_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static cutset_error err;

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *path, const char *text)
{
    cs_file f;
    assert_int_equal(cs_file_open(&f, path, &err), CUTSET_OK);
    assert_int_equal(f.len, strlen(text));
    assert_memory_equal(f.at, text, f.len);
    cs_file_close(&f);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Names left in the current folder by a file that was written aside. */
static bool left_overs(void) { return system("ls -A | grep -q '^\\.cutset-'") == 0; }

/* ---- in ---- */

static void open_maps(void **state)
{
    (void)state;
    write_text("a.txt", "hello");
    cs_file f;
    memset(&f, 0x55, sizeof f);
    assert_int_equal(cs_file_open(&f, "a.txt", &err), CUTSET_OK);
    assert_int_equal(f.len, 5);
    assert_memory_equal(f.at, "hello", 5);
    assert_true(f.mapped && f.owned && f.fd >= 0);
    struct stat st;
    assert_int_equal(stat("a.txt", &st), 0);
    assert_true(f.dev == st.st_dev && f.ino == st.st_ino);
    assert_true((fcntl(f.fd, F_GETFD) & FD_CLOEXEC) != 0);
    const int fd = f.fd;
    cs_file_close(&f);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    cs_file_close(&f); /* nothing to do, and descriptor 0 is left alone */
    cs_file zeroed = {0};
    cs_file_close(&zeroed);
    assert_true(fcntl(0, F_GETFD) >= 0 || errno != EBADF);

    write_text("empty", "");
    assert_int_equal(cs_file_open(&f, "empty", &err), CUTSET_OK);
    assert_int_equal(f.len, 0);
    assert_non_null(f.at);
    assert_false(f.mapped);
    cs_file_close(&f);

    cs_file_borrow(&f, "xyz", 3);
    assert_int_equal(f.len, 3);
    assert_int_equal(f.fd, -1);
    cs_file_close(&f);
}

/* Only what can come back from a file may be let go of. */
static void rest_keeps_bytes(void **state)
{
    (void)state;
    write_text("a.txt", "hello");
    cs_file f;
    assert_int_equal(cs_file_open(&f, "a.txt", &err), CUTSET_OK);
    cs_file_rest(&f);
    assert_memory_equal(f.at, "hello", 5);
    cs_file_close(&f);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *bytes = aligned_alloc(page, page);
    assert_non_null(bytes);
    memset(bytes, 'x', page);
    cs_file_borrow(&f, bytes, page);
    cs_file_rest(&f);
    assert_true(bytes[0] == 'x' && bytes[page - 1] == 'x');
    free(bytes);
}

static void open_refuses(void **state)
{
    (void)state;
    cs_file f;
    assert_int_equal(cs_file_open(&f, "missing", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot open missing: No such file or directory");
    assert_int_equal(err.system, ENOENT);
    cs_file_close(&f); /* a failed one too may be closed */
    mkdir("model.onnx", 0777);
    assert_int_equal(cs_file_open(&f, "model.onnx", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "model.onnx is a folder: name a file");
    rmdir("model.onnx");
    assert_int_equal(mkfifo("pipe", 0600), 0); /* must not wait for a writer */
    assert_int_equal(cs_file_open(&f, "pipe", &err), CUTSET_SYSTEM);
    assert_int_equal(cs_file_open(&f, "/dev/zero", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message,
                        "/dev/zero is no regular file: name one, or - for standard input");
    assert_int_equal(cs_file_open(&f, "missing", NULL), CUTSET_SYSTEM);
    unlink("pipe");
}

static void open_stdin(void **state)
{
    (void)state;
    enum { N = 300001 };
    char *bytes = malloc(N);
    for (size_t i = 0; i < N; i++)
        bytes[i] = (char)(i * 7 + (i >> 8));
    FILE *w = fopen("in.bin", "w");
    fwrite(bytes, 1, N, w);
    fclose(w);
    const int saved = dup(0);
    for (long n = 0;; n++) { /* with each allocation failing, then with none */
        const int fd = open("in.bin", O_RDONLY);
        dup2(fd, 0);
        close(fd);
        cs_file f;
        alloc_fail_at(n);
        const cutset_status status = cs_file_open(&f, "-", &err);
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        if (status == CUTSET_OK) {
            assert_int_equal(f.len, N);
            assert_memory_equal(f.at, bytes, N);
            assert_int_equal(f.fd, -1);
            assert_false(f.mapped);
        } else {
            assert_int_equal(status, CUTSET_SYSTEM);
            assert_string_equal(err.message, "out of memory");
        }
        cs_file_close(&f);
        assert_int_equal(alloc_live(), 0);
        if (!failed) break;
    }
    const int folder = open(".", O_RDONLY);
    dup2(folder, 0);
    close(folder);
    cs_file f;
    assert_int_equal(cs_file_open(&f, "-", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot read standard input: Is a directory");
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    close(nothing);
    assert_int_equal(cs_file_open(&f, "-", &err), CUTSET_OK);
    assert_int_equal(f.len, 0);
    assert_non_null(f.at);
    cs_file_close(&f);
    dup2(saved, 0);
    close(saved);
    free(bytes);
    unlink("in.bin");
    assert_int_equal(alloc_live(), 0);
}

/* ---- the sink ---- */

typedef struct sheet {
    char *at;
    size_t len, calls, refuse_at;
} sheet;

static int gather(void *payload, const void *bytes, size_t len)
{
    sheet *t = payload;
    if (++t->calls == t->refuse_at) return 1;
    t->at = realloc(t->at, t->len + len + 1);
    memcpy(t->at + t->len, bytes, len);
    t->len += len;
    t->at[t->len] = '\0';
    return 0;
}

static void sink_keeps_order(void **state)
{
    (void)state;
    sheet got = {0}, want = {0};
    cs_out out;
    assert_int_equal(cs_out_call(&out, gather, &got, &err), CUTSET_OK);
    static char big[200000];
    memset(big, 'b', sizeof big - 1);
    for (int i = 0; i < 3000; i++) {
        char line[64];
        const int n = snprintf(line, sizeof line, "line %d of %s\n", i, "text");
        gather(&want, line, (size_t)n);
        if (i % 2 == 0)
            cs_out_printf(&out, "line %d of %s\n", i, "text");
        else
            cs_out_span(&out, (cs_span){line, (size_t)n});
        if (i % 1000 != 500) continue;
        gather(&want, big, sizeof big - 1);
        if (i < 1000)
            cs_out_puts(&out, big);
        else
            cs_out_printf(&out, "%s", big); /* more than the buffer holds */
    }
    cs_out_put(&out, NULL, 0);
    assert_int_equal(out.total, want.len);
    assert_true(got.calls < 30);
    cs_out_flush(&out);
    assert_int_equal(got.len, want.len);
    assert_int_equal(cs_out_done(&out, "x", &err), CUTSET_OK);
    assert_memory_equal(got.at, want.at, want.len);
    free(got.at);
    free(want.at);
    assert_int_equal(alloc_live(), 0);
}

static void sink_fills_exactly(void **state)
{
    (void)state;
    static char bytes[70000];
    memset(bytes, 'x', sizeof bytes);
    for (size_t first = 65534; first <= 65537; first++) {
        for (size_t second = 0; second < 4; second++) {
            sheet got = {0};
            cs_out out;
            assert_int_equal(cs_out_call(&out, gather, &got, &err), CUTSET_OK);
            cs_out_put(&out, bytes, first);
            cs_out_printf(&out, "%.*s", (int)second, "yyy");
            assert_int_equal(cs_out_done(&out, "x", &err), CUTSET_OK);
            assert_int_equal(got.len, first + second);
            for (size_t i = 0; i < got.len; i++)
                assert_int_equal(got.at[i], i < first ? 'x' : 'y');
            free(got.at);
        }
    }
}

static void sink_failure_sticks(void **state)
{
    (void)state;
    sheet got = {.refuse_at = 2};
    cs_out out;
    assert_int_equal(cs_out_call(&out, gather, &got, &err), CUTSET_OK);
    for (int i = 0; i < 100000; i++)
        cs_out_puts(&out, "0123456789");
    assert_int_equal(out.failed, CUTSET_SYSTEM);
    assert_int_equal(got.calls, 2);
    assert_int_equal(cs_out_done(&out, "plan.json", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot write plan.json: the write function said stop");
    assert_int_equal(got.calls, 2);
    free(got.at);

    for (long n = 0; n < 2; n++) {
        static char long_text[100000];
        memset(long_text, 'z', sizeof long_text - 1);
        sheet none = {0};
        alloc_fail_at(n);
        const cutset_status status = cs_out_call(&out, gather, &none, &err);
        assert_int_equal(status, n == 0 ? CUTSET_SYSTEM : CUTSET_OK);
        cs_out_puts(&out, "x"); /* safe all the same */
        cs_out_printf(&out, "%s", long_text);
        alloc_fail_at(-1);
        assert_int_equal(cs_out_done(&out, "x", &err), CUTSET_SYSTEM);
        assert_string_equal(err.message, "out of memory");
        free(none.at);
    }
    assert_int_equal(alloc_live(), 0);
}

static void sink_full_disk(void **state)
{
    (void)state;
    const int fd = open("/dev/full", O_WRONLY);
    if (fd < 0) skip();
    cs_out out;
    assert_int_equal(cs_out_fd(&out, fd, &err), CUTSET_OK);
    cs_out_puts(&out, "x");
    assert_int_equal(out.failed, CUTSET_OK); /* still in the buffer */
    assert_int_equal(cs_out_done(&out, "plan.json", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot write plan.json: No space left on device");
    assert_int_equal(err.system, ENOSPC);
    assert_true(fcntl(fd, F_GETFD) >= 0); /* not ours to close */
    close(fd);
}

static void sink_closed_pipe(void **state)
{
    (void)state;
    void (*old)(int) = signal(SIGPIPE, SIG_IGN);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    cs_out out;
    assert_int_equal(cs_out_fd(&out, ends[1], &err), CUTSET_OK);
    cs_out_puts(&out, "x");
    assert_int_equal(cs_out_done(&out, "standard output", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot write standard output: Broken pipe");
    assert_int_equal(err.system, EPIPE);
    close(ends[1]);
    signal(SIGPIPE, old);
}

static void on_alarm(int number) { (void)number; }

/* A slow reader behind a pipe that does not block, and a signal every millisecond: short writes,
 * EAGAIN and EINTR. Every byte arrives, in order. */
static void sink_short_writes(void **state)
{
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        if (!blocking) fcntl(ends[1], F_SETFL, O_NONBLOCK);
        const pid_t child = fork();
        if (child == 0) {
            close(ends[1]);
            unsigned char bytes[30000];
            unsigned want = 0;
            ssize_t n;
            while ((n = read(ends[0], bytes, sizeof bytes)) > 0) {
                for (ssize_t i = 0; i < n; i++)
                    if (bytes[i] != (unsigned char)(want++ % 251)) _exit(1);
                usleep(2000);
            }
            _exit(want == 1000000 ? 0 : 2);
        }
        close(ends[0]);
        struct sigaction act = {.sa_handler = on_alarm}, old; /* no SA_RESTART */
        sigaction(SIGALRM, &act, &old);
        const struct itimerval tick = {{0, 1000}, {0, 1000}}, off = {0};
        setitimer(ITIMER_REAL, &tick, NULL);
        static unsigned char bytes[1000000];
        for (unsigned i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(i % 251);
        cs_out out;
        assert_int_equal(cs_out_fd(&out, ends[1], &err), CUTSET_OK);
        for (size_t at = 0, n; at < sizeof bytes; at += n) {
            n = at % 7 == 0 ? 150001 : 997;
            if (n > sizeof bytes - at) n = sizeof bytes - at;
            cs_out_put(&out, bytes + at, n);
        }
        const cutset_status status = cs_out_done(&out, "pipe", &err);
        setitimer(ITIMER_REAL, &off, NULL);
        sigaction(SIGALRM, &old, NULL);
        close(ends[1]);
        int result = -1;
        waitpid(child, &result, 0);
        assert_int_equal(status, CUTSET_OK);
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), 0);
    }
}

/* ---- whole files ---- */

static void put_whole(const char *path, const char *text)
{
    cs_whole w;
    assert_int_equal(cs_whole_open(&w, path, &err), CUTSET_OK);
    assert_int_equal(write(w.fd, text, strlen(text)), strlen(text));
    assert_int_equal(cs_whole_keep(&w, &err), CUTSET_OK);
    cs_whole_drop(&w); /* safe after keep */
}

static void whole_appears(void **state)
{
    (void)state;
    unlink("w.txt");
    cs_whole w;
    assert_int_equal(cs_whole_open(&w, "w.txt", &err), CUTSET_OK);
    assert_int_equal(write(w.fd, "new", 3), 3);
    assert_false(exists("w.txt"));
    assert_true(left_overs());
    assert_int_equal(cs_whole_keep(&w, &err), CUTSET_OK);
    assert_holds("w.txt", "new");
    assert_false(left_overs());
    struct stat st;
    const mode_t mask = umask(027);
    put_whole("w.txt", "newer");
    umask(mask);
    assert_int_equal(stat("w.txt", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_holds("w.txt", "newer");

    assert_int_equal(cs_whole_open(&w, "w.txt", &err), CUTSET_OK);
    assert_int_equal(write(w.fd, "lost", 4), 4);
    cs_whole_drop(&w);
    cs_whole_drop(&w);
    assert_holds("w.txt", "newer");
    assert_false(left_overs());
    cs_whole zeroed = {0};
    cs_whole_drop(&zeroed);
    assert_true(fcntl(0, F_GETFD) >= 0 || errno != EBADF);
    assert_int_equal(alloc_live(), 0);
}

/* Two at once, and one whose aside name a killed run has left. */
static void whole_names_are_unique(void **state)
{
    (void)state;
    cs_whole a, b;
    assert_int_equal(cs_whole_open(&a, "w.txt", &err), CUTSET_OK);
    assert_int_equal(cs_whole_open(&b, "w.txt", &err), CUTSET_OK);
    assert_string_not_equal(a.aside, b.aside);
    assert_int_equal(write(a.fd, "a", 1), 1);
    assert_int_equal(write(b.fd, "b", 1), 1);
    assert_int_equal(cs_whole_keep(&b, &err), CUTSET_OK);
    assert_int_equal(cs_whole_keep(&a, &err), CUTSET_OK);
    assert_holds("w.txt", "a");
}

static void whole_refuses(void **state)
{
    (void)state;
    cs_whole w;
    assert_int_equal(cs_whole_open(&w, "no/such/x.json", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot write no/such/x.json: its folder does not exist, "
                                     "make it first");
    assert_int_equal(err.system, ENOENT);
    cs_whole_drop(&w);
    mkdir("dir", 0777);
    assert_int_equal(cs_whole_open(&w, "dir", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "dir is a folder: name a file");
    assert_int_equal(cs_whole_open(&w, "a.txt/x", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot write a.txt/x: Not a directory");

    unlink("late"); /* a folder takes the name while we write: the rename fails, nothing is left */
    assert_int_equal(cs_whole_open(&w, "late", &err), CUTSET_OK);
    mkdir("late", 0777);
    assert_int_equal(cs_whole_keep(&w, &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot write late: Is a directory");
    rmdir("late");
    assert_false(left_overs());
    for (long n = 0;; n++) {
        alloc_fail_at(n);
        const cutset_status status = cs_whole_open(&w, "w.txt", &err);
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(status, failed ? CUTSET_SYSTEM : CUTSET_OK);
        cs_whole_drop(&w);
        assert_int_equal(alloc_live(), 0);
        assert_false(left_overs());
        if (!failed) break;
    }
}

/* A link stays a link; a device is written to, never replaced. */
static void whole_through_links(void **state)
{
    (void)state;
    mkdir("real", 0777);
    write_text("real/x", "old");
    assert_int_equal(symlink("real/x", "link"), 0);
    put_whole("link", "new");
    struct stat st;
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_holds("real/x", "new");

    assert_int_equal(mkfifo("pipe", 0600), 0);
    const int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    put_whole("pipe", "straight");
    char bytes[16] = "";
    assert_int_equal(read(reader, bytes, sizeof bytes), 8);
    assert_string_equal(bytes, "straight");
    close(reader);
    unlink("pipe");
    put_whole("/dev/null", "gone");
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(alloc_live(), 0);
}

/* ---- copies ---- */

enum { PAGE = 4096, BIG = 64 << 20 };

/* 64 MiB with three islands of data. */
static void make_sparse(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, BIG), 0);
    for (int i = 0; i < 3; i++) {
        char page[PAGE];
        for (int k = 0; k < PAGE; k++)
            page[k] = (char)(i * 31 + k + 1);
        assert_int_equal(pwrite(fd, page, PAGE, (off_t)(5 + 20 * i) << 20), PAGE);
    }
    close(fd);
}

static void assert_same_range(const char *to, size_t at, const char *from, size_t offset,
                              size_t len)
{
    cs_file a, b;
    assert_int_equal(cs_file_open(&a, to, &err), CUTSET_OK);
    assert_int_equal(cs_file_open(&b, from, &err), CUTSET_OK);
    assert_true(a.len >= at + len && b.len >= offset + len);
    assert_true(memcmp(a.at + at, b.at + offset, len) == 0);
    cs_file_close(&a);
    cs_file_close(&b);
}

static long blocks(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (long)st.st_blocks;
}

static void copy_keeps_holes(void **state)
{
    (void)state;
    make_sparse("sparse");
    if (blocks("sparse") * 512 > BIG / 2) skip(); /* a file system without holes */
    const struct {
        size_t offset, len, prefix;
    } cases[] = {
        {0, BIG, 0},
        {0, BIG, 3},
        {(5 << 20) + 100, 21 << 20, 5000}, /* begins inside data, ends inside data */
        {(5 << 20) + 100, 10, 1},
        {6 << 20, 10 << 20, 7}, /* nothing but a hole */
        {60 << 20, 4 << 20, 0}, /* a hole up to the end of the file */
        {BIG, 0, 9},
        {1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t offset = cases[i].offset, len = cases[i].len, prefix = cases[i].prefix;
        const int in = open("sparse", O_RDONLY);
        const int fd = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0666);
        char head[5000];
        memset(head, 'h', sizeof head);
        assert_int_equal(write(fd, head, prefix), prefix);
        assert_int_equal(cs_copy_range(fd, in, offset, len, "sparse", &err), CUTSET_OK);
        assert_int_equal(lseek(fd, 0, SEEK_CUR), prefix + len);
        struct stat st;
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, prefix + len);
        assert_int_equal(write(fd, "end", 3), 3); /* the next bytes go behind it */
        close(fd);
        close(in);
        assert_same_range("copy", prefix, "sparse", offset, len);
        if (len > 1 << 20) assert_true(blocks("copy") <= blocks("sparse") + 64);
        cs_file f;
        assert_int_equal(cs_file_open(&f, "copy", &err), CUTSET_OK);
        assert_memory_equal(f.at + prefix + len, "end", 3);
        for (size_t k = 0; k < prefix; k++)
            assert_int_equal(f.at[k], 'h');
        cs_file_close(&f);
    }
}

/* Old bytes behind the position must not shine through the source's holes. */
static void copy_overwrites(void **state)
{
    (void)state;
    make_sparse("sparse");
    const int in = open("sparse", O_RDONLY);
    for (int appending = 0; appending < 2; appending++) {
        const int flags = O_RDWR | O_CREAT | O_TRUNC | (appending ? O_APPEND : 0);
        const int fd = open("copy", flags, 0666);
        static char junk[1 << 20];
        memset(junk, 'j', sizeof junk);
        /* appending: an empty file is the case where its position looks right */
        if (!appending) assert_int_equal(write(fd, junk, sizeof junk), sizeof junk);
        lseek(fd, appending ? 0 : 10, SEEK_SET);
        assert_int_equal(cs_copy_range(fd, in, 4 << 20, 2 << 20, "sparse", &err), CUTSET_OK);
        close(fd);
        assert_same_range("copy", appending ? 0 : 10, "sparse", 4 << 20, 2 << 20);
    }
    close(in);
}

/* Destinations that copy_file_range refuses. */
static void copy_to_a_pipe(void **state)
{
    (void)state;
    make_sparse("sparse");
    const int in = open("sparse", O_RDONLY);
    FILE *p = popen("cat > copy", "w");
    assert_int_equal(cs_copy_range(fileno(p), in, 4 << 20, 3 << 20, "sparse", &err), CUTSET_OK);
    assert_int_equal(pclose(p), 0);
    assert_same_range("copy", 0, "sparse", 4 << 20, 3 << 20);
    const int full = open("/dev/full", O_WRONLY);
    if (full >= 0) {
        assert_int_equal(cs_copy_range(full, in, 0, 10, "sparse", &err), CUTSET_SYSTEM);
        assert_string_equal(err.message, "cannot copy sparse: No space left on device");
        close(full);
    }
    close(in);
}

static void copy_short_source(void **state)
{
    (void)state;
    write_text("short", "0123456789");
    const int in = open("short", O_RDONLY);
    const int fd = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0666);
    assert_int_equal(cs_copy_range(fd, in, 4, 6, "short", &err), CUTSET_OK);
    assert_int_equal(cs_copy_range(fd, in, 4, 7, "weights.bin", &err), CUTSET_BAD);
    assert_string_equal(err.message, "weights.bin is too short: 7 bytes are wanted at offset 4, it "
                                     "has 10; it was cut or changed");
    assert_int_equal(cs_copy_range(fd, in, UINT64_MAX, 2, "x", &err), CUTSET_BAD);
    assert_int_equal(cs_copy_range(fd, in, 2, UINT64_MAX, "x", &err), CUTSET_BAD);
    assert_int_equal(cs_copy_range(-1, in, 0, 2, "x", &err), CUTSET_SYSTEM);
    assert_int_equal(cs_copy_range(fd, -1, 0, 2, "x", &err), CUTSET_SYSTEM);
    const int zero = open("/dev/null", O_RDONLY); /* ends at once */
    assert_int_equal(cs_copy_range(fd, zero, 0, 2, "null", &err), CUTSET_BAD);
    close(zero);
    close(fd);
    close(in);
    assert_holds("copy", "456789");
}

/* A disk that fills up in the middle, through a limit on the size of files. */
static void copy_hits_a_limit(void **state)
{
    (void)state;
    make_sparse("sparse");
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    struct rlimit was, now;
    getrlimit(RLIMIT_FSIZE, &was);
    now = was;
    now.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_FSIZE, &now);
    const int in = open("sparse", O_RDONLY);
    const int fd = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0666);
    const cutset_status status = cs_copy_range(fd, in, 5 << 20, 30 << 20, "sparse", &err);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, old);
    close(fd);
    close(in);
    assert_int_equal(status, CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot copy sparse: File too large");
}

/* ---- paths ---- */

static void assert_heap(char *path, const char *want)
{
    assert_non_null(path);
    assert_string_equal(path, want);
    cs_free(path);
}

static void paths_as_text(void **state)
{
    (void)state;
    assert_heap(cs_path_join("a", "b"), "a/b");
    assert_heap(cs_path_join("a/", "b"), "a/b");
    assert_heap(cs_path_join("/", "b"), "/b");
    assert_heap(cs_path_join("", "b"), "b");
    assert_heap(cs_path_join(".", "b"), "b");
    assert_heap(cs_path_join("..", "b"), "../b");
    assert_heap(cs_path_join("a", "/b"), "/b");
    assert_heap(cs_path_join("a", ""), "a/");
    assert_heap(cs_path_dir("a/b"), "a");
    assert_heap(cs_path_dir("a/b/"), "a");
    assert_heap(cs_path_dir("a//b"), "a");
    assert_heap(cs_path_dir("/a/b/c"), "/a/b");
    assert_heap(cs_path_dir("/a"), "/");
    assert_heap(cs_path_dir("/"), "/");
    assert_heap(cs_path_dir("//"), "/");
    assert_heap(cs_path_dir("a"), ".");
    assert_heap(cs_path_dir("a/"), ".");
    assert_heap(cs_path_dir(""), ".");
    alloc_fail_at(0);
    assert_null(cs_path_join("a", "b"));
    assert_null(cs_path_dir("a/b"));
    alloc_fail_at(-1);
}

static void assert_relative(const char *dir, const char *path, const char *want)
{
    char *out = NULL;
    if (cs_path_relative(&out, dir, path, &err) != CUTSET_OK) fail_msg("%s", err.message);
    if (strcmp(out, want) != 0) fail_msg("%s from %s: %s, not %s", path, dir, out, want);
    cs_free(out);
}

static void paths_relative(void **state)
{
    (void)state;
    assert_int_equal(system("mkdir -p b/out b/outer b/c/d; touch b/model.onnx b/out/x"), 0);
    assert_relative("b/out", "b/model.onnx", "../model.onnx");
    assert_relative("b/out/", "./b//model.onnx", "../model.onnx");
    assert_relative("b", "b/model.onnx", "model.onnx");
    assert_relative("b/out", "b/out/x", "x");
    assert_relative("b/out", "b/outer", "../outer");
    assert_relative("b/out", "b/outer/x", "../outer/x");
    assert_relative("b/outer", "b/out", "../out");
    assert_relative("b/c/d", "b/model.onnx", "../../model.onnx");
    assert_relative("b/c/d", "b", "../..");
    assert_relative("b", "b/c/d", "c/d");
    assert_relative("b", "b", ".");
    assert_relative(".", "b/out/..", "b");
    assert_relative("b/new", "b/model.onnx", "../model.onnx"); /* the folder is yet to come */
    assert_relative("b", "b/new.onnx", "new.onnx");
    assert_relative("/", "/dev/null", "dev/null");
    assert_relative("/dev", "/", "..");
    assert_relative("/dev", "/dev/null", "null");
    assert_relative("/", "/", ".");

    assert_int_equal(symlink("c/d", "b/short"), 0); /* ".." of a linked folder is the real one's */
    assert_relative("b/short", "b/model.onnx", "../../model.onnx");
    assert_relative("b", "b/short/x", "c/d/x");
    assert_int_equal(symlink("out/x", "b/cached.onnx"), 0); /* a linked file keeps its name */
    assert_relative("b/out", "b/cached.onnx", "../cached.onnx");

    char *out = NULL;
    assert_int_equal(cs_path_relative(&out, "b", "no/such/file", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot find no/such/file: No such file or directory");
    assert_int_equal(cs_path_relative(&out, "no/such/dir", "b", &err), CUTSET_SYSTEM);
    alloc_fail_at(0);
    assert_int_equal(cs_path_relative(&out, "b", "b/x", &err), CUTSET_SYSTEM);
    alloc_fail_at(-1);
    assert_null(out);
    assert_int_equal(alloc_live(), 0);
}

static void trees_are_removed(void **state)
{
    (void)state;
    assert_int_equal(system("mkdir -p t/a/b/c t/d outside; touch t/x t/a/b/y outside/kept;"
                            "ln -s ../outside t/link; ln -s nowhere t/dangling"),
                     0);
    assert_int_equal(cs_dir_remove_tree("t", &err), CUTSET_OK);
    assert_false(exists("t"));
    assert_true(exists("outside/kept"));                        /* links are not followed */
    assert_int_equal(cs_dir_remove_tree("t", &err), CUTSET_OK); /* nothing there: done */
    assert_int_equal(cs_dir_remove_tree("outside/kept/x", &err), CUTSET_SYSTEM);
    assert_string_equal(err.message, "cannot remove outside/kept/x: Not a directory");
}

static char place[] = "test_base_file.XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(place) == NULL || chdir(place) != 0;
}

static int leave(void **state)
{
    (void)state;
    return chdir("..") != 0 || cs_dir_remove_tree(place, NULL) != CUTSET_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_maps),
        cmocka_unit_test(rest_keeps_bytes),
        cmocka_unit_test(open_refuses),
        cmocka_unit_test(open_stdin),
        cmocka_unit_test(sink_keeps_order),
        cmocka_unit_test(sink_fills_exactly),
        cmocka_unit_test(sink_failure_sticks),
        cmocka_unit_test(sink_full_disk),
        cmocka_unit_test(sink_closed_pipe),
        cmocka_unit_test(sink_short_writes),
        cmocka_unit_test(whole_appears),
        cmocka_unit_test(whole_names_are_unique),
        cmocka_unit_test(whole_refuses),
        cmocka_unit_test(whole_through_links),
        cmocka_unit_test(copy_keeps_holes),
        cmocka_unit_test(copy_overwrites),
        cmocka_unit_test(copy_to_a_pipe),
        cmocka_unit_test(copy_short_source),
        cmocka_unit_test(copy_hits_a_limit),
        cmocka_unit_test(paths_as_text),
        cmocka_unit_test(paths_relative),
        cmocka_unit_test(trees_are_removed),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
