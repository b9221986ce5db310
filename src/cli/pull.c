/* The command motet pull: downloads a model from a hub and shows the progress. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "base/units.h"
#include "cli/cli.h"
#include "hub/limits.h"
#include "hub/pull.h"

enum { EXIT_INTERRUPTED = 130 };

static atomic_bool interrupted;

static void interrupt(int number)
{
    (void)number;
    /* relaxed: the flag carries nothing but itself */
    atomic_store_explicit(&interrupted, true, memory_order_relaxed);
}

static void heed_signals(void)
{
    /* A second signal ends the program at once */
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* The progress line. */
typedef struct display {
    char what[MT_LIMIT_HUB_NAME + 32];
    mt_progress progress;
    bool begun;
    uint64_t total; /* bytes of the model */
    size_t files;
} display;

static void show(void *arg, const mt_pull_status *status)
{
    display *d = arg;

    d->total = status->total;
    d->files = status->count;
    if (status->count == 0) /* the files are not known yet */
        return;
    if (!d->begun)
        mt_progress_begin_bytes(&d->progress, "pull.downloading", d->what, status->done, status->total);
    d->begun = true;
    mt_progress_set(&d->progress, status->done, status->total);
}

int mt_cmd_pull(const mt_options *opt)
{
    display d = {0};
    mt_pull_params params = {.model = opt->dir,
                             .env = getenv,
                             .memory = (uint64_t)opt->memory,
                             .force = opt->force,
                             .at_once = (size_t)opt->at_once,
                             .progress = show,
                             .arg = &d,
                             .cancel = &interrupted};
    char size[MT_UNITS_TEXT], *folder;
    mt_error err = {0};

    snprintf(d.what, sizeof(d.what), "pulling %.200s", opt->dir);
    heed_signals();
    folder = mt_pull(&params, &err);
    mt_progress_end();
    if (folder) {
        printf("\"%s\" is here: %zu file%s, %s, in %s\n", opt->dir, d.files, d.files == 1 ? "" : "s",
               mt_bytes_text(d.total, size), folder);
        mt_free(folder);
        return EXIT_SUCCESS;
    }
    /* relaxed: the flag carries nothing but itself */
    if (atomic_load_explicit(&interrupted, memory_order_relaxed)) {
        fprintf(stderr, "motet: interrupted; motet pull %s goes on from here\n", opt->dir);
        return EXIT_INTERRUPTED;
    }
    fprintf(stderr, "motet: %s%s\n", err.text,
            !opt->force && (err.code == MT_E_UNSUPPORTED || err.code == MT_E_MEMORY) && mt_pull_present
                ? "; --force downloads it all the same"
                : "");
    return EXIT_FAILURE;
}
