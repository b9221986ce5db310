/* The publisher (publisher.h). A thread of its own owns both sockets and the kept messages; other threads pass messages
   to it through a queue.

   1. Sending never waits: a message that does not fit into the queue, by number or bytes, is dropped and counted, and
      leaves a gap in the numbers by which listeners notice.
   2. Numbers rise by one in the order of the queue, over all topics. So a listener to all topics sees every gap.
   3. The last messages are kept, up to a number and to bytes, and sent again on request: [identity, "", first number]
      is answered by [identity, "", topic, number, data] for each kept message from there on, and a last one without
      data whose number is all ones. A listener that does not read loses what it was sent, and nothing else. */
#include "events/publisher.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <zmq.h>

#include "base/alloc.h"
#include "base/queue.h"
#include "events/limits.h"

const bool mt_publisher_present = true;

/* messages that ZeroMQ queues for a listener; how long closing waits for listeners; bytes of an address */
enum { HIGH_WATER = 100000, LINGER_MS = 500, ADDRESS = 256 };

typedef struct message {
    uint64_t number;
    size_t topic, size; /* bytes of the topic, and of the data */
    char bytes[];       /* the topic, then the data */
} message;

struct mt_publisher {
    void *context, *events, *replay; /* used by the thread, once it runs; replay: NULL where there is none */
    char address[ADDRESS], replay_address[ADDRESS];
    size_t waiting_bytes;
    mt_queue *queue;
    pthread_t thread;
    atomic_bool ending;

    message **kept; /* ring buffer; used by the thread */
    size_t kept_first, kept_count, kept_most, kept_bytes, kept_bytes_most;

    pthread_mutex_t lock; /* protects stats, and keeps numbering and the queue in one order */
    mt_publisher_stats stats;
};

static void number_bytes(uint64_t number, uint8_t out[8])
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(number >> 8 * (7 - i));
}

/* ---- the thread ---- */

/* Sends topic, number and data without waiting; a listener that is behind loses the message. */
static bool send_message(void *socket, const char *topic, size_t topic_len, uint64_t number, const char *data,
                         size_t size)
{
    uint8_t frame[8];
    number_bytes(number, frame);
    return zmq_send(socket, topic, topic_len, ZMQ_DONTWAIT | ZMQ_SNDMORE) >= 0 &&
           zmq_send(socket, frame, sizeof(frame), ZMQ_DONTWAIT | ZMQ_SNDMORE) >= 0 &&
           zmq_send(socket, data, size, ZMQ_DONTWAIT) >= 0;
}

static void forget_oldest(mt_publisher *p)
{
    message *m = p->kept[p->kept_first];
    p->kept_first = (p->kept_first + 1) % p->kept_most;
    p->kept_count--;
    p->kept_bytes -= m->size;
    mt_free(m);
}

static void keep(mt_publisher *p, message *m)
{
    while (p->kept_count > 0 && (p->kept_count == p->kept_most || p->kept_bytes + m->size > p->kept_bytes_most))
        forget_oldest(p);
    p->kept[(p->kept_first + p->kept_count++) % p->kept_most] = m;
    p->kept_bytes += m->size;
}

static void publish(mt_publisher *p, message *m)
{
    const bool sent = send_message(p->events, m->bytes, m->topic, m->number, m->bytes + m->topic, m->size);
    const size_t size = m->size;
    keep(p, m);
    pthread_mutex_lock(&p->lock);
    p->stats.waiting -= size;
    p->stats.sent += sent;
    p->stats.bytes += sent ? size : 0;
    p->stats.kept = p->kept_count;
    pthread_mutex_unlock(&p->lock);
}

static bool begin_reply(mt_publisher *p, const uint8_t *who, size_t len)
{
    return zmq_send(p->replay, who, len, ZMQ_DONTWAIT | ZMQ_SNDMORE) >= 0 &&
           zmq_send(p->replay, "", 0, ZMQ_DONTWAIT | ZMQ_SNDMORE) >= 0;
}

static void send_again(mt_publisher *p, const uint8_t *who, size_t len, uint64_t first)
{
    for (size_t i = 0; i < p->kept_count; i++) {
        const message *m = p->kept[(p->kept_first + i) % p->kept_most];
        if (m->number < first)
            continue;
        if (!begin_reply(p, who, len) ||
            !send_message(p->replay, m->bytes, m->topic, m->number, m->bytes + m->topic, m->size))
            return;
    }
    if (begin_reply(p, who, len))
        (void)send_message(p->replay, "", 0, UINT64_MAX, "", 0);
}

/* Reads a frame of a request, cut to `room` bytes. Returns its whole length, or -1 where there is none; *more: whether
   another frame follows. */
static int receive(void *socket, void *out, size_t room, bool *more)
{
    int is_more = 0;
    size_t size = sizeof(is_more);
    const int len = zmq_recv(socket, out, room, ZMQ_DONTWAIT);
    *more = len >= 0 && zmq_getsockopt(socket, ZMQ_RCVMORE, &is_more, &size) == 0 && is_more;
    return len;
}

/* Answers one request, and skips what is no valid request. False: there was none. */
static bool serve_replay(mt_publisher *p)
{
    uint8_t who[256], empty[1], number[8], rest[1];
    bool more;
    uint64_t first = 0;
    const int len = receive(p->replay, who, sizeof(who), &more);
    if (len < 0)
        return false;
    const bool good = len <= (int)sizeof(who) && more && receive(p->replay, empty, sizeof(empty), &more) == 0 && more &&
                      receive(p->replay, number, sizeof(number), &more) == sizeof(number) && !more;
    while (more)
        (void)receive(p->replay, rest, sizeof(rest), &more);
    for (size_t i = 0; good && i < sizeof(number); i++)
        first = first << 8 | number[i];
    if (good) {
        send_again(p, who, (size_t)len, first);
        pthread_mutex_lock(&p->lock);
        p->stats.replays++;
        pthread_mutex_unlock(&p->lock);
    }
    return true;
}

