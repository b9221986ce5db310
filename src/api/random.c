/* See random.h. */
#include "api/random.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "base/log.h"

void mt_random(void *out, size_t len)
{
    if (RAND_bytes(out, (int)len) == 1)
        return;
    mt_log_error("random", "the system has no random numbers to give");
    abort();
}

void mt_random_id(char id[MT_RANDOM_ID], const char *prefix)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    const size_t len = strlen(prefix);
    uint8_t random[24];

    assert(len + sizeof(random) < MT_RANDOM_ID);
    mt_random(random, sizeof(random));
    memcpy(id, prefix, len);
    for (size_t i = 0; i < sizeof(random); i++)
        id[len + i] = digits[random[i] % 32];
    id[len + sizeof(random)] = '\0';
}
