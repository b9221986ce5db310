/* Shared by the files of the dialect of /v1/responses. */
#ifndef MT_API_RESPONSES_H
#define MT_API_RESPONSES_H

#include "api/answer.h"
#include "api/ask.h"
#include "api/failure.h"

/* The beginning of "encrypted_content" of reasoning; the reasoning follows, as it is. Another server's is not read. */
#define MT_RESPONSES_CARRIED "motet:"

/* Reads a body: fills the ask's chat and its other members. ask->extra becomes
   {"echo": {fields of the request that the answer repeats},
    "tools": {the name by which the model knows a tool: {"name", "namespace"} or {"custom": true}},
    "summary": whether reasoning is written as a summary, "carried": whether it has "encrypted_content",
    "input": the JSON text of the input, where the answer is to be kept, "previous": id,
    "all": the JSON text of all items so far, where the ask came on a WebSocket}. False: *why. */
bool mt_responses_read(mt_ask *ask, mt_failure *why);

/* The same for a body that is to be compacted: `last` becomes the last message of the user. */
bool mt_responses_read_with(mt_ask *ask, const char *last, mt_failure *why);

/* Sets "echo" of extra. False: *why, a field that is only repeated has the wrong type. */
bool mt_responses_echo(const json_t *body, json_t *extra, mt_failure *why) MT_NODISCARD;

/* Adds the sampling settings to the echo, once the whole request is read. */
void mt_responses_echo_settings(const mt_ask *ask);

/* Adds the items of the input, after those of the previous responses, to the ask's chat; with *all they also become a
   new list of items, which may be NULL. False: *why. */
bool mt_responses_items(mt_ask *ask, json_t **all, mt_failure *why) MT_NODISCARD;

/* Appends to chain the kept objects {"input", "previous", "response"} of a response and of all before it, oldest first.
   recent may be NULL. False: *why, one is not kept. */
bool mt_responses_chain(struct mt_recent *recent, struct mt_store *store, const char *id, json_t *chain,
                        mt_failure *why) MT_NODISCARD;

/* A new list of the items that a kept response got as input, each with an id. */
json_t *mt_responses_inputs(const json_t *kept);

bool mt_responses_missing(const char *id, mt_failure *why); /* sets *why: not kept; returns false */

/* Which items of a list are wanted: those after an id (NULL: from the beginning), how many (NULL: 20), "asc" or "desc"
   (NULL). */
typedef struct mt_responses_page {
    const char *after, *limit, *order;
} mt_responses_page;

/* Appends a page of the items that a response answered. running: NULL where it is kept; else it still runs, and this is
   what will be kept of it, {"input","previous","response":{"id"}}. False: *why. */
bool mt_responses_list(struct mt_store *store, const char *id, json_t *running, const mt_responses_page *page,
                       mt_buf *out, mt_failure *why) MT_NODISCARD;

/* The name by which the model knows a tool of a namespace (space may be NULL). NUL-terminated, from the body or in the
   ask's arena. */
mt_chat_text mt_responses_name(mt_ask *ask, const json_t *space, const json_t *name);

/* Appends an item of the output: the speech part number `index`. filled: with its content, else as it began. */
void mt_responses_item(mt_buf *out, const mt_answer *answer, size_t index, bool filled);
void mt_responses_item_id(mt_buf *out, const char *key, const mt_answer *answer, size_t index); /* "key":"id" */

/* Appends "logprobs":[..] of the tokens of a part that is text, from token number `from` of the answer on; nothing
   where the part is no text. */
void mt_responses_logprobs(mt_buf *out, const mt_answer *answer, size_t index, size_t from);

/* The name by which the client knows the tool of a call. */
const char *mt_responses_tool(const mt_answer *answer, const mt_speech_part *part);

void mt_responses_usage(mt_buf *out, const mt_answer *answer); /* "usage":{..} */

/* Appends the response as it is now: running, finished, or failed (why not NULL). */
void mt_responses_object(mt_buf *out, const mt_answer *answer, const mt_failure *why);

#endif
