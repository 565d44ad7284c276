/* Nodes that are repeated: by hand, against brute force on random graphs, with memory that runs out.
 *
 * The checks take a plan apart again: each part must run from its inputs and weights alone, hold
 * exactly the copies it needs, and cost what the storages it reaches cost; the engines must be the
 * fewest for the graph in which every reader has its own repeated nodes. */
#include "failing_alloc.h"

#include "graph_text.h"
#include "plan/assemble.h"
#include "random.h"

enum { HOST = -1, MOST = 64 };

static cutset_target *acc;

/* ---- graphs ---- */

static cs_graph *read_graph(const char *text, const char *repeated)
{
    cs_graph *g;
    if (cs_text_read(&g, cs_span_of(text), NULL, &err)) fail_msg("%s", err.message);
    char names[200];
    snprintf(names, sizeof names, "%s", repeated);
    for (char *at = strtok(names, " "); at != NULL; at = strtok(NULL, " ")) {
        const uint32_t node = cs_graph_find_node(g, cs_span_of(at));
        assert_int_not_equal(node, CS_NONE);
        g->nodes.at[node].flags |= CS_NODE_REPEAT;
    }
    return g;
}

static cutset_status plan_of(cutset_plan **out, const cs_graph *g, const cutset_plan_opts *opts)
{
    const cutset_target *const targets[] = {acc};
    const cs_plan_source source = {.graph = g, .hash = 77};
    return cs_plan_make(out, &source, targets, 1, opts, &err);
}

static cutset_plan *make(const cs_graph *g, const cutset_plan_opts *opts)
{
    cutset_plan *plan = NULL;
    if (plan_of(&plan, g, opts)) fail_msg("%s", err.message);
    return plan;
}

/* ---- a plan in words: "acc a t(+c): x -> a [1 16] | host ..." ---- */

static void say_names(struct string *s, const cutset_plan *plan, const cs_str *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const cs_span name = cs_strtab_get(&plan->names, at[i]);
        put(s, " %.*s", CS_FMT(name));
    }
}

static void say_refs(struct string *s, const cutset_plan *plan, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        say_names(s, plan, &plan->values.at[plan->refs.at[first + i]], 1);
}

static void is(const cutset_plan *plan, const char *want)
{
    struct string s = {0};
    for (size_t p = 0; p < plan->parts.len; p++) {
        const cs_part *part = &plan->parts.at[p];
        put(&s, "%s%s", p ? " | " : "", part->target < 0 ? "host" : "acc");
        say_names(&s, plan, plan->node_label.at + part->node, part->n_node);
        if (part->n_copy > 0) put(&s, " +");
        say_names(&s, plan, plan->copy_label.at + part->copy, part->n_copy);
        put(&s, ":");
        say_refs(&s, plan, part->input, part->n_input);
        put(&s, " ->");
        say_refs(&s, plan, part->output, part->n_output);
        put(&s, " [%u %lld]", part->weights, (long long)part->weight_bytes);
    }
    assert_string_equal(s.at, want);
    free(s.at);
}

static void planned(const char *text, const char *repeated, const char *want)
{
    cs_graph *g = read_graph(text, repeated);
    cutset_plan *plan = make(g, NULL);
    is(plan, want);
    cs_plan_free(plan);
    cs_graph_free(g);
}

/* ---- by hand ---- */

#define PERMUTE                                                                                    \
    "graph g\ninput %x : f32[4]\nweight %w : f32[4]\n%t : f32[4] = T(%w)\n"                        \
    "%a : f32[4] = A(%x, %t) @acc\n%h : f32[4] = H(%a, %t) @host\n%b : f32[4] = B(%h, %t) @acc\n"

static void permute(void **state)
{
    (void)state;
    planned(PERMUTE "output %b\n", "t",
            "acc t a: x -> a [1 16] | host h + t: a -> h [1 16] | acc b + t: h -> b [1 16]");
    /* Its home is the first part that needs it, and only that hands it on. */
    planned(PERMUTE "output %b\noutput %t\n", "t",
            "acc t a: x -> t a [1 16] | host h + t: a -> h [1 16] | acc b + t: h -> b [1 16]");
    /* Not repeated: a host part of its own, and the value crosses. */
    planned(PERMUTE "output %b\n", "",
            "host t: -> t [1 16] | acc a: x t -> a [0 0] | host h: a t -> h [0 0] | "
            "acc b: h t -> b [0 0]");
}

static void chain(void **state)
{
    (void)state;
    /* The host needs one node of the chain, the engines all. */
    planned("graph g\ninput %x : f32[4]\nweight %w : f32[4]\nweight %v : f32[8]\n"
            "%t : f32[4] = T(%w)\n%u : f32[4] = U(%t, %v)\n"
            "%h : f32[4] = H(%x, %t) @host\n%a : f32[4] = A(%h, %u) @acc\n"
            "%i : f32[4] = H(%a) @host\n%b : f32[4] = B(%i, %u, %t) @acc\noutput %b\n",
            "t u",
            "host t h: x -> h [1 16] | acc u a + t: h -> a [2 48] | host i: a -> i [0 0] | "
            "acc b + t u: i -> b [2 48]");
}

