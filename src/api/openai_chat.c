/* The dialect of POST /v1/chat/completions, as OpenAI defines it and vLLM extends it. */
#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/fields.h"
#include "api/limits.h"
#include "api/lmstudio.h"
#include "api/openai.h"
#include "api/openai_tools.h"
#include "api/write.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "sample/limits.h"

/* {"type": "content", "content": text or text parts}: what the client expects the answer to be. Of parts only the first
   is used, since clients send one. */
static bool read_prediction(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const json_t *content = json_object_get(value, "content");

    if (json_is_array(content))
        content = json_object_get(json_array_get(content, 0), "text");
    if (!json_is_string(content))
        return mt_failure_field(
            why, "invalid_type", name,
            "is not an object with text in \"content\": send {\"type\": \"content\", \"content\": \"...\"}");
    ask->prediction = mt_chat_text_of(content);
    return true;
}

/* Neither audio nor a search on the web is supported. */
static bool refuse_given(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const bool search = strcmp(name, "web_search_options") == 0;

    (void)ask;
    (void)value;
    return mt_failure_unsupported(why, name, "is given, but %s: leave it out",
                                  search ? "nothing is searched" : "answers are text");
}

static bool read_modalities(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *modality = mt_json_word(json_array_get(value, i));

        if (!modality || strcmp(modality, "text") != 0)
            return refuse_given(ask, name, value, why);
    }
    return true;
}

static const mt_field fields[] = {
    MT_FIELD_OTHER_ROW("max_completion_tokens", mt_read_max_tokens),
    MT_FIELD_OTHER_ROW("logprobs", mt_read_logprobs),
    MT_FIELD_OTHER_ROW("top_logprobs", mt_read_top_logprobs),
    MT_FIELD_OTHER_ROW("logprob_token_ids", mt_read_logprob_ids),
    MT_FIELD_OTHER_ROW("audio", refuse_given),
    MT_FIELD_OTHER_ROW("modalities", read_modalities),
    MT_FIELD_OTHER_ROW("web_search_options", refuse_given),
    MT_FIELD_BOOL_ROW("include_reasoning", form.include_reasoning),
    MT_FIELD_OTHER_ROW("reasoning_effort", mt_read_effort),
    MT_FIELD_OTHER_ROW("reasoning", mt_read_reasoning),
    MT_FIELD_OTHER_ROW("thinking", mt_read_thinking),
    MT_FIELD_OTHER_ROW("thinking_budget", mt_read_think_budget),
    MT_FIELD_OTHER_ROW("thinking_token_budget", mt_read_think_budget),
    MT_FIELD_OTHER_ROW("thinking_budget_tokens", mt_read_think_budget),
    MT_FIELD_OTHER_ROW("reasoning_budget_tokens", mt_read_think_budget),
    MT_FIELD_BOOL_ROW("parallel_tool_calls", parallel_calls),
    MT_FIELD_OTHER_ROW("tool_choice", mt_read_tool_choice),
    MT_FIELD_BOOL_ROW("echo", form.echo),
    MT_FIELD_REFUSED_ROW("add_special_tokens", 0),
    MT_FIELD_OTHER_ROW("prediction", read_prediction),
};

bool mt_body_fields(mt_ask *ask, const char *const *own, mt_failure *why)
{
    /* Fields that others read, and the tables must not note as unknown. */
    static const char *const elsewhere[] = {"messages",
                                            "tools",
                                            "functions",
                                            "function_call",
                                            "chat_template",
                                            "chat_template_kwargs",
                                            "enable_thinking",
                                            "documents",
                                            "add_generation_prompt",
                                            "continue_final_message",
                                            "mm_processor_kwargs",
                                            "detail",
                                            "min_pixels",
                                            "max_pixels",
                                            "fps",
                                            "video_fps",
                                            "num_frames",
                                            "do_pan_and_scan",
                                            NULL};
    const mt_field_table tables[] = {mt_fields_common, {fields, MT_COUNT(fields)}, mt_fields_refused};

    ask->is_chat = true;
    return mt_fields_read(ask, tables, MT_COUNT(tables), elsewhere, own, why);
}

/* Notes members of messages, and of objects of settings, that nothing reads. Tools are shown to the model as they
   are. */
static void note_inside(mt_ask *ask, const json_t *messages)
{
    static const char *const members[] = {
        "annotations",  "cache_control", "content",   "function_call",     "id",   "name",
        "parsed", /* the content once more, by OpenAI's SDK */
        "partial",      "prefix",        "reasoning", "reasoning_content", "role", "thinking",
        "tool_call_id", "tool_calls",    NULL};
    static const char *const media[] = {"detail",     "do_pan_and_scan", "fps",       "max_pixels",
                                        "min_pixels", "num_frames",      "video_fps", NULL};

    mt_body_note(ask, "messages", messages, members, mt_body_part_members);
    mt_fields_note(ask, "mm_processor_kwargs.", json_object_get(ask->body, "mm_processor_kwargs"), NULL, 0,
                   (const char *const *const[3]){media});
}

