/* An account: the owner of an API key, with the answers kept for it, how much it may use and how much it has used.
   Made by keys.c from the file of keys. Any thread may use an account; its lock is inside. */
#ifndef MT_SERVER_CALLS_ACCOUNT_H
#define MT_SERVER_CALLS_ACCOUNT_H

#include <pthread.h>

#include "api/failure.h"
#include "api/store.h"
#include "base/error.h"
#include "engine/clients.h"
#include "http/http.h"
#include "server/limits.h"

/* A limit per minute. Up to `limit` units can be used at once; what was used comes back evenly over a minute. `left`
   may be below 0: a debt, since the tokens of an answer are counted only as they are written. */
typedef struct mt_quota {
    int64_t limit; /* units a minute; 0: no limit */
    double left;   /* units that could be used at the time `when` */
    uint64_t when; /* mt_clock_ns */
} mt_quota;

typedef struct mt_account_use {
    uint64_t requests, limited; /* all requests, and how many of them were refused by a quota */
    uint64_t prompt_tokens, generated_tokens;
    uint64_t preparing_ms; /* processor time that preparing its requests took, decoding included */
} mt_account_use;

typedef struct mt_account {
    char name[MT_LIMIT_KEY_NAME]; /* the name of the key, for logs and metrics */
    uint8_t owner[32];            /* marks what is kept for this account; the same after every start */
    mt_client client;             /* how the engine knows this account when it shares the machine among clients */
    /* Of all its requests, lower runs first; the io thread may change it while others read it */
    _Atomic(int32_t) priority;
    atomic_bool admin; /* may see and cancel requests of other accounts; may change as priority does */
    mt_store *store;   /* answers kept for this account; NULL until the first is */

    pthread_mutex_t lock; /* of the four fields below */
    mt_quota requests, tokens;
    mt_account_use use;
    double prepared; /* use.preparing_ms, in seconds and not rounded */
} mt_account;

/* The account whose requests an account may see and cancel: itself; NULL: those of all accounts. */
static inline const mt_account *mt_account_scope(const mt_account *account)
{
    return account && !account->admin ? account : NULL;
}

/* What a quota allows at the time `now` (mt_clock_ns). mt_quota_take uses `amount` units, or returns false and uses
   nothing where less than one is left. */
bool mt_quota_take(mt_quota *quota, double amount, uint64_t now);
double mt_quota_left(const mt_quota *quota, uint64_t now);  /* units; may be below 0 */
double mt_quota_wait(const mt_quota *quota, uint64_t now);  /* seconds until one unit is left */
double mt_quota_reset(const mt_quota *quota, uint64_t now); /* seconds until all units are left */

#define MT_ACCOUNT_OWNER 33 /* bytes of an owner's name, NUL included */
/* What marks the account as the owner of what is kept; "" where it is NULL: the server needs no keys. */
void mt_account_owner(const mt_account *account, char owner[MT_ACCOUNT_OWNER]);

/* Counts a request that has just come. False where a quota is exceeded: then text is the sentence for the client and
   *retry_after the seconds to wait. */
bool mt_account_ask(mt_account *account, uint64_t now, char text[MT_LIMIT_ERROR_TEXT], int *retry_after);

/* Whether the account has tokens left, checked again just before a request is prepared. False: *why. An account of NULL
   has no limits. */
bool mt_account_may(mt_account *account, uint64_t now, mt_failure *why);

/* Counts tokens that a request has used. An account of NULL is not counted. */
void mt_account_charge(mt_account *account, uint64_t now, size_t prompt_tokens, size_t generated_tokens);

/* Counts seconds of a processor that preparing a request took. An account of NULL is not counted. */
void mt_account_spend(mt_account *account, double seconds);

/* Adds OpenAI's x-ratelimit-... headers for each limit that the account has. */
void mt_account_headers(mt_account *account, uint64_t now, mt_http_extra *extra);

mt_account_use mt_account_look(mt_account *account);

/* Makes the salt, which keeps cached prompts apart: requests share cached prompts only where their salts are equal. It
   is made of what the request asks for (given; NULL: nothing) and of the account (NULL: all accounts share). */
void mt_account_salt(const mt_account *account, const char *given, uint8_t salt[32]);

#endif
