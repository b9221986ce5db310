/* Reads Gemini's contents into a chat: each becomes a message. Several contents in a row of the model's become one
   message, since clients keep each piece of a stream as a content of its own. */
#include <stdio.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/gemini.h"
#include "api/json_body.h"
#include "api/limits.h"
#include "base/alloc.h"
#include "base/json_tree.h"
#include "chat/document.h"
#include "media/source.h"

/* The contents while they are read. */
typedef struct reader {
    mt_ask *ask;
    mt_chat *chat;        /* the ask's */
    mt_body_calls calls;  /* of the last message that has some */
    mt_chat_message said; /* the message that is being read, where `open` */
    bool open;
    bool answers;         /* the content had results of calls, which are messages before this one */
    mt_chat_text *pieces; /* texts behind the last part of `said`, which become one; owned */
    size_t count, cap;
    bool thought; /* they are reasoning */
    mt_chat_text
        carried;       /* reasoning of `said` that came within a thought signature; data is NULL where there is none */
    const char *place; /* "systemInstruction" or "contents" */
    size_t at, part;   /* number of the content, and of its part */
    mt_failure *why;
} reader;

static const char *name_part(const reader *r, char out[MT_FAILURE_PARAM])
{
    if (strcmp(r->place, "contents") == 0)
        snprintf(out, MT_FAILURE_PARAM, "contents[%zu].parts[%zu]", r->at, r->part);
    else
        snprintf(out, MT_FAILURE_PARAM, "%s.parts[%zu]", r->place, r->part);
    return out;
}

/* Sets *why, with where the fault is. Returns false. */
static bool bad(reader *r, const char *sentence)
{
    char name[MT_FAILURE_PARAM];

    return mt_failure_value(r->why, name_part(r, name), "%s", sentence);
}

/* All pieces as one text, without anything between them. */
static mt_chat_text join(reader *r)
{
    size_t len = 0, at = 0;
    char *text;

    if (r->count == 1)
        return r->pieces[0];
    for (size_t i = 0; i < r->count; i++)
        len += r->pieces[i].len;
    text = mt_arena_alloc(r->ask->arena, len + 1);
    r->chat->starved = r->chat->starved || !text;
    for (size_t i = 0; text && i < r->count; i++) {
        memcpy(text + at, r->pieces[i].data, r->pieces[i].len);
        at += r->pieces[i].len;
    }
    return (mt_chat_text){.data = text ? text : "", .len = at};
}

static void end_text(reader *r)
{
    if (r->count > 0)
        (r->thought ? mt_chat_add_reasoning : mt_chat_add_text)(r->chat, &r->said, join(r));
    r->count = 0;
}

/* Puts the message that is being read into the chat. One of the model's that says nothing is left out, and so is one
   that only had results of calls. */
static void close_message(reader *r)
{
    mt_chat_message *m = &r->said;

    if (!r->open)
        return;
    end_text(r);
    r->open = false;
    if (m->reasoning.len == 0 && r->carried.len)
        mt_chat_add_reasoning(r->chat, m, r->carried);
    if (m->part_count == 0 && (m->role == MT_CHAT_ASSISTANT ? !m->call_count && !m->reasoning.len : r->answers))
        return;
    if (m->part_count == 0 && m->role != MT_CHAT_ASSISTANT)
        mt_chat_add_text(r->chat, m, (mt_chat_text){.data = ""});
    m->list = m->part_count != 1 || m->parts[0].type != MT_CHAT_TEXT;
    if (m->call_count)
        mt_body_open_calls(r->ask, &r->calls, m, r->chat->count);
    mt_chat_put(r->chat, m);
}

static void open_message(reader *r, mt_chat_role role)
{
    if (r->open && role == MT_CHAT_ASSISTANT && r->said.role == role)
        return;
    close_message(r);
    r->said = (mt_chat_message){.role = role};
    r->open = true;
    r->answers = false;
    r->carried = (mt_chat_text){.data = NULL};
}

