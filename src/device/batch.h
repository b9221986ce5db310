/* The rows of a step, and the pages of keys and values that they are given by number. */
#ifndef MT_DEVICE_BATCH_H
#define MT_DEVICE_BATCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct mt_chooser mt_chooser; /* working memory for choosing tokens */

#define MT_KV_GROUPS 4 /* most groups of a model: layers whose pages are alike share a pool */
#define MT_NO_PAGE UINT32_MAX
#define MT_PAGE_TOKENS 32 /* positions of a page */
#define MT_KV_SEGMENT 256 /* attention processes keys in segments of so many positions (R8) */

/* Some rows of a span: the recurrent state behind them is written to a slot, from which the next piece continues. */
typedef struct mt_piece {
    uint32_t rows, slot;
} mt_piece;

/* Rows of one sequence that are neighbours in the batch. */
typedef struct mt_span {
    uint32_t row, rows;                  /* rows [row, row + rows) of the batch */
    uint32_t position;                   /* of the first row */
    const uint32_t *pages[MT_KV_GROUPS]; /* page tables of the sequence, by group */
    uint32_t state;                      /* slot of the state before the first row; MT_NO_PAGE: zeros */
    uint32_t pieces;                     /* with recurrent layers: pieces, which cover all rows but the guesses */
    const mt_piece *piece;               /* their slots differ, except that the last may be `state` */
    /* The last rows may be guesses. No state is written for them, but what is needed to move a state over them: in a
       memo, from which the sequence's next step takes as many as proved right. */
    uint32_t guesses, memo; /* number of guesses, at most MT_LIMIT_MEMO_ROWS; number of the memo */
    uint32_t replay;        /* so many of the memo's rows are between `state` and the first row */
} mt_span;

/* A row's position for rotary angles: in time, from the top, from the left. All three are equal for text. */
typedef struct mt_position {
    uint32_t axis[3];
} mt_position;

/* The rows that a step computes. */
typedef struct mt_batch {
    size_t rows;
    const uint32_t *tokens;       /* [rows] */
    const mt_position *positions; /* [rows] */
    size_t spans;
    const mt_span *span; /* [spans], in the order of their rows, which have no gaps */

    /* The rest may be NULL. features, [rows]: the row of features that replaces the embedding of a row's token;
       MT_NO_PAGE: none */
    const uint32_t *features;
    /* [rows]: a row sees positions [seen_from, seen) of its sequence; NULL: from the first, and up to its own */
    const uint32_t *seen_from, *seen;
    /* Tokens that the device chose in the step before, and that the host may not know yet. chosen, [rows]: the row of
       that step's logits whose token it is; MT_NO_PAGE: `tokens` has it */
    const mt_chooser *chooser;
    const uint32_t *chosen;
} mt_batch;

#endif
