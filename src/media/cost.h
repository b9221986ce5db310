/* The cost of a picture or video, estimated before it is decoded: for queues that let cheap requests go first. */
#ifndef MT_MEDIA_COST_H
#define MT_MEDIA_COST_H

#include <stddef.h>
#include <stdint.h>

/* Estimates the work of decoding a picture or video in pixels; one takes 2 to 25 ns on a core of today. Reads only
   headers and markers, with bounds-checked code of this project and no library, so that the server itself may call it
   with bytes of strangers; allocates nothing; at most some nanoseconds a byte. A file may be cut off: what is there is
   counted. 0: it says nothing of its size, and is refused when it is to be decoded. UINT64_MAX: more than counts. */
uint64_t mt_media_cost(const void *data, size_t size);

#endif
