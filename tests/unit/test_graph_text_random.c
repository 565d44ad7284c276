/* The text form on seeded random graphs and numbers: written and read back they are equal, whatever
 * the order of the lines. */
#include "graph_text.h"
#include "random.h"

#include <math.h>

/* Every f32 that is written reads back: random bit patterns, and neighbours of powers of two. */
static void floats_read_back(void **state)
{
    (void)state;
    seed = 1;
    struct string s = {0};
    enum { N = 20000 };
    static uint32_t bits[N];
    put(&s, "%%y = Op() {a=[");
    for (int i = 0; i < N; i++) {
        bits[i] = (uint32_t)(random_bits() >> 32);
        if (i % 4 == 0) bits[i] = (bits[i] & 0xff800000u) + (uint32_t)(i / 4 % 3) - 1;
        float f;
        memcpy(&f, &bits[i], 4);
        char text[32];
        cs_format_f32(f, text);
        put(&s, "%s%s", i ? "," : "", text);
    }
    put(&s, "]}\n");
    cs_graph *g = read_text(s.at);
    const cs_attr *a = &g->attrs.at[0];
    assert_int_equal(a->len, N);
    for (int i = 0; i < N; i++) {
        float f;
        memcpy(&f, &bits[i], 4);
        assert_true(isnan(f) ? isnan(a->floats[i]) : memcmp(&f, &a->floats[i], 4) == 0);
    }
    cs_graph_free(g);
    free(s.at);
}

/* ---- random graphs, both ways ---- */

static const char *pick(const char *const *from, uint32_t n) { return from[below(n)]; }

static void some_attrs(struct string *s)
{
    static const char *const values[] = {"1",
                                         "-7",
                                         "0.5",
                                         "\"a\\x00\"",
                                         "[]",
                                         "[f:]",
                                         "[s:]",
                                         "[1,2]",
                                         "[0.1,inf]",
                                         "nan",
                                         "[\"\"]",
                                         "\"\"",
                                         "type(f32)",
                                         "tensor(i4[3])",
                                         "1e30",
                                         "[type(?)]",
                                         "[tensor(i4[3]),tensor(f32)]"};
    static const char *const keys[] = {"a", "b.c", "\"d e\"", "f"};
    put(s, " {");
    for (uint32_t k = 0, n = below(4); k < n; k++)
        put(s, "%s%s=%s", k ? ", " : "", keys[k], pick(values, 17));
    put(s, "}");
}

struct lines {
    struct string at[200];
    int kind[200]; /* lines of one kind keep their order */
    int n;
};

static struct string *new_line(struct lines *l, int kind)
{
    l->kind[l->n] = kind;
    struct string *s = &l->at[l->n++];
    append(s, "", 0);
    return s;
}

static const char *const types[] = {"f32[1,N]", "?",      "i64[]",          "seq(opt(str))",
                                    "u4[3]",    "f16[?]", "map(i64,f32[2])"};

/* Nodes and their order, groups, outputs; values are named prefix + number. */
static void random_nodes(struct lines *l, const char *prefix, uint32_t known, int level)
{
    uint32_t n = below(level ? 4 : 9), made = known, nodes = 0;
    uint32_t first[16], node_at[16];
    for (uint32_t i = 0; i < n; i++) {
        struct string *s = new_line(l, 0);
        uint32_t outs = below(3), start = made;
        first[nodes] = CS_NONE;
        node_at[nodes] = i;
        if (outs == 0) put(s, "()");
        for (uint32_t o = 0; o < outs; o++) {
            if (o) put(s, ", ");
            if (below(6) == 0) {
                put(s, "_");
                continue;
            }
            if (first[nodes] == CS_NONE) first[nodes] = made;
            put(s, "%%%s%u", prefix, made++);
            if (below(2)) put(s, " : %s", pick(types, 7));
        }
        put(s, " = %sOp%u(", below(4) ? "" : "dom:", below(3));
        for (uint32_t a = 0, m = below(4); a < m; a++) {
            if (a) put(s, ", ");
            if (below(8) == 0) continue;
            if (level && below(3) == 0)
                put(s, "%%v0"); /* from outside */
            else if (start > 0)
                put(s, "%%%s%u", prefix, below(start));
        }
        put(s, ")");
        if (below(3) == 0) some_attrs(s);
        if (below(4) == 0) put(s, " @acc,host");
        if (below(8) == 0) put(s, " !effect");
        if (below(8) == 0 && start > 0) put(s, " !writes(%%%s%u)", prefix, below(start));
        if (below(level < 3 ? 4 : 100) == 0) {
            put(s, " {\n");
            for (uint32_t b = 0, m = 1 + below(2); b < m; b++) {
                struct lines inner = {0};
                char inside[16];
                snprintf(inside, sizeof inside, "%s%c", prefix, 'a' + (int)b);
                uint32_t inputs = below(3);
                put(s, "body b%u", b);
                for (uint32_t k = 0; k < inputs; k++)
                    put(s, " %%%s%u : %s", inside, k, pick(types, 7));
                put(s, "\n");
                random_nodes(&inner, inside, inputs, level + 1);
                for (int k = 0; k < inner.n; k++) {
                    append(s, inner.at[k].at, inner.at[k].len);
                    put(s, "\n");
                    free(inner.at[k].at);
                }
                put(s, "end\n");
            }
            put(s, "}");
        }
        nodes++;
    }
    for (uint32_t k = below(3); k-- > 0 && nodes > 1;) {
        uint32_t i = below(nodes - 1), j = i + 1 + below(nodes - 1 - i);
        struct string *s = new_line(l, 1);
        if (first[i] == CS_NONE || below(2))
            put(s, "order $%u -> ", node_at[i]);
        else
            put(s, "order %%%s%u -> ", prefix, first[i]);
        put(s, "$%u", node_at[j]);
    }
    for (uint32_t k = below(3); k-- > 0 && nodes > 0;) {
        struct string *s = new_line(l, 2);
        put(s, "group g%u {", below(3));
        for (uint32_t m = 1 + below(3); m-- > 0;)
            put(s, " $%u", below(nodes));
        put(s, " }");
    }
    for (uint32_t k = below(4); k-- > 0 && made > 0;)
        put(new_line(l, 3), "output %%%s%u", prefix, below(made));
}

