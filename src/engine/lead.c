/* Rank 0 tells the other ranks which checkpoints it opens and closes (lead.h). */
#include "engine/lead.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/relay.h"
#include "ranks/ranks.h"

/* Words for a text and the zero byte behind it; 0 for NULL. */
static size_t words_of(const char *text)
{
    return text ? strlen(text) / sizeof(uint32_t) + 1 : 0;
}

static void tell(mt_ranks *ranks, const uint32_t *words, size_t count)
{
    mt_ranks_enter(ranks);
    mt_ranks_tell(ranks, words, count);
    mt_ranks_leave(ranks);
}

bool mt_lead_open(mt_device *dev, const mt_checkpoint *checkpoint, const mt_open_wish *wish)
{
    mt_ranks *ranks = mt_device_ranks(dev);
    char real[PATH_MAX], real_draft[PATH_MAX];
    if (!ranks || mt_ranks_own(ranks) > 0)
        return false;
    /* The other ranks may have been started in other folders */
    const char *dir = realpath(mt_checkpoint_dir(checkpoint), real) ? real : mt_checkpoint_dir(checkpoint);
    const char *draft = wish->draft && realpath(wish->draft, real_draft) ? real_draft : wish->draft;
    const uint64_t bytes = mt_checkpoint_bytes(checkpoint);
    const mt_lead_words head = {.what = MT_TOLD_OPEN,
                                .serial = mt_device_serial(dev),
                                .precision = mt_device_precision(dev),
                                .kv_bits = mt_device_kv_bits(dev),
                                .fingerprint = mt_device_fingerprint(dev),
                                .bytes = {(uint32_t)bytes, (uint32_t)(bytes >> 32)},
                                .dir = (uint32_t)words_of(dir),
                                .family = (uint32_t)words_of(wish->family),
                                .draft = (uint32_t)words_of(draft)};
    const size_t first = sizeof(head) / sizeof(uint32_t), count = first + head.dir + head.family + head.draft;
    uint32_t *words = mt_alloc_array(count, sizeof(*words));
    memcpy(words, &head, sizeof(head));
    memcpy(words + first, dir, strlen(dir));
    if (wish->family)
        memcpy(words + first + head.dir, wish->family, strlen(wish->family));
    if (draft)
        memcpy(words + first + head.dir + head.family, draft, strlen(draft));
    tell(ranks, words, count);
    mt_free(words);
    return true;
}

bool mt_lead_agree(mt_device *dev, mt_error *err)
{
    mt_ranks *ranks = mt_device_ranks(dev);
    mt_ranks_enter(ranks);
    const bool ok = mt_ranks_agree(ranks, err);
    mt_ranks_leave(ranks);
    return ok;
}

void mt_lead_close(mt_device *dev)
{
    const uint32_t words[] = {MT_TOLD_CLOSE, mt_device_serial(dev)};
    tell(mt_device_ranks(dev), words, MT_COUNT(words));
}
