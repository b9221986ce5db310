/* See unigram.h. Computes, from left to right, the best sequence of tokens up to each byte of the piece (Viterbi). A
   character that is no token counts as an unknown one, whose score is below that of the worst token, so that there is
   always a sequence. Neighbouring unknown characters become one token. */
#include "text/unigram.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define UNKNOWN_PENALTY 10.0

enum { BYTE_TOKEN = 6 }; /* bytes of "<0xNN>" */

bool mt_tok_unigram_finish(mt_tok_unigram *unigram, mt_error *err)
{
    const mt_tok_vocab *vocab = unigram->vocab;
    mt_tok_entry *entries = mt_alloc_array(vocab->count + 1, sizeof(*entries));
    double least = INFINITY;
    size_t count = 0;
    bool built;

    for (size_t i = 0; i < unigram->count; i++)
        least = unigram->scores[i] < least ? unigram->scores[i] : least;
    unigram->unk_score = least - UNKNOWN_PENALTY;
    for (size_t i = 0; i < vocab->count; i++) {
        size_t len;
        const char *text = mt_tok_vocab_text(vocab, i, &len);

        if (len > 0)
            entries[count++] = (mt_tok_entry){text, (uint32_t)len, vocab->ids[i]};
    }
    built = mt_tok_trie_build(&unigram->trie, entries, count, err);
    mt_free(entries);
    for (unsigned i = 0; i < 256; i++) {
        char text[BYTE_TOKEN + 1];

        snprintf(text, sizeof(text), "<0x%02X>", i);
        unigram->fallback[i] = mt_tok_vocab_id(vocab, text, BYTE_TOKEN);
    }
    return built;
}

void mt_tok_unigram_free(mt_tok_unigram *unigram)
{
    mt_free(unigram->scores);
    mt_tok_trie_free(&unigram->trie);
    *unigram = (mt_tok_unigram){0};
}

void mt_tok_unigram_work_free(mt_tok_unigram_work *work)
{
    mt_free(work->nodes);
    *work = (mt_tok_unigram_work){0};
}

static void offer(mt_tok_unigram_node *node, size_t begin, uint32_t id, double score)
{
    if (node->begin == MT_TOKEN_NONE || score > node->score)
        *node = (mt_tok_unigram_node){score, (uint32_t)begin, id};
}

static bool stopped(const mt_tok_unigram_work *work)
{
    /* relaxed: read again and again, and no other data depends on it */
    return work->stop && atomic_load_explicit(work->stop, memory_order_relaxed);
}

/* A token may be long, and then a character takes long: each one looks at `stop`. */
static bool find_ways(const mt_tok_unigram *u, const mt_tok_unigram_work *work, const char *piece, size_t len)
{
    mt_tok_unigram_node *nodes = work->nodes;

    for (size_t i = 0; i <= len; i++)
        nodes[i] = (mt_tok_unigram_node){.begin = MT_TOKEN_NONE};
    for (size_t at = 0, size; at < len && !stopped(work); at += size) {
        uint32_t node = mt_tok_trie_enter(&u->trie, (unsigned char)piece[at]);
        bool single = false;

        size = mt_utf8_size(piece[at]);
        for (size_t end = at + 1; node != MT_TRIE_NONE; end++) {
            uint32_t id = u->trie.nodes[node].value;

            if (id != MT_TRIE_NONE) {
                offer(&nodes[end], at, id, u->scores[id] + nodes[at].score);
                single |= end == at + size;
            }
            if (end == len)
                break;
            node = mt_tok_trie_step(&u->trie, node, (unsigned char)piece[end]);
        }
        if (single)
            continue;
        if (u->unk == MT_TOKEN_NONE)
            return false;
        offer(&nodes[at + size], at, u->unk, u->unk_score + nodes[at].score);
    }
    return true;
}

/* The nodes are linked from the end to the start. Reverses that: afterwards nodes[start of a token].begin is the end of
   that token. */
static void turn_around(mt_tok_unigram_node *nodes, size_t len)
{
    uint32_t end = (uint32_t)len, next_end = MT_TOKEN_NONE, next_id = 0;

    for (;;) {
        mt_tok_unigram_node way = nodes[end];

        nodes[end].begin = next_end;
        nodes[end].id = next_id;
        if (end == 0)
            break;
        next_end = end;
        next_id = way.id;
        end = way.begin;
    }
}

static bool add_token(const mt_tok_unigram *u, const char *text, size_t len, mt_ids *out, mt_error *err)
{
    uint32_t id = mt_tok_vocab_id(u->vocab, text, len);
    size_t known = 0;

    if (id != MT_TOKEN_NONE) {
        mt_ids_add(out, id);
        return true;
    }
    while (u->byte_fallback && known < len && u->fallback[(unsigned char)text[known]] != MT_TOKEN_NONE)
        known++;
    if (known == len) {
        for (size_t i = 0; i < len; i++)
            mt_ids_add(out, u->fallback[(unsigned char)text[i]]);
        return true;
    }
    if (u->unk == MT_TOKEN_NONE)
        return mt_fail(err, MT_E_INVALID, "the tokenizer has no token for \"%.*s\" and no \"unk_id\"; use another one",
                       (int)(len < 40 ? len : 40), text);
    mt_ids_add(out, u->unk);
    return true;
}

bool mt_tok_unigram_encode(const mt_tok_unigram *unigram, mt_tok_unigram_work *work, const char *piece, size_t len,
                           mt_ids *out, mt_error *err)
{
    if (work->cap < len + 1) {
        mt_free(work->nodes);
        work->cap = 2 * len + 64;
        work->nodes = mt_alloc_array(work->cap, sizeof(*work->nodes));
    }
    if (!find_ways(unigram, work, piece, len))
        return mt_fail(err, MT_E_INVALID,
                       "the tokenizer has no token for a character and no \"unk_id\"; use another one");
    if (stopped(work)) /* the caller looks, too */
        return true;
    turn_around(work->nodes, len);
    for (size_t at = 0, end; at < len; at = end) {
        bool unknown = work->nodes[at].id == unigram->unk;

        end = work->nodes[at].begin;
        while (unknown && end < len && work->nodes[end].id == unigram->unk)
            end = work->nodes[end].begin;
        if (!add_token(unigram, piece + at, end - at, out, err))
            return false;
    }
    return true;
}
