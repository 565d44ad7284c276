/* A model from arrays: the graph (graph/arrays.c), and who may run where. */
#include <string.h>

#include "api/model.h"

bool cs_parse_reason(cs_span text, cs_rule *rule, cs_span *why)
{
    const char *colon = memchr(text.at, ':', text.len);
    const cs_span name = {text.at, colon ? (size_t)(colon - text.at) : 0};
    for (cs_rule r = CS_RULE_NONE + 1; r < CS_RULE_COUNT; r++) {
        if (!cs_span_is(name, cs_rule_name(r))) continue;
        *rule = r;
        *why = (cs_span){colon + 1, text.len - name.len - 1};
        while (why->len && *why->at == ' ')
            *why = (cs_span){why->at + 1, why->len - 1};
        return true;
    }
    return false;
}

static cutset_status read_reason(cs_pool *pool, cs_span text, cs_permit *out, cutset_error *err)
{
    cs_span why;
    if (!cs_parse_reason(text, &out->rule, &why))
        return cs_fail(err, CUTSET_BAD,
                       "graph arrays: reason '%.*s' begins with no rule: write \"op: why\"",
                       CS_FMT(text));
    out->why = cs_strtab_add(&pool->names, why, false);
    return out->why == CS_NONE ? cs_fail_memory(err) : CUTSET_OK;
}

static cutset_status read_permits(cutset_model *m, const cutset_graph *in, cutset_error *err)
{
    cs_permit *reasons = cs_zalloc(in->n_reasons, sizeof *reasons);
    m->permits = cs_zalloc(in->n_nodes, sizeof *m->permits);
    cutset_status s = reasons && m->permits ? CUTSET_OK : cs_fail_memory(err);
    const char *at = in->reasons;
    for (size_t i = 0; !s && i < in->n_reasons; i++) {
        const cs_span text = cs_span_of(at);
        s = read_reason(m->graph->pool, text, &reasons[i], err);
        at += text.len + 1;
    }
    for (size_t i = 0; !s && i < in->n_nodes; i++) {
        const uint32_t reason = in->node_reasons ? in->node_reasons[i] : CUTSET_NONE;
        if (reason != CUTSET_NONE && reason >= in->n_reasons) {
            s = cs_fail(err, CUTSET_BAD,
                        "graph arrays: node_reasons[%zu] is %u: give an index below %zu", i, reason,
                        in->n_reasons);
            break;
        }
        if (reason != CUTSET_NONE) m->permits[i] = reasons[reason];
        m->permits[i].mask = in->allow[i];
    }
    cs_free(reasons);
    return s;
}

cutset_status cutset_model_build(cutset_model **out, const cutset_graph *graph, cutset_error *err)
{
    *out = NULL;
    cutset_model *m = cs_zalloc(1, sizeof *m);
    if (!m) return cs_fail_memory(err);
    cutset_open_opts_init(&m->opts);
    cutset_status s = cs_graph_from_arrays(&m->graph, graph, err);
    if (!s && graph->allow) s = read_permits(m, graph, err);
    if (!s) {
        m->hash = cs_model_hash(m->graph, NULL, &s);
        if (s) s = cs_fail_memory(err);
    }
    if (s)
        cutset_model_free(m);
    else
        *out = m;
    return s;
}
