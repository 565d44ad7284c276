/* The summary of a plan for a terminal.
 *
 *     model.onnx: 1746 nodes, 30.4 MiB of weights
 *     3 engines on tensorrt-11, proved minimal (path)
 *     5 parts; 12 values cross, 1.2 MiB at engines (bound 1 MiB)
 *     host memory: 512 MiB an engine; the heaviest, part 3, needs 480 MiB (93 %)
 *
 *     part  target        nodes    weights      build  operators
 *        0  host              3        0 B          -  Shape 2, Gather
 *     ...
 *
 *     on the host for a reason: 3 nodes
 *      nodes  saves  rule      why
 *          2      1  op        NonZero is not supported by tensorrt-11
 *
 * "saves": the engines that supporting one such node saves, at most. The operator stands in front
 * of the sentence where that does not begin with it. Cost: O(n log n) in the fallback list.
 */
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/line.h"

enum { ROWS = 20, REASONS = 10, NOTES = 10 };

static cs_span name_of(const cutset_plan *plan, cs_str s) { return cs_strtab_get(&plan->names, s); }

static cs_span target_of(const cutset_plan *plan, int32_t target)
{
    return target < 0 ? CS_SPAN("host") : name_of(plan, plan->targets.at[target].name);
}

/* ---- head ---- */

static void put_model(const cutset_plan *plan, cs_out *out)
{
    cs_line tail = {0};
    cs_line_printf(&tail, ": ");
    cs_line_count(&tail, plan->model_nodes, "node", "nodes");
    cs_line_printf(&tail, ", ");
    cs_line_size(&tail, plan->model_weight_bytes);
    cs_line_printf(&tail, " of weights");
    const char *path = plan->model_path;
    if (path == NULL) path = "model in memory";
    if (path[0] == '-' && path[1] == '\0') path = "standard input";
    cs_line l = {0};
    cs_line_tail(&l, cs_span_of(path), CS_COLUMNS - cs_line_columns(&tail));
    cs_line_printf(&l, "%s", tail.text);
    cs_line_put(&l, out);
}

/* "on tensorrt-11" or "(2 on a, 1 on b)" */
static void add_targets(const cutset_plan *plan, cs_line *l)
{
    const bool several = plan->targets.len > 1;
    cs_line_printf(l, several ? " (" : " ");
    for (size_t t = 0; t < plan->targets.len; t++) {
        uint32_t count = 0;
        for (size_t p = 0; p < plan->parts.len; p++)
            count += plan->parts.at[p].target == (int32_t)t;
        if (several) cs_line_printf(l, "%s%" PRIu32 " ", t > 0 ? ", " : "", count);
        cs_line_printf(l, "on ");
        cs_line_span(l, target_of(plan, (int32_t)t));
    }
    if (several) cs_line_printf(l, ")");
}

static void put_engines(const cutset_plan *plan, cs_out *out)
{
    cs_line l = {0};
    const char *kind = cs_bound_kind_name(plan->bound_kind);
    if (plan->engines == 0) {
        cs_line_printf(&l, "no engine: everything runs on the host");
        cs_line_put(&l, out);
        return;
    }
    cs_line_count(&l, plan->engines, "engine", "engines");
    add_targets(plan, &l);
    if (plan->engines == plan->engines_bound)
        cs_line_printf(&l, ", proved minimal (%s)", kind);
    else
        cs_line_printf(&l, ", bound %" PRIu32 " (%s): gap %" PRIu32, plan->engines_bound, kind,
                       plan->engines - plan->engines_bound);
    cs_line_put(&l, out);
}

static void put_boundaries(const cutset_plan *plan, cs_out *out)
{
    cs_line l = {0};
    cs_line_count(&l, plan->parts.len, "part", "parts");
    cs_line_printf(&l, "; ");
    cs_line_count(&l, plan->boundaries.len, "value crosses", "values cross");
    if (plan->boundaries.len > 0) {
        cs_line_printf(&l, ", ");
        cs_line_size(&l, plan->boundary_bytes);
        cs_line_printf(&l, " at engines (bound ");
        cs_line_size(&l, plan->boundary_bytes_bound);
        cs_line_printf(&l, ")");
    }
    if (plan->boundaries_unknown > 0)
        cs_line_printf(&l, ", %" PRIu32 " of unknown size", plan->boundaries_unknown);
    cs_line_put(&l, out);
}

