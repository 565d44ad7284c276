/* What the commands share: options, output, progress. One file a command. */
#ifndef CS_CLI_CLI_H
#define CS_CLI_CLI_H

#include <stdbool.h>

#include "cutset.h"

/* ---- options: --name value, --name=value, flags; anything else is an operand ---- */

typedef enum cli_kind {
    CLI_FLAG,
    CLI_TEXT,
    CLI_LIST,
    CLI_SIZE,
    CLI_AUTO, /* a size, or "auto": what the system allows now */
    CLI_COUNT,
    CLI_LATER
} cli_kind;

typedef struct cli_list {
    const char **at;
    size_t len;
} cli_list;

typedef struct cli_option {
    const char *name; /* without dashes; a single letter is also -x */
    cli_kind kind;
    void *
        to; /* bool *, const char **, cli_list *, int64_t * (SIZE, AUTO, COUNT); LATER: the reason, a string */
} cli_option;

/* Sorts argv into options and operands. On a mistake says so on stderr and returns CUTSET_USAGE;
 * `--help` prints `help` and returns -1. */
int cli_parse(int argc, char **argv, const cli_option *options, const char *help,
              const char **operands, int max_operands, int *n_operands);

/* Options that say what a model's unknown types are. */
typedef struct cli_model {
    cli_list types, shapes, dims;
    bool follow_links;
} cli_model;
#define CLI_MODEL_OPTIONS(m)                                                                       \
    {"type", CLI_LIST, &(m).types}, {"shape", CLI_LIST, &(m).shapes}, { "dim", CLI_LIST, &(m).dims }
cutset_status cli_open(cutset_model **out, const char *path, const cli_model *m, cutset_error *err);

/* Planning options. */
typedef struct cli_plan {
    cli_model model;
    cli_list targets, pins, excludes, groups;
    int64_t host_memory, device_memory, min_nodes, max_engines;
    const char *oversize, *objective, *effort;
    bool connected;
} cli_plan;
/* clang-format off */
#define CLI_PLAN_OPTIONS(p) \
    CLI_MODEL_OPTIONS((p).model), {"target", CLI_LIST, &(p).targets}, \
    {"pin", CLI_LIST, &(p).pins}, {"exclude", CLI_LIST, &(p).excludes}, \
    {"group", CLI_LIST, &(p).groups}, {"host-memory", CLI_AUTO, &(p).host_memory}, \
    {"device-memory", CLI_SIZE, &(p).device_memory}, {"min-nodes", CLI_COUNT, &(p).min_nodes}, \
    {"oversize", CLI_TEXT, &(p).oversize}, {"objective", CLI_TEXT, &(p).objective}, \
    {"effort", CLI_TEXT, &(p).effort}, {"connected", CLI_FLAG, &(p).connected}, \
    {"max-engines", CLI_COUNT, &(p).max_engines}, {"min-benefit", CLI_LATER, NULL}
/* clang-format on */
extern const char cli_plan_help[];
/* Was any of these given? */
bool cli_plan_given(const cli_plan *p);
/* Opens targets and model and plans. */
cutset_status cli_make_plan(cutset_plan **plan, cutset_model **model, const char *path, cli_plan *p,
                            cutset_error *err);

/* ---- output ---- */
int cli_stdout(void *payload, const void *bytes, size_t len); /* a cutset_write_fn */
/* First and last in main: signals; what stdio still holds, and what standard output did not take.
 * Takes the command's exit code (not 0: its line of an error is out) and returns the process's. */
void cli_begin(void);
int cli_finish(int code);
/* Prints the one line of an error; returns its exit code. */
int cli_fail(const cutset_error *err);
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_notes(const cutset_model *model);
/* A line on a terminal's stderr for what takes over a second; also carries SIGINT, SIGTERM and
 * SIGHUP. */
cutset_progress cli_progress(void);
void cli_progress_end(void); /* wipes the line */

/* ---- commands: argv[0] is the command's name; the exit code ---- */
int cli_inspect(int argc, char **argv);
int cli_plan_command(int argc, char **argv);
int cli_split(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_merge(int argc, char **argv);
int cli_targets(int argc, char **argv);

#endif
