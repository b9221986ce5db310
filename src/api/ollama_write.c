/* The dialects of POST /api/chat and /api/generate, as Ollama defines them: an answer is a JSON object, and a stream
   has one on each line, of which the last says that it is done and how long it took. */
#include <inttypes.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/ollama.h"
#include "api/write.h"
#include "base/clock.h"
#include "base/json_write.h"

void mt_ollama_error(mt_buf *out, const mt_failure *why)
{
    mt_json_write(out, "{'error':%s}", why->text);
}

/* Opens an answer or a line of a stream, with its own time. */
static void add_head(mt_buf *out, const json_t *extra, const char *model)
{
    const char *named = mt_body_text(extra, "model");
    char text[MT_CLOCK_TEXT];
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    mt_json_write(out, "{'model':%s,'created_at':%s", *named ? named : model, mt_clock_text(now, 9, text));
}

void mt_ollama_durations(mt_buf *out, const mt_answer *a)
{
    mt_json_write(out, "'total_duration':%" PRIu64 ",'load_duration':%" PRIu64, mt_clock_ns() - a->began, a->loading);
}

/* Appends [{"id":..,"function":{"index":..,"name":..,"arguments":{..}}}]. A call is written once it is complete. news:
   only calls that were not written. */
static void add_calls(mt_buf *out, const mt_speech *s, bool news)
{
    size_t index = 0;

    mt_json_write(out, "'tool_calls':[");
    for (size_t i = 0; i < s->count; i++) {
        const mt_speech_part *part = &s->at[i];

        if (part->kind != MT_SPEECH_CALL)
            continue;
        if (!news || (part->ended && !part->closed)) {
            mt_json_write(out, "{'id':%s,'function':{'index':%zu,'name':%s,'arguments':", part->id, index, part->name);
            mt_write_arguments(out, part);
            mt_json_write(out, "}}");
        }
        index++;
    }
    mt_json_write(out, "]");
}

/* Whether a call has become complete that was not written. */
static bool calls_end(const mt_speech *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].kind == MT_SPEECH_CALL && s->at[i].ended && !s->at[i].closed)
            return true;
    return false;
}

/* Appends the text, reasoning and calls: all, or (news) only what was not written. */
static void add_said(mt_buf *out, const mt_answer *a, const mt_choice *c, bool news)
{
    const bool chat = a->dialect == &mt_ollama_chat;

    if (chat)
        mt_json_write(out, "'message':{'role':'assistant'");
    mt_speech_write(out, chat ? "content" : "response", &c->speech, MT_SPEECH_TEXT, news);
    if (mt_speech_has(&c->speech, MT_SPEECH_REASONING, news))
        mt_speech_write(out, "thinking", &c->speech, MT_SPEECH_REASONING, news);
    if (news ? calls_end(&c->speech) : c->speech.calls > 0)
        add_calls(out, &c->speech, news);
    if (chat)
        mt_json_write(out, "}");
}

static void add_silence(mt_buf *out, bool chat)
{
    mt_json_write(out, chat ? "'message':{'role':'assistant','content':''}" : "'response':''");
}

static void add_logprobs(mt_buf *out, const mt_answer *a, const mt_said_list *said)
{
    if (a->logprobs < 0 || said->count == 0)
        return;
    mt_json_write(out, "'logprobs':");
    mt_write_logprob_list(out, a, said);
}

static void add_end(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    mt_json_write(out, "'done':true,'done_reason':%s",
                  c->finish == MT_FINISH_CANCELLED ? "abort" : mt_finish_name(c->finish));
    mt_ollama_durations(out, a);
    mt_json_write(
        out, "'prompt_eval_count':%zu,'prompt_eval_duration':%" PRIu64 ",'eval_count':%zu,'eval_duration':%" PRIu64,
        mt_answer_usage(a).prompt, c->waited > a->loading ? c->waited - a->loading : 0, c->tokens, c->spoke);
}

