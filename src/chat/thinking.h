/* How a model writes its thinking: the markers by which a limit on it is kept (sample/thought.h). They come from the
   tables of the formats (format.h). */
#ifndef MT_CHAT_THINKING_H
#define MT_CHAT_THINKING_H

#include <stdbool.h>

#include "chat/parse.h"

/* All are constants. */
typedef struct mt_chat_thinking {
    const char *open, *close; /* what begins and ends a thought */
    const char *breaks;       /* what ends one that was not closed: the first marker of a call; NULL: nothing does */
    const char *end;          /* what is written to end a thought: `close`, and what has to follow it */
    const char *answer;       /* what follows `end` where the model may neither think on nor call a tool; "": nothing */
    bool anywhere;            /* a thought may begin anywhere; else only where the answer begins */
} mt_chat_thinking;

/* False: the format has no markers of thinking. */
bool mt_chat_thinking_find(const mt_parse_settings *settings, mt_chat_thinking *out);

#endif
