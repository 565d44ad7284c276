/* Errors: the one place that fills a cutset_error.
 *
 * A message is formatted into a buffer of its own first (an argument may be the old message), then
 * copied byte by byte with control bytes written as \xNN, so that it is always one line. What does
 * not fit is cut between whole characters and ends in "...". The text of errno, when there is one,
 * is never what gets cut: it is the cause.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE = sizeof((cutset_error *)0)->message };

/* Bytes of the escaped form of `c`, written to `out` (4 bytes). */
static size_t escape(unsigned char c, char *out)
{
    static const char hex[] = "0123456789abcdef";
    if (c >= 0x20 && c != 0x7f) {
        out[0] = (char)c;
        return 1;
    }
    memcpy(out, "\\x", 2);
    out[2] = hex[c >> 4];
    out[3] = hex[c & 15];
    return 4;
}

/* Drops a character of several bytes that was cut in its middle: a lead byte that promises more
 * bytes than follow it. */
static size_t drop_torn(const char *text, size_t len)
{
    size_t tail = 0;
    while (tail < 3 && tail < len && ((unsigned char)text[len - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (tail == len) return len;
    const unsigned char lead = (unsigned char)text[len - 1 - tail];
    const size_t promised = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    return promised > tail ? len - 1 - tail : len;
}

/* Writes `raw` escaped into at most `room` bytes, terminator included; `cut`: it is incomplete. */
static void put_line(char *out, size_t room, const char *raw, bool cut)
{
    size_t used = 0, safe = 0; /* safe: the longest length that leaves room for "..." */
    for (; *raw != '\0'; raw++) {
        char piece[4];
        const size_t n = escape((unsigned char)*raw, piece);
        if (used + n + 1 > room) {
            cut = true;
            break;
        }
        memcpy(out + used, piece, n);
        used += n;
        if (used + 4 <= room) safe = used;
    }
    if (cut) {
        used = drop_torn(out, safe);
        memcpy(out + used, "...", 3);
        used += 3;
    }
    out[used] = '\0';
}

static void fill(cutset_error *err, cutset_status status, int system, int64_t offset,
                 const char *suffix, const char *format, va_list args)
{
    char raw[MESSAGE]; /* escaping only makes text longer: what is cut here would be cut anyway */
    const int n = vsnprintf(raw, sizeof raw, format, args);
    if (n < 0) snprintf(raw, sizeof raw, "%s", format);
    const size_t tail = strlen(suffix);
    err->status = status;
    err->system = system;
    err->offset = offset;
    err->about = CUTSET_ABOUT_OTHER;
    err->needed = err->budget = 0;
    err->n_names = 0;
    err->names[0] = '\0';
    put_line(err->message, MESSAGE - tail, raw, n >= (int)sizeof raw);
    memcpy(err->message + strlen(err->message), suffix, tail + 1);
}

cutset_status cs_fail(cutset_error *err, cutset_status status, const char *format, ...)
{
    if (err == NULL) return status;
    va_list args;
    va_start(args, format);
    fill(err, status, 0, -1, "", format, args);
    va_end(args);
    return status;
}

cutset_status cs_fail_at(cutset_error *err, cutset_status status, uint64_t offset,
                         const char *format, ...)
{
    if (err == NULL) return status;
    va_list args;
    va_start(args, format);
    fill(err, status, 0, offset > INT64_MAX ? -1 : (int64_t)offset, "", format, args);
    va_end(args);
    return status;
}

/* The text of an errno, never translated and without allocating. */
static void describe(int system, char *out, size_t room)
{
    const char *text = strerrordesc_np(system);
    if (text != NULL)
        snprintf(out, room, ": %s", text);
    else
        snprintf(out, room, ": error %d", system);
}

cutset_status cs_fail_errno(cutset_error *err, const char *format, ...)
{
    const int system = errno;
    if (err == NULL) return CUTSET_SYSTEM;
    char suffix[128];
    describe(system, suffix, sizeof suffix);
    va_list args;
    va_start(args, format);
    fill(err, CUTSET_SYSTEM, system, -1, suffix, format, args);
    va_end(args);
    return CUTSET_SYSTEM;
}

cutset_status cs_fail_memory(cutset_error *err)
{
    cs_fail(err, CUTSET_SYSTEM, "out of memory");
    if (err != NULL) err->system = ENOMEM;
    return CUTSET_SYSTEM;
}

/* Is `name` in `text` as a word of its own? A short path would be found in any message. */
static bool has_word(const char *text, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = text; len > 0 && (at = strstr(at, name)) != NULL; at++) {
        const bool begins = at == text || strchr(" '(", at[-1]) != NULL;
        if (begins && strchr(" :;,')", at[len]) != NULL) return true; /* the end counts too */
    }
    return false;
}

void cs_fail_in(cutset_error *err, const char *path)
{
    if (err == NULL || has_word(err->message, path)) return;
    cutset_error more = *err;
    cs_fail(&more, err->status, "%.300s: %s", path, err->message);
    memcpy(err->message, more.message, MESSAGE);
}

void cs_error_about(cutset_error *err, cutset_about about, int64_t needed, int64_t budget)
{
    if (err == NULL) return;
    err->about = about;
    err->needed = needed;
    err->budget = budget;
}

void cs_error_name(cutset_error *err, const char *at, size_t len)
{
    if (err == NULL) return;
    size_t used = 0;
    uint32_t kept = 0;
    const bool full = err->n_names >= sizeof err->names / 2; /* two bytes each, at least */
    for (; !full && kept < err->n_names && err->names[used] != '\0'; kept++)
        used += strlen(err->names + used) + 1;
    const bool fits = used + len + 2 <= sizeof err->names; /* an empty name ends the list */
    if (kept == err->n_names && len > 0 && fits && memchr(at, '\0', len) == NULL) {
        memcpy(err->names + used, at, len);
        memset(err->names + used + len, '\0', 2);
    }
    err->n_names++;
}

cutset_status cs_progress(const cutset_progress *progress, const char *phase, uint64_t done,
                          uint64_t total, cutset_error *err)
{
    if (progress == NULL || progress->call == NULL) return CUTSET_OK;
    if (progress->call(progress->payload, phase, done, total) == 0) return CUTSET_OK;
    return cs_fail(err, CUTSET_INTERRUPTED, "interrupted during %s", phase);
}
