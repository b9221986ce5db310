/* Reads the object "model" of tokenizer.json as a stream: its vocabulary and merges may have a million entries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/limits.h"
#include "text/part.h"
#include "text/words.h"
#include "weights/limits.h"

/* All members but the vocabulary and the merges. */
typedef struct settings {
    const char *type, *unk_token, *prefix, *suffix;
    size_t unk_len, prefix_len, suffix_len;
    int64_t unk_id, most_chars; /* -1: not present */
    bool fuse_unk, byte_fallback, ignore_merges;
    bool has_vocab, has_merges, has_prefix, vocab_is_list;
} settings;

static bool fail_json(const mt_json_reader *json, const char *what, mt_error *err)
{
    if (json->error.code != MT_OK)
        return mt_fail(err, MT_E_INVALID, "%s; download the file again", json->error.text);
    return mt_fail(err, MT_E_INVALID, "\"model\" of it has %s; download the file again", what);
}

static bool read_string(mt_json_reader *json, mt_arena *arena, const char **str, size_t *len, mt_error *err)
{
    mt_json_event event = mt_json_next(json);
    char *copy;

    *str = NULL;
    *len = 0;
    if (event == MT_JSON_NULL)
        return true;
    if (event != MT_JSON_STRING || json->len > MT_LIMIT_TOKEN_BYTES)
        return fail_json(json, "something else where a string should be", err);
    copy = mt_arena_alloc(arena, json->len + 1);
    if (!copy)
        return fail_json(json, "too much in it", err);
    memcpy(copy, json->str, json->len);
    *str = copy;
    *len = json->len;
    return true;
}

static bool read_affix(mt_json_reader *json, mt_arena *arena, const char **str, size_t *len, mt_error *err)
{
    if (!read_string(json, arena, str, len, err))
        return false;
    return *len <= MT_LIMIT_TOKEN_AFFIX || fail_json(json, "a prefix or suffix that is too long", err);
}

static bool read_bool(mt_json_reader *json, bool *value, mt_error *err)
{
    mt_json_event event = mt_json_next(json);

    if (event != MT_JSON_TRUE && event != MT_JSON_FALSE && event != MT_JSON_NULL)
        return fail_json(json, "something else where true or false should be", err);
    *value = event == MT_JSON_TRUE;
    return true;
}

static bool read_number(mt_json_reader *json, int64_t *value, mt_error *err)
{
    mt_json_event event = mt_json_next(json);

    if (event == MT_JSON_NULL)
        return true;
    if (event != MT_JSON_NUMBER || !json->is_int || json->integer < 0 || json->integer > INT32_MAX)
        return fail_json(json, "something else where a number from 0 up should be", err);
    *value = json->integer;
    return true;
}

static bool read_dropout(mt_json_reader *json, mt_error *err)
{
    mt_json_event event = mt_json_next(json);

    if (event == MT_JSON_NULL || (event == MT_JSON_NUMBER && json->num == 0))
        return true;
    if (json->error.code != MT_OK)
        return fail_json(json, "", err);
    return mt_fail(err, MT_E_UNSUPPORTED, "its \"dropout\" would make tokens random; set it to null");
}

/* {"token": id, ...} */
static bool read_vocab_object(mt_tok_words *words, mt_json_reader *json, mt_error *err)
{
    mt_json_event event;
    mt_buf token;
    bool ok = true;

    mt_buf_init(&token, MT_LIMIT_TOKEN_BYTES + 1);
    while (ok && (event = mt_json_next(json)) == MT_JSON_KEY) {
        token.len = 0;
        if (!mt_buf_add(&token, json->str, json->len))
            ok = mt_fail(err, MT_E_TOO_LARGE, "it has a token of %zu bytes; at most %d are read", json->len,
                         MT_LIMIT_TOKEN_BYTES);
        else if (mt_json_next(json) != MT_JSON_NUMBER || !json->is_int || json->integer < 0 ||
                 json->integer > UINT32_MAX)
            ok = fail_json(json, "a token whose id is no number", err);
        else
            ok = mt_tok_vocab_add(&words->vocab, token.data, token.len, (uint32_t)json->integer, err);
    }
    mt_buf_free(&token);
    words->size = words->vocab.count;
    return ok && (event == MT_JSON_OBJECT_END || fail_json(json, "a broken \"vocab\"", err));
}

static void add_score(mt_tok_unigram *unigram, double score)
{
    unigram->scores = mt_grow(unigram->scores, &unigram->cap, unigram->count + 1, sizeof(double));
    unigram->scores[unigram->count++] = score;
}

