/* See gguf_vocab.h. */
#include "weights/gguf_vocab.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "weights/limits.h"

#define MODEL "tokenizer.ggml.model"
#define PRE "tokenizer.ggml.pre"
#define TOKENS "tokenizer.ggml.tokens"
#define TYPES "tokenizer.ggml.token_type"
#define SCORES "tokenizer.ggml.scores"
#define BLANK "\xE2\x96\x81" /* U+2581, which stands for a blank in spellings */

enum { MARK = sizeof(BLANK) - 1, SHOWN = 80 };

static int shown(size_t len)
{
    return (int)(len < SHOWN ? len : SHOWN);
}

void mt_gguf_vocab_free(mt_gguf_vocab *v)
{
    mt_free(v->tokens);
    mt_free(v->slots);
    mt_arena_free(v->arena);
    *v = (mt_gguf_vocab){0};
}

static bool read_kind(mt_gguf_vocab *v, const mt_gguf *g, mt_error *err)
{
    static const struct {
        const char *name;
        mt_gguf_kind kind;
    } kinds[] = {{"gpt2", MT_GGUF_BYTE_LEVEL},
                 {"gemma4", MT_GGUF_MARKED},
                 {"llama", MT_GGUF_SCORED},
                 {"bert", MT_GGUF_WORDPIECE},
                 {"t5", MT_GGUF_UNIGRAM}};
    mt_gguf_text name;

    if (!mt_gguf_string(g, MODEL, &name))
        return mt_fail(err, MT_E_NOT_FOUND,
                       "\"" MODEL "\" is missing: the file has no tokenizer; convert the model again");
    for (size_t i = 0; i < MT_COUNT(kinds); i++)
        if (mt_gguf_text_is(name, kinds[i].name)) {
            v->kind = kinds[i].kind;
            return true;
        }
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "\"" MODEL "\" is \"%.*s\", a tokenizer that motet does not have; use the model's own folder",
                   shown(name.len), name.at);
}

/* Only byte-level BPE has a choice of patterns. */
static bool read_pre(mt_gguf_vocab *v, const mt_gguf *g, mt_error *err)
{
    mt_gguf_text name;

    if (v->kind != MT_GGUF_BYTE_LEVEL)
        return true;
    if (!mt_gguf_string(g, PRE, &name))
        return mt_fail(err, MT_E_INVALID,
                       "\"" PRE "\" is missing, which says how texts are split; convert the model again");
    v->pre = mt_gguf_pre_find(name);
    return v->pre || mt_fail(err, MT_E_UNSUPPORTED,
                             "\"" PRE "\" is \"%.*s\", a way to split texts that motet does not know; use the model's "
                             "own folder",
                             shown(name.len), name.at);
}

/* An array of one element for each token; NULL with a sentence. */
static const mt_gguf_array *parallel(const mt_gguf *g, const char *key, size_t count, mt_error *err)
{
    const mt_gguf_array *a = mt_gguf_array_of(g, key);

    if (a && mt_gguf_count(a) == count && mt_gguf_element(a) != MT_GGUF_STRING)
        return a;
    mt_fail(err, MT_E_INVALID, "\"%s\" is not a list of %zu numbers, one for each token; download the file again", key,
            count);
    return NULL;
}

static bool is_utf8(const char *s, size_t len)
{
    for (size_t at = 0, size; at < len; at += size)
        if ((size = mt_utf8_length(s + at, len - at)) == 0)
            return false;
    return true;
}

static bool read_text(mt_gguf_token *token, const mt_gguf_array *texts, size_t id, mt_error *err)
{
    mt_gguf_text text;

    if (!mt_gguf_array_string(texts, id, &text) || text.len > MT_LIMIT_TOKEN_BYTES || !is_utf8(text.at, text.len))
        return mt_fail(err, MT_E_INVALID,
                       "token %zu in \"" TOKENS "\" is not UTF-8 of at most %d bytes; download the file again", id,
                       MT_LIMIT_TOKEN_BYTES);
    token->text = text.at;
    token->len = (uint32_t)text.len;
    return true;
}

/* Fills in one token; scores may be NULL. */
static bool read_token(mt_gguf_token *token, const mt_gguf_array *types, const mt_gguf_array *scores, size_t id,
                       mt_error *err)
{
    int64_t type = MT_GGUF_UNDEFINED;
    double score = 0;

    if (!mt_gguf_array_int(types, id, &type) || type < 0 || type > MT_GGUF_BYTE)
        return mt_fail(err, MT_E_INVALID,
                       "token %zu in \"" TYPES "\" has no type from 0 to %d; download the file again", id,
                       MT_GGUF_BYTE);
    if (scores && (!mt_gguf_array_float(scores, id, &score) || !(score >= -1e30 && score <= 1e30)))
        return mt_fail(err, MT_E_INVALID, "token %zu in \"" SCORES "\" has no score; download the file again", id);
    token->type = (uint8_t)type;
    token->score = (float)score;
    return true;
}

