/* Parts, boundaries and forecasts of random decisions against naive recomputation. */
#include "plan_fixture.h"

enum { ROUNDS = 400 };

static bool made_in(const fixture *f, uint32_t v, uint32_t p)
{
    const cs_value *value = &f->g->values.at[v];
    return value->origin == CS_ORIGIN_NODE && f->d.part[value->from] == p;
}

static bool is_output(const fixture *f, uint32_t v)
{
    for (size_t i = 0; i < f->g->outputs.len; i++)
        if (f->g->outputs.at[i] == v) return true;
    return false;
}

/* Is `v` read by a node of part `p`? By looking at every node. */
static bool read_in(const fixture *f, uint32_t v, uint32_t p)
{
    for (uint32_t i = 0; i < f->g->nodes.len; i++) {
        const cs_node *n = &f->g->nodes.at[i];
        if (f->d.part[i] != p) continue;
        for (uint32_t a = 0; a < cs_n_reads(n); a++)
            if (cs_args(f->g, n)[a] == v) return true;
    }
    return false;
}

static bool read_elsewhere(const fixture *f, uint32_t v, uint32_t own)
{
    for (uint32_t p = 0; p < f->d.n_parts; p++)
        if (p != own && read_in(f, v, p)) return true;
    return false;
}

static bool is_part_output(const fixture *f, uint32_t v, uint32_t p)
{
    return made_in(f, v, p) && (is_output(f, v) || read_elsewhere(f, v, p));
}

static uint32_t value_at(const fixture *f, uint32_t ref)
{
    return f->plan->value_ids.at[f->plan->refs.at[ref]];
}

static bool among(const fixture *f, uint32_t first, uint32_t n, uint32_t v)
{
    for (uint32_t i = 0; i < n; i++)
        if (value_at(f, first + i) == v) return true;
    return false;
}

/* Where in the part's node list a value is first read or made; UINT32_MAX: nowhere. As one number:
 * position of the node, then of the argument. */
static uint64_t first_touch(const fixture *f, const cs_part *part, uint32_t v, bool reads)
{
    for (uint32_t i = 0; i < part->n_node; i++) {
        const cs_node *n = &f->g->nodes.at[f->plan->nodes.at[part->node + i]];
        const uint32_t *list = reads ? cs_args(f->g, n) : cs_outs(f->g, n);
        for (uint32_t a = 0; a < (reads ? cs_n_reads(n) : n->n_out); a++)
            if (list[a] == v) return (uint64_t)i << 32 | a;
    }
    return UINT64_MAX;
}

static void check_nodes(const fixture *f, const cs_part *part)
{
    uint32_t count = 0, last = 0;
    for (uint32_t i = 0; i < f->g->nodes.len; i++) {
        const uint32_t node = f->g->topo[i];
        if (f->d.part[node] != part->id) continue;
        char buffer[16];
        assert_int_equal(f->plan->nodes.at[part->node + count], node);
        assert_true(
            cs_span_eq(cs_node_label(f->g, node, buffer),
                       cs_strtab_get(&f->plan->names, f->plan->node_label.at[part->node + count])));
        count++;
    }
    assert_int_equal(count, part->n_node);
    uint32_t total = 0;
    for (uint32_t i = 0; i < part->n_op; i++) {
        const uint32_t c = f->plan->ops.at[part->op + i].count;
        total += c;
        if (i > 0) assert_true(c <= last);
        last = c;
    }
    assert_int_equal(total, part->n_node);
}

static void check_refs(const fixture *f, const cs_part *part)
{
    uint32_t inputs = 0, outputs = 0;
    for (uint32_t v = 0; v < f->g->values.len; v++) {
        const bool weight = f->g->values.at[v].origin == CS_ORIGIN_WEIGHT;
        const bool in = !weight && !made_in(f, v, part->id) && read_in(f, v, part->id);
        const bool out = is_part_output(f, v, part->id);
        assert_int_equal(in, among(f, part->input, part->n_input, v));
        assert_int_equal(out, among(f, part->output, part->n_output, v));
        inputs += in;
        outputs += out;
    }
    assert_int_equal(inputs, part->n_input);
    assert_int_equal(outputs, part->n_output);
    for (uint32_t i = 1; i < part->n_input; i++)
        assert_true(first_touch(f, part, value_at(f, part->input + i - 1), true) <
                    first_touch(f, part, value_at(f, part->input + i), true));
    for (uint32_t i = 1; i < part->n_output; i++)
        assert_true(first_touch(f, part, value_at(f, part->output + i - 1), false) <
                    first_touch(f, part, value_at(f, part->output + i), false));
}

