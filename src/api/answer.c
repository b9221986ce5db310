/* Events of the engine become choices with text and tokens, which the dialect writes: see answer.h. */
#include "api/answer.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/clock.h"

mt_answer *mt_answer_new(const mt_dialect *dialect, mt_arena *arena, const mt_ask *ask, size_t prompt_count)
{
    const size_t n = (size_t)ask->n;
    mt_answer *a = mt_arena_alloc(arena, sizeof(*a));

    if (!a)
        return NULL;
    *a = (mt_answer){.dialect = dialect,
                     .arena = arena,
                     .created = (int64_t)time(NULL),
                     .form = ask->form,
                     .logprobs = ask->sampling.logprobs,
                     .listed = ask->sampling.logprob_count > 0,
                     .store = ask->store,
                     .recent = ask->recent,
                     .dimensions = (size_t)ask->dimensions,
                     .n = n,
                     .prompt_count = prompt_count,
                     .choice_count = n * prompt_count,
                     .open = n * prompt_count};
    mt_buf_init(&a->log, MT_LIMIT_EVENT_LOG);
    a->prompts = mt_arena_alloc(arena, prompt_count * sizeof(*a->prompts));
    a->choices = mt_arena_alloc(arena, a->choice_count * sizeof(*a->choices));
    if (!a->prompts || !a->choices)
        return NULL;
    a->extra = json_incref(ask->extra);
    for (size_t i = 0; i < a->choice_count; i++)
        a->choices[i] = (mt_choice){.index = i, .prompt = i / n, .stop_token = MT_TOKEN_NONE};
    return a;
}

static void free_said(mt_said_list *list)
{
    mt_free(list->at);
    mt_free(list->top);
}

static void free_choice(mt_choice *c)
{
    mt_parser_free(c->parser);
    mt_speech_free(&c->speech);
    free_said(&c->said);
    mt_free(c->stop);
    mt_free(c->ids);
    mt_free(c->vector);
}

void mt_answer_free(mt_answer *answer)
{
    if (!answer)
        return;
    for (size_t i = 0; i < answer->choice_count; i++)
        free_choice(&answer->choices[i]);
    mt_buf_free(&answer->log);
    json_decref(answer->tools);
    json_decref(answer->extra);
    for (size_t i = 0; i < answer->prompt_count; i++)
        free_said(&answer->prompts[i].said);
    mt_arena_free(answer->arena);
}

static void add_said(mt_said_list *list, const mt_event *event)
{
    list->at = mt_grow(list->at, &list->cap, list->count + 1, sizeof(*list->at));
    list->at[list->count++] = (mt_said){.id = event->token,
                                        .has_logprob = event->has_logprob,
                                        .logprob = event->logprob,
                                        .rank = event->rank,
                                        .top_begin = list->top_count,
                                        .top_count = event->top_count,
                                        .part = SIZE_MAX};
    list->top = mt_grow(list->top, &list->top_cap, list->top_count + event->top_count, sizeof(*list->top));
    if (event->top_count)
        memcpy(list->top + list->top_count, event->top, event->top_count * sizeof(*list->top));
    list->top_count += event->top_count;
}

/* error may be NULL. */
static void fail(mt_answer *a, const mt_error *error)
{
    a->failed = true;
    if (error)
        mt_failure_from(&a->why, error, NULL);
    else
        mt_failure_set(&a->why, 500, NULL, NULL, "the answer could not be computed: try again");
}

static void begin(mt_answer *a, mt_choice *c, mt_buf *out)
{
    if (c->begun)
        return;
    c->begun = true;
    if (a->form.stream && a->dialect->begin)
        a->dialect->begin(a, c, out);
}

static void finish(mt_answer *a, mt_choice *c, const mt_event *event)
{
    c->done = true;
    mt_speech_end(&c->speech);
    c->finish = event->finish;
    c->tokens = event->tokens;
    c->cached = event->cached;
    c->waited = event->waited;
    c->spoke = event->spoke;
    c->guessed = event->guessed;
    c->taken = event->taken;
    c->stop_token = event->stop_token;
    c->repeated = event->repeated;
    if (event->stop.str) {
        c->stop = mt_alloc(event->stop.len);
        memcpy(c->stop, event->stop.str, event->stop.len);
        c->stop_len = event->stop.len;
    }
    if (event->vector) {
        c->vector = mt_alloc_array(event->vector_len, sizeof(*c->vector));
        memcpy(c->vector, event->vector, event->vector_len * sizeof(*c->vector));
        c->vector_len = event->vector_len;
    }
    a->open--;
}

