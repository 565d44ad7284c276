/* The hash of a model: the same for the same text, another for every difference that matters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/model.h"

static uint64_t hash_of(const char *text)
{
    cs_graph *g = NULL;
    cutset_error err = {0};
    if (cs_text_read(&g, cs_span_of(text), NULL, &err) != CUTSET_OK) fail_msg("%s", err.message);
    cutset_status status;
    const uint64_t hash = cs_model_hash(g, NULL, &status);
    assert_int_equal(status, CUTSET_OK);
    cs_graph_free(g);
    return hash;
}

/* Each differs from the first, and from each other, in one thing. */
static const char *const models[] = {
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Bar(%x, %w) {k=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = d:Foo(%x, %w) {k=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%w, %x) {k=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, , %w) {k=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=2}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {j=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1.0}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=[1]}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=\"1\"}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=[type(i8)]}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=[type(f32)]}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=[tensor(f32)]}\noutput "
    "%y\n",
    "input %x : f32[4]\nweight %w : f32[8]\n%y : f32[4] = Foo(%x, %w) {k=1}\noutput %y\n",
    "input %x : f32[N]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : i32[4] = Foo(%x, %w) {k=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%z : f32[4] = Foo(%x, %w) {k=1}\noutput %z\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1} @acc\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1} !effect\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1} !writes(%x)\noutput "
    "%y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1}\noutput %y\noutput "
    "%x\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1}\noutput %y\ngroup g { "
    "%y }\n",
    "opset 17\n"
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1} {\nbody b\n"
    "%t : f32[4] = Foo(%x)\noutput %t\nend\n}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1} {\nbody b\n"
    "%t : f32[4] = Bar(%x)\noutput %t\nend\n}\noutput %y\n",
    "input %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1} {\nbody c\n"
    "%t : f32[4] = Bar(%x)\noutput %t\nend\n}\noutput %y\n",
    "input %x : f32[4]\n%y : f32[4] = Foo(%x)\n%z : f32[4] = Foo(%x)\noutput %y\noutput %z\n",
    "input %x : f32[4]\n%y : f32[4] = Foo(%x)\n%z : f32[4] = Foo(%x)\noutput %z\noutput %y\n",
    "input %x : f32[4]\n%y : f32[4] = Foo(%x)\n%z : f32[4] = Foo(%x)\noutput %y\noutput %z\n"
    "order %y -> %z\n",
    "weight %x : f32[4]\nweight %w : f32[4]\n%y : f32[4] = Foo(%x, %w) {k=1}\noutput %y\n",
    "weight %x : f32[4]\nweight %w : f32[4] = %x\n%y : f32[4] = Foo(%x, %w) {k=1}\noutput %y\n",
};
enum { MODELS = sizeof models / sizeof *models };

static void differences(void **state)
{
    (void)state;
    uint64_t hash[MODELS];
    for (int i = 0; i < MODELS; i++) {
        hash[i] = hash_of(models[i]);
        assert_int_equal(hash[i], hash_of(models[i]));
        for (int k = 0; k < i; k++)
            if (hash[i] == hash[k]) fail_msg("models %d and %d have one hash", k, i);
    }
}

static void comments_do_not_count(void **state)
{
    (void)state;
    assert_int_equal(
        hash_of("input %x : f32[4]\n%y = Foo(%x)\noutput %y\n"),
        hash_of("# a comment\ninput   %x : f32[4]\n\n%y  = Foo( %x )  # more\noutput %y\n"));
}

static cs_data_file *add_file(cs_onnx *onnx, const char *name, uint64_t size)
{
    const cs_str location = cs_strtab_add(&onnx->pool->names, cs_span_of(name), false);
    assert_true(cs_vec_push(&onnx->files, ((cs_data_file){.location = location, .size = size})));
    return &onnx->files.at[onnx->files.len - 1];
}

/* Name and size of a weight file count, not where it is or what is in it. */
static void weight_files(void **state)
{
    (void)state;
    cs_graph *g = NULL;
    cutset_status status;
    assert_int_equal(cs_text_read(&g, cs_span_of(models[0]), NULL, NULL), CUTSET_OK);
    cs_onnx onnx = {.pool = g->pool};
    const uint64_t none = cs_model_hash(g, &onnx, &status);
    cs_data_file *file = add_file(&onnx, "w.bin", 100);
    const uint64_t one = cs_model_hash(g, &onnx, &status);
    static char elsewhere[] = "/elsewhere/w.bin";
    file->path = elsewhere;
    assert_int_equal(one, cs_model_hash(g, &onnx, &status));
    file->size = 101;
    const uint64_t larger = cs_model_hash(g, &onnx, &status);
    onnx.files.len = 0;
    add_file(&onnx, "v.bin", 100);
    const uint64_t other = cs_model_hash(g, &onnx, &status);
    assert_int_not_equal(none, one);
    assert_int_not_equal(one, larger);
    assert_int_not_equal(one, other);
    cs_vec_fini(&onnx.files);
    cs_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences),
                                       cmocka_unit_test(comments_do_not_count),
                                       cmocka_unit_test(weight_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
