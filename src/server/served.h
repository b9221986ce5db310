/* The model that is served, and what clients call it. Opened by a thread of its own while the server listens already;
   unchanged from then on, and shared by all threads. */
#ifndef MT_SERVER_SERVED_H
#define MT_SERVER_SERVED_H

#include "chat/chat_template.h"
#include "engine/engine.h"
#include "server/constraints.h"
#include "server/generation.h"
#include "server/options.h"
#include "server/pictures.h"
#include "server/target.h"

typedef struct mt_served {
    char *name; /* as clients are told */
    const mt_option_list *aliases;
    bool any_model;  /* whatever they call it */
    int64_t created; /* seconds since 1970 */

    mt_opened opened;                       /* without a checkpoint where there are encoders only */
    mt_tokenizer *tokenizer;                /* NULL: the folder has none */
    mt_chat_templates *templates;           /* NULL: the folder has none */
    struct mt_own_templates *own_templates; /* NULL: requests bring none of their own */
    bool allow_special;                     /* special tokens count in messages, too */
    mt_parse_formats formats;               /* the operator's; NULL where the template decides */
    mt_generation_config generation;
    mt_media_limits media;
    mt_picture_room room; /* the one thing that changes */
    size_t requests;      /* bytes of memory for requests */
    size_t work;          /* bytes of these for one that is being prepared */
    mt_engine *engine;
    mt_constraints *constraints; /* NULL without a tokenizer */
    size_t context, vocab;
    mt_target targets[MT_LIMIT_OPTION_LIST + 1]; /* what makes vectors: encoders, and the model itself last */
    size_t target_count;
} mt_served;

/* The names only, which are known at once. Free with mt_served_close. */
void mt_served_name(mt_served *served, const mt_options *opt);

/* What can be known of the folder in a moment: that it is there, holds a model of a known family and all its files, and
   fits into --memory. False with a sentence. */
bool mt_served_look(const mt_options *opt, mt_error *err) MT_NODISCARD;

/* All the rest. False with a sentence. */
bool mt_served_open(mt_served *served, const mt_options *opt, mt_error *err) MT_NODISCARD;
void mt_served_stop(mt_served *served);  /* ends the engine: events may still come from it during the call */
void mt_served_close(mt_served *served); /* a zeroed one is fine */

/* Whether a call for this model is meant for us: the name, an alias or "default"; NULL is. */
bool mt_served_answers(const mt_served *served, const char *model);

/* The encoder beside the model that clients call so, or NULL. */
const mt_target *mt_served_encoder(const mt_served *served, const char *model);

#endif
