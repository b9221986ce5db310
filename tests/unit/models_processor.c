/* Processors: sizes, patches, frames, placeholders and rotary positions. */
#include "folder.h"
#include "unit.h"

#include "base/alloc.h"
#include "models/family.h"
#include "models/limits.h"
#include "models/vision_family.h"

static mt_arena *arena;
static const mt_picture_wish none;

static mt_processor *qwen3(void)
{
    mt_processor *p = mt_arena_alloc(arena, sizeof(*p));
    *p = (mt_processor){.family = &mt_vision_qwen3,
                        .patch = 16,
                        .frames = 2,
                        .merge = 2,
                        .together = true,
                        .image_id = 7,
                        .video_id = 8,
                        .image_marker = "<i>",
                        .video_marker = "<v>",
                        .image_pad = "<i>",
                        .video_pad = "<v>",
                        .opening = "[",
                        .closing = "]"};
    p->image = (mt_pixel_rules){.min_pixels = 65536, .max_pixels = 16777216, .resample = MT_RESAMPLE_BICUBIC};
    p->video = (mt_pixel_rules){.min_pixels = 4096, .max_pixels = 25165824, .resample = MT_RESAMPLE_BICUBIC};
    return p;
}

static mt_pixel_size fit(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width)
{
    mt_pixel_size size;
    mt_error err = {0};
    assert_true(mt_pixel_size_fit(p, wish, height, width, 0, &size, &err));
    return size;
}

#define ASSERT_SIZE(size, h, w)             \
    do {                                    \
        assert_int_equal((size).height, h); \
        assert_int_equal((size).width, w);  \
    } while (0)

static void sizes_are_those_of_transformers(void **state)
{
    (void)state;
    mt_processor *p = qwen3();
    ASSERT_SIZE(fit(p, &none, 1365, 2048), 1376, 2048);
    ASSERT_SIZE(fit(p, &none, 1080, 1920), 1088, 1920);
    ASSERT_SIZE(fit(p, &none, 100, 100), 256, 256);
    ASSERT_SIZE(fit(p, &none, 272, 304), 256, 320); /* halfway: to even multiples */
    ASSERT_SIZE(fit(p, &none, 1, 1), 256, 256);
    p->patch = 14;
    p->image.min_pixels = 3136;
    p->image.max_pixels = 12845056;
    ASSERT_SIZE(fit(p, &none, 1080, 1920), 1092, 1932);
}

static void requests_may_wish_for_other_sizes(void **state)
{
    (void)state;
    const mt_processor *p = qwen3();
    const mt_picture_wish small = {.max_pixels = 65536}, low = {.low = true}, huge = {.min_pixels = UINT64_MAX};
    ASSERT_SIZE(fit(p, &small, 1024, 1024), 256, 256);
    ASSERT_SIZE(fit(p, &low, 1024, 1024), 512, 512);
    ASSERT_SIZE(fit(p, &huge, 64, 64), 4096, 4096); /* never more than there is room for */
}

/* Qwen3's limits are those of all frames together. */
static void frames_share_the_pixels_of_a_video(void **state)
{
    mt_processor *p = qwen3();
    mt_pixel_size size;
    mt_error err = {0};
    (void)state;
    p->video.max_pixels = 1000000;
    assert_true(mt_pixel_size_fit(p, &none, 480, 640, 8, &size, &err));
    ASSERT_SIZE(size, 288, 384);
}

/* A list's frames, which come as they are asked for: in order, one after the other. */
typedef struct album {
    size_t asked, broken; /* frames so far; the one that fails, counted from 1 */
    size_t taken, memory; /* bytes asked for so far, and when the last frame was wanted */
} album;

static bool album_next(void *ctx, size_t index, mt_image *image, mt_error *err)
{
    album *a = ctx;
    assert_int_equal(index, a->asked);
    a->asked++;
    a->memory = a->taken;
    if (a->asked == a->broken)
        return mt_fail(err, MT_E_INVALID, "broken");
    mt_image_new(image, 64, 64);
    return true;
}

static bool album_take(void *ctx, size_t bytes, mt_error *err)
{
    (void)err;
    ((album *)ctx)->taken += bytes;
    return true;
}

/* What a sender chose is looked at, however few a pace would have chosen. */
static void all_frames_of_a_list_are_seen(void **state)
{
    mt_processor *p = qwen3();
    album a = {0};
    const mt_media_watch watch = {.take = album_take, .ctx = &a};
    const mt_picture_order order = {.wish = {.fps = 1}, .watch = &watch, .arena = arena};
    mt_frame_list list = {.count = 3, .next = album_next, .ctx = &a};
    mt_picture *out;
    mt_error err = {0};
    (void)state;
    p->max_frames = 2;
    assert_true(mt_processor_frames(p, &list, &order, &out, &err));
    assert_int_equal(a.asked, 3);
    assert_int_equal(out->views, 2);
    assert_true(out->times[0] == 0.5 && out->times[1] == 2);
    assert_true(a.memory >= mt_picture_patches(out) * out->patch_bytes); /* asked for before any was filled */
    list.count = 0;
    assert_false(mt_processor_frames(p, &list, &order, &out, &err));
}

/* Nothing is made of what stands behind a frame that fails. */
static void a_list_ends_with_a_frame_that_fails(void **state)
{
    album a = {.broken = 2};
    const mt_frame_list list = {.count = 5, .next = album_next, .ctx = &a};
    mt_picture *out;
    mt_error err = {0};
    (void)state;
    assert_false(mt_processor_frames(qwen3(), &list, &(mt_picture_order){.arena = arena}, &out, &err));
    assert_int_equal(a.asked, 2);
    assert_string_equal(err.text, "broken");
}

static void long_pictures_are_refused(void **state)
{
    (void)state;
    const mt_processor *p = qwen3();
    mt_pixel_size size;
    mt_error err = {0};
    assert_false(mt_pixel_size_fit(p, &none, 1, 5000, 0, &size, &err));
    assert_string_equal(err.text, "a picture of 5000 x 1 pixels is too long; its sides may differ 200 times");
}

/* Red tells the column, green the row. */
static void patches_of_a_token_lie_together(void **state)
{
    (void)state;
    mt_processor *p = qwen3();
    p->patch = 2;
    p->image.min_pixels = 1;
    mt_image image;
    mt_image_new(&image, 8, 4);
    for (size_t i = 0; i < 32; i++) {
        image.pixels[3 * i] = (uint8_t)(i % 8);
        image.pixels[3 * i + 1] = (uint8_t)(i / 8);
    }
    mt_picture out;
    mt_error err = {0};
    assert_true(mt_processor_image(p, &image, &(mt_picture_order){.arena = arena}, &out, &err));
    assert_int_equal(out.height, 2);
    assert_int_equal(out.width, 4);
    assert_int_equal(out.tokens, 2);
    static const uint8_t columns[8] = {0, 2, 0, 2, 4, 6, 4, 6}, rows[8] = {0, 0, 2, 2, 0, 0, 2, 2};
    for (size_t i = 0; i < 8; i++) {
        const uint8_t *patch = out.patches + i * out.patch_bytes;
        assert_int_equal(patch[0], columns[i]);
        assert_int_equal(patch[3], columns[i] + 1);
        assert_int_equal(patch[4], rows[i]);
        assert_int_equal(patch[7], rows[i] + 1);
    }
    mt_picture other;
    image.pixels[0] ^= 1;
    assert_true(mt_processor_image(p, &image, &(mt_picture_order){.arena = arena}, &other, &err));
    assert_memory_not_equal(out.digest, other.digest, sizeof(out.digest));
    mt_image_free(&image);
}

