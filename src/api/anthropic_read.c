/* Reads Anthropic's messages into a chat: blocks become parts, tool calls and tool results. */
#include "api/anthropic.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/json_body.h"
#include "api/openai_tools.h"
#include "base/json_tree.h"
#include "chat/chat.h"
#include "chat/document.h"

/* The messages while they are read. */
typedef struct reader {
    mt_ask *ask;
    mt_chat *chat;     /* the ask's */
    const char *place; /* "system" or "messages" */
    size_t at, block;  /* number of the message, and of its content block */
    bool inside;       /* within a document or a tool result, where neither calls nor results may stand */
    mt_failure *why;
} reader;

/* The message that is made of the blocks of one message of the body. Only tool results are not part of it: each becomes
   a message of its own before this one, since it answers a call of the message before. */
typedef struct turn {
    mt_chat_message said;
    bool answers; /* the message had tool results */
} turn;

/* Sets *why, with where the fault is. Returns false. */
static bool bad(reader *r, const char *sentence, const char *what)
{
    if (strcmp(r->place, "system") == 0)
        return mt_failure_set(r->why, 400, "invalid_value", "system", "system: %s%s", sentence, what);
    return mt_failure_set(r->why, 400, "invalid_value", "messages", "messages.%zu: %s%s", r->at, sentence, what);
}

/* Claude Code begins its system text with a line that differs in each request; kept, it would prevent all that follows
   from being found in the cache. */
static mt_chat_text without_billing(mt_chat_text text)
{
    static const char billing[] = "x-anthropic-billing-header:";
    size_t at;

    if (strncmp(text.data, billing, sizeof(billing) - 1) != 0)
        return text;
    at = strcspn(text.data, "\n");
    at += strspn(text.data + at, "\n");
    return (mt_chat_text){.data = text.data[at] ? text.data + at : NULL, .len = text.len - at};
}

static bool put_text(reader *r, turn *t, const json_t *string)
{
    mt_chat_text text = mt_chat_text_of(string);

    if (t->said.role == MT_CHAT_SYSTEM)
        text = without_billing(text);
    if (text.data)
        mt_chat_add_text(r->chat, &t->said, text);
    return true;
}

static bool add_text(reader *r, turn *t, const json_t *block)
{
    const json_t *text = json_object_get(block, "text");

    return json_is_string(text) ? put_text(r, t, text) : bad(r, "a block has no string as its ", "text");
}

static bool add_thinking(reader *r, turn *t, const json_t *block)
{
    const json_t *thinking = json_object_get(block, "thinking");

    if (!json_is_string(thinking))
        return bad(r, "a block has no string as its ", "thinking");
    mt_chat_add_reasoning(r->chat, &t->said, mt_chat_text_of(thinking));
    return true;
}

static bool add_image(reader *r, turn *t, const json_t *block)
{
    const json_t *source = json_object_get(block, "source");
    const char *type = mt_body_text(source, "type");

    if (!(strcmp(type, "url") == 0 && json_is_string(json_object_get(source, "url"))) &&
        !(strcmp(type, "base64") == 0 && json_is_string(json_object_get(source, "data"))) &&
        !(strcmp(type, "file") == 0 && json_is_string(json_object_get(source, "file_id"))))
        return bad(r, "the source of an image is neither base64, a url nor a file: send one of these", "");
    mt_chat_add_medium(r->chat, &t->said, MT_CHAT_IMAGE, block,
                       mt_arena_printf(r->chat->arena, "messages.%zu.content.%zu", r->at, r->block));
    return true;
}

static bool add_blocks(reader *r, turn *t, const json_t *content);

/* Reads blocks within a document or a tool result. */
static bool add_inside(reader *r, turn *t, const json_t *content)
{
    const bool before = r->inside;
    bool ok;

    r->inside = true;
    ok = add_blocks(r, t, content);
    r->inside = before;
    return ok;
}

/* Refuses a block for which citations are wanted: answers have none. */
static bool check_citations(reader *r, const json_t *block)
{
    return !json_is_true(json_object_get(json_object_get(block, "citations"), "enabled")) ||
           bad(r, "citations are not written here: leave \"citations\" out", "");
}

