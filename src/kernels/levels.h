/* Declares the function of each kernel at each level: mt_<kernel>_<level>. A level defines those that it improves;
   arm.c and x86.c list them. */
#ifndef MT_KERNELS_LEVELS_H
#define MT_KERNELS_LEVELS_H

#include "kernels/kernels.h"

#define MT_DECLARE_portable(result, name, args) result mt_##name##_portable args;
#define MT_DECLARE_neon(result, name, args) result mt_##name##_neon args;
#define MT_DECLARE_dotprod(result, name, args) result mt_##name##_dotprod args;
#define MT_DECLARE_i8mm(result, name, args) result mt_##name##_i8mm args;
#define MT_DECLARE_bf16(result, name, args) result mt_##name##_bf16 args;
#define MT_DECLARE_avx2(result, name, args) result mt_##name##_avx2 args;
#define MT_DECLARE_avxvnni(result, name, args) result mt_##name##_avxvnni args;
#define MT_DECLARE_avx512(result, name, args) result mt_##name##_avx512 args;
#define MT_DECLARE_avx512vnni(result, name, args) result mt_##name##_avx512vnni args;
#define MT_DECLARE_amx(result, name, args) result mt_##name##_amx args;

MT_KERNELS(MT_DECLARE_portable)
#if defined(__aarch64__)
MT_KERNELS(MT_DECLARE_neon)
MT_KERNELS(MT_DECLARE_dotprod)
MT_KERNELS(MT_DECLARE_i8mm)
MT_KERNELS(MT_DECLARE_bf16)
#elif defined(__x86_64__)
MT_KERNELS(MT_DECLARE_avx2)
MT_KERNELS(MT_DECLARE_avxvnni)
MT_KERNELS(MT_DECLARE_avx512)
MT_KERNELS(MT_DECLARE_avx512vnni)
MT_KERNELS(MT_DECLARE_amx)
#endif

/* Overlay the table with the levels in k->cpu, in ascending order. */
void mt_kernels_init_arm(mt_kernels *k);
void mt_kernels_init_x86(mt_kernels *k);

#endif
