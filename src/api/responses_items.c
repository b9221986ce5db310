/* Reads items of /v1/responses into messages of a chat. One turn of the assistant is several items but one message:
   reasoning waits for the item after it, and calls join the assistant's message before them. */
#include "api/responses.h"

#include <stdio.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/store.h"
#include "base/json_tree.h"
#include "base/words.h"
#include "chat/document.h"

/* The items while they are read. */
typedef struct reader {
    mt_ask *ask;
    mt_chat *chat;
    mt_chat_message said;     /* the assistant's latest message, not yet put into the chat */
    bool open;                /* `said` is in use: calls may join it */
    mt_chat_message thoughts; /* reasoning that waits for the assistant's next message */
    const char *list;         /* what has the items that are read, for errors: "input" */
    size_t at;                /* number of the item */
    const char *member;       /* of the item, which has the part that is read; NULL: none is */
    size_t part;              /* number of the part */
    json_t *calls;            /* an object whose keys are the ids of all calls so far */
    mt_failure *why;
} reader;

/* Where the reader is, for errors: "input[0]" or "input[0].content[1]"; in the arena. NULL: that is full. */
static const char *place_of(const reader *r)
{
    return r->member ? mt_arena_printf(r->ask->arena, "%s[%zu].%s[%zu]", r->list, r->at, r->member, r->part)
                     : mt_arena_printf(r->ask->arena, "%s[%zu]", r->list, r->at);
}

static bool bad(reader *r, const char *sentence, const char *what)
{
    const char *place = place_of(r);

    return mt_failure_set(r->why, 400, "invalid_value", place, "%s: %s%s", place ? place : r->list, sentence, what);
}

/* A file that says to be a picture is one; others are documents. */
static bool add_file(reader *r, mt_chat_message *to, const json_t *part)
{
    const json_t *data = json_object_get(part, "file_data"), *url = json_object_get(part, "file_url");

    url = json_is_string(data) ? data : url;
    if (!json_is_string(url) || !mt_chat_document_is_picture(json_string_value(url))) {
        mt_chat_add_document(r->chat, to, part, place_of(r));
        return true;
    }
    mt_chat_add_medium(r->chat, to, MT_CHAT_IMAGE, mt_ask_own(r->ask, mt_body_image_part(url)), place_of(r));
    return true;
}

static bool add_part(reader *r, mt_chat_message *to, const json_t *part)
{
    static const char *const texts[] = {"input_text",     "output_text", "text", "summary_text",
                                        "reasoning_text", "refusal",     NULL};
    static const struct {
        const char *type, *url, *lacks;
        mt_chat_part_type kind;
    } media[] = {
        {"input_image", "image_url", "an input_image has no string as its image_url or file_id", MT_CHAT_IMAGE},
        {"input_video", "video_url", "an input_video has no string as its video_url", MT_CHAT_VIDEO}};
    const char *type = mt_body_text(part, "type");
    const json_t *text = json_object_get(part, strcmp(type, "refusal") == 0 ? "refusal" : "text");

    for (size_t i = 0; i < MT_COUNT(media); i++)
        if (strcmp(type, media[i].type) == 0) {
            if (!json_is_string(json_object_get(part, media[i].url)) &&
                !(media[i].kind == MT_CHAT_IMAGE && json_is_string(json_object_get(part, "file_id"))))
                return bad(r, media[i].lacks, "");
            mt_chat_add_medium(r->chat, to, media[i].kind, part, place_of(r));
            return true;
        }
    if (strcmp(type, "input_file") == 0)
        return add_file(r, to, part);
    if (mt_words_have(texts, type)) {
        if (!json_is_string(text))
            return bad(r, "a part has no string as its text", "");
        mt_chat_add_text(r->chat, to, mt_chat_text_of(text));
        return true;
    }
    return strstr(type, "audio") ? bad(r, "audio is not supported: send text", "")
                                 : bad(r, "parts of this type are not known: ", *type ? type : "(none)");
}

