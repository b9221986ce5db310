/* Probes are conversations of words that no template contains, so that what comes out tells where they went. */
#include "chat/profile.h"

#include <string.h>

#include "base/alloc.h"

#define ALPHA "probe7alpha"
#define BETA "probe7beta"
#define GAMMA "probe7gamma"
#define DELTA "probe7delta"
#define EPSILON "probe7epsilon"

enum { PROBE_STEPS = 1000000 };

typedef struct prober {
    const mt_template *tpl;
    const json_t *tokens;
    mt_chat_profile *profile;
} prober;

/* Renders a conversation; takes messages. The text, free with mt_free, or NULL when the template fails. */
static char *render(const prober *p, json_t *messages, bool generation_prompt, size_t *loops_end)
{
    const mt_template_options options = {.steps = PROBE_STEPS, .watch = "messages"};
    json_t *context = json_pack("{s:o, s:n, s:n, s:b}", "messages", messages, "tools", "documents",
                                "add_generation_prompt", generation_prompt);
    mt_rendering r;
    mt_error err;
    char *text = NULL;

    if (!context)
        return NULL;
    json_object_update_missing(context, (json_t *)(uintptr_t)p->tokens);
    if (mt_template_render(p->tpl, context, &options, &r, &err)) {
        text = mt_strdup(r.text.data ? r.text.data : "");
        for (size_t i = 0; loops_end && i < r.mark_count; i++)
            *loops_end = r.marks[i].bytes.end > *loops_end ? r.marks[i].bytes.end : *loops_end;
    }
    mt_rendering_free(&r);
    json_decref(context);
    return text;
}

static json_t *message(const char *role, const char *content)
{
    return json_pack("{s:s, s:s}", "role", role, "content", content);
}

/* How often a word is in a text. */
static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

static bool has(const char *text, const char *word)
{
    return text && strstr(text, word);
}

/* Each word once, and in this order. */
static bool in_order(const char *text, const char *const *words, size_t count)
{
    const char *at = text;

    for (size_t i = 0; text && i < count; i++) {
        at = strstr(at, words[i]);
        if (!at || count_of(text, words[i]) != 1)
            return false;
        at += strlen(words[i]);
    }
    return text != NULL;
}

static json_t *call_message(json_t *arguments)
{
    return json_pack("{s:s, s:s, s:[{s:s, s:s, s:{s:s, s:o}}]}", "role", "assistant", "content", "", "tool_calls", "id",
                     "call_1", "type", "function", "function", "name", "probe_function", "arguments", arguments);
}

static json_t *arguments_of(const prober *p)
{
    return p->profile->arguments_as_text ? json_string("{\"" GAMMA "\": \"" DELTA "\"}")
                                         : json_pack("{s:s}", GAMMA, DELTA);
}

static json_t *result_message(json_t *content)
{
    return json_pack("{s:s, s:o, s:s, s:s}", "role", "tool", "content", content, "tool_call_id", "call_1", "name",
                     "probe_function");
}

/* Arguments: as an object where that comes out as JSON, otherwise as JSON text where that does. */
static void probe_arguments(prober *p)
{
    static const char *const words[] = {GAMMA, DELTA};
    char *object, *text;

    p->profile->arguments_as_text = false;
    object = render(p,
                    json_pack("[o, o, o]", message("user", BETA), call_message(arguments_of(p)),
                              result_message(json_string(EPSILON))),
                    true, NULL);
    p->profile->arguments_as_text = true;
    text = render(p,
                  json_pack("[o, o, o]", message("user", BETA), call_message(arguments_of(p)),
                            result_message(json_string(EPSILON))),
                  true, NULL);
    p->profile->arguments_as_text = !(in_order(object, words, 2) && !has(object, "'" GAMMA)) &&
                                    in_order(text, words, 2) && !has(text, "\\\"" GAMMA);
    mt_free(object);
    mt_free(text);
}

