/* What load.c and load_rules.c share: the state of reading one target file, with a sticky failure.
 * Helpers do nothing and return a harmless value once something has failed, so that callers check
 * once, at the end.
 */
#ifndef CS_TARGET_LOADER_H
#define CS_TARGET_LOADER_H

#include "target/rules.h"
#include "target/schema.h"

typedef struct cs_loader {
    const char *path;
    cs_arena *arena;
    cutset_error *err;
    cutset_status status;
    char place[300]; /* where in the file, "nodes.rules[3] (TopK): "; may be "" */
} cs_loader;

/* Keeps the first failure: "PATH: PLACE KEY: cause". */
void cs_loader_fail(cs_loader *ld, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void *cs_loader_zalloc(cs_loader *ld, size_t count, size_t size); /* NULL once failed */
const char *cs_loader_copy(cs_loader *ld, const char *text);      /* NULL stays NULL */
const char *const *cs_loader_copies(cs_loader *ld, char *const *list, size_t n);
int64_t cs_loader_whole(cs_loader *ld, const char *key, const char *text, int64_t min, int64_t max,
                        int64_t otherwise);
double cs_loader_number(cs_loader *ld, const char *key, const char *text, double otherwise);
bool cs_loader_bool(cs_loader *ld, const char *key, const char *text);
uint32_t cs_loader_types(cs_loader *ld, const char *key, char *const *list, size_t n);
/* "Op" or "domain:Op"; both spans lie in `name`. The domain of ai.onnx:Op is "". */
void cs_loader_split_op(const char *name, cs_span *domain, cs_span *op);

/* load_rules.c: nodes.rules. */
void cs_loader_rules(cs_loader *ld, const cs_yaml_nodes *yaml, cs_target_rules *rules);

#endif
