/* Encoders in the engine: every text gets its vector, whoever it is computed beside, and its last event, whatever
   happens meanwhile. */
#include "engine_encoders.h"
#include "folder.h"

#include <math.h>

#include "engine/inside.h"

#define TEXT 200 /* tokens */

typedef struct alone {
    driver d;
    mt_encoder encoder;
    const mt_encoder *list[1];
    size_t steps;
    mt_request *victim; /* that is cancelled before the third step */
} alone;

/* An encoder and no model, with params that the test may change before driver_start. */
static void alone_open(alone *a, const char *dir)
{
    const mt_device_params device = {.name = unit_device(), .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_error err = {0};
    driver_init(&a->d);
    a->steps = 0;
    a->victim = NULL;
    a->d.o.dev = mt_device_open(&device, &err);
    assert_non_null(a->d.o.dev);
    encoder_open(&a->encoder, dir);
    a->list[0] = &a->encoder;
    a->d.params.encoders = a->list;
    a->d.params.encoder_count = 1;
}

static void alone_close(alone *a)
{
    driver_close(&a->d);
    mt_encoder_close(&a->encoder);
}

static void texts_become_vectors_and_pairs_scores(void **state)
{
    static const struct {
        const char *folder;
        mt_pool pool;
    } cases[] = {{VECTORS "bert-cls-bf16", MT_POOL_FIRST},
                 {VECTORS "xlmr-mean-bf16", MT_POOL_MEAN},
                 {VECTORS "bert-rerank-f32", MT_POOL_CLASSES}};
    bool known;
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        alone a;
        sent_text t;
        assert_true(mt_encoder_known(cases[i].folder, &known, NULL) && known);
        alone_open(&a, cases[i].folder);
        driver_start(&a.d);
        text_send(&a.d, text_request(&a.d, 1, cases[i].pool, 0, TEXT, &t));
        driver_wait(&a.d, 0);
        assert_int_equal(t.finish, MT_FINISH_STOP);
        assert_true(t.begun && isfinite(t.vector[0]) && t.vector[0] != 0);
        const mt_encoder_stats stats = mt_engine_encoder_stats(a.d.engine, 1);
        assert_int_equal(stats.texts, 1);
        assert_int_equal(stats.tokens, TEXT);
        alone_close(&a);
    }
}

/* While nothing is computed the queue fills up. */
static void a_full_queue_is_told(void **state)
{
    enum { QUEUE = 4, MANY = 200 };
    static sent_text texts[MANY];
    mt_error err = {0};
    size_t taken = 0;
    alone a;
    (void)state;
    alone_open(&a, VECTORS "bert-cls-bf16");
    a.d.params.queue = QUEUE;
    driver_start(&a.d);
    driver_hold(&a.d);
    for (size_t i = 0; i < MANY; i++)
        if (text_try(&a.d, text_request(&a.d, 1, MT_POOL_MEAN, 0, TEXT, &texts[taken]), &err))
            taken++;
        else
            assert_int_equal(err.code, MT_E_BUSY);
    assert_true(taken >= QUEUE + MT_BERT_TEXTS && taken < MANY);
    driver_let_go(&a.d);
    driver_wait(&a.d, 0);
    for (size_t i = 0; i < taken; i++)
        assert_int_equal(texts[i].finish, MT_FINISH_STOP);
    alone_close(&a);
}

