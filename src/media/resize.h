/* Resizes pictures with the exact results of the libraries that checkpoints were trained with. */
#ifndef MT_MEDIA_RESIZE_H
#define MT_MEDIA_RESIZE_H

#include "media/image.h"

/* Numbered like "resample" in preprocessor_config.json. */
typedef enum mt_resample {
    MT_RESAMPLE_NEAREST = 0,
    MT_RESAMPLE_LANCZOS = 1, /* as Pillow does it; torchvision has none */
    MT_RESAMPLE_BILINEAR = 2,
    MT_RESAMPLE_BICUBIC = 3
} mt_resample;

typedef enum mt_resize_like {
    MT_RESIZE_PIL,  /* Image.resize of Pillow, which transformers' slow processors use */
    MT_RESIZE_TORCH /* torchvision's resize(antialias=True) of uint8, which the fast processors use */
} mt_resize_like;

/* Resizes `in` to width x height pixels, neither of which may be 0; the caller has checked the sizes. Free out with
   mt_image_free. */
void mt_image_resize(mt_image *out, const mt_image *in, uint32_t width, uint32_t height, mt_resample resample,
                     mt_resize_like like);

/* Most bytes that mt_image_resize needs, out included, in not. */
size_t mt_image_resize_memory(uint32_t in_width, uint32_t in_height, uint32_t width, uint32_t height,
                              mt_resample resample, mt_resize_like like);

#endif