static void placeholders_become_runs_with_positions(void **state)
{
    (void)state;
    const mt_processor *p = qwen3();
    const double times[] = {0.25, 1.75};
    const mt_picture pictures[] = {
        {.views = 1, .height = 4, .width = 6, .tokens = 6, .step = 1},
        {.video = true, .views = 2, .height = 2, .width = 2, .tokens = 2, .step = 1, .times = times}};
    const uint32_t ids[] = {1, 7, 2, 3, 8, 4, 8, 5};
    mt_expanded out;
    mt_error err = {0};
    assert_true(mt_processor_expand(p, ids, 8, pictures, 2, arena, &out, &err));
    static const uint32_t wanted[] = {1, 7, 7, 7, 7, 7, 7, 2, 3, 8, 4, 8, 5};
    assert_int_equal(out.count, 13);
    assert_memory_equal(out.ids, wanted, sizeof(wanted));
    assert_int_equal(out.span_count, 3);
    assert_int_equal(out.spans[2].picture, 1);
    assert_int_equal(out.spans[2].row, 1);
    static const uint32_t axes[][3] = {{0, 0, 0}, {1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 2, 1}, {1, 2, 2}, {1, 2, 3},
                                       {4, 4, 4}, {5, 5, 5}, {6, 6, 6}, {7, 7, 7}, {8, 8, 8}, {9, 9, 9}, {10, 10, 10}};
    for (size_t i = 0; i < MT_COUNT(axes); i++) {
        const mt_position at = mt_media_position(out.spans, out.span_count, i);
        assert_memory_equal(at.axis, axes[i], sizeof(at.axis));
    }
    mt_buf text;
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(p, &pictures[1], 0, &text));
    assert_string_equal(text.data, "<0.2 seconds>[<v>]<1.8 seconds>[<v>]");
    mt_buf_free(&text);
}

static void places_and_pictures_must_be_as_many(void **state)
{
    (void)state;
    const mt_processor *p = qwen3();
    const mt_picture image = {.views = 1, .height = 2, .width = 2, .tokens = 1};
    const mt_picture pictures[] = {image, image};
    const uint32_t ids[] = {7, 1, 8};
    mt_expanded out;
    mt_error err = {0};
    assert_false(mt_processor_expand(p, ids, 2, pictures, 2, arena, &out, &err));
    assert_string_equal(err.text, "the prompt has no place for 1 of its pictures");
    assert_false(mt_processor_expand(p, ids, 2, pictures, 0, arena, &out, &err));
    assert_string_equal(err.text, "the prompt has more places for pictures than there are pictures");
    assert_false(mt_processor_expand(p, ids, 3, pictures, 2, arena, &out, &err)); /* a video's place, an image */
}

/* Gemma, with pan and scan. */
static void long_images_are_shown_in_pieces(void **state)
{
    (void)state;
    mt_processor *p = qwen3();
    *p = (mt_processor){.family = &mt_vision_gemma3,
                        .patch = 4,
                        .frames = 1,
                        .merge = 2,
                        .image_id = 7,
                        .image_marker = "[",
                        .image_pad = "i",
                        .opening = "[",
                        .closing = "]"};
    p->image = (mt_pixel_rules){.height = 16, .width = 16, .resample = MT_RESAMPLE_BILINEAR};
    const mt_picture_order crops = {.wish = {.crops = true}, .arena = arena}, plain = {.arena = arena};
    mt_image image;
    mt_picture whole, pieces;
    mt_error err = {0};
    mt_image_new(&image, 800, 290);
    assert_true(mt_processor_image(p, &image, &plain, &whole, &err));
    assert_true(mt_processor_image(p, &image, &crops, &pieces, &err));
    assert_int_equal(whole.views, 1);
    assert_int_equal(whole.tokens, 4);
    assert_int_equal(pieces.views, 4); /* 800 / 290 is nearly 3 */
    mt_buf text;
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(p, &pieces, 0, &text));
    assert_string_equal(text.data,
                        "Here is the original image \n\n[i]\n\n and here are some crops to help you see better "
                        "\n\n[i]\n\n \n\n[i]\n\n \n\n[i]\n\n");
    mt_buf_free(&text);
    mt_image_free(&image);
}

/* The processor that the test's folder describes for eyes of this family. */
static const mt_processor *read_folder(const mt_vision_family *family)
{
    const mt_vision_spec vision = {.family = family, .patch = 8, .frames = 2, .merge = 2};
    const mt_model_spec spec = {.vocab = 250000, .vision = &vision};
    mt_error err = {0};
    mt_config *config = mt_config_parse("{}", 2, &err);
    const mt_processor *p = mt_processor_read(folder, config, &spec, arena, &err);
    assert_string_equal(err.text, "");
    mt_config_free(config);
    return p;
}

static void files_count_in_the_order_of_transformers(void **state)
{
    (void)state;
    make_folder(NULL);
    put("preprocessor_config.json", "{\"min_pixels\":100,\"max_pixels\":1000}");
    assert_int_equal(read_folder(&mt_vision_qwen2_5)->image.max_pixels, 1000);
    assert_int_equal(read_folder(&mt_vision_qwen2_5)->video.max_pixels, 1000); /* one file for both */
    assert_int_equal(read_folder(&mt_vision_qwen3)->video.max_pixels, 32 * 32 * 768);
    put("video_preprocessor_config.json", "{\"max_pixels\":2000,\"size\":{\"longest_edge\":3000}}");
    assert_int_equal(read_folder(&mt_vision_qwen2_5)->video.max_pixels, 2000);
    assert_int_equal(read_folder(&mt_vision_qwen3)->video.max_pixels, 3000);
    put("processor_config.json", "{\"image_processor\":{\"max_pixels\":4000},"
                                 "\"video_processor\":{\"size\":{\"longest_edge\":5000}}}");
    assert_int_equal(read_folder(&mt_vision_qwen3)->image.max_pixels, 4000);
    assert_int_equal(read_folder(&mt_vision_qwen3)->video.max_pixels, 5000);
    remove_folder(NULL);
}