static void who_is_cancelled_is_not_computed(void **state)
{
    sent_text texts[3];
    alone a;
    (void)state;
    alone_open(&a, VECTORS "bert-cls-bf16");
    driver_start(&a.d);
    for (size_t i = 0; i < 3; i++) {
        mt_request *r = text_request(&a.d, 1, MT_POOL_MEAN, 0, TEXT, &texts[i]);
        atomic_store(&r->cancelled, i != 1);
        text_send(&a.d, r);
    }
    driver_wait(&a.d, 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(texts[i].finish, i == 1 ? MT_FINISH_STOP : MT_FINISH_CANCELLED);
    assert_int_equal(mt_engine_encoder_stats(a.d.engine, 1).texts, 1);
    alone_close(&a);
}

static void count_steps(void *ctx, bool begins)
{
    alone *a = ctx;
    driver_turn(&a->d, begins);
    if (begins && ++a->steps == 3 && a->victim)
        atomic_store(&a->victim->cancelled, true);
}

/* Steps as short as they may be: a job takes dozens of them. */
static void open_slowly(alone *a, const char *dir)
{
    alone_open(a, dir);
    a->d.params.step_ms = 1e-6;
    a->d.params.turn = count_steps;
    a->d.params.turn_ctx = a;
}

/* Whose job nobody else wants takes no time any more; beside others it changes nothing for them. */
static void one_may_go_in_the_middle_of_a_job(void **state)
{
    sent_text first, gone, kept, after;
    alone a;
    (void)state;
    open_slowly(&a, VECTORS "bert-cls-bf16");
    driver_start(&a.d);
    driver_hold(&a.d);
    a.victim = text_request(&a.d, 1, MT_POOL_MEAN, 1, TEXT, &gone);
    text_send(&a.d, a.victim);
    driver_let_go(&a.d);
    driver_wait(&a.d, 0);
    assert_int_equal(gone.finish, MT_FINISH_CANCELLED);
    assert_true(gone.begun && a.steps == 3);
    a.victim = NULL;
    text_send(&a.d, text_request(&a.d, 1, MT_POOL_MEAN, 2, TEXT, &first));
    driver_wait(&a.d, 0);
    assert_true(a.steps > 20);
    alone_close(&a);

    open_slowly(&a, VECTORS "bert-cls-bf16");
    driver_start(&a.d);
    driver_hold(&a.d);
    a.victim = text_request(&a.d, 1, MT_POOL_MEAN, 1, TEXT, &gone);
    text_send(&a.d, a.victim);
    text_send(&a.d, text_request(&a.d, 1, MT_POOL_MEAN, 2, TEXT, &kept));
    driver_let_go(&a.d);
    driver_wait(&a.d, 0);
    a.victim = NULL;
    text_send(&a.d, text_request(&a.d, 1, MT_POOL_MEAN, 2, TEXT, &after));
    driver_wait(&a.d, 0);
    assert_int_equal(gone.finish, MT_FINISH_CANCELLED);
    assert_memory_equal(first.vector, kept.vector, sizeof(first.vector));
    assert_memory_equal(first.vector, after.vector, sizeof(first.vector));
    alone_close(&a);
}

static void the_end_is_told_to_all(void **state)
{
    enum { MANY = 50 };
    static sent_text texts[MANY];
    alone a;
    (void)state;
    alone_open(&a, VECTORS "xlmr-cls-f32");
    driver_start(&a.d);
    for (size_t i = 0; i < MANY; i++)
        text_send(&a.d, text_request(&a.d, 1, MT_POOL_MEAN, 0, TEXT, &texts[i]));
    mt_engine_stop(a.d.engine);
    for (size_t i = 0; i < MANY; i++)
        assert_true(texts[i].ended);
    mt_opened_close(&a.d.o);
    mt_encoder_close(&a.encoder);
}

static void what_is_no_encoder_is_refused(void **state)
{
    mt_error err = {0};
    mt_encoder encoder;
    bool known;
    (void)state;
    assert_true(mt_encoder_known(FIXTURES "/llama-bf16", &known, NULL) && !known);
    assert_true(mt_encoder_known("tests/nowhere", &known, NULL) && !known);
    assert_false(mt_encoder_open(&encoder, FIXTURES "/llama-bf16", &err));
    assert_non_null(strstr(err.text, "is no encoder but of type \"llama\""));
}

static void what_does_not_fit_into_memory_is_refused(void **state)
{
    mt_error err = {0};
    alone a;
    (void)state;
    alone_open(&a, VECTORS "bert-cls-bf16");
    a.d.params.memory = 1 << 16;
    assert_null(mt_engine_start(&a.d.o, NULL, &a.d.params, &err));
    assert_int_equal(err.code, MT_E_MEMORY);
    assert_non_null(strstr(err.text, "the encoders take"));
    mt_opened_close(&a.d.o);
    mt_encoder_close(&a.encoder);
}

static void wait_until_begun(sent_text *t)
{
    for (bool begun = false; !begun;) {
        pthread_mutex_lock(&t->d->lock);
        begun = t->begun;
        pthread_mutex_unlock(&t->d->lock);
        usleep(1000);
    }
}

static const mt_client_record *client_record(const driver *d, uint64_t id)
{
    for (size_t i = 0; i < d->engine->clients.count; i++)
        if (d->engine->clients.client_record[i].client.id == id)
            return &d->engine->clients.client_record[i];
    return NULL;
}

/* By their tokens. */
static void clients_share_what_a_job_takes(void **state)
{
    sent_text texts[3];
    alone a;
    (void)state;
    alone_open(&a, VECTORS "bert-cls-bf16");
    driver_start(&a.d);
    driver_hold(&a.d); /* the first makes the engine wait with a job of its own, the others meet in the next one */
    for (uint64_t i = 0; i < 3; i++) {
        mt_request *r = text_request(&a.d, 1, MT_POOL_MEAN, 0, i == 1 ? TEXT : TEXT / 4, &texts[i]);
        r->client.id = 10 + i;
        text_send(&a.d, r);
        if (i == 0)
            wait_until_begun(&texts[0]);
    }
    driver_let_go(&a.d);
    driver_wait(&a.d, 0);
    driver_hold(&a.d); /* after the step, which charges before it tells */
    const mt_client_record *large = client_record(&a.d, 11), *small = client_record(&a.d, 12);
    assert_true(small && large && small->seconds > 0 && client_record(&a.d, 10)->seconds > 0);
    assert_true(fabs(large->seconds / small->seconds - 4) < 1e-6);
    assert_int_equal(large->here + small->here, 0);
    driver_let_go(&a.d);
    alone_close(&a);
}

/* A job has room for ten of these texts. */
static void who_has_had_less_comes_first(void **state)
{
    enum { MANY = 60 };
    static sent_text texts[MANY];
    sent_text other;
    size_t before = 0;
    alone a;
    (void)state;
    alone_open(&a, VECTORS "bert-cls-bf16");
    driver_start(&a.d);
    driver_hold(&a.d);
    for (size_t i = 0; i <= MANY; i++) {
        mt_request *r = text_request(&a.d, 1, MT_POOL_MEAN, 0, TEXT, i < MANY ? &texts[i] : &other);
        r->client.id = i < MANY ? 1 : 2;
        text_send(&a.d, r);
    }
    driver_let_go(&a.d);
    driver_wait(&a.d, 0);
    for (size_t i = 0; i < MANY; i++)
        before += texts[i].ended_at < other.ended_at;
    assert_true(before < 20);
    alone_close(&a);
}

/* Two clients that have used equal machine time get half of the next job each, though one sent all its texts first. */
static void a_job_is_shared_by_those_who_wait(void **state)
{
    enum { EACH = 20 };
    static sent_text texts[2 * EACH];
    sent_text first;
    size_t before = 0;
    alone a;
    (void)state;
    alone_open(&a, VECTORS "bert-cls-bf16");
    driver_start(&a.d);
    driver_hold(&a.d); /* the first makes the engine wait with a job of its own, the others meet in the next one */
    for (size_t i = 0; i <= 2 * EACH; i++) {
        mt_request *r = text_request(&a.d, 1, MT_POOL_MEAN, 0, TEXT, i ? &texts[i - 1] : &first);
        r->client.id = i ? 1 + (i > EACH) : 3;
        text_send(&a.d, r);
        if (i == 0)
            wait_until_begun(&first);
    }
    driver_let_go(&a.d);
    driver_wait(&a.d, 0);
    for (size_t i = 0; i < EACH; i++)
        before += texts[i].ended_at < texts[EACH].ended_at;
    assert_true(before < 4);
    alone_close(&a);
}

/* A copy whose embedding of one token is not finite. */
static void break_token(size_t token)
{
    static char file[1 << 20];
    char path[512], command[512];
    uint64_t header, from;
    snprintf(command, sizeof(command), "cp -r " VECTORS "bert-mean-f32/* %s", folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof(path), "%s/model.safetensors", folder);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    const size_t len = fread(file, 1, sizeof(file) - 1, f);
    memcpy(&header, file, sizeof(header));
    assert_true(len > header && len < sizeof(file) - 1);
    const char *name = strstr(file + 8, "word_embeddings.weight"),
               *at = name ? strstr(name, "\"data_offsets\":[") : NULL;
    assert_non_null(at);
    from = strtoull(at + strlen("\"data_offsets\":["), NULL, 10);
    memset(file, 0xff, WIDTH * sizeof(float));
    assert_int_equal(fseek(f, (long)(8 + header + from + token * WIDTH * sizeof(float)), SEEK_SET), 0);
    assert_int_equal(fwrite(file, sizeof(float), WIDTH, f), WIDTH);
    fclose(f);
}

static void numbers_that_are_not_finite_end_one_text(void **state)
{
    sent_text whole[3], other[3];
    (void)state;
    break_token(7); /* none of a text's own */
    for (size_t k = 0; k < 2; k++) {
        sent_text *texts = k ? other : whole;
        alone a;
        alone_open(&a, k ? folder : VECTORS "bert-mean-f32");
        driver_start(&a.d);
        driver_hold(&a.d);
        for (uint32_t i = 0; i < 3; i++) {
            mt_request *r = text_request(&a.d, 1, MT_POOL_MEAN, i, 40 + i, &texts[i]);
            if (i == 1)
                ((uint32_t *)(uintptr_t)r->prompt)[5] = 7;
            text_send(&a.d, r);
        }
        driver_let_go(&a.d);
        driver_wait(&a.d, 0);
        alone_close(&a);
    }
    assert_int_equal(whole[1].finish, MT_FINISH_STOP);
    assert_int_equal(other[1].finish, MT_FINISH_ERROR);
    assert_non_null(strstr(other[1].error.text, "not finite"));
    for (size_t i = 0; i < 3; i += 2)
        assert_memory_equal(whole[i].vector, other[i].vector, sizeof(whole[i].vector));
}

/* Two encoders and a model: texts get the vectors they get alone, and the answer its tokens at its pace. */
static void texts_are_computed_beside_answers(void **state)
{
    enum { MANY = 12, TOKENS = 60 };
    static const char *const folders[] = {VECTORS "bert-cls-bf16", VECTORS "xlmr-mean-bf16"};
    static sent_text want[2][MANY], got[2][MANY];
    static answer before, beside;
    uint32_t prompt[20] = {1, 2, 3};
    mt_encoder encoders[2];
    size_t later = 0;
    driver d;
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        alone a;
        alone_open(&a, folders[k]);
        driver_start(&a.d);
        for (uint32_t i = 0; i < MANY; i++) {
            text_send(&a.d, text_request(&a.d, 1, MT_POOL_MEAN, i, TEXT - i, &want[k][i]));
            driver_wait(&a.d, 0);
        }
        alone_close(&a);
        encoder_open(&encoders[k], folders[k]);
    }
    driver_open(&d, FIXTURES "/llama-bf16", MT_PRECISION_FAST, 2);
    d.params.encoders = (const mt_encoder *[]){&encoders[0], &encoders[1]};
    d.params.encoder_count = 2;
    d.params.step_ms = 1e-6;
    driver_start(&d);
    driver_ask(&d, prompt, 20, TOKENS, &before);
    driver_hold(&d);
    for (uint32_t i = 0; i < MANY; i++)
        for (size_t k = 0; k < 2; k++)
            text_send(&d, text_request(&d, 1 + k, MT_POOL_MEAN, i, TEXT - i, &got[k][i]));
    driver_send(&d, driver_request(&d, prompt, 20, TOKENS, &beside));
    driver_let_go(&d);
    driver_wait(&d, 0);
    expect_same("beside encoders", &before, &beside);
    for (size_t i = 0; i < 2 * MANY; i++) {
        assert_memory_equal(want[i % 2][i / 2].vector, got[i % 2][i / 2].vector, sizeof(want[0][0].vector));
        later += got[i % 2][i / 2].ended_at > beside.ended_at;
    }
    assert_true(later > 0); /* short steps do not keep it from having a row of each */
    driver_close(&d);
    for (size_t k = 0; k < 2; k++)
        mt_encoder_close(&encoders[k]);
}

