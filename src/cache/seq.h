/* A sequence's side of the prefix cache: its tokens, its page tables, and how much of it is computed. The only place
   that answers how much of a prompt is cached. Used by the engine's thread, where nothing else is said. */
#ifndef MT_CACHE_SEQ_H
#define MT_CACHE_SEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cache/tree.h"

#define MT_SEQ_STOPS 16 /* most positions of a sequence that are to become anchors */

/* The recurrent state of a sequence. A step overwrites the state in its slot or, where the slot is an anchor, writes to
   another slot. A step that is begun before the one before it is committed leaves that one's state as it is, in case it
   is the last. */
typedef struct mt_seq_state {
    uint32_t slot;               /* of the state after position done - behind - 1; MT_NO_PAGE: none yet */
    size_t behind;               /* right guesses of the last step, which the state does not cover yet */
    uint32_t next;               /* slot that the next step writes; MT_NO_PAGE: not decided yet */
    size_t anchored;             /* the last position that is known to have an anchor */
    uint32_t stop[MT_SEQ_STOPS]; /* ascending positions whose states are to become anchors */
    size_t stops;
    mt_piece piece[MT_SEQ_STOPS + 1]; /* rows of the step under way, cut at the stops */
    size_t pieces;
    mt_piece after; /* the row of the step that was begun behind it; slot MT_NO_PAGE: none was */
    bool borrowed;  /* it holds a spare slot, for steps that are begun ahead */
    struct {
        size_t position;
        uint32_t slot;
    } published[MT_SEQ_STOPS + 2]; /* anchors made since `news` was last set to 0 by the reader */
    size_t news;
} mt_seq_state;

typedef struct mt_seq {
    mt_tree *tree;                /* NULL before mt_seq_attach */
    size_t groups;                /* number of page tables */
    mt_text text;                 /* its keys: [limit], of which the first `known` are set */
    size_t known;                 /* positions whose token is known */
    size_t limit;                 /* most positions */
    size_t done;                  /* positions whose keys and values are in the pages */
    uint32_t *page[MT_KV_GROUPS]; /* page tables, [limit / MT_PAGE_TOKENS, rounded up] */
    size_t pages;                 /* entries of each table that are in use */
    size_t first[MT_KV_GROUPS];   /* first entry that still has a page, where a window has moved on; 0 in group 0 */
    mt_node *root, *node;         /* root: of its salt; node: of the page of position done - 1, or the root */
    const uint32_t *cuts; /* ascending positions where turns begin, so that others may continue there; borrowed */
    size_t cut_count;
    mt_seq_state state; /* of models with recurrent layers */
} mt_seq;

/* A copy of pages to be made before the next step, as the first positions of a page are cached in another page. */
typedef struct mt_page_copy {
    bool needed;
    uint32_t from[MT_KV_GROUPS], to[MT_KV_GROUPS]; /* page of each group; MT_NO_PAGE: none to copy */
} mt_page_copy;

/* A sequence of at most `limit` positions. Any thread. Free with mt_seq_free. */
void mt_seq_init(mt_seq *seq, size_t groups, size_t limit);

/* Connects the sequence to the tree; from here on it belongs to the tree's thread. It holds no pages yet. */
void mt_seq_attach(mt_seq *seq, mt_tree *tree, const uint8_t salt[32]);

/* Releases all pages and the state, and frees the rest; what the tree knows stays there. */
void mt_seq_free(mt_seq *seq);

/* Sets the prompt. figure: which positions stand for pictures; borrowed. Any thread. */
void mt_seq_prompt(mt_seq *seq, const uint32_t *tokens, size_t count, const mt_figure *figure, size_t figures);

/* One more token at the end. */
void mt_seq_add(mt_seq *seq, uint32_t token);

/* How much of the sequence the tree has, at most all but the last known position. Takes no pages. */
mt_hit mt_seq_look(mt_seq *seq);

/* For a sequence without pages: takes the pages that the tree has, and says in `copy` what to copy before anything else
   is computed. hit: what was found. */
void mt_seq_resume(mt_seq *seq, mt_page_copy *copy, mt_hit *hit);

/* For a sequence at the end of a page: takes the following pages that others have computed meanwhile, up to all but the
   last known position. Returns the positions gained; 0 for a model with recurrent layers, as the state does not cover
   them. */
size_t mt_seq_advance(mt_seq *seq);

/* How many pages of each group mt_seq_grow would take. */
size_t mt_seq_wants(const mt_seq *seq, size_t positions);

/* Takes pages for positions [0, positions), and a slot for the state after them. False when a pool has none left; pages
   that were taken stay. */
bool mt_seq_grow(mt_seq *seq, size_t positions) MT_NODISCARD;

/* Marks a position: the state after `position` positions is to become an anchor when it is computed. Ignored where
   MT_SEQ_STOPS positions are marked. */
void mt_seq_stop_at(mt_seq *seq, size_t position);

/* How many of their first positions two sequences have in common. */
size_t mt_seq_common(const mt_seq *a, const mt_seq *b);

/* Cuts the next `rows` rows at the marked positions and says in `span` which slots their states go to; the last
   `guesses` rows are guesses. Call after mt_seq_grow. */
void mt_seq_cut(mt_seq *seq, size_t rows, size_t guesses, mt_span *span);

/* Begins a row behind the step under way, before that one is committed, and says in `span` which slots its state goes
   to. Of the step under way no row may be a guess. False where no slot is left. mt_seq_unfollow takes it back; else,
   with mt_seq_commit, the row becomes the step under way. For a model without recurrent layers there is nothing to
   do. */
bool mt_seq_follow(mt_seq *seq, mt_span *span) MT_NODISCARD;
void mt_seq_unfollow(mt_seq *seq);

/* The step under way failed: drops its states. */
void mt_seq_spoil(mt_seq *seq);

/* Positions [done, done + count) were computed and are finite: the tree learns of them, and pages that windows have
   passed are released. Of a model with recurrent layers, count first is mt_seq_cut's rows without the guesses; then a
   call with count 1 follows for each right guess. */
void mt_seq_commit(mt_seq *seq, size_t count);

/* Positions up to `end` are in its pages since they were read from a tier: the tree learns of them. A model with
   recurrent layers has no state (mt_seq_drop_state) until mt_seq_restored_state brings that of position done in a slot
   of its own, which becomes an anchor. */
void mt_seq_restored(mt_seq *seq, size_t end);
void mt_seq_restored_state(mt_seq *seq, uint32_t slot);
void mt_seq_drop_state(mt_seq *seq);

/* Makes the sequence's state an anchor and drops it. */
void mt_seq_rest(mt_seq *seq);

/* Releases all pages and the state, which becomes an anchor; the known tokens stay, so that mt_seq_resume can
   follow. A row that was begun ahead is dropped. */
void mt_seq_suspend(mt_seq *seq);

#endif
