/* Models as lists show them to clients, in any API. Used by models.c and ollama.c. */
#ifndef MT_SERVER_LISTED_H
#define MT_SERVER_LISTED_H

#include "server/call.h"
#include "server/card.h"
#include "server/fleet.h"

typedef struct mt_listed {
    char name[256];      /* what clients call it */
    const mt_card *card; /* what its folder says; lives as long as the server */
    /* Of the model, or of the single model that this encoder is loaded with */
    mt_member_view view;
    size_t context; /* tokens that it can read */
    /* Writes text, accepts pictures, calls tools, reasons, makes embeddings */
    bool writes, sees, calls, thinks, embeds;
} mt_listed;

/* All models, once for each name that clients may use. On a preparation thread, since it reads files. Free with
   mt_free. */
mt_listed *mt_listed_all(mt_server *server, size_t *count) MT_NODISCARD;

/* The model of that name; false: there is none. */
bool mt_listed_find(mt_server *server, const char *name, mt_listed *out);

#endif
