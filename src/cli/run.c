/* The command motet run with a raw prompt: prints the continuation as text, or as token numbers with their logprobs.
   With a message, see run_message.c. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/limits.h"
#include "api/random.h"
#include "api/write.h"
#include "base/alloc.h"
#include "base/json_write.h"
#include "cli/cli.h"
#include "engine/engine.h"
#include "engine/opened.h"
#include "hub/find.h"
#include "server/prepare/generation.h"

/* RAW_TOKENS: most tokens of an answer, where --max-tokens is not given */
enum { EXIT_USAGE = 2, RAW_TOKENS = 16 };

/* Parses decimal numbers that are separated by commas or spaces. */
static bool parse_tokens(const char *text, mt_ids *list, mt_error *err)
{
    for (const char *p = text; *p;) {
        char *end;
        errno = 0;
        const unsigned long id = strtoul(p, &end, 10);
        if (*p < '0' || *p > '9' || errno || id > UINT32_MAX || (*end && *end != ',' && *end != ' '))
            return mt_fail(err, MT_E_INVALID,
                           "\"--token-ids\" has \"%.16s\" where a token id should be; give numbers like 1,2,3", p);
        mt_ids_add(list, (uint32_t)id);
        p = *end ? end + 1 : end;
    }
    if (!list->count)
        return mt_fail(err, MT_E_INVALID, "\"--token-ids\" is empty; give at least one number");
    return true;
}

/* The request of the user. */
typedef struct asked {
    mt_ids prompt;
    /* Turns text into tokens and back; NULL: the prompt was given as tokens, and tokens are printed */
    mt_tokenizer *tokenizer;
    mt_generation_config generation;
} asked;

static bool read_prompt(asked *a, const mt_options *opt, const mt_opened *o, mt_error *err)
{
    const mt_config *config = mt_checkpoint_config(o->checkpoint);
    if (opt->token_ids)
        return parse_tokens(opt->token_ids, &a->prompt, err);
    a->tokenizer = mt_tokenizer_load(opt->dir, err);
    if (!a->tokenizer || !mt_generation_read(&a->generation, opt->dir, config, a->tokenizer, err))
        return false;
    return mt_tokenizer_encode(a->tokenizer, opt->prompt, strlen(opt->prompt),
                               &(mt_encode_options){.add_special = true}, &a->prompt, err);
}

/* Prints tokens as they come, or one JSON object at the end. The thread of the engine writes the fields until done is
   true. */
typedef struct printer {
    bool json, text; /* one JSON object; the text; where both are false, a line for each token */
    mt_buf out;      /* the JSON object, as far as it is complete */
    size_t tokens;
    uint32_t *ids;
    mt_finish finish;
    mt_error error;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done;
} printer;

static void add_step(mt_buf *out, const mt_event *ev)
{
    mt_json_write(out, "{'id':%u,'logprob':%.9g,'top':[", ev->token, (double)ev->logprob);
    for (size_t i = 0; i < ev->top_count; i++)
        mt_json_write(out, "[%u,%.9g]", ev->top[i].id, (double)ev->top[i].logprob);
    mt_json_write(out, "]}");
}

static void print_step(const mt_event *ev)
{
    printf("%u %.6f", ev->token, (double)ev->logprob);
    for (size_t i = 0; i < ev->top_count; i++)
        printf("%s%u:%.6f", i ? " " : "   ", ev->top[i].id, (double)ev->top[i].logprob);
    printf("\n");
    fflush(stdout);
}

static void end(printer *p, const mt_event *ev)
{
    if (p->text) {
        fwrite(ev->text, 1, ev->text_len, stdout);
        printf("\n");
    }
    pthread_mutex_lock(&p->lock);
    p->finish = ev->finish;
    if (ev->error)
        p->error = *ev->error;
    p->done = true;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
}

static void print_event(void *ctx, const mt_event *ev)
{
    printer *p = ctx;
    if (ev->kind == MT_EVENT_DONE)
        end(p, ev);
    if (ev->kind != MT_EVENT_TOKEN)
        return;
    p->ids[p->tokens++] = ev->token;
    if (p->text) {
        fwrite(ev->text, 1, ev->text_len, stdout);
        fflush(stdout);
    } else if (p->json) {
        add_step(&p->out, ev);
    } else {
        print_step(ev);
    }
}

static size_t most_tokens(const mt_options *opt)
{
    return opt->max_tokens ? (size_t)opt->max_tokens : RAW_TOKENS;
}

static mt_request *request_of(const mt_options *opt, const asked *a, printer *p)
{
    mt_request *r = mt_request_new();
    r->prompt = a->prompt.data;
    r->prompt_len = a->prompt.count;
    r->skip_special = true;
    r->sampling.eos_ids = a->generation.eos;
    r->sampling.eos_count = a->generation.eos_count;
    r->max_tokens = most_tokens(opt);
    r->repeat_limit = (uint32_t)opt->repeat_limit;
    r->sampling.temperature = isnan(opt->temperature) ? 0 : (float)opt->temperature;
    if (opt->seed < 0)
        mt_random(&r->sampling.seed, sizeof(r->sampling.seed));
    else
        r->sampling.seed = (uint64_t)opt->seed;
    r->sampling.logprobs = (int32_t)opt->logprobs;
    r->event = print_event;
    r->ctx = p;
    return r;
}

