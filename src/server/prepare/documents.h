/* Files that messages refer to: those that clients keep on the server, and documents. The text of a document becomes a
   part of the message; a PDF also becomes pictures of its pages. Called by preparation threads of the lane for
   pictures, which may wait for the disk and the network. */
#ifndef MT_SERVER_PREPARE_DOCUMENTS_H
#define MT_SERVER_PREPARE_DOCUMENTS_H

#include "server/prepare/pictures.h"

/* Puts the texts of all documents into the parts that stand for them (mt_chat_add_document); parts that have their text
   already stay as they are. processor: of a model that sees; else NULL. False: *err. */
bool mt_documents_fill(mt_chat *chat, const mt_media_limits *limits, const mt_processor *processor, mt_prep *prep,
                       mt_error *err) MT_NODISCARD;

/* The bytes of a file that the account keeps here, at most `most`; the watch is asked for memory. name: gets what it is
   called; may be NULL. False: *err. Free bytes with mt_buf_free in any case. */
bool mt_documents_load(const mt_prep *prep, const char *id, size_t len, size_t most, const mt_media_watch *watch,
                       mt_buf *bytes, mt_chat_text *name, mt_arena *arena, mt_error *err) MT_NODISCARD;

#endif
