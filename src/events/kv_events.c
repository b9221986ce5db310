/* Writes events about cached pages (kv_events.h) in MessagePack.

   A batch is what one turn of the engine changed: [time, [event, ...], nil]. An event is a map with its "type", or an
   array that begins with it. Readers find a prompt by its tokens and by the extra keys of its pages: the digests of
   pictures as 64 hexadecimal digits and, of a first page, the salt. So a hash is only a page's name, by which it is
   removed and by which child pages name their parent.

   The medium of pages in the device's memory is "GPU" even where a CPU computes, as in vLLM: readers count it as the
   nearest. Pages on the host store have the medium "CPU", pages in files "STORAGE". */
#include "events/kv_events.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/msgpack.h"
#include "cache/text.h"
#include "cache/tree.h"
#include "events/limits.h"

#define NEAR "GPU"

static const char *const medium_of[] = {[MT_KV_HOST] = "CPU", [MT_KV_FILES] = "STORAGE"};

struct mt_kv_events {
    mt_publisher *publisher;
    char *topic;
    bool map;
    pthread_mutex_t lock; /* protects the fields below */
    mt_buf events, batch; /* events of the next batch; batch: the message made of them */
    size_t count;         /* how many they are */
    bool lost;            /* a message was not sent: what readers know is wrong */
};

mt_kv_events *mt_kv_events_new(mt_publisher *publisher, const char *topic, mt_kv_events_form form)
{
    mt_kv_events *e = mt_alloc(sizeof(*e));
    e->publisher = publisher;
    e->topic = mt_strdup(topic);
    e->map = form == MT_KV_EVENTS_MAP;
    mt_buf_init(&e->events, MT_LIMIT_EVENT_BATCH);
    mt_buf_init(&e->batch, MT_LIMIT_EVENT_BATCH + 32);
    pthread_mutex_init(&e->lock, NULL);
    return e;
}

void mt_kv_events_free(mt_kv_events *e)
{
    if (!e)
        return;
    mt_buf_free(&e->events);
    mt_buf_free(&e->batch);
    pthread_mutex_destroy(&e->lock);
    mt_free(e->topic);
    mt_free(e);
}

char *mt_kv_events_topic(const char *given, const char *host, const char *model)
{
    mt_buf out;
    mt_buf_init(&out, MT_LIMIT_PATH);
    for (const char *p = given; *p;) {
        const bool is_host = strncmp(p, "{host}", 6) == 0, is_model = strncmp(p, "{model}", 7) == 0;
        if (is_host || is_model)
            mt_buf_puts(&out, is_host ? host : model);
        else
            mt_buf_add(&out, p, 1);
        p += is_host ? 6 : is_model ? 7 : 1;
    }
    char *topic = mt_strdup(out.data ? out.data : "");
    mt_buf_free(&out);
    return topic;
}

/* ---- events; under the lock ---- */

static void text(mt_buf *out, const char *s)
{
    mt_msgpack_text(out, s, strlen(s));
}

/* Begins an event with `fields` fields. */
static void begin(mt_kv_events *e, const char *type, size_t fields)
{
    (e->map ? mt_msgpack_map : mt_msgpack_array)(&e->events, 1 + fields);
    if (e->map)
        text(&e->events, "type");
    text(&e->events, type);
    e->count++;
}

static mt_buf *field(mt_kv_events *e, const char *name)
{
    if (e->map)
        text(&e->events, name);
    return &e->events;
}

static void name_blocks(mt_kv_events *e, uint64_t hash)
{
    mt_buf *out = field(e, "block_hashes");
    mt_msgpack_array(out, 1);
    mt_msgpack_uint(out, hash);
}

/* The extra keys of a page: what tells it from others besides its tokens; nil where there is nothing. */
static void add_extra_keys(mt_buf *out, const mt_tree_block *b)
{
    char hex[2 * 32 + 1];
    if (b->figures == 0 && !b->salt) {
        mt_msgpack_nil(out);
        return;
    }
    mt_msgpack_array(out, 1);
    mt_msgpack_array(out, b->figures + (b->salt != NULL));
    for (size_t i = 0; i < b->figures; i++) {
        mt_hex_text(b->figure[i].digest, sizeof(b->figure[i].digest), hex);
        text(out, hex);
    }
    if (b->salt && !b->salt_name)
        mt_hex_text(b->salt, 32, hex);
    if (b->salt)
        text(out, b->salt_name ? b->salt_name : hex);
}

