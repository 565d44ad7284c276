/* The reader: parse, analyse, lower; and what it makes. */
#include "torch/lower.h"

void cs_torch_free(cs_torch *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->blocks.len; i++) {
        cs_graph_free(t->blocks.at[i].graph);
        cs_vec_fini(&t->blocks.at[i].nodes);
        cs_vec_fini(&t->blocks.at[i].numbers);
    }
    cs_vec_fini(&t->blocks);
    cs_free(t);
}

static cutset_status check_lines(const cs_script *s, const cutset_torchscript *in,
                                 cutset_error *err)
{
    if (in->n_lines && in->n_lines != s->lines.len)
        return cs_fail(
            err, CUTSET_USAGE,
            "the text has %zu nodes, constants and attributes included, not %zu: walk the "
            "graph that was printed",
            s->lines.len, in->n_lines);
    for (size_t i = 0; in->n_lines && i < in->n_lines; i++) {
        if (in->storages && in->storages[i] != CUTSET_NONE && in->storages[i] >= in->n_storages)
            return cs_fail(err, CUTSET_USAGE, "storages[%zu] is %u: give an index below %zu", i,
                           in->storages[i], in->n_storages);
        if (in->line_reasons && in->line_reasons[i] != CUTSET_NONE &&
            in->line_reasons[i] >= in->n_reasons)
            return cs_fail(err, CUTSET_USAGE, "line_reasons[%zu] is %u: give an index below %zu", i,
                           in->line_reasons[i], in->n_reasons);
    }
    for (size_t i = 0; i < in->n_storages; i++)
        if (in->storage_bytes[i] < 0)
            return cs_fail(err, CUTSET_USAGE, "storage_bytes[%zu] is negative: give its size", i);
    for (size_t i = 0; i < 2 * in->n_input_aliases; i++)
        if (in->input_aliases[i] >= s->blocks.at[0].n_in)
            return cs_fail(err, CUTSET_USAGE,
                           "input_aliases[%zu] is %u: the graph has %u inputs, the module included",
                           i, in->input_aliases[i], s->blocks.at[0].n_in);
    return CUTSET_OK;
}

static cutset_status analyse(cs_torch *t, cs_script *s, const cutset_torchscript *in,
                             cutset_error *err)
{
    cs_schemas schemas = {0};
    cs_memory memory = {0};
    cs_permission *permissions = NULL;
    cutset_status status = check_lines(s, in, err);
    if (!status) status = cs_schemas_init(&schemas, s, in->n_schemas, in->schemas, err);
    if (!status) status = cs_memory_init(&memory, s, &schemas, in, err);
    if (!status && !(permissions = cs_permit_lines(&memory, in))) status = cs_fail_memory(err);
    if (!status) status = cs_lower(t, s, &memory, permissions, in, err);
    cs_free(permissions);
    cs_memory_fini(&memory);
    cs_schemas_fini(&schemas);
    return status;
}

cutset_status cs_torch_read(cs_torch **out, const cutset_torchscript *in, cutset_error *err)
{
    *out = NULL;
    cs_torch *t = cs_zalloc(1, sizeof *t);
    if (!t) return cs_fail_memory(err);
    cs_script script;
    cutset_status status = cs_script_parse(&script, (cs_span){in->text, in->len}, err);
    if (!status) status = analyse(t, &script, in, err);
    t->hash = script.hash;
    cs_script_fini(&script);
    if (status)
        cs_torch_free(t);
    else
        *out = t;
    return status;
}
