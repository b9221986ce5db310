/* See bpe.h. Two shortcuts save time and change no result:
   - A word that is a token as a whole is looked up before it is split. Whether merging its characters would end in that
      token depends on the token alone; the answer is computed once and kept in `whole`, one byte for each token.
      Threads that compute it at the same time store the same answer.
   - A text that the pre-tokenizer does not cut at blanks is cut where no merge can cross (bpe_borders.c). */
#include "text/bpe.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/limits.h"

enum { UNTRIED, MERGES_TO_IT, MERGES_TO_OTHERS }; /* values of mt_tok_bpe.whole */

enum { BYTE_TOKEN = 6 }; /* bytes of "<0xNN>" */

static void find_singles(mt_tok_bpe *bpe)
{
    for (unsigned i = 0; i < 256; i++) {
        char text[MT_TOK_BYTE_CHAR_MAX + BYTE_TOKEN + 1];
        size_t len = bpe->byte_level ? mt_tok_byte_char((unsigned char)i, text) : 1;

        if (!bpe->byte_level)
            text[0] = (char)i;
        bpe->singles[i] = bpe->byte_level || i < 0x80 ? mt_tok_vocab_id(bpe->vocab, text, len) : MT_TOKEN_NONE;
        snprintf(text, sizeof(text), "<0x%02X>", i);
        bpe->fallback[i] = mt_tok_vocab_id(bpe->vocab, text, BYTE_TOKEN);
    }
}

static bool all_known(const uint32_t ids[256])
{
    for (unsigned i = 0; i < 256; i++)
        if (ids[i] == MT_TOKEN_NONE)
            return false;
    return true;
}

void mt_tok_bpe_finish(mt_tok_bpe *bpe)
{
    find_singles(bpe);
    bpe->covers = (bpe->byte_level && all_known(bpe->singles)) || (bpe->byte_fallback && all_known(bpe->fallback));
    bpe->unk = bpe->unk_token ? mt_tok_vocab_id(bpe->vocab, bpe->unk_token, bpe->unk_len) : MT_TOKEN_NONE;
    bpe->shortcut = bpe->prefix_len == 0 && bpe->suffix_len == 0;
    bpe->whole = mt_alloc(bpe->vocab->count * sizeof(*bpe->whole));
    mt_tok_bpe_find_joints(bpe);
}

void mt_tok_bpe_free(mt_tok_bpe *bpe)
{
    mt_tok_merges_free(&bpe->merges);
    mt_free(bpe->whole);
    mt_free(bpe->joints);
    *bpe = (mt_tok_bpe){0};
}

void mt_tok_bpe_work_free(mt_tok_bpe_work *work)
{
    mt_free(work->symbols);
    mt_free(work->heap);
    mt_free(work->spelling);
    *work = (mt_tok_bpe_work){0};
}

static void add_symbol(mt_tok_bpe_work *w, uint32_t id)
{
    uint32_t at = (uint32_t)w->count;

    if (w->count == w->cap)
        w->symbols = mt_grow(w->symbols, &w->cap, w->count + 1, sizeof(*w->symbols));
    if (at > 0)
        w->symbols[at - 1].after = at;
    w->symbols[w->count++] = (mt_tok_symbol){
        .id = id, .before = at > 0 ? at - 1 : MT_MERGE_NONE, .after = MT_MERGE_NONE, .merge = {MT_MERGE_NONE, 0}};
}

/* Adds a character that is no token: its bytes as tokens where the model falls back to bytes, else the unknown token,
   if the model has one. An unknown token waits in *unk, so that the next can be fused with it; byte tokens do not wait.
   The resulting order is that of the tokenizers library. */
static bool add_unknown(const mt_tok_bpe *bpe, mt_tok_bpe_work *w, const char *text, size_t len, uint32_t *unk,
                        mt_error *err)
{
    if (bpe->byte_fallback) {
        size_t known = 0;

        while (known < len && bpe->fallback[(unsigned char)text[known]] != MT_TOKEN_NONE)
            known++;
        if (known == len) {
            for (size_t i = 0; i < len; i++)
                add_symbol(w, bpe->fallback[(unsigned char)text[i]]);
            return true;
        }
    }
    if (!bpe->unk_token)
        return true;
    if (bpe->unk == MT_TOKEN_NONE)
        return mt_fail(err, MT_E_INVALID, "the tokenizer's \"unk_token\" is not in its vocabulary; download it again");
    if (*unk != MT_TOKEN_NONE && !bpe->fuse_unk)
        add_symbol(w, *unk);
    *unk = bpe->unk;
    return true;
}

/* The id of the character at text, with the prefix or suffix that its position demands. `spelled` gets the string that
   was looked up. */
static uint32_t single(const mt_tok_bpe *bpe, const char *text, size_t size, bool first, bool last, char *spelled,
                       size_t *spelled_len)
{
    size_t len = 0;

    if (bpe->shortcut && (bpe->byte_level || size == 1)) {
        uint32_t id = bpe->singles[(unsigned char)text[0]];

        if (id != MT_TOKEN_NONE)
            return id;
    }
    if (!first && bpe->prefix_len > 0) {
        memcpy(spelled, bpe->prefix, bpe->prefix_len);
        len = bpe->prefix_len;
    }
    if (bpe->byte_level) {
        len += mt_tok_byte_char((unsigned char)text[0], spelled + len);
    } else {
        memcpy(spelled + len, text, size);
        len += size;
    }
    if (last && bpe->suffix_len > 0) {
        memcpy(spelled + len, bpe->suffix, bpe->suffix_len);
        len += bpe->suffix_len;
    }
    *spelled_len = len;
    return mt_tok_vocab_id(bpe->vocab, spelled, len);
}

