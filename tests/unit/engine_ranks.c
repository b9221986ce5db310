/* Several ranks give the bits of one: every family, text and pictures, side by side and in chunks, cached, guessed
   ahead and constrained. Started by mpirun as rank 0, beside `motet serve`; each fixture is first run by this process
   alone. */
#include "engine_driver.h"
#include "engine_pictures.h"
#include "head.h"

#include <jansson.h>

#include "../constraint/follow.h"
#include "ranks/ranks.h"

#define NEW_TOKENS 6
#define ASKED 4

static mt_precision precision;

typedef struct answers {
    answer text[ASKED], again;
} answers;

/* Prompts that page ends, chunks and segments cut, with all ways to choose, then one of them with its beginning
   cached. */
static void ask_all(driver *d, answers *to)
{
    static const size_t lengths[ASKED] = {70, 1, 33, 9};
    uint32_t prompt[ASKED][70];
    draw random = {7};
    const uint32_t vocab = d->o.spec.vocab;
    driver_hold(d);
    for (size_t i = 0; i < ASKED; i++) {
        draw_tokens(&random, prompt[i], lengths[i], vocab);
        mt_request *r = driver_request(d, prompt[i], lengths[i], NEW_TOKENS, &to->text[i]);
        driver_vary(r, i % KINDS);
        driver_send(d, r);
    }
    driver_let_go(d);
    driver_wait(d, 0);
    draw_tokens(&random, prompt[0] + 40, 30, vocab);
    driver_ask(d, prompt[0], 70, NEW_TOKENS, &to->again);
}

static void run(const char *dir, const char *draft, bool alone, answers *to)
{
    driver d;
    driver_alone = alone;
    driver_open_with(&d, dir, draft, precision, 1);
    d.params.sequences = ASKED;
    d.params.rows = 48;
    d.params.cache = 1024;
    d.params.speculate = MT_SPECULATE_MTP;
    d.params.draft_all = true;
    driver_start(&d);
    ask_all(&d, to);
    driver_close(&d);
}

static void check_with(const char *dir, const char *draft)
{
    static answers alone, joint;
    run(dir, draft, true, &alone);
    run(dir, draft, false, &joint);
    for (size_t i = 0; i < ASKED; i++)
        expect_same(dir, &alone.text[i], &joint.text[i]);
    expect_same(dir, &alone.again, &joint.again);
    assert_int_equal(alone.again.cached, joint.again.cached);
}

static void check_text(const char *dir)
{
    check_with(dir, NULL);
}

static void every_family(void **state)
{
    (void)state;
    precision = MT_PRECISION_FAST;
    for_each_fixture(check_text);
}

static void check_head(const char *dir)
{
    put_head(strrchr(dir, '/') + 1);
    check_text(folder);
}

static void every_head_that_guesses(void **state)
{
    (void)state;
    precision = MT_PRECISION_FAST;
    for_each_folder(HEADS, check_head);
}

static void check_draft(const char *draft)
{
    char dir[512];
    snprintf(dir, sizeof(dir), FIXTURES "/%s", strrchr(draft, '/') + 1);
    check_with(dir, draft);
}

static void every_drafter(void **state)
{
    (void)state;
    precision = MT_PRECISION_FAST;
    for_each_folder(DRAFTS, check_draft);
}

/* MLX's formats are the same numbers then; what two ranks do, three have done in the other precision. */
static void check_reference(const char *dir)
{
    if (!strstr(dir, "-mlx-") && mt_ranks_started() == 2)
        check_text(dir);
}

static void every_family_in_reference_precision(void **state)
{
    (void)state;
    precision = MT_PRECISION_REFERENCE;
    for_each_fixture(check_reference);
}

static void keys_and_values_in_few_bits(void **state)
{
    (void)state;
    precision = MT_PRECISION_FAST;
    assert_int_equal(setenv("MOTET_TEST_KV_BITS", "8", 1), 0);
    check_text("tests/oracle/checkpoints/gemma3-bf16");
    assert_int_equal(setenv("MOTET_TEST_KV_BITS", "4", 1), 0);
    check_text("tests/oracle/checkpoints/llama-mlx-4bit");
    assert_int_equal(unsetenv("MOTET_TEST_KV_BITS"), 0);
}

