/* Borders: places in a text that no token can cross.
   A token that covers two neighbouring characters contains them as neighbours. So where no token that a merge makes
   contains two characters as neighbours, no merge crosses the place between them, and the text can be cut there without
   a change of the result. Tokenizers that do not cut text at blanks get short words that way, most of which are one
   token.
   This holds only if every character becomes symbols of its own. So borders are used only where unknown characters
   become byte tokens, byte tokens are never merged, and no prefix or suffix changes the characters. */
#include "base/alloc.h"
#include "base/utf8.h"
#include "text/bpe.h"

enum { FIRST_CAP = 4096 };

static uint64_t joint_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right | (uint64_t)1 << 63; /* never 0, which marks an empty slot */
}

/* The slot of a pair, or the empty slot where it belongs. The table is at most half full. */
static size_t find_slot(const mt_tok_bpe *bpe, uint64_t joint)
{
    size_t mask = 2 * bpe->joint_cap - 1, at = (size_t)(mt_hash_number(bpe->merges.key, joint) >> 32) & mask;

    while (bpe->joints[at] && bpe->joints[at] != joint)
        at = (at + 1) & mask;
    return at;
}

static void grow(mt_tok_bpe *bpe)
{
    uint64_t *old = bpe->joints;
    size_t slots = 2 * bpe->joint_cap;

    bpe->joint_cap = bpe->joint_cap ? bpe->joint_cap * 2 : FIRST_CAP;
    bpe->joints = mt_alloc_array(2 * bpe->joint_cap, sizeof(*bpe->joints));
    for (size_t i = 0; i < slots; i++)
        if (old[i])
            bpe->joints[find_slot(bpe, old[i])] = old[i];
    mt_free(old);
}

static void add_joint(mt_tok_bpe *bpe, uint32_t left, uint32_t right)
{
    size_t at;

    if (left < 128 && right < 128) {
        bpe->ascii_joints[left][right / 64] |= (uint64_t)1 << (right % 64);
        return;
    }
    at = find_slot(bpe, joint_of(left, right));
    if (bpe->joints[at])
        return;
    bpe->joints[at] = joint_of(left, right);
    if (++bpe->joint_count == bpe->joint_cap)
        grow(bpe);
}

bool mt_tok_bpe_is_border(const mt_tok_bpe *bpe, uint32_t left, uint32_t right)
{
    if (left < 128 && right < 128)
        return !(bpe->ascii_joints[left][right / 64] >> (right % 64) & 1);
    return !bpe->joints[find_slot(bpe, joint_of(left, right))];
}

/* Adds all pairs of neighbouring characters of a token. */
static void add_token(mt_tok_bpe *bpe, const char *text, size_t len)
{
    for (size_t at = 0, next; at < len; at = next) {
        next = at + mt_utf8_size(text[at]);
        if (next < len)
            add_joint(bpe, mt_utf8_at(text + at), mt_utf8_at(text + next));
    }
}

static bool has_all_bytes(const mt_tok_bpe *bpe)
{
    for (size_t i = 0; i < 256; i++)
        if (bpe->fallback[i] == MT_TOKEN_NONE)
            return false;
    return bpe->byte_fallback;
}

/* Marks, by id, the tokens that merges make. NULL: borders cannot be used. */
static bool *merged_tokens(const mt_tok_bpe *bpe)
{
    bool *made = mt_alloc(bpe->vocab->id_limit), *bytes = mt_alloc(bpe->vocab->id_limit), ok = true;

    for (size_t i = 0; i < 256; i++)
        bytes[bpe->fallback[i]] = true;
    for (size_t i = 0; i < 2 * bpe->merges.cap; i++) {
        const mt_tok_merge_slot *slot = &bpe->merges.slots[i];

        if (slot->merge.rank == MT_MERGE_NONE)
            continue;
        ok = ok && !bytes[slot->pair >> 32] && !bytes[(uint32_t)slot->pair];
        made[slot->merge.id] = true;
    }
    mt_free(bytes);
    if (ok)
        return made;
    mt_free(made);
    return NULL;
}

void mt_tok_bpe_find_joints(mt_tok_bpe *bpe)
{
    bool *made;

    if (bpe->byte_level || !has_all_bytes(bpe) || !bpe->shortcut)
        return;
    made = merged_tokens(bpe);
    if (!made)
        return;
    grow(bpe);
    for (size_t i = 0; i < bpe->vocab->count; i++) {
        size_t len;
        const char *text = mt_tok_vocab_text(bpe->vocab, i, &len);

        if (made[bpe->vocab->ids[i]])
            add_token(bpe, text, len);
    }
    mt_free(made);
}
