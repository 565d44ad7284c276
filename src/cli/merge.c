/* cutset merge DIR -o MODEL: the parts back into one model. */
#include "cli/cli.h"

static const char help[] =
    "cutset merge DIR -o MODEL\n"
    "\n"
    "Joins the parts of a split into one model that equals the source: the same nodes\n"
    "in the source's order, the same weights. What the parts do not carry (unused\n"
    "initializers, functions and imports) is listed.\n";

int cli_merge(int argc, char **argv)
{
    const char *output = NULL, *dir;
    const cli_option options[] = {{"o", CLI_TEXT, &output}, {NULL, CLI_FLAG, NULL}};
    int n;
    int bad = cli_parse(argc, argv, options, help, &dir, 1, &n);
    if (bad) return bad < 0 ? CUTSET_OK : bad;
    if (n != 1) return cli_usage("merge", "name the folder of a split: cutset merge DIR -o MODEL");
    if (!output) return cli_usage("merge", "name the model to write: -o MODEL");
    if (!*output) return cli_usage("merge", "-o names no file");
    cutset_error err;
    cutset_progress progress = cli_progress();
    cutset_status s = cutset_merge(dir, output, &progress, cli_stdout, NULL, &err);
    cli_progress_end();
    return s ? cli_fail(&err) : CUTSET_OK;
}
