/* Fetching and deleting models by Ollama's API, which is off unless the operator allows it. Shared by ollama.c and
   pull.c. */
#ifndef MT_SERVER_OLLAMA_H
#define MT_SERVER_OLLAMA_H

#include "api/failure.h"
#include "server/account.h"
#include "server/call.h"

#include <jansson.h>

/* Whether the caller may fetch and delete models: with --allow-pull, and where keys are needed, an admin's key. False:
   *why. */
bool mt_ollama_may(const mt_server *server, const mt_account *account, mt_failure *why) MT_NODISCARD;

/* The name of the model in a body, without the tag ":latest". NULL: *why. Free with mt_free. */
char *mt_ollama_model(const json_t *body, mt_failure *why) MT_NODISCARD;

#endif