/* Adds a block's title, source and context, then its content. */
static bool add_titled(reader *r, turn *t, const json_t *block, const json_t *content)
{
    static const char *const about[] = {"title", "source", "context"};

    for (size_t i = 0; i < MT_COUNT(about); i++)
        if (json_string_length(json_object_get(block, about[i])))
            put_text(r, t, json_object_get(block, about[i]));
    return check_citations(r, block) && add_inside(r, t, content);
}

static bool add_document(reader *r, turn *t, const json_t *block)
{
    const json_t *source = json_object_get(block, "source");
    const char *type = mt_body_text(source, "type");

    if (strcmp(type, "text") == 0 && json_is_string(json_object_get(source, "data")))
        return add_titled(r, t, block, json_object_get(source, "data"));
    if (strcmp(type, "content") == 0)
        return add_titled(r, t, block, json_object_get(source, "content"));
    if (strcmp(type, "base64") != 0 && strcmp(type, "url") != 0 && strcmp(type, "file") != 0)
        return bad(r, "the source of a document is of no known type: send text, content, base64, url or file", "");
    if (json_string_length(json_object_get(block, "context")))
        put_text(r, t, json_object_get(block, "context"));
    mt_chat_add_document(r->chat, &t->said, block,
                         mt_arena_printf(r->chat->arena, "messages.%zu.content.%zu", r->at, r->block));
    return check_citations(r, block);
}

static bool add_search_result(reader *r, turn *t, const json_t *block)
{
    return add_titled(r, t, block, json_object_get(block, "content"));
}

static bool add_call(reader *r, turn *t, const json_t *block)
{
    const json_t *name = json_object_get(block, "name"), *id = json_object_get(block, "id");
    const json_t *input = mt_body_get(block, "input");

    if (r->inside || t->said.role != MT_CHAT_ASSISTANT)
        return bad(r, "a tool_use block stands where none may: only the assistant calls tools", "");
    if (!json_is_string(name) || !json_is_string(id))
        return bad(r, "a tool_use block has no string as its name or id", "");
    if (input && !json_is_object(input))
        return bad(r, "the input of a tool_use block is ", mt_json_kind(input));
    mt_chat_add_call(r->chat, &t->said,
                     (mt_chat_call){.id = mt_chat_text_of(id),
                                    .name = mt_chat_text_of(name),
                                    .arguments = mt_body_arguments(input)});
    return true;
}

/* Chats have no field for a failed tool, so its result begins with the word "Error:". */
static void mark_error(mt_chat *chat, mt_chat_message *m)
{
    static const mt_chat_text error = {.data = "Error:", .len = 6};
    const mt_chat_message said = *m;

    if (said.part_count && said.parts[0].type == MT_CHAT_TEXT && strncasecmp(said.parts[0].text.data, "Error", 5) == 0)
        return;
    m->parts = NULL;
    m->part_count = m->sent = 0;
    mt_chat_add_text(chat, m, error);
    for (size_t i = 0; i < said.part_count; i++)
        if (said.parts[i].type == MT_CHAT_TEXT && said.parts[i].source)
            mt_chat_add_document(chat, m, said.parts[i].source, said.parts[i].place);
        else if (said.parts[i].type == MT_CHAT_TEXT)
            mt_chat_add_text(chat, m, said.parts[i].text);
        else
            mt_chat_add_medium(chat, m, said.parts[i].type, said.parts[i].source, said.parts[i].place);
}

static bool add_result(reader *r, turn *t, const json_t *block)
{
    const json_t *content = mt_body_get(block, "content"), *id = json_object_get(block, "tool_use_id");
    const bool failed = json_is_true(json_object_get(block, "is_error"));
    turn result = {.said = {.role = MT_CHAT_TOOL, .call_id = mt_chat_text_of(id)}};

    if (r->inside || t->said.role != MT_CHAT_USER)
        return bad(r, "a tool_result block stands where none may: results are the user's", "");
    if (!json_is_string(id))
        return bad(r, "a tool_result block has no string as its tool_use_id", "");
    if (content && !add_inside(r, &result, content))
        return false;
    result.said.list = !json_is_string(content) || failed;
    if (failed)
        mark_error(r->chat, &result.said);
    mt_chat_put(r->chat, &result.said);
    t->answers = true;
    return true;
}

