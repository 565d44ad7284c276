/* The text form: what reads must verify, and must read back equal after writing. Also types and dims
 * on their own, and the probe, which must not crash on anything. */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *at;
    size_t len, cap;
};

static int append(void *payload, const void *bytes, size_t len)
{
    struct text *t = payload;
    if (t->cap - t->len < len) {
        t->cap = 2 * t->cap + len;
        t->at = realloc(t->at, t->cap);
        if (!t->at) abort();
    }
    memcpy(t->at + t->len, bytes, len);
    t->len += len;
    return 0;
}

static struct text write_text(const cs_graph *g)
{
    struct text t = {0};
    cs_out out;
    if (cs_out_call(&out, append, &t, NULL)) abort();
    cs_text_write(g, &out);
    if (cs_out_done(&out, "text", NULL)) abort();
    return t;
}

static void check(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "fuzz_text: %s\n", what);
    abort();
}

/* Counts alone: cheap, and any slip of the writer or the reader moves one. */
static void compare(const cs_graph *a, const cs_graph *b)
{
    check(a->nodes.len == b->nodes.len, "nodes");
    check(a->values.len == b->values.len, "values");
    check(a->storages.len == b->storages.len, "storages");
    check(a->args.len == b->args.len, "args");
    check(a->outs.len == b->outs.len, "outs");
    check(a->attrs.len == b->attrs.len, "attrs");
    check(a->allow.len == b->allow.len, "targets");
    check(a->writes.len == b->writes.len, "writes");
    check(a->members.len == b->members.len, "groups");
    check(a->inputs.len == b->inputs.len && a->outputs.len == b->outputs.len, "ends");
    check(a->order.len == b->order.len && a->n_given == b->n_given, "order");
    check(a->bodies.len == b->bodies.len, "bodies");
    for (size_t i = 0; i < a->nodes.len; i++) {
        check(a->topo[i] == b->topo[i], "topological order");
        check(a->nodes.at[i].flags == b->nodes.at[i].flags, "flags");
        check(a->nodes.at[i].opset == b->nodes.at[i].opset, "opsets");
    }
    for (size_t i = 0; i < a->storages.len; i++)
        check(a->storages.at[i].bytes == b->storages.at[i].bytes, "bytes");
    for (size_t i = 0; i < a->bodies.len; i++)
        compare(a->bodies.at[i].graph, b->bodies.at[i].graph);
}

static void fuzz_graph(cs_span text)
{
    cutset_error err = {0};
    cs_graph *g, *back;
    cutset_status status = cs_text_read(&g, text, NULL, &err);
    if (status) {
        check(status == CUTSET_BAD && err.message[0] && !strchr(err.message, '\n'), "message");
        check(err.offset <= (int64_t)text.len, "offset");
        return;
    }
    check(!cs_graph_verify(g, &err), err.message);
    struct text first = write_text(g);
    const cs_span again = {first.at, first.len};
    check(cs_text_probe(again), "probe");
    check(!cs_text_read(&back, again, NULL, &err), err.message);
    compare(g, back);
    struct text second = write_text(back);
    check(first.len == second.len && (first.len == 0 || !memcmp(first.at, second.at, first.len)),
          "writing again gives another text");
    cs_graph_free(back);
    cs_graph_free(g);
    free(first.at);
    free(second.at);
}

/* A type prints to its canonical spelling, which reads back to the same type. */
static void fuzz_type(cs_span text)
{
    cs_pool *pool = cs_pool_new();
    cs_type t, again;
    cs_dim d;
    cs_chars chars = {0};
    if (!pool) abort();
    if (!cs_type_parse(pool, text, &t, NULL)) {
        check(cs_type_print(pool, t, &chars), "memory");
        check(!cs_type_parse(pool, (cs_span){chars.at, chars.len}, &again, NULL), "type");
        check(t == again, "canonical type");
        (void)cs_type_bytes(pool, t);
    }
    if (!cs_dim_parse(pool, text, &d, NULL) && cs_dim_is_expr(d)) {
        cs_dim same;
        check(!cs_dim_parse(pool, cs_name(pool, cs_dim_text(d)), &same, NULL), "dim");
        check(d == same, "canonical dim");
        (void)cs_dim_bind(pool, d, CS_SPAN("N"), (int64_t)text.len - 3, &same, NULL);
    }
    cs_vec_fini(&chars);
    cs_pool_free(pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cs_span text = {(const char *)data, size};
    (void)cs_text_probe(text);
    fuzz_graph(text);
    fuzz_type(text);
    return 0;
}
