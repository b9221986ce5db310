/* Limits at their ends: what has as many as may be is taken, and what has one more is refused with a sentence. Limits
   that take more to meet are met in the tests of their modules. */
#include "constraint_tests.h"
#include "folder.h"

#include "api/dialect.h"
#include "base/limits.h"
#include "chat/limits.h"
#include "chat/source.h"
#include "constraint/limits.h"
#include "device/limits.h"
#include "http/host.h"
#include "http/limits.h"
#include "http/name.h"
#include "http/router.h"
#include "models/bert.h"
#include "models/limits.h"
#include "models/spec.h"
#include "sample/limits.h"
#include "server/calls/keys.h"
#include "server/inside.h"
#include "server/limits.h"
#include "template/limits.h"
#include "template/template.h"
#include "weights/limits.h"
#include "weights/safetensors.h"
#include "weights/shards.h"

typedef bool attempt(size_t count, mt_error *err);

/* A text with one part count times in it. */
static mt_buf repeated(const char *begin, const char *part, size_t count, const char *end)
{
    mt_buf text;

    mt_buf_init(&text, 64u << 20);
    mt_buf_puts(&text, begin);
    for (size_t i = 0; i < count; i++)
        mt_buf_puts(&text, part);
    mt_buf_puts(&text, end);
    return text;
}

/* The same with commas between them, and the number of each where it has a #. */
static mt_buf numbered(const char *begin, const char *part, size_t count, const char *end)
{
    const int before = (int)strcspn(part, "#");
    mt_buf text;

    mt_buf_init(&text, 64u << 20);
    mt_buf_puts(&text, begin);
    for (size_t i = 0; i < count; i++)
        mt_buf_printf(&text, "%s%.*s%zu%s", i ? "," : "", before, part, i, part + before + 1);
    mt_buf_puts(&text, end);
    return text;
}

static bool follows(mt_source_kind kind, mt_buf text, mt_error *err)
{
    json_t *value = kind == MT_SOURCE_SCHEMA ? load(text.data) : json_stringn(text.data, text.len);
    const mt_source source = {.kind = kind, .value = value, .strict = true};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    mt_expr e;
    const bool ok = mt_source_expr(&source, &j, &e, err);

    mt_grammar_free(g);
    json_decref(value);
    mt_buf_free(&text);
    return ok;
}

static bool schema_patterns(size_t count, mt_error *err)
{
    return follows(MT_SOURCE_SCHEMA, numbered("{'properties':{", "'p#':{'pattern':'a'}", count, "}}"), err);
}

static bool schema_parts(size_t count, mt_error *err) /* with the one around them */
{
    return follows(MT_SOURCE_SCHEMA, numbered("{'allOf':[", "{'minimum':#}", count - 1, "]}"), err);
}

static bool schema_strings(size_t count, mt_error *err)
{
    return follows(MT_SOURCE_SCHEMA, numbered("{'type':'string','allOf':[", "{'title':#,'pattern':'^a$'}", count, "]}"),
                   err);
}

static bool schema_key_patterns(size_t count, mt_error *err)
{
    return follows(
        MT_SOURCE_SCHEMA,
        numbered("{'type':'object','additionalProperties':false,'patternProperties':{", "'^k#$':true", count, "}}"),
        err);
}

static bool schema_one_of(size_t count, mt_error *err)
{
    return follows(MT_SOURCE_SCHEMA, numbered("{'oneOf':[", "{'const':#}", count, "]}"), err);
}

static bool schema_properties(size_t count, mt_error *err)
{
    return follows(MT_SOURCE_SCHEMA, numbered("{'type':'object','properties':{", "'p#':true", count, "}}"), err);
}

static bool regex_categories(size_t count, mt_error *err)
{
    return follows(MT_SOURCE_REGEX, repeated("", "\\p{L}", count, ""), err);
}

static bool regex_nesting(size_t count, mt_error *err)
{
    mt_buf text = repeated("", "(", count, "a");

    for (size_t i = 0; i < count; i++)
        mt_buf_puts(&text, ")");
    return follows(MT_SOURCE_REGEX, text, err);
}

static bool grammar_nesting(size_t count, mt_error *err)
{
    mt_buf text = repeated("root ::= ", "(", count, "\"a\"");

    for (size_t i = 0; i < count; i++)
        mt_buf_puts(&text, ")");
    return follows(MT_SOURCE_GBNF, text, err);
}

static bool grammar_text(size_t count, mt_error *err)
{
    static const char rule[] = "root ::= \"a\"";

    return follows(MT_SOURCE_GBNF, repeated(rule, " ", count - strlen(rule), ""), err);
}

