/* A chat as the dialects fill it: order and indices, what is borrowed, what there is no memory for. */
#include "unit.h"

#include "chat/chat.h"
#include "chat/limits.h"

enum { MANY = 70 }; /* lists double more than once on their way there */

static mt_chat_text words(const char *text)
{
    return (mt_chat_text){.data = text, .len = strlen(text)};
}

static void assert_text(mt_chat_text text, const char *wanted)
{
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.len);
}

/* Message i has i parts and i calls. */
static void long_lists_keep_their_order(void **state)
{
    static const char *const numbers[] = {"zero", "one", "two", "three", "four", "five", "six"};
    mt_arena *arena = mt_arena_new(0);
    mt_chat chat;
    mt_error err;

    (void)state;
    mt_chat_begin(&chat, arena, "messages");
    for (size_t i = 0; i < MANY; i++) {
        mt_chat_message message = {.role = (mt_chat_role)(i % MT_CHAT_ROLES)};

        for (size_t k = 0; k < i; k++) {
            mt_chat_add_text(&chat, &message, words(numbers[(i + k) % 7]));
            mt_chat_add_call(&chat, &message, (mt_chat_call){.name = words(numbers[k % 7])});
        }
        mt_chat_put(&chat, &message);
    }
    assert_true(mt_chat_end(&chat, &err));
    assert_int_equal(chat.count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        const mt_chat_message *m = &chat.messages[i];

        assert_int_equal(m->role, i % MT_CHAT_ROLES);
        assert_true(m->part_count == i && m->call_count == i && m->sent == i);
        for (size_t k = 0; k < i; k++) {
            assert_true(m->parts[k].index == k && m->parts[k].type == MT_CHAT_TEXT);
            assert_text(m->parts[k].text, numbers[(i + k) % 7]);
            assert_text(m->calls[k].name, numbers[k % 7]);
        }
    }
    mt_arena_free(arena);
}

/* Pieces of reasoning become one text, however many there are; those who sent them keep theirs as they were. */
static void reasoning_is_joined_by_blank_lines(void **state)
{
    mt_arena *arena = mt_arena_new(0);
    mt_chat_message message = {.role = MT_CHAT_ASSISTANT};
    char first[] = "first\0what follows it in the request";
    mt_chat chat;

    (void)state;
    mt_chat_begin(&chat, arena, "messages");
    mt_chat_add_reasoning(&chat, &message, words(""));
    assert_true(message.reasoning.len == 0 && message.sent == 1);
    mt_chat_add_reasoning(&chat, &message, words(first));
    assert_ptr_equal(message.reasoning.data, first); /* one piece is borrowed */
    mt_chat_add_reasoning(&chat, &message, words("then"));
    assert_text(message.reasoning, "first\n\nthen");
    assert_memory_equal(first, "first\0what follows it in the request", sizeof(first));
    for (size_t i = 0; i < MANY; i++)
        mt_chat_add_reasoning(&chat, &message, words(i % 2 ? "b" : "a"));
    assert_int_equal(message.reasoning.len, strlen("first\n\nthen") + MANY * strlen("\n\na"));
    assert_memory_equal(message.reasoning.data + message.reasoning.len - 9, "\n\nb\n\na\n\nb", 9);
    mt_chat_add_text(&chat, &message, words("said"));
    assert_int_equal(message.parts[0].index, MANY + 3); /* reasoning stood among the parts that were sent */
    mt_arena_free(arena);
}

static void media_are_found(void **state)
{
    static const struct {
        bool image, video;
    } cases[] = {{false, false}, {true, false}, {false, true}, {true, true}};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        mt_arena *arena = mt_arena_new(0);
        mt_chat_message first = {.role = MT_CHAT_USER}, second = {.role = MT_CHAT_USER};
        mt_chat chat;

        mt_chat_begin(&chat, arena, "messages");
        mt_chat_add_text(&chat, &first, words("look"));
        if (cases[i].image)
            mt_chat_add_medium(&chat, &first, MT_CHAT_IMAGE, NULL, "a");
        if (cases[i].video)
            mt_chat_add_medium(&chat, &second, MT_CHAT_VIDEO, NULL, "b");
        mt_chat_put(&chat, &first);
        mt_chat_put(&chat, &second);
        assert_int_equal(mt_chat_has_media(&chat), cases[i].image || cases[i].video);
        assert_int_equal(mt_chat_has_video(&chat), cases[i].video);
        mt_arena_free(arena);
    }
}

