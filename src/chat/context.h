/* Normalised messages as the variables of a template. */
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

typedef struct mt_chat_context {
    json_t *variables;        /* owned */
    mt_trusted_part *trusted; /* markers that stand in strings; in the chat's arena */
    size_t trusted_count;
    mt_chat_media *media; /* in the order in which they stand in the prompt; in the chat's arena */
    size_t media_count;
} mt_chat_context;

/* What stands for an image or a video, by type; of the model. */
typedef struct mt_chat_marks {
    struct {
        const char *token;  /* what a template writes in its place; NULL: the model takes none */
        const char *marker; /* put into the text of a message where the template takes no parts; NULL: nothing */
    } of[MT_CHAT_PART_TYPES];
} mt_chat_marks;

/* Free with mt_chat_context_free in any case. Fails with a sentence for a 400 where the template has no place for an
   image or a video. */
bool mt_chat_context_make(mt_chat_context *out, const mt_chat *chat, const mt_chat_profile *profile,
                          const mt_chat_marks *marks, const json_t *tokens, mt_error *err) MT_NODISCARD;
void mt_chat_context_free(mt_chat_context *context);

/* Paths of the strings in it that are as good as the template's own; for mt_template_options. */
extern const char *const mt_chat_trusted[];
extern const size_t mt_chat_trusted_count;

#endif
