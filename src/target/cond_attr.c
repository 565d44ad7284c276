/* Conditions of an operator's rule on attributes. The first that fails makes the sentence. An
 * attribute that a condition needs and that is not decoded (a reference inside a function) refuses:
 * a plan must not promise what an engine's builder may turn down.
 *
 * No allocation; cost: the number of conditions, plus the lengths of the lists looked at.
 */
#include "target/rules.h"

#include <math.h>
#include <string.h>

bool cs_versions_hold(cs_versions v, const cs_node *n)
{
    if (n->opset == 0) return v.until == INT32_MAX; /* not known: counts as the newest */
    return n->opset >= v.since && n->opset <= v.until;
}

static bool is_number(const cs_literal *l, double x) { return l->is_number && l->number == x; }

static bool is_text(const cs_literal *l, cs_span text)
{
    return l->len == text.len && memcmp(l->text, text.at, text.len) == 0;
}

static bool is_literal(const cs_literal *a, const cs_literal *b)
{
    if (a->is_number && b->is_number) return a->number == b->number;
    return is_text(a, (cs_span){b->text, b->len});
}

/* ---- attributes ---- */

/* Elements of a list, 1 for a scalar; -1: not decoded. */
static int64_t attr_count(const cs_attr *a)
{
    switch (a->kind) {
    case CS_ATTR_INT:
    case CS_ATTR_FLOAT:
    case CS_ATTR_STRING:
        return 1;
    case CS_ATTR_INTS:
    case CS_ATTR_FLOATS:
    case CS_ATTR_STRINGS:
        return (int64_t)a->len;
    default:
        return -1;
    }
}

static bool elem_is(const cs_attr *a, size_t i, const cs_literal *l)
{
    switch (a->kind) {
    case CS_ATTR_INT:
        return is_number(l, (double)a->i);
    case CS_ATTR_INTS:
        return is_number(l, (double)a->ints[i]);
    case CS_ATTR_FLOAT:
        return l->is_number && (float)l->number == a->f;
    case CS_ATTR_FLOATS:
        return l->is_number && (float)l->number == a->floats[i];
    case CS_ATTR_STRING:
        return is_text(l, (cs_span){a->s, a->len});
    case CS_ATTR_STRINGS:
        return is_text(l, a->strings[i]);
    default:
        return false;
    }
}

static bool elem_number(const cs_attr *a, size_t i, double *x)
{
    switch (a->kind) {
    case CS_ATTR_INT:
        *x = (double)a->i;
        return true;
    case CS_ATTR_INTS:
        *x = (double)a->ints[i];
        return true;
    case CS_ATTR_FLOAT:
        *x = (double)a->f;
        return true;
    case CS_ATTR_FLOATS:
        *x = (double)a->floats[i];
        return true;
    default:
        return false;
    }
}

static bool elem_in(const cs_attr *a, size_t i, cs_literals list)
{
    for (size_t k = 0; k < list.n; k++)
        if (elem_is(a, i, &list.at[k])) return true;
    return false;
}

static bool literal_in(const cs_literal *l, cs_literals list)
{
    for (size_t k = 0; k < list.n; k++)
        if (is_literal(l, &list.at[k])) return true;
    return false;
}

static void print_elem(cs_reason *r, const cs_attr *a, size_t i)
{
    char text[32];
    double x;
    if (a->kind == CS_ATTR_INT || a->kind == CS_ATTR_INTS) {
        cs_reason_add(r, "%lld", (long long)(a->kind == CS_ATTR_INT ? a->i : a->ints[i]));
    } else if (elem_number(a, i, &x)) {
        cs_format_f32((float)x, text);
        cs_reason_add(r, "%s", text);
    } else {
        cs_span s = a->kind == CS_ATTR_STRING ? (cs_span){a->s, a->len} : a->strings[i];
        cs_reason_add(r, "\"%.*s\"", (int)(s.len > 80 ? 80 : s.len), s.at);
    }
}

static void print_attr(cs_reason *r, const cs_attr *a)
{
    int64_t count = attr_count(a);
    bool list = a->kind >= CS_ATTR_INTS && a->kind <= CS_ATTR_STRINGS;
    cs_reason_add(r, "%s", list ? "[" : "");
    for (int64_t i = 0; i < count && i < 8; i++) {
        cs_reason_add(r, "%s", i > 0 ? ", " : "");
        print_elem(r, a, (size_t)i);
    }
    cs_reason_add(r, "%s%s", count > 8 ? ", ..." : "", list ? "]" : "");
}

static cs_span op_name(const cs_graph *g, const cs_node *n) { return cs_name(g->pool, n->op); }

