/* NumPy's .npy files: one array each. Reading only.
 *
 * Versions 1.0, 2.0 and 3.0; bool, integers, floats, complex numbers, text of fixed width (U and S)
 * and raw bytes (V, as which NumPy writes the types that it does not know, bfloat16 among them);
 * little-endian, C order. What is not read is refused with what to do in NumPy.
 */
#ifndef CS_ENGINE_NPY_H
#define CS_ENGINE_NPY_H

#include "base/file.h"
#include "graph/type.h"

typedef struct cs_npy {
    cs_file file; /* mapped; holds the data */
    char kind;    /* NumPy's: b i u f c U S V */
    size_t item;  /* bytes an element */
    size_t rank;
    int64_t *dims; /* heap */
    size_t count;  /* elements */
    const unsigned char *data;
} cs_npy;

/* CUTSET_SYSTEM: the file cannot be read; CUTSET_BAD: it is malformed or not of the above. */
cutset_status cs_npy_open(cs_npy *out, const char *path, cutset_error *err);
/* The same from memory, which must live as long as *out; `what` names it in messages. */
cutset_status cs_npy_parse(cs_npy *out, const void *bytes, size_t len, const char *what,
                           cutset_error *err);
void cs_npy_close(cs_npy *npy); /* a zeroed one is taken */
/* The element type; CS_STR for U and S, CS_ELEM_NONE for V. */
cs_elem cs_npy_elem(const cs_npy *npy);
/* Element i of U or S as UTF-8, without the zeros that fill it up; heap, terminated. NULL: no
 * memory. What is no Unicode character becomes U+FFFD. */
char *cs_npy_text(const cs_npy *npy, size_t i);

#endif
