/* What a request shows the model: its pictures, cut into parts that are encoded at once, each with its place in the
   prompt and in the gallery. Made on the thread that submits, then the engine's. */
#ifndef MT_ENGINE_SIGHT_H
#define MT_ENGINE_SIGHT_H

#include "cache/gallery.h"
#include "models/picture.h"

typedef struct mt_request mt_request;

/* Some views of a picture: all of most. Views of a picture do not see each other, so each could be encoded alone. */
typedef struct mt_sight {
    mt_picture picture;
    uint32_t first, end; /* positions of the prompt, from the first that holds its features to behind the last */
    uint32_t row;        /* of the whole picture's features, where these begin */
    mt_medium *medium;   /* held from mt_sights_take to mt_sights_release */
} mt_sight;

/* Cuts the pictures of a request and notes where they stand in its prompt, in its arena. False with a sentence when a
   part alone has more than `rows` rows of features, or the spans do not fit the prompt and the pictures. */
bool mt_sights_make(mt_request *request, size_t rows, mt_error *err) MT_NODISCARD;

/* The engine's thread: finds the parts in the gallery. */
void mt_sights_take(mt_request *request, mt_gallery *gallery);
void mt_sights_release(mt_request *request, mt_gallery *gallery);

/* The first part that ends behind position `at`; sight_count when there is none. */
size_t mt_sights_after(const mt_request *request, size_t at);

#endif
