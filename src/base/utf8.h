/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef MT_BASE_UTF8_H
#define MT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define MT_UTF8_MAX 4 /* bytes of one character */

/* Bytes (1 to 4) of the valid character at s, of which len bytes may be read; 0 when there is none. */
size_t mt_utf8_length(const char *s, size_t len);

/* Writes a code point (not a surrogate, at most U+10FFFF) to out; returns its bytes. */
size_t mt_utf8_encode(uint32_t code, char out[MT_UTF8_MAX]);

#endif
