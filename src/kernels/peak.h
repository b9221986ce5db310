/* Measures peaks of a processor on one thread: reading memory, and multiply-adds between registers. */
#ifndef MT_KERNELS_PEAK_H
#define MT_KERNELS_PEAK_H

#include <stddef.h>
#include <stdint.h>

/* A loop of independent multiply-adds, and its operations per round: a multiply-add is two. */
typedef struct mt_peak {
    void (*loop)(size_t rounds); /* NULL: there is no such loop for this processor */
    double ops;
} mt_peak;

/* The fastest loop with these features (MT_CPU_ bits): products of int8, of bf16, of fp32. */
mt_peak mt_peak_int8(unsigned cpu);
mt_peak mt_peak_bf16(unsigned cpu);
mt_peak mt_peak_fp32(unsigned cpu);

/* Reads bytes, a multiple of 256, as four streams. The result only keeps the compiler from removing the reads. */
uint64_t mt_peak_read(const uint8_t *data, size_t bytes);

#endif
