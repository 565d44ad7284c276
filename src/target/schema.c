/* The shape of a target file, and reading it with libcyaml without a word on stderr.
 *
 * libcyaml checks structure, unknown, repeated and missing keys. It has no "number or mapping", so
 * the two memory factors are tried as numbers first and as mappings when it says that one is there.
 * Anchors and aliases are refused (no expansion bombs), nesting is bounded by the schema, sizes by
 * CS_YAML_MAX and by the counts below.
 */
#include "target/schema.h"

#include <cyaml/cyaml.h>
#include <stdio.h>
#include <string.h>

#define WORD 400  /* bytes of a scalar */
#define LIST 4000 /* elements of a list */
#define OPT (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(key, T, member) CYAML_FIELD_STRING_PTR(key, OPT, T, member, 1, WORD)
#define TEXTS(key, T, member) CYAML_FIELD_SEQUENCE(key, OPT, T, member, &text_schema, 1, LIST)
#define LISTED(key, T, member, schema) CYAML_FIELD_SEQUENCE(key, OPT, T, member, &schema, 1, LIST)
#define MAP(key, T, member, fields) CYAML_FIELD_MAPPING(key, CYAML_FLAG_OPTIONAL, T, member, fields)
#define SCHEMA(name, T, fields)                                                                    \
    static const cyaml_schema_value_t name = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, T, fields)}
#define FIELDS(name) static const cyaml_schema_field_t name[]

static const cyaml_schema_value_t text_schema = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, WORD)};

FIELDS(when_fields) = {
    TEXT("attr", cs_yaml_when, attr),
    TEXTS("is", cs_yaml_when, is),
    TEXT("default", cs_yaml_when, otherwise),
    TEXT("input", cs_yaml_when, input),
    CYAML_FIELD_END,
};

FIELDS(attr_fields) = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, cs_yaml_attr, name, 1, WORD),
    TEXT("since", cs_yaml_attr, since),
    TEXT("until", cs_yaml_attr, until),
    TEXTS("is", cs_yaml_attr, is),
    TEXTS("each", cs_yaml_attr, each),
    TEXT("default", cs_yaml_attr, otherwise),
    TEXT("min", cs_yaml_attr, min),
    TEXT("max", cs_yaml_attr, max),
    TEXT("absent", cs_yaml_attr, absent),
    TEXT("given", cs_yaml_attr, given),
    TEXT("halves", cs_yaml_attr, halves),
    TEXT("iota", cs_yaml_attr, iota),
    CYAML_FIELD_MAPPING_PTR("when", OPT, cs_yaml_attr, when, when_fields),
    CYAML_FIELD_END,
};
SCHEMA(attr_schema, cs_yaml_attr, attr_fields);

FIELDS(dim_fields) = {
    CYAML_FIELD_STRING_PTR("at", CYAML_FLAG_POINTER, cs_yaml_dim, at, 1, WORD),
    TEXT("default", cs_yaml_dim, otherwise),
    TEXT("static", cs_yaml_dim, fixed),
    TEXT("min", cs_yaml_dim, min),
    TEXT("max", cs_yaml_dim, max),
    TEXTS("is", cs_yaml_dim, is),
    CYAML_FIELD_END,
};
SCHEMA(dim_schema, cs_yaml_dim, dim_fields);

FIELDS(arg_fields) = {
    TEXTS("at", cs_yaml_arg, at),
    TEXT("from", cs_yaml_arg, from),
    TEXT("name", cs_yaml_arg, name),
    TEXT("since", cs_yaml_arg, since),
    TEXT("until", cs_yaml_arg, until),
    TEXTS("types", cs_yaml_arg, types),
    TEXT("const", cs_yaml_arg, constant),
    TEXT("absent", cs_yaml_arg, absent),
    TEXT("given", cs_yaml_arg, given),
    TEXT("unused", cs_yaml_arg, unused),
    TEXTS("rank", cs_yaml_arg, rank),
    TEXT("min_rank", cs_yaml_arg, min_rank),
    TEXT("max_rank", cs_yaml_arg, max_rank),
    TEXT("static", cs_yaml_arg, fixed),
    LISTED("dims", cs_yaml_arg, dims, dim_schema),
    TEXTS("is", cs_yaml_arg, is),
    TEXT("min", cs_yaml_arg, min),
    TEXT("max", cs_yaml_arg, max),
    TEXT("unseen", cs_yaml_arg, unseen),
    CYAML_FIELD_MAPPING_PTR("when", OPT, cs_yaml_arg, when, when_fields),
    CYAML_FIELD_END,
};
SCHEMA(arg_schema, cs_yaml_arg, arg_fields);

