/* What was computed once is not computed again, and gives the same bits; what is broken stays with its request. */
#include "engine_driver.h"

#include <unistd.h>

#define TOKENS 4

/* Warm with the first `cut` tokens, then ask for all: at every cut the answer is the cold one's. */
static void check_every_cut(const char *dir)
{
    enum { LEN = 331, LAST = 65 };
    static answer cold, warm;
    uint32_t prompt[LEN];
    draw random = {12};
    if (fixture_is_quantised(dir))
        return;
    for (size_t cut = 0; cut < LEN; cut += cut < LAST ? 1 : 37) {
        driver d;
        char what[600];
        driver_open(&d, dir, MT_PRECISION_FAST, 1);
        if (cut == 0)
            draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
        d.params.context = 512;
        d.params.sequences = 2;
        driver_start(&d);
        if (cut > 0)
            driver_ask(&d, prompt, cut, 1, &warm);
        driver_ask(&d, prompt, LEN, TOKENS, cut ? &warm : &cold);
        snprintf(what, sizeof(what), "%s, cut at %zu", dir, cut);
        if (cut > 0) {
            expect_same(what, &cold, &warm);
            if (warm.cached != cut)
                fail_msg("%s: %zu tokens were cached", what, warm.cached);
        }
        driver_close(&d);
    }
}

static void the_same_bits_at_every_cut(void **state)
{
    (void)state;
    for_each_kind(check_every_cut);
}

static void check_second_sight(const char *dir)
{
    static const size_t lengths[] = {2, 33, 64, 65, 95, 96, 97, 256, 300, 700};
    static answer first, second;
    static uint32_t prompt[700];
    draw random = {13};
    driver d;
    if (fixture_is_rewritten(dir))
        return;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.context = 1024;
    d.params.sequences = 4;
    driver_start(&d);
    for (size_t i = 0; i < MT_COUNT(lengths); i++) {
        draw_tokens(&random, prompt, lengths[i], d.o.spec.vocab);
        driver_ask(&d, prompt, lengths[i], TOKENS, &first);
        driver_ask(&d, prompt, lengths[i], TOKENS, &second);
        expect_same(dir, &first, &second);
        assert_int_equal(second.cached, lengths[i] - 1);
    }
    driver_close(&d);
}

static void second_sight_computes_the_last_token_only(void **state)
{
    (void)state;
    for_each_kind(check_second_sight);
}

/* A request that is submitted after a reset finds nothing, and its answer is the same. */
static void check_reset(const char *dir)
{
    enum { LEN = 200 };
    static answer first, second;
    uint32_t prompt[LEN];
    draw random = {15};
    driver d;
    if (fixture_is_rewritten(dir) || fixture_is_quantised(dir))
        return;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    d.params.context = 512;
    d.params.sequences = 4;
    driver_start(&d);
    driver_ask(&d, prompt, LEN, TOKENS, &first);
    for (size_t i = 0; i < 3; i++) {
        mt_engine_reset(d.engine);
        driver_ask(&d, prompt, LEN, TOKENS, &second);
        expect_same(dir, &first, &second);
        assert_int_equal(second.cached, 0);
        driver_ask(&d, prompt, LEN, TOKENS, &second);
        assert_int_equal(second.cached, LEN - 1);
    }
    driver_close(&d);
}

static void what_was_reset_is_computed_again(void **state)
{
    (void)state;
    for_each_kind(check_reset);
}

/* Each turn repeats all before it and adds a little: only that is computed. */
static void a_conversation_computes_what_is_new(void **state)
{
    enum { DOCUMENT = 1500, TURN = 23, TURNS = 6 };
    static uint32_t talk[DOCUMENT + TURNS * (TURN + TOKENS)];
    static answer a;
    draw random = {14};
    driver d;
    size_t len = DOCUMENT, before = 0;
    (void)state;
    driver_open(&d, FIXTURES "/gemma3-mlx-4bit", MT_PRECISION_FAST, 2);
    d.params.context = 4096;
    driver_start(&d);
    draw_tokens(&random, talk, DOCUMENT, d.o.spec.vocab);
    for (size_t turn = 0; turn < TURNS; turn++) {
        draw_tokens(&random, talk + len, TURN, d.o.spec.vocab);
        len += TURN;
        driver_ask(&d, talk, len, TOKENS, &a);
        /* the last token of an answer was sampled and not computed */
        assert_int_equal(a.cached, turn ? before + TOKENS - 1 : 0);
        before = len;
        for (size_t i = 0; i < TOKENS; i++)
            talk[len++] = a.chosen[i].id;
    }
    driver_close(&d);
}

static void salted_requests_share_nothing(void **state)
{
    static answer a;
    uint32_t prompt[100];
    draw random = {15};
    driver d;
    (void)state;
    driver_open(&d, FIXTURES "/qwen3-mlx-4bit-g32", MT_PRECISION_FAST, 1);
    driver_start(&d);
    draw_tokens(&random, prompt, 100, d.o.spec.vocab);
    for (uint8_t salt = 0; salt < 3; salt++)
        for (int again = 0; again < 2; again++) {
            mt_request *r = driver_request(&d, prompt, 100, 1, &a);
            r->salt[0] = salt;
            driver_send(&d, r);
            driver_wait(&d, 0);
            assert_int_equal(a.cached, again ? 99 : 0);
        }
    driver_close(&d);
}

