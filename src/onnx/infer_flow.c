/* Operators that own graphs: If, Loop, Scan, SequenceMap, calls of model-local functions.
 *
 * If joins its branches; where the condition is known, one counts. Loop and Scan start with the
 * types of the initial values; what the body returns for them is joined in until nothing changes
 * (at most PASSES times, then only the element type is kept). A body that was inferred RUNS_MAX
 * times, because it stands in other loops, starts with the element types at once: the number of
 * passes is linear in the nesting depth.
 */
#include "onnx/infer_ops.h"

#define PASSES 3
#define RUNS_MAX 16

/* The node's outputs are those of body b: types and elements. */
static void put_results(cs_op *op, uint32_t b)
{
    cs_list list;
    for (uint32_t i = 0; i < op->node->n_out && !cs_op_failed(op); i++) {
        cs_op_put_type(op, i, cs_op_body_out(op, b, i));
        cs_op_body_list(op, b, i, &list);
        cs_op_put_list(op, i, &list);
    }
}

/* ---- If ---- */

static void infer_if(cs_op *op)
{
    uint32_t then = cs_op_find_body(op, "then_branch"), other = cs_op_find_body(op, "else_branch");
    if (then != CS_NONE) cs_op_body(op, then, NULL, 0, false);
    if (other != CS_NONE) cs_op_body(op, other, NULL, 0, false);
    if (then == CS_NONE || other == CS_NONE) return;
    int64_t taken;
    cs_list condition;
    cs_op_list(op, 0, &condition);
    if (cs_list_number(&condition, &taken)) {
        put_results(op, taken ? then : other);
        return;
    }
    for (uint32_t i = 0; i < op->node->n_out; i++)
        cs_op_put_type(
            op, i,
            cs_type_join(op->pool, cs_op_body_out(op, then, i), cs_op_body_out(op, other, i)));
}

/* ---- Loop, Scan ---- */

/* Keeps the rank and drops the sizes, or with `rank` false drops both. */
static cs_type loosen(cs_op *op, cs_type t, bool rank)
{
    cs_type_info info = *cs_type_get(op->pool, t);
    if (info.kind == CS_SEQ || info.kind == CS_OPT) {
        cs_type inner = loosen(op, info.inner, rank);
        if (inner == CS_NONE) return CS_NONE;
        return info.kind == CS_SEQ ? cs_type_seq(op->pool, inner) : cs_type_opt(op->pool, inner);
    }
    if (info.kind != CS_TENSOR || info.rank < 0) return t;
    if (!rank && info.elem == CS_ELEM_NONE) return 0;
    return cs_type_tensor(op->pool, info.elem, rank ? info.rank : CS_RANK_UNKNOWN, NULL);
}

static void loosen_all(cs_op *op, cs_type *t, uint32_t n, bool rank)
{
    for (uint32_t i = 0; i < n; i++) {
        cs_type loose = loosen(op, t[i], rank);
        if (loose == CS_NONE)
            cs_op_no_memory(op);
        else
            t[i] = loose;
    }
}

/* Infers body `b` with the types `in` until the n carried ones (in[first], ...) hold for every
 * iteration; the body returns them as its outputs from `out` on. */
static void settle_carried(cs_op *op, uint32_t b, cs_type *in, uint32_t n_in, uint32_t first,
                           uint32_t n, uint32_t out)
{
    if (cs_op_body_passes(op, b) > RUNS_MAX) loosen_all(op, in + first, n, false);
    for (int pass = 0; pass <= PASSES; pass++) {
        bool stable = true;
        cs_op_body(op, b, in, n_in, false);
        for (uint32_t i = 0; i < n; i++) {
            cs_type all = cs_type_join(op->pool, in[first + i], cs_op_body_out(op, b, out + i));
            if (all == CS_NONE) {
                cs_op_no_memory(op);
                return;
            }
            stable = stable && all == in[first + i];
            in[first + i] = all;
        }
        if (stable || cs_op_failed(op)) return;
        if (pass >= PASSES - 2) loosen_all(op, in + first, n, pass == PASSES - 2);
    }
}

