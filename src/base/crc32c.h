/* CRC32C (Castagnoli), the checksum of records in files. */
#ifndef MT_BASE_CRC32C_H
#define MT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes that follow others whose checksum is `sum`; 0: none. */
uint32_t mt_crc32c(uint32_t sum, const void *data, size_t size);

/* The same without the processor's instruction. */
uint32_t mt_crc32c_by_table(uint32_t sum, const void *data, size_t size);

#endif
