/* The inputs of a verification run: what the user says, symbols, and attempts.
 *
 * Values that nobody gave are random by seed: each input has its own stream, seeded by the run's
 * seed and its name, so that an input more or less does not change the others. Sizes of symbolic
 * dims are made up, one a symbol. Made-up sizes and integers may be nonsense to a model (an index
 * out of range, an image smaller than a kernel), so there is a short list of attempts; the first
 * one that the whole model takes is used.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/verify.h"
#include "engine/elem.h"

/* Integers begin at 1 first: a zero that a model divides by ends the process. */
const cs_attempt cs_attempts[] = {{2, 1, 1, 9},  {2, 1, 0, 1},   {1, 0, 0, 1},
                                  {2, 0, 0, 1},  {8, 0, 0, 1},   {32, 0, 0, 1},
                                  {64, 0, 0, 1}, {512, 0, 0, 1}, {1, 0, 0, 0}};
const size_t cs_n_attempts = sizeof cs_attempts / sizeof *cs_attempts;

/* ---- types ---- */

/* The tensor within a sequence, an optional, or the values of a map. */
static const cs_type_info *innermost(const cs_graph *g, cs_type type)
{
    const cs_type_info *info = cs_type_get(g->pool, type);
    while (info->kind == CS_SEQ || info->kind == CS_OPT || info->kind == CS_MAP)
        info = cs_type_get(g->pool, info->inner);
    return info;
}

static const cs_type_info *feed_tensor(const cs_inputs *in, const cs_feed *feed)
{
    return innermost(in->graph, in->graph->values.at[feed->value].type);
}

/* ---- symbols ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next symbol in the canonical spelling of a dim, from *at on; an empty span: no more. */
static cs_span next_symbol(cs_span text, size_t *at)
{
    while (*at < text.len) {
        const size_t from = *at;
        if (text.at[from] == '"') {
            for (++*at; *at < text.len && text.at[*at] != '"'; ++*at)
                if (text.at[*at] == '\\') ++*at;
            const size_t end = *at < text.len ? *at : text.len;
            *at = end + 1;
            /* An escaped name is not unescaped here: its dim counts as unknown. */
            if (memchr(text.at + from, '\\', end - from) == NULL)
                return (cs_span){text.at + from + 1, end - from - 1};
            continue;
        }
        while (*at < text.len && is_word(text.at[*at]))
            ++*at;
        if (*at == from) {
            ++*at;
            continue;
        }
        const bool number = text.at[from] >= '0' && text.at[from] <= '9';
        const bool function = *at < text.len && text.at[*at] == '('; /* floor, ceil, min, max */
        if (!number && !function) return (cs_span){text.at + from, *at - from};
    }
    return (cs_span){NULL, 0};
}

static cs_symbol *find_symbol(const cs_inputs *in, cs_span name)
{
    for (size_t i = 0; i < in->symbols.len; i++)
        if (cs_span_eq(in->symbols.at[i].name, name)) return &in->symbols.at[i];
    return NULL;
}

static bool collect_symbols(cs_inputs *in, const cs_type_info *info)
{
    const cs_pool *pool = in->graph->pool;
    for (int i = 0; i < info->rank; i++) {
        const cs_dim dim = pool->dims.at[info->dims + (uint32_t)i];
        if (!cs_dim_is_expr(dim)) continue;
        const cs_span text = cs_name(pool, cs_dim_text(dim));
        size_t at = 0;
        for (cs_span s; (s = next_symbol(text, &at)).at != NULL;)
            if (find_symbol(in, s) == NULL && !cs_vec_push(&in->symbols, ((cs_symbol){s, -1})))
                return false;
    }
    return true;
}

static int64_t symbol_size(const cs_inputs *in, const cs_symbol *s, const cs_attempt *attempt)
{
    const int64_t k = s - in->symbols.at;
    return s->value >= 0 ? s->value : attempt->dim + attempt->step * (k < 4 ? k : 4);
}

/* Binds every symbol of `dim`; what it comes to, or -1 where it holds one that is not known. */
static int64_t evaluate(cs_inputs *in, cs_dim dim, const cs_attempt *attempt)
{
    cs_pool *pool = in->graph->pool;
    while (cs_dim_is_expr(dim)) {
        size_t at = 0;
        const cs_span name = next_symbol(cs_name(pool, cs_dim_text(dim)), &at);
        const cs_symbol *s = name.at != NULL ? find_symbol(in, name) : NULL;
        if (s == NULL ||
            cs_dim_bind(pool, dim, name, symbol_size(in, s, attempt), &dim, NULL) != CUTSET_OK)
            return -1;
    }
    return dim;
}

