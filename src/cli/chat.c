/* motet chat: a conversation in the terminal. */
#include "cli/chat.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "api/json_body.h"
#include "cli/cli.h"

static const char help[] = "/image PATH    show the model a picture with what you say next\n"
                           "/system TEXT   what the model is told about its task; without TEXT, nothing\n"
                           "/reset         begin anew, with the same system text\n"
                           "/help          this\n"
                           "/quit          leave, as Ctrl-D does; Ctrl-C ends an answer\n";

typedef struct talk {
    mt_chat_server server;
    json_t *messages; /* with the system's first, where there is one */
    json_t *pictures; /* parts that go with the next message */
    bool colours;
} talk;

static void add_picture(talk *t, const char *path)
{
    mt_error err = {0};

    if (!mt_chat_add_file(t->pictures, "image", path, &err))
        printf("%s\n", err.text);
    else
        printf("%zu %s with what you say next\n", json_array_size(t->pictures),
               json_array_size(t->pictures) == 1 ? "picture goes" : "pictures go");
}

static bool has_system(const talk *t)
{
    const char *role = json_string_value(json_object_get(json_array_get(t->messages, 0), "role"));

    return role && strcmp(role, "system") == 0;
}

static void reset(talk *t)
{
    const size_t kept = has_system(t);

    while (json_array_size(t->messages) > kept)
        json_array_remove(t->messages, json_array_size(t->messages) - 1);
    json_array_clear(t->pictures);
}

static void set_system(talk *t, const char *text)
{
    json_t *message = *text ? json_pack("{s:s, s:s}", "role", "system", "content", text) : NULL;

    if (has_system(t))
        json_array_remove(t->messages, 0);
    if (message)
        json_array_insert_new(t->messages, 0, message);
}

/* Says why an answer is not what it would have been. */
static void close_answer(const mt_chat_answer *a)
{
    mt_chat_show_end(a);
    if (a->interrupted)
        printf("(interrupted)\n");
    else if (strcmp(a->finish, "length") == 0)
        printf("(cut off: it has as many tokens as it may)\n");
    fputs("\n", stdout);
}

/* A question that was refused is taken back, so that the next one does not fail for it. */
static bool say(talk *t, const char *text, mt_error *err)
{
    mt_chat_answer answer = {.piece = mt_chat_show, .colours = t->colours};
    json_t *message = mt_chat_message(t->pictures, text, err);
    bool ok;

    if (!message)
        return false;
    json_array_clear(t->pictures);
    json_array_append_new(t->messages, message);
    mt_chat_interruptible(true);
    ok = mt_chat_ask(&t->server, t->messages, &answer, err);
    mt_chat_interruptible(false);
    if (ok)
        close_answer(&answer);
    if (ok && answer.text.len)
        json_array_append_new(t->messages, json_pack("{s:s, s:s}", "role", "assistant", "content", answer.text.data));
    else
        json_array_remove(t->messages, json_array_size(t->messages) - 1);
    mt_buf_free(&answer.text);
    return ok;
}

/* What stands after the command, where the line is that command. */
static const char *argument(const char *line, const char *command)
{
    const size_t len = strlen(command);

    if (strncmp(line, command, len) != 0 || (line[len] && line[len] != ' '))
        return NULL;
    return line + len + strspn(line + len, " ");
}

/* False to leave. */
static bool obey(talk *t, const char *line)
{
    const char *rest;

    if (argument(line, "/quit") || argument(line, "/exit"))
        return false;
    if ((rest = argument(line, "/image")))
        add_picture(t, rest);
    else if ((rest = argument(line, "/system")))
        set_system(t, rest);
    else if (argument(line, "/reset"))
        reset(t);
    else
        fputs(help, stdout);
    return true;
}

static bool converse(talk *t, mt_chat_line *input)
{
    const char *line;
    bool ok = true;

    while ((line = mt_chat_line_read(input))) {
        mt_error err = {0};

        if (*line == '/') {
            if (!obey(t, line))
                break;
        } else if (*line) {
            ok = say(t, line, &err);
            if (!ok)
                fprintf(stderr, "motet: %s\n", err.text);
        }
        fflush(stdout);
    }
    return ok;
}

int mt_cmd_chat(const mt_options *opt)
{
    talk t = {.colours = isatty(STDOUT_FILENO)};
    mt_error err = {0};
    mt_chat_line *input;
    bool ok;

    mt_json_body_setup();
    t.messages = json_array();
    t.pictures = json_array();
    mt_chat_interruptible(true);
    ok = mt_chat_server_open(&t.server, opt, &err);
    mt_chat_interruptible(false);
    if (ok) {
        if (t.colours)
            printf("%s. /help lists what can be done, Ctrl-D leaves.\n\n", t.server.model);
        input = mt_chat_line_open();
        ok = converse(&t, input);
        if (t.colours)
            printf("\n");
        mt_chat_line_close(input);
    } else
        fprintf(stderr, "motet: %s\n", err.text);
    mt_chat_server_close(&t.server);
    json_decref(t.messages);
    json_decref(t.pictures);
    curl_global_cleanup();
    return ok ? 0 : 1;
}
