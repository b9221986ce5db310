/* What the recorded answers (tests/text) do not cover: user text, broken text, broken files, lookups, threads. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "text/limits.h"
#include "text/tokenizer.h"
#include "weights/limits.h"

#define FOLDER "tests/text/tokenizers/"

static mt_tokenizer *load(const char *name)
{
    mt_error err;
    char path[512];
    mt_tokenizer *t;

    snprintf(path, sizeof(path), FOLDER "%s.json", name);
    t = mt_tokenizer_load(path, &err);
    if (!t)
        fail_msg("%s", err.text);
    return t;
}

/* The tokens of text as the file spells them, with blanks between them. */
static void spell(const mt_tokenizer *t, const char *text, size_t len, const mt_encode_options *options, char *out,
                  size_t size)
{
    mt_ids ids = {0};
    mt_error err;
    size_t used = 0;

    if (!mt_tokenizer_encode(t, text, len, options, &ids, &err))
        fail_msg("%s", err.text);
    out[0] = '\0';
    for (size_t i = 0; i < ids.count; i++) {
        size_t token_len;
        const char *token = mt_tokenizer_token(t, ids.data[i], &token_len);

        assert_non_null(token);
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", i ? " " : "", (int)token_len, token);
        assert_true(used < size);
    }
    mt_ids_free(&ids);
}

static void check(const mt_tokenizer *t, const char *text, const mt_range *plain, size_t count, const char *wanted)
{
    mt_encode_options options = {.plain = plain, .plain_count = count};
    char got[2048];

    spell(t, text, strlen(text), &options, got, sizeof(got));
    assert_string_equal(got, wanted);
}

/* Bytes as the tokens of tests/text/make.py's spelled(). */
#define B_LT "<0x3C>"
#define B_B "<0x62>"
#define B_GT "<0x3E>"

static void special_tokens_are_not_seen_in_plain_text(void **state)
{
    static const mt_range all[] = {{0, 100}}, first[] = {{0, 3}}, middle[] = {{1, 2}}, edges[] = {{0, 1}, {4, 9}};
    mt_tokenizer *t = load("bpe-fallback");

    (void)state;
    check(t, "a<b>\n\n", NULL, 0, "a <b> \n\n");
    check(t, "a<b>\n\n", all, 1, "a " B_LT " b " B_GT " \n\n"); /* \n\n is an added token, but not a special one */
    check(t, "<b>a<b>", first, 1, B_LT " b " B_GT " a <b>");
    check(t, "<b>a<b>", middle, 1, B_LT " b " B_GT " a <b>");
    check(t, "a<b>a", edges, 2, "a <b> a"); /* it touches neither */
    check(t, "<b><b>", first, 1, B_LT " b " B_GT " <b>");
    check(t, "<b>", &(mt_range){3, 3}, 1, "<b>");
    mt_tokenizer_free(t);
}

static void places_in_the_text_become_places_among_the_tokens(void **state)
{
    size_t places[] = {0, 1, 2, 4, 6}, within[] = {1, 3, 7, 9};
    mt_encode_options options = {.places = places, .place_count = 5};
    mt_tokenizer *t = load("bpe-fallback");
    mt_ids ids = {0};
    mt_error err;

    (void)state;
    mt_ids_add(&ids, 0); /* what was there before does not count */
    assert_true(mt_tokenizer_encode(t, "a<b>\n\n", 6, &options, &ids, &err));
    assert_memory_equal(places, ((const size_t[]){0, 1, 1, 2, 3}), sizeof(places));
    ids.count = 0;
    options = (mt_encode_options){.places = within, .place_count = 4};
    assert_true(mt_tokenizer_encode(t, "<a<<b>\xc3\xa9<", 9, &options, &ids, &err));
    assert_memory_equal(within, ((const size_t[]){1, 3, 4, 6}), sizeof(within));
    mt_ids_free(&ids);
    mt_tokenizer_free(t);
}

/* Where a special token must not be seen, a shorter one that is not special still is. */
static void other_added_tokens_take_their_place(void **state)
{
    static const mt_range all[] = {{0, 100}};
    mt_tokenizer *t = load("added-raw");

    (void)state;
    check(t, "<ab>", NULL, 0, "<ab>");
    check(t, "<ab>", all, 1, "<ab " B_GT);
    check(t, "<abc>", all, 1, "<abc>");
    check(t, " <r>  ", &(mt_range){4, 6}, 1, "<0x20> <r>"); /* it may take white space that a user wrote */
    mt_tokenizer_free(t);
}

