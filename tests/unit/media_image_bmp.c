/* BMP files that are written here, in all the ways in which a header can say where its colours and pixels are. */
#include "media_common.h"

#include "base/compiler.h"

enum { RAW = 0, RLE8 = 1, RLE4 = 2, JPEG = 4, FIELDS = 3, ALPHA_FIELDS = 6 };
enum { MOST = 200 };

#define BYTES(text) text, sizeof(text) - 1

/* rest: what comes behind the first 40 bytes of the header, or all 12. */
typedef struct file {
    unsigned head, width, height, bits, compression, said, count;
    const char *rest;
    size_t rest_size;
    const char *told; /* pixels, or why it is refused */
    bool refused;
} file;

static void put32(uint8_t *at, unsigned number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(number >> 8 * i);
}

/* Returns the size. What is behind the end is 0xFF and not read. */
static size_t write_file(uint8_t data[MOST], const file *f)
{
    const size_t begin = f->head == 12 ? 26 : 54;

    memset(data, 0xFF, MOST);
    memset(data, 0, begin);
    memcpy(data, "BM", 2);
    put32(data + 10, f->said);
    put32(data + 14, f->head);
    put32(data + 18, f->head == 12 ? f->width | f->height << 16 : f->width);
    if (f->head == 12) {
        put32(data + 22, 1 | f->bits << 16);
    } else {
        put32(data + 22, f->height);
        put32(data + 26, 1 | f->bits << 16);
        put32(data + 30, f->compression);
        put32(data + 46, f->count);
    }
    memcpy(data + begin, f->rest, f->rest_size);
    return begin + f->rest_size;
}

static void expect(const file *f, size_t number)
{
    mt_media_limits limits = mt_media_limits_default();
    uint8_t data[MOST];
    const size_t size = write_file(data, f);
    mt_image image;
    mt_error err = {0};
    const bool read = mt_image_decode(&image, data, size, &limits, NULL, &err);

    if (read == f->refused)
        fail_msg("file %zu: %s", number, read ? "was read" : err.text);
    if (f->refused)
        assert_non_null(strstr(err.text, f->told));
    else if (memcmp(image.pixels, f->told, (size_t)f->width * f->height * 3) != 0)
        fail_msg("file %zu: other pixels", number);
    mt_image_free(&image);
}

static void expect_all(const file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect(&files[i], i);
}

#define NONE8 "\0\0\0\0\0\0\0\0"
#define RGB_FIELDS "\xFF\0\0\0\0\xFF\0\0\0\0\xFF\0" /* red first, unlike usual ones */
#define UNKNOWN(bits, compression) "not known here (" bits " bits with compression " compression ")"

/* Where a header does not say where pixels begin, they are behind it, its fields and its colours. */
static void pixels_are_found(void **state)
{
    static const file files[] = {
        {12, 2, 1, 24, RAW, 0, 0, BYTES("\3\2\1\6\5\4\0\0"), "\1\2\3\4\5\6", 0},
        {40, 2, 1, 24, RAW, 0, 0, BYTES("\3\2\1\6\5\4\0\0"), "\1\2\3\4\5\6", 0},
        {52, 1, 1, 24, RAW, 0, 0, BYTES(NONE8 "\0\0\0\0\3\2\1"), "\1\2\3", 0},
        {56, 1, 1, 24, RAW, 0, 0, BYTES(NONE8 NONE8 "\3\2\1"), "\1\2\3", 0},
        {64, 1, 1, 24, RAW, 0, 0, BYTES(NONE8 NONE8 NONE8 "\3\2\1"), "\1\2\3", 0},
        {40, 1, 1, 32, FIELDS, 0, 0, BYTES(RGB_FIELDS "\1\2\3\0"), "\1\2\3", 0},
        {40, 1, 1, 32, ALPHA_FIELDS, 0, 0, BYTES(RGB_FIELDS "\0\0\0\0\1\2\3\0"), "\1\2\3", 0},
        {56, 1, 1, 32, FIELDS, 0, 0, BYTES(RGB_FIELDS "\0\0\0\0\1\2\3\0"), "\1\2\3", 0},
        {40, 1, 1, 32, FIELDS, 54, 0, BYTES(RGB_FIELDS "\1\2\3\0"), "\xFF\0\0", 0},
        {40, 1, 1, 32, FIELDS, 0, 0, BYTES(NONE8 "\0\0\0\0\3\2\1\0"), "\1\2\3", 0},
        {40, 2, 1, 8, RAW, 0, 2, BYTES("\3\2\1\0\6\5\4\0\1\0\0\0"), "\4\5\6\1\2\3", 0},
        {40, 2, 1, 8, RAW, 54, 2, BYTES("\3\2\1\0\6\5\4\0\1\0\0\0"), "\4\5\6\1\2\3", 0},
        {40, 3, 1, 8, RAW, 0, 2, BYTES("\0\0\0\0\1\1\1\0\1\5\xFF\0"), "\1\1\1\5\5\5\xFF\xFF\xFF", 0},
        {40, 1, 1, 1, RAW, 0, 0, BYTES("\3\2\1\0\6\5\4\0\x80\0\0\0"), "\4\5\6", 0},
    };

    (void)state;
    expect_all(files, MT_COUNT(files));
}

