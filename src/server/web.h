/* The pages for people with a browser, and what these need: files below web/, which tools/embed.py puts into the
   program. docs/web.md says what they do. */
#ifndef MT_SERVER_WEB_H
#define MT_SERVER_WEB_H

#include <stdbool.h>
#include <stddef.h>

#include "http/http.h"

typedef struct mt_web_file {
    const char *path;
    const char *type;            /* content type */
    const char *tag;             /* what its content is called, as an etag */
    const unsigned char *packed; /* with gzip */
    size_t packed_size, size;
    bool lasting; /* the path names the content: it may be kept for ever */
} mt_web_file;

extern const mt_web_file mt_web_files[];
extern const size_t mt_web_count;

struct mt_server;

/* Whether it comes from a browser that wants something to look at, where the options allow it. */
bool mt_web_wanted(const struct mt_server *server, const mt_http_request *request);

/* The page of the request's path. Public: there is nothing in it that the source code does not have. */
extern mt_http_handler mt_web_get;

#endif
