/* The recurrent state of a sequence, and the positions at which it becomes an anchor.

   A step reads one slot and writes one for each piece of its rows (mt_seq_cut). A slot that became an anchor is only
   read from then on, and the next piece writes another. So states are never copied: not when one is kept, nor when
   another sequence continues from one, nor when a sequence loses its seat. */
#include "cache/seq_state.h"

#include <assert.h>

#define PLANNED 12  /* stops that are chosen for a prompt; the rest of MT_SEQ_STOPS are for later */
#define SPACING 512 /* least positions between stops that are chosen by distance alone */
#define SPREAD 6    /* so a prompt has at most about so many of these */
#define LEARNED 8   /* least positions that a state saves at a position where prompts were seen to differ */

static mt_anchors *anchors(const mt_seq *seq)
{
    return mt_tree_anchors(seq->tree);
}

void mt_seq_stop_at(mt_seq *seq, size_t position)
{
    mt_seq_state *st = &seq->state;
    size_t at = st->stops;
    if (position == 0 || position >= seq->limit || st->stops == MT_SEQ_STOPS)
        return;
    for (size_t i = 0; i < st->stops; i++)
        if (st->stop[i] == position)
            return;
    for (; at > 0 && st->stop[at - 1] > position; at--)
        st->stop[at] = st->stop[at - 1];
    st->stop[at] = (uint32_t)position;
    st->stops++;
}

/* Adds stops between `last` and `place` that are `spacing` apart, and one at `place` itself. Returns the new last
   stop. */
static size_t plan_up_to(mt_seq *seq, size_t last, size_t place, size_t spacing)
{
    for (; place - last >= 2 * spacing && seq->state.stops < PLANNED; last += spacing)
        mt_seq_stop_at(seq, (last + spacing) / MT_PAGE_TOKENS * MT_PAGE_TOKENS);
    if (place - last < spacing || seq->state.stops >= PLANNED)
        return last;
    mt_seq_stop_at(seq, place);
    return place;
}

/* Chooses the positions where requests are likely to continue: the end of the prompt (but for its last position), the
   beginnings of the last two turns and of the first (behind the instructions). Then positions far from all these. */
void mt_seq_state_plan(mt_seq *seq)
{
    if (seq->known < 2)
        return;
    const size_t end = seq->known - 1, even = seq->known / SPREAD, spacing = even > SPACING ? even : SPACING;
    size_t count = seq->cut_count, last = 0;
    while (count > 0 && seq->cuts[count - 1] > end)
        count--;
    mt_seq_stop_at(seq, end);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || i + 2 >= count)
            mt_seq_stop_at(seq, seq->cuts[i]);
    for (size_t i = 0; i < count; i++)
        last = plan_up_to(seq, last, seq->cuts[i], spacing);
    plan_up_to(seq, last, end, spacing);
}

size_t mt_seq_common(const mt_seq *a, const mt_seq *b)
{
    const size_t most = a->known < b->known ? a->known : b->known;
    /* the first `low` pages are equal in both, the first `high` are not */
    size_t low = 0, high = most / MT_PAGE_TOKENS + 1;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        *(a->text.hash[middle - 1] == b->text.hash[middle - 1] ? &low : &high) = middle;
    }
    const mt_page_text in_a = mt_text_page(&a->text, low), in_b = mt_text_page(&b->text, low);
    const size_t at = low * MT_PAGE_TOKENS, left = most - at;
    return at + mt_page_text_common(&in_a, &in_b, left < MT_PAGE_TOKENS ? left : MT_PAGE_TOKENS);
}

void mt_seq_state_resume(mt_seq *seq, const mt_hit *hit)
{
    mt_seq_state *st = &seq->state;
    if (hit->state != MT_NO_PAGE) {
        mt_anchors_ref(anchors(seq), hit->state);
        mt_anchors_use(anchors(seq), hit->state);
        st->slot = hit->state;
    }
    st->anchored = hit->positions;
    /* Two prompts differ from here on; a third may, too. */
    if (hit->shared >= hit->positions + LEARNED)
        mt_seq_stop_at(seq, hit->shared);
}

bool mt_seq_state_grow(mt_seq *seq)
{
    mt_seq_state *st = &seq->state;
    if (st->next != MT_NO_PAGE)
        return true;
    st->next =
        st->slot != MT_NO_PAGE && mt_anchors_own(anchors(seq), st->slot) ? st->slot : mt_anchors_take(anchors(seq));
    return st->next != MT_NO_PAGE;
}

void mt_seq_cut(mt_seq *seq, size_t all, size_t guesses, mt_span *span)
{
    const size_t rows = all - guesses;
    mt_seq_state *st = &seq->state;
    size_t at = seq->done, gain_from = st->anchored;
    st->pieces = 0;
    for (size_t i = 0; i < st->stops && st->stop[i] < seq->done + rows; i++) {
        if (st->stop[i] <= at)
            continue;
        const uint32_t slot = mt_anchors_take_for(anchors(seq), st->stop[i] - gain_from);
        if (slot == MT_NO_PAGE)
            continue;
        st->piece[st->pieces++] = (mt_piece){.rows = (uint32_t)(st->stop[i] - at), .slot = slot};
        at = gain_from = st->stop[i];
    }
    st->piece[st->pieces++] = (mt_piece){.rows = (uint32_t)(seq->done + rows - at), .slot = st->next};
    span->state = st->slot;
    span->piece = st->piece;
    span->pieces = (uint32_t)st->pieces;
    span->guesses = (uint32_t)guesses;
    span->replay = (uint32_t)st->behind;
}

