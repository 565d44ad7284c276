/* plan.json: written, read and written again; everything that can be wrong with it; binding. */
#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "plan_fixture.h"

static const uint64_t HASH = UINT64_C(0x0123456789abcdef);

typedef CS_VEC(char) sheet;

static int gather(void *payload, const void *bytes, size_t len)
{
    sheet *s = payload;
    if (!cs_vec_room(s, len + 1)) return 1;
    memcpy(s->at + s->len, bytes, len);
    s->len += len;
    s->at[s->len] = '\0';
    return 0;
}

static cutset_status write_to(sheet *s, const cutset_plan *plan, const char *at, cutset_error *err)
{
    cs_out out;
    s->len = 0;
    cutset_status status = cs_out_call(&out, gather, s, err);
    if (status != CUTSET_OK) return status;
    status = cs_plan_write_json(plan, at, &out, err);
    const cutset_status done = cs_out_done(&out, at, status == CUTSET_OK ? err : NULL);
    return status == CUTSET_OK ? done : status;
}

static cutset_status parse(cutset_plan **plan, const char *text, size_t len, cutset_error *err)
{
    return cs_plan_parse_json(plan, (cs_span){text, len}, "plan.json", NULL, err);
}

static void set_options(fixture *f)
{
    static const char *const pins[] = {"a=acc", "b=host"}, *const dims[] = {"N=8"};
    const cutset_plan_opts opts = {.host_memory = INT64_MAX,
                                   .min_nodes = 3,
                                   .oversize = CUTSET_OVERSIZE_KEEP,
                                   .effort = 2,
                                   .max_engines = 7,
                                   .connected = 1,
                                   .tensors_only = 1,
                                   .bookends = 1,
                                   .pins = pins,
                                   .n_pins = 2};
    const cutset_open_opts open = {.dims = dims, .n_dims = 1};
    assert_int_equal(cs_plan_record(f->plan, &opts, &open, &f->err), CUTSET_OK);
}

static void same_ids(const cutset_plan *a, const cutset_plan *b)
{
    assert_int_equal(a->nodes.len, b->nodes.len);
    assert_memory_equal(a->nodes.at, b->nodes.at, a->nodes.len * sizeof *a->nodes.at);
    assert_int_equal(a->value_ids.len, b->value_ids.len);
    if (a->value_ids.len > 0)
        assert_memory_equal(a->value_ids.at, b->value_ids.at,
                            a->value_ids.len * sizeof *a->value_ids.at);
    assert_int_equal(a->refs.len, b->refs.len);
    if (a->refs.len > 0)
        assert_memory_equal(a->refs.at, b->refs.at, a->refs.len * sizeof *a->refs.at);
}

static void round_trip(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        fixture f;
        sheet one = {0}, two = {0}, three = {0};
        begin(&f, seed, 1 + (uint32_t)(seed % 41), 1 + (uint32_t)(seed % 9), true);
        if (seed % 2) set_options(&f);
        make_plan(&f, seed % 5 == 0 ? NULL : seed % 5 == 1 ? "-" : "mo\xfe/model \"1\".onnx");
        assert_int_equal(write_to(&one, f.plan, NULL, &f.err), CUTSET_OK);

        cutset_plan *read = NULL;
        if (parse(&read, one.at, one.len, &f.err) != CUTSET_OK) fail_msg("%s", f.err.message);
        assert_int_equal(write_to(&two, read, NULL, &f.err), CUTSET_OK);
        assert_string_equal(one.at, two.at);

        for (int again = 0; again < 2; again++) {
            if (cs_plan_bind(read, f.g, HASH, &f.err) != CUTSET_OK) fail_msg("%s", f.err.message);
            same_ids(f.plan, read);
            assert_true(read->bound);
        }
        assert_int_equal(write_to(&three, read, NULL, &f.err), CUTSET_OK);
        assert_string_equal(one.at, three.at);
        cs_plan_free(read);
        cs_vec_fini(&one);
        cs_vec_fini(&two);
        cs_vec_fini(&three);
        end(&f);
    }
}

