/* The dialects of POST /v1beta/models/{model}:generateContent and its kin, as Google defines them: an answer is a list
   of candidates with parts, and each piece of a stream is an answer with what is new. */
#include <string.h>

#include <openssl/evp.h>

#include "api/dialect.h"
#include "api/gemini.h"
#include "api/limits.h"
#include "api/write.h"
#include "base/alloc.h"
#include "base/json_write.h"
#include "weights/limits.h"

/* The signature of the first call: clients want one, and send it back. It has all reasoning before the call. */
static void add_signature(mt_buf *out, const mt_speech *s, const mt_speech_part *call)
{
    mt_buf text = {.limit = MT_LIMIT_ANSWER_BYTES};
    unsigned char *encoded;

    mt_buf_puts(&text, MT_GEMINI_CARRIED);
    for (const mt_speech_part *part = s->at; part < call; part++) {
        if (part->kind == MT_SPEECH_CALL) {
            mt_buf_free(&text);
            return;
        }
        if (part->kind == MT_SPEECH_REASONING)
            mt_buf_add(&text, part->text.data, part->text.len);
    }
    encoded = mt_alloc(text.len / 3 * 4 + 8);
    mt_json_text(out, "thoughtSignature", (const char *)encoded,
                 (size_t)EVP_EncodeBlock(encoded, (const unsigned char *)text.data, (int)text.len));
    mt_free(encoded);
    mt_buf_free(&text);
}

static void add_call(mt_buf *out, const mt_speech *s, const mt_speech_part *call)
{
    mt_json_write(out, "{'functionCall':{'id':%s,'name':%s,'args':", call->id, call->name);
    mt_write_arguments(out, call);
    mt_json_write(out, "}");
    add_signature(out, s, call);
    mt_json_write(out, "}");
}

/* Appends a part: all of it, or (news) what was not written. A call is written once it is complete. */
static void add_part(mt_buf *out, const mt_speech *s, const mt_speech_part *part, bool news)
{
    const size_t from = news ? part->written : 0;

    if (part->kind == MT_SPEECH_CALL) {
        if (!news || (part->ended && !part->closed))
            add_call(out, s, part);
    } else if (part->text.len > from) {
        mt_json_write(out, "{");
        mt_json_text(out, "text", part->text.data + from, part->text.len - from);
        if (part->kind == MT_SPEECH_REASONING)
            mt_json_write(out, "'thought':true");
        mt_json_write(out, "}");
    }
}

/* Appends "content":{..}. Clients drop a content without parts, so one that says nothing has an empty text. */
static void add_content(mt_buf *out, const mt_choice *c, bool news)
{
    size_t before;

    mt_json_write(out, "'content':{'parts':[");
    before = out->len;
    for (size_t i = 0; i < c->speech.count; i++)
        add_part(out, &c->speech, &c->speech.at[i], news);
    if (out->len == before)
        mt_json_write(out, "{'text':''}");
    mt_json_write(out, "],'role':'model'}");
}

static void add_candidate_token(mt_buf *out, const mt_answer *a, uint32_t id, float logprob)
{
    mt_buf bytes = {.limit = MT_LIMIT_TOKEN_BYTES};

    mt_json_write(out, "{'token':");
    mt_write_token(out, a, id, &bytes);
    mt_json_write(out, "'tokenId':%u,'logProbability':", id);
    mt_write_number(out, logprob);
    mt_json_write(out, "}");
    mt_buf_free(&bytes);
}

static void add_top(mt_buf *out, const mt_answer *a, const mt_said_list *said)
{
    mt_json_write(out, "'topCandidates':[");
    for (size_t i = 0; i < said->count; i++) {
        mt_json_write(out, "{'candidates':[");
        for (size_t k = 0; k < said->at[i].top_count; k++) {
            const mt_logprob *p = &said->top[said->at[i].top_begin + k];

            add_candidate_token(out, a, p->id, p->logprob);
        }
        mt_json_write(out, "]}");
    }
    mt_json_write(out, "]");
}

/* Appends "avgLogprobs" and "logprobsResult" of the tokens that are not written yet. */
static void add_logprobs(mt_buf *out, const mt_answer *a, const mt_said_list *said)
{
    double sum = 0;

    if (a->logprobs < 0 || said->count == 0)
        return;
    for (size_t i = 0; i < said->count; i++)
        sum += (double)said->at[i].logprob;
    mt_json_write(out, "'avgLogprobs':");
    mt_write_number(out, (float)(sum / (double)said->count));
    mt_json_write(out, "'logprobsResult':{");
    if (a->logprobs > 0)
        add_top(out, a, said);
    mt_json_write(out, "'chosenCandidates':[");
    for (size_t i = 0; i < said->count; i++)
        add_candidate_token(out, a, said->at[i].id, said->at[i].logprob);
    mt_json_write(out, "]}");
}

static void add_finish(mt_buf *out, const mt_choice *c)
{
    const bool cut = c->speech.calls && !mt_speech_callable(&c->speech);
    const char *reason = c->finish == MT_FINISH_LENGTH      ? "MAX_TOKENS"
                         : c->finish == MT_FINISH_CANCELLED ? "OTHER"
                         : cut                              ? "MALFORMED_FUNCTION_CALL"
                                                            : "STOP";

    mt_json_write(out, "'finishReason':%s", reason);
    if (c->finish == MT_FINISH_CANCELLED)
        mt_json_write(out, "'finishMessage':'the request was cancelled'");
    mt_json_write(out, "'tokenCount':%zu", c->tokens);
}

