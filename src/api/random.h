/* Random bytes that cannot be guessed. */
#ifndef MT_API_RANDOM_H
#define MT_API_RANDOM_H

#include <stddef.h>

/* Never fails: where the system gives no random numbers, the program ends. */
void mt_random(void *out, size_t len);

#endif
