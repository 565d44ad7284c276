/* Members of a JSON object with strict types; every message names the file and the key. */
#include "plan/json_get.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

static cutset_status wrong(const cs_cursor *c, const char *key, const char *index,
                           const char *format, va_list args)
{
    char why[400];
    vsnprintf(why, sizeof why, format, args);
    const char *dot = c->at[0] != '\0' && key[0] != '\0' ? "." : "";
    return cs_fail(c->err, CUTSET_BAD, "%s: %s%s%s%s %s: make the plan anew with cutset plan",
                   c->what, c->at, dot, key, index, why);
}

cutset_status cs_json_wrong(const cs_cursor *c, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const cutset_status status = wrong(c, key, "", format, args);
    va_end(args);
    return status;
}

cutset_status cs_json_wrong_at(const cs_cursor *c, const char *key, size_t i, const char *format,
                               ...)
{
    char index[32];
    snprintf(index, sizeof index, "[%zu]", i);
    va_list args;
    va_start(args, format);
    const cutset_status status = wrong(c, key, index, format, args);
    va_end(args);
    return status;
}

/* ---- objects and arrays ---- */

cutset_status cs_json_check_keys(const cs_cursor *c, const char *const *keys)
{
    size_t n = 0;
    for (; keys[n] != NULL; n++)
        if (json_object_get(c->object, keys[n]) == NULL)
            return cs_json_wrong(c, keys[n], "is missing");
    if (json_object_size(c->object) == n) return CUTSET_OK;
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)c->object, key, value)
    {
        size_t i = 0;
        while (i < n && strcmp(keys[i], key) != 0)
            i++;
        if (i < n) continue;
        const cs_span unknown = cs_span_of(key);
        char name[204];
        snprintf(name, sizeof name, "%.*s", CS_FMT(unknown));
        return cs_json_wrong(c, name, "is no key of a plan");
    }
    return CUTSET_OK;
}

static cutset_status enter(const cs_cursor *c, const char *key, const char *index,
                           const json_t *object, const char *const *keys, cs_cursor *out)
{
    *out = *c;
    out->object = object;
    const char *dot = c->at[0] != '\0' ? "." : "";
    snprintf(out->at, sizeof out->at, "%s%s%s%s", c->at, dot, key, index);
    if (!json_is_object(object)) return cs_json_wrong(out, "", "is not an object");
    return keys != NULL ? cs_json_check_keys(out, keys) : CUTSET_OK;
}

cutset_status cs_json_enter(const cs_cursor *c, const char *key, const char *const *keys,
                            cs_cursor *out)
{
    const json_t *object = json_object_get(c->object, key);
    if (object == NULL) return cs_json_wrong(c, key, "is missing");
    return enter(c, key, "", object, keys, out);
}

cutset_status cs_json_enter_at(const cs_cursor *c, const char *key, size_t i,
                               const char *const *keys, cs_cursor *out)
{
    char index[32];
    snprintf(index, sizeof index, "[%zu]", i);
    return enter(c, key, index, json_array_get(json_object_get(c->object, key), i), keys, out);
}

cutset_status cs_json_get_array(const cs_cursor *c, const char *key, const json_t **out, size_t *n)
{
    const json_t *array = json_object_get(c->object, key);
    if (array == NULL) return cs_json_wrong(c, key, "is missing");
    if (!json_is_array(array)) return cs_json_wrong(c, key, "is not an array");
    *n = json_array_size(array);
    if (*n >= UINT32_MAX) return cs_json_wrong(c, key, "is too long");
    *out = array;
    return CUTSET_OK;
}

/* ---- scalars ---- */

static cutset_status keep_string(const cs_cursor *c, const json_t *text, cs_str *out)
{
    const cs_span span = {json_string_value(text), json_string_length(text)};
    *out = cs_strtab_add(c->names, span, false);
    return *out != CS_NONE ? CUTSET_OK : cs_fail_memory(c->err);
}

cutset_status cs_json_get_str(const cs_cursor *c, const char *key, cs_str *out)
{
    const json_t *text = json_object_get(c->object, key);
    if (!json_is_string(text)) return cs_json_wrong(c, key, "is not a string");
    return keep_string(c, text, out);
}

