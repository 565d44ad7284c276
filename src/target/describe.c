/* Prints a target: a table for people in 80 columns, or JSON. Cost: linear in the target file. */
#include "base/json.h"
#include "target/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 80
#define MARGIN 12 /* of the second column */

/* ---- the conditions as short phrases, shared by both forms ---- */

static void add_when(cs_reason *r, cs_versions v, const cs_when *when)
{
    if (v.since > 0) cs_reason_add(r, ", since opset %d", v.since);
    if (v.until < INT32_MAX) cs_reason_add(r, ", until opset %d", v.until);
    if (when == NULL) return;
    if (when->attr != NULL) {
        cs_reason_add(r, ", where %s is ", when->attr);
        cs_reason_literals(r, when->is);
    }
    if (when->input >= 0) cs_reason_add(r, ", where input %d is given", when->input);
}

static void add_values(cs_reason *r, cs_literals is, double min, double max)
{
    if (is.n > 0) {
        cs_reason_add(r, " is ");
        cs_reason_literals(r, is);
    }
    if (min > -INFINITY || max < INFINITY) {
        cs_reason_add(r, " is ");
        cs_reason_range(r, min, max);
    }
}

static void phrase_attr(cs_reason *r, const cs_attr_rule *c)
{
    cs_reason_add(r, "%s", c->name);
    if (c->absent) cs_reason_add(r, " absent");
    if (c->given) cs_reason_add(r, " given");
    add_values(r, c->is, c->min, c->max);
    if (c->each.n > 0) {
        cs_reason_add(r, ": every element is ");
        cs_reason_literals(r, c->each);
    }
    if (c->halves) cs_reason_add(r, ": the second half repeats the first");
    if (c->iota) cs_reason_add(r, " is 0, 1, ... rank - 1");
    if (c->otherwise.n > 0) cs_reason_add(r, " (default %s)", c->otherwise.at[0].text);
    add_when(r, c->versions, c->when);
}

static void add_positions(cs_reason *r, uint32_t positions)
{
    const char *comma = " ";
    for (unsigned p = 0; p < CS_POS_COUNT; p++) {
        if (!(positions >> p & 1)) continue;
        cs_reason_add(r, "%s%u", comma, p);
        comma = ", ";
        if (positions >> p != (UINT32_C(1) << (CS_POS_COUNT - p)) - 1) continue;
        cs_reason_add(r, " and later");
        return;
    }
}

static void add_ranks(cs_reason *r, const cs_arg_rule *c)
{
    const char *comma = ", rank ";
    for (int k = 0; k < 32; k++)
        if (c->ranks >> k & 1) {
            cs_reason_add(r, "%s%d", comma, k);
            comma = " or ";
        }
    if (c->min_rank == 0 && c->max_rank == CS_RANK_ANY) return;
    cs_reason_add(r, ", rank ");
    cs_reason_range(r, c->min_rank > 0 ? c->min_rank : -INFINITY,
                    c->max_rank < CS_RANK_ANY ? c->max_rank : INFINITY);
}

static void add_dim(cs_reason *r, const cs_dim_rule *d)
{
    if (d->attr != NULL)
        cs_reason_add(r, ", dim %s", d->attr);
    else
        cs_reason_add(r, ", dim %d", d->at);
    if (d->fixed) cs_reason_add(r, " known");
    add_values(r, d->is, d->min > 0 ? (double)d->min : -INFINITY,
               d->max < INT64_MAX ? (double)d->max : INFINITY);
}

static void phrase_arg(cs_reason *r, const cs_arg_rule *c, bool output)
{
    cs_reason_add(r, "%s", output ? "output" : "input");
    add_positions(r, c->positions);
    if (c->name != NULL) cs_reason_add(r, " (%s)", c->name);
    if (c->types != 0) {
        cs_reason_add(r, " of ");
        cs_reason_types(r, c->types);
    }
    if (c->absent) cs_reason_add(r, ", absent");
    if (c->given) cs_reason_add(r, ", given");
    if (c->unused) cs_reason_add(r, ", not read");
    if (c->constant || c->valued) cs_reason_add(r, ", constant");
    if (c->valued) cs_reason_add(r, ", every element");
    add_values(r, c->is, c->min, c->max);
    add_ranks(r, c);
    if (c->fixed) cs_reason_add(r, ", shape known");
    for (size_t i = 0; i < c->n_dims; i++)
        add_dim(r, &c->dims[i]);
    add_when(r, c->versions, c->when);
}

