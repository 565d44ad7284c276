/* verify: the whole model against the chain of its parts, on the same inputs.
 *
 * The steps are in cutset_verify below and in verify.h. Values that several runs need at once
 * (their inputs, the whole model's outputs) are kept; of what the parts make, only what is still
 * read.
 * The source model and its parts must not change meanwhile.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/verify.h"

void cutset_verify_opts_init(cutset_verify_opts *opts) { *opts = (cutset_verify_opts){.runs = 1}; }

/* ---- what is verified ---- */

static cutset_status open_plan(cs_verify *v, cutset_error *err)
{
    struct stat st;
    if (stat(v->dir, &st) == 0 && !S_ISDIR(st.st_mode))
        return cs_fail(err, CUTSET_SYSTEM, "%s is no folder: name the folder of a split", v->dir);
    cutset_status status = cs_plan_read_json(&v->plan, v->dir, err);
    if (!status)
        status = cutset_plan_open_model(&v->model, v->plan, NULL, 1, &v->opts->progress, err);
    if (!status && v->model->onnx == NULL)
        status = cs_fail(err, CUTSET_BAD,
                         "%s is in the text form, which has no weights to run: verify a split of "
                         "the ONNX model",
                         v->plan->model_path);
    if (!status) status = cs_plan_bind(v->plan, v->model->graph, v->model->hash, err);
    return status;
}

/* Every part is there, well formed, and its weights are: told before anything runs. */
static cutset_status check_parts(const cs_verify *v, cutset_error *err)
{
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; !status && i < v->plan->parts.len; i++) {
        char *path = cs_verify_part_path(v, &v->plan->parts.at[i]);
        if (path == NULL) return cs_fail_memory(err);
        cs_file file;
        cutset_error words = {0};
        cs_onnx *onnx = NULL;
        cs_graph *graph = NULL;
        const cs_onnx_opts opts = {false, NULL};
        status = cs_file_open(&file, path, err);
        if (!status) status = cs_onnx_open(&onnx, &graph, &file, path, v->dir, &opts, &words);
        if (words.message[0] != '\0') cs_fail(err, status, "%s: %s", path, words.message);
        if (!status) {
            cs_onnx_free(onnx);
            cs_graph_free(graph);
        }
        cs_free(path);
    }
    return status;
}

/* Was this option given when the plan was made? Then it holds already. */
static bool recorded(const cs_verify *v, const cs_strs *list, const char *option)
{
    for (size_t i = 0; i < list->len; i++)
        if (cs_span_is(cs_strtab_get(&v->plan->names, list->at[i]), option)) return true;
    return false;
}

/* --type, --shape and --dim of verify, on top of the plan's. */
static cutset_status declare(cs_verify *v, cutset_error *err)
{
    const cutset_verify_opts *o = v->opts;
    const char **list = cs_alloc(o->n_shapes + o->n_dims + 1, sizeof *list);
    if (list == NULL) return cs_fail_memory(err);
    cutset_open_opts extra;
    cutset_open_opts_init(&extra);
    extra.types = o->types, extra.n_types = o->n_types;
    extra.shapes = list;
    for (size_t i = 0; i < o->n_shapes; i++)
        if (!recorded(v, &v->plan->options.shapes, o->shapes[i]))
            list[extra.n_shapes++] = o->shapes[i];
    extra.dims = list + extra.n_shapes;
    for (size_t i = 0; i < o->n_dims; i++)
        if (!recorded(v, &v->plan->options.dims, o->dims[i]))
            list[extra.n_shapes + extra.n_dims++] = o->dims[i];
    const cutset_status status =
        extra.n_types + extra.n_shapes + extra.n_dims > 0 ? cs_declare(v->model->graph, &extra, err) : CUTSET_OK;
    cs_free(list);
    return status;
}

/* ---- the whole model ---- */

typedef struct whole {
    cs_session *session;
    const OrtValue **in;
    OrtValue **out;
} whole;

static const OrtValue *input_value(const cs_verify *v, const cs_run *run, const char *name)
{
    for (size_t i = 0; i < v->inputs.feeds.len; i++)
        if (strcmp(v->inputs.feeds.at[i].name, name) == 0) return run->inputs[i];
    return NULL;
}

static cutset_status run_whole(cs_verify *v, whole *w, cs_run *run, cutset_error *err)
{
    for (size_t i = 0; i < w->session->n_inputs; i++) {
        w->in[i] = input_value(v, run, w->session->inputs[i]);
        if (w->in[i] == NULL)
            return cs_fail(err, CUTSET_BAD,
                           "it wants an input %.200s, which the model does not list",
                           w->session->inputs[i]);
    }
    return cs_session_run(w->session, w->in, w->out, err);
}

