/* Sequences over the prefix tree, against a model in which every position of every sequence is written down: what a
   sequence is told it has must be what was computed for exactly its tokens. */
#include "unit.h"

#include "base/alloc.h"
#include "cache/seq.h"
#include "cache/tree_inside.h"

#define PAGES 80
#define WINDOW_PAGES 34 /* windows have fewer pages than the first group, as in use */
#define LIMIT 1000
#define SLOTS 12
#define SPARE 3
static const uint8_t no_salt[32];

/* What a page's positions were computed for: the hash of all keys up to there. */
typedef struct memory {
    uint64_t written[2][PAGES][MT_PAGE_TOKENS];
    uint64_t state[SLOTS + SPARE]; /* the story of the last position behind it */
} memory;

/* Which picture stands there; 0: none. Digests of pictures differ in their last byte alone. */
static uint64_t shown_at(const mt_seq *s, size_t p)
{
    for (size_t i = 0; i < s->text.figures; i++) {
        const mt_figure *f = &s->text.figure[i];
        if (p >= f->first && p < f->first + f->count)
            return f->digest[31];
    }
    return 0;
}

/* story[p]: of what stands at positions 0 to p. */
static const uint64_t *stories(const mt_seq *s)
{
    static uint64_t story[LIMIT];
    for (size_t p = 0; p < s->known; p++) {
        const uint64_t here = shown_at(s, p) << 32 | mt_key_token(s->text.key[p]);
        story[p] = ((p ? story[p - 1] : 1) ^ here) * 6364136223846793005u;
        story[p] ^= story[p] >> 29;
    }
    return story;
}

static bool has_states(const mt_seq *s)
{
    return mt_tree_groups(s->tree)->states > 0;
}

/* Takes the state through the pieces of the next rows, as a step would. */
static void run_state(mt_seq *s, memory *m, size_t rows, const uint64_t *story)
{
    mt_span span;
    size_t end = s->done;
    mt_seq_cut(s, rows, 0, &span);
    assert_true(span.state == MT_NO_PAGE ? s->done == 0 : m->state[span.state] == story[s->done - 1]);
    for (size_t i = 0; i < span.pieces; i++) {
        end += span.piece[i].rows;
        assert_true(span.piece[i].rows > 0 && span.piece[i].slot < SLOTS + SPARE);
        m->state[span.piece[i].slot] = story[end - 1];
    }
    assert_int_equal(end, s->done + rows);
}

static void write_pages(mt_seq *s, memory *m, size_t rows, const uint64_t *story)
{
    for (size_t p = s->done; p < s->done + rows; p++)
        for (size_t g = 0; g < s->groups; g++)
            m->written[g][s->page[g][p / MT_PAGE_TOKENS]][p % MT_PAGE_TOKENS] = story[p];
}

/* Writes positions [done, done + rows) as a step would. */
static void run_step(mt_seq *s, memory *m, size_t rows)
{
    const uint64_t *story = stories(s);
    if (has_states(s))
        run_state(s, m, rows, story);
    write_pages(s, m, rows, story);
}

static void compute(mt_seq *s, memory *m, size_t rows)
{
    run_step(s, m, rows);
    mt_seq_commit(s, rows);
}

static void copy_page(memory *m, const mt_page_copy *copy, size_t groups)
{
    for (size_t g = 0; copy->needed && g < groups; g++)
        if (copy->to[g] != MT_NO_PAGE && copy->from[g] != MT_NO_PAGE)
            memcpy(m->written[g][copy->to[g]], m->written[g][copy->from[g]], sizeof(m->written[g][0]));
}

