/* Replaces publisher.c in a build without ZeroMQ: opening fails, and nothing is sent. */
#include "events/publisher.h"

const bool mt_publisher_present = false;

mt_publisher *mt_publisher_open(const mt_publisher_params *params, mt_error *err)
{
    mt_fail(err, MT_E_UNSUPPORTED,
            "KV events cannot be published at \"%.200s\", since this motet was built without libzmq", params->address);
    return NULL;
}

void mt_publisher_close(mt_publisher *p)
{
    (void)p;
}

bool mt_publisher_send(mt_publisher *p, const char *topic, const void *data, size_t size)
{
    (void)p, (void)topic, (void)data, (void)size;
    return false;
}

mt_publisher_stats mt_publisher_look(mt_publisher *p)
{
    (void)p;
    return (mt_publisher_stats){0};
}

const char *mt_publisher_address(const mt_publisher *p)
{
    (void)p;
    return "";
}

const char *mt_publisher_replay_address(const mt_publisher *p)
{
    (void)p;
    return "";
}
