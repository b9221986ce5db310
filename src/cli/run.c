/* motet run: the tokens a model answers with, and their logprobs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "engine/generate.h"
#include "engine/opened.h"
#include "kernels/kernels.h"

#define DEFAULT_CHUNK 512

typedef struct token_list {
    uint32_t *ids;
    size_t count;
} token_list;

/* "1,2,3": decimal numbers, commas or spaces between them. Free ids with mt_free. */
static bool parse_tokens(const char *text, token_list *list, mt_error *err)
{
    const size_t most = strlen(text) / 2 + 1;
    list->ids = mt_alloc(most * sizeof *list->ids);
    list->count = 0;
    for (const char *p = text; *p;) {
        char *end;
        errno = 0;
        const unsigned long id = strtoul(p, &end, 10);
        if (*p < '0' || *p > '9' || errno || id > UINT32_MAX || (*end && *end != ',' && *end != ' '))
            return mt_fail(err, MT_E_INVALID,
                           "\"--token-ids\" has \"%.16s\" where a token id should be; give numbers like 1,2,3", p);
        list->ids[list->count++] = (uint32_t)id;
        p = *end ? end + 1 : end;
    }
    if (!list->count)
        return mt_fail(err, MT_E_INVALID, "\"--token-ids\" is empty; give at least one number");
    return true;
}

/* Prints tokens as they come, or as one JSON object. */
typedef struct printer {
    bool json;
    size_t tokens;
    uint32_t *ids;
} printer;

static void print_step_json(const mt_logprob *chosen, const mt_logprob *tops, size_t count)
{
    printf("{\"id\":%u,\"logprob\":%.9g,\"top\":[", chosen->id, (double)chosen->logprob);
    for (size_t i = 0; i < count; i++)
        printf("%s[%u,%.9g]", i ? "," : "", tops[i].id, (double)tops[i].logprob);
    printf("]}");
}

static void print_token(void *ctx, const mt_logprob *chosen, const mt_logprob *tops, size_t count)
{
    printer *p = ctx;
    p->ids[p->tokens++] = chosen->id;
    if (p->json) {
        printf("%s", p->tokens > 1 ? "," : "");
        print_step_json(chosen, tops, count);
        return;
    }
    printf("%u %.6f", chosen->id, (double)chosen->logprob);
    for (size_t i = 0; i < count; i++)
        printf("%s%u:%.6f", i ? " " : "   ", tops[i].id, (double)tops[i].logprob);
    printf("\n");
    fflush(stdout);
}

static void print_ids(const char *key, const uint32_t *ids, size_t count)
{
    printf("\"%s\":[", key);
    for (size_t i = 0; i < count; i++)
        printf("%s%u", i ? "," : "", ids[i]);
    printf("]");
}

static bool generate(mt_opened *o, const mt_options *opt, const token_list *prompt, mt_error *err)
{
    const size_t max_tokens = (size_t)opt->max_tokens, chunk = opt->chunk ? (size_t)opt->chunk : DEFAULT_CHUNK;
    const size_t wanted = prompt->count + max_tokens, context = opt->context ? (size_t)opt->context : o->spec.context;
    if (wanted > context)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "%zu prompt tokens and %zu to generate exceed the context of %zu; shorten one of them",
                       prompt->count, max_tokens, context);
    const mt_generator_params params = {
        .sequences = 1, .positions = wanted, .chunk = chunk < prompt->count ? chunk : prompt->count};
    mt_generator *g = mt_generator_new(o->dev, &o->spec, &o->weights, &params, err);
    if (!g)
        return false;
    printer p = {.json = opt->json, .ids = mt_alloc(max_tokens * sizeof *p.ids)};
    const mt_generation request = {.prompt = prompt->ids,
                                   .prompt_len = prompt->count,
                                   .max_tokens = max_tokens,
                                   .top = (size_t)opt->logprobs,
                                   .token = print_token,
                                   .ctx = &p};
    if (p.json) {
        printf("{");
        print_ids("prompt_token_ids", prompt->ids, prompt->count);
        printf(",\"steps\":[");
    }
    const bool ok = mt_generator_run(g, &request, 1, err);
    if (p.json) {
        printf("],");
        print_ids("token_ids", p.ids, p.tokens);
        printf(",\"finish_reason\":\"%s\"}\n", ok ? "length" : "error");
    }
    mt_free(p.ids);
    mt_generator_free(g);
    return ok;
}

int mt_cmd_run(const mt_options *opt)
{
    mt_error err = {0};
    mt_opened o;
    token_list prompt = {0};
    bool ok = parse_tokens(opt->token_ids, &prompt, &err);
    if (ok) {
        const mt_device_params params = {
            .threads = (size_t)opt->threads, .cpu_mask = opt->cpu_mask, .precision = opt->precision};
        ok = mt_opened_open(&o, opt->dir, &params, &err);
    }
    if (ok) {
        ok = generate(&o, opt, &prompt, &err);
        mt_opened_close(&o);
    }
    mt_free(prompt.ids);
    if (!ok)
        fprintf(stderr, "motet: %s\n", err.text);
    return ok ? 0 : 1;
}