/* Qwen3's files name their levels; one that does not gets those of the class that images go through. */
static void levels_that_no_file_names_are_those_of_the_class(void **state)
{
    (void)state;
    make_folder(NULL);
    put("preprocessor_config.json", "{}");
    put("video_preprocessor_config.json", "{}");
    const mt_processor *p = read_folder(&mt_vision_qwen3);
    assert_true(p->video.levels[0][0] == -1.0f);
    assert_true(p->image.levels[0][0] < -1.79f && p->image.levels[0][0] > -1.80f); /* 0.48145466 / 0.26862954 */
    remove_folder(NULL);
}

/* A family that no file of src knows: a run for each row of tokens with a break behind it, after the picture's
   number. */
static bool square(const mt_processor *p, const mt_picture_wish *wish, uint32_t height, uint32_t width, uint32_t frames,
                   mt_pixel_size *out, mt_error *err)
{
    (void)wish, (void)frames, (void)err;
    *out = (mt_pixel_size){.height = height / 2 * p->patch, .width = width / 2 * p->patch};
    return true;
}

static bool rows_text(const mt_processor *p, const mt_picture *picture, size_t number, mt_buf *out)
{
    bool ok = mt_buf_printf(out, "%zu:", number);
    for (uint32_t i = 0; ok && i < picture->height; i++)
        ok = mt_buf_printf(out, "%s%s", p->image_pad, i + 1 < picture->height ? "/" : "!");
    return ok;
}

static uint32_t row_tokens(const mt_processor *p, const mt_picture *picture)
{
    return picture->width / p->merge;
}

static const mt_vision_family rows = {.size = square, .text = rows_text, .run = row_tokens};

static void a_new_family_is_a_table(void **state)
{
    const mt_processor p = {.family = &rows, .patch = 4, .frames = 1, .merge = 1, .image_id = 7, .image_pad = "i"};
    const uint32_t ids[] = {1, 7, 2, 7, 3, 4}, wanted[] = {1, 7, 7, 7, 2, 7, 7, 7, 3, 4};
    mt_image image;
    mt_picture picture;
    mt_expanded out;
    mt_buf text;
    mt_error err = {0};
    (void)state;
    mt_image_new(&image, 6, 4);
    assert_true(mt_processor_image(&p, &image, &(mt_picture_order){.arena = arena}, &picture, &err));
    mt_image_free(&image);
    assert_int_equal(picture.tokens, 6);
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(&p, &picture, 3, &text));
    assert_string_equal(text.data, "3:i/i!");
    mt_buf_free(&text);
    assert_true(mt_processor_expand(&p, ids, 6, &picture, 1, arena, &out, &err));
    assert_int_equal(out.count, MT_COUNT(wanted));
    assert_memory_equal(out.ids, wanted, sizeof(wanted));
    assert_int_equal(out.span_count, 2);
    assert_int_equal(out.spans[1].row, 3);
    assert_int_equal(out.spans[1].first, 5);
    assert_false(out.spans[1].block);
    for (size_t i = 0; i < out.count; i++) /* rotary positions go on as for text */
        assert_int_equal(mt_media_position(out.spans, out.span_count, i).axis[1], i);
    mt_picture *video;
    assert_false(
        mt_processor_frames(&p, &(mt_frame_list){.count = 1}, &(mt_picture_order){.arena = arena}, &video, &err));
    assert_string_equal(err.text, "this model takes no videos; send single frames as images");
}

/* The whole image in one size, its left half in another. */
static bool two_sizes(const mt_processor *p, const mt_image *image, const mt_picture_order *order, mt_picture *out,
                      mt_error *err)
{
    mt_image half;
    if (!mt_picture_new(p, &p->image, 1, (mt_pixel_size){4, 4}, 1, order, &out[0], err) ||
        !mt_picture_new(p, &p->image, 1, (mt_pixel_size){8, 4}, 1, order, &out[1], err))
        return false;
    out->more = 1;
    mt_picture_fill(p, &p->image, image, 0, 0, &out[0]);
    mt_image_crop(&half, image, 0, 0, image->width / 2, image->height);
    mt_picture_fill(p, &p->image, &half, 0, 0, &out[1]);
    mt_image_free(&half);
    return true;
}

static void views_may_have_two_sizes(void **state)
{
    const mt_vision_family family = {.image = two_sizes};
    const mt_processor p = {.family = &family, .patch = 4, .frames = 1, .merge = 1, .image_id = 7};
    const uint32_t ids[] = {7, 1, 7, 2}, wanted[] = {7, 1, 7, 7, 2};
    static const uint8_t unsigned_digest[MT_DIGEST_BYTES];
    mt_image image;
    mt_picture pictures[MT_PICTURE_SIZES];
    mt_expanded out;
    mt_error err = {0};
    (void)state;
    mt_image_new(&image, 16, 8);
    assert_true(mt_processor_image(&p, &image, &(mt_picture_order){.arena = arena}, pictures, &err));
    mt_image_free(&image);
    assert_memory_not_equal(pictures[1].digest, unsigned_digest, sizeof(unsigned_digest));
    assert_memory_not_equal(pictures[1].digest, pictures[0].digest, sizeof(unsigned_digest));
    assert_true(mt_processor_expand(&p, ids, 4, pictures, 1 + pictures->more, arena, &out, &err));
    assert_int_equal(out.count, MT_COUNT(wanted));
    assert_memory_equal(out.ids, wanted, sizeof(wanted));
    assert_int_equal(out.spans[1].picture, 1);
    assert_int_equal(out.spans[1].row, 0);
}

static mt_processor *pixtral(void)
{
    mt_processor *p = mt_arena_alloc(arena, sizeof(*p));
    *p = (mt_processor){.family = &mt_vision_pixtral,
                        .patch = 14,
                        .frames = 1,
                        .merge = 2,
                        .image_id = 7,
                        .image_pad = "[IMG]",
                        .row_end = "[IMG_BREAK]",
                        .closing = "[IMG_END]"};
    p->image = (mt_pixel_rules){.height = 1540, .width = 1540, .resample = MT_RESAMPLE_BICUBIC};
    return p;
}

/* Pixtral's are never enlarged, but filled up to whole tokens; the longest side is at most 1540. */
static void pictures_keep_their_size_until_it_is_too_large(void **state)
{
    static const struct {
        uint32_t height, width, wanted_height, wanted_width;
    } cases[] = {{5, 3, 28, 28},           {28, 56, 28, 56},         {29, 57, 56, 84},
                 {1540, 1540, 1540, 1540}, {1541, 1000, 1540, 1008}, {1000, 3000, 532, 1540}};
    const mt_processor *p = pixtral();
    const mt_picture_wish small = {.max_pixels = 5000}, low = {.low = true};
    mt_pixel_size size;
    mt_error err = {0};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        assert_true(p->family->size(p, &none, cases[i].height, cases[i].width, 0, &size, &err));
        ASSERT_SIZE(size, cases[i].wanted_height, cases[i].wanted_width);
    }
    assert_true(p->family->size(p, &small, 100, 200, 0, &size, &err));
    ASSERT_SIZE(size, 28, 84); /* 50 x 100 would be 5000 pixels; whole tokens below that */
    assert_true(p->family->size(p, &low, 1540, 1540, 0, &size, &err));
    ASSERT_SIZE(size, 504, 504);
    assert_false(p->family->size(p, &none, 1, 4000, 0, &size, &err));
    assert_string_equal(err.text, "a picture of 4000 x 1 pixels is too long for 1540 x 1540");
}

