/* See opened.h. */
#include "chat/opened.h"

#include <string.h>

#include "base/compiler.h"

static const struct {
    const char *open, *close;
} blocks[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<seed:think>", "</seed:think>"},
    {"<think:opensource>", "</think:opensource>"},
    {"<thought>", "</thought>"},
    {"<thinking>", "</thinking>"},
    {"<reasoning>", "</reasoning>"},
    {"<|channel|>analysis<|message|>", "<|end|>"},
    {"<|channel>thought", "<channel|>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
    {"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
    {"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"},
};

/* One more than the position of the last occurrence of a word that touches no untrusted range; 0: there is none. */
static size_t find_last(const char *text, size_t len, size_t begin, const char *word, const mt_range *untrusted,
                        size_t count)
{
    const size_t size = strlen(word);

    for (size_t end = len; end >= begin + size; end--) {
        while (count > 0 && untrusted[count - 1].begin >= end)
            count--;
        if (memcmp(text + end - size, word, size) == 0 && (count == 0 || untrusted[count - 1].end <= end - size))
            return end - size + 1;
    }
    return 0;
}

mt_chat_opened mt_chat_opened_find(const char *text, size_t len, size_t begin, const mt_range *untrusted,
                                   size_t untrusted_count)
{
    mt_chat_opened found = {.state = MT_CHAT_OPENED_NOTHING};
    size_t latest = 0;

    for (size_t i = 0; i < MT_COUNT(blocks); i++) {
        size_t open = find_last(text, len, begin, blocks[i].open, untrusted, untrusted_count);
        size_t close = find_last(text, len, begin, blocks[i].close, untrusted, untrusted_count);
        size_t later = open > close ? open : close;

        if (later <= latest || (!open && strcmp(blocks[i].close, "<|end|>") == 0))
            continue; /* many templates end turns with <|end|> */
        latest = later;
        found = (mt_chat_opened){.state = open > close ? MT_CHAT_OPENED_REASONING : MT_CHAT_OPENED_ANSWER,
                                 .open = blocks[i].open,
                                 .close = blocks[i].close};
    }
    return found;
}