/* ---- the format, byte for byte ---- */

static const char EXAMPLE[] =
    "graph g\ninput %x : f32[2]\nweight %w : f32[4]\n"
    "%a : f32[2] = Foo(%x, %w)\n%b : f32[2] = my.dom:Bar(%a)\n"
    "%c : f32[2] = Foo(%b)\n() = Print(%c)\noutput %c\noutput %x\noutput %w\n";

static void example(fixture *f)
{
    static const uint32_t part[] = {0, 1, 2, 2};
    static const int32_t target[] = {0, -1, 0};
    *f = (fixture){.plan = cs_plan_new()};
    assert_int_equal(cs_text_read(&f->g, cs_span_of(EXAMPLE), NULL, &f->err), CUTSET_OK);
    f->d = (cs_decision){.n_nodes = 4, .n_parts = 3, .engines = 2, .engines_bound = 2};
    f->d.part = cs_zalloc(4, sizeof *part);
    f->d.part_target = cs_zalloc(3, sizeof *target);
    f->d.reasons = cs_zalloc(4, sizeof(cs_reason));
    f->d.certificate = cs_zalloc(3, sizeof(uint32_t));
    memcpy(f->d.part, part, sizeof part);
    memcpy(f->d.part_target, target, sizeof target);
    f->d.certificate[1] = 1;
    f->d.certificate[2] = 2;
    f->d.n_certificate = 3;
    f->d.reasons[1] = (cs_reason){CS_RULE_OP, 0, cs_plan_str(f->plan, CS_SPAN("no Bar")), 1};
    set_targets(f);
    set_options(f);
    make_plan(f, "m.cut");
}

