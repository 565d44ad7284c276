/* Programs with views and writes, cut into engines: an engine is a function of values.
 *
 * A small imperative language runs twice: in program order, and part by part as a plan says, every
 * engine on copies of what it takes and giving copies of what it makes. Results, inputs and buffers
 * must be the same. Also checked by independent code: what the rule says about views and writers,
 * and that a write on memory of its own cuts nothing. Programs are random and seeded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/model.h"

#define SPLITMIX
#include "random.h"

#define MAX_NODES 12
#define MAX_VALUES (MAX_NODES + 6)
#define ACC 1u
#define HOST CUTSET_ALLOW_HOST

/* ---- the language ---- */

/* MAYBE looks like a view to the planner and makes a new tensor. */
typedef enum kind { PURE, VIEW, MAYBE, WRITE, DRAW } kind;

typedef struct program {
    uint32_t n_inputs, n_weights, n_nodes; /* values: inputs, weights, then one a node */
    uint32_t storage[2];                   /* of the weights */
    kind op[MAX_NODES];
    uint32_t arg[MAX_NODES][2], n_arg[MAX_NODES];
    uint32_t allow[MAX_NODES];
    uint32_t n_outputs, output[3];
} program;

static uint32_t made_by(const program *p, uint32_t node)
{
    return p->n_inputs + p->n_weights + node;
}

static void add(program *p, kind op, uint32_t a, uint32_t b, uint32_t allow)
{
    const uint32_t n = p->n_nodes++;
    p->op[n] = op;
    p->arg[n][0] = a;
    p->arg[n][1] = b;
    p->n_arg[n] = op == DRAW ? 0 : b == CUTSET_NONE ? 1 : 2;
    p->allow[n] = allow;
}

static program random_program(void)
{
    program p = {.n_inputs = 1 + below(2), .n_weights = below(3)};
    p.storage[1] = below(2);
    const uint32_t n = 2 + below(MAX_NODES - 1), writes = 1 + below(3), host = below(4);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t known = made_by(&p, i), die = below(10);
        const kind op = die < 4 ? PURE : die < 6 ? VIEW : die == 6 ? MAYBE : DRAW;
        const uint32_t recent = known > 3 && below(2) ? known - 1 - below(3) : below(known);
        add(&p,
            die >= 7 && below(4) < writes ? WRITE
            : op == DRAW && below(3)      ? PURE
                                          : op,
            recent, below(2) ? below(known) : CUTSET_NONE, below(4) < host ? HOST : ACC | HOST);
        if (p.op[i] == VIEW || p.op[i] == MAYBE) p.n_arg[i] = 1;
    }
    p.n_outputs = 1 + below(3);
    for (uint32_t i = 0; i < p.n_outputs; i++)
        p.output[i] = below(made_by(&p, p.n_nodes));
    return p;
}

/* ---- as arrays ---- */

