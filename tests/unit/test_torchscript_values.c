/* TorchScript plans compute what the program computes.
 *
 * Random programs over tensors, views, lists, attributes, random draws, prints, unknown operators,
 * contexts (all that makes or writes a tensor tells the mode that it ran in) and branches are run
 * by a small interpreter: once in program order, once part by part as planned, where an engine gets
 * copies of its inputs, has the weights as they were when it was made, and gives new tensors; a
 * part has its inputs and what it makes, and only its outputs are seen later. Results, the caller's
 * inputs, attributes, draws and prints must be the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"

/* ---- programs ---- */

enum kind { NONE, TENSOR, LIST, INT };
enum code {
    RELU,
    ADD,
    DETACH,
    NARROW,
    MUL_,
    ADD_,
    PACK,
    APPEND,
    ITEM,
    SET_ITEM,
    CAT,
    LEN,
    SCALE,
    DIM,
    RAND,
    PRINT,
    GET_BUF,
    GET_W,
    GET_STATE,
    SET_STATE,
    TOUCH,
    CHUNK,
    UNPACK,
    COPY,
    ENTER,
    EXIT,
    IF,
    CODES
};

typedef struct op {
    enum code code;
    int out, out2; /* values, or -1 */
    int arg[2];
    int block, end; /* the block it stands in; the first op after what is in it */
    int inner[2];   /* IF */
    int number;     /* among nodes, or -1 */
    bool supported;
} op;

typedef struct block {
    int first, end, result;
} block;

enum { MOST_OPS = 80, MOST_VALUES = 120, MOST_BLOCKS = 20 };

typedef struct program {
    op ops[MOST_OPS];
    block blocks[MOST_BLOCKS];
    enum kind kinds[MOST_VALUES];
    int n_ops, n_values, n_blocks, n_numbers;
    int results[4], n_results;
    bool sets; /* a SET_STATE stands in it */
    char text[40000];
    size_t len;
} program;

enum { X, Y, LIN, FLAG, FIRST_FREE }; /* arguments: two tensors, a list, a bool */

static uint32_t seed;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(seed >> 8) * n) >> 24);
}

__attribute__((format(printf, 2, 3))) static void put(program *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    p->len += (size_t)vsnprintf(p->text + p->len, sizeof p->text - p->len, format, args);
    va_end(args);
    assert_true(p->len < sizeof p->text);
}

/* A value of that kind that is in scope, recent ones more often. */
static int pick(const program *p, const bool *scope, enum kind kind)
{
    int found[MOST_VALUES], n = 0;
    for (int v = 0; v < p->n_values; v++)
        if (scope[v] && p->kinds[v] == kind) found[n++] = v;
    if (n == 0) return -1;
    const int from = below(2) && n > 4 ? n - 4 : 0;
    return found[from + (int)below((uint32_t)(n - from))];
}

static int new_value(program *p, bool *scope, enum kind kind)
{
    assert_true(p->n_values < MOST_VALUES);
    p->kinds[p->n_values] = kind;
    scope[p->n_values] = true;
    return p->n_values++;
}

