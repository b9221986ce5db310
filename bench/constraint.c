/* What masks cost: schemas, and text that must not have the markers of calls, are followed at random, as a model would
   that finds all tokens alike, with the masks kept that the engine keeps.

   usage: bench_constraint TOKENIZER [SCHEMA.json ...]  without schemas, some of the kinds that clients send
          bench_constraint TOKENIZER FOLDER             how long each of a folder's schemas takes to its first mask */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "constraint/masks.h"
#include "constraint/source.h"
#include "engine/limits.h"
#include "text/tokenizer.h"

enum { ANSWERS = 40, TOKENS = 400, SAMPLES = 1 << 20, SLOWEST = 10, OPEN = 16 };

/* With ' for ". */
static const char *const schemas[] = {
    "{'type':'object','properties':{'name':{'type':'string'},'age':{'type':'integer','minimum':0},"
    "'email':{'type':'string','format':'email'},'tags':{'type':'array','items':{'type':'string'},"
    "'maxItems':8}},'required':['name','age']}",
    "{'type':'object','properties':{'title':{'type':'string','maxLength':80},'body':{'type':'string',"
    "'minLength':20,'maxLength':2000},'level':{'enum':['low','middle','high']}},'required':['title',"
    "'body','level']}",
    "{'$ref':'#/$defs/node','$defs':{'node':{'type':'object','properties':{'value':{'type':'number'},"
    "'children':{'type':'array','items':{'$ref':'#/$defs/node'},'maxItems':3}},'required':['value',"
    "'children']}}}",
    "{'type':'object','additionalProperties':{'anyOf':[{'type':'string'},{'type':'number'},"
    "{'type':'array','items':{'type':'string'}}]}}",
    "{'type':'object','properties':{'code':{'type':'string','pattern':'^[A-Z]{3}-[0-9]{4}$'},'when':{"
    "'type':'string','format':'date-time'},'id':{'type':'string','format':'uuid'}},'required':["
    "'code','when','id']}",
    "{'type':'object'}",
};

typedef struct measured {
    double *us;
    size_t count;
} measured;

static int by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static void report(const char *name, measured *m)
{
    double sum = 0;

    qsort(m->us, m->count, sizeof(*m->us), by_size);
    for (size_t i = 0; i < m->count; i++)
        sum += m->us[i];
    printf("%-28s %8zu times: median %8.2f us, mean %8.2f, 99%% %8.2f, worst %8.2f\n", name, m->count,
           m->us[m->count / 2], sum / (double)m->count, m->us[m->count * 99 / 100], m->us[m->count - 1]);
}

static void add(measured *m, uint64_t begin)
{
    if (m->count < SAMPLES)
        m->us[m->count++] = (double)(mt_clock_ns() - begin) / 1e3;
}

static uint32_t pick(const mt_vocabulary *v, const uint32_t *mask, uint64_t *seed)
{
    for (;;) {
        uint32_t id;

        *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        id = (uint32_t)((*seed >> 33) % v->size);
        for (uint32_t i = 0; i < v->size; i++, id = (id + 1) % (uint32_t)v->size)
            if (mask[id / 32] >> id % 32 & 1)
                return id;
    }
}

static json_t *builtin(const char *text)
{
    char *json = mt_strdup(text);
    json_t *schema;

    for (char *at = json; (at = strchr(at, '\'')); at++)
        *at = '"';
    schema = json_loads(json, 0, NULL);
    mt_free(json);
    return schema;
}

/* schema NULL: text without markers. NULL with a sentence. */
static mt_constraint *compile(const json_t *schema, const mt_vocabulary *v, mt_error *err)
{
    static const char *const markers[] = {
        "<tool_call>", "</tool_call>", "<function=", "</function>", "<parameter=", "</parameter>"};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    const mt_source source = {.kind = MT_SOURCE_SCHEMA, .value = schema};
    mt_constraint *c = NULL;
    mt_expr e;

    if (!schema)
        e = mt_grammar_without(g, markers, MT_COUNT(markers));
    if (!schema || mt_source_expr(&source, &j, &e, err)) {
        mt_grammar_define(g, MT_GRAMMAR_START, e);
        c = mt_constraint_new(g, v, err);
    }
    mt_grammar_free(g);
    return c;
}

/* ---- a folder ---- */

typedef struct timed {
    char *path;
    double ms;
    bool taken;
} timed;

static struct {
    const mt_vocabulary *v;
    timed *all;
    size_t count, cap, taken, wrong;
} folder; /* nftw has no way to hand it over */

static int by_time(const void *x, const void *y)
{
    const double a = ((const timed *)x)->ms, b = ((const timed *)y)->ms;

    return (a > b) - (a < b);
}

/* Of this thread: others may keep the machine busy. */
static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int time_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    const size_t len = strlen(path);
    mt_error err = {0};
    json_t *schema;
    mt_constraint *c;
    double begin;

    (void)st;
    (void)at;
    if (type != FTW_F || len < 5 || strcmp(path + len - 5, ".json") != 0)
        return 0;
    schema = json_load_file(path, JSON_DECODE_ANY, NULL);
    if (!schema) {
        folder.wrong++;
        return 0;
    }
    if (folder.count == folder.cap) {
        const size_t cap = folder.cap ? 2 * folder.cap : 1024;

        folder.all = mt_realloc(folder.all, folder.cap * sizeof(*folder.all), cap * sizeof(*folder.all));
        folder.cap = cap;
    }
    begin = cpu_ms();
    c = compile(schema, folder.v, &err);
    folder.all[folder.count++] = (timed){.path = mt_strdup(path), .ms = cpu_ms() - begin, .taken = c != NULL};
    folder.taken += c != NULL;
    if (!c)
        printf("%s: %s\n", path, err.text);
    mt_constraint_release(c);
    json_decref(schema);
    return 0;
}

