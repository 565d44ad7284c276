/* The text form, read: one pass over the text, without a list of tokens, line by line.
 *
 * Names are interned as pieces of the text, so the text must outlive the graph. The result is
 * resolved (text_resolve.c) and sealed. The first fault in the text ends the reading; its line and
 * column are counted then. Cost: linear; recursion only over nested bodies (CS_TEXT_DEPTH).
 */
#include "graph/text_reader.h"

#define REPORT_BYTES (1 << 22) /* between calls of the progress function */
#define OPSETS_MAX 1000        /* looked through for every node */

/* ---- lines ---- */

static void skip_line(cs_cursor *c)
{
    const char *end = memchr(c->at, '\n', (size_t)(c->end - c->at));
    c->at = end ? end : c->end;
}

/* Is the rest of the line empty, or a comment after a blank? Moves over blanks. Not for the start of
 * a line. */
bool cs_text_at_line_end(cs_cursor *c)
{
    cs_skip_blanks(c);
    return c->at == c->end || *c->at == '\n' ||
           (*c->at == '#' && cs_char_is(c->at[-1], CS_CHAR_BLANK));
}

/* From the start or the end of a line to the next statement; false: the text ends. */
bool cs_text_next(cs_cursor *c)
{
    for (;;) {
        cs_skip_blanks(c);
        if (c->at == c->end) return false;
        if (*c->at == '\n')
            c->at++;
        else if (*c->at == '#')
            skip_line(c);
        else
            return true;
    }
}

static cutset_status end_statement(cs_text_reader *r)
{
    if (!cs_text_at_line_end(&r->c)) return cs_fault_found(&r->fault, &r->c, "the end of the line");
    skip_line(&r->c);
    return CUTSET_OK;
}

cutset_status cs_text_expect(cs_text_reader *r, char ch, const char *wanted)
{
    return cs_take(&r->c, ch) ? CUTSET_OK : cs_fault_found(&r->fault, &r->c, wanted);
}

/* ---- names ---- */

cutset_status cs_text_bare_or_string(cs_text_reader *r, const char *wanted, cs_str *out)
{
    bool raw = true;
    cs_span name = cs_take_run(&r->c, CS_CHAR_BARE);
    if (name.len == 0) {
        if (r->c.at == r->c.end || *r->c.at != '"') return cs_fault_found(&r->fault, &r->c, wanted);
        cutset_status status = cs_scan_string(&r->c, &r->scratch, &name, &raw, &r->fault);
        if (status) return status;
    }
    *out = cs_strtab_add(&r->pool->names, name, raw);
    return *out == CS_NONE ? CUTSET_SYSTEM : CUTSET_OK;
}

cutset_status cs_text_name(cs_text_reader *r, const char *wanted, cs_str *out)
{
    cs_skip_blanks(&r->c);
    return cs_text_bare_or_string(r, wanted, out);
}

/* "%" name; *at is its place. */
cutset_status cs_text_val(cs_text_reader *r, cs_str *out, size_t *at)
{
    if (!cs_take(&r->c, '%')) return cs_fault_found(&r->fault, &r->c, "a value such as %x");
    *at = cs_text_here(r) - 1;
    cutset_status status = cs_text_bare_or_string(r, "the name of a value after '%'", out);
    if (!status && *out == 0)
        status = cs_fault_at(&r->fault, r->text + *at, "an empty name: give the value a name");
    return status;
}

static cutset_status read_int(cs_text_reader *r, int64_t max, const char *wanted, int64_t *out)
{
    cs_skip_blanks(&r->c);
    cs_cursor look = r->c;
    cs_span digits = cs_take_run(&look, CS_CHAR_DIGIT);
    if (digits.len == 0 || (look.at < look.end && cs_char_is(*look.at, CS_CHAR_BARE)))
        return cs_fault_found(&r->fault, &r->c, wanted);
    if (!cs_parse_i64(digits, out) || *out > max)
        return cs_fault_at(&r->fault, r->c.at, "a number over %lld: write %s", (long long)max,
                           wanted);
    r->c = look;
    return CUTSET_OK;
}

/* ---- definitions ---- */

cutset_status cs_text_define(cs_text_reader *r, uint32_t scope, cs_str name, size_t at,
                             cs_type type, cs_origin origin, uint32_t *out)
{
    cs_text_scope *s = cs_text_at(r, scope);
    *out = cs_graph_add_value(s->g, name, type, origin);
    return *out != CS_NONE && cs_vec_push(&s->value_at, at) ? CUTSET_OK : CUTSET_SYSTEM;
}

