/* cutset split MODEL --target T -o DIR: plans, then writes each part as a model of its own. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const char help[] =
    "cutset split MODEL --target T [planning options] [--weights HOW]\n"
    "             [--follow-links] [--json] -o DIR\n"
    "cutset split MODEL --plan plan.json [--weights HOW] [--follow-links] [--json]\n"
    "             -o DIR\n"
    "\n"
    "Writes DIR/plan.json and one ONNX model a part; DIR appears whole or not at all.\n"
    "  --plan FILE      write the parts of this plan\n"
    "  --weights HOW    refer: parts name the source's own data, nothing is copied\n"
    "                   (DIR must be the folder of the data or one above it)\n"
    "                   copy: into DIR/weights; inline: inside the parts\n"
    "                   auto (default): refer where it can be, else inline up to\n"
    "                   1 GiB a part, else copy\n"
    "  --follow-links   weight files may be symbolic links; their data is copied\n"
    "  --json           print the plan instead of its summary\n"
    "\n";

static int weights_mode(const char *text)
{
    static const char *const names[] = {"auto", "refer", "copy", "inline"};
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) return i;
    return -1;
}

/* The plan and its model: made, or read. */
static cutset_status prepare(cutset_plan **plan, cutset_model **model, const char *path,
                             const char *plan_path, cli_plan *p, cutset_error *err)
{
    if (!plan_path) return cli_make_plan(plan, model, path, p, err);
    *model = NULL;
    cutset_status s = cutset_plan_read(plan, plan_path, err);
    if (s) return s;
    cutset_progress progress = cli_progress();
    s = cutset_plan_open_model(model, *plan, path, p->model.follow_links, &progress, err);
    if (s) cutset_plan_free(*plan);
    return s;
}

int cli_split(int argc, char **argv)
{
    cli_plan p = {0};
    const char *output = NULL, *weights = "auto", *plan_path = NULL;
    bool json = false;
    const cli_option options[] = {{"o", CLI_TEXT, &output},
                                  {"weights", CLI_TEXT, &weights},
                                  {"plan", CLI_TEXT, &plan_path},
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
    if (n != 1) return cli_usage("split", "name a model: cutset split MODEL --target T -o DIR");
    if (!output) return cli_usage("split", "name the folder to write: -o DIR");
    if (plan_path && cli_plan_given(&p))
        return cli_usage("split", "--plan has its options in the plan: drop the planning options");
    int mode = weights_mode(weights);
    if (mode < 0)
        return cli_usage("split", "--weights %s: give auto, refer, copy or inline", weights);
    cutset_error err;
    cutset_model *model;
    cutset_plan *plan;
    if (prepare(&plan, &model, path, plan_path, &p, &err)) return cli_fail(&err);
    cutset_split_opts opts;
    cutset_split_opts_init(&opts);
    opts.weights = (cutset_weights)mode;
    opts.progress = cli_progress();
    cutset_status s = cutset_split_write(model, plan, output, &opts, &err);
    cli_progress_end();
    if (!s) {
        cli_notes(model);
        s = json ? cutset_plan_write(plan, NULL, cli_stdout, NULL, &err)
                 : cutset_plan_summary(plan, cli_stdout, NULL, &err);
    }
    cutset_plan_free(plan);
    cutset_model_free(model);
    return s ? cli_fail(&err) : CUTSET_OK;
}
