/* Errors: a status code and, where the caller gave one, a one-line message.
 *
 * The deepest function that fails writes the message, cause first, then the cure; callers only pass
 * the status up. A message never holds a line break: bytes below 0x20 and 0x7f are written as \xNN.
 * `err` may be NULL everywhere. Nothing here allocates.
 */
#ifndef CS_BASE_ERROR_H
#define CS_BASE_ERROR_H

#include "cutset.h"

/* Each returns `status`, so that a failing function can end in `return cs_fail(...)`. */
cutset_status cs_fail(cutset_error *err, cutset_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, with the byte offset in the input that is at fault. */
cutset_status cs_fail_at(cutset_error *err, cutset_status status, uint64_t offset,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));
/* CUTSET_SYSTEM; appends ": " and the text of errno. */
cutset_status cs_fail_errno(cutset_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
cutset_status cs_fail_memory(cutset_error *err);
/* After cs_fail: what a CUTSET_NO is about; bytes for CUTSET_ABOUT_BUDGET. */
void cs_error_about(cutset_error *err, cutset_about about, int64_t needed, int64_t budget);
/* After cs_fail: adds the name of a node at fault. One that holds a NUL, or no longer fits, is only
 * counted, as are all after it. */
void cs_error_name(cutset_error *err, const char *at, size_t len);
/* Puts "PATH: " before the message, unless that names the path already: for readers whose messages
 * speak of lines and tensors. All else stays. */
void cs_fail_in(cutset_error *err, const char *path);

/* Asks the caller's progress function, if any, whether to go on: CUTSET_OK or CUTSET_INTERRUPTED.
 * `phase` is a static string; done and total are in units of the phase (total 0 = unknown). */
cutset_status cs_progress(const cutset_progress *progress, const char *phase, uint64_t done,
                          uint64_t total, cutset_error *err);

#endif
