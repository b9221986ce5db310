/* Bytes nobody can guess. */
#ifndef MT_API_RANDOM_H
#define MT_API_RANDOM_H

#include <stddef.h>

/* Never fails: a system without randomness ends the program with a sentence. */
void mt_random(void *out, size_t len);

#endif