/* Keeps the text of the last message in ask->extra, where the answer is to begin with it: a message of the assistant's,
   or any where the prompt has no generation prompt, so that the model goes on behind it. A chat's prompt is not
   repeated, so form.echo is unset. */
static void keep_echo(mt_ask *ask)
{
    const mt_chat *chat = &ask->chat;
    const mt_chat_message *last = chat->count ? &chat->messages[chat->count - 1] : NULL;
    mt_buf text = {.limit = MT_LIMIT_ANSWER_BYTES};

    if (!ask->form.echo)
        return;
    ask->form.echo = false;
    if (last && last->role != MT_CHAT_ASSISTANT && !chat->no_generation_prompt)
        last = NULL;
    for (size_t i = 0; last && i < last->part_count; i++)
        if (last->parts[i].type == MT_CHAT_TEXT)
            mt_buf_add(&text, last->parts[i].text.data, last->parts[i].text.len);
    if (!ask->extra)
        ask->extra = json_object();
    if (text.len && !text.full)
        json_object_set_new(ask->extra, "echo", json_stringn_nocheck(text.data, text.len));
    mt_buf_free(&text);
}

/* Messages, and settings of templates and pictures, are read by src/chat. */
static bool read(mt_ask *ask, mt_failure *why)
{
    const json_t *functions;
    mt_error err = {0};

    if (!mt_functions_read(ask, &functions, why) || !mt_custom_read(ask, why) || !mt_body_fields(ask, NULL, why))
        return false;
    if (!mt_chat_read(&ask->chat, ask->arena, ask->body, &err))
        return mt_failure_from(why, &err, "messages");
    if (functions) {
        ask->chat.tools = json_array_size(functions) ? functions : NULL;
        ask->parallel_calls = false;
    }
    keep_echo(ask);
    note_inside(ask, json_object_get(ask->body, "messages"));
    return true;
}

/* Reads conversation number i of a batch, with the tools and settings of the whole body. */
static bool read_conversation(mt_ask *ask, size_t i, json_t *messages, mt_chat *chat, mt_failure *why)
{
    json_t *body = json_copy((json_t *)(uintptr_t)ask->body); /* not const for jansson; nothing is changed */
    mt_error err = {0};

    json_object_set(body, "messages", messages);
    mt_ask_own(ask, body);
    if (!json_is_array(messages))
        return mt_failure_value(why, "messages", "has %s at %zu: send a list of conversations, each a list of messages",
                                mt_json_kind(messages), i);
    if (!mt_chat_read(chat, ask->arena, body, &err))
        return mt_failure_set(why, 400, "invalid_value", "messages", "conversation %zu: %s", i, err.text);
    note_inside(ask, messages);
    return true;
}

/* vLLM's batch: "messages" is a list of conversations, each of which gets its answers. */
static bool read_batch(mt_ask *ask, mt_failure *why)
{
    const json_t *all = json_object_get(ask->body, "messages");
    const size_t count = json_array_size(all);

    if (count == 0)
        return mt_failure_value(why, "messages", "is no list of conversations: send a list of lists of messages");
    if (!mt_custom_read(ask, why) || !mt_body_fields(ask, NULL, why))
        return false;
    if (ask->form.stream)
        return mt_failure_unsupported(why, "stream", "is not taken in a batch: leave it out");
    if (ask->form.echo)
        return mt_failure_unsupported(why, "echo", "is not taken in a batch: leave it out");
    if (ask->form.prompt_logprobs >= 0)
        return mt_failure_unsupported(why, "prompt_logprobs", "are not taken in a batch: leave them out");
    if (count * (size_t)ask->n > MT_LIMIT_CHOICES)
        return mt_failure_value(why, "messages",
                                "has %zu conversations, which with n = %d are more than %d answers: send them in "
                                "several requests",
                                count, (int)ask->n, MT_LIMIT_CHOICES);
    ask->further_count = count - 1;
    ask->further = mt_arena_alloc(ask->arena, count * sizeof(*ask->further));
    if (!ask->further)
        return mt_failure_memory(why, "messages");
    for (size_t i = 0; i < count; i++)
        if (!read_conversation(ask, i, json_array_get(all, i), i == 0 ? &ask->chat : &ask->further[i - 1], why))
            return false;
    return true;
}