/* After a chunk: all text counts as written, and written tokens are removed, unless the dialect repeats them at the
   end. */
static void mark_written(const mt_answer *a, mt_choice *c)
{
    mt_speech_written(&c->speech);
    c->said.told = c->said.count;
    if (!a->dialect->repeats)
        c->said.count = c->said.top_count = c->said.told = c->said.placed = 0;
}

/* Sets which speech part the latest tokens belong to: the last one, where it has grown; tokens before them whose text
   the parser held back belong to it, too. Where a new part has begun, the earlier tokens were markers and belong to
   none. parts, bytes: of the speech before the event. */
static void assign_tokens(mt_choice *c, size_t parts, size_t bytes)
{
    const bool begins = c->speech.count > parts;

    if (c->speech.bytes == bytes && !begins)
        return;
    for (size_t i = begins && c->said.count ? c->said.count - 1 : c->said.placed; i < c->said.count; i++)
        c->said.at[i].part = c->speech.count - 1;
    c->said.placed = c->said.count;
}

/* The parser's callback. Hidden reasoning is dropped here, so that no dialect has to know of it. */
static void accept_parsed(void *ctx, const mt_parse_event *event)
{
    mt_choice *c = ctx;

    c->reasons = event->kind == MT_PARSE_REASONING;
    if (!c->reasons || !c->hide_reasoning)
        mt_speech_hear(&c->speech, event);
}

static bool is_reasoning(const mt_choice *c)
{
    const mt_speech *s = &c->speech;

    return c->hide_reasoning ? c->reasons : s->count && s->at[s->count - 1].kind == MT_SPEECH_REASONING;
}

/* Adds an event's text to the choice. False: the answer is longer than may be kept. */
static bool add_text(mt_choice *c, const mt_event *event)
{
    const size_t parts = c->speech.count, bytes = c->speech.bytes;

    if (!c->parser)
        mt_speech_add(&c->speech, MT_SPEECH_TEXT, event->text, event->text_len);
    else if (event->text_len)
        mt_parser_feed(c->parser, event->text, event->text_len, accept_parsed, c);
    if (c->parser && event->kind == MT_EVENT_DONE)
        mt_parser_finish(c->parser, accept_parsed, c);
    c->tokens += event->kind == MT_EVENT_TOKEN;
    c->reasoning_tokens += event->kind == MT_EVENT_TOKEN && is_reasoning(c);
    assign_tokens(c, parts, bytes);
    if (c->hide_reasoning && c->reasons)
        c->said.count = c->said.placed;
    return !c->speech.full;
}

bool mt_answer_parse(mt_answer *a, const mt_parse_settings *settings, mt_error *err)
{
    a->tools = json_incref((json_t *)(uintptr_t)settings->tools);
    for (size_t i = 0; i < a->choice_count; i++) {
        a->choices[i].hide_reasoning = !a->form.include_reasoning;
        a->choices[i].parser = mt_parser_new(settings, err);
        if (!a->choices[i].parser)
            return false;
    }
    return true;
}

/* Writes what is new of a choice, where the answer is streamed. */
static void write_news(mt_answer *a, mt_choice *c, mt_buf *out)
{
    /* With hidden reasoning, tokens wait until it is known what they are part of */
    const bool tokens = c->said.count && !c->hide_reasoning;
    const bool news = tokens || c->done || mt_speech_news(&c->speech);

    if (!a->form.stream || !news)
        return;
    a->dialect->chunk(a, c, out);
    mark_written(a, c);
}

/* The times of a choice that goes on, by the clock of this thread; its last event has the engine's. */
static void note_times(const mt_answer *a, mt_choice *c)
{
    const uint64_t now = mt_clock_ns() - a->began;

    if (c->waited == 0)
        c->waited = now;
    c->spoke = now - c->waited;
}