static void outputs(void **state)
{
    (void)state;
    /* Read by no node: planned, and its own constants are repeated in its part. */
    planned(
        "graph g\ninput %x : f32[4]\nweight %w : f32[4]\n%t : f32[4] = T(%w)\n"
        "%u : f32[4] = U(%t) @acc\n%a : f32[4] = A(%x) @acc\n%d = D(%t)\noutput %u\noutput %a\n",
        "t u d", "acc t u a: x -> u a [1 16] | host d + t: -> [1 16]");
}

static void sizes(void **state)
{
    (void)state;
    /* The size of what a host node makes: the engine takes the tensor, not the number. */
    planned("graph g\ninput %x : f32[4]\n%y : f32[4] = H(%x) @host\n%s : i64 = Size(%y)\n"
            "%z : i64 = Mul(%s, %s)\n%v : f32[4] = View(%x, %z) @acc\n"
            "%h : f32[4] = H(%v, %s) @host\noutput %h\n",
            "s z", "host y: x -> y [0 0] | acc s z v: y x -> v [0 0] | host h + s: y v -> h [0 0]");
    /* What it reads may come from the part itself. */
    planned("graph g\ninput %x : f32[4]\n%y : f32[4] = A(%x) @acc\n%s : i64 = Size(%y)\n"
            "%v : f32[4] = View(%y, %s) @acc\n%h : f32[4] = H(%v, %s) @host\noutput %h\n",
            "s", "acc y s v: x -> y v [0 0] | host h + s: y v -> h [0 0]");
}

static void not_repeated(void **state)
{
    (void)state;
    /* What writes, what is written, what has an order edge. */
    planned("graph g\ninput %x : f32[4]\nweight %w : f32[4]\n%t : f32[4] = T(%w)\n"
            "%u : f32[4] = U(%t) !writes(%t)\n%a : f32[4] = A(%x, %u) @acc\noutput %a\n",
            "t u", "host t u: -> u [1 16] | acc a: x u -> a [0 0]");
    planned("graph g\ninput %x : f32[4]\nweight %w : f32[4]\n%t : f32[4] = T(%w)\n"
            "%h : f32[4] = H(%x) @host\n%a : f32[4] = A(%h, %t) @acc\norder %h -> %t\noutput %a\n",
            "t", "host h t: x -> h t [1 16] | acc a: h t -> a [0 0]");
}

static void tied(void **state)
{
    (void)state;
    cs_graph *g =
        read_graph("graph g\ninput %x : f32[4]\nweight %w : f32[4]\nweight %v : f32[4] = %w\n"
                   "weight %q : f32[4]\n%t : f32[4] = T(%w)\n%a : f32[4] = A(%x, %t, %v) @acc\n"
                   "%b : f32[4] = B(%a, %t, %q) @acc\n%c : f32[4] = B(%b, %w) @acc\noutput %c\n",
                   "t");
    cutset_plan_opts opts = {.host_memory = 32, .effort = 1};
    cutset_plan *plan = make(g, &opts);
    is(plan, "acc t a b c: x -> c [2 32]");
    cs_plan_free(plan);
    opts.host_memory = 31; /* b needs w for its copy of t, and q */
    opts.oversize = CUTSET_OVERSIZE_KEEP;
    plan = make(g, &opts);
    is(plan, "acc t a b c: x -> c [2 32]"); /* b is over it by itself, the others add nothing */
    assert_true(plan->parts.at[0].oversized);
    cs_plan_free(plan);
    opts.oversize = CUTSET_OVERSIZE_ERROR;
    assert_int_equal(plan_of(&plan, g, &opts), CUTSET_NO);
    cs_graph_free(g);
}

/* Two engines of one structure have one hash, whoever is home. */
static void hashes(void **state)
{
    (void)state;
    cs_graph *g = read_graph(
        "graph g\ninput %x : f32[4]\nweight %w : f32[4]\n%t : f32[4] = T(%w)\n"
        "%a : f32[4] = A(%x, %t) @acc\n%h : f32[4] = H(%a) @host\n%b : f32[4] = A(%h, %t) @acc\n"
        "%i : f32[4] = H(%b) @host\n%c : f32[4] = A(%i, %w) @acc\noutput %c\n",
        "t");
    cutset_plan *plan = make(g, NULL);
    const cs_part *part = plan->parts.at;
    assert_int_equal(plan->parts.len, 5);
    assert_true(part[0].hash == part[2].hash);
    assert_true(part[0].hash != part[4].hash);
    assert_int_equal(plan->boundaries.len, 4);
    /* t lives from its node to a: x, a outside, t within. */
    assert_int_equal(part[0].activation_peak, 48);
    assert_int_equal(part[2].activation_peak, 48);
    assert_int_equal(part[4].activation_peak, 32);
    cs_plan_free(plan);
    cs_graph_free(g);
}

/* ---- names in options ---- */

static void refuses(const cs_graph *g, const cutset_plan_opts *opts, const char *message)
{
    cutset_plan *plan = NULL;
    assert_int_equal(plan_of(&plan, g, opts), CUTSET_USAGE);
    assert_string_equal(err.message, message);
}