/* Everything the next row would read is there, and is this sequence's own story. */
static void expect_sound(const mt_seq *s, const memory *m)
{
    const uint64_t *story = stories(s);
    if (has_states(s) && s->done > 0)
        assert_true(s->state.slot != MT_NO_PAGE && m->state[s->state.slot] == story[s->done - 1]);
    assert_true(!s->state.borrowed || s->state.pieces > 0); /* a spare slot is only for a row that is begun ahead */
    for (size_t g = 0; g < s->groups; g++) {
        const uint32_t window = mt_tree_groups(s->tree)->window[g];
        for (size_t p = g == 0 ? 0 : mt_window_begin(s->done, window); p < s->done; p++) {
            const uint32_t page = s->page[g][p / MT_PAGE_TOKENS];
            assert_int_not_equal(page, MT_NO_PAGE);
            assert_true(m->written[g][page][p % MT_PAGE_TOKENS] == story[p]);
        }
    }
}

static mt_tree *new_tree_with(size_t pages, size_t window_pages)
{
    const mt_cache_groups g = {.count = 2, .window = {0, 40}};
    const size_t all[MT_KV_GROUPS] = {pages, window_pages};
    return mt_tree_new(&g, all, 16);
}

static mt_tree *new_tree_for_ahead(size_t pages, size_t states, size_t spare)
{
    const mt_cache_groups g = {.count = 1, .states = states, .spare = spare};
    return mt_tree_new(&g, &pages, 16);
}

static mt_tree *new_tree_of(size_t pages, size_t states)
{
    return new_tree_for_ahead(pages, states, 0);
}

static mt_tree *new_tree(size_t pages)
{
    return new_tree_of(pages, 0);
}

/* Also shows pictures, where `figures` says. */
static void begin_shown(mt_seq *s, mt_tree *t, const uint8_t *salt, const mt_key *keys, size_t count,
                        const mt_figure *figure, size_t figures, const uint32_t *cuts, size_t cut_count)
{
    mt_seq_init(s, mt_tree_groups(t)->count, LIMIT);
    mt_seq_prompt(s, keys, count, figure, figures);
    s->cuts = cuts;
    s->cut_count = cut_count;
    mt_seq_attach(s, t, salt);
}

static void begin(mt_seq *s, mt_tree *t, const uint8_t *salt, const mt_key *keys, size_t count, const uint32_t *cuts,
                  size_t cut_count)
{
    begin_shown(s, t, salt, keys, count, NULL, 0, cuts, cut_count);
}

static size_t resume(mt_seq *s, memory *m, mt_miss *miss)
{
    mt_page_copy copy;
    mt_hit hit;
    mt_seq_resume(s, &copy, &hit);
    copy_page(m, &copy, s->groups);
    expect_sound(s, m);
    assert_int_equal(s->done, hit.positions);
    if (miss)
        *miss = hit.miss;
    return s->done;
}

static void finish_prompt(mt_seq *s, memory *m)
{
    assert_true(mt_seq_grow(s, s->known));
    compute(s, m, s->known - s->done);
    expect_sound(s, m);
}

static void second_sight_has_all_but_the_last(void **state)
{
    static memory m;
    mt_tree *t = new_tree(PAGES);
    mt_key keys[200];
    (void)state;
    for (size_t i = 0; i < 200; i++)
        keys[i] = (mt_key)i * 7 + 1;
    for (size_t n = 1; n <= 200; n += 13) {
        mt_seq s;
        begin(&s, t, no_salt, keys, n, NULL, 0);
        resume(&s, &m, NULL);
        finish_prompt(&s, &m);
        mt_seq_free(&s);
        begin(&s, t, no_salt, keys, n, NULL, 0);
        assert_int_equal(resume(&s, &m, NULL), n - 1);
        mt_seq_free(&s);
        assert_int_equal(mt_tree_available(t, 0), PAGES);
    }
    mt_tree_free(t);
}

