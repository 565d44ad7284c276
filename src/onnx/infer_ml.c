/* The ai.onnx.ml operators. Their element types follow from which attributes are there. */
#include "onnx/infer_ops.h"

/* ---- feature operators ---- */

static void infer_array_feature_extractor(cs_op *op)
{
    cs_shape x, y;
    cs_op_shape(op, 0, &x);
    cs_op_shape(op, 1, &y);
    cs_dim picked = y.rank < 0 ? CS_DIM_UNKNOWN : cs_dim_product(y.dim, y.rank);
    if (x.rank == 1) { /* the result of a vector is one row */
        x.rank = 2;
        x.dim[0] = 1;
    }
    if (x.rank > 0) x.dim[x.rank - 1] = picked;
    cs_op_put(op, 0, cs_op_elem(op, 0), &x);
}

static void infer_cast_map(cs_op *op)
{
    cs_span to = cs_op_text(op, "cast_to", "TO_FLOAT");
    cs_elem e = cs_span_is(to, "TO_FLOAT")    ? CS_F32
                : cs_span_is(to, "TO_STRING") ? CS_STR
                : cs_span_is(to, "TO_INT64")  ? CS_I64
                                              : CS_ELEM_NONE;
    cs_shape s;
    cs_shape_rank(&s, 2);
    s.dim[0] = 1;
    cs_op_put(op, 0, e, &s);
}

static void infer_category_mapper(cs_op *op)
{
    cs_elem from = cs_op_elem(op, 0);
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_put(op, 0, from == CS_STR ? CS_I64 : from == CS_I64 ? CS_STR : CS_ELEM_NONE, &s);
}

static cs_dim count_of(const cs_op *op, const char *ints, const char *strings)
{
    const cs_attr *a = cs_node_attr(op->g, op->node, ints);
    if (!a) a = cs_node_attr(op->g, op->node, strings);
    bool list = a && (a->kind == CS_ATTR_INTS || a->kind == CS_ATTR_STRINGS);
    return list ? cs_dim_number((int64_t)a->len) : CS_DIM_UNKNOWN;
}

/* Of a map; the result has the type of its values. */
static void infer_dict_vectorizer(cs_op *op)
{
    const cs_type_info *map = cs_type_get(op->pool, cs_op_type(op, 0));
    cs_type value = map->kind == CS_MAP ? map->inner : 0;
    cs_shape s = {.rank = 2};
    s.dim[0] = 1;
    s.dim[1] = count_of(op, "int64_vocabulary", "string_vocabulary");
    cs_op_put(op, 0, cs_type_get(op->pool, value)->elem, &s);
}

static void infer_feature_vectorizer(cs_op *op)
{
    const int64_t *n;
    int len = cs_op_ints(op, "inputdimensions", &n);
    cs_shape s = {.rank = 2};
    s.dim[0] = cs_op_rank(op, 0) == 2 ? cs_op_dim(op, 0, 0) : CS_DIM_UNKNOWN;
    s.dim[1] = len == (int)op->node->n_arg ? 0 : CS_DIM_UNKNOWN;
    for (int i = 0; i < len && s.dim[1] != CS_DIM_UNKNOWN; i++)
        s.dim[1] = n[i] < 0 ? CS_DIM_UNKNOWN : cs_dim_add(s.dim[1], n[i]);
    cs_op_put(op, 0, CS_F32, &s);
}

static void infer_label_encoder(cs_op *op)
{
    static const struct {
        const char *attr;
        cs_elem elem;
    } forms[] = {{"values_strings", CS_STR}, {"values_int64s", CS_I64}, {"values_floats", CS_F32}};
    cs_elem e = CS_ELEM_NONE;
    if (op->opset < 2) {
        cs_elem from = cs_op_elem(op, 0);
        e = from == CS_STR ? CS_I64 : from == CS_I64 ? CS_STR : CS_ELEM_NONE;
    } else {
        const cs_attr *a = cs_node_attr(op->g, op->node, "values_tensor");
        if (a && a->kind == CS_ATTR_TENSOR) e = cs_type_get(op->pool, a->type)->elem;
        for (size_t i = 0; !a && i < sizeof forms / sizeof *forms && !e; i++)
            if (cs_op_any(op, forms[i].attr)) e = forms[i].elem;
    }
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_op_put(op, 0, e, &s);
}

