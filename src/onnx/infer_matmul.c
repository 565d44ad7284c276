/* Matrix products: MatMul, Gemm and their fused and quantised forms, Einsum.
 *
 * param of an entry: the argument that holds the second matrix, CS_ELEM_ARG(the argument that gives
 * the element type) or an element type above CS_ELEM_SHIFT.
 */
#include <string.h>

#include "onnx/infer_ops.h"

static cs_elem elem_of(const cs_op *op)
{
    int param = op->entry->param;
    cs_elem e = (cs_elem)(param >> CS_ELEM_SHIFT);
    if (e == CS_ELEM_NONE) e = cs_op_elem(op, (uint32_t)(param >> 4) & 0xf);
    /* The standard's operators have one type for both operands. */
    bool both = op->entry->domain != CS_DOMAIN_MS && ((param >> 4) & 0xf) == 0;
    return e == CS_ELEM_NONE && both ? cs_op_elem(op, (uint32_t)param & 0xf) : e;
}

static void swap_last(cs_shape *s)
{
    if (s->rank < 2) return;
    cs_dim d = s->dim[s->rank - 1];
    s->dim[s->rank - 1] = s->dim[s->rank - 2];
    s->dim[s->rank - 2] = d;
}

/* Product of matrices with leading batch dims; a vector stands for one row or column. Changes a and
 * b. */
static void shape_matmul(cs_shape *a, cs_shape *b, cs_shape *out)
{
    cs_shape_unknown(out);
    if (a->rank < 1 || b->rank < 1) return;
    bool row = a->rank == 1, column = b->rank == 1;
    cs_dim m = row ? 0 : a->dim[a->rank - 2];
    cs_dim n = column ? 0 : b->dim[b->rank - 1];
    a->rank = row ? 0 : a->rank - 2;
    b->rank = column ? 0 : b->rank - 2;
    cs_shape_broadcast(a, b);
    out->rank = a->rank;
    for (int i = 0; i < a->rank; i++)
        out->dim[i] = a->dim[i];
    if (!row) cs_shape_push(out, m);
    if (!column) cs_shape_push(out, n);
}

static void infer_matmul(cs_op *op)
{
    cs_shape a, b, out;
    cs_op_shape(op, 0, &a);
    cs_op_shape(op, (uint32_t)op->entry->param & 0xf, &b);
    shape_matmul(&a, &b, &out);
    cs_op_put(op, 0, elem_of(op), &out);
}

/* An operand of FusedMatMul: `batch` moves the first dim behind the other batch dims. */
static void fused_operand(const cs_op *op, uint32_t arg, const char *trans, const char *batch,
                          cs_shape *s)
{
    bool swap, move;
    cs_op_shape(op, arg, s);
    bool told = cs_op_flag(op, trans, false, &swap);
    told = cs_op_flag(op, batch, false, &move) && told;
    if (!told || (swap && move)) {
        cs_shape_rank(s, s->rank);
    } else if (move && s->rank > 2) {
        cs_dim first = s->dim[0];
        for (int i = 0; i < s->rank - 2; i++)
            s->dim[i] = s->dim[i + 1];
        s->dim[s->rank - 2] = first;
    } else if (swap) {
        swap_last(s);
    }
}

static void infer_fused_matmul(cs_op *op)
{
    cs_shape a, b, out;
    fused_operand(op, 0, "transA", "transBatchA", &a);
    fused_operand(op, 1, "transB", "transBatchB", &b);
    shape_matmul(&a, &b, &out);
    cs_op_put(op, 0, elem_of(op), &out);
}

static void infer_gemm(cs_op *op)
{
    bool trans_a, trans_b;
    bool told_a = cs_op_flag(op, "transA", false, &trans_a);
    bool told_b = cs_op_flag(op, "transB", false, &trans_b);
    uint32_t b = (uint32_t)op->entry->param & 0xf;
    cs_shape s = {.rank = 0};
    cs_shape_push(&s, told_a ? cs_op_dim(op, 0, trans_a) : CS_DIM_UNKNOWN);
    cs_shape_push(&s, told_b ? cs_op_dim(op, b, !trans_b) : CS_DIM_UNKNOWN);
    cs_op_put(op, 0, elem_of(op), &s);
}

/* Weights packed in some way: attribute N is the size of the last dim. */
static void infer_packed_matmul(cs_op *op)
{
    int64_t n;
    cs_shape s;
    cs_op_shape(op, 0, &s);
    if (s.rank > 0)
        s.dim[s.rank - 1] = cs_op_int(op, "N", -1, &n) ? cs_dim_number(n) : CS_DIM_UNKNOWN;
    cs_op_put(op, 0, elem_of(op), &s);
}

/* QGemm: quantised only where the output's zero point is given. */
static void infer_qgemm(cs_op *op)
{
    bool trans_a, trans_b;
    bool told_a = cs_op_flag(op, "transA", false, &trans_a);
    bool told_b = cs_op_flag(op, "transB", false, &trans_b);
    cs_shape s = {.rank = 0};
    cs_shape_push(&s, told_a ? cs_op_dim(op, 0, trans_a) : CS_DIM_UNKNOWN);
    cs_shape_push(&s, told_b ? cs_op_dim(op, 3, !trans_b) : CS_DIM_UNKNOWN);
    cs_op_put(op, 0, cs_op_has(op, 8) ? cs_op_elem(op, 8) : CS_F32, &s);
}

/* ---- Einsum ---- */

typedef struct labels {
    cs_dim dim[128];
    uint32_t count[128]; /* how often in the inputs */
    cs_shape dots;       /* what "..." stands for */
    bool has_dots, odd;
} labels;

static bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* The same label: equal sizes, or 1, which is broadcast. */
static cs_dim label_dim(cs_dim a, cs_dim b)
{
    if (a == 1 || b == 1) return a == 1 ? b : a;
    return cs_dim_same(a, b);
}

/* One term of the left side, over the dims of one input. */
static void read_term(labels *l, cs_span term, const cs_shape *s)
{
    int n_labels = 0, at = 0;
    bool dots = false;
    for (size_t i = 0; i < term.len; i++)
        n_labels += is_label(term.at[i]);
    for (size_t i = 0; i < term.len; i++) {
        char c = term.at[i];
        if (is_label(c)) {
            cs_dim d = at < s->rank ? s->dim[at] : CS_DIM_UNKNOWN;
            l->dim[(int)c] = l->count[(int)c]++ ? label_dim(l->dim[(int)c], d) : d;
            at++;
        } else if (c == '.' && !dots) {
            dots = true;
            int wide = s->rank - n_labels;
            cs_shape part;
            cs_shape_rank(&part, s->rank < 0 ? -1 : wide);
            for (int k = 0; k < part.rank; k++)
                part.dim[k] = s->dim[at++];
            if (l->has_dots)
                cs_shape_broadcast(&l->dots, &part);
            else
                l->dots = part;
            l->has_dots = true;
        } else if (c != '.' && c != ' ') {
            l->odd = true;
        }
    }
    if (s->rank >= 0 && at != s->rank) l->odd = true;
}

static void push_dots(const labels *l, cs_shape *out)
{
    if (l->dots.rank < 0) cs_shape_unknown(out);
    for (int k = 0; k < l->dots.rank; k++)
        cs_shape_push(out, l->dots.dim[k]);
}

static void read_output(const labels *l, cs_span term, cs_shape *out)
{
    out->rank = 0;
    for (size_t i = 0; i < term.len; i++) {
        char c = term.at[i];
        if (is_label(c)) {
            cs_shape_push(out, l->dim[(int)c]);
        } else if (c == '.' && (i == 0 || term.at[i - 1] != '.')) {
            push_dots(l, out);
        }
    }
}

/* Without "->": the dots, then the labels that occur once, in the order of their codes. */
static void implied_output(const labels *l, cs_shape *out)
{
    out->rank = 0;
    if (l->has_dots) push_dots(l, out);
    for (int c = 0; c < 128; c++)
        if (l->count[c] == 1) cs_shape_push(out, l->dim[c]);
}

static void infer_einsum(cs_op *op)
{
    labels l = {.has_dots = false};
    cs_shape s, out;
    cs_span left = cs_op_text(op, "equation", "");
    const char *arrow = memmem(left.at, left.len, "->", 2);
    cs_span right = {"", 0};
    if (arrow) {
        right = (cs_span){arrow + 2, (size_t)(left.at + left.len - arrow) - 2};
        left.len = (size_t)(arrow - left.at);
    }
    uint32_t n = 0;
    while (n < op->node->n_arg) {
        const char *comma = left.len ? memchr(left.at, ',', left.len) : NULL;
        cs_span term = {left.at, comma ? (size_t)(comma - left.at) : left.len};
        cs_op_shape(op, n++, &s);
        read_term(&l, term, &s);
        if (!comma) break;
        left = (cs_span){comma + 1, left.len - term.len - 1};
        l.odd = l.odd || n == op->node->n_arg;
    }
    if (arrow)
        read_output(&l, right, &out);
    else
        implied_output(&l, &out);
    if (l.odd || n != op->node->n_arg || !cs_op_any(op, "equation")) cs_shape_unknown(&out);
    cs_op_put(op, 0, cs_op_elem(op, 0), &out);
}

/* ---- the table ---- */

/* clang-format off */
#define ONNX(name, f, param) {CS_DOMAIN_ONNX, name, f, param, NULL, NULL}
#define MS(name, f, param) {CS_DOMAIN_MS, name, f, param, NULL, NULL}
static const cs_entry table[] = {
    ONNX("MatMul", infer_matmul, 1),
    ONNX("MatMulInteger", infer_matmul, 1 | CS_I32 << CS_ELEM_SHIFT),
    ONNX("QLinearMatMul", infer_matmul, 3 | CS_ELEM_ARG(7)),
    ONNX("Gemm", infer_gemm, 1),
    ONNX("Einsum", infer_einsum, 0),

    MS("FusedMatMul", infer_fused_matmul, 1),
    MS("FusedMatMulActivation", infer_fused_matmul, 1),
    MS("TransposeMatMul", infer_fused_matmul, 1),
    MS("SparseToDenseMatMul", infer_fused_matmul, 1 | CS_ELEM_ARG(1)),
    MS("FusedGemm", infer_gemm, 1),
    MS("GemmFastGelu", infer_matmul, 1),
    MS("QGemm", infer_qgemm, 0),
    MS("QLinearMatMul", infer_matmul, 3 | CS_ELEM_ARG(7)),
    MS("MatMulIntegerToFloat", infer_matmul, 1 | CS_ELEM_ARG(2)),
    MS("MatMulInteger16", infer_matmul, 1 | CS_I32 << CS_ELEM_SHIFT),
    MS("DynamicQuantizeMatMul", infer_matmul, 1),
    MS("QOrderedMatMul", infer_matmul, 2),
    MS("MatMulNBits", infer_packed_matmul, 0),
    MS("MatMulBnb4", infer_packed_matmul, 0),
    MS("MatMulPacked", infer_packed_matmul, 0),
    MS("MatMulNBitsQLoRA", infer_packed_matmul, 0),
    {CS_DOMAIN_MS, "MatMulFpQ4", cs_infer_rule, 0, "0~0", NULL},
};
/* clang-format on */
const cs_family cs_infer_matrix = CS_FAMILY(table);