static void names(void **state)
{
    (void)state;
    static const char *const excludes[] = {"t", "T"}, *const pins[] = {"t=host"},
                             *const groups[] = {"t,a"}, *const none[] = {"z"},
                             *const glob[] = {"t*"};
    cs_graph *g = read_graph("graph g\ninput %x : f32[4]\nweight %w : f32[4]\n"
                             "%t : f32[4] = T(%w)\n%a : f32[4] = A(%x, %t) @acc\n"
                             "() = P(%a) @host\n%tx : f32[4] = A(%a, %t) @acc\noutput %tx\n",
                             "t");
    static const char want[] = "acc t a tx: x -> a tx [1 16] | host $2: a -> [0 0]";
    cutset_plan_opts opts = {.effort = 1, .excludes = excludes, .n_excludes = 2};
    opts.pins = pins, opts.n_pins = 1;
    opts.groups = groups, opts.n_groups = 1;
    cutset_plan *plan = make(g, &opts);
    is(plan, want);
    assert_int_equal(plan->fallback.len, 1);
    cs_plan_free(plan);

    opts = (cutset_plan_opts){.effort = 1, .excludes = none, .n_excludes = 1};
    refuses(g, &opts,
            "--exclude z matches no operator and no node: inspect lists the operators, inspect "
            "--text what nodes make");
    /* A glob still sees the others. */
    opts = (cutset_plan_opts){.effort = 1, .excludes = glob, .n_excludes = 1};
    refuses(g, &opts, "--exclude t*: node %tx is pinned to acc: drop one of the two");
    /* Nodes without a name keep the number they have in the whole graph. */
    static const char *const numbers[] = {"$2=acc"}, *const wrong[] = {"$1=acc"};
    opts = (cutset_plan_opts){.effort = 1, .pins = numbers, .n_pins = 1};
    plan = make(g, &opts);
    is(plan, "acc t a $2 tx: x -> tx [1 16]");
    cs_plan_free(plan);
    opts.pins = wrong;
    refuses(g, &opts, "--pin $1=acc matches no node: inspect --text lists what nodes make");
    cs_graph_free(g);
}

/* ---- the oracle ---- */

typedef struct oracle {
    const cs_graph *g;
    const cutset_plan *plan;
    bool *repeated; /* by node: is it one that is repeated? */
    uint32_t *home; /* by node */
    bool *runs;     /* by part x node */
} oracle;

static bool runs(const oracle *o, uint32_t p, uint32_t node)
{
    return o->runs[p * o->g->nodes.len + node];
}

static uint32_t maker(const cs_graph *g, uint32_t v)
{
    return v != CS_NONE && g->values.at[v].origin == CS_ORIGIN_NODE ? g->values.at[v].from
                                                                    : CS_NONE;
}

static bool reads(const cs_graph *g, uint32_t node, uint32_t v)
{
    const cs_node *n = &g->nodes.at[node];
    for (uint32_t a = 0; a < cs_n_reads(n); a++)
        if (cs_args(g, n)[a] == v) return true;
    return false;
}

static bool is_output(const cs_graph *g, uint32_t v)
{
    for (size_t i = 0; i < g->outputs.len; i++)
        if (g->outputs.at[i] == v) return true;
    return false;
}

static bool is_read(const cs_graph *g, uint32_t node)
{
    for (uint32_t r = 0; r < g->nodes.len; r++)
        for (uint32_t k = 0; k < g->nodes.at[node].n_out; k++)
            if (reads(g, r, cs_outs(g, &g->nodes.at[node])[k])) return true;
    return false;
}

/* Is `v` among the refs? */
static bool listed(const cutset_plan *plan, uint32_t first, uint32_t n, uint32_t v)
{
    for (uint32_t i = 0; i < n; i++)
        if (plan->value_ids.at[plan->refs.at[first + i]] == v) return true;
    return false;
}

static void begin(oracle *o, const cs_graph *g, const cutset_plan *plan)
{
    const size_t n = g->nodes.len;
    *o = (oracle){.g = g, .plan = plan};
    o->repeated = calloc(n + 1, sizeof *o->repeated);
    o->home = malloc((n + 1) * sizeof *o->home);
    o->runs = calloc(n * plan->parts.len + 1, sizeof *o->runs);
    for (uint32_t i = 0; i < n; i++) {
        o->repeated[i] = g->nodes.at[i].flags & CS_NODE_REPEAT && is_read(g, i);
        o->home[i] = CS_NONE;
    }
    for (size_t e = 0; e < g->order.len; e++)
        o->repeated[g->order.at[e].from] = o->repeated[g->order.at[e].to] = false;
    assert_int_equal(plan->nodes.len, n);
    for (uint32_t p = 0; p < plan->parts.len; p++) {
        const cs_part *part = &plan->parts.at[p];
        for (uint32_t i = 0; i < part->n_node; i++) {
            const uint32_t node = plan->nodes.at[part->node + i];
            assert_int_equal(o->home[node], CS_NONE); /* once */
            o->home[node] = p;
            o->runs[p * n + node] = true;
        }
        for (uint32_t i = 0; i < part->n_copy; i++) {
            const uint32_t node = plan->copies.at[part->copy + i];
            assert_false(runs(o, p, node));
            assert_true(o->repeated[node]);
            o->runs[p * n + node] = true;
        }
    }
}