/* ---- activations: at each node, look at every value ---- */

static int64_t bytes_of(const fixture *f, uint32_t v)
{
    return cs_type_bytes(f->g->pool, f->g->values.at[v].type);
}

static bool alive_at(const fixture *f, const cs_part *part, uint32_t v, uint32_t position)
{
    uint32_t made = UINT32_MAX, last = 0;
    for (uint32_t i = 0; i < part->n_node; i++) {
        const cs_node *n = &f->g->nodes.at[f->plan->nodes.at[part->node + i]];
        for (uint32_t o = 0; o < n->n_out; o++)
            if (cs_outs(f->g, n)[o] == v) made = last = i;
        for (uint32_t a = 0; a < cs_n_reads(n); a++)
            if (cs_args(f->g, n)[a] == v) last = i;
    }
    return made <= position && position <= last;
}

static int64_t naive_peak(const fixture *f, const cs_part *part)
{
    int64_t resident = 0, most = 0;
    for (uint32_t v = 0; v < f->g->values.len; v++) {
        const bool in = among(f, part->input, part->n_input, v);
        const bool made = made_in(f, v, part->id);
        if ((in || made) && bytes_of(f, v) < 0) return -1;
        if (in || is_part_output(f, v, part->id)) resident += bytes_of(f, v);
    }
    for (uint32_t i = 0; i < part->n_node; i++) {
        int64_t now = 0;
        for (uint32_t v = 0; v < f->g->values.len; v++)
            if (made_in(f, v, part->id) && !is_part_output(f, v, part->id) &&
                alive_at(f, part, v, i))
                now += bytes_of(f, v);
        if (now > most) most = now;
    }
    return resident + most;
}

static void check_memory(const fixture *f, const cs_part *part)
{
    int64_t bytes = 0, host = 0, device = 0;
    uint32_t count = 0;
    for (uint32_t s = 0; s < f->g->storages.len; s++) {
        bool used = false;
        for (uint32_t v = 0; v < f->g->values.len; v++)
            used = used || (f->g->values.at[v].storage == s && read_in(f, v, part->id));
        if (!used) continue;
        const int64_t b = f->g->storages.at[s].bytes;
        count++;
        bytes += b;
        host += part->target == 1 ? 4 * b : b;
        device += part->target == 1 ? (12 * b + 9) / 10 : b;
    }
    assert_int_equal(part->weights, count);
    assert_int_equal(part->weight_bytes, bytes);
    if (part->target < 0) host = device = 0;
    if (part->target == 1) {
        host += 1000;
        device += 10;
    }
    assert_int_equal(part->host_build_bytes, host);
    assert_int_equal(part->device_bytes, device);
    assert_int_equal(part->activation_peak, naive_peak(f, part));
    assert_int_equal(part->n_need > 0, part->activation_peak < 0);
}

/* ---- boundaries ---- */

static void check_boundary(const fixture *f, uint32_t v, const cs_boundary *b)
{
    const uint32_t own = f->d.part[f->g->values.at[v].from];
    assert_int_equal(f->plan->value_ids.at[b->value], v);
    assert_int_equal(b->from, own);
    assert_int_equal(b->bytes, bytes_of(f, v));
    uint32_t n = 0;
    for (uint32_t p = 0; p < f->d.n_parts; p++)
        if (p != own && read_in(f, v, p)) assert_int_equal(f->plan->readers.at[b->to + n++], p);
    assert_int_equal(n, b->n_to);
}

static void check_boundaries(const fixture *f)
{
    int64_t bytes = 0, bound = 0;
    uint32_t unknown = 0, count = 0;
    for (uint32_t v = 0; v < f->g->values.len; v++) {
        if (f->g->values.at[v].origin != CS_ORIGIN_NODE) continue;
        const uint32_t own = f->d.part[f->g->values.at[v].from];
        if (!read_elsewhere(f, v, own)) continue;
        const cs_boundary *found = NULL;
        for (size_t i = 0; i < f->plan->boundaries.len; i++)
            if (f->plan->value_ids.at[f->plan->boundaries.at[i].value] == v)
                found = &f->plan->boundaries.at[i];
        assert_non_null(found);
        check_boundary(f, v, found);
        count++;
        bool engine = f->d.part_target[own] >= 0, must = false;
        for (uint32_t p = 0; p < f->d.n_parts; p++) {
            if (p == own || !read_in(f, v, p)) continue;
            engine = engine || f->d.part_target[p] >= 0;
            must = must || f->d.part_target[p] != f->d.part_target[own];
        }
        unknown += bytes_of(f, v) < 0;
        if (bytes_of(f, v) < 0) continue;
        bytes += engine ? bytes_of(f, v) : 0;
        bound += must ? bytes_of(f, v) : 0;
    }
    assert_int_equal(count, f->plan->boundaries.len);
    assert_int_equal(bytes, f->plan->boundary_bytes);
    assert_int_equal(bound, f->plan->boundary_bytes_bound);
    assert_int_equal(unknown, f->plan->boundaries_unknown);
    assert_true(bound <= bytes);
}

