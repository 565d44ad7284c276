/* Schemas: looked up in the table, parsed when an operator is first met, matched to a line. */
#include "torch/schema.h"

#include <string.h>

static const struct row {
    const char *name, *overloads;
} table[] = {
#include "torch/schemas.inc"
};

/* ---- parsing one overload; the table's form and torch's own ---- */

static const struct {
    const char *name;
    uint8_t base;
} bases[] = {{"T", CS_TS_TENSOR},        {"Tensor", CS_TS_TENSOR},   {"i", CS_TS_INT},
             {"int", CS_TS_INT},         {"SymInt", CS_TS_INT},      {"f", CS_TS_FLOAT},
             {"float", CS_TS_FLOAT},     {"b", CS_TS_BOOL},          {"bool", CS_TS_BOOL},
             {"SymBool", CS_TS_BOOL},    {"s", CS_TS_STR},           {"str", CS_TS_STR},
             {"c", CS_TS_COMPLEX},       {"complex", CS_TS_COMPLEX}, {"N", CS_TS_NUMBER},
             {"Scalar", CS_TS_NUMBER},   {"number", CS_TS_NUMBER},   {"D", CS_TS_DEVICE},
             {"Device", CS_TS_DEVICE},   {"ScalarType", CS_TS_INT},  {"Layout", CS_TS_INT},
             {"MemoryFormat", CS_TS_INT}};

/* "(a!)", "(a -> *)", "(b|a)", "(*)" */
static cutset_status parse_sets(cs_scan *c, cs_sig_type *t)
{
    bool after = false;
    for (c->at++; c->at < c->end && *c->at != ')'; c->at++) {
        if (*c->at >= 'a' && *c->at <= 'z' && !after) t->sets |= 1u << (*c->at - 'a');
        if (*c->at == '!') t->write = true;
        if (*c->at == '>') after = true;
        if (*c->at == '*' && after) t->into = true;
        if (*c->at == '*' && !after) t->wild = true;
    }
    return cs_scan_take(c, ")") ? CUTSET_OK : cs_scan_found(c, "')'");
}

static cutset_status parse_type(cs_scan *c, cs_sig_type *t, int depth);

static cutset_status parse_inner(cs_scan *c, cs_sig_type *t, int depth)
{
    cutset_status s = cs_scan_take(c, "(") ? CUTSET_OK : cs_scan_found(c, "'('");
    if (!s && cs_scan_take(c, ")")) return CUTSET_OK;
    while (!s) {
        cs_sig_type inner;
        s = parse_type(c, &inner, depth + 1);
        if (!s && inner.generic > 0 && t->generic <= inner.generic) t->generic = inner.generic + 1;
        if (s || !cs_scan_take(c, ",")) break;
    }
    return s ? s : cs_scan_take(c, ")") ? CUTSET_OK : cs_scan_found(c, "',' or ')'");
}

static bool is_variable(cs_span word)
{
    static const char *const names[] = {"t", "t1", "t2", "tKey", "tVal", "tT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cs_span_is(word, names[i])) return true;
    return false;
}

static cutset_status parse_base(cs_scan *c, cs_sig_type *t, int depth)
{
    static const char *const outer[] = {"Dict",  "Future", "RRef",     "Await",
                                        "Union", "List",   "Optional", "Tuple"};
    if (cs_scan_peek(c, '(')) {
        t->base = CS_TS_TUPLE;
        return parse_inner(c, t, depth);
    }
    const cs_span word = cs_scan_word(c);
    if (word.len == 0) return cs_scan_found(c, "a type such as Tensor");
    if (word.at[0] == '.') {
        t->rest = t->any = true;
        return CUTSET_OK;
    }
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        if (!cs_span_is(word, bases[i].name)) continue;
        t->base = bases[i].base;
        return CUTSET_OK;
    }
    t->any = true;
    if (is_variable(word)) t->generic = 1;
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
        if (!cs_span_is(word, outer[i])) continue;
        if (i == 0) t->base = CS_TS_DICT, t->any = false;
        return parse_inner(c, t, depth);
    }
    return CUTSET_OK;
}

