#include "unit.h"

#include "api/dialect.h"
#include "api/gemini.h"
#include "base/json_tree.h"

/* What a function makes of JSON, as text. */
static const char *made(json_t *(*make)(const json_t *), const char *text)
{
    static mt_buf out = {.limit = 1 << 16};
    json_t *from = mt_json_tree_try(text, strlen(text)), *before = json_deep_copy(from), *to = make(from);

    assert_non_null(from);
    out.len = 0;
    assert_true(mt_json_tree_write(&out, to));
    assert_true(json_equal(from, before)); /* what was sent is left as it is */
    json_decref(from);
    json_decref(before);
    json_decref(to);
    return out.data;
}

static void schemas_become_json_schemas(void **state)
{
    static const struct {
        const char *google, *json;
    } rows[] = {
        {"{}", "{}"},
        {"true", "true"},
        {"{\"type\":\"STRING\",\"description\":\"D\"}", "{\"type\":\"string\",\"description\":\"D\"}"},
        {"{\"type\":\"string\"}", "{\"type\":\"string\"}"},
        {"{\"type\":\"TYPE_UNSPECIFIED\"}", "{}"},
        {"{\"type\":[\"string\",\"null\"]}", "{\"type\":[\"string\",\"null\"]}"},
        {"{\"type\":\"NUMBER\",\"format\":\"float\",\"example\":1}", "{\"type\":\"number\"}"},
        {"{\"type\":\"STRING\",\"format\":\"date-time\"}", "{\"type\":\"string\",\"format\":\"date-time\"}"},
        {"{\"type\":\"ARRAY\",\"minItems\":\"1\",\"max_items\":2,\"items\":{\"type\":\"INTEGER\"}}",
         "{\"type\":\"array\",\"minItems\":1,\"maxItems\":2,\"items\":{\"type\":\"integer\"}}"},
        {"{\"minLength\":\"many\"}", "{\"minLength\":\"many\"}"},
        {"{\"type\":\"BOOLEAN\",\"nullable\":true}", "{\"type\":[\"boolean\",\"null\"]}"},
        {"{\"type\":\"BOOLEAN\",\"nullable\":false}", "{\"type\":\"boolean\"}"},
        {"{\"nullable\":true,\"type\":\"STRING\",\"enum\":[\"a\"]}",
         "{\"type\":[\"string\",\"null\"],\"enum\":[\"a\",null]}"},
        {"{\"any_of\":[{\"type\":\"STRING\"}],\"nullable\":true}",
         "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}"},
        {"{\"properties\":{\"b\":{\"type\":\"STRING\"},\"max_items\":{},\"a\":{}},"
         "\"propertyOrdering\":[\"a\",\"none\",1,\"b\"]}",
         "{\"properties\":{\"a\":{},\"b\":{\"type\":\"string\"},\"max_items\":{}}}"},
        {"{\"propertyOrdering\":[\"a\"]}", "{}"},
        {"{\"$defs\":{\"x\":{\"type\":\"NULL\"}},\"additionalProperties\":false,\"oneOf\":1,\"properties\":2}",
         "{\"$defs\":{\"x\":{\"type\":\"null\"}},\"additionalProperties\":false,\"oneOf\":1,\"properties\":2}"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        assert_string_equal(made(mt_gemini_schema, rows[i].google), rows[i].json);
}

static void names_are_put_into_camel_case(void **state)
{
    static const char long_name[] = "{\"a_bcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl_m\":1}";

    (void)state;
    assert_string_equal(made(mt_gemini_camel, "{\"inline_data\":[{\"mime_type\":\"a_b\"}],\"x\":1}"),
                        "{\"inlineData\":[{\"mimeType\":\"a_b\"}],\"x\":1}");
    assert_string_equal(made(mt_gemini_camel, "{\"args\":{\"a_b\":1},\"response_schema\":{\"any_of\":[]}}"),
                        "{\"args\":{\"a_b\":1},\"responseSchema\":{\"any_of\":[]}}");
    assert_string_equal(made(mt_gemini_camel, "{\"_a_b\":1,\"a_\":2,\"a_B\":3,\"\":4}"),
                        "{\"_a_b\":1,\"a_\":2,\"a_B\":3,\"\":4}");
    assert_string_equal(made(mt_gemini_camel, long_name), long_name);
}

/* A chat of a body, whose messages are written as "role text(reasoning)[call,call]", each on a line. */
static void expect_chat(const char *body, const char *expected)
{
    json_t *json = mt_json_tree_try(body, strlen(body));
    mt_arena *arena = mt_arena_new(1 << 20);
    mt_buf out = {.limit = 1 << 16};
    mt_ask_defaults defaults;
    mt_failure why;
    mt_ask ask;

    mt_ask_defaults_init(&defaults);
    mt_ask_init(&ask, arena, json, &defaults);
    assert_true(mt_gemini_read(&ask, &why));
    for (size_t i = 0; i < ask.chat.count; i++) {
        const mt_chat_message *m = &ask.chat.messages[i];

        mt_buf_printf(&out, "%s ", mt_chat_role_name(m->role));
        for (size_t k = 0; k < m->part_count; k++)
            mt_buf_printf(&out, "%s%.*s", k ? "|" : "", (int)m->parts[k].text.len, m->parts[k].text.data);
        if (m->reasoning.len)
            mt_buf_printf(&out, "(%.*s)", (int)m->reasoning.len, m->reasoning.data);
        for (size_t k = 0; k < m->call_count; k++)
            mt_buf_printf(&out, "[%.*s=%.*s]", (int)m->calls[k].id.len, m->calls[k].id.data, (int)m->calls[k].name.len,
                          m->calls[k].name.data);
        if (m->role == MT_CHAT_TOOL)
            mt_buf_printf(&out, " for %.*s", (int)m->call_id.len, m->call_id.data ? m->call_id.data : "");
        mt_buf_puts(&out, "\n");
    }
    assert_string_equal(out.data, expected);
    mt_buf_free(&out);
    mt_ask_free(&ask);
    json_decref(json);
    mt_arena_free(arena);
}

#define USER(text) "{\"role\":\"user\",\"parts\":[{\"text\":\"" text "\"}]}"
#define MODEL(parts) "{\"role\":\"model\",\"parts\":[" parts "]}"
#define RESULT(name, response) "{\"functionResponse\":{\"name\":\"" name "\",\"response\":" response "}}"

static void contents_become_messages(void **state)
{
    (void)state;
    expect_chat("{\"systemInstruction\":{\"parts\":[{\"text\":\"Be \"},{\"text\":\"brief.\"}]},\"contents\":[" USER(
                    "a") "," USER("b") "]}",
                "system Be brief.\nuser a\nuser b\n");
    expect_chat("{\"contents\":[" USER("a") "," MODEL("{\"text\":\"x\",\"thought\":true},{\"text\":\"y\"}") "," MODEL(
                    "{\"text\":\"z\"}") "," USER("") "]}",
                "user a\nassistant yz(x)\nuser \n");
    expect_chat("{\"contents\":[" USER("a") "," MODEL("") "," MODEL("{\"thoughtSignature\":\"s\"}") "," USER("b") "]}",
                "user a\nuser b\n");
}

/* "bW90ZXQ6SG0u" is "motet:Hm." in base64, "bW90ZXQ6" without "Hm.", "bW90ZXQ6/w==" with a byte that is not UTF-8. */
static void signatures_carry_reasoning(void **state)
{
    (void)state;
    expect_chat("{\"contents\":[" USER("a") "," MODEL(
                    "{\"functionCall\":{\"name\":\"f\"},\"thoughtSignature\":\"bW90ZXQ6SG0u\"}") "]}",
                "user a\nassistant (Hm.)[call_1_0=f]\n");
    expect_chat("{\"contents\":[" USER("a") "," MODEL(
                    "{\"text\":\"x\",\"thought\":true},{\"text\":\"y\",\"thoughtSignature\":\"bW90ZXQ6SG0u\"}") "]}",
                "user a\nassistant y(x)\n");
    expect_chat("{\"contents\":[" USER("a") "," MODEL("{\"text\":\"y\",\"thoughtSignature\":\"bW90ZXQ6\"}") "]}",
                "user a\nassistant y\n");
    expect_chat("{\"contents\":[" USER("a") "," MODEL(
                    "{\"text\":\"y\",\"thoughtSignature\":\"bW90ZXQ6/w==\"},{\"text\":\"z\",\"thoughtSignature\":"
                    "\"skip_it!\"},{\"text\":\"z\",\"thoughtSignature\":1}") "]}",
                "user a\nassistant yzz\n");
    expect_chat("{\"contents\":[{\"parts\":[{\"text\":\"a\",\"thoughtSignature\":\"bW90ZXQ6SG0u\"}]}]}", "user a\n");
}

static void results_find_their_calls(void **state)
{
    static const char calls[] = "{\"functionCall\":{\"name\":\"f\"}},{\"functionCall\":{\"name\":\"g\",\"id\":\"G\"}},"
                                "{\"functionCall\":{\"name\":\"f\"}}";
    char body[1024];

    (void)state;
    snprintf(body, sizeof(body),
             "{\"contents\":[" USER("a") "," MODEL("%s") ",{\"role\":\"function\",\"parts\":[%s]}]}", calls,
             "{\"text\":\"b\"}," RESULT("g", "{\"output\":\"1\"}") "," RESULT("f", "{\"error\":\"2\"}") "," RESULT(
                 "f", "{\"a\":[3]}") "," RESULT("h", "{\"output\":4}"));
    expect_chat(body, "user a\nassistant [call_1_0=f][G=g][call_1_2=f]\n"
                      "tool 1 for G\ntool Error: 2 for call_1_0\ntool {\"a\":[3]} for call_1_2\ntool 4 for \nuser b\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(schemas_become_json_schemas), cmocka_unit_test(names_are_put_into_camel_case),
    cmocka_unit_test(contents_become_messages),    cmocka_unit_test(signatures_carry_reasoning),
    cmocka_unit_test(results_find_their_calls),
};
UNIT_MAIN(tests)