/* A special token that is looked for in the normalized text, where bytes have other places. */
static void marks_follow_the_normalizer(void **state)
{
    static const mt_range user[] = {{1, 5}}, late[] = {{6, 9}};
    mt_tokenizer *t =
        load("added-prepend"); /* a U+2581 before each text, and for each blank; so <s> is found with one */

    (void)state;
    check(t, "a <s> <s>", NULL, 0, "<0xE2> <0x96> <0x81> <0x61> \xE2\x96\x81<s> \xE2\x96\x81<s>");
    check(t, "a <s> <s>", user, 1,
          "<0xE2> <0x96> <0x81> <0x61> <0xE2> <0x96> <0x81> <0x3C> <0x73> <0x3E> \xE2\x96\x81<s>");
    check(t, "a <s> <s>", late, 1,
          "<0xE2> <0x96> <0x81> <0x61> \xE2\x96\x81<s> <0xE2> <0x96> <0x81> <0x3C> <0x73> <0x3E>");
    mt_tokenizer_free(t);
}

static void broken_text_is_read_as_replacement_characters(void **state)
{
    static const struct {
        const char *text, *bytes;
    } rows[] = {
        {"\xFF", "\xEF\xBF\xBD"},
        {"a\xC3", "a\xEF\xBF\xBD"},
        {"\xE2\x82"
         "b",
         "\xEF\xBF\xBD"
         "b"},
        {"\xF0\x9F\x98", "\xEF\xBF\xBD"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xC0\xAF\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    static const mt_range range = {1, 4};
    mt_tokenizer *t = load("added-raw");

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        char broken[512], repaired[512];

        spell(t, rows[i].text, strlen(rows[i].text), NULL, broken, sizeof(broken));
        spell(t, rows[i].bytes, strlen(rows[i].bytes), NULL, repaired, sizeof(repaired));
        assert_string_equal(broken, repaired);
    }
    check(t, "\xFF<w>", NULL, 0, "<0xEF> <0xBF> <0xBD> <w>");
    check(t, "\xFF<w>", &range, 1, "<0xEF> <0xBF> <0xBD> " B_LT " <0x77> " B_GT);
    check(t, "\xFF<w>\xFF<w>", &range, 1, "<0xEF> <0xBF> <0xBD> " B_LT " <0x77> " B_GT " <0xEF> <0xBF> <0xBD> <w>");
    mt_tokenizer_free(t);
}

static void tokens_can_be_looked_up(void **state)
{
    mt_tokenizer *t = load("bpe-gpt2");
    uint32_t end = mt_tokenizer_find(t, "<|endoftext|>", 13);
    mt_buf bytes;
    size_t len;

    (void)state;
    assert_int_equal(end + 1, mt_tokenizer_size(t));
    assert_true(mt_tokenizer_special(t, end));
    assert_false(mt_tokenizer_special(t, 0));
    assert_false(mt_tokenizer_special(t, end + 1));
    assert_null(mt_tokenizer_token(t, end + 1, &len));
    assert_memory_equal(mt_tokenizer_token(t, end, &len), "<|endoftext|>", 13);
    assert_int_equal(len, 13);
    assert_int_equal(mt_tokenizer_find(t, "no such token", 13), MT_TOKEN_NONE);
    mt_buf_init(&bytes, 100);
    assert_true(mt_tokenizer_bytes(t, mt_tokenizer_find(t, "\xC4\xA0the", 5), &bytes)); /* U+0120 is a blank */
    assert_string_equal(bytes.data, " the");
    mt_buf_free(&bytes);
    assert_true(mt_tokenizer_bytes(t, 0xC3, &bytes));
    assert_string_equal(bytes.data, "\xC3");
    assert_true(mt_tokenizer_bytes(t, end + 1, &bytes));
    assert_string_equal(bytes.data, "\xC3");
    mt_buf_free(&bytes);
    mt_tokenizer_free(t);
    t = load("bpe-fallback");
    assert_true(mt_tokenizer_bytes(t, mt_tokenizer_find(t, "<0xFF>", 6), &bytes));
    assert_true(mt_tokenizer_bytes(t,
                                   mt_tokenizer_find(t,
                                                     "\xE2\x96\x81"
                                                     "a",
                                                     4),
                                   &bytes));
    assert_string_equal(bytes.data, "\xFF a");
    mt_buf_free(&bytes);
    mt_tokenizer_free(t);
}

#define SPLIT(pattern, behavior) \
    "{\"type\":\"Split\",\"pattern\":" pattern ",\"behavior\":\"" behavior "\",\"invert\":false}"
#define DOUBLE "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}"
#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}"

static void files_that_cannot_be_read_are_errors(void **state)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"", "invalid JSON at byte 0: expected a value, found the end; download the file again"},
        {"[]", "it is not a tokenizer.json: an object with a \"model\"; download it again"},
        {"{}", "it is not a tokenizer.json: an object with a \"model\"; download it again"},
        {"{\"version\":\"2.0\"," MODEL "}", "its version is \"2.0\"; motet reads version 1.0"},
        {"{" MODEL "," MODEL "}", "it has \"model\" twice; download the file again"},
        {"{\"model\":{\"type\":\"Morse\",\"vocab\":{}}}",
         "it has a model of type \"Morse\", which motet does not know; docs/tokenizers.md lists those it does"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}",
         "its model lacks the vocabulary or the merges of its kind; download it again"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}",
         "\"model\" of it has a token whose id is no number; download the file again"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}",
         "merge 0 of it names a token that is not in the vocabulary; download the file again"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]}}",
         "\"model\" of it has a merge that is not two tokens; download the file again"},
        {"{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{\"a\":0},\"merges\":[]}}",
         "its \"dropout\" would make tokens random; set it to null"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":1}}",
         "\"unk_id\" of its model is not in its vocabulary; download the file again"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}",
         "its model has no \"unk_token\"; download the file again"},
        {"{\"normalizer\":{\"type\":\"Rot13\"}," MODEL "}",
         "it has a normalizer of type \"Rot13\", which motet does not know; docs/tokenizers.md lists those it does"},
        {"{\"normalizer\":{}," MODEL "}",
         "its \"normalizer\" has a part without a \"type\"; save it with a newer tokenizers library"},
        {"{\"normalizer\":{\"type\":\"Prepend\"}," MODEL "}",
         "\"prepend\" of the normalizer \"Prepend\" must be a string; download the file again"},
        {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}," MODEL "}",
         "its \"precompiled_charsmap\" is not a table of SentencePiece; download the file again"},
        {"{\"pre_tokenizer\":{\"type\":\"FixedLength\",\"length\":0}," MODEL "}",
         "\"length\" of its pre_tokenizer is not one of 1 to 65535"},
        {"{\"pre_tokenizer\":{\"type\":\"Words\"}," MODEL "}",
         "it has a pre_tokenizer of type \"Words\", which motet does not know; docs/tokenizers.md lists those "
         "it does"},
        {"{\"pre_tokenizer\":" SPLIT("{\"Regex\":\"(\"}", "Isolated") "," MODEL "}",
         "it has a regular expression that motet cannot read, \"(\": missing closing parenthesis; use another file"},
        {"{\"pre_tokenizer\":" SPLIT("{\"String\":\"x\"}", "Eaten") "," MODEL "}",
         "\"behavior\" of the pre_tokenizer \"Split\" is \"Eaten\", which motet does not know; see docs/tokenizers.md"},
        {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"__\"}," MODEL "}",
         "\"replacement\" of the pre_tokenizer \"Metaspace\" must be one character; download the file again"},
        {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"B\"}}]}," MODEL "}",
         "its post_processor \"TemplateProcessing\" is not tokens around one text; use another file"},
        {"{\"decoder\":{\"type\":\"CTC\"}," MODEL "}",
         "it has a decoder of type \"CTC\", which motet does not know; docs/tokenizers.md lists those it does"},
        {"{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"ByteFallback\"}]}," MODEL
         "}",
         "its decoder \"ByteFallback\" stands where tokens cannot be decoded one by one; see docs/tokenizers.md"},
        {"{\"decoder\":{\"type\":\"Strip\",\"content\":\"a\",\"start\":0,\"stop\":65}," MODEL "}",
         "its decoder \"Strip\" strips more than 64 characters; use another file"},
        {"{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" DOUBLE "," DOUBLE "," DOUBLE "," DOUBLE "," DOUBLE
         "," DOUBLE "]}," MODEL "}",
         "its decoder makes texts more than 32 times as long, which no real tokenizer does; download the file again"},
        {"{\"added_tokens\":[{\"content\":\"a\"}]," MODEL "}",
         "its \"added_tokens\" must be objects with \"content\" and five flags; download the file again"},
        {"{\"added_tokens\":[," MODEL "}",
         "invalid JSON at byte 17: expected a value, found ','; download the file again"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_error err = {0};

        assert_null(mt_tokenizer_parse(rows[i].json, strlen(rows[i].json), &err));
        assert_string_equal(err.text, rows[i].text);
    }
}

