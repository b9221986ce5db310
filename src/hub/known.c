/* Short names of popular models (known.h). */
#include "hub/known.h"

#include <string.h>
#include <strings.h>

#include "base/compiler.h"

const mt_hub_short mt_hub_shorts[] = {
#define KNOWN(name, repository) {name, repository},
#include "hub/known.def"
};
const size_t mt_hub_short_count = MT_COUNT(mt_hub_shorts);

const char *mt_hub_known(const char *name)
{
    for (size_t i = 0; i < mt_hub_short_count; i++) {
        const size_t len = strlen(mt_hub_shorts[i].name);

        if (strncasecmp(name, mt_hub_shorts[i].name, len) == 0 && (!name[len] || strcmp(name + len, ":latest") == 0))
            return mt_hub_shorts[i].repository;
    }
    return NULL;
}

bool mt_hub_name_read_known(mt_hub_name *out, const char *text)
{
    const char *repository = mt_hub_known(text);

    return mt_hub_name_read(out, repository ? repository : text);
}
