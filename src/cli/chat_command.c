/* The commands of motet chat that begin with a slash. Confirmations are printed only on a terminal, failures always. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/chat.h"
#include "cli/cli.h"

MT_PRINTF(2, 3)
static void confirm(const mt_chat_talk *t, const char *format, ...)
{
    va_list args;

    if (!t->terminal)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fputs("\n", stdout);
}

static void complain(const mt_error *err)
{
    fflush(stdout);
    fprintf(stderr, "motet: %s\n", err->text);
}

/* Adds a file or URL to what goes with the next message. */
static bool add_medium(mt_chat_talk *t, const char *kind, const char *operand)
{
    char path[MT_LIMIT_PATH];
    mt_error err = {0};
    const bool url = mt_is_url(operand);

    if (!url && !mt_chat_path(operand, path, sizeof(path), &err)) {
        complain(&err);
        return false;
    }
    if (mt_chat_add_media(t->pictures, kind, url ? operand : path, &err))
        return true;
    printf("%s\n", err.text);
    return false;
}

static void show_file(mt_chat_talk *t, const char *operand)
{
    if (add_medium(t, "file", operand))
        printf("the file goes with what you say next\n");
}

static void show_picture(mt_chat_talk *t, const char *operand)
{
    if (add_medium(t, "image", operand))
        printf("%zu %s with what you say next\n", json_array_size(t->pictures),
               json_array_size(t->pictures) == 1 ? "picture goes" : "pictures go");
}

static bool has_role(const json_t *message, const char *role)
{
    const char *found = json_string_value(json_object_get(message, "role"));

    return found && strcmp(found, role) == 0;
}

void mt_chat_set_system(mt_chat_talk *t, const char *text)
{
    if (has_role(json_array_get(t->messages, 0), "system"))
        json_array_remove(t->messages, 0);
    if (*text)
        json_array_insert_new(t->messages, 0, json_pack("{s:s, s:s}", "role", "system", "content", text));
}

static void set_system(mt_chat_talk *t, const char *text)
{
    mt_error err = {0};
    json_t *valid = json_string(text);

    if (!valid) {
        mt_fail(&err, MT_E_INVALID, "that is not text in UTF-8; say it in another way");
        complain(&err);
        return;
    }
    json_decref(valid);
    mt_chat_set_system(t, text);
    confirm(t, *text ? "the model is told: %s" : "the model is told nothing about its task%s", text);
}

static void cut(json_t *list, size_t count)
{
    while (json_array_size(list) > count)
        json_array_remove(list, json_array_size(list) - 1);
}

static void reset(mt_chat_talk *t, const char *operand)
{
    const bool kept = has_role(json_array_get(t->messages, 0), "system");

    (void)operand;
    cut(t->messages, kept);
    json_array_clear(t->pictures);
    confirm(t, "a new conversation%s", kept ? ", with the same system text" : "");
}

static void regenerate(mt_chat_talk *t, const char *operand)
{
    size_t last = json_array_size(t->messages);
    json_t *before = json_copy(t->messages);
    mt_error err = {0};

    (void)operand;
    while (last > 0 && !has_role(json_array_get(t->messages, last - 1), "user"))
        last--;
    if (last == 0)
        printf("nothing was asked yet\n");
    else {
        cut(t->messages, last);
        if (!mt_chat_answer_to(t, last, &err))
            complain(&err);
        if (json_array_size(t->messages) == last) { /* no new answer came: restore the old one */
            json_decref(t->messages);
            t->messages = json_incref(before);
        }
    }
    json_decref(before);
}

/* Saves the conversation. Does not overwrite a file unless this conversation was loaded from it or saved to it. */
static void save(mt_chat_talk *t, const char *operand)
{
    char path[MT_LIMIT_PATH];
    json_t *all = json_pack("{s:O}", "messages", t->messages);
    mt_error err = {0};

    if (!mt_chat_path(operand, path, sizeof(path), &err))
        complain(&err);
    else if (strcmp(path, t->file) != 0 && access(path, F_OK) == 0)
        printf("\"%s\" is there already; take another name\n", path);
    else if (json_dump_file(all, path, JSON_INDENT(1)) != 0)
        printf("\"%s\" cannot be written: %s\n", path, strerror(errno));
    else {
        snprintf(t->file, sizeof(t->file), "%s", path);
        confirm(t, "%zu messages are in \"%s\"", json_array_size(t->messages), path);
    }
    json_decref(all);
}

static bool is_conversation(const json_t *messages)
{
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!json_is_string(json_object_get(json_array_get(messages, i), "role")))
            return false;
    return json_is_array(messages);
}