/* Keeps the reasoning that a signature carries, for clients that do not send thoughts back. */
static void take_signature(reader *r, const json_t *signature)
{
    const size_t begin = strlen(MT_GEMINI_CARRIED);
    mt_buf text = {.limit = MT_LIMIT_REQUEST_MEMORY};
    json_t *carried = NULL;
    mt_error err;

    if (r->said.role != MT_CHAT_ASSISTANT || !json_is_string(signature))
        return;
    if (mt_base64_decode(&text, json_string_value(signature), json_string_length(signature), &err) &&
        text.len > begin && memcmp(text.data, MT_GEMINI_CARRIED, begin) == 0)
        carried = json_stringn(text.data + begin, text.len - begin); /* NULL where it is not UTF-8 */
    mt_buf_free(&text);
    if (carried)
        r->carried = mt_chat_text_of(mt_ask_own(r->ask, carried));
}

static bool add_text(reader *r, mt_chat_message *to, const json_t *part, const json_t *text)
{
    const bool thought = json_is_true(json_object_get(part, "thought"));

    (void)to;
    if (!json_is_string(text))
        return bad(r, "has a \"text\" that is no string: send one");
    if (thought && r->said.role != MT_CHAT_ASSISTANT)
        return bad(r, "is a thought, which only the model has: leave it out");
    if (json_string_length(text) == 0)
        return true;
    if (thought != r->thought)
        end_text(r);
    r->thought = thought;
    r->pieces = mt_grow(r->pieces, &r->cap, r->count + 1, sizeof(*r->pieces));
    r->pieces[r->count++] = mt_chat_text_of(text);
    return true;
}

/* Adds a picture or a video. source: new; the rest of the part says how closely it is looked at. */
static bool add_medium(reader *r, mt_chat_message *to, const json_t *part, bool video, json_t *source)
{
    const json_t *resolution = mt_body_get(part, "mediaResolution"), *metadata = mt_body_get(part, "videoMetadata");
    char name[MT_FAILURE_PARAM];

    mt_ask_own(r->ask, source);
    if (!mt_gemini_detail(mt_body_get(resolution, "level"), source))
        return bad(r, "has a \"mediaResolution\" whose level is not known: send MEDIA_RESOLUTION_LOW or its kin");
    if (video)
        mt_body_copy(source, metadata, "fps");
    if (to == &r->said)
        end_text(r);
    mt_chat_add_medium(r->chat, to, video ? MT_CHAT_VIDEO : MT_CHAT_IMAGE, source,
                       mt_arena_printf(r->ask->arena, "%s", name_part(r, name)));
    return true;
}

static bool is_type(const char *type, const char *kind)
{
    return strncmp(type, kind, strlen(kind)) == 0;
}

static bool refuse_type(reader *r)
{
    return bad(r,
               "has another \"mimeType\" than those of pictures, videos, PDFs and text: send one of image/, video/ or "
               "text/, or application/pdf");
}

static bool is_document(const char *type)
{
    return is_type(type, "application/pdf") || is_type(type, "text/");
}

/* Adds a document that is read later. source: new. */
static bool add_document(reader *r, mt_chat_message *to, json_t *source)
{
    char name[MT_FAILURE_PARAM];

    mt_ask_own(r->ask, source);
    if (to == &r->said)
        end_text(r);
    mt_chat_add_document(r->chat, to, source, mt_arena_printf(r->ask->arena, "%s", name_part(r, name)));
    return true;
}

static bool add_inline(reader *r, mt_chat_message *to, const json_t *part, const json_t *data)
{
    const json_t *type = mt_body_get(data, "mimeType"), *bytes = mt_body_get(data, "data");
    const char *word = mt_json_word(type);

    if (!word || !json_is_string(bytes))
        return bad(r, "has \"inlineData\" without \"mimeType\" or \"data\": send both as strings");
    if (is_document(word))
        return add_document(r, to,
                            json_pack("{s:s, s:{s:s, s:O, s:O}}", "type", "document", "source", "type", "base64",
                                      "media_type", type, "data", bytes));
    if (!is_type(word, "image/") && !is_type(word, "video/"))
        return refuse_type(r);
    return add_medium(r, to, part, is_type(word, "video/"),
                      json_pack("{s:s, s:{s:s, s:O, s:O}}", "type", "image", "source", "type", "base64", "media_type",
                                type, "data", bytes));
}