static const struct {
    enum kind out, arg[2];
    const char *text; /* %1$d, %2$d: arguments */
} forms[CODES] = {
    [RELU] = {TENSOR, {TENSOR, NONE}, "aten::relu(%%v%1$d)"},
    [ADD] = {TENSOR, {TENSOR, TENSOR}, "aten::add(%%v%1$d, %%v%2$d, %%one)"},
    [DETACH] = {TENSOR, {TENSOR, NONE}, "aten::detach(%%v%1$d)"},
    [NARROW] = {TENSOR, {TENSOR, NONE}, "aten::narrow(%%v%1$d, %%zero, %%zero, %%one)"},
    [MUL_] = {TENSOR, {TENSOR, NONE}, "aten::mul_(%%v%1$d, %%one)"},
    [ADD_] = {TENSOR, {TENSOR, TENSOR}, "aten::add_(%%v%1$d, %%v%2$d, %%one)"},
    [PACK] = {LIST, {TENSOR, TENSOR}, "prim::ListConstruct(%%v%1$d, %%v%2$d)"},
    [APPEND] = {LIST, {LIST, TENSOR}, "aten::append(%%v%1$d, %%v%2$d)"},
    [ITEM] = {TENSOR, {LIST, NONE}, "aten::__getitem__(%%v%1$d, %%zero)"},
    [SET_ITEM] = {LIST, {LIST, TENSOR}, "aten::_set_item(%%v%1$d, %%zero, %%v%2$d)"},
    [CAT] = {TENSOR, {LIST, NONE}, "aten::cat(%%v%1$d, %%zero)"},
    [LEN] = {INT, {LIST, NONE}, "aten::len(%%v%1$d)"},
    [SCALE] = {TENSOR, {TENSOR, INT}, "aten::mul(%%v%1$d, %%v%2$d)"},
    [DIM] = {INT, {TENSOR, NONE}, "aten::dim(%%v%1$d)"},
    [RAND] = {TENSOR,
              {TENSOR, NONE},
              "aten::rand_like(%%v%1$d, %%none, %%none, %%none, %%none, %%none)"},
    [PRINT] = {NONE, {TENSOR, NONE}, "prim::Print(%%v%1$d)"},
    [GET_BUF] = {TENSOR, {NONE, NONE}, "prim::GetAttr[name=\"buf\"](%%self)"},
    [GET_W] = {TENSOR, {NONE, NONE}, "prim::GetAttr[name=\"w\"](%%self)"},
    [GET_STATE] = {TENSOR, {NONE, NONE}, "prim::GetAttr[name=\"state\"](%%self)"},
    [SET_STATE] = {NONE, {TENSOR, NONE}, "prim::SetAttr[name=\"state\"](%%self, %%v%1$d)"},
    [TOUCH] = {TENSOR, {TENSOR, NONE}, "my::touch(%%v%1$d)"},
    [CHUNK] = {LIST, {TENSOR, NONE}, "aten::chunk(%%v%1$d, %%two, %%zero)"},
    [UNPACK] = {TENSOR, {LIST, NONE}, "prim::ListUnpack(%%v%1$d)"},
    [COPY] = {LIST, {LIST, NONE}, "aten::list(%%v%1$d)"},
    [ENTER] = {NONE, {NONE, NONE}, "prim::Enter(%%context)"},
    [EXIT] = {NONE, {NONE, NONE}, "prim::Exit(%%context)"},
};
static const char *const types[] = {"", "Tensor", "Tensor[]", "int"};

static bool is_attribute(enum code c) { return c == GET_BUF || c == GET_W || c == GET_STATE; }

static op *new_op(program *p, enum code code, int in_block)
{
    op *o = &p->ops[p->n_ops++];
    *o = (op){.code = code,
              .out = -1,
              .out2 = -1,
              .arg = {-1, -1},
              .block = in_block,
              .end = p->n_ops,
              .number = is_attribute(code) ? -1 : p->n_numbers++,
              .supported = below(10) < 7};
    return o;
}

static void add_ops(program *p, bool *scope, int in_block, int n, int depth);

static void add_branch(program *p, bool *scope, int in_block, int depth)
{
    const int at = p->n_ops;
    op *o = new_op(p, IF, in_block);
    o->arg[0] = FLAG;
    o->out = new_value(p, scope, TENSOR);
    const int out = o->out;
    scope[out] = false; /* not inside */
    put(p, "%%v%d : Tensor = prim::If(%%v%d)\n", out, FLAG);
    for (int k = 0; k < 2; k++) {
        bool inner[MOST_VALUES];
        memcpy(inner, scope, sizeof inner);
        const int b = p->n_blocks++;
        p->ops[at].inner[k] = b;
        p->blocks[b].first = p->n_ops;
        put(p, "block%d():\n", k);
        add_ops(p, inner, b, 1 + (int)below(4), depth + 1);
        p->blocks[b].end = p->n_ops;
        p->blocks[b].result = pick(p, inner, TENSOR);
        put(p, "-> (%%v%d)\n", p->blocks[b].result);
    }
    p->ops[at].end = p->n_ops;
    scope[out] = true;
}