static const struct {
    const char *type;
    bool (*add)(reader *r, turn *t, const json_t *block); /* NULL: such blocks are ignored, with a note */
} block_types[] = {
    {"text", add_text},
    {"image", add_image},
    {"document", add_document},
    {"search_result", add_search_result},
    {"thinking", add_thinking},
    {"tool_use", add_call},
    {"tool_result", add_result},
    {"redacted_thinking", NULL}, /* readable only by Anthropic */
    {"tool_reference", NULL},    /* this and the following: tools that Anthropic's servers run */
    {"server_tool_use", NULL},
    {"web_search_tool_result", NULL},
    {"web_fetch_tool_result", NULL},
    {"tool_search_tool_result", NULL},
    {"code_execution_tool_result", NULL},
};

static bool add_block(reader *r, turn *t, const json_t *block)
{
    const json_t *type = json_object_get(block, "type");

    if (!mt_json_word(type))
        return bad(r, "a content block has no type", "");
    for (size_t i = 0; i < MT_COUNT(block_types); i++)
        if (strcmp(json_string_value(type), block_types[i].type) == 0) {
            if (!block_types[i].add)
                mt_ask_ignore(r->ask, block_types[i].type);
            return !block_types[i].add || block_types[i].add(r, t, block);
        }
    return bad(r, "content blocks of this type are not known: ", json_string_value(type));
}

static bool add_blocks(reader *r, turn *t, const json_t *content)
{
    if (json_is_string(content))
        return put_text(r, t, content);
    if (!json_is_array(content))
        return bad(r, "content is neither a string nor a list of blocks but ", mt_json_kind(content));
    for (size_t i = 0; i < json_array_size(content); i++) {
        if (!r->inside)
            r->block = i;
        if (!add_block(r, t, json_array_get(content, i)))
            return false;
    }
    return true;
}

/* Reads one message, or the system text. */
static bool read_message(reader *r, mt_chat_role role, const json_t *content)
{
    turn t = {.said = {.role = role, .list = role == MT_CHAT_SYSTEM || !json_is_string(content)}};

    if (!add_blocks(r, &t, content))
        return false;
    if (t.said.sent || t.said.call_count || (role != MT_CHAT_SYSTEM && !t.answers))
        mt_chat_put(r->chat, &t.said);
    return true;
}

/* Notes members of messages and blocks that nothing reads. */
static void note_inside(mt_ask *ask)
{
    static const char *const message_members[] = {"content", "role", "id", NULL};
    static const char *const block_members[] = {"cache_control", /* this and the following do not change what it says */
                                                "caller", "citations", /* see add_titled */
                                                "data", "signature",
                                                /* what a block says */
                                                "content", "context", "id", "input", "is_error", "name", "source",
                                                "text", "thinking", "title", "tool_use_id", "type",
                                                /* of a tool_reference, whose type is noted */
                                                "tool_name", NULL};

    mt_body_note(ask, "system", json_object_get(ask->body, "system"), block_members, block_members);
    mt_body_note(ask, "messages", json_object_get(ask->body, "messages"), message_members, block_members);
}

static bool read_messages(mt_ask *ask, mt_failure *why)
{
    static const mt_chat_role roles[] = {MT_CHAT_USER, MT_CHAT_ASSISTANT, MT_CHAT_SYSTEM};
    const json_t *system = mt_body_get(ask->body, "system"), *messages = json_object_get(ask->body, "messages");
    reader r = {.ask = ask, .chat = &ask->chat, .place = "system", .why = why};

    mt_chat_begin(&ask->chat, ask->arena, "messages");
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return mt_failure_set(why, 400, "invalid_type", "messages",
                              "messages: a list of at least one message is needed");
    if (system && !read_message(&r, MT_CHAT_SYSTEM, system))
        return false;
    r.place = "messages";
    for (; r.at < json_array_size(messages); r.at++) {
        const json_t *message = json_array_get(messages, r.at);
        size_t i = 0;

        while (i < MT_COUNT(roles) && strcmp(mt_body_text(message, "role"), mt_chat_role_name(roles[i])) != 0)
            i++;
        if (i == MT_COUNT(roles))
            return bad(&r, "the role is none of user, assistant and system", "");
        if (!read_message(&r, roles[i], json_object_get(message, "content")))
            return false;
    }
    note_inside(ask);
    return true;
}

