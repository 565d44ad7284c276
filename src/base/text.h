/* Spans of bytes, interned strings, numbers and sizes in text.
 *
 * Names in models are byte strings: compared bytewise, never normalised, not always UTF-8.
 */
#ifndef CS_BASE_TEXT_H
#define CS_BASE_TEXT_H

#include "base/mem.h"

typedef struct cs_span {
    const char *at; /* not terminated */
    size_t len;
} cs_span;

#define CS_SPAN(literal) ((cs_span){(literal), sizeof(literal) - 1})
cs_span cs_span_of(const char *text); /* of a terminated string; NULL gives an empty span */
bool cs_span_eq(cs_span a, cs_span b);
bool cs_span_is(cs_span a, const char *text);
int cs_span_cmp(cs_span a, cs_span b); /* bytewise, shorter first */
/* Shell-style glob over bytes: * ? [a-z] [!a] and backslash. Linear in practice (one backtrack). */
bool cs_glob(cs_span pattern, cs_span text);
/* For messages: printf("%.*s", CS_FMT(span)). */
#define CS_FMT(s) (int)((s).len > 200 ? 200 : (s).len), (s).at

/* ---- interned strings: equal bytes have equal ids; ids are dense, from 0 = "" ---- */
typedef uint32_t cs_str;
#define CS_NONE UINT32_MAX

typedef struct cs_interned {
    const char *at;
    uint32_t len, hash;
} cs_interned;

typedef struct cs_strtab {
    CS_VEC(cs_interned) text; /* by id */
    uint32_t *slot;           /* open addressing, power of two; see strtab.c */
    size_t slots;
    cs_arena copies;
} cs_strtab;

bool cs_strtab_init(cs_strtab *tab); /* false: no memory */
void cs_strtab_fini(cs_strtab *tab);
/* `keep`: the bytes outlive the table and need no copy. CS_NONE: no memory, or 2^32 bytes and more. */
cs_str cs_strtab_add(cs_strtab *tab, cs_span text, bool keep);
bool cs_strtab_room(cs_strtab *tab, size_t more); /* for so many new strings; false: no memory */
cs_str cs_strtab_find(const cs_strtab *tab, cs_span text); /* CS_NONE: not there */
/* Looks ahead: `text` is added or looked up soon. In a large table a look-up is one wait for memory;
 * several that are announced first wait together. */
void cs_strtab_expect(const cs_strtab *tab, cs_span text);
static inline cs_span cs_strtab_get(const cs_strtab *tab, cs_str s)
{
    return (cs_span){tab->text.at[s].at, tab->text.at[s].len};
}

/* ---- numbers ---- */
bool cs_parse_i64(cs_span text, int64_t *out); /* all of it, decimal, optional sign */
bool cs_parse_f64(cs_span text, double *out);
/* "512MiB" "8GB" "123": bytes. False: malformed, zero, negative, over INT64_MAX, unknown suffix. */
bool cs_parse_size(cs_span text, int64_t *out);
/* The shortest decimal that reads back to the same float (double); always with "." or "e"; or nan,
 * inf, -inf. `out` holds 32 bytes. */
void cs_format_f32(float x, char *out);
void cs_format_f64(double x, char *out);
void cs_format_size(int64_t bytes, char *out); /* "1.5 GiB", at most 16 bytes */
bool cs_utf8_valid(cs_span text);
/* Bytes of the UTF-8 character at `at`, 1 to 4, of `left` bytes; 0: not UTF-8 there, or none left. */
size_t cs_utf8_step(const char *at, size_t left);
/* Saturating arithmetic on sizes and costs: INT64_MAX means "or more". Operands are not negative. */
static inline int64_t cs_sat_add(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }
int64_t cs_sat_mul(int64_t a, int64_t b);

#endif
