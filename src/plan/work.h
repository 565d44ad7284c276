/* What the phases of a decision share. Private to plan/.
 *
 * A node's mask says where it may run; its target is the first of these in the order the caller
 * named them. Phases only ever move nodes to the host, break patterns or add ties, so the loop in
 * decide.c ends.
 */
#ifndef CS_PLAN_WORK_H
#define CS_PLAN_WORK_H

#include "base/bits.h"
#include "base/heap.h"
#include "base/union.h"
#include "plan/decide.h"

#define CS_HOST (-1)
#define CS_MASK_HOST (1u << 31)
#define CS_MAX_TARGETS 31

/* A set of nodes that a pattern of a target file wants in one part. */
typedef struct cs_match {
    const char *pattern;
    uint32_t first, n; /* in work->match_nodes */
    bool broken;
} cs_match;

/* The graph with what must share a part contracted. Atoms are numbered in topological order, ties
 * by their first node. Rows are compressed; edges between atoms stand once. */
typedef struct cs_atoms {
    uint32_t n;
    uint32_t *of;             /* by node */
    uint32_t *first, *node;   /* nodes by atom, in topological order */
    int32_t *target;          /* by atom */
    uint32_t *counted;        /* by atom: nodes that count for --min-nodes */
    bool *pinned;             /* by atom: holds a node that may not leave its accelerator */
    bool *exempt;             /* by atom: an engine that holds it may be small; pinned ones are */
    bool *oversized;          /* by atom: alone over a budget, kept as an engine */
    uint32_t *pred, *pred_of; /* rows: preds of a = pred_of[pred[a] .. pred[a+1]) */
    uint32_t *succ, *succ_of;
} cs_atoms;
static inline uint32_t cs_atom_size(const cs_atoms *a, uint32_t i)
{
    return a->first[i + 1] - a->first[i];
}

/* Storages by atom, and what each costs on its atom's target (without base). */
typedef struct cs_costs {
    uint32_t n_storages;
    uint32_t *row, *storage;        /* distinct storages of atom a: storage[row[a] .. row[a+1]) */
    uint32_t *user_row, *user;      /* atoms by storage */
    int64_t *host, *device;         /* by target * n_storages + storage */
    int64_t *host_cap, *device_cap; /* by target: budget - base; INT64_MAX = none; may be < 0 */
} cs_costs;

typedef struct cs_work {
    cutset_plan *plan;
    const cs_plan_source *source;
    const cs_graph *g;
    const cutset_target *const *targets;
    uint32_t n_targets;
    const cutset_plan_opts *opts;
    uint32_t n_nodes;
    bool budget; /* some engine has one */

    cs_arena arena;    /* as long as the decision is made */
    uint32_t *mask;    /* by node */
    int32_t *target;   /* by node */
    bool *pinned;      /* by node */
    cs_reason *reason; /* by node */
    bool *is_output;   /* by value: a graph output */
    uint8_t *no_cross; /* by value: must stay inside a part (its rank is unknown) */
    uint32_t *group;   /* union-find over nodes: groups the user named */
    bool grouped;      /* some group has two nodes */
    CS_VEC(cs_match) matches;
    CS_VEC(uint32_t) match_nodes;
    CS_VEC(cs_edge) ties;       /* nodes that a boundary rule keeps together */
    struct cs_shared *shared;   /* memory that something writes (values.c); NULL: none */
    CS_VEC(cs_str) group_names; /* parallel to group_heads: a node of each named group */
    CS_VEC(uint32_t) group_heads;
} cs_work;

/* What storages cost in an engine: on the host while it is built, on the device while it runs. */
typedef struct cs_need {
    int64_t host, device;
} cs_need;

/* ---- match.c: names in options ---- */
typedef CS_VEC(uint32_t) cs_ids;
/* Nodes whose ONNX name, output or (if `ops`) operator is `name`; if there is none, those whose
 * name or output the glob matches. Ascending. *some: it matched, if only nodes that are repeated and
 * so not in the graph. False: no memory. */
bool cs_match_nodes(const cs_plan_source *source, cs_span name, bool ops, cs_ids *out, bool *some);

