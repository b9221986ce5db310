/* How long a request takes from its body to its tokens, on one core: an agent's, of 84 KB, with tools, a long system
   prompt and many turns, in each of the three large dialects. Times are the processor's own, the best of many rounds,
   so that a busy machine changes them little; the hash of the ids tells whether they are still the same.

   usage: bench_body TOKENIZER TEMPLATE     a tokenizer.json or its folder, and a chat template's file */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/dialect.h"
#include "api/json_body.h"
#include "api/limits.h"
#include "server/prepare/tokens.h"
#include "template/limits.h"

enum { TOOLS = 18, TURNS = 36, ROUNDS = 60, SYSTEM_BYTES = 16200, RESULT_BYTES = 800 };

static const char *const words[] = {
    "read", "the",    "file",   "before", "you",    "change",    "a",      "line",     "of",      "it",  "and",
    "say",  "what",   "was",    "done",   "in",     "\\n- ",     "tests",  "function", "returns", "int", "main()",
    "when", "error:", "always", "never",  "commit", "\\\"x\\\"", "branch", "0x7f",     "{",       "}"};

static uint64_t seed;

static size_t draw(size_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % below;
}

static void put_text(mt_buf *out, size_t bytes)
{
    for (const size_t end = out->len + bytes; out->len < end; mt_buf_puts(out, " "))
        mt_buf_puts(out, words[draw(MT_COUNT(words))]);
}

static void put_schema(mt_buf *out)
{
    static const char *const names[] = {"path", "pattern", "offset", "limit", "replace_all"};

    mt_buf_puts(out, "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"path\"],\"properties\":{");
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        mt_buf_printf(out, "%s\"%s\":{\"type\":\"%s\",\"description\":\"", i ? "," : "", names[i],
                      i < 2 ? "string" : "integer");
        put_text(out, 90);
        mt_buf_puts(out, "\"}");
    }
    mt_buf_puts(out, "}}");
}

typedef enum shape { CHAT, MESSAGES, RESPONSES } shape;

static void put_tools(mt_buf *out, shape d)
{
    static const char *const open[] = {
        [CHAT] = "{\"type\":\"function\",\"function\":{", [MESSAGES] = "{", [RESPONSES] = "{\"type\":\"function\","};
    static const char *const close[] = {[CHAT] = "}}", [MESSAGES] = "}", [RESPONSES] = "}"};

    mt_buf_puts(out, "\"tools\":[");
    for (size_t i = 0; i < TOOLS; i++) {
        mt_buf_printf(out, "%s%s\"name\":\"tool_%zu\",\"description\":\"", i ? "," : "", open[d], i);
        put_text(out, 500);
        mt_buf_printf(out, "\",\"%s\":", d == MESSAGES ? "input_schema" : "parameters");
        put_schema(out);
        mt_buf_puts(out, close[d]);
    }
    mt_buf_puts(out, "]");
}

/* A text with a number for each #, and that of a tool for each @. */
static void put_numbered(mt_buf *out, const char *text, size_t i)
{
    for (; *text; text++)
        if (*text == '#' || *text == '@')
            mt_buf_printf(out, "%zu", *text == '#' ? i : i % TOOLS);
        else
            mt_buf_add(out, text, 1);
}

/* Something said, a call, and what it returned. */
static void put_turn(mt_buf *out, shape d, size_t i)
{
    static const char *const begin[] = {[CHAT] = ",{\"role\":\"assistant\",\"content\":\"",
                                        [MESSAGES] =
                                            ",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"",
                                        [RESPONSES] = ",{\"role\":\"assistant\",\"content\":\""};
    static const char *const call[] = {
        [CHAT] = "\",\"tool_calls\":[{\"id\":\"call_#\",\"type\":\"function\",\"function\":{\"name\":\"tool_@\","
                 "\"arguments\":\"{\\\"path\\\": \\\"src/file_#.c\\\", \\\"limit\\\": 100}\"}}]}",
        [MESSAGES] = "\"},{\"type\":\"tool_use\",\"id\":\"call_#\",\"name\":\"tool_@\",\"input\":"
                     "{\"path\":\"src/file_#.c\",\"limit\":100}}]}",
        [RESPONSES] = "\"},{\"type\":\"function_call\",\"call_id\":\"call_#\",\"name\":\"tool_@\","
                      "\"arguments\":\"{\\\"path\\\": \\\"src/file_#.c\\\", \\\"limit\\\": 100}\"}"};
    static const char *const result[] = {
        [CHAT] = ",{\"role\":\"tool\",\"tool_call_id\":\"call_#\",\"content\":\"",
        [MESSAGES] =
            ",{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"call_#\",\"content\":\"",
        [RESPONSES] = ",{\"type\":\"function_call_output\",\"call_id\":\"call_#\",\"output\":\""};

    mt_buf_puts(out, begin[d]);
    put_text(out, 150);
    put_numbered(out, call[d], i);
    put_numbered(out, result[d], i);
    put_text(out, RESULT_BYTES);
    mt_buf_puts(out, d == MESSAGES ? "\"}]}" : "\"}");
}

