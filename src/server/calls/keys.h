/* The API keys that clients may use, and the account of each. */
#ifndef MT_SERVER_CALLS_KEYS_H
#define MT_SERVER_CALLS_KEYS_H

#include <stdatomic.h>

#include "options/options.h"
#include "server/calls/account.h"
#include "server/limits.h"

typedef struct mt_api_key {
    uint8_t digest[32]; /* SHA-256: the key itself is not kept */
    mt_account *account;
} mt_api_key;

typedef struct mt_keys {
    mt_api_key *at;              /* room for MT_LIMIT_API_KEYS */
    size_t count;                /* 0: clients need no key */
    mt_account **accounts;       /* room for MT_LIMIT_API_KEYS; accounts are never removed */
    atomic_size_t account_count; /* grows only; threads other than the io thread read it */
} mt_keys;

/* Reads keys. Each item of list is a key, or @FILE; file may be NULL. Files have on each line a key, or its digest as
   sha256:HEX, and after it settings of its account:

       KEY name=ci requests/min=60 tokens/min=100000 priority=1 share=2 admin

   Keys of the same name belong to one account. Empty lines and lines that begin with # are ignored. False: *err. Free
   with mt_keys_free in any case. */
bool mt_keys_read(mt_keys *keys, const mt_option_list *list, const char *file, mt_error *err) MT_NODISCARD;
void mt_keys_free(mt_keys *keys);

/* Reads the keys again: removed keys are not accepted any more, and new settings of accounts hold from now on. Accounts
   stay, with or without keys, with their counters. False: *err, and nothing has changed. */
bool mt_keys_renew(mt_keys *keys, const mt_option_list *list, const char *file, mt_error *err) MT_NODISCARD;

/* Whether accounts are to share no cached prompts, by --isolate. */
bool mt_keys_isolated(const mt_keys *keys, const mt_options *opt);

/* The account of a key; NULL: the key is unknown or NULL. Takes equally long for every wrong key. */
mt_account *mt_keys_find(const mt_keys *keys, const char *key);

#endif