static const char WANT[] =
    "{\n"
    "  \"cutset\": {\"version\": \"" CUTSET_VERSION "\", \"plan\": 1},\n"
    "  \"model\": {\n"
    "    \"path\": \"m.cut\",\n"
    "    \"hash\": \"xxh3:0123456789abcdef\",\n"
    "    \"nodes\": 4,\n"
    "    \"weight_bytes\": 16,\n"
    "    \"inputs\": [\n"
    "      {\"name\": \"x\", \"type\": \"f32[2]\"}\n"
    "    ],\n"
    "    \"outputs\": [\n"
    "      {\"name\": \"c\", \"type\": \"f32[2]\", \"from\": 2},\n"
    "      {\"name\": \"x\", \"type\": \"f32[2]\", \"from\": \"input\"},\n"
    "      {\"name\": \"w\", \"type\": \"f32[4]\", \"from\": \"weight\"}\n"
    "    ]\n"
    "  },\n"
    "  \"targets\": [\n"
    "    {\"name\": \"acc\", \"hash\": \"xxh3:0000000000000001\"},\n"
    "    {\"name\": \"engine-2.1\", \"hash\": \"xxh3:fedcba9876543210\"}\n"
    "  ],\n"
    "  \"options\": {\n"
    "    \"target\": [\"acc\", \"engine-2.1\"],\n"
    "    \"host-memory\": 9223372036854775807,\n"
    "    \"device-memory\": null,\n"
    "    \"min-nodes\": 3,\n"
    "    \"min-benefit\": null,\n"
    "    \"max-engines\": 7,\n"
    "    \"oversize\": \"keep\",\n"
    "    \"objective\": \"engines\",\n"
    "    \"effort\": 2,\n"
    "    \"pin\": [\"a=acc\", \"b=host\"],\n"
    "    \"exclude\": [],\n"
    "    \"group\": [],\n"
    "    \"connected\": true,\n"
    "    \"tensors-only\": true,\n"
    "    \"bookends\": true,\n"
    "    \"shape\": [],\n"
    "    \"dim\": [\"N=8\"],\n"
    "    \"type\": []\n"
    "  },\n"
    "  \"objective\": {\n"
    "    \"engines\": 2,\n"
    "    \"engines_bound\": 2,\n"
    "    \"engines_proved\": true,\n"
    "    \"bound_kind\": \"path\",\n"
    "    \"parts\": 3,\n"
    "    \"boundary_bytes\": 16,\n"
    "    \"boundary_bytes_bound\": 16,\n"
    "    \"boundaries_unknown\": 0\n"
    "  },\n"
    "  \"certificate\": [\"a\", \"b\", \"c\"],\n"
    "  \"parts\": [\n"
    "    {\n"
    "      \"id\": 0,\n"
    "      \"target\": \"acc\",\n"
    "      \"block\": \"\",\n"
    "      \"file\": \"part-000-acc.onnx\",\n"
    "      \"nodes\": [\"a\"],\n"
    "      \"ops\": {\"Foo\": 1},\n"
    "      \"inputs\": [\"x\"],\n"
    "      \"outputs\": [\"a\"],\n"
    "      \"weights\": 1,\n"
    "      \"weight_bytes\": 16,\n"
    "      \"activation_peak_bytes\": 16,\n"
    "      \"host_build_bytes\": 16,\n"
    "      \"device_bytes\": 16,\n"
    "      \"oversized\": false,\n"
    "      \"hash\": \"xxh3:%016llx\",\n"
    "      \"same_as\": null,\n"
    "      \"same_structure\": null,\n"
    "      \"copies\": [],\n"
    "      \"needs\": []\n"
    "    },\n"
    "    {\n"
    "      \"id\": 1,\n"
    "      \"target\": \"host\",\n"
    "      \"block\": \"\",\n"
    "      \"file\": \"part-001-host.onnx\",\n"
    "      \"nodes\": [\"b\"],\n"
    "      \"ops\": {\"my.dom:Bar\": 1},\n"
    "      \"inputs\": [\"a\"],\n"
    "      \"outputs\": [\"b\"],\n"
    "      \"weights\": 0,\n"
    "      \"weight_bytes\": 0,\n"
    "      \"activation_peak_bytes\": 16,\n"
    "      \"host_build_bytes\": 0,\n"
    "      \"device_bytes\": 0,\n"
    "      \"oversized\": false,\n"
    "      \"hash\": \"xxh3:%016llx\",\n"
    "      \"same_as\": null,\n"
    "      \"same_structure\": null,\n"
    "      \"copies\": [],\n"
    "      \"needs\": []\n"
    "    },\n"
    "    {\n"
    "      \"id\": 2,\n"
    "      \"target\": \"acc\",\n"
    "      \"block\": \"\",\n"
    "      \"file\": \"part-002-acc.onnx\",\n"
    "      \"nodes\": [\"c\", \"$3\"],\n"
    "      \"ops\": {\"Foo\": 1, \"Print\": 1},\n"
    "      \"inputs\": [\"b\"],\n"
    "      \"outputs\": [\"c\"],\n"
    "      \"weights\": 0,\n"
    "      \"weight_bytes\": 0,\n"
    "      \"activation_peak_bytes\": 16,\n"
    "      \"host_build_bytes\": 0,\n"
    "      \"device_bytes\": 0,\n"
    "      \"oversized\": false,\n"
    "      \"hash\": \"xxh3:%016llx\",\n"
    "      \"same_as\": null,\n"
    "      \"same_structure\": null,\n"
    "      \"copies\": [],\n"
    "      \"needs\": []\n"
    "    }\n"
    "  ],\n"
    "  \"boundaries\": [\n"
    "    {\"value\": \"a\", \"type\": \"f32[2]\", \"bytes\": 8, \"from\": 0, \"to\": [1]},\n"
    "    {\"value\": \"b\", \"type\": \"f32[2]\", \"bytes\": 8, \"from\": 1, \"to\": [2]}\n"
    "  ],\n"
    "  \"fallback\": [\n"
    "    {\"node\": \"b\", \"name\": \"\", \"op\": \"my.dom:Bar\", \"target\": \"acc\", \"rule\": "
    "\"op\", \"why\": \"no Bar\", \"engines_saved_if_supported\": 1}\n"
    "  ]\n"
    "}\n";