/* ---- assign.c ---- */
/* Splits "NAME=TARGET" at the last '='; false: it is none. */
bool cs_split_pin(const char *text, cs_span *name, cs_span *target);
/* Masks, targets and reasons from marks, capability, --pin and --exclude. */
cutset_status cs_assign(cs_work *w, cutset_error *err);
/* The node that `node` follows, or CS_NONE. */
uint32_t cs_leader(const cs_graph *g, uint32_t node);
/* Moves a node to the host; keeps the first reason. */
void cs_to_host(cs_work *w, uint32_t node, cs_rule rule, cs_str why);
void cs_atom_to_host(cs_work *w, const cs_atoms *a, uint32_t atom, cs_rule rule, cs_str why);
cutset_status cs_words(cs_work *w, cs_str *out, cutset_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
cutset_status cs_plan_note(cs_work *w, cutset_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- boundary.c ---- */
/* Demotes nodes at boundaries that their target does not allow until none is left, and lists the
 * ties that keep such values inside engines. */
cutset_status cs_boundary_settle(cs_work *w, cutset_error *err);

/* ---- values.c: an engine is a function of values ---- */
cutset_status cs_values_init(cs_work *w, cutset_error *err);
void cs_values_fini(cs_work *w);
/* Sends to the host what may not be in an engine because of writes; *changed when some went. */
cutset_status cs_values_settle(cs_work *w, bool *changed, cutset_error *err);
/* Adds to work->ties what such memory keeps together. */
cutset_status cs_values_tie(cs_work *w, cutset_error *err);
/* Gives up keeping memory inside the atoms marked in `which`; false: there was none. */
bool cs_values_break(cs_work *w, const cs_atoms *a, const bool *which);

/* ---- patterns.c ---- */
cutset_status cs_patterns(cs_work *w, cutset_error *err);
/* Breaks the matches in the atoms marked in `which`; false: there was none. */
bool cs_patterns_break(cs_work *w, const cs_atoms *a, const bool *which);

/* ---- atoms.c ---- */
/* Contracts the classes of `parent` (union-find over nodes) and then strongly connected components.
 * In `arena`. */
cutset_status cs_atoms_build(cs_work *w, uint32_t *parent, cs_arena *arena, cs_atoms *out,
                             cutset_error *err);
cutset_status cs_costs_build(cs_work *w, const cs_atoms *atoms, cs_arena *arena, cs_costs *out,
                             cutset_error *err);

/* ---- groups.c ---- */
/* Bytes of the first name of "NAME,NAME,...". A comma in a name is written with a backslash before it,
 * which the glob takes for the comma itself. */
size_t cs_group_name(const char *at);
/* Groups of the text form and of --group; gives each a common target, or the host, or CUTSET_NO. */
cutset_status cs_groups(cs_work *w, cutset_error *err);
/* Atoms of groups, patterns and ties; breaks patterns that would mix targets, demotes ties that do. */
cutset_status cs_contract(cs_work *w, cs_arena *arena, cs_atoms *out, cutset_error *err);

/* ---- budget.c ---- */
/* One storage more, on target t. */
cs_need cs_need_add(const cs_costs *c, int32_t t, cs_need n, uint32_t storage);
/* An atom by itself. */
cs_need cs_need_of(const cs_costs *c, const cs_atoms *a, uint32_t atom);
bool cs_need_fits(const cs_costs *c, int32_t t, cs_need n);
static inline cs_need cs_need_sum(cs_need x, cs_need y)
{
    return (cs_need){cs_sat_add(x.host, y.host), cs_sat_add(x.device, y.device)};
}
/* Atoms that alone exceed the budget: breaks patterns, then does as --oversize says. *changed: the
 * atoms must be built again. */
cutset_status cs_oversize(cs_work *w, cs_atoms *atoms, const cs_costs *costs, bool *changed,
                          cutset_error *err);

/* ---- levels.c (theory: Theorems 1-3) ---- */
typedef struct cs_levels {
    uint32_t r;            /* most engine stretches on a path: no plan has fewer engines */
    uint32_t *lam;         /* by atom: most stretches on a path that ends here */
    uint32_t *mu;          /* ... that starts here */
    const int32_t *target; /* what they were computed for */
} cs_levels;
/* `target` by atom (may differ from atoms->target: what-if). */
bool cs_levels_of(const cs_atoms *a, const int32_t *target, cs_arena *arena, cs_levels *out);
uint32_t cs_levels_path_bound(const cs_atoms *a, const int32_t *target, uint32_t *lam);
/* Engine slots of a plan with the fewest engines and then the fewest parts (Theorem 3); one
 * accelerator only. slot: by atom, 1.., 0 = host. */
bool cs_levels_slots(const cs_atoms *a, cs_arena *arena, uint32_t *slot);
/* saved.c: which host atoms would save an engine (never more) if they alone were accelerated; one
 * accelerator only. By atom; false: no memory. */
bool cs_levels_saved(const cs_atoms *a, const cs_levels *l, cs_arena *arena, bool *saved);
/* The path behind `r` as node ids. False: no memory. */
bool cs_levels_path(const cs_work *w, const cs_atoms *a, const cs_levels *l, cs_ids *out);

/* ---- a labelling: engines in order, host atoms between them ---- */
typedef struct cs_labels {
    uint32_t engines;
    uint32_t *slot; /* by atom: engine 1..engines; 0 = host */
    uint32_t *gap;  /* by atom, host: runs after engine `gap` (0..engines); set by cs_labels_stab */
    uint32_t parts; /* set by cs_labels_stab */
} cs_labels;
/* Where a node runs, as a number that grows along the execution: 2 x gap, or 2 x engine - 1. */
static inline size_t cs_labels_place(const cs_labels *l, const cs_atoms *a, uint32_t node)
{
    const uint32_t atom = a->of[node];
    return l->slot[atom] ? (size_t)l->slot[atom] * 2 - 1 : (size_t)l->gap[atom] * 2;
}
bool cs_labels_init(cs_labels *l, const cs_atoms *a, cs_arena *arena);
void cs_labels_copy(cs_labels *to, const cs_labels *from, uint32_t n);
/* Puts the host atoms into the fewest gaps that the order allows (interval stabbing). */
bool cs_labels_stab(cs_labels *l, const cs_atoms *a, cs_arena *arena);
/* Splits each engine into its connected pieces. */
bool cs_labels_connect(cs_labels *l, const cs_atoms *a, cs_arena *arena);
/* Which engines some path leaves and enters again, and the first atom of each; both by slot. */
bool cs_labels_reentered(cs_work *w, const cs_labels *l, const cs_atoms *a, uint32_t *first,
                         bool *again);

/* ---- number.c ---- */
/* The parts of `out` from the labelling. */
cutset_status cs_number_parts(cs_work *w, const cs_atoms *a, const cs_labels *l, cs_decision *out,
                              cutset_error *err);

/* ---- pack.c: list packing ---- */
/* Fills `best` with the best of several packings (fewest engines, then parts). `lower`: stop when
 * reached. Handles any number of accelerators, with or without budgets. */
cutset_status cs_pack(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                      uint32_t lower, cs_arena *arena, cs_labels *best, cutset_error *err);

/* ---- chain.c ---- */
typedef struct cs_chain {
    uint32_t value;  /* fewest engines; 0: not looked at */
    uint32_t last;   /* the last milestone, an atom */
    uint32_t *level; /* by atom */
    uint32_t *from;  /* by atom: the milestone before, or CS_NONE */
} cs_chain;
/* `left_out`: storages of atoms that are kept over the budget. False: no memory. */
bool cs_chain_bound(const cs_atoms *a, const cs_costs *c, int32_t target, const bool *left_out,
                    cs_arena *arena, cs_chain *out);

/* ---- bounds.c (theory: 3.2) ---- */
typedef struct cs_bound {
    uint32_t value;
    cs_bound_kind kind;
    uint32_t i, j; /* window: lam >= i, mu >= j; 0, 0: from a chain of milestones */
    int32_t target;
    int dimension; /* 0 host, 1 device */
} cs_bound;
cutset_status cs_bounds(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                        cs_arena *arena, cs_bound *out, cutset_error *err);
/* The nodes that prove the bound: a path, or those whose weights make the sum; with several
 * accelerators whose bounds add up, those of one after those of another. False: no memory. */
bool cs_bounds_certificate(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                           const cs_bound *b, cs_arena *arena, cs_ids *out);

/* ---- small.c: exact, for small graphs ---- */
bool cs_small_is(const cs_atoms *a, const cs_costs *c);
/* The best plan under all options; `max_engines` 0: no limit. Marks in `demote` (by atom) what goes
 * to the host and gives slots. *found false: there is none. Requires cs_small_is. */
cutset_status cs_small_plan(const cs_work *w, const cs_atoms *a, const cs_costs *c,
                            uint32_t max_engines, cs_arena *arena, bool *demote, cs_labels *labels,
                            bool *found, cutset_error *err);

/* ---- promote.c ---- */
/* Engines are fixed: puts atoms that `target` has on the host back into one where the order allows
 * it, and into `slot`. One accelerator, no budget. False: no memory. */
bool cs_promote(const cs_atoms *a, uint32_t engines, cs_arena *arena, int32_t *target,
                uint32_t *slot);

/* ---- flow.c ---- */
/* A network of `n` vertices; the room for arcs is reserved by the caller's count. */
typedef struct cs_flow {
    uint32_t n, n_arcs, max_arcs; /* arc 2i and its reverse 2i + 1 */
    uint32_t *first;              /* by vertex: its first arc, or CS_NONE */
    uint32_t *next, *to;          /* by arc */
    int64_t *left;                /* by arc: capacity that is left */
    uint32_t *level;              /* by vertex, after cs_flow_run: CS_NONE = on the source's side */
    uint64_t steps;               /* arcs looked at */
} cs_flow;
#define CS_FLOW_INF (INT64_MAX / 4)
bool cs_flow_init(cs_flow *f, uint32_t n, uint32_t arcs, cs_arena *arena); /* false: no memory */
void cs_flow_arc(cs_flow *f, uint32_t from, uint32_t to, int64_t capacity);
/* The most that flows from vertex 0 to vertex 1; -1: more than `steps` arcs looked at, -2: no
 * memory. */
int64_t cs_flow_run(cs_flow *f, uint64_t steps, cs_arena *arena);

/* ---- limit.c: --max-engines (theory: 5.1) ---- */
/* Marks in `demote` (by atom) what goes to the host so that at most --max-engines engines are left;
 * without budgets, one accelerator. Pinned atoms alone need more: CUTSET_NO. */
cutset_status cs_limit(cs_work *w, const cs_atoms *a, const cs_levels *l, cs_arena *arena,
                       bool *demote, cutset_error *err);
/* CUTSET_NO: no plan has so few engines, since there are pinned atoms. */
cutset_status cs_limit_refuse(const cs_work *w, const cs_atoms *a, cutset_error *err);
/* Of more than --max-engines engines, marks the atoms of those that are worth least: of one, or of
 * all that are too many. Where every engine holds a pinned atom, all others; where there are none:
 * CUTSET_NO. */
cutset_status cs_limit_engines(cs_work *w, const cs_atoms *a, const cs_labels *labels, bool all,
                               cs_arena *arena, bool *demote, cutset_error *err);

/* ---- sizes.c: --min-nodes and --max-engines ---- */
/* Slots where these two or the path bound decide them: small graphs, and one accelerator without
 * budgets; else *placed is false. What goes to the host instead sets *changed; *searched: no plan
 * has fewer engines. */
cutset_status cs_sizes_place(cs_work *w, const cs_atoms *a, const cs_costs *c, const cs_levels *l,
                             bool packed, cs_labels *labels, bool *placed, bool *searched,
                             bool *changed, cutset_error *err);
/* Small graphs: the fewest engines instead of those found; else nothing. */
cutset_status cs_sizes_search(cs_work *w, const cs_atoms *a, const cs_costs *c, cs_labels *labels,
                              bool *searched, cutset_error *err);
/* Engines over the budget that hold no atom which is so alone fall apart into their atoms. False: no
 * memory. */
bool cs_sizes_fit(const cs_atoms *a, const cs_costs *c, cs_arena *arena, cs_labels *labels);
/* Packed engines that are too small or too many; `round`: of the caller's loop, from 0. */
cutset_status cs_sizes_trim(cs_work *w, const cs_atoms *a, const cs_labels *labels, uint32_t round,
                            bool *changed, cutset_error *err);

/* ---- bookends.c ---- */
/* Nodes at the ends of engines that compute nothing go to the host. */
cutset_status cs_bookends(cs_work *w, const cs_atoms *a, const cs_labels *labels, bool *changed,
                          cutset_error *err);

/* ---- demote.c: --min-nodes (theory: 5.2) ---- */
/* Marks in `demote` (by atom) what goes to the host and gives slots in which every engine is large
 * enough; without budgets, one accelerator. */
cutset_status cs_demote(cs_work *w, const cs_atoms *a, cs_arena *arena, bool *demote,
                        cs_labels *labels, cutset_error *err);

#endif