static void an_end_says_what_is_wrong(void **state)
{
    mt_arena *arena = mt_arena_new(0);
    const mt_chat_message message = {.role = MT_CHAT_USER};
    mt_error err = {0};
    mt_chat chat;

    (void)state;
    mt_chat_begin(&chat, arena, "messages");
    assert_false(mt_chat_end(&chat, &err));
    assert_string_equal(err.text, "messages is empty; send at least one message");
    assert_string_equal(err.field, "messages");
    for (size_t i = 0; i < MT_LIMIT_MESSAGES; i++)
        mt_chat_put(&chat, &message);
    assert_true(mt_chat_end(&chat, &err));
    mt_chat_put(&chat, &message);
    err = (mt_error){0};
    assert_false(mt_chat_end(&chat, &err));
    assert_string_equal(err.text, "100001 messages; send at most 100000");
    assert_string_equal(err.field, "messages");
    mt_chat_begin(&chat, arena, "input");
    err = (mt_error){0};
    assert_false(mt_chat_end(&chat, &err));
    assert_string_equal(err.text, "input is empty; send at least one message");
    assert_string_equal(err.field, "input");
    mt_chat_add_medium(&chat, &(mt_chat_message){.role = MT_CHAT_USER}, MT_CHAT_IMAGE, NULL, NULL);
    assert_true(chat.starved); /* there was no memory for its place */
    mt_arena_free(arena);
}

enum { REASONING, PARTS, CALLS, KINDS };

/* Eight messages with four of a kind in as much memory; whether there was enough of it. */
static bool fill(size_t memory, int kind)
{
    mt_arena *arena = mt_arena_new(memory);
    mt_error err = {0};
    mt_chat chat;
    bool ok;

    mt_chat_begin(&chat, arena, "messages");
    for (size_t i = 0; i < 8; i++) {
        mt_chat_message message = {.role = MT_CHAT_ASSISTANT};

        for (size_t k = 0; k < 4; k++) {
            if (kind == REASONING)
                mt_chat_add_reasoning(&chat, &message, words("because of this and of that"));
            else if (kind == PARTS)
                mt_chat_add_text(&chat, &message, words("therefore"));
            else
                mt_chat_add_call(&chat, &message, (mt_chat_call){.name = words("f")});
        }
        mt_chat_put(&chat, &message);
    }
    ok = mt_chat_end(&chat, &err);
    if (ok) {
        assert_int_equal(chat.count, 8);
        assert_int_equal(chat.messages[7].part_count, kind == PARTS ? 4 : 0);
        assert_int_equal(chat.messages[7].call_count, kind == CALLS ? 4 : 0);
        assert_int_equal(chat.messages[7].reasoning.len, kind == REASONING ? 4 * 27 + 3 * 2 : 0);
    } else {
        assert_int_equal(err.code, MT_E_TOO_LARGE);
        assert_string_equal(err.text,
                            "the messages need more memory than a request may have; send fewer or shorter ones");
    }
    mt_arena_free(arena);
    return ok;
}

/* Wherever the memory ends, whoever fills a chat may go on; the end tells. */
static void a_chat_may_starve(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        assert_false(fill(1, kind));
        for (size_t memory = 64; memory < 1 << 16; memory += memory / 16)
            (void)fill(memory, kind);
        assert_true(fill(1 << 16, kind));
    }
}

static void no_text_equals_none(void **state)
{
    const mt_chat_text none = {0};

    (void)state;
    assert_false(mt_chat_text_equal(none, none));
    assert_false(mt_chat_text_equal(words(""), none));
    assert_true(mt_chat_text_equal(words(""), words("")));
    assert_true(mt_chat_text_equal(words("call_1"), (mt_chat_text){"call_12", 6}));
    assert_false(mt_chat_text_equal(words("call_1"), words("call_2")));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(long_lists_keep_their_order),
    cmocka_unit_test(reasoning_is_joined_by_blank_lines),
    cmocka_unit_test(media_are_found),
    cmocka_unit_test(an_end_says_what_is_wrong),
    cmocka_unit_test(a_chat_may_starve),
    cmocka_unit_test(no_text_equals_none),
};
UNIT_MAIN(tests)