static void rows_of_a_picture_end_with_breaks(void **state)
{
    const mt_processor *p = pixtral();
    const mt_picture picture = {.views = 1, .height = 4, .width = 6, .tokens = 6, .step = 1};
    const uint32_t ids[] = {1, 7, 2, 7, 3}, wanted[] = {1, 7, 7, 7, 2, 7, 7, 7, 3};
    mt_expanded out;
    mt_buf text;
    mt_error err = {0};
    (void)state;
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(p, &picture, 0, &text));
    assert_string_equal(text.data, "[IMG][IMG_BREAK][IMG][IMG_END]");
    mt_buf_free(&text);
    assert_true(mt_processor_expand(p, ids, 5, &picture, 1, arena, &out, &err));
    assert_int_equal(out.count, MT_COUNT(wanted));
    assert_memory_equal(out.ids, wanted, sizeof(wanted));
}

/* The processor's file has the tokens' texts; where it cuts patches otherwise than the tower, it is another model's. */
static void pixtral_reads_its_processor(void **state)
{
    (void)state;
    make_folder(NULL);
    put("preprocessor_config.json", "{\"size\":{\"longest_edge\":100},\"patch_size\":{\"height\":8,\"width\":8}}");
    put("processor_config.json",
        "{\"patch_size\":8,\"spatial_merge_size\":2,\"image_token\":\"<i>\",\"image_break_token\":\"<b>\"}");
    const mt_processor *p = read_folder(&mt_vision_pixtral);
    assert_int_equal(p->image.width, 100);
    assert_int_equal(p->patches, 14 * 14); /* 100 pixels are 7 tokens */
    assert_int_equal(p->image_id, 10);
    assert_string_equal(p->image_marker, "<i>");
    assert_string_equal(p->row_end, "<b>");
    assert_string_equal(p->closing, "[IMG_END]");
    const mt_vision_spec vision = {.family = &mt_vision_pixtral, .patch = 8, .frames = 1, .merge = 1};
    const mt_model_spec spec = {.vocab = 100, .vision = &vision};
    mt_error err = {0};
    mt_config *config = mt_config_parse("{}", 2, &err);
    assert_null(mt_processor_read(folder, config, &spec, arena, &err));
    assert_string_equal(err.text,
                        "the processor's \"spatial_merge_size\" is 2, the tower's 1; they must be of one model");
    mt_config_free(config);
    remove_folder(NULL);
}

static mt_processor *lfm2(void)
{
    mt_processor *p = mt_arena_alloc(arena, sizeof(*p));
    *p = (mt_processor){.family = &mt_vision_lfm2,
                        .patch = 8,
                        .frames = 1,
                        .merge = 2,
                        .image_id = 7,
                        .image_pad = "<image>",
                        .opening = "<s>",
                        .closing = "<e>",
                        .row_end = "<t>",
                        .tiles = {.least = 2, .most = 6, .side = 32, .tolerance = 2, .thumbnail = true}};
    p->image = (mt_pixel_rules){.min_pixels = 4 * 256, .max_pixels = 12 * 256, .resample = MT_RESAMPLE_BILINEAR};
    return p;
}

/* A picture that is twice too large is cut into the grid of its shape, and comes whole behind its tiles. */
static void large_pictures_become_tiles(void **state)
{
    static const struct {
        uint32_t width, height, across, down, whole_width, whole_height;
    } cases[] = {{150, 120, 3, 2, 48, 48},   {640, 272, 2, 1, 80, 32}, {100, 400, 1, 4, 16, 96},
                 {56, 48, 0, 0, 64, 48},     {5, 3, 0, 0, 48, 32},     {96, 32, 0, 0, 96, 32},
                 {1000, 1000, 2, 2, 48, 48}, {90, 64, 0, 0, 64, 32}};
    const mt_processor *p = lfm2();
    mt_error err = {0};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_image image;
        mt_image_new(&image, cases[i].width, cases[i].height);
        mt_picture out[MT_PICTURE_SIZES];
        const mt_picture_order order = {.arena = arena}, low = {.arena = arena, .wish.low = true};
        assert_true(mt_processor_image(p, &image, &order, out, &err));
        const mt_picture *whole = &out[out->more];
        assert_int_equal(out->more, cases[i].across > 0);
        if (out->more) {
            assert_int_equal(out->across, cases[i].across);
            assert_int_equal(out->views, cases[i].across * cases[i].down);
            assert_int_equal(out->tokens, 4 * out->views);
        }
        assert_int_equal(whole->width * 8, cases[i].whole_width);
        assert_int_equal(whole->height * 8, cases[i].whole_height);
        assert_true(mt_processor_image(p, &image, &low, out, &err));
        assert_int_equal(out->more, 0);
        mt_image_free(&image);
    }
}

static void tiles_are_told_by_row_and_column(void **state)
{
    const mt_picture out[2] = {{.views = 4, .across = 2, .more = 1, .tokens = 16, .height = 4, .width = 4},
                               {.views = 1, .across = 1, .tokens = 6, .height = 4, .width = 6}};
    const uint32_t ids[] = {7, 1, 7, 2, 7, 3, 7, 4, 7};
    const mt_processor *p = lfm2();
    mt_expanded expanded;
    mt_error err = {0};
    mt_buf text;
    (void)state;
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(p, out, 0, &text));
    assert_true(mt_processor_text(p, &out[1], 1, &text));
    assert_string_equal(text.data, "<s><|img_row_1_col_1|><image><|img_row_1_col_2|><image><|img_row_2_col_1|><image>"
                                   "<|img_row_2_col_2|><image><t><image><e><s><image><e>");
    mt_buf_free(&text);
    assert_true(mt_processor_expand(p, ids, MT_COUNT(ids), out, 2, arena, &expanded, &err));
    assert_int_equal(expanded.count, 4 * 4 + 6 + 4);
    assert_int_equal(expanded.span_count, 5);
    assert_int_equal(expanded.spans[4].picture, 1);
}

static mt_processor *gemma4(void)
{
    mt_processor *p = mt_arena_alloc(arena, sizeof(*p));
    *p = (mt_processor){.family = &mt_vision_gemma4,
                        .patch = 16,
                        .frames = 1,
                        .merge = 3,
                        .places = 1200,
                        .image_pad = "<|image|>",
                        .video_pad = "<|video|>",
                        .opening = "<|image>",
                        .closing = "<image|>",
                        .max_frames = 8};
    p->image.max_pixels = 280 * 48 * 48;
    p->video.max_pixels = 70 * 48 * 48;
    return p;
}

