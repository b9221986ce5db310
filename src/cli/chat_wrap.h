/* Breaks lines between words at the width of a terminal, although text arrives in pieces that end inside of words. */
#ifndef MT_CLI_CHAT_WRAP_H
#define MT_CLI_CHAT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* The state of the output; all zero bytes at the beginning of a line. */
typedef struct mt_chat_wrap {
    size_t column;  /* of the cursor; equal to the width of the terminal: after the last column */
    char word[256]; /* the bytes of the word that is not complete yet; they are already printed */
    size_t len;
    size_t width; /* columns of the word; 0: it is longer than `word` and cannot be moved */
} mt_chat_wrap;

/* Width of the terminal at standard output; 0: standard output is no terminal. */
size_t mt_chat_columns(void);

/* Prints UTF-8 text to a terminal that is `columns` wide. A word that reaches the edge is erased and printed again on
   the next line. Control characters are left out, so that a model cannot move the cursor. */
void mt_chat_wrap_put(mt_chat_wrap *wrap, size_t columns, const char *text, FILE *out);

#endif
