/* Internal to report/: one line of a terminal, cut to fit.
 *
 * Text is gathered in a line, bytes that are no printable UTF-8 as \xNN, and put out with at most
 * CS_COLUMNS columns; what is cut ends in "...". A character counts as one column.
 */
#ifndef CS_REPORT_LINE_H
#define CS_REPORT_LINE_H

#include "base/file.h"

#define CS_COLUMNS 80

typedef struct cs_line {
    char text[1024]; /* terminated; more than fits is dropped, long after the last column */
    size_t len;
} cs_line;

void cs_line_printf(cs_line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cs_line_span(cs_line *l, cs_span text);
/* `text` in exactly `columns`, cut or filled with blanks on the right. */
void cs_line_cell(cs_line *l, cs_span text, size_t columns);
/* The end of `text` in at most `columns`, after "..." where it does not fit: for paths. */
void cs_line_tail(cs_line *l, cs_span text, size_t columns);
void cs_line_size(cs_line *l, int64_t bytes);      /* "1.5 GiB" */
void cs_line_size_cell(cs_line *l, int64_t bytes); /* the same, in 10 columns on the right */
void cs_line_count(cs_line *l, uint64_t n, const char *one, const char *many); /* "2 nodes" */
size_t cs_line_columns(const cs_line *l);
void cs_line_put(cs_line *l, cs_out *out); /* with a line break; the line is empty again */
/* Words of `text` after `head`, in as many lines as needed; later ones begin with blanks. */
void cs_line_wrap(cs_out *out, const char *head, cs_span text);

#endif
