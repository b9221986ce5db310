/* POST /api/create and /api/copy of Ollama's API: models that are made of others (created.h). */
#include <stdlib.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/ollama.h"
#include "base/alloc.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/words.h"
#include "hub/find.h"
#include "hub/names.h"
#include "hub/upload.h"
#include "server/inside.h"
#include "server/limits.h"
#include "server/routes/listed.h"

/* The name that a new model is to have. NULL: *why; free with mt_free. */
static char *new_name(mt_server *server, const char *field, const char *given, mt_failure *why)
{
    char *name = mt_ollama_plain_name(given);
    json_t *earlier = mt_created_get(&server->creations, name);
    mt_member *taken = earlier ? NULL : mt_fleet_find_named(&server->fleet, name);
    bool ok = true;

    if (!mt_created_name_ok(name))
        ok = mt_failure_value(why, field,
                              "is no name for a model: send up to %d letters, digits and . _ - : /, the first and the "
                              "last of them a letter or a digit",
                              MT_LIMIT_CREATED_NAME);
    else if (taken)
        ok = mt_failure_set(why, 409, "in_use", field, "a model '%.100s' is here already: choose another name", name);
    json_decref(earlier);
    if (ok)
        return name;
    mt_free(name);
    return NULL;
}

/* What a model is made from: a new object with "from" and, where that was created itself, what it has. NULL: *why. */
static json_t *base_of(mt_server *server, const char *field, const char *given, mt_failure *why)
{
    char *name = mt_ollama_plain_name(given);
    json_t *model = mt_created_get(&server->creations, name);
    mt_listed m;

    if (!model && *name && mt_listed_find(server, name, false, &m))
        model = json_pack("{s:s}", "from", m.beside ? m.name : m.view.name);
    if (!model)
        mt_failure_set(why, 404, "model_not_found", field, "model '%.100s' not found: see /api/tags", name);
    mt_free(name);
    return model;
}

static bool keep(mt_server *server, json_t *model, mt_failure *why)
{
    mt_error err;

    if (mt_created_put(&server->creations, model, &err))
        return true;
    mt_log_warn("model.created", "a model could not be kept: %s", err.text);
    return mt_failure_from_files(why, &err, "model", NULL);
}

/* Go's templates are not understood; most have one of these words. */
static bool check_template(mt_server *server, const json_t *template, mt_failure *why)
{
    static const char *const words[] = {".Prompt", ".System", ".Messages", ".Response", ".Content"};

    if (!template)
        return true;
    if (!json_is_string(template))
        return mt_failure_type(why, "template", template, "a string");
    for (size_t i = 0; i < MT_COUNT(words); i++)
        if (strstr(json_string_value(template), words[i]))
            return mt_failure_unsupported(why, "template",
                                          "is Go's and not Jinja's: leave it out, or send one in Jinja");
    return server->opt->allow_chat_template || json_string_length(template) == 0 ||
           mt_failure_unsupported(why, "template",
                                  "is given, and this server takes none from its clients: leave it out, or start the "
                                  "server with --allow-chat-template");
}

/* Refuses what would need other weights. */
static bool check_body(mt_call *call, const json_t *body, mt_failure *why)
{
    static const struct {
        const char *name, *sentence;
    } refused[] = {
        {"quantize", "is not supported: weights are taken as they are; quantise them before they are uploaded"},
        {"quantization", "is not supported: weights are taken as they are; quantise them before they are uploaded"},
        {"adapters", "is not supported: merge the adapter into its model, and upload that"},
        {"modelfile", "is not supported: send what it says as fields, such as \"from\" and \"system\""},
        {"path", "is not supported: send \"from\" with the name of a model that is here (motet pull)"}};
    const json_t *system = mt_body_get(body, "system"), *parameters = mt_body_get(body, "parameters");

    for (size_t i = 0; i < MT_COUNT(refused); i++) {
        const json_t *value = mt_body_get(body, refused[i].name);

        if (value && (json_is_object(value) ? json_object_size(value) : json_string_length(value)) > 0)
            return mt_failure_unsupported(why, refused[i].name, "%s", refused[i].sentence);
    }
    if (parameters && !json_is_object(parameters))
        return mt_failure_type(why, "parameters", parameters, "an object");
    if (system && !json_is_string(system))
        return mt_failure_type(why, "system", system, "a string");
    return check_template(call->server, mt_body_get(body, "template"), why);
}

