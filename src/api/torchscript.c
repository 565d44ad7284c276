/* TorchScript models: opening and planning them.
 *
 * A caller that holds the graph (the Python package) says for each line of the text who may run it,
 * where weights live and how large they are (cutset.h, "TorchScript"). A text that comes alone, as
 * on the command line, has none of this: then the target is acc, which takes every aten:: operator
 * that neither writes, draws random numbers nor has a side effect, and there are no budgets.
 *
 * The contract with callers, in short: lines are the nodes as printed, blocks behind their owner;
 * plans name nodes by their first output without "%", or "$<index>"; constants and attributes of the
 * module are in each part that reads them and stand nowhere in the plan, but for attributes that are
 * written (inputs) and reads of attributes that are set (nodes of host parts).
 */
#include "api/model.h"
#include "plan/nest.h"
#include "target/target.h"

#include <string.h>

struct cs_scripted {
    cs_torch *torch;
    cs_plan_block *blocks; /* as torch->blocks; they point into the model */
    cs_plan_whole whole;
    bool sized; /* the caller told the sizes of weights */
    cs_arena arena;
};

/* ---- permits ---- */

static const char *const refusals[] = {
    [CS_TORCH_CONTAINER] = "it changes a container or an attribute, which the host does",
    [CS_TORCH_EFFECT] = "it has a side effect",
    [CS_TORCH_UNKNOWN] = "no schema tells what it writes",
    [CS_TORCH_INSIDE] = "something inside it must stay on the host",
    [CS_TORCH_ATTRIBUTE] = "it reads an attribute that is set",
    [CS_TORCH_DEFAULT] = "no aten:: operator that neither writes, draws random numbers "
                         "nor has a side effect",
};

typedef struct reason {
    cs_rule rule;
    cs_span why;
} reason;

static cutset_status parse_reasons(const cutset_torchscript *in, reason **out, cutset_error *err)
{
    *out = cs_alloc(in->n_reasons, sizeof **out);
    if (!*out) return cs_fail_memory(err);
    const char *at = in->reasons;
    cutset_status s = CUTSET_OK;
    for (size_t i = 0; !s && i < in->n_reasons; i++) {
        const cs_span text = cs_span_of(at);
        if (!cs_parse_reason(text, &(*out)[i].rule, &(*out)[i].why))
            s = cs_fail(err, CUTSET_USAGE, "reason '%.*s' begins with no rule: write \"op: why\"",
                        CS_FMT(text));
        at += text.len + 1;
    }
    return s;
}

static bool permit(cs_pool *pool, const cs_torch_node *n, const cutset_torchscript *in,
                   const reason *reasons, cs_permit *out)
{
    reason r = {CS_RULE_NONE, {"", 0}};
    *out = (cs_permit){.mask = n->mask};
    if (n->mask & ~CUTSET_ALLOW_HOST) return true;
    const uint32_t given =
        in->n_lines && in->line_reasons ? in->line_reasons[n->line] : CUTSET_NONE;
    if (n->refusal)
        r = (reason){CS_RULE_OP, cs_span_of(refusals[n->refusal])};
    else if (given != CUTSET_NONE)
        r = reasons[given];
    out->rule = r.rule;
    out->why = cs_strtab_add(&pool->names, r.why, false);
    return out->why != CS_NONE;
}

/* ---- opening ---- */

static cutset_status fill_block(cutset_model *m, size_t b, const cutset_torchscript *in,
                                const reason *reasons, cutset_error *err)
{
    struct cs_scripted *t = m->scripted;
    const cs_torch_block *from = &t->torch->blocks.at[b];
    const size_t n = from->nodes.len;
    cs_permit *permits = cs_arena_alloc(&t->arena, n, sizeof *permits);
    bool *imported = cs_arena_zalloc(&t->arena, n, sizeof *imported);
    const cs_str spent = cs_strtab_add(&from->graph->pool->names,
                                       CS_SPAN("the engines of --max-engines are used up"), false);
    if (!permits || !imported || spent == CS_NONE) return cs_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        imported[i] = from->nodes.at[i].imported;
        if (!permit(from->graph->pool, &from->nodes.at[i], in, reasons, &permits[i]))
            return cs_fail_memory(err);
    }
    t->blocks[b] = (cs_plan_block){.source = {.graph = from->graph,
                                              .permits = permits,
                                              .path = m->path,
                                              .hash = m->hash,
                                              .open = &m->opts},
                                   .owner = from->owner,
                                   .owner_node = from->owner_node,
                                   .branch = from->branch,
                                   .imported = imported,
                                   .spent = spent};
    return CUTSET_OK;
}

