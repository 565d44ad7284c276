/* Spans of bytes: comparing, globs, UTF-8.
 *
 * The glob is iterative: a mismatch goes back to the last star alone and lets it take one byte more
 * (an earlier star never needs to move, because whatever it could give up the last one can take).
 * Worst case O(pattern x text), linear in practice, no stack.
 */
#include "base/text.h"

#include <string.h>

cs_span cs_span_of(const char *text)
{
    return text == NULL ? (cs_span){"", 0} : (cs_span){text, strlen(text)};
}

bool cs_span_eq(cs_span a, cs_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool cs_span_is(cs_span a, const char *text) { return cs_span_eq(a, cs_span_of(text)); }

int cs_span_cmp(cs_span a, cs_span b)
{
    const size_t both = a.len < b.len ? a.len : b.len;
    const int order = both == 0 ? 0 : memcmp(a.at, b.at, both);
    if (order != 0) return order < 0 ? -1 : 1;
    return (a.len > b.len) - (a.len < b.len);
}

/* ---- globs ---- */

/* One byte inside brackets, a backslash taken off; *i moves past it. False: the pattern ended. */
static bool bracket_byte(cs_span p, size_t *i, unsigned char *out)
{
    if (*i < p.len && p.at[*i] == '\\') ++*i;
    if (*i >= p.len) return false;
    *out = (unsigned char)p.at[(*i)++];
    return true;
}

/* Matches `c` against the bracket that opens at p[*i]; moves *i past its end. False when it is
 * never closed: then the '[' stands for itself. */
static bool bracket(cs_span p, size_t *i, unsigned char c, bool *hit)
{
    size_t k = *i + 1;
    const bool negated = k < p.len && p.at[k] == '!';
    if (negated) k++;
    bool in = false;
    for (const size_t first = k; k < p.len;) {
        if (p.at[k] == ']' && k > first) {
            *i = k + 1;
            *hit = in != negated;
            return true;
        }
        unsigned char low, high;
        if (!bracket_byte(p, &k, &low)) return false;
        high = low;
        if (k + 1 < p.len && p.at[k] == '-' && p.at[k + 1] != ']') {
            k++;
            if (!bracket_byte(p, &k, &high)) return false;
        }
        in = in || (low <= c && c <= high);
    }
    return false;
}

/* Matches one byte against the element at p[*i], which is no star; moves *i past the element. */
static bool element(cs_span p, size_t *i, unsigned char c)
{
    bool hit;
    if (p.at[*i] == '[' && bracket(p, i, c, &hit)) return hit;
    if (p.at[*i] == '?') {
        ++*i;
        return true;
    }
    if (p.at[*i] == '\\' && *i + 1 < p.len) ++*i;
    return (unsigned char)p.at[(*i)++] == c;
}

bool cs_glob(cs_span pattern, cs_span text)
{
    size_t p = 0, t = 0;
    size_t star = SIZE_MAX, taken = 0; /* behind the last star; the text it has not taken */
    while (t < text.len) {
        if (p < pattern.len && pattern.at[p] == '*') {
            star = ++p;
            taken = t;
            continue;
        }
        if (p < pattern.len && element(pattern, &p, (unsigned char)text.at[t])) {
            t++;
            continue;
        }
        if (star == SIZE_MAX) return false;
        p = star;
        t = ++taken;
    }
    while (p < pattern.len && pattern.at[p] == '*')
        p++;
    return p == pattern.len;
}

/* ---- UTF-8 ---- */

size_t cs_utf8_step(const char *at, size_t left)
{
    const unsigned char *s = (const unsigned char *)at;
    if (left == 0) return 0;
    if (s[0] < 0x80) return 1;
    const size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len > left) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    /* the second byte rules out overlong forms, surrogates and what is over U+10FFFF */
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
    if (s[0] == 0xed && s[1] > 0x9f) return 0;
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;
    if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
    return len;
}

bool cs_utf8_valid(cs_span text)
{
    for (size_t i = 0; i < text.len;) {
        const size_t step = cs_utf8_step(text.at + i, text.len - i);
        if (step == 0) return false;
        i += step;
    }
    return true;
}