/* val ":" type */
static cutset_status read_typed_val(cs_text_reader *r, uint32_t scope, cs_origin origin,
                                    uint32_t *out)
{
    cs_str name;
    size_t at;
    cs_type type;
    cutset_status status = cs_text_val(r, &name, &at);
    if (!status) status = cs_text_expect(r, ':', "':' and a type such as f32[1,3] or ?");
    if (!status) status = cs_scan_type(r->pool, &r->c, &type, &r->fault);
    return status ? status : cs_text_define(r, scope, name, at, type, origin, out);
}

cutset_status cs_text_input(cs_text_reader *r, uint32_t scope)
{
    uint32_t v;
    cutset_status status = read_typed_val(r, scope, CS_ORIGIN_INPUT, &v);
    if (status) return status;
    return cs_vec_push(&cs_text_at(r, scope)->g->inputs, v) ? CUTSET_OK : CUTSET_SYSTEM;
}

static cutset_status weight_bytes(cs_text_reader *r, cs_type type, size_t at, int64_t *out)
{
    *out = cs_text_weight_bytes(r->pool, type);
    if (*out < 0)
        return cs_fault_at(&r->fault, r->text + at,
                           "a weight of unknown size: give the element type and every dim as a "
                           "number");
    if (*out == INT64_MAX)
        return cs_fault_at(&r->fault, r->text + at, "a weight over 2^63 bytes: give smaller dims");
    return CUTSET_OK;
}

static cutset_status read_weight(cs_text_reader *r, uint32_t scope)
{
    uint32_t v;
    int64_t bytes;
    cutset_status status = read_typed_val(r, scope, CS_ORIGIN_WEIGHT, &v);
    if (status) return status;
    cs_text_scope *s = cs_text_at(r, scope);
    cs_value *value = &s->g->values.at[v];
    status = weight_bytes(r, value->type, s->value_at.at[v], &bytes);
    if (status) return status;
    if (cs_take(&r->c, '=')) {
        cs_text_tie tie = {.scope = scope, .value = v};
        status = cs_text_val(r, &tie.name, &tie.at);
        if (status) return status;
        return cs_vec_push(&r->ties, tie) ? CUTSET_OK : CUTSET_SYSTEM;
    }
    value->storage = cs_graph_add_storage(r->scopes.at[0].g, bytes,
                                          cs_type_get(r->pool, value->type)->elem, NULL);
    return value->storage == CS_NONE ? CUTSET_SYSTEM : CUTSET_OK;
}

static cutset_status read_output(cs_text_reader *r, uint32_t scope)
{
    cs_text_scope *s = cs_text_at(r, scope);
    cs_str name;
    size_t at = 0;
    cutset_status status = cs_text_val(r, &name, &at);
    if (status) return status;
    return cs_vec_push(&s->g->outputs, name) && cs_vec_push(&s->output_at, at) ? CUTSET_OK
                                                                               : CUTSET_SYSTEM;
}

static cutset_status read_graph(cs_text_reader *r, uint32_t scope)
{
    cs_text_scope *s = cs_text_at(r, scope);
    if (s->named) return cs_fault_at(&r->fault, r->c.at, "a second graph line: remove one");
    s->named = true;
    return cs_text_name(r, "the name of the graph", &s->g->name);
}

/* ---- opset ---- */

bool cs_text_is_onnx(const cs_text_reader *r, cs_str domain)
{
    return domain == 0 || cs_span_is(cs_name(r->pool, domain), "ai.onnx");
}

static cutset_status add_opset(cs_text_reader *r, cs_graph *g, cs_str domain, int64_t version,
                               const char *at)
{
    if (cs_text_is_onnx(r, domain)) domain = 0;
    for (size_t i = 0; i < g->opsets.len; i++)
        if (g->opsets.at[i].domain == domain)
            return cs_fault_at(&r->fault, at, "this domain has a version already: remove one");
    if (g->opsets.len == OPSETS_MAX)
        return cs_fault_at(&r->fault, at, "more than %d domains: give fewer", OPSETS_MAX);
    cs_opset opset = {domain, version};
    return cs_vec_push(&g->opsets, opset) ? CUTSET_OK : CUTSET_SYSTEM;
}

