/* A sequence's place in the cache: its tokens, its page tables, and how much of it is there already. This is the only
   place that answers "how much of this prompt do we have?". Owned by the engine's thread. */
#ifndef MT_CACHE_SEQ_H
#define MT_CACHE_SEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cache/tree.h"

#define MT_SEQ_STOPS 16 /* positions of a sequence whose states are kept */

/* The recurrent state of a sequence. A step writes it where it lies or, where others may continue from it, to a slot
   of its own. */
typedef struct mt_seq_state {
    uint32_t slot;               /* of the state after position done - behind - 1; MT_NO_PAGE: it has none yet */
    size_t behind;               /* right guesses of the last step, which it has not seen */
    uint32_t next;               /* where the next step leaves it; MT_NO_PAGE: not decided */
    size_t anchored;             /* the last position that is known to be an anchor */
    uint32_t stop[MT_SEQ_STOPS]; /* ascending positions that are to become anchors */
    size_t stops;
    mt_piece piece[MT_SEQ_STOPS + 1]; /* of the step that runs */
    size_t pieces;
    struct {
        size_t position;
        uint32_t slot;
    } published[MT_SEQ_STOPS + 2]; /* anchors that it has made since somebody looked at `news`, which may be set to 0 */
    size_t news;
} mt_seq_state;

typedef struct mt_seq {
    mt_tree *tree; /* NULL until it is attached */
    size_t groups;
    mt_text text; /* its keys: [limit], known ones first */
    size_t known; /* positions with a key */
    size_t limit;
    size_t done;                  /* positions whose keys and values are in the pages */
    uint32_t *page[MT_KV_GROUPS]; /* page tables, [limit / MT_PAGE_TOKENS, rounded up] */
    size_t pages;                 /* of the tables that are held */
    size_t first[MT_KV_GROUPS];   /* the first that is still held; always 0 in group 0 */
    mt_node *root, *node;         /* node: of the last page that has positions in the tree; or the root */
    const uint32_t *cuts;         /* ascending positions where others may continue; borrowed */
    size_t cut_count;
    mt_seq_state state; /* of models with recurrent layers */
} mt_seq;

/* A page to be copied before the next step: its first positions are known. */
typedef struct mt_page_copy {
    bool needed;
    uint32_t from[MT_KV_GROUPS], to[MT_KV_GROUPS]; /* MT_NO_PAGE: the group needs none */
} mt_page_copy;

/* A sequence of at most `limit` positions, on any thread. Free with mt_seq_free. */
void mt_seq_init(mt_seq *seq, size_t groups, size_t limit);

/* From here on it belongs to the tree's thread. It holds no pages yet. */
void mt_seq_attach(mt_seq *seq, mt_tree *tree, const uint8_t salt[32]);

/* Lets go of everything; what is in the tree stays there. */
void mt_seq_free(mt_seq *seq);

/* What the sequence begins with, and which of it stands for pictures; borrows the figures. On any thread. */
void mt_seq_prompt(mt_seq *seq, const uint32_t *tokens, size_t count, const mt_figure *figure, size_t figures);

/* One more token at the end. */
void mt_seq_add(mt_seq *seq, uint32_t token);

/* What the tree has of it, at most all but the last known position. Takes nothing. */
mt_hit mt_seq_look(mt_seq *seq);

/* Takes what the tree has and makes `copy` say which page is to be copied before anything else happens. The sequence
   holds no pages before. */
void mt_seq_resume(mt_seq *seq, mt_page_copy *copy, mt_hit *hit);

/* At the end of a page: takes those that follow and have become known meanwhile, up to all but the last known
   position. Returns how many positions that gave; none where there is a recurrent state, which has not seen them. */
size_t mt_seq_advance(mt_seq *seq);

/* Pages that mt_seq_grow would take, of every group. */
size_t mt_seq_wants(const mt_seq *seq, size_t positions);

/* Makes room for positions [0, positions), and for the state after them. False when a pool is dry; what it got it
   keeps. */
bool mt_seq_grow(mt_seq *seq, size_t positions) MT_NODISCARD;

/* The state after `position` positions shall become an anchor, where it is not computed yet and there is room. */
void mt_seq_stop_at(mt_seq *seq, size_t position);

/* How long a beginning two sequences have in common, as far as both know. */
size_t mt_seq_common(const mt_seq *a, const mt_seq *b);

/* Says which slots the states of the next `rows` rows go through, the last `guesses` of which may be wrong. After
   mt_seq_grow for them. */
void mt_seq_cut(mt_seq *seq, size_t rows, size_t guesses, mt_span *span);

/* The step that runs went wrong: its states are worth nothing. */
void mt_seq_spoil(mt_seq *seq);

/* Positions [done, done + count) have been computed and are sound: others may use them. Lets go of what windows have
   left behind. Of a model with recurrent layers, count is what mt_seq_cut was told without the guesses; each guess that
   was right follows by itself. */
void mt_seq_commit(mt_seq *seq, size_t count);

/* Positions up to `end` are in its pages, not because they were computed but from somewhere else; others may use them.
   Of a model with recurrent layers, it has no state until that of just this place comes: a slot that was taken for it,
   which becomes an anchor. */
void mt_seq_restored(mt_seq *seq, size_t end);
void mt_seq_restored_state(mt_seq *seq, uint32_t slot);
void mt_seq_drop_state(mt_seq *seq);

/* Its state becomes an anchor, as when it is suspended; it has none then. */
void mt_seq_rest(mt_seq *seq);

/* Lets go of all pages, and of the state, which becomes an anchor; the known positions stay, to be resumed. */
void mt_seq_suspend(mt_seq *seq);

#endif
