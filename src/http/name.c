/* See name.h. */
#include "http/name.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "http/field.h"
#include "http/limits.h"

bool mt_http_name_valid(const char *name)
{
    size_t len = 0;

    for (; name[len] && len <= MT_LIMIT_HTTP_NAME; len++)
        if (!mt_http_is_token(name + len, 1) && !strchr(":/=@", name[len]))
            return false;
    return len > 0 && len <= MT_LIMIT_HTTP_NAME;
}

void mt_http_name_make(char name[MT_HTTP_NAME_SIZE])
{
    unsigned char random[12] = {0};
    size_t len = (size_t)snprintf(name, MT_HTTP_NAME_SIZE, "req_");

    (void)!getentropy(random, sizeof(random)); /* a name that is not unique does no harm */
    for (size_t i = 0; i < sizeof(random); i++)
        len += (size_t)snprintf(name + len, MT_HTTP_NAME_SIZE - len, "%02x", random[i]);
}
