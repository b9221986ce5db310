/* Writes what LM Studio's SDKs get over their WebSocket: results of calls, and an answer as packets of a channel. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/lmstudio_socket.h"
#include "api/write.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "weights/limits.h"

/* Bits of a weight, as the name of a quantisation has them; 0: it has none. */
static int bits_of(const char *quantisation)
{
    const char *digit = quantisation;

    while (*digit && !isdigit((unsigned char)*digit))
        digit++;
    return (int)strtol(digit, NULL, 10);
}

void mt_lmstudio_model_write(mt_buf *out, const mt_lmstudio_model *m)
{
    const int bits = bits_of(m->quantisation);
    const char *slash = strchr(m->name, '/');

    mt_json_write(out,
                  "{'type':%s,'modelKey':%s,'format':%s,'displayName':%s,'path':%s,'sizeBytes':%" PRIu64
                  ",'architecture':%s,'maxContextLength':%" PRId64,
                  m->encoder ? "embedding" : "llm", m->name, m->gguf ? "gguf" : "safetensors", m->name, m->name,
                  m->bytes, m->family, m->longest);
    mt_json_text(out, "publisher", m->name, slash ? (size_t)(slash - m->name) : 0);
    mt_json_write(out, "'indexedModelIdentifier':%s,'deviceIdentifier':null", m->name);
    if (*m->size)
        mt_json_write(out, "'paramsString':%s", m->size);
    if (bits)
        mt_json_write(out, "'quantization':{'name':%s,'bits':%d}", m->quantisation, bits);
    if (!m->encoder)
        mt_json_write(out, "'vision':%hhd,'trainedForToolUse':%hhd", m->vision, m->tools);
    if (m->context)
        mt_json_write(out,
                      "'identifier':%s,'instanceReference':%s,'contextLength':%" PRId64 ",'ttlMs':null,"
                      "'lastUsedTime':null",
                      m->name, m->name, m->context);
    mt_json_write(out, "}");
}

void mt_lmstudio_result(mt_buf *out, const json_t *body)
{
    mt_json_write(out, "{'type':'rpcResult','callId':%lld,'result':{",
                  (long long)json_integer_value(json_object_get(body, "callId")));
}

void mt_lmstudio_packet(mt_buf *out, const json_t *body)
{
    mt_json_write(out, "{'type':'channelSend','channelId':%lld,'message':{",
                  (long long)json_integer_value(json_object_get(body, "channelId")));
}

void mt_lmstudio_close(mt_buf *out, const json_t *body)
{
    mt_json_write(out, "{'type':'channelClose','channelId':%lld}\n",
                  (long long)json_integer_value(json_object_get(body, "channelId")));
}

void mt_lmstudio_error(mt_buf *out, const mt_failure *why)
{
    mt_json_write(out, "{'title':%s}", why->text);
}

static long long number_of(const mt_answer *a)
{
    return (long long)json_integer_value(json_object_get(a->extra, "number"));
}

static void open_packet(mt_buf *out, const mt_answer *a, const char *type)
{
    mt_json_write(out, "{'type':'channelSend','channelId':%lld,'message':{'type':%s", number_of(a), type);
}

static void close_packet(mt_buf *out)
{
    mt_buf_puts(out, "}}\n");
}

/* The client is told what is not looked at, and that the prompt is computed. */
static void begin(mt_answer *a, mt_choice *c, mt_buf *out)
{
    const char *ignored = json_string_value(json_object_get(a->extra, "ignored"));

    (void)c;
    if (ignored) {
        mt_json_write(out, "{'type':'communicationWarning','warning':%s}", ignored);
        mt_buf_puts(out, "\n");
    }
    open_packet(out, a, "promptProcessingProgress");
    mt_json_write(out, "'progress':1");
    close_packet(out);
}

/* Appends "logprobs":[[{"text","logprob"}, ...], ...] of the tokens that are not written yet. */
static void add_logprobs(mt_buf *out, const mt_answer *a, const mt_said_list *said)
{
    mt_buf bytes = {.limit = MT_LIMIT_TOKEN_BYTES};

    mt_json_write(out, "'logprobs':[");
    for (size_t i = 0; i < said->count; i++) {
        const size_t count = said->at[i].top_count;

        mt_json_write(out, "[");
        for (size_t k = 0; k < (count ? count : 1); k++) {
            const mt_logprob *top = count ? &said->top[said->at[i].top_begin + k] : NULL;

            mt_json_write(out, "{'text':");
            mt_write_token(out, a, top ? top->id : said->at[i].id, &bytes);
            mt_json_write(out, "'logprob':");
            mt_write_number(out, top ? top->logprob : said->at[i].logprob);
            mt_json_write(out, "}");
        }
        mt_json_write(out, "]");
    }
    mt_json_write(out, "]");
    mt_buf_free(&bytes);
}

