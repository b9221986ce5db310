/* Shared by gguf.c, gguf_keys.c and gguf_shared.c only. */
#ifndef MT_WEIGHTS_GGUF_INTERNAL_H
#define MT_WEIGHTS_GGUF_INTERNAL_H

#include <time.h>

#include "base/arena.h"
#include "base/file.h"
#include "weights/gguf.h"
#include "weights/limits.h"

struct mt_gguf_array {
    mt_gguf_type type;
    size_t count;
    const uint8_t *data;     /* the elements; of strings, the whole part of the file that holds them */
    const uint64_t *strings; /* where in data each string begins, with its length */
};

typedef struct mt_gguf_key {
    mt_gguf_text name;
    mt_gguf_type type;
    const uint8_t *data; /* the value; of a string, with its length */
    mt_gguf_array array;
} mt_gguf_key;

/* The keys in the header of one file. */
typedef struct mt_gguf_keys {
    mt_gguf_key *list; /* sorted by name */
    size_t count;
} mt_gguf_keys;

/* The identity of a file, taken before it was mapped. */
typedef struct mt_gguf_stamp {
    char *path; /* owned */
    uint64_t device, inode, size;
    struct timespec modified;
} mt_gguf_stamp;

struct mt_gguf {
    mt_file *maps;         /* none where the memory is borrowed */
    mt_gguf_stamp *stamps; /* of the same files */
    size_t mapped;         /* length of maps and stamps */
    char *path;            /* that it is known by, while others may share it (gguf_shared.c) */
    size_t holders;        /* callers that have yet to close it */
    mt_gguf *next;
    size_t files; /* read so far */
    mt_arena *arena;
    mt_gguf_keys keys; /* of the first file */
    mt_tensor_info *tensors;
    size_t count, cap;
};

/* Reads a file from its beginning; what follows *at is unread. */
typedef struct mt_gguf_cursor {
    const uint8_t *at, *end;
    mt_arena *arena; /* for tables; borrowed */
    size_t elements; /* of all arrays so far */
    mt_error *err;
} mt_gguf_cursor;

/* Little-endian numbers; false with a sentence where the file ends before. */
bool mt_gguf_u32(mt_gguf_cursor *c, uint32_t *out);
bool mt_gguf_u64(mt_gguf_cursor *c, uint64_t *out);

/* The name of a key or a tensor: of 1 to MT_LIMIT_TENSOR_NAME bytes without control characters. */
bool mt_gguf_read_name(mt_gguf_cursor *c, const char *of, mt_gguf_text *out);

/* Reads `count` keys with their values. */
bool mt_gguf_read_keys(mt_gguf_cursor *c, uint64_t count, mt_gguf_keys *out);

/* Describes a file. False: it cannot be examined. */
bool mt_gguf_stamp_take(mt_gguf_stamp *stamp, const char *path);

/* The files at path, where a holder has them open and they are unchanged: for one more holder. Or NULL. */
mt_gguf *mt_gguf_shared_find(const char *path);

/* Lets others find it; the caller is its first holder. */
void mt_gguf_shared_add(mt_gguf *g, const char *path);

/* One holder less. True: it was the last, and the files are not in the list any more. */
bool mt_gguf_shared_drop(mt_gguf *g);

#endif
