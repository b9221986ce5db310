/* See keys.h. */
#include "server/calls/keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "media/digest.h"
#include "server/limits.h"
#include "weights/limits.h"

#define DIGEST "sha256:" /* begins a key that is given by its digest */

/* A line of a file of keys, cut into words. */
typedef struct line {
    const char *path; /* of the file */
    size_t number;
    char *words[16]; /* the key, then settings */
    size_t count;
    bool plain; /* some key of the file is written in plain */
} line;

static bool fail(const line *l, mt_error *err, const char *word, const char *sentence)
{
    return mt_fail(err, MT_E_INVALID, "\"%s\" line %zu: \"%s\" %s", l->path, l->number, word, sentence);
}

static bool read_digest(uint8_t digest[32], const char *hex)
{
    for (size_t i = 0; i < 32; i++) {
        const int high = mt_hex_digit(hex[2 * i]), low = high < 0 ? -1 : mt_hex_digit(hex[2 * i + 1]);

        if (low < 0)
            return false;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return hex[64] == '\0';
}

static mt_api_key *find_digest(const mt_keys *keys, const uint8_t digest[32])
{
    mt_api_key *found = NULL;

    for (size_t i = 0; i < keys->count; i++)
        if (CRYPTO_memcmp(keys->at[i].digest, digest, 32) == 0)
            found = &keys->at[i];
    return found;
}

mt_account *mt_keys_find(const mt_keys *keys, const char *key)
{
    uint8_t digest[32];
    const mt_api_key *found;

    if (!key)
        return NULL;
    SHA256((const unsigned char *)key, strlen(key), digest);
    found = find_digest(keys, digest);
    return found ? found->account : NULL;
}

/* name NULL: the account is known by its only key, and is called "#" and its number, as no name may begin. */
static mt_account *new_account(mt_keys *keys, const char *name, const uint8_t key[32])
{
    mt_account *a = mt_alloc(sizeof(*a));
    const mt_digest_part parts[] = {{name ? "name" : "key", name ? 4 : 3},
                                    {name ? (const void *)name : key, name ? strlen(name) : 32}};

    if (name)
        snprintf(a->name, sizeof(a->name), "%s", name);
    else
        snprintf(a->name, sizeof(a->name), "#%zu", keys->count + 1);
    mt_digest(a->owner, parts, MT_COUNT(parts));
    memcpy(&a->client.id, a->owner, sizeof(a->client.id));
    a->client.share = 1;
    pthread_mutex_init(&a->lock, NULL);
    keys->accounts[keys->account_count++] = a;
    return a;
}

/* Adds a key. *account: its account, or NULL to make one. */
static bool add(mt_keys *keys, const char *key, const char *name, mt_account **account, mt_error *err)
{
    const bool hashed = strncmp(key, DIGEST, strlen(DIGEST)) == 0;
    uint8_t digest[32];

    if (keys->count == MT_LIMIT_API_KEYS)
        return mt_fail(err, MT_E_INVALID, "there are more than %d API keys; give fewer", MT_LIMIT_API_KEYS);
    if (hashed && !read_digest(digest, key + strlen(DIGEST)))
        return mt_fail(err, MT_E_INVALID,
                       "what begins with " DIGEST " is not the digest of a key; give 64 hexadecimal digits, as "
                       "\"printf %%s KEY | sha256sum\" prints them");
    if (!hashed)
        SHA256((const unsigned char *)key, strlen(key), digest);
    if (find_digest(keys, digest))
        return mt_fail(err, MT_E_INVALID, "an API key is given twice; give it once");
    if (!*account)
        *account = new_account(keys, name, digest);
    keys->at[keys->count] = (mt_api_key){.account = *account};
    memcpy(keys->at[keys->count++].digest, digest, sizeof(digest));
    return true;
}

enum { REQUESTS, TOKENS, PRIORITY, SHARE, SETTINGS };

static const struct {
    const char *name;
    int64_t least, most;
} settings[SETTINGS] = {[REQUESTS] = {"requests/min=", 1, 1000000000},
                        [TOKENS] = {"tokens/min=", 1, 1000000000000},
                        [PRIORITY] = {"priority=", -1000000, 1000000},
                        [SHARE] = {"share=", 1, 1000}};

static bool read_number(const line *l, const char *word, size_t setting, int64_t *out, mt_error *err)
{
    const char *value = word + strlen(settings[setting].name);
    const int64_t least = settings[setting].least, most = settings[setting].most;
    char sentence[100], *end;

    errno = 0;
    *out = strtoll(value, &end, 10);
    if (*value && !*end && !errno && *out >= least && *out <= most)
        return true;
    snprintf(sentence, sizeof(sentence), "is out of range: use a whole number of %lld to %lld", (long long)least,
             (long long)most);
    return fail(l, err, word, sentence);
}

/* Applies one setting of a line to an account. */
static bool apply_setting(const line *l, mt_account *a, const char *word, mt_error *err)
{
    size_t i = 0;
    int64_t number;

    if (strncmp(word, "name=", 5) == 0)
        return true;
    if (strcmp(word, "admin") == 0) {
        a->admin = true;
        return true;
    }
    while (i < SETTINGS && strncmp(word, settings[i].name, strlen(settings[i].name)) != 0)
        i++;
    if (i == SETTINGS)
        return fail(l, err, word,
                    "is not a setting: use name=, requests/min=, tokens/min=, priority=, share= or admin; a key itself "
                    "has no blanks");
    if (!read_number(l, word, i, &number, err))
        return false;
    if (i == PRIORITY)
        a->priority = (int32_t)number;
    else if (i == SHARE)
        a->client.share = (uint32_t)number;
    else
        *(i == REQUESTS ? &a->requests : &a->tokens) = (mt_quota){.limit = number, .left = (double)number};
    return true;
}

static const char *name_of(const line *l)
{
    for (size_t i = 1; i < l->count; i++)
        if (strncmp(l->words[i], "name=", 5) == 0)
            return l->words[i] + 5;
    return NULL;
}

static bool check_name(const line *l, const char *name, mt_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-";

    if (!name || (*name && strlen(name) < MT_LIMIT_KEY_NAME && !name[strspn(name, allowed)]))
        return true;
    return fail(l, err, name, "is not a name: use up to 63 letters, digits and any of _ . @ -");
}

/* The account of that name; NULL: there is none. */
static mt_account *account_of(const mt_keys *keys, const char *name)
{
    for (size_t i = 0; name && i < keys->account_count; i++)
        if (strcmp(keys->accounts[i]->name, name) == 0)
            return keys->accounts[i];
    return NULL;
}

static bool add_line(mt_keys *keys, line *l, mt_error *err)
{
    const char *name = name_of(l);
    mt_account *account = account_of(keys, name);
    mt_error why;

    if (!check_name(l, name, err))
        return false;
    if (account && l->count > 2)
        return fail(l, err, name, "has a line already: say there what it may, and here only its name");
    l->plain |= strncmp(l->words[0], DIGEST, strlen(DIGEST)) != 0;
    if (!add(keys, l->words[0], name, &account, &why))
        return mt_fail(err, MT_E_INVALID, "\"%s\" line %zu: %s", l->path, l->number, why.text);
    for (size_t i = 1; i < l->count; i++)
        if (!apply_setting(l, account, l->words[i], err))
            return false;
    return true;
}

/* Cuts a line into words, in place; a comment has none. */
static bool split_line(line *l, char *text, mt_error *err)
{
    static const char blanks[] = " \t\r";
    char *rest = NULL;

    l->count = 0;
    if (text[strspn(text, blanks)] == '#')
        return true;
    for (char *word = strtok_r(text, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest)) {
        if (l->count == MT_COUNT(l->words))
            return fail(l, err, word, "is one word too many: say a thing once");
        l->words[l->count++] = word;
    }
    return true;
}

/* Warns where other users of this machine can read keys that are written in plain. */
static void warn_readable(const char *path)
{
    struct stat info;

    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & S_IROTH))
        mt_log_warn("keys.readable",
                    "everybody on this machine may read the keys in \"%s\": chmod 600 it, or put their digests there "
                    "(" DIGEST "HEX)",
                    path);
}

