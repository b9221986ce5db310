/* A list of token ids, see mt_ids in tokenizer.h. */
#include "text/tokenizer.h"

#include "base/alloc.h"

void mt_ids_add(mt_ids *ids, uint32_t id)
{
    if (ids->count == ids->cap)
        ids->data = mt_grow(ids->data, &ids->cap, ids->count + 1, sizeof(*ids->data));
    ids->data[ids->count++] = id;
}

void mt_ids_free(mt_ids *ids)
{
    mt_free(ids->data);
    *ids = (mt_ids){0};
}
