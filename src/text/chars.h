/* Characters as the stages of a tokenizer class them. Texts here are valid UTF-8: mt_tok_repair sees to it. */
#ifndef MT_TEXT_CHARS_H
#define MT_TEXT_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_TOK_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* Bytes at s, 1 to 3, that are the start of a character and are not followed by its rest; 0 when no character starts
   so. Where s does not begin with a whole character, max(1, this) bytes are one U+FFFD. */
size_t mt_tok_char_open(const char *s, size_t len);

/* The length of the longest start of s that is UTF-8. */
size_t mt_tok_valid(const char *s, size_t len);

bool mt_tok_is_space(uint32_t c);   /* White_Space */
bool mt_tok_is_numeric(uint32_t c); /* N* of Unicode 16 */
bool mt_tok_is_punct(uint32_t c);   /* P* of Unicode 8, and all that is neither letter nor digit in ASCII */
bool mt_tok_is_other(uint32_t c);   /* Cc, Cf, Co of Unicode 8 */
bool mt_tok_is_mark(uint32_t c);    /* M* of Unicode 9 */
bool mt_tok_is_overlay(uint32_t c); /* Mn of Unicode 8 */
bool mt_tok_is_word(uint32_t c);    /* \w: Alphabetic, M*, Nd, Pc, joiners of Unicode 16 */
bool mt_tok_is_ideograph(uint32_t c);

bool mt_tok_is_new(uint32_t c);   /* is in other classes in Unicode 16 than in 14, in most cases because it is new */
bool mt_tok_is_later(uint32_t c); /* came after Unicode 9, so that it neither decomposes nor combines */

#define MT_TOK_LOWER_MAX 2
size_t mt_tok_lower(uint32_t c, uint32_t out[MT_TOK_LOWER_MAX]); /* in Unicode 16; how many */

#endif
