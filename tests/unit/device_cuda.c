/* The host's part of the CUDA device on a driver of our own (tests/cuda/fake.h), which ends the program when a rule of
   order or of lifetimes is broken. Answers mean nothing here; that there is one for everybody does. */
#include "engine_driver.h"
#include "engine_encoders.h"

#include "folder.h"
#include "tier/limits.h"

#include <dlfcn.h>
#include <fcntl.h>

#define LONG 70 /* tokens of a prompt: more than two pages */

static void (*fake_set)(const char *settings);
static size_t (*fake_calls)(const char *name);
static const char *(*fake_name)(size_t i);

static bool find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
    *(void **)&fake_set = dlsym(library, "fake_cuda_set");
    *(void **)&fake_calls = dlsym(library, "fake_cuda_calls");
    *(void **)&fake_name = dlsym(library, "fake_cuda_name");
    return fake_set && fake_calls && fake_name;
}

static mt_device *open_device(const char *name, mt_error *err)
{
    const mt_device_params params = {.name = name, .host = {.threads = 1, .cpu_mask = ~0u}};
    return mt_device_open(&params, err);
}

/* ---- opening ---- */

static void cards_are_found_by_number(void **state)
{
    static const struct {
        const char *name, *said;
    } cases[] = {{"cuda", "cuda:0 (Fake 0, sm_90, 4 multiprocessors, 2.0 GiB)"},
                 {"cuda:1", "cuda:1 (Fake 1, sm_90, 4 multiprocessors, 2.0 GiB)"},
                 {"auto", "cuda:0 (Fake 0, sm_90, 4 multiprocessors, 2.0 GiB)"},
                 {NULL, "cuda:0 (Fake 0, sm_90, 4 multiprocessors, 2.0 GiB)"}};
    static const char *const wrong[] = {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cpu:0", "rocm", "cud", "cuda1", ""};
    mt_error err = {0};
    (void)state;
    fake_set("");
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_device *dev = open_device(cases[i].name, &err);
        assert_non_null(dev);
        assert_string_equal(mt_device_name(dev), cases[i].said);
        assert_true(mt_device_well(dev, NULL) && mt_device_apart(dev));
        mt_device_close(dev);
    }
    for (size_t i = 0; i < MT_COUNT(wrong); i++) {
        assert_null(open_device(wrong[i], &err));
        assert_non_null(strstr(err.text, "there is no device \""));
    }
}

static void what_cannot_be_used_is_told(void **state)
{
    static const struct {
        const char *settings, *name, *said;
    } cases[] = {
        {"version=11080", "cuda", "the NVIDIA driver is one for CUDA 11.8; 12.0 or later is needed"},
        {"count=0", "cuda", "the NVIDIA driver knows no GPU; look at nvidia-smi, or use --device cpu"},
        {"", "cuda:2", "there is no GPU number 2: the driver knows 2, from 0 on"},
        {"", "cuda:99999999999999999999", "there is no GPU number 2147483647: the driver knows 2, from 0 on"},
        {"capability=75", "cuda",
         "cuda:0 (Fake 0, sm_75, 4 multiprocessors, 2.0 GiB) is too old: compute capability 8.0 or later is needed; "
         "use --device cpu"},
        {"fail=cuModuleLoadData:1:209", "cuda",
         "the driver takes none of this program's kernels for cuda:0 (Fake 0, sm_90, 4 multiprocessors, 2.0 GiB): "
         "fault 209 on purpose; install a newer driver, or use --device cpu"},
        {"fail=cuInit:1:100", "cuda", "the NVIDIA driver does not start: fault 100 on purpose; look at nvidia-smi"},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_error err = {0};
        fake_set(cases[i].settings);
        assert_null(open_device(cases[i].name, &err));
        if (!strstr(err.text, "built without kernels")) /* which is told first */
            assert_string_equal(err.text, cases[i].said);
        /* and where nobody insists on a GPU, the CPU computes */
        if (strcmp(cases[i].name, "cuda") != 0)
            continue;
        fake_set(cases[i].settings);
        mt_device *dev = open_device("auto", &err);
        assert_non_null(dev);
        assert_memory_equal(mt_device_name(dev), "cpu (", 5);
        mt_device_close(dev);
    }
}

/* ---- a whole life ---- */

