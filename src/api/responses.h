/* What the files of the dialect of /v1/responses share. */
#ifndef MT_API_RESPONSES_H
#define MT_API_RESPONSES_H

#include "api/answer.h"
#include "api/ask.h"
#include "api/failure.h"

/* Fills the ask's chat, and reads what else the body says. ask->extra becomes
   {"echo": {what the answer repeats of the request},
    "tools": {a tool's name as the model knows it: {"name", "namespace"} or {"custom": true}},
    "summary": whether reasoning is told as a summary,
    "input": the JSON of the input, where the answer is to be kept, "previous": id}. */
bool mt_responses_read(mt_ask *ask, mt_failure *why);

/* Sets extra's "echo"; false where a field of the body that is only repeated is not what it should be. */
bool mt_responses_echo(const json_t *body, json_t *extra, mt_failure *why) MT_NODISCARD;

/* Puts the settings that the answer is sampled with into the echo, once the whole request has been read. */
void mt_responses_echo_settings(const mt_ask *ask);

/* Adds the items of the input, and those of the responses before it, to the ask's chat. */
bool mt_responses_items(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Fills a list with what is kept of a response and those before it, the oldest first: objects {"input", "previous",
   "response"}. */
bool mt_responses_chain(struct mt_store *store, const char *id, json_t *chain, mt_failure *why) MT_NODISCARD;

/* The items of the input of a response that is kept, each with an id, as clients are shown them; a new list. */
json_t *mt_responses_inputs(const json_t *kept);

bool mt_responses_missing(const char *id, mt_failure *why); /* false: it is not kept */

/* Which of them are wanted: behind an item (NULL: from the beginning), how many (NULL: 20), asc or desc (NULL). */
typedef struct mt_responses_page {
    const char *after, *limit, *order;
} mt_responses_page;

/* Appends a page of the items that a response was the answer to. */
bool mt_responses_list(struct mt_store *store, const char *id, const mt_responses_page *page, mt_buf *out,
                       mt_failure *why) MT_NODISCARD;

/* The name a model knows a tool of a namespace by, or of none: NUL-terminated, borrowed or in the ask's arena. */
mt_chat_text mt_responses_name(mt_ask *ask, const json_t *space, const json_t *name);

/* Appends an item of the output: the part of the speech at an index. filled: with what it says, else as it began. */
void mt_responses_item(mt_buf *out, const mt_answer *answer, size_t index, bool filled);
void mt_responses_item_id(mt_buf *out, const char *key, const mt_answer *answer, size_t index); /* "key":"id" */

/* Appends "logprobs":[..] of the tokens that wrote a part which is text, without the first so many tokens of the
   answer; nothing where it is something else. */
void mt_responses_logprobs(mt_buf *out, const mt_answer *answer, size_t index, size_t from);

/* The name by which the client knows the tool of a call. */
const char *mt_responses_tool(const mt_answer *answer, const mt_speech_part *part);

/* Of a call of a custom tool: NULL where the part is none, else the input, a new reference. */
json_t *mt_responses_custom(const mt_answer *answer, const mt_speech_part *part);

/* Appends the whole response, finished or not, or failed (why). */
void mt_responses_object(mt_buf *out, const mt_answer *answer, const mt_failure *why);

#endif
