/* Quotas are checked twice: when a request comes, before its body is read, and again before it is prepared. How many
   tokens a request uses is known only later: those of its prompt once it is prepared, those of its answer as they are
   written. So requests that run already may overdraw the quota of tokens, and no more are let in until the debt is paid
   back. On average no account gets more than its quota, and no answer is cut off in the middle. */
#include "server/calls/account.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "media/digest.h"

#define MINUTE 6e10 /* nanoseconds */

void mt_account_owner(const mt_account *account, char owner[MT_ACCOUNT_OWNER])
{
    owner[0] = '\0';
    if (account)
        mt_hex_text(account->owner, (MT_ACCOUNT_OWNER - 1) / 2, owner);
}

double mt_quota_left(const mt_quota *q, uint64_t now)
{
    const double back = now > q->when ? (double)(now - q->when) / MINUTE * (double)q->limit : 0;

    return fmin((double)q->limit, q->left + back);
}

/* Uses units of a quota, whether or not so many are left. */
static void draw(mt_quota *q, double amount, uint64_t now)
{
    q->left = mt_quota_left(q, now) - amount;
    q->when = now;
}

bool mt_quota_take(mt_quota *q, double amount, uint64_t now)
{
    if (!q->limit)
        return true;
    if (mt_quota_left(q, now) < 1)
        return false;
    draw(q, amount, now);
    return true;
}

double mt_quota_wait(const mt_quota *q, uint64_t now)
{
    return q->limit ? fmax(0, (1 - mt_quota_left(q, now)) / (double)q->limit * 60) : 0;
}

double mt_quota_reset(const mt_quota *q, uint64_t now)
{
    return q->limit ? ((double)q->limit - mt_quota_left(q, now)) / (double)q->limit * 60 : 0;
}

/* Writes the sentence that says which quota is exceeded. Returns after how many seconds to try again. */
static int refuse(const mt_account *a, uint64_t now, char text[MT_LIMIT_ERROR_TEXT])
{
    const double wait = fmax(mt_quota_wait(&a->requests, now), mt_quota_wait(&a->tokens, now));
    const bool tokens = mt_quota_wait(&a->tokens, now) > mt_quota_wait(&a->requests, now);
    const int seconds = (int)fmin(fmax(1, ceil(wait)), 86400);

    snprintf(text, MT_LIMIT_ERROR_TEXT, "the key \"%s\" has had its %lld %s a minute: try again in %d s", a->name,
             (long long)(tokens ? a->tokens.limit : a->requests.limit), tokens ? "tokens" : "requests", seconds);
    return seconds;
}

bool mt_account_ask(mt_account *a, uint64_t now, char text[MT_LIMIT_ERROR_TEXT], int *retry_after)
{
    bool ok;

    pthread_mutex_lock(&a->lock);
    ok = mt_quota_wait(&a->tokens, now) == 0 && mt_quota_take(&a->requests, 1, now);
    a->use.requests++;
    if (!ok) {
        a->use.limited++;
        *retry_after = refuse(a, now, text);
    }
    pthread_mutex_unlock(&a->lock);
    return ok;
}

bool mt_account_may(mt_account *a, uint64_t now, mt_failure *why)
{
    bool ok;

    if (!a)
        return true;
    pthread_mutex_lock(&a->lock);
    ok = mt_quota_wait(&a->tokens, now) == 0;
    if (!ok) {
        a->use.limited++;
        mt_failure_set(why, 429, "rate_limit_exceeded", NULL, "%s", "");
        why->retry_after = refuse(a, now, why->text);
    }
    pthread_mutex_unlock(&a->lock);
    return ok;
}

void mt_account_charge(mt_account *a, uint64_t now, size_t prompt_tokens, size_t generated_tokens)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    if (a->tokens.limit)
        draw(&a->tokens, (double)(prompt_tokens + generated_tokens), now);
    a->use.prompt_tokens += prompt_tokens;
    a->use.generated_tokens += generated_tokens;
    pthread_mutex_unlock(&a->lock);
}

/* Adds the headers of one quota; names: of its limit, of the units left, of the time until all are left. */
static void add_quota(mt_http_extra *extra, const mt_quota *quota, const char *const names[3], uint64_t now)
{
    const double left = floor(fmax(0, mt_quota_left(quota, now))), reset = mt_quota_reset(quota, now);

    if (!quota->limit)
        return;
    mt_http_extra_add(extra, names[0], "%lld", (long long)quota->limit);
    mt_http_extra_add(extra, names[1], "%.0f", left);
    if (reset < 1)
        mt_http_extra_add(extra, names[2], "%.0fms", ceil(reset * 1000));
    else if (reset < 60)
        mt_http_extra_add(extra, names[2], "%.3gs", reset);
    else
        mt_http_extra_add(extra, names[2], "%.0fm%.0fs", floor(reset / 60), floor(fmod(reset, 60)));
}

void mt_account_spend(mt_account *a, double seconds)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->prepared += seconds;
    a->use.preparing_ms = (uint64_t)(a->prepared * 1e3);
    pthread_mutex_unlock(&a->lock);
}

void mt_account_headers(mt_account *a, uint64_t now, mt_http_extra *extra)
{
    static const char *const requests[] = {"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
                                           "x-ratelimit-reset-requests"};
    static const char *const tokens[] = {"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens",
                                         "x-ratelimit-reset-tokens"};

    pthread_mutex_lock(&a->lock);
    add_quota(extra, &a->requests, requests, now);
    add_quota(extra, &a->tokens, tokens, now);
    pthread_mutex_unlock(&a->lock);
}

mt_account_use mt_account_look(mt_account *a)
{
    mt_account_use use;

    pthread_mutex_lock(&a->lock);
    use = a->use;
    pthread_mutex_unlock(&a->lock);
    return use;
}

void mt_account_salt(const mt_account *a, const char *given, uint8_t salt[32])
{
    const mt_digest_part parts[] = {{a ? a->owner : NULL, a ? sizeof(a->owner) : 0},
                                    {given, given ? strlen(given) : 0}};

    memset(salt, 0, 32);
    if (a || given)
        mt_digest(salt, parts, MT_COUNT(parts));
}
