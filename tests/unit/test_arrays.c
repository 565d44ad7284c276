/* cutset_model_build: what it takes over, what it finds, what it refuses; memory that runs out. */
#include "failing_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/model.h"
#include "random.h"

#define NONE CUTSET_NONE

/* x, y -> split -> getitem 0, getitem 1; permute(w); mm(getitem 0, permuted); add_(buffer, mm) */
typedef struct sample {
    cutset_graph g;
    uint8_t kinds[9];
    uint32_t types[9], storages[9], inputs[2], outputs[2];
    uint32_t ops[6], flags[6], arg_rows[7], args[9], out_rows[7], outs[6];
    uint32_t writes[2], aliases[6], order[2], group_rows[2], group_nodes[2];
    uint32_t allow[6], reasons[6];
    int64_t bytes[2];
} sample;

static void fill(sample *s)
{
    *s = (sample){
        .kinds = {0, 0, 0, CUTSET_LIST, 0, 0, 0, 0, 0},
        .types = {0, 1, 1, NONE, 0, 0, NONE, 0, 0},
        .storages = {NONE, 0, 1, NONE, NONE, NONE, NONE, NONE, NONE},
        .inputs = {0},
        .outputs = {8, 5},
        .ops = {0, 1, 1, 2, 3, 4},
        .flags = {0, CUTSET_NODE_FOLLOW, CUTSET_NODE_FOLLOW, 0, 0, 0},
        .arg_rows = {0, 1, 2, 3, 4, 6, 8},
        .args = {0, 3, 3, 1, 4, 6, 2, 7},
        .out_rows = {0, 1, 2, 3, 4, 5, 6},
        .outs = {3, 4, 5, 6, 7, 8},
        .writes = {5, 2},
        .aliases = {4, 3, 5, 3, 8, 2},
        .order = {0, 4},
        .group_rows = {0, 2},
        .group_nodes = {0, 4},
        .allow = {1, 1, 1, 0, 1 | CUTSET_ALLOW_HOST, CUTSET_ALLOW_HOST},
        .reasons = {NONE, NONE, NONE, NONE, NONE, 0},
        .bytes = {1000, 500},
    };
    s->g = (cutset_graph){
        .n_values = 9,
        .value_names = "x\0w\0buffer\0split\0g0\0g1\0wt\0mm\0add_",
        .value_kinds = s->kinds,
        .value_types = s->types,
        .value_storages = s->storages,
        .n_types = 2,
        .types = "f32[2,x]\0f32[3,3]",
        .n_storages = 2,
        .storage_bytes = s->bytes,
        .n_inputs = 1,
        .n_outputs = 2,
        .inputs = s->inputs,
        .outputs = s->outputs,
        .n_nodes = 6,
        .n_ops = 5,
        .ops = "split\0getitem\0permute\0mm\0add_",
        .node_ops = s->ops,
        .node_flags = s->flags,
        .arg_rows = s->arg_rows,
        .args = s->args,
        .out_rows = s->out_rows,
        .outs = s->outs,
        .n_writes = 1,
        .n_aliases = 3,
        .n_order = 1,
        .n_groups = 1,
        .writes = s->writes,
        .aliases = s->aliases,
        .order = s->order,
        .group_rows = s->group_rows,
        .group_nodes = s->group_nodes,
        .allow = s->allow,
        .n_reasons = 1,
        .reasons = "user: it is excluded",
        .node_reasons = s->reasons,
    };
}

