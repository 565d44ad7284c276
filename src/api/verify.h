/* What the files of verify share. Private to api/verify*.c.
 *
 * Steps: open plan, model and parts; read what the user says of the inputs; run the whole model
 * once per run, making inputs by seed (verify_inputs.c); run the parts in order, each loaded once
 * (verify_chain.c); compare the outputs (verify_compare.c); where they differ, find the first part
 * that does (verify_locate.c); report (verify_report.c).
 */
#ifndef CS_API_VERIFY_H
#define CS_API_VERIFY_H

#include "api/model.h"
#include "engine/npy.h"
#include "engine/ort.h"

/* ---- marks: what a value depends on ---- */
enum {
    CS_MARK_RANDOM = 1, /* a random number */
    CS_MARK_F16 = 2,    /* a boundary of f16 */
    CS_MARK_BF16 = 4    /* a boundary of bf16 */
};

/* ---- comparing ---- */
/* The later, the worse. */
typedef enum cs_verdict {
    CS_EQUAL,      /* the same type, shape and bits */
    CS_PASSED,     /* a weight or a default passed through: no part makes it */
    CS_RANDOM,     /* depends on random numbers: only type and shape are compared */
    CS_UNCOMPARED, /* of a kind that cannot be compared here */
    CS_CLOSE,      /* within the tolerance of f16 or bf16 */
    CS_DIFFERENT
} cs_verdict;

typedef struct cs_difference {
    cs_verdict verdict;
    unsigned marks;            /* of the value */
    char place[64];            /* within a sequence or a map: "item 3: "; else "" */
    char why[200];             /* DIFFERENT without numbers, UNCOMPARED: in words */
    bool numbers;              /* the figures below are there */
    uint64_t index;            /* of the first element that differs, in row order */
    uint64_t count, of;        /* elements that differ, elements */
    char whole[72], parts[72]; /* that element */
    double max_abs, max_rel; /* over finite elements; max_rel: to the larger of the two numbers and,
                                where a tolerance holds, the tensor's root mean square */
    uint64_t nan_whole, nan_parts;
} cs_difference;

/* Compares the whole model's value with that of the parts; `marks` of the value. `dims`, `rank`:
 * its dims as far as the model tells, or NULL: of a random value only those must agree, for the
 * others may be random too. */
cutset_status cs_verify_compare(const cs_ort *ort, const OrtValue *whole, const OrtValue *parts,
                                unsigned marks, const cs_dim *dims, size_t rank, cs_difference *out,
                                cutset_error *err);
/* One sentence about a difference: "element 3 is 1.0 in the whole model and 2.0 in the parts". */
void cs_verify_tell(const cs_difference *d, char *out, size_t room);
double cs_verify_tolerance(unsigned marks); /* 0: bit for bit */
/* The type and shape of a value as text: "f32[1,3]"; at most `room` bytes. */
cutset_status cs_verify_spell(const cs_ort *ort, const OrtValue *value, char *out, size_t room,
                              cutset_error *err);

/* ---- inputs ---- */
typedef struct cs_feed {
    char *name;         /* heap */
    uint32_t value;     /* in the graph */
    bool ranged, whole; /* --range was given; both ends are whole numbers */
    double low, high;
    int64_t low_int, high_int;
    const char *path; /* --input: of the file, which is `npy` */
    cs_npy npy;
    char shape[160]; /* type and shape in the first run, for the report */
    char source[96]; /* "uniform in -1..1", for the report */
} cs_feed;

typedef struct cs_symbol {
    cs_span name;  /* as in dim_param */
    int64_t value; /* given by a file; 0: not given */
} cs_symbol;

/* How the inputs of a run are made where the user does not say: tried in order. */
typedef struct cs_attempt {
    int64_t dim;       /* size of unknown dims and of the first symbol */
    int64_t step;      /* each further symbol is larger by this, up to four times */
    int64_t low, high; /* integers */
} cs_attempt;
extern const cs_attempt cs_attempts[];
extern const size_t cs_n_attempts;

typedef CS_VEC(cs_feed) cs_feeds;
typedef CS_VEC(cs_symbol) cs_symbols;

typedef struct cs_inputs {
    cs_graph *graph;
    cs_feeds feeds; /* inputs without a default, in the model's order */
    cs_symbols symbols;
    bool any_int, any_dim; /* something depends on the attempt's integers, dims */
} cs_inputs;

/* Reads --range and --input. CUTSET_USAGE: no such input, or one that does not fit. */
cutset_status cs_inputs_init(cs_inputs *in, cs_graph *graph, const cutset_verify_opts *opts,
                             cutset_error *err);
