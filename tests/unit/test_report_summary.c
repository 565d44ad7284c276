/* The summary of a plan: what it says, and that no plan makes it wide, long or dangerous. */
#include "plan_fixture.h"
#include "report/report.h"

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

static void summarise(sheet *s, const cutset_plan *plan)
{
    cs_out out;
    s->len = 0;
    assert_int_equal(cs_out_call(&out, gather, s, NULL), CUTSET_OK);
    assert_int_equal(cs_report_summary(plan, &out, NULL), CUTSET_OK);
    assert_int_equal(cs_out_done(&out, NULL, NULL), CUTSET_OK);
}

/* Lines of at most 80 columns, of printable UTF-8, without blanks at the end; their number. */
static size_t check_lines(const sheet *s)
{
    size_t lines = 0, columns = 0;
    assert_true(cs_utf8_valid((cs_span){s->at, s->len}));
    for (size_t i = 0; i < s->len; i++) {
        const unsigned char c = (unsigned char)s->at[i];
        if (c == '\n') {
            if (columns > 80) fail_msg("line %zu has %zu columns", lines + 1, columns);
            assert_true(i == 0 || s->at[i - 1] != ' ');
            lines++;
            columns = 0;
            continue;
        }
        assert_true(c >= 0x20 && c != 0x7f);
        columns += (c & 0xc0) != 0x80;
    }
    return lines;
}

static void add_notes(fixture *f, size_t n)
{
    static const char note[] =
        "pattern Conv+Relu is broken at a node with a very long name, because "
        "\x1b[31m one of its nodes cannot run on engine-2.1 for some reason";
    for (size_t i = 0; i < n; i++) {
        const cs_str s = cs_plan_str(f->plan, (cs_span){note, sizeof note - 1 - i});
        assert_true(cs_vec_push(&f->plan->notes, s));
    }
}

static void any_plan(void **state)
{
    (void)state;
    static const char bad[] =
        "a/\x1b[2J\xc2\x9b\xff/very/long/path/to/a/model/with/a/long/name/that/"
        "does/not/fit/into/one/line/mod\xc3\xa9l.onnx";
    for (uint64_t seed = 0; seed < 200; seed++) {
        fixture f;
        sheet s = {0};
        begin(&f, seed, 1 + (uint32_t)(seed * 7 % 90), 1 + (uint32_t)(seed % 40), true);
        make_plan(&f, seed % 4 == 0 ? NULL : seed % 4 == 1 ? "-" : bad);
        f.plan->options.host_memory = seed % 3 == 0 ? 0 : (int64_t)(seed * 1000);
        f.plan->options.device_memory = seed % 3 == 1 ? 1 : 0;
        f.plan->parts.at[0].oversized = seed % 5 == 0;
        add_notes(&f, seed % 14);
        summarise(&s, f.plan);
        assert_true(check_lines(&s) < 80);
        cs_vec_fini(&s);
        end(&f);
    }
}

static const char MODEL[] = "input %x : f32[1000]\nweight %w : f32[100]\n"
                            "%a : f32[1000] = Conv(%x, %w)\n%b : f32[1000] = Relu(%a)\n"
                            "%c : f32[1000] = NonZero(%b)\n%d : f32[1000] = Relu(%c)\noutput %d\n";

static void exact(void **state)
{
    (void)state;
    static const uint32_t part[] = {0, 0, 1, 2};
    fixture f = {.plan = cs_plan_new()};
    sheet s = {0};
    assert_int_equal(cs_text_read(&f.g, cs_span_of(MODEL), NULL, &f.err), CUTSET_OK);
    f.d = (cs_decision){.n_nodes = 4, .n_parts = 3, .engines = 2, .engines_bound = 2};
    f.d.part = cs_zalloc(4, sizeof(uint32_t));
    memcpy(f.d.part, part, sizeof part);
    f.d.part_target = cs_zalloc(3, sizeof(int32_t));
    f.d.part_target[1] = -1;
    f.d.reasons = cs_zalloc(4, sizeof(cs_reason));
    f.d.reasons[2] =
        (cs_reason){CS_RULE_OP, 0, cs_plan_str(f.plan, CS_SPAN("acc has no NonZero")), 1};
    set_targets(&f);
    const cs_plan_source source = {.graph = f.g, .path = "m.onnx"};
    assert_int_equal(cs_plan_assemble(f.plan, &source, f.targets, 1, &f.d, &f.err), CUTSET_OK);
    f.plan->options.host_memory = 512;
    summarise(&s, f.plan);
    assert_string_equal(s.at,
                        "m.onnx: 4 nodes, 400 B of weights\n"
                        "2 engines on acc, proved minimal (path)\n"
                        "3 parts; 2 values cross, 7.8 KiB at engines (bound 7.8 KiB)\n"
                        "host memory: 512 B an engine; the heaviest, part 0, needs 400 B (78 %)\n"
                        "\n"
                        "part  target    nodes    weights      build  operators\n"
                        "   0  acc           2      400 B      400 B  Conv, Relu\n"
                        "   1  host          1        0 B          -  NonZero\n"
                        "   2  acc           1        0 B        0 B  Relu\n"
                        "\n"
                        "on the host for a reason: 1 node\n"
                        " nodes  saves  rule      why\n"
                        "     1      1  op        NonZero: acc has no NonZero\n");
    cs_vec_fini(&s);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_plan), cmocka_unit_test(exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