static bool read_tokens(mt_gguf_vocab *v, const mt_gguf *g, mt_error *err)
{
    const mt_gguf_array *texts = mt_gguf_array_of(g, TOKENS), *types, *scores = NULL;
    const size_t count = texts ? mt_gguf_count(texts) : 0;

    if (!texts || mt_gguf_element(texts) != MT_GGUF_STRING || count == 0 || count > MT_LIMIT_VOCAB)
        return mt_fail(err, MT_E_INVALID, "\"" TOKENS "\" is not a list of 1 to %u strings; download the file again",
                       MT_LIMIT_VOCAB);
    if (!(types = parallel(g, TYPES, count, err)))
        return false;
    if ((v->kind == MT_GGUF_UNIGRAM || mt_gguf_has(g, SCORES)) && !(scores = parallel(g, SCORES, count, err)))
        return false;
    v->tokens = mt_alloc_array(count, sizeof(*v->tokens));
    v->count = count;
    for (size_t i = 0; i < count; i++)
        if (!read_text(&v->tokens[i], texts, i, err) || !read_token(&v->tokens[i], types, scores, i, err))
            return false;
    return true;
}

/* Has a token begin with `lead` in place of its first `drop` bytes. */
static bool respell(mt_gguf_vocab *v, mt_gguf_token *token, size_t drop, const char *lead, mt_error *err)
{
    const size_t lead_len = strlen(lead), len = token->len - drop + lead_len;
    char *text = mt_arena_alloc(v->arena, len + 1);

    if (!text)
        return mt_fail(err, MT_E_TOO_LARGE, "the tokens in \"" TOKENS "\" have more than %u bytes",
                       MT_LIMIT_TOKENIZER_BYTES);
    memcpy(text, lead, lead_len);
    memcpy(text + lead_len, token->text + drop, token->len - drop);
    token->text = text;
    token->len = (uint32_t)len;
    return true;
}

/* WordPiece: files mark where words begin, tokenizer.json marks where they go on. */
static bool spell_wordpiece(mt_gguf_vocab *v, mt_gguf_token *token, mt_error *err)
{
    if (token->type == MT_GGUF_CONTROL || token->type == MT_GGUF_UNKNOWN)
        return true;
    if (token->len <= MARK || memcmp(token->text, BLANK, MARK) != 0)
        return respell(v, token, 0, "##", err);
    token->text += MARK;
    token->len -= MARK;
    return true;
}

/* Tokens that were added to a SentencePiece vocabulary have blanks in files and U+2581 in tokenizer.json. */
static bool spell_added(mt_gguf_vocab *v, mt_gguf_token *token, mt_error *err)
{
    size_t blanks = 0;
    char *text, *to;

    for (size_t i = 0; i < token->len; i++)
        blanks += token->text[i] == ' ';
    if (token->type != MT_GGUF_USER_DEFINED || blanks == 0)
        return true;
    text = to = mt_arena_alloc(v->arena, token->len + blanks * (MARK - 1) + 1);
    if (!text)
        return mt_fail(err, MT_E_TOO_LARGE, "the tokens in \"" TOKENS "\" have more than %u bytes",
                       MT_LIMIT_TOKENIZER_BYTES);
    for (size_t i = 0; i < token->len; i++) {
        const bool blank = token->text[i] == ' ';

        memcpy(to, blank ? BLANK : token->text + i, blank ? MARK : 1);
        to += blank ? MARK : 1;
    }
    token->text = text;
    token->len = (uint32_t)(to - text);
    return true;
}

static bool spell_tokens(mt_gguf_vocab *v, mt_error *err)
{
    v->arena = mt_arena_new(MT_LIMIT_TOKENIZER_BYTES);
    for (size_t i = 0; i < v->count; i++) {
        mt_gguf_token *token = &v->tokens[i];

        if (token->type == MT_GGUF_UNUSED && v->kind != MT_GGUF_UNIGRAM)
            token->len = 0; /* fills a hole in the ids; in Unigram's list a hole has to be filled */
        if (token->len == 0)
            continue;
        if ((v->kind == MT_GGUF_WORDPIECE && !spell_wordpiece(v, token, err)) ||
            (v->kind == MT_GGUF_SCORED && !spell_added(v, token, err)))
            return false;
    }
    return true;
}

/* The slot of a text, or the empty one where it belongs; NULL where the texts before it leave none. Half of the slots
   are empty, so only texts that were chosen to meet come to the limit. */
static uint32_t *find_slot(const mt_gguf_vocab *v, const char *text, size_t len)
{
    size_t at = (size_t)mt_hash(text, len) & v->mask;

    for (size_t i = 0; i < MT_LIMIT_GGUF_PROBES; i++, at = (at + 1) & v->mask) {
        const mt_gguf_token *token;

        if (!v->slots[at])
            return &v->slots[at];
        token = &v->tokens[v->slots[at] - 1];
        if (token->len == len && memcmp(token->text, text, len) == 0)
            return &v->slots[at];
    }
    return NULL;
}