static cutset_status parse_type(cs_scan *c, cs_sig_type *t, int depth)
{
    *t = (cs_sig_type){.base = CS_TS_OTHER};
    if (depth > 20) return cs_scan_fault(c, c->at, "a type nested too deep: nest less");
    cutset_status s = parse_base(c, t, depth);
    while (!s && c->at < c->end) {
        if (*c->at == '[') {
            while (c->at < c->end && *c->at != ']')
                c->at++;
            if (!cs_scan_take(c, "]")) return cs_scan_found(c, "']'");
            t->elements |= t->sets;
            t->write_elements |= t->write;
            t->sets = 0;
            t->write = t->any = false;
            t->base = CS_TS_LIST;
            if (t->generic) t->generic++;
        } else if (*c->at == '?') {
            c->at++;
            t->optional = true;
        } else if (*c->at == '(') {
            s = parse_sets(c, t);
        } else {
            break;
        }
    }
    return s;
}

/* A type; in torch's form a name may follow, and behind that of an argument its default. */
static cutset_status add_type(cs_schemas *t, cs_scan *c, bool result, uint32_t *count)
{
    cs_sig_type type;
    cutset_status s = parse_type(c, &type, 0);
    if (!s && result) cs_scan_word(c);
    if (!s && !result && c->at < c->end) s = cs_scan_over(c, ",;)");
    if (s) return s;
    ++*count;
    return cs_vec_push(&t->types, type) ? CUTSET_OK : CUTSET_SYSTEM;
}

/* Type variables carry elements over when something comes out of them or goes in. */
static bool carries(const cs_schemas *t, const cs_sig *sig)
{
    bool some = false;
    for (uint32_t i = 0; i < sig->n_ret; i++)
        some |= t->types.at[sig->type + sig->n_arg + i].generic > 0;
    for (uint32_t i = 0; i < sig->n_arg; i++)
        some |= t->types.at[sig->type + i].generic > 0 && t->types.at[sig->type + i].write;
    return some;
}

static void parse_number(cs_scan *c, int16_t *out)
{
    int n = 0;
    for (c->at++; c->at < c->end && *c->at >= '0' && *c->at <= '9' && n < 1000; c->at++)
        n = 10 * n + (*c->at - '0');
    *out = (int16_t)n;
}

static cutset_status parse_flags(cs_scan *c, cs_sig *sig)
{
    while (c->at < c->end && *c->at != '(') {
        switch (*c->at) {
        case '!':
            sig->effect = true, c->at++;
            break;
        case '~':
            sig->random = true, c->at++;
            break;
        case 'd':
            sig->identity = true, c->at++;
            break;
        case 'b':
            parse_number(c, &sig->unless_false);
            break;
        case 'p':
            parse_number(c, &sig->unless_zero);
            break;
        default:
            return cs_scan_found(c, "'('");
        }
    }
    return CUTSET_OK;
}

/* "(" arguments ")" ["->"] results, up to ";" or the end */
static cutset_status parse_sig(cs_schemas *t, cs_scan *c, cs_sig *sig)
{
    sig->type = (uint32_t)t->types.len;
    if (!cs_scan_take(c, "(")) return cs_scan_found(c, "'('");
    cutset_status s = CUTSET_OK;
    if (!cs_scan_take(c, ")")) {
        do
            s = cs_scan_peek(c, '*') ? cs_scan_over(c, ",)") : add_type(t, c, false, &sig->n_arg);
        while (!s && cs_scan_take(c, ","));
        if (!s && !cs_scan_take(c, ")")) s = cs_scan_found(c, "',' or ')'");
    }
    const bool full = !s && cs_scan_take(c, "->");
    /* In torch's form several results stand in brackets, as one tuple in the table's. */
    const bool bracket = full && cs_scan_take(c, "(");
    if (!s && c->at < c->end && !cs_scan_peek(c, ';') && !(bracket && cs_scan_peek(c, ')'))) {
        do
            s = add_type(t, c, true, &sig->n_ret);
        while (!s && c->at < c->end && cs_scan_take(c, ","));
    }
    if (!s && bracket && !cs_scan_take(c, ")")) s = cs_scan_found(c, "')'");
    sig->generic = !s && carries(t, sig);
    return s;
}

