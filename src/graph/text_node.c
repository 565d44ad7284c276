/* Lines of nodes, and the bodies they hold: outs "=" op args [attrs] [targets] {effects} [bodies].
 *
 * Args and written values are kept as names; text_resolve.c turns them into ids. A body is a graph
 * of its own, added to its node before it is read. Cost: linear; recursion over nested bodies.
 */
#include "graph/text_reader.h"

/* outs = "()" | out {"," out}     out = (val | "_") [":" type] */
static cutset_status read_outs(cs_text_reader *r, uint32_t scope)
{
    if (cs_take(&r->c, '(')) return cs_text_expect(r, ')', "')': () stands for no outputs");
    do {
        cs_str name = CS_NONE;
        size_t at = cs_text_here(r);
        cs_type type = 0;
        uint32_t v = CS_NONE;
        cs_skip_blanks(&r->c);
        cs_cursor look = r->c;
        cutset_status status = CUTSET_OK;
        if (cs_span_is(cs_take_run(&look, CS_CHAR_BARE), "_"))
            r->c = look;
        else
            status = cs_text_val(r, &name, &at);
        if (!status && cs_take(&r->c, ':')) status = cs_scan_type(r->pool, &r->c, &type, &r->fault);
        if (!status && name != CS_NONE)
            status = cs_text_define(r, scope, name, at, type, CS_ORIGIN_NODE, &v);
        if (!status && !cs_graph_add_out(cs_text_at(r, scope)->g, v)) status = CUTSET_SYSTEM;
        if (status) return status;
    } while (cs_take(&r->c, ','));
    return CUTSET_OK;
}

/* [domain ":"] name */
static cutset_status read_op(cs_text_reader *r, cs_node *n)
{
    cutset_status status = cs_text_name(r, "an operator", &n->op);
    if (!status && cs_take(&r->c, ':')) {
        n->domain = cs_text_is_onnx(r, n->op) ? 0 : n->op;
        status = cs_text_name(r, "an operator after its domain", &n->op);
    }
    if (!status && cs_op_is_random(r->pool, n->domain, n->op)) n->flags |= CS_NODE_RANDOM;
    return status;
}

/* "(" [arg {"," arg}] ")"     arg = [val]; the names stand in for the values */
static cutset_status read_args(cs_text_reader *r, uint32_t scope)
{
    cs_text_scope *s = cs_text_at(r, scope);
    cutset_status status = cs_text_expect(r, '(', "'(' and the inputs of the operator");
    if (status || cs_take(&r->c, ')')) return status;
    do {
        cs_str name = CS_NONE;
        size_t at = cs_text_here(r);
        cs_skip_blanks(&r->c);
        bool absent = r->c.at < r->c.end && (*r->c.at == ',' || *r->c.at == ')');
        if (!absent && (status = cs_text_val(r, &name, &at))) return status;
        if (!cs_graph_add_arg(s->g, name) || !cs_vec_push(&s->arg_at, at)) return CUTSET_SYSTEM;
    } while (cs_take(&r->c, ','));
    return cs_text_expect(r, ')', "',' or ')'");
}

static cutset_status read_targets(cs_text_reader *r, cs_graph *g)
{
    do {
        cs_str target;
        cutset_status status = cs_text_name(r, "the name of a target", &target);
        if (status) return status;
        if (!cs_graph_add_allow(g, target)) return CUTSET_SYSTEM;
    } while (cs_take(&r->c, ','));
    return CUTSET_OK;
}

/* "effect" | "writes" "(" val {"," val} ")" after "!" */
static cutset_status read_effect(cs_text_reader *r, uint32_t scope)
{
    cs_text_scope *s = cs_text_at(r, scope);
    cs_skip_blanks(&r->c);
    cs_cursor look = r->c;
    cs_span word = cs_take_run(&look, CS_CHAR_BARE);
    if (!cs_span_is(word, "effect") && !cs_span_is(word, "writes"))
        return cs_fault_found(&r->fault, &r->c, "!effect or !writes(%x)");
    r->c = look;
    if (cs_span_is(word, "effect")) {
        s->g->nodes.at[s->g->nodes.len - 1].flags |= CS_NODE_EFFECT;
        return CUTSET_OK;
    }
    cutset_status status = cs_text_expect(r, '(', "'(' and the values written");
    if (status) return status;
    do {
        cs_str name;
        size_t at;
        status = cs_text_val(r, &name, &at);
        if (status) return status;
        if (!cs_graph_add_write(s->g, name) || !cs_vec_push(&s->write_at, at)) return CUTSET_SYSTEM;
    } while (cs_take(&r->c, ','));
    return cs_text_expect(r, ')', "',' or ')'");
}