/* "opset" int { domain ":" int }; version 0 of ai.onnx: it is not used. */
static cutset_status read_opset(cs_text_reader *r, uint32_t scope)
{
    cs_text_scope *s = cs_text_at(r, scope);
    if (s->versioned) return cs_fault_at(&r->fault, r->c.at, "a second opset line: remove one");
    s->versioned = true;
    int64_t version = 0;
    cutset_status status =
        read_int(r, INT64_MAX, "the version of the operators, such as 17", &version);
    if (!status && version > 0) status = add_opset(r, s->g, 0, version, r->c.at);
    while (!status && !cs_text_at_line_end(&r->c)) {
        const char *at = r->c.at;
        cs_str domain;
        status = cs_text_name(r, "a domain and its version, such as com.microsoft:1", &domain);
        if (!status) status = cs_text_expect(r, ':', "':' and the version of this domain");
        if (!status)
            status = read_int(r, INT64_MAX, "the version of this domain, such as 1", &version);
        if (!status) status = add_opset(r, s->g, domain, version, at);
    }
    return status;
}

/* ---- order, group ---- */

/* val | "$" int */
static cutset_status read_node_ref(cs_text_reader *r, cs_text_node *out)
{
    if (cs_take(&r->c, '$')) {
        int64_t index;
        out->at = cs_text_here(r) - 1;
        out->indexed = true;
        if (r->c.at == r->c.end || !cs_char_is(*r->c.at, CS_CHAR_DIGIT))
            return cs_fault_found(&r->fault, &r->c, "the index of a node after '$'");
        cutset_status status = read_int(r, CS_NONE - 1, "the index of a node after '$'", &index);
        out->id = status ? 0 : (uint32_t)index;
        return status;
    }
    cs_skip_blanks(&r->c);
    if (r->c.at == r->c.end || *r->c.at != '%')
        return cs_fault_found(&r->fault, &r->c, "a node: one of its outputs, or $ and its index");
    out->indexed = false;
    return cs_text_val(r, &out->id, &out->at);
}

/* node "->" node */
static cutset_status read_order(cs_text_reader *r, uint32_t scope)
{
    cs_text_scope *s = cs_text_at(r, scope);
    cs_text_node from, to;
    cutset_status status = read_node_ref(r, &from);
    if (!status && cs_take(&r->c, '-') && r->c.at < r->c.end && *r->c.at == '>')
        r->c.at++;
    else if (!status)
        status = cs_fault_found(&r->fault, &r->c, "'->', with a blank before it");
    if (!status) status = read_node_ref(r, &to);
    if (status) return status;
    cs_edge edge = {CS_NONE, CS_NONE};
    return cs_vec_push(&s->order, from) && cs_vec_push(&s->order, to) &&
                   cs_vec_push(&s->g->order, edge)
               ? CUTSET_OK
               : CUTSET_SYSTEM;
}

/* name "{" node {node} "}" */
static cutset_status read_group(cs_text_reader *r, uint32_t scope)
{
    cs_text_scope *s = cs_text_at(r, scope);
    cs_group group = {.member = (uint32_t)s->g->members.len};
    cutset_status status = cs_text_name(r, "the name of the group", &group.name);
    if (!status) status = cs_text_expect(r, '{', "'{' and the nodes of the group");
    if (status) return status;
    do {
        cs_text_node member;
        status = read_node_ref(r, &member);
        if (status) return status;
        if (s->members.len >= CS_NONE - 1 || !cs_vec_push(&s->members, member) ||
            !cs_vec_push(&s->g->members, CS_NONE))
            return CUTSET_SYSTEM;
        group.n_member++;
    } while (!cs_take(&r->c, '}'));
    return cs_vec_push(&s->g->groups, group) ? CUTSET_OK : CUTSET_SYSTEM;
}

/* ---- statements ---- */

static const struct keyword {
    const char *word;
    cutset_status (*read)(cs_text_reader *r, uint32_t scope);
} keywords[] = {
    {"graph", read_graph}, {"opset", read_opset}, {"input", cs_text_input}, {"weight", read_weight},
    {"order", read_order}, {"group", read_group}, {"output", read_output},
};

static const struct keyword *find_keyword(cs_span word)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (cs_span_is(word, keywords[i].word)) return &keywords[i];
    return NULL;
}

/* Does this word, or the character before it, begin a node? */
static bool begins_node(const cs_cursor *c, cs_span word)
{
    return *c->at == '%' || *c->at == '(' || cs_span_is(word, "_");
}

static cutset_status read_statement(cs_text_reader *r, uint32_t scope, bool *end)
{
    cs_cursor look = r->c;
    cs_span word = cs_take_run(&look, CS_CHAR_BARE);
    const struct keyword *keyword = find_keyword(word);
    cutset_status status;
    if (begins_node(&r->c, word)) {
        status = cs_text_node_line(r, scope);
    } else if (keyword) {
        r->c = look;
        status = keyword->read(r, scope);
    } else if (scope != 0 && cs_span_is(word, "end")) {
        r->c = look;
        *end = true;
        status = CUTSET_OK;
    } else {
        return cs_fault_found(&r->fault, &r->c,
                              scope == 0 ? "a node such as %y = Op(%x), or graph, opset, input, "
                                           "weight, order, group or output"
                                         : "a node such as %y = Op(%x), input, weight, order, "
                                           "group, output or end");
    }
    return status ? status : end_statement(r);
}