/* The same words in each dialect. */
static void make_body(mt_buf *out, shape d)
{
    static const char *const begin[] = {[CHAT] = "{\"messages\":[{\"role\":\"system\",\"content\":\"",
                                        [MESSAGES] = "{\"max_tokens\":4096,\"system\":\"",
                                        [RESPONSES] = "{\"store\":false,\"instructions\":\""};
    static const char *const behind[] = {
        [CHAT] = "\"},", [MESSAGES] = "\",\"messages\":[", [RESPONSES] = "\",\"input\":["};

    seed = 7;
    mt_buf_puts(out, begin[d]);
    put_text(out, SYSTEM_BYTES);
    mt_buf_puts(out, behind[d]);
    mt_buf_puts(out, "{\"role\":\"user\",\"content\":\"");
    put_text(out, 1000);
    mt_buf_puts(out, "\"}");
    for (size_t i = 0; i < TURNS; i++)
        put_turn(out, d, i);
    mt_buf_puts(out, "],");
    put_tools(out, d);
    mt_buf_puts(out, "}");
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

typedef struct times {
    double parse, read, tokens, all;
    size_t count;
    uint32_t hash;
} times;

static bool run(mt_served *served, const mt_dialect *dialect, const mt_buf *text, times *t)
{
    mt_arena *arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    mt_ask *ask = mt_arena_alloc(arena, sizeof(*ask));
    mt_failure why = {.status = 0};
    mt_token_prompt *prompts = NULL;
    mt_ask_defaults defaults;
    size_t count = 0;
    double at[4];
    json_t *body;
    bool ok;

    mt_ask_defaults_init(&defaults);
    at[0] = now();
    body = mt_json_body_parse(text->data, text->len, NULL, &why);
    at[1] = now();
    mt_ask_init(ask, arena, body, &defaults);
    ok = body && dialect->read(ask, &why);
    at[2] = now();
    ok = ok && mt_tokens_make(served, ask, NULL, served->context, &prompts, &count, &why);
    at[3] = now();
    if (!ok)
        fprintf(stderr, "bench_body: %s\n", why.text);
    *t = (times){.parse = at[1] - at[0], .read = at[2] - at[1], .tokens = at[3] - at[2], .hash = 2166136261u};
    t->count = ok ? prompts[0].count : 0;
    for (size_t i = 0; i < t->count; i++)
        t->hash = (t->hash ^ prompts[0].ids[i]) * 16777619u;
    if (ok)
        mt_pictures_free(&prompts[0].pictures);
    mt_ask_free(ask);
    mt_json_body_free(body, text->len);
    mt_arena_free(arena);
    t->all = now() - at[0];
    return ok;
}

static double less(double a, double b)
{
    return a < b ? a : b;
}

static bool measure(mt_served *served, shape d)
{
    static const struct {
        const char *name;
        const mt_dialect *dialect;
    } dialects[] = {[CHAT] = {"chat completions", &mt_openai_chat},
                    [MESSAGES] = {"messages", &mt_anthropic_messages},
                    [RESPONSES] = {"responses", &mt_openai_responses}};
    times best = {.all = 0}, t;
    mt_buf text;
    bool ok = true;

    mt_buf_init(&text, 1u << 20);
    make_body(&text, d);
    for (size_t i = 0; ok && i < ROUNDS; i++) {
        ok = run(served, dialects[d].dialect, &text, &t);
        if (i > 0)
            t = (times){.parse = less(t.parse, best.parse),
                        .read = less(t.read, best.read),
                        .tokens = less(t.tokens, best.tokens),
                        .all = less(t.all, best.all),
                        .count = t.count,
                        .hash = t.hash};
        best = t;
    }
    printf("%-16s  %zu bytes  %zu tokens %08x  parse %6.0f us  read %6.0f us  tokens %6.0f us  all %6.0f us\n",
           dialects[d].name, text.len, best.count, best.hash, best.parse, best.read, best.tokens, best.all);
    mt_buf_free(&text);
    return ok;
}

int main(int argc, char **argv)
{
    mt_served served = {.name = "bench", .context = 1u << 20, .work = MT_LIMIT_TEMPLATE_MEMORY};
    mt_error err = {0};
    bool ok;

    if (argc != 3) {
        fprintf(stderr, "usage: bench_body TOKENIZER TEMPLATE\n");
        return 2;
    }
    mt_json_body_setup();
    served.tokenizer = mt_tokenizer_load(argv[1], &err);
    if (served.tokenizer)
        served.templates = mt_chat_templates_open(".", argv[2], &err);
    ok = served.templates != NULL;
    if (!ok)
        fprintf(stderr, "bench_body: %s\n", err.text);
    for (int d = CHAT; ok && d <= RESPONSES; d++)
        ok = measure(&served, (shape)d);
    mt_chat_templates_free(served.templates);
    mt_tokenizer_free(served.tokenizer);
    return ok ? 0 : 1;
}
