/* CRC32C (Castagnoli), the checksum of what is kept in files. */
#ifndef MT_BASE_CRC32C_H
#define MT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `size` bytes that follow others whose checksum is `sum`; 0 where none went before. */
uint32_t mt_crc32c(uint32_t sum, const void *data, size_t size);

/* The same where the machine has no instruction for it. */
uint32_t mt_crc32c_by_table(uint32_t sum, const void *data, size_t size);

#endif
