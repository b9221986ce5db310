/* Classes of characters and conversion to lower case, as the tokenizers library has them. The functions take single
   code points. Texts in this folder are valid UTF-8 (encode.c repairs them). */
#ifndef MT_TEXT_CHARS_H
#define MT_TEXT_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_TOK_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* The length, 1 to 3 bytes, of an incomplete UTF-8 character at s; 0: no character begins so. In a text that is no
   UTF-8, max(1, this) bytes become one U+FFFD. */
size_t mt_tok_char_open(const char *s, size_t len);

/* The length of the longest beginning of s that is valid UTF-8. */
size_t mt_tok_valid(const char *s, size_t len);

bool mt_tok_is_space(uint32_t c);   /* the Unicode property White_Space */
bool mt_tok_is_numeric(uint32_t c); /* general categories N* of Unicode 16 */
/* P* of Unicode 8, and all ASCII characters that are neither letters nor digits */
bool mt_tok_is_punct(uint32_t c);
bool mt_tok_is_other(uint32_t c);   /* Cc, Cf, Co of Unicode 8 */
bool mt_tok_is_mark(uint32_t c);    /* M* of Unicode 9 */
bool mt_tok_is_overlay(uint32_t c); /* Mn of Unicode 8 */
bool mt_tok_is_word(uint32_t c);    /* \w: Alphabetic, M*, Nd, Pc and joiners of Unicode 16 */
bool mt_tok_is_ideograph(uint32_t c);

bool mt_tok_is_new(uint32_t c);   /* its categories in Unicode 16 differ from those in 14, mostly because it is new */
bool mt_tok_is_later(uint32_t c); /* it is not in Unicode 9, so that it neither decomposes nor combines */

#define MT_TOK_LOWER_MAX 2
/* Writes the lower case in Unicode 16. Returns the number of code points. */
size_t mt_tok_lower(uint32_t c, uint32_t out[MT_TOK_LOWER_MAX]);

#endif