typedef struct life {
    driver d;
    mt_encoder encoder;
    const mt_encoder *list[1];
    mt_error err; /* why it did not begin */
} life;

typedef struct shared {
    mt_host *host;
    mt_rota *rota;
    mt_disk *disk;
    size_t cache; /* positions; 0: what fits */
    bool plain;   /* nothing is guessed ahead */
} shared;

/* False where the device does not open or the model is not loaded; then nothing is left. */
static bool life_begin_with(life *l, const char *dir, const shared *with)
{
    const mt_device_params device = {.name = "cuda", .host = {.threads = 1, .cpu_mask = ~0u}, .shared = with->host};
    memset(l, 0, sizeof(*l));
    driver_init(&l->d);
    l->d.params.rota = with->rota;
    l->d.params.disk = with->disk;
    l->d.params.keep_all = true;
    l->d.params.host_cache = 32u << 20;
    l->d.params.cache = with->cache;
    l->d.params.speculate = with->plain ? MT_SPECULATE_OFF : l->d.params.speculate;
    l->d.params.sequences = 4;
    l->d.params.rows = 64;
    l->d.params.context = 128;
    l->d.params.memory = 600u << 20;
    l->d.params.renew_ms = 0;
    encoder_open(&l->encoder, VECTORS "bert-cls-bf16");
    l->list[0] = &l->encoder;
    l->d.params.encoders = l->list;
    l->d.params.encoder_count = 1;
    if (mt_opened_open(&l->d.o, dir, &device, &(mt_open_wish){0}, &l->err)) {
        l->d.engine = mt_engine_start(&l->d.o, NULL, &l->d.params, &l->err);
        if (l->d.engine)
            return true;
        mt_opened_close(&l->d.o);
    }
    mt_encoder_close(&l->encoder);
    return false;
}

static bool life_begin(life *l, const char *dir)
{
    return life_begin_with(l, dir, &(shared){0});
}

static void life_end(life *l)
{
    driver_close(&l->d);
    mt_encoder_close(&l->encoder);
}

/* As driver_send, but where the engine is being made anew, until that is done. False with err: it cannot be. */
static bool send(life *l, mt_request *r, mt_error *err)
{
    pthread_mutex_lock(&l->d.lock);
    l->d.sent += r->encoder ? 0 : r->choices; /* texts are counted elsewhere */
    l->d.open += r->choices;
    pthread_mutex_unlock(&l->d.lock);
    for (;;) {
        if (mt_engine_submit(l->d.engine, r, err))
            return true;
        assert_true(strstr(err->text, "reopened"));
        usleep(1000);
    }
}

/* Prompts that share a beginning, one after the other and together, and a text for the encoder. Returns how many ended
   with an error, which is the same for all. */
static size_t work(life *l, mt_error *why)
{
    answer answers[4];
    sent_text text;
    uint32_t prompt[LONG];
    mt_error err = {0};
    draw rng = {5};
    size_t failed = 0;
    draw_tokens(&rng, prompt, LONG, (uint32_t)l->d.o.spec.vocab);
    for (size_t i = 0; i < MT_COUNT(answers); i++) {
        mt_request *r = driver_request(&l->d, prompt, LONG - 7 * i, 6, &answers[i]);
        driver_vary(r, i % KINDS);
        r->prompt_logprobs = i == 2;
        assert_true(send(l, r, &err));
        if (i == 0)
            driver_wait(&l->d, 0);
    }
    assert_true(send(l, text_request(&l->d, 1, MT_POOL_FIRST, 0, 40, &text), &err));
    driver_wait(&l->d, 0);
    for (size_t i = 0; i < MT_COUNT(answers); i++)
        if (answers[i].finish == MT_FINISH_ERROR) {
            failed++;
            *why = answers[i].error;
        } else {
            assert_int_equal(answers[i].finish, MT_FINISH_LENGTH);
            assert_int_equal(answers[i].count, 6);
        }
    failed += text.finish == MT_FINISH_ERROR;
    return failed;
}

/* ---- how kernels are started ---- */

