/* PNG files that are written here: texts that say how a picture is to be turned, and a table of all colours. */
#include "media_common.h"

#include <zlib.h>

#include "base/buf.h"
#include "media/codec.h"

#define XMP "XML:com.adobe.xmp"
#define PROFILE "Raw profile type exif"
#define EXIF_3 "49492A0008000000\n010012010300010000000300ffFF\n"
#define EXIF_NONE "49492A00080000000100000003000100000003000000"
#define BODY(text) text, sizeof(text) - 1

typedef struct chunk {
    const char *name, *body;
    size_t len;
    const char *packed; /* what follows, compressed */
} chunk;

static void put_chunk(mt_buf *to, const chunk *c)
{
    uint8_t packed[1000];
    uLongf len = sizeof(packed);

    if (!c->packed)
        len = 0;
    else
        assert_int_equal(compress(packed, &len, (const Bytef *)c->packed, strlen(c->packed)), Z_OK);
    const size_t all = c->len + len;
    const char head[] = {0, 0, (char)(all >> 8), (char)all};
    mt_buf_add(to, head, 4);
    mt_buf_add(to, c->name, 4);
    mt_buf_add(to, c->body, c->len);
    mt_buf_add(to, packed, len);
    const uLong sum = crc32(0, (const Bytef *)to->data + to->len - all - 4, (uInt)all + 4);
    const char last[] = {(char)(sum >> 24), (char)(sum >> 16), (char)(sum >> 8), (char)sum};
    mt_buf_add(to, last, 4);
}

/* A file of 1x1 pixels that ends with the last of these. */
static void write_file(mt_buf *file, const char *kind, const chunk *chunks, size_t count)
{
    char head[] = "\0\0\0\1\0\0\0\1??\0\0\0";

    memcpy(head + 8, kind, 2);
    mt_buf_init(file, 1 << 16);
    mt_buf_add(file, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(file, &(chunk){"IHDR", head, sizeof(head) - 1, NULL});
    for (size_t i = 0; i < count && chunks[i].name; i++)
        put_chunk(file, &chunks[i]);
}

static unsigned orientation_of(const chunk *chunks, size_t count)
{
    mt_codec_head head = {0};
    mt_error err;
    mt_buf file;

    write_file(&file, "\x08\2", chunks, count);
    assert_true(mt_codec_png.head(&head, (const uint8_t *)file.data, file.len, &err));
    mt_buf_free(&file);
    return head.orientation;
}

static void texts_are_read_in_every_form(void **state)
{
    static const struct {
        unsigned orientation;
        chunk chunks[3];
    } cases[] = {
        {6, {{"tEXt", BODY(XMP "\0tiff:Orientation=\"6\""), NULL}}},
        {6, {{"zTXt", BODY(XMP "\0\0"), "tiff:Orientation=\"6\""}}},
        {6, {{"iTXt", BODY(XMP "\0\0\0en\0key\0tiff:Orientation=\"6\""), NULL}}},
        {6, {{"iTXt", BODY(XMP "\0\1\0en\0key\0"), "tiff:Orientation=\"6\""}}},
        {6, {{"tEXt", BODY(XMP "\0tiff:Orientation=\"5\""), NULL}, {"tEXt", BODY(XMP "\0tiff:Orientation>6"), NULL}}},
        {3, {{"tEXt", BODY(PROFILE "\0\nexif\n36\n" EXIF_3), NULL}}},
        {3, {{"zTXt", BODY(PROFILE "\0\0"), "\nexif\n36\n" EXIF_3}}},
        /* EXIF data count for more than a profile, and both for more than XMP; where they say nothing, XMP counts */
        {3, {{"zTXt", BODY(PROFILE "\0\0"), "\nexif\n36\n" EXIF_3}, {"zTXt", BODY(XMP "\0\0"), "tiff:Orientation>6"}}},
        {6,
         {{"tEXt", BODY(PROFILE "\0\nexif\n22\n" EXIF_NONE), NULL}, {"zTXt", BODY(XMP "\0\0"), "tiff:Orientation>6"}}},
        {6,
         {{"eXIf", BODY("II*\0\x08\0\0\0\1\0\0\0\3\0\1\0\0\0\3\0\0\0"), NULL},
          {"tEXt", BODY(XMP "\0tiff:Orientation>6"), NULL},
          {"tEXt", BODY(PROFILE "\0\nexif\n36\n" EXIF_3), NULL}}},
        {8,
         {{"tEXt", BODY(PROFILE "\0\nexif\n36\n" EXIF_3), NULL},
          {"eXIf", BODY("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\x08\0\0\0"), NULL}}},
        /* too few lines, what is no digit, other keys, cut off, behind the end */
        {1, {{"tEXt", BODY(PROFILE "\0\nexif " EXIF_3), NULL}}},
        {1, {{"tEXt", BODY(PROFILE "\0\nexif\n22\n4949 2A00080000000100120103000100000003000000"), NULL}}},
        {1, {{"tEXt", BODY("XML:com.adobe.xml\0tiff:Orientation>6"), NULL}}},
        {1, {{"teXt", BODY(XMP "\0tiff:Orientation>6"), NULL}}},
        {1, {{"iTXt", BODY(XMP "\0\0"), NULL}}},
        {1, {{"iTXt", BODY(XMP "\0\0\0en"), NULL}}},
        {1, {{"iTXt", BODY(XMP "\0\0\0en\0tiff:Orientation>6"), NULL}}},
        {1, {{"IEND", BODY(""), NULL}, {"tEXt", BODY(XMP "\0tiff:Orientation>6"), NULL}}},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++)
        if (orientation_of(cases[i].chunks, MT_COUNT(cases[i].chunks)) != cases[i].orientation)
            fail_msg("case %zu is turned by %u", i, orientation_of(cases[i].chunks, MT_COUNT(cases[i].chunks)));
}

/* Of a compressed text, 64 KiB are looked at. */
static void a_long_text_is_read_as_far_as_there_is_room(void **state)
{
    enum { ROOM = 65536 };
    static const char said[] = "tiff:Orientation>6";
    static char text[ROOM + 2];
    const chunk c = {"zTXt", BODY(XMP "\0\0"), text};

    (void)state;
    for (size_t late = 0; late < 2; late++) {
        memset(text, ' ', ROOM);
        memcpy(text + ROOM - strlen(said) + late, said, sizeof(said));
        assert_int_equal(orientation_of(&c, 1), late ? 1 : 6);
    }
}

static void the_last_of_all_colours_is_read(void **state)
{
    char colours[256 * 3] = {0};
    const chunk chunks[] = {{"PLTE", colours, sizeof(colours), NULL},
                            {"IDAT", BODY("\x78\1\1\2\0\xFD\xFF\0\xFF\1\1\1\0"), NULL},
                            {"IEND", "", 0, NULL}};
    mt_error err;
    mt_image image;
    mt_buf file;

    (void)state;
    memcpy(colours + 255 * 3, "\1\2\3", 3);
    write_file(&file, "\x08\3", chunks, MT_COUNT(chunks));
    if (!media_decode(&image, &file, &err))
        fail_msg("%s", err.text);
    assert_memory_equal(image.pixels, "\1\2\3", 3);
    mt_image_free(&image);
    mt_buf_free(&file);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_last_of_all_colours_is_read),
    cmocka_unit_test(texts_are_read_in_every_form),
    cmocka_unit_test(a_long_text_is_read_as_far_as_there_is_room),
};

UNIT_MAIN(tests)
