/* cutset inspect MODEL: what is in it. */
#include <stdio.h>

#include "cli/cli.h"

static const char help[] =
    "cutset inspect MODEL [--text | --json] [--shape x:1x3x224x224] [--dim N=8]\n"
    "               [--type NAME=f32[?,?]] [--follow-links]\n"
    "\n"
    "Tells operators, inputs, outputs, weights, control flow, and which types are\n"
    "unknown.\n"
    "  --text           the whole graph in the text form, with inferred types\n"
    "  --json           the same facts for programs\n"
    "  --follow-links   weight files may be symbolic links\n"
    "  --shape, --dim, --type\n"
    "                   shapes, sizes and types that the model leaves open\n";

int cli_inspect(int argc, char **argv)
{
    cli_model m = {0};
    bool text = false, json = false;
    const cli_option options[] = {
        {"text", CLI_FLAG, &text},   {"json", CLI_FLAG, &json},
        {"memory", CLI_LATER, NULL}, {"follow-links", CLI_FLAG, &m.follow_links},
        CLI_MODEL_OPTIONS(m),        {NULL, CLI_FLAG, NULL}};
    const char *path;
    int n;
    int bad = cli_parse(argc, argv, options, help, &path, 1, &n);
    if (bad) return bad < 0 ? CUTSET_OK : bad;
    if (n != 1) return cli_usage("inspect", "name a model: cutset inspect MODEL");
    if (text && json) return cli_usage("inspect", "--text and --json exclude each other: give one");
    cutset_error err;
    cutset_model *model;
    if (cli_open(&model, path, &m, &err)) return cli_fail(&err);
    cli_progress_end();
    cli_notes(model);
    cutset_inspect_form form = text   ? CUTSET_INSPECT_TEXT
                               : json ? CUTSET_INSPECT_JSON
                                      : CUTSET_INSPECT_TABLE;
    cutset_status s = cutset_model_inspect(model, form, cli_stdout, NULL, &err);
    cutset_model_free(model);
    return s ? cli_fail(&err) : CUTSET_OK;
}
