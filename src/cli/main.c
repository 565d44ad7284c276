/* cutset: the command. Finds the subcommand; each is a file of its own. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const char help[] =
    "cutset cuts machine-learning graphs into the fewest accelerator engines that fit\n"
    "in memory, and proves it.\n"
    "\n"
    "  cutset inspect MODEL                   operators, types, weights, control flow\n"
    "  cutset plan    MODEL --target T        decide which engines there are\n"
    "  cutset split   MODEL --target T -o DIR plan, then write each part as a model\n"
    "  cutset verify  DIR                     run the whole model against the parts\n"
    "  cutset merge   DIR -o MODEL            the parts back into one model\n"
    "  cutset targets [NAME]                  the accelerators it knows\n"
    "\n"
    "cutset COMMAND --help tells more; man cutset tells all. MODEL is an ONNX file\n"
    "or a text graph; - is standard input. Exit codes: 0 done, 1 the answer is no,\n"
    "2 usage, 3 bad or changed model, plan or target, 4 system, 130 interrupted.\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"inspect", cli_inspect}, {"plan", cli_plan_command}, {"split", cli_split},
                {"verify", cli_verify},   {"merge", cli_merge},       {"targets", cli_targets}};
static const char *const later[] = {"build", "run", "explain", "report", "diff"};

static int run(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help, stderr);
        return CUTSET_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        fputs(help, stdout);
        return CUTSET_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("cutset %s\n", cutset_version_string());
        return CUTSET_OK;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (strcmp(name, later[i]) == 0) {
            fprintf(stderr, "cutset: %s is not there yet\n", name);
            return CUTSET_USAGE;
        }
    fprintf(stderr, "cutset: unknown command %s: see cutset --help\n", name);
    return CUTSET_USAGE;
}

int main(int argc, char **argv)
{
    cli_begin();
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 2 << 20); /* large arrays grow in place and go back to the system */
#endif
    return cli_finish(run(argc, argv));
}