/* All lines, those of different kinds mixed when `mixed`. */
static char *join(struct lines *l, bool mixed)
{
    struct string s = {0};
    bool done[200] = {false};
    append(&s, "", 0);
    for (int k = 0; k < l->n; k++) {
        int take = k;
        if (mixed) { /* a random line; then the first of its kind that is left */
            do
                take = (int)below((uint32_t)l->n);
            while (done[take]);
            for (int i = 0; i < take; i++)
                if (!done[i] && l->kind[i] == l->kind[take]) take = i;
        }
        done[take] = true;
        append(&s, l->at[take].at, l->at[take].len);
        put(&s, mixed && below(3) == 0 ? "  # note\r\n\n" : "\n");
    }
    return s.at;
}

static void equal_str(const cs_graph *a, cs_str x, const cs_graph *b, cs_str y)
{
    assert_true(cs_span_eq(cs_name(a->pool, x), cs_name(b->pool, y)));
}

static void equal_type(const cs_graph *a, cs_type x, const cs_graph *b, cs_type y)
{
    cs_chars s = {0}, t = {0};
    assert_true(cs_type_print(a->pool, x, &s) && cs_type_print(b->pool, y, &t));
    assert_true(cs_span_eq((cs_span){s.at, s.len}, (cs_span){t.at, t.len}));
    cs_vec_fini(&s);
    cs_vec_fini(&t);
}

/* The same value, by name, origin and type; storages correspond one to one. */
static void equal_value(const cs_graph *a, uint32_t x, const cs_graph *b, uint32_t y)
{
    assert_int_equal(x == CS_NONE, y == CS_NONE);
    if (x == CS_NONE) return;
    const cs_value *u = &a->values.at[x], *v = &b->values.at[y];
    equal_str(a, u->name, b, v->name);
    equal_type(a, u->type, b, v->type);
    assert_int_equal(u->origin, v->origin);
    assert_int_equal(u->storage == CS_NONE, v->storage == CS_NONE);
    if (u->origin == CS_ORIGIN_NODE) assert_int_equal(u->from, v->from);
    if (u->origin == CS_ORIGIN_CAPTURE) equal_value(a->outer, u->from, b->outer, v->from);
}

static void equal_attr(const cs_graph *a, const cs_attr *x, const cs_graph *b, const cs_attr *y)
{
    equal_str(a, x->name, b, y->name);
    assert_int_equal(x->kind, y->kind);
    assert_int_equal(x->len, y->len);
    equal_type(a, x->type, b, y->type);
    for (size_t i = 0; i < x->len; i++) {
        if (x->kind == CS_ATTR_INTS) assert_true(x->ints[i] == y->ints[i]);
        if (x->kind == CS_ATTR_FLOATS) assert_memory_equal(&x->floats[i], &y->floats[i], 4);
        if (x->kind == CS_ATTR_STRINGS) assert_true(cs_span_eq(x->strings[i], y->strings[i]));
        if (x->kind == CS_ATTR_TENSORS || x->kind == CS_ATTR_TYPES)
            equal_type(a, x->types[i], b, y->types[i]);
        if (x->kind == CS_ATTR_STRING) assert_int_equal(x->s[i], y->s[i]);
    }
    if (x->kind == CS_ATTR_INT) assert_true(x->i == y->i);
    if (x->kind == CS_ATTR_FLOAT) assert_memory_equal(&x->f, &y->f, 4);
}

