/* Sets of characters as UTF-8 expressions: each range is divided where the number of bytes changes, and where the bytes
   behind the first that differs do not take all values. */
#include "base/utf8.h"
#include "constraint/grammar.h"

#include "base/alloc.h"

/* Collects alternatives: bytes of ASCII, and sequences of other characters. */
typedef struct builder {
    mt_grammar *g;
    mt_byteset ascii;
    mt_expr *parts;
    size_t count, cap;
} builder;

static void push(builder *b, mt_expr part)
{
    b->parts = mt_grow(b->parts, &b->cap, b->count + 1, sizeof(*b->parts));
    b->parts[b->count++] = part;
}

/* Adds a range whose ends have the same number of bytes; all bytes behind the first that differs take all values. */
static void add_span(builder *b, uint32_t low, uint32_t high)
{
    char from[MT_UTF8_MAX], to[MT_UTF8_MAX];
    const size_t len = mt_utf8_encode(low, from);
    mt_expr parts[MT_UTF8_MAX];

    mt_utf8_encode(high, to);
    for (size_t i = 0; i < len; i++) {
        mt_byteset set = {0};

        mt_byteset_add(&set, (unsigned char)from[i], (unsigned char)to[i]);
        parts[i] = mt_grammar_bytes(b->g, &set);
    }
    push(b, mt_grammar_list(b->g, parts, len));
}

/* Adds a range of characters, divided as the head of this file says. */
static void add_range(builder *b, uint32_t low, uint32_t high)
{
    static const uint32_t longest[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};

    for (size_t i = 0; i < 4; i++)
        if (low <= longest[i] && high > longest[i]) {
            add_range(b, low, longest[i]);
            low = longest[i] + 1;
        }
    if (high <= 0x7f) {
        mt_byteset_add(&b->ascii, low, high);
        return;
    }
    for (unsigned shift = 6; shift <= 18; shift += 6) {
        const uint32_t mask = (UINT32_C(1) << shift) - 1;

        if ((low & ~mask) == (high & ~mask))
            break;
        if (low & mask) {
            add_range(b, low, low | mask);
            add_range(b, (low | mask) + 1, high);
            return;
        }
        if ((high & mask) != mask) {
            add_range(b, low, (high & ~mask) - 1);
            add_range(b, high & ~mask, high);
            return;
        }
    }
    add_span(b, low, high);
}

mt_expr mt_grammar_chars(mt_grammar *g, const mt_char_range *ranges, size_t count)
{
    static const uint32_t surrogates[] = {0xd800, 0xdfff};
    builder b = {.g = g};
    mt_expr any;

    for (size_t i = 0; i < count; i++) {
        const uint32_t low = ranges[i].low, high = ranges[i].high > 0x10ffff ? 0x10ffff : ranges[i].high;

        if (low < surrogates[0])
            add_range(&b, low, high < surrogates[0] ? high : surrogates[0] - 1);
        if (high > surrogates[1] && low <= high)
            add_range(&b, low > surrogates[1] ? low : surrogates[1] + 1, high);
    }
    if (b.ascii.bits[0] | b.ascii.bits[1])
        push(&b, mt_grammar_bytes(g, &b.ascii));
    any = mt_grammar_any(g, b.parts, b.count);
    mt_free(b.parts);
    return any;
}
