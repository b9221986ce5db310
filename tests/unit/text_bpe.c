#include "unit.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "text/bpe.h"

/* Merging as the definition has it: again and again the earliest merge of all, the leftmost of those. */
static size_t merge_slowly(const mt_tok_merges *merges, uint32_t *ids, size_t count)
{
    for (;;) {
        mt_tok_merge best = {MT_MERGE_NONE, 0};
        size_t at = 0;

        for (size_t i = 0; i + 1 < count; i++) {
            mt_tok_merge m = mt_tok_merges_find(merges, ids[i], ids[i + 1]);

            if (m.rank < best.rank) {
                best = m;
                at = i;
            }
        }
        if (best.rank == MT_MERGE_NONE)
            return count;
        ids[at] = best.id;
        memmove(ids + at + 1, ids + at + 2, (count - at - 2) * sizeof(*ids));
        count--;
    }
}

static void fill(mt_tok_bpe_work *work, const uint32_t *ids, size_t count)
{
    work->symbols = mt_alloc_array(count, sizeof(*work->symbols));
    work->count = work->cap = count;
    for (uint32_t i = 0; i < count; i++)
        work->symbols[i] = (mt_tok_symbol){.id = ids[i],
                                           .before = i ? i - 1 : MT_MERGE_NONE,
                                           .after = i + 1 < count ? i + 1 : MT_MERGE_NONE,
                                           .merge = {MT_MERGE_NONE, 0}};
}

static void the_heap_merges_like_the_definition(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 2000; round++) {
        mt_tok_merges merges = {0};
        mt_tok_bpe_work work = {0};
        uint32_t ids[64], tokens = 4;
        size_t count = 1 + (size_t)rand() % MT_COUNT(ids), left;

        for (uint32_t rank = 0; rank < 30; rank++, tokens++) {
            uint32_t first = (uint32_t)rand() % tokens, second = (uint32_t)rand() % tokens;

            mt_tok_merges_add(&merges, first, second, (mt_tok_merge){(uint32_t)rand() % 1000 * 64 + rank, tokens});
        }
        for (size_t i = 0; i < count; i++)
            ids[i] = (uint32_t)rand() % 4;
        fill(&work, ids, count);
        mt_tok_bpe_merge(&merges, &work);
        left = merge_slowly(&merges, ids, count);
        for (uint32_t i = 0, at = 0; i < left; i++, at = work.symbols[at].after)
            assert_int_equal(work.symbols[at].id, ids[i]);
        mt_tok_bpe_work_free(&work);
        mt_tok_merges_free(&merges);
    }
}

static void merges_are_found_and_replaced(void **state)
{
    mt_tok_merges merges = {0};

    (void)state;
    assert_int_equal(mt_tok_merges_find(&merges, 1, 2).rank, MT_MERGE_NONE);
    for (uint32_t i = 0; i < 5000; i++)
        mt_tok_merges_add(&merges, i * 7, i, (mt_tok_merge){i, i + 1});
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(mt_tok_merges_find(&merges, i * 7, i).rank, i);
        assert_int_equal(mt_tok_merges_find(&merges, i * 7, i).id, i + 1);
        assert_int_equal(mt_tok_merges_find(&merges, i * 7, i + 1).rank, MT_MERGE_NONE);
    }
    mt_tok_merges_add(&merges, 7, 1, (mt_tok_merge){77, 78});
    assert_int_equal(mt_tok_merges_find(&merges, 7, 1).rank, 77);
    assert_int_equal(merges.count, 5000);
    mt_tok_merges_free(&merges);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_heap_merges_like_the_definition),
    cmocka_unit_test(merges_are_found_and_replaced),
};
UNIT_MAIN(tests)