static void put_budget(const cutset_plan *plan, cs_out *out, const char *what, int64_t budget,
                       bool device)
{
    if (budget <= 0) return;
    cs_line l = {0};
    cs_line_printf(&l, "%s memory: ", what);
    cs_line_size(&l, budget);
    cs_line_printf(&l, " an engine");
    const cs_part *heaviest = NULL;
    int64_t most = -1;
    for (size_t p = 0; p < plan->parts.len; p++) {
        const cs_part *part = &plan->parts.at[p];
        const int64_t bytes = device ? part->device_bytes : part->host_build_bytes;
        if (!cs_part_is_engine(part) || bytes <= most) continue;
        heaviest = part;
        most = bytes;
    }
    if (heaviest != NULL) {
        cs_line_printf(&l, "; the heaviest, part %" PRIu32 ", needs ", heaviest->id);
        cs_line_size(&l, most);
        cs_line_printf(&l, " (%.0f %%)", (double)(int64_t)((double)most / (double)budget * 100));
    }
    cs_line_put(&l, out);
}

static void put_oversized(const cutset_plan *plan, cs_out *out)
{
    uint32_t count = 0, first = 0;
    for (size_t p = 0; p < plan->parts.len; p++) {
        if (!plan->parts.at[p].oversized) continue;
        if (count++ == 0) first = plan->parts.at[p].id;
    }
    if (count == 0) return;
    cs_line l = {0};
    cs_line_printf(&l, "over the budget and kept: ");
    cs_line_count(&l, count, "part", "parts");
    cs_line_printf(&l, count == 1 ? ", %" PRIu32 : ", the first is %" PRIu32, first);
    cs_line_put(&l, out);
}

/* ---- the table of parts ---- */

static size_t target_columns(const cutset_plan *plan)
{
    size_t most = sizeof "target" - 1;
    for (size_t t = 0; t < plan->targets.len; t++) {
        const size_t len = target_of(plan, (int32_t)t).len;
        if (len > most) most = len;
    }
    return most < 20 ? most : 20;
}

/* The most frequent operators, as many as fit whole; then "..." */
static void add_ops(const cutset_plan *plan, const cs_part *part, cs_line *l)
{
    for (uint32_t i = 0; i < part->n_op; i++) {
        const cs_op_count *op = &plan->ops.at[part->op + i];
        cs_line next = {0};
        cs_line_span(&next, name_of(plan, op->op));
        if (op->count > 1) cs_line_printf(&next, " %" PRIu32, op->count);
        const size_t more = i + 1 < part->n_op ? 5 : 0; /* ", ..." */
        const size_t used = cs_line_columns(l) + cs_line_columns(&next) + (i > 0 ? 2 : 0);
        if (i > 0 && used + more > CS_COLUMNS) {
            cs_line_printf(l, ", ...");
            return;
        }
        cs_line_printf(l, "%s%s", i > 0 ? ", " : "", next.text);
    }
}

static void put_part(const cutset_plan *plan, const cs_part *part, size_t columns, cs_out *out)
{
    cs_line l = {0};
    cs_line_printf(&l, "%4" PRIu32 "  ", part->id);
    cs_line_cell(&l, target_of(plan, part->target), columns);
    cs_line_printf(&l, " %8" PRIu32 " ", part->n_node);
    cs_line_size_cell(&l, part->weight_bytes);
    cs_line_printf(&l, " ");
    if (cs_part_is_engine(part))
        cs_line_size_cell(&l, part->host_build_bytes);
    else
        cs_line_printf(&l, "%10s", "-");
    cs_line_printf(&l, "  ");
    add_ops(plan, part, &l);
    cs_line_put(&l, out);
}

static void put_parts(const cutset_plan *plan, cs_out *out)
{
    const size_t n = plan->parts.len, columns = target_columns(plan);
    if (n == 0) return;
    cs_line l = {0};
    cs_line_put(&l, out);
    cs_line_printf(&l, "part  ");
    cs_line_cell(&l, CS_SPAN("target"), columns);
    cs_line_printf(&l, " %8s %10s %10s  operators", "nodes", "weights", "build");
    cs_line_put(&l, out);
    for (size_t p = 0; p < n; p++) {
        if (n > ROWS + 1 && p == ROWS / 2) { /* "and 1 more" would only stand for itself */
            cs_line_printf(&l, " ... and %zu more", n - ROWS);
            cs_line_put(&l, out);
            p = n - ROWS / 2;
        }
        put_part(plan, &plan->parts.at[p], columns, out);
    }
}

/* ---- what fell back ---- */

typedef struct reason {
    const cs_fallback *first; /* of the nodes with this rule, operator and sentence */
    uint32_t count;
    int64_t saved; /* the most that one of them saves; -1: not computed */
} reason;

static int by_kind(const void *a, const void *b, void *list)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const cs_fallback *f = (const cs_fallback *)list + x, *g = (const cs_fallback *)list + y;
    if (f->rule != g->rule) return f->rule < g->rule ? -1 : 1;
    if (f->op != g->op) return f->op < g->op ? -1 : 1;
    if (f->why != g->why) return f->why < g->why ? -1 : 1;
    return x < y ? -1 : 1;
}

static int by_weight(const void *a, const void *b)
{
    const reason *x = a, *y = b;
    if (x->saved != y->saved) return x->saved > y->saved ? -1 : 1;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->first < y->first ? -1 : 1; /* both in the plan's list: by node */
}

