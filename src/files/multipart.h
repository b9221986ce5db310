/* Reads a body of multipart/form-data (RFC 7578) as it comes, in pieces of any length: each part is told by its head,
   its data in pieces, and its end. */
#ifndef MT_FILES_MULTIPART_H
#define MT_FILES_MULTIPART_H

#include "base/buf.h"
#include "base/error.h"
#include "files/limits.h"

#define MT_MULTIPART_BOUNDARY 70 /* most bytes of a boundary, by RFC 2046 */

/* The head of a part. */
typedef struct mt_multipart_head {
    char name[64];                         /* of the field */
    bool file;                             /* it has a file name */
    char filename[MT_LIMIT_FILE_NAME + 1]; /* without folders */
    char type[96];                         /* its content type; "": not given */
} mt_multipart_head;

/* Callbacks for the parts of a body. One that returns false with *err ends the parsing. */
typedef struct mt_multipart_sink {
    bool (*begin)(void *user, const mt_multipart_head *head, mt_error *err);
    bool (*data)(void *user, const char *data, size_t len, mt_error *err);
    bool (*end)(void *user, mt_error *err); /* of the part */
} mt_multipart_sink;

typedef enum mt_multipart_state {
    MT_MULTIPART_PREAMBLE, /* before the first boundary */
    MT_MULTIPART_BEHIND,   /* behind a boundary: the end, or a part's head follows */
    MT_MULTIPART_HEAD,
    MT_MULTIPART_DATA,
    MT_MULTIPART_OVER /* behind the last boundary, where everything is ignored */
} mt_multipart_state;

typedef struct mt_multipart {
    mt_multipart_state state;
    const mt_multipart_sink *sink;
    void *user;
    char mark[MT_MULTIPART_BOUNDARY + 5]; /* what ends a part: CR, LF, two dashes and the boundary */
    size_t mark_len;
    size_t parts;
    mt_buf pending; /* what has come and is not read yet */
} mt_multipart;

/* type: the body's content type, which names the boundary. False: *err, it is no multipart/form-data. Free with
   mt_multipart_free in any case. */
bool mt_multipart_init(mt_multipart *m, const char *type, const mt_multipart_sink *sink, void *user,
                       mt_error *err) MT_NODISCARD;
void mt_multipart_free(mt_multipart *m);

bool mt_multipart_add(mt_multipart *m, const char *data, size_t len, mt_error *err) MT_NODISCARD;
bool mt_multipart_end(mt_multipart *m, mt_error *err) MT_NODISCARD; /* the body is over: false where it is cut off */

#endif
