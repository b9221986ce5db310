/* The arithmetic `native` (device/native.h) on tensor cores of sm_90: fp16 products with fp32 sums, units
   of rows, and weights decoded in registers. */
#ifndef MT_DEVICE_CUDA_NATIVE_CUH
#define MT_DEVICE_CUDA_NATIVE_CUH

#include <cuda_fp16.h>

#include "device/cuda/common/mma.cuh"

/* Steps of a chunk of k, chunks of a group. */
enum { CHUNK_STEPS = MT_CUDA_NATIVE_CHUNK_STEPS, GROUP_CHUNKS = MT_NATIVE_GROUP / MT_NATIVE_CHUNK };

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* ---- products ---- */

#define D4 "%0,%1,%2,%3"
#define D8 D4 ",%4,%5,%6,%7"
#define D16 D8 ",%8,%9,%10,%11,%12,%13,%14,%15"

/* d[64, n] = a[64, 16] b[n, 16]', or d += where `add`: a in registers, b swizzled in shared memory. */
#define PRODUCT_F16(n, floats, list, a0, a1, a2, a3, desc, pred, ...)                                               \
    static __device__ inline void product_f16(float(&d)[floats], const uint32_t(&a)[4], uint64_t b, int add)        \
    {                                                                                                               \
        asm volatile("{\n"                                                                                          \
                     ".reg .pred p;\n"                                                                              \
                     "setp.ne.b32 p, " pred ", 0;\n"                                                                \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.f16.f16 {" list "}, {" a0 "," a1 "," a2 "," a3 \
                     "}, " desc ", p, 1, 1, 0;\n"                                                                   \
                     "}"                                                                                            \
                     : __VA_ARGS__                                                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                               \
    }
PRODUCT_F16(8, 4, D4, "%4", "%5", "%6", "%7", "%8", "%9", F4(d, 0))
PRODUCT_F16(16, 8, D8, "%8", "%9", "%10", "%11", "%12", "%13", F8(d, 0))
PRODUCT_F16(32, 16, D16, "%16", "%17", "%18", "%19", "%20", "%21", F16(d, 0))
PRODUCT_F16(64, 32, D32, "%32", "%33", "%34", "%35", "%36", "%37", F32(d, 0))

/* The same with a in shared memory, and n = 128. */
static __device__ inline void product_f16(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" D64 "}, %64, %65, p, 1, 1, 0, 0;\n"
                 "}"
                 : F32(d, 0), F32(d, 32)
                 : "l"(a), "l"(b), "r"(add));
}

/* Dynamic shared memory from a multiple of 1024 on, where swizzled tiles begin: at the same place in all blocks. */
static __device__ inline uint8_t *swizzled_memory(void)
{
    extern __shared__ uint8_t raw[];
    return raw + (1024 - shared_address(raw) % 1024) % 1024;
}