/* Splits a word into symbols. */
static bool spell(const mt_tok_bpe *bpe, mt_tok_bpe_work *w, const char *word, size_t len, mt_error *err)
{
    char spelled[2 * MT_LIMIT_TOKEN_AFFIX + MT_UTF8_MAX];
    uint32_t unk = MT_TOKEN_NONE;

    w->count = 0;
    for (size_t at = 0, size; at < len; at += size) {
        size_t spelled_len;
        uint32_t id;

        size = bpe->byte_level ? 1 : mt_utf8_size(word[at]);
        id = single(bpe, word + at, size, at == 0, at + size == len, spelled, &spelled_len);
        if (id == MT_TOKEN_NONE) {
            if (!add_unknown(bpe, w, spelled, spelled_len, &unk, err))
                return false;
            continue;
        }
        if (unk != MT_TOKEN_NONE)
            add_symbol(w, unk);
        unk = MT_TOKEN_NONE;
        add_symbol(w, id);
    }
    if (unk != MT_TOKEN_NONE)
        add_symbol(w, unk);
    return true;
}

/* The index in the vocabulary of a word as a whole, or MT_TOK_NOT_THERE. */
static size_t find_whole(const mt_tok_bpe *bpe, mt_tok_bpe_work *w, const char *word, size_t len)
{
    if (!bpe->byte_level)
        return mt_tok_vocab_index(bpe->vocab, word, len);
    if (len > bpe->vocab->longest)
        return MT_TOK_NOT_THERE;
    if (!w->spelling) {
        w->spelling_cap = bpe->vocab->longest * MT_TOK_BYTE_CHAR_MAX;
        w->spelling = mt_alloc(w->spelling_cap);
    }
    return mt_tok_vocab_index(bpe->vocab, w->spelling, mt_tok_byte_chars(word, len, w->spelling));
}

/* Appends the tokens of one word; `whole` is its index in the vocabulary. */
static bool encode_word(const mt_tok_bpe *bpe, mt_tok_bpe_work *w, const char *word, size_t len, size_t whole,
                        mt_ids *out, mt_error *err)
{
    size_t count = out->count;

    /* relaxed: no other data depends on this byte */
    if (whole != MT_TOK_NOT_THERE && atomic_load_explicit(&bpe->whole[whole], memory_order_relaxed) == MERGES_TO_IT) {
        mt_ids_add(out, bpe->vocab->ids[whole]);
        return true;
    }
    if (!spell(bpe, w, word, len, err))
        return false;
    mt_tok_bpe_merge(&bpe->merges, w);
    for (uint32_t at = w->count > 0 ? 0 : MT_MERGE_NONE; at != MT_MERGE_NONE; at = w->symbols[at].after)
        mt_ids_add(out, w->symbols[at].id);
    if (whole != MT_TOK_NOT_THERE) {
        bool one = out->count == count + 1 && out->data[count] == bpe->vocab->ids[whole];

        atomic_store_explicit(&bpe->whole[whole], one ? MERGES_TO_IT : MERGES_TO_OTHERS, memory_order_relaxed);
    }
    return true;
}

/* Cuts a piece at borders and encodes each word. */
static bool encode_words(const mt_tok_bpe *bpe, mt_tok_bpe_work *w, const char *piece, size_t len, mt_ids *out,
                         mt_error *err)
{
    uint32_t before = 0;
    size_t begin = 0;

    for (size_t at = 0; at < len; at += mt_utf8_size(piece[at])) {
        uint32_t c = mt_utf8_at(piece + at);

        if (at > begin && mt_tok_bpe_is_border(bpe, before, c)) {
            if (!encode_word(bpe, w, piece + begin, at - begin, find_whole(bpe, w, piece + begin, at - begin), out,
                             err))
                return false;
            begin = at;
        }
        before = c;
    }
    return encode_word(bpe, w, piece + begin, len - begin, find_whole(bpe, w, piece + begin, len - begin), out, err);
}

bool mt_tok_bpe_encode(const mt_tok_bpe *bpe, mt_tok_bpe_work *work, const char *piece, size_t len, mt_ids *out,
                       mt_error *err)
{
    size_t whole = MT_TOK_NOT_THERE;

    if (bpe->joints && !bpe->ignore_merges)
        return encode_words(bpe, work, piece, len, out, err);
    if (bpe->shortcut || bpe->ignore_merges)
        whole = find_whole(bpe, work, piece, len);
    if (bpe->ignore_merges && whole != MT_TOK_NOT_THERE) {
        mt_ids_add(out, bpe->vocab->ids[whole]);
        return true;
    }
    if (bpe->joints)
        return encode_words(bpe, work, piece, len, out, err);
    return encode_word(bpe, work, piece, len, bpe->shortcut ? whole : MT_TOK_NOT_THERE, out, err);
}
