/* What the prefix tree of a model learns and forgets, told to routers in the messages that vLLM publishes. See
   kv_events.c. */
#ifndef MT_EVENTS_KV_EVENTS_H
#define MT_EVENTS_KV_EVENTS_H

#include "cache/tree.h"
#include "events/publisher.h"

typedef struct mt_kv_events mt_kv_events;

typedef enum mt_kv_events_form { MT_KV_EVENTS_MAP, MT_KV_EVENTS_ARRAY } mt_kv_events_form;

/* Borrows the publisher. Free with mt_kv_events_free. */
mt_kv_events *mt_kv_events_new(mt_publisher *publisher, const char *topic, mt_kv_events_form form) MT_NODISCARD;
void mt_kv_events_free(mt_kv_events *events);

/* "{host}" and "{model}" of a topic become what they are here. Free with mt_free. */
char *mt_kv_events_topic(const char *given, const char *host, const char *model) MT_NODISCARD;

/* ---- any thread; events may be NULL ---- */

/* A page is in the tree, or is there no more: what mt_tree_tell is given. */
void mt_kv_events_tell(void *events, const mt_tree_block *block, bool here);

/* A page is kept in the host's memory or in files; a page, by its hash, is not kept there any more. */
typedef enum mt_kv_place { MT_KV_HOST, MT_KV_FILES } mt_kv_place;

void mt_kv_events_kept(mt_kv_events *events, const mt_tree_block *block, mt_kv_place place);
void mt_kv_events_dropped(mt_kv_events *events, uint64_t hash, mt_kv_place place);

/* Nothing is there any more. */
void mt_kv_events_clear(mt_kv_events *events);

/* Sends what was told since. Where something could not be sent, those who listen are told to forget everything, and
   then all that the tree has. */
void mt_kv_events_flush(mt_kv_events *events, const mt_tree *tree);

#endif
