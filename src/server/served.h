/* A model that is open. Opened by the fleet's thread; unchanged from then on, and shared by all who have a reference to
   it. */
#ifndef MT_SERVER_SERVED_H
#define MT_SERVER_SERVED_H

#include "chat/chat_template.h"
#include "engine/engine.h"
#include "server/constraints.h"
#include "server/generation.h"
#include "server/options.h"
#include "server/pictures.h"
#include "server/target.h"

/* How a model is opened, beside what the options say. */
typedef struct mt_served_params {
    const mt_options *opt;
    const char *name; /* as clients are told; borrowed, as is the folder */
    const char *dir;
    bool first;               /* options that are about one model are about this one: templates, formats */
    bool beside;              /* encoders are opened with it (--embedding-model) */
    mt_device_params device;  /* with the host that all share */
    mt_engine_params *engine; /* what others decide of it: memory, turns, where it records */
    size_t work;              /* bytes of memory for a request that is being prepared */
} mt_served_params;

typedef struct mt_served {
    const char *name; /* as clients are told */

    mt_opened opened;                       /* without a checkpoint where there are encoders only */
    mt_tokenizer *tokenizer;                /* NULL: the folder has none */
    mt_chat_templates *templates;           /* NULL: the folder has none */
    mt_chat_templates *video_templates;     /* of conversations with videos; NULL: the same */
    struct mt_own_templates *own_templates; /* NULL: requests bring none of their own */
    bool allow_special;                     /* special tokens count in messages, too */
    mt_parse_formats formats;               /* the operator's; NULL where the template decides */
    mt_generation_config generation;
    mt_media_limits media;
    mt_picture_room room; /* the one thing that changes */
    size_t requests;      /* bytes of memory for requests; 0: it is not this one's to say */
    size_t work;          /* bytes of memory for one that is being prepared */
    mt_engine *engine;
    mt_constraints *constraints; /* NULL without a tokenizer */
    size_t context, vocab;
    mt_target targets[MT_LIMIT_OPTION_LIST + 1]; /* what makes vectors: encoders, and the model itself last */
    size_t target_count;
} mt_served;

/* Whether a client that asks for `model` means what is called so: Ollama's clients put a tag behind names that have
   none. */
bool mt_served_called(const char *model, const char *name);

/* Seconds after which a step is too long (--slow-step); 0: none is. */
double mt_served_slow_seconds(const mt_options *opt);

/* The last part of a folder's path, or "default" where that says nothing. Free with mt_free. */
char *mt_served_folder_name(const char *dir);

/* False with a sentence. Close with mt_served_close, either way. */
bool mt_served_open(mt_served *served, const mt_served_params *params, mt_error *err) MT_NODISCARD;
void mt_served_stop(mt_served *served);  /* ends the engine: events may still come from it during the call */
void mt_served_close(mt_served *served); /* a zeroed one is fine */

/* The encoder beside the model that clients call so, or NULL. */
const mt_target *mt_served_encoder(const mt_served *served, const char *model);

#endif