static cutset_model *build(const program *p)
{
    const uint32_t n = p->n_nodes, n_values = made_by(p, n);
    char names[MAX_VALUES * 4];
    uint8_t kinds[MAX_VALUES] = {0};
    uint32_t types[MAX_VALUES], storages[MAX_VALUES], inputs[4], ops[MAX_NODES], flags[MAX_NODES];
    uint32_t rows[MAX_NODES + 1] = {0}, outs[MAX_NODES], out_rows[MAX_NODES + 1] = {0};
    uint32_t args[2 * MAX_NODES], writes[2 * MAX_NODES], aliases[2 * MAX_NODES];
    size_t len = 0, n_writes = 0, n_aliases = 0;
    const int64_t bytes[2] = {40, 60};
    for (uint32_t v = 0; v < n_values; v++) {
        len += (size_t)sprintf(names + len, "v%u", v) + 1;
        types[v] = 0;
        const uint32_t w = v - p->n_inputs;
        storages[v] = v >= p->n_inputs && w < p->n_weights ? p->storage[w] : CUTSET_NONE;
    }
    for (uint32_t i = 0; i < p->n_inputs; i++)
        inputs[i] = i;
    for (uint32_t i = 0; i < n; i++) {
        ops[i] = (uint32_t)p->op[i];
        flags[i] = p->op[i] == DRAW ? CUTSET_NODE_RANDOM : 0;
        rows[i + 1] = rows[i];
        for (uint32_t k = 0; k < p->n_arg[i]; k++)
            args[rows[i + 1]++] = p->arg[i][k];
        outs[i] = made_by(p, i);
        out_rows[i + 1] = i + 1;
        if (p->op[i] == WRITE) {
            writes[2 * n_writes] = i;
            writes[2 * n_writes++ + 1] = p->arg[i][0];
        }
        if (p->op[i] == VIEW || p->op[i] == MAYBE || p->op[i] == WRITE) {
            aliases[2 * n_aliases] = outs[i];
            aliases[2 * n_aliases++ + 1] = p->arg[i][0];
        }
    }
    const cutset_graph g = {.n_values = n_values,
                            .value_names = names,
                            .value_kinds = kinds,
                            .value_types = types,
                            .value_storages = storages,
                            .n_types = 1,
                            .types = "f32[10]",
                            .n_storages = 2,
                            .storage_bytes = bytes,
                            .n_inputs = p->n_inputs,
                            .n_outputs = p->n_outputs,
                            .inputs = inputs,
                            .outputs = p->output,
                            .n_nodes = n,
                            .n_ops = 5,
                            .ops = "pure\0view\0maybe\0write\0draw",
                            .node_ops = ops,
                            .node_flags = flags,
                            .arg_rows = rows,
                            .args = args,
                            .out_rows = out_rows,
                            .outs = outs,
                            .n_writes = n_writes,
                            .n_aliases = n_aliases,
                            .writes = writes,
                            .aliases = aliases,
                            .allow = p->allow};
    cutset_model *m;
    cutset_error err;
    if (cutset_model_build(&m, &g, &err) != CUTSET_OK) fail_msg("%s", err.message);
    assert_int_equal(cs_graph_verify(m->graph, &err), CUTSET_OK);
    return m;
}

static cutset_plan *plan_of(const cutset_model *m, int64_t budget)
{
    cutset_target *acc;
    cutset_plan *plan;
    cutset_error err;
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    opts.host_memory = budget;
    opts.oversize = CUTSET_OVERSIZE_KEEP;
    assert_int_equal(cutset_target_marked(&acc, "acc", 1, 0, 0, &err), CUTSET_OK);
    const cutset_target *targets[] = {acc};
    if (cutset_plan_make(&plan, m, targets, 1, &opts, &err) != CUTSET_OK)
        fail_msg("%s", err.message);
    cutset_target_free(acc);
    return plan;
}

/* ---- running ---- */

typedef struct memory { /* a tensor is a cell; a value is a handle to one */
    uint64_t cell[64 * MAX_VALUES];
    uint32_t n_cells, draws;
} memory;

static uint32_t new_cell(memory *m, uint64_t x)
{
    m->cell[m->n_cells] = x;
    return m->n_cells++;
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t salt)
{
    const uint64_t x = (a ^ salt) * 0x9e3779b97f4a7c15u + (b << 7 | b >> 57) + salt * 77;
    return x ^ x >> 29;
}

static void run(const program *p, memory *m, uint32_t *handle, uint32_t node)
{
    const uint32_t *arg = p->arg[node], out = made_by(p, node);
    const uint64_t a = p->n_arg[node] > 0 ? m->cell[handle[arg[0]]] : 0;
    const uint64_t b = p->n_arg[node] > 1 ? m->cell[handle[arg[1]]] : 1;
    switch (p->op[node]) {
    case PURE:
        handle[out] = new_cell(m, mix(a, b, node + 1));
        break;
    case VIEW:
        handle[out] = handle[arg[0]];
        break;
    case MAYBE:
        handle[out] = new_cell(m, a);
        break;
    case WRITE:
        m->cell[handle[arg[0]]] = mix(a, b, node + 100);
        handle[out] = handle[arg[0]];
        break;
    case DRAW:
        handle[out] = new_cell(m, mix(++m->draws, 5, 9));
        break;
    }
}

