/* The keys clients may come with, and whose they are. */
#ifndef MT_SERVER_KEYS_H
#define MT_SERVER_KEYS_H

#include <stdatomic.h>

#include "server/account.h"
#include "server/options.h"

typedef struct mt_api_key {
    uint8_t digest[32]; /* SHA-256: the key itself is not kept */
    mt_account *account;
} mt_api_key;

typedef struct mt_keys {
    mt_api_key *at;
    size_t count; /* 0: nobody needs one */
    mt_account **accounts;
    atomic_size_t account_count; /* it grows, and others than the io thread read it */
} mt_keys;

/* Each item of list is a key, or @FILE; file may be NULL. Files have a key a line, or its digest as sha256:HEX, and
   after it what is said of whoever has it:

       KEY name=ci requests/min=60 tokens/min=100000 priority=1 share=2 admin

   Keys of one name are one account's. Empty lines and those that begin with # do not count. Free with mt_keys_free in
   any case. */
bool mt_keys_read(mt_keys *keys, const mt_option_list *list, const char *file, mt_error *err) MT_NODISCARD;
void mt_keys_free(mt_keys *keys);

/* Reads them again: keys that are gone count no more, and what is said of accounts holds from now on. Accounts stay,
   with or without keys, with what they have had. False with a sentence, and nothing has changed. */
bool mt_keys_renew(mt_keys *keys, const mt_option_list *list, const char *file, mt_error *err) MT_NODISCARD;

/* Whose a key (NULL: none came) is; NULL: nobody's. Takes as long for each wrong one. */
mt_account *mt_keys_find(const mt_keys *keys, const char *key);

#endif
