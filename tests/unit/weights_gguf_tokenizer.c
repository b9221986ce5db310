/* Vocabularies of GGUF files as tokenizer.json, and what is refused. tests/text/test_gguf.py compares tokenizers. */
#include "gguf_files.h"

#include <math.h>

#include "base/hash.h"
#include "text/tokenizer.h"
#include "weights/gguf_tokenizer.h"
#include "weights/limits.h"

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

typedef struct word {
    const char *text;
    int32_t type;
    float score;
} word;

/* The three lists that all vocabularies have; scores are left out where `scored` is false. */
static void put_words(gguf_writer *w, const word *words, size_t count, bool scored)
{
    gguf_put_array(w, "tokenizer.ggml.tokens", MT_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        gguf_add_text(&w->keys, words[i].text);
    gguf_put_array(w, "tokenizer.ggml.token_type", MT_GGUF_I32, count);
    for (size_t i = 0; i < count; i++)
        gguf_add(&w->keys, &words[i].type, sizeof(words[i].type));
    if (!scored)
        return;
    gguf_put_array(w, "tokenizer.ggml.scores", MT_GGUF_F32, count);
    for (size_t i = 0; i < count; i++)
        gguf_add(&w->keys, &words[i].score, sizeof(words[i].score));
}

static void put_merges(gguf_writer *w, size_t count, const char *const *merges)
{
    gguf_put_array(w, "tokenizer.ggml.merges", MT_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        gguf_add_text(&w->keys, merges[i]);
}

static gguf_writer begin(const char *model, const char *pre)
{
    gguf_writer w = {0};

    gguf_put_string(&w, "general.architecture", "llama");
    gguf_put_string(&w, "tokenizer.ggml.model", model);
    if (pre)
        gguf_put_string(&w, "tokenizer.ggml.pre", pre);
    return w;
}

typedef bool (*make)(const mt_gguf *g, mt_buf *out, mt_error *err);

/* Writes a text from a file; an empty buffer with *err where it cannot be. */
static mt_buf text_of(gguf_writer *w, make function, mt_error *err)
{
    mt_buf image = gguf_image(w), out;
    mt_gguf *g = mt_gguf_parse((const uint8_t *)image.data, image.len, err);

    assert_non_null(g);
    mt_buf_init(&out, MT_LIMIT_TOKENIZER_BYTES);
    err->code = MT_OK;
    if (!function(g, &out, err))
        mt_buf_free(&out);
    mt_gguf_close(g);
    mt_buf_free(&image);
    return out;
}

static mt_tokenizer *tokenizer_of(gguf_writer *w)
{
    mt_error err;
    mt_buf json = text_of(w, mt_gguf_tokenizer, &err);
    mt_tokenizer *t;

    if (!json.data)
        fail_msg("%s", err.text);
    t = mt_tokenizer_parse(json.data, json.len, &err);
    if (!t)
        fail_msg("%s: %s", err.text, json.data);
    mt_buf_free(&json);
    return t;
}

/* wanted: ids with blanks between them */
static void expect_ids(const mt_tokenizer *t, const char *text, bool special, const char *wanted)
{
    char got[256] = "";
    mt_encode_options options = {.add_special = special};
    mt_ids ids = {0};
    mt_error err;
    size_t len = 0;

    assert_true(mt_tokenizer_encode(t, text, strlen(text), &options, &ids, &err));
    for (size_t i = 0; i < ids.count; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%u", i ? " " : "", ids.data[i]);
    assert_string_equal(got, wanted);
    mt_ids_free(&ids);
}

static void expect_text(const mt_tokenizer *t, size_t count, const uint32_t *ids, bool skip, const char *wanted)
{
    mt_buf out;

    mt_buf_init(&out, 256);
    assert_true(mt_tokenizer_decode(t, ids, count, skip, &out));
    assert_string_equal(out.data ? out.data : "", wanted);
    mt_buf_free(&out);
}

static void expect_refusal(gguf_writer *w, make function, mt_code code, const char *sentence)
{
    mt_error err;
    mt_buf out = text_of(w, function, &err);

    assert_null(out.data);
    if (err.code != code || !strstr(err.text, sentence))
        fail_msg("code %d, \"%s\" instead of code %d, \"%s\"", (int)err.code, err.text, (int)code, sentence);
}

static const word pieces[] = {{"<unk>", UNKNOWN, 0},  {"<s>", CONTROL, 0},  {"</s>", CONTROL, 0}, {"<0x0A>", BYTE, 0},
                              {"bc", NORMAL, -1},     {"ab", NORMAL, -2},   {"abc", NORMAL, -3},  {"▁a", NORMAL, -4},
                              {"a", NORMAL, -5},      {"b", NORMAL, -6},    {"c", NORMAL, -7},    {"▁", NORMAL, -8},
                              {"[PAD12]", UNUSED, 0}, {"[INST]", UNUSED, 0}};

static gguf_writer begin_pieces(void)
{
    gguf_writer w = begin("llama", "default");

    put_words(&w, pieces, MT_COUNT(pieces), true);
    gguf_put_u32(&w, "tokenizer.ggml.bos_token_id", 1);
    gguf_put_u32(&w, "tokenizer.ggml.eos_token_id", 2);
    return w;
}

/* The piece with the higher score is made first, whatever stands before. */
static void scores_become_merges(void **state)
{
    gguf_writer w = begin_pieces();
    mt_tokenizer *t = tokenizer_of(&w);

    (void)state;
    expect_ids(t, "abc", false, "11 6"); /* a bc: then abc; the blank before stays */
    expect_ids(t, "ab", true, "1 11 5");
    expect_ids(t, "a<s>a\n", false, "7 1 7 3");
    expect_ids(t, "z", false, "11 0");
    expect_text(t, 3, (uint32_t[]){1, 7, 9}, true, "ab");
    assert_int_equal(mt_tokenizer_size(t), 12);
    assert_true(mt_tokenizer_special(t, 0) && mt_tokenizer_special(t, 2) && !mt_tokenizer_special(t, 5));
    mt_tokenizer_free(t);

    w = begin_pieces();
    gguf_put_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    gguf_put_bool(&w, "tokenizer.ggml.add_bos_token", false);
    gguf_put_bool(&w, "tokenizer.ggml.add_eos_token", true);
    t = tokenizer_of(&w);
    expect_ids(t, "abc a", true, "6 7 2");
    mt_tokenizer_free(t);

    w = begin_pieces();
    put_merges(&w, 1, (const char *[]){"a b"}); /* where the file has merges, scores do not count */
    t = tokenizer_of(&w);
    expect_ids(t, "abc", false, "11 5 10");
    mt_tokenizer_free(t);
}

/* Some converters give all pieces one score: then the ids tell the order. */
static void equal_scores_are_none(void **state)
{
    word same[MT_COUNT(pieces)];
    gguf_writer w = begin("llama", NULL);
    mt_tokenizer *t;

    (void)state;
    memcpy(same, pieces, sizeof(same));
    for (size_t i = 0; i < MT_COUNT(same); i++)
        same[i].score = -1000;
    same[4].text = "ab";
    same[5].text = "bc";
    put_words(&w, same, MT_COUNT(same), true);
    t = tokenizer_of(&w);
    expect_ids(t, "abc", false, "11 6");
    mt_tokenizer_free(t);
    same[6].text = "abx";
    w = begin("llama", NULL);
    put_words(&w, same, MT_COUNT(same), true);
    t = tokenizer_of(&w);
    expect_ids(t, "abc", false, "11 4 10");
    mt_tokenizer_free(t);
}

/* Converters write blanks in tokens that were added, and give them a score that would put their merges last. */
static void added_pieces_come_first(void **state)
{
    static const word words[] = {{"<unk>", UNKNOWN, 0}, {"▁a", NORMAL, -1},          {"a", NORMAL, -2},
                                 {"▁", NORMAL, -3},     {"  ", USER_DEFINED, -1000}, {"<b>", USER_DEFINED, -1000}};
    gguf_writer w = begin("llama", "default");
    mt_tokenizer *t;

    (void)state;
    put_words(&w, words, MT_COUNT(words), true);
    gguf_put_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    t = tokenizer_of(&w);
    expect_ids(t, "a  a", false, "2 4 2");
    expect_ids(t, "a a", false, "2 1");
    expect_ids(t, "a▁▁<b>", false, "2 4 5");
    assert_false(mt_tokenizer_special(t, 5));
    mt_tokenizer_free(t);
}

/* With tokens for instructions only the beginning of a text gets a blank, else what follows a special token, too. */
static void a_blank_is_added_once(void **state)
{
    word words[MT_COUNT(pieces)];
    gguf_writer w = begin("llama", "default");
    mt_tokenizer *t;

    (void)state;
    memcpy(words, pieces, sizeof(words));
    words[13].type = CONTROL;
    put_words(&w, words, MT_COUNT(words), true);
    t = tokenizer_of(&w);
    expect_ids(t, "a[INST]a[INST] a", false, "7 13 8 13 7");
    mt_tokenizer_free(t);
}

static void merges_and_patterns(void **state)
{
    static const word words[] = {{"a", NORMAL, 0},
                                 {"b", NORMAL, 0},
                                 {"1", NORMAL, 0},
                                 {"2", NORMAL, 0},
                                 {"Ġ", NORMAL, 0},
                                 {"ab", NORMAL, 0},
                                 {"12", NORMAL, 0},
                                 {"<|im_end|>", CONTROL, 0},
                                 {"Ã", NORMAL, 0},
                                 {"©", NORMAL, 0},
                                 {"<|fim_pad|>", CONTROL, 0},
                                 {"Ġab", NORMAL, 0},
                                 {"[PAD]", UNUSED, 0}};
    static const char *const merges[] = {"a b", "1 2"};
    static const struct {
        const char *pre, *ids;
    } rows[] = {{"qwen2", "4 5 2 3 7 8 9"},
                {"qwen35", "4 5 2 3 7 8 9"},
                {"llama-bpe", "11 6 7"},
                {"gpt-4o", "11 6 7"},
                {"tekken", "11 2 3 7"},
                {"glm4", "4 5 6 7"},
                {"smollm", "4 5 2 3 7"},
                {"gpt-2", "4 5 6 7"},
                {"lfm2", "11 6 7"},
                {"pixtral", "11 6 7"},
                {"roberta-bpe", "4 5 6 7"},
                {"deepseek-v3", "4 5 6 7"},
                {"deepseek-coder", "4 5 2 3 7"},
                {"minimax-m2", "4 5 6 7"},
                {"dbrx", "4 5 6 7"},
                {"smaug-bpe", "4 5 6 7"},
                {"seed-coder", "4 5 2 3 7"},
                {"refact", "4 5 2 3 7"},
                {"starcoder", "4 5 2 3 7"},
                {"command-r", "4 5 2 3 7 8 9"},
                {"olmo", "4 5 6 7"},
                {"exaone4", "4 5 6 7"}};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        const bool qwen = strncmp(rows[i].pre, "qwen", 4) == 0, nfc = qwen || strcmp(rows[i].pre, "command-r") == 0;
        gguf_writer w = begin("gpt2", rows[i].pre);
        mt_tokenizer *t;

        put_words(&w, words, MT_COUNT(words), false);
        put_merges(&w, MT_COUNT(merges), merges);
        t = tokenizer_of(&w);
        expect_ids(t, nfc ? " ab12<|im_end|>e\xCC\x81" : " ab12<|im_end|>", true, rows[i].ids);
        assert_true(mt_tokenizer_special(t, 7));
        assert_int_equal(mt_tokenizer_special(t, 10), !qwen); /* Qwen's own file does not have it as special */
        assert_int_equal(mt_tokenizer_size(t), 12);
        mt_tokenizer_free(t);
    }
}

/* Gemma 4: merges of characters; tokens that converters want to be shown are special in the model's own file. */
static void gemma4_is_read(void **state)
{
    static const word words[] = {{"<bos>", CONTROL, 0},
                                 {"a", NORMAL, 0},
                                 {"▁", NORMAL, 0},
                                 {"▁a", NORMAL, 0},
                                 {"<0xC3>", BYTE, 0},
                                 {"<0xA9>", BYTE, 0},
                                 {"<|channel>", USER_DEFINED, 0},
                                 {"<|tool_response>", USER_DEFINED, 0},
                                 {"<turn|>", CONTROL, 0},
                                 {"</s>", NORMAL, 0}};
    mt_error err;
    mt_buf json;
    mt_tokenizer *t;
    gguf_writer w;

    (void)state;
    for (int i = 0; i < 2; i++) {
        w = begin("gemma4", NULL);
        put_words(&w, words, MT_COUNT(words), false);
        put_merges(&w, 1, (const char *[]){"▁ a"});
        gguf_put_u32(&w, "tokenizer.ggml.bos_token_id", 0);
        gguf_put_bool(&w, "tokenizer.ggml.add_bos_token", false); /* some converters wrote it, which was wrong */
        if (i == 0) {
            t = tokenizer_of(&w);
            expect_ids(t, "a aé<|channel>", true, "0 1 3 4 5 6");
            assert_true(mt_tokenizer_special(t, 6));
            mt_tokenizer_free(t);
        }
    }
    json = text_of(&w, mt_gguf_generation_config, &err);
    assert_string_equal(json.data, "{\"eos_token_id\":[8,7]}");
    mt_buf_free(&json);
}

static void encoders_are_read(void **state)
{
    static const word bert[] = {{"[PAD]", CONTROL, 0}, {"[UNK]", CONTROL, 0}, {"[CLS]", CONTROL, 0},
                                {"[SEP]", CONTROL, 0}, {"▁un", NORMAL, 0},    {"able", NORMAL, 0}};
    static const word unigram[] = {{"<s>", CONTROL, 0},        {"</s>", CONTROL, 0},  {"<unk>", UNKNOWN, 0},
                                   {"▁a", NORMAL, -1},         {"a", NORMAL, -2},     {"▁", NORMAL, -3},
                                   {"[PAD6]", UNUSED, -10000}, {"<mask>", CONTROL, 0}};
    gguf_writer w = begin("bert", "bert-bge");
    mt_tokenizer *t;

    (void)state;
    put_words(&w, bert, MT_COUNT(bert), false);
    t = tokenizer_of(&w);
    expect_ids(t, "UNable un", true, "2 4 5 4 3");
    expect_ids(t, "able", false, "1");
    mt_tokenizer_free(t);
    w = begin("bert", NULL);
    put_words(&w, bert, MT_COUNT(bert), false);
    gguf_put_bool(&w, "tokenizer.ggml.normalizer.lowercase", false);
    t = tokenizer_of(&w);
    expect_ids(t, "UNable un", false, "1 4");
    mt_tokenizer_free(t);

    w = begin("t5", "default");
    put_words(&w, unigram, MT_COUNT(unigram), true);
    gguf_put_u32(&w, "tokenizer.ggml.bos_token_id", 0);
    gguf_put_u32(&w, "tokenizer.ggml.eos_token_id", 1);
    gguf_put_bool(&w, "tokenizer.ggml.add_bos_token", true);
    gguf_put_bool(&w, "tokenizer.ggml.remove_extra_whitespaces", true);
    t = tokenizer_of(&w);
    expect_ids(t, "a   aa <mask>", true, "0 3 3 4 7 1");
    expect_ids(t, "z", false, "5 2");
    mt_tokenizer_free(t);
}

static void a_whole_tokenizer_is_taken(void **state)
{
    gguf_writer w = {0};
    mt_error err;
    mt_buf json;

    (void)state;
    gguf_put_string(&w, "tokenizer.huggingface.json", "{\"version\":\"1.0\"}");
    json = text_of(&w, mt_gguf_tokenizer, &err);
    assert_string_equal(json.data, "{\"version\":\"1.0\"}");
    mt_buf_free(&json);
}

static void expect_json(gguf_writer *w, make function, const char *wanted)
{
    mt_error err;
    mt_buf json = text_of(w, function, &err);

    assert_non_null(json.data);
    assert_string_equal(json.data, wanted);
    mt_buf_free(&json);
}

static void put_ends(gguf_writer *w, size_t count, const word *words)
{
    *w = begin("gpt2", "gpt-4o");
    put_words(w, words, count, false);
}

static void settings_are_read(void **state)
{
    static const word oss[] = {
        {"a", NORMAL, 0}, {"<|end|>", CONTROL, 0}, {"<|return|>", CONTROL, 0}, {"<|call|>", CONTROL, 0}};
    static const word phi[] = {{"a", NORMAL, 0}, {"<|end|>", CONTROL, 0}, {"<|endoftext|>", NORMAL, 0}};
    gguf_writer w = begin_pieces();

    (void)state;
    gguf_put_u32(&w, "tokenizer.ggml.unknown_token_id", 0);
    gguf_put_u32(&w, "tokenizer.ggml.padding_token_id", 12);
    expect_json(&w, mt_gguf_tokenizer_config, "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"unk_token\":\"<unk>\"}");
    w = begin_pieces();
    gguf_put_u32(&w, "tokenizer.ggml.eot_token_id", 5);
    gguf_put_u32(&w, "tokenizer.ggml.eom_token_id", 4);
    gguf_put_f32(&w, "general.sampling.temp", 0.6f);
    gguf_put_u32(&w, "general.sampling.top_k", 20);
    gguf_put_f32(&w, "general.sampling.top_p", 0.95f);
    expect_json(&w, mt_gguf_generation_config,
                "{\"eos_token_id\":[2,5,4],\"temperature\":0.6,\"top_k\":20,\"top_p\":0.95}");
    put_ends(&w, MT_COUNT(oss), oss);
    expect_json(&w, mt_gguf_generation_config, "{\"eos_token_id\":[2,3]}");
    put_ends(&w, MT_COUNT(phi), phi);
    expect_json(&w, mt_gguf_generation_config, "{\"eos_token_id\":[1]}");
}

static void templates_are_read(void **state)
{
    gguf_writer w = begin("gpt2", "qwen2");
    mt_buf image, out;
    mt_error err;
    mt_gguf *g;

    (void)state;
    gguf_put_string(&w, "tokenizer.chat_template", "{{ plain }}");
    gguf_put_string(&w, "tokenizer.chat_template.tool_use", "{{ tools }}");
    image = gguf_image(&w);
    g = mt_gguf_parse((const uint8_t *)image.data, image.len, &err);
    assert_non_null(g);
    assert_true(mt_gguf_has_tokenizer(g) && mt_gguf_has_template(g, NULL) && mt_gguf_has_template(g, "tool_use"));
    assert_false(mt_gguf_has_template(g, "rag"));
    mt_buf_init(&out, 20);
    assert_true(mt_gguf_template(g, NULL, &out, &err));
    assert_string_equal(out.data, "{{ plain }}");
    assert_false(mt_gguf_template(g, "tool_use", &out, &err));
    assert_string_equal(err.text, "\"tokenizer.chat_template\" has 11 bytes; at most 20 are read");
    out.len = 0;
    out.full = false;
    assert_true(mt_gguf_template(g, "tool_use", &out, &err));
    assert_string_equal(out.data, "{{ tools }}");
    assert_false(mt_gguf_template(g, "rag", &out, &err));
    assert_int_equal(err.code, MT_E_NOT_FOUND);
    mt_buf_free(&out);
    mt_gguf_close(g);
    mt_buf_free(&image);
}

static void unknown_tokenizers_are_refused(void **state)
{
    static const word one[] = {{"a", NORMAL, 0}};
    static const char *const unknown[] = {"default", "viking", "llama-bpe ", "", "qwen2 deepseek-r1-qwen"};
    gguf_writer w = {0};

    (void)state;
    gguf_put_u32(&w, "general.alignment", 32);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_NOT_FOUND, "the file has no tokenizer");
    w = begin("rwkv", NULL);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_UNSUPPORTED,
                   "\"tokenizer.ggml.model\" is \"rwkv\", a tokenizer that motet does not have");
    w = begin("gpt2", NULL);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "\"tokenizer.ggml.pre\" is missing");
    for (size_t i = 0; i < MT_COUNT(unknown); i++) {
        char sentence[100];

        w = begin("gpt2", unknown[i]);
        put_words(&w, one, 1, false);
        snprintf(sentence, sizeof(sentence), "\"tokenizer.ggml.pre\" is \"%s\", a way to split texts", unknown[i]);
        expect_refusal(&w, mt_gguf_tokenizer, MT_E_UNSUPPORTED, sentence);
    }
}

