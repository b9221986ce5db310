/* The name of a request in answers and logs: the client's, or a random one. */
#ifndef MT_HTTP_NAME_H
#define MT_HTTP_NAME_H

#include <stdbool.h>

#include "http/limits.h"

enum { MT_HTTP_NAME_SIZE = MT_LIMIT_HTTP_NAME + 1 };

/* Whether a client's name is valid: visible characters without a meaning in headers or logs. */
bool mt_http_name_valid(const char *name);

/* Makes a random name. */
void mt_http_name_make(char name[MT_HTTP_NAME_SIZE]);

#endif
