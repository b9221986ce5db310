/* What the tree remembers when pages have gone, by which names it knows prompts, and how many it knows. */
#include "unit.h"

#include "cache/seq.h"
#include "cache/tree_inside.h"

#define SEQUENCES 4
static const uint8_t no_salt[32];

static mt_tree *new_tree(size_t pages)
{
    const mt_cache_groups g = {.count = 1};
    return mt_tree_new(&g, &pages, SEQUENCES);
}

/* A prompt of n tokens that nobody else begins with. */
static void begin(mt_seq *s, mt_tree *t, const uint8_t *salt, mt_key name, size_t n)
{
    mt_key keys[400];
    for (size_t i = 0; i < n; i++)
        keys[i] = i ? (mt_key)i : name;
    mt_seq_init(s, mt_tree_groups(t)->count, n);
    mt_seq_prompt(s, keys, n, NULL, 0);
    mt_seq_attach(s, t, salt);
}

static void compute(mt_seq *s)
{
    mt_page_copy copy;
    mt_hit hit;
    mt_seq_resume(s, &copy, &hit);
    assert_true(mt_seq_grow(s, s->known));
    mt_seq_commit(s, s->known - s->done);
}

static void ask(mt_tree *t, const uint8_t *salt, mt_key name, size_t n)
{
    mt_seq s;
    begin(&s, t, salt, name, n);
    compute(&s);
    mt_seq_free(&s);
}

static mt_hit look(mt_tree *t, mt_key name, size_t n)
{
    mt_seq s;
    begin(&s, t, no_salt, name, n);
    const mt_hit hit = mt_seq_look(&s);
    mt_seq_free(&s);
    return hit;
}

/* Nodes of the first `count` pages of a prompt that is computed here. */
static void nodes_of(mt_tree *t, mt_key name, size_t n, mt_node *node[], size_t count)
{
    mt_seq s;
    begin(&s, t, no_salt, name, n);
    compute(&s);
    for (size_t i = 0; i < count; i++) {
        node[i] = mt_tree_child(t, i ? node[i - 1] : s.root, &s.text, i);
        assert_non_null(node[i]);
    }
    mt_seq_free(&s);
}

static void what_is_computed_again_comes_back_to_its_node(void **state)
{
    mt_tree *t = new_tree(4);
    mt_node *before[3], *after[3];
    (void)state;
    nodes_of(t, 1000, 97, before, 3);
    assert_int_equal(mt_tree_nodes(t), 4);
    assert_int_equal(t->gone.count, 0);
    ask(t, no_salt, 2000, 97);
    assert_int_equal(mt_tree_nodes(t), 4);
    assert_int_equal(t->gone.count, 3); /* the beginning of a fourth page is forgotten */
    const mt_hit hit = look(t, 1000, 97);
    assert_int_equal(hit.positions, 0);
    assert_int_equal(hit.miss, MT_MISS_EVICTED);
    nodes_of(t, 1000, 97, after, 3);
    assert_memory_equal(before, after, sizeof(before));
    assert_int_equal(mt_tree_nodes(t), 4);
    assert_int_equal(t->gone.count, 3); /* the other prompt's */
    assert_int_equal(look(t, 1000, 97).positions, 96);
    mt_tree_clear(t);
    assert_int_equal(mt_tree_nodes(t) + t->gone.count, 0);
    assert_int_equal(look(t, 1000, 97).miss, MT_MISS_FIRST_SIGHT);
    mt_tree_free(t);
}

/* Pages go from the end of a prompt, so its beginning is still found; what follows has its reason. */
static void what_is_left_of_a_prompt_is_found(void **state)
{
    mt_tree *t = new_tree(6);
    (void)state;
    ask(t, no_salt, 1000, 160);
    ask(t, no_salt, 2000, 96);
    const mt_hit hit = look(t, 1000, 161);
    assert_int_equal(hit.positions, 96);
    assert_int_equal(hit.miss, MT_MISS_EVICTED);
    mt_tree_free(t);
}

