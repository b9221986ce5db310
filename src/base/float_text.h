/* Floating-point numbers as text. */
#ifndef MT_BASE_FLOAT_TEXT_H
#define MT_BASE_FLOAT_TEXT_H

#define MT_FLOAT_TEXT 48 /* bytes of the longest, NUL included */

/* Writes the shortest text that reads back as d, in Python's style: 1.0, 1e+16, nan. */
void mt_float_text(double d, char out[MT_FLOAT_TEXT]);

#endif
