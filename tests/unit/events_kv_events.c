/* What a reader of KV events knows is what the tree has, whatever it missed on the way. The reader here has nothing of
   the writer's code: it decodes MessagePack by itself, listens with ZeroMQ, loses messages on purpose, and asks for
   them again. */
#include "unit.h"

#include <zmq.h>

#include "base/alloc.h"
#include "base/msgpack.h"
#include "cache/seq.h"
#include "events/kv_events.h"
#include "events/limits.h"

#define PAGES 96
#define LIMIT 640
#define KNOWN 1024 /* a power of two, more than there are pages */

static const uint8_t seed[32] = {7};

/* ---- a reader of MessagePack ---- */

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

typedef enum kind { NIL, NUMBER, REAL, TEXT, ARRAY, MAP } kind;

typedef struct value {
    kind kind;
    uint64_t number; /* of a number, or how many follow */
    const char *text;
} value;

static uint64_t big(cursor *c, size_t bytes)
{
    uint64_t v = 0;
    assert_true((size_t)(c->end - c->at) >= bytes);
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | *c->at++;
    return v;
}

static value read_value(cursor *c)
{
    const unsigned b = (unsigned)big(c, 1);
    value v = {.kind = NUMBER};
    if (b < 0x80)
        v.number = b;
    else if (b < 0x90)
        v = (value){.kind = MAP, .number = b & 15};
    else if (b < 0xa0)
        v = (value){.kind = ARRAY, .number = b & 15};
    else if (b < 0xc0)
        v = (value){.kind = TEXT, .number = b & 31};
    else if (b == 0xc0)
        v.kind = NIL;
    else if (b == 0xcb)
        v = (value){.kind = REAL, .number = big(c, 8)};
    else if (b >= 0xcc && b <= 0xcf)
        v.number = big(c, (size_t)1 << (b - 0xcc));
    else if (b == 0xd9)
        v = (value){.kind = TEXT, .number = big(c, 1)};
    else if (b == 0xdc)
        v = (value){.kind = ARRAY, .number = big(c, 2)};
    else if (b == 0xdd)
        v = (value){.kind = ARRAY, .number = big(c, 4)};
    else
        fail_msg("no such value: %x", b);
    if (v.kind == TEXT) {
        v.text = (const char *)c->at;
        assert_true((size_t)(c->end - c->at) >= v.number);
        c->at += v.number;
    }
    return v;
}

static value expect(cursor *c, kind k)
{
    const value v = read_value(c);
    assert_int_equal(v.kind, k);
    return v;
}

static bool is(value v, const char *text)
{
    return v.kind == TEXT && v.number == strlen(text) && memcmp(v.text, text, v.number) == 0;
}

/* ---- an index, as a router has one ---- */

typedef struct known {
    uint64_t hash, parent, content; /* content: of tokens and extra keys; 0: a free place */
    bool stored;                    /* in files, too */
} known;

typedef struct index {
    known at[KNOWN];
    size_t count, stored;
    uint64_t next; /* number that is expected */
    size_t replays, cleared;
    bool array;
} index_of;

static uint64_t mix(uint64_t sum, uint64_t more)
{
    sum = (sum ^ more) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 31;
}

static uint64_t mix_text(uint64_t sum, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = mix(sum, (uint8_t)text[i]);
    return mix(sum, len);
}

static known *find(index_of *x, uint64_t hash)
{
    size_t i = hash & (KNOWN - 1);
    while (x->at[i].content && x->at[i].hash != hash)
        i = (i + 1) & (KNOWN - 1);
    return &x->at[i];
}

static void forget(index_of *x, known *k)
{
    size_t i = (size_t)(k - x->at);
    x->count--;
    k->content = 0;
    for (size_t j = (i + 1) & (KNOWN - 1); x->at[j].content; j = (j + 1) & (KNOWN - 1)) {
        const known moved = x->at[j]; /* those behind a gap are put anew */
        x->at[j].content = 0;
        *find(x, moved.hash) = moved;
    }
}

static void name(cursor *c, const index_of *x, const char *field)
{
    if (!x->array)
        assert_true(is(expect(c, TEXT), field));
}