/* The statements of one graph, for a body up to its "end". */
cutset_status cs_text_statements(cs_text_reader *r, uint32_t scope)
{
    cutset_status status = scope == 0 ? CUTSET_OK : end_statement(r);
    bool end = false;
    while (!status && !end) {
        if (!cs_text_next(&r->c)) {
            if (scope != 0)
                return cs_fault_at(&r->fault, r->c.at,
                                   "a body without its end: write a line 'end'");
            break;
        }
        if (cs_text_here(r) >= r->next_report) {
            r->next_report = cs_text_here(r) + REPORT_BYTES;
            status = cs_progress(r->progress, "read", cs_text_here(r), r->len, r->err);
        }
        if (!status) status = read_statement(r, scope, &end);
    }
    return status;
}

/* ---- the file ---- */

static void skip_mark(cs_cursor *c)
{
    if (c->end - c->at >= 3 && memcmp(c->at, "\xef\xbb\xbf", 3) == 0)
        c->at += 3; /* the byte order mark that some editors put */
}

static cutset_status fail_at_fault(const cs_text_reader *r, cutset_error *err)
{
    const char *start = r->text, *at = r->fault.at;
    size_t line = 1;
    for (const char *nl; (nl = memchr(start, '\n', (size_t)(at - start))); line++)
        start = nl + 1;
    return cs_fail_at(err, CUTSET_BAD, (uint64_t)(at - r->text), "line %zu, column %zu: %s", line,
                      (size_t)(at - start) + 1, r->fault.why);
}

static void fini_reader(cs_text_reader *r)
{
    for (size_t i = 0; i < r->scopes.len; i++) {
        cs_text_scope *s = &r->scopes.at[i];
        cs_vec_fini(&s->child);
        cs_vec_fini(&s->arg_at);
        cs_vec_fini(&s->value_at);
        cs_vec_fini(&s->write_at);
        cs_vec_fini(&s->output_at);
        cs_vec_fini(&s->order);
        cs_vec_fini(&s->members);
    }
    cs_vec_fini(&r->scopes);
    cs_vec_fini(&r->ties);
    cs_vec_fini(&r->scratch);
    cs_vec_fini(&r->ints);
    cs_vec_fini(&r->floats);
    cs_vec_fini(&r->strings);
    cs_vec_fini(&r->types);
    cs_vec_fini(&r->attr_seen);
}

cutset_status cs_text_read(cs_graph **out, cs_span text, const cutset_progress *progress,
                           cutset_error *err)
{
    *out = NULL;
    const cs_cursor start = cs_cursor_of(text);
    cs_text_reader r = {.c = start,
                        .text = start.at,
                        .len = text.len,
                        .progress = progress,
                        .err = err,
                        .next_report = REPORT_BYTES};
    r.pool = cs_pool_new();
    if (!r.pool) return cs_fail_memory(err);
    uint32_t top;
    cutset_status status = cs_text_open(&r, CS_NONE, 0, &top);
    cs_graph *g = status ? NULL : r.scopes.at[0].g;
    skip_mark(&r.c);
    if (!status) status = cs_text_statements(&r, top);
    for (size_t i = 0; i < r.scopes.len && !status; i++)
        r.scopes.at[i].n_made = r.scopes.at[i].g->values.len;
    if (!status) status = cs_text_resolve(&r);
    if (status == CUTSET_BAD)
        fail_at_fault(&r, err);
    else if (status == CUTSET_SYSTEM)
        cs_fail_memory(err);
    fini_reader(&r);
    if (!status) status = cs_graph_seal(g, err);
    if (!status)
        *out = g;
    else if (g)
        cs_graph_free(g);
    else
        cs_pool_free(r.pool);
    return status;
}

bool cs_text_probe(cs_span text)
{
    size_t len = text.len < 4096 ? text.len : 4096;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r')) return false;
    }
    if (text.len == 0) return true;
    cs_cursor c = cs_cursor_of(text);
    skip_mark(&c);
    if (!cs_text_next(&c)) return true;
    cs_cursor look = c;
    cs_span word = cs_take_run(&look, CS_CHAR_BARE);
    if (begins_node(&c, word)) return true;
    /* The text form of protobuf has "graph {" and "graph: ...". */
    bool blank = look.at < look.end && cs_char_is(*look.at, CS_CHAR_BLANK);
    return find_keyword(word) && blank && !cs_take(&look, '{');
}
