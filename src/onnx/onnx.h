/* ONNX files: protobuf wire format in (zero copy), and where everything stands in the file.
 *
 * Reading maps the file and notes byte ranges; weights over CS_CONST_MAX bytes are never touched.
 * The graph holds what planning needs; this record holds what writing parts needs: the bytes of
 * each node, tensor, value_info and function, to be copied as they are, unknown fields included.
 * Nothing here outlives the cs_onnx. Hostile input: every length is checked before use, nesting is
 * bounded (CS_WIRE_DEPTH), no recursion over node chains.
 */
#ifndef CS_ONNX_ONNX_H
#define CS_ONNX_ONNX_H

#include "base/file.h"
#include "graph/graph.h"

#define CS_WIRE_DEPTH 200 /* nested messages */

/* Where the bytes of a weight are. */
typedef struct cs_weight {
    cs_span proto; /* the TensorProto (or SparseTensorProto), or the NodeProto of a Constant */
    bool constant; /* a Constant node: carried as that node */
    bool sparse;
    uint32_t file;   /* CS_ONNX_INLINE: in the model; else index into files */
    uint64_t offset; /* of the data within that file (inline: within the model); */
    uint64_t length; /* bytes there; 0 with `raw` false: typed fields, only to be copied as proto */
    bool raw;        /* offset and length name the packed little-endian data as raw_data has it */
    int32_t position; /* Constant: position among all NodeProtos of its graph, for merge */
} cs_weight;
#define CS_ONNX_INLINE UINT32_MAX

/* An external data file named by the model. */
typedef struct cs_data_file {
    cs_str location; /* as written in the model, relative to the model's folder */
    char *path;      /* heap; joined with that folder */
    uint64_t size;
    bool link; /* a symbolic link, or reached through one below the model's folder */
} cs_data_file;

typedef struct cs_function {
    cs_str domain, name, overload;
    cs_span proto;
} cs_function;

typedef struct cs_onnx {
    cs_file file;
    const char *path;   /* heap copy; NULL from memory */
    const char *folder; /* heap; what external locations are relative to; NULL: none */
    cs_pool *pool;      /* the graph's */
    int64_t ir_version;
    cs_span graph; /* GraphProto bytes */
    CS_VEC(cs_span)
    model_fields; /* raw fields (tag included) of ModelProto other than graph,
                                     opset_import, functions, ir_version, training_info */
    CS_VEC(cs_span)
    graph_fields;              /* raw fields of the main GraphProto other than node, initializer,
                                     sparse_initializer, input, output, value_info,
                                     quantization_annotation */
    CS_VEC(cs_span) nodes;     /* NodeProto bytes by node id of the main graph */
    CS_VEC(int32_t) positions; /* by node id: position among all NodeProtos (Constants counted) */
    CS_VEC(cs_weight) weights; /* by storage id of the outermost graph (bodies' too) */
    CS_VEC(cs_span)
    value_infos;                 /* by value id of the main graph: ValueInfoProto from input, output
                                     or value_info; empty = not declared */
    CS_VEC(cs_span) annotations; /* TensorAnnotation bytes */
    CS_VEC(cs_str) annotated;    /* their tensor names, same order */
    CS_VEC(cs_span)
    initializer; /* by value id of the main graph, up to the last that has one: its
                                     own TensorProto or SparseTensorProto or Constant NodeProto (tied
                                     values share a storage but have a proto each); empty = none */
    CS_VEC(cs_data_file) files;
    CS_VEC(cs_function) functions;
    bool has_training;
    bool has_external_attrs; /* an attribute tensor of a node that stays a node (no Constant) is
                                     in a data file: the node's bytes hold the location */
} cs_onnx;

/* The location of external data with "." and ".." resolved, so that two spellings are one file:
 * "a/./b/../w.bin" -> "a/w.bin". NULL, or why it cannot be one, with the cure: absolute, empty,
 * outside the model's folder. */
#define CS_ONNX_PATH 4096
const char *cs_onnx_normalise(cs_span location, char out[CS_ONNX_PATH]);

/* Is this (probably) an ONNX protobuf? Other known formats (textproto, JSON, onnxtxt, ORT flatbuffer,
 * gzip, zip) are refused by cs_onnx_open with their name. */
typedef struct cs_onnx_opts {
    bool follow_links;
    const cutset_progress *progress; /* may be NULL */
} cs_onnx_opts;

/* Reads `file` (taken over, also on failure). On success *graph is sealed, not inferred, with the
 * declared types set; it shares a pool that it owns, so free the cs_onnx first. */
cutset_status cs_onnx_open(cs_onnx **out, cs_graph **graph, cs_file *file, const char *path,
                           const char *folder, const cs_onnx_opts *opts, cutset_error *err);
void cs_onnx_free(cs_onnx *onnx);
/* Is that file the model, or one that holds its data? */
bool cs_onnx_reads(const cs_onnx *onnx, uint64_t dev, uint64_t ino);

/* Declares "NAME=f32[?,?]" types, input shapes and symbol sizes on the graph before inference
 * (onnx/declare.c). CUTSET_USAGE: no such value, malformed, a rank that differs from the model's. */
cutset_status cs_declare(cs_graph *graph, const cutset_open_opts *opts, cutset_error *err);

#endif
