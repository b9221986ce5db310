/* What makes features of pictures, slice by slice: the model's tower, or a stand-in of a test. The engine's thread
   drives it. See models/vision.h for what each function means. */
#ifndef MT_ENGINE_ENCODER_H
#define MT_ENGINE_ENCODER_H

#include "models/vision.h"

typedef struct mt_encoder {
    void *ctx;
    size_t width; /* floats of a row of features */
    bool (*fits)(void *ctx, const mt_picture *const *pictures, size_t count);
    void (*begin)(void *ctx, mt_tensor *features, const mt_picture *const *pictures, const uint32_t *const *to,
                  size_t count);
    void (*drop)(void *ctx);
    double (*left)(void *ctx);
    double (*run)(void *ctx, double budget);
} mt_encoder;

/* A model's tower as an encoder. Borrows it. */
mt_encoder mt_encoder_of(mt_vision *vision, const mt_vision_spec *spec);

#endif
