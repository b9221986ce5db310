/* See json_escape.h. */
#include "base/json_escape.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

size_t mt_json_escape(const char *s, size_t len, char out[MT_JSON_ESCAPE_MAX], size_t *taken)
{
    static const char named[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const char *name;

    *taken = mt_utf8_length(s, len);
    if (*taken == 0) {
        *taken = 1;
        return mt_utf8_encode(0xFFFD, out);
    }
    name = *s ? strchr(named, *s) : NULL;
    if (name) {
        out[0] = '\\';
        out[1] = letters[name - named];
        return 2;
    }
    if ((unsigned char)*s < 0x20 || *s == 0x7F)
        return (size_t)snprintf(out, MT_JSON_ESCAPE_MAX, "\\u%04x", (unsigned)*s);
    memcpy(out, s, *taken);
    return *taken;
}
