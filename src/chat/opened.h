/* Finds out what the end of a prompt has begun: templates may open the model's reasoning block, or close it at once. */
#ifndef MT_CHAT_OPENED_H
#define MT_CHAT_OPENED_H

#include <stddef.h>

#include "base/range.h"

typedef enum mt_chat_opened_state {
    MT_CHAT_OPENED_NOTHING,   /* the output begins with whatever the model writes */
    MT_CHAT_OPENED_REASONING, /* the output begins within a block of reasoning */
    MT_CHAT_OPENED_ANSWER     /* a block of reasoning was closed: the output is the answer */
} mt_chat_opened_state;

typedef struct mt_chat_opened {
    mt_chat_opened_state state;
    const char *open, *close; /* the block's markers, constants such as "<think>"; NULL with NOTHING */
} mt_chat_opened;

/* Examines a prompt's text from `begin` on, which is where the model's turn begins. The last marker there decides.
   Markers in what a user wrote (untrusted: ascending ranges of the text) do not count. */
mt_chat_opened mt_chat_opened_find(const char *text, size_t len, size_t begin, const mt_range *untrusted,
                                   size_t untrusted_count);

#endif