static void ways_are_read(void **state)
{
    static const char *const right[] = {"", "graphs=0", "early=0,row=1", "row=0,graphs=1,early=1", "pair=0", "ahead=0"};
    static const char *const wrong[] = {"graphs", "graphs=2",      "graph=0", "row=2", "row=10",
                                        "pair=2", "early=0;row=0", ",",       "x"};
    mt_error err = {0};
    (void)state;
    fake_set("");
    for (size_t i = 0; i < MT_COUNT(right); i++) {
        setenv("MOTET_CUDA", right[i], 1);
        mt_device *dev = open_device("cuda", &err);
        assert_non_null(dev);
        mt_device_close(dev);
    }
    for (size_t i = 0; i < MT_COUNT(wrong); i++) {
        setenv("MOTET_CUDA", wrong[i], 1);
        assert_null(open_device("cuda", &err));
        assert_non_null(strstr(err.text, "MOTET_CUDA has \""));
        assert_non_null(strstr(err.text, "it knows graphs=0, early=0, row=0, pair=0 and ahead=0"));
    }
    unsetenv("MOTET_CUDA");
}

/* The same operations some times. */
static void repeat(mt_device *dev)
{
    mt_set *set = mt_set_new(dev);
    mt_tensor *x = mt_tensor_new(set, 2, 8), *y = mt_tensor_new(set, 2, 8);
    for (size_t i = 0; i < 4; i++) {
        mt_op_add(dev, y, x, 2);
        mt_op_scale(dev, y, 2, 3);
        mt_device_wait(dev);
    }
    mt_set_free(set);
}

static void steps_are_replayed_unless_nobody_wants_it(void **state)
{
    mt_error err = {0};
    (void)state;
    for (int graphs = 0; graphs < 2; graphs++) {
        fake_set("");
        setenv("MOTET_CUDA", graphs ? "" : "graphs=0", 1);
        mt_device *dev = open_device("cuda", &err);
        assert_non_null(dev);
        repeat(dev);
        assert_int_equal(fake_calls("cuGraphLaunch") > 0, graphs);
        mt_device_close(dev);
    }
    unsetenv("MOTET_CUDA");
}

/* Lists: a short one where the GPU is idle, so that it begins, then one with room for a step of many layers. */
static void a_long_step_is_two_graphs(void **state)
{
    enum { KERNELS = 400, TIMES = 3 };
    mt_error err = {0};
    (void)state;
    fake_set("");
    mt_device *dev = open_device("cuda", &err);
    assert_non_null(dev);
    mt_set *set = mt_set_new(dev);
    mt_tensor *y = mt_tensor_new(set, 2, 8);
    for (size_t i = 0; i < TIMES; i++) {
        mt_device_wait(dev);
        const size_t before = fake_calls("cuGraphLaunch");
        for (size_t n = 0; n < KERNELS; n++)
            mt_op_scale(dev, y, 2, 3);
        mt_device_wait(dev);
        if (i == TIMES - 1)
            assert_int_equal(fake_calls("cuGraphLaunch") - before, 2);
    }
    /* as a step that is begun while another runs */
    for (size_t i = 0; i < TIMES; i++) {
        mt_op_add(dev, y, y, 2);
        mt_op_copy_row(dev, y, 0, y, 1); /* starts what is listed */
        const size_t before = fake_calls("cuGraphLaunch");
        for (size_t n = 0; n < KERNELS; n++)
            mt_op_scale(dev, y, 2, 3);
        mt_op_copy_row(dev, y, 0, y, 1);
        if (i == TIMES - 1)
            assert_int_equal(fake_calls("cuGraphLaunch") - before, 1);
    }
    mt_device_wait(dev);
    mt_set_free(set);
    mt_device_close(dev);
}

/* Where no graphs are made, kernels begin while others are listed, with the parameters that they were given. */
static void without_graphs_kernels_begin_at_once(void **state)
{
    enum { KERNELS = 40 };
    mt_error err = {0};
    (void)state;
    fake_set("");
    setenv("MOTET_CUDA", "graphs=0", 1);
    mt_device *dev = open_device("cuda", &err);
    assert_non_null(dev);
    mt_set *set = mt_set_new(dev);
    mt_reading *reading = mt_reading_new(set, sizeof(float));
    mt_tensor *x = mt_tensor_new(set, 1, 8), *said[KERNELS];
    for (size_t n = 0; n < KERNELS; n++)
        said[n] = mt_tensor_new(set, 1, 1);
    const size_t before = fake_calls("cuLaunchKernelEx");
    for (size_t n = 0; n < KERNELS; n++) {
        mt_op_finite(dev, said[n], x, 1);
        const size_t begun = fake_calls("cuLaunchKernelEx") - before;
        assert_true(begun <= n && begun + 16 > n); /* eight stay in the list, and eight are started together */
    }
    mt_device_wait(dev);
    assert_int_equal(fake_calls("cuLaunchKernelEx") - before, KERNELS);
    for (size_t n = 0; n < KERNELS; n++) { /* each kernel has said it of its own */
        mt_read_rows(dev, reading, said[n], 0, 1);
        assert_true(mt_reading_row(dev, reading, 0)[0] == 1);
    }
    mt_set_free(set);
    mt_device_close(dev);
    unsetenv("MOTET_CUDA");
}

