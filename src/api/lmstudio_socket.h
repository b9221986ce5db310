/* The protocol of LM Studio's own SDKs, over a WebSocket: a client's message calls something ("rpcCall") or opens a
   channel ("channelCreate"), each with a number of the client's; what answers it has the same number.
   docs/lmstudio.md says what there is of it. */
#ifndef MT_API_LMSTUDIO_SOCKET_H
#define MT_API_LMSTUDIO_SOCKET_H

#include <jansson.h>

#include "api/answer.h"
#include "api/ask.h"
#include "api/failure.h"

/* Facts about a model, as LM Studio tells them. */
typedef struct mt_lmstudio_model {
    const char *name, *family, *size, *quantisation; /* size: number of parameters in short */
    uint64_t bytes;
    int64_t context, longest; /* tokens: as it is loaded, 0 where it is not; as it was trained */
    bool gguf, encoder, vision, tools;
} mt_lmstudio_model;

/* Appends an object that describes a model, and where it is loaded names it. */
void mt_lmstudio_model_write(mt_buf *out, const mt_lmstudio_model *model);

/* What a call has as its parameter, and a channel as what it is created with; NULL: it has none. */
const json_t *mt_lmstudio_parameter(const json_t *body);

/* The name of the model that a message is about; NULL: it names none. The body's. */
const json_t *mt_lmstudio_named(const json_t *body);

/* Opens what the server sends for the message of that body: a result, or a packet; both end with two braces. */
void mt_lmstudio_result(mt_buf *out, const json_t *body);
void mt_lmstudio_packet(mt_buf *out, const json_t *body);
/* Appends a line that closes the body's channel. */
void mt_lmstudio_close(mt_buf *out, const json_t *body);

/* Reads the history and the settings of a message into the ask, as a chat. False: *why. */
bool mt_lmstudio_read(mt_ask *ask, mt_failure *why) MT_NODISCARD;

void mt_lmstudio_error(mt_buf *out, const mt_failure *why); /* the object of an error */

/* LM Studio's word for why an answer has ended. */
const char *mt_lmstudio_stop(const mt_answer *answer, const mt_choice *choice);

#endif
