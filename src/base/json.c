/* The JSON writer: a few bits of state per depth, everything else goes straight to the sink.
 *
 * A separator is written in front of each key or element, never behind one, so nothing has to be
 * known in advance. The end of an outermost container is followed by a line break: a file ends in
 * one, and several containers in a row are one JSON text a line.
 */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum { DEPTH = 32 };

/* The bit of the innermost container. */
static uint32_t bit(const cs_json *j) { return UINT32_C(1) << (j->depth - 1); }

static void line_break(cs_json *j)
{
    static const char blanks[2 * DEPTH + 1] =
        "                                                                ";
    cs_out_put(j->out, "\n", 1);
    cs_out_put(j->out, blanks, 2 * (size_t)j->depth);
}

/* What stands in front of a key or an element. */
static void separate(cs_json *j)
{
    if (j->depth == 0) return;
    const bool some = (j->some & bit(j)) != 0;
    if (some) cs_out_put(j->out, ",", 1);
    if ((j->inline_ & bit(j)) == 0)
        line_break(j);
    else if (some)
        cs_out_put(j->out, " ", 1);
    j->some |= bit(j);
}

static void before_value(cs_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    assert(j->depth == 0 || (j->object & bit(j)) == 0); /* else a key is missing */
    separate(j);
}

void cs_json_init(cs_json *j, cs_out *out) { *j = (cs_json){.out = out}; }

/* ---- containers ---- */

static void begin(cs_json *j, bool object, bool on_line)
{
    before_value(j);
    assert(j->depth < DEPTH);
    if (j->depth > 0 && (j->inline_ & bit(j)) != 0) on_line = true;
    j->depth++;
    const uint32_t b = bit(j);
    j->some &= ~b;
    j->object = object ? j->object | b : j->object & ~b;
    j->inline_ = on_line ? j->inline_ | b : j->inline_ & ~b;
    cs_out_put(j->out, object ? "{" : "[", 1);
}

void cs_json_object(cs_json *j) { begin(j, true, false); }

void cs_json_object_line(cs_json *j) { begin(j, true, true); }

void cs_json_array(cs_json *j) { begin(j, false, false); }

void cs_json_array_line(cs_json *j) { begin(j, false, true); }

void cs_json_end(cs_json *j)
{
    assert(j->depth > 0 && !j->after_key);
    const uint32_t b = bit(j);
    const bool object = (j->object & b) != 0;
    const bool lines = (j->some & b) != 0 && (j->inline_ & b) == 0;
    j->depth--;
    if (lines) line_break(j);
    cs_out_put(j->out, object ? "}" : "]", 1);
    if (j->depth == 0) cs_out_put(j->out, "\n", 1);
}

/* ---- strings ---- */

/* The short escape of `c`, or 0. */
static char short_escape(unsigned char c)
{
    switch (c) {
    case '"':
        return '"';
    case '\\':
        return '\\';
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

/* One byte that cannot stand as it is. */
static void put_escaped(cs_out *out, unsigned char c)
{
    const char letter = short_escape(c);
    if (letter != 0) {
        cs_out_put(out, (const char[]){'\\', letter}, 2);
    } else if (c < 0x20) {
        cs_out_printf(out, "\\u%04x", c);
    } else {
        cs_out_printf(out, "\\\\x%02x", c); /* not UTF-8: \xNN, its backslash escaped */
    }
}

static void put_string(cs_out *out, cs_span text)
{
    cs_out_put(out, "\"", 1);
    size_t from = 0; /* what stands as it is, is put in runs */
    for (size_t i = 0; i < text.len;) {
        const unsigned char c = (unsigned char)text.at[i];
        const size_t step = cs_utf8_step(text.at + i, text.len - i);
        if (step > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += step;
            continue;
        }
        cs_out_put(out, text.at + from, i - from);
        put_escaped(out, c);
        from = ++i;
    }
    if (text.len > from) cs_out_put(out, text.at + from, text.len - from);
    cs_out_put(out, "\"", 1);
}

void cs_json_key_span(cs_json *j, cs_span key)
{
    assert(j->depth > 0 && (j->object & bit(j)) != 0 && !j->after_key);
    separate(j);
    put_string(j->out, key);
    cs_out_put(j->out, ": ", 2);
    j->after_key = true;
}

void cs_json_key(cs_json *j, const char *key) { cs_json_key_span(j, cs_span_of(key)); }

void cs_json_string(cs_json *j, cs_span text)
{
    before_value(j);
    put_string(j->out, text);
}

void cs_json_text(cs_json *j, const char *text) { cs_json_string(j, cs_span_of(text)); }

/* ---- other values ---- */

void cs_json_int(cs_json *j, int64_t x)
{
    before_value(j);
    cs_out_printf(j->out, "%" PRId64, x);
}

void cs_json_f64(cs_json *j, double x)
{
    assert(isfinite(x));
    char text[32];
    cs_format_f64(x, text);
    before_value(j);
    cs_out_puts(j->out, text);
}

void cs_json_bool(cs_json *j, bool x)
{
    before_value(j);
    cs_out_puts(j->out, x ? "true" : "false");
}

void cs_json_null(cs_json *j)
{
    before_value(j);
    cs_out_puts(j->out, "null");
}

void cs_json_put_string(cs_json *j, const char *key, cs_span text)
{
    cs_json_key(j, key);
    cs_json_string(j, text);
}

void cs_json_put_text(cs_json *j, const char *key, const char *text)
{
    cs_json_key(j, key);
    cs_json_text(j, text);
}

void cs_json_put_int(cs_json *j, const char *key, int64_t x)
{
    cs_json_key(j, key);
    cs_json_int(j, x);
}

void cs_json_put_bool(cs_json *j, const char *key, bool x)
{
    cs_json_key(j, key);
    cs_json_bool(j, x);
}

void cs_json_put_null(cs_json *j, const char *key)
{
    cs_json_key(j, key);
    cs_json_null(j);
}
