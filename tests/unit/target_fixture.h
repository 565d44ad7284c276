/* What the tests of targets share: opening a target, reading a small graph, judging its last node.
 *
 * Constants get their values from their names: every element of weight %v3839 is 3839, of %v-2.a
 * is -2.
 */
#ifndef CS_TESTS_TARGET_FIXTURE_H
#define CS_TESTS_TARGET_FIXTURE_H

#include "target/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CHECK(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond)) fail_msg(__VA_ARGS__);                                                        \
    } while (0)

static cutset_target *open_target(const char *name)
{
    cutset_target *t = NULL;
    cutset_error err = {0};
    CHECK(cutset_target_open(&t, name, &err) == CUTSET_OK, "%s: %s", name, err.message);
    return t;
}

static void put_elem(unsigned char *at, cs_elem elem, double x)
{
    float f = (float)x;
    int64_t i = (int64_t)x;
    if (elem == CS_F32)
        memcpy(at, &f, sizeof f);
    else
        memcpy(at, &i, cs_elem_bits(elem) / 8); /* little-endian machines, as everywhere */
}

/* Fills weights named v<number>[.suffix], of this graph and its bodies. */
static void fill_constants(cs_graph *g)
{
    for (size_t i = 0; i < g->values.len; i++) {
        const cs_value *v = &g->values.at[i];
        cs_span name = cs_name(g->pool, v->name);
        double x;
        if (v->origin != CS_ORIGIN_WEIGHT || name.len < 2 || name.at[0] != 'v') continue;
        size_t len = 1;
        while (len < name.len && strchr("-0123456789", name.at[len]) != NULL)
            len++;
        if (!cs_parse_f64((cs_span){name.at + 1, len - 1}, &x)) continue;
        cs_storage *s = &cs_graph_top(g)->storages.at[v->storage];
        unsigned char *data = cs_arena_zalloc(&g->pool->arena, (size_t)s->bytes + 8, 1);
        unsigned bits = cs_elem_bits(s->elem);
        for (size_t k = 0; bits >= 8 && k < (size_t)s->bytes * 8 / bits; k++)
            put_elem(data + k * (bits / 8), s->elem, x);
        if (bits < 8) memset(data, x == 0 ? 0 : 0x11, (size_t)s->bytes);
        s->data = data;
    }
    for (size_t i = 0; i < g->bodies.len; i++)
        fill_constants(g->bodies.at[i].graph);
}

static cs_graph *read_graph(const char *text)
{
    cs_graph *g = NULL;
    cutset_error err = {0};
    CHECK(cs_text_read(&g, cs_span_of(text), NULL, &err) == CUTSET_OK, "%s\n%s", text, err.message);
    fill_constants(g);
    return g;
}

/* "" where the node is taken, else "rule: sentence". */
static const char *judge(const cutset_target *t, const cs_graph *g, uint32_t node)
{
    static char text[1200];
    cs_strtab words;
    cs_rule rule;
    cs_str why;
    cutset_error err = {0};
    assert_true(cs_strtab_init(&words));
    assert_int_equal(cs_target_check(t, g, node, &words, &rule, &why, &err), CUTSET_OK);
    cs_span s = cs_strtab_get(&words, why);
    if (rule == CS_RULE_NONE)
        text[0] = 0;
    else
        snprintf(text, sizeof text, "%s: %.*s", cs_rule_name(rule), (int)s.len, s.at);
    assert_int_equal(rule == CS_RULE_NONE, why == 0);
    cs_strtab_fini(&words);
    return text;
}

static const char *judge_text(const cutset_target *t, const char *graph)
{
    cs_graph *g = read_graph(graph);
    const char *got = judge(t, g, (uint32_t)g->nodes.len - 1);
    cs_graph_free(g);
    return got;
}

typedef struct cs_row {
    const char *graph;
    const char *want; /* beginning of "rule: sentence", or "" */
} cs_row;

static void judge_rows(const cutset_target *t, const cs_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *got = judge_text(t, rows[i].graph);
        bool same = rows[i].want[0] == 0 ? got[0] == 0
                                         : strncmp(got, rows[i].want, strlen(rows[i].want)) == 0;
        CHECK(same, "%s: %s\n  wanted \"%s\"\n  got    \"%s\"", t->name, rows[i].graph,
              rows[i].want, got);
    }
}
#define ROWS(t, rows) judge_rows(t, rows, sizeof(rows) / sizeof *(rows))

#endif