/* The logprob of a prompt token is what a generation that ends there says of it. */
static void prompt_logprobs_are_those_of_generation(void **state)
{
    enum { LEN = 90 };
    static answer whole, part;
    static float logprob[LEN];
    uint32_t prompt[LEN + TOKENS];
    draw random = {16};
    driver d;
    (void)state;
    driver_open(&d, FIXTURES "/qwen3-mlx-4bit-g32", MT_PRECISION_FAST, 2);
    d.params.sequences = 3;
    driver_start(&d);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    driver_ask(&d, prompt, LEN - TOKENS, TOKENS, &part);
    for (size_t i = 0; i < TOKENS; i++)
        prompt[LEN - TOKENS + i] = part.chosen[i].id;
    mt_request *r = driver_request(&d, prompt, LEN, 1, &whole);
    whole.prompt_logprob = logprob;
    r->prompt_logprobs = true;
    r->prompt_top = 5;
    driver_send(&d, r);
    driver_wait(&d, 0);
    assert_int_equal(whole.prompt_count, LEN);
    assert_int_equal(whole.cached, 0);
    for (size_t i = 0; i < TOKENS; i++)
        assert_memory_equal(&logprob[LEN - TOKENS + i], &part.chosen[i].logprob, sizeof(float));
    driver_close(&d);
}

/* A copy of a checkpoint in which the embedding of one token is not a number. */
static void damage(const char *from, char *dir, uint32_t token, size_t width)
{
    char command[600], path[600], *header, *at;
    uint64_t size, offset;
    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof(command), "cp %s/* %s/ && chmod u+w %s/*", from, dir, dir);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fread(&size, sizeof(size), 1, f), 1);
    header = calloc(1, size + 1);
    assert_int_equal(fread(header, 1, size, f), size);
    at = strstr(header, "embed_tokens.weight");
    assert_non_null(at);
    at = strstr(at, "\"data_offsets\":[");
    assert_non_null(at);
    offset = strtoull(at + strlen("\"data_offsets\":["), NULL, 10);
    fseek(f, (long)(8 + size + offset + token * width * 2), SEEK_SET);
    for (size_t i = 0; i < width; i++)
        assert_int_equal(fwrite("\xff\x7f", 2, 1, f), 1);
    free(header);
    fclose(f);
}

static void a_broken_number_ends_one_request(void **state)
{
    enum { BROKEN = 77, LEN = 80, OTHERS = 6 };
    static answer good[OTHERS], alone[OTHERS], bad;
    char dir[] = "/tmp/motet-broken-XXXXXX", command[64];
    uint32_t prompt[OTHERS + 1][LEN];
    draw random = {17};
    driver d;
    (void)state;
    driver_open(&d, FIXTURES "/llama-bf16", MT_PRECISION_FAST, 2);
    const uint32_t vocab = d.o.spec.vocab, width = d.o.spec.hidden;
    mt_opened_close(&d.o);
    damage(FIXTURES "/llama-bf16", dir, BROKEN, width);
    for (size_t i = 0; i <= OTHERS; i++)
        for (size_t k = 0; k < LEN; k++)
            while ((prompt[i][k] = draw_below(&random, vocab)) == BROKEN)
                continue;
    prompt[OTHERS][50] = BROKEN;
    for (int company = 0; company < 2; company++) {
        driver_open(&d, dir, MT_PRECISION_FAST, 2);
        driver_start(&d);
        for (size_t i = 0; i < OTHERS; i++)
            driver_send(&d, driver_request(&d, prompt[i], LEN, TOKENS, company ? &good[i] : &alone[i]));
        if (company)
            driver_send(&d, driver_request(&d, prompt[OTHERS], LEN, TOKENS, &bad));
        driver_wait(&d, 0);
        if (company) { /* and again: nothing of it was kept */
            assert_int_equal(bad.finish, MT_FINISH_ERROR);
            driver_send(&d, driver_request(&d, prompt[OTHERS], LEN, TOKENS, &bad));
            driver_wait(&d, 0);
            assert_int_equal(bad.finish, MT_FINISH_ERROR);
            assert_true(bad.cached <= 50);
        }
        driver_close(&d);
    }
    for (size_t i = 0; i < OTHERS; i++)
        expect_same("beside a broken one", &alone[i], &good[i]);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_same_bits_at_every_cut),       cmocka_unit_test(second_sight_computes_the_last_token_only),
    cmocka_unit_test(what_was_reset_is_computed_again), cmocka_unit_test(a_conversation_computes_what_is_new),
    cmocka_unit_test(salted_requests_share_nothing),    cmocka_unit_test(prompt_logprobs_are_those_of_generation),
    cmocka_unit_test(a_broken_number_ends_one_request),
};

UNIT_MAIN(tests)
