/* Reads a graph in the text form, infers, compares types. Include it once.
 *
 * check(text, constants, expected): constants are "name=1,2;name=3" for weights of the text (which
 * holds no values); expected is "name type" lines, values of bodies included. */
#ifndef CS_TESTS_INFER_CHECK_H
#define CS_TESTS_INFER_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnx/infer.h"

static cutset_error err;

static cs_graph *read_text(const char *text)
{
    cs_graph *g = NULL;
    cutset_status status = cs_text_read(&g, cs_span_of(text), NULL, &err);
    if (status != CUTSET_OK) fail_msg("%s", err.message);
    return g;
}

static cs_value *find_value(cs_graph *g, cs_span name)
{
    for (size_t i = 0; i < g->values.len; i++)
        if (g->values.at[i].origin != CS_ORIGIN_CAPTURE &&
            cs_span_eq(cs_name(g->pool, g->values.at[i].name), name))
            return &g->values.at[i];
    for (size_t i = 0; i < g->bodies.len; i++) {
        cs_value *v = find_value(g->bodies.at[i].graph, name);
        if (v) return v;
    }
    return NULL;
}

/* Gives the weight `name` its bytes. */
static void set_constant(cs_graph *g, cs_span name, const double *x, int n)
{
    cs_value *v = find_value(g, name);
    assert_non_null(v);
    cs_storage *s = &g->storages.at[v->storage];
    char bytes[CS_CONST_MAX];
    size_t size = cs_elem_bits(s->elem) / 8;
    assert_int_equal(s->bytes, (int64_t)size * n);
    for (int i = 0; i < n; i++) {
        int64_t integer = x[i] >= 0x1p63 ? INT64_MAX : (int64_t)x[i];
        int32_t small = (int32_t)integer;
        float real = (float)x[i];
        bool truth = x[i] != 0;
        const void *from = s->elem == CS_I64   ? (const void *)&integer
                           : s->elem == CS_I32 ? (const void *)&small
                           : s->elem == CS_F32 ? (const void *)&real
                                               : (const void *)&truth;
        memcpy(bytes + size * (size_t)i, from, size);
    }
    s->data = cs_arena_dup(&g->pool->arena, bytes, size * (size_t)n);
}

static void set_constants(cs_graph *g, const char *text)
{
    while (*text) {
        const char *is = strchr(text, '=');
        cs_span name = {text, (size_t)(is - text)};
        double x[64];
        int n = 0;
        char *at = (char *)is + 1;
        while (*at && *at != ';') {
            x[n++] = strtod(at, &at);
            at += *at == ',';
        }
        set_constant(g, name, x, n);
        text = at + (*at == ';');
    }
}

static void expect_types(cs_graph *g, const char *expected)
{
    while (*expected) {
        const char *blank = strchr(expected, ' '), *end = strchr(expected, '\n');
        end = end ? end : expected + strlen(expected);
        cs_value *v = find_value(g, (cs_span){expected, (size_t)(blank - expected)});
        if (!v) fail_msg("no value for %s", expected);
        cs_chars is = {0};
        assert_true(cs_type_print(g->pool, v->type, &is) && cs_vec_push(&is, '\0'));
        if (strlen(is.at) != (size_t)(end - blank) - 1 || memcmp(is.at, blank + 1, is.len - 1) != 0)
            fail_msg("%.*s expected, is %s", (int)(end - expected), expected, is.at);
        cs_vec_fini(&is);
        expected = end + (*end == '\n');
    }
}

static inline void check(const char *text, const char *constants, const char *expected)
{
    cs_graph *g = read_text(text);
    set_constants(g, constants);
    if (cs_infer(g, NULL, &err) != CUTSET_OK) fail_msg("%s", err.message);
    expect_types(g, expected);
    cs_graph_free(g);
}

#endif
