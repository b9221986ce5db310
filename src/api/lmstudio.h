/* Members that LM Studio's REST API has beside OpenAI's: how an answer went, by which model and what computed it. */
#ifndef MT_API_LMSTUDIO_H
#define MT_API_LMSTUDIO_H

#include "api/answer.h"

/* Appends ,"stats":{..},"model_info":{..},"runtime":{..} of an answer that is done; its first choice counts. */
void mt_lmstudio_more(mt_buf *out, const mt_answer *answer);

#endif
