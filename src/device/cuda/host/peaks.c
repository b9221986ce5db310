/* Measures a card's peaks: a copy within its memory, and loops of multiply-adds (peaks.cu). */
#include <math.h>

#include "base/clock.h"
#include "device/cuda/cuda.h"

#define COPIED (256u << 20)
enum { RUNS = 6, ROUNDS = 1024 };

/* Seconds since `begin`, after all is done. */
static double since(mt_device *dev, uint64_t begin)
{
    mt_cuda_device_wait(dev);
    return fmax((double)(mt_clock_ns() - begin) * 1e-9, 1e-9);
}

/* Bytes read and written per second; 0 without memory for it. */
static double copying(mt_device *dev)
{
    CUdeviceptr at[2] = {0, 0};
    double least = INFINITY;
    if (!dev->cu.alloc(&at[0], COPIED) && !dev->cu.alloc(&at[1], COPIED))
        for (size_t i = 0; i < RUNS && !dev->failed; i++) {
            const uint64_t begin = mt_clock_ns();
            mt_cuda_do(dev, "copy", copy, at[i % 2], at[1 - i % 2], COPIED, mt_cuda_stream(dev));
            least = fmin(least, since(dev, begin));
        }
    for (size_t i = 0; i < 2; i++)
        if (at[i])
            mt_cuda_ok(dev, dev->cu.free(at[i]), "free memory");
    return 2.0 * COPIED / least;
}

/* A short run is subtracted, so that starting a kernel does not count. */
static double multiplying(mt_device *dev, mt_cuda_kernel kernel, CUdeviceptr out, double ops)
{
    const size_t blocks = 4 * (size_t)dev->processors, threads = MT_CUDA_PEAK_THREADS;
    double least[2] = {INFINITY, INFINITY};
    for (size_t i = 0; i < 2 * RUNS && !dev->failed; i++) {
        const mt_cuda_peak p = {.out = out, .rounds = i % 2 ? ROUNDS : ROUNDS / 8};
        const uint64_t begin = mt_clock_ns();
        mt_cuda_launch(dev, kernel, blocks, 1, 1, threads, 0, &p);
        least[i % 2] = fmin(least[i % 2], since(dev, begin));
    }
    return ops * (double)(blocks * threads / 32) * (ROUNDS - ROUNDS / 8) / fmax(least[1] - least[0], 1e-9);
}

mt_peaks mt_cuda_device_peaks(mt_device *dev)
{
    mt_peaks p = {0};
    CUdeviceptr out = 0;
    if (dev->failed || dev->cu.alloc(&out, 256))
        return p;
    p.bandwidth = copying(dev);
    p.fp32 = multiplying(dev, MT_K_peak_fp32, out, MT_CUDA_PEAK_FP32);
    p.int8 = multiplying(dev, MT_K_peak_int8, out, MT_CUDA_PEAK_INT8);
    p.bf16 = multiplying(dev, MT_K_peak_bf16, out, MT_CUDA_PEAK_BF16);
    mt_cuda_ok(dev, dev->cu.free(out), "free memory");
    return p;
}