/* To ONNX, "past + 1" is a name like any other. Exporters mean it: where it reads as an expression
 * over symbols that other dims have, it is one. */
static int64_t evaluate_name(cs_inputs *in, cs_dim dim, const cs_attempt *attempt)
{
    const cs_span text = cs_name(in->graph->pool, cs_dim_text(dim));
    size_t at = 0;
    const cs_span name = next_symbol(text, &at);
    const cs_symbol *s = name.at != NULL ? find_symbol(in, name) : NULL;
    cs_dim meant;
    if (s == NULL || s->value >= 0 || name.len + 2 != text.len) return -1;
    if (cs_dim_parse(in->graph->pool, name, &meant, NULL) != CUTSET_OK) return -1;
    return cs_dim_is_expr(meant) && meant != dim ? evaluate(in, meant, attempt) : -1;
}

int64_t cs_inputs_dim(cs_inputs *in, cs_dim dim, const cs_attempt *attempt)
{
    if (dim >= 0) return dim;
    int64_t size = cs_dim_is_expr(dim) ? evaluate_name(in, dim, attempt) : -1;
    if (size < 0 && cs_dim_is_expr(dim)) size = evaluate(in, dim, attempt);
    return size >= 0 ? size : attempt->dim;
}

/* ---- options: NAME=..., NAME may hold '=' itself ---- */

static cs_feed *find_feed(const cs_inputs *in, const char *option, const char **rest)
{
    cs_feed *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < in->feeds.len; i++) {
        const size_t n = strlen(in->feeds.at[i].name);
        if (strncmp(option, in->feeds.at[i].name, n) != 0 || option[n] != '=') continue;
        if (found != NULL && n < longest) continue;
        found = &in->feeds.at[i];
        longest = n;
    }
    if (found != NULL) *rest = option + longest + 1;
    return found;
}

static cutset_status no_feed(const cs_inputs *in, const char *name, const char *option,
                             cutset_error *err)
{
    char list[300] = "";
    size_t n = 0;
    for (size_t i = 0; i < in->feeds.len && n < sizeof list - 80; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%.60s", i > 0 ? ", " : "",
                              in->feeds.at[i].name);
    return cs_fail(err, CUTSET_USAGE, "--%s %s: no input of the model has this name; it has: %s",
                   name, option, n > 0 ? list : "none");
}

/* "0..9", "-1.5..2", "16000" */
static bool parse_range(const char *text, cs_feed *f)
{
    const char *dots = strstr(text, "..");
    const cs_span low = {text, dots != NULL ? (size_t)(dots - text) : strlen(text)};
    const cs_span high = dots != NULL ? cs_span_of(dots + 2) : low;
    f->whole = cs_parse_i64(low, &f->low_int) && cs_parse_i64(high, &f->high_int);
    if (!cs_parse_f64(low, &f->low) || !cs_parse_f64(high, &f->high)) return false;
    return isfinite(f->low) && isfinite(f->high) && f->low <= f->high &&
           (!f->whole || f->low_int <= f->high_int);
}

static cutset_status read_range(cs_inputs *in, const char *option, cutset_error *err)
{
    const char *text;
    cs_feed *f = find_feed(in, option, &text);
    if (f == NULL) return no_feed(in, "range", option, err);
    if (f->ranged)
        return cs_fail(err, CUTSET_USAGE, "--range %s: a second range for %s: give one", option,
                       f->name);
    if (!parse_range(text, f))
        return cs_fail(err, CUTSET_USAGE,
                       "--range %s: '%s' is no range: write LOW..HIGH, as in 0..9 or -1.5..2",
                       option, text);
    f->ranged = true;
    const cs_elem e = feed_tensor(in, f)->elem;
    const cs_elem_class class = cs_elem_classify(e);
    if (class == CS_ELEM_OTHER)
        return cs_fail(err, CUTSET_USAGE, "--range %s: %s holds %s, no numbers", option, f->name,
                       cs_elem_name(e));
    if (class != CS_ELEM_INT && class != CS_ELEM_BOOL) return CUTSET_OK;
    if (!f->whole)
        return cs_fail(err, CUTSET_USAGE, "--range %s: %s holds %s: give whole numbers", option,
                       f->name, cs_elem_name(e));
    if (f->low_int < cs_elem_least(e) || f->high_int > cs_elem_most(e))
        return cs_fail(err, CUTSET_USAGE, "--range %s: %s goes from %" PRId64 " to %" PRId64,
                       option, cs_elem_name(e), cs_elem_least(e), cs_elem_most(e));
    return CUTSET_OK;
}

