/* Dims in the text form: numbers, ?, and expressions over symbols, in canonical spelling.
 *
 * A recursive descent over sum, prod and atom writes the canonical text into a buffer as it goes:
 * no blanks, only the parentheses that the shape of the expression needs, symbols in quotes only
 * where they must be, and every part without symbols folded to one number. Folding is over exact
 * fractions, so floor(7/2) is 3 although 7/2 is no size. Reading a canonical spelling gives it back.
 * Parentheses nest CS_TEXT_DEPTH deep at most. Cost: linear in text x depth.
 */
#include "graph/text.h"

#include <stdio.h>

__extension__ typedef __int128 wide;

/* How tightly the printed form binds; decides about parentheses. */
enum { PREC_SUM, PREC_PROD, PREC_ATOM };

struct term {
    size_t at;     /* its text is chars.at[at .. chars.len) while it is the last one */
    bool constant; /* num / den; den > 0, in lowest terms */
    int64_t num, den;
    int prec;
};

struct scan {
    cs_cursor *c;
    cs_fault *f;
    cs_chars chars, scratch;
    int depth;
    cs_span symbol; /* read as `value`; at NULL: none */
    int64_t value;
};

static cutset_status scan_sum(struct scan *s, struct term *t);

/* ---- constants ---- */

/* Makes t the number num / den; its text replaces all from t->at on. */
static cutset_status set_constant(struct scan *s, struct term *t, wide num, wide den,
                                  const char *at)
{
    if (den < 0) {
        num = -num;
        den = -den;
    }
    wide a = num < 0 ? -num : num, b = den;
    while (b) {
        wide rest = a % b;
        a = b;
        b = rest;
    }
    num /= a;
    den /= a;
    if (num > INT64_MAX || num < -(wide)INT64_MAX || den > INT64_MAX)
        return cs_fault_at(s->f, at, "a number over 64 bits in a dim: use smaller numbers");
    t->constant = true;
    t->num = (int64_t)num;
    t->den = (int64_t)den;
    t->prec = den == 1 ? PREC_ATOM : PREC_PROD;
    char text[48];
    int len = den == 1 ? snprintf(text, sizeof text, "%lld", (long long)num)
                       : snprintf(text, sizeof text, "%lld/%lld", (long long)num, (long long)den);
    s->chars.len = t->at;
    return cs_chars_put(&s->chars, (cs_span){text, (size_t)len}) ? CUTSET_OK : CUTSET_SYSTEM;
}

static int compare(const struct term *a, const struct term *b)
{
    wide x = (wide)a->num * b->den, y = (wide)b->num * a->den;
    return (x > y) - (x < y);
}

static cutset_status fold(struct scan *s, struct term *a, char op, const struct term *b,
                          const char *at)
{
    wide an = a->num, ad = a->den, bn = b->num, bd = b->den;
    switch (op) {
    case '+':
        return set_constant(s, a, an * bd + bn * ad, ad * bd, at);
    case '-':
        return set_constant(s, a, an * bd - bn * ad, ad * bd, at);
    case '*':
        return set_constant(s, a, an * bn, ad * bd, at);
    default:
        return set_constant(s, a, an * bd, ad * bn, at);
    }
}

/* ---- text ---- */

/* Puts the text from `from` on in parentheses. */
static bool parenthesize(cs_chars *chars, size_t from)
{
    if (!cs_vec_room(chars, 2)) return false;
    memmove(chars->at + from + 1, chars->at + from, chars->len - from);
    chars->at[from] = '(';
    chars->len++;
    chars->at[chars->len++] = ')';
    return true;
}

/* ---- atoms ---- */

static cutset_status put_symbol(struct scan *s, struct term *t, cs_span name)
{
    t->constant = false;
    t->prec = PREC_ATOM;
    if (s->symbol.at && cs_span_eq(s->symbol, name))
        return set_constant(s, t, s->value, 1, s->c->at);
    cs_cursor c = cs_cursor_of(name);
    bool plain = name.len && !cs_char_is(name.at[0], CS_CHAR_DIGIT) &&
                 cs_take_run(&c, CS_CHAR_SYMBOL).len == name.len;
    bool ok = plain ? cs_chars_put(&s->chars, name) : cs_chars_quote(&s->chars, name);
    return ok ? CUTSET_OK : CUTSET_SYSTEM;
}

static cutset_status scan_number(struct scan *s, struct term *t)
{
    const char *from = s->c->at;
    if (*s->c->at == '-') s->c->at++;
    cs_span digits = cs_take_run(s->c, CS_CHAR_SYMBOL);
    int64_t number;
    if (cs_parse_i64((cs_span){from, (size_t)(s->c->at - from)}, &number))
        return set_constant(s, t, number, 1, from);
    for (size_t i = 0; i < digits.len; i++)
        if (!cs_char_is(digits.at[i], CS_CHAR_DIGIT))
            return cs_fault_at(s->f, from,
                               "'%.*s' is neither a number nor a symbol: "
                               "write digits, or start with a letter",
                               (int)(digits.len > 60 ? 60 : digits.len), digits.at);
    return cs_fault_at(s->f, from, "a number over 64 bits in a dim: use smaller numbers");
}

