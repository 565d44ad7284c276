/* nodes.rules of a target file: per operator the element types of its tensors, and conditions on
 * attributes, inputs, outputs and bodies. What each key means stands in doc/FORMAT.md; how it is
 * judged, in cond_attr.c, cond_arg.c and cond_body.c.
 */
#include "target/loader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static cs_literals read_literals(cs_loader *ld, char *const *list, size_t n)
{
    cs_literal *at = cs_loader_zalloc(ld, n, sizeof *at);
    if (at == NULL) return (cs_literals){NULL, 0};
    for (size_t i = 0; i < n; i++) {
        const char *text = cs_loader_copy(ld, list[i]);
        if (text == NULL) return (cs_literals){NULL, 0};
        at[i] = (cs_literal){.text = text, .len = strlen(text)};
        bool yes = strcmp(text, "true") == 0;
        if (yes || strcmp(text, "false") == 0) {
            at[i].is_number = true;
            at[i].number = yes;
        } else {
            at[i].is_number = cs_parse_f64(cs_span_of(text), &at[i].number);
        }
    }
    return (cs_literals){at, n};
}

static cs_versions read_versions(cs_loader *ld, const char *since, const char *until)
{
    cs_versions v = {(int32_t)cs_loader_whole(ld, "since", since, 1, INT32_MAX, 0),
                     (int32_t)cs_loader_whole(ld, "until", until, 1, INT32_MAX, INT32_MAX)};
    if (v.since > v.until) cs_loader_fail(ld, "since", "comes after until; swap them");
    return v;
}

static const cs_when *read_when(cs_loader *ld, const cs_yaml_when *yaml)
{
    cs_when *when = yaml != NULL ? cs_loader_zalloc(ld, 1, sizeof *when) : NULL;
    if (when == NULL) return NULL;
    when->attr = cs_loader_copy(ld, yaml->attr);
    when->is = read_literals(ld, yaml->is, yaml->is_count);
    when->otherwise = read_literals(ld, &yaml->otherwise, yaml->otherwise != NULL);
    when->input = (int32_t)cs_loader_whole(ld, "when.input", yaml->input, 0, CS_POS_REST - 1, -1);
    if ((when->attr == NULL) != (when->is.n == 0) || (when->attr == NULL && when->input < 0))
        cs_loader_fail(ld, "when", "give attr and is, or input");
    return when;
}

static void read_attr(cs_loader *ld, const cs_yaml_attr *yaml, cs_attr_rule *to)
{
    *to = (cs_attr_rule){
        .name = cs_loader_copy(ld, yaml->name),
        .versions = read_versions(ld, yaml->since, yaml->until),
        .when = read_when(ld, yaml->when),
        .is = read_literals(ld, yaml->is, yaml->is_count),
        .each = read_literals(ld, yaml->each, yaml->each_count),
        .otherwise = read_literals(ld, &yaml->otherwise, yaml->otherwise != NULL),
        .min = cs_loader_number(ld, "min", yaml->min, -INFINITY),
        .max = cs_loader_number(ld, "max", yaml->max, INFINITY),
        .absent = cs_loader_bool(ld, "absent", yaml->absent),
        .given = cs_loader_bool(ld, "given", yaml->given),
        .halves = cs_loader_bool(ld, "halves", yaml->halves),
        .iota = cs_loader_bool(ld, "iota", yaml->iota),
    };
    bool some = to->is.n > 0 || to->each.n > 0 || yaml->min != NULL || yaml->max != NULL ||
                to->absent || to->given || to->halves || to->iota;
    if (!some)
        cs_loader_fail(ld, yaml->name,
                       "no condition; give one of is, each, min, max, absent, given, halves, iota");
}

