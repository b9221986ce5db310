/* Reads where the text of a document comes from, in all forms in which clients send them:

       {"type": "file", "file": {"file_id": "..."}}                   or "file_data", with or without "filename"
       {"type": "input_file", "file_id": "..."}                       or "file_data", or "file_url"
       {"type": "document", "source": {"type": "file", "file_id": "..."}, "title": "..."}
       {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "..."}}
       {"type": "document", "source": {"type": "url", "url": "..."}}

   file_data is base64, or a data URL of such. */
#ifndef MT_CHAT_DOCUMENT_H
#define MT_CHAT_DOCUMENT_H

#include "chat/chat.h"

typedef struct mt_chat_document {
    mt_chat_text id;   /* of a file that the server keeps; data is NULL: there is a URL */
    mt_chat_text url;  /* data:, http: or https: */
    mt_chat_text name; /* data is NULL: not given */
} mt_chat_document;

/* Adds a part that gets its text later, from the document that source names. place: as of a medium. */
void mt_chat_add_document(mt_chat *chat, mt_chat_message *to, const json_t *source, const char *place);

bool mt_chat_has_documents(const mt_chat *chat); /* some that have no text yet */

/* part: of type TEXT, with a source. False: *err, a sentence for a 400 that names message and part. The document lives
   in the arena or is borrowed from the part. */
bool mt_chat_document_read(mt_chat_document *out, mt_arena *arena, const mt_chat_part *part,
                           mt_error *err) MT_NODISCARD;

/* Whether a URL is that of a picture, as far as it says. */
bool mt_chat_document_is_picture(const char *url) MT_NODISCARD;

#endif
