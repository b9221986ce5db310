#include "engine/encoder.h"

static bool fits(void *ctx, const mt_picture *const *pictures, size_t count)
{
    return mt_vision_fits(ctx, pictures, count);
}

static void begin(void *ctx, mt_tensor *features, const mt_picture *const *pictures, const uint32_t *const *to,
                  size_t count)
{
    mt_vision_begin(ctx, features, pictures, to, count);
}

static void drop(void *ctx)
{
    mt_vision_drop(ctx);
}

static double left(void *ctx)
{
    return mt_vision_left(ctx);
}

static double run(void *ctx, double budget)
{
    return mt_vision_run(ctx, budget);
}

mt_encoder mt_encoder_of(mt_vision *vision, const mt_vision_spec *spec)
{
    return (mt_encoder){.ctx = vision,
                        .width = mt_vision_width(spec),
                        .fits = fits,
                        .begin = begin,
                        .drop = drop,
                        .left = left,
                        .run = run};
}
