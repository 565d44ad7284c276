/* One line of a terminal: gathered, made printable, cut to fit. */
#include "report/line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cs_line_printf(cs_line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t room = sizeof l->text - l->len;
    const int n = vsnprintf(l->text + l->len, room, format, args);
    va_end(args);
    if (n > 0) l->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* May the character of `step` bytes go to a terminal? Not the control characters of ASCII, nor
 * those of Latin-1 (U+0080 to U+009F). */
static bool printable(const char *at, size_t step)
{
    const unsigned char c = (unsigned char)at[0];
    if (step == 0 || c < 0x20 || c == 0x7f) return false;
    return !(step == 2 && c == 0xc2 && (unsigned char)at[1] < 0xa0);
}

void cs_line_span(cs_line *l, cs_span text)
{
    for (size_t i = 0; i < text.len;) {
        const size_t step = cs_utf8_step(text.at + i, text.len - i);
        if (sizeof l->text - l->len <= 4) return; /* one more \xNN and the end */
        if (printable(text.at + i, step)) {
            memcpy(l->text + l->len, text.at + i, step);
            l->len += step;
            l->text[l->len] = '\0';
            i += step;
        } else {
            cs_line_printf(l, "\\x%02x", (unsigned char)text.at[i]);
            i++;
        }
    }
}

static size_t columns_of(const char *text, size_t len)
{
    size_t columns = 0;
    for (size_t i = 0; i < len; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

size_t cs_line_columns(const cs_line *l) { return columns_of(l->text, l->len); }

/* Cuts what begins at byte `from` to `columns`, with "..." at the end. */
static void cut(cs_line *l, size_t from, size_t columns)
{
    if (columns_of(l->text + from, l->len - from) <= columns) return;
    const size_t keep = columns > 3 ? columns - 3 : 0;
    size_t at = from;
    for (size_t done = 0; done < keep || ((unsigned char)l->text[at] & 0xc0) == 0x80; at++)
        done += ((unsigned char)l->text[at] & 0xc0) != 0x80;
    l->len = at;
    l->text[at] = '\0';
    cs_line_printf(l, "%.*s", (int)(columns < 3 ? columns : 3), "...");
}

void cs_line_cell(cs_line *l, cs_span text, size_t columns)
{
    const size_t from = l->len;
    cs_line_span(l, text);
    cut(l, from, columns);
    const size_t used = columns_of(l->text + from, l->len - from);
    if (used < columns) cs_line_printf(l, "%*s", (int)(columns - used), "");
}

void cs_line_tail(cs_line *l, cs_span text, size_t columns)
{
    if (text.len > 400) { /* far more than fits, so that the line holds the rest whole */
        text.at += text.len - 400;
        text.len = 400;
    }
    cs_line all = {0};
    cs_line_span(&all, text);
    size_t from = 0, left = cs_line_columns(&all);
    const bool fits = left <= columns;
    while (!fits && from < all.len && left > columns - 3) {
        for (from++; from < all.len && ((unsigned char)all.text[from] & 0xc0) == 0x80;)
            from++;
        left--;
    }
    cs_line_printf(l, "%s%s", fits ? "" : "...", all.text + from);
}

void cs_line_size(cs_line *l, int64_t bytes)
{
    char text[32];
    cs_format_size(bytes, text);
    cs_line_printf(l, "%s", text);
}

void cs_line_size_cell(cs_line *l, int64_t bytes)
{
    char text[32];
    cs_format_size(bytes, text);
    cs_line_printf(l, "%10s", text);
}

void cs_line_count(cs_line *l, uint64_t n, const char *one, const char *many)
{
    cs_line_printf(l, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

void cs_line_put(cs_line *l, cs_out *out)
{
    cut(l, 0, CS_COLUMNS);
    while (l->len > 0 && l->text[l->len - 1] == ' ')
        l->len--;
    cs_out_put(out, l->text, l->len);
    cs_out_put(out, "\n", 1);
    l->len = 0;
    l->text[0] = '\0';
}

void cs_line_wrap(cs_out *out, const char *head, cs_span text)
{
    const size_t indent = columns_of(head, strlen(head));
    cs_line l = {0};
    cs_line_printf(&l, "%s", head);
    bool first = true;
    while (text.len > 0) {
        size_t n = 0;
        while (n < text.len && text.at[n] != ' ')
            n++;
        cs_line word = {0};
        cs_line_span(&word, (cs_span){text.at, n});
        if (!first && cs_line_columns(&l) + 1 + cs_line_columns(&word) > CS_COLUMNS) {
            cs_line_put(&l, out);
            cs_line_printf(&l, "%*s", (int)indent, "");
            first = true;
        }
        cs_line_printf(&l, "%s%s", first ? "" : " ", word.text);
        first = false;
        n += n < text.len; /* the blank */
        text = (cs_span){text.at + n, text.len - n};
    }
    cs_line_put(&l, out);
}