static bool add_file(mt_keys *keys, const char *path, mt_error *err)
{
    const size_t before = keys->count;
    line l = {.path = path};
    mt_buf text = {.limit = MT_LIMIT_CONFIG_BYTES};
    bool ok;

    ok = mt_file_read(&text, path, err);
    for (char *at = text.data, *next; ok && at; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        l.number++;
        ok = split_line(&l, at, err) && (l.count == 0 || add_line(keys, &l, err));
    }
    mt_buf_free(&text);
    if (ok && l.plain)
        warn_readable(path);
    return ok &&
           (keys->count > before || mt_fail(err, MT_E_INVALID, "\"%s\" has no API key in it; put one a line", path));
}

bool mt_keys_read(mt_keys *keys, const mt_option_list *list, const char *file, mt_error *err)
{
    *keys = (mt_keys){.at = mt_alloc_array(MT_LIMIT_API_KEYS, sizeof(*keys->at)),
                      .accounts = mt_alloc_array(MT_LIMIT_API_KEYS, sizeof(mt_account *))};
    for (size_t i = 0; i < list->count; i++) {
        const char *item = list->at[i];
        mt_account *account = NULL;

        if (*item == '\0')
            return mt_fail(err, MT_E_INVALID, "an API key is empty; leave the option out to need none");
        if (*item == '@' ? !add_file(keys, item + 1, err) : !add(keys, item, NULL, &account, err))
            return false;
    }
    return !file || add_file(keys, file, err);
}

