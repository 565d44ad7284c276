/* The folder protocol: a split directory appears whole or not at all. */
#ifndef CS_EMIT_FOLDER_H
#define CS_EMIT_FOLDER_H

#include "onnx/onnx.h"
#include "plan/plan.h"

typedef enum cs_folder_state {
    CS_FOLDER_NEW,   /* nothing there */
    CS_FOLDER_EMPTY, /* a folder without entries */
    CS_FOLDER_SPLIT, /* an earlier split and nothing else */
    CS_FOLDER_OTHER  /* anything else: taken only where parts refer to data in it */
} cs_folder_state;

typedef struct cs_folder {
    cs_folder_state state;
    char *asked;          /* as the caller names it, for messages */
    char *dir;            /* where it is or will be */
    char *work;           /* the folder that files are written into first; NULL: not begun */
    char *in_the_way;     /* OTHER: a name in the folder that is not of an earlier split */
    bool in_place;        /* files are moved into `dir` one by one, plan.json last */
    uint32_t mode;        /* permissions of an existing folder */
    cutset_plan *earlier; /* of plan.json there, or NULL */
    cs_map listed;        /* names (in earlier->names) of the files it lists */
    uint64_t guard_dev, guard_ino; /* the source model: never replaced */
} cs_folder;

/* Looks at DIR. `source` (may be NULL) are files that must survive: a folder that holds them is
 * OTHER. CUTSET_USAGE: a file, a link to nowhere; CUTSET_SYSTEM: the parent is missing. */
cutset_status cs_folder_look(cs_folder *f, const char *dir, const cs_onnx *source,
                             cutset_error *err);
/* Can the plan's part files be written there? CUTSET_USAGE: the folder may not be taken (OTHER and
 * not `refer`), or a name is that of a file which no earlier plan there lists. Makes `work`. */
cutset_status cs_folder_begin(cs_folder *f, const cutset_plan *plan, bool refer, cutset_error *err);
/* A new file `name` ("plan.json", "weights/shared.bin"): a descriptor in *fd. */
cutset_status cs_folder_create(cs_folder *f, const char *name, int *fd, cutset_error *err);
/* Closes it. Pass the status so far: a failure is kept, and success may turn into one. */
cutset_status cs_folder_close(cs_folder *f, const char *name, int fd, cutset_status status,
                              cutset_error *err);
/* Puts all in place. After it, or on a failure: cs_folder_fini, which removes what was not kept. */
cutset_status cs_folder_keep(cs_folder *f, const cutset_plan *plan, cutset_error *err);
void cs_folder_fini(cs_folder *f);

/* May a plan name its part file so? A plain name: no '/', no leading '.', none of our own. */
bool cs_folder_may_be_part(cs_span name);

#endif