/* Appends the rest of a choice after its text: logprobs, how it ended, ids, and the closing brace. */
static void close_choice(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    if (a->logprobs < 0 || (a->form.stream && c->said.count == 0))
        mt_json_write(out, "'logprobs':null");
    else {
        mt_json_write(out, "'logprobs':{'content':");
        mt_write_logprob_list(out, a, &c->said);
        mt_json_write(out, "'refusal':null}");
    }
    mt_write_finish(out, a, c);
    if (a->form.return_token_ids)
        mt_write_said_ids(out, &c->said);
    if (a->form.return_token_ids && a->prompt_count > 1)
        mt_write_ids(out, "prompt_token_ids", a->prompts[c->prompt].ids, a->prompts[c->prompt].count);
    mt_json_write(out, "}");
}

static const json_t *echo_of(const mt_answer *a)
{
    return json_object_get(a->extra, "echo");
}

static void begin(mt_answer *a, mt_choice *c, mt_buf *out)
{
    const json_t *echo = echo_of(a);

    mt_openai_open(out, a);
    mt_json_write(out,
                  "'choices':[{'index':%zu,'delta':{'role':'assistant','content':''},'logprobs':null,"
                  "'finish_reason':null}]",
                  c->index);
    if (a->form.return_token_ids && c->index == 0)
        mt_write_ids(out, "prompt_token_ids", a->prompts[0].ids, a->prompts[0].count);
    mt_openai_close_chunk(out, a, c);
    if (!echo)
        return;
    mt_openai_open(out, a);
    mt_json_write(out, "'choices':[{'index':%zu,'delta':{", c->index);
    mt_json_text(out, "content", json_string_value(echo), json_string_length(echo));
    mt_json_write(out, "},'logprobs':null,'finish_reason':null}]");
    mt_openai_close_chunk(out, a, c);
}

/* Appends "content":"all text", behind that of the message before it where the request says so (echo). */
static void add_content(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    const json_t *echo = echo_of(a);
    mt_buf text = {.limit = 2 * (size_t)MT_LIMIT_ANSWER_BYTES};

    if (!echo) {
        mt_speech_write(out, "content", &c->speech, MT_SPEECH_TEXT, false);
        return;
    }
    mt_buf_add(&text, json_string_value(echo), json_string_length(echo));
    for (size_t i = 0; i < c->speech.count; i++)
        if (c->speech.at[i].kind == MT_SPEECH_TEXT)
            mt_buf_add(&text, c->speech.at[i].text.data, c->speech.at[i].text.len);
    out->full |= text.full;
    mt_json_text(out, "content", text.data, text.len);
    mt_buf_free(&text);
}

/* Appends "function":{"name":..,"arguments":..}: what is new of a call, or (whole) all of it. */
static void add_function(mt_buf *out, const char *key, const mt_speech_part *call, bool whole)
{
    const size_t from = whole ? 0 : call->written;

    mt_json_write(out, "%s:{", key);
    if (whole || !call->told)
        mt_json_write(out, "'name':%s", call->name);
    mt_json_text(out, "arguments", call->text.len ? call->text.data + from : NULL, call->text.len - from);
    mt_json_write(out, "}");
}

/* Appends "custom":{"name":..,"input":..}. The input is a string within the arguments, so it is written in one piece
   once these are complete. */
static void add_custom(mt_buf *out, const mt_speech_part *call, const json_t *input, bool whole)
{
    mt_json_write(out, "'custom':{");
    if (whole || !call->told)
        mt_json_write(out, "'name':%s", call->name);
    mt_json_text(out, "input", json_string_value(input), whole || call->ended ? json_string_length(input) : 0);
    mt_json_write(out, "}");
}

/* Appends {"index":0,"id":...}: what is new of a call, or (whole) all of it, without its index. */
static void add_call(mt_buf *out, const mt_answer *a, const mt_speech_part *call, size_t index, bool whole)
{
    json_t *input = mt_custom_input(a, call);

    mt_json_write(out, "{");
    if (!whole)
        mt_json_write(out, "'index':%zu", index);
    if (whole || !call->told)
        mt_json_write(out, "'id':%s,'type':%s", call->id, input ? "custom" : "function");
    if (input)
        add_custom(out, call, input, whole);
    else
        add_function(out, "function", call, whole);
    mt_json_write(out, "}");
    json_decref(input);
}

/* Whether something of a call is new. Of a custom tool's that is its beginning, and its end. */
static bool is_news(const mt_answer *a, const mt_speech_part *call)
{
    const bool custom = json_object_get(json_object_get(json_object_get(a->extra, "tools"), call->name), "custom");

    return !call->told || (custom ? call->ended && !call->closed : call->written < call->text.len);
}

