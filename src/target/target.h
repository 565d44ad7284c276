/* Targets: which nodes an accelerator takes, and a reason for every refusal.
 *
 * A target file (YAML; doc/FORMAT.md) is data: operators with the types they take, conditions on
 * attributes, constness, ranks and shapes, opset limits, data-dependent operators, what may cross
 * an engine's boundary, fusion patterns, memory coefficients. `acc` is built in: it takes exactly
 * the nodes that the text form marks with it; cutset_target_marked makes others of this kind.
 */
#ifndef CS_TARGET_TARGET_H
#define CS_TARGET_TARGET_H

#include "graph/graph.h"

/* Why a node stands on the host; the names are those of plan.json. */
/* clang-format off */
#define CS_RULES(X) \
    X(OP, "op") X(TYPE, "type") X(RANK, "rank") X(SHAPE, "shape") X(ATTR, "attr") \
    X(CONST, "const") X(OPSET, "opset") X(DDS, "dds") X(BOUNDARY, "boundary") X(USER, "user") \
    X(SIZE, "size") X(LIMIT, "limit") X(BENEFIT, "benefit") X(GROUP, "group") X(BUDGET, "budget")
/* clang-format on */
typedef enum cs_rule {
    CS_RULE_NONE = 0,
#define CS_RULE_ENUM(name, text) CS_RULE_##name,
    CS_RULES(CS_RULE_ENUM)
#undef CS_RULE_ENUM
    CS_RULE_COUNT
} cs_rule;
const char *cs_rule_name(cs_rule rule);

/* Forecast of one engine = base + sum over its storages of bytes x factor, each storage rounded up.
 * Factors in millionths. */
typedef struct cs_memory_model {
    int64_t host_base, device_base;
    int64_t host_factor[CS_ELEM_COUNT], device_factor[CS_ELEM_COUNT];
} cs_memory_model;
int64_t cs_memory_host(const cs_memory_model *m, const cs_storage *s); /* of one storage, no base */
int64_t cs_memory_device(const cs_memory_model *m, const cs_storage *s);

/* A fusion pattern: a chain of steps, each a set of operators; the output of a step is read by the
 * next one only. Or, when `qdq`: an operator with the DequantizeLinear nodes that only it reads and
 * the QuantizeLinear nodes that alone read it. `strict`: as torch.fx SubgraphMatcher has it: a step
 * reads the one before as its first argument, what the nodes read from outside is distinct, and a
 * node may be in matches of several patterns (of one pattern: the first). */
typedef struct cs_pattern {
    const char *name;
    bool qdq, strict;
    size_t n_steps;
    const struct cs_step {
        const char *const *ops; /* operator names, "domain:Op" outside ai.onnx */
        size_t n_ops;
    } * steps;
} cs_pattern;

/* The opaque cutset_target; fields below are read by plan and api, the rest is private. */
struct cutset_target {
    char *name;
    uint64_t hash;    /* of the file's bytes */
    bool marked_only; /* acc, and what cutset_target_marked makes */
    bool refit;       /* weights: refit */
    cs_memory_model memory;
    const cs_pattern *patterns;
    size_t n_patterns;
    struct cs_target_rules *rules; /* private */
};

/* May node `node` of `g` run on the target? *rule is CS_RULE_NONE when it may; else the rule that
 * refuses and one sentence in `words`, e.g. "TopK with sorted = 0 is not supported". Marks (`@`) are
 * not looked at, except by acc. A node with bodies is taken only if every node inside is. Types must
 * be inferred; an unknown type is refused where a rule needs it. CUTSET_SYSTEM: no memory. */
cutset_status cs_target_check(const cutset_target *target, const cs_graph *g, uint32_t node,
                              cs_strtab *words, cs_rule *rule, cs_str *why, cutset_error *err);

/* May a value of type `type` be an input (or output) of an engine? Else *why is a static sentence
 * tail, e.g. "u4 cannot cross an engine's boundary". */
bool cs_target_may_cross(const cutset_target *target, const cs_pool *pool, cs_type type, bool input,
                         const char **why);

#endif