static void layout(void **state)
{
    (void)state;
    fixture f;
    sheet got = {0};
    char want[sizeof WANT + 64];
    example(&f);
    const cs_part *p = f.plan->parts.at;
    snprintf(want, sizeof want, WANT, (unsigned long long)p[0].hash, (unsigned long long)p[1].hash,
             (unsigned long long)p[2].hash);
    assert_int_equal(write_to(&got, f.plan, NULL, &f.err), CUTSET_OK);
    assert_string_equal(got.at, want);
    cs_vec_fini(&got);
    end(&f);
}

/* ---- what is wrong ---- */

/* The status and message of reading `root`; what reads must write and read again. */
static cutset_status try(const json_t *root, cutset_error *err)
{
    char *text = json_dumps(root, JSON_COMPACT);
    assert_non_null(text);
    cutset_plan *plan = NULL;
    *err = (cutset_error){0};
    const cutset_status status = parse(&plan, text, strlen(text), err);
    free(text);
    if (status == CUTSET_OK) {
        sheet s = {0};
        cutset_plan *again = NULL;
        assert_int_equal(write_to(&s, plan, NULL, err), CUTSET_OK);
        assert_int_equal(parse(&again, s.at, s.len, err), CUTSET_OK);
        cs_plan_free(again);
        cs_vec_fini(&s);
    } else {
        assert_int_equal(status, CUTSET_BAD);
        assert_null(plan);
        assert_non_null(strstr(err->message, "plan.json: "));
        assert_null(strchr(err->message, '\n'));
    }
    cs_plan_free(plan);
    return status;
}

typedef struct tally {
    const json_t *root;
    unsigned tried, taken;
} tally;

static json_t *other(int kind)
{
    switch (kind) {
    case 0:
        return json_null();
    case 1:
        return json_integer(-1);
    case 2:
        return json_integer(INT64_MAX);
    case 3:
        return json_string("../../etc/passwd");
    case 4:
        return json_array();
    case 5:
        return json_object();
    case 6:
        return json_true();
    default:
        return json_real(0.5);
    }
}

static void try_one(tally *t)
{
    cutset_error err;
    t->tried++;
    t->taken += try(t->root, &err) == CUTSET_OK;
}

/* Puts every other kind of value at every place, and takes every member away. */
static void spoil(tally *t, json_t *at)
{
    if (json_is_object(at)) {
        json_t *keys = json_array();
        const char *key;
        json_t *value;
        json_object_foreach(at, key, value) json_array_append_new(keys, json_string(key));
        for (size_t i = 0; i < json_array_size(keys); i++) {
            key = json_string_value(json_array_get(keys, i));
            value = json_incref(json_object_get(at, key));
            for (int k = 0; k < 8; k++) {
                json_object_set_new(at, key, other(k));
                try_one(t);
            }
            json_object_del(at, key);
            try_one(t);
            json_object_set(at, key, value);
            spoil(t, value);
            json_decref(value);
        }
        json_decref(keys);
        json_object_set_new(at, "extra", json_null());
        try_one(t);
        json_object_del(at, "extra");
    }
    for (size_t i = 0; json_is_array(at) && i < json_array_size(at); i++) {
        json_t *value = json_incref(json_array_get(at, i));
        for (int k = 0; k < 8; k++) {
            json_array_set_new(at, i, other(k));
            try_one(t);
        }
        json_array_set(at, i, value);
        spoil(t, value);
        json_decref(value);
    }
}

