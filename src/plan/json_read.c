/* plan.json back into a plan: strict, for the file may come from anywhere.
 *
 * Every key must be there and have its type, no other key may be; numbers are checked before they
 * size or index anything; a part's file must have the very name that cutset gives it, so no plan
 * can make a later step write or delete another file. What the file says twice must agree (counts,
 * targets, types). Whether the parts fit the model is for cs_plan_bind to find out.
 *
 * Parts and boundaries are read in json_parts.c. jansson parses with its own bounds on depth; the
 * tree is dropped before this returns.
 */
#include "plan/assemble.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/json_read.h"

/* ---- head ---- */

static cutset_status read_version(const cs_cursor *top)
{
    static const char *const keys[] = {"version", "plan", NULL};
    cs_cursor c;
    if (json_object_get(top->object, "cutset") == NULL)
        return cs_fail(top->err, CUTSET_BAD, "%s: this JSON is no plan: make one with cutset plan",
                       top->what);
    PASS(cs_json_enter(top, "cutset", NULL, &c));
    int64_t schema;
    cs_str version;
    PASS(cs_json_get_int(&c, "plan", 0, INT64_MAX, &schema));
    PASS(cs_json_get_str(&c, "version", &version));
    if (schema != 1)
        return cs_fail(c.err, CUTSET_BAD,
                       "%s: a plan of schema %" PRId64 " by cutset %.*s, this is cutset %s, which "
                       "reads schema 1: make the plan anew with cutset plan",
                       c.what, schema, CS_FMT(cs_strtab_get(c.names, version)), CUTSET_VERSION);
    return cs_json_check_keys(&c, keys);
}

/* The path as it is to be opened: from the folder of plan.json on. */
static cutset_status read_path(cs_reader *r, const cs_cursor *c)
{
    const json_t *path = json_object_get(c->object, "path");
    if (json_is_null(path)) return CUTSET_OK;
    if (!json_is_string(path)) return cs_json_wrong(c, "path", "is not a string or null");
    const char *text = json_string_value(path);
    if (text[0] == '\0' || strlen(text) != json_string_length(path))
        return cs_json_wrong(c, "path", "is no path");
    const bool from_here = r->folder == NULL || strcmp(text, "-") == 0;
    r->plan->model_path = cs_path_join(from_here ? "" : r->folder, text);
    return r->plan->model_path != NULL ? CUTSET_OK : cs_fail_memory(c->err);
}

static cutset_status read_from(const cs_cursor *c, int32_t *out)
{
    static const char *const words[] = {"input", "weight", NULL};
    int64_t from;
    int word;
    if (json_is_integer(json_object_get(c->object, "from"))) {
        PASS(
            cs_json_get_int(c, "from", 0, INT32_MAX, &from)); /* against the parts: cs_read_parts */
        *out = (int32_t)from;
        return CUTSET_OK;
    }
    PASS(cs_json_get_word(c, "from", words, &word));
    *out = word == 0 ? CS_FROM_INPUT : CS_FROM_WEIGHT;
    return CUTSET_OK;
}

static cutset_status read_inputs(cs_reader *r, const cs_cursor *model)
{
    static const char *const keys[] = {"name", "type", NULL};
    const json_t *array;
    size_t n;
    PASS(cs_json_get_array(model, "inputs", &array, &n));
    for (size_t i = 0; i < n; i++) {
        cs_cursor c;
        cs_plan_value value = {.from = CS_FROM_INPUT};
        PASS(cs_json_enter_at(model, "inputs", i, keys, &c));
        PASS(cs_json_get_str(&c, "name", &value.name));
        PASS(cs_json_get_str(&c, "type", &value.type));
        if (!cs_vec_push(&r->plan->inputs, value)) return cs_fail_memory(c.err);
    }
    return CUTSET_OK;
}

static cutset_status read_outputs(cs_reader *r, const cs_cursor *model)
{
    static const char *const keys[] = {"name", "type", "from", NULL};
    const json_t *array;
    size_t n;
    PASS(cs_json_get_array(model, "outputs", &array, &n));
    for (size_t i = 0; i < n; i++) {
        cs_cursor c;
        cs_plan_value value = {0};
        PASS(cs_json_enter_at(model, "outputs", i, keys, &c));
        PASS(cs_json_get_str(&c, "name", &value.name));
        PASS(cs_json_get_str(&c, "type", &value.type));
        PASS(read_from(&c, &value.from));
        if (!cs_vec_push(&r->plan->outputs, value)) return cs_fail_memory(c.err);
    }
    return CUTSET_OK;
}

