/* Rules: output types told by a short text in the table, for operators that need no code.
 *
 *     rule   = output { " " output }            one for each output, in order
 *     output = "-" | elem [shape]               "-": nothing is told
 *     elem   = one { "|" one }                  the first that is known
 *     one    = INPUT | "f32" | "i64" ...        an input's element type, or a type
 *     shape  = "=" INPUT { "*" INPUT }          an input's shape; broadcast with others
 *            | "~" INPUT [ ("+" | "-") N ]      an input's rank (plus or minus), dims unknown
 *            | "[" [ dim { "," dim } ] "]"      that many dims
 *     dim    = N | "?" | "@" INPUT "." AXIS     an input's dim; AXIS counts from the front
 *
 * Without a shape the rank is unknown. Example: "0=0 i64[@0.0,?]". Rules are ours, not the model's:
 * a malformed one is a mistake that tests find.
 */
#include <assert.h>
#include <string.h>

#include "onnx/infer_ops.h"

typedef struct cursor {
    const char *at;
} cursor;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool take(cursor *c, char x)
{
    if (*c->at != x) return false;
    c->at++;
    return true;
}

static uint32_t number(cursor *c)
{
    assert(is_digit(*c->at));
    uint32_t n = 0;
    while (is_digit(*c->at))
        n = n * 10 + (uint32_t)(*c->at++ - '0');
    return n;
}

static cs_elem elem(const cs_op *op, cursor *c)
{
    cs_elem e = CS_ELEM_NONE;
    do {
        cs_elem one;
        if (is_digit(*c->at)) {
            one = cs_op_elem(op, number(c));
        } else {
            size_t len = strcspn(c->at, " =~[|");
            one = cs_elem_parse((cs_span){c->at, len});
            assert(one != CS_ELEM_NONE);
            c->at += len;
        }
        e = e ? e : one;
    } while (take(c, '|'));
    return e;
}

static void listed_dims(const cs_op *op, cursor *c, cs_shape *s)
{
    s->rank = 0;
    if (take(c, ']')) return;
    do {
        cs_dim d = CS_DIM_UNKNOWN;
        if (take(c, '@')) {
            uint32_t arg = number(c);
            c->at++; /* the dot */
            d = cs_op_dim(op, arg, (int)number(c));
        } else if (!take(c, '?')) {
            d = number(c);
        }
        cs_shape_push(s, d);
    } while (take(c, ','));
    c->at++; /* the bracket */
}

static void shape(const cs_op *op, cursor *c, cs_shape *s)
{
    cs_shape_unknown(s);
    if (take(c, '=')) {
        cs_op_shape(op, number(c), s);
        while (take(c, '*')) {
            cs_shape other;
            cs_op_shape(op, number(c), &other);
            cs_shape_broadcast(s, &other);
        }
    } else if (take(c, '~')) {
        int rank = cs_op_rank(op, number(c));
        int by = 0;
        if (take(c, '+'))
            by = (int)number(c);
        else if (take(c, '-'))
            by = -(int)number(c);
        cs_shape_rank(s, rank < 0 ? -1 : rank + by);
    } else if (take(c, '[')) {
        listed_dims(op, c, s);
    }
}

void cs_infer_rule(cs_op *op)
{
    cursor c = {op->entry->rule};
    for (uint32_t out = 0; *c.at; out++) {
        if (!take(&c, '-')) {
            cs_shape s;
            cs_elem e = elem(op, &c);
            shape(op, &c, &s);
            cs_op_put(op, out, e, &s);
        }
        assert(*c.at == ' ' || !*c.at);
        take(&c, ' ');
    }
}
