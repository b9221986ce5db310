/* A picture or a video as a tower takes it, and its place in a prompt. Made by a processor on a preparation thread,
   read by the engine's. */
#ifndef MT_MODELS_PICTURE_H
#define MT_MODELS_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "media/digest.h"

#define MT_PICTURE_SIZES 2 /* most pictures that one image becomes */

/* Pixels are kept as bytes; what a byte means depends on its channel alone, and the tower looks it up in levels. */
typedef struct mt_picture {
    bool video;
    uint32_t views;         /* that do not see each other: frames of a video, an image and its crops; 1 for most */
    uint32_t across;        /* views in a row, where they are tiles of an image; 0 where they are not */
    uint32_t height, width; /* of a view, in patches */
    uint32_t more;      /* pictures after it in the array that are made of the same image, with views of other sizes, or
                           of the same video, where frames are seen by themselves */
    uint32_t tokens;    /* of all views: rows of features, places in the prompt */
    uint32_t frames;    /* that a patch holds: 1 where all are the same */
    size_t patch_bytes; /* 3 * frames * side * side */
    const uint8_t *patches; /* [views][height * width][channel][frame][y][x]; the patches that one token is made of lie
                               together, tokens go from left to right and from the top down */
    const float (*levels)[256];      /* [3]: the processor's */
    const double *times;             /* [views] of a video: seconds */
    double seconds;                  /* of the whole video */
    uint32_t step;                   /* rotary positions from a view to the next, where they stand in one span */
    uint8_t digest[MT_DIGEST_BYTES]; /* of patches, grid and the processor's settings */
} mt_picture;

static inline size_t mt_picture_patches(const mt_picture *p)
{
    return (size_t)p->views * p->height * p->width;
}

/* Where patch number i of a token's merge x merge stands in it: row by row, or (nested) those of each square of 2 x 2
   together, and these row by row. */
static inline void mt_picture_inner(uint32_t merge, bool nested, uint32_t i, uint32_t *y, uint32_t *x)
{
    const uint32_t square = i / 4, across = merge / 2;
    *y = nested ? square / across * 2 + i % 4 / 2 : i / merge;
    *x = nested ? square % across * 2 + i % 2 : i % merge;
}

/* A run of positions of a prompt that hold features of one picture. */
typedef struct mt_media_span {
    uint32_t first, count; /* positions of the prompt */
    uint32_t picture;      /* which of the request's */
    uint32_t row;          /* of its features, for the first position */
    bool grid;             /* rotary positions are those of a grid of tokens (M-RoPE), else they go on as for text */
    bool block;            /* each position sees the whole span; a chunk of the prompt must not end inside */
    uint32_t height, width, step; /* of the grid, in tokens; from a view to the next */
    uint32_t begin, after;        /* rotary positions: of the first, of what follows the span */
} mt_media_span;

/* The rotary position of position `index` of a sequence, be it of the prompt or generated. Depends on nothing but the
   spans before it, so that what is cached for one prompt is right for all that begin alike. Spans ascend. */
mt_position mt_media_position(const mt_media_span *spans, size_t count, size_t index);

/* The span that holds position `index`; NULL: it is text. */
const mt_media_span *mt_media_span_at(const mt_media_span *spans, size_t count, size_t index);

#endif
