/* What the commands share: opening, planning, errors, progress. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"

/* ---- output ---- */

static volatile sig_atomic_t interrupted;
static int stdout_errno; /* why standard output did not take something; 0: it took all */

int cli_stdout(void *payload, const void *bytes, size_t len)
{
    (void)payload;
    errno = 0;
    if (fwrite(bytes, 1, len, stdout) == len && fflush(stdout) == 0) return 0;
    if (!stdout_errno) stdout_errno = errno ? errno : EIO;
    return 1;
}

static int fail_stdout(void)
{
    if (stdout_errno == EINTR && interrupted) {
        fputs("cutset: interrupted while writing standard output\n", stderr);
        return CUTSET_INTERRUPTED;
    }
    fprintf(stderr, "cutset: cannot write standard output: %s\n", strerror(stdout_errno));
    return CUTSET_SYSTEM;
}

int cli_fail(const cutset_error *err)
{
    cli_progress_end();
    if (stdout_errno && err->status == CUTSET_SYSTEM) return fail_stdout();
    fprintf(stderr, "cutset: %s\n", err->message);
    return err->status;
}

int cli_finish(int code)
{
    errno = 0;
    if ((fflush(stdout) || ferror(stdout)) && !stdout_errno) stdout_errno = errno ? errno : EIO;
    return stdout_errno && code == CUTSET_OK ? fail_stdout() : code;
}

void cli_notes(const cutset_model *model)
{
    const char *note;
    for (size_t i = 0; (note = cutset_model_note(model, i)); i++)
        fprintf(stderr, "note: %s\n", note);
}

/* ---- progress and signals ---- */

static const int stopping[] = {SIGINT, SIGTERM, SIGHUP};
enum { STOPPING = sizeof stopping / sizeof *stopping };
static bool watched[STOPPING]; /* not those that nohup or a shell's "&" had ignored */
static struct timespec began, shown;
static bool on_screen;

/* The first asks the command to stop and clean up; a second one, of any kind, ends it at once. */
static void on_signal(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
    for (int i = 0; i < STOPPING; i++)
        if (watched[i]) signal(stopping[i], SIG_DFL);
}

void cli_begin(void)
{
    clock_gettime(CLOCK_MONOTONIC, &began);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error that is told, not a silent death */
    for (int i = 0; i < STOPPING; i++) {
        struct sigaction action;
        if (sigaction(stopping[i], NULL, &action) || action.sa_handler == SIG_IGN) continue;
        watched[i] = true;
        action = (struct sigaction){.sa_handler = on_signal}; /* no SA_RESTART: reads return */
        sigaction(stopping[i], &action, NULL);
    }
}

static double seconds(struct timespec from, struct timespec to)
{
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

static int on_progress(void *payload, const char *phase, uint64_t done, uint64_t total)
{
    struct timespec now;
    (void)payload;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!interrupted && isatty(STDERR_FILENO) && seconds(began, now) > 1 &&
        seconds(shown, now) > 0.1) {
        if (total)
            fprintf(stderr, "\r%s %d %%\033[K", phase, (int)(100 * (double)done / (double)total));
        else
            fprintf(stderr, "\r%s ...\033[K", phase);
        shown = now;
        on_screen = true;
    }
    return interrupted;
}

cutset_progress cli_progress(void) { return (cutset_progress){on_progress, NULL}; }

void cli_progress_end(void)
{
    if (on_screen) fputs("\r\033[K", stderr);
    on_screen = false;
}

/* ---- models and plans ---- */

cutset_status cli_open(cutset_model **out, const char *path, const cli_model *m, cutset_error *err)
{
    cutset_open_opts opts;
    cutset_open_opts_init(&opts);
    opts.types = m->types.at, opts.n_types = m->types.len;
    opts.shapes = m->shapes.at, opts.n_shapes = m->shapes.len;
    opts.dims = m->dims.at, opts.n_dims = m->dims.len;
    opts.follow_links = m->follow_links;
    opts.progress = cli_progress();
    return cutset_model_open(out, path, &opts, err);
}

