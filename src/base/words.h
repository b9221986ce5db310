/* Lists of words. */
#ifndef MT_BASE_WORDS_H
#define MT_BASE_WORDS_H

#include <stdbool.h>
#include <string.h>

/* Whether a list of words, ended by NULL, has this one. Both may be NULL: then it has not. */
static inline bool mt_words_have(const char *const *words, const char *word)
{
    while (words && *words && word && strcmp(*words, word) != 0)
        words++;
    return words && *words && word;
}

#endif
