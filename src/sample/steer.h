/* Changes logits before a token is chosen: masks, biases and penalties. */
#ifndef MT_SAMPLE_STEER_H
#define MT_SAMPLE_STEER_H

#include <stdbool.h>

#include "sample/sampler.h"

/* False where the raw logits can be used unchanged. */
bool mt_steer_needed(const mt_sample_row *row);

/* The mask of all tokens that may be chosen of a row; false where that is every one. */
bool mt_steer_mask(uint32_t *mask, const mt_sample_row *row);

/* y[vocab] = the row's logits with masks, biases and penalties applied. */
void mt_steer(float *y, const mt_sample_row *row);

#endif
