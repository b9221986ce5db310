/* Lists the kernels of each x86-64 level. A level replaces the functions of the level below. */
#include "kernels/levels.h"

#if defined(__x86_64__)

/* AVX2 and AVX-512 have the same kernels. */
/* clang-format off */
#define EACH(X)                                                                                                        \
    X(to_bf16) X(row_f32) X(add) X(axpy) X(scale) X(dot) X(sum) X(max) X(sum_exp) X(rmsnorm) X(rope)                   \
    X(exp) X(log) X(sigmoid) X(tanh) X(silu_mul) X(sigmoid_mul) X(gelu_mul) X(softcap) X(softmax)                      \
    X(conv) X(delta)                                                                                                   \
    X(q_rows_bytes) X(q_pack) X(q_scratch_bytes) X(q_matmul)                                                           \
    X(b_rows_bytes) X(b_pack) X(b_scratch_bytes) X(b_matmul)                                                           \
    X(f_scratch_bytes) X(f_matmul)                                                                                     \
    X(attn_scratch_bytes) X(attn_bf16) X(attn_f32) X(attn_plain) X(attn_merge)                                         \
    X(attn_q_scratch_bytes) X(attn_q)
/* clang-format on */

void mt_kernels_init_x86(mt_kernels *k)
{
    if (!(k->cpu & MT_CPU_AVX2))
        return;
#define AVX2(name) k->name = mt_##name##_avx2;
    EACH(AVX2)

    if (k->cpu & MT_CPU_AVXVNNI) { /* rows are packed as for AVX2 */
        k->q_scratch_bytes = mt_q_scratch_bytes_avxvnni;
        k->q_matmul = mt_q_matmul_avxvnni;
    }

    if (!(k->cpu & MT_CPU_AVX512))
        return;
#define AVX512(name) k->name = mt_##name##_avx512;
    EACH(AVX512)

    if (!(k->cpu & MT_CPU_AVX512VNNI))
        return;
    k->q_scratch_bytes = mt_q_scratch_bytes_avx512vnni; /* rows are packed as for AVX-512 */
    k->q_matmul = mt_q_matmul_avx512vnni;

    if (!(k->cpu & MT_CPU_AMX))
        return;
    k->b_rows_bytes = mt_b_rows_bytes_amx;
    k->b_pack = mt_b_pack_amx;
    k->b_scratch_bytes = mt_b_scratch_bytes_amx;
    k->b_matmul = mt_b_matmul_amx;
}

#endif