static bool time_folder(const char *path, const mt_vocabulary *v)
{
    folder.v = v;
    if (nftw(path, time_file, OPEN, FTW_PHYS) != 0 || folder.count == 0) {
        fprintf(stderr, "there is no schema in \"%s\"\n", path);
        return false;
    }
    qsort(folder.all, folder.count, sizeof(*folder.all), by_time);
    printf("%zu schemas, %zu accepted (%.1f %%), %zu files are no JSON\n", folder.count, folder.taken,
           100.0 * (double)folder.taken / (double)folder.count, folder.wrong);
    printf("processor time to the first mask: median %.2f ms, 99 %% %.2f ms, worst %.2f ms\n",
           folder.all[folder.count / 2].ms, folder.all[folder.count * 99 / 100].ms, folder.all[folder.count - 1].ms);
    for (size_t i = folder.count; i-- > 0;) {
        if (folder.count - i <= SLOWEST)
            printf("%9.2f ms %s %s\n", folder.all[i].ms, folder.all[i].taken ? "accepted" : "refused ",
                   folder.all[i].path);
        mt_free(folder.all[i].path);
    }
    mt_free(folder.all);
    return true;
}

static size_t follow(const json_t *schema, const mt_vocabulary *v, mt_masks *masks, measured *first, measured *mask,
                     measured *token)
{
    uint64_t begin = mt_clock_ns(), seed = 1;
    mt_error err = {0};
    size_t bytes;
    mt_constraint *c = compile(schema, v, &err);

    if (!c) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    add(first, begin);
    for (size_t i = 0; i < ANSWERS; i++) {
        mt_run run;

        mt_run_begin(&run, c);
        for (size_t t = 0; t < TOKENS && !run.over; t++) {
            const uint32_t *bits;
            uint32_t id;

            mt_masks_round(masks);
            begin = mt_clock_ns();
            bits = mt_masks_get(masks, &run);
            add(mask, begin);
            id = pick(v, bits, &seed);
            begin = mt_clock_ns();
            if (!mt_run_token(&run, id))
                exit(1);
            add(token, begin);
        }
        mt_run_end(&run);
    }
    bytes = mt_constraint_bytes(c);
    mt_constraint_release(c);
    return bytes;
}

/* All of some schemas: masks and tokens, too. */
static bool time_answers(char *const *paths, size_t given, const mt_vocabulary *v)
{
    measured first = {.us = mt_alloc_array(SAMPLES, sizeof(double))},
             mask = {.us = mt_alloc_array(SAMPLES, sizeof(double))},
             token = {.us = mt_alloc_array(SAMPLES, sizeof(double))};
    mt_masks *masks = mt_masks_new(v->words, 1, MT_LIMIT_CONSTRAINT_MASKS);

    for (size_t i = 0; i < (given ? given : MT_COUNT(schemas)); i++) {
        json_t *schema = given ? json_load_file(paths[i], 0, NULL) : builtin(schemas[i]);
        const size_t before = mask.count;
        size_t bytes;
        double worst = 0;

        if (!schema)
            return false;
        bytes = follow(schema, v, masks, &first, &mask, &token);
        for (size_t k = before; k < mask.count; k++)
            worst = mask.us[k] > worst ? mask.us[k] : worst;
        printf("schema %zu: ready after %.2f ms, %.1f MiB, %zu tokens, worst mask %.0f us\n", i,
               first.us[first.count - 1] / 1e3, (double)bytes / 1048576, mask.count - before, worst);
        json_decref(schema);
    }
    report("schema to first mask", &first);
    report("mask", &mask);
    report("token", &token);
    first.count = mask.count = token.count = 0;
    follow(NULL, v, masks, &first, &mask, &token);
    report("text to first mask", &first);
    report("text: mask", &mask);
    report("text: token", &token);
    printf("%llu of %llu masks were computed\n", (unsigned long long)mt_masks_stats_of(masks)->computed,
           (unsigned long long)mt_masks_stats_of(masks)->asked);
    mt_masks_free(masks);
    mt_free(first.us);
    mt_free(mask.us);
    mt_free(token.us);
    return true;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int main(int argc, char **argv)
{
    mt_error err = {0};
    mt_tokenizer *tokenizer = argc > 1 ? mt_tokenizer_load(argv[1], &err) : NULL;
    mt_vocabulary *v;
    uint64_t begin;
    uint32_t end;
    bool ok;

    if (!tokenizer) {
        fprintf(stderr, "%s\n", argc > 1 ? err.text : "usage: bench_constraint TOKENIZER [FOLDER | SCHEMA.json ...]");
        return 1;
    }
    end = (uint32_t)mt_tokenizer_size(tokenizer);
    begin = mt_clock_ns();
    v = mt_vocabulary_new(tokenizer, end + 1, &end, 1);
    printf("vocabulary of %zu tokens: %zu plain nodes, %zu others, %.1f ms\n", v->tokens, v->plain.count, v->rest.count,
           (double)(mt_clock_ns() - begin) / 1e6);
    ok = argc == 3 && is_folder(argv[2]) ? time_folder(argv[2], v) : time_answers(argv + 2, (size_t)argc - 2, v);
    mt_vocabulary_free(v);
    mt_tokenizer_free(tokenizer);
    return ok ? 0 : 1;
}
