/* Words that stay whole at the edge of a terminal, while they are still being written. */
#ifndef MT_CLI_CHAT_WRAP_H
#define MT_CLI_CHAT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Zeroed where a line begins. */
typedef struct mt_chat_wrap {
    size_t column;  /* where the cursor stands; the terminal's width: behind the last one */
    char word[256]; /* what was written since the last place where a line may end */
    size_t len;     /* its bytes, */
    size_t width;   /* and columns; 0: it is too long to be kept */
} mt_chat_wrap;

/* Columns of the terminal behind standard output; 0: there is none. */
size_t mt_chat_columns(void);

/* Writes UTF-8 text to a terminal so many columns wide. A word that reaches the edge is taken back and written on the
   next line. Control characters are left out: what a model says moves no cursor. */
void mt_chat_wrap_put(mt_chat_wrap *wrap, size_t columns, const char *text, FILE *out);

#endif