static void runs_may_end_in_several_ways(void **state)
{
    static const file files[] = {
        {40, 2, 1, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\2\1"), "\4\5\6\4\5\6", 0},     /* with the last pixel */
        {40, 2, 1, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\1\1\0\0"), "\4\5\6\1\2\3", 0}, /* with the last row */
        {40, 2, 1, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\1\1\0\1"), "\4\5\6\1\2\3", 0}, /* where it says so */
        {40, 2, 1, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\1\1"), "ends early", 1},
        {40, 2, 2, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\2\1"), "ends early", 1},
        {40, 2, 2, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\0\2"), "ends early", 1},
        {40, 2, 2, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\0\2\1"), "ends early", 1},
        {40, 2, 2, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\0\2\1\1\1\1"), "\1\2\3\4\5\6\1\2\3\1\2\3", 0},
        {40, 3, 1, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\0\3\0\1\1"), "\1\2\3\4\5\6\4\5\6", 0},
        {40, 3, 1, 8, RLE8, 0, 2, BYTES("\3\2\1\0\6\5\4\0\0\3\0\1"), "ends early", 1},
        {40, 6, 1, 4, RLE4, 0, 2, BYTES("\3\2\1\0\6\5\4\0\0\5\1\1\1\0\1\x10"), "\1\2\3\4\5\6\1\2\3\4\5\6\1\2\3\4\5\6",
         0},
        {40, 5, 1, 4, RLE4, 0, 2, BYTES("\3\2\1\0\6\5\4\0\0\5\1\1"), "ends early", 1},
    };

    (void)state;
    expect_all(files, MT_COUNT(files));
}

static void what_is_wrong_is_said(void **state)
{
    static const file files[] = {
        {40, 1, 1, 1, RLE8, 0, 0, BYTES(""), UNKNOWN("1", "1"), 1},
        {40, 1, 1, 4, RLE8, 0, 0, BYTES(""), UNKNOWN("4", "1"), 1},
        {40, 1, 1, 8, RLE4, 0, 0, BYTES(""), UNKNOWN("8", "2"), 1},
        {40, 1, 1, 16, RLE8, 0, 0, BYTES(""), UNKNOWN("16", "1"), 1},
        {40, 1, 1, 24, ALPHA_FIELDS, 0, 0, BYTES(""), UNKNOWN("24", "6"), 1},
        {40, 1, 1, 32, JPEG, 0, 0, BYTES(""), UNKNOWN("32", "4"), 1},
        {41, 1, 1, 24, RAW, 0, 0, BYTES("\0\3\2\1"), "its header has 41 bytes", 1},
        {40, 1, 1, 16, FIELDS, 0, 0, BYTES(NONE8 "\0\0\0\0\0\0\0\0"), "a bit field is empty or has gaps", 1},
        {40, 1, 1, 32, FIELDS, 0, 0, BYTES("\xFF\0\xFF\0\0\xFF\0\0\xFF\0\0\0\0\0\0\0"),
         "a bit field is empty or has gaps", 1},
        {40, 1, 1, 24, FIELDS, 0, 0, BYTES(RGB_FIELDS "\1\2\3\0"), "it has other bit fields than 24 bits may have", 1},
        {40, 1, 0, 24, RAW, 0, 0, BYTES("\1\2\3\0"), "is 1x0 pixels", 1},
        {40, 2, 2, 24, RAW, 0, 0, BYTES("\3\2\1\6\5\4\0\0\3\2\1\6\5"), "ends early", 1},
    };

    (void)state;
    expect_all(files, MT_COUNT(files));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pixels_are_found),
    cmocka_unit_test(runs_may_end_in_several_ways),
    cmocka_unit_test(what_is_wrong_is_said),
};

UNIT_MAIN(tests)