/* A picture has thousands of patches, and a copy costs some microseconds. */
static void patches_go_up_together(void **state)
{
    enum { PATCHES = 200, AREA = 4 };
    static uint8_t bytes[PATCHES][3 * AREA];
    static float levels[2][3][256], factors[PATCHES][4];
    mt_pixels pixels[PATCHES];
    mt_error err = {0};
    (void)state;
    fake_set("");
    mt_device *dev = open_device("cuda", &err);
    assert_non_null(dev);
    mt_set *set = mt_set_new(dev);
    mt_patches *patches = mt_patches_new(set, PATCHES, 1, AREA);
    mt_tensor *t = mt_tensor_new(set, PATCHES, 4);
    for (size_t i = 0; i < PATCHES; i++)
        pixels[i] = (mt_pixels){.bytes = bytes[i], .levels = (const float(*)[256])levels[i % 2]};
    const size_t before = fake_calls("cuMemcpyHtoDAsync_v2");
    mt_patches_write(dev, patches, pixels, PATCHES);
    assert_true(fake_calls("cuMemcpyHtoDAsync_v2") - before <= 6);
    mt_tensor_write(dev, t, 0, PATCHES, factors[0]);
    assert_true(fake_calls("cuMemcpyHtoDAsync_v2") - before <= 6);
    assert_int_equal(fake_calls("cuMemcpy2DAsync_v2"), 1);
    mt_device_wait(dev);
    mt_set_free(set);
    mt_device_close(dev);
}

static void peaks_are_measured(void **state)
{
    mt_error err = {0};
    (void)state;
    fake_set("");
    mt_device *dev = open_device("cuda", &err);
    assert_non_null(dev);
    const uint64_t held = mt_device_bytes(dev);
    const mt_peaks p = mt_device_peaks(dev);
    assert_true(p.bandwidth > 0 && p.int8 > 0 && p.bf16 > 0 && p.fp32 > 0);
    assert_int_equal(mt_device_bytes(dev), held);
    mt_device_close(dev);
}

static const char *const models[] = {FIXTURES "/qwen3-mlx-4bit-g32", FIXTURES "/qwen3moe-mlx-6bit",
                                     FIXTURES "/qwen35-mlx-4bit", FIXTURES "/gemma3-bf16"};

static void models_live_and_leave_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(models); i++) {
        for (int code = 80; code <= 90; code += 10) {
            char settings[40];
            mt_error why;
            life l;
            snprintf(settings, sizeof(settings), "code=%d", code);
            fake_set(settings);
            if (!life_begin(&l, models[i]))
                fail_msg("%s: %s", models[i], l.err.text);
            assert_int_equal(work(&l, &why), 0);
            life_end(&l);
        }
    }
}

/* Tokens are drawn, from all candidates there are. */
static void draw_freely(mt_request *r, uint64_t seed)
{
    r->sampling.temperature = 0.8f;
    r->sampling.top_p = 0.9f;
    r->sampling.seed = seed;
}

/* How an answer is chosen that nobody wants logprobs of. */
typedef enum way { LIKELIEST, DRAWN, PENALISED, WAYS } way;

/* Calls of a name by such an answer of so many tokens. */
static size_t calls_of(life *l, size_t tokens, const char *name, way by)
{
    uint32_t prompt[] = {1, 2, 3};
    mt_error err = {0};
    answer a;
    const size_t before = fake_calls(name);
    mt_request *r = driver_request(&l->d, prompt, 3, tokens, &a);
    r->sampling.logprobs = -1;
    r->sampling.frequency_penalty = by == PENALISED ? 1 : 0;
    if (by != LIKELIEST)
        draw_freely(r, 3);
    assert_true(send(l, r, &err));
    driver_wait(&l->d, 0);
    assert_int_equal(a.count, tokens);
    return fake_calls(name) - before;
}