static void misses_have_their_reasons(void **state)
{
    static memory m;
    mt_tree *t = new_tree(5);
    mt_key keys[100], other[100];
    uint8_t salt[32] = {1};
    mt_seq s;
    mt_miss miss;
    (void)state;
    for (size_t i = 0; i < 100; i++)
        keys[i] = other[i] = (mt_key)i;
    begin(&s, t, no_salt, keys, 100, NULL, 0);
    assert_int_equal(resume(&s, &m, &miss), 0);
    assert_int_equal(miss, MT_MISS_FIRST_SIGHT);
    finish_prompt(&s, &m);
    mt_seq_free(&s);

    begin(&s, t, salt, keys, 100, NULL, 0);
    assert_int_equal(resume(&s, &m, &miss), 0);
    assert_int_equal(miss, MT_MISS_SALT);
    mt_seq_free(&s);

    const mt_figure figure = {.first = 40, .count = 1, .digest = {3}};
    begin_shown(&s, t, no_salt, other, 100, &figure, 1, NULL, 0); /* the same token stands for a picture */
    assert_int_equal(resume(&s, &m, &miss), 40);
    assert_int_equal(miss, MT_MISS_MEDIA);
    mt_seq_free(&s);

    begin(&s, t, no_salt, keys, 99, NULL, 0);
    assert_int_equal(resume(&s, &m, &miss), 98);
    assert_int_equal(miss, MT_MISS_NONE);
    mt_seq_free(&s);

    other[0] = 77; /* fills the pool, so that the first goes */
    begin(&s, t, no_salt, other, 100, NULL, 0);
    resume(&s, &m, NULL);
    finish_prompt(&s, &m);
    mt_seq_free(&s);
    other[0] = 78;
    begin(&s, t, no_salt, other, 100, NULL, 0);
    resume(&s, &m, NULL);
    finish_prompt(&s, &m);
    mt_seq_free(&s);
    begin(&s, t, no_salt, keys, 100, NULL, 0);
    assert_int_equal(resume(&s, &m, &miss), 0);
    assert_int_equal(miss, MT_MISS_EVICTED);
    mt_seq_free(&s);
    mt_tree_free(t);
}

/* Found up to the picture only, and all of it by the same picture. All bytes of a digest decide: those of the two
   pictures hash alike. */
static void positions_of_a_picture_are_its_own(void **state)
{
    static memory m;
    mt_tree *t = new_tree(12);
    mt_key keys[100];
    mt_seq s;
    mt_miss miss;
    (void)state;
    for (size_t i = 0; i < 100; i++)
        keys[i] = (mt_key)i;
    for (uint8_t medium = 1; medium <= 3; medium++)
        for (size_t again = 0; again < 2; again++) {
            const mt_figure figures[] = {{.first = 37, .count = 9, .digest = {[31] = medium == 3 ? 2 : medium}},
                                         {.first = 70, .count = 20, .digest = {[31] = medium + 1}}};
            begin_shown(&s, t, no_salt, keys, 100, figures, 2, NULL, 0);
            assert_int_equal(resume(&s, &m, &miss), again ? 99 : medium == 1 ? 0 : medium == 2 ? 37 : 70);
            assert_int_equal(miss, again ? MT_MISS_NONE : medium == 1 ? MT_MISS_FIRST_SIGHT : MT_MISS_MEDIA);
            finish_prompt(&s, &m);
            mt_seq_free(&s);
        }
    mt_tree_free(t);
}

static void salts_never_share(void **state)
{
    static memory m;
    mt_tree *t = new_tree(PAGES);
    mt_key keys[64];
    (void)state;
    for (size_t i = 0; i < 64; i++)
        keys[i] = (mt_key)i;
    for (uint8_t tenant = 1; tenant < 8; tenant++) {
        const uint8_t salt[32] = {tenant};
        mt_seq s;
        begin(&s, t, salt, keys, 64, NULL, 0);
        assert_int_equal(resume(&s, &m, NULL), 0);
        finish_prompt(&s, &m);
        mt_seq_free(&s);
    }
    mt_tree_free(t);
}

