/* What a value is and what a node is marked as, in plans of graphs built by hand: lists cross
 * nothing, scalars no engine when only tensors may, nodes that compute nothing leave the ends of
 * engines, nodes that do not count or are exempt. The rows of torch.fx stand with their names.
 */
#include "graph_build.h"
#include "plan/work.h"

static cs_graph *g;
static cutset_target *target;

static int make_target(void **state)
{
    (void)state;
    return cutset_target_marked(&target, "acc", 1, 0, 0, NULL) ? -1 : 0;
}

static int free_target(void **state)
{
    (void)state;
    cutset_target_free(target);
    return 0;
}

/* Marks the node that makes `value`; "acc", "host" (the default), or "pin". */
static uint32_t on(const char *where, uint32_t value)
{
    cs_node *n = &g->nodes.at[g->values.at[value].from];
    n->allow = (uint32_t)g->allow.len, n->n_allow = 1;
    if (strcmp(where, "host") != 0) assert_true(cs_vec_push(&g->allow, str(g, "acc")));
    if (strcmp(where, "pin") != 0) assert_true(cs_vec_push(&g->allow, str(g, "host")));
    n->n_allow = (uint32_t)g->allow.len - n->allow;
    return value;
}

static uint32_t kind(uint8_t k, uint32_t value)
{
    g->values.at[value].kind = k;
    return value;
}

static uint32_t mark(uint32_t flags, uint32_t value)
{
    g->nodes.at[g->values.at[value].from].flags |= flags;
    return value;
}

#define ACC(name, ...) on("acc", add_node(g, name, __VA_ARGS__, -1))
#define HOST(name, ...) on("host", add_node(g, name, __VA_ARGS__, -1))
#define LIST(v) kind(CS_VALUE_LIST, v)
#define SCALAR(v) kind(CS_VALUE_SCALAR, v)
#define VIEW(v) mark(CS_NODE_BOOKEND | CS_NODE_FREE, v)

static int begin(const char *input)
{
    g = new_graph();
    return (int)add_input(g, input);
}

static void output(uint32_t value) { assert_true(cs_vec_push(&g->outputs, value)); }

static size_t append(char *text, size_t len, size_t size, cs_span word, const char *before)
{
    const int n = snprintf(text + len, size - len, "%s%.*s", before, CS_FMT(word));
    assert_true(n >= 0 && len + (size_t)n < size);
    return len + (size_t)n;
}

/* "acc{a b} host{c}": the parts with their nodes in execution order. */
static const char *parts_of(const cutset_plan *plan)
{
    static char text[2000];
    size_t len = 0;
    text[0] = 0;
    for (size_t p = 0; p < plan->parts.len; p++) {
        const cs_part *part = &plan->parts.at[p];
        len = append(text, len, sizeof text, cs_span_of(part->target < 0 ? "host{" : "acc{"),
                     p ? " " : "");
        for (uint32_t i = 0; i < part->n_node; i++)
            len = append(text, len, sizeof text,
                         cs_strtab_get(&plan->names, plan->node_label.at[part->node + i]),
                         i ? " " : "");
        len = append(text, len, sizeof text, cs_span_of("}"), "");
    }
    return text;
}

static void planned(const cutset_plan_opts *o, const char *parts)
{
    cutset_plan *plan;
    if (!g->sealed) seal(g);
    const cutset_target *const targets[] = {target};
    const cs_plan_source source = {.graph = g, .hash = 1};
    if (cs_plan_make(&plan, &source, targets, 1, o, &err)) fail_msg("%s", err.message);
    assert_string_equal(parts_of(plan), parts);
    cutset_plan_free(plan);
}

static const cutset_plan_opts plain = {.effort = 1}, tensors = {.effort = 1, .tensors_only = 1},
                              trimmed = {.effort = 1, .bookends = 1};