/* The host waits once a step, and logits stay where they are, also where tokens are drawn or penalised: what comes back
   are flags and tokens. */
static void a_step_waits_once(void **state)
{
    static const struct {
        const char *name;
        size_t most;
    } calls[] = {{"cuStreamSynchronize", 0}, /* the whole stream, and with it a step that was begun ahead */
                 {"cuEventSynchronize", 2},  /* tokens, flags */
                 {"cuMemcpy2DAsync_v2", 1},
                 {"cuMemcpyDtoHAsync_v2", 1}};
    life l;
    (void)state;
    fake_set("");
    assert_true(life_begin_with(&l, models[0], &(shared){.plain = true}));
    (void)calls_of(&l, 4, "cuInit", LIKELIEST);
    for (size_t i = 0; i < WAYS * MT_COUNT(calls); i++) {
        const size_t call = i / WAYS, few = calls_of(&l, 4, calls[call].name, (way)(i % WAYS)),
                     many = calls_of(&l, 20, calls[call].name, (way)(i % WAYS));
        if (many - few > 16 * calls[call].most)
            fail_msg("%s: %zu for 16 steps", calls[call].name, many - few);
    }
    life_end(&l);
}

#define ANSWERS_AHEAD 3

/* Answers of different lengths that the device chooses alone. The second and the third are drawn, the third has
   logprobs. Returns how many ended with an error. */
static size_t work_ahead(life *l, answer answers[ANSWERS_AHEAD], mt_error *why)
{
    uint32_t prompt[LONG];
    mt_error err = {0};
    draw rng = {6};
    size_t failed = 0;
    for (size_t i = 0; i < ANSWERS_AHEAD; i++) {
        draw_tokens(&rng, prompt, LONG, (uint32_t)l->d.o.spec.vocab);
        mt_request *r = driver_request(&l->d, prompt, 20 + i, 10 + 5 * i, &answers[i]);
        r->sampling.logprobs = i == 2 ? 5 : -1;
        if (i > 0)
            draw_freely(r, i);
        assert_true(send(l, r, &err));
    }
    driver_wait(&l->d, 0);
    for (size_t i = 0; i < ANSWERS_AHEAD; i++)
        if (answers[i].finish == MT_FINISH_ERROR) {
            failed++;
            *why = answers[i].error;
        } else {
            assert_int_equal(answers[i].finish, MT_FINISH_LENGTH);
            assert_int_equal(answers[i].count, 10 + 5 * i);
        }
    return failed;
}

/* The next step is on the card while one runs, unless nobody wants that; what is drawn is the same. */
static void steps_overlap(void **state)
{
    static answer answers[2][ANSWERS_AHEAD];
    mt_stats stats;
    mt_error why;
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        life l;
        fake_set("");
        setenv("MOTET_CUDA", ahead ? "" : "ahead=0", 1);
        assert_true(life_begin_with(&l, models[0], &(shared){.plain = true}));
        assert_int_equal(work_ahead(&l, answers[ahead], &why), 0);
        driver_stats(&l.d, &stats);
        if (ahead)
            assert_true(stats.ahead_steps >= 10);
        else
            assert_int_equal(stats.ahead_steps, 0);
        life_end(&l);
    }
    unsetenv("MOTET_CUDA");
    for (size_t i = 1; i < ANSWERS_AHEAD; i++)
        for (size_t t = 0; t < answers[0][i].count; t++)
            assert_int_equal(answers[0][i].chosen[t].id, answers[1][i].chosen[t].id);
}

/* Whatever the card has: a sentence that says what lacks, or enough. */
static void too_little_memory_is_told(void **state)
{
    bool enough = false;
    (void)state;
    for (size_t mib = 16; !enough; mib += 8) {
        char settings[40];
        life l;
        snprintf(settings, sizeof(settings), "memory=%zu", mib);
        fake_set(settings);
        enough = life_begin(&l, models[0]);
        if (enough)
            life_end(&l);
        else if (!strstr(l.err.text, mib < 64 ? "fault 2 on purpose" : "the GPU"))
            fail_msg("%s: %s", settings, l.err.text);
        assert_true(mib < 1000);
    }
}

