/* A normalised chat as the variables of a template: values are made of it while the template is rendered. */
#ifndef MT_CHAT_CONTEXT_H
#define MT_CHAT_CONTEXT_H

#include "base/range.h"
#include "chat/profile.h"

typedef struct mt_chat_media {
    mt_chat_part_type type;
    const json_t *source; /* the part as it was sent */
    size_t message, part; /* its indices in the request */
    mt_range place;       /* of its marker in the rendered text */
} mt_chat_media;

const char *mt_chat_media_name(mt_chat_part_type type); /* "images" or "videos" */

/* What stands for an image or a video, by type; of the model. */
typedef struct mt_chat_marks {
    struct {
        const char *token;  /* what a template writes in its place; NULL: the model takes none */
        const char *marker; /* put into the text of a message where the template takes no parts; NULL: nothing */
    } of[MT_CHAT_PART_TYPES];
} mt_chat_marks;

/* Everything is borrowed. */
typedef struct mt_chat_context {
    const mt_chat *chat;
    const mt_chat_profile *profile;
    const mt_chat_marks *marks;
    const json_t *tokens; /* bos_token and the like: an object, or NULL */
    bool generation_prompt;
    size_t shown; /* how many messages the template sees, from the first on */
} mt_chat_context;

/* How many messages there are for the template: one with content and calls is two where the template wants that. */
size_t mt_chat_context_count(const mt_chat_context *context);

/* Lists the images and videos in the order in which they stand in the prompt, in the chat's arena. Fails with a
   sentence for a 400 where the template has no place for one. */
bool mt_chat_context_media(const mt_chat_context *context, mt_chat_media **media, size_t *count,
                           mt_error *err) MT_NODISCARD;

mt_template_fill mt_chat_context_fill; /* whose ctx is a context */

#endif