/* Gemma 4's are made as large as a budget of tokens allows; a wish chooses among the budgets. */
static void pictures_fill_a_budget_of_tokens(void **state)
{
    static const struct {
        uint32_t height, width, wanted_height, wanted_width;
    } cases[] = {{48, 48, 768, 768},    {900, 1600, 576, 1056},   {10, 4000, 48, 48 * 280},
                 {3, 100, 96, 48 * 96}, {5000, 20, 48 * 264, 48}, {1, 3, 432, 1344}};
    static const struct {
        mt_picture_wish wish;
        uint32_t side; /* of a square picture */
    } wishes[] = {{{.max_pixels = 800000}, 768},
                  {{.max_pixels = 400000}, 528},
                  {{.max_pixels = 1}, 384},
                  {{.low = true}, 384},
                  {{.max_pixels = 3000000}, 1584},
                  {{.min_pixels = 1000000}, 1104},
                  {{.min_pixels = 1000000, .max_pixels = 1100000}, 768}};
    const mt_processor *p = gemma4();
    mt_pixel_size size;
    mt_error err = {0};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        assert_true(p->family->size(p, &none, cases[i].height, cases[i].width, 0, &size, &err));
        ASSERT_SIZE(size, cases[i].wanted_height, cases[i].wanted_width);
    }
    for (size_t i = 0; i < MT_COUNT(wishes); i++) {
        assert_true(p->family->size(p, &wishes[i].wish, 500, 500, 0, &size, &err));
        ASSERT_SIZE(size, wishes[i].side, wishes[i].side);
    }
    assert_true(p->family->size(p, &none, 500, 500, 4, &size, &err));
    ASSERT_SIZE(size, 384, 384);
    const mt_picture_wish most = {.max_pixels = 3000000};
    assert_false(p->family->size(p, &most, 1, 4000, 0, &size, &err));
    assert_string_equal(err.text, "a picture of 4000 x 1 pixels is too long; the tower has places for 1200 patches");
}

static void frames_stand_behind_minutes_and_seconds(void **state)
{
    static const double times[] = {0.4, 61.99};
    static const int64_t wanted[] = {0, 3, 6};
    const mt_processor *p = gemma4();
    const mt_picture still = {.views = 1}, video = {.views = 2, .video = true, .times = times};
    int64_t index[10];
    mt_frame_choice c = {.p = p, .total = 10, .fps = 4, .index = index};
    mt_buf text;
    (void)state;
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(p, &still, 0, &text));
    assert_string_equal(text.data, "<|image><|image|><image|>");
    mt_buf_free(&text);
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(p, &video, 0, &text));
    assert_string_equal(text.data, "00:00 <|image><|video|><image|> 01:01 <|image><|video|><image|>");
    mt_buf_free(&text);
    p->family->choose(&c, 3, true);
    assert_int_equal(c.count, 3);
    assert_memory_equal(index, wanted, sizeof(wanted));
    p->family->choose(&c, 32, true); /* no more than there are, and than may be */
    assert_int_equal(c.count, 8);
}

static void gemma4_reads_its_processor(void **state)
{
    (void)state;
    make_folder(NULL);
    put("processor_config.json",
        "{\"image_processor\":{\"max_soft_tokens\":140,\"patch_size\":8,\"do_normalize\":false},\"video_processor\":{"
        "\"num_frames\":5,\"image_mean\":[0,0,0],\"image_std\":[1,1,1]}}");
    const mt_vision_spec vision = {.family = &mt_vision_gemma4, .patch = 8, .frames = 1, .merge = 3, .layers = 1};
    const mt_model_spec spec = {.vocab = 300000, .vision = &vision};
    mt_error err = {0};
    mt_config *config = mt_config_parse("{}", 2, &err);
    const mt_processor *p = mt_processor_read(folder, config, &spec, arena, &err);
    assert_non_null(p);
    assert_int_equal(p->image.max_pixels, 140 * 24 * 24);
    assert_int_equal(p->video.max_pixels, 70 * 24 * 24);
    assert_int_equal(p->video_frames, 5);
    assert_int_equal(p->image_id, 258880);
    assert_true(p->image.levels[1][0] == -1 && p->image.levels[2][255] == 1 && p->video.levels[0][255] == 1);
    put("processor_config.json", "{\"image_processor\":{\"max_soft_tokens\":100}}");
    assert_null(mt_processor_read(folder, config, &spec, arena, &err));
    assert_string_equal(err.text, "\"max_soft_tokens\" is 100; known are 70, 140, 280, 560 and 1120");
    mt_config_free(config);
    remove_folder(NULL);
}

/* SmolVLM's are made longer first, then whole tiles, and are seen whole behind these. */
static void tiles_are_as_many_as_a_length_makes(void **state)
{
    static const struct {
        uint32_t width, height, across, down;
    } cases[] = {{56, 48, 3, 3}, {640, 272, 3, 2}, {30, 90, 1, 3}, {5, 3, 3, 2}, {10, 1000, 1, 3}};
    mt_processor p = {.family = &mt_vision_smolvlm,
                      .patch = 8,
                      .frames = 1,
                      .merge = 2,
                      .image_pad = "<image>",
                      .opening = "<f>",
                      .closing = "<f>",
                      .row_end = "<g>",
                      .tiles = {.most = 16, .side = 48, .thumbnail = true}};
    const mt_picture_order order = {.arena = arena}, low = {.arena = arena, .wish.low = true};
    mt_error err = {0};
    (void)state;
    p.image = (mt_pixel_rules){.width = 130, .resample = MT_RESAMPLE_LANCZOS};
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_image image;
        mt_picture out[MT_PICTURE_SIZES];
        mt_image_new(&image, cases[i].width, cases[i].height);
        assert_true(mt_processor_image(&p, &image, &order, out, &err));
        assert_int_equal(out->more, 1);
        assert_int_equal(out->across, cases[i].across);
        assert_int_equal(out->views, cases[i].across * cases[i].down);
        assert_int_equal(out[1].tokens, 9);
        assert_true(mt_processor_image(&p, &image, &low, out, &err));
        assert_int_equal(out->more, 0);
        mt_image_free(&image);
    }
    const mt_picture tiles = {.views = 2, .across = 1, .more = 1}, one = {.views = 1, .across = 1};
    mt_buf text;
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(&p, &tiles, 0, &text));
    assert_true(mt_processor_text(&p, &one, 1, &text));
    assert_string_equal(text.data,
                        "<f><row_1_col_1><image>\n<f><row_2_col_1><image>\n\n<f><g><image><f><f><g><image><f>");
    mt_buf_free(&text);
}

/* As the class in transformers chooses them: at a pace, up to a number, without the first and the last second
   of long ones. */