/* Two that compute the same prompt side by side end up with one copy of it. */
static void the_same_page_is_kept_once(void **state)
{
    static memory m;
    mt_tree *t = new_tree(PAGES);
    mt_key keys[96];
    mt_seq a, b;
    (void)state;
    for (size_t i = 0; i < 96; i++)
        keys[i] = (mt_key)i;
    begin(&a, t, no_salt, keys, 96, NULL, 0);
    begin(&b, t, no_salt, keys, 96, NULL, 0);
    resume(&a, &m, NULL);
    resume(&b, &m, NULL);
    finish_prompt(&a, &m);
    finish_prompt(&b, &m);
    assert_int_equal(mt_tree_nodes(t), 3);
    assert_int_equal(mt_tree_available(t, 0), PAGES - 3);
    mt_seq_free(&a);
    mt_seq_free(&b);
    mt_tree_clear(t);
    assert_int_equal(mt_tree_nodes(t), 0);
    mt_tree_free(t);
}

static void one_that_is_behind_takes_what_another_has_computed(void **state)
{
    static memory m;
    mt_tree *t = new_tree(PAGES);
    mt_key keys[160];
    mt_seq a, b;
    (void)state;
    for (size_t i = 0; i < 160; i++)
        keys[i] = (mt_key)i;
    begin(&a, t, no_salt, keys, 160, NULL, 0);
    begin(&b, t, no_salt, keys, 150, NULL, 0);
    resume(&a, &m, NULL);
    resume(&b, &m, NULL);
    assert_true(mt_seq_grow(&b, 64));
    compute(&b, &m, 32);
    finish_prompt(&a, &m);
    assert_int_equal(mt_seq_advance(&b), 96);
    expect_sound(&b, &m);
    finish_prompt(&b, &m);
    mt_seq_free(&a);
    mt_seq_free(&b);
    assert_int_equal(mt_tree_available(t, 0), PAGES);
    mt_tree_free(t);
}

static void prompt_of(mt_seq *s, mt_tree *t, size_t n, size_t apart, const uint32_t *cuts, size_t cut_count)
{
    mt_key keys[LIMIT];
    for (size_t i = 0; i < n; i++)
        keys[i] = (mt_key)(i < apart ? i : i + 1000 * apart);
    begin(s, t, no_salt, keys, n, cuts, cut_count);
}

/* A sequence computes a prompt that is another's up to `apart`; returns what it found of it. */
static size_t ask(mt_tree *t, memory *m, size_t n, size_t apart, const uint32_t *cuts, size_t cut_count, mt_miss *miss)
{
    mt_seq s;
    prompt_of(&s, t, n, apart, cuts, cut_count);
    const size_t found = resume(&s, m, miss);
    finish_prompt(&s, m);
    mt_seq_free(&s);
    return found;
}

/* A page at a time, as a prompt that does not fit into one step. */
static size_t ask_in_chunks(mt_tree *t, memory *m, size_t n, size_t apart, const uint32_t *cuts, size_t cut_count,
                            mt_miss *miss)
{
    mt_seq s;
    prompt_of(&s, t, n, apart, cuts, cut_count);
    const size_t found = resume(&s, m, miss);
    while (s.done < s.known) {
        const size_t left = s.known - s.done, rows = left < MT_PAGE_TOKENS ? left : MT_PAGE_TOKENS;
        assert_true(mt_seq_grow(&s, s.done + rows));
        compute(&s, m, rows);
        expect_sound(&s, m);
    }
    mt_seq_free(&s);
    return found;
}

/* Others have used the window's pages meanwhile, but not those before the cut: they go when all that is older has. */
static void windows_before_a_cut_are_kept(void **state)
{
    static memory m;
    static const uint32_t cuts[] = {200};
    mt_tree *t = new_tree_with(PAGES, 24);
    (void)state;
    ask_in_chunks(t, &m, 600, 1, NULL, 0, NULL);
    ask_in_chunks(t, &m, 600, 600, cuts, 1, NULL);
    ask_in_chunks(t, &m, 600, 2, NULL, 0, NULL);
    assert_int_equal(ask_in_chunks(t, &m, 250, 200, cuts, 1, NULL), 200);
    mt_tree_free(t);
}

/* All tokens are known, but the window's pages there have gone to others. */
static void a_window_that_is_gone_is_not_found(void **state)
{
    static memory m;
    mt_tree *t = new_tree_with(PAGES, 14);
    mt_miss miss;
    (void)state;
    assert_int_equal(ask_in_chunks(t, &m, 900, 900, NULL, 0, NULL), 0);
    assert_true(ask_in_chunks(t, &m, 400, 300, NULL, 0, &miss) < 256);
    assert_int_equal(miss, MT_MISS_WINDOW);
    mt_tree_free(t);
}

