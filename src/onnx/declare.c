/* What the user declares about a model: types of values, shapes of inputs, sizes of symbols.
 *
 * A symbol has one size in the whole model, bodies included. So pinning the shape of an input
 * also gives its symbols their sizes, and both --shape and --dim end in a list of bindings, which
 * is applied to every type there is at the end: a type is rewritten once, however many values have
 * it. A symbol may be bound to a number or, by --shape, to another symbol. Bindings that contradict
 * are refused.
 *
 * Needs: a sealed graph, before inference. Changes types only, and where it fails it may have
 * changed some: the model is then not used.
 */
#include "onnx/onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct binding {
    cs_str symbol;      /* its spelling in dims: quoted where it is no identifier */
    cs_dim value;       /* a number, or a dim that is one symbol */
    const char *option; /* "--dim N=8", as far as the value goes */
    bool by_dim, used;
} binding;

typedef struct declare {
    cs_graph *g;
    cs_pool *pool;
    cutset_error *err;
    CS_VEC(binding) bindings;
    cs_chars text;
} declare;

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const cutset_status status_ = (call);                                                      \
        if (status_ != CUTSET_OK) return status_;                                                  \
    } while (0)

/* Position of the last `c`, or -1. */
static long last(cs_span text, char c)
{
    for (size_t i = text.len; i-- > 0;)
        if (text.at[i] == c) return (long)i;
    return -1;
}

/* A failure of a parser, told as one of the option. */
static cutset_status as_usage(declare *d, cutset_status status, const char *name,
                              const char *option)
{
    if (status != CUTSET_BAD) return status;
    return cs_fail(d->err, CUTSET_USAGE, "--%s %s: %s", name, option,
                   d->err == NULL ? "" : d->err->message);
}

/* ---- symbols in the spelling of dims ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next symbol at or behind `from`: a word that no number begins and no "(" follows, or a quoted
 * string with its quotes. Empty: none. */
static cs_span next_symbol(cs_span text, size_t from)
{
    size_t i = from;
    while (i < text.len) {
        const size_t start = i;
        if (text.at[i] == '"') {
            for (i++; i < text.len && text.at[i] != '"'; i++)
                if (text.at[i] == '\\') i++;
            i = i < text.len ? i + 1 : text.len;
            return (cs_span){text.at + start, i - start};
        }
        if (!is_word(text.at[i])) {
            i++;
            continue;
        }
        while (i < text.len && is_word(text.at[i]))
            i++;
        const bool digits = text.at[start] >= '0' && text.at[start] <= '9';
        if (!digits && (i == text.len || text.at[i] != '('))
            return (cs_span){text.at + start, i - start};
    }
    return (cs_span){text.at, 0};
}

/* Is this dim one symbol and nothing else? */
static bool is_symbol(const cs_pool *pool, cs_dim dim)
{
    if (!cs_dim_is_expr(dim)) return false;
    const cs_span text = cs_name(pool, cs_dim_text(dim));
    return next_symbol(text, 0).len == text.len;
}

/* ---- bindings ---- */

static binding *find_binding(const declare *d, cs_str symbol)
{
    for (size_t i = 0; i < d->bindings.len; i++)
        if (d->bindings.at[i].symbol == symbol) return &d->bindings.at[i];
    return NULL;
}

/* What a dim comes to through the bindings made so far; they have no cycles. */
static cs_dim resolve(const declare *d, cs_dim dim)
{
    const binding *b;
    while (is_symbol(d->pool, dim) && (b = find_binding(d, cs_dim_text(dim))) != NULL)
        dim = b->value;
    return dim;
}

/* The same from a binding, all on the way being of use. */
static cs_dim resolve_used(const declare *d, binding *b)
{
    cs_dim dim = CS_DIM_UNKNOWN;
    for (; b != NULL; b = is_symbol(d->pool, dim) ? find_binding(d, cs_dim_text(dim)) : NULL) {
        b->used = true;
        dim = b->value;
    }
    return dim;
}

