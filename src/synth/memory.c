/* A checkpoint in memory (synth.h): weights are written to a file without a name; then a folder is made for the moment
   in which it is opened, with config.json and a link to the open file. A program that ends while weights are made
   leaves nothing behind. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "synth/synth.h"
#include "weights/limits.h"

static const char *const names[] = {"config.json", "model.safetensors"};

static const char *temporary(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && *folder && strlen(folder) < 32 ? folder : "/tmp";
}

static int nameless(void)
{
#ifdef __linux__
    return memfd_create("motet weights", MFD_CLOEXEC);
#else
    char path[64];

    snprintf(path, sizeof(path), "%s/motet-XXXXXX", temporary());
    const int fd = mkstemp(path);
    if (fd >= 0)
        unlink(path);
    return fd;
#endif
}

/* Checks that the weights fit beside what runs. */
static bool check_room(const mt_synth_plan *plan, const char *name, mt_error *err)
{
    const uint64_t memory = mt_memory_total();
    uint64_t bytes = 0;

    for (size_t i = 0; i < plan->count; i++)
        bytes += mt_synth_tensor_bytes(&plan->tensors[i]);
    return bytes < memory / 10 * 8 ||
           mt_fail(err, MT_E_MEMORY, "the weights of \"%s\" take %.1f GiB and the machine has %.1f; take fewer bits",
                   name, (double)bytes / (1 << 30), (double)memory / (1 << 30));
}

static void hold_signals(mt_synth_drawn *drawn)
{
    sigset_t held;

    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &held, &drawn->signals);
}

static bool make_folder(mt_synth_drawn *drawn, const mt_buf *config, mt_error *err)
{
    char path[128], target[32];

    snprintf(drawn->dir, sizeof(drawn->dir), "%s/motet-shape-XXXXXX", temporary());
    hold_signals(drawn);
    if (!mkdtemp(drawn->dir)) {
        drawn->dir[0] = '\0';
        return mt_fail(err, MT_E_IO, "no folder can be made in \"%s\": %s", temporary(), strerror(errno));
    }
    snprintf(path, sizeof(path), "%s/%s", drawn->dir, names[1]);
    snprintf(target, sizeof(target), "/dev/fd/%d", drawn->fd);
    if (symlink(target, path))
        return mt_fail(err, MT_E_IO, "\"%s\" cannot be made: %s", path, strerror(errno));
    return mt_synth_write_file(drawn->dir, names[0], config, err);
}

bool mt_synth_draw(mt_synth_drawn *drawn, const mt_synth_model *model, const mt_synth_layout *layout, uint64_t seed,
                   mt_error *err)
{
    mt_synth_plan plan;
    mt_buf config;

    *drawn = (mt_synth_drawn){.fd = nameless()};
    pthread_sigmask(SIG_BLOCK, NULL, &drawn->signals);
    if (drawn->fd < 0)
        return mt_fail(err, MT_E_IO, "there is no memory for weights: %s", strerror(errno));
    mt_buf_init(&config, MT_LIMIT_CONFIG_BYTES);
    mt_synth_config(&config, model, layout);
    mt_synth_plan_init(&plan, model, layout);
    const bool ok = check_room(&plan, model->name, err) &&
                    mt_synth_write_one(drawn->fd, &plan, layout->bits ? "mlx" : "pt", seed, err) &&
                    make_folder(drawn, &config, err);
    mt_synth_plan_free(&plan);
    mt_buf_free(&config);
    if (!ok)
        mt_synth_vanish(drawn);
    return ok;
}

void mt_synth_vanish(mt_synth_drawn *drawn)
{
    char path[128];

    for (size_t i = 0; drawn->dir[0] && i < MT_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", drawn->dir, names[i]);
        unlink(path);
    }
    if (drawn->dir[0])
        rmdir(drawn->dir);
    if (drawn->fd >= 0)
        close(drawn->fd);
    pthread_sigmask(SIG_SETMASK, &drawn->signals, NULL);
    *drawn = (mt_synth_drawn){.fd = -1};
}