/* c (16 x 8) += a (16 x 16) b (16 x 8). */
static __device__ inline void multiply_warp(float *c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* ---- blocks of products of few rows ---- */

/* What a block of a product of few rows multiplies. */
typedef struct native_place {
    uint32_t group, blocks;  /* its group, and how many there are: the blocks of the cluster */
    uint32_t weight, column; /* its first tile */
    int count;               /* chunks of k */
} native_place;

/* One of the block's tiles. */
typedef struct tile_place {
    uint32_t weight, column;
} tile_place;

static __device__ inline native_place place_of_block(const mt_cuda_native &p, uint32_t columns)
{
    native_place at;
    at.group = block_of_cluster();
    at.blocks = cluster_size();
    const uint32_t tile = blockIdx.x / at.blocks;
    at.weight = 0;
    while (!p.gates && tile >= p.first[at.weight + 1])
        at.weight++;
    at.column = (tile - p.first[at.weight]) * (p.gates ? columns / 2 : columns);
    at.count = min((int)(p.from.padded / MT_NATIVE_CHUNK - at.group * GROUP_CHUNKS), (int)GROUP_CHUNKS);
    return at;
}

/* Where the block gates, its first half of TILES tiles is of gate and the other half of up. */
template <int TILES>
static __device__ inline tile_place place_of_tile(const mt_cuda_native &p, const native_place &at, uint32_t t)
{
    const bool up = p.gates && 2 * t >= TILES;
    return {up ? 1u : at.weight, at.column + (up ? t - TILES / 2 : t) * MT_CUDA_NATIVE_TILE};
}

/* Four floats to the shared memory of a block of the cluster, whose barrier is told when they are there. `to` and
   `come`: addresses in the own shared memory of what lies at the same places there. */
static __device__ inline void send_four(uint32_t block, uint32_t to, uint32_t come, float4 x)
{
    asm volatile(
        "{.reg .b32 at, told;\n"
        "mapa.shared::cluster.u32 at,%0,%2;\n"
        "mapa.shared::cluster.u32 told,%1,%2;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [at],{%3,%4,%5,%6},[told];}" ::"r"(to),
        "r"(come), "r"(block), "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w)
        : "memory");
}

/* Groups in their order; apart: floats from one to the next. */
static __device__ inline float sum_groups(const float *sums, uint32_t blocks, uint32_t apart)
{
    float total = sums[0];
    for (uint32_t b = 1; b < blocks; b++)
        total += sums[b * apart];
    return total;
}

static __device__ inline float finished(float total, const mt_cuda_weight &w, uint32_t n)
{
    total *= w.unit;
    return w.bias && n < w.n ? total + w.bias[n] : total;
}

#endif

/* Byte of a piece of 16 bytes in a tile whose rows have 128 bytes. */
static __device__ inline uint32_t swizzled(uint32_t row, uint32_t piece)
{
    return row * 128 + (piece ^ row % 8) * 16;
}

/* ---- rows ---- */

/* The float 2^(-56 + 16 i) of a unit's number i. */
static __device__ inline uint32_t unit_bits(uint32_t number)
{
    return (number * MT_NATIVE_EXPONENT_STEP + (127 + MT_NATIVE_EXPONENT_LEAST)) << 23;
}

/* The number of the unit of numbers of which `most` is the largest magnitude. */
static __device__ inline uint32_t unit_of(float most)
{
    constexpr int FIRST = 127 + MT_NATIVE_TOP + MT_NATIVE_EXPONENT_LEAST, STEP = MT_NATIVE_EXPONENT_STEP;
    constexpr int ZEROS = (MT_NATIVE_EXPONENT_OF_ZEROS - MT_NATIVE_EXPONENT_LEAST) / STEP;
    const int above = (int)(__float_as_uint(most) >> 23) - FIRST;
    const int number = max(0, min(MT_NATIVE_EXPONENTS - 1, (above + STEP - 1) / STEP));
    return (uint32_t)(most == 0.0f ? ZEROS : above <= 0 ? 0 : number);
}

/* What numbers are multiplied with to be in this unit. */
static __device__ inline float into_unit(uint32_t number)
{
    return __uint_as_float((254u << 23) - unit_bits(number));
}

/* Eight numbers of a segment in fp16, in its unit; eight neighbouring lanes have the segment. NaN and infinities stay
   what they are in any unit. */
typedef struct packed_eight {
    uint4 halves;
    uint32_t unit;
} packed_eight;

static __device__ inline packed_eight pack_segment(const float (&x)[8])
{
    packed_eight to;
    __half2 *h = (__half2 *)&to.halves;
    float most = 0;
#pragma unroll
    for (int j = 0; j < 8; j++)
        most = fmaxf(most, fabsf(x[j]));
#pragma unroll
    for (int width = 4; width > 0; width /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, width));
    to.unit = unit_of(most);
    const float factor = into_unit(to.unit);
#pragma unroll
    for (int j = 0; j < 4; j++)
        h[j] = __floats2half2_rn(x[2 * j] * factor, x[2 * j + 1] * factor);
    return to;
}

