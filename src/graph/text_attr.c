/* Attributes in the text form: {strides=[2,2], alpha=0.5, mode="linear", value=tensor(f32[3])}.
 *
 * Lists are gathered in vectors of the reader that are used again and again, then copied into the
 * pool's arena; strings without escapes stay where they are in the text. Cost: linear.
 */
#include "graph/text_reader.h"

#include <float.h>
#include <math.h>

/* ---- numbers ---- */

static bool is_number_char(char c)
{
    return cs_char_is(c, CS_CHAR_SYMBOL) || c == '.' || c == '-' || c == '+';
}

/* The nearest f32. Going through f64 rounds twice, which matters only when the f64 lies half-way
 * between two f32: then the neighbour that prints as `text` is meant, if one does. */
static float to_f32(double x, cs_span text)
{
    float f = (float)x;
    float other = nextafterf(f, x > (double)f ? INFINITY : -INFINITY);
    if ((double)f == x || !isfinite(other) || (double)f + ((double)other - (double)f) / 2 != x)
        return f;
    char spelling[32];
    cs_format_f32(other, spelling);
    return cs_span_is(text, spelling) ? other : f;
}

struct number {
    bool real;
    int64_t i;
    float f;
};

static cutset_status read_number(cs_text_reader *r, struct number *out)
{
    const char *from = r->c.at;
    bool digits = false, real = false;
    while (r->c.at < r->c.end && is_number_char(*r->c.at)) {
        digits = digits || cs_char_is(*r->c.at, CS_CHAR_DIGIT);
        real = real || *r->c.at == '.' || *r->c.at == 'e' || *r->c.at == 'E';
        r->c.at++;
    }
    cs_span text = {from, (size_t)(r->c.at - from)};
    out->real = true;
    if (cs_span_is(text, "nan"))
        out->f = NAN;
    else if (cs_span_is(text, "inf"))
        out->f = INFINITY;
    else if (cs_span_is(text, "-inf"))
        out->f = -INFINITY;
    else if (!digits)
        return cs_fault_at(&r->fault, from,
                           "'%.*s' is no attribute value: write a number, a "
                           "string, a list, tensor(TYPE) or type(TYPE)",
                           (int)(text.len > 60 ? 60 : text.len), text.at);
    else if (real) {
        double x;
        for (size_t i = 0; i < text.len; i++)
            if (cs_char_is(text.at[i], CS_CHAR_SYMBOL) && !cs_char_is(text.at[i], CS_CHAR_DIGIT) &&
                text.at[i] != 'e' && text.at[i] != 'E')
                return cs_fault_at(&r->fault, from, "malformed number: write it like 1.5 or 1e-05");
        if (!cs_parse_f64(text, &x))
            return cs_fault_at(&r->fault, from, "malformed number: write it like 1.5 or 1e-05");
        /* FLT_MAX plus half a step is where rounding goes to infinity. */
        if (fabs(x) >= (double)FLT_MAX + ldexp(1.0, 103))
            return cs_fault_at(&r->fault, from, "a number beyond f32: write inf or -inf");
        out->f = to_f32(x, text);
    } else {
        out->real = false;
        if (!cs_parse_i64(text, &out->i))
            return cs_fault_at(&r->fault, from,
                               "malformed or over 64 bits: write an integer of 64 bits");
    }
    return CUTSET_OK;
}

/* ---- values ---- */

/* A string that lives as long as the graph. */
static cutset_status read_string(cs_text_reader *r, cs_span *out)
{
    bool raw;
    cutset_status status = cs_scan_string(&r->c, &r->scratch, out, &raw, &r->fault);
    if (status || raw) return status;
    out->at = cs_arena_dup(&r->pool->arena, out->at, out->len);
    return out->at ? CUTSET_OK : CUTSET_SYSTEM;
}

/* One element of a list; the first one decides what the list holds. */
static cutset_status read_element(cs_text_reader *r, cs_attr *a)
{
    cs_skip_blanks(&r->c);
    const char *at = r->c.at;
    cs_attr_kind kind;
    struct number number = {0};
    cs_span text = {0};
    cutset_status status;
    if (r->c.at < r->c.end && *r->c.at == '"') {
        status = read_string(r, &text);
        kind = CS_ATTR_STRINGS;
    } else if (r->c.at < r->c.end && is_number_char(*r->c.at)) {
        status = read_number(r, &number);
        kind = number.real ? CS_ATTR_FLOATS : CS_ATTR_INTS;
    } else {
        return cs_fault_found(&r->fault, &r->c, "a number, a string or ']'");
    }
    if (status) return status;
    if (a->len > 0 && a->kind != kind)
        return cs_fault_at(&r->fault, at,
                           "a list of more than one kind: write only integers, only "
                           "numbers with '.' or 'e', or only strings");
    a->kind = kind;
    a->len++;
    bool ok = kind == CS_ATTR_STRINGS  ? cs_vec_push(&r->strings, text)
              : kind == CS_ATTR_FLOATS ? cs_vec_push(&r->floats, number.f)
                                       : cs_vec_push(&r->ints, number.i);
    return ok ? CUTSET_OK : CUTSET_SYSTEM;
}