static void take_stored(cursor *c, index_of *x)
{
    known k = {.content = 1};
    name(c, x, "block_hashes");
    assert_int_equal(expect(c, ARRAY).number, 1);
    k.hash = expect(c, NUMBER).number;
    name(c, x, "parent_block_hash");
    const value parent = read_value(c);
    k.parent = parent.kind == NIL ? 0 : parent.number;
    name(c, x, "token_ids");
    assert_int_equal(expect(c, ARRAY).number, MT_PAGE_TOKENS);
    for (size_t i = 0; i < MT_PAGE_TOKENS; i++)
        k.content = mix(k.content, expect(c, NUMBER).number);
    name(c, x, "block_size");
    assert_int_equal(expect(c, NUMBER).number, MT_PAGE_TOKENS);
    name(c, x, "lora_id");
    expect(c, NIL);
    name(c, x, "medium");
    const value medium = expect(c, TEXT);
    name(c, x, "lora_name");
    expect(c, NIL);
    name(c, x, "extra_keys");
    const value extra = read_value(c);
    if (extra.kind != NIL) {
        assert_true(extra.kind == ARRAY && extra.number == 1);
        for (uint64_t left = expect(c, ARRAY).number; left > 0; left--) {
            const value key = expect(c, TEXT);
            k.content = mix_text(k.content, key.text, key.number);
        }
    }
    known *at = find(x, k.hash);
    if (is(medium, "STORAGE")) {
        x->stored++;
        return;
    }
    assert_true(is(medium, "GPU"));
    assert_int_equal(at->content, 0);                              /* nobody is told twice, */
    assert_true(parent.kind == NIL || find(x, k.parent)->content); /* and parents come first */
    *at = k;
    x->count++;
}

static void take_removed(cursor *c, index_of *x)
{
    name(c, x, "block_hashes");
    assert_int_equal(expect(c, ARRAY).number, 1);
    const uint64_t hash = expect(c, NUMBER).number;
    name(c, x, "medium");
    if (is(expect(c, TEXT), "STORAGE")) {
        x->stored--;
        return;
    }
    assert_true(find(x, hash)->content);
    forget(x, find(x, hash));
}

static void take_batch(index_of *x, const uint8_t *data, size_t size)
{
    cursor c = {data, data + size};
    assert_int_equal(expect(&c, ARRAY).number, 3);
    expect(&c, REAL);
    for (uint64_t left = expect(&c, ARRAY).number; left > 0; left--) {
        const value event = read_value(&c);
        assert_int_equal(event.kind, x->array ? ARRAY : MAP);
        name(&c, x, "type");
        const value type = expect(&c, TEXT);
        if (is(type, "BlockStored")) {
            assert_int_equal(event.number, 9);
            take_stored(&c, x);
        } else if (is(type, "BlockRemoved")) {
            assert_int_equal(event.number, 3);
            take_removed(&c, x);
        } else {
            assert_true(is(type, "AllBlocksCleared"));
            memset(x->at, 0, sizeof(x->at));
            x->count = x->stored = 0;
            x->cleared++;
        }
    }
    expect(&c, NIL);
    assert_true(c.at == c.end);
}

/* ---- listening ---- */

typedef struct ear {
    void *context, *sub, *dealer;
    uint64_t random;
} ear;

static size_t receive(void *socket, uint8_t *out, size_t room)
{
    const int len = zmq_recv(socket, out, room, 0);
    assert_true(len >= 0 && (size_t)len <= room);
    return (size_t)len;
}

static uint64_t receive_number(void *socket)
{
    uint8_t frame[8];
    assert_int_equal(receive(socket, frame, sizeof(frame)), 8);
    cursor c = {frame, frame + 8};
    return big(&c, 8);
}

static uint8_t data[MT_LIMIT_EVENT_BATCH];

static void take(index_of *x, uint64_t number, size_t size)
{
    if (number < x->next) /* both ways */
        return;
    assert_int_equal(number, x->next);
    x->next++;
    take_batch(x, data, size);
}

static void ask_again(ear *e, index_of *x)
{
    uint8_t topic[64], frame[8];
    for (size_t i = 0; i < 8; i++)
        frame[i] = (uint8_t)(x->next >> 8 * (7 - i));
    assert_true(zmq_send(e->dealer, "", 0, ZMQ_SNDMORE) == 0 && zmq_send(e->dealer, frame, 8, 0) == 8);
    x->replays++;
    for (;;) {
        assert_int_equal(receive(e->dealer, topic, sizeof(topic)), 0);
        const size_t len = receive(e->dealer, topic, sizeof(topic));
        const uint64_t number = receive_number(e->dealer);
        const size_t size = receive(e->dealer, data, sizeof(data));
        if (number == UINT64_MAX) {
            assert_int_equal(size, 0);
            return;
        }
        assert_true(len == 6 && memcmp(topic, "kv@a@b", len) == 0);
        take(x, number, size);
    }
}