static void end(oracle *o)
{
    free(o->repeated);
    free(o->home);
    free(o->runs);
}

/* Is `v` read in part `p`? */
static bool read_in(const oracle *o, uint32_t p, uint32_t v)
{
    for (uint32_t r = 0; r < o->g->nodes.len; r++)
        if (runs(o, p, r) && reads(o->g, r, v)) return true;
    return false;
}

/* A repeated node runs exactly where it is read; the first such part is its home. */
static void check_homes(const oracle *o)
{
    for (uint32_t i = 0; i < o->g->nodes.len; i++) {
        const cs_node *n = &o->g->nodes.at[i];
        if (!o->repeated[i]) continue;
        bool found = false;
        for (uint32_t p = 0; p < o->plan->parts.len; p++) {
            bool needed = false;
            for (uint32_t k = 0; k < n->n_out; k++)
                needed |= read_in(o, p, cs_outs(o->g, n)[k]);
            assert_int_equal(runs(o, p, i), needed);
            if (needed && !found) assert_int_equal(o->home[i], p);
            found |= needed;
        }
        assert_true(found);
    }
}

/* Every node of the part can run, from what the part takes in, when all before it have. */
static void check_inside(const oracle *o, uint32_t p)
{
    const cs_graph *g = o->g;
    const cs_part *part = &o->plan->parts.at[p];
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        if (!runs(o, p, i)) continue;
        const cs_node *n = &g->nodes.at[i];
        for (uint32_t a = 0; a < cs_n_reads(n); a++) {
            const uint32_t v = cs_args(g, n)[a], from = maker(g, v);
            if (v == CS_NONE || g->values.at[v].origin == CS_ORIGIN_WEIGHT) continue;
            const bool inside = from != CS_NONE && runs(o, p, from);
            assert_int_equal(listed(o->plan, part->input, part->n_input, v), !inside);
            if (from != CS_NONE && !inside) {
                const cs_part *source = &o->plan->parts.at[o->home[from]];
                assert_true(o->home[from] < p);
                assert_true(listed(o->plan, source->output, source->n_output, v));
            }
        }
    }
    for (uint32_t i = 0; i < part->n_input; i++)
        assert_true(read_in(o, p, o->plan->value_ids.at[o->plan->refs.at[part->input + i]]));
    for (size_t e = 0; e < g->order.len; e++)
        assert_true(o->home[g->order.at[e].from] <= o->home[g->order.at[e].to]);
}

/* Outputs: what its own nodes make and a part without a copy reads, or the graph hands on. */
static void check_outputs(const oracle *o)
{
    size_t crossing = 0;
    for (uint32_t v = 0; v < o->g->values.len; v++) {
        const uint32_t from = maker(o->g, v);
        if (from == CS_NONE) continue;
        bool crosses = false;
        for (uint32_t p = 0; p < o->plan->parts.len; p++) {
            const cs_part *part = &o->plan->parts.at[p];
            crosses |= !runs(o, p, from) && read_in(o, p, v);
            if (p != o->home[from]) assert_false(listed(o->plan, part->output, part->n_output, v));
        }
        if (o->repeated[from]) assert_false(crosses);
        const cs_part *home = &o->plan->parts.at[o->home[from]];
        assert_int_equal(listed(o->plan, home->output, home->n_output, v),
                         crosses || is_output(o->g, v));
        crossing += crosses;
    }
    assert_int_equal(o->plan->boundaries.len, crossing);
}

static void check_weights(const oracle *o, uint32_t p, int64_t budget)
{
    const cs_graph *g = o->g;
    const cs_part *part = &o->plan->parts.at[p];
    bool *taken = calloc(g->storages.len + 1, sizeof *taken);
    int64_t bytes = 0;
    uint32_t count = 0;
    for (uint32_t v = 0; v < g->values.len; v++) {
        const uint32_t s = g->values.at[v].storage;
        if (s == CS_NONE || taken[s] || !read_in(o, p, v)) continue;
        taken[s] = true;
        bytes += g->storages.at[s].bytes;
        count++;
    }
    free(taken);
    assert_int_equal(part->weights, count);
    assert_int_equal(part->weight_bytes, bytes);
    if (budget > 0 && part->target >= 0) assert_true(bytes <= budget);
}