/* A string, or a list of parts. member: of the item, which has it. */
static bool add_content(reader *r, mt_chat_message *to, const json_t *content, const char *member)
{
    bool ok = true;

    if (json_is_string(content)) {
        mt_chat_add_text(r->chat, to, mt_chat_text_of(content));
        return true;
    }
    if (!json_is_array(content))
        return bad(r, "content is neither a string nor a list of parts but ", mt_json_kind(content));
    to->list = true;
    r->member = member;
    for (r->part = 0; ok && r->part < json_array_size(content); r->part++)
        ok = add_part(r, to, json_array_get(content, r->part));
    r->member = NULL;
    return ok;
}

/* Puts the assistant's message into the chat: nothing joins it any more. */
static void put_said(reader *r)
{
    if (r->open)
        mt_chat_put(r->chat, &r->said);
    r->open = false;
}

/* Begins a message of the assistant's, with the reasoning that waited for it. */
static void begin_said(reader *r)
{
    put_said(r);
    r->said = r->thoughts;
    r->said.list = r->thoughts.sent > 0;
    r->thoughts = (mt_chat_message){.role = MT_CHAT_ASSISTANT};
    r->open = true;
}

/* The same, with an empty text, for calls. */
static void begin_empty(reader *r)
{
    begin_said(r);
    mt_chat_add_text(r->chat, &r->said, (mt_chat_text){.data = ""});
}

/* Adds a message that is not the assistant's. */
static bool add_other(reader *r, mt_chat_message message, const json_t *content, const char *member)
{
    if (!add_content(r, &message, content, member))
        return false;
    put_said(r);
    mt_chat_put(r->chat, &message);
    return true;
}

static bool add_message(reader *r, const json_t *item)
{
    static const struct {
        const char *name;
        mt_chat_role role;
    } roles[] = {{"assistant", MT_CHAT_ASSISTANT},
                 {"user", MT_CHAT_USER},
                 {"system", MT_CHAT_SYSTEM},
                 {"developer", MT_CHAT_SYSTEM}};
    const json_t *content = json_object_get(item, "content");
    size_t i = 0;

    while (i < MT_COUNT(roles) && strcmp(mt_body_text(item, "role"), roles[i].name) != 0)
        i++;
    if (i == MT_COUNT(roles))
        return bad(r, "the role is none of user, assistant, system and developer", "");
    if (i > 0)
        return add_other(r, (mt_chat_message){.role = roles[i].role}, content, "content");
    begin_said(r);
    return add_content(r, &r->said, content, "content");
}

/* arguments: NULL where they have the wrong type. */
static bool add_call_of(reader *r, const json_t *item, const json_t *arguments)
{
    const json_t *name = json_object_get(item, "name"), *id = json_object_get(item, "call_id");
    mt_chat_call call;

    if (!json_is_string(name) || !json_is_string(id) || !arguments)
        return bad(r, "a call needs strings as its name, its call_id and its arguments or input", "");
    if (!r->open || r->thoughts.sent)
        begin_empty(r);
    call = (mt_chat_call){.id = mt_chat_text_of(id),
                          .name = mt_responses_name(r->ask, json_object_get(item, "namespace"), name),
                          .arguments = arguments};
    json_object_set_new_nocheck(r->calls, json_string_value(id), json_true());
    mt_chat_add_call(r->chat, &r->said, call);
    return true;
}

static bool add_call(reader *r, const json_t *item)
{
    const json_t *arguments = json_object_get(item, "arguments");

    return add_call_of(r, item, json_is_string(arguments) ? arguments : NULL);
}

static bool add_custom_call(reader *r, const json_t *item)
{
    const json_t *input = json_object_get(item, "input");

    return add_call_of(r, item, json_is_string(input) ? mt_ask_own(r->ask, json_pack("{s:O}", "input", input)) : NULL);
}

static bool add_output(reader *r, const json_t *item)
{
    const json_t *id = json_object_get(item, "call_id");

    if (!json_is_string(id))
        return bad(r, "the output of a call has no string as its call_id", "");
    return add_other(r, (mt_chat_message){.role = MT_CHAT_TOOL, .call_id = mt_chat_text_of(id)},
                     json_object_get(item, "output"), "output") &&
           (json_object_get(r->calls, json_string_value(id)) ||
            bad(r, "no call before this output has its call_id: send the call, too: ", json_string_value(id)));
}

