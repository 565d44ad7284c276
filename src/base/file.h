/* Files in: read-only maps. Files out: a buffered sink, and files or folders that appear whole or
 * not at all (written beside their place, then renamed; whole against kills and full disks, no
 * promise against power loss).
 *
 * Messages name the path and the cure.
 */
#ifndef CS_BASE_FILE_H
#define CS_BASE_FILE_H

#include "base/error.h"
#include "base/text.h"

/* ---- in ---- */
typedef struct cs_file {
    const unsigned char *at;
    size_t len;
    int fd;        /* -1 when from memory or standard input */
    bool mapped;   /* else heap (standard input) or the caller's memory */
    bool owned;
    uint64_t dev, ino;
} cs_file;

/* Maps a regular file read-only ("-" = standard input, read whole). A folder, a missing or an
 * unreadable file: CUTSET_SYSTEM. Keeps the descriptor open, for copy_file_range. */
cutset_status cs_file_open(cs_file *out, const char *path, cutset_error *err);
/* Standard input, read whole; asks `progress` (may be NULL) when a signal wakes it. */
cutset_status cs_file_stdin(cs_file *out, const cutset_progress *progress, cutset_error *err);
void cs_file_borrow(cs_file *out, const void *bytes, size_t len);
void cs_file_close(cs_file *file); /* zeroed: nothing to do */
/* Lets go of the pages that were read; the next look brings them back from the system's cache. */
void cs_file_rest(const cs_file *file);

/* ---- out: a sink with a sticky failure; check once, at the end ---- */
typedef struct cs_out {
    cutset_write_fn write; /* where the bytes go; set by init */
    void *payload;
    int fd;                 /* of cs_out_fd, else -1 */
    cutset_status failed;   /* sticky */
    int saved_errno;
    uint64_t total;         /* bytes put so far */
    size_t used;
    char *buffer;           /* CS_OUT_BUFFER bytes */
} cs_out;

cutset_status cs_out_fd(cs_out *out, int fd, cutset_error *err);       /* does not own the fd */
cutset_status cs_out_call(cs_out *out, cutset_write_fn fn, void *payload, cutset_error *err);
void cs_out_put(cs_out *out, const void *bytes, size_t len);
void cs_out_puts(cs_out *out, const char *text);
void cs_out_span(cs_out *out, cs_span text);
void cs_out_printf(cs_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cs_out_flush(cs_out *out);
/* Flushes, frees the buffer, and tells the sticky failure; `what` names the file in the message. */
cutset_status cs_out_done(cs_out *out, const char *what, cutset_error *err);

/* ---- one file, whole or not at all ---- */
typedef struct cs_whole {
    char *path, *aside; /* heap */
    int fd;             /* write here, any way you like */
} cs_whole;
cutset_status cs_whole_open(cs_whole *w, const char *path, cutset_error *err);
cutset_status cs_whole_keep(cs_whole *w, cutset_error *err); /* close, rename over `path` */
void cs_whole_drop(cs_whole *w);                             /* close, unlink; safe after keep */

/* Copies `len` bytes at `offset` of `in` to `fd` at its current position, through copy_file_range
 * where the kernel can (sendfile or plain reads else); holes of the source stay holes. */
cutset_status cs_copy_range(int fd, int in, uint64_t offset, uint64_t len, const char *what,
                            cutset_error *err);

/* ---- folders and paths ---- */
cutset_status cs_dir_remove_tree(const char *path, cutset_error *err); /* what we made ourselves */
/* Heap; NULL = no memory. An absolute name stays as it is: check hostile names before. */
char *cs_path_join(const char *dir, const char *name);
char *cs_path_dir(const char *path);                    /* heap; "." for a bare name */
/* `path` as seen from the folder `dir`: a relative path, "../" where needed; both must exist (their
 * last component may be missing). Heap. */
cutset_status cs_path_relative(char **out, const char *dir, const char *path, cutset_error *err);

#endif
