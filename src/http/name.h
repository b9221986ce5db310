/* What a request is called in answers and logs: as its client says, or as the server makes up. */
#ifndef MT_HTTP_NAME_H
#define MT_HTTP_NAME_H

#include <stdbool.h>

#include "base/limits.h"

enum { MT_HTTP_NAME_SIZE = MT_LIMIT_HTTP_NAME + 1 };

/* Whether a client may call a request so: some visible characters that mean nothing in a header or a log. */
bool mt_http_name_valid(const char *name);

void mt_http_name_make(char name[MT_HTTP_NAME_SIZE]);

#endif
