/* A target file becomes a target: gives every scalar that schema.c left as text its meaning, checks
 * it, and builds the lookup table of operators. Cost: linear in the file.
 *
 * Every message names the file, the key and the cure. A target file is hostile input: counts and
 * sizes are bounded by schema.c, numbers are checked here before they size or index anything.
 */
#include "target/loader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cs_loader_fail(cs_loader *ld, const char *key, const char *format, ...)
{
    if (ld->status != CUTSET_OK) return;
    char cause[600];
    va_list args;
    va_start(args, format);
    vsnprintf(cause, sizeof cause, format, args);
    va_end(args);
    ld->status = cs_fail(ld->err, CUTSET_BAD, "%s: %s%s: %s", ld->path, ld->place, key, cause);
}

void *cs_loader_zalloc(cs_loader *ld, size_t count, size_t size)
{
    if (ld->status != CUTSET_OK) return NULL;
    void *p = cs_arena_zalloc(ld->arena, count, size);
    if (p == NULL) ld->status = cs_fail_memory(ld->err);
    return p;
}

const char *cs_loader_copy(cs_loader *ld, const char *text)
{
    if (text == NULL || ld->status != CUTSET_OK) return NULL;
    const char *copy = cs_arena_dup(ld->arena, text, strlen(text));
    if (copy == NULL) ld->status = cs_fail_memory(ld->err);
    return copy;
}

const char *const *cs_loader_copies(cs_loader *ld, char *const *list, size_t n)
{
    const char **copies = cs_loader_zalloc(ld, n, sizeof *copies);
    for (size_t i = 0; copies != NULL && i < n; i++)
        copies[i] = cs_loader_copy(ld, list[i]);
    return copies;
}

int64_t cs_loader_whole(cs_loader *ld, const char *key, const char *text, int64_t min, int64_t max,
                        int64_t otherwise)
{
    int64_t x;
    if (text == NULL) return otherwise;
    if (cs_parse_i64(cs_span_of(text), &x) && x >= min && x <= max) return x;
    cs_loader_fail(ld, key, "\"%s\" is not a whole number from %lld to %lld", text, (long long)min,
                   (long long)max);
    return otherwise;
}

double cs_loader_number(cs_loader *ld, const char *key, const char *text, double otherwise)
{
    double x;
    if (text == NULL) return otherwise;
    if (cs_parse_f64(cs_span_of(text), &x) && isfinite(x)) return x;
    cs_loader_fail(ld, key, "\"%s\" is not a number", text);
    return otherwise;
}

bool cs_loader_bool(cs_loader *ld, const char *key, const char *text)
{
    if (text == NULL || strcmp(text, "false") == 0) return false;
    if (strcmp(text, "true") != 0)
        cs_loader_fail(ld, key, "\"%s\" is neither true nor false", text);
    return true;
}

uint32_t cs_loader_types(cs_loader *ld, const char *key, char *const *list, size_t n)
{
    _Static_assert(CS_ELEM_COUNT <= 32, "one bit an element type");
    uint32_t types = 0;
    for (size_t i = 0; i < n; i++) {
        cs_elem e = cs_elem_parse(cs_span_of(list[i]));
        if (e == CS_ELEM_NONE)
            cs_loader_fail(ld, key, "\"%s\" is not an element type; f32, f16, bf16, i64, ... are",
                           list[i]);
        types |= UINT32_C(1) << e;
    }
    return types;
}

void cs_loader_split_op(const char *name, cs_span *domain, cs_span *op)
{
    const char *colon = strrchr(name, ':');
    if (colon == NULL || colon[1] == 0) {
        *domain = (cs_span){"", 0};
        *op = cs_span_of(name);
        return;
    }
    size_t len = (size_t)(colon - name);
    if (len > 0 && name[len - 1] == ':') len--; /* aten::add is add of aten */
    *domain = (cs_span){name, len};
    if (cs_span_is(*domain, "ai.onnx")) *domain = (cs_span){"", 0};
    *op = cs_span_of(colon + 1);
}

/* ---- the parts of a file ---- */

static const char *read_name(cs_loader *ld, const char *name)
{
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != strlen(name) ||
        strlen(name) > 100)
        cs_loader_fail(ld, "name",
                       "\"%s\" is not a target's name; at most 100 of a-z 0-9 . _ - make one",
                       name);
    if (strcmp(name, "acc") == 0 || strcmp(name, "host") == 0)
        cs_loader_fail(ld, "name", "\"%s\" is built in; choose another name", name);
    return cs_loader_copy(ld, name);
}

