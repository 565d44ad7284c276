/* Opening a model: what kind of file it is, reading, declaring, inferring, hashing. */
#include <string.h>
#include <sys/stat.h>

#include "api/model.h"
#include "onnx/infer.h"
#include "report/report.h"

void cutset_open_opts_init(cutset_open_opts *opts) { *opts = (cutset_open_opts){0}; }

/* ---- the caller's options, kept because plans record them ---- */

static bool keep_list(cutset_model *m, const char *const *from, size_t n, const char *const **to)
{
    char **copy = cs_zalloc(n, sizeof *copy);
    if (!copy || !cs_vec_push(&m->strings, (char *)copy)) return cs_free(copy), false;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(from[i]) + 1;
        copy[i] = cs_alloc(len, 1);
        if (!copy[i] || !cs_vec_push(&m->strings, copy[i])) return cs_free(copy[i]), false;
        memcpy(copy[i], from[i], len);
    }
    *to = (const char *const *)copy;
    return true;
}

static bool keep_opts(cutset_model *m, const cutset_open_opts *o)
{
    m->opts = *o;
    return keep_list(m, o->types, o->n_types, &m->opts.types) &&
           keep_list(m, o->shapes, o->n_shapes, &m->opts.shapes) &&
           keep_list(m, o->dims, o->n_dims, &m->opts.dims);
}

/* ---- reading ---- */

/* For messages. */
static const char *file_name(const char *path)
{
    if (path == NULL) return "the model";
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static cutset_status read_file(cutset_model *m, cs_file *file, const char *folder,
                               cutset_error *err)
{
    cs_span text = {(const char *)file->at, file->len};
    if (file->len == 0) { /* more likely a download that failed than a graph without nodes */
        m->text = *file;
        return cs_fail_at(err, CUTSET_BAD, 0, "%s is empty: give an ONNX model or a text graph",
                          file_name(m->path));
    }
    if (cs_text_probe(text)) {
        m->text = *file;
        const cutset_status s = cs_text_read(&m->graph, text, &m->opts.progress, err);
        if (!s) m->graph->pool->file = &m->text;
        return s;
    }
    if (cs_torch_probe(text)) {
        m->text = *file;
        const cutset_torchscript in = {.text = text.at, .len = text.len};
        return cs_scripted_open(m, &in, err);
    }
    cs_onnx_opts opts = {m->opts.follow_links != 0, &m->opts.progress};
    return cs_onnx_open(&m->onnx, &m->graph, file, m->path, folder, &opts, err);
}

static cutset_status complete(cutset_model *m, cutset_error *err)
{
    cutset_status s = CUTSET_OK;
    if (m->scripted) {
        if (!m->opts.n_types && !m->opts.n_shapes && !m->opts.n_dims) return s;
        return cs_fail(err, CUTSET_USAGE,
                       "the text of a graph tells the types it has: leave --shape, --dim, --type out");
    }
    m->hash = cs_model_hash(m->graph, m->onnx, &s);
    if (s) return cs_fail_memory(err);
    cs_pool_rest(m->graph->pool); /* few names are looked at from here on */
    s = cs_declare(m->graph, &m->opts, err);
    return s ? s : cs_infer(m->graph, &m->opts.progress, err);
}

/* `file` is taken over. */
static cutset_status open_file(cutset_model **out, cs_file *file, const char *path,
                               const char *folder, const cutset_open_opts *opts, cutset_error *err)
{
    cutset_open_opts none;
    cutset_open_opts_init(&none);
    cutset_model *m = cs_zalloc(1, sizeof *m);
    if (!m || !keep_opts(m, opts ? opts : &none) ||
        (path && !(m->path = cs_alloc(strlen(path) + 1, 1)))) {
        cs_file_close(file);
        cutset_model_free(m);
        return cs_fail_memory(err);
    }
    if (path) memcpy(m->path, path, strlen(path) + 1);
    cutset_status s = read_file(m, file, folder, err);
    if (!s) s = complete(m, err);
    m->opts.progress = (cutset_progress){0}; /* the caller's, for this call only */
    if (s)
        cutset_model_free(m);
    else
        *out = m;
    return s;
}

cutset_status cutset_model_open(cutset_model **out, const char *path, const cutset_open_opts *opts,
                                cutset_error *err)
{
    cs_file file;
    *out = NULL;
    bool standard_input = strcmp(path, "-") == 0;
    cutset_status s = standard_input ? cs_file_stdin(&file, opts ? &opts->progress : NULL, err)
                                     : cs_file_open(&file, path, err);
    if (s) return s;
    char *folder = standard_input ? NULL : cs_path_dir(path);
    if (!standard_input && !folder) {
        cs_file_close(&file);
        return cs_fail_memory(err);
    }
    s = open_file(out, &file, path, folder, opts, err);
    if (s == CUTSET_BAD) cs_fail_in(err, file_name(path));
    cs_free(folder);
    return s;
}

cutset_status cutset_model_open_memory(cutset_model **out, const void *bytes, size_t len,
                                       const char *base, const cutset_open_opts *opts,
                                       cutset_error *err)
{
    cs_file file;
    *out = NULL;
    cs_file_borrow(&file, bytes, len);
    return open_file(out, &file, NULL, base, opts, err);
}

void cutset_model_free(cutset_model *m)
{
    if (!m) return;
    cs_onnx_free(m->onnx);
    if (m->scripted)
        cs_scripted_free(m->scripted);
    else
        cs_graph_free(m->graph);
    cs_file_close(&m->text);
    cs_free(m->path);
    cs_free(m->permits);
    for (size_t i = 0; i < m->strings.len; i++)
        cs_free(m->strings.at[i]);
    cs_vec_fini(&m->strings);
    cs_free(m);
}

/* ---- telling ---- */

void cutset_model_describe(const cutset_model *m, cutset_model_info *info)
{
    const cs_graph *g = m->graph;
    *info = (cutset_model_info){.is_onnx = m->onnx != NULL,
                                .nodes = g->nodes.len,
                                .inputs = g->inputs.len,
                                .outputs = g->outputs.len,
                                .weights = g->storages.len,
                                .notes = g->pool->notes.len};
    for (size_t i = 0; i < g->storages.len; i++)
        info->weight_bytes = cs_sat_add(info->weight_bytes, g->storages.at[i].bytes);
}

const char *cutset_model_note(const cutset_model *m, size_t i)
{
    return i < m->graph->pool->notes.len ? m->graph->pool->notes.at[i] : NULL;
}

int cutset_model_reads(const cutset_model *m, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return false;
    const uint64_t dev = (uint64_t)st.st_dev, ino = (uint64_t)st.st_ino;
    return m->onnx ? cs_onnx_reads(m->onnx, dev, ino) : m->text.dev == dev && m->text.ino == ino;
}

cutset_status cutset_model_inspect(const cutset_model *m, cutset_inspect_form form,
                                   cutset_write_fn write, void *payload, cutset_error *err)
{
    if (m->scripted)
        return cs_fail(err, CUTSET_USAGE, "%s is TorchScript, which inspect does not tell about: plan it",
                       m->path ? m->path : "the model");
    cs_out out;
    cutset_status s = cs_out_call(&out, write, payload, err);
    if (s) return s;
    if (form == CUTSET_INSPECT_TEXT)
        cs_text_write(m->graph, &out);
    else
        s = cs_report_model(m->graph, m->onnx, form == CUTSET_INSPECT_JSON, &out, err);
    cutset_status done = cs_out_done(&out, NULL, s ? NULL : err);
    return s ? s : done;
}