/* Copies the gathered elements. */
static cutset_status keep_list(cs_text_reader *r, cs_attr *a)
{
    const void *from = a->kind == CS_ATTR_STRINGS  ? (const void *)r->strings.at
                       : a->kind == CS_ATTR_FLOATS ? (const void *)r->floats.at
                                                   : (const void *)r->ints.at;
    size_t size = a->kind == CS_ATTR_STRINGS  ? sizeof *r->strings.at
                  : a->kind == CS_ATTR_FLOATS ? sizeof *r->floats.at
                                              : sizeof *r->ints.at;
    void *copy = cs_arena_dup(&r->pool->arena, a->len ? from : "", a->len * size);
    if (!copy) return CUTSET_SYSTEM;
    if (a->kind == CS_ATTR_STRINGS)
        a->strings = copy;
    else if (a->kind == CS_ATTR_FLOATS)
        a->floats = copy;
    else
        a->ints = copy;
    return CUTSET_OK;
}

/* The cursor after "[". */
static cutset_status read_list(cs_text_reader *r, cs_attr *a)
{
    a->kind = CS_ATTR_INTS;
    a->len = 0;
    r->ints.len = r->floats.len = r->strings.len = 0;
    cs_skip_blanks(&r->c);
    size_t left = (size_t)(r->c.end - r->c.at);
    if (left >= 2 && (*r->c.at == 'f' || *r->c.at == 's') && r->c.at[1] == ':') {
        a->kind = *r->c.at == 'f' ? CS_ATTR_FLOATS : CS_ATTR_STRINGS;
        r->c.at += 2;
        if (!cs_take(&r->c, ']'))
            return cs_fault_found(&r->fault, &r->c, "']': [f:] and [s:] are empty lists");
    } else if (!cs_take(&r->c, ']')) {
        do {
            cutset_status status = read_element(r, a);
            if (status) return status;
        } while (cs_take(&r->c, ','));
        if (!cs_take(&r->c, ']')) return cs_fault_found(&r->fault, &r->c, "',' or ']'");
    }
    return keep_list(r, a);
}

/* "(" type ")" after tensor or type. */
static cutset_status read_typed(cs_text_reader *r, cs_attr *a)
{
    if (!cs_take(&r->c, '(')) return cs_fault_found(&r->fault, &r->c, "'(' and a type");
    cutset_status status = cs_scan_type(r->pool, &r->c, &a->type, &r->fault);
    if (!status && !cs_take(&r->c, ')')) status = cs_fault_found(&r->fault, &r->c, "')'");
    return status;
}

static cutset_status read_scalar(cs_text_reader *r, cs_attr *a)
{
    struct number number;
    cutset_status status = read_number(r, &number);
    a->kind = number.real ? CS_ATTR_FLOAT : CS_ATTR_INT;
    if (number.real)
        a->f = number.f;
    else
        a->i = number.i;
    return status;
}

static cutset_status read_value(cs_text_reader *r, cs_attr *a)
{
    if (cs_take(&r->c, '[')) return read_list(r, a);
    cs_cursor look = r->c;
    cs_span word = cs_take_run(&look, CS_CHAR_SYMBOL);
    if (cs_span_is(word, "tensor") || cs_span_is(word, "type")) {
        a->kind = word.len == 6 ? CS_ATTR_TENSOR : CS_ATTR_TYPE;
        r->c = look;
        return read_typed(r, a);
    }
    if (r->c.at < r->c.end && *r->c.at == '"') {
        cs_span text;
        cutset_status status = read_string(r, &text);
        a->kind = CS_ATTR_STRING;
        a->s = text.at;
        a->len = text.len;
        return status;
    }
    if (r->c.at < r->c.end && is_number_char(*r->c.at)) return read_scalar(r, a);
    return cs_fault_found(&r->fault, &r->c,
                          "a number, a string, a list, tensor(TYPE) or type(TYPE)");
}

/* ---- attributes ---- */

/* Notes that the node at hand has this attribute; a fault if it had it before. */
static cutset_status mark_attr(cs_text_reader *r, cs_str name, const char *at)
{
    if (name == 0) return cs_fault_at(&r->fault, at, "an empty name: give the attribute a name");
    while (r->attr_seen.len <= name)
        if (!cs_vec_push(&r->attr_seen, 0)) return CUTSET_SYSTEM;
    if (r->attr_seen.at[name] == r->attr_stamp)
        return cs_fault_at(&r->fault, at, "attribute '%.*s' is given twice: remove one",
                           (int)(cs_name(r->pool, name).len > 60 ? 60 : cs_name(r->pool, name).len),
                           cs_name(r->pool, name).at);
    r->attr_seen.at[name] = r->attr_stamp;
    return CUTSET_OK;
}

cutset_status cs_text_attrs(cs_text_reader *r, cs_graph *g)
{
    r->attr_stamp++;
    if (cs_take(&r->c, '}')) return CUTSET_OK;
    do {
        cs_attr a = {0};
        cs_skip_blanks(&r->c);
        const char *at = r->c.at;
        cutset_status status = cs_text_bare_or_string(r, "the name of an attribute", &a.name);
        if (!status) status = mark_attr(r, a.name, at);
        if (!status && !cs_take(&r->c, '='))
            status = cs_fault_found(&r->fault, &r->c, "'=' and the attribute's value");
        cs_skip_blanks(&r->c);
        if (!status) status = read_value(r, &a);
        if (!status && !cs_graph_add_attr(g, a)) status = CUTSET_SYSTEM;
        if (status) return status;
    } while (cs_take(&r->c, ','));
    return cs_take(&r->c, '}') ? CUTSET_OK : cs_fault_found(&r->fault, &r->c, "',' or '}'");
}
