/* ONNX Runtime's C interface, as far as we use it. Private to engine/ort*.c.
 *
 * The wheels hold the library but no headers, so what we call is declared here. OrtApi is a table
 * of functions whose order never changes: new ones are only added at its end. A call is therefore
 * its slot in that table. The slots below are those of API version 10 (ONNX Runtime 1.10) and
 * earlier, which every later library serves. Names and types are the runtime's own.
 */
#ifndef CS_ENGINE_ORT_API_H
#define CS_ENGINE_ORT_API_H

#include <stddef.h>
#include <stdint.h>

#include "engine/ort.h"

#define CS_ORT_API_VERSION 10

typedef struct OrtStatus OrtStatus; /* NULL is success */
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;

typedef void (*OrtLoggingFunction)(void *param, int severity, const char *category,
                                   const char *log_id, const char *place, const char *message);

/* Numbers of the runtime's enums. */
enum {
    ORT_LOGGING_LEVEL_FATAL = 4,
    ORT_DISABLE_ALL = 0, /* GraphOptimizationLevel */
    ONNX_TYPE_TENSOR = 1,
    ONNX_TYPE_SEQUENCE = 2,
    ONNX_TYPE_MAP = 3
};

/* X(slot, result, name, arguments) */
#define CS_ORT_CALLS(X)                                                                            \
    X(2, const char *, GetErrorMessage, (const OrtStatus *))                                       \
    X(4, OrtStatus *, CreateEnvWithCustomLogger,                                                   \
      (OrtLoggingFunction, void *, int severity, const char *log_id, OrtEnv **))                   \
    X(7, OrtStatus *, CreateSession,                                                               \
      (const OrtEnv *, const char *path, const OrtSessionOptions *, OrtSession **))                \
    X(8, OrtStatus *, CreateSessionFromArray,                                                      \
      (const OrtEnv *, const void *, size_t, const OrtSessionOptions *, OrtSession **))            \
    X(9, OrtStatus *, Run,                                                                         \
      (OrtSession *, const OrtRunOptions *, const char *const *in_names, const OrtValue *const *,  \
       size_t n_in, const char *const *out_names, size_t n_out, OrtValue **))                      \
    X(10, OrtStatus *, CreateSessionOptions, (OrtSessionOptions **))                               \
    X(12, OrtStatus *, CloneSessionOptions, (const OrtSessionOptions *, OrtSessionOptions **))     \
    X(19, OrtStatus *, DisableCpuMemArena, (OrtSessionOptions *))                                  \
    X(22, OrtStatus *, SetSessionLogSeverityLevel, (OrtSessionOptions *, int))                     \
    X(23, OrtStatus *, SetSessionGraphOptimizationLevel, (OrtSessionOptions *, int))               \
    X(24, OrtStatus *, SetIntraOpNumThreads, (OrtSessionOptions *, int))                           \
    X(25, OrtStatus *, SetInterOpNumThreads, (OrtSessionOptions *, int))                           \
    X(30, OrtStatus *, SessionGetInputCount, (const OrtSession *, size_t *))                       \
    X(31, OrtStatus *, SessionGetOutputCount, (const OrtSession *, size_t *))                      \
    X(36, OrtStatus *, SessionGetInputName, (const OrtSession *, size_t, OrtAllocator *, char **)) \
    X(37, OrtStatus *, SessionGetOutputName,                                                       \
      (const OrtSession *, size_t, OrtAllocator *, char **))                                       \
    X(48, OrtStatus *, CreateTensorAsOrtValue,                                                     \
      (OrtAllocator *, const int64_t *, size_t rank, int elem, OrtValue **))                       \
    X(50, OrtStatus *, IsTensor, (const OrtValue *, int *))                                        \
    X(51, OrtStatus *, GetTensorMutableData, (OrtValue *, void **))                                \
    X(52, OrtStatus *, FillStringTensor, (OrtValue *, const char *const *, size_t))                \
    X(53, OrtStatus *, GetStringTensorDataLength, (const OrtValue *, size_t *))                    \
    X(54, OrtStatus *, GetStringTensorContent,                                                     \
      (const OrtValue *, void *, size_t, size_t *offsets, size_t n_offsets))                       \
    X(60, OrtStatus *, GetTensorElementType, (const OrtTensorTypeAndShapeInfo *, int *))           \
    X(61, OrtStatus *, GetDimensionsCount, (const OrtTensorTypeAndShapeInfo *, size_t *))          \
    X(62, OrtStatus *, GetDimensions, (const OrtTensorTypeAndShapeInfo *, int64_t *, size_t))      \
    X(65, OrtStatus *, GetTensorTypeAndShape, (const OrtValue *, OrtTensorTypeAndShapeInfo **))    \
    X(67, OrtStatus *, GetValueType, (const OrtValue *, int *))                                    \
    X(76, OrtStatus *, AllocatorFree, (OrtAllocator *, void *))                                    \
    X(78, OrtStatus *, GetAllocatorWithDefaultOptions, (OrtAllocator **))                          \
    X(80, OrtStatus *, GetValue, (const OrtValue *, int, OrtAllocator *, OrtValue **))             \
    X(81, OrtStatus *, GetValueCount, (const OrtValue *, size_t *))                                \
    X(82, OrtStatus *, CreateValue, (const OrtValue *const *, size_t, int type, OrtValue **))      \
    X(92, void, ReleaseEnv, (OrtEnv *))                                                            \
    X(93, void, ReleaseStatus, (OrtStatus *))                                                      \
    X(95, void, ReleaseSession, (OrtSession *))                                                    \
    X(96, void, ReleaseValue, (OrtValue *))                                                        \
    X(99, void, ReleaseTensorTypeAndShapeInfo, (OrtTensorTypeAndShapeInfo *))                      \
    X(100, void, ReleaseSessionOptions, (OrtSessionOptions *))                                     \
    X(130, OrtStatus *, AddSessionConfigEntry,                                                     \
      (OrtSessionOptions *, const char *key, const char *value))                                   \
    X(192, OrtStatus *, HasValue, (const OrtValue *, int *))

typedef struct cs_ort_api {
#define CS_ORT_FIELD(slot, result, name, arguments) result(*name) arguments;
    CS_ORT_CALLS(CS_ORT_FIELD)
#undef CS_ORT_FIELD
} cs_ort_api;

struct cs_ort {
    cs_ort_api api;
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtAllocator *allocator; /* the default one; not ours to free */
    char *version, *path;
};

/* What OrtGetApiBase returns. */
typedef void (*cs_ort_function)(void);
typedef struct OrtApiBase {
    const cs_ort_function *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

/* Loads the library (ort_find.c); `path` as in cs_ort_open. *found: heap, the name it was loaded
 * by. The library stays loaded. */
cutset_status cs_ort_load(const OrtApiBase **base, char **found, const char *path,
                          cutset_error *err);

/* Turns a status of the runtime into ours: NULL is CUTSET_OK, else CUTSET_BAD with the runtime's
 * words on one line. Releases it. */
cutset_status cs_ort_check(const cs_ort *ort, OrtStatus *status, cutset_error *err);

#endif