static bool is_function(cs_span name)
{
    return cs_span_is(name, "floor") || cs_span_is(name, "ceil") || cs_span_is(name, "min") ||
           cs_span_is(name, "max");
}

/* floor, ceil, min, max of constants. `best` is the smallest or largest of the arguments. */
static cutset_status fold_function(struct scan *s, struct term *t, cs_span name,
                                   const struct term *best, const char *at)
{
    if (cs_span_is(name, "min") || cs_span_is(name, "max"))
        return set_constant(s, t, best->num, best->den, at);
    int64_t whole = best->num / best->den, rest = best->num % best->den;
    if (cs_span_is(name, "floor") && rest < 0) whole--;
    if (cs_span_is(name, "ceil") && rest > 0) whole++;
    return set_constant(s, t, whole, 1, at);
}

/* "(" sum {"," sum} ")" after the name of a function. */
static cutset_status scan_function(struct scan *s, struct term *t, cs_span name)
{
    const char *at = s->c->at;
    bool rounds = cs_span_is(name, "floor") || cs_span_is(name, "ceil");
    bool constant = true;
    struct term best = {0};
    cs_take(s->c, '(');
    if (!cs_chars_put(&s->chars, name) || !cs_vec_push(&s->chars, '(')) return CUTSET_SYSTEM;
    for (int n = 0;; n++) {
        struct term arg;
        cutset_status status = scan_sum(s, &arg);
        if (status) return status;
        constant = constant && arg.constant;
        if (constant && (n == 0 || (cs_span_is(name, "min") ? compare(&arg, &best) < 0
                                                            : compare(&arg, &best) > 0)))
            best = arg;
        bool more = !rounds && cs_take(s->c, ',');
        if (!cs_vec_push(&s->chars, more ? ',' : ')')) return CUTSET_SYSTEM;
        if (!more) break;
    }
    if (!cs_take(s->c, ')')) return cs_fault_found(s->f, s->c, rounds ? "')'" : "',' or ')'");
    t->constant = false;
    t->prec = PREC_ATOM;
    return constant ? fold_function(s, t, name, &best, at) : CUTSET_OK;
}

static cutset_status scan_word(struct scan *s, struct term *t)
{
    cs_span name = cs_take_run(s->c, CS_CHAR_SYMBOL);
    cs_cursor look = *s->c;
    if (!is_function(name) || !cs_take(&look, '(')) return put_symbol(s, t, name);
    return scan_function(s, t, name);
}

static cutset_status scan_atom(struct scan *s, struct term *t)
{
    cs_cursor *c = s->c;
    cs_skip_blanks(c);
    t->at = s->chars.len;
    if (s->depth == CS_TEXT_DEPTH)
        return cs_fault_at(s->f, c->at, "a dim nested more than %d deep: nest less", CS_TEXT_DEPTH);
    char first = c->at < c->end ? *c->at : '\n';
    cutset_status status;
    s->depth++;
    if (cs_char_is(first, CS_CHAR_DIGIT) ||
        (first == '-' && c->at + 1 < c->end && cs_char_is(c->at[1], CS_CHAR_DIGIT))) {
        status = scan_number(s, t);
    } else if (cs_char_is(first, CS_CHAR_SYMBOL)) {
        status = scan_word(s, t);
    } else if (first == '"') {
        cs_span name;
        bool raw;
        status = cs_scan_string(c, &s->scratch, &name, &raw, s->f);
        if (!status) status = put_symbol(s, t, name);
    } else if (cs_take(c, '(')) {
        status = scan_sum(s, t);
        if (!status && !cs_take(c, ')')) status = cs_fault_found(s->f, c, "')'");
    } else {
        status = cs_fault_found(s->f, c, "a dim: a number, a symbol, an expression or ?");
    }
    s->depth--;
    return status;
}

/* ---- operators ---- */

/* a := a op b, where b's text follows the operator's place at `op_at`. */
static cutset_status combine(struct scan *s, struct term *a, char op, struct term *b, int prec,
                             const char *at)
{
    if (op == '/' && b->constant && b->num == 0)
        return cs_fault_at(s->f, at, "a division by zero in a dim: divide by another number");
    if (a->constant && b->constant) return fold(s, a, op, b, at);
    /* A number below zero is one token, but not after an operator. */
    bool negative = b->constant && b->num < 0;
    if ((b->prec <= prec || negative) && !parenthesize(&s->chars, b->at)) return CUTSET_SYSTEM;
    a->constant = false;
    a->prec = prec;
    return CUTSET_OK;
}

/* Between two operands: parentheses around the left one where it binds less, and the operator. */
static bool put_operator(struct scan *s, struct term *a, char op, int prec)
{
    if (a->prec < prec && !parenthesize(&s->chars, a->at)) return false;
    return cs_vec_push(&s->chars, op);
}

