/* Conditions of an operator's rule on its inputs and outputs: given or absent, rank, dims, known
 * before run time, value of a small constant. Element types are judged in check.c.
 *
 * What cannot be decided refuses, except constants too large to be at hand under `unseen: take`.
 * No allocation; cost: the number of conditions, plus the bytes of the small constants looked at.
 */
#include "target/rules.h"

#include <math.h>
#include <string.h>

/* One input or output under judgement. */
typedef struct cs_spot {
    const cs_graph *g;
    const cs_node *n;
    const cs_arg_rule *c;
    bool output;
    uint32_t position, value;
} cs_spot;

/* "Attention: input 4 (past_key) " */
static void begin(cs_reason *r, const cs_spot *s, cs_rule rule)
{
    cs_span op = cs_name(s->g->pool, s->n->op);
    r->rule = rule;
    cs_reason_add(r, "%.*s: %s %u ", CS_FMT(op), s->output ? "output" : "input", s->position);
    if (s->c->name != NULL) cs_reason_add(r, "(%s) ", s->c->name);
}

/* ---- values of small constants ---- */

static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double x = exponent == 0    ? ldexp(fraction, -24)
               : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                : ldexp(fraction + 1024, exponent - 25);
    return h >> 15 ? -x : x;
}

static double float_value(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Of the 4-, 6- and 8-bit floats only zero is told from the rest. */
static double tiny_float(unsigned bits, unsigned width)
{
    return (bits & ((1U << (width - 1)) - 1)) == 0 ? 0.0 : NAN;
}

static unsigned packed(const unsigned char *data, size_t i, unsigned width)
{
    size_t bit = i * width;
    unsigned two = data[bit / 8];
    if (bit % 8 + width > 8) two |= (unsigned)data[bit / 8 + 1] << 8;
    return two >> bit % 8 & ((1U << width) - 1);
}

static double elem_value(cs_elem elem, const unsigned char *data, size_t i)
{
    unsigned width = cs_elem_bits(elem);
    if (width < 8) {
        unsigned bits = packed(data, i, width);
        if (elem == CS_U4 || elem == CS_U2) return bits;
        if (elem != CS_I4 && elem != CS_I2) return tiny_float(bits, width);
        return bits >> (width - 1) ? (double)bits - (1U << width) : (double)bits;
    }
    uint64_t x = 0; /* little-endian */
    for (unsigned b = 0; b < width / 8 && b < 8; b++)
        x |= (uint64_t)data[i * (width / 8) + b] << 8 * b;
    double wide;
    switch (elem) {
    case CS_BOOL:
        return x != 0;
    case CS_I8:
        return (int8_t)x;
    case CS_I16:
        return (int16_t)x;
    case CS_I32:
        return (int32_t)x;
    case CS_I64:
        return (double)(int64_t)x;
    case CS_U8:
    case CS_U16:
    case CS_U32:
    case CS_U64:
        return (double)x;
    case CS_F16:
        return half_value((uint16_t)x);
    case CS_BF16:
        return float_value((uint32_t)x << 16);
    case CS_F32:
        return float_value((uint32_t)x);
    case CS_F64:
        memcpy(&wide, &x, sizeof wide);
        return wide;
    case CS_F8E8M0:
        return NAN; /* has no zero */
    case CS_F8E4M3FN:
    case CS_F8E4M3FNUZ:
    case CS_F8E5M2:
    case CS_F8E5M2FNUZ:
        return tiny_float((unsigned)x, 8);
    default:
        return NAN;
    }
}

static bool value_fits(const cs_arg_rule *c, double x)
{
    if (!(x >= c->min && x <= c->max) && (c->min > -INFINITY || c->max < INFINITY)) return false;
    for (size_t k = 0; k < c->is.n; k++)
        if (c->is.at[k].is_number && c->is.at[k].number == x) return true;
    return c->is.n == 0;
}

static bool value_refuses(const cs_spot *s, cs_reason *r)
{
    const cs_storage *storage = cs_value_const(s->g, s->value);
    unsigned width = storage != NULL ? cs_elem_bits(storage->elem) : 0;
    if (storage == NULL || storage->data == NULL || width == 0) {
        if (s->c->unseen) return false;
        begin(r, s, CS_RULE_CONST);
        cs_reason_add(r, "is a constant whose value is not at hand, and only some are supported");
        return true;
    }
    size_t count = (size_t)(storage->bytes * 8 / width);
    for (size_t i = 0; i < count; i++) {
        double x = elem_value(storage->elem, storage->data, i);
        if (value_fits(s->c, x)) continue;
        begin(r, s, CS_RULE_ATTR);
        char text[32];
        cs_format_f64(x, text);
        if (x == floor(x) && fabs(x) < 1e15) text[strcspn(text, ".e")] = 0;
        cs_reason_add(r, "= %s is not supported; it must be ", isnan(x) ? "such a value" : text);
        if (s->c->is.n > 0)
            cs_reason_literals(r, s->c->is);
        else
            cs_reason_range(r, s->c->min, s->c->max);
        return true;
    }
    return false;
}

/* ---- ranks and dims ---- */

static bool rank_refuses(const cs_spot *s, int rank, cs_reason *r)
{
    const cs_arg_rule *c = s->c;
    if (c->ranks == 0 && c->min_rank == 0 && c->max_rank == CS_RANK_ANY) return false;
    bool fits = rank >= 0 && rank >= c->min_rank && rank <= c->max_rank &&
                (c->ranks == 0 || (rank < 32 && (c->ranks >> rank & 1)));
    if (fits) return false;
    begin(r, s, CS_RULE_RANK);
    if (rank < 0)
        cs_reason_add(r, "has a rank that is not known; it must be ");
    else
        cs_reason_add(r, "has rank %d; it must be ", rank);
    if (c->ranks == 0) {
        cs_reason_range(r, c->min_rank > 0 ? c->min_rank : -INFINITY,
                        c->max_rank < CS_RANK_ANY ? c->max_rank : INFINITY);
        return true;
    }
    const char *comma = "";
    for (int k = 0; k < 32; k++)
        if (c->ranks >> k & 1) {
            cs_reason_add(r, "%s%d", comma, k);
            comma = " or ";
        }
    return true;
}

static bool dim_fits(const cs_dim_rule *d, cs_dim dim)
{
    if (dim < 0)
        return false; /* a symbol, or not known: static, is, min and max all need a number */
    if (dim < d->min || dim > d->max) return false;
    for (size_t k = 0; k < d->is.n; k++)
        if (d->is.at[k].is_number && d->is.at[k].number == (double)dim) return true;
    return d->is.n == 0;
}

static bool dim_refuses(const cs_spot *s, const cs_dim_rule *d, const cs_type_info *t, cs_reason *r)
{
    int64_t index =
        d->attr != NULL ? cs_node_int(s->g, s->n, d->attr, (int64_t)d->at) : (int64_t)d->at;
    int64_t at = index < 0 ? index + t->rank : index;
    if (t->rank < 0) {
        begin(r, s, CS_RULE_SHAPE);
        cs_reason_add(r, "has a shape that is not known; dim %lld matters", (long long)index);
        return true;
    }
    bool there = at >= 0 && at < t->rank;
    cs_dim dim = there ? s->g->pool->dims.at[t->dims + (uint32_t)at] : CS_DIM_UNKNOWN;
    if (dim_fits(d, dim)) return false;
    begin(r, s, CS_RULE_SHAPE);
    if (!there) {
        cs_reason_add(r, "has no dim %lld", (long long)index);
    } else if (dim < 0) {
        cs_reason_add(r, "has a dim %lld that is not a number before run time", (long long)index);
    } else {
        cs_reason_add(r, "has dim %lld = %lld; it must be ", (long long)index, (long long)dim);
        if (d->is.n > 0)
            cs_reason_literals(r, d->is);
        else
            cs_reason_range(r, d->min > 0 ? (double)d->min : -INFINITY,
                            d->max < INT64_MAX ? (double)d->max : INFINITY);
    }
    return true;
}

static bool shape_refuses(const cs_spot *s, cs_reason *r)
{
    const cs_type_info *t = cs_type_get(s->g->pool, s->g->values.at[s->value].type);
    cs_type_info unknown = {.rank = CS_RANK_UNKNOWN};
    if (t->kind != CS_TENSOR) t = &unknown;
    if (rank_refuses(s, t->rank, r)) return true;
    bool fixed = t->rank >= 0;
    for (int i = 0; i < t->rank; i++)
        fixed &= s->g->pool->dims.at[t->dims + (uint32_t)i] >= 0;
    if (s->c->fixed && !fixed) {
        begin(r, s, CS_RULE_SHAPE);
        cs_reason_add(r, "must have a shape that is all numbers before run time");
        return true;
    }
    for (size_t i = 0; i < s->c->n_dims; i++)
        if (dim_refuses(s, &s->c->dims[i], t, r)) return true;
    return false;
}

/* ---- one input or output ---- */

static bool is_used(const cs_graph *g, uint32_t value)
{
    if (g->use[value] != g->use[value + 1]) return true;
    for (size_t i = 0; i < g->outputs.len; i++)
        if (g->outputs.at[i] == value) return true;
    return false;
}

static bool spot_refuses(const cs_spot *s, cs_reason *r)
{
    const cs_arg_rule *c = s->c;
    if (s->value == CS_NONE) {
        if (!c->given) return false;
        begin(r, s, CS_RULE_ATTR);
        cs_reason_add(r, "must be given");
        return true;
    }
    if (c->absent || (c->unused && is_used(s->g, s->value))) {
        begin(r, s, CS_RULE_ATTR);
        cs_reason_add(r, c->absent ? "is not supported" : "is not supported where it is read");
        return true;
    }
    if (shape_refuses(s, r)) return true;
    if ((c->constant || c->valued) && !cs_value_is_const(s->g, s->value)) {
        begin(r, s, CS_RULE_CONST);
        cs_reason_add(r, "must be a constant");
        return true;
    }
    return c->valued && value_refuses(s, r);
}

static bool rule_refuses(cs_spot s, const uint32_t *values, uint32_t n_values, cs_reason *r)
{
    if (!cs_versions_hold(s.c->versions, s.n) || !cs_when_holds(s.c->when, s.g, s.n)) return false;
    for (uint32_t p = 0; p < n_values || p < CS_POS_REST; p++) {
        if (!(s.c->positions >> (p < CS_POS_REST ? p : CS_POS_REST) & 1)) continue;
        s.position = p;
        s.value = p < n_values ? values[p] : CS_NONE;
        if (spot_refuses(&s, r)) return true;
    }
    return false;
}

bool cs_args_refuse(const cs_op_rule *rule, const cs_graph *g, const cs_node *n, cs_reason *r)
{
    cs_spot s = {.g = g, .n = n};
    for (size_t i = 0; i < rule->n_inputs; i++) {
        s.c = &rule->inputs[i];
        if (rule_refuses(s, cs_args(g, n), n->n_arg, r)) return true;
    }
    s.output = true;
    for (size_t i = 0; i < rule->n_outputs; i++) {
        s.c = &rule->outputs[i];
        if (rule_refuses(s, cs_outs(g, n), n->n_out, r)) return true;
    }
    return false;
}
