/* Measures what the machine's threads can do at most (mt_device_peaks). */
#include "kernels/peak.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "device/cpu/cpu.h"

/* multiplications of a run; items for each thread; least runs; nanoseconds after which no further run is made */
enum { ROUNDS = 20000, PARTS = 8, LEAST_RUNS = 5, ENOUGH_NS = 60000000 };
#define STREAM_BYTES ((size_t)128 << 20) /* bytes that are read to measure bandwidth: more than caches hold */

typedef struct job {
    mt_peak peak;
    const uint8_t *data;
    size_t bytes; /* bytes of an item */
    uint64_t sink[MT_LIMIT_THREADS];
} job;

static void multiply(void *ctx, size_t item, size_t worker)
{
    (void)item, (void)worker;
    ((const job *)ctx)->peak.loop(ROUNDS);
}

static void read_part(void *ctx, size_t item, size_t worker)
{
    job *j = ctx;
    j->sink[worker] |= mt_peak_read(j->data + item * j->bytes, j->bytes);
}

/* Seconds of the fastest of some runs. */
static double best(mt_host *host, void (*fn)(void *ctx, size_t item, size_t worker), job *j, size_t items)
{
    double least = INFINITY;
    const uint64_t begin = mt_clock_ns();
    for (size_t runs = 0; runs < LEAST_RUNS || mt_clock_ns() - begin < ENOUGH_NS; runs++) {
        const uint64_t at = mt_clock_ns();
        mt_host_run(host, fn, j, items);
        least = fmin(least, (double)(mt_clock_ns() - at) * 1e-9);
    }
    return least;
}

static double rate(mt_host *host, job *j, mt_peak peak)
{
    const size_t items = PARTS * mt_host_threads(host);
    j->peak = peak;
    return peak.loop ? (double)(items * ROUNDS) * peak.ops / best(host, multiply, j, items) : 0;
}

mt_peaks mt_cpu_device_peaks(mt_device *dev)
{
    mt_host *host = dev->head.host;
    const unsigned cpu = mt_host_kernels(host)->cpu;
    const size_t items = PARTS * mt_host_threads(host);
    job *j = mt_alloc(sizeof(*j));
    uint8_t *data = mt_alloc_aligned(64, STREAM_BYTES);
    mt_peaks p;
    for (size_t i = 0; i < STREAM_BYTES; i += 64)
        data[i] = (uint8_t)i; /* written, since pages of memory that were never written are all the same one */
    j->data = data;
    j->bytes = STREAM_BYTES / items & ~(size_t)255;
    p.bandwidth = (double)(items * j->bytes) / best(host, read_part, j, items);
    p.fp32 = rate(host, j, mt_peak_fp32(cpu));
    p.int8 = fmax(rate(host, j, mt_peak_int8(cpu)), p.fp32);
    p.bf16 = fmax(rate(host, j, mt_peak_bf16(cpu)), p.fp32);
    mt_free(data);
    mt_free(j);
    return p;
}
