/* How long a photograph takes: decoding, and resizing as each library does it.
   usage: bench_media [FILE]      without one, pixels are made up and only resized */
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "media/resize.h"

static double milliseconds(uint64_t since)
{
    return (double)(mt_clock_ns() - since) / 1e6;
}

static void measure(const mt_image *image, mt_resample resample, mt_resize_like like, const char *name)
{
    double best = 1e9;

    for (int i = 0; i < 5; i++) {
        uint64_t since = mt_clock_ns();
        mt_image made;
        double took;

        mt_image_resize(&made, image, 1152, 864, resample, like);
        took = milliseconds(since);
        best = took < best ? took : best;
        mt_image_free(&made);
    }
    printf("%ux%u to 1152x864, %-15s %6.1f ms\n", image->width, image->height, name, best);
}

static bool load(mt_image *image, const char *path)
{
    mt_media_limits limits = mt_media_limits_default();
    mt_error err;
    mt_file file;
    uint64_t since;
    bool ok;

    if (!mt_file_map(&file, path, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return false;
    }
    since = mt_clock_ns();
    ok = mt_image_decode(image, file.data, file.size, &limits, NULL, &err);
    if (ok)
        printf("%s: %zu bytes decoded in %.1f ms\n", path, file.size, milliseconds(since));
    else
        fprintf(stderr, "%s: %s\n", path, err.text);
    mt_file_unmap(&file);
    return ok;
}

int main(int argc, char **argv)
{
    mt_image image;

    if (argc > 1) {
        if (!load(&image, argv[1]))
            return 1;
    } else {
        mt_image_new(&image, 4000, 3000);
        for (size_t i = 0; i < (size_t)4000 * 3000 * 3; i++)
            image.pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    }
    measure(&image, MT_RESAMPLE_BICUBIC, MT_RESIZE_PIL, "bicubic, PIL");
    measure(&image, MT_RESAMPLE_BICUBIC, MT_RESIZE_TORCH, "bicubic, torch");
    measure(&image, MT_RESAMPLE_BILINEAR, MT_RESIZE_PIL, "bilinear, PIL");
    measure(&image, MT_RESAMPLE_BILINEAR, MT_RESIZE_TORCH, "bilinear, torch");
    mt_image_free(&image);
    return 0;
}
