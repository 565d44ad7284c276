/* cutset: cut a machine-learning graph into the fewest accelerator engines that fit in memory.
 *
 *     open a model -> open targets -> make a plan -> write the parts -> verify, or merge them back
 *
 * Rules that hold for every call:
 *   - The result comes first, `err` last. `err` may be NULL. CUTSET_OK is 0.
 *   - On failure the result is untouched (or NULL for objects), nothing is half written, and err
 *     holds one line: the place, the cause, the cure.
 *   - No call prints, exits, changes signals, or keeps global state. Different objects may be used
 *     from different threads; one object may be read by several threads at once.
 *   - An object is freed by its one _free function, which takes NULL. A plan keeps no reference to
 *     the model or the targets it was made from.
 *   - Strings are UTF-8 or bytes as the model holds them; sizes are bytes.
 */
#ifndef CUTSET_H
#define CUTSET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define CUTSET_API
#else
#define CUTSET_API __attribute__((visibility("default")))
#endif

#define CUTSET_VERSION "0.1.0"
CUTSET_API const char *cutset_version_string(void);

/* ---- errors ---- */

typedef enum cutset_status {
    CUTSET_OK = 0,
    CUTSET_NO = 1,          /* the answer is no: over budget, infeasible, a difference found */
    CUTSET_USAGE = 2,       /* an option, a name or a size that cannot be */
    CUTSET_BAD = 3,         /* a bad, unsupported or changed model, plan or target file */
    CUTSET_SYSTEM = 4,      /* the operating system said no; also: out of memory */
    CUTSET_INTERRUPTED = 130 /* the progress function asked to stop */
} cutset_status;            /* the values are the command's exit codes */

typedef struct cutset_error {
    cutset_status status;
    int system;       /* errno, or 0 */
    int64_t offset;   /* byte offset in the input that is at fault, or -1 */
    char message[1000]; /* one line, terminated */
} cutset_error;

/* ---- callbacks ---- */

/* Takes `len` bytes; anything but 0 stops the call with CUTSET_SYSTEM. */
typedef int (*cutset_write_fn)(void *payload, const void *bytes, size_t len);

/* Called now and then by long calls; a return other than 0 stops the call: CUTSET_INTERRUPTED.
 * total 0: not known. */
typedef int (*cutset_progress_fn)(void *payload, const char *phase, uint64_t done, uint64_t total);
typedef struct cutset_progress {
    cutset_progress_fn call;
    void *payload;
} cutset_progress;

/* ---- models ---- */

typedef struct cutset_model cutset_model;

typedef struct cutset_open_opts {
    /* "NAME=f32[?,?]": the type of a value that nothing else tells. */
    const char *const *types;
    size_t n_types;
    /* "x:1x3x224x224" or "x:[1,3,224,224]": the shape of a graph input. */
    const char *const *shapes;
    size_t n_shapes;
    /* "N=8": the value of a symbolic dim, everywhere. */
    const char *const *dims;
    size_t n_dims;
    int follow_links; /* weight files may be symbolic links; then their data is only ever copied */
    cutset_progress progress;
} cutset_open_opts;
CUTSET_API void cutset_open_opts_init(cutset_open_opts *opts);

/* Reads a model: ONNX or the text form, told apart by content. "-" is standard input. Weights are
 * not read. The file is mapped and must not change while the model is open. Cost: linear. */
CUTSET_API cutset_status cutset_model_open(cutset_model **out, const char *path,
                                           const cutset_open_opts *opts, cutset_error *err);
/* The same from memory, which must outlive the model. `base` is the folder that external weights
 * are relative to, or NULL: then a model with external weights is refused. */
CUTSET_API cutset_status cutset_model_open_memory(cutset_model **out, const void *bytes, size_t len,
                                                  const char *base, const cutset_open_opts *opts,
                                                  cutset_error *err);
CUTSET_API void cutset_model_free(cutset_model *model);

typedef struct cutset_model_info {
    int is_onnx;
    size_t nodes, inputs, outputs;
    size_t weights;        /* distinct storages */
    int64_t weight_bytes;  /* each storage once */
    size_t notes;          /* what reading changed or dropped; cutset_model_note(model, i) */
} cutset_model_info;
CUTSET_API void cutset_model_describe(const cutset_model *model, cutset_model_info *info);
CUTSET_API const char *cutset_model_note(const cutset_model *model, size_t i);
/* Is the file at `path`, by whatever name or link, the model's own or one that holds its weights?
 * Writing there would destroy it. */
CUTSET_API int cutset_model_reads(const cutset_model *model, const char *path);

typedef enum cutset_inspect_form {
    CUTSET_INSPECT_TABLE, /* for people, 80 columns */
    CUTSET_INSPECT_JSON,
    CUTSET_INSPECT_TEXT /* the text form, with inferred types */
} cutset_inspect_form;
CUTSET_API cutset_status cutset_model_inspect(const cutset_model *model, cutset_inspect_form form,
                                              cutset_write_fn write, void *payload,
                                              cutset_error *err);

/* ---- targets ---- */

typedef struct cutset_target cutset_target;

/* A shipped name ("tensorrt" = the newest shipped tensorrt-*), or the path of a target file (it has
 * a '/' or ends in .yaml). */
CUTSET_API cutset_status cutset_target_open(cutset_target **out, const char *name_or_path,
                                            cutset_error *err);
CUTSET_API void cutset_target_free(cutset_target *target);
CUTSET_API const char *cutset_target_name(const cutset_target *target);
/* The shipped names, sorted; NULL past the end. */
CUTSET_API const char *cutset_target_shipped(size_t i);
CUTSET_API cutset_status cutset_target_describe(const cutset_target *target, int json,
                                                cutset_write_fn write, void *payload,
                                                cutset_error *err);

