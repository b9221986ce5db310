/* The byte-level alphabet of GPT-2: one printable character for each byte. Bytes that are printable in Latin-1 stand
   for themselves, the other 68 become U+0100 and up, in order. */
#ifndef MT_TEXT_BYTELEVEL_H
#define MT_TEXT_BYTELEVEL_H

#include <stddef.h>
#include <stdint.h>

#define MT_TOK_BYTE_CHAR_MAX 2 /* bytes of one character of the alphabet, at most */

/* Writes the character of a byte. Returns its length, 1 or 2 bytes. */
size_t mt_tok_byte_char(unsigned char byte, char out[MT_TOK_BYTE_CHAR_MAX]);

/* The byte of a character; -1: it is not in the alphabet. */
int mt_tok_char_byte(uint32_t c);

/* Writes the characters of `len` bytes, at most 2 * len bytes. Returns their length. */
size_t mt_tok_byte_chars(const char *bytes, size_t len, char *out);

#endif
