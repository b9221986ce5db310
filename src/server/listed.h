/* Models as lists tell of them, in whatever API: what clients call one, and what it is. */
#ifndef MT_SERVER_LISTED_H
#define MT_SERVER_LISTED_H

#include "server/call.h"
#include "server/card.h"
#include "server/served.h"

typedef struct mt_listed {
    const char *name;
    const mt_card *card;
    size_t context; /* that it is served with */
    bool writes, sees, calls, thinks, embeds;
} mt_listed;

enum { MT_LISTED_MOST = 2 * MT_LIMIT_OPTION_LIST + 1 };

/* All that clients may ask for, each under all its names. On a preparation thread. */
size_t mt_listed_all(mt_server *server, mt_listed out[MT_LISTED_MOST]);

/* The one that is called so; false: there is none. */
bool mt_listed_find(mt_server *server, const char *name, mt_listed *out);

#endif