/* Everything up to number `end`. One of so many messages is lost on the way. */
static void listen_until(ear *e, index_of *x, uint64_t end)
{
    uint8_t topic[64];
    while (x->next < end) {
        e->random = e->random * 6364136223846793005u + 1442695040888963407u;
        zmq_pollitem_t item = {.socket = e->sub, .events = ZMQ_POLLIN};
        if (zmq_poll(&item, 1, 20) == 0) { /* nothing comes any more: the last was lost */
            ask_again(e, x);
            continue;
        }
        receive(e->sub, topic, sizeof(topic));
        const uint64_t number = receive_number(e->sub);
        const size_t size = receive(e->sub, data, sizeof(data));
        if (e->random >> 60 == 0)
            continue;
        if (number > x->next)
            ask_again(e, x);
        else
            take(x, number, size);
    }
}

static ear hear(const mt_publisher *p)
{
    const int linger = 0, most = 0;
    ear e = {.context = zmq_ctx_new(), .random = 1};
    e.sub = zmq_socket(e.context, ZMQ_SUB);
    e.dealer = zmq_socket(e.context, ZMQ_DEALER);
    assert_true(zmq_setsockopt(e.sub, ZMQ_RCVHWM, &most, sizeof(most)) == 0);
    assert_true(zmq_setsockopt(e.sub, ZMQ_LINGER, &linger, sizeof(linger)) == 0);
    assert_true(zmq_setsockopt(e.dealer, ZMQ_LINGER, &linger, sizeof(linger)) == 0);
    assert_true(zmq_setsockopt(e.dealer, ZMQ_RCVHWM, &most, sizeof(most)) == 0);
    assert_true(zmq_setsockopt(e.sub, ZMQ_SUBSCRIBE, "kv@", 3) == 0);
    assert_true(zmq_connect(e.sub, mt_publisher_address(p)) == 0);
    assert_true(zmq_connect(e.dealer, mt_publisher_replay_address(p)) == 0);
    return e;
}

static void turn_away(ear *e)
{
    zmq_close(e->sub);
    zmq_close(e->dealer);
    zmq_ctx_term(e->context);
}

/* ---- the tree ---- */

typedef struct census {
    index_of *x;
    size_t count;
} census;

static void count_block(void *ctx, const mt_tree_block *b)
{
    census *all = ctx;
    char hex[65];
    uint64_t content = 1;
    for (size_t i = 0; i < MT_PAGE_TOKENS; i++)
        content = mix(content, mt_key_token(b->key[i]));
    for (size_t i = 0; i < b->figures + (b->salt && !b->salt_name); i++) {
        const uint8_t *bytes = i < b->figures ? b->figure[i].digest : b->salt;
        for (size_t k = 0; k < 32; k++)
            snprintf(hex + 2 * k, 3, "%02x", bytes[k]);
        content = mix_text(content, hex, 64);
    }
    if (b->salt_name)
        content = mix_text(content, b->salt_name, strlen(b->salt_name));
    const known *k = find(all->x, b->hash);
    assert_true(k->content == content);
    assert_true(k->parent == (b->first ? 0 : b->parent));
    all->count++;
}

/* The reader knows what the tree has, and nothing else. */
static void compare(index_of *x, const mt_tree *t)
{
    census all = {.x = x};
    mt_tree_each(t, count_block, &all);
    assert_int_equal(all.count, x->count);
}

typedef struct life {
    mt_tree *tree;
    uint64_t random;
} life;

static size_t draw(life *l, size_t below)
{
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(l->random >> 33) % below;
}

