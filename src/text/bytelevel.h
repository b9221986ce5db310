/* The alphabet of byte-level tokenizers: a printable character for each byte. GPT-2 chose it: bytes that are
   printable in Latin-1 stand for themselves, the other 68 are U+0100 and up, in order. */
#ifndef MT_TEXT_BYTELEVEL_H
#define MT_TEXT_BYTELEVEL_H

#include <stddef.h>
#include <stdint.h>

#define MT_TOK_BYTE_CHAR_MAX 2 /* bytes of a character of the alphabet */

/* Writes the character of a byte; returns its bytes, 1 or 2. */
size_t mt_tok_byte_char(unsigned char byte, char out[MT_TOK_BYTE_CHAR_MAX]);

/* The byte of a character, or -1 when it is not in the alphabet. */
int mt_tok_char_byte(uint32_t c);

/* Writes the characters of len bytes, at most 2 * len; returns how many bytes they have. */
size_t mt_tok_byte_chars(const char *bytes, size_t len, char *out);

#endif