/* ---- the table ---- */

static const char *find_row(cs_span name)
{
    size_t low = 0, high = sizeof table / sizeof *table;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = cs_span_cmp(cs_span_of(table[mid].name), name);
        if (order == 0) return table[mid].overloads;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Constructs of plain graphs of which no schema tells anything: what they do is unknown. */
static const char *const opaque[] = {
    "prim::AutogradAdd",
    "prim::AutogradAllNonZero",
    "prim::AutogradAllZero",
    "prim::AutogradAnyNonZero",
    "prim::AutogradZero",
    "prim::BroadcastSizes",
    "prim::Closure",
    "prim::CreateObject",
    "prim::EmptyListLiteral",
    "prim::Enter",
    "prim::Exit",
    "prim::HasAttr",
    "prim::IfThenElse",
    "prim::IgnoredPythonOp",
    "prim::MMBatchSide",
    "prim::MMTreeReduce",
    "prim::ModuleContainerIndex",
    "prim::PythonOp",
    "prim::ReductionSizes",
    "prim::VarConcat",
    "prim::VarStack",
    "prim::annotate",
    "prim::awaitable",
    "prim::awaitable_nowait",
    "prim::awaitable_wait",
    "prim::fork",
    "prim::grad",
    "prim::profile",
    "prim::profile_ivalue",
    "prim::requires_grad",
    "prim::rpc_async",
    "prim::rpc_remote",
    "prim::rpc_sync",
};

bool cs_schemas_has(cs_span op)
{
    for (size_t i = 0; i < sizeof opaque / sizeof *opaque; i++)
        if (cs_span_is(op, opaque[i])) return true;
    return find_row(op) != NULL;
}

static cutset_status parse_row(cs_schemas *t, const char *text, cs_op *op)
{
    const cs_span all = cs_span_of(text);
    cs_scan c = {all.at, all.at + all.len, all.at, NULL, ""};
    op->known = true;
    op->sig = (uint32_t)t->sigs.len;
    while (c.at < c.end) {
        cs_sig sig = {.unless_false = -1, .unless_zero = -1};
        cutset_status s = parse_flags(&c, &sig);
        if (!s) s = parse_sig(t, &c, &sig);
        if (s) return s;
        if (!cs_vec_push(&t->sigs, sig)) return CUTSET_SYSTEM;
        op->n_sig++;
        cs_scan_take(&c, ";");
    }
    return CUTSET_OK;
}

const cs_op *cs_schemas_find(cs_schemas *t, const cs_script *s, cs_str name)
{
    const uint32_t found = cs_map_get(&t->by_name, name);
    if (found != CS_NONE) return &t->ops.at[found];
    cs_op op = {0};
    const char *row = find_row(cs_name(s->pool, name));
    if (row && parse_row(t, row, &op) != CUTSET_OK) return NULL; /* the table is ours: no memory */
    if (!cs_vec_push(&t->ops, op) || !cs_map_put(&t->by_name, name, (uint32_t)t->ops.len - 1))
        return NULL;
    return &t->ops.at[t->ops.len - 1];
}

/* ---- the caller's ---- */

/* All schemas of one name must be neighbours for `n_sig` to count them: those of another name that
 * come between are refused. */
static cutset_status add_given(cs_schemas *t, cs_script *s, cs_scan *c)
{
    cs_span name = cs_scan_word(c);
    const char *dot = memchr(name.at, '.', name.len);
    if (dot) name.len = (size_t)(dot - name.at);
    const cs_str op = cs_strtab_add(&s->pool->names, name, false);
    cs_sig sig = {.unless_false = -1, .unless_zero = -1};
    if (op == CS_NONE) return CUTSET_SYSTEM;
    const cutset_status status = parse_sig(t, c, &sig);
    if (status) return status;
    bool writes = false;
    for (uint32_t i = 0; i < sig.n_arg; i++)
        writes |= t->types.at[sig.type + i].write || t->types.at[sig.type + i].write_elements;
    sig.effect = !writes && sig.n_ret == 0;
    if (c->at < c->end) return cs_scan_found(c, "the end of the schema");
    uint32_t at = cs_map_get(&t->by_name, op);
    if (at != CS_NONE && t->ops.at[at].sig + t->ops.at[at].n_sig != t->sigs.len)
        return cs_scan_fault(c, c->start, "schemas of one operator apart: give them in a row");
    if (at == CS_NONE) {
        const cs_op fresh = {.known = true, .sig = (uint32_t)t->sigs.len};
        at = (uint32_t)t->ops.len;
        if (!cs_vec_push(&t->ops, fresh) || !cs_map_put(&t->by_name, op, at)) return CUTSET_SYSTEM;
    }
    t->ops.at[at].n_sig++;
    return cs_vec_push(&t->sigs, sig) ? CUTSET_OK : CUTSET_SYSTEM;
}

cutset_status cs_schemas_init(cs_schemas *t, cs_script *s, size_t n, const char *texts,
                              cutset_error *err)
{
    *t = (cs_schemas){0};
    for (size_t i = 0; i < n; i++) {
        const cs_span text = cs_span_of(texts);
        cs_scan c = {text.at, text.at + text.len, text.at, NULL, ""};
        const cutset_status status = add_given(t, s, &c);
        if (status == CUTSET_BAD)
            return cs_fail(err, CUTSET_BAD, "schema %zu, '%.*s', column %zu: %s", i, CS_FMT(text),
                           (size_t)(c.fault - c.start) + 1, c.why);
        if (status) return cs_fail_memory(err);
        texts += text.len + 1;
    }
    return CUTSET_OK;
}

void cs_schemas_fini(cs_schemas *t)
{
    cs_map_fini(&t->by_name);
    cs_vec_fini(&t->ops);
    cs_vec_fini(&t->sigs);
    cs_vec_fini(&t->types);
}

/* ---- matching ---- */

static bool is_number(uint8_t base)
{
    return base == CS_TS_INT || base == CS_TS_FLOAT || base == CS_TS_BOOL ||
           base == CS_TS_COMPLEX || base == CS_TS_NUMBER;
}

static bool fits_type(const cs_sig_type *want, const cs_ts_type *have)
{
    if (want->any || have->base == CS_TS_OTHER) return true;
    if (have->base == CS_TS_NONE) return want->optional;
    if (want->base == CS_TS_NUMBER) return is_number(have->base);
    if (have->base == CS_TS_NUMBER) return is_number(want->base);
    return want->base == have->base;
}

static bool counts(const cs_schemas *t, const cs_sig *sig, const cs_ts_line *line)
{
    const cs_sig_type *last = sig->n_arg ? cs_sig_arg(t, sig, sig->n_arg - 1) : NULL;
    return last && last->rest ? line->n_arg + 1 >= sig->n_arg : line->n_arg == sig->n_arg;
}

static bool fits(const cs_schemas *t, const cs_script *s, const cs_sig *sig, const cs_ts_line *line)
{
    if (!counts(t, sig, line)) return false;
    for (uint32_t i = 0; i < line->n_arg && i < sig->n_arg; i++) {
        const cs_sig_type *want = cs_sig_arg(t, sig, i);
        if (want->rest) break;
        if (!fits_type(want, &s->values.at[cs_ts_arg(s, line, i)].type)) return false;
    }
    return true;
}

bool cs_schemas_fit(const cs_schemas *t, const cs_script *s, const cs_op *op,
                    const cs_ts_line *line, bool (*visit)(void *payload, const cs_sig *sig),
                    void *payload)
{
    bool some = false;
    for (int level = 0; level < 3 && !some; level++) /* types and number, number, all */
        for (uint32_t i = 0; i < op->n_sig; i++) {
            const cs_sig *sig = &t->sigs.at[op->sig + i];
            if (level == 0 ? !fits(t, s, sig, line) : level == 1 && !counts(t, sig, line)) continue;
            some = true;
            if (!visit(payload, sig)) return false;
        }
    return true;
}