/* The reasoning that a client carried in encrypted_content. */
static void add_carried(reader *r, const json_t *item)
{
    mt_chat_text text = mt_chat_text_of(json_object_get(item, "encrypted_content"));
    const size_t mark = strlen(MT_RESPONSES_CARRIED);

    if (text.len <= mark || memcmp(text.data, MT_RESPONSES_CARRIED, mark) != 0)
        return;
    mt_chat_add_reasoning(r->chat, &r->thoughts, (mt_chat_text){text.data + mark, text.len - mark});
}

/* Its content, or else its summary, or else what was carried. */
static bool add_reasoning(reader *r, const json_t *item)
{
    const json_t *content = mt_body_get(item, "content");
    const json_t *texts = json_array_size(content) ? content : json_object_get(item, "summary");
    size_t said = 0;

    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_object_get(json_array_get(texts, i), "text");

        if (!json_is_string(text))
            return bad(r, "reasoning has a part without text", "");
        mt_chat_add_reasoning(r->chat, &r->thoughts, mt_chat_text_of(text));
        said += json_string_length(text);
    }
    if (said == 0)
        add_carried(r, item);
    return true;
}

/* A summary that mt_responses_compact wrote, as something that the assistant said. */
static bool add_compaction(reader *r, const json_t *item)
{
    static const char head[] = "Summary of the conversation so far:\n\n";
    mt_chat_text text = mt_chat_text_of(json_object_get(item, "encrypted_content"));
    const size_t mark = strlen(MT_RESPONSES_CARRIED);

    if (text.len < mark || memcmp(text.data, MT_RESPONSES_CARRIED, mark) != 0)
        return bad(r, "the encrypted_content of a compaction is not of this server: send the items themselves", "");
    begin_said(r);
    mt_chat_add_text(r->chat, &r->said, (mt_chat_text){.data = head, .len = sizeof(head) - 1});
    mt_chat_add_text(r->chat, &r->said, (mt_chat_text){text.data + mark, text.len - mark});
    put_said(r);
    return true;
}

static bool add_item(reader *r, const json_t *item);

/* Finds an item that is kept; a new reference, or NULL. Ids of items contain that of their response: msg_XYZ_1 is in
   resp_XYZ. */
static json_t *find_item(struct mt_store *store, const char *id)
{
    const char *random = strchr(id, '_'), *end = strrchr(id, '_');
    char response[MT_RANDOM_ID];
    json_t *kept, *items, *found = NULL;

    if (!random || end == random || end - random >= (ptrdiff_t)sizeof(response) - 8)
        return NULL;
    snprintf(response, sizeof(response), "resp%.*s", (int)(end - random), random);
    kept = mt_store_get(store, response);
    items = mt_responses_inputs(kept);
    json_array_extend(items, json_object_get(json_object_get(kept, "response"), "output"));
    for (size_t i = 0; !found && i < json_array_size(items); i++)
        if (strcmp(mt_body_text(json_array_get(items, i), "id"), id) == 0)
            found = json_incref(json_array_get(items, i));
    json_decref(items);
    json_decref(kept);
    return found;
}

static bool add_reference(reader *r, const json_t *item)
{
    const char *id = mt_body_text(item, "id");
    json_t *found = find_item(r->ask->store, id);

    return found ? add_item(r, mt_ask_own(r->ask, found))
                 : mt_failure_set(r->why, 404, "item_not_found", place_of(r),
                                  "%s[%zu]: no item \"%.60s\" is kept here: send the item itself", r->list, r->at, id);
}

static const struct {
    const char *type;
    bool (*add)(reader *r, const json_t *item);
} item_types[] = {
    {"message", add_message},
    {"function_call", add_call},
    {"function_call_output", add_output},
    {"custom_tool_call", add_custom_call},
    {"custom_tool_call_output", add_output},
    {"reasoning", add_reasoning},
    {"item_reference", add_reference},
    {"compaction", add_compaction},
};