static bool choice_list(size_t count, mt_error *err)
{
    json_t *list = json_array(), *text = json_string("a");
    const mt_source source = {.kind = MT_SOURCE_CHOICE, .value = list};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    mt_expr e;

    for (size_t i = 0; i < count; i++)
        json_array_append(list, text);
    const bool ok = mt_source_expr(&source, &j, &e, err);
    mt_grammar_free(g);
    json_decref(text);
    json_decref(list);
    return ok;
}

static bool grammar_search(size_t count, mt_error *err) /* a place for the beginning is among them */
{
    mt_buf marker = repeated("", "a", count - 1, "");
    mt_grammar *g = mt_grammar_new();

    mt_grammar_define(g, MT_GRAMMAR_START, mt_grammar_until(g, (const char *[]){marker.data}, 1));
    mt_program *program = mt_program_new(g, &vocabulary->covered, err);
    const bool ok = program != NULL;
    mt_program_free(program);
    mt_grammar_free(g);
    mt_buf_free(&marker);
    return ok;
}

static bool renders(mt_buf text, mt_error *err)
{
    mt_template *tpl = mt_template_compile(text.data, text.len, err);
    json_t *context = json_object();
    mt_rendering r = {0};
    const bool ok = tpl && mt_template_render_json(tpl, context, NULL, &r, err);

    if (tpl)
        mt_rendering_free(&r);
    mt_template_free(tpl);
    json_decref(context);
    mt_buf_free(&text);
    return ok;
}

static bool template_names(size_t count, mt_error *err)
{
    mt_buf text;

    mt_buf_init(&text, 1u << 20);
    for (size_t i = 0; i < count; i++)
        mt_buf_printf(&text, "{%% set v%zu = 1 %%}", i);
    return renders(text, err);
}

static bool template_range(size_t count, mt_error *err)
{
    mt_buf text;

    mt_buf_init(&text, 100);
    mt_buf_printf(&text, "{%% for i in range(%zu) %%}{%% endfor %%}", count);
    return renders(text, err);
}

static bool template_output(size_t count, mt_error *err)
{
    mt_buf text;

    mt_buf_init(&text, 100);
    mt_buf_printf(&text, "{{ 'a' * %zu }}", count);
    return renders(text, err);
}

static bool bad_tokens(size_t count, mt_error *err)
{
    static const uint32_t ids[MT_LIMIT_BAD_TOKENS + 1];
    const mt_bad_word word = {.ids = ids, .count = count};
    mt_sample_settings s;

    mt_sample_settings_init(&s);

    s.bad = &word;
    s.bad_count = 1;
    return mt_sample_settings_check(&s, 1000, err);
}

static bool bad_words(size_t count, mt_error *err)
{
    mt_buf text = repeated("{\"prompt\":\"a\",\"bad_words\":[", "\"a\",", count - 1, "\"a\"]}");
    json_t *body = json_loads(text.data, 0, NULL);
    mt_arena *arena = mt_arena_new(0);
    mt_ask_defaults defaults;
    mt_failure why = {0};
    mt_ask ask;

    mt_ask_defaults_init(&defaults);
    mt_ask_init(&ask, arena, body, &defaults);
    const bool ok = mt_openai_completions.read(&ask, &why);
    json_decref(body);
    mt_arena_free(arena);
    mt_buf_free(&text);
    return ok || mt_fail(err, MT_E_INVALID, "%s", why.text);
}

static bool media_list(size_t count, mt_error *err)
{
    mt_buf text = repeated("{'type':'video','video':[", "'data:a',", count - 1, "'data:a']}");
    json_t *part = load(text.data);
    const mt_chat_media media = {.type = MT_CHAT_VIDEO, .source = part, .place = "video"};
    mt_arena *arena = mt_arena_new(0);
    mt_chat_source out;
    const bool ok = mt_chat_source_read(&out, arena, &media, &(mt_chat_media_options){0}, err);

    mt_arena_free(arena);
    json_decref(part);
    mt_buf_free(&text);
    return ok;
}

static bool media_fps(size_t count, mt_error *err)
{
    json_t *part = json_pack("{s:s, s:s, s:I}", "type", "video", "video", "data:a", "fps", (json_int_t)count);
    const mt_chat_media media = {.type = MT_CHAT_VIDEO, .source = part, .place = "video"};
    mt_arena *arena = mt_arena_new(0);
    mt_chat_source out;
    const bool ok = mt_chat_source_read(&out, arena, &media, &(mt_chat_media_options){0}, err);

    mt_arena_free(arena);
    json_decref(part);
    return ok;
}

