/* The web pages (chat, dashboard) and their files: those below web/, which tools/embed.py compiles into the program.
   docs/web.md describes them. */
#ifndef MT_SERVER_ROUTES_WEB_H
#define MT_SERVER_ROUTES_WEB_H

#include <stdbool.h>
#include <stddef.h>

#include "http/http.h"

/* A file of the pages. */
typedef struct mt_web_file {
    const char *path;
    const char *type;            /* content type */
    const char *tag;             /* etag of its content */
    const unsigned char *packed; /* its content, compressed with gzip */
    size_t packed_size, size;    /* bytes: compressed, and plain */
    bool lasting;                /* the path changes with the content, so browsers may keep it for ever */
} mt_web_file;

extern const mt_web_file mt_web_files[];
extern const size_t mt_web_count;

struct mt_server;

/* Whether the request comes from a browser that wants a page, and pages are enabled. */
bool mt_web_wanted(const struct mt_server *server, const mt_http_request *request);

/* Answers with the page or file of the request's path. Needs no key: the content is public. */
extern mt_http_handler mt_web_get;

/* Whether an operator may have the page call that origin: "https://tools.example:8443" and nothing behind it. False:
   *err. */
bool mt_web_may_connect(const char *origin, mt_error *err) MT_NODISCARD;

#endif
