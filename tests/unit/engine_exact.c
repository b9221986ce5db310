/* Same answer, always: tokens and logprobs to the last bit, whatever the threads, the chunks and the company. */
#include "engine_driver.h"

#define SEQUENCES 16
#define NEW_TOKENS 6

typedef struct setting {
    mt_precision precision;
    size_t threads, chunk;
} setting;

typedef struct prompts {
    size_t count, longest;
    size_t len[SEQUENCES];
    uint32_t *tokens[SEQUENCES];
} prompts;

static void draw_prompts(prompts *p, const size_t *lengths, size_t count, uint32_t vocab)
{
    draw random = {7};
    p->count = count;
    p->longest = 0;
    for (size_t i = 0; i < count; i++) {
        p->len[i] = lengths[i];
        p->longest = lengths[i] > p->longest ? lengths[i] : p->longest;
        p->tokens[i] = malloc(lengths[i] * sizeof(uint32_t));
        draw_tokens(&random, p->tokens[i], lengths[i], vocab);
    }
}

static void drop_prompts(prompts *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->tokens[i]);
}

/* Runs prompts [first, first + count) side by side. */
static void run(const char *dir, const setting *s, const prompts *p, size_t first, size_t count, answer *answers)
{
    driver d;
    driver_open(&d, dir, s->precision, s->threads);
    d.params.sequences = count;
    d.params.rows = p->longest;
    d.params.chunk = s->chunk;
    d.params.cache = count * (p->longest + NEW_TOKENS + MT_PAGE_TOKENS) + MT_PAGE_TOKENS;
    driver_start(&d);
    for (size_t i = 0; i < count; i++)
        driver_send(&d, driver_request(&d, p->tokens[first + i], p->len[first + i], NEW_TOKENS, &answers[i]));
    driver_wait(&d, 0);
    driver_close(&d);
}

/* Alone, whole, on one thread, against every other way. whole: tokens that the longest prompt fits in. */
static void check_folder(const char *dir, mt_precision precision, const size_t *lengths, size_t count, uint32_t vocab,
                         size_t whole)
{
    static answer alone[SEQUENCES], other[SEQUENCES];
    static const size_t few[] = {33, 1, 9};
    const size_t chunks[] = {7, 64, 1, whole / 2}, threads[] = {7, 2};
    const bool all = unit_full() || (!unit_quick() && !fixture_is_alike(dir));
    const size_t ways = unit_races() ? 1 : all ? MT_COUNT(chunks) : 2;
    prompts p;
    char what[640];
    if (unit_races()) {
        lengths = few;
        count = MT_COUNT(few);
    }
    draw_prompts(&p, lengths, count, vocab);
    for (size_t i = 0; i < count; i++)
        run(dir, &(setting){precision, 1, whole}, &p, i, 1, &alone[i]);
    for (size_t t = 0; t < (all ? MT_COUNT(threads) : 1); t++) {
        run(dir, &(setting){precision, threads[t], whole}, &p, 0, 1, other);
        snprintf(what, sizeof(what), "%s, %zu threads", dir, threads[t]);
        expect_same(what, &alone[0], &other[0]);
    }
    for (size_t c = 0; c < ways; c++) {
        run(dir, &(setting){precision, 2, chunks[c]}, &p, 0, count, other);
        snprintf(what, sizeof(what), "%s, %zu side by side in chunks of %zu", dir, count, chunks[c]);
        for (size_t i = 0; i < count; i++)
            expect_same(what, &alone[i], &other[i]);
    }
    drop_prompts(&p);
}

static uint32_t vocab_of(const char *dir)
{
    mt_error err = {0};
    mt_arena *arena = mt_arena_new(0);
    mt_checkpoint *c = mt_checkpoint_open(dir, &err);
    mt_model_spec spec;
    if (!c || !mt_model_spec_read(&spec, mt_checkpoint_config(c), NULL, arena, &err))
        fail_msg("%s: %s", dir, err.text);
    mt_checkpoint_close(c);
    mt_arena_free(arena);
    return spec.vocab;
}

static const size_t lengths[SEQUENCES] = {290, 1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 65, 100, 128, 200, 257};

static void check_fast(const char *dir)
{
    static const size_t some[] = {290, 1, 33};
    if (unit_full() || (!unit_quick() && !fixture_is_alike(dir)))
        check_folder(dir, MT_PRECISION_FAST, lengths, SEQUENCES, vocab_of(dir), 512);
    else
        check_folder(dir, MT_PRECISION_FAST, some, MT_COUNT(some), vocab_of(dir), 512);
}

