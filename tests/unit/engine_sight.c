/* Second sight: how much of what was computed before is computed again, by models with recurrent layers, which can
   continue only where a state was kept. Conversations are laid out as chat templates do; the share of tokens that are
   found is that of all that some earlier request has computed. Prints the table of docs/cache.md. */
#include "engine_driver.h"

#define FIXTURE FIXTURES "/qwen35-mlx-4bit"
#define MOST 16000 /* tokens of a conversation */
#define EARLIER 32 /* requests of a case */
#define ANSWER 16  /* tokens of an answer */
#define SHARE 0.95

enum { TURN = 1, END, LINE, ROLE }; /* ROLE + 0, 1, ...: who speaks */
enum { SYSTEM, USER, ASSISTANT, TOOL };

typedef struct talk {
    uint32_t token[MOST];
    size_t len;
    uint32_t cut[512];
    size_t cuts;
} talk;

static struct {
    driver d;
    draw random;
    uint32_t vocab;
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

static size_t common(const talk *a, const talk *b)
{
    size_t n = 0;
    while (n < a->len && n < b->len && a->token[n] == b->token[n])
        n++;
    return n;
}

/* Asks for an answer to what was said so far, and adds it. */
static void ask(talk *t, answer *a)
{
    size_t most = 0;
    open_turn(t, ASSISTANT);
    for (size_t i = 0; i < now.count; i++) {
        const size_t n = common(&now.earlier[i], t);
        most = n > most ? n : most;
    }
    most = most < t->len - 1 ? most : t->len - 1;
    mt_request *r = driver_request(&now.d, t->token, t->len, ANSWER, a);
    uint32_t *cuts = mt_arena_alloc(r->arena, t->cuts * sizeof *cuts);
    memcpy(cuts, t->cut, t->cuts * sizeof *cuts);
    r->cuts = cuts;
    r->cut_count = t->cuts;
    driver_send(&now.d, r);
    driver_wait(&now.d, 0);
    assert_int_equal(a->finish, MT_FINISH_LENGTH);
    if (now.count > 0) {
        now.shareable += most;
        now.found += a->cached;
    }
    assert_true(a->cached <= most && now.count < EARLIER);
    talk *kept = &now.earlier[now.count++];
    *kept = *t;
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

static const struct {
    const char *name;
    void (*run)(size_t length);
} cases[] = {
    {"the same prompt again", again},
    {"a conversation", conversation},
    {"a conversation, thoughts dropped", thoughts_dropped},
    {"an agent with tool results", tools},
    {"one system prompt, other questions", one_system_prompt},
    {"one document, other questions", one_document},
    {"questions put again, in other words", regenerated},
};

static void most_of_what_is_known_is_found(void **state)
{
    static const size_t lengths[] = {64, 256, 1024, 8192};
    const size_t count = unit_quick() ? 2 : MT_COUNT(lengths);
    (void)state;
    printf("| case |");
    for (size_t l = 0; l < count; l++)
        printf(" %zu |", lengths[l]);
    printf("\n");
    for (size_t c = 0; c < MT_COUNT(cases); c++) {
        printf("| %s |", cases[c].name);
        for (size_t l = 0; l < count; l++) {
            driver_open(&now.d, FIXTURE, MT_PRECISION_FAST, 2);
            now.d.params.context = MOST;
            now.d.params.sequences = 4;
            now.d.params.cache = 8 * MOST;
            now.random = (draw){100 * c + l};
            now.vocab = now.d.o.spec.vocab;
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