/* Without a type a file counts as a picture. */
static bool add_file(reader *r, mt_chat_message *to, const json_t *part, const json_t *file)
{
    const json_t *url = mt_body_get(file, "fileUri");
    const char *type = mt_body_text(file, "mimeType");

    if (!json_is_string(url))
        return bad(r, "has \"fileData\" without a \"fileUri\": send a URL that begins with data:, http: or https:");
    if (is_document(type))
        return add_document(r, to,
                            json_pack("{s:s, s:{s:s, s:O}}", "type", "document", "source", "type", "url", "url", url));
    if (*type && !is_type(type, "image/") && !is_type(type, "video/"))
        return refuse_type(r);
    return add_medium(r, to, part, is_type(type, "video/"),
                      is_type(type, "video/")
                          ? json_pack("{s:s, s:{s:O}}", "type", "video_url", "video_url", "url", url)
                          : mt_body_image_part(url));
}

static bool add_call(reader *r, mt_chat_message *to, const json_t *part, const json_t *call)
{
    const json_t *name = mt_body_get(call, "name"), *id = mt_body_get(call, "id"), *args = mt_body_get(call, "args");

    (void)part;
    if (to->role != MT_CHAT_ASSISTANT)
        return bad(r, "has a \"functionCall\", and only the model calls functions: send it with the role model");
    if (!json_is_string(name) || (id && !json_is_string(id)) || (args && !json_is_object(args)))
        return bad(r, "has a \"functionCall\" without a name, or whose id is no string or args no object: send these");
    end_text(r);
    mt_chat_add_call(
        r->chat, to,
        (mt_chat_call){.id = mt_chat_text_of(id), .name = mt_chat_text_of(name), .arguments = mt_body_arguments(args)});
    return true;
}

/* A function's result as text: the value alone of {"output": ..} and {"error": ..}, of any other object all of it. */
static mt_chat_text text_of(reader *r, const json_t *response)
{
    const bool alone = json_object_size(response) == 1;
    const json_t *error = alone ? json_object_get(response, "error") : NULL,
                 *output = alone ? json_object_get(response, "output") : NULL;
    const json_t *value = error ? error : output ? output : response;
    mt_buf text = {.limit = MT_LIMIT_REQUEST_MEMORY};
    size_t len;
    char *copy;

    if (json_is_string(output))
        return mt_chat_text_of(output);
    if (error)
        mt_buf_puts(&text, "Error: ");
    if (json_is_string(value))
        mt_buf_add(&text, json_string_value(value), json_string_length(value));
    else if (value)
        mt_json_tree_write(&text, value);
    len = text.len;
    copy = text.full ? NULL : mt_arena_copy(r->ask->arena, len ? text.data : "", len);
    mt_buf_free(&text);
    r->chat->starved = r->chat->starved || !copy;
    return (mt_chat_text){.data = copy ? copy : "", .len = copy ? len : 0};
}

/* Adds the pictures of a function's result. */
static bool add_result_media(reader *r, mt_chat_message *to, const json_t *parts)
{
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *data = mt_body_get(part, "inlineData"),
                     *file = mt_body_get(part, "fileData");

        if (!data && !file)
            return bad(r, "has a \"functionResponse\" with a part that is neither inlineData nor fileData: send one");
        if (data ? !add_inline(r, to, part, data) : !add_file(r, to, part, file))
            return false;
    }
    return true;
}

static bool add_result(reader *r, mt_chat_message *to, const json_t *part, const json_t *result)
{
    const json_t *name = mt_body_get(result, "name"), *id = mt_body_get(result, "id");
    const json_t *response = mt_body_get(result, "response");
    mt_chat_message answer = {.role = MT_CHAT_TOOL, .call_id = mt_chat_text_of(id)};

    (void)part;
    if (to->role != MT_CHAT_USER)
        return bad(r, "has a \"functionResponse\", and results are the user's: send it with the role user");
    if (!json_is_string(name) || (id && !json_is_string(id)) || (response && !json_is_object(response)))
        return bad(
            r, "has a \"functionResponse\" without a name, or whose id is no string or response no object: send these");
    mt_chat_add_text(r->chat, &answer, text_of(r, response));
    if (!add_result_media(r, &answer, mt_body_get(result, "parts")))
        return false;
    answer.list = answer.part_count > 1;
    mt_body_close_call(&r->calls, &answer, mt_chat_text_of(name));
    mt_chat_put(r->chat, &answer);
    r->answers = true;
    return true;
}