/* Submits the request and waits for its end. */
static bool answer(mt_engine *engine, mt_request *r, printer *p, mt_error *err)
{
    if (!mt_engine_submit(engine, r, err)) {
        mt_request_free(r);
        return false;
    }
    pthread_mutex_lock(&p->lock);
    while (!p->done)
        pthread_cond_wait(&p->ended, &p->lock);
    pthread_mutex_unlock(&p->lock);
    *err = p->error;
    return p->finish != MT_FINISH_ERROR;
}

static bool generate(mt_opened *o, const mt_options *opt, asked *a, mt_error *err)
{
    const mt_ids *prompt = &a->prompt;
    const size_t max_tokens = most_tokens(opt), wanted = prompt->count + max_tokens;
    const size_t context = opt->context ? (size_t)opt->context : o->spec.context;
    if (wanted > context)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "%zu prompt tokens and %zu to generate exceed the context of %zu; shorten one of them",
                       prompt->count, max_tokens, context);
    mt_engine_params params;
    mt_engine_params_init(&params);
    params.sequences = 1;
    params.queue = 1;
    params.context = wanted;
    params.cache = wanted + 2 * MT_PAGE_TOKENS;
    params.chunk = (size_t)opt->chunk;
    params.media_cache = (uint64_t)opt->media_cache;
    params.speculate = opt->speculate;
    params.canary = opt->debug_canary;
    mt_engine *engine = mt_engine_start(o, a->tokenizer, &params, err);
    if (!engine)
        return false;
    printer p = {.json = opt->json,
                 .text = a->tokenizer && !opt->json && !opt->logprobs,
                 .ids = mt_alloc(max_tokens * sizeof(*p.ids))};
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.ended, NULL);
    mt_buf_init(&p.out, MT_LIMIT_RESPONSE_BYTES);
    mt_json_write(&p.out, "{");
    mt_write_ids(&p.out, "prompt_token_ids", prompt->data, prompt->count);
    mt_json_write(&p.out, "'steps':[");
    bool ok = answer(engine, request_of(opt, a, &p), &p, err);
    mt_engine_stop(engine);
    mt_json_write(&p.out, "]");
    mt_write_ids(&p.out, "token_ids", p.ids, p.tokens);
    mt_json_write(&p.out, "'finish_reason':%s}", ok ? mt_finish_name(p.finish) : "error");
    if (p.json && p.out.full)
        ok = mt_fail(err, MT_E_TOO_LARGE, "the answer has more than %u bytes: ask for fewer tokens or logprobs",
                     MT_LIMIT_RESPONSE_BYTES);
    else if (p.json)
        printf("%s\n", p.out.data);
    mt_buf_free(&p.out);
    pthread_cond_destroy(&p.ended);
    pthread_mutex_destroy(&p.lock);
    mt_free(p.ids);
    return ok;
}

/* How many of the inputs are to be read from standard input. */
static size_t reads_input(const mt_options *opt)
{
    size_t count = opt->input && strcmp(opt->input, "-") == 0;
    for (size_t i = 0; i < opt->images.count; i++)
        count += strcmp(opt->images.at[i], "-") == 0;
    for (size_t i = 0; i < opt->videos.count; i++)
        count += strcmp(opt->videos.at[i], "-") == 0;
    for (size_t i = 0; i < opt->documents.count; i++)
        count += strcmp(opt->documents.at[i], "-") == 0;
    return count;
}

/* Checks that exactly one kind of prompt is given, and only options that go with it. */
static bool check(const mt_options *opt, mt_error *err)
{
    if ((opt->input != NULL) + (opt->prompt != NULL) + (opt->token_ids != NULL) != 1)
        return mt_fail(err, MT_E_INVALID,
                       "give one prompt: motet run DIR \"what to say\", or raw with \"--prompt\" or \"--token-ids\"");
    if (opt->input && opt->logprobs)
        return mt_fail(err, MT_E_INVALID, "\"--logprobs\" goes with \"--prompt\" or \"--token-ids\"");
    if (!opt->input && (opt->images.count + opt->videos.count + opt->documents.count > 0 || opt->system ||
                        opt->think != MT_THINK_AUTO))
        return mt_fail(
            err, MT_E_INVALID,
            "\"--image\", \"--video\", \"--file\", \"--system\" and \"--think\" go with a message: motet run DIR "
            "\"what to say\" --image FILE");
    if (reads_input(opt) > 1)
        return mt_fail(err, MT_E_INVALID, "\"-\" stands for standard input, which is read once: give one of them");
    return true;
}

int mt_cmd_run(const mt_options *opt)
{
    const mt_device_params params = mt_options_device(opt);
    mt_error err = {0};
    mt_opened o;
    asked a = {0};
    if (!check(opt, &err)) {
        fprintf(stderr, "motet: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (opt->input)
        return mt_run_message(opt);
    char *draft = opt->draft ? mt_hub_find(opt->draft, opt->models_dir, getenv, &err) : NULL;
    const mt_open_wish wish = {.family = opt->family, .text_only = opt->text_only, .draft = draft};
    bool ok = (draft || !opt->draft) && mt_opened_open(&o, opt->dir, &params, &wish, &err);
    mt_free(draft);
    if (ok) {
        ok = read_prompt(&a, opt, &o, &err) && generate(&o, opt, &a, &err);
        mt_opened_close(&o);
    }
    mt_ids_free(&a.prompt);
    mt_tokenizer_free(a.tokenizer);
    if (!ok)
        fprintf(stderr, "motet: %s\n", err.text);
    return ok ? 0 : 1;
}
