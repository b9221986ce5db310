/* Random bytes, and ids of answers. */
#include "api/random.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "api/answer.h"
#include "base/log.h"

void mt_random(void *out, size_t len)
{
    if (RAND_bytes(out, (int)len) == 1)
        return;
    mt_log_error("random", "the system has no random numbers to give");
    abort();
}

void mt_answer_name(char id[MT_ANSWER_ID], const char *prefix)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    const size_t len = strlen(prefix);
    uint8_t random[24];

    mt_random(random, sizeof(random));
    memcpy(id, prefix, len);
    for (size_t i = 0; i < sizeof(random); i++)
        id[len + i] = digits[random[i] % 32];
    id[len + sizeof(random)] = '\0';
}
