/* A folder for fuzzers of what is read from files, which goes when the program ends. */
#ifndef MT_FUZZ_SCRATCH_H
#define MT_FUZZ_SCRATCH_H

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char scratch[64];

static inline void scratch_forget(void)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
    if (system(command) != 0)
        return;
}

/* The path of a file in it. */
static inline const char *scratch_path(const char *name)
{
    static char path[128];

    if (!scratch[0]) {
        snprintf(scratch, sizeof(scratch), "/tmp/motet-fuzz-XXXXXX");
        assert(mkdtemp(scratch));
        atexit(scratch_forget);
    }
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    return path;
}

/* Writes a file that only its owner may read, and tells its path. */
static inline const char *scratch_put(const char *name, const void *data, size_t size)
{
    const char *path = scratch_path(name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
    return path;
}

#endif