static void phrase_bodies(cs_reason *r, const cs_op_rule *rule)
{
    const char *const phrase[] = {
        "the branches' outputs have the same rank", "the branches' outputs have different names",
        "carried values keep their shape", "scan outputs have a length known before run time"};
    const bool said[] = {rule->same_rank, rule->distinct_outputs, rule->same_carried,
                         rule->fixed_scans};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i]) cs_reason_add(r, "%s%s", r->len > 0 ? "; " : "", phrase[i]);
}

static size_t count_phrases(const cs_op_rule *rule)
{
    bool bodies =
        rule->same_rank || rule->distinct_outputs || rule->same_carried || rule->fixed_scans;
    return rule->n_attrs + rule->n_inputs + rule->n_outputs + bodies;
}

static void phrase(cs_reason *r, const cs_op_rule *rule, size_t i)
{
    *r = (cs_reason){0};
    if (i < rule->n_attrs) {
        phrase_attr(r, &rule->attrs[i]);
        return;
    }
    i -= rule->n_attrs;
    if (i < rule->n_inputs) {
        phrase_arg(r, &rule->inputs[i], false);
        return;
    }
    i -= rule->n_inputs;
    if (i < rule->n_outputs)
        phrase_arg(r, &rule->outputs[i], true);
    else
        phrase_bodies(r, rule);
}

/* ---- the table ---- */

typedef struct cs_column {
    cs_out *out;
    size_t at, indent; /* column now, and where wrapped lines begin */
} cs_column;

/* Words separated by one blank, wrapped at WIDTH. */
static void put_words(cs_column *c, const char *text)
{
    while (*text != 0) {
        size_t len = strcspn(text, " ");
        if (c->at > c->indent && c->at + 1 + len > WIDTH) {
            cs_out_printf(c->out, "\n%*s", (int)c->indent, "");
            c->at = c->indent;
        } else if (c->at > c->indent) {
            cs_out_puts(c->out, " ");
            c->at++;
        }
        cs_out_put(c->out, text, len);
        c->at += len;
        text += len;
        text += strspn(text, " ");
    }
}

static cs_column begin_row(cs_out *out, const char *head, size_t indent)
{
    int width = (int)indent - 1;
    cs_out_printf(out, "%-*s ", width, head);
    size_t len = strlen(head) > (size_t)width ? strlen(head) : (size_t)width;
    return (cs_column){out, len + 1 > indent ? len + 1 : indent, indent};
}

static void row(cs_out *out, const char *head, const char *text)
{
    cs_column c = begin_row(out, head, MARGIN);
    put_words(&c, text);
    cs_out_puts(out, "\n");
}

static void add_factors(cs_reason *r, const char *head, int64_t base, const int64_t *factor)
{
    char text[32];
    cs_format_f64((double)factor[0] / 1e6, text);
    cs_reason_add(r, "%s weight bytes x %s", head, text);
    for (int e = 1; e < CS_ELEM_COUNT; e++) {
        if (factor[e] == factor[0]) continue;
        cs_format_f64((double)factor[e] / 1e6, text);
        cs_reason_add(r, " (%s: %s)", cs_elem_name((cs_elem)e), text);
    }
    if (base > 0) {
        cs_format_size(base, text);
        cs_reason_add(r, " + %s", text);
    }
}

static void table_limits(cs_out *out, const cutset_target *target)
{
    const cs_target_rules *t = target->rules;
    cs_reason r = {0};
    if (t->opset_min > 0 || t->opset_max < INT32_MAX) {
        cs_reason_add(&r, "ai.onnx ");
        cs_reason_range(&r, t->opset_min > 0 ? t->opset_min : -INFINITY,
                        t->opset_max < INT32_MAX ? t->opset_max : INFINITY);
        row(out, "opset", r.text);
    }
    r = (cs_reason){0};
    add_factors(&r, "build:", target->memory.host_base, target->memory.host_factor);
    add_factors(&r, "; run:", target->memory.device_base, target->memory.device_factor);
    row(out, "memory", r.text);
    row(out, "weights", target->refit ? "refit" : "baked");

    r = (cs_reason){0};
    if (t->max_rank < CS_RANK_ANY) cs_reason_add(&r, "rank at most %d; ", t->max_rank);
    if (t->ranked) cs_reason_add(&r, "rank known before run time; ");
    for (size_t i = 0; i < t->n_never; i++) {
        cs_reason_add(&r, "never ");
        cs_reason_types(&r, t->never[i].types);
        cs_reason_add(&r, ": %s; ", t->never[i].why);
    }
    if (r.len > 2) r.text[r.len - 2] = 0; /* the last "; " */
    if (r.len > 0) row(out, "tensors", r.text);

    r = (cs_reason){0};
    if (!t->boundary_any) {
        cs_reason_types(&r, t->boundary_in | t->boundary_out);
        if (t->boundary_in != t->boundary_out) {
            cs_reason_add(&r, "; only in: ");
            cs_reason_types(&r, t->boundary_in & ~t->boundary_out);
            cs_reason_add(&r, "; only out: ");
            cs_reason_types(&r, t->boundary_out & ~t->boundary_in);
        }
    }
    if (t->boundary_max_rank < CS_RANK_ANY)
        cs_reason_add(&r, "%srank at most %d", r.len > 0 ? "; " : "", t->boundary_max_rank);
    if (t->boundary_ranked)
        cs_reason_add(&r, "%srank known before run time", r.len > 0 ? "; " : "");
    row(out, "boundary", r.len > 0 ? r.text : "any value");
}

