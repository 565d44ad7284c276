/* cutset plan MODEL --target T: decides, and prints or saves the plan. */
#include <stdio.h>

#include "cli/cli.h"

static const char help[] =
    "cutset plan MODEL --target T [planning options] [-o plan.json | --json]\n"
    "            [--follow-links]\n"
    "\n"
    "Decides which nodes run on an accelerator and groups them into as few engines\n"
    "as can be proved possible, and prints a summary.\n"
    "  -o FILE          also write the plan to a file\n"
    "  --json           print the plan instead of its summary\n"
    "  --follow-links   weight files may be symbolic links\n"
    "\n";

int cli_plan_command(int argc, char **argv)
{
    cli_plan p = {0};
    const char *output = NULL;
    bool json = false;
    const cli_option options[] = {{"o", CLI_TEXT, &output},
                                  {"json", CLI_FLAG, &json},
                                  {"follow-links", CLI_FLAG, &p.model.follow_links},
                                  CLI_PLAN_OPTIONS(p),
                                  {NULL, CLI_FLAG, NULL}};
    char text[4000];
    snprintf(text, sizeof text, "%s%s", help, cli_plan_help);
    const char *path;
    int n;
    int bad = cli_parse(argc, argv, options, text, &path, 1, &n);
    if (bad) return bad < 0 ? CUTSET_OK : bad;
    if (n != 1) return cli_usage("plan", "name a model: cutset plan MODEL --target T");
    if (output && !*output) return cli_usage("plan", "-o names no file");
    cutset_error err;
    cutset_model *model;
    cutset_plan *plan;
    if (cli_make_plan(&plan, &model, path, &p, &err)) return cli_fail(&err);
    cli_progress_end();
    cli_notes(model);
    if (output && cutset_model_reads(model, output)) {
        cutset_plan_free(plan);
        cutset_model_free(model);
        return cli_usage("plan", "%s is a file of the model: name another for the plan", output);
    }
    cutset_status s = CUTSET_OK;
    if (output) s = cutset_plan_save(plan, output, &err);
    if (!s && json) s = cutset_plan_write(plan, NULL, cli_stdout, NULL, &err);
    if (!s && !json) s = cutset_plan_summary(plan, cli_stdout, NULL, &err);
    cutset_plan_free(plan);
    cutset_model_free(model);
    return s ? cli_fail(&err) : CUTSET_OK;
}
