/* Whom a key belongs to: what is theirs, how much of the machine they have, and what they have had of it. */
#ifndef MT_SERVER_ACCOUNT_H
#define MT_SERVER_ACCOUNT_H

#include <pthread.h>

#include "api/failure.h"
#include "api/store.h"
#include "engine/clients.h"
#include "http/http.h"

/* So much a minute: a full minute's worth may be had at once, and what was had comes back evenly. Below 0 is a debt. */
typedef struct mt_rate {
    int64_t limit; /* 0: there is none */
    double left;   /* as of when */
    uint64_t when; /* mt_clock_ns */
} mt_rate;

typedef struct mt_account_use {
    uint64_t requests, limited; /* asked, and of those that were to come again later */
    uint64_t prompt_tokens, generated_tokens;
} mt_account_use;

typedef struct mt_account {
    char name[MT_LIMIT_KEY_NAME]; /* in logs and metrics */
    uint8_t owner[32];            /* marks what is theirs; the same after every start */
    mt_client client;             /* what the engine knows them by */
    _Atomic(int32_t) priority;    /* may be changed by the io thread while others read it, and so may admin */
    atomic_bool admin;            /* sees and cancels what others run */
    mt_store *store;              /* what they keep; NULL until there is one */

    pthread_mutex_t lock; /* of the rest */
    mt_rate requests, tokens;
    mt_account_use use;
} mt_account;

/* Whose requests an account sees and may cancel: its own, or NULL for everybody's. */
static inline const mt_account *mt_account_scope(const mt_account *account)
{
    return account && !account->admin ? account : NULL;
}

/* The times are mt_clock_ns. */
bool mt_rate_take(mt_rate *rate, double amount, uint64_t now); /* false: there is nothing left, and nothing is taken */
double mt_rate_left(const mt_rate *rate, uint64_t now);
double mt_rate_wait(const mt_rate *rate, uint64_t now);  /* seconds until one more may be had */
double mt_rate_reset(const mt_rate *rate, uint64_t now); /* seconds until all of it may be */

/* Counts a request, and refuses it where a rate is exceeded. retry_after: in whole seconds. */
bool mt_account_ask(mt_account *account, uint64_t now, char text[MT_LIMIT_ERROR_TEXT], int *retry_after);

/* Whether there are tokens left: looked at again when a request is about to be prepared. NULL as account: always. */
bool mt_account_may(mt_account *account, uint64_t now, mt_failure *why);

/* What a request took. NULL as account is fine. */
void mt_account_charge(mt_account *account, uint64_t now, size_t prompt_tokens, size_t generated_tokens);

/* OpenAI's x-ratelimit-... of the rates there are. */
void mt_account_headers(mt_account *account, uint64_t now, mt_http_extra *extra);

mt_account_use mt_account_look(mt_account *account);

/* The salt under which prompts are cached: of what a request gives (NULL: nothing), and for whom (NULL: for all). */
void mt_account_salt(const mt_account *account, const char *given, uint8_t salt[32]);

#endif