static int64_t read_size(cs_loader *ld, const char *key, const char *text)
{
    int64_t size = 0;
    if (text != NULL && strcmp(text, "0") != 0 && !cs_parse_size(cs_span_of(text), &size))
        cs_loader_fail(ld, key, "\"%s\" is not a size; 0, 64MiB and 1GB are", text);
    return size;
}

static int64_t read_factor(cs_loader *ld, const char *key, const char *text)
{
    double x = cs_loader_number(ld, key, text, 1.0);
    if (!(x >= 0 && x <= 1e6)) {
        cs_loader_fail(ld, key, "\"%s\" is not a factor from 0 to 1000000", text);
        return 0;
    }
    return (int64_t)(x * 1e6 + 0.5);
}

static void read_factors(cs_loader *ld, const char *key, const char *number,
                         const cs_yaml_factors *by_type, int64_t factor[CS_ELEM_COUNT])
{
    int64_t all = read_factor(ld, key, by_type != NULL ? by_type->otherwise : number);
    for (int e = 0; e < CS_ELEM_COUNT; e++) {
        const char *own = by_type != NULL ? by_type->elem[e] : NULL;
        factor[e] = own != NULL ? read_factor(ld, key, own) : all;
    }
}

static void read_memory(cs_loader *ld, const cs_yaml_memory *yaml, cs_memory_model *memory)
{
    memory->host_base = read_size(ld, "memory.host_base", yaml->host_base);
    memory->device_base = read_size(ld, "memory.device_base", yaml->device_base);
    read_factors(ld, "memory.host_per_weight_byte", yaml->host, yaml->host_by, memory->host_factor);
    read_factors(ld, "memory.device_per_weight_byte", yaml->device, yaml->device_by,
                 memory->device_factor);
}

static void read_limits(cs_loader *ld, const cs_yaml_target *yaml, cs_target_rules *rules)
{
    rules->opset_min = (int32_t)cs_loader_whole(ld, "opset.min", yaml->opset.min, 1, 10000, 0);
    rules->opset_max =
        (int32_t)cs_loader_whole(ld, "opset.max", yaml->opset.max, 1, 10000, INT32_MAX);
    if (rules->opset_min > rules->opset_max)
        cs_loader_fail(ld, "opset", "min is over max; swap them");

    rules->max_rank = (int32_t)cs_loader_whole(ld, "tensors.max_rank", yaml->tensors.max_rank, 0,
                                               CS_RANK_MAX, CS_RANK_ANY);
    rules->ranked = cs_loader_bool(ld, "tensors.ranked", yaml->tensors.ranked);
    cs_never *never = cs_loader_zalloc(ld, yaml->tensors.never_count, sizeof *never);
    for (unsigned i = 0; never != NULL && i < yaml->tensors.never_count; i++) {
        const cs_yaml_never *from = &yaml->tensors.never[i];
        never[i].types = cs_loader_types(ld, "tensors.never.types", from->types, from->types_count);
        never[i].why = cs_loader_copy(ld, from->why);
        rules->never_types |= never[i].types;
    }
    rules->never = never;
    rules->n_never = yaml->tensors.never_count;

    const cs_yaml_boundary *b = &yaml->boundary;
    uint32_t both = cs_loader_types(ld, "boundary.types", b->types, b->types_count);
    rules->boundary_in = both | cs_loader_types(ld, "boundary.inputs", b->inputs, b->inputs_count);
    rules->boundary_out =
        both | cs_loader_types(ld, "boundary.outputs", b->outputs, b->outputs_count);
    rules->boundary_any = rules->boundary_in == 0 && rules->boundary_out == 0;
    rules->boundary_max_rank =
        (int32_t)cs_loader_whole(ld, "boundary.max_rank", b->max_rank, 0, CS_RANK_MAX, CS_RANK_ANY);
    rules->boundary_ranked = cs_loader_bool(ld, "boundary.ranked", b->ranked);
}

/* As plans compare them: "Op", or "domain:Op" outside ai.onnx. */
static char *plain_op(cs_loader *ld, const char *name)
{
    cs_span domain, op;
    cs_loader_split_op(name, &domain, &op);
    char *out = cs_loader_zalloc(ld, domain.len + op.len + 2, 1);
    if (out != NULL)
        sprintf(out, "%.*s%s%.*s", (int)domain.len, domain.at, domain.len > 0 ? ":" : "",
                (int)op.len, op.at);
    return out;
}

