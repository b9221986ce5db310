/* A file of records, which are appended and never changed. See segment.c. */
#ifndef MT_TIER_SEGMENT_H
#define MT_TIER_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "tier/record.h"

typedef struct mt_segment {
    int fd;
    uint64_t number; /* of which no other one of the folder has the same */
    uint64_t nonce;  /* drawn: a record of a file that was here before is none of this one */
    uint64_t end;    /* where the next record begins; or, of one that is only read, where the file ends */
} mt_segment;

/* Bytes of a file that parts of so many bytes take. */
uint64_t mt_segment_room(uint64_t size);

/* Where the first record of a file begins. */
uint64_t mt_segment_begin(void);

/* Makes a new file in a folder, for appending; or opens one that is there, for reading. False with a sentence; of a
   file that is not a segment of this version err->code is MT_E_INVALID. Close with mt_segment_close. */
bool mt_segment_create(mt_segment *s, int folder, const char *name, uint64_t number, mt_error *err) MT_NODISCARD;
bool mt_segment_open(mt_segment *s, int folder, const char *name, mt_error *err) MT_NODISCARD;
void mt_segment_close(mt_segment *s);

/* Appends a record and says where it is. Where that fails nobody knows what the file has from `end` on: nothing may be
   appended any more, what was before is good. */
bool mt_segment_append(mt_segment *s, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                       size_t parts, uint64_t *at, mt_error *err) MT_NODISCARD;

/* The next record whose header is sound, from *at on, which is moved behind it; what lies between is passed over. False
   at the end of the file, or where the file cannot be read. */
bool mt_segment_next(const mt_segment *s, uint64_t *at, mt_record *record);

typedef enum mt_segment_result {
    MT_SEGMENT_READ,
    MT_SEGMENT_OTHER,  /* there is another record, or one with parts of other sizes */
    MT_SEGMENT_BROKEN, /* there is none, or its parts are not what was written */
    MT_SEGMENT_FAILED  /* the system could not read it */
} mt_segment_result;

/* Reads the record that begins at `at` into parts of exactly the sizes it was written with. */
mt_segment_result mt_segment_read(const mt_segment *s, uint64_t at, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                                  const mt_tier_part part[], size_t parts) MT_NODISCARD;

#endif