/* The state two steps back, where it is the sequence's own, is read for the last time by the step under way. It is its
   own without a loan, too: where the tree had an anchor at the place for which another slot was taken. */
bool mt_seq_follow(mt_seq *seq, mt_span *span)
{
    mt_seq_state *st = &seq->state;
    assert(st->after.slot == MT_NO_PAGE);
    if (st->pieces == 0)
        return true;
    st->after.rows = 1;
    if (st->slot != MT_NO_PAGE && st->slot != st->next && mt_anchors_own(anchors(seq), st->slot))
        st->after.slot = st->slot;
    else if (st->borrowed)
        st->after.slot = mt_anchors_take(anchors(seq));
    else {
        st->after.slot = mt_anchors_borrow(anchors(seq));
        st->borrowed = st->after.slot != MT_NO_PAGE;
    }
    if (st->after.slot == MT_NO_PAGE)
        return false;
    span->state = st->next;
    span->piece = &st->after;
    span->pieces = 1;
    return true;
}

/* Makes the state after position `at` - 1 an anchor. The position is in the page of position done - 1, or in the one
   before. */
static void publish(mt_seq *seq, size_t at, uint32_t slot)
{
    const bool before = (at - 1) / MT_PAGE_TOKENS != (seq->done - 1) / MT_PAGE_TOKENS;
    mt_tree_anchor(seq->tree, before ? mt_node_parent(seq->node) : seq->node, (at - 1) % MT_PAGE_TOKENS + 1,
                   at - seq->state.anchored, slot);
    /* the tree had no anchor there */
    if (anchors(seq)->of[slot].list && seq->state.news < MT_COUNT(seq->state.published)) {
        seq->state.published[seq->state.news].position = at;
        seq->state.published[seq->state.news++].slot = slot;
    }
    seq->state.anchored = at;
}

static bool is_stop(const mt_seq *seq, size_t position)
{
    for (size_t i = 0; i < seq->state.stops; i++)
        if (seq->state.stop[i] == position)
            return true;
    return false;
}

static void release(mt_seq *seq, uint32_t *slot)
{
    if (*slot != MT_NO_PAGE)
        mt_anchors_release(anchors(seq), *slot);
    *slot = MT_NO_PAGE;
}

static void repay(mt_seq *seq)
{
    if (seq->state.borrowed)
        mt_anchors_repay(anchors(seq));
    seq->state.borrowed = false;
}

void mt_seq_unfollow(mt_seq *seq)
{
    mt_seq_state *st = &seq->state;
    if (st->after.slot == st->slot)
        st->after.slot = MT_NO_PAGE;
    release(seq, &st->after.slot);
}

void mt_seq_state_commit(mt_seq *seq, size_t i)
{
    mt_seq_state *st = &seq->state;
    if (i + 1 < st->pieces) {
        publish(seq, seq->done, st->piece[i].slot);
        release(seq, &st->piece[i].slot);
        return;
    }
    const bool follows = st->after.slot != MT_NO_PAGE;
    if (st->slot != st->next && st->slot != st->after.slot)
        release(seq, &st->slot);
    st->slot = st->next;
    st->next = st->after.slot;
    st->piece[0] = st->after;
    st->pieces = follows;
    st->after.slot = MT_NO_PAGE;
    st->behind = 0;
    if (!follows)
        repay(seq);
    if (is_stop(seq, seq->done))
        publish(seq, seq->done, st->slot);
}

void mt_seq_restored_state(mt_seq *seq, uint32_t slot)
{
    assert(seq->state.slot == MT_NO_PAGE && seq->state.behind == 0 && seq->done > 0);
    seq->state.slot = slot;
    publish(seq, seq->done, slot);
}

static void let_go(mt_seq *seq)
{
    mt_seq_state *st = &seq->state;
    mt_seq_unfollow(seq);
    if (st->next == st->slot)
        st->next = MT_NO_PAGE;
    release(seq, &st->slot);
    release(seq, &st->next);
    repay(seq);
    st->anchored = 0;
    st->behind = 0;
}

void mt_seq_drop_state(mt_seq *seq)
{
    let_go(seq);
}

void mt_seq_spoil(mt_seq *seq)
{
    mt_seq_state *st = &seq->state;
    for (size_t i = 0; i + 1 < st->pieces; i++)
        release(seq, &st->piece[i].slot);
    st->pieces = 0;
    let_go(seq);
}

void mt_seq_state_suspend(mt_seq *seq)
{
    mt_seq_state *st = &seq->state;
    /* none is under way but one that was begun ahead, which writes another slot than it reads */
    assert(st->pieces == 0 || (st->pieces == 1 && st->next != st->slot));
    st->pieces = 0;
    if (st->slot != MT_NO_PAGE && seq->done > st->anchored + st->behind && mt_anchors_own(anchors(seq), st->slot))
        publish(seq, seq->done - st->behind, st->slot);
    let_go(seq);
}