/* A request: one of a few beginnings, cut somewhere, and words of its own; sometimes a picture, sometimes a salt. */
static void request(life *l)
{
    uint32_t token[LIMIT];
    uint8_t salt[32] = {0};
    mt_figure figure = {.digest = {0}};
    mt_page_copy copy;
    mt_hit hit;
    mt_seq s;
    const size_t who = draw(l, 6), common = draw(l, 400), count = common + 1 + draw(l, 200), salted = draw(l, 8);
    for (size_t i = 0; i < count; i++)
        token[i] = i < common ? (uint32_t)(1000 * who + i) : (uint32_t)draw(l, 60000);
    if (draw(l, 3) == 0 && common > 120) {
        figure.first = 10;
        figure.count = 90;
        figure.digest[31] = (uint8_t)(1 + draw(l, 2));
    }
    salt[0] = salted < 2 ? (uint8_t)(1 + salted) : 0;
    mt_seq_init(&s, 1, LIMIT);
    mt_seq_prompt(&s, token, count, &figure, figure.count > 0);
    mt_seq_attach(&s, l->tree, salt);
    if (salted == 0)
        mt_tree_name_root(s.root, "a tenant");
    mt_seq_resume(&s, &copy, &hit);
    if (mt_seq_grow(&s, count))
        mt_seq_commit(&s, count - s.done);
    mt_seq_free(&s);
}

/* A reader that hears 15 of 16 messages, and asks for the others. */
static void live(bool array, size_t requests)
{
    const mt_publisher_params params = {.address = "tcp://127.0.0.1:*", .replay = "tcp://127.0.0.1:*"};
    const mt_cache_groups groups = {.count = 1};
    mt_error err = {0};
    mt_publisher *p = mt_publisher_open(&params, &err);
    assert_non_null(p);
    mt_kv_events *events = mt_kv_events_new(p, "kv@a@b", array ? MT_KV_EVENTS_ARRAY : MT_KV_EVENTS_MAP);
    life l = {.tree = mt_tree_new(&groups, (const size_t[]){PAGES}, 4), .random = 5};
    index_of *x = mt_alloc(sizeof(*x));
    x->array = array;
    ear e = hear(p);
    mt_tree_tell(l.tree, seed, mt_kv_events_tell, events);
    mt_kv_events_clear(events);
    for (size_t i = 1; i <= requests; i++) {
        request(&l);
        mt_kv_events_flush(events, l.tree);
        if (i % 100 == 0) {
            listen_until(&e, x, mt_publisher_look(p).numbered);
            compare(x, l.tree);
        }
    }
    assert_true(x->count > PAGES / 2 && mt_tree_evictions(l.tree) > requests);
    assert_true(x->replays > 0 && mt_publisher_look(p).replays == x->replays);
    assert_int_equal(mt_publisher_look(p).dropped, 0);
    mt_tree_clear(l.tree);
    mt_kv_events_flush(events, l.tree);
    listen_until(&e, x, mt_publisher_look(p).numbered);
    assert_int_equal(x->count, 0);
    turn_away(&e);
    mt_tree_free(l.tree);
    mt_kv_events_free(events);
    mt_publisher_close(p);
    mt_free(x);
}

static void a_reader_knows_what_the_tree_has(void **state)
{
    (void)state;
    live(false, unit_quick() ? 1000 : 10000);
}

static void an_older_reader_does_too(void **state)
{
    (void)state;
    live(true, 400);
}

