/* The address of a server, which can stand in place of a folder. */
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

bool mt_is_address(const char *text)
{
    const char *colon = *text == '[' ? strstr(text, "]:") : strchr(text, ':');
    size_t digits;
    struct stat st;

    if (!colon || colon == text || stat(text, &st) == 0)
        return false;
    colon += *colon == ']';
    digits = strspn(colon + 1, "0123456789");
    return strcspn(text, "/") > (size_t)(colon - text) && digits > 0 && digits < 6 &&
           (colon[1 + digits] == '\0' || colon[1 + digits] == '/');
}
