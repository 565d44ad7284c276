/* Targets that take exactly the nodes marked with their name: acc, and those that callers of the
 * library make for graphs without a file (cutset_target_marked).
 *
 * Names of target files are a-z 0-9 . _ -, for they become file names. A name given here is a
 * caller's key for an accelerator and may be any text that a plan can say and --pin can split:
 * 1 to 100 bytes of UTF-8 without control characters, '=' and '/', and not "host".
 *
 * Fusion patterns of core ATen, as Torch-TensorRT registers them: convolution, batch norm, the
 * getitem of its first result, activation; convolution, activation; mul, add; mul, mul. They mean
 * what torch.fx SubgraphMatcher makes of them (see cs_pattern.strict); literals that matter to it
 * (alpha, approximate, the index of a getitem) are no part of a graph: who builds one flags nodes
 * that differ with CUTSET_NODE_NO_PATTERN.
 */
#include "target/rules.h"

#include <math.h>
#include <string.h>

#define MAX_FACTOR 1e6

static const char *const conv[] = {"torch.ops.aten.convolution.default"};
static const char *const norm[] = {"torch.ops.aten._native_batch_norm_legit_no_training.default"};
static const char *const getitem[] = {"_operator.getitem"};
static const char *const act[] = {"torch.ops.aten.silu.default", "torch.ops.aten.gelu.default",
                                  "torch.ops.aten.relu.default", "torch.ops.aten.sigmoid.default"};
static const char *const mul[] = {"torch.ops.aten.mul.Tensor"};
static const char *const add[] = {"torch.ops.aten.add.Tensor"};

static const struct cs_step conv_norm_act[] = {{conv, 1}, {norm, 1}, {getitem, 1}, {act, 4}};
static const struct cs_step conv_act[] = {{conv, 1}, {act, 4}};
static const struct cs_step mul_add[] = {{mul, 1}, {add, 1}};
static const struct cs_step mul_mul[] = {{mul, 1}, {mul, 1}};

static const cs_pattern core_aten[] = {
    {"convolution, batch norm, activation", false, true, 4, conv_norm_act},
    {"convolution, activation", false, true, 2, conv_act},
    {"mul, add", false, true, 2, mul_add},
    {"mul, mul", false, true, 2, mul_mul},
};

cutset_status cs_target_new_marked(cutset_target **out, const char *name, const char *summary,
                                   cutset_error *err)
{
    cutset_target *target = cs_zalloc(1, sizeof *target);
    cs_target_rules *rules = cs_zalloc(1, sizeof *rules);
    if (target == NULL || rules == NULL ||
        (target->name = cs_arena_dup(&rules->arena, name, strlen(name))) == NULL) {
        if (rules != NULL) cs_arena_fini(&rules->arena);
        cs_free(target);
        cs_free(rules);
        return cs_fail_memory(err);
    }
    rules->summary = summary;
    rules->opset_max = INT32_MAX;
    rules->max_rank = rules->boundary_max_rank = CS_RANK_ANY;
    rules->boundary_any = true;
    target->rules = rules;
    target->hash = cs_hash(name, strlen(name));
    target->marked_only = true;
    for (int e = 0; e < CS_ELEM_COUNT; e++)
        target->memory.host_factor[e] = target->memory.device_factor[e] = 1000000;
    *out = target;
    return CUTSET_OK;
}

static cutset_status check_name(const char *name, cutset_error *err)
{
    if (name == NULL) return cs_fail(err, CUTSET_USAGE, "an accelerator without a name: give one");
    const cs_span span = cs_span_of(name);
    bool fine = span.len > 0 && span.len <= 100 && cs_utf8_valid(span);
    for (size_t i = 0; i < span.len; i++) {
        const unsigned char c = (unsigned char)name[i];
        fine &= c >= 0x20 && c != 0x7f && c != '=' && c != '/';
    }
    if (!fine)
        return cs_fail(err, CUTSET_USAGE,
                       "\"%.100s\" is no accelerator's name: 1 to 100 bytes of UTF-8 without "
                       "control characters, '=' and '/' are",
                       name);
    if (strcmp(name, "host") == 0)
        return cs_fail(err, CUTSET_USAGE,
                       "an accelerator cannot be called host, that is where the rest runs: "
                       "choose another name");
    return CUTSET_OK;
}

static uint64_t hash_marked(const char *name, int64_t factor, int64_t base, bool patterns)
{
    const uint64_t parts[] = {cs_hash(name, strlen(name)), (uint64_t)factor, (uint64_t)base,
                              patterns};
    return cs_hash(parts, sizeof parts);
}

cutset_status cutset_target_marked(cutset_target **out, const char *name, double factor,
                                   int64_t base, int patterns, cutset_error *err)
{
    *out = NULL;
    cutset_status status = check_name(name, err);
    if (status != CUTSET_OK) return status;
    if (!(factor >= 0 && factor <= MAX_FACTOR))
        return cs_fail(err, CUTSET_USAGE, "memory factor %g: give one from 0 to 1000000", factor);
    if (base < 0)
        return cs_fail(err, CUTSET_USAGE, "memory base %lld: give 0 bytes or more",
                       (long long)base);
    status = cs_target_new_marked(out, name, "takes the nodes that a graph allows it", err);
    if (status != CUTSET_OK) return status;
    cutset_target *target = *out;
    const int64_t millionths = (int64_t)ceil(factor * 1e6 - 1e-6);
    target->memory.host_base = base;
    for (int e = 0; e < CS_ELEM_COUNT; e++)
        target->memory.host_factor[e] = millionths;
    target->hash = hash_marked(name, millionths, base, patterns != 0);
    if (patterns) {
        target->patterns = core_aten;
        target->n_patterns = sizeof core_aten / sizeof *core_aten;
    }
    return CUTSET_OK;
}