bool cs_when_holds(const cs_when *when, const cs_graph *g, const cs_node *n)
{
    if (when == NULL) return true;
    if (when->input >= 0 && cs_node_arg(g, n, (uint32_t)when->input) == CS_NONE) return false;
    if (when->attr == NULL) return true;
    const cs_attr *a = cs_node_attr(g, n, when->attr);
    if (a == NULL) return when->otherwise.n > 0 && literal_in(&when->otherwise.at[0], when->is);
    int64_t count = attr_count(a);
    return count < 0 || (count == 1 && elem_in(a, 0, when->is)); /* not decoded: it may */
}

static bool halves_equal(const cs_attr *a)
{
    bool list = a->kind >= CS_ATTR_INTS && a->kind <= CS_ATTR_STRINGS;
    if (!list || a->len % 2 != 0) return false;
    size_t half = a->len / 2;
    for (size_t i = 0; i < half; i++) {
        bool same = a->kind == CS_ATTR_INTS      ? a->ints[i] == a->ints[half + i]
                    : a->kind == CS_ATTR_FLOATS  ? a->floats[i] == a->floats[half + i]
                    : a->kind == CS_ATTR_STRINGS ? cs_span_eq(a->strings[i], a->strings[half + i])
                                                 : false;
        if (!same) return false;
    }
    return true;
}

static bool is_iota(const cs_attr *a, const cs_graph *g, const cs_node *n)
{
    uint32_t x = cs_node_arg(g, n, 0);
    if (a->kind != CS_ATTR_INTS || x == CS_NONE) return false;
    if ((int64_t)a->len != cs_type_get(g->pool, g->values.at[x].type)->rank) return false;
    for (size_t i = 0; i < a->len; i++)
        if (a->ints[i] != (int64_t)i) return false;
    return true;
}

/* What the value must be, or NULL where it is fine. */
static const char *attr_fault(const cs_attr_rule *c, const cs_attr *a, const cs_graph *g,
                              const cs_node *n)
{
    int64_t count = attr_count(a);
    if (c->is.n > 0 && !(count == 1 && elem_in(a, 0, c->is))) return "it must be ";
    for (int64_t i = 0; i < count; i++) {
        double x;
        if (c->each.n > 0 && !elem_in(a, (size_t)i, c->each)) return "every element must be ";
        if (c->min == -INFINITY && c->max == INFINITY) continue;
        if (!elem_number(a, (size_t)i, &x) || !(x >= c->min && x <= c->max)) return "it must be ";
    }
    if (c->halves && !halves_equal(a)) return "its second half must repeat the first";
    if (c->iota && !is_iota(a, g, n)) return "it must be 0, 1, ... rank - 1";
    return NULL;
}

static bool attr_refuses(const cs_attr_rule *c, const cs_graph *g, const cs_node *n, cs_reason *r)
{
    const cs_attr *a = cs_node_attr(g, n, c->name);
    cs_span op = op_name(g, n);
    r->rule = CS_RULE_ATTR;
    if (a == NULL) {
        if (c->given) {
            cs_reason_add(r, "%.*s without attribute %s is not supported", CS_FMT(op), c->name);
            return true;
        }
        cs_literals want = c->is.n > 0 ? c->is : c->each;
        if (c->otherwise.n == 0 || want.n == 0 || literal_in(&c->otherwise.at[0], want))
            return false;
        cs_reason_add(r, "%.*s with %s = %s, the default, is not supported; it must be ",
                      CS_FMT(op), c->name, c->otherwise.at[0].text);
        cs_reason_literals(r, want);
        return true;
    }
    if (c->absent) {
        cs_reason_add(r, "%.*s with attribute %s is not supported", CS_FMT(op), c->name);
        return true;
    }
    if (attr_count(a) < 0) {
        bool needs = c->is.n + c->each.n > 0 || c->min > -INFINITY || c->max < INFINITY ||
                     c->halves || c->iota;
        if (needs)
            cs_reason_add(r, "%.*s whose attribute %s is not known is not supported", CS_FMT(op),
                          c->name);
        return needs;
    }
    const char *fault = attr_fault(c, a, g, n);
    if (fault == NULL) return false;
    cs_reason_add(r, "%.*s with %s = ", CS_FMT(op), c->name);
    print_attr(r, a);
    cs_reason_add(r, " is not supported; %s", fault);
    if (fault[strlen(fault) - 1] != ' ') return true;
    if (c->is.n + c->each.n > 0)
        cs_reason_literals(r, c->is.n > 0 ? c->is : c->each);
    else
        cs_reason_range(r, c->min, c->max);
    return true;
}

bool cs_attrs_refuse(const cs_op_rule *rule, const cs_graph *g, const cs_node *n, cs_reason *r)
{
    for (size_t i = 0; i < rule->n_attrs; i++) {
        const cs_attr_rule *c = &rule->attrs[i];
        if (cs_versions_hold(c->versions, n) && cs_when_holds(c->when, g, n) &&
            attr_refuses(c, g, n, r))
            return true;
    }
    return false;
}
