/* See profile.h. */
#include "chat/profile.h"

#include <string.h>

#include "base/alloc.h"
#include "chat/probe.h"

static const char *const words[] = {MT_PROBE_ALPHA, MT_PROBE_BETA, MT_PROBE_GAMMA, MT_PROBE_DELTA, MT_PROBE_EPSILON};

/* A conversation with the content in a message of that role; owns content. */
static json_t *conversation(const mt_probe *p, mt_chat_role role, json_t *content)
{
    json_t *tested = json_pack("{s:s, s:O}", "role", mt_chat_role_name(role), "content", content), *all = NULL;

    switch (role) {
    case MT_CHAT_SYSTEM: all = json_pack("[o, o]", tested, mt_probe_message("user", MT_PROBE_BETA)); break;
    case MT_CHAT_USER: all = json_pack("[o]", tested); break;
    case MT_CHAT_ASSISTANT:
        all = json_pack("[o, o, o]", mt_probe_message("user", MT_PROBE_BETA), tested,
                        mt_probe_message("user", MT_PROBE_GAMMA));
        break;
    case MT_CHAT_TOOL:
        json_decref(tested);
        all = json_pack("[o, o, o]", mt_probe_message("user", MT_PROBE_BETA), mt_probe_call_message(p),
                        mt_probe_result_message(p, json_incref(content)));
        break;
    }
    json_decref(content);
    return all;
}

/* Whether the text has no more keys of parts than with string content: a list that is printed as it is would show
   some. */
static bool shows_no_more_keys(const char *parts, const char *string)
{
    static const char *const keys[] = {"'type'", "\"type\""};

    for (size_t i = 0; i < MT_COUNT(keys); i++)
        if (mt_probe_count_of(parts, keys[i]) != (string ? mt_probe_count_of(string, keys[i]) : 0))
            return false;
    return true;
}

