/* The command motet verify: has a server of its own answer a saved request once more, in the way of computing that the
   saved answer's fingerprint names, and compares both answers value by value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json_tree.h"
#include "cli/chat.h"
#include "cli/cli.h"
#include "device/backend.h"
#include "device/rules.h"
#include "hub/find.h"
#include "kernels/kernels.h"

enum { EXIT_SAME, EXIT_DIFFERS, EXIT_TROUBLE };

/* A file of one object: {"request": ..., "answer": ...}. */
typedef struct saved {
    json_t *file;
    const json_t *request, *answer; /* of the file */
    const char *path;               /* where such requests are sent */
    uint32_t fingerprint;
} saved;

/* ---- the file ---- */

static const char *path_of(const json_t *answer)
{
    const char *object = mt_json_word(json_object_get(answer, "object"));

    if (object && strcmp(object, "chat.completion") == 0)
        return "/v1/chat/completions";
    return object && strcmp(object, "text_completion") == 0 ? "/v1/completions" : NULL;
}

static bool read_fingerprint(const json_t *answer, uint32_t *fingerprint)
{
    const char *text = mt_json_word(json_object_get(answer, "system_fingerprint"));
    char *end = NULL;

    if (!text || strncmp(text, "fp_", 3) != 0 || strspn(text + 3, "0123456789abcdef") != 8)
        return false;
    *fingerprint = (uint32_t)strtoul(text + 3, &end, 16);
    return *end == '\0';
}

static bool check(saved *s, mt_error *err)
{
    s->request = json_object_get(s->file, "request");
    s->answer = json_object_get(s->file, "answer");
    s->path = path_of(s->answer);
    if (!json_is_object(s->request) || !json_is_object(s->answer))
        return mt_fail(err, MT_E_INVALID, "it is no object with the members \"request\" and \"answer\" (docs/api.md)");
    if (!s->path)
        return mt_fail(err, MT_E_INVALID,
                       "its answer's \"object\" is neither \"chat.completion\" nor \"text_completion\": save the whole "
                       "body of an answer that was not streamed");
    return read_fingerprint(s->answer, &s->fingerprint) ||
           mt_fail(err, MT_E_INVALID, "its answer has no \"system_fingerprint\" of motet");
}

static bool load(saved *s, const char *path, mt_error *err)
{
    mt_buf text = {.limit = MT_LIMIT_RESPONSE_BYTES};
    const bool ok = mt_file_read(&text, path, err);

    if (ok && !(s->file = mt_json_tree_read(text.data ? text.data : "", text.len, err)))
        mt_fail_within(err, "\"%s\"", path);
    mt_buf_free(&text);
    return s->file && (check(s, err) || mt_fail_within(err, "\"%s\"", path));
}

/* ---- the way of computing ---- */

/* Whether the CPU computes: it does so unless a GPU is named. */
static bool on_cpu(const char *device)
{
    return !device || strcmp(device, "auto") == 0 || strcmp(device, "cpu") == 0;
}

/* Sets the options that a server needs to compute so. */
static bool choose_way(mt_options *opt, const saved *s, mt_error *err)
{
    const mt_way way = mt_rules_way(s->fingerprint);

    if (way.version != MT_NUMERICS_VERSION)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "the answer was computed by version %u of the rules of docs/numerics.md, and this motet has "
                       "version %u: verify it with the motet that it came from",
                       way.version, MT_NUMERICS_VERSION);
    opt->precision = way.precision;
    opt->kv_bits = way.kv_bits;
    opt->arithmetic = way.native ? MT_NUMERICS_NATIVE : MT_NUMERICS_PORTABLE;
    if (way.level == MT_SM90 && on_cpu(opt->device))
        opt->arithmetic = way.native ? MT_NUMERICS_SM90 : MT_NUMERICS_SM90_PORTABLE;
    if (way.level == 0) /* bf16 products in fp32, as every processor can */
        opt->cpu_mask &= ~(unsigned)(MT_CPU_BF16 | MT_CPU_AMX);
    if (on_cpu(opt->device))
        opt->device = "cpu";
    return true;
}

/* ---- comparing ---- */

/* The findings of the comparison. */
typedef struct comparison {
    size_t logprobs;
    mt_buf where;             /* path to the place that is looked at */
    const json_t *then, *now; /* of the first place that differs */
} comparison;

/* Names that are drawn, times, and what the cache had: an answer has others each time. */
static bool is_passing(const char *name, const json_t *value)
{
    static const char *const names[] = {"created", "timings", "prompt_tokens_details"};

    for (size_t i = 0; i < MT_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strcmp(name, "id") == 0 && json_is_string(value);
}

static bool compare(comparison *c, const json_t *then, const json_t *now);

static bool compare_member(comparison *c, const char *name, const json_t *then, const json_t *now)
{
    const size_t before = c->where.len;

    mt_buf_printf(&c->where, "%s%s", before ? "." : "", name);
    if (strcmp(name, "logprob") == 0 || strcmp(name, "token_logprobs") == 0)
        c->logprobs += json_is_array(then) ? json_array_size(then) : 1;
    if (!compare(c, then, now))
        return false;
    c->where.len = before;
    return true;
}

static bool compare_objects(comparison *c, const json_t *then, const json_t *now)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)then, name, value)
        if (!is_passing(name, value) && !compare_member(c, name, value, json_object_get(now, name)))
            return false;
    json_object_foreach((json_t *)(uintptr_t)now, name, value)
        if (!is_passing(name, value) && !json_object_get(then, name) && !compare_member(c, name, NULL, value))
            return false;
    return true;
}

