/* motet chat: a conversation in the terminal. */
#include "cli/chat.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "api/json_body.h"
#include "cli/cli.h"

/* Says why an answer is not what it would have been. */
static void close_answer(const mt_chat_answer *a)
{
    mt_chat_show_end(a);
    if (a->interrupted)
        printf("(interrupted)\n");
    else if (strcmp(a->finish, "length") == 0)
        printf("(cut off: it has as many tokens as it may)\n");
    fputs("\n", stdout);
    fflush(stdout);
}

static json_t *message_of(const mt_chat_answer *a)
{
    json_t *message = json_pack("{s:s, s:s}", "role", "assistant", "content", a->text.len ? a->text.data : "");

    if (message && a->calls)
        json_object_set(message, "tool_calls", a->calls);
    return message;
}

/* What each call gives is for the person to say. False when the input ends instead. */
static bool ask_results(mt_chat_talk *t, const json_t *calls)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        const char *name = json_string_value(json_object_get(function, "name")), *result;
        json_t *message;

        printf("%s(%s)\n", name, json_string_value(json_object_get(function, "arguments")));
        result = mt_chat_line_read(t->input, "it gives: ");
        message = result ? json_pack("{s:s, s:s, s:O}", "role", "tool", "content", result, "tool_call_id",
                                     json_object_get(call, "id"))
                         : NULL;
        if (!message)
            return false;
        json_array_append_new(t->messages, message);
    }
    return true;
}

/* One answer. *again: it calls tools, and they have given something. */
static bool answer_once(mt_chat_talk *t, bool *again, mt_error *err)
{
    mt_chat_answer answer = {.piece = mt_chat_show, .colours = t->terminal};
    json_t *message = NULL;
    bool ok;

    mt_chat_interruptible(true);
    ok = mt_chat_ask(&t->server, t->messages, &answer, err);
    mt_chat_interruptible(false);
    if (ok)
        close_answer(&answer);
    if (answer.interrupted) {
        json_decref(answer.calls);
        answer.calls = NULL;
    }
    if (ok && (answer.text.len || answer.calls))
        message = message_of(&answer);
    if (message)
        json_array_append_new(t->messages, message);
    *again = message && answer.calls && ask_results(t, answer.calls);
    mt_chat_answer_free(&answer);
    return ok;
}

/* A question that was refused is taken back, so that the next one does not fail for it, and so are calls without
   results. */
bool mt_chat_answer_to(mt_chat_talk *t, size_t before, mt_error *err)
{
    bool again = true, ok = true;
    const json_t *last;

    while (ok && again)
        ok = answer_once(t, &again, err);
    last = json_array_get(t->messages, json_array_size(t->messages) - 1);
    if (!ok || json_object_get(last, "tool_calls") ||
        strcmp(json_string_value(json_object_get(last, "role")), "assistant") != 0)
        while (json_array_size(t->messages) > before)
            json_array_remove(t->messages, json_array_size(t->messages) - 1);
    return ok;
}

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
        t.input = mt_chat_line_open();
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