/* Makes two dims one. Each is a number or a symbol. */
static cutset_status unite(declare *d, cs_dim a, cs_dim b, const char *name, const char *option)
{
    const cs_dim x = resolve(d, a), y = resolve(d, b);
    if (x == y) return CUTSET_OK;
    if (!is_symbol(d->pool, x) && !is_symbol(d->pool, y)) {
        const cs_dim symbol = is_symbol(d->pool, a) ? a : b;
        const cs_span text =
            is_symbol(d->pool, symbol) ? cs_name(d->pool, cs_dim_text(symbol)) : CS_SPAN("a dim");
        return cs_fail(d->err, CUTSET_USAGE, "--%s %s: %.*s would be both %" PRId64 " and %" PRId64,
                       name, option, CS_FMT(text), x, y);
    }
    const bool left = is_symbol(d->pool, x);
    const binding made = {.symbol = cs_dim_text(left ? x : y),
                          .value = left ? y : x,
                          .option = option,
                          .by_dim = strcmp(name, "dim") == 0};
    return cs_vec_push(&d->bindings, made) ? CUTSET_OK : cs_fail_memory(d->err);
}

/* ---- --dim N=8 ---- */

static cutset_status take_dim(declare *d, const char *option)
{
    const cs_span text = {option, strlen(option)};
    const long at = last(text, '=');
    int64_t size;
    cs_dim symbol;
    if (at <= 0 || !cs_parse_i64((cs_span){text.at + at + 1, text.len - (size_t)at - 1}, &size) ||
        size < 0)
        return cs_fail(d->err, CUTSET_USAGE, "--dim %s: expected SYMBOL=SIZE, as in N=8", option);
    if (!cs_dim_of_param(d->pool, (cs_span){text.at, (size_t)at}, &symbol))
        return cs_fail_memory(d->err);
    return unite(d, symbol, size, "dim", option);
}

/* ---- --shape x:1x3x224x224 ---- */

/* Appends to `out`, at most `room` bytes in all. */
static void list_name(char *out, size_t room, cs_span name)
{
    const size_t used = strlen(out);
    snprintf(out + used, room - used, "%s'%.*s'", used == 0 ? "" : ", ", CS_FMT(name));
}

static cutset_status find_input(declare *d, cs_span name, const char *option, uint32_t *value)
{
    const cs_graph *g = d->g;
    const cs_str id = cs_strtab_find(&d->pool->names, name);
    for (size_t i = 0; id != CS_NONE && i < g->inputs.len; i++) {
        *value = g->inputs.at[i];
        if (g->values.at[*value].name == id) return CUTSET_OK;
    }
    char names[512] = "";
    for (size_t i = 0; i < g->inputs.len && i < 8; i++)
        list_name(names, sizeof names, cs_name(d->pool, g->values.at[g->inputs.at[i]].name));
    return cs_fail(d->err, CUTSET_USAGE, "--shape %s: no graph input is called '%.*s'; %s%s",
                   option, CS_FMT(name), g->inputs.len == 0 ? "the model has none" : "inputs are ",
                   names);
}

/* One entry, without blanks around it: a size, "?", or an expression. */
static cutset_status take_entry(declare *d, cs_span entry, const char *option, cs_dim *out)
{
    while (entry.len > 0 && entry.at[0] == ' ')
        entry.at++, entry.len--;
    while (entry.len > 0 && entry.at[entry.len - 1] == ' ')
        entry.len--;
    if (entry.len == 0)
        return cs_fail(d->err, CUTSET_USAGE,
                       "--shape %s: a dim is missing; write NAME:1x3x224x224 or NAME:[1,3,224,224]",
                       option);
    return as_usage(d, cs_dim_parse(d->pool, entry, out, d->err), "shape", option);
}

/* "1x3x224x224" or "[1,3,224,224]" into out[0..CS_RANK_MAX). */
static cutset_status take_dims(declare *d, cs_span text, const char *option, cs_dim *out, int *rank)
{
    const bool brackets = text.len >= 2 && text.at[0] == '[' && text.at[text.len - 1] == ']';
    const char between = brackets ? ',' : 'x';
    if (brackets) text = (cs_span){text.at + 1, text.len - 2};
    *rank = 0;
    if (brackets && text.len == 0) return CUTSET_OK;
    for (size_t start = 0, i = 0; i <= text.len; i++) {
        if (i < text.len && text.at[i] != between) continue;
        if (*rank == CS_RANK_MAX)
            return cs_fail(d->err, CUTSET_USAGE, "--shape %s: more than %d dims", option,
                           CS_RANK_MAX);
        TRY(take_entry(d, (cs_span){text.at + start, i - start}, option, &out[*rank]));
        ++*rank;
        start = i + 1;
    }
    return CUTSET_OK;
}