/* A conversation with the content under test in a message of that role; takes content. */
static json_t *conversation(const prober *p, mt_chat_role role, json_t *content)
{
    json_t *tested = json_pack("{s:s, s:O}", "role", mt_chat_role_name(role), "content", content), *all = NULL;

    switch (role) {
    case MT_CHAT_SYSTEM: all = json_pack("[o, o]", tested, message("user", BETA)); break;
    case MT_CHAT_USER: all = json_pack("[o]", tested); break;
    case MT_CHAT_ASSISTANT: all = json_pack("[o, o, o]", message("user", BETA), tested, message("user", GAMMA)); break;
    case MT_CHAT_TOOL:
        json_decref(tested);
        all = json_pack("[o, o, o]", message("user", BETA), call_message(arguments_of(p)),
                        result_message(json_incref(content)));
        break;
    }
    json_decref(content);
    return all;
}

/* A list that is printed as it is, in Python's way or as JSON, shows the key of its parts. */
static bool shows_no_more_keys(const char *parts, const char *string)
{
    static const char *const keys[] = {"'type'", "\"type\""};

    for (size_t i = 0; i < MT_COUNT(keys); i++)
        if (count_of(parts, keys[i]) != (string ? count_of(string, keys[i]) : 0))
            return false;
    return true;
}

static void probe_content(prober *p, mt_chat_role role)
{
    static const char *const words[] = {ALPHA};
    char *string = render(p, conversation(p, role, json_string(ALPHA)), true, NULL);
    char *parts =
        render(p, conversation(p, role, json_pack("[{s:s, s:s}]", "type", "text", "text", ALPHA)), true, NULL);

    p->profile->content[role].string = in_order(string, words, 1);
    p->profile->content[role].parts = in_order(parts, words, 1) && shows_no_more_keys(parts, string);
    if (!p->profile->content[role].string && !p->profile->content[role].parts)
        p->profile->content[role].string = true;
    mt_free(string);
    mt_free(parts);
}

json_t *mt_chat_shape_part(mt_chat_shape shape, mt_chat_part_type type)
{
    const char *name = type == MT_CHAT_IMAGE ? "image" : "video";
    const char *url_name = type == MT_CHAT_IMAGE ? "image_url" : "video_url";

    switch (shape) {
    case MT_CHAT_SHAPE_FIELD: return json_pack("{s:s, s:s}", "type", name, name, "");
    case MT_CHAT_SHAPE_URL: return json_pack("{s:s, s:{s:s}}", "type", url_name, url_name, "url", "");
    default: return json_pack("{s:s}", "type", name);
    }
}

/* Whether an image left a trace: the text became longer, or what stands right before the words is something else. (A
   template may leave its default system message out when there are images.) */
static bool adds_something(const char *with, const char *without)
{
    const char *a = strstr(with, ALPHA), *b = strstr(without, ALPHA);
    size_t same = 0;

    if (strlen(with) > strlen(without))
        return true;
    while (same < 8 && a - with > (ptrdiff_t)same && b - without > (ptrdiff_t)same &&
           a[-1 - (ptrdiff_t)same] == b[-1 - (ptrdiff_t)same])
        same++;
    return same < 8 && a - with != b - without;
}

/* A shape is right when it leaves the text as it is and adds something of the template's own. */
static void probe_shape(prober *p, mt_chat_part_type type)
{
    static const mt_chat_shape shapes[] = {MT_CHAT_SHAPE_TYPE, MT_CHAT_SHAPE_FIELD, MT_CHAT_SHAPE_URL};
    static const char *const words[] = {ALPHA};
    char *plain;

    p->profile->shape[type] = MT_CHAT_SHAPE_NONE;
    if (!p->profile->content[MT_CHAT_USER].parts)
        return;
    plain = render(p, json_pack("[{s:s, s:[{s:s, s:s}]}]", "role", "user", "content", "type", "text", "text", ALPHA),
                   true, NULL);
    for (size_t i = 0; has(plain, ALPHA) && !p->profile->shape[type] && i < MT_COUNT(shapes); i++) {
        json_t *messages = json_pack("[{s:s, s:[o, {s:s, s:s}]}]", "role", "user", "content",
                                     mt_chat_shape_part(shapes[i], type), "type", "text", "text", ALPHA);
        char *text = render(p, messages, true, NULL);

        if (in_order(text, words, 1) && adds_something(text, plain) && shows_no_more_keys(text, plain))
            p->profile->shape[type] = shapes[i];
        mt_free(text);
    }
    mt_free(plain);
}

