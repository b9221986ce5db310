/* Texts and pictures of PDFs that were read: a document that is sent again, in any request, is not read again. Bounded
   in bytes; the least recently used entry goes first. Any thread may call. */
#ifndef MT_SERVER_PREPARE_RENDERED_H
#define MT_SERVER_PREPARE_RENDERED_H

#include <pthread.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/room.h"
#include "media/digest.h"

typedef struct mt_rendered_entry mt_rendered_entry;

typedef struct mt_rendered_stats {
    size_t count, bytes;   /* kept now */
    uint64_t read, reused; /* documents that were read, and that were there already */
    uint64_t pages;        /* of those that were read */
} mt_rendered_stats;

typedef struct mt_rendered {
    pthread_mutex_t lock; /* of all fields below */
    mt_room *room;        /* what the bytes are taken from; borrowed */
    mt_rendered_entry *newest;
    mt_rendered_stats stats;
} mt_rendered;

/* Free with mt_rendered_free, when no other thread uses it. */
void mt_rendered_init(mt_rendered *rendered, mt_room *room);
void mt_rendered_free(mt_rendered *rendered);

/* The key of the text of a PDF (side 0), or of the pictures of its first `pages` pages with that side. */
void mt_rendered_key(uint8_t key[MT_DIGEST_BYTES], const mt_buf *bytes, uint32_t pages, uint32_t side);

/* Appends the entry of a key. False: there is none. */
bool mt_rendered_find(mt_rendered *rendered, const uint8_t key[MT_DIGEST_BYTES], mt_buf *out);
/* Keeps an entry where there is room, and counts a document as read. */
void mt_rendered_keep(mt_rendered *rendered, const uint8_t key[MT_DIGEST_BYTES], const mt_buf *what, size_t pages);

mt_rendered_stats mt_rendered_look(mt_rendered *rendered);

#endif
