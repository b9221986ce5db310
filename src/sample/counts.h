/* How often each token occurred in a sequence, for sampling penalties. */
#ifndef MT_SAMPLE_COUNTS_H
#define MT_SAMPLE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct mt_counts mt_counts;

/* A token that occurred. Penalties may look at a window of the last tokens only. */
typedef struct mt_count {
    uint32_t id;
    uint32_t count;  /* how often it was generated within the window; 0: it is only in the prompt */
    uint32_t places; /* how often it occurs within the window, prompt included; 0: not any more */
    uint32_t pushes; /* how often it was generated in all */
} mt_count;

/* Bytes of memory for counts of so many prompt tokens and at most max_output generated ones: known when a request is
   admitted, and never exceeded. window: how many of the last tokens count; 0: all. */
size_t mt_counts_bytes(size_t prompt_count, size_t max_output, size_t vocab, size_t window);

/* Makes counts in `memory` (mt_counts_bytes of it, aligned for any type), which must live as long as they do; there is
   nothing to free. Prompt ids from vocab on are left out, as no logit has them. `prompt` is not kept. */
mt_counts *mt_counts_make(void *memory, const uint32_t *prompt, size_t prompt_count, size_t max_output, size_t vocab,
                          size_t window);

/* Adds a generated token below vocab; at most max_output. Neither this nor the next function allocates. */
void mt_counts_push(mt_counts *c, uint32_t id);

/* Removes the last `tokens` generated tokens: every byte is as before they were pushed. */
void mt_counts_roll_back(mt_counts *c, size_t tokens);

/* Every token that occurred, once each, those of the prompt first; some may have places == 0. */
const mt_count *mt_counts_seen(const mt_counts *c, size_t *count);

#endif
