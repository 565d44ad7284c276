/* ONNX files for tests, written by hand: protobuf fields into a growing buffer, and short forms for
 * the messages that tests need. A child message is consumed by the parent that takes it.
 *
 *     pb g = {0};
 *     pb_msg(&g, 1, node("Relu", "x", "y"));
 *     pb_msg(&g, 11, info("x", CS_F32, "N,3"));
 *     loaded l = load(model(g));
 */
#ifndef ONNX_BYTES_H
#define ONNX_BYTES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnx/onnx.h"

typedef struct pb {
    unsigned char *at;
    size_t len, cap;
} pb;

__attribute__((unused)) static void pb_raw(pb *b, const void *bytes, size_t len)
{
    if (b->len + len + 1 > b->cap) { /* doubled: a test makes one of 10,000 levels */
        b->cap = 2 * (b->len + len + 1);
        b->at = realloc(b->at, b->cap);
    }
    assert_non_null(b->at);
    if (len > 0) memcpy(b->at + b->len, bytes, len);
    b->len += len;
}

__attribute__((unused)) static void pb_number(pb *b, uint64_t x)
{
    unsigned char bytes[10];
    size_t n = 0;
    for (; x > 127; x >>= 7)
        bytes[n++] = (unsigned char)(x | 128);
    bytes[n++] = (unsigned char)x;
    pb_raw(b, bytes, n);
}

__attribute__((unused)) static void pb_int(pb *b, uint32_t field, int64_t x)
{
    pb_number(b, (uint64_t)field << 3);
    pb_number(b, (uint64_t)x);
}

__attribute__((unused)) static void pb_f32(pb *b, uint32_t field, float x)
{
    pb_number(b, (uint64_t)field << 3 | 5);
    pb_raw(b, &x, 4);
}

__attribute__((unused)) static void pb_bytes(pb *b, uint32_t field, const void *bytes, size_t len)
{
    pb_number(b, (uint64_t)field << 3 | 2);
    pb_number(b, len);
    pb_raw(b, bytes, len);
}

__attribute__((unused)) static void pb_str(pb *b, uint32_t field, const char *text)
{
    pb_bytes(b, field, text, strlen(text));
}

__attribute__((unused)) static void pb_msg(pb *b, uint32_t field, pb child)
{
    pb_bytes(b, field, child.at, child.len);
    free(child.at);
}

/* "a,b,,c": one string field an entry, "" among them; NULL: none. */
__attribute__((unused)) static void pb_list(pb *b, uint32_t field, const char *names)
{
    for (const char *at = names; at != NULL;) {
        const char *end = strchr(at, ',');
        pb_bytes(b, field, at, end == NULL ? strlen(at) : (size_t)(end - at));
        at = end == NULL ? NULL : end + 1;
    }
}

__attribute__((unused)) static pb node(const char *op, const char *ins, const char *outs)
{
    pb n = {0};
    pb_list(&n, 1, ins);
    pb_list(&n, 2, outs);
    pb_str(&n, 4, op);
    return n;
}

__attribute__((unused)) static pb with_domain(pb n, const char *domain)
{
    pb_str(&n, 7, domain);
    return n;
}

__attribute__((unused)) static pb with_attr(pb n, pb attr)
{
    pb_msg(&n, 5, attr);
    return n;
}

__attribute__((unused)) static pb attr_int(const char *name, int64_t x)
{
    pb a = {0};
    pb_str(&a, 1, name);
    pb_int(&a, 3, x);
    pb_int(&a, 20, 2);
    return a;
}

__attribute__((unused)) static pb attr_msg(const char *name, uint32_t field, int type, pb value)
{
    pb a = {0};
    pb_str(&a, 1, name);
    pb_msg(&a, field, value);
    pb_int(&a, 20, type);
    return a;
}
#define attr_tensor(name, t) attr_msg((name), 5, 4, (t))
#define attr_graph(name, g) attr_msg((name), 6, 5, (g))

__attribute__((unused)) static pb attr_ref(const char *name, const char *ref, int type)
{
    pb a = {0};
    pb_str(&a, 1, name);
    pb_int(&a, 20, type);
    pb_str(&a, 21, ref);
    return a;
}

/* "N,3,?": dims; "": a scalar; NULL: no shape. elem 0: no type at all. */
__attribute__((unused)) static pb type_of(int elem, const char *dims)
{
    pb shape = {0}, tensor = {0}, type = {0};
    for (const char *at = dims; at != NULL && dims[0] != '\0';) {
        const char *end = strchr(at, ',');
        char text[64] = {0};
        memcpy(text, at, end == NULL ? strlen(at) : (size_t)(end - at));
        pb dim = {0};
        if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))
            pb_int(&dim, 1, strtoll(text, NULL, 10));
        else if (text[0] != '?')
            pb_str(&dim, 2, text);
        pb_msg(&shape, 1, dim);
        at = end == NULL ? NULL : end + 1;
    }
    pb_int(&tensor, 1, elem);
    if (dims != NULL)
        pb_msg(&tensor, 2, shape);
    else
        free(shape.at);
    pb_msg(&type, 1, tensor);
    return type;
}