/* A vocabulary with one word changed, and lists of other lengths. */
static void expect_bad_word(word bad, const char *sentence)
{
    word words[MT_COUNT(pieces)];
    gguf_writer w = begin("llama", NULL);

    memcpy(words, pieces, sizeof(words));
    words[7] = bad;
    put_words(&w, words, MT_COUNT(words), true);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, sentence);
}

static void words_that_lie_are_refused(void **state)
{
    gguf_writer w = begin("llama", NULL);

    (void)state;
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "\"tokenizer.ggml.tokens\" is not a list of 1 to");
    w = begin("llama", NULL);
    gguf_put_array(&w, "tokenizer.ggml.tokens", MT_GGUF_U32, 1);
    gguf_add_u32(&w.keys, 7);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "\"tokenizer.ggml.tokens\" is not a list of 1 to");
    expect_bad_word((word){"ab", NORMAL, 0}, "tokens 5 and 7 in \"tokenizer.ggml.tokens\" are the same, \"ab\"");
    expect_bad_word((word){"\xFF", NORMAL, 0}, "token 7 in \"tokenizer.ggml.tokens\" is not UTF-8 of at most 65536");
    expect_bad_word((word){"x", 7, 0}, "token 7 in \"tokenizer.ggml.token_type\" has no type from 0 to 6");
    expect_bad_word((word){"x", -1, 0}, "token 7 in \"tokenizer.ggml.token_type\" has no type from 0 to 6");
    expect_bad_word((word){"x", NORMAL, (float)NAN}, "token 7 in \"tokenizer.ggml.scores\" has no score");
    w = begin("llama", NULL);
    put_words(&w, pieces, 4, false);
    gguf_put_array(&w, "tokenizer.ggml.scores", MT_GGUF_F32, 3);
    gguf_add(&w.keys, (float[3]){0}, 3 * sizeof(float));
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "\"tokenizer.ggml.scores\" is not a list of 4 numbers");
    w = begin("t5", NULL);
    put_words(&w, pieces, 4, false);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "\"tokenizer.ggml.scores\" is not a list of 4 numbers");
    w = begin("llama", NULL);
    gguf_put_array(&w, "tokenizer.ggml.tokens", MT_GGUF_STRING, 1);
    gguf_add_text(&w.keys, "a");
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "\"tokenizer.ggml.token_type\" is not a list of 1 numbers");
}

