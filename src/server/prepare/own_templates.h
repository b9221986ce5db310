/* Chat templates that clients send with their requests, compiled and probed once each; a bounded number of the latest
   is kept. Each served model has such a cache. Any thread. */
#ifndef MT_SERVER_PREPARE_OWN_TEMPLATES_H
#define MT_SERVER_PREPARE_OWN_TEMPLATES_H

#include <stdatomic.h>

#include "base/arena.h"
#include "chat/chat_template.h"

typedef struct mt_own_templates mt_own_templates;

/* tokens: texts of special tokens such as bos_token for the templates, borrowed; may be NULL. Free with
   mt_own_templates_free. */
mt_own_templates *mt_own_templates_new(const json_t *tokens);
void mt_own_templates_free(mt_own_templates *own); /* NULL is fine; templates that arenas still hold stay */

/* The compiled templates of a text, valid until the arena is freed. stop: compiling gives up once it is true. NULL:
   *err. */
const mt_chat_templates *mt_own_templates_get(mt_own_templates *own, mt_arena *arena, const char *text, size_t len,
                                              const atomic_bool *stop, mt_error *err) MT_NODISCARD;

#endif