static bool keys_of(mt_buf text, mt_error *err)
{
    const mt_option_list none = {.count = 0};
    mt_keys keys;
    char path[100];

    put("keys", text.data);
    snprintf(path, sizeof(path), "%s/keys", folder);
    const bool ok = mt_keys_read(&keys, &none, path, err);
    mt_keys_free(&keys);
    mt_buf_free(&text);
    return ok;
}

static bool api_keys(size_t count, mt_error *err)
{
    mt_buf text;

    mt_buf_init(&text, 1u << 20);
    for (size_t i = 0; i < count; i++)
        mt_buf_printf(&text, "key-%zu\n", i);
    return keys_of(text, err);
}

static bool key_name(size_t count, mt_error *err) /* with its NUL */
{
    return keys_of(repeated("key name=", "n", count - 1, "\n"), err);
}

static bool header_bytes(size_t count, mt_error *err)
{
    uint8_t *file = mt_alloc(count + 8);

    memset(file, 0, 8);
    for (size_t i = 0; i < 4; i++)
        file[i] = (uint8_t)(count >> 8 * i);
    mt_safetensors *read = mt_safetensors_parse(file, count + 8, err);
    const bool ok = read != NULL;
    mt_safetensors_close(read);
    mt_free(file);
    return ok;
}

static bool shards(size_t count, mt_error *err)
{
    mt_buf text;
    mt_arena *arena = mt_arena_new(0);
    mt_shards out;

    mt_buf_init(&text, 1u << 20);
    for (size_t i = 0; i < count; i++)
        mt_buf_printf(&text, "%s\"t%zu\":\"%zu.safetensors\"", i ? "," : "{\"weight_map\":{", i, i);
    mt_buf_puts(&text, "}}");
    const bool ok = mt_shard_index_parse(&out, text.data, text.len, arena, err);
    mt_arena_free(arena);
    mt_buf_free(&text);
    return ok;
}

static bool has_spec(const char *model, const char *field, size_t count, mt_error *err)
{
    mt_model_spec spec;
    mt_arena *arena = mt_arena_new(0);
    mt_buf text;

    mt_buf_init(&text, 4096);
    mt_buf_printf(&text,
                  "{\"model_type\":\"%s\",\"vocab_size\":100,\"hidden_size\":64,\"num_hidden_layers\":4,"
                  "\"num_attention_heads\":4,\"intermediate_size\":96,\"num_experts\":4096,\"%s\":%zu}",
                  model, field, count);
    mt_config *config = mt_config_parse(text.data, text.len, err);
    assert_non_null(config);
    const bool ok = mt_model_spec_read(&spec, config, NULL, arena, err);
    mt_config_free(config);
    mt_buf_free(&text);
    mt_arena_free(arena);
    return ok;
}

static bool experts_per_token(size_t count, mt_error *err)
{
    return has_spec("qwen3_moe", "num_experts_per_tok", count, err);
}

static bool state_heads(size_t count, mt_error *err)
{
    return has_spec("qwen3_next", "linear_num_value_heads", count, err);
}

static bool encoder_context(size_t count, mt_error *err)
{
    mt_bert_spec spec = {0};
    char text[256];

    snprintf(text, sizeof(text),
             "{\"model_type\":\"bert\",\"vocab_size\":100,\"hidden_size\":64,\"num_hidden_layers\":4,"
             "\"num_attention_heads\":4,\"intermediate_size\":96,\"max_position_embeddings\":%zu}",
             count);
    mt_config *config = mt_config_parse(text, strlen(text), err);
    assert_non_null(config);
    mt_arena *arena = mt_arena_new(0);
    const bool ok = mt_bert_spec_read(&spec, config, arena, err);
    mt_arena_free(arena);
    mt_config_free(config);
    return ok;
}

static bool timeout_seconds(size_t count, mt_error *err)
{
    mt_call call = {.received = 1};
    json_t *body = json_pack("{s:I}", "timeout", (json_int_t)count);
    mt_failure why = {0};
    const bool ok = mt_timeout_read(&call, body, &why);

    json_decref(body);
    return ok || mt_fail(err, MT_E_INVALID, "%s", why.text);
}

static bool http_name(size_t count, mt_error *err)
{
    mt_buf name = repeated("", "n", count, "");
    const bool ok = mt_http_name_valid(name.data);

    mt_buf_free(&name);
    return ok || mt_fail(err, MT_E_INVALID, "no name");
}

static bool http_host(size_t count, mt_error *err)
{
    mt_buf name = repeated("", "a", count, "");
    mt_http_host host;
    const bool ok = mt_http_host_read(&host, name.data);

    mt_buf_free(&name);
    return ok || mt_fail(err, MT_E_INVALID, "no host");
}

