#include "media_common.h"

#include "media/resize.h"

static mt_resample resample_named(const char *name)
{
    if (strcmp(name, "nearest") == 0)
        return MT_RESAMPLE_NEAREST;
    return strcmp(name, "bilinear") == 0 ? MT_RESAMPLE_BILINEAR : MT_RESAMPLE_BICUBIC;
}

static void expect_resized(const char *file, const char *like, const char *filter, unsigned width, unsigned height,
                           int tolerance, const char *hex)
{
    mt_image image, made;
    char expected[256];

    media_load(&image, "images", file);
    mt_image_resize(&made, &image, width, height, resample_named(filter),
                    strcmp(like, "pil") == 0 ? MT_RESIZE_PIL : MT_RESIZE_TORCH);
    assert_int_equal(made.width, width);
    assert_int_equal(made.height, height);
    snprintf(expected, sizeof(expected), "%.*s-%s-%s", (int)strcspn(file, "."), file, filter, like);
    if (tolerance == 0 && strcmp(media_hex(&made), hex) != 0)
        fail_msg("%s to %ux%u by %s as %s: the pixels differ", file, width, height, filter, like);
    if (tolerance > 0 && media_off(&made, expected) > tolerance)
        fail_msg("%s to %ux%u by %s as %s: is %d levels off", file, width, height, filter, like,
                 media_off(&made, expected));
    mt_image_free(&made);
    mt_image_free(&image);
}

static void pixels_are_those_of_pillow_and_torchvision(void **state)
{
    FILE *list = fopen(media_path("", "resize.txt"), "r");
    char file[128], like[16], filter[16], hex[80];
    unsigned width, height;
    int tolerance, count = 0;

    (void)state;
    assert_non_null(list);
    while (fscanf(list, "%127s %15s %15s %u %u %d %79s", file, like, filter, &width, &height, &tolerance, hex) == 7) {
        expect_resized(file, like, filter, width, height, tolerance, hex);
        count++;
    }
    fclose(list);
    assert_true(count > 60);
}

/* One colour stays that colour at every size: weights add up to one. */
static void a_plain_picture_stays_plain(void **state)
{
    static const mt_resample filters[] = {MT_RESAMPLE_NEAREST, MT_RESAMPLE_BILINEAR, MT_RESAMPLE_BICUBIC};
    mt_image image, made;

    (void)state;
    mt_image_new(&image, 37, 19);
    memset(image.pixels, 255, 37 * 19 * 3);
    for (size_t f = 0; f < 3; f++)
        for (uint32_t size = 1; size < 90; size += 4)
            for (int like = 0; like < 2; like++) {
                mt_image_resize(&made, &image, size, 90 - size, filters[f], (mt_resize_like)like);
                for (size_t i = 0; i < (size_t)made.width * made.height * 3; i++)
                    assert_int_equal(made.pixels[i], 255);
                mt_image_free(&made);
            }
    mt_image_free(&image);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pixels_are_those_of_pillow_and_torchvision),
    cmocka_unit_test(a_plain_picture_stays_plain),
};
UNIT_MAIN(tests)