/* From the last prompt to the first: here, then evicted, then forgotten; and no more nodes than there may be. */
static void nodes_are_bounded_and_the_longest_gone_go_first(void **state)
{
    enum { PAGES = 8, PROMPTS = 100, EACH = 2 };
    mt_tree *t = new_tree(PAGES);
    size_t count[MT_MISS_COUNT] = {0};
    mt_miss last = MT_MISS_NONE;
    (void)state;
    for (mt_key i = 0; i < PROMPTS; i++) {
        ask(t, no_salt, 1000 + i, EACH * MT_PAGE_TOKENS);
        assert_true(mt_tree_nodes(t) <= PAGES);
        assert_true(mt_tree_nodes(t) + t->gone.count < MT_TREE_NODES * PAGES + SEQUENCES);
    }
    for (mt_key i = PROMPTS; i-- > 0;) {
        const mt_miss miss = look(t, 1000 + i, EACH * MT_PAGE_TOKENS + 1).miss;
        assert_true(miss == last || (last == MT_MISS_NONE && miss == MT_MISS_EVICTED) ||
                    (last == MT_MISS_EVICTED && miss == MT_MISS_FIRST_SIGHT));
        last = miss;
        count[miss]++;
    }
    assert_int_equal(count[MT_MISS_NONE], PAGES / EACH);
    assert_true(count[MT_MISS_EVICTED] >= (MT_TREE_NODES - 1) * PAGES / EACH);
    assert_true(count[MT_MISS_FIRST_SIGHT] > 0);
    mt_tree_free(t);
}

/* What is being stored in a tier is held page by page, and let go from the first page on, when its sequence may have
   ended long ago: pages go from the end of a prompt all the same, and none of it stays behind. */
static void pages_that_are_held_one_by_one_go_from_the_end(void **state)
{
    enum { PAGES = 8, HELD = 4 };
    mt_tree *t = new_tree(PAGES);
    mt_node *node[HELD];
    uint32_t page[HELD][MT_KV_GROUPS];
    (void)state;
    for (mt_key round = 0; round < 100; round++) {
        const mt_key name = 1000 + 10 * round;
        nodes_of(t, name, HELD * MT_PAGE_TOKENS + 1, node, HELD);
        for (size_t i = 0; i < HELD; i++)
            mt_tree_ref(t, node[i], page[i]);
        for (size_t i = 0; i < HELD - 1; i++) /* the last stays held while those above are idle */
            mt_tree_release(t, 0, page[i][0], false);
        ask(t, no_salt, name + 1, (PAGES - HELD + 1) * MT_PAGE_TOKENS); /* takes one page of them */
        assert_true(mt_tree_nodes(t) <= PAGES);
        if (round % 2)
            mt_tree_clear(t);
        else
            assert_int_equal(look(t, name, HELD * MT_PAGE_TOKENS + 1).positions, 2 * MT_PAGE_TOKENS);
        mt_tree_release(t, 0, page[HELD - 1][0], false);
    }
    mt_tree_clear(t);
    assert_int_equal(mt_tree_nodes(t) + t->gone.count, 0);
    assert_int_equal(mt_tree_available(t, 0), PAGES);
    assert_int_equal(t->pages[0].free, PAGES);
    mt_tree_free(t);
}

static void salt_of(uint8_t salt[32], uint64_t n)
{
    for (size_t i = 0; i < 4; i++) {
        n = n * 6364136223846793005u + 1442695040888963407u;
        const uint64_t word = n ^ n >> 31;
        memcpy(salt + 8 * i, &word, sizeof(word));
    }
}

/* Every request may bring a salt of its own: what there are of them costs the next one nothing. */
static void salts_are_found_by_hash(void **state)
{
    enum { SALTS = 100000 };
    const mt_cache_groups g = {.count = 1};
    mt_tree *t = mt_tree_new(&g, &(size_t){2}, SALTS);
    mt_node **root = test_malloc(SALTS * sizeof(*root));
    uint8_t salt[32];
    (void)state;
    for (size_t i = 0; i < SALTS; i++) {
        salt_of(salt, i);
        root[i] = mt_tree_root(t, salt);
    }
    for (size_t i = 0; i < SALTS; i++) {
        salt_of(salt, i);
        assert_ptr_equal(mt_tree_root(t, salt), root[i]);
        salt[31] ^= 1; /* all of a salt decides */
        mt_node *other = mt_tree_root(t, salt);
        assert_ptr_not_equal(other, root[i]);
        mt_tree_root_release(t, other);
        mt_tree_root_release(t, root[i]);
        mt_tree_root_release(t, root[i]);
    }
    assert_true(t->probes < 8 * SALTS);
    test_free(root);
    mt_tree_free(t);
}