static void start(const program *p, memory *m, uint32_t *handle)
{
    *m = (memory){0};
    for (uint32_t v = 0; v < p->n_inputs; v++)
        handle[v] = new_cell(m, 1000 + v);
    const uint32_t storage[2] = {new_cell(m, 2000), new_cell(m, 2001)};
    for (uint32_t w = 0; w < p->n_weights; w++)
        handle[p->n_inputs + w] = storage[p->storage[w]];
}

static int by_id(const void *a, const void *b)
{
    return (int)*(const uint32_t *)a - (int)*(const uint32_t *)b;
}

/* Nodes of a part with its copies, in program order. */
static uint32_t nodes_of(const cutset_plan *plan, const cs_part *part, uint32_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < part->n_node; i++)
        out[n++] = plan->nodes.at[part->node + i];
    for (uint32_t i = 0; i < part->n_copy; i++)
        out[n++] = plan->copies.at[part->copy + i];
    qsort(out, n, sizeof *out, by_id);
    return n;
}

static void run_engine(const program *p, const cutset_plan *plan, const cs_part *part, memory *m,
                       uint32_t *handle)
{
    uint32_t own[MAX_VALUES], node[MAX_NODES], storage[2];
    for (uint32_t v = 0; v < MAX_VALUES; v++)
        own[v] = UINT32_MAX;
    for (uint32_t w = 0; w < 2; w++) /* weights are baked in: as they were at the start */
        storage[w] = new_cell(m, 2000 + w);
    for (uint32_t w = 0; w < p->n_weights; w++)
        own[p->n_inputs + w] = storage[p->storage[w]];
    for (uint32_t i = 0; i < part->n_input; i++) {
        const uint32_t v = plan->value_ids.at[plan->refs.at[part->input + i]];
        own[v] = new_cell(m, m->cell[handle[v]]);
    }
    const uint32_t n = nodes_of(plan, part, node);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < p->n_arg[node[i]]; k++)
            assert_true(own[p->arg[node[i]][k]] != UINT32_MAX);
        run(p, m, own, node[i]);
    }
    for (uint32_t i = 0; i < part->n_output; i++) {
        const uint32_t v = plan->value_ids.at[plan->refs.at[part->output + i]];
        handle[v] = new_cell(m, m->cell[own[v]]);
    }
}

static void run_plan(const program *p, const cutset_plan *plan, memory *m, uint32_t *handle)
{
    for (size_t k = 0; k < plan->parts.len; k++) {
        const cs_part *part = &plan->parts.at[k];
        uint32_t node[MAX_NODES];
        if (cs_part_is_engine(part)) {
            run_engine(p, plan, part, m, handle);
            continue;
        }
        const uint32_t n = nodes_of(plan, part, node);
        for (uint32_t i = 0; i < n; i++)
            run(p, m, handle, node[i]);
    }
}

static void same_effect(const program *p, const cutset_plan *plan)
{
    static memory eager, parted;
    uint32_t a[MAX_VALUES], b[MAX_VALUES];
    start(p, &eager, a);
    for (uint32_t i = 0; i < p->n_nodes; i++)
        run(p, &eager, a, i);
    start(p, &parted, b);
    run_plan(p, plan, &parted, b);
    for (uint32_t v = 0; v < p->n_inputs + p->n_weights; v++)
        assert_int_equal(eager.cell[a[v]], parted.cell[b[v]]);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        assert_int_equal(eager.cell[a[p->output[i]]], parted.cell[b[p->output[i]]]);
}

/* ---- what the rule says ---- */

static uint32_t root_of(const program *p, uint32_t v)
{
    for (;;) {
        const uint32_t first = made_by(p, 0);
        if (v < first) return v >= p->n_inputs ? 100 + p->storage[v - p->n_inputs] : v;
        const kind op = p->op[v - first];
        if (op != VIEW && op != MAYBE && op != WRITE) return v;
        v = p->arg[v - first][0];
    }
}

static bool is_view(const program *p, uint32_t v)
{
    const uint32_t first = made_by(p, 0);
    return v >= first && (p->op[v - first] == VIEW || p->op[v - first] == MAYBE);
}

