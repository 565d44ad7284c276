/* Values that may share memory.
 *
 * Union-find over values: an alias joins the two it names. The root of a class is its smallest value.
 * Cost: linear, with path halving.
 */
#include "graph/graph.h"

static uint32_t find(uint32_t *parent, uint32_t v)
{
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

static void join(uint32_t *parent, uint32_t v, uint32_t u)
{
    const uint32_t a = find(parent, v), b = find(parent, u);
    parent[a > b ? a : b] = a > b ? b : a;
}

void cs_graph_classes(const cs_graph *g, uint32_t *root)
{
    for (uint32_t v = 0; v < g->values.len; v++)
        root[v] = v;
    for (size_t i = 0; i < g->aliases.len; i++)
        join(root, g->aliases.at[i].value, g->aliases.at[i].of);
    for (uint32_t v = 0; v < g->values.len; v++)
        root[v] = find(root, v);
}
