/* The start of the program: reads the options, finds the model, and calls the command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crash.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mapping.h"
#include "cli/cli.h"
#include "hub/find.h"
#include "ranks/ranks.h"
#include "weights/gguf_place.h"

enum { EXIT_USAGE = 2 };

static int dispatch(const mt_options *opt)
{
    if (opt->help)
        return mt_cmd_help(opt);
    switch (opt->command) {
    case MT_COMMAND_CHAT: return mt_cmd_chat(opt);
    case MT_COMMAND_INFO: return mt_cmd_info(opt);
    case MT_COMMAND_SERVE: return mt_cmd_serve(opt);
    case MT_COMMAND_PS: return mt_cmd_ps(opt);
    case MT_COMMAND_STOP: return mt_cmd_stop(opt);
    case MT_COMMAND_BATCH: return mt_cmd_batch(opt);
    case MT_COMMAND_RUN: return mt_cmd_run(opt);
    case MT_COMMAND_TOKENIZE: return mt_cmd_tokenize(opt);
    case MT_COMMAND_DETOKENIZE: return mt_cmd_detokenize(opt);
    case MT_COMMAND_RENDER: return mt_cmd_render(opt);
    case MT_COMMAND_VERIFY: return mt_cmd_verify(opt);
    case MT_COMMAND_BENCH: return mt_cmd_bench(opt);
    case MT_COMMAND_PULL: return mt_cmd_pull(opt);
    case MT_COMMAND_LIST: return mt_cmd_list(opt);
    case MT_COMMAND_SHOW: return mt_cmd_info(opt);
    case MT_COMMAND_RM: return mt_cmd_rm(opt);
    case MT_COMMAND_VERSION:
    case MT_COMMAND_HELP:
    case MT_COMMAND_NONE: return mt_cmd_help(opt);
    }
    return EXIT_FAILURE;
}

/* Replaces the name of a model by the folder that holds it. The name becomes the served model name, unless the options
   give one. *folder owns the path. */
static bool find_model(mt_options *opt, char **folder, mt_error *err)
{
    if (!opt->dir || opt->help || opt->command == MT_COMMAND_RENDER || opt->command == MT_COMMAND_VERIFY ||
        opt->command == MT_COMMAND_PULL || opt->command == MT_COMMAND_RM || opt->command == MT_COMMAND_PS ||
        opt->command == MT_COMMAND_STOP || opt->command == MT_COMMAND_BATCH ||
        (opt->command == MT_COMMAND_CHAT && mt_is_address(opt->dir)) ||
        (opt->command == MT_COMMAND_BENCH && mt_bench_has_url(opt)))
        return true;
    *folder = mt_hub_find(opt->dir, opt->models_dir, getenv, err);
    if (!*folder)
        return false;
    if (!opt->served_name && strcmp(*folder, opt->dir) != 0)
        opt->served_name = opt->dir;
    opt->dir = *folder;
    return true;
}

/* Says which projectors GGUF models have, before the first is opened. */
static bool choose_projector(const mt_options *opt, mt_error *err)
{
    mt_gguf_place place;

    if (opt->help)
        return true;
    if (opt->mmproj && !opt->dir)
        return mt_fail(err, MT_E_INVALID, "--mmproj is a projector for a model: give the model's GGUF file, too");
    if (opt->mmproj && !opt->text_only && !mt_gguf_use_projector(opt->dir, opt->mmproj, err))
        return false;
    if (opt->text_only && opt->dir && mt_gguf_locate(&place, opt->dir, NULL, NULL) && place.projector[0])
        mt_log_info("model.projector", "\"%s\" is left out, since --text-only asks for it", place.projector);
    if (opt->text_only)
        mt_gguf_use_no_projectors();
    return true;
}

/* Whether the command is run by all processes of an MPI job together. */
static bool is_joint(const mt_options *opt)
{
    return !opt->help &&
           ((opt->command == MT_COMMAND_SERVE && !opt->check) || (opt->command == MT_COMMAND_RUN && !opt->input) ||
            (opt->command == MT_COMMAND_BENCH && !mt_bench_has_url(opt)));
}

/* Whether mpirun has started several processes for a command that one runs. */
static bool is_many(const mt_options *opt)
{
    const bool works = opt->command != MT_COMMAND_NONE && opt->command != MT_COMMAND_HELP &&
                       opt->command != MT_COMMAND_VERSION && !opt->help;

    return works && !is_joint(opt) && mt_ranks_started() > 1;
}

/* Runs the command on rank 0; all other ranks follow rank 0. */
static int run(mt_options *opt, char **folder)
{
    mt_error err = {0};
    int status = EXIT_FAILURE;

    if (is_many(opt))
        fprintf(stderr,
                "motet: %zu processes were started together, and this command is one process': start it without "
                "mpirun\n",
                mt_ranks_started());
    else if (is_joint(opt) && !mt_ranks_join((double)opt->rank_seconds, &err))
        fprintf(stderr, "motet: %s\n", err.text);
    else if (!find_model(opt, folder, &err) || !choose_projector(opt, &err))
        fprintf(stderr, "motet: %s\n", err.text);
    else if (mt_ranks_own(mt_ranks_all()) > 0)
        status = mt_cmd_follow(opt);
    else
        status = dispatch(opt);
    mt_ranks_part();
    return status;
}

int main(int argc, char **argv)
{
    mt_options opt;
    char *folder = NULL;
    mt_error err;
    int status;

    mt_file_take_standard();
    mt_alloc_setup();
    mt_crash_setup();
    mt_mapping_guard();
    if (!mt_options_parse(&opt, argc, argv, getenv, &err)) {
        fprintf(stderr, "motet: %s\n", err.text);
        mt_options_free(&opt);
        return EXIT_USAGE;
    }
    mt_log_setup(opt.trace ? MT_LOG_DEBUG : opt.log_level, opt.log_format);
    status = run(&opt, &folder);
    mt_options_free(&opt);
    mt_free(folder);
    if (fflush(stdout) || ferror(stdout)) {
        perror("motet: cannot write the output");
        return EXIT_FAILURE;
    }
    return argc > 1 ? status : EXIT_USAGE; /* without any argument the help is printed, but it is still a usage error */
}