static void paths_are_named_in_errors(void **state)
{
    mt_error err;

    (void)state;
    assert_null(mt_tokenizer_load("/no/such/file", &err));
    assert_int_equal(err.code, MT_E_NOT_FOUND);
    assert_null(mt_tokenizer_load("tests/text", &err));
    assert_non_null(strstr(err.text, "tests/text/tokenizer.json"));
    assert_null(mt_tokenizer_load("meson.build", &err));
    assert_memory_equal(err.text, "\"meson.build\": invalid JSON", 27);
}

static void what_has_no_token_is_an_error_or_left_out(void **state)
{
    static const char unigram[] = "{\"model\":{\"type\":\"Unigram\",\"unk_id\":null,\"vocab\":[[\"a\",-1]]}}";
    static const char bpe[] = "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"a\":0},\"merges\":[]}}";
    mt_ids ids = {0};
    mt_tokenizer *t;
    mt_error err;

    (void)state;
    t = mt_tokenizer_parse(unigram, strlen(unigram), &err);
    assert_non_null(t);
    assert_true(mt_tokenizer_encode(t, "aa", 2, NULL, &ids, &err));
    assert_false(mt_tokenizer_encode(t, "aab", 3, NULL, &ids, &err));
    assert_string_equal(err.text, "the tokenizer has no token for a character and no \"unk_id\"; use another one");
    assert_int_equal(ids.count, 2);
    mt_tokenizer_free(t);
    t = mt_tokenizer_parse(bpe, strlen(bpe), &err);
    assert_false(mt_tokenizer_encode(t, "b", 1, NULL, &ids, &err));
    assert_string_equal(err.text, "the tokenizer's \"unk_token\" is not in its vocabulary; download it again");
    assert_false(mt_tokenizer_encode(t, "a", (size_t)MT_LIMIT_ENCODE_BYTES + 1, NULL, &ids, &err));
    assert_string_equal(err.text, "the text has 67108865 bytes; at most 67108864 can be tokenized at once");
    mt_tokenizer_free(t);
    mt_ids_free(&ids);
}

