/* ONNX Runtime: the library, its environment, sessions and runs.
 *
 * How to get the same bits from the whole and from its parts: optimisations off (no fusion that
 * depends on what surrounds a node), one thread (no order of summation that depends on timing), no
 * arena (freed values go back to the system, so the chain of parts needs what is alive and no
 * more). With one thread the runtime starts no threads of its own.
 */
#include "engine/ort.h"

#include <string.h>

#include "base/file.h"
#include "engine/ort_api.h"

/* Message and log level of the runtime's own words do not concern the user: errors come back. */
static void ignore_log(void *param, int severity, const char *category, const char *log_id,
                       const char *place, const char *message)
{
    (void)param;
    (void)severity;
    (void)category;
    (void)log_id;
    (void)place;
    (void)message;
}

cutset_status cs_ort_check(const cs_ort *ort, OrtStatus *status, cutset_error *err)
{
    if (status == NULL) return CUTSET_OK;
    char words[900];
    size_t n = 0;
    const char *from = ort->api.GetErrorMessage(status);
    /* Line breaks and runs of blanks become one blank. */
    for (; from != NULL && *from != '\0' && n + 1 < sizeof words; from++) {
        const bool blank = *from == '\n' || *from == '\r' || *from == '\t' || *from == ' ';
        if (!blank)
            words[n++] = *from;
        else if (n > 0 && words[n - 1] != ' ')
            words[n++] = ' ';
    }
    while (n > 0 && words[n - 1] == ' ')
        n--;
    words[n] = '\0';
    ort->api.ReleaseStatus(status);
    return cs_fail(err, CUTSET_BAD, "%s", n > 0 ? words : "an error without words");
}

/* ---- library ---- */

static bool fill_api(cs_ort_api *api, const OrtApiBase *base)
{
    const cs_ort_function *table = base->GetApi(CS_ORT_API_VERSION);
    if (table == NULL) return false;
#define CS_ORT_TAKE(slot, result, name, arguments) api->name = (result(*) arguments)table[slot];
    CS_ORT_CALLS(CS_ORT_TAKE)
#undef CS_ORT_TAKE
    return true;
}

static cutset_status set_options(cs_ort *ort, cutset_error *err)
{
    const cs_ort_api *api = &ort->api;
    cutset_status s = cs_ort_check(ort, api->CreateSessionOptions(&ort->options), err);
    OrtSessionOptions *o = ort->options;
    if (!s) s = cs_ort_check(ort, api->SetSessionGraphOptimizationLevel(o, ORT_DISABLE_ALL), err);
    if (!s) s = cs_ort_check(ort, api->SetIntraOpNumThreads(o, 1), err);
    if (!s) s = cs_ort_check(ort, api->SetInterOpNumThreads(o, 1), err);
    if (!s) s = cs_ort_check(ort, api->DisableCpuMemArena(o), err);
    if (!s) s = cs_ort_check(ort, api->SetSessionLogSeverityLevel(o, ORT_LOGGING_LEVEL_FATAL), err);
    return s;
}

static cutset_status set_up(cs_ort *ort, const OrtApiBase *base, cutset_error *err)
{
    ort->version = cs_path_join("", base->GetVersionString());
    if (ort->version == NULL) return cs_fail_memory(err);
    if (!fill_api(&ort->api, base))
        return cs_fail(err, CUTSET_SYSTEM,
                       "%s: ONNX Runtime %s is too old: version 1.10 or later is needed", ort->path,
                       ort->version);
    cutset_status s =
        cs_ort_check(ort,
                     ort->api.CreateEnvWithCustomLogger(ignore_log, NULL, ORT_LOGGING_LEVEL_FATAL,
                                                        "cutset", &ort->env),
                     err);
    if (!s) s = set_options(ort, err);
    if (!s) s = cs_ort_check(ort, ort->api.GetAllocatorWithDefaultOptions(&ort->allocator), err);
    return s == CUTSET_BAD ? cs_fail(err, CUTSET_SYSTEM, "%s: ONNX Runtime does not start: %s",
                                     ort->path, err != NULL ? err->message : "")
                           : s;
}

cutset_status cs_ort_open(cs_ort **out, const char *path, cutset_error *err)
{
    cs_ort *ort = cs_zalloc(1, sizeof *ort);
    if (ort == NULL) return cs_fail_memory(err);
    const OrtApiBase *base = NULL;
    cutset_status status = cs_ort_load(&base, &ort->path, path, err);
    if (!status) status = set_up(ort, base, err);
    if (status) {
        cs_ort_close(ort);
        return status;
    }
    *out = ort;
    return CUTSET_OK;
}

void cs_ort_close(cs_ort *ort)
{
    if (ort == NULL) return;
    if (ort->options != NULL) ort->api.ReleaseSessionOptions(ort->options);
    if (ort->env != NULL) ort->api.ReleaseEnv(ort->env);
    cs_free(ort->version);
    cs_free(ort->path);
    cs_free(ort);
}

