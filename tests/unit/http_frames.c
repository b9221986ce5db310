#include "unit.h"

#include "base/buf.h"
#include "http/frames.h"

enum { LIMIT = 100 };

/* What a run of the parser gave, as text: a message and ';', (8 1000 text) for a control frame, !1002 for a fault. */
static bool transcribe(mt_buf *out, const mt_frames *f, mt_frames_event event)
{
    uint8_t copy[LIMIT];

    switch (event) {
    case MT_FRAMES_NEED: return false;
    case MT_FRAMES_GOT_PIECE:
        assert_in_range(f->piece_len, 1, sizeof(copy));
        memcpy(copy, f->piece, f->piece_len);
        mt_frames_unmask(f, copy, f->piece_len);
        return mt_buf_add(out, copy, f->piece_len);
    case MT_FRAMES_GOT_MESSAGE: return mt_buf_puts(out, ";");
    case MT_FRAMES_GOT_CONTROL:
        mt_buf_printf(out, "(%d %d ", f->opcode, f->opcode == MT_FRAMES_CLOSE ? (int)f->code : 0);
        return mt_buf_add(out, f->control, f->control_len) && mt_buf_puts(out, ")");
    case MT_FRAMES_BAD: mt_buf_printf(out, "!%d", f->code); return false;
    }
    return false;
}

/* In pieces of one size. */
static void parse(mt_buf *out, const char *data, size_t len, size_t each)
{
    mt_frames_event event = MT_FRAMES_NEED;
    mt_frames f;

    mt_frames_init(&f, LIMIT);
    assert_true(mt_frames_idle(&f));
    for (size_t at = 0, end, used; at < len && event != MT_FRAMES_BAD; at = end) {
        end = len - at < each ? len : at + each;
        do {
            event = mt_frames_next(&f, (const uint8_t *)data + at, end - at, &used);
            at += used;
        } while (transcribe(out, &f, event));
        assert_true(event == MT_FRAMES_BAD || at == end);
    }
}

static void expect(const char *data, size_t len, const char *wanted)
{
    for (size_t each = 1; each <= len; each++) {
        mt_buf out = {.limit = 10000};

        parse(&out, data, len, each);
        mt_buf_add(&out, "", 1);
        assert_string_equal(out.data, wanted);
        mt_buf_free(&out);
    }
}

#define EXPECT(data, wanted) expect(data, sizeof(data) - 1, wanted)

/* Masks of zeros leave the payload as it is. */
#define ZERO "\0\0\0\0"

static void messages_are_found(void **state)
{
    (void)state;
    EXPECT("\x81\x82" ZERO "hi", "hi;");
    EXPECT("\x81\x80" ZERO, ";");
    EXPECT("\x81\x83\x01\x02\x03\x04\x60\x60\x60\x81\x81\x20\0\0\0A", "abc;a;");
    EXPECT("\x01\x81" ZERO "a\x80\x81" ZERO "b\x81\x81" ZERO "c", "ab;c;");
    EXPECT("\x01\x81" ZERO "a\x89\x82" ZERO "hi\x00\x80" ZERO "\x80\x81" ZERO "b", "a(9 0 hi)b;");
    EXPECT("\x8A\x80" ZERO, "(10 0 )");
    EXPECT("\x88\x80" ZERO "\x88\x84" ZERO "\x03\xE8ok\x88\x82" ZERO "\x0F\xA0",
           "(8 1005 )(8 1000 \x03\xE8ok)(8 4000 \x0F\xA0)");
}

static void what_breaks_the_rules_is_refused(void **state)
{
    (void)state;
    EXPECT("\x81\x02hi", "!1002");               /* not masked */
    EXPECT("\xC1\x80" ZERO, "!1002");            /* a reserved bit */
    EXPECT("\x83\x80" ZERO, "!1002");            /* a reserved opcode */
    EXPECT("\x8B\x80" ZERO, "!1002");            /* the same for control frames */
    EXPECT("\x80\x80" ZERO, "!1002");            /* goes on with nothing */
    EXPECT("\x01\x80" ZERO "\x81\x80", "!1002"); /* a message inside of another */
    EXPECT("\x09\x80" ZERO, "!1002");            /* a ping in parts */
    EXPECT("\x89\xFE\0\x80" ZERO, "!1002");      /* a long ping */
    EXPECT("\x82\x80" ZERO, "!1003");            /* binary */
    EXPECT("\x81\xFE\0\x7D" ZERO, "!1002");      /* a length that fits in fewer bytes */
    EXPECT("\x81\xFF\0\0\0\0\0\0\xFF\xFF" ZERO, "!1002");
    EXPECT("\x81\xFF\x80\0\0\0\0\0\0\0" ZERO, "!1002");
    EXPECT("\x88\x81" ZERO "x", "!1002");
    EXPECT("\x88\x82" ZERO "\x03\xE7", "!1002");
    EXPECT("\x88\x82" ZERO "\x03\xEE", "!1002"); /* 1006 is never sent */
    EXPECT("\x88\x83" ZERO "\x03\xE8\xFF", "!1007");
}

static void long_messages_are_refused(void **state)
{
    (void)state;
    EXPECT("\x81\xFE\x00\xC8" ZERO, "!1009");
    EXPECT("\x01\xE4" ZERO
           "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
           "\x80\x81" ZERO,
           "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789!1009");
    EXPECT("\x81\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF" ZERO, "!1009");
}

static void heads_are_written(void **state)
{
    static const struct {
        uint64_t len;
        const char *head;
        size_t size;
    } rows[] = {{0, "\x81\x00", 2},
                {125, "\x81\x7D", 2},
                {126, "\x81\x7E\x00\x7E", 4},
                {65535, "\x81\x7E\xFF\xFF", 4},
                {65536, "\x81\x7F\0\0\0\0\0\x01\0\0", 10}};
    uint8_t head[MT_FRAMES_HEAD];

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        assert_int_equal(mt_frames_head(head, MT_FRAMES_TEXT, rows[i].len), rows[i].size);
        assert_memory_equal(head, rows[i].head, rows[i].size);
    }
}

static void control_frames_are_told_apart(void **state)
{
    mt_frames f;
    size_t used;

    (void)state;
    mt_frames_init(&f, LIMIT);
    assert_true(mt_frames_is_control(&f, 0x89));
    assert_false(mt_frames_is_control(&f, 0x81));
    assert_int_equal(mt_frames_next(&f, (const uint8_t *)"\x89", 1, &used), MT_FRAMES_NEED);
    assert_false(mt_frames_idle(&f));
    assert_true(mt_frames_is_control(&f, 0x81)); /* that byte belongs to the ping */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(messages_are_found),
    cmocka_unit_test(what_breaks_the_rules_is_refused),
    cmocka_unit_test(long_messages_are_refused),
    cmocka_unit_test(heads_are_written),
    cmocka_unit_test(control_frames_are_told_apart),
};
UNIT_MAIN(tests)