static void ids_that_lie_are_refused(void **state)
{
    static const char *const keys[] = {"bos", "eos", "unknown", "padding", "seperator", "mask", "eot", "eom"};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(keys); i++) {
        static const make functions[] = {mt_gguf_tokenizer, mt_gguf_tokenizer_config, mt_gguf_generation_config};
        make function = functions[i < 3 ? 0 : i < 6 ? 1 : 2];
        gguf_writer w = begin("llama", NULL);
        char key[60], sentence[120];

        put_words(&w, pieces, MT_COUNT(pieces), true);
        snprintf(key, sizeof(key), "tokenizer.ggml.%s_token_id", keys[i]);
        gguf_put_u32(&w, key, (uint32_t)MT_COUNT(pieces));
        snprintf(sentence, sizeof(sentence), "\"%s\" is not the id of one of the 14 tokens", key);
        expect_refusal(&w, function, MT_E_INVALID, sentence);
    }
}

static void merges_that_lie_are_refused(void **state)
{
    static const word words[] = {{"a", NORMAL, 0}, {"b", NORMAL, 0}, {"ab", NORMAL, 0}};
    static const char *const bad[] = {"", "a", "ab", " a", "a ", "abc"};
    gguf_writer w;
    mt_error err;
    mt_buf json;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(bad); i++) {
        w = begin("gpt2", "qwen2");
        put_words(&w, words, MT_COUNT(words), false);
        put_merges(&w, 2, (const char *[]){"a b", bad[i]});
        expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID,
                       "merge 1 in \"tokenizer.ggml.merges\" is not two tokens; download the file again");
    }
    w = begin("gpt2", "qwen2");
    put_words(&w, words, MT_COUNT(words), false);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "\"tokenizer.ggml.merges\" is not a list of at most");
    w = begin("gpt2", "qwen2");
    put_words(&w, words, MT_COUNT(words), false);
    put_merges(&w, 2, (const char *[]){"a b", "a c"});
    json = text_of(&w, mt_gguf_tokenizer, &err);
    assert_null(mt_tokenizer_parse(json.data, json.len, &err));
    assert_non_null(strstr(err.text, "merge 1 of it names a token that is not in the vocabulary"));
    mt_buf_free(&json);
    w = begin("bert", NULL);
    put_words(&w, words, MT_COUNT(words), false);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "\"tokenizer.ggml.unknown_token_id\" is missing");
}