static void add_op(program *p, bool *scope, int in_block, int depth)
{
    const enum code code = (enum code)below(CODES);
    if (code == IF) {
        if (depth < 2 && p->n_blocks + 2 < MOST_BLOCKS) add_branch(p, scope, in_block, depth);
        return;
    }
    if (code == UNPACK) return; /* only behind a chunk: lists have any length */
    int arg[2] = {-1, -1};
    for (int i = 0; i < 2; i++)
        if (forms[code].arg[i] != NONE && (arg[i] = pick(p, scope, forms[code].arg[i])) < 0) return;
    op *o = new_op(p, code, in_block);
    memcpy(o->arg, arg, sizeof arg);
    p->sets |= code == SET_STATE;
    if (forms[code].out != NONE) {
        o->out = new_value(p, scope, forms[code].out);
        put(p, "%%v%d : %s = ", o->out, types[forms[code].out]);
    } else {
        put(p, " = ");
    }
    char format[100];
    snprintf(format, sizeof format, "%s\n", forms[code].text);
    char line[200];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(line, sizeof line, format, arg[0], arg[1]);
#pragma GCC diagnostic pop
    put(p, "%s", line);
    if (code != CHUNK) return;
    const int list = o->out;
    op *u = new_op(p, UNPACK, in_block);
    u->arg[0] = list;
    u->out = new_value(p, scope, TENSOR);
    u->out2 = new_value(p, scope, TENSOR);
    put(p, "%%v%d : Tensor, %%v%d : Tensor = prim::ListUnpack(%%v%d)\n", u->out, u->out2, list);
}

static void add_ops(program *p, bool *scope, int in_block, int n, int depth)
{
    for (int i = 0; i < n && p->n_ops < MOST_OPS - 4 && p->n_values < MOST_VALUES - 4; i++)
        add_op(p, scope, in_block, depth);
}

static void make_program(program *p)
{
    static const enum kind inputs[] = {TENSOR, TENSOR, LIST, NONE};
    bool scope[MOST_VALUES] = {false};
    memset(p, 0, sizeof *p);
    for (int i = 0; i < FIRST_FREE; i++)
        new_value(p, scope, inputs[i]);
    scope[FLAG] = false;
    p->n_blocks = 1;
    put(p,
        "graph(%%self : __torch__.M, %%v0 : Tensor, %%v1 : Tensor, %%v2 : Tensor[], %%v3 : bool):\n"
        "%%none : NoneType = prim::Constant()\n%%zero : int = prim::Constant[value=0]()\n"
        "%%one : int = prim::Constant[value=1]()\n%%two : int = prim::Constant[value=2]()\n"
        "%%context : __torch__.Context = prim::GetAttr[name=\"context\"](%%self)\n");
    add_ops(p, scope, 0, 4 + (int)below(30), 0);
    p->blocks[0] = (block){0, p->n_ops, -1};
    p->n_results = 1 + (int)below(4);
    put(p, "return (");
    for (int i = 0; i < p->n_results; i++) {
        p->results[i] = pick(p, scope, i == 2 ? LIST : i == 3 ? INT : TENSOR);
        if (p->results[i] < 0) p->results[i] = pick(p, scope, TENSOR);
        put(p, "%s%%v%d", i ? ", " : "", p->results[i]);
    }
    put(p, ")\n");
}

/* ---- running ---- */

enum { SIZE = 4, MOST_THINGS = 6000, MOST_ITEMS = 12 };