static const struct {
    const char *member;
    bool (*add)(reader *r, mt_chat_message *to, const json_t *part, const json_t *value); /* NULL: ignored, and noted */
} kinds[] = {
    {"text", add_text},
    {"inlineData", add_inline},
    {"fileData", add_file},
    {"functionCall", add_call},
    {"functionResponse", add_result},
    {"executableCode", NULL}, /* this and the following: tools that Google's servers run */
    {"codeExecutionResult", NULL},
    {"toolCall", NULL},
    {"toolResponse", NULL},
};

static bool add_part(reader *r, const json_t *part)
{
    take_signature(r, mt_body_get(part, "thoughtSignature"));
    for (size_t i = 0; i < MT_COUNT(kinds); i++) {
        const json_t *value = mt_body_get(part, kinds[i].member);

        if (value && !kinds[i].add)
            mt_ask_ignore(r->ask, kinds[i].member);
        if (value)
            return !kinds[i].add || kinds[i].add(r, &r->said, part, value);
    }
    if (mt_body_get(part, "thoughtSignature")) /* alone, at the end of a stream */
        return true;
    return bad(r, "has none of text, inlineData, fileData, functionCall and functionResponse: send one of them");
}

static bool add_parts(reader *r, const json_t *parts)
{
    for (r->part = 0; r->part < json_array_size(parts); r->part++)
        if (!add_part(r, json_array_get(parts, r->part)))
            return false;
    return true;
}

static bool read_system(reader *r, const json_t *system)
{
    const json_t *parts = mt_body_get(system, "parts");

    r->place = "systemInstruction";
    if (!system)
        return true;
    if (!json_is_array(parts))
        return mt_failure_type(r->why, r->place, system, "an object with a list of parts");
    open_message(r, MT_CHAT_SYSTEM);
    if (!add_parts(r, parts))
        return false;
    end_text(r);
    for (size_t i = 0; i < r->said.part_count; i++)
        if (r->said.parts[i].type != MT_CHAT_TEXT)
            return mt_failure_value(r->why, r->place, "has pictures: send text alone");
    r->answers = true; /* an empty one is left out */
    close_message(r);
    return true;
}

/* A content without a role is the user's. */
static bool read_content(reader *r, const json_t *content)
{
    const json_t *parts = mt_body_get(content, "parts"), *given = mt_body_get(content, "role");
    const char *role = given ? mt_json_word(given) : "user";
    char name[MT_FAILURE_PARAM];

    snprintf(name, sizeof(name), "contents[%zu]", r->at);
    if (!role || (strcmp(role, "user") != 0 && strcmp(role, "model") != 0 && strcmp(role, "function") != 0))
        return mt_failure_value(r->why, name, "has a role that is none of user, model and function: send one");
    if (*role != 'm' && json_array_size(parts) == 0)
        return mt_failure_value(r->why, name, "has no parts: send a list of at least one");
    if (parts && !json_is_array(parts))
        return mt_failure_value(r->why, name, "has parts that are no list: send one");
    open_message(r, *role == 'm' ? MT_CHAT_ASSISTANT : MT_CHAT_USER);
    return add_parts(r, parts);
}

/* Notes members of a content and of its parts that nothing reads. prefix: of the names. */
static void note_content(mt_ask *ask, const char *prefix, const json_t *content)
{
    static const char *const members[] = {"parts", "role", NULL};
    static const char *const part_members[] = {"text",
                                               "thought",
                                               "thoughtSignature",
                                               "inlineData",
                                               "fileData",
                                               "functionCall",
                                               "functionResponse",
                                               "videoMetadata",
                                               "mediaResolution",
                                               "partMetadata",
                                               /* whose names are noted: */ "executableCode",
                                               "codeExecutionResult",
                                               "toolCall",
                                               "toolResponse",
                                               NULL};
    static const char *const names[] = {"inlineData",       "fileData",      "functionCall",
                                        "functionResponse", "videoMetadata", "mediaResolution"};
    static const char *const known[][6] = {{"mimeType", "data", "displayName", NULL},
                                           {"mimeType", "fileUri", "displayName", NULL},
                                           {"id", "name", "args", NULL},
                                           {"id", "name", "response", "parts", NULL},
                                           {"fps", NULL},
                                           {"level", NULL}};
    const json_t *parts = json_object_get(content, "parts");
    char path[96];

    mt_fields_note(ask, prefix, content, NULL, 0, (const char *const *const[3]){members});
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);

        snprintf(path, sizeof(path), "%sparts[].", prefix);
        mt_fields_note(ask, path, part, NULL, 0, (const char *const *const[3]){part_members});
        for (size_t k = 0; k < MT_COUNT(names); k++) {
            snprintf(path, sizeof(path), "%sparts[].%s.", prefix, names[k]);
            mt_fields_note(ask, path, json_object_get(part, names[k]), NULL, 0,
                           (const char *const *const[3]){known[k]});
        }
    }
}