/* The text between two words, free with mt_free; NULL when they are not there in that order. */
static char *between(const char *text, const char *from, const char *to)
{
    const char *begin = text ? strstr(text, from) : NULL, *end = begin ? strstr(begin, to) : NULL;
    char *part;

    if (!end)
        return NULL;
    begin += strlen(from);
    part = mt_alloc((size_t)(end - begin) + 1);
    memcpy(part, begin, (size_t)(end - begin));
    return part;
}

/* Whether a system message comes out where it stands, and not as if a user had said it. */
static void probe_system(prober *p)
{
    static const char *const words[] = {ALPHA, BETA, GAMMA, DELTA, EPSILON};
    char *middle = render(p,
                          json_pack("[o, o, o, o, o]", message("system", ALPHA), message("user", BETA),
                                    message("assistant", GAMMA), message("system", DELTA), message("user", EPSILON)),
                          true, NULL);
    char *last = render(p,
                        json_pack("[o, o, o, o, o]", message("system", ALPHA), message("user", BETA),
                                  message("assistant", GAMMA), message("user", DELTA), message("system", EPSILON)),
                        true, NULL);
    char *early = render(p,
                         json_pack("[o, o, o, o, o]", message("system", ALPHA), message("user", BETA),
                                   message("system", GAMMA), message("assistant", DELTA), message("user", EPSILON)),
                         true, NULL);
    char *as_system = between(middle, GAMMA, DELTA), *as_user = between(last, GAMMA, DELTA);

    p->profile->system_in_place = in_order(middle, words, 5) && in_order(last, words, 5) && in_order(early, words, 5) &&
                                  as_system && as_user && strcmp(as_system, as_user) != 0;
    mt_free(middle);
    mt_free(last);
    mt_free(early);
    mt_free(as_system);
    mt_free(as_user);
}

static bool reads_reasoning(const prober *p, const char *name, bool with_call)
{
    json_t *said = with_call ? call_message(arguments_of(p)) : message("assistant", BETA);
    char *text;
    bool read;

    json_object_set_new(said, name, json_string(ALPHA));
    text = with_call
               ? render(p, json_pack("[o, o, o]", message("user", EPSILON), said, result_message(json_string(BETA))),
                        true, NULL)
               : render(p, json_pack("[o, o]", message("user", EPSILON), said), false, NULL);
    read = has(text, ALPHA);
    mt_free(text);
    return read;
}

static void probe_reasoning(prober *p)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};

    p->profile->reasoning = names[0];
    for (size_t i = 0; i < MT_COUNT(names); i++)
        if (reads_reasoning(p, names[i], false) || reads_reasoning(p, names[i], true)) {
            p->profile->reasoning = names[i];
            return;
        }
}

static void probe_generation(prober *p)
{
    size_t end = 0;
    char *with = render(p, json_pack("[o]", message("user", ALPHA)), true, &end);
    char *without = render(p, json_pack("[o]", message("user", ALPHA)), false, NULL);

    p->profile->generation_after = with && without && end > 0 && strlen(with) > end && strlen(without) >= end &&
                                   memcmp(with, without, end) == 0 &&
                                   (strlen(without) == end || strcmp(with, without) == 0); /* some always write it */
    mt_free(with);
    mt_free(without);
}

void mt_chat_profile_probe(mt_chat_profile *profile, const mt_template *tpl, const json_t *tokens)
{
    prober p = {.tpl = tpl, .tokens = tokens, .profile = profile};

    *profile = (mt_chat_profile){.thinking = "enable_thinking"};
    if (!mt_template_reads(tpl, "enable_thinking") && mt_template_reads(tpl, "thinking"))
        profile->thinking = "thinking";
    probe_arguments(&p);
    for (size_t role = 0; role < MT_CHAT_ROLES; role++)
        probe_content(&p, (mt_chat_role)role);
    probe_shape(&p, MT_CHAT_IMAGE);
    probe_shape(&p, MT_CHAT_VIDEO);
    probe_system(&p);
    probe_reasoning(&p);
    probe_generation(&p);
}