typedef struct thing { /* a tensor: a window of a storage; a list of tensors; a number */
    enum kind kind;
    int64_t mode; /* that a tensor was made in */
    int storage, len;
    int64_t number;
    int item[MOST_ITEMS];
} thing;

typedef struct machine {
    thing things[MOST_THINGS];
    int64_t data[MOST_THINGS][SIZE];
    int n_things, n_data;
    int buf, w, state; /* things */
    int64_t draws, log[500];
    int n_log;
    int64_t mode;
    int x, y, lin;
    bool flag;
} machine;

typedef struct scope {
    int at[MOST_VALUES]; /* things, or -1 */
    bool engine;
    int buf, w, state; /* as an engine has them */
} scope;

static int add_thing(machine *m, thing t)
{
    assert_true(m->n_things < MOST_THINGS);
    m->things[m->n_things] = t;
    return m->n_things++;
}

static int fresh(machine *m, int len)
{
    assert_true(m->n_data < MOST_THINGS);
    memset(m->data[m->n_data], 0, sizeof m->data[0]);
    return add_thing(m,
                     (thing){.kind = TENSOR, .mode = m->mode, .storage = m->n_data++, .len = len});
}

static int64_t *cells(machine *m, int t)
{
    assert_int_equal(m->things[t].kind, TENSOR);
    return m->data[m->things[t].storage];
}

static int clone(machine *m, int t)
{
    const int c = fresh(m, m->things[t].len);
    memcpy(cells(m, c), cells(m, t), sizeof m->data[0]);
    m->things[c].mode = m->things[t].mode;
    return c;
}

static int pair(machine *m, int a, int b)
{
    thing list = {.kind = LIST, .len = 2};
    list.item[0] = a, list.item[1] = b;
    return add_thing(m, list);
}

static int window(machine *m, int t, int len)
{
    return add_thing(
        m, (thing){.kind = TENSOR, .mode = m->mode, .storage = m->things[t].storage, .len = len});
}

static void start(machine *m, bool flag)
{
    memset(m, 0, sizeof *m);
    int *all[] = {&m->buf, &m->w, &m->state, &m->x, &m->y};
    for (int i = 0; i < 5; i++) {
        *all[i] = fresh(m, SIZE);
        for (int k = 0; k < SIZE; k++)
            cells(m, *all[i])[k] = 10 * i + k + 1;
    }
    m->lin = pair(m, fresh(m, SIZE), fresh(m, SIZE));
    m->flag = flag;
}

/* Values stay small enough never to overflow. */
static int64_t mix(int64_t x) { return (x % 1000003 * 31 + 7) % 1000003; }

static void each_cell(machine *m, int to, int a, int b, int64_t scale)
{
    const int len = m->things[to].len;
    for (int k = 0; k < len; k++) {
        const int64_t x = k < m->things[a].len ? cells(m, a)[k] : 0;
        const int64_t y = b >= 0 && k < m->things[b].len ? cells(m, b)[k] : 5;
        cells(m, to)[k] = mix(x + 3 * y + scale + 11 * m->mode);
    }
}

static int arg_of(const scope *s, const op *o, int i)
{
    const int v = o->arg[i];
    if (s->at[v] < 0) fail_msg("%%v%d is not there", v);
    return s->at[v];
}

static int cat(machine *m, int list)
{
    const int out = fresh(m, SIZE);
    for (int i = 0; i < m->things[list].len; i++)
        each_cell(m, out, out, m->things[list].item[i], i);
    return out;
}

