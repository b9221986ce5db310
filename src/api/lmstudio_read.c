/* Reads what LM Studio's SDKs send of a chat: the history becomes messages, and the settings fields, as OpenAI has
   them; from there on the reader of chat completions goes on. */
#include <stdio.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/json_body.h"
#include "api/lmstudio_socket.h"
#include "base/json_tree.h"

const json_t *mt_lmstudio_parameter(const json_t *body)
{
    const json_t *given = mt_body_get(body, "creationParameter");

    return given ? given : mt_body_get(body, "parameter");
}

const json_t *mt_lmstudio_named(const json_t *body)
{
    static const char *const names[] = {"instanceReference", "identifier", "path", "modelKey"};
    const json_t *parameter = mt_lmstudio_parameter(body), *specifier = mt_body_get(parameter, "modelSpecifier");

    specifier = specifier ? specifier : mt_body_get(parameter, "specifier");
    specifier = specifier ? specifier : parameter;
    if (mt_body_get(specifier, "query"))
        specifier = mt_body_get(specifier, "query");
    for (size_t i = 0; i < MT_COUNT(names); i++)
        if (i != 1 || !mt_body_get(parameter, "modelKey")) /* that beside a key is what the model is to be called */
            if (json_string_length(mt_body_get(specifier, names[i])) > 0)
                return mt_body_get(specifier, names[i]);
    return NULL;
}

/* The parts of a message's content as OpenAI has them; NULL: *why, one is of a kind that there is not. */
static json_t *read_parts(const json_t *content, mt_failure *why)
{
    json_t *parts = json_array();
    const json_t *part;
    size_t i;

    json_array_foreach(content, i, part) {
        const char *type = mt_body_text(part, "type");

        if (strcmp(type, "text") == 0) {
            json_array_append(parts, (json_t *)(uintptr_t)part);
        } else if (strcmp(type, "file") == 0 && strcmp(mt_body_text(part, "fileType"), "image") == 0) {
            json_t *url = json_sprintf("upload:%s", mt_body_text(part, "identifier"));

            json_array_append_new(parts, mt_body_image_part(url));
            json_decref(url);
        } else if (strcmp(type, "file") == 0) {
            json_decref(parts);
            mt_failure_unsupported(why, "history", "has a file that is no picture: send its text in a message");
            return NULL;
        }
    }
    return parts;
}

/* The calls of an assistant's message; NULL: it has none. */
static json_t *read_calls(const json_t *content)
{
    json_t *calls = NULL;
    const json_t *part;
    size_t i;

    json_array_foreach(content, i, part) {
        const json_t *call = mt_body_get(part, "toolCallRequest"), *arguments = mt_body_get(call, "arguments");
        mt_buf text = {.limit = MT_LIMIT_ANSWER_BYTES};
        json_t *function, *made;

        if (!call)
            continue;
        if (!arguments || !mt_json_tree_write(&text, arguments)) {
            text.len = 0;
            mt_buf_puts(&text, "{}");
        }
        function = json_pack("{s:O?,s:s%}", "name", mt_body_get(call, "name"), "arguments", text.data, text.len);
        made = json_pack("{s:s,s:o}", "type", "function", "function", function);
        mt_body_copy(made, call, "id");
        calls = calls ? calls : json_array();
        json_array_append_new(calls, made);
        mt_buf_free(&text);
    }
    return calls;
}

/* Each result becomes a message. */
static void read_results(const json_t *content, json_t *messages)
{
    const json_t *part;
    size_t i;

    json_array_foreach(content, i, part) {
        json_t *message = json_pack("{s:s}", "role", "tool");

        mt_body_copy(message, part, "content");
        if (mt_body_get(part, "toolCallId"))
            json_object_set(message, "tool_call_id", json_object_get(part, "toolCallId"));
        json_array_append_new(messages, message);
    }
}