/* ---- faults ---- */

/* One life in which the n-th call of a name fails: it does not begin, with a sentence; or whoever was under way hears
   of it, and all is well afterwards. Returns how often the device was reopened. */
static uint64_t fail_once(const char *dir, const char *name, size_t n, int code)
{
    char settings[120];
    mt_error why = {0};
    life l;
    snprintf(settings, sizeof(settings), "fail=%s:%zu:%d", name, n, code);
    fake_set(settings);
    if (!life_begin(&l, dir)) {
        if (strlen(l.err.text) < 10 || l.err.code == MT_OK)
            fail_msg("%s: no sentence", settings);
        return 0;
    }
    if (work(&l, &why) > 0 && !strstr(why.text, "GPU"))
        fail_msg("%s: %s", settings, why.text);
    if (work(&l, &why) > 0 && work(&l, &why) > 0)
        fail_msg("%s: is not well again: %s", settings, why.text);
    mt_stats stats;
    mt_engine_stats(l.d.engine, &stats);
    life_end(&l);
    return stats.device_faults;
}

static void each_call_may_fail(void **state)
{
    static const int codes[] = {2, 719};
    const char *dir = models[2]; /* which has the most kinds of calls */
    const char *name;
    size_t counts[64];
    uint64_t renewed = 0;
    mt_error why;
    life l;
    (void)state;
    fake_set("");
    assert_true(life_begin(&l, dir));
    assert_int_equal(work(&l, &why), 0);
    life_end(&l);
    for (size_t i = 0; (name = fake_name(i)); i++)
        counts[i] = fake_calls(name);
    for (size_t i = 0; (name = fake_name(i)); i++) {
        const size_t at[] = {1, counts[i], counts[i] / 2, counts[i] / 2 + 1, 2};
        for (size_t c = 0; c < (unit_quick() ? 1 : MT_COUNT(codes)); c++)
            for (size_t j = 0; j < (unit_quick() ? 2 : MT_COUNT(at)); j++)
                if (at[j] > 0 && at[j] <= counts[i] && (j == 0 || at[j] > 2 || counts[i] < 3))
                    renewed += fail_once(dir, name, at[j], codes[(c + unit_quick()) % 2]);
    }
    assert_true(renewed > 3);
}

/* A fault of a step, or of the one that was begun behind it, ends both. */
static void steps_that_overlap_may_fail(void **state)
{
    static const char *const names[] = {"cuEventSynchronize", "cuEventRecord",        "cuGraphLaunch",
                                        "cuLaunchKernelEx",   "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
                                        "cuMemcpy2DAsync_v2"};
    static answer answers[ANSWERS_AHEAD];
    size_t counts[MT_COUNT(names)], before[MT_COUNT(names)];
    uint64_t renewed = 0;
    mt_error why = {0};
    life l;
    (void)state;
    fake_set("");
    assert_true(life_begin_with(&l, models[0], &(shared){.plain = true}));
    for (size_t i = 0; i < MT_COUNT(names); i++)
        before[i] = fake_calls(names[i]);
    assert_int_equal(work_ahead(&l, answers, &why), 0);
    for (size_t i = 0; i < MT_COUNT(names); i++)
        counts[i] = fake_calls(names[i]);
    life_end(&l);
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        const size_t tries = unit_quick() ? 3 : 12, all = counts[i] - before[i];
        for (size_t t = 0; t < tries && t < all; t++) {
            char settings[120];
            mt_stats stats;
            snprintf(settings, sizeof(settings), "fail=%s:%zu:719", names[i], before[i] + 1 + t * all / tries);
            fake_set(settings);
            assert_true(life_begin_with(&l, models[0], &(shared){.plain = true}));
            if (work_ahead(&l, answers, &why) > 0 && !strstr(why.text, "GPU"))
                fail_msg("%s: %s", settings, why.text);
            if (work_ahead(&l, answers, &why) > 0 && work_ahead(&l, answers, &why) > 0)
                fail_msg("%s: is not well again: %s", settings, why.text);
            mt_engine_stats(l.d.engine, &stats);
            renewed += stats.device_faults;
            life_end(&l);
        }
    }
    assert_true(renewed > MT_COUNT(names));
}

