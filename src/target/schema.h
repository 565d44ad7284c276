/* The layout of a target file as libcyaml reads it: structure and key names only. Every scalar
 * stays text; load.c gives it a meaning, because libcyaml reads 3.5 as the whole number 3 and any
 * unknown word as true. An absent scalar is NULL, an absent list has count 0.
 */
#ifndef CS_TARGET_SCHEMA_H
#define CS_TARGET_SCHEMA_H

#include "graph/type.h"

#define CS_YAML_MAX (1 << 20) /* bytes of a target file */

typedef struct cs_yaml_when {
    char *attr, *otherwise, *input;
    char **is;
    unsigned is_count;
} cs_yaml_when;

typedef struct cs_yaml_attr {
    char *name, *since, *until, *otherwise, *min, *max, *absent, *given, *halves, *iota;
    char **is, **each;
    unsigned is_count, each_count;
    cs_yaml_when *when;
} cs_yaml_attr;

typedef struct cs_yaml_dim {
    char *at, *otherwise, *fixed, *min, *max;
    char **is;
    unsigned is_count;
} cs_yaml_dim;

typedef struct cs_yaml_arg {
    char *from, *name, *since, *until, *constant, *absent, *given, *unused, *fixed, *unseen;
    char *min_rank, *max_rank, *min, *max;
    char **at, **types, **rank, **is;
    unsigned at_count, types_count, rank_count, is_count;
    cs_yaml_dim *dims;
    unsigned dims_count;
    cs_yaml_when *when;
} cs_yaml_arg;

typedef struct cs_yaml_bodies {
    char *same_rank, *distinct_outputs, *same_carried, *fixed_scans;
} cs_yaml_bodies;

typedef struct cs_yaml_rule {
    char *since, *until;
    char **ops, **types;
    unsigned ops_count, types_count;
    cs_yaml_attr *attrs;
    cs_yaml_arg *inputs, *outputs;
    unsigned attrs_count, inputs_count, outputs_count;
    cs_yaml_bodies *bodies;
} cs_yaml_rule;

typedef struct cs_yaml_step {
    char **ops;
    unsigned ops_count;
} cs_yaml_step;

typedef struct cs_yaml_pattern {
    char *name, *qdq;
    cs_yaml_step *steps;
    unsigned steps_count;
} cs_yaml_pattern;

typedef struct cs_yaml_never {
    char *why;
    char **types;
    unsigned types_count;
} cs_yaml_never;

/* A factor: one number, or a number by element type. */
typedef struct cs_yaml_factors {
    char *otherwise;
    char *elem[CS_ELEM_COUNT];
} cs_yaml_factors;

typedef struct cs_yaml_memory {
    char *host_base, *device_base;
    char *host, *device;                  /* one number, or NULL and ... */
    cs_yaml_factors *host_by, *device_by; /* ... by type, or NULL */
} cs_yaml_memory;

typedef struct cs_yaml_opset {
    char *min, *max;
} cs_yaml_opset;

typedef struct cs_yaml_tensors {
    char *max_rank, *ranked;
    cs_yaml_never *never;
    unsigned never_count;
} cs_yaml_tensors;

typedef struct cs_yaml_boundary {
    char *max_rank, *ranked;
    char **types, **inputs, **outputs;
    unsigned types_count, inputs_count, outputs_count;
} cs_yaml_boundary;

typedef struct cs_yaml_nodes {
    char *all;
    char **except;
    unsigned except_count;
    cs_yaml_rule *rules;
    unsigned rules_count;
} cs_yaml_nodes;

typedef struct cs_yaml_build {
    char **argv, **shapes, **version, **check;
    unsigned argv_count, shapes_count, version_count, check_count;
    char *artefact, *deadline, *log_limit;
} cs_yaml_build;

typedef struct cs_yaml_target {
    char *name, *summary, *weights;
    cs_yaml_opset opset;
    cs_yaml_tensors tensors;
    cs_yaml_boundary boundary;
    cs_yaml_memory memory;
    char **dds;
    unsigned dds_count;
    cs_yaml_pattern *patterns;
    unsigned patterns_count;
    cs_yaml_nodes nodes;
    cs_yaml_build *build;
} cs_yaml_target;

typedef struct cs_yaml {
    cs_yaml_target *target;
    unsigned variant; /* which memory factors are by type */
} cs_yaml;

/* Silent. CUTSET_BAD names `path`, the line where libcyaml tells it, the key and the cause. */
cutset_status cs_yaml_read(cs_yaml *out, const char *path, cs_span text, cutset_error *err);
void cs_yaml_free(cs_yaml *yaml);

#endif
