/* Gives a normalised chat to a template as its variables, made while the template is rendered. */
#ifndef MT_CHAT_CONTEXT_H
#define MT_CHAT_CONTEXT_H

#include "base/range.h"
#include "chat/profile.h"

/* A picture or video of a chat. */
typedef struct mt_chat_media {
    mt_chat_part_type type;
    const json_t *source; /* the part as it was sent */
    const char *place;    /* where it stands in the request, for errors */
    mt_range marker;      /* where its marker stands in the rendered text */
} mt_chat_media;

const char *mt_chat_media_name(mt_chat_part_type type); /* "images" or "videos" */

/* The texts that stand for a picture or a video in the prompt, for each type. From the model's processor. */
typedef struct mt_chat_marks {
    struct {
        const char *token;  /* what the template writes for it; NULL: the model has none */
        const char *marker; /* what is put into a message's text where the template accepts no parts; NULL: nothing */
    } of[MT_CHAT_PART_TYPES];
} mt_chat_marks;

/* The inputs of rendering a template. Everything is borrowed. */
typedef struct mt_chat_context {
    const mt_chat *chat;
    const mt_chat_profile *profile;
    const mt_chat_marks *marks;
    const json_t *tokens;   /* texts of special tokens: an object, or NULL */
    bool generation_prompt; /* the prompt ends with the beginning of the assistant's turn */
    size_t shown;           /* how many of the first messages the template sees */
} mt_chat_context;

/* How many messages the template sees at most: one with both content and calls becomes two, where the template needs
   that. */
size_t mt_chat_context_count(const mt_chat_context *context);

/* Lists pictures and videos in the order of the prompt, in the chat's arena. False: *err, a sentence for a 400: the
   template has no place for one. */
bool mt_chat_context_media(const mt_chat_context *context, mt_chat_media **media, size_t *count,
                           mt_error *err) MT_NODISCARD;

mt_template_fill mt_chat_context_fill; /* ctx is the mt_chat_context */

#endif
