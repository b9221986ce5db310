/* A model's answers on a device that the CPU computes for (src/device/fallback.h): those of the CPU, bit for bit. */
#include "engine_pictures.h"

#include "../device/bare.h"

#define TOKENS 8
#define CHECKPOINTS "tests/oracle/checkpoints/"

static const char *const devices[] = {"cpu", "bare", "mixed"};

/* Prompts side by side, in chunks, the last of which begins as another one did. */
static void ask(const char *dir, bool guess, answer answers[4])
{
    static const size_t lengths[] = {70, 1, 33};
    static const mt_logit_bias likely[] = {{5, 50}, {9, 50}};
    uint32_t tokens[70];
    draw random = {11};
    driver d;
    mt_stats stats;
    draw_tokens(&random, tokens, MT_COUNT(tokens), 60);
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.sequences = 4;
    d.params.rows = 64;
    d.params.chunk = 40;
    d.params.cache = 1024;
    d.params.speculate = guess ? MT_SPECULATE_NGRAM : MT_SPECULATE_OFF;
    d.params.draft = 2;
    d.params.draft_all = true;
    driver_start(&d);
    for (size_t i = 0; i < MT_COUNT(lengths); i++) {
        mt_request *r = driver_request(&d, tokens, lengths[i], TOKENS, &answers[i]);
        driver_vary(r, i);
        driver_send(&d, r);
    }
    driver_wait(&d, 0);
    mt_request *again = driver_request(&d, tokens, 50, TOKENS, &answers[3]);
    again->sampling.bias = likely; /* a text that repeats itself, so that guesses come right */
    again->sampling.bias_count = MT_COUNT(likely);
    driver_send(&d, again);
    driver_wait(&d, 0);
    assert_true(answers[3].cached > 0);
    driver_stats(&d, &stats);
    assert_true(!guess || stats.draft_accepted > 0);
    driver_close(&d);
}

static void choose_device(const char *name)
{
    assert_int_equal(setenv("MOTET_TEST_DEVICE", name, 1), 0);
    mt_backend_add(strcmp(name, "bare") == 0 ? &bare_backend : &mixed_backend);
}

static void check_text(const char *dir, bool guess)
{
    static answer answers[MT_COUNT(devices)][4];
    char what[640];
    for (size_t i = 0; i < MT_COUNT(devices); i++) {
        choose_device(devices[i]);
        ask(dir, guess, answers[i]);
        for (size_t a = 0; a < 4; a++) {
            snprintf(what, sizeof(what), "%s on %s, answer %zu", dir, devices[i], a);
            assert_int_equal(answers[i][a].count, TOKENS);
            expect_same(what, &answers[0][a], &answers[i][a]);
        }
    }
}

static void layers_of_all_kinds(void **state)
{
    (void)state;
    check_text(CHECKPOINTS "qwen3moe-mlx-6bit", false);
    if (unit_quick()) /* sanitizers watch the copying, which is the same for all */
        return;
    check_text(CHECKPOINTS "gemma4-bf16", false);
    check_text(CHECKPOINTS "qwen2-window-bf16", false);
    check_text(CHECKPOINTS "deepseekv3-mlx-4bit", false);
}

static void recurrent_layers_and_guesses(void **state)
{
    (void)state;
    check_text(CHECKPOINTS "qwen35-mlx-4bit", false);
    check_text(CHECKPOINTS "qwen35-mlx-4bit", true);
}

static void keys_and_values_in_eight_bits(void **state)
{
    (void)state;
    assert_int_equal(setenv("MOTET_TEST_KV_BITS", "8", 1), 0);
    check_text(CHECKPOINTS "qwen3moe-mlx-6bit", false);
    assert_int_equal(unsetenv("MOTET_TEST_KV_BITS"), 0);
}

static void pictures(void **state)
{
    static answer answers[MT_COUNT(devices)];
    (void)state;
    for (size_t i = 0; i < MT_COUNT(devices); i++) {
        sighted w;
        choose_device(devices[i]);
        open_sighted(&w, SIGHTED "/qwen3vl-mlx-4bit", MT_PRECISION_FAST, 2);
        w.d.params.cache = 1024;
        driver_start(&w.d);
        driver_send(&w.d, show_for(&w, 1, 1, (size){56, 56}, 5, TOKENS, &answers[i]));
        driver_wait(&w.d, 0);
        assert_int_equal(answers[i].finish, MT_FINISH_LENGTH);
        expect_same(devices[i], &answers[0], &answers[i]);
        driver_close(&w.d);
    }
}

static void what_a_backend_lacks_is_listed(void **state)
{
    const mt_device_params params = {.name = "mixed", .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_error err = {0};
    size_t count = 0;
    bool adds = false, multiplies = false;
    (void)state;
    mt_backend_add(&mixed_backend);
    mt_device *dev = mt_device_open(&params, &err), *cpu;
    assert_non_null(dev);
    for (const char *name; (name = mt_device_lacks(dev, count)); count++) {
        adds = adds || strcmp(name, "op_add") == 0;
        multiplies = multiplies || strcmp(name, "op_matmul") == 0;
    }
    assert_true(multiplies && !adds && count > 30);
    mt_device_close(dev);
    cpu = mt_device_open(&(mt_device_params){.name = "cpu", .host = {.threads = 1}}, &err);
    assert_non_null(cpu);
    assert_null(mt_device_lacks(cpu, 0));
    mt_device_close(cpu);
}

/* Memory that is refused is a fault of the device, and freed memory is not counted any more. */
static void memory_is_counted_and_may_be_refused(void **state)
{
    const mt_device_params params = {.name = "bare", .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_error err = {0};
    (void)state;
    mt_backend_add(&bare_backend);
    mt_device *dev = mt_device_open(&params, &err);
    assert_non_null(dev);
    mt_set *set = mt_set_new(dev);
    mt_tensor_new(set, 2, 32);
    assert_int_equal(mt_device_bytes(dev), 2 * 32 * sizeof(float));
    assert_true(mt_device_well(dev, &err));
    assert_null(mt_tensor_reserve(set, 1 << 20, 1 << 10, &err));
    assert_non_null(strstr(err.text, "no memory"));
    assert_false(mt_device_well(dev, &err));
    mt_set_free(set);
    assert_int_equal(mt_device_bytes(dev), 0);
    assert_true(mt_device_renew(dev, &err) && mt_device_well(dev, &err));
    mt_device_close(dev);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(layers_of_all_kinds),
    cmocka_unit_test(recurrent_layers_and_guesses),
    cmocka_unit_test(keys_and_values_in_eight_bits),
    cmocka_unit_test(pictures),
    cmocka_unit_test(what_a_backend_lacks_is_listed),
    cmocka_unit_test(memory_is_counted_and_may_be_refused),
};

UNIT_MAIN(tests)