/* Who has computed a page takes over what another has computed behind it, as far as its window is there. */
static void who_is_behind_takes_no_page_without_its_window(void **state)
{
    static memory m;
    mt_tree *t = new_tree_with(PAGES, 16);
    mt_seq behind;
    (void)state;
    prompt_of(&behind, t, 400, 400, NULL, 0);
    resume(&behind, &m, NULL);
    assert_true(mt_seq_grow(&behind, 32));
    compute(&behind, &m, 32);
    assert_int_equal(ask_in_chunks(t, &m, 900, 900, NULL, 0, NULL), 32);
    mt_seq_advance(&behind);
    expect_sound(&behind, &m);
    mt_seq_free(&behind);
    mt_tree_free(t);
}

static void prompt_from(mt_seq *s, mt_tree *t, mt_key first, size_t n)
{
    mt_key keys[LIMIT];
    for (size_t i = 0; i < n; i++)
        keys[i] = first + (mt_key)i;
    begin(s, t, no_salt, keys, n, NULL, 0);
}

/* Three prompts of two pages, and room for two of them: who was used last stays, be it that somebody only looked. */
static void who_was_used_last_stays(void **state)
{
    static memory m;
    (void)state;
    for (int looks = 0; looks < 2; looks++) {
        mt_tree *t = new_tree(4);
        mt_seq s;
        for (mt_key first = 100; first <= 300; first += 100) {
            if (first == 300) {
                prompt_from(&s, t, 100, 65);
                assert_int_equal(looks ? mt_seq_look(&s).positions : resume(&s, &m, NULL), 64);
                mt_seq_free(&s);
            }
            prompt_from(&s, t, first, 64);
            resume(&s, &m, NULL);
            finish_prompt(&s, &m);
            mt_seq_free(&s);
        }
        prompt_from(&s, t, 100, 65);
        assert_int_equal(mt_seq_look(&s).positions, 64);
        mt_seq_free(&s);
        prompt_from(&s, t, 200, 65);
        assert_int_equal(mt_seq_look(&s).positions, 0);
        mt_seq_free(&s);
        mt_tree_free(t);
    }
}

static void a_lookup_ends_where_a_state_is_kept(void **state)
{
    static memory m;
    static const uint32_t cuts[] = {40, 70};
    mt_tree *t = new_tree_of(PAGES, SLOTS);
    mt_miss miss;
    (void)state;
    assert_int_equal(ask(t, &m, 100, 100, cuts, 2, NULL), 0);
    assert_int_equal(ask(t, &m, 100, 100, cuts, 2, &miss), 99);
    assert_int_equal(miss, MT_MISS_NONE);
    assert_int_equal(ask(t, &m, 140, 100, cuts, 2, NULL), 100); /* where the first one ended */
    assert_int_equal(ask(t, &m, 100, 75, cuts, 2, NULL), 70);
    assert_int_equal(ask(t, &m, 100, 45, cuts, 2, NULL), 40);
    assert_int_equal(ask(t, &m, 100, 39, cuts, 2, &miss), 0);
    assert_int_equal(miss, MT_MISS_STATE);
    assert_int_equal(mt_anchors_held(mt_tree_anchors(t)), 0);
    mt_tree_clear(t);
    assert_int_equal(mt_tree_anchors(t)->count, 0);
    mt_tree_free(t);
}

/* Where two prompts were seen to part, a third one finds a state. */
static void where_prompts_part_is_learned(void **state)
{
    static memory m;
    mt_tree *t = new_tree_of(PAGES, SLOTS);
    (void)state;
    assert_int_equal(ask(t, &m, 400, 400, NULL, 0, NULL), 0);
    assert_int_equal(ask(t, &m, 400, 301, NULL, 0, NULL), 0);
    mt_seq s;
    prompt_of(&s, t, 400, 301, NULL, 0);
    s.text.key[301] = 5;
    assert_int_equal(resume(&s, &m, NULL), 301);
    mt_seq_free(&s);
    mt_tree_free(t);
}

