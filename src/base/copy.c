/* Copying a range of a file into another without passing it through user memory, holes kept.
 *
 * The source is walked with SEEK_DATA and SEEK_HOLE. Its data go by copy_file_range (which may
 * share blocks), else sendfile, else plain reads: each is tried from where the last one stopped.
 * Its holes are skipped in the destination; at the end the file is made as long as its position;
 * that is right only where nothing stands behind the position yet, so anything else (a pipe, a file
 * opened for appending, a file that is overwritten) gets the zeros written.
 *
 * The source is read at offsets of our own; its file position means nothing (threads may share it).
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct copy {
    int to, from;
    off_t at, end; /* in the source */
    enum { KERNEL, SENDFILE, PLAIN } way;
} copy;

/* Bytes moved, 0 at the end of the source, -1 with errno. Moves c->at. */
static ssize_t move_plain(copy *c, size_t len)
{
    char bytes[1 << 15];
    const ssize_t got = pread(c->from, bytes, len < sizeof bytes ? len : sizeof bytes, c->at);
    for (ssize_t put = 0; put < got;) {
        const ssize_t n = write(c->to, bytes + put, (size_t)(got - put));
        if (n > 0) {
            put += n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = c->to, .events = POLLOUT};
            if (poll(&wait, 1, -1) < 0 && errno != EINTR) return -1;
        } else if (n == 0 || errno != EINTR) {
            if (n == 0) errno = EIO;
            return -1;
        }
    }
    if (got > 0) c->at += got;
    return got;
}

static ssize_t move_some(copy *c, size_t len)
{
    const size_t most = (size_t)1 << 30;
    if (len > most) len = most;
    switch (c->way) {
    case KERNEL:
        return copy_file_range(c->from, &c->at, c->to, NULL, len, 0);
    case SENDFILE:
        return sendfile(c->to, c->from, &c->at, len);
    case PLAIN:
        break;
    }
    return move_plain(c, len);
}

/* Errors that no other way of copying would avoid. */
static bool is_final(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO || error == EPIPE;
}

static cutset_status too_short(const copy *c, const char *what, cutset_error *err)
{
    return cs_fail(err, CUTSET_BAD,
                   "%s is too short: it ends before byte %jd, bytes up to %jd are wanted; it was "
                   "cut or changed",
                   what, (intmax_t)c->at + 1, (intmax_t)c->end);
}

/* Copies data up to source offset `end`. */
static cutset_status move_data(copy *c, off_t end, const char *what, cutset_error *err)
{
    while (c->at < end) {
        const ssize_t n = move_some(c, (size_t)(end - c->at));
        if (n > 0 || (n < 0 && errno == EINTR)) continue;
        if (c->way != PLAIN && (n == 0 || !is_final(errno)))
            c->way++; /* 0 too: some kernels say so for files they cannot copy */
        else if (n == 0)
            return too_short(c, what, err);
        else
            return cs_fail_errno(err, "cannot copy %s", what);
    }
    return CUTSET_OK;
}

/* Where skipping in the destination leaves a hole: it is regular, not for appending, and ends at or
 * before its position. */
static bool can_skip(int fd)
{
    struct stat st;
    const off_t position = lseek(fd, 0, SEEK_CUR);
    const int flags = fcntl(fd, F_GETFL);
    return position >= 0 && flags >= 0 && (flags & O_APPEND) == 0 && fstat(fd, &st) == 0 &&
           S_ISREG(st.st_mode) && st.st_size <= position;
}

/* The source's next stretch of data from c->at on; file systems without holes have one stretch.
 * Nothing but a hole before c->end: *start is c->end. */
static void next_data(const copy *c, off_t *start, off_t *end)
{
    *start = lseek(c->from, c->at, SEEK_DATA);
    if (*start < 0) {
        *start = errno == ENXIO ? c->end : c->at;
        *end = c->end;
        return;
    }
    *end = lseek(c->from, *start, SEEK_HOLE);
    if (*end < 0 || *end > c->end) *end = c->end;
    if (*start > c->end) *start = c->end;
}

static cutset_status copy_sparse(copy *c, const char *what, cutset_error *err)
{
    while (c->at < c->end) {
        off_t start, end;
        next_data(c, &start, &end);
        if (start > c->at && lseek(c->to, start - c->at, SEEK_CUR) < 0)
            return cs_fail_errno(err, "cannot copy %s", what);
        c->at = start;
        const cutset_status status = move_data(c, end, what, err);
        if (status != CUTSET_OK) return status;
    }
    const off_t position = lseek(c->to, 0, SEEK_CUR);
    struct stat st;
    if (position < 0 || fstat(c->to, &st) != 0 ||
        (st.st_size < position && ftruncate(c->to, position) != 0))
        return cs_fail_errno(err, "cannot copy %s", what);
    return CUTSET_OK;
}

cutset_status cs_copy_range(int fd, int in, uint64_t offset, uint64_t len, const char *what,
                            cutset_error *err)
{
    struct stat st;
    if (fstat(in, &st) != 0) return cs_fail_errno(err, "cannot read %s", what);
    const uint64_t most = INT64_MAX;
    if (offset > most || len > most - offset ||
        (S_ISREG(st.st_mode) && offset + len > (uint64_t)st.st_size))
        return cs_fail(err, CUTSET_BAD,
                       "%s is too short: %" PRIu64 " bytes are wanted at offset %" PRIu64
                       ", it has %jd; it was cut or changed",
                       what, len, offset, (intmax_t)st.st_size);
    copy c = {.to = fd, .from = in, .at = (off_t)offset, .end = (off_t)(offset + len)};
    if (S_ISREG(st.st_mode) && can_skip(fd)) return copy_sparse(&c, what, err);
    return move_data(&c, c.end, what, err);
}
