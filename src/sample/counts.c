/* Counts of tokens (counts.h): a list of tokens in the order of their first occurrence, a hash table of indices into
   it, and the tokens generated.

   Belongs to its sequence, so to the engine's thread; the compute pool reads it while a step samples.

   1. A token's entry is made by its first push, and removed when that push is rolled back. Pushes are rolled back in
      reverse order, so the entry to remove is always the last of the list and the newest in the table: no other key was
      placed behind its slot, and the slot can be emptied without a tombstone.
   2. So a roll-back restores every byte, and the table never exceeds its size, however many guesses are tried and
      rejected.
   3. The prompt's tokens are the beginning of the list and are never removed.
   4. With a window, a push moves it by one token: the token that leaves is counted down, and keeps its entry. A
      roll-back counts it up again.

   Rejected: an array of vocabulary size for each sequence: 0.6 MB for Qwen, even where ten tokens occurred. */
#include "sample/counts.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

struct mt_counts {
    mt_count *list;
    uint32_t *slots;   /* hash table: index in list plus 1; 0: empty */
    uint32_t *history; /* [max_output]: generated tokens; zeros behind them */
    uint32_t *before;  /* [before_count]: the end of the prompt, where there is a window */
    size_t seen, prompt_seen;
    size_t generated, max_output;
    size_t limit, mask; /* most entries of the list; number of slots minus 1 */
    size_t vocab;
    size_t window, before_count; /* window 0: all tokens count */
};

static size_t entries_for(size_t prompt_count, size_t max_output, size_t vocab)
{
    size_t sum;
    return MT_ADD_OVERFLOWS(prompt_count, max_output, &sum) || sum > vocab ? vocab : sum;
}

/* At most half of the slots are used. */
static size_t slots_for(size_t entries)
{
    size_t slots = 8;
    while (slots < 2 * entries)
        slots *= 2;
    return slots;
}

/* How many prompt tokens are in the window at first. */
static size_t within(size_t prompt_count, size_t window)
{
    return window > 0 && prompt_count > window ? window : prompt_count;
}

size_t mt_counts_bytes(size_t prompt_count, size_t max_output, size_t vocab, size_t window)
{
    const size_t prompt = within(prompt_count, window), entries = entries_for(prompt, max_output, vocab);
    const size_t ids = slots_for(entries) + max_output + (window > 0 ? prompt : 0);
    return sizeof(mt_counts) + entries * sizeof(mt_count) + ids * sizeof(uint32_t);
}

/* The slot of id, or the empty slot where it would be. */
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

mt_counts *mt_counts_make(void *memory, const uint32_t *prompt, size_t prompt_count, size_t max_output, size_t vocab,
                          size_t window)
{
    const size_t count = within(prompt_count, window), skipped = prompt_count - count;
    const size_t entries = entries_for(count, max_output, vocab), slots = slots_for(entries);
    mt_counts *c = memory;
    memset(memory, 0, mt_counts_bytes(prompt_count, max_output, vocab, window));
    *c = (mt_counts){.list = (mt_count *)(c + 1),
                     .max_output = max_output,
                     .limit = entries,
                     .mask = slots - 1,
                     .vocab = vocab,
                     .window = window,
                     .before_count = window > 0 ? count : 0};
    c->slots = (uint32_t *)(c->list + entries);
    c->history = c->slots + slots;
    c->before = c->history + max_output;
    for (size_t i = skipped; i < prompt_count; i++)
        if (prompt[i] < vocab)
            find_or_add(c, prompt[i])->places++;
    if (c->before_count > 0)
        memcpy(c->before, prompt + skipped, count * sizeof(*c->before));
    c->prompt_seen = c->seen;
    return c;
}

/* Counts the token that leaves the window down (by = 1), or up again (by = -1). */
static void move_window(mt_counts *c, int by)
{
    const size_t known = c->before_count + c->generated;
    if (c->window == 0 || known <= c->window)
        return;
    const size_t at = known - c->window - 1;
    const bool said = at >= c->before_count;
    const uint32_t id = said ? c->history[at - c->before_count] : c->before[at];
    if (id >= c->vocab) /* a prompt's token outside the vocabulary */
        return;
    mt_count *entry = find_or_add(c, id);
    entry->places -= (uint32_t)by;
    entry->count -= said ? (uint32_t)by : 0;
}

void mt_counts_push(mt_counts *c, uint32_t id)
{
    assert(c->generated < c->max_output);
    mt_count *entry = find_or_add(c, id);
    entry->count++;
    entry->places++;
    entry->pushes++;
    c->history[c->generated++] = id;
    move_window(c, 1);
}

/* Undoes the last push. */
static void pop(mt_counts *c)
{
    move_window(c, -1);
    uint32_t *slot = find(c, c->history[--c->generated]);
    mt_count *entry = &c->list[*slot - 1];
    c->history[c->generated] = 0;
    entry->count--;
    entry->places--;
    entry->pushes--;
    if (entry->pushes == 0 && *slot > c->prompt_seen) {
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
