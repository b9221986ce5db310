/* Anchors: recurrent states kept at known places of prompts, so that others may continue there. A pool of slots for
   states (the memory is the device's), and which of them the prefix tree has. See anchors.c. */
#ifndef MT_CACHE_ANCHORS_H
#define MT_CACHE_ANCHORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/pages.h"

/* A list of anchors, as a node of the tree has it: the number of the first, or MT_NO_PAGE. It must not move. */
typedef uint32_t mt_anchor_list;

typedef struct mt_anchor {
    mt_anchor_list *list; /* NULL: not in the tree */
    uint32_t next;
    uint32_t offset; /* positions of the node's page that the state has behind it */
    uint32_t gain;   /* positions that it saves over the anchor before it */
    uint32_t uses;
    double rank; /* the lowest goes first */
} mt_anchor;

typedef struct mt_anchors {
    mt_pages slots;
    mt_anchor *of; /* by slot */
    double age;    /* rank of the last that had to go */
    size_t count;  /* in the tree */
    uint64_t evictions;
} mt_anchors;

void mt_anchors_init(mt_anchors *a, size_t slots); /* free with mt_anchors_free */
void mt_anchors_free(mt_anchors *a);

/* A slot to be written, with one reference to it: a free one, or that of the lowest anchor that no sequence holds.
   MT_NO_PAGE when all are held. */
uint32_t mt_anchors_take(mt_anchors *a);

/* The same for an anchor of that gain, where none that is worth more has to go for it. */
uint32_t mt_anchors_take_for(mt_anchors *a, size_t gain);

void mt_anchors_ref(mt_anchors *a, uint32_t slot);
void mt_anchors_release(mt_anchors *a, uint32_t slot);

/* Slots that mt_anchors_take could give. */
size_t mt_anchors_available(const mt_anchors *a);

/* Whether nobody but the caller refers to the slot, so that it may be written. */
bool mt_anchors_own(const mt_anchors *a, uint32_t slot);

/* The slot becomes an anchor, which nobody writes any more; the list has a reference of its own. Where there is one
   at the same offset already, nothing happens. */
void mt_anchors_add(mt_anchors *a, mt_anchor_list *list, size_t offset, size_t gain, uint32_t slot);

/* The one with the largest offset of at most `most`; MT_NO_PAGE for none. */
uint32_t mt_anchors_find(const mt_anchors *a, const mt_anchor_list *list, size_t most);

/* Somebody continues there. */
void mt_anchors_use(mt_anchors *a, uint32_t slot);

/* Another list gets what this one has; nobody gets anything. */
void mt_anchors_move(mt_anchors *a, mt_anchor_list *from, mt_anchor_list *to);
void mt_anchors_drop(mt_anchors *a, mt_anchor_list *list);

#endif
