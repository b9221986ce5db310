/* Instructions of the tensor cores: those of a warp (mma.sync), with the loads and stores of their operands, and those
   of a warpgroup (wgmma), four warps with 64 rows, on Hopper.

   An operand of a warp is in registers, in pieces of 8 rows by 16 bytes: lane l has 4 bytes of row l / 4 of each.
   Matrices of wgmma in shared memory are swizzled by 128 bytes: blocks of 64 columns, in them rows of 128 bytes, whose
   chunks of 16 bytes are exchanged by xor with the row's number modulo 8. A block begins at a multiple of 1024. */
#ifndef MT_DEVICE_CUDA_COMMON_MMA_CUH
#define MT_DEVICE_CUDA_COMMON_MMA_CUH

#include "device/cuda/common/copy.cuh"

/* ---- a warp ---- */

/* Each instruction is there twice: the compiler may move the one, and leaves the other (_ordered) among those of its
   kind where the source has it, as kernels want that schedule loads and products by hand. */

/* c (16 x 8) += a (16 x 16) times b (16 x 8), bf16 */
#define MMA_BF16(name, how)                                                                                          \
    static __device__ inline void name(float c[4], const unsigned a[4], unsigned b0, unsigned b1)                    \
    {                                                                                                                \
        asm how(                                                                                                     \
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" \
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                         \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                         \
    }
MMA_BF16(mma_bf16, )
MMA_BF16(mma_bf16_ordered, volatile)
#undef MMA_BF16

/* c (16 x 8) += a (16 x 32) times b (32 x 8), or d = c + that; of a and of b bytes with a sign (s8) or without (u8) */
#define MMA_BYTES(name, how, A, B)                                                                               \
    static __device__ inline void name(int c[4], const unsigned a[4], unsigned b0, unsigned b1)                  \
    {                                                                                                            \
        asm how("mma.sync.aligned.m16n8k32.row.col.s32." #A "." #B                                               \
                ".s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"                                        \
                : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                                                 \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                 \
    }                                                                                                            \
    static __device__ inline void name(int d[4], const unsigned a[4], unsigned b0, unsigned b1, const int c[4])  \
    {                                                                                                            \
        asm how("mma.sync.aligned.m16n8k32.row.col.s32." #A "." #B                                               \
                ".s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"                                    \
                : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                                 \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]), \
                  "r"(c[3]));                                                                                    \
    }
MMA_BYTES(mma_s8_s8, , s8, s8)
MMA_BYTES(mma_s8_u8, , s8, u8)
MMA_BYTES(mma_u8_s8, , u8, s8)
MMA_BYTES(mma_s8_s8_ordered, volatile, s8, s8)
MMA_BYTES(mma_s8_u8_ordered, volatile, s8, u8)
MMA_BYTES(mma_u8_s8_ordered, volatile, u8, s8)
#undef MMA_BYTES

/* Four pieces of 8 rows by 16 bytes from shared memory: lane l says where row l % 8 of piece l / 8 lies. _ordered: not
   moved beyond other accesses to memory. */
static __device__ inline void load_rows(unsigned q[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(q[0]), "=r"(q[1]), "=r"(q[2]), "=r"(q[3])
                 : "r"(address));
}

static __device__ inline void load_rows_ordered(unsigned q[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(q[0]), "=r"(q[1]), "=r"(q[2]), "=r"(q[3])
                 : "r"(address)
                 : "memory");
}

/* The same of pieces of 16-bit elements, transposed. */
static __device__ inline void load_columns(unsigned q[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(q[0]), "=r"(q[1]), "=r"(q[2]), "=r"(q[3])
                 : "r"(address)
                 : "memory");
}

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* The other way round. */
static __device__ inline void store_rows(unsigned address, const unsigned q[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(address), "r"(q[0]), "r"(q[1]),
                 "r"(q[2]), "r"(q[3])
                 : "memory");
}

static __device__ inline void store_columns(unsigned address, const unsigned q[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(address), "r"(q[0]),
                 "r"(q[1]), "r"(q[2]), "r"(q[3])
                 : "memory");
}

/* ---- a warpgroup: wgmma. An element of a result gets its products in the same order whatever N is ---- */

/* Registers of a thread, from here on: a warpgroup that copies gives some to those that compute. Not where kernels are
   compiled for tools whose own code within them needs more registers than are left (-Dgpu_sanitize=true). */
template <int N> static __device__ inline void fewer_registers(void)
{
#if !defined(MT_CUDA_SAME_REGISTERS)
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

template <int N> static __device__ inline void more_registers(void)
{
#if !defined(MT_CUDA_SAME_REGISTERS)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

/* Rows are along the sum: `at` is the first chunk of 16 columns. */
static __device__ inline uint64_t along(uint32_t at)
{
    return (uint64_t)((at & 0x3ffff) >> 4) | 1ull << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
}

/* Rows are across it: `at` is the first of 16 rows, `block` the bytes between blocks of 64 columns. */
static __device__ inline uint64_t across(uint32_t at, uint32_t block)
{
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(block >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
}

static __device__ inline void products_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ inline void products_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* For all that were begun but the last so many groups. */
template <int BUT = 0> static __device__ inline void products_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(BUT) : "memory");
}

/* Values that products have had to do with until the wait before, so that nothing of them is moved before it. */
template <int N> static __device__ inline void settle(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(x[i])::"memory");
}

template <int N> static __device__ inline void settle(uint32_t (&x)[N][4])
{
#pragma unroll
    for (int i = 0; i < N * 4; i++)
        asm volatile("" : "+r"(x[i / 4][i % 4])::"memory");
}

/* What ordinary stores and copies have written is there for products. */
static __device__ inline void products_see(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define F4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F8(d, i) F4(d, i), F4(d, i + 4)
#define F16(d, i) F8(d, i), F8(d, i + 8)
#define F32(d, i) F16(d, i), F16(d, i + 16)
#define D32                                                                                                          \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
    "%30,%31"
#define D40 D32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define D48 D40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define D64 D48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

/* d = a b', or d += a b' where `add`: 64 rows of a and 128 of b, 16 columns. */
static __device__ inline void product_scores(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" D64 "}, %64, %65, p, 1, 1, 0, 0;\n"
                 "}"
                 : F32(d, 0), F32(d, 32)
                 : "l"(a), "l"(b), "r"(add));
}

