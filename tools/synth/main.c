#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "synth/synth.h"
#include "weights/limits.h"

typedef struct request {
    mt_synth_model model;
    mt_synth_layout layout;
    const char *dir;
    uint64_t seed, shard_bytes;
    bool help;
} request;

static void print_help(void)
{
    printf("usage: synth MODEL DIR [options]\n"
           "       synth --wide-test DIR [options]     the same as MODEL wide\n\n"
           "Writes a checkpoint with random weights and a real model's shapes into DIR: config.json and\n"
           "model.safetensors, or several of these with an index. The same arguments give the same bytes.\n\n"
           "models\n");
    for (size_t i = 0; mt_synth_model_at(i); i++)
        printf("  %-15s %s\n", mt_synth_model_at(i)->name, mt_synth_model_at(i)->about);
    printf("\noptions\n"
           "  --layers N      only the first N layers\n"
           "  --layout NAME   bf16 (Hugging Face names, the default), fp8 (the same), mlx-4bit or mlx-8bit\n"
           "  --group N       weights that share a scale in the MLX layouts: 32, 64 (the default) or 128\n"
           "  --seed N        other weights (default 1)\n"
           "  --echo          every token is followed by itself, also in the opinion of a draft head\n"
           "  --shard-mb N    split files beyond this size (default 5000)\n"
           "  --help          this text\n");
}

static bool parse_number(const char *name, const char *text, uint64_t low, uint64_t high, uint64_t *out, mt_error *err)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || *out < low || *out > high)
        return mt_fail(err, MT_E_INVALID, "'%s' is no value for %s: give a number from %" PRIu64 " to %" PRIu64, text,
                       name, low, high);
    return true;
}

static bool parse_layout(request *r, const char *text, mt_error *err)
{
    if (!strcmp(text, "bf16") || !strcmp(text, "fp8"))
        r->layout.bits = 0, r->layout.fp8 = !strcmp(text, "fp8");
    else if (!strcmp(text, "mlx-4bit"))
        r->layout.bits = 4;
    else if (!strcmp(text, "mlx-8bit"))
        r->layout.bits = 8;
    else
        return mt_fail(err, MT_E_INVALID, "'%s' is no layout: use bf16, fp8, mlx-4bit or mlx-8bit", text);
    return true;
}

static bool parse_group(request *r, const char *text, mt_error *err)
{
    uint64_t n;

    if (!parse_number("--group", text, 32, 128, &n, err))
        return false;
    if (n != 32 && n != 64 && n != 128)
        return mt_fail(err, MT_E_INVALID, "'%s' is no group size: use 32, 64 or 128", text);
    r->layout.group = (size_t)n;
    return true;
}

static bool parse_option(request *r, const char *name, const char *value, mt_error *err)
{
    uint64_t n;

    if (!value)
        return mt_fail(err, MT_E_INVALID, "'%s' needs a value: see --help", name);
    if (!strcmp(name, "--layout"))
        return parse_layout(r, value, err);
    if (!strcmp(name, "--group"))
        return parse_group(r, value, err);
    if (!strcmp(name, "--seed"))
        return parse_number(name, value, 0, UINT64_MAX, &r->seed, err);
    if (!strcmp(name, "--layers")) {
        if (!parse_number(name, value, 1, MT_LIMIT_LAYERS, &n, err))
            return false;
        r->model.layers = (size_t)n; /* the model is known by now: it comes first */
        return true;
    }
    if (!strcmp(name, "--shard-mb")) {
        if (!parse_number(name, value, 1, 1u << 20, &n, err))
            return false;
        r->shard_bytes = n * 1000000;
        return true;
    }
    return mt_fail(err, MT_E_INVALID, "'%s' is no option: see --help", name);
}

static bool parse_model(request *r, const char *name, mt_error *err)
{
    const mt_synth_model *model = mt_synth_model_named(!strcmp(name, "--wide-test") ? "wide" : name);

    if (!model)
        return mt_fail(err, MT_E_NOT_FOUND, "'%s' is no model this program knows: see --help", name);
    r->model = *model;
    return true;
}

static bool parse(request *r, int argc, char **argv, mt_error *err)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help")) {
            r->help = true;
            return true;
        }
    if (argc < 3)
        return mt_fail(err, MT_E_INVALID, "a model and a folder are needed: see --help");
    if (!parse_model(r, argv[1], err))
        return false;
    r->dir = argv[2];
    for (int i = 3; i < argc; i++)
        if (!strcmp(argv[i], "--echo"))
            r->model.echo = true;
        else if (!parse_option(r, argv[i], argv[i + 1], err)) /* argv ends with NULL */
            return false;
        else
            i++;
    return true;
}

static bool make_folder(const char *dir, mt_error *err)
{
    char config[MT_LIMIT_PATH];
    struct stat found;

    if (mkdir(dir, 0755) && errno != EEXIST)
        return mt_fail(err, MT_E_IO, "cannot create '%s': %s", dir, strerror(errno));
    snprintf(config, sizeof(config), "%s/config.json", dir);
    if (!stat(config, &found))
        return mt_fail(err, MT_E_INVALID, "'%s' holds a checkpoint already: remove it or name another folder", dir);
    return true;
}

/* config.json comes last: a folder that has one is complete. */
static bool make_checkpoint(const request *r, mt_error *err)
{
    mt_synth_plan plan;
    mt_buf config;
    bool ok;

    if (!make_folder(r->dir, err))
        return false;
    mt_buf_init(&config, MT_LIMIT_CONFIG_BYTES);
    mt_synth_config(&config, &r->model, &r->layout);
    mt_synth_plan_init(&plan, &r->model, &r->layout);
    ok = mt_synth_write(r->dir, &plan, r->layout.bits ? "mlx" : "pt", r->seed, r->shard_bytes, err) &&
         mt_synth_write_file(r->dir, "config.json", &config, err);
    mt_synth_plan_free(&plan);
    mt_buf_free(&config);
    return ok;
}

int main(int argc, char **argv)
{
    request r = {.layout = {.group = 64}, .seed = 1, .shard_bytes = 5000000000u};
    mt_error err;

    if (!parse(&r, argc, argv, &err)) {
        fprintf(stderr, "synth: %s\n", err.text);
        return 2;
    }
    if (r.help) {
        print_help();
        return EXIT_SUCCESS;
    }
    if (!make_checkpoint(&r, &err)) {
        fprintf(stderr, "synth: %s\n", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
