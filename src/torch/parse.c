/* The text of a graph, read statement by statement.
 *
 *     graph(%self : __torch__.M, %x : Tensor):
 *       %y : Tensor = aten::relu(%x) # model.py:3:1
 *       %z : Tensor = prim::If(%c) [block0(): ... -> (%a)  block1(): ... -> (%b)]
 *       return (%z)
 *
 * A node's blocks follow it, each ended by "-> (...)"; line breaks and indentation carry no meaning.
 * Names are defined once and used after their definition, inside the block that defines them. Blocks
 * are kept on a stack of bounded depth. Anything else is refused with its place: nothing is guessed.
 * Cost: linear in the text.
 */
#include <stdio.h>
#include <string.h>

#include "torch/schema.h"

typedef struct reader {
    cs_script *s;
    cs_scan c;
    cs_hasher *hash;                    /* of the text without comments */
    CS_VEC(uint32_t) value_of;          /* by name: the value, or CS_NONE */
    uint32_t open[CS_SCRIPT_DEPTH + 1]; /* blocks, outermost first */
    uint32_t depth;                     /* of them */
} reader;

static void skip_comment(reader *r)
{
    cs_scan *c = &r->c;
    while (c->at < c->end && *c->at == ' ')
        c->at++;
    if (c->at < c->end && *c->at == '#')
        while (c->at < c->end && *c->at != '\n')
            c->at++;
}

/* What has been read since `from` counts for the hash. */
static void hash_since(reader *r, const char *from)
{
    cs_hasher_add_span(r->hash, (cs_span){from, (size_t)(r->c.at - from)});
}

static cutset_status expect(reader *r, const char *word, const char *wanted)
{
    return cs_scan_take(&r->c, word) ? CUTSET_OK : cs_scan_found(&r->c, wanted);
}

/* ---- names ---- */

static bool is_name(char ch) { return !strchr(" \t\r\n,:()[]{}=%#\"", ch); }

/* "%" name */
static cutset_status scan_name(reader *r, cs_str *name, const char **at)
{
    cs_scan *c = &r->c;
    cs_scan_space(c);
    *at = c->at;
    if (!cs_scan_take(c, "%")) return cs_scan_found(c, "a value such as %x");
    const char *from = c->at;
    while (c->at < c->end && *c->at && is_name(*c->at))
        c->at++;
    if (c->at == from) return cs_scan_found(c, "the name of a value after '%'");
    *name = cs_strtab_add(&r->s->pool->names, (cs_span){from, (size_t)(c->at - from)}, false);
    return *name == CS_NONE ? CUTSET_SYSTEM : CUTSET_OK;
}

static bool room_for_name(reader *r, cs_str name)
{
    if (name < r->value_of.len) return true;
    if (!cs_vec_room(&r->value_of, name + 1 - r->value_of.len)) return false;
    while (r->value_of.len <= name)
        r->value_of.at[r->value_of.len++] = CS_NONE;
    return true;
}

/* "%" name ":" type, made by `line` or an argument of the innermost block */
static cutset_status scan_definition(reader *r, uint32_t line)
{
    cs_ts_value v = {.line = line, .block = r->open[r->depth - 1], .path = CS_NONE};
    const char *at;
    cutset_status status = scan_name(r, &v.name, &at);
    if (!status) status = expect(r, ":", "':' and a type");
    if (!status) status = cs_ts_scan_type(&r->c, r->s->pool, &v.type);
    if (status) return status;
    if (!room_for_name(r, v.name)) return CUTSET_SYSTEM;
    if (r->value_of.at[v.name] != CS_NONE)
        return cs_scan_fault(&r->c, at,
                             "%%%.*s is defined twice: give each value a name of its own",
                             CS_FMT(cs_name(r->s->pool, v.name)));
    r->value_of.at[v.name] = (uint32_t)r->s->values.len;
    return r->s->values.len < CS_NONE - 1 && cs_vec_push(&r->s->values, v) ? CUTSET_OK
                                                                           : CUTSET_SYSTEM;
}

static bool is_open(const reader *r, uint32_t block)
{
    for (uint32_t i = r->depth; i > 0; i--)
        if (r->open[i - 1] == block) return true;
    return false;
}

