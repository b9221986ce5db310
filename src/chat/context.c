/* Trusted text (in which special tokens count) is: roles and types, which are written here; names of members; special
   tokens, which come from the checkpoint. What messages say is untrusted. */
#include "chat/context.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/json_tree.h"
#include "template/context.h"
#include "template/tojson.h"

enum { SHORT_ID = 9 }; /* letters of a call id in templates that want short ones */

/* The data that the functions below share. */
typedef struct maker {
    const mt_chat_context *context;
    const mt_chat_profile *profile;
    mt_tpl_run *run;
} maker;

const char *mt_chat_media_name(mt_chat_part_type type)
{
    return type == MT_CHAT_IMAGE ? "images" : "videos";
}

/* Sets a member to a client's text, untrusted. */
static bool set_text(maker *m, mt_tpl_dict *to, const char *name, mt_chat_text text)
{
    mt_tpl_value v;

    return mt_tpl_set_str(&v, mt_tpl_str_new(m->run, text.data ? text.data : "", text.len, true)) &&
           mt_tpl_set_name(m->run, to, name, v);
}

/* Sets a member to a word of ours, trusted. */
static bool set_word(maker *m, mt_tpl_dict *to, const char *name, const char *word)
{
    mt_tpl_value v;

    return mt_tpl_set_lit(m->run, &v, word) && mt_tpl_set_name(m->run, to, name, v);
}

static bool add_dict(maker *m, mt_tpl_items *items, mt_tpl_dict *dict)
{
    return mt_tpl_items_add(m->run, items, (mt_tpl_value){.kind = MT_TPL_DICT, .as.dict = dict});
}

static bool set_list(maker *m, mt_tpl_dict *to, const char *name, mt_tpl_items *items)
{
    mt_tpl_value list;

    return mt_tpl_items_end(m->run, items, MT_TPL_LIST, &list) && mt_tpl_set_name(m->run, to, name, list);
}

static void drop(void *json)
{
    json_decref(json);
}

/* A template value of JSON that was made for this rendering; owns json. */
static bool value_of(maker *m, json_t *json, bool trusted, mt_tpl_value *out)
{
    if (json && mt_arena_defer(m->run->arena, drop, json))
        return mt_tpl_from_json(m->run, json, trusted, out);
    json_decref(json);
    return mt_tpl_fail_limit(m->run, "the messages need more memory than a request may have; send fewer");
}

static bool has_reasoning_part(const mt_chat_profile *profile, const mt_chat_message *message)
{
    return profile->reasoning_as_part && message->role == MT_CHAT_ASSISTANT && message->reasoning.len > 0;
}

/* Adds {"type": TYPE, TYPE: text}. */
static bool add_text_part(maker *m, mt_tpl_items *items, const char *type, mt_chat_text text)
{
    mt_tpl_dict *part = mt_tpl_dict_new(m->run, 2);

    return part && set_word(m, part, "type", type) && set_text(m, part, type, text) && add_dict(m, items, part);
}

/* Sets the content as a list of parts. */
static bool set_parts(maker *m, mt_tpl_dict *to, const mt_chat_message *message)
{
    mt_tpl_items items = {0};

    if (has_reasoning_part(m->profile, message) && !add_text_part(m, &items, "thinking", message->reasoning))
        return false;
    for (size_t i = 0; i < message->part_count; i++) {
        const mt_chat_part *part = &message->parts[i];
        mt_tpl_value v;

        if (part->type == MT_CHAT_TEXT
                ? !add_text_part(m, &items, "text", part->text)
                : !value_of(m, mt_chat_shape_part(m->profile->shape[part->type], part->type), true, &v) ||
                      !mt_tpl_items_add(m->run, &items, v))
            return false;
    }
    return set_list(m, to, "content", &items);
}

/* Sets the content as a string: texts with line breaks between them, and markers for pictures and videos. */
static bool set_string(maker *m, mt_tpl_dict *to, const mt_chat_message *message)
{
    mt_tpl_build text = {.run = m->run};
    mt_tpl_value v;

    if (message->part_count == 1 && message->parts[0].type == MT_CHAT_TEXT)
        return set_text(m, to, "content", message->parts[0].text);
    for (size_t i = 0; i < message->part_count; i++) {
        const mt_chat_part *part = &message->parts[i];

        if (part->type != MT_CHAT_TEXT) {
            mt_tpl_build_lit(&text, m->context->marks->of[part->type].marker);
            continue;
        }
        if (i > 0 && message->parts[i - 1].type == MT_CHAT_TEXT)
            mt_tpl_build_add(&text, "\n", 1, true);
        mt_tpl_build_add(&text, part->text.data, part->text.len, true);
    }
    return mt_tpl_set_str(&v, mt_tpl_build_end(&text)) && mt_tpl_set_name(m->run, to, "content", v);
}

