/* TorchScript text: what reads gives graphs that verify, and plans without a crash; what does not is
 * refused in one line with its place. */
#include "torch/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "fuzz_torchscript: %s\n", what);
    abort();
}

static void check_blocks(const cs_torch *t)
{
    cutset_error err = {0};
    for (size_t b = 0; b < t->blocks.len; b++) {
        const cs_torch_block *block = &t->blocks.at[b];
        check(!cs_graph_verify(block->graph, &err), err.message);
        check(block->nodes.len == block->graph->nodes.len, "nodes");
        check(b == 0 ? block->owner == CS_NONE : block->owner < b, "owner");
    }
}

/* Everything allowed, each weight in one of two storages, all attributes true. */
static void fuzz_given(cs_span text, size_t n)
{
    uint32_t *ones = malloc((n + 1) * sizeof *ones), *zeros = calloc(n + 1, sizeof *zeros);
    int8_t *truth = calloc(n + 1, 1);
    const int64_t bytes[] = {100, 7};
    if (!ones || !zeros || !truth) abort();
    for (size_t i = 0; i < n; i++) {
        ones[i] = CUTSET_ALLOW_HOST | 1;
        zeros[i] = i % 2;
        truth[i] = i % 3 == 0;
    }
    const cutset_torchscript in = {.text = text.at,
                                   .len = text.len,
                                   .n_lines = n,
                                   .allow = ones,
                                   .n_storages = 2,
                                   .storage_bytes = bytes,
                                   .storages = zeros,
                                   .truth = truth};
    cutset_model *m;
    cutset_target *acc;
    cutset_plan *plan = NULL;
    cutset_plan_opts opts;
    cutset_error err = {0};
    check(!cutset_model_open_torchscript(&m, &in, &err), err.message);
    check(!cutset_target_marked(&acc, "acc", 4, 0, 0, &err), err.message);
    cutset_plan_opts_init(&opts);
    opts.host_memory = 500;
    opts.min_nodes = 2;
    const cutset_status s =
        cutset_plan_make(&plan, m, (const cutset_target *const *)&acc, 1, &opts, &err);
    check(s == CUTSET_OK || s == CUTSET_NO, err.message);
    cutset_plan_free(plan);
    cutset_target_free(acc);
    cutset_model_free(m);
    free(ones);
    free(zeros);
    free(truth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cs_span text = {(const char *)data, size};
    const cutset_torchscript in = {.text = text.at, .len = text.len};
    cutset_error err = {0};
    cs_torch *t;
    (void)cs_torch_probe(text);
    const cutset_status s = cs_torch_read(&t, &in, &err);
    if (s) {
        check(s == CUTSET_BAD && err.message[0] && !strchr(err.message, '\n'), "message");
        check(err.offset >= 0 && err.offset <= (int64_t)size, "offset");
        return 0;
    }
    check_blocks(t);
    cs_torch_free(t);
    cs_script script;
    check(!cs_script_parse(&script, text, &err), "reads once");
    const size_t n = script.lines.len;
    cs_script_fini(&script);
    fuzz_given(text, n);
    return 0;
}