/* Puts what the body has over what the base has; settings are joined. */
static void join(json_t *model, const json_t *body)
{
    static const char *const members[] = {"system", "template", "messages", "license"};
    const json_t *given = mt_body_get(body, "parameters");

    for (size_t i = 0; i < MT_COUNT(members); i++)
        mt_body_copy(model, body, members[i]);
    if (json_is_object(given)) {
        json_t *joined = json_copy(json_object_get(model, "parameters"));

        joined = joined ? joined : json_object();
        json_object_update(joined, (json_t *)(uintptr_t)given); /* not const for jansson; nothing is changed */
        json_object_set_new(model, "parameters", joined);
    }
}

/* Tries the settings and messages as a request for the model would have them. */
static bool try_model(mt_call *call, const json_t *model, mt_failure *why)
{
    mt_ask_defaults defaults;
    mt_ask ask;
    bool ok;

    mt_ask_defaults_init(&defaults);
    mt_ask_init(&ask, call->arena, model, &defaults);
    mt_chat_begin(&ask.chat, call->arena, "messages");
    ok = mt_created_settings(model, &ask, why) && mt_created_chat(model, &ask, why);
    mt_ask_free(&ask);
    return ok;
}

static void note_unknown(mt_call *call, const json_t *body)
{
    static const char *const known[] = {"model",    "name",    "from",       "files",  "system",  "template",
                                        "messages", "license", "parameters", "stream", "timeout", NULL};
    mt_ask ask = {.arena = call->arena};

    mt_fields_note(&ask, "", body, NULL, 0, (const char *const *const[3]){known});
    mt_ollama_parameters_note(&ask, mt_body_get(body, "parameters"));
    if (*ask.ignored)
        mt_call_warn(call, "not looked at: %s", ask.ignored);
}

