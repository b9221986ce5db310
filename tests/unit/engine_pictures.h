/* Requests with pictures, for fixtures that see. */
#ifndef MT_TESTS_ENGINE_PICTURES_H
#define MT_TESTS_ENGINE_PICTURES_H

#include "engine_driver.h"

#include "models/vision_family.h"

#define SIGHTED "tests/oracle/sighted"
#define WORDS 30 /* before the picture, and behind it */
#define MOST_PADS 64

/* A fixture while it is looked at. */
typedef struct sighted {
    driver d;
    uint32_t pad; /* the token that stands for a picture */
} sighted;

typedef struct size {
    uint32_t width, height;
} size;

/* draft: the folder of what guesses for it, or NULL */
static inline void open_sighted_with(sighted *w, const char *dir, const char *draft, mt_precision precision,
                                     size_t threads)
{
    mt_error err = {0};
    int64_t pad, index;
    driver_open_with(&w->d, dir, draft, precision, threads);
    const mt_config *config = mt_checkpoint_config(w->d.o.checkpoint);
    assert_true(mt_config_int(config, "image_token_index", 0, 0, INT32_MAX, &index, &err));
    assert_true(mt_config_int(config, "image_token_id", index, 0, INT32_MAX, &pad, &err));
    w->pad = (uint32_t)pad;
    w->d.params.sequences = 16;
    w->d.params.queue = 1000;
    w->d.params.rows = 512;
    w->d.params.cache = 16384;
    w->d.params.media_cache = 64 << 20;
}

static inline void open_sighted(sighted *w, const char *dir, mt_precision precision, size_t threads)
{
    open_sighted_with(w, dir, NULL, precision, threads);
}

/* Noise, each picture its own. */
static inline void draw_image(mt_image *image, unsigned which, size s)
{
    draw random = {which + 77};
    mt_image_new(image, s.width, s.height);
    for (size_t i = 0; i < (size_t)3 * s.width * s.height; i++)
        image->pixels[i] = (uint8_t)draw_below(&random, 256);
}

/* Words, the pictures `which` and those after it, words. */
static inline mt_request *show_for(sighted *w, unsigned which, size_t pictures, size s, uint64_t words, size_t tokens,
                                   answer *a)
{
    uint32_t ids[2 * WORDS + MOST_PADS];
    size_t count = 2 * WORDS, made = 0;
    draw random = {words};
    mt_expanded to;
    mt_error err = {0};
    mt_arena *arena = mt_arena_new(0);
    mt_picture *p = mt_arena_alloc(arena, pictures * MT_PICTURE_SIZES * sizeof(*p));
    for (size_t i = 0; i < pictures; i++) {
        mt_image image;
        draw_image(&image, which + (unsigned)i, s);
        if (!mt_processor_image(w->d.o.processor, &image, &(mt_picture_order){.arena = arena}, &p[made], &err))
            fail_msg("%s", err.text);
        mt_image_free(&image);
        for (size_t all = made + 1 + p[made].more; made < all; made++)
            count += mt_processor_runs(w->d.o.processor, &p[made]);
    }
    assert_true(count <= MT_COUNT(ids));
    draw_tokens(&random, ids, count, 200);
    for (size_t i = WORDS; i < count - WORDS; i++)
        ids[i] = w->pad;
    if (!mt_processor_expand(w->d.o.processor, ids, count, p, made, arena, &to, &err))
        fail_msg("%s", err.text);
    mt_request *r = driver_request(&w->d, to.ids, to.count, tokens, a);
    assert_true(mt_arena_defer(r->arena, (void (*)(void *))mt_arena_free, arena));
    r->pictures = p;
    r->picture_count = made;
    r->spans = to.spans;
    r->span_count = to.span_count;
    return r;
}

#endif