static void smolvlm_chooses_frames_evenly(void **state)
{
    static const struct {
        int64_t total;
        double rate;
        uint32_t most;
        double pace, wanted; /* wanted > 0: the request's pace */
        uint32_t count;
        int64_t second, last;
    } cases[] = {{2400, 24, 64, 1, 0, 64, 61, 2376},  {2400, 24, 8, 1, 0, 8, 360, 2376}, {100, 25, 4, 2, 0, 4, 33, 99},
                 {1, 30, 64, 1, 0, 1, 0, 0},          {10, 4, 4, 2, 0, 4, 3, 9},         {7, 30, 64, 60, 0, 7, 1, 6},
                 {300, 29.97, 5, 0.5, 0, 5, 89, 270}, {60, 1.5, 3, 1, 0, 3, 29, 58},     {100, 25, 64, 1, 2, 8, 14, 99},
                 {1000, 25, 100, 0, 0, 100, 10, 999}};
    int64_t index[128];
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const mt_processor p = {
            .family = &mt_vision_smolvlm, .max_frames = 100, .video_frames = cases[i].most, .fps = cases[i].pace};
        mt_frame_choice c = {.p = &p, .total = cases[i].total, .fps = cases[i].rate, .index = index};
        const double seconds = (double)c.total / c.fps;
        index[1] = 0;
        p.family->choose(&c, cases[i].wanted > 0 ? cases[i].wanted * seconds : cases[i].most, !(cases[i].wanted > 0));
        assert_int_equal(c.count, cases[i].count);
        assert_int_equal(index[1], cases[i].second);
        assert_int_equal(index[c.count - 1], cases[i].last);
    }
}

/* How many frames there are stands there in words, how long they are and when each was as clocks show it. */
static void smolvlm_tells_of_videos(void **state)
{
    static const struct {
        uint32_t frames;
        double seconds;
        const char *words;
    } cases[] = {{1, 59.9, "one frames from a 0:00:59"},
                 {64, 3725, "sixty-four frames from a 1:02:05"},
                 {90, 86400, "ninety frames from a 1 day, 0:00:00"},
                 {101, 200000, "one hundred and one frames from a 2 days, 7:33:20"},
                 {1005, 1, "one thousand and five frames from a 0:00:01"},
                 {1342, 1, "one thousand, three hundred and forty-two frames from a 0:00:01"},
                 {12000, 1, "twelve thousand frames from a 0:00:01"}};
    static double times[12000] = {61.5};
    const mt_processor p = {
        .family = &mt_vision_smolvlm, .image_pad = "<image>", .opening = "<f>", .closing = "<f>", .row_end = "<g>"};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const mt_picture video = {.video = true, .views = cases[i].frames, .seconds = cases[i].seconds, .times = times};
        char begin[256];
        mt_buf text;
        mt_buf_init(&text, 1 << 20);
        assert_true(mt_processor_text(&p, &video, 0, &text));
        snprintf(begin, sizeof(begin),
                 "You are provided the following series of %s [H:MM:SS] video.\n\nFrame from 01:01:<f><g><image><f>",
                 cases[i].words);
        assert_memory_equal(text.data, begin, strlen(begin));
        assert_string_equal(text.data + text.len - 2, "\n\n");
        mt_buf_free(&text);
    }
}

static void smolvlm_reads_its_processor(void **state)
{
    (void)state;
    make_folder(NULL);
    put("preprocessor_config.json",
        "{\"size\":{\"longest_edge\":128},\"max_image_size\":{\"longest_edge\":64},"
        "\"video_sampling\":{\"fps\":1,\"max_frames\":8,\"video_size\":{\"longest_edge\":64}}}");
    mt_processor p = *read_folder(&mt_vision_smolvlm);
    assert_true(p.sample && p.video_frames == 8 && p.fps == 1 && p.video.width == 128); /* "size" goes before */
    assert_true(p.image.resample == MT_RESAMPLE_LANCZOS && p.video.resample == MT_RESAMPLE_BICUBIC);
    assert_true(p.video_id == p.image_id && strcmp(p.video_marker, "<video>") == 0);
    put("video_preprocessor_config.json",
        "{\"max_image_size\":{\"longest_edge\":64},\"video_sampling\":{\"fps\":2,\"max_frames\":4,"
        "\"video_size\":{\"longest_edge\":96}}}");
    p = *read_folder(&mt_vision_smolvlm);
    assert_true(p.video.width == 96 && p.video_frames == 4);
    put("video_preprocessor_config.json", "{}");
    p = *read_folder(&mt_vision_smolvlm);
    assert_true(!p.sample && p.video.width == 128);
    remove_folder(NULL);
}

/* InternVL's are as many as its shape wants; a request that wishes for less has fewer. */
static void internvl_cuts_by_shape(void **state)
{
    static const struct {
        uint32_t width, height, across, down;
    } cases[] = {{56, 48, 4, 3}, {96, 32, 3, 1}, {640, 272, 5, 2}, {30, 90, 1, 3}, {96, 96, 2, 2}, {48, 48, 1, 1}};
    mt_processor p = {.family = &mt_vision_internvl,
                      .patch = 8,
                      .frames = 1,
                      .merge = 2,
                      .image_pad = "<c>",
                      .opening = "<i>",
                      .closing = "</i>",
                      .tiles = {.least = 1, .most = 12, .side = 48, .thumbnail = true}};
    const mt_picture_order order = {.arena = arena}, low = {.arena = arena, .wish.low = true};
    const mt_picture_order few = {.arena = arena, .wish.max_pixels = UINT64_C(48) * 48 * 2};
    mt_picture out[MT_PICTURE_SIZES];
    mt_error err = {0};
    mt_image image;
    (void)state;
    p.image = (mt_pixel_rules){.width = 48, .height = 48, .resample = MT_RESAMPLE_BICUBIC};
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const uint32_t tiles = cases[i].across * cases[i].down;
        mt_image_new(&image, cases[i].width, cases[i].height);
        assert_true(mt_processor_image(&p, &image, &order, out, &err));
        assert_int_equal(out->across, cases[i].across);
        assert_int_equal(out->views, tiles);
        assert_int_equal(out->more, tiles > 1);
        assert_true(mt_processor_image(&p, &image, &low, out, &err));
        assert_true(out->views == 1 && out->more == 0);
        assert_true(mt_processor_image(&p, &image, &few, out, &err));
        assert_true(out->views <= 2);
        mt_image_free(&image);
    }
    const mt_picture tiles[] = {{.views = 6, .tokens = 54, .more = 1}, {.views = 1, .tokens = 9}};
    const mt_picture video = {.video = true, .views = 2, .tokens = 18};
    mt_buf text;
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(&p, tiles, 0, &text));
    assert_true(mt_processor_text(&p, &tiles[1], 1, &text));
    assert_true(mt_processor_text(&p, &video, 2, &text));
    assert_string_equal(text.data, "<i><c><c></i><i><c></i>Frame1: <i><c></i>\nFrame2: <i><c></i>");
    mt_buf_free(&text);
    assert_int_equal(p.family->run(&p, tiles), 54);
    assert_int_equal(p.family->run(&p, &video), 9);
}

