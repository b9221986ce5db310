/* Chat templates that clients send, compiled and probed once each: a bounded number of the last ones is kept. Any
   thread. */
#ifndef MT_SERVER_OWN_TEMPLATES_H
#define MT_SERVER_OWN_TEMPLATES_H

#include <stdatomic.h>

#include "base/arena.h"
#include "chat/chat_template.h"

typedef struct mt_own_templates mt_own_templates;

/* tokens: bos_token and the like, borrowed; NULL: none. Free with mt_own_templates_free. */
mt_own_templates *mt_own_templates_new(const json_t *tokens);
void mt_own_templates_free(mt_own_templates *own); /* NULL is fine; arenas may still hold some of them */

/* The templates of a text, held until the arena is freed. stop: true once nobody waits for them any more. NULL with a
   sentence. */
const mt_chat_templates *mt_own_templates_get(mt_own_templates *own, mt_arena *arena, const char *text, size_t len,
                                              const atomic_bool *stop, mt_error *err) MT_NODISCARD;

#endif
