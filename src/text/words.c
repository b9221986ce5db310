/* See words.h. */
#include "text/words.h"

bool mt_tok_words_finish(mt_tok_words *words, bool byte_level, mt_error *err)
{
    if (words->kind == MT_TOK_BPE) {
        words->bpe.vocab = &words->vocab;
        words->bpe.byte_level = byte_level;
        mt_tok_bpe_finish(&words->bpe);
    } else if (words->kind == MT_TOK_UNIGRAM) {
        words->unigram.vocab = &words->vocab;
        return mt_tok_unigram_finish(&words->unigram, err);
    } else {
        words->wordpiece.vocab = &words->vocab;
        words->wordpiece.whole_words = words->kind == MT_TOK_WORDLEVEL;
    }
    return true;
}

void mt_tok_words_free(mt_tok_words *words)
{
    mt_tok_bpe_free(&words->bpe);
    mt_tok_unigram_free(&words->unigram);
    mt_tok_vocab_free(&words->vocab);
}

void mt_tok_words_work_free(mt_tok_words_work *work)
{
    mt_tok_bpe_work_free(&work->bpe);
    mt_tok_unigram_work_free(&work->unigram);
}

size_t mt_tok_words_least(const mt_tok_words *words, size_t len)
{
    return words->kind == MT_TOK_BPE && words->bpe.covers && words->vocab.longest > 0 ? len / words->vocab.longest : 0;
}

bool mt_tok_words_encode(const mt_tok_words *words, mt_tok_words_work *work, const char *piece, size_t len, mt_ids *out,
                         mt_error *err)
{
    switch (words->kind) {
    case MT_TOK_BPE: return mt_tok_bpe_encode(&words->bpe, &work->bpe, piece, len, out, err);
    case MT_TOK_UNIGRAM: return mt_tok_unigram_encode(&words->unigram, &work->unigram, piece, len, out, err);
    default: return mt_tok_wordpiece_encode(&words->wordpiece, piece, len, work->stop, out, err);
    }
}
