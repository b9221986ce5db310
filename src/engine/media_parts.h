/* The pictures of a request, cut into parts that are encoded separately; each part knows its positions in the prompt
   and its entry in the feature cache. Made on the thread that submits the request, then used by the engine's thread. */
#ifndef MT_ENGINE_MEDIA_PARTS_H
#define MT_ENGINE_MEDIA_PARTS_H

#include "base/error.h"
#include "cache/feature_cache.h"
#include "models/picture.h"

typedef struct mt_request mt_request;

/* A part of a picture: some of its views. Most pictures are one part. The views of a picture do not see each other in
   the tower, so any of them could be encoded alone. */
typedef struct mt_media_part {
    mt_picture picture;
    uint32_t first, end; /* [first, end): positions of the prompt that hold its features */
    uint32_t row;        /* number of its first row among the features of the whole picture */
    mt_medium *medium;   /* its entry in the feature cache, held from mt_media_parts_take to mt_media_parts_release */
} mt_media_part;

/* Cuts the pictures of a request and finds their positions in the prompt; the result is in the request's arena. False
   with a sentence when one part has more than `rows` rows of features, or the spans do not fit the prompt and
   pictures. */
bool mt_media_parts_make(mt_request *request, size_t rows, mt_error *err) MT_NODISCARD;

/* On the engine's thread: takes a feature cache entry for each part, and releases them. */
void mt_media_parts_take(mt_request *request, mt_feature_cache *feature_cache);
void mt_media_parts_release(mt_request *request, mt_feature_cache *feature_cache);

/* The first part that ends behind position `at` of the prompt; media_part_count when there is none. */
size_t mt_media_parts_after(const mt_request *request, size_t at);

#endif