/* Nobody sends while the queue has no room; afterwards readers are told to forget, and then all there is. */
static void what_was_dropped_is_told_anew(void **state)
{
    const mt_publisher_params params = {
        .address = "tcp://127.0.0.1:*", .replay = "tcp://127.0.0.1:*", .waiting_bytes = 6000};
    const mt_cache_groups groups = {.count = 1};
    mt_error err = {0};
    mt_publisher *p = mt_publisher_open(&params, &err);
    mt_kv_events *events = mt_kv_events_new(p, "kv@a@b", MT_KV_EVENTS_MAP);
    life l = {.tree = mt_tree_new(&groups, (const size_t[]){PAGES}, 4), .random = 5};
    index_of *x = mt_alloc(sizeof(*x));
    ear e = hear(p);
    (void)state;
    mt_tree_tell(l.tree, seed, mt_kv_events_tell, events);
    mt_kv_events_clear(events);
    for (size_t i = 0; i < 40; i++)
        request(&l); /* more than fits one message that may wait */
    while (mt_publisher_look(p).waiting > 0)
        usleep(1000);
    mt_kv_events_flush(events, l.tree);
    assert_int_equal(mt_publisher_look(p).dropped, 1);
    mt_tree_clear(l.tree);
    uint64_t kept = 0;
    while (kept == 0) { /* a few pages, all of which fit */
        uint32_t token[4 * MT_PAGE_TOKENS];
        mt_page_copy copy;
        mt_hit hit;
        mt_seq s;
        for (size_t i = 0; i < 4 * MT_PAGE_TOKENS; i++)
            token[i] = (uint32_t)i;
        mt_seq_init(&s, 1, LIMIT);
        mt_seq_prompt(&s, token, 4 * MT_PAGE_TOKENS, NULL, 0);
        mt_seq_attach(&s, l.tree, (const uint8_t[32]){0});
        mt_seq_resume(&s, &copy, &hit);
        assert_true(mt_seq_grow(&s, 4 * MT_PAGE_TOKENS));
        mt_seq_commit(&s, 4 * MT_PAGE_TOKENS);
        mt_seq_free(&s);
        mt_kv_events_flush(events, l.tree);
        kept = mt_publisher_look(p).numbered - 2;
    }
    assert_int_equal(mt_publisher_look(p).numbered, 3); /* the first, the one that was dropped, and this */
    x->next = 2;
    ask_again(&e, x);
    assert_int_equal(x->cleared, 1);
    assert_int_equal(x->count, 4);
    compare(x, l.tree);
    turn_away(&e);
    mt_tree_free(l.tree);
    mt_kv_events_free(events);
    mt_publisher_close(p);
    mt_free(x);
}

/* Tells of so many pages that one message with all of them is dropped where `waiting` bytes may wait; then all of them
   are told anew. Returns how many messages that takes. */
static uint64_t messages_anew(size_t waiting)
{
    enum { MANY = 4000 };
    const mt_publisher_params params = {.address = "tcp://127.0.0.1:*", .waiting_bytes = waiting};
    const mt_cache_groups groups = {.count = 1};
    mt_error err = {0};
    mt_publisher *p = mt_publisher_open(&params, &err);
    mt_kv_events *events = mt_kv_events_new(p, "kv@a@b", MT_KV_EVENTS_MAP);
    mt_tree *tree = mt_tree_new(&groups, (const size_t[]){MANY}, 4);
    uint32_t *token = mt_alloc_array(MANY * MT_PAGE_TOKENS, sizeof(*token));
    mt_page_copy copy;
    mt_hit hit;
    mt_seq s;
    mt_tree_tell(tree, seed, mt_kv_events_tell, events);
    for (uint32_t i = 0; i < MANY * MT_PAGE_TOKENS; i++)
        token[i] = 100000 + i; /* which takes five bytes */
    mt_seq_init(&s, 1, MANY * MT_PAGE_TOKENS);
    mt_seq_prompt(&s, token, MANY * MT_PAGE_TOKENS, NULL, 0);
    mt_seq_attach(&s, tree, (const uint8_t[32]){0});
    mt_seq_resume(&s, &copy, &hit);
    assert_true(mt_seq_grow(&s, MANY * MT_PAGE_TOKENS));
    mt_seq_commit(&s, MANY * MT_PAGE_TOKENS);
    mt_seq_free(&s);
    mt_kv_events_flush(events, tree);
    assert_true(mt_publisher_look(p).numbered == 1 && mt_publisher_look(p).dropped == 1);
    mt_kv_events_flush(events, tree);
    const uint64_t numbered = mt_publisher_look(p).numbered - 1;
    mt_kv_events_flush(events, tree); /* once is enough, whatever came of it: nothing is new */
    assert_int_equal(mt_publisher_look(p).numbered, numbered + 1);
    mt_free(token);
    mt_tree_free(tree);
    mt_kv_events_free(events);
    mt_publisher_close(p);
    return numbered;
}

/* What is told anew is cut into messages of an eighth of what one may have. Where one of them is lost again, the rest
   is not told: what readers know has no gaps. */
static void who_lost_the_beginning_is_not_told_the_end(void **state)
{
    const size_t part = MT_LIMIT_EVENT_BATCH / 8;
    (void)state;
    assert_int_equal(messages_anew(part + part / 16), 2);
    assert_int_equal(messages_anew(part / 2), 1); /* the second would have been small enough */
}

