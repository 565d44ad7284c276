/* Building graphs by hand in tests, with little text. */
#ifndef CS_TESTS_GRAPH_BUILD_H
#define CS_TESTS_GRAPH_BUILD_H

#include "graph/graph.h"
#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static cutset_error err;

static inline cs_graph *new_graph(void)
{
    cs_graph *g = cs_graph_new(cs_pool_new(), NULL);
    assert_non_null(g);
    return g;
}

static inline cs_str str(cs_graph *g, const char *text)
{
    return cs_strtab_add(&g->pool->names, cs_span_of(text), false);
}

static inline uint32_t add_input(cs_graph *g, const char *name)
{
    uint32_t v = cs_graph_add_value(g, str(g, name), 0, CS_ORIGIN_INPUT);
    assert_true(cs_vec_push(&g->inputs, v));
    return v;
}

static inline uint32_t add_made(cs_graph *g, const char *name)
{
    return cs_graph_add_value(g, str(g, name), 0, CS_ORIGIN_NODE);
}

/* A node with one output; args end with -1. */
static inline uint32_t add_node(cs_graph *g, const char *name, ...)
{
    cs_graph_add_node(g, str(g, "Op"), 0, 0);
    va_list args;
    va_start(args, name);
    for (int a; (a = va_arg(args, int)) != -1;)
        assert_true(cs_graph_add_arg(g, (uint32_t)a));
    va_end(args);
    uint32_t v = add_made(g, name);
    assert_true(cs_graph_add_out(g, v));
    return v;
}

static inline void add_order(cs_graph *g, uint32_t from, uint32_t to)
{
    assert_true(cs_vec_push(&g->order, ((cs_edge){from, to})));
}

static inline void seal(cs_graph *g)
{
    if (cs_graph_seal(g, &err)) fail_msg("%s", err.message);
    if (cs_graph_verify(g, &err)) fail_msg("%s", err.message);
}

/* Refused with this message. Frees g. */
static inline void refused(cs_graph *g, const char *message)
{
    assert_int_equal(cs_graph_seal(g, &err), CUTSET_BAD);
    assert_string_equal(err.message, message);
    assert_false(g->sealed);
    cs_graph_free(g);
}

/* The order edges as "0>1 2>3". */
static inline const char *edges(const cs_graph *g)
{
    static char text[1000];
    size_t len = 0;
    text[0] = 0;
    for (size_t i = 0; i < g->order.len; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%u>%u", i ? " " : "",
                                g->order.at[i].from, g->order.at[i].to);
    return text;
}

#endif
