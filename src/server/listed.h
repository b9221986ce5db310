/* Models as lists tell of them, in whatever API: what clients call one, and what it is. */
#ifndef MT_SERVER_LISTED_H
#define MT_SERVER_LISTED_H

#include "server/call.h"
#include "server/card.h"
#include "server/fleet.h"

typedef struct mt_listed {
    char name[256];
    const mt_card *card;
    mt_member_view view; /* of the model, or of the one that it is opened with */
    size_t context;      /* that it is served with, or its folder promises */
    bool writes, sees, calls, thinks, embeds;
} mt_listed;

/* All that clients may ask for, each under all its names. On a preparation thread. Free with mt_free. */
mt_listed *mt_listed_all(mt_server *server, size_t *count) MT_NODISCARD;

/* The one that is called so; false: there is none. */
bool mt_listed_find(mt_server *server, const char *name, mt_listed *out);

#endif
