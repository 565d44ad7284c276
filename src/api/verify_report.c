/* What verify found, as a table of 80 columns or as JSON.
 *
 * One line an output, with the worst that any run showed of it. What was not compared bit for bit
 * is always said, and counted apart.
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/verify.h"
#include "base/json.h"
#include "report/line.h"

static cs_span plan_name(const cs_verify *v, cs_str s) { return cs_strtab_get(&v->plan->names, s); }

static const char *verdict_name(cs_verdict verdict)
{
    static const char *const names[] = {"equal",        "passed through", "random",
                                        "not compared", "close",          "different"};
    return names[verdict];
}

static size_t count(const cs_verify *v, cs_verdict verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < v->plan->outputs.len; i++)
        n += v->results[i].worst.verdict == verdict;
    return n;
}

/* Without the way there through "..", which the plan has. `buffer` holds PATH_MAX. */
static const char *model_path(const cs_verify *v, char *buffer)
{
    const char *real = realpath(v->plan->model_path, buffer);
    return real != NULL ? real : v->plan->model_path;
}

static cs_span part_file(const cs_verify *v)
{
    return plan_name(v, v->plan->parts.at[v->bad_part].file);
}

static size_t dead_parts(const cs_verify *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->plan->parts.len; i++)
        n += cs_part_is_dead(&v->plan->parts.at[i]);
    return n;
}

/* ---- for people ---- */

static void put_text(cs_out *out, const char *head, const char *text)
{
    cs_line_wrap(out, head, cs_span_of(text));
}

static void put_inputs(const cs_verify *v, cs_out *out)
{
    cs_line l = {0};
    for (size_t i = 0; i < v->inputs.feeds.len; i++) {
        const cs_feed *f = &v->inputs.feeds.at[i];
        if (f->shape[0] == '\0') return; /* not even made */
        cs_line_cell(&l, i == 0 ? CS_SPAN("inputs") : CS_SPAN(""), 10);
        cs_line_cell(&l, cs_span_of(f->name), 24);
        cs_line_printf(&l, " ");
        cs_line_cell(&l, cs_span_of(f->shape), 24);
        cs_line_printf(&l, " ");
        cs_line_span(&l, cs_span_of(f->source));
        cs_line_put(&l, out);
    }
}

static void put_head(const cs_verify *v, cs_out *out)
{
    cs_line l = {0};
    char path[PATH_MAX];
    cs_line_cell(&l, CS_SPAN("model"), 10);
    cs_line_span(&l, cs_span_of(model_path(v, path)));
    cs_line_put(&l, out);
    cs_line_cell(&l, CS_SPAN("parts"), 10);
    cs_line_printf(&l, "%zu in ", v->plan->parts.len);
    cs_line_span(&l, cs_span_of(v->dir));
    cs_line_put(&l, out);
    if (dead_parts(v) > 0) {
        cs_line_printf(&l, "          %zu without outputs, not run", dead_parts(v));
        cs_line_put(&l, out);
    }
    cs_line_cell(&l, CS_SPAN("runtime"), 10);
    cs_line_printf(&l, "ONNX Runtime %s, optimisations off", cs_ort_version(v->ort));
    cs_line_put(&l, out);
    cs_line_cell(&l, CS_SPAN("runs"), 10);
    cs_line_printf(&l, "%zu, seed %" PRIu64, v->n_runs, v->opts->seed);
    if (v->n_runs > 1) cs_line_printf(&l, " to %" PRIu64, v->opts->seed + v->n_runs - 1);
    cs_line_put(&l, out);
    put_inputs(v, out);
    cs_out_puts(out, "\n");
}

static void put_figures(const cs_difference *d, cs_out *out)
{
    cs_line l = {0};
    cs_line_printf(&l, "    %" PRIu64 " of %" PRIu64 " elements differ", d->count, d->of);
    if (d->max_abs > 0)
        cs_line_printf(&l, ", by at most %.3g (%.3g relative)", d->max_abs, d->max_rel);
    if (d->nan_whole + d->nan_parts > 0)
        cs_line_printf(&l, "; NaN: %" PRIu64 " and %" PRIu64, d->nan_whole, d->nan_parts);
    cs_line_put(&l, out);
}

