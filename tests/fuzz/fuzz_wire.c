/* What a store on the network answers: any bytes, read as replies of at most so many bytes, which the first byte says;
   and any text as its address. */
#include <string.h>

#include "base/clock.h"
#include "store.h"
#include "tier/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_address(const uint8_t *data, size_t size)
{
    char url[1024];
    mt_wire_address a;
    mt_error err = {0};

    if (size >= sizeof(url))
        return;
    memcpy(url, data, size);
    url[size] = '\0';
    if (!mt_wire_address_read(&a, url, &err)) {
        assert(err.text[0]);
        return;
    }
    assert(a.host[0] && memchr(a.host, '\0', sizeof(a.host)) && memchr(a.user, '\0', sizeof(a.user)));
    assert(memchr(a.password, '\0', sizeof(a.password)));
    assert(a.port >= 0 && a.port <= 65535 && a.database >= 0 && a.database <= 1 << 20);
}

static void check_reply(const mt_wire_reply *r, const uint8_t *data, size_t size)
{
    assert(r->kind <= MT_WIRE_ERROR && r->len <= size && r->data[r->len] == '\0');
    assert(r->len == 0 || r->kind == MT_WIRE_ERROR || r->kind == MT_WIRE_STATUS || r->kind == MT_WIRE_BYTES);
    assert(r->len == 0 || memmem(data, size, r->data, r->len)); /* nothing that it did not say */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t until = mt_clock_ns() + UINT64_C(60000000000);
    mt_wire_address a = {.host = "127.0.0.1", .port = store_open()};
    mt_error err = {0};
    mt_wire_reply reply;

    check_address(data, size);
    if (!mt_wire_present || size == 0 || size > 1 << 16)
        return 0;
    mt_wire *w = mt_wire_open(&a, until, &err);
    assert(w);
    const int peer = store_say(data + 1, size - 1);
    while (mt_wire_next(w, &reply, data[0], until, &err))
        check_reply(&reply, data + 1, size - 1);
    assert(err.text[0] && mt_clock_ns() < until);
    mt_wire_close(w);
    store_hang_up(peer);
    return 0;
}
