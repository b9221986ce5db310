/* Rank 0 tells the other ranks which checkpoints it opens and closes (follow.h receives it). What rank 0 does with the
   models is told by models/relay.h. */
#ifndef MT_ENGINE_LEAD_H
#define MT_ENGINE_LEAD_H

#include "device/device.h"
#include "engine/opened.h"

/* The message about a checkpoint. The other ranks must open the same checkpoint, in a folder of the same name, for a
   device that gives the same bits. */
typedef struct mt_lead_words {
    /* what: kind of the message (models/relay.h); serial: number of the checkpoint */
    uint32_t what, serial;
    uint32_t precision, kv_bits, fingerprint;
    uint32_t bytes[2]; /* size of the weights: low, high word */
    /* number of words that follow for each text, padded with zeros; 0: none; family 0: what config.json says */
    uint32_t dir, family, draft;
} mt_lead_words;

/* Sends the message. True where there are other ranks: then mt_lead_agree waits until all have opened the checkpoint;
   false with a sentence where one could not. */
bool mt_lead_open(mt_device *dev, const mt_checkpoint *checkpoint, const mt_open_wish *wish);
bool mt_lead_agree(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_lead_close(mt_device *dev);

#endif
