/* Rank 0 tells the other ranks which checkpoints it opens and closes (follow.h receives it). What rank 0 does with the
   models is told by models/relay.h. */
#ifndef MT_ENGINE_LEAD_H
#define MT_ENGINE_LEAD_H

#include "device/device.h"
#include "engine/opened.h"

/* The message about a checkpoint. The other ranks must open the same checkpoint, in a folder of the same name, for a
   device that gives the same bits. */
typedef struct mt_lead_words {
    /* what: kind of the message (models/relay.h); serial: number of the checkpoint, which is that of its device at rank
       0 (mt_device_serial) */
    uint32_t what, serial;
    uint32_t precision, kv_bits, fingerprint; /* of that device */
    uint32_t bytes[2];                        /* size of the weights: low, high word */
    /* number of words that follow for each text, padded with zeros; 0: none; family 0: what config.json says */
    uint32_t dir, family, draft;
} mt_lead_words;

/* Sends the message. True where there are other ranks and this is rank 0: then the others open the checkpoint
   meanwhile, and mt_lead_agree, which must follow, waits until all have done so; false with a sentence where one could
   not. mt_lead_close ends it for all, even where mt_lead_agree was false. */
bool mt_lead_open(mt_device *dev, const mt_checkpoint *checkpoint, const mt_open_wish *wish);
bool mt_lead_agree(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_lead_close(mt_device *dev);

#endif
