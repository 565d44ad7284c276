/* The sentence of a refusal, put together in a fixed buffer: what does not fit is cut, control
 * characters of names are written as \xNN so that a sentence stays one line. */
#include "target/rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const rule_names[CS_RULE_COUNT] = {"none",
#define RULE_TEXT(name, text) text,
                                                      CS_RULES(RULE_TEXT)
#undef RULE_TEXT
};

const char *cs_rule_name(cs_rule rule)
{
    return (unsigned)rule < CS_RULE_COUNT ? rule_names[rule] : "none";
}

void cs_reason_add(cs_reason *r, const char *format, ...)
{
    char piece[sizeof r->text];
    va_list args;
    va_start(args, format);
    int made = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    size_t len = made < 0 ? 0 : (size_t)made < sizeof piece ? (size_t)made : sizeof piece - 1;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)piece[i];
        bool plain = c >= 0x20 && c != 0x7f;
        if (r->len + (plain ? 1 : 4) >= sizeof r->text) return;
        if (plain)
            r->text[r->len++] = (char)c;
        else
            r->len += (size_t)sprintf(r->text + r->len, "\\x%02x", c);
    }
    r->text[r->len] = 0;
}

void cs_reason_literals(cs_reason *r, cs_literals list)
{
    for (size_t i = 0; i < list.n; i++)
        cs_reason_add(r, "%s%.100s", i == 0 ? "" : i + 1 < list.n ? ", " : " or ", list.at[i].text);
}

void cs_reason_types(cs_reason *r, uint32_t types)
{
    const char *comma = "";
    static const cs_elem usual[] = {CS_F32, CS_F16, CS_BF16}; /* first, whatever their codes */
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (!(types >> usual[i] & 1)) continue;
        cs_reason_add(r, "%s%s", comma, cs_elem_name(usual[i]));
        types &= ~(UINT32_C(1) << usual[i]);
        comma = ", ";
    }
    for (unsigned e = 1; e < CS_ELEM_COUNT; e++) {
        if (!(types >> e & 1)) continue;
        cs_reason_add(r, "%s%s", comma, cs_elem_name((cs_elem)e));
        comma = ", ";
    }
}

static void print_bound(cs_reason *r, double x)
{
    char text[32];
    if (x == floor(x) && fabs(x) < 1e15) {
        cs_reason_add(r, "%lld", (long long)x);
        return;
    }
    cs_format_f64(x, text);
    cs_reason_add(r, "%s", text);
}

void cs_reason_range(cs_reason *r, double min, double max)
{
    bool low = min > -INFINITY, high = max < INFINITY;
    cs_reason_add(r, "%s", low && high ? "from " : low ? "at least " : "at most ");
    if (low) print_bound(r, min);
    if (low && high) cs_reason_add(r, " to ");
    if (high) print_bound(r, max);
}
