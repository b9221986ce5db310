/* Text on its way through the stages of a tokenizer, and the pieces it is cut into.

   Stages may move and change characters, and still it must be known which of them a user wrote: so a text may carry
   a mark for each of its bytes, and every stage takes the marks along. Texts whose marks nobody will ask for have
   none. */
#ifndef MT_TEXT_FLOW_H
#define MT_TEXT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text to read; borrowed. */
typedef struct mt_tok_view {
    const char *data;           /* valid UTF-8 */
    const unsigned char *marks; /* one per byte, or NULL: nothing is marked */
    size_t len;
    bool head; /* its first character is the first of the whole text */
} mt_tok_view;

/* A text to write. */
typedef struct mt_tok_text {
    char *data;
    unsigned char *marks;
    size_t len, cap;
    bool marked;   /* marks are kept */
    bool beheaded; /* what stood first was taken away by whoever wrote this; until cleared */
    bool full;     /* it would pass MT_LIMIT_TOKENIZER_TEXT; until cleared */
} mt_tok_text;

void mt_tok_text_init(mt_tok_text *text, bool marked); /* free with mt_tok_text_free */
void mt_tok_text_free(mt_tok_text *text);
void mt_tok_text_clear(mt_tok_text *text);

void mt_tok_text_put(mt_tok_text *text, const char *s, size_t len, unsigned char mark);
void mt_tok_text_put_char(mt_tok_text *text, uint32_t c, unsigned char mark);
void mt_tok_text_copy(mt_tok_text *text, const mt_tok_view *from, size_t begin, size_t end);

/* The mark of the byte at `at`; 0 where there are none. */
static inline unsigned char mt_tok_mark(const mt_tok_view *view, size_t at)
{
    return view->marks ? view->marks[at] : 0;
}

/* The mark that all bytes of a range share: set when any of them has it. */
unsigned char mt_tok_mark_of(const mt_tok_view *view, size_t begin, size_t end);

/* A piece of a text. */
typedef struct mt_tok_piece {
    size_t begin, end;
    bool head; /* as in mt_tok_view */
} mt_tok_piece;

/* Where pieces go, one after another; none of them is empty. False: it wants no more, and has said why. */
typedef struct mt_tok_sink {
    bool (*take)(void *ctx, mt_tok_piece piece);
    void *ctx;
} mt_tok_sink;

#endif