/* What the model says of a dim, and what the user does. */
static cutset_status pin(declare *d, cs_dim old, cs_dim *dim, const char *option)
{
    if (*dim == CS_DIM_UNKNOWN || *dim == old) {
        *dim = old;
        return CUTSET_OK;
    }
    if (old == CS_DIM_UNKNOWN) return CUTSET_OK;
    const bool plain = !cs_dim_is_expr(*dim) || is_symbol(d->pool, *dim);
    if (cs_dim_is_expr(old) && !is_symbol(d->pool, old)) return CUTSET_OK; /* the new one counts */
    if (!plain)
        return cs_fail(d->err, CUTSET_USAGE, "--shape %s: write a size, a symbol or ?", option);
    TRY(unite(d, old, *dim, "shape", option));
    *dim = old; /* rewritten with all others */
    return CUTSET_OK;
}

static cutset_status pin_all(declare *d, uint32_t value, cs_dim *dims, int rank, const char *option)
{
    cs_value *v = &d->g->values.at[value];
    const cs_type_info info = *cs_type_get(d->pool, v->type);
    const cs_span name = cs_name(d->pool, v->name);
    if (info.kind != CS_TENSOR && info.kind != CS_UNKNOWN)
        return cs_fail(d->err, CUTSET_USAGE, "--shape %s: '%.*s' is no tensor", option,
                       CS_FMT(name));
    const bool ranked = info.kind == CS_TENSOR && info.rank != CS_RANK_UNKNOWN;
    if (ranked && info.rank != rank)
        return cs_fail(d->err, CUTSET_USAGE, "--shape %s: '%.*s' has %d dims, not %d", option,
                       CS_FMT(name), info.rank, rank);
    for (int i = 0; ranked && i < rank; i++)
        TRY(pin(d, cs_type_dims(d->pool, v->type)[i], &dims[i], option));
    v->type =
        cs_type_tensor(d->pool, info.kind == CS_TENSOR ? info.elem : CS_ELEM_NONE, rank, dims);
    return v->type == CS_NONE ? cs_fail_memory(d->err) : CUTSET_OK;
}

static cutset_status take_shape(declare *d, const char *option)
{
    const cs_span text = {option, strlen(option)};
    const long at = last(text, ':');
    cs_dim dims[CS_RANK_MAX];
    int rank;
    uint32_t value = CS_NONE;
    if (at <= 0)
        return cs_fail(d->err, CUTSET_USAGE,
                       "--shape %s: expected NAME:1x3x224x224 or NAME:[1,3,224,224]", option);
    TRY(find_input(d, (cs_span){text.at, (size_t)at}, option, &value));
    const cs_span rest = {text.at + at + 1, text.len - (size_t)at - 1};
    TRY(take_dims(d, rest, option, dims, &rank));
    return pin_all(d, value, dims, rank, option);
}

/* ---- --type NAME=f32[?,?] ---- */

/* Gives every value of that name in g (and, if `deep`, in its bodies) the type; *count of them. */
static cutset_status set_types(declare *d, cs_graph *g, cs_str name, cs_type type, bool deep,
                               const char *option, size_t *count)
{
    for (size_t i = 0; i < g->values.len; i++) {
        cs_value *v = &g->values.at[i];
        if (v->name != name || v->origin == CS_ORIGIN_CAPTURE) continue;
        cs_type both;
        const bool agree = cs_type_meet(d->pool, type, v->type, &both);
        if (both == CS_NONE) return cs_fail_memory(d->err);
        if (!agree) {
            cs_chars was = {0};
            const bool room = cs_type_print(d->pool, v->type, &was);
            const cutset_status status =
                room ? cs_fail(d->err, CUTSET_USAGE, "--type %s: the model says %.*s", option,
                               (int)was.len, was.at)
                     : cs_fail_memory(d->err);
            cs_vec_fini(&was);
            return status;
        }
        v->type = both;
        ++*count;
    }
    for (size_t i = 0; deep && i < g->bodies.len; i++)
        TRY(set_types(d, g->bodies.at[i].graph, name, type, deep, option, count));
    return CUTSET_OK;
}

static bool holds(cs_span text, cs_span part)
{
    return text.at != NULL && part.at != NULL &&
           memmem(text.at, text.len, part.at, part.len) != NULL;
}