static double power_of_ten(int exponent)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[16];

    if (exponent < (int)MT_COUNT(exact))
        return exact[exponent];
    snprintf(text, sizeof(text), "1e%d", exponent);
    return strtod(text, NULL);
}

/* Parses an exponent, without its letter; clamps it if it is out of range. */
static int read_exponent(const char *s, size_t len)
{
    bool negative = len > 0 && s[0] == '-';
    int value = 0;

    for (size_t i = len > 0 && (s[0] == '-' || s[0] == '+'); i < len && value < 1000; i++)
        value = value * 10 + (s[i] - '0');
    return negative ? -value : value;
}

/* Parses a score as serde_json does, which is not always the nearest double: all digits as one integer, then one
   division or multiplication. A score that differs in the last bit can change which tokens are chosen. */
static double read_score(const char *s, size_t len)
{
    bool negative = len > 0 && s[0] == '-', fraction = false, full = false;
    uint64_t digits = 0;
    int exponent = 0;
    double value;

    for (size_t i = negative; i < len; i++) {
        unsigned digit = (unsigned)(s[i] - '0');

        if (s[i] == 'e' || s[i] == 'E') {
            exponent += read_exponent(s + i + 1, len - i - 1);
            break;
        }
        if (s[i] == '.') {
            fraction = true;
            continue;
        }
        full = full || digits > (UINT64_MAX - digit) / 10;
        digits = full ? digits : digits * 10 + digit;
        exponent += (full ? 1 : 0) - (fraction ? 1 : 0);
    }
    if (digits == 0)
        return 0;
    value = (double)digits;
    for (; exponent < -308 && value != 0; exponent += 308)
        value /= 1e308;
    value = exponent >= 0 ? value * power_of_ten(exponent) : value / power_of_ten(-exponent);
    return negative ? -value : value;
}

/* Reads [["token", score], ...]; the id of a token is its index. */
static bool read_vocab_list(mt_tok_words *words, mt_json_reader *json, mt_error *err)
{
    mt_json_event event;

    while ((event = mt_json_next(json)) == MT_JSON_ARRAY_BEGIN) {
        if (mt_json_next(json) != MT_JSON_STRING)
            return fail_json(json, "a broken \"vocab\"", err);
        if (!mt_tok_vocab_add(&words->vocab, json->str, json->len, (uint32_t)words->unigram.count, err))
            return false;
        if (mt_json_next(json) != MT_JSON_NUMBER)
            return fail_json(json, "a token without a score", err);
        add_score(&words->unigram, read_score(json->str, json->len));
        if (mt_json_next(json) != MT_JSON_ARRAY_END)
            return fail_json(json, "a broken \"vocab\"", err);
    }
    words->size = words->unigram.count;
    return event == MT_JSON_ARRAY_END || fail_json(json, "a broken \"vocab\"", err);
}

static bool read_vocab(mt_tok_words *words, settings *s, mt_json_reader *json, mt_error *err)
{
    mt_json_event event = mt_json_next(json);

    if (s->has_vocab)
        return fail_json(json, "\"vocab\" twice", err);
    s->has_vocab = true;
    s->vocab_is_list = event == MT_JSON_ARRAY_BEGIN;
    if (event == MT_JSON_ARRAY_BEGIN)
        return read_vocab_list(words, json, err);
    return event == MT_JSON_OBJECT_BEGIN ? read_vocab_object(words, json, err)
                                         : fail_json(json, "a \"vocab\" that is neither object nor list", err);
}

static bool fail_merge(size_t rank, mt_error *err)
{
    return mt_fail(err, MT_E_INVALID,
                   "merge %zu of it names a token that is not in the vocabulary; download the file again", rank);
}

/* Adds a merge. pair: the left string of left_len bytes, then the right one. If the right one begins with the prefix of
   tokens inside of words, the merged token does not contain that prefix. */
static bool add_merge(mt_tok_words *words, mt_buf *pair, size_t left_len, size_t rank, mt_error *err)
{
    const mt_tok_vocab *vocab = &words->vocab;
    size_t right_len = pair->len - left_len, prefix = words->bpe.prefix_len;
    uint32_t left = mt_tok_vocab_id(vocab, pair->data, left_len);
    uint32_t right = mt_tok_vocab_id(vocab, pair->data + left_len, right_len), id;

    if (left == MT_TOKEN_NONE || right == MT_TOKEN_NONE || right_len < prefix)
        return fail_merge(rank, err);
    if (prefix > 0)
        memmove(pair->data + left_len, pair->data + left_len + prefix, right_len - prefix);
    id = mt_tok_vocab_id(vocab, pair->data, pair->len - prefix);
    if (id == MT_TOKEN_NONE)
        return fail_merge(rank, err);
    mt_tok_merges_add(&words->bpe.merges, left, right, (mt_tok_merge){(uint32_t)rank, id});
    return true;
}