static bool http_params(size_t count, mt_error *err)
{
    mt_buf pattern;

    mt_buf_init(&pattern, 1000);
    for (size_t i = 0; i < count; i++)
        mt_buf_printf(&pattern, "/{p%zu}", i);
    const mt_http_route route = {.pattern = pattern.data};
    const bool ok = mt_http_router_check(&route, 1, err);
    mt_buf_free(&pattern);
    return ok;
}

static const struct {
    const char *name;
    size_t most;
    attempt *try;
    const char *sentence; /* what it has of the one that is beyond */
    bool large;           /* what just fits takes seconds: only what does not is tried */
} rows[] = {
#define ROW(name, try, sentence)          \
    {                                     \
#name, name, try, sentence, false \
    }
    ROW(MT_LIMIT_SCHEMA_PATTERNS, schema_patterns, "is one of too many patterns: use fewer"),
    ROW(MT_LIMIT_SCHEMA_PARTS, schema_parts, "applies too many schemas to one place"),
    ROW(MT_LIMIT_SCHEMA_STRINGS, schema_strings, "is one of too many patterns for one place"),
    ROW(MT_LIMIT_SCHEMA_KEY_PATTERNS, schema_key_patterns, "has too many patterns: use fewer"),
    ROW(MT_LIMIT_SCHEMA_ONE_OF, schema_one_of, "has too many alternatives: use \"anyOf\""),
    ROW(MT_LIMIT_SCHEMA_PROPERTIES, schema_properties, "are too many: use fewer"),
    ROW(MT_LIMIT_REGEX_CATEGORIES, regex_categories, "has too many categories of Unicode"),
    ROW(MT_LIMIT_GRAMMAR_NESTING, regex_nesting, "has too many groups within one another"),
    ROW(MT_LIMIT_GRAMMAR_NESTING, grammar_nesting, "has too many groups within one another"),
    ROW(MT_LIMIT_GRAMMAR_TEXT, grammar_text, "bytes; write at most"),
    ROW(MT_LIMIT_GRAMMAR_SEARCH, grammar_search, "bytes of markers that are looked for"),
    ROW(MT_LIMIT_TEMPLATE_NAMES, template_names, "variables in one scope"),
    ROW(MT_LIMIT_TEMPLATE_RANGE, template_range, "Range too big"),
    ROW(MT_LIMIT_TEMPLATE_OUTPUT, template_output, "a text of more than"),
    ROW(MT_LIMIT_BAD_TOKENS, bad_tokens, "give words of at most"),
    ROW(MT_LIMIT_BAD_WORDS, bad_words, "words: send at most"),
    ROW(MT_LIMIT_MEDIA_LIST, media_list, "frames; send between 1 and"),
    ROW(MT_LIMIT_MEDIA_FPS, media_fps, "is no number above 0 and up to"),
    ROW(MT_LIMIT_API_KEYS, api_keys, "API keys; give fewer"),
    ROW(MT_LIMIT_KEY_NAME, key_name, "is not a name"),
    ROW(MT_LIMIT_SHARDS, shards, "shards; at most"),
    ROW(MT_LIMIT_EXPERTS_PER_TOKEN, experts_per_token, "num_experts_per_tok"),
    ROW(MT_LIMIT_STATE_HEADS, state_heads, "linear_num_value_heads"),
    ROW(MT_LIMIT_ENCODER_CONTEXT, encoder_context, "max_position_embeddings"),
    ROW(MT_LIMIT_TIMEOUT_SECONDS, timeout_seconds, "a number of seconds above 0 and up to"),
    ROW(MT_LIMIT_HTTP_NAME, http_name, "no name"),
    ROW(MT_LIMIT_HTTP_HOST, http_host, "no host"),
    ROW(MT_LIMIT_HTTP_PARAMS, http_params, "has more than"),
#undef ROW
    {"MT_LIMIT_HEADER_BYTES", MT_LIMIT_HEADER_BYTES, header_bytes, "longer than the", true},
    {"MT_LIMIT_CHOICE_LIST", MT_LIMIT_CHOICE_LIST, choice_list, "choices; give a list of 1 to", true},
};

static void limits_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_error err = {0};

        if (!rows[i].large && !rows[i].try(rows[i].most, &err))
            fail_msg("%s: %zu do not fit: %s", rows[i].name, rows[i].most, err.text);
        mt_error_clear(&err);
        if (rows[i].try(rows[i].most + 1, &err))
            fail_msg("%s: %zu fit", rows[i].name, rows[i].most + 1);
        if (!strstr(err.text, rows[i].sentence))
            fail_msg("%s: %s", rows[i].name, err.text);
    }
}

static int begin(void **state)
{
    return make_folder(state) || setup(state);
}

static int end(void **state)
{
    return teardown(state) || remove_folder(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(limits_are_exact, begin, end),
};
UNIT_MAIN(tests)
