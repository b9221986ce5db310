#include "media_common.h"

#include "media/resize.h"

static mt_resample resample_named(const char *name)
{
    if (strcmp(name, "nearest") == 0)
        return MT_RESAMPLE_NEAREST;
    if (strcmp(name, "lanczos") == 0)
        return MT_RESAMPLE_LANCZOS;
    return strcmp(name, "bilinear") == 0 ? MT_RESAMPLE_BILINEAR : MT_RESAMPLE_BICUBIC;
}

static void expect_resized(const char *file, const char *filter, unsigned width, unsigned height, const char *hex)
{
    mt_image image, made;

    media_load(&image, "images", file);
    mt_image_resize(&made, &image, width, height, resample_named(filter));
    assert_int_equal(made.width, width);
    assert_int_equal(made.height, height);
    if (strcmp(media_hex(&made), hex) != 0)
        fail_msg("%s to %ux%u by %s: the pixels differ", file, width, height, filter);
    mt_image_free(&made);
    mt_image_free(&image);
}

static void pixels_are_those_of_torchvision(void **state)
{
    FILE *list = fopen(media_path("", "resize.txt"), "r");
    char file[128], filter[16], hex[80];
    unsigned width, height;
    int count = 0;

    (void)state;
    assert_non_null(list);
    while (fscanf(list, "%127s %15s %u %u %79s", file, filter, &width, &height, hex) == 5) {
        expect_resized(file, filter, width, height, hex);
        count++;
    }
    fclose(list);
    assert_true(count > 40);
}

/* One colour stays that colour at every size: weights add up to one. */
static void a_plain_picture_stays_plain(void **state)
{
    static const mt_resample filters[] = {MT_RESAMPLE_NEAREST, MT_RESAMPLE_BILINEAR, MT_RESAMPLE_BICUBIC,
                                          MT_RESAMPLE_LANCZOS};
    mt_image image, made;

    (void)state;
    mt_image_new(&image, 37, 19);
    memset(image.pixels, 255, 37 * 19 * 3);
    for (size_t f = 0; f < MT_COUNT(filters); f++)
        for (uint32_t size = 1; size < 90; size += 4) {
            mt_image_resize(&made, &image, size, 90 - size, filters[f]);
            for (size_t i = 0; i < (size_t)made.width * made.height * 3; i++)
                assert_int_equal(made.pixels[i], 255);
            mt_image_free(&made);
        }
    mt_image_free(&image);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pixels_are_those_of_torchvision),
    cmocka_unit_test(a_plain_picture_stays_plain),
};
UNIT_MAIN(tests)