/* A long prompt without turns has a few places in it to continue from; many turns have no more than a few. */
static void stops_are_few(void **state)
{
    mt_tree *t = new_tree_of(PAGES, SLOTS);
    uint32_t cuts[200];
    mt_seq s;
    (void)state;
    for (size_t i = 0; i < 200; i++)
        cuts[i] = (uint32_t)(4 * i + 4);
    prompt_of(&s, t, 999, 999, NULL, 0);
    assert_int_equal(s.state.stops, 1); /* the end: nothing is far enough from it */
    mt_seq_free(&s);
    prompt_of(&s, t, 999, 999, cuts, 200);
    assert_int_equal(s.state.stops, 5); /* the first turn's end, one in the middle, two last ones, the end */
    mt_seq_free(&s);
    mt_tree_free(t);
}

/* With as few slots as a step needs, nothing is kept, and nothing is wrong. */
static void two_slots_are_enough_to_go_on(void **state)
{
    static memory m;
    static const uint32_t cuts[] = {40, 70};
    mt_tree *t = new_tree_of(PAGES, 2);
    (void)state;
    for (size_t i = 0; i < 5; i++)
        ask(t, &m, 100, 60 + i, cuts, 2, NULL);
    mt_seq a, b;
    prompt_of(&a, t, 100, 100, cuts, 2);
    prompt_of(&b, t, 100, 50, cuts, 2);
    resume(&a, &m, NULL);
    finish_prompt(&a, &m);
    resume(&b, &m, NULL);
    assert_false(mt_seq_grow(&b, 100)); /* one slot is a's, the other what b continues from */
    mt_seq_suspend(&a);
    assert_true(mt_seq_grow(&b, 100));
    finish_prompt(&b, &m);
    mt_seq_free(&a);
    mt_seq_free(&b);
    assert_int_equal(mt_anchors_held(mt_tree_anchors(t)), 0);
    mt_tree_free(t);
}

typedef struct random {
    uint64_t state;
} random_t;

static size_t below(random_t *r, size_t n)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(r->state >> 33) % n;
}

/* Ends of whole pages that were computed, by their stories, for each salt. */
typedef struct chronicle {
    uint64_t story[8192];
    size_t count;
} chronicle;

static bool was_computed(const chronicle *c, uint64_t story)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->story[i] == story)
            return true;
    return false;
}

static void write_down(chronicle *c, const mt_seq *s)
{
    const uint64_t *story = stories(s);
    for (size_t end = MT_PAGE_TOKENS; end <= s->done; end += MT_PAGE_TOKENS)
        if (!was_computed(c, story[end - 1])) {
            assert_true(c->count < MT_COUNT(c->story));
            c->story[c->count++] = story[end - 1];
        }
}

/* A page that was computed and is not here was evicted, as long as there are nodes enough to remember it. */
static void expect_reason(const chronicle *c, const mt_seq *s, mt_miss miss, bool all_remembered)
{
    const size_t end = (s->done / MT_PAGE_TOKENS + 1) * MT_PAGE_TOKENS;
    const bool computed = end < s->known && was_computed(c, stories(s)[end - 1]);
    assert_true(miss != MT_MISS_EVICTED || computed);
    assert_true(miss == MT_MISS_EVICTED || !computed || !all_remembered);
}

/* Enqueues a row behind the step under way. What it writes depends on a token that nobody knows yet. */
static bool follow(mt_seq *s, memory *m, size_t rows)
{
    mt_span span = {0};
    if (!mt_seq_grow(s, s->done + rows + 1) || !mt_seq_follow(s, &span))
        return false;
    assert_int_equal(span.state, s->state.next);
    assert_true(span.pieces == 1 && span.piece->rows == 1 && span.piece->slot != span.state);
    m->state[span.piece->slot] = 0;
    return true;
}