static bool read_message(const json_t *message, json_t *messages, mt_failure *why)
{
    const char *role = mt_body_text(message, "role");
    const json_t *content = mt_body_get(message, "content");
    json_t *made, *parts, *calls;

    if (strcmp(role, "tool") == 0) {
        read_results(content, messages);
        return true;
    }
    parts = read_parts(content, why);
    if (!parts)
        return false;
    made = json_pack("{s:s}", "role", role);
    calls = strcmp(role, "assistant") == 0 ? read_calls(content) : NULL;
    if (json_array_size(parts) == 1 && mt_body_get(json_array_get(parts, 0), "text"))
        mt_body_copy(made, json_array_get(parts, 0), "text");
    if (json_object_get(made, "text")) { /* a plain string is what most templates know */
        json_object_set(made, "content", json_object_get(made, "text"));
        json_object_del(made, "text");
    } else if (json_array_size(parts) || !calls)
        json_object_set(made, "content", parts);
    if (calls && json_string_length(json_object_get(made, "content")) == 0)
        json_object_del(made, "content");
    if (calls)
        json_object_set_new(made, "tool_calls", calls);
    json_decref(parts);
    json_array_append_new(messages, made);
    return true;
}

/* Settings that have a field of their own. checked: the value is {"checked", "value"}. */
static const struct {
    const char *key, *field;
    bool checked;
} settings[] = {{"temperature", "temperature", false},
                {"stopStrings", "stop", false},
                {"topKSampling", "top_k", false},
                {"topPSampling", "top_p", true},
                {"minPSampling", "min_p", true},
                {"repeatPenalty", "repetition_penalty", true},
                {"maxPredictedTokens", "max_tokens", true},
                {"seed", "seed", true},
                {"logProbs", "top_logprobs", true},
                {"llama.frequencyPenalty", "frequency_penalty", true},
                {"llama.presencePenalty", "presence_penalty", true},
                {"llama.locallyTypicalSampling", "typical_p", true},
                {"llama.tailFreeSampling", "tfs_z", true},
                {"llama.xtcProbability", "xtc_probability", true},
                {"llama.mirostatSampling", "mirostat_mode", false}};

/* {"type":"json","jsonSchema":..}, {"type":"gbnf","gbnfGrammar":..} */
static void read_structured(const json_t *value, json_t *body)
{
    const json_t *schema = mt_body_get(value, "jsonSchema");
    const char *type = mt_body_text(value, "type");

    if (strcmp(type, "gbnf") == 0 && mt_body_get(value, "gbnfGrammar"))
        json_object_set(body, "grammar", json_object_get(value, "gbnfGrammar"));
    else if (strcmp(type, "json") == 0)
        json_object_set_new(body, "response_format",
                            schema ? json_pack("{s:s,s:{s:s,s:O}}", "type", "json_schema", "json_schema", "name",
                                               "answer", "schema", schema)
                                   : json_pack("{s:s}", "type", "json_object"));
}

static void read_tools(const json_t *value, json_t *body)
{
    if (json_array_size(mt_body_get(value, "tools")) == 0)
        return;
    mt_body_copy(body, value, "tools");
    if (json_is_true(mt_body_get(value, "force")))
        json_object_set_new(body, "tool_choice", json_string("required"));
}

/* [[token, bias], ...] */
static void read_bias(const json_t *value, json_t *body)
{
    json_t *biases = json_object();
    const json_t *pair;
    size_t i;

    json_array_foreach(value, i, pair) {
        const json_t *bias = json_array_get(pair, 1);
        char id[24];

        snprintf(id, sizeof(id), "%" JSON_INTEGER_FORMAT, json_integer_value(json_array_get(pair, 0)));
        json_object_set_new(biases, id, json_is_number(bias) ? mt_body_share(bias) : json_integer(-100));
    }
    json_object_set_new(body, "logit_bias", biases);
}

/* Whether a template of a client's only puts the texts of all messages one behind the other. */
static bool is_plain(const json_t *value)
{
    const char *template = mt_body_text(mt_body_get(value, "jinjaPromptTemplate"), "template");

    return strcmp(template + strspn(template, " \n"),
                  "{% for message in messages %}{{ message['content'] }}{% endfor %}") == 0;
}