static void free_account(mt_account *a)
{
    mt_store_close(a->store);
    pthread_mutex_destroy(&a->lock);
    mt_free(a);
}

void mt_keys_free(mt_keys *keys)
{
    for (size_t i = 0; i < keys->account_count; i++)
        free_account(keys->accounts[i]);
    mt_free(keys->accounts);
    mt_free(keys->at);
    *keys = (mt_keys){0};
}

/* Sets a new limit; units that are left stay, as far as the new limit allows. */
static void renew_quota(mt_quota *quota, const mt_quota *said)
{
    if (quota->limit == said->limit)
        return;
    if (quota->limit == 0 || quota->left > said->left)
        quota->left = said->left;
    quota->limit = said->limit;
}

/* Applies the settings that were read again. */
static void renew_account(mt_account *a, const mt_account *said)
{
    a->priority = said->priority;
    a->admin = said->admin;
    a->client.share = said->client.share;
    pthread_mutex_lock(&a->lock);
    renew_quota(&a->requests, &said->requests);
    renew_quota(&a->tokens, &said->tokens);
    pthread_mutex_unlock(&a->lock);
}

/* The account with the same owner digest, which is the same account; NULL: there is none. */
static mt_account *owner_of(const mt_keys *keys, const mt_account *like)
{
    for (size_t i = 0; i < keys->account_count; i++)
        if (memcmp(keys->accounts[i]->owner, like->owner, sizeof(like->owner)) == 0)
            return keys->accounts[i];
    return NULL;
}

/* Makes keys of one account those of another. */
static void point_to(mt_keys *keys, const mt_account *from, mt_account *to)
{
    for (size_t i = 0; i < keys->count; i++)
        if (keys->at[i].account == from)
            keys->at[i].account = to;
}

bool mt_keys_renew(mt_keys *keys, const mt_option_list *list, const char *file, mt_error *err)
{
    mt_keys read;
    size_t strangers = 0;

    if (!mt_keys_read(&read, list, file, err)) {
        mt_keys_free(&read);
        return false;
    }
    for (size_t i = 0; i < read.account_count; i++)
        strangers += !owner_of(keys, read.accounts[i]);
    if (strangers > MT_LIMIT_API_KEYS - keys->account_count) {
        mt_keys_free(&read);
        return mt_fail(err, MT_E_INVALID, "there have been more than %d accounts: restart the server",
                       MT_LIMIT_API_KEYS);
    }
    for (size_t i = 0; i < read.account_count; i++) {
        mt_account *said = read.accounts[i], *known = owner_of(keys, said);

        if (known) {
            renew_account(known, said);
            point_to(&read, said, known);
            free_account(said);
        } else
            keys->accounts[keys->account_count++] = said; /* other threads see it once account_count has grown */
    }
    mt_free(keys->at);
    keys->at = read.at;
    keys->count = read.count;
    mt_free(read.accounts);
    return true;
}

bool mt_keys_isolated(const mt_keys *keys, const mt_options *opt)
{
    return opt->isolate == MT_ISOLATE_ON || (opt->isolate == MT_ISOLATE_AUTO && keys->account_count > 1);
}
