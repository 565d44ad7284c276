/* Aliases, writes and order edges of one block, from the cells of its values.
 *
 * Aliases: an output is made from the args of its cell; an element that comes out of a container is
 * made from every value of its cell that went in (the hub of the cell; what comes later joins it).
 * Order: for each cell, last write -> readers and writers, readers -> next write. Cells say more than
 * args do: who reads a list reads what it holds. Only cells that something writes are looked at.
 * Cost: linear in args, outputs, reads and writes.
 */
#include "torch/lower.h"

bool cs_sharing_init(cs_sharing *h, cs_memory *m)
{
    const size_t n = m->cells.len;
    *h = (cs_sharing){.m = m};
    h->stamp = cs_zalloc(n, sizeof *h->stamp);
    h->first = cs_alloc(n, sizeof *h->first);
    h->hub = cs_alloc(n, sizeof *h->hub);
    h->open = cs_alloc(n, sizeof *h->open);
    h->write = cs_alloc(n, sizeof *h->write);
    h->read = cs_alloc(n, sizeof *h->read);
    return h->stamp && h->first && h->hub && h->open && h->write && h->read;
}

void cs_sharing_fini(cs_sharing *h)
{
    cs_free(h->stamp);
    cs_free(h->first);
    cs_free(h->hub);
    cs_free(h->open);
    cs_free(h->write);
    cs_free(h->read);
    cs_vec_fini(&h->links);
    cs_vec_fini(&h->touched);
}

void cs_sharing_begin(cs_sharing *h, cs_graph *g, uint32_t block, uint32_t source)
{
    h->source = source;
    h->g = g;
    h->block = block + 1;
    h->links.len = h->touched.len = 0;
}

static bool enter(cs_sharing *h, uint32_t cell)
{
    if (h->stamp[cell] == h->block) return true;
    h->stamp[cell] = h->block;
    h->first[cell] = h->hub[cell] = h->open[cell] = h->write[cell] = h->read[cell] = CS_NONE;
    return cs_vec_push(&h->touched, cell);
}

static bool push(cs_sharing *h, uint32_t *list, uint32_t what)
{
    const uint32_t at = (uint32_t)h->links.len;
    if (h->links.len >= CS_NONE - 2 || !cs_vec_push(&h->links, what) ||
        !cs_vec_push(&h->links, *list))
        return false;
    *list = at;
    return true;
}

static bool matters(const cs_sharing *h, uint32_t cell)
{
    return cell != CS_NONE && h->m->cells.at[cell].written;
}

/* ---- aliases ---- */

bool cs_share_fresh(cs_sharing *h, uint32_t value, uint32_t cell)
{
    if (!matters(h, cell)) return true;
    if (!enter(h, cell)) return false;
    if (h->first[cell] == CS_NONE) h->first[cell] = value;
    return push(h, &h->open[cell], value);
}

/* `value` is made from all of the cell that is open; from now on it stands for them. */
static bool gather(cs_sharing *h, uint32_t value, uint32_t cell)
{
    if (h->hub[cell] != CS_NONE && !cs_graph_add_alias(h->g, value, h->hub[cell])) return false;
    for (uint32_t at = h->open[cell]; at != CS_NONE; at = h->links.at[at + 1])
        if (!cs_graph_add_alias(h->g, value, h->links.at[at])) return false;
    h->open[cell] = CS_NONE;
    h->hub[cell] = value;
    if (h->first[cell] == CS_NONE) h->first[cell] = value;
    return true;
}

bool cs_share_output(cs_sharing *h, uint32_t value, uint32_t cell, const uint32_t *arg_cells,
                     bool derives)
{
    if (!matters(h, cell)) return true;
    if (!enter(h, cell)) return false;
    const cs_node *n = &h->g->nodes.at[h->g->nodes.len - 1];
    bool some = false;
    for (uint32_t i = 0; i < n->n_arg; i++) {
        if (cs_args(h->g, n)[i] == CS_NONE || arg_cells[i] != cell) continue;
        some = true;
        if (!cs_graph_add_alias(h->g, value, cs_args(h->g, n)[i])) return false;
    }
    if (some) return true;
    return derives ? gather(h, value, cell) : cs_share_fresh(h, value, cell);
}

/* What the world around a branch writes: values of that memory are told. */
static bool expose(cs_sharing *h, uint32_t cell)
{
    const uint32_t v = h->first[cell];
    if (h->source == 0 || v == CS_NONE || !matters(h, cell)) return true;
    const uint32_t block = h->m->cells.at[cell].block;
    return (block != CS_NONE && cs_ts_within(h->m->s, block, h->source)) ||
           cs_vec_push(&h->g->exposed, v);
}

bool cs_sharing_end(cs_sharing *h)
{
    for (size_t i = 0; i < h->touched.len; i++) {
        const uint32_t cell = h->touched.at[i];
        if (!expose(h, cell)) return false;
        const uint32_t with = h->hub[cell] != CS_NONE ? h->hub[cell] : h->first[cell];
        for (uint32_t at = h->open[cell]; at != CS_NONE; at = h->links.at[at + 1]) {
            const uint32_t value = h->links.at[at];
            if (value == with) continue;
            /* a hub is made from them; else the later value stands as made from the first */
            const bool hub = h->hub[cell] != CS_NONE;
            if (!cs_graph_add_alias(h->g, hub ? with : value, hub ? value : with)) return false;
        }
    }
    return true;
}

/* ---- writes and order ---- */

static bool add_edge(cs_sharing *h, uint32_t from, uint32_t to)
{
    const cs_edge edge = {from, to};
    return from == CS_NONE || from == to || cs_vec_push(&h->g->order, edge);
}

static bool write_values(cs_sharing *h, uint32_t cell, const uint32_t *arg_cells)
{
    const cs_node *n = &h->g->nodes.at[h->g->nodes.len - 1];
    const uint32_t n_arg = n->n_arg;
    bool some = false;
    for (uint32_t i = 0; i < n_arg; i++) {
        n = &h->g->nodes.at[h->g->nodes.len - 1];
        const uint32_t v = cs_args(h->g, n)[i];
        if (v == CS_NONE || arg_cells[i] != cell) continue;
        some = true;
        if (!cs_graph_add_write(h->g, v)) return false;
    }
    if (some || h->stamp[cell] != h->block) return true;
    const uint32_t v = h->hub[cell] != CS_NONE ? h->hub[cell] : h->first[cell];
    return v == CS_NONE || cs_graph_add_write(h->g, v);
}

bool cs_share_act(cs_sharing *h, const cs_act *act, const uint32_t *arg_cells)
{
    const uint32_t node = (uint32_t)h->g->nodes.len - 1;
    for (uint32_t i = 0; i < act->n_write; i++) {
        const uint32_t cell = cs_cell_root(h->m, h->m->refs.at[act->write + i]);
        if (!write_values(h, cell, arg_cells)) return false;
        if (!enter(h, cell) || !add_edge(h, h->write[cell], node)) return false;
        for (uint32_t at = h->read[cell]; at != CS_NONE; at = h->links.at[at + 1])
            if (!add_edge(h, h->links.at[at], node)) return false;
        h->read[cell] = CS_NONE;
        h->write[cell] = node;
    }
    for (uint32_t i = 0; i < act->n_read; i++) {
        const uint32_t cell = cs_cell_root(h->m, h->m->refs.at[act->read + i]);
        if (!enter(h, cell)) return false;
        if (h->write[cell] == node) continue;
        if (!add_edge(h, h->write[cell], node) || !push(h, &h->read[cell], node)) return false;
    }
    return true;
}