/* A card that is gone stays gone: everybody is told, again and again, and the engine ends in good order. */
static void a_card_may_fall_off_the_bus(void **state)
{
    uint32_t prompt[] = {1, 2, 3};
    char settings[80];
    mt_error err = {0};
    answer a;
    life l;
    (void)state;
    fake_set("");
    assert_true(life_begin(&l, models[0]));
    snprintf(settings, sizeof(settings), "lost,fail=cuStreamSynchronize:%zu:999",
             fake_calls("cuStreamSynchronize") + 9);
    life_end(&l);
    fake_set(settings);
    assert_true(life_begin(&l, models[0]));
    for (size_t i = 0;; i++) {
        mt_request *r = driver_request(&l.d, prompt, 3, 6, &a);
        mt_error_clear(&err);
        pthread_mutex_lock(&l.d.lock);
        l.d.sent++;
        l.d.open++;
        pthread_mutex_unlock(&l.d.lock);
        if (mt_engine_submit(l.d.engine, r, &err)) {
            driver_wait(&l.d, 0);
            assert_true(i < 100);
            continue;
        }
        mt_request_free(r);
        pthread_mutex_lock(&l.d.lock);
        l.d.sent--;
        l.d.open--;
        pthread_mutex_unlock(&l.d.lock);
        if (strstr(err.text, "could not be reopened: "))
            break;
        usleep(1000);
    }
    assert_int_equal(mt_code_status(err.code), 503);
    life_end(&l);
}

/* ---- several engines ---- */

/* A fault is the one's that met it: another device of the same card, and another engine's, go on. */
static void a_fault_is_of_one_engine(void **state)
{
    mt_error err = {0};
    mt_host *host = mt_host_open(&(mt_host_params){.threads = 2, .cpu_mask = ~0u}, &err);
    const shared with = {.host = host, .rota = mt_rota_new()};
    static life l[2];
    mt_stats stats[2];
    char settings[80];
    (void)state;
    assert_non_null(host);
    fake_set("");
    for (size_t i = 0; i < 2; i++)
        assert_true(life_begin_with(&l[i], models[i], &with));
    const size_t loaded = fake_calls("cuEventSynchronize");
    for (size_t i = 0; i < 2; i++)
        life_end(&l[i]);
    for (size_t at = loaded + 1; at < loaded + 40; at += 7) {
        size_t failed[2], faults = 0;
        snprintf(settings, sizeof(settings), "fail=cuEventSynchronize:%zu:719", at);
        fake_set(settings);
        for (size_t i = 0; i < 2; i++)
            assert_true(life_begin_with(&l[i], models[i], &with));
        for (size_t i = 0; i < 2; i++)
            failed[i] = work(&l[i], &err);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(work(&l[i], &err), 0);
            mt_engine_stats(l[i].d.engine, &stats[i]);
            assert_int_equal(failed[i] > 0, stats[i].device_faults > 0);
            faults += stats[i].device_faults;
        }
        assert_int_equal(faults, 1);
        for (size_t i = 2; i-- > 0;)
            life_end(&l[i]);
    }
    mt_rota_free(with.rota);
    mt_host_close(host);
}

/* ---- a cache on disk ---- */

static mt_disk *open_disk(void)
{
    mt_error err = {0};
    const mt_disk_params params = {.folder = folder, .bytes = MT_LIMIT_DISK_LEAST, .entries = 1000};
    mt_disk *disk = mt_disk_open(&params, &err);
    assert_non_null(disk);
    mt_disk_scan(disk, NULL);
    return disk;
}

/* Bytes in a row, of what the disk has, that no page has: the driver puts them where nothing was read yet. */
static size_t unread(void)
{
    char path[128];
    static uint8_t bytes[1 << 20];
    size_t most = 0, now = 0;
    snprintf(path, sizeof(path), "%s/%016x.motet", folder, 0);
    const int fd = open(path, O_RDONLY);
    if (fd < 0)
        return 0;
    for (ssize_t n; (n = read(fd, bytes, sizeof(bytes))) > 0;)
        for (ssize_t i = 0; i < n; i++) {
            now = bytes[i] == 0xcd ? now + 1 : 0;
            most = now > most ? now : most;
        }
    close(fd);
    return most;
}