static void load(mt_chat_talk *t, const char *operand)
{
    char path[MT_LIMIT_PATH];
    json_error_t why = {0};
    json_t *all = NULL, *messages;
    mt_error err = {0};

    if (!mt_chat_path(operand, path, sizeof(path), &err)) {
        complain(&err);
        return;
    }
    all = json_load_file(path, 0, &why);
    messages = json_object_get(all, "messages");
    if (!all)
        printf("\"%s\" cannot be read: %s\n", path, why.text);
    else if (!is_conversation(messages))
        printf("\"%s\" holds no conversation: its \"messages\" should be a list of them\n", path);
    else {
        json_decref(t->messages);
        t->messages = json_incref(messages);
        json_array_clear(t->pictures);
        snprintf(t->file, sizeof(t->file), "%s", path);
        confirm(t, "%zu messages were read from \"%s\"", json_array_size(messages), path);
    }
    json_decref(all);
}

/* The tools of a file in OpenAI's form. The file may also list plain functions, which are wrapped. */
static json_t *tools_of(const json_t *list)
{
    json_t *tools = json_array();

    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *tool = json_array_get(list, i);

        if (json_object_get(tool, "function"))
            json_array_append(tools, tool);
        else if (json_is_string(json_object_get(tool, "name")))
            json_array_append_new(tools, json_pack("{s:s, s:O}", "type", "function", "function", tool));
        else {
            json_decref(tools);
            return NULL;
        }
    }
    return tools;
}

static void list_tools(const mt_chat_talk *t)
{
    const json_t *tools = json_object_get(t->server.settings, "tools");

    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *function = json_object_get(json_array_get(tools, i), "function");
        const char *about = json_string_value(json_object_get(function, "description"));

        printf("%s%s%s\n", json_string_value(json_object_get(function, "name")), about ? ": " : "", about ? about : "");
    }
    if (json_array_size(tools) == 0)
        printf("the model has no tools; name a file with a JSON list of them\n");
}

static void set_tools(mt_chat_talk *t, const char *operand)
{
    char path[MT_LIMIT_PATH];
    json_error_t why = {0};
    json_t *file, *tools;
    mt_error err = {0};

    if (!*operand) {
        list_tools(t);
        return;
    }
    if (strcmp(operand, "none") == 0) {
        json_object_del(t->server.settings, "tools");
        confirm(t, "the model has no tools");
        return;
    }
    if (!mt_chat_path(operand, path, sizeof(path), &err)) {
        complain(&err);
        return;
    }
    file = json_load_file(path, 0, &why);
    tools = json_is_array(file) ? tools_of(file) : NULL;
    if (!file)
        printf("\"%s\" cannot be read: %s\n", path, why.text);
    else if (!tools)
        printf("\"%s\" is no list of tools as OpenAI's API has them\n", path);
    else {
        json_object_set(t->server.settings, "tools", tools);
        confirm(t, "the model has %zu tools; you are asked for what its calls give", json_array_size(tools));
    }
    json_decref(file);
    json_decref(tools);
}

static void help(mt_chat_talk *t, const char *operand)
{
    (void)t, (void)operand;
    for (size_t i = 0; i < mt_chat_command_count; i++) {
        const mt_chat_command *c = &mt_chat_commands[i];

        printf("%s %-*s%s\n", c->name, (int)(16 - strlen(c->name)), c->operand, c->help);
    }
}

const mt_chat_command mt_chat_commands[] = {
    {"/image", "FILE", "show the model a picture, a file or a URL, with what you say next", true, show_picture},
    {"/file", "FILE", "have the model read a text file, or a URL, with what you say next", true, show_file},
    {"/system", "TEXT", "what the model is told about its task; without TEXT, nothing", false, set_system},
    {"/tools", "FILE", "tools the model may call, a JSON list; none: no more; without FILE, which it has", true,
     set_tools},
    {"/regenerate", "", "have the last question answered again", false, regenerate},
    {"/reset", "", "begin a new conversation with the same system text", false, reset},
    {"/save", "FILE", "write the conversation to a file", true, save},
    {"/load", "FILE", "go on with one that was saved", true, load},
    {"/help", "", "this", false, help},
    {"/quit", "", "leave, as Ctrl-D does and Ctrl-C twice; Ctrl-C ends an answer", false, NULL},
};
const size_t mt_chat_command_count = MT_COUNT(mt_chat_commands);

bool mt_chat_obey(mt_chat_talk *t, const char *line)
{
    const size_t len = strcspn(line, " ");
    mt_error err = {0};

    if (len == 5 && strncmp(line, "/exit", len) == 0)
        return false;
    for (size_t i = 0; i < mt_chat_command_count; i++) {
        const mt_chat_command *c = &mt_chat_commands[i];

        if (strlen(c->name) != len || strncmp(line, c->name, len) != 0)
            continue;
        if (c->run)
            c->run(t, line + len + strspn(line + len, " "));
        return c->run != NULL;
    }
    mt_fail(&err, MT_E_INVALID, "\"%.*s\" is no command; /help lists them", len < 40 ? (int)len : 40, line);
    complain(&err);
    return true;
}
