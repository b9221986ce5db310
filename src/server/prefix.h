/* What a conversation begins with, as a name by which balancers send all of it to one server: the SHA-256 of the first
   message's text, in hexadecimal digits. Clients and balancers compute it too, so it must never change. */
#ifndef MT_SERVER_PREFIX_H
#define MT_SERVER_PREFIX_H

#include <jansson.h>

#define MT_PREFIX_HEADER "x-motet-prefix"
#define MT_PREFIX_SIZE (2 * 32 + 1)

/* Of the body of a call; "" where that has no text. The texts of a message's parts count as one. What a dialect has
   besides messages and stands before them ("system", "instructions") is the first one. */
void mt_prefix_name(const json_t *body, char out[MT_PREFIX_SIZE]);

#endif
