/* Models as lists show them to clients, in any API. */
#ifndef MT_SERVER_ROUTES_LISTED_H
#define MT_SERVER_ROUTES_LISTED_H

#include "server/calls/call.h"
#include "server/fleet/card.h"
#include "server/fleet/fleet.h"

typedef struct mt_listed {
    char name[512];      /* what clients call it, cut off where it is longer */
    bool created;        /* was created by a client of the model that the view is of (created.h) */
    bool beside;         /* an encoder that is loaded together with a model, whose state the view has */
    mt_member_view view; /* the state of the model, and its abilities */
    const mt_card *card; /* facts from the model's folder; lives as long as the server. NULL: it was not wanted */
} mt_listed;

/* All models, once for each name that clients may use. cards: with their cards; then on a preparation thread, since
   files are read. Free with mt_free. */
mt_listed *mt_listed_all(mt_server *server, bool cards, size_t *count) MT_NODISCARD;

/* The model of that name; false: there is none. cards: as above. */
bool mt_listed_find(mt_server *server, const char *name, bool cards, mt_listed *out) MT_NODISCARD;

/* A member under one of its names, without a card. */
mt_listed mt_listed_member(const mt_member_view *view, const char *name);

/* Appends "capabilities":[..]. ollama: those words alone that Ollama has, and "completion" also where the folder was
   not read yet. */
void mt_listed_write_capabilities(const mt_listed *model, bool ollama, mt_buf *out);

/* Appends what Gemini's API says of a model: "name":.., and what follows; and "models":[..] of several. In gemini.c. */
void mt_listed_write_gemini(const mt_listed *model, mt_buf *out);
void mt_listed_write_models(const mt_listed *all, size_t count, mt_buf *out);

#endif