/* A value whose name holds the one that was given, or is held by it. */
static cs_span similar(const cs_graph *g, cs_span name)
{
    for (size_t i = 0; i < g->values.len; i++) {
        const cs_span other = cs_name(g->pool, g->values.at[i].name);
        if (other.len == 0 || name.len == 0) continue;
        if (holds(other, name) || holds(name, other)) return other;
    }
    return (cs_span){"", 0};
}

static cutset_status take_type(declare *d, const char *option)
{
    const cs_span text = {option, strlen(option)};
    const long at = last(text, '=');
    cs_type type;
    size_t count = 0;
    if (at <= 0)
        return cs_fail(d->err, CUTSET_USAGE, "--type %s: expected NAME=TYPE, as in x=f32[1,N]",
                       option);
    const cs_span name = {text.at, (size_t)at};
    const cs_span rest = {text.at + at + 1, text.len - (size_t)at - 1};
    TRY(as_usage(d, cs_type_parse(d->pool, rest, &type, d->err), "type", option));
    const cs_str id = cs_strtab_find(&d->pool->names, name);
    if (id != CS_NONE) TRY(set_types(d, d->g, id, type, false, option, &count));
    if (id != CS_NONE && count == 0) TRY(set_types(d, d->g, id, type, true, option, &count));
    if (count > 0) return CUTSET_OK;
    const cs_span near = similar(d->g, name);
    if (near.len > 0)
        return cs_fail(d->err, CUTSET_USAGE,
                       "--type %s: no value is called '%.*s'; did you mean '%.*s'?", option,
                       CS_FMT(name), CS_FMT(near));
    return cs_fail(d->err, CUTSET_USAGE,
                   "--type %s: no value is called '%.*s'; cutset inspect --text MODEL lists them",
                   option, CS_FMT(name));
}

/* ---- applying the bindings ---- */

static bool put(cs_chars *to, const char *at, size_t len)
{
    if (len == 0) return true;
    if (!cs_vec_room(to, len)) return false;
    memcpy(to->at + to->len, at, len);
    to->len += len;
    return true;
}

/* The text of the dim with bound symbols replaced, in d->text; *changed: any was. */
static bool substitute(declare *d, cs_span text, bool *changed)
{
    size_t done = 0;
    d->text.len = 0;
    *changed = false;
    for (cs_span s; (s = next_symbol(text, done)).len > 0;) {
        const size_t start = (size_t)(s.at - text.at);
        const cs_str id = cs_strtab_find(&d->pool->names, s);
        binding *b = id == CS_NONE ? NULL : find_binding(d, id);
        char number[32];
        cs_span with = s;
        if (b != NULL) {
            const cs_dim value = resolve_used(d, b);
            *changed = true;
            with = (cs_span){number, (size_t)snprintf(number, sizeof number, "%" PRId64, value)};
            if (cs_dim_is_expr(value)) with = cs_name(d->pool, cs_dim_text(value));
        }
        if (!put(&d->text, text.at + done, start - done) || !put(&d->text, with.at, with.len))
            return false;
        done = start + s.len;
    }
    return put(&d->text, text.at + done, text.len - done);
}

static cutset_status rewrite_dim(declare *d, cs_dim *dim)
{
    bool changed;
    if (!cs_dim_is_expr(*dim)) return CUTSET_OK;
    const cs_span text = cs_name(d->pool, cs_dim_text(*dim));
    if (!substitute(d, text, &changed)) return cs_fail_memory(d->err);
    if (!changed) return CUTSET_OK;
    const cs_span now = {d->text.at, d->text.len};
    const cutset_status status = cs_dim_parse(d->pool, now, dim, d->err);
    if (status != CUTSET_BAD) return status;
    return cs_fail(d->err, CUTSET_USAGE, "with the sizes given, dim %.*s becomes %.*s: no size",
                   CS_FMT(text), CS_FMT(now));
}

