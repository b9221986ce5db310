/* The grammar of header values: tokens, lists, blanks. */
#ifndef MT_HTTP_FIELD_H
#define MT_HTTP_FIELD_H

#include <stdbool.h>
#include <stddef.h>

#include "http/http.h"

bool mt_http_is_token(const char *s, size_t len); /* and not empty */

/* Whether a byte may stand in a header's value. */
bool mt_http_is_value_byte(unsigned char c);

/* The next item of a comma-separated list, and its length; *list moves behind it. NULL: there is none. */
const char *mt_http_list_next(const char **list, size_t *len);

/* Whether a comma-separated list has the item, ignoring case. */
bool mt_http_list_has(const char *list, const char *item);

/* The same for a list whose items may have weights, such as "gzip;q=0.5": an item of weight 0 does not count. */
bool mt_http_list_accepts(const char *list, const char *item);

/* The value of the first header of that name (in lower case); NULL: none. */
const char *mt_http_field_get(const mt_http_header *headers, size_t count, const char *name);

#endif