/* Where the numbers of the units of a chunk's four segments are, of row i. */
static __device__ inline uint8_t *units_at(const mt_cuda_packed &p, uint32_t i, uint32_t chunk)
{
    return (uint8_t *)p.turns +
           (((uint64_t)(i / p.rows) * (p.padded / MT_NATIVE_CHUNK) + chunk) * p.rows + i % p.rows) * 4;
}

/* Where the 128 bytes of a segment of row i begin, in whose pieces of 16 bytes `swizzled` finds its way. */
static __device__ inline uint8_t *segment_at(const mt_cuda_packed &p, uint32_t i, uint32_t segment)
{
    return p.q + ((uint64_t)(i / p.rows) * (p.padded / MT_NATIVE_SEGMENT) + segment) * p.rows * 128;
}

/* ---- weights ---- */

static __device__ inline uint32_t sixteenth_of(uint32_t pair)
{
    const __half2 v = __hmul2(*(const __half2 *)&pair, __float2half2_rn(0.0625f));
    return *(const uint32_t *)&v;
}

static __device__ inline uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("fma.rn.f16x2 %0,%1,%2,%3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* What a lane has of a step of a tile: codes of its columns g and g + 8, where g = lane / 4, and of each group of 64 /
   GROUPS of k a scale below a bias for both. */
template <int BITS, int GROUPS> struct lane_step {
    uint4 codes[BITS / 4];
    uint32_t pair[GROUPS][2];
};

/* thread: of the tile's 128. */
template <int BITS, int GROUPS>
static __device__ inline void load_step(lane_step<BITS, GROUPS> &s, const uint8_t *tile, uint32_t thread)
{
    const uint32_t *pairs = (const uint32_t *)(tile + MT_CUDA_NATIVE_CODES(BITS)) + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int i = 0; i < BITS / 4; i++)
        s.codes[i] = ((const uint4 *)tile)[i * 128 + thread];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        s.pair[g][0] = pairs[g * MT_CUDA_NATIVE_TILE];
        s.pair[g][1] = pairs[g * MT_CUDA_NATIVE_TILE + 8];
    }
}

/* A lane's operands of product j of a step's four. Codes are read as subnormal fp16 numbers, code * 2^-24; those of 4
   bits that stand higher are code * 2^-20, and have a sixteenth of the scale. */
template <int BITS, int GROUPS>
static __device__ inline void decode(uint32_t (&a)[4], const lane_step<BITS, GROUPS> &s, int j)
{
    const uint32_t p = s.pair[j * GROUPS / 4][0], q = s.pair[j * GROUPS / 4][1];
    const uint32_t scale0 = __byte_perm(p, p, 0x1010), bias0 = __byte_perm(p, p, 0x3232);
    const uint32_t scale1 = __byte_perm(q, q, 0x1010), bias1 = __byte_perm(q, q, 0x3232);
    if (BITS == 4) {
        const uint4 all = s.codes[0];
        const uint32_t word = j == 0 ? all.x : j == 1 ? all.y : j == 2 ? all.z : all.w, high = word >> 8;
        a[0] = fma_f16x2(word & 0x000f000f, scale0, bias0);
        a[2] = fma_f16x2(word & 0x00f000f0, sixteenth_of(scale0), bias0);
        a[1] = fma_f16x2(high & 0x000f000f, scale1, bias1);
        a[3] = fma_f16x2(high & 0x00f000f0, sixteenth_of(scale1), bias1);
    } else {
        const uint4 all = s.codes[j / 2 % (BITS / 4)];
        const uint32_t word0 = j % 2 ? all.z : all.x, word1 = j % 2 ? all.w : all.y;
        a[0] = fma_f16x2(word0 & 0x00ff00ff, scale0, bias0);
        a[2] = fma_f16x2(word0 >> 8 & 0x00ff00ff, scale0, bias0);
        a[1] = fma_f16x2(word1 & 0x00ff00ff, scale1, bias1);
        a[3] = fma_f16x2(word1 >> 8 & 0x00ff00ff, scale1, bias1);
    }
}

#endif
