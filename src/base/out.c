/* The sink: bytes gathered in 64 KiB and handed to a descriptor or to a function.
 *
 * The first failure sticks: later puts cost nothing and do nothing, and cs_out_done tells it. So
 * code that writes has no error paths of its own. Interrupted and short writes go on; a descriptor
 * that would block is waited for. A closed pipe is a failure like any other (EPIPE), where the host
 * program ignores SIGPIPE; the library never touches signals.
 */
#include "base/file.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CS_OUT_BUFFER = 1 << 16 };

static cutset_status start(cs_out *out, cutset_error *err)
{
    out->buffer = cs_alloc(CS_OUT_BUFFER, 1);
    if (out->buffer != NULL) return CUTSET_OK;
    out->failed = CUTSET_SYSTEM; /* puts stay safe where the caller goes on */
    out->saved_errno = ENOMEM;
    return cs_fail_memory(err);
}

cutset_status cs_out_fd(cs_out *out, int fd, cutset_error *err)
{
    *out = (cs_out){.fd = fd};
    return start(out, err);
}

cutset_status cs_out_call(cs_out *out, cutset_write_fn fn, void *payload, cutset_error *err)
{
    *out = (cs_out){.write = fn, .payload = payload, .fd = -1};
    return start(out, err);
}

/* All of it, or false with errno. */
static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, bytes, len);
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        } else if (n == 0) {
            errno = EIO;
            return false;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            if (poll(&wait, 1, -1) < 0 && errno != EINTR) return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

static void deliver(cs_out *out, const char *bytes, size_t len)
{
    if (out->failed != CUTSET_OK || len == 0) return;
    if (out->write != NULL) {
        if (out->write(out->payload, bytes, len) != 0) out->failed = CUTSET_SYSTEM;
    } else if (!write_all(out->fd, bytes, len)) {
        out->saved_errno = errno;
        out->failed = CUTSET_SYSTEM;
    }
}

void cs_out_flush(cs_out *out)
{
    deliver(out, out->buffer, out->used);
    out->used = 0;
}

void cs_out_put(cs_out *out, const void *bytes, size_t len)
{
    if (out->failed != CUTSET_OK || len == 0) return;
    out->total += len;
    if (len > CS_OUT_BUFFER - out->used) cs_out_flush(out);
    if (len >= CS_OUT_BUFFER) {
        deliver(out, bytes, len);
        return;
    }
    memcpy(out->buffer + out->used, bytes, len);
    out->used += len;
}

void cs_out_puts(cs_out *out, const char *text) { cs_out_put(out, text, strlen(text)); }

void cs_out_span(cs_out *out, cs_span text) { cs_out_put(out, text.at, text.len); }

/* Text that is longer than the buffer has left: formatted once more, on the heap. */
static void print_long(cs_out *out, size_t len, const char *format, va_list args)
{
    char *text = cs_alloc(len + 1, 1);
    if (text == NULL) {
        out->failed = CUTSET_SYSTEM;
        out->saved_errno = ENOMEM;
        return;
    }
    vsnprintf(text, len + 1, format, args);
    cs_out_put(out, text, len);
    cs_free(text);
}

void cs_out_printf(cs_out *out, const char *format, ...)
{
    if (out->failed != CUTSET_OK) return;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const size_t room = CS_OUT_BUFFER - out->used;
    const int n = vsnprintf(out->buffer + out->used, room, format, args);
    if (n < 0) {
        out->failed = CUTSET_SYSTEM;
        out->saved_errno = errno;
    } else if ((size_t)n < room) {
        out->used += (size_t)n;
        out->total += (size_t)n;
    } else {
        print_long(out, (size_t)n, format, again);
    }
    va_end(again);
    va_end(args);
}

cutset_status cs_out_done(cs_out *out, const char *what, cutset_error *err)
{
    cs_out_flush(out);
    cs_free(out->buffer);
    out->buffer = NULL;
    if (out->failed == CUTSET_OK) return CUTSET_OK;
    if (what == NULL) what = "the output";
    if (out->saved_errno == 0)
        return cs_fail(err, out->failed, "cannot write %s: the write function said stop", what);
    if (out->saved_errno == ENOMEM) return cs_fail_memory(err);
    errno = out->saved_errno;
    return cs_fail_errno(err, "cannot write %s", what);
}