/* Reads "left right" and removes the blank. */
static bool read_joined(mt_json_reader *json, mt_buf *pair, size_t *left_len)
{
    const char *blank = memchr(json->str, ' ', json->len);
    size_t left = blank ? (size_t)(blank - json->str) : 0, right = json->len - left - 1;

    if (!blank || memchr(blank + 1, ' ', right))
        return false;
    *left_len = left;
    return mt_buf_add(pair, json->str, left) && mt_buf_add(pair, blank + 1, right);
}

/* Reads ["left", "right"], whose bracket was already read. */
static bool read_apart(mt_json_reader *json, mt_buf *pair, size_t *left_len)
{
    if (mt_json_next(json) != MT_JSON_STRING || !mt_buf_add(pair, json->str, json->len))
        return false;
    *left_len = json->len;
    return mt_json_next(json) == MT_JSON_STRING && mt_buf_add(pair, json->str, json->len) &&
           mt_json_next(json) == MT_JSON_ARRAY_END;
}

static bool read_pair(mt_json_reader *json, mt_json_event event, mt_buf *pair, size_t *left_len)
{
    pair->len = 0;
    if (event == MT_JSON_ARRAY_BEGIN)
        return read_apart(json, pair, left_len);
    return event == MT_JSON_STRING && read_joined(json, pair, left_len);
}

static bool is_comment(const mt_json_reader *json, mt_json_event event)
{
    static const char word[] = "#version";

    return event == MT_JSON_STRING && json->len >= sizeof(word) - 1 && memcmp(json->str, word, sizeof(word) - 1) == 0;
}

bool mt_tok_words_read_merges(mt_tok_words *words, mt_json_reader *json, mt_error *err)
{
    mt_json_event event;
    size_t rank = 0, left_len;
    bool ok = true;
    mt_buf pair;

    if (mt_json_next(json) != MT_JSON_ARRAY_BEGIN)
        return fail_json(json, "no list of \"merges\"", err);
    mt_buf_init(&pair, 2 * (size_t)MT_LIMIT_TOKEN_BYTES);
    while (ok && (event = mt_json_next(json)) != MT_JSON_ARRAY_END) {
        if (is_comment(json, event))
            continue;
        if (!read_pair(json, event, &pair, &left_len))
            ok = fail_json(json, "a merge that is not two tokens", err);
        else if (rank == MT_LIMIT_VOCAB)
            ok = mt_fail(err, MT_E_TOO_LARGE, "it has more than %u merges", MT_LIMIT_VOCAB);
        else
            ok = add_merge(words, &pair, left_len, rank++, err);
    }
    mt_buf_free(&pair);
    return ok;
}

/* Reads the merges, or sets *again if the vocabulary and the prefix are not known yet. */
static bool read_member_merges(mt_tok_words *words, settings *s, mt_json_reader *json, bool *again, mt_error *err)
{
    s->has_merges = true;
    words->bpe.prefix_len = s->prefix_len;
    if (s->has_vocab && s->has_prefix)
        return mt_tok_words_read_merges(words, json, err);
    *again = true;
    return mt_json_skip(json) || fail_json(json, "", err);
}

static bool read_member(mt_tok_words *words, settings *s, mt_json_reader *json, mt_arena *arena, bool *again,
                        mt_error *err)
{
    size_t len;

    if (mt_tok_key_is(json, "vocab"))
        return read_vocab(words, s, json, err);
    if (mt_tok_key_is(json, "merges"))
        return read_member_merges(words, s, json, again, err);
    if (mt_tok_key_is(json, "type"))
        return read_string(json, arena, &s->type, &len, err);
    if (mt_tok_key_is(json, "unk_token"))
        return read_string(json, arena, &s->unk_token, &s->unk_len, err);
    if (mt_tok_key_is(json, "continuing_subword_prefix")) {
        s->has_prefix = true;
        return read_affix(json, arena, &s->prefix, &s->prefix_len, err);
    }
    if (mt_tok_key_is(json, "end_of_word_suffix"))
        return read_affix(json, arena, &s->suffix, &s->suffix_len, err);
    if (mt_tok_key_is(json, "unk_id"))
        return read_number(json, &s->unk_id, err);
    if (mt_tok_key_is(json, "max_input_chars_per_word"))
        return read_number(json, &s->most_chars, err);
    if (mt_tok_key_is(json, "fuse_unk"))
        return read_bool(json, &s->fuse_unk, err);
    if (mt_tok_key_is(json, "byte_fallback"))
        return read_bool(json, &s->byte_fallback, err);
    if (mt_tok_key_is(json, "ignore_merges"))
        return read_bool(json, &s->ignore_merges, err);
    if (mt_tok_key_is(json, "dropout"))
        return read_dropout(json, err);
    return mt_json_skip(json) || fail_json(json, "", err);
}