static json_t *example_json(void)
{
    fixture f;
    sheet text = {0};
    example(&f);
    assert_int_equal(write_to(&text, f.plan, NULL, &f.err), CUTSET_OK);
    json_t *root = json_loads(text.at, 0, NULL);
    assert_non_null(root);
    cs_vec_fini(&text);
    end(&f);
    return root;
}

static void every_key(void **state)
{
    (void)state;
    json_t *root = example_json();
    tally t = {.root = root};
    spoil(&t, root);
    json_decref(root);
    /* Some are fine: a null path, a boundary of other bytes, other names. Most are not. */
    assert_true(t.tried > 1000);
    assert_true(t.taken < t.tried / 5);
}

static json_t *at(json_t *root, const char *key, size_t i)
{
    return json_array_get(json_object_get(root, key), i);
}

static void expect(json_t *root, const char *want)
{
    cutset_error err;
    assert_int_equal(try(root, &err), CUTSET_BAD);
    assert_string_equal(err.message, want);
    json_decref(root);
}

static void messages(void **state)
{
    (void)state;
    json_t *r = example_json();
    json_array_set_new(json_object_get(at(r, "parts", 2), "nodes"), 1, json_integer(7));
    expect(r, "plan.json: parts[2].nodes[1] is not a string: make the plan anew with cutset plan");
    r = example_json();
    json_object_del(json_object_get(r, "options"), "effort");
    expect(r, "plan.json: options.effort is missing: make the plan anew with cutset plan");
    r = example_json();
    json_object_set_new(at(r, "parts", 0), "file", json_string("../part-000-acc.onnx"));
    expect(
        r,
        "plan.json: parts[0].file is not part-000-acc.onnx: make the plan anew with cutset plan");
    r = example_json();
    json_object_set_new(at(r, "targets", 0), "name", json_string("../acc"));
    expect(
        r,
        "plan.json: targets[0].name is no name of a target: make the plan anew with cutset plan");
    r = example_json();
    json_object_set_new(json_object_get(r, "cutset"), "plan", json_integer(2));
    expect(r, "plan.json: a plan of schema 2 by cutset " CUTSET_VERSION
              ", this is cutset " CUTSET_VERSION
              ", which reads schema 1: make the plan anew with cutset plan");
    r = json_pack("{s:i}", "a", 1);
    expect(r, "plan.json: this JSON is no plan: make one with cutset plan");
    r = example_json();
    json_object_set_new(json_object_get(r, "objective"), "engines", json_integer(3));
    expect(r, "plan.json: objective.engines is not the number of engines: make the plan anew with "
              "cutset plan");
    r = example_json();
    json_array_append_new(json_object_get(at(r, "boundaries", 1), "to"), json_integer(2));
    expect(r, "plan.json: boundaries[1].to[1] is no later part than the one before: make the plan "
              "anew with cutset plan");
}

static void not_json(void **state)
{
    (void)state;
    cutset_error err;
    cutset_plan *plan = NULL;
    assert_int_equal(parse(&plan, "{\n  \"cutset\": nul}", 18, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "plan.json: not JSON: line 2, column "));
    assert_int_equal(parse(&plan, "", 0, &err), CUTSET_BAD);
    assert_non_null(strstr(err.message, "plan.json: not JSON: line 1, column "));
    assert_int_equal(parse(&plan, "[1]", 3, &err), CUTSET_BAD);
    assert_string_equal(err.message, "plan.json: this JSON is no plan: make one with cutset plan");
    assert_null(plan);
}

/* Every shorter text, and every byte replaced: an answer, never a crash. */
static void damaged(void **state)
{
    (void)state;
    fixture f;
    sheet text = {0};
    example(&f);
    assert_int_equal(write_to(&text, f.plan, NULL, &f.err), CUTSET_OK);
    cutset_plan *plan = NULL;
    for (size_t n = 0; n + 1 < text.len; n++) { /* the last byte is a line break */
        assert_int_equal(parse(&plan, text.at, n, &f.err), CUTSET_BAD);
        assert_null(plan);
    }
    for (size_t i = 0; i < text.len; i++) {
        const char was = text.at[i];
        text.at[i] = "9\"[{,\x80"[i % 6];
        if (parse(&plan, text.at, text.len, &f.err) == CUTSET_OK) {
            cs_plan_bind(plan, f.g, HASH, &f.err);
            cs_plan_free(plan);
        }
        plan = NULL;
        text.at[i] = was;
    }
    cs_vec_fini(&text);
    end(&f);
}

