/* Internal to plan/: members of a JSON object with strict types, and messages that say where.
 *
 * A cs_cursor stands on one object of the text: `at` is its path there ("parts[3]", "" for the
 * whole), `what` the name of the file. A member that is missing or of another type is CUTSET_BAD:
 * "plan.json: parts[3].nodes[2] is not a string: make the plan anew with cutset plan".
 */
#ifndef CS_PLAN_JSON_GET_H
#define CS_PLAN_JSON_GET_H

#include <jansson.h>

#include "plan/plan.h"

typedef struct cs_cursor {
    const char *what;
    cutset_error *err;
    cs_strtab *names; /* where strings go */
    const json_t *object;
    char at[80];
} cs_cursor;

/* CUTSET_BAD: "<what>: <at>.<key> <format...>: make the plan anew with cutset plan". */
cutset_status cs_json_wrong(const cs_cursor *c, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same about element i of the array `key`. */
cutset_status cs_json_wrong_at(const cs_cursor *c, const char *key, size_t i, const char *format,
                               ...) __attribute__((format(printf, 4, 5)));

/* Onto the object `key` of `c`; onto element i of the array `key`. `keys` is the list of the keys
 * it must have, NULL at the end: one that is missing or not among them is an error. */
cutset_status cs_json_enter(const cs_cursor *c, const char *key, const char *const *keys,
                            cs_cursor *out);
cutset_status cs_json_enter_at(const cs_cursor *c, const char *key, size_t i,
                               const char *const *keys, cs_cursor *out);
cutset_status cs_json_check_keys(const cs_cursor *c, const char *const *keys);

cutset_status cs_json_get_array(const cs_cursor *c, const char *key, const json_t **out, size_t *n);
cutset_status cs_json_get_str(const cs_cursor *c, const char *key, cs_str *out);
cutset_status cs_json_get_bool(const cs_cursor *c, const char *key, bool *out);
/* An integer from min to max. */
cutset_status cs_json_get_int(const cs_cursor *c, const char *key, int64_t min, int64_t max,
                              int64_t *out);
/* null gives `otherwise`. */
cutset_status cs_json_get_int_or_null(const cs_cursor *c, const char *key, int64_t min, int64_t max,
                                      int64_t otherwise, int64_t *out);
cutset_status cs_json_get_null(const cs_cursor *c, const char *key);
/* "xxh3:" and 16 hexadecimal digits */
cutset_status cs_json_get_hash(const cs_cursor *c, const char *key, uint64_t *out);
/* One of the words, NULL at the end: its index. */
cutset_status cs_json_get_word(const cs_cursor *c, const char *key, const char *const *words,
                               int *out);
/* Appends the strings of an array. */
cutset_status cs_json_get_strs(const cs_cursor *c, const char *key, cs_strs *out);
/* Element i of the array `key`, which must be a string; element i, an integer from 0 to max. */
cutset_status cs_json_str_at(const cs_cursor *c, const char *key, const json_t *array, size_t i,
                             cs_str *out);
cutset_status cs_json_int_at(const cs_cursor *c, const char *key, const json_t *array, size_t i,
                             int64_t max, int64_t *out);

#endif
