#include "unit.h"

#include "base/buf.h"
#include "cli/chat_wrap.h"

/* What a terminal so many columns wide shows of a text that comes in pieces of so many bytes, whole characters each. */
static void expect_shown(size_t columns, size_t piece, const char *text, const char *wanted)
{
    mt_chat_wrap w = {0};
    char *written = NULL, screen[1024] = "", part[16];
    size_t size = 0, at = 0;
    FILE *out = open_memstream(&written, &size);

    for (size_t i = 0; text[i];) {
        size_t len = piece < strlen(text + i) ? piece : strlen(text + i);

        while (((unsigned char)text[i + len] & 0xC0) == 0x80)
            len++;
        snprintf(part, sizeof(part), "%.*s", (int)len, text + i);
        mt_chat_wrap_put(&w, columns, part, out);
        i += len;
    }
    fclose(out);
    for (size_t i = 0, line = 0; i < size; i++) {
        if (written[i] == '\r')
            at = line;
        else if (strncmp(written + i, "\033[K", 3) == 0) {
            memset(screen + at, 0, sizeof(screen) - at);
            i += 2;
        } else if (written[i] == '\033') {
            at += (size_t)strtol(written + i + 2, NULL, 10);
            i += strcspn(written + i, "C");
        } else {
            screen[at++] = written[i];
            line = written[i] == '\n' ? at : line;
        }
    }
    assert_string_equal(screen, wanted);
    free(written);
}

static void words_are_carried_over(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 12; piece++) {
        expect_shown(10, piece, "one two three four", "one two \nthree four");
        expect_shown(10, piece, "exactly te nnnnnnnnnn x", "exactly te\nnnnnnnnnnn\nx");
        expect_shown(10, piece, "a longwordthatdoesnotfit b", "a \nlongwordth\natdoesnotf\nit b");
        expect_shown(10, piece, "one\n\ntwo three", "one\n\ntwo three");
        expect_shown(10, piece, "a\tb\tc", "a       b\nc");
    }
}

static void letters_have_widths(void **state)
{
    (void)state;
    expect_shown(6, 1, "\u65e5\u672c\u8a9e\u65e5", "\u65e5\u672c\u8a9e\n\u65e5");
    expect_shown(5, 1, "a e\u0301e\u0301e\u0301e\u0301", "a \ne\u0301e\u0301e\u0301e\u0301");
}

static void control_characters_are_left_out(void **state)
{
    (void)state;
    expect_shown(20, 1,
                 "a\033[2Jb\a\x7f\xc2\x9b"
                 "c",
                 "a[2Jbc");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_are_carried_over),
    cmocka_unit_test(letters_have_widths),
    cmocka_unit_test(control_characters_are_left_out),
};
UNIT_MAIN(tests)