/* Both while a text is cut into pieces, by expressions here, and while tokens are made of these. */
static void a_text_that_nobody_waits_for_is_left(void **state)
{
    static const char *const files[] = {
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Isolated\","
        "\"invert\":false},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}"};
    atomic_bool stop;
    const mt_encode_options options = {.stop = &stop};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(files); i++) {
        mt_error err;
        mt_ids ids = {0};
        mt_tokenizer *t = mt_tokenizer_parse(files[i], strlen(files[i]), &err);

        assert_non_null(t);
        atomic_store(&stop, false);
        assert_true(mt_tokenizer_encode(t, "aa", 2, &options, &ids, &err));
        atomic_store(&stop, true);
        assert_false(mt_tokenizer_encode(t, "aa", 2, &options, &ids, &err));
        assert_string_equal(err.text, "the request was cancelled while its text was read; send it again");
        assert_int_equal(ids.count, 2);
        mt_tokenizer_free(t);
        mt_ids_free(&ids);
    }
}

/* A token of 60,000 letters takes as many steps at each letter of a text that is nearly that token: minutes. A request
   that was cancelled before must not begin with it. */
static void long_work_is_left_within(void **state)
{
    enum { LONG = 60000, TEXT = 2000000 };
    static const char *const files[] = {
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1],[\"",
        "b\",-2]]}}",
        "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"continuing_subword_prefix\":\"\","
        "\"max_input_chars_per_word\":100000000,\"vocab\":{\"a\":0,\"",
        "b\":1}}}",
        "{" MODEL ",\"added_tokens\":[{\"content\":\"",
        "b\",\"special\":false,\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false}]}"};
    const atomic_bool stop = true;
    const mt_encode_options options = {.stop = &stop};
    char *text = mt_alloc(TEXT);

    (void)state;
    memset(text, 'a', TEXT);
    for (size_t i = 0; i < MT_COUNT(files); i += 2) {
        mt_buf json;
        mt_ids ids = {0};
        mt_error err;
        mt_tokenizer *t;

        mt_buf_init(&json, 1 << 20);
        mt_buf_puts(&json, files[i]);
        mt_buf_add(&json, text, LONG);
        mt_buf_puts(&json, files[i + 1]);
        t = mt_tokenizer_parse(json.data, json.len, &err);
        assert_non_null(t);
        assert_false(mt_tokenizer_encode(t, text, TEXT, &options, &ids, &err));
        assert_string_equal(err.text, "the request was cancelled while its text was read; send it again");
        mt_tokenizer_free(t);
        mt_buf_free(&json);
    }
    mt_free(text);
}

