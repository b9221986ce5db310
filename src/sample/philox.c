/* The random number generator (philox.h). */
#include "sample/philox.h"

enum { ROUNDS = 10 };

void mt_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

uint64_t mt_philox_draw(uint64_t seed, uint32_t choice, uint32_t index, mt_purpose purpose)
{
    const uint32_t counter[4] = {choice, index, (uint32_t)purpose, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    mt_philox(counter, key, out);
    return (uint64_t)out[0] << 32 | out[1];
}