/* Whether the template gets the content as parts. *other: index of a picture or video that has no place; part_count:
   all have. */
static bool wants_parts(const mt_chat_context *c, const mt_chat_message *message, size_t *other)
{
    const bool string = c->profile->content[message->role].string;
    bool as_parts = c->profile->content[message->role].parts &&
                    (message->list || !string || has_reasoning_part(c->profile, message));

    for (size_t i = 0; i < message->part_count; i++)
        as_parts = as_parts && (message->parts[i].type == MT_CHAT_TEXT ||
                                c->profile->shape[message->parts[i].type] != MT_CHAT_SHAPE_NONE);
    for (*other = 0; *other < message->part_count; ++*other) {
        const mt_chat_part_type type = message->parts[*other].type;

        if (type != MT_CHAT_TEXT && !as_parts && !(c->marks->of[type].marker && string))
            break;
    }
    return as_parts;
}

/* A value as JSON text in Python's style, as templates print it otherwise. */
static bool set_json_text(maker *m, const json_t *value, mt_tpl_value *out)
{
    static const mt_tpl_json_style plain = {.ascii = false};
    mt_tpl_value v;
    const mt_tpl_str *text = mt_tpl_from_json(m->run, value, false, &v) ? mt_tpl_to_json(m->run, v, &plain) : NULL;

    return text && mt_tpl_set_str(out, mt_tpl_str_new(m->run, text->data, text->len, true));
}

/* Arguments as text: a string as it is, anything else as JSON. */
static bool arguments_text(maker *m, const json_t *given, mt_tpl_value *out)
{
    return json_is_string(given) ? mt_tpl_from_json(m->run, given, false, out) : set_json_text(m, given, out);
}

/* Arguments that are no object, such as those of a call that was cut off: as text, or, where the template accepts only
   objects, as text within one. */
static bool broken_arguments(maker *m, const json_t *given, mt_tpl_value *out)
{
    mt_tpl_dict *dict = mt_tpl_dict_new(m->run, 1);
    mt_tpl_value text;

    if (!dict || !arguments_text(m, given, &text))
        return false;
    *out = m->profile->broken_as_text ? text : (mt_tpl_value){.kind = MT_TPL_DICT, .as.dict = dict};
    return m->profile->broken_as_text || mt_tpl_set_name(m->run, dict, MT_CHAT_BROKEN, text);
}

/* The arguments of a call as an object, if they are one or a string that holds one; or as JSON text, where the template
   wants that. */
static bool arguments_of(maker *m, const json_t *given, mt_tpl_value *out)
{
    json_t *parsed;

    if (m->profile->arguments_as_text)
        return given ? arguments_text(m, given, out) : mt_tpl_set_lit(m->run, out, "{}");
    if (!given || (json_is_string(given) && json_string_length(given) == 0))
        return value_of(m, json_object(), false, out);
    if (!json_is_string(given))
        return json_is_object(given) ? mt_tpl_from_json(m->run, given, false, out) : broken_arguments(m, given, out);
    parsed = mt_json_tree_try(json_string_value(given), json_string_length(given));
    if (json_is_object(parsed))
        return value_of(m, parsed, false, out);
    json_decref(parsed);
    return broken_arguments(m, given, out);
}

/* Replaces an id by nine letters and digits that depend on the whole id, so that equal ids stay equal in every
   request. */
static bool short_id(maker *m, mt_chat_text *id)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t hash = mt_hash(id->data, id->len);
    bool fits = id->len == SHORT_ID;
    char *made;

    for (size_t i = 0; i < id->len; i++)
        fits = fits && (unsigned char)id->data[i] < 0x80 && isalnum((unsigned char)id->data[i]);
    if (fits)
        return true;
    made = mt_tpl_alloc(m->run, SHORT_ID);
    for (size_t i = 0; made && i < SHORT_ID; i++, hash /= sizeof(digits) - 1)
        made[i] = digits[hash % (sizeof(digits) - 1)];
    *id = (mt_chat_text){.data = made, .len = SHORT_ID};
    return made != NULL;
}