/* What a turn was to compute of a job, on the engine's thread. */
typedef struct slices {
    driver d;
    answer beside;
    asked asked;
    double work; /* of the job before the turn */
    bool planned;
    size_t before, after; /* tokens that came after their turn's slice, and before it */
} slices;

static void note_turn(void *ctx, bool begins)
{
    slices *x = ctx;
    driver_turn(&x->d, begins);
    if (!begins)
        return;
    x->planned = mt_job_planned(&x->d.engine->text_queues[0].job);
    x->work = x->d.engine->text_queues[0].job.work;
}

static void note_token(void *ctx, const mt_event *ev)
{
    slices *x = ctx;
    if (ev->kind == MT_EVENT_TOKEN && x->planned)
        *(x->d.engine->text_queues[0].job.work > x->work ? &x->before : &x->after) += 1;
    driver_event(&x->asked, ev);
}

/* What lies between two tokens of an answer is one plan's: slices come before the rows that they were planned with. */
static void slices_come_before_their_rows(void **state)
{
    enum { MANY = 12, TOKENS = 60 };
    static sent_text texts[MANY];
    static slices x;
    uint32_t prompt[20] = {1, 2, 3};
    mt_encoder encoder;
    (void)state;
    encoder_open(&encoder, VECTORS "bert-cls-bf16");
    driver_open(&x.d, FIXTURES "/llama-bf16", MT_PRECISION_FAST, 1);
    x.d.params.encoders = (const mt_encoder *[]){&encoder};
    x.d.params.encoder_count = 1;
    x.d.params.step_ms = 1e-6;
    x.d.params.turn = note_turn;
    x.d.params.turn_ctx = &x;
    driver_start(&x.d);
    driver_hold(&x.d);
    for (uint32_t i = 0; i < MANY; i++)
        text_send(&x.d, text_request(&x.d, 1, MT_POOL_MEAN, i, TEXT - i, &texts[i]));
    mt_request *r = driver_request(&x.d, prompt, 20, TOKENS, &x.beside);
    x.asked = (asked){.d = &x.d, .answers = &x.beside};
    r->event = note_token;
    r->ctx = &x;
    driver_send(&x.d, r);
    driver_let_go(&x.d);
    driver_wait(&x.d, 0);
    assert_true(x.before > 0);
    assert_int_equal(x.after, 0);
    driver_close(&x.d);
    mt_encoder_close(&encoder);
}