/* The parts that write the memory of `v`, as a bit set. */
static uint32_t writers(const program *p, const uint32_t *part, uint32_t v)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        if (p->op[i] == WRITE && root_of(p, p->arg[i][0]) == root_of(p, v)) set |= 1u << part[i];
    return set;
}

static void rule_holds(const program *p, const cutset_plan *plan)
{
    uint32_t part[MAX_NODES];
    for (size_t k = 0; k < plan->parts.len; k++)
        for (uint32_t i = 0; i < plan->parts.at[k].n_node; i++)
            part[plan->nodes.at[plan->parts.at[k].node + i]] = (uint32_t)k;
    for (size_t k = 0; k < plan->parts.len; k++) {
        const cs_part *e = &plan->parts.at[k];
        if (!cs_part_is_engine(e)) continue;
        for (uint32_t i = 0; i < e->n_input + e->n_output; i++) {
            const bool in = i < e->n_input;
            const uint32_t ref = in ? e->input + i : e->output + i - e->n_input;
            const uint32_t v = plan->value_ids.at[plan->refs.at[ref]];
            if (!is_view(p, v)) continue;
            /* what comes out of an engine that holds the whole life of that memory is a new tensor */
            const uint32_t home = part[v - made_by(p, 0)];
            const bool made_inside = cs_part_is_engine(&plan->parts.at[home]);
            assert_int_equal(writers(p, part, v) & ~(1u << (made_inside ? home : k)), 0);
        }
    }
    for (uint32_t i = 0; i < p->n_nodes;
         i++) { /* all aliases of what an engine writes are its own */
        if (p->op[i] != WRITE || !cs_part_is_engine(&plan->parts.at[part[i]])) continue;
        const uint32_t root = root_of(p, p->arg[i][0]);
        assert_true(root >= made_by(p, 0) && root < 100);
        for (uint32_t k = 0; k < p->n_nodes; k++)
            if (root_of(p, made_by(p, k)) == root) assert_int_equal(part[k], part[i]);
    }
}

/* Without views and writes, or with the written memory left out, what ran on the accelerator still
 * does: only what touches written memory may be sent to the host. */
static void nothing_else_moves(const program *p, const cutset_plan *plan)
{
    for (size_t i = 0; i < plan->fallback.len; i++) {
        const cs_fallback *f = &plan->fallback.at[i];
        if (f->rule != CS_RULE_BOUNDARY) continue;
        const cs_span label = cs_strtab_get(&plan->names, f->label);
        const uint32_t v = (uint32_t)strtoul(label.at + 1, NULL, 10), node = v - made_by(p, 0);
        uint32_t part[MAX_NODES] = {0};
        bool touches = writers(p, part, v) != 0;
        for (uint32_t k = 0; k < p->n_arg[node]; k++)
            touches |= writers(p, part, p->arg[node][k]) != 0;
        if (!touches) fail_msg("v%u went to the host without touching written memory", v);
    }
}

static void random_programs(void **state)
{
    (void)state;
    const uint64_t n = getenv("CUTSET_LONG") ? 200000 : 20000;
    size_t engines = 0, moved = 0, inside = 0;
    for (uint64_t k = 0; k < n; k++) {
        seed = k * 1000003;
        const program p = random_program();
        cutset_model *m = build(&p);
        cutset_plan *plan = plan_of(m, k % 3 ? 0 : 60);
        same_effect(&p, plan);
        rule_holds(&p, plan);
        nothing_else_moves(&p, plan);
        engines += plan->engines;
        for (size_t i = 0; i < plan->fallback.len; i++)
            moved += plan->fallback.at[i].rule == CS_RULE_BOUNDARY;
        for (size_t e = 0; e < plan->parts.len; e++)
            for (uint32_t i = 0; i < plan->parts.at[e].n_node; i++)
                inside += cs_part_is_engine(&plan->parts.at[e]) &&
                          p.op[plan->nodes.at[plan->parts.at[e].node + i]] == WRITE;
        cutset_plan_free(plan);
        cutset_model_free(m);
    }
    assert_true(engines > n / 2 && moved > n / 4 && inside > n / 20);
}