static void table_patterns(cs_out *out, const cutset_target *target)
{
    for (size_t i = 0; i < target->n_patterns; i++) {
        const cs_pattern *p = &target->patterns[i];
        cs_column c = begin_row(out, i == 0 ? "patterns" : "", MARGIN);
        put_words(&c, p->name);
        put_words(&c, p->qdq ? "= an operator with its DequantizeLinear and QuantizeLinear" : "=");
        for (size_t s = 0; s < p->n_steps; s++) {
            if (s > 0) put_words(&c, ">");
            for (size_t k = 0; k < p->steps[s].n_ops; k++) {
                if (k > 0) put_words(&c, "|");
                put_words(&c, p->steps[s].ops[k]);
            }
        }
        cs_out_puts(out, "\n");
    }
}

static void table_names(cs_out *out, const char *head, const char *const *names, size_t n)
{
    if (n == 0) return;
    cs_column c = begin_row(out, head, MARGIN);
    for (size_t i = 0; i < n; i++)
        put_words(&c, names[i]);
    cs_out_puts(out, "\n");
}

static void table_rule(cs_out *out, const cs_op_rule *rule)
{
    cs_column c = begin_row(out, " ", 2);
    for (size_t i = 0; i < rule->n_ops; i++)
        put_words(&c, rule->ops[i]);
    cs_out_puts(out, "\n");
    cs_reason r = {0};
    cs_reason_types(&r, rule->types);
    if (rule->versions.since > 0) cs_reason_add(&r, ", since opset %d", rule->versions.since);
    if (rule->versions.until < INT32_MAX)
        cs_reason_add(&r, ", until opset %d", rule->versions.until);
    c = begin_row(out, " ", 6);
    put_words(&c, r.len > 0 ? r.text : "any type");
    cs_out_puts(out, "\n");
    for (size_t i = 0; i < count_phrases(rule); i++) {
        phrase(&r, rule, i);
        c = begin_row(out, "      -", 8);
        put_words(&c, r.text);
        cs_out_puts(out, "\n");
    }
}

static size_t count_ops(const cs_target_rules *t)
{
    size_t ops = 0;
    for (size_t i = 0; i < t->n_rules; i++)
        ops += t->rules[i].n_ops;
    return ops;
}

static void table(cs_out *out, const cutset_target *target)
{
    const cs_target_rules *t = target->rules;
    char text[80];
    row(out, "target", target->name);
    row(out, "summary", t->summary);
    table_limits(out, target);
    table_patterns(out, target);
    table_names(out, "refused", t->except, t->n_except);
    table_names(out, "dds", t->dds, t->n_dds);
    if (target->marked_only) return;
    snprintf(text, sizeof text, "%s%zu with rules", t->all ? "all, of them " : "", count_ops(t));
    row(out, "operators", text);
    for (size_t i = 0; i < t->n_rules; i++)
        table_rule(out, &t->rules[i]);
}

/* ---- JSON ---- */

static void json_types(cs_json *j, const char *key, uint32_t types)
{
    cs_json_key(j, key);
    cs_json_array_line(j);
    for (unsigned e = 1; e < CS_ELEM_COUNT; e++)
        if (types >> e & 1) cs_json_text(j, cs_elem_name((cs_elem)e));
    cs_json_end(j);
}

static void json_names(cs_json *j, const char *key, const char *const *names, size_t n)
{
    cs_json_key(j, key);
    cs_json_array_line(j);
    for (size_t i = 0; i < n; i++)
        cs_json_text(j, names[i]);
    cs_json_end(j);
}

static void json_limit(cs_json *j, const char *key, int32_t x, int32_t none)
{
    if (x == none)
        cs_json_put_null(j, key);
    else
        cs_json_put_int(j, key, x);
}

static void json_factors(cs_json *j, const char *key, const int64_t *factor)
{
    cs_json_key(j, key);
    cs_json_object_line(j);
    cs_json_key(j, "default");
    cs_json_f64(j, (double)factor[0] / 1e6);
    for (int e = 1; e < CS_ELEM_COUNT; e++) {
        if (factor[e] == factor[0]) continue;
        cs_json_key(j, cs_elem_name((cs_elem)e));
        cs_json_f64(j, (double)factor[e] / 1e6);
    }
    cs_json_end(j);
}

