/* What a file is that is certainly no ONNX protobuf: told by its first bytes, refused with a cure.
 *
 * Serialised ModelProtos nearly always begin with 0x08 (ir_version) and always with the tag of
 * one of their fields, so none of these marks can be one: their first bytes are tags of fields that
 * do not exist, or of wire types that their fields do not have.
 */
#include "onnx/read.h"

#include <string.h>

typedef struct mark {
    size_t offset, len;
    const char *bytes, *message;
} mark;

#define MARK(offset, bytes, message)                                                               \
    {                                                                                              \
        (offset), sizeof(bytes) - 1, (bytes), (message)                                            \
    }
static const mark marks[] = {
    MARK(4, "ORTM",
         "an ONNX Runtime flatbuffer (.ort), which cannot be cut; give the ONNX model it "
         "was made from"),
    MARK(4, "TFL3", "a TensorFlow Lite model, not ONNX; convert it first (tf2onnx --tflite)"),
    MARK(0, "\x1f\x8b", "gzip data; unpack it first (gunzip)"),
    MARK(0,
         "\xfd"
         "7zXZ",
         "xz data; unpack it first (unxz)"),
    MARK(0, "\x28\xb5\x2f\xfd", "zstd data; unpack it first (unzstd)"),
    MARK(0, "BZh", "bzip2 data; unpack it first (bunzip2)"),
    MARK(0, "PK\x03\x04",
         "a zip archive: a PyTorch or TorchScript file must be exported first "
         "(torch.onnx.export), any other unpacked"),
    MARK(0, "PK\x05\x06", "an empty zip archive, not ONNX; give the ONNX model"),
    MARK(0, "\x89HDF", "an HDF5 file (Keras?), not ONNX; convert it first (tf2onnx)"),
    MARK(0,
         "\x7f"
         "ELF",
         "a program or library, not ONNX; give the ONNX model"),
    MARK(0, "<?xml", "XML (an OpenVINO model?), not ONNX; give the ONNX model it was made from"),
    MARK(0, "\x93NUMPY", "a NumPy array, not ONNX; give the ONNX model"),
    MARK(0, "version https://git-lfs",
         "a Git LFS pointer, not the model; fetch it first (git lfs "
         "pull)"),
};

static bool starts(cs_span text, const char *with)
{
    const size_t len = strlen(with);
    return text.len >= len && memcmp(text.at, with, len) == 0;
}

/* Behind blanks and comment lines. */
static cs_span skip_blanks(cs_span text, char comment)
{
    size_t i = 0;
    while (i < text.len) {
        const char c = text.at[i];
        if (c == comment && comment != '\0') {
            while (i < text.len && text.at[i] != '\n')
                i++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            i++;
        } else {
            break;
        }
    }
    return (cs_span){text.at + i, text.len - i};
}

/* A field name of ModelProto with what textproto writes after it. */
static bool is_textproto(cs_span text)
{
    static const char *const names[] = {
        "ir_version", "producer_name", "producer_version", "domain",         "model_version",
        "doc_string", "graph",         "opset_import",     "metadata_props", "functions"};
    text = skip_blanks(text, '#');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!starts(text, names[i])) continue;
        const size_t len = strlen(names[i]);
        const cs_span rest = skip_blanks((cs_span){text.at + len, text.len - len}, '\0');
        if (rest.len > 0 && (rest.at[0] == ':' || rest.at[0] == '{')) return true;
    }
    return false;
}

static bool is_safetensors(cs_span text)
{
    if (text.len < 9 || text.at[8] != '{') return false;
    uint64_t header = 0;
    for (size_t i = 8; i-- > 0;)
        header = header << 8 | (unsigned char)text.at[i];
    return header <= text.len - 8;
}

/* Protocol 2 to 5 of Python's pickle; as a protobuf tag: a field number of 32 or more. */
static bool is_pickle(cs_span text)
{
    return text.len >= 3 && (unsigned char)text.at[0] == 0x80 && text.at[1] >= 2 && text.at[1] <= 5;
}

static const char *text_format(cs_span text)
{
    const cs_span body = skip_blanks(text, '\0');
    if (is_textproto(text))
        return "ONNX as protobuf text; convert it to binary first (onnx.load(f, "
               "format='textproto'), "
               "onnx.save)";
    if (body.len > 0 && body.at[0] == '{')
        return "JSON; ONNX as JSON must be converted first (onnx.load(f, format='json'), "
               "onnx.save)";
    if (body.len > 0 && body.at[0] == '<')
        return "ONNX as text (onnxtxt) or XML; convert it first (onnx.parser.parse_model, "
               "onnx.save)";
    return NULL;
}

cutset_status cs_onnx_probe(const cs_file *file, cutset_error *err)
{
    const cs_span text = {(const char *)file->at, file->len};
    if (text.len == 0)
        return cs_fail_at(err, CUTSET_BAD, 0, "the file is empty: export or copy the model again");
    const char *what = NULL;
    for (size_t i = 0; i < sizeof marks / sizeof *marks && what == NULL; i++)
        if (text.len >= marks[i].offset + marks[i].len &&
            memcmp(text.at + marks[i].offset, marks[i].bytes, marks[i].len) == 0)
            what = marks[i].message;
    if (what == NULL && is_safetensors(text))
        what = "a safetensors file: weights without a graph; give the ONNX model";
    if (what == NULL && is_pickle(text))
        what = "a Python pickle (PyTorch checkpoint?); export it first (torch.onnx.export)";
    if (what == NULL) what = text_format(text);
    return what == NULL ? CUTSET_OK : cs_fail_at(err, CUTSET_BAD, 0, "this is %s", what);
}
