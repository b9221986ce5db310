/* Merges made of scores (gguf_vocab.h). SentencePiece merges the two neighbours that make the piece with the highest
   score; tokenizer.json lists pairs in the order of their precedence. Each way to cut a piece in two pieces is a pair:
   first those of the highest score, of equal scores those with the longest left, then right part, as in the files that
   the models were published with. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "weights/gguf_vocab.h"
#include "weights/limits.h"

typedef struct pair {
    float score;
    uint32_t piece;       /* id */
    uint32_t cut;         /* bytes of the left part */
    uint32_t left, right; /* characters of the parts */
} pair;

typedef struct pairs {
    pair *list;
    size_t count, cap;
} pairs;

static bool merges(const mt_gguf_token *token)
{
    return token->len > 0 && token->type != MT_GGUF_UNKNOWN && token->type != MT_GGUF_CONTROL &&
           token->type != MT_GGUF_BYTE;
}

static bool is_piece(const mt_gguf_vocab *v, const char *text, size_t len)
{
    const uint32_t id = mt_gguf_vocab_find(v, text, len);

    return id != MT_GGUF_NO_TOKEN && merges(&v->tokens[id]);
}

static uint32_t count_chars(const mt_gguf_token *token)
{
    uint32_t count = 0;

    for (size_t at = 0; at < token->len; at += mt_utf8_size(token->text[at]))
        count++;
    return count;
}

static bool cut_piece(const mt_gguf_vocab *v, uint32_t id, float score, pairs *to, mt_error *err)
{
    const mt_gguf_token *token = &v->tokens[id];
    const uint32_t chars = count_chars(token);
    size_t cut = 0;

    for (uint32_t left = 1; left < chars; left++) {
        cut += mt_utf8_size(token->text[cut]);
        if (!is_piece(v, token->text, cut) || !is_piece(v, token->text + cut, token->len - cut))
            continue;
        if (to->count == MT_LIMIT_VOCAB)
            return mt_fail(err, MT_E_TOO_LARGE, "its tokens make more than %u merges", MT_LIMIT_VOCAB);
        to->list = mt_grow(to->list, &to->cap, to->count + 1, sizeof(*to->list));
        to->list[to->count++] = (pair){score, id, (uint32_t)cut, left, chars - left};
    }
    return true;
}

static int descending(uint32_t a, uint32_t b)
{
    return a > b ? -1 : a < b;
}

static int compare(const void *va, const void *vb)
{
    const pair *a = va, *b = vb;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->left != b->left)
        return descending(a->left, b->left);
    return a->right != b->right ? descending(a->right, b->right) : descending(b->piece, a->piece);
}

/* Whether scores tell nothing: some converters give all pieces the same. Then the order of the ids counts, which is
   that of the scores in the models' own files. */
static bool without_scores(const mt_gguf_vocab *v)
{
    const mt_gguf_token *first = NULL;

    for (size_t i = 0; i < v->count; i++) {
        const mt_gguf_token *token = &v->tokens[i];

        if (token->len == 0 || token->type != MT_GGUF_NORMAL)
            continue;
        if (first && token->score != first->score)
            return false;
        first = token;
    }
    return true;
}

static bool cut_pieces(const mt_gguf_vocab *v, pairs *to, mt_error *err)
{
    const bool by_id = without_scores(v);
    uint64_t steps = 0;

    for (size_t i = 0; i < v->count; i++) {
        const mt_gguf_token *token = &v->tokens[i];
        const bool added = token->type == MT_GGUF_USER_DEFINED; /* it has precedence, and a score that means nothing */

        if (!merges(token))
            continue;
        steps += (uint64_t)token->len * token->len;
        if (steps > MT_LIMIT_GGUF_SPLITS)
            return mt_fail(err, MT_E_TOO_LARGE, "its tokens are too long for pieces of a SentencePiece model");
        if (!cut_piece(v, (uint32_t)i, added ? 0 : by_id ? -(float)i : token->score, to, err))
            return false;
    }
    return true;
}

bool mt_gguf_merges_derive(const mt_gguf_vocab *v, mt_buf *out, mt_error *err)
{
    pairs all = {0};
    const bool ok = cut_pieces(v, &all, err);

    if (ok) {
        if (all.count > 0)
            qsort(all.list, all.count, sizeof(*all.list), compare);
        mt_json_write(out, "'merges':[");
        for (size_t i = 0; i < all.count; i++) {
            const mt_gguf_token *token = &v->tokens[all.list[i].piece];
            const size_t cut = all.list[i].cut;

            mt_json_write(out, "[");
            mt_json_text(out, NULL, token->text, cut);
            mt_json_text(out, NULL, token->text + cut, token->len - cut);
            mt_json_write(out, "]");
        }
        mt_json_write(out, "]");
    }
    mt_free(all.list);
    return ok;
}
