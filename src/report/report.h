/* Plans for people. */
#ifndef CS_REPORT_REPORT_H
#define CS_REPORT_REPORT_H

#include "onnx/onnx.h"
#include "plan/plan.h"

/* The summary of a plan for a terminal: plain text, at most 80 columns, one screen. What would
 * steer the terminal in names from the model is written as \xNN. Failures of `out` stick to it. */
cutset_status cs_report_summary(const cutset_plan *plan, cs_out *out, cutset_error *err);

/* What is in a model: operators, inputs and outputs, weights, bodies, what is unknown. `onnx` may be
 * NULL. As a table of at most 80 columns, or as JSON. */
cutset_status cs_report_model(const cs_graph *graph, const cs_onnx *onnx, bool json, cs_out *out,
                              cutset_error *err);

#endif