/* A dim of size d before the others, or at `axis`. */
static cs_type stacked(cs_op *op, cs_type t, int64_t axis, cs_dim d)
{
    cs_type_info info = *cs_type_get(op->pool, t);
    cs_shape s;
    if (info.kind != CS_TENSOR) return 0;
    cs_shape_rank(&s, info.rank < 0 ? -1 : (int64_t)info.rank + 1);
    int at = cs_axis(axis, s.rank);
    for (int i = 0, k = 0; at >= 0 && i < s.rank; i++)
        s.dim[i] = i == at ? d : cs_type_dims(op->pool, t)[k++];
    return cs_type_tensor(op->pool, info.elem, s.rank, s.dim);
}

/* The same without the dim at `axis`, which goes to *d. */
static cs_type unstacked(cs_op *op, cs_type t, int64_t axis, cs_dim *d)
{
    cs_type_info info = *cs_type_get(op->pool, t);
    cs_shape s;
    *d = CS_DIM_UNKNOWN;
    if (info.kind != CS_TENSOR) return 0;
    int at = info.rank <= CS_SHAPE_MAX ? cs_axis(axis, info.rank) : -1;
    cs_shape_rank(&s, at < 0 ? -1 : (int64_t)info.rank - 1);
    for (int i = 0, k = 0; at >= 0 && i < info.rank; i++) {
        if (i == at)
            *d = cs_type_dims(op->pool, t)[i];
        else
            s.dim[k++] = cs_type_dims(op->pool, t)[i];
    }
    return cs_type_tensor(op->pool, info.elem, s.rank, s.dim);
}

/* Runtimes also pass the iteration and the condition as vectors of one, to a body that says so. */
static cs_type scalar_unless_declared(cs_op *op, uint32_t b, uint32_t in, cs_elem elem)
{
    const cs_type_info *info = cs_type_get(op->pool, cs_op_body_declared(op, b, in));
    bool ranked = info->kind == CS_TENSOR && info->rank >= 0;
    return cs_type_tensor(op->pool, elem, ranked ? CS_RANK_UNKNOWN : 0, NULL);
}

/* Loop: inputs M, cond, carried; body inputs iteration, cond, carried; body outputs cond, carried,
 * then one slice of each scan output. */
