/* ONNX Runtime as the reference: sessions, runs, and values of any kind.
 *
 * The library is loaded at run time, so cutset builds and plans without it. Sessions run with all
 * optimisations off on one thread: the same kernels in the same order whenever a node is run, be it
 * in the whole model or in a part. Nothing is printed: the runtime's log goes nowhere, its errors
 * come back as messages (CUTSET_BAD, its words on one line).
 *
 * A value is owned by whoever got it and freed by cs_ort_value_free. Its bytes belong to the
 * runtime and live as long as any value that shares them, also after its session is closed.
 * Not for several threads at once.
 */
#ifndef CS_ENGINE_ORT_H
#define CS_ENGINE_ORT_H

#include "base/error.h"
#include "graph/type.h"

typedef struct cs_ort cs_ort;
typedef struct OrtValue OrtValue; /* the runtime's; absent optionals are values too */

/* Loads the library: `path` if not NULL, else $CUTSET_ONNXRUNTIME, else the first found of: the
 * Python environment that the command is installed in, those named .venv from its folder upwards and
 * from the current folder upwards, $VIRTUAL_ENV, the environment of python3, the system's libraries. CUTSET_SYSTEM: none loads. */
cutset_status cs_ort_open(cs_ort **out, const char *path, cutset_error *err);
void cs_ort_close(cs_ort *ort); /* NULL is taken; after all sessions and values */
const char *cs_ort_version(const cs_ort *ort);
const char *cs_ort_path(const cs_ort *ort); /* of the library */

/* ---- sessions ---- */
typedef struct cs_session {
    cs_ort *ort;
    void *handle;
    size_t n_inputs, n_outputs;
    char **inputs, **outputs; /* names; inputs without those that have a default */
} cs_session;

cutset_status cs_session_open(cs_session **out, cs_ort *ort, const char *path, cutset_error *err);
/* From memory, which is needed until this returns; `folder` is what external weights are relative
 * to, or NULL (needs a runtime that knows the option: 1.20 or later). */
cutset_status cs_session_open_memory(cs_session **out, cs_ort *ort, const void *bytes, size_t len,
                                     const char *folder, cutset_error *err);
void cs_session_close(cs_session *session);

/* Runs once: inputs and outputs by position; outputs are set to new values, or all to NULL on
 * failure. */
cutset_status cs_session_run(cs_session *session, const OrtValue *const *inputs, OrtValue **outputs,
                             cutset_error *err);

/* ---- values ---- */
typedef enum cs_ort_kind {
    CS_ORT_ABSENT, /* an optional that holds nothing */
    CS_ORT_TENSOR,
    CS_ORT_SEQUENCE,
    CS_ORT_MAP,  /* has two children: a tensor of keys, a tensor of values */
    CS_ORT_OTHER /* sparse tensors, opaque types */
} cs_ort_kind;
const char *cs_ort_kind_name(cs_ort_kind kind);

typedef struct cs_ort_tensor {
    cs_elem elem;
    size_t rank;
    int64_t *dims; /* heap */
    size_t count;  /* elements */
    size_t bytes;  /* 0 for strings */
    const void *data;
    cs_span *strings; /* heap, or NULL: not a tensor of strings */
    char *text;       /* heap: the bytes behind strings */
} cs_ort_tensor;

cutset_status cs_ort_value_kind(const cs_ort *ort, const OrtValue *value, cs_ort_kind *out,
                                cutset_error *err);
/* Of a tensor. Free with cs_ort_tensor_fini; data lives as long as the value. */
cutset_status cs_ort_tensor_read(const cs_ort *ort, const OrtValue *value, cs_ort_tensor *out,
                                 cutset_error *err);
void cs_ort_tensor_fini(cs_ort_tensor *t);
/* Of a sequence or a map. */
cutset_status cs_ort_value_count(const cs_ort *ort, const OrtValue *value, size_t *out,
                                 cutset_error *err);
cutset_status cs_ort_value_child(const cs_ort *ort, const OrtValue *value, size_t i, OrtValue **out,
                                 cutset_error *err);

/* A new tensor; *data is its memory, `bytes` long, to be filled. Not for strings.
 * CUTSET_BAD: a shape or an element type that cannot be. */
cutset_status cs_ort_tensor_new(OrtValue **out, void **data, size_t *bytes, const cs_ort *ort,
                                cs_elem elem, size_t rank, const int64_t *dims, cutset_error *err);
cutset_status cs_ort_strings_new(OrtValue **out, const cs_ort *ort, size_t rank,
                                 const int64_t *dims, const char *const *strings, size_t count,
                                 cutset_error *err);
/* A sequence of `n` values, or a map of a tensor of keys and one of values (n = 2). The children
 * stay the caller's. */
cutset_status cs_ort_list_new(OrtValue **out, const cs_ort *ort, cs_ort_kind kind,
                              OrtValue *const *children, size_t n, cutset_error *err);
void cs_ort_value_free(const cs_ort *ort, OrtValue *value);

#endif
