/* A model that is loaded, with all that is needed to answer calls. Made by the fleet's thread; it does not change
   afterwards (except `room`), so threads with a reference to it read it without a lock. */
#ifndef MT_SERVER_FLEET_SERVED_H
#define MT_SERVER_FLEET_SERVED_H

#include "chat/chat_template.h"
#include "engine/engine.h"
#include "options/limits.h"
#include "options/options.h"
#include "server/fleet/target.h"
#include "server/prepare/constraints.h"
#include "server/prepare/generation.h"
#include "server/prepare/pictures.h"

/* How to load a model, beside what the options say. */
typedef struct mt_served_params {
    const mt_options *opt;
    const char *name; /* as clients know it; borrowed, as dir is */
    const char *dir;
    /* The options for a single model (--chat-template, --tool-format, ...) are about this one */
    bool first;
    bool beside;              /* the encoders of --embedding-model are loaded with it */
    mt_device_params device;  /* with the host's threads that all models share */
    mt_engine_params *engine; /* what the fleet decides: memory, turns, the recorder */
    size_t work;              /* bytes of memory for a request while it is prepared */
} mt_served_params;

typedef struct mt_served {
    const char *name; /* as clients know it */

    mt_opened opened;                   /* without a checkpoint where only encoders are served */
    mt_tokenizer *tokenizer;            /* NULL: the folder has none */
    mt_chat_templates *templates;       /* NULL: the folder has none */
    mt_chat_templates *video_templates; /* for conversations with videos; NULL: as templates */
    /* Templates that requests bring; NULL: --allow-chat-template is not given */
    struct mt_own_templates *own_templates;
    bool allow_special;       /* special tokens in the text of messages count as such */
    mt_parse_formats formats; /* the operator's choice; NULL where the template decides */
    mt_generation_config generation;
    mt_media_limits media;
    mt_picture_room room; /* for pictures of requests; the only part that changes */
    size_t requests;      /* bytes of memory for all requests; 0: the fleet decides */
    size_t work;          /* bytes of memory for one request while it is prepared */
    mt_engine *engine;
    mt_constraints *constraints;                 /* NULL without a tokenizer */
    size_t context;                              /* tokens that a prompt and its answer may have together */
    size_t vocab;                                /* number of token ids */
    mt_target targets[MT_LIMIT_OPTION_LIST + 1]; /* what makes vectors: encoders, then the model itself */
    size_t target_count;
} mt_served;

/* Whether a client that asks for `model` means the name: equal, or with the tag ":latest" that Ollama's clients add. */
bool mt_served_called(const char *model, const char *name);

/* Seconds after which a step counts as slow (--slow-step); 0: never. */
double mt_served_slow_seconds(const mt_options *opt);

/* The last part of a folder's path; "default" where that is "." or the like. Free with mt_free. */
char *mt_served_folder_name(const char *dir);

/* What the folder of a model that is not loaded says of it, and the operator: its default settings, and the text of its
   chat template. The text is "" where there is none or it cannot be read, and for encoders, for which *encodes is set.
   Free it with mt_free. first: as in mt_served_params. */
char *mt_served_describe(const char *dir, const mt_options *opt, bool first, mt_ask_defaults *defaults, bool *encodes);

/* Loads a model. False: *err. Close with mt_served_close either way. */
bool mt_served_open(mt_served *served, const mt_served_params *params, mt_error *err) MT_NODISCARD;
void mt_served_stop(mt_served *served);  /* ends the engine: its last events may come during the call */
void mt_served_close(mt_served *served); /* a zeroed one is fine */

#endif