/* ---- plans ---- */

typedef struct cutset_plan cutset_plan;

typedef enum cutset_oversize {
    CUTSET_OVERSIZE_ERROR,
    CUTSET_OVERSIZE_HOST,
    CUTSET_OVERSIZE_KEEP
} cutset_oversize;

typedef struct cutset_plan_opts {
    int64_t host_memory;   /* budget of each engine while it is built, bytes; 0 = none */
    int64_t device_memory; /* budget of each engine while it runs, bytes; 0 = none */
    int64_t min_nodes;     /* engines smaller than this go to the host; 0 = none */
    cutset_oversize oversize;
    int connected;         /* an engine is one connected piece */
    int effort;            /* 0..3 */
    const char *const *pins;     /* "NAME=TARGET" */
    size_t n_pins;
    const char *const *excludes; /* "OP" or "NAME" */
    size_t n_excludes;
    const char *const *groups;   /* "NAME,NAME,..." */
    size_t n_groups;
    cutset_progress progress;
} cutset_plan_opts;
CUTSET_API void cutset_plan_opts_init(cutset_plan_opts *opts);

/* Decides. Targets in order of preference; the host is always there and comes last. CUTSET_NO: no
 * plan exists (the message holds the cycle, or the atom with the bytes it needs).
 * Cost: linear without budgets; O((n + m) log n) with. */
CUTSET_API cutset_status cutset_plan_make(cutset_plan **out, const cutset_model *model,
                                          const cutset_target *const *targets, size_t n_targets,
                                          const cutset_plan_opts *opts, cutset_error *err);
/* Reads a plan.json. CUTSET_BAD where it is none. */
CUTSET_API cutset_status cutset_plan_read(cutset_plan **out, const char *path, cutset_error *err);
CUTSET_API void cutset_plan_free(cutset_plan *plan);
/* Opens the model that a plan was made from, with the same types, shapes and dims declared.
 * `path` NULL: where the plan says it is. CUTSET_BAD: it has changed since. */
CUTSET_API cutset_status cutset_plan_open_model(cutset_model **out, const cutset_plan *plan,
                                                const char *path, int follow_links,
                                                const cutset_progress *progress, cutset_error *err);

typedef struct cutset_plan_info {
    size_t engines, engines_bound, parts;
    int proved; /* engines == engines_bound */
    int64_t boundary_bytes;
    size_t boundaries, boundaries_unknown, fallback;
} cutset_plan_info;
CUTSET_API void cutset_plan_describe(const cutset_plan *plan, cutset_plan_info *info);
/* plan.json; `at` is the path it will have (model.path is relative to its folder), or NULL. */
CUTSET_API cutset_status cutset_plan_write(const cutset_plan *plan, const char *at,
                                           cutset_write_fn write, void *payload, cutset_error *err);
/* The same into a file that appears whole or not at all. */
CUTSET_API cutset_status cutset_plan_save(const cutset_plan *plan, const char *path,
                                          cutset_error *err);
/* The summary for people, 80 columns. */
CUTSET_API cutset_status cutset_plan_summary(const cutset_plan *plan, cutset_write_fn write,
                                             void *payload, cutset_error *err);

/* ---- parts ---- */

typedef enum cutset_weights {
    CUTSET_WEIGHTS_AUTO,  /* refer where possible, else inline up to 1 GiB a part, else copy */
    CUTSET_WEIGHTS_REFER, /* parts name the source's own data */
    CUTSET_WEIGHTS_COPY,  /* weights/part-NNN.bin, weights/shared.bin */
    CUTSET_WEIGHTS_INLINE /* inside the part */
} cutset_weights;

typedef struct cutset_split_opts {
    cutset_weights weights;
    cutset_progress progress;
} cutset_split_opts;
CUTSET_API void cutset_split_opts_init(cutset_split_opts *opts);

/* Writes plan.json and one ONNX model a part into the folder `dir`, which appears whole or not at
 * all. The model must be the one the plan was made from (CUTSET_BAD else); where it was opened is
 * where the plan says it is from now on. */
CUTSET_API cutset_status cutset_split_write(const cutset_model *model, cutset_plan *plan,
                                            const char *dir, const cutset_split_opts *opts,
                                            cutset_error *err);

typedef struct cutset_verify_opts {
    uint64_t seed;
    int runs;                    /* default 1 */
    const char *const *inputs;   /* "NAME=x.npy" */
    size_t n_inputs;
    const char *const *ranges;   /* "NAME=0..9" */
    size_t n_ranges;
    const char *const *types;    /* these three as in cutset_open_opts */
    size_t n_types;
    const char *const *shapes;
    size_t n_shapes;
    const char *const *dims;
    size_t n_dims;
    const char *onnxruntime;     /* path of libonnxruntime.so, or NULL: it is looked for */
    int json;                    /* the report as JSON */
    cutset_progress progress;
} cutset_verify_opts;
CUTSET_API void cutset_verify_opts_init(cutset_verify_opts *opts);

/* Runs the whole model and the chain of parts with ONNX Runtime on the same inputs and writes a
 * report. CUTSET_NO: they differ; the message names the first part that does. */
CUTSET_API cutset_status cutset_verify(const char *dir, const cutset_verify_opts *opts,
                                       cutset_write_fn write, void *payload, cutset_error *err);

/* Writes one model that equals the source of the split in `dir`: same nodes in source order, same
 * weights. What had to be dropped is listed through `write` (may be NULL). */
CUTSET_API cutset_status cutset_merge(const char *dir, const char *path,
                                      const cutset_progress *progress, cutset_write_fn write,
                                      void *payload, cutset_error *err);

#ifdef __cplusplus
}
#endif
#endif