FIELDS(bodies_fields) = {
    TEXT("same_rank", cs_yaml_bodies, same_rank),
    TEXT("distinct_outputs", cs_yaml_bodies, distinct_outputs),
    TEXT("same_carried", cs_yaml_bodies, same_carried),
    TEXT("static_scans", cs_yaml_bodies, fixed_scans),
    CYAML_FIELD_END,
};

FIELDS(rule_fields) = {
    CYAML_FIELD_SEQUENCE("ops", CYAML_FLAG_POINTER, cs_yaml_rule, ops, &text_schema, 1, LIST),
    TEXTS("types", cs_yaml_rule, types),
    TEXT("since", cs_yaml_rule, since),
    TEXT("until", cs_yaml_rule, until),
    LISTED("attrs", cs_yaml_rule, attrs, attr_schema),
    LISTED("inputs", cs_yaml_rule, inputs, arg_schema),
    LISTED("outputs", cs_yaml_rule, outputs, arg_schema),
    CYAML_FIELD_MAPPING_PTR("bodies", OPT, cs_yaml_rule, bodies, bodies_fields),
    CYAML_FIELD_END,
};
SCHEMA(rule_schema, cs_yaml_rule, rule_fields);

FIELDS(step_fields) = {
    CYAML_FIELD_SEQUENCE("ops", CYAML_FLAG_POINTER, cs_yaml_step, ops, &text_schema, 1, LIST),
    CYAML_FIELD_END,
};
SCHEMA(step_schema, cs_yaml_step, step_fields);

FIELDS(pattern_fields) = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, cs_yaml_pattern, name, 1, WORD),
    TEXT("qdq", cs_yaml_pattern, qdq),
    LISTED("steps", cs_yaml_pattern, steps, step_schema),
    CYAML_FIELD_END,
};
SCHEMA(pattern_schema, cs_yaml_pattern, pattern_fields);

FIELDS(never_fields) = {
    CYAML_FIELD_SEQUENCE("types", CYAML_FLAG_POINTER, cs_yaml_never, types, &text_schema, 1, LIST),
    CYAML_FIELD_STRING_PTR("why", CYAML_FLAG_POINTER, cs_yaml_never, why, 1, WORD),
    CYAML_FIELD_END,
};
SCHEMA(never_schema, cs_yaml_never, never_fields);

#define FACTOR_FIELD(name, code, text, bits) TEXT(#text, cs_yaml_factors, elem[CS_##name]),
FIELDS(factor_fields) = {
    CYAML_FIELD_STRING_PTR("default", CYAML_FLAG_POINTER, cs_yaml_factors, otherwise, 1, WORD),
    CS_ELEMS(FACTOR_FIELD) CYAML_FIELD_END,
};

#define FACTOR(key, member) TEXT(key, cs_yaml_memory, member)
#define FACTOR_BY(key, member)                                                                     \
    CYAML_FIELD_MAPPING_PTR(key, OPT, cs_yaml_memory, member, factor_fields)
#define HOST "host_per_weight_byte"
#define DEVICE "device_per_weight_byte"
#define BASES                                                                                      \
    TEXT("host_base", cs_yaml_memory, host_base), TEXT("device_base", cs_yaml_memory, device_base)