static void check_model(const fixture *f)
{
    assert_int_equal(f->plan->outputs.len, f->g->outputs.len);
    for (size_t i = 0; i < f->g->outputs.len; i++) {
        const cs_value *v = &f->g->values.at[f->g->outputs.at[i]];
        const int32_t from = v->origin == CS_ORIGIN_INPUT    ? CS_FROM_INPUT
                             : v->origin == CS_ORIGIN_WEIGHT ? CS_FROM_WEIGHT
                                                             : (int32_t)f->d.part[v->from];
        assert_int_equal(f->plan->outputs.at[i].from, from);
    }
    int64_t weights = 0;
    for (size_t s = 0; s < f->g->storages.len; s++)
        weights += f->g->storages.at[s].bytes;
    assert_int_equal(f->plan->model_weight_bytes, weights);
    size_t reasons = 0;
    for (uint32_t i = 0; i < f->d.n_nodes; i++) {
        if (f->d.reasons[i].rule == CS_RULE_NONE) continue;
        char buffer[16];
        const cs_fallback *b = &f->plan->fallback.at[reasons++];
        assert_true(
            cs_span_eq(cs_node_label(f->g, i, buffer), cs_strtab_get(&f->plan->names, b->label)));
        assert_int_equal(b->rule, f->d.reasons[i].rule);
    }
    assert_int_equal(reasons, f->plan->fallback.len);
}

static void oracle(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        fixture f;
        begin(&f, seed, 1 + (uint32_t)(seed % 37), 1 + (uint32_t)(seed % 7), seed % 3 > 0);
        make_plan(&f, "model.onnx");
        assert_int_equal(f.plan->parts.len, f.d.n_parts);
        for (uint32_t p = 0; p < f.d.n_parts; p++) {
            const cs_part *part = &f.plan->parts.at[p];
            assert_int_equal(part->id, p);
            assert_int_equal(part->target, f.d.part_target[p]);
            check_nodes(&f, part);
            check_refs(&f, part);
            check_memory(&f, part);
        }
        check_boundaries(&f);
        check_model(&f);
        /* What was made fits the graph it was made from. */
        assert_int_equal(cs_plan_bind(f.plan, f.g, UINT64_C(0x0123456789abcdef), &f.err),
                         CUTSET_OK);
        end(&f);
    }
}

/* ---- hashes ---- */

static cs_graph *chain(const char *text)
{
    cs_graph *g = NULL;
    cutset_error err = {0};
    const cutset_status status = cs_text_read(&g, cs_span_of(text), NULL, &err);
    if (status != CUTSET_OK) fail_msg("%s", err.message);
    return g;
}

/* The hashes of the parts of a text, with the part of each node given. */
static void hashes(const char *text, const uint32_t *part, uint32_t n_parts, uint64_t *out)
{
    fixture f = {.g = chain(text), .plan = cs_plan_new()};
    f.d.n_nodes = (uint32_t)f.g->nodes.len;
    f.d.n_parts = n_parts;
    f.d.part = cs_zalloc(f.d.n_nodes, sizeof(uint32_t));
    memcpy(f.d.part, part, f.d.n_nodes * sizeof(uint32_t));
    f.d.part_target = cs_zalloc(n_parts, sizeof(int32_t));
    f.d.reasons = cs_zalloc(f.d.n_nodes, sizeof(cs_reason));
    set_targets(&f);
    make_plan(&f, NULL);
    for (uint32_t p = 0; p < n_parts; p++)
        out[p] = f.plan->parts.at[p].hash;
    end(&f);
}