/* The rule and the sentence of a node that stays on the host. */
static void falls_back(const cutset_plan_opts *o, const char *node, cs_rule rule, const char *why)
{
    cutset_plan *plan;
    const cutset_target *const targets[] = {target};
    const cs_plan_source source = {.graph = g, .hash = 1};
    if (cs_plan_make(&plan, &source, targets, 1, o, &err)) fail_msg("%s", err.message);
    for (size_t i = 0; i < plan->fallback.len; i++) {
        const cs_fallback *f = &plan->fallback.at[i];
        if (!cs_span_is(cs_strtab_get(&plan->names, f->label), node)) continue;
        assert_int_equal(f->rule, rule);
        const cs_span text = cs_strtab_get(&plan->names, f->why);
        assert_true(text.len == strlen(why));
        assert_memory_equal(text.at, why, text.len);
        why = NULL;
    }
    assert_null(why);
    cutset_plan_free(plan);
}

/* ---- kinds ---- */

/* Finder (trt_splitter_test): a1 = size(x), a2 = a1[0], b = y + a2 (host), c = z - a2, d = b +
 * c. */
static void finder(uint8_t size_kind)
{
    const int x = begin("x"), y = (int)add_input(g, "y"), z = (int)add_input(g, "z");
    const int a1 = (int)kind(size_kind, ACC("a1", x));
    const int a2 = (int)SCALAR(ACC("a2", a1));
    const int b = (int)HOST("b", y, a2), c = (int)ACC("c", z, a2);
    output(HOST("d", b, c));
}

static void no_scalar_from_or_to_the_host(void **state)
{
    (void)state;
    finder(CS_VALUE_LIST);
    planned(&tensors, "host{a1 a2 b c d}");
    falls_back(&tensors, "a2", CS_RULE_BOUNDARY,
               "its output a2 would cross the boundary: only tensors pass in and out of engines");
    falls_back(&tensors, "c", CS_RULE_BOUNDARY,
               "its input a2 would cross the boundary: only tensors pass in and out of engines");
    falls_back(&tensors, "a1", CS_RULE_BOUNDARY,
               "its output a1 would cross the boundary: a list may not cross a border");
    cs_graph_free(g);
    finder(CS_VALUE_SCALAR);
    planned(&tensors, "host{a1 a2 b c d}");
    planned(&plain, "acc{a1 a2 c} host{b d}"); /* a number crosses as it is */
    cs_graph_free(g);
}

/* Fusion: a = size(x), b = x + x, a0 a1 a2 of it, c = view(x, a1, a0), d = c + c, e = d + a2. */
static void fusion(bool all)
{
    const char *const where = all ? "acc" : "host";
    const int x = begin("x");
    const int a = (int)LIST(on(where, add_node(g, "a", x, -1)));
    const int b = (int)ACC("b", x, x);
    const int a0 = (int)SCALAR(on(where, add_node(g, "a0", a, -1)));
    const int a1 = (int)SCALAR(on(where, add_node(g, "a1", a, -1)));
    const int a2 = (int)SCALAR(on(where, add_node(g, "a2", a, -1)));
    const int c = (int)on(where, add_node(g, "c", x, a1, a0, -1));
    const int d = (int)ACC("d", c, c);
    output(ACC("e", d, a2));
    output((uint32_t)b);
}

static void scalars_inside_an_engine(void **state)
{
    (void)state;
    fusion(true);
    planned(&tensors, "acc{a b a0 a1 a2 c d e}");
    cs_graph_free(g);
    fusion(false);
    planned(&tensors, "host{a a0 a1 a2 c} acc{b d} host{e}");
    planned(&plain, "host{a a0 a1 a2 c} acc{b d e}");
    cs_graph_free(g);
}

/* Tracker (test_fx_split_node_finder): the second node's scalar has a reader on the host. */
static void scalar_with_a_reader_on_the_host(void **state)
{
    (void)state;
    const int x = begin("x");
    const int s0 = (int)ACC("s0", x), s1 = (int)SCALAR(ACC("s1", s0));
    const int add = (int)HOST("add", s1, s0);
    output(ACC("s2", add));
    planned(&tensors, "acc{s0} host{s1 add} acc{s2}");
    cs_graph_free(g);
}