/* Writes a BlockStored event for a page. */
static void stored(mt_kv_events *e, const mt_tree_block *b, const char *medium)
{
    begin(e, "BlockStored", 8);
    name_blocks(e, b->hash);
    if (b->first)
        mt_msgpack_nil(field(e, "parent_block_hash"));
    else
        mt_msgpack_uint(field(e, "parent_block_hash"), b->parent);
    mt_buf *out = field(e, "token_ids");
    mt_msgpack_array(out, MT_PAGE_TOKENS);
    for (size_t i = 0; i < MT_PAGE_TOKENS; i++)
        mt_msgpack_uint(out, mt_key_token(b->key[i]));
    mt_msgpack_uint(field(e, "block_size"), MT_PAGE_TOKENS);
    mt_msgpack_nil(field(e, "lora_id"));
    text(field(e, "medium"), medium);
    mt_msgpack_nil(field(e, "lora_name"));
    add_extra_keys(field(e, "extra_keys"), b);
}

static void removed(mt_kv_events *e, uint64_t hash, const char *medium)
{
    begin(e, "BlockRemoved", 2);
    name_blocks(e, hash);
    text(field(e, "medium"), medium);
}

/* Sends the events as one message; what cannot be sent is recorded in e->lost. */
static void send_batch(mt_kv_events *e)
{
    struct timespec now;
    if (e->count == 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    e->batch.len = 0;
    mt_msgpack_array(&e->batch, 3);
    mt_msgpack_double(&e->batch, (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    mt_msgpack_array(&e->batch, e->count);
    mt_buf_add(&e->batch, e->events.data, e->events.len);
    mt_msgpack_nil(&e->batch);
    if (e->events.full || !mt_publisher_send(e->publisher, e->topic, e->batch.data, e->batch.len))
        e->lost = true;
    e->events.full = false;
    e->events.len = e->count = 0;
}

/* ---- from outside ---- */

void mt_kv_events_tell(void *events, const mt_tree_block *b, bool here)
{
    mt_kv_events *e = events;
    pthread_mutex_lock(&e->lock);
    if (here)
        stored(e, b, NEAR);
    else
        removed(e, b->hash, NEAR);
    pthread_mutex_unlock(&e->lock);
}

void mt_kv_events_kept(mt_kv_events *e, const mt_tree_block *b, mt_kv_place place)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    stored(e, b, medium_of[place]);
    pthread_mutex_unlock(&e->lock);
}

void mt_kv_events_dropped(mt_kv_events *e, uint64_t hash, mt_kv_place place)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    removed(e, hash, medium_of[place]);
    pthread_mutex_unlock(&e->lock);
}

void mt_kv_events_clear(mt_kv_events *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->events.len = e->count = 0; /* they tell of pages that are gone */
    e->events.full = e->lost = false;
    begin(e, "AllBlocksCleared", 0);
    send_batch(e);
    pthread_mutex_unlock(&e->lock);
}

static void tell_again(void *events, const mt_tree_block *b)
{
    mt_kv_events *e = events;
    if (e->lost) /* a message was lost again: readers know a correct part, and learn the rest when it is used */
        return;
    stored(e, b, NEAR);
    if (e->events.len >= MT_LIMIT_EVENT_BATCH / 8)
        send_batch(e);
}

void mt_kv_events_flush(mt_kv_events *e, const mt_tree *tree)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    if (!e->lost)
        send_batch(e);
    else if (mt_publisher_look(e->publisher).waiting == 0) {
        e->events.full = e->lost = false;
        e->events.len = e->count = 0;
        begin(e, "AllBlocksCleared", 0);
        if (tree)
            mt_tree_each(tree, tell_again, e);
        send_batch(e);
        e->lost = false;
    } else
        e->events.len = e->count = 0; /* dropped: all pages will be told anew */
    pthread_mutex_unlock(&e->lock);
}
