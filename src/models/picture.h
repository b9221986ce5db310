/* A picture or a video as a vision tower takes it, and its positions in a prompt. Made by a processor (processor.h) on
   a preparation thread, read by the engine's thread. */
#ifndef MT_MODELS_PICTURE_H
#define MT_MODELS_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/batch.h"
#include "media/digest.h"

#define MT_PICTURE_SIZES 2 /* most pictures that one image becomes, each with views of another size */

/* Pixels are kept as bytes. The tower gets a byte's value from levels, a table for each channel. */
typedef struct mt_picture {
    bool video;
    /* images that do not see each other in the tower: frames of a video, an image and its crops; mostly 1 */
    uint32_t views;
    uint32_t across;        /* views in a row, where they are the tiles of an image; else 0 */
    uint32_t height, width; /* of a view, in patches */
    /* how many pictures behind this one in the array belong to it: made of the same image with views of another size,
       or of the same video where each frame is a picture */
    uint32_t more;
    uint32_t tokens;    /* of all views: rows of features, and positions in the prompt */
    uint32_t frames;    /* frames that a patch holds; 1 where all would be the same */
    size_t patch_bytes; /* 3 * frames * side * side */
    /* [views][height * width][channel][frame][y][x]. The patches of one token are neighbours; tokens go from left to
       right and from the top down */
    const uint8_t *patches;
    const float (*levels)[256];      /* [3]: owned by the processor */
    const double *times;             /* [views] of a video: time of each, in seconds */
    double seconds;                  /* duration of the whole video */
    uint32_t step;                   /* rotary positions from one view to the next, where the views are in one span */
    uint8_t digest[MT_DIGEST_BYTES]; /* of patches, grid and the processor's settings */
} mt_picture;

static inline size_t mt_picture_patches(const mt_picture *p)
{
    return (size_t)p->views * p->height * p->width;
}

/* Where patch number i of a token stands in the token's merge x merge patches: row by row or, where nested, by squares
   of 2 x 2 patches, which go row by row. */
static inline void mt_picture_inner(uint32_t merge, bool nested, uint32_t i, uint32_t *y, uint32_t *x)
{
    const uint32_t square = i / 4, across = merge / 2;
    *y = nested ? square / across * 2 + i % 4 / 2 : i / merge;
    *x = nested ? square % across * 2 + i % 2 : i % merge;
}

/* A run of positions of a prompt that hold features of one picture. */
typedef struct mt_media_span {
    uint32_t first, count; /* positions of the prompt */
    uint32_t picture;      /* index of the picture in the request */
    uint32_t row;          /* row of its features at the first position */
    bool grid;             /* rotary positions are those of a grid of tokens (M-RoPE); else they count on as for text */
    bool block;            /* each position sees the whole span, so a chunk of the prompt must not end inside */
    uint32_t height, width, step; /* of the grid, in tokens; step: from a view to the next */
    uint32_t begin, after;        /* rotary positions: of the first position, and of what follows the span */
} mt_media_span;

/* The rotary position of position `index` of a sequence, in the prompt or the answer. Depends only on the spans before
   it, so that cached pages are right for all prompts with the same beginning. Spans must ascend. */
mt_position mt_media_position(const mt_media_span *spans, size_t count, size_t index);

/* The span that holds position `index`; NULL: it is text. */
const mt_media_span *mt_media_span_at(const mt_media_span *spans, size_t count, size_t index);

#endif
