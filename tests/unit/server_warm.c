#include "folder.h"

#include "base/error.h"
#include "server/fleet/warm.h"
#include "server/limits.h"

#define CHAT ",\"max_tokens\":1,\"priority\":2147483647}"
#define USER "{\"role\":\"user\",\"content\":\".\"}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"be brief\"}"

static char path[80];

/* Writes a file and reads it as one of prompts. */
static bool read_prompts(mt_warm_list *list, const char *text, size_t len, mt_error *err)
{
    FILE *f;

    snprintf(path, sizeof(path), "%s/prompts.json", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    *list = (mt_warm_list){0};
    return mt_warm_read(list, path, err);
}

static void prompts_become_requests(void **state)
{
    static const struct {
        const char *text, *body; /* of the last prompt */
        size_t count, line;
    } rows[] = {
        /* as vllm-mlx has it */
        {"[\n  [\n    " SYSTEM "\n  ],\n  [" SYSTEM "]\n]\n", "{\"messages\":[" SYSTEM "," USER "]" CHAT, 2, 5},
        {"[[" SYSTEM "," USER "]]", "{\"messages\":[" SYSTEM "," USER "]" CHAT, 1, 1},
        /* a line each */
        {"[" SYSTEM "]\n\n[" SYSTEM "]\n", "{\"messages\":[" SYSTEM "," USER "]" CHAT, 2, 3},
        {"[" SYSTEM "]", "{\"messages\":[" SYSTEM "," USER "]" CHAT, 1, 1}, /* one prompt, and no list of prompts */
        {"\"once upon\"\n\"a time\"", "{\"prompt\":\"a time\"" CHAT, 2, 2},
        {"[\"once\", {\"prompt\": \"upon\"}]", "{\"prompt\":\"upon\"" CHAT, 2, 1},
        /* an answer is followed by what the next client says */
        {"[{\"role\":\"assistant\",\"content\":\"yes?\"}]",
         "{\"messages\":[{\"role\":\"assistant\",\"content\":\"yes?\"}," USER "]" CHAT, 1, 1},
        /* a request, of which what is not about the prompt goes */
        {"{\"system\":\"be brief\",\"messages\":[" USER "],\"tools\":[],\"n\":3,\"stream\":true,\"max_tokens\":99}",
         "{\"messages\":[" SYSTEM "," USER "],\"tools\":[]" CHAT, 1, 1},
    };
    mt_warm_list list;
    mt_error err = {0};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        if (!read_prompts(&list, rows[i].text, strlen(rows[i].text), &err))
            fail_msg("%s: %s", rows[i].text, err.text);
        assert_int_equal(list.count, rows[i].count);
        assert_string_equal(list.at[list.count - 1].body, rows[i].body);
        assert_int_equal(list.at[list.count - 1].line, rows[i].line);
        assert_ptr_equal(list.at[list.count - 1].dialect,
                         strstr(rows[i].body, "messages") ? &mt_openai_chat : &mt_openai_completions);
        mt_warm_free(&list);
    }
    assert_true(read_prompts(&list, "{\"model\":\"box\",\"prompt\":\"a\"}", 28, &err));
    assert_string_equal(list.at[0].model, "box");
    assert_string_equal(list.at[0].body, "{\"prompt\":\"a\"" CHAT);
    mt_warm_free(&list);
}

static void mistakes_have_a_line(void **state)
{
    static const char none[] = ": the prompt is neither a list of messages nor an object with \"messages\" or "
                               "\"prompt\" nor a text: write one of these";
    const struct {
        const char *text, *line, *sentence;
    } rows[] = {
        {"", "line 1", ": there is no prompt: write one, or leave the file out"},
        {"[]", "line 1", ": there is no prompt: write one, or leave the file out"},
        {"[\n[" SYSTEM "],\n[" SYSTEM ",\n7]\n]", "line 3", none},
        {"[" SYSTEM "]\n{\"mesages\": []}", "line 2", none},
        {"{\"messages\": []}", "line 1", none},
        {"\"\"", "line 1", none},
        {"7", "line 1", none},
        {"[[" SYSTEM "]] 7", "line 1", ": something stands behind the list: take it away"},
        {"[" SYSTEM "]\n[" SYSTEM "\n\"x\"", "line 3", ": ']' expected near '\"x\"': write JSON"},
    };
    mt_warm_list list;
    char sentence[MT_LIMIT_ERROR_TEXT];
    mt_error err;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        assert_false(read_prompts(&list, rows[i].text, strlen(rows[i].text), &err));
        snprintf(sentence, sizeof(sentence), "--warm-prompts \"%s\": %s%s", path, rows[i].line, rows[i].sentence);
        assert_string_equal(err.text, sentence);
        mt_warm_free(&list);
    }
    list = (mt_warm_list){0};
    assert_false(mt_warm_read(&list, "/tmp/motet-test-none/prompts.json", &err));
}

/* As many prompts as may be are taken, and as many bytes; one more of either is refused. */
static void there_may_be_so_many(void **state)
{
    mt_buf text = {.limit = 2 * MT_LIMIT_WARM_BYTES};
    mt_warm_list list;
    mt_error err;

    (void)state;
    for (size_t i = 0; i < MT_LIMIT_WARM_PROMPTS; i++)
        mt_buf_puts(&text, "\"a\"\n");
    assert_true(read_prompts(&list, text.data, text.len, &err));
    assert_int_equal(list.count, MT_LIMIT_WARM_PROMPTS);
    mt_warm_free(&list);
    mt_buf_puts(&text, "\"a\"");
    assert_false(read_prompts(&list, text.data, text.len, &err));
    assert_non_null(strstr(err.text, "line 257: there are more than 256 prompts: leave some out"));
    mt_warm_free(&list);
    mt_buf_free(&text);
    mt_buf_puts(&text, "\"");
    while (text.len < MT_LIMIT_WARM_BYTES - 1)
        mt_buf_add(&text, "a", 1);
    mt_buf_puts(&text, "\"");
    assert_true(read_prompts(&list, text.data, text.len, &err));
    mt_warm_free(&list);
    mt_buf_puts(&text, "\n");
    assert_false(read_prompts(&list, text.data, text.len, &err));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    mt_warm_free(&list);
    mt_buf_free(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(prompts_become_requests, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(mistakes_have_a_line, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(there_may_be_so_many, make_folder, remove_folder),
};
UNIT_MAIN(tests)
