/* The dialects of POST /completion and POST /infill, as llama.cpp's server has them: an answer is an object, a list of
   them where there are several choices; a stream has one for each piece and one for the end of each choice, and no
   [DONE]. */
#include <string.h>

#include "api/dialect.h"
#include "api/llama.h"
#include "api/openai.h"
#include "api/write.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "weights/limits.h"

/* Appends "tokens": the ids of the tokens that no earlier event had. The list is empty where the request did not ask
   for ids, and in the last event of a stream, which repeats nothing. */
static void add_tokens(mt_buf *out, const mt_answer *a, const mt_choice *c, bool last)
{
    const bool wanted = a->form.return_token_ids && !(last && a->form.stream);

    mt_json_write(out, "'tokens':[");
    for (size_t i = 0; wanted && i < c->said.count; i++)
        mt_json_write(out, "%u", (unsigned)c->said.at[i].id);
    mt_json_write(out, "]");
}

/* Opens {"id":..,"token":..,"bytes":[..],"logprob":.. */
static void open_prob(mt_buf *out, const mt_answer *a, uint32_t id, float logprob, mt_buf *bytes)
{
    mt_json_write(out, "{'id':%u,'token':", (unsigned)id);
    mt_write_token(out, a, id, bytes);
    mt_json_write(out, "'bytes':[");
    for (size_t i = 0; i < bytes->len; i++)
        mt_json_write(out, "%u", (unsigned)(unsigned char)bytes->data[i]);
    mt_json_write(out, "],'logprob':");
    mt_write_number(out, logprob);
}

static void add_probs(mt_buf *out, const mt_answer *a, const mt_said_list *said)
{
    mt_buf bytes = {.limit = MT_LIMIT_TOKEN_BYTES};

    if (a->logprobs < 0 || said->count == 0)
        return;
    mt_json_write(out, "'completion_probabilities':[");
    for (size_t i = 0; i < said->count; i++) {
        const mt_said *s = &said->at[i];

        open_prob(out, a, s->id, s->logprob, &bytes);
        mt_json_write(out, "'top_logprobs':[");
        for (size_t k = 0; k < s->top_count; k++) {
            open_prob(out, a, said->top[s->top_begin + k].id, said->top[s->top_begin + k].logprob, &bytes);
            mt_json_write(out, "}");
        }
        mt_json_write(out, "]}");
    }
    mt_json_write(out, "]");
    mt_buf_free(&bytes);
}

static const char *stop_type(const mt_choice *c)
{
    return c->finish == MT_FINISH_LENGTH ? "limit" : c->finish != MT_FINISH_STOP ? "none" : c->stop ? "word" : "eos";
}

/* Whether the answer ended because the context was full. */
static bool is_truncated(const mt_answer *a, const mt_choice *c)
{
    const json_int_t wanted = json_integer_value(json_object_get(a->extra, "n_predict"));

    return c->finish == MT_FINISH_LENGTH && !c->repeated && (wanted < 0 || c->tokens < (size_t)wanted);
}

static bool has_line(const mt_choice *c)
{
    for (size_t i = 0; i < c->speech.count; i++)
        if (c->speech.at[i].text.len && memchr(c->speech.at[i].text.data, '\n', c->speech.at[i].text.len))
            return true;
    return false;
}

/* A choice that is done; in a stream, without its text, which was written before. */
static void add_whole(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    const mt_answer_prompt *prompt = &a->prompts[c->prompt];

    mt_json_write(out, "{'index':%zu", c->index);
    if (a->form.stream)
        mt_json_write(out, "'content':''");
    else
        mt_speech_write(out, "content", &c->speech, MT_SPEECH_TEXT, false);
    add_tokens(out, a, c, true);
    mt_json_write(out,
                  "'id_slot':-1,'stop':true,'model':%s,'tokens_predicted':%zu,'tokens_evaluated':%zu,"
                  "'generation_settings':",
                  a->model, c->tokens, prompt->count);
    mt_json_tree_write(out, a->extra);
    mt_json_text(out, "prompt", prompt->echo.data, prompt->echo.len);
    mt_json_write(out, "'has_new_line':%hhd,'truncated':%hhd,'stop_type':%s", has_line(c), is_truncated(a, c),
                  stop_type(c));
    mt_json_text(out, "stopping_word", c->stop ? c->stop : "", c->stop ? c->stop_len : 0);
    mt_json_write(out, "'tokens_cached':%zu", c->cached);
    mt_write_choice_timings(out, a, c);
    if (!a->form.stream)
        add_probs(out, a, &c->said);
    mt_json_write(out, "}");
}

static void add_piece(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    mt_json_write(out, "data: {'index':%zu", c->index);
    mt_speech_write(out, "content", &c->speech, MT_SPEECH_TEXT, true);
    add_tokens(out, a, c, false);
    mt_json_write(out, "'stop':false,'id_slot':-1,'tokens_predicted':%zu,'tokens_evaluated':%zu", c->tokens,
                  a->prompts[c->prompt].count);
    if (a->form.timings_each)
        mt_write_choice_timings(out, a, c);
    add_probs(out, a, &c->said);
    mt_json_write(out, "}\n\n");
}

static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    if (!c->done || c->said.count || mt_speech_has(&c->speech, MT_SPEECH_TEXT, true))
        add_piece(out, a, c);
    if (c->done) {
        mt_buf_puts(out, "data: ");
        add_whole(out, a, c);
        mt_buf_puts(out, "\n\n");
    }
}

static void end(mt_answer *a, mt_buf *out)
{
    (void)a, (void)out;
}

static void whole(mt_answer *a, mt_buf *out)
{
    const bool many = a->choice_count > 1;

    if (many)
        mt_json_write(out, "[");
    for (size_t i = 0; i < a->choice_count; i++)
        add_whole(out, a, &a->choices[i]);
    if (many)
        mt_json_write(out, "]");
}

static void fail(mt_answer *a, const mt_failure *why, mt_buf *out)
{
    (void)a;
    mt_buf_puts(out, "data: ");
    mt_failure_write(out, why);
    mt_buf_puts(out, "\n\n");
}

#define DIALECT                                                                                             \
    .prefix = "cmpl-", .chunk = chunk, .end = end, .whole = whole, .fail = fail, .error = mt_failure_write, \
    .idle = MT_OPENAI_IDLE

const mt_dialect mt_llama_completion = {.name = "llama-completion", .read = mt_llama_read_completion, DIALECT};
const mt_dialect mt_llama_infill = {.name = "llama-infill", .read = mt_llama_read_infill, DIALECT};