static bool index_tokens(mt_gguf_vocab *v, mt_error *err)
{
    size_t size = 2;

    while (size < 2 * v->count)
        size *= 2;
    v->slots = mt_alloc_array(size, sizeof(*v->slots));
    v->mask = size - 1;
    for (size_t i = 0; i < v->count; i++) {
        const mt_gguf_token *token = &v->tokens[i];
        uint32_t *slot;

        if (token->len == 0)
            continue;
        slot = find_slot(v, token->text, token->len);
        if (!slot)
            return mt_fail(err, MT_E_TOO_LARGE,
                           "the tokens in \"" TOKENS "\" were chosen to make their table slow; download the model "
                           "elsewhere");
        if (*slot)
            return mt_fail(err, MT_E_INVALID,
                           "tokens %u and %zu in \"" TOKENS "\" are the same, \"%.*s\"; download the file again",
                           *slot - 1, i, shown(token->len), token->text);
        *slot = (uint32_t)i + 1;
    }
    return true;
}

static void set_special(mt_gguf_vocab *v, const char *const *names, bool special)
{
    for (; *names; names++) {
        const uint32_t id = mt_gguf_vocab_find(v, *names, strlen(*names));

        if (id != MT_GGUF_NO_TOKEN)
            v->tokens[id].special = special;
    }
}

/* Files have all tokens that look special as such, and those of Gemma 4 that have to be shown as ordinary ones; the
   models' own files tell what they are. */
static void mark_special(mt_gguf_vocab *v)
{
    static const char *const qwen[] = {
        "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", NULL};
    static const char *const deepseek[] = {"<｜User｜>",
                                           "<｜Assistant｜>",
                                           "<｜fim▁begin｜>",
                                           "<｜fim▁hole｜>",
                                           "<｜fim▁end｜>",
                                           "<｜tool▁calls▁begin｜>",
                                           "<｜tool▁calls▁end｜>",
                                           "<｜tool▁call▁begin｜>",
                                           "<｜tool▁call▁end｜>",
                                           "<｜tool▁outputs▁begin｜>",
                                           "<｜tool▁outputs▁end｜>",
                                           "<｜tool▁output▁begin｜>",
                                           "<｜tool▁output▁end｜>",
                                           "<｜tool▁sep｜>",
                                           NULL};
    static const char *const gemma[] = {"<mask>", "<2mass>", "[@BOS@]", NULL};
    static const char *const gemma4[] = {"<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
                                         "<|tool_response>", "<tool_response|>", "<|\"|>",       NULL};
    static const char turn[] = "<start_of_turn>", unused[] = "<unused";
    const bool gemma23 = v->kind == MT_GGUF_SCORED && mt_gguf_vocab_find(v, turn, sizeof(turn) - 1) != MT_GGUF_NO_TOKEN;

    for (size_t i = 0; i < v->count; i++) {
        mt_gguf_token *token = &v->tokens[i];
        const bool filler =
            gemma23 && token->len > sizeof(unused) && memcmp(token->text, unused, sizeof(unused) - 1) == 0;

        token->special = (token->type == MT_GGUF_UNKNOWN || token->type == MT_GGUF_CONTROL) && !filler;
    }
    if (v->pre && v->pre->qwen)
        set_special(v, qwen, false);
    set_special(v, deepseek, false);
    if (gemma23)
        set_special(v, gemma, false);
    if (v->kind == MT_GGUF_MARKED)
        set_special(v, gemma4, true);
}

bool mt_gguf_vocab_read(mt_gguf_vocab *v, const mt_gguf *g, mt_error *err)
{
    *v = (mt_gguf_vocab){0};
    if (!read_kind(v, g, err) || !read_pre(v, g, err) || !read_tokens(v, g, err) || !spell_tokens(v, err) ||
        !index_tokens(v, err))
        return false;
    mark_special(v);
    return true;
}

uint32_t mt_gguf_vocab_find(const mt_gguf_vocab *v, const char *text, size_t len)
{
    const uint32_t *slot = len > 0 ? find_slot(v, text, len) : NULL;

    return slot && *slot ? *slot - 1 : MT_GGUF_NO_TOKEN;
}

bool mt_gguf_vocab_id(const mt_gguf_vocab *v, const mt_gguf *g, const char *key, uint32_t *id, mt_error *err)
{
    int64_t value;

    *id = MT_GGUF_NO_TOKEN;
    if (!mt_gguf_has(g, key))
        return true;
    if (!mt_gguf_int(g, key, &value) || value < 0 || (uint64_t)value >= v->count)
        return mt_fail(err, MT_E_INVALID, "\"%s\" is not the id of one of the %zu tokens; download the file again", key,
                       v->count);
    *id = (uint32_t)value;
    return true;
}
