/* Second sight: how much of what was computed before is computed again, by models with recurrent layers, which can
   continue only where a state was kept. Conversations are laid out as chat templates do; the share of tokens that are
   found is that of all that some earlier request has computed. Prints the table of docs/cache.md. */
#include "engine_driver.h"
#include "media/image.h"

#define FIXTURE FIXTURES "/qwen35-mlx-4bit"
#define SIGHTED "tests/oracle/sighted/qwen35-bf16"
#define FIRST_SPECIAL 256 /* of the tokens of SIGHTED that stand for something */
#define SPECIAL 64
#define MOST 16000 /* tokens of a conversation */
#define EARLIER 32 /* requests of a case */
#define ANSWER 16  /* tokens of an answer */
#define SHARE 0.95
#define SHOWN 4 /* pictures of a conversation */

enum { TURN = 1, END, LINE, LOOK, SEEN, ROLE }; /* ROLE + 0, 1, ...: who speaks */
enum { SYSTEM, USER, ASSISTANT, TOOL };

typedef struct talk {
    uint32_t token[MOST];
    size_t len;
    uint32_t cut[512];
    size_t cuts;
    unsigned shown; /* pictures 0, 1, ... */
} talk;

static struct {
    driver d;
    draw random;
    uint32_t vocab, pad;   /* pad: stands for a picture */
    talk earlier[EARLIER]; /* what was computed */
    size_t count;
    size_t shareable, found; /* of all requests but the first */
} now;

static void say(talk *t, uint32_t token)
{
    assert_true(t->len < MOST);
    t->token[t->len++] = token;
}

static void open_turn(talk *t, uint32_t role)
{
    if (t->len > 0)
        t->cut[t->cuts++] = (uint32_t)t->len;
    say(t, TURN);
    say(t, ROLE + role);
    say(t, LINE);
}

static void close_turn(talk *t)
{
    say(t, END);
    say(t, LINE);
}

static void words(talk *t, size_t count)
{
    for (size_t i = 0; i < count; i++)
        say(t, 10 + draw_below(&now.random, now.vocab - 10));
}

/* A turn of `length` tokens, with all that surrounds its words. */
static void turn(talk *t, uint32_t role, size_t length)
{
    open_turn(t, role);
    words(t, length - 5);
    close_turn(t);
}

/* A turn that shows one more picture. */
static void turn_with_picture(talk *t, uint32_t role, size_t length)
{
    open_turn(t, role);
    say(t, LOOK);
    say(t, now.pad);
    say(t, SEEN);
    t->shown++;
    words(t, length - 8);
    close_turn(t);
}

static size_t common(const talk *a, const talk *b)
{
    size_t n = 0;
    while (n < a->len && n < b->len && a->token[n] == b->token[n])
        n++;
    return n;
}

/* Noise, each picture its own. */
static void draw_picture(unsigned which, mt_arena *arena, mt_picture *to)
{
    draw random = {which + 77};
    mt_image image;
    mt_error err = {0};
    mt_image_new(&image, 100, 72);
    for (size_t i = 0; i < (size_t)3 * 100 * 72; i++)
        image.pixels[i] = (uint8_t)draw_below(&random, 256);
    if (!mt_processor_image(now.d.o.processor, &image, &(mt_picture_order){.arena = arena}, to, &err))
        fail_msg("%s", err.text);
    mt_image_free(&image);
}

/* Gives the request its pictures, and the talk the tokens that stand for them. */
static void show(talk *t, mt_arena *arena, mt_picture *pictures, mt_expanded *to)
{
    mt_error err = {0};
    assert_true(t->shown <= SHOWN);
    for (unsigned i = 0; i < t->shown; i++)
        draw_picture(i, arena, &pictures[i]);
    if (!mt_processor_expand(now.d.o.processor, t->token, t->len, pictures, t->shown, arena, to, &err))
        fail_msg("%s", err.text);
    assert_true(to->count <= MOST);
    for (size_t i = 0, at = 0; i < t->cuts; i++) {
        while (to->origin[at] < t->cut[i])
            at++;
        t->cut[i] = (uint32_t)at;
    }
    memcpy(t->token, to->ids, to->count * sizeof(*to->ids));
    t->len = to->count;
}