static void tell(mt_call *call, const json_t *body, mt_buf *out)
{
    if (json_is_false(json_object_get(body, "stream"))) {
        mt_json_write(out, "{'status':'success'}");
        return;
    }
    call->type = "application/x-ndjson";
    mt_buf_puts(out, "{\"status\":\"reading model metadata\"}\n");
    if (mt_body_get(body, "system"))
        mt_buf_puts(out, "{\"status\":\"creating system layer\"}\n");
    if (mt_body_get(body, "template"))
        mt_buf_puts(out, "{\"status\":\"creating template layer\"}\n");
    if (mt_body_get(body, "parameters"))
        mt_buf_puts(out, "{\"status\":\"creating parameters layer\"}\n");
    mt_buf_puts(out, "{\"status\":\"writing manifest\"}\n{\"status\":\"success\"}\n");
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

/* Whether the files are all that a model needs: a GGUF alone, or a folder of safetensors. */
static bool check_kinds(const mt_upload_file *files, size_t count, mt_failure *why)
{
    bool config = false, weights = false;

    for (size_t i = 0; i < count; i++) {
        config = config || strcmp(files[i].name, "config.json") == 0;
        weights = weights || ends_with(files[i].name, ".safetensors");
    }
    return (count == 1 && ends_with(files[0].name, ".gguf")) || (config && weights) ||
           mt_failure_value(
               why, "files",
               "are no model: send \"config.json\", the tokenizer's files and *.safetensors, or one *.gguf");
}

/* Reads {"NAME": "sha256:DIGEST"}. Returns how many; 0: *why. */
static size_t read_files(json_t *given, mt_upload_file files[MT_LIMIT_UPLOAD_FILES], mt_failure *why)
{
    const char *name;
    size_t count = 0;
    json_t *digest;

    if (json_object_size(given) > MT_LIMIT_UPLOAD_FILES) {
        mt_failure_value(why, "files", "are more than %d: send fewer", MT_LIMIT_UPLOAD_FILES);
        return 0;
    }
    json_object_foreach(given, name, digest) {
        const char *text = mt_json_word(digest);

        if (!mt_upload_name_ok(name) || !text || !mt_upload_digest(text, files[count].digest)) {
            mt_failure_value(why, "files",
                             "have '%.100s', which is no name of a file with \"sha256:\" and 64 hexadecimal digits",
                             name);
            return 0;
        }
        files[count++].name = name;
    }
    return check_kinds(files, count, why) ? count : 0;
}

/* A model of files has nothing beside them. */
static bool check_alone(const json_t *body, mt_failure *why)
{
    static const char *const others[] = {"from", "parameters", "system", "template", "messages"};

    for (size_t i = 0; i < MT_COUNT(others); i++) {
        const json_t *value = mt_body_get(body, others[i]);

        if (json_string_length(value) || json_object_size(value) || json_array_size(value))
            return mt_failure_value(why, others[i],
                                    "is given with \"files\": create a model of the files first, then one \"from\" it");
    }
    return true;
}

/* Calls that ask for the model are told meanwhile that it is on its way, as one that is downloaded. */
static bool fetch_model(mt_server *server, const char *cache, const char *name, const mt_upload_file *files,
                        size_t count, mt_error *err)
{
    mt_fleet_fetch fetch = {.name = name};
    bool ok;

    mt_fleet_fetch_begin(&server->fleet, &fetch);
    ok = mt_upload_model(cache, name, files, count, err);
    mt_fleet_fetch_end(&server->fleet, &fetch);
    return ok;
}

/* Makes a model of files that were uploaded: a folder of its own in the hub's cache, with links to them. */
static bool create_of_files(mt_call *call, const json_t *body, const char *name, mt_failure *why)
{
    json_t *given = json_object_get(body, "files");
    mt_upload_file *files = mt_alloc_array(MT_LIMIT_UPLOAD_FILES, sizeof(*files));
    const size_t count = check_alone(body, why) ? read_files(given, files, why) : 0;
    char cache[MT_LIMIT_PATH], folder[MT_LIMIT_PATH], snapshot[MT_LIMIT_PATH];
    mt_hub_name id;
    mt_error err;
    bool ok = count > 0;

    if (ok && (!mt_hub_name_read(&id, name) || strcmp(id.id, name) != 0)) /* it has a revision, a tag or a host */
        ok = mt_failure_value(why, "model", "is no name for a model of files: send \"name\" or \"owner/name\"");
    if (ok && !mt_hub_cache(cache, getenv))
        ok = mt_failure_set(why, 501, "unsupported", NULL, "there is no folder for models: set HF_HUB_CACHE or HOME");
    if (ok && mt_hub_folder(folder, cache, name) && mt_hub_current(snapshot, folder))
        ok = mt_failure_set(why, 409, "in_use", "model", "a model '%.100s' is here already: choose another name", name);
    if (ok)
        ok = fetch_model(call->server, cache, name, files, count, &err) ||
             mt_failure_from_files(why, &err, "files", name);
    mt_free(files);
    if (ok && !mt_created_remove(&call->server->creations, name, &err) && err.code != MT_OK)
        ok = mt_failure_from_files(why, &err, "model", name);
    if (ok && !call->server->fleet.open)
        mt_call_warn(call, "this server serves the models that it was started with: start one without a model's name");
    return ok;
}

static bool create(mt_call *call, const json_t *body, const char *name, mt_failure *why)
{
    const char *from = mt_body_text(body, "from");
    json_t *model;
    bool ok;

    if (json_object_size(json_object_get(body, "files")) > 0)
        return create_of_files(call, body, name, why);
    if (!*from)
        return mt_failure_field(why, "missing_field", "from",
                                "is missing: send the name of a model that is here, or \"files\" that were uploaded");
    model = base_of(call->server, "from", from, why);
    if (!model)
        return false;
    json_object_set_new(model, "name", json_string(name));
    join(model, body);
    ok = try_model(call, model, why) && keep(call->server, model, why);
    json_decref(model);
    return ok;
}

static bool answer_create(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const char *given = *mt_body_text(body, "model") ? mt_body_text(body, "model") : mt_body_text(body, "name");
    char *name;
    bool ok;

    if (!*given)
        return mt_failure_set(why, 400, "invalid_value", "model", "the model is missing: name one as \"model\"");
    name = check_body(call, body, why) ? new_name(call->server, "model", given, why) : NULL;
    ok = name && create(call, body, name, why);
    if (ok) {
        note_unknown(call, body);
        tell(call, body, out);
    }
    mt_free(name);
    return ok;
}

const mt_task mt_task_create = {.run = answer_create, .no_model = true};

static bool answer_copy(mt_call *call, const json_t *body, mt_buf *out, mt_failure *why)
{
    const char *source = mt_body_text(body, "source"), *destination = mt_body_text(body, "destination");
    char *name = NULL;
    json_t *model;
    bool ok = *source && *destination;

    (void)out;
    if (!ok)
        return mt_failure_field(why, "missing_field", *source ? "destination" : "source",
                                "is missing: send the name of a model");
    model = base_of(call->server, "source", source, why);
    name = model ? new_name(call->server, "destination", destination, why) : NULL;
    ok = name && json_object_set_new(model, "name", json_string(name)) == 0 && keep(call->server, model, why);
    json_decref(model);
    mt_free(name);
    return ok;
}

const mt_task mt_task_copy = {.run = answer_copy, .no_model = true};