/* One life with a disk; how many positions of a long prompt came from there. */
static size_t live_with_disk(const char *dir, const char *settings, uint64_t *written)
{
    uint32_t prompt[100];
    draw rng = {6};
    mt_disk *disk = open_disk();
    mt_error err = {0};
    answer a;
    life l;
    fake_set(settings);
    assert_true(life_begin_with(&l, dir, &(shared){.disk = disk}));
    draw_tokens(&rng, prompt, MT_COUNT(prompt), (uint32_t)l.d.o.spec.vocab);
    assert_true(send(&l, driver_request(&l.d, prompt, MT_COUNT(prompt), 4, &a), &err));
    driver_wait(&l.d, 0);
    life_end(&l);
    *written = mt_disk_look(disk).written;
    mt_disk_close(disk);
    return a.cached;
}

static void wipe(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -f '%s'/*", folder);
    assert_int_equal(system(command), 0);
}

/* What goes to a disk was read to its end, and of a device that has failed nothing goes there. */
static void what_is_kept_was_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i += 2) {
        uint64_t written;
        size_t reads;
        wipe();
        assert_int_equal(live_with_disk(models[i], "", &written), 0);
        reads = fake_calls("cuMemcpyDtoHAsync_v2");
        assert_true(written > 0 && unread() < 64);
        assert_true(live_with_disk(models[i], "", &written) >= 64);
        for (size_t n = 1; n <= reads; n += unit_quick() ? 5 : 1) {
            char settings[80];
            wipe();
            snprintf(settings, sizeof(settings), "fail=cuMemcpyDtoHAsync_v2:%zu:719", n);
            live_with_disk(models[i], settings, &written);
            assert_true(unread() < 64);
        }
    }
}

/* Whether something came back. What the thread that stores has no time for is computed again, which is no fault. */
static bool came_back(life *l)
{
    mt_stats stats;
    driver_stats(&l->d, &stats);
    return stats.evictions > 0 && stats.keep.restored_pages > 0 && stats.host_store.read > 0;
}

/* What the card has no room for is in the host's memory, goes there while steps go on, and comes back. */
static void host_memory_is_the_second_tier(void **state)
{
    enum { MANY = 5, LEN = 100, ROUNDS = 3, MOST = 500 };
    (void)state;
    for (size_t i = 0; i < 3; i += 2) {
        static uint32_t prompt[MANY][LEN];
        draw rng = {16};
        mt_error err = {0};
        answer a[MANY];
        life l;
        fake_set("");
        assert_true(life_begin_with(&l, models[i], &(shared){.cache = 256}));
        for (size_t n = 0; n < MANY; n++)
            draw_tokens(&rng, prompt[n], LEN, (uint32_t)l.d.o.spec.vocab);
        for (size_t round = 0; round < MOST && (round < ROUNDS || !came_back(&l)); round++)
            for (size_t n = 0; n < MANY; n++) {
                assert_true(send(&l, driver_request(&l.d, prompt[n], LEN, 4, &a[n]), &err));
                driver_wait(&l.d, 0);
                assert_int_equal(a[n].finish, MT_FINISH_LENGTH);
            }
        assert_true(came_back(&l));
        assert_true(fake_calls("cuEventQuery") > 0);
        life_end(&l);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(host_memory_is_the_second_tier),
    cmocka_unit_test(cards_are_found_by_number),
    cmocka_unit_test(what_cannot_be_used_is_told),
    cmocka_unit_test(ways_are_read),
    cmocka_unit_test(steps_are_replayed_unless_nobody_wants_it),
    cmocka_unit_test(a_long_step_is_two_graphs),
    cmocka_unit_test(without_graphs_kernels_begin_at_once),
    cmocka_unit_test(patches_go_up_together),
    cmocka_unit_test(peaks_are_measured),
    cmocka_unit_test(models_live_and_leave_nothing),
    cmocka_unit_test(a_step_waits_once),
    cmocka_unit_test(too_little_memory_is_told),
    cmocka_unit_test(each_call_may_fail),
    cmocka_unit_test(a_card_may_fall_off_the_bus),
    cmocka_unit_test(a_fault_is_of_one_engine),
    cmocka_unit_test(steps_overlap),
    cmocka_unit_test(steps_that_overlap_may_fail),
    cmocka_unit_test_setup_teardown(what_is_kept_was_read, make_folder, remove_folder),
};

UNIT_MAIN_IF(find_driver(), "the driver of tests/cuda", tests)
