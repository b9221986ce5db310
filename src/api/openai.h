/* Shared by OpenAI's dialects of chat completions and completions; mt_openai_head is used for scores too, and
   MT_OPENAI_IDLE for responses. */
#ifndef MT_API_OPENAI_H
#define MT_API_OPENAI_H

#include "api/answer.h"

/* Opens the object of an answer: {"id":...,"object":...,"created":...,"model":... */
void mt_openai_head(mt_buf *out, const mt_answer *answer);

/* Opens a chunk of the stream, a server-sent event, in the same way. */
void mt_openai_open(mt_buf *out, const mt_answer *answer);

/* Closes a chunk about a choice, with usage so far where that is wanted. */
void mt_openai_close_chunk(mt_buf *out, const mt_answer *answer, const mt_choice *choice);

/* Appends the last events of a stream: usage where it is wanted, and [DONE]. */
void mt_openai_end(mt_answer *answer, mt_buf *out);

/* Appends an error in the middle of a stream, and [DONE]. */
void mt_openai_fail(mt_answer *answer, const mt_failure *why, mt_buf *out);

/* A comment of server-sent events, which clients skip. */
#define MT_OPENAI_IDLE ": still at work\n\n"

/* The members of mt_dialect that chat completions and completions have in common. */
#define MT_OPENAI_DIALECT                                                                       \
    .read = read, .chunk = chunk, .end = mt_openai_end, .whole = whole, .fail = mt_openai_fail, \
    .error = mt_failure_write, .idle = MT_OPENAI_IDLE

#endif