/* The peak again, value by value, in the order of the graph. */
static void check_peak(const oracle *o, uint32_t p)
{
    const cs_graph *g = o->g;
    const cs_part *part = &o->plan->parts.at[p];
    int64_t resident = 0, peak = 0;
    for (uint32_t v = 0; v < g->values.len; v++)
        if (listed(o->plan, part->input, part->n_input, v) ||
            listed(o->plan, part->output, part->n_output, v))
            resident += cs_type_bytes(g->pool, g->values.at[v].type);
    for (uint32_t at = 0; at < g->nodes.len; at++) {
        int64_t live = 0;
        if (!runs(o, p, g->topo[at])) continue;
        for (uint32_t v = 0; v < g->values.len; v++) {
            const uint32_t from = maker(g, v);
            if (from == CS_NONE || !runs(o, p, from)) continue;
            if (listed(o->plan, part->output, part->n_output, v)) continue;
            bool made = false, wanted = false;
            for (uint32_t k = 0; k < g->nodes.len; k++) {
                made |= k <= at && g->topo[k] == from;
                wanted |= k >= at && runs(o, p, g->topo[k]) &&
                          (reads(g, g->topo[k], v) || g->topo[k] == from);
            }
            if (made && wanted) live += cs_type_bytes(g->pool, g->values.at[v].type);
        }
        if (live > peak) peak = live;
    }
    assert_int_equal(part->activation_peak, resident + peak);
}

/* ---- the fewest engines of the graph with everything repeated inlined ---- */

typedef struct inlined {
    uint32_t n;
    uint32_t node[16];
    bool engine[16];
    uint32_t before[16]; /* bits of the nodes it needs */
    uint64_t storages[16];
} inlined;

static void inline_node(const oracle *o, inlined *in, uint32_t to, uint32_t node)
{
    const cs_graph *g = o->g;
    const cs_node *n = &g->nodes.at[node];
    for (uint32_t a = 0; a < cs_n_reads(n); a++) {
        const uint32_t v = cs_args(g, n)[a], from = maker(g, v);
        if (v != CS_NONE && g->values.at[v].storage != CS_NONE)
            in->storages[to] |= UINT64_C(1) << g->values.at[v].storage;
        if (from == CS_NONE) continue;
        if (o->repeated[from]) {
            inline_node(o, in, to, from); /* small graphs only */
            continue;
        }
        for (uint32_t k = 0; k < in->n; k++)
            if (in->node[k] == from) in->before[to] |= 1u << k;
    }
}

static void inline_all(const oracle *o, inlined *in)
{
    const cs_graph *g = o->g;
    *in = (inlined){0};
    for (uint32_t i = 0; i < g->nodes.len; i++)
        if (!o->repeated[i]) in->node[in->n++] = i;
    for (uint32_t k = 0; k < in->n; k++) {
        in->engine[k] = g->nodes.at[in->node[k]].n_allow > 0;
        inline_node(o, in, k, in->node[k]);
        for (size_t e = 0; e < g->order.len; e++)
            for (uint32_t j = 0; j < in->n; j++)
                if (g->order.at[e].to == in->node[k] && g->order.at[e].from == in->node[j])
                    in->before[k] |= 1u << j;
    }
}

static uint32_t run_host(const inlined *in, uint32_t done)
{
    for (bool more = true; more;) {
        more = false;
        for (uint32_t k = 0; k < in->n; k++)
            if (!in->engine[k] && !(done >> k & 1) && (in->before[k] & ~done) == 0) {
                done |= 1u << k;
                more = true;
            }
    }
    return done;
}

static bool may_run(const oracle *o, const inlined *in, uint32_t done, uint32_t set, int64_t budget)
{
    uint64_t storages = 0;
    int64_t bytes = 0;
    for (uint32_t k = 0; k < in->n; k++) {
        if (!(set >> k & 1)) continue;
        if (!in->engine[k] || (in->before[k] & ~(done | set))) return false;
        storages |= in->storages[k];
    }
    for (size_t s = 0; s < o->g->storages.len; s++)
        if (storages >> s & 1) bytes += o->g->storages.at[s].bytes;
    return budget == 0 || bytes <= budget;
}

/* Breadth first over the sets of nodes that have run. */
static uint32_t fewest_engines(const oracle *o, const inlined *in, int64_t budget)
{
    const uint32_t all = (1u << in->n) - 1;
    unsigned char *least = malloc((size_t)all + 1);
    memset(least, 255, (size_t)all + 1);
    least[run_host(in, 0)] = 0;
    for (uint32_t done = 0; done <= all; done++) { /* sets only grow */
        if (least[done] == 255) continue;
        const uint32_t rest = all & ~done;
        for (uint32_t set = rest; set != 0; set = (set - 1) & rest) {
            if (!may_run(o, in, done, set, budget)) continue;
            const uint32_t next = run_host(in, done | set);
            if (least[done] + 1 < least[next]) least[next] = (unsigned char)(least[done] + 1);
        }
    }
    const uint32_t result = least[all];
    free(least);
    return result;
}

/* engines_saved_if_supported, by moving each refused node in turn: the sum. */
static size_t check_saved(const oracle *o, inlined *in, uint32_t fewest)
{
    size_t sum = 0;
    for (size_t i = 0; i < o->plan->fallback.len; i++) {
        const cs_fallback *f = &o->plan->fallback.at[i];
        const uint32_t node = cs_graph_find_node(o->g, cs_strtab_get(&o->plan->names, f->label));
        uint32_t k = 0;
        while (in->node[k] != node)
            k++;
        in->engine[k] = true;
        const uint32_t with = fewest_engines(o, in, 0);
        in->engine[k] = false;
        assert_int_equal(f->saved, with < fewest ? fewest - with : 0);
        sum += (size_t)f->saved;
    }
    return sum;
}

