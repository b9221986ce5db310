/* Every kernel of the images: X(name, family, start). The kernel is mtk_<name> and its number MT_K_<name>. A family is
   what the choice of kernels (products/products.c) and fusion (fusion.c) know of a kernel. EARLY: it starts while the
   kernel before it still runs, and waits for that one itself; LATE: it starts when that one has ended (host/launch.c).
   */
#ifndef MT_DEVICE_CUDA_KERNELS_H
#define MT_DEVICE_CUDA_KERNELS_H

/* clang-format off */
#define MT_CUDA_ROWS_KERNELS(X)                                                                                        \
    X(copy_rows, OTHER, EARLY) X(scatter_rows, OTHER, EARLY) X(sum_rows, OTHER, EARLY) X(features, OTHER, EARLY)       \
    X(norm, NORM, EARLY) X(norm_many, NORM_MANY, EARLY) X(layer_norm, LAYER_NORM, EARLY) X(act, ACT, EARLY)            \
    X(glu, GLU, EARLY) X(glu_many, GLU_MANY, EARLY) X(binary, BINARY, EARLY) X(softcap, OTHER, EARLY)                  \
    X(split_heads, SPLIT_HEADS, EARLY) X(finite, OTHER, EARLY) X(argmax, OTHER, EARLY) X(rope_table, OTHER, EARLY)     \
    X(stretch, OTHER, EARLY) X(join, OTHER, EARLY) X(mean, OTHER, EARLY) X(pixels, OTHER, EARLY)                       \
    X(embed, OTHER, EARLY) X(add_rows, OTHER, EARLY) X(adjust, OTHER, EARLY) X(pack_codes, PACK_CODES, EARLY)          \
    X(pack_many, PACK_MANY, EARLY) X(pack_bf16, PACK_BF16, EARLY) X(norm_pack, OTHER, EARLY)                           \
    X(glu_pack, OTHER, EARLY)

