/* The command motet chat: reads lines from the terminal, sends them as messages to a server and prints the answers. */
#include "cli/chat.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "api/json_body.h"
#include "cli/cli.h"

static bool say(mt_chat_talk *t, const char *text, mt_error *err)
{
    const size_t before = json_array_size(t->messages);
    json_t *message = mt_chat_message(t->pictures, text, err);

    if (!message)
        return false;
    json_array_clear(t->pictures);
    json_array_append_new(t->messages, message);
    return mt_chat_answer_to(t, before, err);
}

static bool converse(mt_chat_talk *t)
{
    const char *line;
    bool ok = true;

    while ((line = mt_chat_line_read(t->input, "> "))) {
        mt_error err = {0};

        if (*line == '/') {
            if (!mt_chat_obey(t, line))
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

static bool start(mt_chat_talk *t, const mt_options *opt, mt_error *err)
{
    json_t *words = json_string(opt->system ? opt->system : "");
    bool ok;

    if (!words)
        return mt_fail(err, MT_E_INVALID, "\"--system\" is not text in UTF-8");
    json_decref(words);
    mt_chat_set_system(t, opt->system ? opt->system : "");
    mt_chat_interruptible(true);
    ok = mt_chat_server_open(&t->server, opt, err);
    mt_chat_interruptible(false);
    return ok;
}

int mt_cmd_chat(const mt_options *opt)
{
    mt_chat_talk t = {.terminal = isatty(STDOUT_FILENO)};
    mt_error err = {0};
    bool ok;

    mt_json_body_setup();
    t.messages = json_array();
    t.pictures = json_array();
    ok = start(&t, opt, &err);
    if (ok) {
        if (t.terminal)
            printf("%s. /help lists what can be done, Ctrl-D leaves.\n\n", t.server.model);
        t.input = mt_chat_line_open(mt_chat_complete);
        ok = converse(&t);
        if (t.terminal)
            printf("\n");
        mt_chat_line_close(t.input);
    } else
        fprintf(stderr, "motet: %s\n", err.text);
    mt_chat_server_close(&t.server);
    json_decref(t.messages);
    json_decref(t.pictures);
    curl_global_cleanup();
    return ok ? 0 : 1;
}
