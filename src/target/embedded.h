/* The shipped target files, targets/NAME.yaml, embedded at build time (cmake/embed.cmake). */
#ifndef CS_TARGET_EMBEDDED_H
#define CS_TARGET_EMBEDDED_H

#include <stddef.h>

typedef struct cs_embedded {
    const char *name; /* file name without .yaml */
    const char *text; /* the file's bytes, and a NUL that len does not count */
    size_t len;
} cs_embedded;

extern const cs_embedded cs_embedded_targets[]; /* in strcmp order of name */
extern const size_t cs_embedded_count;

#endif