static void taken_over(void **state)
{
    (void)state;
    sample s;
    fill(&s);
    cutset_model *m;
    cutset_error err;
    if (cutset_model_build(&m, &s.g, &err)) fail_msg("%s", err.message);
    const cs_graph *g = m->graph;
    assert_int_equal(cs_graph_verify(g, &err), CUTSET_OK);
    assert_int_equal(g->nodes.len, 6);
    assert_int_equal(g->inputs.len, 2); /* x, and the buffer that add_ writes */
    assert_int_equal(g->inputs.at[1], 2);
    assert_int_equal(g->values.at[1].origin, CS_ORIGIN_WEIGHT);
    assert_true(g->nodes.at[3].flags & CS_NODE_REPEAT); /* permute of a weight */
    assert_int_equal(g->values.at[3].kind, CS_VALUE_LIST);
    assert_int_equal(g->order.len, 1);
    assert_int_equal(m->permits[3].mask, 0);
    assert_int_equal(m->permits[5].rule, CS_RULE_USER);
    assert_string_equal("it is excluded", cs_name(g->pool, m->permits[5].why).at);

    cutset_target *target;
    cutset_plan *plan;
    assert_int_equal(cutset_target_marked(&target, "npu", 2.5, 100, 0, &err), CUTSET_OK);
    const cutset_target *targets[] = {target};
    if (cutset_plan_make(&plan, m, targets, 1, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(plan->engines, 1);
    assert_int_equal(plan->parts.len, 2);
    assert_int_equal(plan->parts.at[0].n_node, 5);
    assert_int_equal(plan->parts.at[0].weight_bytes, 1000);
    assert_int_equal(plan->parts.at[0].host_build_bytes, 2600);
    assert_int_equal(plan->fallback.len, 1);
    assert_int_equal(plan->fallback.at[0].rule, CS_RULE_USER);
    cutset_plan_free(plan);
    cutset_target_free(target);
    cutset_model_free(m);
}

static void refused(sample *s, const char *message)
{
    cutset_model *m = (cutset_model *)1;
    cutset_error err;
    assert_int_equal(cutset_model_build(&m, &s->g, &err), CUTSET_BAD);
    assert_string_equal(err.message, message);
    assert_null(m);
    fill(s);
}

static void bad_arrays(void **state)
{
    (void)state;
    sample s;
    fill(&s);
    s.types[0] = 2;
    refused(&s, "graph arrays: value_types[0] is 2: give an index below 2, or CUTSET_NONE");
    s.storages[1] = 7;
    refused(&s, "graph arrays: value_storages[1] is 7: give an index below 2, or CUTSET_NONE");
    s.kinds[0] = 3;
    refused(&s, "graph arrays: value_kinds[0] is 3: give a tensor, a scalar or a list");
    s.bytes[1] = -1;
    refused(&s, "graph arrays: storage_bytes[1] is negative: give its size");
    s.inputs[0] = 9;
    refused(&s, "graph arrays: inputs[0] is 9: give an index below 9");
    s.inputs[0] = 1;
    refused(&s, "graph arrays: inputs[0] is a weight, or an input already: name each input once");
    s.outputs[1] = 100;
    refused(&s, "graph arrays: outputs[1] is 100: give an index below 9");
    s.ops[5] = 5;
    refused(&s, "graph arrays: node_ops[5] is 5: give an index below 5");
    s.flags[0] = 1u << 20;
    refused(&s, "graph arrays: node_flags[0] has unknown bits: 0x100000");
    s.arg_rows[0] = 1;
    refused(&s, "graph arrays: arg_rows[0] is 1: rows begin at 0");
    s.arg_rows[2] = 0;
    refused(&s, "graph arrays: arg_rows[2] is 0, less than the row before: give ascending rows");
    s.args[3] = 9;
    refused(&s, "graph arrays: args[3] is 9: give an index below 9");
    s.args[0] = 8;
    refused(&s, "graph arrays: node 0 reads 'add_' before it is made: give nodes in program order");
    s.outs[1] = 3;
    refused(&s, "graph arrays: node 1 makes 'split', which is an input, a weight or made already");
    s.out_rows[1] = 0;
    refused(&s, "graph arrays: node 0 makes no value: give it one, which also names it");
    s.writes[0] = 6;
    refused(&s, "graph arrays: pair 0 of writes is (6, 2): give indices below 6 and 9");
    s.aliases[5] = 9;
    refused(&s, "graph arrays: pair 2 of aliases is (8, 9): give indices below 9 and 9");
    s.order[1] = 6;
    refused(&s, "graph arrays: pair 0 of order is (0, 6): give indices below 6 and 6");
    s.group_nodes[1] = 6;
    refused(&s, "graph arrays: group_nodes[1] is 6: give an index below 6");
    s.g.value_names = "x\0w\0buffer\0split\0g0\0x\0wt\0mm\0add_";
    refused(&s, "graph arrays: value_names[5] is 'x', which is empty or named before: give each "
                "value a name of its own");
    s.g.reasons = "because: no";
    refused(&s, "graph arrays: reason 'because: no' begins with no rule: write \"op: why\"");
    s.reasons[0] = 1;
    refused(&s, "graph arrays: node_reasons[0] is 1: give an index below 1");
    s.order[0] = 4, s.order[1] = 0;
    cutset_model *m;
    cutset_error err;
    assert_int_equal(cutset_model_build(&m, &s.g, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "cycle"));
}

/* Any one entry changed to anything: a model or a refusal, never a fault. */
static void random_entries(void **state)
{
    (void)state;
    seed = 1;
    int built = 0, tries = getenv("CUTSET_LONG") ? 400000 : 40000;
    for (int i = 0; i < tries; i++) {
        sample s;
        fill(&s);
        uint32_t *begin = s.types, *end = s.reasons + 6;
        for (int k = 1 + i % 3; k-- > 0;) {
            const uint32_t at = below((uint32_t)(end - begin));
            const uint64_t bits = random_bits();
            begin[at] = bits >> 62 ? (uint32_t)(bits >> 33) % 10 : (uint32_t)(bits >> 32);
        }
        /* Rows say how long their arrays are, which the caller must have. */
        for (int k = 0; k < 7; k++)
            if (s.arg_rows[k] > 8 || s.out_rows[k] > 6) s.arg_rows[0] = 1;
        if (s.group_rows[1] > 2) s.group_rows[0] = 1;
        cutset_model *m;
        cutset_error err;
        if (cutset_model_build(&m, &s.g, &err)) continue;
        assert_int_equal(cs_graph_verify(m->graph, &err), CUTSET_OK);
        cutset_model_free(m);
        built++;
    }
    assert_true(built > tries / 100);
}

static void memory_runs_out(void **state)
{
    (void)state;
    sample s;
    fill(&s);
    for (long n = 0;; n++) {
        cutset_model *m = NULL;
        cutset_error err;
        alloc_fail_at(n);
        const cutset_status status = cutset_model_build(&m, &s.g, &err);
        const bool failed = alloc_failed();
        alloc_fail_at(-1);
        if (!failed) {
            assert_int_equal(status, CUTSET_OK);
            cutset_model_free(m);
            assert_true(n > 20);
            return;
        }
        assert_int_equal(status, CUTSET_SYSTEM);
        assert_null(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_over),
        cmocka_unit_test(bad_arrays),
        cmocka_unit_test(random_entries),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