#define MT_CUDA_PRODUCT_KERNELS(X)                                                                                     \
    X(matmul_w4_any, PRODUCT_ANY, LATE) X(matmul_w8_any, PRODUCT_ANY, LATE) X(matmul_f32_any, PRODUCT_ANY, LATE)       \
    X(matmul_bf16_any, PRODUCT_ANY, LATE) X(matmul_f32_rows4, F32_FEW, EARLY) X(matmul_f32_rows8, F32_FEW, EARLY)      \
    X(matmul_f32_rows16, F32_FEW, EARLY) X(matmul_f32_wide_rows16, F32_MANY, EARLY)                                    \
    X(matmul_f32_wide_rows32, F32_MANY, EARLY) X(matvec_w4_g64, CODES_ROW, EARLY)                                      \
    X(matmul_w4_g64_rows2_8, CODES_ROWS, EARLY) X(matvec_w8_g64, CODES_ROW, EARLY)                                     \
    X(matmul_w8_g64_rows2_8, CODES_ROWS, EARLY) X(matmul_w4_g64_ring_rows1_8, CODES_FEW, EARLY)                        \
    X(matmul_w8_g64_ring_rows1_8, CODES_FEW, EARLY) X(matmul_w8_g64_ring_rows9_16, CODES_FEW, EARLY)                   \
    X(matmul_w8_g64_ring_rows17_32, CODES_FEW, EARLY) X(matmul_w8_g64_ring_rows33_64, CODES_FEW, EARLY)                \
    X(matmul_w4_ring_rows1_8, CODES_FEW, EARLY) X(matmul_w4_ring_rows9_16, CODES_FEW, EARLY)                           \
    X(matmul_w4_ring_rows17_32, CODES_FEW, EARLY) X(matmul_w4_ring_rows33_64, CODES_FEW, EARLY)                        \
    X(matmul_w8_ring_rows1_8, CODES_FEW, EARLY) X(matmul_w8_ring_rows9_16, CODES_FEW, EARLY)                           \
    X(matmul_w8_ring_rows17_32, CODES_FEW, EARLY) X(matmul_w8_ring_rows33_64, CODES_FEW, EARLY)                        \
    X(matmul_w4_g32_rows65, CODES_MANY, LATE) X(matmul_w4_g64_rows65, CODES_MANY, LATE)                                \
    X(matmul_w4_g128_rows65, CODES_MANY, LATE) X(matmul_w8_g32_rows65, CODES_MANY, LATE)                               \
    X(matmul_w8_g64_rows65, CODES_MANY, LATE) X(matmul_w8_g128_rows65, CODES_MANY, LATE)                               \
    X(matmul_s8_rows65, CODES_MANY, LATE) X(matmul_w4_g32_bf16_rows65, CODES_MANY, LATE)                               \
    X(matmul_w4_g64_bf16_rows65, CODES_MANY, LATE) X(matmul_w4_g128_bf16_rows65, CODES_MANY, LATE)                     \
    X(matmul_w8_g32_bf16_rows65, CODES_MANY, LATE) X(matmul_w8_g64_bf16_rows65, CODES_MANY, LATE)                      \
    X(matmul_w8_g128_bf16_rows65, CODES_MANY, LATE) X(matmul_w4_g64_hopper_rows65, CODES_MANY, EARLY)                  \
    X(matmul_w4_g128_hopper_rows65, CODES_MANY, EARLY) X(matmul_bf16_warp8_rows1_64, BF16_FEW, EARLY)                  \
    X(matmul_bf16_warp16_rows1_64, BF16_FEW, EARLY) X(matmul_bf16_warp32_rows1_64, BF16_FEW, EARLY)                    \
    X(matmul_fp8_warp8_rows1_64, BF16_FEW, EARLY) X(matmul_fp8_warp16_rows1_64, BF16_FEW, EARLY)                       \
    X(matmul_fp8_warp32_rows1_64, BF16_FEW, EARLY) X(matmul_fp8_split4_rows1_8, BF16_FEW, EARLY)                       \
    X(matmul_fp8_split8_rows1_8, BF16_FEW, EARLY) X(matmul_fp8_split2_rows9_16, BF16_FEW, EARLY)                       \
    X(matmul_fp8_split4_rows9_16, BF16_FEW, EARLY) X(matmul_fp8_split8_rows9_16, BF16_FEW, EARLY)                      \
    X(matmul_fp8_split2_rows17_32, BF16_FEW, EARLY) X(matmul_fp8_split4_rows17_32, BF16_FEW, EARLY)                    \
    X(matmul_fp8_split8_rows17_32, BF16_FEW, EARLY) X(matmul_bf16_rows65, BF16_MANY, LATE)                             \
    X(matmul_fp8_rows65, BF16_MANY, LATE) X(matmul_bf16_hopper_rows65, BF16_MANY, EARLY)                               \
    X(matmul_bf16_pairs_rows65, BF16_MANY, EARLY) X(heads_across_rows8, OTHER, EARLY)                                  \
    X(heads_across_rows64, OTHER, EARLY) X(heads_f32_rows8, OTHER, EARLY) X(heads_f32_rows64, OTHER, EARLY)            \
    X(heads_w4_rows8, OTHER, EARLY) X(heads_w4_rows32, OTHER, EARLY) X(heads_w8_rows8, OTHER, EARLY)                   \
    X(heads_w8_rows32, OTHER, EARLY)

#define MT_CUDA_EXPERTS_KERNELS(X)                                                                                     \
    X(experts_w4_g32_rows1_8, OTHER, EARLY) X(experts_w4_g64_rows1_8, OTHER, EARLY)                                    \
    X(experts_w4_g128_rows1_8, OTHER, EARLY) X(experts_w8_g32_rows1_8, OTHER, EARLY)                                   \
    X(experts_w8_g64_rows1_8, OTHER, EARLY) X(experts_w8_g128_rows1_8, OTHER, EARLY) X(route, ROUTE, EARLY)            \
    X(route_and_sort, ROUTE, EARLY) X(sort_pairs, OTHER, EARLY) X(router, OTHER, EARLY) X(combine, COMBINE, EARLY)     \
    X(experts_up_w4_g64_row1, OTHER, EARLY) X(experts_up_w8_g64_row1, OTHER, EARLY)                                    \
    X(experts_down_w4_g64_row1, CHOSEN_DOWN, EARLY) X(experts_down_w8_g64_row1, CHOSEN_DOWN, EARLY)                    \
    X(experts_up_w4_g64_rows1_8, OTHER, EARLY) X(experts_up_w8_g64_rows1_8, OTHER, EARLY)                              \
    X(experts_down_w4_g64_rows1_8, OTHER, EARLY) X(experts_down_w8_g64_rows1_8, OTHER, EARLY)

/* The arithmetic `native` (native/native.c): products of few rows, native_few_<bits>_<groups of a step>_<most
   rows>_<tiles>; of one row, native_row_<bits>_<groups of a step>_<tiles>; then the others. */