enum { HOST_BY = 1, DEVICE_BY = 2 };
static const cyaml_schema_field_t memory_fields[4][5] = {
    {BASES, FACTOR(HOST, host), FACTOR(DEVICE, device), CYAML_FIELD_END},
    {BASES, FACTOR_BY(HOST, host_by), FACTOR(DEVICE, device), CYAML_FIELD_END},
    {BASES, FACTOR(HOST, host), FACTOR_BY(DEVICE, device_by), CYAML_FIELD_END},
    {BASES, FACTOR_BY(HOST, host_by), FACTOR_BY(DEVICE, device_by), CYAML_FIELD_END},
};

FIELDS(opset_fields) = {
    TEXT("min", cs_yaml_opset, min),
    TEXT("max", cs_yaml_opset, max),
    CYAML_FIELD_END,
};

FIELDS(tensors_fields) = {
    TEXT("max_rank", cs_yaml_tensors, max_rank),
    TEXT("ranked", cs_yaml_tensors, ranked),
    LISTED("never", cs_yaml_tensors, never, never_schema),
    CYAML_FIELD_END,
};

FIELDS(boundary_fields) = {
    TEXT("max_rank", cs_yaml_boundary, max_rank), TEXT("ranked", cs_yaml_boundary, ranked),
    TEXTS("types", cs_yaml_boundary, types),      TEXTS("inputs", cs_yaml_boundary, inputs),
    TEXTS("outputs", cs_yaml_boundary, outputs),  CYAML_FIELD_END,
};

FIELDS(nodes_fields) = {
    TEXT("all", cs_yaml_nodes, all),
    TEXTS("except", cs_yaml_nodes, except),
    LISTED("rules", cs_yaml_nodes, rules, rule_schema),
    CYAML_FIELD_END,
};

FIELDS(build_fields) = {
    CYAML_FIELD_SEQUENCE("argv", CYAML_FLAG_POINTER, cs_yaml_build, argv, &text_schema, 1, LIST),
    TEXTS("shapes", cs_yaml_build, shapes),
    TEXTS("version", cs_yaml_build, version),
    TEXTS("check", cs_yaml_build, check),
    TEXT("artefact", cs_yaml_build, artefact),
    TEXT("deadline", cs_yaml_build, deadline),
    TEXT("log_limit", cs_yaml_build, log_limit),
    CYAML_FIELD_END,
};

#define TARGET_FIELDS(variant)                                                                     \
    {                                                                                              \
        CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, cs_yaml_target, name, 1, WORD),         \
            TEXT("summary", cs_yaml_target, summary), TEXT("weights", cs_yaml_target, weights),    \
            MAP("opset", cs_yaml_target, opset, opset_fields),                                     \
            MAP("tensors", cs_yaml_target, tensors, tensors_fields),                               \
            MAP("boundary", cs_yaml_target, boundary, boundary_fields),                            \
            MAP("memory", cs_yaml_target, memory, memory_fields[variant]),                         \
            TEXTS("dds", cs_yaml_target, dds),                                                     \
            LISTED("patterns", cs_yaml_target, patterns, pattern_schema),                          \
            CYAML_FIELD_MAPPING("nodes", CYAML_FLAG_DEFAULT, cs_yaml_target, nodes, nodes_fields), \
            CYAML_FIELD_MAPPING_PTR("build", OPT, cs_yaml_target, build, build_fields),            \
            CYAML_FIELD_END,                                                                       \
    }
static const cyaml_schema_field_t target_fields[4][12] = {TARGET_FIELDS(0), TARGET_FIELDS(1),
                                                          TARGET_FIELDS(2), TARGET_FIELDS(3)};
#define TARGET_SCHEMA(variant)                                                                     \
    {                                                                                              \
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, cs_yaml_target, target_fields[variant])            \
    }
static const cyaml_schema_value_t target_schema[4] = {TARGET_SCHEMA(0), TARGET_SCHEMA(1),
                                                      TARGET_SCHEMA(2), TARGET_SCHEMA(3)};

/* ---- what libcyaml has to say ---- */

