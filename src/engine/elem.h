/* Elements of tensors as numbers: reading, writing and printing single ones.
 *
 * Data is little-endian as ONNX's raw_data and ONNX Runtime's memory have it; types below a byte
 * are packed, the first element in the low bits.
 */
#ifndef CS_ENGINE_ELEM_H
#define CS_ENGINE_ELEM_H

#include "graph/type.h"

typedef enum cs_elem_class {
    CS_ELEM_OTHER, /* strings, and types that cannot be taken as numbers here */
    CS_ELEM_FLOAT,
    CS_ELEM_COMPLEX,
    CS_ELEM_INT, /* signed and unsigned; bool is apart */
    CS_ELEM_BOOL
} cs_elem_class;

cs_elem_class cs_elem_classify(cs_elem e);
/* The range of an integer type, as far as int64_t goes (u64: to INT64_MAX). */
int64_t cs_elem_least(cs_elem e);
int64_t cs_elem_most(cs_elem e);

/* Element i as the nearest double; of a complex number the part named (0 real, 1 imaginary). */
double cs_elem_get(cs_elem e, const void *data, size_t i, int part);
/* Bits of element i, at most 64 (complex128: the half named by `part`). */
uint64_t cs_elem_bits_at(cs_elem e, const void *data, size_t i, int part);
/* Rounded to nearest, ties to even, kept within the type's finite range. */
void cs_elem_put(cs_elem e, void *data, size_t i, double x, int part);
void cs_elem_put_int(cs_elem e, void *data, size_t i, int64_t x); /* integers, bool */
/* Shortest text that tells it; at most 72 bytes. */
void cs_elem_print(cs_elem e, const void *data, size_t i, char *out);

#endif
