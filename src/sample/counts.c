/* A hash table of indices into a list of tokens in the order in which they were first seen, and the tokens generated.

   Owned by the engine thread with its sequence; the compute pool reads it while a step samples.

   1. A token's entry is created by the first push of it, and taken away by the roll-back of that push. Pushes are
      rolled back in reverse, so the entry to take away is always the list's last and the table's latest: no later key
      has walked past its slot, and emptying the slot needs no tombstone.
   2. Therefore a roll-back restores every byte, and the table never holds more than the bound it was made for, however
      often drafts are tried and rejected.
   3. The prompt's tokens are the list's beginning and are never taken away.

   Rejected: an array of vocabulary size per sequence, 0.6 MB for Qwen's even where ten tokens were seen. */
#include "sample/counts.h"

#include <assert.h>
#include <string.h>

#include "base/compiler.h"

struct mt_counts {
    mt_count *list;
    uint32_t *slots;   /* index into list, plus one; 0 is empty */
    uint32_t *history; /* [max_output], zeros beyond generated */
    size_t seen, prompt_seen;
    size_t generated, max_output;
    size_t limit, mask; /* entries of the list; slots minus one */
    size_t vocab;
};

static size_t entries_for(size_t prompt_count, size_t max_output, size_t vocab)
{
    size_t sum;
    return MT_ADD_OVERFLOWS(prompt_count, max_output, &sum) || sum > vocab ? vocab : sum;
}

/* At most half full. */
static size_t slots_for(size_t entries)
{
    size_t slots = 8;
    while (slots < 2 * entries)
        slots *= 2;
    return slots;
}

size_t mt_counts_bytes(size_t prompt_count, size_t max_output, size_t vocab)
{
    size_t entries = entries_for(prompt_count, max_output, vocab);
    return sizeof(mt_counts) + entries * sizeof(mt_count) + (slots_for(entries) + max_output) * sizeof(uint32_t);
}

/* The slot of id, or the empty one where it belongs. */
static uint32_t *find(const mt_counts *c, uint32_t id)
{
    size_t at = (size_t)(((uint64_t)id * 0x9E3779B97F4A7C15u) >> 32) & c->mask;
    while (c->slots[at] != 0 && c->list[c->slots[at] - 1].id != id)
        at = (at + 1) & c->mask;
    return &c->slots[at];
}

static mt_count *find_or_add(mt_counts *c, uint32_t id)
{
    assert(id < c->vocab);
    uint32_t *slot = find(c, id);
    if (*slot == 0) {
        assert(c->seen < c->limit);
        c->list[c->seen] = (mt_count){.id = id};
        *slot = (uint32_t)++c->seen;
    }
    return &c->list[*slot - 1];
}

mt_counts *mt_counts_place(void *memory, const uint32_t *prompt, size_t prompt_count, size_t max_output, size_t vocab)
{
    size_t entries = entries_for(prompt_count, max_output, vocab), slots = slots_for(entries);
    mt_counts *c = memory;
    memset(memory, 0, mt_counts_bytes(prompt_count, max_output, vocab));
    *c = (mt_counts){
        .list = (mt_count *)(c + 1), .max_output = max_output, .limit = entries, .mask = slots - 1, .vocab = vocab};
    c->slots = (uint32_t *)(c->list + entries);
    c->history = c->slots + slots;
    for (size_t i = 0; i < prompt_count; i++)
        if (prompt[i] < vocab)
            find_or_add(c, prompt[i]);
    c->prompt_seen = c->seen;
    return c;
}

void mt_counts_push(mt_counts *c, uint32_t id)
{
    assert(c->generated < c->max_output);
    find_or_add(c, id)->count++;
    c->history[c->generated++] = id;
}

static void pop(mt_counts *c)
{
    uint32_t *slot = find(c, c->history[--c->generated]);
    mt_count *entry = &c->list[*slot - 1];
    c->history[c->generated] = 0;
    entry->count--;
    if (entry->count == 0 && *slot > c->prompt_seen) {
        assert(*slot == c->seen);
        *entry = (mt_count){0};
        *slot = 0;
        c->seen--;
    }
}

void mt_counts_roll_back(mt_counts *c, size_t tokens)
{
    assert(tokens <= c->generated);
    for (size_t i = 0; i < tokens; i++)
        pop(c);
}

const mt_count *mt_counts_seen(const mt_counts *c, size_t *count)
{
    *count = c->seen;
    return c->list;
}
