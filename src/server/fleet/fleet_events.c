/* Tells routers what the caches of the models contain (--kv-events): one publisher for all, with a topic for each
   model. */
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "events/limits.h"
#include "server/fleet/fleet_inside.h"

enum { HOST = 256 }; /* bytes for the host's name */

uint64_t mt_fleet_events_memory(const mt_options *opt)
{
    /* Batches that wait to be sent, and those kept for replay */
    return opt->kv_events ? 2 * (uint64_t)MT_LIMIT_EVENT_BYTES : 0;
}

bool mt_fleet_publish(mt_fleet *f, mt_error *err)
{
    const mt_options *opt = f->params.opt;
    const mt_publisher_params params = {.address = opt->kv_events, .replay = opt->kv_events_replay};

    if (!opt->kv_events)
        return !opt->kv_events_replay ||
               mt_fail(err, MT_E_INVALID, "\"--kv-events-replay\" is of no use without \"--kv-events\": give both");
    f->publisher = mt_publisher_open(&params, err);
    if (!f->publisher)
        return false;
    mt_log_info("events.listening", "KV events at %s%s%s", mt_publisher_address(f->publisher),
                opt->kv_events_replay ? ", again at " : "", mt_publisher_replay_address(f->publisher));
    return true;
}

bool mt_fleet_check_events(const mt_options *opt, mt_error *err)
{
    mt_fleet f = {.params = {.opt = opt}};
    const bool ok = mt_fleet_publish(&f, err);

    mt_publisher_close(f.publisher);
    return ok;
}

mt_kv_events *mt_fleet_events(const mt_fleet *f, const mt_member *m)
{
    const mt_options *opt = f->params.opt;
    char host[HOST] = "";
    const bool named = gethostname(host, sizeof(host) - 1) == 0;
    char *topic = mt_kv_events_topic(opt->kv_events_topic ? opt->kv_events_topic : "kv@{host}@{model}",
                                     named ? host : "motet", m->name);
    mt_kv_events *events = mt_kv_events_new(f->publisher, topic, opt->kv_events_format);

    mt_free(topic);
    return events;
}
