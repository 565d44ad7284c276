/* Who may run each line: the caller's word, the default, and what must stay on the host.
 *
 * Constructs run anywhere (unless the user's own reason excludes them). What changes a container, has
 * a side effect or is unknown stays on the host. A line with blocks runs where it and all inside may;
 * lines are taken last to first, so that the lines inside are done. Cost: linear.
 */
#include <string.h>

#include "torch/lower.h"

/* An aten:: operator that neither writes, draws random numbers nor has a side effect. */
static bool is_default(const cs_script *s, const cs_ts_line *l, const cs_act *act)
{
    const cs_span op = cs_name(s->pool, l->op);
    return l->kind == CS_TS_OPERATOR && op.len > 6 && memcmp(op.at, "aten::", 6) == 0 &&
           !act->effect && !act->random && !act->unknown && act->n_write == 0;
}

static bool by_user(const cutset_torchscript *in, const char *const *reasons, uint32_t line)
{
    if (!reasons || !in->line_reasons || in->line_reasons[line] >= in->n_reasons) return false;
    return strncmp(reasons[in->line_reasons[line]], "user:", 5) == 0;
}

static uint32_t asked(const cutset_torchscript *in, const cs_script *s, const cs_ts_line *l,
                      const cs_act *act, uint32_t line, bool excluded)
{
    if (cs_ts_is_construct(l))
        return excluded ? CUTSET_ALLOW_HOST : CS_TORCH_TARGETS | CUTSET_ALLOW_HOST;
    uint32_t mask =
        in->n_lines ? in->allow ? in->allow[line] : CUTSET_ALLOW_HOST : CUTSET_ALLOW_DEFAULT;
    if (mask & CUTSET_ALLOW_DEFAULT)
        mask = (mask & ~CUTSET_ALLOW_DEFAULT) | CUTSET_ALLOW_HOST | is_default(s, l, act);
    return mask ? mask : CUTSET_ALLOW_HOST;
}

static uint8_t must_stay(const cs_ts_line *l, const cs_act *act)
{
    if (l->kind == CS_TS_GETATTR) return CS_TORCH_ATTRIBUTE;
    if (act->unknown) return CS_TORCH_UNKNOWN;
    if (act->container) return CS_TORCH_CONTAINER;
    return act->effect ? CS_TORCH_EFFECT : CS_TORCH_NONE;
}

cs_permission *cs_permit_lines(cs_memory *m, const cutset_torchscript *in)
{
    const cs_script *s = m->s;
    cs_permission *p = cs_zalloc(s->lines.len, sizeof *p);
    const char **reasons = cs_alloc(in->n_reasons, sizeof *reasons);
    const char *at = in->reasons;
    for (size_t i = 0; reasons && i < in->n_reasons; i++) {
        reasons[i] = at;
        at += strlen(at) + 1;
    }
    for (uint32_t i = (uint32_t)s->lines.len; p && reasons && i-- > 0;) {
        const cs_ts_line *l = &s->lines.at[i];
        const cs_act *act = &m->acts[i];
        if (!act->node) continue;
        const bool excluded = in->n_lines && by_user(in, reasons, i);
        p[i].mask = asked(in, s, l, act, i, excluded);
        for (uint32_t k = i + 1; k < l->end; k = s->lines.at[k].end) {
            if (!m->acts[k].node) continue;
            const uint32_t both = p[i].mask & (p[k].mask | CUTSET_ALLOW_HOST);
            if (both != p[i].mask && !(both & CS_TORCH_TARGETS)) p[i].refusal = CS_TORCH_INSIDE;
            p[i].mask = both ? both : CUTSET_ALLOW_HOST;
        }
        const uint8_t stay = must_stay(l, act);
        if (stay) p[i] = (cs_permission){CUTSET_ALLOW_HOST, stay};
        if (!stay && !in->n_lines && !(p[i].mask & CS_TORCH_TARGETS) && !p[i].refusal)
            p[i].refusal = CS_TORCH_DEFAULT;
    }
    cs_free(reasons);
    if (!reasons) {
        cs_free(p);
        return NULL;
    }
    return p;
}
