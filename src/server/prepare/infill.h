/* Prompts with a gap that the answer fills: the tokens by which models are told what stands before and behind it. */
#ifndef MT_SERVER_PREPARE_INFILL_H
#define MT_SERVER_PREPARE_INFILL_H

#include "api/ask.h"
#include "api/failure.h"
#include "server/fleet/served.h"

/* Makes the pieces of a prompt, in the ask's arena, and adds the tokens that end such answers to the ask's stop ids,
   once for all its prompts. False: *why. */
bool mt_infill_pieces(const mt_served *served, mt_ask *ask, const mt_ask_infill *gap, const mt_ask_piece **out,
                      size_t *count, mt_failure *why) MT_NODISCARD;

#endif
