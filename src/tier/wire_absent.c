/* Replaces wire.c in a build without hiredis: every call fails. */
#include "tier/wire.h"

const bool mt_wire_present = false;

bool mt_wire_address_read(mt_wire_address *a, const char *url, mt_error *err)
{
    (void)a, (void)url;
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "a shared store cannot be used, since this motet was built without hiredis: leave out "
                   "--cache-remote");
}

bool mt_wire_resolve(mt_wire_address *to, const mt_wire_address *from, mt_error *err)
{
    (void)to, (void)from, (void)err;
    return false;
}

mt_wire *mt_wire_open(const mt_wire_address *a, uint64_t until, mt_error *err)
{
    (void)a, (void)until;
    mt_fail(err, MT_E_UNSUPPORTED, "this motet was built without hiredis");
    return NULL;
}

void mt_wire_close(mt_wire *w)
{
    (void)w;
}

bool mt_wire_add(mt_wire *w, size_t words, const char *word[], const size_t length[])
{
    (void)w, (void)words, (void)word, (void)length;
    return false;
}

bool mt_wire_send(mt_wire *w, uint64_t until, mt_error *err)
{
    (void)w, (void)until, (void)err;
    return false;
}

bool mt_wire_expect(mt_wire *w, mt_wire_reply *reply, const char *command, mt_wire_kind kind, size_t most,
                    uint64_t until, mt_error *err)
{
    (void)w, (void)reply, (void)command, (void)kind, (void)most, (void)until, (void)err;
    return false;
}

bool mt_wire_next(mt_wire *w, mt_wire_reply *reply, size_t most, uint64_t until, mt_error *err)
{
    (void)w, (void)reply, (void)most, (void)until, (void)err;
    return false;
}
