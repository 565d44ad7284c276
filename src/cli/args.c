/* Parsing of options: kebab-case, "--x v" and "--x=v", "--" ends them, any order with operands. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"

static const cli_option *find(const cli_option *options, const char *name, size_t len)
{
    for (; options->name; options++)
        if (strlen(options->name) == len && memcmp(options->name, name, len) == 0) return options;
    return NULL;
}

int cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "cutset %s: ", command);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return CUTSET_USAGE;
}

/* Lists live until the process ends; none is longer than argv. */
static cs_arena lists;
static size_t longest;

static int append(const char *command, cli_list *list, const char *value)
{
    if (!list->at && !(list->at = cs_arena_alloc(&lists, longest, sizeof *list->at))) {
        cli_usage(command, "out of memory");
        return CUTSET_SYSTEM;
    }
    list->at[list->len++] = value;
    return 0;
}

/* None left is a budget of one byte: 0 would mean no budget. */
static int store_available(const char *command, const cli_option *o)
{
    cutset_error err;
    int64_t bytes;
    const cutset_status status = cutset_available_memory(&bytes, NULL, NULL, &err);
    if (status) {
        cli_usage(command, "--%s auto: %s", o->name, err.message);
        return status;
    }
    *(int64_t *)o->to = bytes > 0 ? bytes : 1;
    return 0;
}

static int store(const char *command, const cli_option *o, const char *value)
{
    cs_span text = cs_span_of(value);
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)o->to = true;
        return 0;
    case CLI_TEXT:
        *(const char **)o->to = value;
        return 0;
    case CLI_LIST:
        return append(command, o->to, value);
    case CLI_AUTO:
        if (cs_span_is(text, "auto")) return store_available(command, o);
        __attribute__((fallthrough));
    case CLI_SIZE:
        if (cs_span_is(text, "auto"))
            return cli_usage(command, "--%s auto is not there yet: give a size such as 8GiB",
                             o->name);
        if (!cs_parse_size(text, o->to))
            return cli_usage(command, "--%s %s: give a positive size such as 512MiB, 8GiB or 8GB",
                             o->name, value);
        return 0;
    case CLI_COUNT:
        if (value[0] == '+' || !cs_parse_i64(text, o->to) || *(int64_t *)o->to < 1)
            return cli_usage(command, "--%s %s: give a positive whole number", o->name, value);
        return 0;
    case CLI_LATER:
        return cli_usage(command, "--%s is not there yet", o->name);
    }
    return 0;
}

int cli_parse(int argc, char **argv, const cli_option *options, const char *help,
              const char **operands, int max_operands, int *n_operands)
{
    const char *command = argv[0];
    bool ended = false;
    longest = (size_t)argc;
    *n_operands = 0;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        bool is_option = !ended && arg[0] == '-' && arg[1];
        if (is_option && strcmp(arg, "--") == 0) {
            ended = true;
            continue;
        }
        if (!is_option) {
            if (*n_operands == max_operands)
                return cli_usage(command, "%s is one operand too many: see cutset %s --help", arg,
                                 command);
            operands[(*n_operands)++] = arg;
            continue;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            fputs(help, stdout);
            return -1;
        }
        const char *name = arg + (arg[1] == '-' ? 2 : 1);
        const char *eq = arg[1] == '-' ? strchr(name, '=') : NULL;
        size_t len = eq ? (size_t)(eq - name) : strlen(name);
        const cli_option *o = (arg[1] == '-') == (len > 1) ? find(options, name, len) : NULL;
        if (!o)
            return cli_usage(command, "unknown option %.*s: see cutset %s --help",
                             (int)(name - arg + len), arg, command);
        if (o->kind == CLI_FLAG && eq) return cli_usage(command, "--%s takes no value", o->name);
        const char *value = eq ? eq + 1 : NULL;
        if (o->kind != CLI_FLAG && o->kind != CLI_LATER && !value) {
            if (++i == argc) return cli_usage(command, "%s needs a value", arg);
            value = argv[i];
        }
        int bad = store(command, o, value);
        if (bad) return bad;
    }
    return 0;
}