/* The rest of what is known, and then tokens whose rows are begun before the token before them is known, until no more
   can be or it ends. Returns how many were. */
static size_t compute_ahead(mt_seq *s, memory *m, random_t *r)
{
    size_t rows = s->known - s->done, ahead = 0;
    run_step(s, m, rows);
    for (;; rows = 1, ahead++) {
        bool follows = s->known < 900 && follow(s, m, rows);
        if (follows && below(r, 15) == 0) {
            mt_seq_unfollow(s);
            follows = false;
        }
        if (below(r, 40) == 0) { /* numbers that are not finite */
            mt_seq_spoil(s);
            mt_seq_free(s);
            return ahead;
        }
        mt_seq_commit(s, rows);
        expect_sound(s, m);
        if (!follows)
            return ahead;
        if (below(r, 10) == 0) {
            (below(r, 2) ? mt_seq_free : mt_seq_suspend)(s);
            return ahead;
        }
        if (below(r, 10) == 0)
            mt_seq_stop_at(s, s->done + below(r, 3));
        mt_seq_add(s, below(r, 30) ? 5 : 6);
        write_pages(s, m, 1, stories(s));
        m->state[s->state.next] = stories(s)[s->done];
    }
}

/* Random lives of a few sequences over a small alphabet, so that they meet often, in a pool that is often dry. */
static size_t live(mt_tree *t, uint64_t seed, size_t *ahead)
{
    enum { SEQUENCES = 5, SALTS = 2 };
    static memory m;
    static chronicle known[SALTS];
    random_t r = {seed};
    mt_seq s[SEQUENCES] = {0};
    mt_figure figures[SEQUENCES][2];
    uint32_t cuts[SEQUENCES][2];
    size_t hits = 0, of[SEQUENCES];
    const size_t groups = mt_tree_groups(t)->count, states = mt_tree_groups(t)->states;
    known[0].count = known[1].count = 0;
    for (int round = 0; round < 5000; round++) {
        const size_t i = below(&r, SEQUENCES);
        if (!s[i].tree) {
            mt_key keys[LIMIT];
            mt_miss miss;
            const size_t n = 1 + below(&r, 700);
            const mt_key base = (mt_key)below(&r, 2);
            for (size_t k = 0; k < n; k++)
                keys[k] = k < 300 ? base : k % 150 == 0 ? (mt_key)below(&r, 2) : 5;
            cuts[i][0] = (uint32_t)below(&r, 500);
            cuts[i][1] = cuts[i][0] + 1 + (uint32_t)below(&r, 300);
            of[i] = below(&r, SALTS);
            for (size_t k = 0; k < 2; k++)
                figures[i][k] = (mt_figure){
                    .first = 315 + 20 * (uint32_t)k, .count = 20, .digest = {[31] = 1 + (uint8_t)below(&r, 2)}};
            begin_shown(&s[i], t, (const uint8_t[32]){(uint8_t)of[i]}, keys, n, figures[i], n > 400 ? 2 : 0, cuts[i],
                        2);
            hits += resume(&s[i], &m, &miss) > 300;
            if (groups == 1 && !states)
                expect_reason(&known[of[i]], &s[i], miss,
                              known[0].count + known[1].count + PAGES + SALTS <= MT_TREE_NODES * PAGES);
        } else if (s[i].done < s[i].known) {
            if (s[i].pages == 0)
                resume(&s[i], &m, NULL);
            mt_seq_advance(&s[i]);
            expect_sound(&s[i], &m);
            const size_t left = s[i].known - s[i].done, rows = 1 + below(&r, left);
            if (states && below(&r, 10) == 0) /* another finds out what they have in common */
                mt_seq_stop_at(&s[i], below(&r, 800));
            if (mt_seq_grow(&s[i], s[i].done + rows) && states && below(&r, 30) == 0) {
                run_state(&s[i], &m, rows, stories(&s[i]));
                mt_seq_spoil(&s[i]);
                mt_seq_free(&s[i]);
                continue;
            }
            if (!mt_seq_grow(&s[i], s[i].done + rows))
                mt_seq_suspend(&s[i]);
            else if (ahead && rows == left)
                *ahead += compute_ahead(&s[i], &m, &r);
            else
                compute(&s[i], &m, rows);
            if (!s[i].tree)
                continue;
            expect_sound(&s[i], &m);
            write_down(&known[of[i]], &s[i]);
        } else if (s[i].known < 900 && below(&r, 12)) {
            mt_seq_add(&s[i], below(&r, 30) ? 5 : 6);
        } else {
            mt_seq_free(&s[i]);
        }
        assert_true(mt_tree_nodes(t) + t->gone.count <= MT_TREE_NODES * mt_tree_total(t, 0) + 16);
    }
    for (size_t i = 0; i < SEQUENCES; i++)
        mt_seq_free(&s[i]);
    for (size_t g = 0; g < groups; g++)
        assert_int_equal(mt_tree_available(t, g), mt_tree_total(t, g));
    assert_int_equal(mt_anchors_held(mt_tree_anchors(t)) + mt_tree_anchors(t)->lent, 0);
    mt_tree_clear(t);
    assert_int_equal(mt_tree_anchors(t)->slots.free, mt_tree_anchors(t)->slots.total);
    assert_int_equal(mt_tree_nodes(t) + t->gone.count, 0);
    mt_tree_free(t);
    return hits;
}