/* A piece of text. The tokens that came since the last one are counted with it. */
static void add_fragment(mt_buf *out, mt_answer *a, const mt_choice *c, const mt_speech_part *part)
{
    const size_t from = part ? part->written : 0;

    open_packet(out, a, "fragment");
    mt_json_write(out, "'fragment':{");
    mt_json_text(out, "content", part ? part->text.data + from : "", part ? part->text.len - from : 0);
    mt_json_write(out, "'tokensCount':%zu,'containsDrafted':false,'reasoningType':%s,'isStructural':false}",
                  c->tokens - a->events, part && part->kind == MT_SPEECH_REASONING ? "reasoning" : "none");
    if (a->logprobs >= 0 && a->events < c->tokens)
        add_logprobs(out, a, &c->said);
    close_packet(out);
    a->events = c->tokens;
}

static void end_call(mt_buf *out, const mt_answer *a, const mt_speech_part *part)
{
    if (part->cut) {
        open_packet(out, a, "toolCallGenerationFailed");
        mt_json_write(out, "'error':{'title':'the call is incomplete'}");
        mt_json_text(out, "rawContent", part->text.data, part->text.len);
    } else {
        open_packet(out, a, "toolCallGenerationEnd");
        mt_json_write(out, "'toolCallRequest':{'id':%s,'type':'function','name':%s,'arguments':", part->id, part->name);
        mt_write_arguments(out, part);
        mt_json_write(out, "}");
    }
    close_packet(out);
}

static void add_call(mt_buf *out, const mt_answer *a, const mt_speech_part *part)
{
    if (!part->told) {
        open_packet(out, a, "toolCallGenerationStart");
        mt_json_write(out, "'toolCallId':%s", part->id);
        close_packet(out);
        open_packet(out, a, "toolCallGenerationNameReceived");
        mt_json_write(out, "'name':%s", part->name);
        close_packet(out);
    }
    if (part->text.len > part->written) {
        open_packet(out, a, "toolCallGenerationArgumentFragmentGenerated");
        mt_json_text(out, "content", part->text.data + part->written, part->text.len - part->written);
        close_packet(out);
    }
    if (part->ended && !part->closed)
        end_call(out, a, part);
}

static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    for (size_t i = 0; i < c->speech.count; i++) {
        const mt_speech_part *part = &c->speech.at[i];

        if (part->kind == MT_SPEECH_CALL)
            add_call(out, a, part);
        else if (part->text.len > part->written)
            add_fragment(out, a, c, part);
    }
    if (a->logprobs >= 0 && a->events < c->tokens)
        add_fragment(out, a, c, NULL);
}

static void add_stats(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    const mt_usage all = mt_answer_usage(a);
    const double spoke = (double)c->spoke * 1e-9;

    mt_json_write(out,
                  "'stats':{'stopReason':%s,'tokensPerSecond':%.3f,'timeToFirstTokenSec':%.3f,'totalTimeSec':%.3f,"
                  "'promptTokensCount':%zu,'predictedTokensCount':%zu,'totalTokensCount':%zu",
                  mt_lmstudio_stop(a, c), spoke > 0 && c->tokens > 1 ? (double)(c->tokens - 1) / spoke : 0,
                  (double)c->waited * 1e-9, (double)(mt_clock_ns() - a->began) * 1e-9, all.prompt, all.tokens,
                  all.prompt + all.tokens);
    if (c->guessed)
        mt_json_write(out, "'totalDraftTokensCount':%zu,'acceptedDraftTokensCount':%zu,'rejectedDraftTokensCount':%zu",
                      c->guessed, c->taken, c->guessed - c->taken);
    mt_json_write(out, "}");
}

