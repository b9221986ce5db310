/* See cgroup.h. */
#include "base/cgroup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

bool mt_cgroup_read(char *text, size_t size, const char *fmt, ...)
{
    char path[MT_LIMIT_PATH];
    va_list args;
    FILE *file;
    size_t len;

    va_start(args, fmt);
    vsnprintf(path, sizeof(path), fmt, args);
    va_end(args);
    file = fopen(path, "re");
    if (!file)
        return false;
    len = fread(text, 1, size - 1, file);
    fclose(file);
    text[len] = '\0';
    return len > 0;
}

/* Whether a list such as "cpu,memory" has a name. */
static bool lists(const char *list, size_t len, const char *name)
{
    const char *end = list + len;

    for (const char *at = list; at <= end; at += strcspn(at, ",:") + 1)
        if (strlen(name) == strcspn(at, ",:") && strncmp(at, name, strlen(name)) == 0)
            return true;
    return false;
}

/* The path of the process's group, within the lines "number:controllers:path" of `text`, which is cut after it; NULL:
   there is none. */
static char *find_group(char *text, const char *controller)
{
    for (char *line = text; *line;) {
        char *next = line + strcspn(line, "\n"), *names = strchr(line, ':'), *path;

        if (*next)
            *next++ = '\0';
        path = names ? strchr(names + 1, ':') : NULL;
        if (path && lists(names + 1, (size_t)(path - names - 1), controller))
            return path + 1;
        line = next;
    }
    return NULL;
}

uint64_t mt_cgroup_least(const char *root, const char *controller, const char *file, uint64_t (*limit_of)(const char *))
{
    char lines[MT_LIMIT_PATH], text[64];
    uint64_t best = UINT64_MAX;
    char *group, *slash;

    if (!mt_cgroup_read(lines, sizeof(lines), "%s/proc/self/cgroup", root))
        return best;
    group = find_group(lines, controller);
    if (!group)
        return best;
    /* In a container the path may be the machine's, of which the container sees the last group as the first. */
    do {
        uint64_t limit;

        slash = strrchr(group, '/');
        if (mt_cgroup_read(text, sizeof(text), "%s/sys/fs/cgroup/%s%s/%s", root, controller, group, file)) {
            limit = limit_of(text);
            best = limit < best ? limit : best;
        }
        if (slash)
            *slash = '\0';
    } while (slash);
    return best;
}