static void read_dim(cs_loader *ld, const cs_yaml_dim *yaml, cs_dim_rule *to)
{
    int64_t at;
    bool number = cs_parse_i64(cs_span_of(yaml->at), &at);
    if (number && yaml->otherwise != NULL)
        cs_loader_fail(ld, "dims.default", "only an attribute's name in `at` can have a default");
    if (!number && yaml->otherwise == NULL)
        cs_loader_fail(ld, "dims.at", "\"%s\" is an attribute; give its default too", yaml->at);
    const char *index = number ? yaml->at : yaml->otherwise;
    *to = (cs_dim_rule){
        .at = (int32_t)cs_loader_whole(ld, "dims.at", index, -CS_RANK_MAX, CS_RANK_MAX, 0),
        .attr = number ? NULL : cs_loader_copy(ld, yaml->at),
        .fixed = cs_loader_bool(ld, "dims.static", yaml->fixed),
        .min = cs_loader_whole(ld, "dims.min", yaml->min, 0, INT64_MAX, 0),
        .max = cs_loader_whole(ld, "dims.max", yaml->max, 0, INT64_MAX, INT64_MAX),
        .is = read_literals(ld, yaml->is, yaml->is_count),
    };
    if (!to->fixed && yaml->min == NULL && yaml->max == NULL && to->is.n == 0)
        cs_loader_fail(ld, "dims", "no condition; give one of static, is, min, max");
}

static uint32_t read_positions(cs_loader *ld, const cs_yaml_arg *yaml)
{
    if ((yaml->at_count > 0) == (yaml->from != NULL))
        cs_loader_fail(ld, "at", "give the positions as at: [0, 1], or from: 2 for 2 and later");
    uint32_t positions = 0;
    for (unsigned i = 0; i < yaml->at_count; i++)
        positions |= UINT32_C(1) << cs_loader_whole(ld, "at", yaml->at[i], 0, CS_POS_REST - 1, 0);
    int64_t from = cs_loader_whole(ld, "from", yaml->from, 0, CS_POS_REST, CS_POS_COUNT);
    for (int64_t p = from; p < CS_POS_COUNT; p++)
        positions |= UINT32_C(1) << p;
    return positions;
}

static uint32_t read_ranks(cs_loader *ld, const cs_yaml_arg *yaml)
{
    uint32_t ranks = 0;
    for (unsigned i = 0; i < yaml->rank_count; i++)
        ranks |= UINT32_C(1) << cs_loader_whole(ld, "rank", yaml->rank[i], 0, 31, 0);
    return ranks;
}

static bool read_unseen(cs_loader *ld, const char *text)
{
    if (text == NULL || strcmp(text, "refuse") == 0) return false;
    if (strcmp(text, "take") != 0)
        cs_loader_fail(ld, "unseen", "\"%s\" is neither take nor refuse", text);
    return true;
}

static void read_arg(cs_loader *ld, const cs_yaml_arg *yaml, bool output, cs_arg_rule *to)
{
    *to = (cs_arg_rule){
        .positions = read_positions(ld, yaml),
        .name = cs_loader_copy(ld, yaml->name),
        .versions = read_versions(ld, yaml->since, yaml->until),
        .when = read_when(ld, yaml->when),
        .constant = cs_loader_bool(ld, "const", yaml->constant),
        .absent = cs_loader_bool(ld, "absent", yaml->absent),
        .given = cs_loader_bool(ld, "given", yaml->given),
        .unused = cs_loader_bool(ld, "unused", yaml->unused),
        .fixed = cs_loader_bool(ld, "static", yaml->fixed),
        .unseen = read_unseen(ld, yaml->unseen),
        .valued = yaml->is_count > 0 || yaml->min != NULL || yaml->max != NULL,
        .min_rank = (int32_t)cs_loader_whole(ld, "min_rank", yaml->min_rank, 0, CS_RANK_MAX, 0),
        .max_rank =
            (int32_t)cs_loader_whole(ld, "max_rank", yaml->max_rank, 0, CS_RANK_MAX, CS_RANK_ANY),
        .ranks = read_ranks(ld, yaml),
        .types = cs_loader_types(ld, "types", yaml->types, yaml->types_count),
        .n_dims = yaml->dims_count,
        .is = read_literals(ld, yaml->is, yaml->is_count),
        .min = cs_loader_number(ld, "min", yaml->min, -INFINITY),
        .max = cs_loader_number(ld, "max", yaml->max, INFINITY),
    };
    cs_dim_rule *dims = cs_loader_zalloc(ld, to->n_dims, sizeof *dims);
    for (size_t i = 0; dims != NULL && i < to->n_dims; i++)
        read_dim(ld, &yaml->dims[i], &dims[i]);
    to->dims = dims;
    if (output && (to->constant || to->valued))
        cs_loader_fail(ld, "outputs",
                       "an output has no value before run time; "
                       "const, is, min and max go with inputs");
    if (!output && to->unused) cs_loader_fail(ld, "inputs", "unused goes with outputs");
}