static uint64_t hash_model(const cs_torch *torch, const cutset_torchscript *in)
{
    cs_hasher *h = cs_hasher_new();
    if (!h) return 0;
    cs_hasher_add_u64(h, torch->hash);
    cs_hasher_add_u64(h, in->n_storages);
    for (size_t i = 0; i < in->n_storages; i++)
        cs_hasher_add_u64(h, (uint64_t)in->storage_bytes[i]);
    return cs_hasher_done(h);
}

static cutset_status fill(cutset_model *m, const cutset_torchscript *in, cutset_error *err)
{
    struct cs_scripted *t = m->scripted;
    cutset_status s = cs_torch_read(&t->torch, in, err);
    if (s) return s;
    m->graph = t->torch->blocks.at[0].graph;
    t->sized = in->n_lines && in->storages;
    t->whole.nodes = t->torch->n_nodes;
    for (size_t i = 0; i < in->n_storages; i++)
        t->whole.weight_bytes = cs_sat_add(t->whole.weight_bytes, in->storage_bytes[i]);
    m->hash = hash_model(t->torch, in);
    t->blocks = cs_arena_zalloc(&t->arena, t->torch->blocks.len, sizeof *t->blocks);
    reason *reasons = NULL;
    if (!t->blocks || m->hash == 0) s = cs_fail_memory(err);
    if (!s) s = parse_reasons(in, &reasons, err);
    for (size_t b = 0; !s && b < t->torch->blocks.len; b++)
        s = fill_block(m, b, in, reasons, err);
    cs_free(reasons);
    return s;
}

cutset_status cs_scripted_open(cutset_model *m, const cutset_torchscript *in, cutset_error *err)
{
    m->scripted = cs_zalloc(1, sizeof *m->scripted);
    return m->scripted ? fill(m, in, err) : cs_fail_memory(err);
}

void cs_scripted_free(struct cs_scripted *t)
{
    if (!t) return;
    cs_torch_free(t->torch);
    cs_arena_fini(&t->arena);
    cs_free(t);
}

cutset_status cutset_model_open_torchscript(cutset_model **out, const cutset_torchscript *in,
                                            cutset_error *err)
{
    *out = NULL;
    cutset_model *m = cs_zalloc(1, sizeof *m);
    if (!m) return cs_fail_memory(err);
    cutset_open_opts_init(&m->opts);
    const cutset_status s = cs_scripted_open(m, in, err);
    if (s)
        cutset_model_free(m);
    else
        *out = m;
    return s;
}

/* ---- planning ---- */

cutset_status cs_scripted_plan(cutset_plan **out, const cutset_model *m,
                               const cutset_target *const *targets, size_t n_targets,
                               const cutset_plan_opts *opts, cutset_error *err)
{
    const struct cs_scripted *t = m->scripted;
    for (size_t i = 0; i < n_targets; i++)
        if (!targets[i]->marked_only)
            return cs_fail(err, CUTSET_USAGE,
                           "target %s has rules for ONNX operators, not for TorchScript: give acc",
                           targets[i]->name);
    if (!t->sized && (opts->host_memory || opts->device_memory))
        return cs_fail(
            err, CUTSET_USAGE,
            "the text of a graph has no weight sizes: plan it without a memory budget, or "
            "give budgets to cutset.torchscript");
    cutset_plan_opts tensors = *opts;
    tensors.tensors_only = true;
    return cs_plan_make_nested(out, t->blocks, t->torch->blocks.len, &t->whole, targets, n_targets,
                               &tensors, err);
}