static bool compare_lists(comparison *c, const json_t *then, const json_t *now)
{
    const size_t count = json_array_size(then), other = json_array_size(now);

    for (size_t i = 0; i < count || i < other; i++) {
        const size_t before = c->where.len;
        mt_buf_printf(&c->where, "[%zu]", i);
        if (!compare(c, json_array_get(then, i), json_array_get(now, i)))
            return false;
        c->where.len = before;
    }
    return true;
}

/* A member that is there and not null. Versions differ in whether they write null or leave a member out. */
static const json_t *told(const json_t *value)
{
    return json_is_null(value) ? NULL : value;
}

/* NULL: it is not there. */
static bool compare(comparison *c, const json_t *then, const json_t *now)
{
    c->where.data[c->where.len] = '\0';
    if (!told(then) && !told(now))
        return true;
    if (then && now && json_typeof(then) == json_typeof(now)) {
        if (json_is_object(then))
            return compare_objects(c, then, now);
        if (json_is_array(then))
            return compare_lists(c, then, now);
    }
    if (then && now && json_equal(then, now))
        return true;
    c->then = then;
    c->now = now;
    return false;
}

/* ---- the answer of today ---- */

static json_t *ask(const mt_options *opt, const saved *s, mt_error *err)
{
    mt_buf sent = {.limit = MT_LIMIT_BODY_BYTES}, body = {.limit = MT_LIMIT_RESPONSE_BYTES};
    mt_chat_server server;
    json_t *now = NULL;

    if (!mt_json_tree_write(&sent, s->request))
        mt_fail(err, MT_E_TOO_LARGE, "the request has more than %u bytes", MT_LIMIT_BODY_BYTES);
    else if (mt_chat_server_open(&server, opt, err)) {
        const long status = mt_chat_post(&server, s->path, sent.data, &body);
        now = body.data ? mt_json_tree_try(body.data, body.len) : NULL;
        const char *why = mt_json_word(json_object_get(json_object_get(now, "error"), "message"));
        if (status != 200 || !now) {
            mt_fail(err, MT_E_INVALID, "the request is not answered: %s", why ? why : "see above");
            json_decref(now);
            now = NULL;
        }
    }
    mt_chat_server_close(&server);
    mt_buf_free(&sent);
    mt_buf_free(&body);
    return now;
}

static char *shown(const json_t *value)
{
    mt_buf text = {.limit = 200};

    if (!value)
        mt_buf_puts(&text, "nothing");
    else if (!mt_json_tree_write(&text, value))
        mt_buf_puts(&text, "...");
    return text.data;
}

/* Prints what was found; returns the exit status. */
static int report(const saved *s, const json_t *now, mt_error *err)
{
    comparison c = {.where = {.limit = 4096}};
    uint32_t own = 0;
    bool same;

    if (!read_fingerprint(now, &own) || own != s->fingerprint) {
        mt_fail(err, MT_E_UNSUPPORTED,
                "the answer was computed as fp_%08x, and here motet computes as fp_%08x (docs/numerics.md, R12)",
                s->fingerprint, own);
        return EXIT_TROUBLE;
    }
    mt_buf_puts(&c.where, "");
    same = compare(&c, s->answer, now);
    if (same) {
        printf("the same: %lld tokens and %zu logprobs, computed as fp_%08x\n",
               (long long)json_integer_value(json_object_get(json_object_get(now, "usage"), "completion_tokens")),
               c.logprobs, own);
    } else {
        char *then_text = shown(c.then), *now_text = shown(c.now);
        printf("differs at %s: the saved answer has %s, computed is %s\n", c.where.data, then_text, now_text);
        if (!json_object_get(s->request, "seed"))
            printf("the request has no \"seed\": unless its temperature is 0, an answer is drawn anew each time\n");
        mt_free(then_text);
        mt_free(now_text);
    }
    mt_buf_free(&c.where);
    return same ? EXIT_SAME : EXIT_DIFFERS;
}

int mt_cmd_verify(const mt_options *opt)
{
    mt_options own = *opt;
    saved s = {0};
    mt_error err = {0};
    char *folder = NULL;
    json_t *now = NULL;
    int status = EXIT_TROUBLE;

    if (load(&s, opt->dir, &err) && choose_way(&own, &s, &err)) {
        const char *name = mt_json_word(json_object_get(s.answer, "model"));
        folder = mt_hub_find(opt->input ? opt->input : name ? name : "", opt->models_dir, getenv, &err);
        own.dir = folder;
        own.input = NULL;
        own.served_name = name; /* as it was called then */
        own.any_model = true;
        now = folder ? ask(&own, &s, &err) : NULL;
    }
    if (now)
        status = report(&s, now, &err);
    if (status == EXIT_TROUBLE)
        fprintf(stderr, "motet: %s\n", err.text);
    json_decref(now);
    json_decref(s.file);
    mt_free(folder);
    return status;
}
