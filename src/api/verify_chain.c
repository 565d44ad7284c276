/* The chain of parts: each is loaded once, in order, and run for every run that is under way.
 *
 * Values go from part to part by name. A run's store holds what parts made, by name; the model's
 * inputs are kept apart, since finding the first difference runs the chain again. A value is freed
 * as soon as no later part reads it, unless it is an output of the model. One part is in memory at
 * a time, with the live values of all runs.
 */
#include <string.h>

#include "api/verify.h"

char *cs_verify_part_path(const cs_verify *v, const cs_part *part)
{
    return cs_path_join(v->dir, cs_strtab_get(&v->plan->names, part->file).at);
}

/* ---- names ---- */

static cs_span value_name(const cs_verify *v, uint32_t ref)
{
    return cs_strtab_get(&v->plan->names, v->plan->values.at[v->plan->refs.at[ref]]);
}

/* Interns every name that the chain passes on; ids are indexes into the stores. */
static bool add_names(cs_verify *v)
{
    const cutset_plan *p = v->plan;
    bool ok = cs_strtab_init(&v->names);
    for (size_t i = 0; ok && i < v->inputs.feeds.len; i++)
        ok = cs_strtab_add(&v->names, cs_span_of(v->inputs.feeds.at[i].name), true) != CS_NONE;
    for (size_t i = 0; ok && i < p->values.len; i++)
        ok = cs_strtab_add(&v->names, cs_strtab_get(&p->names, p->values.at[i]), true) != CS_NONE;
    for (size_t i = 0; ok && i < p->outputs.len; i++)
        ok = cs_strtab_add(&v->names, cs_strtab_get(&p->names, p->outputs.at[i].name), true) !=
             CS_NONE;
    return ok;
}

