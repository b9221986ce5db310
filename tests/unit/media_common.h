/* The pictures and videos of tests/media, and what other libraries made of them. */
#ifndef MT_TESTS_MEDIA_COMMON_H
#define MT_TESTS_MEDIA_COMMON_H

#include "unit.h"

#include <openssl/evp.h>

#include "base/file.h"
#include "media/image.h"

/* MOTET_MEDIA names another folder that tests/media/make.py wrote. */
static inline const char *media_path(const char *folder, const char *name)
{
    static char path[4096];
    const char *root = getenv("MOTET_MEDIA");

    snprintf(path, sizeof(path), "%s/%s%s%s", root ? root : "tests/media", folder, *folder ? "/" : "", name);
    return path;
}

static inline void media_read(mt_buf *buf, const char *folder, const char *name)
{
    mt_error err;

    mt_buf_init(buf, 1 << 24);
    if (!mt_file_read(buf, media_path(folder, name), &err))
        fail_msg("%s", err.text);
}

static inline bool media_decode(mt_image *image, const mt_buf *buf, mt_error *err)
{
    mt_media_limits limits = mt_media_limits_default();

    return mt_image_decode(image, buf->data, buf->len, &limits, NULL, err);
}

static inline void media_load(mt_image *image, const char *folder, const char *name)
{
    mt_error err;
    mt_buf buf;

    media_read(&buf, folder, name);
    if (!media_decode(image, &buf, &err))
        fail_msg("%s: %s", name, err.text);
    mt_buf_free(&buf);
}

/* SHA-256 of the pixels, as hexadecimal digits. */
static inline const char *media_hex(const mt_image *image)
{
    static char text[65];
    unsigned char digest[32];
    size_t len = sizeof(digest);

    assert_int_equal(
        EVP_Q_digest(NULL, "SHA256", NULL, image->pixels, (size_t)image->width * image->height * 3, digest, &len), 1);
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

/* The largest difference of two pictures of one size. */
static inline int media_distance(const mt_image *a, const mt_image *b)
{
    int most = 0;

    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    for (size_t i = 0; i < (size_t)a->width * a->height * 3; i++)
        if (abs(a->pixels[i] - b->pixels[i]) > most)
            most = abs(a->pixels[i] - b->pixels[i]);
    return most;
}

/* How far the picture is from expected/NAME.png. */
static inline int media_off(const mt_image *image, const char *name)
{
    char file[512];
    mt_image wanted;
    int off;

    snprintf(file, sizeof(file), "%s.png", name);
    media_load(&wanted, "expected", file);
    off = media_distance(image, &wanted);
    mt_image_free(&wanted);
    return off;
}

#endif