static void scalars_at_the_ends_of_the_graph(void **state)
{
    (void)state;
    const int x = begin("x"), n = (int)SCALAR(add_input(g, "n"));
    const int a = (int)ACC("a", x, n), b = (int)ACC("b", a);
    output(SCALAR(ACC("c", b)));
    planned(&tensors, "host{a} acc{b} host{c}");
    planned(&plain, "acc{a b c}");
    cs_graph_free(g);
}

static void lists_at_the_ends_of_the_graph(void **state)
{
    (void)state;
    const int l = begin("l");
    LIST((uint32_t)l);
    const int a = (int)ACC("a", l), b = (int)ACC("b", a);
    output(LIST(ACC("c", b)));
    planned(&plain, "host{a} acc{b} host{c}"); /* it comes from the caller, and goes to it */
    cs_graph_free(g);
}

static void lists_cross_no_border(void **state)
{
    (void)state;
    int x = begin("x"); /* from the host to an engine: its reader goes to the maker's part */
    int l = (int)LIST(HOST("l", x));
    int b = (int)ACC("b", x);
    output(ACC("c", l, b));
    planned(&plain, "acc{b} host{l c}");
    cs_graph_free(g);

    x = begin("x"); /* from one host part to another: what is between goes to the host */
    l = (int)LIST(HOST("l", x));
    const int h = (int)HOST("h", l);
    b = (int)ACC("b", h);
    output(HOST("c", l, b));
    planned(&plain, "host{l h b c}");
    cs_graph_free(g);

    x = begin("x"); /* inside an engine, that would be two by the levels alone */
    l = (int)LIST(ACC("l", x));
    b = (int)HOST("b", x);
    output(ACC("c", l, b));
    planned(&plain, "host{b} acc{l c}");
    cs_graph_free(g);
}

/* ---- bookends ---- */

static void ends_that_compute_nothing(void **state)
{
    (void)state;
    int x = begin("x"); /* F15 */
    int v = (int)VIEW(ACC("view", x));
    v = (int)VIEW(ACC("p0", v));
    v = (int)ACC("add0", v);
    v = (int)VIEW(ACC("p1", v));
    v = (int)ACC("add1", v);
    v = (int)VIEW(ACC("p2", v));
    output(VIEW(ACC("p3", v)));
    planned(&plain, "acc{view p0 add0 p1 add1 p2 p3}");
    planned(&trimmed, "host{view p0} acc{add0 p1 add1} host{p2 p3}");
    falls_back(&trimmed, "p3", CS_RULE_BOUNDARY, "it computes nothing at the end of an engine");
    cs_graph_free(g);

    x = begin("x"); /* F16 */
    v = (int)HOST("sub0", x);
    v = (int)VIEW(ACC("view", v));
    v = (int)VIEW(ACC("p0", v));
    v = (int)ACC("add0", v);
    v = (int)VIEW(ACC("p1", v));
    v = (int)ACC("add1", v);
    v = (int)VIEW(ACC("p2", v));
    v = (int)VIEW(ACC("p3", v));
    output(HOST("sub1", v));
    planned(&plain, "host{sub0} acc{view p0 add0 p1 add1 p2 p3} host{sub1}");
    planned(&trimmed, "host{sub0 view p0} acc{add0 p1 add1} host{p2 p3 sub1}");
    cs_graph_free(g);
}

static void engines_of_nothing_else(void **state)
{
    (void)state;
    const int x = begin("x");
    int v = (int)ACC("a", x);
    v = (int)HOST("b", v);
    v = (int)VIEW(ACC("c", v));
    v = (int)VIEW(ACC("d", v));
    v = (int)HOST("e", v);
    output(ACC("f", v));
    planned(&plain, "acc{a} host{b} acc{c d} host{e} acc{f}");
    planned(&trimmed, "acc{a} host{b c d e} acc{f}");
    const cutset_plan_opts sized = {.effort = 1, .min_nodes = 1};
    planned(&sized, "acc{a} host{b c d e} acc{f}"); /* nothing in it counts */
    falls_back(&sized, "d", CS_RULE_SIZE, "no engine of 1 nodes or more can hold it");
    cs_graph_free(g);
}

