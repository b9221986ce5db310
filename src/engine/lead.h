/* Rank 0 tells the other ranks which checkpoints it opens; what it does with models is told in models/relay.h. */
#ifndef MT_ENGINE_LEAD_H
#define MT_ENGINE_LEAD_H

#include "device/device.h"
#include "engine/opened.h"

/* What the others are told of a checkpoint: it has to be the same one, in a folder of the same name, for a device that
   computes in the same way. */
typedef struct mt_lead_words {
    uint32_t what, serial;
    uint32_t precision, kv_bits, fingerprint;
    uint32_t bytes[2];           /* low, high */
    uint32_t dir, family, draft; /* words of each that follow, text and zeros; 0: what the config says; none */
} mt_lead_words;

/* True where there are others: then mt_lead_agree waits until they have it, or says what is wrong. */
bool mt_lead_open(mt_device *dev, const mt_checkpoint *checkpoint, const mt_open_wish *wish);
bool mt_lead_agree(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_lead_close(mt_device *dev);

#endif
