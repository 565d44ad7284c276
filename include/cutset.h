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

/* What a CUTSET_NO is about, where programs may want to know. */
typedef enum cutset_about {
    CUTSET_ABOUT_OTHER = 0,
    CUTSET_ABOUT_BUDGET = 1, /* nodes that must stay together are over a budget */
    CUTSET_ABOUT_GROUP = 2   /* a group cannot be one part */
} cutset_about;

typedef struct cutset_error {
    cutset_status status;
    int system;       /* errno, or 0 */
    int64_t offset;   /* byte offset in the input that is at fault, or -1 */
    char message[1000]; /* one line, terminated */
    cutset_about about;
    int64_t needed, budget; /* ABOUT_BUDGET: bytes */
    uint32_t n_names;       /* nodes at fault: one, an atom, or a cycle in its order */
    char names[2000];       /* as many of their names as fit, each ended by a NUL */
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

/* A progress function for callers whose own is dear (another language): it asks `inner` at most once
 * in `interval_ns` nanoseconds, the first time after that long. payload: a cutset_seldom, zeroed but
 * for `inner` and `interval_ns`; one call at a time. */
typedef struct cutset_seldom {
    cutset_progress inner;
    int64_t interval_ns;
    int64_t last_ns; /* its own; 0 = not called yet */
} cutset_seldom;
CUTSET_API int cutset_progress_seldom(void *payload, const char *phase, uint64_t done,
                                      uint64_t total);

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

/* ---- graphs without a file ---- */

/* What a value is. */
enum {
    CUTSET_TENSOR = 0,
    CUTSET_SCALAR = 1, /* no tensor, crosses borders as it is: a number, a symbolic size */
    CUTSET_LIST = 2    /* a tuple or list: who makes it and who reads it share a part */
};

/* What is known of a node, or-ed together. A node without EFFECT, RANDOM and writes is pure. */
enum {
    CUTSET_NODE_EFFECT = 1,   /* a side effect: such nodes keep their order */
    CUTSET_NODE_RANDOM = 4,   /* draws random numbers: such nodes keep their order */
    CUTSET_NODE_REPEAT = 8,   /* pure and cheap: repeated in each part that reads it, not planned */
    CUTSET_NODE_FOLLOW = 16,  /* goes where the maker of its first argument goes (getitem) */
    CUTSET_NODE_FREE = 32,    /* does not count for min_nodes */
    CUTSET_NODE_EXEMPT = 64,  /* an engine that holds it may be smaller than min_nodes */
    CUTSET_NODE_BOOKEND = 128, /* computes nothing: see cutset_plan_opts.bookends */
    CUTSET_NODE_ALONE = 256,  /* on the host it is a part of its own */
    CUTSET_NODE_NO_PATTERN = 512 /* no fusion pattern takes it: a literal argument is unusual */
};

#define CUTSET_NONE UINT32_MAX
#define CUTSET_ALLOW_HOST (1u << 31)

/* A graph as arrays, for callers that hold one in memory. Strings of a list stand one after the
 * other, each ended by a NUL. Rows: entry i of a list of n is at[row[i]] .. at[row[i + 1]), row has
 * n + 1 entries and row[0] is 0. Pairs: two entries each. Nodes stand in program order and are
 * called by the name of their first output. An array of no entries may be NULL.
 *
 * From it follow, in the library: order edges (last write -> readers and writers, readers -> next
 * write over values that may share memory, effects and random draws among themselves); constant
 * expressions (pure nodes made of weights that nothing writes), which are repeated in each part that
 * reads them; and which weights something writes, which are inputs then. */
typedef struct cutset_graph {
    size_t n_values;
    const char *value_names;        /* distinct */
    const uint8_t *value_kinds;     /* CUTSET_TENSOR ... */
    const uint32_t *value_types;    /* index into types, or CUTSET_NONE: unknown */
    const uint32_t *value_storages; /* of a weight: index into storage_bytes; else CUTSET_NONE */
    size_t n_types;
    const char *types;              /* as in the text form: "f32[1,3,224,224]" */
    size_t n_storages;
    const int64_t *storage_bytes;   /* weights with one storage are tied, or views of each other */
    size_t n_inputs, n_outputs;
    const uint32_t *inputs, *outputs; /* values, in order; an output may stand twice */

    size_t n_nodes, n_ops;
    const char *ops;                /* kinds of node, as plans spell them */
    const uint32_t *node_ops;       /* index into ops */
    const uint32_t *node_flags;     /* CUTSET_NODE_... */
    const uint32_t *arg_rows, *args; /* by node: the values it reads, weights too */
    const uint32_t *out_rows, *outs; /* by node: the values it makes, at least one */

    size_t n_writes, n_aliases, n_order, n_groups;
    const uint32_t *writes;  /* pairs (node, value), by ascending node: it changes what the value names */
    const uint32_t *aliases; /* pairs (value, value): the first is made from the memory of the second */
    const uint32_t *order;   /* pairs (node, node): the first before the second */
    const uint32_t *group_rows, *group_nodes; /* nodes that share a part */
    size_t n_soft_groups; /* of these groups the last: patterns, not formed where a node must stay on
                           * the host, or one between two of theirs */

    /* Who may run where. Bit t: on the t-th target that cutset_plan_make is given; without
     * CUTSET_ALLOW_HOST the node is pinned. 0 counts as CUTSET_ALLOW_HOST. */
    const uint32_t *allow;
    size_t n_reasons;
    const char *reasons;           /* why a node runs on the host only: "RULE: sentence", RULE as in */
    const uint32_t *node_reasons;  /* plan.json; index into reasons, or CUTSET_NONE */
} cutset_graph;

/* Copies and checks the arrays; they are not needed afterwards. CUTSET_BAD: an index out of range, a
 * value made twice or never, a reader before its maker, a cycle; the message names the array.
 * Cost: linear. */
CUTSET_API cutset_status cutset_model_build(cutset_model **out, const cutset_graph *graph,
                                            cutset_error *err);

/* ---- TorchScript ---- */

/* The text that str(graph) of a torch._C.Graph prints, all calls inlined, and what its caller knows.
 *
 * A line is one node of the text, prim::Constant and prim::GetAttr included: line i is the i-th node
 * that is printed, a node with blocks before what is in its blocks. For a walk over graph.nodes()
 * that visits a node, then the nodes of its blocks, block by block, that is the order of the walk.
 * Arrays "by line" have n_lines entries; with n_lines 0 they are not looked at, and the operators
 * that CUTSET_ALLOW_DEFAULT stands for are marked for the target acc.
 *
 * Names in plans: a node is called by its first output without "%", one without outputs "$<index>":
 * its position among the lines, of all blocks, that are neither prim::Constant nor prim::GetAttr.
 * These two are no nodes of a plan: constants and attributes of the module live in each part that
 * reads them. Two exceptions, both of attributes: one that an operator writes is an input (the name
 * of the GetAttr's output stands in `inputs` of the plan and of the parts that read it), and a
 * GetAttr whose attribute a prim::SetAttr sets is a node of a host part, in its order. The module itself is
 * in every part and is no input. Copies in a part of a block may be nodes of an enclosing block.
 *
 * Nodes with a Tensor result are counted for min_nodes. A prim::If or prim::Loop is allowed where it
 * and everything in it are; a prim::If on the host is a part of its own and its blocks are planned
 * by themselves, with the same options: parts of block "<id>.0" (then) and "<id>.1" (else) follow
 * part <id>. Operators that change a container, prim::SetAttr, side effects and operators without a
 * schema stay on the host. Plans are made as with tensors_only. */
typedef struct cutset_torchscript {
    const char *text;
    size_t len;
    size_t n_lines;               /* checked against the text */
    const uint32_t *allow;        /* by line, as in cutset_graph; constructs (prim::ListConstruct,
                                   * TupleUnpack, NumToTensor ...) are allowed everywhere, unless
                                   * their reason is "user: ..." */
    size_t n_reasons;
    const char *reasons;          /* as in cutset_graph */
    const uint32_t *line_reasons; /* by line: index into reasons, or CUTSET_NONE */
    size_t n_storages;
    const int64_t *storage_bytes;
    const uint32_t *storages;     /* by line: of a GetAttr or Constant that gives a tensor, index into
                                   * storage_bytes, else CUTSET_NONE; NULL: each path of attributes
                                   * and each constant is a storage of unknown size, counted as 0 */
    const int8_t *truth;          /* by line: of a GetAttr that gives a bool, 0 or 1; -1 = unknown, or
                                   * no such line. NULL: all unknown. ("training" decides whether
                                   * dropout draws and batch_norm writes) */
    size_t n_schemas;
    const char *schemas;          /* str(node.schema()) of operators outside aten and prim, which are
                                   * else taken to read and write all they can reach */
    size_t n_input_aliases;
    const uint32_t *input_aliases; /* pairs of inputs, by position in graph(...), that may share memory;
                                    * others do not */
} cutset_torchscript;

/* In `allow`: on the first target, if the operator is an aten:: one that neither writes, draws random
 * numbers nor has a side effect. */
#define CUTSET_ALLOW_DEFAULT (1u << 30)

/* The text is not needed afterwards. CUTSET_BAD: text that is cut off, not understood, or that calls
 * functions or methods (offset, line and column; nothing is guessed). CUTSET_USAGE: n_lines is not the
 * number of lines. Such a model can be planned and described, not split. Cost: linear. */
CUTSET_API cutset_status cutset_model_open_torchscript(cutset_model **out,
                                                       const cutset_torchscript *in,
                                                       cutset_error *err);

/* ---- targets ---- */

typedef struct cutset_target cutset_target;

/* A shipped name ("tensorrt" = the newest shipped tensorrt-*), or the path of a target file (it has
 * a '/' or ends in .yaml). */
CUTSET_API cutset_status cutset_target_open(cutset_target **out, const char *name_or_path,
                                            cutset_error *err);
/* A target that takes the nodes that a cutset_graph allows it, and no others. An engine needs
 * `base` + `factor` x the bytes of its distinct storages, on the host while it is built (each storage
 * rounded up). `patterns`: with the fusion patterns of core ATen (convolution, batch norm, activation;
 * convolution, activation; mul, add; mul, mul), for operators named as torch.ops.aten.mul.Tensor is.
 * `name`: 1 to 100 bytes of UTF-8 without control characters, '=' and '/'; not "host".
 * CUTSET_USAGE: another name, a factor not from 0 to 1000000, a negative base. */
CUTSET_API cutset_status cutset_target_marked(cutset_target **out, const char *name, double factor,
                                              int64_t base, int patterns, cutset_error *err);
CUTSET_API void cutset_target_free(cutset_target *target);
CUTSET_API const char *cutset_target_name(const cutset_target *target);
/* The shipped names, sorted; NULL past the end. */
CUTSET_API const char *cutset_target_shipped(size_t i);
CUTSET_API cutset_status cutset_target_describe(const cutset_target *target, int json,
                                                cutset_write_fn write, void *payload,
                                                cutset_error *err);

/* ---- memory ---- */

/* Bytes that this process may still take: the least of MemAvailable, of limit - (use - inactive file
 * pages) at every level of its cgroups (v2 and v1), and of RLIMIT_AS and RLIMIT_DATA minus use; never
 * negative. Roots: where /proc and /sys/fs/cgroup are; NULL: there. CUTSET_SYSTEM: nothing tells. */
CUTSET_API cutset_status cutset_available_memory(int64_t *out, const char *proc_root,
                                                 const char *cgroup_root, cutset_error *err);

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
    int64_t max_engines;   /* at most so many: what costs least goes to the host; 0 = no limit */
    int connected;         /* an engine is one connected piece */
    int tensors_only;      /* only tensors pass in and out of engines */
    int bookends;          /* CUTSET_NODE_BOOKEND nodes at the ends of an engine go to the host */
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
/* The same from memory; a relative model.path stays as it is. */
CUTSET_API cutset_status cutset_plan_read_memory(cutset_plan **out, const void *bytes, size_t len,
                                                 cutset_error *err);
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
