#include "unit.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "text/limits.h"
#include "text/merges.h"
#include "text/tokenizer.h"
#include "text/trie.h"
#include "text/unigram.h"
#include "text/vocab.h"
#include "text/wordpiece.h"
#include "weights/limits.h"

static void spellings_are_found(void **state)
{
    mt_tok_vocab vocab = {0};
    mt_error err;
    char text[32];

    (void)state;
    assert_int_equal(mt_tok_vocab_id(&vocab, "a", 1), MT_TOKEN_NONE);
    for (uint32_t i = 0; i < 10000; i++) {
        int len = snprintf(text, sizeof(text), "token %u", i * 31);

        assert_true(mt_tok_vocab_add(&vocab, text, (size_t)len, i, &err));
    }
    for (uint32_t i = 0; i < 10000; i++) {
        int len = snprintf(text, sizeof(text), "token %u", i * 31);
        size_t there;

        assert_int_equal(mt_tok_vocab_id(&vocab, text, (size_t)len), i);
        assert_memory_equal(mt_tok_vocab_text(&vocab, mt_tok_vocab_index(&vocab, text, (size_t)len), &there), text,
                            (size_t)len);
        assert_int_equal(there, len);
        assert_int_equal(mt_tok_vocab_id(&vocab, text, (size_t)len - 1) == i, 0);
    }
    assert_true(mt_tok_vocab_add(&vocab, "token 31", 8, 77777, &err));
    assert_int_equal(mt_tok_vocab_id(&vocab, "token 31", 8), 77777);
    assert_int_equal(vocab.count, 10000);
    assert_int_equal(vocab.id_limit, 77778);
    assert_true(mt_tok_vocab_add(&vocab, "", 0, 5, &err));
    assert_true(mt_tok_vocab_add(&vocab, "a\0b", 3, 6, &err));
    assert_int_equal(mt_tok_vocab_id(&vocab, "", 0), 5);
    assert_int_equal(mt_tok_vocab_id(&vocab, "a\0b", 3), 6);
    assert_int_equal(mt_tok_vocab_id(&vocab, "a\0c", 3), MT_TOKEN_NONE);
    mt_tok_vocab_free(&vocab);
}

/* The most slots in a row that are taken: how far a search may go. Counts runs that go around the end as two. */
static size_t longest_run(const bool *taken, size_t count)
{
    size_t most = 0, run = 0;

    for (size_t i = 0; i < count; i++) {
        run = taken[i] ? run + 1 : 0;
        most = run > most ? run : most;
    }
    return most;
}

/* 2^14 strings that met in one slot under a hash that multiplied eight bytes at a time, whatever it began with: of each
   pair of words, bits that undo each other's are flipped or not. */
static void chosen_strings_do_not_meet(void **state)
{
    enum { PAIRS = 14 };
    mt_tok_vocab vocab = {0};
    mt_error err;
    bool *taken;

    (void)state;
    for (uint32_t i = 0; i < 1u << PAIRS; i++) {
        uint64_t words[2 * PAIRS] = {0};

        for (unsigned pair = 0; pair < PAIRS; pair++) {
            if (i >> pair & 1) {
                words[2 * pair] = (uint64_t)1 << 63;
                words[2 * pair + 1] = (uint64_t)1 << 63 | (uint64_t)1 << 34;
            }
        }
        assert_true(mt_tok_vocab_add(&vocab, (const char *)words, sizeof(words), i, &err));
    }
    taken = mt_alloc(vocab.mask + 1);
    for (size_t i = 0; i <= vocab.mask; i++)
        taken[i] = vocab.slots[i] != 0;
    assert_in_range(longest_run(taken, vocab.mask + 1), 1, 1000);
    mt_free(taken);
    mt_tok_vocab_free(&vocab);
}

/* Pairs of ids that met in one slot under multiplication by a known number. */
static void chosen_pairs_do_not_meet(void **state)
{
    enum { PAIRS = 1 << 14 };
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t inverse = odd;
    mt_tok_merges merges = {0};
    bool *taken;

    (void)state;
    for (int i = 0; i < 5; i++)
        inverse *= 2 - odd * inverse;
    assert_true(inverse * odd == 1);
    for (uint32_t i = 0; i < PAIRS; i++) {
        const uint64_t pair = inverse * i;

        mt_tok_merges_add(&merges, (uint32_t)(pair >> 32), (uint32_t)pair, (mt_tok_merge){i, i});
    }
    for (uint32_t i = 0; i < PAIRS; i++)
        assert_int_equal(mt_tok_merges_find(&merges, (uint32_t)(inverse * i >> 32), (uint32_t)(inverse * i)).id, i);
    taken = mt_alloc(merges.mask + 1);
    for (size_t i = 0; i <= merges.mask; i++)
        taken[i] = merges.slots[i].merge.rank != MT_MERGE_NONE;
    assert_in_range(longest_run(taken, merges.mask + 1), 1, 1000);
    mt_free(taken);
    mt_tok_merges_free(&merges);
}

static void limits_are_sentences(void **state)
{
    char *text = mt_alloc(MT_LIMIT_TOKEN_BYTES + 1);
    mt_tok_vocab vocab = {0};
    mt_error err;

    (void)state;
    assert_false(mt_tok_vocab_add(&vocab, text, MT_LIMIT_TOKEN_BYTES + 1, 0, &err));
    assert_string_equal(err.text, "it has a token of 65537 bytes; at most 65536 are read");
    assert_true(mt_tok_vocab_add(&vocab, text, MT_LIMIT_TOKEN_BYTES, 0, &err));
    assert_false(mt_tok_vocab_add(&vocab, "a", 1, MT_LIMIT_VOCAB, &err));
    assert_string_equal(err.text, "it has a token with the id 4194304; ids must be below 4194304");
    mt_tok_vocab_free(&vocab);
    mt_free(text);
}

