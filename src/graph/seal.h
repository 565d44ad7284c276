/* The steps of sealing that have a file of their own. Private to graph/. */
#ifndef CS_GRAPH_SEAL_H
#define CS_GRAPH_SEAL_H

#include "graph/graph.h"

/* Adds the order edges that effects and writes imply; sets n_given, effect and mutates. Bodies are
 * sealed. False: no memory. */
bool cs_seal_effects(cs_graph *g);
/* Reports a cycle; `left` marks the nodes that could not be ordered: each has a predecessor among
 * them, so there is one. */
cutset_status cs_seal_cycle(const cs_graph *g, const uint32_t *left, cutset_error *err);

#endif
