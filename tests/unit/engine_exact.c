/* Same answer, always: tokens and logprobs to the last bit, whatever the threads, the chunks and the company. */
#include "unit.h"

#include <dirent.h>
#include <stdlib.h>

#include "engine/generate.h"
#include "engine/opened.h"

#define FIXTURES "tests/oracle/checkpoints"
#define SEQUENCES 16
#define NEW_TOKENS 6
#define MAX_STEPS 32

typedef struct answer {
    size_t count;
    mt_logprob step[MAX_STEPS][MT_LIMIT_TOP_LOGPROBS];
} answer;

typedef struct setting {
    mt_precision precision;
    size_t threads, chunk;
} setting;

typedef struct prompts {
    size_t count, longest;
    size_t len[SEQUENCES];
    uint32_t *tokens[SEQUENCES];
} prompts;

static void note(void *ctx, const mt_logprob *chosen, const mt_logprob *tops, size_t count)
{
    answer *a = ctx;
    assert_true(a->count < MAX_STEPS && count == MT_LIMIT_TOP_LOGPROBS);
    assert_memory_equal(chosen, tops, sizeof *tops);
    memcpy(a->step[a->count++], tops, sizeof a->step[0]);
}

static void draw_prompts(prompts *p, const size_t *lengths, size_t count, uint32_t vocab)
{
    uint64_t state = 7;
    p->count = count;
    p->longest = 0;
    for (size_t i = 0; i < count; i++) {
        p->len[i] = lengths[i];
        p->longest = lengths[i] > p->longest ? lengths[i] : p->longest;
        p->tokens[i] = malloc(lengths[i] * sizeof(uint32_t));
        for (size_t j = 0; j < lengths[i]; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            p->tokens[i][j] = (uint32_t)(state >> 33) % vocab;
        }
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
    mt_opened o;
    mt_error err = {0};
    mt_generation requests[SEQUENCES];
    const mt_device_params device = {.threads = s->threads, .cpu_mask = ~0u, .precision = s->precision};
    const mt_generator_params params = {.sequences = count, .positions = p->longest + NEW_TOKENS, .chunk = s->chunk};
    if (!mt_opened_open(&o, dir, &device, &err))
        fail_msg("%s: %s", dir, err.text);
    mt_generator *g = mt_generator_new(o.dev, &o.spec, &o.weights, &params, &err);
    assert_non_null(g);
    for (size_t i = 0; i < count; i++) {
        answers[i].count = 0;
        requests[i] = (mt_generation){.prompt = p->tokens[first + i],
                                      .prompt_len = p->len[first + i],
                                      .max_tokens = NEW_TOKENS,
                                      .top = MT_LIMIT_TOP_LOGPROBS,
                                      .token = note,
                                      .ctx = &answers[i]};
    }
    if (!mt_generator_run(g, requests, count, &err))
        fail_msg("%s: %s", dir, err.text);
    mt_generator_free(g);
    mt_opened_close(&o);
}

static void expect_same(const char *dir, const char *what, size_t index, const answer *want, const answer *got)
{
    assert_int_equal(want->count, got->count);
    for (size_t t = 0; t < want->count; t++)
        for (size_t k = 0; k < MT_LIMIT_TOP_LOGPROBS; k++)
            if (memcmp(&want->step[t][k], &got->step[t][k], sizeof(mt_logprob)) != 0)
                fail_msg("%s, %s: prompt %zu, token %zu, rank %zu: %u %.9g alone, %u %.9g here", dir, what, index, t, k,
                         want->step[t][k].id, (double)want->step[t][k].logprob, got->step[t][k].id,
                         (double)got->step[t][k].logprob);
}

/* Alone, whole, on one thread, against every other way. whole: tokens that the longest prompt fits in. */
static void check_folder(const char *dir, mt_precision precision, const size_t *lengths, size_t count, uint32_t vocab,
                         size_t whole)
{
    static answer alone[SEQUENCES], other[SEQUENCES];
    const size_t chunks[] = {1, 7, 64, whole / 2}, threads[] = {2, 7};
    prompts p;
    char what[64];
    draw_prompts(&p, lengths, count, vocab);
    for (size_t i = 0; i < count; i++)
        run(dir, &(setting){precision, 1, whole}, &p, i, 1, &alone[i]);
    for (size_t t = 0; t < MT_COUNT(threads); t++) {
        run(dir, &(setting){precision, threads[t], whole}, &p, 0, 1, other);
        snprintf(what, sizeof what, "%zu threads", threads[t]);
        expect_same(dir, what, 0, &alone[0], &other[0]);
    }
    for (size_t c = 0; c < MT_COUNT(chunks); c++) {
        run(dir, &(setting){precision, 2, chunks[c]}, &p, 0, count, other);
        snprintf(what, sizeof what, "%zu side by side in chunks of %zu", count, chunks[c]);
        for (size_t i = 0; i < count; i++)
            expect_same(dir, what, i, &alone[i], &other[i]);
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

/* Where time is short a few must do: both kinds of layout, a window, experts. */
static bool chosen(const char *name)
{
    static const char *const few[] = {"qwen2-window-bf16", "qwen3-mlx-4bit-g32", "qwen3moe-mlx-6bit"};
    for (size_t i = 0; unit_quick() && i < MT_COUNT(few); i++)
        if (strcmp(name, few[i]) == 0)
            return true;
    return !unit_quick() && name[0] != '.';
}

static void check_fixtures(mt_precision precision)
{
    static const size_t lengths[SEQUENCES] = {290, 1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 65, 100, 128, 200, 257};
    struct dirent *entry;
    size_t seen = 0;
    DIR *top = opendir(FIXTURES);
    assert_non_null(top);
    while ((entry = readdir(top))) {
        char dir[512];
        if (!chosen(entry->d_name))
            continue;
        snprintf(dir, sizeof dir, FIXTURES "/%s", entry->d_name);
        check_folder(dir, precision, lengths, SEQUENCES, vocab_of(dir), 512);
        seen++;
    }
    closedir(top);
    assert_true(seen > 0);
}

static void every_fixture_in_fast_precision(void **state)
{
    (void)state;
    check_fixtures(MT_PRECISION_FAST);
}

static void every_fixture_in_reference_precision(void **state)
{
    (void)state;
    check_fixtures(MT_PRECISION_REFERENCE);
}

/* Wide enough to reach every tile edge, long enough for many attention segments. */
static void check_wide(const char *model, const char *layout)
{
    static const size_t lengths[] = {3000, 1, 517, 1023};
    char dir[] = "/tmp/motet-wide-XXXXXX", command[512];
    const char *synth = getenv("MOTET_SYNTH");
    if (unit_quick() || !synth)
        UNIT_SKIP("only in full runs, with MOTET_SYNTH naming the synth program");
    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof command, "%s %s %s --layout %s 2>/dev/null", synth, model, dir, layout);
    assert_int_equal(system(command), 0);
    check_folder(dir, MT_PRECISION_FAST, lengths, MT_COUNT(lengths), vocab_of(dir), 3008);
    snprintf(command, sizeof command, "rm -rf %s", dir);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_fixture_in_fast_precision),
    cmocka_unit_test(every_fixture_in_reference_precision),
    cmocka_unit_test(a_wide_model_in_bf16),
    cmocka_unit_test(a_wide_model_in_four_bits),
    cmocka_unit_test(a_wide_model_of_experts),
};

UNIT_MAIN(tests)
