/* Anchors: recurrent states kept at known positions of prompts, so that other requests may continue there. This is the
   pool of slots for states (their memory is the device's), and which slots the nodes of the prefix tree (tree.h) have.
   See anchors.c. */
#ifndef MT_CACHE_ANCHORS_H
#define MT_CACHE_ANCHORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/pages.h"

/* The anchors of one node of the tree: the slot of the first, or MT_NO_PAGE. Anchors point to the list, so it must not
   move in memory. */
typedef uint32_t mt_anchor_list;

typedef struct mt_anchor {
    mt_anchor_list *list; /* the node's list that it is in; NULL: this slot is no anchor */
    uint32_t next;        /* slot of the next anchor of the list, or MT_NO_PAGE */
    uint32_t offset;      /* the state is that after so many positions of the node's page */
    uint32_t gain;        /* positions that continuing here saves over continuing at the anchor before */
    uint32_t uses;        /* how often a sequence has continued here */
    uint32_t at;          /* its place in mt_anchors.idle, where it is there */
    double rank;          /* the anchor with the lowest rank is evicted first */
} mt_anchor;

typedef struct mt_anchors {
    mt_pages slots; /* which slots are free, and how many references each has; spare ones are among them */
    mt_anchor *of;  /* [slots] */
    uint32_t *idle; /* [slots]: anchors that no sequence refers to, idle_count of them; see anchors.c */
    size_t idle_count;
    size_t spare; /* slots that are only lent */
    size_t lent;  /* of these, how many are */
    double age;   /* rank of the anchor that was evicted last */
    size_t count; /* anchors there are */
    uint64_t evictions;
} mt_anchors;

void mt_anchors_init(mt_anchors *a, size_t slots, size_t spare); /* free with mt_anchors_free */
void mt_anchors_free(mt_anchors *a);

/* A slot for a sequence to write, with one reference: a free one, or that of the anchor with the lowest rank that no
   sequence refers to. MT_NO_PAGE when sequences refer to all. */
uint32_t mt_anchors_take(mt_anchors *a);

/* The same for a state that would become an anchor with this gain: no anchor of a higher rank is evicted for it. */
uint32_t mt_anchors_take_for(mt_anchors *a, size_t gain);

/* For a sequence that holds one slot more for a while: a spare slot, with one reference. MT_NO_PAGE where all are lent.
   mt_anchors_repay: the sequence has released as many slots as it had borrowed; which ones does not matter. */
uint32_t mt_anchors_borrow(mt_anchors *a);
void mt_anchors_repay(mt_anchors *a);

/* Add and drop a reference of a sequence. */
void mt_anchors_ref(mt_anchors *a, uint32_t slot);
void mt_anchors_release(mt_anchors *a, uint32_t slot);

/* How many slots sequences refer to. */
size_t mt_anchors_held(const mt_anchors *a);

/* Whether the caller has the only reference and the slot is no anchor: then it may be written. */
bool mt_anchors_own(const mt_anchors *a, uint32_t slot);

/* Makes the slot an anchor of the list, which takes a reference of its own; from then on the slot is never written.
   Does nothing where the list has an anchor at that offset. */
void mt_anchors_add(mt_anchors *a, mt_anchor_list *list, size_t offset, size_t gain, uint32_t slot);

/* The anchor with the largest offset up to `most`; MT_NO_PAGE: there is none. */
uint32_t mt_anchors_find(const mt_anchors *a, const mt_anchor_list *list, size_t most);

/* Counts a use: a sequence continues at this anchor. */
void mt_anchors_use(mt_anchors *a, uint32_t slot);

/* Moves the anchors of one list to another; drops all anchors of a list. */
void mt_anchors_move(mt_anchors *a, mt_anchor_list *from, mt_anchor_list *to);
void mt_anchors_drop(mt_anchors *a, mt_anchor_list *list);

#endif
