#include "api/random.h"

#include <stdlib.h>

#include <openssl/rand.h>

#include "base/log.h"

void mt_random(void *out, size_t len)
{
    if (RAND_bytes(out, (int)len) == 1)
        return;
    mt_log_error("random", "the system has no random numbers to give");
    abort();
}