static void infer_loop(cs_op *op)
{
    uint32_t b = cs_op_find_body(op, "body");
    if (b == CS_NONE) return;
    uint32_t n_in = cs_op_body_inputs(op, b), n_out = cs_op_body_outputs(op, b);
    uint32_t n = op->node->n_arg > 2 ? op->node->n_arg - 2 : 0;
    n = n_in >= 2 && n > n_in - 2 ? n_in - 2 : n;
    n = n_out >= 1 && n > n_out - 1 ? n_out - 1 : n;
    cs_type *in = cs_op_room(op, (size_t)n + 2);
    if (!in || n_out < 1) return;
    in[0] = scalar_unless_declared(op, b, 0, CS_I64);
    in[1] = scalar_unless_declared(op, b, 1, CS_BOOL);
    if (in[0] == CS_NONE || in[1] == CS_NONE) {
        cs_op_no_memory(op);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        in[2 + i] = cs_op_type(op, 2 + i);
    settle_carried(op, b, in, n + 2, 2, n, 1);
    for (uint32_t i = 0; i < op->node->n_out && !cs_op_failed(op); i++) {
        cs_type t =
            i < n ? in[2 + i] : stacked(op, cs_op_body_out(op, b, 1 + i), 0, CS_DIM_UNKNOWN);
        cs_op_put_type(op, i, t);
    }
}

/* The i-th of a list of axes; 0 where there is no list. */
static bool axis_at(const cs_op *op, const char *name, uint32_t i, int64_t *axis)
{
    const int64_t *x;
    int n = cs_op_ints(op, name, &x);
    *axis = n > 0 && i < (uint32_t)n ? x[i] : 0;
    return n == CS_ABSENT || (n > 0 && i < (uint32_t)n);
}

/* Scan: inputs states, then sequences; body inputs states, then one slice of each sequence; outputs
 * states, then stacked slices. Scan-8 has the sequence lengths first and a batch dim everywhere,
 * which the body does not see. */
static void infer_scan(cs_op *op)
{
    int64_t n_scan;
    uint32_t b = cs_op_find_body(op, "body"), skip = op->opset < 9 ? 1 : 0;
    if (b == CS_NONE || !cs_op_int(op, "num_scan_inputs", -1, &n_scan)) return;
    int64_t n_args = (int64_t)op->node->n_arg - skip;
    if (n_scan < 1 || n_scan > n_args) return;
    uint32_t n = (uint32_t)(n_args - n_scan), n_in = (uint32_t)n_args;
    cs_dim length = CS_DIM_UNKNOWN, batch = CS_DIM_UNKNOWN, d;
    cs_type *in = cs_op_room(op, n_in);
    for (uint32_t i = 0; in && i < n_in; i++) {
        int64_t axis = 0;
        in[i] = cs_op_type(op, skip + i);
        if (skip) {
            in[i] = unstacked(op, in[i], 0, &d);
            batch = cs_dim_same(batch, d);
        }
        if (i >= n && in[i] != CS_NONE) {
            bool told = skip || axis_at(op, "scan_input_axes", i - n, &axis);
            in[i] = told ? unstacked(op, in[i], axis, &d) : 0;
            length = told ? cs_dim_same(length, d) : length;
        }
        if (in[i] == CS_NONE) {
            cs_op_no_memory(op);
            return;
        }
    }
    if (!in) return;
    settle_carried(op, b, in, n_in, 0, n, 0);
    for (uint32_t i = 0; i < op->node->n_out && !cs_op_failed(op); i++) {
        int64_t axis = 0;
        cs_type t = i < n ? in[i] : cs_op_body_out(op, b, i);
        if (i >= n && (skip || axis_at(op, "scan_output_axes", i - n, &axis)))
            t = stacked(op, t, axis, length);
        else if (i >= n)
            t = 0;
        if (skip && t != CS_NONE) t = stacked(op, t, 0, batch);
        cs_op_put_type(op, i, t);
    }
}

/* ---- SequenceMap ---- */

static void infer_map(cs_op *op)
{
    uint32_t b = cs_op_find_body(op, "body");
    cs_type *in = b == CS_NONE ? NULL : cs_op_room(op, op->node->n_arg);
    if (!in) return;
    for (uint32_t i = 0; i < op->node->n_arg; i++) {
        in[i] = cs_op_type(op, i);
        const cs_type_info *info = cs_type_get(op->pool, in[i]);
        if (info->kind == CS_SEQ)
            in[i] = info->inner;
        else if (i == 0)
            in[i] = 0;
    }
    cs_op_body(op, b, in, op->node->n_arg, false);
    for (uint32_t i = 0; i < op->node->n_out && !cs_op_failed(op); i++) {
        cs_type t = cs_op_body_out(op, b, i);
        if (cs_type_get(op->pool, t)->kind == CS_TENSOR)
            cs_op_put_type(op, i, cs_type_seq(op->pool, t));
    }
}

/* ---- calls ---- */

void cs_infer_call(cs_op *op)
{
    uint32_t b = cs_op_find_body(op, NULL);
    cs_type *in = b == CS_NONE ? NULL : cs_op_room(op, op->node->n_arg);
    if (!in) return;
    for (uint32_t i = 0; i < op->node->n_arg; i++)
        in[i] = cs_op_type(op, i);
    cs_op_body(op, b, in, op->node->n_arg, true);
    put_results(op, b);
}

/* clang-format off */
#define ONNX(name, f) {CS_DOMAIN_ONNX, name, f, 0, NULL, NULL}
static const cs_entry table[] = {
    ONNX("If", infer_if),
    ONNX("Loop", infer_loop),
    ONNX("Scan", infer_scan),
    ONNX("SequenceMap", infer_map),
};
/* clang-format on */
const cs_family cs_infer_flow = CS_FAMILY(table);
