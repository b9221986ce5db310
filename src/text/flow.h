/* Text on its way through the stages of a tokenizer (normalizer, pre-tokenizer), and the pieces into which it is cut.
   Special tokens must not be recognised in text that a user wrote. Stages may move and change characters, so every byte
   of a text can have a mark, 1 for text of a user, which every stage carries along. Where no special token can appear,
   texts have no marks. */
#ifndef MT_TEXT_FLOW_H
#define MT_TEXT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text to read. Borrows all pointers. */
typedef struct mt_tok_view {
    const char *data;           /* valid UTF-8 */
    const unsigned char *marks; /* [len]; NULL: all are 0 */
    size_t len;
    bool head; /* the first byte is the start of the whole text */
} mt_tok_view;

/* A text to write. Free with mt_tok_text_free. */
typedef struct mt_tok_text {
    char *data;
    unsigned char *marks;
    size_t len, cap;
    size_t limit; /* most bytes */
    bool marked;  /* `marks` is used */
    /* The start of the text was removed by the stage that wrote this; mt_tok_text_clear resets it */
    bool beheaded;
    bool full; /* the text would exceed its limit; mt_tok_text_clear resets it */
} mt_tok_text;

/* How many bytes a text of `len` bytes may have after a stage: a tokenizer that goes beyond is made to fill memory. */
size_t mt_tok_text_limit(size_t len);

void mt_tok_text_init(mt_tok_text *text, bool marked, size_t limit);
void mt_tok_text_free(mt_tok_text *text);
void mt_tok_text_clear(mt_tok_text *text);

/* These append; a text that would be too large becomes `full` instead. */
void mt_tok_text_put(mt_tok_text *text, const char *s, size_t len, unsigned char mark);
void mt_tok_text_put_char(mt_tok_text *text, uint32_t c, unsigned char mark);
void mt_tok_text_copy(mt_tok_text *text, const mt_tok_view *from, size_t begin, size_t end);

/* The mark of the byte at `at`. */
static inline unsigned char mt_tok_mark(const mt_tok_view *view, size_t at)
{
    return view->marks ? view->marks[at] : 0;
}

/* 1 if any byte of the range is marked. */
unsigned char mt_tok_mark_of(const mt_tok_view *view, size_t begin, size_t end);

/* A part of a text that no token crosses. */
typedef struct mt_tok_piece {
    size_t begin, end;
    bool head; /* as in mt_tok_view */
} mt_tok_piece;

/* Receives pieces one after another; none is empty. False: *err was set, and no more pieces are to come. */
typedef struct mt_tok_sink {
    bool (*take)(void *ctx, mt_tok_piece piece);
    void *ctx;
} mt_tok_sink;

#endif