static void put_result(const cs_verify *v, size_t i, cs_out *out)
{
    const cs_result *r = &v->results[i];
    const cs_difference *d = &r->worst;
    cs_line l = {0};
    cs_line_cell(&l, plan_name(v, v->plan->outputs.at[i].name), 30);
    cs_line_printf(&l, " ");
    cs_line_cell(&l, cs_span_of(r->type), 24);
    cs_line_printf(&l, " %s", verdict_name(d->verdict));
    if (d->verdict == CS_CLOSE) cs_line_printf(&l, ", %.2g allowed", cs_verify_tolerance(d->marks));
    if (d->verdict == CS_RANDOM) cs_line_printf(&l, ": only its type");
    cs_line_put(&l, out);
    if (d->verdict == CS_DIFFERENT || d->verdict == CS_UNCOMPARED) {
        char text[400];
        cs_verify_tell(d, text, sizeof text);
        put_text(out, "    ", text);
        if (v->n_runs > 1) {
            cs_line_printf(&l, "    with seed %" PRIu64, r->seed);
            cs_line_put(&l, out);
        }
    }
    if (d->numbers) put_figures(d, out);
}

static void put_place(const cs_verify *v, cs_out *out)
{
    if (v->located) {
        char text[1000], what[400];
        cs_verify_tell(&v->bad, what, sizeof what);
        snprintf(text, sizeof text, "%.*s, value %s: %s", CS_FMT(part_file(v)), v->bad_value, what);
        put_text(out, "first in  ", text);
    } else if (v->not_located[0] != '\0') {
        cs_out_puts(out, "first in  a part that is not known\n");
        put_text(out, "    ", v->not_located);
    }
}

/* "3 outputs equal bit for bit, 1 within tolerance" */
static void put_total(const cs_verify *v, cs_out *out)
{
    static const struct {
        cs_verdict verdict;
        const char *text;
    } kinds[] = {
        {CS_EQUAL, "equal bit for bit"}, {CS_CLOSE, "equal within the tolerance of a half float"},
        {CS_DIFFERENT, "different"},     {CS_RANDOM, "random, compared by type and shape"},
        {CS_PASSED, "passed through"},   {CS_UNCOMPARED, "not compared"}};
    char text[400] = "";
    size_t n = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t found = count(v, kinds[i].verdict);
        if (found > 0)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%zu %s", n > 0 ? ", " : "", found,
                                  kinds[i].text);
    }
    put_text(out, "outputs   ", text);
}

static void put_table(const cs_verify *v, cs_out *out)
{
    put_head(v, out);
    if (v->refused[0] != '\0') {
        cs_out_puts(out, "not compared: the reference runtime refuses the model\n");
        put_text(out, "    ", v->refused);
        return;
    }
    cs_line l = {0};
    cs_line_cell(&l, CS_SPAN("output"), 31);
    cs_line_cell(&l, CS_SPAN("type"), 25);
    cs_line_printf(&l, "parts");
    cs_line_put(&l, out);
    for (size_t i = 0; i < v->plan->outputs.len; i++)
        put_result(v, i, out);
    cs_out_puts(out, "\n");
    put_place(v, out);
    put_total(v, out);
}

/* ---- JSON ---- */

static void json_float(cs_json *j, const char *key, double x)
{
    cs_json_key(j, key);
    if (isfinite(x))
        cs_json_f64(j, x);
    else
        cs_json_null(j);
}

static void json_difference(cs_json *j, const cs_difference *d)
{
    if (d->place[0] != '\0') cs_json_put_text(j, "place", d->place);
    if (d->why[0] != '\0') cs_json_put_text(j, "why", d->why);
    if (!d->numbers) return;
    cs_json_put_int(j, "elements", (int64_t)d->of);
    cs_json_put_int(j, "differ", (int64_t)d->count);
    cs_json_put_int(j, "index", (int64_t)d->index);
    cs_json_put_text(j, "whole", d->whole);
    cs_json_put_text(j, "parts", d->parts);
    json_float(j, "max_abs", d->max_abs);
    json_float(j, "max_rel", d->max_rel);
    cs_json_put_int(j, "nan_whole", (int64_t)d->nan_whole);
    cs_json_put_int(j, "nan_parts", (int64_t)d->nan_parts);
}

