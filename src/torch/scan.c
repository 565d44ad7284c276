/* Scanning the text: words, balanced runs, faults with their place. Linear; nothing recurses. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "torch/script.h"

cutset_status cs_scan_fault(cs_scan *c, const char *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    c->fault = at;
    return CUTSET_BAD;
}

static bool is_word(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_' || ch == '.' || ch == ':';
}

cutset_status cs_scan_found(cs_scan *c, const char *wanted)
{
    cs_scan_space(c);
    if (c->at == c->end)
        return cs_scan_fault(c, c->at,
                             "the text ends in the middle: give all that str(graph) "
                             "prints, up to its return line");
    const unsigned char ch = (unsigned char)*c->at;
    if (ch < ' ' || ch > '~')
        return cs_scan_fault(c, c->at, "byte 0x%02x is not expected here: write %s", ch, wanted);
    const char *end = c->at + 1;
    while (end < c->end && end - c->at < 40 && is_word(*end) && is_word(*c->at))
        end++;
    return cs_scan_fault(c, c->at, "'%.*s' is not expected here: write %s", (int)(end - c->at),
                         c->at, wanted);
}

void cs_scan_space(cs_scan *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

bool cs_scan_take(cs_scan *c, const char *word)
{
    cs_scan_space(c);
    const size_t len = strlen(word);
    if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0) return false;
    /* a word ends where a word ends */
    if (is_word(word[len - 1]) && c->at + len < c->end && is_word(c->at[len])) return false;
    c->at += len;
    return true;
}

bool cs_scan_peek(cs_scan *c, char ch)
{
    cs_scan_space(c);
    return c->at < c->end && *c->at == ch;
}

cs_span cs_scan_word(cs_scan *c)
{
    cs_scan_space(c);
    const char *from = c->at;
    while (c->at < c->end && is_word(*c->at))
        c->at++;
    return (cs_span){from, (size_t)(c->at - from)};
}

static cutset_status skip_string(cs_scan *c)
{
    const char *from = c->at++;
    while (c->at < c->end && *c->at != '"')
        c->at += *c->at == '\\' && c->at + 1 < c->end ? 2 : 1;
    if (c->at >= c->end) {
        c->at = c->end;
        return cs_scan_fault(c, from, "a string without end: give all that str(graph) prints");
    }
    c->at++;
    return CUTSET_OK;
}

cutset_status cs_scan_over(cs_scan *c, const char *stops)
{
    char open[CS_SCRIPT_DEPTH];
    size_t depth = 0;
    const char *from = c->at;
    while (c->at < c->end) {
        const char ch = *c->at;
        if (depth == 0 && strchr(stops, ch) && ch) return CUTSET_OK;
        if (ch == '"') {
            const cutset_status s = skip_string(c);
            if (s) return s;
            continue;
        }
        if (ch == '(' || ch == '[' || ch == '{') {
            if (depth == CS_SCRIPT_DEPTH)
                return cs_scan_fault(c, c->at, "brackets nested more than %d deep: nest less",
                                     CS_SCRIPT_DEPTH);
            open[depth++] = ch == '(' ? ')' : ch == '[' ? ']' : '}';
        } else if (ch == ')' || ch == ']' || ch == '}') {
            if (depth == 0 || open[depth - 1] != ch)
                return cs_scan_fault(c, c->at,
                                     "'%c' closes nothing: give the text as it was printed", ch);
            depth--;
        }
        c->at++;
    }
    return cs_scan_fault(c, from,
                         "the text ends in the middle: give all that str(graph) prints, up "
                         "to its return line");
}
