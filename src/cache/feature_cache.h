/* The feature cache: which rows of the features tensor belong to which picture, found by the digest of the picture's
   content. It keeps features as long as there is room. Used by the engine's thread. See feature_cache.c. */
#ifndef MT_CACHE_FEATURE_CACHE_H
#define MT_CACHE_FEATURE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct mt_feature_cache mt_feature_cache;
/* One picture, or part of one, with the salt of its requests. */
typedef struct mt_medium mt_medium;

/* rows: number of rows of features. The rows lie on the device; the feature cache only hands out their numbers. Free
   with mt_feature_cache_free, after everything held has been released. */
mt_feature_cache *mt_feature_cache_new(size_t rows);
void mt_feature_cache_free(mt_feature_cache *feature_cache);

/* The medium with this content, for requests with this salt, made where there is none; the caller holds it afterwards.
   It lives until it is released as often as it was held and its features are gone. */
mt_medium *mt_feature_cache_hold(mt_feature_cache *feature_cache, const uint8_t digest[32], const uint8_t salt[32]);
void mt_feature_cache_release(mt_feature_cache *feature_cache, mt_medium *medium);
void mt_medium_hold(mt_medium *medium); /* holds it once more */

/* ---- features of a medium that the caller holds ---- */

/* The numbers of the rows that hold its complete features, in order; NULL when it has none. Counts as a use. */
const uint32_t *mt_feature_cache_features(mt_feature_cache *feature_cache, mt_medium *medium);

/* Gives a medium without features rows for them, and evicts the least recently used features for that. NULL when pinned
   features leave too few rows. The rows are pinned until mt_feature_cache_filled. */
const uint32_t *mt_feature_cache_fill(mt_feature_cache *feature_cache, mt_medium *medium, size_t rows) MT_NODISCARD;
bool mt_medium_filling(const mt_medium *medium); /* has rows that are not complete yet */

/* Ends mt_feature_cache_fill: the features are complete, or, where not sound (not finite), forgotten. Unpins them. */
void mt_feature_cache_filled(mt_feature_cache *feature_cache, mt_medium *medium, bool sound);

/* Pinned features are not evicted; unpin them as often as they were pinned. The features must be complete. */
void mt_feature_cache_pin(mt_feature_cache *feature_cache, mt_medium *medium);
void mt_feature_cache_unpin(mt_feature_cache *feature_cache, mt_medium *medium);

/* Forgets all features that are not pinned. */
void mt_feature_cache_clear(mt_feature_cache *feature_cache);

typedef struct mt_feature_cache_stats {
    size_t known;       /* media that are held or have features */
    size_t rows, total; /* rows of features in use, and in all */
    uint64_t evictions; /* of features */
} mt_feature_cache_stats;

mt_feature_cache_stats mt_feature_cache_look(const mt_feature_cache *feature_cache);

#endif
