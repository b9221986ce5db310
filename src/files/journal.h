/* A file to which records are appended, one for each line of a batch that has its result. Records survive crashes from
   mt_journal_sync on; what was torn by one is cut off when the journal is opened. One thread at a time. */
#ifndef MT_FILES_JOURNAL_H
#define MT_FILES_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct mt_journal mt_journal;

typedef struct mt_journal_record {
    uint32_t line;    /* of which line it is the result */
    char kind;        /* what became of it, as the caller likes */
    const char *text; /* NULL where only the heads are read */
    size_t len;
} mt_journal_record;

/* Called for each record, the oldest first. False: no more is wanted. */
typedef bool mt_journal_reader(void *ctx, const mt_journal_record *record);

/* Opens a journal in a folder, or makes it, and tells the records that it has, with their texts. NULL: *err. */
mt_journal *mt_journal_open(int folder, const char *name, mt_journal_reader *reader, void *ctx,
                            mt_error *err) MT_NODISCARD;
void mt_journal_close(mt_journal *journal); /* what was not synced may be lost; NULL is fine */

/* Appends a record. False: *err; then the next mt_journal_sync leaves the journal as it was after the one before. */
bool mt_journal_add(mt_journal *journal, const mt_journal_record *record, mt_error *err) MT_NODISCARD;

/* All records are on disk. False: *err, and those since the last time are not in the journal. */
bool mt_journal_sync(mt_journal *journal, mt_error *err) MT_NODISCARD;

uint64_t mt_journal_bytes(const mt_journal *journal);

/* Tells the records of a journal that may be open for writing elsewhere, up to the first that is not whole. False:
   *err, it cannot be read, or the reader wants no more. */
bool mt_journal_read(int folder, const char *name, mt_journal_reader *reader, void *ctx, mt_error *err) MT_NODISCARD;

/* Bytes that a record with a text of so many takes. */
uint64_t mt_journal_size(size_t len);

#endif
