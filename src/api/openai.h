/* What the two dialects of OpenAI's completions share. */
#ifndef MT_API_OPENAI_H
#define MT_API_OPENAI_H

#include "api/answer.h"

/* {"id":...,"object":...,"created":...,"model":... without the closing brace. */
void mt_openai_head(mt_buf *out, const mt_answer *answer);

/* The same as the start of a server-sent event, and what ends one. */
void mt_openai_open(mt_buf *out, const mt_answer *answer);

/* Ends a chunk that tells of a choice, with what has been used until then where that is wanted. */
void mt_openai_close_chunk(mt_buf *out, const mt_answer *answer, const mt_choice *choice);

/* The last events of a stream: usage where it is wanted, and [DONE]. */
void mt_openai_end(mt_answer *answer, mt_buf *out);

/* An error in the middle of a stream, and [DONE]. */
void mt_openai_fail(mt_answer *answer, const mt_failure *why, mt_buf *out);

/* A comment, which readers of server-sent events skip. */
#define MT_OPENAI_IDLE ": still at work\n\n"

/* What the two have in common. */
#define MT_OPENAI_DIALECT                                                                       \
    .read = read, .chunk = chunk, .end = mt_openai_end, .whole = whole, .fail = mt_openai_fail, \
    .error = mt_failure_write, .idle = MT_OPENAI_IDLE

#endif