/* Where the last content is the model's text, the answer goes on with it, unless it has to have a format. */
static void set_continues(mt_ask *ask)
{
    const mt_chat_message *last = ask->chat.count ? &ask->chat.messages[ask->chat.count - 1] : NULL;

    ask->chat.continues = last && last->role == MT_CHAT_ASSISTANT && !last->list && last->parts[0].text.len &&
                          !last->call_count && ask->source.kind == MT_SOURCE_NONE;
}

static bool read_contents(mt_ask *ask, const json_t *body, mt_failure *why)
{
    const json_t *contents = mt_body_get(body, "contents"), *system = mt_body_get(body, "systemInstruction");
    reader r = {.ask = ask, .chat = &ask->chat, .why = why};
    bool ok;

    mt_chat_begin(&ask->chat, ask->arena, "contents");
    if (!json_is_array(contents))
        return mt_failure_type(why, "contents", contents, "a list of contents");
    ok = read_system(&r, system);
    r.place = "contents";
    for (; ok && r.at < json_array_size(contents); r.at++)
        ok = read_content(&r, json_array_get(contents, r.at));
    if (ok)
        close_message(&r);
    mt_free(r.pieces);
    note_content(ask, "systemInstruction.", system);
    for (size_t i = 0; i < json_array_size(contents); i++)
        note_content(ask, "contents[].", json_array_get(contents, i));
    return ok;
}

static bool read_body(mt_ask *ask, bool stream, mt_failure *why)
{
    /* The fields that this dialect reads, and those of Gemini's API that change nothing in an answer. All others are
       named in a warning. */
    static const char *const names[] = {
        "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model", "labels", "serviceTier",
        "store",    "timeout",           NULL};
    const json_t *body = mt_ask_own(ask, mt_gemini_camel(ask->body));
    json_t *settings = json_object();

    mt_ask_own(ask, settings);
    ask->body = settings; /* the tables of fields read ask->body */
    mt_fields_note(ask, "", body, NULL, 0, (const char *const *const[3]){names});
    if (mt_body_get(body, "cachedContent"))
        return mt_failure_unsupported(why, "cachedContent",
                                      "is not supported: send all contents, whose beginning is cached by itself");
    json_object_set_new(settings, "stream", json_boolean(stream));
    if (!mt_gemini_settings(ask, body, settings, why) || !mt_body_fields(ask, NULL, why) ||
        !read_contents(ask, body, why) || !mt_gemini_tools(ask, body, why))
        return false;
    ask->source_field = mt_gemini_name(ask->source_field);
    ask->think_field = mt_gemini_name(ask->think_field);
    set_continues(ask);
    return mt_body_end(ask, why);
}

static bool read_guarded(mt_ask *ask, bool stream, mt_failure *why)
{
    bool ok;

    mt_json_guard_begin();
    ok = read_body(ask, stream, why);
    if (!mt_json_guard_end())
        return mt_failure_memory(why, NULL);
    if (!ok)
        mt_gemini_rename(why);
    return ok;
}

bool mt_gemini_read(mt_ask *ask, mt_failure *why)
{
    return read_guarded(ask, false, why);
}

bool mt_gemini_read_stream(mt_ask *ask, mt_failure *why)
{
    return read_guarded(ask, true, why);
}

/* :countTokens takes contents, or a whole request in a field of its own. */
bool mt_gemini_read_count(mt_ask *ask, mt_failure *why)
{
    const json_t *inner = mt_body_get(ask->body, "generateContentRequest");

    inner = inner ? inner : mt_body_get(ask->body, "generate_content_request");
    if (inner && !json_is_object(inner))
        return mt_failure_type(why, "generateContentRequest", inner, "an object");
    if (inner)
        ask->body = inner;
    return read_guarded(ask, false, why);
}