/* A new graph inside the last node of `outer` (CS_NONE: the model's); *out is its scope. */
cutset_status cs_text_open(cs_text_reader *r, uint32_t outer, cs_str attr, uint32_t *out)
{
    cs_graph *outer_graph = outer == CS_NONE ? NULL : cs_text_at(r, outer)->g;
    *out = (uint32_t)r->scopes.len;
    if (r->scopes.len >= CS_NONE - 1 || !cs_vec_room(&r->scopes, 1)) return CUTSET_SYSTEM;
    if (outer != CS_NONE && !cs_vec_push(&cs_text_at(r, outer)->child, *out)) return CUTSET_SYSTEM;
    cs_text_scope scope = {.g = cs_graph_new(r->pool, outer_graph), .outer = outer};
    if (!scope.g) return CUTSET_SYSTEM;
    if (outer != CS_NONE && !cs_graph_add_body(outer_graph, attr, scope.g)) {
        cs_graph_free(scope.g);
        return CUTSET_SYSTEM;
    }
    r->scopes.at[r->scopes.len++] = scope;
    return CUTSET_OK;
}

/* "body" bare {val ":" type} NL stmts "end" NL, the cursor after "body". Several bodies of one name
 * are the graphs of one attribute. */
static cutset_status read_body(cs_text_reader *r, uint32_t outer)
{
    cs_str attr;
    uint32_t scope;
    cs_skip_blanks(&r->c);
    const char *at = r->c.at;
    cutset_status status = cs_text_bare_or_string(r, "the name of the body", &attr);
    if (!status && attr == 0)
        status = cs_fault_at(&r->fault, at, "an empty name: give the body a name");
    if (!status) status = cs_text_open(r, outer, attr, &scope);
    if (!status) cs_text_at(r, scope)->at = (size_t)(at - r->text);
    while (!status && !cs_text_at_line_end(&r->c))
        status = cs_text_input(r, scope);
    return status ? status : cs_text_statements(r, scope);
}

/* NL {body} "}", the cursor after "{". */
static cutset_status read_bodies(cs_text_reader *r, uint32_t outer)
{
    if (r->depth == CS_TEXT_DEPTH)
        return cs_fault_at(&r->fault, r->c.at, "bodies nested more than %d deep: nest less",
                           CS_TEXT_DEPTH);
    r->depth++;
    cutset_status status = CUTSET_OK;
    while (!status) {
        if (!cs_text_next(&r->c)) {
            status = cs_fault_at(&r->fault, r->c.at,
                                 "a node without its '}': write it after the "
                                 "'end' of the last body");
        } else if (cs_take(&r->c, '}')) {
            break;
        } else {
            cs_cursor look = r->c;
            if (!cs_span_is(cs_take_run(&look, CS_CHAR_BARE), "body")) {
                status = cs_fault_found(&r->fault, &r->c, "'body' and its name, or '}'");
            } else {
                r->c = look;
                status = read_body(r, outer);
            }
        }
    }
    r->depth--;
    return status ? status : cs_text_check_bodies(r, outer);
}

/* Does a "{" come next that ends its line, as before bodies? Takes it. */
static bool take_bodies(cs_text_reader *r)
{
    cs_cursor look = r->c;
    if (!cs_take(&look, '{') || !cs_text_at_line_end(&look)) return false;
    r->c = look;
    return true;
}

/* outs "=" op args [attrs] ["@" targets] {"!" effect} [bodies] */
cutset_status cs_text_node_line(cs_text_reader *r, uint32_t scope)
{
    cs_graph *g = cs_text_at(r, scope)->g; /* stays where it is while scopes are added */
    uint32_t id = cs_graph_add_node(g, 0, 0, 0);
    if (id == CS_NONE) return CUTSET_SYSTEM;
    g->nodes.at[id].offset = cs_text_here(r);
    cutset_status status = read_outs(r, scope);
    if (!status) status = cs_text_expect(r, '=', "'=' and an operator");
    if (!status) status = read_op(r, &g->nodes.at[id]);
    if (!status) status = read_args(r, scope);
    bool bodies = !status && take_bodies(r);
    if (!status && !bodies && cs_take(&r->c, '{')) status = cs_text_attrs(r, g);
    if (!status && !bodies && cs_take(&r->c, '@')) status = read_targets(r, g);
    while (!status && !bodies && cs_take(&r->c, '!'))
        status = read_effect(r, scope);
    if (!status && (bodies || take_bodies(r))) status = read_bodies(r, scope);
    return status;
}
