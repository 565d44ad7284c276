/* Target files: any bytes are a target or an error of one line, never a crash or a word on stderr.
 * What loads is described in both forms and asked about a small graph. */
#include "target/rules.h"

#include <stdlib.h>
#include <string.h>

static const char model[] = "opset 17\n"
                            "input %x : f32[1,3,N,8]\n"
                            "input %c : bool[]\n"
                            "weight %w : i64[2]\n"
                            "%a : f32[1,3,8,8], %b : i64[?] = TopK(%x, %w, , %x) {axis=1, k=3, "
                            "pads=[1,2], mode=\"linear\", scales=[1.5], acts=[\"a\"]}\n"
                            "%d : f32[1,3,8,8] = com.example:Foo(%x, %a) {axis=-9}\n"
                            "%e = If(%c) {\n"
                            "body then_branch\n  %t : f32[3] = Relu(%a)\n  output %t\nend\n"
                            "body else_branch\n  %u : i32[3,3] = Relu(%b)\n  output %u\nend\n"
                            "}\n"
                            "output %d\noutput %e\n";

static int count(void *payload, const void *bytes, size_t len)
{
    (void)bytes;
    *(size_t *)payload += len;
    return 0;
}

static void ask(const cutset_target *target, const cs_graph *g)
{
    cs_strtab words;
    if (!cs_strtab_init(&words)) abort();
    for (uint32_t i = 0; i < g->nodes.len; i++) {
        cs_rule rule;
        cs_str why;
        if (cs_target_check(target, g, i, &words, &rule, &why, NULL) != CUTSET_OK) abort();
        if ((rule == CS_RULE_NONE) != (why == 0)) abort();
    }
    for (cs_type t = 0; t < g->pool->types.len; t++) {
        const char *why;
        bool crosses = cs_target_may_cross(target, g->pool, t, t % 2, &why);
        if (crosses != (why == NULL)) abort();
    }
    cs_strtab_fini(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cutset_error err = {0};
    cutset_target *target = NULL;
    cutset_status status =
        cs_target_load(&target, "fuzz.yaml", (cs_span){(const char *)data, size}, &err);
    if (status != CUTSET_OK) {
        if (target != NULL || err.message[0] == 0 || strchr(err.message, '\n') != NULL) abort();
        return 0;
    }
    size_t bytes = 0;
    for (int json = 0; json < 2; json++)
        if (cutset_target_describe(target, json, count, &bytes, &err) != CUTSET_OK) abort();
    cs_graph *g = NULL;
    if (cs_text_read(&g, CS_SPAN(model), NULL, &err) != CUTSET_OK) abort();
    ask(target, g);
    cs_graph_free(g);
    cutset_target_free(target);
    return 0;
}
