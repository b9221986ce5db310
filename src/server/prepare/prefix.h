/* A name for the beginning of a conversation, by which load balancers send all requests of the conversation to one
   server: the SHA-256 of the first message's text in hexadecimal. Clients and balancers compute it as well, so it must
   never change. */
#ifndef MT_SERVER_PREPARE_PREFIX_H
#define MT_SERVER_PREPARE_PREFIX_H

#include <jansson.h>

#define MT_PREFIX_HEADER "x-motet-prefix" /* response header that tells it */
#define MT_PREFIX_SIZE (2 * 32 + 1)

/* The name for the body of a request; "" where it has no text. Texts of a message's parts are joined. A field that
   stands before the messages ("system", "instructions") is the first message. */
void mt_prefix_name(const json_t *body, char out[MT_PREFIX_SIZE]);

#endif
