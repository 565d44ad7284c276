/* Which part is the first that differs?
 *
 * The whole model is run once more with every boundary value as an output, and the chain is run
 * once more against it. Protobuf merges: a second `graph` field behind the file's own bytes, with
 * nothing but `output` entries, adds these outputs to the graph. So the variant is the file and a
 * few bytes; it is made in memory, and external weights are still found in the model's folder.
 *
 * An output more can keep ONNX Runtime from leaving out a rounding between f16 nodes, which is why
 * outputs themselves are compared with the unchanged model.
 */
#include <stdio.h>
#include <string.h>

#include "api/verify.h"

#define PROTO_MAX ((size_t)INT32_MAX) /* protobuf's own limit of a message */

/* ---- the variant ---- */

static size_t put_varint(unsigned char *out, uint64_t x)
{
    size_t n = 0;
    while (x >= 0x80) {
        out[n++] = (unsigned char)(x | 0x80);
        x >>= 7;
    }
    out[n++] = (unsigned char)x;
    return n;
}

typedef CS_VEC(unsigned char) bytes;

static bool put(bytes *out, const void *at, size_t len)
{
    if (!cs_vec_room(out, len)) return false;
    memcpy(out->at + out->len, at, len);
    out->len += len;
    return true;
}

/* A field of wire type 2: its number, the length, the bytes. */
static bool put_field(bytes *out, unsigned number, const void *at, size_t len)
{
    unsigned char head[20];
    size_t n = put_varint(head, number << 3 | 2);
    n += put_varint(head + n, len);
    return put(out, head, n) && (len == 0 || put(out, at, len));
}

/* GraphProto.output = 12, ValueInfoProto.name = 1 */
static bool put_output(bytes *graph, bytes *scratch, cs_span name)
{
    scratch->len = 0;
    return put_field(scratch, 1, name.at, name.len) &&
           put_field(graph, 12, scratch->at, scratch->len);
}

static bool is_output(const cutset_plan *p, cs_str name)
{
    for (size_t i = 0; i < p->outputs.len; i++)
        if (p->outputs.at[i].name == name) return true;
    return false;
}

static cutset_status make_variant(const cs_verify *v, bytes *out, cutset_error *err)
{
    const cutset_plan *p = v->plan;
    const cs_file *file = &v->model->onnx->file;
    bytes graph = {0}, scratch = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < p->boundaries.len; i++) {
        const cs_str name = p->values.at[p->boundaries.at[i].value];
        if (!is_output(p, name)) ok = put_output(&graph, &scratch, cs_strtab_get(&p->names, name));
    }
    cutset_status status = ok ? CUTSET_OK : cs_fail_memory(err);
    if (!status && file->len + graph.len + 20 > PROTO_MAX)
        status = cs_fail(err, CUTSET_BAD, "the model is too large to be run with more outputs");
    if (!status && (!cs_vec_room(out, file->len + graph.len + 20) ||
                    !put(out, file->at, file->len) || !put_field(out, 7, graph.at, graph.len)))
        status = cs_fail_memory(err);
    cs_vec_fini(&graph);
    cs_vec_fini(&scratch);
    return status;
}

/* ---- the reference values ---- */

typedef struct reference {
    cs_session *session;
    OrtValue **values; /* by output of the session */
} reference;

static cutset_status run_variant(cs_verify *v, const cs_run *run, reference *ref, cutset_error *err)
{
    const size_t n = ref->session->n_inputs;
    const OrtValue **in = cs_zalloc(n + 1, sizeof *in);
    ref->values = cs_zalloc(ref->session->n_outputs + 1, sizeof *ref->values);
    cutset_status status = in != NULL && ref->values != NULL ? CUTSET_OK : cs_fail_memory(err);
    for (size_t i = 0; !status && i < n; i++)
        in[i] = cs_chain_value(v, run, cs_span_of(ref->session->inputs[i]));
    if (!status) status = cs_session_run(ref->session, in, ref->values, err);
    cs_free(in);
    return status;
}

static cutset_status open_variant(cs_verify *v, reference *ref, cutset_error *err)
{
    bytes model = {0};
    cutset_status status = make_variant(v, &model, err);
    if (!status)
        status = cs_session_open_memory(&ref->session, v->ort, model.at, model.len,
                                        v->model->onnx->folder, err);
    cs_vec_fini(&model);
    return status;
}

static void close_reference(const cs_verify *v, reference *ref)
{
    for (size_t i = 0; ref->values != NULL && i < ref->session->n_outputs; i++)
        cs_ort_value_free(v->ort, ref->values[i]);
    cs_free(ref->values);
    cs_session_close(ref->session);
}

/* ---- the chain against it ---- */

static cutset_status compare_made(cs_verify *v, void *payload, const cs_part *part, cs_run *run,
                                  cs_span name, const OrtValue *value, bool *stop,
                                  cutset_error *err)
{
    const reference *ref = payload;
    size_t at = 0;
    (void)run;
    while (at < ref->session->n_outputs && !cs_span_is(name, ref->session->outputs[at]))
        at++;
    if (at == ref->session->n_outputs || ref->values[at] == NULL) return CUTSET_OK;
    cs_difference d;
    const cutset_status status = cs_verify_compare_named(v, name, ref->values[at], value, &d, err);
    if (status || d.verdict != CS_DIFFERENT) return status;
    v->bad_part = (int32_t)part->id;
    v->located = true;
    snprintf(v->bad_value, sizeof v->bad_value, "%.*s", CS_FMT(name));
    v->bad = d;
    *stop = true;
    return CUTSET_OK;
}

cutset_status cs_verify_locate(cs_verify *v, size_t r, cutset_error *err)
{
    cutset_error words = {0};
    reference ref = {0};
    cutset_status status = open_variant(v, &ref, &words);
    if (!status) status = run_variant(v, &v->runs[r], &ref, &words);
    if (!status) {
        cs_chain_drop(v, &v->runs[r]);
        status = cs_chain_run(v, r, r + 1, compare_made, &ref, &words);
        if (!status && !v->located)
            status = cs_fail(&words, CUTSET_BAD, "run again, all boundary values agree");
    }
    close_reference(v, &ref);
    if (status != CUTSET_BAD) return status ? cs_fail(err, status, "%s", words.message) : status;
    snprintf(v->not_located, sizeof v->not_located, "%.290s", words.message);
    return CUTSET_OK;
}