static bool set_id(maker *m, mt_tpl_dict *to, const char *name, mt_chat_text id)
{
    return !id.data || ((!m->profile->short_ids || short_id(m, &id)) && set_text(m, to, name, id));
}

static bool add_call(maker *m, mt_tpl_items *items, const mt_chat_call *call)
{
    mt_tpl_dict *item = mt_tpl_dict_new(m->run, 3), *function = mt_tpl_dict_new(m->run, 2);
    mt_tpl_value arguments;

    return item && function && set_word(m, item, "type", "function") && set_text(m, function, "name", call->name) &&
           arguments_of(m, call->arguments, &arguments) && mt_tpl_set_name(m->run, function, "arguments", arguments) &&
           mt_tpl_set_name(m->run, item, "function", (mt_tpl_value){.kind = MT_TPL_DICT, .as.dict = function}) &&
           set_id(m, item, "id", call->id) && add_dict(m, items, item);
}

static bool set_calls(maker *m, mt_tpl_dict *to, const mt_chat_message *message)
{
    mt_tpl_items items = {0};

    for (size_t i = 0; i < message->call_count; i++)
        if (!add_call(m, &items, &message->calls[i]))
            return false;
    return message->call_count == 0 || set_list(m, to, "tool_calls", &items);
}

static bool is_empty(const mt_chat_message *message)
{
    for (size_t i = 0; i < message->part_count; i++)
        if (message->parts[i].type != MT_CHAT_TEXT || message->parts[i].text.len > 0)
            return false;
    return true;
}

static bool set_content(maker *m, mt_tpl_dict *to, const mt_chat_message *message)
{
    size_t other;

    if (m->profile->call_without_content && message->call_count && is_empty(message))
        return mt_tpl_set_name(m->run, to, "content", mt_tpl_none());
    return (wants_parts(m->context, message, &other) ? set_parts : set_string)(m, to, message);
}

static bool add_message(maker *m, mt_tpl_items *list, const mt_chat_message *message)
{
    mt_tpl_dict *to = mt_tpl_dict_new(m->run, 4);

    return to && set_word(m, to, "role", mt_chat_role_name(message->role)) && set_content(m, to, message) &&
           (!message->reasoning.len || has_reasoning_part(m->profile, message) ||
            set_text(m, to, m->profile->reasoning, message->reasoning)) &&
           set_id(m, to, "tool_call_id", message->call_id) &&
           (!message->name.data || set_text(m, to, "name", message->name)) && set_calls(m, to, message) &&
           add_dict(m, list, to);
}

/* Whether a message with content and calls becomes two, since the template shows calls only without content. */
static bool is_split(const mt_chat_context *c, const mt_chat_message *message)
{
    return c->profile->call_without_content && message->call_count && !is_empty(message);
}

size_t mt_chat_context_count(const mt_chat_context *context)
{
    size_t count = context->chat->count;

    for (size_t i = 0; i < context->chat->count; i++)
        count += is_split(context, &context->chat->messages[i]);
    return count;
}

static bool set_messages(maker *m, mt_tpl_dict *to)
{
    const mt_chat *chat = m->context->chat;
    mt_tpl_items list = {0};

    for (size_t i = 0; i < chat->count && list.count < m->context->shown; i++) {
        mt_chat_message message = chat->messages[i];

        if (is_split(m->context, &message)) {
            mt_chat_message words = message;

            words.call_count = 0;
            message.part_count = 0;
            message.reasoning.len = 0;
            if (!add_message(m, &list, &words))
                return false;
        }
        if (list.count < m->context->shown && !add_message(m, &list, &message))
            return false;
    }
    return set_list(m, to, "messages", &list);
}

static bool set_json(maker *m, mt_tpl_dict *to, const char *name, const json_t *value)
{
    mt_tpl_value v;

    return !value || (mt_tpl_from_json(m->run, value, false, &v) && mt_tpl_set_name(m->run, to, name, v));
}

static bool lacks(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    return !value || json_is_null(value);
}

/* A copy of a tool as the template reads it, with the members that it needs and the client has left out; a new
   reference. */