static bool read_tool_choice(mt_ask *ask, mt_failure *why)
{
    const json_t *choice = mt_body_get(ask->body, "tool_choice"), *name = json_object_get(choice, "name");
    const char *type = mt_body_text(choice, "type");

    if (!choice)
        return true;
    if (json_is_true(json_object_get(choice, "disable_parallel_tool_use")))
        ask->parallel_calls = false;
    if (strcmp(type, "any") == 0)
        return mt_tool_choice_word(ask, "required");
    if (strcmp(type, "tool") == 0 && json_is_string(name))
        return mt_tool_choice_only(ask, mt_chat_text_of(name)) || mt_failure_memory(why, "tool_choice");
    return (strcmp(type, "required") != 0 && mt_tool_choice_word(ask, type)) ||
           mt_failure_set(why, 400, "invalid_value", "tool_choice",
                          "tool_choice: the type is none of auto, any, tool (with a name) and none");
}

/* A budget that leaves nothing for the answer is refused, as by Anthropic. With tools the budget may be meant for
   several answers together (interleaved thinking), so it is accepted. */
static bool check_budget(const mt_ask *ask, mt_failure *why)
{
    return ask->think_budget < 0 || ask->max_tokens < 0 || ask->think_budget < ask->max_tokens || ask->chat.tools ||
           mt_failure_set(why, 400, "invalid_value", "thinking",
                          "`max_tokens` must be greater than `thinking.budget_tokens`: send a smaller budget, or "
                          "allow more tokens");
}

/* OpenAI's clients may send -1 for as many as fit; Anthropic's API has no such value. */
static bool check_max_tokens(const json_t *body, mt_failure *why)
{
    const json_t *most = mt_body_get(body, "max_tokens");

    return !json_is_integer(most) || json_integer_value(most) >= 0 ||
           mt_failure_set(why, 400, "invalid_value", "max_tokens",
                          "max_tokens: it is %" JSON_INTEGER_FORMAT ": send 1 or more", json_integer_value(most));
}

/* Whether thinking is shown. Where Anthropic shows a summary of it, motet shows all of it. */
static bool read_display(mt_ask *ask, const json_t *display, mt_failure *why)
{
    const char *word = mt_json_word(display);

    if (word && strcmp(word, "omitted") == 0)
        ask->form.include_reasoning = false;
    return !display || (word && (strcmp(word, "omitted") == 0 || strcmp(word, "summarized") == 0)) ||
           mt_failure_set(why, 400, "invalid_value", "thinking",
                          "thinking.display: it is neither summarized nor omitted: send one, or leave it out");
}

static bool read_thinking(mt_ask *ask, mt_failure *why)
{
    const json_t *thinking = mt_body_get(ask->body, "thinking");
    const char *type = mt_body_text(thinking, "type");

    if (!thinking)
        return true;
    if (strcmp(type, "enabled") != 0 && strcmp(type, "adaptive") != 0 && strcmp(type, "disabled") != 0)
        return mt_failure_set(why, 400, "invalid_value", "thinking",
                              "thinking: the type is none of enabled, adaptive and disabled");
    ask->chat.thinking = json_boolean(*type != 'd');
    ask->chat.budget = mt_body_get(thinking, "budget_tokens");
    return mt_read_thinking(ask, "thinking", thinking, why) && check_budget(ask, why) &&
           read_display(ask, mt_body_get(thinking, "display"), why);
}

/* Clients that want the server to keep the conversation send all of it instead when they get this error code. */
static bool refuse_thread(const json_t *body, mt_failure *why)
{
    return !mt_body_get(body, "thread") ||
           mt_failure_set(why, 400, "thread_unsupported_request", "thread",
                          "thread: conversations are not held here: leave it out, and send all messages");
}

static bool read_stops(mt_ask *ask, mt_failure *why)
{
    const json_t *stops = mt_body_get(ask->body, "stop_sequences");

    if (stops && !json_is_array(stops))
        return mt_failure_set(why, 400, "invalid_type", "stop_sequences", "stop_sequences: a list is needed, not %s",
                              mt_json_kind(stops));
    return !stops || mt_read_stop(ask, "stop_sequences", stops, why);
}

