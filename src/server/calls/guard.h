/* The guard: refuses requests that a web page of a stranger makes a browser send, on servers that need no API key.
   Called for each request on the io thread. guard.c explains the attacks. */
#ifndef MT_SERVER_CALLS_GUARD_H
#define MT_SERVER_CALLS_GUARD_H

#include <stdatomic.h>

#include "http/http.h"
#include "options/options.h"

#define MT_GUARD_NAME 256 /* bytes of a host's name, NUL included */

typedef struct mt_guard {
    bool hosts;                /* the "host" header is checked */
    bool pages;                /* the "origin" header is checked */
    const mt_options *opt;     /* borrowed: --allowed-host, --cors, --host */
    char name[MT_GUARD_NAME];  /* name of this machine; "": unknown */
    char full[MT_GUARD_NAME];  /* the same with its domain */
    atomic_bool full_is_known; /* stored with release after full is written; full must not be read before */
} mt_guard;

/* keys: clients need an API key. Borrows opt. False: *err, a value of --allowed-host is no name. */
bool mt_guard_init(mt_guard *guard, const mt_options *opt, bool keys, mt_error *err) MT_NODISCARD;

/* Asks the system for this machine's full name, which may take seconds. Any thread, once. */
void mt_guard_resolve(mt_guard *guard);

/* Whether a request is allowed; if not, *refusal. */
bool mt_guard_admit(const mt_guard *guard, const mt_http_request *request, mt_http_refusal *refusal);

#endif
