/* Shared by the dialects for scores: pairs of a query and a document, and how well the document answers the query. */
#ifndef MT_API_PAIRS_H
#define MT_API_PAIRS_H

#include "api/answer.h"
#include "api/ask.h"
#include "api/failure.h"

/* Sets ask->prompts: each document with its query, of which there is one for all or one for each. Both are strings or
   objects with a "text", borrowed from the body. names: of the two fields, which may be missing. False: *why. */
bool mt_pairs_read(mt_ask *ask, const char *const names[2], mt_failure *why) MT_NODISCARD;

/* How many pairs an answer has, and the score of one: between 0 and 1, unless the call wants the raw value; of a model
   that makes embeddings, the cosine of the two. */
size_t mt_pairs_count(const mt_answer *answer);
double mt_pairs_score(const mt_answer *answer, size_t pair);

#endif
