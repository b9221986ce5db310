/* Resizes pictures with the exact results of torchvision's resize(antialias=True) of bytes, as transformers' processors
   do: in integers, as 0.27 has it on all processors, and older versions where there is AVX2. */
#ifndef MT_MEDIA_RESIZE_H
#define MT_MEDIA_RESIZE_H

#include "media/image.h"

/* Numbered like "resample" in preprocessor_config.json. */
typedef enum mt_resample {
    MT_RESAMPLE_NEAREST = 0,
    MT_RESAMPLE_LANCZOS = 1, /* as Pillow does it: torchvision had none before 0.27 */
    MT_RESAMPLE_BILINEAR = 2,
    MT_RESAMPLE_BICUBIC = 3
} mt_resample;

/* Resizes `in` to width x height pixels, neither of which may be 0; the caller has checked the sizes. Free out with
   mt_image_free. */
void mt_image_resize(mt_image *out, const mt_image *in, uint32_t width, uint32_t height, mt_resample resample);

/* Most bytes that mt_image_resize needs, out included, in not. */
size_t mt_image_resize_memory(uint32_t in_width, uint32_t in_height, uint32_t width, uint32_t height,
                              mt_resample resample);

#endif