/* A million merges that make nothing new: the file is read, and each pair counts once. */
static void a_million_merges_are_read(void **state)
{
    static const word words[] = {{"a", NORMAL, 0}, {"b", NORMAL, 0}, {"ab", NORMAL, 0}};
    static const char zeros[MT_LIMIT_VOCAB + 1];
    const size_t count = unit_quick() ? 1000 : 1000000;
    gguf_writer w = begin("gpt2", "gpt-2");
    mt_tokenizer *t;

    (void)state;
    put_words(&w, words, MT_COUNT(words), false);
    gguf_put_array(&w, "tokenizer.ggml.merges", MT_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        gguf_add_text(&w.keys, "a b");
    t = tokenizer_of(&w);
    expect_ids(t, "ab", false, "2");
    mt_tokenizer_free(t);
    w = begin("gpt2", "gpt-2");
    put_words(&w, words, MT_COUNT(words), false);
    gguf_put_array(&w, "tokenizer.ggml.merges", MT_GGUF_U8, MT_LIMIT_VOCAB + 1);
    gguf_add(&w.keys, zeros, sizeof(zeros));
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_INVALID, "is not a list of at most 4194304 merges");
}

/* Merges of pieces that are longer than any that a trainer makes would take minutes to derive. */
static void long_pieces_are_refused(void **state)
{
    enum { LONG = 1 << 15 };
    static char text[2][LONG + 1];
    word words[] = {{text[0], NORMAL, 0}, {"a", NORMAL, -1}, {"b", NORMAL, -2}, {text[1], NORMAL, -3}};
    gguf_writer w = begin("llama", NULL);
    mt_tokenizer *t;

    (void)state;
    _Static_assert((uint64_t)LONG * LONG == MT_LIMIT_GGUF_SPLITS, "a piece of LONG bytes is exactly at the limit");
    memset(text[0], 'a', LONG / 2);
    put_words(&w, words, 3, true);
    t = tokenizer_of(&w);
    assert_int_equal(mt_tokenizer_size(t), 3);
    mt_tokenizer_free(t);
    memset(text[0], 'a', LONG);
    w = begin("llama", NULL);
    put_words(&w, words, 3, true);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_TOO_LARGE, "too long for pieces of a SentencePiece model");
}

