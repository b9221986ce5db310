/* The command motet run with a message: starts a server for the model, or uses the one at a URL, and sends it one
   request, so that the answer is what clients would get. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "api/json_body.h"
#include "cli/chat.h"
#include "cli/cli.h"
#include "text/limits.h"

enum { EXIT_INTERRUPTED = 130 }; /* the exit status of shells for a program that Ctrl-C ended */

/* Prints a piece of the answer. Leaves out the reasoning where standard output is no terminal. */
static void show(mt_chat_answer *a, bool reasoning, const char *text)
{
    if (!reasoning || a->colours)
        mt_chat_show(a, reasoning, text);
}

/* Prints nothing: the answer is printed as a whole. */
static void keep(mt_chat_answer *a, bool reasoning, const char *text)
{
    (void)a, (void)reasoning, (void)text;
}

/* Prints the whole answer as a JSON object. */
static void print_json(const mt_chat_answer *a)
{
    json_t *all = json_pack("{s:s, s:s?, s:s}", "content", a->text.len ? a->text.data : "", "reasoning",
                            a->reasoning.len ? a->reasoning.data : NULL, "finish_reason", a->finish);

    if (a->tokens >= 0)
        json_object_set_new(all, "usage",
                            json_pack("{s:I, s:I}", "prompt_tokens", (json_int_t)a->prompt, "completion_tokens",
                                      (json_int_t)a->tokens));
    json_dumpf(all, stdout, JSON_COMPACT);
    fputs("\n", stdout);
    json_decref(all);
}

/* Reads standard input, without newlines at its end. */
static bool read_input(mt_buf *text, mt_error *err)
{
    char chunk[1 << 16];
    size_t len;

    while ((len = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
        if (!mt_buf_add(text, chunk, len))
            return mt_fail(err, MT_E_TOO_LARGE, "standard input has more than %u bytes: ask about less of it",
                           MT_LIMIT_ENCODE_BYTES);
    if (ferror(stdin))
        return mt_fail(err, MT_E_IO, "standard input cannot be read: %s", strerror(errno));
    while (text->len > 0 && (text->data[text->len - 1] == '\n' || text->data[text->len - 1] == '\r'))
        text->data[--text->len] = '\0';
    if (text->len == 0 || strlen(text->data) != text->len)
        return mt_fail(err, MT_E_INVALID, "standard input is %s; write the prompt to it",
                       text->len ? "no text" : "empty");
    return true;
}

static bool add_files(json_t *parts, const mt_option_list *files, const char *kind, mt_error *err)
{
    for (size_t i = 0; i < files->count; i++)
        if (!mt_chat_add_media(parts, kind, files->at[i], err))
            return false;
    return true;
}

/* The messages of the request: the system message of the options and the one message of the user. */
static json_t *conversation(const mt_options *opt, mt_error *err)
{
    json_t *media = json_array(), *message = NULL, *all = NULL;
    mt_buf input;

    mt_buf_init(&input, MT_LIMIT_ENCODE_BYTES);
    if ((strcmp(opt->input, "-") != 0 || read_input(&input, err)) && add_files(media, &opt->images, "image", err) &&
        add_files(media, &opt->videos, "video", err) && add_files(media, &opt->documents, "file", err))
        message = mt_chat_message(media, input.len ? input.data : opt->input, err);
    mt_buf_free(&input);
    json_decref(media);
    if (message && opt->system)
        all = json_pack("[{s:s, s:s}, o]", "role", "system", "content", opt->system, message);
    else if (message)
        all = json_pack("[o]", message);
    if (message && !all)
        mt_fail(err, MT_E_INVALID, "\"--system\" is not text in UTF-8");
    return all;
}

static bool ask(const mt_options *opt, const json_t *messages, mt_chat_answer *answer, mt_error *err)
{
    mt_options own = *opt;
    mt_chat_server server;
    bool ok;

    own.default_max_tokens = opt->max_tokens;
    ok = mt_chat_server_open(&server, &own, err) && mt_chat_ask(&server, messages, answer, err);
    mt_chat_server_close(&server);
    return ok;
}

int mt_run_message(const mt_options *opt)
{
    mt_chat_answer answer = {.piece = opt->json ? keep : show, .colours = isatty(STDOUT_FILENO)};
    mt_error err = {0};
    json_t *messages;
    bool ok, interrupted;

    mt_json_body_setup();
    messages = conversation(opt, &err);
    mt_chat_interruptible(true);
    ok = messages && ask(opt, messages, &answer, &err);
    interrupted = mt_chat_interrupted();
    mt_chat_interruptible(false);
    if (ok && opt->json && !interrupted)
        print_json(&answer);
    else if (ok && !opt->json)
        mt_chat_show_end(&answer);
    if (ok && !opt->json && strcmp(answer.finish, "length") == 0)
        fprintf(stderr, "motet: cut off: the answer has as many tokens as it may\n");
    if (!ok && !interrupted)
        fprintf(stderr, "motet: %s\n", err.text);
    mt_chat_answer_free(&answer);
    json_decref(messages);
    curl_global_cleanup();
    return interrupted ? EXIT_INTERRUPTED : ok ? 0 : 1;
}