static void end(mt_answer *a, mt_buf *out)
{
    const mt_lmstudio_model model = {.name = a->model,
                                     .family = a->about.family,
                                     .size = a->about.size,
                                     .quantisation = a->about.quantisation,
                                     .bytes = a->about.bytes,
                                     .context = (int64_t)a->about.context,
                                     .longest = a->about.longest,
                                     .gguf = a->about.gguf,
                                     .vision = a->about.vision,
                                     .tools = a->about.tools};

    open_packet(out, a, "success");
    add_stats(out, a, &a->choices[0]);
    mt_json_write(out, "'modelInfo':");
    mt_lmstudio_model_write(out, &model);
    mt_json_write(out,
                  "'loadModelConfig':{'fields':[{'key':'llm.load.contextLength','value':%zu}]},"
                  "'predictionConfig':{'fields':[]}",
                  a->about.context);
    close_packet(out);
    mt_json_write(out, "{'type':'channelClose','channelId':%lld}\n", number_of(a));
}

static void fail(mt_answer *a, const mt_failure *why, mt_buf *out)
{
    mt_json_write(out, "{'type':'channelError','channelId':%lld,'error':", number_of(a));
    mt_lmstudio_error(out, why);
    mt_buf_puts(out, "}\n");
}

/* What mt_dialect.more is for other dialects, this one writes itself: it only says that it wants to know the model. */
static void more(mt_buf *out, const mt_answer *a)
{
    (void)out, (void)a;
}

const mt_dialect mt_lmstudio_predict = {.name = "lmstudio-predict",
                                        .prefix = "pred-",
                                        .read = mt_lmstudio_read,
                                        .model = mt_lmstudio_named,
                                        .begin = begin,
                                        .chunk = chunk,
                                        .end = end,
                                        .fail = fail,
                                        .more = more,
                                        .error = mt_lmstudio_error,
                                        .lines = true,
                                        .idle = "\n"};

/* applyPromptTemplate */
static bool read_template(mt_ask *ask, mt_failure *why)
{
    ask->renders = true;
    return mt_lmstudio_read(ask, why);
}

static void rendered(const mt_dialect *dialect, mt_buf *out, const mt_ask *ask, const char *model, mt_chat_text prompt,
                     size_t pictures)
{
    (void)dialect, (void)model, (void)pictures;
    mt_json_write(out, "{'type':'rpcResult','callId':%lld,'result':{",
                  (long long)json_integer_value(json_object_get(ask->extra, "number")));
    mt_json_text(out, "formatted", prompt.data, prompt.len);
    mt_json_write(out, "}}");
}

const mt_dialect mt_lmstudio_template = {.name = "lmstudio-template",
                                         .prefix = "tmpl-",
                                         .read = read_template,
                                         .model = mt_lmstudio_named,
                                         .rendered = rendered,
                                         .error = mt_lmstudio_error};

/* embedString */
static bool read_string(mt_ask *ask, mt_failure *why)
{
    const json_t *text = mt_body_get(mt_lmstudio_parameter(ask->body), "inputString"),
                 *name = mt_lmstudio_named(ask->body), *number = mt_body_get(ask->body, "callId");
    json_t *body = json_object();

    if (name)
        json_object_set_new(body, "model", mt_body_share(name));
    if (text)
        json_object_set_new(body, "input", mt_body_share(text));
    ask->body = mt_ask_own(ask, body);
    if (!mt_openai_embeddings.read(ask, why))
        return false;
    json_object_set_new(ask->extra, "number", mt_body_share(number));
    return true;
}

static void whole(mt_answer *a, mt_buf *out)
{
    const size_t count = mt_answer_embedding(a, &a->choices[0]);

    mt_json_write(out, "{'type':'rpcResult','callId':%lld,'result':{'embedding':", number_of(a));
    mt_write_floats(out, a->choices[0].vector, count);
    mt_json_write(out, "}}");
}

const mt_dialect mt_lmstudio_embed = {.name = "lmstudio-embed",
                                      .prefix = "embd-",
                                      .vectors = true,
                                      .read = read_string,
                                      .model = mt_lmstudio_named,
                                      .whole = whole,
                                      .error = mt_lmstudio_error};

/* Dialects of calls that a preparation thread answers without the engine, for example the list of loaded models: of the
   namespace of text models, and of that of embedding models. */
const mt_dialect mt_lmstudio_call = {
    .name = "lmstudio-call", .prefix = "call-", .model = mt_lmstudio_named, .error = mt_lmstudio_error};
const mt_dialect mt_lmstudio_vectors = {.name = "lmstudio-call",
                                        .prefix = "call-",
                                        .vectors = true,
                                        .model = mt_lmstudio_named,
                                        .error = mt_lmstudio_error};
