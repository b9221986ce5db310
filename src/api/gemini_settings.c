/* Translates "generationConfig" of Gemini's requests into OpenAI's fields, so that the same tables with the same ranges
   read both. What jansson returns is mostly not looked at: the callers notice by mt_json_guard_end where it had no
   memory. */
#include <ctype.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/gemini.h"
#include "base/json_tree.h"
#include "base/words.h"

#define CONFIG "generationConfig."
#define THINKING CONFIG "thinkingConfig."

/* Names of fields. same: the value is copied as it is; else a function here translates it. */
static const struct {
    const char *theirs, *ours;
    bool same;
} fields[] = {
    {CONFIG "temperature", "temperature", true},
    {CONFIG "topP", "top_p", true},
    {CONFIG "topK", "top_k", true},
    {CONFIG "maxOutputTokens", "max_tokens", true},
    {CONFIG "stopSequences", "stop", true},
    {CONFIG "candidateCount", "n", true},
    {CONFIG "seed", "seed", true},
    {CONFIG "presencePenalty", "presence_penalty", true},
    {CONFIG "frequencyPenalty", "frequency_penalty", true},
    {CONFIG "responseLogprobs", "logprobs", true},
    {CONFIG "logprobs", "top_logprobs", true},
    {CONFIG "responseSchema", "response_format", false},
    {CONFIG "responseSchema", "guided_choice", false},
    {CONFIG "responseModalities", "modalities", false},
    {CONFIG "mediaResolution", "detail", false},
    {THINKING "includeThoughts", "include_reasoning", false},
    {THINKING "thinkingBudget", "thinking_budget", false},
    {THINKING "thinkingLevel", "reasoning_effort", false},
};

const char *mt_gemini_name(const char *name)
{
    for (size_t i = 0; name && i < MT_COUNT(fields); i++)
        if (strcmp(name, fields[i].ours) == 0)
            return fields[i].theirs;
    return name;
}

void mt_gemini_rename(mt_failure *why)
{
    const char *name = mt_gemini_name(why->param);

    if (name != why->param)
        mt_failure_rename(why, name);
}

/* Notes in ask->ignored the members that nothing reads. */
static void note(mt_ask *ask, const json_t *config, const json_t *thinking)
{
    static const char *const others[] = {"responseMimeType", "responseJsonSchema", "thinkingConfig", NULL},
                             *const inside[] = {"includeThoughts", "thinkingBudget", "thinkingLevel", NULL};
    const char *names[MT_COUNT(fields) + 1] = {NULL};

    for (size_t i = 0; i < MT_COUNT(fields); i++)
        names[i] = fields[i].theirs + strlen(CONFIG);
    mt_fields_note(ask, CONFIG, config, NULL, 0, (const char *const *const[3]){others, names});
    mt_fields_note(ask, THINKING, thinking, NULL, 0, (const char *const *const[3]){inside});
}

/* The word of an enumeration in lower case. NULL: it is no word, or too long for one. */
static const char *lower_word(const json_t *value, char out[32])
{
    const char *word = mt_json_word(value);
    size_t i = 0;

    for (; word && word[i] && i < 31; i++)
        out[i] = (char)tolower((unsigned char)word[i]);
    out[i] = '\0';
    return word && !word[i] ? out : NULL;
}

bool mt_gemini_detail(const json_t *resolution, json_t *to)
{
    static const struct {
        const char *word, *detail;
    } words[] = {{"UNSPECIFIED", NULL}, {"LOW", "low"}, {"MEDIUM", NULL}, {"HIGH", "high"}, {"ULTRA_HIGH", "high"}};
    static const char prefix[] = "MEDIA_RESOLUTION_";
    const char *given = resolution ? mt_json_word(resolution) : "MEDIA_RESOLUTION_UNSPECIFIED";
    size_t i = 0;

    if (!given || strncmp(given, prefix, sizeof(prefix) - 1) != 0)
        return false;
    while (i < MT_COUNT(words) && strcmp(given + sizeof(prefix) - 1, words[i].word) != 0)
        i++;
    if (i < MT_COUNT(words) && words[i].detail)
        json_object_set_new(to, "detail", json_string(words[i].detail));
    return i < MT_COUNT(words);
}

static bool read_modalities(const json_t *config, json_t *to, mt_failure *why)
{
    const json_t *given = mt_body_get(config, "responseModalities");
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(given); i++) {
        char word[32];
        const char *lower = lower_word(json_array_get(given, i), word);

        if (!lower || strcmp(lower, "modality_unspecified") != 0)
            json_array_append_new(list, json_string(lower ? lower : "?"));
    }
    json_object_set_new(to, "modalities", list);
    return !given || json_is_array(given) ||
           mt_failure_type(why, CONFIG "responseModalities", given, "a list of words");
}

static bool set_format(json_t *to, const char *name, json_t *value, mt_failure *why)
{
    return json_object_set_new(to, name, value) == 0 || mt_failure_memory(why, CONFIG "responseSchema");
}