typedef struct cs_heard {
    bool ignored;    /* it warned that it leaves something out */
    char cause[300]; /* the first line that is one */
    char field[100]; /* innermost field of the backtrace */
    int line;        /* 0: not told */
} cs_heard;

static void hear(cyaml_log_t level, void *context, const char *format, va_list args)
{
    cs_heard *heard = context;
    char line[300];
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = 0;
    if (level == CYAML_LOG_WARNING) heard->ignored = true;
    if (level != CYAML_LOG_ERROR) return;
    const char *at = strstr(line, "(line: ");
    if (at != NULL) {
        if (heard->line == 0) sscanf(at, "(line: %d", &heard->line);
        if (heard->field[0] == 0) sscanf(line, "  in mapping field '%99[^']'", heard->field);
    } else if (strstr(line, "Backtrace") == NULL && heard->cause[0] == 0) {
        const char *text = strncmp(line, "Load: ", 6) == 0 ? line + 6 : line;
        snprintf(heard->cause, sizeof heard->cause, "%s", text);
    }
}

static void *grab(void *context, void *p, size_t size)
{
    (void)context;
    if (size > 0) return cs_realloc(p, size, 1);
    cs_free(p);
    return NULL;
}

static cyaml_config_t config(cs_heard *heard)
{
    return (cyaml_config_t){.log_fn = hear,
                            .log_ctx = heard,
                            .mem_fn = grab,
                            .log_level = CYAML_LOG_WARNING,
                            .flags = CYAML_CFG_NO_ALIAS};
}

static cutset_status fail(const char *path, const cs_heard *heard, cyaml_err_t code,
                          cutset_error *err)
{
    if (code == CYAML_ERR_OOM || code == CYAML_ERR_LIBYAML_PARSER_INIT) return cs_fail_memory(err);
    char place[130] = "";
    if (heard->line > 0 && heard->field[0] != 0)
        snprintf(place, sizeof place, "near line %d, key \"%s\": ", heard->line, heard->field);
    else if (heard->line > 0)
        snprintf(place, sizeof place, "near line %d: ", heard->line);
    return cs_fail(err, CUTSET_BAD, "%s: %s%s; doc/FORMAT.md lists the keys of a target file", path,
                   place, heard->cause[0] != 0 ? heard->cause : cyaml_strerror(code));
}

cutset_status cs_yaml_read(cs_yaml *out, const char *path, cs_span text, cutset_error *err)
{
    if (text.len > CS_YAML_MAX)
        return cs_fail(err, CUTSET_BAD,
                       "%s: a target file has at most 1 MiB, this one has %zu bytes", path,
                       text.len);
    for (unsigned variant = 0;;) {
        cs_heard heard = {0};
        cyaml_config_t cfg = config(&heard);
        cs_yaml_target *target = NULL;
        cyaml_err_t code = cyaml_load_data((const uint8_t *)text.at, text.len, &cfg,
                                           &target_schema[variant], (void **)&target, NULL);
        if (code == CYAML_OK && target != NULL && !heard.ignored) {
            *out = (cs_yaml){target, variant};
            return CUTSET_OK;
        }
        if (code == CYAML_OK) {
            const char *cause = target != NULL ? "more than one YAML document; keep the first"
                                               : "empty; a target file has at least name and nodes";
            cyaml_free(&cfg, &target_schema[variant], target, 0);
            return cs_fail(err, CUTSET_BAD, "%s: %s", path, cause);
        }
        unsigned found = strstr(heard.cause, "MAPPING_START") == NULL ? 0
                         : strcmp(heard.field, HOST) == 0             ? HOST_BY
                         : strcmp(heard.field, DEVICE) == 0           ? DEVICE_BY
                                                                      : 0;
        if ((found & ~variant) == 0) return fail(path, &heard, code, err);
        variant |= found;
    }
}

void cs_yaml_free(cs_yaml *yaml)
{
    cs_heard heard = {0};
    cyaml_config_t cfg = config(&heard);
    if (yaml->target != NULL) cyaml_free(&cfg, &target_schema[yaml->variant], yaml->target, 0);
    yaml->target = NULL;
}