/* ---- random graphs ---- */

static uint32_t add_value(cs_graph *g, const char *letter, cs_origin origin)
{
    char name[32], type[32];
    cs_type t;
    snprintf(name, sizeof name, "%s%zu", letter, g->values.len);
    snprintf(type, sizeof type, "f32[%u]", 1 + below(5));
    assert_int_equal(cs_type_parse(g->pool, cs_span_of(type), &t, NULL), CUTSET_OK);
    return cs_graph_add_value(g, cs_strtab_add(&g->pool->names, cs_span_of(name), false), t,
                              origin);
}

static void add_weights(cs_graph *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t v = add_value(g, "w", CS_ORIGIN_WEIGHT);
        const bool again = i > 0 && below(3) == 0;
        if (again) g->values.at[v].type = g->values.at[v - 1].type;
        const int64_t bytes = cs_type_bytes(g->pool, g->values.at[v].type);
        g->values.at[v].storage =
            again ? g->values.at[v - 1].storage : cs_graph_add_storage(g, bytes, CS_F32, NULL);
    }
}

static void add_node(cs_graph *g, bool repeat, cs_str acc_name)
{
    const uint32_t before = (uint32_t)g->values.len;
    cs_graph_add_node(g, cs_strtab_add(&g->pool->names, CS_SPAN("Op"), false), 0, 0);
    const uint32_t n = below(repeat ? 3 : 4) + (repeat && below(8) > 0);
    for (uint32_t a = 0; a < n; a++) {
        uint32_t v = below(3) ? before - 1 - below(before < 6 ? before : 6) : below(before);
        assert_true(cs_graph_add_arg(g, below(20) == 0 ? CS_NONE : v));
    }
    if (repeat) g->nodes.at[g->nodes.len - 1].flags |= CS_NODE_REPEAT;
    for (uint32_t k = below(6) == 0 ? 2 : 1; k > 0; k--)
        assert_true(cs_graph_add_out(g, add_value(g, "v", CS_ORIGIN_NODE)));
    if (below(3)) assert_true(cs_graph_add_allow(g, acc_name));
}

static cs_graph *random_graph(uint32_t n)
{
    cs_graph *g = cs_graph_new(cs_pool_new(), NULL);
    const cs_str name = cs_strtab_add(&g->pool->names, CS_SPAN("acc"), false);
    const uint32_t share = 1 + below(3);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(cs_vec_push(&g->inputs, add_value(g, "x", CS_ORIGIN_INPUT)));
    add_weights(g, 1 + below(4));
    for (uint32_t i = 0; i < n; i++)
        add_node(g, below(4) < share, name);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(cs_vec_push(&g->outputs, below((uint32_t)g->values.len)));
    if (n > 1 && below(4) == 0) {
        const uint32_t to = 1 + below(n - 1);
        assert_true(cs_vec_push(&g->order, ((cs_edge){below(to), to})));
    }
    assert_int_equal(cs_graph_seal(g, &err), CUTSET_OK);
    return g;
}

static void written(const cutset_plan *plan, struct string *s)
{
    cs_out out;
    s->len = 0;
    assert_int_equal(cs_out_call(&out, append, s, &err), CUTSET_OK);
    assert_int_equal(cs_plan_write_json(plan, NULL, &out, &err), CUTSET_OK);
    assert_int_equal(cs_out_done(&out, NULL, &err), CUTSET_OK);
}

static void check_round_trip(const cutset_plan *plan, const cs_graph *g)
{
    struct string text = {0}, second = {0};
    cutset_plan *again = NULL;
    written(plan, &text);
    if (cs_plan_parse_json(&again, (cs_span){text.at, text.len}, "plan.json", NULL, &err))
        fail_msg("%s", err.message);
    written(again, &second);
    assert_string_equal(text.at, second.at);
    if (cs_plan_bind(again, g, 77, &err)) fail_msg("%s\n%s", err.message, text.at);
    assert_int_equal(again->copies.len, plan->copies.len);
    for (size_t i = 0; i < plan->copies.len; i++)
        assert_int_equal(again->copies.at[i], plan->copies.at[i]);
    cs_plan_free(again);
    free(text.at);
    free(second.at);
}

static void check_all(const oracle *o, int64_t budget)
{
    check_homes(o);
    check_outputs(o);
    for (uint32_t p = 0; p < o->plan->parts.len; p++) {
        check_inside(o, p);
        check_weights(o, p, budget);
        check_peak(o, p);
    }
    check_round_trip(o->plan, o->g);
}