/* Fills `reasons` (room for all) with the kinds, biggest first; `order` is scratch. */
static size_t find_reasons(const cutset_plan *plan, reason *reasons, uint32_t *order)
{
    const cs_fallback *list = plan->fallback.at;
    const size_t n = plan->fallback.len;
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, by_kind, plan->fallback.at);
    size_t kinds = 0;
    for (size_t i = 0; i < n; i++) {
        const cs_fallback *f = &list[order[i]];
        const cs_fallback *last = kinds > 0 ? reasons[kinds - 1].first : NULL;
        if (last == NULL || last->rule != f->rule || last->op != f->op || last->why != f->why)
            reasons[kinds++] = (reason){.first = f, .saved = -1};
        reasons[kinds - 1].count++;
        if (f->saved > reasons[kinds - 1].saved) reasons[kinds - 1].saved = f->saved;
    }
    qsort(reasons, kinds, sizeof *reasons, by_weight);
    return kinds;
}

/* The words of a sentence, long names cut, so that what the sentence says of them still fits. */
static void add_sentence(cs_line *l, cs_span text)
{
    enum { WORD = 28 };
    for (size_t i = 0; i < text.len;) {
        size_t n = 0;
        while (i + n < text.len && text.at[i + n] != ' ')
            n++;
        cs_line word = {0};
        cs_line_span(&word, (cs_span){text.at + i, n});
        if (cs_line_columns(&word) <= WORD)
            cs_line_printf(l, "%s", word.text);
        else
            cs_line_cell(l, (cs_span){text.at + i, n}, WORD);
        i += n;
        for (; i < text.len && text.at[i] == ' '; i++)
            cs_line_printf(l, " ");
    }
}

static void put_reason(const cutset_plan *plan, const reason *r, cs_out *out)
{
    cs_line l = {0};
    cs_line_printf(&l, "%6" PRIu32 " ", r->count);
    if (r->saved >= 0)
        cs_line_printf(&l, "%6" PRId64, r->saved);
    else
        cs_line_printf(&l, "%6s", "-");
    cs_line_printf(&l, "  %-8s  ", cs_rule_name(r->first->rule));
    const cs_span op = name_of(plan, r->first->op), why = name_of(plan, r->first->why);
    if (why.len < op.len || !cs_span_eq(op, (cs_span){why.at, op.len})) { /* does not say which */
        cs_line_span(&l, op);
        cs_line_printf(&l, ": ");
    }
    add_sentence(&l, why);
    cs_line_put(&l, out);
}

static cutset_status put_fallback(const cutset_plan *plan, cs_out *out, cutset_error *err)
{
    const size_t n = plan->fallback.len;
    if (n == 0) return CUTSET_OK;
    reason *reasons = cs_alloc(n, sizeof *reasons);
    uint32_t *order = cs_alloc(n, sizeof *order);
    cutset_status status = CUTSET_OK;
    if (reasons == NULL || order == NULL) {
        status = cs_fail_memory(err);
    } else {
        const size_t kinds = find_reasons(plan, reasons, order);
        const size_t shown = kinds > REASONS + 1 ? REASONS : kinds;
        cs_line l = {0};
        cs_line_put(&l, out);
        cs_line_printf(&l, "on the host for a reason: ");
        cs_line_count(&l, n, "node", "nodes");
        cs_line_put(&l, out);
        cs_line_printf(&l, "%6s %6s  %-8s  why", "nodes", "saves", "rule");
        cs_line_put(&l, out);
        for (size_t i = 0; i < shown; i++)
            put_reason(plan, &reasons[i], out);
        if (shown < kinds) {
            cs_line_printf(&l, "   ... and %zu more reasons: --json lists all", kinds - shown);
            cs_line_put(&l, out);
        }
    }
    cs_free(reasons);
    cs_free(order);
    return status;
}

static void put_notes(const cutset_plan *plan, cs_out *out)
{
    const size_t n = plan->notes.len, shown = n > NOTES + 1 ? NOTES : n;
    if (n > 0) cs_out_put(out, "\n", 1);
    for (size_t i = 0; i < shown; i++)
        cs_line_wrap(out, "note: ", name_of(plan, plan->notes.at[i]));
    if (shown < n) cs_out_printf(out, "note: ... and %zu more notes\n", n - shown);
}

cutset_status cs_report_summary(const cutset_plan *plan, cs_out *out, cutset_error *err)
{
    put_model(plan, out);
    put_engines(plan, out);
    put_boundaries(plan, out);
    put_budget(plan, out, "host", plan->options.host_memory, false);
    put_budget(plan, out, "device", plan->options.device_memory, true);
    put_oversized(plan, out);
    put_parts(plan, out);
    const cutset_status status = put_fallback(plan, out, err);
    if (status == CUTSET_OK) put_notes(plan, out);
    return status;
}