const char cli_plan_help[] =
    "planning options:\n"
    "  --target T            a shipped target or a target file; of several the first\n"
    "                        named is served first\n"
    "  --host-memory SIZE    budget of each engine while it is built (8GiB, 512MiB,\n"
    "                        or auto: what the system allows now)\n"
    "  --device-memory SIZE  budget of each engine while it runs\n"
    "  --oversize HOW        an operator over the budget alone: error (default),\n"
    "                        host, keep\n"
    "  --min-nodes N         engines of fewer nodes go to the host\n"
    "  --max-engines M       at most so many: what costs least goes to the host\n"
    "  --connected           an engine is one connected piece\n"
    "  --pin NAME=TARGET     run these nodes there; NAME is a node, a value or a glob\n"
    "  --exclude OP|NAME     keep these nodes on the host\n"
    "  --group NAME,NAME     keep these nodes in one part\n"
    "  --objective engines   what to minimise first\n"
    "  --effort 0..3         default 1\n"
    "  --shape x:1x3x224x224, --dim N=8, --type NAME=f32[?,?]\n"
    "                        shapes, sizes and types that the model leaves open\n";

bool cli_plan_given(const cli_plan *p)
{
    return p->targets.len || p->pins.len || p->excludes.len || p->groups.len || p->host_memory ||
           p->device_memory || p->min_nodes || p->max_engines || p->oversize || p->objective ||
           p->effort || p->connected || p->model.types.len || p->model.shapes.len ||
           p->model.dims.len;
}

static cutset_status usage(cutset_error *err, const char *format, const char *value)
{
    err->status = CUTSET_USAGE;
    snprintf(err->message, sizeof err->message, format, value);
    return CUTSET_USAGE;
}

static cutset_status read_choices(const cli_plan *p, cutset_plan_opts *o, cutset_error *err)
{
    static const char *const oversize[] = {"error", "host", "keep"};
    for (int i = 0; p->oversize && i < 4; i++) {
        if (i == 3) return usage(err, "--oversize %s: give error, host or keep", p->oversize);
        if (strcmp(p->oversize, oversize[i]) == 0) {
            o->oversize = (cutset_oversize)i;
            break;
        }
    }
    if (p->objective && strcmp(p->objective, "bytes") == 0)
        return usage(err, "--objective %s is not there yet: leave it out", p->objective);
    if (p->objective && strcmp(p->objective, "engines") != 0)
        return usage(err, "--objective %s: give engines", p->objective);
    if (p->effort) {
        if (p->effort[0] < '0' || p->effort[0] > '3' || p->effort[1])
            return usage(err, "--effort %s: give 0, 1, 2 or 3", p->effort);
        o->effort = p->effort[0] - '0';
    }
    return CUTSET_OK;
}

static void close_targets(cutset_target **targets, size_t n)
{
    for (size_t i = 0; targets && i < n; i++)
        cutset_target_free(targets[i]);
    cs_free(targets);
}

cutset_status cli_make_plan(cutset_plan **plan, cutset_model **model, const char *path, cli_plan *p,
                            cutset_error *err)
{
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    *plan = NULL;
    *model = NULL;
    if (!p->targets.len)
        return usage(err, "%s",
                     "name a target: --target acc, --target tensorrt (cutset targets lists them)");
    cutset_status s = read_choices(p, &opts, err);
    if (s) return s;
    opts.host_memory = p->host_memory, opts.device_memory = p->device_memory;
    opts.min_nodes = p->min_nodes, opts.max_engines = p->max_engines;
    opts.connected = p->connected;
    opts.pins = p->pins.at, opts.n_pins = p->pins.len;
    opts.excludes = p->excludes.at, opts.n_excludes = p->excludes.len;
    opts.groups = p->groups.at, opts.n_groups = p->groups.len;
    opts.progress = cli_progress();
    cutset_target **targets = cs_zalloc(p->targets.len, sizeof *targets);
    if (!targets) return usage(err, "%s", "out of memory"), err->status = CUTSET_SYSTEM;
    for (size_t i = 0; !s && i < p->targets.len; i++)
        s = cutset_target_open(&targets[i], p->targets.at[i], err);
    if (!s) s = cli_open(model, path, &p->model, err);
    if (!s)
        s = cutset_plan_make(plan, *model, (const cutset_target *const *)targets, p->targets.len,
                             &opts, err);
    close_targets(targets, p->targets.len);
    if (s) {
        cutset_model_free(*model);
        *model = NULL;
    }
    return s;
}