/* Of so many seeds, under the sanitizers a quarter. */
static uint64_t seeds(uint64_t count)
{
    return unit_quick() ? (count + 3) / 4 : count;
}

static void random_lives_are_sound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= seeds(10); seed++)
        assert_true(live(new_tree(PAGES), seed, NULL) > 5);
}

static void random_lives_with_windows_are_sound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= seeds(10); seed++)
        assert_true(live(new_tree_with(seed % 3 ? PAGES : WINDOW_PAGES, seed % 3 ? WINDOW_PAGES : PAGES), seed, NULL) >
                    1);
}

static void random_lives_with_states_are_sound(void **state)
{
    size_t hits = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= seeds(20); seed++)
        hits += live(new_tree_of(PAGES, seed % 2 ? SLOTS : 6), seed, NULL);
    assert_true(hits > seeds(20));
}

/* With few spare slots, and with enough. */
static void random_lives_that_go_ahead_are_sound(void **state)
{
    size_t hits = 0, ahead[3] = {0};
    (void)state;
    for (uint64_t seed = 1; seed <= seeds(20); seed++)
        hits += live(new_tree_for_ahead(PAGES, seed % 2 ? SLOTS : 6, seed % 3 ? SPARE : 1), seed, &ahead[seed % 3]);
    assert_true(hits > seeds(20) && ahead[0] > 100 && ahead[1] > 100 && ahead[2] > 100);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(second_sight_has_all_but_the_last),
    cmocka_unit_test(misses_have_their_reasons),
    cmocka_unit_test(positions_of_a_picture_are_its_own),
    cmocka_unit_test(salts_never_share),
    cmocka_unit_test(the_same_page_is_kept_once),
    cmocka_unit_test(one_that_is_behind_takes_what_another_has_computed),
    cmocka_unit_test(random_lives_are_sound),
    cmocka_unit_test(random_lives_with_windows_are_sound),
    cmocka_unit_test(windows_before_a_cut_are_kept),
    cmocka_unit_test(a_window_that_is_gone_is_not_found),
    cmocka_unit_test(who_is_behind_takes_no_page_without_its_window),
    cmocka_unit_test(who_was_used_last_stays),
    cmocka_unit_test(a_lookup_ends_where_a_state_is_kept),
    cmocka_unit_test(where_prompts_part_is_learned),
    cmocka_unit_test(stops_are_few),
    cmocka_unit_test(two_slots_are_enough_to_go_on),
    cmocka_unit_test(random_lives_with_states_are_sound),
    cmocka_unit_test(random_lives_that_go_ahead_are_sound),
};

UNIT_MAIN(tests)