/* Tokens that all belong into one slot of their table, which one more may not be looked for in. */
static void tokens_that_meet_are_refused(void **state)
{
    enum { SLOTS = 1024, LENGTH = 8 };
    static char texts[MT_LIMIT_GGUF_PROBES + 1][LENGTH + 1];
    word words[MT_COUNT(texts)];
    gguf_writer w = begin("gpt2", "gpt-2");
    mt_tokenizer *t;
    unsigned number = 0;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(texts); number++) {
        snprintf(texts[i], sizeof(texts[i]), "%08x", number);
        words[i] = (word){texts[i], NORMAL, 0};
        i += mt_hash(texts[i], LENGTH) % SLOTS == 0;
    }
    put_words(&w, words, MT_LIMIT_GGUF_PROBES, false);
    put_merges(&w, 0, NULL);
    t = tokenizer_of(&w);
    assert_int_equal(mt_tokenizer_size(t), MT_LIMIT_GGUF_PROBES);
    mt_tokenizer_free(t);
    w = begin("gpt2", "gpt-2");
    put_words(&w, words, MT_COUNT(words), false);
    put_merges(&w, 0, NULL);
    expect_refusal(&w, mt_gguf_tokenizer, MT_E_TOO_LARGE, "were chosen to make their table slow");
}

