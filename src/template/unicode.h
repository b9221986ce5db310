/* Classes, white space and case of characters, as Python's str has them. */
#ifndef MT_TEMPLATE_UNICODE_H
#define MT_TEMPLATE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_TPL_CASE_MAX 3 /* characters that one may become when its case is changed */

/* As Python's str.isspace and so on for a string of one character, where nothing else is said. */
bool mt_tpl_is_space(uint32_t c);
bool mt_tpl_is_line_break(uint32_t c); /* where str.splitlines splits */
bool mt_tpl_is_alpha(uint32_t c);
bool mt_tpl_is_decimal(uint32_t c);
int mt_tpl_decimal_value(uint32_t c); /* of a decimal digit: 0 to 9 */
bool mt_tpl_is_digit(uint32_t c);
bool mt_tpl_is_numeric(uint32_t c);
bool mt_tpl_is_alnum(uint32_t c);
bool mt_tpl_is_word(uint32_t c); /* \w of a regular expression */
bool mt_tpl_is_lower(uint32_t c);
bool mt_tpl_is_upper(uint32_t c);
bool mt_tpl_is_title(uint32_t c);          /* of category Lt only, unlike str.istitle */
bool mt_tpl_is_cased(uint32_t c);          /* lower, upper or title */
bool mt_tpl_is_case_ignorable(uint32_t c); /* skipped when neighbours of a sigma are looked for, as an apostrophe */
bool mt_tpl_is_printable(uint32_t c);
/* First and further characters of a name: of a variable in a template, and for str.isidentifier. */
bool mt_tpl_is_name_start(uint32_t c);
bool mt_tpl_is_name(uint32_t c);

/* A character in another case, by Unicode's full mappings: write 1 to MT_TPL_CASE_MAX characters and return how many.
   mt_tpl_to_lower knows no neighbours: the caller must see to the final form of a sigma. */
size_t mt_tpl_to_upper(uint32_t c, uint32_t out[MT_TPL_CASE_MAX]);
size_t mt_tpl_to_lower(uint32_t c, uint32_t out[MT_TPL_CASE_MAX]);
size_t mt_tpl_to_title(uint32_t c, uint32_t out[MT_TPL_CASE_MAX]);
size_t mt_tpl_to_folded(uint32_t c, uint32_t out[MT_TPL_CASE_MAX]);

#endif