/* Finds the kind of model. Old files do not name it; then the members tell. */
static bool find_kind(mt_tok_words *words, const settings *s, mt_error *err)
{
    static const char *const names[] = {
        [MT_TOK_BPE] = "BPE",
        [MT_TOK_UNIGRAM] = "Unigram",
        [MT_TOK_WORDPIECE] = "WordPiece",
        [MT_TOK_WORDLEVEL] = "WordLevel",
    };

    if (!s->type) {
        words->kind = s->has_merges      ? MT_TOK_BPE
                      : s->vocab_is_list ? MT_TOK_UNIGRAM
                      : s->prefix        ? MT_TOK_WORDPIECE
                                         : MT_TOK_WORDLEVEL;
        return true;
    }
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        if (strcmp(s->type, names[i]) == 0) {
            words->kind = (mt_tok_kind)i;
            return true;
        }
    }
    return mt_fail(
        err, MT_E_UNSUPPORTED,
        "it has a model of type \"%.80s\", which motet does not know; docs/tokenizers.md lists those it does", s->type);
}

static bool use_settings(mt_tok_words *words, const settings *s, mt_error *err)
{
    mt_tok_bpe *b = &words->bpe;
    mt_tok_wordpiece *w = &words->wordpiece;

    if (!find_kind(words, s, err))
        return false;
    if (!s->has_vocab || s->vocab_is_list != (words->kind == MT_TOK_UNIGRAM) ||
        (words->kind == MT_TOK_BPE && !s->has_merges))
        return mt_fail(err, MT_E_INVALID,
                       "its model lacks the vocabulary or the merges of its kind; download it again");
    b->unk_token = w->unk_token = s->unk_token;
    b->unk_len = w->unk_len = s->unk_len;
    b->prefix = w->prefix = s->prefix;
    b->prefix_len = w->prefix_len = s->prefix_len;
    b->suffix = s->suffix;
    b->suffix_len = s->suffix_len;
    b->fuse_unk = s->fuse_unk;
    b->byte_fallback = words->unigram.byte_fallback = s->byte_fallback;
    b->ignore_merges = s->ignore_merges;
    if ((words->kind == MT_TOK_WORDPIECE || words->kind == MT_TOK_WORDLEVEL) && !s->unk_token)
        return mt_fail(err, MT_E_INVALID, "its model has no \"unk_token\"; download the file again");
    if (words->kind == MT_TOK_WORDPIECE && (s->most_chars < 0 || !s->prefix))
        return mt_fail(
            err, MT_E_INVALID,
            "its model lacks \"max_input_chars_per_word\" or \"continuing_subword_prefix\"; download it again");
    w->most_chars = (size_t)(s->most_chars < 0 ? 0 : s->most_chars);
    if (words->kind == MT_TOK_UNIGRAM && s->unk_id >= (int64_t)words->unigram.count)
        return mt_fail(err, MT_E_INVALID, "\"unk_id\" of its model is not in its vocabulary; download the file again");
    words->unigram.unk = s->unk_id < 0 ? MT_TOKEN_NONE : (uint32_t)s->unk_id;
    return true;
}

bool mt_tok_words_read(mt_tok_words *words, mt_json_reader *json, mt_arena *arena, bool *again, mt_error *err)
{
    settings s = {.unk_id = -1, .most_chars = -1};
    mt_json_event event;

    *again = false;
    if (mt_json_next(json) != MT_JSON_OBJECT_BEGIN)
        return fail_json(json, "nothing in it", err);
    while ((event = mt_json_next(json)) == MT_JSON_KEY)
        if (!read_member(words, &s, json, arena, again, err))
            return false;
    if (event != MT_JSON_OBJECT_END)
        return fail_json(json, "no end", err);
    return use_settings(words, &s, err);
}
