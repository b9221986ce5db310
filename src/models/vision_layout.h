/* The layout of a tower's job: to which picture, view, token, page and window each row (patch) belongs. Used by
   vision.c. */
#ifndef MT_MODELS_VISION_LAYOUT_H
#define MT_MODELS_VISION_LAYOUT_H

#include "models/vision.h"

#define MT_VISION_PICTURES 64 /* most pictures of a job */

/* A picture of the job. */
typedef struct mt_vision_item {
    const mt_picture *picture;
    const uint32_t *to;           /* [tokens]: the rows of features that its tokens become */
    size_t row, page;             /* its first row and page in the job */
    size_t view_rows, view_pages; /* of each of its views */
} mt_vision_item;

typedef struct mt_vision_layout {
    const mt_vision_spec *spec;
    size_t cell;   /* patches of a token */
    size_t shrink; /* how many rows of the job became one row of the present pass (squeezed towers) */
    bool near;     /* in the present pass, patches see only their 2 x 2 square */
    size_t max_rows, max_pages;

    /* the job */
    mt_vision_item item[MT_VISION_PICTURES];
    size_t items, rows; /* pictures, and rows of all of them */
    uint32_t *token;    /* [rows / cell]: index within its picture of the token that this square of patches becomes */
    /* [rows / cell]: range of the view's rows in the square's window; NULL without windows */
    uint32_t *window_from, *window_to;
    uint32_t *pages; /* [max_pages]: 0, 1, 2, ... as page table */

    /* of a slice, [rows] */
    mt_pixels *pixels;
    mt_position *positions;
    mt_span *spans;
    uint32_t *seen_from, *seen; /* rows of its view that each row sees */
    size_t taps;                /* most entries of the table of positions that count for a patch */
    uint32_t *table_index;      /* [rows][taps] */
    float *table_factor;
    uint32_t *to; /* [rows / cell]: rows of features */
} mt_vision_layout;

void mt_vision_layout_init(mt_vision_layout *l, const mt_vision_spec *spec, size_t rows, size_t pages,
                           size_t slice_rows);
void mt_vision_layout_free(mt_vision_layout *l);

bool mt_vision_layout_fits(const mt_vision_layout *l, const mt_picture *const *pictures, size_t count);
void mt_vision_layout_begin(mt_vision_layout *l, const mt_picture *const *pictures, const uint32_t *const *to,
                            size_t count);

/* The number of keys that rows [first, first + rows) see in a layer, summed. */
double mt_vision_layout_keys(const mt_vision_layout *l, size_t first, size_t rows, size_t layer);

/* Describe a slice: the bytes of its patches; the entries of the table of learned positions; its spans with rotary
   positions and visible ranges. */
void mt_vision_layout_pixels(mt_vision_layout *l, size_t first, size_t rows);
void mt_vision_layout_table(mt_vision_layout *l, size_t first, size_t rows);
void mt_vision_layout_batch(mt_vision_layout *l, size_t first, size_t rows, size_t layer, mt_batch *batch);

/* Whether a row belongs to the square of its view's summary. */
bool mt_vision_layout_is_summary(const mt_vision_layout *l, size_t row);

/* The row of features of the token that square number `square` becomes; MT_NO_PAGE: none. */
uint32_t mt_vision_layout_token(const mt_vision_layout *l, size_t square);

#endif
