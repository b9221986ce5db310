/* See added.h. */
#include "text/added.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/chars.h"
#include "text/tokenizer.h"
#include "weights/limits.h"

void mt_tok_added_free(mt_tok_added *added)
{
    mt_free(added->tokens);
    mt_tok_vocab_free(&added->vocab);
    mt_tok_trie_free(&added->raw);
    mt_tok_trie_free(&added->formed);
    *added = (mt_tok_added){0};
}

static bool fail_list(mt_json_reader *json, mt_error *err)
{
    if (json->error.code != MT_OK)
        return mt_fail(err, MT_E_INVALID, "%s; download the file again", json->error.text);
    return mt_fail(err, MT_E_INVALID,
                   "its \"added_tokens\" must be objects with \"content\" and five flags; download the file again");
}

static bool *flag_of(mt_tok_added_token *token, const mt_json_reader *json)
{
    if (mt_tok_key_is(json, "single_word"))
        return &token->single_word;
    if (mt_tok_key_is(json, "lstrip"))
        return &token->lstrip;
    if (mt_tok_key_is(json, "rstrip"))
        return &token->rstrip;
    if (mt_tok_key_is(json, "normalized"))
        return &token->normalized;
    return mt_tok_key_is(json, "special") ? &token->special : NULL;
}

static bool read_content(mt_tok_added_token *token, mt_json_reader *json, mt_arena *arena, mt_error *err)
{
    char *text;

    if (mt_json_next(json) != MT_JSON_STRING)
        return fail_list(json, err);
    if (json->len > MT_LIMIT_TOKEN_BYTES)
        return mt_fail(err, MT_E_TOO_LARGE, "it has an added token of %zu bytes; at most %d are read", json->len,
                       MT_LIMIT_TOKEN_BYTES);
    text = mt_arena_alloc(arena, json->len + 1);
    if (!text)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "its added tokens are longer than any tokenizer's; download the file again");
    memcpy(text, json->str, json->len);
    token->content = token->form = text;
    token->content_len = token->form_len = (uint32_t)json->len;
    return true;
}

/* Reads one object of the list. */
static bool read_token(mt_tok_added_token *token, mt_json_reader *json, mt_arena *arena, mt_error *err)
{
    mt_json_event event;
    unsigned flags = 0;

    while ((event = mt_json_next(json)) == MT_JSON_KEY) {
        bool *flag = flag_of(token, json);

        if (flag) {
            event = mt_json_next(json);
            if (event != MT_JSON_TRUE && event != MT_JSON_FALSE)
                return fail_list(json, err);
            *flag = event == MT_JSON_TRUE;
            flags++;
        } else if (mt_tok_key_is(json, "content")) {
            if (!read_content(token, json, arena, err))
                return false;
        } else if (!mt_json_skip(json)) {
            return fail_list(json, err);
        }
    }
    return (event == MT_JSON_OBJECT_END && token->content && flags >= 5) || fail_list(json, err);
}

bool mt_tok_added_read(mt_tok_added *added, mt_json_reader *json, mt_arena *arena, mt_error *err)
{
    mt_json_event event = mt_json_next(json);

    if (event != MT_JSON_ARRAY_BEGIN)
        return fail_list(json, err);
    while ((event = mt_json_next(json)) == MT_JSON_OBJECT_BEGIN) {
        if (added->count == MT_LIMIT_VOCAB)
            return mt_fail(err, MT_E_TOO_LARGE, "it has more than %u added tokens", MT_LIMIT_VOCAB);
        added->tokens = mt_grow(added->tokens, &added->cap, added->count + 1, sizeof(*added->tokens));
        added->tokens[added->count] = (mt_tok_added_token){0};
        if (!read_token(&added->tokens[added->count++], json, arena, err))
            return false;
    }
    return event == MT_JSON_ARRAY_END || fail_list(json, err);
}

/* Removes tokens without content, and of tokens with the same id all but the last. The last one is special if any of
   them was. */
static void keep_last(mt_tok_added *added)
{
    /* By id: 1 + the index of its last token; 0: none */
    uint32_t *last = mt_alloc_array(added->vocab.id_limit, sizeof(*last));
    size_t kept = 0;

    for (size_t i = 0; i < added->count; i++) {
        mt_tok_added_token *token = &added->tokens[i];

        if (token->content_len == 0)
            continue;
        if (last[token->id])
            token->special |= added->tokens[last[token->id] - 1].special;
        last[token->id] = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].content_len > 0 && last[added->tokens[i].id] == i + 1)
            added->tokens[kept++] = added->tokens[i];
    mt_free(last);
    added->count = kept;
}