static void same_blocks(void **state)
{
    (void)state;
    const uint32_t part[] = {0, 0, 1, 1, 2, 2};
    uint64_t h[3];
    /* The first two blocks differ in names only; the third in an attribute, then in wiring. */
    hashes("input %x : f32[4]\nweight %w : f32[4]\nweight %u : f32[4]\nweight %z : f32[4]\n"
           "%a : f32[4] = Mul(%x, %w)\n%b : f32[4] = Foo(%a, %a) {k=1}\n"
           "%c : f32[4] = Mul(%b, %u)\n%d : f32[4] = Foo(%c, %c) {k=1}\n"
           "%e : f32[4] = Mul(%d, %z)\n%f : f32[4] = Foo(%e, %e) {k=2}\noutput %f\n",
           part, 3, h);
    assert_int_equal(h[0], h[1]);
    assert_int_not_equal(h[1], h[2]);
    uint64_t other[3];
    hashes("input %x : f32[4]\nweight %w : f32[4]\nweight %u : f32[4]\nweight %z : f32[5]\n"
           "%a : f32[4] = Mul(%x, %w)\n%b : f32[4] = Foo(%a, %x) {k=1}\n"
           "%c : f32[4] = Mul(%b, %u)\n%d : f32[4] = Foo(%c, %c) {k=1}\n"
           "%e : f32[4] = Mul(%d, %z)\n%f : f32[4] = Foo(%e, %e) {k=1}\noutput %f\n",
           part, 3, other);
    assert_int_equal(h[1], other[1]);
    assert_int_not_equal(other[0], other[1]); /* wiring */
    assert_int_not_equal(other[1], other[2]); /* shape of a weight */
    hashes("input %x : f32[4]\nweight %w : f32[4]\nweight %u : f32[4]\nweight %z : f32[4] = %u\n"
           "%a : f32[4] = Foo(%x, %w, %u)\n%b : f32[4] = Foo(%a, %u, %z)\n"
           "%c : f32[4] = Foo(%b, %w, %z)\noutput %c\n",
           (const uint32_t[]){0, 1, 2}, 3, other);
    assert_int_equal(other[0], other[2]);
    assert_int_not_equal(other[0], other[1]); /* tied weights are one storage */
}

/* Weights inside bodies, and captured ones, count once. */
static void bodies(void **state)
{
    (void)state;
    static const char text[] = "input %c : bool[]\ninput %x : f32[4]\nweight %w : f32[8]\n"
                               "%y : f32[8] = If(%c) {\n"
                               "body then_branch\n"
                               "weight %v : f32[2]\n"
                               "%t : f32[8] = Foo(%w, %v, %w)\noutput %t\nend\n"
                               "body else_branch\n"
                               "%e : f32[8] = Bar(%w, %x)\noutput %e\nend\n"
                               "}\noutput %y\n";
    fixture f = {.g = chain(text), .plan = cs_plan_new()};
    f.d = (cs_decision){.n_nodes = 1, .n_parts = 1};
    f.d.part = cs_zalloc(1, sizeof(uint32_t));
    f.d.part_target = cs_zalloc(1, sizeof(int32_t));
    f.d.reasons = cs_zalloc(1, sizeof(cs_reason));
    set_targets(&f);
    make_plan(&f, NULL);
    const cs_part *part = &f.plan->parts.at[0];
    assert_int_equal(part->weights, 2);
    assert_int_equal(part->weight_bytes, 40);
    assert_int_equal(part->host_build_bytes, 40);
    assert_int_equal(part->n_input, 2); /* %c and the captured %x, not %w */
    assert_int_equal(part->activation_peak, 1 + 16 + 32);
    end(&f);
}

/* What a forecast lacks: symbols once each, values where nothing tells. */
static void needs(void **state)
{
    (void)state;
    static const char text[] =
        "input %x : f32[N,2*_s0+N,\"my dim\"]\n"
        "%y : f32[?,N] = Foo(%x)\n%z : f32[floor(M/2)] = Foo(%y)\noutput %z\n";
    static const char *const want[] = {"N", "_s0", "\"my dim\"", "y", "M"};
    fixture f = {.g = chain(text), .plan = cs_plan_new()};
    f.d = (cs_decision){.n_nodes = 2, .n_parts = 1};
    f.d.part = cs_zalloc(2, sizeof(uint32_t));
    f.d.part_target = cs_zalloc(1, sizeof(int32_t));
    f.d.reasons = cs_zalloc(2, sizeof(cs_reason));
    set_targets(&f);
    make_plan(&f, NULL);
    const cs_part *part = &f.plan->parts.at[0];
    assert_int_equal(part->activation_peak, -1);
    assert_int_equal(part->n_need, 5);
    for (int i = 0; i < 5; i++) {
        bool found = false;
        for (uint32_t k = 0; k < part->n_need; k++)
            found =
                found || cs_span_is(cs_strtab_get(&f.plan->names, f.plan->needs.at[k]), want[i]);
        if (!found) fail_msg("%s is not among the needs", want[i]);
    }
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oracle),
        cmocka_unit_test(same_blocks),
        cmocka_unit_test(bodies),
        cmocka_unit_test(needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
