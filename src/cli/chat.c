/* motet chat: a conversation in the terminal. */
#include "cli/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/evp.h>

#include "api/json_body.h"
#include "base/alloc.h"
#include "base/file.h"
#include "cli/cli.h"

#define DIM "\033[2m"
#define PLAIN "\033[0m"
#define PICTURE_BYTES (48u << 20)

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

static talk *current; /* whom pieces are printed for */

static void print_piece(mt_chat_answer *a, bool reasoning, const char *text)
{
    if (current->colours && reasoning != a->shows_reasoning)
        fputs(reasoning ? DIM : PLAIN, stdout);
    if (!reasoning && a->shows_reasoning)
        fputs("\n\n", stdout);
    a->shows_reasoning = reasoning;
    fputs(text, stdout);
    fflush(stdout);
}

/* ---- pictures ---- */

/* "data:;base64,...": the server sees by the bytes what it is. */
static char *data_url(const mt_buf *bytes)
{
    static const char head[] = "data:image/*;base64,";
    char *url = mt_alloc(sizeof(head) + 4 * (bytes->len / 3 + 1) + 1);

    memcpy(url, head, sizeof(head));
    EVP_EncodeBlock((unsigned char *)url + sizeof(head) - 1, (const unsigned char *)bytes->data, (int)bytes->len);
    return url;
}

static void add_picture(talk *t, const char *path)
{
    mt_error err = {0};
    mt_buf bytes;
    char *url;

    mt_buf_init(&bytes, PICTURE_BYTES);
    if (!mt_file_read(&bytes, path, &err))
        printf("%s\n", err.text);
    else if (bytes.len == 0)
        printf("\"%s\" is empty\n", path);
    else {
        url = data_url(&bytes);
        json_array_append_new(t->pictures, json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url", url));
        printf("%zu %s with what you say next\n", json_array_size(t->pictures),
               json_array_size(t->pictures) == 1 ? "picture goes" : "pictures go");
        mt_free(url);
    }
    mt_buf_free(&bytes);
}

/* ---- the conversation ---- */

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

static json_t *user_message(talk *t, const char *text)
{
    json_t *parts;

    if (json_array_size(t->pictures) == 0)
        return json_pack("{s:s, s:s}", "role", "user", "content", text);
    parts = json_copy(t->pictures);
    json_array_append_new(parts, json_pack("{s:s, s:s}", "type", "text", "text", text));
    json_array_clear(t->pictures);
    return json_pack("{s:s, s:o}", "role", "user", "content", parts);
}

/* Says why an answer is not what it would have been. */
static void close_answer(const talk *t, const mt_chat_answer *a)
{
    if (t->colours && a->shows_reasoning)
        fputs(PLAIN, stdout);
    fputs("\n", stdout);
    if (a->interrupted)
        printf("(interrupted)\n");
    else if (strcmp(a->finish, "length") == 0)
        printf("(cut off: it has as many tokens as it may)\n");
    fputs("\n", stdout);
    fflush(stdout);
}

/* A question that was refused is taken back, so that the next one does not fail for it. */
static bool say(talk *t, const char *text, mt_error *err)
{
    mt_chat_answer answer = {.piece = print_piece};
    json_t *message = user_message(t, text);
    bool ok;

    if (!message)
        return mt_fail(err, MT_E_INVALID, "that is not UTF-8");
    json_array_append_new(t->messages, message);
    mt_chat_interruptible(true);
    ok = mt_chat_ask(&t->server, t->messages, &answer, err);
    mt_chat_interruptible(false);
    if (ok)
        close_answer(t, &answer);
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
    current = &t;
    ok = mt_chat_server_open(&t.server, opt, &err);
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