/* Roots of salts that are not used any more go with the last node below them. */
static void roots_are_bounded(void **state)
{
    mt_tree *t = new_tree(8);
    uint8_t salt[32];
    (void)state;
    for (size_t i = 0; i < 2000; i++) {
        salt_of(salt, i);
        ask(t, salt, 1000, MT_PAGE_TOKENS);
        assert_true(2 * (mt_tree_nodes(t) + t->gone.count) <= MT_TREE_NODES * 8 + SEQUENCES);
    }
    mt_tree_clear(t);
    assert_int_equal(mt_tree_nodes(t) + t->gone.count, 0);
    mt_tree_free(t);
}

static uint64_t hash_of(const mt_figure *figure, size_t figures)
{
    mt_key keys[96];
    mt_seq s;
    for (size_t i = 0; i < 96; i++)
        keys[i] = (mt_key)i;
    mt_seq_init(&s, 1, 96);
    mt_seq_prompt(&s, keys, 96, figure, figures);
    const uint64_t hash = s.text.hash[2];
    mt_seq_free(&s);
    return hash;
}

/* The name of a prompt is made of its tokens and the digests of its pictures: another process, and one that has seen
   other pictures before, calls it the same. */
static void names_depend_on_content_alone(void **state)
{
    const mt_figure figures[] = {{.first = 20, .count = 30, .digest = {1, 2, 3}}, {.first = 50, .count = 4}};
    mt_figure other = figures[0];
    (void)state;
    assert_int_equal(hash_of(figures, 2), 0x59678139f68c5f24);
    for (uint8_t i = 0; i < 100; i++) {
        other.digest[0] = 2 + i;
        assert_true(hash_of(&other, 1) != hash_of(figures, 1));
    }
    assert_int_equal(hash_of(figures, 2), 0x59678139f68c5f24);
    assert_true(hash_of(NULL, 0) != hash_of(figures, 1) && hash_of(figures, 1) != hash_of(figures, 2));
}

/* Positions that two texts have in common, in a page where pictures stand. */
static void pictures_are_told_apart_within_a_page(void **state)
{
    static const struct {
        mt_figure a[2], b[2];
        size_t figures_a, figures_b, common;
    } cases[] = {
        {{{.first = 4, .count = 8, .digest = {1}}}, {{.first = 4, .count = 8, .digest = {1}}}, 1, 1, 32},
        {{{.first = 4, .count = 8, .digest = {1}}}, {{.first = 4, .count = 8, .digest = {[31] = 1}}}, 1, 1, 4},
        {{{.first = 4, .count = 8, .digest = {1}}}, {{0}}, 1, 0, 4}, /* the tokens as such */
        {{{.first = 4, .count = 8, .digest = {1}}}, {{.first = 4, .count = 9, .digest = {1}}}, 1, 1, 12},
        {{{.first = 4, .count = 8, .digest = {1}}},
         {{.first = 4, .count = 3, .digest = {1}}, {.first = 7, .count = 5, .digest = {1}}},
         1,
         2,
         7}, /* the same picture begins again */
        {{{.first = 4, .count = 4, .digest = {1}}, {.first = 8, .count = 4, .digest = {2}}},
         {{.first = 4, .count = 4, .digest = {1}}, {.first = 8, .count = 4, .digest = {3}}},
         2,
         2,
         8},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_seq a, b;
        const uint32_t tokens[40] = {0};
        mt_seq_init(&a, 1, 40);
        mt_seq_init(&b, 1, 40);
        mt_seq_prompt(&a, tokens, 40, cases[i].a, cases[i].figures_a);
        mt_seq_prompt(&b, tokens, 40, cases[i].b, cases[i].figures_b);
        const mt_page_text in_a = mt_text_page(&a.text, 0), in_b = mt_text_page(&b.text, 0);
        assert_int_equal(mt_page_text_common(&in_a, &in_b, 32), cases[i].common);
        assert_int_equal(mt_page_text_common(&in_b, &in_a, 32), cases[i].common);
        assert_int_equal(mt_page_text_common(&in_a, &in_b, 3), 3);
        mt_seq_free(&a);
        mt_seq_free(&b);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_computed_again_comes_back_to_its_node),
    cmocka_unit_test(what_is_left_of_a_prompt_is_found),
    cmocka_unit_test(nodes_are_bounded_and_the_longest_gone_go_first),
    cmocka_unit_test(pages_that_are_held_one_by_one_go_from_the_end),
    cmocka_unit_test(salts_are_found_by_hash),
    cmocka_unit_test(roots_are_bounded),
    cmocka_unit_test(names_depend_on_content_alone),
    cmocka_unit_test(pictures_are_told_apart_within_a_page),
};

UNIT_MAIN(tests)
