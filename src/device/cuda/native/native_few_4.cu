/* Products of few rows (native_few.cuh) with codes of 4 bits in groups of 64 and more. */
#include "device/cuda/native/native_few.cuh"

MT_CUDA_NATIVE_FEW_4_1(MT_KERNEL_OF)
