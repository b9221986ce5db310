/* Products of few rows (native_few.cuh) with codes of 8 bits. */
#include "device/cuda/native/native_few.cuh"

MT_CUDA_NATIVE_FEW_8_1(MT_KERNEL_OF)
MT_CUDA_NATIVE_FEW_8_2(MT_KERNEL_OF)
MT_CUDA_NATIVE_FEW_8_4(MT_KERNEL_OF)
