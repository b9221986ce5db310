/* One turn of a conversation: requests an answer, asks the user for the results of its tool calls, requests the next
   answer. */
#include <stdio.h>
#include <string.h>

#include "cli/chat.h"

/* Ends the output of an answer; says so where it was interrupted or cut. */
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

/* The message of the assistant for the conversation. */
static json_t *message_of(const mt_chat_answer *a)
{
    json_t *message = json_pack("{s:s, s:s}", "role", "assistant", "content", a->text.len ? a->text.data : "");

    if (message && a->calls)
        json_object_set(message, "tool_calls", a->calls);
    return message;
}

/* Asks the user for the result of each tool call and appends them to the messages. False: the input ended. */
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

/* Requests one answer. *again: it has called tools, and their results are now in the messages. */
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

/* A question that failed is removed again, so that the next request does not fail for it; likewise tool calls without
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
