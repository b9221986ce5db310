/* Media by their content: what the encoder made of each, as long as there is room. See gallery.c. */
#ifndef MT_CACHE_GALLERY_H
#define MT_CACHE_GALLERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct mt_gallery mt_gallery;
typedef struct mt_medium mt_medium;

/* rows: of features, which lie elsewhere; the gallery says whose each is. Free with mt_gallery_free, after everything
   that was held has been released. */
mt_gallery *mt_gallery_new(size_t rows);
void mt_gallery_free(mt_gallery *gallery);

/* The medium of this content for requests of this salt. It stays until it is released as often as it was held, and
   then as long as its features do. */
mt_medium *mt_gallery_hold(mt_gallery *gallery, const uint8_t digest[32], const uint8_t salt[32]);
void mt_gallery_release(mt_gallery *gallery, mt_medium *medium);
void mt_medium_hold(mt_medium *medium); /* once more */

/* ---- features: some of the rows, of a medium that is held ---- */

/* Where that lies which the encoder made of it, complete: its rows in order; NULL when it is not there. Counts as a
   use. */
const uint32_t *mt_gallery_features(mt_gallery *gallery, mt_medium *medium);

/* Room for its features, which it had none of, at the cost of those that were used least lately. NULL when what is
   pinned leaves too little. Pinned once, for whoever fills it: then mt_gallery_filled says how that went. */
const uint32_t *mt_gallery_fill(mt_gallery *gallery, mt_medium *medium, size_t rows) MT_NODISCARD;
bool mt_medium_filling(const mt_medium *medium);

/* The features are complete, or forgotten when they are not sound. Unpins them once. */
void mt_gallery_filled(mt_gallery *gallery, mt_medium *medium, bool sound);

/* Complete features that are pinned stay; unpin them as often as they were pinned. */
void mt_gallery_pin(mt_gallery *gallery, mt_medium *medium);
void mt_gallery_unpin(mt_gallery *gallery, mt_medium *medium);

/* Forgets features that nobody has pinned. */
void mt_gallery_clear(mt_gallery *gallery);

typedef struct mt_gallery_stats {
    size_t known;       /* media that are held or have features */
    size_t rows, total; /* of features; total: what there may be */
    uint64_t evictions; /* of features */
} mt_gallery_stats;

mt_gallery_stats mt_gallery_look(const mt_gallery *gallery);

#endif
