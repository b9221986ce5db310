/* Characters within JSON strings. */
#ifndef MT_BASE_JSON_ESCAPE_H
#define MT_BASE_JSON_ESCAPE_H

#include <stddef.h>

#define MT_JSON_ESCAPE_MAX 8 /* bytes for one character, NUL included */

/* Writes the JSON form of the character at s (len > 0 bytes may be read) to out, without quotes. Returns its length;
   *taken: how many bytes of s it stands for. A byte that is not UTF-8 becomes U+FFFD. */
size_t mt_json_escape(const char *s, size_t len, char out[MT_JSON_ESCAPE_MAX], size_t *taken);

#endif