static void ends_with_companions_and_pins(void **state)
{
    (void)state;
    int x = begin("x");
    int v = (int)ACC("a", x);
    const int l = (int)LIST(VIEW(ACC("unbind", v)));
    output(mark(CS_NODE_FOLLOW | CS_NODE_FREE, ACC("item0", l)));
    output(mark(CS_NODE_FOLLOW | CS_NODE_FREE, ACC("item1", l)));
    planned(&trimmed, "acc{a} host{unbind item0 item1}");
    cs_graph_free(g);

    x = begin("x");
    v = (int)VIEW(on("pin", add_node(g, "view", x, -1)));
    v = (int)ACC("a", v);
    output(VIEW(ACC("p", v)));
    planned(&trimmed, "acc{view a} host{p}");
    cs_graph_free(g);
}

/* ---- nodes that do not count, exempt nodes ---- */

static void least_size_counts_some(void **state)
{
    (void)state;
    const cutset_plan_opts two = {.effort = 1, .min_nodes = 2};
    const int x = begin("x");
    int v = (int)ACC("a", x);
    v = (int)mark(CS_NODE_FREE, ACC("b", v));
    v = (int)HOST("c", v);
    v = (int)ACC("d", v);
    v = (int)mark(CS_NODE_FREE, ACC("e", v));
    output(ACC("f", v));
    planned(&two, "host{a b c} acc{d e f}");
    falls_back(&two, "b", CS_RULE_SIZE, "no engine of 2 nodes or more can hold it");
    mark(CS_NODE_EXEMPT, (uint32_t)x + 1); /* a */
    planned(&two, "acc{a b} host{c} acc{d e f}");
    cs_graph_free(g);
}

static void few_engines(void **state)
{
    (void)state;
    const int x = begin("x");
    int v = (int)ACC("a", x);
    v = (int)HOST("b", v);
    v = (int)ACC("c", v);
    v = (int)ACC("d", v);
    v = (int)HOST("e", v);
    output(ACC("f", v));
    const cutset_plan_opts two = {.effort = 1, .max_engines = 2},
                           one = {.effort = 1, .max_engines = 1};
    planned(&two, "acc{a} host{b} acc{c d} host{e f}");
    falls_back(&two, "f", CS_RULE_LIMIT,
               "with it there would be more than 2 engines");
    planned(&one, "host{a b} acc{c d} host{e f}");
    cs_graph_free(g);
}

static void few_engines_and_pins(void **state)
{
    (void)state;
    const cutset_plan_opts one = {.effort = 1, .max_engines = 1};
    const int x = begin("x");
    int v = (int)on("pin", add_node(g, "a", x, -1));
    v = (int)HOST("b", v);
    v = (int)ACC("c", v);
    v = (int)HOST("d", v);
    output(on("pin", add_node(g, "e", v, -1)));
    seal(g);
    cutset_plan *plan;
    const cutset_target *const targets[] = {target};
    const cs_plan_source source = {.graph = g, .hash = 1};
    assert_int_equal(cs_plan_make(&plan, &source, targets, 1, &one, &err), CUTSET_NO);
    assert_string_equal(err.message,
                        "--max-engines 1: pinned nodes on one path with host nodes "
                        "between need 2 engines (%a, %e): raise it to 2, or pin fewer");
    const cutset_plan_opts two = {.effort = 1, .max_engines = 2};
    planned(&two, "acc{a} host{b c d} acc{e}");
    cs_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_scalar_from_or_to_the_host),
        cmocka_unit_test(scalars_inside_an_engine),
        cmocka_unit_test(scalar_with_a_reader_on_the_host),
        cmocka_unit_test(scalars_at_the_ends_of_the_graph),
        cmocka_unit_test(lists_at_the_ends_of_the_graph),
        cmocka_unit_test(lists_cross_no_border),
        cmocka_unit_test(ends_that_compute_nothing),
        cmocka_unit_test(engines_of_nothing_else),
        cmocka_unit_test(ends_with_companions_and_pins),
        cmocka_unit_test(least_size_counts_some),
        cmocka_unit_test(few_engines),
        cmocka_unit_test(few_engines_and_pins),
    };
    return cmocka_run_group_tests(tests, make_target, free_target);
}