/* Each stage makes three of every "a", or two of every byte: sixty of them would fill the memory. */
static void texts_grow_within_bounds(void **state)
{
    static const char *const stages[] = {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[",
                                         "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaa\"}",
                                         "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[",
                                         "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"};
    static const char *const sentences[] = {
        "the tokenizer makes more than 2048 bytes of the text when it is normalized; send it in parts, or use another "
        "model",
        "the tokenizer makes more than 2048 bytes of the text when it is cut; send it in parts, or use another model"};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t count = 2; count <= MT_LIMIT_TOKENIZER_STAGES; count *= 4) {
            const char *text = i == 0 ? "aa" : "\xC3\xA9";
            mt_ids ids = {0};
            mt_buf json;
            mt_error err;
            mt_tokenizer *t;

            mt_buf_init(&json, 1 << 20);
            mt_buf_puts(&json, stages[2 * i]);
            for (size_t n = 0; n < count; n++)
                mt_buf_printf(&json, "%s%s", n ? "," : "", stages[2 * i + 1]);
            mt_buf_puts(&json, "]}," MODEL "}");
            t = mt_tokenizer_parse(json.data, json.len, &err);
            assert_non_null(t);
            assert_int_equal(mt_tokenizer_encode(t, text, 2, NULL, &ids, &err), count == 2 || (i == 1 && count == 8));
            if (count == MT_LIMIT_TOKENIZER_STAGES)
                assert_string_equal(err.text, sentences[i]);
            mt_ids_free(&ids);
            mt_tokenizer_free(t);
            mt_buf_free(&json);
        }
}

/* The rest of such a text is not looked at: here it holds what the tokenizer has no token for. */
static void a_text_with_too_many_tokens_is_left_as_soon_as_it_has_them(void **state)
{
    static const char *const files[] = {
        "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},"
        "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Isolated\",\"invert\":false}]},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"u\"}}",
        "{\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
        "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"##a\":1},\"unk_token\":\"u\","
        "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100}}",
        "{\"added_tokens\":[{\"id\":1,\"content\":\"a\",\"special\":true,\"single_word\":false,\"lstrip\":false,"
        "\"rstrip\":false,\"normalized\":false}],"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"b\":0},\"merges\":[],\"unk_token\":\"u\"}}"};
    const mt_encode_options five = {.most = 5}, six = {.most = 6}, seven = {.most = 7};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(files); i++) {
        mt_error err;
        mt_ids ids = {0};
        mt_tokenizer *t = mt_tokenizer_parse(files[i], strlen(files[i]), &err);

        assert_non_null(t);
        mt_ids_add(&ids, 9); /* those of others do not count */
        assert_true(mt_tokenizer_encode(t, "aaaaaa", 6, &six, &ids, &err));
        assert_int_equal(ids.count, 7);
        assert_false(mt_tokenizer_encode(t, "aaaaaa ?", 8, &seven, &ids, &err));
        assert_int_equal(err.code, MT_E_INVALID);
        assert_false(mt_tokenizer_encode(t, "aaaaaa ?", 8, &five, &ids, &err));
        assert_int_equal(err.code, MT_E_TOO_LONG);
        assert_string_equal(err.text, "the text has more than 5 tokens; shorten it");
        assert_int_equal(ids.count, 7);
        mt_tokenizer_free(t);
        mt_ids_free(&ids);
    }
}

