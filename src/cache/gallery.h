/* The gallery: which rows of the features tensor belong to which picture, found by the digest of the picture's content.
   It keeps features as long as there is room. Used by the engine's thread. See gallery.c. */
#ifndef MT_CACHE_GALLERY_H
#define MT_CACHE_GALLERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct mt_gallery mt_gallery;
/* One picture, or part of one, with the salt of its requests. */
typedef struct mt_medium mt_medium;

/* rows: number of rows of features. The rows lie on the device; the gallery only hands out their numbers. Free with
   mt_gallery_free, after everything held has been released. */
mt_gallery *mt_gallery_new(size_t rows);
void mt_gallery_free(mt_gallery *gallery);

/* The medium with this content, for requests with this salt, made where there is none; the caller holds it afterwards.
   It lives until it is released as often as it was held and its features are gone. */
mt_medium *mt_gallery_hold(mt_gallery *gallery, const uint8_t digest[32], const uint8_t salt[32]);
void mt_gallery_release(mt_gallery *gallery, mt_medium *medium);
void mt_medium_hold(mt_medium *medium); /* holds it once more */

/* ---- features of a medium that the caller holds ---- */

/* The numbers of the rows that hold its complete features, in order; NULL when it has none. Counts as a use. */
const uint32_t *mt_gallery_features(mt_gallery *gallery, mt_medium *medium);

/* Gives a medium without features rows for them, and evicts the least recently used features for that. NULL when pinned
   features leave too few rows. The rows are pinned until mt_gallery_filled. */
const uint32_t *mt_gallery_fill(mt_gallery *gallery, mt_medium *medium, size_t rows) MT_NODISCARD;
bool mt_medium_filling(const mt_medium *medium); /* has rows that are not complete yet */

/* Ends mt_gallery_fill: the features are complete, or, where not sound (not finite), forgotten. Unpins them. */
void mt_gallery_filled(mt_gallery *gallery, mt_medium *medium, bool sound);

/* Pinned features are not evicted; unpin them as often as they were pinned. The features must be complete. */
void mt_gallery_pin(mt_gallery *gallery, mt_medium *medium);
void mt_gallery_unpin(mt_gallery *gallery, mt_medium *medium);

/* Forgets all features that are not pinned. */
void mt_gallery_clear(mt_gallery *gallery);

typedef struct mt_gallery_stats {
    size_t known;       /* media that are held or have features */
    size_t rows, total; /* rows of features in use, and in all */
    uint64_t evictions; /* of features */
} mt_gallery_stats;

mt_gallery_stats mt_gallery_look(const mt_gallery *gallery);

#endif
