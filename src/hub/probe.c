/* Checks a model before its weights are downloaded (probe.h). */
#include "hub/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/units.h"
#include "hub/limits.h"
#include "hub/remove.h"
#include "models/info.h"
#include "weights/elsewhere.h"
#include "weights/gguf_arch.h"
#include "weights/gguf_place.h"

static bool fail_system(const char *path, mt_error *err)
{
    return mt_fail(err, MT_E_IO, "\"%s\" cannot be written (%s): set TMPDIR to a folder that can", path,
                   strerror(errno));
}

bool mt_probe_open(mt_probe *probe, const char *id, mt_error *err)
{
    const char *tmp = getenv("TMPDIR");

    probe->id = id;
    if (snprintf(probe->folder, sizeof(probe->folder), "%s/motet-pull-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
        (int)sizeof(probe->folder) - MT_LIMIT_HUB_NAME)
        return mt_fail(err, MT_E_TOO_LARGE, "TMPDIR is too long: set it to a shorter one");
    if (mkdtemp(probe->folder))
        return true;
    fail_system(probe->folder, err);
    probe->folder[0] = '\0';
    return false;
}

void mt_probe_close(mt_probe *probe)
{
    if (probe->folder[0])
        (void)!mt_remove_path(probe->folder, NULL);
    probe->folder[0] = '\0';
}

/* Names have at most one folder (hub/listing.c). */
static bool place(char path[MT_LIMIT_PATH], const mt_probe *probe, const char *name, mt_error *err)
{
    char *slash;

    if (!mt_hub_join(path, probe->folder, name))
        return mt_fail(err, MT_E_TOO_LARGE, "TMPDIR is too long: set it to a shorter one");
    slash = strchr(path + strlen(probe->folder) + 1, '/');
    if (!slash)
        return true;
    *slash = '\0';
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fail_system(path, err);
    *slash = '/';
    return true;
}

bool mt_probe_link(const mt_probe *probe, const char *name, const char *path, mt_error *err)
{
    char at[MT_LIMIT_PATH], whole[MT_LIMIT_PATH];

    if (!place(at, probe, name, err))
        return false;
    if (!realpath(path, whole))
        return fail_system(path, err);
    unlink(at);
    return symlink(whole, at) == 0 || fail_system(at, err);
}

bool mt_probe_note(const mt_probe *probe, const char *name, mt_error *err)
{
    return mt_probe_fill(probe, name, NULL, 0, 0, err);
}

bool mt_probe_fill(const mt_probe *probe, const char *name, const void *header, size_t len, uint64_t size,
                   mt_error *err)
{
    char path[MT_LIMIT_PATH];
    bool ok;
    int fd;

    if (!place(path, probe, name, err))
        return false;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ok = fd >= 0 && (len == 0 || write(fd, header, len) == (ssize_t)len) && ftruncate(fd, (off_t)size) == 0;
    if (!ok)
        fail_system(path, err);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Replaces the temporary folder by the model's name in a message. */
static bool rename_in(const mt_probe *probe, mt_error *err)
{
    char text[MT_LIMIT_ERROR_TEXT], *found;

    while ((found = strstr(err->text, probe->folder))) {
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(found - err->text), err->text, probe->id,
                 found + strlen(probe->folder));
        memcpy(err->text, text, sizeof(text));
    }
    return false;
}

bool mt_probe_shards(const mt_probe *probe, mt_shards *out, mt_arena *arena, mt_error *err)
{
    return mt_shards_find(out, probe->folder, arena, err) || rename_in(probe, err);
}

uint64_t mt_probe_memory(uint64_t memory)
{
    return memory ? memory : mt_memory_total() / 4 * 3;
}

/* cache: bytes for a thousand tokens; NULL: unknown. */
static bool check_memory(const mt_probe *probe, uint64_t weights, const uint64_t *cache, uint64_t memory, mt_error *err)
{
    char needs[MT_UNITS_TEXT], more[MT_UNITS_TEXT], may[MT_UNITS_TEXT], all[MT_UNITS_TEXT];

    memory = mt_probe_memory(memory);
    if (weights + (cache ? *cache : 0) <= memory)
        return true;
    return mt_fail(
        err, MT_E_MEMORY,
        "\"%s\" takes %s for its weights%s%s%s; motet may take %s here, of %s: choose a smaller one, or one in "
        "fewer bits",
        probe->id, mt_bytes_text(weights, needs), cache ? " and " : "", cache ? mt_bytes_text(*cache, more) : "",
        cache ? " for a thousand tokens" : "", mt_bytes_text(memory, may), mt_bytes_text(mt_memory_total(), all));
}

bool mt_probe_judge_gguf(const mt_probe *probe, const char *file, uint64_t weights, uint64_t memory, mt_error *err)
{
    char path[MT_LIMIT_PATH], architecture[MT_GGUF_LABEL];

    if (!mt_hub_join(path, probe->folder, file) || !mt_gguf_architecture(path, architecture))
        return mt_fail(err, MT_E_INVALID, "\"%s\" of \"%s\" is no GGUF file that motet reads: take another model", file,
                       probe->id);
    if (!mt_gguf_arch_known(architecture))
        return mt_fail_elsewhere("architecture", architecture, MT_ELSEWHERE_ADVICE, err) ||
               mt_fail_within(err, "\"%s\"", probe->id);
    return check_memory(probe, weights, NULL, memory, err);
}

bool mt_probe_judge(const mt_probe *probe, uint64_t memory, mt_error *err)
{
    mt_info info;
    bool ok = mt_info_gather(&info, probe->folder, err);

    if (ok && info.problem.code != MT_OK) {
        *err = info.problem;
        ok = false;
    }
    const uint64_t weights = info.cost.mapped_bytes + info.cost.copied_bytes;
    const uint64_t cache = info.cache_bytes + info.state_bytes; /* for a thousand tokens */
    mt_info_free(&info);
    if (!ok)
        return rename_in(probe, err);
    return check_memory(probe, weights, &cache, memory, err);
}