static json_t *complete_tool(const mt_chat_profile *profile, const json_t *tool)
{
    json_t *made = json_copy((json_t *)(uintptr_t)tool), *function = json_object_get(made, "function"), *parameters;

    if (json_is_object(function)) {
        function = json_copy(function);
        json_object_set_new(made, "function", function);
    } else
        function = made;
    if (profile->needs_description && lacks(function, "description"))
        json_object_set_new(function, "description", json_string(""));
    if (profile->needs_parameters && lacks(function, "parameters"))
        json_object_set_new(function, "parameters", json_pack("{s:s, s:{}}", "type", "object", "properties"));
    parameters = json_object_get(function, "parameters");
    if (profile->needs_properties && json_is_object(parameters) && lacks(parameters, "properties")) {
        parameters = json_copy(parameters);
        json_object_set_new(parameters, "properties", json_object());
        json_object_set_new(function, "parameters", parameters);
    }
    if (!profile->flat_tools || function == made)
        return made;
    json_incref(function);
    json_decref(made);
    return function;
}

static bool set_tools(maker *m, mt_tpl_dict *to)
{
    const mt_chat_profile *profile = m->profile;
    const json_t *tools = m->context->chat->tools;
    json_t *list;
    mt_tpl_value v;

    if (!tools ||
        !(profile->needs_description || profile->needs_parameters || profile->needs_properties || profile->flat_tools))
        return set_json(m, to, "tools", tools);
    list = json_array();
    for (size_t i = 0; i < json_array_size(tools); i++)
        json_array_append_new(list, complete_tool(profile, json_array_get(tools, i)));
    return value_of(m, list, false, &v) && mt_tpl_set_name(m->run, to, "tools", v);
}

/* The request's "thinking" also gets the name that the template knows it by. */
static bool set_kwargs(maker *m, mt_tpl_dict *to)
{
    const mt_chat *chat = m->context->chat;
    const json_t *thinking = json_object_get(chat->kwargs, "enable_thinking");

    thinking = thinking ? thinking : chat->thinking;
    return set_json(m, to, "reasoning_effort", chat->effort) && set_json(m, to, "thinking_budget", chat->budget) &&
           set_json(m, to, "documents", chat->documents) && set_json(m, to, "enable_thinking", thinking) &&
           set_json(m, to, m->profile->thinking, thinking) && mt_tpl_set_members(m->run, to, chat->kwargs, false);
}

bool mt_chat_context_fill(const void *ctx, mt_tpl_run *run, mt_tpl_dict *variables)
{
    const mt_chat_context *c = ctx;
    maker m = {.context = c, .profile = c->profile, .run = run};

    return set_messages(&m, variables) && mt_tpl_set_name(run, variables, "tools", mt_tpl_none()) &&
           set_tools(&m, variables) && mt_tpl_set_name(run, variables, "documents", mt_tpl_none()) &&
           mt_tpl_set_name(run, variables, "add_generation_prompt", mt_tpl_bool(c->generation_prompt)) &&
           mt_tpl_set_members(run, variables, c->tokens, true) && set_kwargs(&m, variables);
}

/* Whether the template has a place for each picture and video of a message. False: *err. */
static bool check_places(const mt_chat_context *c, const mt_chat_message *message, mt_error *err)
{
    size_t other;

    (void)wants_parts(c, message, &other);
    return other == message->part_count ||
           mt_fail(err, MT_E_INVALID,
                   "%s: the chat template of this model has no place for %s in a message of role %s; send text only",
                   message->parts[other].place, mt_chat_media_name(message->parts[other].type),
                   mt_chat_role_name(message->role)) ||
           mt_fail_about(err, message->parts[other].place);
}

bool mt_chat_context_media(const mt_chat_context *context, mt_chat_media **media, size_t *count, mt_error *err)
{
    const mt_chat *chat = context->chat;
    size_t most = 1;

    *count = 0;
    for (size_t i = 0; i < chat->count; i++) {
        if (!check_places(context, &chat->messages[i], err))
            return false;
        for (size_t k = 0; k < chat->messages[i].part_count; k++)
            most += chat->messages[i].parts[k].type != MT_CHAT_TEXT;
    }
    *media = mt_arena_alloc(chat->arena, most * sizeof(**media));
    for (size_t i = 0; *media && i < chat->count; i++)
        for (size_t k = 0; k < chat->messages[i].part_count; k++) {
            const mt_chat_part *part = &chat->messages[i].parts[k];

            if (part->type != MT_CHAT_TEXT)
                (*media)[(*count)++] =
                    (mt_chat_media){.type = part->type, .source = part->source, .place = part->place};
        }
    return *media ||
           mt_fail(err, MT_E_TOO_LARGE, "the messages need more memory than a request may have; send fewer images");
}