static void random_graphs(void **state)
{
    (void)state;
    const uint64_t rounds = getenv("CUTSET_LONG") ? 100000 : 1500;
    size_t copies = 0, engines = 0, proved = 0, saved = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        seed = round;
        cs_graph *g = random_graph(1 + below(11));
        for (int with = 0; with < 2; with++) {
            cutset_plan_opts opts = {.effort = 1};
            oracle o;
            if (with) { /* what the largest node needs, or more */
                cutset_plan *free_of = make(g, NULL);
                inlined in;
                begin(&o, g, free_of);
                inline_all(&o, &in);
                for (uint32_t k = 0; k < in.n; k++) {
                    int64_t bytes = 0;
                    for (size_t s = 0; s < g->storages.len; s++)
                        bytes += in.storages[k] >> s & 1 ? g->storages.at[s].bytes : 0;
                    if (in.engine[k] && bytes > opts.host_memory) opts.host_memory = bytes;
                }
                opts.host_memory += 1 + below(8);
                end(&o);
                cs_plan_free(free_of);
            }
            cutset_plan *plan = make(g, &opts);
            inlined in;
            begin(&o, g, plan);
            check_all(&o, opts.host_memory);
            inline_all(&o, &in);
            const uint32_t fewest = fewest_engines(&o, &in, opts.host_memory);
            if (!with) {
                assert_int_equal(plan->engines, fewest);
                saved += check_saved(&o, &in, fewest);
            }
            assert_true(plan->engines >= fewest && plan->engines_bound <= fewest);
            copies += plan->copies.len;
            engines += plan->engines;
            proved += plan->engines == fewest;
            end(&o);
            cs_plan_free(plan);
        }
        cs_graph_free(g);
    }
    assert_true(copies > rounds / 4 && engines > rounds / 2 && saved > rounds / 20);
    assert_true(proved > 2 * rounds * 97 / 100);
}

/* ---- long chains with many readers ---- */

/* `n` constants one after the other, each read by an engine or host node of its own. */
static cs_graph *ladder(uint32_t n)
{
    cs_graph *g = cs_graph_new(cs_pool_new(), NULL);
    const cs_str name = cs_strtab_add(&g->pool->names, CS_SPAN("acc"), false);
    const cs_str op = cs_strtab_add(&g->pool->names, CS_SPAN("Op"), false);
    add_weights(g, 1);
    uint32_t above = 0, last = CS_NONE;
    for (uint32_t i = 0; i < n; i++) {
        cs_graph_add_node(g, op, 0, 0);
        assert_true(cs_graph_add_arg(g, above));
        assert_true(cs_graph_add_out(g, above = add_value(g, "t", CS_ORIGIN_NODE)));
        g->nodes.at[g->nodes.len - 1].flags |= CS_NODE_REPEAT;
        cs_graph_add_node(g, op, 0, 0);
        assert_true(cs_graph_add_arg(g, above));
        if (last != CS_NONE) assert_true(cs_graph_add_arg(g, last));
        assert_true(cs_graph_add_out(g, last = add_value(g, "r", CS_ORIGIN_NODE)));
        if (i % 2) assert_true(cs_graph_add_allow(g, name));
    }
    assert_true(cs_vec_push(&g->outputs, last));
    assert_int_equal(cs_graph_seal(g, &err), CUTSET_OK);
    return g;
}

static void long_chains(void **state)
{
    (void)state;
    cs_graph *g = ladder(60); /* short enough to repeat all of it */
    cutset_plan *plan = make(g, NULL);
    oracle o;
    begin(&o, g, plan);
    check_all(&o, 0);
    assert_int_equal(plan->copies.len, 60 * 59 / 2);
    end(&o);
    cs_plan_free(plan);
    cs_graph_free(g);

    g = ladder(20000); /* would be 2 * 10^8 copies */
    plan = make(g, NULL);
    assert_int_equal(plan->nodes.len, 40000);
    assert_true(plan->copies.len < 40000 * MOST);
    assert_true(plan->copies.len > 20000);
    check_round_trip(plan, g);
    cs_plan_free(plan);
    cs_graph_free(g);
}

/* ---- plans that were written by hand, nested blocks ---- */

static char *replaced(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    assert_non_null(at);
    char *out = malloc(strlen(text) + strlen(new) + 1);
    memcpy(out, text, (size_t)(at - text));
    strcpy(out + (at - text), new);
    strcat(out, at + strlen(old));
    return out;
}

/* Status of reading and binding it; its message is in err. */
static cutset_status take(const char *text, const cs_graph *g)
{
    cutset_plan *plan = NULL;
    cutset_status s = cs_plan_parse_json(&plan, cs_span_of(text), "plan.json", NULL, &err);
    if (!s) s = cs_plan_bind(plan, g, 77, &err);
    cs_plan_free(plan);
    return s;
}

/* The plan of the graph, with `old` replaced in it, is refused with the message. */
static void not_bound(const char *graph, const char *repeated, const char *old, const char *new,
                      const char *message)
{
    cs_graph *g = read_graph(graph, repeated);
    cutset_plan *plan = make(g, NULL);
    struct string s = {0};
    written(plan, &s);
    assert_int_equal(take(s.at, g), CUTSET_OK);
    char *text = replaced(s.at, old, new);
    assert_int_equal(take(text, g), CUTSET_BAD);
    assert_string_equal(err.message, message);
    free(text);
    free(s.at);
    cs_plan_free(plan);
    cs_graph_free(g);
}

