/* See elsewhere.h. */
#include "weights/elsewhere.h"

#include <string.h>

#include "base/compiler.h"

static const struct {
    const char *types, *whose, *instead;
} rows[] = {
#define ELSEWHERE(types, whose, instead) {types, whose, instead},
#include "weights/elsewhere.def"
};

static bool has(const char *types, const char *type)
{
    const size_t len = strlen(type);

    for (const char *at = types; at; at = strstr(at, ", ")) {
        at += *at == ',' ? 2 : 0;
        if (strncmp(at, type, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

bool mt_fail_elsewhere(const char *what, const char *type, const char *advice, mt_error *err)
{
    for (size_t i = 0; i < MT_COUNT(rows) && *type; i++)
        if (has(rows[i].types, type))
            return mt_fail(err, MT_E_UNSUPPORTED, "%s \"%s\" is %s, which motet does not run: take %s instead", what,
                           type, rows[i].whose, rows[i].instead);
    return mt_fail(err, MT_E_UNSUPPORTED, "%s \"%.64s\" is none that motet runs: %s", what, type, advice);
}