__attribute__((unused)) static pb info(const char *name, int elem, const char *dims)
{
    pb v = {0};
    pb_str(&v, 1, name);
    if (elem != 0) pb_msg(&v, 2, type_of(elem, dims));
    return v;
}

/* A TensorProto with dims ("2,3", "" = scalar) and, unless raw is NULL, raw_data. */
__attribute__((unused)) static pb tensor(const char *name, int elem, const char *dims,
                                         const void *raw, size_t len)
{
    pb t = {0};
    for (const char *at = dims; at != NULL && dims[0] != '\0';) {
        char *end;
        pb_int(&t, 1, strtoll(at, &end, 10));
        at = *end == ',' ? end + 1 : NULL;
    }
    pb_int(&t, 2, elem);
    pb_str(&t, 8, name);
    if (raw != NULL) pb_bytes(&t, 9, raw, len);
    return t;
}

__attribute__((unused)) static pb opset(const char *domain, int64_t version)
{
    pb o = {0};
    if (domain[0] != '\0') pb_str(&o, 1, domain);
    pb_int(&o, 2, version);
    return o;
}

/* A graph may also be given as nothing: {0}. */
__attribute__((unused)) static pb model_of(pb graph, int64_t ir, int64_t version)
{
    pb m = {0};
    pb_int(&m, 1, ir);
    if (version > 0) pb_msg(&m, 8, opset("", version));
    pb_msg(&m, 7, graph);
    return m;
}
#define model(graph) model_of((graph), 8, 17)

/* x -> y through the nodes that the test adds: both f32[4]. */
__attribute__((unused)) static pb graph_xy(void)
{
    pb g = {0};
    pb_str(&g, 2, "g");
    pb_msg(&g, 11, info("x", 1, "4"));
    pb_msg(&g, 12, info("y", 1, "4"));
    return g;
}

/* ---- opening ---- */

typedef struct loaded {
    pb bytes;
    cs_onnx *onnx;
    cs_graph *graph;
    cutset_status status;
    cutset_error err;
} loaded;

__attribute__((unused)) static loaded load_from(pb m, const char *folder, bool follow)
{
    loaded l = {.bytes = m};
    cs_file file;
    const cs_onnx_opts opts = {.follow_links = follow};
    cs_file_borrow(&file, m.at, m.len);
    l.status = cs_onnx_open(&l.onnx, &l.graph, &file, NULL, folder, &opts, &l.err);
    if (l.status == CUTSET_OK)
        assert_int_equal(cs_graph_verify(l.graph, &l.err), CUTSET_OK);
    else
        assert_true(l.onnx == NULL && l.graph == NULL && l.err.message[0] != '\0');
    return l;
}

__attribute__((unused)) static void unload(loaded *l)
{
    cs_onnx_free(l->onnx);
    cs_graph_free(l->graph);
    free(l->bytes.at);
    *l = (loaded){0};
}

__attribute__((unused)) static loaded load(pb m)
{
    loaded l = load_from(m, NULL, false);
    if (l.status != CUTSET_OK) print_error("%s\n", l.err.message);
    assert_int_equal(l.status, CUTSET_OK);
    return l;
}

/* The model must be refused with CUTSET_BAD, and the message must hold `words`. */
__attribute__((unused)) static void refuse(pb m, const char *words)
{
    loaded l = load_from(m, NULL, false);
    if (l.status != CUTSET_BAD || strstr(l.err.message, words) == NULL)
        print_error("expected '%s', got %d: %s\n", words, l.status, l.err.message);
    assert_int_equal(l.status, CUTSET_BAD);
    assert_non_null(strstr(l.err.message, words));
    unload(&l);
}

/* ---- looking ---- */

/* The value of that name in g; the test fails where there is none. */
__attribute__((unused)) static uint32_t value(const cs_graph *g, const char *name)
{
    const cs_str id = cs_strtab_find(&g->pool->names, cs_span_of(name));
    for (uint32_t v = 0; v < g->values.len; v++)
        if (g->values.at[v].name == id) return v;
    fail_msg("no value '%s'", name);
    return CS_NONE;
}

__attribute__((unused)) static void assert_type(const cs_graph *g, const char *name,
                                                const char *type)
{
    cs_chars text = {0};
    assert_true(cs_type_print(g->pool, g->values.at[value(g, name)].type, &text));
    assert_true(cs_vec_push(&text, '\0'));
    assert_string_equal(text.at, type);
    cs_vec_fini(&text);
}

__attribute__((unused)) static const cs_storage *storage(const cs_graph *g, const char *name)
{
    const uint32_t s = g->values.at[value(g, name)].storage;
    assert_int_not_equal(s, CS_NONE);
    while (g->outer != NULL)
        g = g->outer;
    return &g->storages.at[s];
}

__attribute__((unused)) static bool has_note(const cs_graph *g, const char *words)
{
    for (size_t i = 0; i < g->pool->notes.len; i++)
        if (strstr(g->pool->notes.at[i], words) != NULL) return true;
    return false;
}

#endif