/* Items of tools that OpenAI's servers run: ignored, with a note. */
static bool is_hosted(const char *type)
{
    static const char *const types[] = {"web_search_call",
                                        "file_search_call",
                                        "computer_call",
                                        "computer_call_output",
                                        "code_interpreter_call",
                                        "image_generation_call",
                                        "mcp_call",
                                        "mcp_list_tools",
                                        "tool_search_call",
                                        "tool_search_output",
                                        NULL};

    return mt_words_have(types, type);
}

static bool add_item(reader *r, const json_t *item)
{
    const char *type = json_object_get(item, "type") ? mt_body_text(item, "type") : "message";

    if (!json_is_object(item))
        return bad(r, "an item is an object, not ", mt_json_kind(item));
    for (size_t i = 0; i < MT_COUNT(item_types); i++)
        if (strcmp(type, item_types[i].type) == 0)
            return item_types[i].add(r, item);
    if (!is_hosted(type))
        return bad(r, "items of this type are not known: ", type);
    mt_ask_ignore(r->ask, type);
    return true;
}

static bool add_items(reader *r, const json_t *items)
{
    for (r->at = 0; r->at < json_array_size(items); r->at++)
        if (!add_item(r, json_array_get(items, r->at)))
            return false;
    return true;
}

static bool read_input(reader *r, const json_t *input)
{
    if (json_is_string(input))
        return add_other(r, (mt_chat_message){.role = MT_CHAT_USER}, input, NULL);
    if (!json_is_array(input))
        return mt_failure_type(r->why, "input", input, "a string or a list of items");
    return add_items(r, input);
}

static void note_inside(mt_ask *ask)
{
    static const char *const members[] = {
        "arguments", "call_id", "caller", "content", "encrypted_content", "id",   "input",      "name", "namespace",
        "output",    "phase",   "role",   "status",  "summary",           "type", "created_by", NULL};

    mt_body_note(ask, "input", json_object_get(ask->body, "input"), members, mt_body_part_members);
}

/* Adds an input to the list of all items. */
static void collect(json_t *all, const json_t *input)
{
    for (size_t i = 0; i < json_array_size(input); i++)
        json_array_append(all, json_array_get(input, i));
    if (json_is_string(input))
        json_array_append_new(all, json_pack("{s:s, s:O}", "role", "user", "content", input));
}

bool mt_responses_items(mt_ask *ask, json_t **all, mt_failure *why)
{
    reader r = {.ask = ask,
                .chat = &ask->chat,
                .list = "previous_response_id.input",
                .thoughts = {.role = MT_CHAT_ASSISTANT},
                .calls = json_object(),
                .why = why};
    json_t *chain = json_array();
    bool ok;

    *all = json_array();
    mt_ask_own(ask, chain);
    mt_ask_own(ask, r.calls);
    ok = mt_responses_chain(ask->recent, ask->store, mt_body_text(ask->body, "previous_response_id"), chain, why);
    for (size_t i = 0; ok && i < json_array_size(chain); i++) {
        const json_t *kept = json_array_get(chain, i);

        const json_t *output = json_object_get(json_object_get(kept, "response"), "output");

        ok = read_input(&r, json_object_get(kept, "input")) && add_items(&r, output);
        collect(*all, json_object_get(kept, "input"));
        collect(*all, output);
    }
    r.list = "input";
    if (mt_body_get(ask->body, r.list) || json_array_size(chain) == 0)
        ok = ok && read_input(&r, json_object_get(ask->body, r.list));
    collect(*all, json_object_get(ask->body, r.list));
    note_inside(ask);
    if (ok && r.thoughts.sent)
        begin_empty(&r);
    put_said(&r);
    return ok;
}

mt_chat_text mt_responses_name(mt_ask *ask, const json_t *space, const json_t *name)
{
    const char *s = json_string_value(space), *joined;

    if (!s || !*s)
        return mt_chat_text_of(name);
    joined = mt_arena_printf(ask->arena, "%s%s%s", s, s[strlen(s) - 1] == '_' ? "" : "__", json_string_value(name));
    ask->chat.starved = ask->chat.starved || !joined;
    return (mt_chat_text){.data = joined ? joined : "", .len = joined ? strlen(joined) : 0};
}