/* A word that must have too many tokens by its length alone is not spelled. */
static void a_word_with_too_many_bytes_is_not_looked_at(void **state)
{
    const size_t len = 1000;
    const mt_encode_options options = {.most = len / 2 - 1};
    char *text = mt_alloc(len + 1);
    mt_error err;
    mt_ids ids = {0};
    mt_buf json;

    (void)state;
    memset(text, 'a', len);
    mt_buf_init(&json, 1u << 20);
    mt_buf_puts(&json, "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[[\"a\",\"a\"]],\"vocab\":{"
                       "\"a\":256,\"aa\":257");
    for (unsigned i = 0; i < 256; i++)
        mt_buf_printf(&json, ",\"<0x%02X>\":%u", i, i);
    mt_buf_puts(&json, "}}}");
    mt_tokenizer *t = mt_tokenizer_parse(json.data, json.len, &err);
    assert_non_null(t);
    assert_true(mt_tokenizer_encode(t, text, len - 2, &options, &ids, &err));
    assert_int_equal(ids.count, len / 2 - 1);
    assert_false(mt_tokenizer_encode(t, text, len, &options, &ids, &err));
    assert_int_equal(err.code, MT_E_TOO_LONG);
    mt_tokenizer_free(t);
    mt_ids_free(&ids);
    mt_buf_free(&json);
    mt_free(text);
}

/* Merges may stand before the vocabulary and the prefix that they need. */
static void members_may_come_in_any_order(void **state)
{
    static const char *const files[] = {
        "{\"model\":{\"merges\":[\"a ##b\"],\"vocab\":{\"a\":0,\"##b\":1,\"ab\":2},"
        "\"continuing_subword_prefix\":\"##\"}}",
        "{\"model\":{\"vocab\":{\"a\":0,\"##b\":1,\"ab\":2},\"merges\":[\"#version: 0.2\",[\"a\",\"##b\"]],"
        "\"continuing_subword_prefix\":\"##\",\"type\":\"BPE\"}}",
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(files); i++) {
        mt_error err;
        mt_tokenizer *t = mt_tokenizer_parse(files[i], strlen(files[i]), &err);

        assert_non_null(t);
        check(t, "ab", NULL, 0, "ab");
        mt_tokenizer_free(t);
    }
}

/* Parses {"key": before, item * count with commas, after, model} and expects a sentence. */
static void check_limit(const char *before, const char *item, size_t count, const char *after, const char *text)
{
    mt_error err = {0};
    mt_buf json;

    mt_buf_init(&json, 64 << 20);
    mt_buf_puts(&json, before);
    for (size_t i = 0; i < count; i++) {
        mt_buf_puts(&json, i ? "," : "");
        mt_buf_puts(&json, item);
    }
    mt_buf_puts(&json, after);
    assert_null(mt_tokenizer_parse(json.data, json.len, &err));
    assert_string_equal(err.text, text);
    mt_buf_free(&json);
}

static void limits_are_sentences(void **state)
{
    static const char template[] =
        "]}},\"single\":[{\"SpecialToken\":{\"id\":\"s\"}},{\"Sequence\":{\"id\":\"A\"}}]}," MODEL "}";
    mt_error err;

    (void)state;
    assert_null(mt_tokenizer_parse("", (size_t)MT_LIMIT_TOKENIZER_BYTES + 1, &err));
    assert_string_equal(err.text, "it has 268435457 bytes; at most 268435456 are read");
    check_limit("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[", "{\"type\":\"NFC\"}",
                MT_LIMIT_TOKENIZER_STAGES + 1, "]}," MODEL "}", "its normalizer has more than 64 stages");
    check_limit("{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[", "{\"type\":\"Punctuation\"}",
                MT_LIMIT_TOKENIZER_STAGES + 1, "]}," MODEL "}", "its pre_tokenizer has more than 64 stages");
    check_limit("{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[", "{\"type\":\"Metaspace\",\"replacement\":\"_\"}",
                MT_LIMIT_DECODER_STEPS + 1, "]}," MODEL "}", "its decoder has more than 8 steps");
    check_limit("{\"post_processor\":{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"s\":{\"ids\":[", "0",
                MT_LIMIT_TOKENIZER_AROUND + 1, template, "its post_processor puts more than 64 tokens before a text");
    check_limit("{\"normalizer\":[", "0", 1200000, "]," MODEL "}",
                "its settings are larger than any tokenizer's; download the file again");
    check_limit("{\"model\":{\"end_of_word_suffix\":\"", "0123456", 9, "\"}}",
                "\"model\" of it has a prefix or suffix that is too long; download the file again");
}

