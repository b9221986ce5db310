/* How kernels are started, by an environment variable, for measuring and debugging. Nothing here changes a bit.

       MOTET_CUDA=graphs=0,early=0,row=0,pair=0,ahead=0

   graphs 0: steps are never replayed as graphs; early 0: no kernel starts before the one before it has ended; row 0: up
   to 8 rows have no kernels of their own; pair 0: blocks of products with bf16 share nothing; ahead 0: no step is begun
   before the one before it is settled. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

typedef struct word {
    const char *name;
    uint32_t *to;
} word;

static bool read_word(const word *w, const char *text, size_t length)
{
    const size_t name = strlen(w->name);
    if (length != name + 2 || strncmp(text, w->name, name) != 0 || text[name] != '=')
        return false;
    const char digit = text[name + 1];
    *w->to = digit == '1';
    return digit == '0' || digit == '1';
}

bool mt_cuda_ways_read(mt_cuda_ways *ways, const char *text, mt_error *err)
{
    *ways = (mt_cuda_ways){.graphs = 1, .early = 1, .row = 1, .pair = 1, .ahead = 1};
    const word words[] = {{"graphs", &ways->graphs},
                          {"early", &ways->early},
                          {"row", &ways->row},
                          {"pair", &ways->pair},
                          {"ahead", &ways->ahead}};
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        bool known = false;
        for (size_t i = 0; i < MT_COUNT(words); i++)
            known = known || read_word(&words[i], text, length);
        if (!known)
            return mt_fail(err, MT_E_INVALID,
                           "MOTET_CUDA has \"%.*s\"; it knows graphs=0, early=0, row=0, pair=0 and ahead=0",
                           (int)(length < 40 ? length : 40), text);
        text += length + (text[length] == ',');
    }
    return true;
}