void mt_answer_feed(mt_answer *a, size_t prompt, const mt_event *event, mt_buf *out)
{
    mt_choice *c = &a->choices[prompt * a->n + event->choice];

    if (a->failed || c->done)
        return;
    if (event->kind == MT_EVENT_DONE && event->finish == MT_FINISH_ERROR) {
        fail(a, event->error);
        return;
    }
    if (event->kind == MT_EVENT_DONE && a->form.vectors && !event->vector) {
        a->failed = true;
        mt_failure_set(&a->why, 409, "cancelled", NULL, "the request was cancelled: send it again");
        return;
    }
    if (event->kind == MT_EVENT_PROMPT) { /* choices of a prompt share these */
        if (event->choice == 0)
            add_said(&a->prompts[prompt].said, event);
        return;
    }
    if (event->kind == MT_EVENT_BEGUN)
        c->cached = event->cached;
    begin(a, c, out);
    if (event->kind == MT_EVENT_BEGUN)
        return;
    if (event->kind == MT_EVENT_TOKEN && a->form.context) {
        c->ids = mt_grow(c->ids, &c->id_cap, c->id_count + 1, sizeof(*c->ids));
        c->ids[c->id_count++] = event->token;
    }
    if (event->kind == MT_EVENT_TOKEN && a->form.timings_each)
        note_times(a, c);
    if (event->kind == MT_EVENT_TOKEN && (a->logprobs >= 0 || a->form.return_token_ids))
        add_said(&c->said, event);
    if (!add_text(c, event)) {
        fail(a, &(mt_error){.code = MT_E_TOO_LARGE, .text = "the answer is longer than one may be: stream it"});
        return;
    }
    if (event->kind == MT_EVENT_DONE)
        finish(a, c, event);
    if (a->open == 0)
        a->ended = (int64_t)time(NULL);
    /* Completions tell the end with the last token, as OpenAI's do. So do all dialects with usage in every chunk, as
       vLLM does: else two chunks would tell the same count */
    if (!(event->ending && (a->form.continuous_usage || a->dialect->joins)))
        write_news(a, c, out);
    if (a->open == 0)
        (a->form.stream ? a->dialect->end : a->dialect->whole)(a, out);
}

static void scale(float *vector, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)vector[i] * (double)vector[i];
    for (size_t i = 0; i < count; i++)
        vector[i] = (float)((double)vector[i] / fmax(sqrt(sum), 1e-12));
}

/* A shortened vector is always scaled again. */
size_t mt_answer_embedding(const mt_answer *a, mt_choice *c)
{
    const size_t width = a->width ? a->width : c->vector_len;
    const size_t count = a->dimensions ? a->dimensions : width, tokens = width ? c->vector_len / width : 0;

    for (size_t i = 0; i < tokens; i++) {
        float *vector = c->vector + i * count;

        memmove(vector, c->vector + i * width, count * sizeof(*vector));
        if (a->normalise || count < width)
            scale(vector, count);
    }
    return tokens * count;
}

static void softmax(float *values, size_t count, double most)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += exp((double)values[i] - most);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(exp((double)values[i] - most) / sum);
}

size_t mt_answer_classes(const mt_answer *a, mt_choice *c)
{
    size_t best = 0;

    for (size_t i = 1; i < c->vector_len; i++)
        if (c->vector[i] > c->vector[best])
            best = i;
    if (a->form.scaling == MT_SCALING_OFF)
        return best;
    if (!a->apart)
        softmax(c->vector, c->vector_len, (double)c->vector[best]);
    for (size_t i = 0; a->apart && i < c->vector_len; i++)
        c->vector[i] = (float)(1 / (1 + exp(-(double)c->vector[i])));
    return best;
}

/* A prompt is computed once for all its choices, so the smallest count of cached tokens among them is the true one. */
mt_usage mt_answer_usage(const mt_answer *a)
{
    mt_usage all = {0};

    for (size_t i = 0; i < a->prompt_count; i++) {
        size_t least = SIZE_MAX;

        for (const mt_choice *c = &a->choices[i * a->n]; c < &a->choices[(i + 1) * a->n]; c++) {
            least = MT_MIN(least, c->cached);
            all.tokens += c->tokens;
            all.reasoning += c->reasoning_tokens;
        }
        all.prompt += a->prompts[i].count;
        all.cached += least;
    }
    return all;
}
