/* Eight bytes at a time: by the processor's instruction where there is one, ten times as fast; else by eight tables,
   one for each position of a byte among the eight. */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

/* Whether the processor has the instruction MT_CRC32C_WORD of base/compiler.h, which says it itself for x86-64. */
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#define MT_CRC32C_CAN() ((getauxval(AT_HWCAP) & 1ul << 7) != 0) /* HWCAP_CRC32 */
#elif defined(__aarch64__) && defined(__APPLE__)
#define MT_CRC32C_CAN() true
#endif

#define POLYNOMIAL 0x82f63b78u /* bits reversed */

static uint32_t table[8][256];
#ifdef MT_CRC32C_CAN
static bool has_instruction;
#endif

static void make_table(void)
{
#ifdef MT_CRC32C_CAN
    has_instruction = MT_CRC32C_CAN();
#endif
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

/* Adds the last bytes, fewer than eight, and ends the checksum: inverts its bits. */
static uint32_t add_bytes(uint32_t sum, const uint8_t *p, size_t size)
{
    for (; size > 0; size--)
        sum = sum >> 8 ^ table[0][(sum ^ *p++) & 255];
    return ~sum;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

uint32_t mt_crc32c_by_table(uint32_t sum, const void *data, size_t size)
{
    const uint8_t *p = data;
    pthread_once(&once, make_table);
    sum = ~sum;
    for (; size >= 8; size -= 8, p += 8) {
        const uint32_t a = sum ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        sum = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^
              table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    return add_bytes(sum, p, size);
}

#if defined(MT_CRC32C_WORD) && defined(MT_CRC32C_CAN)

uint32_t mt_crc32c(uint32_t sum, const void *data, size_t size)
{
    const uint8_t *p = data;
    uint64_t all = ~sum, word;
    pthread_once(&once, make_table);
    if (!has_instruction)
        return mt_crc32c_by_table(sum, data, size);
    for (; size >= 8; size -= 8, p += 8) {
        memcpy(&word, p, sizeof(word));
        MT_CRC32C_WORD(all, word);
    }
    return add_bytes((uint32_t)all, p, size);
}

#else

uint32_t mt_crc32c(uint32_t sum, const void *data, size_t size)
{
    return mt_crc32c_by_table(sum, data, size);
}

#endif
