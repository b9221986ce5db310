/* Heads that guess ahead, and drafters: what they say after each position, alone and chained, is what torch says. */
#include "head.h"

#include <dirent.h>

#include "base/alloc.h"
#include "engine/opened.h"

#define TOKENS 40 /* of the text */
#define DEPTH 3   /* guesses after each of its positions */
#define PAGES 2

typedef struct recorded {
    uint32_t token[TOKENS];
    uint32_t guess[(TOKENS - 1) * DEPTH];
} recorded;

/* The next `count` numbers behind `key`, however they are nested. */
static void read_numbers(const char *text, const char *key, uint32_t *to, size_t count)
{
    const char *at = strstr(text, key);
    assert_non_null(at);
    at += strlen(key);
    for (size_t i = 0; i < count; i++) {
        at += strcspn(at, "0123456789");
        char *end;
        to[i] = (uint32_t)strtoul(at, &end, 10);
        assert_ptr_not_equal(at, end);
        at = end;
    }
}

static void read_recorded(const char *top, const char *name, recorded *r)
{
    static char text[1 << 14];
    char path[512];
    snprintf(path, sizeof(path), "%s/%s/guesses.json", top, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    read_numbers(text, "\"token_ids\":", r->token, TOKENS);
    read_numbers(text, "\"guesses\":", r->guess, (TOKENS - 1) * DEPTH);
}

static void run_row(mt_model *m, uint32_t token, uint32_t at, const uint32_t *pages, bool guess, uint32_t *guessed)
{
    const mt_piece piece = {.rows = 1, .slot = 0};
    const mt_position position = {{at, at, at}};
    const mt_span span = {
        .rows = 1, .position = at, .pages = {pages, pages}, .state = at ? 0 : MT_NO_PAGE, .pieces = 1, .piece = &piece};
    const mt_batch batch = {.rows = 1, .tokens = &token, .positions = &position, .spans = 1, .span = &span};
    if (guessed) {
        mt_model_guess(m, &batch, guess, guessed);
        return;
    }
    mt_model_step(m, &batch, NULL, 0);
    mt_model_carry(m, 0, 0);
}

/* A drafter stays where it begins. */
static void compare(const char *name, mt_model *m, bool stays, const recorded *r)
{
    const uint32_t pages[PAGES] = {1, 0};
    for (uint32_t i = 0; i + 1 < TOKENS; i++) {
        uint32_t token = r->token[i + 1];
        run_row(m, r->token[i], i, pages, false, NULL);
        for (uint32_t d = 0; d < DEPTH; d++) {
            run_row(m, token, i + 1 + (stays ? 0 : d), pages, d > 0, &token);
            if (token != r->guess[i * DEPTH + d])
                fail_msg("%s: guess %u after position %u is %u, wanted %u", name, d, i, token, r->guess[i * DEPTH + d]);
        }
    }
}

static void check(const char *top, const char *name, const char *dir, const char *draft)
{
    const mt_device_params device = {
        .name = unit_device(), .host = {.threads = 2, .cpu_mask = ~0u}, .precision = MT_PRECISION_REFERENCE};
    const mt_model_params params = {.rows = 4, .logits = 1, .places = 1, .memos = 1};
    const size_t pages[MT_KV_GROUPS] = {PAGES, PAGES};
    static recorded r;
    mt_error err = {0};
    mt_opened o;
    if (!mt_opened_open(&o, dir, &device, &(mt_open_wish){.draft = draft}, &err))
        fail_msg("%s: %s", name, err.text);
    assert_true(draft ? o.spec.drafter == &o.drafter : o.spec.mtp);
    mt_model *m = mt_model_new(o.dev, &o.spec, &o.weights, &params, &err);
    if (!m || !mt_model_reserve(m, pages, 1, &err))
        fail_msg("%s: %s", name, err.text);
    read_recorded(top, name, &r);
    compare(name, m, draft != NULL, &r);
    mt_model_free(m);
    mt_opened_close(&o);
}

static void check_head(const char *name)
{
    put_head(name);
    check(HEADS, name, folder, NULL);
}

/* The same of a GGUF file, where the head is one more layer; only weights of 16 bits can be written as one. */
static void check_head_in_gguf(const char *name)
{
    char command[512], path[256];
    if (!strstr(name, "bf16") || strstr(name, "glm47")) /* GGUF files of latent attention are not read */
        return;
    put_head(name);
    snprintf(path, sizeof(path), "%s/head.gguf", folder);
    snprintf(command, sizeof(command), "python3 tests/oracle/gguf.py '%s' '%s'", folder, path);
    assert_int_equal(system(command), 0);
    check(HEADS, name, path, NULL);
}

static void check_draft(const char *name)
{
    char dir[512], draft[512];
    snprintf(dir, sizeof(dir), "tests/oracle/checkpoints/%s", name);
    snprintf(draft, sizeof(draft), DRAFTS "/%s", name);
    check(DRAFTS, name, dir, draft);
}

static void check_all(const char *at, size_t count, void (*one)(const char *name))
{
    struct dirent *entry;
    size_t seen = 0;
    DIR *top = opendir(at);
    assert_non_null(top);
    while ((entry = readdir(top)))
        if (entry->d_name[0] != '.') {
            one(entry->d_name);
            seen++;
        }
    closedir(top);
    assert_int_equal(seen, count);
}

static void heads_guess_as_torch_does(void **state)
{
    (void)state;
    check_all(HEADS, 5, check_head);
}

static void heads_of_gguf_files_guess_as_torch_does(void **state)
{
    (void)state;
    check_all(HEADS, 5, check_head_in_gguf);
}

static void drafters_guess_as_torch_does(void **state)
{
    (void)state;
    check_all(DRAFTS, 4, check_draft);
}

/* One that is for another model, one that is none, and what is none by itself. */
static void drafts_that_do_not_fit(void **state)
{
    static const struct {
        const char *dir, *draft, *why;
    } cases[] = {
        {"tests/oracle/checkpoints/gemma4-bf16", DRAFTS "/gemma4-mlx-4bit",
         "the draft is for a model of width 128 with 256 tokens; this one has 64 and 256"},
        {"tests/oracle/checkpoints/gemma4-bf16", DRAFTS "/gemma4-aside-bf16", "as no layer of the model"},
        {"tests/oracle/checkpoints/gemma4-bf16", "tests/oracle/checkpoints/gemma4-bf16", "is none that guesses"},
        {DRAFTS "/gemma4-bf16", NULL, "give it beside that model, as --draft"},
        {"tests/oracle/checkpoints/gemma4-bf16", "tests/oracle/nothing", "tests/oracle/nothing"},
    };
    const mt_device_params device = {.name = unit_device(), .host = {.threads = 1, .cpu_mask = ~0u}};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_opened o;
        mt_error err = {0};
        assert_false(mt_opened_open(&o, cases[i].dir, &device, &(mt_open_wish){.draft = cases[i].draft}, &err));
        if (!strstr(err.text, cases[i].why))
            fail_msg("case %zu: %s", i, err.text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(heads_guess_as_torch_does, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(heads_of_gguf_files_guess_as_torch_does, make_folder, remove_folder),
    cmocka_unit_test(drafters_guess_as_torch_does),
    cmocka_unit_test(drafts_that_do_not_fit),
};

UNIT_MAIN(tests)