/* "(" [%a {"," %b}] ")"; the values go to script->refs */
static cutset_status scan_uses(reader *r, uint32_t *first, uint32_t *n)
{
    *first = (uint32_t)r->s->refs.len;
    *n = 0;
    cutset_status status = expect(r, "(", "'('");
    if (status || cs_scan_take(&r->c, ")")) return status;
    do {
        cs_str name;
        const char *at;
        status = scan_name(r, &name, &at);
        if (status) return status;
        const uint32_t v = name < r->value_of.len ? r->value_of.at[name] : CS_NONE;
        if (v == CS_NONE || !is_open(r, r->s->values.at[v].block))
            return cs_scan_fault(&r->c, at, "%%%.*s is not defined here: give the whole graph",
                                 CS_FMT(cs_name(r->s->pool, name)));
        if (r->s->refs.len >= CS_NONE - 1 || !cs_vec_push(&r->s->refs, v)) return CUTSET_SYSTEM;
        ++*n;
    } while (cs_scan_take(&r->c, ","));
    return expect(r, ")", "',' or ')'");
}

/* "(" [%a ":" type {"," ...}] ")": the arguments of the block opened last */
static cutset_status scan_arguments(reader *r)
{
    cs_script *s = r->s;
    const uint32_t block = r->open[r->depth - 1];
    s->blocks.at[block].in = (uint32_t)s->values.len;
    cutset_status status = expect(r, "(", "'('");
    if (!status && !cs_scan_take(&r->c, ")")) {
        do
            status = scan_definition(r, CS_NONE);
        while (!status && cs_scan_take(&r->c, ","));
        if (!status) status = expect(r, ")", "',' or ')'");
    }
    s->blocks.at[block].n_in = (uint32_t)s->values.len - s->blocks.at[block].in;
    return status ? status : expect(r, ":", "':'");
}

static cutset_status open_block(reader *r, uint32_t owner)
{
    cs_script *s = r->s;
    if (r->depth > CS_SCRIPT_DEPTH)
        return cs_scan_fault(&r->c, r->c.at, "blocks nested more than %d deep: nest less",
                             CS_SCRIPT_DEPTH);
    const uint32_t block = (uint32_t)s->blocks.len;
    const cs_ts_block b = {.owner = owner, .first = (uint32_t)s->lines.len};
    if (!cs_vec_push(&s->blocks, b)) return CUTSET_SYSTEM;
    r->open[r->depth++] = block;
    return scan_arguments(r);
}

/* ---- lines ---- */

static const struct {
    const char *op;
    uint8_t kind;
} known[] = {
    {"prim::Constant", CS_TS_CONSTANT},   {"prim::GetAttr", CS_TS_GETATTR},
    {"prim::SetAttr", CS_TS_SETATTR},     {"prim::If", CS_TS_IF},
    {"prim::Loop", CS_TS_LOOP},           {"prim::ListConstruct", CS_TS_PACK},
    {"prim::TupleConstruct", CS_TS_PACK}, {"prim::DictConstruct", CS_TS_PACK},
    {"prim::ListUnpack", CS_TS_UNPACK},   {"prim::TupleUnpack", CS_TS_UNPACK},
    {"prim::TupleIndex", CS_TS_UNPACK},   {"prim::TupleSlice", CS_TS_SLICE},
    {"prim::unchecked_cast", CS_TS_CAST}, {"prim::unchecked_unwrap_optional", CS_TS_CAST},
    {"prim::NumToTensor", CS_TS_FRESH},   {"prim::ImplicitTensorToNum", CS_TS_FRESH},
    {"prim::Uninitialized", CS_TS_FRESH}, {"prim::isinstance", CS_TS_FRESH},
    {"prim::rangelist", CS_TS_FRESH},
};

static uint8_t kind_of(cs_span op)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (cs_span_is(op, known[i].op)) return known[i].kind;
    return CS_TS_OPERATOR;
}

/* Of an operator with several results: those from here on may be missing (undefined tensors), which
 * Python has no value for. As cutset.torchscript has it in _source.py. */