#define MT_CUDA_NATIVE_FEW_KERNELS(X)                                                                                  \
    X(native_few_4_1_8_1, NATIVE_FEW, EARLY) X(native_few_4_1_8_2, NATIVE_FEW, EARLY)                                  \
    X(native_few_4_1_16_1, NATIVE_FEW, EARLY) X(native_few_4_1_16_2, NATIVE_FEW, EARLY)                                \
    X(native_few_4_1_32_1, NATIVE_FEW, EARLY) X(native_few_4_1_32_2, NATIVE_FEW, EARLY)                                \
    X(native_few_4_1_64_1, NATIVE_FEW, EARLY) X(native_few_4_1_64_2, NATIVE_FEW, EARLY)                                \
    X(native_few_4_1_32_6, NATIVE_FEW, EARLY) X(native_few_4_1_64_6, NATIVE_FEW, EARLY)                                \
    X(native_few_4_2_8_2, NATIVE_FEW, EARLY) X(native_few_4_2_16_2, NATIVE_FEW, EARLY)                                 \
    X(native_few_4_2_32_2, NATIVE_FEW, EARLY) X(native_few_4_2_64_2, NATIVE_FEW, EARLY)                                \
    X(native_few_4_4_8_2, NATIVE_FEW, EARLY) X(native_few_4_4_16_2, NATIVE_FEW, EARLY)                                 \
    X(native_few_4_4_32_2, NATIVE_FEW, EARLY) X(native_few_4_4_64_2, NATIVE_FEW, EARLY)                                \
    X(native_few_8_1_8_2, NATIVE_FEW, EARLY) X(native_few_8_1_16_2, NATIVE_FEW, EARLY)                                 \
    X(native_few_8_1_32_2, NATIVE_FEW, EARLY) X(native_few_8_1_64_2, NATIVE_FEW, EARLY)                                \
    X(native_few_8_2_8_2, NATIVE_FEW, EARLY) X(native_few_8_2_16_2, NATIVE_FEW, EARLY)                                 \
    X(native_few_8_2_32_2, NATIVE_FEW, EARLY) X(native_few_8_2_64_2, NATIVE_FEW, EARLY)                                \
    X(native_few_8_4_8_2, NATIVE_FEW, EARLY) X(native_few_8_4_16_2, NATIVE_FEW, EARLY)                                 \
    X(native_few_8_4_32_2, NATIVE_FEW, EARLY) X(native_few_8_4_64_2, NATIVE_FEW, EARLY)
#define MT_CUDA_NATIVE_ROW_KERNELS(X)                                                                                  \
    X(native_row_4_1_1, NATIVE_ROW, EARLY) X(native_row_4_1_2, NATIVE_ROW, EARLY)                                      \
    X(native_row_4_2_1, NATIVE_ROW, EARLY) X(native_row_4_2_2, NATIVE_ROW, EARLY)                                      \
    X(native_row_4_4_1, NATIVE_ROW, EARLY) X(native_row_4_4_2, NATIVE_ROW, EARLY)                                      \
    X(native_row_8_1_1, NATIVE_ROW, EARLY) X(native_row_8_1_2, NATIVE_ROW, EARLY)                                      \
    X(native_row_8_2_1, NATIVE_ROW, EARLY) X(native_row_8_2_2, NATIVE_ROW, EARLY)                                      \
    X(native_row_8_4_1, NATIVE_ROW, EARLY) X(native_row_8_4_2, NATIVE_ROW, EARLY)
#define MT_CUDA_NATIVE_KERNELS(X)                                                                                      \
    X(native_pack, NATIVE_PACK, EARLY) X(native_norm, NATIVE_MADE, EARLY) X(native_glu, NATIVE_MADE, EARLY)            \
    MT_CUDA_NATIVE_FEW_KERNELS(X)                                                                                      \
    MT_CUDA_NATIVE_ROW_KERNELS(X)                                                                                      \
    X(native_decode_4_1, NATIVE_MANY, LATE) X(native_decode_4_2, NATIVE_MANY, LATE)                                    \
    X(native_decode_4_4, NATIVE_MANY, LATE) X(native_decode_8_1, NATIVE_MANY, LATE)                                    \
    X(native_decode_8_2, NATIVE_MANY, LATE) X(native_decode_8_4, NATIVE_MANY, LATE)                                    \
    X(native_prompt, NATIVE_MANY, LATE)

