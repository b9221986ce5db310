/* A profile: what a chat template can do with messages, found out by rendering probes, once for each template: which
   forms of content it accepts, where system messages may stand, and the like. normalise.c and context.c follow it. */
#ifndef MT_CHAT_PROFILE_H
#define MT_CHAT_PROFILE_H

#include <stdatomic.h>

#include "chat/chat.h"
#include "template/template.h"

/* The form in which a template accepts a picture or a video as a part of a message. */
typedef enum mt_chat_shape {
    MT_CHAT_SHAPE_NONE,  /* not at all */
    MT_CHAT_SHAPE_TYPE,  /* {"type": "image"} */
    MT_CHAT_SHAPE_FIELD, /* {"type": "image", "image": ""} */
    MT_CHAT_SHAPE_URL    /* {"type": "image_url", "image_url": {"url": ""}} */
} mt_chat_shape;

typedef struct mt_chat_profile {
    struct {
        bool string, parts;
    } content[MT_CHAT_ROLES];                /* which forms of content messages of a role may have */
    mt_chat_shape shape[MT_CHAT_PART_TYPES]; /* of MT_CHAT_IMAGE and MT_CHAT_VIDEO */
    bool system_in_place;                    /* a system message within the conversation is shown where it stands */
    bool no_system;                          /* system messages are refused, or not shown */
    /* Arguments of calls are given as JSON text, since objects are not shown well */
    bool arguments_as_text;
    bool broken_as_text;       /* arguments that are no object may be given as a string */
    bool short_ids;            /* ids of calls must be nine letters and digits */
    bool call_without_content; /* calls are shown only where the message's content is null */
    bool reasoning_or_content; /* a message with calls may have reasoning or content, not both */
    bool reasoning_as_part;    /* reasoning is given as a part of type "thinking" */
    const char *reasoning;     /* the member of a message that has its reasoning */
    const char *thinking;      /* the variable that turns thinking on and off */
    /* The template fails for a tool without its "description", its "parameters", or the "properties" of its parameters.
       Where the client has left such a member out, the template gets an empty one. */
    bool needs_description, needs_parameters, needs_properties;
    bool flat_tools;       /* the template reads a tool's name from the tool itself, and not from its "function" */
    bool generation_after; /* the generation prompt follows all that the loop over messages writes */
    bool generation_none;  /* the template writes no generation prompt */
} mt_chat_profile;

/* tokens: texts of special tokens, an object. stop: once true, probes fail at once; may be NULL. What probes cannot
   find out keeps the value that suits most templates. */
void mt_chat_profile_probe(mt_chat_profile *profile, const mt_template *tpl, const json_t *tokens,
                           const atomic_bool *stop);

/* A picture or video as a part of that form; a new reference. */
json_t *mt_chat_shape_part(mt_chat_shape shape, mt_chat_part_type type);

#endif