/* Weights of every kind are the same fp32 numbers once they are unpacked: of those of MLX, one kind does. Steps are
   planned as in the other precision, so some of the lengths do. */
static void check_reference(const char *dir)
{
    static const size_t some[] = {290, 1, 9, 33, 64, 257};
    if (unit_full() || unit_quick() ? strstr(dir, "-mlx-") && !strstr(dir, "4bit") : fixture_is_quantised(dir))
        return;
    check_folder(dir, MT_PRECISION_REFERENCE, some, MT_COUNT(some), vocab_of(dir), 512);
}

static void every_fixture_in_fast_precision(void **state)
{
    (void)state;
    for_each_fixture(check_fast);
}

static void every_fixture_in_reference_precision(void **state)
{
    (void)state;
    for_each_fixture(check_reference);
}

/* Windows, recurrent layers, latents, chosen positions and plain ones, with keys and values in 8 and in 4 bits. */
static void keys_and_values_in_few_bits(void **state)
{
    static const char *const bits[] = {"8", "4"};
    static const size_t few[] = {290, 1, 33, 257};
    const char *before = getenv("MOTET_TEST_KV_BITS");
    (void)state;
    for (size_t i = 0; !before && i < MT_COUNT(bits); i++) {
        assert_int_equal(setenv("MOTET_TEST_KV_BITS", bits[i], 1), 0);
        check_folder("tests/oracle/checkpoints/gemma3-bf16", MT_PRECISION_FAST, few, MT_COUNT(few), 64, 512);
        check_folder("tests/oracle/checkpoints/qwen35-mlx-4bit", MT_PRECISION_FAST, few, MT_COUNT(few), 64, 512);
        check_folder("tests/oracle/checkpoints/glm47flash-bf16", MT_PRECISION_FAST, few, MT_COUNT(few), 64, 512);
        check_folder("tests/oracle/checkpoints/glm5-bf16", MT_PRECISION_FAST, few, MT_COUNT(few), 64, 512);
        check_folder("tests/oracle/checkpoints/llama-mlx-4bit", MT_PRECISION_REFERENCE, few, MT_COUNT(few), 64, 512);
        assert_int_equal(unsetenv("MOTET_TEST_KV_BITS"), 0);
    }
}

/* In this precision its pages would be a multiple of a cache's way and are therefore larger than what they hold. */
static void a_model_whose_pages_are_kept_apart(void **state)
{
    static const size_t few[] = {70, 1, 33};
    (void)state;
    check_folder("models/box", MT_PRECISION_REFERENCE, few, MT_COUNT(few), vocab_of("models/box"), 128);
}

/* Wide enough to reach every tile edge, long enough for many attention segments. */
static void check_wide(const char *model, const char *layout)
{
    static const size_t wide[] = {1600, 1, 517, 1023};
    char dir[] = "/tmp/motet-wide-XXXXXX", command[512];
    const char *synth = getenv("MOTET_SYNTH");
    if (unit_quick() || !synth)
        UNIT_SKIP("only in full runs, with MOTET_SYNTH naming the synth program");
    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof(command), "%s %s %s --layout %s 2>/dev/null", synth, model, dir, layout);
    assert_int_equal(system(command), 0);
    check_folder(dir, MT_PRECISION_FAST, wide, MT_COUNT(wide), vocab_of(dir), 1616);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static void a_wide_model_in_bf16(void **state)
{
    (void)state;
    check_wide("wide", "bf16");
}

static void a_wide_model_in_four_bits(void **state)
{
    (void)state;
    check_wide("wide", "mlx-4bit");
}

static void a_wide_model_of_experts(void **state)
{
    (void)state;
    check_wide("wide-moe", "mlx-8bit");
}

static void a_wide_model_with_recurrent_layers(void **state)
{
    (void)state;
    check_wide("wide-hybrid", "mlx-4bit");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_fixture_in_fast_precision),    cmocka_unit_test(every_fixture_in_reference_precision),
    cmocka_unit_test(a_model_whose_pages_are_kept_apart), cmocka_unit_test(a_wide_model_in_bf16),
    cmocka_unit_test(a_wide_model_in_four_bits),          cmocka_unit_test(a_wide_model_of_experts),
    cmocka_unit_test(a_wide_model_with_recurrent_layers), cmocka_unit_test(keys_and_values_in_few_bits),
};

UNIT_MAIN(tests)