#define MT_CUDA_ATTENTION_KERNELS(X)                                                                                   \
    X(heads, HEADS, EARLY) X(heads_64, HEADS, EARLY) X(heads_128, HEADS, EARLY) X(kv_write, KV_WRITE, LATE)            \
    X(kv_write_q, OTHER, LATE) X(attention, OTHER, LATE) X(attention_64_1, OTHER, LATE)                                \
    X(attention_64_4, OTHER, LATE) X(attention_128_1, OTHER, LATE) X(attention_128_4, OTHER, LATE)                     \
    X(attention_256_1, OTHER, LATE) X(attention_256_2, OTHER, LATE) X(attention_merge, OTHER, LATE)                    \
    X(attention_q8, OTHER, LATE) X(attention_q4, OTHER, LATE) X(attention_merge_q, OTHER, LATE)                        \
    X(attention_few_64, ATTENTION_FEW, EARLY) X(attention_many_64, OTHER, EARLY) X(attention_few_80, OTHER, EARLY)     \
    X(attention_many_80, OTHER, EARLY) X(attention_few_96, OTHER, EARLY) X(attention_many_96, OTHER, EARLY)            \
    X(attention_few_128, ATTENTION_FEW, EARLY) X(attention_many_128, OTHER, EARLY)                                     \
    X(attention_few_256, OTHER, EARLY) X(attention_many_256, OTHER, EARLY) X(attention_asked_64, OTHER, EARLY)         \
    X(attention_asked_128, OTHER, EARLY) X(latent_write, OTHER, EARLY) X(latent_write_q, OTHER, EARLY)                 \
    X(latent_any, OTHER, EARLY) X(latent_merge, OTHER, EARLY) X(latent_512_64, OTHER, EARLY)                           \
    X(latent_256_64, OTHER, EARLY) X(turn_ends, OTHER, EARLY)

#define MT_CUDA_RECURRENT_KERNELS(X)                                                                                   \
    X(conv, OTHER, EARLY) X(conv_heads, OTHER, EARLY) X(conv_keep, CONV_KEEP, EARLY) X(gates, GATES, EARLY)            \
    X(mix, OTHER, EARLY) X(delta, OTHER, EARLY) X(delta_few, DELTA_FEW, EARLY) X(delta_many, OTHER, EARLY)             \
    X(delta_normed, DELTA_NORMED, EARLY) X(remember, OTHER, EARLY) X(gated_norm, GATED_NORM, EARLY)  \
    X(mamba_conv, OTHER, EARLY) X(time_steps, OTHER, EARLY) X(mamba, OTHER, EARLY) X(mamba_wide, OTHER, EARLY)

#define MT_CUDA_KERNELS(X)                                                                                             \
    MT_CUDA_ROWS_KERNELS(X)                                                                                            \
    MT_CUDA_PRODUCT_KERNELS(X)                                                                                         \
    MT_CUDA_EXPERTS_KERNELS(X)                                                                                         \
    MT_CUDA_NATIVE_KERNELS(X)                                                                                          \
    MT_CUDA_ATTENTION_KERNELS(X)                                                                                       \
    MT_CUDA_RECURRENT_KERNELS(X)                                                                                       \
    X(choose, OTHER, EARLY) X(best, OTHER, EARLY) X(follow, OTHER, EARLY) X(peak_int8, OTHER, LATE)                    \
    X(peak_bf16, OTHER, LATE) X(peak_fp32, OTHER, LATE)

/* F(name): families. */
#define MT_CUDA_FAMILIES(F)                                                                                            \
    F(OTHER) F(NORM) F(NORM_MANY) F(LAYER_NORM) F(ACT) F(GLU) F(GLU_MANY) F(BINARY) F(SPLIT_HEADS) F(PACK_CODES)       \
    F(PACK_MANY) F(PACK_BF16) F(PRODUCT_ANY) F(F32_FEW) F(F32_MANY) F(CODES_ROW) F(CODES_ROWS) F(CODES_FEW)            \
    F(CODES_MANY) F(BF16_FEW) F(BF16_MANY) F(ROUTE) F(COMBINE) F(CHOSEN_DOWN) F(NATIVE_PACK) F(NATIVE_MADE)            \
    F(NATIVE_FEW) F(NATIVE_ROW) F(NATIVE_MANY) F(HEADS) F(KV_WRITE) F(ATTENTION_FEW) F(CONV_KEEP) F(GATES)             \
    F(DELTA_FEW) F(DELTA_NORMED) F(GATED_NORM)
/* clang-format on */

typedef enum mt_cuda_kernel {
#define MT_CUDA_NUMBER(name, family, start) MT_K_##name,
    MT_CUDA_KERNELS(MT_CUDA_NUMBER)
#undef MT_CUDA_NUMBER
        MT_K_COUNT
} mt_cuda_kernel;

typedef enum mt_cuda_family {
#define MT_CUDA_NUMBER(name) MT_F_##name,
    MT_CUDA_FAMILIES(MT_CUDA_NUMBER)
#undef MT_CUDA_NUMBER
        MT_F_COUNT
} mt_cuda_family;

#endif
