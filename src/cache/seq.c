/* A sequence's page tables (seq.h). A sequence writes only pages that it took itself, from the front; pages that it got
   from the tree it only reads. seq->node is the node of the page that contains position done - 1. The recurrent state
   is in seq_state.c. */
#include "cache/seq.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/seq_state.h"

static size_t pages_for(size_t positions)
{
    return (positions + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS;
}

void mt_seq_init(mt_seq *seq, size_t groups, size_t limit)
{
    *seq = (mt_seq){
        .groups = groups, .limit = limit, .state = {.slot = MT_NO_PAGE, .next = MT_NO_PAGE, .after.slot = MT_NO_PAGE}};
    seq->text.key = mt_alloc_array(limit, sizeof(*seq->text.key));
    seq->text.hash = mt_alloc_array(pages_for(limit), sizeof(*seq->text.hash));
    for (size_t g = 0; g < groups; g++)
        seq->page[g] = mt_alloc_array(pages_for(limit), sizeof(*seq->page[g]));
}

static bool has_state(const mt_seq *seq)
{
    return mt_tree_groups(seq->tree)->states > 0;
}

void mt_seq_attach(mt_seq *seq, mt_tree *tree, const uint8_t salt[32])
{
    seq->tree = tree;
    seq->root = seq->node = mt_tree_root(tree, salt);
    if (has_state(seq))
        mt_seq_state_plan(seq);
}

void mt_seq_free(mt_seq *seq)
{
    if (seq->tree) {
        mt_seq_suspend(seq);
        mt_tree_root_release(seq->tree, seq->root);
    }
    for (size_t g = 0; g < seq->groups; g++)
        mt_free(seq->page[g]);
    mt_free(seq->text.key);
    mt_free(seq->text.hash);
    memset(seq, 0, sizeof(*seq));
}

void mt_seq_prompt(mt_seq *seq, const uint32_t *tokens, size_t count, const mt_figure *figure, size_t figures)
{
    assert(seq->known == 0 && count <= seq->limit);
    memcpy(seq->text.key, tokens, count * sizeof(*tokens));
    seq->text.figure = figure;
    seq->text.figures = figures;
    for (size_t i = 0; i < figures; i++)
        for (size_t at = figure[i].first; at < figure[i].first + (size_t)figure[i].count; at++)
            seq->text.key[at] |= MT_KEY_MEDIUM;
    for (size_t page = 0; page < count / MT_PAGE_TOKENS; page++)
        mt_text_hash(&seq->text, page);
    seq->known = count;
}

void mt_seq_add(mt_seq *seq, uint32_t token)
{
    assert(seq->known < seq->limit);
    seq->text.key[seq->known++] = token;
    if (seq->known % MT_PAGE_TOKENS == 0)
        mt_text_hash(&seq->text, seq->known / MT_PAGE_TOKENS - 1);
}

/* The last known position is always computed: its logits are needed. */
static size_t reusable(const mt_seq *seq)
{
    return seq->known ? seq->known - 1 : 0;
}

mt_hit mt_seq_look(mt_seq *seq)
{
    return mt_tree_find(seq->tree, seq->root, &seq->text, reusable(seq));
}

/* Takes the node's pages as entry `at` of the page tables. */
static void hold(mt_seq *seq, size_t at, mt_node *node)
{
    uint32_t page[MT_KV_GROUPS];
    mt_tree_ref(seq->tree, node, page);
    for (size_t g = 0; g < seq->groups; g++)
        seq->page[g][at] = page[g];
}

static void let_go(mt_seq *seq, size_t g, size_t at, bool soon)
{
    if (seq->page[g][at] != MT_NO_PAGE)
        mt_tree_release(seq->tree, g, seq->page[g][at], soon);
    seq->page[g][at] = MT_NO_PAGE;
}

/* Whether a turn begins at a position from which a query's window reaches page `at`: others may continue there. */
static bool before_cut(const mt_seq *seq, size_t g, size_t at)
{
    for (size_t i = 0; i < seq->cut_count; i++)
        if (seq->cuts[i] > at * MT_PAGE_TOKENS)
            return mt_window_begin(seq->cuts[i], mt_tree_groups(seq->tree)->window[g]) < (at + 1) * MT_PAGE_TOKENS;
    return false;
}

/* Releases the pages that windows have passed, now that `done` positions are computed. */
static void slide(mt_seq *seq)
{
    for (size_t g = 1; g < seq->groups; g++) {
        const size_t begin = mt_window_begin(seq->done, mt_tree_groups(seq->tree)->window[g]) / MT_PAGE_TOKENS;
        for (; seq->first[g] < begin && seq->first[g] < seq->pages; seq->first[g]++)
            let_go(seq, g, seq->first[g], !before_cut(seq, g, seq->first[g]));
    }
}

static bool grow_pages(mt_seq *seq, size_t positions)
{
    assert(positions <= seq->limit);
    for (const size_t wanted = pages_for(positions); seq->pages < wanted; seq->pages++)
        for (size_t g = 0; g < seq->groups; g++) {
            seq->page[g][seq->pages] = mt_tree_take(seq->tree, g);
            if (seq->page[g][seq->pages] != MT_NO_PAGE)
                continue;
            while (g-- > 0)
                let_go(seq, g, seq->pages, false);
            return false;
        }
    return true;
}

/* Adds `count` positions to the page that contains position `done`, and tells the tree. */
static void fill(mt_seq *seq, size_t count)
{
    const size_t at = seq->done / MT_PAGE_TOKENS, used = seq->done % MT_PAGE_TOKENS;
    uint32_t page[MT_KV_GROUPS];
    for (size_t g = 0; g < seq->groups; g++)
        page[g] = seq->page[g][at];
    mt_node *n = used ? seq->node : mt_tree_begin(seq->tree, seq->node, page);
    seq->node = mt_tree_fill(seq->tree, n, &seq->text, at, used + count, page);
    for (size_t g = 0; g < seq->groups; g++)
        seq->page[g][at] = page[g];
    seq->done += count;
}

static void fill_up_to(mt_seq *seq, size_t end)
{
    assert(end >= seq->done && end <= seq->known && end <= seq->pages * MT_PAGE_TOKENS);
    while (seq->done < end) {
        const size_t room = MT_PAGE_TOKENS - seq->done % MT_PAGE_TOKENS, left = end - seq->done;
        fill(seq, left < room ? left : room);
    }
}

/* Takes a page for the tail of `hit` and says what to copy into it. Where no page is free, drops the tail from the
   hit. */
static void take_tail(mt_seq *seq, mt_page_copy *copy, mt_hit *hit)
{
    uint32_t from[MT_KV_GROUPS]; /* held meanwhile, since taking a page may evict them */
    mt_tree_ref(seq->tree, hit->partial, from);
    copy->needed = grow_pages(seq, hit->positions);
    for (size_t g = 0; copy->needed && g < seq->groups; g++) {
        copy->from[g] = from[g];
        copy->to[g] = seq->page[g][hit->pages];
    }
    if (copy->needed)
        fill_up_to(seq, hit->positions);
    else
        hit->positions -= hit->tail;
    for (size_t g = 0; g < seq->groups; g++)
        if (from[g] != MT_NO_PAGE)
            mt_tree_release(seq->tree, g, from[g], false);
}

void mt_seq_resume(mt_seq *seq, mt_page_copy *copy, mt_hit *hit)
{
    assert(seq->pages == 0 && seq->done == 0);
    *hit = mt_seq_look(seq);
    *copy = (mt_page_copy){0};
    mt_node *n = hit->node;
    for (size_t at = hit->pages; at-- > 0; n = mt_node_parent(n))
        hold(seq, at, n);
    seq->node = hit->node;
    seq->pages = hit->pages;
    seq->done = hit->pages * MT_PAGE_TOKENS;
    if (hit->partial)
        take_tail(seq, copy, hit);
    slide(seq);
    const bool state = has_state(seq);
    /* Without the tail, a state does not fit the position, and a window may begin in a page that was evicted. */
    if (hit->partial && !copy->needed && (state || seq->groups > 1)) {
        mt_seq_suspend(seq);
        *hit = (mt_hit){.node = seq->root,
                        .shared = hit->shared,
                        .state = MT_NO_PAGE,
                        .miss = state ? MT_MISS_STATE : MT_MISS_WINDOW};
    }
    if (state)
        mt_seq_state_resume(seq, hit);
}

size_t mt_seq_advance(mt_seq *seq)
{
    const size_t before = seq->done;
    if (has_state(seq))
        return 0;
    while (seq->done % MT_PAGE_TOKENS == 0 && seq->done + MT_PAGE_TOKENS <= reusable(seq)) {
        const size_t at = seq->done / MT_PAGE_TOKENS;
        mt_node *n = mt_tree_child(seq->tree, seq->node, &seq->text, at);
        if (!n)
            break;
        for (size_t g = 0; at < seq->pages && g < seq->groups; g++)
            let_go(seq, g, at, false);
        hold(seq, at, n);
        seq->pages = at < seq->pages ? seq->pages : at + 1;
        seq->node = n;
        seq->done += MT_PAGE_TOKENS;
        slide(seq);
    }
    return seq->done - before;
}

size_t mt_seq_wants(const mt_seq *seq, size_t positions)
{
    const size_t wanted = pages_for(positions);
    return wanted > seq->pages ? wanted - seq->pages : 0;
}

bool mt_seq_grow(mt_seq *seq, size_t positions)
{
    return grow_pages(seq, positions) && (!has_state(seq) || mt_seq_state_grow(seq));
}

void mt_seq_commit(mt_seq *seq, size_t count)
{
    const size_t end = seq->done + count;
    for (size_t i = 0, pieces = seq->state.pieces; i < pieces; i++) {
        fill_up_to(seq, seq->done + seq->state.piece[i].rows);
        mt_seq_state_commit(seq, i);
    }
    if (has_state(seq))
        seq->state.behind += end - seq->done;
    fill_up_to(seq, end);
    slide(seq);
}

void mt_seq_restored(mt_seq *seq, size_t end)
{
    fill_up_to(seq, end);
    slide(seq);
}

void mt_seq_rest(mt_seq *seq)
{
    if (has_state(seq))
        mt_seq_state_suspend(seq);
}

void mt_seq_suspend(mt_seq *seq)
{
    mt_seq_rest(seq);
    /* the deepest page first, as invariant 4 of tree.c asks */
    while (seq->pages > 0) {
        seq->pages--;
        for (size_t g = 0; g < seq->groups; g++)
            if (seq->pages >= seq->first[g])
                let_go(seq, g, seq->pages, false);
    }
    for (size_t g = 0; g < seq->groups; g++)
        seq->first[g] = 0;
    seq->node = seq->root;
    seq->done = 0;
}