/* Reads a setting that is no plain field. False: it is not known. */
static bool read_other(const char *key, const json_t *value, json_t *body)
{
    if (strcmp(key, "structured") == 0)
        read_structured(value, body);
    else if (strcmp(key, "tools") == 0)
        read_tools(value, body);
    else if (strcmp(key, "llama.logitBias") == 0)
        read_bias(value, body);
    else if (strcmp(key, "promptTemplate") == 0 && is_plain(value))
        json_object_set_new(body, "manual", json_object());
    else if (strcmp(key, "promptTemplate") == 0 && strcmp(mt_body_text(value, "type"), "jinja") == 0)
        mt_body_copy(body, mt_body_get(value, "jinjaPromptTemplate"), "template");
    else if (strcmp(key, "promptTemplate") == 0 && mt_body_get(value, "manualPromptTemplate"))
        json_object_set_new(body, "manual", mt_body_share(mt_body_get(value, "manualPromptTemplate")));
    else if (strcmp(key, "systemPrompt") == 0 || strcmp(key, "contextOverflowPolicy") == 0)
        json_object_set_new(body, key, mt_body_share(value));
    else /* the last two are the client's own business, and what is always done */
        return strcmp(key, "toolNaming") == 0 ||
               (strcmp(key, "reasoning.parsing") == 0 && json_is_true(mt_body_get(value, "enabled")));
    return true;
}

static void read_setting(mt_ask *ask, const json_t *setting, json_t *body)
{
    static const char begin[] = "llm.prediction.";
    const char *key = mt_body_text(setting, "key");
    const json_t *value = mt_body_get(setting, "value");

    if (strncmp(key, begin, sizeof(begin) - 1) != 0) {
        mt_ask_ignore(ask, key);
        return;
    }
    key += sizeof(begin) - 1;
    for (size_t i = 0; i < MT_COUNT(settings); i++)
        if (strcmp(key, settings[i].key) == 0) {
            if (!settings[i].checked)
                json_object_set_new(body, settings[i].field, mt_body_share(value));
            else if (json_is_true(mt_body_get(value, "checked")))
                json_object_set_new(body, settings[i].field, mt_body_share(mt_body_get(value, "value")));
            else
                json_object_del(body, settings[i].field);
            return;
        }
    if (!read_other(key, value, body))
        mt_ask_ignore(ask, key);
}

/* The settings of all layers; a later layer has the last word. */
static void read_settings(mt_ask *ask, const json_t *stack, json_t *body)
{
    const json_t *layer, *setting;
    size_t i, k;

    json_array_foreach(mt_body_get(stack, "layers"), i, layer)
        json_array_foreach(mt_body_get(mt_body_get(layer, "config"), "fields"), k, setting)
            read_setting(ask, setting, body);
}

/* Appends the text that a manual template has before or behind messages of a role, and the text of a message. */
static void add_side(mt_buf *out, const json_t *manual, const char *side, const char *role)
{
    char name[32];

    snprintf(name, sizeof(name), "%s%c%s", side, *role - 'a' + 'A', *role ? role + 1 : "");
    mt_buf_puts(out, mt_body_text(manual, name));
}

static void add_text(mt_buf *out, const json_t *content)
{
    const json_t *part;
    size_t i;

    mt_buf_puts(out, mt_json_word(content) ? mt_json_word(content) : "");
    json_array_foreach(content, i, part)
        mt_buf_puts(out, mt_body_text(part, "text"));
}

