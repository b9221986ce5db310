/* The dialect of POST /v1/completions, as OpenAI defines it and vLLM extends it. */
#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/fields.h"
#include "api/lmstudio.h"
#include "api/openai.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "sample/limits.h"
#include "weights/limits.h"

static const mt_field fields[] = {
    MT_FIELD_INT_ROW("logprobs", sampling.logprobs, 0, MT_LIMIT_TOP_LOGPROBS),
    MT_FIELD_OTHER_ROW("logprob_token_ids", mt_read_logprob_ids),
    MT_FIELD_BOOL_ROW("echo", form.echo),
    MT_FIELD_BOOL_ROW("add_special_tokens", add_special_tokens),
    MT_FIELD_REFUSED_ROW("thinking_token_budget", -1),
};

static bool read_fields(mt_ask *ask, mt_failure *why)
{
    static const char *const elsewhere[] = {"prompt", "suffix", NULL};
    const mt_field_table tables[] = {mt_fields_common, {fields, MT_COUNT(fields)}, mt_fields_refused};

    return mt_fields_read(ask, tables, MT_COUNT(tables), elsewhere, NULL, why);
}

/* OpenAI's default of max_tokens is 16, unless the operator sets another. */
static bool read(mt_ask *ask, mt_failure *why)
{
    if (!read_fields(ask, why))
        return false;
    if (ask->default_max_tokens == 0)
        ask->default_max_tokens = 16;
    return mt_openai_prompts_read(ask, "prompt", json_object_get(ask->body, "prompt"), why) &&
           mt_openai_suffix_read(ask, mt_body_get(ask->body, "suffix"), why);
}

/* The parallel lists of a logprobs object are written from these. */
typedef struct lists {
    const mt_answer *answer;
    const mt_said_list *list[2]; /* of the prompt (NULL: not echoed), and of the choice */
    mt_buf bytes;                /* scratch for the bytes of a token */
} lists;

/* Appends "key":[..] with what `write` appends for each token. */
static void each(lists *l, mt_buf *out, const char *key,
                 void (*write)(lists *l, const mt_said_list *list, const mt_said *s, mt_buf *out))
{
    mt_json_write(out, "%s:[", key);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; l->list[k] && i < l->list[k]->count; i++)
            write(l, l->list[k], &l->list[k]->at[i], out);
    mt_json_write(out, "]");
}

/* Tokens are keys of objects here, so parts of characters must not all become U+FFFD: they are written as "bytes:\xNN",
   as OpenAI does it. */
static void add_token(lists *l, uint32_t id, mt_buf *out)
{
    const size_t begin = out->len;

    mt_write_token(out, l->answer, id, &l->bytes);
    for (size_t at = 0, len; at < l->bytes.len; at += len) {
        len = mt_utf8_length(l->bytes.data + at, l->bytes.len - at);
        if (len > 0)
            continue;
        out->len = begin;
        mt_json_write(out, "'bytes:");
        for (size_t i = 0; i < l->bytes.len; i++)
            mt_buf_printf(out, "\\\\x%02x", (unsigned)(unsigned char)l->bytes.data[i]);
        mt_buf_puts(out, "\"");
        return;
    }
}

static void write_token(lists *l, const mt_said_list *list, const mt_said *s, mt_buf *out)
{
    (void)list;
    add_token(l, s->id, out);
}

static void write_logprob(lists *l, const mt_said_list *list, const mt_said *s, mt_buf *out)
{
    (void)l;
    (void)list;
    if (s->has_logprob)
        mt_write_number(out, s->logprob);
    else
        mt_json_write(out, "null");
}

static void add_top(lists *l, uint32_t id, float logprob, mt_buf *out)
{
    add_token(l, id, out);
    mt_json_write(out, ":");
    mt_write_number(out, logprob);
}

/* The chosen token, and the most likely ones. */
static void write_top(lists *l, const mt_said_list *list, const mt_said *s, mt_buf *out)
{
    if (!s->has_logprob) {
        mt_json_write(out, "null");
        return;
    }
    mt_json_write(out, "{");
    add_top(l, s->id, s->logprob, out);
    for (size_t i = 0; i < s->top_count; i++) {
        const mt_logprob *p = &list->top[s->top_begin + i];

        if (p->id != s->id)
            add_top(l, p->id, p->logprob, out);
    }
    mt_json_write(out, "}");
}

static size_t count_characters(const mt_buf *text)
{
    size_t count = 0;

    for (size_t i = 0; i < text->len; i++)
        count += ((unsigned char)text->data[i] & 0xC0) != 0x80; /* other bytes go on with a character of UTF-8 */
    return count;
}

