/* See types.h. */
#include "files/types.h"

#include <string.h>
#include <strings.h>

#include "base/compiler.h"

static const char unknown[] = "application/octet-stream";

static const struct {
    const char *ending, *type;
} types[] = {{"c", "text/x-c"},
             {"csv", "text/csv"},
             {"gif", "image/gif"},
             {"h", "text/x-c"},
             {"htm", "text/html"},
             {"html", "text/html"},
             {"jpeg", "image/jpeg"},
             {"jpg", "image/jpeg"},
             {"json", "application/json"},
             {"jsonl", "application/jsonl"},
             {"md", "text/markdown"},
             {"mp4", "video/mp4"},
             {"pdf", "application/pdf"},
             {"png", "image/png"},
             {"py", "text/x-python"},
             {"txt", "text/plain"},
             {"webp", "image/webp"},
             {"xml", "application/xml"}};

const char *mt_files_type(const char *given, const char *name)
{
    const char *dot = strrchr(name, '.');

    if (*given && strcasecmp(given, unknown) != 0)
        return given;
    for (size_t i = 0; dot && i < MT_COUNT(types); i++)
        if (strcasecmp(dot + 1, types[i].ending) == 0)
            return types[i].type;
    return unknown;
}