/* Appends "context": the tokens of the prompt and of the answer, with the one that ended it. */
static void add_context(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    const mt_answer_prompt *p = &a->prompts[c->prompt];
    const bool ended = c->finish == MT_FINISH_STOP && c->stop_token != MT_TOKEN_NONE &&
                       (c->id_count == 0 || c->ids[c->id_count - 1] != c->stop_token);

    if (!a->form.context)
        return;
    mt_json_write(out, "'context':[");
    for (size_t i = 0; i < p->count; i++)
        mt_json_write(out, "%" PRIu32, p->ids[i]);
    for (size_t i = 0; i < c->id_count; i++)
        mt_json_write(out, "%" PRIu32, c->ids[i]);
    if (ended)
        mt_json_write(out, "%" PRIu32, c->stop_token);
    mt_json_write(out, "]");
}

static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    if (!mt_speech_has(&c->speech, MT_SPEECH_TEXT, true) && !mt_speech_has(&c->speech, MT_SPEECH_REASONING, true) &&
        !calls_end(&c->speech) && (a->logprobs < 0 || c->said.count == 0))
        return;
    add_head(out, a->extra, a->model);
    add_said(out, a, c, true);
    mt_json_write(out, "'done':false");
    add_logprobs(out, a, &c->said);
    mt_json_write(out, "}\n");
}

/* The last line has no text: all was written before. */
static void end(mt_answer *a, mt_buf *out)
{
    add_head(out, a->extra, a->model);
    add_silence(out, a->dialect == &mt_ollama_chat);
    add_end(out, a, &a->choices[0]);
    add_context(out, a, &a->choices[0]);
    mt_json_write(out, "}\n");
}

static void whole(mt_answer *a, mt_buf *out)
{
    const mt_choice *c = &a->choices[0];

    add_head(out, a->extra, a->model);
    add_said(out, a, c, false);
    add_end(out, a, c);
    add_context(out, a, c);
    add_logprobs(out, a, &c->said);
    mt_json_write(out, "}");
}

static void fail(mt_answer *a, const mt_failure *why, mt_buf *out)
{
    (void)a;
    mt_ollama_error(out, why);
    mt_buf_puts(out, "\n");
}

static void nothing(const mt_dialect *dialect, mt_buf *out, const mt_ask *ask, const char *model)
{
    add_head(out, ask->extra, model);
    add_silence(out, dialect == &mt_ollama_chat);
    mt_json_write(out, "'done':true,'done_reason':%s}", ask->nothing);
}

static void rendered(const mt_dialect *dialect, mt_buf *out, const mt_ask *ask, const char *model, mt_chat_text prompt,
                     size_t pictures)
{
    add_head(out, ask->extra, model);
    add_silence(out, dialect == &mt_ollama_chat);
    mt_json_write(out, "'done':false,'_debug_info':{");
    mt_json_text(out, "rendered_template", prompt.data, prompt.len);
    if (pictures > 0)
        mt_json_write(out, "'image_count':%zu", pictures);
    mt_json_write(out, "}}");
}

static bool unloads(const mt_dialect *dialect, const json_t *body)
{
    return mt_ollama_unloads(body, dialect == &mt_ollama_chat ? "messages" : "prompt");
}

#define DIALECT(reader)                                                                                        \
    .named = true, .prefix = "ollama-", .stream_type = "application/x-ndjson", .read = reader, .chunk = chunk, \
    .end = end, .whole = whole, .unloads = unloads, .nothing = nothing, .rendered = rendered, .fail = fail,    \
    .error = mt_ollama_error

/* The `idle` line has no text, so that any client can read it. */
const mt_dialect mt_ollama_chat = {.name = "ollama-chat",
                                   DIALECT(mt_ollama_read_chat),
                                   .idle = "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n"};

const mt_dialect mt_ollama_generate = {
    .name = "ollama-generate", DIALECT(mt_ollama_read_generate), .idle = "{\"response\":\"\",\"done\":false}\n"};
