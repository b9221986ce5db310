/* A half-open range of bytes. */
#ifndef MT_BASE_RANGE_H
#define MT_BASE_RANGE_H

#include <stddef.h>

typedef struct mt_range {
    size_t begin, end;
} mt_range;

#endif
