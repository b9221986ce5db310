/* The keys clients may come with. */
#ifndef MT_SERVER_KEYS_H
#define MT_SERVER_KEYS_H

#include "server/options.h"

typedef struct mt_keys {
    char **at;
    size_t count; /* 0: nobody needs one */
} mt_keys;

/* Each item is a key, or @FILE with one a line; empty lines and those that begin with # do not count. Free with
   mt_keys_free in any case. */
bool mt_keys_read(mt_keys *keys, const mt_option_list *list, mt_error *err) MT_NODISCARD;
void mt_keys_free(mt_keys *keys);

/* Whether a key (NULL: none came) opens the door. Takes as long for each wrong one. */
bool mt_keys_admit(const mt_keys *keys, const char *key);

#endif
