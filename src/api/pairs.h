/* What calls for scores share: pairs of texts, and how well the second of each answers the first. */
#ifndef MT_API_PAIRS_H
#define MT_API_PAIRS_H

#include "api/answer.h"
#include "api/ask.h"
#include "api/failure.h"

/* Sets ask->prompts: each document of a list with its query, which is one for all or one for each. Texts, or objects
   with one. names: how the two fields are called. Texts are borrowed from the body. */
bool mt_pairs_read(mt_ask *ask, const char *const names[2], mt_failure *why) MT_NODISCARD;

/* How many pairs an answer has the scores of, and one of these: between 0 and 1 unless the call wants it as it is; of
   a model that makes embeddings, the cosine of the two. */
size_t mt_pairs_count(const mt_answer *answer);
double mt_pairs_score(const mt_answer *answer, size_t pair);

#endif