static void look(const char *dir, bool alone, answer *to)
{
    sighted w;
    driver_alone = alone;
    open_sighted(&w, dir, MT_PRECISION_FAST, 1);
    w.d.params.chunk = 33;
    driver_start(&w.d);
    driver_send(&w.d, show_for(&w, 1, 2, (size){100, 72}, 1, NEW_TOKENS, to));
    driver_wait(&w.d, 0);
    driver_close(&w.d);
}

static void check_pictures(const char *dir)
{
    static answer alone, joint;
    look(dir, true, &alone);
    look(dir, false, &joint);
    expect_same(dir, &alone, &joint);
}

static void every_family_that_sees(void **state)
{
    (void)state;
    for_each_folder("tests/oracle/sighted", check_pictures);
}

static void release(void *constraint)
{
    mt_constraint_release(constraint);
}

static void constrained(void **state)
{
    static const char schema[] = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2}";
    static answer alone, joint;
    mt_error err = {0};
    uint32_t prompt[40];
    draw random = {5};
    mt_tokenizer *tokenizer = constraint_tokenizer(NULL, 0);
    mt_vocabulary *vocabulary = mt_vocabulary_new(tokenizer, 256, &(uint32_t){0}, 1);
    (void)state;
    draw_tokens(&random, prompt, 40, 64);
    put_head("qwen35-text-bf16");
    for (size_t joined = 0; joined < 2; joined++) {
        json_t *value = json_loads(schema, 0, NULL);
        driver d;
        driver_alone = !joined;
        driver_open(&d, folder, MT_PRECISION_FAST, 1);
        d.params.speculate = MT_SPECULATE_MTP;
        driver_start(&d);
        mt_request *r = driver_request(&d, prompt, 40, 24, joined ? &joint : &alone);
        r->constraint = constraint_compile(vocabulary, MT_SOURCE_SCHEMA, value, &err);
        assert_non_null(r->constraint);
        assert_true(mt_arena_defer(r->arena, release, r->constraint));
        driver_send(&d, r);
        driver_wait(&d, 0);
        driver_close(&d);
        json_decref(value);
    }
    expect_same("constrained", &alone, &joint);
    mt_vocabulary_free(vocabulary);
    mt_tokenizer_free(tokenizer);
}

/* What does not exist on a rank's machine is said with its number; nothing is left open, and the ranks go on. */
static void what_ranks_cannot_open(void **state)
{
    const mt_device_params device = {.name = "cpu", .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_error err = {0};
    mt_opened o;
    (void)state;
    assert_false(mt_opened_open(&o, "tests/oracle/no-such-folder", &device, &(mt_open_wish){0}, &err));
    assert_false(mt_opened_open(&o, "tests/oracle/checkpoints/llama-bf16", &device,
                                &(mt_open_wish){.family = "nonsense"}, &err));
    precision = MT_PRECISION_FAST;
    check_text("tests/oracle/checkpoints/llama-bf16");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_family),
    cmocka_unit_test_setup_teardown(every_head_that_guesses, make_folder, remove_folder),
    cmocka_unit_test(every_drafter),
    cmocka_unit_test_setup_teardown(constrained, make_folder, remove_folder),
    cmocka_unit_test(every_family_in_reference_precision),
    cmocka_unit_test(keys_and_values_in_few_bits),
    cmocka_unit_test(every_family_that_sees),
    cmocka_unit_test(what_ranks_cannot_open),
};

int main(void)
{
    if (mt_ranks_present && mt_ranks_started() > 1)
        return unit_main(__FILE__, tests, MT_COUNT(tests));
    printf("skipped: %s\n", mt_ranks_present ? "not started by mpirun" : "this motet was built without MPI");
    return 77;
}