static void infer_one_hot_encoder(cs_op *op)
{
    cs_shape s;
    cs_op_shape(op, 0, &s);
    cs_shape_push(&s, count_of(op, "cats_int64s", "cats_strings"));
    cs_op_put(op, 0, CS_F32, &s);
}

static void infer_zip_map(cs_op *op)
{
    cs_elem key = cs_op_any(op, "classlabels_strings")  ? CS_STR
                  : cs_op_any(op, "classlabels_int64s") ? CS_I64
                                                        : CS_ELEM_NONE;
    if (key == CS_ELEM_NONE) return;
    cs_type t = cs_type_tensor(op->pool, CS_F32, 0, NULL);
    if (t != CS_NONE) t = cs_type_map(op->pool, key, t);
    if (t != CS_NONE) t = cs_type_seq(op->pool, t);
    cs_op_put_type(op, 0, t);
}

/* ---- models ---- */

/* Rows of [N, F]; a vector is one row. */
static cs_dim rows(const cs_op *op)
{
    int rank = cs_op_rank(op, 0);
    return rank == 1 ? 1 : rank == 2 ? cs_op_dim(op, 0, 0) : CS_DIM_UNKNOWN;
}

/* Labels [N] and scores [N, E]. */
static void infer_classifier(cs_op *op)
{
    const char *strings = "classlabels_strings";
    const char *ints =
        cs_op_any(op, "classlabels_ints") ? "classlabels_ints" : "classlabels_int64s";
    const cs_attr *a = cs_node_attr(op->g, op->node, strings);
    bool names = a && (a->kind != CS_ATTR_STRINGS || a->len > 0);
    cs_shape labels = {.rank = 1}, scores = {.rank = 2};
    labels.dim[0] = scores.dim[0] = rows(op);
    scores.dim[1] = names ? count_of(op, strings, strings) : count_of(op, ints, ints);
    /* Binary models may score one class or two. */
    if (scores.dim[1] < 3) scores.dim[1] = CS_DIM_UNKNOWN;
    if (op->entry->param) /* SVM: one against one may give more scores than classes */
        scores.dim[1] = CS_DIM_UNKNOWN;
    cs_op_put(op, 0, names ? CS_STR : CS_I64, &labels);
    cs_op_put(op, 1, CS_F32, &scores);
}

/* [N, targets]; param 1: one target. */
static void infer_regressor(cs_op *op)
{
    int64_t n = 1;
    cs_shape s = {.rank = 2};
    bool told = op->entry->param || cs_op_int(op, op->entry->rule, 1, &n);
    s.dim[0] = rows(op);
    s.dim[1] = told ? cs_dim_number(n) : CS_DIM_UNKNOWN;
    bool same = cs_span_is(cs_span_of(op->entry->name), "TreeEnsemble");
    cs_op_put(op, 0, same ? cs_op_elem(op, 0) : CS_F32, &s);
}

/* clang-format off */
#define ML(name, f) {CS_DOMAIN_ML, name, f, 0, NULL, NULL}
#define RULE(name, rule) {CS_DOMAIN_ML, name, cs_infer_rule, 0, rule, NULL}
#define REGRESSOR(name, attr) {CS_DOMAIN_ML, name, infer_regressor, 0, attr, NULL}
static const cs_entry table[] = {
    ML("ArrayFeatureExtractor", infer_array_feature_extractor),
    ML("Binarizer", cs_infer_same),
    ML("CastMap", infer_cast_map),
    ML("CategoryMapper", infer_category_mapper),
    ML("DictVectorizer", infer_dict_vectorizer),
    ML("FeatureVectorizer", infer_feature_vectorizer),
    ML("Imputer", cs_infer_same),
    ML("LabelEncoder", infer_label_encoder),
    ML("LinearClassifier", infer_classifier),
    REGRESSOR("LinearRegressor", "targets"),
    RULE("Normalizer", "f32=0"),
    ML("OneHotEncoder", infer_one_hot_encoder),
    {CS_DOMAIN_ML, "SVMClassifier", infer_classifier, 1, NULL, NULL},
    {CS_DOMAIN_ML, "SVMRegressor", infer_regressor, 1, NULL, NULL},
    RULE("Scaler", "f32=0"),
    REGRESSOR("TreeEnsemble", "n_targets"),
    ML("TreeEnsembleClassifier", infer_classifier),
    REGRESSOR("TreeEnsembleRegressor", "n_targets"),
    ML("ZipMap", infer_zip_map),
};
/* clang-format on */
const cs_family cs_infer_ml = CS_FAMILY(table);