static void json_limits(cs_json *j, const cutset_target *target)
{
    const cs_target_rules *t = target->rules;
    cs_json_key(j, "opset");
    cs_json_object_line(j);
    json_limit(j, "min", t->opset_min, 0);
    json_limit(j, "max", t->opset_max, INT32_MAX);
    cs_json_end(j);
    cs_json_key(j, "memory");
    cs_json_object(j);
    cs_json_put_int(j, "host_base", target->memory.host_base);
    json_factors(j, "host_per_weight_byte", target->memory.host_factor);
    cs_json_put_int(j, "device_base", target->memory.device_base);
    json_factors(j, "device_per_weight_byte", target->memory.device_factor);
    cs_json_end(j);
    cs_json_put_text(j, "weights", target->refit ? "refit" : "baked");
    cs_json_key(j, "tensors");
    cs_json_object(j);
    json_limit(j, "max_rank", t->max_rank, CS_RANK_ANY);
    cs_json_put_bool(j, "ranked", t->ranked);
    json_types(j, "never", t->never_types);
    cs_json_end(j);
    cs_json_key(j, "boundary");
    cs_json_object(j);
    cs_json_put_bool(j, "any_type", t->boundary_any);
    json_types(j, "inputs", t->boundary_in);
    json_types(j, "outputs", t->boundary_out);
    json_limit(j, "max_rank", t->boundary_max_rank, CS_RANK_ANY);
    cs_json_put_bool(j, "ranked", t->boundary_ranked);
    cs_json_end(j);
}

static void json_patterns(cs_json *j, const cutset_target *target)
{
    cs_json_key(j, "patterns");
    cs_json_array(j);
    for (size_t i = 0; i < target->n_patterns; i++) {
        const cs_pattern *p = &target->patterns[i];
        cs_json_object_line(j);
        cs_json_put_text(j, "name", p->name);
        cs_json_put_bool(j, "qdq", p->qdq);
        cs_json_key(j, "steps");
        cs_json_array(j);
        for (size_t s = 0; s < p->n_steps; s++) {
            cs_json_array(j);
            for (size_t k = 0; k < p->steps[s].n_ops; k++)
                cs_json_text(j, p->steps[s].ops[k]);
            cs_json_end(j);
        }
        cs_json_end(j);
        cs_json_end(j);
    }
    cs_json_end(j);
}

static void json_rules(cs_json *j, const cs_target_rules *t)
{
    cs_reason r;
    cs_json_key(j, "rules");
    cs_json_array(j);
    for (size_t i = 0; i < t->n_rules; i++) {
        const cs_op_rule *rule = &t->rules[i];
        cs_json_object(j);
        json_names(j, "ops", rule->ops, rule->n_ops);
        json_types(j, "types", rule->types);
        json_limit(j, "since", rule->versions.since, 0);
        json_limit(j, "until", rule->versions.until, INT32_MAX);
        cs_json_key(j, "conditions");
        cs_json_array(j);
        for (size_t k = 0; k < count_phrases(rule); k++) {
            phrase(&r, rule, k);
            cs_json_string(j, (cs_span){r.text, r.len});
        }
        cs_json_end(j);
        cs_json_end(j);
    }
    cs_json_end(j);
}

static void describe_json(cs_out *out, const cutset_target *target)
{
    const cs_target_rules *t = target->rules;
    char hash[32];
    snprintf(hash, sizeof hash, "xxh3:%016llx", (unsigned long long)target->hash);
    cs_json j;
    cs_json_init(&j, out);
    cs_json_object(&j);
    cs_json_put_text(&j, "name", target->name);
    cs_json_put_text(&j, "hash", hash);
    cs_json_put_text(&j, "summary", t->summary);
    json_limits(&j, target);
    json_patterns(&j, target);
    cs_json_put_bool(&j, "marked_only", target->marked_only);
    cs_json_put_bool(&j, "all", t->all);
    json_names(&j, "except", t->except, t->n_except);
    json_names(&j, "dds", t->dds, t->n_dds);
    json_rules(&j, t);
    cs_json_end(&j);
}

cutset_status cutset_target_describe(const cutset_target *target, int json, cutset_write_fn write,
                                     void *payload, cutset_error *err)
{
    cs_out out = {0};
    cutset_status status = cs_out_call(&out, write, payload, err);
    if (status != CUTSET_OK) return status;
    if (json)
        describe_json(&out, target);
    else
        table(&out, target);
    return cs_out_done(&out, "the description of a target", err);
}