static size_t known_before(const talk *t)
{
    size_t most = 0;
    for (size_t i = 0; i < now.count; i++) {
        const size_t n = common(&now.earlier[i], t);
        most = n > most ? n : most;
    }
    return most < t->len - 1 ? most : t->len - 1;
}

static void send(const talk *t, mt_arena *arena, mt_picture *pictures, const mt_expanded *shown, answer *a)
{
    mt_logit_bias none[SPECIAL];
    mt_request *r = driver_request(&now.d, t->token, t->len, ANSWER, a);
    uint32_t *cuts = mt_arena_alloc(r->arena, t->cuts * sizeof(*cuts));
    assert_true(mt_arena_defer(r->arena, (void (*)(void *))mt_arena_free, arena));
    memcpy(cuts, t->cut, t->cuts * sizeof(*cuts));
    r->cuts = cuts;
    r->cut_count = t->cuts;
    r->pictures = pictures;
    r->picture_count = t->shown;
    r->spans = shown->spans;
    r->span_count = shown->span_count;
    for (uint32_t i = 0; i < SPECIAL; i++) /* an answer shows nothing */
        none[i] = (mt_logit_bias){FIRST_SPECIAL + i, -100};
    r->sampling.bias = none;
    r->sampling.bias_count = t->shown ? SPECIAL : 0;
    driver_send(&now.d, r);
    driver_wait(&now.d, 0);
    assert_int_equal(a->finish, MT_FINISH_LENGTH);
}

/* Asks for an answer to what was said so far. */
static void ask(talk *t, answer *a)
{
    mt_arena *arena = mt_arena_new(0);
    mt_picture *pictures = mt_arena_alloc(arena, SHOWN * sizeof(*pictures));
    mt_expanded shown = {0};
    assert_true(now.count < EARLIER);
    open_turn(t, ASSISTANT);
    talk *kept = &now.earlier[now.count];
    *kept = *t;
    if (t->shown)
        show(kept, arena, pictures, &shown);
    const size_t most = known_before(kept);
    send(kept, arena, pictures, &shown, a);
    if (now.count++ > 0) {
        now.shareable += most;
        now.found += a->cached;
    }
    assert_true(a->cached <= most);
    for (size_t i = 0; i + 1 < ANSWER; i++) /* the last token was sampled, not computed */
        say(kept, a->chosen[i].id);
}

/* What the template makes of the answer when the next turn comes: all of it, or without its first tokens. */
static void take_answer(talk *t, const answer *a, size_t dropped)
{
    for (size_t i = dropped; i < ANSWER; i++)
        say(t, a->chosen[i].id);
    close_turn(t);
}

static void again(size_t length)
{
    static talk t;
    static answer a;
    t = (talk){.len = 0};
    turn(&t, USER, length - 3);
    for (size_t i = 0; i < 3; i++) {
        talk copy = t;
        ask(&copy, &a);
    }
}

static void several_turns(size_t length, size_t dropped, uint32_t reply, size_t reply_length)
{
    static talk t;
    static answer a;
    t = (talk){.len = 0};
    turn(&t, SYSTEM, length / 2);
    turn(&t, USER, length - length / 2 - 3);
    for (size_t i = 0; i < 6; i++) {
        ask(&t, &a);
        take_answer(&t, &a, dropped);
        turn(&t, reply, reply_length);
    }
}

static void conversation(size_t length)
{
    several_turns(length, 0, USER, 20);
}

static void thoughts_dropped(size_t length)
{
    several_turns(length, 7, USER, 20);
}

static void tools(size_t length)
{
    several_turns(length, 0, TOOL, length / 8 + 20);
}

static void one_system_prompt(size_t length)
{
    static talk t;
    static answer a;
    t = (talk){.len = 0};
    turn(&t, SYSTEM, length);
    for (size_t i = 0; i < 8; i++) {
        talk copy = t;
        turn(&copy, USER, 30);
        ask(&copy, &a);
    }
}

