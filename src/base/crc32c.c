/* Eight bytes at a time, by eight tables: what a byte does to the sum when so many others follow it. */
#include "base/crc32c.h"

#include <pthread.h>

#define POLYNOMIAL 0x82f63b78u /* bits reversed */

static uint32_t table[8][256];

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t sum = i;
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
        table[0][i] = sum;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (size_t k = 1; k < 8; k++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

uint32_t mt_crc32c(uint32_t sum, const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint8_t *p = data;
    pthread_once(&once, make_table);
    sum = ~sum;
    for (; size >= 8; size -= 8, p += 8) {
        const uint32_t a = sum ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        sum = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^
              table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (; size > 0; size--)
        sum = sum >> 8 ^ table[0][(sum ^ *p++) & 255];
    return ~sum;
}
