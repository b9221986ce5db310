/* Keys and shapes of a projector's file (gguf_clip.h). */
#include <stdio.h>

#include "weights/gguf_clip.h"

int64_t mt_clip_int(const mt_gguf *p, const char *key, int64_t fallback)
{
    char full[128];
    int64_t value;
    snprintf(full, sizeof(full), "clip.vision.%s", key);
    return mt_gguf_int(p, full, &value) ? value : fallback;
}

int64_t mt_clip_rows(const mt_gguf *p, const char *name)
{
    const mt_tensor_info *t = mt_gguf_find(p, name);
    return t && t->dims > 0 && t->shape[0] <= INT32_MAX ? (int64_t)t->shape[0] : 0;
}

bool mt_clip_swapped(const mt_gguf *p)
{
    const mt_tensor_info *up = mt_gguf_find(p, "v.blk.0.ffn_up.weight");
    const mt_tensor_info *down = mt_gguf_find(p, "v.blk.0.ffn_down.weight");
    const uint64_t hidden = (uint64_t)mt_clip_int(p, "embedding_length", 0);
    return up && down && up->dims == 2 && down->dims == 2 && up->shape[0] == hidden && down->shape[0] != hidden;
}
