/* cutset targets [NAME]: the shipped targets, or one in detail. */
#include <stdio.h>

#include "cli/cli.h"

static const char help[] = "cutset targets [--json] [NAME | FILE.yaml]\n"
                           "\n"
                           "Lists the targets that come with cutset, or tells what one takes.\n";

static void list(bool json)
{
    const char *name; /* plain characters: JSON needs no escapes */
    if (json) fputs("[", stdout);
    for (size_t i = 0; (name = cutset_target_shipped(i)); i++) {
        if (json)
            printf("%s\"%s\"", i ? ", " : "", name);
        else
            puts(name);
    }
    if (json) puts("]");
}

int cli_targets(int argc, char **argv)
{
    bool json = false;
    const cli_option options[] = {{"json", CLI_FLAG, &json}, {NULL, CLI_FLAG, NULL}};
    const char *name;
    int n;
    int bad = cli_parse(argc, argv, options, help, &name, 1, &n);
    if (bad) return bad < 0 ? CUTSET_OK : bad;
    if (!n) {
        list(json);
        return CUTSET_OK;
    }
    cutset_error err;
    cutset_target *target;
    if (cutset_target_open(&target, name, &err)) return cli_fail(&err);
    cutset_status s = cutset_target_describe(target, json, cli_stdout, NULL, &err);
    cutset_target_free(target);
    return s ? cli_fail(&err) : CUTSET_OK;
}