static void read_pattern(cs_loader *ld, const cs_yaml_pattern *from, cs_pattern *to)
{
    snprintf(ld->place, sizeof ld->place, "pattern \"%.100s\": ", from->name);
    to->name = cs_loader_copy(ld, from->name);
    to->qdq = cs_loader_bool(ld, "qdq", from->qdq);
    if (to->qdq && from->steps_count > 0)
        cs_loader_fail(ld, "steps", "a qdq pattern has none; remove them");
    if (!to->qdq && from->steps_count < 2)
        cs_loader_fail(ld, "steps", "a pattern has at least two, or qdq: true");
    to->n_steps = from->steps_count;
    struct cs_step *steps = cs_loader_zalloc(ld, to->n_steps, sizeof *steps);
    for (size_t s = 0; steps != NULL && s < to->n_steps; s++) {
        const cs_yaml_step *step = &from->steps[s];
        const char **ops = cs_loader_zalloc(ld, step->ops_count, sizeof *ops);
        for (unsigned i = 0; ops != NULL && i < step->ops_count; i++)
            ops[i] = plain_op(ld, step->ops[i]);
        steps[s] = (struct cs_step){ops, step->ops_count};
    }
    to->steps = steps;
    ld->place[0] = 0;
}

static void read_patterns(cs_loader *ld, const cs_yaml_target *yaml, cutset_target *target)
{
    cs_pattern *patterns = cs_loader_zalloc(ld, yaml->patterns_count, sizeof *patterns);
    if (patterns == NULL) return;
    for (unsigned i = 0; i < yaml->patterns_count; i++)
        read_pattern(ld, &yaml->patterns[i], &patterns[i]);
    target->patterns = patterns;
    target->n_patterns = yaml->patterns_count;
}

static const cs_build *read_build(cs_loader *ld, const cs_yaml_build *yaml)
{
    cs_build *build = yaml != NULL ? cs_loader_zalloc(ld, 1, sizeof *build) : NULL;
    if (build == NULL) return NULL;
    *build = (cs_build){
        .argv = cs_loader_copies(ld, yaml->argv, yaml->argv_count),
        .n_argv = yaml->argv_count,
        .shapes = cs_loader_copies(ld, yaml->shapes, yaml->shapes_count),
        .n_shapes = yaml->shapes_count,
        .version = cs_loader_copies(ld, yaml->version, yaml->version_count),
        .n_version = yaml->version_count,
        .check = cs_loader_copies(ld, yaml->check, yaml->check_count),
        .n_check = yaml->check_count,
        .artefact = cs_loader_copy(ld, yaml->artefact),
        .deadline = cs_loader_whole(ld, "build.deadline", yaml->deadline, 1, INT32_MAX, 0),
        .log_limit = read_size(ld, "build.log_limit", yaml->log_limit),
    };
    return build;
}

/* ---- the table of operators ---- */

uint64_t cs_op_hash(cs_span domain, cs_span op)
{
    uint64_t h = cs_hash(op.at, op.len);
    return domain.len == 0 ? h
                           : h ^ (cs_hash(domain.at, domain.len) * UINT64_C(0x9e3779b97f4a7c15));
}

static const cs_op_entry *find(const cs_target_rules *rules, cs_span domain, cs_span op)
{
    if (rules->n_slots == 0) return NULL;
    size_t mask = rules->n_slots - 1;
    for (size_t i = cs_op_hash(domain, op) & mask; rules->slots[i] != CS_NONE; i = (i + 1) & mask) {
        const cs_op_entry *e = &rules->entries[rules->slots[i]];
        if (cs_span_eq(e->op, op) && cs_span_eq(e->domain, domain)) return e;
    }
    return NULL;
}

const cs_op_entry *cs_rules_find(const cs_target_rules *rules, cs_span domain, cs_span op)
{
    if (cs_span_is(domain, "ai.onnx")) domain = (cs_span){"", 0};
    const cs_op_entry *e = find(rules, domain, op);
    if (e == NULL) e = find(rules, CS_SPAN("*"), op);
    if (e == NULL && domain.len > 0) e = find(rules, domain, CS_SPAN("*"));
    return e;
}

/* The entry of `name`, added where there is none; room for all was made before. */
static cs_op_entry *entry(cs_target_rules *rules, cs_op_entry *entries, uint32_t *slots,
                          const char *name)
{
    cs_span domain, op;
    cs_loader_split_op(name, &domain, &op);
    const cs_op_entry *known = find(rules, domain, op);
    if (known != NULL) return &entries[known - entries];
    cs_op_entry *e = &entries[rules->n_entries];
    *e = (cs_op_entry){domain, op, CS_NONE, false, false};
    size_t i = cs_op_hash(domain, op) & (rules->n_slots - 1);
    while (slots[i] != CS_NONE)
        i = (i + 1) & (rules->n_slots - 1);
    slots[i] = (uint32_t)rules->n_entries++;
    return e;
}