static cutset_status read_model(cs_reader *r, const cs_cursor *top)
{
    static const char *const keys[] = {"path",   "hash",    "nodes", "weight_bytes",
                                       "inputs", "outputs", NULL};
    cs_cursor c;
    int64_t nodes;
    PASS(cs_json_enter(top, "model", keys, &c));
    PASS(read_path(r, &c));
    PASS(cs_json_get_hash(&c, "hash", &r->plan->model_hash));
    PASS(cs_json_get_int(&c, "nodes", 0, UINT32_MAX - 1, &nodes));
    r->plan->model_nodes = (uint64_t)nodes;
    PASS(cs_json_get_int(&c, "weight_bytes", 0, INT64_MAX, &r->plan->model_weight_bytes));
    PASS(read_inputs(r, &c));
    return read_outputs(r, &c);
}

/* Target names make file names: letters, digits, ".", "_" and "-" only. */
static bool is_target_name(cs_span name)
{
    for (size_t i = 0; i < name.len; i++) {
        const char ch = name.at[i];
        const bool ok = (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '.' ||
                        ch == '_' || ch == '-';
        if (!ok) return false;
    }
    return name.len > 0 && name.len <= 200 && !cs_span_is(name, "host");
}

static cutset_status read_targets(cs_reader *r, const cs_cursor *top)
{
    static const char *const keys[] = {"name", "hash", NULL};
    const json_t *array;
    size_t n;
    PASS(cs_json_get_array(top, "targets", &array, &n));
    if (n > 1000) return cs_json_wrong(top, "targets", "is too long");
    for (size_t i = 0; i < n; i++) {
        cs_cursor c;
        cs_plan_target target;
        PASS(cs_json_enter_at(top, "targets", i, keys, &c));
        PASS(cs_json_get_str(&c, "name", &target.name));
        PASS(cs_json_get_hash(&c, "hash", &target.hash));
        if (!is_target_name(cs_strtab_get(c.names, target.name)))
            return cs_json_wrong(&c, "name", "is no name of a target");
        for (size_t t = 0; t < i; t++)
            if (r->plan->targets.at[t].name == target.name)
                return cs_json_wrong(&c, "name", "stands twice");
        if (!cs_vec_push(&r->plan->targets, target)) return cs_fail_memory(c.err);
    }
    return CUTSET_OK;
}

cutset_status cs_read_target(const cs_reader *r, const cs_cursor *c, int32_t *out)
{
    cs_str name;
    PASS(cs_json_get_str(c, "target", &name));
    *out = -1;
    if (cs_span_is(cs_strtab_get(c->names, name), "host")) return CUTSET_OK;
    for (size_t t = 0; t < r->plan->targets.len; t++)
        if (r->plan->targets.at[t].name == name) {
            *out = (int32_t)t;
            return CUTSET_OK;
        }
    return cs_json_wrong(c, "target", "is none of the plan's targets");
}

/* ---- options ---- */

static cutset_status read_option_targets(const cs_reader *r, const cs_cursor *c)
{
    cs_strs names = {0};
    cutset_status status = cs_json_get_strs(c, "target", &names);
    bool same = status == CUTSET_OK && names.len == r->plan->targets.len;
    for (size_t t = 0; same && t < names.len; t++)
        same = names.at[t] == r->plan->targets.at[t].name;
    if (status == CUTSET_OK && !same)
        status = cs_json_wrong(c, "target", "differs from the plan's targets");
    cs_vec_fini(&names);
    return status;
}

static cutset_status read_options(cs_reader *r, const cs_cursor *top)
{
    enum { ALWAYS = 16 }; /* the other two stand there only where they are true */
    const char *keys[ALWAYS + 3] = {"target",      "host-memory", "device-memory", "min-nodes",
                                    "min-benefit", "max-engines", "oversize",      "objective",
                                    "effort",      "pin",         "exclude",       "group",
                                    "connected",   "shape",       "dim",           "type"};
    const json_t *options = json_object_get(top->object, "options");
    const bool tensors = json_object_get(options, "tensors-only") != NULL;
    const bool bookends = json_object_get(options, "bookends") != NULL;
    int n = ALWAYS;
    if (tensors) keys[n++] = "tensors-only";
    if (bookends) keys[n++] = "bookends";
    static const char *const oversize[] = {"error", "host", "keep", NULL};
    static const char *const objective[] = {"engines", NULL};
    cs_plan_options *o = &r->plan->options;
    cs_cursor c;
    int word;
    int64_t effort;
    PASS(cs_json_enter(top, "options", keys, &c));
    PASS(read_option_targets(r, &c));
    PASS(cs_json_get_int_or_null(&c, "host-memory", 1, INT64_MAX, 0, &o->host_memory));
    PASS(cs_json_get_int_or_null(&c, "device-memory", 1, INT64_MAX, 0, &o->device_memory));
    PASS(cs_json_get_int(&c, "min-nodes", 0, INT64_MAX, &o->min_nodes));
    PASS(cs_json_get_null(&c, "min-benefit"));
    PASS(cs_json_get_int_or_null(&c, "max-engines", 1, INT64_MAX, 0, &o->max_engines));
    PASS(cs_json_get_word(&c, "oversize", oversize, &word));
    o->oversize = (cutset_oversize)word;
    PASS(cs_json_get_word(&c, "objective", objective, &word));
    PASS(cs_json_get_int(&c, "effort", 0, 3, &effort));
    o->effort = (int)effort;
    PASS(cs_json_get_strs(&c, "pin", &o->pins));
    PASS(cs_json_get_strs(&c, "exclude", &o->excludes));
    PASS(cs_json_get_strs(&c, "group", &o->groups));
    PASS(cs_json_get_bool(&c, "connected", &o->connected));
    if (tensors) PASS(cs_json_get_bool(&c, "tensors-only", &o->tensors_only));
    if (bookends) PASS(cs_json_get_bool(&c, "bookends", &o->bookends));
    PASS(cs_json_get_strs(&c, "shape", &o->shapes));
    PASS(cs_json_get_strs(&c, "dim", &o->dims));
    return cs_json_get_strs(&c, "type", &o->types);
}

/* ---- objective, fallback ---- */

/* What the objective repeats from the parts and boundaries. */
static cutset_status check_objective(const cs_reader *r, const cs_cursor *c, int64_t parts,
                                     bool proved)
{
    const cutset_plan *plan = r->plan;
    uint32_t engines = 0, unknown = 0;
    for (size_t i = 0; i < plan->parts.len; i++)
        engines += cs_part_is_engine(&plan->parts.at[i]);
    for (size_t i = 0; i < plan->boundaries.len; i++)
        unknown += plan->boundaries.at[i].bytes < 0;
    if (parts != (int64_t)plan->parts.len)
        return cs_json_wrong(c, "parts", "is not the number of parts");
    if (plan->engines != engines)
        return cs_json_wrong(c, "engines", "is not the number of engines");
    if (proved != (plan->engines == plan->engines_bound))
        return cs_json_wrong(c, "engines_proved", "is not whether engines is engines_bound");
    if (plan->boundaries_unknown != unknown)
        return cs_json_wrong(c, "boundaries_unknown", "is not their number");
    return CUTSET_OK;
}

static cutset_status read_objective(cs_reader *r, const cs_cursor *top)
{
    static const char *const keys[] = {
        "engines",        "engines_bound",        "engines_proved",     "bound_kind", "parts",
        "boundary_bytes", "boundary_bytes_bound", "boundaries_unknown", NULL};
    static const char *const kinds[] = {"path", "volume", "window", "search", NULL};
    cutset_plan *plan = r->plan;
    cs_cursor c;
    int64_t engines, bound, parts, unknown;
    bool proved;
    int kind;
    PASS(cs_json_enter(top, "objective", keys, &c));
    PASS(cs_json_get_int(&c, "engines", 0, INT32_MAX, &engines));
    PASS(cs_json_get_int(&c, "engines_bound", 0, engines, &bound));
    PASS(cs_json_get_bool(&c, "engines_proved", &proved));
    PASS(cs_json_get_word(&c, "bound_kind", kinds, &kind));
    PASS(cs_json_get_int(&c, "parts", 0, INT32_MAX, &parts));
    PASS(cs_json_get_int(&c, "boundary_bytes", 0, INT64_MAX, &plan->boundary_bytes));
    PASS(cs_json_get_int(&c, "boundary_bytes_bound", 0, INT64_MAX, &plan->boundary_bytes_bound));
    PASS(cs_json_get_int(&c, "boundaries_unknown", 0, UINT32_MAX, &unknown));
    plan->engines = (uint32_t)engines;
    plan->engines_bound = (uint32_t)bound;
    plan->bound_kind = (cs_bound_kind)kind;
    plan->boundaries_unknown = (uint32_t)unknown;
    return check_objective(r, &c, parts, proved);
}

static cutset_status read_fallback(cs_reader *r, const cs_cursor *top)
{
    static const char *const keys[] = {
        "node", "name", "op", "target", "rule", "why", "engines_saved_if_supported", NULL};
    static const char *const rules[] = {
#define CS_RULE_TEXT(name, text) text,
        CS_RULES(CS_RULE_TEXT)
#undef CS_RULE_TEXT
            NULL};
    const json_t *array;
    size_t n;
    PASS(cs_json_get_array(top, "fallback", &array, &n));
    if (!cs_vec_room(&r->plan->fallback, n)) return cs_fail_memory(top->err);
    for (size_t i = 0; i < n; i++) {
        cs_cursor c;
        cs_fallback f;
        int rule;
        PASS(cs_json_enter_at(top, "fallback", i, keys, &c));
        PASS(cs_json_get_str(&c, "node", &f.label));
        PASS(cs_json_get_str(&c, "name", &f.name));
        PASS(cs_json_get_str(&c, "op", &f.op));
        PASS(cs_read_target(r, &c, &f.target));
        PASS(cs_json_get_word(&c, "rule", rules, &rule));
        f.rule = (cs_rule)(rule + 1); /* after CS_RULE_NONE */
        PASS(cs_json_get_str(&c, "why", &f.why));
        PASS(cs_json_get_int_or_null(&c, "engines_saved_if_supported", 0, INT64_MAX, -1, &f.saved));
        r->plan->fallback.at[r->plan->fallback.len++] = f;
    }
    return CUTSET_OK;
}

static cutset_status read_plan(cs_reader *r, const cs_cursor *top)
{
    static const char *const keys[] = {"cutset",    "model",       "targets", "options",
                                       "objective", "certificate", "parts",   "boundaries",
                                       "fallback",  NULL};
    PASS(read_version(top));
    PASS(cs_json_check_keys(top, keys));
    PASS(read_model(r, top));
    PASS(read_targets(r, top));
    PASS(read_options(r, top));
    PASS(cs_read_parts(r, top));
    PASS(cs_read_boundaries(r, top));
    PASS(read_objective(r, top));
    PASS(cs_json_get_strs(top, "certificate", &r->plan->certificate));
    return read_fallback(r, top);
}

/* ---- the text ---- */

static cutset_status parse(json_t **out, cs_span text, const char *what, cutset_error *err)
{
    json_error_t e;
    *out = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (*out != NULL) return CUTSET_OK;
    if (json_error_code(&e) == json_error_out_of_memory) return cs_fail_memory(err);
    return cs_fail_at(err, CUTSET_BAD, (uint64_t)(e.position > 0 ? e.position : 0),
                      "%s: not JSON: line %d, column %d: %s: name a plan.json of cutset plan", what,
                      e.line > 0 ? e.line : 1, e.column > 0 ? e.column : 1, e.text);
}

cutset_status cs_plan_parse_json(cutset_plan **out, cs_span text, const char *what,
                                 const char *folder, cutset_error *err)
{
    json_t *root;
    cutset_status status = parse(&root, text, what, err);
    if (status != CUTSET_OK) return status;
    cs_reader r = {.plan = cs_plan_new(), .folder = folder};
    if (r.plan == NULL) {
        status = cs_fail_memory(err);
    } else {
        const cs_cursor top = {.what = what, .err = err, .names = &r.plan->names, .object = root};
        status = read_plan(&r, &top); /* a root that is no object has no members */
    }
    json_decref(root);
    cs_map_fini(&r.value_of);
    if (status == CUTSET_OK)
        *out = r.plan;
    else
        cs_plan_free(r.plan);
    return status;
}

static cutset_status read_file(cutset_plan **out, const char *path, cutset_error *err)
{
    cs_file file;
    cutset_status status = cs_file_open(&file, path, err);
    if (status != CUTSET_OK) return status;
    const bool piped = strcmp(path, "-") == 0;
    char *dir = cs_path_dir(piped ? "plan.json" : path);
    char folder[PATH_MAX]; /* given a buffer, realpath does not allocate */
    if (dir == NULL)
        status = cs_fail_memory(err);
    else if (realpath(dir, folder) == NULL)
        status = cs_fail_errno(err, "cannot find %s", dir);
    else
        status = cs_plan_parse_json(out, (cs_span){(const char *)file.at, file.len},
                                    piped ? "standard input" : path, folder, err);
    cs_free(dir);
    cs_file_close(&file);
    return status;
}

cutset_status cs_plan_read_json(cutset_plan **out, const char *path, cutset_error *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return read_file(out, path, err);
    char *inside = cs_path_join(path, "plan.json");
    if (inside == NULL) return cs_fail_memory(err);
    const cutset_status status = read_file(out, inside, err);
    cs_free(inside);
    return status;
}
