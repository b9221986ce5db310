/* What the machine can do at most, with all threads at once. */
#include "kernels/peak.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { ROUNDS = 200000 };
#define STREAM_BYTES ((size_t)128 << 20)

typedef struct stream {
    const uint8_t *data;
    uint64_t sink[256];
} stream;

static void read_share(void *arg, size_t thread, size_t threads)
{
    stream *s = arg;
    size_t begin, end;
    bench_share(STREAM_BYTES, 256, thread, threads, &begin, &end);
    s->sink[thread] = mt_peak_read(s->data + begin, end - begin);
}

static void multiply(void *arg, size_t thread, size_t threads)
{
    (void)thread, (void)threads;
    ((const mt_peak *)arg)->loop(ROUNDS);
}

static double rate(const bench *b, mt_peak peak)
{
    return peak.loop ? ROUNDS * peak.ops * (double)b->threads / bench_time(b, multiply, &peak) : 0;
}

void bench_peaks(bench *b)
{
    stream *s = calloc(1, sizeof(*s));
    uint8_t *data = bench_alloc(STREAM_BYTES);
    if (!s)
        abort();
    s->data = data;
    b->bandwidth = (double)STREAM_BYTES / bench_time(b, read_share, s);
    free(data);
    free(s);
    b->fp32 = rate(b, mt_peak_fp32(b->k->cpu));
    b->int8 = rate(b, mt_peak_int8(b->k->cpu));
    b->bf16 = rate(b, mt_peak_bf16(b->k->cpu));
    b->int8 = b->int8 > 0 ? b->int8 : b->fp32;
    b->bf16 = b->bf16 > 0 ? b->bf16 : b->fp32;
    printf("peaks: %.1f GB/s, int8 %.0f GOP/s, bf16 %.0f GFLOP/s, fp32 %.0f GFLOP/s\n", b->bandwidth * 1e-9,
           b->int8 * 1e-9, b->bf16 * 1e-9, b->fp32 * 1e-9);
    fflush(stdout);
}
