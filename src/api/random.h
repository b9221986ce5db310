/* Random bytes and ids that cannot be guessed. */
#ifndef MT_API_RANDOM_H
#define MT_API_RANDOM_H

#include <stddef.h>

/* Never fails: where the system gives no random numbers, the program ends. */
void mt_random(void *out, size_t len);

/* Makes a new id: the prefix, of which there may be 23 bytes, and 24 random letters and digits. */
#define MT_RANDOM_ID 48 /* bytes of an id, NUL included */
void mt_random_id(char id[MT_RANDOM_ID], const char *prefix);

#endif
