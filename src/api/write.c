/* See write.h. */
#include "api/write.h"

#include <inttypes.h>
#include <math.h>

#include <openssl/evp.h>

#include "base/alloc.h"
#include "base/json_reader.h"
#include "base/json_write.h"
#include "chat/chat.h"
#include "weights/limits.h"

void mt_write_number(mt_buf *out, float value)
{
    if (isfinite(value))
        mt_json_write(out, "%.9g", (double)value);
    else
        mt_json_write(out, value > 0 ? "9999.0" : "-9999.0");
}

void mt_write_floats(mt_buf *out, const float *values, size_t count)
{
    mt_json_write(out, "[");
    for (size_t i = 0; i < count; i++)
        mt_write_number(out, values[i]);
    mt_json_write(out, "]");
}

void mt_write_base64(mt_buf *out, const float *values, size_t count)
{
    const size_t bytes = count * sizeof(*values);
    unsigned char *text = mt_alloc(bytes / 3 * 4 + 8);
    const int len = EVP_EncodeBlock(text, (const unsigned char *)values, (int)bytes);

    mt_json_text(out, NULL, (const char *)text, (size_t)len);
    mt_free(text);
}

void mt_write_ids(mt_buf *out, const char *key, const uint32_t *ids, size_t count)
{
    mt_json_write(out, "%s:[", key);
    for (size_t i = 0; i < count; i++)
        mt_json_write(out, "%" PRIu32, ids[i]);
    mt_json_write(out, "]");
}

void mt_write_said_ids(mt_buf *out, const mt_said_list *said)
{
    mt_json_write(out, "'token_ids':[");
    for (size_t i = 0; i < said->count; i++)
        mt_json_write(out, "%" PRIu32, said->at[i].id);
    mt_json_write(out, "]");
}

void mt_write_token(mt_buf *out, const mt_answer *answer, uint32_t id, mt_buf *bytes)
{
    bytes->len = 0;
    if (!answer->tokenizer || answer->form.tokens_as_ids)
        mt_buf_printf(bytes, "token_id:%" PRIu32, id);
    else
        mt_tokenizer_bytes(answer->tokenizer, id, bytes);
    mt_json_text(out, NULL, bytes->data, bytes->len);
}

/* Opens {"token":...,"logprob":...,"bytes":[...]. */
static void open_logprob(mt_buf *out, const mt_answer *answer, uint32_t id, float logprob, mt_buf *bytes)
{
    mt_json_write(out, "{'token':");
    mt_write_token(out, answer, id, bytes);
    mt_json_write(out, "'logprob':");
    mt_write_number(out, logprob);
    mt_json_write(out, "'bytes':[");
    for (size_t i = 0; i < bytes->len; i++)
        mt_json_write(out, "%u", (unsigned)(unsigned char)bytes->data[i]);
    mt_json_write(out, "]");
}

static bool is_among(const mt_said_list *said, const mt_said *token)
{
    for (size_t i = 0; i < token->top_count; i++)
        if (said->top[token->top_begin + i].id == token->id)
            return true;
    return false;
}

/* Beside tokens that the client has named stands the chosen one, as in vLLM. */
void mt_write_logprobs(mt_buf *out, const mt_answer *answer, const mt_said_list *said, const mt_said *token)
{
    mt_buf bytes = {.limit = MT_LIMIT_TOKEN_BYTES};

    open_logprob(out, answer, token->id, token->logprob, &bytes);
    mt_json_write(out, "'top_logprobs':[");
    if (answer->listed && !is_among(said, token)) {
        open_logprob(out, answer, token->id, token->logprob, &bytes);
        mt_json_write(out, "}");
    }
    for (size_t i = 0; i < token->top_count; i++) {
        const mt_logprob *p = &said->top[token->top_begin + i];

        open_logprob(out, answer, p->id, p->logprob, &bytes);
        mt_json_write(out, "}");
    }
    mt_json_write(out, "]}");
    mt_buf_free(&bytes);
}

void mt_write_logprob_list(mt_buf *out, const mt_answer *answer, const mt_said_list *said)
{
    mt_json_write(out, "[");
    for (size_t i = 0; i < said->count; i++)
        mt_write_logprobs(out, answer, said, &said->at[i]);
    mt_json_write(out, "]");
}

void mt_write_arguments(mt_buf *out, const mt_speech_part *call)
{
    if (mt_json_is_object(call->text.data, call->text.len))
        mt_buf_add(out, call->text.data, call->text.len);
    else {
        mt_json_write(out, "{");
        mt_json_text(out, MT_CHAT_BROKEN, call->text.data, call->text.len);
        mt_json_write(out, "}");
    }
}

void mt_write_usage(mt_buf *out, const mt_answer *answer)
{
    const mt_usage all = mt_answer_usage(answer);

    mt_json_write(out,
                  "'usage':{'prompt_tokens':%zu,'total_tokens':%zu,'completion_tokens':%zu,"
                  "'prompt_tokens_details':{'cached_tokens':%zu}",
                  all.prompt, all.prompt + all.tokens, all.tokens, all.cached);
    if (answer->choices[0].parser)
        mt_json_write(out, "'completion_tokens_details':{'reasoning_tokens':%zu}", all.reasoning);
    mt_json_write(out, "}");
}