static void run_simple(machine *m, scope *s, const op *o)
{
    const int a = o->arg[0] >= 0 ? arg_of(s, o, 0) : -1;
    const int b = o->arg[1] >= 0 ? arg_of(s, o, 1) : -1;
    int out = -1;
    switch (o->code) {
    case RELU:
        each_cell(m, out = fresh(m, m->things[a].len), a, -1, 1);
        break;
    case ADD:
        each_cell(m, out = fresh(m, m->things[a].len), a, b, 2);
        break;
    case DETACH:
        out = window(m, a, m->things[a].len);
        break;
    case NARROW:
        out = window(m, a, 1);
        break;
    case MUL_:
        each_cell(m, out = a, a, -1, 3);
        break;
    case ADD_:
        each_cell(m, out = a, a, b, 4);
        break;
    case PACK:
        out = pair(m, a, b);
        break;
    case APPEND:
        if (m->things[a].len < MOST_ITEMS) m->things[a].item[m->things[a].len++] = b;
        out = a;
        break;
    case ITEM:
        out = m->things[a].item[0];
        break;
    case SET_ITEM:
        m->things[out = a].item[0] = b;
        break;
    case CAT:
        out = cat(m, a);
        break;
    case LEN:
        out = add_thing(m, (thing){.kind = INT, .number = m->things[a].len});
        break;
    case SCALE:
        each_cell(m, out = fresh(m, m->things[a].len), a, -1, m->things[b].number);
        break;
    case DIM:
        out = add_thing(m, (thing){.kind = INT, .number = m->things[a].len});
        break;
    case RAND:
        each_cell(m, out = fresh(m, m->things[a].len), a, -1, 1000 * ++m->draws);
        break;
    case PRINT:
        for (int k = 0; k < m->things[a].len; k++)
            m->log[m->n_log++] = cells(m, a)[k];
        break;
    case GET_BUF:
        out = s->engine ? s->buf : m->buf;
        break;
    case GET_W:
        out = s->engine ? s->w : m->w;
        break;
    case GET_STATE:
        out = s->engine ? s->state : m->state;
        break;
    case SET_STATE:
        m->state = a;
        break;
    case TOUCH:
        each_cell(m, out = a, a, -1, 6);
        break;
    case CHUNK:
        out = pair(m, window(m, a, 1), window(m, a, m->things[a].len));
        break;
    case UNPACK:
        out = m->things[a].item[0];
        s->at[o->out2] = m->things[a].item[1];
        break;
    case COPY:
        out = add_thing(m, m->things[a]);
        break;
    case ENTER:
        m->mode = (2 * m->mode + 1) % 997;
        break;
    case EXIT:
        m->mode = (3 * m->mode + 2) % 997;
        break;
    default:
        fail();
    }
    if (o->out >= 0) s->at[o->out] = out;
}

static void run_block(const program *p, machine *m, scope *s, int b)
{
    for (int i = p->blocks[b].first; i < p->blocks[b].end; i = p->ops[i].end) {
        const op *o = &p->ops[i];
        if (o->code != IF) {
            run_simple(m, s, o);
            continue;
        }
        const int inner = o->inner[m->flag ? 0 : 1];
        run_block(p, m, s, inner);
        s->at[o->out] = s->at[p->blocks[inner].result];
    }
}

/* ---- running a plan ---- */

typedef struct runner {
    const program *p;
    const cutset_plan *plan;
    machine *m;
    int buf, w, state; /* as they were when the engines were made */
} runner;

static cs_span str(const runner *r, cs_str s) { return cs_strtab_get(&r->plan->names, s); }

static int op_named(const runner *r, cs_span name)
{
    char text[20];
    for (int i = 0; i < r->p->n_ops; i++) {
        const op *o = &r->p->ops[i];
        snprintf(text, sizeof text, o->out >= 0 ? "v%d" : "$%d", o->out >= 0 ? o->out : o->number);
        if (cs_span_is(name, text)) return i;
    }
    fail_msg("no node %.*s", CS_FMT(name));
    return -1;
}

static int value_named(cs_span name)
{
    int64_t v;
    assert_true(name.at[0] == 'v' && cs_parse_i64((cs_span){name.at + 1, name.len - 1}, &v));
    return (int)v;
}

static void run_parts(runner *r, scope *s, const char *name);

