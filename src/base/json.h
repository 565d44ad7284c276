/* Writing JSON as a stream: two spaces of indent, keys in the order given.
 *
 * Bytes that are not valid UTF-8 are written as the text form writes them: a string is then the
 * text with \xNN (backslash doubled by JSON's own escaping) for each such byte.
 * Depth at most 32; misuse is our own mistake (assert).
 */
#ifndef CS_BASE_JSON_H
#define CS_BASE_JSON_H

#include "base/file.h"

typedef struct cs_json {
    cs_out *out;
    unsigned depth;
    uint32_t some;   /* bit d: something was already written at depth d + 1 */
    uint32_t object; /* bit d: this container is an object */
    uint32_t inline_; /* bit d: this container is written on one line */
    bool after_key;
} cs_json;

void cs_json_init(cs_json *j, cs_out *out);
void cs_json_object(cs_json *j);      /* { ... one member a line */
void cs_json_object_line(cs_json *j); /* { ... all on one line, also what is inside */
void cs_json_array(cs_json *j);
void cs_json_array_line(cs_json *j);
void cs_json_end(cs_json *j); /* closes the innermost; after the outermost, a line break */
void cs_json_key(cs_json *j, const char *key);
void cs_json_key_span(cs_json *j, cs_span key);
void cs_json_string(cs_json *j, cs_span text);
void cs_json_text(cs_json *j, const char *text);
void cs_json_int(cs_json *j, int64_t x);
void cs_json_f64(cs_json *j, double x); /* must be finite; the shortest form */
void cs_json_bool(cs_json *j, bool x);
void cs_json_null(cs_json *j);
/* key and value in one call */
void cs_json_put_string(cs_json *j, const char *key, cs_span text);
void cs_json_put_text(cs_json *j, const char *key, const char *text);
void cs_json_put_int(cs_json *j, const char *key, int64_t x);
void cs_json_put_bool(cs_json *j, const char *key, bool x);
void cs_json_put_null(cs_json *j, const char *key);

#endif