cutset_status cs_chain_init(cs_verify *v, cutset_error *err)
{
    const cutset_plan *p = v->plan;
    if (!add_names(v)) return cs_fail_memory(err);
    const size_t n = v->names.text.len;
    v->last = cs_zalloc(n, sizeof *v->last);
    v->feed_of = cs_alloc(n, sizeof *v->feed_of);
    if (v->last == NULL || v->feed_of == NULL) return cs_fail_memory(err);
    memset(v->feed_of, 0xff, n * sizeof *v->feed_of); /* CS_NONE */
    for (size_t i = 0; i < v->inputs.feeds.len; i++)
        v->feed_of[cs_strtab_find(&v->names, cs_span_of(v->inputs.feeds.at[i].name))] = (uint32_t)i;
    for (size_t i = 0; i < p->parts.len; i++)
        for (uint32_t k = 0; !cs_part_is_dead(&p->parts.at[i]) && k < p->parts.at[i].n_input; k++)
            v->last[cs_strtab_find(&v->names, value_name(v, p->parts.at[i].input + k))] =
                (uint32_t)i;
    for (size_t i = 0; i < p->outputs.len; i++)
        v->last[cs_strtab_find(&v->names, cs_strtab_get(&p->names, p->outputs.at[i].name))] =
            CS_NONE;
    for (size_t r = 0; r < v->n_runs; r++) {
        v->runs[r].store = cs_zalloc(n, sizeof *v->runs[r].store);
        if (v->runs[r].store == NULL) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

const OrtValue *cs_chain_value(const cs_verify *v, const cs_run *run, cs_span name)
{
    const cs_str id = cs_strtab_find(&v->names, name);
    if (id == CS_NONE) return NULL;
    if (run->store[id] != NULL) return run->store[id];
    return v->feed_of[id] != CS_NONE ? run->inputs[v->feed_of[id]] : NULL;
}

void cs_chain_drop(cs_verify *v, cs_run *run)
{
    for (size_t i = 0; run->store != NULL && i < v->names.text.len; i++) {
        cs_ort_value_free(v->ort, run->store[i]);
        run->store[i] = NULL;
    }
}

/* ---- running ---- */

typedef struct step {
    cs_verify *v;
    size_t number; /* of the part */
    const cs_part *part;
    cs_span file; /* its name */
    cs_session *session;
    const OrtValue **in;
    OrtValue **out;
    cutset_error *err;
} step;

/* The runtime crashes on an optional that holds nothing as an input of a session. */
static cutset_status check_input(const step *s, const OrtValue *value, const char *name)
{
    cs_ort_kind kind;
    const cutset_status status = cs_ort_value_kind(s->v->ort, value, &kind, s->err);
    if (status || kind != CS_ORT_ABSENT) return status;
    return cs_fail(s->err, CUTSET_BAD,
                   "%.*s reads %.200s, here an optional without a value, which ONNX Runtime cannot "
                   "hand from session to session: keep its maker and its readers in one part with "
                   "--group",
                   CS_FMT(s->file), name);
}

static cutset_status gather(step *s, const cs_run *run)
{
    for (size_t i = 0; i < s->session->n_inputs; i++) {
        s->in[i] = cs_chain_value(s->v, run, cs_span_of(s->session->inputs[i]));
        if (s->in[i] == NULL)
            return cs_fail(s->err, CUTSET_NO,
                           "%.*s wants an input %.200s that no part before it makes: split the "
                           "model again",
                           CS_FMT(s->file), s->session->inputs[i]);
        const cutset_status status = check_input(s, s->in[i], s->session->inputs[i]);
        if (status) return status;
    }
    return CUTSET_OK;
}

/* Stores what the part made; values the plan does not know are dropped. */
static cutset_status keep(step *s, cs_run *run, cs_made_fn made, void *payload, bool *stop)
{
    cutset_status status = CUTSET_OK;
    for (size_t i = 0; i < s->session->n_outputs; i++) {
        const cs_span name = cs_span_of(s->session->outputs[i]);
        const cs_str id = cs_strtab_find(&s->v->names, name);
        if (!status && !*stop && id != CS_NONE && made != NULL)
            status = made(s->v, payload, s->part, run, name, s->out[i], stop, s->err);
        OrtValue **place = id != CS_NONE ? &run->store[id] : &s->out[i];
        cs_ort_value_free(s->v->ort, *place);
        *place = place == &s->out[i] ? NULL : s->out[i];
        s->out[i] = NULL;
    }
    return status;
}

/* Frees what this part was the last to read, and what it made that nobody reads. */
static void release(step *s, cs_run *run)
{
    const uint32_t refs[2][2] = {{s->part->input, s->part->n_input},
                                 {s->part->output, s->part->n_output}};
    for (int side = 0; side < 2; side++)
        for (uint32_t k = 0; k < refs[side][1]; k++) {
            const cs_str id = cs_strtab_find(&s->v->names, value_name(s->v, refs[side][0] + k));
            if (s->v->last[id] == CS_NONE || s->v->last[id] > s->number) continue;
            cs_ort_value_free(s->v->ort, run->store[id]);
            run->store[id] = NULL;
        }
}

static cutset_status run_once(step *s, cs_run *run, cs_made_fn made, void *payload, bool *stop)
{
    cutset_error words = {0};
    cutset_status status = gather(s, run);
    if (status) return status;
    status = cs_session_run(s->session, s->in, s->out, &words);
    if (status == CUTSET_BAD)
        return cs_fail(s->err, CUTSET_NO, "%.*s does not run, and the whole model does: %s",
                       CS_FMT(s->file), words.message);
    if (status) return cs_fail(s->err, status, "%s", words.message);
    status = keep(s, run, made, payload, stop);
    release(s, run);
    return status;
}

static cutset_status open_part(step *s)
{
    cutset_error words = {0};
    char *path = cs_verify_part_path(s->v, s->part);
    if (path == NULL) return cs_fail_memory(s->err);
    cutset_status status = cs_session_open(&s->session, s->v->ort, path, &words);
    cs_free(path);
    if (status == CUTSET_BAD)
        return cs_fail(s->err, CUTSET_NO, "%.*s does not load, and the whole model does: %s",
                       CS_FMT(s->file), words.message);
    if (status) return cs_fail(s->err, status, "%s", words.message);
    s->in = cs_zalloc(s->session->n_inputs + 1, sizeof *s->in);
    s->out = cs_zalloc(s->session->n_outputs + 1, sizeof *s->out);
    return s->in != NULL && s->out != NULL ? CUTSET_OK : cs_fail_memory(s->err);
}

static cutset_status run_part(cs_verify *v, size_t number, size_t first, size_t last,
                              cs_made_fn made, void *payload, bool *stop, cutset_error *err)
{
    step s = {.v = v, .number = number, .part = &v->plan->parts.at[number], .err = err};
    s.file = cs_strtab_get(&v->plan->names, s.part->file);
    cutset_status status = open_part(&s);
    for (size_t r = first; !status && !*stop && r < last; r++)
        status = run_once(&s, &v->runs[r], made, payload, stop);
    cs_free(s.in);
    cs_free(s.out);
    cs_session_close(s.session);
    return status;
}

cutset_status cs_chain_run(cs_verify *v, size_t first, size_t last, cs_made_fn made, void *payload,
                           cutset_error *err)
{
    const size_t n = v->plan->parts.len;
    bool stop = false;
    for (size_t i = 0; i < n && !stop; i++) {
        cutset_status status = cs_progress(&v->opts->progress, "run the parts", i, n, err);
        if (!status && !cs_part_is_dead(&v->plan->parts.at[i]))
            status = run_part(v, i, first, last, made, payload, &stop, err);
        if (status) return status;
    }
    return cs_progress(&v->opts->progress, "run the parts", n, n, err);
}
