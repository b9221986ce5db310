#include "unit.h"

#include "base/alloc.h"
#include "sample/counts.h"
#include "sample/philox.h"

enum { VOCAB = 500, PROMPT = 60, OUTPUT = 200 };

static uint32_t draw(uint32_t index, uint32_t below)
{
    return (uint32_t)(mt_philox_draw(11, 0, index, MT_PURPOSE_TOKEN) % below);
}

static uint32_t count_of(const mt_counts *c, uint32_t id, bool *seen)
{
    size_t n;
    const mt_count *list = mt_counts_seen(c, &n);
    *seen = false;
    for (size_t i = 0; i < n; i++) {
        if (list[i].id == id) {
            *seen = true;
            return list[i].count;
        }
    }
    return 0;
}

static void tokens_are_counted_and_the_prompt_is_only_seen(void **state)
{
    static const uint32_t prompt[] = {7, 7, 3, VOCAB};
    void *memory = mt_alloc(mt_counts_bytes(4, 4, VOCAB, 0));
    mt_counts *c = mt_counts_make(memory, prompt, 4, 4, VOCAB, 0);
    bool seen;
    size_t n;
    (void)state;
    mt_counts_push(c, 9);
    mt_counts_push(c, 3);
    mt_counts_push(c, 9);
    assert_int_equal(count_of(c, 9, &seen), 2);
    assert_int_equal(count_of(c, 3, &seen), 1);
    assert_int_equal(count_of(c, 7, &seen), 0);
    assert_true(seen);
    mt_counts_seen(c, &n);
    assert_int_equal(n, 3); /* each once, and none for an id beyond the vocabulary */
    mt_free(memory);
}

/* Against plain arrays, with every id and many collisions. */
static void any_tokens_are_counted_right(void **state)
{
    uint32_t prompt[PROMPT], plain[VOCAB] = {0};
    bool in_prompt[VOCAB] = {false}, seen;
    void *memory = mt_alloc(mt_counts_bytes(PROMPT, OUTPUT, VOCAB, 0));
    (void)state;
    for (uint32_t i = 0; i < PROMPT; i++)
        in_prompt[prompt[i] = draw(i, VOCAB)] = true;
    mt_counts *c = mt_counts_make(memory, prompt, PROMPT, OUTPUT, VOCAB, 0);
    for (uint32_t i = 0; i < OUTPUT; i++) {
        uint32_t id = draw(1000 + i, VOCAB / 4);
        mt_counts_push(c, id);
        plain[id]++;
    }
    for (uint32_t id = 0; id < VOCAB; id++) {
        assert_int_equal(count_of(c, id, &seen), plain[id]);
        assert_true(seen == (plain[id] > 0 || in_prompt[id]));
    }
    mt_free(memory);
}

/* A walk of pushes and roll-backs, as drafts make it; after each roll-back every byte is what it was at that length. */
static void rolling_back_restores_every_byte(void **state)
{
    size_t bytes = mt_counts_bytes(PROMPT, OUTPUT, VOCAB, 0), length = 0;
    uint8_t *memory = mt_alloc(bytes), *snapshots = mt_alloc_array(OUTPUT + 1, bytes);
    uint32_t prompt[PROMPT];
    (void)state;
    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] = draw(i, VOCAB);
    mt_counts *c = mt_counts_make(memory, prompt, PROMPT, OUTPUT, VOCAB, 0);
    memcpy(snapshots, memory, bytes);
    mt_alloc_forbid();
    for (uint32_t step = 0; step < 3000; step++) {
        size_t back = draw(9000 + step, 8);
        if (draw(5000 + step, 4) == 0 || length == OUTPUT) {
            back = back < length ? back : length;
            mt_counts_roll_back(c, back);
            length -= back;
            assert_memory_equal(memory, snapshots + length * bytes, bytes);
        } else {
            mt_counts_push(c, draw(20000 + step, VOCAB));
            length++;
            memcpy(snapshots + length * bytes, memory, bytes);
        }
    }
    mt_counts_roll_back(c, length);
    assert_memory_equal(memory, snapshots, bytes);
    mt_alloc_permit();
    mt_free(snapshots);
    mt_free(memory);
}

/* Against all of the last tokens looked at anew; rolled back and forth as drafts do it. */
static void a_window_forgets_what_it_has_left(void **state)
{
    static const size_t windows[] = {1, 7, PROMPT, PROMPT + 9, OUTPUT};
    uint32_t text[PROMPT + OUTPUT];
    (void)state;
    for (uint32_t i = 0; i < PROMPT + OUTPUT; i++)
        text[i] = draw(i, 40);
    text[PROMPT - 3] = VOCAB; /* of no vocabulary */
    for (size_t w = 0; w < MT_COUNT(windows); w++) {
        const size_t bytes = mt_counts_bytes(PROMPT, OUTPUT, VOCAB, windows[w]);
        uint8_t *memory = mt_alloc(bytes), *first = mt_alloc(bytes);
        mt_counts *c = mt_counts_make(memory, text, PROMPT, OUTPUT, VOCAB, windows[w]);
        memcpy(first, memory, bytes);
        for (size_t length = PROMPT; length < PROMPT + OUTPUT; length++) {
            uint32_t places[VOCAB + 1] = {0}, count[VOCAB + 1] = {0};
            const size_t back = draw((uint32_t)length, 5);
            size_t n;
            mt_counts_push(c, text[length]);
            for (size_t i = 0; i < back && length + i + 1 < PROMPT + OUTPUT; i++)
                mt_counts_push(c, text[length + i + 1]);
            mt_counts_roll_back(c, length + back < PROMPT + OUTPUT ? back : PROMPT + OUTPUT - length - 1);
            for (size_t i = 0; i < windows[w] && i <= length; i++) {
                places[text[length - i]]++;
                count[text[length - i]] += length - i >= PROMPT;
            }
            const mt_count *seen = mt_counts_seen(c, &n);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(seen[i].places, places[seen[i].id]);
                assert_int_equal(seen[i].count, count[seen[i].id]);
                places[seen[i].id] = 0;
            }
            for (size_t id = 0; id < VOCAB; id++)
                assert_int_equal(places[id], 0); /* all that count were seen */
        }
        mt_counts_roll_back(c, OUTPUT);
        assert_memory_equal(memory, first, bytes);
        mt_free(first);
        mt_free(memory);
    }
}

/* Room for every id of the vocabulary is enough, however long the sequence. */
static void a_small_vocabulary_bounds_the_table(void **state)
{
    enum { FEW = 16 };
    void *memory = mt_alloc(mt_counts_bytes(0, OUTPUT, FEW, 0));
    mt_counts *c = mt_counts_make(memory, NULL, 0, OUTPUT, FEW, 0);
    size_t n;
    (void)state;
    for (uint32_t i = 0; i < OUTPUT; i++)
        mt_counts_push(c, i % FEW);
    mt_counts_seen(c, &n);
    assert_int_equal(n, FEW);
    assert_true(mt_counts_bytes(100000, 100000, FEW, 0) < mt_counts_bytes(100000, 100000, VOCAB, 0));
    mt_free(memory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tokens_are_counted_and_the_prompt_is_only_seen),
    cmocka_unit_test(any_tokens_are_counted_right),
    cmocka_unit_test(rolling_back_restores_every_byte),
    cmocka_unit_test(a_window_forgets_what_it_has_left),
    cmocka_unit_test(a_small_vocabulary_bounds_the_table),
};
UNIT_MAIN(tests)