const char *cs_ort_version(const cs_ort *ort) { return ort->version; }
const char *cs_ort_path(const cs_ort *ort) { return ort->path; }

/* ---- sessions ---- */

typedef OrtStatus *(*name_call)(const OrtSession *, size_t, OrtAllocator *, char **);

/* Copies the names, so that they are freed like everything else of ours. */
static cutset_status read_names(cs_session *s, name_call call, size_t n, char ***names,
                                cutset_error *err)
{
    const cs_ort *ort = s->ort;
    *names = cs_zalloc(n + 1, sizeof **names);
    if (*names == NULL) return cs_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        char *name = NULL;
        const cutset_status status =
            cs_ort_check(ort, call(s->handle, i, ort->allocator, &name), err);
        if (status) return status;
        (*names)[i] = cs_path_join("", name);
        OrtStatus *freed = ort->api.AllocatorFree(ort->allocator, name);
        if (freed != NULL) ort->api.ReleaseStatus(freed);
        if ((*names)[i] == NULL) return cs_fail_memory(err);
    }
    return CUTSET_OK;
}

static cutset_status read_interface(cs_session *s, cutset_error *err)
{
    const cs_ort_api *api = &s->ort->api;
    size_t n_inputs = 0, n_outputs = 0;
    cutset_status status =
        cs_ort_check(s->ort, api->SessionGetInputCount(s->handle, &n_inputs), err);
    if (!status)
        status = cs_ort_check(s->ort, api->SessionGetOutputCount(s->handle, &n_outputs), err);
    if (status) return status;
    status = read_names(s, api->SessionGetInputName, n_inputs, &s->inputs, err);
    s->n_inputs = s->inputs != NULL ? n_inputs : 0;
    if (status) return status;
    status = read_names(s, api->SessionGetOutputName, n_outputs, &s->outputs, err);
    s->n_outputs = s->outputs != NULL ? n_outputs : 0;
    return status;
}

/* From a path, or from memory when `path` is NULL. */
static cutset_status open_session(cs_session **out, cs_ort *ort, const char *path,
                                  const void *bytes, size_t len, const OrtSessionOptions *options,
                                  cutset_error *err)
{
    cs_session *s = cs_zalloc(1, sizeof *s);
    if (s == NULL) return cs_fail_memory(err);
    s->ort = ort;
    OrtSession *handle = NULL;
    OrtStatus *made = path != NULL
                          ? ort->api.CreateSession(ort->env, path, options, &handle)
                          : ort->api.CreateSessionFromArray(ort->env, bytes, len, options, &handle);
    s->handle = handle;
    cutset_status status = cs_ort_check(ort, made, err);
    if (!status) status = read_interface(s, err);
    if (status) {
        cs_session_close(s);
        return status;
    }
    *out = s;
    return CUTSET_OK;
}

cutset_status cs_session_open(cs_session **out, cs_ort *ort, const char *path, cutset_error *err)
{
    return open_session(out, ort, path, NULL, 0, ort->options, err);
}

cutset_status cs_session_open_memory(cs_session **out, cs_ort *ort, const void *bytes, size_t len,
                                     const char *folder, cutset_error *err)
{
    const cs_ort_api *api = &ort->api;
    OrtSessionOptions *options = NULL;
    cutset_status status = cs_ort_check(ort, api->CloneSessionOptions(ort->options, &options), err);
    if (!status && folder != NULL)
        status = cs_ort_check(
            ort,
            api->AddSessionConfigEntry(
                options, "session.model_external_initializers_file_folder_path", folder),
            err);
    if (!status) status = open_session(out, ort, NULL, bytes, len, options, err);
    if (options != NULL) api->ReleaseSessionOptions(options);
    return status;
}

void cs_session_close(cs_session *s)
{
    if (s == NULL) return;
    for (size_t i = 0; i < s->n_inputs; i++)
        cs_free(s->inputs[i]);
    for (size_t i = 0; i < s->n_outputs; i++)
        cs_free(s->outputs[i]);
    cs_free(s->inputs);
    cs_free(s->outputs);
    if (s->handle != NULL) s->ort->api.ReleaseSession(s->handle);
    cs_free(s);
}

cutset_status cs_session_run(cs_session *s, const OrtValue *const *inputs, OrtValue **outputs,
                             cutset_error *err)
{
    for (size_t i = 0; i < s->n_outputs; i++)
        outputs[i] = NULL;
    OrtStatus *ran =
        s->ort->api.Run(s->handle, NULL, (const char *const *)s->inputs, inputs, s->n_inputs,
                        (const char *const *)s->outputs, s->n_outputs, outputs);
    const cutset_status status = cs_ort_check(s->ort, ran, err);
    for (size_t i = 0; status && i < s->n_outputs; i++) {
        cs_ort_value_free(s->ort, outputs[i]);
        outputs[i] = NULL;
    }
    return status;
}