/* ---- single cases ---- */

static void check_parts(const program *p, const char *expected)
{
    cutset_model *m = build(p);
    cutset_plan *plan = plan_of(m, 0);
    char text[200];
    size_t len = 0;
    for (size_t k = 0; k < plan->parts.len; k++) {
        const cs_part *part = &plan->parts.at[k];
        len += (size_t)sprintf(text + len, "%s%s{", k ? " " : "",
                               cs_part_is_engine(part) ? "acc" : "host");
        for (uint32_t i = 0; i < part->n_node; i++)
            len +=
                (size_t)sprintf(text + len, "%s%u", i ? " " : "", plan->nodes.at[part->node + i]);
        len += (size_t)sprintf(text + len, "}");
    }
    assert_string_equal(text, expected);
    same_effect(p, plan);
    cutset_plan_free(plan);
    cutset_model_free(m);
}

#define NONE CUTSET_NONE

static void known_cases(void **state)
{
    (void)state;
    program p = {.n_inputs = 1, .n_outputs = 1, .output = {3}}; /* X1: clone, mul_, add */
    add(&p, PURE, 0, NONE, ACC | HOST);
    add(&p, WRITE, 1, NONE, HOST);
    add(&p, PURE, 1, NONE, ACC | HOST);
    check_parts(&p, "acc{0} host{1} acc{2}");
    p.allow[1] = ACC | HOST; /* the whole life of the clone in one engine */
    check_parts(&p, "acc{0 1 2}");

    p = (program){.n_inputs = 1, .n_outputs = 1, .output = {4}}; /* X2: a reader before the write */
    add(&p, PURE, 0, NONE, ACC | HOST);
    add(&p, PURE, 1, NONE, ACC | HOST);
    add(&p, WRITE, 1, NONE, HOST);
    add(&p, PURE, 3, 2, ACC | HOST);
    check_parts(&p, "acc{0 1} host{2} acc{3}");

    p = (program){.n_inputs = 1, .n_outputs = 1, .output = {3}}; /* X5: a write through a view */
    add(&p, VIEW, 0, NONE, ACC | HOST);
    add(&p, WRITE, 1, NONE, HOST);
    add(&p, PURE, 0, NONE, ACC | HOST);
    check_parts(&p, "host{0 1} acc{2}");

    p = (program){.n_inputs = 1, .n_outputs = 1, .output = {3}}; /* a view with its reader */
    add(&p, WRITE, 0, NONE, HOST);
    add(&p, VIEW, 0, NONE, ACC | HOST);
    add(&p, PURE, 2, NONE, ACC | HOST);
    check_parts(&p, "host{0} acc{1 2}");

    p = (program){
        .n_inputs = 2, .n_outputs = 1, .output = {5}}; /* a write elsewhere cuts nothing */
    add(&p, PURE, 0, NONE, ACC | HOST);
    add(&p, WRITE, 1, NONE, HOST);
    add(&p, PURE, 2, NONE, ACC | HOST);
    add(&p, PURE, 4, NONE, ACC | HOST);
    check_parts(&p, "acc{0 2 3} host{1}");
}

/* A weight that is written is an input of the engine; the other is baked in. */
static void written_weights(void **state)
{
    (void)state;
    program p = {.n_inputs = 1, .n_weights = 2, .n_outputs = 1, .output = {5}, .storage = {0, 1}};
    add(&p, PURE, 1, 2, ACC | HOST);
    add(&p, WRITE, 1, NONE, HOST);
    add(&p, PURE, 3, 1, ACC | HOST);
    cutset_model *m = build(&p);
    cutset_plan *plan = plan_of(m, 0);
    assert_int_equal(plan->engines, 2);
    assert_int_equal(plan->parts.at[0].weight_bytes, 60);
    assert_int_equal(plan->parts.at[0].n_input, 1);
    assert_int_equal(m->graph->inputs.len, 2);
    same_effect(&p, plan);
    cutset_plan_free(plan);
    cutset_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_cases),
        cmocka_unit_test(written_weights),
        cmocka_unit_test(random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