/* The same for 64 rows of b. */
static __device__ inline void product_scores(float (&d)[32], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" D32 "}, %32, %33, p, 1, 1, 0, 0;\n"
                 "}"
                 : F32(d, 0)
                 : "l"(a), "l"(b), "r"(add));
}

/* The same for 128 of b, as two times 64. */
static __device__ inline void product_scores(float (&d)[2][32], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" D64 "}, %64, %65, p, 1, 1, 0, 0;\n"
                 "}"
                 : F32(d[0], 0), F32(d[1], 0)
                 : "l"(a), "l"(b), "r"(add));
}

/* d = a b, or d += a b: 64 rows of a and 16 columns; b 16 rows of 128. */
static __device__ inline void product_values(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" D64 "}, %64, %65, p, 1, 1, 0, 1;\n"
                 "}"
                 : F32(d, 0), F32(d, 32)
                 : "l"(a), "l"(b), "r"(add));
}

/* The same with a in registers, and b of N columns. */
#define PRODUCT_VALUES(n, floats, list, a0, a1, a2, a3, desc, pred, ...)                                              \
    static __device__ inline void product_values(float(&d)[floats], const uint32_t(&a)[4], uint64_t b, int add)       \
    {                                                                                                                 \
        asm volatile("{\n"                                                                                            \
                     ".reg .pred p;\n"                                                                                \
                     "setp.ne.b32 p, " pred ", 0;\n"                                                                  \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" list "}, {" a0 "," a1 "," a2 "," a3 \
                     "}, " desc ", p, 1, 1, 1;\n"                                                                     \
                     "}"                                                                                              \
                     : __VA_ARGS__                                                                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                                 \
    }
PRODUCT_VALUES(64, 32, D32, "%32", "%33", "%34", "%35", "%36", "%37", F32(d, 0))
PRODUCT_VALUES(80, 40, D40, "%40", "%41", "%42", "%43", "%44", "%45", F32(d, 0), F8(d, 32))
PRODUCT_VALUES(96, 48, D48, "%48", "%49", "%50", "%51", "%52", "%53", F32(d, 0), F16(d, 32))
PRODUCT_VALUES(128, 64, D64, "%64", "%65", "%66", "%67", "%68", "%69", F32(d, 0), F32(d, 32))

#endif
#endif
