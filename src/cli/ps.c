/* The commands motet ps and motet stop: list the models that a server has loaded, and unload one. */
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "cli/chat.h"
#include "cli/cli.h"

/* Sends a request and returns the JSON of the response; NULL: an error was printed. Free with json_decref. */
static json_t *ask(const mt_options *opt, const char *url, const char *path, const char *sent, mt_buf *body)
{
    mt_chat_server server = {.key = opt->api_keys.count ? opt->api_keys.at[0] : NULL};
    json_t *answer = NULL;
    const char *sentence;
    mt_error err = {0};
    long status;

    if (!mt_chat_server_reach(&server, url ? url : MT_CHAT_USUAL_URL, &err)) {
        fprintf(stderr, "motet: %s\n", err.text);
        return NULL;
    }
    status = mt_chat_send(&server, path, sent, body);
    answer = json_loads(body->data ? body->data : "", 0, NULL);
    sentence = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
    if (status == 200 && answer)
        return answer;
    fprintf(stderr, "motet: the server says: %s\n", sentence ? sentence : "nothing that can be read");
    json_decref(answer);
    return NULL;
}

static void describe_time(char out[32], double seconds)
{
    if (seconds < 120)
        snprintf(out, 32, "%.0f s", seconds);
    else if (seconds < 7200)
        snprintf(out, 32, "%.0f min", seconds / 60);
    else
        snprintf(out, 32, "%.0f h", seconds / 3600);
}

static void print_row(const json_t *model)
{
    const char *state = json_string_value(json_object_get(model, "state"));
    const json_t *expires = json_object_get(model, "expires_in");
    const double memory = json_number_value(json_object_get(model, "memory")) / (1 << 20);
    const double used = json_number_value(json_object_get(model, "memory_used")) / (1 << 20);
    char idle[32], until[32] = "never";

    describe_time(idle, json_number_value(json_object_get(model, "idle_seconds")));
    if (expires)
        describe_time(until, json_number_value(expires));
    printf("%-40s %-9s %8.0f MiB %8.0f MiB %8lld %9s %10s\n", json_string_value(json_object_get(model, "id")), state,
           used, memory, (long long)json_integer_value(json_object_get(model, "requests")), idle, until);
}

/* Whether to list a model: not if the entry is an alias, nor if the model is not loaded. */
static bool is_listed(const json_t *model)
{
    const char *id = json_string_value(json_object_get(model, "id"));
    const char *root = json_string_value(json_object_get(model, "root"));
    const char *state = json_string_value(json_object_get(model, "state"));

    return id && root && state && strcmp(id, root) == 0 && strcmp(state, "unloaded") != 0;
}

int mt_cmd_ps(const mt_options *opt)
{
    json_t *list;
    mt_buf body;
    size_t shown = 0;

    mt_buf_init(&body, 4u << 20);
    list = ask(opt, opt->dir, "/v1/models", NULL, &body);
    if (list && opt->json)
        printf("%s\n", body.data);
    for (size_t i = 0; list && !opt->json && i < json_array_size(json_object_get(list, "data")); i++) {
        const json_t *model = json_array_get(json_object_get(list, "data"), i);

        if (!is_listed(model))
            continue;
        if (shown++ == 0)
            printf("%-40s %-9s %12s %12s %8s %9s %10s\n", "model", "state", "memory", "may have", "requests", "idle",
                   "unloads in");
        print_row(model);
    }
    if (list && !opt->json && shown == 0)
        printf("no model is loaded\n");
    mt_buf_free(&body);
    json_decref(list);
    return list ? 0 : 1;
}

int mt_cmd_stop(const mt_options *opt)
{
    json_t *answer;
    mt_buf sent, body;

    mt_buf_init(&sent, 1u << 16);
    mt_buf_init(&body, 1u << 20);
    mt_json_write(&sent, "{'model':%s}", opt->dir);
    answer = ask(opt, opt->input, "/v1/models/unload", sent.data, &body);
    if (answer && json_integer_value(json_object_get(answer, "requests")) > 0)
        printf("\"%s\" is unloaded when it has answered\n", opt->dir);
    mt_buf_free(&sent);
    mt_buf_free(&body);
    json_decref(answer);
    return answer ? 0 : 1;
}