/* What stood in the queue of texts when a step had been begun ahead, on the engine's thread. */
typedef struct onlooker {
    driver d;
    size_t ahead, unseen; /* steps begun ahead, and those of them while a text waited */
} onlooker;

static void look_on(void *ctx, bool begins)
{
    onlooker *x = ctx;
    driver_turn(&x->d, begins);
    if (!begins || !x->d.engine->step.ahead)
        return;
    x->ahead++;
    x->unseen += x->d.engine->text_queues[0].waiting_count > 0;
}

/* Where a job has ended and texts wait for the next one, that is planned before anything else is begun. */
static void no_step_is_begun_ahead_while_texts_wait(void **state)
{
    enum { MANY = 24, TOKENS = ANSWER_TOKENS };
    static sent_text texts[MANY];
    static onlooker x;
    static answer a;
    uint32_t prompt[20] = {1, 2, 3};
    mt_encoder encoder;
    (void)state;
    encoder_open(&encoder, VECTORS "bert-cls-bf16");
    driver_open(&x.d, FIXTURES "/llama-bf16", MT_PRECISION_FAST, 1);
    x.d.params.encoders = (const mt_encoder *[]){&encoder};
    x.d.params.encoder_count = 1;
    x.d.params.context = 512;
    x.d.params.ahead = MT_AHEAD_ALWAYS;
    x.d.params.speculate = MT_SPECULATE_OFF;
    x.d.params.turn = look_on;
    x.d.params.turn_ctx = &x;
    driver_start(&x.d);
    driver_hold(&x.d);
    for (uint32_t i = 0; i < MANY; i++)
        text_send(&x.d, text_request(&x.d, 1, MT_POOL_MEAN, i, TEXT - i, &texts[i]));
    mt_request *r = driver_request(&x.d, prompt, 20, TOKENS, &a);
    r->sampling.logprobs = -1; /* the device may choose */
    driver_send(&x.d, r);
    driver_let_go(&x.d);
    driver_wait(&x.d, 0);
    r = driver_request(&x.d, prompt, 20, TOKENS, &a); /* nobody waits any more */
    r->sampling.logprobs = -1;
    driver_send(&x.d, r);
    driver_wait(&x.d, 0);
    assert_true(x.ahead > 0);
    assert_int_equal(x.unseen, 0);
    driver_close(&x.d);
    mt_encoder_close(&encoder);
}

