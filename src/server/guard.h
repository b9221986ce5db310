/* Which calls a server that needs no key takes from programs that speak for others: browsers. See guard.c. */
#ifndef MT_SERVER_GUARD_H
#define MT_SERVER_GUARD_H

#include <stdatomic.h>

#include "http/http.h"
#include "server/options.h"

#define MT_GUARD_NAME 256 /* bytes of a host's name, NUL included */

typedef struct mt_guard {
    bool hosts;                /* by which name the server is called is looked at ("host") */
    bool pages;                /* and of which page a call comes ("origin") */
    const mt_options *opt;     /* borrowed: what was allowed */
    char name[MT_GUARD_NAME];  /* the machine's; "": it has none */
    char full[MT_GUARD_NAME];  /* with its domain */
    atomic_bool full_is_known; /* set after full, with release; before, nobody reads it */
} mt_guard;

/* keys: clients need one. Borrows opt. False with a sentence where what is allowed is no name. */
bool mt_guard_init(mt_guard *guard, const mt_options *opt, bool keys, mt_error *err) MT_NODISCARD;

/* Asks the system for the machine's full name, which may take it some seconds; any thread, once. */
void mt_guard_resolve(mt_guard *guard);

/* Whether a call may go on; else *refusal says why not. */
bool mt_guard_admit(const mt_guard *guard, const mt_http_request *request, mt_http_refusal *refusal);

#endif
