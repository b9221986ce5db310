/* See field.h. */
#include "http/field.h"

#include <string.h>
#include <strings.h>

static bool is_token_byte(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool mt_http_is_token(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_token_byte((unsigned char)s[i]))
            return false;
    return len > 0;
}

bool mt_http_is_value_byte(unsigned char c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7F);
}

const char *mt_http_list_next(const char **list, size_t *len)
{
    const char *item = *list + strspn(*list, " \t,");

    *len = strcspn(item, " \t,");
    *list = item + *len;
    return *len ? item : NULL;
}

bool mt_http_list_has(const char *list, const char *item)
{
    size_t want = strlen(item), len;

    for (const char *one = mt_http_list_next(&list, &len); one; one = mt_http_list_next(&list, &len))
        if (len == want && strncasecmp(one, item, len) == 0)
            return true;
    return false;
}

/* Whether the parameters of an item say that its weight is 0: "q=0", "q=0.0". */
static bool weighs_nothing(const char *parameters, size_t len)
{
    for (const char *at = parameters, *end = parameters + len; at < end; at += strcspn(at, ";,") + 1) {
        at += strspn(at, " \t");
        if (strncasecmp(at, "q=", 2) == 0)
            return strspn(at + 2, "0.") == strcspn(at + 2, " \t;,");
    }
    return false;
}

bool mt_http_list_accepts(const char *list, const char *item)
{
    const size_t want = strlen(item);

    while (*list) {
        size_t name, len;

        list += strspn(list, " \t,");
        name = strcspn(list, " \t;,");
        len = strcspn(list, ",");
        if (name == want && name > 0 && strncasecmp(list, item, name) == 0)
            return !weighs_nothing(list + name, len - name);
        list += len;
    }
    return false;
}

const char *mt_http_field_get(const mt_http_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(headers[i].name, name) == 0)
            return headers[i].value;
    return NULL;
}