static const cs_arg_rule *read_args(cs_loader *ld, const cs_yaml_arg *yaml, size_t n, bool output)
{
    cs_arg_rule *args = cs_loader_zalloc(ld, n, sizeof *args);
    for (size_t i = 0; args != NULL && i < n; i++)
        read_arg(ld, &yaml[i], output, &args[i]);
    return args;
}

/* The types by position: the operator's own, or those of the last condition that names types. */
static void spread_types(uint32_t own, const cs_arg_rule *args, size_t n,
                         uint32_t types[CS_POS_COUNT])
{
    for (uint32_t p = 0; p < CS_POS_COUNT; p++) {
        types[p] = own;
        for (size_t i = 0; i < n; i++)
            if ((args[i].positions >> p & 1) && args[i].types != 0) types[p] = args[i].types;
    }
}

static void read_rule(cs_loader *ld, const cs_yaml_rule *yaml, cs_op_rule *to)
{
    *to = (cs_op_rule){
        .ops = cs_loader_copies(ld, yaml->ops, yaml->ops_count),
        .n_ops = yaml->ops_count,
        .versions = read_versions(ld, yaml->since, yaml->until),
        .types = cs_loader_types(ld, "types", yaml->types, yaml->types_count),
        .n_attrs = yaml->attrs_count,
        .inputs = read_args(ld, yaml->inputs, yaml->inputs_count, false),
        .n_inputs = yaml->inputs_count,
        .outputs = read_args(ld, yaml->outputs, yaml->outputs_count, true),
        .n_outputs = yaml->outputs_count,
    };
    cs_attr_rule *attrs = cs_loader_zalloc(ld, to->n_attrs, sizeof *attrs);
    for (size_t i = 0; attrs != NULL && i < to->n_attrs; i++)
        read_attr(ld, &yaml->attrs[i], &attrs[i]);
    to->attrs = attrs;
    if (ld->status != CUTSET_OK) return;
    spread_types(to->types, to->inputs, to->n_inputs, to->in_types);
    spread_types(to->types, to->outputs, to->n_outputs, to->out_types);
    if (yaml->bodies == NULL) return;
    to->same_rank = cs_loader_bool(ld, "bodies.same_rank", yaml->bodies->same_rank);
    to->distinct_outputs =
        cs_loader_bool(ld, "bodies.distinct_outputs", yaml->bodies->distinct_outputs);
    to->same_carried = cs_loader_bool(ld, "bodies.same_carried", yaml->bodies->same_carried);
    to->fixed_scans = cs_loader_bool(ld, "bodies.static_scans", yaml->bodies->fixed_scans);
}

void cs_loader_rules(cs_loader *ld, const cs_yaml_nodes *yaml, cs_target_rules *rules)
{
    cs_op_rule *to = cs_loader_zalloc(ld, yaml->rules_count, sizeof *to);
    for (unsigned i = 0; to != NULL && i < yaml->rules_count; i++) {
        snprintf(ld->place, sizeof ld->place, "nodes.rules[%u] (%.100s): ", i,
                 yaml->rules[i].ops[0]);
        read_rule(ld, &yaml->rules[i], &to[i]);
    }
    ld->place[0] = 0;
    rules->rules = to;
    rules->n_rules = yaml->rules_count;
}
