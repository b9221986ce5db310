/* Shared by the files of llama.cpp's dialects, POST /completion and /infill. docs/llama.md says what becomes of each
   field. */
#ifndef MT_API_LLAMA_H
#define MT_API_LLAMA_H

#include "api/answer.h"

/* Readers of the bodies. They set ask->extra to the settings of the answer, which it tells. False: *why. */
bool mt_llama_read_completion(mt_ask *ask, mt_failure *why) MT_NODISCARD;
bool mt_llama_read_infill(mt_ask *ask, mt_failure *why) MT_NODISCARD;

#endif