/* Makes inputs in one attempt after the other until the model takes them. */
static cutset_status try_run(cs_verify *v, whole *w, cs_run *run, cutset_error *err)
{
    cutset_error first = {0};
    size_t tried = 0;
    for (size_t k = 0; k < cs_n_attempts; k++) {
        cutset_error words = {0};
        if (!cs_inputs_differ(&v->inputs, k)) continue;
        cutset_status status =
            cs_inputs_make(&v->inputs, v->ort, run->seed, k, run->inputs, &words);
        if (!status) status = run_whole(v, w, run, &words);
        if (!status) run->attempt = k;
        if (status != CUTSET_BAD)
            return status ? cs_fail(err, status, "%s", words.message) : CUTSET_OK;
        if (tried++ == 0) first = words;
        for (size_t i = 0; i < v->inputs.feeds.len; i++) {
            cs_ort_value_free(v->ort, run->inputs[i]);
            run->inputs[i] = NULL;
        }
    }
    return cs_fail(err, CUTSET_BAD, "%s%s", first.message,
                   tried > 1 ? " (other inputs were tried too; give --shape, --dim, --range or "
                               "--input)"
                             : "");
}

/* Moves the session's outputs to where the plan has them. */
static void keep_outputs(cs_verify *v, whole *w, cs_run *run)
{
    const cutset_plan *p = v->plan;
    for (size_t i = 0; i < p->outputs.len; i++) {
        const cs_span name = cs_strtab_get(&p->names, p->outputs.at[i].name);
        for (size_t k = 0; k < w->session->n_outputs; k++) {
            if (w->out[k] == NULL || !cs_span_is(name, w->session->outputs[k])) continue;
            run->whole[i] = w->out[k];
            w->out[k] = NULL;
            break;
        }
    }
    for (size_t k = 0; k < w->session->n_outputs; k++) {
        cs_ort_value_free(v->ort, w->out[k]);
        w->out[k] = NULL;
    }
}

static cutset_status run_all(cs_verify *v, whole *w, cutset_error *err)
{
    w->in = cs_zalloc(w->session->n_inputs + 1, sizeof *w->in);
    w->out = cs_zalloc(w->session->n_outputs + 1, sizeof *w->out);
    cutset_status status = w->in != NULL && w->out != NULL ? CUTSET_OK : cs_fail_memory(err);
    for (size_t r = 0; !status && r < v->n_runs; r++) {
        status = cs_progress(&v->opts->progress, "run the model", r, v->n_runs, err);
        if (!status) status = try_run(v, w, &v->runs[r], err);
        if (!status) keep_outputs(v, w, &v->runs[r]);
    }
    return status;
}

/* What the runtime refuses is noted in v->refused, for the report: CUTSET_BAD. */
static cutset_status run_model(cs_verify *v, cutset_error *err)
{
    whole w = {0};
    cutset_error words = {0};
    cutset_status status = cs_session_open(&w.session, v->ort, v->plan->model_path, &words);
    if (!status) status = run_all(v, &w, &words);
    cs_free(w.in);
    cs_free(w.out);
    cs_session_close(w.session);
    if (status == CUTSET_BAD) {
        snprintf(v->refused, sizeof v->refused, "%.890s", words.message);
        return cs_fail(err, status, "the reference runtime refuses the model: %s", words.message);
    }
    return status ? cs_fail(err, status, "%s", words.message) : CUTSET_OK;
}

/* ---- outputs ---- */

static cutset_status compare_output(cs_verify *v, size_t i, const cs_run *run, cs_difference *d,
                                    cutset_error *err)
{
    const cs_plan_value *output = &v->plan->outputs.at[i];
    const cs_span name = cs_strtab_get(&v->plan->names, output->name);
    const OrtValue *parts = cs_chain_value(v, run, name);
    *d = (cs_difference){0};
    if (parts == NULL && output->from < 0) { /* a weight, or an input's default */
        d->verdict = CS_PASSED;
        return CUTSET_OK;
    }
    if (parts == NULL)
        return cs_fail(err, CUTSET_NO, "no part makes the output %.*s: split the model again",
                       CS_FMT(name));
    if (run->whole[i] == NULL)
        return cs_fail(err, CUTSET_BAD, "the whole model gave no output %.*s", CS_FMT(name));
    return cs_verify_compare_named(v, name, run->whole[i], parts, d, err);
}

static cutset_status compare_outputs(cs_verify *v, cutset_error *err)
{
    for (size_t r = 0; r < v->n_runs; r++)
        for (size_t i = 0; i < v->plan->outputs.len; i++) {
            cs_result *result = &v->results[i];
            cs_run *run = &v->runs[r];
            cs_difference d;
            cutset_status status = compare_output(v, i, run, &d, err);
            if (!status && r == 0 && run->whole[i] != NULL)
                status =
                    cs_verify_spell(v->ort, run->whole[i], result->type, sizeof result->type, err);
            if (status) return status;
            const bool worse =
                d.verdict > result->worst.verdict ||
                (d.verdict == result->worst.verdict && d.max_abs > result->worst.max_abs);
            if (r > 0 && !worse) continue;
            result->worst = d;
            result->seed = run->seed;
            result->run = r;
        }
    return CUTSET_OK;
}