static void json_inputs(const cs_verify *v, cs_json *j)
{
    cs_json_key(j, "inputs");
    cs_json_array(j);
    for (size_t i = 0; i < v->inputs.feeds.len; i++) {
        const cs_feed *f = &v->inputs.feeds.at[i];
        cs_json_object_line(j);
        cs_json_put_text(j, "name", f->name);
        cs_json_put_text(j, "type", f->shape);
        cs_json_put_text(j, f->path != NULL ? "file" : "range", f->source);
        cs_json_end(j);
    }
    cs_json_end(j);
}

static void json_outputs(const cs_verify *v, cs_json *j)
{
    cs_json_key(j, "outputs");
    cs_json_array(j);
    for (size_t i = 0; v->refused[0] == '\0' && i < v->plan->outputs.len; i++) {
        const cs_result *r = &v->results[i];
        cs_json_object_line(j);
        cs_json_put_string(j, "name", plan_name(v, v->plan->outputs.at[i].name));
        cs_json_put_text(j, "type", r->type);
        cs_json_put_text(j, "result", verdict_name(r->worst.verdict));
        json_float(j, "tolerance", cs_verify_tolerance(r->worst.marks));
        if (r->worst.verdict > CS_RANDOM) cs_json_put_int(j, "seed", (int64_t)r->seed);
        json_difference(j, &r->worst);
        cs_json_end(j);
    }
    cs_json_end(j);
}

static void json_first(const cs_verify *v, cs_json *j)
{
    cs_json_key(j, "first_difference");
    if (!v->located) {
        cs_json_null(j);
        return;
    }
    cs_json_object_line(j);
    cs_json_put_int(j, "part", v->bad_part);
    cs_json_put_string(j, "file", part_file(v));
    cs_json_put_text(j, "value", v->bad_value);
    json_difference(j, &v->bad);
    cs_json_end(j);
}

static void put_json(const cs_verify *v, cs_out *out)
{
    cs_json j;
    char path[PATH_MAX];
    cs_json_init(&j, out);
    cs_json_object(&j);
    cs_json_put_text(&j, "model", model_path(v, path));
    cs_json_put_int(&j, "parts", (int64_t)v->plan->parts.len);
    cs_json_put_int(&j, "parts_without_outputs", (int64_t)dead_parts(v));
    cs_json_put_text(&j, "onnxruntime", cs_ort_version(v->ort));
    cs_json_put_text(&j, "library", cs_ort_path(v->ort));
    cs_json_put_int(&j, "seed", (int64_t)v->opts->seed);
    cs_json_put_int(&j, "runs", (int64_t)v->n_runs);
    json_inputs(v, &j);
    if (v->refused[0] != '\0') cs_json_put_text(&j, "refused", v->refused);
    json_outputs(v, &j);
    json_first(v, &j);
    if (v->not_located[0] != '\0') cs_json_put_text(&j, "not_located", v->not_located);
    const bool ran = v->refused[0] == '\0';
    const size_t equal = ran ? count(v, CS_EQUAL) : 0, close = ran ? count(v, CS_CLOSE) : 0;
    const size_t different = ran ? count(v, CS_DIFFERENT) : 0;
    cs_json_put_int(&j, "equal", (int64_t)equal);
    cs_json_put_int(&j, "close", (int64_t)close);
    cs_json_put_int(&j, "different", (int64_t)different);
    cs_json_put_int(&j, "not_compared",
                    (int64_t)(v->plan->outputs.len - equal - close - different));
    cs_json_end(&j);
}

cutset_status cs_verify_report(const cs_verify *v, cutset_write_fn write, void *payload,
                               cutset_error *err)
{
    cs_out out;
    if (write == NULL) return CUTSET_OK;
    const cutset_status status = cs_out_call(&out, write, payload, err);
    if (status) return status;
    if (v->opts->json)
        put_json(v, &out);
    else
        put_table(v, &out);
    return cs_out_done(&out, NULL, err);
}