/* The one of the two schemas that is given, as JSON Schema; NULL: none. The ask owns it, or its body. False: *why. */
static bool find_schema(mt_ask *ask, const json_t *config, const json_t **schema, mt_failure *why)
{
    const json_t *google = mt_body_get(config, "responseSchema"), *plain = mt_body_get(config, "responseJsonSchema");

    *schema = google ? mt_ask_own(ask, mt_gemini_schema(google)) : plain;
    return !google || !plain ||
           mt_failure_value(why, CONFIG "responseSchema",
                            "and \"responseJsonSchema\" are both given: send one of them");
}

/* "text/x.enum": the answer is one of the words that the schema lists. */
static bool set_enum(const json_t *schema, json_t *to, mt_failure *why)
{
    const json_t *words = mt_body_get(schema, "enum");

    if (json_array_size(words) == 0)
        return mt_failure_value(why, CONFIG "responseSchema",
                                "has no \"enum\", of which a \"responseMimeType\" of text/x.enum needs one: send it");
    return set_format(to, "guided_choice", mt_body_share(words), why);
}

static bool read_format(mt_ask *ask, const json_t *config, json_t *to, mt_failure *why)
{
    const json_t *given = mt_body_get(config, "responseMimeType"), *schema;
    const char *type = mt_body_text(config, "responseMimeType");

    if (given && !json_is_string(given))
        return mt_failure_type(why, CONFIG "responseMimeType", given, "a string");
    if (!find_schema(ask, config, &schema, why))
        return false;
    if (strcmp(type, "text/x.enum") == 0)
        return set_enum(schema, to, why);
    if (strcmp(type, "application/json") == 0 && schema)
        return set_format(
            to, "response_format",
            json_pack("{s:s, s:{s:s, s:O}}", "type", "json_schema", "json_schema", "name", "answer", "schema", schema),
            why);
    if (strcmp(type, "application/json") == 0)
        return set_format(to, "response_format", json_pack("{s:s}", "type", "json_object"), why);
    if (*type && strcmp(type, "text/plain") != 0)
        return mt_failure_unsupported(
            why, CONFIG "responseMimeType",
            "is none of text/plain, application/json and text/x.enum: send one of them, or leave it out");
    return !schema || mt_failure_value(why, CONFIG "responseSchema",
                                       "is given without a \"responseMimeType\" of application/json or text/x.enum: "
                                       "send one of these");
}

/* A budget of 0 means that the model does not think, -1 that it thinks as long as it likes. */
static bool read_thinking(const json_t *thinking, json_t *to, mt_failure *why)
{
    static const char *const levels[] = {"minimal", "low", "medium", "high", "thinking_level_unspecified", NULL};
    const json_t *level = mt_body_get(thinking, "thinkingLevel"), *budget = mt_body_get(thinking, "thinkingBudget"),
                 *shown = mt_body_get(thinking, "includeThoughts");
    char word[32];
    const char *lower = lower_word(level, word);

    json_object_set_new(to, "include_reasoning", shown ? mt_body_share(shown) : json_false());
    if (thinking && !json_is_object(thinking))
        return mt_failure_type(why, CONFIG "thinkingConfig", thinking, "an object");
    if (level && !mt_words_have(levels, lower))
        return mt_failure_value(why, THINKING "thinkingLevel", "is none of MINIMAL, LOW, MEDIUM and HIGH: send one");
    if (level && strcmp(lower, levels[4]) != 0)
        json_object_set_new(to, "reasoning_effort", json_string(lower));
    if (budget)
        json_object_set_new(to, "thinking_budget", mt_body_share(budget));
    if (json_is_integer(budget))
        json_object_set_new(to, "enable_thinking", json_boolean(json_integer_value(budget) != 0));
    return true;
}

/* Checked before OpenAI's tables do, whose sentence would name OpenAI's fields. */
static bool check_logprobs(const json_t *config, mt_failure *why)
{
    return !mt_body_get(config, "logprobs") || json_is_true(json_object_get(config, "responseLogprobs")) ||
           mt_failure_value(why, CONFIG "logprobs", "is given without \"responseLogprobs\": send that as true");
}

bool mt_gemini_settings(mt_ask *ask, const json_t *body, json_t *to, mt_failure *why)
{
    const json_t *config = mt_body_get(body, "generationConfig"), *thinking = mt_body_get(config, "thinkingConfig");

    if (config && !json_is_object(config))
        return mt_failure_type(why, "generationConfig", config, "an object");
    for (size_t i = 0; i < MT_COUNT(fields); i++)
        if (fields[i].same && mt_body_get(config, fields[i].theirs + strlen(CONFIG)))
            json_object_set_new(to, fields[i].ours,
                                mt_body_share(mt_body_get(config, fields[i].theirs + strlen(CONFIG))));
    mt_body_copy(to, body, "model");
    note(ask, config, thinking);
    if (!mt_gemini_detail(mt_body_get(config, "mediaResolution"), to))
        return mt_failure_value(why, CONFIG "mediaResolution",
                                "is none of MEDIA_RESOLUTION_LOW, MEDIA_RESOLUTION_MEDIUM and MEDIA_RESOLUTION_HIGH: "
                                "send one");
    return read_modalities(config, to, why) && check_logprobs(config, why) && read_format(ask, config, to, why) &&
           read_thinking(thinking, to, why);
}
