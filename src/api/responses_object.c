/* Writes a response as it is now: the object of whole answers, with which streams begin and end, too. */
#include <inttypes.h>
#include <string.h>

#include "api/openai_tools.h"
#include "api/responses.h"
#include "api/write.h"
#include "base/json_tree.h"
#include "base/json_write.h"

/* Ids of items contain the id of their response and their index, so that references can be found again. */
void mt_responses_item_id(mt_buf *out, const char *key, const mt_answer *a, size_t index)
{
    static const char *const prefixes[] = {
        [MT_SPEECH_REASONING] = "rs_", [MT_SPEECH_TEXT] = "msg_", [MT_SPEECH_CALL] = "fc_"};
    const char *random = strchr(a->id, '_');

    mt_json_write(out, "'%-s':'%-s%-s_%zu'", key, prefixes[a->choices[0].speech.at[index].kind],
                  random ? random + 1 : a->id, index);
}

static const json_t *tool_of(const mt_answer *a, const mt_speech_part *part)
{
    return part->kind == MT_SPEECH_CALL ? json_object_get(json_object_get(a->extra, "tools"), part->name) : NULL;
}

const char *mt_responses_tool(const mt_answer *a, const mt_speech_part *part)
{
    const char *name = json_string_value(json_object_get(tool_of(a, part), "name"));

    return name ? name : part->name;
}

static void add_call(mt_buf *out, const mt_answer *a, const mt_speech_part *part, bool filled)
{
    const json_t *tool = tool_of(a, part);
    json_t *input = mt_custom_input(a, part);

    mt_json_write(out, "'type':%s,'call_id':%s,'name':%s", input ? "custom_tool_call" : "function_call", part->id,
                  mt_responses_tool(a, part));
    if (json_object_get(tool, "namespace"))
        mt_json_write(out, "'namespace':%s", json_string_value(json_object_get(tool, "namespace")));
    if (input)
        mt_json_text(out, "input", json_string_value(input), filled ? json_string_length(input) : 0);
    else
        mt_json_text(out, "arguments", part->text.data, filled ? part->text.len : 0);
    json_decref(input);
}

/* For clients that send nothing else of the reasoning back, as OpenAI's servers would not take it. */
static void add_carried(mt_buf *out, const mt_speech_part *part)
{
    mt_buf text = {.limit = sizeof(MT_RESPONSES_CARRIED) + part->text.len};

    if (mt_buf_puts(&text, MT_RESPONSES_CARRIED) && mt_buf_add(&text, part->text.data, part->text.len))
        mt_json_text(out, "encrypted_content", text.data, text.len);
    mt_buf_free(&text);
}

static void add_reasoning(mt_buf *out, const mt_answer *a, const mt_speech_part *part, bool filled)
{
    const bool summary = json_is_true(json_object_get(a->extra, "summary"));

    mt_json_write(out, summary ? "'type':'reasoning','summary':[" : "'type':'reasoning','summary':[],'content':[");
    if (filled) {
        mt_json_write(out, "{'type':%s", summary ? "summary_text" : "reasoning_text");
        mt_json_text(out, "text", part->text.data, part->text.len);
        mt_json_write(out, "}");
    }
    mt_json_write(out, "]");
    if (filled && json_is_true(json_object_get(a->extra, "carried")))
        add_carried(out, part);
}

void mt_responses_logprobs(mt_buf *out, const mt_answer *a, size_t index, size_t from)
{
    const mt_said_list *said = &a->choices[0].said;

    if (a->choices[0].speech.at[index].kind != MT_SPEECH_TEXT)
        return;
    mt_json_write(out, "'logprobs':[");
    for (size_t i = from; i < said->count; i++)
        if (said->at[i].part == index)
            mt_write_logprobs(out, a, said, &said->at[i]);
    mt_json_write(out, "]");
}