static void a_full_buffer_is_an_error(void **state)
{
    gguf_writer w = begin_pieces();
    mt_buf image = gguf_image(&w), out;
    mt_error err;
    mt_gguf *g = mt_gguf_parse((const uint8_t *)image.data, image.len, &err);

    (void)state;
    mt_buf_init(&out, 300);
    assert_false(mt_gguf_tokenizer(g, &out, &err));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    mt_buf_free(&out);
    mt_gguf_close(g);
    mt_buf_free(&image);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(scores_become_merges),
    cmocka_unit_test(equal_scores_are_none),
    cmocka_unit_test(added_pieces_come_first),
    cmocka_unit_test(a_blank_is_added_once),
    cmocka_unit_test(merges_and_patterns),
    cmocka_unit_test(gemma4_is_read),
    cmocka_unit_test(encoders_are_read),
    cmocka_unit_test(a_whole_tokenizer_is_taken),
    cmocka_unit_test(settings_are_read),
    cmocka_unit_test(templates_are_read),
    cmocka_unit_test(unknown_tokenizers_are_refused),
    cmocka_unit_test(words_that_lie_are_refused),
    cmocka_unit_test(ids_that_lie_are_refused),
    cmocka_unit_test(merges_that_lie_are_refused),
    cmocka_unit_test(a_million_merges_are_read),
    cmocka_unit_test(long_pieces_are_refused),
    cmocka_unit_test(tokens_that_meet_are_refused),
    cmocka_unit_test(a_full_buffer_is_an_error),
};
UNIT_MAIN(tests)