/* Where nothing is said all are taken, and of too many as many as there is room for, each from the middle of its
   share. */
static void internvl_chooses_frames_by_shares(void **state)
{
    static const struct {
        int64_t total;
        double wanted, shift;
        uint32_t count;
        int64_t first, last;
    } cases[] = {{10, 4, -1, 4, 1, 8},   {10, 4, 0, 4, 0, 7},       {10, 4, 3, 3, 3, 8}, {7, 9, -1, 7, 0, 6},
                 {100, 0, -1, 8, 6, 93}, {100, 0.5, -1, 1, 50, 50}, {5, 2, 9, 1, 4, 4}};
    int64_t index[16];
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const mt_processor p = {.family = &mt_vision_internvl, .max_frames = 8, .shift = cases[i].shift};
        mt_frame_choice c = {.p = &p, .total = cases[i].total, .fps = 4, .index = index};
        p.family->choose(&c, cases[i].wanted, true);
        assert_int_equal(c.count, cases[i].count);
        assert_int_equal(index[0], cases[i].first);
        assert_int_equal(index[c.count - 1], cases[i].last);
    }
}

static void internvl_reads_its_processor(void **state)
{
    (void)state;
    make_folder(NULL);
    put("preprocessor_config.json", "{\"size\":{\"height\":64,\"width\":64},\"max_patches\":6}");
    put("processor_config.json", "{\"image_seq_length\":16}");
    mt_processor p = *read_folder(&mt_vision_internvl);
    assert_true(p.tiles.most == 6 && p.tiles.least == 1 && p.tiles.side == 64 && p.image_id == 151667);
    assert_true(p.video_id == p.image_id && p.video.width == 64 && !p.sample && p.shift < 0);
    assert_int_equal(p.max_frames, MT_LIMIT_PATCHES / 64);
    assert_int_equal(p.patches, 6 * (64 + 4)); /* a square of each tile has its summary */
    put("video_preprocessor_config.json", "{\"size\":{\"height\":64,\"width\":64},\"do_sample_frames\":true,"
                                          "\"num_frames\":5,\"initial_shift\":false}");
    p = *read_folder(&mt_vision_internvl);
    assert_true(p.sample && p.video_frames == 5 && p.shift == 0);
    put("processor_config.json", "{}"); /* who does not say how many tokens a tile has makes no mistake */
    assert_int_equal(read_folder(&mt_vision_internvl)->tiles.side, 64);
    remove_folder(NULL);
}

static mt_processor minicpm(void)
{
    mt_processor p = {.family = &mt_vision_minicpm,
                      .patch = 14,
                      .frames = 1,
                      .merge = 4,
                      .nested = true,
                      .numbered = true,
                      .max_frames = 8,
                      .image_pad = "<p>",
                      .video_pad = "<v>",
                      .opening = "<i>",
                      .closing = "</i>",
                      .tile_opening = "<s>",
                      .tile_closing = "</s>",
                      .number_opening = "<n>",
                      .number_closing = "</n>",
                      .tiles = {.most = 9, .side = 448},
                      .video_tiles = {.most = 9, .side = 448}};
    p.image.resample = p.video.resample = MT_RESAMPLE_BICUBIC;
    return p;
}

/* MiniCPM's: the whole first, then slices in a grid that is nearest to the shape. Sizes are those of transformers. */
static void slices_have_the_shape_of_their_picture(void **state)
{
    static const struct {
        uint32_t width, height, whole_height, whole_width, across, down, slice_height, slice_width;
    } cases[] = {{1000, 700, 392, 560, 2, 2, 392, 560}, {448, 448, 448, 448, 0, 0, 0, 0},
                 {30, 90, 784, 280, 0, 0, 0, 0},        {1920, 1080, 336, 616, 4, 2, 448, 448},
                 {600, 2000, 840, 224, 1, 5, 392, 560}, {449, 448, 448, 448, 2, 1, 616, 336},
                 {5000, 40, 56, 4984, 0, 0, 0, 0},      {640, 480, 392, 504, 2, 1, 560, 392}};
    const mt_processor p = minicpm();
    const mt_picture_order order = {.arena = arena}, low = {.arena = arena, .wish.low = true};
    mt_picture out[MT_PICTURE_SIZES];
    mt_error err = {0};
    mt_image image;
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_image_new(&image, cases[i].width, cases[i].height);
        assert_true(mt_processor_image(&p, &image, &order, out, &err));
        assert_int_equal(out->height * 14, cases[i].whole_height);
        assert_int_equal(out->width * 14, cases[i].whole_width);
        assert_int_equal(out->more, cases[i].across > 0);
        if (out->more) {
            assert_int_equal(out[1].across, cases[i].across);
            assert_int_equal(out[1].views, cases[i].across * cases[i].down);
            assert_int_equal(out[1].height * 14, cases[i].slice_height);
            assert_int_equal(out[1].width * 14, cases[i].slice_width);
        }
        assert_true(mt_processor_image(&p, &image, &low, out, &err));
        assert_int_equal(out->more, 0);
        mt_image_free(&image);
    }
}

/* Each is seen by itself, and followed by its slices; all of them are one video's. */
static void frames_may_be_pictures_of_their_own(void **state)
{
    const mt_processor p = minicpm();
    album a = {0};
    const mt_frame_list list = {.count = 3, .next = album_next, .ctx = &a};
    mt_picture *out, some[5] = {{.video = true, .views = 1, .more = 4},
                                {.views = 4, .across = 2},
                                {.views = 1},
                                {.views = 2, .across = 2},
                                {.views = 1}};
    mt_error err = {0};
    mt_buf text;
    (void)state;
    assert_true(mt_processor_frames(&p, &list, &(mt_picture_order){.arena = arena}, &out, &err));
    assert_int_equal(out->more, 2);
    for (size_t i = 0; i < 3; i++)
        assert_true(out[i].video && out[i].views == 1 && (i == 0 || out[i].more == 0));
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(&p, some, 3, &text));
    assert_string_equal(text.data, "<n>3</n><i><v></i><s><v></s><s><v></s>\n<s><v></s><s><v></s><i><v></i>"
                                   "<s><v></s><s><v></s><i><v></i>");
    mt_buf_free(&text);
}

static void minicpm_takes_a_frame_of_each_second(void **state)
{
    static const struct {
        int64_t total;
        double wanted;
        bool fixed;
        uint32_t count;
        int64_t second, last;
    } cases[] = {{10, 2.5, false, 3, 4, 8}, {32, 8, false, 8, 4, 28},  {100, 25, false, 8, 14, 99},
                 {100, 5, true, 5, 24, 99}, {1, 0.25, false, 1, 0, 0}, {10, 5, false, 5, 2, 8}};
    const mt_processor p = minicpm();
    int64_t index[16];
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_frame_choice c = {.p = &p, .total = cases[i].total, .fps = 4, .index = index};
        index[1] = 0;
        p.family->choose(&c, cases[i].wanted, cases[i].fixed);
        assert_int_equal(c.count, cases[i].count);
        assert_int_equal(index[0], 0);
        assert_int_equal(index[1], cases[i].second);
        assert_int_equal(index[c.count - 1], cases[i].last);
    }
}