cutset_status cs_json_get_bool(const cs_cursor *c, const char *key, bool *out)
{
    const json_t *x = json_object_get(c->object, key);
    if (!json_is_boolean(x)) return cs_json_wrong(c, key, "is not true or false");
    *out = json_is_true(x);
    return CUTSET_OK;
}

cutset_status cs_json_get_int(const cs_cursor *c, const char *key, int64_t min, int64_t max,
                              int64_t *out)
{
    const json_t *x = json_object_get(c->object, key);
    if (!json_is_integer(x)) return cs_json_wrong(c, key, "is not an integer");
    *out = json_integer_value(x);
    if (*out < min || *out > max)
        return cs_json_wrong(c, key, "is %" PRId64 ", not from %" PRId64 " to %" PRId64, *out, min,
                             max);
    return CUTSET_OK;
}

cutset_status cs_json_get_int_or_null(const cs_cursor *c, const char *key, int64_t min, int64_t max,
                                      int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    const json_t *x = json_object_get(c->object, key);
    if (json_is_null(x)) return CUTSET_OK;
    if (!json_is_integer(x)) return cs_json_wrong(c, key, "is not an integer or null");
    return cs_json_get_int(c, key, min, max, out);
}

cutset_status cs_json_get_null(const cs_cursor *c, const char *key)
{
    if (json_is_null(json_object_get(c->object, key))) return CUTSET_OK;
    return cs_json_wrong(c, key, "is not null, as this version of cutset writes it");
}

cutset_status cs_json_get_hash(const cs_cursor *c, const char *key, uint64_t *out)
{
    const json_t *x = json_object_get(c->object, key);
    const char *text = json_is_string(x) ? json_string_value(x) : "";
    bool ok = strncmp(text, "xxh3:", 5) == 0 && json_string_length(x) == 21;
    uint64_t hash = 0;
    for (int i = 5; ok && i < 21; i++) {
        const char ch = text[i];
        ok = (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'f');
        hash = hash << 4 | (uint64_t)(ch <= '9' ? ch - '0' : ch - 'a' + 10);
    }
    *out = hash;
    return ok ? CUTSET_OK : cs_json_wrong(c, key, "is not xxh3: and 16 hexadecimal digits");
}

cutset_status cs_json_get_word(const cs_cursor *c, const char *key, const char *const *words,
                               int *out)
{
    const json_t *x = json_object_get(c->object, key);
    if (!json_is_string(x)) return cs_json_wrong(c, key, "is not a string");
    const cs_span text = {json_string_value(x), json_string_length(x)};
    for (*out = 0; words[*out] != NULL; ++*out)
        if (cs_span_is(text, words[*out])) return CUTSET_OK;
    return cs_json_wrong(c, key, "is \"%.*s\", which no plan has there", CS_FMT(text));
}

/* ---- elements ---- */

cutset_status cs_json_str_at(const cs_cursor *c, const char *key, const json_t *array, size_t i,
                             cs_str *out)
{
    const json_t *text = json_array_get(array, i);
    if (!json_is_string(text)) return cs_json_wrong_at(c, key, i, "is not a string");
    return keep_string(c, text, out);
}

cutset_status cs_json_int_at(const cs_cursor *c, const char *key, const json_t *array, size_t i,
                             int64_t max, int64_t *out)
{
    const json_t *x = json_array_get(array, i);
    if (!json_is_integer(x)) return cs_json_wrong_at(c, key, i, "is not an integer");
    *out = json_integer_value(x);
    if (*out < 0 || *out > max)
        return cs_json_wrong_at(c, key, i, "is %" PRId64 ", not from 0 to %" PRId64, *out, max);
    return CUTSET_OK;
}

cutset_status cs_json_get_strs(const cs_cursor *c, const char *key, cs_strs *out)
{
    const json_t *array = NULL;
    size_t n = 0;
    cutset_status status = cs_json_get_array(c, key, &array, &n);
    if (status == CUTSET_OK && !cs_vec_room(out, n)) status = cs_fail_memory(c->err);
    for (size_t i = 0; status == CUTSET_OK && i < n; i++) {
        cs_str text = 0;
        status = cs_json_str_at(c, key, array, i, &text);
        if (status == CUTSET_OK) out->at[out->len++] = text;
    }
    return status;
}