void cs_inputs_fini(cs_inputs *in);
/* Would attempt `k` make other inputs than all earlier ones? */
bool cs_inputs_differ(const cs_inputs *in, size_t k);
/* Makes the values of all feeds: the same for the same seed and attempt, on every machine. On
 * failure none is left. */
cutset_status cs_inputs_make(cs_inputs *in, const cs_ort *ort, uint64_t seed, size_t attempt,
                             OrtValue **values, cutset_error *err);
/* The size that a dim has in an attempt. */
int64_t cs_inputs_dim(cs_inputs *in, cs_dim dim, const cs_attempt *attempt);
/* Makes one value of a type (verify_values.c). *state: of the random numbers. */
cutset_status cs_values_make(cs_inputs *in, const cs_ort *ort, cs_feed *feed, cs_type type,
                             const cs_attempt *attempt, uint64_t *state, OrtValue **out,
                             cutset_error *err);
/* The value of --input. */
cutset_status cs_values_load(const cs_ort *ort, const cs_feed *feed, cs_elem elem, OrtValue **out,
                             cutset_error *err);
/* Range of the integers of a feed. */
void cs_values_range(const cs_feed *feed, cs_elem elem, const cs_attempt *attempt, int64_t *low,
                     int64_t *high);

/* ---- the whole ---- */
typedef struct cs_run {
    uint64_t seed;
    size_t attempt;
    OrtValue **inputs; /* by feed */
    OrtValue **whole;  /* by output of the plan: what the whole model gave; NULL: not among them */
    OrtValue **store;  /* by name (verify_chain.c): what the chain has made so far */
} cs_run;

typedef struct cs_result {
    cs_difference worst;
    uint64_t seed; /* of the run it was in */
    size_t run;
    char type[160]; /* as it was in the first run */
} cs_result;

typedef struct cs_verify {
    const cutset_verify_opts *opts;
    const char *dir;
    cutset_plan *plan;
    cutset_model *model;
    cs_ort *ort;
    uint8_t *marks; /* by value of the graph */
    cs_inputs inputs;
    size_t n_runs;
    cs_run *runs;
    cs_result *results; /* by output of the plan */
    cs_strtab names;    /* of values that go from part to part */
    uint32_t *last;     /* by name: the last part that reads it; CS_NONE: an output, kept */
    uint32_t *feed_of;  /* by name: index into inputs.feeds, or CS_NONE */
    char refused[900];  /* what the runtime said of the whole model; "" = it took it */
    /* where the chain first differs */
    int32_t bad_part; /* -1: not known */
    bool located;     /* the part is known to be the first */
    char bad_value[200];
    cs_difference bad;
    char not_located[300]; /* why the first part is not known */
} cs_verify;

/* Which outputs and boundaries depend on random numbers and on f16 boundaries. */
cutset_status cs_verify_mark(cs_verify *v, cutset_error *err);
/* The graph's value of that name, CS_NONE. */
uint32_t cs_verify_value(const cs_verify *v, cs_span name);
/* Compares a value of run `r` by its name. */
cutset_status cs_verify_compare_named(const cs_verify *v, cs_span name, const OrtValue *whole,
                                      const OrtValue *parts, cs_difference *out, cutset_error *err);

/* Runs the parts in order, each opened once and run for all runs from `first` to `last`; what is
 * needed no longer is freed. `made` is called with each value that a part made, before it is
 * stored; it may stop the chain with *stop. */
typedef cutset_status (*cs_made_fn)(cs_verify *v, void *payload, const cs_part *part, cs_run *run,
                                    cs_span name, const OrtValue *value, bool *stop,
                                    cutset_error *err);
cutset_status cs_chain_init(cs_verify *v, cutset_error *err);
cutset_status cs_chain_run(cs_verify *v, size_t first, size_t last, cs_made_fn made, void *payload,
                           cutset_error *err);
/* What the chain holds for a name, or NULL. */
const OrtValue *cs_chain_value(const cs_verify *v, const cs_run *run, cs_span name);
void cs_chain_drop(cs_verify *v, cs_run *run);
/* A part that makes nothing for others (dead nodes) has nothing to compare: it is not run. */
static inline bool cs_part_is_dead(const cs_part *part) { return part->n_output == 0; }
char *cs_verify_part_path(const cs_verify *v, const cs_part *part); /* heap; NULL: no memory */

/* Finds the part and value where run `r` first differs; sets v->bad_*. */
cutset_status cs_verify_locate(cs_verify *v, size_t r, cutset_error *err);

/* Writes the report. */
cutset_status cs_verify_report(const cs_verify *v, cutset_write_fn write, void *payload,
                               cutset_error *err);

#endif
