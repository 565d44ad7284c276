/* Reading and writing the text form in tests. */
#ifndef CS_TESTS_GRAPH_TEXT_H
#define CS_TESTS_GRAPH_TEXT_H

#include "graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static cutset_error err;

static inline cs_graph *read_text(const char *text)
{
    cs_graph *g;
    if (cs_text_read(&g, cs_span_of(text), NULL, &err)) fail_msg("%s\nof\n%s", err.message, text);
    if (cs_graph_verify(g, &err)) fail_msg("%s\nof\n%s", err.message, text);
    return g;
}

struct string {
    char *at;
    size_t len, cap;
};

static inline int append(void *payload, const void *bytes, size_t len)
{
    struct string *s = payload;
    if (s->len + len + 1 > s->cap) {
        s->cap = (s->len + len + 1) * 2;
        s->at = realloc(s->at, s->cap);
    }
    memcpy(s->at + s->len, bytes, len);
    s->len += len;
    s->at[s->len] = 0;
    return 0;
}

static inline void put(struct string *s, const char *format, ...)
{
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    append(s, text, strlen(text));
}

/* On the heap. */
static inline char *write_text(const cs_graph *g)
{
    struct string s = {0};
    append(&s, "", 0);
    cs_out out;
    assert_int_equal(cs_out_call(&out, append, &s, &err), 0);
    cs_text_write(g, &out);
    assert_int_equal(cs_out_done(&out, "text", &err), 0);
    return s.at;
}

static inline void becomes(const char *text, const char *expected)
{
    cs_graph *g = read_text(text);
    char *out = write_text(g);
    assert_string_equal(out, expected);
    cs_graph_free(g);
    free(out);
}

/* What is canonical comes back byte for byte. */
static inline void same(const char *text) { becomes(text, text); }

static inline void refused(const char *text, const char *message)
{
    cs_graph *g = (void *)1;
    err.message[0] = 0;
    assert_int_equal(cs_text_read(&g, cs_span_of(text), NULL, &err), CUTSET_BAD);
    assert_string_equal(err.message, message);
    assert_null(g);
    int line, column;
    if (sscanf(err.message, "line %d, column %d:", &line, &column) == 2) {
        const char *at = text;
        while (--line > 0)
            at = strchr(at, '\n') + 1;
        assert_int_equal(err.offset, at - text + column - 1);
    }
}

#endif
