/* Letters from other threads to the loop: bounded in number and in bytes. */
#ifndef MT_HTTP_MAILBOX_H
#define MT_HTTP_MAILBOX_H

#include "http/http.h"

typedef struct mt_http_mailbox mt_http_mailbox;

/* Watched by the server's loop. NULL when the process has no descriptor left. */
mt_http_mailbox *mt_http_mailbox_new(mt_http_server *server) MT_NODISCARD;
void mt_http_mailbox_close(mt_http_mailbox *mailbox); /* posts are refused from now on */
void mt_http_mailbox_free(mt_http_mailbox *mailbox);  /* with what is inside; NULL is fine */

#endif
