/* cutset verify DIR: the whole model against the chain of its parts. */
#include <stdio.h>

#include "base/text.h"
#include "cli/cli.h"

static const char help[] =
    "cutset verify DIR [--seed N] [--runs N] [--input NAME=x.npy] [--range NAME=0..9]\n"
    "              [--shape x:1x3x224x224] [--dim N=8] [--onnxruntime LIB] [--json]\n"
    "\n"
    "Runs the source model and the parts in DIR with ONNX Runtime on the same inputs,\n"
    "random by seed unless given, and compares the outputs bit for bit. Exit code 1\n"
    "and the name of the first part that differs, if one does.\n";

int cli_verify(int argc, char **argv)
{
    cli_list inputs = {0}, ranges = {0};
    cli_model m = {0};
    const char *library = NULL, *seed = "0";
    int64_t runs = 1, seed_number;
    bool json = false;
    const cli_option options[] = {{"seed", CLI_TEXT, &seed},
                                  {"runs", CLI_COUNT, &runs},
                                  {"input", CLI_LIST, &inputs},
                                  {"range", CLI_LIST, &ranges},
                                  {"onnxruntime", CLI_TEXT, &library},
                                  {"json", CLI_FLAG, &json},
                                  {"engines", CLI_LATER, NULL},
                                  {"shape", CLI_LIST, &m.shapes},
                                  {"dim", CLI_LIST, &m.dims},
                                  {"type", CLI_LIST, &m.types},
                                  {NULL, CLI_FLAG, NULL}};
    const char *dir;
    int n;
    int bad = cli_parse(argc, argv, options, help, &dir, 1, &n);
    if (bad) return bad < 0 ? CUTSET_OK : bad;
    if (n != 1) return cli_usage("verify", "name the folder of a split: cutset verify DIR");
    if (seed[0] == '+' || !cs_parse_i64(cs_span_of(seed), &seed_number) || seed_number < 0)
        return cli_usage("verify", "--seed %s: give a whole number", seed);
    if (runs > 1000000)
        return cli_usage("verify", "--runs %lld: give at most 1000000", (long long)runs);
    cutset_verify_opts opts;
    cutset_verify_opts_init(&opts);
    opts.seed = (uint64_t)seed_number, opts.runs = (int)runs;
    opts.inputs = inputs.at, opts.n_inputs = inputs.len;
    opts.ranges = ranges.at, opts.n_ranges = ranges.len;
    opts.types = m.types.at, opts.n_types = m.types.len;
    opts.shapes = m.shapes.at, opts.n_shapes = m.shapes.len;
    opts.dims = m.dims.at, opts.n_dims = m.dims.len;
    opts.onnxruntime = library, opts.json = json;
    opts.progress = cli_progress();
    cutset_error err;
    cutset_status s = cutset_verify(dir, &opts, cli_stdout, NULL, &err);
    cli_progress_end();
    return s ? cli_fail(&err) : CUTSET_OK;
}
