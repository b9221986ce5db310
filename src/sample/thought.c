/* Counts the tokens of a thought and ends it (thought.h). */
#include "sample/thought.h"

#include <string.h>

#include "sample/sampler.h"

uint32_t mt_thought_next(const mt_thought *t, const mt_thought_rule *how)
{
    return t->thinking && t->tokens >= how->budget ? how->end[t->forced] : MT_SAMPLE_ANY;
}

bool mt_thought_ends_soon(const mt_thought *t, const mt_thought_rule *how)
{
    return !t->over && t->tokens + 1 >= how->budget;
}

/* How many bytes of the marker the text ends with after another byte; *at: before it. True where that is all of it. */
static bool follow(const char *marker, uint8_t *at, char byte)
{
    size_t n = (size_t)*at + 1;
    while (n > 0 && (marker[n - 1] != byte || memcmp(marker, marker + *at + 1 - n, n - 1) != 0))
        n--;
    *at = (uint8_t)n;
    return n > 0 && marker[n] == '\0';
}

/* The same at the beginning of an answer, where only white space may stand before the marker. *not: something else
   does. */
static bool begin(const char *marker, uint8_t *at, char byte, bool * not )
{
    if (*at == 0 && (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'))
        return false;
    *not = marker[*at] != byte;
    *at += !*not ;
    return !*not &&marker[*at] == '\0';
}

static void set_thinking(mt_thought *t, const mt_thought_rule *how, bool thinking)
{
    t->thinking = thinking;
    t->over = !thinking && !how->anywhere;
    t->at[0] = t->at[1] = 0;
    t->forced = 0;
}

/* Reads the bytes of a token. True where a thought has begun or ended with it. */
static bool read(mt_thought *t, const mt_thought_rule *how, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && !t->over; i++) {
        if (!t->thinking && !how->anywhere ? begin(how->open, &t->at[0], bytes[i], &t->over)
                                           : follow(t->thinking ? how->close : how->open, &t->at[0], bytes[i]))
            return true;
        if (t->thinking && how->breaks && follow(how->breaks, &t->at[1], bytes[i]))
            return true;
    }
    return false;
}

void mt_thought_token(mt_thought *t, const mt_thought_rule *how, uint32_t token, const char *bytes, size_t len)
{
    if (token == mt_thought_next(t, how)) {
        if (++t->forced == (t->cut ? how->end_count : how->end_once)) {
            set_thinking(t, how, false);
            t->cut = true;
        }
        return;
    }
    t->forced = 0;
    if (read(t, how, bytes, len))
        set_thinking(t, how, !t->thinking);
    else
        t->tokens += t->thinking;
}