static uint32_t first_vague(cs_span op)
{
    static const char *const marks[] = {"_backward", "attention"};
    for (uint32_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t len = strlen(marks[i]);
        for (size_t at = 0; at + len <= op.len; at++)
            if (memcmp(op.at + at, marks[i], len) == 0) return i;
    }
    return CS_NONE;
}

static cutset_status check_op(reader *r, const char *at, cs_span op)
{
    static const char *const calls[] = {"prim::CallMethod", "prim::CallFunction"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (cs_span_is(op, calls[i]))
            return cs_scan_fault(&r->c, at,
                                 "%s is a call that is not inlined: inline the graph "
                                 "first (module.inlined_graph)",
                                 calls[i]);
    if (!memchr(op.at, ':', op.len))
        return cs_scan_fault(&r->c, at, "'%.*s' is no operator: write namespace::name", CS_FMT(op));
    if (op.len > 6 && memcmp(op.at, "prim::", 6) == 0 && kind_of(op) == CS_TS_OPERATOR &&
        !cs_schemas_has(op))
        return cs_scan_fault(&r->c, at,
                             "%.*s is no known construct: print the graph before it is "
                             "transformed",
                             CS_FMT(op));
    return CUTSET_OK;
}

/* The truth of "1", "0", "0.", "1.5" ...; -1: no number. */
static int8_t truth_of(cs_span text)
{
    double x;
    if (text.len == 0 || text.len > 40) return -1;
    if (!cs_parse_f64(text, &x)) {
        int64_t n;
        if (text.at[text.len - 1] == '.' && cs_parse_i64((cs_span){text.at, text.len - 1}, &n))
            return n != 0;
        return -1;
    }
    return x != 0;
}

/* "[" name "=" value {"," ...} "]", if there is one */
static cutset_status scan_attributes(reader *r, cs_ts_line *line)
{
    cs_scan *c = &r->c;
    if (c->at == c->end || *c->at != '[') return CUTSET_OK;
    c->at++;
    do {
        cs_scan_space(c);
        const char *at = c->at;
        const cs_span name = cs_scan_word(c);
        if (name.len == 0 || !cs_scan_take(c, "="))
            return cs_scan_found(c, "an attribute such as value=1");
        cs_scan_space(c);
        const char *from = c->at;
        const cutset_status status = cs_scan_over(c, ",]");
        if (status) return status;
        cs_span value = {from, (size_t)(c->at - from)};
        if (value.len > 6 && memcmp(value.at, "<Graph", 6) == 0)
            return cs_scan_fault(c, at,
                                 "a graph inside a node: print the graph before it is fused");
        if (cs_span_is(name, "value")) line->truth = truth_of(value);
        if (cs_span_is(name, "name") && value.len > 2 && value.at[0] == '"') {
            line->attr =
                cs_strtab_add(&r->s->pool->names, (cs_span){value.at + 1, value.len - 2}, false);
            if (line->attr == CS_NONE) return CUTSET_SYSTEM;
        }
    } while (cs_scan_take(c, ","));
    return expect(r, "]", "',' or ']'");
}

/* ", scope: ..." up to the comment or the end of the line */
static void skip_scope(reader *r)
{
    cs_scan *c = &r->c;
    if (c->at + 1 >= c->end || *c->at != ',') return;
    while (c->at < c->end && *c->at != '\n' && *c->at != '#')
        c->at++;
}

/* How many results and arguments the lines have that the analysis knows by name. */
static cutset_status check_shape(reader *r, const cs_ts_line *l, const char *at)
{
    const cs_span op = cs_name(r->s->pool, l->op);
    const bool attribute = l->kind == CS_TS_GETATTR || l->kind == CS_TS_SETATTR;
    bool ok = true;
    switch ((cs_ts_kind)l->kind) {
    case CS_TS_CONSTANT:
        ok = l->n_arg == 0 && l->n_out == 1;
        break;
    case CS_TS_GETATTR:
        ok = l->n_arg == 1 && l->n_out == 1;
        break;
    case CS_TS_SETATTR:
        ok = l->n_arg == 2 && l->n_out == 0;
        break;
    case CS_TS_IF:
        ok = l->n_arg == 1;
        break;
    case CS_TS_LOOP:
        ok = l->n_arg == l->n_out + 2;
        break;
    case CS_TS_PACK:
        ok = l->n_out == 1;
        break;
    case CS_TS_UNPACK:
    case CS_TS_SLICE:
        ok = l->n_arg >= 1;
        break;
    case CS_TS_CAST:
        ok = l->n_arg == 1 && l->n_out == 1;
        break;
    default:
        break;
    }
    if (!ok)
        return cs_scan_fault(&r->c, at,
                             "%.*s with %u arguments and %u results: give the text as it "
                             "was printed",
                             CS_FMT(op), l->n_arg, l->n_out);
    if (attribute && l->attr == 0)
        return cs_scan_fault(&r->c, at, "%.*s without the name of an attribute: write [name=\"x\"]",
                             CS_FMT(op));
    return CUTSET_OK;
}

/* The results, up to "=" */
static cutset_status scan_results(reader *r, cs_ts_line *line)
{
    cutset_status status = CUTSET_OK;
    line->out = (uint32_t)r->s->values.len;
    if (cs_scan_peek(&r->c, '%')) {
        do
            status = scan_definition(r, (uint32_t)r->s->lines.len);
        while (!status && cs_scan_take(&r->c, ","));
    }
    line->n_out = (uint32_t)r->s->values.len - line->out;
    return status ? status : expect(r, "=", "'=' and an operator");
}

static cutset_status scan_line(reader *r)
{
    cs_script *s = r->s;
    cs_scan_space(&r->c);
    const char *from = r->c.at;
    cs_ts_line line = {
        .block = r->open[r->depth - 1], .truth = -1, .at = (size_t)(from - r->c.start)};
    cutset_status status = scan_results(r, &line);
    if (status) return status;
    cs_scan_space(&r->c);
    const char *at = r->c.at;
    const cs_span op = cs_scan_word(&r->c);
    if (op.len == 0) return cs_scan_found(&r->c, "an operator such as aten::relu");
    status = check_op(r, at, op);
    if (status) return status;
    line.kind = kind_of(op);
    line.op = cs_strtab_add(&s->pool->names, op, false);
    if (line.op == CS_NONE) return CUTSET_SYSTEM;
    for (uint32_t i = line.n_out > 1 ? first_vague(op) : CS_NONE; i < line.n_out; i++)
        s->values.at[line.out + i].type.optional = true;
    status = scan_attributes(r, &line);
    if (!status) status = scan_uses(r, &line.arg, &line.n_arg);
    if (!status) status = check_shape(r, &line, at);
    if (status) return status;
    hash_since(r, from);
    skip_scope(r);
    skip_comment(r);
    line.number =
        line.kind == CS_TS_CONSTANT || line.kind == CS_TS_GETATTR ? CS_NONE : s->n_numbers++;
    line.end = (uint32_t)s->lines.len + 1;
    return s->lines.len < INT32_MAX - 2 && cs_vec_push(&s->lines, line) ? CUTSET_OK : CUTSET_SYSTEM;
}

/* ---- blocks ---- */

/* "block0(...):" behind a line opens a block of it. */
static bool at_block(reader *r)
{
    cs_scan_space(&r->c);
    const size_t left = (size_t)(r->c.end - r->c.at);
    return left > 6 && memcmp(r->c.at, "block", 5) == 0 && r->c.at[5] >= '0' && r->c.at[5] <= '9';
}

static cutset_status scan_block(reader *r, uint32_t owner, const char *from)
{
    cs_script *s = r->s;
    const cs_span word = cs_scan_word(&r->c);
    cs_ts_line *line = &s->lines.at[owner];
    if (line->kind != CS_TS_IF && line->kind != CS_TS_LOOP)
        return cs_scan_fault(&r->c, from,
                             "%.*s has a block, which only prim::If and prim::Loop may: "
                             "print the graph before it is transformed",
                             CS_FMT(cs_name(s->pool, line->op)));
    char name[24];
    snprintf(name, sizeof name, "block%u", line->n_inner);
    if (!cs_span_is(word, name) || line->n_inner == (line->kind == CS_TS_IF ? 2u : 1u))
        return cs_scan_fault(&r->c, from,
                             "'%.*s' is not expected here: give the text as it was "
                             "printed",
                             CS_FMT(word));
    line->n_inner++;
    return open_block(r, owner);
}

/* "-> (...)": the innermost block ends. */
static cutset_status close_block(reader *r, const char *at)
{
    cs_script *s = r->s;
    if (r->depth == 1) return cs_scan_found(&r->c, "a node or 'return (...)'");
    const uint32_t block = r->open[r->depth - 1], owner = s->blocks.at[block].owner;
    uint32_t first, n;
    const cutset_status status = scan_uses(r, &first, &n);
    if (status) return status;
    cs_ts_block *b = &s->blocks.at[block];
    b->ret = first, b->n_ret = n;
    b->end = s->lines.at[owner].end = (uint32_t)s->lines.len;
    s->lines.at[owner].blocks_end = (uint32_t)s->blocks.len;
    r->depth--;
    const cs_ts_line *line = &s->lines.at[owner];
    const bool loop = line->kind == CS_TS_LOOP;
    if (n != line->n_out + loop || b->n_in != (loop ? line->n_out + 1 : 0))
        return cs_scan_fault(&r->c, at,
                             "a block of %.*s with %u arguments that gives %u values: give "
                             "the text as it was printed",
                             CS_FMT(cs_name(s->pool, line->op)), b->n_in, n);
    return CUTSET_OK;
}

/* A line whose blocks are all there? Else a fault at `at`. */
static cutset_status check_blocks(reader *r, uint32_t owner, const char *at)
{
    const cs_ts_line *line = &r->s->lines.at[owner];
    const uint32_t wanted = line->kind == CS_TS_IF ? 2 : line->kind == CS_TS_LOOP ? 1 : 0;
    if (line->n_inner == wanted) return CUTSET_OK;
    return cs_scan_fault(&r->c, at, "%.*s has %u blocks, not %u: give all that str(graph) prints",
                         CS_FMT(cs_name(r->s->pool, line->op)), line->n_inner, wanted);
}

static cutset_status scan_statements(reader *r)
{
    cs_script *s = r->s;
    uint32_t last[CS_SCRIPT_DEPTH + 2]; /* by depth: the line read last, or CS_NONE */
    last[r->depth] = CS_NONE;
    for (;;) {
        cs_scan_space(&r->c);
        const char *at = r->c.at;
        cutset_status status = CUTSET_OK;
        if (last[r->depth] != CS_NONE && at_block(r)) {
            status = scan_block(r, last[r->depth], at);
            if (status) return status;
            last[r->depth] = CS_NONE;
            hash_since(r, at);
            skip_comment(r);
            continue;
        }
        if (last[r->depth] != CS_NONE) status = check_blocks(r, last[r->depth], at);
        if (status) return status;
        if (cs_scan_take(&r->c, "return")) {
            if (r->depth > 1)
                return cs_scan_fault(&r->c, at,
                                     "'return' inside a block: write '-> "
                                     "(...)'");
            status = scan_uses(r, &s->blocks.at[0].ret, &s->blocks.at[0].n_ret);
            s->blocks.at[0].end = (uint32_t)s->lines.len;
            hash_since(r, at);
            return status;
        }
        if (cs_scan_take(&r->c, "->")) {
            status = close_block(r, at);
            hash_since(r, at);
        } else {
            status = scan_line(r);
            if (!status) last[r->depth] = (uint32_t)s->lines.len - 1;
        }
        if (status) return status;
    }
}

static cutset_status scan_graph(reader *r)
{
    cs_script *s = r->s;
    if (!cs_scan_take(&r->c, "graph"))
        return cs_scan_found(&r->c, "graph(...), as str(graph) prints it");
    cutset_status status = open_block(r, CS_NONE);
    if (status) return status;
    skip_comment(r);
    const cs_ts_block *top = &s->blocks.at[0];
    if (top->n_in > 0 && s->values.at[top->in].type.base == CS_TS_OBJECT) {
        s->has_self = true;
        s->values.at[top->in].path = 0;
        s->n_paths = 1;
    }
    hash_since(r, r->c.start);
    status = scan_statements(r);
    if (status) return status;
    skip_comment(r);
    cs_scan_space(&r->c);
    if (r->c.at < r->c.end)
        return cs_scan_fault(&r->c, r->c.at,
                             "text behind the graph: give one graph, printed before "
                             "it is fused");
    return CUTSET_OK;
}

/* The id of `name` under `parent`; CS_NONE: no memory. */
static uint32_t path_of(cs_script *s, uint32_t parent, cs_str name)
{
    const uint64_t key = (uint64_t)parent << 32 | name;
    const uint32_t found = cs_map_get(&s->paths, key);
    if (found != CS_NONE) return found;
    return cs_map_put(&s->paths, key, s->n_paths) ? s->n_paths++ : CS_NONE;
}

/* Blocks by the line that owns them; paths of attributes. */
static bool link_blocks(cs_script *s)
{
    if (!cs_vec_room(&s->inner, s->blocks.len)) return false;
    for (size_t i = 0; i < s->lines.len; i++) {
        s->lines.at[i].inner = (uint32_t)s->inner.len;
        s->inner.len += s->lines.at[i].n_inner;
        s->lines.at[i].n_inner = 0;
    }
    for (uint32_t b = 1; b < s->blocks.len; b++) {
        cs_ts_line *l = &s->lines.at[s->blocks.at[b].owner];
        s->inner.at[l->inner + l->n_inner++] = b;
    }
    for (size_t i = 0; i < s->lines.len; i++) {
        const cs_ts_line *l = &s->lines.at[i];
        if (l->kind != CS_TS_GETATTR) continue;
        const uint32_t parent = s->values.at[s->refs.at[l->arg]].path;
        if (parent == CS_NONE) continue;
        if ((s->values.at[l->out].path = path_of(s, parent, l->attr)) == CS_NONE) return false;
    }
    return true;
}

bool cs_ts_within(const cs_script *s, uint32_t inner, uint32_t outer)
{
    while (inner > outer) /* a block stands after the one around it */
        inner = s->lines.at[s->blocks.at[inner].owner].block;
    return inner == outer;
}

/* ---- all of it ---- */

/* The message of a fault: its place by line and column of the text. */
static cutset_status tell(const cs_scan *c, cutset_error *err)
{
    size_t line = 1;
    const char *from = c->start;
    for (const char *p = c->start; p < c->fault; p++)
        if (*p == '\n') line++, from = p + 1;
    return cs_fail_at(err, CUTSET_BAD, (uint64_t)(c->fault - c->start), "line %zu, column %zu: %s",
                      line, (size_t)(c->fault - from) + 1, c->why);
}

cutset_status cs_script_parse(cs_script *out, cs_span text, cutset_error *err)
{
    *out = (cs_script){.pool = cs_pool_new()};
    const char *at = text.len ? text.at : "";
    reader r = {.s = out, .c = {at, at + text.len, at, NULL, ""}, .hash = cs_hasher_new()};
    cutset_status status = out->pool && r.hash ? scan_graph(&r) : CUTSET_SYSTEM;
    if (!status && !link_blocks(out)) status = CUTSET_SYSTEM;
    cs_vec_fini(&r.value_of);
    if (r.hash) out->hash = cs_hasher_done(r.hash);
    if (status == CUTSET_BAD) return tell(&r.c, err);
    return status ? cs_fail_memory(err) : CUTSET_OK;
}

void cs_script_fini(cs_script *s)
{
    cs_pool_free(s->pool);
    cs_vec_fini(&s->values);
    cs_vec_fini(&s->lines);
    cs_vec_fini(&s->blocks);
    cs_vec_fini(&s->refs);
    cs_vec_fini(&s->inner);
    cs_map_fini(&s->paths);
    *s = (cs_script){0};
}

bool cs_torch_probe(cs_span text)
{
    size_t i = 0;
    while (i < text.len &&
           (text.at[i] == ' ' || text.at[i] == '\n' || text.at[i] == '\t' || text.at[i] == '\r'))
        i++;
    return text.len - i >= 6 && memcmp(text.at + i, "graph(", 6) == 0;
}