/* Where each token begins in the text, in characters; continues from chunk to chunk. */
static void add_offsets(lists *l, mt_choice *c, mt_buf *out)
{
    mt_buf scratch = {.limit = 8 * (size_t)MT_LIMIT_TOKEN_BYTES};

    mt_json_write(out, "'text_offset':[");
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; l->list[k] && i < l->list[k]->count; i++) {
            mt_json_write(out, "%zu", c->offset);
            scratch.len = 0;
            mt_write_token(&scratch, l->answer, l->list[k]->at[i].id, &l->bytes);
            c->offset += count_characters(&l->bytes);
        }
    mt_json_write(out, "]");
    mt_buf_free(&scratch);
}

static void add_logprobs(mt_buf *out, const mt_answer *a, mt_choice *c, const mt_said_list *prompt)
{
    lists l = {.answer = a, .list = {prompt, &c->said}};

    if (a->logprobs < 0 || (a->form.stream && c->said.count == 0 && !(prompt && prompt->count))) {
        mt_json_write(out, "'logprobs':null");
        return;
    }
    mt_buf_init(&l.bytes, MT_LIMIT_TOKEN_BYTES);
    mt_json_write(out, "'logprobs':{");
    each(&l, out, "tokens", write_token);
    each(&l, out, "token_logprobs", write_logprob);
    each(&l, out, "top_logprobs", write_top);
    add_offsets(&l, c, out);
    mt_json_write(out, "}");
    mt_buf_free(&l.bytes);
}

/* The text; with echo, after the prompt. */
static void add_text(mt_buf *out, const mt_answer *a, const mt_choice *c, bool echo)
{
    const mt_chat_text *prompt = &a->prompts[c->prompt].echo;
    mt_speech both = {0};

    if (!echo) {
        mt_speech_write(out, "text", &c->speech, MT_SPEECH_TEXT, a->form.stream);
        return;
    }
    mt_speech_add(&both, MT_SPEECH_TEXT, prompt->data, prompt->len);
    for (size_t i = 0; i < c->speech.count; i++)
        mt_speech_add(&both, MT_SPEECH_TEXT, c->speech.at[i].text.data, c->speech.at[i].text.len);
    mt_speech_write(out, "text", &both, MT_SPEECH_TEXT, false);
    mt_speech_free(&both);
}

static void add_choice(mt_buf *out, const mt_answer *a, mt_choice *c)
{
    const bool echo = a->form.echo && !c->echoed;

    mt_json_write(out, "{'index':%zu", c->index);
    add_text(out, a, c, echo);
    add_logprobs(out, a, c, echo ? &a->prompts[c->prompt].said : NULL);
    mt_write_finish(out, a, c);
    c->echoed = true;
}

static void add_prompt_ids(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    mt_write_ids(out, "prompt_token_ids", a->prompts[c->prompt].ids, a->prompts[c->prompt].count);
}

static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    const bool first = !c->echoed;

    mt_openai_open(out, a);
    mt_json_write(out, "'choices':[");
    add_choice(out, a, c);
    if (a->form.return_token_ids && first)
        add_prompt_ids(out, a, c);
    if (a->form.return_token_ids)
        mt_write_said_ids(out, &c->said);
    mt_json_write(out, "}]");
    mt_openai_close_chunk(out, a, c);
}

static void whole(mt_answer *a, mt_buf *out)
{
    mt_openai_head(out, a);
    mt_json_write(out, "'choices':[");
    for (size_t i = 0; i < a->choice_count; i++) {
        mt_choice *c = &a->choices[i];

        add_choice(out, a, c);
        if (a->form.prompt_logprobs >= 0)
            mt_write_prompt_logprobs(out, a, &a->prompts[c->prompt].said);
        else
            mt_json_write(out, "'prompt_logprobs':null");
        if (a->form.return_token_ids) {
            add_prompt_ids(out, a, c);
            mt_write_said_ids(out, &c->said);
        } else
            mt_json_write(out, "'prompt_token_ids':null");
        mt_json_write(out, "}");
    }
    mt_json_write(out, "]");
    mt_write_usage(out, a);
    mt_write_timings(out, a);
    if (a->dialect->more)
        a->dialect->more(out, a);
    mt_json_write(out, "}");
}

#define COMPLETIONS \
    .prefix = "cmpl-", .object = "text_completion", .chunk_object = "text_completion", .joins = true, MT_OPENAI_DIALECT

const mt_dialect mt_openai_completions = {.name = "completions", COMPLETIONS};
const mt_dialect mt_lmstudio_completions = {.name = "lmstudio-completions", .more = mt_lmstudio_more, COMPLETIONS};