bool mt_tok_added_number(mt_tok_added *added, const mt_tok_vocab *model, size_t model_size, mt_error *err)
{
    uint32_t next = (uint32_t)model_size;

    for (size_t i = 0; i < added->count; i++) {
        mt_tok_added_token *token = &added->tokens[i];

        if (token->content_len == 0)
            continue;
        token->id = mt_tok_vocab_id(&added->vocab, token->content, token->content_len);
        if (token->id == MT_TOKEN_NONE)
            token->id = mt_tok_vocab_id(model, token->content, token->content_len);
        if (token->id == MT_TOKEN_NONE)
            token->id = next++;
        if (!mt_tok_vocab_add(&added->vocab, token->content, token->content_len, token->id, err))
            return false;
    }
    if (added->vocab.count > 0)
        keep_last(added);
    else
        added->count = 0;
    return true;
}

static bool build_trie(mt_tok_added *added, mt_tok_trie *trie, bool normalized, mt_error *err)
{
    mt_tok_entry *entries = mt_alloc_array(added->count + 1, sizeof(*entries));
    size_t count = 0;
    bool built;

    for (size_t i = 0; i < added->count; i++) {
        const mt_tok_added_token *token = &added->tokens[i];

        if (token->normalized == normalized && token->form_len > 0)
            entries[count++] = (mt_tok_entry){token->form, token->form_len, (uint32_t)i};
        if (token->normalized && token->special)
            added->has_formed_special = true;
    }
    built = mt_tok_trie_build(trie, entries, count, err);
    mt_free(entries);
    return built;
}

bool mt_tok_added_finish(mt_tok_added *added, mt_error *err)
{
    return build_trie(added, &added->raw, false, err) && build_trie(added, &added->formed, true, err);
}

/* The longest token that begins at `at`, without special tokens on marked bytes; NULL: none. */
static const mt_tok_added_token *longest_at(const mt_tok_added *added, const mt_tok_trie *trie, const mt_tok_view *text,
                                            size_t at, size_t *end)
{
    const mt_tok_added_token *found = NULL;
    uint32_t node = mt_tok_trie_enter(trie, (unsigned char)text->data[at]);
    unsigned char mark = mt_tok_mark(text, at);

    while (node != MT_TRIE_NONE) {
        uint32_t value = trie->nodes[node].value;

        at++;
        if (value != MT_TRIE_NONE && !(mark && added->tokens[value].special)) {
            found = &added->tokens[value];
            *end = at;
        }
        if (at == text->len)
            break;
        mark |= mt_tok_mark(text, at);
        node = mt_tok_trie_step(trie, node, (unsigned char)text->data[at]);
    }
    return found;
}

/* Whether no word character is next to the range. */
static bool stands_alone(const mt_tok_view *text, size_t begin, size_t end)
{
    if (begin > 0 && mt_tok_is_word(mt_utf8_at(text->data + mt_utf8_before(text->data, begin))))
        return false;
    return end == text->len || !mt_tok_is_word(mt_utf8_at(text->data + end));
}

/* Extends the match by white space, as lstrip and rstrip say, but not to before `after`. */
static void add_space(const mt_tok_view *text, size_t after, mt_tok_match *match)
{
    if (match->token->lstrip) {
        while (match->begin > after) {
            size_t before = mt_utf8_before(text->data, match->begin);

            if (!mt_tok_is_space(mt_utf8_at(text->data + before)))
                break;
            match->begin = before;
        }
    }
    if (match->token->rstrip)
        while (match->end < text->len && mt_tok_is_space(mt_utf8_at(text->data + match->end)))
            match->end += mt_utf8_size(text->data[match->end]);
}

bool mt_tok_added_find(const mt_tok_added *added, const mt_tok_trie *trie, const mt_tok_view *text, size_t *at,
                       size_t after, const atomic_bool *stop, mt_tok_match *match)
{
    for (;;) {
        const mt_tok_added_token *token;
        size_t begin = *at, end = 0;

        if (!trie->nodes)
            return false;
        while (begin < text->len && mt_tok_trie_enter(trie, (unsigned char)text->data[begin]) == MT_TRIE_NONE)
            begin++;
        *at = begin;
        /* relaxed: read again and again, and no other data depends on it */
        if (begin == text->len || (stop && atomic_load_explicit(stop, memory_order_relaxed)))
            return false;
        token = longest_at(added, trie, text, begin, &end);

        *at = token ? end : begin + 1;
        if (!token || (token->single_word && !stands_alone(text, begin, end)))
            continue;
        *match = (mt_tok_match){token, begin, end};
        add_space(text, after, match);
        return true;
    }
}
