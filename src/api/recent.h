/* The latest response of a WebSocket, kept in memory for as long as that is open: its client goes on from it by
   previous_response_id, even where nothing is to be stored. Any thread. */
#ifndef MT_API_RECENT_H
#define MT_API_RECENT_H

#include <jansson.h>

#include "base/room.h"

typedef struct mt_recent mt_recent;

/* Borrows room, which is charged for what is kept. Free with mt_recent_release. NULL is fine for hold, release, get and
   fail. */
mt_recent *mt_recent_new(mt_room *room);
mt_recent *mt_recent_hold(mt_recent *recent);
void mt_recent_release(mt_recent *recent);

/* Keeps the text of a JSON object in place of the one before; owns and frees text (mt_free). It leaves seven eighths of
   the room to others: where fewer would be left, nothing is kept. */
void mt_recent_put(mt_recent *recent, const char *id, char *text, size_t len);

/* The kept object where it has this id, a new reference; else NULL. */
json_t *mt_recent_get(mt_recent *recent, const char *id);

/* A request has failed: forgets the kept object where it was asked for since it was put. */
void mt_recent_fail(mt_recent *recent);

#endif