static void run_node(runner *r, scope *s, int i, const cs_part *part)
{
    const op *o = &r->p->ops[i];
    if (o->code != IF) {
        run_simple(r->m, s, o);
        return;
    }
    const int branch = r->m->flag ? 0 : 1, inner = o->inner[branch];
    if (cs_part_is_engine(part)) {
        run_block(r->p, r->m, s, inner);
        s->at[o->out] = s->at[r->p->blocks[inner].result];
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "%u.%d", part->id, branch);
    scope inside = *s;
    run_parts(r, &inside, name);
    const int result = r->p->blocks[inner].result;
    if (inside.at[result] < 0) fail_msg("the branch does not give %%v%d", result);
    s->at[o->out] = inside.at[result];
}

/* Attributes are in every part, but for those that are written, which are inputs. */
static void give_attributes(const runner *r, scope *s, const bool *is_input)
{
    for (int i = 0; i < r->p->n_ops; i++) {
        const op *o = &r->p->ops[i];
        const bool own = is_attribute(o->code) && !(o->code == GET_STATE && r->p->sets);
        if (own && !is_input[o->out]) run_simple(r->m, s, o);
    }
}

static void run_part(runner *r, scope *outer, const cs_part *part)
{
    const cutset_plan *plan = r->plan;
    const bool engine = cs_part_is_engine(part);
    bool here[MOST_OPS] = {false}, is_input[MOST_VALUES] = {false};
    scope s = {.engine = engine, .buf = r->buf, .w = r->w, .state = r->state};
    memset(s.at, 0xff, sizeof s.at);
    for (uint32_t i = 0; i < part->n_input; i++) {
        const int v = value_named(str(r, plan->values.at[plan->refs.at[part->input + i]]));
        if (outer->at[v] < 0) fail_msg("input %%v%d of part %u is not there", v, part->id);
        is_input[v] = true;
        s.at[v] = engine ? clone(r->m, outer->at[v]) : outer->at[v]; /* engines: tensors only */
    }
    if (!engine) s.at[FLAG] = outer->at[FLAG];
    give_attributes(r, &s, is_input);
    for (uint32_t i = 0; i < part->n_node; i++)
        here[op_named(r, str(r, plan->node_label.at[part->node + i]))] = true;
    for (uint32_t i = 0; i < part->n_copy; i++)
        here[op_named(r, str(r, plan->copy_label.at[part->copy + i]))] = true;
    for (int i = 0; i < r->p->n_ops; i++)
        if (here[i]) run_node(r, &s, i, part);
    for (uint32_t i = 0; i < part->n_output; i++) {
        const int v = value_named(str(r, plan->values.at[plan->refs.at[part->output + i]]));
        outer->at[v] = engine ? clone(r->m, s.at[v]) : s.at[v];
    }
}

static void run_parts(runner *r, scope *s, const char *name)
{
    for (size_t i = 0; i < r->plan->parts.len; i++)
        if (cs_span_is(str(r, r->plan->parts.at[i].block), name))
            run_part(r, s, &r->plan->parts.at[i]);
}

static void give_inputs(machine *m, scope *s)
{
    memset(s, 0, sizeof *s);
    memset(s->at, 0xff, sizeof s->at);
    s->at[X] = m->x, s->at[Y] = m->y, s->at[LIN] = m->lin;
    s->at[FLAG] = add_thing(m, (thing){.kind = INT, .number = m->flag});
}

/* ---- comparing ---- */

static bool same(machine *a, int t, machine *b, int u)
{
    if (a->things[t].kind != b->things[u].kind || a->things[t].len != b->things[u].len)
        return false;
    if (a->things[t].kind == TENSOR) /* what the window shows */
        return a->things[t].mode == b->things[u].mode &&
               !memcmp(cells(a, t), cells(b, u), sizeof(int64_t) * (size_t)a->things[t].len);
    for (int i = 0; i < a->things[t].len && a->things[t].kind == LIST; i++)
        if (!same(a, a->things[t].item[i], b, b->things[u].item[i])) return false;
    return a->things[t].number == b->things[u].number;
}