static void index_ops(cs_loader *ld, cs_target_rules *rules)
{
    size_t names = rules->n_dds + rules->n_except, n_slots = 16;
    for (size_t r = 0; r < rules->n_rules; r++)
        names += rules->rules[r].n_ops;
    while (n_slots < 2 * names)
        n_slots *= 2;
    cs_op_entry *entries = cs_loader_zalloc(ld, names, sizeof *entries);
    uint32_t *slots = cs_loader_zalloc(ld, n_slots, sizeof *slots);
    if (slots == NULL) return;
    memset(slots, 0xff, n_slots * sizeof *slots);
    rules->entries = entries;
    rules->slots = slots;
    rules->n_slots = n_slots;

    for (size_t r = 0; r < rules->n_rules; r++)
        for (size_t i = 0; i < rules->rules[r].n_ops; i++) {
            cs_op_entry *e = entry(rules, entries, slots, rules->rules[r].ops[i]);
            if (e->rule != CS_NONE)
                cs_loader_fail(ld, "nodes.rules", "%s stands in two rules; join them",
                               rules->rules[r].ops[i]);
            e->rule = (uint32_t)r;
        }
    for (size_t i = 0; i < rules->n_except; i++) {
        cs_op_entry *e = entry(rules, entries, slots, rules->except[i]);
        if (e->rule != CS_NONE)
            cs_loader_fail(ld, "nodes.except", "%s has a rule too; remove one of them",
                           rules->except[i]);
        e->except = true;
    }
    for (size_t i = 0; i < rules->n_dds; i++)
        entry(rules, entries, slots, rules->dds[i])->dds = true;
}

static void read_all(cs_loader *ld, const cs_yaml_target *yaml, cutset_target *target)
{
    cs_target_rules *rules = target->rules;
    target->name = (char *)read_name(ld, yaml->name);
    rules->summary = cs_loader_copy(ld, yaml->summary != NULL ? yaml->summary : "");
    const char *weights = yaml->weights != NULL ? yaml->weights : "baked";
    target->refit = strcmp(weights, "refit") == 0;
    if (!target->refit && strcmp(weights, "baked") != 0)
        cs_loader_fail(ld, "weights", "\"%s\" is neither baked nor refit", weights);
    read_memory(ld, &yaml->memory, &target->memory);
    read_limits(ld, yaml, rules);
    read_patterns(ld, yaml, target);
    rules->build = read_build(ld, yaml->build);
    rules->dds = cs_loader_copies(ld, yaml->dds, yaml->dds_count);
    rules->n_dds = yaml->dds_count;
    rules->all = cs_loader_bool(ld, "nodes.all", yaml->nodes.all);
    rules->except = cs_loader_copies(ld, yaml->nodes.except, yaml->nodes.except_count);
    rules->n_except = yaml->nodes.except_count;
    if (!rules->all && yaml->nodes.rules_count == 0)
        cs_loader_fail(ld, "nodes", "takes no operator; say all: true or give rules");
    cs_loader_rules(ld, &yaml->nodes, rules);
    if (ld->status == CUTSET_OK) index_ops(ld, rules);
}

cutset_status cs_target_load(cutset_target **out, const char *path, cs_span text, cutset_error *err)
{
    cs_yaml yaml = {0};
    cutset_status status = cs_yaml_read(&yaml, path, text, err);
    if (status != CUTSET_OK) return status;
    cutset_target *target = cs_zalloc(1, sizeof *target);
    cs_target_rules *rules = cs_zalloc(1, sizeof *rules);
    if (target == NULL || rules == NULL) {
        cs_free(target);
        cs_free(rules);
        cs_yaml_free(&yaml);
        return cs_fail_memory(err);
    }
    target->rules = rules;
    target->hash = cs_hash(text.at, text.len);
    cs_loader ld = {.path = path, .arena = &rules->arena, .err = err};
    read_all(&ld, yaml.target, target);
    cs_yaml_free(&yaml);
    if (ld.status != CUTSET_OK)
        cutset_target_free(target);
    else
        *out = target;
    return ld.status;
}

void cutset_target_free(cutset_target *target)
{
    if (target == NULL) return;
    cs_arena_fini(&target->rules->arena);
    cs_free(target->rules);
    cs_free(target);
}