static void add_candidate(mt_buf *out, const mt_answer *a, const mt_choice *c, bool news)
{
    mt_json_write(out, "{");
    add_content(out, c, news);
    if (c->done)
        add_finish(out, c);
    mt_json_write(out, "'index':%zu", c->index);
    add_logprobs(out, a, &c->said);
    mt_json_write(out, "}");
}

/* Appends what follows the candidates, and closes the answer. */
static void close_answer(mt_buf *out, const mt_answer *a)
{
    const mt_usage all = mt_answer_usage(a);

    mt_json_write(out, "],'usageMetadata':{'promptTokenCount':%zu,'candidatesTokenCount':%zu", all.prompt,
                  all.tokens - all.reasoning);
    if (all.reasoning)
        mt_json_write(out, "'thoughtsTokenCount':%zu", all.reasoning);
    if (all.cached)
        mt_json_write(out, "'cachedContentTokenCount':%zu", all.cached);
    mt_json_write(out, "'totalTokenCount':%zu},'modelVersion':%s,'responseId':%s}", all.prompt + all.tokens, a->model,
                  a->id);
}

/* Whether something of a choice is to be told: calls are, once they are complete. */
static bool has_news(const mt_answer *a, const mt_choice *c)
{
    if (c->done || (a->logprobs >= 0 && c->said.count > 0))
        return true;
    for (size_t i = 0; i < c->speech.count; i++) {
        const mt_speech_part *part = &c->speech.at[i];

        if (part->kind == MT_SPEECH_CALL ? part->ended && !part->closed : part->written < part->text.len)
            return true;
    }
    return false;
}

static void add_chunk(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    mt_json_write(out, "{'candidates':[");
    add_candidate(out, a, c, true);
    close_answer(out, a);
}

static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    if (!has_news(a, c))
        return;
    mt_buf_puts(out, "data: ");
    add_chunk(out, a, c);
    mt_buf_puts(out, "\n\n");
}

/* The last piece of a choice said that it is done. */
static void end(mt_answer *a, mt_buf *out)
{
    (void)a;
    (void)out;
}

static void fail(mt_answer *a, const mt_failure *why, mt_buf *out)
{
    (void)a;
    mt_buf_puts(out, "data: ");
    mt_gemini_error(out, why);
    mt_buf_puts(out, "\n\n");
}

/* Without "alt=sse" a stream is one list, whose elements come one after the other. */
static void begin_element(mt_answer *a, mt_buf *out)
{
    mt_buf_puts(out, a->events++ ? ",\n" : "[");
}

static void list_chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    if (!has_news(a, c))
        return;
    begin_element(a, out);
    add_chunk(out, a, c);
}

static void list_end(mt_answer *a, mt_buf *out)
{
    (void)a;
    mt_buf_puts(out, "]\n");
}

static void list_fail(mt_answer *a, const mt_failure *why, mt_buf *out)
{
    begin_element(a, out);
    mt_gemini_error(out, why);
    mt_buf_puts(out, "]\n");
}

static void whole(mt_answer *a, mt_buf *out)
{
    mt_json_write(out, "{'candidates':[");
    for (size_t i = 0; i < a->choice_count; i++)
        add_candidate(out, a, &a->choices[i], false);
    close_answer(out, a);
}

void mt_gemini_error(mt_buf *out, const mt_failure *why)
{
    static const struct {
        int status;
        const char *name;
    } names[] = {{401, "UNAUTHENTICATED"},    {403, "PERMISSION_DENIED"}, {404, "NOT_FOUND"},
                 {405, "UNIMPLEMENTED"},      {408, "DEADLINE_EXCEEDED"}, {409, "ABORTED"},
                 {429, "RESOURCE_EXHAUSTED"}, {503, "UNAVAILABLE"},       {504, "DEADLINE_EXCEEDED"}};
    const char *name = why->status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT";

    for (size_t i = 0; i < MT_COUNT(names); i++)
        if (names[i].status == why->status)
            name = names[i].name;
    mt_json_write(out, "{'error':{'code':%d,'message':%s,'status':%s", why->status, why->text, name);
    if (why->code)
        mt_json_write(out,
                      "'details':[{'@type':'type.googleapis.com/google.rpc.ErrorInfo','reason':%s,'domain':'motet'}]",
                      why->code);
    mt_json_write(out, "}}");
}

static void count(mt_buf *out, size_t tokens)
{
    mt_json_write(out, "{'totalTokens':%zu}", tokens);
}

#define SILENCE "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"index\":0}]}"

const mt_dialect mt_gemini_generate = {
    .name = "gemini", .prefix = "gemini-", .read = mt_gemini_read, .whole = whole, .error = mt_gemini_error};

/* The `idle` event has no text, so that any client can read it: some know no comments. */
const mt_dialect mt_gemini_stream = {.name = "gemini-stream",
                                     .prefix = "gemini-",
                                     .read = mt_gemini_read_stream,
                                     .chunk = chunk,
                                     .end = end,
                                     .fail = fail,
                                     .error = mt_gemini_error,
                                     .idle = "data: " SILENCE "\n\n"};

const mt_dialect mt_gemini_list = {.name = "gemini-list",
                                   .prefix = "gemini-",
                                   .stream_type = "application/json",
                                   .read = mt_gemini_read_stream,
                                   .chunk = list_chunk,
                                   .end = list_end,
                                   .fail = list_fail,
                                   .error = mt_gemini_error,
                                   .idle = "\n"};

const mt_dialect mt_gemini_count = {.name = "gemini-count",
                                    .prefix = "gemini-",
                                    .read = mt_gemini_read_count,
                                    .error = mt_gemini_error,
                                    .count = count};