/* With a manual template, as "complete" of the SDK has an empty one, the messages become a prompt. */
static void set_prompt(json_t *body, const json_t *raw)
{
    const json_t *manual = json_object_get(body, "manual"), *message;
    mt_buf text = {.limit = MT_LIMIT_ANSWER_BYTES};
    size_t i;

    if (raw)
        json_object_set_new(body, "prompt", mt_body_share(raw));
    else {
        json_array_foreach(json_object_get(body, "messages"), i, message) {
            add_side(&text, manual, "before", mt_body_text(message, "role"));
            add_text(&text, json_object_get(message, "content"));
            add_side(&text, manual, "after", mt_body_text(message, "role"));
        }
        add_side(&text, manual, "before", "assistant");
        json_object_set_new(body, "prompt", json_stringn(text.data ? text.data : "", text.len));
    }
    mt_buf_free(&text);
    if (json_object_get(body, "top_logprobs"))
        json_object_set(body, "logprobs", json_object_get(body, "top_logprobs"));
    for (i = 0; i < 4; i++)
        json_object_del(body, (const char *const[]){"manual", "messages", "tools", "top_logprobs"}[i]);
}

/* Moves the settings that are no fields of chat completions out of the body. */
static void settle(mt_ask *ask, json_t *body, json_t *messages)
{
    const json_t *system = json_object_get(body, "systemPrompt");
    const char *first = mt_body_text(json_array_get(messages, 0), "role");

    if (json_string_length(system) > 0 && strcmp(first, "system") != 0)
        json_array_insert_new(messages, 0, json_pack("{s:s,s:O}", "role", "system", "content", system));
    ask->forgets = *mt_body_text(body, "contextOverflowPolicy") &&
                   strcmp(mt_body_text(body, "contextOverflowPolicy"), "stopAtLimit") != 0;
    json_object_del(body, "systemPrompt");
    json_object_del(body, "contextOverflowPolicy");
    if (json_object_get(body, "template"))
        json_object_set(body, "chat_template", json_object_get(body, "template"));
    json_object_del(body, "template");
    if (json_object_get(body, "top_logprobs"))
        json_object_set_new(body, "logprobs", json_true());
}

/* The body of a request for chat completions; false: *why. */
static bool translate(mt_ask *ask, json_t *body, mt_failure *why)
{
    const json_t *parameter = mt_lmstudio_parameter(ask->body), *raw = mt_body_get(parameter, "rawPrompt"), *message,
                 *given = mt_body_get(mt_body_get(parameter, "history"), "messages");
    json_t *messages = json_array();
    size_t i;

    json_object_set_new(body, "messages", messages);
    if (!json_is_array(given) && !raw)
        return mt_failure_type(why, "history", given, "an object with a list of \"messages\"");
    json_array_foreach(given, i, message)
        if (!read_message(message, messages, why))
            return false;
    if (mt_lmstudio_named(ask->body))
        json_object_set_new(body, "model", mt_body_share(mt_lmstudio_named(ask->body)));
    read_settings(ask, mt_body_get(parameter, "predictionConfigStack"), body);
    if (json_array_size(mt_body_get(mt_body_get(parameter, "opts"), "toolDefinitions")))
        json_object_set_new(body, "tools",
                            mt_body_share(mt_body_get(mt_body_get(parameter, "opts"), "toolDefinitions")));
    settle(ask, body, messages);
    if (raw || json_object_get(body, "manual"))
        set_prompt(body, raw);
    return true;
}

bool mt_lmstudio_read(mt_ask *ask, mt_failure *why)
{
    const json_t *number = mt_body_get(ask->body, "channelId");
    json_t *body;
    bool ok;

    number = number ? number : mt_body_get(ask->body, "callId");
    mt_json_guard_begin();
    body = json_object();
    ok = translate(ask, body, why);
    ok = (mt_json_guard_end() || mt_failure_memory(why, NULL)) && ok;
    ask->body = mt_ask_own(ask, body);
    if (!ok || !(json_object_get(body, "prompt") ? mt_openai_completions : mt_openai_chat).read(ask, why))
        return false;
    ask->form.stream = true;
    if (!ask->extra)
        ask->extra = json_object();
    json_object_set_new(ask->extra, "number", mt_body_share(number));
    if (*ask->ignored)
        json_object_set_new(ask->extra, "ignored", json_sprintf("not looked at: %s", ask->ignored));
    return true;
}