/* The format of the answer; output_format is its older name. */
static const json_t *format_of(const json_t *body)
{
    const json_t *format = mt_body_get(mt_body_get(body, "output_config"), "format");

    return format ? format : mt_body_get(body, "output_format");
}

/* Reads how much to think, and the format. */
static bool read_output(mt_ask *ask, mt_failure *why)
{
    const json_t *format = format_of(ask->body);

    ask->chat.effort = mt_body_get(mt_body_get(ask->body, "output_config"), "effort");
    return (!ask->chat.effort || mt_read_effort(ask, "output_config.effort", ask->chat.effort, why)) &&
           (!format || mt_read_format(ask, "output_config.format", mt_body_text(format, "type"),
                                      json_object_get(format, "schema"), true, why));
}

static bool refuse_prefill(mt_failure *why, const char *sentence)
{
    return mt_failure_set(why, 400, "invalid_value", "messages", "messages: %s", sentence);
}

/* The text at the end of a message; data is NULL where it is empty. *other: the message ends with something else. */
static mt_chat_text last_text(const mt_chat_message *message, bool *other)
{
    const mt_chat_part *part = message->part_count ? &message->parts[message->part_count - 1] : NULL;

    *other = message->sent && !(part && part->type == MT_CHAT_TEXT && part->index + 1 == message->sent);
    return part && !*other ? part->text : (mt_chat_text){.data = NULL};
}

/* Where the last message is the assistant's, the answer continues it. What Anthropic's API refuses there is refused
   here, too. formatted: the answer has a format. */
static bool read_prefill(mt_ask *ask, bool formatted, mt_failure *why)
{
    const json_t *sent = json_object_get(ask->body, "messages");
    mt_chat *chat = &ask->chat;
    const mt_chat_message *message;
    mt_chat_text text;
    bool other;

    if (chat->count == 0 ||
        strcmp(mt_body_text(json_array_get(sent, json_array_size(sent) - 1), "role"), "assistant") != 0)
        return true;
    message = &chat->messages[chat->count - 1];
    if (message->call_count)
        return refuse_prefill(why, "the last one calls tools: send what they answered behind it");
    text = last_text(message, &other);
    if (other)
        return refuse_prefill(why,
                              "the last one ends with thinking or a picture: send text behind it, or leave it out");
    if (text.len == 0) { /* an empty message is left out */
        chat->count--;
        return true;
    }
    if (isspace((unsigned char)text.data[text.len - 1]))
        return refuse_prefill(why, "the last one ends with white space, which no answer goes on from: trim it");
    if (formatted)
        return refuse_prefill(
            why, "the answer cannot both go on with the last one and have a format: leave one of them out");
    chat->continues = true;
    return true;
}

static bool read_body(mt_ask *ask, mt_failure *why)
{
    /* Fields that this reader reads, or that are ignored without a note. */
    static const char *const own[] = {"anthropic_beta",
                                      "anthropic_version",
                                      "betas",
                                      "cache_control",
                                      "diagnostics",
                                      "fallbacks",
                                      "inference_geo",
                                      "mcp_servers",
                                      "messages",
                                      "output_config",
                                      "output_format",
                                      "speed",
                                      "stop_sequences",
                                      "system",
                                      "thinking",
                                      "thread",
                                      "tool_choice",
                                      "tools",
                                      NULL};
    const json_t *body = ask->body;

    if (!mt_body_refuse(ask, why))
        return false;
    if (json_array_size(json_object_get(body, "mcp_servers")))
        mt_ask_ignore(ask, "mcp_servers");
    return refuse_thread(body, why) && check_max_tokens(body, why) && read_messages(ask, why) &&
           read_prefill(ask, format_of(body) || mt_body_get(body, "response_format"), why) &&
           mt_anthropic_tools(ask, why) && mt_body_fields(ask, own, why) && read_tool_choice(ask, why) &&
           read_thinking(ask, why) && read_stops(ask, why) && read_output(ask, why) && mt_body_end(ask, why);
}

bool mt_anthropic_read(mt_ask *ask, mt_failure *why)
{
    bool ok;

    mt_json_guard_begin();
    ok = read_body(ask, why);
    return mt_json_guard_end() ? ok
                               : mt_failure_set(why, 413, "request_too_large", NULL,
                                                "the messages need more memory than a request may have: send fewer");
}