/* Patches of a square of 2 x 2 lie together, since they become one row. */
static void patches_may_be_nested(void **state)
{
    static const uint32_t places[16][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3},
                                           {2, 0}, {2, 1}, {3, 0}, {3, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 3}};
    uint32_t y, x;
    (void)state;
    for (uint32_t i = 0; i < 16; i++) {
        mt_picture_inner(4, true, i, &y, &x);
        assert_true(y == places[i][0] && x == places[i][1]);
        mt_picture_inner(4, false, i, &y, &x);
        assert_true(y == i / 4 && x == i % 4);
    }
}

/* Older classes go by a pace and spread what they take of a long video; newer ones go by its length. */
static void glm_chooses_frames_by_pace_or_by_length(void **state)
{
    static const struct {
        int64_t total;
        double fps;
        uint32_t count;
        int64_t sum;
        uint32_t newer_count;
        int64_t newer_sum;
    } cases[] = {
        {10, 4, 6, 28, 10, 45},
        {300, 30, 20, 2850, 60, 8875},
        {1000, 25, 80, 39520, 80, 39520},
        {7501, 25, 600, 2250598, 300, 1121250},
        {30000, 30, 600, 9000298, 640, 9599361},
        {100000, 24, 600, 30000298, 640, 31999365},
        {3, 1, 4, 5, 4, 5},
        {50, 10, 10, 225, 30, 735},
    };
    int64_t index[1000];
    const mt_processor p = {.frames = 2, .max_frames = 768, .max_seconds = 300};
    (void)state;
    for (size_t i = 0; i < 2 * MT_COUNT(cases); i++) {
        const bool newer = i % 2;
        mt_frame_choice c = {.p = &p, .total = cases[i / 2].total, .fps = cases[i / 2].fps, .index = index};
        mt_vision_glm4v.choose(&c, newer ? 0 : (double)c.total / c.fps * 2, false);
        int64_t sum = 0;
        for (uint32_t j = 0; j < c.count; j++)
            sum += index[j];
        assert_int_equal(c.count, newer ? cases[i / 2].newer_count : cases[i / 2].count);
        assert_int_equal(sum, newer ? cases[i / 2].newer_sum : cases[i / 2].sum);
    }
}

/* The classes that files name decide how times are written and frames are chosen. A video's tokens are an image's. */
static void glm_reads_its_processor(void **state)
{
    (void)state;
    make_folder(NULL);
    put("preprocessor_config.json",
        "{\"size\":{\"shortest_edge\":1024,\"longest_edge\":9216},\"merge_size\":2,"
        "\"patch_size\":8,\"temporal_patch_size\":2,\"processor_class\":\"Glm46VProcessor\"}");
    mt_processor p = *read_folder(&mt_vision_glm4v);
    assert_true(p.spelt && p.fps == 2 && p.video_id == p.image_id);
    assert_int_equal(p.image_id, 151343);
    assert_int_equal(p.video.max_pixels, 9216);
    assert_int_equal(p.patches, 72);
    put("video_preprocessor_config.json", "{\"video_processor_type\":\"Glm46VVideoProcessor\",\"merge_size\":2,"
                                          "\"patch_size\":8,\"temporal_patch_size\":2}");
    p = *read_folder(&mt_vision_glm4v);
    assert_true(p.fps == 0 && p.max_frames == 640);
    const double times[] = {0.25, 1.75};
    const mt_picture video = {.video = true, .views = 2, .times = times};
    mt_buf text;
    mt_buf_init(&text, 1024);
    assert_true(mt_processor_text(&p, &video, 0, &text));
    p.spelt = false;
    assert_true(mt_processor_text(&p, &video, 0, &text));
    assert_string_equal(text.data, "<|begin_of_image|><|image|><|end_of_image|>0.2 seconds"
                                   "<|begin_of_image|><|image|><|end_of_image|>1.8 seconds"
                                   "<|begin_of_image|><|image|><|end_of_image|>0"
                                   "<|begin_of_image|><|image|><|end_of_image|>1");
    mt_buf_free(&text);
    remove_folder(NULL);
}

/* Vocabularies differ; what config.json does not say, the family does. */
static void pad_tokens_are_the_familys(void **state)
{
    (void)state;
    make_folder(NULL);
    assert_int_equal(read_folder(&mt_vision_qwen2)->image_id, 151655);
    assert_int_equal(read_folder(&mt_vision_qwen3)->video_id, 151656);
    assert_int_equal(read_folder(&mt_vision_qwen3_5)->image_id, 248056);
    assert_int_equal(read_folder(&mt_vision_qwen3_5)->video_id, 248057);
    remove_folder(NULL);
}

static int set_up(void **state)
{
    (void)state;
    arena = mt_arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mt_arena_free(arena);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(sizes_are_those_of_transformers),
    TEST(requests_may_wish_for_other_sizes),
    TEST(frames_share_the_pixels_of_a_video),
    TEST(all_frames_of_a_list_are_seen),
    TEST(a_list_ends_with_a_frame_that_fails),
    TEST(long_pictures_are_refused),
    TEST(patches_of_a_token_lie_together),
    TEST(placeholders_become_runs_with_positions),
    TEST(places_and_pictures_must_be_as_many),
    TEST(files_count_in_the_order_of_transformers),
    TEST(levels_that_no_file_names_are_those_of_the_class),
    TEST(pad_tokens_are_the_familys),
    TEST(long_images_are_shown_in_pieces),
    TEST(a_new_family_is_a_table),
    TEST(views_may_have_two_sizes),
    TEST(pictures_keep_their_size_until_it_is_too_large),
    TEST(rows_of_a_picture_end_with_breaks),
    TEST(pixtral_reads_its_processor),
    TEST(pictures_fill_a_budget_of_tokens),
    TEST(frames_stand_behind_minutes_and_seconds),
    TEST(gemma4_reads_its_processor),
    TEST(large_pictures_become_tiles),
    TEST(tiles_are_told_by_row_and_column),
    TEST(glm_chooses_frames_by_pace_or_by_length),
    TEST(glm_reads_its_processor),
    TEST(tiles_are_as_many_as_a_length_makes),
    TEST(smolvlm_chooses_frames_evenly),
    TEST(smolvlm_tells_of_videos),
    TEST(smolvlm_reads_its_processor),
    TEST(internvl_cuts_by_shape),
    TEST(internvl_chooses_frames_by_shares),
    TEST(internvl_reads_its_processor),
    TEST(slices_have_the_shape_of_their_picture),
    TEST(frames_may_be_pictures_of_their_own),
    TEST(minicpm_takes_a_frame_of_each_second),
    TEST(patches_may_be_nested),
};
UNIT_MAIN(tests)