/* The second request finds out where they part; those after it are counted. */
static void one_document(size_t length)
{
    static talk t;
    static answer a;
    t = (talk){.len = 0};
    open_turn(&t, USER);
    words(&t, length);
    for (size_t i = 0; i < 8; i++) {
        talk copy = t;
        if (i == 2)
            now.shareable = now.found = 0;
        words(&copy, 20);
        close_turn(&copy);
        ask(&copy, &a);
    }
}

static void regenerated(size_t length)
{
    static talk t;
    static answer a;
    t = (talk){.len = 0};
    turn(&t, USER, length - 3);
    talk first = t;
    ask(&first, &a);
    take_answer(&first, &a, 0);
    turn(&first, USER, 25);
    for (size_t i = 0; i < 3; i++) { /* the last question is put in other words */
        talk copy = first;
        ask(&copy, &a);
        copy = first;
        copy.len -= 12;
        words(&copy, 10);
        close_turn(&copy);
        ask(&copy, &a);
    }
}

static void pictures(size_t length)
{
    static talk t;
    static answer a;
    t = (talk){.len = 0};
    turn(&t, SYSTEM, length / 2);
    turn_with_picture(&t, USER, length - length / 2 - 3);
    for (size_t i = 0; i < 6; i++) {
        ask(&t, &a);
        take_answer(&t, &a, 0);
        if (i % 2)
            turn_with_picture(&t, USER, 20);
        else
            turn(&t, USER, 20);
    }
}

static void one_picture(size_t length)
{
    static talk t;
    static answer a;
    t = (talk){.len = 0};
    turn(&t, SYSTEM, length);
    for (size_t i = 0; i < 6; i++) {
        talk copy = t;
        turn_with_picture(&copy, USER, 20);
        ask(&copy, &a);
    }
}

static const struct {
    const char *name;
    void (*run)(size_t length);
    bool sighted;
} cases[] = {
    {"the same prompt again", again, false},
    {"a conversation", conversation, false},
    {"a conversation, thoughts dropped", thoughts_dropped, false},
    {"an agent with tool results", tools, false},
    {"one system prompt, other questions", one_system_prompt, false},
    {"one document, other questions", one_document, false},
    {"questions put again, in other words", regenerated, false},
    {"a conversation with pictures", pictures, true},
    {"one picture, other questions", one_picture, true},
};

static void open_for(bool sighted)
{
    int64_t pad = 0;
    mt_error err = {0};
    driver_open(&now.d, sighted ? SIGHTED : FIXTURE, MT_PRECISION_FAST, 2);
    now.vocab = sighted ? FIRST_SPECIAL : now.d.o.spec.vocab;
    if (sighted)
        assert_true(
            mt_config_int(mt_checkpoint_config(now.d.o.checkpoint), "image_token_id", 0, 1, INT32_MAX, &pad, &err));
    now.pad = (uint32_t)pad;
}

static void most_of_what_is_known_is_found(void **state)
{
    static const size_t lengths[] = {64, 256, 1024, 8192};
    const size_t count = unit_quick() ? 2 : unit_full() ? MT_COUNT(lengths) : 3;
    (void)state;
    printf("| case |");
    for (size_t l = 0; l < count; l++)
        printf(" %zu |", lengths[l]);
    printf("\n");
    for (size_t c = 0; c < MT_COUNT(cases); c++) {
        printf("| %s |", cases[c].name);
        for (size_t l = 0; l < count; l++) {
            open_for(cases[c].sighted);
            now.d.params.context = MOST;
            now.d.params.sequences = 4;
            now.d.params.cache = 8 * MOST;
            now.random = (draw){100 * c + l};
            now.count = now.shareable = now.found = 0;
            driver_start(&now.d);
            cases[c].run(lengths[l]);
            driver_close(&now.d);
            printf(" %.1f %% |", 100.0 * (double)now.found / (double)now.shareable);
            if ((double)now.found < SHARE * (double)now.shareable)
                fail_msg("%s of %zu tokens: %zu of %zu found", cases[c].name, lengths[l], now.found, now.shareable);
        }
        printf("\n");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(most_of_what_is_known_is_found),
};

UNIT_MAIN(tests)