static void add_message(mt_buf *out, const mt_answer *a, size_t index, bool filled)
{
    const mt_speech_part *part = &a->choices[0].speech.at[index];

    mt_json_write(out, "'type':'message','role':'assistant','content':[");
    if (filled) {
        mt_json_write(out, "{'type':'output_text','annotations':[]");
        mt_json_text(out, "text", part->text.data, part->text.len);
        mt_responses_logprobs(out, a, index, 0);
        mt_json_write(out, "}");
    }
    mt_json_write(out, "]");
}

/* The last item of an answer that was cut off is incomplete, and so is a call whose arguments are. */
static const char *item_status(const mt_answer *a, size_t index, bool filled)
{
    const mt_choice *c = &a->choices[0];

    if (!filled)
        return "in_progress";
    if (c->speech.at[index].cut)
        return "incomplete";
    return c->done && c->finish != MT_FINISH_STOP && index + 1 == c->speech.count ? "incomplete" : "completed";
}

void mt_responses_item(mt_buf *out, const mt_answer *a, size_t index, bool filled)
{
    const mt_speech_part *part = &a->choices[0].speech.at[index];

    mt_json_write(out, "{");
    mt_responses_item_id(out, "id", a, index);
    switch (part->kind) {
    case MT_SPEECH_REASONING: add_reasoning(out, a, part, filled); break;
    case MT_SPEECH_TEXT: add_message(out, a, index, filled); break;
    case MT_SPEECH_CALL: add_call(out, a, part, filled); break;
    }
    mt_json_write(out, "'status':%s}", item_status(a, index, filled));
}

void mt_responses_usage(mt_buf *out, const mt_answer *a)
{
    const mt_usage all = mt_answer_usage(a);

    mt_json_write(out,
                  "'usage':{'input_tokens':%zu,'input_tokens_details':{'cached_tokens':%zu,'cache_write_tokens':0},"
                  "'output_tokens':%zu,'output_tokens_details':{'reasoning_tokens':%zu},'total_tokens':%zu}",
                  all.prompt, all.cached, all.tokens, all.reasoning, all.prompt + all.tokens);
}

static void add_end(mt_buf *out, const mt_answer *a, const mt_failure *why)
{
    const mt_choice *c = &a->choices[0];
    const char *status = why                                ? "failed"
                         : !c->done && a->cancelled         ? "cancelled"
                         : !c->done                         ? a->form.background && !c->begun ? "queued" : "in_progress"
                         : c->finish == MT_FINISH_STOP      ? "completed"
                         : c->finish == MT_FINISH_CANCELLED ? "cancelled"
                                                            : "incomplete";

    if (a->ended)
        mt_json_write(out, "'completed_at':%" PRId64, a->ended);
    else
        mt_json_write(out, "'completed_at':null");
    mt_json_write(out, "'status':%s", status);
    if (why) /* clients know only a few codes */
        mt_json_write(out, "'error':{'code':%s,'message':%s}",
                      why->status == 429 ? "rate_limit_exceeded" : "server_error", why->text);
    else
        mt_json_write(out, "'error':null");
    mt_json_write(out, c->done && c->finish == MT_FINISH_LENGTH ? "'incomplete_details':{'reason':'max_output_tokens'}"
                                                                : "'incomplete_details':null");
}

static void add_echo(mt_buf *out, const mt_answer *a)
{
    json_t *echo = json_object_get(a->extra, "echo"), *value;
    const char *key;

    json_object_foreach(echo, key, value) {
        mt_json_write(out, "%s:", key);
        mt_json_tree_write(out, value);
    }
}

void mt_responses_object(mt_buf *out, const mt_answer *a, const mt_failure *why)
{
    const mt_choice *c = &a->choices[0];
    const bool some = c->done || why;

    mt_json_write(out, "{'id':%s,'object':'response','created_at':%" PRId64 ",'model':%s", a->id, a->created, a->model);
    add_end(out, a, why);
    mt_json_write(out, "'output':[");
    for (size_t i = 0; some && i < c->speech.count; i++)
        mt_responses_item(out, a, i, true);
    mt_json_write(out, "]");
    add_echo(out, a);
    if (c->done)
        mt_responses_usage(out, a);
    else
        mt_json_write(out, "'usage':null");
    mt_write_timings(out, a);
    mt_json_write(out, "}");
}