static void wrong_copies(void **state)
{
    (void)state;
    not_bound("graph g\ninput %x : f32[4]\nweight %w : f32[4]\n%t = T(%w)\n%u = U(%t)\n"
              "%a = A(%x, %u) @acc\n%h = H(%a, %u) @host\noutput %h\n",
              "t u", "[\"t\", \"u\"],\n      \"needs\"", "[\"u\", \"t\"],\n      \"needs\"",
              "the plan's parts[1].copies has t out of order, or twice in the part: make the plan "
              "anew with cutset plan");
    /* It would read what a later part makes. */
    not_bound(
        "graph g\ninput %x : f32[4]\n%a = A(%x) @acc\n%h = H(%a) @host\n%s = Size(%h)\n"
        "%b = A(%h, %s) @acc\noutput %b\n",
        "s", "\"copies\": []", "\"copies\": [\"s\"]",
        "the plan's parts[0] runs s before what it needs: make the plan anew with cutset plan");
}

static void by_hand(void **state)
{
    static const struct {
        const char *old, *new, *message;
    } wrong[] = {
        {"\"copies\": [\"t\"]", "\"copies\": [\"h\"]",
         "plan.json: parts[1] repeats \"h\", which is no node of another part, or stands there "
         "twice: make the plan anew with cutset plan"},
        {"\"copies\": [\"t\"]", "\"copies\": [\"t\", \"t\"]",
         "plan.json: parts[1] repeats \"t\", which is no node of another part, or stands there "
         "twice: make the plan anew with cutset plan"},
        {"\"copies\": [\"t\"]", "\"copies\": [1]",
         "plan.json: parts[1].copies[0] is not a string: make the plan anew with cutset plan"},
        {"\"copies\": [\"t\"]", "\"copies\": [\"b\"]",
         "the plan's parts[1].copies has b, which is no node of the model that may be repeated: "
         "make the plan anew with cutset plan"},
        {"\"copies\": [\"t\"]", "\"copies\": []",
         "the plan's parts[0].outputs are not those that its nodes have in the model: make the "
         "plan "
         "anew with cutset plan"},
        {"\"block\": \"\"", "\"block\": \"7.0\"",
         "the plan's parts[0] is of the nested block 7.0: plans with such parts are read by "
         "cutset.torchscript only"},
    };
    (void)state;
    cs_graph *g = read_graph(PERMUTE "output %b\n", "t");
    cutset_plan *plan = make(g, NULL);
    struct string s = {0};
    written(plan, &s);
    assert_int_equal(take(s.at, g), CUTSET_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *text = replaced(s.at, wrong[i].old, wrong[i].new);
        assert_int_equal(take(text, g), CUTSET_BAD);
        assert_string_equal(err.message, wrong[i].message);
        free(text);
    }
    /* A part of a block is read, and written with its block. */
    plan->parts.at[0].block = cs_plan_str(plan, CS_SPAN("7.0"));
    written(plan, &s);
    cutset_plan *again = NULL;
    assert_int_equal(cs_plan_parse_json(&again, cs_span_of(s.at), "plan.json", NULL, &err),
                     CUTSET_OK);
    assert_true(cs_span_is(cs_strtab_get(&again->names, again->parts.at[0].block), "7.0"));
    assert_int_equal(again->parts.at[1].block, 0);
    cs_plan_free(again);
    cs_plan_free(plan);
    cs_graph_free(g);
    free(s.at);
}

/* ---- memory that runs out ---- */

static void starved(void **state)
{
    (void)state;
    seed = 4;
    cs_graph *some[] = {read_graph(PERMUTE "output %b\noutput %t\n", "t"), random_graph(11),
                        ladder(400)};
    for (int i = 0; i < 3; i++) {
        const long before = alloc_live();
        for (long n = 0;; n += i == 2 ? 7 : 1) {
            cutset_plan *plan = NULL;
            alloc_fail_at(n);
            const cutset_status s = plan_of(&plan, some[i], NULL);
            const bool failed = alloc_failed();
            alloc_fail_at(-1);
            if (!failed) {
                assert_int_equal(s, CUTSET_OK);
                check_round_trip(plan, some[i]);
                cs_plan_free(plan);
                assert_int_equal(alloc_live(), before);
                assert_true(n > 40);
                break;
            }
            assert_int_equal(s, CUTSET_SYSTEM);
            assert_string_equal(err.message, "out of memory");
            assert_null(plan);
            assert_int_equal(alloc_live(), before);
        }
    }
    for (int i = 0; i < 3; i++)
        cs_graph_free(some[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permute),       cmocka_unit_test(chain),
        cmocka_unit_test(outputs),       cmocka_unit_test(sizes),
        cmocka_unit_test(not_repeated),  cmocka_unit_test(tied),
        cmocka_unit_test(hashes),        cmocka_unit_test(names),
        cmocka_unit_test(random_graphs), cmocka_unit_test(long_chains),
        cmocka_unit_test(by_hand),       cmocka_unit_test(starved),
        cmocka_unit_test(wrong_copies),
    };
    if (cutset_target_open(&acc, "acc", NULL)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cutset_target_free(acc);
    return failed;
}