/* Raw bytes serve for the types NumPy has not; small integers come one a byte. */
static bool npy_fits(const cs_npy *npy, cs_elem e)
{
    const unsigned bits = cs_elem_bits(e);
    if (cs_npy_elem(npy) == e) return true;
    if (bits > 0 && bits < 8 && cs_elem_classify(e) == CS_ELEM_INT)
        return npy->item == 1 && strchr("iuV", npy->kind) != NULL;
    return npy->kind == 'V' && bits >= 8 && npy->item == bits / 8;
}

static cutset_status check_npy(cs_inputs *in, const cs_feed *f, const char *option,
                               cutset_error *err)
{
    const cs_type type = in->graph->values.at[f->value].type;
    const cs_type_info *info = cs_type_get(in->graph->pool, type);
    if (info->kind == CS_OPT) info = cs_type_get(in->graph->pool, info->inner);
    if (info->kind != CS_TENSOR)
        return cs_fail(err, CUTSET_USAGE, "--input %s: %s is no tensor: only tensors can be given",
                       option, f->name);
    if (!npy_fits(&f->npy, info->elem))
        return cs_fail(err, CUTSET_USAGE,
                       "--input %s: its elements are %c%zu, those of %s are %s: save "
                       "x.astype(...) of that type",
                       option, f->npy.kind, f->npy.item, f->name, cs_elem_name(info->elem));
    bool fits = info->rank == CS_RANK_UNKNOWN || (size_t)info->rank == f->npy.rank;
    for (int i = 0; fits && i < info->rank; i++) {
        const cs_dim dim = in->graph->pool->dims.at[info->dims + (uint32_t)i];
        fits = dim < 0 || dim == f->npy.dims[i];
    }
    if (fits) return CUTSET_OK;
    cs_chars text = {0};
    const bool printed = cs_type_print(in->graph->pool, type, &text);
    char shape[120] = "[";
    size_t n = 1;
    for (size_t i = 0; i < f->npy.rank && n < sizeof shape - 30; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRId64, i > 0 ? "," : "",
                              f->npy.dims[i]);
    cutset_status status =
        printed ? cs_fail(err, CUTSET_USAGE, "--input %s: its shape is %s], that of %s is %.*s",
                          option, shape, f->name, (int)(text.len > 200 ? 200 : text.len), text.at)
                : cs_fail_memory(err);
    cs_vec_fini(&text);
    return status;
}

/* Symbols of a given shape have the sizes of the file, in all other inputs too. */
static void bind_symbols(cs_inputs *in, const cs_feed *f)
{
    const cs_pool *pool = in->graph->pool;
    const cs_type_info *info = feed_tensor(in, f);
    for (int i = 0; i < info->rank; i++) {
        const cs_dim dim = pool->dims.at[info->dims + (uint32_t)i];
        if (!cs_dim_is_expr(dim)) continue;
        const cs_span text = cs_name(pool, cs_dim_text(dim));
        size_t at = 0;
        const cs_span name = next_symbol(text, &at);
        const bool alone = name.at == text.at ? name.len == text.len : name.len + 2 == text.len;
        cs_symbol *s = name.at != NULL && alone ? find_symbol(in, name) : NULL;
        if (s != NULL && s->value < 0) s->value = f->npy.dims[i];
    }
}

static cutset_status read_file(cs_inputs *in, const char *option, cutset_error *err)
{
    const char *path;
    cs_feed *f = find_feed(in, option, &path);
    if (f == NULL) return no_feed(in, "input", option, err);
    if (f->path != NULL)
        return cs_fail(err, CUTSET_USAGE, "--input %s: a second file for %s: give one", option,
                       f->name);
    if (f->ranged)
        return cs_fail(err, CUTSET_USAGE, "--input %s: %s has a --range too: give one of them",
                       option, f->name);
    cutset_status status = cs_npy_open(&f->npy, path, err);
    if (status) return status;
    f->path = path;
    status = check_npy(in, f, option, err);
    if (!status) bind_symbols(in, f);
    return status;
}

/* ---- all ---- */

