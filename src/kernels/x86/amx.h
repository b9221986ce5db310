/* Tiles of AMX: registers of up to 16 rows of 64 bytes. A product takes A, 16 columns of W with a row of 64 bytes each,
   as they lie in memory; B, the rows of x, [k / 2][16 rows][2] for bf16; and adds to C, [16 columns][16 rows]. A
   function of the kernel table loads the tiles' shapes before it uses them and releases the tiles at its end. */
#ifndef MT_KERNELS_X86_AMX_H
#define MT_KERNELS_X86_AMX_H

#include "kernels/x86/simd.h"

#if defined(__AMX_TILE__) || defined(__AMXTILE__) /* as gcc and clang call it */

enum { MT_TILE = 16, MT_TILE_BYTES = 64 };

/* As the instruction wants it. */
typedef struct mt_tile_shapes {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} mt_tile_shapes;

/* Tiles 0 to 3 are C, 4 and 5 A, 6 and 7 B. deep: bytes of a column of W in a tile. */
static inline void mt_tiles_begin(size_t deep)
{
    mt_tile_shapes s = {.palette = 1};
    for (size_t i = 0; i < 8; i++) {
        s.rows[i] = (uint8_t)(i < 6 ? MT_TILE : deep / 4);
        s.bytes[i] = (uint16_t)(i == 4 || i == 5 ? deep : MT_TILE_BYTES);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(s)); /* gcc's _tile_loadconfig names the first eight bytes alone */
}

static inline void mt_tiles_end(void)
{
    _tile_release();
}

#endif

#endif
