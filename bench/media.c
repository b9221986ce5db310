/* How long a photograph takes: decoding, and resizing as each library does it.
   In a process of its own, too, as the server decodes.
   usage: bench_media [FILE]      without one, pixels are made up and only resized */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "media/decode_process.h"
#include "media/resize.h"

static double milliseconds(uint64_t since)
{
    return (double)(mt_clock_ns() - since) / 1e6;
}

static void measure(const mt_image *image, mt_resample resample, const char *name)
{
    double best = 1e9;

    for (int i = 0; i < 5; i++) {
        uint64_t since = mt_clock_ns();
        mt_image made;
        double took;

        mt_image_resize(&made, image, 1152, 864, resample);
        took = milliseconds(since);
        best = took < best ? took : best;
        mt_image_free(&made);
    }
    printf("%ux%u to 1152x864, %-8s %6.1f ms\n", image->width, image->height, name, best);
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

/* A request with this one picture: its process, the picture, and its end. */
static bool develop(const mt_file *file, double *took)
{
    const mt_media_limits limits = mt_media_limits_default();
    const mt_media_watch watch = {0};
    const uint64_t since = mt_clock_ns();
    mt_error err;
    mt_decode_client *d = mt_decode_client_new(&limits, &watch, 1 << 30, &err);
    mt_image image = {0};
    const bool ok = d && mt_decode_client_image(d, &image, file->data, file->size, NULL, NULL, &err);
    uint64_t sum = 0;

    for (size_t i = 0; ok && i < (size_t)image.width * image.height * 3; i += 4096) /* as whoever reads it would */
        sum += image.pixels[i];
    mt_decode_client_free(d);
    *took = milliseconds(since) + (sum == 1 ? 1e-9 : 0);
    mt_image_free(&image);
    return ok;
}

static bool decode(const mt_file *file, double *took)
{
    const mt_media_limits limits = mt_media_limits_default();
    const uint64_t since = mt_clock_ns();
    mt_image image;
    mt_error err;
    const bool ok = mt_image_decode(&image, file->data, file->size, &limits, NULL, &err);

    *took = milliseconds(since);
    mt_image_free(&image);
    return ok;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* In turns, so that both meet the same machine. */
static void compare_places(const char *path)
{
    enum { ROUNDS = 51 };
    double here[ROUNDS], there[ROUNDS];
    mt_error err;
    mt_file file;

    if (!mt_decode_process_is_open() || !mt_file_map(&file, path, &err))
        return;
    for (int i = 0; i < ROUNDS; i++)
        if (!decode(&file, &here[i]) || !develop(&file, &there[i]))
            return;
    qsort(here, ROUNDS, sizeof(double), compare);
    qsort(there, ROUNDS, sizeof(double), compare);
    printf("decoded here in %.2f ms, in a process of its own in %.2f ms (medians of %d)\n", here[ROUNDS / 2],
           there[ROUNDS / 2], ROUNDS);
    mt_file_unmap(&file);
}

int main(int argc, char **argv)
{
    mt_image image;

    mt_alloc_setup();
    mt_decode_process_open();
    if (argc > 1)
        compare_places(argv[1]);

    if (argc > 1) {
        if (!load(&image, argv[1]))
            return 1;
    } else {
        mt_image_new(&image, 4000, 3000);
        for (size_t i = 0; i < (size_t)4000 * 3000 * 3; i++)
            image.pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    }
    measure(&image, MT_RESAMPLE_BILINEAR, "bilinear");
    measure(&image, MT_RESAMPLE_BICUBIC, "bicubic");
    measure(&image, MT_RESAMPLE_LANCZOS, "Lanczos");
    mt_image_free(&image);
    return 0;
}
