/* Tiny checkpoints for the tests of src/weights: files in a folder that the test leaves empty. */
#ifndef MT_TESTS_WEIGHTS_FILES_H
#define MT_TESTS_WEIGHTS_FILES_H

#include "unit.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"

static char folder[] = "/tmp/motet-weights-XXXXXX";

static inline int make_folder(void **state)
{
    (void)state;
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    DIR *d = opendir(folder);
    char path[512];

    (void)state;
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        unlink(path);
    }
    closedir(d);
    return rmdir(folder);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

static inline void put_bytes(const char *name, const void *data, size_t len)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    fclose(file);
}

static inline void put_text(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

static inline void remove_file(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

/* A file image: the length, the header as it is, and `bytes` of data that count up from zero. Free with mt_buf_free. */
static inline mt_buf make_image(const char *header, size_t bytes)
{
    mt_buf image;
    size_t len = strlen(header);

    mt_buf_init(&image, 1u << 24);
    for (unsigned i = 0; i < 8; i++)
        mt_buf_add(&image, &(char){(char)((uint64_t)len >> (8 * i) & 255)}, 1);
    mt_buf_puts(&image, header);
    for (size_t i = 0; i < bytes; i++)
        mt_buf_add(&image, &(char){(char)(i & 255)}, 1);
    assert_false(image.full);
    return image;
}

/* A tensor to be written; data NULL: bytes that count up. */
typedef struct tensor_row {
    const char *name, *dtype, *shape; /* "4, 8" */
    size_t bytes;
    const void *data;
} tensor_row;

static inline void put_tensors(const char *file, const tensor_row *rows, size_t count)
{
    mt_buf header, image;
    size_t at = 0;

    mt_buf_init(&header, 1u << 20);
    mt_buf_puts(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < count; i++) {
        mt_buf_printf(&header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", rows[i].name,
                      rows[i].dtype, rows[i].shape, at, at + rows[i].bytes);
        at += rows[i].bytes;
    }
    mt_buf_puts(&header, "}");
    image = make_image(header.data, at);
    at = 8 + header.len;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].data)
            memcpy(image.data + at, rows[i].data, rows[i].bytes);
        at += rows[i].bytes;
    }
    put_bytes(file, image.data, image.len);
    mt_buf_free(&image);
    mt_buf_free(&header);
}

#define PUT_TENSORS(file, ...) \
    put_tensors(file, (const tensor_row[]){__VA_ARGS__}, sizeof((const tensor_row[]){__VA_ARGS__}) / sizeof(tensor_row))

/* Compares a sentence with the expected one, in which %s stands for the folder. */
static inline void expect_sentence(const mt_error *err, mt_code code, const char *fmt)
{
    char wanted[MT_LIMIT_ERROR_TEXT];
    size_t len = 0;

    for (const char *p = fmt; *p; p++) {
        if (p[0] == '%' && p[1] == 's') {
            len += (size_t)snprintf(wanted + len, sizeof(wanted) - len, "%s", folder);
            p++;
        } else {
            wanted[len++] = *p;
        }
        assert_true(len + 1 < sizeof(wanted));
    }
    wanted[len] = '\0';
    assert_string_equal(err->text, wanted);
    assert_int_equal(err->code, code);
}

#endif