static const char *difference(const program *p, machine *a, const scope *s, machine *b,
                              const scope *u)
{
    for (int i = 0; i < p->n_results; i++)
        if (!same(a, s->at[p->results[i]], b, u->at[p->results[i]])) return "a result";
    if (!same(a, a->x, b, b->x) || !same(a, a->y, b, b->y)) return "an input";
    if (!same(a, a->lin, b, b->lin)) return "the list given in";
    if (!same(a, a->buf, b, b->buf) || !same(a, a->w, b, b->w)) return "an attribute";
    if (!same(a, a->state, b, b->state)) return "the attribute that is set";
    if (a->draws != b->draws) return "draws";
    if (a->n_log != b->n_log || memcmp(a->log, b->log, sizeof a->log)) return "prints";
    return NULL;
}

/* ---- planning ---- */

static cutset_plan *make_plan(const program *p, uint32_t least)
{
    enum { HEAD = 5 };
    static uint32_t allow[HEAD + MOST_OPS];
    for (int i = 0; i < HEAD + p->n_ops; i++)
        allow[i] = CUTSET_ALLOW_HOST | (i >= HEAD && p->ops[i - HEAD].supported);
    const cutset_torchscript in = {
        .text = p->text, .len = p->len, .n_lines = HEAD + (size_t)p->n_ops, .allow = allow};
    cutset_model *model;
    cutset_target *acc;
    cutset_plan *plan;
    cutset_error err = {0};
    cutset_plan_opts opts;
    cutset_plan_opts_init(&opts);
    opts.min_nodes = least;
    if (cutset_model_open_torchscript(&model, &in, &err)) fail_msg("%s\n%s", err.message, p->text);
    assert_int_equal(cutset_target_marked(&acc, "acc", 1, 0, 0, &err), CUTSET_OK);
    if (cutset_plan_make(&plan, model, (const cutset_target *const *)&acc, 1, &opts, &err))
        fail_msg("%s\n%s", err.message, p->text);
    cutset_target_free(acc);
    cutset_model_free(model);
    return plan;
}

static machine whole, parts;

static uint32_t try_program(const program *p, uint32_t number)
{
    cutset_plan *plan = make_plan(p, below(3));
    const uint32_t engines = plan->engines;
    for (int flag = 0; flag < 2; flag++) {
        scope s, u;
        start(&whole, flag);
        start(&parts, flag);
        give_inputs(&whole, &s);
        run_block(p, &whole, &s, 0);
        runner r = {p,
                    plan,
                    &parts,
                    clone(&parts, parts.buf),
                    clone(&parts, parts.w),
                    clone(&parts, parts.state)};
        bool none[MOST_VALUES] = {false};
        give_inputs(&parts, &u);
        give_attributes(&r, &u, none);
        run_parts(&r, &u, "");
        const char *what = difference(p, &whole, &s, &parts, &u);
        if (!what) continue;
        for (size_t i = 0; i < plan->parts.len; i++) {
            const cs_part *part = &plan->parts.at[i];
            print_message("part %u %s [%.*s]:", part->id, part->target < 0 ? "host" : "acc",
                          CS_FMT(str(&r, part->block)));
            for (uint32_t k = 0; k < part->n_node; k++)
                print_message(" %.*s", CS_FMT(str(&r, plan->node_label.at[part->node + k])));
            print_message("\n");
        }
        fputs(p->text, stderr);
        fail_msg("program %u, flag %d: %s differs", number, flag, what);
    }
    cutset_plan_free(plan);
    return engines;
}

static void test_values(void **state)
{
    (void)state;
    const uint32_t n = getenv("CUTSET_LONG") ? 200000 : 4000;
    static program p;
    uint64_t engines = 0;
    for (uint32_t i = 0; i < n; i++) {
        seed = i * 2654435761u + 1;
        make_program(&p);
        engines += try_program(&p, i);
    }
    assert_true(engines > n); /* the programs are no trifles */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
