/* Which tokens a sequence has seen, for the penalties. */
#ifndef MT_SAMPLE_COUNTS_H
#define MT_SAMPLE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct mt_counts mt_counts;

/* A token that was seen, as far as penalties look back. */
typedef struct mt_count {
    uint32_t id;
    uint32_t count;  /* how often it was generated; 0 for one that stands in the prompt only */
    uint32_t places; /* where it stands, prompt included; 0: it was seen too long ago to count */
    uint32_t pushes; /* how often it was generated, however long ago */
} mt_count;

/* The memory that counts of so many prompt tokens and at most max_output generated ones need. Known at admission, and
   never exceeded. window: how many of the last tokens count; 0: all do. */
size_t mt_counts_bytes(size_t prompt_count, size_t max_output, size_t vocab, size_t window);

/* Counts in `memory` (mt_counts_bytes of it, aligned as for any type), which lives as long as they do; there is
   nothing to free. Ids of the prompt from vocab on are left out: no logit has them. `prompt` is not kept. */
mt_counts *mt_counts_make(void *memory, const uint32_t *prompt, size_t prompt_count, size_t max_output, size_t vocab,
                          size_t window);

/* One more generated token, below vocab; at most max_output. Neither this nor the next allocates. */
void mt_counts_push(mt_counts *c, uint32_t id);

/* Forgets the last `tokens` generated: every byte is as before they came. */
void mt_counts_roll_back(mt_counts *c, size_t tokens);

/* Every token seen, once each, those of the prompt first; some may have no places. */
const mt_count *mt_counts_seen(const mt_counts *c, size_t *count);

#endif
