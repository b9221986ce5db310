/* See openai.h. */
#include "api/openai.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/write.h"
#include "base/json_write.h"

static const char done[] = "data: [DONE]\n\n";

static void add_head(mt_buf *out, const mt_answer *answer, const char *object)
{
    char fingerprint[16];

    snprintf(fingerprint, sizeof(fingerprint), "fp_%08" PRIx32, answer->fingerprint);
    mt_json_write(out, "{'id':%s,'object':%s,'created':%" PRId64 ",'model':%s,'system_fingerprint':%s", answer->id,
                  object, answer->created, answer->model, fingerprint);
}

void mt_openai_head(mt_buf *out, const mt_answer *answer)
{
    add_head(out, answer, answer->dialect->object);
}

void mt_openai_open(mt_buf *out, const mt_answer *answer)
{
    mt_buf_puts(out, "data: ");
    add_head(out, answer, answer->dialect->chunk_object);
}

static void close_event(mt_buf *out)
{
    mt_buf_puts(out, "}\n\n");
}

void mt_openai_close_chunk(mt_buf *out, const mt_answer *answer, const mt_choice *choice)
{
    const size_t prompt = answer->prompts[choice->prompt].count;

    if (answer->form.continuous_usage)
        mt_json_write(out, "'usage':{'prompt_tokens':%zu,'total_tokens':%zu,'completion_tokens':%zu}", prompt,
                      prompt + choice->tokens, choice->tokens);
    else if (answer->form.include_usage)
        mt_json_write(out, "'usage':null");
    close_event(out);
}

void mt_openai_end(mt_answer *answer, mt_buf *out)
{
    if (answer->form.include_usage || answer->dialect->more) {
        mt_openai_open(out, answer);
        mt_json_write(out, "'choices':[]");
        mt_write_usage(out, answer);
        mt_write_timings(out, answer);
        if (answer->dialect->more)
            answer->dialect->more(out, answer);
        close_event(out);
    }
    mt_buf_puts(out, done);
}

void mt_openai_fail(mt_answer *answer, const mt_failure *why, mt_buf *out)
{
    (void)answer;
    mt_buf_puts(out, "data: ");
    mt_failure_write(out, why);
    mt_buf_puts(out, "\n\n");
    mt_buf_puts(out, done);
}