static void probe_content(mt_probe *p, mt_chat_role role)
{
    char *string = mt_probe_render(p, conversation(p, role, json_string(MT_PROBE_ALPHA)), true, NULL);
    char *parts = mt_probe_render(
        p, conversation(p, role, json_pack("[{s:s, s:s}]", "type", "text", "text", MT_PROBE_ALPHA)), true, NULL);

    p->profile->content[role].string = mt_probe_in_order(string, words, 1);
    p->profile->content[role].parts = mt_probe_in_order(parts, words, 1) && shows_no_more_keys(parts, string);
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

/* Whether a picture left a trace: the text is longer, or different right before the words. (A template may leave out
   its default system message where there are pictures.) */
static bool adds_something(const char *with, const char *without)
{
    const char *a = strstr(with, MT_PROBE_ALPHA), *b = strstr(without, MT_PROBE_ALPHA);
    size_t same = 0;

    if (strlen(with) > strlen(without))
        return true;
    while (same < 8 && a - with > (ptrdiff_t)same && b - without > (ptrdiff_t)same &&
           a[-1 - (ptrdiff_t)same] == b[-1 - (ptrdiff_t)same])
        same++;
    return same < 8 && a - with != b - without;
}

/* A form is right if the text is shown unchanged and the template adds something of its own. */
static void probe_shape(mt_probe *p, mt_chat_part_type type)
{
    static const mt_chat_shape shapes[] = {MT_CHAT_SHAPE_TYPE, MT_CHAT_SHAPE_FIELD, MT_CHAT_SHAPE_URL};
    char *plain;

    p->profile->shape[type] = MT_CHAT_SHAPE_NONE;
    if (!p->profile->content[MT_CHAT_USER].parts)
        return;
    plain = mt_probe_render(
        p, json_pack("[{s:s, s:[{s:s, s:s}]}]", "role", "user", "content", "type", "text", "text", MT_PROBE_ALPHA),
        true, NULL);
    for (size_t i = 0; mt_probe_has(plain, MT_PROBE_ALPHA) && !p->profile->shape[type] && i < MT_COUNT(shapes); i++) {
        json_t *messages = json_pack("[{s:s, s:[o, {s:s, s:s}]}]", "role", "user", "content",
                                     mt_chat_shape_part(shapes[i], type), "type", "text", "text", MT_PROBE_ALPHA);
        char *text = mt_probe_render(p, messages, true, NULL);

        if (mt_probe_in_order(text, words, 1) && adds_something(text, plain) && shows_no_more_keys(text, plain))
            p->profile->shape[type] = shapes[i];
        mt_free(text);
    }
    mt_free(plain);
}

/* The text between two words, free with mt_free; NULL: they are not there in that order. */
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

/* Renders five messages with the words in order; the message number `tested` has that role. */
static char *render_turns(const mt_probe *p, size_t tested, const char *role)
{
    static const char *const roles[] = {"system", "user", "assistant", "user", "user"};
    json_t *all = json_array();

    for (size_t i = 0; i < MT_COUNT(words); i++) {
        const char *usual = i > tested && tested == 2 ? roles[i - 1] : roles[i];

        json_array_append_new(all, mt_probe_message(i == tested ? role : usual, words[i]));
    }
    return mt_probe_render(p, all, true, NULL);
}

/* Whether a system message after a tool result is shown, where agents put reminders. True for templates that show no
   tools. */
static bool shows_system_behind_result(const mt_probe *p)
{
    static const char *const expected[] = {MT_PROBE_ALPHA, MT_PROBE_BETA, MT_PROBE_EPSILON};
    json_t *messages = json_pack("[o, o, o]", mt_probe_message("user", MT_PROBE_ALPHA), mt_probe_call_message(p),
                                 mt_probe_result_message(p, json_string(MT_PROBE_BETA)));
    const bool tools = mt_probe_shows(p, json_incref(messages), expected, 2);

    json_array_append_new(messages, mt_probe_message("system", MT_PROBE_EPSILON));
    if (tools)
        return mt_probe_shows(p, messages, expected, 3);
    json_decref(messages);
    return true;
}

static void probe_no_system(mt_probe *p)
{
    json_t *system = mt_probe_message("system", MT_PROBE_ALPHA), *user = mt_probe_message("user", MT_PROBE_BETA);
    char *alone = mt_probe_render(p, json_pack("[O]", user), true, NULL);
    bool both;

    if (!p->profile->content[MT_CHAT_SYSTEM].string)
        json_object_set_new(system, "content", json_pack("[{s:s, s:s}]", "type", "text", "text", MT_PROBE_ALPHA));
    both = mt_probe_shows(p, json_pack("[o, o]", system, user), words, 2);
    p->profile->no_system = mt_probe_has(alone, MT_PROBE_BETA) && !both;
    mt_free(alone);
}

/* Whether a system message is shown where it stands, and otherwise than a user's. */
static void probe_system(mt_probe *p)
{
    char *middle = render_turns(p, 3, "system");
    char *early = render_turns(p, 2, "system"), *last = render_turns(p, 4, "system");
    char *as_system = between(middle, MT_PROBE_GAMMA, MT_PROBE_DELTA),
         *as_user = between(last, MT_PROBE_GAMMA, MT_PROBE_DELTA);

    p->profile->system_in_place = mt_probe_in_order(middle, words, 5) && mt_probe_in_order(last, words, 5) &&
                                  mt_probe_in_order(early, words, 5) && as_system && as_user &&
                                  strcmp(as_system, as_user) != 0 && shows_system_behind_result(p);
    mt_free(middle);
    mt_free(last);
    mt_free(early);
    mt_free(as_system);
    mt_free(as_user);
}

static void probe_generation(mt_probe *p)
{
    size_t end = 0;
    char *with = mt_probe_render(p, json_pack("[o]", mt_probe_message("user", MT_PROBE_ALPHA)), true, &end);
    char *without = mt_probe_render(p, json_pack("[o]", mt_probe_message("user", MT_PROBE_ALPHA)), false, NULL);

    p->profile->generation_after = with && without && end > 0 && strlen(with) > end && strlen(without) >= end &&
                                   memcmp(with, without, end) == 0 &&
                                   /* Some templates always write it */
                                   (strlen(without) == end || strcmp(with, without) == 0);
    p->profile->generation_none = !mt_template_reads(p->tpl, "add_generation_prompt") && !p->profile->generation_after;
    mt_free(with);
    mt_free(without);
}

void mt_chat_profile_probe(mt_chat_profile *profile, const mt_template *tpl, const json_t *tokens,
                           const atomic_bool *stop)
{
    bool beyond = false;
    mt_probe p = {.tpl = tpl, .tokens = tokens, .stop = stop, .profile = profile, .beyond = &beyond};

    *profile = (mt_chat_profile){.thinking = "enable_thinking"};
    if (!mt_template_reads(tpl, "enable_thinking") && mt_template_reads(tpl, "thinking"))
        profile->thinking = "thinking";
    mt_probe_tools(&p);
    mt_probe_calls(&p);
    for (size_t role = 0; role < MT_CHAT_ROLES; role++)
        probe_content(&p, (mt_chat_role)role);
    probe_shape(&p, MT_CHAT_IMAGE);
    probe_shape(&p, MT_CHAT_VIDEO);
    probe_no_system(&p);
    probe_system(&p);
    mt_probe_reasoning(&p);
    probe_generation(&p);
}
