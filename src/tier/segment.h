/* A segment: a file of records, which are appended and never changed. See segment.c. */
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
    uint64_t number; /* no other segment of the folder has the same */
    uint64_t nonce;  /* random: tells the records of this file from leftovers of an earlier one */
    uint64_t end;    /* where the next record begins; in a file opened for reading: its size */
} mt_segment;

/* Bytes of a file that a record with `size` bytes of parts takes. */
uint64_t mt_segment_room(uint64_t size);

/* Where the first record of a file begins. */
uint64_t mt_segment_begin(void);

/* Create a segment in a folder, for appending; or open one, for reading. False with a sentence; err->code is
   MT_E_INVALID where the file is no segment of this version. Close with mt_segment_close. */
bool mt_segment_create(mt_segment *s, int folder, const char *name, uint64_t number, mt_error *err) MT_NODISCARD;
bool mt_segment_open(mt_segment *s, int folder, const char *name, mt_error *err) MT_NODISCARD;
void mt_segment_close(mt_segment *s);

/* Appends a record; *at: where it begins. After a failure the file may hold anything from `end` on, and nothing may be
   appended any more; earlier records are good. */
bool mt_segment_append(mt_segment *s, const uint8_t key[MT_TIER_KEY], uint32_t kind, const mt_tier_part part[],
                       size_t parts, uint64_t *at, mt_error *err) MT_NODISCARD;

/* Finds the next record with a valid header from *at on, and moves *at behind it; bytes that are no record are skipped.
   False at the end of the file, or where it cannot be read. */
bool mt_segment_next(const mt_segment *s, uint64_t *at, mt_record *record);

typedef enum mt_segment_result {
    MT_SEGMENT_READ,
    MT_SEGMENT_OTHER,  /* the record there has another key, kind or size */
    MT_SEGMENT_BROKEN, /* there is no valid record, or its checksum is wrong */
    MT_SEGMENT_FAILED  /* the system reported an error */
} mt_segment_result;

/* Reads the record that begins at `at` into parts of the sizes with which it was written. */
mt_segment_result mt_segment_read(const mt_segment *s, uint64_t at, const uint8_t key[MT_TIER_KEY], uint32_t kind,
                                  const mt_tier_part part[], size_t parts) MT_NODISCARD;

#endif
