/* Random graphs with random decisions, for the tests of plans; seeded, alike on every machine. */
#ifndef CS_TESTS_PLAN_FIXTURE_H
#define CS_TESTS_PLAN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/assemble.h"

typedef struct fixture {
    uint64_t seed;
    cs_graph *g;
    cs_decision d;
    cutset_target one, two;
    const cutset_target *targets[2];
    cutset_plan *plan;
    cutset_error err;
} fixture;

static inline uint32_t draw(fixture *f, uint32_t below)
{
    f->seed = f->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(f->seed >> 33) % below;
}

static inline cs_str text_of(fixture *f, const char *text)
{
    return cs_strtab_add(&f->g->pool->names, cs_span_of(text), false);
}

/* Mostly of known size; `strange` allows symbols, unknown dims, ranks and types. */
static inline cs_type draw_type(fixture *f, bool strange)
{
    static const char *const odd[] = {
        "f32[N,2]", "f32[?,3]",     "f32",      "?",
        "str[2]",   "i64[2*N+_s1]", "seq(f32)", "f16[\"my dim\",max(M,N)]"};
    static const char *const even[] = {"f32[3,5]", "i8[7]",   "f32[]",   "i4[3]",
                                       "f64[2,2]", "u8[0,4]", "bool[9]", "f16[11]"};
    const char *text = strange && draw(f, 6) == 0 ? odd[draw(f, 8)] : even[draw(f, 8)];
    cs_type type;
    assert_int_equal(cs_type_parse(f->g->pool, cs_span_of(text), &type, NULL), CUTSET_OK);
    return type;
}

static inline uint32_t draw_value(fixture *f, const char *letter, cs_origin origin, bool strange)
{
    char name[40];
    snprintf(name, sizeof name, "%s%zu", letter, f->g->values.len);
    if (strange && draw(f, 30) == 0)
        snprintf(name, sizeof name, "\xff\n\"%zu\\", f->g->values.len); /* not UTF-8, and hard */
    const cs_type type = draw_type(f, strange && origin != CS_ORIGIN_WEIGHT);
    return cs_graph_add_value(f->g, text_of(f, name), type, origin);
}

static inline void draw_weights(fixture *f, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t v = draw_value(f, "w", CS_ORIGIN_WEIGHT, false);
        cs_value *value = &f->g->values.at[v];
        if (i > 0 && draw(f, 4) == 0) { /* tied */
            value->storage = f->g->values.at[v - 1].storage;
            value->type = f->g->values.at[v - 1].type;
            continue;
        }
        const cs_type_info *type = cs_type_get(f->g->pool, value->type);
        value->storage =
            cs_graph_add_storage(f->g, cs_type_bytes(f->g->pool, value->type), type->elem, NULL);
    }
}

static inline void draw_node(fixture *f, bool strange)
{
    static const char *const ops[] = {"Conv", "Relu", "Add", "Concat", "Split"};
    const uint32_t before = (uint32_t)f->g->values.len;
    const uint32_t kind = draw(f, 6);
    char name[24];
    snprintf(name, sizeof name, "/node/%zu", f->g->nodes.len);
    const cs_str domain = kind == 5 ? text_of(f, "com.microsoft") : 0;
    cs_graph_add_node(f->g, text_of(f, kind == 5 ? "Gelu" : ops[kind]), domain, text_of(f, name));
    const uint32_t args = draw(f, 5);
    for (uint32_t a = 0; a < args; a++) {
        const uint32_t back = before < 12 || draw(f, 4) == 0 ? before : 12;
        assert_true(
            cs_graph_add_arg(f->g, draw(f, 12) == 0 ? CS_NONE : before - 1 - draw(f, back)));
    }
    const uint32_t outs = draw(f, 8) == 0 ? draw(f, 4) : 1;
    for (uint32_t o = 0; o < outs; o++)
        assert_true(cs_graph_add_out(
            f->g, draw(f, 10) == 0 ? CS_NONE : draw_value(f, "v", CS_ORIGIN_NODE, strange)));
}

static inline void draw_graph(fixture *f, uint32_t n, bool strange)
{
    cs_pool *pool = cs_pool_new();
    assert_non_null(pool);
    f->g = cs_graph_new(pool, NULL);
    assert_non_null(f->g);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t v = draw_value(f, "x", CS_ORIGIN_INPUT, strange);
        assert_true(cs_vec_push(&f->g->inputs, v));
    }
    draw_weights(f, 1 + n / 4);
    for (uint32_t i = 0; i < n; i++)
        draw_node(f, strange);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(cs_vec_push(&f->g->outputs, draw(f, (uint32_t)f->g->values.len)));
    assert_true(cs_vec_push(&f->g->outputs, (uint32_t)f->g->values.len - 1));
    assert_int_equal(cs_graph_seal(f->g, &f->err), CUTSET_OK);
}

