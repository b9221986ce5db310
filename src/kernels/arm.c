/* Lists the kernels of each aarch64 level. A level replaces the functions of the level below. */
#include "kernels/levels.h"

#if defined(__aarch64__)

void mt_kernels_init_arm(mt_kernels *k)
{
    if (!(k->cpu & MT_CPU_NEON))
        return;
    k->to_bf16 = mt_to_bf16_neon;
    k->add = mt_add_neon;
    k->axpy = mt_axpy_neon;
    k->scale = mt_scale_neon;
    k->dot = mt_dot_neon;
    k->sum = mt_sum_neon;
    k->max = mt_max_neon;
    k->sum_exp = mt_sum_exp_neon;
    k->rmsnorm = mt_rmsnorm_neon;
    k->rope = mt_rope_neon;
    k->exp = mt_exp_neon;
    k->log = mt_log_neon;
    k->sigmoid = mt_sigmoid_neon;
    k->tanh = mt_tanh_neon;
    k->silu_mul = mt_silu_mul_neon;
    k->sigmoid_mul = mt_sigmoid_mul_neon;
    k->gelu_mul = mt_gelu_mul_neon;
    k->softcap = mt_softcap_neon;
    k->softmax = mt_softmax_neon;
    k->conv = mt_conv_neon;
    k->delta = mt_delta_neon;
    k->q_rows_bytes = mt_q_rows_bytes_neon;
    k->q_pack = mt_q_pack_neon;
    k->q_scratch_bytes = mt_q_scratch_bytes_neon;
    k->q_matmul = mt_q_matmul_neon;
    k->b_scratch_bytes = mt_b_scratch_bytes_neon;
    k->b_matmul = mt_b_matmul_neon;
    k->f_scratch_bytes = mt_f_scratch_bytes_neon;
    k->f_matmul = mt_f_matmul_neon;
    k->attn_scratch_bytes = mt_attn_scratch_bytes_neon;
    k->attn_bf16 = mt_attn_bf16_neon;
    k->attn_f32 = mt_attn_f32_neon;
    k->attn_plain = mt_attn_plain_neon;
    k->attn_merge = mt_attn_merge_neon;
    k->kv_turn = mt_kv_turn_neon;
    k->kv_put_q = mt_kv_put_q_neon;
    k->kv_query = mt_kv_query_neon;

    if (k->cpu & MT_CPU_BF16) {
        k->b_rows_bytes = mt_b_rows_bytes_bf16;
        k->b_pack = mt_b_pack_bf16;
        k->b_scratch_bytes = mt_b_scratch_bytes_bf16;
        k->b_matmul = mt_b_matmul_bf16;
        k->attn_scratch_bytes = mt_attn_scratch_bytes_bf16;
        k->kv_put_bf16 = mt_kv_put_bf16_bf16;
        k->attn_bf16 = mt_attn_bf16_bf16;
    }

    if (!(k->cpu & MT_CPU_DOTPROD))
        return;
    k->q_rows_bytes = mt_q_rows_bytes_dotprod;
    k->q_pack = mt_q_pack_dotprod;
    k->q_scratch_bytes = mt_q_scratch_bytes_dotprod;
    k->q_matmul = mt_q_matmul_dotprod;

    if (!(k->cpu & MT_CPU_I8MM))
        return;
    k->q_rows_bytes = mt_q_rows_bytes_i8mm;
    k->q_pack = mt_q_pack_i8mm;
    k->q_scratch_bytes = mt_q_scratch_bytes_i8mm;
    k->q_matmul = mt_q_matmul_i8mm;
    k->attn_q_scratch_bytes = mt_attn_q_scratch_bytes_i8mm;
    k->attn_q = mt_attn_q_i8mm;
}

#endif
