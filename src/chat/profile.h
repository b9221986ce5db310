/* What a chat template makes of messages, found out by rendering probes: how content has to look, where system messages
   may stand, and the like. Done once for a template. */
#ifndef MT_CHAT_PROFILE_H
#define MT_CHAT_PROFILE_H

#include <stdatomic.h>

#include "chat/chat.h"
#include "template/template.h"

/* How a template wants an image or a video among the parts of a message. */
typedef enum mt_chat_shape {
    MT_CHAT_SHAPE_NONE,  /* not at all */
    MT_CHAT_SHAPE_TYPE,  /* {"type": "image"} */
    MT_CHAT_SHAPE_FIELD, /* {"type": "image", "image": ""} */
    MT_CHAT_SHAPE_URL    /* {"type": "image_url", "image_url": {"url": ""}} */
} mt_chat_shape;

typedef struct mt_chat_profile {
    struct {
        bool string, parts;
    } content[MT_CHAT_ROLES];                /* what the content of a message may be */
    mt_chat_shape shape[MT_CHAT_PART_TYPES]; /* of MT_CHAT_IMAGE and MT_CHAT_VIDEO */
    bool system_in_place;                    /* a system message in mid-conversation comes out where it stands */
    bool no_system;                          /* a system message is refused, or does not come out */
    bool arguments_as_text;                  /* of tool calls: as JSON, since an object does not come out as one */
    bool broken_as_text;                     /* arguments that are no object may be a string where they stand */
    bool short_ids;                          /* of tool calls: nine letters and digits, nothing else is taken */
    bool call_without_content;               /* a message with tool calls shows them only when its content is null */
    bool reasoning_or_content;               /* a message with tool calls may have only one of them */
    bool reasoning_as_part;                  /* a message's reasoning is read as a part of type thinking */
    const char *reasoning;                   /* the name under which a message's reasoning is read */
    const char *thinking;                    /* the variable that turns thinking on and off */
    bool generation_after;                   /* the generation prompt follows all that is written for messages */
    bool generation_none;                    /* there never is one */
} mt_chat_profile;

/* tokens: variables such as bos_token, an object. stop may be NULL; once it is true, probes fail at once. What a probe
   cannot find out stays at what most templates want. */
void mt_chat_profile_probe(mt_chat_profile *profile, const mt_template *tpl, const json_t *tokens,
                           const atomic_bool *stop);

/* A part as a template of that shape wants it; a new reference. */
json_t *mt_chat_shape_part(mt_chat_shape shape, mt_chat_part_type type);

#endif