static cutset_status add_feeds(cs_inputs *in, cutset_error *err)
{
    const cs_graph *g = in->graph;
    for (size_t i = 0; i < g->inputs.len; i++) {
        const cs_value *value = &g->values.at[g->inputs.at[i]];
        if (value->origin != CS_ORIGIN_INPUT || value->storage != CS_NONE) continue;
        const cs_span name = cs_name(g->pool, value->name);
        cs_feed feed = {.value = g->inputs.at[i], .name = cs_alloc(name.len + 1, 1)};
        if (feed.name == NULL) return cs_fail_memory(err);
        memcpy(feed.name, name.at, name.len);
        feed.name[name.len] = '\0';
        if (!cs_vec_push(&in->feeds, feed)) {
            cs_free(feed.name);
            return cs_fail_memory(err);
        }
        if (!collect_symbols(in, innermost(g, value->type))) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

/* What the attempts can change. */
static void see_freedom(cs_inputs *in)
{
    in->any_dim = false;
    for (size_t i = 0; i < in->feeds.len; i++) {
        const cs_feed *f = &in->feeds.at[i];
        const cs_type_info *info = feed_tensor(in, f);
        if (f->path != NULL) continue;
        in->any_int |= !f->ranged && cs_elem_classify(info->elem) == CS_ELEM_INT;
        in->any_dim |= info->rank == CS_RANK_UNKNOWN;
        for (int k = 0; k < info->rank; k++)
            in->any_dim |= in->graph->pool->dims.at[info->dims + (uint32_t)k] < 0;
    }
}

cutset_status cs_inputs_init(cs_inputs *in, cs_graph *graph, const cutset_verify_opts *opts,
                             cutset_error *err)
{
    in->graph = graph;
    cutset_status status = add_feeds(in, err);
    for (size_t i = 0; !status && i < opts->n_ranges; i++)
        status = read_range(in, opts->ranges[i], err);
    for (size_t i = 0; !status && i < opts->n_inputs; i++)
        status = read_file(in, opts->inputs[i], err);
    if (!status) see_freedom(in);
    return status;
}

void cs_inputs_fini(cs_inputs *in)
{
    for (size_t i = 0; i < in->feeds.len; i++) {
        cs_free(in->feeds.at[i].name);
        cs_npy_close(&in->feeds.at[i].npy);
    }
    cs_vec_fini(&in->feeds);
    cs_vec_fini(&in->symbols);
}

bool cs_inputs_differ(const cs_inputs *in, size_t k)
{
    const cs_attempt *a = &cs_attempts[k];
    for (size_t i = 0; i < k; i++) {
        const cs_attempt *b = &cs_attempts[i];
        const bool dims = in->any_dim && (a->dim != b->dim || a->step != b->step);
        const bool ints = in->any_int && (a->low != b->low || a->high != b->high);
        if (!dims && !ints) return false;
    }
    return true;
}

static void describe_source(const cs_inputs *in, cs_feed *f, const cs_attempt *attempt)
{
    const cs_elem e = feed_tensor(in, f)->elem;
    int64_t low, high;
    char from[32] = "-1", to[32] = "1";
    switch (cs_elem_classify(e)) {
    case CS_ELEM_FLOAT:
    case CS_ELEM_COMPLEX:
        if (f->ranged) {
            cs_format_f64(f->low, from);
            cs_format_f64(f->high, to);
        }
        snprintf(f->source, sizeof f->source, "%s..%s", from, to);
        break;
    case CS_ELEM_INT:
    case CS_ELEM_BOOL:
        cs_values_range(f, e, attempt, &low, &high);
        snprintf(f->source, sizeof f->source, "%" PRId64 "..%" PRId64, low, high);
        break;
    default:
        snprintf(f->source, sizeof f->source, "\"a\", \"b\"");
    }
    if (f->path != NULL) snprintf(f->source, sizeof f->source, "%.90s", f->path);
}

cutset_status cs_inputs_make(cs_inputs *in, const cs_ort *ort, uint64_t seed, size_t attempt,
                             OrtValue **values, cutset_error *err)
{
    const cs_attempt *a = &cs_attempts[attempt];
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; i < in->feeds.len; i++)
        values[i] = NULL;
    for (size_t i = 0; !status && i < in->feeds.len; i++) {
        cs_feed *f = &in->feeds.at[i];
        uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) ^ cs_hash(f->name, strlen(f->name));
        const cs_type type = in->graph->values.at[f->value].type;
        status = f->path != NULL ? cs_values_load(ort, f, feed_tensor(in, f)->elem, &values[i], err)
                                 : cs_values_make(in, ort, f, type, a, &state, &values[i], err);
        describe_source(in, f, a);
        if (!status && f->shape[0] == '\0')
            status = cs_verify_spell(ort, values[i], f->shape, sizeof f->shape, err);
    }
    for (size_t i = 0; status && i < in->feeds.len; i++) {
        cs_ort_value_free(ort, values[i]);
        values[i] = NULL;
    }
    return status;
}