/* The latest part among the nodes that `node` needs. */
static inline uint32_t latest_part(const fixture *f, uint32_t node)
{
    const cs_graph *g = f->g;
    const cs_node *n = &g->nodes.at[node];
    uint32_t latest = 0;
    for (uint32_t a = 0; a < cs_n_reads(n); a++) {
        const uint32_t v = cs_args(g, n)[a];
        if (v == CS_NONE || g->values.at[v].origin != CS_ORIGIN_NODE) continue;
        const uint32_t p = f->d.part[g->values.at[v].from];
        if (p > latest) latest = p;
    }
    return latest;
}

/* Parts along the edges, none empty. */
static inline void draw_decision(fixture *f, uint32_t parts)
{
    const uint32_t n = (uint32_t)f->g->nodes.len;
    cs_decision *d = &f->d;
    *d = (cs_decision){
        .n_nodes = n, .part = cs_zalloc(n, 4), .reasons = cs_zalloc(n, sizeof(cs_reason))};
    uint32_t *number = cs_zalloc(parts, 4);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t node = f->g->topo[i], least = latest_part(f, node);
        d->part[node] = least + draw(f, parts - least);
        if (draw(f, 3) > 0) d->part[node] = least;
        number[d->part[node]] = 1;
    }
    for (uint32_t p = 0; p < parts; p++)
        if (number[p]) number[p] = d->n_parts++;
    for (uint32_t i = 0; i < n; i++)
        d->part[i] = number[d->part[i]];
    cs_free(number);
    d->part_target = cs_zalloc(d->n_parts, sizeof *d->part_target);
    d->part_oversized = cs_zalloc(d->n_parts, sizeof *d->part_oversized);
    for (uint32_t p = 0; p < d->n_parts; p++) {
        d->part_target[p] = (int32_t)draw(f, 3) - 1;
        d->engines += d->part_target[p] >= 0;
    }
    d->engines_bound = d->engines > 0 ? d->engines - draw(f, 2) : 0;
    d->bound_kind = (cs_bound_kind)draw(f, 4);
}

static inline void draw_reasons(fixture *f)
{
    for (uint32_t i = 0; i < f->d.n_nodes; i++) {
        if (f->d.part_target[f->d.part[i]] >= 0) continue;
        f->d.reasons[i] = (cs_reason){.rule = (cs_rule)(1 + draw(f, CS_RULE_COUNT - 1)),
                                      .target = (int32_t)draw(f, 2),
                                      .why = cs_plan_str(f->plan, CS_SPAN("it is not supported")),
                                      .saved = (int64_t)draw(f, 3) - 1};
    }
    f->d.certificate = cs_zalloc(3, sizeof(uint32_t));
    f->d.n_certificate = f->d.n_nodes < 3 ? f->d.n_nodes : 3;
    for (uint32_t i = 0; i < f->d.n_certificate; i++)
        f->d.certificate[i] = i;
}

static inline void set_targets(fixture *f)
{
    static char one[] = "acc", two[] = "engine-2.1";
    f->one = (cutset_target){.name = one, .hash = 1};
    f->two = (cutset_target){.name = two, .hash = UINT64_C(0xfedcba9876543210)};
    for (int e = 0; e < CS_ELEM_COUNT; e++) {
        f->one.memory.host_factor[e] = f->one.memory.device_factor[e] = 1000000;
        f->two.memory.host_factor[e] = 4000000;
        f->two.memory.device_factor[e] = 1200000;
    }
    f->two.memory.host_base = 1000;
    f->two.memory.device_base = 10;
    f->targets[0] = &f->one;
    f->targets[1] = &f->two;
}

static inline void make_plan(fixture *f, const char *path)
{
    const cs_plan_source source = {
        .graph = f->g, .path = path, .hash = UINT64_C(0x0123456789abcdef)};
    assert_int_equal(cs_plan_assemble(f->plan, &source, f->targets, 2, &f->d, &f->err), CUTSET_OK);
}

static inline void begin(fixture *f, uint64_t seed, uint32_t n, uint32_t parts, bool strange)
{
    *f = (fixture){.seed = seed};
    f->plan = cs_plan_new();
    assert_non_null(f->plan);
    draw_graph(f, n, strange);
    draw_decision(f, parts);
    draw_reasons(f);
    set_targets(f);
}

static inline void end(fixture *f)
{
    cs_plan_free(f->plan);
    cs_free(f->d.part);
    cs_free(f->d.part_target);
    cs_free(f->d.part_oversized);
    cs_free(f->d.reasons);
    cs_free(f->d.certificate);
    cs_graph_free(f->g);
}

#endif
