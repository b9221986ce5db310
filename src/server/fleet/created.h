/* Models that clients have created of others (Ollama's /api/create and /api/copy): a name, the model it is made from,
   and what a request for it begins with: settings, a system message, messages, a chat template. They compute with the
   weights of the other model. Each is a file of JSON in a folder of the hub's cache, written whole before it has its
   name, and read when the server starts. Any thread. */
#ifndef MT_SERVER_FLEET_CREATED_H
#define MT_SERVER_FLEET_CREATED_H

#include <pthread.h>
#include <stddef.h>

#include <jansson.h>

#include "api/ask.h"
#include "api/failure.h"
#include "base/compiler.h"
#include "base/error.h"
#include "hub/limits.h"
#include "server/limits.h"

struct mt_fleet;
struct mt_member;
typedef struct mt_created_entry mt_created_entry;

typedef struct mt_created {
    pthread_mutex_t file; /* held while files are changed; taken before `lock` */
    pthread_mutex_t lock; /* of the list, held for moments only, since the io thread takes it */
    char *folder;         /* NULL: nothing can be created, since there is no cache; never changes */
    mt_created_entry *at; /* in the order of their names */
    size_t count, cap;
} mt_created;

/* Members of a created model's JSON: "name", "from", and where given "parameters" (Ollama's names), "system",
   "messages", "template", "license". */
void mt_created_open(mt_created *all, const char *cache); /* cache: the hub's folder; NULL: there is none */
void mt_created_close(mt_created *all);

/* The created model of that name, which may have the tag ":latest". NULL: there is none. Free with json_decref. */
json_t *mt_created_get(mt_created *all, const char *name) MT_NODISCARD;

/* Unloads the model that one is made from, or the model of that name itself, as mt_fleet_unload does. */
struct mt_member *mt_created_unload(mt_created *all, struct mt_fleet *fleet, const char *name);

/* The names of all. Free with mt_free, in one piece. */
typedef struct mt_created_name {
    char name[MT_LIMIT_CREATED_NAME + 1], from[MT_LIMIT_HUB_NAME];
} mt_created_name;
mt_created_name *mt_created_list(mt_created *all, size_t *count) MT_NODISCARD;

/* Whether a name may be given to one: letters, digits, and . _ - : / that do not stand at its ends. */
bool mt_created_name_ok(const char *name);

/* Keeps a model under its "name", in place of an earlier one. False: *err. */
bool mt_created_put(mt_created *all, const json_t *model, mt_error *err) MT_NODISCARD;

/* Forgets a model. False: *err, or (MT_OK) there is none of that name. */
bool mt_created_remove(mt_created *all, const char *name, mt_error *err) MT_NODISCARD;

/* Sets the ask's settings to those of the model, before its dialect reads the body, whose own count more. False:
   *why. */
bool mt_created_settings(const json_t *model, mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Puts the model's system message and messages before those of the ask's chat, which the dialect has read; a chat that
   begins with a system message keeps its own, and one that goes on with an earlier conversation gets neither. The
   model's chat template counts where the body has none. The ask
   refers to the model. False: *why. */
bool mt_created_chat(const json_t *model, mt_ask *ask, mt_failure *why) MT_NODISCARD;

#endif
