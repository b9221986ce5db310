/* Changing which models there are, by Ollama's API: off unless the operator allows it. */
#ifndef MT_SERVER_OLLAMA_H
#define MT_SERVER_OLLAMA_H

#include "api/failure.h"
#include "server/account.h"
#include "server/call.h"

#include <jansson.h>

/* Whether who calls may fetch and delete models: --allow-pull, and where keys are needed one of an admin's. */
bool mt_ollama_may(const mt_server *server, const mt_account *account, mt_failure *why) MT_NODISCARD;

/* The model that a body names, without the tag that says nothing. NULL with a 400; free with mt_free. */
char *mt_ollama_model(const json_t *body, mt_failure *why) MT_NODISCARD;

#endif