static void encoders_have_their_part_of_the_memory(void **state)
{
    mt_stats stats[2];
    mt_encoder encoder;
    (void)state;
    encoder_open(&encoder, VECTORS "bert-cls-bf16");
    for (size_t i = 0; i < 2; i++) {
        driver d;
        driver_open(&d, FIXTURES "/llama-bf16", MT_PRECISION_FAST, 1);
        d.params.encoders = (const mt_encoder *[]){&encoder};
        d.params.encoder_count = i;
        driver_start(&d);
        mt_engine_stats(d.engine, &stats[i]);
        driver_close(&d);
    }
    assert_true(mt_encoder_weights(&encoder) > 0);
    assert_int_equal(stats[1].bytes_weights - stats[0].bytes_weights, mt_encoder_weights(&encoder));
    mt_encoder_close(&encoder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_become_vectors_and_pairs_scores),
    cmocka_unit_test(a_full_queue_is_told),
    cmocka_unit_test(who_is_cancelled_is_not_computed),
    cmocka_unit_test(one_may_go_in_the_middle_of_a_job),
    cmocka_unit_test(the_end_is_told_to_all),
    cmocka_unit_test(what_is_no_encoder_is_refused),
    cmocka_unit_test(what_does_not_fit_into_memory_is_refused),
    cmocka_unit_test(clients_share_what_a_job_takes),
    cmocka_unit_test(who_has_had_less_comes_first),
    cmocka_unit_test(a_job_is_shared_by_those_who_wait),
    cmocka_unit_test_setup_teardown(numbers_that_are_not_finite_end_one_text, make_folder, remove_folder),
    cmocka_unit_test(texts_are_computed_beside_answers),
    cmocka_unit_test(slices_come_before_their_rows),
    cmocka_unit_test(no_step_is_begun_ahead_while_texts_wait),
    cmocka_unit_test(encoders_have_their_part_of_the_memory),
};

UNIT_MAIN(tests)