static bool has_call_news(const mt_answer *a, const mt_choice *c)
{
    for (size_t i = 0; i < c->speech.count; i++)
        if (c->speech.at[i].kind == MT_SPEECH_CALL && is_news(a, &c->speech.at[i]))
            return true;
    return false;
}

static void add_calls(mt_buf *out, const mt_answer *a, const mt_choice *c, bool whole)
{
    size_t index = 0;

    mt_json_write(out, "'tool_calls':[");
    for (size_t i = 0; i < c->speech.count; i++) {
        const mt_speech_part *part = &c->speech.at[i];

        if (part->kind != MT_SPEECH_CALL)
            continue;
        if (whole || is_news(a, part))
            add_call(out, a, part, index, whole);
        index++;
    }
    mt_json_write(out, "]");
}

/* Under both names that clients look for. */
static void add_reasoning(mt_buf *out, const mt_choice *c, bool news)
{
    mt_speech_write(out, "reasoning", &c->speech, MT_SPEECH_REASONING, news);
    mt_speech_write(out, "reasoning_content", &c->speech, MT_SPEECH_REASONING, news);
}

/* Appends "function_call":{..}, OpenAI's old form, in which there is only one call. */
static void add_function_call(mt_buf *out, const mt_answer *a, const mt_choice *c, bool whole)
{
    const mt_speech_part *part = c->speech.at;

    (void)a;
    while (part->kind != MT_SPEECH_CALL)
        part++;
    add_function(out, "function_call", part, whole);
}

static void chunk(mt_answer *a, mt_choice *c, mt_buf *out)
{
    mt_openai_open(out, a);
    mt_json_write(out, "'choices':[{'index':%zu,'delta':{", c->index);
    if (mt_speech_has(&c->speech, MT_SPEECH_REASONING, true))
        add_reasoning(out, c, true);
    if (mt_speech_has(&c->speech, MT_SPEECH_TEXT, true) || (!c->done && !c->parser))
        mt_speech_write(out, "content", &c->speech, MT_SPEECH_TEXT, true);
    if (has_call_news(a, c))
        (a->form.old_calls ? add_function_call : add_calls)(out, a, c, false);
    mt_json_write(out, "}");
    close_choice(out, a, c);
    mt_json_write(out, "]");
    mt_openai_close_chunk(out, a, c);
}

static void add_whole_choice(mt_buf *out, const mt_answer *a, const mt_choice *c)
{
    mt_json_write(out, "{'index':%zu,'message':{'role':'assistant'", c->index);
    if (c->speech.calls && !mt_speech_has(&c->speech, MT_SPEECH_TEXT, false) && !echo_of(a))
        mt_json_write(out, "'content':null");
    else
        add_content(out, a, c);
    mt_json_write(out, "'refusal':null");
    if (mt_speech_has(&c->speech, MT_SPEECH_REASONING, false))
        add_reasoning(out, c, false);
    if (c->speech.calls)
        (a->form.old_calls ? add_function_call : add_calls)(out, a, c, true);
    mt_json_write(out, "}");
    close_choice(out, a, c);
}

static void whole(mt_answer *a, mt_buf *out)
{
    mt_openai_head(out, a);
    mt_json_write(out, "'choices':[");
    for (size_t i = 0; i < a->choice_count; i++)
        add_whole_choice(out, a, &a->choices[i]);
    mt_json_write(out, "]");
    mt_write_usage(out, a);
    mt_write_timings(out, a);
    if (a->dialect->more)
        a->dialect->more(out, a);
    if (a->form.prompt_logprobs >= 0)
        mt_write_prompt_logprobs(out, a, &a->prompts[0].said);
    else
        mt_json_write(out, "'prompt_logprobs':null");
    if (a->form.return_token_ids && a->prompt_count == 1)
        mt_write_ids(out, "prompt_token_ids", a->prompts[0].ids, a->prompts[0].count);
    else
        mt_json_write(out, "'prompt_token_ids':null");
    mt_json_write(out, "}");
}

#define CHAT                                                                                                     \
    .prefix = "chatcmpl-", .object = "chat.completion", .chunk_object = "chat.completion.chunk", .begin = begin, \
    MT_OPENAI_DIALECT

const mt_dialect mt_openai_chat = {.name = "chat", CHAT};
const mt_dialect mt_openai_chat_batch = {.name = "chat-batch",
                                         .prefix = "chatcmpl-",
                                         .object = "chat.completion",
                                         .read = read_batch,
                                         .whole = whole,
                                         .error = mt_failure_write};
const mt_dialect mt_lmstudio_chat = {.name = "lmstudio-chat", .more = mt_lmstudio_more, CHAT};
