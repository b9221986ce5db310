/* Products of few rows (native_few.cuh) with codes of 4 bits in groups of 32 and 16. */
#include "device/cuda/native/native_few.cuh"

MT_CUDA_NATIVE_FEW_4_2(MT_KERNEL_OF)
MT_CUDA_NATIVE_FEW_4_4(MT_KERNEL_OF)