/* ---- binding ---- */

static cutset_plan *read_json(json_t *root)
{
    char *text = json_dumps(root, JSON_COMPACT);
    cutset_plan *plan = NULL;
    cutset_error err;
    if (parse(&plan, text, strlen(text), &err) != CUTSET_OK) fail_msg("%s", err.message);
    free(text);
    json_decref(root);
    return plan;
}

static void refuse(json_t *root, const char *want)
{
    fixture f;
    example(&f);
    cutset_plan *plan = read_json(root);
    assert_int_equal(cs_plan_bind(plan, f.g, HASH, &f.err), CUTSET_BAD);
    assert_string_equal(f.err.message, want);
    assert_false(plan->bound);
    cs_plan_free(plan);
    end(&f);
}

static void binding(void **state)
{
    (void)state;
    fixture f;
    example(&f);
    assert_int_equal(cs_plan_bind(f.plan, f.g, 1, &f.err), CUTSET_BAD);
    assert_string_equal(f.err.message,
                        "the model has changed since the plan was made: plan has "
                        "xxh3:0123456789abcdef, model has xxh3:0000000000000001: plan it again");
    end(&f);

    json_t *r = example_json();
    json_array_set_new(json_object_get(at(r, "parts", 0), "nodes"), 0, json_string("zz"));
    refuse(r, "the plan's node zz is not in the model, or in two parts: make the plan anew with "
              "cutset plan");
    r = example_json();
    json_array_set_new(json_object_get(at(r, "parts", 0), "nodes"), 0, json_string("b"));
    refuse(r, "the plan's node b is not in the model, or in two parts: make the plan anew with "
              "cutset plan");
    r = example_json();
    json_array_set_new(json_object_get(at(r, "parts", 0), "nodes"), 0, json_string("b"));
    json_array_set_new(json_object_get(at(r, "parts", 1), "nodes"), 0, json_string("a"));
    refuse(
        r,
        "the plan runs node b before node a, which it needs: make the plan anew with cutset plan");
    r = example_json();
    json_array_append_new(json_object_get(at(r, "parts", 2), "inputs"), json_string("a"));
    refuse(r, "the plan's parts[2].inputs are not those that its nodes have in the model: make the "
              "plan anew with cutset plan");
    r = example_json();
    json_array_append_new(json_object_get(at(r, "boundaries", 0), "to"), json_integer(2));
    refuse(r, "the plan's boundaries[0] is not what the model has there: make the plan anew with "
              "cutset plan");
    r = example_json();
    json_object_set_new(json_array_get(json_object_get(json_object_get(r, "model"), "outputs"), 0),
                        "from", json_integer(1));
    refuse(r, "the plan's model.inputs or model.outputs are not those of the model: make the plan "
              "anew with cutset plan");
}

/* ---- files ---- */