/* The first output that differs; CUTSET_OK if none does. */
static cutset_status judge(cs_verify *v, cutset_error *err)
{
    size_t i = 0;
    while (i < v->plan->outputs.len && v->results[i].worst.verdict != CS_DIFFERENT)
        i++;
    if (i == v->plan->outputs.len) return CUTSET_OK;
    const cutset_status status = cs_verify_locate(v, v->results[i].run, err);
    if (status) return status;
    char what[400];
    const cs_span name = cs_strtab_get(&v->plan->names, v->plan->outputs.at[i].name);
    if (v->located) {
        const cs_span file = cs_strtab_get(&v->plan->names, v->plan->parts.at[v->bad_part].file);
        cs_verify_tell(&v->bad, what, sizeof what);
        return cs_fail(err, CUTSET_NO, "output %.*s differs first in %.*s (value %s): %s",
                       CS_FMT(name), CS_FMT(file), v->bad_value, what);
    }
    cs_verify_tell(&v->results[i].worst, what, sizeof what);
    return cs_fail(err, CUTSET_NO, "output %.*s differs: %s; in which part first is not known: %s",
                   CS_FMT(name), what, v->not_located);
}

/* ---- all ---- */

static cutset_status make_room(cs_verify *v, cutset_error *err)
{
    v->n_runs = (size_t)v->opts->runs;
    v->runs = cs_zalloc(v->n_runs, sizeof *v->runs);
    v->results = cs_zalloc(v->plan->outputs.len + 1, sizeof *v->results);
    if (v->runs == NULL || v->results == NULL) return cs_fail_memory(err);
    for (size_t r = 0; r < v->n_runs; r++) {
        cs_run *run = &v->runs[r];
        run->seed = v->opts->seed + r;
        run->inputs = cs_zalloc(v->inputs.feeds.len + 1, sizeof *run->inputs);
        run->whole = cs_zalloc(v->plan->outputs.len + 1, sizeof *run->whole);
        if (run->inputs == NULL || run->whole == NULL) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

static void free_run(cs_verify *v, cs_run *run)
{
    cs_chain_drop(v, run);
    for (size_t i = 0; run->inputs != NULL && i < v->inputs.feeds.len; i++)
        cs_ort_value_free(v->ort, run->inputs[i]);
    for (size_t i = 0; run->whole != NULL && i < v->plan->outputs.len; i++)
        cs_ort_value_free(v->ort, run->whole[i]);
    cs_free(run->inputs);
    cs_free(run->whole);
    cs_free(run->store);
}

static void fini(cs_verify *v)
{
    for (size_t r = 0; v->runs != NULL && r < v->n_runs; r++)
        free_run(v, &v->runs[r]);
    cs_free(v->runs);
    cs_free(v->results);
    cs_free(v->last);
    cs_free(v->feed_of);
    cs_free(v->marks);
    if (v->names.slot != NULL) cs_strtab_fini(&v->names);
    cs_inputs_fini(&v->inputs);
    cs_ort_close(v->ort);
    cutset_model_free(v->model);
    cs_plan_free(v->plan);
}

/* All that must be right before anything runs. */
static cutset_status prepare(cs_verify *v, cutset_error *err)
{
    cutset_status status = open_plan(v, err);
    if (!status) status = declare(v, err);
    if (!status) status = cs_inputs_init(&v->inputs, v->model->graph, v->opts, err);
    if (!status) status = check_parts(v, err);
    if (!status) status = make_room(v, err);
    if (!status) status = cs_verify_mark(v, err);
    if (!status) status = cs_ort_open(&v->ort, v->opts->onnxruntime, err);
    return status;
}

cutset_status cutset_verify(const char *dir, const cutset_verify_opts *opts, cutset_write_fn write,
                            void *payload, cutset_error *err)
{
    cutset_verify_opts otherwise;
    cutset_verify_opts_init(&otherwise);
    cs_verify v = {.opts = opts != NULL ? opts : &otherwise, .dir = dir, .bad_part = -1};
    if (v.opts->runs < 1)
        return cs_fail(err, CUTSET_USAGE, "%d runs: give one or more", v.opts->runs);
    cutset_status status = prepare(&v, err);
    if (!status) {
        status = run_model(&v, err);
        if (!status) status = cs_chain_init(&v, err);
        if (!status) status = cs_chain_run(&v, 0, v.n_runs, NULL, NULL, err);
        if (!status) status = compare_outputs(&v, err);
        const bool compared = !status;
        if (!status) status = judge(&v, err);
        if ((compared && (status == CUTSET_OK || status == CUTSET_NO)) || v.refused[0] != '\0') {
            const cutset_status written = cs_verify_report(&v, write, payload, status ? NULL : err);
            if (!status) status = written;
        }
    }
    fini(&v);
    return status;
}
