/* Tells routers which pages the prefix cache of a model gains and loses, in the messages that vLLM publishes. The
   engine calls this; messages go out through publisher.h. See kv_events.c. */
#ifndef MT_EVENTS_KV_EVENTS_H
#define MT_EVENTS_KV_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "events/publisher.h"

typedef struct mt_tree mt_tree;             /* cache/tree.h */
typedef struct mt_tree_block mt_tree_block; /* cache/tree.h */

typedef struct mt_kv_events mt_kv_events;

/* How an event is written: as a MessagePack map, or as an array for older readers. */
typedef enum mt_kv_events_form { MT_KV_EVENTS_MAP, MT_KV_EVENTS_ARRAY } mt_kv_events_form;

/* topic: that the messages have. Borrows the publisher. Free with mt_kv_events_free. */
mt_kv_events *mt_kv_events_new(mt_publisher *publisher, const char *topic, mt_kv_events_form form) MT_NODISCARD;
void mt_kv_events_free(mt_kv_events *events);

/* Replaces "{host}" and "{model}" in a topic. Free the result with mt_free. */
char *mt_kv_events_topic(const char *given, const char *host, const char *model) MT_NODISCARD;

/* ---- any thread; events may be NULL ---- */

/* A page became resident in the prefix tree (here), or was evicted. The listener for mt_tree_tell. */
void mt_kv_events_tell(void *events, const mt_tree_block *block, bool here);

/* A page was stored in a tier; a page with this hash was dropped from a tier. */
typedef enum mt_kv_place { MT_KV_HOST, MT_KV_FILES } mt_kv_place;

void mt_kv_events_kept(mt_kv_events *events, const mt_tree_block *block, mt_kv_place place);
void mt_kv_events_dropped(mt_kv_events *events, uint64_t hash, mt_kv_place place);

/* Tells listeners to forget all pages. */
void mt_kv_events_clear(mt_kv_events *events);

/* Sends what was told since the last call. Where something could not be sent, tells listeners to forget all pages, and
   then all pages that the tree has. */
void mt_kv_events_flush(mt_kv_events *events, const mt_tree *tree);

#endif
