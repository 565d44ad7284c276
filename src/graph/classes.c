/* Values that may share memory: an alias joins the two it names. Cost: linear. */
#include "base/union.h"
#include "graph/graph.h"

void cs_graph_classes(const cs_graph *g, uint32_t *root)
{
    for (uint32_t v = 0; v < g->values.len; v++)
        root[v] = v;
    for (size_t i = 0; i < g->aliases.len; i++)
        cs_union(root, g->aliases.at[i].value, g->aliases.at[i].of);
    for (uint32_t v = 0; v < g->values.len; v++)
        root[v] = cs_union_find(root, v);
}