static void *run(void *arg)
{
    mt_publisher *p = arg;
    zmq_pollitem_t items[] = {{.fd = mt_queue_fd(p->queue), .events = ZMQ_POLLIN},
                              {.socket = p->replay, .events = ZMQ_POLLIN}};
    for (bool ending = false; !ending;) {
        (void)zmq_poll(items, p->replay ? 2 : 1, -1); /* where a signal interrupts it, nothing is found to do */
        ending = atomic_load(&p->ending);             /* nothing is sent after this was set: the queue has all */
        for (message *m; (m = mt_queue_pop(p->queue));)
            publish(p, m);
        while (p->replay && serve_replay(p))
            ;
    }
    return NULL;
}

/* ---- any thread ---- */

bool mt_publisher_send(mt_publisher *p, const char *topic, const void *data, size_t size)
{
    const size_t len = strlen(topic);
    message *m = mt_alloc(sizeof(*m) + len + size);
    m->topic = len;
    m->size = size;
    memcpy(m->bytes, topic, len);
    memcpy(m->bytes + len, data, size);
    pthread_mutex_lock(&p->lock);
    m->number = p->stats.numbered++;
    const bool ok = p->stats.waiting + size <= p->waiting_bytes && mt_queue_push(p->queue, m);
    p->stats.waiting += ok ? size : 0;
    p->stats.dropped += !ok;
    pthread_mutex_unlock(&p->lock);
    if (!ok)
        mt_free(m);
    return ok;
}

mt_publisher_stats mt_publisher_look(mt_publisher *p)
{
    mt_publisher_stats stats = {0};
    if (!p)
        return stats;
    pthread_mutex_lock(&p->lock);
    stats = p->stats;
    pthread_mutex_unlock(&p->lock);
    return stats;
}

const char *mt_publisher_address(const mt_publisher *p)
{
    return p->address;
}

const char *mt_publisher_replay_address(const mt_publisher *p)
{
    return p->replay_address;
}

/* ---- beginning and end ---- */

static void *listen_at(mt_publisher *p, int type, const char *address, int most, char out[ADDRESS], mt_error *err)
{
    const int linger = LINGER_MS, ipv6 = 1;
    size_t size = ADDRESS;
    void *socket = zmq_socket(p->context, type);
    if (socket && zmq_setsockopt(socket, ZMQ_SNDHWM, &most, sizeof(most)) == 0 &&
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger)) == 0 &&
        zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof(ipv6)) == 0 && zmq_bind(socket, address) == 0 &&
        zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, out, &size) == 0)
        return socket;
    mt_fail(err, MT_E_IO, "\"%.200s\" cannot be listened at for KV events: %s; give one like tcp://*:5557", address,
            zmq_strerror(zmq_errno()));
    if (socket)
        zmq_close(socket);
    return NULL;
}

static void free_publisher(mt_publisher *p)
{
    for (message *m; p->queue && (m = mt_queue_pop(p->queue));)
        mt_free(m);
    while (p->kept_count > 0)
        forget_oldest(p);
    if (p->events)
        zmq_close(p->events);
    if (p->replay)
        zmq_close(p->replay);
    if (p->context)
        zmq_ctx_term(p->context);
    mt_queue_free(p->queue);
    pthread_mutex_destroy(&p->lock);
    mt_free(p->kept);
    mt_free(p);
}

static bool start(mt_publisher *p, const mt_publisher_params *params, mt_error *err)
{
    p->context = zmq_ctx_new();
    p->queue = mt_queue_new(MT_LIMIT_EVENT_BATCHES);
    if (!p->context || !p->queue)
        return mt_fail(err, MT_E_IO, "no file descriptor is left for KV events; raise the limit (ulimit -n)");
    p->events = listen_at(p, ZMQ_PUB, params->address, HIGH_WATER, p->address, err);
    if (p->events && params->replay) /* room for all kept messages and the end */
        p->replay = listen_at(p, ZMQ_ROUTER, params->replay, (int)p->kept_most + 1, p->replay_address, err);
    if (!p->events || (params->replay && !p->replay))
        return false;
    return pthread_create(&p->thread, NULL, run, p) == 0 ||
           mt_fail(err, MT_E_IO, "a thread for KV events cannot be started; raise the limit (ulimit -u)");
}

mt_publisher *mt_publisher_open(const mt_publisher_params *params, mt_error *err)
{
    mt_publisher *p = mt_alloc(sizeof(*p));
    p->waiting_bytes = params->waiting_bytes ? params->waiting_bytes : MT_LIMIT_EVENT_BYTES;
    p->kept_bytes_most = params->kept_bytes ? params->kept_bytes : MT_LIMIT_EVENT_BYTES;
    p->kept_most = params->kept ? params->kept : MT_LIMIT_EVENT_BATCHES;
    p->kept = mt_alloc_array(p->kept_most, sizeof(message *));
    pthread_mutex_init(&p->lock, NULL);
    if (start(p, params, err))
        return p;
    free_publisher(p);
    return NULL;
}

void mt_publisher_close(mt_publisher *p)
{
    if (!p)
        return;
    atomic_store(&p->ending, true);
    mt_queue_close(p->queue);
    pthread_join(p->thread, NULL);
    free_publisher(p);
}