/* The value of the longest entry that text begins with. */
static uint32_t longest(const mt_tok_trie *trie, const char *text)
{
    uint32_t node = mt_tok_trie_enter(trie, (unsigned char)text[0]), found = MT_TRIE_NONE;

    for (size_t i = 1; node != MT_TRIE_NONE; i++) {
        if (trie->nodes[node].value != MT_TRIE_NONE)
            found = trie->nodes[node].value;
        node = text[i] ? mt_tok_trie_step(trie, node, (unsigned char)text[i]) : MT_TRIE_NONE;
    }
    return found;
}

static void tries_find_starts(void **state)
{
    mt_tok_entry entries[] = {{"ab", 2, 0}, {"abcd", 4, 1}, {"b", 1, 2}, {"\xFF", 1, 3}, {"ab", 2, 4}, {"abce", 4, 5}};
    char bytes[256][2];
    mt_tok_entry all[256];
    mt_tok_trie trie;
    mt_error err;

    (void)state;
    assert_true(mt_tok_trie_build(&trie, entries, MT_COUNT(entries), &err));
    assert_int_equal(longest(&trie, "abc"), 4);
    assert_int_equal(longest(&trie, "abcd"), 1);
    assert_int_equal(longest(&trie, "abcef"), 5);
    assert_int_equal(longest(&trie, "ba"), 2);
    assert_int_equal(longest(&trie, "a"), MT_TRIE_NONE);
    assert_int_equal(longest(&trie, "\xFF"), 3);
    mt_tok_trie_free(&trie);
    for (uint32_t i = 0; i < 256; i++) {
        bytes[i][0] = 'x';
        bytes[i][1] = (char)i;
        all[i] = (mt_tok_entry){bytes[i], 2, i};
    }
    assert_true(mt_tok_trie_build(&trie, all, MT_COUNT(all), &err));
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(trie.nodes[mt_tok_trie_step(&trie, mt_tok_trie_enter(&trie, 'x'), (unsigned char)i)].value, i);
    mt_tok_trie_free(&trie);
    assert_true(mt_tok_trie_build(&trie, all, 0, &err));
    assert_int_equal(mt_tok_trie_enter(&trie, 'x'), MT_TRIE_NONE);
}

/* One string of so many bytes has as many beginnings. */
static void tries_have_a_limit(void **state)
{
    char *text = mt_alloc(MT_LIMIT_TRIE_NODES);
    mt_tok_entry entries[] = {{text, MT_LIMIT_TRIE_NODES - 1, 0}, {"b", 1, 1}};
    mt_tok_trie trie;
    mt_error err;

    (void)state;
    memset(text, 'a', MT_LIMIT_TRIE_NODES);
    assert_true(mt_tok_trie_build(&trie, entries, 1, &err));
    mt_tok_trie_free(&trie);
    assert_false(mt_tok_trie_build(&trie, entries, 2, &err));
    assert_string_equal(err.text,
                        "its tokens have more than 8388608 different beginnings, which no real tokenizer has; "
                        "download the file again");
    mt_tok_trie_free(&trie);
    mt_free(text);
}

/* With a token of 60,000 letters, each letter of a text that is nearly that token takes as many steps: minutes, after
   which no piece would be left as it is here. */
static void pieces_are_left_when_their_request_has_ended(void **state)
{
    enum { LONG = 60000, TEXT = 2000000 };
    const atomic_bool stop = true;
    char *text = mt_alloc(TEXT);
    mt_tok_vocab vocab = {0};
    mt_tok_unigram unigram = {.vocab = &vocab, .count = 2, .scores = mt_alloc_array(2, sizeof(double))};
    mt_tok_unigram_work work = {.stop = &stop};
    const mt_tok_wordpiece wordpiece = {.vocab = &vocab, .unk_token = "a", .unk_len = 1, .most_chars = SIZE_MAX};
    mt_ids ids = {0};
    mt_error err;

    (void)state;
    memset(text, 'a', TEXT);
    text[LONG - 1] = 'b';
    assert_true(mt_tok_vocab_add(&vocab, "a", 1, 0, &err) && mt_tok_vocab_add(&vocab, text, LONG, 1, &err));
    text[LONG - 1] = 'a';
    assert_true(mt_tok_unigram_finish(&unigram, &err));
    assert_true(mt_tok_unigram_encode(&unigram, &work, text, TEXT, &ids, &err));
    assert_int_equal(ids.count, 0);
    assert_true(mt_tok_wordpiece_encode(&wordpiece, text, TEXT, &stop, &ids, &err));
    assert_int_equal(ids.count, 1);
    mt_ids_free(&ids);
    mt_tok_unigram_work_free(&work);
    mt_tok_unigram_free(&unigram);
    mt_tok_vocab_free(&vocab);
    mt_free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(spellings_are_found),
    cmocka_unit_test(chosen_strings_do_not_meet),
    cmocka_unit_test(chosen_pairs_do_not_meet),
    cmocka_unit_test(limits_are_sentences),
    cmocka_unit_test(tries_find_starts),
    cmocka_unit_test(tries_have_a_limit),
    cmocka_unit_test(pieces_are_left_when_their_request_has_ended),
};
UNIT_MAIN(tests)