static cutset_status scan_prod(struct scan *s, struct term *t)
{
    cutset_status status = scan_atom(s, t);
    while (!status) {
        const char *at = s->c->at;
        char op = cs_take(s->c, '*') ? '*' : cs_take(s->c, '/') ? '/' : 0;
        if (!op) break;
        struct term right;
        if (!put_operator(s, t, op, PREC_PROD)) return CUTSET_SYSTEM;
        status = scan_atom(s, &right);
        if (!status) status = combine(s, t, op, &right, PREC_PROD, at);
    }
    return status;
}

static cutset_status scan_sum(struct scan *s, struct term *t)
{
    cutset_status status = scan_prod(s, t);
    while (!status) {
        const char *at = s->c->at;
        char op = cs_take(s->c, '+') ? '+' : cs_take(s->c, '-') ? '-' : 0;
        if (!op) break;
        struct term right;
        if (!put_operator(s, t, op, PREC_SUM)) return CUTSET_SYSTEM;
        status = scan_prod(s, &right);
        if (!status) status = combine(s, t, op, &right, PREC_SUM, at);
    }
    return status;
}

/* ---- dims ---- */

static cutset_status finish(struct scan *s, cs_pool *pool, const struct term *t, const char *from,
                            cs_dim *out)
{
    if (t->constant && t->den != 1)
        return cs_fault_at(s->f, from,
                           "the dim %lld/%lld is no whole number: round it with floor()",
                           (long long)t->num, (long long)t->den);
    if (t->constant && t->num < 0)
        return cs_fault_at(s->f, from, "the dim %lld is negative: write 0 or more, or ?",
                           (long long)t->num);
    if (t->constant) {
        *out = t->num;
        return CUTSET_OK;
    }
    cs_str text = cs_strtab_add(&pool->names, (cs_span){s->chars.at, s->chars.len}, false);
    if (text == CS_NONE) return CUTSET_SYSTEM;
    *out = cs_dim_expr(text);
    return CUTSET_OK;
}

static cutset_status scan_expression(struct scan *s, cs_pool *pool, cs_dim *out)
{
    cs_skip_blanks(s->c);
    const char *from = s->c->at;
    struct term t;
    cutset_status status = scan_sum(s, &t);
    if (!status) status = finish(s, pool, &t, from, out);
    cs_vec_fini(&s->chars);
    cs_vec_fini(&s->scratch);
    return status;
}

cutset_status cs_scan_dim(cs_pool *pool, cs_cursor *c, cs_dim *out, cs_fault *f)
{
    /* Nearly all dims are one number, or one question mark. */
    cs_cursor look = *c;
    cs_skip_blanks(&look);
    cs_span digits = cs_take_run(&look, CS_CHAR_DIGIT);
    bool unknown = digits.len == 0 && cs_take(&look, '?');
    if (digits.len < 19 && look.at < look.end && (*look.at == ',' || *look.at == ']') &&
        (digits.len || unknown)) {
        *c = look;
        *out = unknown ? CS_DIM_UNKNOWN : 0;
        for (size_t i = 0; i < digits.len; i++)
            *out = *out * 10 + (digits.at[i] - '0');
        return CUTSET_OK;
    }
    if (unknown) {
        *c = look;
        *out = CS_DIM_UNKNOWN;
        return CUTSET_OK;
    }
    struct scan s = {.c = c, .f = f};
    return scan_expression(&s, pool, out);
}

bool cs_dim_of_param(cs_pool *pool, cs_span param, cs_dim *out)
{
    *out = CS_DIM_UNKNOWN;
    if (param.len == 0) /* ONNX: an empty name is an unknown dim */
        return true;
    struct scan s = {0};
    struct term t = {0};
    cs_str text = CS_NONE;
    if (!put_symbol(&s, &t, param))
        text = cs_strtab_add(&pool->names, (cs_span){s.chars.at, s.chars.len}, false);
    cs_vec_fini(&s.chars);
    if (text == CS_NONE) return false;
    *out = cs_dim_expr(text);
    return true;
}

cutset_status cs_dim_bind(cs_pool *pool, cs_dim dim, cs_span symbol, int64_t value, cs_dim *out,
                          cutset_error *err)
{
    *out = dim;
    if (!cs_dim_is_expr(dim)) return CUTSET_OK;
    cs_span text = cs_name(pool, cs_dim_text(dim));
    cs_cursor c = cs_cursor_of(text);
    cs_fault f = {.at = text.at};
    struct scan s = {.c = &c, .f = &f, .symbol = symbol, .value = value};
    cutset_status status = scan_expression(&s, pool, out);
    if (status == CUTSET_SYSTEM) return cs_fail_memory(err);
    if (status)
        return cs_fail(err, status, "dim '%.*s' with %.*s = %lld: %s", CS_FMT(text), CS_FMT(symbol),
                       (long long)value, f.why);
    return CUTSET_OK;
}