static double per_second(size_t count, uint64_t ns)
{
    return ns > 0 ? (double)count * 1e9 / (double)ns : 0;
}

void mt_write_timings(mt_buf *out, const mt_answer *answer)
{
    if (answer->form.timings && answer->choices[0].done)
        mt_write_choice_timings(out, answer, &answer->choices[0]);
}

void mt_write_choice_timings(mt_buf *out, const mt_answer *answer, const mt_choice *c)
{
    const size_t computed = answer->prompts[c->prompt].count - c->cached;

    mt_json_write(out,
                  "'timings':{'cache_n':%zu,'prompt_n':%zu,'prompt_ms':%.3f,'prompt_per_second':%.3f,"
                  "'predicted_n':%zu,'predicted_ms':%.3f,'predicted_per_second':%.3f,"
                  "'draft_n':%zu,'draft_n_accepted':%zu}",
                  c->cached, computed, (double)c->waited * 1e-6, per_second(computed, c->waited), c->tokens,
                  (double)c->spoke * 1e-6, per_second(c->tokens > 0 ? c->tokens - 1 : 0, c->spoke), c->guessed,
                  c->taken);
}

/* Whether a token is one of the model's own ends. */
static bool is_end(const mt_answer *answer, uint32_t token)
{
    for (size_t i = 0; i < answer->eos_count; i++)
        if (answer->eos[i] == token)
            return true;
    return token == MT_TOKEN_NONE;
}

/* SGLang's name for what ended the answer: as stop_reason, but with the id of the model's own end, too. */
static void write_matched_stop(mt_buf *out, const mt_choice *choice)
{
    if (choice->stop)
        mt_json_text(out, "matched_stop", choice->stop, choice->stop_len);
    else if (choice->finish == MT_FINISH_STOP && choice->stop_token != MT_TOKEN_NONE)
        mt_json_write(out, "'matched_stop':%" PRIu32, choice->stop_token);
    else
        mt_json_write(out, "'matched_stop':null");
}

/* The stop string or stop token's id of the request; null where the model ended by itself. */
static void write_stop_reason(mt_buf *out, const mt_answer *answer, const mt_choice *choice)
{
    if (choice->stop)
        mt_json_text(out, "stop_reason", choice->stop, choice->stop_len);
    else if (choice->repeated)
        mt_json_write(out, "'stop_reason':'repetition'");
    else if (is_end(answer, choice->stop_token))
        mt_json_write(out, "'stop_reason':null");
    else
        mt_json_write(out, "'stop_reason':%" PRIu32, choice->stop_token);
}

void mt_write_finish(mt_buf *out, const mt_answer *answer, const mt_choice *choice)
{
    const char *reason = !choice->done                           ? NULL
                         : choice->finish == MT_FINISH_CANCELLED ? "abort"
                         : choice->finish != MT_FINISH_STOP      ? mt_finish_name(choice->finish)
                         : !mt_speech_callable(&choice->speech)  ? "stop"
                         : answer->form.old_calls                ? "function_call"
                                                                 : "tool_calls";

    mt_json_write(out, "'finish_reason':%s", reason);
    if (choice->done) {
        write_stop_reason(out, answer, choice);
        write_matched_stop(out, choice);
    }
}

static void add_prompt_logprob(mt_buf *out, const mt_answer *answer, const mt_logprob *p, size_t rank, mt_buf *bytes)
{
    mt_json_write(out, "'%" PRIu32 "':{'logprob':", p->id);
    mt_write_number(out, p->logprob);
    mt_json_write(out, "'rank':%zu,'decoded_token':", rank);
    mt_write_token(out, answer, p->id, bytes);
    mt_json_write(out, "}");
}

/* The token itself, then the most likely ones, each once. */
static void add_position(mt_buf *out, const mt_answer *answer, const mt_said_list *said, const mt_said *s,
                         mt_buf *bytes)
{
    const mt_logprob *top = s->top_count ? said->top + s->top_begin : NULL;

    mt_json_write(out, "{");
    add_prompt_logprob(out, answer, &(mt_logprob){.id = s->id, .logprob = s->logprob}, s->rank, bytes);
    for (size_t i = 0; i < s->top_count; i++)
        if (top[i].id != s->id)
            add_prompt_logprob(out, answer, &top[i], i + 1, bytes);
    mt_json_write(out, "}");
}

void mt_write_prompt_logprobs(mt_buf *out, const mt_answer *answer, const mt_said_list *said)
{
    mt_buf bytes = {.limit = MT_LIMIT_TOKEN_BYTES};

    mt_json_write(out, "'prompt_logprobs':[");
    for (size_t i = 0; i < said->count; i++)
        if (said->at[i].has_logprob)
            add_position(out, answer, said, &said->at[i], &bytes);
        else
            mt_json_write(out, "null");
    mt_json_write(out, "]");
    mt_buf_free(&bytes);
}