typedef struct job {
    const mt_tokenizer *t;
    const char *text;
    mt_ids ids;
} job;

static void *work(void *arg)
{
    job *j = arg;
    mt_error err;

    for (int i = 0; i < 50; i++) {
        j->ids.count = 0;
        if (!mt_tokenizer_encode(j->t, j->text, strlen(j->text), NULL, &j->ids, &err))
            abort();
    }
    return NULL;
}

static void threads_share_a_tokenizer(void **state)
{
    static const char text[] = "the other mother hello there the then there other mother hello world caf\xC3\xA9 1234";
    mt_tokenizer *t = load("bpe-gpt2");
    pthread_t threads[4];
    job jobs[4] = {{0}};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(jobs); i++) {
        jobs[i] = (job){.t = t, .text = text};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (size_t i = 0; i < MT_COUNT(jobs); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < MT_COUNT(jobs); i++) {
        assert_int_equal(jobs[i].ids.count, jobs[0].ids.count);
        assert_memory_equal(jobs[i].ids.data, jobs[0].ids.data, jobs[0].ids.count * sizeof(uint32_t));
        if (i > 0)
            mt_ids_free(&jobs[i].ids);
    }
    mt_ids_free(&jobs[0].ids);
    mt_tokenizer_free(t);
}

/* What takes n log n ends here at once; what takes n * n would run into the test's time limit. */
static void long_texts_take_no_square_time(void **state)
{
    static const char *const names[] = {"bpe-gpt2", "bpe-not-ignored", "bpe-fallback",
                                        "unigram",  "normal-nfc",      "cut-kimi"};
    static const char *const what[] = {"a", " ", "the", "\n", "\xCC\x81\xCC\xA3", "\xE2\x96\x81", "c", "\xE4\xB8\xAD"};
    size_t len = (getenv("MOTET_TEST_QUICK") ? 64 : 600) * 1000;
    char *text = mt_alloc(len);

    (void)state;
    for (size_t n = 0; n < MT_COUNT(names); n++) {
        mt_tokenizer *t = load(names[n]);

        for (size_t w = 0; w < MT_COUNT(what); w++) {
            mt_ids ids = {0};
            mt_error err;

            for (size_t i = 0; i < len; i++)
                text[i] = what[w][i % strlen(what[w])];
            assert_true(mt_tokenizer_encode(t, text, len - len % strlen(what[w]), NULL, &ids, &err));
            mt_ids_free(&ids);
        }
        mt_tokenizer_free(t);
    }
    mt_free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(special_tokens_are_not_seen_in_plain_text),
    cmocka_unit_test(places_in_the_text_become_places_among_the_tokens),
    cmocka_unit_test(other_added_tokens_take_their_place),
    cmocka_unit_test(marks_follow_the_normalizer),
    cmocka_unit_test(broken_text_is_read_as_replacement_characters),
    cmocka_unit_test(tokens_can_be_looked_up),
    cmocka_unit_test(files_that_cannot_be_read_are_errors),
    cmocka_unit_test(paths_are_named_in_errors),
    cmocka_unit_test(what_has_no_token_is_an_error_or_left_out),
    cmocka_unit_test(a_text_that_nobody_waits_for_is_left),
    cmocka_unit_test(long_work_is_left_within),
    cmocka_unit_test(texts_grow_within_bounds),
    cmocka_unit_test(a_text_with_too_many_tokens_is_left_as_soon_as_it_has_them),
    cmocka_unit_test(a_word_with_too_many_bytes_is_not_looked_at),
    cmocka_unit_test(members_may_come_in_any_order),
    cmocka_unit_test(limits_are_sentences),
    cmocka_unit_test(threads_share_a_tokenizer),
    cmocka_unit_test(long_texts_take_no_square_time),
};
UNIT_MAIN(tests)
