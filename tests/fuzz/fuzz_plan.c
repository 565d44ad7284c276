/* plan.json: any bytes. What is taken must write, read again, bind or be refused, and summarise.
 * The corpus has plans of the graph below, so that mutations come past the hash. */
#include <stdint.h>
#include <stdlib.h>

#include "plan/assemble.h"
#include "report/report.h"

static const char MODEL[] =
    "graph g\ninput %x : f32[2]\nweight %w : f32[4]\n"
    "%a : f32[2] = Foo(%x, %w)\n%b : f32[2] = my.dom:Bar(%a)\n"
    "%c : f32[2] = Foo(%b)\n() = Print(%c)\noutput %c\noutput %x\noutput %w\n";

typedef CS_VEC(char) sheet;

static int gather(void *payload, const void *bytes, size_t len)
{
    sheet *s = payload;
    if (!cs_vec_room(s, len)) return 1;
    for (size_t i = 0; i < len; i++)
        s->at[s->len++] = ((const char *)bytes)[i];
    return 0;
}

static void must(bool ok)
{
    if (!ok) abort();
}

/* What was read writes, and what was written reads and writes the same. */
static void again(const cutset_plan *plan)
{
    sheet one = {0}, two = {0};
    cutset_plan *copy = NULL;
    cs_out out;
    must(cs_out_call(&out, gather, &one, NULL) == CUTSET_OK);
    const cutset_status status = cs_plan_write_json(plan, NULL, &out, NULL);
    must(cs_out_done(&out, NULL, NULL) == CUTSET_OK);
    if (status == CUTSET_OK) { /* else: the folder of an absolute path is not there */
        must(cs_plan_parse_json(&copy, (cs_span){one.at, one.len}, "fuzz", NULL, NULL) ==
             CUTSET_OK);
        must(cs_out_call(&out, gather, &two, NULL) == CUTSET_OK);
        must(cs_plan_write_json(copy, NULL, &out, NULL) == CUTSET_OK);
        must(cs_out_done(&out, NULL, NULL) == CUTSET_OK);
        must(cs_span_eq((cs_span){one.at, one.len}, (cs_span){two.at, two.len}));
    }
    cs_plan_free(copy);
    cs_vec_fini(&one);
    cs_vec_fini(&two);
}

static void summarise(const cutset_plan *plan)
{
    sheet text = {0};
    cs_out out;
    must(cs_out_call(&out, gather, &text, NULL) == CUTSET_OK);
    must(cs_report_summary(plan, &out, NULL) == CUTSET_OK);
    must(cs_out_done(&out, NULL, NULL) == CUTSET_OK);
    cs_vec_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cs_graph *g; /* reachable to the end: no leak */
    if (g == NULL) {
        must(cs_text_read(&g, cs_span_of(MODEL), NULL, NULL) == CUTSET_OK);
        g->nodes.at[0].flags |= CS_NODE_REPEAT; /* plans may copy %a */
    }
    cutset_plan *plan = NULL;
    cutset_error err;
    const cs_span text = {(const char *)data, size};
    if (cs_plan_parse_json(&plan, text, "fuzz", NULL, &err) != CUTSET_OK) return 0;
    again(plan);
    summarise(plan);
    if (cs_plan_bind(plan, g, plan->model_hash, &err) == CUTSET_OK) {
        again(plan);
        summarise(plan);
    }
    cs_plan_free(plan);
    return 0;
}
