/* Reading ONNX from hostile bytes: refused with a message, or a graph that the verifier accepts. */
#include "onnx/onnx.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_file file;
    cs_onnx *onnx;
    cs_graph *graph;
    cutset_error err = {0};
    cs_file_borrow(&file, data, size);
    if (cs_onnx_open(&onnx, &graph, &file, NULL, NULL, NULL, &err) != CUTSET_OK) {
        if (err.message[0] == '\0' || err.offset > (int64_t)size) abort();
        return 0;
    }
    if (cs_graph_verify(graph, &err) != CUTSET_OK) abort();
    const size_t values = graph->values.len;
    if (onnx->nodes.len != graph->nodes.len || onnx->positions.len != graph->nodes.len ||
        onnx->value_infos.len != values || onnx->initializer.len > values ||
        onnx->weights.len != graph->storages.len)
        abort();
    cs_onnx_free(onnx);
    cs_graph_free(graph);
    return 0;
}