static void equal_graph(const cs_graph *a, const cs_graph *b)
{
    assert_int_equal(a->nodes.len, b->nodes.len);
    assert_int_equal(a->values.len, b->values.len);
    assert_int_equal(a->storages.len, b->storages.len);
    assert_int_equal(a->effect, b->effect);
    for (uint32_t i = 0; i < a->nodes.len; i++) {
        const cs_node *m = &a->nodes.at[i], *n = &b->nodes.at[i];
        equal_str(a, m->op, b, n->op);
        equal_str(a, m->domain, b, n->domain);
        assert_int_equal(m->flags, n->flags);
        assert_int_equal(m->n_arg, n->n_arg);
        assert_int_equal(m->n_capture, n->n_capture);
        for (uint32_t k = 0; k < cs_n_reads(m); k++)
            equal_value(a, cs_args(a, m)[k], b, cs_args(b, n)[k]);
        assert_int_equal(m->n_out, n->n_out);
        for (uint32_t k = 0; k < m->n_out; k++)
            equal_value(a, cs_outs(a, m)[k], b, cs_outs(b, n)[k]);
        assert_int_equal(m->n_write, n->n_write);
        for (uint32_t k = 0; k < m->n_write; k++)
            equal_value(a, a->writes.at[m->write + k], b, b->writes.at[n->write + k]);
        assert_int_equal(m->n_allow, n->n_allow);
        for (uint32_t k = 0; k < m->n_allow; k++)
            equal_str(a, a->allow.at[m->allow + k], b, b->allow.at[n->allow + k]);
        assert_int_equal(m->n_attr, n->n_attr);
        for (uint32_t k = 0; k < m->n_attr; k++)
            equal_attr(a, &a->attrs.at[m->attr + k], b, &b->attrs.at[n->attr + k]);
        assert_int_equal(m->n_body, n->n_body);
        for (uint32_t k = 0; k < m->n_body; k++) {
            equal_str(a, a->bodies.at[m->body + k].attr, b, b->bodies.at[n->body + k].attr);
            equal_graph(a->bodies.at[m->body + k].graph, b->bodies.at[n->body + k].graph);
        }
        assert_int_equal(a->topo[i], b->topo[i]);
    }
    assert_int_equal(a->order.len, b->order.len);
    assert_int_equal(a->n_given, b->n_given);
    for (size_t i = 0; i < a->order.len; i++)
        assert_memory_equal(&a->order.at[i], &b->order.at[i], sizeof(cs_edge));
    assert_int_equal(a->groups.len, b->groups.len);
    for (size_t i = 0; i < a->groups.len; i++) {
        equal_str(a, a->groups.at[i].name, b, b->groups.at[i].name);
        assert_int_equal(a->groups.at[i].n_member, b->groups.at[i].n_member);
    }
    assert_int_equal(a->members.len, b->members.len);
    for (size_t i = 0; i < a->members.len; i++)
        assert_int_equal(a->members.at[i], b->members.at[i]);
    assert_int_equal(a->inputs.len, b->inputs.len);
    for (size_t i = 0; i < a->inputs.len; i++)
        equal_value(a, a->inputs.at[i], b, b->inputs.at[i]);
    assert_int_equal(a->outputs.len, b->outputs.len);
    for (size_t i = 0; i < a->outputs.len; i++)
        equal_value(a, a->outputs.at[i], b, b->outputs.at[i]);
}

static void random_round_trips(void **state)
{
    (void)state;
    size_t nodes = 0, nested = 0;
    for (uint64_t k = 0; k < 3000; k++) {
        seed = k * 7919;
        struct lines l = {0};
        uint32_t known = 0;
        if (below(2)) put(new_line(&l, 4), "opset 17 dom:3");
        put(new_line(&l, 5), "input %%v%u : %s", known, pick(types, 7));
        known++;
        for (uint32_t w = below(4); w-- > 0; known++) {
            struct string *s = new_line(&l, 5);
            put(s, "weight %%v%u : f32[4]", known);
            if (known > 1 && below(3) == 0) put(s, " = %%v%u", 1 + below(known - 1));
        }
        random_nodes(&l, "v", known, 0);
        char *plain = join(&l, false), *mixed = join(&l, true);
        cs_graph *a = read_text(plain), *b = read_text(mixed);
        char *out = write_text(a);
        cs_graph *c = read_text(out);
        char *again = write_text(c);
        equal_graph(a, b);
        equal_graph(a, c);
        assert_string_equal(out, again);
        nodes += a->nodes.len;
        for (size_t i = 0; i < a->bodies.len; i++)
            nested += a->bodies.at[i].graph->bodies.len;
        cs_graph_free(a);
        cs_graph_free(b);
        cs_graph_free(c);
        free(plain);
        free(mixed);
        free(out);
        free(again);
        for (int i = 0; i < l.n; i++)
            free(l.at[i].at);
    }
    assert_true(nodes > 5000 && nested > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_read_back),
        cmocka_unit_test(random_round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