/* `map` holds the new types of all types before `t`, so of its inner one. */
static cutset_status rewrite_type(declare *d, cs_type t, const cs_type *map, cs_type *out)
{
    cs_pool *pool = d->pool;
    const cs_type_info info = *cs_type_get(pool, t);
    cs_dim dims[CS_RANK_MAX];
    *out = t;
    switch (info.kind) {
    case CS_TENSOR:
    case CS_SPARSE:
        if (info.rank <= 0) return CUTSET_OK;
        memcpy(dims, cs_type_dims(pool, t), (size_t)info.rank * sizeof *dims);
        for (int i = 0; i < info.rank; i++)
            TRY(rewrite_dim(d, &dims[i]));
        *out = info.kind == CS_TENSOR ? cs_type_tensor(pool, info.elem, info.rank, dims)
                                      : cs_type_sparse(pool, info.elem, info.rank, dims);
        break;
    case CS_SEQ:
        *out = cs_type_seq(pool, map[info.inner]);
        break;
    case CS_OPT:
        *out = cs_type_opt(pool, map[info.inner]);
        break;
    case CS_MAP:
        *out = cs_type_map(pool, info.elem, map[info.inner]);
        break;
    default:
        break;
    }
    return *out == CS_NONE ? cs_fail_memory(d->err) : CUTSET_OK;
}

/* Types of all values, through `map` where given; captures follow what they capture. */
static void apply(cs_graph *g, const cs_type *map)
{
    for (size_t i = 0; i < g->values.len; i++) {
        cs_value *v = &g->values.at[i];
        if (v->origin == CS_ORIGIN_CAPTURE && g->outer != NULL)
            v->type = g->outer->values.at[v->from].type;
        else if (map != NULL)
            v->type = map[v->type];
    }
    for (size_t i = 0; i < g->bodies.len; i++)
        apply(g->bodies.at[i].graph, map);
}

static cutset_status rewrite_all(declare *d)
{
    const size_t n = d->pool->types.len;
    cs_type *map = cs_alloc(n, sizeof *map);
    if (map == NULL) return cs_fail_memory(d->err);
    cutset_status status = CUTSET_OK;
    for (size_t t = 0; t < n && status == CUTSET_OK; t++)
        status = rewrite_type(d, (cs_type)t, map, &map[t]);
    if (status == CUTSET_OK) apply(d->g, map);
    cs_free(map);
    return status;
}

/* The symbols of the graph's inputs, for a message. */
static void list_symbols(const declare *d, char *out, size_t room)
{
    const cs_graph *g = d->g;
    size_t listed = 0;
    for (size_t i = 0; i < g->inputs.len; i++) {
        const cs_type t = g->values.at[g->inputs.at[i]].type;
        const cs_type_info *info = cs_type_get(d->pool, t);
        if (info->kind != CS_TENSOR) continue;
        for (int j = 0; j < info->rank; j++) {
            const cs_dim dim = cs_type_dims(d->pool, t)[j];
            if (!is_symbol(d->pool, dim) || listed == 8) continue;
            const cs_span name = cs_name(d->pool, cs_dim_text(dim));
            if (memmem(out, strlen(out), name.at, name.len) != NULL) continue;
            list_name(out, room, name);
            listed++;
        }
    }
}

static cutset_status check_used(const declare *d)
{
    for (size_t i = 0; i < d->bindings.len; i++) {
        const binding *b = &d->bindings.at[i];
        if (b->used || !b->by_dim) continue;
        char names[512] = "";
        list_symbols(d, names, sizeof names);
        return cs_fail(d->err, CUTSET_USAGE, "--dim %s: the model has no dim %.*s; %s%s", b->option,
                       CS_FMT(cs_name(d->pool, b->symbol)),
                       names[0] == '\0' ? "its inputs have no symbols" : "its inputs have ", names);
    }
    return CUTSET_OK;
}

static cutset_status take_all(declare *d, const cutset_open_opts *opts)
{
    for (size_t i = 0; i < opts->n_types; i++)
        TRY(take_type(d, opts->types[i]));
    for (size_t i = 0; i < opts->n_shapes; i++)
        TRY(take_shape(d, opts->shapes[i]));
    for (size_t i = 0; i < opts->n_dims; i++)
        TRY(take_dim(d, opts->dims[i]));
    if (d->bindings.len > 0) {
        TRY(rewrite_all(d));
        return check_used(d);
    }
    apply(d->g, NULL);
    return CUTSET_OK;
}

cutset_status cs_declare(cs_graph *graph, const cutset_open_opts *opts, cutset_error *err)
{
    if (opts == NULL || opts->n_types + opts->n_shapes + opts->n_dims == 0) return CUTSET_OK;
    declare d = {.g = graph, .pool = graph->pool, .err = err};
    const cutset_status status = take_all(&d, opts);
    cs_vec_fini(&d.bindings);
    cs_vec_fini(&d.text);
    return status;
}
