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

/* "tensor" or "type"? Moves over it. */
static bool take_typed(cs_text_reader *r, bool *tensor)
{
    cs_cursor look = r->c;
    cs_span word = cs_take_run(&look, CS_CHAR_SYMBOL);
    *tensor = cs_span_is(word, "tensor");
    if (!*tensor && !cs_span_is(word, "type")) return false;
    r->c = look;
    return true;
}

/* "(" type ")" after tensor or type. */
static cutset_status read_typed(cs_text_reader *r, cs_type *out)
{
    if (!cs_take(&r->c, '(')) return cs_fault_found(&r->fault, &r->c, "'(' and a type");
    cutset_status status = cs_scan_type(r->pool, &r->c, out, &r->fault);
    if (!status && !cs_take(&r->c, ')')) status = cs_fault_found(&r->fault, &r->c, "')'");
    return status;
}

/* One element of a list, pushed on the vector of its kind. */
static cutset_status read_element(cs_text_reader *r, cs_attr_kind *kind)
{
    struct number number = {0};
    cs_span text = {0};
    cs_type type = 0;
    bool tensor, ok;
    cutset_status status;
    if (r->c.at < r->c.end && *r->c.at == '"') {
        status = read_string(r, &text);
        ok = status || cs_vec_push(&r->strings, text);
        *kind = CS_ATTR_STRINGS;
    } else if (take_typed(r, &tensor)) {
        status = read_typed(r, &type);
        ok = status || cs_vec_push(&r->types, type);
        *kind = tensor ? CS_ATTR_TENSORS : CS_ATTR_TYPES;
    } else if (r->c.at < r->c.end && is_number_char(*r->c.at)) {
        status = read_number(r, &number);
        ok = status ||
             (number.real ? cs_vec_push(&r->floats, number.f) : cs_vec_push(&r->ints, number.i));
        *kind = number.real ? CS_ATTR_FLOATS : CS_ATTR_INTS;
    } else {
        return cs_fault_found(&r->fault, &r->c,
                              "a number, a string, tensor(TYPE), type(TYPE) or ']'");
    }
    return ok ? status : CUTSET_SYSTEM;
}

/* attr {"," attr}; the first one decides what the list holds. */
static cutset_status read_elements(cs_text_reader *r, cs_attr *a)
{
    do {
        cs_attr_kind kind = CS_ATTR_OTHER;
        cs_skip_blanks(&r->c);
        const char *at = r->c.at;
        cutset_status status = read_element(r, &kind);
        if (status) return status;
        if (a->len > 0 && a->kind != kind)
            return cs_fault_at(&r->fault, at,
                               "a list of more than one kind: write only integers, only "
                               "numbers with '.' or 'e', only strings, only tensors or only types");
        a->kind = kind;
        a->len++;
    } while (cs_take(&r->c, ','));
    return CUTSET_OK;
}

/* Copies the gathered elements; an empty list has an address too. */
static cutset_status keep_list(cs_text_reader *r, cs_attr *a)
{
    cs_arena *arena = &r->pool->arena;
    const void *kept;
    switch (a->kind) {
    case CS_ATTR_STRINGS:
        kept = a->strings = cs_arena_dup(arena, a->len ? (const void *)r->strings.at : "",
                                         a->len * sizeof *a->strings);
        break;
    case CS_ATTR_FLOATS:
        kept = a->floats = cs_arena_dup(arena, a->len ? (const void *)r->floats.at : "",
                                        a->len * sizeof *a->floats);
        break;
    case CS_ATTR_TENSORS:
    case CS_ATTR_TYPES:
        kept = a->types = cs_arena_dup(arena, r->types.at, a->len * sizeof *a->types);
        break;
    default:
        kept = a->ints =
            cs_arena_dup(arena, a->len ? (const void *)r->ints.at : "", a->len * sizeof *a->ints);
    }
    return kept ? CUTSET_OK : CUTSET_SYSTEM;
}

/* The cursor after "[". */
static cutset_status read_list(cs_text_reader *r, cs_attr *a)
{
    a->kind = CS_ATTR_INTS;
    a->len = 0;
    r->ints.len = r->floats.len = r->strings.len = r->types.len = 0;
    cs_skip_blanks(&r->c);
    size_t left = (size_t)(r->c.end - r->c.at);
    if (left >= 2 && (*r->c.at == 'f' || *r->c.at == 's') && r->c.at[1] == ':') {
        a->kind = *r->c.at == 'f' ? CS_ATTR_FLOATS : CS_ATTR_STRINGS;
        r->c.at += 2;
        if (!cs_take(&r->c, ']'))
            return cs_fault_found(&r->fault, &r->c, "']': [f:] and [s:] are empty lists");
    } else if (!cs_take(&r->c, ']')) {
        cutset_status status = read_elements(r, a);
        if (status) return status;
        if (!cs_take(&r->c, ']')) return cs_fault_found(&r->fault, &r->c, "',' or ']'");
    }
    return keep_list(r, a);
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
    bool tensor;
    if (take_typed(r, &tensor)) {
        a->kind = tensor ? CS_ATTR_TENSOR : CS_ATTR_TYPE;
        return read_typed(r, &a->type);
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

static cutset_status twice(cs_text_reader *r, cs_str name, const char *at)
{
    const cs_span text = cs_name(r->pool, name);
    return cs_fault_at(&r->fault, at, "attribute '%.*s' is given twice: remove one",
                       (int)(text.len > 60 ? 60 : text.len), text.at);
}

/* Notes that the node at hand has this attribute; a fault if it had it before. */
static cutset_status mark_attr(cs_text_reader *r, cs_str name, const char *at)
{
    if (name == 0) return cs_fault_at(&r->fault, at, "an empty name: give the attribute a name");
    while (r->attr_seen.len <= name)
        if (!cs_vec_push(&r->attr_seen, 0)) return CUTSET_SYSTEM;
    if (r->attr_seen.at[name] == r->attr_stamp) return twice(r, name, at);
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

/* After the last of them: nodes inside have marked attributes of their own meanwhile. */
cutset_status cs_text_check_bodies(cs_text_reader *r, uint32_t scope)
{
    const cs_text_scope *s = cs_text_at(r, scope);
    const cs_node *n = &s->g->nodes.at[s->g->nodes.len - 1];
    if (n->n_attr == 0) return CUTSET_OK;
    r->attr_stamp++;
    for (uint32_t i = 0; i < n->n_attr; i++)
        r->attr_seen.at[s->g->attrs.at[n->attr + i].name] = r->attr_stamp;
    for (uint32_t b = n->body; b < n->body + n->n_body; b++) {
        const cs_str name = s->g->bodies.at[b].attr;
        if (name < r->attr_seen.len && r->attr_seen.at[name] == r->attr_stamp)
            return twice(r, name, r->text + cs_text_at(r, s->child.at[b])->at);
    }
    return CUTSET_OK;
}