static void as_many_are_kept_as_fit(void **state)
{
    const mt_publisher_params params = {
        .address = "tcp://127.0.0.1:*", .replay = "tcp://127.0.0.1:*", .kept = 8, .kept_bytes = 500};
    mt_error err = {0};
    char text[100] = "";
    mt_publisher *p = mt_publisher_open(&params, &err);
    (void)state;
    for (size_t i = 0; i < 20; i++)
        assert_true(mt_publisher_send(p, "t", text, 10));
    while (mt_publisher_look(p).waiting > 0)
        usleep(1000);
    assert_int_equal(mt_publisher_look(p).kept, 8); /* by count, */
    for (size_t i = 0; i < 20; i++)
        assert_true(mt_publisher_send(p, "t", text, 100));
    while (mt_publisher_look(p).waiting > 0)
        usleep(1000);
    assert_int_equal(mt_publisher_look(p).kept, 5); /* and by bytes */
    mt_publisher_close(p);
}

static void where_it_cannot_listen_is_said(void **state)
{
    const mt_publisher_params wrong = {.address = "5557"};
    const mt_publisher_params good = {.address = "tcp://127.0.0.1:*"};
    mt_error err = {0};
    (void)state;
    assert_null(mt_publisher_open(&wrong, &err));
    assert_string_equal(err.text, "\"5557\" cannot be listened at for KV events: Invalid argument; give one like "
                                  "tcp://*:5557");
    mt_publisher *p = mt_publisher_open(&good, &err);
    const mt_publisher_params taken = {.address = mt_publisher_address(p)};
    assert_null(mt_publisher_open(&taken, &err));
    assert_non_null(strstr(err.text, "Address already in use"));
    assert_string_equal(mt_publisher_replay_address(p), "");
    mt_publisher_close(p);
}

static void topics_have_names(void **state)
{
    (void)state;
    char *topic = mt_kv_events_topic("kv@{host}:8000@{model}{", "pod", "Qwen/Qwen3-8B");
    assert_string_equal(topic, "kv@pod:8000@Qwen/Qwen3-8B{");
    mt_free(topic);
}

/* What Python's msgpack makes of these values. */
static void numbers_are_as_short_as_they_can_be(void **state)
{
    static const struct {
        uint64_t value;
        size_t bytes;
    } rows[] = {{0, 1},         {127, 1},        {128, 2},
                {255, 2},       {256, 3},        {65535, 3},
                {65536, 5},     {UINT32_MAX, 5}, {UINT64_C(1) << 32, 9},
                {UINT64_MAX, 9}};
    mt_buf out;
    (void)state;
    mt_buf_init(&out, 1u << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        out.len = 0;
        mt_msgpack_uint(&out, rows[i].value);
        assert_int_equal(out.len, rows[i].bytes);
        cursor c = {(uint8_t *)out.data, (uint8_t *)out.data + out.len};
        assert_true(expect(&c, NUMBER).number == rows[i].value);
    }
    for (size_t len = 0; len < 300; len++) {
        char text[300];
        memset(text, 'x', sizeof(text));
        out.len = 0;
        mt_msgpack_text(&out, text, len);
        assert_int_equal(out.len, len + (len < 32 ? 1 : len < 256 ? 2 : 3));
        assert_int_equal((uint8_t)out.data[0], len < 32 ? 0xa0 + len : len < 256 ? 0xd9 : 0xda);
    }
    out.len = 0;
    mt_msgpack_array(&out, 15);
    mt_msgpack_array(&out, 16);
    mt_msgpack_array(&out, 65536);
    mt_msgpack_map(&out, 9);
    mt_msgpack_double(&out, 1.5);
    mt_msgpack_nil(&out);
    assert_memory_equal(out.data, "\x9f\xdc\0\x10\xdd\0\x01\0\0\x89\xcb\x3f\xf8\0\0\0\0\0\0\xc0", 20);
    mt_buf_free(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_are_as_short_as_they_can_be),
    cmocka_unit_test(topics_have_names),
    cmocka_unit_test(where_it_cannot_listen_is_said),
    cmocka_unit_test(as_many_are_kept_as_fit),
    cmocka_unit_test(what_was_dropped_is_told_anew),
    cmocka_unit_test(who_lost_the_beginning_is_not_told_the_end),
    cmocka_unit_test(an_older_reader_does_too),
    cmocka_unit_test(a_reader_knows_what_the_tree_has),
};

UNIT_MAIN(tests)
