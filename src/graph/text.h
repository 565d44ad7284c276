/* What the readers and writers of the text form share: a cursor, a fault with its place, names and
 * strings. Private to graph/. The grammar is in doc/FORMAT.md.
 *
 * Scanners move the cursor over what they take and leave it anywhere on a fault. A fault names a
 * place in the text, not a line: lines are counted only when a message is written.
 */
#ifndef CS_GRAPH_TEXT_H
#define CS_GRAPH_TEXT_H

#include "graph/type.h"

#include <string.h>

#define CS_TEXT_DEPTH 100 /* nested bodies, types, parentheses */

typedef struct cs_cursor {
    const char *at, *end;
} cs_cursor;

/* An empty span may have no address; a cursor always has one. */
static inline cs_cursor cs_cursor_of(cs_span text)
{
    const char *const at = text.len ? text.at : "";
    return (cs_cursor){at, at + text.len};
}

typedef struct cs_fault {
    const char *at;
    char why[600]; /* the cause, a colon, the cure */
} cs_fault;

/* Both return CUTSET_BAD. `wanted` completes "X is not expected here: write ...". */
cutset_status cs_fault_at(cs_fault *f, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
cutset_status cs_fault_found(cs_fault *f, const cs_cursor *c, const char *wanted);

/* ---- characters ---- */
extern const unsigned char cs_char_class[256];
enum {
    CS_CHAR_BARE = 1,   /* of a name without quotes */
    CS_CHAR_SYMBOL = 2, /* of a dim's symbol */
    CS_CHAR_DIGIT = 4,
    CS_CHAR_BLANK = 8 /* within a line; a carriage return counts */
};
static inline bool cs_char_is(char c, unsigned classes)
{
    return cs_char_class[(unsigned char)c] & classes;
}
static inline void cs_skip_blanks(cs_cursor *c)
{
    while (c->at < c->end && cs_char_is(*c->at, CS_CHAR_BLANK))
        c->at++;
}
/* Skips blanks; takes `ch` if it comes next. */
static inline bool cs_take(cs_cursor *c, char ch)
{
    cs_skip_blanks(c);
    if (c->at == c->end || *c->at != ch)
        return false;
    c->at++;
    return true;
}
/* The longest run of characters of these classes; may be empty. */
static inline cs_span cs_take_run(cs_cursor *c, unsigned classes)
{
    const char *from = c->at;
    while (c->at < c->end && cs_char_is(*c->at, classes))
        c->at++;
    return (cs_span){from, (size_t)(c->at - from)};
}

/* ---- scanning; CUTSET_OK, CUTSET_BAD with the fault, or CUTSET_SYSTEM without memory ---- */
/* A quoted string, the cursor on its first quote. Without escapes *out is a piece of the text and
 * *raw is true, else it is in `scratch`. */
cutset_status cs_scan_string(cs_cursor *c, cs_chars *scratch, cs_span *out, bool *raw,
                             cs_fault *f);
cutset_status cs_scan_type(cs_pool *pool, cs_cursor *c, cs_type *out, cs_fault *f);
cutset_status cs_scan_dim(cs_pool *pool, cs_cursor *c, cs_dim *out, cs_fault *f);

/* Bytes of a weight of this type: strings have no size of their own and count 0; -1: not known. */
int64_t cs_text_weight_bytes(const cs_pool *pool, cs_type type);

/* ---- printing; false: no memory ---- */
bool cs_chars_put(cs_chars *out, cs_span text);
/* In quotes, with \" \\, and \xNN for control bytes and what is not UTF-8. */
bool cs_chars_quote(cs_chars *out, cs_span text);
/* Bare where the grammar lets it, else in quotes. */
bool cs_chars_name(cs_chars *out, cs_span name);
/* cs_type_print; `dense`: a sparse tensor as the tensor it stands for. */
bool cs_chars_type(const cs_pool *pool, cs_type t, bool dense, cs_chars *out);

#endif