static void files(void **state)
{
    (void)state;
    char home[] = "/tmp/cutset-plan-XXXXXX", was[4096], path[200];
    assert_non_null(getcwd(was, sizeof was));
    assert_non_null(mkdtemp(home));
    assert_int_equal(chdir(home), 0);
    assert_int_equal(mkdir("a", 0777) | mkdir("b", 0777), 0);
    FILE *model = fopen("a/m.cut", "w");
    fclose(model);

    fixture f;
    sheet text = {0};
    cutset_plan *plan = NULL;
    example(&f);
    cs_free(f.plan->model_path);
    f.plan->model_path = cs_path_join("a", "m.cut");
    assert_int_equal(write_to(&text, f.plan, "b/plan.json", &f.err), CUTSET_OK);
    assert_non_null(strstr(text.at, "\"path\": \"../a/m.cut\""));
    FILE *out = fopen("b/plan.json", "w");
    fwrite(text.at, 1, text.len, out);
    fclose(out);

    assert_int_equal(cs_plan_read_json(&plan, "b/plan.json", &f.err), CUTSET_OK);
    assert_int_equal(plan->model_path[0], '/');
    assert_int_equal(access(plan->model_path, R_OK), 0);
    sheet again = {0};
    assert_int_equal(write_to(&again, plan, "b/plan.json", &f.err), CUTSET_OK);
    assert_string_equal(text.at, again.at);
    assert_int_equal(write_to(&again, plan, "-", &f.err), CUTSET_OK);
    assert_non_null(strstr(again.at, "\"path\": \"a/m.cut\""));
    assert_int_equal(write_to(&again, plan, "new/plan.json", &f.err),
                     CUTSET_OK); /* not there yet */
    assert_non_null(strstr(again.at, "\"path\": \"../a/m.cut\""));
    cs_plan_free(plan);
    assert_int_equal(cs_plan_read_json(&plan, "b", &f.err), CUTSET_OK); /* the folder */
    cs_plan_free(plan);

    plan = NULL;
    assert_int_equal(cs_plan_read_json(&plan, "a", &f.err), CUTSET_SYSTEM);
    assert_non_null(strstr(f.err.message, "a/plan.json: No such file"));
    assert_int_equal(cs_plan_read_json(&plan, "c/plan.json", &f.err), CUTSET_SYSTEM);
    assert_int_equal(cs_plan_read_json(&plan, "a/m.cut", &f.err), CUTSET_BAD);
    assert_null(plan);
    cs_vec_fini(&text);
    cs_vec_fini(&again);
    end(&f);
    snprintf(path, sizeof path, "%s", home);
    assert_int_equal(chdir(was), 0);
    assert_int_equal(cs_dir_remove_tree(path, NULL), CUTSET_OK);
}

/* ---- memory ---- */

/* Every allocation of each call fails in turn: an answer, no leak. */
static void no_memory(void **state)
{
    (void)state;
    fixture f;
    sheet text = {0};
    begin(&f, 5, 12, 4, true);
    make_plan(&f, "m.cut");
    assert_int_equal(write_to(&text, f.plan, NULL, &f.err), CUTSET_OK);
    const long before = alloc_live();
    for (long n = 0;; n++) {
        alloc_fail_at(n);
        cutset_plan *plan = cs_plan_new();
        const cs_plan_source source = {.graph = f.g, .path = "m.cut", .hash = HASH};
        cutset_status status = CUTSET_SYSTEM;
        if (plan != NULL) status = cs_plan_assemble(plan, &source, f.targets, 2, &f.d, &f.err);
        cs_plan_free(plan);
        const bool all = !alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(alloc_live(), before);
        assert_int_equal(status, all ? CUTSET_OK : CUTSET_SYSTEM);
        if (all) break;
    }
    for (long n = 0;; n++) {
        alloc_fail_at(n);
        cutset_plan *plan = NULL;
        cutset_status status = parse(&plan, text.at, text.len, &f.err);
        if (status == CUTSET_OK) status = cs_plan_bind(plan, f.g, HASH, &f.err);
        cs_plan_free(plan);
        const bool all = !alloc_failed();
        alloc_fail_at(-1);
        assert_int_equal(alloc_live(), before);
        assert_int_equal(status, all ? CUTSET_OK : CUTSET_SYSTEM);
        if (all) break;
    }
    cs_vec_fini(&text);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(layout),   cmocka_unit_test(every_key),
        cmocka_unit_test(messages),   cmocka_unit_test(not_json), cmocka_unit_test(damaged),
        cmocka_unit_test(binding),    cmocka_unit_test(files),    cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
